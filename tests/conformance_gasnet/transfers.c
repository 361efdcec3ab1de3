/* SPDX-License-Identifier: BSD-3-Clause */
/* transfers.c - puts, gets, values and memset in all their forms, at many sizes and alignments, and
 * more of them than a queue has entries. */
#include "ranks.h"

#include <string.h>

#define ROOM  (SEGMENT / 16) /* of each rank in each segment */
#define GUARD 16
#define MANY  65535

static uint8_t source[ROOM], back[ROOM + 2 * GUARD];
static gasnet_handle_t handles[MANY];
static uint64_t numbers[MANY];

static uint8_t *landing(unsigned at, size_t offset)
{
	return segments[at] + rank * ROOM + offset;
}

static void wait_by_tries(gasnet_handle_t handle)
{
	while (gasnet_try_syncnb(handle) != GASNET_OK)
		;
}

/* Puts by each form. Those without bulk let the source change at once. */
static void put_by(unsigned form, unsigned to, uint8_t *dest, size_t length)
{
	gasnet_handle_t handle;

	switch (form) {
	case 0:
		gasnet_put(to, dest, source, length);
		break;
	case 1:
		gasnet_put_bulk(to, dest, source, length);
		break;
	case 2:
		handle = gasnet_put_nb(to, dest, source, length);
		memset(source, 0xee, length);
		gasnet_wait_syncnb(handle);
		break;
	case 3:
		handle = gasnet_put_nb_bulk(to, dest, source, length);
		wait_by_tries(handle);
		break;
	case 4:
		gasnet_put_nbi(to, dest, source, length);
		memset(source, 0xee, length);
		gasnet_wait_syncnbi_puts();
		break;
	case 5:
		gasnet_put_nbi_bulk(to, dest, source, length);
		while (gasnet_try_syncnbi_all() != GASNET_OK)
			;
		break;
	default:
		gasnet_begin_nbi_accessregion();
		gasnet_put_nbi(to, dest, source, length);
		memset(source, 0xee, length);
		handle = gasnet_end_nbi_accessregion();
		CHECK(gasnet_try_syncnbi_all() == GASNET_OK);
		gasnet_wait_syncnb(handle);
	}
}

static void get_by(unsigned form, unsigned from, uint8_t *bytes, uint8_t *src, size_t length)
{
	gasnet_handle_t handle;

	switch (form % 5) {
	case 0:
		gasnet_get(bytes, from, src, length);
		break;
	case 1:
		gasnet_get_bulk(bytes, from, src, length);
		break;
	case 2:
		handle = gasnet_get_nb(bytes, from, src, length);
		gasnet_wait_syncnb_all(&handle, 1);
		CHECK(handle == GASNET_INVALID_HANDLE);
		break;
	case 3:
		handle = gasnet_get_nb_bulk(bytes, from, src, length);
		gasnet_wait_syncnb_some(&handle, 1);
		CHECK(handle == GASNET_INVALID_HANDLE);
		break;
	default:
		gasnet_get_nbi(bytes, from, src, length);
		gasnet_wait_syncnbi_gets();
	}
}

static void there_and_back(unsigned to, unsigned form, size_t length, size_t offset)
{
	uint8_t *dest = landing(to, GUARD + offset);
	unsigned seed = form * 7 + (unsigned)length + rank;

	memset(back, 0x11, length + 2 * GUARD);
	gasnet_put(to, dest - GUARD, back, length + 2 * GUARD);
	pattern_fill(source, length, seed);
	put_by(form, to, dest, length);
	get_by(form, to, back, dest - GUARD, length + 2 * GUARD);
	CHECK(pattern_is(back + GUARD, length, seed));
	for (unsigned i = 0; i < GUARD; i++)
		CHECK(back[i] == 0x11 && back[GUARD + length + i] == 0x11);
}

/* Sets some bytes and looks at those beside them, too. */
static void memset_by(unsigned form, unsigned to, size_t length)
{
	uint8_t *dest = landing(to, 3);
	gasnet_handle_t handle;

	memset(back, 0x22, length + 2);
	gasnet_put(to, dest, back, length + 2);
	if (form == 0) {
		gasnet_memset(to, dest + 1, 0x1ab, length);
	} else if (form == 1) {
		handle = gasnet_memset_nb(to, dest + 1, 0xab, length);
		gasnet_wait_syncnb(handle);
	} else {
		gasnet_memset_nbi(to, dest + 1, 0xab, length);
		gasnet_wait_syncnbi_puts();
	}
	gasnet_get(back, to, dest, length + 2);
	CHECK(back[0] == 0x22 && back[length + 1] == 0x22);
	for (size_t i = 0; i < length; i++)
		CHECK(back[i + 1] == 0xab);
}

