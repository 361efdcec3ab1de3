/* SPDX-License-Identifier: BSD-3-Clause */
/* test_udp.c - tests of pmd-glue/udp.c: opening, sending, and the socket that is connected to the
 * busiest peer. test_question.c, test_datagram.c and test_ip6.c have the rest.
 * Covers: pmd-glue/local.c. */
#include "udp_rig.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

static void udp_open__has_an_address_and_a_name(void **state)
{
	(void)state;
	assert_true(near->named && near->addressed && near->external);
	assert_false(near->listed);
	assert_int_equal(near->nid, here);
	assert_int_equal(near->pid, PID);
	assert_int_equal(candidate_node(near->address), here);
	assert_int_equal(candidate_read(near->address), candidate_index(range, PID, 0));
	assert_true(near->operations->link(near));
	assert_true(near->receive_frames > 16);
	assert_true(near->look > 0);
}

static void udp_transmit__carries_frames_of_every_size(void **state)
{
	(void)state;
	for (uint32_t size = DATA_AT; size < near->frame_size; size = size * 5 / 4 + 1) {
		exchange(near, far, size, (uint8_t)size);
		exchange(far, near, size, (uint8_t)(size + 1));
	}
	exchange(near, far, near->frame_size, 1);
}

static void udp_transmit__joins_runs(void **state)
{
	static const unsigned counts[] = {1, 2, 63, 64, 65, MANY};
	static const uint32_t small[] = {60}, usual[] = {1500},
			      mixed[] = {1500, 1500, 60, 61, 1500, 1400, 1400};

	(void)state;
	for (unsigned n = 0; n < RTE_DIM(counts); n++) {
		check_run(counts[n], small, 1);
		check_run(counts[n], usual, 1);
		check_run(counts[n], mixed, RTE_DIM(mixed));
	}
	refuse(0, 0, false);
	check_run(64, small, 1);
	assert_int_equal(messages_sent, 1);
}

/* Frames of one burst for two processes reach the right one each. */
static void udp_transmit__tells_receivers_apart(void **state)
{
	struct port *third = third_open();
	struct rte_mbuf *frames[64];
	uint64_t end = glue_now(NULL) + TIMEOUT;
	unsigned sent = 0;

	(void)state;
	for (unsigned n = 0; n < 64; n++)
		frames[n] = frame_named(near, n % 3 == 0 ? far : third, 100, (uint8_t)n);
	while (sent < 64) {
		sent += port_transmit(near, frames + sent, (uint16_t)(64 - sent));
		assert_true(glue_now(NULL) < end);
	}
	for (unsigned n = 0; n < 64; n++) {
		struct port *to = n % 3 == 0 ? far : third;
		check_frame(port_take(to), near, to, 100, (uint8_t)n);
	}
	check_nothing(far);
	check_nothing(third);
	port_close(third);
}

static void udp_transmit__sends_frames_of_several_pieces(void **state)
{
	struct rte_mbuf *frame = frame_named(near, far, 100, 7);
	struct rte_mbuf *rest = frame_make(near, far->address, 1000, 7);

	(void)state;
	memset(rte_pktmbuf_mtod(rest, void *), 7, 1000);
	assert_int_equal(rte_pktmbuf_chain(frame, rest), 0);
	port_send(near, frame);
	check_frame(port_take(far), near, far, 1100, 7);
}

/* I1. */
static void udp_transmit__loses_frames_that_are_too_long(void **state)
{
	struct port *small = udp_open(here_name, 1500, 0, PID + 1, false);

	(void)state;
	assert_non_null(small);
	assert_int_equal(small->frame_size, 1500 - 28 + 14);
	port_send(small, frame_named(small, far, small->frame_size + 1, 1));
	assert_int_equal(port_count(small).errors, 1);
	exchange(small, far, small->frame_size, 2);
	/* A host with a larger MTU is understood. */
	exchange(far, small, far->frame_size, 3);
	port_close(small);
}

static void check_lost(int error)
{
	uint64_t before = port_count(near).errors;

	refuse(error, 1, false);
	port_send(near, frame_named(near, far, 100, 1));
	assert_int_equal(port_count(near).errors, before + 1);
	exchange(near, far, 100, 2);
}

/* I2. */
static void udp_transmit__loses_what_the_kernel_refuses(void **state)
{
	(void)state;
	check_lost(ENOBUFS);
	check_lost(EPERM);
	check_lost(EMSGSIZE);
	check_lost(EINVAL);
	check_lost(EIO);
	check_lost(EOPNOTSUPP);
	check_lost(ENETDOWN);
}

