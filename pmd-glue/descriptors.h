/* SPDX-License-Identifier: BSD-3-Clause */
/* descriptors.h - those that DPDK opens. It does not have them closed by exec(), which would keep
 * its memory and its sockets alive in programs that know nothing of them.
 *
 * I1. Other threads open descriptors while DPDK opens its own, and theirs are left alone: a
 * descriptor is DPDK's when it says so by the
 *     name of its memory, by its socket's kind or address, or by standing in DPDK's interrupt
 *     thread's list.
 */
#ifndef PMD_GLUE_DESCRIPTORS_H
#define PMD_GLUE_DESCRIPTORS_H

#include <stdint.h>

#define DESCRIPTORS_SEEN 4096

/* Open ones, a bit for each. */
struct descriptors {
	uint8_t open[DESCRIPTORS_SEEN / 8];
};

void descriptors_read(struct descriptors *now);
/* Has exec() close DPDK's among those that were opened since `before`. */
void descriptors_claim(const struct descriptors *before);
/* The same for what its interrupt thread waits for and is woken by, once EAL runs. */
void descriptors_claim_interrupts(const struct descriptors *before);

#endif
