/* SPDX-License-Identifier: BSD-3-Clause */
/* test_packet.c - tests of pmd-glue/packet.c, over a veth pair in a network namespace that ends
 * with this process.
 *
 * Covers: pmd-glue/packet.c, pmd-glue/program.c, pmd-glue/kernel.c, pmd-glue/xdp.c.
 */
#include "../nap.h"
#include "glue_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include <pmd-glue/eal.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/kernel.h>

/* For the leak checker: what libxdp keeps is not ours. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:libxdp";
}

static bool ready; /* there is a namespace with ptg0 and ptg1 */

static int command(const char *line)
{
	int status = system(line);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Without the rights to make a namespace the tests are skipped, but not where CI promises them. */
static void need_namespace(void)
{
	if (ready)
		return;
	if (getenv("CI"))
		fail_msg("no network namespace can be made: run as root with iproute2 installed");
	print_message("skipped: needs root and iproute2 to make a network namespace\n");
	skip();
}

static void wait_for_link(struct port *port, bool up)
{
	uint64_t end = glue_now(NULL) + TIMEOUT;

	while (port->operations->link(port) != up) {
		assert_true(glue_now(NULL) < end);
		nap();
	}
}

/* The next frame of ours: the kernel sends some of its own. */
static struct rte_mbuf *take(struct port *port)
{
	for (;;) {
		struct rte_mbuf *frame = port_take(port);
		const uint8_t *bytes;
		assert_non_null(frame);
		bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
		if (bytes[12] == 0x88 && bytes[13] == 0xb5)
			return frame;
		rte_pktmbuf_free(frame);
	}
}

/* A frame arrives whole, and in one piece. */
static void carry(
	struct port *from, struct port *to, struct rte_mbuf *frame, uint32_t size, uint8_t fill)
{
	port_send(from, frame);
	frame = take(to);
	assert_true(frame_is(frame, size, fill));
	rte_pktmbuf_free(frame);
}

static void exchange(struct port *from, struct port *to, uint32_t size, uint8_t fill)
{
	carry(from, to, frame_make(from, to->address, size, fill), size, fill);
}

static void check_sizes(const char *mtu, uint32_t frame_size)
{
	char line[128];
	struct port *one, *two;

	snprintf(
		line, sizeof(line), "ip link set ptg0 mtu %s && ip link set ptg1 mtu %s", mtu, mtu);
	assert_int_equal(command(line), 0);
	one = packet_open("ptg0", 0);
	two = packet_open("ptg1", 0);
	assert_non_null(one);
	assert_non_null(two);
	assert_int_equal(one->frame_size, frame_size);
	wait_for_link(one, true);
	for (uint32_t size = 60; size < frame_size; size = size * 7 / 4) {
		exchange(one, two, size, (uint8_t)size);
		exchange(two, one, size, (uint8_t)(size + 1));
	}
	exchange(one, two, frame_size, 5);
	for (unsigned n = 0; n < 3000; n++)
		exchange(two, one, 64, (uint8_t)n);
	port_close(one);
	port_close(two);
}

static void packet_transmit__carries_frames_up_to_the_mtu(void **state)
{
	(void)state;
	need_namespace();
	check_sizes("1500", 1514);
	check_sizes("9000", 9014);
	check_sizes("65535", 65294);
	check_sizes("300", 314);
	assert_int_equal(command("ip link set ptg0 mtu 1500 && ip link set ptg1 mtu 1500"), 0);
}

static void packet_transmit__sends_chains_and_foreign_memory(void **state)
{
	static uint8_t memory[2000];
	struct rte_mbuf_ext_shared_info info = {.refcnt = 1};
	struct port *one, *two;
	struct rte_mbuf *head, *tail;

	(void)state;
	need_namespace();
	one = packet_open("ptg0", 0);
	two = packet_open("ptg1", 0);
	head = frame_make(one, two->address, 50, 6);
	tail = rte_pktmbuf_alloc(one->pool);
	rte_mbuf_ext_refcnt_set(&info, 2); /* never freed */
	rte_pktmbuf_attach_extbuf(tail, memory, 0, sizeof(memory), &info);
	memset(memory, 6, sizeof(memory));
	rte_pktmbuf_append(tail, 1000);
	assert_int_equal(rte_pktmbuf_chain(head, tail), 0);
	carry(one, two, head, 1050, 6);
	port_close(one);
	port_close(two);
}

static void packet_transmit__counts_what_is_longer_than_the_mtu(void **state)
{
	struct port *one, *two;
	struct rte_mbuf *frame;

	(void)state;
	need_namespace();
	one = packet_open("ptg0", 1000);
	two = packet_open("ptg1", 0);
	assert_int_equal(one->frame_size, 1014);
	frame = frame_make(one, two->address, 1014, 1);
	port_send(one, frame);
	rte_pktmbuf_free(take(two));
	port_send(one, frame_make(one, two->address, 1015, 2));
	assert_int_equal(port_count(one).errors, 1);
	exchange(one, two, 100, 3);
	port_close(one);
	port_close(two);
}

static void packet_transmit__survives_an_interface_that_goes_down(void **state)
{
	struct port *one, *two;
	struct rte_mbuf *frame;
	bool found = false;
	uint64_t end;

	(void)state;
	need_namespace();
	one = packet_open("ptg0", 0);
	two = packet_open("ptg1", 0);
	exchange(one, two, 100, 1);
	assert_int_equal(command("ip link set ptg0 down"), 0);
	wait_for_link(one, false);
	wait_for_link(two, false);
	for (unsigned n = 0; n < 3000; n++) {
		struct port *port = n % 2 ? one : two;
		frame = frame_make(port, everybody, 1000, 2);
		if (port_transmit(port, &frame, 1) == 0)
			rte_pktmbuf_free(frame);
		if (port_receive(port, &frame, 1) == 1)
			rte_pktmbuf_free(frame);
	}
	assert_int_equal(command("ip link set ptg0 up"), 0);
	wait_for_link(one, true);
	wait_for_link(two, true);
	/* What got through before is old news. The kernel takes its time to send again after the
	 * link is up, and looks at what waits only when the next frame is sent. */
	end = glue_now(NULL) + TIMEOUT;
	do {
		assert_true(glue_now(NULL) < end);
		port_send(one, frame_make(one, everybody, 100, 9));
		if (port_receive(two, &frame, 1) == 1) {
			found = frame->pkt_len == 100 && frame_is(frame, 100, 9);
			rte_pktmbuf_free(frame);
		}
		nap();
	} while (!found);
	port_close(one);
	port_close(two);
}

static unsigned errors_asked; /* looks at a socket's error */

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
	errors_asked += level == SOL_SOCKET && option == SO_ERROR;
	return __real_getsockopt(fd, level, option, value, size);
}

