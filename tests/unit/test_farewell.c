/* SPDX-License-Identifier: BSD-3-Clause */
/* test_farewell.c - tests of posternd: it answers for processes that have ended, and questions for
 * process ids that nobody has.
 *
 * Covers: pmd-glue/switch.c, pmd-glue/clients.c.
 */
#include "switch_rig.h"

#include <unistd.h>

#include <pmd-glue/client.h>
#include <wire/message.h>

#define MARK_FIRST  100u
#define SETTLE_TIME (100 * MILLISECOND)

static struct rte_mbuf *farewell_of(struct port *asker, const struct claim *claim)
{
	uint64_t end = glue_now(NULL) + TIMEOUT;
	struct rte_mbuf *answer = NULL;

	do {
		port_send(asker, claim_make(asker, claim, 0));
		(void)port_receive(asker, &answer, 1);
		assert_true(glue_now(NULL) < end);
		nap();
	} while (!answer);
	return answer;
}

/* Is it one of settle()'s? */
static bool frame_settles(const struct rte_mbuf *frame)
{
	for (unsigned mark = MARK_FIRST; mark <= UINT8_MAX; mark++)
		if (frame_carries(frame, (uint8_t)mark))
			return true;
	return false;
}

/* Sends from one port to another until a frame has come: what was sent there before has been
 * answered by then. Those that find the other one full are lost. Each call has a mark of its own: a
 * frame of an earlier call's may still be on its way. */
static void settle(struct port *from, const struct claim *claim, struct port *to)
{
	static uint8_t mark = MARK_FIRST;
	uint64_t end = glue_now(NULL) + TIMEOUT;
	struct rte_mbuf *frame;
	bool come = false;

	mark = mark < UINT8_MAX ? (uint8_t)(mark + 1) : MARK_FIRST;
	while (!come) {
		uint64_t again = glue_now(NULL) + SETTLE_TIME;

		assert_true(glue_now(NULL) < end);
		port_send(from, claim_make(from, claim, mark));
		while (!come && glue_now(NULL) < again) {
			nap();
			while (port_receive(to, &frame, 1) != 0) {
				come = come || frame_carries(frame, mark);
				rte_pktmbuf_free(frame);
			}
		}
	}
}

static void farewell_check(
	struct rte_mbuf *answer, const struct port *asker, uint32_t pid, uint32_t life)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(answer, const uint8_t *);
	struct frame_view view;

	assert_int_equal(answer->pkt_len, FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES);
	assert_memory_equal(bytes, asker->address, 6);
	assert_int_equal(
		frame_decode(bytes + FRAME_ETHERNET_BYTES, FRAME_HEADER_BYTES, &view), FRAME_OK);
	assert_int_equal(frame_type(view.header), FRAME_BYE);
	assert_int_equal(view.header->source_nid, NID);
	assert_int_equal(view.header->source_pid, pid);
	assert_int_equal(view.header->source_incarnation, life);
	assert_int_equal(view.header->destination_incarnation, 99);
	assert_int_equal(view.header->ack, 77);
	assert_int_equal(view.header->ack_stream, 3);
	rte_pktmbuf_free(answer);
}

/* A process sends a frame and ends. Returns a frame of the far node for its life. */
static struct claim life_end(uint32_t pid, uint32_t life)
{
	struct port *dying = open_user(pid, NOBODY);
	struct claim own = honest(dying, FAR_NID, 1);

	own.life = life;
	port_send(dying, claim_make(dying, &own, 1));
	expect(far, 1);
	port_close(dying);
	return (struct claim){.nid = FAR_NID,
		.pid = 1,
		.life = 99,
		.to_nid = NID,
		.to_pid = pid,
		.to_life = life,
		.kind = MESSAGE_PUT};
}

