/* SPDX-License-Identifier: BSD-3-Clause */
/* test_kept.c - lists of kept messages, with and without views, against a linear oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include <base/random.h>
#include <match/kept.h>

#include "../sanitized.h"

#define TABLE_MAX 20000
#define TRACES    (SANITIZED ? 1u : 3u) /* of each flavour */
#define TRACE_OPS 20000
#define LONG      10000

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_next(&random_state) % n);
}

/* --- memory that runs out: the percentage of allocations that fail --- */

static uint32_t memory_failures;

static bool memory_fails(void)
{
	return memory_failures > 0 && random_below(100) < memory_failures;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return memory_fails() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return memory_fails() ? NULL : __real_calloc(count, size);
}

void *__real_mmap64(void *at, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int file, off_t offset);

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
	return memory_fails() ? MAP_FAILED
			      : __real_mmap64(at, size, protection, flags, file, offset);
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	return memory_fails() ? NULL : __real_realloc(memory, size);
}

/* --- the oracle: the same messages in the same order, and nothing else --- */

static struct {
	uint32_t i;
	struct match_key key;
} oracle[TABLE_MAX];
static uint32_t oracle_count;

/* Where in the oracle the first message from `at` on stands that the entry asks for. */
static uint32_t oracle_find(uint32_t at, const struct match_entry *ask)
{
	while (at < oracle_count &&
		(((oracle[at].key.bits ^ ask->bits) & ~ask->ignore) != 0 ||
			(ask->nid != oracle[at].key.nid && ask->nid != MATCH_ANY) ||
			(ask->pid != oracle[at].key.pid && ask->pid != MATCH_ANY)))
		at++;
	return at;
}

static uint32_t oracle_answer(uint32_t at)
{
	return at < oracle_count ? oracle[at].i : KEPT_NONE;
}

/* --- both together --- */

static const uint64_t secret[] = {UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344)};
static struct kept_table table;
static struct kept_list list;

static void both_init(uint32_t count)
{
	assert_true(kept_table_init(&table, count, secret));
	if (count > 0)
		memset(table.base, 0xee, count * sizeof(struct kept));
	kept_list_init(&list);
	oracle_count = 0;
}

static void both_end(void)
{
	kept_list_clear(&list);
	kept_table_free(&table);
	memory_failures = 0;
}

static bool both_add(const struct match_key *key)
{
	uint32_t i = kept_take(&table);

	if (i == KEPT_NONE)
		return false;
	kept_add(&table, &list, i, key);
	oracle[oracle_count].key = *key;
	oracle[oracle_count++].i = i;
	return true;
}

static void both_remove(uint32_t at)
{
	uint32_t i = oracle[at].i;

	kept_remove(&table, &list, i);
	memset(&table.base[i], 0xee, sizeof(struct kept));
	kept_give(&table, i);
	memmove(&oracle[at], &oracle[at + 1], (--oracle_count - at) * sizeof(oracle[0]));
}

/* The list is the oracle's, in both directions. */
static void check_order(void)
{
	uint32_t previous = KEPT_NONE;
	uint32_t i = list.head;

	for (uint32_t at = 0; at < oracle_count; at++) {
		const struct kept *kept = &table.base[i];
		const struct match_key *key = &oracle[at].key;

		assert_int_equal(i, oracle[at].i);
		assert_int_equal(kept->previous, previous);
		assert_int_equal(kept->bits, key->bits);
		assert_int_equal(kept->process, (uint64_t)key->pid << 32 | key->nid);
		previous = i;
		i = kept->next;
	}
	assert_int_equal(i, KEPT_NONE);
	assert_int_equal(list.tail, previous);
	assert_int_equal(list.length, oracle_count);
}

/* Up to `most` answers in order; each goes, after the next one was found, with a chance of `taken`
 * percent. */
static void check_answers(const struct match_entry *ask, uint32_t most, uint32_t taken)
{
	uint32_t at = oracle_find(0, ask);
	uint32_t i = kept_first(&table, &list, ask);

	assert_int_equal(i, oracle_answer(at));
	while (i != KEPT_NONE && most-- > 0) {
		uint32_t next = oracle_find(at + 1, ask);

		i = kept_next(&table, &list, ask, i);
		assert_int_equal(i, oracle_answer(next));
		if (random_below(100) < taken) {
			both_remove(at);
			next--;
		}
		at = next;
	}
}

/* --- random traces --- */

struct flavour {
	uint32_t messages; /* in the table */
	uint32_t values;   /* different bits, nids, pids */
	uint32_t masks;    /* different ignore masks */
	uint32_t any;      /* percentage of wildcards */
	uint32_t growth;   /* arrivals among 100 steps */
	uint32_t memory;   /* percentage of allocations that fail */
};

