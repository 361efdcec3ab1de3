/* SPDX-License-Identifier: BSD-3-Clause */
/* switch_rig.c - see switch_rig.h. */
#include "switch_rig.h"

#include <pthread.h>
#include <unistd.h>

#include <pmd-glue/client.h>
#include <pmd-glue/kinds.h>
#include <wire/message.h>

char card_name[32];
struct port *far;
bool card_deaf;
unsigned card_room, card_took[2];
_Atomic unsigned card_turns;
unsigned user_most;
uint64_t return_time;
struct switch_state *the_switch;
_Atomic pid_t rig_thread;
enum switch_verdict (*attest_by)(
	const uint8_t *frame, uint32_t length, struct switch_identity *who) = attest;

static const struct port_operations *loop;
static pthread_t thread;
static bool runs; /* it does */

void need_root(void)
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
	rig_thread = gettid();
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

void rig_begin_stopped(void)
{
	struct switch_options options = {.name = card_name,
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

void rig_go_on(void)
{
	assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
	runs = true;
}

void rig_pause(void)
{
	switch_stop(the_switch);
	assert_int_equal(pthread_join(thread, NULL), 0);
	runs = false;
}

void rig_begin(void)
{
	rig_begin_stopped();
	rig_go_on();
}

void rig_end(void)
{
	if (runs)
		rig_pause();
	switch_close(the_switch);
	the_switch = NULL;
	port_close(far);
	far = NULL;
}

int rig_clean(void **state)
{
	(void)state;
	(void)seteuid(0);
	attest_by = attest;
	card_deaf = false;
	card_room = 0;
	card_turns = 0;
	if (the_switch)
		rig_end();
	return 0;
}

struct switch_count rig_look(void)
{
	struct switch_process processes[ROOM];
	uint64_t until = glue_now(NULL) + TIMEOUT;
	struct switch_count count;

	while (switch_look(the_switch, &count, processes, 0, ROOM) == -1)
		assert_true(glue_now(NULL) < until); /* its thread has no CPU */
	return count;
}

void rig_look_until(bool (*enough)(const struct switch_count *count))
{
	uint64_t until = glue_now(NULL) + TIMEOUT;
	struct switch_count count;

	do {
		count = rig_look();
		assert_true(glue_now(NULL) < until);
	} while (!enough(&count));
}

struct port *open_as(uint32_t pid)
{
	bool absent;
	struct port *port = client_port_open(card_name, 0, 0, pid, &absent);

	assert_false(absent);
	return port;
}

struct port *open_user(uint32_t pid, uid_t uid)
{
	struct port *port;

	assert_int_equal(seteuid(uid), 0);
	port = open_as(pid);
	assert_int_equal(seteuid(0), 0);
	return port;
}

struct rte_mbuf *claim_make(struct port *port, const struct claim *claim, uint8_t fill)
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

struct claim honest(const struct port *port, uint32_t to_nid, uint32_t to_pid)
{
	return (struct claim){.nid = NID,
		.pid = port->pid,
		.uid = port->uid,
		.to_nid = to_nid,
		.to_pid = to_pid,
		.kind = MESSAGE_PUT};
}

void send_to(struct port *port, uint32_t nid, uint32_t pid, uint8_t fill)
{
	struct claim claim = honest(port, nid, pid);

	port_send(port, claim_make(port, &claim, fill));
}

void flood(struct port *port, unsigned count)
{
	uint64_t missed = port_count(port).missed, now;

	while (count > 0) {
		send_to(port, NID, 1, 0);
		now = port_count(port).missed;
		count -= now == missed;
		missed = now;
	}
}

bool frame_carries(const struct rte_mbuf *frame, uint8_t fill)
{
	const uint32_t at = FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES + RECORD_WHOLE_BYTES + 16;

	return frame->pkt_len > at && *rte_pktmbuf_mtod_offset(frame, uint8_t *, at) == fill;
}

void expect(struct port *port, uint8_t fill)
{
	struct rte_mbuf *frame = port_take(port);

	assert_non_null(frame);
	assert_true(frame_carries(frame, fill));
	rte_pktmbuf_free(frame);
}
int rig_start(void **state)
{
	snprintf(card_name, sizeof(card_name), "test-%ld", (long)getpid());
	return fixture_start(state);
}

int rig_finish(void **state)
{
	char path[96];

	(void)state;
	snprintf(path, sizeof(path), CLIENT_DIRECTORY "/%s/lock", card_name);
	(void)unlink(path);
	*strrchr(path, '/') = 0;
	(void)rmdir(path);
	return 0;
}
