/* SPDX-License-Identifier: BSD-3-Clause */
/* guard.h - copies and changes of memory that may not be there: a caller's mistake, or a region of
 * all memory of which a peer names a part, ends such a copy and not the program.
 *
 * On x86-64 a handler of SIGSEGV and SIGBUS knows the instructions that copy, and ends the copy
 * when one of them has faulted. Without a fault nothing is paid. Elsewhere the kernel copies, by
 * process_vm_readv(), and says what it cannot; and what is changed atomically has to be there.
 *
 * G1. Faults of other instructions, and signals that were sent, go to the handler that the program
 *     had before, as if this one were not there; or to the default action.
 * G2. A handler that the program installs later gets these signals first. If it passes them on, all
 *     is well; else a fault in a copy is its own to handle until guard_start() is called again,
 *     which installs this one above it.
 * G3. The handler and the copies that it knows are in one library: front ends get all that copies
 *     or changes memory with guards from libpostern-core (CORE_API).
 * G4. A thread that copies has neither signal blocked: the kernel ends a program that faults
 *     while it blocks the signal.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/core.h>
#include <base/map.h>

/* Installs the handler, unless it is the one that is called first. Any thread, as often as one
 * likes: when memory that may not be there is named for the first time, and when an interface is
 * opened. */
void guard_start(void) CORE_API(guard_start);

/* G4. Blocks all signals of the calling thread but those of faults, for threads that it makes until
 * it sets them back to *before. */
void guard_block_signals(sigset_t *before) CORE_API(guard_block_signals);

/* Copies; the memory may overlap. Returns false if a part of either is not there, or may not be
 * read or written; then a part of it may have been copied. After guard_start(). */
bool guard_copy(void *to, const void *from, uint64_t bytes) CORE_API(guard_copy);

/* The same by stores that stream past the caches, which are done when it returns. to: on a multiple
 * of 16; the memory does not overlap. */
bool guard_copy_streamed(void *to, const void *from, uint64_t bytes) CORE_API(guard_copy_streamed);

/* Atomic access to an aligned word of 1, 2, 4 or 8 bytes. Returns false if it is not there, or may
 * not be written. After guard_start(). */
bool guard_load(const void *at, unsigned size, uint64_t *word);
/* Stores `becomes` if the word is *was, else writes the word to *was. Both barriers of
 * __ATOMIC_SEQ_CST. *stored: was it so? */
bool guard_exchange(void *at, unsigned size, uint64_t *was, uint64_t becomes, bool *stored);

/* Is this part of a map there now, to be read, or to be written? Looks at each of its pages. */
bool guard_probe(const struct map *map, uint64_t offset, uint64_t bytes, bool write);

/* What guard_copy() is where there is no handler: about half a microsecond each. */
bool guard_copy_by_kernel(void *to, const void *from, uint64_t bytes);

#endif
