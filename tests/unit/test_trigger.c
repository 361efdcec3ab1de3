/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trigger.c - triggered operations, against an oracle that keeps all of them in one list in
 * the order in which they were given.
 *
 * Covers: lib/engine/trigger.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <base/random.h>
#include <engine/trigger.h>

#define COUNTERS 4
#define MOST     400 /* triggers at once */
#define TRACES   60
#define STEPS    4000
#define LOG      1000000

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_next(&random_state) % n);
}

/* --- memory that runs out: the percentage of allocations that fail --- */

static uint32_t memory_failures;

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	return memory_failures > 0 && random_below(100) < memory_failures
		       ? NULL
		       : __real_realloc(memory, size);
}

/* --- triggers of some counters; a command has a name, and may add to a counter --- */

#define NOTHING COUNTERS /* what a command adds to that adds nothing */

static struct triggers triggers;
static struct trigger_list *lists[COUNTERS];
static uint64_t sums[COUNTERS];
static uint32_t given; /* names */

static struct {
	uint32_t name;
	uint32_t target;
} ran[LOG];
static uint32_t ran_count;

static void counter_change(uint32_t counter, uint64_t sum)
{
	sums[counter] = sum;
	trigger_review(&triggers, lists[counter], sum);
}

static struct long_command command_of(uint32_t name, uint32_t target)
{
	struct long_command command;

	memset(&command, 0, sizeof(command));
	command.command.object.index = name;
	command.command.object.portal = target;
	command.further[RING_LINES - 2][RING_BYTES / 8 - 1] = ~(uint64_t)name;
	return command;
}

static void run(void *context, const struct long_command *command)
{
	uint32_t name = command->command.object.index;
	uint32_t target = command->command.object.portal;

	assert_ptr_equal(context, &triggers);
	assert_int_equal(command->further[RING_LINES - 2][RING_BYTES / 8 - 1], ~(uint64_t)name);
	ran[ran_count].name = name;
	ran[ran_count++].target = target;
	if (target < COUNTERS)
		counter_change(target, sums[target] + 1);
}

static void start(void)
{
	triggers_init(&triggers, MOST);
	memset(lists, 0, sizeof(lists));
	memset(sums, 0, sizeof(sums));
	given = ran_count = 0;
}

static void end(void)
{
	for (uint32_t c = 0; c < COUNTERS; c++)
		trigger_cancel(&triggers, &lists[c]);
	triggers_free(&triggers);
	memory_failures = 0;
}

static bool add(uint32_t counter, uint64_t threshold, uint32_t target)
{
	const struct long_command command = command_of(given, target);

	if (!trigger_reserve(&triggers, &lists[counter]))
		return false;
	trigger_add(&triggers, lists[counter], sums[counter], threshold, &command, RING_LINES);
	given++;
	return true;
}

