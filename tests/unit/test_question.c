/* SPDX-License-Identifier: BSD-3-Clause */
/* test_question.c - tests of questions on UDP sockets, which go to eight ports of a process.
 * Covers: pmd-glue/udp.c. */
#include "udp_rig.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static bool has_datagram(int fd)
{
	uint8_t bytes[128];

	return recv(fd, bytes, sizeof(bytes), 0) == 100 - (int)FRAME_HEADER;
}

/* I4: the question reaches each of a process's ports in turn, and later the first one always. Some
 * of them coincide with those of others, so that a process with eight different ones is taken. */
static uint32_t pid_distinct(uint32_t pid)
{
	for (;; pid++) {
		bool distinct = true;
		for (uint32_t k = 0; k < CANDIDATES; k++)
			for (uint32_t m = 0; m < k; m++)
				distinct &= candidate_index(range, pid, k) !=
					    candidate_index(range, pid, m);
		if (distinct)
			return pid;
	}
}

static void udp_transmit__asks_each_port_of_a_process(void **state)
{
	uint32_t pid = pid_distinct(5000);
	int fds[CANDIDATES];

	(void)state;
	for (uint32_t k = 0; k < CANDIDATES; k++) {
		fds[k] = socket_candidate(there, pid, k);
		assert_true(fds[k] >= 0);
	}
	for (uint32_t n = 0; n < 3 * CANDIDATES; n++) {
		ask(near, there, pid);
		for (uint32_t k = 0; k < CANDIDATES; k++)
			assert_int_equal(has_datagram(fds[k]),
				n < CANDIDATES
					? k == n
					: k == 0 || k == 1 + (n - CANDIDATES) % (CANDIDATES - 1));
	}
	for (uint32_t k = 0; k < CANDIDATES; k++)
		close(fds[k]);
}

/* Questions and frames of a burst cost one call. */
static void udp_transmit__asks_for_many_at_once(void **state)
{
	struct rte_mbuf *frames[40];
	int fds[20];

	(void)state;
	for (uint32_t n = 0; n < 20; n++) {
		fds[n] = socket_candidate(there, 8000 + n, 0);
		frames[2 * n] = question_make(near, there, 8000 + n);
		frames[2 * n + 1] = frame_named(near, far, 100, (uint8_t)n);
	}
	refuse(0, 0, false);
	assert_int_equal(port_transmit(near, frames, 40), 40);
	assert_int_equal(vectors_made, 1);
	assert_int_equal(messages_sent, 40);
	for (uint32_t n = 0; n < 20; n++) {
		check_frame(port_take(far), near, far, 100, (uint8_t)n);
		if (fds[n] < 0) /* another process's */
			continue;
		assert_true(has_datagram(fds[n]));
		close(fds[n]);
	}
	assert_int_equal(port_count(near).errors, 0);
}

/* Its sender repeats a question; a frame waits. */
static void udp_transmit__loses_questions_that_find_the_socket_full(void **state)
{
	struct rte_mbuf *frames[] = {frame_named(near, far, 100, 1),
		question_make(near, there, 9000), question_make(near, there, 9001),
		frame_named(near, far, 100, 2)};

	(void)state;
	refuse(EAGAIN, 1, false);
	assert_int_equal(port_transmit(near, frames, 4), 0);
	refuse(EAGAIN, 3, false);
	assert_int_equal(port_transmit(near, frames + 1, 3), 2);
	assert_int_equal(port_count(near).errors, 2);
	port_send(near, frames[0]);
	port_send(near, frames[3]);
	check_frame(port_take(far), near, far, 100, 1);
	check_frame(port_take(far), near, far, 100, 2);
}

/* A claim: all ports that a process of the same name may have hear it, but the own one. */
static void udp_transmit__claims_the_name(void **state)
{
	uint32_t pid = pid_distinct(6000);
	struct port *port = udp_open(here_name, 0, 0, pid, false);
	int fds[CANDIDATES];

	(void)state;
	assert_non_null(port);
	for (uint32_t k = 1; k < CANDIDATES; k++) {
		fds[k] = socket_candidate(here, pid, k);
		assert_true(fds[k] >= 0);
	}
	ask(port, here, pid);
	for (uint32_t k = 1; k < CANDIDATES; k++) {
		assert_true(has_datagram(fds[k]));
		close(fds[k]);
	}
	check_nothing(port);
	port_close(port);
}

/* A broadcast that names nobody would be for all hosts, which are not known. */
static void udp_transmit__sends_no_broadcast(void **state)
{
	(void)state;
	ask(near, PORT_ANY_NODE, FAR_PID);
	assert_int_equal(port_count(near).errors, 1);
	check_nothing(far);
}

static void udp_open__takes_the_first_free_port(void **state)
{
	uint32_t pid = pid_distinct(7000);
	int fds[CANDIDATES];
	struct port *port;

	(void)state;
	for (uint32_t k = 0; k < CANDIDATES; k++) {
		port = udp_open(here_name, 0, 0, pid, false);
		assert_non_null(port);
		assert_int_equal(candidate_read(port->address), candidate_index(range, pid, k));
		exchange(port, far, 100, (uint8_t)k);
		exchange(far, port, 100, (uint8_t)k);
		port_close(port);
		fds[k] = socket_candidate(here, pid, k);
		assert_true(fds[k] >= 0);
		glue_pid_try(true);
		assert_null(udp_open(here_name, 0, 0, pid, true));
		assert_true(glue_pid_is_taken());
		glue_pid_try(false);
	}
	assert_null(udp_open(here_name, 0, 0, pid, false)); /* all eight are taken */
	for (uint32_t k = 0; k < CANDIDATES; k++)
		close(fds[k]);
	port = udp_open(here_name, 0, 0, pid, false);
	assert_non_null(port);
	port_close(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(udp_transmit__asks_each_port_of_a_process),
		CASE(udp_transmit__asks_for_many_at_once),
		CASE(udp_transmit__loses_questions_that_find_the_socket_full),
		CASE(udp_transmit__claims_the_name),
		CASE(udp_transmit__sends_no_broadcast),
		CASE(udp_open__takes_the_first_free_port),
	};

	return cmocka_run_group_tests(tests, rig_begin, NULL);
}
