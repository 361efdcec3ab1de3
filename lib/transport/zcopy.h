/* SPDX-License-Identifier: BSD-3-Clause */
/* zcopy.h - frames that refer to the application's memory instead of having a copy of it. One poll
 * core's, but for the references themselves, which are dropped when a frame is freed.
 *
 *      head: outer header, transport header, records, the last record's header      (the pool's
 *                                                                                   buffer)
 *        `-- tail: all data of that record                                          (the message's
 *                                                                                   memory)
 *
 * L1. A message that frames refer to has a struct zcopy. Its count is one for the message and one
 *     for each tail; the upcall message_done() waits until it is back at one: nobody reads the
 *     memory after that.
 * L2. Each holder of a frame lets go of it by itself: a port when it has sent it, a peer in this
 *     process when it has placed it, this transport when it is acknowledged. When a transport
 *     closes, the port is asked to let go (recall()).
 * L3. Only a port that is known to gather (port->gathers) is given frames in two pieces.
 * L4. Memory that may not be there is referred to only by frames for a port that is guarded against
 *     that (port->guards), and is looked at just before a tail refers to it. If it goes after that,
 *     the frame is lost, and is voided when it is made again (outline.h, O2).
 */
#ifndef TRANSPORT_ZCOPY_H
#define TRANSPORT_ZCOPY_H

#include <stdbool.h>
#include <stdint.h>
#include <rte_mbuf.h>

#include <transport/internal.h>

struct zcopy {
	struct rte_mbuf_ext_shared_info shared;
	/* while only others' references keep the message */
	struct message *message;
	enum transport_fail why;
	struct zcopy *next;
};

void zcopy_init(struct transport *transport);
/* Returns an mbuf that is the message's next bytes, which are not 0. NULL: they must be copied,
 * because they do not lie in one piece of memory, or for lack of an mbuf or a struct zcopy. */
struct rte_mbuf *zcopy_tail(struct transport *transport, struct message *message, uint32_t bytes);
/* Makes one frame of the two; the head has `length` bytes. */
void zcopy_join(struct rte_mbuf *head, struct rte_mbuf *tail);
/* Are these the two pieces of a frame that a transport of this process made? */
bool zcopy_made(const struct rte_mbuf *mbuf);
/* The bytes of a frame of two pieces in one, with the room before it that the first has. NULL: no
 * buffer. */
struct rte_mbuf *zcopy_copy(struct rte_mempool *pool, const struct rte_mbuf *mbuf);

/* T2 for a message with a struct zcopy, now or when nobody refers to it any more. */
void zcopy_done(struct transport *transport, struct message *message, enum transport_fail why);
/* Ends those that wait and are free now. */
void zcopy_run(struct transport *transport);
/* Closing: waits for all. */
void zcopy_await(struct transport *transport);

/* T2 */
static inline void message_tell(
	struct transport *transport, struct message *message, enum transport_fail why)
{
	transport->messages--;
	if (__builtin_expect(message->awaited, 0)) {
		transport->awaited--;
		transport->lost += why == TRANSPORT_UNREACHABLE || why == TRANSPORT_ABSENT ||
				   why == TRANSPORT_DEAD;
	}
	transport->upcalls.message_done(transport->upcalls.context, message, why);
}

/* T2, also when frames may still refer to the message's memory. */
static inline void message_done(
	struct transport *transport, struct message *message, enum transport_fail why)
{
	if (message->zcopy) {
		zcopy_done(transport, message, why);
		return;
	}
	message_tell(transport, message, why);
}

#endif
