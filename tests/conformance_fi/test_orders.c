/* SPDX-License-Identifier: BSD-3-Clause */
/* test_orders.c - orders of operations on remote memory (fi_endpoint(3), msg_order): they hold also
 * when the target has no memory for a request, and the request is repeated.
 * Covers: lib/fi/rma.c, lib/engine/tiers.c. */
#include "fixture.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>

#define HANG   60 /* s */
#define KEY    3
#define WORDS  256
#define MOST   128 /* words of an operation: 1,024 bytes */
#define POSTS  60
#define ROUNDS 12
#define ORDERS (FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW)

static uint64_t target[WORDS], model[WORDS];
static struct fid_mr *region;
static int context;

/* --- memory is short: for copies that answer reads and fetches of more than 64 bytes */

#define CHUNK 65536 /* bytes of them that are allocated at a time */

static _Atomic bool memory_is_short;
static _Atomic unsigned refused;

/* The library's, too, as the program exports it. */
__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t size)
{
	static void *(*real)(size_t, size_t);

	if (size == CHUNK && atomic_load(&memory_is_short)) {
		atomic_fetch_add(&refused, 1);
		return NULL;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "aligned_alloc");
	return real(alignment, size);
}

/* --- operations, and what they are to do */

enum kind { WRITE, INJECT, WRITE_DATA, READ, SUM, FETCH, ATOMIC_READ, SWAP, KINDS };

struct step {
	enum kind kind;
	uint64_t at, words;
	uint64_t source[MOST], result[MOST], expected[MOST];
};

static struct step steps[POSTS];
static unsigned seed;

static unsigned any(unsigned below)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % below;
}

static bool reads(enum kind kind)
{
	return kind == READ || kind == FETCH || kind == ATOMIC_READ || kind == SWAP;
}

static void step_make(struct step *step)
{
	static const unsigned lengths[] = {1, 2, 8, 9, 16, 64, MOST};

	step->kind = any(KINDS);
	step->words = step->kind == SWAP ? 1 : lengths[any(7)];
	step->at = any(WORDS - (unsigned)step->words + 1);
	for (unsigned i = 0; i < step->words; i++) {
		step->source[i] = any(1u << 20);
		step->result[i] = UINT64_MAX;
	}
	memcpy(step->expected, model + step->at, step->words * 8);
	for (unsigned i = 0; i < step->words; i++)
		if (step->kind == SUM || step->kind == FETCH)
			model[step->at + i] += step->source[i];
		else if (step->kind == SWAP || !reads(step->kind))
			model[step->at + i] = step->source[i];
}

static ssize_t step_post(struct step *step)
{
	struct fid_ep *ep = sides[0].ep;
	const fi_addr_t to = sides[0].other;
	const uint64_t at = step->at * 8, bytes = step->words * 8, key = KEY;
	const uint64_t *from = step->source;

	switch (step->kind) {
	case WRITE:
		return fi_write(ep, from, bytes, NULL, to, at, key, step);
	case INJECT:
		return fi_inject_write(ep, from, bytes, to, at, key);
	case WRITE_DATA:
		return fi_writedata(ep, from, bytes, NULL, 1, to, at, key, step);
	case READ:
		return fi_read(ep, step->result, bytes, NULL, to, at, key, step);
	case SUM:
		return fi_atomic(ep, from, step->words, NULL, to, at, key, FI_UINT64, FI_SUM, step);
	case FETCH:
		return fi_fetch_atomic(ep, from, step->words, NULL, step->result, NULL, to, at, key,
			FI_UINT64, FI_SUM, step);
	case ATOMIC_READ:
		return fi_fetch_atomic(ep, NULL, step->words, NULL, step->result, NULL, to, at, key,
			FI_UINT64, FI_ATOMIC_READ, step);
	default:
		return fi_compare_atomic(ep, from, 1, NULL, step->expected, NULL, step->result,
			NULL, to, at, key, FI_UINT64, FI_CSWAP, step);
	}
}

/* --- tests */

static void ordered_open(void)
{
	pair_open(&(struct wish){.caps = FI_RMA | FI_ATOMIC, .orders = ORDERS});
	for (unsigned i = 0; i < WORDS; i++)
		target[i] = model[i] = i;
	assert_ok(fi_mr_reg(domain, target, sizeof(target), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
		KEY, 0, &region, NULL));
}

static void ordered_close(void)
{
	assert_ok(fi_close(&region->fid));
	pair_close();
}

/* The first is refused until there is memory; what comes later would not be. */
static void what_follows_a_refused_request_waits(void **state)
{
	static uint64_t before[MOST], twos[MOST], one = 1, old, after;
	struct fi_cq_tagged_entry entry;

	(void)state;
	ordered_open();
	for (unsigned i = 0; i < MOST; i++)
		twos[i] = 2;
	atomic_store(&refused, 0);
	atomic_store(&memory_is_short, true);
	assert_ok(fi_read(
		sides[0].ep, before, sizeof(before), NULL, sides[0].other, 0, KEY, &context));
	assert_ok(
		fi_write(sides[0].ep, twos, sizeof(twos), NULL, sides[0].other, 0, KEY, &context));
	assert_ok(fi_fetch_atomic(sides[0].ep, &one, 1, NULL, &old, NULL, sides[0].other, 8, KEY,
		FI_UINT64, FI_SUM, &context));
	assert_ok(fi_read(sides[0].ep, &after, 8, NULL, sides[0].other, 8, KEY, &context));
	nothing_completes(&sides[0]);
	for (const time_t end = time(NULL) + HANG; atomic_load(&refused) < 3;) {
		nothing_completes(&sides[0]);
		assert_true(time(NULL) < end);
	}
	assert_int_equal(target[0], 0);
	atomic_store(&memory_is_short, false);
	for (unsigned i = 0; i < 4; i++)
		completion_take(&sides[0], &entry, NULL);
	assert_memory_equal(before, model, sizeof(before));
	assert_int_equal(old, 2);
	assert_int_equal(after, 3);
	ordered_close();
}

