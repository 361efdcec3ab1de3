/* SPDX-License-Identifier: BSD-3-Clause */
/* test_match.c - match lists, with and without an index, against a linear oracle.
 *
 * Covers: lib/match/match.c, lib/match/index.c, lib/match/chains.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <base/random.h>
#include <match/index.h>
#include <match/match.h>

#include "../sanitized.h"

#define TABLE_MAX  65536
#define TRACES     (SANITIZED ? 15u : 48u) /* at least one of each flavour */
#define TRACE_OPS  22000
#define LIST_LONG  65536
#define IGNORE_ALL UINT64_MAX

/* --- random numbers --- */

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_next(&random_state) % n);
}

/* --- memory that runs out: the percentage of allocations that fail --- */

static uint32_t memory_failures;
static uint32_t memory_calls;

static bool memory_fails(void)
{
	memory_calls++;
	return memory_failures > 0 && random_below(100) < memory_failures;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return memory_fails() ? NULL : __real_calloc(count, size);
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return memory_fails() ? NULL : __real_malloc(size);
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	return memory_fails() ? NULL : __real_realloc(memory, size);
}

/* --- the oracle: the same entries in the same order, and nothing else --- */

static struct {
	struct match_entry ask;
	uint32_t next;
	uint32_t previous;
} oracle[TABLE_MAX + 1]; /* the last one is both ends */

#define END TABLE_MAX

static void oracle_insert_after(uint32_t current, uint32_t entry)
{
	oracle[entry].previous = current;
	oracle[entry].next = oracle[current].next;
	oracle[oracle[entry].next].previous = entry;
	oracle[current].next = entry;
}

static void oracle_remove(uint32_t entry)
{
	oracle[oracle[entry].previous].next = oracle[entry].next;
	oracle[oracle[entry].next].previous = oracle[entry].previous;
}

static uint32_t oracle_after(uint32_t i, const struct match_key *key)
{
	for (i = oracle[i].next; i != END; i = oracle[i].next) {
		const struct match_entry *ask = &oracle[i].ask;

		if (((ask->bits ^ key->bits) & ~ask->ignore) == 0 &&
			(ask->nid == key->nid || ask->nid == MATCH_ANY) &&
			(ask->pid == key->pid || ask->pid == MATCH_ANY))
			return i;
	}
	return MATCH_NONE;
}

/* --- a list and its oracle, driven together --- */

static struct match_table table;
static struct match_list list;
static uint32_t members[TABLE_MAX]; /* entries in the list, in no order, ... */
static uint32_t place[TABLE_MAX];   /* and where in members[] each is */
static uint32_t unused[TABLE_MAX];
static uint32_t unused_count;

static struct match_entry *entry_of(uint32_t i)
{
	return match_entry(&table, i);
}

static void both_init(uint32_t count)
{
	match_list_init(&list);
	oracle[END].next = oracle[END].previous = END;
	memset(table.base, 0xee, sizeof(struct match_entry) * TABLE_MAX);
	table.count = count;
	for (unused_count = 0; unused_count < count; unused_count++)
		unused[unused_count] = count - 1 - unused_count;
}

static uint32_t entry_take(uint64_t bits, uint64_t ignore, uint32_t nid, uint32_t pid)
{
	uint32_t i = unused[--unused_count];
	struct match_entry *entry = entry_of(i);

	memset(entry, (int)random_below(256),
		sizeof(*entry)); /* the list may not rely on what was there */
	entry->bits = bits;
	entry->ignore = ignore;
	entry->nid = nid;
	entry->pid = pid;
	oracle[i].ask = *entry;
	return i;
}

static bool is_member(uint32_t i)
{
	return place[i] < list.length && members[place[i]] == i;
}

static void member_add(uint32_t i)
{
	place[i] = list.length - 1;
	members[place[i]] = i;
}

static void both_push_front(uint32_t i)
{
	match_push_front(&table, &list, i);
	oracle_insert_after(END, i);
	member_add(i);
}

