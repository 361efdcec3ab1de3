/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_datagrams.c - a port on a UDP socket, to which the kernel hands what the input says: single
 * and joined datagrams of every length, with forged senders, with truncated data or control
 * messages, errors instead, and datagrams that came back. A model says which frames the port has
 * to make of it; they have these bytes and no others, all else is counted, and every buffer comes
 * back.
 *
 * The input is steps for the owner of the port. While a step runs, the kernel takes from the input
 * what it hands over.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <base/settings.h>
#include <pmd-glue/candidate.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/parts.h>
#include <pmd-glue/pool.h>

#include "fuzz.h"

#define PID        4711u
#define FAR_PID    815u
#define DATAGRAM   65507u
#define ROOM       (FRAME_DEFAULT - FRAME_HEADER) /* bytes of a datagram that a frame has */
#define TO_AT      8u                             /* in a datagram */
#define FROM_AT    16u
#define NAMES_END  24u
#define INPUT_MOST 4096u
#define WAITING    8192u /* frames that the port has to make */
#define TYPE       0x88b5u
#define LAST_LOOKS 1000u

/* Of a message; a bit each. */
enum {
	SAY_STRANGE = 1,    /* not from the usual node */
	SAY_PORT = 2,       /* from any UDP port */
	SAY_LIE = 4,        /* one of its datagrams names another sender */
	SAY_JOINED = 8,     /* the kernel says how long its datagrams are */
	SAY_MARK = 16,      /* and what IP's header had */
	SAY_LOST = 32,      /* and how many it has dropped */
	SAY_TRUNCATED = 64, /* flags, or no sender */
	SAY_NONE = 128,     /* no message: an error */
};

static const struct candidate_range range = {20480, 1024};
static uint32_t here, there;
static char here_name[INET_ADDRSTRLEN];
static struct port *port;

static const uint8_t *script_at, *script_end;

/* What the model expects. */
struct expected {
	uint8_t header[FRAME_HEADER];
	uint32_t length;
	uint8_t seed;
	uint32_t names[4];
};
static struct expected expected[WAITING];
static unsigned expected_first, expected_count;
static uint64_t errors;
static uint32_t missed;

static uint32_t script_number(unsigned bytes)
{
	uint32_t number = 0;

	while (bytes-- > 0)
		number = number << 8 | (script_at < script_end ? *script_at++ : 0);
	return number;
}

/* --- datagrams --- */

static uint8_t byte_of(uint8_t seed, uint32_t at)
{
	return (uint8_t)(seed + at * 7 + (at >> 8));
}

static void names_write(uint8_t *bytes, uint32_t length, const uint32_t *names)
{
	for (uint32_t n = 0; n < 4 && TO_AT + 4 * n + 4 <= length; n++) {
		uint32_t word = rte_cpu_to_le_32(names[n]);
		memcpy(bytes + TO_AT + 4 * n, &word, sizeof(word));
	}
}

static void datagram_write(uint8_t *bytes, uint32_t length, uint8_t seed, const uint32_t *names)
{
	for (uint32_t n = 0; n < length; n++)
		bytes[n] = byte_of(seed, n);
	names_write(bytes, length, names);
}

/* What the kernel hands over. */
struct message {
	uint32_t node, udp_port;
	uint32_t length, part; /* part: of the control message, 0: it has none */
	uint32_t names[4], lies[4];
	uint32_t liar; /* the datagram that has these names */
	uint8_t seed;
	uint8_t tos;
	bool named, whole;
};

static bool sender_right(const struct message *message, const uint32_t *names)
{
	uint32_t index = message->udp_port - range.first;

	return index < range.count && names[2] == message->node &&
	       candidate_fits(range, names[3], index);
}

