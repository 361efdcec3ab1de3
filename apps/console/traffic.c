/* SPDX-License-Identifier: BSD-3-Clause */
/* traffic.c - see traffic.h.
 *
 * A generator belongs to the main thread, which starts it, asks it to stop, and joins its thread
 * before it frees it. Data that both threads use is atomic.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <postern.h>
#include <base/list.h>
#include <base/timespec.h>

#include "../parse.h"
#include "console.h"
#include "traffic.h"

#define SECOND         UINT64_C(1000000000)
#define SINK_BYTES     (UINT64_C(4) << 20)
#define SINK_EVENTS    65536 /* for when the sink's thread does not get a CPU */
#define SIZE_MAX_BYTES (UINT64_C(1) << 30)
#define WINDOW_MAX     4096
#define PING_TIMEOUT   SECOND
#define STOP_TIMEOUT   SECOND /* without progress */
#define LOOK_INTERVAL  (SECOND / 50)
#define ERROR_BYTES    160

enum kind { PING, FLOOD, STREAM, SINK, KINDS };

static const char *const kind_names[KINDS] = {"ping", "flood", "stream", "sink"};

struct options {
	uint64_t size;     /* bytes of a message */
	uint64_t window;   /* messages on their way at a time */
	uint64_t rate;     /* bits a second; 0: as fast as can be */
	uint64_t interval; /* ns between pings */
	uint64_t count;    /* messages; 0: without end */
	uint64_t time;     /* ns; 0: without end */
};

/* What a kind takes, and without it. 0 in `takes`: the option makes no sense with it. */
static const struct options defaults[KINDS] = {
	[PING] = {.interval = SECOND},
	[FLOOD] = {.size = 8, .window = 64},
	[STREAM] = {.size = UINT64_C(1) << 20, .window = 4},
	[SINK] = {.size = SINK_BYTES},
};

struct traffic {
	struct link link;
	unsigned number;
	enum kind kind;
	unsigned interface;
	ptl_handle_ni_t ni;
	ptl_process_id_t target;
	struct options options;
	uint64_t started;
	pthread_t thread;
	/* The thread's own, once it has begun. */
	void *memory;
	ptl_handle_eq_t queue;
	ptl_handle_md_t descriptor;
	ptl_handle_me_t entry;
	char error[ERROR_BYTES]; /* before `ended` */
	/* Both threads'. */
	_Atomic bool stop;
	_Atomic bool ended;
	_Atomic uint64_t messages; /* sent, answered or taken */
	_Atomic uint64_t bytes;
	_Atomic uint64_t
		failures; /* sends that failed, pings without answer, events lost by a sink */
	_Atomic uint64_t finished; /* when it ended */
	_Atomic uint64_t least;    /* ns of round trips; of pings */
	_Atomic uint64_t most;
	_Atomic uint64_t sum;
};

static struct link all = LIST_INITIAL(all);
static unsigned last_number;

