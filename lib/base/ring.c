/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.c - the producers' side, and elements of several lines; see ring.h. */
#include <base/ring.h>

#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

size_t ring_size(uint32_t count)
{
	if (count == 0 || (count & (count - 1)) != 0)
		return 0;
	return sizeof(struct ring) + count * sizeof(struct ring_slot);
}

void ring_init(struct ring *ring, uint32_t count)
{
	ring->count = count;
}

void ring_reader_init(struct ring_reader *reader, struct ring *ring)
{
	*reader = (struct ring_reader){
		.ring = ring, .next = &ring->slots[0], .mask = ring->count - 1};
}

/* Where the data of an element begin that is claimed at position: at slot 0, behind padding, when
 * so many lines reach beyond the ring's end. */
static ALWAYS_INLINE uint64_t ring_begin(uint64_t mask, uint64_t position, uint64_t lines)
{
	uint64_t left = mask + 1 - (position & mask);

	return lines > 1 && lines > left ? position + left : position;
}

/* Positions are compared with a sign: a producer that was preempted may hold one that head has
 * passed long ago, and then fails to claim it. */
static bool is_room(const struct ring *ring, uint64_t end, uint64_t head)
{
	return (int64_t)(end - head) <= (int64_t)ring->count;
}

/* R1. Other producers must see the slots free when they see head_seen: so that is handed on like
 * head. */
static ALWAYS_INLINE bool ring_has_room(struct ring *ring, uint64_t end)
{
	uint64_t head;

	if (is_room(ring, end, atomic_load_explicit(&ring->head_seen, memory_order_acquire)))
		return true;
	head = atomic_load_explicit(&ring->head, memory_order_acquire); /* B */
	atomic_store_explicit(&ring->head_seen, head, memory_order_release);
	return is_room(ring, end, head);
}

/* The greatest of what producers write. */
static void word_raise(_Atomic uint64_t *word, uint64_t value)
{
	uint64_t found = atomic_load_explicit(word, memory_order_relaxed);

	while (found < value && !atomic_compare_exchange_weak_explicit(word, &found, value,
					memory_order_release, memory_order_relaxed))
		;
}

/* With lines a constant 1, all that padding and further lines need falls away. */
static ALWAYS_INLINE bool element_put(struct ring *ring, const void *element, unsigned lines)
{
	uint64_t position = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t mask = ring->count - 1;
	uint64_t begin, end;
	struct ring_slot *slot;

	do {
		begin = ring_begin(mask, position, lines);
		end = begin + lines;
		if (!ring_has_room(ring, end))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&ring->tail, &position, end, memory_order_relaxed, memory_order_relaxed));
	slot = &ring->slots[position & mask];
	memcpy(lines == 1 ? slot->words : ring->slots[begin & mask].words, element, RING_BYTES);
	for (unsigned i = 1; i < lines; i++)
		memcpy(ring->slots[(begin + i) & mask].words,
			(const uint8_t *)element + (size_t)i * RING_BYTES, RING_BYTES);
	/* R2. Acquire: what hides the element before is seen by a thread that sees this one. */
	if (atomic_load_explicit(
		    &ring->slots[(position - 1) & mask].sequence, memory_order_acquire) < position)
		word_raise(&ring->hidden, end);
	atomic_store_explicit(&slot->sequence, end, memory_order_release); /* A */
	if (lines > 1)
		word_raise(&ring->slots[(end - 1) & mask].sequence, end); /* R3 */
	return true;
}

bool ring_put(struct ring *ring, const void *element)
{
	return element_put(ring, element, 1);
}

bool ring_put_lines(struct ring *ring, const void *element, unsigned lines)
{
	return element_put(ring, element, lines);
}

unsigned ring_take_lines(struct ring_reader *reader, void *element)
{
	uint64_t end = atomic_load_explicit(&reader->next->sequence, memory_order_acquire); /* A */
	uint64_t begin;

	if (end <= reader->position)
		return 0;
	begin = ring_begin(reader->mask, reader->position, end - reader->position);
	if (end - begin > RING_LINES)
		return 0; /* R4: no producer that keeps to the rules writes this */
	for (uint64_t i = 0; i < end - begin; i++)
		memcpy((uint8_t *)element + i * RING_BYTES,
			reader->ring->slots[(begin + i) & reader->mask].words, RING_BYTES);
	ring_pass(reader, end);
	return (unsigned)(end - begin);
}