static void packet_interrupt__asks_for_errors_after_a_call_in_vain_alone(void **state)
{
	struct port *one, *two;
	struct rte_mbuf *frame;

	(void)state;
	need_namespace();
	one = packet_open("ptg0", 0);
	two = packet_open("ptg1", 0);
	wait_for_link(one, true);
	exchange(one, two, 100, 1);
	errors_asked = 0;
	(void)two->operations->interrupt(two, true);
	assert_int_equal(errors_asked, 0);
	(void)two->operations->interrupt(two, false);
	/* The kernel sends some, too. */
	while (port_receive(two, &frame, 1) != 0) {
		rte_pktmbuf_free(frame);
		(void)two->operations->interrupt(two, true);
	}
	(void)two->operations->interrupt(two, true);
	assert_int_equal(errors_asked, 1);
	port_close(one);
	port_close(two);
}

/* A poll core that sleeps would be called without end. */
static void packet_interrupt__calls_no_more_for_an_interface_that_was_down(void **state)
{
	struct pollfd called = {.events = POLLIN};
	struct port *one;

	(void)state;
	need_namespace();
	one = packet_open("ptg0", 0);
	assert_int_equal(command("ip link set ptg0 down"), 0);
	wait_for_link(one, false);
	assert_int_equal(command("ip link set ptg0 up"), 0);
	wait_for_link(one, true);
	one->operations->interrupt(one, false);
	called.fd = one->operations->interrupt(one, true);
	assert_true(called.fd >= 0);
	poll(&called, 1, 0);
	assert_int_equal(called.revents & POLLERR, 0);
	port_close(one);
}

