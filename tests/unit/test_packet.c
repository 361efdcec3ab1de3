/* test_packet.c - tests of pmd-glue/packet.c, over a veth pair in a network namespace that ends with this process. */
#include "glue_fixture.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmd-glue/kinds.h>
#include <pmd-glue/packet.h>

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
	uint64_t end = glue_now(NULL) + PATIENCE;

	while (port->operations->link(port) != up) {
		assert_true(glue_now(NULL) < end);
		sched_yield();
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

/* What arrives of a frame is all of it, in one piece. */
static void carry(struct port *from, struct port *to, struct rte_mbuf *frame, uint32_t size, uint8_t fill)
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
	check_sizes("65535", 60000);
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
	/* What got through before is old news. The kernel takes its time to send again after the link is up, and looks at
	 * what waits only when the next frame is sent. */
	end = glue_now(NULL) + PATIENCE;
	do {
		assert_true(glue_now(NULL) < end);
		port_send(one, frame_make(one, everybody, 100, 9));
		if (port_receive(two, &frame, 1) == 1) {
			found = frame->pkt_len == 100 && frame_is(frame, 100, 9);
			rte_pktmbuf_free(frame);
		}
		sched_yield();
	} while (!found);
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

/* Frames larger than the other end takes, between others: those arrive, whether the ring was filled or not. */
static void check_refused(unsigned large)
{
	struct port *one = packet_open("ptg0", 0), *two = packet_open("ptg1", 0);
	uint64_t end = glue_now(NULL) + PATIENCE;
	struct rte_mbuf *frame;
	bool gone = false, found = false;

	assert_non_null(one);
	assert_non_null(two);
	wait_for_link(one, true);
	exchange(one, two, 1514, 1);
	for (unsigned n = 0; n < large; n++) {
		frame = frame_make(one, two->address, 2000 + n % 3, 2);
		if (port_transmit(one, &frame, 1) == 0)
			rte_pktmbuf_free(frame);
	}
	frame = frame_make(one, two->address, 100, 3);
	while (!gone || !found) {
		struct rte_mbuf *other;
		assert_true(glue_now(NULL) < end);
		gone = gone || port_transmit(one, &frame, 1) == 1;
		if (port_receive(one, &other, 1) == 1) /* a port is looked after when it is polled */
			rte_pktmbuf_free(other);
		if (port_receive(two, &other, 1) == 1) {
			found = found || (other->pkt_len == 100 && frame_is(other, 100, 3));
			rte_pktmbuf_free(other);
		}
	}
	exchange(one, two, 1514, 4);
	assert_true(port_count(one).errors >= 1);
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
	assert_false(packet_is_up("ptg0"));
	assert_null(packet_open("ptg0", 0));
	assert_non_null(strstr(log_last_error(), "ip link set ptg0 up"));
	assert_int_equal(command("ip link set ptg0 up"), 0);
	assert_true(packet_is_up("ptg0"));
}

static void packet_open__warns_of_another_port_on_the_interface(void **state)
{
	struct port *one, *two;
	char said[1024];
	FILE *file = tmpfile();
	int before;

	(void)state;
	need_namespace();
	one = packet_open("ptg0", 0);
	before = dup(STDERR_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	two = packet_open("ptg0", 0);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(file);
	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	fclose(file);
	assert_non_null(strstr(said, "ptg0: another port is on this interface"));
	port_close(one);
	port_close(two);
	one = packet_open("ptg0", 0); /* and when they are gone, so is the name */
	assert_non_null(one);
	port_close(one);
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
		if (packet_open("ptg0", 0) || !strstr(log_last_error(), "setcap cap_net_raw,cap_net_admin+ep"))
			_exit(1);
		_exit(packet_open_xdp("ptg0", 0) || !strstr(log_last_error(), "needs root"));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void packet_open_xdp__carries_frames_in_one_piece(void **state)
{
	struct port *one, *two;
	struct rte_mbuf *head, *tail;

	(void)state;
	need_namespace();
	one = packet_open_xdp("ptg0", 0);
	if (!one && !getenv("CI")) {
		print_message("skipped: this kernel or this DPDK has no af_xdp\n");
		skip();
	}
	two = packet_open_xdp("ptg1", 0);
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

static void glue_port_open__takes_dpdk_s_own_af_packet_by_its_device_string(void **state)
{
	struct port *port;

	(void)state;
	need_namespace();
	port = glue_port_open(0, "net_af_packet0,iface=ptg0", 0);
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
		cmocka_unit_test(packet_interrupt__calls_no_more_for_an_interface_that_was_down),
		cmocka_unit_test(packet_transmit__goes_on_after_frames_that_the_other_end_refuses),
		cmocka_unit_test(packet_open__says_what_is_wrong),
		cmocka_unit_test(packet_open__warns_of_another_port_on_the_interface),
		cmocka_unit_test(packet_open__names_the_capability_that_is_missing),
		cmocka_unit_test(packet_open_xdp__carries_frames_in_one_piece),
		cmocka_unit_test(glue_port_open__takes_dpdk_s_own_af_packet_by_its_device_string),
	};

	return cmocka_run_group_tests(tests, packet_setup, NULL);
}
