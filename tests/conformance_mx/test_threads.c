/* SPDX-License-Identifier: BSD-3-Clause */
/* test_threads.c - threads that block in calls, wake each other, and share an endpoint.
 *
 * Covers: lib/mx/completion.c, lib/mx/endpoint.c. */
#include "../nap.h"
#include "../sanitized.h"
#include "pair.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *blocks_in_wait(void *data)
{
	mx_request_t request = receive_from(data, 1, 0x77, UINT64_MAX);
	mx_status_t status;
	uint32_t result = 9;

	assert_ok(mx_wait(other, &request, MX_INFINITE, &status, &result));
	return result == 0 ? request : NULL;
}

static void *blocks_in_probe(void *data)
{
	mx_status_t status;
	uint32_t result = 9;

	(void)data;
	assert_ok(mx_probe(other, MX_INFINITE, 0x78, UINT64_MAX, &status, &result));
	return (void *)(uintptr_t)(result + 1);
}

static void *blocks_in_peek(void *data)
{
	mx_request_t request;
	uint32_t result = 9;

	(void)data;
	assert_ok(mx_peek(other, MX_INFINITE, &request, &result));
	return (void *)(uintptr_t)(result + 1);
}

static void *blocks_in_wait_any(void *data)
{
	mx_status_t status;
	uint32_t result = 9;

	(void)data;
	assert_ok(mx_wait_any(other, MX_INFINITE, 0x79, UINT64_MAX, &status, &result));
	return (void *)(uintptr_t)(result + 1);
}

/* A send that nobody receives; other sends it to itself. */
static void *blocks_in_buffered(void *data)
{
	mx_endpoint_addr_t own;
	mx_segment_t segment = {calloc(1, EAGER + 1), EAGER + 1};
	mx_request_t request, receive;
	uint32_t result = 9;

	(void)data;
	assert_ok(mx_get_endpoint_addr(other, &own));
	assert_ok(mx_isend(other, &segment, 1, own, 0x7a, NULL, &request));
	assert_ok(mx_buffered(other, &request, MX_INFINITE, &result));
	assert_ok(mx_irecv(other, NULL, 0, 0x7a, UINT64_MAX, NULL, &receive));
	assert_int_equal(wait_for(other, &receive).code, MX_STATUS_TRUNCATED);
	assert_int_equal(wait_for(other, &request).code, MX_STATUS_SUCCESS);
	free(segment.segment_ptr);
	return (void *)(uintptr_t)(result + 1);
}

static void pause_for(long milliseconds)
{
	const struct timespec time = {.tv_nsec = milliseconds * 1000000};

	nanosleep(&time, NULL);
}

/* A busy CPU may have kept the thread from blocking by then: then it is woken again. */
static void *wake_and_join(pthread_t thread)
{
	struct timespec end;
	void *ended;

	for (;;) {
		assert_int_equal(clock_gettime(CLOCK_REALTIME, &end), 0);
		end.tv_sec += 2;
		if (pthread_timedjoin_np(thread, &ended, &end) == 0)
			return ended;
		assert_ok(mx_wakeup(other));
	}
}

static void test_wakeup(void **state)
{
	void *(*const bodies[])(void *) = {
		blocks_in_wait, blocks_in_probe, blocks_in_peek, blocks_in_wait_any};
	pthread_t threads[COUNT(bodies)];
	mx_request_t request;
	unsigned char byte;
	uint32_t result;

	(void)state;
	for (unsigned i = 0; i < COUNT(bodies); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, bodies[i], &byte), 0);
	pause_for(100);
	assert_ok(mx_wakeup(other));
	request = wake_and_join(threads[0]);
	assert_non_null(request);
	for (unsigned i = 1; i < COUNT(bodies); i++)
		assert_ptr_equal(wake_and_join(threads[i]), (void *)1);
	assert_ok(mx_cancel(other, &request, &result));
	assert_int_equal(result, 1);
	/* By itself: its requests end, which others would see. */
	assert_int_equal(pthread_create(&threads[0], NULL, blocks_in_buffered, NULL), 0);
	pause_for(100);
	assert_ok(mx_wakeup(other));
	assert_ptr_equal(wake_and_join(threads[0]), (void *)1);
}

