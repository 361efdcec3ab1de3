/* SPDX-License-Identifier: BSD-3-Clause */
/* test_rma.c - stores and loads that this process begins, until their last event. */
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>
#include <engine/amo.h>
#include <engine/outcome.h>
#include <engine/tiers.h>

#include "fake_transport.h"
#include "rig.h"

struct caller {
	struct rig *rig, *space;
	uint64_t queue, counter, descriptor;
	char memory[64];
	struct outcome outcome;
};

static const char data[64] = "what the other side has";

static uint64_t describe(struct caller *caller, uint32_t unwanted)
{
	return rig_describe(caller->space, &(struct rig_tier){
						   .start = caller->memory,
						   .length = sizeof(caller->memory),
						   .queue = caller->queue,
						   .counter = caller->counter,
						   .counts = UINT16_MAX,
						   .flags = ATTACHMENT_BYTES,
						   .log = unwanted,
					   });
}

static int setup(void **state)
{
	struct caller *caller = calloc(1, sizeof(*caller));

	assert_non_null(caller);
	rig_setup((void **)&caller->rig);
	fake_set_frame(FAKE_FRAME);
	caller->space = rig_tiers(caller->rig, false, &caller->queue);
	caller->counter = rig_event_counter(caller->space);
	caller->descriptor = describe(caller, 0);
	*state = caller;
	return 0;
}

static int teardown(void **state)
{
	struct caller *caller = *state;

	if (caller->rig->engine)
		rig_stop(caller->rig);
	rig_space_free(caller->space);
	rig_destroy(caller->rig);
	free(caller);
	return 0;
}

/* Begins an operation of 20 bytes; the message. */
static struct fake_sent *begin(struct caller *caller, unsigned message, enum rma_want want)
{
	rig_begin(caller->space, caller->descriptor,
		&(struct rig_rma){
			.to = RIG_PEER,
			.portal = 3,
			.bits = 9,
			.offset = 100,
			.value = 11,
			.local = 8,
			.length = 20,
			.user = want == WANT_OUTCOME ? (uintptr_t)&caller->outcome : 42,
			.message = (uint8_t)message,
			.want = (uint8_t)want,
		});
	return fake_next();
}

static struct message_header answer_to(const struct fake_sent *sent, uint64_t moved)
{
	return (struct message_header){
		.kind = sent->header.kind == MESSAGE_LOAD ? MESSAGE_LOADED : MESSAGE_STORED,
		.space = 4,
		.operation = sent->header.operation,
		.value = moved,
		.offset = 5,
	};
}

static void arrive(const struct message_header *header)
{
	fake_deliver(RIG_PEER, header, data, header->kind == MESSAGE_LOADED ? header->value : 0);
}

static void expect_count(struct caller *caller, uint64_t success, uint64_t failure)
{
	const struct event_count count = rig_counted(caller->space, caller->counter);

	assert_int_equal(count.success, success);
	assert_int_equal(count.failure, failure);
}

static void engine_rma__comes_after_what_is_in_the_ring(void **state)
{
	struct caller *caller = *state;
	struct rig *space = caller->space;
	struct rig_rma call = {.to = RIG_PEER, .portal = 3, .length = 20, .message = MESSAGE_STORE};
	struct long_command first = rig_rma_command(caller->descriptor, &call), second;

	call.portal = 5;
	second = rig_rma_command(caller->descriptor, &call);
	first.command.space = second.command.space = 4;
	assert_true(ring_put_lines(segment_ring(space->ring), &first, 2));
	assert_false(engine_rma(
		space->engine, 4, &second.command.move, (const void *)second.further[0], NULL));
	engine_poll(space->engine);
	assert_int_equal(fake_next()->header.portal, 3);
	assert_true(engine_rma(
		space->engine, 4, &second.command.move, (const void *)second.further[0], NULL));
	assert_int_equal(fake_next()->header.portal, 5);
}

