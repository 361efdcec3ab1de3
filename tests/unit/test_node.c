/* SPDX-License-Identifier: BSD-3-Clause */
/* test_node.c - tests of pmd-glue/node.c: ports of several processes, all of which are this one. */
#include "glue_fixture.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <base/report.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pair.h>
#include <pmd-glue/directory.h>

#define NAME_AT 20u /* where frames of these tests name their receiver */
#define NID     7u

static char name[32]; /* of a node of this test process's own */

static struct port *open_as(uint32_t pid)
{
	static const struct port_selection wanted = {.ethertype = 0x88b5, .at = NAME_AT};
	struct port *port;

	port = node_open(name, 0, 0, pid, false);
	if (port)
		port->operations->select(port, &wanted);
	return port;
}

/* A broadcast that asks after a process. */
static struct rte_mbuf *question_make(struct port *from, uint32_t nid, uint32_t pid)
{
	struct rte_mbuf *frame = frame_make(from, everybody, 64, 5);

	memcpy(rte_pktmbuf_mtod_offset(frame, uint8_t *, NAME_AT), &nid, sizeof(nid));
	memcpy(rte_pktmbuf_mtod_offset(frame, uint8_t *, NAME_AT + 4), &pid, sizeof(pid));
	return frame;
}

/* Does the port hear nothing, however often it is asked? */
static bool is_silent(struct port *port)
{
	struct rte_mbuf *frame;
	uint64_t end = glue_now(NULL) + 5 * MILLISECOND;

	while (glue_now(NULL) < end)
		if (port_receive(port, &frame, 1) != 0) {
			rte_pktmbuf_free(frame);
			return false;
		}
	return true;
}

static void expect(struct port *port, uint32_t size, uint8_t fill)
{
	struct rte_mbuf *frame = port_take(port);

	assert_non_null(frame);
	assert_true(frame_is(frame, size, fill));
	rte_pktmbuf_free(frame);
}

static bool pool_is_full(const struct port *port)
{
	return rte_mempool_avail_count(port->pool) == port->pool->size;
}

static void node_open__names_its_owner(void **state)
{
	struct port *one = open_as(41), *any = open_as(GLUE_PID_ANY),
		    *other = open_as(GLUE_PID_ANY);

	(void)state;
	assert_true(one->named && any->named);
	assert_int_equal(one->pid, 41);
	assert_int_equal(one->nid, NID);
	assert_int_equal(any->pid, getpid());
	assert_int_not_equal(other->pid, any->pid);
	assert_memory_not_equal(one->address, any->address, 6);
	assert_true(one->external && one->gathers && one->calls);
	assert_int_equal(glue_port_nid(one, 3), NID);
	port_close(one);
	port_close(any);
	port_close(other);
}

static void node_open__refuses_a_process_id_that_is_taken(void **state)
{
	struct port *one = open_as(41);

	(void)state;
	log_clear_error();
	assert_null(open_as(41));
	assert_non_null(strstr(log_last_error(), "41"));
	port_close(one);
	one = open_as(41);
	assert_non_null(one);
	port_close(one);
}

static void node_open__refuses_udp_and_bad_names(void **state)
{
	(void)state;
	fixture_set("PTL_ENCAP", "udp");
	log_clear_error();
	assert_null(open_as(1));
	assert_non_null(strstr(log_last_error(), "PTL_ENCAP"));
	fixture_set("PTL_ENCAP", NULL);
	log_clear_error();
	assert_null(node_open("a/b", 0, 0, 1, false));
	assert_non_null(strstr(log_last_error(), "a/b"));
	assert_null(node_open("", 65281, 0, 1, false));
	assert_non_null(strstr(log_last_error(), "PTL_MTU"));
}

static bool files_are_short;

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	if (!files_are_short)
		return __real_fopen64(path, mode);
	errno = EMFILE;
	return NULL;
}

/* With another one it would reach no process of this machine. */
static void node_open__has_the_machines_number_or_none(void **state)
{
	(void)state;
	files_are_short = true;
	log_clear_error();
	assert_null(open_as(1));
	files_are_short = false;
	assert_non_null(strstr(log_last_error(), "number of this machine cannot be read"));
}

