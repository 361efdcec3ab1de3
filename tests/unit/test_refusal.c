/* SPDX-License-Identifier: BSD-3-Clause */
/* test_refusal.c - tests of what a rendezvous refuses: peers that break the rules, floods, other
 * users. Covers: pmd-glue/rendezvous.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/log.h>
#include <pmd-glue/rendezvous.h>

#include "rendezvous_rig.h"

#define FLOOD       1000u
#define HALF_OPEN   16u
#define CONNECTIONS 1024u
#define MAGIC       RENDEZVOUS_MAGIC
#define VERSION     RENDEZVOUS_VERSION
#define HELLO       RENDEZVOUS_HELLO
#define ANSWER      RENDEZVOUS_ANSWER
#define WHOLE       sizeof(struct rendezvous_hello)
#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static const struct rendezvous_hello good_hello = {
	MAGIC, VERSION, RENDEZVOUS_HELLO, NID, 99, FRAME, BYTES, 1};

static void raw_send(int fd, const void *bytes, size_t length, const int *fds, unsigned count)
{
	char control[CMSG_SPACE(32 * sizeof(int))] __attribute__((aligned(16))) = {0};
	struct iovec vector = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
	struct cmsghdr *part;

	if (count > 0) {
		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(part), fds, count * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &message, 0), length);
}

static int file_make(size_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int page_good(void)
{
	return file_make(PAGE, SEALS | F_SEAL_FUTURE_WRITE);
}

/* An answer may come before the end. */
static bool raw_ended(int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};
	struct rendezvous_hello answer;

	assert_int_equal(poll(&end, 1, WAIT), 1);
	if (recv(fd, &answer, sizeof(answer), 0) == sizeof(answer))
		assert_int_equal(answer.kind, RENDEZVOUS_ANSWER);
	return recv(fd, &answer, sizeof(answer), 0) <= 0;
}

/* The rendezvous refuses it, and nothing stays; the caller's descriptors are closed. */
static void refused(struct rendezvous *rendezvous, const struct rendezvous_hello *hello,
	size_t length, int *fds, unsigned count, const char *words)
{
	unsigned before = descriptors() - count;
	int fd = raw_connect(rendezvous);

	log_forget();
	raw_send(fd, hello, length, fds, count);
	expect_nothing(rendezvous);
	assert_true(raw_ended(fd));
	close(fd);
	for (unsigned n = 0; n < count; n++)
		close(fds[n]);
	assert_int_equal(descriptors(), before);
	if (!log_said(words))
		print_error("the log has no \"%s\"\n", words);
	assert_true(log_said(words));
}

/* Once, for this reason and no other. */
static void assert_counted(const struct rendezvous *rendezvous, enum rendezvous_refusal refusal)
{
	for (unsigned n = 0; n < REFUSALS; n++)
		assert_int_equal(rendezvous_refused(rendezvous)[n], n == refusal);
}

