/* SPDX-License-Identifier: BSD-3-Clause */
/* freelist.c - see freelist.h. */
#include <base/freelist.h>

static uint64_t top_make(uint64_t before, uint32_t index)
{
	return ((before >> 32) + 1) << 32 | index;
}

static uint32_t below_read(const struct freelist *list, uint32_t index)
{
	return index + 1 + atomic_load_explicit(&list->below[index], memory_order_relaxed);
}

static void below_write(struct freelist *list, uint32_t index, uint32_t below)
{
	atomic_store_explicit(&list->below[index], below - (index + 1), memory_order_relaxed);
}

size_t freelist_size(uint32_t count)
{
	return sizeof(struct freelist) + count * sizeof(((struct freelist *)0)->below[0]);
}

void freelist_init(struct freelist *list, uint32_t count)
{
	list->count = count;
}

uint32_t freelist_take(struct freelist *list)
{
	uint64_t top = atomic_load_explicit(&list->top, memory_order_acquire);
	uint32_t index, below;

	do {
		index = (uint32_t)top;
		if (index >= list->count)
			return FREELIST_NONE;
		/* Perhaps another thread's already, which is writing it: then the swap fails. */
		below = below_read(list, index);
	} while (!atomic_compare_exchange_weak_explicit(&list->top, &top, top_make(top, below),
		memory_order_acquire, memory_order_acquire));
	return index;
}

void freelist_give(struct freelist *list, uint32_t index)
{
	uint64_t top = atomic_load_explicit(&list->top, memory_order_relaxed);

	do {
		below_write(list, index, (uint32_t)top);
	} while (!atomic_compare_exchange_weak_explicit(&list->top, &top, top_make(top, index),
		memory_order_release, memory_order_relaxed));
}

uint32_t freelist_count(const struct freelist *list, uint32_t count)
{
	uint32_t index = (uint32_t)atomic_load_explicit(&list->top, memory_order_acquire);
	uint32_t found = 0;

	while (index < count && found < count) {
		index = below_read(list, index);
		found++;
	}
	return found;
}