static void store__says_what_was_asked_and_tells_when_it_was_sent(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent = begin(caller, MESSAGE_STORE, WANT_NOTHING);

	fake_expect(sent, &(struct message_header){
				  .kind = MESSAGE_STORE,
				  .space = 4,
				  .uid = RIG_UID,
				  .portal = 3,
				  .match_bits = 9,
				  .value = 11,
				  .offset = 100,
			  });
	assert_int_equal(sent->length, 20);
	assert_ptr_equal(sent->data, caller->memory + 8);
	rig_no_event(caller->space, caller->queue);
	fake_finish(sent, TRANSPORT_OK);
	assert_int_equal(rig_tier_event(caller->space, caller->queue, TIER_SEND).user, 42);
	rig_no_event(caller->space, caller->queue);
	expect_count(caller, 20, 0);
}

static void store__sends_the_data_that_came_with_it(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent;

	rig_begin(caller->space, caller->descriptor,
		&(struct rig_rma){
			.to = RIG_PEER,
			.length = COPIED_MAX,
			.message = MESSAGE_STORE,
			.copied = data,
		});
	sent = fake_next();
	assert_int_equal(sent->length, COPIED_MAX);
	assert_memory_equal(sent->data, data, COPIED_MAX);
	fake_finish(sent, TRANSPORT_OK);
	expect_count(caller, COPIED_MAX, 0);
}

static void acknowledgement__comes_after_send(void **state)
{
	struct caller *caller = *state;
	struct message_header answer;
	struct rig_tier_event event;

	for (int early = 0; early < 2; early++) {
		struct fake_sent *sent = begin(caller, MESSAGE_STORE, WANT_EVENT);

		answer = answer_to(sent, 15);
		answer.detail = early ? 0 : MESSAGE_TIER;
		if (!early)
			fake_finish(sent, TRANSPORT_OK);
		arrive(&answer);
		/* C1: the answer proves that the request arrived */
		if (early) {
			answer.value = 1;
			arrive(&answer); /* another one is not heard */
			rig_no_event(caller->space, caller->queue);
			fake_finish(sent, TRANSPORT_DEAD);
		}
		assert_int_equal(
			rig_tier_event(caller->space, caller->queue, TIER_SEND).verdict, TIER_OK);
		event = rig_tier_event(caller->space, caller->queue, TIER_ACK);
		assert_int_equal(event.verdict, TIER_OK);
		assert_int_equal(event.user, 42);
		assert_int_equal(event.moved, 15);
		assert_int_equal(event.offset, 5);
		assert_int_equal(event.tier, !early);
		expect_count(caller, (uint64_t)(35 * (early + 1)), 0);
	}
	arrive(&answer); /* once more */
	rig_no_event(caller->space, caller->queue);
	assert_int_equal(rig_counter(caller->space, refusals_late), 2);
}

static void want__says_what_an_acknowledgement_does(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent = begin(caller, MESSAGE_STORE, WANT_COUNT);
	struct message_header answer = answer_to(sent, 15);

	fake_finish(sent, TRANSPORT_OK);
	arrive(&answer);
	expect_count(caller, 35, 0);
	sent = begin(caller, MESSAGE_STORE, WANT_END);
	answer = answer_to(sent, 15);
	fake_finish(sent, TRANSPORT_OK);
	arrive(&answer);
	expect_count(caller, 35 + 20 + 1, 0);
	sent = begin(caller, MESSAGE_STORE, WANT_EVENT);
	answer = answer_to(sent, 15);
	answer.detail = TIER_SILENT;
	fake_finish(sent, TRANSPORT_OK);
	arrive(&answer);
	expect_count(caller, 35 + 20 + 1 + 20, 0);
	for (int i = 0; i < 3; i++)
		rig_tier_event(caller->space, caller->queue, TIER_SEND);
	rig_no_event(caller->space, caller->queue);
}

static void refusal__is_told_by_the_acknowledgement(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent = begin(caller, MESSAGE_STORE, WANT_EVENT);
	struct message_header answer = answer_to(sent, 0);

	answer.detail = TIER_REFUSED;
	fake_finish(sent, TRANSPORT_OK);
	arrive(&answer);
	assert_int_equal(rig_tier_event(caller->space, caller->queue, TIER_SEND).verdict, TIER_OK);
	assert_int_equal(
		rig_tier_event(caller->space, caller->queue, TIER_ACK).verdict, TIER_REFUSED);
	expect_count(caller, 20, 1);
}

