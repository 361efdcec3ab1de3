/* SPDX-License-Identifier: BSD-3-Clause */
/* triggered.h - commands of spaces with tiers that wait for a counter (trigger.h), and when those
 * that are ready are run: after each command, and after each message or answer of such a space that
 * has been dealt with, up to TRIGGERED_RUN of them. What is left is run in the next turn, which
 * follows at once: so a chain that feeds itself leaves room for frames and commands.
 */
#ifndef ENGINE_TRIGGERED_H
#define ENGINE_TRIGGERED_H

#include <engine/state.h>

#define TRIGGERED_MAX (1u << 20) /* of an engine */
#define TRIGGERED_RUN 64

/* The counter that a command names by its index and generation; NULL: stale. */
struct event_counter *counter_of(const struct space *space, const struct command *command);
/* COMMAND_TRIGGER. */
void triggered_keep(struct space *space, const struct long_command *command);
/* COMMAND_COUNTER_CANCEL, which is answered when what was ready before has run. */
void triggered_cancel(struct space *space, const struct command *command);
/* A counter goes: what waits for it goes, too. */
void triggered_drop(struct space *space, struct event_counter *counter);
/* A space closes. */
void triggered_close(struct space *space);

/* Runs what is ready. */
void triggered_run(struct engine *engine);

static inline void triggered_settle(struct engine *engine)
{
	if (triggers_are_ready(&engine->triggers))
		triggered_run(engine);
}

#endif
