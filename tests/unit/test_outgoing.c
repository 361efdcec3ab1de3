/* SPDX-License-Identifier: BSD-3-Clause */
/* test_outgoing.c - messages that this process sends, until the transport is done with them. */
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>

#include "fake_transport.h"
#include "rig.h"

#define PROBE_INTERVAL (RIG_PEER_TIMEOUT / PROBES_PER_LIFE)

static char memory[32];
static const struct rig_move move = {
	.to = RIG_PEER, .portal = 3, .cookie = 1, .bits = 0xfeed, .offset = 12, .value = 0xdada};

static void put__sends_what_it_was_told_and_logs_start_and_end(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	struct event start, end;
	struct fake_sent *sent;

	assert_true(rig_put(rig, region, &move));
	sent = fake_next();
	assert_int_equal(sent->to.nid, RIG_PEER.nid);
	assert_int_equal(sent->to.pid, RIG_PEER.pid);
	assert_ptr_equal(sent->data, memory);
	assert_int_equal(sent->length, sizeof(memory));
	assert_int_equal(sent->header.kind, MESSAGE_PUT);
	assert_int_equal(sent->header.uid, RIG_UID);
	assert_int_equal(sent->header.portal, 3);
	assert_int_equal(sent->header.cookie, 1);
	assert_int_equal(sent->header.match_bits, 0xfeed);
	assert_int_equal(sent->header.offset, 12);
	assert_int_equal(sent->header.requested, sizeof(memory));
	assert_int_equal(sent->header.value, 0xdada);
	assert_int_equal(sent->header.handle, 0); /* no acknowledgement wanted */
	start = rig_event(rig, queue, EVENT_SEND_START);
	assert_int_equal(start.nid, RIG_SELF.nid);
	assert_int_equal(start.pid, RIG_SELF.pid);
	assert_int_equal(start.uid, RIG_UID);
	assert_int_equal(start.portal, 3);
	assert_int_equal(start.match_bits, 0xfeed);
	assert_int_equal(start.requested, sizeof(memory));
	assert_int_equal(start.moved, sizeof(memory));
	assert_int_equal(start.value, 0xdada);
	assert_int_equal(start.region, region);
	assert_int_equal(start.link, start.sequence);
	rig_no_event(rig, queue);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_PENDING);
	fake_finish(sent, TRANSPORT_OK);
	end = rig_event(rig, queue, EVENT_SEND_END);
	assert_int_equal(end.link, start.sequence);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
}

static void put__that_fails_says_why(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description description = RIG_REGION(memory, queue);
	uint64_t region;

	description.threshold = 1;
	region = rig_attach(rig, rig_entry_any(rig, true), &description, RIG_UNLINK_OP);
	assert_true(rig_put(rig, region, &move));
	fake_finish(fake_next(), TRANSPORT_UNREACHABLE);
	rig_event(rig, queue, EVENT_SEND_START);
	assert_int_equal(rig_event(rig, queue, EVENT_SEND_FAILED).fail, TRANSPORT_UNREACHABLE);
	rig_no_event(rig, queue); /* a failed operation unlinks nothing */
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
}

static void put__logs_the_events_that_its_region_wants(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t handle = rig_bind(rig, &RIG_REGION(memory, queue));
	struct region *region = rig_region(rig, handle);
	struct event event;

	region->log = EVENT_BIT(EVENT_SEND_END);
	assert_true(rig_put(rig, handle, &move));
	rig_no_event(rig, queue);
	fake_finish(fake_next(), TRANSPORT_OK);
	event = rig_event(rig, queue, EVENT_SEND_END);
	assert_int_equal(event.link, event.sequence);
	assert_true(rig_put(rig, handle, &move));
	fake_finish(fake_next(), TRANSPORT_DEAD);
	rig_no_event(rig, queue);
	assert_int_equal(region->pending, 0);
}

