/* SPDX-License-Identifier: BSD-3-Clause */
/* test_get.c - gets that arrive, and what answers those of this process: replies, refusals,
 * probes.
 *
 * Covers: lib/engine/incoming.c, lib/engine/outgoing.c.
 */

#include "arrivals.h"

/* --- gets */

static void get__is_answered_with_the_data_and_ends_when_the_reply_has_left(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = attach_any(rig, queue, REGION_GET | REGION_REMOTE_OFFSET);
	struct message_header header = rig_get_header(10);
	struct event event;
	struct fake_sent *reply;

	header.offset = 4;
	header.match_bits = 9;
	header.handle = 0x55;
	header.operation = 0x66;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	event = rig_event(rig, queue, EVENT_GET_START);
	assert_int_equal(event.requested, 10);
	assert_int_equal(event.moved, 10);
	assert_int_equal(event.offset, 4);
	assert_int_equal(event.value, 0);
	reply = fake_next();
	assert_int_equal(reply->header.kind, MESSAGE_REPLY);
	assert_int_equal(reply->header.handle, 0x55);
	assert_int_equal(reply->header.operation, 0x66);
	assert_int_equal(reply->header.match_bits, 9);
	assert_int_equal(reply->header.requested, 10);
	assert_int_equal(reply->header.value, 10);
	assert_ptr_equal(reply->data, memory + 4);
	assert_int_equal(reply->length, 10);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_PENDING);
	rig_no_event(rig, queue);
	fake_finish(reply, TRANSPORT_OK);
	assert_int_equal(rig_event(rig, queue, EVENT_GET_END).link, event.sequence);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
}

static void get__grows_the_local_offset_and_is_truncated(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 16);
	struct message_header header = rig_get_header(50);
	struct fake_sent *reply;

	attach_any(rig, queue, REGION_GET | REGION_TRUNCATE);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	header.requested = UINT64_MAX;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	reply = fake_next();
	assert_int_equal(reply->length, 50);
	reply = fake_next();
	assert_int_equal(reply->length, 14);
	assert_ptr_equal(reply->data, memory + 50);
	assert_int_equal(reply->header.value, 14);
	assert_int_equal(reply->header.requested, 50);
	reply = fake_next();
	assert_int_equal(reply->length, 0);
	assert_int_equal(rig_event(rig, queue, EVENT_GET_START).moved, 50);
	assert_int_equal(rig_event(rig, queue, EVENT_GET_START).moved, 14);
	assert_int_equal(rig_event(rig, queue, EVENT_GET_START).moved, 0);
}

static void get__whose_reply_fails_ends_in_get_fail(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct message_header header = rig_get_header(4);

	attach_any(rig, queue, REGION_GET);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	fake_finish(fake_next(), TRANSPORT_DEAD);
	rig_event(rig, queue, EVENT_GET_START);
	assert_int_equal(rig_event(rig, queue, EVENT_GET_FAILED).fail, TRANSPORT_DEAD);
}

static void get__that_is_discarded_is_refused_by_name(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_get_header(4);
	struct fake_sent *refusal;

	attach_any(rig, 0, REGION_PUT);
	header.handle = 0x77;
	header.operation = 0x88;
	header.match_bits = 3;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	refusal = fake_next();
	assert_int_equal(refusal->header.kind, MESSAGE_REFUSE);
	assert_int_equal(refusal->header.handle, 0x77);
	assert_int_equal(refusal->header.operation, 0x88);
	assert_int_equal(refusal->to.nid, RIG_PEER.nid);
	assert_int_equal(refusal->length, 0);
	assert_int_equal(rig_counter(rig, dropped_no_match), 1);
	fake_finish(refusal, TRANSPORT_DEAD);
	header.cookie = 1;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	assert_int_equal(fake_next()->header.kind, MESSAGE_REFUSE);
	header.portal = RIG_PORTALS;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	assert_int_equal(fake_next()->header.kind, MESSAGE_REFUSE);
	assert_int_equal(rig_drops(rig), 3);
}

/* --- replies, refusals */

/* A get on its way, its request acknowledged; the reply's header. */
static struct message_header get_sent(struct rig *rig, uint64_t region)
{
	struct rig_move move = {.to = RIG_PEER, .portal = 2, .bits = 21, .offset = 100};
	struct fake_sent *sent;
	struct message_header header;

	assert_true(rig_get(rig, region, &move));
	sent = fake_next();
	header = sent->header;
	fake_finish(sent, TRANSPORT_OK);
	header.kind = MESSAGE_REPLY;
	header.uid = 0;
	header.cookie = 0;
	return header;
}