static void datagram_expect(const struct message *message, uint32_t number, uint32_t length)
{
	const uint32_t *names = number == message->liar ? message->lies : message->names;
	struct expected *one;
	unsigned type = (message->tos & 3) == 3 ? PORT_MARKED : TYPE;

	if (length < NAMES_END || !sender_right(message, names)) {
		errors++;
		return;
	}
	fuzz_assert(expected_count < WAITING);
	one = &expected[(expected_first + expected_count++) % WAITING];
	*one = (struct expected){.length = length, .seed = (uint8_t)(message->seed + number)};
	memcpy(one->names, names, sizeof(one->names));
	memcpy(one->header, port->address, sizeof(port->address));
	candidate_write(one->header + sizeof(port->address), message->node,
		message->udp_port - range.first);
	one->header[12] = (uint8_t)(type >> 8);
	one->header[13] = (uint8_t)type;
}

/* The model of what has to become of a message. */
static void message_expect(const struct message *message)
{
	uint32_t part = message->part;
	uint32_t count = 1;

	if (part > INT32_MAX || part == 0 || part >= message->length)
		part = message->length;
	else
		count = (message->length + part - 1) / part;
	if (!message->named || !message->whole || part > ROOM || count > PARTS) {
		errors++;
		return;
	}
	for (uint32_t n = 0; n < count; n++)
		datagram_expect(message, n, RTE_MIN(part, message->length - n * part));
}

/* Its bytes, in pieces of the length that the kernel tells. */
static void message_write(const struct message *message, uint8_t *bytes)
{
	uint32_t part = message->part == 0 || message->part > message->length ? message->length
									      : message->part;

	for (uint32_t n = 0, at = 0; at < message->length; n++, at += part)
		datagram_write(bytes + at, RTE_MIN(part, message->length - at),
			(uint8_t)(message->seed + n),
			n == message->liar ? message->lies : message->names);
}

/* --- the kernel --- */

static void control_add(
	struct msghdr *to, size_t *used, int level, int type, const void *value, uint32_t bytes)
{
	struct cmsghdr *one = (struct cmsghdr *)(void *)((uint8_t *)to->msg_control + *used);

	fuzz_assert(*used + CMSG_SPACE(bytes) <= to->msg_controllen);
	memset(one, 0, CMSG_SPACE(bytes));
	one->cmsg_level = level;
	one->cmsg_type = type;
	one->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(one), value, bytes);
	*used += CMSG_SPACE(bytes);
}

static void message_draw(uint32_t say, struct message *message)
{
	*message = (struct message){.node = there,
		.udp_port = range.first + candidate_index(range, FAR_PID, say & 7),
		.named = true,
		.whole = true,
		.liar = UINT32_MAX};
	message->seed = (uint8_t)script_number(1);
	message->length = script_number(2);
	message->length = RTE_MIN(message->length, DATAGRAM);
	if (say & SAY_STRANGE)
		message->node = script_number(4);
	if (say & SAY_PORT)
		message->udp_port = script_number(2);
	message->names[0] = here;
	message->names[1] = PID;
	message->names[2] = message->node;
	message->names[3] = FAR_PID;
	memcpy(message->lies, message->names, sizeof(message->lies));
	if (say & SAY_LIE) {
		message->liar = script_number(1);
		message->lies[script_number(1) & 3] = script_number(4);
	}
}

static void control_make(uint32_t say, struct message *message, struct msghdr *to)
{
	size_t used = 0;

	if (say & SAY_JOINED) {
		int part = (int)script_number(4);
		if ((say & SAY_STRANGE) == 0)
			part &= 0xffff;
		message->part = part > 0 ? (uint32_t)part : 0;
		control_add(to, &used, SOL_UDP, UDP_GRO, &part, sizeof(part));
	}
	if (say & SAY_MARK) {
		int class = (int)script_number(1);
		message->tos = (uint8_t) class;
		if (say & SAY_PORT)
			control_add(to, &used, SOL_IPV6, IPV6_TCLASS, &class, sizeof(class));
		else
			control_add(to, &used, SOL_IP, IP_TOS, &message->tos, 1);
	}
	if (say & SAY_LOST) {
		missed = script_number(4);
		control_add(to, &used, SOL_SOCKET, SO_RXQ_OVFL, &missed, sizeof(missed));
	}
	to->msg_controllen = used;
}