static void put__asks_for_an_acknowledgement_only_if_there_is_a_queue_for_it(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	uint64_t silent = rig_bind(rig, &RIG_REGION(memory, 0));
	struct rig_move asks = move;
	struct fake_sent *sent;

	asks.acknowledge = true;
	assert_true(rig_put(rig, region, &asks));
	sent = fake_next();
	assert_int_equal(sent->header.handle, region);
	assert_int_equal(sent->header.operation, rig_event(rig, queue, EVENT_SEND_START).sequence);
	assert_true(rig_put(rig, silent, &asks));
	assert_int_equal(fake_next()->header.handle, 0);
	assert_int_equal(rig_queue_free(rig, queue), ANSWER_OK);
	assert_true(rig_put(rig, region, &asks));
	assert_int_equal(fake_next()->header.handle, 0);
}

static void puts__cost_the_threshold_when_posted_and_show_it_as_they_begin(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 16);
	struct region_description description = RIG_REGION(memory, queue);
	uint64_t region;

	description.threshold = 3;
	region = rig_attach(rig, rig_entry_any(rig, true), &description, RIG_UNLINK_OP);
	for (uint32_t left = 3; left-- > 0;) {
		assert_true(rig_put_post(rig, region, &move));
		assert_int_equal(rig_threshold(rig, region), left);
	}
	assert_false(rig_put_post(rig, region, &move));
	engine_poll(rig->engine);
	for (uint32_t left = 3; left-- > 0;)
		assert_int_equal(rig_event(rig, queue, EVENT_SEND_START).threshold, left);
	/* The last one to begin is the first to end. */
	struct fake_sent *first = fake_next(), *second = fake_next(), *third = fake_next();

	fake_finish(third, TRANSPORT_OK);
	fake_finish(first, TRANSPORT_OK);
	rig_event(rig, queue, EVENT_SEND_END);
	rig_event(rig, queue, EVENT_SEND_END);
	rig_no_event(rig, queue);
	fake_finish(second, TRANSPORT_OK);
	rig_event(rig, queue, EVENT_SEND_END);
	assert_int_equal(rig_event(rig, queue, EVENT_UNLINK).link, 3);
}

static void put__does_not_move_the_local_offset(void **state)
{
	struct rig *rig = *state;
	struct region_description description = RIG_REGION(memory, 0);
	uint64_t region;

	description.max_offset = 4;
	region = rig_attach(rig, rig_entry_any(rig, true), &description, RIG_UNLINK_OP);
	assert_true(rig_put(rig, region, &move));
	fake_finish(fake_next(), TRANSPORT_OK);
	assert_int_equal(rig_region(rig, region)->offset, 0);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
}

static void put__of_a_region_that_another_thread_has_unlinked_falls_away(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue)), next;
	struct command command = rig_move_command(region, &move, COMMAND_PUT);

	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
	do {
		next = rig_bind(rig, &RIG_REGION(memory, queue));
	} while (handle_index(next) != handle_index(region));
	rig_post(rig, &command);
	command.kind = COMMAND_GET;
	rig_post(rig, &command);
	command.move.region = UINT32_MAX;
	rig_post(rig, &command);
	engine_poll(rig->engine);
	assert_null(fake_next());
	rig_no_event(rig, queue);
	assert_int_equal(rig_counter(rig, commands_stale), 3);
}

/* Its handle still lives, so PtlPut said yes. */
static void put__of_a_region_that_is_leaving_is_sent(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 16);
	struct message_header header = rig_put_header(8), large = rig_put_header(64);
	uint64_t region = rig_attach(
		rig, rig_entry_any(rig, true), &RIG_REGION(memory, queue), RIG_UNLINK_NOFIT);
	struct fake_arrival *arrival = fake_begin(RIG_PEER, &header, 8);

	fake_deliver(RIG_PEER, &large, NULL, 64);
	assert_int_equal(rig_region(rig, region)->state, REGION_LEAVING);
	assert_true(rig_put(rig, region, &move));
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_SEND_START);
	fake_end(arrival, TRANSPORT_OK);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_no_event(rig, queue);
	fake_finish(fake_next(), TRANSPORT_OK);
	rig_event(rig, queue, EVENT_SEND_END);
	rig_event(rig, queue, EVENT_UNLINK);
}

