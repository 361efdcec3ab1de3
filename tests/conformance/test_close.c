/* SPDX-License-Identifier: BSD-3-Clause */
/* test_close.c - what becomes of what was sent when PtlNIFini follows (3.4): it arrives, however
 * busy its target is; PtlNIFini gives up when nobody acknowledges for PTL_PEER_TIMEOUT, or for a
 * signal, and says so. Initiator and target are processes of a node of the test's own.
 *
 * Covers: lib/host/linger.c.
 */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PUTS       50
#define BYTES      8192
#define TARGET     5 /* process ids */
#define PARENT     6
#define MILLI      1000  /* us */
#define WHILE      300   /* ms */
#define TIMEOUT    30000 /* ms, for a process that may have no CPU */
#define UNFINISHED 99    /* an exit code that no count is */

static char directory[] = "/tmp/conformance-XXXXXX";
static unsigned char bytes[BYTES];
static volatile sig_atomic_t handled;

/* A process, and a pipe that it answers by. */
struct child {
	pid_t pid;
	int answers;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct child child_start(void (*run)(int answers))
{
	struct child child = {0};
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		run(ends[1]);
		_exit(UNFINISHED);
	}
	close(ends[1]);
	child.answers = ends[0];
	return child;
}

static void child_hear(const struct child *child)
{
	char word;

	assert_int_equal(read(child->answers, &word, 1), 1);
}

static int child_end(const struct child *child)
{
	int status;

	close(child->answers);
	while (waitpid(child->pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return status;
}

static struct node process_open(ptl_pid_t pid)
{
	struct node node = {0};
	int interfaces;

	assert_ok(PtlInit(&interfaces));
	assert_ok(PtlNIInit(0, pid, NULL, NULL, &node.ni));
	assert_ok(PtlGetId(node.ni, &node.id));
	return node;
}

/* Puts that came, until all have or none does for so long. */
static int puts_count(ptl_handle_eq_t eq, int most, uint64_t timeout)
{
	uint64_t last = now_ms();
	int count = 0;

	while (count < most && now_ms() - last < timeout) {
		ptl_event_t event;

		if (PtlEQGet(eq, &event) != PTL_OK) {
			usleep(100);
			continue;
		}
		count += event.type == PTL_EVENT_PUT_END;
		last = now_ms();
	}
	return count;
}

static struct end target_open(const struct node *node)
{
	return target_make(node, bytes, BYTES, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
}

/* Exits with the number of puts that came after the first. */
static void target_run(int answers)
{
	const struct node node = process_open(TARGET);
	const struct end end = target_open(&node);
	int count;

	assert_int_equal(write(answers, "r", 1), 1);
	count = puts_count(end.eq, PUTS + 1, TIMEOUT) - 1;
	assert_ok(PtlNIFini(node.ni));
	_exit(count);
}

static bool thread_is_stopped(const char *tasks, const char *thread)
{
	char path[512], line[256];
	bool stopped = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/stat", tasks, thread);
	file = fopen(path, "r");
	if (!file)
		return true; /* it has ended */
	if (fgets(line, sizeof(line), file) && strrchr(line, ')'))
		stopped = strncmp(strrchr(line, ')'), ") T", 3) == 0;
	fclose(file);
	return stopped;
}

static bool threads_are_stopped(pid_t pid)
{
	bool stopped = true;
	struct dirent *entry;
	char path[64];
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	threads = opendir(path);
	assert_non_null(threads);
	while ((entry = readdir(threads)))
		stopped = stopped &&
			  (entry->d_name[0] == '.' || thread_is_stopped(path, entry->d_name));
	closedir(threads);
	return stopped;
}

/* Until the thread that takes the signal has had a CPU, the others go on. */
static void process_stop(pid_t pid)
{
	kill(pid, SIGSTOP);
	while (!threads_are_stopped(pid))
		usleep(MILLI);
}

/* One put that is acknowledged, and then PUTS that the target, which is stopped, has not seen. */
static struct node puts_to_stopped(pid_t target)
{
	const struct node node = process_open(PARENT);
	const struct end end = source_make(&node, bytes, BYTES);
	const ptl_process_id_t to = {node.id.nid, TARGET};

	assert_ok(PtlPut(end.md, PTL_ACK_REQ, to, PORTAL, 0, 0, 0, 0));
	while (next_event(end.eq).type != PTL_EVENT_ACK)
		;
	process_stop(target);
	for (unsigned i = 0; i < PUTS; i++)
		assert_ok(PtlPut(end.md, PTL_NOACK_REQ, to, PORTAL, 0, 0, 0, 0));
	return node;
}

/* The signals that a process has handlers for: bit number - 1. All of them, if it has ended. */
static uint64_t signals_caught(pid_t pid)
{
	unsigned long long caught = 0;
	char path[64], line[256];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "r");
	if (!status)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), status) && sscanf(line, "SigCgt: %llx", &caught) != 1)
		;
	fclose(status);
	return caught;
}

