/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.c - see parts.h. */
#include <pmd-glue/parts.h>

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <rte_mbuf.h>

#define SPARE    65536u
#define SPARES   PARTS_MESSAGES
#define CALM     64u /* single datagrams in a row after which joined ones are not expected */
#define ECN_BITS 3
#define ECN_MET  3

static_assert(PARTS_CONTROL >= 3 * CMSG_SPACE(sizeof(int)), "all that the kernel tells");

bool parts_init(struct parts *parts, struct rte_mempool *pool, uint32_t room)
{
	*parts = (struct parts){.pool = pool, .room = room};
	parts->spares = malloc((size_t)SPARE * SPARES);
	return parts->spares != NULL;
}

void parts_end(struct parts *parts)
{
	for (unsigned n = 0; n < PARTS; n++)
		rte_pktmbuf_free(parts->held[n]);
	free(parts->spares);
}

unsigned parts_held(const struct parts *parts)
{
	unsigned count = 0;

	for (unsigned n = 0; n < PARTS; n++)
		count += parts->held[n] != NULL;
	return count;
}

/* --- asking */

/* I2. */
static bool held_fill(struct parts *parts, unsigned count)
{
	for (unsigned n = 0; n < count; n++) {
		if (parts->held[n])
			continue;
		parts->held[n] = rte_pktmbuf_alloc(parts->pool);
		if (!parts->held[n]) {
			parts->no_mbuf++;
			return false;
		}
	}
	return true;
}

/* Message n has `count` buffers from the n-th on, of so many bytes each; returns the next piece. */
static struct iovec *message_make(
	struct parts *parts, unsigned n, struct iovec *piece, unsigned count, uint32_t bytes)
{
	struct msghdr *message = &parts->messages[n].msg_hdr;

	*message = (struct msghdr){.msg_name = &parts->names[n],
		.msg_namelen = sizeof(parts->names[n]),
		.msg_iov = piece,
		.msg_iovlen = count + 1,
		.msg_control = parts->control[n],
		.msg_controllen = PARTS_CONTROL};
	for (unsigned m = 0; m < count; m++)
		*piece++ = (struct iovec){
			rte_pktmbuf_mtod_offset(parts->held[n + m], void *, PARTS_BEFORE), bytes};
	*piece++ = (struct iovec){parts->spares + (size_t)n * SPARE, SPARE};
	return piece;
}

/* Two calls in a row that brought all they asked for: the next ones ask for twice as many. */
static void asked_adapt(struct parts_source *source, bool alone, unsigned count)
{
	if (alone || count < source->asked) {
		source->full = 0;
		if (count == 0 || alone)
			source->asked = 1;
	} else if (++source->full >= 2) {
		source->full = 0;
		source->asked = RTE_MIN(2 * source->asked, PARTS_MESSAGES);
	}
}

/* A system that refuses recvmmsg() as such is not asked for it again. */
static int messages_receive(struct parts *parts, int socket, unsigned asked)
{
	ssize_t bytes;
	int count;

	if (asked > 1) {
		count = recvmmsg(socket, parts->messages, asked, MSG_DONTWAIT, NULL);
		if (count >= 0 || (errno != ENOSYS && errno != EPERM))
			return count;
		parts->alone = true;
	}
	bytes = recvmsg(socket, &parts->messages[0].msg_hdr, MSG_DONTWAIT);
	if (bytes < 0)
		return -1;
	parts->messages[0].msg_len = (unsigned)bytes;
	return 1;
}

unsigned parts_look(struct parts *parts, struct parts_source *source)
{
	struct iovec *piece = parts->pieces;
	unsigned asked;
	int count;

	source->asked = RTE_MAX(source->asked, 1u);
	asked = parts->expected != 0 ? 1 : source->asked;
	parts->source = source;
	parts->at = parts->count = 0;
	parts->joined = false;
	parts->scattered = parts->expected;
	if (!held_fill(parts, parts->expected != 0 ? PARTS : asked)) {
		errno = ENOBUFS;
		return 0;
	}
	if (parts->expected != 0)
		(void)message_make(parts, 0, piece, PARTS, parts->expected);
	else
		for (unsigned n = 0; n < asked; n++)
			piece = message_make(parts, n, piece, 1, parts->room);
	count = messages_receive(parts, source->socket, asked);
	if (parts->expected == 0)
		asked_adapt(source, parts->alone, count < 0 ? 0 : (unsigned)count);
	if (count <= 0)
		return 0;
	parts->count = (unsigned)count;
	return parts->count;
}

/* --- taking */

/* What the kernel says beside a message: the length of its parts (0: it is one datagram), marks and
 * losses. */
