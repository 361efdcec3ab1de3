/* SPDX-License-Identifier: BSD-3-Clause */
/* tier_entry.h - entries of spaces with tiers (tiers.h): how they come into their lists, are used
 * up, and go. The poll core's.
 *
 * T2. An entry that was unlinked is LEAVING. It is freed, with its UNLINK event, when nothing is
 *     pending on it: after the event of the last message, whichever message unlinked it.
 */
#ifndef ENGINE_TIER_ENTRY_H
#define ENGINE_TIER_ENTRY_H

#include <engine/delivery.h>
#include <engine/tiers.h>

/* T5. How many events tell that an entry has left. */
uint32_t entry_places(const struct space *space, const struct region *region);

/* Keeps places in the queue of a region for events to come; and uses or gives them up. */
static inline void places_keep(const struct region *region, uint32_t count)
{
	struct queue *queue = region_queue(region);

	if (queue)
		queue->incoming += count;
}

static inline void places_give(const struct region *region, uint32_t count)
{
	struct queue *queue = region_queue(region);

	if (queue)
		queue->incoming -= count;
}

/* By how much a message moves the offset of an entry, which is managed locally. */
static inline uint64_t entry_step(const struct region *region, const struct attachment *attachment,
	const struct placement *placement)
{
	if (__builtin_expect(attachment->unit == 0, 1))
		return placement->length;
	return offset_step(attachment->unit, placement->length, region->length - region->offset);
}

/* Does a message use the entry up? */
static inline bool entry_ends(const struct region *region, const struct attachment *attachment,
	const struct placement *placement)
{
	return attachment->flags & ATTACHMENT_ONCE ||
	       (!(region->options & REGION_REMOTE_OFFSET) &&
		       region->length - region->offset - entry_step(region, attachment, placement) <
			       attachment->min_free);
}

/* A message uses an entry up. */
void entry_end(struct space *space, struct region *region, struct attachment *attachment);

/* A message has been accepted: what that costs the entry. */
static inline __attribute__((always_inline)) void entry_use(struct space *space,
	struct region *region, struct attachment *attachment, const struct placement *placement)
{
	bool ends = entry_ends(region, attachment, placement);

	if (!(region->options & REGION_REMOTE_OFFSET))
		region->offset += entry_step(region, attachment, placement);
	if (__builtin_expect(ends, 0))
		entry_end(space, region, attachment);
}

/* entry_settle() of one that has left its list. */
void entry_settle_leaving(struct space *space, struct region *region);
/* After an event of an entry's: frees one that has left its list if nothing refers to it. */
static inline void entry_settle(struct space *space, struct region *region)
{
	if (__builtin_expect(region->state == REGION_LEAVING, 0))
		entry_settle_leaving(space, region);
}

/* COMMAND_APPEND. */
void tiers_append(struct space *space, const struct command *command);
/* COMMAND_WITHDRAW: OK; GONE; PENDING, it is in use (command.h). */
enum answer tiers_withdraw(struct space *space, const struct command *command);

#endif