static void values(unsigned to)
{
	const gasnet_register_value_t value = 0x8899aabbccddeeff;

	for (size_t length = 1; length <= 8; length++) {
		gasnet_register_value_t low =
			length == 8 ? value : value & ((UINT64_C(1) << 8 * length) - 1);
		uint8_t *dest = landing(to, 5);

		memset(back, 0x33, 10);
		gasnet_put(to, dest, back, 10);
		gasnet_put_val(to, dest + 1, value, length);
		CHECK(gasnet_get_val(to, dest + 1, length) == low);
		gasnet_put_val(to, dest + 1, 0, length);
		gasnet_wait_syncnb(gasnet_put_nb_val(to, dest + 1, value, length));
		CHECK(gasnet_wait_syncnb_valget(gasnet_get_nb_val(to, dest + 1, length)) == low);
		gasnet_put_val(to, dest + 1, 0, length);
		gasnet_put_nbi_val(to, dest + 1, value, length);
		gasnet_wait_syncnbi_puts();
		gasnet_get(back, to, dest, 10);
		CHECK(memcmp(back + 1, &value, length) == 0);
		CHECK(back[0] == 0x33 && back[length + 1] == 0x33);
	}
}

/* More than the queue has entries, and as many handles as the specification promises. */
static void many(unsigned to)
{
	gasnet_valget_handle_t values[100];
	gasnet_handle_t first;

	for (unsigned i = 0; i < MANY; i++) {
		numbers[i] = i * UINT64_C(0x100000001) + rank;
		handles[i] = i % 2 ? gasnet_put_nb(to, landing(to, 0) + i % (ROOM / 8) * 8,
					     &numbers[i], 8)
				   : gasnet_get_nb(&numbers[i], to, landing(to, 0), 8);
	}
	gasnet_wait_syncnb_some(handles, MANY);
	gasnet_wait_syncnb_all(handles, MANY);
	for (unsigned i = 0; i < MANY; i++)
		CHECK(handles[i] == GASNET_INVALID_HANDLE);
	CHECK(gasnet_try_syncnb_all(handles, MANY) == GASNET_OK);
	CHECK(gasnet_try_syncnb_some(handles, MANY) == GASNET_OK);
	gasnet_wait_syncnb_some(handles, MANY);
	gasnet_get(&numbers[0], to, landing(to, 0) + (MANY - 2) % (ROOM / 8) * 8, 8);
	CHECK(numbers[0] == (MANY - 2) * UINT64_C(0x100000001) + rank);

	for (unsigned i = 0; i < MANY; i++)
		gasnet_put_nbi_val(to, landing(to, 0) + i % (ROOM / 8) * 8, i, 8);
	gasnet_wait_syncnbi_all();
	CHECK(gasnet_get_val(to, landing(to, 0) + (MANY - 1) % (ROOM / 8) * 8, 8) == MANY - 1);

	for (unsigned i = 0; i < 100; i++)
		values[i] = gasnet_get_nb_val(to, landing(to, i * 8), 8);
	for (unsigned i = 100; i-- > 0;)
		CHECK(gasnet_wait_syncnb_valget(values[i]) ==
			gasnet_get_val(to, landing(to, i * 8), 8));

	/* Open regions, of which each has its own operations. */
	for (unsigned i = 0; i < 1000; i++) {
		gasnet_begin_nbi_accessregion();
		gasnet_put_nbi_val(to, landing(to, i * 16), i, 8);
		gasnet_put_nbi_val(to, landing(to, i * 16 + 8), i, 8);
		gasnet_memset_nbi(to, landing(to, 16000 + i), (int)i, 1);
		handles[i] = gasnet_end_nbi_accessregion();
	}
	CHECK(gasnet_try_syncnbi_all() == GASNET_OK);
	for (unsigned i = 1000; i-- > 0;) {
		gasnet_wait_syncnb(handles[i]);
		CHECK(gasnet_get_val(to, landing(to, i * 16 + 8), 8) == i);
		CHECK(gasnet_get_val(to, landing(to, 16000 + i), 1) == (i & 255));
	}
	gasnet_begin_nbi_accessregion();
	first = gasnet_end_nbi_accessregion();
	CHECK(gasnet_try_syncnb(first) == GASNET_OK);
}

void transfers_run(void)
{
	static const size_t sizes[] = {
		0, 1, 7, 8, 63, 64, 65, 1000, 32768, 32769, ROOM - 4 * GUARD};

	for (unsigned to = 0; to < ranks; to++) {
		for (unsigned form = 0; form < 7; form++)
			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
				there_and_back(to, form, sizes[i], (form * 5 + i) % GUARD);
		for (unsigned form = 0; form < 3; form++)
			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
				memset_by(form, to, sizes[i]);
		values(to);
	}
	many((rank + 1) % ranks);
	barrier_pass();
}

/* What a put of another rank has written is seen by loads after a barrier. */
void transfers_seen(void)
{
	volatile uint64_t *cell = (volatile uint64_t *)segments[rank];
	unsigned right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

	for (uint64_t i = 1; i <= 200; i++) {
		gasnet_put_val(right, segments[right] + rank * 8, i << 8 | rank, 8);
		barrier_pass();
		CHECK(cell[left] == (i << 8 | left));
		barrier_pass();
	}
}
