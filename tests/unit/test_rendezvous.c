/* SPDX-License-Identifier: BSD-3-Clause */
/* test_rendezvous.c - tests of pmd-glue/rendezvous.c: rendezvous of one program, and of programs
 * that are killed. Covers: pmd-glue/rendezvous.c, pmd-glue/directory.c, pmd-glue/shared.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/memfd.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/random.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/rendezvous.h>

#include "rendezvous_rig.h"

#define COLLISIONS 10000u
#define ATTACHES   10000u
#define SLEEPS     20000u
#define ROUNDS     500000u
#define ROUNDS_END SECOND /* fewer rounds on busy CPUs */

/* --- memory --- */

/* Of these the kernel may have none when they are touched. So they are not even mapped, which would
 * set errno where there are none. */
static void shared_accept__takes_no_huge_pages(void **state)
{
	const size_t bytes = (size_t)2 << 20;
	int file =
		memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_HUGE_2MB);

	(void)state;
	if (file < 0)
		skip();
	assert_int_equal(ftruncate(file, (off_t)bytes), 0);
	assert_int_equal(fcntl(file, F_ADD_SEALS, SHARED_SEALS), 0);
	errno = 0;
	assert_null(shared_accept(file, bytes, SHARED_SEALS, PROT_READ));
	assert_int_equal(errno, 0);
	close(file);
}

/* --- tools --- */

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

