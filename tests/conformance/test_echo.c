/* SPDX-License-Identifier: BSD-3-Clause */
/* test_echo.c - postern_ping(): an echo of another interface, of none, and in an interface's last
 * moments.
 *
 * Covers: lib/p3/ping.c.
 */
#include "fixture.h"

#include <pthread.h>

#include <postern.h>

#define SHORT   UINT64_C(20000000)    /* ns */
#define PATIENT UINT64_C(60000000000) /* the cores may be busy */
#define TRIES   20000                 /* likewise */
#define AWAY    20000                 /* ns that make a host one that was away */

static ptl_process_id_t id_of(const struct node *node)
{
	ptl_process_id_t id;

	assert_ok(PtlGetId(node->ni, &id));
	return id;
}

static void postern_ping__is_answered_by_another_interface(void **state)
{
	struct postern_ping ping;

	(void)state;
	assert_ok(postern_ping(here.ni, id_of(&there), 1000, 500, PATIENT, &ping));
	assert_int_equal(ping.status, POSTERN_PING_ANSWERED);
	assert_int_equal(ping.answer_size, 500);
	assert_int_equal(ping.target_mtu, ping.mtu);
	assert_int_not_equal(ping.incarnation, 0);
	assert_true(ping.round_trip > 0);
	assert_true(ping.residence + ping.network <= ping.round_trip);
}

/* A process that has just answered looks for more: sooner or later no process was away. */
static void postern_ping__says_when_its_times_are_exact(void **state)
{
	struct postern_ping ping = {0};

	(void)state;
	for (unsigned tries = 0; tries < TRIES && ping.exact != 1; tries++) {
		assert_ok(postern_ping(here.ni, id_of(&there), 0, 0, PATIENT, &ping));
		assert_int_equal(ping.status, POSTERN_PING_ANSWERED);
	}
	assert_int_equal(ping.exact, 1);
	assert_true(ping.residence < AWAY);
}

static void postern_ping__is_answered_by_oneself(void **state)
{
	struct postern_ping ping;

	(void)state;
	assert_ok(postern_ping(here.ni, id_of(&here), 0, 0, PATIENT, &ping));
	assert_int_equal(ping.status, POSTERN_PING_ANSWERED);
	assert_int_equal(ping.answer_size, ping.least);
}

static void postern_ping__of_nobody_ends_after_its_timeout(void **state)
{
	const ptl_process_id_t nobody = {77, 77};
	struct postern_ping ping;

	(void)state;
	assert_ok(postern_ping(here.ni, nobody, 0, 0, SHORT, &ping));
	assert_true(ping.status == POSTERN_PING_NO_ADDRESS || ping.status == POSTERN_PING_NO_NODE);
}

static void postern_ping__tells_what_sizes_there_are(void **state)
{
	struct postern_ping ping;

	(void)state;
	assert_ok(postern_ping(here.ni, id_of(&there), UINT32_MAX, 0, PATIENT, &ping));
	assert_int_equal(ping.status, POSTERN_PING_BAD_SIZE);
	assert_true(ping.least >= 64 && ping.least < ping.mtu);
	assert_ok(postern_ping(here.ni, id_of(&there), ping.mtu, ping.mtu, PATIENT, &ping));
	assert_int_equal(ping.status, POSTERN_PING_ANSWERED);
	assert_int_equal(ping.answer_size, ping.mtu);
}

static void postern_ping__refuses_what_it_should(void **state)
{
	const ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_process_id_t other;
	struct postern_ping ping;

	(void)state;
	other = id_of(&there);
	assert_code(postern_ping(0, other, 0, 0, SHORT, &ping), PTL_INV_NI);
	assert_code(postern_ping(PTL_INVALID_HANDLE, other, 0, 0, SHORT, &ping), PTL_INV_NI);
	assert_code(postern_ping(here.ni, any, 0, 0, SHORT, &ping), PTL_INV_PROC);
	assert_code(postern_ping(here.ni, other, 0, 0, SHORT, NULL), PTL_SEGV);
	assert_code(postern_ping(here.ni, other, 0, 0, SHORT, WILD), PTL_SEGV);
}

struct asker {
	ptl_handle_ni_t ni;
	int code;
};

/* Asks nobody, so long that only the interface's end can end it. */
static void *ask_nobody(void *argument)
{
	const ptl_process_id_t nobody = {77, 77};
	struct asker *asker = argument;
	struct postern_ping ping;

	asker->code = postern_ping(asker->ni, nobody, 0, 0, UINT64_MAX, &ping);
	return NULL;
}

static void postern_ping__ends_with_the_interface(void **state)
{
	struct asker asker = {.ni = here.ni, .code = PTL_OK};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, ask_nobody, &asker), 0);
	node_close(&here); /* before, while or after it begins to ask */
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_code(asker.code, PTL_INV_NI);
	node_open(&here, 0, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(postern_ping__is_answered_by_another_interface),
		TEST_BOTH(postern_ping__says_when_its_times_are_exact),
		TEST_HERE(postern_ping__is_answered_by_oneself),
		TEST_HERE(postern_ping__of_nobody_ends_after_its_timeout),
		TEST_BOTH(postern_ping__tells_what_sizes_there_are),
		TEST_BOTH(postern_ping__refuses_what_it_should),
		TEST_HERE(postern_ping__ends_with_the_interface),
	};

	return cmocka_run_group_tests_name("echo", tests, group_open, group_close);
}