static void sleep_until(uint64_t when)
{
	const struct timespec until = timespec_of(when);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* --- the threads --- */

/* Keeps why a generator cannot go on; false. */
static bool traffic_fail(struct traffic *traffic, int code, const char *call)
{
	snprintf(traffic->error, sizeof(traffic->error), "%s: %s", call, postern_error_text(code));
	return false;
}

static bool is_over(const struct traffic *traffic, uint64_t begun)
{
	const struct options *options = &traffic->options;

	return atomic_load(&traffic->stop) || (options->count != 0 && begun >= options->count) ||
	       (options->time != 0 && time_monotonic() - traffic->started >= options->time);
}

/* Waits until the time, or until somebody stops it. */
static void pause_until(const struct traffic *traffic, uint64_t when)
{
	for (uint64_t now = time_monotonic(); now < when && !atomic_load(&traffic->stop);
		now = time_monotonic())
		sleep_until(when - now > LOOK_INTERVAL ? now + LOOK_INTERVAL : when);
}

static void ping_count(struct traffic *traffic, uint64_t round_trip)
{
	atomic_fetch_add(&traffic->messages, 1);
	atomic_fetch_add(&traffic->sum, round_trip);
	if (atomic_load(&traffic->least) == 0 || round_trip < atomic_load(&traffic->least))
		atomic_store(&traffic->least, round_trip);
	if (round_trip > atomic_load(&traffic->most))
		atomic_store(&traffic->most, round_trip);
}

static void ping_run(struct traffic *traffic)
{
	uint64_t due = time_monotonic();
	struct postern_ping ping;

	for (uint64_t n = 0; !is_over(traffic, n); n++) {
		int code = postern_ping(traffic->ni, traffic->target,
			(uint32_t)traffic->options.size, 0, PING_TIMEOUT, &ping);

		if (code != PTL_OK) {
			traffic_fail(traffic, code, "postern_ping");
			return;
		}
		if (ping.status == POSTERN_PING_BAD_SIZE) {
			snprintf(traffic->error, sizeof(traffic->error),
				"no frame has %" PRIu64 " bytes; size is from %u to %u",
				traffic->options.size, ping.least, ping.mtu);
			return;
		}
		if (ping.status == POSTERN_PING_ANSWERED)
			ping_count(traffic, ping.round_trip);
		else
			atomic_fetch_add(&traffic->failures, 1);
		due += traffic->options.interval;
		if (traffic->options.count == 0 || n + 1 < traffic->options.count)
			pause_until(traffic, due);
	}
}

/* Takes the end of one message. Returns false if the queue is gone. */
static bool send_end(struct traffic *traffic)
{
	ptl_event_t event;
	int code;

	do {
		code = PtlEQWait(traffic->queue, &event);
		if (code != PTL_OK)
			return traffic_fail(traffic, code, "PtlEQWait");
	} while (event.type != PTL_EVENT_SEND_END && event.type != PTL_EVENT_SEND_FAIL);
	if (event.type == PTL_EVENT_SEND_END) {
		atomic_fetch_add(&traffic->messages, 1);
		atomic_fetch_add(&traffic->bytes, traffic->options.size);
	} else {
		atomic_fetch_add(&traffic->failures, 1);
		snprintf(traffic->error, sizeof(traffic->error), "the last failure: %s",
			postern_fail_text(event.ni_fail_type));
	}
	return true;
}

static bool send_open(struct traffic *traffic)
{
	ptl_md_t md = {.start = traffic->memory,
		.length = traffic->options.size,
		.threshold = PTL_MD_THRESH_INF};
	int code =
		PtlEQAlloc(traffic->ni, (ptl_size_t)traffic->options.window * 2, &traffic->queue);

	if (code != PTL_OK)
		return traffic_fail(traffic, code, "PtlEQAlloc");
	md.eventq = traffic->queue;
	code = PtlMDBind(traffic->ni, md, &traffic->descriptor);
	return code == PTL_OK || traffic_fail(traffic, code, "PtlMDBind");
}

static void send_run(struct traffic *traffic)
{
	const struct options *options = &traffic->options;
	uint64_t begun = 0, outstanding = 0;

	while (!is_over(traffic, begun)) {
		int code;

		if (outstanding == options->window) {
			if (!send_end(traffic))
				return;
			outstanding--;
			continue;
		}
		if (options->rate != 0)
			pause_until(traffic,
				traffic->started +
					(uint64_t)((double)begun * (double)options->size * 8 *
						   (double)SECOND / (double)options->rate));
		code = PtlPut(traffic->descriptor, PTL_NOACK_REQ, traffic->target, TRAFFIC_PORTAL,
			0, begun, 0, 0);
		if (code != PTL_OK) {
			traffic_fail(traffic, code, "PtlPut");
			break;
		}
		begun++;
		outstanding++;
	}
	for (; outstanding > 0 && send_end(traffic); outstanding--)
		;
}

static bool sink_open(struct traffic *traffic)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = traffic->memory,
		.length = traffic->options.size,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE};
	int code = PtlEQAlloc(traffic->ni, SINK_EVENTS, &traffic->queue);

	if (code != PTL_OK)
		return traffic_fail(traffic, code, "PtlEQAlloc");
	md.eventq = traffic->queue;
	code = PtlMEAttach(traffic->ni, TRAFFIC_PORTAL, anybody, 0, ~(ptl_match_bits_t)0,
		PTL_UNLINK, PTL_INS_AFTER, &traffic->entry);
	if (code != PTL_OK)
		return traffic_fail(traffic, code, "PtlMEAttach");
	code = PtlMDAttach(traffic->entry, md, PTL_RETAIN, PTL_RETAIN, &traffic->descriptor);
	return code == PTL_OK || traffic_fail(traffic, code, "PtlMDAttach");
}

