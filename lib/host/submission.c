/* SPDX-License-Identifier: BSD-3-Clause */
/* submission.c - see submission.h. */
#include <host/submission.h>

#include <rte_pause.h>

#include <base/barrier.h>
#include <base/backoff.h>
#include <base/spinning.h>
#include <host/poller.h>
#include <pmd-glue/glue.h>

#define SLEEP_INLINE (50 * MICROSECOND) /* between looks at an engine that another drives */

#define ALWAYS_INLINE inline __attribute__((always_inline))

static ALWAYS_INLINE void command_put(
	const struct submission *submission, const struct command *command, unsigned lines)
{
	struct segment *segment = submission->ring;
	struct ring *ring = segment_ring(segment);
	unsigned looks = 0;

	while (!(lines == 1 ? ring_put(ring, command) : ring_put_lines(ring, command, lines))) {
		if (submission->progress)
			progress_drive(submission->progress);
		barrier_light();
		doorbell_ring(&segment->doorbell);
		backoff(&looks);
	}
}

/* The caller drives the engine itself. Returns false if another thread holds the lock, or the
 * command must wait in the ring. */
static bool command_drive(const struct submission *submission, const struct command *command)
{
	struct progress *progress = submission->progress;
	bool done;

	if (!progress_take(progress))
		return false;
	done = engine_execute(progress->engine, command); /* S2 */
	engine_push(progress->engine);
	progress_leave(progress);
	return done;
}

/* With lines a constant 1, as fast as if there were no others. */
static ALWAYS_INLINE void command_post(
	const struct submission *submission, struct command *command, unsigned lines)
{
	struct segment *segment = submission->ring;

	command->space = submission->space;
	if (!submission->progress) {
		command_put(submission, command, lines);
		barrier_light(); /* poller.h, P2 */
		doorbell_ring(&segment->doorbell);
		return;
	}
	if (command_drive(submission, command))
		return;
	command_put(submission, command, lines);
	progress_command(submission->progress);
}

void submission_post(const struct submission *submission, struct command *command)
{
	command_post(submission, command, 1);
}

void submission_post_lines(
	const struct submission *submission, struct long_command *command, unsigned lines)
{
	command_post(submission, &command->command, lines);
}

static uint32_t reply_take(const struct submission *submission)
{
	struct segment *segment = submission->ring;
	unsigned looks = 0;
	uint32_t slot;

	while ((slot = segment_take(segment, segment->free_replies)) == INDEX_NONE) {
		if (submission->progress)
			progress_drive(submission->progress);
		backoff(&looks);
	}
	return slot;
}

/* Of the calling thread's waits for answers. */
static _Thread_local struct spinning spinning;

/* drive: a turn of all engines that want one; NULL: of this one, if callers drive it. */
static void reply_wait(
	const struct submission *submission, struct reply *reply, unsigned (*drive)(void))
{
	uint64_t limit = submission->progress ? SLEEP_INLINE : UINT64_MAX;

	while (atomic_load_explicit(&reply->state, memory_order_acquire) != REPLY_DONE) {
		if (submission->progress &&
			(drive ? drive() : progress_drive(submission->progress)) != 0)
			continue;
		if (!doorbell_is_here(&submission->ring->doorbell) &&
			spinning_goes_on(&spinning, glue_now(NULL))) {
			rte_pause();
			continue;
		}
		/* Both words are seq_cst on both sides: the poll core sees that this thread is
		 * about to sleep, or this thread sees the answer. */
		atomic_store_explicit(&reply->sleeping, 1, memory_order_seq_cst);
		if (atomic_load_explicit(&reply->state, memory_order_seq_cst) != REPLY_DONE)
			futex_wait(&reply->state, REPLY_PENDING, limit);
	}
	spinning_end(&spinning, spinning.slept != 0 ? glue_now(NULL) : 0);
}

/* Sends a command that is to be answered in this slot, and waits until it is. */
static struct reply *command_call(const struct submission *submission, struct command *command,
	uint32_t slot, unsigned (*drive)(void))
{
	struct reply *reply = segment_reply(submission->ring, slot);

	/* The ring's release makes these visible before the command is. */
	atomic_store_explicit(&reply->state, REPLY_PENDING, memory_order_relaxed);
	atomic_store_explicit(&reply->sleeping, 0, memory_order_relaxed);
	command->reply = slot;
	command_post(submission, command, command_lines(command->kind));
	reply_wait(submission, reply, drive);
	return reply;
}

enum answer submission_call(const struct submission *submission, struct command *command,
	const struct region_description *after, struct region_description *before)
{
	uint32_t slot = reply_take(submission);
	struct reply *reply = segment_reply(submission->ring, slot);
	enum answer answer;

	if (after)
		reply->after = *after;
	answer = command_call(submission, command, slot, NULL)->answer;
	if (before)
		*before = reply->before;
	segment_give(submission->ring, submission->ring->free_replies, slot);
	return answer;
}

enum answer submission_ping(const struct submission *submission, struct command *command,
	unsigned (*drive)(void), struct ping_report *report)
{
	uint32_t slot = reply_take(submission);
	const struct reply *reply = command_call(submission, command, slot, drive);
	enum answer answer = reply->answer;

	if (report)
		*report = reply->ping;
	segment_give(submission->ring, submission->ring->free_replies, slot);
	return answer;
}
