/* SPDX-License-Identifier: BSD-3-Clause */
/* test_acceptance.c - which region accepts a put, what that costs it, and how it goes by itself.
 *
 * Covers: lib/engine/incoming.c, lib/engine/lists.c, lib/engine/region.c.
 */
#include <pthread.h>
#include <stdlib.h>

#include <base/handle.h>

#include "arrivals.h"
#include "../nap.h"

static void put__that_is_too_long_is_refused_without_truncation_and_cut_with_it(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct message_header header = rig_put_header(0);
	struct region_description region = RIG_REGION(memory, queue);
	struct fake_arrival *arrival;
	struct event event;

	region.length = 10;
	region.options = REGION_PUT;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	put(&header, 11);
	assert_int_equal(rig_counter(rig, dropped_no_match), 1);
	rig_no_event(rig, queue);
	region.options |= REGION_TRUNCATE;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	arrival = put(&header, 11);
	assert_true(arrival->whole || arrival->inbound.memory.length == 10);
	assert_true(arrival->inbound.stop);
	event = rig_event(rig, queue, EVENT_PUT_START);
	assert_int_equal(event.requested, 11);
	assert_int_equal(event.moved, 10);
	assert_memory_equal(memory, data, 10);
	assert_int_equal(memory[10], 0);
	rig_event(rig, queue, EVENT_PUT_END);
	/* Nothing is left of the local offset's room: cut to nothing. */
	put(&header, 11);
	event = rig_event(rig, queue, EVENT_PUT_START);
	assert_int_equal(event.moved, 0);
	assert_int_equal(event.offset, 10);
}

static void put__to_a_remote_offset_lands_there(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = attach_any(rig, queue, REGION_PUT | REGION_REMOTE_OFFSET);
	struct message_header header = rig_put_header(0);

	header.offset = 60;
	put(&header, 4);
	assert_memory_equal(memory + 60, data, 4);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_START).offset, 60);
	rig_event(rig, queue, EVENT_PUT_END);
	header.offset = 61;
	put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_no_match), 1);
	assert_int_equal(rig_region(rig, region)->offset, 0);
}

static void put__to_a_remote_offset_beyond_everything_touches_nothing(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 64);
	const uint64_t offsets[] = {64, 65, UINT64_MAX, UINT64_MAX - 3, UINT64_C(1) << 63};
	struct message_header header = rig_put_header(0);
	struct event event;

	attach_any(rig, queue, REGION_PUT | REGION_REMOTE_OFFSET | REGION_TRUNCATE);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		header.offset = offsets[i];
		put(&header, 4);
		event = rig_event(rig, queue, EVENT_PUT_START);
		assert_int_equal(event.moved, 0);
		assert_int_equal(event.offset, offsets[i]);
		rig_event(rig, queue, EVENT_PUT_END);
		put(&header, 0);
		assert_int_equal(rig_event(rig, queue, EVENT_PUT_START).moved, 0);
		rig_event(rig, queue, EVENT_PUT_END);
	}
	for (size_t i = 0; i < sizeof(memory); i++)
		assert_int_equal(memory[i], 0);
}

static void max_offset__is_exceeded_strictly_and_only_by_a_local_offset(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 32);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);

	region.max_offset = 8;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	put(&header, 4);
	put(&header, 4);
	put(&header, 1); /* the offset equals max_offset: still active */
	assert_int_equal(rig_drops(rig), 0);
	put(&header, 0);
	assert_int_equal(rig_counter(rig, dropped_no_match), 1);

	region.options |= REGION_REMOTE_OFFSET;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	header.offset = 20;
	put(&header, 4);
	put(&header, 4);
	assert_int_equal(rig_drops(rig), 1);
}

static void acceptance__is_decided_before_whether_the_data_fits(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 32);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);
	uint64_t handle;

	/* Inactive regions, too small as well: none of them leaves for want of room. */
	region.length = 2;
	region.threshold = 0;
	rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_NOFIT);
	region.threshold = 1;
	region.options = REGION_GET;
	rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_NOFIT);
	region.options = REGION_PUT;
	region.max_offset = 0;
	handle = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_NOFIT);
	rig_region(rig, handle)->offset = 1;
	region_review(rig_region(rig, handle));
	put(&header, 4);
	rig_no_event(rig, queue);
	assert_int_equal(rig_counter(rig, dropped_no_match), 1);
}

static void threshold__falls_by_one_for_each_operation_and_rejects_at_0(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 32);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0), get = rig_get_header(1);

	region.threshold = 2;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	put(&header, 1);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_START).threshold, 1);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_END).threshold, 1);
	fake_deliver(RIG_PEER, &get, NULL, 0);
	assert_int_equal(rig_event(rig, queue, EVENT_GET_START).threshold, 0);
	fake_finish(fake_next(), TRANSPORT_OK);
	rig_event(rig, queue, EVENT_GET_END);
	put(&header, 1);
	rig_no_event(rig, queue);
	assert_int_equal(rig_counter(rig, dropped_no_match), 1);
}