static bool has_socket(const struct rendezvous *rendezvous, uint32_t pid)
{
	char path[128];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%u", rendezvous_path(rendezvous), pid);
	return lstat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

/* --- two that keep to the rules --- */

static void rendezvous_connect__gives_both_the_same_memory(void **state)
{
	struct rendezvous *a = rendezvous_of(1), *b = rendezvous_of(2);
	struct rendezvous_connection *to_b, *to_a;

	(void)state;
	assert_string_equal(rendezvous_path(a), rendezvous_path(b));
	to_b = rendezvous_connect(a, 2);
	assert_non_null(to_b);
	assert_int_equal(to_b->end, 0);
	assert_false(to_b->answered);
	/* It is used before there is an answer. */
	strcpy(to_b->memory, "frame");
	to_a = expect(b, RENDEZVOUS_CAME);
	assert_int_equal(to_a->pid, 1);
	assert_int_equal(to_a->uid, geteuid());
	assert_int_equal(to_a->end, 1);
	assert_true(to_a->answered);
	assert_string_equal(to_a->memory, "frame");
	assert_ptr_equal(expect(a, RENDEZVOUS_ANSWERED), to_b);
	assert_true(to_b->answered);
	((char *)to_a->memory)[BYTES - 1] = 'x';
	assert_int_equal(((char *)to_b->memory)[BYTES - 1], 'x');
	expect_nothing(a);
	expect_nothing(b);
	forget(a, to_b);
	assert_ptr_equal(expect(b, RENDEZVOUS_ENDED), to_a);
	/* Frames in the ring can still be read. */
	assert_string_equal(to_a->memory, "frame");
	forget(b, to_a);
	rendezvous_close(a);
	rendezvous_close(b);
}

static void rendezvous_connect__finds_nobody(void **state)
{
	struct rendezvous *a = rendezvous_of(1), *b = rendezvous_of(2);

	(void)state;
	assert_null(rendezvous_connect(a, 3));
	assert_int_equal(errno, ENOENT);
	rendezvous_close(b);
	assert_null(rendezvous_connect(a, 2));
	assert_int_equal(errno, ENOENT);
	rendezvous_close(a);
	/* That is nothing to complain of. */
	assert_false(log_said("node"));
}

static void rendezvous_wake__wakes_who_has_not_answered_or_sleeps(void **state)
{
	struct rendezvous *a = rendezvous_of(1), *b = rendezvous_of(2);
	struct rendezvous_connection *to_b, *to_a;

	(void)state;
	to_b = rendezvous_connect(a, 2);
	to_a = expect(b, RENDEZVOUS_CAME);
	expect_nothing(b);
	rendezvous_wake(to_b);
	assert_true(readable(rendezvous_set(b)));
	expect_nothing(b);
	assert_false(readable(rendezvous_set(b)));
	assert_ptr_equal(expect(a, RENDEZVOUS_ANSWERED), to_b);
	rendezvous_wake(to_b);
	assert_false(readable(rendezvous_set(b)));
	if (!rendezvous_sleep(b, true))
		skip();
	rendezvous_wake(to_b);
	assert_true(readable(rendezvous_set(b)));
	/* Nothing is taken off in a sleep: the owner would not wake. */
	expect_nothing(b);
	assert_true(readable(rendezvous_set(b)));
	assert_true(rendezvous_sleep(b, false));
	expect_nothing(b);
	assert_false(readable(rendezvous_set(b)));
	/* One message for each sleep. */
	assert_true(rendezvous_sleep(b, true));
	assert_false(readable(rendezvous_set(b)));
	rendezvous_wake(to_b);
	rendezvous_wake(to_b);
	assert_true(rendezvous_sleep(b, false));
	{
		char byte;

		assert_int_equal(recv(to_a->socket, &byte, 1, MSG_DONTWAIT), 1);
		assert_int_equal(recv(to_a->socket, &byte, 1, MSG_DONTWAIT), -1);
	}
	forget(a, to_b);
	forget(b, to_a);
	rendezvous_close(a);
	rendezvous_close(b);
}

/* One of two that connect to each other at random moments, and drop what they have. */
struct side {
	struct rendezvous *rendezvous;
	struct rendezvous_connection *connection;
	void *memory; /* of the connection */
	unsigned ends;
	unsigned replaced;
};

static void side_connect(struct side *side, uint32_t pid)
{
	if (side->connection)
		return;
	side->connection = rendezvous_connect(side->rendezvous, pid);
	assert_non_null(side->connection);
	side->memory = side->connection->memory;
	*(uint32_t *)side->memory = rendezvous_pid(side->rendezvous);
}

static void side_drop(struct side *side)
{
	if (!side->connection)
		return;
	munmap(side->memory, BYTES);
	rendezvous_drop(side->rendezvous, side->connection);
	side->connection = NULL;
}

static void side_turn(struct side *side)
{
	struct rendezvous_connection *connection;
	enum rendezvous_event event;

	while (rendezvous_turn(side->rendezvous, &connection, &event)) {
		switch (event) {
		case RENDEZVOUS_CAME:
			assert_null(side->connection);
			side->connection = connection;
			side->memory = connection->memory;
			break;
		case RENDEZVOUS_ANSWERED:
			assert_ptr_equal(side->connection, connection);
			break;
		case RENDEZVOUS_REPLACED:
			assert_ptr_equal(side->connection, connection);
			assert_ptr_not_equal(side->memory, connection->memory);
			assert_int_equal(
				*(uint32_t *)side->memory, rendezvous_pid(side->rendezvous));
			munmap(side->memory, BYTES);
			side->memory = connection->memory;
			side->replaced++;
			break;
		case RENDEZVOUS_ENDED:
			assert_ptr_equal(side->connection, connection);
			side_drop(side);
			side->ends++;
			break;
		}
	}
}

/* Both have one and the same. */
static void sides_check(struct side *sides)
{
	assert_non_null(sides[0].connection);
	assert_non_null(sides[1].connection);
	assert_true(sides[0].connection->answered && sides[1].connection->answered);
	assert_int_equal(sides[0].connection->end + sides[1].connection->end, 1);
	assert_ptr_equal(sides[0].connection->memory, sides[0].memory);
	assert_ptr_equal(sides[1].connection->memory, sides[1].memory);
	((uint32_t *)sides[0].memory)[8] = 1;
	((uint32_t *)sides[1].memory)[8]++;
	assert_int_equal(((uint32_t *)sides[0].memory)[8], 2);
}

static void rendezvous_turn__joins_two_that_connect_to_each_other(void **state)
{
	struct side sides[2] = {{.rendezvous = rendezvous_of(5)}, {.rendezvous = rendezvous_of(3)}};
	uint64_t seed = 1;
	unsigned files = descriptors(), maps = mappings();

	(void)state;
	for (unsigned n = 0; n < COLLISIONS; n++) {
		for (unsigned step = 0; step < 8; step++) {
			unsigned what = (unsigned)(random_next(&seed) % 4);
			struct side *side = &sides[what % 2];

			if (what < 2)
				side_connect(side, rendezvous_pid(sides[1 - what].rendezvous));
			else
				side_turn(side);
		}
		side_connect(&sides[n % 2], rendezvous_pid(sides[1 - n % 2].rendezvous));
		for (unsigned turn = 0; turn < 4; turn++)
			side_turn(&sides[turn % 2]);
		sides_check(sides);
		assert_int_equal(sides[0].ends + sides[1].ends, n);
		/* One of them leaves, and comes back perhaps before the other one has seen it. */
		side_drop(&sides[random_next(&seed) % 2]);
		if (random_next(&seed) % 2 == 0) {
			unsigned back = sides[0].connection ? 1 : 0;

			side_connect(&sides[back], rendezvous_pid(sides[1 - back].rendezvous));
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
	rendezvous_close(sides[0].rendezvous);
	rendezvous_close(sides[1].rendezvous);
}

/* A series of calls ends although there is always something new. */
static void rendezvous_turn__looks_once_in_a_series(void **state)
{
	struct rendezvous *a = rendezvous_of(1), *b = rendezvous_of(2), *c = rendezvous_of(3);
	struct rendezvous_connection *connection;
	enum rendezvous_event event;

	(void)state;
	munmap(rendezvous_connect(b, 1)->memory, BYTES);
	assert_true(rendezvous_turn(a, &connection, &event));
	munmap(connection->memory, BYTES);
	munmap(rendezvous_connect(c, 1)->memory, BYTES);
	assert_false(rendezvous_turn(a, &connection, &event));
	assert_true(rendezvous_turn(a, &connection, &event));
	assert_int_equal(connection->pid, 3);
	munmap(connection->memory, BYTES);
	rendezvous_close(a);
	rendezvous_close(b);
	rendezvous_close(c);
}

/* A process that has come again under its process id. */
static void rendezvous_turn__ends_an_old_life_before_a_new_one_comes(void **state)
{
	struct rendezvous *a = rendezvous_of(1), *b = rendezvous_of(2);
	struct rendezvous_connection *old, *new;

	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		if (n == 0) {
			munmap(rendezvous_connect(b, 1)->memory, BYTES);
			old = expect(a, RENDEZVOUS_CAME);
		} else {
			old = rendezvous_connect(a, 2);
			munmap(expect(b, RENDEZVOUS_CAME)->memory, BYTES);
		}
		rendezvous_close(b);
		b = rendezvous_of(2);
		munmap(rendezvous_connect(b, 1)->memory, BYTES);
		if (n == 1)
			assert_ptr_equal(expect(a, RENDEZVOUS_ANSWERED), old);
		assert_ptr_equal(expect(a, RENDEZVOUS_ENDED), old);
		new = expect(a, RENDEZVOUS_CAME);
		assert_ptr_not_equal(new, old);
		assert_int_equal(new->pid, 2);
		forget(a, old);
		forget(a, new);
		rendezvous_close(b);
		b = rendezvous_of(2);
	}
	rendezvous_close(a);
	rendezvous_close(b);
}

static void rendezvous_connect__leaves_nothing_behind(void **state)
{
	struct rendezvous *a = rendezvous_of(1), *b = rendezvous_of(2);
	unsigned files = 0, maps = 0;

	(void)state;
	for (unsigned n = 0; n < ATTACHES; n++) {
		struct rendezvous_connection *to_b, *to_a;

		if (n == 1) {
			files = descriptors();
			maps = mappings();
		}
		to_b = rendezvous_connect(a, 2);
		assert_non_null(to_b);
		to_a = expect(b, RENDEZVOUS_CAME);
		expect(a, RENDEZVOUS_ANSWERED);
		/* A connection has a socket, and nothing else. */
		if (n > 0 && n < 10)
			assert_int_equal(descriptors(), files + 2);
		forget(n % 2 ? a : b, n % 2 ? to_b : to_a);
		expect(n % 2 ? b : a, RENDEZVOUS_ENDED);
		forget(n % 2 ? b : a, n % 2 ? to_a : to_b);
	}
	assert_int_equal(descriptors(), files);
	assert_true(mappings() < maps + COLLISIONS / 10); /* sanitizers have their own */
	rendezvous_close(a);
	rendezvous_close(b);
}

/* A child of this process has none of these connections' sockets, and all of these files. */
static bool child_has(
	struct rendezvous_connection *const *connections, const int *files, unsigned count)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		for (unsigned n = 0; n < count; n++) {
			if (connections[n] && fcntl(connections[n]->socket, F_GETFD) != -1)
				_exit(1);
			if (!connections[n] && fcntl(files[n], F_GETFD) == -1)
				_exit(2);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0;
}

/* Of each connection that is left the rendezvous still knows the socket, and it has forgotten those
 * of the others: a file that has the number of a dropped connection's socket is no business of the
 * rendezvous's. */
static void rendezvous_drop__leaves_the_other_links_as_they_are(void **state)
{
	enum { CONNECTIONS = 4 };
	static const unsigned order[CONNECTIONS] = {0, 3, 2, 1};
	struct rendezvous *rendezvous = rendezvous_of(1), *others[CONNECTIONS];
	struct rendezvous_connection *connections[CONNECTIONS], *ends[CONNECTIONS];
	int files[CONNECTIONS];

	(void)state;
	for (unsigned n = 0; n < CONNECTIONS; n++) {
		others[n] = rendezvous_of(2 + n);
		connections[n] = rendezvous_connect(rendezvous, 2 + n);
		ends[n] = expect(others[n], RENDEZVOUS_CAME);
		assert_ptr_equal(expect(rendezvous, RENDEZVOUS_ANSWERED), connections[n]);
	}
	for (unsigned n = 0; n < CONNECTIONS; n++) {
		unsigned which = order[n];
		int number = connections[which]->socket;

		assert_true(child_has(connections, files, CONNECTIONS));
		forget(rendezvous, connections[which]);
		connections[which] = NULL;
		files[which] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, number);
		assert_int_equal(files[which], number);
		assert_ptr_equal(expect(others[which], RENDEZVOUS_ENDED), ends[which]);
		assert_true(child_has(connections, files, CONNECTIONS));
	}
	for (unsigned n = 0; n < CONNECTIONS; n++) {
		close(files[n]);
		forget(others[n], ends[n]);
		rendezvous_close(others[n]);
	}
	rendezvous_close(rendezvous);
}

/* --- sleep --- */

struct talker {
	struct rendezvous *rendezvous;
	struct rendezvous_connection *connection;
	_Atomic uint32_t *mine, *other; /* numbers in the memory */
	bool lost;
};

/* Answers each number of the other one's with the next. */
static void *talker_run(void *context)
{
	struct talker *talker = context;
	struct pollfd set = {.fd = rendezvous_set(talker->rendezvous), .events = POLLIN};

	for (uint32_t n = 1; n <= SLEEPS && !talker->lost; n++) {
		struct rendezvous_connection *connection;
		enum rendezvous_event event;

		while (atomic_load_explicit(talker->other, memory_order_acquire) < n - 1) {
			if (rendezvous_sleep(talker->rendezvous, true) &&
				atomic_load_explicit(talker->other, memory_order_acquire) < n - 1 &&
				poll(&set, 1, WAIT) != 1) {
				talker->lost = true;
				break;
			}
			rendezvous_sleep(talker->rendezvous, false);
			/* Often enough that some sleeps begin with senders that make no fence. */
			for (unsigned ticks = 0; ticks <= n % 2; ticks++)
				while (rendezvous_turn(talker->rendezvous, &connection, &event))
					talker->lost = true;
		}
		atomic_store_explicit(talker->mine, n, memory_order_release);
		rendezvous_wake(talker->connection);
	}
	return NULL;
}

static uint32_t word_of(const struct rendezvous_connection *connection)
{
	return atomic_load(connection->word);
}

/* S4 */
static void rendezvous_sleep__asks_senders_for_fences_while_it_is_frequent(void **state)
{
	struct rendezvous *rendezvous = rendezvous_of(1), *other = rendezvous_of(2);
	struct rendezvous_connection *connection = rendezvous_connect(rendezvous, 2), *end;
	uint32_t last = 0;

	(void)state;
	end = expect(other, RENDEZVOUS_CAME);
	expect(rendezvous, RENDEZVOUS_ANSWERED);
	for (unsigned n = 0; n < 3; n++) {
		expect_nothing(rendezvous);
		assert_int_equal(word_of(end) & WORD_BITS, 0);
		for (unsigned naps = 0; naps < 3; naps++) {
			if (!rendezvous_sleep(rendezvous, true))
				skip();
			assert_int_equal(word_of(end) & WORD_BITS, WORD_BITS);
			assert_int_not_equal(word_of(end), last);
			last = word_of(end);
			rendezvous_wake(end);
			rendezvous_wake(end);
			assert_int_equal(end->wakes_sent, 3 * n + naps + 1);
			rendezvous_sleep(rendezvous, false);
			rendezvous_wake(end);
			assert_false(
				rendezvous_turn(rendezvous, &(struct rendezvous_connection *){NULL},
					&(enum rendezvous_event){0}));
			assert_int_equal(word_of(end) & WORD_BITS, WORD_FENCED);
			assert_int_equal(end->wakes_sent, 3 * n + naps + 1);
		}
	}
	assert_int_equal(connection->wakes_received, end->wakes_sent);
	forget(rendezvous, connection);
	forget(other, end);
	rendezvous_close(other);
	rendezvous_close(rendezvous);
}

/* In each round one thread publishes and wakes while the other falls asleep and looks. */
struct litmus {
	struct rendezvous *rendezvous;            /* the sleeper's */
	struct rendezvous_connection *connection; /* the sender's */
	_Atomic uint32_t *published;
	_Atomic uint32_t met;
	_Atomic bool ends;
};

/* The threads meet for the count-th time. */
static void litmus_meet(struct litmus *litmus, uint32_t count)
{
	unsigned looks = 0;

	atomic_fetch_add(&litmus->met, 1);
	while (atomic_load(&litmus->met) < 2 * count)
		if (++looks % 65536 == 0)
			sched_yield();
}

/* Neither thread is always the first. */
static void litmus_dawdle(uint64_t *seed)
{
	for (uint64_t n = random_next(seed) % 64; n > 0; n--)
		atomic_signal_fence(memory_order_seq_cst);
}

/* Each thread has what it will look at in its CPU's cache, so that without a fence the load would
 * overtake the store. */
static void *litmus_send(void *context)
{
	struct litmus *litmus = context;
	uint64_t seed = 1;

	for (uint32_t n = 1; !atomic_load(&litmus->ends); n++) {
		litmus_meet(litmus, 2 * n - 1);
		(void)word_of(litmus->connection);
		litmus_dawdle(&seed);
		atomic_store_explicit(litmus->published, n, memory_order_release);
		rendezvous_wake(litmus->connection);
		litmus_meet(litmus, 2 * n);
	}
	return NULL;
}

/* Returns in how many rounds the sleeper found nothing and nobody woke it. */
static unsigned litmus_sleep(struct litmus *litmus)
{
	uint64_t seed = 2, end = glue_now(NULL) + ROUNDS_END;
	unsigned lost = 0;
	bool ends = false;

	for (uint32_t n = 1; !ends; n++) {
		bool found;

		litmus_meet(litmus, 2 * n - 1);
		(void)atomic_load(litmus->published);
		litmus_dawdle(&seed);
		rendezvous_sleep(litmus->rendezvous, true);
		found = atomic_load_explicit(litmus->published, memory_order_acquire) == n;
		ends = n == ROUNDS || glue_now(NULL) >= end;
		atomic_store(&litmus->ends, ends);
		litmus_meet(litmus, 2 * n);
		lost += !found && litmus->connection->woken != word_of(litmus->connection);
		rendezvous_sleep(litmus->rendezvous, false);
	}
	return lost;
}

/* S4 */
static void rendezvous_sleep__sees_what_the_sender_published_or_is_woken(void **state)
{
	struct litmus litmus = {.rendezvous = rendezvous_of(2)};
	struct rendezvous *other = rendezvous_of(1);
	struct rendezvous_connection *end;
	pthread_t thread;
	unsigned lost;

	(void)state;
	if (!rendezvous_sleep(litmus.rendezvous, true))
		skip();
	rendezvous_sleep(litmus.rendezvous, false);
	litmus.connection = rendezvous_connect(other, 2);
	end = expect(litmus.rendezvous, RENDEZVOUS_CAME);
	expect(other, RENDEZVOUS_ANSWERED);
	litmus.published = end->memory;
	assert_int_equal(pthread_create(&thread, NULL, litmus_send, &litmus), 0);
	lost = litmus_sleep(&litmus);
	pthread_join(thread, NULL);
	assert_int_equal(lost, 0);
	forget(other, litmus.connection);
	forget(litmus.rendezvous, end);
	rendezvous_close(other);
	rendezvous_close(litmus.rendezvous);
}

static void rendezvous_sleep__misses_no_call(void **state)
{
	struct talker talkers[2] = {
		{.rendezvous = rendezvous_of(1)}, {.rendezvous = rendezvous_of(2)}};
	pthread_t thread;

	(void)state;
	if (!rendezvous_sleep(talkers[0].rendezvous, true))
		skip();
	rendezvous_sleep(talkers[0].rendezvous, false);
	talkers[0].connection = rendezvous_connect(talkers[0].rendezvous, 2);
	talkers[1].connection = expect(talkers[1].rendezvous, RENDEZVOUS_CAME);
	expect(talkers[0].rendezvous, RENDEZVOUS_ANSWERED);
	for (unsigned n = 0; n < 2; n++) {
		talkers[n].mine = (_Atomic uint32_t *)talkers[n].connection->memory + 64 * n;
		talkers[n].other = (_Atomic uint32_t *)talkers[n].connection->memory + 64 * (1 - n);
	}
	assert_int_equal(pthread_create(&thread, NULL, talker_run, &talkers[1]), 0);
	talker_run(&talkers[0]);
	pthread_join(thread, NULL);
	assert_false(talkers[0].lost || talkers[1].lost);
	for (unsigned n = 0; n < 2; n++) {
		munmap(talkers[n].connection->memory, BYTES);
		rendezvous_close(talkers[n].rendezvous);
	}
}

/* --- process ids and the end of processes --- */

static void rendezvous_open__refuses_a_process_id_in_use(void **state)
{
	struct rendezvous *rendezvous = rendezvous_of(7), *other;
	char sentence[256];

	(void)state;
	assert_null(rendezvous_at(NULL, 7));
	snprintf(sentence, sizeof(sentence),
		"node: process id 7 is in use in %s/postern/default: end the process that has it, "
		"choose another id, or let the library choose one",
		runtime);
	assert_string_equal(log_last_error(), sentence);
	/* In another rendezvous it is free. */
	other = rendezvous_at("ci", 7);
	assert_non_null(other);
	assert_null(rendezvous_connect(other, 7 + 1));
	rendezvous_close(other);
	rendezvous_close(rendezvous);
	rendezvous_close(rendezvous_of(7));
}

static void rendezvous_open__says_nothing_of_a_process_id_that_is_tried(void **state)
{
	struct rendezvous *a = rendezvous_of(5);

	(void)state;
	log_clear_error();
	glue_pid_try(true);
	assert_null(rendezvous_at(NULL, 5));
	glue_pid_try(false);
	assert_true(glue_pid_is_taken());
	assert_string_equal(log_last_error(), "");
	rendezvous_close(a);
}

static void rendezvous_open__finds_a_free_process_id(void **state)
{
	struct rendezvous *first = rendezvous_at("", RENDEZVOUS_PID_ANY),
			  *second = rendezvous_at(NULL, RENDEZVOUS_PID_ANY);

	(void)state;
	assert_non_null(first);
	assert_non_null(second);
	assert_int_equal(rendezvous_pid(first), getpid());
	assert_int_not_equal(rendezvous_pid(second), getpid());
	assert_non_null(rendezvous_connect(first, rendezvous_pid(second)));
	munmap(expect(second, RENDEZVOUS_CAME)->memory, BYTES);
	rendezvous_close(first);
	rendezvous_close(second);
}

/* A child with a rendezvous and, if that is wanted, a connection and a child of its own that
 * stays. */
static pid_t child_start(uint32_t pid, uint32_t to, bool fork_again, pid_t *grandchild)
{
	int ready[2];
	pid_t child;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct rendezvous *rendezvous = rendezvous_at(NULL, pid);
		struct rendezvous_connection *connection =
			rendezvous && to ? rendezvous_connect(rendezvous, to) : NULL;
		pid_t own = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT);
		if (connection)
			strcpy(connection->memory, "last words");
		if (fork_again) {
			own = fork();
			if (own == 0) {
				alarm(LIMIT);
				for (;;)
					pause();
			}
		}
		if (!rendezvous || (to && !connection) ||
			write(ready[1], &own, sizeof(own)) != sizeof(own))
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

static void rendezvous_open__takes_what_a_killed_process_had(void **state)
{
	pid_t unused, first = child_start(7, 0, false, &unused);
	pid_t second = child_start(8, 0, false, &unused);
	struct rendezvous *rendezvous;

	(void)state;
	assert_null(rendezvous_at(NULL, 7));
	child_kill(first);
	child_kill(second);
	rendezvous = rendezvous_of(7);
	assert_true(has_socket(rendezvous, 7));
	assert_false(has_socket(rendezvous, 8));
	rendezvous_close(rendezvous_of(8));
	rendezvous_close(rendezvous);
}

/* As long as it lives, its socket is nobody else's to remove. */
static void rendezvous_open__leaves_the_sockets_of_the_living(void **state)
{
	struct rendezvous *a = rendezvous_of(1), *b = rendezvous_of(2);

	(void)state;
	assert_true(has_socket(a, 1));
	assert_true(has_socket(a, 2));
	rendezvous_close(b);
	assert_false(has_socket(a, 2));
	rendezvous_close(a);
}

static void rendezvous_turn__tells_the_end_of_a_killed_process(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		struct rendezvous *rendezvous = rendezvous_of(1);
		pid_t grandchild, child = child_start(7, 1, n == 1, &grandchild);
		struct rendezvous_connection *connection = expect(rendezvous, RENDEZVOUS_CAME);

		/* Its own child may stay: it is the end nevertheless. */
		child_kill(child);
		assert_ptr_equal(expect(rendezvous, RENDEZVOUS_ENDED), connection);
		assert_string_equal(connection->memory, "last words");
		assert_null(rendezvous_connect(rendezvous, 7));
		assert_int_equal(errno, ECONNREFUSED);
		forget(rendezvous, connection);
		rendezvous_close(rendezvous_of(7));
		if (n == 1)
			kill(grandchild, SIGKILL);
		rendezvous_close(rendezvous);
	}
}

