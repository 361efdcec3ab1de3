/* SPDX-License-Identifier: BSD-3-Clause */
/* test_connected.c - tests of pmd-glue/connected.c: sockets of the loopback interface, one of which
 * gets a second socket at its UDP port. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include <pmd-glue/connected.h>

#define HERE    UINT32_C(0x7f4d0201) /* 127.77.2.1 */
#define TIMEOUT 30000                /* ms */

#include "line_rig.h"

static struct line line, peer, other;
static struct connected connected;
static const uint8_t address_a[] = {2, 1, 1, 1, 1, 1}, address_b[] = {2, 1, 1, 1, 1, 2},
		     address_c[] = {2, 1, 1, 1, 1, 3};

static int connect_error; /* of the next calls; 0: none */

int __wrap_connect(int fd, const struct sockaddr *name, socklen_t size);
int __real_connect(int fd, const struct sockaddr *name, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *name, socklen_t size)
{
	if (connect_error == 0)
		return __real_connect(fd, name, size);
	errno = connect_error;
	return -1;
}

static bool share_refused;

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	if (!share_refused || level != SOL_SOCKET || option != SO_REUSEPORT)
		return __real_setsockopt(fd, level, option, value, size);
	errno = ENOPROTOOPT;
	return -1;
}

static socklen_t name_of(const struct line *of, union udp_name *name)
{
	socklen_t size = sizeof(*name);

	assert_int_equal(getsockname(of->socket, &name->any, &size), 0);
	return size;
}

static void move_to(const struct line *to)
{
	union udp_name name;
	socklen_t size = name_of(to, &name);

	connected_move(&connected, &line, &name, size, "udp:test");
}

static int set_up(void **state)
{
	(void)state;
	connected_init(&connected);
	connect_error = 0;
	share_refused = false;
	return line_make(&line) && line_make(&peer) && line_make(&other) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	connected_close(&connected);
	line_close(&line);
	line_close(&peer);
	line_close(&other);
	return 0;
}

static void send_to(const struct line *from, const struct line *to, char what)
{
	union udp_name name;
	socklen_t size = name_of(to, &name);

	assert_int_equal(sendto(from->socket, &what, 1, 0, &name.any, size), 1);
}

/* Receives this, from that socket. */
static void check_take(const struct line *at, const struct line *from, char what)
{
	struct pollfd ready = {.fd = at->socket, .events = POLLIN};
	union udp_name name, wanted;
	socklen_t size = sizeof(name);
	char had = 0;

	assert_int_equal(poll(&ready, 1, TIMEOUT), 1);
	assert_int_equal(recvfrom(at->socket, &had, 1, 0, &name.any, &size), 1);
	assert_int_equal(had, what);
	(void)name_of(from, &wanted);
	assert_int_equal(udp_name_port(&name), udp_name_port(&wanted));
}

static bool has_nothing(const struct line *at)
{
	char byte;

	return recv(at->socket, &byte, 1, MSG_DONTWAIT) < 0;
}

static unsigned count(const uint8_t *address, unsigned times)
{
	unsigned told = 0;

	for (unsigned n = 0; n < times; n++)
		told += connected_count(&connected, address);
	return told;
}

static void connected_count__finds_the_busiest_peer(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 10 * CONNECTED_LEAD; n++) {
		assert_int_equal(count(address_a, 1), 0);
		assert_int_equal(count(address_b, 1), 0);
	}
	assert_int_equal(count(address_b, CONNECTED_LEAD), 1);
	assert_memory_equal(connected.leader, address_b, sizeof(address_b));
	/* It stays the leader while others get no more than it. */
	for (unsigned n = 0; n < 10 * CONNECTED_LEAD; n++) {
		(void)count(address_b, 2);
		assert_int_equal(count(address_a, 1), 0);
		assert_int_equal(count(address_c, 1), 0);
	}
	assert_memory_equal(connected.leader, address_b, sizeof(address_b));
	assert_int_equal(count(address_a, 2 * CONNECTED_LEAD - 2), 0);
	assert_int_equal(count(address_a, 2), 2);
	assert_memory_equal(connected.leader, address_a, sizeof(address_a));
}

/* The leader is not connected to again. */
static void connected_count__does_not_ask_for_what_there_is(void **state)
{
	(void)state;
	assert_int_equal(count(address_a, CONNECTED_LEAD + 1), 1);
	assert_false(connected_to(&connected, address_a));
	move_to(&peer);
	assert_true(connected_to(&connected, address_a));
	assert_false(connected_to(&connected, address_b));
	assert_int_equal(count(address_a, 10 * CONNECTED_LEAD), 0);
}

/* I2 */
static void connected_move__gives_each_socket_its_own(void **state)
{
	(void)state;
	move_to(&peer);
	assert_true(connected_exists(&connected));
	send_to(&peer, &line, 'p');
	send_to(&other, &line, 'o');
	check_take(&connected.line, &peer, 'p');
	check_take(&line, &other, 'o');
	assert_true(has_nothing(&line) && has_nothing(&connected.line));
	/* The peer sees one sender. */
	assert_int_equal(send(connected.line.socket, "c", 1, 0), 1);
	check_take(&peer, &line, 'c');
	send_to(&line, &peer, 'l');
	check_take(&peer, &line, 'l');
}

