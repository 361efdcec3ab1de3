/* SPDX-License-Identifier: BSD-3-Clause */
/* pair.h - one end of the memory that two processes of a machine share, through which they send
 * frames to each other. Owned by one poll core.
 *
 * In each direction there are 256 slots in a ring and up to 2 MiB of bulk. A slot begins with a
 * word that publishes a frame. A frame has a head and, if it was sent in two segments, a tail:
 *
 *      slot   [ word | head up to 248 bytes ]
 *      bulk   [ longer head ][ tail ]            one behind the other, each from a cache line on
 *
 *      the sender writes the slots and the bulk; the receiver writes a line: slots taken, bulk
 *      freed, the CPU it is on
 *
 * P1. The peer is hostile: it may write anything anywhere at any moment. What a process needs to
 *     know of its own positions lies in its private memory. A word or a position of the peer's is
 *     read once and checked; an impossible one ends the pair (pair_sound()). No address, offset or
 *     index comes from the peer: both ends compute where a frame lies from the lengths of all
 *     frames so far.
 * P2. A frame whose word is not there does not exist. So a process that ends in the middle of
 *     writing a frame leaves nothing behind, and neither end ever waits for the other.
 * P3. A word says in which lap around the ring it was written, so no slot has to be cleared. It
 *     also says whether the frame lies in the bulk behind the frame before it, or at the beginning.
 * P4. A head is copied before anybody looks at it. A tail stays in the shared memory, where the
 *     peer may change it while it is read: a reader must expect nothing of its bytes, least of all
 *     to read the same ones twice.
 * P5. Slots are given back once their heads are copied, bulk in order: not before all earlier tails
 *     are freed. When too many tails are held, further ones are copied out. A receiver must free or
 *     copy out each frame with a tail without waiting for other frames from the same peer.
 * P6. The sender sees to it that bulk has memory before it writes there for the first time, because
 *     a page that cannot be had would end the process by SIGBUS (vm.overcommit_memory of 2).
 * P7. The sender uses a window of the bulk, from its beginning on, which has room for two frames of
 *     1,500 bytes at least and for one frame of any length. The window grows while more than a
 *     quarter of it is in flight, and shrinks when that was not so for a while (pair_rest()). The
 *     windows of pairs that share a budget have so many bytes together, and none grows to more than
 *     half of what the others leave. What is needed for a single frame is given in any case.
 * P8. The sender copies long tails by the stores that are faster for where the two processes run
 *     now, and measures that itself (base/stores.h).
 * P9. A frame of one piece that a slot holds leaves out its Ethernet header, and its word says so,
 *     if that is the same as that of the last such frame that had one. So an 8-byte put lies in two
 *     cache lines instead of three. Each end has that header in its private memory.
 */
#ifndef PMD_GLUE_PAIR_H
#define PMD_GLUE_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAIR_SLOTS     256u /* frames that a direction holds */
#define PAIR_SLOT_ROOM 248u /* bytes of a head that lies in its slot */
#define PAIR_BULK      (2u << 20)
#define PAIR_WINDOW    (16u << 10) /* of the bulk, at first (P7) */
#define PAIR_HEAD_MAX  2048u       /* bytes of a head before a tail */
#define PAIR_TAILS     64u         /* that a receiver may hold */

struct rte_mbuf;
struct rte_mempool;
struct pair;

/* Of pairs of one poll core (P7). */
struct pair_budget {
	size_t most; /* bytes that their windows may have together */
	size_t used;
};

struct pair_counters {
	uint64_t sent;     /* frames */
	uint64_t received; /* frames */
	uint64_t bytes_sent;
	uint64_t bytes_streamed; /* of these, past the caches (base/stores.h) */
	uint64_t bytes_received;
	uint64_t memory; /* bytes of the shared memory that have been used, now */
	uint64_t copied; /* received frames whose tails were copied out (P5) */
	uint64_t full;   /* calls of pair_transmit() that found too little room */
	/* frames to send that were too long or too short, or whose memory had gone */
	uint64_t errors;
	uint64_t no_mbuf; /* calls of pair_receive() that found no buffer for a frame */
};

/* Bytes of the memory of a pair, both directions: a multiple of the page. */
size_t pair_bytes(void);
/* Of these, the first ones that must have memory from the beginning. The rest gets memory as frames
 * first reach it: a pair that has none to give has no room (P6). */
size_t pair_bytes_touched(void);
/* One end of a pair. memory: mapped MAP_SHARED, pair_bytes() long, zero when it was made; the pair
 * unmaps it. end: 0 for the process that made the memory, 1 for the other one. pool: its buffers
 * hold frame_size bytes behind the headroom. frame_size: the same at both ends, FRAME_MIN to
 * FRAME_MAX. budget: NULL for none. NULL: out of memory, and the mapping stays the caller's. */
struct pair *pair_open(void *memory, unsigned end, struct rte_mempool *pool, uint32_t frame_size,
	struct pair_budget *budget);
/* From now on each received frame is one segment, copied out of the shared memory as a whole, which
 * the peer cannot change any more. */
void pair_set_whole(struct pair *pair);
/* Takes frames from the front while there is room, and returns how many; they are copied and
 * freed when it returns, the rest stay the caller's. Frames that are too long or too short are
 * dropped and counted. */
uint16_t pair_transmit(struct pair *pair, struct rte_mbuf **frames, uint16_t count);
/* Are more than so many quarters (1 to 3) of its slots free, and of its bulk? */
bool pair_leaves(struct pair *pair, unsigned quarters);
/* Writes up to count received frames to frames and returns how many. Each has one segment, or two,
 * of which the second is a tail (P4, P5). The pair's owner frees them. */
uint16_t pair_receive(struct pair *pair, struct rte_mbuf **frames, uint16_t count);
/* Is a frame there, or has the peer broken the rules? One look, which the peer does not see. */
bool pair_waits(const struct pair *pair);
/* The owner looks for frames on this CPU, by sched_getcpu(). */
void pair_set_cpu(struct pair *pair, unsigned cpu);
/* Does the peer, as far as it has said so lately, look for frames on this one? */
bool pair_is_on(const struct pair *pair, unsigned cpu);
/* Which one that is; -1: it has not said. */
int pair_cpu(const struct pair *pair);
/* Called by the owner now and then: gives memory back that pair_transmit() has not needed since the
 * last call (P7): half of it, or all if no frame was sent. */
void pair_rest(struct pair *pair);
/* Has the peer kept to the rules (P1)? Once it has not, the answer is false for good, and the pair
 * neither takes nor gives frames. */
bool pair_sound(const struct pair *pair);
/* Sends the frames again that were sent through `from`, of which the peer has taken none, through
 * `to`, which has sent nothing yet: two processes have connected to each other at once, and `from`
 * is to be closed. */
void pair_move(struct pair *from, struct pair *to);
/* Ends the pair. The memory is unmapped when no received frame refers to it any more. */
void pair_close(struct pair *pair);
struct pair_counters pair_count(const struct pair *pair);

#endif
