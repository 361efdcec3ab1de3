/* SPDX-License-Identifier: BSD-3-Clause */
/* test_amo.c - atomic memory operations: each on each type, against an oracle that reckons in the
 * widest types; elements that lie anywhere; and together with the processor's own. */
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

#include <base/random.h>
#include <engine/amo.h>

#include "scatter.h"

#define VALUES 12

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_next(&random_state) % n);
}

/* --- the oracle --- */

enum class { SIGNED, UNSIGNED, REAL, COMPLEX };

static const struct {
	enum class class;
	unsigned size;
} types[AMO_TYPES] = {
	[AMO_INT8] = {SIGNED, 1},
	[AMO_UINT8] = {UNSIGNED, 1},
	[AMO_INT16] = {SIGNED, 2},
	[AMO_UINT16] = {UNSIGNED, 2},
	[AMO_INT32] = {SIGNED, 4},
	[AMO_UINT32] = {UNSIGNED, 4},
	[AMO_FLOAT] = {REAL, 4},
	[AMO_INT64] = {SIGNED, 8},
	[AMO_UINT64] = {UNSIGNED, 8},
	[AMO_DOUBLE] = {REAL, 8},
	[AMO_FLOAT_COMPLEX] = {COMPLEX, 8},
	[AMO_DOUBLE_COMPLEX] = {COMPLEX, 16},
	[AMO_LONG_DOUBLE] = {REAL, 16},
	[AMO_LONG_DOUBLE_COMPLEX] = {COMPLEX, 32},
};

/* An integer of so many bytes, in the low half of the wide word. */
static __int128 integer_read(const uint8_t *bytes, enum class class, unsigned size)
{
	unsigned __int128 value = 0;

	for (unsigned i = size; i-- > 0;)
		value = value << 8 | bytes[i];
	if (class == SIGNED && bytes[size - 1] >= 0x80)
		return (__int128)value - ((__int128)1 << 8 * size);
	return (__int128)value;
}

static void integer_write(uint8_t *bytes, unsigned size, unsigned __int128 value)
{
	for (unsigned i = 0; i < size; i++, value >>= 8)
		bytes[i] = (uint8_t)value;
}

static bool relation(unsigned operation, bool less, bool equal)
{
	switch (operation) {
	case AMO_CSWAP:
		return equal;
	case AMO_CSWAP_NE:
		return !equal;
	case AMO_CSWAP_LE:
		return less || equal;
	case AMO_CSWAP_LT:
		return less;
	case AMO_CSWAP_GE:
		return !less;
	default:
		return !less && !equal;
	}
}

static void integer_oracle(unsigned operation, unsigned type, uint8_t *target,
	const uint8_t *source, const uint8_t *operand)
{
	unsigned size = types[type].size;
	__int128 t = integer_read(target, types[type].class, size);
	__int128 s = integer_read(source, types[type].class, size);
	__int128 o = integer_read(operand, types[type].class, size);
	unsigned __int128 result;

	switch (operation) {
	case AMO_MIN:
		result = (unsigned __int128)(s < t ? s : t);
		break;
	case AMO_MAX:
		result = (unsigned __int128)(s < t ? t : s);
		break;
	case AMO_SUM:
		result = (unsigned __int128)t + (unsigned __int128)s;
		break;
	case AMO_PROD:
		result = (unsigned __int128)t * (unsigned __int128)s;
		break;
	case AMO_LOR:
		result = t != 0 || s != 0;
		break;
	case AMO_LAND:
		result = t != 0 && s != 0;
		break;
	case AMO_LXOR:
		result = (t != 0) ^ (s != 0);
		break;
	case AMO_SWAP:
		result = (unsigned __int128)s;
		break;
	case AMO_BOR:
	case AMO_BAND:
	case AMO_BXOR:
	case AMO_MSWAP:
		for (unsigned i = 0; i < size; i++)
			target[i] = operation == AMO_BOR    ? target[i] | source[i]
				    : operation == AMO_BAND ? target[i] & source[i]
				    : operation == AMO_BXOR
					    ? target[i] ^ source[i]
					    : (source[i] & operand[i]) |
						      (target[i] & (uint8_t)~operand[i]);
		return;
	default:
		result = (unsigned __int128)(relation(operation, o < t, o == t) ? s : t);
	}
	integer_write(target, size, result);
}

