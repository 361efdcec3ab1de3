/* SPDX-License-Identifier: BSD-3-Clause */
/* test_keys.c - a second front end on lib/host and lib/engine (keys.c), alone and beside Portals.
 * Over loopbacks; first with a poll thread, then inline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <postern.h>

#include "keys.h"

#define KEY   0x6b6579u
#define BYTES 100000

static uint64_t ends[2];
static struct process ids[2];

static int setup(void **state)
{
	(void)state;
	setenv("PTL_IFACE_NAME", "loop:k;loop:k;loop:k", 1);
	assert_int_equal(keys_init(), KEYS_OK);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(keys_open(i, 10 + i, &ends[i]), KEYS_OK);
		assert_int_equal(keys_self(ends[i], &ids[i]), KEYS_OK);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	keys_fini();
	return 0;
}

static void keys_put__changes_the_value_that_get_returns(void **state)
{
	static char value[BYTES], sent[BYTES], gotten[BYTES];
	size_t length = sizeof(gotten);

	(void)state;
	for (unsigned i = 0; i < BYTES; i++)
		sent[i] = (char)(i * 7);
	assert_int_equal(keys_offer(ends[1], KEY, value, sizeof(value)), KEYS_OK);
	assert_int_equal(keys_put(ends[0], ids[1], KEY, sent, sizeof(sent)), KEYS_OK);
	assert_memory_equal(value, sent, sizeof(sent));
	assert_int_equal(keys_put(ends[0], ids[1], KEY, "new", 4), KEYS_OK);
	assert_int_equal(keys_get(ends[0], ids[1], KEY, gotten, &length), KEYS_OK);
	assert_int_equal(length, sizeof(value));
	assert_string_equal(gotten, "new");
	assert_memory_equal(gotten + 4, sent + 4, sizeof(sent) - 4);
}

static void keys_get__of_values_in_both_directions(void **state)
{
	char values[2][8] = {"zero", "one"}, gotten[8];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(keys_offer(ends[i], KEY, values[i], 8), KEYS_OK);
	for (unsigned i = 0; i < 2; i++) {
		size_t length = sizeof(gotten);

		assert_int_equal(keys_get(ends[i], ids[!i], KEY, gotten, &length), KEYS_OK);
		assert_string_equal(gotten, values[!i]);
	}
}

static void keys_get__of_a_key_that_nobody_offers_is_refused(void **state)
{
	char gotten[8];
	size_t length = sizeof(gotten);

	(void)state;
	assert_int_equal(keys_get(ends[0], ids[1], KEY, gotten, &length), KEYS_UNKNOWN);
}

static void keys_look__tells_in_the_words_of_the_front_end(void **state)
{
	char text[1024], value[8];

	(void)state;
	assert_int_equal(keys_offer(ends[1], KEY, value, sizeof(value)), KEYS_OK);
	assert_int_equal(keys_look(ends[1], "keys", text, sizeof(text)), KEYS_OK);
	assert_non_null(strstr(text, "6b6579"));
	assert_non_null(strstr(text, "\"value\": \""));
	assert_int_equal(keys_look(ends[1], "md", text, sizeof(text)), KEYS_FAILED);
}

static void keys__live_beside_portals(void **state)
{
	ptl_handle_ni_t ni, other;
	ptl_process_id_t id;
	struct process self;
	char value[8] = "", gotten[8];
	size_t length = sizeof(gotten);
	int count;

	(void)state;
	assert_int_equal(PtlGetId(ends[0], &id), PTL_NOINIT);
	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(PtlNIInit(0, 20, NULL, NULL, &other), PTL_INIT_INV);
	assert_non_null(strstr(postern_last_error(), "Keys"));
	assert_int_equal(PtlNIInit(2, 20, NULL, NULL, &ni), PTL_OK);
	/* Neither takes the other's handles. */
	assert_int_equal(PtlGetId(ends[0], &id), PTL_INV_NI);
	assert_int_equal(PtlNIFini(ends[0]), PTL_INV_NI);
	assert_int_equal(keys_self(ni, &self), KEYS_INVALID);
	assert_int_equal(keys_close(ni), KEYS_INVALID);

	assert_int_equal(keys_offer(ends[1], KEY, value, sizeof(value)), KEYS_OK);
	assert_int_equal(keys_put(ends[0], ids[1], KEY, "both", 5), KEYS_OK);
	assert_string_equal(value, "both");
	/* The end of one leaves the other at work. */
	PtlFini();
	assert_int_equal(PtlGetId(ni, &id), PTL_NOINIT);
	assert_int_equal(keys_get(ends[0], ids[1], KEY, gotten, &length), KEYS_OK);
	assert_string_equal(gotten, "both");
	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(PtlNIInit(2, 20, NULL, NULL, &ni), PTL_OK);
	keys_fini();
	assert_int_equal(keys_self(ends[0], &self), KEYS_CLOSED);
	assert_int_equal(PtlGetId(ni, &id), PTL_OK);
	assert_int_equal(id.pid, 20);
	PtlFini();
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(keys_put__changes_the_value_that_get_returns),
		test(keys_get__of_values_in_both_directions),
		test(keys_get__of_a_key_that_nobody_offers_is_refused),
		test(keys_look__tells_in_the_words_of_the_front_end),
		test(keys__live_beside_portals),
	};
	int failed;

	setenv("PTL_PROGRESS", "core", 1);
	failed = cmocka_run_group_tests_name("core", tests, NULL, NULL);
	setenv("PTL_PROGRESS", "inline", 1);
	return failed + cmocka_run_group_tests_name("inline", tests, NULL, NULL);
}