/* A file beyond the limit would end the process by a signal. */
static void shared_file__says_that_a_limit_forbids_it(void **state)
{
	struct rlimit before, limit;
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){4096, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	errno = 0;
	assert_int_equal(shared_file(4097, 0), -1);
	assert_int_equal(errno, EFBIG);
	fd = shared_file(4096, 0);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	errno = 0;
	assert_int_equal(shared_file((size_t)1 << 63, 0), -1);
	assert_int_equal(errno, EINVAL);
}

/* An empty message is no end. */
static void messages_drop__leaves_what_brings_descriptors(void **state)
{
	static const int standard = 0;
	struct parcel parcel;
	int ends[2];

	(void)state;
	for (unsigned count = 0; count < 2; count++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
		assert_true(parcel_send(ends[0], "", 0, NULL, 0));
		assert_true(parcel_send(ends[0], "ab", 2, NULL, 0));
		assert_true(parcel_send(ends[0], "", 0, &standard, count));
		assert_true(parcel_send(ends[0], "c", 1, NULL, 0));
		close(ends[0]);
		assert_int_equal(shutdown(ends[1], SHUT_RDWR), 0);
		assert_int_equal(messages_drop(ends[1]), count == 0);
		assert_int_equal(parcel_receive(&parcel, ends[1], 1), HEARD_END);
		assert_int_equal(parcel_receive(&parcel, ends[1], 0),
			count == 0 ? HEARD_END : HEARD_MESSAGE);
		close(ends[1]);
	}
}

