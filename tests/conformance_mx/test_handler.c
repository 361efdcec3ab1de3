/* SPDX-License-Identifier: BSD-3-Clause */
/* test_handler.c - the unexpected handler: what it is shown, what it may do, what becomes of the
 * message.
 *
 * Covers: lib/mx/handler.c. */
#include "../nap.h"
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#define FILTER  0xdecaf
#define TIMEOUT 60000
#define SEEN    64
#define LONG    200000
#define ROOM    2000

/* What the handler has seen, and what it does. */
static struct {
	unsigned calls;
	uint64_t bits[SEEN];
	uint32_t length[SEEN];
	unsigned char first[SEEN]; /* byte of the data */
	bool data[SEEN];
	mx_endpoint_addr_t source[SEEN];
	mx_unexp_handler_action_t action;
	mx_return_t (*act)(uint64_t bits, uint32_t length, mx_endpoint_addr_t source);
	mx_return_t acted;
	mx_request_t posted[SEEN];
} seen;

static mx_endpoint_t senders[2], target;
static mx_endpoint_addr_t to_target[2];
static unsigned char inbox[LONG + 1], outbox[LONG];

static mx_unexp_handler_action_t handler(
	void *context, mx_endpoint_addr_t source, uint64_t bits, uint32_t length, void *data)
{
	unsigned call = seen.calls++ % SEEN;

	assert_ptr_equal(context, &seen);
	seen.bits[call] = bits;
	seen.length[call] = length;
	seen.source[call] = source;
	seen.data[call] = data != NULL;
	if (data && length > 0)
		seen.first[call] = *(const unsigned char *)data;
	if (seen.act)
		seen.acted = seen.act(bits, length, source);
	return seen.action;
}

static void progress(void)
{
	assert_ok(mx_progress(target));
	for (unsigned i = 0; i < 2; i++)
		assert_ok(mx_progress(senders[i]));
}

static void await_calls_at_least(unsigned calls)
{
	for (unsigned looks = 1; seen.calls < calls; looks++) {
		progress();
		look_pause(looks);
	}
}

/* Until the handler has been called so often. */
static void await_calls(unsigned calls)
{
	await_calls_at_least(calls);
	assert_int_equal(seen.calls, calls);
}

static mx_status_t await_end(mx_endpoint_t endpoint, mx_request_t *request)
{
	mx_status_t status;
	uint32_t result = 0;

	for (unsigned i = 0; i < 2000000 && result == 0; i++) {
		assert_ok(mx_test(endpoint, request, &status, &result));
		progress();
	}
	assert_int_equal(result, 1);
	return status;
}

static mx_request_t send_from(unsigned sender, uint32_t length, uint64_t bits, bool synchronous)
{
	mx_segment_t segment = {outbox, length};
	mx_request_t request;

	outbox[0] = (unsigned char)bits;
	if (synchronous)
		assert_ok(mx_issend(
			senders[sender], &segment, 1, to_target[sender], bits, NULL, &request));
	else
		assert_ok(mx_isend(
			senders[sender], &segment, 1, to_target[sender], bits, NULL, &request));
	return request;
}

static void send_and_end(unsigned sender, uint32_t length, uint64_t bits)
{
	mx_request_t request = send_from(sender, length, bits, false);

	assert_int_equal(await_end(senders[sender], &request).code, MX_STATUS_SUCCESS);
}

static mx_request_t receive(uint64_t bits, uint64_t mask)
{
	mx_segment_t segment = {inbox, sizeof(inbox)};
	mx_request_t request;

	assert_ok(mx_irecv(target, &segment, 1, bits, mask, NULL, &request));
	return request;
}

static mx_status_t receive_and_end(uint64_t bits, uint64_t mask)
{
	mx_request_t request = receive(bits, mask);

	return await_end(target, &request);
}

