/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ip6.c - tests of ports on UDP sockets over IPv6, between processes of this host, whose
 * loopback interface has one address. Covers: pmd-glue/udp.c. */
#include "udp_rig.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define NODE6 7u

static char hosts_path[] = "/tmp/postern-test-udp-XXXXXX";

static void hosts_write(const char *text)
{
	FILE *file = fopen(hosts_path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Both ports on ::1; false: this host has no IPv6. */
static bool set_up_ip6(void)
{
	struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0;

	if (fd >= 0)
		close(fd);
	if (!has)
		return false;
	strcpy(hosts_path + strlen(hosts_path) - 6, "XXXXXX");
	fd = mkstemp(hosts_path);
	assert_true(fd >= 0);
	close(fd);
	hosts_write("7 ::1\n8 fd00::8\n");
	fixture_set("PTL_HOSTS", hosts_path);
	port_close(near);
	port_close(far);
	near = udp_open("::1", 0, 0, (uint32_t)getpid(), false);
	far = udp_open("lo", 0, 0, (uint32_t)getpid() + 1, false);
	assert_non_null(near);
	assert_non_null(far);
	return true;
}

static void tear_down_ip6(void)
{
	fixture_set("PTL_HOSTS", NULL);
	unlink(hosts_path);
}

static void udp_open__takes_an_ip6_address_that_the_file_has(void **state)
{
	static const uint32_t usual[] = {1480};

	(void)state;
	if (!set_up_ip6())
		skip();
	assert_int_equal(near->nid, NODE6);
	assert_int_equal(far->nid, NODE6);
	assert_int_equal(candidate_node(near->address), NODE6);
	assert_true(near->operations->link(near));
	for (uint32_t size = DATA_AT; size < near->frame_size; size = size * 5 / 4 + 1) {
		exchange(near, far, size, (uint8_t)size);
		exchange(far, near, size, (uint8_t)(size + 1));
	}
	exchange(near, far, near->frame_size, 1);
	check_run(64, usual, 1);
	tear_down_ip6();
}

/* Nobody knows where it goes: it is lost, and stops no other. */
static void udp_transmit__loses_frames_for_nodes_that_the_file_has_not(void **state)
{
	struct rte_mbuf *frames[3], *unknown;

	(void)state;
	if (!set_up_ip6())
		skip();
	for (unsigned n = 0; n < 3; n++)
		frames[n] = frame_named(near, far, 100, (uint8_t)n);
	unknown = frames[1];
	candidate_write(rte_pktmbuf_mtod(unknown, uint8_t *), 9, 0);
	for (uint16_t done = 0; done < 3;)
		done = (uint16_t)(done + port_transmit(near, frames + done, (uint16_t)(3 - done)));
	check_frame(port_take(far), near, far, 100, 0);
	check_frame(port_take(far), near, far, 100, 2);
	assert_int_equal(port_count(near).errors, 1);
	ask(near, 9, FAR_PID);
	assert_int_equal(port_count(near).errors, 2);
	tear_down_ip6();
}

static void pretend_ip6(int fd, uint32_t nid, uint32_t pid)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)(range.first + candidate_read(near->address))),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	uint32_t words[] = {rte_cpu_to_le_32(nid), rte_cpu_to_le_32(pid)};
	uint8_t bytes[64] = {0};

	memcpy(bytes + FROM_AT - FRAME_HEADER, words, sizeof(words));
	assert_int_equal(
		sendto(fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)&to, sizeof(to)),
		sizeof(bytes));
}

/* I3: the file says who speaks from an address. */
static void udp_receive__drops_what_names_another_ip6_sender(void **state)
{
	uint32_t pid = (uint32_t)getpid() + 2;
	struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t end = glue_now(NULL) + TIMEOUT;
	struct rte_mbuf *frame;
	uint32_t k = 0;

	(void)state;
	assert_true(fd >= 0);
	if (!set_up_ip6()) {
		close(fd);
		skip();
	}
	do {
		assert_true(k < CANDIDATES);
		name.sin6_port = htons((uint16_t)(range.first + candidate_index(range, pid, k++)));
	} while (bind(fd, (const struct sockaddr *)&name, sizeof(name)) != 0);
	pretend_ip6(fd, 8, pid); /* a node of the file that is elsewhere */
	pretend_ip6(fd, 9, pid); /* a node that is not in the file */
	while (port_count(near).errors < 2) {
		assert_int_equal(port_receive(near, &frame, 1), 0);
		assert_true(glue_now(NULL) < end);
	}
	pretend_ip6(fd, NODE6, pid);
	frame = port_take(near);
	assert_non_null(frame);
	rte_pktmbuf_free(frame);
	close(fd);
	tear_down_ip6();
}

static void check_no_ip6(const char *name)
{
	assert_null(udp_open(name, 0, 0, (uint32_t)getpid() + 3, false));
}

static void udp_open__wants_ip6_addresses_from_the_file(void **state)
{
	struct port *port;

	(void)state;
	check_no_ip6("::1"); /* without a file */
	if (!set_up_ip6())
		skip();
	check_no_ip6("fd00::8"); /* another host's */
	check_no_ip6("fd00::9");
	check_no_ip6("::ffff:127.0.0.1");
	check_no_ip6("fe80::1");
	check_no_ip6("ff02::1");
	check_no_ip6("::");
	check_no_ip6("ptg7");
	check_no_ip6("::1::1");
	/* An IPv4 address is meant where one is written. */
	port = udp_open(here_name, 0, 0, PID, false);
	assert_non_null(port);
	assert_int_equal(port->nid, here);
	port_close(port);
	hosts_write("8 fd00::8\n");
	check_no_ip6("::1");
	check_no_ip6("lo");
	check_no_ip6("");
	hosts_write("wrong\n");
	check_no_ip6("::1");
	tear_down_ip6();
}

static void of_a_stranger(struct msghdr *message, ssize_t *bytes)
{
	struct sockaddr_in6 *name = message->msg_name;
	(void)bytes;
	name->sin6_addr.s6_addr[0] ^= 1;
}

/* What nobody takes comes back, if the file has its host. */
static void udp_receive__tells_what_ip6_refused(void **state)
{
	(void)state;
	if (!set_up_ip6())
		skip();
	check_refused();
	errors_change = of_a_stranger;
	errors_asked = 0;
	ask(near, NODE6, (uint32_t)getpid() + 1);
	while (errors_asked < 2) /* the second finds none */
		check_nothing(near);
	tear_down_ip6();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(udp_open__takes_an_ip6_address_that_the_file_has),
		CASE(udp_open__wants_ip6_addresses_from_the_file),
		CASE(udp_transmit__loses_frames_for_nodes_that_the_file_has_not),
		CASE(udp_receive__drops_what_names_another_ip6_sender),
		CASE(udp_receive__tells_what_ip6_refused),
	};

	return cmocka_run_group_tests(tests, rig_begin, NULL);
}
