/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory.c - what endpoints take of the machine's memory.
 *
 * Covers: lib/messages/messages.c. */
#include "fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define ENDPOINTS 32
#define EACH      (54 << 10) /* bytes of each beside the first */
#define FILTER    0x6d656d
#define MESSAGES  60000
#define FAULTS    160 /* that they may cause */

/* Of this process: how often it has touched a page that was not mapped, or 2 MB of them at once. */
static long page_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* Bytes of this process that are in memory, to the page: resident() leaves out what the kernel has
 * not added up yet. */
static uint64_t resident_now(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	uint64_t kilobytes = 0;
	char line[128];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		(void)sscanf(line, "Rss: %" SCNu64, &kilobytes);
	fclose(file);
	return kilobytes << 10;
}

static void endpoints_that_do_nothing__take_little(void **state)
{
	mx_endpoint_t endpoints[ENDPOINTS];
	uint64_t before = 0;

	(void)state;
	/* The heap may have hugepages, whatever it is used for. */
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
	assert_ok(mx_init());
	for (uint32_t i = 0; i < ENDPOINTS; i++) {
		mx_status_t status;
		uint32_t found;

		assert_ok(mx_open_endpoint(0, i, FILTER, NULL, 0, &endpoints[i]));
		/* So does the library itself sooner or later, when it looks for greetings. */
		assert_ok(mx_iprobe(endpoints[i], 0, 0, &status, &found));
		if (i == 0)
			before = resident_now();
	}
	assert_true(resident_now() <= before + (ENDPOINTS - 1) * EACH);
	assert_true(resident_now() <= 40 << 20);
	for (uint32_t i = 0; i < ENDPOINTS; i++)
		assert_ok(mx_close_endpoint(endpoints[i]));
	assert_ok(mx_finalize());
}

/* To itself, one at a time: what they use is used again. */
static void messages__take_the_memory_of_those_before(void **state)
{
	mx_endpoint_t endpoint;
	mx_endpoint_addr_t self;
	long before;

	(void)state;
	assert_ok(mx_init());
	assert_ok(mx_open_endpoint(0, 0, FILTER, NULL, 0, &endpoint));
	assert_ok(mx_get_endpoint_addr(endpoint, &self));
	before = page_faults();
	for (uint64_t i = 0; i < MESSAGES; i++) {
		uint64_t sent = i, got = ~i;
		mx_segment_t from = {&sent, sizeof(sent)}, to = {&got, sizeof(got)};
		mx_request_t requests[2];
		mx_status_t status;
		uint32_t result;

		assert_ok(mx_irecv(endpoint, &to, 1, i, ~UINT64_C(0), NULL, &requests[0]));
		assert_ok(mx_isend(endpoint, &from, 1, self, i, NULL, &requests[1]));
		for (unsigned n = 0; n < 2; n++)
			assert_ok(mx_wait(endpoint, &requests[n], MX_INFINITE, &status, &result));
		assert_true(got == i);
	}
	assert_true(page_faults() <= before + FAULTS);
	assert_ok(mx_close_endpoint(endpoint));
	assert_ok(mx_finalize());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages__take_the_memory_of_those_before),
		cmocka_unit_test(endpoints_that_do_nothing__take_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