static int open_with(uint32_t memory)
{
	mx_param_t param = {.key = MX_PARAM_UNEXP_QUEUE_MAX, .val.unexp_queue_max = memory};
	uint64_t nic_id;

	memset(&seen, 0, sizeof(seen));
	assert_ok(mx_open_endpoint(1, 3, FILTER, &param, 1, &target));
	assert_ok(mx_board_number_to_nic_id(1, &nic_id));
	for (unsigned i = 0; i < 2; i++) {
		mx_request_t request;
		mx_status_t status;
		uint32_t result = 0;

		assert_ok(mx_open_endpoint(0, 3 + i, FILTER, NULL, 0, &senders[i]));
		assert_ok(mx_iconnect(senders[i], nic_id, 3, FILTER, 0, NULL, &request));
		while (result == 0) {
			assert_ok(mx_test(senders[i], &request, &status, &result));
			assert_ok(mx_progress(target));
		}
		assert_int_equal(status.code, MX_STATUS_SUCCESS);
		to_target[i] = status.source;
	}
	assert_ok(mx_register_unexp_handler(target, handler, &seen));
	return 0;
}

static int open_all(void **state)
{
	(void)state;
	return open_with(UINT32_C(4) << 20);
}

/* All data stays at the senders. */
static int open_without_memory(void **state)
{
	(void)state;
	return open_with(65536);
}

static int close_all(void **state)
{
	(void)state;
	assert_ok(mx_close_endpoint(target));
	for (unsigned i = 0; i < 2; i++)
		assert_ok(mx_close_endpoint(senders[i]));
	return 0;
}

static void test_order_and_data(void **state)
{
	static const uint32_t lengths[] = {0, 1, 1024, 32768, 32769, 8};
	mx_request_t sends[COUNT(lengths)];

	(void)state;
	seen.action = MX_RECV_FINISHED;
	for (unsigned i = 0; i < COUNT(lengths); i++)
		sends[i] = send_from(0, lengths[i], 100 + i, false);
	await_calls(COUNT(lengths));
	for (unsigned i = 0; i < COUNT(lengths); i++) {
		assert_int_equal(seen.bits[i], 100 + i);
		assert_int_equal(seen.length[i], lengths[i]);
		if (lengths[i] <= 1024)
			assert_true(seen.data[i]);
		if (lengths[i] == 1 || lengths[i] == 8)
			assert_int_equal(seen.first[i], 100 + i);
		assert_int_equal(await_end(senders[0], &sends[i]).code,
			MX_STATUS_SUCCESS); /* also long ones */
	}
	progress();
	assert_int_equal(seen.calls, COUNT(lengths));
}

/* A declined message is kept, before newer ones, and is shown once. */
static void test_declined(void **state)
{
	static const uint32_t lengths[] = {4, LONG, 1024, 0, 32768};
	mx_request_t sends[COUNT(lengths)];
	mx_status_t status;
	uint32_t result;

	(void)state;
	for (unsigned i = 0; i < COUNT(lengths); i++)
		sends[i] = send_from(0, lengths[i], 7, false);
	await_calls(COUNT(lengths));
	assert_ok(mx_iprobe(target, 7, MX_MATCH_MASK_NONE, &status, &result));
	assert_int_equal(result, 1);
	assert_int_equal(status.msg_length, lengths[0]);
	for (unsigned i = 0; i < COUNT(lengths); i++) {
		memset(inbox, 0xee, sizeof(inbox));
		status = receive_and_end(7, MX_MATCH_MASK_NONE);
		assert_int_equal(status.code, MX_STATUS_SUCCESS);
		assert_int_equal(status.xfer_length, lengths[i]);
		assert_memory_equal(inbox, outbox, lengths[i]);
		assert_int_equal(inbox[lengths[i]], 0xee);
		assert_int_equal(await_end(senders[0], &sends[i]).code, MX_STATUS_SUCCESS);
	}
	assert_int_equal(seen.calls, COUNT(lengths));
	assert_ok(mx_iprobe(target, 0, 0, &status, &result));
	assert_int_equal(result, 0);
}

static mx_return_t post_receive(uint64_t bits, uint32_t length, mx_endpoint_addr_t source)
{
	mx_segment_t segment = {inbox, length};

	(void)source;
	return mx_irecv(target, &segment, 1, bits, MX_MATCH_MASK_NONE, NULL,
		&seen.posted[(seen.calls - 1) % SEEN]);
}

