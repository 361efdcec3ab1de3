/* SPDX-License-Identifier: BSD-3-Clause */
/* test_file.c - tests of lib/base/file.c: traps that others lay where everybody may write. The
 * tests run as root, who can lay them; without root those that need another user are skipped. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include <base/file.h>

#define STRANGER 65534
#define OTHER    65533
#define SECRET   "nobody may lose this"

static char directory[] = "/tmp/ptn-file-XXXXXX";

/* A path in the directory; four at a time. */
static const char *at(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static void file_make(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void assert_text(const char *path, const char *wanted)
{
	char text[128] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	(void)!fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	assert_string_equal(text, wanted);
}

static void assert_opens(const char *path)
{
	const char *reason = "";
	FILE *file = file_stream(path, &reason);

	if (!file)
		fail_msg("%s: %s", path, reason);
	fputs("new", file);
	fclose(file);
}

static void assert_refused(const char *path, int error, const char *part)
{
	const char *reason = "";

	assert_int_equal(file_write(path, O_CREAT | O_NONBLOCK, 0600, &reason), -1);
	assert_int_equal(errno, error);
	assert_non_null(strstr(reason, part));
	assert_null(file_stream(path, &reason));
	assert_non_null(strstr(reason, part));
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static int begin(void **state)
{
	(void)state;
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	return mkdtemp(directory) && chmod(directory, 01777) == 0 && mkdir(at("own"), 0700) == 0
		       ? 0
		       : -1;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

static void file_stream__makes_and_empties(void **state)
{
	struct stat status;

	(void)state;
	umask(027);
	assert_opens(at("new"));
	assert_text(at("new"), "new");
	assert_int_equal(stat(at("new"), &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
	file_make(at("own/old"), SECRET);
	assert_opens(at("own/../own//./old"));
	assert_text(at("own/old"), "new");
	assert_opens("/dev/null");
}

static void file_write__takes_what_is_open(void **state)
{
	char path[64], text[8] = "";
	const char *reason;
	int ends[2], fd;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	fd = file_write(path, O_CREAT, 0600, &reason);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "word", 4), 4);
	assert_int_equal(read(ends[0], text, 4), 4);
	assert_string_equal(text, "word");
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void file_write__says_what_is_wrong(void **state)
{
	char name[300];
	const char *reason;

	(void)state;
	assert_refused("", ENOENT, "No such file");
	assert_refused(at("none/new"), ENOENT, "No such file");
	assert_refused(at("own"), EISDIR, "directory");
	assert_refused(at("own/"), EISDIR, "directory");
	file_make(at("own/file"), SECRET);
	assert_refused(at("own/file/new"), ENOTDIR, "Not a directory");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_refused(name, ENAMETOOLONG, "too long");
	assert_int_equal(symlink("turn", at("turn")), 0);
	assert_refused(at("turn"), ELOOP, "symbolic links");
	assert_int_equal(file_write(at("gone"), 0, 0, &reason), -1);
	assert_int_equal(errno, ENOENT);
}

static void file_write__follows_links_of_its_own_user(void **state)
{
	(void)state;
	file_make(at("own/file"), SECRET);
	assert_int_equal(symlink("own/file", at("link")), 0);
	assert_opens(at("link"));
	assert_text(at("own/file"), "new");
	assert_int_equal(symlink(at("own"), at("way")), 0);
	assert_opens(at("way/made"));
	assert_text(at("own/made"), "new");
}

static void file_write__follows_no_link_of_a_stranger(void **state)
{
	(void)state;
	need_root();
	file_make(at("own/file"), SECRET);
	assert_int_equal(symlink("own/file", at("link")), 0);
	assert_int_equal(lchown(at("link"), STRANGER, STRANGER), 0);
	assert_refused(at("link"), EPERM, "symbolic link");
	assert_int_equal(symlink("own", at("way")), 0);
	assert_int_equal(lchown(at("way"), STRANGER, STRANGER), 0);
	assert_refused(at("way/file"), EPERM, "symbolic link");
	assert_refused(at("way/made"), EPERM, "symbolic link");
	/* Nor one that a link of its own leads to. */
	assert_int_equal(symlink(at("link"), at("own/link")), 0);
	assert_refused(at("own/link"), EPERM, "symbolic link");
	assert_text(at("own/file"), SECRET);
	assert_int_equal(access(at("own/made"), F_OK), -1);
	/* Where others may not write it is the directory's owner who has put it there. */
	assert_int_equal(symlink("file", at("own/near")), 0);
	assert_int_equal(lchown(at("own/near"), STRANGER, STRANGER), 0);
	assert_opens(at("own/near"));
}

static void file_write__opens_no_file_of_another(void **state)
{
	(void)state;
	need_root();
	file_make(at("file"), SECRET);
	assert_int_equal(chmod(at("file"), 0666), 0);
	assert_int_equal(chown(at("file"), STRANGER, STRANGER), 0);
	assert_refused(at("file"), EPERM, "another user");
	assert_text(at("file"), SECRET);
	assert_int_equal(mkfifo(at("fifo"), 0666), 0);
	assert_int_equal(chown(at("fifo"), STRANGER, STRANGER), 0);
	assert_refused(at("fifo"), EPERM, "another user");
	/* A regular file of root is another's as well. */
	file_make(at("roots"), SECRET);
	assert_int_equal(chmod(at("roots"), 0666), 0);
	assert_int_equal(seteuid(OTHER), 0);
	assert_refused(at("roots"), EPERM, "another user");
	assert_opens("/dev/null");
	assert_int_equal(seteuid(0), 0);
	assert_text(at("roots"), SECRET);
}

static void file_write__opens_no_second_name_where_others_write(void **state)
{
	(void)state;
	file_make(at("own/file"), SECRET);
	assert_int_equal(link(at("own/file"), at("own/second")), 0);
	assert_opens(at("own/second"));
	file_make(at("own/file"), SECRET);
	assert_int_equal(link(at("own/file"), at("planted")), 0);
	assert_refused(at("planted"), EPERM, "another name");
	assert_text(at("own/file"), SECRET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(file_stream__makes_and_empties, begin, end),
		cmocka_unit_test_setup_teardown(file_write__takes_what_is_open, begin, end),
		cmocka_unit_test_setup_teardown(file_write__says_what_is_wrong, begin, end),
		cmocka_unit_test_setup_teardown(
			file_write__follows_links_of_its_own_user, begin, end),
		cmocka_unit_test_setup_teardown(
			file_write__follows_no_link_of_a_stranger, begin, end),
		cmocka_unit_test_setup_teardown(file_write__opens_no_file_of_another, begin, end),
		cmocka_unit_test_setup_teardown(
			file_write__opens_no_second_name_where_others_write, begin, end),
	};

	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
