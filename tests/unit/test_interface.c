/* SPDX-License-Identifier: BSD-3-Clause */
/* test_interface.c - tests lib/host/interface.c, and with it front.c and visitor.c: how
 * interfaces come and go while threads use them. Over the loopback; first with a poll thread, then
 * inline.
 *
 * Covers: lib/host/interface.c, lib/host/polling.c, lib/host/visitor.c, lib/host/front.c,
 * lib/host/setting.c, lib/host/statistics.c, lib/p3/front.c, lib/p3/postern.c.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <postern.h>

#include <engine/queue.h>
#include <p3/interface.h>

#define THREADS 4
#define LIVES   5
#define APART   ((void *)0x10000000) /* where mmap() puts nothing by itself: it begins far above */

static const ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};

static ptl_handle_ni_t open_default(void)
{
	ptl_handle_ni_t ni;
	int count;

	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), PTL_OK);
	return ni;
}

static void PtlInit__is_counted(void **state)
{
	ptl_handle_ni_t ni = open_default();
	ptl_process_id_t id;
	int count;

	(void)state;
	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(count, 1);
	PtlFini();
	assert_int_equal(PtlGetId(ni, &id), PTL_OK);
	PtlFini();
	assert_int_equal(PtlGetId(ni, &id), PTL_NOINIT);
	PtlFini(); /* one too many */
	assert_int_equal(PtlGetId(ni, &id), PTL_NOINIT);
}

static void PtlInit__fails_for_a_wrong_setting_and_works_once_it_is_right(void **state)
{
	int count;

	(void)state;
	setenv("PTL_PEER_TIMEOUT", "soon", 1);
	assert_int_equal(PtlInit(&count), PTL_FAIL);
	assert_non_null(strstr(postern_last_error(), "PTL_PEER_TIMEOUT"));
	unsetenv("PTL_PEER_TIMEOUT");
	assert_int_equal(PtlInit(&count), PTL_OK);
	PtlFini();
}

static void PtlInit__fails_in_a_forked_child_where_all_else_is_not_initialised(void **state)
{
	ptl_handle_ni_t ni = open_default();
	ptl_process_id_t id;
	int count, status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		bool right = PtlGetId(ni, &id) == PTL_NOINIT && PtlNIFini(ni) == PTL_NOINIT &&
			     PtlInit(&count) == PTL_FAIL &&
			     strstr(postern_last_error(), "fork") != NULL;

		PtlFini();
		_exit(right ? 0 : 1);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(PtlGetId(ni, &id), PTL_OK);
	PtlFini();
}

static void PtlNIInit__grants_the_limits_that_it_can(void **state)
{
	ptl_ni_limits_t desired = {100, 200, 0, 10, 0}, actual;
	ptl_handle_ni_t ni, again;
	int count;

	(void)state;
	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(PtlNIInit(0, 42, &desired, &actual, &ni), PTL_OK);
	assert_int_equal(actual.max_match_entries, 100);
	assert_int_equal(actual.max_mem_descriptors, 200);
	assert_int_equal(actual.max_event_queues, 1);
	assert_int_equal(actual.max_atable_index, 10);
	assert_int_equal(actual.max_ptable_index, 0);

	memset(&actual, 0, sizeof(actual));
	desired.max_match_entries = 7;
	assert_int_equal(PtlNIInit(0, 43, &desired, &actual, &again), PTL_INIT_DUP);
	assert_true(again == ni);
	assert_int_equal(actual.max_match_entries, 100);

	/* A later life may be larger, and a still later one smaller. */
	for (unsigned i = 0; i < LIVES; i++) {
		assert_int_equal(PtlNIFini(ni), PTL_OK);
		desired.max_match_entries = i % 2 ? 10 : 1000000000;
		desired.max_ptable_index = i % 2 ? 1 : UINT32_MAX;
		assert_int_equal(PtlNIInit(0, 42, &desired, &actual, &ni), PTL_OK);
		assert_int_equal(actual.max_match_entries, i % 2 ? 10 : LIMIT_ENTRIES);
		assert_int_equal(actual.max_ptable_index, i % 2 ? 1 : LIMIT_PORTALS - 1);
	}
	PtlFini();
}

