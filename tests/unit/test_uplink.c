/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uplink.c - tests of pmd-glue/uplink.c, and of node.c over an uplink: ports of several
 * processes on one end of a veth pair, in a network namespace that ends with this process. All of
 * them are this process. */
#include "../nap.h"
#include "glue_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmd-glue/kinds.h>

#define NAME_AT  20u /* where frames of these tests name their receiver */
#define NID      7u
#define FAR_NID  8u
#define SIZE     200u
#define OTHERS   99u /* a process id that nobody has */
#define ANY_FILL 77u

#define ENOUGH_CALLS                                                                               \
	200u /* of a port in which it looks at its rendezvous, and then at all its pairs */

static bool ready; /* there is a namespace with ptg0 and ptg1 */
static char runtime[] = "/tmp/ptg-XXXXXX";
static struct port *far; /* the other end of the wire, which hears everything */

static int command(const char *line)
{
	int status = system(line);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void need_namespace(void)
{
	if (ready)
		return;
	if (getenv("CI"))
		fail_msg("no network namespace can be made: run as root with iproute2 installed");
	print_message("skipped: needs root and iproute2 to make a network namespace\n");
	skip();
}

static struct port *open_mtu(uint32_t pid, uint32_t mtu)
{
	struct port_selection wanted = {.ethertype = 0x88b5, .at = NAME_AT};
	const uint32_t key[] = {NID, pid};
	struct port *port = uplink_open("ptg0", mtu, 0, pid);

	if (!port)
		return NULL;
	if (pid == GLUE_PID_ANY)
		memcpy(wanted.key, (const uint32_t[]){NID, port->pid}, sizeof(wanted.key));
	else
		memcpy(wanted.key, key, sizeof(key));
	port->operations->select(port, &wanted);
	return port;
}

static struct port *open_as(uint32_t pid)
{
	return open_mtu(pid, 0);
}

/* All processes of ptg0 have its address, and the frame names one of them, or one elsewhere. */
static struct rte_mbuf *frame_to(
	struct port *from, const uint8_t *to, uint32_t nid, uint32_t pid, uint8_t fill)
{
	struct rte_mbuf *frame = frame_make(from, to, SIZE, fill);

	memcpy(rte_pktmbuf_mtod_offset(frame, uint8_t *, NAME_AT), &nid, sizeof(nid));
	memcpy(rte_pktmbuf_mtod_offset(frame, uint8_t *, NAME_AT + 4), &pid, sizeof(pid));
	return frame;
}

/* Takes the next frame of ours: the kernel sends some of its own. NULL: there is none within
 * timeout (ns) and ENOUGH_CALLS, which a test without a CPU may make later. */
static struct rte_mbuf *take(struct port *port, uint64_t timeout)
{
	uint64_t end = glue_now(NULL) + timeout;
	struct rte_mbuf *frame;

	for (unsigned calls = 0; glue_now(NULL) < end || calls < ENOUGH_CALLS; calls++) {
		const uint8_t *bytes;

		if (port_receive(port, &frame, 1) == 0) {
			nap();
			continue;
		}
		bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
		if (bytes[12] == 0x88 && bytes[13] == 0xb5)
			return frame;
		rte_pktmbuf_free(frame);
	}
	return NULL;
}

static void expect(struct port *port, uint8_t fill)
{
	struct rte_mbuf *frame = take(port, TIMEOUT);

	assert_non_null(frame);
	assert_int_equal(frame->pkt_len, SIZE);
	assert_int_equal(frame_fill(frame), fill);
	assert_int_equal(*rte_pktmbuf_mtod_offset(frame, uint8_t *, SIZE - 1), fill);
	rte_pktmbuf_free(frame);
}

static bool is_silent(struct port *port)
{
	struct rte_mbuf *frame = take(port, 20 * MILLISECOND);

	rte_pktmbuf_free(frame);
	return !frame;
}

static void send_near(struct port *from, struct port *to, uint8_t fill)
{
	port_send(from, frame_to(from, from->address, NID, to->pid, fill));
}

static void uplink_open__names_its_owner(void **state)
{
	struct port *one, *any;

	(void)state;
	need_namespace();
	one = open_as(41);
	any = open_as(GLUE_PID_ANY);
	assert_true(one->named && any->named);
	assert_int_equal(one->pid, 41);
	assert_int_equal(one->nid, NID);
	assert_int_equal(any->pid, getpid());
	assert_memory_equal(one->address, any->address, 6);
	log_clear_error();
	assert_null(open_as(41));
	assert_non_null(strstr(log_last_error(), "41 is in use"));
	port_close(one);
	one = open_as(41);
	assert_non_null(one);
	port_close(one);
	port_close(any);
}

static void node_transmit__keeps_frames_for_this_machine_off_the_wire(void **state)
{
	struct port *one, *two;

	(void)state;
	need_namespace();
	one = open_as(1);
	two = open_as(2);
	for (uint8_t n = 1; n < 100; n++) {
		send_near(one, two, n);
		/* A question. */
		port_send(one, frame_to(one, everybody, NID, 2, n));
		send_near(two, one, n);
		expect(two, n);
		expect(two, n);
		expect(one, n);
	}
	assert_true(is_silent(far) && is_silent(one) && is_silent(two));
	port_close(one);
	port_close(two);
}

static void node_transmit__sends_all_else_out(void **state)
{
	struct port *one, *two;

	(void)state;
	need_namespace();
	one = open_as(1);
	two = open_as(2);
	for (uint8_t n = 1; n < 100; n++) {
		/* Another node, where a process has the same id as one here; a question for a node;
		 * a process that is not in the rendezvous; the own name. */
		struct rte_mbuf *frames[] = {frame_to(one, far->address, FAR_NID, 2, n),
			frame_to(one, everybody, FAR_NID, 2, n),
			frame_to(one, one->address, NID, 2, n),
			frame_to(one, one->address, NID, OTHERS, n),
			frame_to(one, everybody, NID, 1, n)};
		unsigned count = RTE_DIM(frames), done = 0;
		uint64_t end = glue_now(NULL) + TIMEOUT;

		while (done < count && glue_now(NULL) < end)
			done += port_transmit(one, frames + done, (uint16_t)(count - done));
		assert_int_equal(done, count);
		for (unsigned heard = 0; heard < 4; heard++)
			expect(far, n);
		expect(two, n);
		/* And what comes from there. */
		port_send(far, frame_to(far, one->address, NID, 1, n));
		port_send(far, frame_to(far, everybody, NID, 2, n));
		expect(one, n);
		expect(two, n);
	}
	assert_true(is_silent(far) && is_silent(one) && is_silent(two));
	port_close(one);
	port_close(two);
}

static void node_transmit__ends_with_a_process_and_begins_with_its_next_life(void **state)
{
	struct port *one, *two;

	(void)state;
	need_namespace();
	one = open_as(1);
	for (uint8_t n = 1; n < 10; n++) {
		two = open_as(2);
		send_near(one, two, n);
		expect(two, n);
		assert_true(is_silent(one)); /* it hears that it was let in */
		send_near(one, two, n);
		port_close(two);
		/* The last frame went with it; and the end is seen. */
		assert_true(is_silent(one) && is_silent(far));
	}
	/* Nobody of this name is here: somebody else on the interface may be meant. */
	port_send(one, frame_to(one, one->address, NID, 2, ANY_FILL));
	expect(far, ANY_FILL);
	port_close(one);
}

/* Sends until a frame is heard. The sender asks again each second whether the other's frames fit,
 * and what it sends meanwhile is lost. */
static void send_until_heard(struct port *from, struct port *to, uint8_t fill)
{
	uint64_t end = glue_now(NULL) + TIMEOUT;
	struct rte_mbuf *frame;

	do {
		assert_true(glue_now(NULL) < end);
		send_near(from, to, fill);
		assert_null(take(from, MILLISECOND));
		do
			frame = take(to, 5 * MILLISECOND);
		while (frame && frame_fill(frame) != fill && (rte_pktmbuf_free(frame), true));
	} while (!frame);
	rte_pktmbuf_free(frame);
}

/* Their frames would not fit into each other's memory, but they may fit the wire. */
static void node_transmit__goes_by_the_wire_to_a_process_with_frames_of_another_size(void **state)
{
	struct port *one, *two;
	struct rte_mbuf *frame;
	unsigned heard = 0;

	(void)state;
	need_namespace();
	one = open_mtu(1, 1500);
	two = open_mtu(2, 1400);
	for (uint8_t n = 10; n < 60; n++)
		send_until_heard(one, two, n);
	for (; (frame = take(far, 20 * MILLISECOND)); heard++)
		rte_pktmbuf_free(frame);
	assert_true(heard >= 50);
	port_close(one);
	port_close(two);
}

static void uplink_open__does_without_a_directory(void **state)
{
	char path[64], line[160];
	struct port *one, *two;

	(void)state;
	need_namespace();
	snprintf(path, sizeof(path), "%s/bare", runtime);
	snprintf(line, sizeof(line), "mkdir %s && touch %s/postern", path, path);
	assert_int_equal(command(line), 0);
	setenv("XDG_RUNTIME_DIR", path, 1);
	one = open_as(1);
	two = open_as(2);
	assert_non_null(one);
	assert_non_null(two);
	assert_false(one->named);
	for (uint8_t n = 1; n < 20; n++) {
		port_send(one, frame_to(one, one->address, NID, 2, n));
		expect(two, n);
		expect(far, n);
	}
	port_close(one);
	port_close(two);
	setenv("XDG_RUNTIME_DIR", runtime, 1);
}

static bool is_readable(int fd, int timeout)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	return poll(&one, 1, timeout) == 1;
}