static void rendezvous_turn__refuses_another_hello(void **state)
{
	static const struct {
		struct rendezvous_hello hello;
		size_t length;
		enum rendezvous_refusal refusal;
		const char *words;
	} cases[] = {
		{{MAGIC + 1, VERSION, HELLO, NID, 9, FRAME, BYTES, 1}, WHOLE, REFUSED_STRANGE,
			"does not speak as Postern does"},
		{{MAGIC, VERSION, HELLO, NID, 9, FRAME, BYTES, 1}, 4, REFUSED_STRANGE,
			"does not speak as Postern does"},
		{{MAGIC, VERSION + 1, HELLO, NID, 9, FRAME, BYTES, 1}, 8, REFUSED_VERSION,
			"so they cannot talk"},
		{{MAGIC, VERSION, HELLO, NID, 9, FRAME, BYTES, 1}, 16, REFUSED_STRANGE,
			"breaks the protocol"},
		{{MAGIC, VERSION, ANSWER, NID, 9, FRAME, BYTES, 1}, WHOLE, REFUSED_STRANGE,
			"breaks the protocol"},
		{{MAGIC, VERSION, HELLO, NID, 9, FRAME, BYTES, 0}, WHOLE, REFUSED_STRANGE,
			"breaks the protocol"},
		{{MAGIC, VERSION, HELLO, NID, 1, FRAME, BYTES, 1}, WHOLE, REFUSED_STRANGE,
			"claims process id 1"},
		{{MAGIC, VERSION, HELLO, NID, RENDEZVOUS_PID_ANY, FRAME, BYTES, 1}, WHOLE,
			REFUSED_STRANGE, "breaks the protocol"},
		{{MAGIC, VERSION, HELLO, NID + 1, 9, FRAME, BYTES, 1}, WHOLE, REFUSED_NODE,
			"process id 9 in "},
		{{MAGIC, VERSION, HELLO, NID + 1, 9, FRAME, BYTES, 1}, WHOLE, REFUSED_NODE,
			"has node id 8 and this process 7, so they cannot talk: give both the "
			"same PTL_NID"},
		{{MAGIC, VERSION, HELLO, NID, 9, FRAME + 1, BYTES, 1}, WHOLE, REFUSED_SIZE,
			"frames of 9001 bytes and this process of 9000"},
		{{MAGIC, VERSION, HELLO, NID, 9, FRAME, BYTES + 1, 1}, WHOLE, REFUSED_VERSION,
			"shares 65537 bytes and this process 65536"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct rendezvous *rendezvous = rendezvous_of(1);
		int fds[] = {page_good(), file_make(BYTES, SEALS)};

		refused(rendezvous, &cases[n].hello, cases[n].length, fds, 2, cases[n].words);
		assert_counted(rendezvous, cases[n].refusal);
		rendezvous_close(rendezvous);
	}
}

/* Both users read that the sizes of frames differ, also when this process has woken the other. */
static void rendezvous_connect__tells_what_does_not_fit(void **state)
{
	struct rendezvous *one = rendezvous_of(1), *two;
	struct rendezvous_options options = {
		.nid = NID, .pid = 2, .frame_size = 1514, .pair_bytes = BYTES, .touched = TOUCHED};
	struct rendezvous_connection *connection;

	(void)state;
	two = rendezvous_open(&options);
	assert_non_null(two);
	connection = rendezvous_connect(two, 1);
	assert_non_null(connection);
	rendezvous_wake(connection);
	rendezvous_wake(connection);
	expect_nothing(one);
	assert_ptr_equal(expect(two, RENDEZVOUS_ENDED), connection);
	assert_true(log_said("process id 2 in"));
	assert_true(log_said("has frames of 1514 bytes and this process of 9000"));
	assert_true(log_said("process id 1 in"));
	assert_true(log_said("has frames of 9000 bytes and this process of 1514"));
	assert_counted(one, REFUSED_SIZE);
	assert_counted(two, REFUSED_SIZE);
	forget(two, connection);
	rendezvous_close(one);
	rendezvous_close(two);
}

static void rendezvous_turn__refuses_other_descriptors(void **state)
{
	struct rendezvous *rendezvous = rendezvous_of(1);
	const char *const strange = "", *const memory = "unsealed, of another size or cannot";

	(void)state;
	for (unsigned n = 0; n < 10; n++) {
		int fds[30];
		unsigned count = 2;
		const char *words = memory;

		rendezvous_close(rendezvous);
		rendezvous = rendezvous_of(1);
		fds[0] = n == 1   ? file_make(PAGE, 0)
			 : n == 2 ? file_make(2 * PAGE, SEALS | F_SEAL_FUTURE_WRITE)
			 : n == 3 ? eventfd(0, 0)
				  : page_good();
		fds[1] = n == 4   ? file_make(BYTES, 0)
			 : n == 5 ? file_make(BYTES / 2, SEALS)
			 : n == 6 ? file_make(BYTES, SEALS | F_SEAL_FUTURE_WRITE)
			 : n == 7 ? open("/dev/zero", O_RDWR)
				  : file_make(BYTES, SEALS);
		if (n == 0 || n >= 8) {
			unsigned wanted = n == 0 ? 0 : n == 8 ? 3 : 30;

			for (; count < wanted; count++)
				fds[count] = eventfd(0, 0);
			for (; count > wanted; count--)
				close(fds[count - 1]);
			words = strange;
		}
		refused(rendezvous, &good_hello, sizeof(good_hello), fds, count, words);
		assert_counted(rendezvous, words == strange ? REFUSED_STRANGE : REFUSED_MEMORY);
	}
	/* And takes the right ones. */
	{
		int fds[] = {page_good(), file_make(BYTES, SEALS)}, fd = raw_connect(rendezvous);
		struct rendezvous_connection *connection;

		raw_send(fd, &good_hello, sizeof(good_hello), fds, 2);
		connection = expect(rendezvous, RENDEZVOUS_CAME);
		assert_int_equal(connection->pid, 99);
		/* Descriptors that come with wake-ups are closed. */
		for (unsigned n = 0; n < 100; n++)
			raw_send(fd, "", 1, fds, 2);
		{
			unsigned before = descriptors();

			for (unsigned n = 0; n < 10; n++)
				expect_nothing(rendezvous);
			assert_int_equal(connection->wakes_received, 100);
			assert_int_equal(descriptors(), before);
			assert_false(readable(rendezvous_set(rendezvous)));
		}
		close(fd);
		assert_ptr_equal(expect(rendezvous, RENDEZVOUS_ENDED), connection);
		forget(rendezvous, connection);
		close(fds[0]);
		close(fds[1]);
	}
	rendezvous_close(rendezvous);
}

/* S1 and S2 of shared.h: each seal is needed. */
static void rendezvous_turn__refuses_memory_that_lacks_a_seal(void **state)
{
	static const int lacking[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_FUTURE_WRITE};

	(void)state;
	for (unsigned n = 0; n < 7; n++) {
		const int page = n < 4 ? lacking[n] : 0, memory = n < 4 ? 0 : lacking[n - 4];
		int fds[] = {file_make(PAGE, (SEALS | F_SEAL_FUTURE_WRITE) & ~page),
			file_make(BYTES, SEALS & ~memory)};
		struct rendezvous *rendezvous = rendezvous_of(1);

		refused(rendezvous, &good_hello, sizeof(good_hello), fds, 2,
			"unsealed, of another size or cannot");
		assert_counted(rendezvous, REFUSED_MEMORY);
		rendezvous_close(rendezvous);
	}
}

/* A listener that answers wrongly. */
static void rendezvous_connect__refuses_another_answer(void **state)
{
	struct rendezvous *rendezvous = rendezvous_of(1);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/99",
		rendezvous_path(rendezvous));
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 10), 0);
	for (unsigned n = 0; n < 5; n++) {
		unsigned before = descriptors();
		struct rendezvous_connection *connection = rendezvous_connect(rendezvous, 99);
		struct rendezvous_hello answer = good_hello;
		int page = n == 1 ? file_make(PAGE, 0) : page_good();
		int fd = accept(listener, NULL, NULL);

		assert_non_null(connection);
		answer.kind = n == 0 ? RENDEZVOUS_HELLO : RENDEZVOUS_ANSWER;
		answer.pid = n == 2 ? 98 : 99;
		answer.nid = n == 3 ? NID + 1 : NID;
		if (n < 4)
			raw_send(fd, &answer, sizeof(answer), &page, 1);
		/* n == 4: it ends without an answer. */
		else
			close(fd);
		assert_ptr_equal(expect(rendezvous, RENDEZVOUS_ENDED), connection);
		assert_false(connection->answered);
		forget(rendezvous, connection);
		close(page);
		if (n < 4)
			close(fd);
		assert_int_equal(descriptors(), before);
	}
	close(listener);
	rendezvous_close(rendezvous);
}

