/* SPDX-License-Identifier: BSD-3-Clause */
/* credit.c - see credit.h. */
#include <engine/credit.h>

#include <base/barrier.h>
#include <engine/fetch.h>
#include <engine/unexpected.h>

void credit_open(struct space *space)
{
	const uint64_t shares = (uint64_t)space->kept_share * space->ranks;

	space->heard = UINT32_MAX;
	list_init(&space->silent);
	list_init(&space->wanting);
	list_init(&space->owing);
	if (space->kept_share != 0 && shares < space->segment->limits.unexpected)
		space->spare = (uint32_t)(space->segment->limits.unexpected - shares);
}

static void word_forget(struct space *space, struct sharer *sharer)
{
	sharer->owes = 0;
	if (!link_listed(&sharer->owing))
		return;
	link_remove(&sharer->owing);
	space->engine->owing--;
	space->engine->awaits--;
}

void credit_close(struct space *space)
{
	list_each (struct sharer, sharer, &space->owing, owing)
		word_forget(space, sharer);
}

/* --- words */

/* There is an operation for it. */
static void word_send(struct space *space, uint32_t rank, unsigned kind, uint64_t number)
{
	const struct message_header word = {
		.kind = MESSAGE_STORE,
		.space = space->number,
		.uid = space->uid,
		.portal = FETCH_PORTAL,
		.cookie = self_at(space, rank),
		.match_bits = BITS_TOLD,
		.value = word_make(kind, number),
	};

	/* Behind the answers that say how large a share was before. */
	notice_send_late(space->engine, space->map[rank], &word);
}

/* The last operation is not for a word: the message that led to it may have to be answered. Nor are
 * those of other ranks: this one may make words due and take none. */
static bool word_has_operation(const struct space *space, uint32_t rank)
{
	return operation_granted(space->engine, space->map[rank]) &&
	       operation_reserve(space->engine, 2);
}

/* C5. Returns false if it cannot leave now. */
static bool word_can_leave(struct space *space, uint32_t rank, unsigned kind)
{
	struct sharer *sharer = &space->sharers[rank];

	if (!rank_is_known(space, rank))
		return false;
	if (word_has_operation(space, rank))
		return true;
	sharer->owes |= 1u << kind;
	if (!link_listed(&sharer->owing)) {
		list_append(&space->owing, &sharer->owing);
		space->engine->owing++;
		space->engine->awaits++;
	}
	return false;
}

/* --- receiver */

static void share_set(struct space *space, uint32_t rank, uint32_t share)
{
	const uint32_t before = share_now(space, rank);

	space->spare += before - share;
	space->grown += (share > space->kept_share);
	space->grown -= (before > space->kept_share);
	atomic_store_explicit(
		&space->share_of[rank], share - space->kept_share, memory_order_relaxed);
}

/* It comes to the end of the silent ones. */
static void silent_settle(struct space *space, uint32_t rank)
{
	struct sharer *sharer = &space->sharers[rank];

	if (link_listed(&sharer->silent))
		link_remove(&sharer->silent);
	else if (sharer->asked != 0 || share_now(space, rank) <= space->kept_share)
		return;
	list_append(&space->silent, &sharer->silent);
}

void share_touch(struct space *space, uint32_t rank)
{
	if (space->kept_share == 0 || rank >= space->ranks)
		return;
	space->heard = rank;
	silent_settle(space, rank);
}

/* Returns false if it stays as it is. */
static bool share_grow(struct space *space, uint32_t rank)
{
	const uint32_t share = share_now(space, rank);
	const uint32_t more = space->spare / 2 < share ? space->spare / 2 : share;

	if (more == 0 || space->sharers[rank].asked != 0)
		return false;
	share_set(space, rank, share + more);
	silent_settle(space, rank);
	return true;
}

/* C3. One of those that have been silent is asked, for a rank that waits. */
static void share_seek(struct space *space, uint32_t rank)
{
	list_each (struct sharer, sharer, &space->silent, silent) {
		const uint32_t other = (uint32_t)(sharer - space->sharers);

		if (other == rank)
			continue;
		/* It comes back when it has given, or is heard of. */
		link_remove(&sharer->silent);
		space->heard = UINT32_MAX;
		if (!rank_is_known(space, other))
			continue;
		sharer->asked = share_now(space, other) / 2;
		if (sharer->asked < space->kept_share)
			sharer->asked = space->kept_share;
		sharer->takes++;
		if (word_can_leave(space, other, WORD_TAKE))
			word_send(space, other, WORD_TAKE, sharer->asked);
		return;
	}
}

