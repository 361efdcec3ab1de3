/* test_incoming.c - messages that arrive: access control, translation, acceptance, and what follows. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <portals.h>

#include <base/handle.h>

#include "fake_transport.h"
#include "rig.h"

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
static bool memory_is_short;
static bool message_is_whole; /* data comes with its message's beginning, and not later */

void *__wrap_calloc(size_t count, size_t size)
{
	return memory_is_short ? NULL : __real_calloc(count, size);
}

static char memory[64], other[64];
static const char data[64] = "The quick brown fox jumps over the lazy dog, and then some more.";

static struct fake_arrival *put(struct message_header *header, uint64_t length)
{
	header->requested = length;
	return fake_deliver(RIG_PEER, header, data, length);
}

static int incoming_setup(void **state)
{
	memset(memory, 0, sizeof(memory));
	memset(other, 0, sizeof(other));
	return rig_setup(state);
}

/* A region of memory on an entry of its own for everything at Portal 0. */
static uint64_t attach_any(struct rig *rig, uint64_t queue, uint32_t options)
{
	struct region_description region = RIG_REGION(memory, queue);

	region.options = options;
	return rig_attach(rig, rig_entry_any(rig, false), &region, 0);
}

/* --- puts */

static void put__places_data_and_logs_start_and_end(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = attach_any(rig, queue, REGION_PUT);
	struct message_header header = rig_put_header(0);
	struct event start, end;

	header.match_bits = 0x1234;
	header.value = 99;
	header.offset = 7; /* does not count */
	put(&header, 10);
	assert_memory_equal(memory, data, 10);
	assert_int_equal(memory[10], 0);
	start = rig_event(rig, queue, EVENT_PUT_START);
	end = rig_event(rig, queue, EVENT_PUT_END);
	assert_int_equal(start.nid, RIG_PEER.nid);
	assert_int_equal(start.pid, RIG_PEER.pid);
	assert_int_equal(start.uid, RIG_UID);
	assert_int_equal(start.portal, 0);
	assert_int_equal(start.match_bits, 0x1234);
	assert_int_equal(start.requested, 10);
	assert_int_equal(start.moved, 10);
	assert_int_equal(start.offset, 0);
	assert_int_equal(start.value, 99);
	assert_int_equal(start.region, region);
	assert_int_equal(start.link, start.sequence);
	assert_int_equal(end.link, start.sequence);
	assert_int_equal(end.sequence, start.sequence + 1);
	assert_int_equal(end.moved, 10);
	assert_int_equal(end.value, 99);
	assert_int_equal(rig_counter(rig, puts_received), 1);
	assert_int_equal(rig_drops(rig), 0);
}

static void put__of_no_bytes_is_a_put(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description nothing = {.start = 0,
		.length = 0,
		.threshold = 1,
		.max_offset = 0,
		.options = REGION_PUT,
		.queue = queue};
	struct message_header header = rig_put_header(0);

	rig_attach(rig, rig_entry_any(rig, false), &nothing, 0);
	put(&header, 0);
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
}

static void put__that_breaks_off_ends_in_put_fail(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct message_header header = rig_put_header(20);
	struct event event;

	attach_any(rig, queue, REGION_PUT);
	header.handle = 5;
	fake_end(fake_begin(RIG_PEER, &header, 20), TRANSPORT_DEAD);
	event = rig_event(rig, queue, EVENT_PUT_START);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_FAIL).link, event.sequence);
	assert_null(fake_next()); /* nobody acknowledges it */
}

static void puts__start_in_order_and_end_in_any(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct message_header header = rig_put_header(10);
	struct fake_arrival *first, *second;

	attach_any(rig, queue, REGION_PUT);
	header.value = 1;
	first = fake_begin(RIG_PEER, &header, 10);
	header.value = 2;
	second = fake_begin(RIG_PEER, &header, 10);
	fake_place(second, 0, data, 10);
	fake_end(second, TRANSPORT_OK);
	fake_place(first, 0, data, 10);
	fake_end(first, TRANSPORT_OK);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_START).value, 1);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_START).value, 2);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_END).value, 2);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_END).value, 1);
	assert_memory_equal(memory, data, 10);
	assert_memory_equal(memory + 10, data, 10);
}

/* --- access control, translation */