static void rendezvous_turn__lets_floods_pass(void **state)
{
	struct rendezvous *a = rendezvous_of(1), *b = rendezvous_of(2);
	unsigned before = descriptors();
	struct rendezvous_connection *connection;

	(void)state;
	for (unsigned n = 0; n < FLOOD; n++) {
		int fd = raw_connect(a);

		if (n % 3 == 0)
			raw_send(fd, "?", 1, NULL, 0);
		close(fd);
		if (n % 4 == 3)
			expect_nothing(a);
	}
	/* A process that keeps to the rules waits until it has its turn. */
	assert_non_null(connection = rendezvous_connect(b, 1));
	munmap(connection->memory, BYTES);
	munmap(expect(a, RENDEZVOUS_CAME)->memory, BYTES);
	expect(b, RENDEZVOUS_ANSWERED);
	rendezvous_drop(b, connection);
	rendezvous_drop(a, expect(a, RENDEZVOUS_ENDED));
	assert_int_equal(descriptors(), before);
	assert_int_equal(
		rendezvous_refused(a)[REFUSED_SILENT] + rendezvous_refused(a)[REFUSED_STRANGE],
		FLOOD);
	assert_true(rendezvous_refused(a)[REFUSED_STRANGE] >= FLOOD / 3);
	rendezvous_close(a);
	rendezvous_close(b);
}

