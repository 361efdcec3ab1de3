/* SPDX-License-Identifier: BSD-3-Clause */
/* test_switch.c - tests of posternd: its switch runs in a thread, over a loop instead of a card.
 * The processes are this one, as root and as another user, and some of them keep to nothing.
 *
 * Covers: pmd-glue/switch.c, pmd-glue/clients.c, pmd-glue/client.c.
 */
#include "../nap.h"
#include "glue_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pmd-glue/client.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pair.h>
#include <pmd-glue/switch.h>
#include <wire/frame.h>
#include <wire/message.h>

#include "apps/node/attest.h"

#define NID         7u
#define FAR_NID     8u
#define NOBODY      65534u
#define ROOM        8u
#define MARK_FIRST  100u
#define SETTLE_TIME (100 * MILLISECOND)

static char name[32];    /* of the "card" */
static struct port *far; /* the other end of the wire */
static const struct port_operations *loop;
static bool card_deaf;              /* the "card" takes nothing, */
static unsigned card_room;          /* but so many of the first frames that are more, */
static unsigned card_took[2];       /* of processes with even and odd ids, */
static _Atomic unsigned card_turns; /* for so many turns */
static unsigned user_most;
static uint64_t return_time;
static struct switch_state *the_switch;
static pthread_t thread;
static bool runs; /* it does */
static enum switch_verdict (*attest_by)(
	const uint8_t *frame, uint32_t length, struct switch_identity *who) = attest;

static void need_root(void)
{
	if (geteuid() == 0)
		return;
	if (getenv("CI"))
		fail_msg("/run/postern is root's: run as root");
	print_message("skipped: needs root\n");
	skip();
}

static void *run(void *unused)
{
	(void)unused;
	glue_thread_enter();
	switch_run(the_switch);
	return NULL;
}

static uint32_t source_of(const struct rte_mbuf *frame)
{
	struct frame_header header;

	memcpy(&header, rte_pktmbuf_mtod_offset(frame, const void *, FRAME_ETHERNET_BYTES),
		sizeof(header));
	return header.source_pid;
}

static uint16_t card_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	if (!card_deaf)
		return loop->transmit(port, frames, count);
	if (card_room > 0 && count > card_room) {
		for (unsigned n = 0; n < card_room; n++)
			card_took[source_of(frames[n]) % 2]++;
		count = loop->transmit(port, frames, (uint16_t)card_room);
		card_room = 0;
		return count;
	}
	if (card_turns > 0)
		card_turns--;
	return 0;
}

/* From now on the port can be told to take nothing. */
static void card_make(struct port *port)
{
	static struct port_operations card;

	loop = port->operations;
	card = *loop;
	card.transmit = card_transmit;
	port->operations = &card;
}

static void begin_stopped(void)
{
	struct switch_options options = {.name = name,
		.nid = NID,
		.at = FRAME_ETHERNET_BYTES + 8,
		.ethertype = FRAME_ETHERTYPE,
		.mode = 0666,
		.group = (gid_t)-1,
		.user_most = user_most,
		.return_time = return_time,
		.attest = attest_by,
		.farewell = farewell};

	need_root();
	far = loop_open("switch", 0);
	options.port = loop_open("switch", 0);
	assert_non_null(far);
	assert_non_null(options.port);
	card_make(options.port);
	the_switch = switch_open(&options);
	assert_non_null(the_switch);
}

static void go_on(void)
{
	assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
	runs = true;
}

static void pause_it(void)
{
	switch_stop(the_switch);
	assert_int_equal(pthread_join(thread, NULL), 0);
	runs = false;
}

static void begin(void)
{
	begin_stopped();
	go_on();
}

static void end(void)
{
	if (runs)
		pause_it();
	switch_close(the_switch);
	the_switch = NULL;
	port_close(far);
	far = NULL;
}

/* What a test has left that failed: the next ones find nothing of it but its clients. */
static int clean(void **state)
{
	(void)state;
	(void)seteuid(0);
	attest_by = attest;
	card_deaf = false;
	card_room = 0;
	card_turns = 0;
	if (the_switch)
		end();
	return 0;
}

static struct switch_count look(void)
{
	struct switch_process processes[ROOM];
	uint64_t until = glue_now(NULL) + PATIENCE;
	struct switch_count count;

	while (switch_look(the_switch, &count, processes, 0, ROOM) == -1)
		assert_true(glue_now(NULL) < until); /* its thread has no CPU */
	return count;
}

/* The switch looks for what comes once a millisecond. */
static void look_until(bool (*enough)(const struct switch_count *count))
{
	uint64_t until = glue_now(NULL) + PATIENCE;
	struct switch_count count;

	do {
		count = look();
		assert_true(glue_now(NULL) < until);
	} while (!enough(&count));
}

static struct port *open_as(uint32_t pid)
{
	bool absent;
	struct port *port = client_port_open(name, 0, 0, pid, &absent);

	assert_false(absent);
	return port;
}

static struct port *open_user(uint32_t pid, uid_t uid)
{
	struct port *port;

	assert_int_equal(seteuid(uid), 0);
	port = open_as(pid);
	assert_int_equal(seteuid(0), 0);
	return port;
}

/* What a frame claims. */
struct claim {
	uint32_t nid, pid, uid;
	uint32_t to_nid, to_pid;
	uint32_t life, to_life;
	uint8_t kind;       /* of the message */
	uint8_t address;    /* added to its last byte */
	uint16_t ethertype; /* 0: Postern's */
	bool damaged;
};

static struct rte_mbuf *claim_make(struct port *port, const struct claim *claim, uint8_t fill)
{
	struct message_header header = {.kind = claim->kind, .uid = claim->uid, .match_bits = fill};
	struct record record = {.kind = RECORD_WHOLE, .header_length = MESSAGE_HEADER_LEAST};
	struct frame frame = {.type = FRAME_DATA,
		.flags = FRAME_START,
		.records = 1,
		.length = FRAME_HEADER_BYTES + RECORD_WHOLE_BYTES + MESSAGE_HEADER_LEAST,
		.destination_nid = claim->to_nid,
		.destination_pid = claim->to_pid,
		.source_nid = claim->nid,
		.source_pid = claim->pid,
		.source_incarnation = claim->life,
		.destination_incarnation = claim->to_life,
		.psn = 77,
		.stream = 3};
	uint8_t encoded[MESSAGE_HEADER_BYTES];
	struct rte_mbuf *mbuf = frame_make(port, port == far || !far ? everybody : far->address,
		FRAME_ETHERNET_BYTES + frame.length, 0);
	uint8_t *bytes = rte_pktmbuf_mtod(mbuf, uint8_t *);
	uint8_t *transport = bytes + FRAME_ETHERNET_BYTES;

