/* SPDX-License-Identifier: BSD-3-Clause */
/* test_death.c - a peer that is killed: every operation that names it ends with an error entry, and
 * its address is nobody's from then on.
 * Covers: lib/fi/peer.c, lib/fi/rma.c. */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../nap.h"

#define FLIGHT 8 /* messages, after which their receiver tells of credit at first */

static struct side own;

static void own_open(void)
{
	info_load(&(struct wish){
		.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_RMA});
	single_open(&own);
}

/* Makes progress until it is killed. Several such children wait for their turns. */
static _Noreturn void child_wait(void)
{
	for (;;) {
		(void)fi_cq_read(own.cq, NULL, 0);
		nap();
	}
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
		nap();
	assert_int_equal(write(out, "got", 3), 3);
	child_wait();
}

/* What is written to standard error, as the log is, goes into a file. */
static FILE *written;
static int error_output;

static void log_begin(void)
{
	written = tmpfile();
	assert_non_null(written);
	error_output = dup(STDERR_FILENO);
	assert_int_equal(dup2(fileno(written), STDERR_FILENO), STDERR_FILENO);
}

static void log_end(char *text, size_t room)
{
	size_t length;

	assert_int_equal(dup2(error_output, STDERR_FILENO), STDERR_FILENO);
	close(error_output);
	rewind(written);
	length = fread(text, 1, room - 1, written);
	text[length] = '\0';
	fclose(written);
}

/* A search that names the dead finds nothing; each receive that names it ends, however it was
 * posted. */
static void receives_end(fi_addr_t peer)
{
	char word[8], many[256];
	const struct iovec piece = {many, sizeof(many)};
	const struct fi_msg message = {
		.msg_iov = &piece, .iov_count = 1, .addr = peer, .context = many};
	struct fi_cq_err_entry error;

	assert_ok(fi_trecvmsg(
		own.ep, &(struct fi_msg_tagged){.addr = peer, .context = word}, FI_PEEK));
	error_take(&own, &error);
	assert_int_equal(error.err, FI_ENOMSG);
	for (unsigned i = 0; i < 3; i++) {
		assert_ok(i == 0   ? fi_trecv(own.ep, word, 8, NULL, peer, 1, 0, many)
			  : i == 1 ? fi_recv(own.ep, word, 8, NULL, peer, many)
				   : fi_recvmsg(own.ep, &message, FI_MULTI_RECV));
		error_take(&own, &error);
		assert_int_equal(error.err, FI_EHOSTUNREACH);
		assert_ptr_equal(error.op_context, many);
		assert_true(error.flags ==
			    (i == 2 ? FI_MULTI_RECV : FI_RECV | (i == 0 ? FI_TAGGED : FI_MSG)));
	}
}

static void all_operations_end(void **state)
{
	static char longer[100000], text[20000];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	char name[NAME_BYTES], word[8], got[3];
	int contexts[3], pipes[2], ended = 0;
	fi_addr_t peer;
	pid_t child;

	(void)state;
	assert_ok(pipe(pipes));
	child = peer_fork();
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
	assert_ok(fi_tinject(own.ep, "lost", 5, peer, 4));
	/* A delivery is complete when the process has the message. */
	assert_ok(kill(child, SIGSTOP));
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	assert_ok(fi_tsendmsg(own.ep,
		&(struct fi_msg_tagged){.msg_iov = &(struct iovec){word, 8},
			.iov_count = 1,
			.addr = peer,
			.tag = 5,
			.context = own.ep},
		FI_DELIVERY_COMPLETE));
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(fi_cq_read(own.cq, &entry, 1), -FI_EAGAIN);
	assert_ok(kill(child, SIGCONT));
	completion_take(&own, &entry, NULL);
	assert_ptr_equal(entry.op_context, own.ep);
	/* Nothing is under way any more, so the end is found without another message. */
	assert_ok(kill(child, SIGKILL));
	assert_int_equal(waitpid(child, NULL, 0), child);
	log_begin();
	for (unsigned i = 0; i < 3; i++) {
		error_take(&own, &error);
		assert_true(error.err == FI_EIO || error.err == FI_EHOSTUNREACH);
		for (unsigned n = 0; n < 3; n++)
			if (error.op_context == &contexts[n])
				ended |= 1 << n;
	}
	assert_int_equal(ended, 7);
	log_end(text, sizeof(text));
	assert_non_null(strstr(text, "messages of fi_inject() to it may not have arrived"));
	/* Again: nobody is there. */
	assert_ok(fi_tsend(own.ep, "hello", 6, NULL, peer, 1, contexts));
	error_take(&own, &error);
	assert_int_equal(error.err, FI_EHOSTUNREACH);
	assert_ptr_equal(error.op_context, contexts);
	receives_end(peer);
	assert_int_equal(fi_cq_read(own.cq, &entry, 1), -FI_EAGAIN);
	single_close(&own);
	close(pipes[0]);
}

