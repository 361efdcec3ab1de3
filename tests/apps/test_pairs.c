/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pairs.c - the key-value space of postern-run: what it returns, and the memory it takes. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "../../apps/run/space.h"

static void test_values(void **state)
{
	size_t length;

	(void)state;
	assert_null(space_get("key"));
	assert_true(space_put("key", "value"));
	assert_true(space_put("empty", ""));
	assert_true(space_put("key", "another"));
	assert_string_equal(space_get("key"), "another");
	assert_string_equal(space_get("empty"), "");
	assert_string_equal(space_text(&length), "cmd=all rc=0 count=2\n"
						 "cmd=pair key=empty value=\n"
						 "cmd=pair key=key value=another\n");
	assert_int_equal(length, strlen(space_text(&length)));
	space_forget_text();
}

/* A rank cannot make postern-run take more memory than it may, even with the shortest keys. */
static void test_shortest(void **state)
{
	size_t before = mallinfo2().uordblks;
	char key[16], value[256] = "";

	(void)state;
	for (unsigned n = 0; snprintf(key, sizeof(key), "%x", n) > 0 && space_put(key, ""); n++)
		if (n % 4096 == 0)
			assert_true(mallinfo2().uordblks - before <= SPACE_BYTES);
	/* A long value in the place of an existing one needs room, too. */
	memset(value, 'v', sizeof(value) - 1);
	assert_false(space_put("0", value));
	assert_string_equal(space_get("0"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_shortest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
