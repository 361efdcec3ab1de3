/* SPDX-License-Identifier: BSD-3-Clause */
/* matching.c - what it costs to find a match, and to put an entry into a list, by the list's
 * length.
 *
 *     bench-matching                 tables of times and ratios, about ten seconds
 *     bench-matching LIST N          N searches in the list of that name, for callgrind to count
 *
 * The lists:
 *
 *     N = 1, 16, 100, ...         entries that ask for one nid, pid and match bits each
 *     N+64any                     with 64 among them that take any process
 *     N+64wild                    with 64 wildcards of four masks: any nid, any pid, any process,
 *                                 half of the bits
 *     N+64odd                     with 64 that ignore other bits each
 *
 * Each search is for an entry of the list picked at random, and finds it. Searches of all lists are
 * timed in turn, and the best of the rounds counts, since machines are shared. An insertion's time
 * is the least of several runs of the same insertions; of these the longest is told, and which one
 * it is.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/random.h>
#include <match/match.h>

#define ENTRIES   100352
#define KEYS      4096 /* searches of a round */
#define ROUNDS    300
#define RUNS      9
#define WILDCARDS 64
#define BITS(i)   ((uint64_t)(i)*UINT64_C(0x10001) + 7)
#define NID(i)    ((i) % 64 + 1)
#define PID(i)    ((i) % 16 + 1)

enum extra { NONE, ANY, WILD, ODD };

static struct scenery {
	const char *name;
	uint32_t exact;
	enum extra extra;
	double best; /* ns for each search */
	struct match_list list;
	struct match_table table;
	struct match_key keys[KEYS];
} sceneries[] = {
	{.name = "1", .exact = 1},
	{.name = "16", .exact = 16},
	{.name = "100", .exact = 100},
	{.name = "1000", .exact = 1000},
	{.name = "10000", .exact = 10000},
	{.name = "65536", .exact = 65536},
	{.name = "10000+64any", .exact = 10000, .extra = ANY},
	{.name = "10000+64wild", .exact = 10000, .extra = WILD},
	{.name = "10000+64odd", .exact = 10000, .extra = ODD},
};

#define SCENERIES (sizeof(sceneries) / sizeof(sceneries[0]))

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint32_t random_below(uint32_t n)
{
	static uint64_t state = 1;

	return (uint32_t)(random_next(&state) % n);
}

static struct match_table table_make(uint32_t count)
{
	struct match_table table = {aligned_alloc(64, count * sizeof(struct match_entry)), count};

	if (table.base == NULL)
		exit(1);
	memset(table.base, 0, count * sizeof(struct match_entry));
	return table;
}

static void exact_set(const struct match_table *table, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);

	entry->bits = BITS(i);
	entry->ignore = 0;
	entry->nid = NID(i);
	entry->pid = PID(i);
}

/* Entry i, number n of those that are not exact. None matches what is searched. */
static void extra_set(const struct match_table *table, uint32_t i, uint32_t n, enum extra extra)
{
	struct match_entry *entry = match_entry(table, i);

	exact_set(table, i);
	entry->bits = UINT64_C(0xabc) << 48 | (uint64_t)n << 32;
	if (extra == ODD) {
		entry->ignore = (uint64_t)n + 1;
		return;
	}
	if (extra == ANY || n % 4 == 0 || n % 4 == 2)
		entry->nid = MATCH_ANY;
	if (extra == ANY || n % 4 == 1 || n % 4 == 2)
		entry->pid = MATCH_ANY;
	if (extra == WILD && n % 4 == 3)
		entry->ignore = UINT32_MAX;
}

static void scenery_make(struct scenery *scenery)
{
	uint32_t extras = scenery->extra == NONE ? 0 : WILDCARDS;
	uint32_t apart = scenery->exact / WILDCARDS + 1;
	uint32_t n = 0;

	scenery->table = table_make(scenery->exact + extras);
	match_list_init(&scenery->list);
	for (uint32_t i = 0; i < scenery->exact; i++) {
		exact_set(&scenery->table, i);
		match_push_back(&scenery->table, &scenery->list, i);
		if (extras > 0 && i % apart == 0) {
			extra_set(&scenery->table, scenery->exact + n, n, scenery->extra);
			match_push_back(&scenery->table, &scenery->list, scenery->exact + n++);
		}
	}
	for (uint32_t k = 0; k < KEYS; k++) {
		uint32_t i = random_below(scenery->exact);

		scenery->keys[k] = (struct match_key){BITS(i), NID(i), PID(i)};
	}
}

