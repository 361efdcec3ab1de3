/* SPDX-License-Identifier: BSD-3-Clause */
/* test_udp.c - tests of pmd-glue/udp.c: ports of several processes, and sockets that pretend to be
 * some, on addresses of the loopback interface. All of them are this process, and need no right.
 * Covers: pmd-glue/local.c. */
#include "glue_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <pmd-glue/candidate.h>
#include <pmd-glue/kinds.h>

#define PID     4711u
#define FAR_PID 815u
/* in a frame */
#define TO_AT   22u
#define FROM_AT 30u
#define DATA_AT 38u
#define MANY    200u

static const struct candidate_range range = {20480, 1024};
static struct port *near, *far;
/* Addresses of the loopback interface that only this process has: the test runs twice at once. */
static uint32_t here, there;
static char here_name[INET_ADDRSTRLEN], there_name[INET_ADDRSTRLEN];

static void addresses_make(void)
{
	struct in_addr address;

	here = UINT32_C(127) << 24 | ((uint32_t)getpid() << 2 & 0xffffff) | 1;
	there = here + 1;
	address.s_addr = htonl(here);
	inet_ntop(AF_INET, &address, here_name, sizeof(here_name));
	address.s_addr = htonl(there);
	inet_ntop(AF_INET, &address, there_name, sizeof(there_name));
}

/* The next calls fail: refusals of so many, with this error, of joined messages alone or of all. */
static int refused_error;
static unsigned refused_count;
static bool refused_joined;
static unsigned messages_sent, calls_made;
static unsigned nameless_sent; /* by a connected socket */

static bool refuses(const struct msghdr *message)
{
	if (refused_count == 0 || (refused_joined && message->msg_controllen == 0))
		return false;
	refused_count--;
	errno = refused_error;
	return true;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	calls_made++;
	if (refuses(message))
		return -1;
	messages_sent++;
	nameless_sent += message->msg_name == NULL;
	return __real_sendmsg(fd, message, flags);
}

/* An ordinary user has no port below 1024, whoever runs the test. */
int __wrap_bind(int fd, const struct sockaddr *name, socklen_t size);
int __real_bind(int fd, const struct sockaddr *name, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *name, socklen_t size)
{
	const struct sockaddr_in *ip4 = (const void *)name;

	if (name->sa_family == AF_INET && ip4->sin_port != 0 &&
		ntohs(ip4->sin_port) < IPPORT_RESERVED) {
		errno = EACCES;
		return -1;
	}
	return __real_bind(fd, name, size);
}

static unsigned news_asked; /* looks at the error queue */

/* What the kernel tells of a datagram that came back is changed; NULL: it is as it was. */
static void (*news_change)(struct msghdr *message, ssize_t *bytes);

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t bytes = __real_recvmsg(fd, message, flags);

	if ((flags & MSG_ERRQUEUE) == 0)
		return bytes;
	news_asked++;
	if (news_change && bytes >= 0)
		news_change(message, &bytes);
	return bytes;
}

static int vector_error; /* of sendmmsg(); 0: it is there */
static unsigned vectors_made;

int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	vectors_made++;
	if (vector_error != 0) {
		errno = vector_error;
		return -1;
	}
	for (unsigned n = 0; n < count; n++) {
		ssize_t bytes = __wrap_sendmsg(fd, &messages[n].msg_hdr, flags);
		if (bytes < 0)
			return n > 0 ? (int)n : -1;
		messages[n].msg_len = (unsigned)bytes;
	}
	return (int)count;
}

static void refuse(int error, unsigned count, bool joined)
{
	refused_error = error;
	refused_count = count;
	refused_joined = joined;
	messages_sent = calls_made = vectors_made = nameless_sent = 0;
}

static int set_up(void **state)
{
	(void)state;
	near = udp_open(here_name, 0, 0, PID, false);
	far = udp_open(there_name, 0, 0, FAR_PID, false);
	refuse(0, 0, false);
	vector_error = 0;
	news_change = NULL;
	return near && far ? 0 : -1;
}

/* Every buffer comes back. */
static int tear_down(void **state)
{
	(void)state;
	fixture_set("PTL_UDP_PORTS", NULL);
	if (near)
		port_close(near);
	if (far)
		port_close(far);
	near = far = NULL;
	return 0;
}

