/* SPDX-License-Identifier: BSD-3-Clause */
/* test_datagram.c - tests of datagrams that come to a port on UDP sockets, those of strangers too,
 * of what hosts refuse, and of what wakes a sleeper. Covers: pmd-glue/udp.c. */
#include "udp_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A datagram from a node and process, whether it is or not. */
static void pretend(int fd, uint32_t nid, uint32_t pid, uint32_t length)
{
	uint8_t bytes[64] = {0};
	uint32_t words[] = {rte_cpu_to_le_32(nid), rte_cpu_to_le_32(pid)};
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(range.first + candidate_read(near->address))),
		.sin_addr.s_addr = htonl(here)};

	memcpy(bytes + FROM_AT - FRAME_HEADER, words, sizeof(words));
	assert_int_equal(
		sendto(fd, bytes, length, 0, (const struct sockaddr *)&to, sizeof(to)), length);
}

static void check_strange(int fd, uint32_t nid, uint32_t pid, uint32_t length)
{
	uint64_t end = glue_now(NULL) + TIMEOUT, before = port_count(near).errors;
	struct rte_mbuf *frame;

	pretend(fd, nid, pid, length);
	while (port_count(near).errors == before) {
		assert_int_equal(port_receive(near, &frame, 1), 0);
		assert_true(glue_now(NULL) < end);
	}
	assert_int_equal(port_count(near).errors, before + 1);
}

/* I3 */
static void udp_receive__drops_what_names_another_sender(void **state)
{
	int fd = socket_candidate(there, 99, 3);
	int outside = socket_bind(there, 0);
	struct rte_mbuf *frame;

	(void)state;
	assert_true(fd >= 0 && outside >= 0);
	pretend(fd, there, 99, 64);
	frame = port_take(near);
	assert_non_null(frame);
	assert_int_equal(candidate_node(rte_pktmbuf_mtod_offset(frame, const uint8_t *, 6)), there);
	assert_int_equal(candidate_read(rte_pktmbuf_mtod_offset(frame, const uint8_t *, 6)),
		candidate_index(range, 99, 3));
	rte_pktmbuf_free(frame);
	check_strange(fd, here, 99, 64);       /* another node */
	check_strange(fd, there, FAR_PID, 64); /* another process, whose port it cannot have */
	check_strange(fd, there, 100, 64);
	check_strange(fd, there, 99, FROM_AT - FRAME_HEADER + 7); /* it names nobody */
	check_strange(fd, there, 99, 1);
	check_strange(outside, there, 99, 64); /* no port of the range */
	pretend(fd, there, 99, 64);
	frame = port_take(near);
	assert_non_null(frame);
	rte_pktmbuf_free(frame);
	close(fd);
	close(outside);
}

/* Neither is the first sender believed, whatever it names. */
static void udp_receive__knows_no_sender_at_first(void **state)
{
	int fd = socket_bind(there, range.first);

	(void)state;
	assert_true(fd >= 0);
	assert_false(candidate_fits(range, 0, 0));
	check_strange(fd, there, 0, 64);
	close(fd);
}

/* A socket that is full is emptied in few turns. */
static void udp_receive__takes_a_whole_burst(void **state)
{
	int fd = socket_candidate(there, 99, 3);
	struct rte_mbuf *frames[64];
	unsigned got = 0, turns = 0;

	(void)state;
	for (unsigned n = 0; n < MANY; n++)
		pretend(fd, there, 99, 64);
	for (uint16_t count; got < MANY; got += count, turns++) {
		count = port_receive(near, frames, 64);
		assert_true(count > 0);
		rte_pktmbuf_free_bulk(frames, count);
	}
	assert_true(turns <= 12);
	close(fd);
}

static uint32_t type_taken(int fd, int service)
{
	struct rte_mbuf *frame;
	const uint8_t *bytes;
	uint32_t type;

	assert_int_equal(setsockopt(fd, SOL_IP, IP_TOS, &service, sizeof(service)), 0);
	pretend(fd, there, 99, 64);
	frame = port_take(near);
	assert_non_null(frame);
	bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	type = (uint32_t)bytes[12] << 8 | bytes[13];
	rte_pktmbuf_free(frame);
	return type;
}

static void udp_receive__tells_marks_of_congestion(void **state)
{
	int fd = socket_candidate(there, 99, 3);

	(void)state;
	assert_int_equal(type_taken(fd, 2), 0x88b5); /* ECT(0) */
	assert_int_equal(type_taken(fd, 3), PORT_MARKED);
	assert_int_equal(type_taken(fd, 0), 0x88b5);
	close(fd);
}

static void udp_interrupt__wakes_for_frames_alone(void **state)
{
	struct pollfd ready = {.events = POLLIN};

	(void)state;
	ready.fd = near->operations->interrupt(near, true);
	assert_true(ready.fd >= 0);
	assert_int_equal(poll(&ready, 1, 0), 0);
	ask(near, there, 12345); /* nobody has the port: the refusal makes the socket readable */
	assert_int_equal(poll(&ready, 1, 1000), 1);
	assert_int_equal(near->operations->interrupt(near, true), ready.fd);
	assert_int_equal(poll(&ready, 1, 0), 0);
	rte_pktmbuf_free(port_take(near)); /* which waits for the look before sleep */
	port_send(far, frame_named(far, near, 100, 1));
	assert_int_equal(poll(&ready, 1, 1000), 1);
	check_frame(port_take(near), far, near, 100, 1);
	(void)near->operations->interrupt(near, false);
}

