/* SPDX-License-Identifier: BSD-3-Clause */
/* test_progress.c - tests lib/host/progress.c: threads that drive an engine without a poll thread,
 * with an engine that only counts. Under ThreadSanitizer also: that one thread at a time drives. */
#include <pthread.h>
#include <sched.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <engine/statistics.h>
#include <host/progress.h>
#include <host/submission.h>

#include "fake_engine.h"

#define THREADS  4
#define COMMANDS 5000
#define FRAMES   3000
#define SERVED   (30 * SECOND) /* a frame takes no longer, however busy the machine is */

static void progress_take__lets_one_in(void **state)
{
	static struct progress progress;

	(void)state;
	assert_true(progress_take(&progress));
	assert_false(progress_take(&progress));
	progress_leave(&progress);
	assert_true(progress_take(&progress));
	progress_leave(&progress);
}

static void progress_drive__does_nothing_without_an_engine(void **state)
{
	static struct progress progress;

	(void)state;
	assert_int_equal(progress_drive(&progress), 0);
}

static void progress_leave__carries_out_what_came_meanwhile(void **state)
{
	static struct progress progress;
	struct command command = {.kind = COMMAND_PUT, .move.value = 5};
	struct engine *engine = fake_engine_create();
	struct submission submission = {.ring = engine->segment, .progress = &progress};

	(void)state;
	progress.engine = engine;
	assert_true(progress_take(&progress));
	submission_post(
		&submission, &command); /* as another thread would, while this one holds it */
	assert_int_equal(atomic_load(&engine->commands), 0);
	progress_leave(&progress);
	assert_int_equal(atomic_load(&engine->sum), 5);
	fake_engine_destroy(engine);
}

static void *post_many(void *submission)
{
	struct command command = {.kind = COMMAND_PUT, .move.value = 1};

	for (unsigned i = 0; i < COMMANDS; i++)
		submission_post(submission, &command);
	return NULL;
}

static void progress_drive__among_threads_strands_no_command(void **state)
{
	static struct progress progress;
	struct engine *engine = fake_engine_create();
	struct submission submission = {.ring = engine->segment, .progress = &progress};
	pthread_t threads[THREADS];

	(void)state;
	progress.engine = engine;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_many, &submission), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* Nobody drives any more, and yet: */
	assert_int_equal(atomic_load(&engine->commands), THREADS * COMMANDS);
	fake_engine_destroy(engine);
}

/* --- with a helper --- */

static const struct clock test_clock = {.now = fake_now};

struct helped {
	struct progress progress;
	struct engine *engine;
	struct helper *helper;
	struct submission submission;
	pthread_t thread;
	int port; /* what the port signals by; -1: it cannot */
	_Atomic bool over;
};

static void *run(void *helper)
{
	helper_run(helper);
	return NULL;
}

/* All but the helper's thread. */
static void helped_make(struct helped *helped, int port, const struct clock *clock)
{
	*helped = (struct helped){.engine = fake_engine_create(), .port = port};
	atomic_store(&helped->engine->descriptor, port + 1);
	helped->submission =
		(struct submission){.ring = helped->engine->segment, .progress = &helped->progress};
	helped->helper = helper_create(&helped->progress, helped->engine->segment, true, clock);
	assert_non_null(helped->helper);
	helped->progress.engine = helped->engine;
	helped->progress.helper = helped->helper;
}

static void helped_start_as(struct helped *helped, int port, void *(*body)(void *helper))
{
	helped_make(helped, port, &test_clock);
	assert_int_equal(pthread_create(&helped->thread, NULL, body, helped->helper), 0);
}

static void helped_start(struct helped *helped, int port)
{
	helped_start_as(helped, port, run);
}

static void helped_stop(struct helped *helped)
{
	WAIT_FOR(progress_take(&helped->progress));
	helped->progress.engine = NULL;
	helped->progress.helper = NULL;
	progress_leave(&helped->progress);
	helper_stop(helped->helper);
	assert_int_equal(pthread_join(helped->thread, NULL), 0);
	helper_destroy(helped->helper);
	fake_engine_destroy(helped->engine);
	if (helped->port >= 0)
		close(helped->port);
}