static __attribute__((noinline)) void search(struct scenery *scenery, uint32_t count)
{
	for (uint32_t k = 0; k < count; k++) {
		const struct match_key *key = &scenery->keys[k % KEYS];
		uint32_t found = match_first(&scenery->table, &scenery->list, key);

		if (found == MATCH_NONE || match_entry(&scenery->table, found)->bits != key->bits) {
			fprintf(stderr,
				"bench-matching: a search of list %s found the wrong entry\n",
				scenery->name);
			exit(1);
		}
	}
}

static void searches_print(void)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned s = 0; s < SCENERIES; s++) {
			struct scenery *scenery = &sceneries[s];
			uint64_t begun = now_ns();
			double time;

			search(scenery, KEYS);
			time = (double)(now_ns() - begun) / KEYS;
			if (round == 0 || time < scenery->best)
				scenery->best = time;
		}
	printf("%-14s %12s %8s\n", "search: list", "ns", "ratio");
	for (unsigned s = 0; s < SCENERIES; s++)
		printf("%-14s %12.1f %8.2f\n", sceneries[s].name, sceneries[s].best,
			sceneries[s].best / sceneries[0].best);
}

/* --- insertions --- */

static uint32_t times[ENTRIES]; /* ns, the least of all runs */
static uint32_t others[ENTRIES];

static void push_back(const struct match_table *table, struct match_list *list, uint32_t i)
{
	exact_set(table, i);
	match_push_back(table, list, i);
}

/* Between the same two, now from the left and now from the right: what uses up gaps most
 * quickly. */
static void insert_between(const struct match_table *table, struct match_list *list, uint32_t i)
{
	static uint32_t left;

	exact_set(table, i);
	if (i < 2) {
		match_push_back(table, list, i);
		left = 0;
		return;
	}
	match_insert_after(table, list, left, i);
	if (BITS(i) * UINT64_C(0x9e3779b97f4a7c15) >> 63 != 0)
		left = i;
}

/* The first eight masks have a hash table each; then many entries come of another one. */
static void push_odd(const struct match_table *table, struct match_list *list, uint32_t i)
{
	exact_set(table, i);
	match_entry(table, i)->ignore = i < ENTRIES / 2 ? i % 8 : UINT64_C(0xff00000000000000);
	match_push_back(table, list, i);
}

static int times_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void insertions_time(const char *name,
	void (*insert)(const struct match_table *table, struct match_list *list, uint32_t i))
{
	struct match_table table = table_make(ENTRIES);
	uint32_t longest = 0;

	for (unsigned run = 0; run < RUNS; run++) {
		struct match_list list;

		match_list_init(&list);
		for (uint32_t i = 0; i < ENTRIES; i++) {
			uint64_t begun = now_ns();
			uint32_t time;

			insert(&table, &list, i);
			time = (uint32_t)(now_ns() - begun);
			if (run == 0 || time < times[i])
				times[i] = time;
		}
		match_list_clear(&list);
	}
	for (uint32_t i = 0; i < ENTRIES; i++)
		if (times[i] > times[longest])
			longest = i;
	memcpy(others, times, sizeof(times));
	qsort(others, ENTRIES, sizeof(others[0]), times_compare);
	printf("%-14s %8u %8u %8u %10u %10u\n", name, others[ENTRIES / 2],
		others[ENTRIES - ENTRIES / 1000], times[longest], longest,
		times[longest] / (others[ENTRIES / 2] + 1));
	free(table.base);
}

static int counted(const char *name, const char *count)
{
	for (unsigned s = 0; s < SCENERIES; s++)
		if (strcmp(sceneries[s].name, name) == 0) {
			scenery_make(&sceneries[s]);
			search(&sceneries[s], (uint32_t)strtoul(count, NULL, 10));
			return 0;
		}
	fprintf(stderr, "bench-matching: there is no list %s\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return counted(argv[1], argv[2]);
	for (unsigned s = 0; s < SCENERIES; s++)
		scenery_make(&sceneries[s]);
	searches_print();
	printf("\n%-14s %8s %8s %8s %10s %10s\n", "insert: where", "ns", "99.9 %", "longest",
		"which one", "ratio");
	insertions_time("at the end", push_back);
	insertions_time("in one gap", insert_between);
	insertions_time("of new masks", push_odd);
	return 0;
}