static const struct flavour flavours[] = {
	{4, 2, 2, 30, 50, 0},       /* never a view */
	{24, 3, 3, 20, 50, 0},      /* around the limits of the views */
	{64, 3, 2, 20, 50, 0},      /* many alike */
	{300, 100, 2, 10, 40, 0},   /* mostly different */
	{300, 4, 20, 30, 40, 0},    /* more masks than views */
	{1000, 1000, 1, 0, 60, 0},  /* exact */
	{1000, 2, 1, 50, 50, 0},    /* few chains, long and interleaved */
	{2000, 300, 2, 50, 45, 0},  /* eight masks */
	{300, 50, 6, 20, 45, 30},   /* little memory */
	{300, 50, 6, 20, 45, 100},  /* none */
	{2000, 2000, 2, 20, 70, 0}, /* full */
};

static uint64_t flavour_bits(const struct flavour *flavour)
{
	return random_below(flavour->values) * UINT64_C(0x0101000000010001);
}

static struct match_key flavour_key(const struct flavour *flavour)
{
	return (struct match_key){
		flavour_bits(flavour), random_below(flavour->values / 2 + 1), random_below(3)};
}

/* Exact ones, whole ones and odd ones. */
static uint64_t flavour_ignore(const struct flavour *flavour)
{
	uint32_t mask = random_below(flavour->masks);

	return mask == 0   ? 0
	       : mask == 1 ? UINT64_C(0xffffffff)
	       : mask == 2 ? UINT64_MAX
			   : UINT64_C(0xff) << mask;
}

/* The list may look at nothing else of an entry. */
static struct match_entry flavour_ask(const struct flavour *flavour)
{
	struct match_key key = flavour_key(flavour);
	struct match_entry ask;

	memset(&ask, (int)random_below(256), sizeof(ask));
	if (oracle_count > 0 && random_below(2) == 0)
		key = oracle[random_below(oracle_count)].key;
	ask.bits = key.bits;
	ask.ignore = flavour_ignore(flavour);
	ask.nid = random_below(100) < flavour->any ? MATCH_ANY : key.nid;
	ask.pid = random_below(100) < flavour->any ? MATCH_ANY : key.pid;
	return ask;
}

static void trace_step(const struct flavour *flavour)
{
	uint32_t kind = random_below(100);
	struct match_entry ask;

	if (kind < flavour->growth) {
		struct match_key key = flavour_key(flavour);
		bool full = oracle_count == flavour->messages;

		assert_int_equal(both_add(&key), !full);
		return;
	}
	ask = flavour_ask(flavour);
	if (kind % 8 == 0)
		check_answers(&ask, UINT32_MAX, random_below(3) * 50);
	else if (kind % 8 == 1 && oracle_count > 0)
		both_remove(random_below(oracle_count));
	else
		check_answers(&ask, 1, 100);
}

static void trace_run(const struct flavour *flavour)
{
	both_init(flavour->messages);
	memory_failures = flavour->memory;
	for (uint32_t op = 0; op < TRACE_OPS; op++) {
		trace_step(flavour);
		if (op % 500 == 0)
			check_order();
		if (op % 5000 == 4999) /* a list that was long becomes empty */
			while (oracle_count > 0)
				both_remove(random_below(oracle_count));
	}
	check_order();
	both_end();
}

static void kept_list__answers_as_the_oracle_in_random_traces(void **state)
{
	(void)state;
	for (uint32_t f = 0; f < sizeof(flavours) / sizeof(flavours[0]); f++)
		for (uint32_t t = 0; t < TRACES; t++) {
			random_state = f * 1000 + t;
			trace_run(&flavours[f]);
		}
}

/* --- what the traces do not say --- */

static void kept_take__hands_out_each_message_once(void **state)
{
	(void)state;
	both_init(3);
	assert_int_equal(kept_take(&table), 0);
	assert_int_equal(kept_take(&table), 1);
	assert_int_equal(kept_take(&table), 2);
	assert_int_equal(kept_take(&table), KEPT_NONE);
	kept_give(&table, 1);
	assert_int_equal(kept_take(&table), 1);
	assert_int_equal(kept_take(&table), KEPT_NONE);
	both_end();
	both_init(0);
	assert_int_equal(kept_take(&table), KEPT_NONE);
	both_end();
}

static void kept_table_init__fails_without_memory(void **state)
{
	(void)state;
	memory_failures = 100;
	assert_false(kept_table_init(&table, 2, secret));
	memory_failures = 0;
	kept_table_free(&table);
}

/* Lists stay as they are, and memory that runs out changes nothing. */
static void kept_table_grow__keeps_lists(void **state)
{
	const struct match_entry asks = {
		.bits = 2000, .nid = MATCH_ANY, .pid = MATCH_ANY}; /* of none, until it is there */
	uint32_t count = 0;

	(void)state;
	both_init(0);
	for (uint32_t room = 256; room < 4096; room = 2 * room + 256) {
		memory_failures = 100;
		assert_false(kept_table_grow(&table, room));
		memory_failures = 0;
		assert_int_equal(kept_take(&table), KEPT_NONE);
		assert_true(kept_table_grow(&table, room));
		for (; count < room; count++) {
			const struct match_key key = {.bits = count, .nid = 1, .pid = 2};

			assert_int_equal(
				kept_first(&table, &list, &asks), count > 2000 ? 2000 : KEPT_NONE);
			assert_int_equal(kept_take(&table), count);
			kept_add(&table, &list, count, &key);
		}
	}
	assert_int_not_equal(kept_views(&list), 0);
	kept_list_clear(&list);
	kept_table_free(&table);
}