/* For the helper, or for a thread in its place. */
static bool is_armed(struct helped *helped)
{
	return atomic_load(&helped->progress.state) >= PROGRESS_ARMED;
}

static uint64_t sleeps(const struct helped *helped)
{
	return counter_read(&segment_counters(helped->engine->segment)->sleeps);
}

static void helper_run__arms_a_lock_that_nobody_uses_and_sleeps(void **state)
{
	struct helped helped;
	uint64_t turns;

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	WAIT_FOR(is_armed(&helped));
	turns = atomic_load(&helped.engine->turns);
	usleep(20000);
	assert_true(is_armed(&helped));
	assert_true(atomic_load(&helped.engine->turns) <= turns + 1);
	assert_true(atomic_load(&helped.engine->armed));
	helped_stop(&helped);
}

static void frames_are_served(int port, unsigned frames)
{
	struct helped helped;

	helped_start(&helped, port);
	for (unsigned i = 1; i <= frames; i++) {
		uint64_t sent;

		WAIT_FOR(is_armed(&helped));
		sent = fake_now(NULL);
		fake_frame(helped.engine);
		WAIT_FOR(atomic_load(&helped.engine->served) == i);
		assert_true(fake_now(NULL) - sent < SERVED);
	}
	helped_stop(&helped);
}

static void helper_run__serves_a_frame_that_the_port_signals(void **state)
{
	(void)state;
	frames_are_served(eventfd(0, EFD_NONBLOCK), 200);
}

static void helper_run__looks_at_a_port_that_cannot_signal(void **state)
{
	(void)state;
	frames_are_served(-1, 200);
}

static void helper_run__wakes_for_a_timer(void **state)
{
	struct helped helped;

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	for (unsigned i = 0; i < 20; i++) {
		uint64_t due = fake_now(NULL) + MILLISECOND;

		WAIT_FOR(progress_take(&helped.progress));
		atomic_store(&helped.engine->due, due);
		progress_leave(&helped.progress);
		assert_int_equal(progress_rest(&helped.progress), 0);
		WAIT_FOR(atomic_load(&helped.engine->due) == 0);
		assert_true(fake_now(NULL) - due < SERVED);
	}
	helped_stop(&helped);
}

static void progress_take__of_an_armed_lock_stops_the_signals(void **state)
{
	struct helped helped;

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	WAIT_FOR(is_armed(&helped));
	WAIT_FOR(progress_take(&helped.progress));
	assert_false(atomic_load(&helped.engine->armed));
	progress_leave(&helped.progress);
	/* Nobody calls any more, and yet (S2): */
	fake_frame(helped.engine);
	WAIT_FOR(atomic_load(&helped.engine->served) == 1);
	WAIT_FOR(is_armed(&helped));
	helped_stop(&helped);
}

static void progress_rest__hands_over_at_once(void **state)
{
	struct helped helped;

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	for (unsigned i = 0; i < 100; i++) {
		progress_drive(&helped.progress);
		while (progress_rest(&helped.progress) != 0)
			;
		WAIT_FOR(is_armed(&helped));
	}
	fake_frame(helped.engine);
	while (progress_rest(&helped.progress) != 0 || atomic_load(&helped.engine->served) == 0)
		sched_yield();
	helped_stop(&helped);
}

