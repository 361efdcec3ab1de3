/* SPDX-License-Identifier: BSD-3-Clause */
/* test_space.c - several spaces on one engine: two interfaces of one process, on one port. */
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>

#include "fake_transport.h"
#include "rig.h"

static const char data[16] = "to one space";
static const struct rig_move move = {.to = {.nid = 8, .pid = 80}};

/* Two interfaces: each with an entry at Portal 0 for everything, and a region that is logged. */
struct two {
	struct rig *rig[2];
	uint64_t queue[2], region[2], entry[2];
	char memory[2][16];
};

static int two_setup(void **state)
{
	struct two *two = calloc(1, sizeof(*two));

	assert_non_null(two);
	rig_setup((void **)&two->rig[0]);
	fake_set_frame(FAKE_FRAME);
	two->rig[1] = rig_space(two->rig[0], 1, 2);
	for (int i = 0; i < 2; i++) {
		two->queue[i] = rig_queue(two->rig[i], 16);
		two->entry[i] = rig_entry_any(two->rig[i], false);
		two->region[i] = rig_attach(
			two->rig[i], two->entry[i], &RIG_REGION(two->memory[i], two->queue[i]), 0);
	}
	*state = two;
	return 0;
}

static int two_teardown(void **state)
{
	struct two *two = *state;

	if (two->rig[0]->engine)
		rig_stop(two->rig[0]);
	rig_space_free(two->rig[1]);
	rig_destroy(two->rig[0]);
	free(two);
	return 0;
}

static void put_arrive(uint8_t space, uint64_t length)
{
	struct message_header header = rig_put_header(length);

	header.space = space;
	fake_deliver(RIG_PEER, &header, data, length);
}

static void put__goes_to_the_space_that_it_names(void **state)
{
	struct two *two = *state;

	assert_int_equal(handle_index(two->region[0]), handle_index(two->region[1]));
	assert_int_not_equal(two->region[0], two->region[1]);
	for (int i = 0; i < 2; i++) {
		memset(two->memory, 0, sizeof(two->memory));
		put_arrive((uint8_t)i, 7);
		assert_memory_equal(two->memory[i], data, 7);
		assert_int_equal(two->memory[1 - i][0], 0);
		assert_int_equal(rig_event(two->rig[i], two->queue[i], EVENT_PUT_START).region,
			two->region[i]);
		rig_event(two->rig[i], two->queue[i], EVENT_PUT_END);
		rig_no_event(two->rig[1 - i], two->queue[1 - i]);
		assert_int_equal(rig_counter(two->rig[i], puts_received), 1);
	}
}

static void put__in_pieces_goes_to_the_space_that_it_names(void **state)
{
	struct two *two = *state;
	struct message_header header = rig_put_header(8);
	struct fake_arrival *arrival[2];

	for (int i = 0; i < 2; i++) {
		header.space = (uint8_t)i;
		header.handle = 5;
		arrival[i] = fake_begin(RIG_PEER, &header, 8);
	}
	for (int i = 0; i < 2; i++) {
		struct fake_sent *ack;

		fake_place(arrival[i], 0, data, 8);
		fake_end(arrival[i], TRANSPORT_OK);
		assert_memory_equal(two->memory[i], data, 8);
		rig_event(two->rig[i], two->queue[i], EVENT_PUT_START);
		rig_event(two->rig[i], two->queue[i], EVENT_PUT_END);
		ack = fake_next();
		assert_int_equal(ack->header.kind, MESSAGE_ACK);
		assert_int_equal(ack->header.space, i);
		fake_finish(ack, TRANSPORT_OK);
	}
}

