/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.h - a ring of elements in memory that several processes may map: many producers, one
 * consumer. An element has one to four lines; a line is a cache line.
 *
 * A line holds 56 bytes of an element and a word, `sequence`. The word of an element's first line
 * publishes it and says at which position the element ends. So the consumer polls the very line
 * that it reads next, and one line changes hands for an element of one line. The consumer's
 * position, `head`, is read by a producer only when the ring seems full.
 *
 *     producer of n lines                            consumer
 *     tail: p -> e = p + n  (compare-and-swap)
 *     data of slots p to e - 1
 *     is word p - 1 below p? hidden = e
 *     word p = e            (release A)         -->  is word p above p?            (acquire A)
 *     word e - 1 = e, if n > 1                       copies e - p lines
 *     e - head_seen <= count?                   <--  head = e                      (release B)
 *     if not: head_seen = head (acquire B)
 *
 * Lines of an element lie side by side. An element that would reach beyond the ring's end is
 * claimed together with padding, the slots up to that end, and its data begin at slot 0. Producer
 * and consumer both find this out from p and the length (ring_begin()):
 *
 *     slot      count - 2   count - 1  |  0        1        2
 *     position  p           p + 1      |  p + 2    p + 3    e = p + 4
 *     word      e, A        -          |  -        e
 *     data      padding     padding    |  line 0   line 1
 *
 * R1. The data of a slot are written only after head has passed the slot's last element (B). head
 *     only grows, so an older value of it (head_seen) is as good until the ring seems full.
 *
 * R2. A producer that is preempted between claiming and publishing makes only the consumer wait:
 *     its element hides those behind it. The consumer must know when an element whose ring_put()
 *     has returned may be hidden. It is hidden only while the consumer's position is below `hidden`
 *     (ring_settled()). Proof, for an element X at p that is published behind an unpublished
 *     element:
 *
 *   - Let Y be the element before X: it ends at p, so p - 1 is its last line. Y's producer writes
 *     the word of Y's first line, then that of the last one. So when X's producer finds word p - 1
 *     at p, Y was published; when it finds it above p, the slot is in use again and Y was taken.
 *   - When X's producer finds it below p, it raises `hidden` to X's end before it publishes X.
 *   - Otherwise Y itself is published behind an unpublished element, and by induction Y's
 *     producer, or one before it, raised `hidden` above the consumer's position before it
 *     published. Release and acquire of word p - 1 hand that on to X's producer, and A to whoever
 *     sees X.
 *   - The first element behind the unpublished one has found the word before its own below p.
 *
 * A producer that is preempted between the first and the last word hides nothing. The producer of
 * the next element then raises `hidden` without need, until that element is taken.
 *
 * R3. Words only grow. The word of a first line is stored plainly: nobody passes the element
 *     before. The last line's word is written when the element may have been taken already and the
 *     slot be in use again: so it is raised by compare-and-swap, and a greater word stays. A word
 *     that an older element left in a slot is at most the slot's position: no claim is longer than
 *     the ring.
 *
 * R4. There are no pointers, and the consumer's position is its own (struct ring_reader): whatever
 *     a producer writes, or leaves unwritten, the consumer reads within the ring.
 */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_LINE  64              /* bytes of a cache line */
#define RING_BYTES (RING_LINE - 8) /* of an element's line */
#define RING_LINES 4               /* of an element, at most */

struct ring_slot {
	/* where the element ends whose first or last line this is */
	_Alignas(RING_LINE) _Atomic uint64_t sequence;
	uint64_t words[RING_BYTES / 8];
};

struct ring {
	/* producers */
	_Alignas(RING_LINE) _Atomic uint64_t tail; /* the next position to claim */
	_Atomic uint64_t head_seen;
	uint64_t count; /* a power of two */
	/* the consumer, but for producers that were overtaken */
	_Alignas(RING_LINE) _Atomic uint64_t head; /* the next position to take */
	_Atomic uint64_t hidden;                   /* up to here an element may be hidden */
	struct ring_slot slots[];
};

/* The consumer's side, in its own memory. */
struct ring_reader {
	struct ring *ring;
	struct ring_slot *next; /* that of `position` */
	uint64_t position;
	uint64_t mask;
};

/* Bytes of a ring of count lines, a power of two; 0 when it is not one. */
size_t ring_size(uint32_t count);
/* Makes a ring of that many lines in ring_size() zeroed bytes, aligned to a cache line. */
void ring_init(struct ring *ring, uint32_t count);
/* Of a ring that nothing was taken from yet. */
void ring_reader_init(struct ring_reader *reader, struct ring *ring);

/* Puts an element of RING_BYTES bytes; false: the ring is full. Any thread. */
bool ring_put(struct ring *ring, const void *element);
/* Puts an element of 1 to RING_LINES lines, RING_BYTES bytes each. With its padding it must fit:
 * the ring has at least twice as many lines. */
bool ring_put_lines(struct ring *ring, const void *element, unsigned lines);

/* --- the consumer */

/* Is there nothing that can be taken? */
static inline bool ring_empty(const struct ring_reader *reader)
{
	/* A */
	return atomic_load_explicit(&reader->next->sequence, memory_order_acquire) <=
	       reader->position;
}

/* R2. When ring_empty() has been found: true means that there was nothing whose ring_put() had
 * returned. */
static inline bool ring_settled(const struct ring_reader *reader)
{
	return reader->position >=
	       atomic_load_explicit(&reader->ring->hidden, memory_order_relaxed);
}

/* The consumer's position is `end` now; what was before may be overwritten. */
static inline void ring_pass(struct ring_reader *reader, uint64_t end)
{
	reader->position = end;
	reader->next = &reader->ring->slots[end & reader->mask];
	/* Producers mostly put several: the next one comes from their cache meanwhile. */
	__builtin_prefetch(reader->next);
	atomic_store_explicit(&reader->ring->head, end, memory_order_release); /* B */
}

/* ring_take() of what is not one line. */
unsigned ring_take_lines(struct ring_reader *reader, void *element);

/* Takes the oldest element, for which there is room of RING_LINES lines. Returns its number of
 * lines; 0: there is none, or the ring was overwritten. */
static inline unsigned ring_take(struct ring_reader *reader, void *element)
{
	uint64_t end = reader->position + 1;

	/* A */
	if (atomic_load_explicit(&reader->next->sequence, memory_order_acquire) != end)
		return ring_take_lines(reader, element);
	__builtin_memcpy(element, reader->next->words, RING_BYTES);
	ring_pass(reader, end);
	return 1;
}

/* How many lines wait, about: others put meanwhile. */
static inline uint32_t ring_count(const struct ring_reader *reader)
{
	return (uint32_t)(atomic_load_explicit(&reader->ring->tail, memory_order_relaxed) -
			  reader->position);
}

#endif
