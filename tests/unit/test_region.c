/* SPDX-License-Identifier: BSD-3-Clause */
/* test_region.c - how memory regions come, what an operation costs them, and how they go.
 *
 * Covers: lib/engine/region.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>

#include "fake_transport.h"
#include "rig.h"
#include "../nap.h"

static char memory[64];

static void region_find__knows_only_the_living_of_this_interface(void **state)
{
	struct rig *rig = *state;
	uint64_t handle = rig_bind(rig, &RIG_REGION(memory, 0));
	uint32_t index = handle_index(handle), generation = handle_generation(handle);

	assert_ptr_equal(region_of(rig->engine->spaces[0], handle), rig_region(rig, handle));
	assert_null(region_find(rig->engine->spaces[0], index, generation + 1));
	assert_null(region_find(rig->engine->spaces[0], index, 0));
	assert_null(region_find(rig->engine->spaces[0], UINT32_MAX, generation));
	assert_null(region_of(rig->engine->spaces[0],
		handle_make(HANDLE_REGION, RIG_INTERFACE + 1, index, generation)));
	assert_null(region_of(rig->engine->spaces[0],
		handle_make(HANDLE_ENTRY, RIG_INTERFACE, index, generation)));
	assert_null(region_of(rig->engine->spaces[0], 0));
	assert_null(region_of(rig->engine->spaces[0], UINT64_MAX));
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
	assert_null(region_of(rig->engine->spaces[0], handle));
}

static void region_take__takes_down_to_0_and_never_from_infinity(void **state)
{
	struct region region = {.gate = gate_make(1, 2)};

	(void)state;
	assert_true(region_take(&region));
	assert_true(region_take(&region));
	assert_false(region_take(&region));
	assert_int_equal(region.gate, gate_make(1, 0));
	region.gate = gate_make(1, GATE_THRESHOLD_INFINITE);
	for (unsigned i = 0; i < 10; i++)
		assert_true(region_take(&region));
	assert_int_equal(region.gate, gate_make(1, GATE_THRESHOLD_INFINITE));
}

#define TAKERS  3
#define TO_TAKE 300000u

static void *region_taker(void *argument)
{
	uintptr_t taken = 0;

	while (region_take(argument))
		taken++;
	return (void *)taken;
}

static void region_take__by_many_threads_grants_no_more_than_there_is(void **state)
{
	struct region region = {.gate = gate_make(1, TO_TAKE)};
	pthread_t threads[TAKERS];
	uintptr_t sum = 0;

	(void)state;
	for (unsigned i = 0; i < TAKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, region_taker, &region), 0);
	for (unsigned i = 0; i < TAKERS; i++) {
		void *taken;

		pthread_join(threads[i], &taken);
		sum += (uintptr_t)taken;
	}
	assert_int_equal(sum, TO_TAKE);
}

static void region_spend__says_when_the_threshold_is_used_up(void **state)
{
	struct region region = {.threshold = 2, .max_offset = 100};

	(void)state;
	assert_false(region_spend(&region, true, 0));
	assert_false(region_spend(&region, false, 0)); /* granted without a bound */
	assert_true(region_spend(&region, true, 0));
	assert_false(region_spend(&region, true, 0)); /* it was before */
	assert_int_equal(region.threshold, 0);
	region.threshold = GATE_THRESHOLD_INFINITE;
	assert_false(region_spend(&region, true, 0));
	assert_int_equal(region.threshold, GATE_THRESHOLD_INFINITE);
}

static void region_spend__says_when_the_offset_exceeds_its_maximum_strictly(void **state)
{
	struct region region = {.threshold = GATE_THRESHOLD_INFINITE, .max_offset = 10};

	(void)state;
	assert_false(region_spend(&region, true, 10));
	assert_int_equal(region.offset, 10);
	assert_true(region_spend(&region, true, 1));
	assert_int_equal(region.offset, 11);
}