static void progress_rest__finds_what_came_before_it_armed(void **state)
{
	static struct progress progress;
	struct engine *engine = fake_engine_create();
	int port = eventfd(0, EFD_NONBLOCK);

	(void)state;
	atomic_store(&engine->descriptor, port + 1);
	progress.engine = engine;
	progress.helper = helper_create(&progress, engine->segment, true, &test_clock);
	assert_non_null(progress.helper);
	fake_frame(engine);
	assert_int_equal(progress_rest(&progress), 1);
	assert_int_equal(atomic_load(&engine->served), 1);
	assert_int_equal(atomic_load(&progress.state), PROGRESS_FREE);
	assert_int_equal(progress_rest(&progress), 0);
	assert_int_equal(atomic_load(&progress.state), PROGRESS_ARMED);
	assert_int_equal(counter_read(&segment_counters(engine->segment)->sleeps), 1);
	helper_destroy(progress.helper);
	fake_engine_destroy(engine);
	close(port);
}

static bool look_finds(void *finds)
{
	return *(const bool *)finds;
}

static bool finds_nothing = false, finds = true;

static void *frame_later(void *context)
{
	struct helped *helped = context;

	WAIT_FOR(is_armed(helped));
	usleep(2000);
	fake_frame(helped->engine);
	return NULL;
}

/* More than once: the first time may come before the other thread sleeps. */
static void *drive_on(void *context)
{
	struct helped *helped = context;

	while (!atomic_load(&helped->over)) {
		usleep(2000);
		progress_drive(&helped->progress);
	}
	return NULL;
}

/* Repeats until the thread has slept: the helper may hold the lock. */
static void sleep_well(struct helped *helped, uint64_t limit)
{
	while (progress_sleep(&helped->progress, look_finds, &finds_nothing, limit) ==
		PROGRESS_UNSLEPT)
		sched_yield();
}

static void progress_sleep__wakes_for_a_frame_and_serves_it(void **state)
{
	struct helped helped;

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	for (unsigned i = 1; i <= 20; i++) {
		pthread_t sender;

		assert_int_equal(pthread_create(&sender, NULL, frame_later, &helped), 0);
		while (atomic_load(&helped.engine->served) != i)
			sleep_well(&helped, SECOND);
		pthread_join(sender, NULL);
	}
	helped_stop(&helped);
}

static void progress_sleep__ends_when_another_thread_drives(void **state)
{
	struct helped helped;

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	for (unsigned i = 0; i < 20; i++) {
		uint64_t start = fake_now(NULL);
		pthread_t driver;

		atomic_store(&helped.over, false);
		assert_int_equal(pthread_create(&driver, NULL, drive_on, &helped), 0);
		sleep_well(&helped, 100 * SECOND);
		atomic_store(&helped.over, true);
		pthread_join(driver, NULL);
		assert_true(fake_now(NULL) - start < SERVED);
	}
	helped_stop(&helped);
}

static void progress_sleep__is_for_what_was_not_there_before(void **state)
{
	struct helped helped;
	uint64_t start = fake_now(NULL);
	enum progress_slept slept;

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	while ((slept = progress_sleep(&helped.progress, look_finds, &finds, 100 * SECOND)) ==
		PROGRESS_UNSLEPT)
		sched_yield();
	assert_true(slept == PROGRESS_FOUND || slept == PROGRESS_WORKED || slept == PROGRESS_SLEPT);
	assert_true(fake_now(NULL) - start < SERVED);
	sleep_well(&helped, MICROSECOND);
	helped_stop(&helped);
}

static void progress_sleep__needs_a_helper_and_a_port_that_signals(void **state)
{
	static struct progress empty;
	struct helped helped;

	(void)state;
	assert_int_equal(
		progress_sleep(&empty, look_finds, &finds_nothing, SECOND), PROGRESS_UNSLEPT);
	assert_int_equal(atomic_load(&empty.state), PROGRESS_FREE);
	helped_start(&helped, -1);
	assert_int_equal(progress_sleep(&helped.progress, look_finds, &finds_nothing, SECOND),
		PROGRESS_UNSLEPT);
	helped_stop(&helped);
}

/* In the helper's place, while it is slow: until it is called. */
static void *sit(void *context)
{
	struct helped *helped = context;

	assert_true(progress_take(&helped->progress));
	atomic_store(&helped->progress.helped, true);
	WAIT_FOR(atomic_load(&helped->progress.state) == PROGRESS_CALLED);
	atomic_store(&helped->progress.helped, false);
	progress_leave(&helped->progress);
	return NULL;
}

