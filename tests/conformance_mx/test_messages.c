/* SPDX-License-Identifier: BSD-3-Clause */
/* test_messages.c - sends, receives and their ends, between endpoints of one process.
 *
 * Covers: lib/mx/request.c, lib/mx/completion.c. */
#include "../nap.h"
#include "pair.h"

#include <stdlib.h>
#include <time.h>

/* Larger by hand: test_messages TIMES. */
static unsigned times = 1;

static void pause_for(long milliseconds)
{
	const struct timespec time = {.tv_nsec = milliseconds * 1000000};

	nanosleep(&time, NULL);
}

static void test_lengths(void **state)
{
	static const uint32_t lengths[] = {0, 1, 1024, EAGER - 1, EAGER, EAGER + 1, 1 << 20};
	unsigned char *sent = malloc(1 << 20), *got = malloc((1 << 20) + 1);

	(void)state;
	for (unsigned posted = 0; posted < 2; posted++)
		for (unsigned i = 0; i < COUNT(lengths); i++) {
			uint32_t length = lengths[i];
			mx_request_t send, receive = NULL;
			mx_status_t status;

			fill(sent, length, i);
			memset(got, 0xee, (1 << 20) + 1);
			if (posted)
				receive = receive_from(got, length, i, UINT64_MAX);
			send = send_to(sent, length, i, false);
			if (length <= EAGER)
				assert_true(ends_within(one, &send, 1));
			else if (!posted)
				assert_false(ends_within(one, &send, 5));
			if (!posted)
				receive = receive_from(got, length, i, UINT64_MAX);
			status = wait_for(other, &receive);
			assert_int_equal(status.code, MX_STATUS_SUCCESS);
			assert_int_equal(status.msg_length, length);
			assert_int_equal(status.xfer_length, length);
			assert_int_equal(status.match_info, i);
			assert_ptr_equal(status.context, got);
			assert_memory_equal(sent, got, length);
			assert_int_equal(got[length], 0xee);
			if (send)
				assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
		}
	free(sent);
	free(got);
}

/* Messages that are received as they come go through the same memory again and again. */
static void test_memory_is_used_again(void **state)
{
	char sent[8] = "again", got[8];
	uint64_t before = 0;

	(void)state;
	for (unsigned i = 0; i < 60000; i++) {
		mx_request_t send, receive;

		if (i == 1000) /* frames are made as they are needed */
			before = resident();
		receive = receive_from(got, sizeof(got), 1, UINT64_MAX);
		send = send_to(sent, sizeof(sent), 1, false);
		assert_int_equal(wait_for(other, &receive).code, MX_STATUS_SUCCESS);
		assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
	}
	assert_true(resident() < before + (4 << 20));
}

/* A short message is with the receiver, so the first test after the receive finds it complete. */
static void test_first_test(void **state)
{
	static const uint32_t lengths[] = {0, 1, 1024, EAGER};
	unsigned char *sent = malloc(EAGER), *got = malloc(EAGER);

	(void)state;
	for (unsigned n = 0; n < 100; n++) {
		uint32_t length = lengths[n % COUNT(lengths)], result = 0;
		mx_request_t send, receive;
		mx_status_t status;

		fill(sent, length, n);
		send = send_to(sent, length, n, false);
		assert_true(ends_within(one, &send, TIMEOUT));
		/* Until it is here as a whole: what arrives is found, too. */
		while (result == 0)
			assert_ok(mx_iprobe(other, n, MX_MATCH_MASK_NONE, &status, &result));
		pause_for(length > 1024 ? 20 : 0);
		receive = receive_from(got, EAGER, n, MX_MATCH_MASK_NONE);
		assert_ok(mx_test(other, &receive, &status, &result));
		assert_int_equal(result, 1);
		assert_int_equal(status.xfer_length, length);
		assert_memory_equal(got, sent, length);
	}
	free(sent);
	free(got);
}

