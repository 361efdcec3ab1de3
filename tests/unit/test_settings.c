/* SPDX-License-Identifier: BSD-3-Clause */
/* test_settings.c - the table of settings, its defaults, its complaints.
 *
 * Covers: lib/base/settings.c, lib/base/setting_table.c.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/settings.h>

extern char **environ;

static char complaints[16384];

/* settings_load() with what it wrote to standard error in complaints. */
static int load(void)
{
	int saved = dup(STDERR_FILENO);
	int ends[2];
	int result;
	ssize_t bytes;

	assert_int_equal(pipe(ends), 0);
	assert_true(saved >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
	close(ends[1]);
	result = settings_load();
	dup2(saved, STDERR_FILENO);
	close(saved);
	bytes = read(
		ends[0], complaints, sizeof(complaints) - 1); /* one read: less than a pipe holds */
	complaints[bytes > 0 ? bytes : 0] = '\0';
	close(ends[0]);
	return result;
}

/* No PTL_ variable but those of the test. */
static int reset(void **state)
{
	(void)state;
	for (char **variable = environ; *variable != NULL;) {
		char name[256];
		size_t length = strcspn(*variable, "=");

		if (strncmp(*variable, "PTL_", 4) != 0 || length >= sizeof(name)) {
			variable++;
			continue;
		}
		memcpy(name, *variable, length);
		name[length] = '\0';
		unsetenv(name);
	}
	log_set_level(LOG_LEVEL_WARNING);
	log_clear_error();
	assert_int_equal(load(), 0);
	assert_string_equal(complaints, "");
	return 0;
}

static void expect_error(const char *name, const char *value, const char *line)
{
	setenv(name, value, 1);
	assert_int_equal(load(), -1);
	assert_string_equal(complaints, line);
	unsetenv(name);
}

static void setting_describe__names_every_setting_and_says_what_it_does(void **state)
{
	(void)state;
	for (int i = 0; i < SETTING_COUNT; i++) {
		const struct setting_description *description = setting_describe((enum setting)i);

		assert_int_equal(strncmp(description->name, "PTL_", 4), 0);
		assert_non_null(description->fallback);
		assert_int_equal(description->help[strlen(description->help) - 1], '.');
		for (int j = 0; j < i; j++)
			assert_string_not_equal(
				description->name, setting_describe((enum setting)j)->name);
	}
}

static void settings_load__gives_the_defaults(void **state)
{
	(void)state;
	assert_string_equal(setting_text(SETTING_IFACE_NAME), "node");
	assert_false(setting_is_given(SETTING_IFACE_NAME));
	assert_int_equal(setting_items(SETTING_IFACE_NAME), 1);
	assert_string_equal(setting_item(SETTING_IFACE_NAME, 3), "node");
	assert_int_equal(setting_number_item(SETTING_NID, 0, 77), 77);
	assert_true(setting_is(SETTING_PROGRESS, "auto"));
	assert_true(setting_is(SETTING_POLL, "adaptive"));
	assert_int_equal(setting_number_item(SETTING_POLL_CORE, 1, 5), 5);
	assert_int_equal(setting_number_item(SETTING_MTU, 0, 1500), 1500);
	assert_int_equal(setting_number(SETTING_PEER_TIMEOUT), 10 * SECOND);
	assert_int_equal(setting_number(SETTING_PEERS_MAX), 131072);
	assert_int_equal(setting_number(SETTING_LIST_MAX), 1048576);
	assert_int_equal(setting_number(SETTING_EVENT_MEMORY), 256 << 20);
	assert_true(setting_is(SETTING_CHECKSUM, "auto"));
	assert_string_equal(setting_text(SETTING_FAULT), "");
	assert_string_equal(setting_text(SETTING_EAL_ARGS), "");
	assert_true(setting_is(SETTING_LOG_LEVEL, "warning"));
}

/* Values that the table offers must pass its own check. */
static void settings_load__accepts_every_default_as_a_value(void **state)
{
	(void)state;
	for (int i = 0; i < SETTING_COUNT; i++)
		setenv(setting_describe((enum setting)i)->name,
			setting_describe((enum setting)i)->fallback, 1);
	assert_int_equal(load(), 0);
	assert_string_equal(complaints, "");
	for (int i = 0; i < SETTING_COUNT; i++)
		assert_string_equal(
			setting_text((enum setting)i), setting_describe((enum setting)i)->fallback);
}

static void settings_load__reads_again(void **state)
{
	(void)state;
	setenv("PTL_PEERS_MAX", "5", 1);
	assert_int_equal(load(), 0);
	assert_int_equal(setting_number(SETTING_PEERS_MAX), 5);
	setenv("PTL_PEERS_MAX", "0x10", 1);
	assert_int_equal(load(), 0);
	assert_int_equal(setting_number(SETTING_PEERS_MAX), 16);
	unsetenv("PTL_PEERS_MAX");
	assert_int_equal(load(), 0);
	assert_int_equal(setting_number(SETTING_PEERS_MAX), 131072);
}

static void settings_load__takes_a_blank_value_for_none(void **state)
{
	(void)state;
	setenv("PTL_PROGRESS", "", 1);
	setenv("PTL_PEER_TIMEOUT", "  ", 1);
	assert_int_equal(load(), 0);
	assert_true(setting_is(SETTING_PROGRESS, "auto"));
	assert_int_equal(setting_number(SETTING_PEER_TIMEOUT), 10 * SECOND);
}

static void settings_load__ignores_blanks_around_a_value(void **state)
{
	(void)state;
	setenv("PTL_PROGRESS", " inline ", 1);
	assert_int_equal(load(), 0);
	assert_true(setting_is(SETTING_PROGRESS, "inline"));
}

/* Before the settings are loaded, an item is what it is behind that. */
static void setting_environment__splits_a_value_as_a_load_does(void **state)
{
	static const char *const values[] = {
		"node", " node ", "\tnode;\vloop:a \t; udp", "node;", ";node", " ;", "", " \t"};
	char item[16];

	(void)state;
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		unsigned n = 0;

		setenv("PTL_IFACE_NAME", values[i], 1);
		assert_int_equal(load(), 0);
		for (; setting_environment(SETTING_IFACE_NAME, n, item, sizeof(item)); n++)
			assert_string_equal(item, setting_item(SETTING_IFACE_NAME, n));
		assert_int_equal(n, setting_items(SETTING_IFACE_NAME));
	}
	setenv("PTL_ENCAP", " udp\t", 1);
	assert_true(setting_environment(SETTING_ENCAP, 0, item, sizeof(item)));
	assert_string_equal(item, "udp");
	assert_true(setting_environment(SETTING_ENCAP, 0, item, sizeof("udp")));
	assert_string_equal(item, "udp");
	assert_false(setting_environment(SETTING_ENCAP, 0, item, sizeof("ud")));
}

