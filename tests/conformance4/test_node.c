/* SPDX-License-Identifier: BSD-3-Clause */
/* test_node.c - process ids and node ids (4) where processes of a machine meet, and what becomes of
 * operations (8) to those that are not there. The processes are this one, on two ports of a node of
 * its own, and a child.
 *
 * Covers: lib/p4/interface.c, pmd-glue/node.c.
 */
#include "fixture.h"

#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CHILD_PID 4720
#define BITS      5

static char directory[] = "/tmp/conformance4-XXXXXX";
static unsigned char memory[8];
static pid_t child;
static int child_says;

/* A process to which everybody may put, until it is killed. */
static _Noreturn void child_run(int tell)
{
	struct node node = {0};
	ptl_event_t event;
	unsigned which;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	assert_ok(PtlInit());
	assert_ok(PtlNIInit(0, MATCHING, CHILD_PID, NULL, &node.limits, &node.ni));
	assert_ok(PtlEQAlloc(node.ni, 64, &node.eq));
	assert_ok(PtlCTAlloc(node.ni, &node.ct));
	assert_ok(PtlPTAlloc(node.ni, 0, node.eq, PTL_PT_ANY, &node.portal));
	entry_make(&node, memory, sizeof(memory), PTL_ME_OP_PUT, BITS, NULL);
	assert_int_equal(write(tell, "", 1), 1);
	for (;;)
		(void)PtlEQPoll(&node.eq, 1, PTL_TIME_FOREVER, &event, &which);
}

/* Before this process has interfaces. */
static bool child_start(void)
{
	int pipes[2];

	if (pipe(pipes) != 0 || (child = fork()) < 0)
		return false;
	if (child == 0)
		child_run(pipes[1]);
	close(pipes[1]);
	child_says = pipes[0];
	return true;
}

static int node_group_open(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	setenv("XDG_RUNTIME_DIR", directory, 1);
	setenv("PTL_IFACE_NAME", "node:c4;node:c4", 1);
	setenv("PTL_PEER_TIMEOUT", "1000s", 1); /* nobody waits for it */
	unsetenv("PTL_NID");
	(void)state;
	return child_start() && PtlInit() == PTL_OK ? 0 : -1;
}

static int path_remove(const char *path, const struct stat *status, int kind, struct FTW *ftw)
{
	(void)status;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int node_group_close(void **state)
{
	(void)state;
	PtlFini();
	return nftw(directory, path_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static void process_ids__that_another_process_has_are_in_use(void **state)
{
	ptl_handle_ni_t first, second;
	ptl_process_t id;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, 4711, NULL, NULL, &first));
	assert_code(PtlNIInit(1, MATCHING, 4711, NULL, NULL, &second), PTL_PID_IN_USE);
	assert_code(PtlNIInit(1, LISTED_L, 4711, NULL, NULL, &second), PTL_PID_IN_USE);
	assert_ok(PtlNIInit(1, MATCHING, 4712, NULL, NULL, &second));
	assert_ok(PtlGetPhysId(second, &id));
	assert_int_equal(id.phys.pid, 4712);
	assert_ok(PtlNIFini(second));
	assert_ok(PtlNIFini(first));
	assert_ok(PtlNIInit(1, MATCHING, 4711, NULL, NULL, &second));
	assert_ok(PtlNIFini(second));
}

static void processes__of_a_machine_have_one_node_id_and_process_ids_of_their_own(void **state)
{
	ptl_handle_ni_t first, second;
	ptl_process_t one, other;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, NULL, &first));
	assert_ok(PtlNIInit(1, LISTED_L, PTL_PID_ANY, NULL, NULL, &second));
	assert_ok(PtlGetPhysId(first, &one));
	assert_ok(PtlGetPhysId(second, &other));
	assert_int_equal(one.phys.nid, other.phys.nid);
	assert_int_not_equal(one.phys.pid, other.phys.pid);
	assert_int_not_equal(one.phys.pid, PTL_PID_ANY);
	assert_ok(PtlNIFini(second));
	assert_ok(PtlNIFini(first));
}

static void put(const struct node *from, ptl_process_t to)
{
	ptl_handle_md_t md = md_make(from, memory, sizeof(memory), 0);

	assert_ok(PtlPut(md, 0, sizeof(memory), PTL_ACK_REQ, to, 0, BITS, 0, NULL, 0));
}

static void expect_sent(const struct node *from)
{
	assert_int_equal(expect_event(from->eq, PTL_EVENT_SEND).ni_fail_type, PTL_NI_OK);
	assert_int_equal(expect_event(from->eq, PTL_EVENT_ACK).ni_fail_type, PTL_NI_OK);
}

/* And when it is tried again. */
static void expect_gone(const struct node *from, ptl_process_t to)
{
	ptl_handle_md_t md = md_make(from, memory, sizeof(memory), 0);

	for (unsigned n = 0; n < 2; n++) {
		put(from, to);
		assert_int_equal(
			expect_event(from->eq, PTL_EVENT_SEND).ni_fail_type, PTL_NI_UNDELIVERABLE);
	}
	assert_ok(PtlGet(md, 0, sizeof(memory), to, 0, BITS, 0, NULL));
	assert_int_equal(
		expect_event(from->eq, PTL_EVENT_REPLY).ni_fail_type, PTL_NI_UNDELIVERABLE);
	expect_none(from->eq);
}

static void operations__to_a_process_that_has_closed_fail_soon(void **state)
{
	struct node here, there;

	(void)state;
	pair_open(&here, &there, MATCHING);
	entry_make(&there, memory, sizeof(memory), PTL_ME_OP_PUT, BITS, NULL);
	put(&here, there.id);
	expect_sent(&here);
	node_close(&there);
	expect_gone(&here, there.id);
	node_close(&here);
}

static void operations__to_a_process_that_was_killed_fail_soon(void **state)
{
	struct node here;
	ptl_process_t there;
	char byte;

	(void)state;
	node_open(&here, 0, MATCHING);
	there = (ptl_process_t){.phys = {here.id.phys.nid, CHILD_PID}};
	assert_int_equal(read(child_says, &byte, 1), 1);
	put(&here, there);
	expect_sent(&here);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	expect_gone(&here, there);
	node_close(&here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_ids__that_another_process_has_are_in_use),
		cmocka_unit_test(
			processes__of_a_machine_have_one_node_id_and_process_ids_of_their_own),
		cmocka_unit_test(operations__to_a_process_that_has_closed_fail_soon),
		cmocka_unit_test(operations__to_a_process_that_was_killed_fail_soon),
	};

	return cmocka_run_group_tests(tests, node_group_open, node_group_close);
}