static unsigned rendezvous_looks;

int __wrap_epoll_wait(int set, struct epoll_event *events, int count, int timeout);
int __real_epoll_wait(int set, struct epoll_event *events, int count, int timeout);
int __wrap_epoll_wait(int set, struct epoll_event *events, int count, int timeout)
{
	rendezvous_looks++;
	return __real_epoll_wait(set, events, count, timeout);
}

/* What woke the sleeper comes at once, and the rendezvous is asked only if it was not the wire. */
static void woken_expect(struct port *port, uint8_t fill, bool by_wire)
{
	struct rte_mbuf *frame;

	rendezvous_looks = 0;
	if (by_wire) {
		assert_int_equal(port_receive(port, &frame, 1), 1);
		assert_int_equal(frame_fill(frame), fill);
		rte_pktmbuf_free(frame);
		assert_int_equal(rendezvous_looks, 0);
	} else {
		expect(port, fill);
		assert_true(rendezvous_looks > 0);
	}
}

static void node_interrupt__wakes_for_a_neighbour_and_for_the_wire(void **state)
{
	struct port *one, *two;
	struct rte_mbuf *frame;
	int fd;

	(void)state;
	need_namespace();
	one = open_as(1);
	two = open_as(2);
	for (uint8_t n = 1; n < 20; n++) {
		/* Other frames of the first meeting, and those of the kernel. */
		assert_true(is_silent(one) && is_silent(two));
		fd = two->operations->interrupt(two, true);
		if (fd < 0)
			skip(); /* a kernel without membarrier() */
		assert_int_equal(port_receive(two, &frame, 1), 0);
		assert_false(is_readable(fd, 0));
		if (n % 2 == 0)
			send_near(one, two, n);
		else
			port_send(far, frame_to(far, two->address, NID, 2, n));
		assert_true(is_readable(fd, 30000));
		assert_int_equal(two->operations->interrupt(two, false), -1);
		woken_expect(two, n, n % 2 != 0);
	}
	port_close(one);
	port_close(two);
}