static void settings_load__that_fails_changes_nothing(void **state)
{
	(void)state;
	setenv("PTL_NID", "4", 1);
	assert_int_equal(load(), 0);
	setenv("PTL_NID", "5", 1);
	setenv("PTL_LOG_LEVEL", "loud", 1);
	assert_int_equal(load(), -1);
	assert_int_equal(setting_number_item(SETTING_NID, 0, 0), 4);
}

static void setting_item__serves_the_last_to_those_that_follow(void **state)
{
	(void)state;
	setenv("PTL_IFACE_NAME", "node:a; eth0 ;;loop:b", 1);
	assert_int_equal(load(), 0);
	assert_int_equal(setting_items(SETTING_IFACE_NAME), 4);
	assert_string_equal(setting_item(SETTING_IFACE_NAME, 0), "node:a");
	assert_string_equal(setting_item(SETTING_IFACE_NAME, 1), "eth0");
	assert_string_equal(setting_item(SETTING_IFACE_NAME, 2), "");
	assert_string_equal(setting_item(SETTING_IFACE_NAME, 3), "loop:b");
	assert_string_equal(setting_item(SETTING_IFACE_NAME, 1000), "loop:b");
	assert_string_equal(setting_text(SETTING_IFACE_NAME), "node:a; eth0 ;;loop:b");
}