static void both_push_back(uint32_t i)
{
	match_push_back(&table, &list, i);
	oracle_insert_after(oracle[END].previous, i);
	member_add(i);
}

static void both_insert_before(uint32_t current, uint32_t i)
{
	match_insert_before(&table, &list, current, i);
	oracle_insert_after(oracle[current].previous, i);
	member_add(i);
}

static void both_insert_after(uint32_t current, uint32_t i)
{
	match_insert_after(&table, &list, current, i);
	oracle_insert_after(current, i);
	member_add(i);
}

static void both_remove(uint32_t i)
{
	match_remove(&table, &list, i);
	oracle_remove(i);
	members[place[i]] = members[list.length];
	place[members[place[i]]] = place[i];
	unused[unused_count++] = i;
	memset(entry_of(i), 0xee, sizeof(struct match_entry));
}

/* The chain of the list is the oracle's. */
static void check_order(void)
{
	uint32_t previous = MATCH_NONE;
	uint32_t count = 0;
	uint32_t i = list.head;

	for (uint32_t o = oracle[END].next; o != END; o = oracle[o].next) {
		assert_int_equal(i, o);
		assert_int_equal(entry_of(i)->previous, previous);
		previous = i;
		i = entry_of(i)->next;
		count++;
	}
	assert_int_equal(i, MATCH_NONE);
	assert_int_equal(list.tail, previous);
	assert_int_equal(list.length, count);
}

static void check_first(const struct match_key *key)
{
	assert_int_equal(match_first(&table, &list, key), oracle_after(END, key));
}

/* No entry is for this process. If the list is longer than 16, it has an index after that. */
static void search_in_vain(void)
{
	check_first(&(struct match_key){0, 4711, 4711});
	assert_true(list.index != NULL || list.length <= 16);
}

/* Every match, in order. With removal, some go on the way, each after the next one was fetched;
 * with a chance of other_removal an entry that is not the next one goes as well. */
static void check_walk(const struct match_key *key, bool removal)
{
	uint32_t i = match_first(&table, &list, key);

	assert_int_equal(i, oracle_after(END, key));
	while (i != MATCH_NONE) {
		uint32_t next = match_next(&table, &list, i, key);

		assert_int_equal(next, oracle_after(i, key));
		if (removal && random_below(2) == 0)
			both_remove(i);
		if (removal && list.length > 0 && random_below(8) == 0) {
			uint32_t other = members[random_below(list.length)];

			if (other != next)
				both_remove(other);
		}
		i = next;
	}
}

/* --- what a trace asks for --- */

struct flavour {
	uint32_t entries; /* in the table */
	uint32_t values;  /* different bits, nids, pids */
	uint32_t masks;   /* different ignore masks, more than classes in some */
	uint32_t any;     /* percentage of wildcards */
	uint32_t growth;  /* insertions among 100 insertions and removals */
	uint32_t memory;  /* percentage of allocations that fail */
	uint32_t popular; /* percentage of entries with the mask of the season */
};

#define SEASON 1500 /* steps of a trace until another mask is popular */

static uint32_t season;

static const struct flavour flavours[] = {
	{4, 2, 2, 30, 50, 0, 0},      /* never indexed */
	{24, 3, 3, 20, 52, 0, 0},     /* around the limits of the index */
	{64, 3, 3, 20, 55, 0, 0},     /* many equal keys */
	{300, 100, 2, 10, 60, 0, 0},  /* mostly different keys */
	{300, 4, 20, 30, 60, 0, 0},   /* more masks than classes */
	{300, 8, 40, 50, 55, 0, 0},   /* many more */
	{300, 1000, 1, 0, 90, 0, 0},  /* around the length that gets an index without a search */
	{1000, 1000, 1, 0, 70, 0, 0}, /* exact */
	{1000, 2, 1, 50, 60, 0, 0},   /* few chains, long and interleaved */
	{300, 50, 6, 20, 60, 50, 0},  /* little memory */
	{300, 50, 6, 20, 55, 100, 0}, /* none */
	{1200, 50, 40, 5, 60, 0, 60}, /* masks come into fashion, and classes free */
	{3000, 6, 12, 30, 70, 0, 80}, /* the same with many equal keys */
	{2000, 9, 56, 30, 62, 0, 0},  /* a long residue, ... */
	{2000, 9, 56, 30, 50, 20, 0}, /* ... and sometimes no memory for a class */
};