static void word_put(struct rte_mbuf *frame, uint32_t at, uint32_t word)
{
	word = rte_cpu_to_le_32(word);
	memcpy(rte_pktmbuf_mtod_offset(frame, void *, at), &word, sizeof(word));
}

/* A frame that names both ends, as the transport's do. */
static struct rte_mbuf *frame_named(struct port *from, struct port *to, uint32_t size, uint8_t fill)
{
	struct rte_mbuf *frame = frame_make(from, to->address, size, fill);

	word_put(frame, TO_AT, to->nid);
	word_put(frame, TO_AT + 4, to->pid);
	word_put(frame, FROM_AT, from->nid);
	word_put(frame, FROM_AT + 4, from->pid);
	return frame;
}

static void check_frame(
	struct rte_mbuf *frame, struct port *from, struct port *to, uint32_t size, uint8_t fill)
{
	const uint8_t *bytes;

	assert_non_null(frame);
	bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	assert_int_equal(frame->pkt_len, size);
	assert_int_equal(frame->nb_segs, 1);
	assert_memory_equal(bytes, to->address, 6);
	assert_memory_equal(bytes + 6, from->address, 6);
	assert_int_equal(bytes[12] << 8 | bytes[13], 0x88b5);
	for (uint32_t n = DATA_AT; n < size; n++)
		assert_int_equal(bytes[n], fill);
	rte_pktmbuf_free(frame);
}

static void exchange(struct port *from, struct port *to, uint32_t size, uint8_t fill)
{
	port_send(from, frame_named(from, to, size, fill));
	check_frame(port_take(to), from, to, size, fill);
}

static void check_nothing(struct port *port)
{
	struct rte_mbuf *frame;

	for (unsigned n = 0; n < 10; n++)
		assert_int_equal(port_receive(port, &frame, 1), 0);
}

/* A run of frames of these sizes: each of `count` is sizes[n % number]. All arrive, in order. */
static void check_run(unsigned count, const uint32_t *sizes, unsigned number)
{
	struct rte_mbuf *frames[MANY];
	uint64_t end = glue_now(NULL) + PATIENCE;
	unsigned sent = 0, got = 0;

	assert_true(count <= MANY);
	for (unsigned n = 0; n < count; n++)
		frames[n] = frame_named(near, far, sizes[n % number], (uint8_t)n);
	while (got < count) {
		struct rte_mbuf *frame;
		sent += port_transmit(near, frames + sent, (uint16_t)(count - sent));
		if (port_receive(far, &frame, 1) == 1) {
			check_frame(frame, near, far, sizes[got % number], (uint8_t)got);
			got++;
		}
		assert_true(glue_now(NULL) < end);
	}
	assert_int_equal(sent, count);
	assert_int_equal(port_count(near).errors, 0);
}

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
	struct port *third = udp_open(there_name, 0, 0, FAR_PID + 1, false);
	struct rte_mbuf *frames[64];
	uint64_t end = glue_now(NULL) + PATIENCE;
	unsigned sent = 0;

	(void)state;
	assert_non_null(third);
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

/* --- the connected socket */

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

static struct port *third_open(void)
{
	struct port *third = udp_open(there_name, 0, 0, FAR_PID + 1, false);

	assert_non_null(third);
	return third;
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
	struct rte_mbuf *frame, *told;
	uint8_t address[6];

	(void)state;
	connect_to(near, far);
	frame = frame_named(near, far, 500, 9);
	memcpy(address, far->address, sizeof(address));
	port_close(far);
	far = NULL;
	port_send(near, frame);
	told = port_take(near);
	assert_non_null(told);
	assert_int_equal(told->pkt_len, FRAME_HEADER + PORT_REFUSAL_BYTES);
	assert_memory_equal(rte_pktmbuf_mtod_offset(told, uint8_t *, 6), address, 6);
	rte_pktmbuf_free(told);
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

/* --- sockets that pretend to be ports */

static int socket_bind(uint32_t node, uint32_t udp_port)
{
	struct sockaddr_in name = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)udp_port),
		.sin_addr.s_addr = htonl(node)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int socket_candidate(uint32_t node, uint32_t pid, uint32_t k)
{
	return socket_bind(node, range.first + candidate_index(range, pid, k));
}