static void PtlNIInit__refuses_interfaces_and_processes_that_cannot_be(void **state)
{
	ptl_handle_ni_t ni;
	int count;

	(void)state;
	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(PtlNIInit(1, PTL_PID_ANY, NULL, NULL, &ni), PTL_INIT_INV);
	assert_int_equal(PtlNIInit(UINT32_MAX, PTL_PID_ANY, NULL, NULL, &ni), PTL_INIT_INV);
	assert_int_equal(PtlNIInit(0, PTL_PID_MAX + 1, NULL, NULL, &ni), PTL_INV_PROC);
	assert_int_equal(PtlNIInit(0, PTL_PID_ANY, NULL, NULL, NULL), PTL_SEGV);
	PtlFini();
}

static void PtlNIInit__says_why_a_device_cannot_be_used(void **state)
{
	ptl_handle_ni_t ni;
	int count;

	(void)state;
	setenv("PTL_IFACE_NAME", "no-such-device", 1);
	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(PtlNIInit(0, PTL_PID_ANY, NULL, NULL, &ni), PTL_INIT_INV);
	assert_non_null(strstr(postern_last_error(), "no-such-device"));
	PtlFini();
	setenv("PTL_IFACE_NAME", "loop:alone", 1);
}

static void PtlNIFini__makes_every_handle_stale_also_in_the_next_life(void **state)
{
	static char memory[8];
	ptl_md_t md = {.start = memory, .length = sizeof(memory), .threshold = 1};
	ptl_handle_ni_t ni = open_default(), next;
	ptl_handle_me_t me, new_me;
	ptl_handle_md_t bound, new_bound;
	ptl_handle_eq_t eq, new_eq;
	ptl_event_t event;

	(void)state;
	assert_int_equal(PtlEQAlloc(ni, 4, &eq), PTL_OK);
	assert_int_equal(PtlMDBind(ni, md, &bound), PTL_OK);
	assert_int_equal(PtlMEAttach(ni, 0, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
	assert_int_equal(PtlNIFini(ni), PTL_OK);
	assert_int_equal(PtlNIFini(ni), PTL_INV_NI);
	assert_int_equal(PtlEQGet(eq, &event), PTL_INV_EQ);

	assert_int_equal(PtlNIInit(0, PTL_PID_ANY, NULL, NULL, &next), PTL_OK);
	assert_true(next != ni);
	assert_int_equal(PtlEQAlloc(next, 4, &new_eq), PTL_OK);
	assert_int_equal(PtlMDBind(next, md, &new_bound), PTL_OK);
	assert_int_equal(
		PtlMEAttach(next, 0, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &new_me), PTL_OK);
	assert_int_equal(PtlNIFini(ni), PTL_INV_NI);
	assert_int_equal(PtlEQFree(eq), PTL_INV_EQ);
	assert_int_equal(PtlMDUnlink(bound), PTL_INV_MD);
	assert_int_equal(PtlMEUnlink(me), PTL_INV_ME);
	assert_int_equal(PtlEQFree(new_eq), PTL_OK);
	assert_int_equal(PtlMDUnlink(new_bound), PTL_OK);
	assert_int_equal(PtlMEUnlink(new_me), PTL_OK);
	PtlFini();
}

static void *wait_for_event(void *eq)
{
	ptl_event_t event;

	return (void *)(intptr_t)PtlEQWait(*(ptl_handle_eq_t *)eq, &event);
}

/* Threads that wait on a queue; returns when all of them do. */
static void waiters_start(pthread_t *threads, ptl_handle_eq_t *eq)
{
	struct segment *segment = atomic_load(&interfaces[0].segment);
	struct queue *queue = segment_queue(segment, handle_index(*eq));

	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_for_event, eq), 0);
	while (atomic_load(&queue->sleepers) < THREADS && !interfaces[0].inlined)
		sched_yield();
	while (atomic_load(&queue->waiters) < THREADS)
		sched_yield();
}