	bytes[11] = (uint8_t)(bytes[11] + claim->address);
	if (claim->ethertype != 0)
		bytes[13] = (uint8_t)claim->ethertype;
	assert_int_equal(message_encode(&header, encoded), MESSAGE_HEADER_LEAST);
	memcpy(record_write(transport + FRAME_HEADER_BYTES, &record), encoded,
		MESSAGE_HEADER_LEAST);
	frame_encode(&frame, transport);
	if (claim->damaged)
		transport[40] ^= 1;
	return mbuf;
}

static struct claim honest(const struct port *port, uint32_t to_nid, uint32_t to_pid)
{
	return (struct claim){.nid = NID,
		.pid = port->pid,
		.uid = port->uid,
		.to_nid = to_nid,
		.to_pid = to_pid,
		.kind = MESSAGE_PUT};
}

static void send_to(struct port *port, uint32_t nid, uint32_t pid, uint8_t fill)
{
	struct claim claim = honest(port, nid, pid);

	port_send(port, claim_make(port, &claim, fill));
}

/* Sends as many to process 1, which takes none. A process drops what the switch does not take in
 * time. */
static void flood(struct port *port, unsigned count)
{
	uint64_t missed = port_count(port).missed, now;

	while (count > 0) {
		send_to(port, NID, 1, 0);
		now = port_count(port).missed;
		count -= now == missed;
		missed = now;
	}
}

/* Does a frame carry this? */
static bool frame_carries(const struct rte_mbuf *frame, uint8_t fill)
{
	const uint32_t at = FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES + RECORD_WHOLE_BYTES + 16;

	return frame->pkt_len > at && *rte_pktmbuf_mtod_offset(frame, uint8_t *, at) == fill;
}

/* Is it one of settle()'s? */
static bool frame_settles(const struct rte_mbuf *frame)
{
	for (unsigned mark = MARK_FIRST; mark <= UINT8_MAX; mark++)
		if (frame_carries(frame, (uint8_t)mark))
			return true;
	return false;
}

static void expect(struct port *port, uint8_t fill)
{
	struct rte_mbuf *frame = port_take(port);

	assert_non_null(frame);
	assert_true(frame_carries(frame, fill));
	rte_pktmbuf_free(frame);
}

static void client_port_open__learns_who_the_process_is(void **state)
{
	struct port *one, *any, *other;

	(void)state;
	begin();
	one = open_as(41);
	any = open_as(GLUE_PID_ANY);
	other = open_user(GLUE_PID_ANY, NOBODY);
	assert_true(one->named && one->attested);
	assert_int_equal(one->nid, NID);
	assert_int_equal(one->pid, 41);
	assert_int_equal(one->uid, 0);
	assert_int_equal(any->pid, getpid());
	assert_int_equal(other->uid, NOBODY);
	assert_int_not_equal(other->pid, any->pid);
	log_clear_error();
	assert_null(open_user(41, NOBODY));
	assert_non_null(strstr(log_last_error(), "41 is in use"));
	assert_int_equal(look().refused[CLIENT_PID], 1);
	/* Who only tries an id is told so, without a line. */
	assert_true(glue_pid_is_taken());
	glue_pid_try(true);
	log_clear_error();
	assert_null(open_user(41, NOBODY));
	assert_string_equal(log_last_error(), "");
	glue_pid_try(false);
	assert_int_equal(look().refused[CLIENT_PID], 2);
	assert_int_equal(look().processes, 3);
	assert_int_equal(look().users, 2);
	port_close(one);
	one = open_as(41);
	assert_non_null(one);
	port_close(one);
	port_close(any);
	port_close(other);
	end();
}

/* Opens as a process of another network namespace would. */
static struct port *open_elsewhere(bool *absent)
{
	int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	struct port *port;

	assert_true(here >= 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	port = client_port_open(name, 0, 0, GLUE_PID_ANY, absent);
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	close(here);
	return port;
}

/* A container has no interface that only posternd's network namespace has. "lo" is in each. */
static void client_port_open__takes_no_interface_for_another_of_its_name(void **state)
{
	char usual[sizeof(name)];
	struct port *port;
	bool absent;

	(void)state;
	need_root();
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		(mkdir(CLIENT_DIRECTORY, 0755) != 0 && errno != EEXIST) ||
		mount("tmpfs", CLIENT_DIRECTORY, "tmpfs", 0, "mode=755") != 0)
		skip();
	begin();
	port = open_elsewhere(&absent);
	assert_non_null(port);
	port_close(port);
	end();
	memcpy(usual, name, sizeof(name));
	snprintf(name, sizeof(name), "lo");
	begin();
	port = open_as(5);
	assert_non_null(port);
	log_clear_error();
	assert_null(open_elsewhere(&absent));
	assert_true(absent);
	assert_string_equal(log_last_error(), "");
	assert_int_equal(look().refused[CLIENT_SPACE], 1);
	port_close(port);
	end();
	memcpy(name, usual, sizeof(name));
	assert_int_equal(umount(CLIENT_DIRECTORY), 0);
}

static void client_port_open__says_what_does_not_fit(void **state)
{
	bool absent;

	(void)state;
	need_root();
	assert_null(client_port_open(name, 0, 0, 1, &absent));
	assert_true(absent);
	begin();
	fixture_set("PTL_NID", "9");
	log_clear_error();
	assert_null(open_as(1));
	assert_non_null(strstr(log_last_error(), "PTL_NID"));
	fixture_set("PTL_NID", NULL);
	end();
}

static void switch_run__forwards_between_processes_and_the_port(void **state)
{
	struct port *one, *two;

	(void)state;
	begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	for (uint8_t n = 0; n < 200; n++) {
		send_to(one, FAR_NID, 1, n);
		expect(far, n);
		send_to(two, FAR_NID, 1, n);
		expect(far, n);
		send_to(two, NID, 1, n);
		expect(one, n);
		port_send(far,
			claim_make(far, &(struct claim){.to_nid = NID, .to_pid = 2, .kind = 1}, n));
		expect(two, n);
		/* A process of this node that is not here may have a socket of its own. */
		send_to(one, NID, 3, n);
		expect(far, n);
		/* Nobody. */
		port_send(far,
			claim_make(far, &(struct claim){.to_nid = NID, .to_pid = 3, .kind = 1}, n));
	}
	assert_int_equal(look().between, 200);
	assert_int_equal(look().to_port, 600);
	assert_int_equal(look().unknown, 200);
	port_close(one);
	port_close(two);
	end();
}

static bool six_dropped(const struct switch_count *count)
{
	uint64_t sum = 0;

	for (unsigned n = 1; n <= SWITCH_UID; n++)
		sum += count->dropped[n];
	return sum >= 6;
}