/* The other process refuses this one's connection because of its own, which waits behind others. */
static void rendezvous_turn__finds_its_replacement_behind_a_flood(void **state)
{
	struct rendezvous *low = rendezvous_of(1), *high = rendezvous_of(2);
	struct rendezvous_connection *connection = rendezvous_connect(high, 1);
	int fds[HALF_OPEN + 4];

	(void)state;
	assert_non_null(connection);
	munmap(connection->memory, BYTES);
	for (unsigned n = 0; n < HALF_OPEN + 4; n++)
		fds[n] = raw_connect(high);
	munmap(rendezvous_connect(low, 2)->memory, BYTES);
	expect_nothing(low);
	assert_ptr_equal(expect(high, RENDEZVOUS_REPLACED), connection);
	munmap(connection->memory, BYTES);
	expect(low, RENDEZVOUS_ANSWERED);
	for (unsigned n = 0; n < HALF_OPEN + 4; n++)
		close(fds[n]);
	rendezvous_close(low);
	rendezvous_close(high);
}

static void rendezvous_turn__ends_half_open_connections(void **state)
{
	struct rendezvous *rendezvous = rendezvous_of(1);
	int fds[HALF_OPEN + 4];
	unsigned before = descriptors();

	(void)state;
	for (unsigned n = 0; n < HALF_OPEN + 4; n++) {
		fds[n] = raw_connect(rendezvous);
		expect_nothing(rendezvous);
	}
	/* The first ones had to go. */
	for (unsigned n = 0; n < 4; n++)
		assert_true(readable(fds[n]) && raw_ended(fds[n]));
	assert_true(descriptors() <= before + HALF_OPEN + 4 + HALF_OPEN);
	/* The others have their time. */
	for (unsigned n = 4; n < HALF_OPEN + 4; n++) {
		while (!readable(fds[n]))
			expect_nothing(rendezvous);
		assert_true(raw_ended(fds[n]));
	}
	for (unsigned n = 0; n < HALF_OPEN + 4; n++)
		close(fds[n]);
	assert_int_equal(descriptors(), before);
	assert_int_equal(rendezvous_refused(rendezvous)[REFUSED_SILENT], HALF_OPEN + 4);
	rendezvous_close(rendezvous);
}

/* An honest process, and no room for what it sends. */
static void rendezvous_turn__says_that_descriptors_have_run_out(void **state)
{
	struct rendezvous *rendezvous = rendezvous_of(1);
	int fds[] = {page_good(), file_make(BYTES, SEALS)};
	int fd = raw_connect(rendezvous);
	struct rlimit files, few;

	(void)state;
	raw_send(fd, &good_hello, sizeof(good_hello), fds, 2);
	log_forget();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	few = files;
	few.rlim_cur = (rlim_t)dup(fd);
	close((int)few.rlim_cur);
	few.rlim_cur++; /* for the connection alone */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	expect_nothing(rendezvous);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_true(log_said("the descriptors that it sends find no room here"));
	assert_true(log_said("ulimit -n"));
	assert_counted(rendezvous, REFUSED_RESOURCES);
	close(fd);
	close(fds[0]);
	close(fds[1]);
	rendezvous_close(rendezvous);
}

