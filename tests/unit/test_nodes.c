/* SPDX-License-Identifier: BSD-3-Clause */
/* test_nodes.c - tests of pmd-glue/nodes.c: the file PTL_HOSTS, and what stands in it. */
#include "glue_fixture.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <pmd-glue/nodes.h>

#define MANY 5000u

static char path[] = "/tmp/postern-test-nodes-XXXXXX";
static struct nodes nodes;

static int group_start(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	return setenv("PTL_HOSTS", path, 1) == 0 && settings_load() == 0 ? 0 : -1;
}

static int group_end(void **state)
{
	(void)state;
	return unlink(path);
}

static bool load(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	return nodes_load(&nodes);
}

static union udp_name name_of(const char *text)
{
	union udp_name name = {.ip6 = {.sin6_family = AF_INET6, .sin6_port = htons(1)}};

	if (inet_pton(AF_INET, text, &name.ip4.sin_addr) == 1)
		name.ip4.sin_family = AF_INET;
	else
		assert_int_equal(inet_pton(AF_INET6, text, &name.ip6.sin6_addr), 1);
	return name;
}

static bool finds(const char *text, uint32_t *node)
{
	union udp_name name = name_of(text);

	return nodes_find(&nodes, &name, node);
}

static void check_node(uint32_t node, const char *text)
{
	union udp_name wanted = name_of(text), name;
	uint32_t found = ~node;

	assert_int_equal(nodes_name(&nodes, node, 20500, &name), sizeof(name.ip6));
	assert_int_equal(udp_name_port(&name), 20500);
	assert_memory_equal(&name.ip6.sin6_addr, &wanted.ip6.sin6_addr, 16);
	assert_int_equal(name.ip6.sin6_scope_id, 0);
	assert_true(nodes_find(&nodes, &name, &found));
	assert_int_equal(found, node);
}

static void nodes_load__reads_lines(void **state)
{
	union udp_name name;
	uint32_t node;

	(void)state;
	assert_true(load("# all hosts\n\n  7\tfd00::7 # the seventh\n0 2001:db8::1\r\n"
			 "10.0.0.8   FD00:0:0:0::8\n4294967294 ::1"));
	check_node(7, "fd00::7");
	check_node(0, "2001:db8::1");
	check_node(0x0a000008, "fd00::8");
	check_node(4294967294, "::1");
	assert_int_equal(nodes_name(&nodes, 1, 20500, &name), 0);
	assert_false(finds("fd00::9", &node));
	/* What looks like an address of the file is none. */
	assert_false(finds("::ffff:10.0.0.8", &node));
	assert_false(finds("10.0.0.8", &node));
	assert_false(finds("fe80::7", &node));
	nodes_free(&nodes);
	assert_int_equal(nodes_name(&nodes, 7, 20500, &name), 0);
	assert_false(finds("fd00::7", &node));
}

static void nodes_load__takes_many(void **state)
{
	static char text[MANY * 40];
	char *at = text, address[INET6_ADDRSTRLEN];

	(void)state;
	for (uint32_t n = 0; n < MANY; n++)
		at += sprintf(at, "%u fd00::%x\n", n * 2654435761u, n + 1);
	assert_true(load(text));
	for (uint32_t n = 0; n < MANY; n++) {
		snprintf(address, sizeof(address), "fd00::%x", n + 1);
		check_node(n * 2654435761u, address);
	}
	nodes_free(&nodes);
}

static void nodes_load__refuses_a_file_that_is_wrong(void **state)
{
	static const char *const wrong[] = {"", "# nobody\n", "7\n", "fd00::7 7\n", "7 fd00::7 8\n",
		"alpha fd00::7\n", "-1 fd00::7\n", "+1 fd00::7\n", "0x7 fd00::7\n", "7. fd00::7\n",
		"4294967295 fd00::7\n", "255.255.255.255 fd00::7\n", "4294967303 fd00::7\n",
		"99999999999999999999999 fd00::7\n", "7 fd00::7/64\n", "7 [fd00::7]\n", "7 alpha\n",
		"7 10.0.0.7\n", "7 ::ffff:10.0.0.7\n", "7 ::10.0.0.7\n", "7 fe80::7\n",
		"7 fe80::7%lo\n", "7 ff02::1\n", "7 ::\n",
		/* two of one */
		"7 fd00::7\n7 fd00::8\n", "7 fd00::7\n8 fd00:0::7\n", "7 fd00::7\n7 fd00::7\n",
		/* one wrong line among right ones */
		"7 fd00::7\n8\n9 fd00::9\n"};

	(void)state;
	for (unsigned n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
		assert_false(load(wrong[n]));
		assert_null(nodes.by_node);
		assert_null(nodes.by_address);
	}
}

static void nodes_load__wants_a_file(void **state)
{
	(void)state;
	assert_true(nodes_are_listed());
	fixture_set("PTL_HOSTS", "/nowhere/at/all");
	assert_false(nodes_load(&nodes));
	fixture_set("PTL_HOSTS", "/dev/null");
	assert_false(nodes_load(&nodes));
	assert_non_null(strstr(
		log_last_error(), "PTL_HOSTS: /dev/null cannot be read: it is not a regular file"));
	fixture_set("PTL_HOSTS", NULL);
	assert_false(nodes_are_listed());
	assert_false(nodes_load(&nodes));
	fixture_set("PTL_HOSTS", path);
}

/* With IPv4 a node id is an address, whatever a file says. */
static void nodes_name__of_ip4_is_the_node_id(void **state)
{
	union udp_name name;
	uint32_t node = 0;

	(void)state;
	nodes = (struct nodes){.family = AF_INET};
	assert_int_equal(nodes_name(&nodes, 0x0a000005, 20501, &name), sizeof(name.ip4));
	assert_int_equal(name.any.sa_family, AF_INET);
	assert_int_equal(ntohl(name.ip4.sin_addr.s_addr), 0x0a000005);
	assert_int_equal(udp_name_port(&name), 20501);
	assert_true(nodes_find(&nodes, &name, &node));
	assert_int_equal(node, 0x0a000005);
	assert_false(finds("::ffff:10.0.0.5", &node));
	nodes_free(&nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_load__reads_lines),
		cmocka_unit_test(nodes_load__takes_many),
		cmocka_unit_test(nodes_load__refuses_a_file_that_is_wrong),
		cmocka_unit_test(nodes_load__wants_a_file),
		cmocka_unit_test(nodes_name__of_ip4_is_the_node_id),
	};

	return cmocka_run_group_tests(tests, group_start, group_end);
}
