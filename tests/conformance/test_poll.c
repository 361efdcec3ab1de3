/* SPDX-License-Identifier: BSD-3-Clause */
/* test_poll.c - postern_eq_poll() and postern_eq_fd(): waiting for several queues, with a timeout,
 * and in an event loop. */
#include "../nap.h"
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <postern.h>

#define FOREVER  UINT64_MAX
#define MOMENT   UINT64_C(2000000) /* ns */
#define MESSAGES (SANITIZED ? 2000u : 20000u)

/* Portal PORTAL + i of the other interface logs to queue i. */
static ptl_handle_eq_t queues[3];
static ptl_handle_md_t source;

static void target_on(unsigned i, ptl_size_t count)
{
	ptl_handle_me_t entry;

	queues[i] = queue_make(&there, count);
	assert_ok(PtlMEAttach(there.ni, (ptl_pt_index_t)(PORTAL + i), ANY_PROCESS, 0, EVERY_BIT,
		PTL_RETAIN, PTL_INS_AFTER, &entry));
	region_attach(entry, region(NULL, 0, PTL_MD_OP_PUT, queues[i]), PTL_RETAIN, PTL_RETAIN);
}

static void targets_make(ptl_size_t count)
{
	for (unsigned i = 0; i < COUNT(queues); i++)
		target_on(i, count);
	source = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));
}

/* Of this thread, ns. */
static uint64_t cpu_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

/* Two events for queue i, START and END. */
static void put_on(unsigned i, ptl_hdr_data_t value)
{
	assert_ok(PtlPut(
		source, PTL_NOACK_REQ, there.id, (ptl_pt_index_t)(PORTAL + i), 0, 0, 0, value));
}

static int poll_queues(uint64_t timeout, ptl_event_t *event, unsigned *which)
{
	return postern_eq_poll(queues, COUNT(queues), timeout, event, which);
}

static uint64_t time_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void postern_eq_poll__says_which_queue_had_the_event(void **state)
{
	ptl_event_t event;
	unsigned which = 99;

	(void)state;
	targets_make(EQ_ROOM);
	for (unsigned i = 0; i < COUNT(queues); i++) {
		put_on(i, i + 7);
		for (int end = 0; end < 2; end++) {
			assert_ok(poll_queues(FOREVER, &event, &which));
			assert_int_equal(which, i);
			assert_int_equal(event.type, end ? PTL_EVENT_PUT_END : PTL_EVENT_PUT_START);
			assert_int_equal(event.hdr_data, i + 7);
		}
	}
	put_on(1, 1);
	fence(&here, &there);
	put_on(0, 0);
	fence(&here, &there);
	assert_ok(postern_eq_poll(queues, 2, 0, &event, NULL)); /* the first queue first */
	assert_int_equal(event.hdr_data, 0);
	assert_ok(postern_eq_poll(&queues[1], 1, 0, &event, &which));
	assert_int_equal(which, 0);
	assert_int_equal(event.hdr_data, 1);
}

/* A thread that waits sleeps. By PTL_PROGRESS=inline it alone looks for frames, and has to wake for
 * that. */
static void postern_eq_poll__for_a_second_takes_hardly_any_cpu(void **state)
{
	const char *progress = getenv("PTL_PROGRESS");
	uint64_t before;
	ptl_event_t event;
	unsigned which;

	(void)state;
	if (SANITIZED || (progress && strcmp(progress, "inline") == 0))
		skip();
	targets_make(EQ_ROOM);
	before = cpu_now();
	assert_code(poll_queues(500 * MOMENT, &event, &which), PTL_EQ_EMPTY);
	assert_true(cpu_now() - before < MOMENT / 2);
}

static void postern_eq_poll__of_empty_queues_ends_after_its_timeout(void **state)
{
	ptl_event_t event;
	unsigned which = 99;
	uint64_t start;

	(void)state;
	targets_make(EQ_ROOM);
	assert_code(poll_queues(0, &event, &which), PTL_EQ_EMPTY);
	start = time_now();
	assert_code(poll_queues(MOMENT, &event, &which), PTL_EQ_EMPTY);
	assert_true(time_now() - start >= MOMENT - MOMENT / 10); /* another clock */
	assert_code(postern_eq_poll(queues, 1, MOMENT, &event, &which), PTL_EQ_EMPTY);
	assert_int_equal(which, 99);
}