/* Frames larger than the other end takes, between others: those arrive. */
static void check_refused(unsigned large)
{
	struct port *one = packet_open("ptg0", 0), *two = packet_open("ptg1", 0);
	struct rte_mbuf *frame;

	assert_non_null(one);
	assert_non_null(two);
	wait_for_link(one, true);
	exchange(one, two, 1514, 1);
	for (unsigned n = 0; n < large; n++) {
		frame = frame_make(one, two->address, 2000 + n % 3, 2);
		assert_int_equal(port_transmit(one, &frame, 1), 1);
	}
	frame = frame_make(one, two->address, 100, 3);
	carry(one, two, frame, 100, 3);
	exchange(one, two, 1514, 4);
	assert_int_equal(port_count(one).errors, large);
	port_close(one);
	port_close(two);
}

static void packet_transmit__goes_on_after_frames_that_the_other_end_refuses(void **state)
{
	(void)state;
	need_namespace();
	assert_int_equal(command("ip link set ptg0 mtu 9000"), 0);
	check_refused(1);
	check_refused(3000);
	assert_int_equal(command("ip link set ptg0 mtu 1500"), 0);
}

static void packet_open__says_what_is_wrong(void **state)
{
	(void)state;
	need_namespace();
	log_clear_error();
	assert_null(packet_open("ptg0", 1501));
	assert_non_null(strstr(log_last_error(), "ip link set ptg0 mtu 1501"));
	assert_int_equal(command("ip link set ptg0 down"), 0);
	assert_false(kernel_is_up("ptg0"));
	assert_null(packet_open("ptg0", 0));
	assert_non_null(strstr(log_last_error(), "ip link set ptg0 up"));
	assert_int_equal(command("ip link set ptg0 up"), 0);
	assert_true(kernel_is_up("ptg0"));
}

/* The filter of a process by the last bytes of a key. */
static struct port_selection selection(uint8_t key)
{
	return (struct port_selection){
		.ethertype = 0x88b5, .at = 22, .key = {1, 2, 3, 4, 5, 6, 7, key}};
}

static void select_key(struct port *port, uint8_t key)
{
	struct port_selection wanted = selection(key);

	port->operations->select(port, &wanted);
}

static void send_key(struct port *from, const uint8_t *to, uint8_t key, uint8_t fill)
{
	struct rte_mbuf *frame = frame_make(from, to, 100, fill);

	memcpy(rte_pktmbuf_mtod_offset(frame, uint8_t *, 22), selection(key).key, 8);
	port_send(from, frame);
}

/* The next frame of a port is the one with that filling. */
static void take_fill(struct port *port, uint8_t fill)
{
	struct rte_mbuf *frame = take(port);

	assert_int_equal(frame_fill(frame), fill);
	rte_pktmbuf_free(frame);
}

static void packet_select__leaves_a_process_what_is_addressed_to_it(void **state)
{
	static const uint8_t stranger[6] = {2, 9, 9, 9, 9, 9};
	struct port *here[3], *there;
	struct rte_mbuf *other;
	int on = 0;

	(void)state;
	need_namespace();
	there = packet_open("ptg1", 0);
	select_key(there, 9);
	for (uint8_t n = 0; n < 3; n++) {
		here[n] = packet_open("ptg0", 0);
		assert_non_null(here[n]);
		select_key(here[n], n);
	}
	wait_for_link(there, true);
	send_key(there, here[0]->address, 1, 10);   /* from outside */
	send_key(here[2], here[0]->address, 1, 11); /* from this interface */
	send_key(here[0], everybody, 1, 12);
	send_key(there, stranger, 1, 13); /* another host's: nobody takes it */
	send_key(here[0], stranger, 1, 13);
	send_key(there, everybody, 0, 14);
	send_key(there, everybody, 1, 15);
	send_key(here[1], there->address, 9, 16);
	take_fill(here[1], 10);
	take_fill(here[1], 11);
	take_fill(here[1], 12);
	take_fill(here[1], 15);
	take_fill(here[0], 14);
	take_fill(there, 16);
	for (uint8_t n = 0; n < 3; n++)
		assert_int_equal(port_receive(here[n], &other, 1), 0);
	assert_int_equal(setsockopt(here[0]->operations->interrupt(here[0], true), SOL_SOCKET,
				 SO_DETACH_FILTER, &on, sizeof(on)),
		-1);
	assert_int_equal(errno, EPERM);
	port_close(here[0]); /* one that goes takes nobody along */
	send_key(here[2], there->address, 1, 17);
	send_key(here[2], here[1]->address, 1, 18);
	take_fill(here[1], 18);
	port_close(here[1]);
	port_close(here[2]);
	port_close(there);
}

