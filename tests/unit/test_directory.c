/* SPDX-License-Identifier: BSD-3-Clause */
/* test_directory.c - tests of pmd-glue/directory.c: the directories of rendezvous, as rendezvous
 * open them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/log.h>
#include <pmd-glue/directory.h>

#include "rendezvous_rig.h"

#define NEWCOMERS 5000u

static void rendezvous_open__refuses_a_wrong_name(void **state)
{
	static const char *const wrong[] = {
		"a/b", "..", ".", ".x", "a b", "\xc3\xa4", "123456789012345678901234567890123"};
	struct rendezvous *rendezvous;

	(void)state;
	for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
		assert_null(rendezvous_at(wrong[n], 1));
		assert_non_null(strstr(log_last_error(), "this name is invalid"));
	}
	rendezvous = rendezvous_at("12345678901234567890123456789-_.", 1);
	assert_non_null(rendezvous);
	rendezvous_close(rendezvous);
}

static void rendezvous_open__refuses_a_directory_that_is_not_its_own(void **state)
{
	char path[128];
	struct rendezvous *rendezvous;

	(void)state;
	snprintf(path, sizeof(path), "%s/postern", runtime);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_null(rendezvous_at(NULL, 1));
	assert_non_null(strstr(log_last_error(), "is no directory"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, S_IRWXU | S_IXOTH), 0);
	assert_null(rendezvous_at(NULL, 1));
	assert_non_null(strstr(log_last_error(), "can be entered by other users: close it by"));
	assert_int_equal(chmod(path, S_IRWXU), 0);
	rendezvous = rendezvous_of(1);
	rendezvous_close(rendezvous);
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	assert_null(rendezvous_at(NULL, 1));
	assert_non_null(strstr(log_last_error(), "is a directory of user 65534: remove it, or set "
						 "XDG_RUNTIME_DIR"));
}

/* Of a process without privileges. Returns the number of the step that fails; 0: none. */
static int open_whatever_the_umask(void)
{
	struct rendezvous *one, *other;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/postern", runtime);
	(void)umask(0777);
	if (rendezvous_at(NULL, 1) ||
		!strstr(log_last_error(), "is closed to its own user: chmod 700 "))
		return 1;
	(void)umask(077);
	if (chmod(path, S_IRWXU) != 0 || !(one = rendezvous_at(NULL, 1)))
		return 2;
	snprintf(path, sizeof(path), "%s/lock", rendezvous_path(one));
	rendezvous_close(one);
	(void)umask(0777);
	if (unlink(path) != 0 || !(one = rendezvous_at(NULL, 1)) ||
		!(other = rendezvous_at(NULL, 2)))
		return 3;
	return rendezvous_connect(one, 2) ? 0 : 4;
}

static void rendezvous_open__says_when_the_umask_is_in_the_way(void **state)
{
	int child, dead;

	(void)state;
	if (geteuid() == 0)
		assert_int_equal(chown(runtime, NOBODY, NOBODY), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0)
			_exit(9);
		_exit(open_whatever_the_umask());
	}
	assert_int_equal(waitpid(child, &dead, 0), child);
	assert_int_equal(dead, 0);
}

static bool exchanges; /* the next opening of the upper directory finds another one */

int __real_openat64(int upper, const char *name, int flags, mode_t mode);
int __wrap_openat64(int upper, const char *name, int flags, mode_t mode);

int __wrap_openat64(int upper, const char *name, int flags, mode_t mode)
{
	if (exchanges && strcmp(name, "postern") == 0) {
		exchanges = false;
		assert_int_equal(renameat(upper, name, upper, "own"), 0);
		assert_int_equal(mkdirat(upper, name, S_IRWXU), 0);
		assert_int_equal(fchmodat(upper, name, ACCESSPERMS, 0), 0);
	}
	return __real_openat64(upper, name, flags, mode);
}

static bool files_are_short; /* for the directory of logins */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

int __wrap_open64(const char *path, int flags, ...)
{
	va_list rest;
	mode_t mode;

	if (files_are_short && strcmp(path, runtime) == 0) {
		errno = EMFILE;
		return -1;
	}
	va_start(rest, flags);
	mode = va_arg(rest, mode_t);
	va_end(rest);
	return __real_open64(path, flags, mode);
}