static void setting_number_item__gives_the_fallback_for_an_empty_item(void **state)
{
	(void)state;
	setenv("PTL_IFACE_NAME", "a;b;c", 1);
	setenv("PTL_NID", "7;;0x20", 1);
	assert_int_equal(load(), 0);
	assert_int_equal(setting_number_item(SETTING_NID, 0, 99), 7);
	assert_int_equal(setting_number_item(SETTING_NID, 1, 99), 99);
	assert_int_equal(setting_number_item(SETTING_NID, 2, 99), 32);
	assert_int_equal(setting_number_item(SETTING_NID, 3, 99), 32);
}

static void setting_text__is_no_list_where_the_setting_is_none(void **state)
{
	(void)state;
	setenv("PTL_EAL_ARGS", "--vdev=a;b", 1);
	assert_int_equal(load(), 0);
	assert_int_equal(setting_items(SETTING_EAL_ARGS), 1);
	assert_string_equal(setting_item(SETTING_EAL_ARGS, 0), "--vdev=a;b");
}

static void setting_number__knows_sizes_and_lengths_of_time(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {{"65536", 65536}, {"64K", 65536}, {"0x10000", 65536}, {"3M", 3 << 20},
		{"1g", 1 << 30}};
	static const struct {
		const char *text;
		uint64_t ns;
	} durations[] = {{"10000000ns", 10 * MILLISECOND}, {"20000us", 20 * MILLISECOND},
		{"500ms", 500 * MILLISECOND}, {"3s", 3 * SECOND}};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		setenv("PTL_EVENT_MEMORY", sizes[i].text, 1);
		assert_int_equal(load(), 0);
		assert_int_equal(setting_number(SETTING_EVENT_MEMORY), sizes[i].bytes);
	}
	for (unsigned i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
		setenv("PTL_PEER_TIMEOUT", durations[i].text, 1);
		assert_int_equal(load(), 0);
		assert_int_equal(setting_number(SETTING_PEER_TIMEOUT), durations[i].ns);
	}
}

static void settings_load__reads_addresses(void **state)
{
	uint32_t address = 0;
	uint8_t prefix = 0;

	(void)state;
	setenv("PTL_IFACE_NAME", "a;b", 1);
	setenv("PTL_NID", "10.0.0.255;7", 1);
	setenv("PTL_IP", "192.168.1.5/24;;0.0.0.0/0;255.255.255.255/32", 1);
	setenv("PTL_GATEWAY", ";192.168.1.1", 1);
	assert_int_equal(load(), 0);
	assert_int_equal(setting_number_item(SETTING_NID, 0, 0), 0x0a0000ff);
	assert_int_equal(setting_number_item(SETTING_NID, 1, 0), 7);
	assert_true(setting_subnet_item(SETTING_IP, 0, &address, &prefix));
	assert_int_equal(address, 0xc0a80105);
	assert_int_equal(prefix, 24);
	assert_false(setting_subnet_item(SETTING_IP, 1, &address, &prefix));
	assert_true(setting_subnet_item(SETTING_IP, 2, &address, &prefix));
	assert_int_equal(address, 0);
	assert_int_equal(prefix, 0);
	assert_true(setting_subnet_item(SETTING_IP, 3, &address, &prefix));
	assert_int_equal(address, UINT32_MAX);
	assert_int_equal(prefix, 32);
	assert_int_equal(setting_number_item(SETTING_GATEWAY, 0, 9), 9);
	assert_int_equal(setting_number_item(SETTING_GATEWAY, 1, 9), 0xc0a80101);
}

