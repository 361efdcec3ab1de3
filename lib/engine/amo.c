/* SPDX-License-Identifier: BSD-3-Clause */
/* amo.c - see amo.h. No state; any thread. */
#include <engine/amo.h>

#include <assert.h>
#include <complex.h>
#include <fenv.h>
#include <string.h>

#include <base/guard.h>

/* An element. Not all bytes of a long double are its value; those that are not stay what they
 * were. */
union element {
	int8_t int8;
	uint8_t uint8;
	int16_t int16;
	uint16_t uint16;
	int32_t int32;
	uint32_t uint32;
	int64_t int64;
	uint64_t uint64;
	float real_float;
	double real_double;
	long double real_long;
	float complex complex_float;
	double complex complex_double;
	long double complex complex_long;
	uint8_t bytes[AMO_SIZE_MAX];
};
static_assert(sizeof(union element) == AMO_SIZE_MAX, "the longest type");

/* What is done to each element of a message. */
struct change {
	void (*apply)(const struct change *change, union element *target);
	unsigned operation;
	union element source;
	union element operand; /* zeros, of an operation that has none */
};

/* --- what each type does --- */

/* clang-format off */
#define CASES_EQUAL                                                                                \
	case AMO_SWAP: t = s; break;                                                               \
	case AMO_CSWAP: if (o == t) t = s; break;                                                  \
	case AMO_CSWAP_NE: if (o != t) t = s; break;

#define CASES_ORDERED                                                                              \
	case AMO_MIN: if (s < t) t = s; break;                                                     \
	case AMO_MAX: if (s > t) t = s; break;                                                     \
	case AMO_CSWAP_LE: if (o <= t) t = s; break;                                               \
	case AMO_CSWAP_LT: if (o < t) t = s; break;                                                \
	case AMO_CSWAP_GE: if (o >= t) t = s; break;                                               \
	case AMO_CSWAP_GT: if (o > t) t = s; break;

#define CASES_NUMBERS                                                                              \
	case AMO_SUM: t += s; break;                                                               \
	case AMO_PROD: t *= s; break;

/* Unsigned words of 64 bits wrap, and so does what is cut from them. */
#define CASES_INTEGERS(type)                                                                       \
	case AMO_SUM: t = (type)((uint64_t)t + (uint64_t)s); break;                                \
	case AMO_PROD: t = (type)((uint64_t)t * (uint64_t)s); break;                               \
	case AMO_LOR: t = t || s; break;                                                           \
	case AMO_LAND: t = t && s; break;                                                          \
	case AMO_LXOR: t = !t != !s; break;                                                        \
	case AMO_BOR: t = (type)(t | s); break;                                                    \
	case AMO_BAND: t = (type)(t & s); break;                                                   \
	case AMO_BXOR: t = (type)(t ^ s); break;                                                   \
	case AMO_MSWAP: t = (type)((o & s) | (~o & t)); break;
/* clang-format on */

/* The function of a type, with the cases that it has. */
#define TYPE(member, type, ...)                                                                    \
	static void member##_apply(const struct change *change, union element *target)             \
	{                                                                                          \
		const type s = change->source.member;                                              \
		const type o = change->operand.member;                                             \
		type t = target->member;                                                           \
                                                                                                   \
		switch (change->operation) {                                                       \
			__VA_ARGS__                                                                \
		default:                                                                           \
			return;                                                                    \
		}                                                                                  \
		target->member = t;                                                                \
	}

#define INTEGER(member, type) TYPE(member, type, CASES_INTEGERS(type) CASES_ORDERED CASES_EQUAL)
#define REAL(member, type)    TYPE(member, type, CASES_NUMBERS CASES_ORDERED CASES_EQUAL)
#define COMPLEX(member, type) TYPE(member, type, CASES_NUMBERS CASES_EQUAL)

INTEGER(int8, int8_t)
INTEGER(uint8, uint8_t)
INTEGER(int16, int16_t)
INTEGER(uint16, uint16_t)
INTEGER(int32, int32_t)
INTEGER(uint32, uint32_t)
INTEGER(int64, int64_t)
INTEGER(uint64, uint64_t)
REAL(real_float, float)
REAL(real_double, double)
REAL(real_long, long double)
COMPLEX(complex_float, float complex)
COMPLEX(complex_double, double complex)
COMPLEX(complex_long, long double complex)

/* Operations that a type has. */
#define BIT(operation) (UINT32_C(1) << (operation))
#define OF_COMPLEX                                                                                 \
	(BIT(AMO_SUM) | BIT(AMO_PROD) | BIT(AMO_SWAP) | BIT(AMO_CSWAP) | BIT(AMO_CSWAP_NE))