static struct fake_arrival *reply(struct message_header *header, uint64_t length)
{
	header->value = length;
	return fake_deliver(RIG_PEER, header, data, length);
}

static void reply__lands_at_the_regions_start_and_costs_one(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header;
	struct event event;
	uint64_t handle;

	region.threshold = 1;
	handle = rig_bind(rig, &region);
	header = get_sent(rig, handle);
	rig_no_event(rig, queue);
	assert_int_equal(rig_threshold(rig, handle), 1);
	reply(&header, 20);
	assert_memory_equal(memory, data, 20);
	event = rig_event(rig, queue, EVENT_REPLY_START);
	assert_int_equal(event.moved, 20);
	assert_int_equal(event.requested, 64);
	assert_int_equal(event.offset, 0);
	assert_int_equal(event.nid, RIG_PEER.nid);
	assert_int_equal(event.portal, 2);
	assert_int_equal(event.match_bits, 21);
	assert_int_equal(event.region, handle);
	assert_int_equal(event.threshold, 0);
	assert_int_equal(rig_event(rig, queue, EVENT_REPLY_END).link, event.sequence);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
	assert_int_equal(rig_drops(rig), 0);
}

static void reply__is_never_refused_for_threshold_and_cut_to_the_region(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header first, second;
	uint64_t handle;

	region.threshold = 1;
	handle = rig_bind(rig, &region);
	first = get_sent(rig, handle);
	second = get_sent(rig, handle);
	reply(&first, 1);
	region.length = 5;
	region.threshold = 0;
	assert_int_equal(rig_update(rig, handle, &region, 0, NULL), ANSWER_OK);
	reply(&second, 8);
	rig_event(rig, queue, EVENT_REPLY_START);
	rig_event(rig, queue, EVENT_REPLY_END);
	assert_int_equal(rig_event(rig, queue, EVENT_REPLY_START).moved, 5);
	rig_event(rig, queue, EVENT_REPLY_END);
	assert_memory_equal(memory, data, 5);
	assert_int_equal(memory[5], 0);
}

static void reply__that_comes_before_its_request_is_acknowledged_ends_once(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t handle = rig_bind(rig, &RIG_REGION(memory, queue));
	struct rig_move move = {.to = RIG_PEER};
	const enum transport_fail ends[] = {TRANSPORT_OK, TRANSPORT_DEAD};

	for (unsigned i = 0; i < 2; i++) {
		struct message_header header;
		struct fake_sent *sent;
		struct fake_arrival *arrival;

		assert_true(rig_get(rig, handle, &move));
		sent = fake_next();
		header = sent->header;
		header.kind = MESSAGE_REPLY;
		header.value = 3;
		if (i == 0) {
			reply(&header, 3);
			fake_finish(sent, ends[i]);
		} else {
			arrival = fake_begin(RIG_PEER, &header, 3);
			fake_finish(sent, ends[i]);
			fake_end(arrival, ends[i]);
		}
		rig_event(rig, queue, EVENT_REPLY_START);
		assert_int_equal(
			rig_event(rig, queue, i == 0 ? EVENT_REPLY_END : EVENT_REPLY_FAILED).fail,
			ends[i]);
		rig_no_event(rig, queue);
		reply(&header, 3);
		assert_int_equal(rig_counter(rig, dropped_late_reply), i + 1);
	}
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
	assert_int_equal(pool_taken(&rig->engine->operations), 0);
}

static void reply__that_nobody_asked_for_is_dropped(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t handle = rig_bind(rig, &RIG_REGION(memory, queue));
	struct message_header good = get_sent(rig, handle), header;
	const struct process stranger = {.nid = RIG_PEER.nid, .pid = RIG_PEER.pid + 1};
	unsigned long drops = 0;

	good.value = 4;
	header = good;
	header.operation += UINT64_C(1) << 32;
	reply(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_late_reply), ++drops);
	header = good;
	header.operation = UINT64_MAX;
	reply(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_late_reply), ++drops);
	header = good;
	header.handle++;
	reply(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_late_reply), ++drops);
	fake_deliver(stranger, &good, data, 4);
	assert_int_equal(rig_counter(rig, dropped_late_reply), ++drops);
	rig_no_event(rig, queue);
	assert_int_equal(memory[0], 0);
	/* A second one while the first is still landing. */
	fake_begin(RIG_PEER, &good, 4);
	reply(&good, 4);
	assert_int_equal(rig_counter(rig, dropped_late_reply), ++drops);
	rig_event(rig, queue, EVENT_REPLY_START);
	rig_no_event(rig, queue);
}

