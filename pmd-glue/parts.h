/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h - receives datagrams from a UDP socket into frame buffers. The kernel may hand over
 * several datagrams of one sender and one length as one message (UDP_GRO); here they are separate
 * again.
 *
 *      single datagrams    up to PARTS_MESSAGES a call, a buffer for each
 *      joined datagrams    one message a call: its bytes are scattered over PARTS buffers, each as
 *                          long as the last joined datagrams were, so that nothing is copied
 *
 * Each message has a spare of 64 KiB behind its buffers for what does not fit, which is copied.
 *
 * I1. A message that is taken has all its bytes: what does not fit anywhere is dropped and counted.
 * I2. A call is made only when every buffer that it may fill is there; else messages stay in the
 *     socket.
 */
#ifndef PMD_GLUE_PARTS_H
#define PMD_GLUE_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <pmd-glue/nodes.h>

#define PARTS          64u /* joined datagrams in a message; the kernel's limit for sending */
#define PARTS_MESSAGES 8u
#define PARTS_BEFORE   14u /* bytes that are free before a datagram in its buffer */
#define PARTS_CONTROL  128u

struct rte_mbuf;
struct rte_mempool;

/* Of a message. */
struct parts_origin {
	union udp_name from;
	bool marked; /* it met congestion */
};

/* A socket that is asked for messages. */
struct parts_source {
	int socket;
	unsigned asked;  /* messages that the next call asks for */
	unsigned full;   /* calls in a row that brought all that they asked for */
	uint32_t missed; /* datagrams that it had no room for, as the kernel counts them */
};

struct parts {
	struct rte_mempool *pool;
	uint32_t room;      /* bytes of a datagram that a buffer holds */
	uint32_t expected;  /* bytes of each joined datagram; 0: single ones are expected */
	uint32_t scattered; /* what was expected when the last call was made */
	unsigned singles;   /* messages in a row that were single datagrams */
	bool alone;         /* the system refuses recvmmsg() */
	bool joined;        /* the last call brought joined datagrams */
	unsigned count;     /* messages of the last call, */
	unsigned at;        /* the next of which is this one */
	uint64_t errors, no_mbuf;
	struct parts_source *source; /* of the last call */
	struct rte_mbuf *held[PARTS];
	struct mmsghdr messages[PARTS_MESSAGES];
	union udp_name names[PARTS_MESSAGES];
	struct iovec pieces[PARTS + 2 * PARTS_MESSAGES];
	_Alignas(struct cmsghdr) uint8_t control[PARTS_MESSAGES][PARTS_CONTROL];
	uint8_t *spares; /* of all messages */
};

/* room: see above; the pool's buffers have it behind headroom and PARTS_BEFORE. Returns false:
 * there is no memory. */
bool parts_init(struct parts *parts, struct rte_mempool *pool, uint32_t room);
void parts_end(struct parts *parts);

/* Asks a socket once. Returns how many messages came; 0 with errno if none did. */
unsigned parts_look(struct parts *parts, struct parts_source *source);

/* Makes frames of the next message that came: PARTS_BEFORE bytes, which the caller fills, and a
 * datagram. Returns how many, at most PARTS; 0: it was dropped, or there is none left. */
unsigned parts_take(struct parts *parts, struct rte_mbuf **frames, struct parts_origin *origin);

/* Buffers that wait for datagrams. */
unsigned parts_held(const struct parts *parts);

/* More messages probably wait in the socket: the last call brought joined ones, or as many as it
 * could. */
static inline bool parts_more(const struct parts *parts)
{
	return parts->joined || parts->count == PARTS_MESSAGES;
}

/* Messages came that have not been taken. */
static inline bool parts_wait(const struct parts *parts)
{
	return parts->at < parts->count;
}

#endif