static void settings_load__refuses_what_is_no_address(void **state)
{
	static const char *const subnets[] = {"10.0.0.1", "10.0.0.1/", "10.0.0.1/33", "10.0.0/24",
		"10.0.0.256/24", "10.0.0.1.1/24", "10.0.0.1/24x", "10..0.1/24", " /24",
		"10.0.0.0001/8", "-1.0.0.1/8"};

	(void)state;
	for (unsigned i = 0; i < sizeof(subnets) / sizeof(subnets[0]); i++) {
		setenv("PTL_IP", subnets[i], 1);
		assert_int_equal(load(), -1);
	}
	setenv("PTL_IP", "10.0.0.1/24", 1);
	assert_int_equal(load(), 0);
	expect_error("PTL_GATEWAY", "10.0.0.1/24",
		"postern: PTL_GATEWAY is \"10.0.0.1/24\", which is not an IPv4 address; set it to "
		"the router's address such as 192.168.1.1\n");
	expect_error("PTL_IP", "10.0.0.1",
		"postern: PTL_IP is \"10.0.0.1\", which is not an IPv4 address with the length of "
		"its prefix; set it to the interface's own address and prefix such as "
		"192.168.1.5/24\n");
	expect_error("PTL_VLAN", "4095",
		"postern: PTL_VLAN is \"4095\", which is not between 1 and 4094; set it to the "
		"number of a VLAN such as 100\n");
	expect_error("PTL_ENCAP", "UDP",
		"postern: PTL_ENCAP is \"UDP\", which is not one of its values; set it to "
		"ethernet or udp\n");
}

static void settings_load__says_what_is_wrong_and_what_to_do(void **state)
{
	(void)state;
	expect_error("PTL_NID", "x",
		"postern: PTL_NID is \"x\", which is not a number; set it to a node id such as "
		"1\n");
	expect_error("PTL_NID", "-1",
		"postern: PTL_NID is \"-1\", which is not a number; set it to a node id such as "
		"1\n");
	expect_error("PTL_NID", "1;2",
		"postern: PTL_NID is \"1;2\", which are 2 node ids, but PTL_IFACE_NAME names 1 "
		"interface; "
		"give one for each interface\n");
	expect_error("PTL_NID", "0x",
		"postern: PTL_NID is \"0x\", which is not a number; set it to a node id such as "
		"1\n");
	expect_error("PTL_NID", "1,2",
		"postern: PTL_NID is \"1,2\", which is not a number; set it to a node id such as "
		"1\n");
	expect_error("PTL_NID", "1;y",
		"postern: item 2 of PTL_NID is \"y\", which is not a number; set it to a node id "
		"such as 1\n");
	expect_error("PTL_NID", "4294967295",
		"postern: PTL_NID is \"4294967295\", which is not between 0 and 4294967294; set it "
		"to a node id such as 1\n");
	expect_error("PTL_NID", "99999999999999999999999",
		"postern: PTL_NID is \"99999999999999999999999\", which is not between 0 and "
		"4294967294; set it to a node "
		"id such as 1\n");
	expect_error("PTL_PROGRESS", "Core",
		"postern: PTL_PROGRESS is \"Core\", which is not one of its values; set it to "
		"core, inline or both\n");
	expect_error("PTL_CHECKSUM", "none",
		"postern: PTL_CHECKSUM is \"none\", which is not one of its values; set it to "
		"auto, header or full\n");
	expect_error("PTL_PEER_TIMEOUT", "10",
		"postern: PTL_PEER_TIMEOUT is \"10\", which is not a length of time with its unit "
		"(ns, us, ms or s); set it "
		"to a length of time such as 10s or 500ms\n");
	expect_error("PTL_PEER_TIMEOUT", "1us",
		"postern: PTL_PEER_TIMEOUT is \"1us\", which is too small; set it to a length of "
		"time such as 10s or 500ms\n");
	expect_error("PTL_PEER_TIMEOUT", "18446744073709551615s",
		"postern: PTL_PEER_TIMEOUT is \"18446744073709551615s\", which is too large; set "
		"it to a length of time such "
		"as 10s or 500ms\n");
	expect_error("PTL_EVENT_MEMORY", "256MB",
		"postern: PTL_EVENT_MEMORY is \"256MB\", which is not a size; set it to a size "
		"such as 256M\n");
	expect_error("PTL_MTU", "64",
		"postern: PTL_MTU is \"64\", which is not between 256 and 65280; set it to a "
		"number of bytes such as 1500\n");
}