/* Posts all steps, of which some are refused twice and repeated, and waits for their ends. */
static void steps_run(void)
{
	const time_t end = time(NULL) + HANG;
	struct fi_cq_tagged_entry entry;
	unsigned posted = 0, ended = 0, wanted = 0;

	atomic_store(&refused, 0);
	atomic_store(&memory_is_short, true);
	while (posted < POSTS || ended < wanted) {
		ssize_t result = posted < POSTS ? step_post(&steps[posted]) : -FI_EAGAIN;

		if (result == 0) {
			wanted += steps[posted].kind != INJECT;
			posted++;
		} else {
			assert_int_equal(result, -FI_EAGAIN);
		}
		result = fi_cq_read(sides[0].cq, &entry, 1);
		assert_true(result == 1 || result == -FI_EAGAIN);
		ended += result == 1;
		while (fi_cq_read(sides[1].cq, &entry, 1) == 1)
			;
		if (atomic_load(&refused) >= 2 && (posted == POSTS || any(64) == 0))
			atomic_store(&memory_is_short, false);
		assert_true(time(NULL) < end);
	}
	assert_false(atomic_load(&memory_is_short));
}

static void orders_hold_when_requests_are_repeated(void **state)
{
	uint64_t last;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		seed = round + 1;
		ordered_open();
		for (unsigned i = 0; i < POSTS; i++)
			step_make(&steps[i]);
		steps_run();
		/* Behind injects. */
		assert_ok(fi_read(sides[0].ep, &last, 8, NULL, sides[0].other, 0, KEY, &context));
		done_take(FI_RMA | FI_READ, &context);
		for (unsigned i = 0; i < POSTS; i++)
			if (reads(steps[i].kind) &&
				memcmp(steps[i].result, steps[i].expected, steps[i].words * 8) != 0)
				fail_msg("step %u of round %u has read other values", i, round);
		assert_memory_equal(target, model, sizeof(model));
		ordered_close();
	}
}

/* Such a read is tried twice. */
static void a_write_does_not_overtake_an_atomic_read(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint64_t old, more = 7;
	struct fid_mr *mr;

	(void)state;
	ordered_open();
	assert_ok(fi_mr_reg(
		domain, target, sizeof(target), FI_REMOTE_READ, 0, KEY + 1, 0, &mr, NULL));
	for (unsigned i = 0; i < 100; i++, more++) {
		target[5] = i;
		assert_ok(fi_fetch_atomic(sides[0].ep, NULL, 1, NULL, &old, NULL, sides[0].other,
			40, KEY + 1, FI_UINT64, FI_ATOMIC_READ, &context));
		assert_ok(fi_inject_write(sides[0].ep, &more, 8, sides[0].other, 40, KEY));
		assert_ok(fi_writedata(
			sides[0].ep, &more, 8, NULL, i, sides[0].other, 40, KEY, &context));
		for (unsigned n = 0; n < 2; n++)
			completion_take(&sides[0], &entry, NULL);
		assert_int_equal(old, i);
		assert_int_equal(target[5], more);
		completion_take(&sides[1], &entry, NULL);
		assert_int_equal(entry.data, i);
	}
	assert_ok(fi_close(&mr->fid));
	ordered_close();
}

static void orders_are_offered_as_they_are_asked_for(void **state)
{
	const uint64_t each[] = {FI_ORDER_RAR, FI_ORDER_RAW, FI_ORDER_WAR, FI_ORDER_WAW,
		FI_ORDER_RMA_RAR, FI_ORDER_RMA_RAW, FI_ORDER_RMA_WAR, FI_ORDER_RMA_WAW,
		FI_ORDER_ATOMIC_RAR, FI_ORDER_ATOMIC_RAW, FI_ORDER_ATOMIC_WAR, FI_ORDER_ATOMIC_WAW};
	struct fi_info *hints, *offer;

	(void)state;
	for (unsigned i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		hints = hints_make(&(struct wish){.caps = FI_RMA | FI_ATOMIC, .orders = each[i]});
		hints->ep_attr->max_order_waw_size = 1024;
		offer = offer_of(hints);
		assert_non_null(offer);
		assert_true(offer->tx_attr->msg_order == (each[i] | FI_ORDER_SAS));
		assert_int_equal(offer->ep_attr->max_order_raw_size, 1024);
		assert_int_equal(offer->ep_attr->max_order_war_size, 1024);
		assert_int_equal(offer->ep_attr->max_order_waw_size, 1024);
		fi_freeinfo(offer);
		hints->ep_attr->max_order_war_size = 1025;
		assert_null(offer_of(hints));
		fi_freeinfo(hints);
	}
	hints = hints_make(&(struct wish){.caps = FI_RMA | FI_ATOMIC});
	offer = offer_of(hints);
	assert_non_null(offer);
	assert_true(offer->tx_attr->msg_order == FI_ORDER_SAS);
	assert_int_equal(offer->ep_attr->max_order_waw_size, 0);
	fi_freeinfo(offer);
	hints->ep_attr->max_order_waw_size = 8; /* of no order */
	assert_null(offer_of(hints));
	fi_freeinfo(hints);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_follows_a_refused_request_waits),
		cmocka_unit_test(orders_hold_when_requests_are_repeated),
		cmocka_unit_test(a_write_does_not_overtake_an_atomic_read),
		cmocka_unit_test(orders_are_offered_as_they_are_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