/* C3 */
static void failure__is_told_once_and_counted_for_both(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent = begin(caller, MESSAGE_STORE, WANT_EVENT);

	fake_finish(sent, TRANSPORT_DEAD);
	assert_int_equal(rig_tier_event(caller->space, caller->queue, TIER_SEND).verdict,
		TIER_UNDELIVERABLE);
	rig_no_event(caller->space, caller->queue);
	expect_count(caller, 0, 2);
	caller->descriptor = describe(caller, TIER_BIT(TIER_SEND) | TIER_BIT_FAILED(TIER_SEND));
	sent = begin(caller, MESSAGE_STORE, WANT_EVENT);
	fake_finish(sent, TRANSPORT_DEAD);
	assert_int_equal(
		rig_tier_event(caller->space, caller->queue, TIER_ACK).verdict, TIER_UNDELIVERABLE);
	sent = begin(caller, MESSAGE_STORE, WANT_COUNT);
	fake_finish(sent, TRANSPORT_DEAD);
	assert_int_equal(rig_tier_event(caller->space, caller->queue, TIER_SEND).verdict,
		TIER_UNDELIVERABLE);
	rig_no_event(caller->space, caller->queue);
	expect_count(caller, 0, 6);
}

/* The outcome that comes next, and no other. */
static const struct outcome *outcome_next(struct caller *caller)
{
	struct outcome *next =
		outcomes_take(segment_queue(caller->space->segment, handle_index(caller->queue)));

	assert_ptr_equal(next, &caller->outcome);
	assert_null(next->next);
	return next;
}

/* C3 */
static void outcome__is_told_instead_of_an_event(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent;
	struct message_header answer;

	caller->descriptor = describe(caller, TIER_BIT(TIER_SEND) | TIER_BIT_FAILED(TIER_SEND));
	for (int early = 0; early < 2; early++) {
		const struct queue_view view = queue_view(caller->space->segment,
			segment_queue(caller->space->segment, handle_index(caller->queue)),
			caller->queue);

		sent = begin(caller, MESSAGE_STORE, WANT_OUTCOME);
		answer = answer_to(sent, 15);
		answer.detail = early ? 0 : MESSAGE_TIER;
		if (!early)
			fake_finish(sent, TRANSPORT_OK);
		arrive(&answer);
		if (early)
			fake_finish(sent, TRANSPORT_DEAD);
		assert_true(queue_has_events(&view));
		assert_int_equal(outcome_next(caller)->verdict, TIER_OK);
		assert_int_equal(caller->outcome.tier, !early);
		assert_int_equal(caller->outcome.moved, 15);
		assert_int_equal(caller->outcome.offset, 5);
		assert_false(queue_has_events(&view));
	}
	sent = begin(caller, MESSAGE_STORE, WANT_OUTCOME);
	fake_finish(sent, TRANSPORT_DEAD);
	assert_int_equal(outcome_next(caller)->verdict, TIER_UNDELIVERABLE);
	sent = begin(caller, MESSAGE_STORE, WANT_OUTCOME);
	assert_false(engine_space_close(caller->rig->engine, 4));
	fake_finish(sent, TRANSPORT_DEAD); /* whose memory is no more */
	assert_null(
		outcomes_take(segment_queue(caller->space->segment, handle_index(caller->queue))));
	rig_no_event(caller->space, caller->queue);
}