static void waiters_end(const pthread_t *threads)
{
	void *code;

	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &code);
		assert_int_equal((intptr_t)code, PTL_INV_EQ);
	}
}

/* A put to the own process that logs SEND_START in the queue and nothing else, for which an event
 * is then taken. */
static void event_expect(ptl_handle_ni_t ni, ptl_handle_eq_t eq, ptl_event_t *event)
{
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF, .eventq = eq, .user_ptr = (void *)(uintptr_t)eq};
	ptl_process_id_t self;
	ptl_handle_md_t handle;
	int code;

	assert_int_equal(PtlGetId(ni, &self), PTL_OK);
	assert_int_equal(PtlMDBind(ni, md, &handle), PTL_OK);
	assert_int_equal(PtlPut(handle, PTL_NOACK_REQ, self, 0, 0, 0, 0, 0), PTL_OK);
	for (unsigned i = 0; i < 2; i++) {
		while ((code = PtlEQGet(eq, event)) == PTL_EQ_EMPTY)
			sched_yield();
		assert_int_equal(code, PTL_OK);
		assert_int_equal(event->type, i == 0 ? PTL_EVENT_SEND_START : PTL_EVENT_SEND_END);
		assert_ptr_equal(event->mem_desc.user_ptr, (void *)(uintptr_t)eq);
	}
	while ((code = PtlMDUnlink(handle)) == PTL_MD_INUSE)
		sched_yield();
	assert_int_equal(code, PTL_OK);
}

/* V4: more queues than a thread remembers, to events in many places. */
static void PtlEQGet__of_many_queues_in_turn_takes_from_the_right_one(void **state)
{
	enum { QUEUES = 3 * READERS };
	ptl_handle_ni_t ni = open_default();
	ptl_event_t *events = aligned_alloc(4096, 4 * 4096);
	ptl_handle_eq_t queues[QUEUES];

	(void)state;
	for (unsigned i = 0; i < QUEUES; i++)
		assert_int_equal(PtlEQAlloc(ni, 8, &queues[i]), PTL_OK);
	for (unsigned i = 0; i < 5 * QUEUES; i++)
		event_expect(
			ni, queues[i % QUEUES], &events[i * 7 % (4 * 4096 / sizeof(ptl_event_t))]);
	assert_int_equal(PtlEQFree(queues[0]), PTL_OK);
	assert_int_equal(PtlEQGet(queues[0], events), PTL_INV_EQ);
	event_expect(ni, queues[1], events);
	PtlFini();
	assert_int_equal(PtlEQGet(queues[1], events), PTL_NOINIT);
	free(events);
}

