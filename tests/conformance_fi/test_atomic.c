/* SPDX-License-Identifier: BSD-3-Clause */
/* test_atomic.c - atomic operations: fi_atomic(3). Each operation on each type is compared with
 * what C does.
 * Covers: lib/fi/atomic.c. */
#include "fixture.h"

#include <complex.h>
#include <sys/mman.h>
#include <time.h>

#define HANG    60 /* s */
#define KEY     7
#define BYTES   1024
#define EDGE    64 /* on both sides of the region */
#define ELEMENT 32 /* bytes at most */
#define UNUSED  0x5a

static _Alignas(64) uint8_t target[BYTES + 2 * EDGE], mirror[BYTES + 2 * EDGE];
static _Alignas(64) uint8_t source[BYTES], operand[BYTES], result[BYTES], before[BYTES];
static struct fid_mr *region;
static int context;

/* --- what C does */

/* clang-format off */
#define EQUAL                                                                                      \
	case FI_ATOMIC_READ: break;                                                                \
	case FI_ATOMIC_WRITE: t = s; break;                                                        \
	case FI_CSWAP: if (o == t) t = s; break;                                                   \
	case FI_CSWAP_NE: if (o != t) t = s; break;
#define LOGIC                                                                                      \
	case FI_LOR: t = t || s; break;                                                            \
	case FI_LAND: t = t && s; break;                                                           \
	case FI_LXOR: t = (t && !s) || (!t && s); break;
#define NUMBERS                                                                                    \
	case FI_SUM: t = t + s; break;                                                             \
	case FI_PROD: t = t * s; break;
#define ORDERED                                                                                    \
	case FI_MIN: if (s < t) t = s; break;                                                      \
	case FI_MAX: if (s > t) t = s; break;                                                      \
	case FI_CSWAP_LE: if (o <= t) t = s; break;                                                \
	case FI_CSWAP_LT: if (o < t) t = s; break;                                                 \
	case FI_CSWAP_GE: if (o >= t) t = s; break;                                                \
	case FI_CSWAP_GT: if (o > t) t = s; break;
#define BITS                                                                                       \
	case FI_BOR: t = t | s; break;                                                             \
	case FI_BAND: t = t & s; break;                                                            \
	case FI_BXOR: t = t ^ s; break;                                                            \
	case FI_MSWAP: t = (s & o) | (t & ~o); break;
/* clang-format on */

#define REFERENCE(name, type, cases)                                                               \
	static void name##_fill(void *at, size_t count, unsigned seed)                             \
	{                                                                                          \
		for (size_t i = 0; i < count; i++)                                                 \
			((type *)at)[i] = (type)((i * 7 + seed * 5) % 11 % 4);                     \
	}                                                                                          \
	static bool name##_is(const void *a, const void *b, size_t count)                          \
	{                                                                                          \
		for (size_t i = 0; i < count; i++)                                                 \
			if (((const type *)a)[i] != ((const type *)b)[i])                          \
				return false;                                                      \
		return true;                                                                       \
	}                                                                                          \
	static bool name##_apply(enum fi_op op, void *to, const void *from, const void *with)      \
	{                                                                                          \
		type t = *(type *)to, s = *(const type *)from, o = *(const type *)with;            \
                                                                                                   \
		switch ((int)op) {                                                                 \
			cases;                                                                     \
		default:                                                                           \
			return false;                                                              \
		}                                                                                  \
		*(type *)to = t;                                                                   \
		return true;                                                                       \
	}
#pragma GCC diagnostic ignored "-Wfloat-equal"
#pragma GCC diagnostic ignored "-Wconversion"
#define INTEGER EQUAL LOGIC NUMBERS ORDERED BITS
#define REAL    EQUAL LOGIC NUMBERS ORDERED
#define COMPLEX EQUAL LOGIC NUMBERS
REFERENCE(int8, int8_t, INTEGER)
REFERENCE(uint8, uint8_t, INTEGER)
REFERENCE(int16, int16_t, INTEGER)
REFERENCE(uint16, uint16_t, INTEGER)
REFERENCE(int32, int32_t, INTEGER)
REFERENCE(uint32, uint32_t, INTEGER)
REFERENCE(int64, int64_t, INTEGER)
REFERENCE(uint64, uint64_t, INTEGER)
REFERENCE(real_float, float, REAL)
REFERENCE(real_double, double, REAL)
REFERENCE(complex_float, float complex, COMPLEX)
REFERENCE(complex_double, double complex, COMPLEX)
REFERENCE(real_long, long double, REAL)
REFERENCE(complex_long, long double complex, COMPLEX)

