/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tracing.c - the records of calls, requests, counters, triggers and searches in spaces with
 * tiers. */
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>
#include <engine/amo.h>
#include <engine/counter.h>

#include "fake_transport.h"
#include "rig.h"

#define RECORDS 64
#define BYTES   20
#define THEIRS  5 /* the peer's name for what it has begun */

struct traced {
	struct fake_target *target;
	struct rig *space;
	uint64_t descriptor, counter;
	uint64_t seen; /* records that the test has looked at */
};

static const char data[64] = "twenty bytes that are put";

static uint64_t made(void)
{
	return trace_self ? trace_self->count : 0;
}

static int setup(void **state)
{
	struct traced *traced = calloc(1, sizeof(*traced));

	assert_non_null(traced);
	fake_target_setup((void **)&traced->target);
	traced->space = traced->target->space;
	traced->counter = rig_event_counter(traced->space);
	traced->descriptor =
		rig_describe(traced->space, &(struct rig_tier){.start = traced->target->memory,
						    .length = sizeof(traced->target->memory),
						    .log = UINT32_MAX});
	rig_append(traced->space, &(struct rig_tier){.start = traced->target->memory,
					  .length = sizeof(traced->target->memory),
					  .ignore = UINT64_MAX,
					  .options = REGION_PUT | REGION_GET | REGION_REMOTE_OFFSET,
					  .log = UINT32_MAX});
	traced->seen = made();
	*state = traced;
	return 0;
}

static int teardown(void **state)
{
	struct traced *traced = *state;

	fake_target_teardown((void **)&traced->target);
	free(traced);
	return 0;
}

/* The next record. A counter knows the interface of its space, messages that of the engine. */
static void expect(struct traced *traced, enum trace_point point, uint64_t message, uint64_t length)
{
	const struct trace_record *record;

	assert_true(traced->seen < made());
	record = &trace_self->records[traced->seen++ & trace_mask];
	assert_int_equal(record->point, point);
	assert_int_equal(record->interface, point == TRACE_TRIGGER || point == TRACE_WAKE
						    ? handle_interface(traced->counter)
						    : RIG_INTERFACE);
	assert_int_equal(record->message, message);
	assert_int_equal(record->length, length);
}

static void expect_no_more(const struct traced *traced)
{
	assert_int_equal(traced->seen, made());
}

static uint64_t name_of(struct process initiator, uint64_t operation)
{
	return trace_message(initiator.nid, initiator.pid, operation);
}

static struct fake_sent *begin(struct traced *traced, unsigned message, enum rma_want want)
{
	rig_begin(traced->space, traced->descriptor,
		&(struct rig_rma){.to = RIG_PEER,
			.length = BYTES,
			.message = (uint8_t)message,
			.want = (uint8_t)want});
	return fake_next();
}

static void answer(const struct fake_sent *sent, unsigned kind)
{
	const struct message_header header = {.kind = (uint8_t)kind,
		.space = 4,
		.operation = sent->header.operation,
		.value = BYTES};

	fake_deliver(RIG_PEER, &header, data, kind == MESSAGE_LOADED ? BYTES : 0);
}

static void arrive(unsigned kind, uint16_t detail, uint64_t operation, uint64_t length)
{
	const struct message_header header = {.kind = (uint8_t)kind,
		.space = 4,
		.uid = RIG_UID,
		.detail = detail,
		.operation = operation,
		.requested = length};

	fake_deliver(RIG_PEER, &header, data, kind == MESSAGE_LOAD ? 0 : length);
}

static void engine__made_before_a_trace_has_no_records_of_messages(void **state)
{
	struct traced *traced = *state;

	assert_int_equal(trace_start(1, RECORDS), 0);
	arrive(MESSAGE_STORE, 0, THEIRS, BYTES);
	fake_finish(begin(traced, MESSAGE_STORE, WANT_NOTHING), TRANSPORT_OK);
	assert_int_equal(made(), 0);
}

static void store__is_recorded_until_its_acknowledgement(void **state)
{
	struct traced *traced = *state;
	struct fake_sent *sent = begin(traced, MESSAGE_STORE, WANT_EVENT);
	const uint64_t name = name_of(RIG_SELF, sent->header.operation);

	expect(traced, TRACE_COMMAND, name, BYTES);
	fake_finish(sent, TRANSPORT_OK);
	expect(traced, TRACE_ACKNOWLEDGED, name, BYTES);
	answer(sent, MESSAGE_STORED);
	expect(traced, TRACE_ACK, name, BYTES);
	expect_no_more(traced);
}

