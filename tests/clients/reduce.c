/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce.c - every predefined type of MPI with every predefined operation that MPI 3.1 (5.9.2 and
 * 5.9.4) allows for it: MPI_Allreduce, MPI_Reduce to each root, and MPI_Scan. Every element is
 * checked. All wrong combinations are named before the job ends. */
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

#include "check.h"

#define MOST 1000 /* elements */

enum op {
	OP_MAX,
	OP_MIN,
	OP_SUM,
	OP_PROD,
	OP_LAND,
	OP_LOR,
	OP_LXOR,
	OP_BAND,
	OP_BOR,
	OP_BXOR,
	OP_MAXLOC,
	OP_MINLOC,
	OPS
};

#define ORDER    (1u << OP_MAX | 1u << OP_MIN)
#define SUMS     (1u << OP_SUM | 1u << OP_PROD)
#define LOGIC    (1u << OP_LAND | 1u << OP_LOR | 1u << OP_LXOR)
#define BITS     (1u << OP_BAND | 1u << OP_BOR | 1u << OP_BXOR)
#define PLACED   (1u << OP_MAXLOC | 1u << OP_MINLOC)
#define WHOLE    (ORDER | SUMS | LOGIC | BITS)
#define FOREIGN  (ORDER | SUMS | BITS) /* of Fortran, and of several languages */
#define FLOATING (ORDER | SUMS)

static const char *const op_names[OPS] = {"MPI_MAX", "MPI_MIN", "MPI_SUM", "MPI_PROD", "MPI_LAND",
	"MPI_LOR", "MPI_LXOR", "MPI_BAND", "MPI_BOR", "MPI_BXOR", "MPI_MAXLOC", "MPI_MINLOC"};

/* Small: products of eight are exact in every floating type. */
static int small(int of, int at)
{
	return (of * 7 + at * 3) % 11 - 5;
}

/* What a rank gives: large enough that every byte of the type counts, but for products; for
 * logical operations true values have nothing in their lowest byte where the type has more. */
static long long whole(enum op op, int of, int at, size_t size)
{
	int bits = (int)size * 8;

	if (op == OP_LAND || op == OP_LOR || op == OP_LXOR)
		return at % 2 == 0 || (of + at) % 3 != 0 ? 1ll << (size > 1 ? bits - 4 : 0) : 0;
	if (op == OP_PROD || size == 1)
		return small(of, at);
	return small(of, at) * (1ll << (bits - 10)) + (of * 5 + at) % 100;
}

/* One function for each C type: the result of the ranks from `first` up to but not `past`. It is
 * stored, or compared with what is there; the answer is the place of the first wrong element, or
 * `count`. */
typedef int (*reduction)(void *elements, bool compares, enum op op, int count, int first, int past);

#define REDUCTION(name, type, value, combine, differs)                                             \
	static int name(void *elements, bool compares, enum op op, int count, int first, int past) \
	{                                                                                          \
		type *element = elements;                                                          \
                                                                                                   \
		for (int at = 0; at < count; at++) {                                               \
			type all = value(type, op, first, at);                                     \
                                                                                                   \
			for (int of = first + 1; of < past; of++) {                                \
				type one = value(type, op, of, at);                                \
                                                                                                   \
				combine(type);                                                     \
			}                                                                          \
			if (!compares)                                                             \
				element[at] = all;                                                 \
			else if (differs(element[at], all))                                        \
				return at;                                                         \
		}                                                                                  \
		return count;                                                                      \
	}

#define UNEQUAL(a, b) ((a) != (b))

#define WHOLE_VALUE(type, op, of, at) (type) whole(op, of, at, sizeof(type))
#define WHOLE_COMBINE(type)                                                                        \
	switch (op) {                                                                              \
	case OP_MAX:                                                                               \
		all = one > all ? one : all;                                                       \
		break;                                                                             \
	case OP_MIN:                                                                               \
		all = one < all ? one : all;                                                       \
		break;                                                                             \
	case OP_SUM:                                                                               \
		all = (type)(all + one);                                                           \
		break;                                                                             \
	case OP_PROD:                                                                              \
		all = (type)(all * one);                                                           \
		break;                                                                             \
	case OP_LAND:                                                                              \
		all = (type)(all && one);                                                          \
		break;                                                                             \
	case OP_LOR:                                                                               \
		all = (type)(all || one);                                                          \
		break;                                                                             \
	case OP_LXOR:                                                                              \
		all = (type)(!all != !one);                                                        \
		break;                                                                             \
	case OP_BAND:                                                                              \
		all = (type)(all & one);                                                           \
		break;                                                                             \
	case OP_BOR:                                                                               \
		all = (type)(all | one);                                                           \
		break;                                                                             \
	default:                                                                                   \
		all = (type)(all ^ one);                                                           \
		break;                                                                             \
	}