/* C3. Has a rank less than one of so many parts of an equal share? */
static bool share_is_small(const struct space *space, uint32_t rank, uint32_t parts)
{
	const uint32_t share = share_now(space, rank);

	return share < space->kept.count / (space->grown + (share <= space->kept_share)) / parts;
}

/* Does a rank use half of its share? */
static bool share_is_used(const struct space *space, uint32_t rank)
{
	return space->kept_of[rank] >= share_now(space, rank) / 2;
}

/* A rank needs more than is left. */
static void share_want(struct space *space, uint32_t rank)
{
	struct sharer *sharer = &space->sharers[rank];

	if (!link_listed(&sharer->wanting))
		list_append(&space->wanting, &sharer->wanting);
	share_seek(space, rank);
}

/* Headers have become free: those that still wait for some get them in turn. */
static void wanting_serve(struct space *space)
{
	list_each (struct sharer, sharer, &space->wanting, wanting) {
		const uint32_t rank = (uint32_t)(sharer - space->sharers);
		const bool waits = share_is_used(space, rank);

		if (waits && sharer->asked != 0)
			continue;
		if (waits && !share_grow(space, rank)) {
			share_seek(space, rank);
			return;
		}
		link_remove(&sharer->wanting);
		if (waits && word_can_leave(space, rank, WORD_SHARE))
			word_send(space, rank, WORD_SHARE, share_now(space, rank));
	}
}

void share_keep(struct space *space, uint32_t rank)
{
	share_heard(space, rank);
	space->kept_of[rank]++;
	if (!share_is_used(space, rank))
		return;
	if (space->spare / 2 < share_now(space, rank) && share_is_small(space, rank, 1))
		share_want(space, rank);
	(void)share_grow(space, rank);
}

uint64_t share_answer(struct space *space, uint32_t rank, uint64_t value)
{
	/* The front end's memory is not the space's any more when that closes. */
	if (space->kept_share == 0 || rank >= space->ranks || space->closing)
		return 0;
	if (value & VALUE_SHORT) {
		if (share_now(space, rank) <= space->spare / ASKERS)
			(void)share_grow(space, rank);
		else if (share_is_small(space, rank, 4))
			share_seek(space, rank); /* it asks again */
	}
	return space->sharers[rank].asked != 0
		       ? 0
		       : (uint64_t)space->sharers[rank].takes << 32 | share_now(space, rank);
}

void share_reset(struct space *space, uint32_t rank)
{
	struct sharer *sharer = &space->sharers[rank];

	if (link_listed(&sharer->silent))
		link_remove(&sharer->silent);
	if (link_listed(&sharer->wanting))
		link_remove(&sharer->wanting);
	word_forget(space, sharer);
	sharer->asked = 0;
	sharer->takes = 0;
	sharer->told = 0;
	share_set(space, rank, space->kept_share);
	wanting_serve(space);
}

/* C4. What was taken, but too little to be told of with a larger share, is told now. */
static void taken_tell(struct space *space, uint32_t rank)
{
	const uint64_t taken =
		atomic_load_explicit(&credit_of(space, rank)->taken, memory_order_acquire);

	if (taken == space->sharers[rank].told || !word_can_leave(space, rank, WORD_CREDIT))
		return;
	space->sharers[rank].told = taken;
	word_send(space, rank, WORD_CREDIT, taken);
}

/* C3. A rank says how large its share is now. That may be less than was asked for, if it had not
 * heard of all of its share; but less than it has kept is a lie. */
static void share_given(struct space *space, uint32_t rank, uint64_t share)
{
	struct sharer *sharer = &space->sharers[rank];
	const uint32_t before = share_now(space, rank);

	if (sharer->asked == 0)
		return;
	unexpected_return(space);
	if (share < space->kept_share)
		share = space->kept_share;
	if (share < space->kept_of[rank])
		share = space->kept_of[rank];
	if (share < before)
		share_set(space, rank, (uint32_t)share);
	if (share <= sharer->asked) {
		sharer->asked = 0;
		/* It is still the one that has been silent for longest. */
		if (share > space->kept_share && share <= before)
			list_append(space->silent.next, &sharer->silent);
	}
	taken_tell(space, rank);
	wanting_serve(space);
}

/* --- sender */

/* C2 */
static void share_hear(const struct space *space, struct credit *credit, uint64_t share)
{
	if (share > atomic_load_explicit(&credit->share, memory_order_relaxed) &&
		share <= (uint64_t)space->kept_share + SPARE_MOST)
		credit_set(credit, (uint32_t)share);
}

/* Less than none, if the rank has lied. */
static int64_t credit_used(struct credit *credit)
{
	return (int64_t)(atomic_load_explicit(&credit->sent, memory_order_relaxed) -
			 atomic_load_explicit(&credit->freed, memory_order_relaxed));
}