/* Another VLAN or another node id on the same interface is another node. */
static void uplink_open__keeps_nodes_apart(void **state)
{
	struct port *one, *two, *three;

	(void)state;
	need_namespace();
	one = open_as(1);
	fixture_set("PTL_VLAN", "5");
	two = open_as(1);
	fixture_set("PTL_VLAN", NULL);
	fixture_set("PTL_NID", "9");
	three = open_as(1);
	fixture_set("PTL_NID", "7");
	assert_non_null(one);
	assert_non_null(two);
	assert_non_null(three);
	port_close(one);
	port_close(two);
	port_close(three);
}

/* Frames of UDP that a device would have finished are right for the receiver, though nobody has
 * finished them. */
static void node_receive__vouches_for_checksums_that_nobody_made(void **state)
{
	struct port *one, *two;
	struct rte_mbuf *frame;

	(void)state;
	need_namespace();
	fixture_set("PTL_ENCAP", "udp");
	fixture_set("PTL_IP", "0.0.0.7/24");
	one = open_as(1);
	two = open_as(2);
	assert_true(one->checksum_offload);
	send_near(one, two, 3);
	frame = take(two, TIMEOUT);
	assert_non_null(frame);
	assert_int_equal(
		frame->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK, RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	assert_int_equal(
		frame->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK, RTE_MBUF_F_RX_IP_CKSUM_GOOD);
	rte_pktmbuf_free(frame);
	port_close(one);
	port_close(two);
	fixture_set("PTL_ENCAP", NULL);
	fixture_set("PTL_IP", NULL);
}

/* Nothing of a node stays when all its processes have left. */
static void rendezvous_close__removes_the_directory_of_an_interface(void **state)
{
	char path[64];
	struct port *one, *two;
	struct dirent *entry;
	unsigned count = 0;
	DIR *directory;

	(void)state;
	need_namespace();
	for (unsigned n = 0; n < 20; n++) {
		one = open_as(1);
		two = open_as(2);
		port_close(n % 2 ? one : two);
		port_close(n % 2 ? two : one);
	}
	snprintf(path, sizeof(path), "%s/postern", runtime);
	directory = opendir(path);
	assert_non_null(directory);
	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	closedir(directory);
	assert_int_equal(count, 0);
}

static int start(void **state)
{
	if (!mkdtemp(runtime))
		return -1;
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	setenv("PTL_NID", "7", 1);
	if (unshare(CLONE_NEWNET) == 0)
		ready = command("ip link set lo up && ip link add ptg0 type veth peer name ptg1 && "
				"ip link set ptg0 up && ip link set ptg1 up") == 0;
	if (fixture_start(state) != 0)
		return -1;
	if (ready)
		far = packet_open("ptg1", 0);
	return ready && !far ? -1 : 0;
}

static int end(void **state)
{
	char line[64];

	(void)state;
	if (far)
		port_close(far);
	snprintf(line, sizeof(line), "rm -r %s", runtime);
	return command(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uplink_open__names_its_owner),
		cmocka_unit_test(node_transmit__keeps_frames_for_this_machine_off_the_wire),
		cmocka_unit_test(node_transmit__sends_all_else_out),
		cmocka_unit_test(node_transmit__ends_with_a_process_and_begins_with_its_next_life),
		cmocka_unit_test(
			node_transmit__goes_by_the_wire_to_a_process_with_frames_of_another_size),
		cmocka_unit_test(uplink_open__does_without_a_directory),
		cmocka_unit_test(node_interrupt__wakes_for_a_neighbour_and_for_the_wire),
		cmocka_unit_test(uplink_open__keeps_nodes_apart),
		cmocka_unit_test(node_receive__vouches_for_checksums_that_nobody_made),
		cmocka_unit_test(rendezvous_close__removes_the_directory_of_an_interface),
	};

	return cmocka_run_group_tests(tests, start, end);
}
