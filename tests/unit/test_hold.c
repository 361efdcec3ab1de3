/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hold.c - tests of pmd-glue/hold.c. No card is needed: any address will do, one of this
 * process's own. */
#include "glue_fixture.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmd-glue/eal.h>
#include <pmd-glue/hold.h>

static char address[32], path[PATH_MAX + NAME_MAX];

static int address_make(void **state)
{
	char directory[PATH_MAX];

	(void)state;
	snprintf(address, sizeof(address), "%04x:ff:1f.7", (unsigned)getpid() & 0xffffu);
	eal_runtime_directory(directory, sizeof(directory));
	snprintf(path, sizeof(path), "%s/postern-%s.lock", directory, address);
	return settings_load();
}

static int file_remove(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

/* A process that takes the card and says so, and then waits to be killed. */
static pid_t holder_start(void)
{
	int ends[2];
	char said = 0;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		said = hold_take(address) == 0 && hold_take(address) == 0 ? 'y' : 'n';
		(void)!write(ends[1], &said, 1);
		alarm(60);
		for (;;)
			pause();
	}
	assert_true(child > 0);
	assert_int_equal(read(ends[0], &said, 1), 1);
	assert_int_equal(said, 'y');
	close(ends[0]);
	close(ends[1]);
	return child;
}

static void holder_kill(pid_t holder)
{
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
}

static void hold_take__names_the_process_that_has_the_card(void **state)
{
	pid_t holder = holder_start();
	char said[64];

	(void)state;
	log_clear_error();
	assert_int_equal(hold_take(address), -1);
	snprintf(said, sizeof(said), "%s: process %d has this card", address, (int)holder);
	if (!strstr(log_last_error(), said))
		fail_msg("%s", log_last_error());
	holder_kill(holder);
}

static void eal_need__leaves_a_card_alone_that_another_process_has(void **state)
{
	pid_t holder = holder_start();

	(void)state;
	fixture_set("PTL_IFACE_NAME", address);
	log_clear_error();
	assert_int_equal(glue_start(), 0);
	assert_int_equal(eal_need(), -1);
	assert_non_null(strstr(log_last_error(), "has this card"));
	fixture_set("PTL_IFACE_NAME", NULL);
	holder_kill(holder);
	/* It can be tried again. */
	assert_int_equal(eal_need(), 0);
}

static void hold_take__has_a_card_whose_process_was_killed(void **state)
{
	holder_kill(holder_start());
	(void)state;
	assert_int_equal(hold_take(address), 0);
	assert_int_equal(hold_take(address), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hold_take__names_the_process_that_has_the_card),
		cmocka_unit_test(eal_need__leaves_a_card_alone_that_another_process_has),
		cmocka_unit_test(hold_take__has_a_card_whose_process_was_killed),
	};

	return cmocka_run_group_tests(tests, address_make, file_remove);
}
