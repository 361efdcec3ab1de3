/* SPDX-License-Identifier: BSD-3-Clause */
/* elements.h - what atomic operations make of an element: the model that engine/amo.h is compared
 * with. It shares the numbers of operations and types with it, and nothing else.
 *
 * M1. Integers are reckoned in the widest type, and reals as numbers of their own type, so that
 *     they are rounded once. What an operation does not change keeps its very bytes.
 */
#ifndef TESTS_ELEMENTS_H
#define TESTS_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <engine/amo.h>

#define ELEMENT_VALUES 12 /* that element_make() knows */

bool element_valid(unsigned operation, unsigned type);
unsigned element_size(unsigned type);
/* Changes the target, as the operation says. */
void element_change(unsigned operation, unsigned type, uint8_t *target, const uint8_t *source,
	const uint8_t *operand);
/* Have both the same bytes, or values that nobody can tell apart: zeros, or no numbers at all? */
bool element_is(const uint8_t *a, const uint8_t *b, unsigned type);
/* Is every part of it a number? */
bool element_is_number(const uint8_t *bytes, unsigned type);
/* The which-th interesting value of a type; of integers the last ones are chance's. */
void element_make(uint8_t *bytes, unsigned type, unsigned which, uint64_t chance);

#endif