/* H1: a receive of exactly this message's length takes this message, and no other of the bits. */
static void test_receives_of_the_handler(void **state)
{
	static const uint32_t lengths[] = {9, LONG, 500, 0, 40000, 3};

	(void)state;
	seen.act = post_receive;
	for (unsigned i = 0; i < COUNT(lengths); i++) {
		mx_request_t sends[2];
		mx_status_t status;

		seen.calls = 0;
		sends[0] = send_from(0, lengths[i], 5, false);
		sends[1] = send_from(1, lengths[COUNT(lengths) - 1 - i], 5, false);
		await_calls(2);
		assert_int_equal(seen.acted, MX_SUCCESS);
		for (unsigned call = 1; call <= 2; call++) {
			status = await_end(target, &seen.posted[call - 1]);
			assert_int_equal(status.code, MX_STATUS_SUCCESS);
			assert_int_equal(status.xfer_length, seen.length[call - 1]);
			assert_true(memcmp(&status.source, &seen.source[call - 1],
					    sizeof(status.source)) == 0);
		}
		for (unsigned sender = 0; sender < 2; sender++)
			await_end(senders[sender], &sends[sender]);
	}
}

/* It has not ended, however long one waits. */
static void stays_pending(mx_request_t *request)
{
	mx_status_t status;
	uint32_t result;

	for (unsigned i = 0; i < 1000; i++)
		progress();
	assert_ok(mx_test(senders[0], request, &status, &result));
	assert_int_equal(result, 0);
}

/* A synchronous send ends when the handler finishes its message, or when a receive has matched it:
 * not when it was shown, also where its data was fetched for that. */
static void test_synchronous_ends_when_it_is_received(void **state)
{
	static const uint32_t lengths[] = {0, 5, 1024, 1025, 32768, 32769, LONG};

	(void)state;
	for (unsigned i = 0; i < COUNT(lengths); i++) {
		mx_request_t send;

		seen.calls = 0;
		assert_ok(mx_disable_progression(target));
		send = send_from(0, lengths[i], 1, true);
		stays_pending(&send);
		assert_int_equal(seen.calls, 0);
		seen.action = MX_RECV_FINISHED;
		assert_ok(mx_reenable_progression(target));
		assert_int_equal(await_end(senders[0], &send).code, MX_STATUS_SUCCESS);
		seen.action = MX_RECV_CONTINUE;
		send = send_from(0, lengths[i], 3, true);
		await_calls(2);
		stays_pending(&send);
		assert_int_equal(receive_and_end(3, MX_MATCH_MASK_NONE).xfer_length, lengths[i]);
		assert_memory_equal(inbox, outbox, lengths[i]);
		assert_int_equal(await_end(senders[0], &send).code, MX_STATUS_SUCCESS);
		assert_int_equal(seen.calls, 2);
	}
}

/* Two receives: for anything, and for 2 alone. */
static mx_request_t anything, two;

static mx_return_t post_both(uint64_t bits, uint32_t length, mx_endpoint_addr_t source)
{
	(void)bits;
	(void)length;
	(void)source;
	anything = receive(0, 0);
	two = receive(2, MX_MATCH_MASK_NONE);
	return MX_SUCCESS;
}

/* Receives stay in their order also when the message that one of them matches is finished. */
static void test_receives_stay_in_order(void **state)
{
	mx_status_t status;
	uint32_t result;

	(void)state;
	seen.act = post_both;
	seen.action = MX_RECV_FINISHED;
	send_and_end(0, 8, 1);
	await_calls(1);
	send_and_end(0, 8, 2);
	assert_int_equal(await_end(target, &anything).match_info, 2);
	assert_ok(mx_test(target, &two, &status, &result));
	assert_int_equal(result, 0);
	send_and_end(0, 8, 2);
	assert_int_equal(await_end(target, &two).code, MX_STATUS_SUCCESS);
	assert_int_equal(seen.calls, 1);
}

