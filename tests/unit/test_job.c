/* SPDX-License-Identifier: BSD-3-Clause */
/* test_job.c - which job a process is in, and the list of hosts, whatever is in it.
 * Covers: lib/job/hosts.c, lib/job/job.c. */
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

static void environment__that_is_wrong_is_named(void **state)
{
	struct job job = {0};

	(void)state;
	setenv("PTL_ADI_HOSTS", "1:1,2:2", 1);
	assert_false(job_find(&job, true));
	assert_non_null(strstr(job.why, "PTL_ADI_RANK is not set"));
	setenv("PTL_ADI_RANK", "2", 1);
	assert_false(job_find(&job, true));
	assert_non_null(strstr(job.why, "PTL_ADI_RANK is \"2\""));
	setenv("PTL_ADI_RANK", "1", 1);
	assert_true(job_find(&job, true));
	assert_int_equal(job.rank, 1);
	assert_int_equal(job.size, 2);
	setenv("PMI_RANK", "0", 1);
	assert_false(job_find(&job, true));
	assert_non_null(strstr(job.why, "PMI_FD is not set"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts__are_pairs_of_numbers),
		cmocka_unit_test(hosts__of_random_text_are_as_many_as_their_colons),
		cmocka_unit_test(environment__that_is_wrong_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