static void postern_eq_poll__says_dropped_as_ptl_eq_get_does(void **state)
{
	ptl_event_t event;
	unsigned which;

	(void)state;
	targets_make(2);
	put_on(1, 1);
	put_on(1, 2);
	fence(&here, &there);
	assert_ok(poll_queues(0, &event, &which));
	assert_ok(poll_queues(0, &event, &which));
	put_on(1, 3);
	assert_code(poll_queues(FOREVER, &event, &which), PTL_EQ_DROPPED);
	assert_int_equal(which, 1);
}

static void postern_eq_poll__refuses_what_it_should(void **state)
{
	ptl_handle_eq_t many[POSTERN_EQ_POLL_MAX + 1];
	ptl_handle_eq_t mixed[2];
	ptl_event_t event;
	unsigned which;

	(void)state;
	targets_make(EQ_ROOM);
	for (unsigned i = 0; i < COUNT(many); i++)
		many[i] = queues[0];
	assert_code(postern_eq_poll(many, COUNT(many), 0, &event, &which), PTL_INV_EQ);
	assert_code(postern_eq_poll(many, COUNT(many) - 1, MOMENT, &event, &which), PTL_EQ_EMPTY);
	assert_code(postern_eq_poll(many, 0, 0, &event, &which), PTL_INV_EQ);
	assert_code(postern_eq_poll(NULL, 1, 0, &event, &which), PTL_SEGV);
	assert_code(postern_eq_poll(WILD, 1, 0, &event, &which), PTL_SEGV);
	assert_code(postern_eq_poll(queues, 1, 0, NULL, &which), PTL_SEGV);
	assert_code(postern_eq_poll(queues, 1, 0, &event, WILD), PTL_SEGV);
	mixed[0] = queues[0];
	mixed[1] = queue_make(&here, 1);
	assert_code(postern_eq_poll(mixed, 2, 0, &event, &which), PTL_INV_EQ);
	mixed[1] = source;
	assert_code(postern_eq_poll(mixed, 2, 0, &event, &which), PTL_INV_EQ);
	assert_ok(PtlEQFree(queues[2]));
	assert_code(poll_queues(0, &event, &which), PTL_INV_EQ);
	assert_code(postern_eq_fd(queues[2]), -PTL_INV_EQ);
	assert_code(postern_eq_fd(source), -PTL_INV_EQ);
}

/* A thread inside postern_eq_poll(). */
static struct poller {
	pthread_t thread;
	_Atomic bool inside;
	int code;
	unsigned which;
	ptl_event_t event;
} poller;

static void *poller_run(void *argument)
{
	(void)argument;
	poller.inside = true;
	poller.code = poll_queues(FOREVER, &poller.event, &poller.which);
	return NULL;
}

/* Returns when the thread is about to call, or has called: what follows must wake it whichever it
 * is. */
static void poller_start(void)
{
	memset(&poller, 0, sizeof(poller));
	assert_int_equal(pthread_create(&poller.thread, NULL, poller_run, NULL), 0);
	while (!poller.inside)
		nap();
}

static void postern_eq_poll__blocks_until_an_event_comes_to_any_queue(void **state)
{
	(void)state;
	targets_make(EQ_ROOM);
	for (unsigned round = 0; round < 30; round++) {
		ptl_event_t event;

		poller_start();
		if (round % 2) /* now it sleeps, mostly */
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		put_on(round % 3, round);
		pthread_join(poller.thread, NULL);
		assert_int_equal(poller.code, PTL_OK);
		assert_int_equal(poller.which, round % 3);
		assert_int_equal(poller.event.hdr_data, round);
		assert_ok(poll_queues(FOREVER, &event, NULL));
	}
}

static void postern_eq_poll__ends_when_a_queue_is_freed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT(queues); i++) {
		targets_make(EQ_ROOM);
		poller_start();
		assert_ok(PtlEQFree(queues[i]));
		pthread_join(poller.thread, NULL);
		assert_int_equal(poller.code, PTL_INV_EQ);
		nodes_close(NULL);
		both_open(NULL);
	}
}

static void postern_eq_poll__ends_when_the_interface_closes(void **state)
{
	(void)state;
	targets_make(EQ_ROOM);
	poller_start();
	node_close(&there);
	pthread_join(poller.thread, NULL);
	assert_int_equal(poller.code, PTL_INV_EQ);
}

static _Atomic unsigned seen[3];

/* Threads that wait for different sets of queues take all events of all of them, in whatever way
 * each was woken. */
