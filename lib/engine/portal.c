/* SPDX-License-Identifier: BSD-3-Clause */
/* portal.c - see portal.h. */
#include <engine/portal.h>

#include <string.h>

#include <base/random.h>
#include <base/report.h>
#include <engine/unexpected.h>

/* The queue of a Portal; NULL: none, or it is gone. */
static struct queue *portal_queue(const struct tier_portal *portal)
{
	return queue_alive(portal->logs, portal->queue);
}

static void portal_turn(struct space *space, uint32_t index, enum portal_state state)
{
	_Atomic uint32_t *now = &segment_portal(space->segment, index)->state;
	struct queue *queue = portal_queue(&space->portals[index]);
	bool was = atomic_load_explicit(now, memory_order_relaxed) == PORTAL_ENABLED;

	/* Release: a thread that sees the Portal free may claim it. */
	atomic_store_explicit(now, (uint32_t)state, memory_order_release);
	if (queue && space->portals[index].controlled)
		queue->controlled += (uint32_t)(state == PORTAL_ENABLED) - (uint32_t)was;
}

void portal_settle(struct space *space, uint32_t index)
{
	struct tier_portal *portal = &space->portals[index];
	const struct account account = {.portal = index};
	const struct tier_event_head event = {.kind = TIER_DISABLED, .verdict = TIER_REFUSED};

	if (!portal->owes || portal->pending != 0)
		return;
	portal->owes = false;
	tier_log(space, portal_queue(portal), &event, &account);
}

void portal_exhaust(struct space *space, uint32_t index)
{
	PROBE(disable, index, space->engine->self.nid, space->engine->self.pid);
	portal_turn(space, index, PORTAL_DISABLED);
	space->portals[index].owes = true;
	portal_settle(space, index);
}

void portals_exhaust(struct space *space, const struct queue *queue)
{
	for (uint32_t i = 0; i < space->segment->limits.portals && queue->controlled != 0; i++)
		if (space->portals[i].controlled && portal_queue(&space->portals[i]) == queue &&
			atomic_load_explicit(&segment_portal(space->segment, i)->state,
				memory_order_relaxed) == PORTAL_ENABLED)
			portal_exhaust(space, i);
}

static void round_begin(struct strangers *strangers, const struct queue *queue)
{
	strangers->round++;
	strangers->until = queue->tail;
	strangers->before = strangers->given;
	strangers->given = 0;
	memset(strangers->of, 0, sizeof(strangers->of));
}

bool stranger_has_place(struct space *space, const struct queue *queue, uint64_t most,
	struct process from, bool refuses)
{
	const uint64_t sharer = (uint64_t)refuses << 32 | from.nid;
	struct strangers *strangers = space->strangers;
	const uint64_t used = queue_used(queue);
	uint64_t all;
	uint16_t *has;

	if (queue->tail - used >= strangers->until)
		round_begin(strangers, queue);
	all = strangers->before + strangers->given;
	has = &strangers->of[random_mix(space->engine->secret[0] + strangers->round * RANDOM_STEP +
					sharer) %
			     STRANGER_SHARES];
	if (all >= most || *has * UINT64_C(4) >= most - all ||
		used + queue->incoming >= queue->refuse_at)
		return false;
	++*has;
	strangers->given++;
	return true;
}

static enum answer portal_open(struct space *space, const struct command *command)
{
	uint32_t index = command->object.index;
	struct queue *queue = queue_named(space->segment, command->object.other);
	uint64_t most = queue ? queue->refuse_at : 0;

	if (command->object.most != 0 && command->object.most < most)
		most = command->object.most;
	space->portals[index] = (struct tier_portal){
		.queue = command->object.other,
		.logs = queue,
		.most = most,
		.controlled = command->update,
		.strangers = command->position == POSITION_STRANGERS,
	};
	list_init(&space->portals[index].turns);
	portal_turn(space, index,
		command->position == POSITION_DISABLED ? PORTAL_DISABLED : PORTAL_ENABLED);
	return ANSWER_OK;
}

static enum answer portal_close(struct space *space, uint32_t index)
{
	for (unsigned tier = 0; tier < TIERS; tier++)
		if (portal_list(space, index, tier)->length != 0)
			return ANSWER_NOT_EMPTY;
	if (space->portals[index].pending != 0)
		return ANSWER_PENDING;
	unexpected_forget(space, index);
	portal_turn(space, index, PORTAL_FREE);
	return ANSWER_OK;
}

static enum answer portal_disable(struct space *space, uint32_t index)
{
	portal_turn(space, index, PORTAL_DISABLED);
	return space->portals[index].pending != 0 ? ANSWER_PENDING : ANSWER_OK;
}

enum answer portal_answer(struct space *space, const struct command *command)
{
	uint32_t index = command->object.index;
	uint32_t state;

	if (index >= space->segment->limits.portals)
		return ANSWER_GONE;
	state = atomic_load_explicit(
		&segment_portal(space->segment, index)->state, memory_order_relaxed);
	if (command->kind == COMMAND_PORTAL_OPEN)
		return state == PORTAL_CLAIMED ? portal_open(space, command) : ANSWER_GONE;
	if (state != PORTAL_ENABLED && state != PORTAL_DISABLED)
		return ANSWER_GONE;
	switch (command->kind) {
	case COMMAND_PORTAL_CLOSE:
		return portal_close(space, index);
	case COMMAND_PORTAL_ENABLE:
		portal_turn(space, index, PORTAL_ENABLED);
		return ANSWER_OK;
	default:
		return portal_disable(space, index);
	}
}

uint64_t engine_tell_portal(
	const struct engine *engine, uint32_t space, uint32_t portal, struct report *report)
{
	const struct space *told = engine->spaces[space];
	const struct tier_portal *state = &told->portals[portal];

	owner_check(&engine->owner);
	report_flag(report, "flow_control", state->controlled);
	report_flag(report, "owes_disabled", state->owes);
	report_number(report, "unexpected", told->kept_lists[portal].length);
	report_number(report, "pending", state->pending);
	return state->queue;
}