static void put_and_get__name_the_space_that_they_come_from(void **state)
{
	struct two *two = *state;

	for (int i = 0; i < 2; i++) {
		struct rig *rig = two->rig[i];
		struct rig_move put = move;
		struct message_header reply;
		struct fake_sent *sent;

		put.acknowledge = true;
		assert_true(rig_put(rig, two->region[i], &put));
		sent = fake_next();
		assert_int_equal(sent->header.space, i);
		fake_finish(sent, TRANSPORT_OK);
		rig_event(rig, two->queue[i], EVENT_SEND_START);
		rig_event(rig, two->queue[i], EVENT_SEND_END);
		reply = sent->header;
		reply.kind = MESSAGE_ACK;
		reply.requested = 16;
		fake_deliver(RIG_PEER, &reply, NULL, 0);
		rig_event(rig, two->queue[i], EVENT_ACK);

		assert_true(rig_get(rig, two->region[i], &move));
		sent = fake_next();
		assert_int_equal(sent->header.space, i);
		fake_finish(sent, TRANSPORT_OK);
		reply = sent->header;
		reply.kind = MESSAGE_REPLY;
		reply.value = 4;
		fake_deliver(RIG_PEER, &reply, data, 4);
		rig_event(rig, two->queue[i], EVENT_REPLY_START);
		rig_event(rig, two->queue[i], EVENT_REPLY_END);
		assert_memory_equal(two->memory[i], data, 4);
	}
}

static void get__is_answered_from_the_space_that_it_names(void **state)
{
	struct two *two = *state;

	for (int i = 0; i < 2; i++) {
		struct message_header get = rig_get_header(16);
		struct fake_sent *reply;

		get.space = (uint8_t)i;
		fake_deliver(RIG_PEER, &get, NULL, 0);
		reply = fake_next();
		assert_int_equal(reply->header.kind, MESSAGE_REPLY);
		assert_int_equal(reply->header.space, i);
		assert_ptr_equal(reply->data, two->memory[i]);
		fake_finish(reply, TRANSPORT_OK);
		rig_event(two->rig[i], two->queue[i], EVENT_GET_START);
		rig_event(two->rig[i], two->queue[i], EVENT_GET_END);
	}
}

static void space__has_limits_and_counters_of_its_own(void **state)
{
	struct two *two = *state;
	struct message_header header = rig_put_header(0);

	header.space = 1;
	header.portal = 2; /* beyond the second's Portals */
	fake_deliver(RIG_PEER, &header, NULL, 0);
	assert_int_equal(rig_counter(two->rig[1], dropped_no_portal), 1);
	assert_int_equal(rig_drops(two->rig[0]), 0);
	header.space = 0;
	fake_deliver(RIG_PEER, &header, NULL, 0);
	assert_int_equal(rig_counter(two->rig[0], dropped_no_match), 1);
	assert_int_equal(rig_drops(two->rig[1]), 1);
}

static void message__for_a_space_that_does_not_exist_is_dropped(void **state)
{
	struct two *two = *state;
	const uint8_t spaces[] = {2, SPACES - 1, SPACES, UINT8_MAX};
	const uint8_t kinds[] = {MESSAGE_PUT, MESSAGE_ACK, MESSAGE_GET, MESSAGE_REPLY,
		MESSAGE_REFUSE, MESSAGE_PROBE};
	unsigned long dropped = 0;

	for (unsigned s = 0; s < sizeof(spaces); s++)
		for (unsigned k = 0; k < sizeof(kinds); k++) {
			struct message_header header = rig_get_header(0);
			struct fake_sent *refusal;

			header.kind = kinds[k];
			header.space = spaces[s];
			fake_deliver(RIG_PEER, &header, NULL, 0);
			assert_int_equal(rig_counter(two->rig[0], dropped_no_space), ++dropped);
			refusal = fake_next();
			if (kinds[k] != MESSAGE_GET && kinds[k] != MESSAGE_PROBE) {
				assert_null(refusal);
				continue;
			}
			assert_int_equal(refusal->header.kind, MESSAGE_REFUSE);
			assert_int_equal(refusal->header.space, spaces[s]);
			assert_int_equal(refusal->header.operation, header.operation);
			fake_finish(refusal, TRANSPORT_OK);
		}
	assert_int_equal(rig_drops(two->rig[0]), dropped);
	/* The same of one that does not come as a whole. */
	put_arrive(1, 7);
	assert_int_equal(rig_counter(two->rig[1], puts_received), 1);
}

