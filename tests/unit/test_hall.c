/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hall.c - tests of pmd-glue/hall.c: halls of one program, of programs that are killed, and
 * peers that keep to nothing. Covers: pmd-glue/place.c, pmd-glue/shared.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/log.h>
#include <base/random.h>
#include <pmd-glue/hall.h>

#include "hall_rig.h"

#define COLLISIONS 10000u
#define ATTACHES   10000u
#define FLOOD      1000u
#define HALF_OPEN  16u
#define LINKS      1024u
#define SLEEPS     20000u
#define MAGIC      UINT32_C(0x6c6c6148)
#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* As the protocol has it. */
struct hello {
	uint32_t magic, version, kind, nid, pid, frame_size;
	uint64_t pair_bytes, incarnation;
};

static const struct hello good_hello = {MAGIC, 1, 1, NID, 99, FRAME, BYTES, 1};

/* --- tools --- */

static void expect_nothing(struct hall *hall)
{
	struct hall_link *link;
	enum hall_event event;

	/* The first false ends a series, the second one has looked. */
	for (unsigned n = 0; n < 2; n++)
		assert_false(hall_turn(hall, &link, &event));
}

static bool readable(int fd)
{
	struct pollfd look = {.fd = fd, .events = POLLIN};

	return poll(&look, 1, 0) == 1;
}

static void forget(struct hall *hall, struct hall_link *link)
{
	munmap(link->memory, BYTES);
	hall_drop(hall, link);
}

static unsigned descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static unsigned mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned count = 0;
	int letter;

	assert_non_null(maps);
	while ((letter = fgetc(maps)) != EOF)
		count += letter == '\n';
	fclose(maps);
	return count;
}