/* O4 */
struct pushed {
	struct rig *rig;
	uint64_t queue;
	unsigned messages;
};

static void pushed_look(void *argument)
{
	struct pushed *pushed = argument;

	rig_no_event(pushed->rig, pushed->queue);
	while (fake_next())
		pushed->messages++;
}

static void puts__are_on_their_way_before_their_start_is_logged(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	struct pushed pushed = {.rig = rig, .queue = queue};
	struct rig_move numbered = move;

	fake_on_push(pushed_look, &pushed);
	for (numbered.value = 1; numbered.value <= 3; numbered.value++)
		assert_true(rig_put_post(rig, region, &numbered));
	engine_poll(rig->engine);
	assert_int_equal(pushed.messages, 3);
	for (uint64_t value = 1; value <= 3; value++)
		assert_int_equal(rig_event(rig, queue, EVENT_SEND_START).value, value);
}

/* Those that are named by their start, and those that show a threshold, do not overtake the
 * others. */
static void puts__log_their_starts_in_the_order_in_which_they_began(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 16);
	struct region_description description = RIG_REGION(memory, queue);
	uint64_t region = rig_bind(rig, &description), bounded;
	struct rig_move numbered = move;

	description.threshold = 100;
	bounded = rig_bind(rig, &description);
	for (numbered.value = 1; numbered.value <= 12; numbered.value++) {
		numbered.acknowledge = numbered.value % 4 == 3;
		assert_true(
			rig_put_post(rig, numbered.value % 4 == 2 ? bounded : region, &numbered));
	}
	engine_poll(rig->engine);
	for (uint64_t value = 1; value <= 12; value++) {
		struct event event = rig_event(rig, queue, EVENT_SEND_START);

		assert_int_equal(event.value, value);
		assert_int_equal(event.sequence, value);
	}
}

/* A command finds the queue, and frames find it, as if the start had been logged at once. */
static void put__has_logged_its_start_before_another_command_is_carried_out(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	struct region_description before;

	assert_true(rig_put_post(rig, region, &move));
	assert_int_equal(rig_update(rig, region, NULL, queue, &before), ANSWER_NOT_EMPTY);
	rig_event(rig, queue, EVENT_SEND_START);
}

static void put__has_logged_its_start_before_a_frame_is_processed(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_attach(rig, rig_entry_any(rig, false), &RIG_REGION(memory, queue), 0);
	struct message_header header = rig_put_header(4);

	fake_queue(RIG_PEER, &header, "data", 4);
	assert_true(rig_put_post(rig, region, &move));
	engine_poll(rig->engine);
	rig_event(rig, queue, EVENT_SEND_START);
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
}

static void put__may_end_in_the_turn_that_sends_it(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));

	fake_finish_at_once(TRANSPORT_OK);
	assert_true(rig_put(rig, region, &move));
	rig_event(rig, queue, EVENT_SEND_START);
	rig_event(rig, queue, EVENT_SEND_END);
	fake_finish_at_once(TRANSPORT_DEAD);
	assert_true(rig_put(rig, region, &move));
	rig_event(rig, queue, EVENT_SEND_START);
	rig_event(rig, queue, EVENT_SEND_FAILED);
	assert_true(rig_get(rig, region, &move));
	rig_event(rig, queue, EVENT_REPLY_FAILED);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
	assert_int_equal(pool_taken(&rig->engine->operations), 0);
}