/* I3 */
static void connected_move__loses_nothing(void **state)
{
	int before;

	(void)state;
	send_to(&peer, &line, '0');
	move_to(&peer);
	send_to(&peer, &line, '1');
	before = connected.line.socket;
	move_to(&other);
	assert_int_equal(connected.line.socket, before);
	send_to(&peer, &line, '2');
	send_to(&other, &line, '3');
	check_take(&line, &peer, '0');
	check_take(&line, &peer, '2');
	check_take(&connected.line, &peer, '1');
	check_take(&connected.line, &other, '3');
}

static void check_exclusive(void)
{
	static const int options[] = {0, SO_REUSEADDR, SO_REUSEPORT};
	union udp_name name;
	socklen_t size = name_of(&line, &name);

	for (unsigned n = 0; n < 3; n++) {
		int on = 1, third = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_true(third >= 0);
		if (options[n] != 0)
			assert_int_equal(
				setsockopt(third, SOL_SOCKET, options[n], &on, sizeof(on)), 0);
		assert_int_equal(bind(third, &name.any, size), -1);
		assert_int_equal(errno, EADDRINUSE);
		close(third);
	}
}

/* I1 */
static void connected_move__lets_no_third_socket_in(void **state)
{
	(void)state;
	check_exclusive();
	move_to(&peer);
	check_exclusive();
	move_to(&other);
	check_exclusive();
	connected_close(&connected);
	check_exclusive();
	send_to(&other, &line, 'o');
	check_take(&line, &other, 'o');
}

static void connected__wakes_for_both_sockets(void **state)
{
	struct pollfd ready = {.events = POLLIN};

	(void)state;
	move_to(&peer);
	ready.fd = connected.set;
	assert_int_equal(poll(&ready, 1, 0), 0);
	send_to(&peer, &line, 'p');
	assert_int_equal(poll(&ready, 1, TIMEOUT), 1);
	check_take(&connected.line, &peer, 'p');
	assert_int_equal(poll(&ready, 1, 0), 0);
	send_to(&other, &line, 'o');
	assert_int_equal(poll(&ready, 1, TIMEOUT), 1);
	check_take(&line, &other, 'o');
}

/* The kernel tells the connected socket what the peer's host refused, and to where that was. */
static void connected__hears_what_was_refused(void **state)
{
	struct pollfd ready = {.events = POLLIN};
	struct line_error report;
	union udp_name name;

	(void)state;
	(void)name_of(&peer, &name);
	move_to(&peer);
	line_close(&peer);
	assert_int_equal(send(connected.line.socket, "gone", 4, 0), 4);
	ready.fd = connected.line.socket;
	assert_int_equal(poll(&ready, 1, TIMEOUT), 1);
	assert_false(line_hear(&line, &report));
	assert_true(line_hear(&connected.line, &report));
	assert_int_equal(report.error, ECONNREFUSED);
	assert_int_equal(udp_name_port(&report.to), udp_name_port(&name));
	assert_memory_equal(report.quote, "gone", 4);
}

static void check_refused(void)
{
	struct port_lack lacks[PORT_LACKS];

	(void)count(address_a, CONNECTED_LEAD);
	move_to(&peer);
	assert_false(connected_exists(&connected));
	assert_true(connected.refused);
	assert_int_equal(line_describe(&line, lacks), 1);
	assert_string_equal(lacks[0].what, "connect");
	/* It is not tried again, and the line is as it was. */
	assert_int_equal(count(address_a, 10 * CONNECTED_LEAD), 0);
	connect_error = 0;
	share_refused = false;
	check_exclusive();
	send_to(&peer, &line, 'p');
	check_take(&line, &peer, 'p');
}

static void connected_move__does_without_connect(void **state)
{
	(void)state;
	connect_error = EPERM;
	check_refused();
}

static void connected_move__does_without_sharing(void **state)
{
	(void)state;
	share_refused = true;
	check_refused();
}

/* The way to a host may come back. */
static void connected_move__tries_again_without_a_route(void **state)
{
	(void)state;
	connect_error = ENETUNREACH;
	(void)count(address_a, CONNECTED_LEAD);
	move_to(&peer);
	assert_false(connected_exists(&connected) || connected.refused);
	assert_int_equal(line.lacks, 0);
	connect_error = 0;
	assert_int_equal(count(address_a, CONNECTED_LEAD), 1);
	move_to(&peer);
	assert_true(connected_to(&connected, address_a));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(connected_count__finds_the_busiest_peer),
		CASE(connected_count__does_not_ask_for_what_there_is),
		CASE(connected_move__gives_each_socket_its_own),
		CASE(connected_move__loses_nothing),
		CASE(connected_move__lets_no_third_socket_in),
		CASE(connected__wakes_for_both_sockets),
		CASE(connected__hears_what_was_refused),
		CASE(connected_move__does_without_connect),
		CASE(connected_move__does_without_sharing),
		CASE(connected_move__tries_again_without_a_route),
	};
	int failed = cmocka_run_group_tests_name("IPv4", tests, NULL, NULL);

	return family_is_ip6() ? failed + cmocka_run_group_tests_name("IPv6", tests, NULL, NULL)
			       : failed;
}