static void reply__that_exhausts_its_region_unlinks_it(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header;
	uint64_t handle, link;

	region.threshold = 1;
	handle = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_OP);
	header = get_sent(rig, handle);
	reply(&header, 4);
	link = rig_event(rig, queue, EVENT_REPLY_START).sequence;
	rig_event(rig, queue, EVENT_REPLY_END);
	assert_int_equal(rig_event(rig, queue, EVENT_UNLINK).link, link);
}

static void refusal__ends_the_get_in_reply_fail_once(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header;
	struct event event;
	uint64_t handle;

	region.threshold = 2;
	handle = rig_bind(rig, &region);
	header = get_sent(rig, handle);
	header.kind = MESSAGE_REFUSE;
	header.value = 0;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	event = rig_event(rig, queue, EVENT_REPLY_FAILED);
	assert_int_equal(event.fail, FAIL_UNDELIVERABLE);
	assert_int_equal(event.link, event.sequence);
	assert_int_equal(event.moved, 0);
	assert_int_equal(event.nid, RIG_PEER.nid);
	assert_int_equal(event.portal, 2);
	assert_int_equal(event.threshold, 1);
	/* Twice is none; and it is no drop, since nobody misses anything. */
	fake_deliver(RIG_PEER, &header, NULL, 0);
	rig_no_event(rig, queue);
	assert_int_equal(rig_drops(rig), 0);
	assert_int_equal(rig_counter(rig, refusals_late), 1);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
}

static void refusal__does_not_stop_a_reply_that_has_begun(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t handle = rig_bind(rig, &RIG_REGION(memory, queue));
	struct message_header header = get_sent(rig, handle);
	struct fake_arrival *arrival;

	header.value = 4;
	arrival = fake_begin(RIG_PEER, &header, 4);
	header.kind = MESSAGE_REFUSE;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	fake_place(arrival, 0, data, 4);
	fake_end(arrival, TRANSPORT_OK);
	rig_event(rig, queue, EVENT_REPLY_START);
	rig_event(rig, queue, EVENT_REPLY_END);
	rig_no_event(rig, queue);
}

/* --- probes */

static void probe__is_refused_unless_its_reply_is_under_way(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_get_header(4), probe;
	const struct process stranger = {.nid = RIG_PEER.nid + 1, .pid = RIG_PEER.pid};
	struct fake_sent *reply, *refusal;

	attach_any(rig, 0, REGION_GET);
	header.operation = 0x99;
	header.handle = 0x11;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	reply = fake_next();
	probe = (struct message_header){
		.kind = MESSAGE_PROBE, .uid = RIG_UID, .handle = 0x11, .operation = 0x99};
	fake_deliver(RIG_PEER, &probe, NULL, 0);
	assert_null(fake_next());
	/* The same name means nothing from another process. */
	fake_deliver(stranger, &probe, NULL, 0);
	refusal = fake_next();
	assert_int_equal(refusal->header.kind, MESSAGE_REFUSE);
	assert_int_equal(refusal->to.nid, stranger.nid);
	fake_finish(reply, TRANSPORT_OK);
	fake_deliver(RIG_PEER, &probe, NULL, 0);
	refusal = fake_next();
	assert_int_equal(refusal->header.kind, MESSAGE_REFUSE);
	assert_int_equal(refusal->header.operation, 0x99);
	assert_int_equal(refusal->header.handle, 0x11);
	assert_int_equal(rig_drops(rig), 0);
}

#define test(name) cmocka_unit_test_setup_teardown(name, arrivals_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(get__is_answered_with_the_data_and_ends_when_the_reply_has_left),
		test(get__grows_the_local_offset_and_is_truncated),
		test(get__whose_reply_fails_ends_in_get_fail),
		test(get__that_is_discarded_is_refused_by_name),
		test(reply__lands_at_the_regions_start_and_costs_one),
		test(reply__is_never_refused_for_threshold_and_cut_to_the_region),
		test(reply__that_comes_before_its_request_is_acknowledged_ends_once),
		test(reply__that_nobody_asked_for_is_dropped),
		test(reply__that_exhausts_its_region_unlinks_it),
		test(refusal__ends_the_get_in_reply_fail_once),
		test(refusal__does_not_stop_a_reply_that_has_begun),
		test(probe__is_refused_unless_its_reply_is_under_way),
	};

	return cmocka_run_group_tests(tests, arrivals_in_pieces, NULL) +
	       cmocka_run_group_tests(tests, arrivals_whole, NULL);
}
