/* SPDX-License-Identifier: BSD-3-Clause */
/* test_death.c - a peer that is killed: every operation that names it ends with an error entry, and
 * its address is nobody's from then on.
 * Covers: lib/fi/peer.c. */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fi_info *own_info;
static struct side own;

static void own_open(void)
{
	struct fi_info *hints =
		hints_make(&(struct wish){.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV});

	own_info = info = offer_of(hints);
	fi_freeinfo(hints);
	assert_non_null(info);
	assert_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
	assert_ok(fi_domain(fabric, info, &domain, NULL));
	side_open(&own, &(struct wish){0});
}

static void own_close(void)
{
	side_close(&own);
	assert_ok(fi_close(&domain->fid));
	assert_ok(fi_close(&fabric->fid));
	fi_freeinfo(own_info);
}

/* Says where it is, takes one message, and makes progress until it is killed. */
static void child_run(int out)
{
	struct fi_cq_tagged_entry entry;
	char word[8];

	own_open();
	assert_ok(fi_trecv(own.ep, word, 8, NULL, FI_ADDR_UNSPEC, 1, 0, word));
	assert_int_equal(write(out, own.name, sizeof(own.name)), sizeof(own.name));
	while (fi_cq_read(own.cq, &entry, 1) != 1)
		;
	assert_int_equal(write(out, "got", 3), 3);
	for (;;)
		(void)fi_cq_read(own.cq, NULL, 0);
}

static void all_operations_end(void **state)
{
	static char longer[100000];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	char name[NAME_BYTES], word[8], got[3];
	int contexts[3], pipes[2], ended = 0;
	fi_addr_t peer;
	pid_t child;

	(void)state;
	assert_ok(pipe(pipes));
	child = fork();
	if (child == 0) {
		child_run(pipes[1]);
		_exit(1);
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], name, sizeof(name)), sizeof(name));
	own_open();
	assert_int_equal(fi_av_insert(own.av, name, 1, &peer, 0, NULL), 1);
	assert_ok(fi_tsend(own.ep, "hello", 6, NULL, peer, 1, word));
	completion_take(&own, &entry, NULL);
	assert_int_equal(read(pipes[0], got, sizeof(got)), sizeof(got));
	/* A send that nobody receives, one longer than what is copied, a receive from it alone. */
	assert_ok(fi_tsendmsg(own.ep,
		&(struct fi_msg_tagged){.msg_iov = &(struct iovec){word, 8},
			.iov_count = 1,
			.addr = peer,
			.tag = 2,
			.context = &contexts[0]},
		FI_MATCH_COMPLETE));
	assert_ok(fi_tsend(own.ep, longer, sizeof(longer), NULL, peer, 3, &contexts[1]));
	assert_ok(fi_trecv(own.ep, word, 8, NULL, peer, 1, 0, &contexts[2]));
	assert_ok(kill(child, SIGKILL));
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (unsigned i = 0; i < 3; i++) {
		error_take(&own, &error);
		assert_true(error.err == FI_EIO || error.err == FI_EHOSTUNREACH);
		for (unsigned n = 0; n < 3; n++)
			if (error.op_context == &contexts[n])
				ended |= 1 << n;
	}
	assert_int_equal(ended, 7);
	/* Again: nobody is there. */
	assert_ok(fi_tsend(own.ep, "hello", 6, NULL, peer, 1, contexts));
	error_take(&own, &error);
	assert_int_equal(error.err, FI_EHOSTUNREACH);
	assert_ptr_equal(error.op_context, contexts);
	assert_int_equal(fi_cq_read(own.cq, &entry, 1), -FI_EAGAIN);
	own_close();
	close(pipes[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_operations_end)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