static void node_transmit__reaches_a_process_by_its_address(void **state)
{
	struct port *one = open_as(1), *two = open_as(2), *three = open_as(3);

	(void)state;
	for (uint8_t n = 1; n < 200; n++) {
		port_send(one, frame_make(one, two->address, 60u + n, n));
		expect(two, 60u + n, n);
		port_send(two, frame_make(two, one->address, 1000u + n, n));
		expect(one, 1000u + n, n);
	}
	assert_true(is_silent(three));
	port_close(one);
	port_close(two);
	port_close(three);
}

static void node_transmit__gives_a_question_to_whom_it_names(void **state)
{
	struct port *one = open_as(1), *two = open_as(2), *three = open_as(3);
	struct rte_mbuf *frame;

	(void)state;
	port_send(one, question_make(one, NID, 3));
	frame = port_take(three);
	assert_non_null(frame);
	rte_pktmbuf_free(frame);
	assert_true(is_silent(two));
	/* Another node, nobody, oneself. */
	port_send(one, question_make(one, NID + 1, 3));
	port_send(one, question_make(one, NID, 4));
	port_send(one, question_make(one, NID, 1));
	port_send(one, frame_make(one, everybody, NAME_AT + 7, 0));
	port_send(one, frame_make(one, (const uint8_t *)"\x02\x50\0\0\0\x09", 64, 0));
	port_send(one, frame_make(one, (const uint8_t *)"\x02\x50\0\0\0\x01", 64, 0));
	port_send(one, frame_make(one, everybody, 13, 0));
	assert_true(is_silent(one) && is_silent(two) && is_silent(three));
	assert_true(pool_is_full(one));
	port_close(one);
	port_close(two);
	port_close(three);
}

/* As many as a pair holds and more, by either end at once. */
static void node_transmit__keeps_order_when_both_connect_at_once(void **state)
{
	struct port *ports[2] = {open_as(1), open_as(2)};
	uint8_t heard[2] = {0, 0};

	(void)state;
	for (unsigned n = 0; n < 2; n++)
		for (uint8_t fill = 0; fill < 20; fill++)
			port_send(ports[n], frame_make(ports[n], ports[1 - n]->address, 64, fill));
	for (unsigned tries = 0; heard[0] + heard[1] < 40 && tries < 1000000; tries++)
		for (unsigned n = 0; n < 2; n++) {
			struct rte_mbuf *frame;

			if (port_receive(ports[n], &frame, 1) == 0)
				continue;
			assert_int_equal(frame_fill(frame), heard[n]++);
			rte_pktmbuf_free(frame);
		}
	assert_int_equal(heard[0], 20);
	assert_int_equal(heard[1], 20);
	port_close(ports[0]);
	port_close(ports[1]);
}

static void node_close__loses_nothing_that_was_sent(void **state)
{
	struct port *one = open_as(1), *two = open_as(2);

	(void)state;
	port_send(one, frame_make(one, two->address, 64, 1));
	expect(two, 64, 1);
	for (uint8_t n = 0; n < 50; n++)
		port_send(one, frame_make(one, two->address, 3000, n));
	port_close(one);
	for (uint8_t n = 0; n < 50; n++)
		expect(two, 3000, n);
	assert_true(is_silent(two));
	/* Its next life under that name. */
	port_send(two, frame_make(two, (const uint8_t *)"\x02\x50\0\0\0\x01", 64, 0));
	one = open_as(1);
	port_send(one, frame_make(one, two->address, 64, 2));
	expect(two, 64, 2);
	port_send(two, frame_make(two, one->address, 64, 3));
	expect(one, 64, 3);
	assert_true(is_silent(one));
	port_close(one);
	port_close(two);
}