static void crowd_run(unsigned number)
{
	const ptl_handle_eq_t sets[4][2] = {{queues[0], queues[1]}, {queues[1], queues[0]},
		{queues[0], queues[0]}, {queues[1], queues[1]}};
	ptl_event_t event;

	do {
		int code = postern_eq_poll(sets[number], 2, FOREVER, &event, NULL);

		thread_expect(code == PTL_OK);
		if (code != PTL_OK)
			return;
		seen[event.portal - PORTAL]++;
	} while (event.hdr_data != 1);
}

static void crowd_feed(void)
{
	/* Few at a time, so that threads sleep again and again. */
	for (unsigned i = 0; i < MESSAGES / 10; i++) {
		for (unsigned j = 0; j < 2; j++)
			if (PtlPut(source, PTL_NOACK_REQ, there.id, (ptl_pt_index_t)(PORTAL + j), 0,
				    0, 0, 0) != PTL_OK)
				return;
		while (seen[0] < 2 * (i + 1) || seen[1] < 2 * (i + 1))
			nap();
	}
	/* Each end sends one thread home; two threads take from either queue. */
	for (unsigned i = 0; i < 8; i++)
		PtlPut(source, PTL_NOACK_REQ, there.id, (ptl_pt_index_t)(PORTAL + i % 2), 0, 0, 0,
			1);
}

static void crowd_body(unsigned number)
{
	if (number == 4)
		crowd_feed();
	else
		crowd_run(number);
}

static void postern_eq_poll__of_several_threads_loses_no_event(void **state)
{
	(void)state;
	targets_make(EQ_ROOM);
	seen[0] = seen[1] = 0;
	threads_run(5, crowd_body);
}

/* --- descriptors */

static bool driven_inline(void)
{
	const char *progress = getenv("PTL_PROGRESS");

	return progress && strcmp(progress, "inline") == 0;
}

static bool readable(int fd, int timeout)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};
	int count;

	do
		count = poll(&one, 1, timeout);
	while (count < 0 && errno == EINTR);
	return count == 1 && one.revents == POLLIN;
}

static void postern_eq_fd__inline_says_what_to_do(void **state)
{
	(void)state;
	if (!driven_inline())
		return;
	targets_make(EQ_ROOM);
	assert_code(postern_eq_fd(queues[0]), -PTL_FAIL);
	assert_non_null(strstr(postern_last_error(), "postern_eq_poll"));
}

static void postern_eq_fd__is_readable_while_there_are_events(void **state)
{
	ptl_event_t event;
	int fd, other;

	(void)state;
	if (driven_inline())
		return;
	targets_make(EQ_ROOM);
	put_on(0, 0);
	fence(&here, &there);
	fd = postern_eq_fd(queues[0]);    /* made when there are */
	other = postern_eq_fd(queues[1]); /* or are none */
	assert_true(fd >= 0 && other >= 0 && fd != other);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	for (unsigned round = 0; round < 20; round++) {
		assert_true(readable(fd, -1));
		assert_ok(PtlEQGet(queues[0], &event));
		assert_true(readable(fd, 0)); /* level-triggered */
		assert_ok(round % 2 ? PtlEQGet(queues[0], &event) : PtlEQWait(queues[0], &event));
		if (round % 3)
			assert_code(PtlEQGet(queues[0], &event), PTL_EQ_EMPTY);
		else
			assert_code(poll_queues(0, &event, NULL), PTL_EQ_EMPTY);
		assert_false(readable(fd, 0));
		assert_false(readable(other, 0));
		put_on(0, round);
	}
	assert_int_equal(close(fd), 0);
	assert_true(readable(fd = postern_eq_fd(queues[0]), -1));
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(other), 0);
}

static void postern_eq_fd__is_readable_for_good_when_the_queue_is_gone(void **state)
{
	ptl_event_t event;
	int freed, closed;

	(void)state;
	if (driven_inline())
		return;
	targets_make(EQ_ROOM);
	freed = postern_eq_fd(queues[0]);
	closed = postern_eq_fd(queues[1]);
	assert_false(readable(freed, 0) || readable(closed, 0));
	assert_ok(PtlEQFree(queues[0]));
	assert_true(readable(freed, -1));
	assert_code(PtlEQGet(queues[0], &event), PTL_INV_EQ);
	assert_true(readable(freed, 0));
	assert_false(readable(closed, 0));
	node_close(&there);
	assert_true(readable(closed, -1));
	assert_code(PtlEQGet(queues[1], &event), PTL_INV_EQ);
	assert_true(readable(freed, 0) && readable(closed, 0));
	assert_int_equal(close(freed), 0);
	assert_int_equal(close(closed), 0);
}