/* To take the message would close them. */
static void parcel_take__leaves_a_message_with_more_descriptors(void **state)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE((PARCEL_DESCRIPTORS + 1) * sizeof(int))];
	} control = {0};
	struct iovec vector = {.iov_base = (void *)(uintptr_t) "a", .iov_len = 1};
	const struct msghdr message = {.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *part = CMSG_FIRSTHDR(&message);
	struct parcel parcel;
	int ends[2];
	char byte;

	(void)state;
	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS; /* of standard input, each */
	part->cmsg_len = CMSG_LEN((PARCEL_DESCRIPTORS + 1) * sizeof(int));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(sendmsg(ends[0], &message, 0), 1);
	assert_int_equal(parcel_take(&parcel, ends[1], PARCEL_DESCRIPTORS), HEARD_MESSAGE);
	assert_int_equal(parcel.length, 0);
	assert_int_equal(parcel.count, PARCEL_DESCRIPTORS);
	parcel_close(&parcel);
	assert_int_equal(recv(ends[1], &byte, 1, MSG_DONTWAIT), 1);
	close(ends[0]);
	close(ends[1]);
}

/* It ends the connection, as its length is 0; what it brings is closed. */
static void parcel_receive__closes_what_comes_with_an_empty_message(void **state)
{
	const int before = dup(STDIN_FILENO);
	struct parcel parcel;
	int ends[2], after;

	(void)state;
	close(before); /* the lowest number that is free */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_true(parcel_send(ends[0], NULL, 0, (const int[]){STDIN_FILENO, STDIN_FILENO}, 2));
	assert_int_equal(parcel_receive(&parcel, ends[1], 2), HEARD_END);
	assert_int_equal(parcel.count, 0);
	close(ends[0]);
	close(ends[1]);
	after = dup(STDIN_FILENO);
	close(after);
	assert_int_equal(after, before);
	assert_int_equal(fcntl(before + 2, F_GETFD), -1);
	assert_int_equal(fcntl(before + 3, F_GETFD), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_accept__takes_no_huge_pages),
		cmocka_unit_test(parcel_receive__closes_what_comes_with_an_empty_message),
		cmocka_unit_test(parcel_take__leaves_a_message_with_more_descriptors),
		cmocka_unit_test(messages_drop__leaves_what_brings_descriptors),
		cmocka_unit_test(shared_file__says_that_a_limit_forbids_it),
		CASE(rendezvous_connect__gives_both_the_same_memory),
		CASE(rendezvous_connect__finds_nobody),
		CASE(rendezvous_wake__wakes_who_has_not_answered_or_sleeps),
		CASE(rendezvous_turn__joins_two_that_connect_to_each_other),
		CASE(rendezvous_turn__looks_once_in_a_series),
		CASE(rendezvous_turn__ends_an_old_life_before_a_new_one_comes),
		CASE(rendezvous_connect__leaves_nothing_behind),
		CASE(rendezvous_drop__leaves_the_other_links_as_they_are),
		CASE(rendezvous_sleep__asks_senders_for_fences_while_it_is_frequent),
		CASE(rendezvous_sleep__sees_what_the_sender_published_or_is_woken),
		CASE(rendezvous_sleep__misses_no_call),
		CASE(rendezvous_open__refuses_a_process_id_in_use),
		CASE(rendezvous_open__says_nothing_of_a_process_id_that_is_tried),
		CASE(rendezvous_open__finds_a_free_process_id),
		CASE(rendezvous_open__takes_what_a_killed_process_had),
		CASE(rendezvous_open__leaves_the_sockets_of_the_living),
		CASE(rendezvous_turn__tells_the_end_of_a_killed_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