static void get__asks_for_the_regions_length_and_logs_nothing_yet(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description description = RIG_REGION(memory, queue);
	struct fake_sent *sent;
	uint64_t region;

	description.threshold = 1;
	region = rig_bind(rig, &description);
	assert_true(rig_get(rig, region, &move));
	assert_int_equal(rig_threshold(rig, region), 1);
	sent = fake_next();
	assert_int_equal(sent->header.kind, MESSAGE_GET);
	assert_int_equal(sent->header.handle, region);
	assert_int_equal(sent->header.requested, sizeof(memory));
	assert_int_equal(sent->header.offset, 12);
	assert_int_equal(sent->header.match_bits, 0xfeed);
	assert_int_equal(sent->header.value, 0);
	assert_int_equal(sent->length, 0);
	rig_no_event(rig, queue);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_PENDING);
	fake_finish(sent, TRANSPORT_OK);
	rig_no_event(rig, queue);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_PENDING);
}

static void get__whose_request_never_arrives_ends_in_reply_fail(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	struct event event;

	assert_true(rig_get(rig, region, &move));
	fake_finish(fake_next(), TRANSPORT_RESTARTED);
	event = rig_event(rig, queue, EVENT_REPLY_FAILED);
	assert_int_equal(event.fail, TRANSPORT_RESTARTED);
	assert_int_equal(event.nid, RIG_PEER.nid);
	assert_int_equal(event.link, event.sequence);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
}

/* A get whose request has arrived: it waits for its reply. Its request. */
static struct fake_sent *get_waiting(struct rig *rig, uint64_t region)
{
	struct fake_sent *sent;

	assert_true(rig_get(rig, region, &move));
	sent = fake_next();
	fake_finish(sent, TRANSPORT_OK);
	return sent;
}

static void get__that_was_refused_before_its_request_is_done_ends_once(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	struct message_header header;
	struct fake_sent *sent;

	assert_true(rig_get(rig, region, &move));
	sent = fake_next();
	header = sent->header;
	header.kind = MESSAGE_REFUSE;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	rig_event(rig, queue, EVENT_REPLY_FAILED);
	fake_finish(sent, TRANSPORT_DEAD);
	rig_no_event(rig, queue);
	assert_int_equal(pool_taken(&rig->engine->operations), 0);
}

static void get__that_waits_asks_after_its_target(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	struct fake_sent *sent, *probe;

	assert_true(rig_get(rig, region, &move));
	sent = fake_next();
	rig_pass(rig, 2 * PROBE_INTERVAL);
	assert_null(fake_next()); /* the request itself is the transport's to worry about */
	fake_finish(sent, TRANSPORT_OK);
	assert_int_equal(engine_deadline(rig->engine), PROBE_INTERVAL);
	rig_pass(rig, PROBE_INTERVAL - 1);
	assert_null(fake_next());
	assert_int_equal(engine_deadline(rig->engine), 1);
	rig_pass(rig, 1);
	for (unsigned i = 0; i < 3; i++) {
		probe = fake_next();
		assert_non_null(probe);
		assert_int_equal(probe->header.kind, MESSAGE_PROBE);
		assert_int_equal(probe->header.operation, sent->header.operation);
		assert_int_equal(probe->header.handle, region);
		assert_int_equal(probe->to.nid, RIG_PEER.nid);
		assert_int_equal(engine_deadline(rig->engine), UINT64_MAX);
		rig_pass(rig, PROBE_INTERVAL);
		assert_null(fake_next()); /* one at a time */
		fake_finish(probe, TRANSPORT_OK);
		rig_pass(rig, PROBE_INTERVAL);
	}
	rig_no_event(rig, queue);
	/* The target has died. */
	fake_finish(fake_next(), TRANSPORT_DEAD);
	assert_int_equal(rig_event(rig, queue, EVENT_REPLY_FAILED).fail, TRANSPORT_DEAD);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
	assert_int_equal(engine_deadline(rig->engine), UINT64_MAX);
}

static void gets__are_asked_after_oldest_first_and_only_those_that_are_due(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	uint64_t names[2];

	for (unsigned i = 0; i < 2; i++) {
		names[i] = get_waiting(rig, region)->header.operation;
		rig_pass(rig, PROBE_INTERVAL / 2);
	}
	assert_int_equal(fake_next()->header.operation, names[0]);
	assert_null(fake_next());
	rig_pass(rig, PROBE_INTERVAL / 2);
	assert_int_equal(fake_next()->header.operation, names[1]);
	assert_null(fake_next());
}

