/* SPDX-License-Identifier: BSD-3-Clause */
/* test_messages.c - connects, sends, receives and their ends, between endpoints of one process.
 *
 * Covers: lib/mx/endpoint.c, lib/mx/session.c, lib/mx/request.c, lib/mx/completion.c. */
#include "fixture.h"

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define FILTER   0xdecaf
#define EAGER    32768
#define PATIENCE 20000

static mx_endpoint_t one, other;
static mx_endpoint_addr_t to_other, to_one;

static uint64_t board_nic(uint32_t board)
{
	uint64_t nic_id = 0;

	assert_ok(mx_board_number_to_nic_id(board, &nic_id));
	return nic_id;
}

/* Connects the endpoint to another one of this process, which has to answer meanwhile. */
static mx_status_t connect_with(
	mx_endpoint_t from, mx_endpoint_t to, uint64_t nic_id, uint32_t id, uint32_t filter)
{
	mx_request_t request;
	mx_status_t status;
	uint32_t result = 0;

	assert_ok(mx_iconnect(from, nic_id, id, filter, 77, &request, &request));
	for (int i = 0; i < 1000000 && result == 0; i++) {
		mx_request_t none;

		assert_ok(mx_test(from, &request, &status, &result));
		if (result == 0 && to) {
			uint32_t peeked;

			assert_ok(mx_ipeek(to, &none, &peeked));
		}
	}
	assert_int_equal(result, 1);
	assert_null(request);
	assert_int_equal(status.match_info, 77);
	assert_ptr_equal(status.context, &request);
	return status;
}

static int open_both(void **state)
{
	(void)state;
	assert_ok(mx_open_endpoint(0, 3, FILTER, NULL, 0, &one));
	assert_ok(mx_open_endpoint(1, 3, FILTER, NULL, 0, &other));
	to_other = connect_with(one, other, board_nic(1), 3, FILTER).source;
	to_one = connect_with(other, one, board_nic(0), 3, FILTER).source;
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	assert_ok(mx_close_endpoint(one));
	assert_ok(mx_close_endpoint(other));
	return 0;
}

static mx_request_t send_to(const void *data, uint32_t length, uint64_t bits, bool synchronous)
{
	mx_segment_t segment = {(void *)(uintptr_t)data, length};
	mx_request_t request = NULL;

	if (synchronous)
		assert_ok(mx_issend(one, &segment, 1, to_other, bits, NULL, &request));
	else
		assert_ok(mx_isend(one, &segment, 1, to_other, bits, NULL, &request));
	return request;
}

static mx_request_t receive_from(void *data, uint32_t length, uint64_t bits, uint64_t mask)
{
	mx_segment_t segment = {data, length};
	mx_request_t request = NULL;

	assert_ok(mx_irecv(other, &segment, 1, bits, mask, data, &request));
	return request;
}

/* The peer is in this process, and its calls tell the sender that a kept message was received. */
static mx_status_t wait_for(mx_endpoint_t endpoint, mx_request_t *request)
{
	mx_request_t completed;
	mx_status_t status;
	uint32_t result = 0, peeked;

	for (unsigned i = 0; i < PATIENCE / 10 && result == 0; i++) {
		assert_ok(mx_wait(endpoint, request, 10, &status, &result));
		if (result == 0)
			(void)mx_ipeek(endpoint == one ? other : one, &completed, &peeked);
	}
	assert_int_equal(result, 1);
	assert_null(*request);
	return status;
}

static bool ends_within(mx_endpoint_t endpoint, mx_request_t *request, uint32_t milliseconds)
{
	mx_status_t status;
	uint32_t result;

	assert_ok(mx_wait(endpoint, request, milliseconds, &status, &result));
	return result == 1;
}

/* --- endpoints */

