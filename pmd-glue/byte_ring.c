/* SPDX-License-Identifier: BSD-3-Clause */
/* byte_ring.c - bytes on their way from one thread to another. See byte_ring.h. */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include <base/guard.h>

#include <pmd-glue/byte_ring.h>

int byte_ring_open(struct byte_ring *ring, size_t size)
{
	assert(size > 0 && (size & (size - 1)) == 0);
	*ring = (struct byte_ring){.size = size};
	ring->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ring->bytes != MAP_FAILED)
		return 0;
	ring->bytes = NULL;
	return -1;
}

void byte_ring_close(struct byte_ring *ring)
{
	if (ring->bytes)
		munmap(ring->bytes, ring->size);
	ring->bytes = NULL;
}

bool byte_ring_room(struct byte_ring *ring, size_t length)
{
	if (ring->at + length - ring->seen <= ring->size)
		return true;
	/* Acquire: pairs with the release in byte_ring_take(), so that the reader has finished with
	 * the bytes that are overwritten. */
	ring->seen = atomic_load_explicit(&ring->read, memory_order_acquire);
	return ring->at + length - ring->seen <= ring->size;
}

/* A frame may refer to memory of a program that has gone. */
static void bytes_copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
	if (!guard_copy(to, from, bytes))
		memset(to, 0, bytes);
}

void byte_ring_put(struct byte_ring *ring, const void *bytes, size_t length)
{
	size_t start = ring->at & (ring->size - 1);
	size_t first = length < ring->size - start ? length : ring->size - start;

	bytes_copy(ring->bytes + start, bytes, first);
	if (first < length)
		bytes_copy(ring->bytes, (const uint8_t *)bytes + first, length - first);
	ring->at += length;
}

void byte_ring_publish(struct byte_ring *ring, uint64_t at)
{
	ring->at = at;
	/* Release: pairs with the acquire in byte_ring_readable(), so that the reader finds the
	 * bytes. */
	atomic_store_explicit(&ring->written, at, memory_order_release);
}

size_t byte_ring_readable(const struct byte_ring *ring)
{
	return (size_t)(atomic_load_explicit(&ring->written, memory_order_acquire) -
			atomic_load_explicit(&ring->read, memory_order_relaxed));
}

void byte_ring_peek(const struct byte_ring *ring, size_t offset, void *to, size_t length)
{
	uint64_t at = atomic_load_explicit(&ring->read, memory_order_relaxed) + offset;
	size_t start = at & (ring->size - 1);
	size_t first = length < ring->size - start ? length : ring->size - start;

	memcpy(to, ring->bytes + start, first);
	if (first < length)
		memcpy((uint8_t *)to + first, ring->bytes, length - first);
}

void byte_ring_take(struct byte_ring *ring, size_t length)
{
	uint64_t at = atomic_load_explicit(&ring->read, memory_order_relaxed) + length;

	/* Release: pairs with the acquire in byte_ring_room(). */
	atomic_store_explicit(&ring->read, at, memory_order_release);
}
