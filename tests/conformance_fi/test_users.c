/* SPDX-License-Identifier: BSD-3-Clause */
/* test_users.c - a process of another user, which knows the address and the key of a region: what
 * it tries ends with an error, and changes nothing. Only root can become somebody else.
 * Covers: lib/fi/peer.c, lib/fi/rma.c. */
#include "fixture.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANG   60 /* s */
#define KEY    UINT64_C(9)
#define NOBODY 65534

static const struct wish wish = {.caps = FI_TAGGED | FI_RMA | FI_ATOMIC};
static struct side own;
static pid_t stranger;
static int to_stranger[2], from_stranger[2];

/* What the next completion says, as an error; 0: it is none. */
static int end_take(void)
{
	const time_t end = time(NULL) + HANG;
	struct fi_cq_err_entry error = {0};
	struct fi_cq_tagged_entry entry;
	ssize_t result;

	while ((result = fi_cq_read(own.cq, &entry, 1)) == -FI_EAGAIN)
		assert_true(time(NULL) < end);
	if (result != -FI_EAVAIL)
		return 0;
	assert_int_equal(fi_cq_readerr(own.cq, &error, 0), 1);
	return error.err;
}

/* Returns true if all was refused. */
static bool stranger_tries(const char *name)
{
	uint64_t word = 77, old = 0;
	fi_addr_t to;
	bool refused = true;

	if (fi_av_insert(own.av, name, 1, &to, 0, NULL) != 1)
		return false;
	for (unsigned i = 0; i < 3; i++) {
		assert_ok(fi_write(own.ep, &word, 8, NULL, to, 0, KEY, NULL));
		refused = refused && end_take() == FI_EPERM;
		assert_ok(fi_writedata(own.ep, &word, 8, NULL, 1, to, 0, KEY, NULL));
		refused = refused && end_take() == FI_EPERM;
		assert_ok(fi_read(own.ep, &old, 8, NULL, to, 0, KEY, NULL));
		refused = refused && end_take() == FI_EPERM;
		assert_ok(fi_atomic(own.ep, &word, 1, NULL, to, 0, KEY, FI_UINT64, FI_SUM, NULL));
		refused = refused && end_take() == FI_EPERM;
	}
	assert_ok(fi_tsend(own.ep, &word, 8, NULL, to, 1, NULL));
	return refused && end_take() == FI_EACCES && old == 0;
}

static void stranger_run(void)
{
	char name[NAME_BYTES];
	bool refused;

	close(to_stranger[1]); /* so that a read ends when the other process does */
	/* As root: others may not be able to read the library where it was built. */
	info_load(&wish);
	if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
		_exit(1);
	single_open(&own);
	assert_int_equal(read(to_stranger[0], name, sizeof(name)), sizeof(name));
	refused = stranger_tries(name);
	single_close(&own);
	assert_int_equal(write(from_stranger[1], &refused, sizeof(refused)), sizeof(refused));
	_exit(0);
}

/* A process that has started the provider forks none that does. */
static int stranger_start(void **state)
{
	(void)state;
	if (geteuid() != 0)
		return 0;
	assert_ok(pipe(to_stranger));
	assert_ok(pipe(from_stranger));
	stranger = peer_fork();
	if (stranger == 0)
		stranger_run();
	close(from_stranger[1]);
	return 0;
}

static void another_user_s_process_is_refused(void **state)
{
	static uint64_t memory = 5;
	struct fi_cq_tagged_entry entry;
	bool refused = false;
	struct fid_mr *mr;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip();
	info_load(&wish);
	single_open(&own);
	assert_ok(fi_mr_reg(domain, &memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
		KEY, 0, &mr, NULL));
	assert_int_equal(write(to_stranger[1], own.name, sizeof(own.name)), sizeof(own.name));
	while (waitpid(stranger, &status, WNOHANG) == 0)
		assert_int_equal(fi_cq_read(own.cq, &entry, 1), -FI_EAGAIN);
	assert_int_equal(status, 0);
	assert_int_equal(read(from_stranger[0], &refused, sizeof(refused)), sizeof(refused));
	assert_true(refused);
	assert_int_equal(memory, 5);
	assert_int_equal(fi_cq_read(own.cq, &entry, 1), -FI_EAGAIN);
	assert_ok(fi_close(&mr->fid));
	single_close(&own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(another_user_s_process_is_refused)};

	return cmocka_run_group_tests(tests, stranger_start, NULL);
}
