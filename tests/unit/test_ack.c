/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ack.c - acknowledgements of puts: when one is sent, and what comes of one that arrives. */

#include <base/handle.h>

#include "arrivals.h"

static void put__is_acknowledged_after_its_end_when_asked(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);
	struct fake_sent *ack;

	region.length = 6;
	region.options |= REGION_TRUNCATE;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	header.handle = 0xabcdef;
	header.operation = 33;
	header.match_bits = 5;
	header.offset = 77;
	put(&header, 10);
	ack = fake_next();
	assert_non_null(ack);
	assert_int_equal(ack->to.nid, RIG_PEER.nid);
	assert_int_equal(ack->to.pid, RIG_PEER.pid);
	assert_int_equal(ack->length, 0);
	assert_int_equal(ack->header.kind, MESSAGE_ACK);
	assert_int_equal(ack->header.handle, 0xabcdef);
	assert_int_equal(ack->header.operation, 33);
	assert_int_equal(ack->header.match_bits, 5);
	assert_int_equal(ack->header.offset, 77);
	assert_int_equal(ack->header.requested, 10);
	assert_int_equal(ack->header.value, 6);
	fake_finish(ack, TRANSPORT_OK);
	assert_null(fake_next());
}

static void put__is_not_acknowledged_unasked_or_when_disabled_or_when_dropped(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);

	header.handle = 5;
	put(&header, 4); /* no entry */
	attach_any(rig, 0, REGION_PUT | REGION_NO_ACK);
	put(&header, 4);
	assert_null(fake_next());
	assert_int_equal(rig_counter(rig, puts_received), 1);
	header.handle = 0;
	attach_any(rig, 0, REGION_PUT);
	put(&header, 4);
	assert_null(fake_next());
}

static void put__is_acknowledged_also_when_it_unlinks_its_region(void **state)
{
	struct rig *rig = *state;
	struct region_description region = RIG_REGION(memory, 0);
	struct message_header header = rig_put_header(0);

	region.threshold = 1;
	rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_OP);
	header.handle = 5;
	put(&header, 4);
	assert_int_equal(fake_next()->header.kind, MESSAGE_ACK);
}

static struct message_header ack_header(uint64_t handle, uint64_t link)
{
	return (struct message_header){.kind = MESSAGE_ACK,
		.handle = handle,
		.operation = link,
		.requested = 20,
		.value = 10,
		.offset = 4,
		.match_bits = 6};
}

/* A put that asks for an acknowledgement, and that. */
static struct fake_sent *put_sent(
	struct rig *rig, uint64_t queue, uint64_t region, struct message_header *ack)
{
	struct fake_sent *sent;

	assert_true(rig_put(rig, region, &(struct rig_move){.to = RIG_PEER, .acknowledge = true}));
	rig_event(rig, queue, EVENT_SEND_START);
	sent = fake_next();
	*ack = ack_header(sent->header.handle, sent->header.operation);
	return sent;
}

static void ack__is_logged_and_costs_one_of_the_threshold(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header;
	struct event event;
	uint64_t handle;

	region.threshold = 2;
	handle = rig_bind(rig, &region);
	header = ack_header(handle, 9);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	event = rig_event(rig, queue, EVENT_ACK);
	assert_int_equal(event.link, 9);
	assert_int_equal(event.requested, 20);
	assert_int_equal(event.moved, 10);
	assert_int_equal(event.offset, 4);
	assert_int_equal(event.match_bits, 6);
	assert_int_equal(event.nid, RIG_PEER.nid);
	assert_int_equal(event.threshold, 1);
	assert_int_equal(rig_threshold(rig, handle), 1);
	assert_int_equal(rig_counter(rig, acks_delivered), 1);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	fake_deliver(RIG_PEER, &header, NULL, 0); /* at 0: logged, and it costs nothing */
	rig_event(rig, queue, EVENT_ACK);
	assert_int_equal(rig_event(rig, queue, EVENT_ACK).threshold, 0);
	assert_int_equal(rig_drops(rig), 0);
}

