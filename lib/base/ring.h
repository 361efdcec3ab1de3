/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.h - a ring of small elements in memory that several processes may map: many producers, one
 * consumer, a cache line an element.
 *
 * An element lies in one line with the word that publishes it, so a line changes hands for each
 * element and nothing else does: the consumer polls the very line, and says only now and then how
 * far it is.
 *
 *     producers                                      consumer
 *     tail: p -> p + 1      (compare-and-swap)
 *     words of slot p
 *     is slot p - 1 written? no: hidden = p + 1
 *     slot p: sequence = p + 1      (release A)  --> slot p: sequence == p + 1?    (acquire A)
 *                                                    copies the words
 *     p - head_seen < count?                     <-- head = p + 1                  (release B)
 *     if not: head_seen = head      (acquire B)
 *
 * R1. A slot is written only after head has passed its last element (B). head only grows, so one
 * that was seen before is as good
 *     until the ring seems full (head_seen).
 * R2. A producer that is preempted between claiming a slot and publishing it makes nobody wait but
 * the consumer, whom it hides the
 *     later elements from. A producer that finds the slot before its own unwritten says so (hidden)
 *     before it publishes. So the consumer knows when elements whose ring_put() has returned may be
 *     hidden: while its position has not reached `hidden` (ring_settled()). By induction over a run
 *     of published slots: the first of them, which follows the unwritten one, has said so, and each
 *     later producer saw its predecessor's word or said so itself.
 * R3. There are no pointers, and the consumer's position is its own (struct ring_reader): whatever
 * a producer writes, or leaves
 *     unwritten, the consumer reads within the ring.
 */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_LINE  64              /* bytes of a cache line */
#define RING_BYTES (RING_LINE - 8) /* of an element */

struct ring_slot {
	/* position + 1 of the element that it holds */
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

/* Bytes of a ring of count elements, a power of two; 0 when it is not one. */
size_t ring_size(uint32_t count);
/* Makes a ring of that many elements in ring_size() zeroed bytes, aligned to a cache line. */
void ring_init(struct ring *ring, uint32_t count);
/* Of a ring that nothing was taken from yet. */
void ring_reader_init(struct ring_reader *reader, struct ring *ring);

/* Puts an element of RING_BYTES bytes; false: the ring is full. Any thread. */
bool ring_put(struct ring *ring, const void *element);

/* --- the consumer */

/* Is there nothing that can be taken? */
static inline bool ring_empty(const struct ring_reader *reader)
{
	/* A */
	return atomic_load_explicit(&reader->next->sequence, memory_order_acquire) !=
	       reader->position + 1;
}

/* R2. When ring_empty() has been found: true means that there was nothing whose ring_put() had
 * returned. */
static inline bool ring_settled(const struct ring_reader *reader)
{
	return reader->position >=
	       atomic_load_explicit(&reader->ring->hidden, memory_order_relaxed);
}

/* Takes the oldest element; false: there is none. */
static inline bool ring_take(struct ring_reader *reader, void *element)
{
	if (ring_empty(reader))
		return false;
	__builtin_memcpy(element, reader->next->words, RING_BYTES);
	reader->position++;
	reader->next = &reader->ring->slots[reader->position & reader->mask];
	/* Producers mostly put several: the next one comes from their cache meanwhile. */
	__builtin_prefetch(reader->next);
	atomic_store_explicit(&reader->ring->head, reader->position, memory_order_release); /* B */
	return true;
}

/* How many elements wait, about: others put meanwhile. */
static inline uint32_t ring_count(const struct ring_reader *reader)
{
	return (uint32_t)(atomic_load_explicit(&reader->ring->tail, memory_order_relaxed) -
			  reader->position);
}

#endif
