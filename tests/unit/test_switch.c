/* SPDX-License-Identifier: BSD-3-Clause */
/* test_switch.c - tests of posternd: how its switch forwards frames, and shares its turns and
 * memory among users.
 *
 * Covers: pmd-glue/switch.c, pmd-glue/client.c.
 */
#include "../nap.h"
#include "switch_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pmd-glue/client.h>
#include <pmd-glue/pair.h>
#include <wire/message.h>

static void client_port_open__learns_who_the_process_is(void **state)
{
	struct port *one, *any, *other;

	(void)state;
	rig_begin();
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
	assert_int_equal(rig_look().refused[CLIENT_PID], 1);
	/* Who only tries an id is told so, without a line. */
	assert_true(glue_pid_is_taken());
	glue_pid_try(true);
	log_clear_error();
	assert_null(open_user(41, NOBODY));
	assert_string_equal(log_last_error(), "");
	glue_pid_try(false);
	assert_int_equal(rig_look().refused[CLIENT_PID], 2);
	assert_int_equal(rig_look().processes, 3);
	assert_int_equal(rig_look().users, 2);
	port_close(one);
	one = open_as(41);
	assert_non_null(one);
	port_close(one);
	port_close(any);
	port_close(other);
	rig_end();
}

static _Thread_local bool memory_is_short; /* for this thread */

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return memory_is_short ? NULL : __real_aligned_alloc(alignment, size);
}

/* How often this process has mapped memory that two share. */
static unsigned pairs_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned count = 0;
	char line[4096];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "postern-pair") != NULL;
	fclose(maps);
	return count;
}

static void client_port_open__keeps_nothing_when_memory_is_short(void **state)
{
	unsigned before;
	bool absent;

	(void)state;
	rig_begin();
	before = pairs_mapped();
	memory_is_short = true;
	assert_null(client_port_open(card_name, 0, 0, 41, &absent));
	memory_is_short = false;
	while (rig_look().processes > 0)
		nap();
	assert_int_equal(pairs_mapped(), before);
	rig_end();
}

/* Opens as a process of another network namespace would. */
static struct port *open_elsewhere(bool *absent)
{
	int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	struct port *port;

	assert_true(here >= 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	port = client_port_open(card_name, 0, 0, GLUE_PID_ANY, absent);
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	close(here);
	return port;
}

/* A container has no interface that only posternd's network namespace has. "lo" is in each. */
static void client_port_open__takes_no_interface_for_another_of_its_name(void **state)
{
	char usual[sizeof(card_name)];
	struct port *port;
	bool absent;

	(void)state;
	need_root();
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		(mkdir(CLIENT_DIRECTORY, 0755) != 0 && errno != EEXIST) ||
		mount("tmpfs", CLIENT_DIRECTORY, "tmpfs", 0, "mode=755") != 0)
		skip();
	rig_begin();
	port = open_elsewhere(&absent);
	assert_non_null(port);
	port_close(port);
	rig_end();
	memcpy(usual, card_name, sizeof(card_name));
	snprintf(card_name, sizeof(card_name), "lo");
	rig_begin();
	port = open_as(5);
	assert_non_null(port);
	log_clear_error();
	assert_null(open_elsewhere(&absent));
	assert_true(absent);
	assert_string_equal(log_last_error(), "");
	assert_int_equal(rig_look().refused[CLIENT_SPACE], 1);
	port_close(port);
	rig_end();
	memcpy(card_name, usual, sizeof(card_name));
	/* The kernel may release a closed socket's name later. */
	assert_int_equal(umount2(CLIENT_DIRECTORY, MNT_DETACH), 0);
}

/* A root whose umask is 077 starts posternd first after the host has. */
static void switch_open__lets_others_in_whatever_the_umask(void **state)
{
	struct port *port;
	mode_t mask;

	(void)state;
	need_root();
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("tmpfs", "/run", "tmpfs", 0, "mode=755") != 0)
		skip();
	mask = umask(0777);
	rig_begin();
	(void)umask(mask);
	port = open_user(2, NOBODY);
	assert_non_null(port);
	port_close(port);
	rig_end();
	assert_int_equal(umount2("/run", MNT_DETACH), 0);
}

static void client_port_open__says_what_does_not_fit(void **state)
{
	bool absent;

	(void)state;
	need_root();
	assert_null(client_port_open(card_name, 0, 0, 1, &absent));
	assert_true(absent);
	rig_begin();
	fixture_set("PTL_NID", "9");
	log_clear_error();
	assert_null(open_as(1));
	assert_non_null(strstr(log_last_error(), "PTL_NID"));
	fixture_set("PTL_NID", NULL);
	rig_end();
}