static void packet_link__finds_an_interface_that_was_made_again(void **state)
{
	struct port *one, *two;
	char line[256];
	const uint8_t *a, *b;

	(void)state;
	need_namespace();
	one = packet_open("ptg0", 0);
	two = packet_open("ptg1", 0);
	exchange(one, two, 100, 1);
	assert_int_equal(command("ip link del ptg0"), 0);
	wait_for_link(one, false);
	wait_for_link(two, false);
	for (unsigned n = 0; n < 100; n++)
		port_send(one, frame_make(one, two->address, 100, 2)); /* lost, but taken */
	a = one->address;
	b = two->address;
	snprintf(line, sizeof(line),
		"ip link add ptg0 address %02x:%02x:%02x:%02x:%02x:%02x type veth peer name ptg1 "
		"address "
		"%02x:%02x:%02x:%02x:%02x:%02x && ip link set ptg0 up && ip link set ptg1 up",
		a[0], a[1], a[2], a[3], a[4], a[5], b[0], b[1], b[2], b[3], b[4], b[5]);
	assert_int_equal(command(line), 0);
	wait_for_link(one, true);
	wait_for_link(two, true);
	exchange(one, two, 100, 3);
	exchange(two, one, 100, 4);
	port_close(one);
	port_close(two);
}

/* --- UDP */

#define UDP_AT   34u /* where it begins */
#define UDP_DATA 42u

/* A datagram whose checksums are the port's to fill in, with `size` bytes of data. */
static struct rte_mbuf *datagram_make(
	struct port *from, const uint8_t *to, uint32_t size, uint8_t fill)
{
	struct rte_mbuf *frame = frame_make(from, to, UDP_DATA + size, fill);
	struct rte_ipv4_hdr *ipv4 = rte_pktmbuf_mtod_offset(frame, struct rte_ipv4_hdr *, 14);
	struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(frame, struct rte_udp_hdr *, UDP_AT);

	*rte_pktmbuf_mtod_offset(frame, rte_be16_t *, 12) = htons(RTE_ETHER_TYPE_IPV4);
	*ipv4 = (struct rte_ipv4_hdr){.version_ihl = 0x45,
		.total_length = htons((uint16_t)(28 + size)),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = htonl(0x0a090001),
		.dst_addr = htonl(0x0a090002)};
	*udp = (struct rte_udp_hdr){.src_port = htons(49152),
		.dst_port = htons(34997),
		.dgram_len = htons((uint16_t)(8 + size))};
	frame->l2_len = 14;
	frame->l3_len = 20;
	frame->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
	return frame;
}

static struct rte_mbuf *datagram_take(struct port *port)
{
	for (;;) {
		struct rte_mbuf *frame = port_take(port);
		const uint8_t *bytes;
		assert_non_null(frame);
		bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
		if (bytes[12] == 0x08 && bytes[13] == 0 && bytes[UDP_AT + 2] == 0x88 &&
			bytes[UDP_AT + 3] == 0xb5)
			return frame;
		rte_pktmbuf_free(frame);
	}
}

