/* SPDX-License-Identifier: BSD-3-Clause */
/* test_environment.c - what is taken of the environment in a program with more rights than its
 * user, and in others. Here a function of the test's says which of them it is, in the kernel's
 * place; tests/net/privileged.py has real ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include <base/environment.h>
#include <base/log.h>
#include <base/settings.h>

static bool privileged;

unsigned long __wrap_getauxval(unsigned long type);
unsigned long __real_getauxval(unsigned long type);

unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_SECURE ? privileged : __real_getauxval(type);
}

static int begin(void **state)
{
	(void)state;
	privileged = true;
	return 0;
}

static int end(void **state)
{
	(void)state;
	privileged = false;
	unsetenv("PTL_MX_HOSTS");
	unsetenv("PMI_FD");
	return 0;
}

static void test_items(void **state)
{
	static const struct {
		enum trust trust;
		const char *item;
		bool taken;
	} items[] = {
		{TRUST_HARMLESS, "any", true},
		{TRUST_NONE, "any", false},
		{TRUST_NONE, "", false},
		{TRUST_FILE, "/any", true},
		{TRUST_INTERFACE, "node", true},
		{TRUST_INTERFACE, "node:a", true},
		{TRUST_INTERFACE, "nodes", false},
		{TRUST_INTERFACE, "udp", true},
		{TRUST_INTERFACE, "udp:lo", true},
		{TRUST_INTERFACE, "udpx", false},
		{TRUST_INTERFACE, "lo", true},
		{TRUST_INTERFACE, "lo,x", false},
		{TRUST_INTERFACE, "xdp:lo", false},
		{TRUST_INTERFACE, "net_pcap0,iface=lo", false},
		{TRUST_INTERFACE, "an interface that is far too long for the kernel", false},
		{TRUST_PORTS, "1023-2000", false},
		{TRUST_PORTS, "1024-2000", true},
		{TRUST_PORTS, "", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		privileged = true;
		assert_int_equal(!environment_fault(items[i].trust, items[i].item), items[i].taken);
		privileged = false;
		assert_null(environment_fault(items[i].trust, items[i].item));
	}
}

/* A launcher's socket comes from another process; the test has none of those. */
static void test_sockets(void **state)
{
	static const char *const wrong[] = {"", "-1", "1x", "99999999999999999999", "4000000000"};
	char own[16];
	int ends[2];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_non_null(environment_fault(TRUST_SOCKET, wrong[i]));
	assert_int_equal(pipe(ends), 0);
	snprintf(own, sizeof(own), "%d", ends[1]);
	assert_non_null(environment_fault(TRUST_SOCKET, own));
	setenv("PMI_FD", own, 1);
	assert_null(environment_text("PMI_FD"));
	privileged = false;
	assert_string_equal(environment_text("PMI_FD"), own);
	close(ends[0]);
	close(ends[1]);
}

static void test_settings(void **state)
{
	(void)state;
	setenv("PTL_EAL_ARGS", "-d ./own.so", 1);
	assert_int_equal(settings_load(), -1);
	assert_non_null(strstr(log_last_error(), "PTL_EAL_ARGS is \"-d ./own.so\""));
	unsetenv("PTL_EAL_ARGS");
	setenv("PTL_IFACE_NAME", "node;net_null0", 1);
	assert_int_equal(settings_load(), -1);
	assert_non_null(strstr(log_last_error(), "\"net_null0\""));
	setenv("PTL_IFACE_NAME", "node;node:a", 1);
	assert_int_equal(settings_load(), 0);
	unsetenv("PTL_IFACE_NAME");
	assert_int_equal(settings_load(), 0);
}

static void file_taken(const char *path)
{
	const char *reason;
	FILE *file = environment_open(path, &reason);

	assert_non_null(file);
	assert_null(reason);
	fclose(file);
}

static void file_refused(const char *path, const char *why)
{
	const char *reason = NULL;

	assert_null(environment_open(path, &reason));
	assert_string_equal(reason, why);
}

