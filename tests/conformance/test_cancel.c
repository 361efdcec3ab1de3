/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cancel.c - a thread that pthread_cancel() ends takes nothing along: calls are no
 * cancellation points. The interfaces are on a node of the test's own, whose port makes system
 * calls.
 *
 * Covers: lib/host/progress.c, lib/base/cancel.h, lib/engine/queue.c, pmd-glue/node.c.
 */
#include "fixture.h"

#include <ftw.h>
#include <unistd.h>

#include <postern.h>

#define ENDED  100               /* threads */
#define WITHIN 20000             /* us, until each is cancelled */
#define MOMENT UINT64_C(3000000) /* ns, of a wait */

static char directory[] = "/tmp/conformance-XXXXXX";
static ptl_handle_eq_t queue;
static ptl_handle_md_t put_md;

static int file_remove(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	(void)status;
	(void)kind;
	(void)walk;
	return remove(path);
}

static int node_make(void **state)
{
	environment_default("PTL_IFACE_NAME", "node;node");
	environment_default("PTL_NID", "1;1");
	if (!mkdtemp(directory) || setenv("XDG_RUNTIME_DIR", directory, 1) != 0)
		return -1;
	return group_open(state);
}

static int node_remove(void **state)
{
	group_close(state);
	return nftw(directory, file_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Waits, short and long, and puts. */
static void *waiter(void *context)
{
	ptl_event_t event;

	(void)context;
	for (unsigned n = 0;; n++) {
		(void)postern_eq_poll(&queue, 1, n % 2 * MOMENT, &event, NULL);
		if (n % 8 == 0)
			(void)PtlPut(put_md, PTL_NOACK_REQ, here.id, PORTAL, 0, 1, 0, 0);
		pthread_testcancel();
	}
	return NULL;
}

/* An interface that a thread has taken along delivers nothing more, and does not close. */
static void cancelled_threads__take_nothing_along(void **state)
{
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	queue = queue_make(&here, EQ_ROOM);
	put_md = source.md;
	for (unsigned n = 0; n < ENDED; n++) {
		pthread_t thread;
		void *result;

		assert_int_equal(pthread_create(&thread, NULL, waiter, NULL), 0);
		usleep((useconds_t)(n * 7919 % WITHIN));
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		fence(&here, &here);
	}
}

/* Its cancellation is pending from the beginning, so the first cancellation point ends it. */
static void *doomed(void *context)
{
	unsigned *returned = context;
	ptl_event_t event;

	assert_int_equal(pthread_cancel(pthread_self()), 0);
	(void)PtlPut(put_md, PTL_ACK_REQ, there.id, PORTAL, 0, 1, 0, 0);
	(*returned)++;
	while (PtlEQGet(queue, &event) == PTL_OK)
		;
	(*returned)++;
	(void)postern_eq_poll(&queue, 1, MOMENT, &event, NULL);
	(*returned)++;
	pthread_testcancel();
	(*returned)++;
	return NULL;
}

/* The first put connects two processes. Later ones may find the other one, or the poll thread,
 * asleep, and make a descriptor readable that stands for a queue. */
static void calls__are_no_cancellation_points(void **state)
{
	struct end target, source = source_make(&here, NULL, 0);
	int descriptor;

	(void)state;
	queue = source.eq;
	put_md = source.md;
	target = target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	descriptor = postern_eq_fd(queue); /* none with PTL_PROGRESS=inline */
	for (unsigned n = 0; n < ENDED / 5; n++) {
		unsigned returned = 0;
		pthread_t thread;

		usleep(WITHIN / 10 * (n % 2));
		assert_int_equal(pthread_create(&thread, NULL, doomed, &returned), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(returned, 3);
	}
	fence(&here, &there);
	ends_free(&target, &source);
	if (descriptor >= 0)
		close(descriptor);
}

/* Opening and closing hold locks, log and make system calls. */
static void *opener(void *context)
{
	(void)context;
	for (;;) {
		ptl_handle_ni_t ni;

		if (PtlNIInit(0, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK)
			(void)PtlNIFini(ni);
		pthread_testcancel();
	}
	return NULL;
}

static void cancelled_threads__finish_what_they_open(void **state)
{
	(void)state;
	for (unsigned n = 0; n < ENDED / 10; n++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, opener, NULL), 0);
		usleep((useconds_t)(n * 7919 % WITHIN));
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		node_open(&here, 0, NULL);
		node_close(&here);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_HERE(cancelled_threads__take_nothing_along),
		TEST_BOTH(calls__are_no_cancellation_points),
		TEST_BARE(cancelled_threads__finish_what_they_open),
	};

	return cmocka_run_group_tests_name("cancel", tests, node_make, node_remove);
}
