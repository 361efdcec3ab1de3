/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stopped.c - a peer that stops in the middle of a write: the region that it writes to cannot
 * be closed yet, and all other calls go on.
 * Covers: lib/fi/mr.c. */
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WINDOW  (32 << 20)
#define KEY     UINT64_C(7)
#define TRIES   20
#define CALLS   1000
#define SECONDS 1 /* in which the closer gets as far as it can */

static struct side own;
static pid_t writer;
static int target_says[2];

/* Of both processes. */
static struct {
	_Atomic bool stops; /* the writer is to stop in the middle of a write */
	char window[WINDOW];
} * shared;

static void own_open(void)
{
	info_load(&(struct wish){.caps = FI_MSG | FI_RMA});
	single_open(&own);
}

static char byte_of(size_t at)
{
	return ((volatile char *)shared->window)[at];
}

static bool write_is_under_way(void)
{
	return byte_of(0) != 0 && byte_of(WINDOW - 1) == 0;
}

/* Of the writer: the region's owner waits for it. */
static void stop(void)
{
	if (write_is_under_way() && atomic_exchange(&shared->stops, false))
		(void)raise(SIGSTOP);
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
			stop();
		memset(&error, 0, sizeof(error));
		if (result == -FI_EAVAIL)
			assert_int_equal(fi_cq_readerr(own.cq, &error, 0), 1);
	}
}

static int writer_start(void **state)
{
	(void)state;
	assert_ok(pipe(target_says));
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	writer = peer_fork();
	if (writer == 0) {
		writer_run();
		_exit(1);
	}
	return writer > 0 ? 0 : -1;
}

static int writer_kill(void **state)
{
	(void)state;
	(void)kill(writer, SIGKILL);
	(void)waitpid(writer, NULL, 0);
	munmap(shared, sizeof(*shared));
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
 * the write may have ended before all of the writer's threads had stopped. */
static bool calls_go_on(void)
{
	struct fid_mr *mr;
	pthread_t thread;
	unsigned calls = 0;
	time_t end;

	atomic_store(&closed, false);
	memset(shared->window, 0, WINDOW);
	atomic_store(&shared->stops, true);
	assert_ok(fi_mr_reg(domain, shared->window, WINDOW, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	while (waitpid(writer, NULL, WUNTRACED | WNOHANG) == 0) {
		(void)fi_cq_read(own.cq, NULL, 0);
		if (byte_of(WINDOW - 1) != 0) /* the writer has missed its moment */
			memset(shared->window, 0, WINDOW);
	}
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