static void check_waits(int error)
{
	struct rte_mbuf *frame = frame_named(near, far, 100, 1);

	refuse(error, 1, false);
	assert_int_equal(port_transmit(near, &frame, 1), 0);
	assert_int_equal(port_count(near).errors, 0);
	port_send(near, frame);
	check_frame(port_take(far), near, far, 100, 1);
}

static void udp_transmit__waits_for_a_full_socket(void **state)
{
	(void)state;
	check_waits(EAGAIN);
	check_waits(ENOMEM);
	/* A signal is no reason to wait. */
	refuse(EINTR, 3, false);
	exchange(near, far, 100, 2);
	assert_int_equal(calls_made, 4);
	assert_int_equal(port_transmit(near, NULL, 0), 0);
}

/* An error of an earlier datagram costs none. */
static void udp_transmit__repeats_after_old_errors(void **state)
{
	static const int errors[] = {
		ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EACCES, ENOPROTOOPT, EPROTO, EHOSTDOWN};

	(void)state;
	for (unsigned n = 0; n < RTE_DIM(errors); n++) {
		refuse(errors[n], 1, false);
		exchange(near, far, 100, (uint8_t)n);
		assert_int_equal(calls_made, 2);
	}
	assert_int_equal(port_count(near).errors, 0);
}

/* D9: frames of a run go one by one where they are too long for the path. */
static void udp_transmit__splits_runs_on_narrow_paths(void **state)
{
	static const uint32_t usual[] = {1500};

	(void)state;
	refuse(EMSGSIZE, 1, true);
	check_run(40, usual, 1);
	assert_int_equal(messages_sent, 40);
	refuse(EMSGSIZE, 1, true);
	check_run(40, usual, 1);
	assert_int_equal(messages_sent, 40); /* and so they do from then on */
	assert_int_equal(refused_count, 1);
	refuse(0, 0, false);
}

static void check_lack(const char *what)
{
	struct port_description description = {0};

	near->operations->describe(near, &description);
	assert_string_equal(description.driver, "udp");
	assert_int_equal(description.lack_count, what ? 1 : 0);
	if (what)
		assert_string_equal(description.lacks[0].what, what);
}

static void check_joins_no_more(int error)
{
	static const uint32_t usual[] = {1500};

	check_lack(NULL);
	refuse(error, 1000, true);
	check_run(40, usual, 1);
	assert_int_equal(messages_sent, 40);
	assert_int_equal(refused_count, 999);
	check_lack("UDP_SEGMENT");
}

static void udp_transmit__joins_no_more_where_joins_fail(void **state)
{
	(void)state;
	check_joins_no_more(EIO);
	port_close(near);
	near = udp_open(here_name, 0, 0, PID, false);
	assert_non_null(near);
	check_joins_no_more(EOPNOTSUPP);
}

static void check_vector(int error)
{
	static const uint32_t mixed[] = {100, 200, 300};

	vector_error = error;
	refuse(0, 0, false);
	check_run(30, mixed, 3);
	assert_int_equal(vectors_made, 1);
	check_lack("sendmmsg");
	/* A port that is opened then does not try it with frames. */
	port_close(near);
	near = udp_open(here_name, 0, 0, PID, false);
	assert_non_null(near);
	check_lack("sendmmsg");
	refuse(0, 0, false);
	check_run(30, mixed, 3);
	assert_int_equal(vectors_made, 0);
	vector_error = 0;
	port_close(near);
	near = udp_open(here_name, 0, 0, PID, false);
	assert_non_null(near);
	check_lack(NULL);
}

static void udp_transmit__does_without_sendmmsg(void **state)
{
	(void)state;
	check_vector(ENOSYS);
	check_vector(EPERM);
}

/* From now on `from` has a socket that is connected to `to`. */
static void connect_to(struct port *from, struct port *to)
{
	for (unsigned n = 0; n < 1000; n++) {
		refuse(0, 0, false);
		exchange(from, to, 100, (uint8_t)n);
		if (nameless_sent > 0)
			return;
	}
	fail();
}

/* The busiest peer is sent to without its name, others are not; a burst for both arrives. */
static void udp_transmit__connects_to_the_busiest_peer(void **state)
{
	struct port *third = third_open();
	struct rte_mbuf *frames[64];

	(void)state;
	refuse(0, 0, false);
	for (unsigned n = 0; n < 200; n++)
		exchange(near, far, 100, (uint8_t)n);
	assert_int_equal(nameless_sent, 0);
	connect_to(near, far);
	refuse(0, 0, false);
	for (unsigned n = 0; n < 64; n++)
		frames[n] = frame_named(near, n % 3 == 0 ? third : far, 100, (uint8_t)n);
	assert_int_equal(port_transmit(near, frames, 64), 64);
	assert_int_equal(nameless_sent, 21); /* two frames are one message */
	for (unsigned n = 0; n < 64; n++) {
		struct port *to = n % 3 == 0 ? third : far;
		check_frame(port_take(to), near, to, 100, (uint8_t)n);
	}
	connect_to(near, third);
	refuse(0, 0, false);
	exchange(near, far, 100, 1);
	assert_int_equal(nameless_sent, 0);
	assert_int_equal(port_count(near).errors, 0);
	port_close(third);
}