/* A datagram from a node and process, whether it is or not. */
static void pretend(int fd, uint32_t nid, uint32_t pid, uint32_t length)
{
	uint8_t bytes[64] = {0};
	uint32_t words[] = {rte_cpu_to_le_32(nid), rte_cpu_to_le_32(pid)};
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(range.first + candidate_read(near->address))),
		.sin_addr.s_addr = htonl(here)};

	memcpy(bytes + FROM_AT - FRAME_HEADER, words, sizeof(words));
	assert_int_equal(
		sendto(fd, bytes, length, 0, (const struct sockaddr *)&to, sizeof(to)), length);
}

static void check_strange(int fd, uint32_t nid, uint32_t pid, uint32_t length)
{
	uint64_t end = glue_now(NULL) + PATIENCE, before = port_count(near).errors;
	struct rte_mbuf *frame;

	pretend(fd, nid, pid, length);
	while (port_count(near).errors == before) {
		assert_int_equal(port_receive(near, &frame, 1), 0);
		assert_true(glue_now(NULL) < end);
	}
	assert_int_equal(port_count(near).errors, before + 1);
}

/* I3 */
static void udp_receive__drops_what_names_another_sender(void **state)
{
	int fd = socket_candidate(there, 99, 3);
	int outside = socket_bind(there, 0);
	struct rte_mbuf *frame;

	(void)state;
	assert_true(fd >= 0 && outside >= 0);
	pretend(fd, there, 99, 64);
	frame = port_take(near);
	assert_non_null(frame);
	assert_int_equal(candidate_node(rte_pktmbuf_mtod_offset(frame, const uint8_t *, 6)), there);
	assert_int_equal(candidate_read(rte_pktmbuf_mtod_offset(frame, const uint8_t *, 6)),
		candidate_index(range, 99, 3));
	rte_pktmbuf_free(frame);
	check_strange(fd, here, 99, 64);       /* another node */
	check_strange(fd, there, FAR_PID, 64); /* another process, whose port it cannot have */
	check_strange(fd, there, 100, 64);
	check_strange(fd, there, 99, FROM_AT - FRAME_HEADER + 7); /* it names nobody */
	check_strange(fd, there, 99, 1);
	check_strange(outside, there, 99, 64); /* no port of the range */
	pretend(fd, there, 99, 64);
	frame = port_take(near);
	assert_non_null(frame);
	rte_pktmbuf_free(frame);
	close(fd);
	close(outside);
}

/* A socket that is full is emptied in few turns. */
static void udp_receive__takes_a_whole_burst(void **state)
{
	int fd = socket_candidate(there, 99, 3);
	struct rte_mbuf *frames[64];
	unsigned got = 0, turns = 0;

	(void)state;
	for (unsigned n = 0; n < MANY; n++)
		pretend(fd, there, 99, 64);
	for (uint16_t count; got < MANY; got += count, turns++) {
		count = port_receive(near, frames, 64);
		assert_true(count > 0);
		rte_pktmbuf_free_bulk(frames, count);
	}
	assert_true(turns <= 12);
	close(fd);
}

static uint32_t type_taken(int fd, int service)
{
	struct rte_mbuf *frame;
	const uint8_t *bytes;
	uint32_t type;

	assert_int_equal(setsockopt(fd, SOL_IP, IP_TOS, &service, sizeof(service)), 0);
	pretend(fd, there, 99, 64);
	frame = port_take(near);
	assert_non_null(frame);
	bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	type = (uint32_t)bytes[12] << 8 | bytes[13];
	rte_pktmbuf_free(frame);
	return type;
}

static void udp_receive__tells_marks_of_congestion(void **state)
{
	int fd = socket_candidate(there, 99, 3);

	(void)state;
	assert_int_equal(type_taken(fd, 2), 0x88b5); /* ECT(0) */
	assert_int_equal(type_taken(fd, 3), PORT_MARKED);
	assert_int_equal(type_taken(fd, 0), 0x88b5);
	close(fd);
}

static struct rte_mbuf *question_make(struct port *from, uint32_t nid, uint32_t pid)
{
	struct rte_mbuf *frame = frame_make(from, everybody, 100, 1);

