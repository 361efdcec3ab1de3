/* SPDX-License-Identifier: BSD-3-Clause */
/* test_init.c - PtlInit and PtlFini (3.3), on the loopback that a process has when nothing is set.
 */
#include "fixture.h"

#include <dirent.h>
#include <unistd.h>
#include <sys/wait.h>

/* Leaves `here` open with something in it, for calls that must be refused. */
static void interface_make(void)
{
	node_open(&here, PTL_IFACE_DEFAULT, NULL);
	fence(&here, &here);
}

static int init(void)
{
	int interfaces;

	return PtlInit(&interfaces);
}

static void every_function__returns_noinit_before_ptl_init(void **state)
{
	(void)state;
	assert_ptr_equal(initialised_call(), NULL);
}

static void ptl_fini__does_no_harm_before_ptl_init(void **state)
{
	(void)state;
	PtlFini();
	assert_ptr_equal(initialised_call(), NULL);
}

static void ptl_init__refuses_null_and_wild_pointers(void **state)
{
	(void)state;
	assert_code(PtlInit(NULL), PTL_SEGV);
	assert_code(PtlInit(WILD), PTL_SEGV);
	assert_ptr_equal(initialised_call(), NULL);
}

static void ptl_init__fails_when_a_setting_makes_no_sense_and_can_be_tried_again(void **state)
{
	const char *set = getenv("PTL_PROGRESS");
	char *saved = set != NULL ? strdup(set) : NULL;
	int interfaces;

	(void)state;
	setenv("PTL_PROGRESS", "sideways", 1);
	assert_code(PtlInit(&interfaces), PTL_FAIL);
	assert_ptr_equal(initialised_call(), NULL);
	if (saved != NULL)
		setenv("PTL_PROGRESS", saved, 1);
	else
		unsetenv("PTL_PROGRESS");
	free(saved);
	assert_ok(PtlInit(&interfaces));
	PtlFini();
}

static void ptl_init__tells_how_many_interfaces_there_can_be(void **state)
{
	int interfaces = -1;

	(void)state;
	assert_ok(PtlInit(&interfaces));
	assert_true(interfaces >= 1);
	PtlFini();
}

static void ptl_init__may_be_called_more_than_once(void **state)
{
	int first = -1, second = -2;

	(void)state;
	assert_ok(PtlInit(&first));
	interface_make();
	assert_ok(PtlInit(&second));
	assert_int_equal(first, second);
	fence(&here, &here);
	PtlFini();
	fence(&here, &here);
	node_close(&here);
	PtlFini();
}

static void ptl_fini__leaves_nothing_that_answers(void **state)
{
	(void)state;
	assert_ok(init());
	interface_make();
	here.open = false;
	PtlFini();
	assert_ptr_equal(initialised_call(), NULL);
	PtlFini();
	assert_ptr_equal(initialised_call(), NULL);
}

static void ptl_init__works_again_after_ptl_fini(void **state)
{
	ptl_handle_ni_t before = PTL_INVALID_HANDLE;
	ptl_process_id_t id;

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_ok(init());
		if (i > 0)
			assert_code(PtlGetId(before, &id), PTL_INV_NI);
		interface_make();
		before = here.ni;
		node_close(&here);
		PtlFini();
	}
}

static void ptl_fini__shuts_interfaces_that_are_open_so_that_they_can_be_opened_again(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_ok(init());
		interface_make();
		here.open = false;
		PtlFini();
	}
}

