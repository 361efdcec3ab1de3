/* SPDX-License-Identifier: BSD-3-Clause */
/* number.h - a number in a text from outside. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include <base/core.h>

/* Reads a number of digits alone, which ends at one of `ends` or with the text, and sets *text
 * behind it. Returns false if there is none. */
bool number_read(const char **text, const char *ends, uint32_t *number) CORE_API(number_read);

#endif