	word_put(frame, TO_AT, nid);
	word_put(frame, TO_AT + 4, pid);
	word_put(frame, FROM_AT, from->nid);
	word_put(frame, FROM_AT + 4, from->pid);
	return frame;
}

static void ask(struct port *from, uint32_t nid, uint32_t pid)
{
	port_send(from, question_make(from, nid, pid));
}

static bool has_datagram(int fd)
{
	uint8_t bytes[128];

	return recv(fd, bytes, sizeof(bytes), 0) == 100 - (int)FRAME_HEADER;
}

/* I4: the question reaches each of a process's ports in turn, and later the first one always. Some
 * of them coincide with those of others, so that a process with eight different ones is taken. */
static uint32_t pid_distinct(uint32_t pid)
{
	for (;; pid++) {
		bool distinct = true;
		for (uint32_t k = 0; k < CANDIDATES; k++)
			for (uint32_t m = 0; m < k; m++)
				distinct &= candidate_index(range, pid, k) !=
					    candidate_index(range, pid, m);
		if (distinct)
			return pid;
	}
}

static void udp_transmit__asks_each_port_of_a_process(void **state)
{
	uint32_t pid = pid_distinct(5000);
	int fds[CANDIDATES];

	(void)state;
	for (uint32_t k = 0; k < CANDIDATES; k++) {
		fds[k] = socket_candidate(there, pid, k);
		assert_true(fds[k] >= 0);
	}
	for (uint32_t n = 0; n < 3 * CANDIDATES; n++) {
		ask(near, there, pid);
		for (uint32_t k = 0; k < CANDIDATES; k++)
			assert_int_equal(has_datagram(fds[k]),
				n < CANDIDATES
					? k == n
					: k == 0 || k == 1 + (n - CANDIDATES) % (CANDIDATES - 1));
	}
	for (uint32_t k = 0; k < CANDIDATES; k++)
		close(fds[k]);
}

/* Questions and frames of a burst cost one call. */
static void udp_transmit__asks_for_many_at_once(void **state)
{
	struct rte_mbuf *frames[40];
	int fds[20];

	(void)state;
	for (uint32_t n = 0; n < 20; n++) {
		fds[n] = socket_candidate(there, 8000 + n, 0);
		frames[2 * n] = question_make(near, there, 8000 + n);
		frames[2 * n + 1] = frame_named(near, far, 100, (uint8_t)n);
	}
	refuse(0, 0, false);
	assert_int_equal(port_transmit(near, frames, 40), 40);
	assert_int_equal(vectors_made, 1);
	assert_int_equal(messages_sent, 40);
	for (uint32_t n = 0; n < 20; n++) {
		check_frame(port_take(far), near, far, 100, (uint8_t)n);
		if (fds[n] < 0) /* another process's */
			continue;
		assert_true(has_datagram(fds[n]));
		close(fds[n]);
	}
	assert_int_equal(port_count(near).errors, 0);
}

/* Its sender repeats a question; a frame waits. */
static void udp_transmit__loses_questions_that_find_the_socket_full(void **state)
{
	struct rte_mbuf *frames[] = {frame_named(near, far, 100, 1),
		question_make(near, there, 9000), question_make(near, there, 9001),
		frame_named(near, far, 100, 2)};

	(void)state;
	refuse(EAGAIN, 1, false);
	assert_int_equal(port_transmit(near, frames, 4), 0);
	refuse(EAGAIN, 3, false);
	assert_int_equal(port_transmit(near, frames + 1, 3), 2);
	assert_int_equal(port_count(near).errors, 2);
	port_send(near, frames[0]);
	port_send(near, frames[3]);
	check_frame(port_take(far), near, far, 100, 1);
	check_frame(port_take(far), near, far, 100, 2);
}