static void ptl_fini__ends_cleanly_with_operations_in_flight(void **state)
{
	const size_t length = 4 << 20;
	char *from = calloc(1, length), *to = calloc(1, length);
	struct end source;

	(void)state;
	assert_true(from != NULL && to != NULL);
	for (int i = 0; i < 3; i++) {
		assert_ok(init());
		node_open(&here, PTL_IFACE_DEFAULT, NULL);
		target_make(
			&here, to, length, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
		source = source_make(&here, from, length);
		for (int n = 0; n < 8; n++) {
			put_acked(source.md, &here, 0);
			get_from(source.md, &here, 0);
		}
		here.open = false;
		PtlFini();
	}
	free(from);
	free(to);
}

static void fork__gives_the_child_noinit_and_leaves_the_parent_as_it_was(void **state)
{
	char text[8] = "parent", got[8] = "";
	struct end target, source;
	const char *answered;
	int status = -1;
	pid_t child;

	(void)state;
	assert_ok(init());
	interface_make();
	target = target_make(&here, got, sizeof(got), PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
	source = source_make(&here, text, sizeof(text));
	child = fork();
	if (child == 0) {
		answered = initialised_call();
		if (answered != NULL)
			fprintf(stderr, "in a forked child: %s\n", answered);
		PtlFini();
		_exit(answered == NULL ? 42 : 43);
	}
	assert_true(child > 0);
	put_to(source.md, &here, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	assert_string_equal(got, "parent");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	memset(got, 0, sizeof(got));
	put_to(source.md, &here, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	assert_string_equal(got, "parent");
	fence(&here, &here);
	node_close(&here);
	PtlFini();
}

static void fork__lets_the_child_exit_as_any_program_does(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	assert_ok(init());
	interface_make();
	fflush(NULL);
	child = fork();
	if (child == 0)
		exit(42);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	fence(&here, &here);
	node_close(&here);
	PtlFini();
}

static void init_and_fini(unsigned number)
{
	(void)number;
	for (int i = 0; i < 20; i++) {
		int interfaces;

		thread_expect(PtlInit(&interfaces) == PTL_OK);
		PtlFini();
	}
}

static void ptl_init__may_be_called_by_many_threads_at_once(void **state)
{
	(void)state;
	threads_run(8, init_and_fini);
	assert_ptr_equal(initialised_call(), NULL);
}

/* Is there a thread of this name in this process? */
static bool thread_runs(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	bool found = false;

	while (tasks && (task = readdir(tasks)) != NULL) {
		char path[64];
		char line[64] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", task->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(line, sizeof(line), file))
			found |= strncmp(line, name, strlen(name)) == 0;
		fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/* A program whose main thread ends by pthread_exit() ends with its last thread. */
static void ptl_fini__leaves_no_thread(void **state)
{
	(void)state;
	assert_ok(init());
	interface_make();
	node_close(&here);
	PtlFini();
	for (unsigned tries = 0; thread_runs("postern-") && tries < 1000; tries++)
		usleep(10000);
	assert_false(thread_runs("postern-"));
	assert_ok(init());
	interface_make();
	node_close(&here);
	PtlFini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_function__returns_noinit_before_ptl_init),
		cmocka_unit_test(ptl_fini__does_no_harm_before_ptl_init),
		cmocka_unit_test(ptl_init__refuses_null_and_wild_pointers),
		cmocka_unit_test(
			ptl_init__fails_when_a_setting_makes_no_sense_and_can_be_tried_again),
		cmocka_unit_test(ptl_init__tells_how_many_interfaces_there_can_be),
		cmocka_unit_test(ptl_init__may_be_called_more_than_once),
		cmocka_unit_test(ptl_fini__leaves_nothing_that_answers),
		cmocka_unit_test(ptl_init__works_again_after_ptl_fini),
		cmocka_unit_test(ptl_fini__leaves_no_thread),
		cmocka_unit_test(
			ptl_fini__shuts_interfaces_that_are_open_so_that_they_can_be_opened_again),
		cmocka_unit_test(ptl_fini__ends_cleanly_with_operations_in_flight),
		cmocka_unit_test(fork__gives_the_child_noinit_and_leaves_the_parent_as_it_was),
		cmocka_unit_test(fork__lets_the_child_exit_as_any_program_does),
		cmocka_unit_test(ptl_init__may_be_called_by_many_threads_at_once),
	};

	setenv("PTL_IFACE_NAME", "loop:alone", 1);
	unsetenv("PTL_NID");
	return cmocka_run_group_tests_name("init", tests, NULL, NULL);
}
