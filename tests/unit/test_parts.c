/* SPDX-License-Identifier: BSD-3-Clause */
/* test_parts.c - tests of pmd-glue/parts.c: what a socket of the loopback interface receives, one
 * by one and joined. */
#include "glue_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <pmd-glue/eal.h>
#include <pmd-glue/line.h>
#include <pmd-glue/parts.h>
#include <pmd-glue/pool.h>

#define HERE   UINT32_C(0x7f4d0201) /* 127.77.2.1 */
#define ROOM   9202u
#define FRAMES 1024u
#define MOST   65507u /* bytes in a message */
#define ECN_CE 3

#include "line_rig.h"

static int recvmmsg_error; /* of all calls; 0: none */
static unsigned vectors, calls;

int __wrap_recvmmsg(
	int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *wait);
int __real_recvmmsg(
	int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *wait);
int __wrap_recvmmsg(
	int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *wait)
{
	vectors++;
	if (recvmmsg_error != 0) {
		errno = recvmmsg_error;
		return -1;
	}
	return __real_recvmmsg(fd, messages, count, flags, wait);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	calls++;
	return __real_recvmsg(fd, message, flags);
}

static struct rte_mempool *pool;
static struct parts parts;
static struct parts_source source;
static struct line from, to;
static union udp_name to_name;
static socklen_t to_size;
static uint8_t sent[1 << 16];
static struct rte_mbuf *got[PARTS];

static int set_up(void **state)
{
	(void)state;
	to_size = sizeof(to_name);
	if (!line_make(&from) || !line_make(&to) ||
		getsockname(to.socket, &to_name.any, &to_size) != 0 ||
		!parts_init(&parts, pool, ROOM))
		return -1;
	source = (struct parts_source){.socket = to.socket};
	for (unsigned n = 0; n < sizeof(sent); n++)
		sent[n] = (uint8_t)(n * 2654435761u >> 24);
	recvmmsg_error = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	parts_end(&parts);
	line_close(&from);
	line_close(&to);
	return rte_mempool_in_use_count(pool) == 0 ? 0 : -1;
}

/* Sends the first bytes of `sent`, as datagrams of `part` bytes in one message, or as one. */
static void send_joined(uint32_t length, uint32_t part)
{
	struct iovec piece = {sent, length};
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {0};
	struct msghdr message = {
		.msg_name = &to_name, .msg_namelen = to_size, .msg_iov = &piece, .msg_iovlen = 1};
	uint16_t bytes = (uint16_t)part;

	if (part < length) {
		struct cmsghdr *one;
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		one = CMSG_FIRSTHDR(&message);
		one->cmsg_level = SOL_UDP;
		one->cmsg_type = UDP_SEGMENT;
		one->cmsg_len = CMSG_LEN(sizeof(bytes));
		memcpy(CMSG_DATA(one), &bytes, sizeof(bytes));
	}
	assert_int_equal(sendmsg(from.socket, &message, 0), length);
}

static void send_one(uint32_t length)
{
	send_joined(length, length);
}

/* The next message that is received; 0: it was dropped. */
static unsigned take(struct parts_origin *origin)
{
	uint64_t end = glue_now(NULL) + TIMEOUT;

	while (!parts_wait(&parts) && parts_look(&parts, &source) == 0) {
		assert_int_equal(errno, EAGAIN);
		assert_true(glue_now(NULL) < end);
	}
	return parts_take(&parts, got, origin);
}

