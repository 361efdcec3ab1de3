/* SPDX-License-Identifier: BSD-3-Clause */
/* test_frames.c - atomic operations where frames have room for less than 1,024 bytes (PTL_MTU).
 * Covers: lib/fi/atomic.c. */
#include "fixture.h"

#define KEY   3
#define WORDS 128

static uint64_t target[WORDS], source[WORDS], result[WORDS];
static int context;

static void what_is_valid_fits_into_a_frame(void **state)
{
	struct fi_atomic_attr attr;
	struct fid_mr *region;
	size_t count = 0, fetched = 0;

	(void)state;
	pair_open(&(struct wish){.caps = FI_ATOMIC});
	assert_ok(fi_mr_reg(domain, target, sizeof(target), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
		KEY, 0, &region, NULL));
	for (unsigned i = 0; i < WORDS; i++)
		source[i] = i;
	assert_ok(fi_atomicvalid(sides[0].ep, FI_UINT64, FI_SUM, &count));
	assert_ok(fi_fetch_atomicvalid(sides[0].ep, FI_UINT64, FI_SUM, &fetched));
	assert_in_range(count, 1, WORDS - 1);
	assert_int_equal(fetched, count);
	assert_ok(fi_query_atomic(domain, FI_UINT64, FI_SUM, &attr, FI_FETCH_ATOMIC));
	assert_int_equal(attr.count, count);
	assert_int_equal(attr.size, 8);
	assert_ok(fi_atomic(sides[0].ep, source, count, NULL, sides[0].other, 0, KEY, FI_UINT64,
		FI_SUM, &context));
	done_take(FI_ATOMIC | FI_WRITE, &context);
	assert_ok(fi_fetch_atomic(sides[0].ep, source, count, NULL, result, NULL, sides[0].other, 0,
		KEY, FI_UINT64, FI_SUM, &context));
	done_take(FI_ATOMIC | FI_READ, &context);
	assert_memory_equal(result, source, count * sizeof(*source));
	assert_int_equal(fi_atomic(sides[0].ep, source, count + 1, NULL, sides[0].other, 0, KEY,
				 FI_UINT64, FI_SUM, &context),
		-FI_EMSGSIZE);
	nothing_completes(&sides[0]);
	assert_ok(fi_close(&region->fid));
	pair_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_valid_fits_into_a_frame)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
