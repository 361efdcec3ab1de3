/* SPDX-License-Identifier: BSD-3-Clause */
/* test_outer.c - what an interface's settings make of the outer headers, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <base/log.h>
#include <base/settings.h>
#include <host/outer.h>

static const struct port wire = {.external = true};
static const struct port loop = {.external = false};

static int reset(void **state)
{
	(void)state;
	setenv("PTL_IFACE_NAME", "loop:alone", 1);
	unsetenv("PTL_NID");
	unsetenv("PTL_ENCAP");
	unsetenv("PTL_VLAN");
	unsetenv("PTL_IP");
	unsetenv("PTL_GATEWAY");
	unsetenv("PTL_UDP_PORT");
	return 0;
}

static int choose(const struct port *port, unsigned number, struct encapsulation_options *options)
{
	assert_int_equal(settings_load(), 0);
	return outer_choose(number, port, options);
}

static void expect_complaint(const struct port *port, const char *complaint)
{
	struct encapsulation_options options;

	assert_int_equal(choose(port, 0, &options), -1);
	assert_string_equal(log_last_error(), complaint);
}

static void outer_choose__is_ethernet_by_itself(void **state)
{
	struct encapsulation_options options;

	(void)state;
	assert_int_equal(choose(&wire, 0, &options), 0);
	assert_false(options.udp);
	assert_int_equal(options.vlan, 0);
	assert_int_equal(options.gateway, 0);
}

static void outer_choose__tags_each_interface_as_it_says(void **state)
{
	struct encapsulation_options options;

	(void)state;
	setenv("PTL_VLAN", "5;;4094", 1);
	assert_int_equal(choose(&wire, 0, &options), 0);
	assert_int_equal(options.vlan, 5);
	assert_int_equal(choose(&wire, 1, &options), 0);
	assert_int_equal(options.vlan, 0);
	assert_int_equal(choose(&wire, 2, &options), 0);
	assert_int_equal(options.vlan, 4094);
}

static void outer_choose__takes_addresses(void **state)
{
	struct encapsulation_options options;

	(void)state;
	setenv("PTL_ENCAP", "udp", 1);
	setenv("PTL_IP", "10.1.2.3/24;10.1.3.4/31", 1);
	setenv("PTL_GATEWAY", "10.1.2.1;10.1.3.5", 1);
	assert_int_equal(choose(&wire, 0, &options), 0);
	assert_true(options.udp);
	assert_int_equal(options.address, 0x0a010203);
	assert_int_equal(options.prefix, 24);
	assert_int_equal(options.gateway, 0x0a010201);
	assert_int_equal(options.port, ENCAPSULATION_PORT);
	setenv("PTL_UDP_PORT", "4000", 1);
	setenv("PTL_IFACE_NAME", "loop:a;loop:a", 1);
	setenv("PTL_NID", ";10.1.3.4", 1); /* says the same */
	assert_int_equal(choose(&wire, 1, &options), 0);
	assert_int_equal(options.port, 4000);
	assert_int_equal(options.gateway, 0x0a010305);
}

static void outer_choose__a_loopback_needs_no_address(void **state)
{
	struct encapsulation_options options;

	(void)state;
	setenv("PTL_ENCAP", "udp", 1);
	assert_int_equal(choose(&loop, 0, &options), 0);
	assert_int_equal(options.address, 0x7f000001);
	assert_int_equal(choose(&loop, 1, &options), 0);
	assert_int_equal(options.address, 0x7f000002);
	setenv("PTL_NID", "9", 1);
	assert_int_equal(choose(&loop, 0, &options), 0);
	assert_int_equal(options.address, 9);
}

static void outer_choose__says_what_is_missing(void **state)
{
	(void)state;
	setenv("PTL_ENCAP", "udp", 1);
	expect_complaint(&wire, "interface 0 has PTL_ENCAP=udp but no address; set PTL_IP to its "
				"own such as 192.168.1.5/24");
	setenv("PTL_NID", "0", 1);
	expect_complaint(&loop, "PTL_NID of interface 0 is \"0\", which is no host's address; set "
				"PTL_IP to the interface's own such as 192.168.1.5/24");
}

static void outer_choose__refuses_addresses_of_no_host(void **state)
{
	static const char *const addresses[] = {"10.0.0.0/24", "10.0.0.255/24", "224.0.0.1/4",
		"0.0.0.0/32", "255.255.255.255/32", "10.255.255.255/8"};

	(void)state;
	setenv("PTL_ENCAP", "udp", 1);
	for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct encapsulation_options options;

		setenv("PTL_IP", addresses[i], 1);
		assert_int_equal(choose(&wire, 0, &options), -1);
	}
}

static void outer_choose__refuses_a_node_id_that_is_not_the_address(void **state)
{
	(void)state;
	setenv("PTL_ENCAP", "udp", 1);
	setenv("PTL_IP", "10.0.0.1/24", 1);
	setenv("PTL_NID", "7", 1);
	expect_complaint(&wire, "PTL_NID of interface 0 is \"7\", but with PTL_ENCAP=udp its "
				"address is its node id; unset PTL_NID");
}

static void outer_choose__refuses_a_gateway_elsewhere(void **state)
{
	static const char *const gateways[] = {"10.0.1.1", "10.0.0.1", "10.0.0.255", "10.0.0.0"};

	(void)state;
	setenv("PTL_ENCAP", "udp", 1);
	setenv("PTL_IP", "10.0.0.1/24", 1);
	for (unsigned i = 0; i < sizeof(gateways) / sizeof(gateways[0]); i++) {
		struct encapsulation_options options;

		setenv("PTL_GATEWAY", gateways[i], 1);
		assert_int_equal(choose(&wire, 0, &options), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(outer_choose__is_ethernet_by_itself, reset),
		cmocka_unit_test_setup(outer_choose__tags_each_interface_as_it_says, reset),
		cmocka_unit_test_setup(outer_choose__takes_addresses, reset),
		cmocka_unit_test_setup(outer_choose__a_loopback_needs_no_address, reset),
		cmocka_unit_test_setup(outer_choose__says_what_is_missing, reset),
		cmocka_unit_test_setup(outer_choose__refuses_addresses_of_no_host, reset),
		cmocka_unit_test_setup(
			outer_choose__refuses_a_node_id_that_is_not_the_address, reset),
		cmocka_unit_test_setup(outer_choose__refuses_a_gateway_elsewhere, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
