/* SPDX-License-Identifier: BSD-3-Clause */
/* test_credit.c - credit of two-sided messages: each rule, and many ranks that send to one receiver
 * over channels that are slow, against an oracle that adds up what is kept and under way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <base/random.h>
#include <engine/credit.h>

#define RANKS     6
#define CHANNEL   512
#define TRACES    60
#define TRACE_OPS 4000

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_next(&random_state) % n);
}

/* --- the rules --- */

static void test_cost(void **state)
{
	(void)state;
	assert_int_equal(credit_cost(0), 5);
	assert_int_equal(credit_cost(64), 5);
	assert_int_equal(credit_cost(65), 9);
	assert_int_equal(credit_cost(64 + 256), 9);
	assert_int_equal(credit_cost(64 + 257), 13);
	assert_int_equal(credit_cost(1024), 21);
	/* The header, its kept entry and what the letter brings fit into its units. */
	for (uint32_t length = 0; length < 5000; length++)
		assert_true(credit_cost(length) * CREDIT_UNIT >= length + 256);
	/* What the least window is for. */
	assert_true(credit_cost(1024) <= CREDIT_WINDOW_MIN);
	assert_true(6 * credit_cost(64) <= CREDIT_WINDOW_MIN);
}

static void test_nothing_at_first(void **state)
{
	struct credit_sent sent = {0};
	struct credit_rank rank = {0};

	(void)state;
	assert_false(credit_spend(&sent, credit_cost(0)));
	assert_int_equal(sent.spent, 0);
	assert_false(credit_use(&rank, credit_cost(0)));
	assert_int_equal(rank.used, 0);
	assert_false(credit_is_due(&rank));
	assert_false(credit_is_short(&rank));
	assert_int_equal(credit_tell(&rank), 0);
}

/* From here the last unit is spent, and not one more, at both ends, also where the numbers wrap. */
static void check_edge(uint32_t from)
{
	struct credit_pool pool = {.units = 100};
	struct credit_sent sent = {from, from};
	struct credit_rank rank = {.taken = from, .used = from, .told = from, .marked = from};

	assert_true(credit_grow(&pool, &rank));
	assert_int_equal(rank.window, 32);
	assert_true(credit_heard(&sent, credit_tell(&rank)));
	assert_true(credit_spend(&sent, 27));
	assert_true(credit_use(&rank, 27));
	assert_false(credit_spend(&sent, 6));
	assert_false(credit_use(&rank, 6));
	assert_true(credit_spend(&sent, 5));
	assert_true(credit_use(&rank, 5));
	assert_false(credit_spend(&sent, 1));
	assert_false(credit_use(&rank, 1));
	credit_take(&rank, 27);
	assert_true(credit_heard(&sent, credit_tell(&rank)));
	assert_true(credit_spend(&sent, 27));
	assert_false(credit_spend(&sent, 1));
}

static void test_edge(void **state)
{
	(void)state;
	check_edge(0);
	for (uint32_t from = UINT32_MAX - 70; from != 2; from++)
		check_edge(from);
	check_edge(INT32_MAX - 20);
}

static void test_unbelievable_grants(void **state)
{
	struct credit_sent sent = {.spent = 10, .granted = 40};

	(void)state;
	assert_false(credit_heard(&sent, 39));
	assert_false(credit_heard(&sent, 0));
	assert_false(credit_heard(&sent, 40 + CREDIT_STEP_MAX + 1));
	assert_false(credit_heard(&sent, 40 + (UINT32_C(1) << 31)));
	assert_int_equal(sent.granted, 40);
	assert_true(credit_heard(&sent, 40));
	assert_true(credit_heard(&sent, 40 + CREDIT_STEP_MAX));
	assert_int_equal(sent.granted, 40 + CREDIT_STEP_MAX);
}