/* W1. */
static void switch_run__lets_nobody_be_another(void **state)
{
	struct port *one, *two;
	struct claim claims[6];
	struct switch_count count;

	(void)state;
	begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	for (unsigned n = 0; n < RTE_DIM(claims); n++)
		claims[n] = honest(two, n % 2 ? FAR_NID : NID, 1);
	claims[0].nid = FAR_NID;
	claims[1].pid = 1;
	claims[2].uid = 0;
	claims[3].address = 1;
	claims[4].ethertype = 0xb6;
	claims[5].damaged = true;
	for (unsigned n = 0; n < RTE_DIM(claims); n++)
		port_send(two, claim_make(two, &claims[n], 1));
	look_until(six_dropped);
	count = look();
	for (unsigned n = 1; n <= SWITCH_UID; n++)
		assert_int_equal(count.dropped[n], 1);
	/* A get asks, too; an answer's user means nothing. Nothing of the above has come before. */
	claims[0] = honest(two, NID, 1);
	claims[0].kind = MESSAGE_GET;
	claims[0].uid = 0;
	port_send(two, claim_make(two, &claims[0], 2));
	claims[0].kind = MESSAGE_REPLY;
	port_send(two, claim_make(two, &claims[0], 3));
	expect(one, 3);
	send_to(two, FAR_NID, 1, 4);
	expect(far, 4);
	assert_int_equal(look().dropped[SWITCH_UID], 2);
	port_close(one);
	port_close(two);
	end();
}

/* A question for a name, or its answer. */
static struct rte_mbuf *name_make(
	struct port *port, enum frame_type type, uint32_t to_nid, uint32_t to_pid, const char *host)
{
	struct frame_name title = {.board = 0};
	struct frame frame = {.type = (uint8_t)type,
		.flags = FRAME_FULL_SUM,
		.length = FRAME_HEADER_BYTES + sizeof(title),
		.destination_nid = to_nid,
		.destination_pid = to_pid,
		.destination_incarnation = type == FRAME_FOUND ? 1 : 0,
		.source_nid = port == far ? FAR_NID : NID,
		.source_pid = port == far ? 1 : port->pid,
		.source_incarnation = 5};
	struct rte_mbuf *mbuf = frame_make(port, everybody, FRAME_ETHERNET_BYTES + frame.length, 0);
	uint8_t *transport = rte_pktmbuf_mtod(mbuf, uint8_t *) + FRAME_ETHERNET_BYTES;

	(void)snprintf(title.host, sizeof(title.host), "%s", host);
	memcpy(transport + FRAME_HEADER_BYTES, &title, sizeof(title));
	frame_encode(&frame, transport);
	return mbuf;
}

static void expect_type(struct port *port, enum frame_type type)
{
	struct rte_mbuf *frame = port_take(port);
	const uint8_t *transport;

	assert_non_null(frame);
	transport = rte_pktmbuf_mtod_offset(frame, const uint8_t *, FRAME_ETHERNET_BYTES);
	assert_int_equal(frame_type((const struct frame_header *)(const void *)transport), type);
	rte_pktmbuf_free(frame);
}

#define NAMES 500

/* A question goes to the process id that it names, on whatever node; and a process answers for this
 * host, and for no other. Nobody rests for other answers, because strangers ask. */
static void switch_run__lets_processes_answer_for_their_own_host(void **state)
{
	char own[sizeof(((struct frame_name *)NULL)->host)] = "";
	struct port *one;
	uint64_t until;

	(void)state;
	assert_int_equal(gethostname(own, sizeof(own) - 1), 0);
	begin();
	one = open_user(2, NOBODY);
	port_send(far, name_make(far, FRAME_FIND, PORT_ANY_NODE, 3, "beta"));
	port_send(far, name_make(far, FRAME_FIND, PORT_ANY_NODE, 2, "beta"));
	expect_type(one, FRAME_FIND);
	port_send(one, name_make(one, FRAME_FIND, PORT_ANY_NODE, 2, "beta"));
	expect_type(far, FRAME_FIND);
	/* Some get lost where the switch takes nothing for 10 ms, on a busy machine. */
	until = glue_now(NULL) + PATIENCE;
	while (look().dropped[SWITCH_NAME] < NAMES) {
		assert_true(glue_now(NULL) < until);
		for (unsigned n = 0; n < NAMES / 10; n++)
			port_send(one, name_make(one, FRAME_FOUND, FAR_NID, 1, "another-host"));
	}
	assert_int_equal(look().rested, 0);
	port_send(one, name_make(one, FRAME_FOUND, FAR_NID, 1, own));
	expect_type(far, FRAME_FOUND);
	assert_int_equal(look().unknown, 1);
	port_close(one);
	end();
}

/* W3: 100 frames of one user and 100 of each of two processes of another are there at once. */
static void switch_run__gives_users_turns(void **state)
{
	struct port *one, *two, *three;
	unsigned users[2] = {0, 0}, processes[4] = {0};

	(void)state;
	begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	three = open_user(3, NOBODY);
	pause_it();
	for (uint8_t n = 0; n < 100; n++) {
		send_to(one, FAR_NID, 1, n);
		send_to(two, FAR_NID, 2, n);
		send_to(three, FAR_NID, 3, n);
	}
	go_on();
	for (unsigned n = 0; n < 128; n++) {
		struct rte_mbuf *frame = port_take(far);
		const struct frame_header *header;

		assert_non_null(frame);
		header = rte_pktmbuf_mtod_offset(
			frame, const struct frame_header *, FRAME_ETHERNET_BYTES);
		users[header->source_pid > 1]++;
		processes[header->source_pid]++;
		rte_pktmbuf_free(frame);
	}
	assert_int_equal(users[0], 64);
	assert_int_equal(processes[2], 32);
	assert_int_equal(processes[3], 32);
	port_close(one);
	port_close(two);
	port_close(three);
	end();
}

#define FLOOD         300u
#define OTHERS_FRAMES (PAIR_SLOTS / 4)     /* that a pair holds of other users, */
#define PORTS_FRAMES  (3 * PAIR_SLOTS / 4) /* and of the port */

static bool others_lost(const struct switch_count *count)
{
	return count->full >= FLOOD - OTHERS_FRAMES;
}

static bool ports_lost(const struct switch_count *count)
{
	return count->full >= FLOOD - PORTS_FRAMES;
}

/* Takes frames until so many of this process have come. Counts all by their senders. */
static void take_of(struct port *port, unsigned *came, uint32_t pid, unsigned wanted)
{
	while (came[pid] < wanted) {
		struct rte_mbuf *frame = port_take(port);
		const struct frame_header *header;

		assert_non_null(frame);
		header = rte_pktmbuf_mtod_offset(
			frame, const struct frame_header *, FRAME_ETHERNET_BYTES);
		came[header->source_pid]++;
		rte_pktmbuf_free(frame);
	}
}

/* W2: a process takes nothing while another user floods it. */
static void switch_run__keeps_room_for_a_users_own_processes(void **state)
{
	struct port *one, *two, *three;
	unsigned came[4] = {0};

	(void)state;
	begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	three = open_as(3);
	flood(two, FLOOD);
	look_until(others_lost);
	for (unsigned n = 0; n < 100; n++)
		send_to(three, NID, 1, 0);
	take_of(one, came, 3, 100);
	assert_int_equal(came[2], OTHERS_FRAMES);
	assert_int_equal(look().full, FLOOD - OTHERS_FRAMES);
	port_close(one);
	port_close(two);
	port_close(three);
	end();
}

