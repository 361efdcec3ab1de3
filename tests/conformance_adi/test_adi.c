/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_adi.c - a job of any number of ranks checks sequences S1 to S9 of the abstract device and
 * the traps that upper layers set it. Each rank sends to its right neighbour and receives from
 * its left one; alone it is both.
 * Covers: lib/adi/adi.c.
 *
 * With an argument it does something else: special().
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "D.h"

#define LONG        300000
#define BURST_TIME  100 /* s, until a rank that is stuck is ended */
#define BURST_PAUSE 3   /* s, that a rank computes */
#define LOOKS       1000
#define LOOK_TIME   10000 /* ns, that a rank computes between two looks */

static int rank, size, right, left, context = 4;
#ifdef A_SHOW_UNEXPECTED
Queue d_unexpected;
#endif

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "rank %d of %d, line %d: %s\n", rank, size, __LINE__,      \
				#condition);                                                       \
			A_ABORT(3);                                                                \
		}                                                                                  \
	} while (0)

/* A Request in memory that is not zeroed: T4. */
static Request request(int type, int peer, int tag, void *data, int bytes, int nonblocking)
{
	Request r;

	memset(&r, 0x5a, sizeof(r));
	r.handle_type = type;
	r.tag = tag;
	r.context_id = context;
	r.mode = MPIR_STANDARD;
	r.completed = 0;
	r.data = data;
	r.bytes = bytes;
	r.piece = r.stride = bytes > 0 ? bytes : 1;
	memset(r.calls, 0, sizeof(r.calls));
	if (type == MPIR_SEND) {
		r.dest = peer;
		A_alloc_send_handle(&r);
		A_set_send_is_nonblocking(&r, nonblocking);
		A_set_send_contig_buffer(&r, data, bytes);
	} else {
		r.source = peer;
		A_alloc_recv_handle(&r);
		A_set_recv_is_nonblocking(&r, nonblocking);
		A_set_recv_contig_buffer(&r, data, bytes);
	}
	return r;
}

static void fill(char *data, int bytes, int seed)
{
	for (int i = 0; i < bytes; i++)
		data[i] = (char)(seed + i * 7 + (i >> 8));
}

static int is_filled(const char *data, int bytes, int seed)
{
	for (int i = 0; i < bytes; i++)
		if (data[i] != (char)(seed + i * 7 + (i >> 8)))
			return 0;
	return 1;
}

/* All wait for all: a message round the ring, twice. */
static void together(void)
{
	int word = 0, complete, others = context;
	Status status;

	context = 99; /* no wildcard of a test's own matches */
	for (int round = 0; round < 2 && size > 1; round++) {
		Request s = request(MPIR_SEND, right, 99, &word, sizeof(word), 0);
		Request r = request(MPIR_RECV, left, 99, &word, sizeof(word), 0);

		if (rank == 0)
			A_post_send(&s);
		A_post_recv(&r, &complete);
		A_complete_recv(&r, &status);
		if (rank != 0)
			A_post_send(&s);
		A_complete_send(&s, &status);
	}
	context = others;
}

/* S1, S3, S5, S6, T8, T12: blocking sends and receives. A long one waits for its receive, so one of
 * two neighbours receives first. */
static void blocking(int bytes)
{
	static char out[LONG], in[LONG];
	int complete, first = bytes <= 1024;
	Status status, nothing;
	Request s, r;

	fill(out, bytes, rank);
	s = request(MPIR_SEND, right, 1, out, bytes, !first);
	CHECK(A_post_send(&s) == 0);
	CHECK(!first || s.completed);
	r = request(MPIR_RECV, left, 1, in, bytes, 0);
	A_post_recv(&r, &complete);
	CHECK(complete && r.completed);
	for (int twice = 0; twice < 2; twice++) { /* T6 */
		CHECK(A_complete_recv(&r, &status) == 0);
		A_complete_send(&s, &status);
	}
	CHECK(status.count == bytes && status.source == left && status.tag == 1);
	memset(&nothing, 0x5a, sizeof(nothing));
	status = nothing;
	A_complete_send(&s, &status);
	CHECK(memcmp(&status, &nothing, sizeof(status)) == 0);
	CHECK(is_filled(in, bytes, left));
	CHECK(strcmp(s.calls, "M") == 0 && strcmp(r.calls, "m") == 0);
	A_free_send_handle(&s);
	A_free_recv_handle(&r);
}