/* A sending thread takes the last operation while a message is being looked at. */
static void threshold__taken_by_a_sender_is_not_granted_again(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 32);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);
	struct rig_move move = {.to = RIG_PEER};
	uint64_t handle;

	region.threshold = 1;
	handle = rig_attach(rig, rig_entry_any(rig, false), &region, RIG_UNLINK_OP);
	assert_true(rig_put_post(rig, handle, &move));
	/* The put is still in the ring. */
	put(&header, 1);
	assert_int_equal(rig_counter(rig, dropped_no_match), 1);
	assert_int_equal(memory[0], 0);
	assert_int_equal(rig_region(rig, handle)->state, REGION_LIVE);
	engine_poll(rig->engine);
	fake_finish(fake_next(), TRANSPORT_OK);
	rig_event(rig, queue, EVENT_SEND_START);
	rig_event(rig, queue, EVENT_SEND_END);
	rig_event(rig, queue, EVENT_UNLINK);
}

#define SENDERS 2
#define GRANTS  1500

struct sender {
	struct rig *rig;
	uint64_t region;
	_Atomic uint32_t posted;
};

/* What PtlPut does, until it finds the region dead or inactive. */
static void *sender_run(void *argument)
{
	struct sender *sender = argument;
	struct command command =
		rig_move_command(sender->region, &(struct rig_move){.to = RIG_PEER}, COMMAND_PUT);

	command.taken = 1;
	while (region_take(rig_region(sender->rig, sender->region))) {
		rig_post(sender->rig, &command);
		atomic_fetch_add(&sender->posted, 1);
		nap();
	}
	return NULL;
}

static void threshold__shared_with_sending_threads_is_granted_exactly(void **state)
{
	struct rig *rig = *state;
	struct sender sender = {.rig = rig};
	uint64_t queue = rig_queue(rig, 4096);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);
	unsigned kinds[EVENT_UNLINK + 1] = {0};
	pthread_t threads[SENDERS];
	struct fake_sent *sent;
	struct event event;

	region.threshold = GRANTS;
	region.options |= REGION_REMOTE_OFFSET;
	sender.region = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_OP);
	for (unsigned i = 0; i < SENDERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, sender_run, &sender), 0);
	while (rig_counter(rig, dropped_no_match) == 0) {
		put(&header, 1);
		engine_poll(rig->engine);
	}
	for (unsigned i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	engine_poll(rig->engine);
	while ((sent = fake_next()))
		fake_finish(sent, TRANSPORT_OK);
	while (rig_take(rig->segment, queue, &event) == QUEUE_EVENT)
		kinds[event.kind]++;
	assert_int_equal(kinds[EVENT_SEND_START], sender.posted);
	assert_int_equal(kinds[EVENT_SEND_END], sender.posted);
	assert_int_equal(kinds[EVENT_PUT_START], GRANTS - sender.posted);
	assert_int_equal(kinds[EVENT_PUT_END], GRANTS - sender.posted);
	assert_int_equal(kinds[EVENT_UNLINK], 1);
	assert_int_equal(rig_counter(rig, commands_stale), 0);
}

static void unlink_op__follows_the_end_with_its_link(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 32);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);
	uint64_t entry = rig_entry_any(rig, true), start;
	struct fake_arrival *arrival;

	region.max_offset = 3;
	rig_attach(rig, entry, &region, RIG_UNLINK_OP);
	header.requested = 4;
	arrival = fake_begin(RIG_PEER, &header, 4);
	start = rig_event(rig, queue, EVENT_PUT_START).sequence;
	rig_no_event(rig, queue);
	fake_place(arrival, 0, data, 4);
	fake_end(arrival, TRANSPORT_OK);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_END).link, start);
	assert_int_equal(rig_event(rig, queue, EVENT_UNLINK).link, start);
	assert_int_equal(rig_entry_unlink(rig, entry), ANSWER_GONE);
}

static void unlink_op__without_the_wish_leaves_an_inactive_region(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 32);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);
	uint64_t handle;

	region.threshold = 1;
	handle = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_NOFIT);
	put(&header, 1);
	put(&header, 1);
	put(&header, 65);
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_no_event(rig, queue);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
}

static void unlink_nofit__unlinks_and_the_walk_goes_on(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 32);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);
	uint64_t gone, entry_gone, kept, entry_kept, last;
	struct event event;

	region.length = 3;
	entry_gone = rig_entry_any(rig, true);
	gone = rig_attach(rig, entry_gone, &region, RIG_UNLINK_NOFIT);
	entry_kept = rig_entry_any(rig, false);
	kept = rig_attach(rig, entry_kept, &region, RIG_UNLINK_NOFIT);
	region.length = 10;
	last = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_NOFIT);
	header.value = 17;
	put(&header, 4);
	event = rig_event(rig, queue, EVENT_UNLINK);
	assert_int_equal(event.region, gone);
	assert_int_equal(event.link, event.sequence);
	assert_int_equal(event.value, 17);
	assert_int_equal(event.nid, RIG_PEER.nid);
	assert_int_equal(rig_event(rig, queue, EVENT_UNLINK).region, kept);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_START).region, last);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_no_event(rig, queue);
	assert_int_equal(rig_entry_unlink(rig, entry_gone), ANSWER_GONE);
	assert_int_equal(rig_entry_unlink(rig, entry_kept), ANSWER_OK);
}

