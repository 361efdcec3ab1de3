/* SPDX-License-Identifier: BSD-3-Clause */
/* test_loop.c - tests of pmd-glue/loop.c. */
#include "../nap.h"
#include "glue_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include <pmd-glue/kinds.h>

#define QUEUE 1024

static void loop_open__a_private_wire_hears_nothing(void **state)
{
	struct port *one = loop_open(NULL, 0);
	struct port *two = loop_open(NULL, 0);
	struct rte_mbuf *frame;

	(void)state;
	assert_non_null(one);
	assert_non_null(two);
	port_send(one, frame_make(one, everybody, 64, 1));
	port_send(one, frame_make(one, two->address, 64, 1));
	assert_int_equal(port_receive(one, &frame, 1), 0);
	assert_int_equal(port_receive(two, &frame, 1), 0);
	port_close(one);
	port_close(two);
}

static void loop_open__makes_frames_as_large_as_asked(void **state)
{
	struct port *port = loop_open(NULL, 65280);

	(void)state;
	assert_non_null(port);
	assert_int_equal(port->frame_size, 65280 + 14);
	assert_true(
		rte_pktmbuf_data_room_size(port->pool) >= RTE_PKTMBUF_HEADROOM + port->frame_size);
	port_close(port);
	port = loop_open(NULL, 0);
	assert_int_equal(port->frame_size, 9216);
	port_close(port);
	log_clear_error();
	assert_null(loop_open(NULL, 65281));
	assert_non_null(strstr(log_last_error(), "PTL_MTU"));
}

static void loop_open__has_a_limit_and_says_so(void **state)
{
	struct port *ports[64];
	unsigned count = 0;

	(void)state;
	while (count < 64 && (ports[count] = loop_open("many", 256)))
		count++;
	assert_int_equal(count, 64);
	log_clear_error();
	assert_null(loop_open("many", 256));
	assert_non_null(strstr(log_last_error(), "limit"));
	while (count > 0)
		port_close(ports[--count]);
}

static void loop_transmit__passes_a_frame_by_reference(void **state)
{
	struct port *one = loop_open("wire", 0);
	struct port *two = loop_open("wire", 0);
	struct rte_mbuf *frame = frame_make(one, two->address, 100, 7);
	struct rte_mbuf *other;

	(void)state;
	rte_mbuf_refcnt_update(frame, 1);
	port_send(one, frame);
	assert_ptr_equal(port_take(two), frame);
	assert_int_equal(rte_mbuf_refcnt_read(frame), 2);
	rte_pktmbuf_free(frame);
	rte_pktmbuf_free(frame);
	assert_int_equal(port_receive(one, &other, 1), 0);
	port_close(one);
	port_close(two);
}

static void loop_transmit__keeps_the_order_of_frames(void **state)
{
	struct port *one = loop_open("wire", 0);
	struct port *two = loop_open("wire", 0);
	struct rte_mbuf *frames[32];

	(void)state;
	for (uint8_t n = 0; n < 32; n++)
		frames[n] = frame_make(one, two->address, 60, n);
	assert_int_equal(port_transmit(one, frames, 32), 32);
	memset(frames, 0, sizeof(frames));
	assert_int_equal(port_receive(two, frames, 32), 32);
	for (uint8_t n = 0; n < 32; n++) {
		assert_int_equal(frame_fill(frames[n]), n);
		rte_pktmbuf_free(frames[n]);
	}
	port_close(one);
	port_close(two);
}

static void loop_transmit__keeps_wires_apart(void **state)
{
	struct port *one = loop_open("a", 0);
	struct port *two = loop_open("b", 0);
	struct rte_mbuf *frame;

	(void)state;
	port_send(one, frame_make(one, everybody, 64, 1));
	port_send(one, frame_make(one, two->address, 64, 1));
	assert_int_equal(port_receive(two, &frame, 1), 0);
	assert_int_equal(rte_mempool_avail_count(one->pool), one->pool->size);
	port_close(one);
	port_close(two);
}

static void loop_transmit__gives_a_broadcast_to_all_but_the_sender(void **state)
{
	struct port *ports[4];
	struct rte_mbuf *frame;

	(void)state;
	for (unsigned n = 0; n < 4; n++)
		ports[n] = loop_open("wire", 0);
	port_send(ports[2], frame_make(ports[2], everybody, 64, 9));
	for (unsigned n = 0; n < 4; n++) {
		assert_int_equal(port_receive(ports[n], &frame, 1), n != 2);
		if (n != 2) {
			assert_true(frame_is(frame, 64, 9));
			rte_pktmbuf_free(frame);
		}
	}
	assert_int_equal(rte_mempool_avail_count(ports[2]->pool), ports[2]->pool->size);
	for (unsigned n = 0; n < 4; n++)
		port_close(ports[n]);
}

static void loop_transmit__counts_runts_and_giants_as_errors(void **state)
{
	struct port *one = loop_open("wire", 1500);
	struct port *two = loop_open("wire", 1500);
	struct rte_mbuf *frame = frame_make(one, two->address, 1514, 1);

	(void)state;
	port_send(one, frame_make(one, two->address, 13, 0));
	port_send(one, frame);
	assert_int_equal(port_count(one).errors, 1);
	frame = port_take(two);
	frame->pkt_len = frame->data_len = 1515; /* the room is rounded up */
	port_send(two, frame);
	assert_int_equal(port_count(two).errors, 1);
	assert_int_equal(port_receive(one, &frame, 1), 0);
	port_close(one);
	port_close(two);
}