static void settings_load__keeps_its_complaint_for_last_error(void **state)
{
	(void)state;
	setenv("PTL_POLL", "lazy", 1);
	assert_int_equal(load(), -1);
	assert_string_equal(log_last_error(), "PTL_POLL is \"lazy\", which is not one of its "
					      "values; set it to busy, adaptive or interrupt");
}

/* A variable of this name is warned about, and then this is said. */
static void name_warns(const char *name, const char *advice)
{
	char expected[256];

	setenv(name, "1", 1);
	assert_int_equal(load(), 0);
	snprintf(expected, sizeof(expected), "postern: %s is not a setting and has no effect; %s\n",
		name, advice);
	assert_string_equal(complaints, expected);
	unsetenv(name);
}

static void settings_load__warns_of_names_that_do_not_exist(void **state)
{
	static const char nothing_close[] = "postern-info lists the settings";

	(void)state;
	name_warns("PTL_IFACE", "did you mean PTL_IFACE_NAME?");
	name_warns("PTL_IFACENAME", "did you mean PTL_IFACE_NAME?");
	name_warns("PTL_nid", "did you mean PTL_NID?");
	name_warns("PTL_FAULTS_OF_MINE", nothing_close);
	name_warns("PTL_FOO", nothing_close); /* nothing of it is anywhere in PTL_NID */
	name_warns("PTL_", nothing_close);
	setenv("PTLE", "1", 1); /* not ours */
	setenv("XPTL_NID", "1", 1);
	/* of other implementations */
	setenv("PTL_LIM_MAX_ENTRIES", "1", 1);
	setenv("PTL_ENABLE_MEM", "1", 1);
	setenv("PTL_DISABLE_MEM_REG_CACHE", "1", 1);
	assert_int_equal(load(), 0);
	assert_string_equal(complaints, "");
	unsetenv("PTL_LIM_MAX_ENTRIES");
	unsetenv("PTL_ENABLE_MEM");
	unsetenv("PTL_DISABLE_MEM_REG_CACHE");
}

static void settings_load__survives_names_and_values_of_any_length(void **state)
{
	static char name[5000] = "PTL_";
	static char value[100000];

	(void)state;
	memset(name + 4, 'A', sizeof(name) - 5);
	memset(value, ';', sizeof(value) - 1);
	setenv(name, "1", 1);
	setenv("PTL_IFACE_NAME", value, 1);
	assert_int_equal(load(), 0);
	assert_int_equal(setting_items(SETTING_IFACE_NAME), sizeof(value));
	assert_non_null(strstr(complaints, "AAAA is not a setting"));
	unsetenv("PTL_IFACE_NAME");
	memset(value, '7', sizeof(value) - 1);
	setenv("PTL_NID", value, 1);
	assert_int_equal(load(), -1);
	unsetenv(name);
}

static void settings_load__sets_the_log_level_before_it_warns(void **state)
{
	(void)state;
	setenv("PTL_NIDD", "1", 1);
	setenv("PTL_LOG_LEVEL", "error", 1);
	assert_int_equal(load(), 0);
	assert_string_equal(complaints, "");
	setenv("PTL_LOG_LEVEL", "debug", 1);
	assert_int_equal(load(), 0);
	assert_non_null(strstr(complaints, "did you mean PTL_NID?"));
}