/* S6. */
static void progress_sleep__makes_the_helper_release_the_lock(void **state)
{
	struct helped helped;
	pthread_t sitter;

	(void)state;
	helped_make(&helped, eventfd(0, EFD_NONBLOCK), &test_clock);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(pthread_create(&sitter, NULL, sit, &helped), 0);
		WAIT_FOR(atomic_load(&helped.progress.helped));
		sleep_well(&helped, MICROSECOND);
		pthread_join(sitter, NULL);
	}
	helper_destroy(helped.helper);
	fake_engine_destroy(helped.engine);
	close(helped.port);
}

static void helper_run__keeps_away_while_the_program_drives(void **state)
{
	struct helped helped;
	uint64_t end, last, now;
	unsigned away = 0; /* how often this thread had no CPU, so that the helper may drive */

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	now = fake_now(NULL);
	end = now + 20 * MILLISECOND;
	while (now < end) {
		last = now;
		progress_drive(&helped.progress);
		now = fake_now(NULL);
		away += now - last >= 40 * MICROSECOND;
	}
	assert_true(sleeps(&helped) < 15 + 2 * away);
	helped_stop(&helped);
}

static void progress_command__of_an_armed_lock_strands_no_command(void **state)
{
	struct helped helped;
	struct command command = {.kind = COMMAND_PUT, .move.value = 1};

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	for (unsigned i = 1; i <= 200; i++) {
		WAIT_FOR(is_armed(&helped));
		assert_true(ring_put(segment_ring(helped.engine->segment), &command));
		progress_command(&helped.progress);
		WAIT_FOR(atomic_load(&helped.engine->commands) == i);
	}
	helped_stop(&helped);
}

/* A program's thread: drives, posts, rests, is away. */
static void *program_live(void *context)
{
	struct helped *helped = context;
	struct command command = {.kind = COMMAND_PUT, .move.value = 1};

	for (unsigned i = 0; i < COMMANDS / 5; i++) {
		switch (i % 5) {
		case 0:
			progress_drive(&helped->progress);
			break;
		case 1:
			while (progress_rest(&helped->progress) != 0)
				;
			break;
		case 2:
			usleep(i % 200);
			break;
		case 3:
			progress_sleep(
				&helped->progress, look_finds, &finds_nothing, 300 * MICROSECOND);
			break;
		default:
			sched_yield();
		}
		submission_post(&helped->submission, &command);
	}
	return NULL;
}

/* The other end: each frame is served before the next one comes. NULL: all were. */
static void *frames_send(void *context)
{
	struct helped *helped = context;
	struct engine *engine = helped->engine;

	for (unsigned i = 1; i <= FRAMES; i++) {
		uint64_t sent = fake_now(NULL);

		fake_frame(engine);
		while (atomic_load(&engine->served) != i) {
			if (fake_now(NULL) - sent > 4 * SERVED)
				return helped;
			sched_yield();
		}
	}
	return NULL;
}

/* S1, S2. More threads than CPUs, so that each of them is preempted at any point. */
static void helper_run__among_threads_leaves_nothing_unserved(void **state)
{
	static struct helped helped;
	pthread_t threads[THREADS], sender;
	void *unserved;

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	assert_int_equal(pthread_create(&sender, NULL, frames_send, &helped), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, program_live, &helped), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&helped.engine->commands), THREADS * COMMANDS / 5);
	pthread_join(sender, &unserved);
	assert_null(unserved);
	helped_stop(&helped);
}

/* --- what a sleep costs */

/* System calls of the sleeps of one thread. */
struct calls {
	_Atomic unsigned polls, timers, sets;
};
static struct calls of_program, of_helper;
static _Thread_local struct calls *calls = &of_program;

