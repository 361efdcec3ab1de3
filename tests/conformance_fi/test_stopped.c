/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stopped.c - a peer that stops in the middle of a write: the region that it writes to cannot
 * be closed yet, and all other calls go on.
 * Covers: lib/fi/mr.c. */
#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../nap.h"

#define WINDOW (32 << 20)
#define KEY    UINT64_C(7)
#define CALLS  100

static struct side own;
static pid_t writer;
static int target_says[2];

enum outcome { PENDING, WRITTEN, FAILED };

/* Of both processes. */
static struct {
	_Atomic bool stops;           /* the writer is to stop in the middle of a write */
	_Atomic enum outcome outcome; /* of the write in which it has stopped */
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

/* Of the writer: the region's owner waits for it. Returns true if it has stopped. */
static bool stop(void)
{
	return write_is_under_way() && atomic_exchange(&shared->stops, false) &&
	       raise(SIGSTOP) == 0;
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
		bool stopped = false;
		ssize_t result;

		assert_ok(fi_write(own.ep, memory, WINDOW, NULL, target, 0, KEY, memory));
		while ((result = fi_cq_read(own.cq, &entry, 1)) == -FI_EAGAIN)
			stopped |= stop();
		memset(&error, 0, sizeof(error));
		if (result == -FI_EAVAIL)
			assert_int_equal(fi_cq_readerr(own.cq, &error, 0), 1);
		if (stopped)
			atomic_store(&shared->outcome, result == 1 ? WRITTEN : FAILED);
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
static _Atomic pid_t closer;

static void *closes(void *mr)
{
	atomic_store(&closer, (pid_t)syscall(SYS_gettid));
	assert_ok(fi_close(mr));
	atomic_store(&closed, true);
	return NULL;
}

/* The writer stops in the middle of a write to the region. */
static void writer_stop(struct fid_mr **mr)
{
	memset(shared->window, 0, WINDOW);
	atomic_store(&shared->outcome, PENDING);
	atomic_store(&shared->stops, true);
	assert_ok(fi_mr_reg(domain, shared->window, WINDOW, FI_REMOTE_WRITE, 0, KEY, 0, mr, NULL));
	while (waitpid(writer, NULL, WUNTRACED | WNOHANG) == 0) {
		(void)fi_cq_read(own.cq, NULL, 0);
		if (byte_of(WINDOW - 1) != 0) /* the writer has missed its moment */
			memset(shared->window, 0, WINDOW);
	}
}

/* Returns false if the write had come to its end before all of the writer's threads had stopped:
 * then the region closes at once. */
static bool calls_go_on(void)
{
	struct fid_mr *mr;
	pthread_t thread;
	unsigned calls = 0;

	writer_stop(&mr);
	atomic_store(&closed, false);
	atomic_store(&closer, 0);
	assert_ok(pthread_create(&thread, NULL, closes, mr));
	/* No other thread has a lock that it needs, so it sleeps while it waits for the write. */
	while (!atomic_load(&closed) && !thread_sleeps(atomic_load(&closer)))
		nap();
	while (!atomic_load(&closed) && calls < CALLS) {
		(void)fi_cq_read(own.cq, NULL, 0);
		calls++;
	}
	assert_ok(kill(writer, SIGCONT));
	assert_ok(pthread_join(thread, NULL));
	while (atomic_load(&shared->outcome) == PENDING)
		(void)fi_cq_read(own.cq, NULL, 0);
	assert_true(calls == CALLS || atomic_load(&shared->outcome) == WRITTEN);
	return calls == CALLS;
}

static void a_region_is_closed_without_the_domain_s_lock(void **state)
{
	(void)state;
	own_open();
	assert_int_equal(write(target_says[1], own.name, sizeof(own.name)), sizeof(own.name));
	while (!calls_go_on())
		;
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
