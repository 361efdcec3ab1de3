/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ping.c - echo questions between an application thread and the transport.
 *
 * Covers: lib/engine/ping.c.
 */
#include <string.h>

#include "fake_transport.h"
#include "rig.h"

/* Posts a question without waiting for its answer; its reply slot. */
static struct reply *ping_post(struct rig *rig, uint32_t size)
{
	uint32_t slot = segment_take(rig->segment, rig->segment->free_replies);
	struct reply *reply = segment_reply(rig->segment, slot);
	const struct command command = {
		.kind = COMMAND_PING,
		.reply = slot,
		.ping = {.nid = RIG_PEER.nid,
			.pid = RIG_PEER.pid,
			.size = size,
			.answer = 200,
			.timeout = SECOND},
	};

	assert_int_not_equal(slot, INDEX_NONE);
	memset(reply, 0, sizeof(*reply));
	rig_post(rig, &command);
	engine_poll(rig->engine);
	return reply;
}

static bool reply_done(struct reply *reply)
{
	return atomic_load(&reply->state) == REPLY_DONE;
}

static void ping__is_answered_when_the_transport_says_so(void **state)
{
	struct rig *rig = *state;
	struct reply *reply = ping_post(rig, 300);
	struct ping *ping = fake_ping();

	assert_non_null(ping);
	assert_int_equal(ping->to.nid, RIG_PEER.nid);
	assert_int_equal(ping->to.pid, RIG_PEER.pid);
	assert_int_equal(ping->size, 300);
	assert_int_equal(ping->answer, 200);
	assert_true(ping->timeout == SECOND);
	assert_false(reply_done(reply));
	ping->round_trip = 5000;
	ping->residence = 1000;
	ping->network = 3500;
	ping->exact = true;
	ping->incarnation = 12;
	ping->answered = 200;
	ping->capacity = 1496;
	fake_pings_end(PING_ANSWERED);
	assert_true(reply_done(reply));
	assert_int_equal(reply->answer, ANSWER_OK);
	assert_int_equal(reply->ping.outcome, PING_ANSWERED);
	assert_int_equal(reply->ping.round_trip, 5000);
	assert_int_equal(reply->ping.residence, 1000);
	assert_int_equal(reply->ping.network, 3500);
	assert_true(reply->ping.exact);
	assert_int_equal(reply->ping.incarnation, 12);
	assert_int_equal(reply->ping.answered, 200);
	assert_int_equal(reply->ping.capacity, 1496);
	assert_int_equal(reply->ping.most, FAKE_MTU);
}

static void ping__of_no_size_has_the_least(void **state)
{
	struct rig *rig = *state;

	ping_post(rig, 0);
	assert_int_equal(fake_ping()->size, FRAME_HEADER_BYTES);
	fake_pings_end(PING_NO_ANSWER);
}

static void ping__without_an_answer_tells_nothing_of_an_earlier_one(void **state)
{
	struct rig *rig = *state;
	struct reply *reply = ping_post(rig, 64);

	fake_ping()->round_trip = 77;
	fake_pings_end(PING_NO_ANSWER);
	assert_int_equal(reply->answer, ANSWER_OK);
	assert_int_equal(reply->ping.outcome, PING_NO_ANSWER);
	assert_int_equal(reply->ping.round_trip, 0);
	assert_int_equal(reply->ping.least, FRAME_HEADER_BYTES);
}

static void ping__for_which_there_is_no_peer_is_refused(void **state)
{
	struct rig *rig = *state;
	struct reply *reply = ping_post(rig, 64);

	fake_pings_end(PING_NO_MEMORY);
	assert_int_equal(reply->answer, ANSWER_NO_MEMORY);
}

static void ping__ends_when_the_interface_goes(void **state)
{
	struct rig *rig = *state;
	const struct command abandon = {.kind = COMMAND_PING_ABANDON};
	struct reply *before = ping_post(rig, 64);
	struct reply *after;

	atomic_store(&rig->segment->closed, 1);
	rig_post(rig, &abandon);
	engine_poll(rig->engine);
	assert_true(reply_done(before));
	assert_int_equal(before->answer, ANSWER_CLOSED);
	after = ping_post(rig, 64); /* it was late */
	assert_true(reply_done(after));
	assert_int_equal(after->answer, ANSWER_CLOSED);
	assert_null(fake_ping());
}

static void ping__ends_with_the_engine(void **state)
{
	struct rig *rig = *state;
	struct reply *reply = ping_post(rig, 64);

	rig_stop(rig);
	assert_true(reply_done(reply));
	assert_int_equal(reply->answer, ANSWER_CLOSED);
}

static void claim__reaches_the_transport(void **state)
{
	struct rig *rig = *state;

	assert_false(fake_claimed());
	engine_claim(rig->engine);
	assert_true(fake_claimed());
}

/* Posts a command about a name; its reply slot. */
static struct reply *name_post(struct rig *rig, enum command_kind kind, const void *other)
{
	struct command command = {.kind = (uint8_t)kind};
	struct reply *reply;

	command.reply = segment_take(rig->segment, rig->segment->free_replies);
	command.object.other = (uintptr_t)other;
	reply = segment_reply(rig->segment, command.reply);
	memset(reply, 0, sizeof(*reply));
	rig_post(rig, &command);
	engine_poll(rig->engine);
	return reply;
}

static void name__is_given_and_found(void **state)
{
	const struct frame_name name = {.host = "alpha", .board = 2};
	struct name_query query = {.wanted = {.host = "beta"}};
	struct rig *rig = *state;
	struct reply *reply = name_post(rig, COMMAND_HOST_NAME, &name);

	assert_true(reply_done(reply));
	assert_int_equal(reply->answer, ANSWER_OK);
	assert_memory_equal(fake_name(), &name, sizeof(name));
	reply = name_post(rig, COMMAND_HOST_FIND, &query);
	assert_false(reply_done(reply));
	assert_ptr_equal(fake_find(), &query);
	fake_find_end(NAME_FOUND);
	assert_true(reply_done(reply));
	assert_int_equal(reply->answer, ANSWER_OK);
	assert_int_equal(query.outcome, NAME_FOUND);
}

static void name__is_looked_for_no_more_when_the_interface_goes(void **state)
{
	const struct command abandon = {.kind = COMMAND_PING_ABANDON};
	struct name_query query = {.wanted = {.host = "beta"}};
	struct rig *rig = *state;
	struct reply *reply = name_post(rig, COMMAND_HOST_FIND, &query);

	atomic_store(&rig->segment->closed, true);
	rig_post(rig, &abandon);
	engine_poll(rig->engine);
	assert_true(reply_done(reply));
	assert_int_equal(reply->answer, ANSWER_CLOSED);
	reply = name_post(rig, COMMAND_HOST_FIND, &query);
	assert_true(reply_done(reply));
	assert_int_equal(reply->answer, ANSWER_CLOSED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(ping__is_answered_when_the_transport_says_so),
		TEST(ping__of_no_size_has_the_least),
		TEST(ping__without_an_answer_tells_nothing_of_an_earlier_one),
		TEST(ping__for_which_there_is_no_peer_is_refused),
		TEST(ping__ends_when_the_interface_goes),
		TEST(ping__ends_with_the_engine),
		TEST(claim__reaches_the_transport),
		TEST(name__is_given_and_found),
		TEST(name__is_looked_for_no_more_when_the_interface_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