static void PtlEQGet__refuses_bad_addresses_also_after_good_ones(void **state)
{
	ptl_handle_ni_t ni = open_default();
	/* Apart, so that the holes beside the page stay holes: other threads may map memory, such
	 * as the thread sanitizer's allocator when one ends. */
	char *page = mmap(APART, 3 * 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	ptl_event_t *event = (ptl_event_t *)(void *)(page + 4096);
	const uintptr_t last = (uintptr_t)page + 2 * 4096 - sizeof(*event);
	ptl_handle_eq_t eq;

	(void)state;
	assert_true(page != MAP_FAILED);
	assert_int_equal(munmap(page, 4096), 0);
	assert_int_equal(munmap(page + 2 * 4096, 4096), 0);
	assert_int_equal(PtlEQAlloc(ni, 8, &eq), PTL_OK);
	event_expect(ni, eq, event);
	event_expect(ni, eq, (ptl_event_t *)last);
	assert_int_equal(PtlEQGet(eq, (ptl_event_t *)(last + 8)), PTL_SEGV);
	assert_int_equal(PtlEQGet(eq, (ptl_event_t *)(last - 4)), PTL_SEGV);
	assert_int_equal(PtlEQGet(eq, (ptl_event_t *)((uintptr_t)event - 8)), PTL_SEGV);
	assert_int_equal(PtlEQGet(eq, NULL), PTL_SEGV);
	event_expect(ni, eq, event);
	assert_int_equal(munmap(event, 4096), 0);
	PtlFini();
}

/* V4: what a thread knows of a queue ends with the interface, also when the next one lies in the
 * same place, and with the process. */
static void PtlEQGet__knows_no_queue_of_an_earlier_life(void **state)
{
	ptl_handle_eq_t eq, before = PTL_EQ_NONE;
	ptl_event_t event;
	int status;
	pid_t child;

	(void)state;
	for (unsigned i = 0; i < LIVES; i++) {
		ptl_handle_ni_t ni = open_default();

		assert_int_equal(PtlEQAlloc(ni, 8, &eq), PTL_OK);
		assert_int_equal(PtlEQGet(before, &event), PTL_INV_EQ);
		event_expect(ni, eq, &event);
		assert_int_equal(PtlNIFini(ni), PTL_OK);
		assert_int_equal(PtlEQGet(eq, &event), PTL_INV_EQ);
		assert_int_equal(
			PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), PTL_OK);
		assert_int_equal(PtlEQGet(eq, &event), PTL_INV_EQ);
		assert_int_equal(PtlEQAlloc(ni, 8, &before), PTL_OK);
		event_expect(ni, before, &event);
		child = fork();
		if (child == 0)
			_exit(PtlEQGet(before, &event) == PTL_NOINIT ? 0 : 1);
		assert_true(child > 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		event_expect(ni, before, &event);
		PtlFini();
	}
}

static void PtlNIFini__ends_the_waits_of_all_threads(void **state)
{
	ptl_handle_ni_t ni = open_default();
	pthread_t threads[THREADS];
	ptl_handle_eq_t eq;

	(void)state;
	assert_int_equal(PtlEQAlloc(ni, 4, &eq), PTL_OK);
	waiters_start(threads, &eq);
	assert_int_equal(PtlNIFini(ni), PTL_OK);
	waiters_end(threads);
	PtlFini();
}

static void PtlEQFree__ends_the_waits_of_all_threads(void **state)
{
	ptl_handle_ni_t ni = open_default();
	pthread_t threads[THREADS];
	ptl_handle_eq_t eq;

	(void)state;
	assert_int_equal(PtlEQAlloc(ni, 4, &eq), PTL_OK);
	waiters_start(threads, &eq);
	assert_int_equal(PtlEQFree(eq), PTL_OK);
	waiters_end(threads);
	PtlFini();
}

/* What threads do until the library is closed: everything, with whatever handles there are. */
static void *use(void *argument)
{
	static char memory[64];
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq = PTL_EQ_NONE;
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	ptl_md_t old;
	ptl_event_t event;
	ptl_process_id_t id = {1, 1};
	const _Atomic bool *stop = argument;

	while (!atomic_load(stop)) {
		ptl_md_t wanted = {
			.start = memory, .length = sizeof(memory), .threshold = PTL_MD_THRESH_INF};

		PtlNIInit(0, PTL_PID_ANY, NULL, NULL, &ni);
		PtlGetId(ni, &id);
		PtlEQAlloc(ni, 64, &eq);
		wanted.eventq = eq;
		PtlMEAttach(ni, 1, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me);
		PtlMDBind(ni, wanted, &md);
		PtlPut(md, PTL_NOACK_REQ, id, 2, 0, 0, 0, 0);
		PtlEQGet(eq, &event);
		PtlMDUpdate(md, &old, NULL, eq);
		PtlMDUnlink(md);
		PtlMEUnlink(me);
		PtlEQFree(eq);
	}
	return NULL;
}

static void PtlNIFini__in_the_midst_of_calls_hurts_nobody(void **state)
{
	ptl_handle_ni_t ni = open_default();
	pthread_t threads[THREADS];
	_Atomic bool stop = false;

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use, &stop), 0);
	for (unsigned i = 0; i < 20; i++) {
		int code = PtlNIInit(0, PTL_PID_ANY, NULL, NULL, &ni);

		assert_true(code == PTL_OK || code == PTL_INIT_DUP);
		assert_int_equal(PtlNIFini(ni), PTL_OK);
	}
	PtlFini();
	atomic_store(&stop, true);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void *closing_page;