/* W2: and while the network does. */
static void switch_run__keeps_room_from_the_port(void **state)
{
	const struct claim claim = {.to_nid = NID, .to_pid = 1, .kind = MESSAGE_PUT};
	struct port *one, *three;
	unsigned came[4] = {0};

	(void)state;
	begin();
	one = open_as(1);
	three = open_as(3);
	for (unsigned n = 0; n < FLOOD; n++)
		port_send(far, claim_make(far, &claim, 0));
	look_until(ports_lost);
	for (unsigned n = 0; n < PAIR_SLOTS - PORTS_FRAMES; n++)
		send_to(three, NID, 1, 0);
	take_of(one, came, 3, PAIR_SLOTS - PORTS_FRAMES);
	assert_int_equal(came[0], PORTS_FRAMES);
	assert_int_equal(look().full, FLOOD - PORTS_FRAMES);
	port_close(one);
	port_close(three);
	end();
}

static bool some_rested(const struct switch_count *count)
{
	return count->rested > 0;
}

/* W2: who crowds others rests for 1 ms at least each time; who crowds his own user does not. */
static void switch_run__lets_those_rest_who_crowd_others(void **state)
{
	struct port *one, *two, *three;
	uint64_t begun, rests;

	(void)state;
	begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	three = open_as(3);
	flood(three, 2 * FLOOD);
	look_until(others_lost);
	assert_int_equal(look().rested, 0);
	begun = glue_now(NULL);
	flood(two, 2 * FLOOD);
	/* Frames are lost while posternd takes none. */
	for (struct rte_mbuf *frame = NULL; !frame; nap()) {
		send_to(two, FAR_NID, 1, 9);
		if (port_receive(far, &frame, 1) == 1)
			rte_pktmbuf_free(frame);
	}
	rests = look().rested;
	assert_true(rests > 2);
	assert_true(glue_now(NULL) - begun >= (rests - 2) * MILLISECOND);
	port_close(two);
	port_close(one);
	port_close(three);
	end();
}

/* W2: and so does who lies. */
static void switch_run__lets_those_rest_who_lie(void **state)
{
	struct port *one, *two;
	struct claim lie;

	(void)state;
	begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	lie = honest(two, NID, 1);
	lie.nid = FAR_NID;
	for (unsigned n = 0; n < FLOOD; n++)
		port_send(two, claim_make(two, &lie, 0));
	look_until(some_rested);
	port_close(one);
	port_close(two);
	end();
}

#define MANY   (OTHERS_FRAMES - 4)
#define ROUNDS 20u

static bool answers_lost(const struct switch_count *count)
{
	return count->full == ROUNDS * MANY - OTHERS_FRAMES;
}

/* W2: who answers to one that does not listen does not rest. */
static void switch_run__lets_nobody_rest_who_answers(void **state)
{
	struct port *one, *two;

	(void)state;
	begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned n = 0; n < MANY; n++)
			send_to(two, NID, 1, 1);
		for (unsigned n = 0; n < MANY; n++)
			expect(one, 1);
		for (unsigned n = 0; n < MANY; n++)
			send_to(one, NID, 2, 2);
	}
	look_until(answers_lost);
	assert_int_equal(look().rested, 0);
	port_close(one);
	port_close(two);
	end();
}

/* How many frames have been taken from a user's processes. */
static uint64_t taken_of(uid_t uid)
{
	struct switch_process processes[ROOM];
	struct switch_count count;
	int found = switch_look(the_switch, &count, processes, 0, ROOM);
	uint64_t taken = 0;

	assert_int_not_equal(found, -1);
	for (int n = 0; n < found; n++)
		taken += processes[n].uid == uid ? processes[n].sent : 0;
	return taken;
}

/* Until the card has refused what it was to refuse. On a busy machine the switch has given up what
 * it held before. */
static void card_await(void)
{
	uint64_t until = glue_now(NULL) + PATIENCE;

	while (card_turns > 0 && look().lost == 0)
		assert_true(glue_now(NULL) < until);
}

static void switch_run__holds_a_share_of_each_user_for_the_port(void **state)
{
	const unsigned sent =
		200; /* six turns of a user's and some more, and fewer than a pair holds */
	struct port *one, *two, *three, *four;
	uint64_t taken;

	(void)state;
	begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	three = open_as(3);
	four = open_user(4, NOBODY);
	pause_it();
	for (unsigned i = 0; i < sent; i++) {
		send_to(two, FAR_NID, 1, 1);
		send_to(four, FAR_NID, 1, 1);
		send_to(three, NID, 1, 2);
	}
	card_deaf = true;
	card_turns = 8;
	go_on();
	card_await();
	for (unsigned i = 0; i < sent; i++)
		expect(one, 2);
	/* What is held for long is lost. */
	taken = taken_of(NOBODY);
	assert_true(taken <= 64 + look().lost);
	port_close(one);
	port_close(two);
	port_close(three);
	port_close(four);
	end();
	card_deaf = false;
}

/* Whose frames are held is known also after the card has taken some of them. */
static void switch_run__knows_whose_frames_are_left_when_some_have_gone(void **state)
{
	const unsigned sent = 200, room = 32; /* a turn's frames of a user */
	uint64_t of_root, of_nobody;
	struct port *one, *two;

	(void)state;
	begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	pause_it();
	for (unsigned i = 0; i < sent; i++) {
		send_to(one, FAR_NID, 1, 1);
		send_to(two, FAR_NID, 1, 1);
	}
	card_took[0] = card_took[1] = 0;
	card_deaf = true;
	card_room = room;
	card_turns = 8;
	go_on();
	card_await();
	assert_int_equal(card_took[0] + card_took[1], room);
	/* What is held for long is lost. */
	of_root = taken_of(0);
	of_nobody = taken_of(NOBODY);
	assert_true(of_nobody <= 64 + card_took[0] + look().lost);
	assert_true(of_root <= 64 + card_took[1] + look().lost);
	port_close(one);
	port_close(two);
	end();
	card_deaf = false;
}

/* --- processes that keep to nothing --- */

struct rogue {
	int socket;
	int files[2]; /* page, memory */
	void *memory;
};

static int rogue_connect(void)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(posternd_address(&address, name));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static struct rogue rogue_sealed(int page_seals, int seals, size_t bytes)
{
	struct rogue rogue = {.files = {shared_file(shared_page_bytes(), shared_page_bytes()),
				      shared_file(bytes, 0)}};

	assert_int_equal(fcntl(rogue.files[0], F_ADD_SEALS, page_seals), 0);
	assert_int_equal(fcntl(rogue.files[1], F_ADD_SEALS, seals), 0);
	rogue.memory = shared_map(rogue.files[1], bytes, PROT_READ | PROT_WRITE);
	assert_non_null(rogue.memory);
	rogue.socket = rogue_connect();
	return rogue;
}