static bool has_socket(const struct hall *hall, uint32_t pid)
{
	char path[128];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%u", hall_path(hall), pid);
	return lstat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

/* --- two that keep to the rules --- */

static void hall_connect__gives_both_the_same_memory(void **state)
{
	struct hall *a = hall_of(1), *b = hall_of(2);
	struct hall_link *to_b, *to_a;

	(void)state;
	assert_string_equal(hall_path(a), hall_path(b));
	to_b = hall_connect(a, 2);
	assert_non_null(to_b);
	assert_int_equal(to_b->end, 0);
	assert_false(to_b->answered);
	/* It is used before there is an answer. */
	strcpy(to_b->memory, "frame");
	to_a = expect(b, HALL_CAME);
	assert_int_equal(to_a->pid, 1);
	assert_int_equal(to_a->uid, geteuid());
	assert_int_equal(to_a->end, 1);
	assert_true(to_a->answered);
	assert_string_equal(to_a->memory, "frame");
	assert_ptr_equal(expect(a, HALL_ANSWERED), to_b);
	assert_true(to_b->answered);
	((char *)to_a->memory)[BYTES - 1] = 'x';
	assert_int_equal(((char *)to_b->memory)[BYTES - 1], 'x');
	expect_nothing(a);
	expect_nothing(b);
	forget(a, to_b);
	assert_ptr_equal(expect(b, HALL_ENDED), to_a);
	/* Frames in the ring can still be read. */
	assert_string_equal(to_a->memory, "frame");
	forget(b, to_a);
	hall_close(a);
	hall_close(b);
}

static void hall_connect__finds_nobody(void **state)
{
	struct hall *a = hall_of(1), *b = hall_of(2);

	(void)state;
	assert_null(hall_connect(a, 3));
	assert_int_equal(errno, ENOENT);
	hall_close(b);
	assert_null(hall_connect(a, 2));
	assert_int_equal(errno, ENOENT);
	hall_close(a);
	/* That is nothing to complain of. */
	assert_false(log_said("node"));
}

static void hall_wake__wakes_who_has_not_answered_or_sleeps(void **state)
{
	struct hall *a = hall_of(1), *b = hall_of(2);
	struct hall_link *to_b, *to_a;

	(void)state;
	to_b = hall_connect(a, 2);
	to_a = expect(b, HALL_CAME);
	expect_nothing(b);
	hall_wake(to_b);
	assert_true(readable(hall_set(b)));
	expect_nothing(b);
	assert_false(readable(hall_set(b)));
	assert_ptr_equal(expect(a, HALL_ANSWERED), to_b);
	hall_wake(to_b);
	assert_false(readable(hall_set(b)));
	if (!hall_sleep(b, true))
		skip();
	hall_wake(to_b);
	assert_true(readable(hall_set(b)));
	/* Nothing is taken off in a sleep: the owner would not wake. */
	expect_nothing(b);
	assert_true(readable(hall_set(b)));
	assert_true(hall_sleep(b, false));
	expect_nothing(b);
	assert_false(readable(hall_set(b)));
	/* One message for each sleep. */
	assert_true(hall_sleep(b, true));
	assert_false(readable(hall_set(b)));
	hall_wake(to_b);
	hall_wake(to_b);
	assert_true(hall_sleep(b, false));
	{
		char byte;

		assert_int_equal(recv(to_a->socket, &byte, 1, MSG_DONTWAIT), 1);
		assert_int_equal(recv(to_a->socket, &byte, 1, MSG_DONTWAIT), -1);
	}
	forget(a, to_b);
	forget(b, to_a);
	hall_close(a);
	hall_close(b);
}

/* One of two that connect to each other at random moments, and drop what they have. */
struct side {
	struct hall *hall;
	struct hall_link *link;
	void *memory; /* of the link */
	unsigned ends;
	unsigned replaced;
};

static void side_connect(struct side *side, uint32_t pid)
{
	if (side->link)
		return;
	side->link = hall_connect(side->hall, pid);
	assert_non_null(side->link);
	side->memory = side->link->memory;
	*(uint32_t *)side->memory = hall_pid(side->hall);
}

static void side_drop(struct side *side)
{
	if (!side->link)
		return;
	munmap(side->memory, BYTES);
	hall_drop(side->hall, side->link);
	side->link = NULL;
}

static void side_turn(struct side *side)
{
	struct hall_link *link;
	enum hall_event event;

	while (hall_turn(side->hall, &link, &event)) {
		switch (event) {
		case HALL_CAME:
			assert_null(side->link);
			side->link = link;
			side->memory = link->memory;
			break;
		case HALL_ANSWERED:
			assert_ptr_equal(side->link, link);
			break;
		case HALL_REPLACED:
			assert_ptr_equal(side->link, link);
			assert_ptr_not_equal(side->memory, link->memory);
			assert_int_equal(*(uint32_t *)side->memory, hall_pid(side->hall));
			munmap(side->memory, BYTES);
			side->memory = link->memory;
			side->replaced++;
			break;
		case HALL_ENDED:
			assert_ptr_equal(side->link, link);
			side_drop(side);
			side->ends++;
			break;
		}
	}
}

/* Both have one and the same. */
static void sides_check(struct side *sides)
{
	assert_non_null(sides[0].link);
	assert_non_null(sides[1].link);
	assert_true(sides[0].link->answered && sides[1].link->answered);
	assert_int_equal(sides[0].link->end + sides[1].link->end, 1);
	assert_ptr_equal(sides[0].link->memory, sides[0].memory);
	assert_ptr_equal(sides[1].link->memory, sides[1].memory);
	((uint32_t *)sides[0].memory)[8] = 1;
	((uint32_t *)sides[1].memory)[8]++;
	assert_int_equal(((uint32_t *)sides[0].memory)[8], 2);
}

static void hall_turn__joins_two_that_connect_to_each_other(void **state)
{
	struct side sides[2] = {{.hall = hall_of(5)}, {.hall = hall_of(3)}};
	uint64_t seed = 1;
	unsigned files = descriptors(), maps = mappings();

	(void)state;
	for (unsigned n = 0; n < COLLISIONS; n++) {
		for (unsigned step = 0; step < 8; step++) {
			unsigned what = (unsigned)(random_next(&seed) % 4);
			struct side *side = &sides[what % 2];

			if (what < 2)
				side_connect(side, hall_pid(sides[1 - what].hall));
			else
				side_turn(side);
		}
		side_connect(&sides[n % 2], hall_pid(sides[1 - n % 2].hall));
		for (unsigned turn = 0; turn < 4; turn++)
			side_turn(&sides[turn % 2]);
		sides_check(sides);
		assert_int_equal(sides[0].ends + sides[1].ends, n);
		/* One of them leaves, and comes back perhaps before the other one has seen it. */
		side_drop(&sides[random_next(&seed) % 2]);
		if (random_next(&seed) % 2 == 0) {
			unsigned back = sides[0].link ? 1 : 0;

			side_connect(&sides[back], hall_pid(sides[1 - back].hall));
		}
		for (unsigned turn = 0; turn < 4; turn++)
			side_turn(&sides[turn % 2]);
		assert_int_equal(sides[0].ends + sides[1].ends, n + 1);
		side_drop(&sides[0]);
		side_turn(&sides[1]);
		side_drop(&sides[1]);
		side_turn(&sides[0]);
		sides[0].ends = n + 1;
		sides[1].ends = 0;
	}
	/* The one with the higher process id moves. */
	assert_true(sides[0].replaced > COLLISIONS / 20);
	assert_int_equal(sides[1].replaced, 0);
	assert_int_equal(descriptors(), files);
	assert_true(mappings() < maps + COLLISIONS / 10); /* sanitizers have their own */
	hall_close(sides[0].hall);
	hall_close(sides[1].hall);
}

/* A series of calls ends although there is always something new. */
static void hall_turn__looks_once_in_a_series(void **state)
{
	struct hall *a = hall_of(1), *b = hall_of(2), *c = hall_of(3);
	struct hall_link *link;
	enum hall_event event;

	(void)state;
	munmap(hall_connect(b, 1)->memory, BYTES);
	assert_true(hall_turn(a, &link, &event));
	munmap(link->memory, BYTES);
	munmap(hall_connect(c, 1)->memory, BYTES);
	assert_false(hall_turn(a, &link, &event));
	assert_true(hall_turn(a, &link, &event));
	assert_int_equal(link->pid, 3);
	munmap(link->memory, BYTES);
	hall_close(a);
	hall_close(b);
	hall_close(c);
}

/* A process that has come again under its process id. */
static void hall_turn__ends_an_old_life_before_a_new_one_comes(void **state)
{
	struct hall *a = hall_of(1), *b = hall_of(2);
	struct hall_link *old, *new;

	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		if (n == 0) {
			munmap(hall_connect(b, 1)->memory, BYTES);
			old = expect(a, HALL_CAME);
		} else {
			old = hall_connect(a, 2);
			munmap(expect(b, HALL_CAME)->memory, BYTES);
		}
		hall_close(b);
		b = hall_of(2);
		munmap(hall_connect(b, 1)->memory, BYTES);
		if (n == 1)
			assert_ptr_equal(expect(a, HALL_ANSWERED), old);
		assert_ptr_equal(expect(a, HALL_ENDED), old);
		new = expect(a, HALL_CAME);
		assert_ptr_not_equal(new, old);
		assert_int_equal(new->pid, 2);
		forget(a, old);
		forget(a, new);
		hall_close(b);
		b = hall_of(2);
	}
	hall_close(a);
	hall_close(b);
}