/* C3 */
/* C6 */
static void refusal__of_a_store_without_an_answer_is_an_event_of_no_user(void **state)
{
	struct caller *caller = *state;
	struct message_header refusal = {
		.kind = MESSAGE_STORED, .space = 4, .cookie = 77, .detail = TIER_DROPPED};
	struct rig_tier_event event;

	arrive(&refusal);
	rig_no_event(caller->space, caller->queue);
	assert_int_equal(rig_counter(caller->space, refusals_late), 1);
	caller->rig->engine->opened[caller->space->space]->two_sided = true;
	arrive(&refusal);
	event = rig_tier_event(caller->space, caller->queue, TIER_ACK);
	assert_int_equal(event.user, 0);
	assert_int_equal(event.verdict, TIER_DROPPED);
	assert_int_equal(event.nid, RIG_PEER.nid);
	assert_int_equal(event.value, 77);
	/* A process that refuses without end leaves places to others (portal.h, T10). */
	for (unsigned i = 0; i < 100; i++)
		arrive(&refusal);
	fake_deliver((struct process){.nid = 9, .pid = 80}, &refusal, NULL, 0);
	for (unsigned i = 0; i < 4; i++)
		rig_tier_event(caller->space, caller->queue, TIER_ACK);
	assert_int_equal(rig_tier_event(caller->space, caller->queue, TIER_ACK).nid, 9);
	rig_no_event(caller->space, caller->queue);
	/* All together fill the Portal's part of the queue, and no more. */
	caller->rig->engine->opened[caller->space->space]->portals[0].most = 2;
	for (unsigned i = 0; i < 100; i++)
		arrive(&refusal);
	for (unsigned i = 0; i < 2; i++)
		rig_tier_event(caller->space, caller->queue, TIER_ACK);
	rig_no_event(caller->space, caller->queue);
	assert_int_equal(rig_counter(caller->space, events_lost), 0);
}

static void load__places_what_the_answer_brings(void **state)
{
	struct caller *caller = *state;

	for (int early = 0; early < 2; early++) {
		struct fake_sent *sent = begin(caller, MESSAGE_LOAD, WANT_NOTHING);
		struct message_header answer = answer_to(sent, 12);

		assert_int_equal(sent->header.requested, 20);
		assert_int_equal(sent->length, 0);
		memset(caller->memory, 'x', sizeof(caller->memory));
		if (!early)
			fake_finish(sent, TRANSPORT_OK);
		arrive(&answer);
		assert_int_equal(
			rig_tier_event(caller->space, caller->queue, TIER_REPLY).moved, 12);
		assert_memory_equal(caller->memory + 8, data, 12);
		assert_int_equal(caller->memory[20], 'x');
		if (early)
			fake_finish(sent, TRANSPORT_OK);
		rig_no_event(caller->space, caller->queue);
	}
	expect_count(caller, 24, 0);
	assert_int_equal(fake_unfinished(), 0);
}

/* An answer is another process's word. It may come in pieces. */
static void load__takes_no_more_than_it_asked_for(void **state)
{
	struct caller *caller = *state;

	for (unsigned pieces = 0; pieces < 2; pieces++) {
		struct fake_sent *sent = begin(caller, MESSAGE_LOAD, WANT_NOTHING);
		struct message_header answer = answer_to(sent, 50);

		fake_set_frame(pieces ? 30 : FAKE_FRAME);
		memset(caller->memory, 'x', sizeof(caller->memory));
		fake_finish(sent, TRANSPORT_OK);
		arrive(&answer);
		assert_int_equal(
			rig_tier_event(caller->space, caller->queue, TIER_REPLY).moved, 20);
		assert_memory_equal(caller->memory + 8, data, 20);
		assert_int_equal(caller->memory[28], 'x');
		assert_int_equal(caller->memory[7], 'x');
	}
}

/* C2. Nor may it end an operation without an event, or name a verdict that no target gives. */
static void answer__with_a_verdict_of_its_own_is_a_failure(void **state)
{
	static const uint8_t verdicts[] = {TIER_NO_MATCH, TIER_FAULT + 1, TIER_SILENT - 1};
	struct caller *caller = *state;
	uint64_t failures = 0;

	for (unsigned i = 0; i < 2 * sizeof(verdicts); i++) {
		bool load = i % 2 != 0;
		struct fake_sent *sent =
			begin(caller, load ? MESSAGE_LOAD : MESSAGE_STORE, WANT_EVENT);
		struct message_header answer = answer_to(sent, 0);

		fake_finish(sent, TRANSPORT_OK);
		if (!load)
			rig_tier_event(caller->space, caller->queue, TIER_SEND);
		answer.detail = verdicts[i / 2];
		arrive(&answer);
		assert_int_equal(
			rig_tier_event(caller->space, caller->queue, load ? TIER_REPLY : TIER_ACK)
				.verdict,
			TIER_UNDELIVERABLE);
		expect_count(caller, (i / 2 + 1) * 20, ++failures);
	}
}