static void region_spend__leaves_the_offset_of_a_remotely_managed_region(void **state)
{
	struct region region = {
		.threshold = GATE_THRESHOLD_INFINITE, .options = REGION_REMOTE_OFFSET};

	(void)state;
	assert_false(region_spend(&region, true, 100));
	assert_int_equal(region.offset, 0);
}

/* R4, from what it follows from. */
static void check_accepts(const struct region *region)
{
	uint32_t expected = region->options & (REGION_PUT | REGION_GET);

	if (region->state != REGION_LIVE ||
		(!(region->options & REGION_REMOTE_OFFSET) && region->offset > region->max_offset))
		expected = 0;
	assert_int_equal(region->accepts, expected);
}

static void region__accepts_what_its_options_say_until_its_offset_is_beyond_the_maximum(
	void **state)
{
	struct rig *rig = *state;
	struct region_description description = RIG_REGION(memory, rig_queue(rig, 64));
	uint64_t handle = rig_attach(rig, rig_entry_any(rig, false), &description, 0);
	struct region *region = rig_region(rig, handle);

	assert_int_equal(region->accepts, REGION_PUT | REGION_GET);
	for (uint32_t options = 0; options <= REGION_OPTIONS; options++) {
		for (uint32_t max = 0; max < 8; max += 4) {
			struct message_header header = rig_put_header(4);

			description.options = options;
			description.max_offset = max;
			region->offset = 0; /* an update keeps it */
			assert_int_equal(rig_update(rig, handle, &description, 0, NULL), ANSWER_OK);
			check_accepts(region);
			for (unsigned put = 0; put < 3; put++) {
				fake_deliver(RIG_PEER, &header, "data", 4);
				check_accepts(region);
			}
		}
	}
}

static void region__that_leaves_accepts_nothing(void **state)
{
	struct rig *rig = *state;
	struct region_description description = RIG_REGION(memory, 0);
	struct message_header header = rig_put_header(4);
	struct fake_arrival *first;
	struct region *region;

	/* Of two operations one is still pending when the other one has used the region up. */
	description.threshold = 2;
	region = rig_region(
		rig, rig_attach(rig, rig_entry_any(rig, false), &description, RIG_UNLINK_OP));
	first = fake_begin(RIG_PEER, &header, 4);
	fake_deliver(RIG_PEER, &header, "data", 4);
	assert_int_equal(region->state, REGION_LEAVING);
	check_accepts(region);
	fake_end(first, TRANSPORT_OK);

	/* One is too small and leaves, with an operation pending. */
	description.threshold = GATE_THRESHOLD_INFINITE;
	description.length = 4;
	region = rig_region(
		rig, rig_attach(rig, rig_entry_any(rig, true), &description, RIG_UNLINK_NOFIT));
	first = fake_begin(RIG_PEER, &header, 4);
	check_accepts(region);
	fake_deliver(RIG_PEER, &header, "data", 4);
	assert_int_equal(region->state, REGION_LEAVING);
	check_accepts(region);
	fake_end(first, TRANSPORT_OK);
}

static void region_bind__makes_a_region_without_entry(void **state)
{
	struct rig *rig = *state;
	uint64_t handle = rig_bind(rig, &RIG_REGION(memory, 0));

	assert_int_equal(rig_region(rig, handle)->state, REGION_LIVE);
	assert_int_equal(rig_region(rig, handle)->entry, INDEX_NONE);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_GONE);
	assert_int_equal(rig_region(rig, handle)->gate, 0);
}

static void region_attach__to_an_entry_that_has_gone_meanwhile_falls_away(void **state)
{
	struct rig *rig = *state;
	uint64_t entry = rig_entry_any(rig, false);
	uint64_t handle;

	assert_int_equal(rig_entry_unlink(rig, entry), ANSWER_OK);
	handle = rig_attach(rig, entry, &RIG_REGION(memory, 0), 0);
	assert_int_equal(rig_counter(rig, commands_stale), 1);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_GONE);
}

