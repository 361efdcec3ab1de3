/* SPDX-License-Identifier: BSD-3-Clause */
/* test_atomic.c - atomics, fetches and swaps (8, 12): each operation on each type against an oracle
 * that reckons in the widest type; what they are refused for; lists; and together with the
 * processor's own.
 *
 * Covers: lib/p4/movement.c.
 */
#include <complex.h>

#include "fixture.h"

#define ELEMENT  32 /* bytes of the longest */
#define ELEMENTS 3
#define ROUNDS   8

typedef long double complex wide;

static const struct {
	enum { SIGNED, UNSIGNED, REAL, COMPLEX } class;
	unsigned size;
} types[PTL_DATATYPE_LAST] = {
	[PTL_INT8_T] = {SIGNED, 1},
	[PTL_UINT8_T] = {UNSIGNED, 1},
	[PTL_INT16_T] = {SIGNED, 2},
	[PTL_UINT16_T] = {UNSIGNED, 2},
	[PTL_INT32_T] = {SIGNED, 4},
	[PTL_UINT32_T] = {UNSIGNED, 4},
	[PTL_FLOAT] = {REAL, 4},
	[PTL_INT64_T] = {SIGNED, 8},
	[PTL_UINT64_T] = {UNSIGNED, 8},
	[PTL_DOUBLE] = {REAL, 8},
	[PTL_FLOAT_COMPLEX] = {COMPLEX, 8},
	[PTL_DOUBLE_COMPLEX] = {COMPLEX, 16},
	[PTL_LONG_DOUBLE] = {REAL, 16},
	[PTL_LONG_DOUBLE_COMPLEX] = {COMPLEX, 32},
};

/* The table of section 12. */
static bool is_defined(ptl_op_t operation, ptl_datatype_t type)
{
	switch (operation) {
	case PTL_SUM:
	case PTL_PROD:
	case PTL_SWAP:
	case PTL_CSWAP:
	case PTL_CSWAP_NE:
		return true;
	case PTL_MIN:
	case PTL_MAX:
	case PTL_CSWAP_LE:
	case PTL_CSWAP_LT:
	case PTL_CSWAP_GE:
	case PTL_CSWAP_GT:
		return types[type].class != COMPLEX;
	default:
		return types[type].class <= UNSIGNED;
	}
}

static void element_write(ptl_datatype_t type, unsigned char *to, wide value)
{
	const float complex single = (float complex)value;
	const double complex twice = (double complex)value;
	const int64_t integer = types[type].class <= UNSIGNED ? (int64_t)creall(value) : 0;
	const float real_single = crealf(single);
	const double real_twice = creal(twice);
	const long double real_wide = creall(value);

	switch (type) {
	case PTL_FLOAT:
		memcpy(to, &real_single, sizeof(real_single));
		break;
	case PTL_DOUBLE:
		memcpy(to, &real_twice, sizeof(real_twice));
		break;
	case PTL_LONG_DOUBLE:
		memcpy(to, &real_wide, sizeof(real_wide));
		break;
	case PTL_FLOAT_COMPLEX:
		memcpy(to, &single, sizeof(single));
		break;
	case PTL_DOUBLE_COMPLEX:
		memcpy(to, &twice, sizeof(twice));
		break;
	case PTL_LONG_DOUBLE_COMPLEX:
		memcpy(to, &value, sizeof(value));
		break;
	default:
		memcpy(to, &integer, types[type].size);
	}
}

static wide element_read(ptl_datatype_t type, const unsigned char *from)
{
	const unsigned size = types[type].size;
	union {
		int64_t integer;
		float real_single;
		double real_twice;
		long double real_wide;
		float complex single;
		double complex twice;
		wide value;
		unsigned char bytes[ELEMENT];
	} element = {.value = 0};

	if (types[type].class == SIGNED && from[size - 1] >= 0x80)
		element.integer = -1;
	memcpy(&element, from, size);
	switch (type) {
	case PTL_FLOAT:
		return element.real_single;
	case PTL_DOUBLE:
		return element.real_twice;
	case PTL_LONG_DOUBLE:
		return element.real_wide;
	case PTL_FLOAT_COMPLEX:
		return element.single;
	case PTL_DOUBLE_COMPLEX:
		return element.twice;
	case PTL_LONG_DOUBLE_COMPLEX:
		return element.value;
	default:
		return types[type].class == UNSIGNED ? (wide)(uint64_t)element.integer
						     : (wide)element.integer;
	}
}

