/* SPDX-License-Identifier: BSD-3-Clause */
/* test_lifeline.c - lines between ranks: L1, L2. */
#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <job/lifeline.h>

#define LOOKS_MOST 1000 /* of 10 ms */

/* With UDP a node id is an IPv4 address. */
static struct card card_of(uint32_t host)
{
	return (struct card){.process = {.nid = host, .pid = 1}, .network = CARD_UDP};
}

static enum lifeline_state look_until(struct lifeline *line, enum lifeline_state state)
{
	for (unsigned looks = 0; lifeline_look(line) != state && looks < LOOKS_MOST; looks++)
		(void)poll(NULL, 0, 10);
	return line->state;
}

static void lifeline__is_up_until_the_other_ends(void **state)
{
	struct card here = card_of(INADDR_LOOPBACK), there = here;
	struct lifeline line = {0}, other = {0};

	(void)state;
	lifeline_listen(&other, &there);
	assert_int_not_equal(there.lifeline.port, 0);
	lifeline_begin(&line, &here, &there);
	assert_int_equal(look_until(&line, LIFELINE_UP), LIFELINE_UP);
	lifeline_ask(&line, UINT64_C(10000000000));
	assert_int_equal(lifeline_look(&line), LIFELINE_UP);
	lifeline_end(&other);
	assert_int_equal(look_until(&line, LIFELINE_DOWN), LIFELINE_DOWN);
	(void)poll(NULL, 0, 20);
	assert_int_equal(lifeline_look(&line), LIFELINE_DOWN); /* it was tried again */
	lifeline_end(&line);
}

static void lifeline__that_ended_before_the_first_look_was_up(void **state)
{
	struct card here = card_of(INADDR_LOOPBACK), there = here;
	struct lifeline line = {0}, other = {0};

	(void)state;
	lifeline_listen(&other, &there);
	lifeline_begin(&line, &here, &there);
	lifeline_end(&other);
	assert_int_equal(look_until(&line, LIFELINE_DOWN), LIFELINE_DOWN);
	lifeline_end(&line);
}

static void lifeline__that_never_was_up_says_nothing(void **state)
{
	struct card here = card_of(INADDR_LOOPBACK), there = here;
	struct lifeline line = {0}, other = {0};

	(void)state;
	lifeline_listen(&other, &there);
	lifeline_end(&other);
	lifeline_begin(&line, &here, &there); /* refused */
	for (unsigned looks = 0; looks < 10; looks++) {
		assert_int_equal(lifeline_look(&line), LIFELINE_NONE);
		(void)poll(NULL, 0, 1);
	}
	lifeline_end(&line);
}

static void lifeline__listens_on_the_network_of_its_card_alone(void **state)
{
	struct card cards[] = {card_of(0xc0000201), {.network = CARD_NODE},
		{.network = CARD_ETHERNET, .address = {2, 1, 2, 3, 4, 5}}};
	struct lifeline line = {0};

	(void)state;
	for (unsigned n = 0; n < sizeof(cards) / sizeof(cards[0]); n++) {
		lifeline_listen(&line, &cards[n]);
		assert_int_equal(cards[n].lifeline.port, 0);
		assert_int_equal(line.listener, 0);
		lifeline_begin(&line, &cards[0], &cards[n]);
		assert_int_equal(lifeline_look(&line), LIFELINE_NONE);
	}
	lifeline_end(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lifeline__is_up_until_the_other_ends),
		cmocka_unit_test(lifeline__that_ended_before_the_first_look_was_up),
		cmocka_unit_test(lifeline__that_never_was_up_says_nothing),
		cmocka_unit_test(lifeline__listens_on_the_network_of_its_card_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
