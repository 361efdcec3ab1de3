/* SPDX-License-Identifier: BSD-3-Clause */
/* test_clients.c - tests of posternd's processes: those that keep to no rule, those that end, and
 * how many there may be.
 *
 * Covers: pmd-glue/clients.c, pmd-glue/disposal.c.
 */
#include "../nap.h"
#include "switch_rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pmd-glue/client.h>
#include <pmd-glue/disposal.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pair.h>

struct rogue {
	int socket;
	int files[2]; /* page, memory */
	void *memory;
};

static int rogue_connect(void)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(posternd_address(&address, card_name));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static struct rogue rogue_sealed(int page_seals, int seals, size_t bytes)
{
	struct rogue rogue = {.files = {shared_file(shared_page_bytes(), shared_page_bytes()),
				      shared_file(bytes, 0)}};

	assert_int_equal(fcntl(rogue.files[0], F_ADD_SEALS, page_seals), 0);
	assert_int_equal(fcntl(rogue.files[1], F_ADD_SEALS, seals), 0);
	rogue.memory = shared_map(rogue.files[1], bytes, PROT_READ | PROT_WRITE);
	assert_non_null(rogue.memory);
	rogue.socket = rogue_connect();
	return rogue;
}

static struct rogue rogue_make(int seals, size_t bytes)
{
	return rogue_sealed(SHARED_PAGE_SEALS, seals, bytes);
}

/* What posternd answers. It hangs up on a process that has said nothing for a second, as one does
 * that has no CPU: then there is a new connection. */
static int rogue_say(int *socket, const void *hello, size_t length, const int *fds, unsigned count)
{
	struct client_answer answer = {0};

	for (unsigned n = 0; n < 10; n++) {
		if (parcel_send(*socket, hello, length, fds, count) &&
			recv(*socket, &answer, sizeof(answer), 0) == (ssize_t)sizeof(answer))
			return (int)answer.verdict;
		close(*socket);
		*socket = rogue_connect();
	}
	fail();
	return -1;
}

static int rogue_hello(struct rogue *rogue, uint32_t pid)
{
	struct client_hello hello = {.magic = CLIENT_MAGIC,
		.version = CLIENT_VERSION,
		.pid = pid,
		.pair_bytes = pair_bytes()};

	return rogue_say(&rogue->socket, &hello, sizeof(hello), rogue->files, 2);
}

static void rogue_end(struct rogue *rogue, size_t bytes)
{
	munmap(rogue->memory, bytes);
	close(rogue->files[0]);
	close(rogue->files[1]);
	close(rogue->socket);
}

static void switch_run__refuses_memory_that_could_be_taken_away(void **state)
{
	struct rogue rogue;

	(void)state;
	rig_begin();
	rogue = rogue_make(0, pair_bytes());
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_MEMORY);
	rogue_end(&rogue, pair_bytes());
	rogue = rogue_make(SHARED_SEALS, pair_bytes() - 4096);
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_MEMORY);
	rogue_end(&rogue, pair_bytes() - 4096);
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
	rogue_end(&rogue, pair_bytes());
	rig_end();
}

/* S1 and S2 of shared.h: each seal is needed. */
static void switch_run__refuses_memory_that_lacks_a_seal(void **state)
{
	static const int seals[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_FUTURE_WRITE};
	struct rogue rogue;

	(void)state;
	rig_begin();
	for (unsigned n = 0; n < RTE_DIM(seals); n++) {
		rogue = rogue_sealed(SHARED_PAGE_SEALS & ~seals[n], SHARED_SEALS, pair_bytes());
		assert_int_equal(rogue_hello(&rogue, 5), CLIENT_MEMORY);
		rogue_end(&rogue, pair_bytes());
		if (!(SHARED_SEALS & seals[n]))
			continue;
		rogue = rogue_make(SHARED_SEALS & ~seals[n], pair_bytes());
		assert_int_equal(rogue_hello(&rogue, 5), CLIENT_MEMORY);
		rogue_end(&rogue, pair_bytes());
	}
	rig_end();
}

static unsigned descriptors_count(void)
{
	DIR *list = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(list);
	while (readdir(list))
		count++;
	closedir(list);
	return count;
}

