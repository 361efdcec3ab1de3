/* SPDX-License-Identifier: BSD-3-Clause */
/* hints.h - MAC addresses of processes that come from outside this network, such as from a job's
 * launcher. The first question to such a process goes to this address and is not broadcast. A
 * process that does not answer there is looked for everywhere (address.c).
 *
 * I1. A hint outlives its peer, which is forgotten when it is idle.
 */
#ifndef TRANSPORT_HINTS_H
#define TRANSPORT_HINTS_H

#include <stdint.h>

#include <transport/transport.h>
#include <wire/frame.h>

struct hints {
	void *tree; /* tsearch(); NULL: there are none */
};

/* The address counts from now on. Without memory nothing is kept. */
void hints_put(struct hints *hints, struct process process, const uint8_t *address);
/* NULL: none is known. */
const uint8_t *hints_find(const struct hints *hints, struct process process);
void hints_free(struct hints *hints);

#endif
