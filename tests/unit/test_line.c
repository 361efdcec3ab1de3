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
#include <unistd.h>
#include <cmocka.h>

#include <pmd-glue/line.h>

#define HERE     UINT32_C(0x7f4d0101) /* 127.77.1.1 */
#define PATIENCE 30000                /* ms */

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

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in name;
	socklen_t size = sizeof(name);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &size), 0);
	return name;
}

/* Open, with some UDP port. */
static struct line line_make(void)
{
	struct line line;

	assert_true(line_open(&line));
	assert_true(line_bind(&line, HERE, 0));
	return line;
}

static void send_to(const struct line *line, const struct sockaddr_in *to, const char *text)
{
	assert_int_equal(sendto(line->socket, text, strlen(text), 0, (const struct sockaddr *)to,
				 sizeof(*to)),
		strlen(text));
}

static void line_open__has_what_the_kernel_has(void **state)
{
	struct line line = line_make();

	(void)state;
	assert_true(line.segments && line.joins && line.news && line.marks);
	assert_true(line.room > 0);
	line_close(&line);
	assert_int_equal(line.socket, -1);
	line_close(&line); /* once more does nothing */
}

static void check_without(int level, int option, ptrdiff_t what)
{
	struct line line, other = line_make();
	char bytes[8];
	struct pollfd ready;
	struct sockaddr_in name;

	refused_level = level;
	refused_option = option;
	line = line_make();
	refused_option = 0;
	if (what != 0)
		assert_false(*(const bool *)((const uint8_t *)&line + what));
	assert_int_equal(line.segments, option != UDP_SEGMENT || level != SOL_UDP);
	name = name_of(line.socket);
	send_to(&other, &name, "there");
	ready = (struct pollfd){.fd = line.socket, .events = POLLIN};
	assert_int_equal(poll(&ready, 1, PATIENCE), 1);
	assert_int_equal(recv(line.socket, bytes, sizeof(bytes), 0), 5);
	line_close(&line);
	line_close(&other);
}

static void line_open__does_without_each_option(void **state)
{
	(void)state;
	check_without(SOL_UDP, UDP_SEGMENT, offsetof(struct line, segments));
	check_without(SOL_UDP, UDP_GRO, offsetof(struct line, joins));
	check_without(SOL_IP, IP_RECVERR, offsetof(struct line, news));
	check_without(SOL_IP, IP_RECVTOS, offsetof(struct line, marks));
	check_without(SOL_IP, IP_TOS, 0);
	check_without(SOL_IP, IP_MTU_DISCOVER, 0);
	check_without(SOL_SOCKET, SO_RXQ_OVFL, 0);
	check_without(SOL_SOCKET, SO_SNDBUF, 0);
	check_without(SOL_SOCKET, SO_RCVBUF, 0);
}

/* Nobody else may have the port, whatever he sets. */
static void line_bind__is_exclusive(void **state)
{
	static const int options[] = {SO_REUSEADDR, SO_REUSEPORT};
	struct line line = line_make(), second;
	struct sockaddr_in name = name_of(line.socket);

	(void)state;
	assert_true(line_open(&second));
	assert_false(line_bind(&second, HERE, ntohs(name.sin_port)));
	assert_int_equal(errno, EADDRINUSE);
	for (unsigned n = 0; n < 2; n++) {
		int on = 1, other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_true(other >= 0);
		assert_int_equal(setsockopt(other, SOL_SOCKET, options[n], &on, sizeof(on)), 0);
		assert_int_equal(bind(other, (const struct sockaddr *)&name, sizeof(name)), -1);
		assert_int_equal(errno, EADDRINUSE);
		close(other);
	}
	line_close(&line);
	assert_true(line_bind(&second, HERE, ntohs(name.sin_port)));
	line_close(&second);
}

static void line_bind__wants_an_address_of_the_host(void **state)
{
	struct line line;

	(void)state;
	assert_true(line_open(&line));
	assert_false(line_bind(&line, UINT32_C(0xc0000201), 0));
	assert_int_equal(errno, EADDRNOTAVAIL);
	line_close(&line);
}

/* A datagram to a port that nobody has comes back. */
static void line_hear__quotes_what_was_refused(void **state)
{
	struct line line = line_make(), gone = line_make();
	struct sockaddr_in to = name_of(gone.socket);
	struct pollfd ready = {.fd = line.socket, .events = POLLIN};
	struct line_news news;
	char long_text[2 * LINE_QUOTE + 1];

	(void)state;
	line_close(&gone);
	assert_false(line_hear(&line, &news));
	send_to(&line, &to, "refused");
	assert_int_equal(poll(&ready, 1, PATIENCE), 1);
	assert_true(line_hear(&line, &news));
	assert_int_equal(news.error, ECONNREFUSED);
	assert_int_equal(news.to.sin_addr.s_addr, htonl(HERE));
	assert_int_equal(news.to.sin_port, to.sin_port);
	assert_int_equal(news.bytes, 7);
	assert_memory_equal(news.quote, "refused", 7);
	assert_false(line_hear(&line, &news));
	assert_int_equal(poll(&ready, 1, 0), 0);

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	send_to(&line, &to, long_text);
	assert_int_equal(poll(&ready, 1, PATIENCE), 1);
	assert_true(line_hear(&line, &news));
	assert_int_equal(news.bytes, LINE_QUOTE);
	line_close(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_open__has_what_the_kernel_has),
		cmocka_unit_test(line_open__does_without_each_option),
		cmocka_unit_test(line_bind__is_exclusive),
		cmocka_unit_test(line_bind__wants_an_address_of_the_host),
		cmocka_unit_test(line_hear__quotes_what_was_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
