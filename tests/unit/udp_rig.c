/* SPDX-License-Identifier: BSD-3-Clause */
/* udp_rig.c - see udp_rig.h. */
#include "udp_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

const struct candidate_range range = {20480, 1024};
struct port *near, *far;
uint32_t here, there;
char here_name[INET_ADDRSTRLEN], there_name[INET_ADDRSTRLEN];

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

int rig_begin(void **state)
{
	addresses_make();
	return fixture_start(state);
}

/* The next calls fail: refusals of so many, with this error, of joined messages alone or of all. */
static int refused_error;
unsigned refused_count;
static bool refused_joined;
unsigned messages_sent, calls_made;
unsigned nameless_sent; /* by a connected socket */

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

unsigned errors_asked; /* looks at the error queue */

/* What the kernel tells of a datagram that came back is changed; NULL: it is as it was. */
void (*errors_change)(struct msghdr *message, ssize_t *bytes);

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t bytes = __real_recvmsg(fd, message, flags);

	if ((flags & MSG_ERRQUEUE) == 0)
		return bytes;
	errors_asked++;
	if (errors_change && bytes >= 0)
		errors_change(message, &bytes);
	return bytes;
}

int vector_error; /* of sendmmsg(); 0: it is there */
unsigned vectors_made;

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

void refuse(int error, unsigned count, bool joined)
{
	refused_error = error;
	refused_count = count;
	refused_joined = joined;
	messages_sent = calls_made = vectors_made = nameless_sent = 0;
}

int set_up(void **state)
{
	(void)state;
	near = udp_open(here_name, 0, 0, PID, false);
	far = udp_open(there_name, 0, 0, FAR_PID, false);
	refuse(0, 0, false);
	vector_error = 0;
	errors_change = NULL;
	return near && far ? 0 : -1;
}

/* Every buffer comes back. */
int tear_down(void **state)
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

void word_put(struct rte_mbuf *frame, uint32_t at, uint32_t word)
{
	word = rte_cpu_to_le_32(word);
	memcpy(rte_pktmbuf_mtod_offset(frame, void *, at), &word, sizeof(word));
}

/* A frame that names both ends, as the transport's do. */
struct rte_mbuf *frame_named(struct port *from, struct port *to, uint32_t size, uint8_t fill)
{
	struct rte_mbuf *frame = frame_make(from, to->address, size, fill);

	word_put(frame, TO_AT, to->nid);
	word_put(frame, TO_AT + 4, to->pid);
	word_put(frame, FROM_AT, from->nid);
	word_put(frame, FROM_AT + 4, from->pid);
	return frame;
}

void check_frame(
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

void exchange(struct port *from, struct port *to, uint32_t size, uint8_t fill)
{
	port_send(from, frame_named(from, to, size, fill));
	check_frame(port_take(to), from, to, size, fill);
}

void check_nothing(struct port *port)
{
	struct rte_mbuf *frame;

	for (unsigned n = 0; n < 10; n++)
		assert_int_equal(port_receive(port, &frame, 1), 0);
}

/* A run of frames of these sizes: each of `count` is sizes[n % number]. All arrive, in order. */
void check_run(unsigned count, const uint32_t *sizes, unsigned number)
{
	struct rte_mbuf *frames[MANY];
	uint64_t end = glue_now(NULL) + TIMEOUT;
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

struct port *third_open(void)
{
	struct port *third = udp_open(there_name, 0, 0, FAR_PID + 1, false);

	assert_non_null(third);
	return third;
}

int socket_bind(uint32_t node, uint32_t udp_port)
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

int socket_candidate(uint32_t node, uint32_t pid, uint32_t k)
{
	return socket_bind(node, range.first + candidate_index(range, pid, k));
}

struct rte_mbuf *question_make(struct port *from, uint32_t nid, uint32_t pid)
{
	struct rte_mbuf *frame = frame_make(from, everybody, 100, 1);

	word_put(frame, TO_AT, nid);
	word_put(frame, TO_AT + 4, pid);
	word_put(frame, FROM_AT, from->nid);
	word_put(frame, FROM_AT + 4, from->pid);
	return frame;
}

void ask(struct port *from, uint32_t nid, uint32_t pid)
{
	port_send(from, question_make(from, nid, pid));
}

void check_refused(void)
{
	struct rte_mbuf *told, *frame = frame_named(near, far, 500, 9);
	uint8_t address[6];

	memcpy(address, far->address, sizeof(address));
	port_close(far);
	far = NULL;
	port_send(near, frame);
	told = port_take(near);
	assert_non_null(told);
	assert_int_equal(told->pkt_len, FRAME_HEADER + PORT_REFUSAL_BYTES);
	assert_memory_equal(rte_pktmbuf_mtod(told, uint8_t *), near->address, 6);
	assert_memory_equal(rte_pktmbuf_mtod_offset(told, uint8_t *, 6), address, 6);
	assert_int_equal(
		rte_pktmbuf_mtod(told, uint8_t *)[12] << 8 | rte_pktmbuf_mtod(told, uint8_t *)[13],
		PORT_REFUSED);
	rte_pktmbuf_free(told);
}
