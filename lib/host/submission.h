/* SPDX-License-Identifier: BSD-3-Clause */
/* submission.h - how an application thread gets a command to the engine, and the answer back. Any
 * thread.
 *
 *     application thread                              poll core
 *
 *     reply slot: state = pending
 *     command            -- ring, doorbell -->        carries it out
 *     spins,                                          slot.answer
 *     then slot.sleeping = 1, looks once more  <--    slot.state = done, looks at slot.sleeping
 *     and sleeps on slot.state
 *
 * S1. A command is never lost: while the ring is full its sender sleeps a little, again and again,
 *     until there is room.
 *
 * S2. The caller keeps the engine alive meanwhile (the front end counts its visitors).
 */
#ifndef HOST_SUBMISSION_H
#define HOST_SUBMISSION_H

#include <string.h>

#include <base/core.h>
#include <engine/command.h>
#include <engine/segment.h>
#include <host/progress.h>

struct submission {
	struct segment *segment; /* of the space */
	struct segment *ring;    /* the engine's, with the ring and the reply slots of all spaces */
	uint8_t space;           /* of the engine, whose objects commands name */
	struct progress *progress; /* PTL_PROGRESS=inline: callers drive the engine; NULL: a
			      poll thread does */
};

/* PTL_PROGRESS=inline: a put that can be carried out at once, by this thread. Returns false if
 * nothing was done; then it is to be charged and posted, if it can be. */
static inline bool submission_put(const struct submission *submission, struct region *region,
	const struct move *move, bool acknowledge)
{
	struct progress *progress = submission->progress;
	bool done;

	if (!progress || !progress_take(progress))
		return false;
	done = engine_put(progress->engine, submission->space, region, move, acknowledge); /* S2 */
	progress_leave(progress);
	return done;
}

/* The same for an RMA operation, as engine_rma() has it. Returns false if nothing was done; then it
 * is to be posted as a COMMAND_RMA. */
static inline bool submission_begin(const struct submission *submission, const struct move *move,
	const struct rma_line *line, const void *given)
{
	struct progress *progress = submission->progress;
	bool done;

	if (!progress || !progress_take(progress))
		return false;
	done = engine_rma(progress->engine, submission->space, move, line, given); /* S2 */
	progress_leave(progress);
	return done;
}

/* Posts a command that has no answer. The command gets the number of its space. */
void submission_post(const struct submission *submission, struct command *command)
	CORE_API(submission_post);

/* The same for a command of 1 to RING_LINES lines. */
void submission_post_lines(const struct submission *submission, struct long_command *command,
	unsigned lines) CORE_API(submission_post_lines);

/* Posts a COMMAND_RECEIVE to a space of two-sided messages. Returns false if the command may wait
 * in the ring. */
static inline bool submission_receive(const struct submission *submission, struct command *receive)
{
	struct progress *progress = submission->progress;
	bool done = false;

	if (progress && progress_take(progress)) {
		done = engine_receive(progress->engine, submission->space, receive); /* S2 */
		progress_leave(progress);
	}
	if (!done)
		submission_post(submission, receive);
	return done;
}

/* The same for a COMMAND_LETTER, with its data. */
static inline void submission_letter(
	const struct submission *submission, const struct command *letter, const void *data)
{
	struct progress *progress = submission->progress;
	struct long_command command; /* lines are written as far as they are used */
	bool done = false;

	if (progress && progress_take(progress)) {
		done = engine_letter(progress->engine, submission->space, letter, data); /* S2 */
		progress_leave(progress);
	}
	if (done)
		return;
	command.command = *letter;
	if (letter->length > 0)
		memcpy(command.further, data, letter->length);
	submission_post_lines(submission, &command, letter_lines(letter->length));
}

/* Sends a command with a reply slot (of its own choice) and waits for the answer.
 * after, before: of COMMAND_REGION_UPDATE, either may be NULL; before is written when the
 * answer says so. */
enum answer submission_call(const struct submission *submission, struct command *command,
	const struct region_description *after, struct region_description *before);
/* The same for COMMAND_PING and COMMAND_HOST_FIND. The answer may come from another engine of this
 * process: if callers drive, drive() gives all of them a turn and says how much was done. report is
 * written when the answer is ANSWER_OK; NULL: COMMAND_HOST_FIND. */
enum answer submission_ping(const struct submission *submission, struct command *command,
	unsigned (*drive)(void), struct ping_report *report) CORE_API(submission_ping);

#endif
