/* SPDX-License-Identifier: BSD-3-Clause */
/* test_amo.c - atomic memory operations: each on each type, against the model of
 * elements.h; elements that lie anywhere; and together with the processor's own. */
#include <complex.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include <base/guard.h>
#include <base/random.h>
#include <elements.h>

#include "scatter.h"

#define VALUES ELEMENT_VALUES

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_next(&random_state) % n);
}

/* --- tests --- */

static void amo_is_valid__by_the_table(void **state)
{
	(void)state;
	for (unsigned operation = 0; operation < AMO_OPERATIONS; operation++)
		for (unsigned type = 0; type < AMO_TYPES; type++)
			assert_int_equal(
				amo_is_valid(operation, type), element_valid(operation, type));
	for (unsigned i = 0; i < 300; i++) {
		assert_false(amo_is_valid(AMO_OPERATIONS + i, AMO_INT8));
		assert_false(amo_is_valid(AMO_SUM, AMO_TYPES + i));
	}
	assert_false(amo_is_valid(UINT32_MAX, UINT32_MAX));
}

static void amo_size__is_that_of_the_type(void **state)
{
	(void)state;
	for (unsigned type = 0; type < AMO_TYPES; type++)
		assert_int_equal(amo_size(type), element_size(type));
	assert_int_equal(amo_size(AMO_TYPES), 0);
	assert_int_equal(amo_size(UINT32_MAX), 0);
}

/* One element at such an address, in one piece or cut at `cut`. */
static void check_one(unsigned operation, unsigned type, unsigned target, unsigned source,
	unsigned operand, unsigned shift, unsigned cut, bool fetch)
{
	static _Alignas(64) uint8_t memory[128];
	unsigned size = element_size(type);
	uint8_t before[AMO_SIZE_MAX], expected[AMO_SIZE_MAX], old[AMO_SIZE_MAX + 2];
	uint8_t sources[AMO_SIZE_MAX + 1], operands[AMO_SIZE_MAX + 1], result[AMO_SIZE_MAX];
	struct map_vector *vector = malloc(map_vector_size(2));
	struct map map = map_of_piece(memory + shift, size);
	unsigned gap = cut > 0 ? 17 : 0; /* bytes between the pieces */

	assert_non_null(vector);
	memset(memory, 0xa5, sizeof(memory));
	memset(before, 0, sizeof(before));
	memset(old, 0x5a, sizeof(old));
	element_make(before, type, target, random_next(&random_state));
	element_make(sources + 1, type, source, random_next(&random_state));
	element_make(operands + 1, type, operand, random_next(&random_state));
	memcpy(expected, before, sizeof(before));
	element_change(operation, type, expected, sources + 1, operands + 1);
	if (cut > 0) {
		vector->count = 0;
		map_vector_add(vector, memory + shift, cut);
		map_vector_add(vector, memory + shift + cut + gap, size - cut);
		map = map_of_vector(vector);
	}
	map_copy_in(&map, 0, before, size);
	amo_apply(&map, 0, operation, type, sources + 1,
		amo_has_operand(operation) ? operands + 1 : NULL, fetch ? old + 1 : NULL, size);
	for (unsigned i = 0; i < size; i++)
		result[i] = memory[shift + i + (i >= cut ? gap : 0)];
	assert_true(element_is(result, expected, type));
	if (fetch)
		assert_memory_equal(old + 1, before, size);
	assert_int_equal(old[0], 0x5a);
	assert_int_equal(old[1 + size], 0x5a);
	for (unsigned i = 0; i < sizeof(memory); i++)
		if (i < shift || (i >= shift + cut && i < shift + cut + gap) ||
			i >= shift + size + gap)
			assert_int_equal(memory[i], 0xa5);
	free(vector);
}

static void amo_apply__does_as_the_oracle(void **state)
{
	(void)state;
	for (unsigned operation = 0; operation < AMO_OPERATIONS; operation++)
		for (unsigned type = 0; type < AMO_TYPES; type++)
			for (unsigned i = 0; i < VALUES * VALUES * VALUES; i++)
				if (element_valid(operation, type))
					check_one(operation, type, i % VALUES, i / VALUES % VALUES,
						i / VALUES / VALUES, 0, 0, i % 3 != 0);
}