static void load__that_is_answered_with_silence_ends_in_its_event(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent = begin(caller, MESSAGE_LOAD, WANT_NOTHING);
	struct message_header answer = answer_to(sent, 8);

	fake_finish(sent, TRANSPORT_OK);
	answer.detail = TIER_SILENT;
	arrive(&answer);
	assert_int_equal(rig_tier_event(caller->space, caller->queue, TIER_REPLY).verdict,
		TIER_UNDELIVERABLE);
	expect_count(caller, 0, 1);
}

/* No target is silent in a space with a life. */
static void store__that_is_answered_with_silence_in_a_life_ends_in_its_event(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent = begin(caller, MESSAGE_STORE, WANT_EVENT);
	struct message_header answer = answer_to(sent, 0);

	caller->space->engine->spaces[caller->space->space]->life = 7;
	fake_finish(sent, TRANSPORT_OK);
	rig_tier_event(caller->space, caller->queue, TIER_SEND);
	answer.detail = TIER_SILENT;
	arrive(&answer);
	assert_int_equal(
		rig_tier_event(caller->space, caller->queue, TIER_ACK).verdict, TIER_UNDELIVERABLE);
	expect_count(caller, 20, 1);
}

static void answer__of_another_process_or_kind_is_not_heard(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent = begin(caller, MESSAGE_LOAD, WANT_NOTHING);
	struct message_header answer = answer_to(sent, 8);

	fake_finish(sent, TRANSPORT_OK);
	fake_deliver((struct process){.nid = 9, .pid = 80}, &answer, data, 8);
	assert_int_equal(rig_counter(caller->space, dropped_late_reply), 1);
	answer.kind = MESSAGE_STORED;
	fake_deliver(RIG_PEER, &answer, data, 0);
	assert_int_equal(rig_counter(caller->space, refusals_late), 1);
	rig_no_event(caller->space, caller->queue);
	sent = begin(caller, MESSAGE_STORE, WANT_NOTHING);
	answer.operation++;
	fake_deliver(RIG_PEER, &answer, data, 0);
	assert_int_equal(rig_counter(caller->space, refusals_late), 2);
	fake_finish(sent, TRANSPORT_OK);
	rig_tier_event(caller->space, caller->queue, TIER_SEND);
}

static void load__in_pieces_ends_with_the_last(void **state)
{
	struct caller *caller = *state;

	for (int dies = 0; dies < 2; dies++) {
		struct fake_sent *sent = begin(caller, MESSAGE_LOAD, WANT_NOTHING);
		struct message_header answer = answer_to(sent, 20);
		struct fake_arrival *arrival = fake_begin(RIG_PEER, &answer, 20);
		struct rig_tier_event event;

		fake_finish(sent, TRANSPORT_OK);
		rig_no_event(caller->space, caller->queue);
		fake_place(arrival, 0, data, 20);
		fake_end(arrival, dies ? TRANSPORT_DEAD : TRANSPORT_OK);
		event = rig_tier_event(caller->space, caller->queue, TIER_REPLY);
		assert_int_equal(event.verdict, dies ? TIER_UNDELIVERABLE : TIER_OK);
		assert_int_equal(event.moved, dies ? 0 : 20);
	}
	assert_memory_equal(caller->memory + 8, data, 20);
	expect_count(caller, 20, 1);
}

/* C2 */
static void answer__that_does_not_come_is_asked_for(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent = begin(caller, MESSAGE_STORE, WANT_EVENT), *question;

	fake_finish(sent, TRANSPORT_OK);
	rig_tier_event(caller->space, caller->queue, TIER_SEND);
	fake_turn()->looked_ago = 0;
	rig_pass(caller->rig, RIG_PEER_TIMEOUT);
	question = fake_next();
	assert_non_null(question);
	assert_int_equal(question->header.kind, MESSAGE_ASK);
	assert_int_equal(question->header.detail, 0);
	assert_int_equal(question->header.operation, sent->header.operation);
	fake_finish(question, TRANSPORT_DEAD);
	assert_int_equal(
		rig_tier_event(caller->space, caller->queue, TIER_ACK).verdict, TIER_UNDELIVERABLE);
	expect_count(caller, 20, 1);
}