/* The processes that had a descriptor are not in /tmp. */
static void rendezvous_open__goes_nowhere_else_for_lack_of_a_descriptor(void **state)
{
	(void)state;
	files_are_short = true;
	assert_null(rendezvous_at(NULL, 1));
	files_are_short = false;
	assert_non_null(strstr(log_last_error(), runtime));
}

/* The upper directory may be of the user of a set-uid program, who exchanges this one when it has
 * been looked at. */
static void rendezvous_open__looks_at_the_directory_that_it_has_opened(void **state)
{
	(void)state;
	rendezvous_close(rendezvous_of(1));
	exchanges = true;
	assert_null(rendezvous_at(NULL, 1));
	assert_false(exchanges);
	assert_non_null(strstr(log_last_error(), "can be entered by other users"));
}

static void rendezvous_open__reaches_long_paths(void **state)
{
	char path[256], name[120];
	struct rendezvous *a, *b;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	snprintf(path, sizeof(path), "%s/%s", runtime, name);
	assert_int_equal(mkdir(path, S_IRWXU), 0);
	setenv("XDG_RUNTIME_DIR", path, 1);
	a = rendezvous_of(1);
	b = rendezvous_of(2);
	munmap(rendezvous_connect(a, 2)->memory, BYTES);
	munmap(expect(b, RENDEZVOUS_CAME)->memory, BYTES);
	rendezvous_close(a);
	rendezvous_close(b);
}

static void directory_remove__removes_a_directory_that_nobody_is_in(void **state)
{
	struct rendezvous *rendezvous = rendezvous_at("job", 1);
	char path[PATH_MAX];
	int child, dead;

	(void)state;
	assert_non_null(rendezvous);
	snprintf(path, sizeof(path), "%s", rendezvous_path(rendezvous));
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(rendezvous_at("job", 2) ? 0 : 1); /* leaves its socket behind */
	assert_int_equal(waitpid(child, &dead, 0), child);
	assert_int_equal(dead, 0);
	directory_remove("job");
	assert_int_equal(access(path, F_OK), 0);
	rendezvous_close(rendezvous);
	directory_remove("job");
	assert_int_equal(access(path, F_OK), -1);
	directory_remove("job");
	assert_int_equal(access(path, F_OK), -1);
}

static void rendezvous_lacks__a_process_that_is_not_in_the_directory(void **state)
{
	struct rendezvous *a = rendezvous_of(1), *b = rendezvous_of(2);
	int child, dead;

	(void)state;
	assert_false(rendezvous_lacks(a, 1));
	assert_false(rendezvous_lacks(a, 2));
	assert_true(rendezvous_lacks(a, 3));
	assert_true(rendezvous_lacks(a, 0));
	assert_true(rendezvous_lacks(a, UINT32_MAX));
	rendezvous_close(b);
	assert_true(rendezvous_lacks(a, 2));
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		b = rendezvous_of(2);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &dead, WUNTRACED), child);
	assert_true(WIFSTOPPED(dead));
	assert_false(rendezvous_lacks(a, 2));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &dead, 0), child);
	assert_true(rendezvous_lacks(a, 2));
	b = rendezvous_of(2);
	assert_false(rendezvous_lacks(a, 2));
	rendezvous_close(b);
	rendezvous_close(a);
}

static void directory_remove_numbered__leaves_what_is_in_use_or_named_otherwise(void **state)
{
	static const char *const names[] = {"job-1", "job-22", "job-", "job-1x", "jobs-1"};
	struct rendezvous *rendezvous = rendezvous_at("job-333", 1);
	char path[PATH_MAX];

	(void)state;
	for (unsigned n = 0; n < 5; n++)
		rendezvous_close(rendezvous_at(names[n], 1));
	directory_remove_numbered("job-");
	for (unsigned n = 0; n < 5; n++) {
		snprintf(path, sizeof(path), "%s/postern/%s", runtime, names[n]);
		assert_int_equal(access(path, F_OK), n < 2 ? -1 : 0);
		directory_remove(names[n]);
	}
	assert_int_equal(access(rendezvous_path(rendezvous), F_OK), 0);
	rendezvous_close(rendezvous);
	directory_remove_numbered("job-");
	snprintf(path, sizeof(path), "%s/postern/job-333", runtime);
	assert_int_equal(access(path, F_OK), -1);
}