/* A look at the queue's memory does not get through; meanwhile another thread begins to close the
 * interface. */
static void closing_begins(int number)
{
	(void)number;
	atomic_store(&interfaces[0].segment, NULL);
	if (mprotect(closing_page, 1, PROT_READ | PROT_WRITE) != 0)
		abort();
}

static void PtlEQGet__that_drives_another_interface_survives_the_end_of_its_own(void **state)
{
	const struct sigaction action = {
		.sa_handler = closing_begins, .sa_flags = (int)SA_RESETHAND};
	const struct command nothing = {.kind = COMMAND_PING_ABANDON};
	struct sigaction before;
	struct segment *segment;
	ptl_handle_ni_t ni[2];
	ptl_handle_eq_t eq;
	ptl_event_t event;
	int count;

	(void)state;
	setenv("PTL_IFACE_NAME", "loop:a;loop:a", 1);
	assert_int_equal(PtlInit(&count), PTL_OK);
	for (ptl_interface_t i = 0; i < 2; i++)
		assert_int_equal(PtlNIInit(i, PTL_PID_ANY, NULL, NULL, &ni[i]), PTL_OK);
	assert_int_equal(PtlEQAlloc(ni[0], 4, &eq), PTL_OK);
	assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
	segment = atomic_load(&interfaces[0].segment);
	closing_page = segment_at(segment, queue_slots(segment_queue(segment, handle_index(eq))));
	/* Something to do for the other one. */
	assert_true(ring_put(segment_ring(atomic_load(&interfaces[1].segment)), &nothing));
	sigaction(SIGSEGV, &action, &before);
	if (mprotect(closing_page, 1, PROT_NONE) == 0)
		assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
	sigaction(SIGSEGV, &before, NULL);
	atomic_store(&interfaces[0].segment, segment);
	PtlFini();
	setenv("PTL_IFACE_NAME", "loop:alone", 1);
}

static void PtlNIDist__grows_with_the_distance(void **state)
{
	ptl_handle_ni_t ni = open_default();
	ptl_process_id_t id;
	unsigned long distance;

	(void)state;
	assert_int_equal(PtlGetId(ni, &id), PTL_OK);
	assert_int_equal(PtlNIDist(ni, id, &distance), PTL_OK);
	assert_int_equal(distance, 0);
	id.pid ^= 1;
	assert_int_equal(PtlNIDist(ni, id, &distance), PTL_OK);
	assert_int_equal(distance, 1);
	id.nid ^= 1;
	assert_int_equal(PtlNIDist(ni, id, &distance), PTL_OK);
	assert_int_equal(distance, 2);
	assert_int_equal(PtlNIDist(ni, anyone, &distance), PTL_INV_PROC);
	PtlFini();
}

static void PtlNIHandle__tells_the_interface_of_an_object(void **state)
{
	ptl_handle_ni_t ni[2], found;
	ptl_handle_eq_t eq;
	int count;

	(void)state;
	setenv("PTL_IFACE_NAME", "loop:a;loop:a", 1);
	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(count, 2);
	for (ptl_interface_t i = 0; i < 2; i++)
		assert_int_equal(PtlNIInit(i, PTL_PID_ANY, NULL, NULL, &ni[i]), PTL_OK);
	assert_int_equal(PtlEQAlloc(ni[1], 1, &eq), PTL_OK);
	assert_int_equal(PtlNIHandle(eq, &found), PTL_OK);
	assert_true(found == ni[1]);
	assert_int_equal(PtlNIHandle(ni[0], &found), PTL_OK);
	assert_true(found == ni[0]);
	assert_int_equal(PtlNIHandle(PTL_EQ_NONE, &found), PTL_INV_HANDLE);
	assert_int_equal(PtlNIHandle(PTL_INVALID_HANDLE, &found), PTL_INV_HANDLE);
	assert_int_equal(PtlNIHandle(eq + 1, &found), PTL_INV_HANDLE);
	assert_int_equal(PtlEQFree(eq), PTL_OK);
	assert_int_equal(PtlNIHandle(eq, &found), PTL_INV_HANDLE);
	PtlFini();
	setenv("PTL_IFACE_NAME", "loop:alone", 1);
}