static void flags_make(struct message *message, struct msghdr *to)
{
	static const int flags[] = {MSG_TRUNC, MSG_CTRUNC, MSG_TRUNC | MSG_CTRUNC, 0};
	uint32_t which = script_number(1) & 3;

	to->msg_flags = flags[which];
	message->whole = flags[which] == 0;
	message->named = flags[which] != 0;
	if (!message->named)
		to->msg_namelen = 0;
}

/* Writes as much as there is room for. */
static uint32_t scatter(const struct msghdr *to, const uint8_t *bytes, uint32_t length)
{
	uint32_t done = 0;

	for (size_t n = 0; n < to->msg_iovlen && done < length; n++) {
		size_t here_bytes = RTE_MIN(to->msg_iov[n].iov_len, (size_t)(length - done));
		memcpy(to->msg_iov[n].iov_base, bytes + done, here_bytes);
		done += (uint32_t)here_bytes;
	}
	fuzz_assert(done == length);
	return done;
}

/* Returns the message's bytes; -1 with errno: there is none. */
static ssize_t message_make(struct msghdr *to)
{
	static const int refusals[] = {EAGAIN, ECONNREFUSED, EHOSTUNREACH, EPERM, ENOSYS, EINTR};
	static uint8_t bytes[DATAGRAM];
	struct message message;
	uint32_t say;

	errno = EAGAIN;
	if (script_at == script_end)
		return -1;
	say = script_number(1);
	if (say & SAY_NONE) {
		errno = refusals[say % RTE_DIM(refusals)];
		return -1;
	}
	message_draw(say, &message);
	to->msg_flags = 0;
	to->msg_namelen = sizeof(struct sockaddr_in);
	*(struct sockaddr_in *)to->msg_name = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons((uint16_t)message.udp_port),
		.sin_addr.s_addr = htonl(message.node)};
	control_make(say, &message, to);
	if (say & SAY_TRUNCATED)
		flags_make(&message, to);
	message_write(&message, bytes);
	message_expect(&message);
	return scatter(to, bytes, message.length);
}

/* A datagram of the port's that came back. */
static ssize_t error_make(struct msghdr *to)
{
	struct {
		struct sock_extended_err error;
		struct sockaddr_in offender;
	} told = {.error = {.ee_errno = ECONNREFUSED, .ee_origin = SO_EE_ORIGIN_ICMP}};
	uint32_t names[4] = {there, FAR_PID, here, PID}, say, length;
	uint8_t bytes[128];
	size_t used = 0;

	errno = EAGAIN;
	if (script_at == script_end || ((say = script_number(1)) & SAY_NONE) != 0)
		return -1;
	length = RTE_MIN(script_number(1) & 127, (uint32_t)to->msg_iov[0].iov_len);
	if (say & SAY_LIE)
		names[script_number(1) & 3] = script_number(4);
	if (say & SAY_LOST)
		told.error.ee_errno = script_number(1);
	if (say & SAY_MARK)
		told.error.ee_origin = (uint8_t)script_number(1);
	datagram_write(bytes, length, (uint8_t)say, names);
	*(struct sockaddr_in *)to->msg_name = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(say & SAY_PORT ? script_number(2) : range.first + 5u)),
		.sin_addr.s_addr = htonl(say & SAY_STRANGE ? script_number(4) : there)};
	to->msg_namelen = sizeof(struct sockaddr_in);
	if ((say & SAY_JOINED) == 0)
		control_add(to, &used, SOL_IP, IP_RECVERR, &told, sizeof(told));
	to->msg_controllen = used;
	to->msg_flags = MSG_ERRQUEUE;
	return scatter(to, bytes, length);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	(void)fd;
	return flags & MSG_ERRQUEUE ? error_make(message) : message_make(message);
}

int __wrap_recvmmsg(
	int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout);
int __wrap_recvmmsg(
	int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
	(void)fd;
	(void)flags;
	(void)timeout;
	for (unsigned n = 0; n < count; n++) {
		ssize_t bytes = message_make(&messages[n].msg_hdr);
		if (bytes < 0)
			return n > 0 ? (int)n : -1;
		messages[n].msg_len = (unsigned)bytes;
	}
	return (int)count;
}