static pid_t sender, leaver;
static int to_sender[2], from_sender[2], to_leaver[2];

/* Sends FLIGHT messages to the process whose address it is told, and ends. */
static void child_leave(int in)
{
	char name[NAME_BYTES];
	fi_addr_t peer;

	if (read(in, name, sizeof(name)) != sizeof(name))
		return;
	own_open();
	assert_int_equal(fi_av_insert(own.av, name, 1, &peer, 0, NULL), 1);
	for (uint64_t tag = 0; tag < FLIGHT; tag++)
		assert_ok(fi_tinject(own.ep, "bye", 4, peer, tag));
	single_close(&own);
}

/* The last rank of a job receives what the others have sent, and tells them of credit, which nobody
 * needs any more: it does not warn of that. */
static void the_last_one_closes_without_a_warning(void **state)
{
	static char words[FLIGHT][4], text[20000];
	struct fi_cq_tagged_entry entry;

	(void)state;
	own_open();
	assert_int_equal(write(to_leaver[1], own.name, sizeof(own.name)), sizeof(own.name));
	while (waitpid(leaver, NULL, WNOHANG) == 0)
		assert_int_equal(fi_cq_read(own.cq, &entry, 1), -FI_EAGAIN);
	for (uint64_t tag = 0; tag < FLIGHT; tag++)
		assert_ok(fi_trecv(own.ep, words[tag], 4, NULL, FI_ADDR_UNSPEC, tag, 0, NULL));
	for (unsigned i = 0; i < FLIGHT; i++)
		completion_take(&own, &entry, NULL);
	log_begin();
	single_close(&own);
	log_end(text, sizeof(text));
	assert_null(strstr(text, "closes"));
}

/* Sends two messages to the process whose address it is told, and ends. */
static void child_send(int in, int out)
{
	char name[NAME_BYTES];
	fi_addr_t peer;

	if (read(in, name, sizeof(name)) != sizeof(name))
		return;
	own_open();
	assert_int_equal(write(out, own.name, sizeof(own.name)), sizeof(own.name));
	assert_int_equal(fi_av_insert(own.av, name, 1, &peer, 0, NULL), 1);
	assert_ok(fi_tinject(own.ep, "first", 6, peer, 1));
	assert_ok(fi_tinject(own.ep, "second", 7, peer, 2));
	single_close(&own);
}

/* A receive that names the sender gets what was kept of it after its end, too: also if another one,
 * for which nothing was kept, was posted before. That one ends with an error. */
