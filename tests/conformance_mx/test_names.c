/* SPDX-License-Identifier: BSD-3-Clause */
/* test_names.c - names of NICs: own ones, of the file PTL_MX_HOSTS, of DNS with UDP.
 * tests/net/mx_dns.c asks the resolver.
 *
 * Covers: lib/mx/name.c. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char hosts[] = "/tmp/postern-mx-hosts-XXXXXX";

static uint64_t nic_id_of_board(uint32_t board)
{
	uint64_t nic_id = 0;

	assert_ok(mx_board_number_to_nic_id(board, &nic_id));
	return nic_id;
}

static mx_return_t name_ask(const char *name, uint64_t *nic_id)
{
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", name);
	return mx_hostname_to_nic_id(copy, nic_id);
}

static void name_expect(const char *name, uint64_t want)
{
	uint64_t nic_id = 0;

	assert_ok(name_ask(name, &nic_id));
	assert_int_equal(nic_id, want);
}

static void name_refuse(const char *name)
{
	uint64_t nic_id = 99;

	assert_code(name_ask(name, &nic_id), MX_HOST_NOT_FOUND);
	assert_int_equal(nic_id, 99);
}

/* The NIC id of a node id, by that of board 0, whose node id is 1. */
static uint64_t nic_id_of_node(uint32_t nid)
{
	return nic_id_of_board(0) - 1 + nid;
}

