/* SPDX-License-Identifier: BSD-3-Clause */
/* tape.c - bytes on their way from one thread to another. See tape.h. */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include <base/guard.h>

#include <pmd-glue/tape.h>

int tape_open(struct tape *tape, size_t size)
{
	assert(size > 0 && (size & (size - 1)) == 0);
	*tape = (struct tape){.size = size};
	tape->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (tape->bytes != MAP_FAILED)
		return 0;
	tape->bytes = NULL;
	return -1;
}

void tape_close(struct tape *tape)
{
	if (tape->bytes)
		munmap(tape->bytes, tape->size);
	tape->bytes = NULL;
}

bool tape_room(struct tape *tape, size_t length)
{
	if (tape->at + length - tape->seen <= tape->size)
		return true;
	/* Acquire: pairs with the release in tape_take(), so that the reader has finished with the
	 * bytes that are overwritten. */
	tape->seen = atomic_load_explicit(&tape->read, memory_order_acquire);
	return tape->at + length - tape->seen <= tape->size;
}

/* A frame may refer to memory of a program that has gone. */
static void bytes_copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
	if (!guard_copy(to, from, bytes))
		memset(to, 0, bytes);
}

void tape_put(struct tape *tape, const void *bytes, size_t length)
{
	size_t start = tape->at & (tape->size - 1);
	size_t first = length < tape->size - start ? length : tape->size - start;

	bytes_copy(tape->bytes + start, bytes, first);
	if (first < length)
		bytes_copy(tape->bytes, (const uint8_t *)bytes + first, length - first);
	tape->at += length;
}

void tape_publish(struct tape *tape, uint64_t at)
{
	tape->at = at;
	/* Release: pairs with the acquire in tape_readable(), so that the reader finds the
	 * bytes. */
	atomic_store_explicit(&tape->written, at, memory_order_release);
}

size_t tape_readable(const struct tape *tape)
{
	return (size_t)(atomic_load_explicit(&tape->written, memory_order_acquire) -
			atomic_load_explicit(&tape->read, memory_order_relaxed));
}

void tape_peek(const struct tape *tape, size_t offset, void *to, size_t length)
{
	uint64_t at = atomic_load_explicit(&tape->read, memory_order_relaxed) + offset;
	size_t start = at & (tape->size - 1);
	size_t first = length < tape->size - start ? length : tape->size - start;

	memcpy(to, tape->bytes + start, first);
	if (first < length)
		memcpy((uint8_t *)to + first, tape->bytes, length - first);
}

void tape_take(struct tape *tape, size_t length)
{
	uint64_t at = atomic_load_explicit(&tape->read, memory_order_relaxed) + length;

	/* Release: pairs with the acquire in tape_room(). */
	atomic_store_explicit(&tape->read, at, memory_order_release);
}
