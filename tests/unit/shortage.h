/* SPDX-License-Identifier: BSD-3-Clause */
/* shortage.h - calloc() and aligned_alloc() fail while memory_is_short, in programs that
 * meson.build links so. One file of such a program includes this. */
#ifndef SHORTAGE_H
#define SHORTAGE_H

#include <stdbool.h>
#include <stddef.h>

static bool memory_is_short;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return memory_is_short ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return memory_is_short ? NULL : __real_aligned_alloc(alignment, size);
}

#endif