static uint32_t control_read(struct parts *parts, struct msghdr *message, bool *marked)
{
	uint32_t part = 0;

	*marked = false;
	for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
		if (one->cmsg_level == SOL_UDP && one->cmsg_type == UDP_GRO) {
			int length;
			memcpy(&length, CMSG_DATA(one), sizeof(length));
			part = length > 0 ? (uint32_t)length : 0;
		} else if (one->cmsg_level == SOL_IP && one->cmsg_type == IP_TOS) {
			*marked = (*CMSG_DATA(one) & ECN_BITS) == ECN_MET;
		} else if (one->cmsg_level == SOL_IPV6 && one->cmsg_type == IPV6_TCLASS) {
			int class;
			memcpy(&class, CMSG_DATA(one), sizeof(class));
			*marked = (class & ECN_BITS) == ECN_MET;
		} else if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&parts->source->missed, CMSG_DATA(one),
				sizeof(parts->source->missed));
		}
	}
	return part;
}

/* Copies up to `bytes` of a message from byte `from` on. */
static void message_copy(const struct msghdr *message, uint32_t from, uint32_t bytes, uint8_t *to)
{
	for (size_t n = 0; bytes > 0 && n < message->msg_iovlen; n++) {
		const struct iovec *piece = &message->msg_iov[n];
		uint32_t has = (uint32_t)piece->iov_len;

		if (from >= has) {
			from -= has;
			continue;
		}
		has = RTE_MIN(has - from, bytes);
		memcpy(to, (const uint8_t *)piece->iov_base + from, has);
		to += has;
		bytes -= has;
		from = 0;
	}
}

static void frame_finish(struct rte_mbuf *frame, uint32_t bytes)
{
	frame->data_len = (uint16_t)(PARTS_BEFORE + bytes);
	frame->pkt_len = PARTS_BEFORE + bytes;
}

static unsigned message_drop(struct parts *parts)
{
	parts->errors++;
	return 0;
}

/* One datagram, whose start lies in the message's first buffer. */
static unsigned single_take(
	struct parts *parts, unsigned n, uint32_t length, struct rte_mbuf **frames)
{
	const struct msghdr *message = &parts->messages[n].msg_hdr;
	uint32_t here = (uint32_t)message->msg_iov[0].iov_len;
	struct rte_mbuf *frame = parts->held[n];

	if (length > parts->room)
		return message_drop(parts);
	if (length > here)
		message_copy(message, here, length - here,
			rte_pktmbuf_mtod_offset(frame, uint8_t *, PARTS_BEFORE + here));
	frame_finish(frame, length);
	frames[0] = frame;
	parts->held[n] = NULL;
	if (++parts->singles >= CALM)
		parts->expected = 0;
	return 1;
}

/* Each part lies in a buffer of its own. */
static unsigned parts_here(
	struct parts *parts, uint32_t length, unsigned count, struct rte_mbuf **frames)
{
	for (unsigned n = 0; n < count; n++) {
		uint32_t bytes = RTE_MIN(length, parts->scattered);

		frames[n] = parts->held[n];
		parts->held[n] = NULL;
		frame_finish(frames[n], bytes);
		length -= bytes;
	}
	return count;
}

static unsigned parts_copy(struct parts *parts, const struct msghdr *message, uint32_t length,
	uint32_t part, unsigned count, struct rte_mbuf **frames)
{
	if (rte_pktmbuf_alloc_bulk(parts->pool, frames, count) != 0) {
		parts->no_mbuf++;
		return 0;
	}
	for (unsigned n = 0; n < count; n++) {
		uint32_t bytes = RTE_MIN(length - n * part, part);

		message_copy(message, n * part, bytes,
			rte_pktmbuf_mtod_offset(frames[n], uint8_t *, PARTS_BEFORE));
		frame_finish(frames[n], bytes);
	}
	return count;
}

unsigned parts_take(struct parts *parts, struct rte_mbuf **frames, struct parts_origin *origin)
{
	unsigned n = parts->at, count;
	struct msghdr *message = &parts->messages[n].msg_hdr;
	uint32_t length, part;

	if (!parts_wait(parts))
		return 0;
	parts->at++;
	length = parts->messages[n].msg_len;
	part = control_read(parts, message, &origin->marked);
	if ((message->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
		message->msg_namelen < sizeof(origin->from.ip4))
		return message_drop(parts);
	origin->from = parts->names[n];
	if (part == 0 || part >= length)
		return single_take(parts, n, length, frames);
	count = (length + part - 1) / part;
	if (part > parts->room || count > PARTS)
		return message_drop(parts);
	parts->joined = true;
	parts->singles = 0;
	if (part == parts->scattered)
		return parts_here(parts, length, count, frames);
	parts->expected = part;
	return parts_copy(parts, message, length, part, count, frames);
}