static struct match_key numbered(uint32_t i)
{
	return (struct match_key){.bits = i, .nid = i % 7, .pid = 1};
}

static struct match_entry asking(uint64_t bits, uint64_t ignore, uint32_t nid, uint32_t pid)
{
	return (struct match_entry){.bits = bits, .ignore = ignore, .nid = nid, .pid = pid};
}

static void long_list(void)
{
	both_init(LONG);
	for (uint32_t i = 0; i < LONG; i++) {
		struct match_key key = numbered(i);

		assert_true(both_add(&key));
	}
}

/* K3: the steps of a walk are counted, those of a look are not. */
static void kept_first__walks_a_long_list_once_for_a_mask(void **state)
{
	struct match_entry ask = asking(LONG - 1, 0, (LONG - 1) % 7, 1);

	(void)state;
	long_list();
	assert_int_equal(kept_first(&table, &list, &ask), LONG - 1);
	assert_int_equal(kept_first(&table, &list, &ask), LONG - 1);
	assert_int_equal(kept_views(&list), 1);
	assert_int_equal(list.walked, 0);
	for (uint32_t i = 0; i < LONG; i += 3) {
		ask = asking(i, 0, i % 7, 1);
		assert_int_equal(kept_first(&table, &list, &ask), i);
		assert_int_equal(kept_next(&table, &list, &ask, i), KEPT_NONE);
	}
	assert_int_equal(list.walked, 0);
	assert_int_equal(kept_views(&list), 1);
	both_end();
}

/* A message that is found at once needs no view. */
static void kept_first__makes_no_view_for_the_oldest_message(void **state)
{
	(void)state;
	long_list();
	for (uint32_t i = 0; i < LONG; i++) {
		struct match_entry ask = asking(i, 0, i % 7, 1);

		assert_int_equal(kept_first(&table, &list, &ask), i);
		both_remove(0);
		assert_int_equal(kept_views(&list), 0);
	}
	both_end();
}

static void kept_first__of_everything_is_the_head(void **state)
{
	const struct match_entry all = asking(0, UINT64_MAX, MATCH_ANY, MATCH_ANY);

	(void)state;
	long_list();
	for (uint32_t i = 0; i < LONG; i++)
		check_answers(&all, 1, 100);
	assert_int_equal(kept_views(&list), 0);
	assert_int_equal(list.walked, 0);
	both_end();
}

/* As a program with ever other masks asks; the mask that is in use meanwhile keeps its view. */
static void kept_first__gives_a_view_that_is_used_little_to_another_mask(void **state)
{
	const struct match_entry often = asking(LONG - 8, 0, (LONG - 8) % 7, 1);

	(void)state;
	long_list();
	kept_first(&table, &list, &often);
	for (uint32_t mask = 1; mask < 60; mask++) {
		const struct match_entry seldom =
			asking(LONG - 9, UINT64_C(1) << mask, MATCH_ANY, 1);

		check_answers(&seldom, 1, 0);
		check_answers(&seldom, 1, 0);
		for (unsigned n = 0; n < 100; n++)
			check_answers(&often, 1, 0);
	}
	assert_int_equal(kept_views(&list), KEPT_VIEWS);
	list.walked = 0;
	check_answers(&often, 1, 0);
	assert_int_equal(list.walked, 0);
	both_end();
}

static void kept_list__of_few_messages_has_no_views(void **state)
{
	struct match_entry ask = asking(LONG, 0, 1, 1);

	(void)state;
	long_list();
	assert_int_equal(kept_first(&table, &list, &ask), KEPT_NONE);
	assert_int_equal(kept_views(&list), 1);
	while (oracle_count > 4)
		both_remove(oracle_count / 2);
	assert_int_equal(kept_views(&list), 0);
	check_order();
	both_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_take__hands_out_each_message_once),
		cmocka_unit_test(kept_table_init__fails_without_memory),
		cmocka_unit_test(kept_table_grow__keeps_lists),
		cmocka_unit_test(kept_first__walks_a_long_list_once_for_a_mask),
		cmocka_unit_test(kept_first__makes_no_view_for_the_oldest_message),
		cmocka_unit_test(kept_first__of_everything_is_the_head),
		cmocka_unit_test(kept_first__gives_a_view_that_is_used_little_to_another_mask),
		cmocka_unit_test(kept_list__of_few_messages_has_no_views),
		cmocka_unit_test(kept_list__answers_as_the_oracle_in_random_traces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