/* PtlNIFini waits: it has a handler for SIGTERM then, and no program here has one. */
static void wait_until_it_closes(pid_t pid)
{
	while (!(signals_caught(pid) & UINT64_C(1) << (SIGTERM - 1)))
		usleep(MILLI);
}

/* While `closing` waits in PtlNIFini it gets a signal (0: none), and then `target` goes on (0: it
 * does not). Returns the process that sees to that. */
static pid_t signal_later(pid_t closing, int number, pid_t target)
{
	pid_t sender = fork();

	assert_true(sender >= 0);
	if (sender == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		wait_until_it_closes(closing);
		usleep(WHILE * MILLI);
		if (number != 0)
			kill(closing, number);
		if (target != 0) {
			usleep(WHILE * MILLI);
			kill(target, SIGCONT);
		}
		_exit(0);
	}
	return sender;
}

static pid_t stopped; /* the target of the process that runs */

static void close_run(int answers)
{
	const struct node node = puts_to_stopped(stopped);

	assert_int_equal(write(answers, "r", 1), 1);
	dup2(answers, STDERR_FILENO);
	assert_ok(PtlNIFini(node.ni));
	_exit(handled != 0);
}

static void signal_handle(int number)
{
	handled = number;
}

static void close_handling_run(int answers)
{
	signal(SIGINT, signal_handle);
	close_run(answers);
}

static void close_ignoring_run(int answers)
{
	signal(SIGINT, SIG_IGN);
	close_run(answers);
}

static struct child target_start(void)
{
	const struct child target = child_start(target_run);

	child_hear(&target);
	stopped = target.pid;
	return target;
}

static void target_kill(const struct child *target)
{
	kill(target->pid, SIGKILL);
	(void)child_end(target);
}

static void puts__arrive_at_a_target_that_is_stopped_for_a_while(void **state)
{
	const struct child target = target_start();
	const struct child closing = child_start(close_run);
	pid_t waker;

	(void)state;
	child_hear(&closing);
	waker = signal_later(closing.pid, 0, target.pid);
	assert_int_equal(child_end(&closing), 0);
	assert_int_equal(WEXITSTATUS(child_end(&target)), PUTS);
	waitpid(waker, NULL, 0);
}

/* What a closing process writes, in one line. */
static void expect_warning(const struct child *closing, const char *part)
{
	char line[512] = "";
	size_t length = 0;
	ssize_t got;

	while (length < sizeof(line) - 1 &&
		(got = read(closing->answers, line + length, sizeof(line) - 1 - length)) > 0)
		length += (size_t)got;
	if (!strstr(line, part) || !strstr(line, "that it sent may not have arrived"))
		fail_msg("%s", line);
}

static struct child closing_start(void (*run)(int answers), const char *timeout)
{
	struct child closing;

	setenv("PTL_PEER_TIMEOUT", timeout, 1);
	closing = child_start(run);
	unsetenv("PTL_PEER_TIMEOUT");
	child_hear(&closing);
	return closing;
}

