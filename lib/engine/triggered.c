/* SPDX-License-Identifier: BSD-3-Clause */
/* triggered.c - see triggered.h. */
#include <engine/triggered.h>

#include <string.h>

#include <engine/rma.h>
#include <engine/statistics.h>
#include <engine/tier_entry.h>
#include <engine/tiers.h>

/* So many of a space wait no longer: their sender may give others. */
static void triggered_give(struct space *space, uint32_t count)
{
	atomic_fetch_sub_explicit(&space->segment->triggered, count, memory_order_relaxed);
}

struct event_counter *counter_of(const struct space *space, const struct command *command)
{
	struct event_counter *counter;

	if (command->object.index >= space->segment->limits.counters)
		return NULL;
	counter = segment_counter(space->segment, command->object.index);
	if (!gate_is(atomic_load_explicit(&counter->gate, memory_order_relaxed),
		    command->object.generation))
		return NULL;
	return counter;
}

void triggered_keep(struct space *space, const struct long_command *command)
{
	struct triggers *triggers = &space->engine->triggers;
	struct event_counter *counter = counter_of(space, &command->command);
	unsigned lines = command->command.lines;
	struct long_command kept;

	if (!counter || lines == 0 || lines >= RING_LINES) {
		space_count(space, commands_stale);
		triggered_give(space, 1);
		return;
	}
	if (!trigger_reserve(triggers, &counter->triggers)) {
		space_count(space, triggers_lost);
		triggered_give(space, 1);
		return;
	}
	counter->triggers->counter = atomic_load_explicit(&counter->gate, memory_order_relaxed);
	memcpy(&kept, command->further, lines * RING_BYTES);
	kept.command.space = space->number;
	trigger_add(triggers, counter->triggers, event_counter_sum(counter),
		command->command.object.other, &kept, lines);
}

/* COMMAND_ASK. */
static void append_asked(struct space *space, const struct long_command *command)
{
	const struct ask_line *line = (const struct ask_line *)(const void *)command->further[0];
	struct command append = {.kind = COMMAND_APPEND, .space = space->number};

	if (line->ask(line, &append))
		tiers_append(space, &append);
}

static void command_triggered(void *context, const struct long_command *command)
{
	struct engine *engine = context;
	struct space *space = space_find(engine, command->command.space);

	if (!space || space->kind != SPACE_TIERS) /* it was closed: triggered_close() */
		return;
	switch (command->command.kind) {
	case COMMAND_RMA:
		rma_command(space, command);
		break;
	case COMMAND_COUNTER_SET:
	case COMMAND_COUNTER_ADD:
	case COMMAND_WITHDRAW:
		if (tiers_answer(space, &command->command) != ANSWER_OK)
			space_count(space, commands_stale);
		break;
	case COMMAND_ASK:
		append_asked(space, command);
		break;
	case COMMAND_COUNTER_CANCEL:
		engine_answer(engine, command->command.reply, ANSWER_OK);
		return; /* it was none of those that are counted */
	default:
		break;
	}
	triggered_give(space, 1);
}

void triggered_run(struct engine *engine)
{
	unsigned left = TRIGGERED_RUN;

	/* An RMA operation needs memory for it. */
	while (left > 0 && triggers_are_ready(&engine->triggers) && operation_reserve(engine, 1))
		left -= triggers_run(&engine->triggers, 1, command_triggered, engine);
	engine->logged = true; /* so that this counts as work */
	engine->owes |= triggers_are_ready(&engine->triggers);
}

void triggered_drop(struct space *space, struct event_counter *counter)
{
	triggered_give(space, trigger_cancel(&space->engine->triggers, &counter->triggers));
}

void triggered_cancel(struct space *space, const struct command *command)
{
	struct triggers *triggers = &space->engine->triggers;
	struct event_counter *counter = counter_of(space, command);
	const struct long_command answer = {.command = *command};

	if (counter)
		triggered_drop(space, counter);
	if (counter && triggers_are_ready(triggers) &&
		trigger_reserve(triggers, &counter->triggers))
		trigger_ready(triggers, &answer, 1);
	else
		engine_answer(space->engine, command->reply, counter ? ANSWER_OK : ANSWER_GONE);
}

void triggered_close(struct space *space)
{
	struct engine *engine = space->engine;
	struct trigger *trigger;

	for (uint32_t i = 0; i < space->segment->limits.counters; i++)
		triggered_drop(space, segment_counter(space->segment, i));
	STAILQ_FOREACH (trigger, &engine->triggers.ready, next) {
		struct command *command = &trigger->command.command;

		if (command->space != space->number)
			continue;
		if (command->kind == COMMAND_COUNTER_CANCEL)
			engine_answer(engine, command->reply, ANSWER_CLOSED);
		command->space = SPACES; /* of none */
	}
}
