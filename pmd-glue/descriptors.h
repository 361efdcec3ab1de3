/* SPDX-License-Identifier: BSD-3-Clause */
/* descriptors.h - marks the descriptors that DPDK opens as close-on-exec. DPDK does not, so its
 * memory and its sockets would stay alive in programs that this process starts by exec().
 *
 * I1. Other threads open descriptors while DPDK opens its own, and theirs are left alone. A
 *     descriptor is DPDK's if the name of its memory, the kind or address of its socket, or the
 *     list of DPDK's interrupt thread says so.
 */
#ifndef PMD_GLUE_DESCRIPTORS_H
#define PMD_GLUE_DESCRIPTORS_H

#include <stdint.h>

#define DESCRIPTORS_SEEN 4096

/* The open descriptors, a bit for each. */
struct descriptors {
	uint8_t open[DESCRIPTORS_SEEN / 8];
};

void descriptors_read(struct descriptors *now);
/* Marks DPDK's descriptors that were opened since `before` as close-on-exec. */
void descriptors_claim(const struct descriptors *before);
/* Does the same for the descriptors that DPDK's interrupt thread waits for and is woken by, once
 * EAL runs. */
void descriptors_claim_interrupts(const struct descriptors *before);

#endif