/* A long message moves while its sender makes no call. */
static void test_sender_that_makes_no_call(void **state)
{
	unsigned char *sent = malloc(1 << 20), *got = malloc(1 << 20);
	mx_request_t send, receive;
	mx_status_t status;

	(void)state;
	fill(sent, 1 << 20, 1);
	send = send_to(sent, 1 << 20, 1, false);
	receive = receive_from(got, 1 << 20, 1, MX_MATCH_MASK_NONE);
	assert_true(ends_within(other, &receive, TIMEOUT));
	assert_memory_equal(got, sent, 1 << 20);
	assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
	/* The same where the receive was there first. */
	fill(sent, 1 << 20, 2);
	receive = receive_from(got, 1 << 20, 1, MX_MATCH_MASK_NONE);
	send = send_to(sent, 1 << 20, 1, false);
	assert_ok(mx_wait(other, &receive, TIMEOUT, &status, &(uint32_t){0}));
	assert_null(receive);
	assert_memory_equal(got, sent, 1 << 20);
	assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
	free(sent);
	free(got);
}

static void test_truncated(void **state)
{
	static const uint32_t rooms[] = {0, 1, 32767, 1 << 20};
	unsigned char *sent = malloc((1 << 20) + 5), *got = malloc((1 << 20) + 1);

	(void)state;
	fill(sent, (1 << 20) + 5, 3);
	for (unsigned posted = 0; posted < 2; posted++)
		for (unsigned i = 0; i < COUNT(rooms); i++) {
			mx_request_t send, receive = NULL;
			mx_status_t status;

			got[rooms[i]] = 0xee;
			if (posted)
				receive = receive_from(got, rooms[i], 9, UINT64_MAX);
			send = send_to(sent, rooms[i] + 5, 9, false);
			if (!posted)
				receive = receive_from(got, rooms[i], 9, UINT64_MAX);
			status = wait_for(other, &receive);
			assert_int_equal(status.code, MX_STATUS_TRUNCATED);
			assert_int_equal(status.msg_length, rooms[i] + 5);
			assert_int_equal(status.xfer_length, rooms[i]);
			assert_memory_equal(sent, got, rooms[i]);
			assert_int_equal(got[rooms[i]], 0xee);
			assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
		}
	free(sent);
	free(got);
}

static void test_segments(void **state)
{
	static const uint32_t pieces[] = {10, 100, 4000};
	mx_segment_t out[257], in[257];
	unsigned char *sent = malloc(256 * 4000), *got = malloc(256 * 4000);
	mx_request_t request;

	(void)state;
	for (unsigned posted = 0; posted < 2; posted++)
		for (unsigned i = 0; i < COUNT(pieces); i++) {
			uint32_t whole = 255 * pieces[i];
			mx_request_t send, receive = NULL;

			fill(sent, whole, i);
			memset(got, 0, whole);
			/* The first one is empty. Backwards: no piece is next to the last one. */
			out[0] = in[0] = (mx_segment_t){NULL, 0};
			for (unsigned n = 0; n < 255; n++) {
				out[n + 1] =
					(mx_segment_t){sent + (254 - n) * pieces[i], pieces[i]};
				in[n + 1] = (mx_segment_t){got + (254 - n) * pieces[i], pieces[i]};
			}
			if (posted)
				assert_ok(mx_irecv(other, in, 256, 1, UINT64_MAX, NULL, &receive));
			assert_ok(mx_isend(one, out, 256, to_other, 1, NULL, &send));
			if (!posted)
				assert_ok(mx_irecv(other, in, 256, 1, UINT64_MAX, NULL, &receive));
			assert_int_equal(wait_for(other, &receive).xfer_length, whole);
			assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
			assert_memory_equal(sent, got, whole);
		}
	assert_code(mx_isend(one, out, 257, to_other, 1, NULL, &request), MX_BAD_SEG_CNT);
	assert_code(mx_isend(one, NULL, 1, to_other, 1, NULL, &request), MX_BAD_SEG_LIST);
	free(sent);
	free(got);
}