static void switch_run__forwards_between_processes_and_the_port(void **state)
{
	struct port *one, *two;

	(void)state;
	rig_begin();
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
	assert_int_equal(rig_look().between, 200);
	assert_int_equal(rig_look().to_port, 600);
	assert_int_equal(rig_look().unknown, 200);
	port_close(one);
	port_close(two);
	rig_end();
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
	static const uint8_t answers[] = {
		MESSAGE_ACK, MESSAGE_REPLY, MESSAGE_REFUSE, MESSAGE_STORED, MESSAGE_LOADED};
	struct port *one, *two;
	struct claim claims[6];
	struct switch_count count;

	(void)state;
	rig_begin();
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
	rig_look_until(six_dropped);
	count = rig_look();
	for (unsigned n = 1; n <= SWITCH_UID; n++)
		assert_int_equal(count.dropped[n], 1);
	/* A get asks, too; an answer's user means nothing. Nothing of the above has come before. */
	claims[0] = honest(two, NID, 1);
	claims[0].kind = MESSAGE_GET;
	claims[0].uid = 0;
	port_send(two, claim_make(two, &claims[0], 2));
	for (unsigned n = 0; n < RTE_DIM(answers); n++) {
		claims[0].kind = answers[n];
		port_send(two, claim_make(two, &claims[0], (uint8_t)(3 + n)));
	}
	for (unsigned n = 0; n < RTE_DIM(answers); n++)
		expect(one, (uint8_t)(3 + n));
	send_to(two, FAR_NID, 1, 2);
	expect(far, 2);
	assert_int_equal(rig_look().dropped[SWITCH_UID], 2);
	port_close(one);
	port_close(two);
	rig_end();
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
	rig_begin();
	one = open_user(2, NOBODY);
	port_send(far, name_make(far, FRAME_FIND, PORT_ANY_NODE, 3, "beta"));
	port_send(far, name_make(far, FRAME_FIND, PORT_ANY_NODE, 2, "beta"));
	expect_type(one, FRAME_FIND);
	port_send(one, name_make(one, FRAME_FIND, PORT_ANY_NODE, 2, "beta"));
	expect_type(far, FRAME_FIND);
	/* Some get lost where the switch takes nothing for 10 ms, on a busy machine. */
	until = glue_now(NULL) + TIMEOUT;
	while (rig_look().dropped[SWITCH_NAME] < NAMES) {
		assert_true(glue_now(NULL) < until);
		for (unsigned n = 0; n < NAMES / 10; n++)
			port_send(one, name_make(one, FRAME_FOUND, FAR_NID, 1, "another-host"));
	}
	assert_int_equal(rig_look().rested, 0);
	port_send(one, name_make(one, FRAME_FOUND, FAR_NID, 1, own));
	expect_type(far, FRAME_FOUND);
	assert_int_equal(rig_look().unknown, 1);
	port_close(one);
	rig_end();
}

/* W3: 100 frames of one user and 100 of each of two processes of another are there at once. */
static void switch_run__gives_users_turns(void **state)
{
	struct port *one, *two, *three;
	unsigned users[2] = {0, 0}, processes[4] = {0};

	(void)state;
	rig_begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	three = open_user(3, NOBODY);
	rig_pause();
	for (uint8_t n = 0; n < 100; n++) {
		send_to(one, FAR_NID, 1, n);
		send_to(two, FAR_NID, 2, n);
		send_to(three, FAR_NID, 3, n);
	}
	rig_go_on();
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
	rig_end();
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
	rig_begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	three = open_as(3);
	flood(two, FLOOD);
	rig_look_until(others_lost);
	for (unsigned n = 0; n < 100; n++)
		send_to(three, NID, 1, 0);
	take_of(one, came, 3, 100);
	assert_int_equal(came[2], OTHERS_FRAMES);
	assert_int_equal(rig_look().full, FLOOD - OTHERS_FRAMES);
	port_close(one);
	port_close(two);
	port_close(three);
	rig_end();
}

