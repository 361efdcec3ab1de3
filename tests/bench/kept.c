/* SPDX-License-Identifier: BSD-3-Clause */
/* kept.c - what it costs to find a message among those that are kept, by how many are kept and by
 * what is asked.
 *
 *     bench-kept                     a table of times and ratios, some seconds
 *     bench-kept QUESTION KEPT N     N searches of that kind among so many, for callgrind to count
 *
 * The questions:
 *
 *     exact         bits and process
 *     any-source    bits; any process
 *     any-tag       half of the bits, and the process
 *     eight         eight masks in turn, those above among them
 *     take          bits and process; the message is taken, and another one like it comes
 *     take-eight    the same with eight masks in turn
 *
 * Each search is for a message picked at random, and finds it: all differ in what a mask counts.
 * Searches among 1 and among more are timed in turn, and the best of the rounds counts, since
 * machines are shared.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/random.h>
#include <match/kept.h>

#define KEYS   4096 /* searches of a round */
#define ROUNDS 200
#define MASKS  8

static const uint32_t depths[] = {1, 16, 100, 1000, 10000, 65536};
#define DEPTHS (sizeof(depths) / sizeof(depths[0]))

enum question { EXACT, ANY_SOURCE, ANY_TAG, EIGHT, TAKE, TAKE_EIGHT, QUESTIONS };

static const char *const names[] = {
	[EXACT] = "exact",
	[ANY_SOURCE] = "any-source",
	[ANY_TAG] = "any-tag",
	[EIGHT] = "eight",
	[TAKE] = "take",
	[TAKE_EIGHT] = "take-eight",
};

static struct scenery {
	enum question question;
	uint32_t depth;
	double best; /* ns for each search */
	struct kept_table table;
	struct kept_list list;
	struct match_entry asks[KEYS];
} sceneries[QUESTIONS][DEPTHS];

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

/* Message i: each half of its bits, and its process, are its own. */
static struct match_key key_of(uint32_t i)
{
	return (struct match_key){(uint64_t)i << 32 | (i * 3 + 1), i + 1, i + 1};
}

/* What asks for message i. */
static struct match_entry ask_of(uint32_t i, unsigned mask)
{
	static const uint64_t ignores[] = {0, UINT32_MAX, UINT64_C(0xffffffff) << 32, UINT32_MAX};
	struct match_key key = key_of(i);

	return (struct match_entry){
		.bits = key.bits,
		.ignore = ignores[mask / 2],
		.nid = mask % 2 == 1 ? MATCH_ANY : key.nid,
		.pid = mask % 2 == 1 || mask / 2 == 3 ? MATCH_ANY : key.pid,
	};
}

static unsigned mask_of(enum question question, uint32_t k)
{
	switch (question) {
	case ANY_SOURCE:
		return 1;
	case ANY_TAG:
		return 2;
	case EIGHT:
	case TAKE_EIGHT:
		return k % MASKS;
	default:
		return 0;
	}
}

static void message_add(struct scenery *scenery, const struct match_key *key)
{
	kept_add(&scenery->table, &scenery->list, kept_take(&scenery->table), key);
}

static void scenery_make(struct scenery *scenery)
{
	static const uint64_t secret[] = {
		UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344)};

	if (!kept_table_init(&scenery->table, scenery->depth, secret))
		exit(1);
	kept_list_init(&scenery->list);
	for (uint32_t i = 0; i < scenery->depth; i++) {
		struct match_key key = key_of(i);

		message_add(scenery, &key);
	}
	for (uint32_t k = 0; k < KEYS; k++)
		scenery->asks[k] =
			ask_of(random_below(scenery->depth), mask_of(scenery->question, k));
}

static uint32_t found(struct scenery *scenery, uint32_t k)
{
	const struct match_entry *ask = &scenery->asks[k % KEYS];
	uint32_t i = kept_first(&scenery->table, &scenery->list, ask);

	if (i == KEPT_NONE || scenery->table.base[i].bits != ask->bits) {
		fprintf(stderr, "bench-kept: a search '%s' found the wrong message\n",
			names[scenery->question]);
		exit(1);
	}
	return i;
}

static __attribute__((noinline)) void search(struct scenery *scenery, uint32_t count)
{
	for (uint32_t k = 0; k < count; k++)
		found(scenery, k);
}

/* A message that is found is taken, and a message like it comes. */
static __attribute__((noinline)) void take(struct scenery *scenery, uint32_t count)
{
	for (uint32_t k = 0; k < count; k++) {
		uint32_t i = found(scenery, k);
		const struct kept *kept = &scenery->table.base[i];
		struct match_key key = {
			kept->bits, (uint32_t)kept->process, (uint32_t)(kept->process >> 32)};

		kept_remove(&scenery->table, &scenery->list, i);
		kept_give(&scenery->table, i);
		message_add(scenery, &key);
	}
}

static void scenery_run(struct scenery *scenery, uint32_t count)
{
	if (scenery->question == TAKE || scenery->question == TAKE_EIGHT)
		take(scenery, count);
	else
		search(scenery, count);
}

/* Until each mask has its view, and views and machine are warm. */
static void scenery_warm(struct scenery *scenery)
{
	for (unsigned n = 0; n < 8; n++)
		scenery_run(scenery, KEYS);
}

static void scenery_time(struct scenery *scenery, bool first)
{
	uint64_t begun = now_ns();
	double time;

	scenery_run(scenery, KEYS);
	time = (double)(now_ns() - begun) / KEYS;
	if (first || time < scenery->best)
		scenery->best = time;
}

static void question_time(enum question question)
{
	struct scenery *row = sceneries[question];

	for (unsigned d = 0; d < DEPTHS; d++) {
		row[d].question = question;
		row[d].depth = depths[d];
		scenery_make(&row[d]);
		scenery_warm(&row[d]);
	}
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned d = 0; d < DEPTHS; d++)
			scenery_time(&row[d], round == 0);
	for (unsigned d = 0; d < DEPTHS; d++) {
		printf("%-12s %8u %10.1f %8.2f\n", names[question], row[d].depth, row[d].best,
			row[d].best / row[0].best);
		kept_list_clear(&row[d].list);
		kept_table_free(&row[d].table);
	}
}

static int counted(const char *name, const char *depth, const char *count)
{
	struct scenery *scenery = &sceneries[0][0];

	scenery->depth = (uint32_t)strtoul(depth, NULL, 10);
	while (scenery->question < QUESTIONS && strcmp(names[scenery->question], name) != 0)
		scenery->question++;
	if (scenery->question == QUESTIONS || scenery->depth == 0) {
		fprintf(stderr, "bench-kept: there is no question '%s' among %s messages\n", name,
			depth);
		return 2;
	}
	scenery_make(scenery);
	scenery_warm(scenery);
	scenery_run(scenery, (uint32_t)strtoul(count, NULL, 10));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return counted(argv[1], argv[2], argv[3]);
	printf("%-12s %8s %10s %8s\n", "question", "kept", "ns", "ratio");
	for (unsigned question = 0; question < QUESTIONS; question++)
		question_time(question);
	return 0;
}
