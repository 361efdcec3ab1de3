/* SPDX-License-Identifier: BSD-3-Clause */
/* test_silent.c - an endpoint whose program makes no calls is never the reason that a sender is
 * stuck while it has memory left: sends that are copied complete. silent COUNT BYTES sends so many,
 * of so many bytes each.
 *
 * Covers: lib/messages/outbound.c. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILTER  0xdecaf
#define TIMEOUT 60000 /* ms */
#define MOST    100000
#define BYTES   1000

static const char *count_wanted, *bytes_wanted;

static uint64_t own_nic(void)
{
	uint64_t nic_id = 0;

	assert_ok(mx_board_number_to_nic_id(0, &nic_id));
	return nic_id;
}

/* The other process. Its exit status is 0 when all of its sends have completed. */
static int sender_main(unsigned count, uint32_t bytes)
{
	static mx_request_t requests[MOST];
	static char data[BYTES];
	mx_endpoint_t endpoint;
	mx_endpoint_addr_t to;
	uint32_t result = 1;

	if (mx_init() != MX_SUCCESS ||
		mx_open_endpoint(0, MX_ANY_ENDPOINT, FILTER, NULL, 0, &endpoint) != MX_SUCCESS ||
		mx_connect(endpoint, own_nic(), 0, FILTER, TIMEOUT, &to) != MX_SUCCESS)
		return 2;
	for (unsigned i = 0; i < count; i++) {
		mx_segment_t segment = {data, bytes};

		if (mx_isend(endpoint, &segment, 1, to, i, NULL, &requests[i]) != MX_SUCCESS)
			return 3;
	}
	for (unsigned i = 0; i < count && result != 0; i++) {
		mx_status_t status;

		if (mx_wait(endpoint, &requests[i], TIMEOUT, &status, &result) != MX_SUCCESS)
			return 4;
	}
	_exit(result == 0);
}

static void sender_run(void)
{
	(void)execl("/proc/self/exe", "silent", count_wanted, bytes_wanted, "send", NULL);
}

static void sends__to_a_program_that_makes_no_calls_complete(void **state)
{
	mx_endpoint_t endpoint;

	(void)state;
	assert_ok(mx_init());
	assert_ok(mx_open_endpoint(0, 0, FILTER, NULL, 0, &endpoint));
	assert_int_equal(child_run(sender_run, NULL, 0), 0);
	assert_ok(mx_close_endpoint(endpoint));
	assert_ok(mx_finalize());
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends__to_a_program_that_makes_no_calls_complete),
	};

	if (count < 3 || atoi(words[1]) < 1 || atoi(words[1]) > MOST || atoi(words[2]) < 1 ||
		atoi(words[2]) > BYTES)
		return 99;
	count_wanted = words[1];
	bytes_wanted = words[2];
	if (count > 3)
		return sender_main((unsigned)atoi(words[1]), (uint32_t)atoi(words[2]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