static void region_attach__to_an_entry_that_lives_again_elsewhere_falls_away(void **state)
{
	struct rig *rig = *state;
	uint64_t stale = rig_entry_any(rig, false), entry, handle;

	assert_int_equal(rig_entry_unlink(rig, stale), ANSWER_OK);
	do {
		entry = rig_entry_any(rig, false);
	} while (handle_index(entry) != handle_index(stale));
	handle = rig_attach(rig, stale, &RIG_REGION(memory, 0), 0);
	assert_int_equal(segment_match(rig->segment, handle_index(entry))->region, INDEX_NONE);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_GONE);
}

static void region_attach__survives_an_index_out_of_limits(void **state)
{
	struct rig *rig = *state;
	const struct command command = {
		.kind = COMMAND_REGION_ATTACH, .object = {.index = UINT32_MAX, .generation = 1}};
	const struct command bind = {
		.kind = COMMAND_REGION_BIND, .object = {.index = UINT32_MAX, .generation = 1}};

	rig_post(rig, &command);
	rig_post(rig, &bind);
	engine_poll(rig->engine);
	assert_int_equal(rig_counter(rig, commands), 2);
}

static void region_unlink__takes_an_entry_that_is_to_go_along(void **state)
{
	struct rig *rig = *state;
	uint64_t goes = rig_entry_any(rig, true), stays = rig_entry_any(rig, false);
	uint64_t first = rig_attach(rig, goes, &RIG_REGION(memory, 0), 0);
	uint64_t second = rig_attach(rig, stays, &RIG_REGION(memory, 0), 0);

	assert_int_equal(rig_region_unlink(rig, first), ANSWER_OK);
	assert_int_equal(rig_region_unlink(rig, second), ANSWER_OK);
	assert_int_equal(rig_entry_unlink(rig, goes), ANSWER_GONE);
	/* The other one may take a new region. */
	assert_int_equal(gate_low(rig_entry_object(rig, stays)->gate) & GATE_ATTACHED, 0);
	first = rig_attach(rig, stays, &RIG_REGION(memory, 0), 0);
	assert_int_equal(rig_region_unlink(rig, first), ANSWER_OK);
	assert_int_equal(rig_entry_unlink(rig, stays), ANSWER_OK);
}

static void region_unlink__logs_no_event(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4);
	uint64_t handle = rig_attach(rig, rig_entry_any(rig, true), &RIG_REGION(memory, queue),
		RIG_UNLINK_OP | RIG_UNLINK_NOFIT);

	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
	rig_no_event(rig, queue);
}

static void region_unlink__is_refused_while_an_operation_is_pending_and_works_when_its_end_is_read(
	void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4);
	uint64_t entry = rig_entry_any(rig, false);
	uint64_t handle = rig_attach(rig, entry, &RIG_REGION(memory, queue), 0);
	struct message_header header = rig_put_header(8);
	struct fake_arrival *arrival = fake_begin(RIG_PEER, &header, 8);

	rig_event(rig, queue, EVENT_PUT_START);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_PENDING);
	assert_int_equal(rig_entry_unlink(rig, entry), ANSWER_PENDING);
	fake_end(arrival, TRANSPORT_OK);
	rig_event(rig, queue, EVENT_PUT_END);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
}

static void region_update__tells_what_was_and_sets_what_shall_be(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4);
	struct region_description first = RIG_REGION(memory, queue), before, second;
	uint64_t handle;

	first.threshold = 9;
	first.user = 11;
	handle = rig_bind(rig, &first);
	second = first;
	second.length = 5;
	second.threshold = 3;
	second.user = 12;
	second.options = REGION_GET;
	assert_int_equal(rig_update(rig, handle, &second, 0, &before), ANSWER_OK);
	assert_memory_equal(&before, &first, sizeof(first));
	assert_int_equal(rig_threshold(rig, handle), 3);
	assert_int_equal(rig_update(rig, handle, NULL, 0, &before), ANSWER_OK);
	assert_memory_equal(&before, &second, sizeof(second));
}

