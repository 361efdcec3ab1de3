/* SPDX-License-Identifier: BSD-3-Clause */
/* test_steps.c - how many entries a match list looks at, for searches and to keep its index.
 *
 * Covers: lib/match/match.c, lib/match/index.c, lib/match/chains.c.
 *
 * A step is a comparison with an entry, or a hash for the index. They are counted by macros around
 * the sources, so that the library needs no counter. Steps are the same on every machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <match/chains.h>
#include <match/index.h>
#include <match/match.h>
#include <match/order.h>

static uint64_t steps;

#define entry_matches(entry, key)          (steps++, entry_matches(entry, key))
#define order_before(a, b)                 (steps++, order_before(a, b))
#define chains_hash(chains, bits, process) (steps++, chains_hash(chains, bits, process))
#define chains_ask(chains, chained, i, bits, owner)                                                \
	(steps++, chains_ask(chains, chained, i, bits, owner))
/* inline in the header: one comparison at most, one hash each */
#define chains_add(chains, chained, i)          (steps++, chains_add(chains, chained, i))
#define chains_replace(chains, chained, i, new) (steps++, chains_replace(chains, chained, i, new))
#define chains_find(chains, chained, bits, owner)                                                  \
	(steps++, chains_find(chains, chained, bits, owner))

#include "../../lib/match/chains.c"
#include "../../lib/match/index.c"
#include "../../lib/match/match.c"
#include "../../lib/match/order.c"

#define ENTRIES 100000
#define LIMIT   400 /* steps of a search and what goes with it */

static struct match_table table;
static struct match_list list;

static void entries_push(uint32_t count, uint64_t masks)
{
	match_list_init(&list);
	for (uint32_t i = 0; i < count; i++) {
		struct match_entry *entry = match_entry(&table, i);

		*entry = (struct match_entry){
			.bits = (uint64_t)i << 8, .ignore = i % masks, .nid = 1, .pid = 1};
		match_push_back(&table, &list, i);
	}
}

static void entry_find(uint32_t i)
{
	const struct match_key key = {(uint64_t)i << 8, 1, 1};

	steps++; /* the look at the first entry, which is inline in the header */
	assert_int_equal(match_first(&table, &list, &key), i);
}

/* Each search finds the last entry, which leaves the list as a receive does. */
static void searches_in_reverse_order__take_few_steps(void **state)
{
	static const uint32_t counts[] = {8, 17, 64, 256, 257, 1000, ENTRIES};

	(void)state;
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		for (uint64_t masks = 1; masks <= CLASSES; masks += CLASSES - 1) {
			steps = 0;
			entries_push(counts[c], masks);
			for (uint32_t i = counts[c]; i-- > 0;) {
				entry_find(i);
				match_remove(&table, &list, i);
			}
			assert_in_range(steps, counts[c], LIMIT * (uint64_t)counts[c]);
		}
}

/* A list that becomes long and short again and again makes an index each time. */
static void windows_in_reverse_order__take_few_steps(void **state)
{
	(void)state;
	steps = 0;
	for (uint32_t round = 0; round < ENTRIES / 64; round++) {
		entries_push(64, 1);
		for (uint32_t i = 64; i-- > 0;) {
			entry_find(i);
			match_remove(&table, &list, i);
		}
	}
	assert_in_range(steps, ENTRIES, LIMIT / 10 * ENTRIES);
}

/* No index, so no work for one: a step for each search. */
static void searches_in_list_order__take_one_step_each(void **state)
{
	(void)state;
	steps = 0;
	entries_push(256, 3);
	for (uint32_t i = 0; i < 256; i++) {
		entry_find(i);
		match_remove(&table, &list, i);
	}
	assert_int_equal(steps, 256);
}

/* A search looks at 256 entries once, and then at few. */
static void searches_in_vain__take_few_steps_once_there_is_an_index(void **state)
{
	const struct match_key key = {1, 2, 3};

	(void)state;
	for (uint32_t count = 17; count <= 300; count++) {
		entries_push(count, 1);
		steps = 0;
		assert_int_equal(match_first(&table, &list, &key), MATCH_NONE);
		assert_in_range(steps, 0, 5 * count);
		steps = 0;
		assert_int_equal(match_first(&table, &list, &key), MATCH_NONE);
		assert_in_range(steps, 0, 16);
		match_list_clear(&list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(searches_in_reverse_order__take_few_steps),
		cmocka_unit_test(windows_in_reverse_order__take_few_steps),
		cmocka_unit_test(searches_in_list_order__take_one_step_each),
		cmocka_unit_test(searches_in_vain__take_few_steps_once_there_is_an_index),
	};
	int failed;

	table = (struct match_table){
		aligned_alloc(64, ENTRIES * sizeof(struct match_entry)), ENTRIES};
	assert_non_null(table.base);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(table.base);
	return failed;
}