static void test_open(void **state)
{
	mx_param_t param = {.key = MX_PARAM_CONTEXT_ID};
	mx_endpoint_t endpoint = NULL, second = NULL;
	mx_endpoint_addr_t own;
	uint64_t nic_id;
	uint32_t id;

	(void)state;
	assert_ok(mx_open_endpoint(0, 5, FILTER, NULL, 0, &endpoint));
	assert_code(mx_open_endpoint(0, 5, FILTER, NULL, 0, &second), MX_BUSY);
	assert_null(second);
	assert_ok(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, FILTER, NULL, 0, &second));
	assert_ok(mx_get_endpoint_addr(second, &own));
	assert_ok(mx_decompose_endpoint_addr(own, &nic_id, &id));
	assert_int_equal(nic_id, board_nic(0));
	assert_int_equal(id, 0);
	assert_ok(mx_close_endpoint(second));
	assert_code(mx_close_endpoint(second), MX_BAD_ENDPOINT);
	assert_ok(mx_close_endpoint(endpoint));
	assert_ok(mx_open_endpoint(0, 5, FILTER, NULL, 0, &endpoint));
	assert_ok(mx_close_endpoint(endpoint));
	assert_code(mx_open_endpoint(0, 100000, FILTER, NULL, 0, &endpoint), MX_BAD_ENDPOINT);
	assert_code(mx_open_endpoint(99, 0, FILTER, NULL, 0, &endpoint), MX_BOARD_UNKNOWN);
	assert_code(mx_open_endpoint(0, 0, FILTER, NULL, 1, &endpoint), MX_BAD_PARAM_LIST);
	param.val.context_id.bits = 17;
	assert_code(mx_open_endpoint(0, 0, FILTER, &param, 1, &endpoint), MX_BAD_PARAM_VAL);
	param.val.context_id.bits = 16;
	param.val.context_id.shift = 49;
	assert_code(mx_open_endpoint(0, 0, FILTER, &param, 1, &endpoint), MX_BAD_PARAM_VAL);
	param.key = 9;
	assert_code(mx_open_endpoint(0, 0, FILTER, &param, 1, &endpoint), MX_BAD_PARAM_NAME);
}

/* As many as MX promises, each reached from the first; and one more. */
static void test_many(void **state)
{
	enum { MANY = 32 };
	mx_endpoint_t endpoints[MANY], more;

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		assert_ok(mx_open_endpoint(i % 2, i, FILTER, NULL, 0, &endpoints[i]));
	for (unsigned i = 0; i < MANY; i++) {
		mx_endpoint_addr_t address =
			connect_with(endpoints[0], endpoints[i], board_nic(i % 2), i, FILTER)
				.source;
		mx_request_t send, receive;

		assert_ok(mx_irecv(endpoints[i], NULL, 0, i, MX_MATCH_MASK_NONE, NULL, &receive));
		assert_ok(mx_isend(endpoints[0], NULL, 0, address, i, NULL, &send));
		assert_true(ends_within(endpoints[i], &receive, PATIENCE));
		assert_true(ends_within(endpoints[0], &send, PATIENCE));
	}
	assert_code(mx_open_endpoint(0, MANY, FILTER, NULL, 0, &more), MX_NO_RESOURCES);
	for (unsigned i = 0; i < MANY; i++)
		assert_ok(mx_close_endpoint(endpoints[i]));
}

static void test_connect(void **state)
{
	uint32_t session, again, id;
	uint64_t nic_id;
	mx_endpoint_addr_t own, address;

	(void)state;
	assert_ok(mx_get_endpoint_addr(other, &own));
	assert_ok(mx_decompose_endpoint_addr2(own, &nic_id, &id, &session));
	assert_int_equal(nic_id, board_nic(1));
	assert_int_equal(id, 3);
	assert_ok(mx_decompose_endpoint_addr2(to_other, &nic_id, &id, &again));
	assert_int_equal(nic_id, board_nic(1));
	assert_int_equal(id, 3);
	assert_int_equal(session, again);
	assert_int_equal(
		connect_with(one, other, board_nic(1), 3, FILTER + 1).code, MX_STATUS_BAD_KEY);
	assert_int_equal(
		connect_with(one, NULL, board_nic(1), 2000, FILTER).code, MX_STATUS_BAD_ENDPOINT);
	assert_code(mx_connect(one, 5, 3, FILTER, 100, &address), MX_NIC_NOT_FOUND);
	/* To itself. */
	assert_ok(mx_connect(one, board_nic(0), 3, FILTER, PATIENCE, &address));
	assert_code(mx_connect(one, board_nic(0), 3, FILTER + 1, PATIENCE, &address),
		MX_BAD_CONNECTION_KEY);
	/* Nobody is there. */
	assert_code(mx_connect(one, board_nic(0), 44, FILTER, PATIENCE, &address),
		MX_CONNECTION_FAILED);
}