static void hall_connect__leaves_nothing_behind(void **state)
{
	struct hall *a = hall_of(1), *b = hall_of(2);
	unsigned files = 0, maps = 0;

	(void)state;
	for (unsigned n = 0; n < ATTACHES; n++) {
		struct hall_link *to_b, *to_a;

		if (n == 1) {
			files = descriptors();
			maps = mappings();
		}
		to_b = hall_connect(a, 2);
		assert_non_null(to_b);
		to_a = expect(b, HALL_CAME);
		expect(a, HALL_ANSWERED);
		/* A link has a socket, and nothing else. */
		if (n > 0 && n < 10)
			assert_int_equal(descriptors(), files + 2);
		forget(n % 2 ? a : b, n % 2 ? to_b : to_a);
		expect(n % 2 ? b : a, HALL_ENDED);
		forget(n % 2 ? b : a, n % 2 ? to_a : to_b);
	}
	assert_int_equal(descriptors(), files);
	assert_true(mappings() < maps + COLLISIONS / 10); /* sanitizers have their own */
	hall_close(a);
	hall_close(b);
}

/* --- sleep --- */

struct sleeper {
	struct hall *hall;
	struct hall_link *link;
	_Atomic uint32_t *mine, *other; /* numbers in the memory */
	bool lost;
};