#define WHOLE_REDUCTION(name, type) REDUCTION(name, type, WHOLE_VALUE, WHOLE_COMBINE, UNEQUAL)

WHOLE_REDUCTION(of_int8, int8_t)
WHOLE_REDUCTION(of_int16, int16_t)
WHOLE_REDUCTION(of_int32, int32_t)
WHOLE_REDUCTION(of_int64, int64_t)
WHOLE_REDUCTION(of_uint8, uint8_t)
WHOLE_REDUCTION(of_uint16, uint16_t)
WHOLE_REDUCTION(of_uint32, uint32_t)
WHOLE_REDUCTION(of_uint64, uint64_t)

/* Open MPI 4.1 takes MPI_UNSIGNED_LONG for signed and MPI_OFFSET for unsigned where it compares,
 * by its own transports as well: nothing here is large enough for that. */
#define SIGNLESS_VALUE(type, op, of, at)                                                           \
	(type)(whole(op, of, at, sizeof(type)) & 0xffffffffffffffll)
REDUCTION(of_signless, uint64_t, SIGNLESS_VALUE, WHOLE_COMBINE, UNEQUAL)

/* Truth has no bytes to be large in. */
#define TRUTH_VALUE(type, op, of, at) (type)(whole(op, of, at, sizeof(type)) != 0)
#define TRUTH_REDUCTION(name, type)   REDUCTION(name, type, TRUTH_VALUE, WHOLE_COMBINE, UNEQUAL)

TRUTH_REDUCTION(of_bool, uint8_t)
TRUTH_REDUCTION(of_logical, int32_t)

#define FLOATING_VALUE(type, op, of, at) (type) small(of, at) / 2
#define FLOATING_COMBINE(type)                                                                     \
	switch (op) {                                                                              \
	case OP_MAX:                                                                               \
		all = one > all ? one : all;                                                       \
		break;                                                                             \
	case OP_MIN:                                                                               \
		all = one < all ? one : all;                                                       \
		break;                                                                             \
	case OP_SUM:                                                                               \
		all += one;                                                                        \
		break;                                                                             \
	default:                                                                                   \
		all *= one;                                                                        \
		break;                                                                             \
	}
#define FLOATING_REDUCTION(name, type)                                                             \
	REDUCTION(name, type, FLOATING_VALUE, FLOATING_COMBINE, UNEQUAL)

FLOATING_REDUCTION(of_float, float)
FLOATING_REDUCTION(of_double, double)
FLOATING_REDUCTION(of_long_double, long double)

#define COMPLEX_VALUE(type, op, of, at) (type)(small(of, at) / 2.0 + small(at, of) / 2.0 * I)
#define COMPLEX_COMBINE(type)           all = op == OP_SUM ? all + one : all * one;
/* Products and sums only. */
#define OF_COMPLEX(name, type) REDUCTION(name, type, COMPLEX_VALUE, COMPLEX_COMBINE, UNEQUAL)

OF_COMPLEX(of_float_complex, float complex)
OF_COMPLEX(of_double_complex, double complex)
OF_COMPLEX(of_long_double_complex, long double complex)