/* S2, S4, S7: all modes, posted before or after; with T2 and T6. */
static void nonblocking(int bytes, int mode, int early)
{
	static char out[LONG], in[LONG];
	int complete;
	Status status;
	Request s, r, user;

	fill(out, bytes, rank + mode);
	memset(in, 0, sizeof(in));
	user = request(MPIR_SEND, right, 2, out, bytes, 1);
	user.mode = mode;
	memcpy(&s, &user, sizeof(s)); /* T2 */
	A_free_send_handle(&user);
	r = request(MPIR_RECV, A_ANY_SOURCE, A_ANY_TAG, in, LONG, 1);
	if (early || mode == MPIR_READY) {
		A_post_recv(&r, &complete);
		together();
	}
	CHECK(A_post_send(&s) == 0);
	if (!early && mode != MPIR_READY) {
		if (mode == MPIR_SYNCHRONOUS)
			for (int i = 0; i < 20; i++)
				CHECK(!A_test_send(&s));
		together(); /* nobody receives before all have looked */
		A_probe(2, left, context, &status);
		CHECK(status.count == bytes && status.source == left && status.tag == 2);
		A_post_recv(&r, &complete);
	}
	while (!A_test_recv(&r))
		;
	A_complete_send(&s, &status);
	CHECK(A_complete_recv(&r, &status) == 0);
	CHECK(status.count == bytes && status.source == left && status.tag == 2);
	CHECK(s.completed && is_filled(in, bytes, left + mode) && in[bytes] == 0);
	A_free_send_handle(&s);
	A_free_recv_handle(&r);
	together();
}

/* Strided data, through D_get_ and D_put_. The API cuts off what it has no room for. */
static void strided(int bytes, int room, int early)
{
	static char out[3 * LONG], in[3 * LONG], packed[LONG];
	int complete;
	Status status;
	Request s = request(MPIR_SEND, right, 3, out, bytes, 1);
	Request r = request(MPIR_RECV, left, 3, in, room, 1);

	memset(in, 1, sizeof(in));
	fill(packed, bytes, rank);
	s.piece = r.piece = 7;
	s.stride = 16;
	r.stride = 9;
	A_alloc_send_handle(&s);
	A_alloc_recv_handle(&r);
	A_set_send_is_nonblocking(&s, 1);
	A_set_recv_is_nonblocking(&r, 1);
	for (int i = 0; i < bytes; i++)
		out[i / 7 * 16 + i % 7] = packed[i];
	if (early)
		A_post_recv(&r, &complete);
	A_post_send(&s);
	if (!early)
		A_post_recv(&r, &complete);
	A_complete_recv(&r, &status);
	A_complete_send(&s, &status);
	CHECK(r.dev_rhandle.delivered == bytes && r.told == bytes);
	CHECK(r.dev_rhandle.error == 0);
	for (int i = 0; i < bytes && i < room; i++)
		CHECK(in[i / 7 * 9 + i % 7] == (char)(left + i * 7 + (i >> 8)));
	CHECK(strcmp(s.calls, bytes ? "TGM" : "TM") == 0);
	CHECK(strcmp(r.calls, bytes ? "tpm" : "tm") == 0);
	if (bytes > room)
		bytes = room;
	CHECK(in[7] == 1 && in[bytes / 7 * 9 + bytes % 7] == 1);
	together();
}

