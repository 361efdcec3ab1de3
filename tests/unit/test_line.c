/* SPDX-License-Identifier: BSD-3-Clause */
/* test_line.c - tests of pmd-glue/line.c on the loopback interface, also where the kernel refuses
 * what is asked of it, as an old one or a container does. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include <base/log.h>
#include <pmd-glue/line.h>

#define HERE    UINT32_C(0x7f4d0101) /* 127.77.1.1 */
#define TIMEOUT 30000                /* ms */

#include "line_rig.h"

static int refused_level, refused_option; /* by the next calls; 0: none */

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	if (refused_option != 0 && level == refused_level && option == refused_option) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return __real_setsockopt(fd, level, option, value, size);
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
	if (refused_option != 0 && level == refused_level && option == refused_option) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return __real_getsockopt(fd, level, option, value, size);
}

static uint16_t port_of(const struct line *line)
{
	union udp_name name;
	socklen_t size = sizeof(name);

	assert_int_equal(getsockname(line->socket, &name.any, &size), 0);
	return udp_name_port(&name);
}

/* Open, with some UDP port. */
static struct line line_made(void)
{
	struct line line;

	assert_true(line_make(&line));
	return line;
}

static void send_to(const struct line *line, uint16_t udp_port, const char *text)
{
	union udp_name to;
	socklen_t size = here(udp_port, &to);

	assert_int_equal(sendto(line->socket, text, strlen(text), 0, &to.any, size), strlen(text));
}

static void line_open__has_what_the_kernel_has(void **state)
{
	struct line line = line_made();

	(void)state;
	assert_true(line.segments && line.joins && line.errors && line.marks);
	assert_true(line.room > 0);
	assert_int_equal(line.lacks, 0);
	line_close(&line);
	assert_int_equal(line.socket, -1);
	line_close(&line); /* once more does nothing */
}

static int refused_call; /* SYS_sendmmsg, SYS_recvmmsg; 0: none */

int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
int __real_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	errno = ENOSYS;
	return refused_call == SYS_sendmmsg ? -1 : __real_sendmmsg(fd, messages, count, flags);
}

int __wrap_recvmmsg(
	int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout);
int __real_recvmmsg(
	int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout);
int __wrap_recvmmsg(
	int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
	errno = EPERM;
	return refused_call == SYS_recvmmsg ? -1
					    : __real_recvmmsg(fd, messages, count, flags, timeout);
}

/* The line lacks this alone, and says so. */
static void check_lack(const struct line *line, enum line_lack lack, const char *what)
{
	struct port_lack lacks[PORT_LACKS];

	assert_int_equal(line->lacks, 1u << lack);
	assert_int_equal(line_describe(line, lacks), 1);
	assert_string_equal(lacks[0].what, what);
	/* what DPDK's telemetry takes */
	assert_in_range(strlen(lacks[0].effect), 20, 127);
}

static void check_without(
	int level, int option, ptrdiff_t what, enum line_lack lack, const char *name)
{
	struct line line, other = line_made();
	char bytes[8];
	struct pollfd ready;

	refused_level = level;
	refused_option = option;
	line = line_made();
	refused_option = 0;
	check_lack(&line, lack, name);
	if (what != 0)
		assert_false(*(const bool *)((const uint8_t *)&line + what));
	assert_int_equal(line.segments, option != UDP_SEGMENT || level != SOL_UDP);
	send_to(&other, port_of(&line), "there");
	ready = (struct pollfd){.fd = line.socket, .events = POLLIN};
	assert_int_equal(poll(&ready, 1, TIMEOUT), 1);
	assert_int_equal(recv(line.socket, bytes, sizeof(bytes), 0), 5);
	line_close(&line);
	line_close(&other);
}

static void line_open__does_without_each_option(void **state)
{
	(void)state;
#define WITHOUT(level, option, what, lack) check_without(level, option, what, lack, #option)
	WITHOUT(SOL_UDP, UDP_SEGMENT, offsetof(struct line, segments), LINE_SEGMENT);
	WITHOUT(SOL_UDP, UDP_GRO, offsetof(struct line, joins), LINE_GRO);
	if (family == AF_INET6) {
		WITHOUT(SOL_IPV6, IPV6_RECVERR, offsetof(struct line, errors), LINE_ERRORS);
		WITHOUT(SOL_IPV6, IPV6_RECVTCLASS, offsetof(struct line, marks), LINE_MARKS);
		WITHOUT(SOL_IPV6, IPV6_TCLASS, 0, LINE_ECT);
		WITHOUT(SOL_IPV6, IPV6_MTU_DISCOVER, 0, LINE_PATH);
	} else {
		WITHOUT(SOL_IP, IP_RECVERR, offsetof(struct line, errors), LINE_ERRORS);
		WITHOUT(SOL_IP, IP_RECVTOS, offsetof(struct line, marks), LINE_MARKS);
		WITHOUT(SOL_IP, IP_TOS, 0, LINE_ECT);
		WITHOUT(SOL_IP, IP_MTU_DISCOVER, 0, LINE_PATH);
	}
	WITHOUT(SOL_SOCKET, SO_RXQ_OVFL, 0, LINE_OVERFLOWS);
	WITHOUT(SOL_SOCKET, SO_SNDBUF, 0, LINE_SEND_ROOM);
	WITHOUT(SOL_SOCKET, SO_RCVBUF, 0, LINE_RECEIVE_ROOM);
#undef WITHOUT
}

