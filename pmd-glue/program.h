/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - the filter of a packet socket, which the kernel runs: of all frames on an interface
 * it lets those pass that are for one process (port.h, port_selection). */
#ifndef PMD_GLUE_PROGRAM_H
#define PMD_GLUE_PROGRAM_H

#include <linux/filter.h>
#include <stdint.h>

#include <base/port.h>

struct program {
	struct sock_filter code[32];
	unsigned count;
};

/* own: the interface's address. */
void program_select(
	struct program *program, const uint8_t *own, const struct port_selection *wanted);

#endif