/* W6. */
static void switch_run__answers_for_a_process_that_has_ended(void **state)
{
	struct claim own, others;
	struct port *dying, *one;
	uint64_t told;

	(void)state;
	rig_begin();
	one = open_as(1);
	others = life_end(5, 1234);
	farewell_check(farewell_of(far, &others), far, 5, 1234);
	/* To a process of this machine as well. What it sent before went out (W5). */
	others.nid = NID;
	others.uid = one->uid;
	farewell_check(farewell_of(one, &others), one, 5, 1234);
	own = honest(one, FAR_NID, 1);
	settle(one, &own, far);
	settle(far, &(struct claim){.to_nid = NID, .to_pid = 1, .kind = 1}, one);
	/* Not for another life, nor once somebody has its process id. */
	told = rig_look().farewells;
	others.nid = FAR_NID;
	others.to_life = 1235;
	port_send(far, claim_make(far, &others, 0));
	settle(far, &(struct claim){.to_nid = NID, .to_pid = 1, .kind = 1}, one);
	dying = open_user(5, NOBODY);
	others.to_life = 1234;
	port_send(far, claim_make(far, &others, 7));
	expect(dying, 7);
	assert_int_equal(rig_look().farewells, told);
	port_close(dying);
	port_close(one);
	rig_end();
}

/* A question for a process of this node. */
static struct rte_mbuf *question_of(struct port *asker, uint32_t pid)
{
	struct frame frame = {.type = FRAME_ASK,
		.length = FRAME_HEADER_BYTES,
		.destination_nid = NID,
		.destination_pid = pid,
		.source_nid = asker == far ? FAR_NID : NID,
		.source_pid = asker == far ? 1 : asker->pid,
		.source_incarnation = 99,
		.psn = 1111,
		.ack = 2222};
	struct rte_mbuf *mbuf =
		frame_make(asker, everybody, FRAME_ETHERNET_BYTES + frame.length, 0);

	frame_encode(&frame, rte_pktmbuf_mtod(mbuf, uint8_t *) + FRAME_ETHERNET_BYTES);
	return mbuf;
}

static void denial_check(struct port *asker, uint32_t pid)
{
	struct rte_mbuf *answer;
	const uint8_t *bytes;
	struct frame_view view;

	port_send(asker, question_of(asker, pid));
	answer = port_take(asker);
	assert_non_null(answer);
	bytes = rte_pktmbuf_mtod(answer, const uint8_t *);
	assert_memory_equal(bytes, asker->address, 6);
	assert_int_equal(
		frame_decode(bytes + FRAME_ETHERNET_BYTES, FRAME_HEADER_BYTES, &view), FRAME_OK);
	assert_int_equal(frame_type(view.header), FRAME_BYE);
	assert_int_equal(view.header->flags & FRAME_ACK_VALID, 0);
	assert_int_equal(view.header->source_nid, NID);
	assert_int_equal(view.header->source_pid, pid);
	assert_int_not_equal(view.header->source_incarnation, 0);
	assert_int_equal(view.header->destination_incarnation, 99);
	assert_int_equal(view.header->psn, 1111);
	assert_int_equal(view.header->ack, 2222);
	rte_pktmbuf_free(answer);
}

static bool is_question(const struct rte_mbuf *frame)
{
	return frame_type(rte_pktmbuf_mtod_offset(
		       frame, const struct frame_header *, FRAME_ETHERNET_BYTES)) == FRAME_ASK;
}

/* W6. A process of the same node id may have a socket of its own (W5). */
static void switch_run__answers_questions_for_process_ids_that_nobody_has(void **state)
{
	struct rte_mbuf *frame;
	struct port *one, *other;
	struct claim own;
	uint64_t told;

	(void)state;
	rig_begin();
	one = open_as(1);
	denial_check(far, 6);
	denial_check(one, 6);
	frame = port_take(far);
	assert_true(is_question(frame));
	rte_pktmbuf_free(frame);
	told = rig_look().farewells;
	assert_int_equal(told, 2);
	other = open_as(6);
	port_send(far, question_of(far, 6));
	frame = port_take(other);
	assert_true(is_question(frame));
	rte_pktmbuf_free(frame);
	port_send(one, question_of(one, 6));
	frame = port_take(other);
	assert_true(is_question(frame));
	rte_pktmbuf_free(frame);
	own = honest(one, NID, 6);
	settle(one, &own, other);
	assert_int_equal(rig_look().farewells, told);
	port_close(other);
	port_close(one);
	rig_end();
}

