/* SPDX-License-Identifier: BSD-3-Clause */
/* pages.h - zeroed memory for large tables, of which only the used pages cost anything. An
 * allocator may write to all that it gives (MALLOC_PERTURB_): a table of millions is dear then. A
 * kernel that gives programs hugepages unasked would make each first use cost 2 MB. */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* Returns NULL if the process may have no more, or for no bytes. */
static inline void *pages_map(size_t bytes)
{
	void *pages = bytes == 0 ? MAP_FAILED
				 : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	(void)madvise(pages, bytes, MADV_NOHUGEPAGE);
	return pages;
}

/* bytes: as many as were mapped. */
static inline void pages_unmap(void *pages, size_t bytes)
{
	if (pages)
		munmap(pages, bytes);
}

/* Several tables in one mapping. The first time, without memory, they are only counted: `bytes`;
 * then the memory is mapped, and the same calls give each its place. */
struct pages_tables {
	char *memory;
	size_t bytes;
};

static inline void *pages_table(struct pages_tables *tables, size_t count, size_t size)
{
	char *table = tables->memory ? tables->memory + tables->bytes : NULL;

	tables->bytes += (count * size + 63) & ~(size_t)63; /* of whole cache lines */
	return table;
}

/* The same for structures that refer to allocated memory. A leak sanitizer looks for references in
 * the heap; if the program has one, it is told to look here, too. */
void __lsan_register_root_region(const void *, size_t) __attribute__((weak));
void __lsan_unregister_root_region(const void *, size_t) __attribute__((weak));

static inline void *pages_map_root(size_t bytes)
{
	void *pages = pages_map(bytes);

	if (pages && __lsan_register_root_region)
		__lsan_register_root_region(pages, bytes);
	return pages;
}

static inline void pages_unmap_root(void *pages, size_t bytes)
{
	if (pages && __lsan_unregister_root_region)
		__lsan_unregister_root_region(pages, bytes);
	pages_unmap(pages, bytes);
}

#endif