static void amo_apply__works_anywhere(void **state)
{
	(void)state;
	for (unsigned operation = 0; operation < AMO_OPERATIONS; operation++)
		for (unsigned type = 0; type < AMO_TYPES; type++)
			for (unsigned i = 0; i < 200; i++)
				if (element_valid(operation, type))
					check_one(operation, type, random_below(VALUES),
						random_below(VALUES), random_below(VALUES),
						random_below(16), random_below(element_size(type)),
						true);
}

static void amo_apply__takes_all_whole_elements(void **state)
{
	static _Alignas(8) uint16_t memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const uint16_t sources[] = {10, 20, 30, 40};
	const uint16_t expected[] = {1, 12, 23, 34, 5, 6, 7, 8};
	uint16_t old[4] = {0, 0, 0, 77};
	const struct map map = map_of_piece(memory, sizeof(memory));

	(void)state;
	amo_apply(&map, 2, AMO_SUM, AMO_UINT16, sources, NULL, old, 7);
	assert_memory_equal(memory, expected, sizeof(memory));
	assert_int_equal(old[0], 2);
	assert_int_equal(old[2], 4);
	assert_int_equal(old[3], 77);
	amo_apply(&map, 0, AMO_SUM, AMO_UINT16, sources, NULL, NULL, 1);
	assert_memory_equal(memory, expected, sizeof(memory));
	/* source and old may be the same memory */
	memcpy(old, sources, sizeof(old));
	amo_apply(&map, 0, AMO_SWAP, AMO_UINT16, old, NULL, old, sizeof(old));
	assert_memory_equal(memory, sources, sizeof(sources));
	assert_memory_equal(old, expected, sizeof(old));
}

static void amo_apply__compares_with_nan_as_c_does(void **state)
{
	static double memory;
	const struct map map = map_of_piece(&memory, sizeof(memory));
	const double nan_value = (double)NAN;
	const double one = 1;

	(void)state;
	memory = 5;
	amo_apply(&map, 0, AMO_MIN, AMO_DOUBLE, &nan_value, NULL, NULL, 8);
	amo_apply(&map, 0, AMO_MAX, AMO_DOUBLE, &nan_value, NULL, NULL, 8);
	amo_apply(&map, 0, AMO_CSWAP, AMO_DOUBLE, &one, &nan_value, NULL, 8);
	amo_apply(&map, 0, AMO_CSWAP_LE, AMO_DOUBLE, &one, &nan_value, NULL, 8);
	assert_true(memory == 5);
	amo_apply(&map, 0, AMO_CSWAP_NE, AMO_DOUBLE, &nan_value, &nan_value, NULL, 8);
	assert_true(memory != memory);
	amo_apply(&map, 0, AMO_MIN, AMO_DOUBLE, &one, NULL, NULL, 8);
	assert_true(memory != memory);
}

/* A long double has bytes that are no part of its value: a SWAP brings none of this process's. */
static void amo_apply__leaves_bytes_that_are_no_value(void **state)
{
	static long double memory;
	const struct map map = map_of_piece(&memory, sizeof(memory));
	long double source = 3;
	uint8_t bytes[sizeof(memory)];

	(void)state;
	memset(&memory, 0x77, sizeof(memory));
	memset(&source, 0, sizeof(source));
	source = 3;
	amo_apply(&map, 0, AMO_SWAP, AMO_LONG_DOUBLE, &source, NULL, NULL, sizeof(memory));
	assert_true(memory == 3);
	memcpy(bytes, &memory, sizeof(bytes));
	if (LDBL_MANT_DIG == 64)
		for (unsigned i = 10; i < sizeof(bytes); i++)
			assert_int_equal(bytes[i], 0x77);
}