/* T13, T7: the error is the receive's; what follows is whole. */
static void truncated(int bytes, int early)
{
	static char out[LONG], in[64];
	int complete;
	Status status;
	Request s = request(MPIR_SEND, right, 4, out, bytes, 1);
	Request r = request(MPIR_RECV, left, 4, in, 20, 1);

	fill(out, bytes, rank);
	memset(in, 0, sizeof(in));
	if (early)
		A_post_recv(&r, &complete);
	A_post_send(&s);
	if (!early)
		A_post_recv(&r, &complete);
	CHECK(A_complete_recv(&r, &status) == ADI_TRUNCATED);
	A_complete_send(&s, &status);
	CHECK(r.dev_rhandle.delivered == 20 && is_filled(in, 20, left) && in[20] == 0);
	blocking(100);
}

/* T5: no process. */
static void nobody(void)
{
	int complete = 0;
	Status status;
	Request s = request(MPIR_SEND, -1, 5, NULL, 0, 1);
	Request r = request(MPIR_RECV, -1, 5, NULL, 0, 1);

	A_alloc_send_handle(&s);
	A_alloc_recv_handle(&r);
	A_post_send(&s);
	A_post_recv(&r, &complete);
	CHECK(s.completed && complete && A_test_send(&s) && A_test_recv(&r));
	A_complete_send(&s, &status);
	A_complete_recv(&r, &status);
	CHECK(status.count == 0);
}

/* T3: Requests are freed, and their memory used again, while their operations are under way. T9,
 * T14, and the order of long and short messages. */
static void detached(void)
{
	static char out[8][LONG], in[8][LONG];
	Request *s = malloc(8 * sizeof(*s)), r[8];
	int complete;
	Status status;

	for (int i = 0; i < 8; i++) {
		int bytes = i % 2 ? 10 + i : LONG - i;

		fill(out[i], bytes, rank + i);
		s[i] = request(MPIR_SEND, right, 6, out[i], bytes, 1);
		s[i].mode = i < 4 ? MPIR_STANDARD : MPIR_SYNCHRONOUS;
		A_post_send(&s[i]);
	}
	for (int i = 0; i < 8; i++)
		A_free_send_handle(&s[i]);
	memset(s, 0x77, 8 * sizeof(*s));
	free(s);
	for (int i = 0; i < 8; i++) {
		r[i] = request(MPIR_RECV, left, 6, in[i], LONG, 1);
		A_post_recv(&r[i], &complete);
	}
	for (int i = 7; i >= 0; i--) {
		A_complete_recv(&r[i], &status);
		CHECK(status.count == (i % 2 ? 10 + i : LONG - i));
		CHECK(is_filled(in[i], status.count, left + i));
	}
	together();
}

/* S9: one Request, again and again; T10. */
static void persistent(void)
{
	char out[32], in[32];
	int complete;
	Status status;
	Request s = request(MPIR_SEND, right, 7, NULL, 0, 1);
	Request r = request(MPIR_RECV, left, 7, NULL, 0, 1);

	for (int i = 0; i < 20; i++) {
		fill(out, sizeof(out), rank + i);
		s.completed = r.completed = 0;
		r.source = i % 2 ? A_ANY_SOURCE : left;
		r.tag = 7;
		A_set_send_contig_buffer(&s, i ? out : NULL, i ? 32 : 0);
		A_set_recv_contig_buffer(&r, in, sizeof(in));
		A_post_recv(&r, &complete);
		A_post_send(&s);
		A_complete_recv(&r, &status);
		A_complete_send(&s, &status);
		CHECK(status.count == (i ? 32 : 0) && status.source == left);
		CHECK(is_filled(in, status.count, left + i));
	}
	A_free_send_handle(&s);
	A_free_recv_handle(&r);
}