/* Messages that had come when it was stopped are counted, later ones are not. */
static void sink_run(struct traffic *traffic)
{
	unsigned left = SINK_EVENTS;
	ptl_event_t event;

	while (left > 0) {
		bool stop = atomic_load(&traffic->stop);
		int code = PtlEQGet(traffic->queue, &event);

		left -= stop;
		if (code == PTL_EQ_EMPTY) {
			if (stop)
				return;
			sleep_until(time_monotonic() + SECOND / 1000);
			continue;
		}
		if (code == PTL_EQ_DROPPED) {
			atomic_fetch_add(&traffic->failures, 1);
		} else if (code != PTL_OK) {
			traffic_fail(traffic, code, "PtlEQGet");
			return;
		}
		if (event.type == PTL_EVENT_PUT_END || event.type == PTL_EVENT_GET_END) {
			atomic_fetch_add(&traffic->messages, 1);
			atomic_fetch_add(&traffic->bytes, event.mlength);
		}
	}
}

/* Makes the objects that a generator needs of the interface. Returns false after an error. */
static bool traffic_open(struct traffic *traffic)
{
	if (traffic->kind == PING)
		return true;
	traffic->memory = postern_alloc(traffic->ni, traffic->options.size);
	if (!traffic->memory)
		return traffic_fail(traffic, PTL_NOSPACE, "postern_alloc");
	return traffic->kind == SINK ? sink_open(traffic) : send_open(traffic);
}

/* A generator frees its objects. A message may still use the descriptor of a sink, and so
 * its memory. */
static void traffic_close(struct traffic *traffic)
{
	if (traffic->descriptor != PTL_INVALID_HANDLE)
		while (PtlMDUnlink(traffic->descriptor) == PTL_MD_INUSE)
			sleep_until(time_monotonic() + SECOND / 1000);
	if (traffic->entry != PTL_INVALID_HANDLE)
		PtlMEUnlink(traffic->entry);
	if (traffic->queue != PTL_INVALID_HANDLE)
		PtlEQFree(traffic->queue);
	postern_free(traffic->memory);
}

static void *traffic_run(void *context)
{
	struct traffic *traffic = context;

	if (traffic->kind == PING)
		ping_run(traffic);
	else if (traffic->kind == SINK)
		sink_run(traffic);
	else
		send_run(traffic);
	atomic_store(&traffic->finished, time_monotonic());
	traffic_close(traffic);
	atomic_store(&traffic->ended, true);
	return NULL;
}

/* --- the main thread --- */

/* Where a kind keeps an option; NULL: it has none of that name. */
static uint64_t *option_find(struct options *options, enum kind kind, const char *name)
{
	bool sends = kind == FLOOD || kind == STREAM;

	if (strcmp(name, "size") == 0)
		return &options->size;
	if (strcmp(name, "window") == 0 && sends)
		return &options->window;
	if (strcmp(name, "rate") == 0 && sends)
		return &options->rate;
	if (strcmp(name, "interval") == 0 && kind == PING)
		return &options->interval;
	if (strcmp(name, "count") == 0 && kind != SINK)
		return &options->count;
	return strcmp(name, "time") == 0 && kind != SINK ? &options->time : NULL;
}

static bool option_parse(const char *name, const char *text, uint64_t *value)
{
	if (strcmp(name, "time") == 0 || strcmp(name, "interval") == 0)
		return parse_time(text, value) && *value > 0;
	if (strcmp(name, "rate") == 0)
		return parse_rate(text, value);
	if (strcmp(name, "count") == 0)
		return parse_size(text, UINT64_MAX / 2, value) && *value > 0;
	if (strcmp(name, "window") == 0)
		return parse_number(text, WINDOW_MAX, value) && *value > 0;
	return parse_size(text, SIZE_MAX_BYTES, value);
}

/* "name value name value ..."; false after a complaint. */
static bool options_parse(struct options *options, enum kind kind, char *words)
{
	static const char *const known[KINDS] = {
		[PING] = "size, interval, count and time",
		[FLOOD] = "size, window, rate, count and time",
		[STREAM] = "size, window, rate, count and time",
		[SINK] = "size",
	};
	char *state = NULL;

	for (char *name = strtok_r(words, " \t", &state); name;
		name = strtok_r(NULL, " \t", &state)) {
		uint64_t *value = option_find(options, kind, name);
		const char *text = strtok_r(NULL, " \t", &state);

		if (!value) {
			console_fail("%s has no option \"%s\"; it has %s", kind_names[kind], name,
				known[kind]);
			return false;
		}
		if (!text || !option_parse(name, text, value)) {
			console_fail("%s cannot be \"%s\"; write size 64K, window 16, rate 1G, "
				     "interval 100ms, count 1000 or time 10s",
				name, text ? text : "");
			return false;
		}
	}
	return true;
}