int __wrap_ppoll(
	struct pollfd *polled, nfds_t count, const struct timespec *limit, const sigset_t *signals);
int __real_ppoll(
	struct pollfd *polled, nfds_t count, const struct timespec *limit, const sigset_t *signals);
int __wrap_ppoll(
	struct pollfd *polled, nfds_t count, const struct timespec *limit, const sigset_t *signals)
{
	atomic_fetch_add(&calls->polls, 1);
	return __real_ppoll(polled, count, limit, signals);
}

int __wrap_timerfd_settime(
	int fd, int flags, const struct itimerspec *time, struct itimerspec *before);
int __real_timerfd_settime(
	int fd, int flags, const struct itimerspec *time, struct itimerspec *before);
int __wrap_timerfd_settime(
	int fd, int flags, const struct itimerspec *time, struct itimerspec *before)
{
	atomic_fetch_add(&calls->timers, 1);
	return __real_timerfd_settime(fd, flags, time, before);
}

int __wrap_epoll_ctl(int set, int what, int fd, struct epoll_event *event);
int __real_epoll_ctl(int set, int what, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int set, int what, int fd, struct epoll_event *event)
{
	atomic_fetch_add(&calls->sets, 1);
	return __real_epoll_ctl(set, what, fd, event);
}

int __wrap_epoll_wait(int set, struct epoll_event *events, int count, int limit);
int __real_epoll_wait(int set, struct epoll_event *events, int count, int limit);
int __wrap_epoll_wait(int set, struct epoll_event *events, int count, int limit)
{
	atomic_fetch_add(&calls->sets, 1);
	return __real_epoll_wait(set, events, count, limit);
}

static void calls_forget(struct calls *of)
{
	atomic_store(&of->polls, 0);
	atomic_store(&of->timers, 0);
	atomic_store(&of->sets, 0);
}

static void *run_counted(void *helper)
{
	calls = &of_helper;
	helper_run(helper);
	return NULL;
}

/* No other thread takes the lock, so each frame wakes the helper once. */
static void helper_run__sleeps_by_one_call(void **state)
{
	const unsigned frames = 50;
	struct helped helped;
	uint64_t start;

	(void)state;
	helped_start_as(&helped, eventfd(0, EFD_NONBLOCK), run_counted);
	WAIT_FOR(is_armed(&helped));
	calls_forget(&of_helper);
	start = fake_now(NULL);
	for (unsigned i = 1; i <= frames; i++) {
		fake_frame(helped.engine);
		WAIT_FOR(atomic_load(&helped.engine->served) == i && is_armed(&helped));
	}
	/* It wakes each second as well, and may be about to sleep. */
	assert_true(atomic_load(&of_helper.polls) <=
		    frames + 1 + 2 * (fake_now(NULL) - start) / SECOND);
	assert_int_equal(atomic_load(&of_helper.timers), 0);
	assert_int_equal(atomic_load(&of_helper.sets), 0);
	helped_stop(&helped);
}

/* Sends a frame once the lock is in the given state. */
struct sender {
	struct helped *helped;
	uint32_t state;
};

static void *frame_when(void *context)
{
	const struct sender *sender = context;
	struct helped *helped = sender->helped;

	calls = &of_helper;
	WAIT_FOR(atomic_load(&helped->progress.state) == sender->state);
	fake_frame(helped->engine);
	return NULL;
}

static void sleep_until_frame(struct sender *sender)
{
	pthread_t thread;
	enum progress_slept slept;

	assert_int_equal(pthread_create(&thread, NULL, frame_when, sender), 0);
	do
		slept = progress_sleep(
			&sender->helped->progress, look_finds, &finds_nothing, 100 * SECOND);
	while (slept == PROGRESS_UNSLEPT);
	assert_int_equal(slept, PROGRESS_WORKED);
	pthread_join(thread, NULL);
}

static uint64_t step; /* of the helper's time, with each look */

static uint64_t now_by_steps(void *context)
{
	static uint64_t now;

	(void)context;
	return now += step;
}