static void datagram_check(struct port *port, uint32_t size, uint8_t fill)
{
	struct rte_mbuf *frame = datagram_take(port);
	struct rte_ipv4_hdr *ipv4 = rte_pktmbuf_mtod_offset(frame, struct rte_ipv4_hdr *, 14);
	struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(frame, struct rte_udp_hdr *, UDP_AT);
	const uint8_t *data = rte_pktmbuf_mtod_offset(frame, const uint8_t *, UDP_DATA);

	assert_int_equal(frame->pkt_len, UDP_DATA + size);
	assert_int_equal(frame->data_len, UDP_DATA + size);
	assert_int_equal(rte_raw_cksum(ipv4, sizeof(*ipv4)), 0xffff);
	assert_int_equal(ntohs(ipv4->total_length), 28 + size);
	assert_int_equal(ntohs(udp->dgram_len), 8 + size);
	assert_true(udp->dgram_cksum == 0 ||
		    (frame->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	for (uint32_t n = 0; n < size; n++)
		assert_int_equal(data[n], fill);
	rte_pktmbuf_free(frame);
}

/* Sizes of data; a 0 ends them. All are sent at once. */
static void check_datagrams(struct port *one, struct port *two, const uint16_t *sizes)
{
	struct rte_mbuf *frames[64];
	uint16_t count = 0;

	for (; sizes[count] != 0; count++)
		frames[count] =
			datagram_make(one, two->address, sizes[count], (uint8_t)(count + 1));
	assert_int_equal(port_transmit(one, frames, count), count);
	for (uint16_t n = 0; n < count; n++)
		datagram_check(two, sizes[n], (uint8_t)(n + 1));
}

/* Two ports at the ends of a link, for UDP; without a namespace the test is skipped. */
static void datagrams_open(struct port **one, struct port **two)
{
	need_namespace();
	fixture_set("PTL_ENCAP", "udp");
	*one = packet_open("ptg0", 0);
	*two = packet_open("ptg1", 0);
	wait_for_link(*one, true);
}

static void datagrams_close(struct port *one, struct port *two)
{
	port_close(one);
	port_close(two);
	fixture_set("PTL_ENCAP", NULL);
}

static void packet_transmit__sends_like_datagrams_as_one_and_receives_each(void **state)
{
	static const uint16_t alone[] = {1, 0}, tiny[] = {3, 3, 3, 2, 0},
			      rising[] = {100, 200, 300, 0},
			      falling[] = {1472, 1472, 900, 900, 900, 7, 1472, 0};
	uint16_t full[61] = {0};
	struct port *one, *two;

	(void)state;
	datagrams_open(&one, &two);
	assert_true(one->checksum_offload);
	check_datagrams(one, two, alone);
	check_datagrams(one, two, tiny);
	check_datagrams(one, two, rising);
	check_datagrams(one, two, falling);
	for (unsigned n = 0; n < 60; n++)
		full[n] = 1472; /* more than a datagram of IPv4 can hold */
	check_datagrams(one, two, full);
	exchange(one, two, 100, 7); /* what is no datagram goes as it is */
	datagrams_close(one, two);
}

/* Messages of the kernel's that have reached ptg1, its own included. */
static unsigned messages_counted(void)
{
	FILE *file = fopen("/proc/net/dev", "r");
	char line[256];
	unsigned count = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		(void)sscanf(line, " ptg1: %*u %u", &count);
	fclose(file);
	return count;
}

/* What is longer than a device takes the kernel would split before the device, into as many
 * messages as there are datagrams. */
static void packet_transmit__joins_no_more_than_a_device_takes(void **state)
{
	uint16_t sizes[51] = {0};
	unsigned before;
	struct port *one, *two;

	(void)state;
	datagrams_open(&one, &two);
	for (unsigned n = 0; n < 48; n++)
		sizes[n] = 1364;
	sizes[48] = 30; /* 65,530 bytes of IPv4, 65,544 with Ethernet */
	before = messages_counted();
	check_datagrams(one, two, sizes);
	assert_in_range(messages_counted() - before, 2, 20);
	datagrams_close(one, two);
}

/* Datagrams to two processes of one node, from one UDP port to one UDP port. */
static void packet_transmit__joins_no_datagrams_of_two_processes(void **state)
{
	const struct port_selection wanted = {.ethertype = RTE_ETHER_TYPE_IPV4,
		.udp_port = 34997,
		.at = UDP_DATA,
		.key = {1, 1, 1, 1, 1, 1, 1, 1}};
	struct port_selection other = wanted;
	struct rte_mbuf *frames[8];
	struct port *one, *two, *three;

	(void)state;
	datagrams_open(&one, &two);
	three = packet_open("ptg1", 0);
	memset(other.key, 2, sizeof(other.key));
	one->operations->select(one, &wanted);
	two->operations->select(two, &wanted);
	three->operations->select(three, &other);
	for (uint8_t n = 0; n < 8; n++)
		frames[n] = datagram_make(one, two->address, 500, n < 4 ? 1 : 2);
	assert_int_equal(port_transmit(one, frames, 8), 8);
	for (unsigned n = 0; n < 4; n++) {
		datagram_check(two, 500, 1);
		datagram_check(three, 500, 2);
	}
	datagrams_close(one, two);
	port_close(three);
}

/* What check_datagrams() sends, by its first datagram. */
static const struct port_selection first_fill = {.ethertype = RTE_ETHER_TYPE_IPV4,
	.udp_port = 34997,
	.at = UDP_DATA,
	.key = {1, 1, 1, 1, 1, 1, 1, 1}};

/* What the sockets of UDP at port 34997 have dropped in all. */
static unsigned sink_drops(void)
{
	FILE *file = fopen("/proc/net/udp", "r");
	char line[256];
	unsigned all = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		unsigned at = 0, drops = 0;
		(void)sscanf(line, " %*u: %*x:%x %*s %*s %*s %*s %*s %*u %*u %*u %*u %*s %u", &at,
			&drops);
		all += at == 34997 ? drops : 0;
	}
	fclose(file);
	return all;
}

/* Datagrams for which the kernel has found no socket, and whose senders it has told so. */
static unsigned datagrams_refused(void)
{
	FILE *file = fopen("/proc/net/snmp", "r");
	char line[512];
	unsigned count = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		(void)sscanf(line, "Udp: %*u %u", &count);
	fclose(file);
	return count;
}

/* Joined datagrams that both the port and the kernel's UDP get: this drops them as one, or, without
 * the port's socket, refuses them. */
static void check_sink(struct port *one, struct port *two, bool sink)
{
	static const uint16_t sizes[] = {500, 500, 500, 500, 0};
	unsigned drops = sink_drops(), refused = datagrams_refused();
	uint64_t end = glue_now(NULL) + TIMEOUT;

	check_datagrams(one, two, sizes);
	while (sink_drops() == drops && datagrams_refused() == refused) {
		assert_true(glue_now(NULL) < end);
		nap();
	}
	assert_int_equal(sink_drops() - drops, sink ? 1 : 0);
	assert_int_equal(datagrams_refused() - refused, sink ? 0 : 1);
}

static void packet_select__keeps_datagrams_from_the_kernels_udp(void **state)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(34997)};
	int other = socket(AF_INET, SOCK_DGRAM, 0);
	struct port *one, *two;

	(void)state;
	need_namespace();
	assert_int_equal(command("ip address add 10.9.0.2/24 dev ptg1"), 0);
	datagrams_open(&one, &two);
	check_sink(one, two, false);
	two->operations->select(two, &first_fill);
	check_sink(one, two, true);
	port_close(two);
	assert_int_equal(bind(other, (struct sockaddr *)&name, sizeof(name)), 0);
	two = packet_open("ptg1", 0);
	two->operations->select(two, &first_fill); /* goes on without */
	close(other);
	check_sink(one, two, false);
	datagrams_close(one, two);
	assert_int_equal(command("ip address flush dev ptg1"), 0);
}