static void traffic_free(struct traffic *traffic)
{
	link_remove(&traffic->link);
	free(traffic);
}

/* Starts what has been described. */
static void traffic_begin(const struct traffic *wanted)
{
	struct traffic *traffic = malloc(sizeof(*traffic));
	int error;

	if (!traffic) {
		console_fail("there is no memory for another generator");
		return;
	}
	*traffic = *wanted;
	traffic->number = ++last_number;
	traffic->interface = console.current;
	traffic->ni = console_interface();
	traffic->queue = PTL_INVALID_HANDLE;
	traffic->descriptor = PTL_INVALID_HANDLE;
	traffic->entry = PTL_INVALID_HANDLE;
	traffic->started = time_monotonic();
	if (!traffic_open(traffic)) {
		console_fail("%s cannot be started: %s", kind_names[traffic->kind], traffic->error);
		traffic_close(traffic);
		free(traffic);
		return;
	}
	error = pthread_create(&traffic->thread, NULL, traffic_run, traffic);
	if (error != 0) {
		console_fail("a thread cannot be started: %s", strerror(error));
		traffic_close(traffic);
		free(traffic);
		return;
	}
	list_append(&all, &traffic->link);
	printf("%u: %s\n", traffic->number, kind_names[traffic->kind]);
}

void traffic_start(const char *kind, const char *target, char *words)
{
	struct traffic wanted = {.kind = PING};

	while (strcmp(kind_names[wanted.kind], kind) != 0)
		wanted.kind++;
	wanted.options = defaults[wanted.kind];
	if (!parse_process(target, &wanted.target))
		console_fail(
			"\"%s\" is no process; write NID:PID, such as 1:1 or 10.0.0.1:1", target);
	else if (options_parse(&wanted.options, wanted.kind, words))
		traffic_begin(&wanted);
}

void traffic_start_sink(char *words)
{
	struct traffic wanted = {.kind = SINK, .options = defaults[SINK]};

	if (options_parse(&wanted.options, SINK, words))
		traffic_begin(&wanted);
}

static const char *traffic_state(const struct traffic *traffic)
{
	if (!atomic_load(&traffic->ended))
		return atomic_load(&traffic->stop) ? "stopping" : "running";
	return "ended";
}

static double traffic_seconds(const struct traffic *traffic)
{
	uint64_t finished = atomic_load(&traffic->finished);

	return (double)((finished != 0 ? finished : time_monotonic()) - traffic->started) /
	       (double)SECOND;
}

static json_t *traffic_json(const struct traffic *traffic)
{
	uint64_t messages = atomic_load(&traffic->messages);
	double seconds = traffic_seconds(traffic);
	char target[32] = "-";

	if (traffic->kind != SINK)
		snprintf(target, sizeof(target), "%s", process_text(traffic->target).text);
	return json_pack("{sI ss sI ss ss sI sI sI sf sf sf sf}", "number",
		(json_int_t)traffic->number, "kind", kind_names[traffic->kind], "interface",
		(json_int_t)traffic->interface, "target", target, "state", traffic_state(traffic),
		"messages", (json_int_t)messages, "bytes", (json_int_t)atomic_load(&traffic->bytes),
		"failures", (json_int_t)atomic_load(&traffic->failures), "seconds", seconds,
		"messages_per_s", seconds > 0 ? (double)messages / seconds : 0.0, "megabits_per_s",
		seconds > 0 ? (double)atomic_load(&traffic->bytes) * 8e-6 / seconds : 0.0,
		"round_trip_us",
		messages > 0 && traffic->kind == PING
			? (double)atomic_load(&traffic->sum) / (double)messages * 1e-3
			: 0.0);
}

json_t *traffic_look(void)
{
	json_t *items = json_array();

	list_each (struct traffic, traffic, &all, link)
		json_array_append_new(items, traffic_json(traffic));
	return json_pack("{so}", "items", items);
}

