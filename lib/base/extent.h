/* SPDX-License-Identifier: BSD-3-Clause */
/* extent.h - a first-fit allocator of ranges of an address space that it does not touch.
 *
 * Event queues of any length live in one mapping per interface; this says which bytes of it are
 * taken. It keeps its books in private memory. Not thread-safe: the caller locks.
 */
#ifndef BASE_EXTENT_H
#define BASE_EXTENT_H

#include <stdint.h>

#define EXTENT_NONE UINT64_MAX

struct extent_map; /* free ranges, sorted, never touching each other */

struct extent_map *extent_create(uint64_t size, uint64_t alignment); /* NULL: no memory */
void extent_destroy(struct extent_map *map);
/* The offset of size bytes (rounded up to the alignment), or EXTENT_NONE. */
uint64_t extent_take(struct extent_map *map, uint64_t size);
void extent_give(struct extent_map *map, uint64_t offset, uint64_t size);

#endif