static uint64_t flavour_bits(const struct flavour *flavour)
{
	return random_below(flavour->values) * UINT64_C(0x0101000000010001);
}

static uint64_t flavour_ignore(const struct flavour *flavour)
{
	uint32_t mask = random_below(flavour->masks);

	if (flavour->popular > 0 && random_below(100) < flavour->popular)
		return UINT64_C(0x7f) << season % 50;
	/* Exact ones, whole ones and odd ones. */
	return mask == 0   ? 0
	       : mask == 1 ? UINT64_C(0xffffffff)
	       : mask == 2 ? IGNORE_ALL
			   : UINT64_C(0xff) << mask;
}

static uint32_t flavour_id(const struct flavour *flavour, bool wildcard)
{
	return wildcard && random_below(100) < flavour->any ? MATCH_ANY
							    : random_below(flavour->values / 2 + 1);
}

static uint32_t flavour_entry(const struct flavour *flavour)
{
	return entry_take(flavour_bits(flavour), flavour_ignore(flavour), flavour_id(flavour, true),
		flavour_id(flavour, true));
}

static struct match_key flavour_key(const struct flavour *flavour)
{
	struct match_key key = {
		flavour_bits(flavour), flavour_id(flavour, false), flavour_id(flavour, false)};

	if (random_below(50) == 0)
		key.nid = MATCH_ANY; /* no process has it; it is no wildcard in a message */
	return key;
}

static void trace_insert(const struct flavour *flavour, uint32_t mark)
{
	uint32_t kind = random_below(list.length == 0 ? 2 : 7);
	uint32_t i = flavour_entry(flavour);

	if (kind == 0)
		both_push_front(i);
	else if (kind == 1)
		both_push_back(i);
	else if (kind == 2)
		both_insert_before(members[random_below(list.length)], i);
	else if (kind == 3)
		both_insert_after(members[random_below(list.length)], i);
	else if (kind == 4)
		both_insert_before(mark, i);
	else if (kind == 5)
		both_insert_after(mark, i);
	else
		both_insert_before(list.tail, i);
}

static void trace_step(const struct flavour *flavour, uint32_t *mark)
{
	struct match_key key = flavour_key(flavour);
	uint32_t kind = random_below(100);

	if (list.length > 0 && (!is_member(*mark) || random_below(500) == 0))
		*mark = members[random_below(list.length)];
	if (kind < 50) {
		if (random_below(100) < flavour->growth && unused_count > 0)
			trace_insert(flavour, *mark);
		else if (list.length > 0)
			both_remove(members[random_below(list.length)]);
	} else if (kind < 88) {
		check_first(&key);
	} else if (kind < 96 && list.length > 0) {
		uint32_t from = members[random_below(list.length)];

		assert_int_equal(match_next(&table, &list, from, &key), oracle_after(from, &key));
	} else if (kind < 98) {
		check_walk(&key, false);
	} else if (kind == 98) {
		check_walk(&key, true);
	} else if (random_below(20) == 0) {
		check_order();
	}
}

/* --- the tests --- */

static void match_first__of_an_empty_list_is_none(void **state)
{
	struct match_key key = {0, 0, 0};

	(void)state;
	both_init(4);
	assert_int_equal(match_first(&table, &list, &key), MATCH_NONE);
	match_list_clear(&list);
}

static void match_first__ignores_the_bits_that_do_not_count(void **state)
{
	struct match_key key = {0x1234, 1, 2};

	(void)state;
	both_init(4);
	both_push_back(entry_take(0xff34, 0xff, 1, 2));
	both_push_back(entry_take(0x12ff, 0xff, 1, 2));
	assert_int_equal(match_first(&table, &list, &key), 1);
	assert_int_equal(match_next(&table, &list, 1, &key), MATCH_NONE);
	match_list_clear(&list);
}