/* Answers each number of the other one's with the next. */
static void *sleeper_run(void *context)
{
	struct sleeper *sleeper = context;
	struct pollfd set = {.fd = hall_set(sleeper->hall), .events = POLLIN};

	for (uint32_t n = 1; n <= SLEEPS && !sleeper->lost; n++) {
		struct hall_link *link;
		enum hall_event event;

		while (atomic_load_explicit(sleeper->other, memory_order_acquire) < n - 1) {
			if (hall_sleep(sleeper->hall, true) &&
				atomic_load_explicit(sleeper->other, memory_order_acquire) <
					n - 1 &&
				poll(&set, 1, WAIT) != 1) {
				sleeper->lost = true;
				break;
			}
			hall_sleep(sleeper->hall, false);
			while (hall_turn(sleeper->hall, &link, &event))
				sleeper->lost = true;
		}
		atomic_store_explicit(sleeper->mine, n, memory_order_release);
		hall_wake(sleeper->link);
	}
	return NULL;
}

static void hall_sleep__misses_no_call(void **state)
{
	struct sleeper sleepers[2] = {{.hall = hall_of(1)}, {.hall = hall_of(2)}};
	pthread_t thread;

	(void)state;
	if (!hall_sleep(sleepers[0].hall, true))
		skip();
	hall_sleep(sleepers[0].hall, false);
	sleepers[0].link = hall_connect(sleepers[0].hall, 2);
	sleepers[1].link = expect(sleepers[1].hall, HALL_CAME);
	expect(sleepers[0].hall, HALL_ANSWERED);
	for (unsigned n = 0; n < 2; n++) {
		sleepers[n].mine = (_Atomic uint32_t *)sleepers[n].link->memory + 64 * n;
		sleepers[n].other = (_Atomic uint32_t *)sleepers[n].link->memory + 64 * (1 - n);
	}
	assert_int_equal(pthread_create(&thread, NULL, sleeper_run, &sleepers[1]), 0);
	sleeper_run(&sleepers[0]);
	pthread_join(thread, NULL);
	assert_false(sleepers[0].lost || sleepers[1].lost);
	for (unsigned n = 0; n < 2; n++) {
		munmap(sleepers[n].link->memory, BYTES);
		hall_close(sleepers[n].hall);
	}
}

/* --- process ids and the end of processes --- */

static void hall_open__refuses_a_process_id_in_use(void **state)
{
	struct hall *hall = hall_of(7), *other;
	char sentence[256];

	(void)state;
	assert_null(hall_at(NULL, 7));
	snprintf(sentence, sizeof(sentence),
		"node: process id 7 is in use in %s/postern/default: choose another, or "
		"PTL_PID_ANY",
		runtime);
	assert_string_equal(log_last_error(), sentence);
	/* In another hall it is free. */
	other = hall_at("ci", 7);
	assert_non_null(other);
	assert_null(hall_connect(other, 7 + 1));
	hall_close(other);
	hall_close(hall);
	hall_close(hall_of(7));
}

static void hall_open__finds_a_free_process_id(void **state)
{
	struct hall *first = hall_at("", HALL_PID_ANY), *second = hall_at(NULL, HALL_PID_ANY);

	(void)state;
	assert_non_null(first);
	assert_non_null(second);
	assert_int_equal(hall_pid(first), getpid());
	assert_int_not_equal(hall_pid(second), getpid());
	assert_non_null(hall_connect(first, hall_pid(second)));
	munmap(expect(second, HALL_CAME)->memory, BYTES);
	hall_close(first);
	hall_close(second);
}