static struct rogue rogue_make(int seals, size_t bytes)
{
	return rogue_sealed(SHARED_PAGE_SEALS, seals, bytes);
}

/* What posternd answers; -1: it hangs up. */
static int rogue_say(int socket, const void *hello, size_t length, const int *fds, unsigned count)
{
	struct client_answer answer = {0};
	ssize_t heard;

	assert_true(parcel_send(socket, hello, length, fds, count));
	heard = recv(socket, &answer, sizeof(answer), 0);
	return heard == (ssize_t)sizeof(answer) ? (int)answer.verdict : -1;
}

static int rogue_hello(const struct rogue *rogue, uint32_t pid)
{
	struct client_hello hello = {.magic = CLIENT_MAGIC,
		.version = CLIENT_VERSION,
		.pid = pid,
		.pair_bytes = pair_bytes()};

	return rogue_say(rogue->socket, &hello, sizeof(hello), rogue->files, 2);
}

static void rogue_end(struct rogue *rogue, size_t bytes)
{
	munmap(rogue->memory, bytes);
	close(rogue->files[0]);
	close(rogue->files[1]);
	close(rogue->socket);
}

static void switch_run__refuses_memory_that_could_be_taken_away(void **state)
{
	struct rogue rogue;

	(void)state;
	begin();
	rogue = rogue_make(0, pair_bytes());
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_MEMORY);
	rogue_end(&rogue, pair_bytes());
	rogue = rogue_make(SHARED_SEALS, pair_bytes() - 4096);
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_MEMORY);
	rogue_end(&rogue, pair_bytes() - 4096);
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
	rogue_end(&rogue, pair_bytes());
	end();
}

/* S1 and S2 of shared.h: each seal is needed. */
static void switch_run__refuses_memory_that_lacks_a_seal(void **state)
{
	static const int seals[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_FUTURE_WRITE};
	struct rogue rogue;

	(void)state;
	begin();
	for (unsigned n = 0; n < RTE_DIM(seals); n++) {
		rogue = rogue_sealed(SHARED_PAGE_SEALS & ~seals[n], SHARED_SEALS, pair_bytes());
		assert_int_equal(rogue_hello(&rogue, 5), CLIENT_MEMORY);
		rogue_end(&rogue, pair_bytes());
		if (!(SHARED_SEALS & seals[n]))
			continue;
		rogue = rogue_make(SHARED_SEALS & ~seals[n], pair_bytes());
		assert_int_equal(rogue_hello(&rogue, 5), CLIENT_MEMORY);
		rogue_end(&rogue, pair_bytes());
	}
	end();
}

static void switch_run__refuses_nonsense(void **state)
{
	struct client_hello hello = {.magic = CLIENT_MAGIC, .version = CLIENT_VERSION + 1};
	struct rogue rogue;
	int fd;

	(void)state;
	begin();
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	assert_int_equal(
		rogue_say(rogue.socket, &hello, sizeof(hello), rogue.files, 2), CLIENT_VERSIONS);
	close(rogue.socket);
	rogue.socket = rogue_connect();
	hello.version = CLIENT_VERSION;
	assert_int_equal(rogue_say(rogue.socket, &hello, sizeof(hello), rogue.files, 2),
		CLIENT_VERSIONS); /* another layout */
	close(rogue.socket);
	rogue.socket = rogue_connect();
	assert_int_equal(
		rogue_say(rogue.socket, &hello, sizeof(hello), rogue.files, 1), CLIENT_STRANGE);
	rogue_end(&rogue, pair_bytes());
	fd = rogue_connect();
	assert_int_equal(rogue_say(fd, "who?", 4, NULL, 0), CLIENT_STRANGE);
	close(fd);
	assert_int_equal(look().refused[CLIENT_STRANGE], 2);
	assert_int_equal(look().processes, 0);
	end();
}

static unsigned wanted_broken;

static bool enough_broken(const struct switch_count *count)
{
	return count->broken >= wanted_broken;
}

static void switch_run__drops_a_process_that_scribbles_and_serves_the_others(void **state)
{
	struct rogue rogue;
	struct port *one;

	(void)state;
	begin();
	one = open_as(1);
	for (unsigned round = 1; round < 20; round++) {
		assert_int_equal(seteuid(NOBODY), 0);
		rogue = rogue_make(SHARED_SEALS, pair_bytes());
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
		memset(rogue.memory, (int)(round * 77), pair_bytes());
		send_to(one, FAR_NID, 1, (uint8_t)round);
		expect(far, (uint8_t)round);
		wanted_broken = round;
		look_until(enough_broken);
		rogue_end(&rogue, pair_bytes());
	}
	assert_int_equal(look().processes, 1);
	port_close(one);
	end();
}

/* Memory of a process that has ended, in which another one goes on: attest_and_refill() sends a
 * frame for each that the switch takes, so there is always a next one. */
static struct pair *refilled;
static struct rte_mbuf *refill;

static void refill_send(void)
{
	rte_mbuf_refcnt_update(refill, 1);
	assert_int_equal(pair_transmit(refilled, &refill, 1), 1);
}

static enum switch_verdict attest_and_refill(
	const uint8_t *frame, uint32_t length, struct switch_identity *who)
{
	if (who->pid == 5)
		refill_send();
	return attest(frame, length, who);
}

/* C2 of clients.h: processes that have sent nothing for a while are heard beside one that sends all
 * the time. */
static void switch_run__hears_the_idle_beside_the_busy(void **state)
{
	struct port *idle[20];
	struct claim claim;
	struct rogue rogue;

	(void)state;
	attest_by = attest_and_refill;
	begin();
	for (unsigned n = 0; n < RTE_DIM(idle); n++)
		idle[n] = open_user(100 + n, n % 2 ? NOBODY : 0);
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
	claim = honest(idle[0], NID, 1);
	claim.pid = 5;
	claim.uid = NOBODY; /* so none of these leaves */
	refill = claim_make(idle[0], &claim, 1);
	refilled = pair_open(rogue.memory, 0, idle[0]->pool, idle[0]->frame_size, NULL);
	pause_it(); /* one thread at a time sends into the pair */
	refill_send();
	go_on();
	for (uint8_t round = 0; round < 10; round++) {
		uint64_t until = glue_now(NULL) + 3 * MILLISECOND;

		while (glue_now(NULL) < until)
			nap();
		for (unsigned n = 0; n < RTE_DIM(idle); n++) {
			send_to(idle[n], FAR_NID, 1, (uint8_t)(round + n));
			expect(far, (uint8_t)(round + n));
		}
		/* One that is idle takes part as soon as a frame comes for it. */
		send_to(idle[round], NID, 119, round);
		expect(idle[19], round);
	}
	assert_true(look().dropped[SWITCH_UID] > 0);
	for (unsigned n = 0; n < RTE_DIM(idle); n++)
		port_close(idle[n]);
	pause_it();
	close(rogue.socket);
	close(rogue.files[0]);
	close(rogue.files[1]);
	rte_pktmbuf_free(refill);
	pair_close(refilled); /* the memory, too: the switch is not to find the last frame */
	end();
	attest_by = attest;
}