/* What the target becomes. */
static wide reckon(ptl_op_t operation, wide target, wide source, wide operand)
{
	const long double t = creall(target), s = creall(source), o = creall(operand);
	const int64_t ti = (int64_t)t, si = (int64_t)s, oi = (int64_t)o;

	switch (operation) {
	case PTL_MIN:
		return s < t ? s : t;
	case PTL_MAX:
		return s > t ? s : t;
	case PTL_SUM:
		return target + source;
	case PTL_PROD:
		return target * source;
	case PTL_LOR:
		return t != 0 || s != 0;
	case PTL_LAND:
		return t != 0 && s != 0;
	case PTL_BOR:
		return ti | si;
	case PTL_BAND:
		return ti & si;
	case PTL_LXOR:
		return (t != 0) != (s != 0);
	case PTL_BXOR:
		return ti ^ si;
	case PTL_SWAP:
		return source;
	case PTL_CSWAP:
		return operand == target ? source : target;
	case PTL_CSWAP_NE:
		return operand != target ? source : target;
	case PTL_CSWAP_LE:
		return o <= t ? source : target;
	case PTL_CSWAP_LT:
		return o < t ? source : target;
	case PTL_CSWAP_GE:
		return o >= t ? source : target;
	case PTL_CSWAP_GT:
		return o > t ? source : target;
	default:
		return (oi & si) | (~oi & ti);
	}
}

/* A small value of a type, of few, so that some are equal. */
static wide draw(ptl_datatype_t type)
{
	static uint32_t seed = 1;
	long double value;

	seed = seed * 1664525 + 1013904223;
	value = seed >> 24 & 7;
	if (types[type].class != UNSIGNED && seed >> 30 == 0)
		value = -value;
	return types[type].class == COMPLEX ? value + (long double)(seed >> 20 & 3) * I : value;
}

/* Bytes of a test: what is where, and what it should be. */
static unsigned char source[1024 + 8], result[1024 + 8];
static _Alignas(64) unsigned char target[1024 + 8];
static unsigned char operand[ELEMENT];
static wide before[ELEMENTS], after[ELEMENTS];

static void prepare(ptl_op_t operation, ptl_datatype_t type, unsigned elements)
{
	const wide o = draw(type);

	memset(target, 0, sizeof(target));
	memset(result, 0xee, sizeof(result));
	element_write(type, operand, o);
	for (unsigned i = 0; i < elements; i++) {
		const wide s = draw(type);
		unsigned char written[ELEMENT] = {0};

		before[i] = draw(type);
		element_write(type, target + i * types[type].size, before[i]);
		element_write(type, source + i * types[type].size, s);
		/* as the type has it */
		element_write(type, written, reckon(operation, before[i], s, o));
		after[i] = element_read(type, written);
	}
}

static void expect_elements(
	ptl_datatype_t type, const unsigned char *at, const wide *wanted, unsigned elements)
{
	for (unsigned i = 0; i < elements; i++)
		assert_true(element_read(type, at + i * types[type].size) == wanted[i]);
}

#define OPTIONS (PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM)

static void expect_target_event(const struct node *there, ptl_event_kind_t kind, ptl_op_t operation,
	ptl_datatype_t type, ptl_size_t bytes)
{
	const ptl_event_t event = expect_event(there->eq, kind);

	assert_int_equal(event.ni_fail_type, PTL_NI_OK);
	assert_int_equal(event.atomic_operation, operation);
	assert_int_equal(event.atomic_type, type);
	assert_int_equal(event.hdr_data, 77);
	assert_int_equal(event.rlength, bytes);
	assert_int_equal(event.mlength, bytes);
	assert_true(event.start == target);
	assert_true(event.user_ptr == target + 1);
	assert_int_equal(event.ptl_list, PTL_PRIORITY_LIST);
}