/* A4. A trap would end the program. */
static void amo_apply__neither_traps_nor_leaves_flags(void **state)
{
	static union {
		float real;
		double twice;
		long double wide;
		double pair[2]; /* a double complex: C11 6.2.5, 13 */
	} memory;
	const struct map map = map_of_piece(&memory, sizeof(memory));
	const float single = FLT_MAX;
	const double most = DBL_MAX, nan_value = NAN, signalling = __builtin_nans("");
	const long double wide = LDBL_MAX;
	const double pair[2] = {DBL_MAX, DBL_MAX};

	(void)state;
	feclearexcept(FE_ALL_EXCEPT);
	feenableexcept(FE_ALL_EXCEPT);
	memory.real = single;
	amo_apply(&map, 0, AMO_SUM, AMO_FLOAT, &single, NULL, NULL, sizeof(single));
	memory.twice = most;
	amo_apply(&map, 0, AMO_MAX, AMO_DOUBLE, &nan_value, NULL, NULL, sizeof(most));
	amo_apply(&map, 0, AMO_SUM, AMO_DOUBLE, &signalling, NULL, NULL, sizeof(most));
	memory.wide = wide;
	amo_apply(&map, 0, AMO_PROD, AMO_LONG_DOUBLE, &wide, NULL, NULL, sizeof(wide));
	memory.pair[0] = memory.pair[1] = DBL_MAX;
	amo_apply(&map, 0, AMO_PROD, AMO_DOUBLE_COMPLEX, pair, NULL, NULL, sizeof(pair));
	fedisableexcept(FE_ALL_EXCEPT);
	assert_int_equal(fetestexcept(FE_ALL_EXCEPT), 0);
}

/* A1: two threads, one by amo_apply(), the other by the processor's own. */
#define TIMES 200000

static _Alignas(8) uint64_t shared[4];

static void *shared_add(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < TIMES; i++) {
		__atomic_fetch_add(&shared[0], 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add((uint32_t *)(void *)&shared[1], 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add((uint16_t *)(void *)&shared[2], 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add((uint8_t *)(void *)&shared[3], 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void amo_apply__is_atomic_beside_the_processors_own(void **state)
{
	static const uint64_t one = 1;
	const struct map map = map_of_piece(shared, sizeof(shared));
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, shared_add, NULL), 0);
	for (unsigned i = 0; i < TIMES; i++) {
		amo_apply(&map, 0, AMO_SUM, AMO_INT64, &one, NULL, NULL, 8);
		amo_apply(&map, 8, AMO_SUM, AMO_UINT32, &one, NULL, NULL, 4);
		amo_apply(&map, 16, AMO_SUM, AMO_INT16, &one, NULL, NULL, 2);
		amo_apply(&map, 24, AMO_SUM, AMO_UINT8, &one, NULL, NULL, 1);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(shared[0], 2 * TIMES);
	assert_int_equal(shared[1], 2 * TIMES);
	assert_int_equal(shared[2], (uint16_t)(2 * TIMES));
	assert_int_equal(shared[3], (uint8_t)(2 * TIMES));
}

#ifdef __x86_64__
/* The first element of two is there, and changed; the second one is not, in part or at all. */
static void amo_apply__ends_where_memory_ends(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint8_t sources[2 * AMO_SIZE_MAX] = {1};
	uint8_t old[2 * AMO_SIZE_MAX];

	(void)state;
	assert_true(memory != MAP_FAILED);
	assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
	guard_start();
	for (unsigned type = 0; type < AMO_TYPES; type++)
		for (unsigned there = 0; there < amo_size(type); there++) {
			const unsigned size = amo_size(type);
			const struct map map = {
				.start = (uintptr_t)memory + page - size - there,
				.vector = MAP_MEMORY,
				.length = 2 * size,
			};

			memset(memory, 0, page);
			assert_false(
				amo_apply(&map, 0, AMO_SUM, type, sources, NULL, old, 2 * size));
			assert_memory_equal((void *)(uintptr_t)map.start, sources, size);
			assert_true(amo_apply(&map, 0, AMO_SUM, type, sources, NULL, old, size));
		}
	munmap(memory, 2 * page);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amo_is_valid__by_the_table),
		cmocka_unit_test(amo_size__is_that_of_the_type),
		cmocka_unit_test(amo_apply__does_as_the_oracle),
		cmocka_unit_test(amo_apply__works_anywhere),
		cmocka_unit_test(amo_apply__takes_all_whole_elements),
		cmocka_unit_test(amo_apply__compares_with_nan_as_c_does),
		cmocka_unit_test(amo_apply__leaves_bytes_that_are_no_value),
		cmocka_unit_test(amo_apply__neither_traps_nor_leaves_flags),
		cmocka_unit_test(amo_apply__is_atomic_beside_the_processors_own),
#ifdef __x86_64__
		cmocka_unit_test(amo_apply__ends_where_memory_ends),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