/* Frames of all come in, however many there are of one. */
static void udp_receive__hears_others_beside_the_connected_peer(void **state)
{
	struct port *third = third_open();
	unsigned heard[2] = {0, 0};

	(void)state;
	connect_to(near, far);
	for (unsigned n = 0; n < 170; n++)
		port_send(far, frame_named(far, near, 100, 0));
	for (unsigned n = 0; n < 30; n++)
		port_send(third, frame_named(third, near, 100, 1));
	for (unsigned n = 0; n < 200; n++) {
		struct rte_mbuf *frame = port_take(near);
		unsigned whose = *rte_pktmbuf_mtod_offset(frame, const uint8_t *, DATA_AT);
		assert_true(whose < 2);
		heard[whose]++;
		rte_pktmbuf_free(frame);
		if (n == 128) /* LOOKS of PARTS_MESSAGES; not after the last of the other's */
			assert_true(heard[0] > 0 && heard[1] > 0);
	}
	assert_int_equal(heard[1], 30);
	/* The port is closed with frames in both sockets. */
	port_send(far, frame_named(far, near, 100, 0));
	port_send(third, frame_named(third, near, 100, 1));
	port_close(third);
}

/* Both sockets wake a thread, and the looks before its sleep and after it are at both. */
static void udp_interrupt__wakes_for_the_connected_peer_and_others(void **state)
{
	struct port *third = third_open(), *from[] = {far, third};

	(void)state;
	connect_to(near, far);
	for (unsigned n = 0; n < 40; n++) {
		struct pollfd ready = {.events = POLLIN};
		struct rte_mbuf *frame;

		ready.fd = near->operations->interrupt(near, true);
		assert_true(ready.fd >= 0);
		assert_int_equal(port_receive(near, &frame, 1), 0);
		assert_int_equal(poll(&ready, 1, 0), 0);
		port_send(from[n % 2], frame_named(from[n % 2], near, 100, (uint8_t)n));
		assert_int_equal(poll(&ready, 1, 30000), 1);
		(void)near->operations->interrupt(near, n % 4 < 2);
		assert_int_equal(port_receive(near, &frame, 1), 1);
		check_frame(frame, from[n % 2], near, 100, (uint8_t)n);
	}
	port_close(third);
}

/* What the host of the connected peer refuses is told, and frames for others are not lost. */
static void udp_receive__tells_what_the_connected_peer_refused(void **state)
{
	struct port *third = third_open();
	uint8_t address[6];

	(void)state;
	connect_to(near, far);
	memcpy(address, far->address, sizeof(address));
	check_refused();
	exchange(near, third, 100, 1);
	exchange(third, near, 100, 2);
	/* The process comes again. */
	far = udp_open(there_name, 0, 0, FAR_PID, false);
	assert_non_null(far);
	assert_memory_equal(far->address, address, 6);
	for (unsigned n = 0; n < 20; n++) {
		exchange(near, far, 100, (uint8_t)n);
		exchange(far, near, 100, (uint8_t)n);
	}
	assert_int_equal(port_count(near).errors, 0);
	port_close(third);
}

