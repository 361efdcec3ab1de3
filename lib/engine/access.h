/* SPDX-License-Identifier: BSD-3-Clause */
/* access.h - access control: whom the entries of the table admit.
 *
 * An entry is kept as words and masks, so that a wildcard costs no question: a message is admitted
 * when nothing that counts differs.
 *
 *     process    nid | pid << 32          target    uid | Portal << 32
 *
 * Halves that are wildcards are UINT32_MAX.
 */
#ifndef ENGINE_ACCESS_H
#define ENGINE_ACCESS_H

#include <engine/segment.h>

/* In the target of no message, since a Portal's index is less than LIMIT_PORTALS. */
#define ACCESS_NEVER (UINT64_C(1) << 63)
static_assert(LIMIT_PORTALS <= UINT32_C(1) << 31, "no Portal has that bit");

static inline uint64_t access_word(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

/* Returns the bits in which two words must be equal, where a half of UINT32_MAX stands for any. */
static inline uint64_t access_mask(uint32_t low, uint32_t high)
{
	return access_word(low == UINT32_MAX ? 0 : UINT32_MAX, high == UINT32_MAX ? 0 : UINT32_MAX);
}

/* UINT32_MAX: any. */
static inline void access_admit(
	struct access_entry *access, struct process process, uint32_t uid, uint32_t portal)
{
	access->process = access_word(process.nid, process.pid);
	access->process_mask = access_mask(process.nid, process.pid);
	access->target = access_word(uid, portal);
	access->target_mask = access_mask(uid, portal);
}

static inline void access_admit_nobody(struct access_entry *access)
{
	*access = (struct access_entry){.target = ACCESS_NEVER, .target_mask = ACCESS_NEVER};
}

static inline bool access_is_nobody(const struct access_entry *access)
{
	return access->target == ACCESS_NEVER;
}

/* portal: less than LIMIT_PORTALS. */
static inline bool access_admits(
	const struct access_entry *access, struct process from, uint32_t uid, uint32_t portal)
{
	uint64_t process = access->process ^ access_word(from.nid, from.pid);
	uint64_t target = access->target ^ access_word(uid, portal);

	return ((process & access->process_mask) | (target & access->target_mask)) == 0;
}

#endif