static void put__to_a_portal_that_does_not_exist_is_dropped(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);
	struct fake_arrival *arrival;

	header.portal = RIG_PORTALS;
	arrival = put(&header, 4);
	assert_false(arrival->inbound.want_end);
	assert_int_equal(arrival->inbound.limit, 0);
	assert_true(arrival->inbound.stop);
	header.portal = UINT32_MAX;
	put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_no_portal), 2);
	assert_int_equal(rig_drops(rig), 2);
}

static void put__with_a_bad_cookie_is_dropped(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);

	attach_any(rig, 0, REGION_PUT);
	header.cookie = RIG_ACCESS;
	put(&header, 4);
	header.cookie = UINT32_MAX;
	put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_bad_cookie), 2);
	assert_int_equal(memory[0], 0);
}

static void access_entry_0__admits_the_same_user_and_no_other_entry_admits_anybody(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);

	attach_any(rig, 0, REGION_PUT);
	put(&header, 4);
	assert_int_equal(rig_drops(rig), 0);
	header.uid = RIG_UID + 1;
	put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_access_denied), 1);
	header.uid = RIG_UID;
	for (header.cookie = 1; header.cookie < RIG_ACCESS; header.cookie++)
		put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_access_denied), RIG_ACCESS);
}

static void access_entry__admits_what_it_names_and_wildcards(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);
	const struct {
		struct process process;
		uint32_t uid, portal;
		bool admits;
	} cases[] = {
		{RIG_PEER, RIG_UID, 0, true},
		{{UINT32_MAX, 80}, RIG_UID, 0, true},
		{{8, UINT32_MAX}, RIG_UID, 0, true},
		{{8, 80}, UINT32_MAX, 0, true},
		{{8, 80}, RIG_UID, UINT32_MAX, true},
		{{9, 80}, RIG_UID, 0, false},
		{{8, 81}, RIG_UID, 0, false},
		{{8, 80}, RIG_UID + 1, 0, false},
		{{8, 80}, RIG_UID, 1, false},
	};

	attach_any(rig, 0, REGION_PUT);
	header.cookie = 2;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned long before = rig_drops(rig);

		rig_access(rig, 2, cases[i].process, cases[i].uid, cases[i].portal);
		put(&header, 0);
		assert_int_equal(rig_drops(rig) - before, !cases[i].admits);
	}
}

static void access_command__survives_an_index_out_of_limits(void **state)
{
	struct rig *rig = *state;

	rig_access(rig, RIG_ACCESS, RIG_ANY, UINT32_MAX, UINT32_MAX);
	rig_access(rig, UINT32_MAX, RIG_ANY, UINT32_MAX, UINT32_MAX);
	assert_int_equal(rig_counter(rig, commands), 2);
}

static void walk__takes_the_first_entry_that_matches_and_accepts(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 16);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);
	uint64_t expected;

	/* Passed over, one after the other. */
	rig_attach(
		rig, rig_entry(rig, &(struct rig_entry){.match = RIG_ANY, .bits = 6}), &region, 0);
	rig_attach(
		rig, rig_entry(rig, &(struct rig_entry){.match = {9, 80}, .bits = 5}), &region, 0);
	rig_attach(
		rig, rig_entry(rig, &(struct rig_entry){.match = {8, 81}, .bits = 5}), &region, 0);
	rig_entry_any(rig, false); /* no region */
	region.options = REGION_GET;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	region.options = REGION_PUT;
	region.threshold = 0;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	region.threshold = GATE_THRESHOLD_INFINITE;
	region.length = 3;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	region.length = 4;
	expected = rig_attach(rig,
		rig_entry(rig,
			&(struct rig_entry){
				.match = {8, UINT32_MAX}, .bits = 0xf5, .ignore = 0xf0}),
		&region, 0);
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);

	header.match_bits = 5;
	put(&header, 4);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_START).region, expected);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_no_event(rig, queue);
}

static void walk__of_another_portal_finds_nothing(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);

	attach_any(rig, 0, REGION_PUT);
	header.portal = 1;
	put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_no_match), 1);
}

/* --- acceptance */

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
	assert_true(arrival->inbound.taken || arrival->inbound.limit == 10);
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