static void descriptor__that_was_released_ends_with_its_last_operation(void **state)
{
	struct caller *caller = *state;
	struct segment *segment = caller->space->segment;
	struct fake_sent *sent = begin(caller, MESSAGE_STORE, WANT_EVENT);
	const uint32_t free = freelist_count(segment_at(segment, segment->free_regions), 64);
	struct message_header answer = answer_to(sent, 20);
	struct command release = {.kind = COMMAND_REGION_RELEASE};

	release.object.index = handle_index(caller->descriptor);
	release.object.generation = handle_generation(caller->descriptor);
	assert_int_equal(rig_ask(caller->space, &release), ANSWER_OK);
	assert_int_equal(rig_ask(caller->space, &release), ANSWER_GONE);
	assert_null(begin(caller, MESSAGE_STORE, WANT_EVENT));
	assert_int_equal(rig_counter(caller->space, commands_stale), 1);
	fake_finish(sent, TRANSPORT_OK);
	assert_int_equal(freelist_count(segment_at(segment, segment->free_regions), 64), free);
	arrive(&answer);
	rig_tier_event(caller->space, caller->queue, TIER_SEND);
	rig_tier_event(caller->space, caller->queue, TIER_ACK);
	assert_int_equal(freelist_count(segment_at(segment, segment->free_regions), 64), free + 1);
}

static void space__that_closes_fails_the_calls_that_wait(void **state)
{
	struct caller *caller = *state;
	struct fake_sent *sent = begin(caller, MESSAGE_LOAD, WANT_NOTHING);

	fake_finish(sent, TRANSPORT_OK);
	assert_true(engine_space_close(caller->rig->engine, 4));
	assert_int_equal(rig_tier_event(caller->space, caller->queue, TIER_REPLY).verdict,
		TIER_UNDELIVERABLE);
}

/* Begins a fetch of 8 bytes whose source is in a descriptor of its own; the message. */
static struct fake_sent *fetch(struct caller *caller, uint64_t source)
{
	rig_begin(caller->space, caller->descriptor,
		&(struct rig_rma){
			.to = RIG_PEER,
			.value = 11,
			.local = 16,
			.length = 8,
			.user = 42,
			.message = MESSAGE_FETCH,
			.amo = message_amo(AMO_SUM, AMO_INT64),
			.source = source,
			.source_local = 8,
		});
	return fake_next();
}

static void expect_event(struct caller *caller, unsigned kind, unsigned verdict)
{
	const struct rig_tier_event event = rig_tier_event(caller->space, caller->queue, kind);

	assert_int_equal(event.verdict, verdict);
	assert_int_equal(event.user, 42);
}

static void expect_nothing(struct caller *caller)
{
	struct rig_tier_event event;

	assert_int_equal(rig_take_tier(caller->space, caller->queue, &event), QUEUE_EMPTY);
}

static void fetch__tells_send_before_reply_whichever_is_first(void **state)
{
	struct caller *caller = *state;
	uint64_t source = describe(caller, 0);
	struct message_header answer;
	struct fake_sent *sent;

	for (unsigned i = 0; i < 2; i++) {
		memset(caller->memory + 16, 0, 8);
		sent = fetch(caller, source);
		assert_int_equal(sent->header.kind, MESSAGE_FETCH);
		assert_int_equal(sent->header.detail, message_amo(AMO_SUM, AMO_INT64));
		assert_int_equal(sent->header.value, 11);
		assert_int_equal(sent->length, 8);
		assert_ptr_equal(sent->data, caller->memory + 8);
		answer = answer_to(sent, 8);
		answer.kind = MESSAGE_LOADED;
		if (i == 0)
			fake_finish(sent, TRANSPORT_OK);
		arrive(&answer);
		assert_memory_equal(caller->memory + 16, data, 8);
		if (i == 1) {
			memset(caller->memory + 16, 0, 8);
			arrive(&answer); /* once more, before the request is done */
			assert_int_equal(caller->memory[16], 0);
			expect_nothing(caller);
			/* an answer proves that the request has arrived */
			fake_finish(sent, TRANSPORT_DEAD);
		}
		expect_event(caller, TIER_SEND, TIER_OK);
		expect_event(caller, TIER_REPLY, TIER_OK);
		arrive(&answer); /* once more */
		expect_nothing(caller);
	}
	expect_count(caller, 4 * 8, 0);
}