/* S8, and A_cancel. */
static void exchange(void)
{
	char out[8] = "abcdefg", in[8] = "";
	int complete, found;
	Status status;
	Request s = request(MPIR_SEND, right, 8, out, 8, 1);
	Request r = request(MPIR_RECV, left, 8, in, 8, 1);

	for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
		memset(in, 0, sizeof(in));
		s = request(MPIR_SEND, right, 8, out, 8, nonblocking);
		r = request(MPIR_RECV, left, 8, in, 8, nonblocking);
		CHECK(A_execute_send_recv(&r, &s, &status) == 0);
		CHECK(strcmp(in, out) == 0 && status.count == 8 && s.completed && r.completed);
		/* What has its message is not taken back, and a send never is. */
		CHECK(!A_cancel(&r) && !A_cancel(&s) && r.tag == 8);
	}
	r = request(MPIR_RECV, left, 8, in, 8, 1);
	A_post_recv(&r, &complete);
	CHECK(!complete && A_cancel(&r) && r.completed && r.tag == A_TAG_CANCELLED);
	CHECK(A_complete_recv(&r, &status) == 0 && status.tag == A_TAG_CANCELLED);
	r = request(MPIR_RECV, left, 8, in, 8, 1); /* without a contiguous buffer */
	A_alloc_recv_handle(&r);
	A_set_recv_is_nonblocking(&r, 1);
	A_post_recv(&r, &complete);
	CHECK(!complete && A_cancel(&r) && r.completed);
	A_iprobe(8, left, context, &found, &status);
	CHECK(!found);
	A_iprobe(A_ANY_TAG, A_ANY_SOURCE, context, &found, &status);
	CHECK(!found);
	together();
}

/* Contexts keep messages apart; the oldest match wins whatever wildcards are involved. */
static void matching(void)
{
	enum { COUNT = 40 };
	int out[COUNT], in, complete;
	Status status;

	for (int i = 0; i < COUNT; i++) {
		Request s;

		out[i] = i;
		context = 4 + i % 2;
		s = request(MPIR_SEND, right, i % 5, &out[i], sizeof(int), 0);
		A_post_send(&s);
	}
	for (int i = 0; i < COUNT; i++) {
		int tag = i % 4 ? i % 5 : A_ANY_TAG;
		Request r;

		context = 4 + i % 2;
		r = request(MPIR_RECV, i % 3 ? A_ANY_SOURCE : left, tag, &in, sizeof(in), 0);
		A_post_recv(&r, &complete);
		A_complete_recv(&r, &status);
		CHECK(in == i && status.tag == i % 5 && status.source == left);
	}
	context = 4;
	together();
}

/* Data comes into the place of a receive while the program makes no call. */
static void computing(void)
{
	static char out[LONG];
	static volatile char in[LONG];
	double start = A_WTIME();
	int complete;
	Status status;
	Request r = request(MPIR_RECV, left, 9, (void *)(uintptr_t)in, LONG, 1);
	Request s = request(MPIR_SEND, right, 9, out, LONG, 1);

	memset(out, rank + 1, sizeof(out));
	A_post_recv(&r, &complete);
	together();
	A_post_send(&s);
	while (in[LONG - 1] != (char)(left + 1))
		CHECK(A_WTIME() < start + 60);
	CHECK(A_complete_recv(&r, &status) == 0 && status.count == LONG);
	A_complete_send(&s, &status);
	together();
}

/* A blocking check returns when a message arrives, whether a receive has asked for it or not. */
static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* How often this thread has gone to sleep. */
static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/* A program that looks for a message now and then, and computes: looks do not wait. */
static void looking(void)
{
	long before = sleeps();
	Status status;
	int found;

	for (int i = 0; i < LOOKS; i++) {
		long long until = now() + LOOK_TIME;

		while (now() < until)
			continue;
		A_iprobe(60, left, context, &found, &status);
		CHECK(!found);
	}
	CHECK(sleeps() - before < LOOKS / 4);
	together();
}

