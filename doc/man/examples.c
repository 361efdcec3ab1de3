/* SPDX-License-Identifier: BSD-3-Clause */
/* examples.c - the examples of the manual's pages, run one after the other by a process with
 * itself.
 *
 * manual.py shows the body of a function as the example of each page that the comment before it
 * names. So an example is a few lines that read well alone; check() stands for what a program does
 * about errors.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <portals.h>
#include <postern.h>

#define PORTAL 4

static void check(int code)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s\n", postern_error_text(code));
	exit(1);
}

/* Example: PtlInit PtlNIInit postern_last_error */
static ptl_handle_ni_t open_interface(void)
{
	ptl_handle_ni_t ni;
	int interfaces;

	if (PtlInit(&interfaces) != PTL_OK ||
		PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK) {
		fprintf(stderr, "Portals cannot be used: %s\n", postern_last_error());
		exit(1);
	}
	return ni;
}

/* Example: PtlNIFini PtlFini */
static void close_interface(ptl_handle_ni_t ni)
{
	PtlNIFini(ni);
	PtlFini();
}

/* Example: PtlGetId PtlGetUid PtlNIDist */
static void who_am_i(ptl_handle_ni_t ni)
{
	ptl_process_id_t self;
	ptl_uid_t uid;
	unsigned long distance;

	check(PtlGetId(ni, &self));
	check(PtlGetUid(ni, &uid));
	check(PtlNIDist(ni, self, &distance)); /* 0: this process */
	printf("I am %u:%u, user %u, at distance %lu.\n", self.nid, self.pid, uid, distance);
}

/* Example: PtlNIStatus */
static void count_drops(ptl_handle_ni_t ni)
{
	ptl_sr_value_t dropped;

	check(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &dropped));
	printf("%" PRId64 " messages were discarded.\n", dropped);
}

/* Example: PtlMEAttach PtlMDAttach PtlEQAlloc PtlNIHandle */
static ptl_handle_eq_t open_inbox(ptl_handle_ni_t ni, char *inbox, ptl_size_t length)
{
	/* Portal 4 takes messages with match bits 7 from any process into inbox, and logs them. */
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {
		.start = inbox,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE,
	};
	ptl_handle_me_t entry;
	ptl_handle_md_t descriptor;
	ptl_handle_ni_t interface;

	check(PtlEQAlloc(ni, 64, &md.eventq));
	check(PtlMEAttach(ni, PORTAL, anybody, 7, 0, PTL_RETAIN, PTL_INS_AFTER, &entry));
	check(PtlMDAttach(entry, md, PTL_RETAIN, PTL_RETAIN, &descriptor));
	check(PtlNIHandle(descriptor, &interface)); /* the same as ni */
	return md.eventq;
}

/* Example: PtlMEAttachAny PtlMEInsert PtlMEUnlink */
static void any_portal(ptl_handle_ni_t ni)
{
	/* Uses any free Portal. Senders need its number, portal. */
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t entry, urgent;
	ptl_pt_index_t portal;

	check(PtlMEAttachAny(ni, &portal, anybody, 0, ~UINT64_C(0), PTL_RETAIN, &entry));
	/* Messages with match bits 1 now match this entry first. */
	check(PtlMEInsert(entry, anybody, 1, 0, PTL_RETAIN, PTL_INS_BEFORE, &urgent));
	check(PtlMEUnlink(urgent));
	check(PtlMEUnlink(entry));
}

/* Example: PtlPut PtlMDBind PtlMDUnlink PtlEQWait PtlEQFree */
static void send_greeting(ptl_handle_ni_t ni, ptl_process_id_t target)
{
	/* SEND_END does not show that the target accepted the put: a put that no match entry
	 * matches has this event, too. Only the acknowledgement shows it. */
	char greeting[] = "Hello.";
	ptl_md_t md = {.start = greeting, .length = sizeof(greeting), .threshold = 2};
	ptl_handle_md_t descriptor;
	ptl_event_t event;

	check(PtlEQAlloc(ni, 8, &md.eventq));
	check(PtlMDBind(ni, md, &descriptor));
	check(PtlPut(descriptor, PTL_ACK_REQ, target, PORTAL, 0, 7, 0, 0));
	do {
		check(PtlEQWait(md.eventq, &event));
		if (event.ni_fail_type != PTL_NI_OK) {
			fprintf(stderr, "%s: %s\n", postern_event_name(event.type),
				postern_fail_text(event.ni_fail_type));
			exit(1);
		}
	} while (event.type != PTL_EVENT_ACK);
	check(PtlMDUnlink(descriptor));
	check(PtlEQFree(md.eventq));
}