static bool one_is_left(const struct switch_count *count)
{
	return count->processes == 1;
}

static void switch_run__lets_go_of_a_process_whose_memory_is_filled_after_its_end(void **state)
{
	struct claim claim;
	struct rogue rogue;
	struct port *one;

	(void)state;
	attest_by = attest_and_refill;
	begin();
	one = open_as(1);
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	assert_int_equal(rogue_hello(&rogue, 5), CLIENT_WELCOME);
	pause_it();
	claim = honest(one, NID, 1);
	claim.pid = 5;
	claim.uid = NOBODY;
	refill = claim_make(one, &claim, 1);
	refilled = pair_open(rogue.memory, 0, one->pool, one->frame_size, NULL);
	for (unsigned n = 0; n < PAIR_SLOTS; n++)
		refill_send();
	close(rogue.socket);
	go_on();
	look_until(one_is_left);
	assert_true(look().dropped[SWITCH_UID] >= PAIR_SLOTS);
	rte_pktmbuf_free(refill);
	pair_close(refilled); /* the memory, too */
	close(rogue.files[0]);
	close(rogue.files[1]);
	port_close(one);
	end();
	attest_by = attest;
}

/* Sends to a process until somebody answers that it has ended; returns the answer. */
static struct rte_mbuf *farewell_of(struct port *asker, const struct claim *claim)
{
	uint64_t end = glue_now(NULL) + PATIENCE;
	struct rte_mbuf *answer = NULL;

	do {
		port_send(asker, claim_make(asker, claim, 0));
		(void)port_receive(asker, &answer, 1);
		assert_true(glue_now(NULL) < end);
		nap();
	} while (!answer);
	return answer;
}

/* Sends from one port to another until a frame has come: what was sent there before has been
 * answered by then. Those that find the other one full are lost. Each call has a mark of its own: a
 * frame of an earlier call's may still be on its way. */
static void settle(struct port *from, const struct claim *claim, struct port *to)
{
	static uint8_t mark = MARK_FIRST;
	uint64_t end = glue_now(NULL) + PATIENCE;
	struct rte_mbuf *frame;
	bool come = false;

	mark = mark < UINT8_MAX ? (uint8_t)(mark + 1) : MARK_FIRST;
	while (!come) {
		uint64_t again = glue_now(NULL) + SETTLE_TIME;

		assert_true(glue_now(NULL) < end);
		port_send(from, claim_make(from, claim, mark));
		while (!come && glue_now(NULL) < again) {
			nap();
			while (port_receive(to, &frame, 1) != 0) {
				come = come || frame_carries(frame, mark);
				rte_pktmbuf_free(frame);
			}
		}
	}
}

static void farewell_check(
	struct rte_mbuf *answer, const struct port *asker, uint32_t pid, uint32_t life)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(answer, const uint8_t *);
	struct frame_view view;

	assert_int_equal(answer->pkt_len, FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES);
	assert_memory_equal(bytes, asker->address, 6);
	assert_int_equal(
		frame_decode(bytes + FRAME_ETHERNET_BYTES, FRAME_HEADER_BYTES, &view), FRAME_OK);
	assert_int_equal(frame_type(view.header), FRAME_BYE);
	assert_int_equal(view.header->source_nid, NID);
	assert_int_equal(view.header->source_pid, pid);
	assert_int_equal(view.header->source_incarnation, life);
	assert_int_equal(view.header->destination_incarnation, 99);
	assert_int_equal(view.header->ack, 77);
	assert_int_equal(view.header->ack_stream, 3);
	rte_pktmbuf_free(answer);
}

/* A process sends a frame and ends. Returns a frame of the far node for its life. */
static struct claim life_end(uint32_t pid, uint32_t life)
{
	struct port *dying = open_user(pid, NOBODY);
	struct claim own = honest(dying, FAR_NID, 1);

	own.life = life;
	port_send(dying, claim_make(dying, &own, 1));
	expect(far, 1);
	port_close(dying);
	return (struct claim){.nid = FAR_NID,
		.pid = 1,
		.life = 99,
		.to_nid = NID,
		.to_pid = pid,
		.to_life = life,
		.kind = MESSAGE_PUT};
}

/* W6. */
static void switch_run__answers_for_a_process_that_has_ended(void **state)
{
	struct claim own, others;
	struct port *dying, *one;
	uint64_t told;

	(void)state;
	begin();
	one = open_as(1);
	others = life_end(5, 1234);
	farewell_check(farewell_of(far, &others), far, 5, 1234);
	/* To a process of this machine as well. What it sent before went out (W5). */
	others.nid = NID;
	others.uid = one->uid;
	farewell_check(farewell_of(one, &others), one, 5, 1234);
	own = honest(one, FAR_NID, 1);
	settle(one, &own, far);
	settle(far, &(struct claim){.to_nid = NID, .to_pid = 1, .kind = 1}, one);
	/* Not for another life, nor once somebody has its process id. */
	told = look().farewells;
	others.nid = FAR_NID;
	others.to_life = 1235;
	port_send(far, claim_make(far, &others, 0));
	settle(far, &(struct claim){.to_nid = NID, .to_pid = 1, .kind = 1}, one);
	dying = open_user(5, NOBODY);
	others.to_life = 1234;
	port_send(far, claim_make(far, &others, 7));
	expect(dying, 7);
	assert_int_equal(look().farewells, told);
	port_close(dying);
	port_close(one);
	end();
}

/* A question for a process of this node. */
static struct rte_mbuf *question_of(struct port *asker, uint32_t pid)
{
	struct frame frame = {.type = FRAME_ASK,
		.length = FRAME_HEADER_BYTES,
		.destination_nid = NID,
		.destination_pid = pid,
		.source_nid = asker == far ? FAR_NID : NID,
		.source_pid = asker == far ? 1 : asker->pid,
		.source_incarnation = 99,
		.psn = 1111,
		.ack = 2222};
	struct rte_mbuf *mbuf =
		frame_make(asker, everybody, FRAME_ETHERNET_BYTES + frame.length, 0);

	frame_encode(&frame, rte_pktmbuf_mtod(mbuf, uint8_t *) + FRAME_ETHERNET_BYTES);
	return mbuf;
}