static void store__without_an_answer_has_no_name(void **state)
{
	struct traced *traced = *state;

	fake_finish(begin(traced, MESSAGE_STORE, WANT_NOTHING), TRANSPORT_OK);
	expect(traced, TRACE_ACKNOWLEDGED, 0, BYTES);
	arrive(MESSAGE_STORE, 0, 0, BYTES);
	expect(traced, TRACE_ARRIVED, 0, BYTES);
	expect(traced, TRACE_DONE, 0, BYTES);
	expect_no_more(traced);
}

static void load__is_recorded_until_its_reply_whole_or_in_pieces(void **state)
{
	struct traced *traced = *state;

	for (uint64_t frame = FAKE_FRAME; frame != 0; frame = frame == FAKE_FRAME ? 8 : 0) {
		struct fake_sent *sent = begin(traced, MESSAGE_LOAD, WANT_NOTHING);
		const uint64_t name = name_of(RIG_SELF, sent->header.operation);

		fake_set_frame(frame);
		expect(traced, TRACE_COMMAND, name, BYTES);
		fake_finish(sent, TRANSPORT_OK);
		expect(traced, TRACE_ACKNOWLEDGED, name, BYTES);
		answer(sent, MESSAGE_LOADED);
		expect(traced, TRACE_EVENT, name, BYTES);
		expect_no_more(traced);
	}
}

static void request__is_recorded_whole_or_in_pieces(void **state)
{
	struct traced *traced = *state;
	const uint64_t name = name_of(RIG_PEER, THEIRS);

	for (uint64_t frame = FAKE_FRAME; frame != 0; frame = frame == FAKE_FRAME ? 8 : 0) {
		fake_set_frame(frame);
		arrive(MESSAGE_STORE, 0, THEIRS, BYTES);
		expect(traced, TRACE_ARRIVED, name, BYTES);
		expect(traced, TRACE_DONE, name, BYTES);
		expect_no_more(traced);
	}
	fake_set_frame(FAKE_FRAME);
	arrive(MESSAGE_LOAD, 0, THEIRS, BYTES);
	expect(traced, TRACE_ARRIVED, name, BYTES);
	expect(traced, TRACE_DONE, name, BYTES);
	arrive(MESSAGE_ATOMIC, message_amo(AMO_SUM, AMO_UINT64), THEIRS, 8);
	expect(traced, TRACE_ARRIVED, name, 8);
	expect(traced, TRACE_ATOMIC, name, 8);
	expect_no_more(traced);
}

static void count_add(struct traced *traced, uint64_t success)
{
	struct command command = {.kind = COMMAND_COUNTER_ADD};

	command.count.index = handle_index(traced->counter);
	command.count.generation = handle_generation(traced->counter);
	command.count.by.success = success;
	assert_int_equal(rig_ask(traced->space, &command), ANSWER_OK);
}

/* One that waits, and one that is due at once. */
static void counter__is_recorded_with_what_it_triggers(void **state)
{
	struct traced *traced = *state;
	const struct long_command command = rig_rma_command(traced->descriptor,
		&(struct rig_rma){.to = RIG_PEER, .length = BYTES, .message = MESSAGE_STORE});

	rig_trigger(traced->space, traced->counter, 2, &command, 2);
	count_add(traced, 1);
	expect(traced, TRACE_COUNT, 0, 1);
	expect_no_more(traced);
	count_add(traced, 2);
	expect(traced, TRACE_TRIGGER, 0, 2);
	expect(traced, TRACE_COUNT, 0, 3);
	rig_trigger(traced->space, traced->counter, 3, &command, 2);
	expect(traced, TRACE_TRIGGER, 0, 3);
	expect_no_more(traced);
}

static void counter__is_recorded_when_it_wakes_a_thread(void **state)
{
	struct traced *traced = *state;
	struct event_counter *counter =
		segment_counter(traced->space->segment, handle_index(traced->counter));

	event_counter_enter(counter, 2);
	count_add(traced, 1);
	expect(traced, TRACE_COUNT, 0, 1);
	expect_no_more(traced);
	count_add(traced, 1);
	expect(traced, TRACE_COUNT, 0, 2);
	expect(traced, TRACE_WAKE, 0, 2);
	expect_no_more(traced);
	event_counter_leave(counter);
}

static void search__is_recorded_with_what_it_found(void **state)
{
	struct traced *traced = *state;

	rig_search(traced->space, &(struct rig_tier){.ignore = UINT64_MAX}, false);
	expect(traced, TRACE_SEARCH, 0, 0);
	expect_no_more(traced);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(engine__made_before_a_trace_has_no_records_of_messages),
		test(store__is_recorded_until_its_acknowledgement),
		test(store__without_an_answer_has_no_name),
		test(load__is_recorded_until_its_reply_whole_or_in_pieces),
		test(request__is_recorded_whole_or_in_pieces),
		test(counter__is_recorded_with_what_it_triggers),
		test(counter__is_recorded_when_it_wakes_a_thread),
		test(search__is_recorded_with_what_it_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