static void get__whose_reply_has_begun_asks_no_more(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	struct message_header header;
	struct fake_arrival *arrival;
	struct fake_sent *sent, *probe;

	for (int probed = 0; probed < 2; probed++) {
		sent = get_waiting(rig, region);
		if (probed)
			rig_pass(rig, PROBE_INTERVAL);
		probe = fake_next();
		assert_int_equal(probe != NULL, probed);
		header = sent->header;
		header.kind = MESSAGE_REPLY;
		header.value = 4;
		arrival = fake_begin(RIG_PEER, &header, 4);
		if (probed)
			fake_finish(probe, TRANSPORT_OK);
		rig_pass(rig, 2 * PROBE_INTERVAL);
		assert_null(fake_next());
		fake_end(arrival, TRANSPORT_OK);
		rig_event(rig, queue, EVENT_REPLY_START);
		rig_event(rig, queue, EVENT_REPLY_END);
		rig_no_event(rig, queue);
	}
	assert_int_equal(pool_taken(&rig->engine->operations), 0);
}

static void get__that_ends_while_it_is_asked_after_ends_once(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	struct message_header header;
	struct fake_sent *sent, *probe;

	for (int refused = 0; refused < 2; refused++) {
		sent = get_waiting(rig, region);
		rig_pass(rig, PROBE_INTERVAL);
		probe = fake_next();
		header = sent->header;
		header.kind = refused ? MESSAGE_REFUSE : MESSAGE_REPLY;
		header.value = 0;
		fake_deliver(RIG_PEER, &header, NULL, 0);
		if (!refused)
			rig_event(rig, queue, EVENT_REPLY_START);
		rig_event(rig, queue, refused ? EVENT_REPLY_FAILED : EVENT_REPLY_END);
		fake_finish(probe, TRANSPORT_DEAD);
		rig_no_event(rig, queue);
	}
	assert_int_equal(pool_taken(&rig->engine->operations), 0);
}

static void probes__that_fail_at_once_end_every_get(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));

	for (unsigned i = 0; i < 3; i++)
		get_waiting(rig, region);
	fake_finish_at_once(TRANSPORT_DEAD);
	rig_pass(rig, PROBE_INTERVAL);
	for (unsigned i = 0; i < 3; i++)
		rig_event(rig, queue, EVENT_REPLY_FAILED);
	rig_no_event(rig, queue);
	assert_int_equal(pool_taken(&rig->engine->operations), 0);
}

#define test(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(put__sends_what_it_was_told_and_logs_start_and_end),
		test(put__that_fails_says_why),
		test(put__logs_the_events_that_its_region_wants),
		test(put__asks_for_an_acknowledgement_only_if_there_is_a_queue_for_it),
		test(puts__cost_the_threshold_when_posted_and_show_it_as_they_begin),
		test(put__does_not_move_the_local_offset),
		test(put__of_a_region_that_another_thread_has_unlinked_falls_away),
		test(put__of_a_region_that_is_leaving_is_sent),
		test(puts__are_on_their_way_before_their_start_is_logged),
		test(puts__log_their_starts_in_the_order_in_which_they_began),
		test(put__has_logged_its_start_before_another_command_is_carried_out),
		test(put__has_logged_its_start_before_a_frame_is_processed),
		test(put__may_end_in_the_turn_that_sends_it),
		test(get__asks_for_the_regions_length_and_logs_nothing_yet),
		test(get__whose_request_never_arrives_ends_in_reply_fail),
		test(get__that_was_refused_before_its_request_is_done_ends_once),
		test(get__that_waits_asks_after_its_target),
		test(gets__are_asked_after_oldest_first_and_only_those_that_are_due),
		test(get__whose_reply_has_begun_asks_no_more),
		test(get__that_ends_while_it_is_asked_after_ends_once),
		test(probes__that_fail_at_once_end_every_get),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