static void test_growth(void **state)
{
	struct credit_pool pool = {.units = UINT32_C(1) << 22};
	struct credit_rank rank = {0};
	struct credit_rank late = {0};

	(void)state;
	/* Twice as large each time, up to the most. */
	for (uint32_t window = CREDIT_WINDOW_MIN; window <= CREDIT_WINDOW_MAX; window *= 2) {
		assert_true(credit_grow(&pool, &rank));
		assert_int_equal(rank.window, window);
		assert_int_equal(pool.granted, window);
	}
	assert_false(credit_grow(&pool, &rank));
	/* By half of what is free, and to no less than the least. */
	pool.units = pool.granted + 64;
	assert_true(credit_grow(&pool, &late));
	assert_int_equal(late.window, 32);
	assert_true(credit_grow(&pool, &late));
	assert_int_equal(late.window, 32 + 16);
	late = (struct credit_rank){0};
	assert_false(credit_grow(&pool, &late));
	assert_int_equal(late.window, 0);
	/* What was pulled is not granted. */
	pool = (struct credit_pool){.units = 100};
	assert_true(credit_pool_take(&pool, 37));
	assert_false(credit_grow(&pool, &late));
	credit_pool_give(&pool, 1);
	assert_true(credit_grow(&pool, &late));
	assert_false(credit_pool_take(&pool, 33));
	assert_true(credit_pool_take(&pool, 32));
	assert_int_equal(pool.granted, 100);
}

static void test_due(void **state)
{
	struct credit_rank small = {.window = 100, .told = 100};
	struct credit_rank large = {.window = 128, .told = 128};

	(void)state;
	small.used = small.taken = 49;
	assert_false(credit_is_due(&small));
	assert_false(credit_is_short(&small));
	small.used = small.taken = 50;
	assert_true(credit_is_due(&small));
	assert_true(credit_is_short(&small));
	large.used = large.taken = 31;
	assert_false(credit_is_due(&large));
	large.used = large.taken = 32;
	assert_true(credit_is_due(&large));
	assert_false(credit_is_short(&large));
	assert_int_equal(credit_owed(&large), 32);
	assert_int_equal(credit_tell(&large), 160);
	assert_int_equal(credit_owed(&large), 0);
	assert_false(credit_is_due(&large));
	/* Used, but kept: there is nothing to return. */
	large.used += 64;
	assert_false(credit_is_due(&large));
	assert_true(credit_is_short(&large));
}

static void test_reclaim(void **state)
{
	struct credit_pool pool = {.units = 1000, .granted = 100};
	struct credit_rank rank = {.window = 100, .told = 100, .used = 40, .taken = 30};
	struct credit_sent sent = {.spent = 60, .granted = 100};

	(void)state;
	/* What is owed comes first, and no word is said of it. */
	assert_int_equal(credit_reclaim(&pool, &rank, 20), 0);
	assert_int_equal(rank.window, 80);
	assert_int_equal(pool.granted, 80);
	assert_int_equal(credit_reclaim(&pool, &rank, 50), 40);
	assert_int_equal(rank.window, 70);
	assert_int_equal(pool.granted, 70);
	assert_int_equal(credit_owed(&rank), 0);
	/* One question at a time, and no growth meanwhile. */
	assert_int_equal(credit_reclaim(&pool, &rank, 10), 0);
	assert_false(credit_grow(&pool, &rank));
	assert_int_equal(rank.window, 70);
	/* The sender gives what it has. */
	assert_int_equal(credit_give_back(&sent, 50), 40);
	assert_false(credit_spend(&sent, 1));
	assert_true(credit_use(&rank, 20)); /* was under way */
	assert_true(credit_returned(&pool, &rank, 40));
	assert_int_equal(rank.window, 30);
	assert_int_equal(pool.granted, 30);
	assert_int_equal(rank.used, sent.spent);
	assert_int_equal(rank.told, rank.taken + rank.window);
	/* An answer was given once. */
	assert_false(credit_returned(&pool, &rank, 1));
	assert_true(credit_returned(&pool, &rank, 0));
	/* Never more than there is. */
	credit_take(&rank, 30);
	assert_int_equal(credit_reclaim(&pool, &rank, UINT32_MAX), 0);
	assert_int_equal(rank.window, 0);
	assert_int_equal(pool.granted, 0);
}

static void test_lying_answers(void **state)
{
	struct credit_pool pool = {.units = 1000, .granted = 100};
	struct credit_rank rank = {.window = 100, .told = 100, .used = 80};
	const struct credit_rank before = {.window = 100, .told = 100, .used = 80, .asked = 50};

	(void)state;
	assert_int_equal(credit_reclaim(&pool, &rank, 50), 50);
	assert_false(credit_returned(&pool, &rank, 51)); /* more than asked for */
	assert_false(credit_returned(&pool, &rank, 21)); /* more than it can have */
	assert_false(credit_returned(&pool, &rank, UINT32_MAX));
	assert_memory_equal(&rank, &before, sizeof(rank));
	assert_int_equal(pool.granted, 100);
	assert_true(credit_returned(&pool, &rank, 20));
	assert_int_equal(rank.window, 80);
	assert_int_equal(pool.granted, 80);
}

