/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - postern-ping: asks whether a process is there, how far it is, and what size of frame
 * gets through. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <postern.h>

#include <base/timespec.h>

#include "../json.h"
#include "../output.h"
#include "../parse.h"
#include "../path.h"
#include "../port.h"
#include "../setting.h"
#include "options.h"
#include "tally.h"

#define SECOND        UINT64_C(1000000000)
#define TEXT_BYTES    32
#define PROCESS_BYTES 32
#define STATS_MAX     512

/* One run. */
struct run {
	struct options options;
	ptl_handle_ni_t ni;
	ptl_process_id_t self;
	char target[PROCESS_BYTES]; /* "1:100" */
	uint64_t begun;
	uint64_t ended;
	uint64_t sent;
	uint64_t answered;
	uint64_t restarts;        /* times another life of the process answered */
	uint32_t incarnation;     /* of the last answer; 0: none yet */
	uint32_t size;            /* of questions */
	struct postern_ping last; /* the last one that was not answered */
	bool told;                /* why it was not, */
	bool refused;             /* and that its host answers */
	struct tally round_trip;
	struct tally residence; /* this and the next only of answers that tell them apart */
	struct tally network;
	struct path path;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* Until then, or a signal. */
static void sleep_until(uint64_t at)
{
	const struct timespec time = timespec_of(at);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* "12.3 us" */
static const char *time_text(double ns, char *text)
{
	if (ns < 1e6)
		snprintf(text, TEXT_BYTES, "%.1f us", ns / 1e3);
	else if (ns < 1e9)
		snprintf(text, TEXT_BYTES, "%.2f ms", ns / 1e6);
	else
		snprintf(text, TEXT_BYTES, "%.3f s", ns / 1e9);
	return text;
}

/* Has a host said that it has no such process? Only ports on UDP sockets hear that. */
static bool host_refused(const struct run *run)
{
	static struct postern_stat stats[STATS_MAX];
	unsigned count = postern_stats(run->ni, stats, STATS_MAX);

	for (unsigned n = 0; n < count && n < STATS_MAX; n++)
		if (strcmp(stats[n].name, "refusals_received") == 0)
			return stats[n].value > 0;
	return false;
}

/* driver: as the topic "port" has it */
static bool on_port(const struct run *run, const char *driver)
{
	json_t *port = port_read(run->ni);
	const char *own = json_string_value(json_object_get(port, "driver"));
	bool equal = own && strcmp(own, driver) == 0;

	json_decref(port);
	return equal;
}

/* Why no process says where it is. */
static void absence_print(const struct run *run)
{
	if (run->refused)
		printf("the host of %s answers, but no process with that id does: start the "
		       "process with the same PTL_UDP_PORTS, and let firewalls pass UDP ports %s\n",
			run->target, setting_value("PTL_UDP_PORTS"));
	else if (on_port(run, "udp"))
		printf("nothing comes back from the host of %s: start that host, and let firewalls "
		       "pass UDP ports %s (PTL_UDP_PORTS); udp does not work through address "
		       "translation (NAT)\n",
			run->target, setting_value("PTL_UDP_PORTS"));
	else if (on_port(run, "node") && run->options.target.nid != run->self.nid)
		printf("the node id of %s is not that of this process, %u, so shared memory does "
		       "not connect them: if it is a process of this user on this machine, give "
		       "both the same PTL_NID; otherwise set PTL_IFACE_NAME to udp for both\n",
			run->target, run->self.nid);
	else if (on_port(run, "node"))
		printf("no process of this user on this machine has the id %s: start it, and give "
		       "both the same PTL_IFACE_NAME; if it is on another machine, or of another "
		       "user, set PTL_IFACE_NAME to udp for both\n",
			run->target);
	else
		printf("no process with the id %s is on this network: start it, and give both the "
		       "same PTL_IFACE_NAME, PTL_VLAN and PTL_ENCAP; let switches and firewalls "
		       "pass frames of type 0x88b5 (with PTL_ENCAP: UDP); if it is beyond a "
		       "router, which forwards no Ethernet frames, set PTL_IFACE_NAME to udp for "
		       "both; postern-info doctor checks the link\n",
			run->target);
}

/* Why the last question has no answer, and what to do. */
static void silence_print(const struct run *run)
{
	const uint8_t *address = run->last.address;

	switch (run->last.status) {
	case POSTERN_PING_NO_ADDRESS:
		absence_print(run);
		break;
	case POSTERN_PING_NO_NODE:
		printf("neither the node of %s nor a gateway answers ARP: start that node, and "
		       "check PTL_IP and PTL_GATEWAY\n",
			run->target);
		break;
	case POSTERN_PING_NOT_SENT:
		printf("the port sends no frame: bring its link up\n");
		break;
	default:
		printf("no answer from %02x:%02x:%02x:%02x:%02x:%02x, where the process was found: "
		       "it is stopped or has ended, or frames of this size do not reach it; try "
		       "--size 0, or --mtu\n",
			address[0], address[1], address[2], address[3], address[4], address[5]);
		break;
	}
}

static bool talks(const struct options *options)
{
	return !options->quiet && !options->flood && !options->json;
}

static void answer_print(const struct run *run, const struct postern_ping *ping)
{
	char round_trip[TEXT_BYTES], network[TEXT_BYTES], residence[TEXT_BYTES];

	time_text((double)ping->round_trip, round_trip);
	time_text((double)ping->network, network);
	time_text((double)ping->residence, residence);
	printf("%" PRIu32 " bytes from %s: seq=%" PRIu64 " time=%s ", ping->answer_size,
		run->target, run->sent, round_trip);
	if (ping->exact)
		printf("(network %s, at the target %s)\n", network, residence);
	else if (ping->network == 0)
		printf("(network at most %s)\n", round_trip);
	else
		printf("(network %s to %s)\n", network, round_trip);
}

static void answer_take(struct run *run, const struct postern_ping *ping)
{
	run->answered++;
	run->told = false;
	tally_add(&run->round_trip, ping->round_trip);
	if (ping->exact) {
		tally_add(&run->residence, ping->residence);
		tally_add(&run->network, ping->network);
	}
	if (run->incarnation != 0 && run->incarnation != ping->incarnation) {
		run->restarts++;
		if (talks(&run->options))
			printf("%s has restarted\n", run->target);
	}
	run->incarnation = ping->incarnation;
	if (talks(&run->options))
		answer_print(run, ping);
}

/* The reason is printed once, until it changes. */
static void silence_take(struct run *run, const struct postern_ping *ping)
{
	const bool refused = host_refused(run);
	const bool known = run->told && run->last.status == ping->status && run->refused == refused;

	run->last = *ping;
	run->refused = refused;
	if (!talks(&run->options))
		return;
	printf("seq=%" PRIu64 ": ", run->sent);
	if (known)
		puts("no answer");
	else
		silence_print(run);
	run->told = true;
}

/* One question. */
static void ask(struct run *run)
{
	struct postern_ping ping;
	int code;

	run->sent++;
	code = postern_ping(
		run->ni, run->options.target, run->size, run->size, run->options.timeout, &ping);
	if (code != PTL_OK)
		trouble("%s cannot be asked: %s", run->target, postern_error_text(code));
	if (ping.status == POSTERN_PING_ANSWERED) {
		answer_take(run, &ping);
	} else {
		silence_take(run, &ping);
	}
	if (talks(&run->options) && !output_flush())
		interrupted = 1; /* nobody sees the answers */
}

static bool over(const struct run *run)
{
	const struct options *options = &run->options;

	return interrupted || (options->count != 0 && run->sent >= options->count) ||
	       (options->deadline != 0 && time_monotonic() - run->begun >= options->deadline);
}

static void ask_all(struct run *run)
{
	const struct options *options = &run->options;
	uint64_t next = run->begun = time_monotonic();

	while (!over(run)) {
		ask(run);
		next += options->interval;
		if (options->flood || over(run))
			continue;
		if (options->deadline != 0 && next - run->begun > options->deadline)
			next = run->begun + options->deadline;
		sleep_until(next);
	}
	run->ended = time_monotonic();
}

/* --- the summary */

static void tally_print(const char *name, const struct tally *tally)
{
	char times[4][TEXT_BYTES];

	if (tally->count == 0) {
		printf("%s min/avg/max/mdev = -\n", name);
		return;
	}
	printf("%s min/avg/max/mdev = %s / %s / %s / %s\n", name,
		time_text((double)tally->least, times[0]), time_text(tally->mean, times[1]),
		time_text((double)tally->most, times[2]),
		time_text(tally_deviation(tally), times[3]));
}

static void path_print(const struct run *run)
{
	const struct path *path = &run->path;

	if (!path->answered) {
		printf("path MTU: not found, because there is no answer\n");
		return;
	}
	if (path->there == 0) {
		printf("path MTU: not found, because nothing passes any more since frames of up to "
		       "%" PRIu32 " bytes were tried\n",
			path->own);
		return;
	}
	printf("path MTU: %" PRIu32 " bytes there, %" PRIu32
	       " back (frames of this interface: %" PRIu32 ", of the target: %" PRIu32 ")\n",
		path->there, path->back, path->own, path->target);
	if (path->there == path->own)
		return;
	if (path_mtu(path) == 0)
		printf("That is less than PTL_MTU may be: let the links to %s carry more.\n",
			run->target);
	else
		printf("Frames of this interface do not all reach %s: set PTL_MTU=%" PRIu32
		       " on both sides%s.\n",
			run->target, path_mtu(path),
			path->target <= path->there ? "" : ", or let the switches carry more");
}

static void summary_print(const struct run *run)
{
	uint64_t lost = run->sent - run->answered;
	char time[TEXT_BYTES];

	printf("%s--- %s ping statistics ---\n", talks(&run->options) ? "\n" : "", run->target);
	printf("%" PRIu64 " questions, %" PRIu64 " answers, %.4g%% lost, time %s\n", run->sent,
		run->answered, run->sent == 0 ? 0.0 : 100.0 * (double)lost / (double)run->sent,
		time_text((double)(run->ended - run->begun), time));
	if (run->answered > 0) {
		tally_print("round trip   ", &run->round_trip);
		tally_print("network      ", &run->network);
		tally_print("at the target", &run->residence);
	}
	if (run->network.count < run->answered)
		printf("%" PRIu64 " of %" PRIu64 " answers tell network and target apart: for the "
		       "others, one of the two processes slept or was busy when a frame came. "
		       "PTL_POLL=busy on both sides keeps them awake.\n",
			run->network.count, run->answered);
	if (run->restarts > 0)
		printf("%s restarted %" PRIu64 " times\n", run->target, run->restarts);
	if (run->options.mtu)
		path_print(run);
	if (run->answered == 0 && run->sent > 0 && !run->told)
		silence_print(run);
}

static void tally_json(const char *name, const struct tally *tally)
{
	if (tally->count == 0) {
		printf(",\n  \"%s_ns\": null", name);
		return;
	}
	printf(",\n  \"%s_ns\": {\"min\": %" PRIu64 ", \"avg\": %.1f, \"max\": %" PRIu64
	       ", \"mdev\": %.1f}",
		name, tally->least, tally->mean, tally->most, tally_deviation(tally));
}

static void summary_json(const struct run *run)
{
	static const char *const reasons[] = {[POSTERN_PING_ANSWERED] = "answered",
		[POSTERN_PING_NO_ANSWER] = "no answer",
		[POSTERN_PING_NO_ADDRESS] = "no address",
		[POSTERN_PING_NO_NODE] = "no node",
		[POSTERN_PING_NOT_SENT] = "not sent",
		[POSTERN_PING_BAD_SIZE] = "bad size"};

	printf("{\n  \"target\": ");
	json_text(run->target);
	printf(",\n  \"source\": \"%s\",\n  \"size\": %" PRIu32 ",\n  \"sent\": %" PRIu64
	       ",\n  \"answered\": %" PRIu64 ",\n  \"exact\": %" PRIu64
	       ",\n  \"restarts\": %" PRIu64 ",\n  \"seconds\": %.6f",
		process_text(run->self).text, run->size, run->sent, run->answered,
		run->network.count, run->restarts, (double)(run->ended - run->begun) / 1e9);
	if (run->answered > 0) {
		tally_json("round_trip", &run->round_trip);
		tally_json("network", &run->network);
		tally_json("residence", &run->residence);
	}
	if (run->answered < run->sent)
		printf(",\n  \"last_failure\": \"%s\"", reasons[run->last.status]);
	if (run->options.mtu && run->path.answered)
		printf(",\n  \"path_mtu\": {\"there\": %" PRIu32 ", \"back\": %" PRIu32
		       ", \"own\": %" PRIu32 ", \"target\": %" PRIu32 "}",
			run->path.there, run->path.back, run->path.own, run->path.target);
	printf("\n}\n");
}

/* --- beginning and end */

/* A question of this size that is not sent because of its size says so at once; this one would be
 * sent. */
static void size_choose(struct run *run)
{
	struct postern_ping ping;
	int code = postern_ping(run->ni, run->options.target, UINT32_MAX, 0, 0, &ping);

	if (code != PTL_OK)
		trouble("%s cannot be asked: %s", run->target, postern_error_text(code));
	run->size = run->options.full ? ping.mtu : (uint32_t)run->options.size;
	if (run->size == 0)
		run->size = ping.least;
	if (run->size < ping.least || run->size > ping.mtu)
		trouble("--size %" PRIu32
			" is not possible here: frames of this interface have %" PRIu32
			" to %" PRIu32 " bytes, see PTL_MTU",
			run->size, ping.least, ping.mtu);
}

static void open_interface(struct run *run)
{
	int interfaces;

	if (PtlInit(&interfaces) != PTL_OK)
		exit(EXIT_TROUBLE); /* the library has said why */
	if (run->options.interface >= (uint64_t)interfaces)
		trouble("there is no interface %" PRIu64 ": PTL_IFACE_NAME names %d",
			run->options.interface, interfaces);
	if (PtlNIInit((ptl_interface_t)run->options.interface, (ptl_pid_t)run->options.pid, NULL,
		    NULL, &run->ni) != PTL_OK)
		exit(EXIT_TROUBLE);
	PtlGetId(run->ni, &run->self);
}

int main(int count, char **words)
{
	/* A second signal ends the program without a summary. */
	const struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
	static struct run run;

	output_watch("postern-ping", EXIT_TROUBLE);
	options_read(count, words, &run.options);
	snprintf(run.target, sizeof(run.target), "%s", process_text(run.options.target).text);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	open_interface(&run);
	size_choose(&run);
	if (!run.options.json)
		printf("PING %s from %s, %" PRIu32 " bytes\n", run.target,
			process_text(run.self).text, run.size);
	fflush(stdout);
	ask_all(&run);
	if (run.options.mtu && run.answered > 0 && !interrupted &&
		path_find(run.ni, run.options.target, (uint64_t)run.round_trip.mean, &run.path) !=
			PTL_OK)
		run.path.answered = false;
	if (run.options.json)
		summary_json(&run);
	else
		summary_print(&run);
	PtlFini();
	return run.answered > 0 ? EXIT_ANSWERED : EXIT_SILENCE;
}