/* I5 */
static void udp_open__has_a_port_of_its_own(void **state)
{
	struct port *second = udp_open(here_name, 0, 0, PID, false);

	(void)state;
	assert_int_equal(socket_bind(here, range.first + candidate_read(near->address)), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_non_null(second); /* the transport finds that the name is taken */
	assert_memory_not_equal(second->address, near->address, 6);
	port_close(second);
}

static void udp_open__takes_ports_from_the_range(void **state)
{
	struct port *port;

	(void)state;
	fixture_set("PTL_UDP_PORTS", "21600-21615");
	port = udp_open(here_name, 0, 0, PID, false);
	assert_non_null(port);
	assert_int_equal(socket_bind(here, 21600 + candidate_read(port->address)), -1);
	port_close(port);
	for (uint32_t n = 0; n < 16; n++)
		(void)socket_bind(here, 21600 + n); /* stay until the end */
	assert_null(udp_open(here_name, 0, 0, PID, false));
}

static void udp_open__tells_whose_ports_below_1024_are(void **state)
{
	char name[INET_ADDRSTRLEN + 4];

	(void)state;
	snprintf(name, sizeof(name), "udp:%s", here_name);
	fixture_set("PTL_UDP_PORTS", "600-700");
	for (unsigned n = 0; n < 2; n++) {
		assert_null(glue_port_open(0, name, 0, n == 0 ? PID : GLUE_PID_ANY));
		assert_false(glue_pid_is_taken()); /* another process id does not help */
		assert_non_null(strstr(log_last_error(), "ports below 1024 are root's"));
	}
}

static void check_setting(const char *name, const char *value)
{
	fixture_set(name, value);
	assert_null(udp_open(here_name, 0, 0, PID + 1, false));
	fixture_set(name, NULL);
}

static void udp_open__wants_no_setting_that_means_nothing(void **state)
{
	(void)state;
	check_setting("PTL_IP", "10.0.0.1/24");
	check_setting("PTL_VLAN", "7");
	check_setting("PTL_NID", "7");
}

static void udp_open__wants_an_address_of_this_host(void **state)
{
	struct port *port;

	(void)state;
	assert_null(udp_open("ptg7", 0, 0, PID + 1, false));
	assert_null(udp_open("192.0.2.1", 0, 0, PID + 1, false));
	assert_null(udp_open("0.0.0.0", 0, 0, PID + 1, false));
	assert_null(udp_open("127.77.3", 0, 0, PID + 1, false));
	port = udp_open("lo", 0, 0, PID + 1, false);
	assert_non_null(port);
	assert_int_equal(port->nid, 0x7f000001);
	port_close(port);
}

static void udp_open__wants_an_mtu_that_there_is(void **state)
{
	(void)state;
	assert_null(udp_open(here_name, 70000, 0, PID + 1, false));
}

/* A process that may have any process id takes another one where ports are taken. */
static void uplink_open_udp__takes_a_process_id_whose_first_port_is_free(void **state)
{
	uint32_t own = (uint32_t)getpid();
	/* One process id in a thousand begins with the port that `near` has. */
	const bool is_free = candidate_index(range, own, 0) != candidate_read(near->address);
	struct port *one, *two;

	(void)state;
	one = uplink_open_udp(here_name, 0, 0, GLUE_PID_ANY);
	two = uplink_open_udp(here_name, 0, 0, GLUE_PID_ANY);
	assert_non_null(one);
	assert_non_null(two);
	assert_int_equal(one->pid == own, is_free);
	assert_int_not_equal(two->pid, own);
	assert_int_not_equal(two->pid, one->pid);
	assert_true(candidate_read(two->address) == candidate_index(range, two->pid, 0));
	assert_true(one->named && one->addressed && two->named);
	assert_null(uplink_open_udp("192.0.2.1", 0, 0, GLUE_PID_ANY));
	port_close(two);
	port_close(one);
}

/* Buffers that wait for datagrams are not in use. */
static void udp_counters__show_no_buffers_while_nothing_is_sent(void **state)
{
	static const uint32_t usual[] = {1500};

	(void)state;
	assert_int_equal(port_count(far).buffers, 0);
	exchange(near, far, 100, 1);
	assert_int_equal(port_count(far).buffers, 0);
	check_run(40, usual, 1);
	check_run(40, usual, 1);
	assert_int_equal(port_count(far).buffers, 0);
	assert_int_equal(port_count(near).buffers, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(udp_open__has_an_address_and_a_name),
		CASE(udp_transmit__carries_frames_of_every_size),
		CASE(udp_transmit__joins_runs),
		CASE(udp_transmit__tells_receivers_apart),
		CASE(udp_transmit__sends_frames_of_several_pieces),
		CASE(udp_transmit__loses_frames_that_are_too_long),
		CASE(udp_transmit__loses_what_the_kernel_refuses),
		CASE(udp_transmit__waits_for_a_full_socket),
		CASE(udp_transmit__repeats_after_old_errors),
		CASE(udp_transmit__splits_runs_on_narrow_paths),
		CASE(udp_transmit__joins_no_more_where_joins_fail),
		CASE(udp_transmit__does_without_sendmmsg),
		CASE(udp_transmit__connects_to_the_busiest_peer),
		CASE(udp_receive__hears_others_beside_the_connected_peer),
		CASE(udp_interrupt__wakes_for_the_connected_peer_and_others),
		CASE(udp_receive__tells_what_the_connected_peer_refused),
		CASE(udp_open__has_a_port_of_its_own),
		CASE(udp_open__takes_ports_from_the_range),
		CASE(udp_open__tells_whose_ports_below_1024_are),
		CASE(udp_open__wants_no_setting_that_means_nothing),
		CASE(udp_open__wants_an_address_of_this_host),
		CASE(udp_open__wants_an_mtu_that_there_is),
		CASE(uplink_open_udp__takes_a_process_id_whose_first_port_is_free),
		CASE(udp_counters__show_no_buffers_while_nothing_is_sent),
	};

	return cmocka_run_group_tests(tests, rig_begin, NULL);
}
