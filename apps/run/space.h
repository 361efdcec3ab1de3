/* SPDX-License-Identifier: BSD-3-Clause */
/* space.h - the keys and values by which the processes of a job tell each other where they are. */
#ifndef RUN_SPACE_H
#define RUN_SPACE_H

#include <stdbool.h>

/* An existing key gets another value. Returns false if there is no memory. */
bool space_put(const char *key, const char *value);
/* NULL: there is no such key. */
const char *space_get(const char *key);

#endif
