/* SPDX-License-Identifier: BSD-3-Clause */
/* handle.h - what the bits of a Portals 4 handle mean, and how it names an object of the host.
 *
 *    31  29 28   26 25                       0
 *   +------+-------+-----------+--------------+
 *   | kind |  NI   | generation|    index     |
 *   +------+-------+-----------+--------------+
 *
 * The index has as many bits as the table of that interface needs; the generation is the low part
 * of the object's own, which stands in its gate.
 *
 * P1. kind is none of 0, 1 and 7, and the handle of an NI has nothing but kind and NI: so no handle
 *     is 0, PTL_EQ_NONE, PTL_CT_NONE or PTL_INVALID_HANDLE.
 * P2. The handle of an NI follows from its port and its kind alone: it is the same in each process.
 * P3. A stale handle is refused unless its generation comes again, after 2^(26 - index bits)
 *     objects at the earliest.
 */
#ifndef P4_HANDLE_H
#define P4_HANDLE_H

#include <stdint.h>

#include <base/handle.h>

enum name_kind { NAME_NI = 2, NAME_MD, NAME_ENTRY, NAME_QUEUE, NAME_COUNTER, NAME_KINDS };

#define NAME_KIND_AT 29
#define NAME_NI_AT   26
#define NAME_NIS     8
#define NAME_LOW     ((UINT32_C(1) << NAME_NI_AT) - 1)

static inline uint32_t name_kind(uint32_t name)
{
	return name >> NAME_KIND_AT;
}

static inline uint32_t name_ni(uint32_t name)
{
	return name >> NAME_NI_AT & (NAME_NIS - 1);
}

static inline uint32_t name_make(enum name_kind kind, uint32_t ni)
{
	return (uint32_t)kind << NAME_KIND_AT | ni << NAME_NI_AT;
}

/* What the host calls a kind. */
static inline enum handle_kind name_handle_kind(enum name_kind kind)
{
	switch (kind) {
	case NAME_MD:
		return HANDLE_REGION;
	case NAME_ENTRY:
		return HANDLE_ENTRY;
	case NAME_QUEUE:
		return HANDLE_QUEUE;
	case NAME_COUNTER:
		return HANDLE_COUNTER;
	default:
		return HANDLE_INTERFACE;
	}
}

#endif