/* A child with a hall and, if that is wanted, a link and a child of its own that stays. */
static pid_t child_start(uint32_t pid, uint32_t to, bool fork_again, pid_t *grandchild)
{
	int ready[2];
	pid_t child;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct hall *hall = hall_at(NULL, pid);
		struct hall_link *link = hall && to ? hall_connect(hall, to) : NULL;
		pid_t own = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT);
		if (link)
			strcpy(link->memory, "last words");
		if (fork_again) {
			own = fork();
			if (own == 0) {
				alarm(LIMIT);
				for (;;)
					pause();
			}
		}
		if (!hall || (to && !link) || write(ready[1], &own, sizeof(own)) != sizeof(own))
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], grandchild, sizeof(*grandchild)), sizeof(*grandchild));
	close(ready[0]);
	return child;
}

static void child_kill(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void hall_open__takes_what_a_killed_process_had(void **state)
{
	pid_t unused, first = child_start(7, 0, false, &unused);
	pid_t second = child_start(8, 0, false, &unused);
	struct hall *hall;

	(void)state;
	assert_null(hall_at(NULL, 7));
	child_kill(first);
	child_kill(second);
	hall = hall_of(7);
	assert_true(has_socket(hall, 7));
	assert_false(has_socket(hall, 8));
	hall_close(hall_of(8));
	hall_close(hall);
}

/* As long as it lives, its socket is nobody else's to remove. */
static void hall_open__leaves_the_sockets_of_the_living(void **state)
{
	struct hall *a = hall_of(1), *b = hall_of(2);

	(void)state;
	assert_true(has_socket(a, 1));
	assert_true(has_socket(a, 2));
	hall_close(b);
	assert_false(has_socket(a, 2));
	hall_close(a);
}

static void hall_turn__tells_the_end_of_a_killed_process(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		struct hall *hall = hall_of(1);
		pid_t grandchild, child = child_start(7, 1, n == 1, &grandchild);
		struct hall_link *link = expect(hall, HALL_CAME);

		/* Its own child may stay: it is the end nevertheless. */
		child_kill(child);
		assert_ptr_equal(expect(hall, HALL_ENDED), link);
		assert_string_equal(link->memory, "last words");
		assert_null(hall_connect(hall, 7));
		assert_int_equal(errno, ECONNREFUSED);
		forget(hall, link);
		hall_close(hall_of(7));
		if (n == 1)
			kill(grandchild, SIGKILL);
		hall_close(hall);
	}
}

/* --- peers that break the rules --- */

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
	struct hello answer;

	assert_int_equal(poll(&end, 1, WAIT), 1);
	if (recv(fd, &answer, sizeof(answer), 0) == sizeof(answer))
		assert_int_equal(answer.kind, 2);
	return recv(fd, &answer, sizeof(answer), 0) <= 0;
}

