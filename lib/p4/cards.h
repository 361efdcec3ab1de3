/* SPDX-License-Identifier: BSD-3-Clause */
/* cards.h - cards of a job's ranks, so that the first message to a rank asks nobody else where it
 * is. They come from libportals_runtime, if the program has it: a client of PMI puts what it likes
 * into the launcher's space, and the library's cards go along. They are of the first port.
 */
#ifndef P4_CARDS_H
#define P4_CARDS_H

#include <stdint.h>

/* The interface is open: tells the others where it is. While this process waits for them it is
 * driven, if it has to be, and a rank that is dead is noticed. */
void card_show(uint64_t interface);
/* The ranks of a map are known: takes the cards of as many of the job. */
void cards_take(uint64_t interface, uint64_t count);

#endif
