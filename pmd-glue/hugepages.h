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
/* Can this process have so many bytes of them now? They are allocated to find out, because a
 * container may forbid them. */
bool hugepages_usable(uint64_t bytes);
/* Bytes of them that are free and not reserved. */
uint64_t hugepages_free(void);
/* The value of vm.nr_hugepages with which one more card can be used. */
unsigned hugepages_wanted(void);

#endif