static void match_first__knows_wildcards_of_nid_and_pid_apart(void **state)
{
	struct match_key key = {7, 1, 2};

	(void)state;
	both_init(8);
	both_push_back(entry_take(7, 0, 9, MATCH_ANY));
	both_push_back(entry_take(7, 0, MATCH_ANY, 9));
	both_push_back(entry_take(7, 0, MATCH_ANY, 2));
	both_push_back(entry_take(7, 0, 1, MATCH_ANY));
	both_push_back(entry_take(7, 0, MATCH_ANY, MATCH_ANY));
	assert_int_equal(match_first(&table, &list, &key), 2);
	assert_int_equal(match_next(&table, &list, 2, &key), 3);
	assert_int_equal(match_next(&table, &list, 3, &key), 4);
	assert_int_equal(match_next(&table, &list, 4, &key), MATCH_NONE);
	match_list_clear(&list);
}

/* A search that passes more than 16 entries gives the list its index. */
static void match_list__gets_an_index_from_a_search_and_loses_it_when_short(void **state)
{
	(void)state;
	both_init(64);
	for (uint32_t i = 0; i < 64; i++)
		both_push_back(entry_take(i, 0, 1, 1));
	for (uint32_t i = 0; i <= 16; i++)
		check_first(&(struct match_key){i, 1, 1});
	assert_null(list.index);
	check_first(&(struct match_key){17, 1, 1});
	assert_non_null(list.index);
	check_first(&(struct match_key){17, 1, 1});
	while (list.length > 8)
		both_remove(list.head);
	assert_non_null(list.index);
	while (list.length > 1)
		both_remove(list.head);
	assert_null(list.index);
	check_order();
	match_list_clear(&list);
}

static void match_list__gets_an_index_from_a_walk_on(void **state)
{
	struct match_key key = {0, 1, 1};

	(void)state;
	both_init(64);
	both_push_back(entry_take(0, 0, 1, 1));
	for (uint32_t i = 1; i < 17; i++)
		both_push_back(entry_take(i, 0, 1, 1));
	both_push_back(entry_take(0, 0, 1, 1));
	assert_int_equal(match_next(&table, &list, list.head, &key), list.tail);
	assert_null(list.index);
	both_insert_before(list.tail, entry_take(17, 0, 1, 1));
	check_walk(&key, false);
	assert_non_null(list.index);
	check_walk(&key, false);
	match_list_clear(&list);
}

static void match_list__of_257_entries_gets_an_index(void **state)
{
	(void)state;
	both_init(300);
	while (list.length < 256)
		both_push_front(entry_take(list.length, 0, 1, 1));
	assert_null(list.index);
	both_insert_after(list.head, entry_take(256, 0, 1, 1));
	assert_non_null(list.index);
	for (uint32_t i = 0; i < 258; i++)
		check_walk(&(struct match_key){i, 1, 1}, false);
	match_list_clear(&list);
}

/* Programs whose messages come in the order of the entries pay for no index. */
static void match_list__that_matches_at_its_front_needs_no_memory(void **state)
{
	uint32_t calls = memory_calls;

	(void)state;
	both_init(256);
	for (uint32_t round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < 256; i++)
			both_push_back(entry_take(i, i % 3, 1, 1));
		for (uint32_t i = 0; i < 256; i++) {
			check_first(&(struct match_key){i, 1, 1});
			both_remove(list.head);
		}
	}
	assert_int_equal(memory_calls, calls);
	match_list_clear(&list);
}

static void match_list__works_without_memory_for_an_index(void **state)
{
	struct match_key key = {63, 1, 1};

	(void)state;
	both_init(64);
	memory_failures = 100;
	for (uint32_t i = 0; i < 64; i++)
		both_push_back(entry_take(i, 0, 1, 1));
	check_first(&key);
	assert_null(list.index);
	memory_failures = 0;
	check_first(&key);
	assert_non_null(list.index); /* when there is memory again */
	check_first(&key);
	match_list_clear(&list);
}