/* The hall refuses it, and nothing stays; the caller's descriptors are closed. */
static void refused(struct hall *hall, const struct hello *hello, size_t length, int *fds,
	unsigned count, const char *words)
{
	unsigned before = descriptors() - count;
	int fd = raw_connect(hall);

	log_forget();
	raw_send(fd, hello, length, fds, count);
	expect_nothing(hall);
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
static void assert_counted(const struct hall *hall, enum hall_refusal refusal)
{
	for (unsigned n = 0; n < REFUSALS; n++)
		assert_int_equal(hall_refused(hall)[n], n == refusal);
}

static void hall_turn__refuses_another_hello(void **state)
{
	static const struct {
		struct hello hello;
		size_t length;
		enum hall_refusal refusal;
		const char *words;
	} cases[] = {
		{{MAGIC + 1, 1, 1, NID, 9, FRAME, BYTES, 1}, sizeof(struct hello), REFUSED_STRANGE,
			"does not speak as Postern does"},
		{{MAGIC, 1, 1, NID, 9, FRAME, BYTES, 1}, 4, REFUSED_STRANGE,
			"does not speak as Postern does"},
		{{MAGIC, 2, 1, NID, 9, FRAME, BYTES, 1}, 8, REFUSED_VERSION,
			"version 2 and this process version 1"},
		{{MAGIC, 1, 1, NID, 9, FRAME, BYTES, 1}, 16, REFUSED_STRANGE,
			"breaks the protocol"},
		{{MAGIC, 1, 2, NID, 9, FRAME, BYTES, 1}, sizeof(struct hello), REFUSED_STRANGE,
			"breaks the protocol"},
		{{MAGIC, 1, 1, NID, 9, FRAME, BYTES, 0}, sizeof(struct hello), REFUSED_STRANGE,
			"breaks the protocol"},
		{{MAGIC, 1, 1, NID, 1, FRAME, BYTES, 1}, sizeof(struct hello), REFUSED_STRANGE,
			"claims process id 1"},
		{{MAGIC, 1, 1, NID, HALL_PID_ANY, FRAME, BYTES, 1}, sizeof(struct hello),
			REFUSED_STRANGE, "breaks the protocol"},
		{{MAGIC, 1, 1, NID + 1, 9, FRAME, BYTES, 1}, sizeof(struct hello), REFUSED_NODE,
			"process id 9 in "},
		{{MAGIC, 1, 1, NID + 1, 9, FRAME, BYTES, 1}, sizeof(struct hello), REFUSED_NODE,
			"has node id 8 and this process 7, so they cannot talk: give both the "
			"same PTL_NID"},
		{{MAGIC, 1, 1, NID, 9, FRAME + 1, BYTES, 1}, sizeof(struct hello), REFUSED_SIZE,
			"frames of 9001 bytes and this process of 9000"},
		{{MAGIC, 1, 1, NID, 9, FRAME, BYTES + 1, 1}, sizeof(struct hello), REFUSED_VERSION,
			"shares 65537 bytes and this process 65536"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct hall *hall = hall_of(1);
		int fds[] = {page_good(), file_make(BYTES, SEALS)};

		refused(hall, &cases[n].hello, cases[n].length, fds, 2, cases[n].words);
		assert_counted(hall, cases[n].refusal);
		hall_close(hall);
	}
}

/* Both users read that the sizes of frames differ, also when this process has woken the other. */
static void hall_connect__tells_what_does_not_fit(void **state)
{
	struct hall *one = hall_of(1), *two;
	struct hall_options options = {
		.nid = NID, .pid = 2, .frame_size = 1514, .pair_bytes = BYTES, .touched = TOUCHED};
	struct hall_link *link;

	(void)state;
	two = hall_open(&options);
	assert_non_null(two);
	link = hall_connect(two, 1);
	assert_non_null(link);
	hall_wake(link);
	hall_wake(link);
	expect_nothing(one);
	assert_ptr_equal(expect(two, HALL_ENDED), link);
	assert_true(log_said("process id 2 in"));
	assert_true(log_said("has frames of 1514 bytes and this process of 9000"));
	assert_true(log_said("process id 1 in"));
	assert_true(log_said("has frames of 9000 bytes and this process of 1514"));
	assert_counted(one, REFUSED_SIZE);
	assert_counted(two, REFUSED_SIZE);
	forget(two, link);
	hall_close(one);
	hall_close(two);
}

static void hall_turn__refuses_other_descriptors(void **state)
{
	struct hall *hall = hall_of(1);
	const char *const strange = "", *const memory = "unsealed, of another size or cannot";

	(void)state;
	for (unsigned n = 0; n < 10; n++) {
		int fds[30];
		unsigned count = 2;
		const char *words = memory;

		hall_close(hall);
		hall = hall_of(1);
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
		refused(hall, &good_hello, sizeof(good_hello), fds, count, words);
		assert_counted(hall, words == strange ? REFUSED_STRANGE : REFUSED_MEMORY);
	}
	/* And takes the right ones. */
	{
		int fds[] = {page_good(), file_make(BYTES, SEALS)}, fd = raw_connect(hall);
		struct hall_link *link;

		raw_send(fd, &good_hello, sizeof(good_hello), fds, 2);
		link = expect(hall, HALL_CAME);
		assert_int_equal(link->pid, 99);
		/* Descriptors that come with wake-ups are closed. */
		for (unsigned n = 0; n < 100; n++)
			raw_send(fd, "", 1, fds, 2);
		{
			unsigned before = descriptors();

			for (unsigned n = 0; n < 10; n++)
				expect_nothing(hall);
			assert_int_equal(link->wakes_received, 100);
			assert_int_equal(descriptors(), before);
			assert_false(readable(hall_set(hall)));
		}
		close(fd);
		assert_ptr_equal(expect(hall, HALL_ENDED), link);
		forget(hall, link);
		close(fds[0]);
		close(fds[1]);
	}
	hall_close(hall);
}

/* A listener that answers wrongly. */
static void hall_connect__refuses_another_answer(void **state)
{
	struct hall *hall = hall_of(1);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/99", hall_path(hall));
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 10), 0);
	for (unsigned n = 0; n < 5; n++) {
		unsigned before = descriptors();
		struct hall_link *link = hall_connect(hall, 99);
		struct hello answer = good_hello;
		int page = n == 1 ? file_make(PAGE, 0) : page_good();
		int fd = accept(listener, NULL, NULL);

		assert_non_null(link);
		answer.kind = n == 0 ? 1 : 2;
		answer.pid = n == 2 ? 98 : 99;
		answer.nid = n == 3 ? NID + 1 : NID;
		if (n < 4)
			raw_send(fd, &answer, sizeof(answer), &page, 1);
		/* n == 4: it ends without an answer. */
		else
			close(fd);
		assert_ptr_equal(expect(hall, HALL_ENDED), link);
		assert_false(link->answered);
		forget(hall, link);
		close(page);
		if (n < 4)
			close(fd);
		assert_int_equal(descriptors(), before);
	}
	close(listener);
	hall_close(hall);
}