/* A piece against 256, either way. */
static void test_one_segment_against_many(void **state)
{
	static const uint32_t pieces[] = {1, 128, 129, 4000};
	unsigned char *sent = malloc(256 * 4000), *got = malloc(256 * 4000 + 1);
	mx_segment_t many[256], whole;

	(void)state;
	for (unsigned n = 0; n < 2 * 2 * COUNT(pieces); n++) {
		uint32_t piece = pieces[n / 4];
		bool posted = n & 1, gathers = n & 2;
		mx_request_t send, receive = NULL;

		fill(sent, 256 * piece, n);
		memset(got, 0xee, 256 * 4000 + 1);
		for (unsigned i = 0; i < 256; i++)
			many[i] = (mx_segment_t){(gathers ? sent : got) + i * piece, piece};
		whole = (mx_segment_t){gathers ? got : sent, 256 * piece};
		if (posted)
			assert_ok(mx_irecv(other, gathers ? &whole : many, gathers ? 1 : 256, n,
				MX_MATCH_MASK_NONE, NULL, &receive));
		assert_ok(mx_isend(
			one, gathers ? many : &whole, gathers ? 256 : 1, to_other, n, NULL, &send));
		if (!posted)
			assert_ok(mx_irecv(other, gathers ? &whole : many, gathers ? 1 : 256, n,
				MX_MATCH_MASK_NONE, NULL, &receive));
		assert_int_equal(wait_for(other, &receive).xfer_length, 256 * piece);
		assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
		assert_memory_equal(got, sent, 256 * piece);
		assert_int_equal(got[256 * piece], 0xee);
	}
	free(sent);
	free(got);
}

static void test_order(void **state)
{
	unsigned char *longer = malloc(1 << 20), *first = malloc(1 << 20), second[1] = {0},
		      one_byte = 5;
	mx_request_t a, b, ra, rb;

	(void)state;
	fill(longer, 1 << 20, 1);
	a = send_to(longer, 1 << 20, 4, false);
	b = send_to(&one_byte, 1, 4, false);
	ra = receive_from(first, 1 << 20, 4, UINT64_MAX);
	rb = receive_from(second, 1, 0, 0);
	assert_int_equal(wait_for(other, &rb).msg_length, 1);
	assert_int_equal(second[0], 5);
	assert_int_equal(wait_for(other, &ra).msg_length, 1 << 20);
	assert_memory_equal(first, longer, 1 << 20);
	assert_int_equal(wait_for(one, &a).code, MX_STATUS_SUCCESS);
	assert_int_equal(wait_for(one, &b).code, MX_STATUS_SUCCESS);
	free(longer);
	free(first);
}

static void test_masks(void **state)
{
	mx_request_t request, send;
	unsigned char byte;

	(void)state;
	assert_code(mx_irecv(other, NULL, 0, 3, 1, NULL, &request), MX_BAD_MATCH_MASK);
	request = receive_from(&byte, 1, 0x50, 0xf0);
	send = send_to("a", 1, 0x66, false);
	assert_false(ends_within(other, &request, 5));
	assert_true(ends_within(one, &send, TIMEOUT));
	send = send_to("b", 1, 0x15a, false);
	assert_int_equal(wait_for(other, &request).match_info, 0x15a);
	assert_int_equal(byte, 'b');
	assert_true(ends_within(one, &send, TIMEOUT));
	request = receive_from(&byte, 1, 0, 0);
	assert_int_equal(wait_for(other, &request).match_info, 0x66);
}

static void test_synchronous(void **state)
{
	static const uint32_t lengths[] = {0, 100, 1 << 20};
	unsigned char *data = calloc(1, 1 << 20);

	(void)state;
	for (unsigned i = 0; i < COUNT(lengths); i++) {
		mx_request_t send = send_to(data, lengths[i], 8, true), receive;

		assert_false(ends_within(one, &send, 5));
		receive = receive_from(data, lengths[i], 8, UINT64_MAX);
		assert_int_equal(wait_for(other, &receive).code, MX_STATUS_SUCCESS);
		assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
	}
	free(data);
}

static void test_synchronous_to_oneself(void **state)
{
	static const uint32_t lengths[] = {0, 100, EAGER, EAGER + 1, 1 << 20};
	unsigned char *sent = malloc(1 << 20), *got = malloc(1 << 20);
	mx_endpoint_addr_t own;

	(void)state;
	assert_ok(mx_get_endpoint_addr(one, &own));
	for (unsigned n = 0; n < 2 * COUNT(lengths); n++) {
		mx_segment_t from = {sent, lengths[n / 2]}, to = {got, lengths[n / 2]};
		mx_request_t send, receive = NULL;
		bool posted = n & 1;

		fill(sent, from.segment_length, n);
		if (posted)
			assert_ok(mx_irecv(one, &to, 1, n, UINT64_MAX, NULL, &receive));
		assert_ok(mx_issend(one, &from, 1, own, n, NULL, &send));
		if (!posted) {
			assert_false(ends_within(one, &send, 5));
			assert_ok(mx_irecv(one, &to, 1, n, UINT64_MAX, NULL, &receive));
		}
		assert_int_equal(wait_for(one, &receive).code, MX_STATUS_SUCCESS);
		assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
		assert_memory_equal(got, sent, from.segment_length);
	}
	free(sent);
	free(got);
}