static void test_address(void **state)
{
	mx_endpoint_addr_t odd = {{0, 0}};
	mx_request_t request;
	void *context = &odd;
	int mark;

	(void)state;
	assert_ok(mx_set_endpoint_addr_context(odd, &mark));
	assert_ok(mx_get_endpoint_addr_context(odd, &context));
	assert_null(context);
	assert_ok(mx_get_endpoint_addr_context(to_other, &context));
	assert_null(context);
	assert_ok(mx_set_endpoint_addr_context(to_other, &mark));
	assert_ok(mx_get_endpoint_addr_context(to_other, &context));
	assert_ptr_equal(context, &mark);
	/* Any bits. */
	for (unsigned bit = 0; bit < 128; bit++) {
		odd = to_other;
		odd.stuff[bit / 64] ^= UINT64_C(1) << bit % 64;
		assert_ok(mx_get_endpoint_addr_context(odd, &context));
		assert_null(context);
		assert_ok(mx_disconnect(one, odd));
		assert_ok(mx_isend(one, NULL, 0, odd, 1, NULL, &request));
		assert_int_not_equal(wait_for(one, &request).code, MX_STATUS_SUCCESS);
	}
	assert_ok(mx_disconnect(one, to_other));
	assert_ok(mx_get_endpoint_addr_context(to_other, &context));
	assert_null(context);
	assert_ok(mx_isend(one, NULL, 0, to_other, 1, NULL, &request));
	assert_int_equal(wait_for(one, &request).code, MX_STATUS_ENDPOINT_UNREACHABLE);
}

/* --- messages */

static void fill(unsigned char *data, uint32_t length, unsigned seed)
{
	for (uint32_t i = 0; i < length; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 9) + seed);
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
	assert_true(ends_within(one, &send, PATIENCE));
	send = send_to("b", 1, 0x15a, false);
	assert_int_equal(wait_for(other, &request).match_info, 0x15a);
	assert_int_equal(byte, 'b');
	assert_true(ends_within(one, &send, PATIENCE));
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
	assert_ok(mx_probe(other, PATIENCE, 0xabc, UINT64_MAX, &status, &result));
	assert_int_equal(result, 1);
	assert_int_equal(status.msg_length, 5);
	assert_int_equal(status.xfer_length, 5);
	assert_null(status.context);
	receive = receive_from(bytes, 50, 0xabc, UINT64_MAX);
	assert_true(ends_within(other, &receive, PATIENCE));
	assert_true(ends_within(one, &send, PATIENCE));
	/* The source of a probe can be sent to. */
	assert_ok(mx_isend(other, NULL, 0, status.source, 1, NULL, &send));
	assert_ok(mx_irecv(one, NULL, 0, 1, UINT64_MAX, NULL, &receive));
	assert_int_equal(wait_for(one, &receive).code, MX_STATUS_SUCCESS);
	assert_true(ends_within(other, &send, PATIENCE));
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
	assert_ok(mx_wait_any(other, PATIENCE, 2, UINT64_MAX, &status, &result));
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
	assert_ok(mx_buffered(one, &send, PATIENCE, &result));
	assert_int_not_equal(result, 0);
	wait_for(one, &send);
	free(data);
}

/* --- threads */

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

static void nap(long milliseconds)
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
	void *(*const bodies[])(void *) = {blocks_in_wait, blocks_in_probe, blocks_in_peek};
	pthread_t threads[COUNT(bodies)];
	mx_request_t request;
	unsigned char byte;
	uint32_t result;

	(void)state;
	for (unsigned i = 0; i < COUNT(bodies); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, bodies[i], &byte), 0);
	nap(100);
	assert_ok(mx_wakeup(other));
	request = wake_and_join(threads[0]);
	assert_non_null(request);
	for (unsigned i = 1; i < COUNT(bodies); i++)
		assert_ptr_equal(wake_and_join(threads[i]), (void *)1);
	assert_ok(mx_cancel(other, &request, &result));
	assert_int_equal(result, 1);
}

static void *waits(void *data)
{
	mx_request_t *request = data;
	mx_status_t status;
	uint32_t result;

	assert_ok(mx_wait(other, request, PATIENCE, &status, &result));
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
	nap(20);
	for (unsigned i = 0; i < 4; i++) {
		send = send_to("w", 1, i, false);
		wait_for(one, &send);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &ended), 0);
		assert_ptr_equal(ended, (void *)1);
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
		assert_ok(mx_wait(endpoint, request, PATIENCE, &status, &result));
		break;
	case 1:
		assert_ok(mx_wait_any(
			endpoint, PATIENCE, turn->bits, MX_MATCH_MASK_NONE, &status, &result));
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

