/* SPDX-License-Identifier: BSD-3-Clause */
/* test_node.c - process ids and node ids (4) where processes of a machine meet. Both processes are
 * this one, on two ports of a node of its own.
 *
 * Covers: lib/p4/interface.c.
 */
#include "fixture.h"

#include <ftw.h>

static char directory[] = "/tmp/conformance4-XXXXXX";

static int node_group_open(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	setenv("XDG_RUNTIME_DIR", directory, 1);
	setenv("PTL_IFACE_NAME", "node:c4;node:c4", 1);
	unsetenv("PTL_NID");
	(void)state;
	return PtlInit() == PTL_OK ? 0 : -1;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_ids__that_another_process_has_are_in_use),
		cmocka_unit_test(
			processes__of_a_machine_have_one_node_id_and_process_ids_of_their_own),
	};

	return cmocka_run_group_tests(tests, node_group_open, node_group_close);
}