/* W2: and while the network does. */
static void switch_run__keeps_room_from_the_port(void **state)
{
	const struct claim claim = {.to_nid = NID, .to_pid = 1, .kind = MESSAGE_PUT};
	struct port *one, *three;
	unsigned came[4] = {0};

	(void)state;
	rig_begin();
	one = open_as(1);
	three = open_as(3);
	for (unsigned n = 0; n < FLOOD; n++)
		port_send(far, claim_make(far, &claim, 0));
	rig_look_until(ports_lost);
	for (unsigned n = 0; n < PAIR_SLOTS - PORTS_FRAMES; n++)
		send_to(three, NID, 1, 0);
	take_of(one, came, 3, PAIR_SLOTS - PORTS_FRAMES);
	assert_int_equal(came[0], PORTS_FRAMES);
	assert_int_equal(rig_look().full, FLOOD - PORTS_FRAMES);
	port_close(one);
	port_close(three);
	rig_end();
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
	rig_begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	three = open_as(3);
	flood(three, 2 * FLOOD);
	rig_look_until(others_lost);
	assert_int_equal(rig_look().rested, 0);
	begun = glue_now(NULL);
	flood(two, 2 * FLOOD);
	/* Frames are lost while posternd takes none. */
	for (struct rte_mbuf *frame = NULL; !frame; nap()) {
		send_to(two, FAR_NID, 1, 9);
		if (port_receive(far, &frame, 1) == 1)
			rte_pktmbuf_free(frame);
	}
	rests = rig_look().rested;
	assert_true(rests > 2);
	assert_true(glue_now(NULL) - begun >= (rests - 2) * MILLISECOND);
	port_close(two);
	port_close(one);
	port_close(three);
	rig_end();
}

/* W2: and so does who lies. */
static void switch_run__lets_those_rest_who_lie(void **state)
{
	struct port *one, *two;
	struct claim lie;

	(void)state;
	rig_begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	lie = honest(two, NID, 1);
	lie.nid = FAR_NID;
	for (unsigned n = 0; n < FLOOD; n++)
		port_send(two, claim_make(two, &lie, 0));
	rig_look_until(some_rested);
	port_close(one);
	port_close(two);
	rig_end();
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
	rig_begin();
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
	rig_look_until(answers_lost);
	assert_int_equal(rig_look().rested, 0);
	port_close(one);
	port_close(two);
	rig_end();
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
	uint64_t until = glue_now(NULL) + TIMEOUT;

	while (card_turns > 0 && rig_look().lost == 0)
		assert_true(glue_now(NULL) < until);
}

static void switch_run__holds_a_share_of_each_user_for_the_port(void **state)
{
	const unsigned sent =
		200; /* six turns of a user's and some more, and fewer than a pair holds */
	struct port *one, *two, *three, *four;
	uint64_t taken;

	(void)state;
	rig_begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	three = open_as(3);
	four = open_user(4, NOBODY);
	rig_pause();
	for (unsigned i = 0; i < sent; i++) {
		send_to(two, FAR_NID, 1, 1);
		send_to(four, FAR_NID, 1, 1);
		send_to(three, NID, 1, 2);
	}
	card_deaf = true;
	card_turns = 8;
	rig_go_on();
	card_await();
	for (unsigned i = 0; i < sent; i++)
		expect(one, 2);
	/* What is held for long is lost. */
	taken = taken_of(NOBODY);
	assert_true(taken <= 64 + rig_look().lost);
	port_close(one);
	port_close(two);
	port_close(three);
	port_close(four);
	rig_end();
	card_deaf = false;
}

/* Whose frames are held is known also after the card has taken some of them. */
static void switch_run__knows_whose_frames_are_left_when_some_have_gone(void **state)
{
	const unsigned sent = 200, room = 32; /* a turn's frames of a user */
	uint64_t of_root, of_nobody;
	struct port *one, *two;

	(void)state;
	rig_begin();
	one = open_as(1);
	two = open_user(2, NOBODY);
	rig_pause();
	for (unsigned i = 0; i < sent; i++) {
		send_to(one, FAR_NID, 1, 1);
		send_to(two, FAR_NID, 1, 1);
	}
	card_took[0] = card_took[1] = 0;
	card_deaf = true;
	card_room = room;
	card_turns = 8;
	rig_go_on();
	card_await();
	assert_int_equal(card_took[0] + card_took[1], room);
	/* What is held for long is lost. */
	of_root = taken_of(0);
	of_nobody = taken_of(NOBODY);
	assert_true(of_nobody <= 64 + card_took[0] + rig_look().lost);
	assert_true(of_root <= 64 + card_took[1] + rig_look().lost);
	port_close(one);
	port_close(two);
	rig_end();
	card_deaf = false;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, rig_clean)
	const struct CMUnitTest tests[] = {
		TEST(client_port_open__learns_who_the_process_is),
		TEST(client_port_open__says_what_does_not_fit),
		TEST(client_port_open__keeps_nothing_when_memory_is_short),
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
		TEST(client_port_open__takes_no_interface_for_another_of_its_name),
		TEST(switch_open__lets_others_in_whatever_the_umask),
	};

	return cmocka_run_group_tests(tests, rig_start, rig_finish);
}