static void unlink_nofit__waits_for_what_is_pending_and_accepts_nothing_meanwhile(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 32);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(8);
	struct fake_arrival *arrival;
	uint64_t handle;

	region.length = 10;
	handle = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_NOFIT);
	arrival = fake_begin(RIG_PEER, &header, 8);
	put(&header, 3);
	put(&header, 1); /* it would fit */
	assert_int_equal(rig_counter(rig, dropped_no_match), 2);
	rig_event(rig, queue, EVENT_PUT_START);
	rig_no_event(rig, queue);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_PENDING);
	assert_int_equal(rig_update(rig, handle, &region, 0, NULL), ANSWER_GONE);
	fake_end(arrival, TRANSPORT_OK);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_event(rig, queue, EVENT_UNLINK);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_GONE);
}

static void region_without_a_queue__works_in_silence(void **state)
{
	struct rig *rig = *state;
	struct region_description region = RIG_REGION(memory, 0);
	struct message_header header = rig_put_header(0);
	uint64_t handle;

	region.threshold = 1;
	handle = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_OP);
	put(&header, 4);
	assert_memory_equal(memory, data, 4);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_GONE);
	assert_int_equal(rig_counter(rig, events_logged), 0);
}

static void queue_freed_while_a_put_lands__loses_the_end_and_nothing_else(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4), next;
	struct message_header header = rig_put_header(4);
	uint64_t region = attach_any(rig, queue, REGION_PUT);
	struct fake_arrival *arrival = fake_begin(RIG_PEER, &header, 4);

	assert_int_equal(rig_queue_free(rig, queue), ANSWER_OK);
	do {
		next = rig_queue(rig, 4);
	} while (handle_index(next) != handle_index(queue));
	fake_end(arrival, TRANSPORT_OK);
	rig_no_event(rig, next);
	assert_int_equal(segment_queue(rig->segment, handle_index(next))->incoming, 0);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
}

/* A region's memory may be in pieces; what its operations move is a part of it. */
static void region_in_pieces__is_written_and_read_across_them(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = attach_any(rig, queue, REGION_PUT | REGION_GET | REGION_REMOTE_OFFSET);
	struct message_header header = rig_put_header(0);
	struct map_vector *vector = calloc(1, map_vector_size(3));
	struct fake_sent *reply;
	char got[10];

	assert_non_null(vector);
	map_vector_add(vector, memory + 40, 4);
	map_vector_add(vector, memory + 30, 3);
	map_vector_add(vector, memory + 1, sizeof(memory) - 7);
	rig_region(rig, region)->start = 0;
	rig_region(rig, region)->vector = vector;
	header.offset = 2;
	put(&header, 6);
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
	assert_memory_equal(memory + 42, data, 2);
	assert_memory_equal(memory + 30, data + 2, 3);
	assert_memory_equal(memory + 1, data + 5, 1);
	assert_int_equal(memory[2], 0);
	assert_int_equal(memory[44], 0);
	header = rig_get_header(5);
	header.offset = 3;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	rig_event(rig, queue, EVENT_GET_START);
	reply = fake_next();
	assert_int_equal(reply->length, 5);
	map_copy_out(&reply->message->memory, 0, got, 5);
	assert_memory_equal(got, data + 1, 5);
	fake_finish(reply, TRANSPORT_OK);
	rig_event(rig, queue, EVENT_GET_END);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
	free(vector);
}

#define test(name) cmocka_unit_test_setup_teardown(name, arrivals_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(put__that_is_too_long_is_refused_without_truncation_and_cut_with_it),
		test(put__to_a_remote_offset_lands_there),
		test(put__to_a_remote_offset_beyond_everything_touches_nothing),
		test(max_offset__is_exceeded_strictly_and_only_by_a_local_offset),
		test(acceptance__is_decided_before_whether_the_data_fits),
		test(threshold__falls_by_one_for_each_operation_and_rejects_at_0),
		test(threshold__taken_by_a_sender_is_not_granted_again),
		test(threshold__shared_with_sending_threads_is_granted_exactly),
		test(unlink_op__follows_the_end_with_its_link),
		test(unlink_op__without_the_wish_leaves_an_inactive_region),
		test(unlink_nofit__unlinks_and_the_walk_goes_on),
		test(unlink_nofit__waits_for_what_is_pending_and_accepts_nothing_meanwhile),
		test(region_without_a_queue__works_in_silence),
		test(queue_freed_while_a_put_lands__loses_the_end_and_nothing_else),
		test(region_in_pieces__is_written_and_read_across_them),
	};

	return cmocka_run_group_tests(tests, arrivals_in_pieces, NULL) +
	       cmocka_run_group_tests(tests, arrivals_whole, NULL);
}