static mx_return_t answer(uint64_t bits, uint32_t length, mx_endpoint_addr_t source)
{
	mx_segment_t segment = {outbox, length};

	return mx_isend(target, &segment, 1, source, bits + 1, NULL, NULL);
}

static void test_it_sends(void **state)
{
	mx_segment_t segment = {inbox, sizeof(inbox)};
	mx_request_t request;
	mx_status_t status;

	(void)state;
	seen.act = answer;
	seen.action = MX_RECV_FINISHED;
	assert_ok(mx_irecv(senders[1], &segment, 1, 11, MX_MATCH_MASK_NONE, NULL, &request));
	send_and_end(1, 64, 10);
	status = await_end(senders[1], &request);
	assert_int_equal(status.code, MX_STATUS_SUCCESS);
	assert_int_equal(status.xfer_length, 64);
}

static mx_return_t close_in_it(uint64_t bits, uint32_t length, mx_endpoint_addr_t source)
{
	(void)bits;
	(void)length;
	(void)source;
	return mx_close_endpoint(target);
}

static mx_return_t finalize_in_it(uint64_t bits, uint32_t length, mx_endpoint_addr_t source)
{
	(void)bits;
	(void)length;
	(void)source;
	return mx_finalize();
}

static mx_return_t wait_in_it(uint64_t bits, uint32_t length, mx_endpoint_addr_t source)
{
	mx_status_t status;
	uint32_t result;

	(void)length;
	(void)source;
	assert_ok(mx_test_any(target, bits, MX_MATCH_MASK_NONE, &status, &result));
	return mx_wait_any(target, TIMEOUT, bits, MX_MATCH_MASK_NONE, &status, &result);
}

static mx_return_t disconnect_in_it(uint64_t bits, uint32_t length, mx_endpoint_addr_t source)
{
	(void)bits;
	(void)length;
	return mx_disconnect(target, source);
}

static void test_what_it_may_not_do(void **state)
{
	mx_status_t status;
	uint32_t result;

	(void)state;
	seen.act = close_in_it;
	send_and_end(0, 1, 1);
	await_calls(1);
	assert_int_equal(seen.acted, MX_CLOSE_IN_HANDLER);
	seen.act = finalize_in_it;
	send_and_end(0, 1, 4);
	await_calls(2);
	assert_int_equal(seen.acted, MX_CLOSE_IN_HANDLER);
	seen.act = wait_in_it;
	send_and_end(0, 1, 2);
	await_calls(3);
	assert_int_equal(seen.acted, MX_BAD_BAD_BAD);
	/* The message of a peer that it disconnects is gone, the others are not. */
	seen.act = disconnect_in_it;
	send_and_end(1, 1, 3);
	await_calls(4);
	assert_int_equal(seen.acted, MX_SUCCESS);
	assert_ok(mx_iprobe(target, 3, MX_MATCH_MASK_NONE, &status, &result));
	assert_int_equal(result, 0);
	assert_int_equal(receive_and_end(2, MX_MATCH_MASK_NONE).code, MX_STATUS_SUCCESS);
	assert_int_equal(receive_and_end(1, MX_MATCH_MASK_NONE).code, MX_STATUS_SUCCESS);
	assert_int_equal(receive_and_end(4, MX_MATCH_MASK_NONE).code, MX_STATUS_SUCCESS);
}

static void test_what_is_not_supported(void **state)
{
	mx_request_t request;

	(void)state;
	assert_code(mx_register_unexp_callback(target, NULL, NULL), MX_FAILURE);
	assert_code(mx_iput(target, inbox, 1, to_target[0], 0, NULL, &request), MX_FAILURE);
	assert_code(mx_iget(target, inbox, 1, to_target[0], 0, NULL, &request), MX_FAILURE);
	assert_code(mx_progress(NULL), MX_BAD_ENDPOINT);
}

static void *wait_for_one(void *data)
{
	mx_status_t *status = data;
	uint32_t result;

	assert_ok(mx_wait_any(target, TIMEOUT, 0, 0, status, &result));
	assert_int_equal(result, 1);
	return NULL;
}