static long double real_read(const uint8_t *bytes, unsigned size)
{
	long double value = 0;
	double twofold;
	float single;

	if (size == sizeof(single)) {
		memcpy(&single, bytes, sizeof(single));
		return single;
	}
	if (size == sizeof(twofold)) {
		memcpy(&twofold, bytes, sizeof(twofold));
		return twofold;
	}
	memcpy(&value, bytes, sizeof(value));
	return value;
}

static void real_write(uint8_t *bytes, unsigned size, long double value)
{
	float single = (float)value;
	double twofold = (double)value;

	if (size == sizeof(single))
		memcpy(bytes, &single, sizeof(single));
	else if (size == sizeof(twofold))
		memcpy(bytes, &twofold, sizeof(twofold));
	else
		memcpy(bytes, &value, sizeof(value));
}

/* Values are chosen so that sums and products are exact: rounding is the compiler's business. */
static void real_oracle(unsigned operation, unsigned type, uint8_t *target, const uint8_t *source,
	const uint8_t *operand)
{
	unsigned size = types[type].size;
	long double t = real_read(target, size);
	long double s = real_read(source, size);
	long double o = real_read(operand, size);

	if (operation == AMO_MIN)
		t = s < t ? s : t;
	else if (operation == AMO_MAX)
		t = s > t ? s : t;
	else if (operation == AMO_SUM)
		t = t + s;
	else if (operation == AMO_PROD)
		t = t * s;
	else if (operation == AMO_SWAP)
		t = s;
	else if (relation(operation, o < t, o == t))
		t = s;
	real_write(target, size, t);
}

static void complex_oracle(unsigned operation, unsigned type, uint8_t *target,
	const uint8_t *source, const uint8_t *operand)
{
	unsigned half = types[type].size / 2;
	long double a = real_read(target, half), b = real_read(target + half, half);
	long double c = real_read(source, half), d = real_read(source + half, half);
	bool equal = real_read(operand, half) == a && real_read(operand + half, half) == b;

	if (operation == AMO_SUM) {
		real_write(target, half, a + c);
		real_write(target + half, half, b + d);
	} else if (operation == AMO_PROD) {
		real_write(target, half, a * c - b * d);
		real_write(target + half, half, a * d + b * c);
	} else if (operation == AMO_SWAP || equal == (operation == AMO_CSWAP)) {
		real_write(target, half, c);
		real_write(target + half, half, d);
	}
}

static void oracle(unsigned operation, unsigned type, uint8_t *target, const uint8_t *source,
	const uint8_t *operand)
{
	if (types[type].class == REAL)
		real_oracle(operation, type, target, source, operand);
	else if (types[type].class == COMPLEX)
		complex_oracle(operation, type, target, source, operand);
	else
		integer_oracle(operation, type, target, source, operand);
}

/* Which pairs there are, from the words of Portals 4's table. */
static bool oracle_is_valid(unsigned operation, unsigned type)
{
	switch (operation) {
	case AMO_SUM:
	case AMO_PROD:
	case AMO_SWAP:
	case AMO_CSWAP:
	case AMO_CSWAP_NE:
		return true;
	case AMO_MIN:
	case AMO_MAX:
	case AMO_CSWAP_LE:
	case AMO_CSWAP_LT:
	case AMO_CSWAP_GE:
	case AMO_CSWAP_GT:
		return types[type].class != COMPLEX;
	default:
		return types[type].class == SIGNED || types[type].class == UNSIGNED;
	}
}

/* --- values --- */

static void real_value(uint8_t *bytes, unsigned size, unsigned which)
{
	static const long double values[VALUES] = {
		0, 1, -1, 2, -3, 0.5L, 1000, -0.25L, 7, -0.0L, 12, 3};

	real_write(bytes, size, values[which]);
}

