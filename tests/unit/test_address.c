/* SPDX-License-Identifier: BSD-3-Clause */
/* test_address.c - tests lib/host/address.c: which addresses are certainly bad.
 *
 * Covers: lib/host/address.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <host/address.h>

static bool word_is_bad(uintptr_t address)
{
	return address_is_bad((void *)address, 8, 8);
}

static void address_is_bad__for_null_the_first_page_and_the_kernels_half(void **state)
{
	(void)state;
	assert_true(word_is_bad(0));
	assert_true(word_is_bad(8));
	assert_true(word_is_bad(4088));
	assert_true(word_is_bad((uintptr_t)1 << 62));
	assert_true(word_is_bad(UINTPTR_MAX - 7));
	assert_true(word_is_bad((uintptr_t)0xdeadbeefdeadbee8));
}

static void address_is_bad__when_misaligned(void **state)
{
	static uint64_t words[2];

	(void)state;
	assert_false(word_is_bad((uintptr_t)words));
	assert_true(word_is_bad((uintptr_t)words + 1));
}

static void address_is_bad__when_unmapped(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(munmap(pages + page, page), 0);
	assert_false(word_is_bad((uintptr_t)pages));
	assert_true(word_is_bad((uintptr_t)(pages + page)));
	assert_true(address_is_bad(pages + page - 8, 16, 8)); /* the second half */
	munmap(pages, page);
}

static void address_is_bad__not_for_stack_heap_and_static_data(void **state)
{
	static uint64_t fixed;
	uint64_t local;
	uint64_t *heap = malloc(sizeof(*heap));

	(void)state;
	assert_false(ADDRESS_IS_BAD(&fixed));
	assert_false(ADDRESS_IS_BAD(&local));
	assert_false(ADDRESS_IS_BAD(heap));
	free(heap);
}

static void address_range_is_bad__never_when_empty(void **state)
{
	(void)state;
	assert_false(address_range_is_bad(0, 0));
	assert_false(address_range_is_bad(UINT64_MAX, 0));
}

static void address_range_is_bad__when_null_wrapping_too_long_or_unmapped(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t start = (uintptr_t)pages;

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_true(address_range_is_bad(0, 1));
	assert_true(address_range_is_bad(100, 1));
	assert_true(address_range_is_bad(start, UINT64_MAX));
	assert_true(address_range_is_bad(start, UINT64_MAX - start + 1));
	assert_true(address_range_is_bad(start, (UINT64_C(1) << 40) + 1));
	assert_false(address_range_is_bad(start, 3 * page));
	assert_false(address_range_is_bad(start + 1, 3 * page - 1));
	assert_int_equal(munmap(pages + page, page), 0); /* a hole */
	assert_true(address_range_is_bad(start, 3 * page));
	assert_false(address_range_is_bad(start, page));
	munmap(pages, page);
	munmap(pages + 2 * page, page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_is_bad__for_null_the_first_page_and_the_kernels_half),
		cmocka_unit_test(address_is_bad__when_misaligned),
		cmocka_unit_test(address_is_bad__when_unmapped),
		cmocka_unit_test(address_is_bad__not_for_stack_heap_and_static_data),
		cmocka_unit_test(address_range_is_bad__never_when_empty),
		cmocka_unit_test(address_range_is_bad__when_null_wrapping_too_long_or_unmapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