static void ptl_ni_fini__gives_up_a_silent_target_and_says_so(void **state)
{
	const struct child target = target_start();
	const uint64_t start = now_ms();
	const struct child closing = closing_start(close_run, "3s");

	(void)state;
	expect_warning(&closing, "PTL_PEER_TIMEOUT");
	assert_int_equal(child_end(&closing), 0);
	assert_true(now_ms() - start >= 3000);
	target_kill(&target);
}

static void ptl_ni_fini__says_that_the_target_has_ended(void **state)
{
	const struct child target = target_start();
	const struct child closing = closing_start(close_run, "100s");

	(void)state;
	target_kill(&target);
	expect_warning(&closing, "the other process has ended");
	assert_int_equal(child_end(&closing), 0);
}

/* It is told by the signal's number how it ended, or by 1 that its handler ran. */
static void expect_ended_by(void (*run)(int answers), int number, int status)
{
	const struct child target = target_start();
	const struct child closing = closing_start(run, "100s");
	const pid_t sender = signal_later(closing.pid, number, 0);

	expect_warning(&closing, "a signal ended the wait");
	assert_int_equal(child_end(&closing), status);
	waitpid(sender, NULL, 0);
	target_kill(&target);
}

static void signals__end_the_wait_and_then_have_their_effect(void **state)
{
	(void)state;
	expect_ended_by(close_run, SIGTERM, SIGTERM);
	expect_ended_by(close_run, SIGINT, SIGINT);
	expect_ended_by(close_handling_run, SIGINT, 1 << 8);
}

static void signals__that_are_ignored_end_nothing(void **state)
{
	const struct child target = target_start();
	const struct child closing = child_start(close_ignoring_run);
	pid_t sender;

	(void)state;
	child_hear(&closing);
	sender = signal_later(closing.pid, SIGINT, target.pid);
	assert_int_equal(child_end(&closing), 0);
	assert_int_equal(WEXITSTATUS(child_end(&target)), PUTS);
	waitpid(sender, NULL, 0);
}

/* It says so after a second, however long PTL_PEER_TIMEOUT is. */
static void nobody_run(int answers)
{
	const struct node node = process_open(PARENT);
	const struct end end = source_make(&node, bytes, BYTES);
	const ptl_process_id_t nobody = {node.id.nid, 99};

	assert_ok(PtlPut(end.md, PTL_NOACK_REQ, nobody, PORTAL, 0, 0, 0, 0));
	assert_int_equal(write(answers, "r", 1), 1);
	dup2(answers, STDERR_FILENO);
	assert_ok(PtlNIFini(node.ni));
	_exit(0);
}

static void ptl_ni_fini__waits_a_second_for_who_was_never_there(void **state)
{
	const struct child closing = closing_start(nobody_run, "600s");

	(void)state;
	expect_warning(&closing, "no process has answered yet");
	assert_int_equal(child_end(&closing), 0);
}

static int path_remove(const char *path, const struct stat *status, int kind, struct FTW *ftw)
{
	(void)status;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int directory_make(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	setenv("XDG_RUNTIME_DIR", directory, 1);
	setenv("PTL_IFACE_NAME", "node:close", 1);
	unsetenv("PTL_NID");
	return 0;
}

static int directory_remove(void **state)
{
	(void)state;
	return nftw(directory, path_remove, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts__arrive_at_a_target_that_is_stopped_for_a_while),
		cmocka_unit_test(ptl_ni_fini__gives_up_a_silent_target_and_says_so),
		cmocka_unit_test(ptl_ni_fini__says_that_the_target_has_ended),
		cmocka_unit_test(ptl_ni_fini__waits_a_second_for_who_was_never_there),
		cmocka_unit_test(signals__end_the_wait_and_then_have_their_effect),
		cmocka_unit_test(signals__that_are_ignored_end_nothing),
	};

	return cmocka_run_group_tests(tests, directory_make, directory_remove);
}