/* The last ones are random. */
static void integer_value(uint8_t *bytes, unsigned size, unsigned which)
{
	const unsigned __int128 top = (unsigned __int128)1 << (8 * size - 1);
	const unsigned __int128 values[] = {
		0, 1, 2, 3, top, top - 1, top + 1, 2 * top - 1, 2 * top - 2};

	integer_write(bytes, size,
		which < sizeof(values) / sizeof(values[0]) ? values[which]
							   : random_next(&random_state));
}

/* The which-th interesting value of a type. */
static void value_make(uint8_t *bytes, unsigned type, unsigned which)
{
	unsigned size = types[type].size;

	if (types[type].class == REAL) {
		real_value(bytes, size, which);
	} else if (types[type].class == COMPLEX) {
		real_value(bytes, size / 2, which);
		real_value(bytes + size / 2, size / 2, (which * 5 + 3) % VALUES);
	} else {
		integer_value(bytes, size, which);
	}
}

static bool value_is(const uint8_t *a, const uint8_t *b, unsigned type)
{
	unsigned size = types[type].size;

	if (types[type].class == SIGNED || types[type].class == UNSIGNED)
		return memcmp(a, b, size) == 0;
	if (types[type].class == REAL)
		return real_read(a, size) == real_read(b, size);
	return real_read(a, size / 2) == real_read(b, size / 2) &&
	       real_read(a + size / 2, size / 2) == real_read(b + size / 2, size / 2);
}

/* --- tests --- */

static void amo_is_valid__by_the_table(void **state)
{
	(void)state;
	for (unsigned operation = 0; operation < AMO_OPERATIONS; operation++)
		for (unsigned type = 0; type < AMO_TYPES; type++)
			assert_int_equal(
				amo_is_valid(operation, type), oracle_is_valid(operation, type));
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
		assert_int_equal(amo_size(type), types[type].size);
	assert_int_equal(amo_size(AMO_TYPES), 0);
	assert_int_equal(amo_size(UINT32_MAX), 0);
}

/* One element at such an address, in one piece or cut at `cut`. */
static void check_one(unsigned operation, unsigned type, unsigned target, unsigned source,
	unsigned operand, unsigned shift, unsigned cut, bool fetch)
{
	static _Alignas(64) uint8_t memory[128];
	unsigned size = types[type].size;
	uint8_t before[AMO_SIZE_MAX], expected[AMO_SIZE_MAX], old[AMO_SIZE_MAX + 2];
	uint8_t sources[AMO_SIZE_MAX + 1], operands[AMO_SIZE_MAX + 1], result[AMO_SIZE_MAX];
	struct map_vector *vector = malloc(map_vector_size(2));
	struct map map = map_of_piece(memory + shift, size);
	unsigned gap = cut > 0 ? 17 : 0; /* bytes between the pieces */

	assert_non_null(vector);
	memset(memory, 0xa5, sizeof(memory));
	memset(before, 0, sizeof(before));
	memset(old, 0x5a, sizeof(old));
	value_make(before, type, target);
	value_make(sources + 1, type, source);
	value_make(operands + 1, type, operand);
	memcpy(expected, before, sizeof(before));
	oracle(operation, type, expected, sources + 1, operands + 1);
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
	assert_true(value_is(result, expected, type));
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
				if (oracle_is_valid(operation, type))
					check_one(operation, type, i % VALUES, i / VALUES % VALUES,
						i / VALUES / VALUES, 0, 0, i % 3 != 0);
}

static void amo_apply__works_anywhere(void **state)
{
	(void)state;
	for (unsigned operation = 0; operation < AMO_OPERATIONS; operation++)
		for (unsigned type = 0; type < AMO_TYPES; type++)
			for (unsigned i = 0; i < 200; i++)
				if (oracle_is_valid(operation, type))
					check_one(operation, type, random_below(VALUES),
						random_below(VALUES), random_below(VALUES),
						random_below(16), random_below(types[type].size),
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
