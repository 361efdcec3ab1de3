/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fault.c - tests of pmd-glue/fault.c, around a port that is an array. */
#include "glue_fixture.h"

#include <pmd-glue/kinds.h>

#define FRAMES 2000

/* The port inside: what is sent ends in `sent`, what is in `waiting` is received. */
struct shelf {
	struct port port;
	struct rte_mbuf *sent[2 * FRAMES];
	unsigned sent_count;
	struct rte_mbuf *waiting[FRAMES];
	unsigned waiting_count;
	bool refuses;
	bool closed;
};

static struct shelf shelf;
static struct port *source; /* a pool */

static uint16_t shelf_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	(void)port;
	if (count > shelf.waiting_count)
		count = (uint16_t)shelf.waiting_count;
	memcpy(frames, shelf.waiting, count * sizeof(*frames));
	shelf.waiting_count -= count;
	memmove(shelf.waiting, shelf.waiting + count, shelf.waiting_count * sizeof(*frames));
	return count;
}

static uint16_t shelf_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	(void)port;
	if (shelf.refuses)
		return 0;
	for (uint16_t n = 0; n < count; n++)
		shelf.sent[shelf.sent_count++] = frames[n];
	return count;
}

static bool shelf_link(struct port *port)
{
	(void)port;
	return true;
}

static void shelf_counters(struct port *port, struct port_counters *counters)
{
	(void)port;
	counters->missed = 42;
}

static void shelf_close(struct port *port)
{
	(void)port;
	shelf.closed = true;
}

static const struct port_operations shelf_operations = {
	.receive = shelf_receive,
	.transmit = shelf_transmit,
	.link = shelf_link,
	.counters = shelf_counters,
	.close = shelf_close,
};

static struct port *shelf_wrap(unsigned interface, const char *specification)
{
	memset(&shelf, 0, sizeof(shelf));
	shelf.port = *source;
	shelf.port.operations = &shelf_operations;
	return fault_open(&shelf.port, interface, specification);
}

static void shelf_clear(void)
{
	rte_pktmbuf_free_bulk(shelf.sent, shelf.sent_count);
	shelf.sent_count = 0;
}

static unsigned buffers_out(void)
{
	return rte_mempool_in_use_count(source->pool);
}

/* Sends `count` numbered frames and polls until the port inside has had `expected` of them. */
static void send_numbered(struct port *port, unsigned count, unsigned expected)
{
	uint64_t end = glue_now(NULL) + TIMEOUT;
	struct rte_mbuf *nothing;

	for (unsigned n = 0; n < count; n++) {
		struct rte_mbuf *frame = frame_make(source, everybody, 100, 0);
		memcpy(rte_pktmbuf_mtod_offset(frame, uint8_t *, 20), &n, sizeof(n));
		port_send(port, frame);
	}
	while (shelf.sent_count < expected) {
		assert_true(glue_now(NULL) < end);
		assert_int_equal(port_receive(port, &nothing, 1), 0);
	}
}

static unsigned sent_number(unsigned n)
{
	unsigned number;

	memcpy(&number, rte_pktmbuf_mtod_offset(shelf.sent[n], uint8_t *, 20), sizeof(number));
	return number;
}

static void fault_open__refuses_what_it_does_not_understand(void **state)
{
	static const char *const wrong[] = {"drop", "drop=", "drop=1.5", "drop=x", "drop=0.1x",
		"drop=.", "lose=1", "delay=5", "delay=us", "delay=11s", "delay=5m",
		"seed=", "seed=x", "seed=-1", "seed=99999999999999999999", "on=me", "=",
		"drop=0.1;dup=1"};

	(void)state;
	for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
		log_clear_error();
		assert_null(shelf_wrap(0, wrong[n]));
		assert_true(shelf.closed);
		assert_non_null(strstr(log_last_error(), "PTL_FAULT"));
	}
}

static void fault_open__takes_all_that_the_manual_names(void **state)
{
	static const char *const right[] = {
		"drop=0.01,dup=0.001,reorder=0.01,delay=50us,corrupt=0.0001,seed=7", "drop=1%",
		"drop=.5", "drop=0", "drop=1", "delay=1.5ms", "on=both,drop=0.1", "seed=0",
		", drop=0.1"};

	(void)state;
	for (size_t n = 0; n < sizeof(right) / sizeof(right[0]); n++) {
		struct port *port = shelf_wrap(0, right[n]);
		assert_non_null(port);
		port_close(port);
		assert_true(shelf.closed);
	}
}