/* What PtlPut does, until it would say PTL_INV_MD. */
static void *sender_run(void *argument)
{
	struct sender *sender = argument;
	const struct command command = {.kind = COMMAND_PUT,
		.taken = 1,
		.move = {.region = handle_index(sender->region),
			.generation = handle_generation(sender->region),
			.to = RIG_PEER}};

	while (region_take(rig_region(sender->rig, sender->region))) {
		rig_post(sender->rig, &command);
		atomic_fetch_add(&sender->posted, 1);
		sched_yield();
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
	while (rig_take(rig->segment, queue, &event) ==
		QUEUE_EVENT)
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
	assert_int_equal(rig_entry_unlink(rig, entry), PTL_INV_ME);
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
	assert_int_equal(rig_region_unlink(rig, handle), PTL_OK);
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
	assert_int_equal(rig_entry_unlink(rig, entry_gone), PTL_INV_ME);
	assert_int_equal(rig_entry_unlink(rig, entry_kept), PTL_OK);
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
	assert_int_equal(rig_region_unlink(rig, handle), PTL_MD_INUSE);
	assert_int_equal(rig_update(rig, handle, &region, 0, NULL), PTL_INV_MD);
	fake_end(arrival, TRANSPORT_OK);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_event(rig, queue, EVENT_UNLINK);
	assert_int_equal(rig_region_unlink(rig, handle), PTL_INV_MD);
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
	assert_int_equal(rig_region_unlink(rig, handle), PTL_INV_MD);
	assert_int_equal(rig_counter(rig, events_logged), 0);
}

static void queue_freed_while_a_put_lands__loses_the_end_and_nothing_else(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4), next;
	struct message_header header = rig_put_header(4);
	uint64_t region = attach_any(rig, queue, REGION_PUT);
	struct fake_arrival *arrival = fake_begin(RIG_PEER, &header, 4);

	assert_int_equal(rig_queue_free(rig, queue), PTL_OK);
	do {
		next = rig_queue(rig, 4);
	} while (handle_index(next) != handle_index(queue));
	fake_end(arrival, TRANSPORT_OK);
	rig_no_event(rig, next);
	assert_int_equal(segment_queue(rig->segment, handle_index(next))->incoming, 0);
	assert_int_equal(rig_region_unlink(rig, region), PTL_OK);
}

/* --- acknowledgements of puts */

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
	struct rig_move move = {.to = RIG_PEER, .acknowledge = true};
	struct message_header header;
	struct fake_sent *sent;
	uint64_t handle;

	for (int early = 0; early < 2; early++) {
		region.threshold = 2;
		handle = rig_attach(rig, rig_entry_any(rig, true), &region, RIG_UNLINK_OP);
		assert_true(rig_put(rig, handle, &move));
		sent = fake_next();
		header = ack_header(sent->header.handle, sent->header.operation);
		rig_event(rig, queue, EVENT_SEND_START);
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
	struct rig_move move = {.to = RIG_PEER, .acknowledge = true};
	struct message_header header;
	struct fake_sent *sent;
	uint64_t handle;
	struct event ack;

	region.threshold = 2;
	handle = rig_bind(rig, &region);
	assert_true(rig_put(rig, handle, &move));
	sent = fake_next();
	header = ack_header(sent->header.handle, sent->header.operation);
	rig_event(rig, queue, EVENT_SEND_START);
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
	assert_int_equal(rig_queue_free(rig, queue), PTL_OK);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	assert_int_equal(rig_counter(rig, dropped_late_ack), ++count);
	assert_int_equal(rig_region_unlink(rig, handle), PTL_OK);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	assert_int_equal(rig_counter(rig, dropped_late_ack), ++count);
	assert_int_equal(rig_drops(rig), count);
}

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
	assert_int_equal(rig_region_unlink(rig, region), PTL_MD_INUSE);
	rig_no_event(rig, queue);
	fake_finish(reply, TRANSPORT_OK);
	assert_int_equal(rig_event(rig, queue, EVENT_GET_END).link, event.sequence);
	assert_int_equal(rig_region_unlink(rig, region), PTL_OK);
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
	assert_int_equal(rig_event(rig, queue, EVENT_GET_FAIL).fail, TRANSPORT_DEAD);
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