static void ptl_atomic__does_every_operation_on_every_type(void **state)
{
	struct node here, there;
	ptl_handle_md_t md;
	unsigned done = 0;

	(void)state;
	pair_open(&here, &there, MATCHING);
	entry_make(&there, target, sizeof(target), OPTIONS, 5, target + 1);
	md = md_make(&here, source, sizeof(source), PTL_MD_EVENT_CT_ACK);
	for (ptl_op_t op = 0; op < PTL_OP_LAST; op++) {
		for (ptl_datatype_t type = 0; type < PTL_DATATYPE_LAST; type++) {
			const ptl_size_t bytes = ELEMENTS * types[type].size;
			ptl_event_t event;

			if (op >= PTL_SWAP || !is_defined(op, type)) {
				assert_code(PtlAtomic(md, 0, bytes, PTL_ACK_REQ, there.id, 0, 5, 0,
						    NULL, 77, op, type),
					PTL_ARG_INVALID);
				continue;
			}
			for (unsigned round = 0; round < ROUNDS; round++) {
				prepare(op, type, ELEMENTS);
				assert_ok(PtlAtomic(md, 0, bytes, PTL_ACK_REQ, there.id, 0, 5, 0,
					&here, 77, op, type));
				expect_target_event(&there, PTL_EVENT_ATOMIC, op, type, bytes);
				assert_true(
					expect_event(here.eq, PTL_EVENT_SEND).user_ptr == &here);
				event = expect_event(here.eq, PTL_EVENT_ACK);
				assert_int_equal(event.ni_fail_type, PTL_NI_OK);
				assert_int_equal(event.mlength, bytes);
				expect_elements(type, target, after, ELEMENTS);
				assert_int_equal(target[bytes], 0);
				done++;
			}
		}
	}
	assert_int_equal(done, ROUNDS * (2 * 11 + 2 * 14 + 6 * 8));
	expect_count(here.ct, done, 0);
	expect_count(there.ct, done, 0);
	pair_close(&here, &there);
}

/* A fetch or a swap, which is defined. */
static void fetch(const struct node *here, const struct node *there, ptl_handle_md_t get,
	ptl_handle_md_t put, ptl_op_t op, ptl_datatype_t type, unsigned elements)
{
	const ptl_size_t bytes = elements * types[type].size;
	ptl_event_t event;

	prepare(op, type, elements);
	if (op >= PTL_SWAP)
		assert_ok(PtlSwap(get, 1, put, 0, bytes, there->id, 0, 5, 0, result, 77,
			op == PTL_SWAP ? NULL : operand, op, type));
	else
		assert_ok(PtlFetchAtomic(
			get, 1, put, 0, bytes, there->id, 0, 5, 0, result, 77, op, type));
	memset(operand, 0xcc, sizeof(operand)); /* it was read at the call */
	expect_target_event(there, PTL_EVENT_FETCH_ATOMIC, op, type, bytes);
	assert_true(expect_event(here->eq, PTL_EVENT_SEND).user_ptr == result);
	event = expect_event(here->eq, PTL_EVENT_REPLY);
	assert_int_equal(event.ni_fail_type, PTL_NI_OK);
	assert_int_equal(event.mlength, bytes);
	assert_true(event.user_ptr == result);
	expect_elements(type, target, after, elements);
	expect_elements(type, result + 1, before, elements);
	assert_int_equal(result[0], 0xee);
	assert_int_equal(result[1 + bytes], 0xee);
}