/* There is no buffer for what a process has sent before its end. */
static void node_receive__waits_for_a_buffer(void **state)
{
	struct port *one = open_as(1), *two = open_as(2);
	struct rte_mbuf **taken = calloc(two->pool->size, sizeof(struct rte_mbuf *));
	unsigned count = 0;

	(void)state;
	assert_non_null(taken);
	port_send(one, frame_make(one, two->address, 64, 1));
	expect(two, 64, 1);
	port_send(one, frame_make(one, two->address, 64, 2));
	port_close(one);
	while (count < two->pool->size && (taken[count] = rte_pktmbuf_alloc(two->pool)))
		count++;
	assert_true(is_silent(two));
	rte_pktmbuf_free_bulk(taken, count);
	free(taken);
	expect(two, 64, 2);
	assert_true(is_silent(two));
	port_close(two);
}

/* What a node tells of its pair with a process; 0: of itself. */
static const char *told(struct port *port, uint32_t pid)
{
	static char text[1024];
	struct report_json json;

	report_json_init(&json, text, sizeof(text));
	report_object(&json.report, NULL);
	if (pid == 0)
		glue_node_tell(port, &json.report);
	else
		glue_node_tell_pair(port, pid, &json.report);
	report_close(&json.report);
	assert_in_range(report_json_end(&json), 1, sizeof(text) - 1);
	return text;
}

static bool is_told(struct port *port, uint32_t pid, const char *member)
{
	return strstr(told(port, pid), member);
}

static uint64_t number_told(struct port *port, uint32_t pid, const char *what)
{
	char member[32];
	const char *found;

	snprintf(member, sizeof(member), "\"%s\": ", what);
	found = strstr(told(port, pid), member);
	assert_non_null(found);
	return strtoull(found + strlen(member), NULL, 10);
}

static void node_transmit__leaves_a_deaf_process_behind(void **state)
{
	struct port *one = open_as(1), *deaf = open_as(2), *two = open_as(3);
	uint64_t end = glue_now(NULL) + TIMEOUT;

	(void)state;
	while (port_count(one).missed == 0) {
		port_send(one, frame_make(one, deaf->address, 64, 1));
		assert_true(glue_now(NULL) < end);
	}
	for (unsigned n = 0; n < PAIR_SLOTS; n++)
		port_send(one, frame_make(one, deaf->address, 64, 2));
	port_send(one, frame_make(one, two->address, 64, 3));
	expect(two, 64, 3);
	for (unsigned n = 0; n < PAIR_SLOTS; n++)
		expect(deaf, 64, 1);
	assert_true(is_silent(deaf));
	assert_true(number_told(one, 2, "dropped") > PAIR_SLOTS);
	assert_int_equal(number_told(one, 2, "dropped"), port_count(one).missed);
	port_send(one, frame_make(one, deaf->address, 64, 4));
	expect(deaf, 64, 4);
	port_close(one);
	port_close(two);
	port_close(deaf);
}

static bool is_readable(int fd, int timeout)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	return poll(&one, 1, timeout) == 1;
}

static void node_interrupt__wakes_a_sleeper(void **state)
{
	struct port *one = open_as(1), *two = open_as(2);
	struct rte_mbuf *frame;
	int fd;

	(void)state;
	for (uint8_t n = 0; n < 20; n++) {
		fd = two->operations->interrupt(two, true);
		if (fd < 0)
			skip(); /* a kernel without membarrier() */
		assert_int_equal(port_receive(two, &frame, 1), 0);
		assert_false(is_readable(fd, 0));
		port_send(one, frame_make(one, two->address, 64, n));
		assert_true(is_readable(fd, 30000));
		assert_int_equal(two->operations->interrupt(two, false), -1);
		expect(two, 64, n);
		/* Both hear what else belongs to the first meeting. */
		assert_true(is_silent(one) && is_silent(two));
	}
	port_close(one);
	port_close(two);
}

static void node_receive__looks_at_all_of_many(void **state)
{
	enum { MANY = 64 };
	struct port *ports[MANY];

	(void)state;
	for (uint32_t n = 0; n < MANY; n++)
		assert_non_null(ports[n] = open_as(n + 1));
	for (uint8_t round = 0; round < 3; round++) {
		for (unsigned n = 1; n < MANY; n++) {
			port_send(ports[n], frame_make(ports[n], ports[0]->address, 64, round));
			expect(ports[0], 64, round);
		}
		assert_true(is_silent(ports[0])); /* they become cold */
	}
	for (unsigned n = 0; n < MANY; n++)
		port_close(ports[n]);
}

