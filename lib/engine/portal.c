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

/* Disables a Portal, whose event is owed. */
static void portal_stop(struct space *space, uint32_t index)
{
	PROBE(disable, index, space->engine->self.nid, space->engine->self.pid);
	portal_turn(space, index, PORTAL_DISABLED);
	space->portals[index].owes = true;
}

void portal_exhaust(struct space *space, uint32_t index)
{
	portal_stop(space, index);
	portal_settle(space, index);
}

/* All are disabled before the first says so, as its event finds the queue full once more. */
void portals_exhaust(struct space *space, const struct queue *queue)
{
	const uint32_t portals = space->segment->limits.portals;

	for (uint32_t i = 0; i < portals && queue->controlled != 0; i++)
		if (space->portals[i].controlled && portal_queue(&space->portals[i]) == queue &&
			atomic_load_explicit(&segment_portal(space->segment, i)->state,
				memory_order_relaxed) == PORTAL_ENABLED)
			portal_stop(space, i);
	for (uint32_t i = 0; i < portals; i++)
		if (portal_queue(&space->portals[i]) == queue)
			portal_settle(space, i);
}

/* Begins a round if the last one has ended. Returns how many places of so many are left. */
static uint64_t places_left(struct places *places, const struct queue *queue, uint64_t most)
{
	uint64_t all;

	if (queue->tail - queue_used(queue) >= places->until) {
		places->round++;
		places->until = queue->tail;
		places->before = places->given;
		places->given = 0;
		memset(places->of, 0, sizeof(places->of));
	}
	all = places->before + places->given;
	return all < most ? most - all : 0;
}

/* The places of a node or a process, in this round. */
static uint16_t *places_of(const struct space *space, struct places *places, uint64_t sharer)
{
	return &places->of[random_mix(space->engine->secret[0] + places->round * RANDOM_STEP +
				      sharer) %
			   PLACES_SHARES];
}

bool stranger_has_place(struct space *space, const struct queue *queue, uint64_t most,
	struct process from, bool refuses)
{
	struct places *places = space->strangers;
	const uint64_t left = places_left(places, queue, most);
	uint16_t *has = places_of(space, places, (uint64_t)refuses << 32 | from.nid);

	if (*has * UINT64_C(4) >= left || queue_used(queue) + queue->incoming >= queue->refuse_at)
		return false;
	++*has;
	places->given++;
	return true;
}

bool peer_has_place(
	struct space *space, const struct queue *queue, uint64_t most, struct process from)
{
	struct places *places = space->peers;
	const uint64_t left = places_left(places, queue, most);
	uint16_t *node = places_of(space, places, from.nid);
	uint16_t *process = places_of(space, places, ((uint64_t)from.pid + 1) << 32 | from.nid);

	if (*node * UINT64_C(2) >= left || *process * UINT64_C(2) >= left / 2 - *node)
		return false;
	++*node;
	++*process;
	places->given++;
	return true;
}

static enum answer portal_open(struct space *space, const struct command *command)
{
	uint32_t index = command->object.index;
	struct queue *queue = queue_named(space->segment, command->object.other);
	const bool shares = command->position == POSITION_SHARES;
	const uint64_t all = queue ? queue->refuse_at : 0;
	uint64_t most = all;

	if (command->object.most != 0 && command->object.most < most)
		most = command->object.most;
	space->portals[index] = (struct tier_portal){
		.queue = command->object.other,
		.logs = queue,
		.most = shares ? all : most,
		.shared = shares ? most : 0,
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