static void fetches_on(unsigned kind)
{
	struct node here, there;
	ptl_handle_md_t get, put;
	unsigned done = 0;

	pair_open(&here, &there, kind);
	if (kind & PTL_NI_MATCHING) {
		entry_make(&there, target, sizeof(target), OPTIONS, 5, target + 1);
	} else {
		const ptl_le_t le = {.start = target,
			.length = sizeof(target),
			.ct_handle = there.ct,
			.uid = PTL_UID_ANY,
			.options = OPTIONS};
		ptl_handle_le_t handle;

		assert_ok(PtlLEAppend(
			there.ni, there.portal, &le, PTL_PRIORITY_LIST, target + 1, &handle));
		expect_event(there.eq, PTL_EVENT_LINK);
	}
	get = md_make(&here, result, sizeof(result), PTL_MD_EVENT_CT_REPLY);
	put = md_make(&here, source, sizeof(source), PTL_MD_EVENT_CT_SEND);
	for (ptl_op_t op = 0; op < PTL_OP_LAST; op++) {
		for (ptl_datatype_t type = 0; type < PTL_DATATYPE_LAST; type++) {
			if (!is_defined(op, type)) {
				assert_code(PtlSwap(get, 0, put, 0, 1, there.id, 0, 5, 0, NULL, 0,
						    operand, op, type),
					PTL_ARG_INVALID);
				assert_code(PtlFetchAtomic(get, 0, put, 0, 1, there.id, 0, 5, 0,
						    NULL, 0, op, type),
					PTL_ARG_INVALID);
				continue;
			}
			for (unsigned round = 0; round < ROUNDS; round++) {
				fetch(&here, &there, get, put, op, type,
					op > PTL_SWAP ? 1 : ELEMENTS);
				done++;
			}
		}
	}
	expect_count(here.ct, 2 * done, 0);
	expect_count(there.ct, done, 0);
	pair_close(&here, &there);
}

static void ptl_fetch_atomic_and_ptl_swap__return_what_was_there(void **state)
{
	(void)state;
	fetches_on(MATCHING);
	fetches_on(LISTED_L);
}

static void ptl_fetch_atomic__moves_as_much_as_the_limit_says(void **state)
{
	static unsigned char results[50][1024];
	struct node here, there;
	ptl_handle_md_t get[50], put;
	ptl_size_t most;

	(void)state;
	pair_open(&here, &there, MATCHING);
	assert_int_equal(here.limits.max_atomic_size, 1024);
	assert_int_equal(here.limits.max_waw_ordered_size, 1024);
	assert_int_equal(here.limits.max_war_ordered_size, 1024);
	most = here.limits.max_fetch_atomic_size;
	assert_int_equal(most, 1024);
	entry_make(&there, target, sizeof(target), OPTIONS, 5, NULL);
	for (unsigned i = 0; i < 50; i++)
		get[i] = md_make(&here, results[i], most, PTL_MD_EVENT_CT_REPLY);
	put = md_make(&here, source, sizeof(source), 0);
	memset(target, 0, sizeof(target));
	memset(source, 1, sizeof(source));
	/* Many at once, so that their answers wait for each other. */
	for (unsigned i = 0; i < 50; i++)
		assert_ok(PtlFetchAtomic(
			get[i], 0, put, 0, most, there.id, 0, 5, 0, NULL, 0, PTL_SUM, PTL_UINT8_T));
	expect_count(here.ct, 50, 0);
	for (unsigned i = 0; i < 50; i++)
		for (unsigned at = 0; at < most; at++)
			assert_int_equal(results[i][at], i);
	for (unsigned at = 0; at < most; at++)
		assert_int_equal(target[at], 50);
	assert_int_equal(target[most], 0);
	pair_close(&here, &there);
}