/* A claim: all ports that a process of the same name may have hear it, but the own one. */
static void udp_transmit__claims_the_name(void **state)
{
	uint32_t pid = pid_distinct(6000);
	struct port *port = udp_open(here_name, 0, 0, pid, false);
	int fds[CANDIDATES];

	(void)state;
	assert_non_null(port);
	for (uint32_t k = 1; k < CANDIDATES; k++) {
		fds[k] = socket_candidate(here, pid, k);
		assert_true(fds[k] >= 0);
	}
	ask(port, here, pid);
	for (uint32_t k = 1; k < CANDIDATES; k++) {
		assert_true(has_datagram(fds[k]));
		close(fds[k]);
	}
	check_nothing(port);
	port_close(port);
}

/* A broadcast that names nobody would be for all hosts, which are not known. */
static void udp_transmit__sends_no_broadcast(void **state)
{
	(void)state;
	ask(near, PORT_ANY_NODE, FAR_PID);
	assert_int_equal(port_count(near).errors, 1);
	check_nothing(far);
}

/* --- opening */

static void udp_open__takes_the_first_free_port(void **state)
{
	uint32_t pid = pid_distinct(7000);
	int fds[CANDIDATES];
	struct port *port;

	(void)state;
	for (uint32_t k = 0; k < CANDIDATES; k++) {
		port = udp_open(here_name, 0, 0, pid, false);
		assert_non_null(port);
		assert_int_equal(candidate_read(port->address), candidate_index(range, pid, k));
		exchange(port, far, 100, (uint8_t)k);
		exchange(far, port, 100, (uint8_t)k);
		port_close(port);
		fds[k] = socket_candidate(here, pid, k);
		assert_true(fds[k] >= 0);
		glue_pid_try(true);
		assert_null(udp_open(here_name, 0, 0, pid, true));
		assert_true(glue_pid_is_taken());
		glue_pid_try(false);
	}
	assert_null(udp_open(here_name, 0, 0, pid, false)); /* all eight are taken */
	for (uint32_t k = 0; k < CANDIDATES; k++)
		close(fds[k]);
	port = udp_open(here_name, 0, 0, pid, false);
	assert_non_null(port);
	port_close(port);
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

/* --- IPv6, between processes of this host: its loopback interface has one address */

#define NODE6 7u

static char hosts_path[] = "/tmp/postern-test-udp-XXXXXX";

static void hosts_write(const char *text)
{
	FILE *file = fopen(hosts_path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Both ports on ::1; false: this host has no IPv6. */
static bool set_up_ip6(void)
{
	struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0;

	if (fd >= 0)
		close(fd);
	if (!has)
		return false;
	strcpy(hosts_path + strlen(hosts_path) - 6, "XXXXXX");
	fd = mkstemp(hosts_path);
	assert_true(fd >= 0);
	close(fd);
	hosts_write("7 ::1\n8 fd00::8\n");
	fixture_set("PTL_HOSTS", hosts_path);
	port_close(near);
	port_close(far);
	near = udp_open("::1", 0, 0, (uint32_t)getpid(), false);
	far = udp_open("lo", 0, 0, (uint32_t)getpid() + 1, false);
	assert_non_null(near);
	assert_non_null(far);
	return true;
}

static void tear_down_ip6(void)
{
	fixture_set("PTL_HOSTS", NULL);
	unlink(hosts_path);
}

static void udp_open__takes_an_ip6_address_that_the_file_has(void **state)
{
	static const uint32_t usual[] = {1480};

	(void)state;
	if (!set_up_ip6())
		skip();
	assert_int_equal(near->nid, NODE6);
	assert_int_equal(far->nid, NODE6);
	assert_int_equal(candidate_node(near->address), NODE6);
	assert_true(near->operations->link(near));
	for (uint32_t size = DATA_AT; size < near->frame_size; size = size * 5 / 4 + 1) {
		exchange(near, far, size, (uint8_t)size);
		exchange(far, near, size, (uint8_t)(size + 1));
	}
	exchange(near, far, near->frame_size, 1);
	check_run(64, usual, 1);
	tear_down_ip6();
}

/* Nobody knows where it goes: it is lost, and stops no other. */
static void udp_transmit__loses_frames_for_nodes_that_the_file_has_not(void **state)
{
	struct rte_mbuf *frames[3], *unknown;

	(void)state;
	if (!set_up_ip6())
		skip();
	for (unsigned n = 0; n < 3; n++)
		frames[n] = frame_named(near, far, 100, (uint8_t)n);
	unknown = frames[1];
	candidate_write(rte_pktmbuf_mtod(unknown, uint8_t *), 9, 0);
	for (uint16_t done = 0; done < 3;)
		done = (uint16_t)(done + port_transmit(near, frames + done, (uint16_t)(3 - done)));
	check_frame(port_take(far), near, far, 100, 0);
	check_frame(port_take(far), near, far, 100, 2);
	assert_int_equal(port_count(near).errors, 1);
	ask(near, 9, FAR_PID);
	assert_int_equal(port_count(near).errors, 2);
	tear_down_ip6();
}

static void pretend_ip6(int fd, uint32_t nid, uint32_t pid)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)(range.first + candidate_read(near->address))),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	uint32_t words[] = {rte_cpu_to_le_32(nid), rte_cpu_to_le_32(pid)};
	uint8_t bytes[64] = {0};

	memcpy(bytes + FROM_AT - FRAME_HEADER, words, sizeof(words));
	assert_int_equal(
		sendto(fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)&to, sizeof(to)),
		sizeof(bytes));
}