static void ack__that_exhausts_its_region_unlinks_it_when_the_send_has_ended(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header;
	struct fake_sent *sent;
	uint64_t handle;

	for (int early = 0; early < 2; early++) {
		region.threshold = 2;
		handle = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_OP);
		sent = put_sent(rig, queue, handle, &header);
		if (early) {
			fake_deliver(RIG_PEER, &header, NULL, 0);
			rig_no_event(rig, queue);
			fake_finish(sent, TRANSPORT_OK);
			rig_event(rig, queue, EVENT_SEND_END);
		} else {
			fake_finish(sent, TRANSPORT_OK);
			rig_event(rig, queue, EVENT_SEND_END);
			fake_deliver(RIG_PEER, &header, NULL, 0);
		}
		assert_int_equal(rig_event(rig, queue, EVENT_ACK).link, sent->header.operation);
		assert_int_equal(rig_event(rig, queue, EVENT_UNLINK).link, sent->header.operation);
		rig_no_event(rig, queue);
	}
}

/* It proves that the put has arrived, also when the transport never hears so. */
static void ack__that_comes_before_the_sends_end_waits_for_it(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header;
	struct fake_sent *sent;
	uint64_t handle;
	struct event ack;

	region.threshold = 2;
	handle = rig_bind(rig, &region);
	sent = put_sent(rig, queue, handle, &header);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	rig_no_event(rig, queue);
	fake_finish(sent, TRANSPORT_DEAD);
	assert_int_equal(rig_event(rig, queue, EVENT_SEND_END).fail, TRANSPORT_OK);
	ack = rig_event(rig, queue, EVENT_ACK);
	assert_int_equal(ack.link, sent->header.operation);
	assert_int_equal(ack.moved, header.value);
	assert_int_equal(ack.offset, header.offset);
	assert_int_equal(ack.threshold, 0);
	rig_no_event(rig, queue);
}

static void ack__whose_descriptor_or_queue_is_gone_is_dropped(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 1);
	uint64_t handle = rig_bind(rig, &RIG_REGION(memory, queue));
	uint64_t silent = rig_bind(rig, &RIG_REGION(memory, 0));
	uint32_t index = handle_index(handle), generation = handle_generation(handle);
	const uint64_t wrong[] = {
		0,
		UINT64_MAX,
		silent, /* no queue */
		handle_make(HANDLE_REGION, RIG_INTERFACE, index, generation + 1),
		handle_make(HANDLE_REGION, RIG_INTERFACE + 1, index, generation),
		handle_make(HANDLE_REGION, RIG_INTERFACE, HANDLE_INDEX_MAX, generation),
		handle_make(HANDLE_ENTRY, RIG_INTERFACE, index, generation),
		handle_make(HANDLE_QUEUE, RIG_INTERFACE, index, generation),
	};
	struct message_header header;
	unsigned long count = 0;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		header = ack_header(wrong[i], 1);
		fake_deliver(RIG_PEER, &header, NULL, 0);
		assert_int_equal(rig_counter(rig, dropped_late_ack), ++count);
	}
	header = ack_header(handle, 1);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	fake_deliver(RIG_PEER, &header, NULL, 0); /* the queue is full */
	assert_int_equal(rig_counter(rig, dropped_late_ack), ++count);
	assert_int_equal(rig_counter(rig, events_lost), 1);
	assert_int_equal(rig_queue_free(rig, queue), ANSWER_OK);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	assert_int_equal(rig_counter(rig, dropped_late_ack), ++count);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	assert_int_equal(rig_counter(rig, dropped_late_ack), ++count);
	assert_int_equal(rig_drops(rig), count);
}

#define test(name) cmocka_unit_test_setup_teardown(name, arrivals_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(put__is_acknowledged_after_its_end_when_asked),
		test(put__is_not_acknowledged_unasked_or_when_disabled_or_when_dropped),
		test(put__is_acknowledged_also_when_it_unlinks_its_region),
		test(ack__is_logged_and_costs_one_of_the_threshold),
		test(ack__that_exhausts_its_region_unlinks_it_when_the_send_has_ended),
		test(ack__that_comes_before_the_sends_end_waits_for_it),
		test(ack__whose_descriptor_or_queue_is_gone_is_dropped),
	};

	return cmocka_run_group_tests(tests, arrivals_in_pieces, NULL) +
	       cmocka_run_group_tests(tests, arrivals_whole, NULL);
}