/* --- sessions */

static void test_restart(void **state)
{
	mx_endpoint_addr_t old = to_other;
	mx_request_t held = send_to("s", 1, 1, true), request;
	uint32_t before, after;
	void *context = NULL;
	int mark;

	(void)state;
	assert_ok(mx_set_endpoint_addr_context(old, &mark));
	assert_false(ends_within(one, &held, 5));
	assert_ok(mx_close_endpoint(other));
	assert_ok(mx_open_endpoint(1, 3, FILTER, NULL, 0, &other));
	assert_ok(mx_isend(one, NULL, 0, old, 5, NULL, &request));
	wait_for(one, &request);
	assert_int_not_equal(wait_for(one, &held).code, MX_STATUS_SUCCESS);
	to_other = connect_with(one, other, board_nic(1), 3, FILTER).source;
	assert_ok(mx_decompose_endpoint_addr2(old, NULL, NULL, &before));
	assert_ok(mx_decompose_endpoint_addr2(to_other, NULL, NULL, &after));
	assert_int_not_equal(before, after);
	assert_ok(mx_get_endpoint_addr_context(to_other, &context));
	assert_ptr_equal(context, &mark);
	assert_ok(mx_isend(one, NULL, 0, old, 5, NULL, &request));
	assert_int_not_equal(wait_for(one, &request).code, MX_STATUS_SUCCESS);
	assert_ok(mx_isend(one, NULL, 0, to_other, 6, NULL, &request));
	assert_int_equal(wait_for(one, &request).code, MX_STATUS_SUCCESS);
	/* Nothing of the old session was delivered. */
	assert_ok(mx_irecv(other, NULL, 0, 0, 0, NULL, &request));
	assert_int_equal(wait_for(other, &request).match_info, 6);
}

