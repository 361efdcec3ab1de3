/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hosts.c - the list of hosts, whatever is in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <base/random.h>
#include <job/job.h>

static void hosts__are_pairs_of_numbers(void **state)
{
	static const char *const wrong[] = {"", ",", "1", "1:", ":1", "1:2,", "1:2,,3:4", "1:2 ",
		" 1:2", "-1:2", "1:-2", "1:4294967295", "4294967296:1", "1:2:3", "a:b"};
	struct process processes[3];

	(void)state;
	assert_int_equal(job_hosts("1:1000,2:1001,4294967294:0", processes), 3);
	assert_int_equal(processes[1].nid, 2);
	assert_int_equal(processes[1].pid, 1001);
	assert_int_equal(processes[2].nid, 4294967294u);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(job_hosts(wrong[i], NULL), 0);
}

static void hosts__of_random_text_are_as_many_as_their_colons(void **state)
{
	static const char letters[] = "019:,: -x";
	uint64_t random = 7;

	(void)state;
	for (unsigned n = 0; n < 100000; n++) {
		struct process processes[32];
		char text[24];
		uint32_t colons = 0, count;

		memset(text, 0, sizeof(text));
		for (unsigned i = 0; i < random_next(&random) % sizeof(text); i++) {
			text[i] = letters[random_next(&random) % (sizeof(letters) - 1)];
			colons += text[i] == ':';
		}
		count = job_hosts(text, processes);
		assert_true(count == 0 || count == colons);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts__are_pairs_of_numbers),
		cmocka_unit_test(hosts__of_random_text_are_as_many_as_their_colons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