/* Threads of the switch's close them. */
static void descriptors_await(unsigned count)
{
	const uint64_t until = glue_now(NULL) + TIMEOUT;

	while (descriptors_count() != count) {
		nap();
		assert_true(glue_now(NULL) < until);
	}
}

static void hang_up_await(int socket)
{
	char byte;

	while (recv(socket, &byte, sizeof(byte), 0) > 0)
		;
	close(socket);
}

/* No message is too short to bring some. */
static void switch_run__keeps_no_descriptor_of_a_message(void **state)
{
	const unsigned before = (rig_begin(), descriptors_count());
	struct rogue rogue = rogue_make(SHARED_SEALS, pair_bytes());

	(void)state;
	for (unsigned length = 0; length < 4; length++) {
		const int fd = rogue_connect();

		assert_true(parcel_send(fd, "abc", length, rogue.files, 2));
		hang_up_await(fd);
	}
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
	assert_true(parcel_send(rogue.socket, "", 0, rogue.files, 2));
	hang_up_await(rogue.socket);
	rogue.socket = rogue_connect();
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
	assert_true(parcel_send(rogue.socket, "a", 1, rogue.files, 1));
	hang_up_await(rogue.socket);
	rogue.socket = -1;
	rogue_end(&rogue, pair_bytes());
	descriptors_await(before);
	rig_end();
}

/* A TCP socket whose last close waits for a minute, because its other end takes nothing. */
struct clinging {
	int end, other;
};