static void requests__for_which_there_is_no_memory_are_dropped_and_change_nothing(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0), get = rig_get_header(2);
	uint64_t handle;

	region.threshold = 1;
	region.length = 3;
	handle = rig_attach(rig, rig_entry_any(rig, false), &region, RIG_UNLINK_NOFIT);
	while (rig->engine->free_count != 0)
		operation_take(rig->engine, OPERATION_RECEIVE);
	memory_is_short = true;
	header.requested = 2;
	fake_begin(RIG_PEER, &header, 2);
	header.requested = 4;
	fake_begin(RIG_PEER, &header, 4);      /* nor does one that is too long unlink */
	fake_deliver(RIG_PEER, &get, NULL, 0); /* cannot be refused either */
	assert_int_equal(rig_counter(rig, dropped_no_memory_operation), 4);
	rig_no_event(rig, queue);
	assert_int_equal(rig_threshold(rig, handle), 1);
	memory_is_short = !message_is_whole;
	put(&header, 2);
	memory_is_short = false;
	put(&header, 2);
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_no_event(rig, queue);
	assert_int_equal(rig_counter(rig, dropped_no_memory_operation), message_is_whole ? 4 : 5);
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
	assert_int_equal(rig_region_unlink(rig, handle), PTL_OK);
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
	assert_int_equal(rig_update(rig, handle, &region, 0, NULL), PTL_OK);
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
			rig_event(rig, queue, i == 0 ? EVENT_REPLY_END : EVENT_REPLY_FAIL).fail,
			ends[i]);
		rig_no_event(rig, queue);
		reply(&header, 3);
		assert_int_equal(rig_counter(rig, dropped_late_reply), i + 1);
	}
	assert_int_equal(rig_region_unlink(rig, handle), PTL_OK);
	assert_int_equal(rig->engine->free_count, OPERATION_CHUNK);
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
	event = rig_event(rig, queue, EVENT_REPLY_FAIL);
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
	assert_int_equal(rig_region_unlink(rig, handle), PTL_OK);
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

/* --- hostile headers */

static void message__that_is_not_well_formed_is_counted_and_nothing_else(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(4);
	uint8_t bytes[MESSAGE_HEADER_MAX] = {0};
	unsigned long count = 0;

	attach_any(rig, 0, REGION_PUT | REGION_GET);
	header.offset = 1;
	assert_int_equal(message_encode(&header, bytes), MESSAGE_HEADER_BYTES);
	for (uint32_t length = 0; length <= MESSAGE_HEADER_MAX; length += 8) {
		/* What is cut off after a zero word could have been shorter; after another one it is another header. */
		if (length == MESSAGE_HEADER_BYTES || length == MESSAGE_HEADER_LEAST)
			continue;
		assert_false(fake_begin_bytes(RIG_PEER, bytes, length, 4)->inbound.want_end);
		assert_int_equal(rig_counter(rig, dropped_bad_message), ++count);
	}
	for (unsigned kind = 0; kind < 256; kind++) {
		bytes[0] = (uint8_t)kind;
		if (kind >= MESSAGE_PUT && kind <= MESSAGE_PROBE)
			continue;
		assert_false(fake_begin_bytes(RIG_PEER, bytes, MESSAGE_HEADER_BYTES, 4)
				     ->inbound.want_end);
		assert_int_equal(rig_counter(rig, dropped_bad_message), ++count);
	}
	assert_null(fake_next());
}

static void message__whose_data_is_not_as_long_as_it_says_is_dropped(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(4);
	unsigned long count = 0;
	struct fake_arrival *arrival;

	attach_any(rig, 0, REGION_PUT | REGION_GET);
	header.kind = MESSAGE_REPLY;
	header.value = 3;
	arrival = fake_begin(RIG_PEER, &header, 4);
	assert_true(arrival->inbound.stop);
	assert_false(arrival->inbound.want_end);
	assert_int_equal(rig_counter(rig, dropped_bad_message), ++count);
	for (unsigned i = 0; i < 4; i++) {
		const enum message_kind kinds[] = {
			MESSAGE_GET, MESSAGE_ACK, MESSAGE_REFUSE, MESSAGE_PROBE};

		header.kind = (uint8_t)kinds[i];
		fake_begin(RIG_PEER, &header, 1);
		assert_int_equal(rig_counter(rig, dropped_bad_message), ++count);
	}
	assert_null(fake_next());
}

