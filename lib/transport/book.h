/* SPDX-License-Identifier: BSD-3-Clause */
/* book.h - where processes are said to be: MAC addresses that an exchange outside this network has
 * told, such as a job's launcher. They are hints: the first question to such a process goes there
 * and not to everybody, and whoever does not answer there is looked for everywhere (address.c).
 *
 * I1. It outlives peers, which are forgotten when they are idle.
 */
#ifndef TRANSPORT_BOOK_H
#define TRANSPORT_BOOK_H

#include <stdbool.h>
#include <stdint.h>

#include <transport/transport.h>
#include <wire/frame.h>

struct book_cell {
	struct process process;
	uint8_t address[FRAME_ADDRESS_BYTES];
	bool taken;
};

/* All zero is an empty one. */
struct book {
	struct book_cell *cells;
	uint32_t mask;
	uint32_t count;
};

/* The address counts from now on. Without memory nothing is kept. */
void book_put(struct book *book, struct process process, const uint8_t *address);
/* NULL: none is known. */
const uint8_t *book_find(const struct book *book, struct process process);
void book_free(struct book *book);

#endif