static void test_files(void **state)
{
	char path[] = "/tmp/postern-test-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	file_taken(path);
	assert_int_equal(fchmod(fd, 0664), 0);
	file_refused(path, "other users can write to it");
	assert_int_equal(fchmod(fd, 0646), 0);
	file_refused(path, "other users can write to it");
	if (geteuid() == 0) {
		assert_int_equal(fchmod(fd, 0644), 0);
		assert_int_equal(fchown(fd, 1, 1), 0);
		file_refused(path, "it belongs to another user");
		assert_int_equal(fchown(fd, 0, 0), 0);
	}
	privileged = false;
	assert_int_equal(fchmod(fd, 0646), 0);
	file_taken(path);
	close(fd);
	unlink(path);
	file_refused(path, strerror(ENOENT));
}

/* A FIFO that nobody writes to does not block the program. */
static void test_no_regular_file(void **state)
{
	char directory[] = "/tmp/postern-test-XXXXXX", fifo[sizeof(directory) + 5];

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (unsigned n = 0; n < 2; n++) {
		file_refused(directory, "it is not a regular file");
		file_refused("/dev/null", "it is not a regular file");
		file_refused(fifo, "it is not a regular file");
		privileged = false;
	}
	unlink(fifo);
	rmdir(directory);
}

/* After a file was opened the thread has its rights again. */
static void test_rights(void **state)
{
	char path[] = "/tmp/postern-test-XXXXXX";
	int fd = mkstemp(path);
	FILE *file;

	(void)state;
	assert_int_equal(fchmod(fd, 0600), 0);
	if (geteuid() == 0) {
		/* CAP_DAC_OVERRIDE is not used for the file, and there afterwards. */
		assert_int_equal(fchmod(fd, 0), 0);
		file_refused(path, strerror(EACCES));
		file = fopen(path, "re");
		assert_non_null(file);
		fclose(file);
	} else {
		file_taken(path);
	}
	close(fd);
	unlink(path);
}

static void test_runtime(void **state)
{
	char path[64], own[64];
	struct stat status;

	(void)state;
	setenv("XDG_RUNTIME_DIR", "/tmp", 1);
	snprintf(own, sizeof(own), "/run/user/%u", getuid());
	if (lstat(own, &status) == 0 && status.st_uid == getuid()) {
		assert_true(environment_runtime(path, sizeof(path)));
		assert_string_equal(path, own);
	} else {
		assert_false(environment_runtime(path, sizeof(path)));
		assert_string_equal(path, "");
	}
	privileged = false;
	assert_true(environment_runtime(path, sizeof(path)));
	assert_string_equal(path, "/tmp");
	assert_false(environment_runtime(path, 4));
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	assert_false(environment_runtime(path, sizeof(path)));
	assert_string_equal(path, "relative");
	unsetenv("XDG_RUNTIME_DIR");
	assert_false(environment_runtime(path, sizeof(path)));
}

static void test_foreign(void **state)
{
	static const char *const names[] = {
		"PTL_LIM_MAX_MES", "PTL_ADI_RANK", "PTL_MX_HOSTS", "PTL_ENABLE_MEM"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(environment_is_foreign(names[i], strlen(names[i])));
	assert_false(environment_is_foreign("PTL_ENABLE_MEMORY", strlen("PTL_ENABLE_MEMORY")));
	assert_false(environment_is_foreign("PTL_LI", strlen("PTL_LI")));
	assert_false(environment_is_foreign("PTL_ADI_RANKS", strlen("PTL_ADI_RANKS")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_items, begin, end),
		cmocka_unit_test_setup_teardown(test_sockets, begin, end),
		cmocka_unit_test_setup_teardown(test_settings, begin, end),
		cmocka_unit_test_setup_teardown(test_files, begin, end),
		cmocka_unit_test_setup_teardown(test_no_regular_file, begin, end),
		cmocka_unit_test_setup_teardown(test_rights, begin, end),
		cmocka_unit_test_setup_teardown(test_runtime, begin, end),
		cmocka_unit_test_setup_teardown(test_foreign, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