static void messages__of_random_content_never_reach_beyond_a_region(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 64);
	uint64_t seed = 1;
	struct event event;
	struct region_description region = RIG_REGION(memory, queue);

	region.start += 16;
	region.length = 32;
	for (unsigned i = 0; i < 8; i++) {
		region.options = i * 4 | REGION_PUT | REGION_GET;
		rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	}
	for (unsigned round = 0; round < 1500; round++) {
		struct message_header header = {0};
		uint64_t *fields = (uint64_t *)(void *)&header;
		uint64_t length;

		for (unsigned i = 0; i < sizeof(header) / 8; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			fields[i] = seed >> (seed >> 58);
		}
		header.kind = (uint8_t)(MESSAGE_PUT + round % 6);
		if (round % 8 != 0) {
			header.uid = RIG_UID;
			header.portal = 0;
			header.cookie = 0;
		}
		length = header.kind == MESSAGE_PUT     ? (header.requested %= 70)
			 : header.kind == MESSAGE_REPLY ? (header.value %= 70)
							: 0;
		fake_deliver(RIG_PEER, &header, data, length > 64 ? 64 : length);
		while (rig_take(rig->segment, queue, &event) != QUEUE_EMPTY)
			;
		for (unsigned i = 0; i < 16; i++)
			assert_true(memory[i] == 0 && memory[48 + i] == 0);
	}
}

#define test(name) cmocka_unit_test_setup_teardown(name, incoming_setup, rig_teardown)

/* --- one way and the other */

#define TRACE_PUTS 400
#define TRACES     40

/* What came of a trace: the same whichever way its puts came. */
struct trace_outcome {
	uint8_t memory[6][32];
	struct event events[6 * TRACE_PUTS];
	unsigned count;
	unsigned long drops, received, acknowledged;
};

static uint64_t trace_state;

static uint32_t trace_random(uint32_t below)
{
	trace_state = trace_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((trace_state >> 33) % below);
}

static uint32_t trace_id(uint32_t value)
{
	return trace_random(2) == 0 ? UINT32_MAX : value;
}

/* An entry of Portal 0 or 1 with a region; some accept nothing, some go when they are used up or too small. */
static void trace_attach(struct rig *rig, uint64_t queue, uint8_t *to)
{
	static const uint32_t thresholds[] = {0, 1, 3, GATE_THRESHOLD_INFINITE};
	const struct rig_entry entry = {.portal = trace_random(2),
		.match = {trace_id(8), trace_id(80)},
		.bits = trace_random(3),
		.ignore = trace_random(2) != 0 ? UINT64_MAX : 0,
		.unlink = true};
	const struct region_description region = {.start = (uintptr_t)to,
		.length = trace_random(33),
		.threshold = thresholds[trace_random(4)],
		.max_offset = trace_random(40),
		.options = trace_random(REGION_OPTIONS + 1),
		.queue = trace_random(4) != 0 ? queue : 0};
	uint64_t handle = rig_entry(rig, &entry);

	if (trace_random(8) != 0)
		rig_attach(rig, handle, &region, (int)trace_random(4));
}

static void trace_put(void)
{
	struct message_header header = rig_put_header(0);
	uint32_t length = trace_random(4) == 0 ? trace_random(33) : 8 + trace_random(9);
	struct process from = trace_random(8) == 0 ? (struct process){9, 80} : RIG_PEER;

	header.portal = trace_random(20) == 0 ? RIG_PORTALS : trace_random(2);
	header.cookie = trace_random(20) == 0 ? trace_random(RIG_ACCESS + 1) : 0;
	header.uid = trace_random(20) == 0 ? RIG_UID + 1 : RIG_UID;
	header.match_bits = trace_random(3);
	header.value = trace_random(2) * 77;
	header.offset = trace_random(3) == 0 ? trace_random(40) : 0;
	header.handle = trace_random(3) == 0 ? 5 : 0;
	header.operation = header.handle != 0 ? 6 : 0;
	header.requested = length;
	fake_deliver(from, &header, data, length);
}