/* A wakeup is not remembered for those who block later. */
static void test_wakeup_is_not_remembered(void **state)
{
	unsigned char byte;
	mx_request_t request = receive_from(&byte, 1, 0x77, UINT64_MAX), peeked;
	struct timespec begin, end;
	mx_status_t status;
	uint32_t result = 9;

	(void)state;
	assert_ok(mx_wakeup(other));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_ok(mx_wait(other, &request, 20, &status, &result));
	assert_int_equal(result, 0);
	assert_ok(mx_peek(other, 20, &peeked, &result));
	assert_int_equal(result, 0);
	assert_ok(mx_probe(other, 20, 0x78, UINT64_MAX, &status, &result));
	assert_int_equal(result, 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec >=
		    60 * 1000000);
	assert_ok(mx_cancel(other, &request, &result));
}

static atomic_uint returned;

enum { CROWD = 4 };

/* The threads that probe. */
static atomic_int probers[CROWD];
static atomic_uint probers_begun;

/* A thread that begins to probe after a message has come finds it at once. One that sleeps may wait
 * for the endpoint's lock, whose holder may sleep until the poll core answers: so this thread takes
 * the lock, too, and a thread that waits for it wakes. */
static void probers_await(void)
{
	mx_status_t status;
	uint32_t result;

	for (unsigned i = 0; i < CROWD; i++)
		for (unsigned slept = 0; slept < 20;) {
			int prober = atomic_load(&probers[i]);

			pause_for(1);
			slept += prober != 0 && thread_sleeps(prober);
			assert_ok(mx_iprobe(other, 0x78, UINT64_MAX, &status, &result));
			assert_int_equal(result, 0);
		}
}

static void *probes_once(void *data)
{
	mx_status_t *status = data;
	uint32_t result = 0;

	atomic_store(&probers[atomic_fetch_add(&probers_begun, 1)], gettid());
	assert_ok(mx_probe(other, MX_INFINITE, 0x78, UINT64_MAX, status, &result));
	atomic_fetch_add(&returned, 1);
	return (void *)(uintptr_t)(result + 1);
}

static void *peeks_once(void *data)
{
	mx_request_t *request = data;
	uint32_t result = 0;

	assert_ok(mx_peek(other, MX_INFINITE, request, &result));
	atomic_fetch_add(&returned, 1);
	return (void *)(uintptr_t)(result + 1);
}

static void returned_await(unsigned count)
{
	for (unsigned i = 0; i < TIMEOUT && atomic_load(&returned) < count; i++)
		pause_for(1);
	assert_true(atomic_load(&returned) >= count);
}

/* Of the threads that probe one returns for each message, which stays there for one receive, and
 * for whoever probes then. */
static void test_threads_that_probe(void **state)
{
	mx_status_t statuses[CROWD], status;
	pthread_t threads[CROWD];
	mx_request_t send, receive;
	uint32_t result;
	unsigned found = 0;
	char got[8];

	(void)state;
	atomic_store(&returned, 0);
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, probes_once, &statuses[i]), 0);
	probers_await();
	send = send_to("crowd", 6, 0x78, true);
	returned_await(1);
	pause_for(50);
	assert_int_equal(atomic_load(&returned), 1);
	assert_ok(mx_probe(other, TIMEOUT, 0x78, UINT64_MAX, &status, &result));
	assert_int_equal(result, 1);
	/* The first message is not received yet. */
	for (unsigned i = 2; i < CROWD; i++) {
		mx_request_t further = send_to("crowd", 6, 0x78, false);

		assert_int_equal(wait_for(one, &further).code, MX_STATUS_SUCCESS);
		returned_await(i);
		pause_for(50);
		assert_int_equal(atomic_load(&returned), i);
	}
	for (unsigned i = 1; i < CROWD; i++) {
		receive = receive_from(got, sizeof(got), 0x78, UINT64_MAX);
		assert_int_equal(wait_for(other, &receive).code, MX_STATUS_SUCCESS);
	}
	assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
	assert_ok(mx_wakeup(other));
	for (unsigned i = 0; i < CROWD; i++)
		if (wake_and_join(threads[i]) == (void *)2) {
			assert_int_equal(statuses[i].match_info, 0x78);
			assert_int_equal(statuses[i].msg_length, 6);
			found++;
		}
	assert_int_equal(found, CROWD - 1);
}

/* Threads peek for one completion: at least one returns with it, and a test takes it. */
static void test_threads_that_peek(void **state)
{
	mx_request_t requests[CROWD] = {NULL}, send, receive;
	pthread_t threads[CROWD];
	mx_status_t status;
	unsigned found = 0;
	uint32_t result;
	char got[8];

	(void)state;
	atomic_store(&returned, 0);
	receive = receive_from(got, sizeof(got), 0x78, UINT64_MAX);
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, peeks_once, &requests[i]), 0);
	pause_for(50);
	send = send_to("crowd", 6, 0x78, true);
	assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
	returned_await(1);
	assert_ok(mx_wakeup(other));
	for (unsigned i = 0; i < CROWD; i++)
		if (wake_and_join(threads[i]) == (void *)2) {
			assert_ptr_equal(requests[i], receive);
			found++;
		}
	assert_true(found >= 1);
	assert_ok(mx_test(other, &receive, &status, &result));
	assert_int_equal(result, 1);
	assert_string_equal(got, "crowd");
}