static void messages_of_the_dead_are_received(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	char name[NAME_BYTES], word[8];
	fi_addr_t peer;

	(void)state;
	own_open();
	assert_int_equal(write(to_sender[1], own.name, sizeof(own.name)), sizeof(own.name));
	assert_int_equal(read(from_sender[0], name, sizeof(name)), sizeof(name));
	assert_int_equal(fi_av_insert(own.av, name, 1, &peer, 0, NULL), 1);
	while (waitpid(sender, NULL, WNOHANG) == 0)
		assert_int_equal(fi_cq_read(own.cq, &entry, 1), -FI_EAGAIN);
	/* Its end is noticed. */
	assert_ok(fi_tsendmsg(own.ep,
		&(struct fi_msg_tagged){.msg_iov = &(struct iovec){word, 8},
			.iov_count = 1,
			.addr = peer,
			.tag = 3,
			.context = word},
		FI_MATCH_COMPLETE));
	error_take(&own, &error);
	assert_ptr_equal(error.op_context, word);
	assert_ok(fi_trecv(own.ep, word, 8, NULL, peer, 98, 0, word));
	error_take(&own, &error);
	assert_int_equal(error.err, FI_EHOSTUNREACH);
	assert_ptr_equal(error.op_context, word);
	for (uint64_t tag = 2; tag > 0; tag--) {
		assert_ok(fi_trecv(own.ep, word, 8, NULL, peer, tag, 0, &entry));
		completion_take(&own, &entry, NULL);
		assert_string_equal(word, tag == 1 ? "first" : "second");
	}
	single_close(&own);
}

#define WINDOW 4000000

/* Says where it is, and computes: its memory is read and written meanwhile, or, with
 * PTL_PROGRESS=inline, when it looks. */
static void child_serve(int out)
{
	char *memory = calloc(1, WINDOW);
	struct fid_mr *mr;

	own_open();
	assert_non_null(memory);
	assert_ok(fi_mr_reg(
		domain, memory, WINDOW, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
	assert_int_equal(write(out, own.name, sizeof(own.name)), sizeof(own.name));
	child_wait();
}

/* A process that has started the provider forks none that does. */
static pid_t server, quiet[2];
static int server_says[2], quiet_says[2][2];

static int children_start(void **state)
{
	(void)state;
	assert_ok(pipe(to_sender));
	assert_ok(pipe(from_sender));
	sender = peer_fork();
	if (sender == 0) {
		close(to_sender[1]);
		child_send(to_sender[0], from_sender[1]);
		_exit(0);
	}
	assert_ok(pipe(to_leaver));
	leaver = peer_fork();
	if (leaver == 0) {
		close(to_leaver[1]);
		close(to_sender[1]);
		child_leave(to_leaver[0]);
		_exit(0);
	}
	assert_ok(pipe(server_says));
	server = peer_fork();
	if (server == 0) {
		child_serve(server_says[1]);
		_exit(1);
	}
	close(server_says[1]);
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(pipe(quiet_says[i]));
		quiet[i] = peer_fork();
		if (quiet[i] == 0) {
			child_run(quiet_says[i][1]);
			_exit(1);
		}
		close(quiet_says[i][1]);
	}
	return 0;
}

static int children_stop(void **state)
{
	(void)state;
	if (server > 0) {
		(void)kill(server, SIGKILL);
		(void)waitpid(server, NULL, 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		if (quiet[i] > 0) {
			(void)kill(quiet[i], SIGKILL);
			(void)waitpid(quiet[i], NULL, 0);
		}
		close(quiet_says[i][0]);
	}
	close(server_says[0]);
	close(to_sender[1]);
	close(to_leaver[1]);
	return 0;
}

/* A receive that names a process which sends nothing ends with this process, whether there was
 * contact or not. */
static void receives_from_the_silent_end(void **state)
{
	const char *progress = getenv("PTL_PROGRESS");
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	char name[NAME_BYTES], words[2][8];
	fi_addr_t peers[2];

	(void)state;
	if (progress && strcmp(progress, "inline") == 0)
		skip(); /* a peer that computes is silent as well */
	own_open();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(read(quiet_says[i][0], name, sizeof(name)), sizeof(name));
		assert_int_equal(fi_av_insert(own.av, name, 1, &peers[i], 0, NULL), 1);
	}
	assert_ok(fi_tsend(own.ep, "hello", 6, NULL, peers[0], 1, words));
	completion_take(&own, &entry, NULL);
	assert_int_equal(read(quiet_says[0][0], words, 3), 3); /* it has the message */
	for (unsigned i = 0; i < 2; i++)
		assert_ok(fi_trecv(own.ep, words[i], 8, NULL, peers[i], 1, 0, &peers[i]));
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(fi_cq_read(own.cq, &entry, 1), -FI_EAGAIN);
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(kill(quiet[i], SIGKILL));
		assert_int_equal(waitpid(quiet[i], NULL, 0), quiet[i]);
		quiet[i] = -1;
		error_take(&own, &error);
		assert_true(error.err == FI_EIO || error.err == FI_EHOSTUNREACH);
		assert_ptr_equal(error.op_context, &peers[i]);
	}
	assert_int_equal(fi_cq_read(own.cq, &entry, 1), -FI_EAGAIN);
	single_close(&own);
}

