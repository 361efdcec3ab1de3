/* SPDX-License-Identifier: BSD-3-Clause */
/* places.c - the memory that a long message may name. */
#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EVERYTHING 2

/* 0.85 of the host's memory, divided by its ranks, unless GASNET_MAX_SEGSIZE says what each has. */
static uintptr_t limit_of(uint64_t memory, uint64_t most, uint32_t neighbours)
{
	uint64_t limit = most > 0 ? most : memory / 100 * 85 / neighbours;

	if (gasnet.segment_kind == EVERYTHING)
		return UINTPTR_MAX;
	return (uintptr_t)(limit / GASNET_PAGESIZE * GASNET_PAGESIZE);
}

void segment_limits(uint64_t memory[], uint64_t most[])
{
	gasnet.limit_least = UINTPTR_MAX;
	for (uint32_t i = 0; i < gasnet.size; i++) {
		uint32_t neighbours = 0;

		for (uint32_t k = 0; k < gasnet.size; k++)
			neighbours += gasnet.places[k].host == gasnet.places[i].host;
		gasnet.places[i].limit = limit_of(memory[i], most[i], neighbours);
		if (gasnet.places[i].limit < gasnet.limit_least)
			gasnet.limit_least = gasnet.places[i].limit;
	}
}

/* Takes memory of that size, or less where the system refuses it. */
static void memory_take(struct place *place, uintptr_t size)
{
	void *memory = MAP_FAILED;

	while (size > 0) {
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory != MAP_FAILED)
			break;
		size = size / 2 / GASNET_PAGESIZE * GASNET_PAGESIZE;
	}
	place->address = size > 0 ? memory : NULL;
	place->size = size;
}

bool segment_make(uintptr_t size, uintptr_t heap_distance)
{
	struct place *place = &gasnet.places[gasnet.rank];
	uintptr_t heap = (uintptr_t)sbrk(0);

	if (gasnet.segment_kind == EVERYTHING) {
		place->size = UINTPTR_MAX;
		return true;
	}
	memory_take(place, size);
	if (place->size < size)
		complain("the segment has %zu bytes of the %zu that were asked for: the system has "
			 "no more",
			(size_t)place->size, (size_t)size);
	if (place->size > 0 && (uintptr_t)place->address > heap &&
		(uintptr_t)place->address - heap < heap_distance) {
		complain("the segment cannot be %zu bytes behind the heap", (size_t)heap_distance);
		return false;
	}
	return true;
}

void segment_check(const char *what, uint32_t rank, const void *address, size_t length)
{
	const struct place *place = &gasnet.places[rank];
	uintptr_t offset = (uintptr_t)address - (uintptr_t)place->address;

	if (length > place->size || offset > place->size - length)
		fatal("%s of %zu bytes at %p of rank %u, whose segment has %zu bytes at %p", what,
			length, address, rank, (size_t)place->size, place->address);
}
