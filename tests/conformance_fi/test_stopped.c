/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stopped.c - a peer that stops in the middle of a write: the region that it writes to cannot
 * be closed yet, and all other calls go on.
 * Covers: lib/fi/mr.c. */
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WINDOW  (32 << 20)
#define KEY     UINT64_C(7)
#define TRIES   5
#define CALLS   1000
#define SECONDS 1 /* in which the closer gets as far as it can */

static struct side own;
static pid_t writer;
static int target_says[2];
static char *window;

static void own_open(void)
{
	info_load(&(struct wish){.caps = FI_MSG | FI_RMA});
	single_open(&own);
}

/* Writes all of the window again and again, if there is one. */
static void writer_run(void)
{
	char *memory = malloc(WINDOW), name[NAME_BYTES];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	fi_addr_t target;

	assert_non_null(memory);
	memset(memory, 1, WINDOW);
	assert_int_equal(read(target_says[0], name, sizeof(name)), sizeof(name));
	own_open();
	assert_int_equal(fi_av_insert(own.av, name, 1, &target, 0, NULL), 1);
	for (;;) {
		ssize_t result;

		assert_ok(fi_write(own.ep, memory, WINDOW, NULL, target, 0, KEY, memory));
		while ((result = fi_cq_read(own.cq, &entry, 1)) == -FI_EAGAIN)
			;
		memset(&error, 0, sizeof(error));
		if (result == -FI_EAVAIL)
			assert_int_equal(fi_cq_readerr(own.cq, &error, 0), 1);
	}
}

static int writer_start(void **state)
{
	(void)state;
	assert_ok(pipe(target_says));
	writer = fork();
	if (writer == 0) {
		writer_run();
		_exit(1);
	}
	window = calloc(1, WINDOW);
	return window ? 0 : -1;
}

static int writer_kill(void **state)
{
	(void)state;
	(void)kill(writer, SIGKILL);
	(void)waitpid(writer, NULL, 0);
	free(window);
	close(target_says[0]);
	close(target_says[1]);
	return 0;
}

static _Atomic bool closed;

static void *closes(void *mr)
{
	assert_ok(fi_close(mr));
	atomic_store(&closed, true);
	return NULL;
}

/* Returns true if many calls were made while the writer had stopped and the region did not close:
 * the write may have ended at that moment. */
static bool calls_go_on(void)
{
	struct fid_mr *mr;
	pthread_t thread;
	unsigned calls = 0;
	time_t end;

	atomic_store(&closed, false);
	memset(window, 0, WINDOW);
	assert_ok(fi_mr_reg(domain, window, WINDOW, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	while (*(volatile char *)window == 0)
		(void)fi_cq_read(own.cq, NULL, 0);
	assert_ok(kill(writer, SIGSTOP));
	assert_int_equal(waitpid(writer, NULL, WUNTRACED), writer);
	assert_ok(pthread_create(&thread, NULL, closes, mr));
	for (end = time(NULL) + SECONDS + 1; time(NULL) < end || calls < CALLS; calls++) {
		if (atomic_load(&closed))
			break;
		(void)fi_cq_read(own.cq, NULL, 0);
		sched_yield();
	}
	assert_ok(kill(writer, SIGCONT));
	assert_ok(pthread_join(thread, NULL));
	return calls >= CALLS;
}

static void a_region_is_closed_without_the_domain_s_lock(void **state)
{
	unsigned tries = 0;

	(void)state;
	own_open();
	assert_int_equal(write(target_says[1], own.name, sizeof(own.name)), sizeof(own.name));
	while (!calls_go_on())
		assert_true(++tries < TRIES);
	single_close(&own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_region_is_closed_without_the_domain_s_lock, writer_start, writer_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