/* The operand comes with the command, and the data is in memory. */
static void fetch__sends_its_operand_before_its_data(void **state)
{
	static const uint64_t operand = 77;
	struct caller *caller = *state;
	struct fake_sent *sent;

	memcpy(caller->memory, data, sizeof(caller->memory));
	rig_begin(caller->space, caller->descriptor,
		&(struct rig_rma){
			.to = RIG_PEER,
			.local = 16,
			.length = 8,
			.message = MESSAGE_FETCH,
			.amo = message_amo(AMO_CSWAP, AMO_INT64),
			.operand = &operand,
			.source = describe(caller, 0),
			.source_local = 8,
		});
	sent = fake_next();
	assert_int_equal(sent->length, 16);
	assert_memory_equal(sent->data, &operand, 8);
	assert_memory_equal((const char *)sent->data + 8, data + 8, 8);
}

static void fetch__that_fails_is_told_by_both_its_events(void **state)
{
	struct caller *caller = *state;

	fake_finish(fetch(caller, describe(caller, 0)), TRANSPORT_DEAD);
	expect_event(caller, TIER_SEND, TIER_UNDELIVERABLE);
	expect_event(caller, TIER_REPLY, TIER_UNDELIVERABLE);
	expect_count(caller, 0, 2);
}

static void fetch__keeps_both_descriptors_until_it_ends(void **state)
{
	struct caller *caller = *state;
	uint64_t source = describe(caller, 0);
	struct fake_sent *sent = fetch(caller, source);
	struct message_header answer = answer_to(sent, 8);
	const uint64_t descriptors[] = {source, caller->descriptor};
	struct command release = {.kind = COMMAND_REGION_RELEASE};

	answer.kind = MESSAGE_LOADED;
	for (unsigned i = 0; i < 2; i++) {
		release.object.index = handle_index(descriptors[i]);
		release.object.generation = handle_generation(descriptors[i]);
		assert_int_equal(rig_ask(caller->space, &release), ANSWER_OK);
		assert_int_equal(rig_region(caller->space, descriptors[i])->state, REGION_LEAVING);
	}
	arrive(&answer);
	fake_finish(sent, TRANSPORT_OK);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(rig_region(caller->space, descriptors[i])->state, REGION_FREE);
}

int main(void)
{
#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(engine_rma__comes_after_what_is_in_the_ring),
		test(store__says_what_was_asked_and_tells_when_it_was_sent),
		test(store__sends_the_data_that_came_with_it),
		test(acknowledgement__comes_after_send),
		test(want__says_what_an_acknowledgement_does),
		test(refusal__is_told_by_the_acknowledgement),
		test(failure__is_told_once_and_counted_for_both),
		test(outcome__is_told_instead_of_an_event),
		test(refusal__of_a_store_without_an_answer_is_an_event_of_no_user),
		test(load__places_what_the_answer_brings),
		test(load__takes_no_more_than_it_asked_for),
		test(answer__with_a_verdict_of_its_own_is_a_failure),
		test(load__that_is_answered_with_silence_ends_in_its_event),
		test(store__that_is_answered_with_silence_in_a_life_ends_in_its_event),
		test(answer__of_another_process_or_kind_is_not_heard),
		test(load__in_pieces_ends_with_the_last),
		test(answer__that_does_not_come_is_asked_for),
		test(descriptor__that_was_released_ends_with_its_last_operation),
		test(space__that_closes_fails_the_calls_that_wait),
		test(fetch__tells_send_before_reply_whichever_is_first),
		test(fetch__sends_its_operand_before_its_data),
		test(fetch__that_fails_is_told_by_both_its_events),
		test(fetch__keeps_both_descriptors_until_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