/* I3: the file says who speaks from an address. */
static void udp_receive__drops_what_names_another_ip6_sender(void **state)
{
	uint32_t pid = (uint32_t)getpid() + 2;
	struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t end = glue_now(NULL) + PATIENCE;
	struct rte_mbuf *frame;
	uint32_t k = 0;

	(void)state;
	assert_true(fd >= 0);
	if (!set_up_ip6()) {
		close(fd);
		skip();
	}
	do {
		assert_true(k < CANDIDATES);
		name.sin6_port = htons((uint16_t)(range.first + candidate_index(range, pid, k++)));
	} while (bind(fd, (const struct sockaddr *)&name, sizeof(name)) != 0);
	pretend_ip6(fd, 8, pid); /* a node of the file that is elsewhere */
	pretend_ip6(fd, 9, pid); /* a node that is not in the file */
	while (port_count(near).errors < 2) {
		assert_int_equal(port_receive(near, &frame, 1), 0);
		assert_true(glue_now(NULL) < end);
	}
	pretend_ip6(fd, NODE6, pid);
	frame = port_take(near);
	assert_non_null(frame);
	rte_pktmbuf_free(frame);
	close(fd);
	tear_down_ip6();
}

static void check_no_ip6(const char *name)
{
	assert_null(udp_open(name, 0, 0, (uint32_t)getpid() + 3, false));
}

static void udp_open__wants_ip6_addresses_from_the_file(void **state)
{
	struct port *port;

	(void)state;
	check_no_ip6("::1"); /* without a file */
	if (!set_up_ip6())
		skip();
	check_no_ip6("fd00::8"); /* another host's */
	check_no_ip6("fd00::9");
	check_no_ip6("::ffff:127.0.0.1");
	check_no_ip6("fe80::1");
	check_no_ip6("ff02::1");
	check_no_ip6("::");
	check_no_ip6("ptg7");
	check_no_ip6("::1::1");
	/* An IPv4 address is meant where one is written. */
	port = udp_open(here_name, 0, 0, PID, false);
	assert_non_null(port);
	assert_int_equal(port->nid, here);
	port_close(port);
	hosts_write("8 fd00::8\n");
	check_no_ip6("::1");
	check_no_ip6("lo");
	check_no_ip6("");
	hosts_write("wrong\n");
	check_no_ip6("::1");
	tear_down_ip6();
}

static void of_a_stranger(struct msghdr *message, ssize_t *bytes)
{
	struct sockaddr_in6 *name = message->msg_name;
	(void)bytes;
	name->sin6_addr.s6_addr[0] ^= 1;
}