static void check_ran(const uint32_t *names, uint32_t count)
{
	assert_int_equal(ran_count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(ran[i].name, names[i]);
}

/* --- the oracle --- */

static struct {
	uint32_t name, counter, target;
	uint64_t threshold;
} waiting[MOST];
static uint32_t waiting_count;
static uint64_t oracle_sums[COUNTERS];
static struct {
	uint32_t name, target;
} ready[LOG];
static uint32_t ready_count, ready_done;

static void oracle_change(uint32_t counter, uint64_t sum)
{
	uint32_t left = 0;

	oracle_sums[counter] = sum;
	for (uint32_t i = 0; i < waiting_count; i++) {
		if (waiting[i].counter == counter && waiting[i].threshold <= sum) {
			ready[ready_count].name = waiting[i].name;
			ready[ready_count++].target = waiting[i].target;
		} else {
			waiting[left++] = waiting[i];
		}
	}
	waiting_count = left;
}

static void oracle_add(uint32_t name, uint32_t counter, uint64_t threshold, uint32_t target)
{
	waiting[waiting_count].name = name;
	waiting[waiting_count].counter = counter;
	waiting[waiting_count].target = target;
	waiting[waiting_count++].threshold = threshold;
	oracle_change(counter, oracle_sums[counter]);
}

static uint32_t oracle_run(uint32_t limit)
{
	uint32_t done = 0;

	for (; done < limit && ready_done < ready_count; done++) {
		uint32_t target = ready[ready_done++].target;

		if (target < COUNTERS)
			oracle_change(target, oracle_sums[target] + 1);
	}
	return done;
}

static uint32_t oracle_cancel(uint32_t counter)
{
	uint32_t left = 0, count;

	for (uint32_t i = 0; i < waiting_count; i++)
		if (waiting[i].counter != counter)
			waiting[left++] = waiting[i];
	count = waiting_count - left;
	waiting_count = left;
	return count;
}

static void check(void)
{
	assert_int_equal(ran_count, ready_done);
	for (uint32_t i = ran_count > 50 ? ran_count - 50 : 0; i < ran_count; i++)
		assert_int_equal(ran[i].name, ready[i].name);
	assert_int_equal(triggers_are_ready(&triggers), ready_done < ready_count);
	assert_int_equal(pool_taken(&triggers.pool), waiting_count + ready_count - ready_done);
}

/* --- random traces --- */

static void step_add(uint32_t spread)
{
	uint32_t counter = random_below(COUNTERS);
	uint64_t threshold = oracle_sums[counter] + random_below(spread);
	uint32_t target = random_below(2 * COUNTERS);
	bool full = pool_taken(&triggers.pool) == MOST;
	bool added;

	if (target > NOTHING)
		target = NOTHING;
	added = add(counter, threshold, target);
	if (memory_failures == 0)
		assert_int_equal(added, !full);
	if (added)
		oracle_add(given - 1, counter, threshold, target);
}

static void step_change(void)
{
	uint32_t counter = random_below(COUNTERS);
	uint64_t sum = oracle_sums[counter] + random_below(4);

	if (random_below(30) == 0)
		sum = random_below(2) == 0 ? 0 : sum + 100;
	oracle_change(counter, sum);
	counter_change(counter, sum);
}

static void step_cancel(void)
{
	uint32_t counter = random_below(COUNTERS);

	assert_int_equal(trigger_cancel(&triggers, &lists[counter]), oracle_cancel(counter));
	assert_null(lists[counter]);
}

static void step(uint32_t spread)
{
	uint32_t kind = random_below(100);
	uint32_t limit = random_below(6);

	if (kind < 60)
		step_add(spread);
	else if (kind < 75)
		step_change();
	else if (kind < 99)
		assert_int_equal(triggers_run(&triggers, limit, run, &triggers), oracle_run(limit));
	else
		step_cancel();
	check();
}

static void triggers__run_as_the_oracle_in_random_traces(void **state)
{
	(void)state;
	for (uint32_t trace = 0; trace < TRACES; trace++) {
		random_state = trace;
		start();
		waiting_count = ready_count = ready_done = 0;
		memset(oracle_sums, 0, sizeof(oracle_sums));
		memory_failures = trace % 4 == 3 ? 30 : 0;
		for (uint32_t s = 0; s < STEPS; s++)
			step(trace % 3 == 0 ? 3 : 60);
		end();
	}
}

/* --- what matters most, by hand --- */

static void triggers__run_in_the_order_in_which_they_were_given(void **state)
{
	static const uint32_t names[] = {0, 1, 2, 3};

	(void)state;
	start();
	assert_true(add(0, 5, NOTHING));
	assert_true(add(0, 3, NOTHING));
	assert_true(add(0, 4, NOTHING));
	assert_true(add(0, 1, NOTHING));
	assert_true(add(0, 6, NOTHING));
	counter_change(0, 5);
	assert_int_equal(ran_count, 0); /* T2 */
	assert_int_equal(triggers_run(&triggers, 100, run, &triggers), 4);
	check_ran(names, 4);
	end();
}

/* A put, then an increment of another counter, for which a put waits. */
static void triggers__of_a_later_change_run_behind_those_of_an_earlier_one(void **state)
{
	static const uint32_t names[] = {1, 2, 3, 0};

	(void)state;
	start();
	assert_true(add(1, 1, NOTHING));
	assert_true(add(0, 1, 1));
	assert_true(add(0, 1, NOTHING));
	assert_true(add(0, 1, NOTHING));
	counter_change(0, 1);
	assert_int_equal(triggers_run(&triggers, 100, run, &triggers), 4);
	check_ran(names, 4);
	end();
}

static void triggers__that_feed_each_other_stop_at_the_limit(void **state)
{
	(void)state;
	start();
	for (uint32_t i = 1; i <= 100; i++)
		assert_true(add(0, i, 0));
	counter_change(0, 1);
	assert_int_equal(triggers_run(&triggers, 64, run, &triggers), 64);
	assert_true(triggers_are_ready(&triggers));
	assert_int_equal(triggers_run(&triggers, 64, run, &triggers), 36);
	assert_int_equal(sums[0], 101);
	assert_int_equal(pool_taken(&triggers.pool), 0);
	end();
}

/* T3. A command put behind the ready ones is run after them: what a cancel answers with. */
static void trigger_cancel__leaves_what_is_due(void **state)
{
	static const uint32_t names[] = {0, 77};
	const struct long_command answer = command_of(77, NOTHING);

	(void)state;
	start();
	assert_true(add(0, 1, NOTHING));
	assert_true(add(0, 2, NOTHING));
	counter_change(0, 1);
	assert_int_equal(trigger_cancel(&triggers, &lists[0]), 1);
	assert_true(trigger_reserve(&triggers, &lists[0]));
	trigger_ready(&triggers, &answer, RING_LINES);
	counter_change(0, 9);
	assert_int_equal(triggers_run(&triggers, 100, run, &triggers), 2);
	check_ran(names, 2);
	end();
}

static void trigger_add__of_a_threshold_that_is_reached_is_ready(void **state)
{
	(void)state;
	start();
	counter_change(0, 7);
	assert_true(add(0, 7, NOTHING));
	assert_true(add(0, 8, NOTHING));
	assert_true(add(0, 0, NOTHING));
	assert_int_equal(triggers_run(&triggers, 100, run, &triggers), 2);
	end();
}

static void trigger_reserve__refuses_more_than_there_may_be(void **state)
{
	(void)state;
	start();
	for (uint32_t i = 0; i < MOST; i++)
		assert_true(add(i % COUNTERS, i, NOTHING));
	assert_false(trigger_reserve(&triggers, &lists[0]));
	assert_int_equal(trigger_cancel(&triggers, &lists[1]), MOST / COUNTERS);
	assert_true(trigger_reserve(&triggers, &lists[0]));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(triggers__run_in_the_order_in_which_they_were_given),
		cmocka_unit_test(triggers__of_a_later_change_run_behind_those_of_an_earlier_one),
		cmocka_unit_test(triggers__that_feed_each_other_stop_at_the_limit),
		cmocka_unit_test(trigger_cancel__leaves_what_is_due),
		cmocka_unit_test(trigger_add__of_a_threshold_that_is_reached_is_ready),
		cmocka_unit_test(trigger_reserve__refuses_more_than_there_may_be),
		cmocka_unit_test(triggers__run_as_the_oracle_in_random_traces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