#define OF_REALS                                                                                   \
	(OF_COMPLEX | BIT(AMO_MIN) | BIT(AMO_MAX) | BIT(AMO_CSWAP_LE) | BIT(AMO_CSWAP_LT) |        \
		BIT(AMO_CSWAP_GE) | BIT(AMO_CSWAP_GT))
#define OF_INTEGERS (BIT(AMO_OPERATIONS) - 1)

static const struct {
	unsigned size;
	uint32_t operations;
	void (*apply)(const struct change *change, union element *target);
} types[AMO_TYPES] = {
	[AMO_INT8] = {1, OF_INTEGERS, int8_apply},
	[AMO_UINT8] = {1, OF_INTEGERS, uint8_apply},
	[AMO_INT16] = {2, OF_INTEGERS, int16_apply},
	[AMO_UINT16] = {2, OF_INTEGERS, uint16_apply},
	[AMO_INT32] = {4, OF_INTEGERS, int32_apply},
	[AMO_UINT32] = {4, OF_INTEGERS, uint32_apply},
	[AMO_FLOAT] = {sizeof(float), OF_REALS, real_float_apply},
	[AMO_INT64] = {8, OF_INTEGERS, int64_apply},
	[AMO_UINT64] = {8, OF_INTEGERS, uint64_apply},
	[AMO_DOUBLE] = {sizeof(double), OF_REALS, real_double_apply},
	[AMO_FLOAT_COMPLEX] = {2 * sizeof(float), OF_COMPLEX, complex_float_apply},
	[AMO_DOUBLE_COMPLEX] = {2 * sizeof(double), OF_COMPLEX, complex_double_apply},
	[AMO_LONG_DOUBLE] = {sizeof(long double), OF_REALS, real_long_apply},
	[AMO_LONG_DOUBLE_COMPLEX] = {2 * sizeof(long double), OF_COMPLEX, complex_long_apply},
};

bool amo_is_valid(unsigned operation, unsigned type)
{
	return operation < AMO_OPERATIONS && type < AMO_TYPES &&
	       (types[type].operations & BIT(operation)) != 0;
}

unsigned amo_size(unsigned type)
{
	return type < AMO_TYPES ? types[type].size : 0;
}

/* --- how an element is changed --- */

/* A1. An element that stays what it was is not written. Its first bytes are the word, as the bytes
 * of a word are in order. */
static bool word_change(void *at, unsigned size, const struct change *change, union element *was)
{
	union element becomes;
	bool stored = true;

	if (!guard_load(at, size, &was->uint64))
		return false;
	do {
		becomes = *was;
		change->apply(change, &becomes);
		if (memcmp(&becomes, was, size) != 0 &&
			!guard_exchange(at, size, &was->uint64, becomes.uint64, &stored))
			return false;
	} while (!stored);
	return true;
}

static bool bytes_change(
	const struct map *at, unsigned size, const struct change *change, union element *was)
{
	union element becomes;

	/* gcc 12 sees copies of more than an element else. */
	if (size > sizeof(*was) || !map_copy_out(at, 0, was, size))
		return false;
	becomes = *was;
	change->apply(change, &becomes);
	return map_copy_in(at, 0, &becomes, size);
}

static bool element_change(
	const struct map *element, const struct change *change, union element *was)
{
	unsigned size = (unsigned)element->length;
	uint64_t run;
	void *at = map_run(element, 0, &run);

	if (run >= size && size <= sizeof(uint64_t) && ((uintptr_t)at & (size - 1)) == 0)
		return word_change(at, size, change, was);
	return bytes_change(element, size, change, was);
}

static bool elements_change(const struct map *target, uint64_t offset, unsigned size,
	struct change *change, const void *source, void *old, uint64_t bytes)
{
	union element was = {.bytes = {0}};

	for (uint64_t done = 0; done + size <= bytes; done += size) {
		const struct map element = {
			.start = target->start + offset + done,
			.vector = target->vector,
			.length = size,
		};

		memcpy(&change->source, (const char *)source + done, size);
		if (!element_change(&element, change, &was))
			return false;
		if (old)
			memcpy((char *)old + done, &was, size);
	}
	return true;
}

/* A4. */
static bool type_has_exceptions(unsigned type)
{
	return types[type].operations != OF_INTEGERS;
}

bool amo_apply(const struct map *target, uint64_t offset, unsigned operation, unsigned type,
	const void *source, const void *operand, void *old, uint64_t bytes)
{
	unsigned size = types[type].size;
	struct change change = {.apply = types[type].apply, .operation = operation};
	fenv_t environment;
	bool there;

	if (amo_has_operand(operation))
		memcpy(&change.operand, operand, size);
	if (type_has_exceptions(type)) {
		feholdexcept(&environment);
		there = elements_change(target, offset, size, &change, source, old, bytes);
		fesetenv(&environment);
	} else {
		there = elements_change(target, offset, size, &change, source, old, bytes);
	}
	return there;
}