static void hosts_write(const char *text)
{
	FILE *file = fopen(hosts, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void own_boards_have_names(void **state)
{
	(void)state;
	name_expect("alpha.example.org:0", nic_id_of_board(0));
	name_expect("alpha.example.org:1", nic_id_of_board(1));
	name_expect("alpha.example.org", nic_id_of_board(0));
	name_expect("alpha:1", nic_id_of_board(1));
	name_expect("alpha", nic_id_of_board(0));
	name_expect("ALPHA.Example.ORG:1", nic_id_of_board(1));
}

static void what_is_no_name_is_not_found(void **state)
{
	static const char *const names[] = {"", ":", ":0", "alpha:", "alpha:x", "alpha:-1",
		"alpha:2", "alpha:0:0", "alpha:4294967296", "alpha:99999999999999999999", "alph",
		"alphaa", "alpha.example.com", "beta", "alpha:0 ", "%s%s%n"};
	char longest[512];

	(void)state;
	for (unsigned i = 0; i < COUNT(names); i++)
		name_refuse(names[i]);
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	name_refuse(longest);
}

static void own_nic_ids_lead_to_names_and_back(void **state)
{
	char name[MX_MAX_HOSTNAME_LEN];

	(void)state;
	for (uint32_t board = 0; board < 2; board++) {
		memset(name, 1, sizeof(name));
		assert_ok(mx_nic_id_to_hostname(nic_id_of_board(board), name));
		assert_string_equal(
			name, board == 0 ? "alpha.example.org:0" : "alpha.example.org:1");
		name_expect(name, nic_id_of_board(board));
	}
}

static void a_name_that_is_null_is_refused(void **state)
{
	char name[MX_MAX_HOSTNAME_LEN] = "alpha";
	uint64_t nic_id = 0;

	(void)state;
	assert_code(mx_hostname_to_nic_id(NULL, &nic_id), MX_BAD_HOSTNAME_ARGS);
	assert_code(mx_hostname_to_nic_id(name, NULL), MX_BAD_HOSTNAME_ARGS);
	assert_code(mx_nic_id_to_hostname(nic_id_of_board(0), NULL), MX_BAD_HOSTNAME_ARGS);
}

static void unknown_nic_ids_have_no_name(void **state)
{
	static const uint64_t nic_ids[] = {0, 1, 2, ~UINT64_C(0), UINT64_C(1) << 48};
	char name[MX_MAX_HOSTNAME_LEN] = "";

	(void)state;
	for (unsigned i = 0; i < COUNT(nic_ids); i++)
		assert_code(mx_nic_id_to_hostname(nic_ids[i], name), MX_HOST_NOT_FOUND);
	assert_code(mx_nic_id_to_hostname(nic_id_of_node(77), name), MX_HOST_NOT_FOUND);
	assert_string_equal(name, "");
}

static void a_file_names_other_hosts(void **state)
{
	char name[MX_MAX_HOSTNAME_LEN];

	(void)state;
	hosts_write("# hosts of this test\n\nbeta.example.org 77\nbeta:1\t0.0.0.78 # its second\n"
		    "  gamma:0  79\nalpha 80\n10.0.0.9 81\ndelta 82");
	name_expect("beta", nic_id_of_node(77));
	name_expect("BETA:0", nic_id_of_node(77));
	name_expect("beta.example.org:1", nic_id_of_node(78));
	name_expect("gamma.else.where", nic_id_of_node(79));
	name_expect("alpha", nic_id_of_board(0)); /* own names come first */
	name_expect("10.0.0.9", nic_id_of_node(81));
	name_refuse("10");
	name_refuse("beta.else.where");
	name_refuse("beta:2");
	assert_ok(mx_nic_id_to_hostname(nic_id_of_node(77), name));
	assert_string_equal(name, "beta.example.org:0");
	assert_ok(mx_nic_id_to_hostname(nic_id_of_node(78), name));
	assert_string_equal(name, "beta:1");
	assert_ok(mx_nic_id_to_hostname(nic_id_of_node(82), name));
	assert_string_equal(name, "delta:0");
}

static void wrong_lines_of_the_file_are_left_out(void **state)
{
	char text[2048], *at = text;

	(void)state;
	at += sprintf(at, "beta\nbeta:x 77\nbeta 77 78\n:0 77\nbeta 4294967296\nbeta -1\n");
	at += sprintf(
		at, "beta 1.2.3.4.5\nbeta 0.0.0.256\nbeta 4294967295\nbeta #77\nbeta:0:1 77\n");
	memset(at, 'b', 77);
	at += 77;
	sprintf(at, " 77\ngamma 79\n");
	hosts_write(text);
	name_refuse("beta");
	name_expect("gamma", nic_id_of_node(79));
	hosts_write("");
	name_refuse("gamma");
	assert_int_equal(unlink(hosts), 0);
	name_refuse("gamma");
	hosts_write("gamma 80\n");
	name_expect("gamma", nic_id_of_node(80));
}

static void a_file_that_cannot_be_read_is_told(void **state)
{
	char said[256] = "";
	int before = dup(STDERR_FILENO), ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	setenv("PTL_MX_HOSTS", "/", 1);
	dup2(ends[1], STDERR_FILENO);
	name_refuse("gamma");
	dup2(before, STDERR_FILENO);
	setenv("PTL_MX_HOSTS", hosts, 1);
	close(before);
	close(ends[1]);
	assert_true(read(ends[0], said, sizeof(said) - 1) > 0);
	close(ends[0]);
	assert_non_null(strstr(said, "PTL_MX_HOSTS: / cannot be read: it is not a regular file"));
}

static void addresses_are_names_with_udp(void **state)
{
	(void)state;
	name_refuse("10.1.2.3"); /* not without */
	assert_ok(mx_finalize());
	setenv("PTL_ENCAP", "udp", 1);
	setenv("PTL_IP", "10.0.0.5/24;10.0.0.6/24", 1);
	unsetenv("PTL_NID");
	assert_ok(mx_init());
	name_expect("10.0.0.6", nic_id_of_board(1));
	name_expect("10.0.0.7:0", nic_id_of_board(1) + 1);
	name_refuse("10.0.0.7:1");
	/* a node that this one does not reach */
	name_expect("127.0.0.1", nic_id_of_board(0) - 0x0a000005 + 0x7f000001);
	name_expect("gamma", nic_id_of_board(0) - 0x0a000005 + 80);
	assert_ok(mx_finalize());
	unsetenv("PTL_ENCAP");
	unsetenv("PTL_IP");
	setenv("PTL_NID", "1;2", 1);
	assert_ok(mx_init());
}

static int names_open(void **state)
{
	int file = mkstemp(hosts);

	if (file < 0)
		return -1;
	close(file);
	setenv("PTL_MX_HOSTS", hosts, 1);
	return group_open(state);
}

static int names_close(void **state)
{
	unlink(hosts);
	return group_close(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_boards_have_names),
		cmocka_unit_test(what_is_no_name_is_not_found),
		cmocka_unit_test(own_nic_ids_lead_to_names_and_back),
		cmocka_unit_test(a_name_that_is_null_is_refused),
		cmocka_unit_test(unknown_nic_ids_have_no_name),
		cmocka_unit_test(a_file_names_other_hosts),
		cmocka_unit_test(wrong_lines_of_the_file_are_left_out),
		cmocka_unit_test(a_file_that_cannot_be_read_is_told),
		cmocka_unit_test(addresses_are_names_with_udp),
	};

	return cmocka_run_group_tests(tests, names_open, names_close);
}
