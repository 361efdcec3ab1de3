/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sessions.c - endpoints of one process, their connects, and their ends.
 *
 * Covers: lib/mx/endpoint.c, lib/mx/service.c, lib/mx/session.c. */
#include "pair.h"

#include "../signal_mask.h"

#include <malloc.h>

static void no_thread_takes_a_signal(void **state)
{
	(void)state;
	assert_true(threads_leave_signals() >= 1);
}

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
		assert_true(ends_within(endpoints[i], &receive, TIMEOUT));
		assert_true(ends_within(endpoints[0], &send, TIMEOUT));
	}
	assert_code(mx_open_endpoint(0, MANY, FILTER, NULL, 0, &more), MX_NO_RESOURCES);
	assert_code(mx_open_endpoint(MX_ANY_NIC, 1, FILTER, NULL, 0, &more), MX_NO_RESOURCES);
	assert_code(mx_open_endpoint(0, MX_ANY_ENDPOINT, FILTER, NULL, 0, &more), MX_NO_RESOURCES);
	assert_code(mx_open_endpoint(1, 1, FILTER, NULL, 0, &more), MX_BUSY);
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
	assert_ok(mx_connect(one, board_nic(0), 3, FILTER, TIMEOUT, &address));
	assert_code(mx_connect(one, board_nic(0), 3, FILTER + 1, TIMEOUT, &address),
		MX_BAD_CONNECTION_KEY);
	/* Nobody is there. */
	assert_code(
		mx_connect(one, board_nic(0), 44, FILTER, TIMEOUT, &address), MX_CONNECTION_FAILED);
}

/* Nobody makes calls on the endpoint that is asked, nor on the one that receives. */
static void test_connect_to_a_sleeper(void **state)
{
	mx_endpoint_t asks, sleeps;
	mx_endpoint_addr_t address;
	mx_request_t request;
	mx_status_t status;
	uint32_t result;

	(void)state;
	for (unsigned board = 0; board < 2; board++) {
		assert_ok(mx_open_endpoint(0, 7, FILTER, NULL, 0, &asks));
		assert_ok(mx_open_endpoint(board, 8, FILTER, NULL, 0, &sleeps));
		assert_ok(mx_connect(asks, board_nic(board), 8, FILTER, TIMEOUT, &address));
		assert_code(mx_connect(asks, board_nic(board), 8, FILTER + 1, TIMEOUT, &address),
			MX_BAD_CONNECTION_KEY);
		assert_ok(mx_isend(asks, NULL, 0, address, 5, NULL, &request));
		assert_true(ends_within(asks, &request, TIMEOUT));
		assert_ok(mx_probe(sleeps, TIMEOUT, 5, MX_MATCH_MASK_NONE, &status, &result));
		assert_int_equal(result, 1);
		assert_ok(mx_connect(sleeps, board_nic(0), 7, FILTER, TIMEOUT, &address));
		assert_ok(mx_close_endpoint(asks));
		assert_ok(mx_close_endpoint(sleeps));
	}
}

/* Board 1 is another host's, as far as board 0 can tell. */
static void test_connect_to_another_host_whose_endpoint_has_closed(void **state)
{
	mx_endpoint_t asks, closes;
	mx_endpoint_addr_t address;

	(void)state;
	assert_ok(mx_open_endpoint(0, 7, FILTER, NULL, 0, &asks));
	assert_ok(mx_open_endpoint(1, 8, FILTER, NULL, 0, &closes));
	assert_ok(mx_connect(asks, board_nic(1), 8, FILTER, TIMEOUT, &address));
	assert_ok(mx_close_endpoint(closes));
	for (unsigned n = 0; n < 3; n++)
		assert_code(mx_connect(asks, board_nic(1), 8, FILTER, TIMEOUT, &address),
			MX_CONNECTION_FAILED);
	/* Nothing was ever heard of this one. */
	assert_code(mx_connect(asks, board_nic(1), 9, FILTER, TIMEOUT, &address), MX_TIMEOUT);
	assert_ok(mx_open_endpoint(1, 8, FILTER, NULL, 0, &closes));
	assert_ok(mx_connect(asks, board_nic(1), 8, FILTER, TIMEOUT, &address));
	assert_ok(mx_close_endpoint(closes));
	assert_ok(mx_close_endpoint(asks));
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

/* Sends that are under way when the peer closes, and those that begin afterwards. */
static void test_close(void **state)
{
	mx_request_t held = send_to("s", 1, 1, true);

	(void)state;
	assert_false(ends_within(one, &held, 5));
	assert_ok(mx_close_endpoint(other));
	assert_int_equal(wait_for(one, &held).code, MX_STATUS_ENDPOINT_CLOSED);
	held = send_to("s", 1, 1, true);
	assert_int_equal(wait_for(one, &held).code, MX_STATUS_ENDPOINT_CLOSED);
	assert_ok(mx_open_endpoint(1, 3, FILTER, NULL, 0, &other));
	to_other = connect_with(one, other, board_nic(1), 3, FILTER).source;
	assert_ok(mx_close_endpoint(other));
	held = send_to("s", 1, 1, true);
	assert_int_equal(wait_for(one, &held).code, MX_STATUS_ENDPOINT_CLOSED);
	assert_ok(mx_open_endpoint(1, 3, FILTER, NULL, 0, &other));
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

int main(void)
{
#define with_both(test) cmocka_unit_test_setup_teardown(test, open_both, close_both)
	const struct CMUnitTest tests[] = {
		with_both(no_thread_takes_a_signal),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_many),
		with_both(test_connect),
		cmocka_unit_test(test_connect_to_a_sleeper),
		cmocka_unit_test(test_connect_to_another_host_whose_endpoint_has_closed),
		with_both(test_address),
		with_both(test_restart),
		with_both(test_close),
		with_both(test_reconnect),
		with_both(test_sessions_without_end),
		with_both(test_connects_that_fail),
	};

	setenv("PTL_PEER_TIMEOUT", "2s", 1); /* of test_connect() */
	return cmocka_run_group_tests(tests, group_open, group_close);
}