/* Reports the result of a generator that has ended. A generator that moved nothing has failed. */
static void traffic_tell(const struct traffic *traffic)
{
	uint64_t messages = atomic_load(&traffic->messages);
	uint64_t failures = atomic_load(&traffic->failures);
	double seconds = traffic_seconds(traffic);

	printf("%u: %s ended after %.3f s: ", traffic->number, kind_names[traffic->kind], seconds);
	if (traffic->kind == PING)
		printf("%" PRIu64 " answered, %" PRIu64 " not", messages, failures);
	else
		printf("%" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64 " %s", messages,
			atomic_load(&traffic->bytes), failures,
			traffic->kind == SINK ? "times events were lost" : "failed");
	if (traffic->kind == PING && messages > 0)
		printf(", round trip %.1f/%.1f/%.1f us (least, mean, most)",
			(double)atomic_load(&traffic->least) * 1e-3,
			(double)atomic_load(&traffic->sum) / (double)messages * 1e-3,
			(double)atomic_load(&traffic->most) * 1e-3);
	printf("\n");
	if (traffic->error[0] != '\0' || (messages == 0 && failures > 0))
		console_fail("%s %u failed%s%s", kind_names[traffic->kind], traffic->number,
			traffic->error[0] != '\0' ? ": " : ", nobody answered", traffic->error);
}

/* Waits for the end of one that has been stopped, but not for messages that nothing happens to:
 * those to a process that does not exist fail after PTL_PEER_TIMEOUT at the latest. */
static bool traffic_await(const struct traffic *traffic)
{
	uint64_t messages = atomic_load(&traffic->messages), since = time_monotonic();

	while (!atomic_load(&traffic->ended)) {
		if (atomic_load(&traffic->messages) != messages) {
			messages = atomic_load(&traffic->messages);
			since = time_monotonic();
		}
		if (time_monotonic() - since >= STOP_TIMEOUT || console_interrupted())
			return false;
		sleep_until(time_monotonic() + SECOND / 1000);
	}
	return true;
}

/* Waits for the end of one, sums it up and forgets it. */
static void traffic_finish(struct traffic *traffic)
{
	if (!traffic_await(traffic)) {
		console_fail("%s %u still waits for messages that have not arrived, "
			     "PTL_PEER_TIMEOUT at the longest; "
			     "stop it again later, or quit",
			kind_names[traffic->kind], traffic->number);
		return;
	}
	pthread_join(traffic->thread, NULL);
	traffic_tell(traffic);
	traffic_free(traffic);
}

/* Is it one of those meant by "all", or by its number? */
static bool traffic_is(const struct traffic *traffic, const char *which)
{
	uint64_t number;

	return strcmp(which, "all") == 0 ||
	       (parse_number(which, UINT32_MAX, &number) && number == traffic->number);
}

/* Is there traffic of this number? Returns false after a complaint. */
static bool traffic_known(const char *which)
{
	list_each (struct traffic, traffic, &all, link)
		if (traffic_is(traffic, which))
			return true;
	if (strcmp(which, "all") == 0)
		return true;
	console_fail("there is no traffic \"%s\"; show traffic lists all", which);
	return false;
}

void traffic_stop(const char *which)
{
	if (!traffic_known(which))
		return;
	list_each (struct traffic, traffic, &all, link)
		if (traffic_is(traffic, which))
			atomic_store(&traffic->stop, true);
	list_each (struct traffic, traffic, &all, link)
		if (traffic_is(traffic, which))
			traffic_finish(traffic);
}

/* Has it an end of its own? */
static bool traffic_ends(const struct traffic *traffic)
{
	return traffic->options.count != 0 || traffic->options.time != 0 ||
	       atomic_load(&traffic->ended);
}

void traffic_wait(const char *which, uint64_t timeout)
{
	uint64_t started = time_monotonic();

	if (!traffic_known(which))
		return;
	list_each (struct traffic, traffic, &all, link) {
		if (!traffic_is(traffic, which))
			continue;
		if (!traffic_ends(traffic)) {
			if (strcmp(which, "all") != 0)
				console_fail("%s %u goes on until it is stopped: enter stop %u",
					kind_names[traffic->kind], traffic->number,
					traffic->number);
			continue;
		}
		while (!atomic_load(&traffic->ended)) {
			if (timeout != 0 && time_monotonic() - started >= timeout) {
				console_fail("%s %u still runs", kind_names[traffic->kind],
					traffic->number);
				return;
			}
			if (!console_sleep(LOOK_INTERVAL))
				return;
		}
		traffic_finish(traffic);
	}
}

void traffic_end(void)
{
	list_each (struct traffic, traffic, &all, link)
		atomic_store(&traffic->stop, true);
	list_each (struct traffic, traffic, &all, link)
		traffic_await(traffic);
}

void traffic_join(void)
{
	list_each (struct traffic, traffic, &all, link) {
		pthread_join(traffic->thread, NULL);
		traffic_free(traffic);
	}
}