static void test_end(void **state)
{
	struct credit_pool pool = {.units = 1000, .granted = 150};
	struct credit_rank rank = {.window = 100, .told = 110, .used = 80, .taken = 70};

	(void)state;
	credit_end(&pool, &rank);
	assert_int_equal(pool.granted, 50);
	assert_int_equal(rank.told, 0);
	assert_int_equal(rank.used, 0);
	assert_int_equal(rank.window, 0);
}

/* --- many ranks, one receiver --- */

/* The order of a channel is that of sending; what is in it comes at any time. */
struct note {
	enum { NOTE_LETTER, NOTE_GRANT, NOTE_ASK, NOTE_GIVEN } kind;
	uint32_t units;
	uint32_t granted; /* of all that leave the receiver */
};

struct channel {
	struct note notes[CHANNEL];
	unsigned first, count;
};

struct sender {
	struct credit_sent sent;
	struct channel there, back;
};

/* What the oracle adds up for itself. */
struct sums {
	uint32_t under_way; /* letters, and credit given back */
	uint32_t kept[CHANNEL];
	unsigned kept_count;
	uint32_t kept_units;
};

static struct sender senders[RANKS];
static struct credit_rank ranks[RANKS];
static struct sums sums[RANKS];
static struct credit_pool pool;
static uint32_t pulled;
static bool was_short; /* a sender lacked credit in this trace */

static void channel_put(struct channel *channel, struct note note)
{
	assert_true(channel->count < CHANNEL);
	channel->notes[(channel->first + channel->count++) % CHANNEL] = note;
}

static struct note channel_get(struct channel *channel)
{
	struct note note = channel->notes[channel->first];

	channel->first = (channel->first + 1) % CHANNEL;
	channel->count--;
	return note;
}

static void begin(uint32_t units)
{
	uint32_t from = random_below(2) ? UINT32_MAX - random_below(2000) : 0;

	memset(senders, 0, sizeof(senders));
	memset(sums, 0, sizeof(sums));
	for (unsigned i = 0; i < RANKS; i++) {
		senders[i].sent = (struct credit_sent){from, from};
		ranks[i] = (struct credit_rank){
			.taken = from, .used = from, .told = from, .marked = from};
	}
	pool = (struct credit_pool){.units = units};
	pulled = 0;
	was_short = false;
}

/* C2, C3, and that each unit is in one place. */
static void check(void)
{
	uint32_t windows = 0;

	for (unsigned i = 0; i < RANKS; i++) {
		const struct credit_rank *rank = &ranks[i];
		const uint32_t there = sums[i].kept_units + sums[i].under_way;

		windows += rank->window;
		assert_true(rank->window <= CREDIT_WINDOW_MAX);
		assert_true(there <= rank->window);
		assert_int_equal(senders[i].sent.spent, rank->taken + there);
		assert_int_equal(rank->used, rank->taken + sums[i].kept_units);
		assert_true(rank->told - rank->taken <= rank->window);
		assert_true(rank->used - rank->taken <= rank->told - rank->taken);
	}
	assert_int_equal(windows + pulled, pool.granted);
	assert_true(pool.granted <= pool.units);
}

static void letter_send(unsigned i)
{
	uint32_t cost = credit_cost(random_below(4) ? random_below(65) : random_below(4000));

	if (senders[i].there.count == CHANNEL || sums[i].kept_count == CHANNEL / 2)
		return;
	if (credit_spend(&senders[i].sent, cost)) {
		channel_put(&senders[i].there, (struct note){NOTE_LETTER, cost, 0});
		sums[i].under_way += cost;
		return;
	}
	/* It sends an answered letter, of which the receiver knows that credit was lacking. */
	was_short = true;
	(void)credit_grow(&pool, &ranks[i]);
}

static void receiver_says(unsigned i, unsigned kind, uint32_t units)
{
	channel_put(&senders[i].back, (struct note){kind, units, credit_tell(&ranks[i])});
}