static void region_update__keeps_the_local_offset(void **state)
{
	struct rig *rig = *state;
	uint64_t handle = rig_attach(rig, rig_entry_any(rig, false), &RIG_REGION(memory, 0), 0);
	struct message_header header = rig_put_header(6);

	fake_deliver(RIG_PEER, &header, "abcdef", 6);
	assert_int_equal(rig_update(rig, handle, &RIG_REGION(memory, 0), 0, NULL), ANSWER_OK);
	fake_deliver(RIG_PEER, &header, "ghijkl", 6);
	assert_memory_equal(memory, "abcdefghijkl", 12);
}

static void region_update__with_a_test_queue_needs_it_empty(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4), other = rig_queue(rig, 4);
	uint64_t handle = rig_bind(rig, &RIG_REGION(memory, other));
	uint64_t unexpected =
		rig_attach(rig, rig_entry_any(rig, false), &RIG_REGION(memory, queue), 0);
	struct region_description after = RIG_REGION(memory, other), before;
	struct message_header header = rig_put_header(1);
	struct fake_arrival *arrival;

	(void)unexpected;
	after.threshold = 1;
	assert_int_equal(rig_update(rig, handle, &after, queue, NULL), ANSWER_OK);
	arrival = fake_begin(RIG_PEER, &header, 1);
	assert_int_equal(rig_update(rig, handle, &after, queue, NULL), ANSWER_NOT_EMPTY);
	/* Read, but its end is still to come. */
	rig_event(rig, queue, EVENT_PUT_START);
	after.threshold = 2;
	assert_int_equal(rig_update(rig, handle, &after, queue, &before), ANSWER_NOT_EMPTY);
	assert_int_equal(before.threshold, 1);
	assert_int_equal(rig_threshold(rig, handle), 1);
	fake_end(arrival, TRANSPORT_DEAD);
	assert_int_equal(rig_update(rig, handle, &after, queue, NULL), ANSWER_NOT_EMPTY);
	rig_event(rig, queue, EVENT_PUT_FAILED);
	assert_int_equal(rig_update(rig, handle, &after, queue, NULL), ANSWER_OK);
	assert_int_equal(rig_threshold(rig, handle), 2);
}

static void region_update__with_a_queue_that_is_gone_is_refused(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4);
	uint64_t handle = rig_bind(rig, &RIG_REGION(memory, 0));

	assert_int_equal(rig_queue_free(rig, queue), ANSWER_OK);
	assert_int_equal(
		rig_update(rig, handle, &RIG_REGION(memory, 0), queue, NULL), ANSWER_NO_QUEUE);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
	assert_int_equal(rig_update(rig, handle, NULL, 0, NULL), ANSWER_GONE);
}

static void region_update__to_threshold_0_unlinks_nothing(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4);
	struct region_description after = RIG_REGION(memory, queue);
	uint64_t handle =
		rig_attach(rig, rig_entry_any(rig, true), &after, RIG_UNLINK_OP | RIG_UNLINK_NOFIT);
	struct message_header header = rig_put_header(1);

	after.threshold = 0;
	assert_int_equal(rig_update(rig, handle, &after, 0, NULL), ANSWER_OK);
	fake_deliver(RIG_PEER, &header, "x", 1);
	rig_no_event(rig, queue);
	assert_int_equal(rig_counter(rig, dropped_no_match), 1);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
}

static void region_update__does_not_charge_waiting_sends_to_the_new_threshold(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 16);
	struct region_description after = RIG_REGION(memory, queue);
	struct rig_move move = {.to = RIG_PEER};
	struct reply *reply;
	struct command update = {.kind = COMMAND_REGION_UPDATE, .update = 1}, put;
	uint64_t handle;

	after.threshold = 2;
	handle = rig_bind(rig, &after);
	/* A thread has taken one operation and is about to post; another one updates meanwhile. */
	assert_true(region_take(rig_region(rig, handle)));
	after.threshold = 5;
	update.reply = 0;
	update.object.index = handle_index(handle);
	update.object.generation = handle_generation(handle);
	reply = segment_reply(rig->segment, 0);
	reply->after = after;
	rig_post(rig, &update);
	engine_poll(rig->engine);
	assert_int_equal(rig_threshold(rig, handle), 5);
	assert_int_equal(rig_region(rig, handle)->threshold, 6);
	put = rig_move_command(handle, &move, COMMAND_PUT);
	put.taken = true;
	rig_post(rig, &put);
	engine_poll(rig->engine);
	assert_int_equal(rig_threshold(rig, handle), 5);
	assert_int_equal(rig_region(rig, handle)->threshold, 5);
}