/* An index that gets no more memory finds the same, more slowly. */
static void match_list__finds_all_when_its_index_cannot_grow(void **state)
{
	(void)state;
	both_init(4000);
	for (uint32_t i = 0; i < 20; i++)
		both_push_back(entry_take(i, 0, 1, 1));
	search_in_vain();
	memory_failures = 100;
	for (uint32_t i = 20; unused_count > 0; i++)
		both_push_back(entry_take(i, i % 10 == 0 ? 0xf : 0, 1, 1));
	assert_non_null(list.index);
	assert_int_equal(index_classes(list.index), 1);
	for (uint32_t n = 0; n < 300; n++)
		check_walk(&(struct match_key){random_below(4100), 1, 1}, true);
	memory_failures = 0;
	while (unused_count > 0)
		both_push_front(entry_take(unused_count, 0, 1, 1));
	for (uint32_t n = 0; n < 300; n++)
		check_walk(&(struct match_key){random_below(4100), 1, 1}, false);
	match_list_clear(&list);
}

static void match_list__answers_as_the_oracle_in_random_traces(void **state)
{
	(void)state;
	for (unsigned trace = 0; trace < TRACES; trace++) {
		const struct flavour *flavour =
			&flavours[trace % (sizeof(flavours) / sizeof(flavours[0]))];
		uint32_t mark = 0;

		random_state = trace;
		both_init(flavour->entries);
		memory_failures = flavour->memory;
		for (unsigned step = 0; step < TRACE_OPS; step++) {
			season = step / SEASON;
			trace_step(flavour, &mark);
		}
		check_order();
		memory_failures = 0;
		match_list_clear(&list);
	}
}

static void match_list__needs_no_memory_while_entries_come_and_go(void **state)
{
	uint32_t calls;

	(void)state;
	both_init(64);
	for (uint32_t i = 0; i < 40; i++)
		both_push_back(entry_take(i, i % 3, 1, 1)); /* a class takes memory, and keeps it */
	search_in_vain();
	calls = memory_calls;
	for (uint32_t i = 0; i < 10000; i++) {
		both_push_back(entry_take(1000 + i, i % 3, 1, 1));
		both_remove(i % 2 == 0 ? list.head : members[random_below(list.length)]);
	}
	assert_int_equal(memory_calls, calls);
	match_list_clear(&list);
}

/* Classes that have become empty serve other masks. */
static void match_list__uses_classes_again(void **state)
{
	(void)state;
	both_init(64);
	for (uint32_t i = 0; i < 20; i++)
		both_push_back(entry_take(i, i % 2, 1, 1));
	search_in_vain();
	for (uint32_t round = 0; round < 100; round++) {
		uint32_t first = entry_take(round, UINT64_C(1) << (round % 50 + 4), 1, 1);
		uint32_t second = entry_take(round, UINT64_C(3) << (round % 50 + 4), 1, 1);

		both_push_back(first);
		both_push_front(second);
		assert_int_equal(index_residue(list.index), 0);
		both_remove(first);
		both_remove(second);
	}
	match_list_clear(&list);
}

static void expect_classes(uint32_t classes, uint32_t residue)
{
	assert_int_equal(list.index ? index_classes(list.index) : 0, classes);
	assert_int_equal(list.index ? index_residue(list.index) : 0, residue);
}

static void match_list__has_classes_for_the_first_masks(void **state)
{
	(void)state;
	both_init(64);
	for (uint32_t i = 0; i < 40; i++)
		both_push_back(entry_take(i, i < 10 ? UINT64_C(1) << i : 0, 1, 1));
	search_in_vain();
	expect_classes(CLASSES, 32); /* of 11 masks; the last one has 30 entries */
	while (list.length > 8)
		both_remove(list.head);
	expect_classes(0, 8);
	for (uint32_t i = 0; i < CLASSES; i++)
		both_push_back(entry_take(i, UINT64_C(3) << i, 1, 1));
	expect_classes(CLASSES, 8);
	both_push_back(entry_take(0, UINT64_MAX, 1, 1));
	expect_classes(CLASSES, 9);
	match_list_clear(&list);
}

