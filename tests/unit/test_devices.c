/* SPDX-License-Identifier: BSD-3-Clause */
/* test_devices.c - tests of pmd-glue/devices.c. */
#include <net/if.h>
#include <sched.h>
#include "glue_fixture.h"

static const struct glue_device *device_named(
	const struct glue_device *devices, unsigned count, const char *name)
{
	for (unsigned n = 0; n < count; n++)
		if (strcmp(devices[n].name, name) == 0)
			return &devices[n];
	return NULL;
}

static void glue_devices__names_what_any_machine_has(void **state)
{
	struct glue_device devices[64];
	unsigned count = glue_devices(devices, 64);

	(void)state;
	assert_true(count >= 3);
	assert_true(device_named(devices, count, "node")->usable);
	assert_true(device_named(devices, count, "loop:NAME")->usable);
	assert_non_null(device_named(devices, count, "udp"));
	assert_null(device_named(devices, count, "memif:PATH"));
	for (unsigned n = 0; n < count; n++) {
		assert_true(devices[n].note[0] != 0);
		assert_true(devices[n].driver[0] != 0);
	}
}

static void glue_devices__leaves_out_what_is_no_ethernet(void **state)
{
	struct glue_device devices[64];

	(void)state;
	assert_null(device_named(devices, glue_devices(devices, 64), "lo"));
}

static void glue_devices__writes_no_more_than_there_is_room_for(void **state)
{
	struct glue_device devices[3] = {0};

	(void)state;
	assert_int_equal(glue_devices(devices, 2), 2);
	assert_int_equal(devices[2].note[0], 0);
	assert_int_equal(glue_devices(NULL, 0), 0);
}

/* /sys still shows those of the first one. Comes last: it stays there. */
static void glue_devices__offers_nothing_of_another_network_namespace(void **state)
{
	struct glue_device devices[64];
	unsigned count;

	(void)state;
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		skip();
	count = glue_devices(devices, 64);
	for (unsigned n = 0; n < count; n++) {
		const char *name = devices[n].name;
		assert_null(strstr(devices[n].note, "unless a connection needs it"));
		assert_true(strchr(name, ':') || strcmp(name, "node") == 0 ||
			    strcmp(name, "udp") == 0 || if_nametoindex(name) != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glue_devices__names_what_any_machine_has),
		cmocka_unit_test(glue_devices__leaves_out_what_is_no_ethernet),
		cmocka_unit_test(glue_devices__writes_no_more_than_there_is_room_for),
		cmocka_unit_test(glue_devices__offers_nothing_of_another_network_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