/* So many that the port tells its peers its CPU. */
static void looks_take(struct port *port)
{
	struct rte_mbuf *frame;

	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(port_receive(port, &frame, 1), 0);
}

/* The crowd is known from the pairs alone, whoever has started its processes: one of many partners
 * is enough that has looked for frames on the caller's CPU. */
static void port_shares_cpu__with_one_of_a_crowd(void **state)
{
	enum { CROWD = 16 };
	struct port *ports[CROWD];
	cpu_set_t before, one;
	size_t cpus[2];
	unsigned count = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (size_t cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++)
		if (CPU_ISSET(cpu, &before))
			cpus[count++] = cpu;
	if (count < 2)
		skip();
	for (uint32_t n = 0; n < CROWD; n++)
		assert_non_null(ports[n] = open_as(n + 1));
	for (unsigned with = 0; with < 2; with++) {
		for (unsigned n = 1; n < CROWD; n++) {
			/* The last one is on the other CPU, or not. */
			bool apart = with == 0 || n < CROWD - 1;

			CPU_ZERO(&one);
			CPU_SET(cpus[apart], &one);
			assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
			port_send(ports[n], frame_make(ports[n], ports[0]->address, 64, 1));
			looks_take(ports[n]);
		}
		CPU_ZERO(&one);
		CPU_SET(cpus[0], &one);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		for (unsigned n = 1; n < CROWD; n++)
			expect(ports[0], 64, 1);
		assert_int_equal(ports[0]->operations->shares_cpu(ports[0]), with);
		assert_int_equal(number_told(ports[0], CROWD, "cpu"), cpus[with == 0]);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	for (unsigned n = 0; n < CROWD; n++)
		port_close(ports[n]);
}

static void port_absent__of_a_node_is_who_is_not_in_it(void **state)
{
	struct port *one = fault_open(open_as(1), 0, "drop=0"), *other = open_as(2);

	(void)state;
	assert_false(port_absent(one, NID, 2));
	assert_false(port_absent(other, NID, 1));
	assert_true(port_absent(one, NID, 3));
	assert_true(port_absent(one, NID + 1, 2)); /* a node leads nowhere else */
	port_close(other);
	assert_true(port_absent(one, NID, 2));
	port_close(one);
}

static void glue_node_present__lists_the_living(void **state)
{
	struct port *one = open_as(1), *nine = open_as(9), *ten = open_as(10);
	struct glue_process found[3];
	struct port *loop = glue_port_open(0, "loop:x", 0, 1);

	(void)state;
	assert_int_equal(glue_node_present(one, found, 3), 2);
	assert_int_equal(found[0].pid, 9);
	assert_int_equal(found[0].uid, geteuid());
	assert_int_equal(found[1].pid, 10);
	assert_int_equal(glue_node_present(nine, found, 1), 2);
	assert_int_equal(glue_node_present(nine, found, 0), 2);
	port_close(ten);
	assert_int_equal(glue_node_present(nine, found, 3), 1);
	assert_int_equal(found[0].pid, 1);
	assert_true(is_told(one, 0, name));
	assert_int_equal(number_told(one, 0, "pairs"), 0);
	assert_true(is_told(loop, 0, "\"directory\": null"));
	assert_int_equal(glue_node_present(loop, found, 3), 0);
	assert_true(is_told(loop, 1, "\"pair\": false"));
	port_close(loop);
	port_close(one);
	port_close(nine);
}

static void glue_node_tell_pair__says_what_has_passed(void **state)
{
	struct port *one = open_as(1), *two = open_as(2), *outer;
	uint64_t used;

	(void)state;
	assert_true(is_told(one, 2, "\"pair\": false"));
	for (uint8_t n = 0; n < 3; n++) {
		port_send(one, frame_make(one, two->address, 100, n));
		expect(two, 100, n);
	}
	port_send(two, frame_make(two, one->address, 3000, 9));
	expect(one, 3000, 9);
	assert_int_equal(number_told(one, 2, "process"), getpid());
	assert_int_equal(number_told(one, 2, "frames_sent"), 3);
	assert_int_equal(number_told(one, 2, "bytes_sent"), 300);
	assert_int_equal(number_told(one, 2, "frames_received"), 1);
	assert_int_equal(number_told(one, 2, "bytes_received"), 3000);
	assert_int_equal(number_told(one, 2, "full") + number_told(one, 2, "dropped"), 0);
	assert_true(is_told(one, 2, "\"hot\": true"));
	used = number_told(one, 2, "memory");
	assert_true(used >= pair_bytes_touched() + 3000 && used < pair_bytes());
	assert_int_equal(number_told(one, 0, "pairs"), 1);
	assert_int_equal(number_told(one, 0, "memory"), used);
	/* A pair that carries nothing for some turns becomes cold. */
	for (uint64_t end = glue_now(NULL) + TIMEOUT; is_told(one, 2, "\"hot\": true");) {
		assert_true(is_silent(one) && is_silent(two));
		assert_true(glue_now(NULL) < end);
	}
	/* Through faults that are injected. */
	fixture_set("PTL_FAULT", "drop=0");
	outer = fault_open(one, 0, "drop=0");
	assert_true(is_told(outer, 2, "\"pair\": true"));
	assert_int_equal(number_told(outer, 0, "pairs"), 1);
	assert_int_equal(glue_node_present(outer, NULL, 0), 1);
	fixture_set("PTL_FAULT", NULL);
	port_close(outer);
	port_close(two);
}

/* A process that breaks the rules of a pair ends the pair, and is counted. */
static void glue_node_tell__counts_refusals(void **state)
{
	struct port *one = open_as(1), *two = open_as(2);
	uint64_t end = glue_now(NULL) + TIMEOUT;
	struct rte_mbuf *frame;
	FILE *maps;
	char line[256];

	(void)state;
	port_send(one, frame_make(one, two->address, 64, 1));
	expect(two, 64, 1);
	/* Both ends are mapped here; the progress words come first. */
	maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "postern-pair") && strstr(line, "rw-s")) {
			char *memory = (char *)strtoul(line, NULL, 16);
			unsigned long bytes =
				strtoul(strchr(line, '-') + 1, NULL, 16) - (unsigned long)memory;

			if (bytes == pair_bytes())
				memset(memory, 0xff, pair_bytes_touched());
		}
	fclose(maps);
	do {
		while (port_receive(two, &frame, 1) != 0)
			rte_pktmbuf_free(frame);
		assert_true(glue_now(NULL) < end);
	} while (number_told(two, 0, "broke_rules") == 0);
	port_close(one);
	port_close(two);
}