static void denial_check(struct port *asker, uint32_t pid)
{
	struct rte_mbuf *answer;
	const uint8_t *bytes;
	struct frame_view view;

	port_send(asker, question_of(asker, pid));
	answer = port_take(asker);
	assert_non_null(answer);
	bytes = rte_pktmbuf_mtod(answer, const uint8_t *);
	assert_memory_equal(bytes, asker->address, 6);
	assert_int_equal(
		frame_decode(bytes + FRAME_ETHERNET_BYTES, FRAME_HEADER_BYTES, &view), FRAME_OK);
	assert_int_equal(frame_type(view.header), FRAME_BYE);
	assert_int_equal(view.header->flags & FRAME_ACK_VALID, 0);
	assert_int_equal(view.header->source_nid, NID);
	assert_int_equal(view.header->source_pid, pid);
	assert_int_not_equal(view.header->source_incarnation, 0);
	assert_int_equal(view.header->destination_incarnation, 99);
	assert_int_equal(view.header->psn, 1111);
	assert_int_equal(view.header->ack, 2222);
	rte_pktmbuf_free(answer);
}

static bool is_question(const struct rte_mbuf *frame)
{
	return frame_type(rte_pktmbuf_mtod_offset(
		       frame, const struct frame_header *, FRAME_ETHERNET_BYTES)) == FRAME_ASK;
}

/* W6. A process of the same node id may have a socket of its own (W5). */
static void switch_run__answers_questions_for_process_ids_that_nobody_has(void **state)
{
	struct rte_mbuf *frame;
	struct port *one, *other;
	struct claim own;
	uint64_t told;

	(void)state;
	begin();
	one = open_as(1);
	denial_check(far, 6);
	denial_check(one, 6);
	frame = port_take(far);
	assert_true(is_question(frame));
	rte_pktmbuf_free(frame);
	told = look().farewells;
	assert_int_equal(told, 2);
	other = open_as(6);
	port_send(far, question_of(far, 6));
	frame = port_take(other);
	assert_true(is_question(frame));
	rte_pktmbuf_free(frame);
	port_send(one, question_of(one, 6));
	frame = port_take(other);
	assert_true(is_question(frame));
	rte_pktmbuf_free(frame);
	own = honest(one, NID, 6);
	settle(one, &own, other);
	assert_int_equal(look().farewells, told);
	port_close(other);
	port_close(one);
	end();
}

/* In that time those call again who were served by a posternd that has ended. */
static void switch_run__answers_no_question_at_first(void **state)
{
	struct port *one;

	(void)state;
	return_time = 3600 * SECOND;
	begin();
	return_time = 0;
	one = open_as(1);
	port_send(far, question_of(far, 6));
	settle(far, &(struct claim){.to_nid = NID, .to_pid = 1, .kind = 1}, one);
	assert_int_equal(look().farewells, 0);
	port_close(one);
	end();
}

/* The life that ended last is the one that is answered for. */
static void switch_run__answers_for_a_process_that_has_ended_again(void **state)
{
	struct claim others;

	(void)state;
	begin();
	(void)life_end(5, 1234);
	others = life_end(5, 1235);
	farewell_check(farewell_of(far, &others), far, 5, 1235);
	end();
}

/* The process whose end a frame tells. */
static uint32_t farewell_pid(const struct rte_mbuf *answer)
{
	struct frame_view view;

	assert_int_equal(
		frame_decode(rte_pktmbuf_mtod_offset(answer, const uint8_t *, FRAME_ETHERNET_BYTES),
			FRAME_HEADER_BYTES, &view),
		FRAME_OK);
	return view.header->source_pid;
}

static void switch_run__answers_for_ended_processes_whose_numbers_are_alike(void **state)
{
	static const uint32_t pids[] = {5, 5 + 256, 5 + 512, 5 + 1024};
	struct claim others[RTE_DIM(pids)];
	struct rte_mbuf *answer;

	(void)state;
	begin();
	for (unsigned n = 0; n < RTE_DIM(pids); n++)
		others[n] = life_end(pids[n], 1234);
	for (unsigned n = 0; n < RTE_DIM(pids); n++) {
		/* Answers for the one before may still come. */
		while (farewell_pid(answer = farewell_of(far, &others[n])) != pids[n])
			rte_pktmbuf_free(answer);
		farewell_check(answer, far, pids[n], 1234);
	}
	end();
}

/* A peer that goes on sending to a life that is over keeps nobody of this node from sending. */
static void switch_run__sends_while_it_answers_for_ended_processes(void **state)
{
	const unsigned asked = 512; /* bursts of the switch's */
	struct claim own, others;
	struct port *one;
	struct rte_mbuf *frame;
	bool come = false;

	(void)state;
	begin();
	one = open_as(1);
	others = life_end(5, 1234);
	farewell_check(farewell_of(far, &others), far, 5, 1234);
	own = honest(one, FAR_NID, 1);
	settle(one, &own, far);
	pause_it();
	while (port_receive(far, &frame, 1) != 0)
		rte_pktmbuf_free(frame);
	for (unsigned n = 0; n < asked; n++)
		port_send(far, claim_make(far, &others, 0));
	port_send(one, claim_make(one, &own, 8));
	go_on();
	/* In a turn 64 are answered and 32 taken from a user, of whom some may still be there. */
	for (unsigned answers = 0, before = 0; !come;) {
		frame = port_take(far);
		assert_non_null(frame);
		come = frame_carries(frame, 8);
		if (frame_settles(frame))
			before++;
		else
			answers++;
		rte_pktmbuf_free(frame);
		assert_true(answers < asked / 2 + 2 * before);
	}
	port_close(one);
	end();
}

static bool ten_silent(const struct switch_count *count)
{
	return count->refused[CLIENT_SILENT] >= 10;
}

/* Silent connections have an end, and leave others their places. */
static void switch_run__hangs_up_on_the_silent(void **state)
{
	struct port *one;
	int fds[40];
	char byte;

	(void)state;
	begin();
	for (unsigned n = 0; n < RTE_DIM(fds); n++)
		fds[n] = rogue_connect();
	one = open_user(1, NOBODY);
	assert_non_null(one);
	look_until(ten_silent);
	for (unsigned n = 0; n < RTE_DIM(fds); n++) {
		assert_int_equal(recv(fds[n], &byte, 1, 0), 0); /* hung up, within 1 s or so */
		close(fds[n]);
	}
	send_to(one, FAR_NID, 1, 9);
	expect(far, 9);
	port_close(one);
	end();
}

static bool all_strange(const struct switch_count *count)
{
	return count->refused[CLIENT_STRANGE] >= 200;
}

/* Of connections in vain 64 are heard at once, and 4 more in each millisecond. */
static void switch_run__takes_its_time_for_connections_in_vain(void **state)
{
	uint64_t begun;
	int fds[200];

	(void)state;
	begin_stopped();
	for (unsigned n = 0; n < RTE_DIM(fds); n++) {
		fds[n] = rogue_connect();
		assert_true(parcel_send(fds[n], "who?", 4, NULL, 0));
	}
	begun = glue_now(NULL);
	go_on();
	look_until(all_strange);
	assert_true(glue_now(NULL) - begun >= (200 - 64) / 4 * MILLISECOND);
	for (unsigned n = 0; n < RTE_DIM(fds); n++)
		close(fds[n]);
	end();
}

