/* SPDX-License-Identifier: BSD-3-Clause */
/* test_alone.c - processes without settings, which find each other on the machine's node.
 *
 * Covers: pmd-glue/port.c, lib/mx/endpoint.c. */
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>

#define FILTER  0xdecaf
#define TIMEOUT 60000 /* ms */
#define FAILED  99

static char directory[] = "/tmp/ptn-XXXXXX";

static int node_make(void **state)
{
	(void)state;
	unsetenv("PTL_IFACE_NAME");
	return mkdtemp(directory) && setenv("XDG_RUNTIME_DIR", directory, 1) == 0 ? 0 : -1;
}

static int node_remove(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

static uint32_t endpoint_id(mx_endpoint_t endpoint)
{
	mx_endpoint_addr_t address;
	uint32_t id;
	uint64_t nic_id;

	assert_ok(mx_get_endpoint_addr(endpoint, &address));
	assert_ok(mx_decompose_endpoint_addr(address, &nic_id, &id));
	return id;
}

static uint64_t own_nic(void)
{
	uint64_t nic_id = 0;

	assert_ok(mx_board_number_to_nic_id(0, &nic_id));
	return nic_id;
}

/* Another process: connects to endpoint `id` of the same NIC. Its exit status is its own endpoint's
 * id, or FAILED. */
static int other_main(const char *id)
{
	mx_endpoint_t endpoint;
	mx_endpoint_addr_t address;
	uint32_t own = FAILED;

	mx_set_error_handler(MX_ERRORS_RETURN);
	if (mx_init() == MX_SUCCESS &&
		mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, FILTER, NULL, 0, &endpoint) ==
			MX_SUCCESS &&
		mx_connect(endpoint, own_nic(), (uint32_t)atoi(id), FILTER, TIMEOUT, &address) ==
			MX_SUCCESS)
		own = endpoint_id(endpoint);
	(void)mx_finalize();
	return (int)own;
}

static void other_run(void)
{
	(void)execl("/proc/self/exe", "alone", "0", NULL);
}

static void any_endpoint_of_a_second_process(void **state)
{
	mx_endpoint_t endpoint;

	(void)state;
	assert_ok(mx_init());
	assert_ok(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, FILTER, NULL, 0, &endpoint));
	assert_int_equal(endpoint_id(endpoint), 0);
	assert_int_equal(child_run(other_run, NULL, 0), 1);
	assert_ok(mx_close_endpoint(endpoint));
	assert_ok(mx_finalize());
}

/* mx_close_endpoint() leaves a thread as it was: it can be cancelled. */
static void closing_an_endpoint_leaves_the_thread_alone(void **state)
{
	mx_endpoint_t endpoint;
	int cancels;

	(void)state;
	assert_ok(mx_init());
	assert_ok(mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, FILTER, NULL, 0, &endpoint));
	assert_int_equal(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancels), 0);
	assert_int_equal(cancels, PTHREAD_CANCEL_ENABLE);
	assert_ok(mx_close_endpoint(endpoint));
	assert_int_equal(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancels), 0);
	assert_int_equal(cancels, PTHREAD_CANCEL_ENABLE);
	assert_ok(mx_finalize());
}

static void lonely_run(void)
{
	(void)setenv("PTL_PEER_TIMEOUT", "1s", 1);
	(void)execl("/proc/self/exe", "alone", "5", NULL);
}

static void a_process_without_a_node_is_told(void **state)
{
	static char text[4096];
	char path[64];
	FILE *file;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/blocked", directory);
	assert_int_equal(mkdir(path, S_IRWXU), 0);
	assert_int_equal(setenv("XDG_RUNTIME_DIR", path, 1), 0);
	(void)snprintf(path, sizeof(path), "%s/blocked/postern", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(child_run(lonely_run, text, sizeof(text)), FAILED);
	assert_non_null(strstr(text, "this process reaches itself only"));
	assert_non_null(strstr(text, "remove it, or set XDG_RUNTIME_DIR"));
	assert_non_null(
		strstr(text, "cannot be reached, because this interface leads to no other"));
	assert_int_equal(setenv("XDG_RUNTIME_DIR", directory, 1), 0);
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_endpoint_of_a_second_process),
		cmocka_unit_test(closing_an_endpoint_leaves_the_thread_alone),
		cmocka_unit_test(a_process_without_a_node_is_told),
	};

	if (count > 1)
		return other_main(words[1]);
	return cmocka_run_group_tests(tests, node_make, node_remove);
}