/* R2 holds for the UNLINK event too: its reader may use the entry's place at once. */
static void region_settle__has_freed_the_region_when_its_unlink_event_can_be_read(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t entry = rig_entry_any(rig, false);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(1);
	struct event start, event;
	uint64_t handle;

	region.threshold = 1;
	region.user = 42;
	handle = rig_attach(rig, entry, &region, RIG_UNLINK_OP);
	fake_deliver(RIG_PEER, &header, "x", 1);
	start = rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
	event = rig_event(rig, queue, EVENT_UNLINK);
	assert_int_equal(event.link, start.link);
	/* The event still says what the region was. */
	assert_int_equal(event.region, handle);
	assert_int_equal(event.user, 42);
	assert_int_equal(event.threshold, 0);
	assert_int_equal(rig_region(rig, handle)->gate, 0);
	assert_int_equal(gate_low(rig_entry_object(rig, entry)->gate) & GATE_ATTACHED, 0);
}

#define ROUNDS        20000
#define WATCHER_LOOKS 256

/* A thread that waits for UNLINK events and looks, the moment it has one, whether the region is
 * gone. */
struct watcher {
	struct rig *rig;
	uint64_t queue, entry;
	_Atomic uint32_t seen, early;
};

static void *watcher_run(void *argument)
{
	struct watcher *watcher = argument;
	struct segment *segment = watcher->rig->segment;
	struct entry *entry = rig_entry_object(watcher->rig, watcher->entry);
	struct event event;
	unsigned looks = 0;

	while (atomic_load(&watcher->seen) < ROUNDS) {
		/* Where both threads have one CPU, the other one needs it now and then. */
		if (++looks % WATCHER_LOOKS == 0)
			nap();
		if (rig_take(segment, watcher->queue, &event) != QUEUE_EVENT ||
			event.kind != EVENT_UNLINK)
			continue;
		if (gate_low(atomic_load(&entry->gate)) & GATE_ATTACHED)
			atomic_fetch_add(&watcher->early, 1);
		atomic_fetch_add(&watcher->seen, 1);
	}
	return NULL;
}

static void region_settle__has_freed_the_region_when_another_thread_reads_its_unlink_event(
	void **state)
{
	struct rig *rig = *state;
	struct watcher watcher = {.rig = rig, .queue = rig_queue(rig, 8)};
	struct region_description region = RIG_REGION(memory, watcher.queue);
	struct message_header header = rig_put_header(1);
	uint8_t bytes[MESSAGE_HEADER_BYTES];
	struct record record = {.kind = RECORD_START,
		.header_length = (uint8_t)message_encode(&header, bytes),
		.extent = 1,
		.header = bytes};
	pthread_t thread;

	watcher.entry = rig_entry_any(rig, false);
	region.threshold = 1;
	assert_int_equal(pthread_create(&thread, NULL, watcher_run, &watcher), 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct inbound inbound = {0};

		rig_attach(rig, watcher.entry, &region, RIG_UNLINK_OP);
		/* As a whole, and in pieces. */
		if (round % 2 != 0) {
			incoming_whole(rig->engine, RIG_PEER, bytes, record.header_length, "x", 1);
		} else {
			incoming_begin(rig->engine, RIG_PEER, &record, &inbound);
			incoming_end(rig->engine, inbound.context, TRANSPORT_OK);
		}
		while (atomic_load(&watcher.seen) == round)
			nap();
	}
	pthread_join(thread, NULL);
	assert_int_equal(watcher.early, 0);
}

