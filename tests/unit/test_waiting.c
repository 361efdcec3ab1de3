/* SPDX-License-Identifier: BSD-3-Clause */
/* test_waiting.c - waiting for several queues and at their descriptors, by one thread and by
 * several; built for a race detector as well. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include <sys/eventfd.h>

#include <base/barrier.h>
#include <base/handle.h>
#include <host/waiting.h>

#include "rig.h"
#include "../nap.h"

#define QUEUES 2
#define EVENTS 20000u /* of each queue */
#define ROOM   64

static struct rig *rig;
static uint64_t handles[QUEUES];
static struct queue_view views[QUEUES];

static int waiting_setup(void **state)
{
	int result = rig_setup(state);

	rig = *state;
	for (unsigned i = 0; i < QUEUES; i++) {
		handles[i] = rig_queue(rig, ROOM);
		views[i] = queue_view(rig->segment,
			segment_queue(rig->segment, handle_index(handles[i])), handles[i]);
	}
	return result;
}

/* As the poll core does. */
static bool event_log_in(unsigned i)
{
	struct logging logging = queue_claim(views[i].queue);

	if (!logging.slot)
		return false;
	for (unsigned word = 1; word < EVENT_WORDS; word++)
		atomic_store_explicit(&logging.slot->words[word], 0, memory_order_relaxed);
	queue_publish(&logging);
	return true;
}

static void ring(unsigned i)
{
	barrier_light();
	queue_ring(views[i].queue);
}

static bool readable(int fd, int timeout)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	return poll(&one, 1, timeout) == 1;
}

static enum queue_answer take(unsigned i)
{
	struct event event;

	return rig_take(rig->segment, handles[i], &event);
}

static uint32_t state_of(unsigned i)
{
	return atomic_load(&views[i].queue->watch);
}

