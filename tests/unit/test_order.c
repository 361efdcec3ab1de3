/* SPDX-License-Identifier: BSD-3-Clause */
/* test_order.c - which of two entries of a list comes first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <match/order.h>

#include "shortage.h"

#define TABLE_MAX 40000

static struct match_table table;
static struct match_order order;
static uint32_t head, tail, length;

static uint32_t random_below(uint32_t n)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((state >> 33) % n);
}

static struct match_entry *entry_of(uint32_t i)
{
	return match_entry(&table, i);
}

static void begin(void)
{
	head = tail = MATCH_NONE;
	length = 0;
	memset(table.base, 0xee, sizeof(struct match_entry) * TABLE_MAX);
	assert_true(order_open(&order, 0));
}

static bool insert(uint32_t i, uint32_t previous)
{
	uint32_t next = previous == MATCH_NONE ? head : entry_of(previous)->next;

	if (!order_add(&table, &order, i, previous, next))
		return false;
	entry_of(i)->previous = previous;
	entry_of(i)->next = next;
	*(previous == MATCH_NONE ? &head : &entry_of(previous)->next) = i;
	*(next == MATCH_NONE ? &tail : &entry_of(next)->previous) = i;
	length++;
	return true;
}

static void take(uint32_t i)
{
	uint32_t previous = entry_of(i)->previous;
	uint32_t next = entry_of(i)->next;

	order_remove(&table, &order, i);
	*(previous == MATCH_NONE ? &head : &entry_of(previous)->next) = next;
	*(next == MATCH_NONE ? &tail : &entry_of(next)->previous) = previous;
	length--;
}

/* The order of neighbours, and with it of all, is the list's; groups are what they should be. */
static void check(void)
{
	uint32_t entries = 0;
	uint32_t groups = 0;

	for (uint32_t i = head; i != MATCH_NONE; i = entry_of(i)->next) {
		uint32_t next = entry_of(i)->next;

		entries++;
		if (next == MATCH_NONE)
			continue;
		assert_true(order_before(&order, entry_of(i), entry_of(next)));
		assert_false(order_before(&order, entry_of(next), entry_of(i)));
	}
	assert_int_equal(entries, length);
	entries = 0;
	for (uint32_t g = order.head; g != MATCH_NONE; g = order_group(&order, g)->next) {
		const struct group *group = order_group(&order, g);

		groups++;
		entries += group->count;
		assert_in_range(group->count, 1, GROUP_MAX);
		assert_int_equal(entry_of(group->first)->group, g);
	}
	assert_int_equal(entries, length);
	assert_int_equal(groups, order.count);
}

/* --- the tests --- */

static void order__of_entries_put_in_anywhere_is_the_lists(void **state)
{
	static bool in[TABLE_MAX];

	(void)state;
	begin();
	memset(in, 0, sizeof(in));
	for (unsigned n = 0; n < 200000; n++) {
		uint32_t i = random_below(3000);
		uint32_t near = random_below(3000);

		if (in[i])
			take(i);
		else
			assert_true(insert(i, near == i || !in[near] ? MATCH_NONE : near));
		in[i] = !in[i];
		if (n % 5000 == 0)
			check();
	}
	check();
	order_close(&order);
}

/* Entries are put between the same two, now from the left and now from the right: the pattern that
 * uses gaps up most quickly. Each insertion is looked at for what it has written. */
static void order__moves_a_part_for_each_insertion(void **state)
{
	enum { COUNT = 6000, GROUPS = 1024 };
	static struct match_entry before[COUNT];
	static uint64_t labels[GROUPS];
	uint32_t left = 0;
	bool upper = false;
	unsigned moves = 0;

	(void)state;
	begin();
	assert_true(insert(0, MATCH_NONE));
	assert_true(insert(1, 0));
	for (uint32_t i = 2; i < COUNT; i++) {
		uint32_t groups = order.groups.count * BLOCK_ELEMENTS;
		uint32_t written = 0;

		memcpy(before, table.base, sizeof(before));
		for (uint32_t g = 0; g < groups; g++)
			labels[g] = order_group(&order, g)->label;
		assert_true(insert(i, left));
		for (uint32_t n = 0; n < i; n++)
			written += before[n].group != entry_of(n)->group ||
				   before[n].order != entry_of(n)->order;
		assert_in_range(written, 0, GROUP_MAX + GROUP_MAX / 2);
		written = 0;
		for (uint32_t g = 0; g < groups; g++)
			written += labels[g] != order_group(&order, g)->label;
		assert_in_range(written, 0, order.count / LABEL_PART + 2);
		if (random_below(2) == 0)
			left = i;
		moves += upper != order.upper;
		upper = order.upper;
		if (i % 500 == 0)
			check();
	}
	check();
	assert_in_range(moves, 2, COUNT);
	order_close(&order);
}

