/* SPDX-License-Identifier: BSD-3-Clause */
/* space.h - the keys and values by which the processes of a job tell each other where they are.
 *
 * All of them go to a rank in one text, because a thousand ranks would ask a million times for one
 * value each. It is made once for all ranks, and is as old as the last barrier at most.
 */
#ifndef RUN_SPACE_H
#define RUN_SPACE_H

#include <stdbool.h>
#include <stddef.h>

#define SPACE_BYTES (256u << 20) /* of memory that all pairs may take; their text takes less */

/* An existing key gets another value. Returns false if there is no memory for the pair. */
bool space_put(const char *key, const char *value);
/* NULL: there is no such key. */
const char *space_get(const char *key);

/* The answer to cmd=get_all: a line with the number of pairs, and a line for each of them. It stays
 * until space_forget_text(). NULL: there is no memory. */
const char *space_text(size_t *length);
/* All ranks are at a barrier: the next text has what they have put before it. */
void space_forget_text(void);

#endif