static void hall_turn__lets_floods_pass(void **state)
{
	struct hall *a = hall_of(1), *b = hall_of(2);
	unsigned before = descriptors();
	struct hall_link *link;

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
	assert_non_null(link = hall_connect(b, 1));
	munmap(link->memory, BYTES);
	munmap(expect(a, HALL_CAME)->memory, BYTES);
	expect(b, HALL_ANSWERED);
	hall_drop(b, link);
	hall_drop(a, expect(a, HALL_ENDED));
	assert_int_equal(descriptors(), before);
	assert_int_equal(hall_refused(a)[REFUSED_SILENT] + hall_refused(a)[REFUSED_STRANGE], FLOOD);
	assert_true(hall_refused(a)[REFUSED_STRANGE] >= FLOOD / 3);
	hall_close(a);
	hall_close(b);
}

/* The other process refuses this one's link because of its own, which waits behind others. */
static void hall_turn__finds_its_replacement_behind_a_flood(void **state)
{
	struct hall *low = hall_of(1), *high = hall_of(2);
	struct hall_link *link = hall_connect(high, 1);
	int fds[HALF_OPEN + 4];

	(void)state;
	assert_non_null(link);
	munmap(link->memory, BYTES);
	for (unsigned n = 0; n < HALF_OPEN + 4; n++)
		fds[n] = raw_connect(high);
	munmap(hall_connect(low, 2)->memory, BYTES);
	expect_nothing(low);
	assert_ptr_equal(expect(high, HALL_REPLACED), link);
	munmap(link->memory, BYTES);
	expect(low, HALL_ANSWERED);
	for (unsigned n = 0; n < HALF_OPEN + 4; n++)
		close(fds[n]);
	hall_close(low);
	hall_close(high);
}

static void hall_turn__ends_half_open_connections(void **state)
{
	struct hall *hall = hall_of(1);
	int fds[HALF_OPEN + 4];
	unsigned before = descriptors();

	(void)state;
	for (unsigned n = 0; n < HALF_OPEN + 4; n++) {
		fds[n] = raw_connect(hall);
		expect_nothing(hall);
	}
	/* The first ones had to go. */
	for (unsigned n = 0; n < 4; n++)
		assert_true(readable(fds[n]) && raw_ended(fds[n]));
	assert_true(descriptors() <= before + HALF_OPEN + 4 + HALF_OPEN);
	/* The others have their time. */
	for (unsigned n = 4; n < HALF_OPEN + 4; n++) {
		while (!readable(fds[n]))
			expect_nothing(hall);
		assert_true(raw_ended(fds[n]));
	}
	for (unsigned n = 0; n < HALF_OPEN + 4; n++)
		close(fds[n]);
	assert_int_equal(descriptors(), before);
	assert_int_equal(hall_refused(hall)[REFUSED_SILENT], HALF_OPEN + 4);
	hall_close(hall);
}