/* A value and a place; of equal values the lowest place counts, which is that of the lower rank. */
#define PAIR(name, first_type, second_type)                                                        \
	struct name {                                                                              \
		first_type value;                                                                  \
		second_type place;                                                                 \
	};                                                                                         \
	REDUCTION(of_##name, struct name, PAIR_VALUE, PAIR_COMBINE, PAIR_UNEQUAL)
#define PAIR_VALUE(type, op, of, at)                                                               \
	{                                                                                          \
		.value = small(of, at), .place = 100 + of                                          \
	}
#define PAIR_COMBINE(type)                                                                         \
	if (op == OP_MAXLOC ? one.value > all.value : one.value < all.value)                       \
		all = one;
#define PAIR_UNEQUAL(a, b) ((a).value != (b).value || (a).place != (b).place)

PAIR(float_int, float, int)
PAIR(double_int, double, int)
PAIR(long_int, long, int)
PAIR(two_int, int, int)
PAIR(short_int, short, int)
PAIR(long_double_int, long double, int)
PAIR(two_float, float, float)
PAIR(two_double, double, double)

struct type {
	const char *name;
	MPI_Datatype type;
	reduction run;
	unsigned ops;
	size_t size; /* of the C type */
};

#define LARGEST_ELEMENT sizeof(long double complex)
#define TYPE(type, c_type, run, ops)                                                               \
	{                                                                                          \
#type, type, run, ops, sizeof(c_type)                                              \
	}

static int types_make(struct type *types)
{
	const struct type all[] = {
		TYPE(MPI_SIGNED_CHAR, signed char, of_int8, WHOLE),
		TYPE(MPI_UNSIGNED_CHAR, unsigned char, of_uint8, WHOLE),
		TYPE(MPI_SHORT, short, of_int16, WHOLE),
		TYPE(MPI_UNSIGNED_SHORT, unsigned short, of_uint16, WHOLE),
		TYPE(MPI_INT, int, of_int32, WHOLE),
		TYPE(MPI_UNSIGNED, unsigned, of_uint32, WHOLE),
		TYPE(MPI_LONG, long, of_int64, WHOLE),
		TYPE(MPI_UNSIGNED_LONG, unsigned long, of_signless, WHOLE),
		TYPE(MPI_LONG_LONG_INT, long long, of_int64, WHOLE),
		TYPE(MPI_LONG_LONG, long long, of_int64, WHOLE),
		TYPE(MPI_UNSIGNED_LONG_LONG, unsigned long long, of_uint64, WHOLE),
		TYPE(MPI_INT8_T, int8_t, of_int8, WHOLE),
		TYPE(MPI_INT16_T, int16_t, of_int16, WHOLE),
		TYPE(MPI_INT32_T, int32_t, of_int32, WHOLE),
		TYPE(MPI_INT64_T, int64_t, of_int64, WHOLE),
		TYPE(MPI_UINT8_T, uint8_t, of_uint8, WHOLE),
		TYPE(MPI_UINT16_T, uint16_t, of_uint16, WHOLE),
		TYPE(MPI_UINT32_T, uint32_t, of_uint32, WHOLE),
		TYPE(MPI_UINT64_T, uint64_t, of_uint64, WHOLE),
		TYPE(MPI_AINT, MPI_Aint, of_int64, FOREIGN),
		TYPE(MPI_OFFSET, MPI_Offset, of_signless, FOREIGN),
		TYPE(MPI_COUNT, MPI_Count, of_int64, FOREIGN),
		TYPE(MPI_INTEGER, int, of_int32, FOREIGN),
		TYPE(MPI_INTEGER1, int8_t, of_int8, FOREIGN),
		TYPE(MPI_INTEGER2, int16_t, of_int16, FOREIGN),
		TYPE(MPI_INTEGER4, int32_t, of_int32, FOREIGN),
		TYPE(MPI_INTEGER8, int64_t, of_int64, FOREIGN),
		TYPE(MPI_FLOAT, float, of_float, FLOATING),
		TYPE(MPI_DOUBLE, double, of_double, FLOATING),
		TYPE(MPI_LONG_DOUBLE, long double, of_long_double, FLOATING),
		TYPE(MPI_REAL, float, of_float, FLOATING),
		TYPE(MPI_DOUBLE_PRECISION, double, of_double, FLOATING),
		TYPE(MPI_REAL4, float, of_float, FLOATING),
		TYPE(MPI_REAL8, double, of_double, FLOATING),
		TYPE(MPI_C_BOOL, uint8_t, of_bool, LOGIC),
		TYPE(MPI_CXX_BOOL, uint8_t, of_bool, LOGIC),
		TYPE(MPI_LOGICAL, int32_t, of_logical, LOGIC),
		TYPE(MPI_C_COMPLEX, float complex, of_float_complex, SUMS),
		TYPE(MPI_C_FLOAT_COMPLEX, float complex, of_float_complex, SUMS),
		TYPE(MPI_C_DOUBLE_COMPLEX, double complex, of_double_complex, SUMS),
		TYPE(MPI_C_LONG_DOUBLE_COMPLEX, long double complex, of_long_double_complex, SUMS),
		TYPE(MPI_CXX_FLOAT_COMPLEX, float complex, of_float_complex, SUMS),
		TYPE(MPI_CXX_DOUBLE_COMPLEX, double complex, of_double_complex, SUMS),
		TYPE(MPI_CXX_LONG_DOUBLE_COMPLEX, long double complex, of_long_double_complex,
			SUMS),
		TYPE(MPI_COMPLEX, float complex, of_float_complex, SUMS),
		TYPE(MPI_DOUBLE_COMPLEX, double complex, of_double_complex, SUMS),
		TYPE(MPI_COMPLEX8, float complex, of_float_complex, SUMS),
		TYPE(MPI_COMPLEX16, double complex, of_double_complex, SUMS),
		TYPE(MPI_BYTE, uint8_t, of_uint8, BITS),
		TYPE(MPI_FLOAT_INT, struct float_int, of_float_int, PLACED),
		TYPE(MPI_DOUBLE_INT, struct double_int, of_double_int, PLACED),
		TYPE(MPI_LONG_INT, struct long_int, of_long_int, PLACED),
		TYPE(MPI_2INT, struct two_int, of_two_int, PLACED),
		TYPE(MPI_SHORT_INT, struct short_int, of_short_int, PLACED),
		TYPE(MPI_LONG_DOUBLE_INT, struct long_double_int, of_long_double_int, PLACED),
		TYPE(MPI_2REAL, struct two_float, of_two_float, PLACED),
		TYPE(MPI_2DOUBLE_PRECISION, struct two_double, of_two_double, PLACED),
		TYPE(MPI_2INTEGER, struct two_int, of_two_int, PLACED),
	};

	memcpy(types, all, sizeof(all));
	return (int)(sizeof(all) / sizeof(all[0]));
}

static void *from, *to;
static int wrong, combinations;

static void look(const struct type *type, enum op op, const char *call, int count, int past)
{
	int at = type->run(to, true, op, count, 0, past);

	if (at == count)
		return;
	fprintf(stderr, "rank %d of %d: %s of %d %s with %s: element %d is wrong\n", rank, ranks,
		call, count, type->name, op_names[op], at);
	wrong++;
}

static void combine(const struct type *type, enum op op, MPI_Op mpi_op, int count)
{
	int root = (count + (int)op) % ranks;

	type->run(from, false, op, count, rank, rank + 1);
	memset(to, 0xee, MOST * LARGEST_ELEMENT);
	MPI_Allreduce(from, to, count, type->type, mpi_op, MPI_COMM_WORLD);
	look(type, op, "MPI_Allreduce", count, ranks);
	memset(to, 0xee, MOST * LARGEST_ELEMENT);
	MPI_Reduce(from, to, count, type->type, mpi_op, root, MPI_COMM_WORLD);
	if (rank == root)
		look(type, op, "MPI_Reduce", count, ranks);
	memset(to, 0xee, MOST * LARGEST_ELEMENT);
	MPI_Scan(from, to, count, type->type, mpi_op, MPI_COMM_WORLD);
	look(type, op, "MPI_Scan", count, rank + 1);
	combinations++;
}

static void every(void)
{
	const MPI_Op ops[OPS] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_LOR, MPI_LXOR,
		MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
	static const int counts[] = {1, 7, MOST};
	struct type types[100];
	int count = types_make(types);

	for (int n = 0; n < count; n++) {
		MPI_Aint least, extent;

		MPI_Type_get_extent(types[n].type, &least, &extent);
		expect((size_t)extent == types[n].size, "%s has %ld bytes and not %zu",
			types[n].name, (long)extent, types[n].size);
		for (enum op op = 0; op < OPS; op++)
			for (int size = 0; size < (quick ? 2 : 3) && types[n].ops & 1u << op;
				size++)
				combine(&types[n], op, ops[op], counts[size]);
	}
}

int main(int count, char **words)
{
	begin(&count, &words);
	from = calloc(MOST, LARGEST_ELEMENT);
	to = calloc(MOST, LARGEST_ELEMENT);
	part("every type with every operation", every);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	expect(wrong == 0, "%d results are wrong", wrong);
	if (rank == 0)
		printf("    %d combinations of a type, an operation and a count\n", combinations);
	free(from);
	free(to);
	return end();
}