static void fault_open__looks_like_the_port_inside(void **state)
{
	struct port *port = shelf_wrap(0, "drop=0.5");

	(void)state;
	assert_ptr_equal(port->pool, source->pool);
	assert_int_equal(port->frame_size, source->frame_size);
	assert_memory_equal(port->address, source->address, 6);
	assert_true(port->operations->link(port));
	assert_int_equal(port_count(port).missed, 42);
	port_close(port);
}

static unsigned fates(unsigned interface, const char *specification, unsigned *numbers)
{
	struct port *port = shelf_wrap(interface, specification);
	unsigned count;

	send_numbered(port, FRAMES, 0);
	count = shelf.sent_count;
	for (unsigned n = 0; n < count; n++)
		numbers[n] = sent_number(n);
	shelf_clear();
	port_close(port);
	return count;
}

static void fault_transmit__does_the_same_for_the_same_seed(void **state)
{
	static unsigned first[2 * FRAMES], second[2 * FRAMES];
	unsigned count = fates(0, "drop=0.3,dup=0.2,seed=7", first);

	(void)state;
	assert_int_equal(fates(0, "drop=0.3,dup=0.2,seed=7", second), count);
	assert_memory_equal(first, second, count * sizeof(first[0]));
	fates(0, "drop=0.3,dup=0.2,seed=8", second);
	assert_memory_not_equal(first, second, count * sizeof(first[0]));
	fates(1, "drop=0.3,dup=0.2,seed=7", second);
	assert_memory_not_equal(first, second, count * sizeof(first[0]));
}

static void fault_transmit__drops_about_as_many_as_asked(void **state)
{
	static unsigned numbers[2 * FRAMES];
	unsigned count = fates(0, "drop=0.25,seed=3", numbers);

	(void)state;
	assert_in_range(count, FRAMES * 70 / 100, FRAMES * 80 / 100);
	assert_int_equal(buffers_out(), 0);
}

static void fault_transmit__drops_all_at_a_chance_of_one(void **state)
{
	static unsigned numbers[2 * FRAMES];

	(void)state;
	assert_int_equal(fates(0, "drop=1", numbers), 0);
	assert_int_equal(fates(0, "drop=0", numbers), FRAMES);
}

static void fault_transmit__sends_duplicates_that_are_copies(void **state)
{
	struct port *port = shelf_wrap(0, "dup=1");

	(void)state;
	send_numbered(port, 10, 20);
	for (unsigned n = 0; n < 20; n++) {
		assert_int_equal(sent_number(n), n / 2);
		assert_int_equal(rte_mbuf_refcnt_read(shelf.sent[n]), 1);
	}
	shelf_clear();
	port_close(port);
}

static void fault_transmit__corrupts_a_copy_and_not_the_senders_frame(void **state)
{
	struct port *port = shelf_wrap(0, "corrupt=1");

	(void)state;
	for (unsigned n = 0; n < 200; n++) {
		struct rte_mbuf *frame = frame_make(source, everybody, 100, 0x55);
		unsigned flipped = 0;
		rte_mbuf_refcnt_update(frame, 1);
		port_send(port, frame);
		assert_int_equal(shelf.sent_count, 1);
		assert_ptr_not_equal(shelf.sent[0], frame);
		assert_true(frame_is(frame, 100, 0x55));
		for (unsigned byte = 0; byte < 100; byte++)
			flipped += (unsigned)__builtin_popcount(
				(unsigned)(rte_pktmbuf_mtod(frame, uint8_t *)[byte] ^
					   rte_pktmbuf_mtod(shelf.sent[0], uint8_t *)[byte]));
		assert_in_range(flipped, 1, 3);
		assert_int_equal(rte_mbuf_refcnt_read(frame), 1);
		rte_pktmbuf_free(frame);
		shelf_clear();
	}
	port_close(port);
	assert_int_equal(buffers_out(), 0);
}

static void fault_transmit__reorders_but_loses_nothing(void **state)
{
	static bool seen[FRAMES];
	struct port *port = shelf_wrap(0, "reorder=0.2,seed=2");
	unsigned backwards = 0;

	(void)state;
	memset(seen, 0, sizeof(seen));
	send_numbered(port, FRAMES, FRAMES);
	for (unsigned n = 0; n < FRAMES; n++) {
		assert_false(seen[sent_number(n)]);
		seen[sent_number(n)] = true;
		backwards += n > 0 && sent_number(n) < sent_number(n - 1);
	}
	assert_true(backwards > 0);
	shelf_clear();
	port_close(port);
}

static void fault_transmit__keeps_frames_for_the_delay(void **state)
{
	struct port *port = shelf_wrap(0, "delay=2ms");
	uint64_t start = glue_now(NULL);

	(void)state;
	send_numbered(port, 3, 3);
	assert_true(glue_now(NULL) - start >= 2 * MILLISECOND);
	for (unsigned n = 0; n < 3; n++)
		assert_int_equal(sent_number(n), n);
	shelf_clear();
	port_close(port);
}

