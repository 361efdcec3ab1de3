/* SPDX-License-Identifier: BSD-3-Clause */
/* test_order.c - which of two entries of a list comes first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <base/random.h>
#include <match/order.h>

#define TABLE_MAX 40000

static struct match_table table;
static struct match_list list;

static uint32_t random_below(uint32_t n)
{
	static uint64_t state = 1;

	return (uint32_t)(random_next(&state) % n);
}

static struct match_entry *entry_of(uint32_t i)
{
	return match_entry(&table, i);
}

static void begin(void)
{
	match_list_init(&list);
	memset(table.base, 0xee, sizeof(struct match_entry) * TABLE_MAX);
}

static void insert(uint32_t i, uint32_t previous)
{
	uint32_t next = previous == MATCH_NONE ? list.head : entry_of(previous)->next;

	order_label(&table, &list, i, previous, next);
	entry_of(i)->previous = previous;
	entry_of(i)->next = next;
	*(previous == MATCH_NONE ? &list.head : &entry_of(previous)->next) = i;
	*(next == MATCH_NONE ? &list.tail : &entry_of(next)->previous) = i;
	list.length++;
}

static void take(uint32_t i)
{
	uint32_t previous = entry_of(i)->previous;
	uint32_t next = entry_of(i)->next;

	*(previous == MATCH_NONE ? &list.head : &entry_of(previous)->next) = next;
	*(next == MATCH_NONE ? &list.tail : &entry_of(next)->previous) = previous;
	list.length--;
}

/* O1, which makes the order that of the list. */
static void check(void)
{
	uint64_t span = 0;
	uint32_t entries = 0;

	for (uint32_t i = list.head; i != MATCH_NONE; i = entry_of(i)->next) {
		uint32_t next = entry_of(i)->next;

		entries++;
		if (next == MATCH_NONE)
			continue;
		assert_true(order_before(entry_of(i), entry_of(next)));
		assert_false(order_before(entry_of(next), entry_of(i)));
		span += entry_of(next)->label - entry_of(i)->label;
	}
	assert_int_equal(entries, list.length);
	assert_in_range(span, 0, ORDER_SPAN + entries * ORDER_STEP);
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
			insert(i, near == i || !in[near] ? MATCH_NONE : near);
		in[i] = !in[i];
		if (n % 5000 == 0)
			check();
	}
	check();
}

static uint64_t labels[TABLE_MAX];

/* Inserts, and returns how many other entries got a new label. */
static uint32_t insert_counted(uint32_t i, uint32_t previous)
{
	uint32_t moved = 0;

	for (uint32_t n = 0; n < i; n++)
		labels[n] = entry_of(n)->label;
	insert(i, previous);
	for (uint32_t n = 0; n < i; n++)
		moved += labels[n] != entry_of(n)->label;
	return moved;
}

enum { COUNT = 8000 };

/* Entry after entry right before a mark, or right behind it, as programs do. */
static void order__next_to_a_mark_relabels_few_entries(void **state)
{
	(void)state;
	for (unsigned way = 0; way < 6; way++) {
		uint32_t mark = way / 2 * (COUNT / 4); /* at the head, in the middle, at the end */
		uint32_t moved = 0;

		begin();
		for (uint32_t i = 0; i <= COUNT / 2; i++)
			insert(i, list.tail);
		for (uint32_t i = list.length; i < COUNT; i++) {
			uint32_t now =
				insert_counted(i, way % 2 == 0 ? mark : entry_of(mark)->previous);

			assert_in_range(now, 0, 16);
			moved += now;
		}
		assert_in_range(moved, 1, COUNT / 8);
		check();
	}
}

/* Between the same two, now from the left and now from the right: what uses up gaps most
 * quickly. */
static void order__in_one_gap_relabels_few_entries_on_average(void **state)
{
	uint32_t left = 0;
	uint32_t moved = 0;

	(void)state;
	begin();
	insert(0, MATCH_NONE);
	insert(1, 0);
	for (uint32_t i = 2; i < COUNT; i++) {
		moved += insert_counted(i, left);
		if (random_below(2) == 0)
			left = i;
		if (i % 500 == 0)
			check();
	}
	check();
	assert_in_range(moved, 1, 8 * COUNT);
}

/* Entries come at one end and go at the other, so that labels wrap around; or one stays at the
 * other end, so that they span more and more. */
static void order__goes_on_for_ever(void **state)
{
	enum { ENTRIES = 100, ROUNDS = 20000 };

	(void)state;
	for (unsigned way = 0; way < 4; way++) {
		bool up = way % 2 == 0;
		bool stays = way >= 2;
		uint32_t next = ENTRIES;

		begin();
		for (uint32_t i = 0; i < ENTRIES; i++)
			insert(i, list.tail);
		for (unsigned n = 0; n < ROUNDS; n++) {
			const uint64_t far = ORDER_SPAN >> 10;
			uint32_t gone = up ? list.head : list.tail;

			if (stays)
				gone = up ? entry_of(gone)->next : entry_of(gone)->previous;
			take(gone);
			/* as if many more had come and gone */
			entry_of(up ? list.tail : list.head)->label += up ? far : -far;
			insert(next, up ? list.tail : MATCH_NONE);
			next = gone;
			check();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order__of_entries_put_in_anywhere_is_the_lists),
		cmocka_unit_test(order__next_to_a_mark_relabels_few_entries),
		cmocka_unit_test(order__in_one_gap_relabels_few_entries_on_average),
		cmocka_unit_test(order__goes_on_for_ever),
	};
	int failed;

	table = (struct match_table){
		aligned_alloc(64, sizeof(struct match_entry) * TABLE_MAX), TABLE_MAX};
	assert_non_null(table.base);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(table.base);
	return failed;
}