/* Sleeps that are so long, by the helper's clock; the helper has no thread. */
static void check_calls(uint64_t each, unsigned timers)
{
	static const struct clock clock = {.now = now_by_steps};
	struct helped helped;
	struct sender sender = {&helped, each < MILLISECOND ? PROGRESS_LENT : PROGRESS_RELIEVED};

	step = each;
	helped_make(&helped, eventfd(0, EFD_NONBLOCK), &clock);
	progress_sleep(&helped.progress, look_finds, &finds, SECOND);
	calls_forget(&of_program);
	for (unsigned i = 1; i <= 10; i++)
		sleep_until_frame(&sender);
	assert_int_equal(atomic_load(&of_program.polls), 10);
	assert_int_equal(atomic_load(&of_program.timers), 10 * timers);
	assert_int_equal(atomic_load(&of_program.sets), 0);
	helper_destroy(helped.helper);
	fake_engine_destroy(helped.engine);
	close(helped.port);
}

static void progress_sleep__that_is_short_costs_one_call(void **state)
{
	(void)state;
	check_calls(100 * MICROSECOND, 0);
}

/* Else the helper would wake from its nap, only to see that the lock is lent. */
static void progress_sleep__that_is_long_sets_the_timer(void **state)
{
	(void)state;
	check_calls(MILLISECOND, 2);
}

/* S3. */
static void progress_sleep__sets_the_timer_of_a_helper_that_was_relieved(void **state)
{
	struct helped helped;
	struct sender sender = {&helped, PROGRESS_RELIEVED};

	(void)state;
	helped_start(&helped, eventfd(0, EFD_NONBLOCK));
	for (unsigned i = 1; i <= 20; i++) {
		sleep_until_frame(&sender);
		assert_int_equal(atomic_load(&helped.engine->served), 2 * i - 1);
		/* The program is elsewhere from here on. */
		fake_frame(helped.engine);
		WAIT_FOR(atomic_load(&helped.engine->served) == 2 * i);
	}
	helped_stop(&helped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_take__lets_one_in),
		cmocka_unit_test(progress_drive__does_nothing_without_an_engine),
		cmocka_unit_test(progress_leave__carries_out_what_came_meanwhile),
		cmocka_unit_test(progress_drive__among_threads_strands_no_command),
		cmocka_unit_test(helper_run__arms_a_lock_that_nobody_uses_and_sleeps),
		cmocka_unit_test(helper_run__serves_a_frame_that_the_port_signals),
		cmocka_unit_test(helper_run__looks_at_a_port_that_cannot_signal),
		cmocka_unit_test(helper_run__wakes_for_a_timer),
		cmocka_unit_test(progress_take__of_an_armed_lock_stops_the_signals),
		cmocka_unit_test(progress_rest__hands_over_at_once),
		cmocka_unit_test(progress_rest__finds_what_came_before_it_armed),
		cmocka_unit_test(progress_sleep__wakes_for_a_frame_and_serves_it),
		cmocka_unit_test(progress_sleep__ends_when_another_thread_drives),
		cmocka_unit_test(progress_sleep__is_for_what_was_not_there_before),
		cmocka_unit_test(progress_sleep__needs_a_helper_and_a_port_that_signals),
		cmocka_unit_test(progress_sleep__makes_the_helper_release_the_lock),
		cmocka_unit_test(helper_run__keeps_away_while_the_program_drives),
		cmocka_unit_test(progress_command__of_an_armed_lock_strands_no_command),
		cmocka_unit_test(helper_run__among_threads_leaves_nothing_unserved),
		cmocka_unit_test(helper_run__sleeps_by_one_call),
		cmocka_unit_test(progress_sleep__that_is_short_costs_one_call),
		cmocka_unit_test(progress_sleep__that_is_long_sets_the_timer),
		cmocka_unit_test(progress_sleep__sets_the_timer_of_a_helper_that_was_relieved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