static void ptl_atomic__refuses_what_it_cannot_do(void **state)
{
	struct node here, there;
	ptl_handle_md_t md, small, bare;

	(void)state;
	pair_open(&here, &there, MATCHING);
	md = md_make(&here, source, sizeof(source), 0);
	small = md_make(&here, source, 8, 0);
	assert_ok(PtlMDBind(here.ni,
		&(ptl_md_t){.start = source,
			.length = 8,
			.eq_handle = PTL_EQ_NONE,
			.ct_handle = PTL_CT_NONE},
		&bare));
#define ATOMIC(md, length, ack, op, type)                                                          \
	PtlAtomic(md, 0, length, ack, there.id, 0, 5, 0, NULL, 0, op, type)
#define FETCH(get, put, length, op, type)                                                          \
	PtlFetchAtomic(get, 0, put, 0, length, there.id, 0, 5, 0, NULL, 0, op, type)
#define SWAP(length, operand, op, type)                                                            \
	PtlSwap(md, 0, md, 0, length, there.id, 0, 5, 0, NULL, 0, operand, op, type)
	assert_code(ATOMIC(md, 1025, PTL_NO_ACK_REQ, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
	assert_code(ATOMIC(small, 9, PTL_NO_ACK_REQ, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
	assert_code(ATOMIC(bare, 8, PTL_ACK_REQ, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
	assert_code(ATOMIC(bare, 8, PTL_CT_ACK_REQ, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
	assert_code(ATOMIC(md, 8, PTL_NO_ACK_REQ, PTL_OP_LAST, PTL_INT8_T), PTL_ARG_INVALID);
	assert_code(ATOMIC(md, 8, PTL_NO_ACK_REQ, PTL_SUM, PTL_DATATYPE_LAST), PTL_ARG_INVALID);
	assert_code(ATOMIC(md, 8, PTL_NO_ACK_REQ, 255, 255), PTL_ARG_INVALID);
	assert_code(ATOMIC(PTL_INVALID_HANDLE, 8, PTL_NO_ACK_REQ, PTL_SUM, PTL_INT8_T),
		PTL_ARG_INVALID);
	assert_code(FETCH(md, md, 1025, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
	assert_code(FETCH(small, md, 9, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
	assert_code(FETCH(md, small, 9, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
	assert_code(FETCH(md, PTL_INVALID_HANDLE, 8, PTL_SUM, PTL_INT8_T), PTL_ARG_INVALID);
	assert_code(FETCH(md, md, 8, PTL_SWAP, PTL_INT8_T), PTL_ARG_INVALID);
	assert_code(SWAP(8, operand, PTL_SUM, PTL_INT64_T), PTL_ARG_INVALID);
	assert_code(SWAP(8, NULL, PTL_CSWAP, PTL_INT64_T), PTL_ARG_INVALID);
	assert_code(SWAP(8, operand, PTL_CSWAP, PTL_INT32_T), PTL_ARG_INVALID);
	assert_code(SWAP(16, operand, PTL_MSWAP, PTL_INT64_T), PTL_ARG_INVALID);
	assert_ok(PtlAtomicSync());
	pair_close(&here, &there);
}

static void atomics__work_on_whole_elements(void **state)
{
	struct node here, there;
	uint32_t words[4] = {1, 2, 3, 4}, ones[4] = {1, 1, 1, 1}, old[4] = {9, 9, 9, 9};
	ptl_handle_md_t get, put;
	ptl_event_t event;

	(void)state;
	pair_open(&here, &there, MATCHING);
	get = md_make(&here, old, sizeof(old), 0);
	put = md_make(&here, ones, sizeof(ones), PTL_MD_EVENT_SEND_DISABLE);
	entry_make(&there, words, 11, OPTIONS, 5, NULL);
	assert_ok(PtlAtomic(
		put, 0, 7, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0, PTL_SUM, PTL_UINT32_T));
	event = expect_event(there.eq, PTL_EVENT_ATOMIC);
	assert_int_equal(event.rlength, 7);
	assert_int_equal(event.mlength, 4);
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).mlength, 4);
	assert_int_equal(words[0], 2);
	assert_int_equal(words[1], 2);
	/* cut short by the entry */
	assert_ok(PtlFetchAtomic(
		get, 0, put, 0, 16, there.id, 0, 5, 0, NULL, 0, PTL_SUM, PTL_UINT32_T));
	event = expect_event(there.eq, PTL_EVENT_FETCH_ATOMIC);
	assert_int_equal(event.rlength, 16);
	assert_int_equal(event.mlength, 8);
	assert_int_equal(expect_event(here.eq, PTL_EVENT_REPLY).mlength, 8);
	assert_int_equal(words[0] + words[1] + words[2], 3 + 3 + 3);
	assert_int_equal(old[0] + old[1] + old[2], 2 + 2 + 9);
	pair_close(&here, &there);
}

static void atomics__that_are_refused_say_why_and_change_nothing(void **state)
{
	struct node here, there;
	uint64_t word = 5, one = 1, old = 9;
	ptl_handle_md_t get, put;
	ptl_handle_me_t entry;
	ptl_sr_value_t count;

	(void)state;
	pair_open(&here, &there, MATCHING);
	get = md_make(&here, &old, sizeof(old), PTL_MD_EVENT_CT_REPLY);
	put = md_make(&here, &one, sizeof(one), PTL_MD_EVENT_SEND_DISABLE);
#define REFUSED(why)                                                                               \
	do {                                                                                       \
		assert_ok(PtlFetchAtomic(                                                          \
			get, 0, put, 0, 8, there.id, 0, 5, 0, NULL, 0, PTL_SUM, PTL_INT64_T));     \
		assert_int_equal(expect_event(here.eq, PTL_EVENT_REPLY).ni_fail_type, why);        \
	} while (0)
	REFUSED(PTL_NI_DROPPED);
	/* A fetch needs both rights, an atomic only that to put. */
	entry = entry_make(&there, &word, 8, PTL_ME_OP_GET, 5, NULL);
	REFUSED(PTL_NI_OP_VIOLATION);
	assert_ok(PtlAtomic(
		put, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0, PTL_SUM, PTL_INT64_T));
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).ni_fail_type, PTL_NI_OP_VIOLATION);
	assert_ok(PtlMEUnlink(entry));
	entry = entry_make(&there, &word, 8, PTL_ME_OP_PUT, 5, NULL);
	REFUSED(PTL_NI_OP_VIOLATION);
	assert_int_equal(word, 5);
	assert_int_equal(old, 9);
	assert_ok(PtlAtomic(
		put, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0, PTL_SUM, PTL_INT64_T));
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).ni_fail_type, PTL_NI_OK);
	assert_int_equal(word, 6);
	assert_ok(PtlNIStatus(there.ni, PTL_SR_OPERATION_VIOLATIONS, &count));
	assert_int_equal(count, 3);
	expect_count(here.ct, 0, 3);
	pair_close(&here, &there);
}

static void atomics__at_the_overflow_list_are_done_there_and_told_to_the_next_entry(void **state)
{
	struct node here, there;
	uint64_t word = 5, other = 0, one = 1, old[2] = {0, 0};
	ptl_handle_md_t get, put;
	ptl_handle_me_t handle;
	ptl_event_t event;
	ptl_me_t me = {.start = &word,
		.length = 8,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET,
		.match_id = ANYONE,
		.match_bits = 5};

	(void)state;
	pair_open(&here, &there, MATCHING);
	get = md_make(&here, old, sizeof(old), 0);
	put = md_make(&here, &one, sizeof(one), PTL_MD_EVENT_SEND_DISABLE);
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_OVERFLOW_LIST, NULL, &handle));
	expect_event(there.eq, PTL_EVENT_LINK);
	assert_ok(PtlAtomic(
		put, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 3, PTL_SUM, PTL_INT64_T));
	event = expect_event(there.eq, PTL_EVENT_ATOMIC);
	assert_int_equal(event.ptl_list, PTL_OVERFLOW_LIST);
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).ptl_list, PTL_OVERFLOW_LIST);
	assert_ok(PtlSwap(
		get, 8, put, 0, 8, there.id, 0, 5, 0, NULL, 4, NULL, PTL_SWAP, PTL_UINT64_T));
	expect_event(there.eq, PTL_EVENT_FETCH_ATOMIC);
	assert_int_equal(expect_event(here.eq, PTL_EVENT_REPLY).ptl_list, PTL_OVERFLOW_LIST);
	assert_int_equal(old[1], 6);
	assert_int_equal(word, 1);
	me.start = &other;
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, &other, &handle));
	event = expect_event(there.eq, PTL_EVENT_ATOMIC_OVERFLOW);
	assert_true(event.start == &word && event.user_ptr == &other);
	assert_int_equal(event.hdr_data, 3);
	assert_int_equal(event.atomic_operation, PTL_SUM);
	assert_int_equal(event.atomic_type, PTL_INT64_T);
	event = expect_event(there.eq, PTL_EVENT_FETCH_ATOMIC_OVERFLOW);
	assert_int_equal(event.hdr_data, 4);
	assert_int_equal(event.atomic_operation, PTL_SWAP);
	assert_int_equal(event.atomic_type, PTL_UINT64_T);
	expect_event(there.eq, PTL_EVENT_LINK);
	pair_close(&here, &there);
}

static void ptl_fetch_atomic__may_fetch_to_where_its_source_is(void **state)
{
	struct node here, there;
	uint64_t word = 100, both = 1;
	ptl_handle_md_t md;

	(void)state;
	pair_open(&here, &there, MATCHING);
	entry_make(&there, &word, 8, OPTIONS | PTL_ME_EVENT_COMM_DISABLE, 5, NULL);
	md = md_make(&here, &both, sizeof(both), 0);
	for (uint64_t i = 0; i < 100; i++) {
		both = 1;
		assert_ok(PtlFetchAtomic(
			md, 0, md, 0, 8, there.id, 0, 5, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
		expect_event(here.eq, PTL_EVENT_SEND);
		expect_event(here.eq, PTL_EVENT_REPLY);
		assert_int_equal(both, 100 + i);
		assert_int_equal(word, 101 + i);
	}
	pair_close(&here, &there);
}

static void ptl_atomic__of_volatile_memory_takes_the_data_before_it_returns(void **state)
{
	struct node here, there;
	uint64_t word = 0, one, old;
	const uint64_t before_swap = 3000;
	ptl_handle_md_t put, get;

	(void)state;
	pair_open(&here, &there, MATCHING);
	entry_make(&there, &word, 8, OPTIONS | PTL_ME_EVENT_COMM_DISABLE, 5, NULL);
	put = md_make(&here, &one, sizeof(one), PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE);
	get = md_make(&here, &old, sizeof(old), 0);
	for (unsigned i = 0; i < 1000; i++) {
		one = 1;
		assert_ok(PtlAtomic(put, 0, 8, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, 0, PTL_SUM,
			PTL_UINT64_T));
		one = 2;
		assert_ok(PtlFetchAtomic(
			get, 0, put, 0, 8, there.id, 0, 5, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
		one = 1000000;
		expect_event(here.eq, PTL_EVENT_REPLY);
		assert_int_equal(old, 3 * i + 1);
	}
	one = 7;
	assert_ok(PtlSwap(get, 0, put, 0, 8, there.id, 0, 5, 0, NULL, 0, &before_swap, PTL_CSWAP,
		PTL_UINT64_T));
	one = 8;
	expect_event(here.eq, PTL_EVENT_REPLY);
	assert_int_equal(word, 7);
	pair_close(&here, &there);
}

/* --- together with the processor */

#define TIMES 5000

struct adder {
	void *word;
	unsigned size;
	atomic_bool stop;
	uint64_t added;
};

static void *adder_run(void *argument)
{
	struct adder *adder = argument;

	while (!atomic_load(&adder->stop)) {
		switch (adder->size) {
		case 1:
			__atomic_fetch_add((uint8_t *)adder->word, 1, __ATOMIC_RELAXED);
			break;
		case 2:
			__atomic_fetch_add((uint16_t *)adder->word, 1, __ATOMIC_RELAXED);
			break;
		case 4:
			__atomic_fetch_add((uint32_t *)adder->word, 1, __ATOMIC_RELAXED);
			break;
		default:
			__atomic_fetch_add((uint64_t *)adder->word, 1, __ATOMIC_RELAXED);
		}
		adder->added++;
	}
	return NULL;
}

static void atomics__are_coherent_with_the_processors_own(void **state)
{
	const ptl_datatype_t kinds[] = {PTL_UINT8_T, PTL_INT16_T, PTL_UINT32_T, PTL_INT64_T};
	struct node here, there;
	uint64_t word, one = 1;
	ptl_handle_md_t md;

	(void)state;
	pair_open(&here, &there, MATCHING);
	entry_make(&there, &word, 8, OPTIONS | PTL_ME_EVENT_COMM_DISABLE, 5, NULL);
	md = md_make(&here, &one, sizeof(one),
		PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_SUCCESS_DISABLE);
	for (unsigned k = 0; k < COUNT(kinds); k++) {
		struct adder adder = {.word = &word, .size = types[kinds[k]].size};
		uint64_t mask = adder.size == 8 ? UINT64_MAX : (1ull << 8 * adder.size) - 1;
		pthread_t thread;

		word = 0;
		assert_int_equal(pthread_create(&thread, NULL, adder_run, &adder), 0);
		for (unsigned i = 0; i < TIMES; i++)
			assert_ok(PtlAtomic(md, 0, adder.size, PTL_CT_ACK_REQ, there.id, 0, 5, 0,
				NULL, 0, PTL_SUM, kinds[k]));
		expect_count(here.ct, (k + 1) * TIMES, 0);
		atomic_store(&adder.stop, true);
		pthread_join(thread, NULL);
		assert_ok(PtlAtomicSync());
		assert_int_equal(word, (adder.added + TIMES) & mask);
	}
	pair_close(&here, &there);
}

static void triggered_atomics__begin_with_their_counter(void **state)
{
	struct node here, there;
	uint64_t word = 5, one = 1, old[2] = {0, 0}, compare = 6;
	ptl_handle_md_t get, put;
	ptl_handle_ct_t ct;
	const ptl_ct_event_t inc = {.success = 1};

	(void)state;
	pair_open(&here, &there, MATCHING);
	assert_ok(PtlCTAlloc(here.ni, &ct));
	entry_make(&there, &word, 8, OPTIONS | PTL_ME_EVENT_COMM_DISABLE, 5, NULL);
	get = md_make(&here, old, sizeof(old), PTL_MD_EVENT_CT_REPLY);
	put = md_make(&here, &one, sizeof(one), PTL_MD_EVENT_SEND_DISABLE);
	assert_ok(PtlTriggeredSwap(get, 8, put, 0, 8, there.id, 0, 5, 0, NULL, 0, &compare,
		PTL_CSWAP, PTL_UINT64_T, ct, 3));
	compare = 0;
	assert_ok(PtlTriggeredFetchAtomic(
		get, 0, put, 0, 8, there.id, 0, 5, 0, NULL, 0, PTL_SUM, PTL_UINT64_T, ct, 2));
	assert_ok(PtlTriggeredAtomic(
		put, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0, PTL_SUM, PTL_UINT64_T, ct, 1));
	one = 2; /* it is read later */
	assert_ok(PtlCTInc(ct, inc));
	expect_event(here.eq, PTL_EVENT_ACK);
	assert_int_equal(word, 7);
	one = -UINT64_C(1);
	assert_ok(PtlCTInc(ct, inc));
	expect_event(here.eq, PTL_EVENT_REPLY);
	assert_int_equal(old[0], 7);
	assert_int_equal(word, 6);
	one = 99;
	assert_ok(PtlCTInc(ct, inc));
	expect_event(here.eq, PTL_EVENT_REPLY);
	assert_int_equal(old[1], 6);
	assert_int_equal(word, 99);
	expect_count(here.ct, 2, 0);
	assert_code(PtlTriggeredAtomic(put, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0, PTL_SWAP,
			    PTL_UINT64_T, ct, 1),
		PTL_ARG_INVALID);
	pair_close(&here, &there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptl_atomic__does_every_operation_on_every_type),
		cmocka_unit_test(ptl_fetch_atomic_and_ptl_swap__return_what_was_there),
		cmocka_unit_test(ptl_fetch_atomic__moves_as_much_as_the_limit_says),
		cmocka_unit_test(ptl_atomic__refuses_what_it_cannot_do),
		cmocka_unit_test(atomics__work_on_whole_elements),
		cmocka_unit_test(atomics__that_are_refused_say_why_and_change_nothing),
		cmocka_unit_test(
			atomics__at_the_overflow_list_are_done_there_and_told_to_the_next_entry),
		cmocka_unit_test(ptl_fetch_atomic__may_fetch_to_where_its_source_is),
		cmocka_unit_test(ptl_atomic__of_volatile_memory_takes_the_data_before_it_returns),
		cmocka_unit_test(atomics__are_coherent_with_the_processors_own),
		cmocka_unit_test(triggered_atomics__begin_with_their_counter),
	};

	return cmocka_run_group_tests(tests, group_open, group_close);
}