static void test_wait_lasts(void **state)
{
	unsigned char byte;
	mx_request_t receive = receive_from(&byte, 1, 6, UINT64_MAX);
	struct timespec begin, end;
	mx_status_t status;
	uint32_t result = 9;

	(void)state;
	assert_int_equal(MX_INFINITE, 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_ok(mx_wait(other, &receive, 50, &status, &result));
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_int_equal(result, 0);
	assert_non_null(receive);
	assert_true((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec >=
		    50 * 1000000);
	assert_ok(mx_cancel(other, &receive, &result));
	assert_int_equal(result, 1);
}

/* A receive is taken back while its message comes: the message is in it, or there for another one,
 * never both or neither. */
static void test_cancel_races(void **state)
{
	unsigned cancelled = 0, late = 0, races = 5000 * times;

	(void)state;
	for (uint32_t n = 0; n < races; n++) {
		uint32_t got = UINT32_MAX, again = UINT32_MAX, result = 9;
		mx_request_t receive = receive_from(&got, sizeof(got), 6, UINT64_MAX);
		mx_request_t send = send_to(&n, sizeof(n), 6, n % 3 == 0), second = NULL;
		mx_status_t status;

		for (volatile unsigned spin = 0; spin < n % 64 * 64;)
			spin = spin + 1;
		for (unsigned i = 0; n % 4 == 3 && i < n / 4 % 16; i++)
			nap();
		assert_ok(mx_cancel(other, &receive, &result));
		if (result != 0) {
			assert_null(receive);
			second = receive_from(&again, sizeof(again), 6, UINT64_MAX);
			assert_int_equal(wait_for(other, &second).code, MX_STATUS_SUCCESS);
			assert_int_equal(got, UINT32_MAX);
			assert_int_equal(again, n);
			cancelled++;
		} else {
			assert_int_equal(wait_for(other, &receive).code, MX_STATUS_SUCCESS);
			assert_int_equal(got, n);
			late++;
		}
		assert_int_equal(wait_for(one, &send).code, MX_STATUS_SUCCESS);
		assert_ok(mx_iprobe(other, 0, 0, &status, &result));
		assert_int_equal(result, 0);
	}
	print_message("%u receives were taken back, %u had matched\n", cancelled, late);
}

static void test_cancel(void **state)
{
	unsigned char byte;
	mx_request_t receive = receive_from(&byte, 1, 6, UINT64_MAX), send;
	uint32_t result = 7;

	(void)state;
	assert_ok(mx_cancel(other, &receive, &result));
	assert_int_equal(result, 1);
	assert_null(receive);
	send = send_to("x", 1, 6, true);
	assert_code(mx_cancel(one, &send, &result), MX_CANCEL_NOT_SUPPORTED);
	assert_int_equal(result, 0);
	receive = receive_from(&byte, 1, 6, UINT64_MAX);
	wait_for(one, &send);
	assert_ok(mx_cancel(other, &receive, &result));
	assert_int_equal(result, 0);
	assert_int_equal(wait_for(other, &receive).code, MX_STATUS_SUCCESS);
	assert_int_equal(byte, 'x');
}

static void test_forget(void **state)
{
	unsigned char byte = 0;
	mx_request_t receive = receive_from(&byte, 1, 2, UINT64_MAX), send;
	uint32_t result;

	(void)state;
	assert_ok(mx_forget(other, &receive));
	assert_null(receive);
	send = send_to("f", 1, 2, true);
	wait_for(one, &send);
	assert_ok(mx_peek(other, 20, &receive, &result));
	assert_int_equal(result, 0);
	assert_int_equal(byte, 'f');
}

static void test_probe(void **state)
{
	unsigned char bytes[50];
	mx_request_t send, receive;
	mx_status_t status;
	uint32_t result;
	struct timespec begin, end;

	(void)state;
	assert_ok(mx_iprobe(other, 0, 0, &status, &result));
	assert_int_equal(result, 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_ok(mx_probe(other, 50, 0, 0, &status, &result));
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_int_equal(result, 0);
	assert_true(
		(end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 >= 50);
	send = send_to("probe", 5, 0xabc, false);
	assert_ok(mx_probe(other, TIMEOUT, 0xabc, UINT64_MAX, &status, &result));
	assert_int_equal(result, 1);
	assert_int_equal(status.msg_length, 5);
	assert_int_equal(status.xfer_length, 5);
	assert_null(status.context);
	receive = receive_from(bytes, 50, 0xabc, UINT64_MAX);
	assert_true(ends_within(other, &receive, TIMEOUT));
	assert_true(ends_within(one, &send, TIMEOUT));
	/* The source of a probe can be sent to. */
	assert_ok(mx_isend(other, NULL, 0, status.source, 1, NULL, &send));
	assert_ok(mx_irecv(one, NULL, 0, 1, UINT64_MAX, NULL, &receive));
	assert_int_equal(wait_for(one, &receive).code, MX_STATUS_SUCCESS);
	assert_true(ends_within(other, &send, TIMEOUT));
}

static void test_any(void **state)
{
	unsigned char bytes[3];
	mx_request_t peeked, request;
	mx_status_t status;
	uint32_t result;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		receive_from(bytes + i, 1, i, UINT64_MAX);
		request = send_to(&"abc"[i], 1, i, true);
		wait_for(one, &request);
	}
	assert_ok(mx_wait_any(other, TIMEOUT, 2, UINT64_MAX, &status, &result));
	assert_int_equal(result, 1);
	assert_ptr_equal(status.context, bytes + 2);
	assert_ok(mx_ipeek(other, &peeked, &result));
	assert_int_equal(result, 1);
	assert_ok(mx_test(other, &peeked, &status, &result));
	assert_int_equal(result, 1);
	assert_ptr_equal(status.context, bytes);
	assert_ok(mx_test_any(other, 0, 0, &status, &result));
	assert_int_equal(result, 1);
	assert_ptr_equal(status.context, bytes + 1);
	assert_ok(mx_test_any(other, 0, 0, &status, &result));
	assert_int_equal(result, 0);
	assert_code(mx_test_any(other, 1, 0, &status, &result), MX_BAD_MATCH_MASK);
	assert_memory_equal(bytes, "abc", 3);
}

/* Requests of each kind are found by their context id among many others that have ended. */
/* A message of one byte that has been received, whose request nobody has asked for. */
static mx_request_t received_from(unsigned char *byte, uint64_t bits)
{
	mx_request_t receive = receive_from(byte, 1, bits, UINT64_MAX);
	mx_request_t send = send_to("a", 1, bits, true);

	wait_for(one, &send);
	return receive;
}

/* Requests that ended before a search and after it, asked for by their handles and by bits. */
static void test_any_of_old_and_new(void **state)
{
	unsigned char bytes[8];
	mx_request_t requests[COUNT(bytes)];
	mx_status_t status;
	uint32_t result;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		requests[i] = received_from(bytes + i, i % 2);
	assert_ok(mx_test_any(other, 7, UINT64_MAX, &status, &result));
	assert_int_equal(result, 0);
	for (unsigned i = 4; i < 8; i++)
		requests[i] = received_from(bytes + i, i % 2);
	assert_true(ends_within(other, &requests[1], TIMEOUT));
	assert_true(ends_within(other, &requests[5], TIMEOUT));
	for (unsigned i = 3; i < 8; i += i == 3 ? 4 : 2) {
		assert_ok(mx_test_any(other, 1, UINT64_MAX, &status, &result));
		assert_int_equal(result, 1);
		assert_ptr_equal(status.context, bytes + i);
	}
	assert_true(ends_within(other, &requests[6], TIMEOUT));
	for (unsigned i = 0; i < 6; i += 2) {
		assert_ok(mx_test_any(other, 0, 0, &status, &result));
		assert_int_equal(result, 1);
		assert_ptr_equal(status.context, bytes + i);
	}
	assert_ok(mx_test_any(other, 0, 0, &status, &result));
	assert_int_equal(result, 0);
}

static void test_any_among_many(void **state)
{
	const uint64_t mine = UINT64_C(1) << 63;
	mx_param_t param = {.key = MX_PARAM_CONTEXT_ID, .val.context_id = {.bits = 1, .shift = 63}};
	const uint64_t others = UINT64_C(10000) * times;
	mx_endpoint_t endpoint;
	mx_endpoint_addr_t own;
	mx_request_t request;
	mx_status_t status;
	uint32_t result;

	(void)state;
	assert_ok(mx_open_endpoint(0, 9, FILTER, &param, 1, &endpoint));
	assert_ok(mx_get_endpoint_addr(endpoint, &own));
	for (uint64_t n = 0; n < others / 2; n++) {
		assert_ok(mx_irecv(endpoint, NULL, 0, n, UINT64_MAX, NULL, &request));
		assert_ok(mx_isend(endpoint, NULL, 0, own, n, NULL, NULL));
		assert_ok(mx_isend(endpoint, NULL, 0, own, n, NULL, &request));
		assert_ok(mx_irecv(endpoint, NULL, 0, n, UINT64_MAX, NULL, NULL));
	}
	for (uint64_t n = 0; n < 3 * 50; n++) {
		uint64_t bits = mine | n;

		assert_ok(mx_test_any(endpoint, mine, mine, &status, &result));
		assert_int_equal(result, 0);
		if (n % 3 == 0) {
			assert_ok(mx_isend(endpoint, NULL, 0, own, bits, &param, &request));
			assert_ok(mx_irecv(endpoint, NULL, 0, bits, UINT64_MAX, NULL, NULL));
		} else if (n % 3 == 1) {
			assert_ok(mx_irecv(endpoint, NULL, 0, bits, UINT64_MAX, &param, &request));
			assert_ok(mx_isend(endpoint, NULL, 0, own, bits, NULL, NULL));
		} else {
			assert_ok(mx_iconnect(
				endpoint, board_nic(0), 9, FILTER, bits, &param, &request));
		}
		assert_ok(mx_wait_any(endpoint, TIMEOUT, mine, mine, &status, &result));
		assert_int_equal(result, 1);
		assert_int_equal(status.code, MX_STATUS_SUCCESS);
		assert_int_equal(status.match_info, bits);
		assert_ptr_equal(status.context, &param);
	}
	/* The others are all there, oldest first, or any by their value. */
	assert_ok(mx_test_any(endpoint, others / 2 - 1, UINT64_MAX, &status, &result));
	assert_int_equal(result, 1);
	for (uint64_t n = 1; n < others; n++) {
		assert_ok(mx_wait_any(endpoint, TIMEOUT, 0, mine, &status, &result));
		assert_int_equal(result, 1);
		assert_int_equal(status.code, MX_STATUS_SUCCESS);
	}
	assert_ok(mx_test_any(endpoint, 0, 0, &status, &result));
	assert_int_equal(result, 0);
	assert_ok(mx_close_endpoint(endpoint));
}

static void test_contexts(void **state)
{
	mx_param_t param = {.key = MX_PARAM_CONTEXT_ID, .val.context_id = {.bits = 4, .shift = 60}};
	mx_endpoint_t endpoint;
	mx_endpoint_addr_t own;
	mx_request_t request;
	mx_status_t status;
	uint32_t result;

	(void)state;
	assert_ok(mx_open_endpoint(0, 9, FILTER, &param, 1, &endpoint));
	assert_ok(mx_get_endpoint_addr(endpoint, &own));
	assert_code(mx_irecv(endpoint, NULL, 0, 0, 1, NULL, &request),
		MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK);
	for (uint64_t id = 1; id < 4; id++)
		assert_ok(mx_isend(endpoint, NULL, 0, own, id << 60, NULL, &request));
	assert_ok(mx_test_any(endpoint, UINT64_C(2) << 60, UINT64_C(15) << 60, &status, &result));
	assert_int_equal(result, 1);
	assert_int_equal(status.match_info, UINT64_C(2) << 60);
	assert_ok(mx_test_any(endpoint, UINT64_C(2) << 60, UINT64_C(15) << 60, &status, &result));
	assert_int_equal(result, 0);
	assert_ok(mx_test_any(endpoint, 0, 0, &status, &result));
	assert_int_equal(result, 1);
	assert_int_equal(status.match_info, UINT64_C(1) << 60);
	assert_ok(mx_irecv(endpoint, NULL, 0, UINT64_C(3) << 60, UINT64_MAX, NULL, &request));
	assert_int_equal(wait_for(endpoint, &request).match_info, UINT64_C(3) << 60);
	assert_ok(mx_close_endpoint(endpoint));
}

static void test_buffered(void **state)
{
	unsigned char *data = calloc(1, EAGER + 1);
	mx_request_t send = send_to(data, EAGER, 1, false), receive;
	uint32_t result;

	(void)state;
	assert_ok(mx_ibuffered(one, &send, &result));
	assert_int_not_equal(result, 0);
	assert_true(ends_within(one, &send, 0 + 1));
	send = send_to(data, EAGER + 1, 2, false);
	assert_ok(mx_ibuffered(one, &send, &result));
	assert_int_equal(result, 0);
	receive = receive_from(data, EAGER, 1, UINT64_MAX);
	assert_code(mx_ibuffered(other, &receive, &result), MX_BAD_REQUEST);
	wait_for(other, &receive);
	receive = receive_from(data, EAGER + 1, 2, UINT64_MAX);
	wait_for(other, &receive);
	assert_ok(mx_buffered(one, &send, TIMEOUT, &result));
	assert_int_not_equal(result, 0);
	wait_for(one, &send);
	free(data);
}

/* Requests with a time of their own: sends that nobody receives, and no receive. */
static void test_request_timeout(void **state)
{
	static unsigned char data[200000];
	mx_request_t request, receive, cancelled;
	mx_status_t status;
	uint32_t result;

	(void)state;
	receive = receive_from(data, 1, 99, MX_MATCH_MASK_NONE);
	assert_ok(mx_set_request_timeout(other, receive, 20));
	for (unsigned i = 0; i < 2; i++) {
		request = send_to(data, i ? sizeof(data) : 5, 40 + i, true);
		assert_false(ends_within(one, &request, 50));
		assert_ok(mx_set_request_timeout(one, request, 50));
		assert_int_equal(wait_for(one, &request).code, MX_STATUS_TIMEOUT);
	}
	assert_ok(mx_set_request_timeout(one, NULL, 50));
	request = send_to(data, 5, 42, true);
	assert_int_equal(wait_for(one, &request).code, MX_STATUS_TIMEOUT);
	assert_ok(mx_set_request_timeout(one, NULL, MX_INFINITE));
	request = send_to(data, 5, 43, true);
	assert_false(ends_within(one, &request, 200));
	/* What was copied is there all the same; what was not is told of. */
	cancelled = receive_from(data, sizeof(data), 40, MX_MATCH_MASK_NONE);
	assert_int_equal(wait_for(other, &cancelled).code, MX_STATUS_SUCCESS);
	cancelled = receive_from(data, sizeof(data), 41, MX_MATCH_MASK_NONE);
	assert_int_equal(wait_for(other, &cancelled).code, MX_STATUS_BAD_RDMAWIN);
	cancelled = receive_from(data, sizeof(data), 43, MX_MATCH_MASK_NONE);
	assert_int_equal(wait_for(other, &cancelled).code, MX_STATUS_SUCCESS);
	assert_int_equal(wait_for(one, &request).code, MX_STATUS_SUCCESS);
	assert_ok(mx_test(other, &receive, &status, &result));
	assert_int_equal(result, 0); /* a receive that nobody has sent to */
}

/* Deadlines that have come while nobody called end their requests in their order, whatever that
 * of the calls was. */
static void test_timeouts_in_order(void **state)
{
	enum { MANY = 32, LATE = 500 };
	static mx_request_t sends[MANY];
	const struct timespec pause = {.tv_nsec = (LATE + 100) * 1000000L};
	mx_request_t request;
	mx_status_t status;
	uint32_t result;

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		sends[i] = send_to("x", 1, i, true);
	for (unsigned i = 0; i < MANY; i++)
		assert_ok(mx_set_request_timeout(one, sends[i], i % 2 == 0 ? LATE : 1));
	assert_int_equal(nanosleep(&pause, NULL), 0);
	for (unsigned n = 0; n < MANY; n++) {
		do {
			assert_ok(mx_ipeek(one, &request, &result));
		} while (result == 0);
		assert_ok(mx_test(one, &request, &status, &result));
		assert_int_equal(result, 1);
		assert_int_equal(status.code, MX_STATUS_TIMEOUT);
		assert_int_equal(status.match_info % 2, n < MANY / 2);
	}
}

/* Every call that takes a handle knows that these bits are none. */
static void check_no_request(mx_endpoint_t endpoint, uint64_t bits)
{
	mx_request_t handle = (mx_request_t)(uintptr_t)bits;
	mx_status_t status;
	uint32_t result;
	void *context;

	assert_code(mx_test(endpoint, &handle, &status, &result), MX_BAD_REQUEST);
	assert_code(mx_wait(endpoint, &handle, 1, &status, &result), MX_BAD_REQUEST);
	assert_code(mx_ibuffered(endpoint, &handle, &result), MX_BAD_REQUEST);
	assert_code(mx_buffered(endpoint, &handle, 1, &result), MX_BAD_REQUEST);
	assert_code(mx_cancel(endpoint, &handle, &result), MX_BAD_REQUEST);
	assert_code(mx_forget(endpoint, &handle), MX_BAD_REQUEST);
	assert_code(mx_context(&handle, &context), MX_BAD_REQUEST);
	if (handle)
		assert_code(mx_set_request_timeout(endpoint, handle, 1), MX_BAD_REQUEST);
	assert_ptr_equal(handle, (mx_request_t)(uintptr_t)bits);
}

static void test_handles_of_any_bits(void **state)
{
	unsigned char data[8];
	mx_request_t receive = receive_from(data, sizeof(data), 1, UINT64_MAX), cancelled = receive;
	uint64_t bits = (uint64_t)(uintptr_t)receive, random = 1;
	void *context;
	uint32_t result;

	(void)state;
	assert_ok(mx_context(&receive, &context));
	check_no_request(other, 0);
	check_no_request(other, (uint64_t)(uintptr_t)data);
	for (unsigned bit = 0; bit < 64; bit++)
		check_no_request(other, bits ^ UINT64_C(1) << bit);
	for (unsigned n = 0; n < 2000; n++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		check_no_request(other, random | 1);
		check_no_request(
			other, (bits & ~UINT64_C(0xffffffff)) | random >> (32 + n % 32) | 1);
	}
	/* It is a request of one endpoint only, until it has ended; its place is used again. */
	assert_code(mx_cancel(one, &cancelled, &result), MX_BAD_REQUEST);
	assert_ok(mx_cancel(other, &cancelled, &result));
	assert_int_equal(result, 1);
	check_no_request(other, bits);
	receive = receive_from(data, sizeof(data), 1, UINT64_MAX);
	check_no_request(other, bits);
	assert_ok(mx_cancel(other, &receive, &result));
	assert_ok(mx_close_endpoint(other));
	assert_ok(mx_open_endpoint(1, 3, FILTER, NULL, 0, &other));
	receive = receive_from(data, sizeof(data), 1, UINT64_MAX);
	check_no_request(other, bits);
}

int main(int count, char **words)
{
#define with_both(test) cmocka_unit_test_setup_teardown(test, open_both, close_both)
	const struct CMUnitTest tests[] = {
		with_both(test_lengths),
		with_both(test_memory_is_used_again),
		with_both(test_first_test),
		with_both(test_sender_that_makes_no_call),
		with_both(test_truncated),
		with_both(test_segments),
		with_both(test_one_segment_against_many),
		with_both(test_order),
		with_both(test_masks),
		with_both(test_synchronous),
		with_both(test_synchronous_to_oneself),
		with_both(test_wait_lasts),
		with_both(test_cancel),
		with_both(test_cancel_races),
		with_both(test_forget),
		with_both(test_probe),
		with_both(test_any),
		with_both(test_any_of_old_and_new),
		with_both(test_any_among_many),
		with_both(test_contexts),
		with_both(test_buffered),
		with_both(test_request_timeout),
		with_both(test_timeouts_in_order),
		with_both(test_handles_of_any_bits),
	};

	if (count > 1)
		times = (unsigned)strtoul(words[1], NULL, 10);
	return cmocka_run_group_tests(tests, group_open, group_close);
}