static struct clinging clinging_make(void)
{
	static const char bytes[65536];
	const int small = 4096; /* a hundred of these need little memory */
	const struct linger minute = {.l_onoff = 1, .l_linger = 60};
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct clinging clinging = {.end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	socklen_t size = sizeof(address);

	assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(setsockopt(clinging.end, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(connect(clinging.end, (struct sockaddr *)&address, size), 0);
	clinging.other = accept(listener, NULL, NULL);
	assert_true(clinging.other >= 0);
	close(listener);
	while (send(clinging.end, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(
		setsockopt(clinging.end, SOL_SOCKET, SO_LINGER, &minute, sizeof(minute)), 0);
	return clinging;
}

static bool no_process(const struct switch_count *count)
{
	return count->processes == 0;
}

/* Nobody makes the switch wait: by what a hello brings, or too much in it, what a wake-up brings,
 * and what is not read before the end. */
static void switch_run__waits_for_no_descriptor_to_be_closed(void **state)
{
	enum { WAYS = 4 };
	const unsigned before = (rig_begin(), descriptors_count());
	struct rogue rogue = rogue_make(SHARED_SEALS, pair_bytes());
	int others[WAYS];

	(void)state;
	for (unsigned way = 0; way < WAYS; way++) {
		struct clinging clinging = clinging_make();
		const int two[] = {clinging.end, clinging.end};
		struct client_hello hello = {.magic = CLIENT_MAGIC,
			.version = CLIENT_VERSION,
			.pid = 5,
			.pair_bytes = pair_bytes()};

		others[way] = clinging.other;
		if (way >= 2)
			assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
		rig_pause(); /* it is the last to have the socket */
		if (way == 0)
			assert_true(parcel_send(rogue.socket, &hello, sizeof(hello), two, 2));
		else if (way == 1)
			assert_true(parcel_send(rogue.socket, "", 0, two, 1));
		for (unsigned n = 0; n < 20 && way == 3; n++)
			(void)send(rogue.socket, "", 1, MSG_DONTWAIT);
		if (way >= 2)
			assert_true(parcel_send(rogue.socket, "", 1, two, 1));
		close(clinging.end);
		if (way == 3)
			close(rogue.socket);
		rig_go_on();
		if (way != 3)
			hang_up_await(rogue.socket);
		rig_look_until(no_process);
		rogue.socket = rogue_connect();
	}
	rogue_end(&rogue, pair_bytes());
	rig_look_until(no_process);
	for (unsigned way = 0; way < WAYS; way++)
		close(others[way]);
	descriptors_await(before);
	rig_end();
}

/* A connection of another user. The system call is for this thread alone: seteuid() would interrupt
 * all others, and a close() that lingers ends then. */
static int stranger_connect(void)
{
	int fd;

	assert_int_equal(syscall(SYS_setresuid, -1, NOBODY, -1), 0);
	fd = rogue_connect();
	assert_int_equal(syscall(SYS_setresuid, -1, 0, -1), 0);
	return fd;
}

/* A connection of another user, who has closed his end: it brings a socket that lingers, which
 * nobody else has. Returns the other end of that one. The switch is to be stopped meanwhile. */
static int clinging_call(void)
{
	struct clinging clinging = clinging_make();
	const int fd = stranger_connect();

	assert_true(parcel_send(fd, "", 1, &clinging.end, 1));
	close(clinging.end);
	close(fd);
	return clinging.other;
}

/* D1 and D3 of disposal.h. */
static void switch_run__lets_others_in_beside_descriptors_that_linger(void **state)
{
	const unsigned before = (rig_begin(), descriptors_count());
	struct rogue rogue = rogue_make(SHARED_SEALS, pair_bytes());
	int others[100], ends[2];
	char byte;

	(void)state;
	rig_pause();
	for (unsigned n = 0; n < RTE_DIM(others); n++)
		others[n] = clinging_call();
	rig_go_on();
	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
		close(rogue.socket);
		rig_look_until(no_process);
		rogue.socket = rogue_connect();
	}
	assert_int_equal(rig_look().refused[CLIENT_STRANGE], DISPOSAL_SHARE);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_true(parcel_send(rogue.socket, "", 1, &ends[1], 1));
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0); /* the switch has closed it, too */
	close(ends[0]);
	for (unsigned n = 0; n < RTE_DIM(others); n++)
		close(others[n]);
	close(rogue.socket);
	rogue.socket = stranger_connect();
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
	rogue_end(&rogue, pair_bytes());
	descriptors_await(before);
	rig_end();
}

static bool share_strange(const struct switch_count *count)
{
	return count->refused[CLIENT_STRANGE] == DISPOSAL_SHARE;
}

static bool hung_up(int socket)
{
	char byte;

	return recv(socket, &byte, sizeof(byte), MSG_DONTWAIT) == 0;
}

/* C4. A busy machine is tried again. */
static void switch_run__sleeps_while_a_message_stays_unread(void **state)
{
	const unsigned before = (rig_begin_stopped(), descriptors_count());
	int others[DISPOSAL_SHARE];
	unsigned tries = 0;
	bool bad;

	(void)state;
	for (unsigned n = 0; n < RTE_DIM(others); n++)
		others[n] = clinging_call();
	rig_go_on();
	rig_look_until(share_strange);
	do {
		const int fd = stranger_connect();

		assert_true(parcel_send(fd, "who?", 4, NULL, 0));
		/* It is accepted, and the one that is closed has its number no more. */
		descriptors_await(before + 2 * DISPOSAL_SHARE + 1);
		while (!thread_sleeps(rig_thread) && !hung_up(fd))
			nap();
		bad = hung_up(fd); /* it has not slept before */
		close(fd);
	} while (bad && ++tries < 10);
	assert_false(bad);
	for (unsigned n = 0; n < RTE_DIM(others); n++)
		close(others[n]);
	descriptors_await(before);
	rig_end();
}

/* D3: memory counts less, here of processes that have ended before what lingers is closed. */
static void switch_run__hears_a_user_of_whom_memory_is_freed(void **state)
{
	const unsigned before = (rig_begin_stopped(), descriptors_count());
	struct rogue rogue = rogue_make(SHARED_SEALS, pair_bytes());
	const int other = clinging_call();

	(void)state;
	rig_go_on();
	for (unsigned n = 0; n < 2 * DISPOSAL_SHARE; n++) {
		close(rogue.socket);
		rogue.socket = stranger_connect();
		assert_int_equal(rogue_hello(&rogue, n), CLIENT_WELCOME);
	}
	assert_int_equal(rig_look().refused[CLIENT_RESOURCES], 0);
	rogue_end(&rogue, pair_bytes());
	close(other);
	descriptors_await(before);
	rig_end();
}

static bool two_strange(const struct switch_count *count)
{
	return count->refused[CLIENT_STRANGE] == 2;
}

/* D2 of disposal.h: while one descriptor is being closed, and one waits. */
static void switch_run__closes_what_brings_no_descriptors_beside_those_that_linger(void **state)
{
	const unsigned before = (rig_begin_stopped(), descriptors_count());
	const int others[] = {clinging_call(), clinging_call()};

	(void)state;
	rig_go_on();
	rig_look_until(two_strange);
	descriptors_await(before + 3);
	for (unsigned n = 0; n < 5; n++) {
		const int fd = stranger_connect();

		for (unsigned i = 0; i < 20; i++)
			(void)send(fd, "a", i % 2, MSG_DONTWAIT | MSG_NOSIGNAL);
		hang_up_await(fd);
	}
	descriptors_await(before + 3);
	close(others[0]);
	close(others[1]);
	descriptors_await(before);
	rig_end();
}

static _Atomic bool no_threads;

int __real_pthread_create(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

/* A connection that is refused, and brings a number of descriptors. */
static void strange_call(unsigned count)
{
	static const int standard[] = {0, 0};
	const int fd = rogue_connect();

	assert_true(parcel_send(fd, "who?", 4, standard, count));
	hang_up_await(fd);
}

/* The first test, which finds no threads. One alone closes nothing that may wait. */
static void switch_run__closes_later_while_no_thread_can_be_made(void **state)
{
	const unsigned before = (rig_begin(), descriptors_count());
	struct rogue rogue;

	(void)state;
	no_threads = true;
	strange_call(0);
	strange_call(0);
	descriptors_await(before + 2);
	no_threads = false;
	strange_call(0);
	descriptors_await(before);
	no_threads = true;
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
	rogue_end(&rogue, pair_bytes());
	rig_look_until(no_process);
	strange_call(1);
	strange_call(0);
	descriptors_await(before + 2); /* its memory, and what the call brought */
	no_threads = false;
	strange_call(0);
	descriptors_await(before);
	rig_end();
}

static void switch_run__refuses_nonsense(void **state)
{
	struct client_hello hello = {.magic = CLIENT_MAGIC, .version = CLIENT_VERSION + 1};
	struct rogue rogue;
	int fd;

	(void)state;
	rig_begin();
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	assert_int_equal(
		rogue_say(&rogue.socket, &hello, sizeof(hello), rogue.files, 2), CLIENT_VERSIONS);
	close(rogue.socket);
	rogue.socket = rogue_connect();
	hello.version = CLIENT_VERSION;
	assert_int_equal(rogue_say(&rogue.socket, &hello, sizeof(hello), rogue.files, 2),
		CLIENT_VERSIONS); /* another layout */
	close(rogue.socket);
	rogue.socket = rogue_connect();
	assert_int_equal(
		rogue_say(&rogue.socket, &hello, sizeof(hello), rogue.files, 1), CLIENT_STRANGE);
	rogue_end(&rogue, pair_bytes());
	fd = rogue_connect();
	assert_int_equal(rogue_say(&fd, "who?", 4, NULL, 0), CLIENT_STRANGE);
	close(fd);
	assert_int_equal(rig_look().refused[CLIENT_STRANGE], 2);
	assert_int_equal(rig_look().processes, 0);
	rig_end();
}

static unsigned wanted_broken;

static bool enough_broken(const struct switch_count *count)
{
	return count->broken >= wanted_broken;
}

static void switch_run__drops_a_process_that_scribbles_and_serves_the_others(void **state)
{
	struct rogue rogue;
	struct port *one;

	(void)state;
	rig_begin();
	one = open_as(1);
	for (unsigned round = 1; round < 20; round++) {
		assert_int_equal(seteuid(NOBODY), 0);
		rogue = rogue_make(SHARED_SEALS, pair_bytes());
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
		memset(rogue.memory, (int)(round * 77), pair_bytes());
		send_to(one, FAR_NID, 1, (uint8_t)round);
		expect(far, (uint8_t)round);
		wanted_broken = round;
		rig_look_until(enough_broken);
		rogue_end(&rogue, pair_bytes());
	}
	assert_int_equal(rig_look().processes, 1);
	port_close(one);
	rig_end();
}

/* Memory of a process that has ended, in which another one goes on: attest_and_refill() sends a
 * frame for each that the switch takes, so there is always a next one. */
static struct pair *refilled;
static struct rte_mbuf *refill;

static void refill_send(void)
{
	rte_mbuf_refcnt_update(refill, 1);
	assert_int_equal(pair_transmit(refilled, &refill, 1), 1);
}

static enum switch_verdict attest_and_refill(
	const uint8_t *frame, uint32_t length, struct switch_identity *who)
{
	if (who->pid == 5)
		refill_send();
	return attest(frame, length, who);
}

/* C2 of clients.h: processes that have sent nothing for a while are heard beside one that sends all
 * the time. */
static void switch_run__hears_the_idle_beside_the_busy(void **state)
{
	struct port *idle[20];
	struct claim claim;
	struct rogue rogue;

	(void)state;
	attest_by = attest_and_refill;
	rig_begin();
	for (unsigned n = 0; n < RTE_DIM(idle); n++)
		idle[n] = open_user(100 + n, n % 2 ? NOBODY : 0);
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
	claim = honest(idle[0], NID, 1);
	claim.pid = 5;
	claim.uid = NOBODY; /* so none of these leaves */
	refill = claim_make(idle[0], &claim, 1);
	refilled = pair_open(rogue.memory, 0, idle[0]->pool, idle[0]->frame_size, NULL);
	rig_pause(); /* one thread at a time sends into the pair */
	refill_send();
	rig_go_on();
	for (uint8_t round = 0; round < 10; round++) {
		uint64_t until = glue_now(NULL) + 3 * MILLISECOND;

		while (glue_now(NULL) < until)
			nap();
		for (unsigned n = 0; n < RTE_DIM(idle); n++) {
			send_to(idle[n], FAR_NID, 1, (uint8_t)(round + n));
			expect(far, (uint8_t)(round + n));
		}
		/* One that is idle takes part as soon as a frame comes for it. */
		send_to(idle[round], NID, 119, round);
		expect(idle[19], round);
	}
	assert_true(rig_look().dropped[SWITCH_UID] > 0);
	for (unsigned n = 0; n < RTE_DIM(idle); n++)
		port_close(idle[n]);
	rig_pause();
	close(rogue.socket);
	close(rogue.files[0]);
	close(rogue.files[1]);
	rte_pktmbuf_free(refill);
	pair_close(refilled); /* the memory, too: the switch is not to find the last frame */
	rig_end();
	attest_by = attest;
}

static bool one_is_left(const struct switch_count *count)
{
	return count->processes == 1;
}

static void switch_run__lets_go_of_a_process_whose_memory_is_filled_after_its_end(void **state)
{
	struct claim claim;
	struct rogue rogue;
	struct port *one;

	(void)state;
	attest_by = attest_and_refill;
	rig_begin();
	one = open_as(1);
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
	rig_pause();
	claim = honest(one, NID, 1);
	claim.pid = 5;
	claim.uid = NOBODY;
	refill = claim_make(one, &claim, 1);
	refilled = pair_open(rogue.memory, 0, one->pool, one->frame_size, NULL);
	for (unsigned n = 0; n < PAIR_SLOTS; n++)
		refill_send();
	close(rogue.socket);
	rig_go_on();
	rig_look_until(one_is_left);
	assert_true(rig_look().dropped[SWITCH_UID] >= PAIR_SLOTS);
	rte_pktmbuf_free(refill);
	pair_close(refilled); /* the memory, too */
	close(rogue.files[0]);
	close(rogue.files[1]);
	port_close(one);
	rig_end();
	attest_by = attest;
}

/* Sends to a process until somebody answers that it has ended; returns the answer. */

static bool ten_silent(const struct switch_count *count)
{
	return count->refused[CLIENT_SILENT] >= 10;
}

/* Silent connections have an end, and leave others their places. */
static void switch_run__hangs_up_on_the_silent(void **state)
{
	struct port *one;
	int fds[40];
	char byte;

	(void)state;
	rig_begin();
	for (unsigned n = 0; n < RTE_DIM(fds); n++)
		fds[n] = rogue_connect();
	one = open_user(1, NOBODY);
	assert_non_null(one);
	rig_look_until(ten_silent);
	for (unsigned n = 0; n < RTE_DIM(fds); n++) {
		assert_int_equal(recv(fds[n], &byte, 1, 0), 0); /* hung up, within 1 s or so */
		close(fds[n]);
	}
	send_to(one, FAR_NID, 1, 9);
	expect(far, 9);
	port_close(one);
	rig_end();
}

static bool all_strange(const struct switch_count *count)
{
	return count->refused[CLIENT_STRANGE] >= 200;
}

static bool all_in(const struct switch_count *count)
{
	return count->processes == 200;
}

/* Of connections 64 are heard at once, and 4 more in each millisecond. */
static void switch_run__takes_its_time_for_connections(void **state)
{
	const struct client_hello hello = {.magic = CLIENT_MAGIC,
		.version = CLIENT_VERSION,
		.pid = CLIENT_PID_ANY,
		.pair_bytes = pair_bytes()};
	struct rogue rogue;
	uint64_t begun;
	int fds[200];

	(void)state;
	rig_begin_stopped();
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	for (unsigned n = 0; n < RTE_DIM(fds); n++) {
		fds[n] = n == 0 ? rogue.socket : rogue_connect();
		assert_true(parcel_send(fds[n], &hello, sizeof(hello), rogue.files, 2));
	}
	begun = glue_now(NULL);
	rig_go_on();
	rig_look_until(all_in);
	assert_true(glue_now(NULL) - begun >= (200 - 64) / 4 * MILLISECOND);
	for (unsigned n = 1; n < RTE_DIM(fds); n++)
		close(fds[n]);
	rogue_end(&rogue, pair_bytes());
	rig_look_until(no_process);
	rig_end();
}

/* The same of those in vain. */
static void switch_run__takes_its_time_for_connections_in_vain(void **state)
{
	uint64_t begun;
	int fds[200];

	(void)state;
	rig_begin_stopped();
	for (unsigned n = 0; n < RTE_DIM(fds); n++) {
		fds[n] = rogue_connect();
		assert_true(parcel_send(fds[n], "who?", 4, NULL, 0));
	}
	begun = glue_now(NULL);
	rig_go_on();
	rig_look_until(all_strange);
	assert_true(glue_now(NULL) - begun >= (200 - 64) / 4 * MILLISECOND);
	for (unsigned n = 0; n < RTE_DIM(fds); n++)
		close(fds[n]);
	rig_end();
}

static void switch_run__limits_the_processes_of_a_user(void **state)
{
	enum { MOST = 256 };
	struct rogue rogue;
	struct port *other;
	int sockets[MOST];

	(void)state;
	rig_begin();
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	for (unsigned n = 0; n < MOST; n++) {
		assert_int_equal(rogue_hello(&rogue, n + 1), CLIENT_WELCOME);
		sockets[n] = rogue.socket;
		rogue.socket = rogue_connect();
	}
	assert_int_equal(rogue_hello(&rogue, MOST + 1), CLIENT_SHARE);
	other = open_user(MOST + 2, NOBODY);
	assert_non_null(other);
	send_to(other, FAR_NID, 1, 3);
	expect(far, 3);
	for (unsigned n = 0; n < MOST; n++)
		close(sockets[n]);
	close(rogue.socket);
	rogue.socket = rogue_connect();
	assert_int_equal(rogue_hello(&rogue, 1), CLIENT_WELCOME);
	rogue_end(&rogue, pair_bytes());
	port_close(other);
	rig_end();
}

/* C3. */
static void switch_run__leaves_places_for_the_users_who_come_later(void **state)
{
	static const unsigned most[] = {256, 256, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1, 0};
	enum { PLACES = 1024, FIRST_USER = 60000 };
	struct rlimit files, more;
	static int sockets[PLACES];
	struct rogue rogue;
	unsigned count = 0;

	(void)state;
	need_root();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	more = (struct rlimit){RTE_MAX(files.rlim_cur, (rlim_t)8192), files.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &more) != 0)
		skip();
	rig_begin();
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	for (unsigned user = 0; user < RTE_DIM(most); user++) {
		unsigned has = 0;
		int verdict;

		assert_int_equal(seteuid(FIRST_USER + user), 0);
		for (;;) {
			close(rogue.socket);
			rogue.socket = rogue_connect();
			verdict = rogue_hello(&rogue, count + 1);
			if (verdict != CLIENT_WELCOME)
				break;
			sockets[count++] = rogue.socket;
			rogue.socket = -1;
			has++;
		}
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(has, most[user]);
		assert_int_equal(verdict, count == PLACES ? CLIENT_FULL : CLIENT_SHARE);
	}
	while (count > 0)
		close(sockets[--count]);
	rogue_end(&rogue, pair_bytes());
	rig_end();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

static void switch_run__has_as_many_processes_of_a_user_as_its_options_say(void **state)
{
	struct port *one, *two, *other;

	(void)state;
	user_most = 2;
	rig_begin();
	user_most = 0;
	one = open_as(1);
	two = open_as(2);
	log_clear_error();
	assert_null(open_as(3));
	assert_non_null(strstr(log_last_error(), "of one user"));
	other = open_user(3, NOBODY);
	assert_non_null(other);
	port_close(one);
	port_close(two);
	port_close(other);
	rig_end();
}

/* W4, G1. */
static void client_port_receive__calls_a_switch_that_was_started_again(void **state)
{
	struct rte_mbuf *frame;
	struct port *one;
	uint64_t until;

	(void)state;
	rig_begin();
	one = open_as(1);
	for (uint8_t n = 0; n < 5; n++) {
		send_to(one, FAR_NID, 1, n);
		expect(far, n);
		rig_end();
		while (one->operations->link(one))
			assert_int_equal(port_receive(one, &frame, 1), 0);
		send_to(one, FAR_NID, 1, n); /* dropped */
		rig_begin();
		until = glue_now(NULL) + TIMEOUT;
		while (!one->operations->link(one)) {
			assert_int_equal(port_receive(one, &frame, 1), 0);
			assert_true(glue_now(NULL) < until);
		}
	}
	assert_int_equal(port_count(one).missed, 5);
	/* Somebody else has its process id now. */
	rig_end();
	while (one->operations->link(one))
		assert_int_equal(port_receive(one, &frame, 1), 0);
	rig_begin();
	port_close(open_as(2));
	port_close(one);
	rig_end();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, rig_clean)
	const struct CMUnitTest tests[] = {
		TEST(switch_run__closes_later_while_no_thread_can_be_made),
		TEST(switch_run__refuses_memory_that_could_be_taken_away),
		TEST(switch_run__refuses_memory_that_lacks_a_seal),
		TEST(switch_run__keeps_no_descriptor_of_a_message),
		TEST(switch_run__waits_for_no_descriptor_to_be_closed),
		TEST(switch_run__lets_others_in_beside_descriptors_that_linger),
		TEST(switch_run__hears_a_user_of_whom_memory_is_freed),
		TEST(switch_run__sleeps_while_a_message_stays_unread),
		TEST(switch_run__closes_what_brings_no_descriptors_beside_those_that_linger),
		TEST(switch_run__refuses_nonsense),
		TEST(switch_run__drops_a_process_that_scribbles_and_serves_the_others),
		TEST(switch_run__hears_the_idle_beside_the_busy),
		TEST(switch_run__lets_go_of_a_process_whose_memory_is_filled_after_its_end),
		TEST(switch_run__hangs_up_on_the_silent),
		TEST(switch_run__takes_its_time_for_connections),
		TEST(switch_run__takes_its_time_for_connections_in_vain),
		TEST(switch_run__limits_the_processes_of_a_user),
		TEST(switch_run__leaves_places_for_the_users_who_come_later),
		TEST(switch_run__has_as_many_processes_of_a_user_as_its_options_say),
		TEST(client_port_receive__calls_a_switch_that_was_started_again),
	};

	return cmocka_run_group_tests(tests, rig_start, rig_finish);
}
