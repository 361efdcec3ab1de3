/* SPDX-License-Identifier: BSD-3-Clause */
/* test_submission.c - tests lib/host/submission.c: commands to an engine, and answers back. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <host/submission.h>

#include "fake_engine.h"
#include "../nap.h"

#define THREADS 4
#define POSTS   (2 * COMMAND_RING) /* each thread, so that the ring is full at times */
#define CALLS   2000

/* A poll thread in its simplest form. */
struct core {
	struct engine *engine;
	_Atomic bool stop;
	pthread_t thread;
};

static void *core_run(void *argument)
{
	struct core *core = argument;

	while (!atomic_load(&core->stop))
		if (engine_poll(core->engine) == 0)
			nap();
	return NULL;
}

static void core_start(struct core *core)
{
	core->engine = fake_engine_create();
	atomic_store(&core->stop, false);
	assert_int_equal(pthread_create(&core->thread, NULL, core_run, core), 0);
}

static void core_stop(struct core *core)
{
	atomic_store(&core->stop, true);
	pthread_join(core->thread, NULL);
	engine_poll(core->engine);
}

static void submission_post__puts_the_command_into_the_ring(void **state)
{
	struct engine *engine = fake_engine_create();
	const struct submission submission = {.ring = engine->segment};
	struct command command = {.kind = COMMAND_PUT, .move.value = 7};

	(void)state;
	submission_post(&submission, &command);
	assert_true(engine_has_commands(engine));
	assert_int_equal(engine_poll(engine), 1);
	assert_int_equal(atomic_load(&engine->sum), 7);
	fake_engine_destroy(engine);
}

/* The fake counts the commands; a further line that it took for one would count, and add 9. */
static void submission_post_lines__puts_one_command(void **state)
{
	static struct progress progress;
	struct engine *engine = fake_engine_create();
	struct submission submission = {.ring = engine->segment};
	struct long_command command = {.command = {.kind = COMMAND_PUT, .move.value = 7}};

	(void)state;
	for (unsigned i = 0; i < RING_LINES - 1; i++)
		for (unsigned w = 0; w < RING_BYTES / 8; w++)
			command.further[i][w] = 9;
	for (unsigned lines = 1; lines <= RING_LINES; lines++)
		submission_post_lines(&submission, &command, lines);
	assert_int_equal(engine_poll(engine), RING_LINES);
	progress.engine = engine;
	submission.progress = &progress;
	submission_post_lines(&submission, &command, RING_LINES); /* carried out at once */
	assert_int_equal(atomic_load(&engine->commands), RING_LINES + 1);
	assert_int_equal(atomic_load(&engine->sum), 7 * (RING_LINES + 1));
	assert_false(engine_has_commands(engine));
	fake_engine_destroy(engine);
}

static void submission_post__rings_the_doorbell_of_a_sleeper(void **state)
{
	struct engine *engine = fake_engine_create();
	const struct submission submission = {.ring = engine->segment};
	struct command command = {.kind = COMMAND_PUT};

	(void)state;
	atomic_store(&engine->segment->doorbell.sleeping, 1);
	submission_post(&submission, &command);
	assert_int_equal(atomic_load(&engine->segment->doorbell.sleeping), 0);
	fake_engine_destroy(engine);
}

static void submission_post__with_a_free_lock_carries_the_command_out_itself(void **state)
{
	static struct progress progress;
	struct engine *engine = fake_engine_create();
	const struct submission submission = {.ring = engine->segment, .progress = &progress};
	struct command command = {.kind = COMMAND_PUT, .move.value = 3};

	(void)state;
	progress.engine = engine;
	submission_post(&submission, &command);
	assert_int_equal(atomic_load(&engine->sum), 3);
	assert_int_equal(atomic_load(&engine->turns), 1);
	assert_false(engine_has_commands(engine));
	fake_engine_destroy(engine);
}

static void submission_put__is_for_who_gets_the_lock(void **state)
{
	static struct progress progress;
	struct engine *engine = fake_engine_create();
	struct submission submission = {.ring = engine->segment};
	struct command command = {.kind = COMMAND_PUT, .move.value = 3};
	const struct move *move = &command.move;

	(void)state;
	/* a poll thread has the engine */
	assert_false(submission_put(&submission, NULL, move, false));
	submission.progress = &progress;
	progress.engine = engine;
	assert_true(progress_take(&progress));
	assert_false(submission_put(&submission, NULL, move, false));
	submission_post(&submission, &command); /* the holder of the lock carries it out */
	progress_leave(&progress);
	assert_int_equal(atomic_load(&engine->sum), 3);
	assert_true(submission_put(&submission, NULL, move, false));
	assert_int_equal(atomic_load(&engine->sum), 6);
	assert_int_equal(atomic_load(&progress.state), PROGRESS_FREE);
	fake_engine_destroy(engine);
}