static void *waits(void *data)
{
	mx_request_t *request = data;
	mx_status_t status;
	uint32_t result;

	assert_ok(mx_wait(other, request, TIMEOUT, &status, &result));
	return (void *)(uintptr_t)result;
}

/* Four threads wait for a receive each; one of them hears of all. */
static void test_threads(void **state)
{
	unsigned char bytes[4];
	mx_request_t receives[4], send;
	pthread_t threads[4];
	void *ended;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		receives[i] = receive_from(bytes + i, 1, i, UINT64_MAX);
		assert_int_equal(pthread_create(&threads[i], NULL, waits, &receives[i]), 0);
	}
	pause_for(20);
	for (unsigned i = 0; i < 4; i++) {
		send = send_to("w", 1, i, false);
		wait_for(one, &send);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &ended), 0);
		assert_ptr_equal(ended, (void *)1);
	}
}

static void *waits_in_vain(void *data)
{
	mx_request_t request = *(mx_request_t *)data;
	mx_status_t status;
	uint32_t result = 0;
	mx_return_t code;

	do /* it may be woken before the message is here */
		code = mx_wait(other, &request, TIMEOUT, &status, &result);
	while (code == MX_SUCCESS && result == 0);
	return (void *)(uintptr_t)(code == MX_BAD_REQUEST && result == 0);
}

/* A thread waits for a request that another one takes from it, in three ways. The waiter must not
 * take it, too, or the next request that gets its place. */
static void a_request_that_two_threads_complete_is_completed_once(void **state)
{
	unsigned char bytes[3];
	mx_request_t taken, again[2], send;
	mx_status_t status;
	pthread_t thread;
	uint32_t result;
	void *ended;

	(void)state;
	mx_set_error_handler(MX_ERRORS_RETURN);
	for (unsigned way = 0; way < 3; way++) {
		mx_request_t waited = taken = receive_from(bytes, 1, 0x99, UINT64_MAX);

		assert_int_equal(pthread_create(&thread, NULL, waits_in_vain, &waited), 0);
		pause_for(50);
		if (way == 0) {
			assert_ok(mx_cancel(other, &taken, &result));
			assert_int_equal(result, 1);
		} else {
			if (way == 1)
				assert_ok(mx_forget(other, &taken));
			send = send_to("x", 1, 0x99, false);
			wait_for(one, &send);
			while (way == 2 && mx_test(other, &taken, &status, &result) == MX_SUCCESS &&
				result == 0)
				;
		}
		/* These get the place of the first. */
		for (unsigned i = 0; i < 2; i++)
			again[i] = receive_from(bytes + i, 1, 0x100 + i, UINT64_MAX);
		assert_ok(mx_wakeup(other));
		assert_int_equal(pthread_join(thread, &ended), 0);
		for (unsigned i = 0; i < 2; i++) {
			send = send_to(&"yz"[i], 1, 0x100 + i, false);
			wait_for(one, &send);
			wait_for(other, &again[i]);
			assert_int_equal(bytes[i], "yz"[i]);
		}
		/* The waiter may have been the first to take the message of the third way. */
		assert_true(way == 2 || ended);
	}
}

enum { THREADS = 4, TURNS = 150, LONGEST = 100000 };

struct turn {
	unsigned thread, number;
	uint64_t bits;
	uint32_t length;
	unsigned char *sent, *got;
};

static mx_status_t wait_in_turn(
	const struct turn *turn, mx_endpoint_t endpoint, mx_request_t *request)
{
	uint32_t result = 0;
	mx_status_t status;

	switch (turn->number % 3) {
	case 0:
		assert_ok(mx_wait(endpoint, request, TIMEOUT, &status, &result));
		break;
	case 1:
		assert_ok(mx_wait_any(
			endpoint, TIMEOUT, turn->bits, MX_MATCH_MASK_NONE, &status, &result));
		break;
	default:
		while (result == 0)
			assert_ok(mx_test(endpoint, request, &status, &result));
	}
	assert_int_equal(result, 1);
	assert_int_equal(status.code, MX_STATUS_SUCCESS);
	assert_int_equal(status.match_info, turn->bits);
	return status;
}