static void fault_transmit__keeps_what_the_port_inside_refuses(void **state)
{
	struct port *port = shelf_wrap(0, "drop=0");
	struct rte_mbuf *frame = frame_make(source, everybody, 100, 1);
	struct rte_mbuf *nothing;

	(void)state;
	shelf.refuses = true;
	assert_int_equal(port_transmit(port, &frame, 1), 1);
	frame = frame_make(source, everybody, 100, 2);
	assert_int_equal(port_transmit(port, &frame, 1), 0); /* it presses back */
	shelf.refuses = false;
	assert_int_equal(port_receive(port, &nothing, 1), 0);
	assert_int_equal(shelf.sent_count, 1);
	assert_int_equal(frame_fill(shelf.sent[0]), 1);
	rte_pktmbuf_free(frame);
	shelf_clear();
	port_close(port);
}

static void fault_receive__is_left_alone_unless_asked(void **state)
{
	struct port *port = shelf_wrap(0, "drop=1");
	struct rte_mbuf *frame;

	(void)state;
	shelf.waiting[shelf.waiting_count++] = frame_make(source, everybody, 100, 3);
	assert_int_equal(port_receive(port, &frame, 1), 1);
	rte_pktmbuf_free(frame);
	port_close(port);
}

static void fault_receive__drops_what_comes_in(void **state)
{
	struct port *port = shelf_wrap(0, "on=receive,drop=0.5,seed=4");
	struct rte_mbuf *frames[32];
	unsigned received = 0;

	(void)state;
	for (unsigned n = 0; n < 1000; n++)
		shelf.waiting[shelf.waiting_count++] = frame_make(source, everybody, 100, 3);
	while (shelf.waiting_count > 0) {
		uint16_t count = port_receive(port, frames, 32);
		rte_pktmbuf_free_bulk(frames, count);
		received += count;
	}
	assert_in_range(received, 400, 600);
	/* Sending is left alone. */
	send_numbered(port, 10, 10);
	shelf_clear();
	port_close(port);
}

static void fault_close__sends_what_is_on_its_way(void **state)
{
	struct port *port = shelf_wrap(0, "delay=10s");

	(void)state;
	send_numbered(port, 100, 0);
	assert_int_equal(shelf.sent_count, 0);
	port_close(port);
	assert_int_equal(shelf.sent_count, 100);
	for (unsigned n = 0; n < 100; n++)
		assert_int_equal(sent_number(n), n);
	shelf_clear();
}

static void fault_close__gives_back_what_is_on_its_way(void **state)
{
	struct port *port = shelf_wrap(0, "delay=10s,on=both");
	struct rte_mbuf *frame;

	(void)state;
	shelf.refuses = true;
	shelf.waiting[shelf.waiting_count++] = frame_make(source, everybody, 100, 3);
	assert_int_equal(port_receive(port, &frame, 1), 0);
	send_numbered(port, 100, 0);
	assert_int_equal(buffers_out(), 101);
	port_close(port);
	assert_int_equal(buffers_out(), 0);
}

static int fault_setup(void **state)
{
	if (fixture_start(state) != 0)
		return -1;
	source = loop_open(NULL, 256);
	return source ? 0 : -1;
}

static int fault_teardown(void **state)
{
	(void)state;
	port_close(source);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fault_open__refuses_what_it_does_not_understand),
		cmocka_unit_test(fault_open__takes_all_that_the_manual_names),
		cmocka_unit_test(fault_open__looks_like_the_port_inside),
		cmocka_unit_test(fault_transmit__does_the_same_for_the_same_seed),
		cmocka_unit_test(fault_transmit__drops_about_as_many_as_asked),
		cmocka_unit_test(fault_transmit__drops_all_at_a_chance_of_one),
		cmocka_unit_test(fault_transmit__sends_duplicates_that_are_copies),
		cmocka_unit_test(fault_transmit__corrupts_a_copy_and_not_the_senders_frame),
		cmocka_unit_test(fault_transmit__reorders_but_loses_nothing),
		cmocka_unit_test(fault_transmit__keeps_frames_for_the_delay),
		cmocka_unit_test(fault_transmit__keeps_what_the_port_inside_refuses),
		cmocka_unit_test(fault_receive__is_left_alone_unless_asked),
		cmocka_unit_test(fault_receive__drops_what_comes_in),
		cmocka_unit_test(fault_close__sends_what_is_on_its_way),
		cmocka_unit_test(fault_close__gives_back_what_is_on_its_way),
	};

	return cmocka_run_group_tests(tests, fault_setup, fault_teardown);
}
