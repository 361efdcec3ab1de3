/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.c - the producers' side; see ring.h. */
#include <base/ring.h>

#include <string.h>

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

/* Positions are compared with a sign: a producer that was preempted may hold one that head has
 * passed long ago, and then fails to claim it. */
static bool is_room(const struct ring *ring, uint64_t position, uint64_t head)
{
	return (int64_t)(position - head) < (int64_t)ring->count;
}

/* R1. Other producers must see the slots free when they see head_seen: so that is handed on like
 * head. */
static bool ring_has_room(struct ring *ring, uint64_t position)
{
	uint64_t head;

	if (is_room(ring, position, atomic_load_explicit(&ring->head_seen, memory_order_acquire)))
		return true;
	head = atomic_load_explicit(&ring->head, memory_order_acquire); /* B */
	atomic_store_explicit(&ring->head_seen, head, memory_order_release);
	return is_room(ring, position, head);
}

/* The greatest of what producers say. Relaxed: whoever publishes afterwards hands it on with A. */
static void ring_hide(struct ring *ring, uint64_t end)
{
	uint64_t hidden = atomic_load_explicit(&ring->hidden, memory_order_relaxed);

	while (hidden < end && !atomic_compare_exchange_weak_explicit(&ring->hidden, &hidden, end,
				       memory_order_relaxed, memory_order_relaxed))
		;
}

bool ring_put(struct ring *ring, const void *element)
{
	uint64_t position = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t mask = ring->count - 1;
	struct ring_slot *slot;

	do {
		if (!ring_has_room(ring, position))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&ring->tail, &position, position + 1, memory_order_relaxed, memory_order_relaxed));
	slot = &ring->slots[position & mask];
	memcpy(slot->words, element, RING_BYTES);
	/* R2. The slot before may have been used again already: then its word is beyond. Acquire:
	 * what hides that one is seen by whoever sees this one. */
	if (atomic_load_explicit(
		    &ring->slots[(position - 1) & mask].sequence, memory_order_acquire) < position)
		ring_hide(ring, position + 1);
	atomic_store_explicit(&slot->sequence, position + 1, memory_order_release); /* A */
	return true;
}