static void udp_interrupt__asks_for_errors_after_a_call_in_vain_alone(void **state)
{
	struct rte_mbuf *frame;

	(void)state;
	exchange(far, near, 100, 1);
	errors_asked = 0;
	(void)near->operations->interrupt(near, true);
	assert_int_equal(errors_asked, 0);
	(void)near->operations->interrupt(near, false);
	assert_int_equal(port_receive(near, &frame, 1), 0);
	(void)near->operations->interrupt(near, true);
	assert_int_equal(errors_asked, 1);
	(void)near->operations->interrupt(near, false);
}

/* What nobody takes comes back, as far as a transport header goes. */
static void udp_receive__tells_what_was_refused(void **state)
{
	uint32_t index = candidate_read(far->address);
	uint8_t address[6];
	struct rte_mbuf *frame = frame_named(near, far, 500, 9), *told;
	uint8_t sent[PORT_REFUSAL_BYTES];

	(void)state;
	memcpy(sent, rte_pktmbuf_mtod_offset(frame, uint8_t *, FRAME_HEADER), sizeof(sent));
	memcpy(address, far->address, sizeof(address));
	port_close(far);
	far = NULL;
	port_send(near, frame);
	told = port_take(near);
	assert_non_null(told);
	assert_int_equal(told->pkt_len, FRAME_HEADER + PORT_REFUSAL_BYTES);
	assert_memory_equal(rte_pktmbuf_mtod(told, uint8_t *), near->address, 6);
	assert_memory_equal(rte_pktmbuf_mtod(told, uint8_t *) + 6, address, 6);
	assert_int_equal(candidate_read(address), index);
	assert_int_equal(
		rte_pktmbuf_mtod(told, uint8_t *)[12] << 8 | rte_pktmbuf_mtod(told, uint8_t *)[13],
		PORT_REFUSED);
	assert_memory_equal(
		rte_pktmbuf_mtod_offset(told, uint8_t *, FRAME_HEADER), sent, sizeof(sent));
	rte_pktmbuf_free(told);
	for (unsigned n = 0; n < 100; n++) /* more than are kept: those go with the port */
		port_send(near, frame_make(near, address, 100, 1));
}

static struct sock_extended_err *queued_error(struct msghdr *message)
{
	for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one))
		if (one->cmsg_type == IP_RECVERR)
			return (void *)CMSG_DATA(one);
	fail();
	return NULL;
}

static void of_a_host(struct msghdr *message, ssize_t *bytes)
{
	(void)bytes;
	queued_error(message)->ee_errno = EHOSTUNREACH;
}

static void of_this_host(struct msghdr *message, ssize_t *bytes)
{
	(void)bytes;
	queued_error(message)->ee_origin = SO_EE_ORIGIN_LOCAL;
}

static void of_a_short_datagram(struct msghdr *message, ssize_t *bytes)
{
	(void)message;
	*bytes = PORT_REFUSAL_BYTES - 1;
}

static void of_a_port_before(struct msghdr *message, ssize_t *bytes)
{
	struct sockaddr_in *name = message->msg_name;
	(void)bytes;
	name->sin_port = htons((uint16_t)(range.first - 1));
}

static void of_a_port_behind(struct msghdr *message, ssize_t *bytes)
{
	struct sockaddr_in *name = message->msg_name;
	(void)bytes;
	name->sin_port = htons((uint16_t)(range.first + range.count));
}

/* Nobody else has the own name. */
static void of_the_own_name(struct msghdr *message, ssize_t *bytes)
{
	uint8_t *quote = message->msg_iov[0].iov_base;
	(void)bytes;
	memcpy(quote + TO_AT - FRAME_HEADER, quote + FROM_AT - FRAME_HEADER, 8);
}

/* The rest is no refusal of a frame that went to a process. */
static void udp_receive__tells_of_no_other_errors(void **state)
{
	void (*const changes[])(struct msghdr *, ssize_t *) = {of_a_host, of_this_host,
		of_a_short_datagram, of_a_port_before, of_a_port_behind, of_the_own_name};

	(void)state;
	for (unsigned n = 0; n < RTE_DIM(changes); n++) {
		unsigned asked = errors_asked;
		errors_change = changes[n];
		ask(near, there, 12345 + n);
		for (uint64_t end = glue_now(NULL) + TIMEOUT; errors_asked == asked;) {
			check_nothing(near);
			assert_true(glue_now(NULL) < end);
		}
		check_nothing(near);
		errors_change = NULL;
		ask(near, there, 12345 + n);
		rte_pktmbuf_free(port_take(near));
	}
}

/* A refusal costs no frame that waits behind it. */
static void udp_receive__goes_on_after_refusals(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 20; n++) {
		struct rte_mbuf *told;

		ask(near, there, 12345 + n);
		exchange(near, far, 100, (uint8_t)n);
		port_send(far, frame_named(far, near, 100, (uint8_t)n));
		told = port_take(near);
		assert_int_equal(told->pkt_len, FRAME_HEADER + PORT_REFUSAL_BYTES);
		rte_pktmbuf_free(told);
		check_frame(port_take(near), far, near, 100, (uint8_t)n);
	}
	assert_int_equal(port_count(near).errors, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(udp_receive__drops_what_names_another_sender),
		CASE(udp_receive__knows_no_sender_at_first),
		CASE(udp_receive__takes_a_whole_burst),
		CASE(udp_receive__tells_marks_of_congestion),
		CASE(udp_interrupt__wakes_for_frames_alone),
		CASE(udp_interrupt__asks_for_errors_after_a_call_in_vain_alone),
		CASE(udp_receive__tells_what_was_refused),
		CASE(udp_receive__tells_of_no_other_errors),
		CASE(udp_receive__goes_on_after_refusals),
	};

	return cmocka_run_group_tests(tests, rig_begin, NULL);
}
