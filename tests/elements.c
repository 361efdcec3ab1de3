/* SPDX-License-Identifier: BSD-3-Clause */
/* elements.c - see elements.h. */
#include <elements.h>

#include <float.h>
#include <string.h>

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

/* --- operations */

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

/* Does a swap happen? */
static bool relation(unsigned operation, bool less, bool equal, bool greater)
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
		return greater || equal;
	default:
		return greater;
	}
}

static void integer_change(unsigned operation, unsigned type, uint8_t *target,
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
		result = (unsigned __int128)(relation(operation, o<t, o == t, o> t) ? s : t);
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

/* Bytes of a real that are its value. */
static unsigned real_bytes(unsigned size)
{
	return size == sizeof(long double) && LDBL_MANT_DIG == 64 ? 10 : size;
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
		memcpy(bytes, &value, real_bytes(size));
}

static long double real_sum(unsigned size, long double a, long double b)
{
	if (size == sizeof(float))
		return (float)a + (float)b;
	return size == sizeof(double) ? (double)a + (double)b : a + b;
}

static long double real_product(unsigned size, long double a, long double b)
{
	if (size == sizeof(float))
		return (float)a * (float)b;
	return size == sizeof(double) ? (double)a * (double)b : a * b;
}

static void real_change(unsigned operation, unsigned type, uint8_t *target, const uint8_t *source,
	const uint8_t *operand)
{
	unsigned size = types[type].size;
	long double t = real_read(target, size);
	long double s = real_read(source, size);
	long double o = real_read(operand, size);
	bool comes;

	if (operation == AMO_SUM) {
		real_write(target, size, real_sum(size, t, s));
		return;
	}
	if (operation == AMO_PROD) {
		real_write(target, size, real_product(size, t, s));
		return;
	}
	if (operation == AMO_MIN)
		comes = s < t;
	else if (operation == AMO_MAX)
		comes = s > t;
	else
		comes = operation == AMO_SWAP || relation(operation, o<t, o == t, o> t);
	if (comes)
		memcpy(target, source, real_bytes(size));
}

static void complex_change(unsigned operation, unsigned type, uint8_t *target,
	const uint8_t *source, const uint8_t *operand)
{
	unsigned half = types[type].size / 2;
	long double a = real_read(target, half), b = real_read(target + half, half);
	long double c = real_read(source, half), d = real_read(source + half, half);
	bool equal = real_read(operand, half) == a && real_read(operand + half, half) == b;

	if (operation == AMO_SUM) {
		real_write(target, half, real_sum(half, a, c));
		real_write(target + half, half, real_sum(half, b, d));
	} else if (operation == AMO_PROD) {
		real_write(target, half,
			real_sum(half, real_product(half, a, c), -real_product(half, b, d)));
		real_write(target + half, half,
			real_sum(half, real_product(half, a, d), real_product(half, b, c)));
	} else if (operation == AMO_SWAP || equal == (operation == AMO_CSWAP)) {
		memcpy(target, source, real_bytes(half));
		memcpy(target + half, source + half, real_bytes(half));
	}
}

void element_change(unsigned operation, unsigned type, uint8_t *target, const uint8_t *source,
	const uint8_t *operand)
{
	if (types[type].class == REAL)
		real_change(operation, type, target, source, operand);
	else if (types[type].class == COMPLEX)
		complex_change(operation, type, target, source, operand);
	else
		integer_change(operation, type, target, source, operand);
}

/* Which pairs there are, from the words of Portals 4's table. */
bool element_valid(unsigned operation, unsigned type)
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

unsigned element_size(unsigned type)
{
	return types[type].size;
}

/* --- values */

static void real_value(uint8_t *bytes, unsigned size, unsigned which)
{
	static const long double values[ELEMENT_VALUES] = {
		0, 1, -1, 2, -3, 0.5L, 1000, -0.25L, 7, -0.0L, 12, 3};

	real_write(bytes, size, values[which]);
}

static void integer_value(uint8_t *bytes, unsigned size, unsigned which, uint64_t chance)
{
	const unsigned __int128 top = (unsigned __int128)1 << (8 * size - 1);
	const unsigned __int128 values[] = {
		0, 1, 2, 3, top, top - 1, top + 1, 2 * top - 1, 2 * top - 2};

	integer_write(
		bytes, size, which < sizeof(values) / sizeof(values[0]) ? values[which] : chance);
}

void element_make(uint8_t *bytes, unsigned type, unsigned which, uint64_t chance)
{
	unsigned size = types[type].size;

	if (types[type].class == REAL) {
		real_value(bytes, size, which);
	} else if (types[type].class == COMPLEX) {
		real_value(bytes, size / 2, which);
		real_value(bytes + size / 2, size / 2, (which * 5 + 3) % ELEMENT_VALUES);
	} else {
		integer_value(bytes, size, which, chance);
	}
}

/* Long doubles that are no numbers, as their bytes say, are what the processor makes of them. */
static bool real_is(const uint8_t *a, const uint8_t *b, unsigned size)
{
	long double x = real_read(a, size), y = real_read(b, size);

	return memcmp(a, b, size) == 0 || x == y || (x != x && y != y);
}

bool element_is(const uint8_t *a, const uint8_t *b, unsigned type)
{
	unsigned size = types[type].size;

	if (types[type].class == REAL)
		return real_is(a, b, size);
	if (types[type].class == COMPLEX)
		return real_is(a, b, size / 2) && real_is(a + size / 2, b + size / 2, size / 2);
	return memcmp(a, b, size) == 0;
}

static bool real_is_number(const uint8_t *bytes, unsigned size)
{
	long double value = real_read(bytes, size);

	return value - value == 0;
}

bool element_is_number(const uint8_t *bytes, unsigned type)
{
	unsigned size = types[type].size;

	if (types[type].class == REAL)
		return real_is_number(bytes, size);
	return types[type].class != COMPLEX ||
	       (real_is_number(bytes, size / 2) && real_is_number(bytes + size / 2, size / 2));
}
