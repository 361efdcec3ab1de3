/* mailbox.h - frames from several poll cores to one: a ring of pointers, many producers, one consumer.
 *
 *     producers                                           consumer
 *     tail: p -> p + n      (compare-and-swap)
 *     slots p ... p + n - 1 = frames   (release A)  -->   slot p is not NULL?             (acquire A)
 *                                                         takes the frame, slot p = NULL
 *     p + n - head_seen <= size?                    <--   head = p + 1                    (release B)
 *     if not: head_seen = head      (acquire B)
 *
 * M1. A slot is NULL but for the time between its producer's store and its consumer's. It is written only after head has
 *     passed its last frame (B). head only grows, so one that was seen before is as good until the box seems full.
 * M2. The consumer looks at one line, that of the next slot, and producers at none that the consumer writes but that line, until the
 *     box seems full.
 * M3. A producer that is preempted between claiming and writing makes no other one wait; it hides later frames from the
 *     consumer meanwhile.
 */
#ifndef GLUE_MAILBOX_H
#define GLUE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MAILBOX_FRAMES 1024u /* a power of two */
#define MAILBOX_LINE   64

struct rte_mbuf;

/* Zeroed, it is empty. */
struct mailbox {
	/* producers */
	_Alignas(MAILBOX_LINE) _Atomic uint64_t tail; /* the next position to claim */
	_Atomic uint64_t head_seen;
	/* the consumer */
	_Alignas(MAILBOX_LINE) _Atomic uint64_t head; /* the next position to take */
	_Alignas(MAILBOX_LINE) _Atomic(struct rte_mbuf *) slots[MAILBOX_FRAMES];
};

/* How many of count frames there is room for at a position. It is compared with a sign: a producer that was preempted may hold one
 * that head has passed long ago, and then fails to claim it. */
static inline unsigned mailbox_fit(uint64_t position, uint64_t head, unsigned count)
{
	int64_t room = (int64_t)MAILBOX_FRAMES - (int64_t)(position - head);

	return room >= (int64_t)count ? count : (unsigned)(room < 0 ? 0 : room);
}

/* The same by what is known of head, and anew if that is not enough. Other producers must see the slots free when they see head_seen:
 * so that is handed on like head. */
static inline unsigned mailbox_room(struct mailbox *mailbox, uint64_t position, unsigned count)
{
	uint64_t head = atomic_load_explicit(&mailbox->head_seen, memory_order_acquire);

	if (mailbox_fit(position, head, count) == count)
		return count;
	head = atomic_load_explicit(&mailbox->head, memory_order_acquire); /* B */
	atomic_store_explicit(&mailbox->head_seen, head, memory_order_release);
	return mailbox_fit(position, head, count);
}

/* Puts frames in, from the first on; returns how many there was room for. Any thread. */
static inline unsigned mailbox_put(struct mailbox *mailbox, struct rte_mbuf **frames, unsigned count)
{
	uint64_t position = atomic_load_explicit(&mailbox->tail, memory_order_relaxed);
	unsigned fit, i;

	do {
		fit = mailbox_room(mailbox, position, count);
		if (fit == 0)
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(&mailbox->tail, &position, position + fit,
		memory_order_relaxed, memory_order_relaxed));
	for (i = 0; i < fit; i++)
		atomic_store_explicit(&mailbox->slots[(position + i) % MAILBOX_FRAMES], frames[i],
			memory_order_release); /* A */
	return fit;
}

/* Takes up to count frames; returns how many. The consumer. */
static inline unsigned mailbox_take(struct mailbox *mailbox, struct rte_mbuf **frames, unsigned count)
{
	uint64_t position = atomic_load_explicit(&mailbox->head, memory_order_relaxed);
	unsigned taken = 0;

	while (taken < count) {
		_Atomic(struct rte_mbuf *) *slot =
			&mailbox->slots[(position + taken) % MAILBOX_FRAMES];
		struct rte_mbuf *frame = atomic_load_explicit(slot, memory_order_acquire); /* A */

		if (!frame)
			break;
		atomic_store_explicit(slot, NULL, memory_order_relaxed);
		frames[taken++] = frame;
	}
	if (taken > 0)
		atomic_store_explicit(&mailbox->head, position + taken, memory_order_release); /* B */
	return taken;
}

#endif