static void loop_transmit__holds_frames_back_from_a_full_queue_then_drops_them(void **state)
{
	struct port *one = loop_open("wire", 256);
	struct port *two = loop_open("wire", 256);
	struct port *three = loop_open("wire", 256);
	struct rte_mbuf *frames[2];
	unsigned sent = 0;
	uint64_t end = glue_now(NULL) + TIMEOUT;

	(void)state;
	frames[0] = frame_make(one, two->address, 60, 1);
	while (port_transmit(one, frames, 1) == 1) {
		sent++;
		frames[0] = frame_make(one, two->address, 60, 1);
	}
	assert_int_equal(sent, QUEUE);
	assert_int_equal(two->receive_frames, QUEUE);
	/* The frame behind the one that is stuck gets through once the receiver has been deaf long
	 * enough. */
	frames[1] = frame_make(one, three->address, 60, 3);
	while (port_transmit(one, frames, 2) != 2)
		assert_true(glue_now(NULL) < end);
	assert_int_equal(port_count(two).missed, 1);
	frames[0] = port_take(three);
	assert_int_equal(frame_fill(frames[0]), 3);
	rte_pktmbuf_free(frames[0]);
	/* Frames for a port that stays deaf do not hold others up again. */
	port_send(one, frame_make(one, two->address, 60, 1));
	assert_int_equal(port_count(two).missed, 2);
	/* It listens again: nothing is dropped any more. */
	rte_pktmbuf_free(port_take(two));
	port_send(one, frame_make(one, two->address, 60, 1));
	assert_int_equal(port_count(two).missed, 2);
	port_close(two);
	port_close(three);
	assert_int_equal(rte_mempool_avail_count(one->pool), one->pool->size);
	port_close(one);
}

static atomic_bool sender_stop;
static atomic_uint sender_frames;

static void sender_run(void *context)
{
	struct port *port = context;
	uint8_t to[6];

	while (!atomic_load(&sender_stop)) {
		struct rte_mbuf *frame = rte_pktmbuf_alloc(port->pool);
		if (!frame)
			continue;
		memcpy(to, port->address, 6);
		to[5] = (uint8_t)(atomic_fetch_add(&sender_frames, 1) % 8);
		rte_pktmbuf_append(frame, 60);
		memcpy(rte_pktmbuf_mtod(frame, uint8_t *), to, 6);
		if (port_transmit(port, &frame, 1) == 0)
			rte_pktmbuf_free(frame);
	}
}

static void loop_close__is_safe_while_others_send(void **state)
{
	struct port *sender = loop_open("wire", 256);
	struct glue_thread *thread;
	uint64_t end;

	(void)state;
	atomic_store(&sender_stop, false);
	thread = glue_thread_start(sender_run, sender, -1, "sender");
	assert_non_null(thread);
	for (unsigned n = 0; n < 200; n++) {
		struct port *port = loop_open("wire", 256);
		struct rte_mbuf *frames[8];
		unsigned before = atomic_load(&sender_frames);
		uint16_t count;
		assert_non_null(port);
		end = glue_now(NULL) + TIMEOUT;
		while (atomic_load(&sender_frames) - before < 8 && glue_now(NULL) < end)
			nap();
		count = port_receive(port, frames, 8);
		rte_pktmbuf_free_bulk(frames, count);
		port_close(port);
	}
	atomic_store(&sender_stop, true);
	glue_thread_join(thread);
	assert_int_equal(rte_mempool_avail_count(sender->pool), sender->pool->size);
	port_close(sender);
}

static void loop_close__leaves_frames_valid_that_another_port_holds(void **state)
{
	struct port *one = loop_open("wire", 256);
	struct port *two = loop_open("wire", 256);
	struct rte_mbuf *frame;
	struct rte_mempool *pool = one->pool;

	(void)state;
	port_send(one, frame_make(one, two->address, 60, 5));
	port_close(one);
	frame = port_take(two);
	assert_true(frame_is(frame, 60, 5));
	one = loop_open("wire", 256);
	assert_ptr_equal(one->pool, pool); /* taken over, not made anew */
	rte_pktmbuf_free(frame);
	port_close(one);
	port_close(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loop_open__a_private_wire_hears_nothing),
		cmocka_unit_test(loop_open__makes_frames_as_large_as_asked),
		cmocka_unit_test(loop_open__has_a_limit_and_says_so),
		cmocka_unit_test(loop_transmit__passes_a_frame_by_reference),
		cmocka_unit_test(loop_transmit__keeps_the_order_of_frames),
		cmocka_unit_test(loop_transmit__keeps_wires_apart),
		cmocka_unit_test(loop_transmit__gives_a_broadcast_to_all_but_the_sender),
		cmocka_unit_test(loop_transmit__counts_runts_and_giants_as_errors),
		cmocka_unit_test(
			loop_transmit__holds_frames_back_from_a_full_queue_then_drops_them),
		cmocka_unit_test(loop_close__is_safe_while_others_send),
		cmocka_unit_test(loop_close__leaves_frames_valid_that_another_port_holds),
	};

	return cmocka_run_group_tests(tests, fixture_start, NULL);
}