static void interface__may_have_a_poll_thread_of_its_own(void **state)
{
	ptl_handle_ni_t ni[3];
	int count;

	(void)state;
	setenv("PTL_IFACE_NAME", "loop:a;loop:a;loop:a", 1);
	setenv("PTL_POLL_CORE", ";0", 1);
	assert_int_equal(PtlInit(&count), PTL_OK);
	for (ptl_interface_t i = 0; i < 3; i++)
		assert_int_equal(PtlNIInit(i, PTL_PID_ANY, NULL, NULL, &ni[i]), PTL_OK);
	if (!interfaces[0].inlined) {
		assert_true(interfaces[0].thread != interfaces[1].thread);
		assert_true(interfaces[1].thread == interfaces[2].thread);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(PtlNIFini(ni[i]), PTL_OK);
	PtlFini();
	unsetenv("PTL_POLL_CORE");
	setenv("PTL_IFACE_NAME", "loop:alone", 1);
}

static void interface__on_a_cpu_that_is_not_there_is_refused_with_a_sentence(void **state)
{
	ptl_handle_ni_t ni;
	int count;

	(void)state;
	setenv("PTL_POLL_CORE", "4095", 1);
	assert_int_equal(PtlInit(&count), PTL_OK);
	if (getenv("PTL_PROGRESS") && strcmp(getenv("PTL_PROGRESS"), "inline") == 0) {
		assert_int_equal(PtlNIInit(0, PTL_PID_ANY, NULL, NULL, &ni), PTL_OK);
	} else {
		assert_int_equal(PtlNIInit(0, PTL_PID_ANY, NULL, NULL, &ni), PTL_INIT_INV);
		assert_non_null(strstr(postern_last_error(), "PTL_POLL_CORE=4095"));
	}
	PtlFini();
	unsetenv("PTL_POLL_CORE");
}

static void interface__by_interrupt_moves_messages(void **state)
{
	char from[] = "here", to[8] = "";
	ptl_md_t there = {
		.start = to, .length = sizeof(from), .threshold = 1, .options = PTL_MD_OP_PUT};
	ptl_md_t here = {.start = from, .length = sizeof(from), .threshold = 1};
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t entry;
	ptl_handle_md_t md;
	ptl_process_id_t self;
	ptl_handle_ni_t ni;
	ptl_event_t event = {0};

	(void)state;
	setenv("PTL_POLL", "interrupt", 1);
	ni = open_default();
	assert_int_equal(PtlGetId(ni, &self), PTL_OK);
	assert_int_equal(PtlEQAlloc(ni, 16, &there.eventq), PTL_OK);
	here.eventq = PTL_EQ_NONE;
	assert_int_equal(
		PtlMEAttach(ni, 4, anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &entry), PTL_OK);
	assert_int_equal(PtlMDAttach(entry, there, PTL_RETAIN, PTL_RETAIN, NULL), PTL_OK);
	assert_int_equal(PtlMDBind(ni, here, &md), PTL_OK);
	assert_int_equal(PtlPut(md, PTL_NOACK_REQ, self, 4, 0, 0, 0, 0), PTL_OK);
	while (event.type != PTL_EVENT_PUT_END)
		assert_int_equal(PtlEQWait(there.eventq, &event), PTL_OK);
	assert_string_equal(to, from);
	PtlFini();
	unsetenv("PTL_POLL");
}

static void postern_stats__tells_what_was_counted(void **state)
{
	struct postern_stat stats[128];
	ptl_handle_ni_t ni = open_default();
	unsigned count = postern_stats(ni, stats, 128), polls = 0;

	(void)state;
	assert_in_range(count, 20, 128);
	for (unsigned i = 0; i < count; i++)
		if (strcmp(stats[i].name, "commands") == 0)
			polls++;
	assert_int_equal(polls, 1);
	assert_int_equal(postern_stats(ni, NULL, 0), count);
	assert_int_equal(postern_stats(ni + 1, stats, 128), 0);
	PtlFini();
	assert_int_equal(postern_stats(ni, stats, 128), 0);
}

static void postern_settings__tells_them_all_and_refuses_a_bad_address(void **state)
{
	struct postern_setting settings[64] = {0};
	unsigned count = postern_settings(NULL, 0);

	(void)state;
	assert_in_range(count, 1, 63);
	assert_int_equal(postern_settings(settings, 1), count);
	assert_non_null(settings[0].name);
	assert_null(settings[1].name);
	assert_int_equal(postern_settings(settings, 64), count);
	assert_non_null(settings[count - 1].value);
	assert_null(settings[count].name);
	assert_int_equal(postern_settings(NULL, 64), 0);
}

static void postern_alloc__gives_zeroed_aligned_memory_that_outlives_the_interface(void **state)
{
	ptl_handle_ni_t ni = open_default();
	char *memory = postern_alloc(ni, 100000);

	(void)state;
	assert_non_null(memory);
	assert_int_equal((uintptr_t)memory % 64, 0);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(memory[i], 0);
	PtlFini();
	memory[99999] = 1;
	postern_free(memory);
	postern_free(NULL);
	assert_null(postern_alloc(ni, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(PtlInit__is_counted),
		cmocka_unit_test(PtlInit__fails_for_a_wrong_setting_and_works_once_it_is_right),
		cmocka_unit_test(
			PtlInit__fails_in_a_forked_child_where_all_else_is_not_initialised),
		cmocka_unit_test(PtlNIInit__grants_the_limits_that_it_can),
		cmocka_unit_test(PtlNIInit__refuses_interfaces_and_processes_that_cannot_be),
		cmocka_unit_test(PtlNIInit__says_why_a_device_cannot_be_used),
		cmocka_unit_test(PtlNIFini__makes_every_handle_stale_also_in_the_next_life),
		cmocka_unit_test(PtlNIFini__ends_the_waits_of_all_threads),
		cmocka_unit_test(PtlEQFree__ends_the_waits_of_all_threads),
		cmocka_unit_test(PtlNIFini__in_the_midst_of_calls_hurts_nobody),
		cmocka_unit_test(
			PtlEQGet__that_drives_another_interface_survives_the_end_of_its_own),
		cmocka_unit_test(PtlEQGet__of_many_queues_in_turn_takes_from_the_right_one),
		cmocka_unit_test(PtlEQGet__refuses_bad_addresses_also_after_good_ones),
		cmocka_unit_test(PtlEQGet__knows_no_queue_of_an_earlier_life),
		cmocka_unit_test(PtlNIDist__grows_with_the_distance),
		cmocka_unit_test(PtlNIHandle__tells_the_interface_of_an_object),
		cmocka_unit_test(interface__may_have_a_poll_thread_of_its_own),
		cmocka_unit_test(interface__on_a_cpu_that_is_not_there_is_refused_with_a_sentence),
		cmocka_unit_test(interface__by_interrupt_moves_messages),
		cmocka_unit_test(postern_stats__tells_what_was_counted),
		cmocka_unit_test(postern_settings__tells_them_all_and_refuses_a_bad_address),
		cmocka_unit_test(
			postern_alloc__gives_zeroed_aligned_memory_that_outlives_the_interface),
	};
	int failed;

	setenv("PTL_IFACE_NAME", "loop:alone", 1);
	setenv("PTL_PROGRESS", "core", 1);
	failed = cmocka_run_group_tests_name("with a poll thread", tests, NULL, NULL);
	setenv("PTL_PROGRESS", "inline", 1);
	return failed + cmocka_run_group_tests_name("inline", tests, NULL, NULL);
}