static void switch_run__limits_the_processes_of_a_user(void **state)
{
	enum { MOST = 256 };
	struct rogue rogue;
	struct port *other;
	int sockets[MOST];

	(void)state;
	begin();
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	for (unsigned n = 0; n < MOST; n++) {
		assert_int_equal(rogue_hello(&rogue, n + 1), CLIENT_WELCOME);
		sockets[n] = rogue.socket;
		rogue.socket = rogue_connect();
	}
	assert_int_equal(rogue_hello(&rogue, MOST + 1), CLIENT_SHARE);
	other = open_user(MOST + 2, NOBODY);
	assert_non_null(other);
	send_to(other, FAR_NID, 1, 3);
	expect(far, 3);
	for (unsigned n = 0; n < MOST; n++)
		close(sockets[n]);
	close(rogue.socket);
	rogue.socket = rogue_connect();
	assert_int_equal(rogue_hello(&rogue, 1), CLIENT_WELCOME);
	rogue_end(&rogue, pair_bytes());
	port_close(other);
	end();
}

/* C3. */
static void switch_run__leaves_places_for_the_users_who_come_later(void **state)
{
	static const unsigned most[] = {256, 256, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1, 0};
	enum { PLACES = 1024, FIRST_USER = 60000 };
	struct rlimit files, more;
	static int sockets[PLACES];
	struct rogue rogue;
	unsigned count = 0;

	(void)state;
	need_root();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	more = (struct rlimit){RTE_MAX(files.rlim_cur, (rlim_t)8192), files.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &more) != 0)
		skip();
	begin();
	rogue = rogue_make(SHARED_SEALS, pair_bytes());
	for (unsigned user = 0; user < RTE_DIM(most); user++) {
		unsigned has = 0;
		int verdict;

		assert_int_equal(seteuid(FIRST_USER + user), 0);
		for (;;) {
			close(rogue.socket);
			rogue.socket = rogue_connect();
			verdict = rogue_hello(&rogue, count + 1);
			if (verdict != CLIENT_WELCOME)
				break;
			sockets[count++] = rogue.socket;
			rogue.socket = -1;
			has++;
		}
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(has, most[user]);
		assert_int_equal(verdict, count == PLACES ? CLIENT_FULL : CLIENT_SHARE);
	}
	while (count > 0)
		close(sockets[--count]);
	rogue_end(&rogue, pair_bytes());
	end();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

static void switch_run__has_as_many_processes_of_a_user_as_its_options_say(void **state)
{
	struct port *one, *two, *other;

	(void)state;
	user_most = 2;
	begin();
	user_most = 0;
	one = open_as(1);
	two = open_as(2);
	log_clear_error();
	assert_null(open_as(3));
	assert_non_null(strstr(log_last_error(), "of one user"));
	other = open_user(3, NOBODY);
	assert_non_null(other);
	port_close(one);
	port_close(two);
	port_close(other);
	end();
}

/* W4, G1. */
static void client_port_receive__calls_a_switch_that_was_started_again(void **state)
{
	struct rte_mbuf *frame;
	struct port *one;
	uint64_t until;

	(void)state;
	begin();
	one = open_as(1);
	for (uint8_t n = 0; n < 5; n++) {
		send_to(one, FAR_NID, 1, n);
		expect(far, n);
		end();
		while (one->operations->link(one))
			assert_int_equal(port_receive(one, &frame, 1), 0);
		send_to(one, FAR_NID, 1, n); /* dropped */
		begin();
		until = glue_now(NULL) + PATIENCE;
		while (!one->operations->link(one)) {
			assert_int_equal(port_receive(one, &frame, 1), 0);
			assert_true(glue_now(NULL) < until);
		}
	}
	assert_int_equal(port_count(one).missed, 5);
	/* Somebody else has its process id now. */
	end();
	while (one->operations->link(one))
		assert_int_equal(port_receive(one, &frame, 1), 0);
	begin();
	port_close(open_as(2));
	port_close(one);
	end();
}

static int start(void **state)
{
	snprintf(name, sizeof(name), "test-%ld", (long)getpid());
	return fixture_start(state);
}

static int finish(void **state)
{
	char path[96];

	(void)state;
	snprintf(path, sizeof(path), CLIENT_DIRECTORY "/%s/lock", name);
	(void)unlink(path);
	*strrchr(path, '/') = 0;
	(void)rmdir(path);
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, clean)
	const struct CMUnitTest tests[] = {
		TEST(client_port_open__learns_who_the_process_is),
		TEST(client_port_open__says_what_does_not_fit),
		TEST(switch_run__forwards_between_processes_and_the_port),
		TEST(switch_run__lets_nobody_be_another),
		TEST(switch_run__lets_processes_answer_for_their_own_host),
		TEST(switch_run__gives_users_turns),
		TEST(switch_run__keeps_room_for_a_users_own_processes),
		TEST(switch_run__keeps_room_from_the_port),
		TEST(switch_run__lets_those_rest_who_crowd_others),
		TEST(switch_run__lets_those_rest_who_lie),
		TEST(switch_run__lets_nobody_rest_who_answers),
		TEST(switch_run__holds_a_share_of_each_user_for_the_port),
		TEST(switch_run__knows_whose_frames_are_left_when_some_have_gone),
		TEST(switch_run__refuses_memory_that_could_be_taken_away),
		TEST(switch_run__refuses_memory_that_lacks_a_seal),
		TEST(switch_run__refuses_nonsense),
		TEST(switch_run__drops_a_process_that_scribbles_and_serves_the_others),
		TEST(switch_run__hears_the_idle_beside_the_busy),
		TEST(switch_run__lets_go_of_a_process_whose_memory_is_filled_after_its_end),
		TEST(switch_run__answers_for_a_process_that_has_ended),
		TEST(switch_run__answers_questions_for_process_ids_that_nobody_has),
		TEST(switch_run__answers_no_question_at_first),
		TEST(switch_run__answers_for_a_process_that_has_ended_again),
		TEST(switch_run__answers_for_ended_processes_whose_numbers_are_alike),
		TEST(switch_run__sends_while_it_answers_for_ended_processes),
		TEST(switch_run__hangs_up_on_the_silent),
		TEST(switch_run__takes_its_time_for_connections_in_vain),
		TEST(switch_run__limits_the_processes_of_a_user),
		TEST(switch_run__leaves_places_for_the_users_who_come_later),
		TEST(switch_run__has_as_many_processes_of_a_user_as_its_options_say),
		TEST(client_port_receive__calls_a_switch_that_was_started_again),
		TEST(client_port_open__takes_no_interface_for_another_of_its_name),
	};

	return cmocka_run_group_tests(tests, start, finish);
}