static void checked(void)
{
	char out = 1, in;
	int complete, found = 0;
	Status status;

	for (int asked = 0; asked < 2; asked++) {
		Request r = request(MPIR_RECV, left, 10, &in, 1, 1);
		Request s = request(MPIR_SEND, right, 10, &out, 1, 1);

		if (asked)
			A_post_recv(&r, &complete);
		A_post_send(&s);
		while (asked ? !r.completed : !found) {
			A_check_device(1);
			A_iprobe(10, left, context, &found, &status);
		}
		if (!asked)
			A_post_recv(&r, &complete);
		A_complete_recv(&r, &status);
		A_complete_send(&s, &status);
		together();
	}
}

#ifdef A_SHOW_UNEXPECTED
/* Without those of together(), which a neighbour may have come to. */
static int unexpected_count(void)
{
	int count = 0;

	for (int i = 0; i < d_unexpected.count; i++)
		count += d_unexpected.first[i]->context_id == context;
	return count;
}

/* The API's queue shows what is here, in order, until it is received or its receive is freed. */
static void shown(void)
{
	static char out[4][LONG], in[4][LONG];
	static const int lengths[] = {0, 10, LONG, 5000}, order[] = {2, 0, 3, 1};
	Request s[4], r[4], *oldest;
	int complete, found;
	Status status;

	for (int i = 0; i < 4; i++) {
		fill(out[i], lengths[i], rank + i);
		s[i] = request(MPIR_SEND, right, 20 + i, out[i], lengths[i], 1);
		s[i].mode = i == 3 ? MPIR_SYNCHRONOUS : MPIR_STANDARD;
		A_post_send(&s[i]);
	}
	while (unexpected_count() < 4)
		A_check_device(1);
	for (int i = 0; i < 4; i++) {
		CHECK(d_unexpected.first[i]->tag == 20 + i &&
			d_unexpected.first[i]->source == left);
		CHECK(d_unexpected.first[i]->dev_rhandle.bytes_as_contig == lengths[i]);
	}
	CHECK(!s[3].completed);
	together();
	for (int i = 0; i < 4; i++) {
		int n = order[i];

		MPIR_search_unexpected_queue(left, A_ANY_TAG, context, &found, 0, &oldest);
		CHECK(found && oldest == d_unexpected.first[0] && unexpected_count() == 4 - i);
		A_probe(20 + n, A_ANY_SOURCE, context, &status);
		CHECK(status.count == lengths[n] && status.source == left);
		r[n] = request(MPIR_RECV, A_ANY_SOURCE, 20 + n, in[n], LONG, 1);
		A_post_recv(&r[n], &complete);
		if (n == 2) { /* T3 */
			A_free_recv_handle(&r[n]);
			while (unexpected_count() > 3 - i)
				A_check_device(0);
			continue;
		}
		CHECK(A_complete_recv(&r[n], &status) == 0 && status.count == lengths[n]);
		CHECK(is_filled(in[n], lengths[n], left + n) && unexpected_count() == 3 - i);
		MPIR_search_unexpected_queue(left, 20 + n, context, &found, 1, &oldest);
		CHECK(!found);
	}
	for (int i = 0; i < 4; i++)
		A_complete_send(&s[i], &status);
	together();
	/* What a receive was posted for is never shown. */
	s[0] = request(MPIR_SEND, right, 20, out[1], 10, 1);
	r[0] = request(MPIR_RECV, left, 20, in[0], LONG, 1);
	A_post_recv(&r[0], &complete);
	together();
	CHECK(unexpected_count() == 0);
	A_post_send(&s[0]);
	A_complete_recv(&r[0], &status);
	A_complete_send(&s[0], &status);
	CHECK(unexpected_count() == 0);
}
#endif