static const struct type {
	size_t size;
	void (*fill)(void *at, size_t count, unsigned seed);
	bool (*is)(const void *a, const void *b, size_t count);
	bool (*apply)(enum fi_op op, void *to, const void *from, const void *with);
} types[] = {
#define ENTRY(name, number, type) [number] = {sizeof(type), name##_fill, name##_is, name##_apply}
	ENTRY(int8, FI_INT8, int8_t),
	ENTRY(uint8, FI_UINT8, uint8_t),
	ENTRY(int16, FI_INT16, int16_t),
	ENTRY(uint16, FI_UINT16, uint16_t),
	ENTRY(int32, FI_INT32, int32_t),
	ENTRY(uint32, FI_UINT32, uint32_t),
	ENTRY(int64, FI_INT64, int64_t),
	ENTRY(uint64, FI_UINT64, uint64_t),
	ENTRY(real_float, FI_FLOAT, float),
	ENTRY(real_double, FI_DOUBLE, double),
	ENTRY(complex_float, FI_FLOAT_COMPLEX, float complex),
	ENTRY(complex_double, FI_DOUBLE_COMPLEX, double complex),
	ENTRY(real_long, FI_LONG_DOUBLE, long double),
	ENTRY(complex_long, FI_LONG_DOUBLE_COMPLEX, long double complex),
};
#define TYPES ((int)(sizeof(types) / sizeof(types[0])))

/* --- the pair */

static void region_open(uint64_t access)
{
	assert_ok(fi_mr_reg(domain, target + EDGE, BYTES, access, 0, KEY, 0, &region, NULL));
}

static int opened(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = FI_ATOMIC | FI_RMA});
	memset(target, UNUSED, sizeof(target));
	memset(mirror, UNUSED, sizeof(mirror));
	region_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
	return 0;
}

static int closed(void **state)
{
	(void)state;
	assert_ok(fi_close(&region->fid));
	pair_close();
	return 0;
}

static void edges_are_untouched(void)
{
	assert_memory_equal(target, mirror, EDGE);
	assert_memory_equal(target + EDGE + BYTES, mirror, EDGE);
}

/* --- every operation */

static void values_make(const struct type *type, size_t count, unsigned seed)
{
	memset(target + EDGE, 0, BYTES);
	memset(source, 0, BYTES);
	memset(operand, 0, BYTES);
	memset(result, UNUSED, BYTES);
	type->fill(target + EDGE, count, seed);
	type->fill(source, count, seed + 1);
	type->fill(operand, 1, seed + 2);
	memcpy(before, target + EDGE, BYTES);
	memcpy(mirror + EDGE, target + EDGE, BYTES);
}

/* The target has become what C makes of it; behind `count` it is as before. */
static void values_check(const struct type *type, enum fi_op op, size_t count, bool fetched)
{
	for (size_t i = 0; i < count; i++)
		assert_true(type->apply(
			op, mirror + EDGE + i * type->size, source + i * type->size, operand));
	assert_true(type->is(target + EDGE, mirror + EDGE, count));
	assert_memory_equal(target + EDGE + count * type->size, before + count * type->size,
		BYTES - count * type->size);
	if (fetched)
		assert_true(type->is(result, before, count));
	edges_are_untouched();
}

static void base_try(int number, enum fi_op op, size_t most)
{
	const struct type *type = &types[number];
	const size_t counts[] = {1, 3, most};

	for (unsigned i = 0; i < 3; i++) {
		const size_t count = counts[i];
		struct fi_ioc pieces[2] = {{source, 1}, {source + type->size, count - 1}};

		values_make(type, count, i);
		if (i == 1)
			assert_ok(fi_atomicv(sides[0].ep, pieces, NULL, 2, sides[0].other, 0, KEY,
				number, op, &context));
		else
			assert_ok(fi_atomic(sides[0].ep, source, count, NULL, sides[0].other, 0,
				KEY, number, op, &context));
		done_take(FI_ATOMIC | FI_WRITE, &context);
		values_check(type, op, count, false);
	}
}

static void fetch_try(int number, enum fi_op op, size_t most)
{
	const struct type *type = &types[number];
	const size_t counts[] = {1, 3, most};

	for (unsigned i = 0; i < 3; i++) {
		const size_t count = counts[i];
		struct fi_ioc pieces[2] = {{source, 1}, {source + type->size, count - 1}};
		struct fi_ioc results[2] = {
			{result, count - 1}, {result + (count - 1) * type->size, 1}};

		values_make(type, count, i);
		if (i == 1)
			assert_ok(fi_fetch_atomicv(sides[0].ep, pieces, NULL, 2, results, NULL, 2,
				sides[0].other, 0, KEY, number, op, &context));
		else
			assert_ok(fi_fetch_atomic(sides[0].ep, op == FI_ATOMIC_READ ? NULL : source,
				count, NULL, result, NULL, sides[0].other, 0, KEY, number, op,
				&context));
		done_take(FI_ATOMIC | FI_READ, &context);
		values_check(type, op, count, true);
	}
}