/* --- the port's owner --- */

static uint32_t name_read(const uint8_t *frame, uint32_t at)
{
	uint32_t word;

	memcpy(&word, frame + FRAME_HEADER + at, sizeof(word));
	return rte_le_to_cpu_32(word);
}

/* What a host refused: it is of this process, for another one. */
static void refusal_check(const struct rte_mbuf *frame, const uint8_t *bytes)
{
	fuzz_assert(frame->pkt_len == FRAME_HEADER + PORT_REFUSAL_BYTES);
	fuzz_assert(candidate_read(bytes + sizeof(port->address)) < range.count);
	fuzz_assert(name_read(bytes, TO_AT) != name_read(bytes, FROM_AT) ||
		    name_read(bytes, TO_AT + 4) != name_read(bytes, FROM_AT + 4));
}

static void frame_check(const struct rte_mbuf *frame)
{
	static uint8_t bytes[ROOM];
	const uint8_t *at = rte_pktmbuf_mtod(frame, const uint8_t *);
	const struct expected *one = &expected[expected_first];

	fuzz_assert(!frame->next && frame->nb_segs == 1 && frame->data_len == frame->pkt_len);
	if (at[12] == PORT_REFUSED >> 8 && at[13] == (PORT_REFUSED & 255)) {
		refusal_check(frame, at);
		return;
	}
	fuzz_assert(expected_count > 0 && frame->pkt_len == FRAME_HEADER + one->length);
	fuzz_assert(memcmp(at, one->header, FRAME_HEADER) == 0);
	datagram_write(bytes, one->length, one->seed, one->names);
	fuzz_assert(memcmp(at + FRAME_HEADER, bytes, one->length) == 0);
	expected_first = (expected_first + 1) % WAITING;
	expected_count--;
}

static uint16_t frames_take(uint16_t most)
{
	struct rte_mbuf *frames[PARTS];
	uint16_t count = port_receive(port, frames, most);

	fuzz_assert(count <= most);
	for (uint16_t n = 0; n < count; n++) {
		frame_check(frames[n]);
		rte_pktmbuf_free(frames[n]);
	}
	return count;
}

static void step(uint32_t what)
{
	if ((what & 7) == 7)
		(void)port->operations->interrupt(port, (what & 8) != 0);
	else
		(void)frames_take((uint16_t)(1 + (what >> 3) % PARTS));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char words[][16] = {"fuzz", "--no-huge", "--no-shconf", "-m", "64", "--no-pci",
		"--no-telemetry", "-l", "0", "--log-level=1"};
	char *arguments[sizeof(words) / sizeof(words[0]) + 1] = {0};
	struct in_addr address;

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		arguments[i] = words[i];
	fuzz_assert(rte_eal_init((int)(sizeof(words) / sizeof(words[0])), arguments) >= 0);
	unsetenv("PTL_UDP_PORTS");
	unsetenv("PTL_ENCAP");
	fuzz_assert(settings_load() == 0);
	/* An address of the loopback interface that only this process has. */
	here = UINT32_C(127) << 24 | ((uint32_t)getpid() << 2 & 0xffffff) | 1;
	there = UINT32_C(0x0a000007);
	address.s_addr = htonl(here);
	inet_ntop(AF_INET, &address, here_name, sizeof(here_name));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct port_counters counters = {0};

	if (size > INPUT_MOST)
		return 0;
	script_at = script_end = data;
	expected_count = 0;
	errors = missed = 0;
	port = udp_open(here_name, 0, 0, PID, false);
	fuzz_assert(port);
	script_end = data + size;
	while (script_at < script_end)
		step(script_number(1));
	for (unsigned n = 0; n < LAST_LOOKS && frames_take(PARTS) > 0; n++)
		;
	fuzz_assert(expected_count == 0);
	port->operations->counters(port, &counters);
	fuzz_assert(counters.errors == errors && counters.missed == missed);
	fuzz_assert(counters.no_mbuf == 0 && counters.buffers == 0);
	port->operations->close(port);
	return 0;
}