/* Entries of many masks that come and go in any order, more and fewer. */
static void match_list__finds_odd_masks_in_list_order(void **state)
{
	(void)state;
	both_init(3000);
	for (unsigned round = 0; round < 6; round++) {
		while (list.length < (round % 2 == 0 ? 2900u : 900u)) {
			uint64_t ignore =
				UINT64_C(0x101) << random_below(48) | random_next(&random_state);
			uint32_t i =
				entry_take(random_next(&random_state), ignore, random_below(300),
					random_below(2) == 0 ? MATCH_ANY : random_below(300));

			if (list.length == 0 || random_below(3) == 0)
				both_push_back(i);
			else
				both_insert_before(members[random_below(list.length)], i);
		}
		for (unsigned n = 0; n < 300; n++) {
			const struct match_entry *entry =
				entry_of(members[random_below(list.length)]);

			check_walk(&(struct match_key){entry->bits, entry->nid,
					   random_below(2) == 0 ? entry->pid : 7},
				false);
		}
		check_order();
		while (list.length > 100)
			both_remove(members[random_below(list.length)]);
		check_walk(&(struct match_key){0, 1, 1}, true);
	}
	match_list_clear(&list);
}

/* Long lists: fill, look at samples, walk, take apart. */
static void long_check(unsigned samples)
{
	check_order();
	for (unsigned s = 0; s < samples; s++) {
		const struct match_entry *entry = entry_of(members[random_below(list.length)]);
		struct match_key key = {entry->bits, entry->nid == MATCH_ANY ? 5 : entry->nid,
			entry->pid == MATCH_ANY ? 5 : entry->pid};

		check_first(&key);
		key.bits ^= UINT64_C(1) << random_below(64);
		check_first(&key);
	}
}

static void long_end(void)
{
	while (list.length > 0)
		both_remove(members[random_below(list.length)]);
	assert_int_equal(list.head, MATCH_NONE);
	assert_int_equal(list.tail, MATCH_NONE);
	match_list_clear(&list);
}

static void long_list__of_different_keys_pushed_back(void **state)
{
	(void)state;
	both_init(LIST_LONG);
	for (uint32_t i = 0; i < LIST_LONG; i++)
		both_push_back(entry_take(i, 0, i % 7, i % 3));
	long_check(300);
	long_end();
}

/* Every entry matches. */
static void walk_all(const struct match_key *key)
{
	uint32_t i = match_first(&table, &list, key);

	for (uint32_t o = oracle[END].next; o != END; o = oracle[o].next) {
		assert_int_equal(i, o);
		i = match_next(&table, &list, i, key);
	}
	assert_int_equal(i, MATCH_NONE);
}

static void long_list__of_equal_keys_pushed_front(void **state)
{
	(void)state;
	both_init(LIST_LONG);
	for (uint32_t i = 0; i < LIST_LONG; i++)
		both_push_front(entry_take(1, 0, 2, 3));
	long_check(10);
	walk_all(&(struct match_key){1, 2, 3});
	long_end();
}

/* A walk over entries that all match, of two classes in turn, is not quadratic. */
static void long_list__of_two_classes_in_turn_is_walked_in_order(void **state)
{
	(void)state;
	both_init(LIST_LONG);
	for (uint32_t i = 0; i < LIST_LONG; i++)
		both_push_back(entry_take(1, i % 2 == 0 ? 0 : IGNORE_ALL, 2, 3));
	walk_all(&(struct match_key){1, 2, 3});
	long_end();
}