static void information(void)
{
	char name[A_MAX_MACHINE_NAME_LEN], four[4] = "xyz";
	double then = A_WTIME();
	int high;

	A_tag_range(&high);
	CHECK(high >= 32767);
	A_NODE_NAME(name, sizeof(name));
	A_machine_name(four, 3);
	CHECK(strlen(name) > 0 && strlen(four) <= 2 && strncmp(four, name, strlen(four)) == 0);
	CHECK(A_WTICK() > 0 && A_WTICK() < 1e-3);
	usleep(2000);
	CHECK(A_WTIME() >= then + 0.002);
	A_check_device(0);
}

/* Nobody looks for frames then but A_ calls. */
static int computes_inline(void)
{
	const char *progress = getenv("PTL_PROGRESS");

	return progress && strcmp(progress, "inline") == 0;
}

/* A rank that only computes stops no standard sends of messages that there is memory for: rank 0
 * sends, and rank 1 computes and then looks for the last. */
static void burst(int count)
{
	static char data[1000];
	Status status;

	if (rank > 1)
		return;
	alarm(BURST_TIME);
	if (rank == 1) {
		sleep(BURST_PAUSE);
		A_probe(61, 0, context, &status);
		CHECK(status.count == sizeof(data));
	}
	for (int i = 0; i < count; i++) {
		const int tag = i == count - 1 ? 61 : 60;
		Request r = request(
			rank == 0 ? MPIR_SEND : MPIR_RECV, !rank, tag, data, sizeof(data), 0);
		int complete;

		if (rank == 0) {
			A_post_send(&r);
			A_complete_send(&r, &status);
		} else {
			A_post_recv(&r, &complete);
			A_complete_recv(&r, &status);
		}
	}
}

static void special(const char *what, const char *value)
{
	static char lost[LONG];
	char byte;
	int complete;
	Request r = request(MPIR_RECV, left, 50, &byte, 1, 0);

	if (strcmp(what, "burst") == 0) {
		burst(atoi(value));
		return;
	}
	if (strcmp(what, "twice") == 0)
		A_INIT(NULL, NULL);
	if (strcmp(what, "abort") == 0 && rank == size - 1)
		A_ABORT(atoi(value));
	if (strcmp(what, "die") == 0 && rank == size - 1)
		raise(SIGKILL);
	if (strcmp(what, "end") == 0) { /* what was completed arrives although the sender ends */
		Request s = request(MPIR_SEND, right, 51, &byte, 1, 0);

		r.tag = 51;
		A_post_send(&s);
		if (rank % 2)
			usleep(300000);
	}
	if (strcmp(what, "lose") == 0) { /* nobody receives what is longer than a copy */
		Request s = request(MPIR_SEND, right, 52, lost, sizeof(lost), 1);

		A_post_send(&s);
		A_free_send_handle(&s);
		return;
	}
	A_post_recv(&r, &complete);
}

int main(int argc, char **argv)
{
	static const int lengths[] = {0, 1, 1000, 4096, 4097, LONG - 1};

	if (argc > 1 && strcmp(argv[1], "early") == 0) {
		Request s = request(MPIR_SEND, 0, 1, NULL, 0, 1);

		A_post_send(&s);
	}
	A_INIT(&argc, &argv);
	A_mysize(&size);
	A_myrank(&rank);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	if (argc > 1) {
		special(argv[1], argc > 2 ? argv[2] : "");
		A_END();
		return 0;
	}
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		blocking(lengths[i]);
		for (int n = 0; n < 6; n++)
			nonblocking(lengths[i], n / 2, n % 2);
		for (int early = 0; early < 2; early++) {
			strided(lengths[i], lengths[i] + 10, early);
			strided(lengths[i], lengths[i] / 2, early);
			if (lengths[i] > 20)
				truncated(lengths[i], early);
		}
	}
	nobody();
	detached();
	persistent();
	exchange();
	matching();
	checked();
	if (computes_inline())
		looking(); /* otherwise a call may wait for the helper, which has the engine */
	else
		computing();
#ifdef A_SHOW_UNEXPECTED
	shown();
#endif
	information();
	A_END();
	return 0;
}