static ssize_t move_post(unsigned i, char *memory, fi_addr_t peer, void *context)
{
	switch (i % 4) {
	case 0:
		return fi_read(own.ep, memory, 8, NULL, peer, 0, 7, context);
	case 1:
		return fi_write(own.ep, memory, 8, NULL, peer, 8, 7, context);
	case 2:
		return fi_read(own.ep, memory, WINDOW, NULL, peer, 0, 7, context);
	default:
		return fi_write(own.ep, memory, WINDOW, NULL, peer, 0, 7, context);
	}
}

/* Each read and write that was posted before its target died, or after that, ends once. */
static void all_reads_and_writes_end(void **state)
{
	enum { COUNT = 400 };
	static uint8_t contexts[COUNT];
	char *memory = calloc(1, WINDOW), name[NAME_BYTES];
	unsigned posted = 0, ended = 0, failed = 0;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	fi_addr_t peer;

	(void)state;
	assert_non_null(memory);
	assert_int_equal(read(server_says[0], name, sizeof(name)), sizeof(name));
	own_open();
	assert_int_equal(fi_av_insert(own.av, name, 1, &peer, 0, NULL), 1);
	while (ended < COUNT) {
		ssize_t result;

		if (posted == COUNT / 2 && server > 0) {
			assert_ok(kill(server, SIGKILL));
			assert_int_equal(waitpid(server, NULL, 0), server);
			server = -1;
		}
		if (posted < COUNT) {
			result = move_post(posted, memory, peer, &contexts[posted]);
			assert_true(result == 0 || result == -FI_EAGAIN);
			posted += result == 0;
		}
		result = fi_cq_read(own.cq, &entry, 1);
		if (result == -FI_EAGAIN)
			continue;
		if (result == -FI_EAVAIL) {
			memset(&error, 0, sizeof(error));
			assert_int_equal(fi_cq_readerr(own.cq, &error, 0), 1);
			assert_int_equal(error.err, FI_EHOSTUNREACH);
			entry.op_context = error.op_context;
			failed++;
		} else {
			assert_int_equal(result, 1);
		}
		assert_int_equal((*(uint8_t *)entry.op_context)++, 0);
		ended++;
	}
	assert_true(failed >= COUNT / 2);
	assert_int_equal(fi_cq_read(own.cq, &entry, 1), -FI_EAGAIN);
	single_close(&own);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_operations_end),
		cmocka_unit_test(all_reads_and_writes_end),
		cmocka_unit_test(messages_of_the_dead_are_received),
		cmocka_unit_test(receives_from_the_silent_end),
		cmocka_unit_test(the_last_one_closes_without_a_warning),
	};

	setenv("FI_LOG_LEVEL", "warn", 1);
	return cmocka_run_group_tests(tests, children_start, children_stop);
}