/* The labels of all groups, moved by as much. */
static void labels_shift(uint64_t by)
{
	for (uint32_t g = order.head; g != MATCH_NONE; g = order_group(&order, g)->next)
		order_group(&order, g)->label += by;
}

/* Entries come at one end and go at the other for so long that the labels of a space end. */
static void order__goes_on_at_the_ends_of_a_space(void **state)
{
	enum { COUNT = 1000, ROUNDS = 20000 };

	(void)state;
	for (unsigned way = 0; way < 4; way++) {
		bool up = way % 2 == 0;
		bool upper = way >= 2;
		uint32_t next = COUNT;

		begin();
		order.upper = upper;
		for (uint32_t i = 0; i < COUNT; i++)
			assert_true(insert(i, tail));
		/* to where the next group is too near to the end */
		if (up)
			labels_shift((upper ? UINT64_MAX : LABEL_BORDER) - LABEL_GUARD -
				     order_group(&order, order.tail)->label);
		else
			labels_shift((upper ? LABEL_BORDER : 0) + LABEL_GUARD -
				     order_group(&order, order.head)->label);
		check();
		for (unsigned n = 0; n < ROUNDS; n++) {
			uint32_t gone = up ? head : tail;

			take(gone);
			assert_true(insert(next, up ? tail : MATCH_NONE));
			next = gone;
			if (n % 1000 == 0)
				check();
		}
		check();
		assert_int_equal(order.upper, !upper);
		order_close(&order);
	}
}

/* While groups move to the other space, others come before and behind them, and go. */
static void order__holds_while_groups_come_and_go_in_a_move(void **state)
{
	uint32_t count = 20000;

	(void)state;
	for (unsigned way = 0; way < 2; way++) {
		begin();
		order.upper = way == 1;
		for (uint32_t i = 0; i < count; i++)
			assert_true(insert(i, tail));
		/* a label that is near an end begins the move, with whatever is new next */
		if (way == 0)
			labels_shift(LABEL_GUARD - order_group(&order, order.head)->label);
		else
			labels_shift(-LABEL_GUARD - order_group(&order, order.tail)->label);
		for (unsigned n = 0; n < 5000; n++) {
			uint32_t victims = random_below(3);
			uint32_t end = way == 0 ? tail : head;

			/* the groups at the cursor empty now and then */
			for (unsigned v = 0; v < 3 && order.moving != MATCH_NONE && victims == 0;
				v++) {
				uint32_t g = order.moving;
				uint32_t i = order_group(&order, g)->first;

				while (order.moving == g && length > 2) {
					uint32_t after = entry_of(i)->next;

					take(i);
					i = after;
				}
			}
			assert_true(insert(count, random_below(2) == 0 ? MATCH_NONE : tail));
			if (order.moving != MATCH_NONE)
				assert_true(insert(
					count + 1, order_group(&order, order.moving)->first));
			else
				assert_true(insert(count + 1, end));
			count += 2;
			if (n % 100 == 0)
				check();
			if (count + 2 > TABLE_MAX)
				break;
		}
		check();
		order_close(&order);
		count = 20000;
	}
}

static void order__without_memory_is_as_it_was(void **state)
{
	uint32_t count = 0;

	(void)state;
	begin();
	memory_is_short = true;
	while (insert(count, tail))
		count++;
	assert_int_equal(length, BLOCK_ELEMENTS * GROUP_MAX);
	check();
	assert_false(insert(count, head)); /* a group would be divided */
	assert_false(insert(count, MATCH_NONE));
	check();
	take(head);
	assert_true(insert(count, head));
	check();
	memory_is_short = false;
	assert_true(insert(count + 1, tail));
	check();
	order_close(&order);
	memory_is_short = true;
	assert_false(order_open(&order, 1));
	memory_is_short = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order__of_entries_put_in_anywhere_is_the_lists),
		cmocka_unit_test(order__moves_a_part_for_each_insertion),
		cmocka_unit_test(order__goes_on_at_the_ends_of_a_space),
		cmocka_unit_test(order__holds_while_groups_come_and_go_in_a_move),
		cmocka_unit_test(order__without_memory_is_as_it_was),
	};
	int failed;

	table = (struct match_table){
		aligned_alloc(64, sizeof(struct match_entry) * TABLE_MAX), TABLE_MAX};
	assert_non_null(table.base);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(table.base);
	return failed;
}