static size_t bytes_in_use(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* After a disconnect and a connect in the same lives messages flow as before, beyond a peer's share
 * of kept ones, both ways and also to the address that the other end has had all along; and they
 * take no more memory. */
static void test_reconnect(void **state)
{
	enum { MANY = 300, WARM = 4, TURNS_MOST = 10 };
	static mx_request_t sends[MANY];
	mx_endpoint_addr_t old = to_other;
	size_t before = 0;

	(void)state;
	for (unsigned turn = 0; turn < TURNS_MOST; turn++) {
		unsigned char byte;

		if (turn == WARM)
			before = bytes_in_use();
		for (unsigned i = 0; i < MANY; i++)
			sends[i] = send_to("x", 1, i, false);
		for (unsigned i = 0; i < MANY; i++) {
			mx_request_t receive = receive_from(&byte, 1, 0, 0);
			mx_status_t status = wait_for(other, &receive);

			assert_int_equal(status.code, MX_STATUS_SUCCESS);
			assert_int_equal(status.match_info, i);
		}
		for (unsigned i = 0; i < MANY; i++)
			assert_int_equal(wait_for(one, &sends[i]).code, MX_STATUS_SUCCESS);
		if (turn & 1) {
			assert_ok(mx_disconnect(one, to_other));
			to_other = connect_with(one, other, board_nic(1), 3, FILTER).source;
		} else {
			assert_ok(mx_disconnect(other, to_one));
			to_one = connect_with(other, one, board_nic(0), 3, FILTER).source;
			to_other = old;
		}
	}
	assert_true(bytes_in_use() < before + EAGER * 64);
}

/* An endpoint has room for 1,023 sessions at a time, and those that are over make room. Their
 * addresses are nobody's then. */
static void test_sessions_without_end(void **state)
{
	enum { MANY = 1100 };
	mx_endpoint_addr_t first = to_other;
	mx_request_t request, receive;
	void *context;
	uint64_t nic;
	int mark;

	(void)state;
	for (unsigned turn = 0; turn < MANY; turn++) {
		unsigned char byte;

		assert_ok(mx_disconnect(one, to_other));
		to_other = connect_with(one, other, board_nic(1), 3, FILTER).source;
		request = send_to("x", 1, turn, turn % 2 == 0);
		receive = receive_from(&byte, 1, 0, 0);
		assert_int_equal(wait_for(other, &receive).match_info, turn);
		assert_int_equal(wait_for(one, &request).code, MX_STATUS_SUCCESS);
	}
	assert_ok(mx_set_endpoint_addr_context(to_other, &mark));
	assert_ok(mx_set_endpoint_addr_context(first, &context));
	assert_ok(mx_get_endpoint_addr_context(first, &context));
	assert_null(context);
	assert_ok(mx_decompose_endpoint_addr(first, &nic, NULL));
	assert_int_equal(nic, 0);
	assert_ok(mx_isend(one, NULL, 0, first, 5, NULL, &request));
	assert_int_equal(wait_for(one, &request).code, MX_STATUS_BAD_SESSION);
	assert_ok(mx_disconnect(one, first));
	assert_ok(mx_get_endpoint_addr_context(to_other, &context));
	assert_ptr_equal(context, &mark);
	request = send_to("x", 1, 1, true);
	receive = receive_from(NULL, 0, 0, 0);
	wait_for(other, &receive);
	assert_int_equal(wait_for(one, &request).code, MX_STATUS_SUCCESS);
}

/* Connects that fail take no room for good. */
static void test_connects_that_fail(void **state)
{
	enum { IDS = 512, NODES = 3 };
	static mx_request_t requests[IDS];

	(void)state;
	for (unsigned node = 0; node < NODES; node++) {
		for (unsigned id = 0; id < IDS; id++) {
			assert_ok(mx_iconnect(
				one, board_nic(1) + 10 + node, id, FILTER, 0, NULL, &requests[id]));
			assert_ok(mx_set_request_timeout(one, requests[id], 1));
		}
		for (unsigned id = 0; id < IDS; id++)
			assert_int_equal(wait_for(one, &requests[id]).code, MX_STATUS_TIMEOUT);
	}
	(void)connect_with(one, other, board_nic(1), 3, FILTER);
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

enum { SMALL = 5000, LARGE = 2000 };

/* The sender's calls let go what waits at the sender for the receiver's credit. */
static void *floods(void *data)
{
	static mx_request_t sends[SMALL];

	for (unsigned i = 0; i < SMALL; i++)
		sends[i] = send_to(data, i < LARGE ? EAGER : 1, i, false);
	for (unsigned i = 0; i < SMALL; i++)
		assert_int_equal(wait_for(one, &sends[i]).code, MX_STATUS_SUCCESS);
	return NULL;
}

/* More messages than a share of headers, and than the blocks hold. */
static void test_flood(void **state)
{
	unsigned char *sent = calloc(1, EAGER), *got = calloc(1, EAGER);
	pthread_t sender;

	(void)state;
	assert_int_equal(pthread_create(&sender, NULL, floods, sent), 0);
	nap(200);
	for (unsigned i = 0; i < SMALL; i++) {
		mx_request_t receive = receive_from(got, EAGER, 0, 0);
		mx_status_t status = wait_for(other, &receive);

		assert_int_equal(status.match_info, i);
		assert_int_equal(status.msg_length, i < LARGE ? EAGER : 1);
	}
	assert_int_equal(pthread_join(sender, NULL), 0);
	free(sent);
	free(got);
}

int main(void)
{
#define with_both(test) cmocka_unit_test_setup_teardown(test, open_both, close_both)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_many),
		with_both(test_connect),
		with_both(test_address),
		with_both(test_lengths),
		with_both(test_truncated),
		with_both(test_segments),
		with_both(test_order),
		with_both(test_masks),
		with_both(test_synchronous),
		with_both(test_cancel),
		with_both(test_forget),
		with_both(test_probe),
		with_both(test_any),
		with_both(test_contexts),
		with_both(test_buffered),
		with_both(test_wakeup),
		with_both(test_threads),
		with_both(test_four_threads),
		with_both(test_restart),
		with_both(test_reconnect),
		with_both(test_sessions_without_end),
		with_both(test_connects_that_fail),
		with_both(test_request_timeout),
		with_both(test_timeouts_in_order),
		with_both(test_handles_of_any_bits),
		with_both(test_flood),
	};

	setenv("PTL_PEER_TIMEOUT", "2s", 1); /* of test_connect() */
	return cmocka_run_group_tests(tests, group_open, group_close);
}