/* What nobody takes comes back, if the file has its host. */
static void udp_receive__tells_what_ip6_refused(void **state)
{
	struct rte_mbuf *frame, *told;
	uint8_t address[6];

	(void)state;
	if (!set_up_ip6())
		skip();
	frame = frame_named(near, far, 500, 9);
	memcpy(address, far->address, sizeof(address));
	port_close(far);
	far = NULL;
	port_send(near, frame);
	told = port_take(near);
	assert_non_null(told);
	assert_int_equal(told->pkt_len, FRAME_HEADER + PORT_REFUSAL_BYTES);
	assert_memory_equal(rte_pktmbuf_mtod_offset(told, uint8_t *, 6), address, 6);
	rte_pktmbuf_free(told);
	news_change = of_a_stranger;
	news_asked = 0;
	ask(near, NODE6, (uint32_t)getpid() + 1);
	while (news_asked < 2) /* the second finds none */
		check_nothing(near);
	tear_down_ip6();
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

/* --- sleeping */

static void udp_interrupt__wakes_for_frames_alone(void **state)
{
	struct pollfd ready = {.events = POLLIN};

	(void)state;
	ready.fd = near->operations->interrupt(near, true);
	assert_true(ready.fd >= 0);
	assert_int_equal(poll(&ready, 1, 0), 0);
	ask(near, there, 12345); /* nobody has the port: the refusal makes the socket readable */
	assert_int_equal(poll(&ready, 1, 1000), 1);
	assert_int_equal(near->operations->interrupt(near, true), ready.fd);
	assert_int_equal(poll(&ready, 1, 0), 0);
	rte_pktmbuf_free(port_take(near)); /* which waits for the look before sleep */
	port_send(far, frame_named(far, near, 100, 1));
	assert_int_equal(poll(&ready, 1, 1000), 1);
	check_frame(port_take(near), far, near, 100, 1);
	(void)near->operations->interrupt(near, false);
}

static void udp_interrupt__asks_for_news_after_a_call_in_vain_alone(void **state)
{
	struct rte_mbuf *frame;

	(void)state;
	exchange(far, near, 100, 1);
	news_asked = 0;
	(void)near->operations->interrupt(near, true);
	assert_int_equal(news_asked, 0);
	(void)near->operations->interrupt(near, false);
	assert_int_equal(port_receive(near, &frame, 1), 0);
	(void)near->operations->interrupt(near, true);
	assert_int_equal(news_asked, 1);
	(void)near->operations->interrupt(near, false);
}

/* What nobody takes comes back, as far as a transport header goes. */
static void udp_receive__tells_what_was_refused(void **state)
{
	uint32_t index = candidate_read(far->address);
	uint8_t address[6];
	struct rte_mbuf *frame = frame_named(near, far, 500, 9), *told;
	uint8_t sent[PORT_REFUSAL_BYTES];

	(void)state;
	memcpy(sent, rte_pktmbuf_mtod_offset(frame, uint8_t *, FRAME_HEADER), sizeof(sent));
	memcpy(address, far->address, sizeof(address));
	port_close(far);
	far = NULL;
	port_send(near, frame);
	told = port_take(near);
	assert_non_null(told);
	assert_int_equal(told->pkt_len, FRAME_HEADER + PORT_REFUSAL_BYTES);
	assert_memory_equal(rte_pktmbuf_mtod(told, uint8_t *), near->address, 6);
	assert_memory_equal(rte_pktmbuf_mtod(told, uint8_t *) + 6, address, 6);
	assert_int_equal(candidate_read(address), index);
	assert_int_equal(
		rte_pktmbuf_mtod(told, uint8_t *)[12] << 8 | rte_pktmbuf_mtod(told, uint8_t *)[13],
		PORT_REFUSED);
	assert_memory_equal(
		rte_pktmbuf_mtod_offset(told, uint8_t *, FRAME_HEADER), sent, sizeof(sent));
	rte_pktmbuf_free(told);
	for (unsigned n = 0; n < 100; n++) /* more than are kept: those go with the port */
		port_send(near, frame_make(near, address, 100, 1));
}

static struct sock_extended_err *news_error(struct msghdr *message)
{
	for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one))
		if (one->cmsg_type == IP_RECVERR)
			return (void *)CMSG_DATA(one);
	fail();
	return NULL;
}

static void of_a_host(struct msghdr *message, ssize_t *bytes)
{
	(void)bytes;
	news_error(message)->ee_errno = EHOSTUNREACH;
}

static void of_this_host(struct msghdr *message, ssize_t *bytes)
{
	(void)bytes;
	news_error(message)->ee_origin = SO_EE_ORIGIN_LOCAL;
}

static void of_a_short_datagram(struct msghdr *message, ssize_t *bytes)
{
	(void)message;
	*bytes = PORT_REFUSAL_BYTES - 1;
}