static atomic_bool removing;

static void *remover_run(void *context)
{
	(void)context;
	while (atomic_load(&removing))
		directory_remove("job");
	return NULL;
}

/* A newcomer that has entered the directory keeps it, or enters the next one. */
static void directory_remove__spares_a_newcomer(void **state)
{
	pthread_t remover;

	(void)state;
	atomic_store(&removing, true);
	assert_int_equal(pthread_create(&remover, NULL, remover_run, NULL), 0);
	for (unsigned n = 0; n < NEWCOMERS; n++) {
		struct rendezvous *rendezvous = rendezvous_at("job", 1);

		assert_non_null(rendezvous);
		close(raw_connect(rendezvous));
		rendezvous_close(rendezvous);
	}
	atomic_store(&removing, false);
	pthread_join(remover, NULL);
	directory_remove("job");
}

static void directory_survey__tells_the_living_from_the_dead(void **state)
{
	struct rendezvous *rendezvous = rendezvous_of(1);
	struct directory_survey survey;
	char path[128];
	int fd;

	(void)state;
	assert_true(directory_survey(NULL, &survey, log_error));
	assert_string_equal(survey.path, rendezvous_path(rendezvous));
	assert_int_equal(survey.uid, geteuid());
	assert_int_equal(survey.living, 1);
	assert_int_equal(survey.dead + survey.strange + survey.idle, 0);
	snprintf(path, sizeof(path), "%.90s/77", rendezvous_path(rendezvous));
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%.90s/letter", rendezvous_path(rendezvous));
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_true(directory_survey("another", &survey, log_error));
	assert_int_equal(survey.living + survey.dead + survey.strange + survey.idle, 0);
	assert_true(directory_survey(NULL, &survey, log_error));
	assert_int_equal(survey.living, 1);
	assert_int_equal(survey.dead, 1);
	assert_int_equal(survey.strange, 1);
	assert_int_equal(survey.idle, 1);
	assert_string_equal(survey.idle_names, "another");
	free(survey.idle_names);
	assert_int_equal(unlink(path), 0);
	directory_remove("another");
	rendezvous_close(rendezvous);
	assert_false(directory_survey("a/b", &survey, log_error));
}

static void rendezvous_open__goes_to_tmp_otherwise(void **state)
{
	struct rendezvous *rendezvous;
	char name[32], expected[64];
	const char *path;

	(void)state;
	setenv("XDG_RUNTIME_DIR", "/proc/nowhere", 1);
	snprintf(name, sizeof(name), "test-rendezvous-%d", getpid());
	rendezvous = rendezvous_at(name, RENDEZVOUS_PID_ANY);
	assert_non_null(rendezvous);
	path = rendezvous_path(rendezvous);
	/* In a user namespace the user's number outside follows. */
	snprintf(expected, sizeof(expected), "/tmp/postern-%u", geteuid());
	assert_memory_equal(path, expected, strlen(expected));
	assert_string_equal(strrchr(path, '/') + 1, name);
	snprintf(expected, sizeof(expected), "%s", path);
	rendezvous_close(rendezvous);
	remove_all(expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(rendezvous_open__refuses_a_wrong_name),
		CASE(rendezvous_open__refuses_a_directory_that_is_not_its_own),
		CASE(rendezvous_open__says_when_the_umask_is_in_the_way),
		CASE(rendezvous_open__looks_at_the_directory_that_it_has_opened),
		CASE(rendezvous_open__goes_nowhere_else_for_lack_of_a_descriptor),
		CASE(rendezvous_open__reaches_long_paths),
		CASE(directory_remove__removes_a_directory_that_nobody_is_in),
		CASE(rendezvous_lacks__a_process_that_is_not_in_the_directory),
		CASE(directory_remove_numbered__leaves_what_is_in_use_or_named_otherwise),
		CASE(directory_remove__spares_a_newcomer),
		CASE(directory_survey__tells_the_living_from_the_dead),
		CASE(rendezvous_open__goes_to_tmp_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