/* In that time those call again who were served by a posternd that has ended. */
static void switch_run__answers_no_question_at_first(void **state)
{
	struct port *one;

	(void)state;
	return_time = 3600 * SECOND;
	rig_begin();
	return_time = 0;
	one = open_as(1);
	port_send(far, question_of(far, 6));
	settle(far, &(struct claim){.to_nid = NID, .to_pid = 1, .kind = 1}, one);
	assert_int_equal(rig_look().farewells, 0);
	port_close(one);
	rig_end();
}

/* The life that ended last is the one that is answered for. */
static void switch_run__answers_for_a_process_that_has_ended_again(void **state)
{
	struct claim others;

	(void)state;
	rig_begin();
	(void)life_end(5, 1234);
	others = life_end(5, 1235);
	farewell_check(farewell_of(far, &others), far, 5, 1235);
	rig_end();
}

/* The process whose end a frame tells. */
static uint32_t farewell_pid(const struct rte_mbuf *answer)
{
	struct frame_view view;

	assert_int_equal(
		frame_decode(rte_pktmbuf_mtod_offset(answer, const uint8_t *, FRAME_ETHERNET_BYTES),
			FRAME_HEADER_BYTES, &view),
		FRAME_OK);
	return view.header->source_pid;
}

/* C1 of clients.h: nobody chooses which ends are forgotten by the process ids that he takes. */
static void switch_run__answers_for_ended_processes_whose_numbers_are_alike(void **state)
{
	uint32_t pids[16];
	struct claim others[RTE_DIM(pids)];
	struct rte_mbuf *answer;

	(void)state;
	rig_begin();
	for (unsigned n = 0; n < RTE_DIM(pids); n++) {
		pids[n] = 5 + 1024 * n;
		others[n] = life_end(pids[n], 1234);
	}
	for (unsigned n = 0; n < RTE_DIM(pids); n++) {
		/* Answers for the one before may still come. */
		while (farewell_pid(answer = farewell_of(far, &others[n])) != pids[n])
			rte_pktmbuf_free(answer);
		farewell_check(answer, far, pids[n], 1234);
	}
	rig_end();
}

/* A peer that goes on sending to a life that is over keeps nobody of this node from sending. */
static void switch_run__sends_while_it_answers_for_ended_processes(void **state)
{
	const unsigned asked = 512; /* bursts of the switch's */
	struct claim own, others;
	struct port *one;
	struct rte_mbuf *frame;
	bool come = false;

	(void)state;
	rig_begin();
	one = open_as(1);
	others = life_end(5, 1234);
	farewell_check(farewell_of(far, &others), far, 5, 1234);
	own = honest(one, FAR_NID, 1);
	settle(one, &own, far);
	rig_pause();
	while (port_receive(far, &frame, 1) != 0)
		rte_pktmbuf_free(frame);
	for (unsigned n = 0; n < asked; n++)
		port_send(far, claim_make(far, &others, 0));
	port_send(one, claim_make(one, &own, 8));
	rig_go_on();
	/* In a turn 64 are answered and 32 taken from a user, of whom some may still be there. */
	for (unsigned answers = 0, before = 0; !come;) {
		frame = port_take(far);
		assert_non_null(frame);
		come = frame_carries(frame, 8);
		if (frame_settles(frame))
			before++;
		else
			answers++;
		rte_pktmbuf_free(frame);
		assert_true(answers < asked / 2 + 2 * before);
	}
	port_close(one);
	rig_end();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, rig_clean)
	const struct CMUnitTest tests[] = {
		TEST(switch_run__answers_for_a_process_that_has_ended),
		TEST(switch_run__answers_questions_for_process_ids_that_nobody_has),
		TEST(switch_run__answers_no_question_at_first),
		TEST(switch_run__answers_for_a_process_that_has_ended_again),
		TEST(switch_run__answers_for_ended_processes_whose_numbers_are_alike),
		TEST(switch_run__sends_while_it_answers_for_ended_processes),
	};

	return cmocka_run_group_tests(tests, rig_start, rig_finish);
}