/* A thread that is blocked runs it, and what it has posted ends that thread's wait. */
static void test_a_thread_that_blocks_runs_it(void **state)
{
	mx_status_t status = {.code = MX_STATUS_TIMEOUT};
	mx_request_t request;
	pthread_t thread;

	(void)state;
	seen.act = post_receive;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &status), 0);
	request = send_from(0, ROOM, 6, false);
	assert_int_equal(await_end(senders[0], &request).code, MX_STATUS_SUCCESS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(status.code, MX_STATUS_SUCCESS);
	assert_int_equal(status.xfer_length, ROOM);
}

static atomic_int closing;

/* Opens and closes an endpoint while another thread waits for this call to close its own. */
static mx_return_t open_another(uint64_t bits, uint32_t length, mx_endpoint_addr_t source)
{
	mx_endpoint_t another;

	(void)bits;
	(void)length;
	(void)source;
	atomic_store(&closing, 1);
	while (atomic_load(&closing) != 2)
		nap();
	usleep(20000);
	assert_ok(mx_open_endpoint(0, 20, FILTER, NULL, 0, &another));
	return mx_close_endpoint(another);
}

static void *run_handler(void *data)
{
	(void)data;
	while (atomic_load(&closing) == 0)
		(void)mx_progress(target);
	return NULL;
}

static void test_it_opens_another_while_its_own_closes(void **state)
{
	pthread_t thread;

	(void)state;
	atomic_store(&closing, 0);
	seen.act = open_another;
	seen.acted = MX_FAILURE;
	send_from(0, 1, 1, false);
	assert_int_equal(pthread_create(&thread, NULL, run_handler, NULL), 0);
	while (atomic_load(&closing) == 0)
		assert_ok(mx_progress(senders[0]));
	atomic_store(&closing, 2);
	assert_ok(mx_close_endpoint(target));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(seen.acted, MX_SUCCESS);
	assert_ok(mx_open_endpoint(1, 3, FILTER, NULL, 0, &target));
}

/* A crowd that nobody receives: what is declined meets a bound, and nothing is lost. */
static void test_a_flood_is_shown_and_kept(void **state)
{
	enum { FLOOD = 3000 };
	static mx_request_t sends[FLOOD];

	(void)state;
	assert_ok(mx_register_unexp_handler(target, NULL, NULL));
	for (unsigned i = 0; i < FLOOD; i++)
		sends[i] = send_from(0, 16, 1000 + i, false);
	for (unsigned i = 0; i < FLOOD; i++) {
		mx_status_t status = receive_and_end(0, 0);

		assert_int_equal(status.match_info, 1000 + i);
		if (i == FLOOD / 2) { /* those that are kept by now are shown, too */
			assert_ok(mx_register_unexp_handler(target, handler, &seen));
			await_calls_at_least(10);
			assert_ok(mx_register_unexp_handler(target, NULL, NULL));
		}
	}
	for (unsigned i = 0; i < FLOOD; i++)
		await_end(senders[0], &sends[i]);
}

#define with_all(test)       cmocka_unit_test_setup_teardown(test, open_all, close_all)
#define without_memory(test) cmocka_unit_test_setup_teardown(test, open_without_memory, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_all(test_order_and_data),
		with_all(test_declined),
		with_all(test_receives_of_the_handler),
		without_memory(test_order_and_data),
		without_memory(test_declined),
		without_memory(test_receives_of_the_handler),
		with_all(test_receives_stay_in_order),
		with_all(test_synchronous_ends_when_it_is_received),
		without_memory(test_synchronous_ends_when_it_is_received),
		with_all(test_it_sends),
		with_all(test_what_it_may_not_do),
		with_all(test_what_is_not_supported),
		with_all(test_a_thread_that_blocks_runs_it),
		with_all(test_it_opens_another_while_its_own_closes),
		with_all(test_a_flood_is_shown_and_kept),
	};

	return cmocka_run_group_tests(tests, group_open, group_close);
}