/* The share of a rank that wants some of it back: C4. */
static uint64_t credit_left(struct credit *credit)
{
	const int64_t used = credit_used(credit);

	return used < (int64_t)credit->wanted ? credit->wanted : (uint64_t)used + 1;
}

/* C3. Gives back the unused headers of a share, if they are worth a word. */
static void credit_give(struct space *space, uint32_t rank)
{
	struct credit *credit = credit_of(space, rank);
	const uint32_t share = atomic_load_explicit(&credit->share, memory_order_relaxed);
	uint64_t left = credit_left(credit);

	if (left > credit->wanted && left + share / 8 >= share)
		return;
	if (!word_can_leave(space, rank, WORD_GIVEN))
		return;
	if (left < share) {
		atomic_store_explicit(&credit->share, (uint32_t)left, memory_order_relaxed);
		barrier_heavy();
		left = credit_left(credit);
		credit_set(credit, left < share ? (uint32_t)left : share);
	}
	if (left <= credit->wanted)
		credit->wanted = 0;
	word_send(space, rank, WORD_GIVEN,
		atomic_load_explicit(&credit->share, memory_order_relaxed));
}

static void credit_settle(struct space *space, uint32_t rank)
{
	struct credit *credit = credit_of(space, rank);

	atomic_store_explicit(
		&credit->freed, credit->placed + credit->credited, memory_order_relaxed);
	if (__builtin_expect(credit->wanted != 0, 0))
		credit_give(space, rank);
}

void credit_answered(struct space *space, const struct outcome *outcome)
{
	struct credit *credit;

	if (!space->credits || outcome->peer >= space->ranks || outcome->verdict != TIER_OK)
		return;
	credit = credit_of(space, outcome->peer);
	/* C3. The end of a message may be told after a later word was heard. */
	if (outcome->offset >> 32 == credit->takes)
		share_hear(space, credit, outcome->offset & UINT32_MAX);
	if (outcome->tier != 0)
		return;
	credit->placed++;
	credit_settle(space, outcome->peer);
}

/* C1. A rank says how many messages it has taken: never more than may be there. */
static void taken_hear(struct space *space, uint32_t rank, uint64_t taken)
{
	struct credit *credit = credit_of(space, rank);

	if (taken <= credit->credited ||
		taken > atomic_load_explicit(&credit->sent, memory_order_relaxed) - credit->placed)
		return;
	credit->credited = taken;
	credit_settle(space, rank);
}

/* --- both */

static void words_resume(struct space *space, uint32_t rank)
{
	struct sharer *sharer = &space->sharers[rank];
	const uint32_t owed = sharer->owes;

	word_forget(space, sharer);
	if (owed & 1u << WORD_TAKE && sharer->asked != 0 && word_can_leave(space, rank, WORD_TAKE))
		word_send(space, rank, WORD_TAKE, sharer->asked);
	if (owed & 1u << WORD_SHARE && sharer->asked == 0 &&
		word_can_leave(space, rank, WORD_SHARE))
		word_send(space, rank, WORD_SHARE, share_now(space, rank));
	if (owed & 1u << WORD_CREDIT)
		taken_tell(space, rank);
	if (owed & 1u << WORD_GIVEN && credit_of(space, rank)->wanted != 0)
		credit_give(space, rank);
}

void credit_resume(struct engine *engine)
{
	for (unsigned i = 0; i < SPACES; i++) {
		struct space *space = engine->spaces[i];

		if (!space || space->kept_share == 0)
			continue;
		list_each (struct sharer, sharer, &space->owing, owing) {
			const uint32_t rank = (uint32_t)(sharer - space->sharers);

			/* One that is not known any more is owed nothing. */
			if (!rank_is_known(space, rank) || word_has_operation(space, rank))
				words_resume(space, rank);
		}
	}
}

bool credit_word(struct space *space, struct process from, const struct message_header *header)
{
	const uint64_t number = word_number(header->value);
	struct process process;

	if (!space->credits || space->closing || header->requested != 0 ||
		header->uid != space->uid || header->portal >= space->segment->limits.portals ||
		!tier_process(space, from, header, &process) || process.nid >= space->ranks)
		return false;
	switch (word_kind(header->value)) {
	case WORD_CREDIT:
		taken_hear(space, process.nid, number);
		return false;
	case WORD_SHARE:
		share_hear(space, credit_of(space, process.nid), number);
		return false;
	case WORD_TAKE:
		credit_of(space, process.nid)->takes++;
		credit_of(space, process.nid)->wanted = number == 0 ? 1 : number;
		credit_give(space, process.nid);
		return true;
	case WORD_GIVEN:
		share_given(space, process.nid, number);
		return true;
	default:
		return false;
	}
}