static void
region_settle__unlinks_after_the_last_of_several_with_the_link_of_the_one_that_exhausted_it(
	void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(1);
	struct fake_arrival *first, *second;
	uint64_t handle, link;

	region.threshold = 2;
	handle = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_OP);
	first = fake_begin(RIG_PEER, &header, 1);
	second = fake_begin(RIG_PEER, &header, 1);
	rig_event(rig, queue, EVENT_PUT_START);
	link = rig_event(rig, queue, EVENT_PUT_START).sequence;
	fake_end(second, TRANSPORT_OK);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_END).link, link);
	rig_no_event(rig, queue);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_PENDING);
	fake_end(first, TRANSPORT_OK);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_END).link, 1);
	assert_int_equal(rig_event(rig, queue, EVENT_UNLINK).link, link);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_GONE);
}

static void region_settle__keeps_a_region_whose_last_operation_failed(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(1);
	uint64_t handle;

	region.threshold = 1;
	handle = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_OP);
	fake_end(fake_begin(RIG_PEER, &header, 1), TRANSPORT_RESTARTED);
	rig_event(rig, queue, EVENT_PUT_START);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_FAILED).fail, TRANSPORT_RESTARTED);
	rig_no_event(rig, queue);
	assert_int_equal(rig_region_unlink(rig, handle), ANSWER_OK);
}

static void region_settle__keeps_a_region_that_was_updated_meanwhile(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(1);
	struct fake_arrival *arrival;
	uint64_t handle;

	region.threshold = 1;
	handle = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_OP);
	arrival = fake_begin(RIG_PEER, &header, 1);
	region.threshold = 1;
	assert_int_equal(rig_update(rig, handle, &region, 0, NULL), ANSWER_OK);
	fake_end(arrival, TRANSPORT_OK);
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_no_event(rig, queue);
	fake_deliver(RIG_PEER, &header, "x", 1);
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_event(rig, queue, EVENT_UNLINK);
}

#define test(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(region_find__knows_only_the_living_of_this_interface),
		cmocka_unit_test(region_take__takes_down_to_0_and_never_from_infinity),
		cmocka_unit_test(region_take__by_many_threads_grants_no_more_than_there_is),
		cmocka_unit_test(region_spend__says_when_the_threshold_is_used_up),
		cmocka_unit_test(region_spend__says_when_the_offset_exceeds_its_maximum_strictly),
		cmocka_unit_test(region_spend__leaves_the_offset_of_a_remotely_managed_region),
		test(region__accepts_what_its_options_say_until_its_offset_is_beyond_the_maximum),
		test(region__that_leaves_accepts_nothing),
		test(region_bind__makes_a_region_without_entry),
		test(region_attach__to_an_entry_that_has_gone_meanwhile_falls_away),
		test(region_attach__to_an_entry_that_lives_again_elsewhere_falls_away),
		test(region_attach__survives_an_index_out_of_limits),
		test(region_unlink__takes_an_entry_that_is_to_go_along),
		test(region_unlink__logs_no_event),
		test(region_unlink__is_refused_while_an_operation_is_pending_and_works_when_its_end_is_read),
		test(region_update__tells_what_was_and_sets_what_shall_be),
		test(region_update__keeps_the_local_offset),
		test(region_update__with_a_test_queue_needs_it_empty),
		test(region_update__with_a_queue_that_is_gone_is_refused),
		test(region_update__to_threshold_0_unlinks_nothing),
		test(region_update__does_not_charge_waiting_sends_to_the_new_threshold),
		test(region_settle__has_freed_the_region_when_its_unlink_event_can_be_read),
		test(region_settle__has_freed_the_region_when_another_thread_reads_its_unlink_event),
		test(region_settle__unlinks_after_the_last_of_several_with_the_link_of_the_one_that_exhausted_it),
		test(region_settle__keeps_a_region_whose_last_operation_failed),
		test(region_settle__keeps_a_region_that_was_updated_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
