/* SPDX-License-Identifier: BSD-3-Clause */
/* test_port.c - tests of pmd-glue/port.c. */
#include "glue_fixture.h"

#include <unistd.h>

#include <pmd-glue/kinds.h>

static void glue_port_open__says_what_is_wrong_with_a_name(void **state)
{
	static const struct {
		const char *name;
		const char *said;
	} wrong[] = {
		{"nowhere9", "ip link"},
		{"memif:", "write node"},
		{"memif:/run/y", "net_memif0,role=client,socket=/run/y"},
		{"lo", "not an Ethernet"},
		{"lo:1", "ip link"},
		{"xdp:nowhere9", "no such interface"},
		{"xdp:0123456789012345678901234567890123456789", "no such interface"},
		{"ffff:ff:1f.7", "no such PCI device"},
		{"net_nothing0", "DPDK cannot make this device"},
		{"net_null0,nonsense=1", "DPDK cannot make this device"},
		{"loop:01234567890123456789012345678901234567890123456789012345678901234567890",
			"too long"},
		{"net_0123456789012345678901234567890123456789012345678901234567890123456789",
			"too long"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
		log_clear_error();
		assert_null(glue_port_open(0, wrong[n].name, 0, GLUE_PID_ANY));
		if (!strstr(log_last_error(), wrong[n].said))
			fail_msg("%s: %s", wrong[n].name, log_last_error());
	}
}

static void glue_port_open__says_what_is_wrong_with_an_mtu(void **state)
{
	static const char *const names[] = {"", "loop:x", "node:x"};

	(void)state;
	for (size_t n = 0; n < 3; n++) {
		log_clear_error();
		assert_null(glue_port_open(0, names[n], 255, GLUE_PID_ANY));
		assert_non_null(strstr(log_last_error(), "PTL_MTU"));
	}
}

static void glue_port_open__joins_loops_of_one_name(void **state)
{
	struct port *one = glue_port_open(0, "loop:x", 0, GLUE_PID_ANY);
	struct port *two = glue_port_open(1, "loop:x", 0, GLUE_PID_ANY);
	struct rte_mbuf *frame;

	(void)state;
	assert_non_null(one);
	assert_non_null(two);
	assert_string_equal(one->name, "loop:x");
	assert_false(one->external);
	assert_true(one->operations->link(one));
	port_send(one, frame_make(one, two->address, 64, 1));
	frame = port_take(two);
	assert_true(frame_is(frame, 64, 1));
	rte_pktmbuf_free(frame);
	port_close(one);
	port_close(two);
}

static void glue_port_open__makes_any_device_that_dpdk_can(void **state)
{
	struct port *port = glue_port_open(0, "net_null0", 0, GLUE_PID_ANY);
	struct rte_mbuf *frame;

	(void)state;
	assert_non_null(port);
	assert_int_equal(port->frame_size, 1514);
	assert_true(port->external);
	frame = frame_make(port, everybody, 1514, 1);
	port_send(port, frame);
	frame = frame_make(port, everybody, 1515, 1); /* longer than the device takes */
	port_send(port, frame);
	assert_int_equal(port_count(port).errors, 1);
	port_close(port);
	/* And again: it was unplugged. */
	port = glue_port_open(0, "net_null0", 0, GLUE_PID_ANY);
	assert_non_null(port);
	port_close(port);
}

static void glue_port_open__gives_a_device_frames_that_it_can_read(void **state)
{
	struct port *port = glue_port_open(0, "net_ring0", 0, GLUE_PID_ANY);
	struct rte_mbuf *head, *tail, *frame;

	(void)state;
	assert_non_null(port);
	/* net_ring passes pointers and does not say that it takes chains, so it gets a copy in one
	 * piece. */
	head = frame_make(port, everybody, 100, 1);
	tail = frame_make(port, everybody, 14 + 100, 2);
	rte_pktmbuf_adj(tail, 14);
	assert_int_equal(rte_pktmbuf_chain(head, tail), 0);
	port_send(port, head);
	frame = port_take(port);
	assert_int_equal(frame->pkt_len, 200);
	assert_int_equal(rte_pktmbuf_mtod(frame, uint8_t *)[99], 1);
	if (frame->nb_segs == 1)
		assert_int_equal(rte_pktmbuf_mtod(frame, uint8_t *)[100], 2);
	rte_pktmbuf_free(frame);
	assert_int_equal(rte_mempool_in_use_count(port->pool), 0);
	port_close(port);
}

/* The driver of a memif takes two pieces, the second from any memory, and keeps neither, as the
 * table of ethdev.c says. Both ends are in this process: their paths are two names of a socket. */
static void glue_port_open__gathers_over_a_memif(void **state)
{
	static uint8_t memory[3000];
	struct rte_mbuf_ext_shared_info info = {.refcnt = 2}; /* never freed */
	struct port *ports[2];
	struct rte_mbuf *frame, *tail;
	char path[64], name[256];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/postern-test-%ld", (long)getpid());
	for (unsigned n = 0; n < 2; n++) {
		snprintf(name, sizeof(name), "net_memif%u,role=%s,socket-abstract=no,socket=%s%s",
			n, n == 0 ? "server" : "client", n == 0 ? "/tmp/../" : "", path);
		ports[n] = glue_port_open(n, name, 0, GLUE_PID_ANY);
		assert_non_null(ports[n]);
		assert_true(ports[n]->gathers);
	}
	memset(memory, 9, sizeof(memory));
	for (unsigned n = 0; n < 2; n++) {
		while (!ports[n]->operations->link(ports[n]))
			assert_int_equal(port_receive(ports[1 - n], &frame, 1), 0);
		assert_int_equal(port_receive(ports[1 - n], &frame, 1), 0);
		frame = frame_make(ports[n], everybody, 100, 9);
		tail = rte_pktmbuf_alloc(ports[n]->pool);
		info.refcnt = 2;
		rte_pktmbuf_attach_extbuf(tail, memory, RTE_BAD_IOVA, sizeof(memory), &info);
		rte_pktmbuf_append(tail, 1000);
		assert_int_equal(rte_pktmbuf_chain(frame, tail), 0);
		port_send(ports[n], frame);
		assert_int_equal(rte_mbuf_ext_refcnt_read(&info), 1);
		frame = port_take(ports[1 - n]);
		assert_non_null(frame);
		assert_int_equal(frame->pkt_len, 1100);
		rte_pktmbuf_free(frame);
	}
	port_close(ports[1]);
	port_close(ports[0]);
	unlink(path);
}

static void glue_port_open__wraps_a_port_in_faults(void **state)
{
	struct port *one, *two;
	struct rte_mbuf *frame;

	(void)state;
	fixture_set("PTL_FAULT", "drop=1;");
	one = glue_port_open(0, "loop:x", 0, GLUE_PID_ANY);
	two = glue_port_open(1, "loop:x", 0, GLUE_PID_ANY);
	port_send(one, frame_make(one, two->address, 64, 1));
	assert_int_equal(port_receive(two, &frame, 1), 0);
	port_send(two, frame_make(two, one->address, 64, 2));
	frame = port_take(one);
	assert_non_null(frame);
	rte_pktmbuf_free(frame);
	port_close(one);
	port_close(two);
	fixture_set("PTL_FAULT", "drop=2");
	assert_null(glue_port_open(0, "", 0, GLUE_PID_ANY));
	fixture_set("PTL_FAULT", NULL);
}

/* With another id to try, too: a process that is alone on an id of others is known to nobody. */
static void glue_port_open__is_not_alone_because_a_process_id_is_in_use(void **state)
{
	static const char *const names[] = {"node", "udp"};

	(void)state;
	for (size_t n = 0; n < 2; n++) {
		struct port *one = glue_port_open(0, names[n], 0, 77), *two;

		assert_non_null(one);
		assert_false(one->alone);
		log_clear_error();
		glue_pid_try(true);
		assert_null(glue_port_open(0, names[n], 0, 77));
		assert_true(glue_pid_is_taken());
		assert_string_equal(log_last_error(), "");
		two = glue_port_open(0, names[n], 0, 78);
		glue_pid_try(false);
		assert_non_null(two);
		assert_false(glue_pid_is_taken());
		port_close(two);
		assert_null(glue_port_open(0, names[n], 0, 77));
		assert_non_null(strstr(log_last_error(), "process id 77 is in use"));
		port_close(one);
	}
}

static void glue_port_open__is_alone_on_a_wire_without_a_name(void **state)
{
	struct port *port;

	(void)state;
	port = glue_port_open(0, "", 0, GLUE_PID_ANY);
	assert_true(port->alone);
	port_close(port);
	port = glue_port_open(0, "loop:x", 0, GLUE_PID_ANY);
	assert_false(port->alone);
	port_close(port);
}

static void glue_port_nid__comes_from_the_device_and_is_never_the_wildcard(void **state)
{
	struct port port = {.external = true, .address = {2, 0, 0x11, 0x22, 0x33, 0x44}};

	(void)state;
	assert_int_equal(glue_port_nid(&port, 5), 0x11223344);
	memset(port.address, 0xff, 6);
	assert_int_not_equal(glue_port_nid(&port, 5), UINT32_MAX);
	memset(port.address, 0, 6); /* a net_ring */
	assert_int_equal(glue_port_nid(&port, 5), 6);
	port.external = false;
	assert_int_equal(glue_port_nid(&port, 5), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glue_port_open__says_what_is_wrong_with_a_name),
		cmocka_unit_test(glue_port_open__says_what_is_wrong_with_an_mtu),
		cmocka_unit_test(glue_port_open__joins_loops_of_one_name),
		cmocka_unit_test(glue_port_open__makes_any_device_that_dpdk_can),
		cmocka_unit_test(glue_port_open__gives_a_device_frames_that_it_can_read),
		cmocka_unit_test(glue_port_open__gathers_over_a_memif),
		cmocka_unit_test(glue_port_open__wraps_a_port_in_faults),
		cmocka_unit_test(glue_port_open__is_not_alone_because_a_process_id_is_in_use),
		cmocka_unit_test(glue_port_open__is_alone_on_a_wire_without_a_name),
		cmocka_unit_test(glue_port_nid__comes_from_the_device_and_is_never_the_wildcard),
	};

	return cmocka_run_group_tests(tests, fixture_start, NULL);
}