static void packet_receive__tells_since_when_joined_datagrams_wait(void **state)
{
	struct rte_mbuf *frames[2];
	struct port *one, *two;
	struct pollfd poll_of;
	uint64_t before, came;

	(void)state;
	datagrams_open(&one, &two);
	two->operations->select(two, &first_fill);
	while (port_receive(two, frames, 1) > 0)
		rte_pktmbuf_free(frames[0]);
	before = glue_now(NULL);
	for (unsigned n = 0; n < 2; n++)
		frames[n] = datagram_make(one, two->address, 500, 1);
	assert_int_equal(port_transmit(one, frames, 2), 2);
	poll_of = (struct pollfd){two->operations->interrupt(two, true), POLLIN, 0};
	assert_int_equal(poll(&poll_of, 1, (int)(TIMEOUT / MILLISECOND)), 1);
	two->operations->interrupt(two, false);
	came = glue_now(NULL);
	while (glue_now(NULL) < came + 20 * MILLISECOND)
		nap();
	datagram_check(two, 500, 1);
	assert_in_range(two->arrived, before - MILLISECOND, came + MILLISECOND);
	datagrams_close(one, two);
}

static void packet_transmit__gathers_pieces_of_datagrams_sent_as_one(void **state)
{
	static uint8_t memory[8 * 1000];
	struct rte_mbuf_ext_shared_info info = {.refcnt = 1};
	struct rte_mbuf *frames[8];
	struct port *one, *two;

	(void)state;
	datagrams_open(&one, &two);
	rte_mbuf_ext_refcnt_set(&info, 9); /* never freed */
	for (unsigned n = 0; n < 8; n++) {
		struct rte_mbuf *tail = rte_pktmbuf_alloc(one->pool);
		memset(memory + n * 1000, (int)n, 1000);
		frames[n] = datagram_make(one, two->address, 1100, (uint8_t)n);
		rte_pktmbuf_trim(frames[n], 1000);
		rte_pktmbuf_attach_extbuf(tail, memory + n * 1000, 0, 1000, &info);
		rte_pktmbuf_append(tail, 1000);
		assert_int_equal(rte_pktmbuf_chain(frames[n], tail), 0);
	}
	assert_int_equal(port_transmit(one, frames, 8), 8);
	/* the port has let go of the memory */
	assert_int_equal(rte_mbuf_ext_refcnt_read(&info), 1);
	for (uint8_t n = 0; n < 8; n++)
		datagram_check(two, 1100, n);
	datagrams_close(one, two);
}