/* Example: PtlGet */
static void fetch(ptl_handle_ni_t ni, ptl_process_id_t target)
{
	char copy[8] = "";
	ptl_md_t md = {.start = copy, .length = sizeof(copy), .threshold = 1};
	ptl_handle_md_t descriptor;
	ptl_event_t event;

	check(PtlEQAlloc(ni, 8, &md.eventq));
	check(PtlMDBind(ni, md, &descriptor));
	check(PtlGet(descriptor, target, PORTAL, 0, 7, 0));
	do {
		check(PtlEQWait(md.eventq, &event));
	} while (event.type != PTL_EVENT_REPLY_END && event.type != PTL_EVENT_REPLY_FAIL);
	if (event.type == PTL_EVENT_REPLY_END)
		printf("%" PRIu64 " bytes: %.8s\n", event.mlength, copy);
	else
		printf("Nothing: %s\n", postern_fail_text(event.ni_fail_type));
	check(PtlMDUnlink(descriptor));
	check(PtlEQFree(md.eventq));
}

/* Example: PtlEQGet postern_event_name postern_error_name postern_error_text postern_fail_text */
static void drain(ptl_handle_eq_t queue)
{
	ptl_event_t event;
	int code;

	while ((code = PtlEQGet(queue, &event)) == PTL_OK || code == PTL_EQ_DROPPED) {
		if (code == PTL_EQ_DROPPED)
			fputs("Events were lost: the queue is too small.\n", stderr);
		printf("%s from %u:%u", postern_event_name(event.type), event.initiator.nid,
			event.initiator.pid);
		if (event.ni_fail_type != PTL_NI_OK)
			printf(", failed: %s", postern_fail_text(event.ni_fail_type));
		putchar('\n');
	}
	if (code != PTL_EQ_EMPTY)
		fprintf(stderr, "%s: %s\n", postern_error_name(code), postern_error_text(code));
}

/* Example: postern_eq_poll */
static void wait_a_second(const ptl_handle_eq_t *queues, unsigned count)
{
	ptl_event_t event;
	unsigned which;
	int code = postern_eq_poll(queues, count, 1000000000, &event, &which);

	if (code == PTL_EQ_EMPTY)
		puts("Nothing came within a second.");
	else if (code == PTL_OK || code == PTL_EQ_DROPPED)
		printf("%s in queue %u\n", postern_event_name(event.type), which);
	else
		check(code);
}

/* Example: postern_eq_fd */
static void wait_with_others(ptl_handle_eq_t queue, int socket)
{
	struct pollfd both[2] = {
		{.fd = postern_eq_fd(queue), .events = POLLIN}, {.fd = socket, .events = POLLIN}};

	if (both[0].fd < 0) {
		fprintf(stderr, "%s\n", postern_last_error());
		return;
	}
	if (poll(both, 2, 100) > 0 && both[0].revents != 0)
		drain(queue); /* until PtlEQGet finds no more */
	close(both[0].fd);
}

/* Example: PtlMDUpdate */
static void exchange_buffer(
	ptl_handle_md_t descriptor, ptl_handle_eq_t queue, void *next, ptl_size_t length)
{
	/* Further messages go into the next buffer, but only once all events of the present one
	 * have been read. */
	ptl_md_t md;
	ptl_event_t event;
	int code;

	check(PtlMDUpdate(descriptor, &md, NULL, PTL_EQ_NONE));
	md.start = next;
	md.length = length;
	while ((code = PtlMDUpdate(descriptor, NULL, &md, queue)) == PTL_NOUPDATE)
		check(PtlEQWait(queue, &event));
	check(code);
}

/* Example: PtlACEntry */
static void admit(ptl_handle_ni_t ni, ptl_process_id_t friend)
{
	/* A request of this process, run by my user, may use Portal 4 with cookie 1. */
	ptl_uid_t uid;

	check(PtlGetUid(ni, &uid));
	check(PtlACEntry(ni, 1, friend, uid, PORTAL));
}

/* Example: postern_alloc postern_free */
static void quick_memory(ptl_handle_ni_t ni)
{
	char *buffer = postern_alloc(ni, 1 << 20);

	if (buffer == NULL) {
		fputs("There is no memory.\n", stderr);
		exit(1);
	}
	/* Descriptors may lie in buffer until it is freed. */
	postern_free(buffer);
}

/* Example: postern_stats */
static void show_counters(ptl_handle_ni_t ni)
{
	struct postern_stat stats[256];
	unsigned count = postern_stats(ni, stats, 256);

	for (unsigned i = 0; i < count && i < 256; i++)
		if (stats[i].value != 0)
			printf("%s %" PRIu64 "\n", stats[i].name, stats[i].value);
}

/* Example: postern_settings postern_set postern_version */
static void show_settings(ptl_handle_ni_t ni)
{
	struct postern_setting settings[64];
	unsigned count = postern_settings(settings, 64);

	printf("Postern %s\n", postern_version());
	for (unsigned i = 0; i < count && i < 64; i++)
		printf("%s=%s\n", settings[i].name, settings[i].value);
	if (postern_set(ni, "PTL_LOG_LEVEL", "info") != PTL_OK)
		fprintf(stderr, "%s\n", postern_last_error());
}