/* frame: bytes of data that come with a put's beginning. */
static void trace_run(uint64_t seed, uint64_t frame, struct trace_outcome *outcome)
{
	struct rig *rig;
	void *state;
	uint64_t queue;

	assert_int_equal(rig_setup(&state), 0);
	rig = state;
	memset(outcome, 0, sizeof(*outcome));
	trace_state = seed;
	queue = rig_queue(rig, 4096);
	fake_set_frame(frame);
	for (unsigned n = 0; n < TRACE_PUTS; n++) {
		if (n % 10 == 0)
			trace_attach(rig, queue, outcome->memory[trace_random(6)]);
		trace_put();
	}
	while (rig_take(rig->segment, queue, &outcome->events[outcome->count]) == QUEUE_EVENT) {
		/* Memory that differs from run to run. */
		outcome->events[outcome->count++].start = 0;
		assert_true(outcome->count < sizeof(outcome->events) / sizeof(outcome->events[0]));
	}
	memset(&outcome->events[outcome->count], 0, sizeof(outcome->events[0]));
	outcome->drops = rig_drops(rig);
	outcome->received = rig_counter(rig, puts_received);
	while (fake_next())
		outcome->acknowledged++;
	fake_set_frame(FAKE_FRAME);
	assert_int_equal(rig_teardown(&state), 0);
}

static void puts__come_to_the_same_as_a_whole_and_in_pieces(void **state)
{
	static struct trace_outcome whole, pieces;
	unsigned long received = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= TRACES; seed++) {
		trace_run(seed, FAKE_FRAME, &whole);
		trace_run(seed, seed % 12, &pieces);
		assert_int_equal(whole.count, pieces.count);
		for (unsigned i = 0; i < whole.count; i++)
			assert_memory_equal(
				&whole.events[i], &pieces.events[i], sizeof(whole.events[i]));
		assert_memory_equal(whole.memory, pieces.memory, sizeof(whole.memory));
		assert_int_equal(whole.drops, pieces.drops);
		assert_int_equal(whole.received, pieces.received);
		assert_int_equal(whole.acknowledged, pieces.acknowledged);
		received += whole.received;
	}
	assert_true(received > TRACES * TRACE_PUTS / 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(put__places_data_and_logs_start_and_end),
		test(put__of_no_bytes_is_a_put),
		test(put__that_breaks_off_ends_in_put_fail),
		test(puts__start_in_order_and_end_in_any),
		test(put__to_a_portal_that_does_not_exist_is_dropped),
		test(put__with_a_bad_cookie_is_dropped),
		test(access_entry_0__admits_the_same_user_and_no_other_entry_admits_anybody),
		test(access_entry__admits_what_it_names_and_wildcards),
		test(access_command__survives_an_index_out_of_limits),
		test(walk__takes_the_first_entry_that_matches_and_accepts),
		test(walk__of_another_portal_finds_nothing),
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
		test(put__is_acknowledged_after_its_end_when_asked),
		test(put__is_not_acknowledged_unasked_or_when_disabled_or_when_dropped),
		test(put__is_acknowledged_also_when_it_unlinks_its_region),
		test(ack__is_logged_and_costs_one_of_the_threshold),
		test(ack__that_exhausts_its_region_unlinks_it_when_the_send_has_ended),
		test(ack__that_comes_before_the_sends_end_waits_for_it),
		test(ack__whose_descriptor_or_queue_is_gone_is_dropped),
		test(get__is_answered_with_the_data_and_ends_when_the_reply_has_left),
		test(get__grows_the_local_offset_and_is_truncated),
		test(get__whose_reply_fails_ends_in_get_fail),
		test(get__that_is_discarded_is_refused_by_name),
		test(requests__for_which_there_is_no_memory_are_dropped_and_change_nothing),
		test(reply__lands_at_the_regions_start_and_costs_one),
		test(reply__is_never_refused_for_threshold_and_cut_to_the_region),
		test(reply__that_comes_before_its_request_is_acknowledged_ends_once),
		test(reply__that_nobody_asked_for_is_dropped),
		test(reply__that_exhausts_its_region_unlinks_it),
		test(refusal__ends_the_get_in_reply_fail_once),
		test(refusal__does_not_stop_a_reply_that_has_begun),
		test(probe__is_refused_unless_its_reply_is_under_way),
		test(message__that_is_not_well_formed_is_counted_and_nothing_else),
		test(message__whose_data_is_not_as_long_as_it_says_is_dropped),
		test(messages__of_random_content_never_reach_beyond_a_region),
		cmocka_unit_test(puts__come_to_the_same_as_a_whole_and_in_pieces), /* changes the frame */
	};

	int failed = 0;

	for (unsigned whole = 0; whole <= 1; whole++) {
		message_is_whole = whole;
		fake_set_frame(whole ? FAKE_FRAME : 0);
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
