/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - see memory.h. */
#include "memory.h"

#define UNUSED 0x5a

uint8_t *target, *mirror;
uint8_t *local;
struct fid_mr *region;
uint64_t base, key;
int context;

void region_open(uint64_t access)
{
	assert_ok(fi_mr_reg(domain, target + EDGE, BYTES, access, 0, KEY, 0, &region, &context));
	key = fi_mr_key(region);
	base = info->domain_attr->mr_mode == FI_MR_BASIC ? (uintptr_t)target + EDGE : 0;
}

void memory_open(void)
{
	target = malloc(BYTES + 2 * EDGE);
	mirror = malloc(BYTES + 2 * EDGE);
	local = malloc(BYTES);
	assert_true(target && mirror && local);
	memset(target, UNUSED, BYTES + 2 * EDGE);
	memset(mirror, UNUSED, BYTES + 2 * EDGE);
	for (unsigned i = 0; i < BYTES; i++)
		local[i] = (uint8_t)(i * 31 + i / 251);
}

int opened(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = FI_RMA | FI_MSG | FI_FENCE});
	memory_open();
	region_open(BOTH);
	return 0;
}

int opened_basic(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = FI_RMA, .mr_mode = FI_MR_BASIC});
	memory_open();
	region_open(BOTH);
	return 0;
}

int closed(void **state)
{
	(void)state;
	if (region)
		assert_ok(fi_close(&region->fid));
	region = NULL;
	free(target);
	free(mirror);
	free(local);
	pair_close();
	return 0;
}

void target_is_as_it_should_be(void)
{
	assert_memory_equal(target, mirror, BYTES + 2 * EDGE);
}

void target_gets(const void *data, uint64_t at, size_t length)
{
	memcpy(mirror + EDGE + at, data, length);
}

void written_take(void)
{
	done_take(FI_RMA | FI_WRITE, &context);
}

void both_fail(uint64_t at, size_t length, uint64_t with, int err)
{
	const uint8_t before[3] = {local[0], local[length / 2], local[length - 1]};

	assert_ok(fi_write(sides[0].ep, local, length, NULL, sides[0].other, at, with, &context));
	failed_take(err, FI_RMA | FI_WRITE, &context);
	assert_ok(fi_writedata(
		sides[0].ep, local, length, NULL, 1, sides[0].other, at, with, &context));
	failed_take(err, FI_RMA | FI_WRITE, &context);
	assert_ok(fi_read(sides[0].ep, local, length, NULL, sides[0].other, at, with, &context));
	failed_take(err, FI_RMA | FI_READ, &context);
	assert_int_equal(local[0], before[0]);
	assert_int_equal(local[length / 2], before[1]);
	assert_int_equal(local[length - 1], before[2]);
	target_is_as_it_should_be();
}