static void compare_try(int number, enum fi_op op, size_t most)
{
	const struct type *type = &types[number];

	assert_true(most >= 1);
	for (unsigned i = 0; i < 12; i++) {
		values_make(type, 1, i);
		if (i % 3 == 0)
			memcpy(operand, target + EDGE, type->size);
		assert_ok(fi_compare_atomic(sides[0].ep, source, 1, NULL, operand, NULL, result,
			NULL, sides[0].other, 0, KEY, number, op, &context));
		done_take(FI_ATOMIC | FI_READ, &context);
		values_check(type, op, 1, true);
	}
}

/* What is said to be valid works, and what is not is refused. */
static void every_operation_on_every_type(void **state)
{
	unsigned works = 0;

	(void)state;
	for (int type = 0; type < TYPES; type++)
		for (enum fi_op op = FI_MIN; op <= FI_MSWAP; op++) {
			size_t count = 0;

			if (fi_atomicvalid(sides[0].ep, type, op, &count) == 0) {
				assert_int_equal(count, 1024 / types[type].size);
				base_try(type, op, count);
				works++;
			} else {
				assert_int_equal(fi_atomic(sides[0].ep, source, 1, NULL,
							 sides[0].other, 0, KEY, type, op, NULL),
					-FI_EOPNOTSUPP);
			}
			if (fi_fetch_atomicvalid(sides[0].ep, type, op, &count) == 0) {
				assert_int_equal(count, 1024 / types[type].size);
				fetch_try(type, op, count);
				works++;
			} else {
				assert_int_equal(
					fi_fetch_atomic(sides[0].ep, source, 1, NULL, result, NULL,
						sides[0].other, 0, KEY, type, op, NULL),
					-FI_EOPNOTSUPP);
			}
			if (fi_compare_atomicvalid(sides[0].ep, type, op, &count) == 0) {
				compare_try(type, op, count);
				works++;
			} else {
				assert_int_equal(fi_compare_atomic(sides[0].ep, source, 1, NULL,
							 operand, NULL, result, NULL,
							 sides[0].other, 0, KEY, type, op, NULL),
					-FI_EOPNOTSUPP);
			}
		}
	/* Of integers all; what has no bits, or no order, has less. */
	assert_true(works >= 8 * (11 + 12 + 7) + 6 * (4 + 5 + 2));
}

static void what_is_valid_says_fi_query_atomic(void **state)
{
	const uint64_t set[] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};
	struct fi_atomic_attr attr;

	(void)state;
	for (int type = 0; type < TYPES + 2; type++)
		for (enum fi_op op = FI_MIN; op <= FI_MSWAP; op++) {
			size_t count = 0;
			int result_of = fi_atomicvalid(sides[0].ep, type, op, &count);

			assert_int_equal(fi_query_atomic(domain, type, op, &attr, 0), result_of);
			assert_true(result_of != 0 ||
				    (attr.count == count && attr.size == types[type].size));
			assert_true(type < TYPES || result_of == -FI_EOPNOTSUPP);
			result_of = fi_fetch_atomicvalid(sides[0].ep, type, op, &count);
			assert_int_equal(fi_query_atomic(domain, type, op, &attr, FI_FETCH_ATOMIC),
				result_of);
			assert_true(result_of != 0 || attr.count == count);
			result_of = fi_compare_atomicvalid(sides[0].ep, type, op, &count);
			assert_int_equal(
				fi_query_atomic(domain, type, op, &attr, FI_COMPARE_ATOMIC),
				result_of);
			assert_true(result_of != 0 || attr.count == count);
			for (unsigned i = 0; i < 3; i++)
				assert_int_equal(fi_query_atomic(domain, type, op, &attr,
							 FI_TAGGED | set[i]),
					-FI_EOPNOTSUPP);
		}
	assert_int_equal(fi_query_atomic(domain, FI_UINT64, FI_SUM, &attr,
				 FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC),
		-FI_EINVAL);
	assert_int_equal(fi_query_atomic(domain, FI_UINT64, FI_SUM, &attr, FI_SEND), -FI_EBADFLAGS);
}

/* --- forms */

static struct fi_msg_atomic message_of(
	const struct fi_ioc *iov, size_t count, const struct fi_rma_ioc *to, enum fi_op op)
{
	return (struct fi_msg_atomic){.msg_iov = iov,
		.iov_count = count,
		.addr = sides[0].other,
		.rma_iov = to,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = op,
		.context = &context};
}