/* Takes `length` bytes in datagrams of `part`, in as many messages as it takes. */
static void check_taken(uint32_t length, uint32_t part)
{
	uint32_t at = 0;

	while (at < length) {
		struct parts_origin origin;
		unsigned count = take(&origin);

		assert_true(count > 0);
		assert_int_equal(origin.from.any.sa_family, family);
		if (family == AF_INET6)
			assert_memory_equal(&origin.from.ip6.sin6_addr, &in6addr_loopback, 16);
		else
			assert_int_equal(ntohl(origin.from.ip4.sin_addr.s_addr), HERE);
		assert_false(origin.marked);
		for (unsigned n = 0; n < count; n++) {
			uint32_t bytes = RTE_MIN(length - at, part);
			assert_int_equal(got[n]->pkt_len, PARTS_BEFORE + bytes);
			assert_int_equal(got[n]->data_len, PARTS_BEFORE + bytes);
			assert_int_equal(got[n]->nb_segs, 1);
			assert_memory_equal(
				rte_pktmbuf_mtod_offset(got[n], const uint8_t *, PARTS_BEFORE),
				sent + at, bytes);
			rte_pktmbuf_free(got[n]);
			at += bytes;
		}
	}
	assert_int_equal(parts.errors, 0);
}

static void exchange(uint32_t length, uint32_t part)
{
	send_joined(length, part);
	check_taken(length, part);
}

static void parts_take__takes_every_length(void **state)
{
	(void)state;
	for (uint32_t length = 1; length <= ROOM; length += 1 + length / 50)
		exchange(length, length);
	exchange(ROOM, ROOM);
}

/* Each length of the parts follows another one, so that it is not expected, and then is. */
static void parts_take__takes_joined_ones_of_every_length_and_count(void **state)
{
	static const unsigned counts[] = {2, 3, 63, 64};

	(void)state;
	for (uint32_t part = 1; part <= ROOM; part += 1 + part / 4)
		for (unsigned n = 0; n < RTE_DIM(counts); n++) {
			uint32_t length = RTE_MIN(part * counts[n], MOST / part * part);
			exchange(length, part);
			assert_int_equal(parts.expected, part);
			if (length > part + part / 2) /* the last one is shorter */
				exchange(length - part / 2, part);
		}
}

static void parts_take__takes_what_was_not_expected(void **state)
{
	(void)state;
	exchange(1472 * 40, 1472);
	exchange(1473 * 40, 1473); /* longer */
	exchange(100 * 40, 100);   /* shorter */
	exchange(ROOM, ROOM);      /* single, and longer than a buffer was meant for */
	exchange(1, 1);
	assert_int_equal(parts.expected, 100);
	for (unsigned n = 0; n < 64; n++)
		exchange(50, 50);
	assert_int_equal(parts.expected, 0); /* for a while there were only single ones */
	exchange(1472 * 40, 1472);
}

static void parts_look__takes_joined_ones_without_copies(void **state)
{
	const uint8_t *buffer;
	struct parts_origin origin;

	(void)state;
	exchange(1472 * 44, 1472);
	exchange(1472 * 44, 1472); /* all buffers are there */
	send_joined(1472 * 44, 1472);
	while (parts_look(&parts, &source) == 0)
		;
	buffer = rte_pktmbuf_mtod(parts.held[43], const uint8_t *);
	assert_int_equal(parts_take(&parts, got, &origin), 44);
	assert_ptr_equal(rte_pktmbuf_mtod(got[43], const uint8_t *), buffer);
	rte_pktmbuf_free_bulk(got, 44);
}

static void parts_take__drops_what_no_buffer_holds(void **state)
{
	struct parts_origin origin;

	(void)state;
	send_one(ROOM + 1);
	assert_int_equal(take(&origin), 0);
	assert_int_equal(parts.errors, 1);
	send_joined(3 * (ROOM + 1), ROOM + 1);
	assert_int_equal(take(&origin), 0);
	assert_int_equal(parts.errors, 2);
	send_one(0);
	if (take(&origin) == 1)
		rte_pktmbuf_free(got[0]);
	parts.errors = 0;
	exchange(ROOM, ROOM);
}

/* Many datagrams take few calls. */
static void parts_look__asks_for_several(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 200; n++)
		send_one(100);
	vectors = calls = 0;
	for (unsigned n = 0; n < 200; n++)
		check_taken(100, 100);
	assert_true(vectors + calls <= 40);
	assert_int_equal(source.asked, PARTS_MESSAGES);
	assert_int_equal(parts_look(&parts, &source), 0);
	assert_int_equal(source.asked, 1);
}

