/* SPDX-License-Identifier: BSD-3-Clause */
/* amo.h - atomic memory operations: what a message does to elements of the target's memory.
 *
 * A1. An element of 1, 2, 4 or 8 bytes that is aligned to its size is changed by one instruction of
 *     the processor's: atomically among all threads that use such instructions, and among all
 *     engines. Other elements are changed atomically among the operations of one engine, since one
 *     thread does them. Memory that is not there ends an operation, not the program (guard.h).
 * A2. Integers wrap. Logical results are 0 or 1. A comparison with a NaN is false, as in C: so a
 *     NaN that comes changes nothing by MIN and MAX, and none that is there is replaced.
 * A3. Operation and type are checked by amo_is_valid() before they come to amo_apply().
 * A4. Floating-point exceptions of an operation neither trap nor leave flags: its values are a
 *     peer's, and the thread may be the program's, which has its own wishes.
 */
#ifndef ENGINE_AMO_H
#define ENGINE_AMO_H

#include <stdbool.h>
#include <stdint.h>

#include <base/core.h>
#include <base/map.h>

/* The numbers are part of the wire format. */
enum amo_operation {
	AMO_MIN,
	AMO_MAX,
	AMO_SUM,
	AMO_PROD,
	AMO_LOR,
	AMO_LAND,
	AMO_BOR,
	AMO_BAND,
	AMO_LXOR,
	AMO_BXOR,
	AMO_SWAP,
	/* the source comes if the operand is as the relation says: operand == target, ... */
	AMO_CSWAP,
	AMO_CSWAP_NE,
	AMO_CSWAP_LE, /* operand <= target, ... */
	AMO_CSWAP_LT,
	AMO_CSWAP_GE,
	AMO_CSWAP_GT,
	AMO_MSWAP, /* the source's bits come where the operand has ones */
	AMO_OPERATIONS
};

enum amo_type {
	AMO_INT8,
	AMO_UINT8,
	AMO_INT16,
	AMO_UINT16,
	AMO_INT32,
	AMO_UINT32,
	AMO_FLOAT,
	AMO_INT64,
	AMO_UINT64,
	AMO_DOUBLE,
	AMO_FLOAT_COMPLEX,
	AMO_DOUBLE_COMPLEX,
	AMO_LONG_DOUBLE,
	AMO_LONG_DOUBLE_COMPLEX,
	AMO_TYPES
};

#define AMO_SIZE_MAX  32   /* bytes of an element */
#define AMO_BYTES_MAX 1024 /* of all elements of a message */

/* Is there such an operation on such a type? Any numbers. */
bool amo_is_valid(unsigned operation, unsigned type) CORE_API(amo_is_valid);
/* Bytes of an element; 0: there is no such type. */
unsigned amo_size(unsigned type) CORE_API(amo_size);

/* Does it look at an operand, one element that comes beside the source? */
static inline bool amo_has_operand(unsigned operation)
{
	return operation >= AMO_CSWAP;
}

/* Changes the elements of a map from an offset on, as many as there are whole ones in `bytes`; they
 * lie within the map. source: the other side of the operation, element by element. operand: used
 * for each element, by operations that look at one. old: gets what the elements were; NULL: nobody
 * wants it. These three need not be aligned; source and old may be the same memory. Returns false
 * if an element is not there, or may not be written; then those before it have been changed. */
bool amo_apply(const struct map *target, uint64_t offset, unsigned operation, unsigned type,
	const void *source, const void *operand, void *old, uint64_t bytes);

#endif
