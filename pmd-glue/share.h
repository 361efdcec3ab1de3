/* SPDX-License-Identifier: BSD-3-Clause */
/* share.h - PTL_SHARE: letting DPDK's secondary processes, such as dpdk-dumpcap, into this one. */
#ifndef PMD_GLUE_SHARE_H
#define PMD_GLUE_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#define SHARE_PATH_MAX 80 /* bytes of a path among EAL's arguments */

bool share_wanted(void);
/* Before EAL starts: finds a hugetlbfs for EAL's memory. Returns 0 and its directory, or -1 after
 * an error line. */
int share_check(char *directory, size_t size);
/* After EAL has started: answers processes that want to capture, and has the directory emptied at
 * the end of this process. 0, or -1 after an error line. */
int share_begin(const char *directory);

#endif