static unsigned descriptors_open(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void postern_eq_fd__costs_one_descriptor_more_until_the_queue_goes(void **state)
{
	unsigned before;
	int fd;

	(void)state;
	if (driven_inline())
		return;
	targets_make(EQ_ROOM);
	before = descriptors_open();
	for (unsigned round = 0; round < 100; round++) {
		ptl_handle_eq_t eq = queue_make(&there, 4);

		fd = postern_eq_fd(eq);
		assert_true(fd >= 0);
		if (round % 2)
			assert_int_equal(close(fd), 0);
		assert_ok(PtlEQFree(eq));
		if (round % 2 == 0)
			assert_int_equal(close(fd), 0);
	}
	assert_int_equal(descriptors_open(), before);
	fd = postern_eq_fd(queues[0]);
	node_close(&there);
	assert_int_equal(close(fd), 0);
	assert_true(descriptors_open() <= before);
}

static void postern_eq_fd__without_a_descriptor_says_so(void **state)
{
	struct rlimit limit, none;

	(void)state;
	if (driven_inline())
		return;
	targets_make(EQ_ROOM);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_code(postern_eq_fd(queues[0]), -PTL_NOSPACE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_non_null(strstr(postern_last_error(), "ulimit"));
}

/* Event loops of several threads share a queue: every event is taken, though each sleeps whenever
 * it finds nothing. */
static int loop_fd;
static _Atomic unsigned loop_events;

static void loop_run(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event one = {.events = EPOLLIN};
	ptl_event_t event;

	thread_expect(epoll_ctl(epoll, EPOLL_CTL_ADD, loop_fd, &one) == 0);
	for (;;) {
		int code;

		epoll_wait(epoll, &one, 1, -1);
		while ((code = PtlEQGet(queues[0], &event)) == PTL_OK)
			loop_events++;
		if (code == PTL_INV_EQ)
			break;
	}
	close(epoll);
}

static void loop_feed(void)
{
	for (unsigned i = 0; i < MESSAGES / 2; i++) {
		if (PtlPut(source, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0) != PTL_OK)
			return;
		while (i % 16 == 0 && loop_events < 2 * (i + 1))
			nap();
		while (loop_events + EQ_ROOM / 2 < 2 * i)
			nap();
	}
	while (loop_events < MESSAGES)
		nap();
	PtlEQFree(queues[0]);
}

static void loop_body(unsigned number)
{
	if (number == 0)
		loop_feed();
	else
		loop_run();
}

static void postern_eq_fd__wakes_event_loops_without_losing_an_event(void **state)
{
	(void)state;
	if (driven_inline())
		return;
	targets_make(EQ_ROOM);
	loop_events = 0;
	loop_fd = postern_eq_fd(queues[0]);
	threads_run(4, loop_body);
	assert_int_equal(loop_events, MESSAGES);
	close(loop_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(postern_eq_poll__says_which_queue_had_the_event),
		TEST_BOTH(postern_eq_poll__of_empty_queues_ends_after_its_timeout),
		TEST_BOTH(postern_eq_poll__for_a_second_takes_hardly_any_cpu),
		TEST_BOTH(postern_eq_poll__says_dropped_as_ptl_eq_get_does),
		TEST_BOTH(postern_eq_poll__refuses_what_it_should),
		TEST_BOTH(postern_eq_poll__blocks_until_an_event_comes_to_any_queue),
		TEST_BOTH(postern_eq_poll__ends_when_a_queue_is_freed),
		TEST_BOTH(postern_eq_poll__ends_when_the_interface_closes),
		TEST_BOTH(postern_eq_poll__of_several_threads_loses_no_event),
		TEST_BOTH(postern_eq_fd__inline_says_what_to_do),
		TEST_BOTH(postern_eq_fd__is_readable_while_there_are_events),
		TEST_BOTH(postern_eq_fd__is_readable_for_good_when_the_queue_is_gone),
		TEST_BOTH(postern_eq_fd__costs_one_descriptor_more_until_the_queue_goes),
		TEST_BOTH(postern_eq_fd__without_a_descriptor_says_so),
		TEST_BOTH(postern_eq_fd__wakes_event_loops_without_losing_an_event),
	};

	return cmocka_run_group_tests_name("poll", tests, group_open, group_close);
}