static void settings_load__takes_numbers_for_levels_and_modules(void **state)
{
	(void)state;
	setenv("PTL_LOG_LEVEL", "4", 1);
	assert_int_equal(load(), -1);
	setenv("PTL_LOG_LEVEL", "0", 1);
	assert_int_equal(load(), 0);
	assert_false(log_wants(LOG_LEVEL_WARNING));
	setenv("PTL_LOG_LEVEL", "3", 1);
	assert_int_equal(load(), 0);
	assert_true(log_wants(LOG_LEVEL_DEBUG));
	setenv("PTL_DEBUG", "0", 1);
	assert_int_equal(load(), 0);
	setenv("PTL_DEBUG", "1", 1);
	assert_int_equal(load(), 0);
	setenv("PTL_DEBUG", "2", 1);
	assert_int_equal(load(), -1);
	unsetenv("PTL_DEBUG");
	unsetenv("PTL_LOG_LEVEL");
}

static void setting_change__replaces_one_item_of_a_list_and_no_other(void **state)
{
	(void)state;
	setenv("PTL_IFACE_NAME", "a;b", 1);
	setenv("PTL_NID", "1;2", 1);
	assert_int_equal(load(), 0);
	assert_int_equal(setting_change(SETTING_NID, 0, "7"), 0);
	assert_string_equal(setting_item(SETTING_NID, 0), "7");
	assert_string_equal(setting_item(SETTING_NID, 1), "2");
	assert_string_equal(setting_item(SETTING_NID, 5), "2");
	assert_int_equal(setting_change(SETTING_NID, 3, "9"), 0);
	assert_string_equal(setting_item(SETTING_NID, 2), "2");
	assert_string_equal(setting_item(SETTING_NID, 3), "9");
	assert_string_equal(setting_item(SETTING_NID, 4), "2");
	assert_int_equal(load(), 0);
	assert_string_equal(setting_item(SETTING_NID, 0), "1");
	unsetenv("PTL_NID");
}

static void setting_change__that_is_wrong_changes_nothing(void **state)
{
	(void)state;
	assert_int_equal(load(), 0);
	assert_int_equal(setting_change(SETTING_POLL, 0, "lazy"), -1);
	assert_non_null(strstr(log_last_error(), "busy, adaptive or interrupt"));
	assert_true(setting_is(SETTING_POLL, "adaptive"));
	assert_int_equal(setting_change(SETTING_NID, 1, "x"), -1);
	assert_string_equal(setting_text(SETTING_NID), "");
}

static void setting_change__leaves_the_old_text_to_who_reads_it(void **state)
{
	const char *before;

	(void)state;
	setenv("PTL_POLL", "busy", 1);
	assert_int_equal(load(), 0);
	before = setting_text(SETTING_POLL);
	assert_int_equal(setting_change(SETTING_POLL, 0, "interrupt"), 0);
	assert_int_equal(setting_change(SETTING_POLL, 0, ""), 0); /* the default */
	assert_string_equal(before, "busy");
	assert_string_equal(setting_text(SETTING_POLL), "adaptive");
	unsetenv("PTL_POLL");
}

static void setting_find__knows_all_names_and_no_other(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SETTING_COUNT; i++)
		assert_int_equal(setting_find(setting_describe((enum setting)i)->name), i);
	assert_int_equal(setting_find("PTL_NIDD"), SETTING_COUNT);
}

static void setting_range__gives_both_ends(void **state)
{
	static const char *const wrong[] = {"20480", "20480-", "-21503", "20480-20494",
		"21503-20480", "0-100", "65530-65536", "1-16385", "20480-21503x", "20480 -21503",
		"70000-70100", "20480--21503", "99999999999999999999-99999999999999999999"};
	uint16_t first, last;

	(void)state;
	assert_int_equal(settings_load(), 0);
	setting_range(SETTING_UDP_PORTS, &first, &last);
	assert_int_equal(first, 20480);
	assert_int_equal(last, 21503);
	setenv("PTL_UDP_PORTS", "1-16384", 1);
	assert_int_equal(settings_load(), 0);
	setting_range(SETTING_UDP_PORTS, &first, &last);
	assert_int_equal(first, 1);
	assert_int_equal(last, 16384);
	setenv("PTL_UDP_PORTS", "65520-65535", 1);
	assert_int_equal(settings_load(), 0);
	setting_range(SETTING_UDP_PORTS, &first, &last);
	assert_int_equal(first, 65520);
	assert_int_equal(last, 65535);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("PTL_UDP_PORTS", wrong[i], 1);
		assert_int_not_equal(settings_load(), 0);
	}
	unsetenv("PTL_UDP_PORTS");
	assert_int_equal(settings_load(), 0);
}