static void long_list__inserted_before_a_mark(void **state)
{
	uint32_t mark;

	(void)state;
	both_init(LIST_LONG);
	mark = entry_take(0, IGNORE_ALL, MATCH_ANY, MATCH_ANY);
	both_push_back(mark);
	for (uint32_t i = 1; i < LIST_LONG; i++)
		both_insert_before(mark, entry_take(i % 1000, 0, 1, i % 5 == 0 ? MATCH_ANY : 2));
	assert_int_equal(list.tail, mark);
	long_check(100);
	long_end();
}

static void long_list__inserted_after_a_mark(void **state)
{
	uint32_t mark;

	(void)state;
	both_init(LIST_LONG);
	mark = entry_take(1, 0, 1, 1);
	both_push_back(mark);
	both_push_back(entry_take(0, IGNORE_ALL, MATCH_ANY, MATCH_ANY));
	for (uint32_t i = 2; i < LIST_LONG; i++)
		both_insert_after(mark, entry_take(i % 1000, 0, 1, 2));
	assert_int_equal(list.head, mark);
	long_check(100);
	long_end();
}

/* Each goes into the same place, the worst for labels that are halved. */
static void long_list__inserted_by_turns_into_one_gap(void **state)
{
	uint32_t left;
	uint32_t right;

	(void)state;
	both_init(LIST_LONG);
	left = entry_take(0, 0, 1, 1);
	right = entry_take(1, 0, 1, 1);
	both_push_back(left);
	both_push_back(right);
	for (uint32_t i = 2; i < LIST_LONG; i++) {
		uint32_t entry = entry_take(i, 0, 1, 1);

		if (i % 2 == 0)
			both_insert_after(left, entry);
		else
			both_insert_before(right, entry);
		if (random_below(2) == 0)
			left = entry;
		else
			right = entry;
	}
	long_check(100);
	long_end();
}

static void long_list__inserted_anywhere(void **state)
{
	(void)state;
	both_init(LIST_LONG);
	both_push_back(entry_take(0, 0, 1, 1));
	for (uint32_t i = 1; i < LIST_LONG; i++)
		both_insert_after(
			members[random_below(list.length)], entry_take(i % 5000, i % 4, 1, i % 3));
	long_check(100);
	long_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(match_first__of_an_empty_list_is_none),
		cmocka_unit_test(match_first__ignores_the_bits_that_do_not_count),
		cmocka_unit_test(match_first__knows_wildcards_of_nid_and_pid_apart),
		cmocka_unit_test(match_list__gets_an_index_from_a_search_and_loses_it_when_short),
		cmocka_unit_test(match_list__gets_an_index_from_a_walk_on),
		cmocka_unit_test(match_list__of_257_entries_gets_an_index),
		cmocka_unit_test(match_list__that_matches_at_its_front_needs_no_memory),
		cmocka_unit_test(match_list__works_without_memory_for_an_index),
		cmocka_unit_test(match_list__needs_no_memory_while_entries_come_and_go),
		cmocka_unit_test(match_list__uses_classes_again),
		cmocka_unit_test(match_list__has_classes_for_the_first_masks),
		cmocka_unit_test(match_list__finds_odd_masks_in_list_order),
		cmocka_unit_test(match_list__finds_all_when_its_index_cannot_grow),
		cmocka_unit_test(match_list__answers_as_the_oracle_in_random_traces),
		cmocka_unit_test(long_list__of_different_keys_pushed_back),
		cmocka_unit_test(long_list__of_equal_keys_pushed_front),
		cmocka_unit_test(long_list__of_two_classes_in_turn_is_walked_in_order),
		cmocka_unit_test(long_list__inserted_before_a_mark),
		cmocka_unit_test(long_list__inserted_after_a_mark),
		cmocka_unit_test(long_list__inserted_by_turns_into_one_gap),
		cmocka_unit_test(long_list__inserted_anywhere),
	};
	int failed;

	table.base = aligned_alloc(64, sizeof(struct match_entry) * TABLE_MAX);
	assert_non_null(table.base);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(table.base);
	return failed;
}