static void engine_space_close__waits_for_what_is_in_flight(void **state)
{
	struct two *two = *state;
	struct engine *engine = two->rig[0]->engine;
	struct fake_sent *put, *get;

	assert_true(rig_put(two->rig[1], two->region[1], &move));
	put = fake_next();
	assert_true(rig_get(two->rig[1], two->region[1], &move));
	get = fake_next();
	assert_true(rig_get(two->rig[1], two->region[1], &move));
	fake_finish(fake_next(), TRANSPORT_OK); /* it waits for its reply */
	rig_event(two->rig[1], two->queue[1], EVENT_SEND_START);

	assert_false(engine_space_close(engine, 1));
	assert_int_equal(
		rig_event(two->rig[1], two->queue[1], EVENT_REPLY_FAILED).fail, TRANSPORT_SHUTDOWN);
	put_arrive(1, 7);
	assert_int_equal(rig_counter(two->rig[0], dropped_no_space), 1);
	fake_finish(put, TRANSPORT_OK);
	rig_event(two->rig[1], two->queue[1], EVENT_SEND_END);
	assert_false(engine_space_close(engine, 1));
	fake_finish(get, TRANSPORT_OK);
	assert_int_equal(
		rig_event(two->rig[1], two->queue[1], EVENT_REPLY_FAILED).fail, TRANSPORT_SHUTDOWN);
	assert_true(engine_space_close(engine, 1));
	assert_int_equal(rig_region(two->rig[1], two->region[1])->pending, 0);

	/* The other one is none the wiser. */
	put_arrive(0, 7);
	rig_event(two->rig[0], two->queue[0], EVENT_PUT_START);
}

static void command__for_a_space_that_has_gone_falls_away(void **state)
{
	struct two *two = *state;
	struct engine *engine = two->rig[0]->engine;
	const struct command command = rig_move_command(two->region[1], &move, COMMAND_PUT);

	assert_true(engine_space_close(engine, 1));
	rig_post(two->rig[1], &command);
	engine_poll(engine);
	assert_null(fake_next());
	assert_int_equal(rig_counter(two->rig[0], commands_stale), 1);
	assert_int_equal(rig_region_unlink(two->rig[1], two->region[1]), ANSWER_CLOSED);
	assert_int_equal(rig_region_unlink(two->rig[0], two->region[0]), ANSWER_OK);
}

static void engine_space_open__opens_again_what_was_closed(void **state)
{
	struct two *two = *state;
	struct engine *engine = two->rig[0]->engine;

	assert_true(engine_space_close(engine, 1));
	rig_space_free(two->rig[1]);
	two->rig[1] = rig_space(two->rig[0], 1, 2);
	put_arrive(1, 7);
	assert_int_equal(rig_counter(two->rig[1], dropped_no_match), 1);
}

static void queues__of_all_spaces_wake_their_sleepers(void **state)
{
	struct two *two = *state;
	struct queue *queue[2];

	for (int i = 0; i < 2; i++) {
		queue[i] = segment_queue(two->rig[i]->segment, handle_index(two->queue[i]));
		atomic_store(&queue[i]->sleepers, 1);
	}
	assert_int_equal(handle_index(two->queue[0]), handle_index(two->queue[1]));
	for (int i = 0; i < 2; i++) {
		struct message_header header = rig_put_header(7);

		header.space = (uint8_t)i;
		fake_queue(RIG_PEER, &header, data, 7);
	}
	engine_poll(two->rig[0]->engine);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(atomic_load(&queue[i]->futex), 1);
		assert_int_equal(queue[i]->touched, 0);
	}
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, two_setup, two_teardown)
	const struct CMUnitTest tests[] = {
		test(put__goes_to_the_space_that_it_names),
		test(put__in_pieces_goes_to_the_space_that_it_names),
		test(put_and_get__name_the_space_that_they_come_from),
		test(get__is_answered_from_the_space_that_it_names),
		test(space__has_limits_and_counters_of_its_own),
		test(message__for_a_space_that_does_not_exist_is_dropped),
		test(engine_space_close__waits_for_what_is_in_flight),
		test(command__for_a_space_that_has_gone_falls_away),
		test(engine_space_open__opens_again_what_was_closed),
		test(queues__of_all_spaces_wake_their_sleepers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
