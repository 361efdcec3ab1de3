/* SPDX-License-Identifier: BSD-3-Clause */
/* test_handle.c - what the bits of a handle mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <base/handle.h>
#include <portals.h>

static void handle_make__gives_back_every_part(void **state)
{
	static const uint32_t generations[] = {0, 1, 0x80000000, UINT32_MAX};
	static const uint32_t indices[] = {0, 1, HANDLE_INDEX_MAX / 2, HANDLE_INDEX_MAX};

	(void)state;
	for (int kind = HANDLE_INTERFACE; kind <= HANDLE_ENTRY; kind++)
		for (uint32_t interface = 0; interface < HANDLE_INTERFACES; interface++)
			for (unsigned i = 0; i < 16; i++) {
				uint64_t handle = handle_make((enum handle_kind)kind, interface,
					indices[i % 4], generations[i / 4]);

				assert_int_equal(handle_kind(handle), kind);
				assert_int_equal(handle_interface(handle), interface);
				assert_int_equal(handle_index(handle), indices[i % 4]);
				assert_int_equal(handle_generation(handle), generations[i / 4]);
			}
}

/* I1 */
static void handle_make__never_gives_a_null_or_invalid_handle(void **state)
{
	(void)state;
	assert_int_equal(handle_kind(PTL_EQ_NONE), 0);
	assert_int_equal(handle_kind(PTL_MD_NONE), 0);
	assert_int_not_equal(handle_make(HANDLE_INTERFACE, 0, 0, 0), PTL_EQ_NONE);
	assert_int_not_equal(
		handle_make(HANDLE_ENTRY, HANDLE_INTERFACES - 1, HANDLE_INDEX_MAX, UINT32_MAX),
		PTL_INVALID_HANDLE);
	assert_true(handle_kind(PTL_INVALID_HANDLE) > HANDLE_ENTRY);
}

static void handle_make__differs_in_kind_interface_index_and_generation(void **state)
{
	uint64_t handle = handle_make(HANDLE_QUEUE, 1, 2, 3);

	(void)state;
	assert_int_not_equal(handle, handle_make(HANDLE_REGION, 1, 2, 3));
	assert_int_not_equal(handle, handle_make(HANDLE_QUEUE, 0, 2, 3));
	assert_int_not_equal(handle, handle_make(HANDLE_QUEUE, 1, 3, 3));
	assert_int_not_equal(handle, handle_make(HANDLE_QUEUE, 1, 2, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handle_make__gives_back_every_part),
		cmocka_unit_test(handle_make__never_gives_a_null_or_invalid_handle),
		cmocka_unit_test(handle_make__differs_in_kind_interface_index_and_generation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