static void setting_nodes_are_addresses__on_udp_in_every_form(void **state)
{
	static const char *const names[] = {"eth1;udp", "eth1;udp:eth1", "eth1;udp:10.0.0.5"};

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		setenv("PTL_IFACE_NAME", names[i], 1);
		assert_int_equal(settings_load(), 0);
		assert_false(setting_nodes_are_addresses(0));
		assert_true(setting_nodes_are_addresses(1));
	}
	/* over IPv6 they are not */
	setenv("PTL_IFACE_NAME", "udp:fd00::5", 1);
	assert_int_equal(settings_load(), 0);
	assert_false(setting_nodes_are_addresses(0));
	setenv("PTL_HOSTS", "/etc/postern-hosts", 1);
	setenv("PTL_IFACE_NAME", "udp;udp:eth1;udp:10.0.0.5;udp:fd00::5", 1);
	assert_int_equal(settings_load(), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(setting_nodes_are_addresses(i), i == 2);
	unsetenv("PTL_HOSTS");
	setenv("PTL_IFACE_NAME", "udpate", 1);
	assert_int_equal(settings_load(), 0);
	assert_false(setting_nodes_are_addresses(0));
	unsetenv("PTL_IFACE_NAME");
	assert_int_equal(settings_load(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			setting_describe__names_every_setting_and_says_what_it_does, reset),
		cmocka_unit_test_setup(setting_range__gives_both_ends, reset),
		cmocka_unit_test_setup(setting_nodes_are_addresses__on_udp_in_every_form, reset),
		cmocka_unit_test_setup(settings_load__gives_the_defaults, reset),
		cmocka_unit_test_setup(settings_load__accepts_every_default_as_a_value, reset),
		cmocka_unit_test_setup(settings_load__reads_again, reset),
		cmocka_unit_test_setup(settings_load__takes_a_blank_value_for_none, reset),
		cmocka_unit_test_setup(settings_load__ignores_blanks_around_a_value, reset),
		cmocka_unit_test_setup(setting_environment__splits_a_value_as_a_load_does, reset),
		cmocka_unit_test_setup(settings_load__that_fails_changes_nothing, reset),
		cmocka_unit_test_setup(setting_item__serves_the_last_to_those_that_follow, reset),
		cmocka_unit_test_setup(
			setting_number_item__gives_the_fallback_for_an_empty_item, reset),
		cmocka_unit_test_setup(setting_text__is_no_list_where_the_setting_is_none, reset),
		cmocka_unit_test_setup(setting_number__knows_sizes_and_lengths_of_time, reset),
		cmocka_unit_test_setup(settings_load__reads_addresses, reset),
		cmocka_unit_test_setup(settings_load__refuses_what_is_no_address, reset),
		cmocka_unit_test_setup(settings_load__says_what_is_wrong_and_what_to_do, reset),
		cmocka_unit_test_setup(settings_load__keeps_its_complaint_for_last_error, reset),
		cmocka_unit_test_setup(settings_load__warns_of_names_that_do_not_exist, reset),
		cmocka_unit_test_setup(
			settings_load__survives_names_and_values_of_any_length, reset),
		cmocka_unit_test_setup(settings_load__sets_the_log_level_before_it_warns, reset),
		cmocka_unit_test_setup(settings_load__takes_numbers_for_levels_and_modules, reset),
		cmocka_unit_test_setup(
			setting_change__replaces_one_item_of_a_list_and_no_other, reset),
		cmocka_unit_test_setup(setting_change__that_is_wrong_changes_nothing, reset),
		cmocka_unit_test_setup(setting_change__leaves_the_old_text_to_who_reads_it, reset),
		cmocka_unit_test_setup(setting_find__knows_all_names_and_no_other, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