static void line_open__finds_calls_that_are_refused(void **state)
{
	struct line line;

	(void)state;
	refused_call = SYS_sendmmsg;
	line = line_made();
	check_lack(&line, LINE_SENDMMSG, "sendmmsg");
	line_close(&line);
	refused_call = SYS_recvmmsg;
	line = line_made();
	check_lack(&line, LINE_RECVMMSG, "recvmmsg");
	line_close(&line);
	refused_call = 0;
}

/* Each is told when it is found missing. */
static void line_lose__tells_once(void **state)
{
	struct line line = line_made();

	(void)state;
	log_set_level(LOG_LEVEL_INFO);
	line_lose(&line, LINE_SEGMENT, "udp:test");
	line_lose(&line, LINE_SEGMENT, "udp:test");
	log_set_level(LOG_LEVEL_WARNING);
	check_lack(&line, LINE_SEGMENT, "UDP_SEGMENT");
	line_close(&line);
}

/* Nobody else may have the port, whatever he sets. */
static void line_bind__is_exclusive(void **state)
{
	static const int options[] = {SO_REUSEADDR, SO_REUSEPORT};
	struct line line = line_made(), second;
	union udp_name name;
	socklen_t size = here(port_of(&line), &name);

	(void)state;
	assert_true(line_open(&second, family));
	assert_false(line_bind(&second, &name, size));
	assert_int_equal(errno, EADDRINUSE);
	for (unsigned n = 0; n < 2; n++) {
		int on = 1, other = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_true(other >= 0);
		assert_int_equal(setsockopt(other, SOL_SOCKET, options[n], &on, sizeof(on)), 0);
		assert_int_equal(bind(other, &name.any, size), -1);
		assert_int_equal(errno, EADDRINUSE);
		close(other);
	}
	line_close(&line);
	assert_true(line_bind(&second, &name, size));
	line_close(&second);
}

static void line_bind__wants_an_address_of_the_host(void **state)
{
	union udp_name name;
	socklen_t size = here(0, &name);
	struct line line;

	(void)state;
	if (family == AF_INET6)
		assert_int_equal(inet_pton(AF_INET6, "2001:db8::1", &name.ip6.sin6_addr), 1);
	else
		name.ip4.sin_addr.s_addr = htonl(UINT32_C(0xc0000201));
	assert_true(line_open(&line, family));
	assert_false(line_bind(&line, &name, size));
	assert_int_equal(errno, EADDRNOTAVAIL);
	line_close(&line);
}

/* No address of IPv4 reaches a socket of IPv6, in whatever spelling. */
static void line_open__keeps_ip4_from_ip6(void **state)
{
	int four = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union udp_name name = {.ip6 = {.sin6_family = AF_INET6}};
	struct line line;
	char bytes[8];

	(void)state;
	if (family != AF_INET6) {
		close(four);
		skip();
	}
	assert_true(line_open(&line, AF_INET6));
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &name.ip6.sin6_addr), 1);
	assert_false(line_bind(&line, &name, sizeof(name.ip6)));
	name.ip6.sin6_addr = in6addr_any;
	assert_true(line_bind(&line, &name, sizeof(name.ip6)));
	name.ip4 = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons(port_of(&line)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	(void)sendto(four, "x", 1, 0, &name.any, sizeof(name.ip4));
	assert_int_equal(recv(line.socket, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
	line_close(&line);
	close(four);
}

/* A datagram to a port that nobody has comes back. */
static void line_hear__quotes_what_was_refused(void **state)
{
	struct line line = line_made(), gone = line_made();
	uint16_t to = port_of(&gone);
	struct pollfd ready = {.fd = line.socket, .events = POLLIN};
	union udp_name there;
	struct line_error report;
	char long_text[2 * LINE_QUOTE + 1];

	(void)state;
	line_close(&gone);
	assert_false(line_hear(&line, &report));
	send_to(&line, to, "refused");
	assert_int_equal(poll(&ready, 1, TIMEOUT), 1);
	assert_true(line_hear(&line, &report));
	assert_int_equal(report.error, ECONNREFUSED);
	(void)here(to, &there);
	assert_int_equal(udp_name_port(&report.to), to);
	if (family == AF_INET6)
		assert_memory_equal(&report.to.ip6.sin6_addr, &there.ip6.sin6_addr, 16);
	else
		assert_int_equal(report.to.ip4.sin_addr.s_addr, there.ip4.sin_addr.s_addr);
	assert_int_equal(report.bytes, 7);
	assert_memory_equal(report.quote, "refused", 7);
	assert_false(line_hear(&line, &report));
	assert_int_equal(poll(&ready, 1, 0), 0);

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	send_to(&line, to, long_text);
	assert_int_equal(poll(&ready, 1, TIMEOUT), 1);
	assert_true(line_hear(&line, &report));
	assert_int_equal(report.bytes, LINE_QUOTE);
	line_close(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_open__has_what_the_kernel_has),
		cmocka_unit_test(line_open__does_without_each_option),
		cmocka_unit_test(line_open__finds_calls_that_are_refused),
		cmocka_unit_test(line_lose__tells_once),
		cmocka_unit_test(line_open__keeps_ip4_from_ip6),
		cmocka_unit_test(line_bind__is_exclusive),
		cmocka_unit_test(line_bind__wants_an_address_of_the_host),
		cmocka_unit_test(line_hear__quotes_what_was_refused),
	};
	int failed = cmocka_run_group_tests_name("IPv4", tests, NULL, NULL);

	return family_is_ip6() ? failed + cmocka_run_group_tests_name("IPv6", tests, NULL, NULL)
			       : failed;
}