/* A message from one endpoint to the other, and a receive that is taken back. */
static void turn_take(const struct turn *turn)
{
	bool early = turn->number % 2 == 0;
	mx_request_t receive = NULL, send, never;
	mx_status_t status;
	uint32_t result;

	fill(turn->sent, turn->length, turn->thread + turn->number);
	if (early)
		receive = receive_from(turn->got, LONGEST, turn->bits, MX_MATCH_MASK_NONE);
	never = receive_from(turn->got, 1, ~turn->bits, MX_MATCH_MASK_NONE);
	send = send_to(turn->sent, turn->length, turn->bits, turn->number % 5 == 0);
	if (!early) {
		result = 0;
		while (result == 0)
			assert_ok(
				mx_iprobe(other, turn->bits, MX_MATCH_MASK_NONE, &status, &result));
		assert_int_equal(status.msg_length, turn->length);
		receive = receive_from(turn->got, LONGEST, turn->bits, MX_MATCH_MASK_NONE);
	}
	status = wait_in_turn(turn, other, &receive);
	assert_int_equal(status.xfer_length, turn->length);
	assert_memory_equal(turn->got, turn->sent, turn->length);
	wait_in_turn(turn, one, &send);
	assert_ok(mx_cancel(other, &never, &result));
	assert_int_equal(result, 1);
}

static void *takes_turns(void *number)
{
	static const uint32_t lengths[] = {0, 1, 100, EAGER, EAGER + 1, LONGEST};
	struct turn turn = {.thread = (unsigned)(uintptr_t)number,
		.sent = malloc(LONGEST),
		.got = malloc(LONGEST)};

	for (; turn.number < TURNS; turn.number++) {
		turn.bits = (uint64_t)turn.thread << 32 | turn.number;
		turn.length = lengths[(turn.thread + turn.number) % COUNT(lengths)];
		turn_take(&turn);
	}
	free(turn.sent);
	free(turn.got);
	return NULL;
}

/* Four threads send, receive, test, wait, probe and cancel on the same two endpoints. */
static void test_four_threads(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, takes_turns, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* Larger by hand: test_threads SMALL LARGE. */
static unsigned small = 5000, large = 4000;

/* The sender's calls let go what waits at the sender for the receiver's credit. */
static void *floods(void *data)
{
	mx_request_t *sends = malloc((small + large) * sizeof(*sends));

	for (unsigned i = 0; i < small + large; i++)
		sends[i] = send_to(data, i < large ? EAGER : 1, i, false);
	for (unsigned i = 0; i < small + large; i++)
		assert_int_equal(wait_for(one, &sends[i]).code, MX_STATUS_SUCCESS);
	free(sends);
	return NULL;
}

#define FLOOD_BYTES   (UINT64_C(80) << 20) /* of what both ends keep, SMALL_MEMORY each */
#define REQUEST_BYTES UINT64_C(1024)

/* More messages than a share of headers, and than the blocks hold. */
static void test_flood(void **state)
{
	unsigned char *sent = calloc(1, EAGER), *got = calloc(1, EAGER);
	uint64_t before = resident();
	pthread_t sender;

	(void)state;
	assert_int_equal(pthread_create(&sender, NULL, floods, sent), 0);
	pause_for(200);
	for (unsigned i = 0; i < small + large; i++) {
		mx_request_t receive = receive_from(got, EAGER, 0, 0);
		mx_status_t status = wait_for(other, &receive);

		assert_int_equal(status.match_info, i);
		assert_int_equal(status.msg_length, i < large ? EAGER : 1);
	}
	assert_int_equal(pthread_join(sender, NULL), 0);
	/* Requests of the sender's, blocks, slots; not a copy of each message. (A sanitizer has
	 * memory of its own.) */
	assert_true(
		SANITIZED || resident() < before + FLOOD_BYTES + (small + large) * REQUEST_BYTES);
	free(sent);
	free(got);
}

int main(int count, char **words)
{
#define with_both(test) cmocka_unit_test_setup_teardown(test, open_both, close_both)
	const struct CMUnitTest tests[] = {
		with_both(test_wakeup),
		with_both(test_wakeup_is_not_remembered),
		with_both(test_threads_that_probe),
		with_both(test_threads_that_peek),
		with_both(test_threads),
		with_both(a_request_that_two_threads_complete_is_completed_once),
		with_both(test_four_threads),
		cmocka_unit_test_setup_teardown(test_flood, open_both_small, close_both),
	};

	if (count == 3) {
		small = (unsigned)strtoul(words[1], NULL, 10);
		large = (unsigned)strtoul(words[2], NULL, 10);
	}
	return cmocka_run_group_tests(tests, group_open, group_close);
}