/* A card that is to fill in a checksum, such as that of the kernel behind a veth or of a virtual
 * machine, has not done so yet. */
static void packet_receive__takes_datagrams_whose_checksum_a_device_was_to_fill_in(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(34997),
		.sin_addr.s_addr = htonl(0x0a090002)};
	uint8_t data[200];
	struct port *two;
	char line[256];
	int sender;

	(void)state;
	need_namespace();
	fixture_set("PTL_ENCAP", "udp");
	two = packet_open("ptg1", 0);
	snprintf(line, sizeof(line),
		"ip address add 10.9.0.1/24 dev ptg0 && ip neighbour add 10.9.0.2 dev ptg0 lladdr "
		"%02x:%02x:%02x:%02x:%02x:%02x",
		two->address[0], two->address[1], two->address[2], two->address[3], two->address[4],
		two->address[5]);
	assert_int_equal(command(line), 0);
	wait_for_link(two, true);
	memset(data, 5, sizeof(data));
	sender = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(sendto(sender, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)),
		sizeof(data));
	datagram_check(two, sizeof(data), 5);
	close(sender);
	port_close(two);
	assert_int_equal(command("ip address flush dev ptg0"), 0);
	fixture_set("PTL_ENCAP", NULL);
}

static void packet_open__names_the_capability_that_is_missing(void **state)
{
	pid_t child;
	int status;

	(void)state;
	need_namespace();
	child = fork();
	if (child == 0) {
		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(2);
		if (packet_open("ptg0", 0) || !strstr(log_last_error(), "setcap cap_net_raw+ep"))
			_exit(1);
		_exit(xdp_open("ptg0", 0) || !strstr(log_last_error(), "needs root"));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void xdp_open__carries_frames_in_one_piece(void **state)
{
	struct port *one, *two;
	struct rte_mbuf *head, *tail;

	(void)state;
	need_namespace();
	one = eal_need() == 0 ? xdp_open("ptg0", 0) : NULL;
	if (!one && !getenv("CI")) {
		print_message("skipped: this kernel or this DPDK has no af_xdp\n");
		skip();
	}
	two = xdp_open("ptg1", 0);
	assert_non_null(one);
	assert_non_null(two);
	wait_for_link(one, true);
	for (unsigned n = 0; n < 3000; n++)
		exchange(one, two, 60 + n % 1000, (uint8_t)n);
	/* This driver sends the first piece of a chain alone: it must not get one. */
	head = frame_make(one, two->address, 50, 6);
	tail = frame_make(one, two->address, 14 + 100, 6);
	rte_pktmbuf_adj(tail, 14);
	assert_int_equal(rte_pktmbuf_chain(head, tail), 0);
	carry(one, two, head, 150, 6);
	port_close(one);
	port_close(two);
}

/* The driver takes a part of the pool's memory for all of it if buffers do not lie one behind the
 * other. */
static void xdp_open__sends_from_every_buffer_of_its_pool(void **state)
{
	struct rte_mbuf **frames;
	struct port *one, *two;
	unsigned count;

	(void)state;
	need_namespace();
	one = eal_need() == 0 ? xdp_open("ptg0", 0) : NULL;
	if (!one && !getenv("CI")) {
		print_message("skipped: this kernel or this DPDK has no af_xdp\n");
		skip();
	}
	two = xdp_open("ptg1", 0);
	assert_non_null(one);
	assert_non_null(two);
	wait_for_link(one, true);
	count = rte_mempool_avail_count(one->pool) - 64;
	frames = calloc(count, sizeof(*frames));
	assert_non_null(frames);
	for (unsigned n = 0; n < count; n++)
		frames[n] = frame_make(one, two->address, 100, (uint8_t)n);
	for (unsigned n = 0; n < count; n++)
		carry(one, two, frames[n], 100, (uint8_t)n);
	free(frames);
	port_close(one);
	port_close(two);
}

static void glue_port_open__takes_dpdk_s_own_af_packet_by_its_device_string(void **state)
{
	struct port *port;

	(void)state;
	need_namespace();
	port = glue_port_open(0, "net_af_packet0,iface=ptg0", 0, GLUE_PID_ANY);
	assert_non_null(port);
	port_close(port);
}

static int packet_setup(void **state)
{
	if (unshare(CLONE_NEWNET) == 0)
		ready = command("ip link set lo up && ip link add ptg0 type veth peer name ptg1 && "
				"ip link set ptg0 up && "
				"ip link set ptg1 up") == 0;
	return fixture_start(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet_transmit__carries_frames_up_to_the_mtu),
		cmocka_unit_test(packet_transmit__sends_chains_and_foreign_memory),
		cmocka_unit_test(packet_transmit__counts_what_is_longer_than_the_mtu),
		cmocka_unit_test(packet_transmit__survives_an_interface_that_goes_down),
		cmocka_unit_test(packet_interrupt__asks_for_errors_after_a_call_in_vain_alone),
		cmocka_unit_test(packet_interrupt__calls_no_more_for_an_interface_that_was_down),
		cmocka_unit_test(packet_transmit__goes_on_after_frames_that_the_other_end_refuses),
		cmocka_unit_test(packet_open__says_what_is_wrong),
		cmocka_unit_test(packet_select__leaves_a_process_what_is_addressed_to_it),
		cmocka_unit_test(packet_link__finds_an_interface_that_was_made_again),
		cmocka_unit_test(packet_transmit__sends_like_datagrams_as_one_and_receives_each),
		cmocka_unit_test(packet_transmit__joins_no_more_than_a_device_takes),
		cmocka_unit_test(packet_transmit__joins_no_datagrams_of_two_processes),
		cmocka_unit_test(packet_select__keeps_datagrams_from_the_kernels_udp),
		cmocka_unit_test(packet_receive__tells_since_when_joined_datagrams_wait),
		cmocka_unit_test(packet_transmit__gathers_pieces_of_datagrams_sent_as_one),
		cmocka_unit_test(
			packet_receive__takes_datagrams_whose_checksum_a_device_was_to_fill_in),
		cmocka_unit_test(packet_open__names_the_capability_that_is_missing),
		cmocka_unit_test(xdp_open__carries_frames_in_one_piece),
		cmocka_unit_test(xdp_open__sends_from_every_buffer_of_its_pool),
		cmocka_unit_test(glue_port_open__takes_dpdk_s_own_af_packet_by_its_device_string),
	};

	return cmocka_run_group_tests(tests, packet_setup, NULL);
}
