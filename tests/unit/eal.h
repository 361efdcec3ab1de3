/* SPDX-License-Identifier: BSD-3-Clause */
/* eal.h - EAL for unit tests: ordinary pages, no devices, one CPU. */
#ifndef TESTS_UNIT_EAL_H
#define TESTS_UNIT_EAL_H

#include <stdint.h>

struct rte_mempool;

/* Starts EAL once; ends the program when that fails. */
void eal_start(void);
/* A pool of mbufs with room for frames of frame_size bytes, without a cache so that its counts are
 * exact. */
struct rte_mempool *eal_pool(const char *name, unsigned count, uint32_t frame_size);

#endif