static void queue_watch__costs_the_poll_core_one_write_for_many_events(void **state)
{
	struct queue *queue = views[0].queue;
	int fd = queue_watch(&views[0], rig->segment);
	eventfd_t count;

	(void)state;
	assert_true(fd >= 0);
	assert_false(readable(fd, 0));
	assert_int_equal(state_of(0), WATCH_ARMED);
	assert_int_equal(queue->sleepers, 1);
	for (unsigned i = 0; i < 10; i++) {
		assert_true(event_log_in(0));
		ring(0);
		assert_true(readable(fd, 0));
		assert_int_equal(queue->sleepers, 0); /* the next event meets nobody */
	}
	assert_int_equal(eventfd_read(fd, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(eventfd_write(fd, 1), 0);
	queue_lower(&views[0], rig->segment); /* too early */
	assert_true(readable(fd, 0));
	while (take(0) == QUEUE_EVENT)
		;
	assert_true(queue_is_raised(queue));
	queue_lower(&views[0], rig->segment);
	assert_false(readable(fd, 0));
	assert_int_equal(queue->sleepers, 1);
	close(fd);
}

static void queue_watch__of_a_queue_that_is_gone_is_readable_and_ends(void **state)
{
	struct queue *queue = views[0].queue;
	int fd = queue_watch(&views[0], rig->segment);

	(void)state;
	assert_int_equal(rig_queue_free(rig, handles[0]), 0);
	assert_true(readable(fd, 0));
	queue_lower(&views[0], rig->segment);
	assert_true(readable(fd, 0));
	assert_int_equal(queue_watch(&views[0], rig->segment), -1);
	queue_unwatch(queue);
	assert_int_equal(queue->sleepers, 0);
	assert_int_equal(state_of(0), WATCH_NONE);
	assert_true(readable(fd, 0));
	close(fd);
}

static void queue_watch__of_an_interface_that_goes_stays_readable(void **state)
{
	int fd = queue_watch(&views[0], rig->segment);

	(void)state;
	atomic_store(&rig->segment->closed, 1);
	queue_raise_for_good(views[0].queue);
	assert_true(readable(fd, 0));
	queue_lower(&views[0], rig->segment);
	assert_true(readable(fd, 0));
	queue_unwatch(views[0].queue);
	close(fd);
}

/* --- threads */

static _Atomic unsigned taken[QUEUES];
static _Atomic bool stop;

static bool look(void *context)
{
	const unsigned *set = context; /* two queues */

	for (unsigned i = 0; i < 2; i++)
		if (take(set[i]) == QUEUE_EVENT) {
			taken[set[i]]++;
			return true;
		}
	return atomic_load(&stop);
}

static uint64_t now_real(void *context)
{
	struct timespec time;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void *wait_run(void *argument)
{
	unsigned *set = argument;
	const struct queue_view both[] = {views[set[0]], views[set[1]]};
	const struct waiting waiting = {.queues = both,
		.count = 2,
		.segment = rig->segment,
		.look = look,
		.context = set,
		.now = now_real,
		.timeout = UINT64_MAX};

	while (!atomic_load(&stop))
		waiting_run(&waiting);
	return NULL;
}

static void *descriptor_run(void *argument)
{
	unsigned i = *(unsigned *)argument;
	int fd = queue_watch(&views[i], rig->segment);

	while (!atomic_load(&stop)) {
		readable(fd, -1);
		while (take(i) == QUEUE_EVENT)
			taken[i]++;
		if (queue_is_raised(views[i].queue))
			queue_lower(&views[i], rig->segment);
	}
	close(fd);
	return NULL;
}

/* Logs an event in either queue, mostly when all threads that wait have taken what was there and
 * sleep. */
static void threads_feed(void)
{
	unsigned logged[QUEUES] = {0};

	while (logged[0] + logged[1] < QUEUES * EVENTS) {
		for (unsigned i = 0; i < QUEUES; i++)
			if (logged[i] < EVENTS && event_log_in(i)) {
				logged[i]++;
				ring(i);
			}
		if (logged[0] % 16 != 0)
			continue;
		while (taken[0] != logged[0] || taken[1] != logged[1])
			nap();
	}
}

static void threads_meet(void *(*body)(void *), unsigned *arguments, unsigned count, unsigned size)
{
	pthread_t threads[4];

	taken[0] = taken[1] = 0;
	stop = false;
	if (body == descriptor_run) /* one at a time makes the eventfd */
		for (unsigned i = 0; i < QUEUES; i++)
			close(queue_watch(&views[i], rig->segment));
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, body, &arguments[i * size]), 0);
	threads_feed();
	stop = true;
	atomic_store(&rig->segment->closed, 1); /* so that descriptors stay readable */
	for (unsigned i = 0; i < QUEUES; i++) {
		queue_raise_for_good(views[i].queue);
		queue_wake(views[i].queue, INT_MAX);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < QUEUES; i++) {
		queue_unwatch(views[i].queue);
		assert_int_equal(views[i].queue->sleepers, 0);
		assert_int_equal(taken[i], EVENTS);
	}
}

static void waiting_run__of_threads_with_different_queues_misses_nothing(void **state)
{
	unsigned sets[4][2] = {{0, 1}, {1, 0}, {0, 0}, {1, 1}};

	(void)state;
	threads_meet(wait_run, sets[0], 4, 2);
}

static void queue_watch__of_threads_misses_nothing(void **state)
{
	unsigned queues[4] = {0, 0, 1, 1};

	(void)state;
	threads_meet(descriptor_run, queues, 4, 1);
}

/* --- with a helper */

static unsigned drives, sleeps, found;
static uint64_t slept; /* how long the last sleep may be, ns */
static bool shares;    /* the peer has the caller's CPU */
static uint64_t told;  /* ns */

/* Each look takes a microsecond. */
static uint64_t now_told(void *context)
{
	(void)context;
	return told += MICROSECOND;
}

static unsigned drive_nothing(void)
{
	drives++;
	return 0;
}

static unsigned rest_nothing(void)
{
	return 0;
}

static bool shares_told(void)
{
	return shares;
}

/* An event comes to a thread that sleeps, or to one that stays awake for so many turns. */
static bool look_for(void *turns)
{
	return sleeps > 0 || drives > *(const unsigned *)turns;
}

static enum progress_slept sleep_told(bool (*looks)(void *context), void *context, uint64_t limit)
{
	slept = limit;
	sleeps++;
	told += MILLISECOND;
	found += looks(context);
	return found ? PROGRESS_FOUND : PROGRESS_SLEPT;
}

static void wait_with(unsigned turns, unsigned (*rest)(void))
{
	const struct waiting waiting = {
		.queues = views,
		.count = 1,
		.segment = rig->segment,
		.look = look_for,
		.context = &turns,
		.drive = drive_nothing,
		.rest = rest,
		.sleep = sleep_told,
		.shares_cpu = shares_told,
		.now = now_told,
		.timeout = UINT64_MAX,
	};

	drives = sleeps = found = 0;
	assert_int_equal(waiting_run(&waiting), WAITING_FOUND);
}

static void wait_helped(unsigned turns)
{
	wait_with(turns, rest_nothing);
}

/* Nobody else drives, and yet the thread need not look for frames now and then. */
static void waiting_run__without_a_helper_sleeps_on_the_port(void **state)
{
	(void)state;
	shares = false;
	wait_with(UINT32_MAX, NULL);
	assert_int_equal(sleeps, 1);
	assert_true(slept == UINT64_MAX);
}

/* Also where nothing is known of the peer, as behind a node's uplink, and in a process that has one
 * CPU, whose peers have others. */
static void waiting_run__spins_before_it_sleeps(void **state)
{
	cpu_set_t all, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	shares = false;
	for (unsigned pinned = 0; pinned < 2; pinned++) {
		assert_int_equal(sched_setaffinity(0, sizeof(one), pinned ? &one : &all), 0);
		wait_helped(10); /* what comes soon is worth while */
		assert_int_equal(sleeps, 0);
		wait_helped(UINT32_MAX);
		assert_int_equal(sleeps, 1);
		assert_in_range(drives, 40, 60); /* 50 us */
	}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void waiting_run__of_a_thread_that_shares_its_cpu_sleeps_soon(void **state)
{
	(void)state;
	shares = true;
	wait_helped(3);
	wait_helped(UINT32_MAX);
	assert_int_equal(sleeps, 1);
	assert_in_range(drives, 1, 8);
}

#define test(name) cmocka_unit_test_setup_teardown(name, waiting_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(queue_watch__costs_the_poll_core_one_write_for_many_events),
		test(queue_watch__of_a_queue_that_is_gone_is_readable_and_ends),
		test(queue_watch__of_an_interface_that_goes_stays_readable),
		test(waiting_run__of_threads_with_different_queues_misses_nothing),
		test(queue_watch__of_threads_misses_nothing),
		test(waiting_run__without_a_helper_sleeps_on_the_port),
		test(waiting_run__spins_before_it_sleeps),
		test(waiting_run__of_a_thread_that_shares_its_cpu_sleeps_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