static void arrive_there(unsigned i)
{
	struct note note = channel_get(&senders[i].there);

	sums[i].under_way -= note.units;
	if (note.kind == NOTE_GIVEN) {
		assert_true(credit_returned(&pool, &ranks[i], note.units));
		return;
	}
	assert_true(credit_use(&ranks[i], note.units));
	sums[i].kept[sums[i].kept_count++] = note.units;
	sums[i].kept_units += note.units;
	if (credit_is_short(&ranks[i]))
		(void)credit_grow(&pool, &ranks[i]);
}

static void arrive_back(unsigned i)
{
	struct note note = channel_get(&senders[i].back);
	uint32_t back;

	assert_true(credit_heard(&senders[i].sent, note.granted));
	if (note.kind != NOTE_ASK)
		return;
	back = credit_give_back(&senders[i].sent, note.units);
	sums[i].under_way += back;
	channel_put(&senders[i].there, (struct note){NOTE_GIVEN, back, 0});
}

/* A receive takes a kept letter, any. */
static void letter_take(unsigned i)
{
	unsigned which;

	if (sums[i].kept_count == 0)
		return;
	which = random_below(sums[i].kept_count);
	credit_take(&ranks[i], sums[i].kept[which]);
	sums[i].kept_units -= sums[i].kept[which];
	sums[i].kept[which] = sums[i].kept[--sums[i].kept_count];
}

static void memory_take_back(unsigned i)
{
	uint32_t asked = credit_reclaim(&pool, &ranks[i], random_below(ranks[i].window + 2));

	if (asked > 0)
		receiver_says(i, NOTE_ASK, asked);
}

static void pull(void)
{
	if (pulled > 0 && random_below(2)) {
		credit_pool_give(&pool, pulled);
		pulled = 0;
	} else if (credit_pool_take(&pool, 16)) {
		pulled += 16;
	}
}

static void step(void)
{
	unsigned i = random_below(RANKS);
	unsigned what = random_below(100);

	/* The last rank sends seldom. */
	if (what < 40 && (i < RANKS - 1 || random_below(50) == 0))
		letter_send(i);
	else if (what < 60 && senders[i].there.count > 0 && senders[i].there.count < CHANNEL - 1)
		arrive_there(i);
	else if (what < 75 && senders[i].back.count > 0 && senders[i].there.count < CHANNEL)
		arrive_back(i);
	else if (what < 95)
		letter_take(i);
	else if (what < 97 && senders[i].back.count < CHANNEL)
		memory_take_back(i);
	else if (what < 98)
		pull();
	else if (what < 99 && senders[i].back.count < CHANNEL)
		receiver_says(i, NOTE_GRANT, 0); /* it has a message of its own */
	if (credit_is_due(&ranks[i]) && senders[i].back.count < CHANNEL)
		receiver_says(i, NOTE_GRANT, 0);
}

/* Until nothing is under way or kept: then each sender has its whole window. */
static void settle(void)
{
	for (unsigned i = 0; i < RANKS; i++) {
		while (senders[i].there.count + senders[i].back.count > 0) {
			if (senders[i].back.count > 0)
				arrive_back(i);
			while (senders[i].there.count > 0)
				arrive_there(i);
			while (sums[i].kept_count > 0)
				letter_take(i);
			check();
		}
		while (sums[i].kept_count > 0)
			letter_take(i);
		receiver_says(i, NOTE_GRANT, 0);
		arrive_back(i);
		check();
		assert_int_equal(ranks[i].asked, 0);
		assert_int_equal(senders[i].sent.granted - senders[i].sent.spent, ranks[i].window);
	}
}

static void test_ranks(void **state)
{
	unsigned traces_short = 0;

	(void)state;
	for (unsigned trace = 0; trace < TRACES; trace++) {
		random_state = trace + 1;
		begin(random_below(2) ? 200 + random_below(400) : UINT32_C(1) << 22);
		for (unsigned op = 0; op < TRACE_OPS; op++) {
			step();
			check();
		}
		settle();
		traces_short += was_short;
	}
	assert_int_equal(traces_short, TRACES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_nothing_at_first),
		cmocka_unit_test(test_edge),
		cmocka_unit_test(test_unbelievable_grants),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_reclaim),
		cmocka_unit_test(test_lying_answers),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
