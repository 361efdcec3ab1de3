/* SPDX-License-Identifier: BSD-3-Clause */
/* hugepages.h - are there hugepages to be had? */
#ifndef PMD_GLUE_HUGEPAGES_H
#define PMD_GLUE_HUGEPAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUGEPAGES_LEAST   (UINT64_C(64) << 20)  /* bytes: with less, ordinary pages serve better */
#define HUGEPAGES_ADVISED (UINT64_C(256) << 20) /* bytes for one card, also with large frames */

/* Bytes in one hugepage of the kernel's default size; 0 when there are none. */
size_t hugepages_page(void);
/* Are so many bytes of them free, for this process, now? Tried, not only read: a container may
 * forbid them. */
bool hugepages_usable(uint64_t bytes);
/* Bytes of them that are free now and promised to nobody. */
uint64_t hugepages_free(void);
/* How many of them vm.nr_hugepages should say, so that one card more can be used. */
unsigned hugepages_wanted(void);

#endif
