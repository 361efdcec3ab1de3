/* hugepages.h - are there hugepages to be had? */
#ifndef PMD_GLUE_HUGEPAGES_H
#define PMD_GLUE_HUGEPAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes in one hugepage of the kernel's default size; 0 when there are none. */
size_t hugepages_page(void);
/* Are so many bytes of them free, for this process, now? Tried, not only read: a container may
 * forbid them. */
bool hugepages_usable(uint64_t bytes);

#endif
