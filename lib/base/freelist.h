/* SPDX-License-Identifier: BSD-3-Clause */
/* freelist.h - which of so many indices are free: a stack without locks, in memory that several
 * processes may map.
 *
 * F1. A thread that is preempted, or dies, inside an operation makes nobody wait; at worst one
 *     index is lost.
 * F2. The top carries a count of its changes: a thread that was away between looking at the top and
 *     moving it fails, although the same index may be on top again (unless 2^32 changes went by
 *     meanwhile).
 * F3. Every change of the top is a compare-and-swap, so a thread that takes an index sees what
 *     the thread that gave it did before, whatever went over it meanwhile (a release sequence).
 * F4. In zeroed memory the list is already in order, so indices that were never taken have no
 *     memory yet. Below the last one is `count`.
 */
#ifndef BASE_FREELIST_H
#define BASE_FREELIST_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define FREELIST_NONE UINT32_MAX

struct freelist {
	_Alignas(64) _Atomic uint64_t top; /* changes << 32 | index; count or more: none */
	uint32_t count;
	/* of each free index, the one below it, less the index and one */
	_Alignas(64) _Atomic uint32_t below[];
};

/* Bytes for indices 0 to count - 1. */
size_t freelist_size(uint32_t count);
/* In freelist_size() zeroed bytes. All are free; the lowest comes first. */
void freelist_init(struct freelist *list, uint32_t count);

/* Any thread. FREELIST_NONE: there is none. */
uint32_t freelist_take(struct freelist *list);
void freelist_give(struct freelist *list, uint32_t index);
/* How many of count indices are free, about: others take and give meanwhile. Walks the list. */
uint32_t freelist_count(const struct freelist *list, uint32_t count);

#endif