static int start(void **state)
{
	snprintf(name, sizeof(name), "test-%ld", (long)getpid());
	setenv("PTL_NID", "7", 1);
	return fixture_start(state);
}

static int end(void **state)
{
	(void)state;
	directory_remove(name);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_open__names_its_owner),
		cmocka_unit_test(node_open__refuses_a_process_id_that_is_taken),
		cmocka_unit_test(node_open__refuses_udp_and_bad_names),
		cmocka_unit_test(node_open__has_the_machines_number_or_none),
		cmocka_unit_test(node_transmit__reaches_a_process_by_its_address),
		cmocka_unit_test(node_transmit__gives_a_question_to_whom_it_names),
		cmocka_unit_test(node_transmit__keeps_order_when_both_connect_at_once),
		cmocka_unit_test(node_close__loses_nothing_that_was_sent),
		cmocka_unit_test(node_receive__waits_for_a_buffer),
		cmocka_unit_test(node_transmit__leaves_a_deaf_process_behind),
		cmocka_unit_test(node_interrupt__wakes_a_sleeper),
		cmocka_unit_test(node_receive__looks_at_all_of_many),
		cmocka_unit_test(port_shares_cpu__with_one_of_a_crowd),
		cmocka_unit_test(port_absent__of_a_node_is_who_is_not_in_it),
		cmocka_unit_test(glue_node_present__lists_the_living),
		cmocka_unit_test(glue_node_tell_pair__says_what_has_passed),
		cmocka_unit_test(glue_node_tell__counts_refusals),
	};

	return cmocka_run_group_tests(tests, start, end);
}