static void hall_connect__stops_at_the_most_links(void **state)
{
	struct hall *hall = hall_of(1), *other = hall_of(2);
	struct rlimit files;
	int fds[] = {page_good(), file_make(BYTES, SEALS)};
	static int peers[LINKS];
	unsigned before = descriptors();

	(void)state;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 3 * LINKS)
		skip();
	for (unsigned n = 0; n < LINKS; n++) {
		struct hello hello = good_hello;

		hello.pid = 100 + n;
		peers[n] = raw_connect(hall);
		raw_send(peers[n], &hello, sizeof(hello), fds, 2);
		munmap(expect(hall, HALL_CAME)->memory, BYTES);
	}
	assert_null(hall_connect(hall, 2));
	assert_true(log_said("1024"));
	munmap(hall_connect(other, 1)->memory, BYTES);
	expect_nothing(hall);
	hall_drop(other, expect(other, HALL_ENDED));
	for (unsigned n = 0; n < LINKS; n++)
		close(peers[n]);
	for (unsigned n = 0; n < LINKS; n++)
		hall_drop(hall, expect(hall, HALL_ENDED));
	assert_int_equal(descriptors(), before);
	close(fds[0]);
	close(fds[1]);
	hall_close(hall);
	hall_close(other);
}

/* --- other users --- */

/* Were the directory open to others, they would be refused nevertheless. */
static void hall_turn__refuses_processes_of_other_users(void **state)
{
	static const char *const opened[] = {"", "/postern", "/postern/default"};
	char path[128];
	struct hall *hall;
	pid_t child;

	(void)state;
	if (geteuid() != 0)
		skip();
	hall = hall_of(1);
	for (unsigned n = 0; n < 3; n++) {
		snprintf(path, sizeof(path), "%s%s", runtime, opened[n]);
		assert_int_equal(chmod(path, S_IRWXU | S_IXGRP | S_IXOTH), 0);
	}
	snprintf(path, sizeof(path), "%s/1", hall_path(hall));
	assert_int_equal(chmod(path, S_IRWXU | S_IRWXG | S_IRWXO), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int fds[] = {page_good(), file_make(BYTES, SEALS)}, fd;

		alarm(LIMIT);
		if (setuid(NOBODY) != 0)
			_exit(2);
		fd = raw_connect(hall);
		raw_send(fd, &good_hello, sizeof(good_hello), fds, 2);
		_exit(raw_ended(fd) ? 0 : 1);
	}
	for (int status, ended = 0; !ended;) {
		expect_nothing(hall);
		ended = waitpid(child, &status, WNOHANG) == child;
		if (ended)
			assert_int_equal(status, 0);
	}
	assert_true(log_said("of user 65534 in"));
	hall_close(hall);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(hall_connect__gives_both_the_same_memory),
		CASE(hall_connect__finds_nobody),
		CASE(hall_wake__wakes_who_has_not_answered_or_sleeps),
		CASE(hall_turn__joins_two_that_connect_to_each_other),
		CASE(hall_turn__looks_once_in_a_series),
		CASE(hall_turn__ends_an_old_life_before_a_new_one_comes),
		CASE(hall_connect__leaves_nothing_behind),
		CASE(hall_sleep__misses_no_call),
		CASE(hall_open__refuses_a_process_id_in_use),
		CASE(hall_open__finds_a_free_process_id),
		CASE(hall_open__takes_what_a_killed_process_had),
		CASE(hall_open__leaves_the_sockets_of_the_living),
		CASE(hall_turn__tells_the_end_of_a_killed_process),
		CASE(hall_turn__refuses_another_hello),
		CASE(hall_connect__tells_what_does_not_fit),
		CASE(hall_turn__refuses_other_descriptors),
		CASE(hall_connect__refuses_another_answer),
		CASE(hall_turn__lets_floods_pass),
		CASE(hall_turn__finds_its_replacement_behind_a_flood),
		CASE(hall_turn__ends_half_open_connections),
		CASE(hall_connect__stops_at_the_most_links),
		CASE(hall_turn__refuses_processes_of_other_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