static void rendezvous_connect__stops_at_the_most_links(void **state)
{
	struct rendezvous *rendezvous = rendezvous_of(1), *other = rendezvous_of(2);
	struct rlimit files;
	int fds[] = {page_good(), file_make(BYTES, SEALS)};
	static int peers[CONNECTIONS];
	unsigned before = descriptors();

	(void)state;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 3 * CONNECTIONS)
		skip();
	for (unsigned n = 0; n < CONNECTIONS; n++) {
		struct rendezvous_hello hello = good_hello;

		hello.pid = 100 + n;
		peers[n] = raw_connect(rendezvous);
		raw_send(peers[n], &hello, sizeof(hello), fds, 2);
		munmap(expect(rendezvous, RENDEZVOUS_CAME)->memory, BYTES);
	}
	assert_null(rendezvous_connect(rendezvous, 2));
	assert_true(log_said("1024"));
	munmap(rendezvous_connect(other, 1)->memory, BYTES);
	expect_nothing(rendezvous);
	rendezvous_drop(other, expect(other, RENDEZVOUS_ENDED));
	for (unsigned n = 0; n < CONNECTIONS; n++)
		close(peers[n]);
	for (unsigned n = 0; n < CONNECTIONS; n++)
		rendezvous_drop(rendezvous, expect(rendezvous, RENDEZVOUS_ENDED));
	assert_int_equal(descriptors(), before);
	close(fds[0]);
	close(fds[1]);
	rendezvous_close(rendezvous);
	rendezvous_close(other);
}

/* --- other users --- */

/* Were the directory open to others, they would be refused nevertheless. */
static void rendezvous_turn__refuses_processes_of_other_users(void **state)
{
	static const char *const opened[] = {"", "/postern", "/postern/default"};
	char path[128];
	struct rendezvous *rendezvous;
	pid_t child;

	(void)state;
	if (geteuid() != 0)
		skip();
	rendezvous = rendezvous_of(1);
	for (unsigned n = 0; n < 3; n++) {
		snprintf(path, sizeof(path), "%s%s", runtime, opened[n]);
		assert_int_equal(chmod(path, S_IRWXU | S_IXGRP | S_IXOTH), 0);
	}
	snprintf(path, sizeof(path), "%s/1", rendezvous_path(rendezvous));
	assert_int_equal(chmod(path, S_IRWXU | S_IRWXG | S_IRWXO), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int fds[] = {page_good(), file_make(BYTES, SEALS)}, fd;

		alarm(LIMIT);
		if (setuid(NOBODY) != 0)
			_exit(2);
		fd = raw_connect(rendezvous);
		raw_send(fd, &good_hello, sizeof(good_hello), fds, 2);
		_exit(raw_ended(fd) ? 0 : 1);
	}
	for (int status, ended = 0; !ended;) {
		expect_nothing(rendezvous);
		ended = waitpid(child, &status, WNOHANG) == child;
		if (ended)
			assert_int_equal(status, 0);
	}
	assert_true(log_said("of user 65534 in"));
	rendezvous_close(rendezvous);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(rendezvous_turn__refuses_another_hello),
		CASE(rendezvous_connect__tells_what_does_not_fit),
		CASE(rendezvous_turn__refuses_other_descriptors),
		CASE(rendezvous_turn__refuses_memory_that_lacks_a_seal),
		CASE(rendezvous_connect__refuses_another_answer),
		CASE(rendezvous_turn__lets_floods_pass),
		CASE(rendezvous_turn__finds_its_replacement_behind_a_flood),
		CASE(rendezvous_turn__ends_half_open_connections),
		CASE(rendezvous_turn__says_that_descriptors_have_run_out),
		CASE(rendezvous_connect__stops_at_the_most_links),
		CASE(rendezvous_turn__refuses_processes_of_other_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