static void check_alone(int error)
{
	parts.alone = false;
	recvmmsg_error = error;
	for (unsigned n = 0; n < 200; n++)
		send_one(100);
	vectors = 0;
	for (unsigned n = 0; n < 200; n++)
		check_taken(100, 100);
	assert_int_equal(vectors, 1);
	exchange(1472 * 40, 1472);
	recvmmsg_error = 0;
	parts.expected = 0;
}

static void parts_look__does_without_recvmmsg(void **state)
{
	(void)state;
	check_alone(ENOSYS);
	check_alone(EPERM);
}

/* What there are no buffers for stays in the socket. */
static void parts_look__waits_for_buffers(void **state)
{
	static struct rte_mbuf *all[1 << 16];
	unsigned count = 0;

	(void)state;
	send_one(500);
	while (count < RTE_DIM(all) && (all[count] = rte_pktmbuf_alloc(pool)) != NULL)
		count++;
	assert_int_equal(parts_look(&parts, &source), 0);
	assert_int_equal(errno, ENOBUFS);
	assert_int_equal(parts.no_mbuf, 1);
	rte_pktmbuf_free_bulk(all, count);
	check_taken(500, 500);
}

static void parts_take__sees_marks_of_congestion(void **state)
{
	int mark = ECN_CE;
	struct parts_origin origin;

	(void)state;
	/* The kernel of a sender lets nobody mark by himself what TCP sends, but UDP. */
	assert_int_equal(setsockopt(from.socket, from.level,
				 family == AF_INET6 ? IPV6_TCLASS : IP_TOS, &mark, sizeof(mark)),
		0);
	send_one(10);
	assert_int_equal(take(&origin), 1);
	assert_true(origin.marked);
	rte_pktmbuf_free(got[0]);
	send_joined(1472 * 3, 1472);
	assert_int_equal(take(&origin), 3);
	assert_true(origin.marked);
	rte_pktmbuf_free_bulk(got, 3);
}

static void parts_take__counts_what_the_socket_lost(void **state)
{
	int room = 4096;

	(void)state;
	assert_int_equal(setsockopt(to.socket, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
	for (unsigned n = 0; n < 100; n++)
		send_one(1400);
	check_taken(1400, 1400);
	for (unsigned n = 0; n < 100; n++) { /* the count comes with a later datagram */
		struct parts_origin origin;
		if (!parts_wait(&parts) && parts_look(&parts, &source) == 0)
			break;
		rte_pktmbuf_free_bulk(got, parts_take(&parts, got, &origin));
	}
	send_one(1400);
	check_taken(1400, 1400);
	assert_true(source.missed > 50);
}

static int group_start(void **state)
{
	if (fixture_start(state) != 0)
		return -1;
	pool = mempool_take("test", ROOM + PARTS_BEFORE, FRAMES, SOCKET_ID_ANY, true);
	return pool ? 0 : -1;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(parts_take__takes_every_length),
		CASE(parts_take__takes_joined_ones_of_every_length_and_count),
		CASE(parts_take__takes_what_was_not_expected),
		CASE(parts_look__takes_joined_ones_without_copies),
		CASE(parts_take__drops_what_no_buffer_holds),
		CASE(parts_look__asks_for_several),
		CASE(parts_look__does_without_recvmmsg),
		CASE(parts_look__waits_for_buffers),
		CASE(parts_take__sees_marks_of_congestion),
		CASE(parts_take__counts_what_the_socket_lost),
	};
	int failed = cmocka_run_group_tests_name("IPv4", tests, group_start, NULL);

	return family_is_ip6() ? failed + cmocka_run_group_tests_name("IPv6", tests, NULL, NULL)
			       : failed;
}