static void every_form_of_a_call(void **state)
{
	uint64_t *at = (uint64_t *)(void *)(target + EDGE), add[24], with = 1, old[24];
	struct fi_ioc pieces[2] = {{add, 10}, {add + 10, 14}}, into[2] = {{old, 1}, {old + 1, 23}};
	struct fi_ioc one = {add, 1}, compare = {&with, 1}, single = {old, 1};
	struct fi_rma_ioc there = {8, 24, KEY};
	struct fi_msg_atomic message = message_of(pieces, 2, &there, FI_SUM);
	const time_t end = time(NULL) + HANG;

	(void)state;
	memset(target + EDGE, 0, BYTES);
	for (unsigned i = 0; i < 24; i++)
		add[i] = i + 1;
	assert_ok(fi_atomicmsg(sides[0].ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	done_take(FI_ATOMIC | FI_WRITE, &context);
	for (unsigned i = 0; i < 24; i++)
		assert_int_equal(at[1 + i], i + 1);
	assert_ok(fi_atomicmsg(sides[0].ep, &message, FI_COMPLETION | FI_INJECT));
	memset(add, 0, sizeof(add));
	done_take(FI_ATOMIC | FI_WRITE, &context);
	for (unsigned i = 0; i < 24; i++)
		assert_int_equal(at[1 + i], 2 * (i + 1));
	assert_ok(fi_fetch_atomicmsg(
		sides[0].ep, &message, into, NULL, 2, FI_COMPLETION | FI_INJECT));
	done_take(FI_ATOMIC | FI_READ, &context);
	for (unsigned i = 0; i < 24; i++)
		assert_int_equal(old[i], 2 * (i + 1));
	pieces[0] = (struct fi_ioc){NULL, 0};
	pieces[1] = (struct fi_ioc){add, 1};
	add[0] = 4;
	assert_ok(fi_atomicv(
		sides[0].ep, pieces, NULL, 2, sides[0].other, 0, KEY, FI_UINT64, FI_SUM, &context));
	done_take(FI_ATOMIC | FI_WRITE, &context);
	assert_int_equal(at[0], 4);
	add[0] = 5;
	assert_ok(fi_inject_atomic(
		sides[0].ep, add, 1, sides[0].other, 0, KEY, FI_UINT64, FI_ATOMIC_WRITE));
	do {
		nothing_completes(&sides[0]);
		assert_true(time(NULL) < end);
	} while (__atomic_load_n(&at[0], __ATOMIC_ACQUIRE) != 5);
	there = (struct fi_rma_ioc){0, 1, KEY};
	message = message_of(&one, 1, &there, FI_CSWAP);
	add[0] = 9;
	assert_ok(fi_compare_atomicmsg(
		sides[0].ep, &message, &compare, NULL, 1, &single, NULL, 1, FI_COMPLETION));
	done_take(FI_ATOMIC | FI_READ, &context);
	assert_int_equal(old[0], 5);
	assert_int_equal(at[0], 5);
	with = 5;
	assert_ok(fi_compare_atomicv(sides[0].ep, &one, NULL, 1, &compare, NULL, 1, &single, NULL,
		1, sides[0].other, 0, KEY, FI_UINT64, FI_CSWAP, &context));
	done_take(FI_ATOMIC | FI_READ, &context);
	assert_int_equal(at[0], 9);
	assert_int_equal(fi_atomicmsg(sides[0].ep, &message, FI_REMOTE_CQ_DATA), -FI_EOPNOTSUPP);
	message.op = FI_SUM;
	assert_int_equal(fi_atomicmsg(sides[0].ep, &message, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
}

/* The data that a call is given, which may change when it has returned. */
static void operands_forget(void)
{
	memset(source, 0x77, sizeof(source));
	memset(operand, 0x77, sizeof(operand));
}

/* At every level: results are there when a call completes. FI_INJECT: operands are copied. */
static void a_fetch_completes_when_its_values_are_here(void **state)
{
	const uint64_t levels[] = {0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
		FI_DELIVERY_COMPLETE, FI_INJECT, FI_MORE | FI_INJECT};
	struct fi_ioc pieces[2] = {{source, 16}, {source + 128, 112}};
	struct fi_ioc results[2] = {{result, 100}, {result + 800, 28}};
	struct fi_ioc one = {source, 1}, compare = {operand, 1}, into = {result, 1};
	struct fi_rma_ioc there = {0, 128, KEY};
	const struct type *type = &types[FI_UINT64];
	struct fi_msg_atomic message;
	uint8_t with[8];

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(levels) / sizeof(levels[0]); i++) {
		const uint64_t level = levels[i / 2];

		there.count = 128;
		message = message_of(pieces, 2, &there, i % 2 ? FI_SUM : FI_ATOMIC_WRITE);
		values_make(type, 128, i);
		for (unsigned n = 0; n < 128; n++)
			type->apply(message.op, mirror + EDGE + 8 * n, source + 8 * n, operand);
		assert_ok(fi_fetch_atomicmsg(
			sides[0].ep, &message, results, NULL, 2, FI_COMPLETION | level));
		if (level & FI_INJECT)
			operands_forget();
		done_take(FI_ATOMIC | FI_READ, &context);
		assert_memory_equal(result, before, 1024);
		assert_memory_equal(target, mirror, sizeof(target));

		there.count = 1;
		message = message_of(&one, 1, &there, FI_CSWAP);
		values_make(type, 1, i);
		memcpy(operand, target + EDGE, 8);
		memcpy(with, source, 8);
		assert_ok(fi_compare_atomicmsg(sides[0].ep, &message, &compare, NULL, 1, &into,
			NULL, 1, FI_COMPLETION | level));
		if (level & FI_INJECT)
			operands_forget();
		done_take(FI_ATOMIC | FI_READ, &context);
		assert_memory_equal(result, before, 8);
		assert_memory_equal(target + EDGE, with, 8);
	}
}

/* A read has no source, in any form. */
static void a_read_looks_at_no_source(void **state)
{
	struct fi_ioc results[2] = {{result, 100}, {result + 800, 28}}, bad = {NULL, 7};
	struct fi_rma_ioc there = {0, 128, KEY};
	struct fi_msg_atomic message = message_of(NULL, 0, &there, FI_ATOMIC_READ);

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		values_make(&types[FI_UINT64], 128, i);
		if (i == 0)
			assert_ok(fi_fetch_atomicv(sides[0].ep, NULL, NULL, 0, results, NULL, 2,
				sides[0].other, 0, KEY, FI_UINT64, FI_ATOMIC_READ, &context));
		else if (i == 1)
			assert_ok(fi_fetch_atomicv(sides[0].ep, &bad, NULL, 1, results, NULL, 2,
				sides[0].other, 0, KEY, FI_UINT64, FI_ATOMIC_READ, &context));
		else
			assert_ok(fi_fetch_atomicmsg(
				sides[0].ep, &message, results, NULL, 2, FI_COMPLETION));
		done_take(FI_ATOMIC | FI_READ, &context);
		assert_memory_equal(result, before, 1024);
		assert_memory_equal(target + EDGE, before, 1024);
	}
}

/* FI_MR_LOCAL is not required, so descriptors are not looked at. */
static void a_descriptor_is_ignored(void **state)
{
	void *none = &context, *two[2] = {NULL, &context};
	struct fi_ioc pieces[2] = {{source, 1}, {source + 8, 1}};

	(void)state;
	values_make(&types[FI_UINT64], 2, 1);
	assert_ok(fi_atomic(
		sides[0].ep, source, 2, none, sides[0].other, 0, KEY, FI_UINT64, FI_SUM, &context));
	done_take(FI_ATOMIC | FI_WRITE, &context);
	values_check(&types[FI_UINT64], FI_SUM, 2, false);
	memcpy(before, target + EDGE, BYTES);
	assert_ok(fi_fetch_atomicv(sides[0].ep, pieces, two, 2, pieces, two, 2, sides[0].other, 0,
		KEY, FI_UINT64, FI_ATOMIC_READ, &context));
	done_take(FI_ATOMIC | FI_READ, &context);
	assert_memory_equal(source, before, 16);
	assert_ok(fi_compare_atomic(sides[0].ep, operand, 1, none, source, none, result, none,
		sides[0].other, 0, KEY, FI_UINT64, FI_CSWAP, &context));
	done_take(FI_ATOMIC | FI_READ, &context);
	assert_memory_equal(target + EDGE, operand, 8);
}

/* --- order of what an initiator does */

static uint64_t sum_at_target(void)
{
	uint64_t sum;

	memcpy(&sum, target + EDGE, sizeof(sum));
	return sum;
}

/* By a call with FI_FENCE, until it is taken. */
static void fenced(ssize_t (*call)(void))
{
	const time_t end = time(NULL) + HANG;
	ssize_t taken;

	while ((taken = call()) == -FI_EAGAIN) {
		(void)fi_cq_read(sides[1].cq, NULL, 0);
		assert_true(time(NULL) < end);
	}
	assert_ok(taken);
}

static struct fi_ioc *one_source(void)
{
	static struct fi_ioc one = {source, 1};

	return &one;
}

static const struct fi_rma_ioc first = {0, 1, KEY};

static ssize_t fenced_sum(void)
{
	const struct fi_msg_atomic message = message_of(one_source(), 1, &first, FI_SUM);

	return fi_atomicmsg(sides[0].ep, &message, FI_FENCE | FI_COMPLETION);
}

static ssize_t fenced_fetch(void)
{
	const struct fi_msg_atomic message = message_of(one_source(), 1, &first, FI_SUM);
	struct fi_ioc into = {result, 1};

	return fi_fetch_atomicmsg(sides[0].ep, &message, &into, NULL, 1, FI_FENCE | FI_COMPLETION);
}

static ssize_t fenced_compare(void)
{
	const struct fi_msg_atomic message = message_of(one_source(), 1, &first, FI_CSWAP_NE);
	struct fi_ioc compare = {operand, 1}, into = {result, 1};

	return fi_compare_atomicmsg(
		sides[0].ep, &message, &compare, NULL, 1, &into, NULL, 1, FI_FENCE | FI_COMPLETION);
}

static ssize_t fenced_tell(void)
{
	const struct fi_rma_iov there = {512, 8, KEY};
	const struct iovec iov = {source, 8};
	const struct fi_msg_rma message = {.msg_iov = &iov,
		.iov_count = 1,
		.addr = sides[0].other,
		.rma_iov = &there,
		.rma_iov_count = 1,
		.data = 5,
		.context = &context};

	return fi_writemsg(sides[0].ep, &message, FI_FENCE | FI_COMPLETION | FI_REMOTE_CQ_DATA);
}

static void a_fence_waits_for_atomics_before(void **state)
{
	static ssize_t (*const calls[])(void) = {
		fenced_sum, fenced_fetch, fenced_compare, fenced_tell};
	const uint64_t one = 1;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		struct fi_cq_tagged_entry entry;
		uint64_t old;

		memset(target + EDGE, 0, BYTES);
		memcpy(source, &one, sizeof(one));
		memset(operand, 0, sizeof(operand));
		for (unsigned n = 0; n < 100; n++)
			assert_ok(fi_inject_atomic(
				sides[0].ep, &one, 1, sides[0].other, 0, KEY, FI_UINT64, FI_SUM));
		fenced(calls[i % 4]);
		if (i % 4 == 3) { /* the target hears of it when all is there */
			completion_take(&sides[1], &entry, NULL);
			assert_int_equal(entry.data, 5);
			assert_int_equal(sum_at_target(), 100);
		}
		completion_take(&sides[0], &entry, NULL);
		assert_ptr_equal(entry.op_context, &context);
		memcpy(&old, result, sizeof(old));
		if (i % 4 == 1 || i % 4 == 2)
			assert_int_equal(old, 100);
		assert_int_equal(sum_at_target(), i % 4 < 2 ? 101 : i % 4 == 2 ? 1 : 100);
	}
}

/* A target that hears of a later call sees what an atomic before has done. */
static void what_follows_a_completion_is_behind_it(void **state)
{
	const uint64_t one = 1;

	(void)state;
	memset(target + EDGE, 0, BYTES);
	for (unsigned i = 1; i <= 100; i++) {
		struct fi_cq_tagged_entry entry;

		assert_ok(fi_atomic(sides[0].ep, &one, 1, NULL, sides[0].other, 0, KEY, FI_UINT64,
			FI_SUM, &context));
		done_take(FI_ATOMIC | FI_WRITE, &context);
		assert_ok(fi_inject_writedata(sides[0].ep, &one, 8, i, sides[0].other, 512, KEY));
		completion_take(&sides[1], &entry, NULL);
		assert_int_equal(entry.data, i);
		assert_int_equal(sum_at_target(), i);
	}
}

/* --- what is refused at once */

static void bad_calls_are_refused_at_once(void **state)
{
	struct fi_ioc pieces[5] = {{source, 1}, {source, 1}, {source, 1}, {source, 1}, {source, 1}};
	struct fi_rma_ioc there = {0, 2, KEY};
	struct fi_msg_atomic message = message_of(pieces, 1, &there, FI_SUM);
	struct fid_ep *ep = sides[0].ep;
	const fi_addr_t to = sides[0].other;

	(void)state;
	assert_int_equal(
		fi_atomic(ep, source, 0, NULL, to, 0, KEY, FI_INT8, FI_SUM, NULL), -FI_EINVAL);
	assert_int_equal(
		fi_atomic(ep, source, 129, NULL, to, 0, KEY, FI_INT64, FI_SUM, NULL), -FI_EMSGSIZE);
	for (unsigned i = 10; i < 64; i++)
		assert_int_equal(fi_atomic(ep, source, (UINT64_C(1) << i) + 1, NULL, to, 0, KEY,
					 FI_INT8, FI_SUM, NULL),
			-FI_EMSGSIZE);
	assert_int_equal(
		fi_atomic(ep, source, 1, NULL, 999, 0, KEY, FI_INT64, FI_SUM, NULL), -FI_EINVAL);
	assert_int_equal(
		fi_atomicv(ep, pieces, NULL, 5, to, 0, KEY, FI_INT8, FI_SUM, NULL), -FI_EINVAL);
	assert_int_equal(fi_fetch_atomicv(ep, pieces, NULL, 2, pieces, NULL, 1, to, 0, KEY, FI_INT8,
				 FI_SUM, NULL),
		-FI_EINVAL);
	assert_int_equal(fi_compare_atomicv(ep, pieces, NULL, 1, pieces, NULL, 2, pieces, NULL, 1,
				 to, 0, KEY, FI_INT8, FI_CSWAP, NULL),
		-FI_EINVAL);
	assert_int_equal(fi_compare_atomic(ep, source, 2, NULL, operand, NULL, result, NULL, to, 0,
				 KEY, FI_INT8, FI_CSWAP, NULL),
		-FI_EMSGSIZE);
	assert_int_equal(fi_atomicmsg(ep, &message, 0), -FI_EINVAL);
	pieces[0].count = there.count = 2000;
	assert_int_equal(fi_atomicmsg(ep, &message, 0), -FI_EMSGSIZE);
	pieces[0].count = there.count = 1;
	message.rma_iov_count = 2;
	assert_int_equal(fi_atomicmsg(ep, &message, 0), -FI_EINVAL);
	assert_int_equal(fi_atomicmsg(ep, NULL, 0), -FI_EINVAL);
	message.rma_iov_count = 1;
	assert_int_equal(fi_atomicmsg(ep, &message, FI_TAGGED), -FI_EBADFLAGS);
	assert_int_equal(fi_atomicmsg(ep, &message, FI_TRIGGER), -FI_EBADFLAGS);
	assert_int_equal(fi_atomicmsg(ep, &message, FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	nothing_completes(&sides[0]);
}

/* --- what an enemy tries */

static void all_fail(uint64_t at, uint64_t key, size_t count, int err)
{
	uint64_t value[128] = {1};

	memcpy(mirror, target, sizeof(target));
	assert_ok(fi_atomic(sides[0].ep, value, count, NULL, sides[0].other, at, key, FI_UINT64,
		FI_BXOR, &context));
	failed_take(err, FI_ATOMIC | FI_WRITE, &context);
	assert_ok(fi_atomic(sides[0].ep, value, count, NULL, sides[0].other, at, key, FI_UINT64,
		FI_ATOMIC_WRITE, &context));
	failed_take(err, FI_ATOMIC | FI_WRITE, &context);
	assert_ok(fi_fetch_atomic(sides[0].ep, value, count, NULL, result, NULL, sides[0].other, at,
		key, FI_UINT64, FI_SUM, &context));
	failed_take(err, FI_ATOMIC | FI_READ, &context);
	assert_ok(fi_compare_atomic(sides[0].ep, value, 1, NULL, value, NULL, result, NULL,
		sides[0].other, at, key, FI_UINT64, FI_CSWAP_NE, &context));
	failed_take(err, FI_ATOMIC | FI_READ, &context);
	assert_memory_equal(target, mirror, sizeof(target));
}

static void read_try(uint64_t at, uint64_t key, int err)
{
	assert_ok(fi_fetch_atomic(sides[0].ep, NULL, 1, NULL, result, NULL, sides[0].other, at, key,
		FI_UINT64, FI_ATOMIC_READ, &context));
	if (err != 0) {
		failed_take(err, FI_ATOMIC | FI_READ, &context);
		return;
	}
	done_take(FI_ATOMIC | FI_READ, &context);
	assert_memory_equal(result, target + EDGE + at, 8);
}

static void nothing_that_is_not_allowed_is_done(void **state)
{
	(void)state;
	all_fail(0, KEY + 1, 1, FI_EKEYREJECTED);
	all_fail(0, KEY + 1, 128, FI_EKEYREJECTED);
	all_fail(BYTES - 4, KEY, 1, FI_EKEYREJECTED);
	all_fail(BYTES, KEY, 1, FI_EKEYREJECTED);
	all_fail(UINT64_MAX - 3, KEY, 1, FI_EKEYREJECTED);
	read_try(BYTES - 4, KEY, FI_EKEYREJECTED);
	read_try(8, KEY, 0);
	assert_ok(fi_close(&region->fid));
	region_open(FI_REMOTE_READ);
	all_fail(0, KEY, 1, FI_EACCES);
	read_try(8, KEY, 0);
	assert_ok(fi_close(&region->fid));
	region_open(FI_REMOTE_WRITE);
	read_try(8, KEY, FI_EACCES);
	assert_ok(fi_fetch_atomic(sides[0].ep, source, 1, NULL, result, NULL, sides[0].other, 0,
		KEY, FI_UINT64, FI_SUM, &context));
	failed_take(FI_EACCES, FI_ATOMIC | FI_READ, &context);
	assert_memory_equal(target, mirror, sizeof(target));
}

/* What returns values needs the right to read, whatever it does; what does not needs none. */
static void only_what_returns_values_reads(void **state)
{
	(void)state;
	assert_ok(fi_close(&region->fid));
	region_open(FI_REMOTE_WRITE);
	for (enum fi_op op = FI_MIN; op <= FI_ATOMIC_WRITE; op++) {
		size_t most;

		if (fi_atomicvalid(sides[0].ep, FI_UINT64, op, &most) == 0)
			base_try(FI_UINT64, op, most);
		assert_ok(fi_fetch_atomic(sides[0].ep, source, 1, NULL, result, NULL,
			sides[0].other, 0, KEY, FI_UINT64, op, &context));
		failed_take(FI_EACCES, FI_ATOMIC | FI_READ, &context);
	}
}

static void memory_that_is_not_there_harms_nobody(void **state)
{
	uint8_t *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fid_mr *mr;

	(void)state;
	assert_ptr_not_equal(gone, MAP_FAILED);
	assert_ok(fi_mr_reg(
		domain, gone, 4096, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 8, 0, &mr, NULL));
	all_fail(0, 8, 1, FI_EFAULT);
	all_fail(0, 8, 128, FI_EFAULT);
	read_try(0, 8, FI_EFAULT);
	assert_ok(fi_close(&mr->fid));
	assert_ok(munmap(gone, 4096));
}

/* --- together */

static void no_sum_is_lost(void **state)
{
	const time_t end = time(NULL) + HANG;
	uint64_t *sum = (uint64_t *)(void *)(target + EDGE), one = 1;
	unsigned posted[2] = {0, 0};

	(void)state;
	*sum = 0;
	while (posted[0] < 5000 || posted[1] < 5000) {
		for (unsigned i = 0; i < 2; i++) {
			ssize_t outcome;

			if (posted[i] == 5000)
				continue;
			outcome = fi_inject_atomic(sides[i].ep, &one, 1,
				posted[i] % 2 ? sides[i].self : sides[i].other, 0, KEY, FI_UINT64,
				FI_SUM);
			assert_true(outcome == 0 || outcome == -FI_EAGAIN);
			posted[i] += outcome == 0;
		}
		assert_true(time(NULL) < end);
	}
	while (*(volatile uint64_t *)sum != 10000) {
		for (unsigned i = 0; i < 2; i++)
			(void)fi_cq_read(sides[i].cq, NULL, 0);
		assert_true(time(NULL) < end);
	}
	nothing_completes(&sides[0]);
}

static void counters_count_atomics(void **state)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
	struct fid_cntr *reads, *writes;
	struct fid_ep *ep;

	(void)state;
	assert_ok(fi_cntr_open(domain, &attr, &reads, NULL));
	assert_ok(fi_cntr_open(domain, &attr, &writes, NULL));
	assert_ok(fi_endpoint(domain, info, &ep, NULL));
	assert_ok(fi_ep_bind(ep, &sides[0].av->fid, 0));
	assert_ok(
		fi_ep_bind(ep, &sides[0].cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
	assert_ok(fi_ep_bind(ep, &reads->fid, FI_READ));
	assert_ok(fi_ep_bind(ep, &writes->fid, FI_WRITE));
	assert_ok(fi_enable(ep));
	for (unsigned i = 0; i < 50; i++) {
		assert_ok(fi_atomic(
			ep, source, 1, NULL, sides[0].other, 0, KEY, FI_INT32, FI_SUM, NULL));
		assert_ok(fi_inject_atomic(
			ep, source, 1, sides[0].other, 0, KEY, FI_INT32, FI_ATOMIC_WRITE));
		assert_ok(fi_fetch_atomic(ep, source, 1, NULL, result, NULL, sides[0].other, 0, KEY,
			FI_INT32, FI_SUM, NULL));
	}
	assert_ok(fi_cntr_wait(writes, 100, HANG * 1000));
	assert_ok(fi_cntr_wait(reads, 50, HANG * 1000));
	nothing_completes(&sides[0]);
	assert_ok(fi_close(&ep->fid));
	assert_ok(fi_close(&reads->fid));
	assert_ok(fi_close(&writes->fid));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened, closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_operation_on_every_type),
		TEST(what_is_valid_says_fi_query_atomic),
		TEST(every_form_of_a_call),
		TEST(a_fetch_completes_when_its_values_are_here),
		TEST(a_read_looks_at_no_source),
		TEST(a_descriptor_is_ignored),
		TEST(a_fence_waits_for_atomics_before),
		TEST(what_follows_a_completion_is_behind_it),
		TEST(bad_calls_are_refused_at_once),
		TEST(nothing_that_is_not_allowed_is_done),
		TEST(only_what_returns_values_reads),
		TEST(memory_that_is_not_there_harms_nobody),
		TEST(no_sum_is_lost),
		TEST(counters_count_atomics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