/* Example: postern_capture_start postern_capture_stop */
static void capture(ptl_handle_ni_t ni, const char *file)
{
	if (postern_capture_start(ni, file, 0) != PTL_OK) {
		fprintf(stderr, "%s\n", postern_last_error());
		return;
	}
	/* Frames that come and go now are in the file. */
	check(postern_capture_stop(ni));
}

/* Example: postern_inspect postern_topics */
static void look_inside(ptl_handle_ni_t ni)
{
	struct postern_topic topics[32];
	unsigned count = postern_topics(topics, 32);
	char json[4096];

	for (unsigned i = 0; i < count && i < 32; i++)
		if (postern_inspect(ni, topics[i].name, 0, 0, json, sizeof(json)) >= 0)
			printf("%s: %s\n", topics[i].name, json); /* cut off if longer */
}

/* Example: postern_ping */
static void is_it_there(ptl_handle_ni_t ni, ptl_process_id_t target)
{
	struct postern_ping ping;
	int code = postern_ping(ni, target, 0, 0, UINT64_C(1000000000), &ping);

	if (code != PTL_OK)
		fprintf(stderr, "%s\n", postern_error_text(code));
	else if (ping.status == POSTERN_PING_ANSWERED)
		printf("%u:%u answered after %" PRIu64 " ns.\n", target.nid, target.pid,
			ping.round_trip);
	else
		printf("%u:%u did not answer.\n", target.nid, target.pid);
}

/* Example: postern_job_abort */
static void size_check(unsigned size)
{
	if (size <= 1000)
		return;
	fprintf(stderr, "This program is for up to 1000 ranks.\n");
	postern_job_abort(2); /* nobody waits for this rank */
}

/* Example: postern_job_card postern_job_given */
static void meet_by_mpi(ptl_handle_ni_t ni, int rank, int size)
{
	unsigned char own[POSTERN_JOB_CARD_BYTES], *cards = malloc((size_t)size * sizeof(own));

	check(postern_job_card(ni, own));
	/* MPI_Allgather(own, sizeof(own), MPI_BYTE, cards, sizeof(own), MPI_BYTE, MPI_COMM_WORLD)
	 */
	memcpy(cards, own, sizeof(own)); /* alone here */
	check(postern_job_given(ni, (unsigned)rank, (unsigned)size, cards));
	free(cards);
}

/* Example: postern_job_join postern_job_address postern_job_barrier postern_job_leave */
static void greet_neighbour(ptl_handle_ni_t ni)
{
	ptl_process_id_t next;
	unsigned rank, size;

	check(postern_job_join(ni, &rank, &size)); /* memory for greetings is attached before */
	size_check(size);
	check(postern_job_address((rank + 1) % size, &next));
	printf("Rank %u of %u greets %u:%u.\n", rank, size, next.nid, next.pid);
	send_greeting(ni, next);
	check(postern_job_barrier()); /* nobody goes before all have greeted */
	check(postern_job_leave());
}

int main(int count, char **words)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	char inbox[64] = "", second[64] = "";
	char file[] = "/tmp/postern-examples-XXXXXX";
	ptl_md_t md = {.start = second, .length = sizeof(second), .threshold = 1};
	ptl_handle_ni_t ni = open_interface();
	ptl_handle_eq_t queue;
	ptl_handle_md_t descriptor;
	ptl_process_id_t self;
	ptl_event_t event;
	int made;

	check(PtlGetId(ni, &self));
	who_am_i(ni);
	admit(ni, anybody);
	any_portal(ni);
	queue = open_inbox(ni, inbox, sizeof(inbox));
	send_greeting(ni, self);
	do
		check(PtlEQWait(queue, &event));
	while (event.type != PTL_EVENT_PUT_END);
	if (strcmp(inbox, "Hello.") != 0) {
		fprintf(stderr, "The inbox has: %s\n", inbox);
		return 1;
	}
	fetch(ni, self);
	wait_a_second(&queue, 1);
	wait_with_others(queue, STDIN_FILENO);
	drain(queue);
	check(PtlMDBind(ni, md, &descriptor));
	exchange_buffer(descriptor, queue, inbox, sizeof(inbox));
	quick_memory(ni);
	count_drops(ni);
	show_counters(ni);
	show_settings(ni);
	look_inside(ni);
	is_it_there(ni, self);
	/* A process joins one job, once. */
	if (count > 1 && strcmp(words[1], "given") == 0)
		meet_by_mpi(ni, 0, 1);
	else
		greet_neighbour(ni);
	made = mkstemp(file);
	if (made >= 0) {
		capture(ni, file);
		close(made);
		unlink(file);
	}
	close_interface(ni);
	return 0;
}