/* As PtlPut does. */
static void *put_many(void *argument)
{
	const struct submission *submission = argument;
	struct command command = {.kind = COMMAND_PUT, .move.value = 2};

	for (unsigned i = 0; i < POSTS; i++)
		if (!submission_put(submission, NULL, &command.move, false))
			submission_post(submission, &command);
	return NULL;
}

static void *post_many(void *submission)
{
	struct command command = {.kind = COMMAND_PUT, .move.value = 2};

	for (unsigned i = 0; i < POSTS; i++)
		submission_post(submission, &command);
	return NULL;
}

static void in_threads(void *(*body)(void *), const struct submission *submission)
{
	struct submission copy = *submission;
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, body, &copy), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void submission_post__waits_for_room_and_loses_nothing(void **state)
{
	struct submission submission = {0};
	struct core core;

	(void)state;
	core_start(&core);
	submission.ring = core.engine->segment;
	in_threads(post_many, &submission);
	core_stop(&core);
	assert_int_equal(atomic_load(&core.engine->commands), THREADS * POSTS);
	assert_int_equal(atomic_load(&core.engine->sum), 2 * THREADS * POSTS);
	fake_engine_destroy(core.engine);
}

static void submission_put__among_threads_loses_nothing(void **state)
{
	static struct progress progress;
	struct engine *engine = fake_engine_create();
	const struct submission submission = {.ring = engine->segment, .progress = &progress};

	(void)state;
	progress.engine = engine;
	in_threads(put_many, &submission);
	assert_int_equal(atomic_load(&engine->commands), THREADS * POSTS);
	assert_int_equal(atomic_load(&engine->sum), 2 * THREADS * POSTS);
	fake_engine_destroy(engine);
}

/* The fake answers with the index, and moves `after` to `before`. */
static void call_one(const struct submission *submission, uint32_t number)
{
	struct command command = {.kind = COMMAND_REGION_UPDATE, .object.index = number};
	struct region_description after = {.start = number, .length = number + 1};
	struct region_description before = {0};

	assert_int_equal(submission_call(submission, &command, &after, &before), number);
	assert_int_equal(before.start, number);
	assert_int_equal(before.length, number + 1);
}

static void *call_many(void *submission)
{
	for (uint32_t i = 0; i < CALLS; i++)
		call_one(submission, i);
	return NULL;
}

static void submission_call__brings_everybody_his_own_answer(void **state)
{
	struct submission submission = {0};
	struct core core;

	(void)state;
	core_start(&core);
	submission.ring = core.engine->segment;
	in_threads(call_many, &submission);
	core_stop(&core);
	assert_int_equal(atomic_load(&core.engine->commands), THREADS * CALLS);
	fake_engine_destroy(core.engine);
}

static void submission_call__sleeps_until_the_answer_comes(void **state)
{
	struct submission submission = {0};
	struct core core;

	(void)state;
	core_start(&core);
	atomic_store(&core.engine->reluctant, true);
	submission.ring = core.engine->segment;
	for (uint32_t i = 0; i < 20; i++)
		call_one(&submission, i);
	core_stop(&core);
	fake_engine_destroy(core.engine);
}

static void submission_call__gives_its_slot_back(void **state)
{
	struct submission submission = {0};
	struct core core;

	(void)state;
	core_start(&core);
	submission.ring = core.engine->segment;
	for (uint32_t i = 0; i < 2 * REPLY_SLOTS; i++)
		call_one(&submission, i);
	core_stop(&core);
	fake_engine_destroy(core.engine);
}

static void submission_call__inline_is_answered_by_its_own_thread(void **state)
{
	static struct progress progress;
	struct engine *engine = fake_engine_create();
	const struct submission submission = {.ring = engine->segment, .progress = &progress};

	(void)state;
	progress.engine = engine;
	call_one(&submission, 5);
	in_threads(call_many, &submission);
	in_threads(post_many, &submission);
	assert_int_equal(atomic_load(&engine->commands), 1 + THREADS * (CALLS + POSTS));
	fake_engine_destroy(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(submission_post__puts_the_command_into_the_ring),
		cmocka_unit_test(submission_post_lines__puts_one_command),
		cmocka_unit_test(submission_post__rings_the_doorbell_of_a_sleeper),
		cmocka_unit_test(submission_post__with_a_free_lock_carries_the_command_out_itself),
		cmocka_unit_test(submission_put__is_for_who_gets_the_lock),
		cmocka_unit_test(submission_put__among_threads_loses_nothing),
		cmocka_unit_test(submission_post__waits_for_room_and_loses_nothing),
		cmocka_unit_test(submission_call__brings_everybody_his_own_answer),
		cmocka_unit_test(submission_call__sleeps_until_the_answer_comes),
		cmocka_unit_test(submission_call__gives_its_slot_back),
		cmocka_unit_test(submission_call__inline_is_answered_by_its_own_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