static void of_a_port_before(struct msghdr *message, ssize_t *bytes)
{
	struct sockaddr_in *name = message->msg_name;
	(void)bytes;
	name->sin_port = htons((uint16_t)(range.first - 1));
}

static void of_a_port_behind(struct msghdr *message, ssize_t *bytes)
{
	struct sockaddr_in *name = message->msg_name;
	(void)bytes;
	name->sin_port = htons((uint16_t)(range.first + range.count));
}

/* Nobody else has the own name. */
static void of_the_own_name(struct msghdr *message, ssize_t *bytes)
{
	uint8_t *quote = message->msg_iov[0].iov_base;
	(void)bytes;
	memcpy(quote + TO_AT - FRAME_HEADER, quote + FROM_AT - FRAME_HEADER, 8);
}

/* The rest is no refusal of a frame that went to a process. */
static void udp_receive__tells_of_no_other_errors(void **state)
{
	void (*const changes[])(struct msghdr *, ssize_t *) = {of_a_host, of_this_host,
		of_a_short_datagram, of_a_port_before, of_a_port_behind, of_the_own_name};

	(void)state;
	for (unsigned n = 0; n < RTE_DIM(changes); n++) {
		unsigned asked = news_asked;
		news_change = changes[n];
		ask(near, there, 12345 + n);
		for (uint64_t end = glue_now(NULL) + PATIENCE; news_asked == asked;) {
			check_nothing(near);
			assert_true(glue_now(NULL) < end);
		}
		check_nothing(near);
		news_change = NULL;
		ask(near, there, 12345 + n);
		rte_pktmbuf_free(port_take(near));
	}
}

/* A refusal costs no frame that waits behind it. */
static void udp_receive__goes_on_after_refusals(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 20; n++) {
		struct rte_mbuf *told;

		ask(near, there, 12345 + n);
		exchange(near, far, 100, (uint8_t)n);
		port_send(far, frame_named(far, near, 100, (uint8_t)n));
		told = port_take(near);
		assert_int_equal(told->pkt_len, FRAME_HEADER + PORT_REFUSAL_BYTES);
		rte_pktmbuf_free(told);
		check_frame(port_take(near), far, near, 100, (uint8_t)n);
	}
	assert_int_equal(port_count(near).errors, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
		CASE(udp_receive__drops_what_names_another_sender),
		CASE(udp_receive__takes_a_whole_burst),
		CASE(udp_receive__tells_marks_of_congestion),
		CASE(udp_transmit__asks_each_port_of_a_process),
		CASE(udp_transmit__asks_for_many_at_once),
		CASE(udp_transmit__loses_questions_that_find_the_socket_full),
		CASE(udp_transmit__claims_the_name),
		CASE(udp_transmit__sends_no_broadcast),
		CASE(udp_open__takes_the_first_free_port),
		CASE(udp_open__has_a_port_of_its_own),
		CASE(udp_open__takes_ports_from_the_range),
		CASE(udp_open__tells_whose_ports_below_1024_are),
		CASE(udp_open__wants_no_setting_that_means_nothing),
		CASE(udp_open__wants_an_address_of_this_host),
		CASE(udp_open__wants_an_mtu_that_there_is),
		CASE(uplink_open_udp__takes_a_process_id_whose_first_port_is_free),
		CASE(udp_counters__show_no_buffers_while_nothing_is_sent),
		CASE(udp_interrupt__wakes_for_frames_alone),
		CASE(udp_interrupt__asks_for_news_after_a_call_in_vain_alone),
		CASE(udp_receive__tells_what_was_refused),
		CASE(udp_receive__tells_of_no_other_errors),
		CASE(udp_receive__goes_on_after_refusals),
		CASE(udp_open__takes_an_ip6_address_that_the_file_has),
		CASE(udp_open__wants_ip6_addresses_from_the_file),
		CASE(udp_transmit__loses_frames_for_nodes_that_the_file_has_not),
		CASE(udp_receive__drops_what_names_another_ip6_sender),
		CASE(udp_receive__tells_what_ip6_refused),
	};

	addresses_make();
	return cmocka_run_group_tests(tests, fixture_start, NULL);
}
