/* SPDX-License-Identifier: BSD-3-Clause */
/* client_nemesis.c - as MPICH's nemesis netmod for Portals 4: a physical matching interface,
 * which is opened twice in a row; six portals wherever they are free; queues and limits of
 * 65,536.
 *
 * Unexpected messages go to overflow blocks that take only what fits. A long message is a put
 * of its first part and a get of the rest. The data portal has flow control of the netmod's
 * own: the target asks all peers by the control portal to pause, and sends refused again when
 * it is enabled.
 */
#include "clients.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT        65536
#define EAGER        65536 /* bytes, and min_free of a block */
#define BLOCKS       4
#define BLOCK_BYTES  (1u << 20)
#define CONTROL_MANY 64
#define MOST         300000 /* bytes of a message */
#define MESSAGES     120
#define SMALL_QUEUE  64 /* of the data portal in the second life */
#define BURST        400
#define PIECES       7

enum control { PAUSE = 1, PAUSED, RESUME, ALL_RECEIVED };

#define TAG_BITS  0xffffffffull
#define BITS(tag) ((ptl_match_bits_t)7 << 48 | (tag))
#define LONG      1ull /* of the header data: there is more to get */

struct send {
	bool sent, acknowledged, gotten, refused, is_long;
	unsigned target;
	ptl_match_bits_t bits;
	uint8_t *data;
	size_t bytes;
	ptl_handle_me_t rest;
};

struct receive {
	bool done;
	ptl_event_t event; /* of the message */
	size_t bytes;
	uint8_t *data;
	ptl_handle_me_t entry;
};

struct block {
	ptl_handle_me_t entry;
	uint8_t *bytes;
};

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq, origin_eq;
static ptl_pt_index_t data_portal, get_portal, control_portal, other_portals[3];
static ptl_handle_md_t md;
static ptl_process_t map[RANKS_MAX];
static struct block blocks[BLOCKS];
static ptl_handle_me_t control_entries[2];
static uint8_t control_bytes[2][8];
static unsigned pauses, paused_peers, resent;
static bool paused[RANKS_MAX], pausing, all_received;
static struct send *sends;
static unsigned send_count;

static unsigned rank_of(ptl_process_t process)
{
	for (unsigned i = 0; i < ranks; i++)
		if (map[i].phys.nid == process.phys.nid && map[i].phys.pid == process.phys.pid)
			return i;
	check_fail("the process is a rank", __FILE__, __LINE__);
}

static void block_append(struct block *block)
{
	const ptl_me_t me = {
		.start = block->bytes,
		.length = BLOCK_BYTES,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE |
			   PTL_ME_MAY_ALIGN | PTL_ME_IS_ACCESSIBLE | PTL_ME_EVENT_LINK_DISABLE,
		.match_id = ANYONE,
		.ignore_bits = ~0ull,
		.min_free = EAGER,
	};

	check_ok(PtlMEAppend(ni, data_portal, &me, PTL_OVERFLOW_LIST, block, &block->entry));
}

static void control_append(unsigned number)
{
	const ptl_me_t me = {
		.start = control_bytes[number],
		.length = sizeof(control_bytes[number]),
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
		.match_id = ANYONE,
		.ignore_bits = ~0ull,
	};

	check_ok(PtlMEAppend(ni, control_portal, &me, PTL_PRIORITY_LIST, control_bytes,
		&control_entries[number]));
}

static void portals_open(ptl_size_t queue)
{
	const ptl_md_t all = {.length = PTL_SIZE_MAX, .eq_handle = 0, .ct_handle = PTL_CT_NONE};
	ptl_md_t own = all;

	check_ok(PtlEQAlloc(ni, queue, &eq));
	check_ok(PtlEQAlloc(ni, LIMIT, &origin_eq));
	check_ok(PtlPTAlloc(ni, PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_FLOWCTRL, eq,
		PTL_PT_ANY, &data_portal));
	check_ok(PtlPTAlloc(ni, PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE, origin_eq, PTL_PT_ANY,
		&get_portal));
	check_ok(PtlPTAlloc(ni, 0, origin_eq, PTL_PT_ANY, &control_portal));
	for (unsigned i = 0; i < COUNT(other_portals); i++)
		check_ok(PtlPTAlloc(ni, 0, origin_eq, PTL_PT_ANY, &other_portals[i]));
	check(data_portal == 0 && get_portal == 1 && other_portals[2] == 5);
	own.eq_handle = origin_eq;
	check_ok(PtlMDBind(ni, &own, &md));
	for (unsigned i = 0; i < BLOCKS; i++)
		block_append(&blocks[i]);
	control_append(0);
	control_append(1);
	job_barrier();
}

/* What is appended is unlinked: nothing refers to it. */
static void portals_close(void)
{
	job_barrier();
	for (unsigned i = 0; i < BLOCKS; i++)
		entry_unlink(PtlMEUnlink, blocks[i].entry);
	entry_unlink(PtlMEUnlink, control_entries[0]);
	entry_unlink(PtlMEUnlink, control_entries[1]);
	check_ok(PtlMDRelease(md));
	for (unsigned i = 0; i < COUNT(other_portals); i++)
		check_ok(PtlPTFree(ni, other_portals[i]));
	check_ok(PtlPTFree(ni, control_portal));
	check_ok(PtlPTFree(ni, get_portal));
	check_ok(PtlPTFree(ni, data_portal));
	check_ok(PtlEQFree(origin_eq));
	check_ok(PtlEQFree(eq));
}

static void interface_open(void)
{
	const ptl_ni_limits_t wanted = {
		.max_unexpected_headers = LIMIT,
		.max_list_size = LIMIT,
		.max_entries = LIMIT,
		.max_triggered_ops = LIMIT,
		.max_mds = 1024,
		.max_cts = 1024,
		.max_eqs = 1024,
		.max_pt_index = 63,
		.max_iovecs = 1024,
		.max_msg_size = PTL_SIZE_MAX,
		.max_atomic_size = 64,
		.max_fetch_atomic_size = 64,
		.max_waw_ordered_size = 64,
		.max_war_ordered_size = 64,
		.max_volatile_size = 64,
		.features = PTL_TARGET_BIND_INACCESSIBLE,
	};
	const unsigned options = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
	ptl_handle_ni_t again;
	ptl_ni_limits_t limits;
	ptl_process_t self;

	check_ok(PtlInit());
	check_ok(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, &wanted, &limits, &ni));
	check(limits.max_unexpected_headers >= LIMIT && limits.max_entries >= LIMIT);
	check(limits.max_list_size >= LIMIT && limits.max_pt_index >= 5);
	check_ok(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, &wanted, &limits, &again));
	check(again == ni);
	check_ok(PtlGetPhysId(ni, &self));
	job_map(self, map);
}

/* --- messages */

static void send_put(struct send *send)
{
	const size_t first = send->is_long ? EAGER : send->bytes;

	send->refused = false;
	check_ok(PtlPut(md, (ptl_size_t)(uintptr_t)send->data, first, PTL_ACK_REQ,
		map[send->target], data_portal, send->bits, 0, send,
		(uint64_t)send->bytes << 1 | (send->is_long ? LONG : 0)));
}

/* The rest of a long message is got from an entry of its own, which is there before the put. */
static void send_begin(
	struct send *send, unsigned target, uint32_t tag, uint8_t *data, size_t bytes)
{
	*send = (struct send){.target = target,
		.bits = BITS(tag),
		.data = data,
		.bytes = bytes,
		.is_long = bytes > EAGER};
	if (send->is_long) {
		const ptl_me_t me = {
			.start = data + EAGER,
			.length = bytes - EAGER,
			.ct_handle = PTL_CT_NONE,
			.uid = PTL_UID_ANY,
			.options = PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_IS_ACCESSIBLE |
				   PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
			.match_id = map[target],
			.match_bits = BITS(tag),
		};

		check_ok(PtlMEAppend(ni, get_portal, &me, PTL_PRIORITY_LIST, send, &send->rest));
	}
	send_put(send);
}

static bool send_done(const struct send *send)
{
	return send->sent && send->acknowledged && (!send->is_long || send->gotten);
}

static void control_say(unsigned target, enum control what)
{
	check_ok(
		PtlPut(md, 0, 0, PTL_NO_ACK_REQ, map[target], control_portal, rank, 0, NULL, what));
}

static void all_resend(void)
{
	for (unsigned i = 0; i < send_count; i++)
		if (sends[i].refused && !paused[sends[i].target]) {
			resent++;
			send_put(&sends[i]);
		}
}

static void control_heard(const ptl_event_t *event)
{
	unsigned from = rank_of(event->initiator);

	check(event->match_bits == from);
	if (event->hdr_data == PAUSE) {
		paused[from] = true;
		control_say(from, PAUSED);
	} else if (event->hdr_data == PAUSED) {
		paused_peers++;
	} else if (event->hdr_data == ALL_RECEIVED) {
		all_received = true;
	} else {
		check(event->hdr_data == RESUME);
		paused[from] = false;
	}
}

static void origin_event(const ptl_event_t *event)
{
	struct send *send = event->user_ptr;

	switch (event->type) {
	case PTL_EVENT_SEND:
		if (send)
			send->sent = true;
		break;
	case PTL_EVENT_ACK:
		if (event->ni_fail_type == PTL_NI_PT_DISABLED) {
			send->refused = true;
			break;
		}
		check(event->ni_fail_type == PTL_NI_OK && !send->acknowledged);
		send->acknowledged = true;
		break;
	case PTL_EVENT_GET:
		check(event->mlength == send->bytes - EAGER && !send->gotten);
		send->gotten = true;
		break;
	case PTL_EVENT_PUT:
		check(event->user_ptr == control_bytes);
		control_heard(event);
		break;
	case PTL_EVENT_REPLY:
		check(event->ni_fail_type == PTL_NI_OK);
		((struct receive *)event->user_ptr)->done = true;
		break;
	default:
		check_fail("the event is an origin's", __FILE__, __LINE__);
	}
}

/* A message is in its memory, or its first part in a block (the second half of a block's life goes
 * on with the headers that are kept). */
static void message_event(const ptl_event_t *event)
{
	struct receive *receive = event->user_ptr;
	const size_t bytes = event->hdr_data >> 1;

	receive->event = *event;
	receive->bytes = bytes;
	check(event->type == PTL_EVENT_PUT || event->mlength == event->rlength);
	if (event->type == PTL_EVENT_PUT_OVERFLOW)
		memcpy(receive->data, event->start, event->mlength);
	if (!(event->hdr_data & LONG)) {
		receive->done = true;
		return;
	}
	check_ok(PtlGet(md, (ptl_size_t)(uintptr_t)(receive->data + EAGER), bytes - EAGER,
		event->initiator, get_portal, event->match_bits, 0, receive));
}

/* The data portal was disabled: everybody pauses, then it is enabled, then they go on. */
static void pause_begin(void)
{
	pauses++;
	pausing = true;
	paused_peers = 0;
	for (unsigned i = 0; i < ranks; i++)
		if (i != rank)
			control_say(i, PAUSE);
}

static void pause_end(void)
{
	if (!pausing || paused_peers < ranks - 1)
		return;
	pausing = false;
	check_ok(PtlPTEnable(ni, data_portal));
	for (unsigned i = 0; i < ranks; i++)
		if (i != rank)
			control_say(i, RESUME);
}

static void origin_poll(void)
{
	ptl_event_t event;
	int code;

	while ((code = PtlEQGet(origin_eq, &event)) != PTL_EQ_EMPTY) {
		check_ok(code);
		origin_event(&event);
	}
	pause_end();
	all_resend();
}

static void poll_both(void)
{
	ptl_event_t event;
	int code;

	origin_poll();
	while ((code = PtlEQGet(eq, &event)) != PTL_EQ_EMPTY) {
		check_ok(code);
		if (event.type == PTL_EVENT_PT_DISABLED)
			pause_begin();
		else if (event.type == PTL_EVENT_AUTO_FREE)
			block_append(event.user_ptr);
		else if (event.type == PTL_EVENT_SEARCH && event.ni_fail_type != PTL_NI_OK)
			((struct receive *)event.user_ptr)->event = event;
		else if (event.type == PTL_EVENT_PUT && event.ptl_list == PTL_OVERFLOW_LIST)
			check(event.mlength == event.rlength); /* a receive will find it */
		else if (event.type != PTL_EVENT_AUTO_UNLINK)
			message_event(&event);
	}
	sched_yield();
}

static ptl_me_t receive_entry(struct receive *receive, ptl_process_t from, ptl_match_bits_t bits,
	ptl_match_bits_t ignored, void *start, ptl_size_t length, unsigned options)
{
	receive->done = false;
	return (ptl_me_t){.start = start,
		.length = length,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_IS_ACCESSIBLE |
			   PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE | options,
		.match_id = from,
		.match_bits = bits,
		.ignore_bits = ignored};
}

static void receive_post(struct receive *receive, const ptl_me_t *me)
{
	check_ok(PtlMEAppend(ni, data_portal, me, PTL_PRIORITY_LIST, receive, &receive->entry));
}

static size_t bytes_of(unsigned tag)
{
	return tag % 5 == 4 ? EAGER + tag * 1999u % (MOST - EAGER) : tag * 131u % EAGER;
}

/* Every rank sends to every other one: half of the receives are posted before, the others find
 * what was kept. A third of these are gathered by a vector. */
static void exchange(void)
{
	const unsigned peers = ranks - 1;
	struct receive *receives = calloc(MESSAGES * peers, sizeof(*receives));
	ptl_iovec_t(*pieces)[PIECES] = calloc(MESSAGES * peers, sizeof(*pieces));

	send_count = MESSAGES * peers;
	sends = calloc(send_count, sizeof(*sends));
	check(receives && pieces && sends);
	for (unsigned part = 0; part < 2; part++) {
		for (unsigned n = 0; n < MESSAGES * peers; n++) {
			const unsigned from = (rank + 1 + n % peers) % ranks, tag = n / peers;
			struct receive *receive = &receives[n];
			ptl_me_t me;

			if (tag % 2 != part)
				continue;
			receive->data = calloc(1, MOST);
			me = receive_entry(receive, tag % 8 == 1 ? ANYONE : map[from],
				BITS((uint64_t)from << 16 | tag), 0, receive->data,
				bytes_of(tag) > EAGER ? EAGER : bytes_of(tag), 0);
			if (tag % 3 == 0 && me.length > PIECES) {
				for (size_t i = 0; i < PIECES; i++)
					pieces[n][i] = (ptl_iovec_t){
						receive->data + me.length / PIECES * i,
						i < PIECES - 1 ? me.length / PIECES
							       : me.length - me.length / PIECES *
										     (PIECES - 1)};
				me.start = pieces[n];
				me.length = PIECES;
				me.options |= PTL_IOVEC;
			}
			receive_post(receive, &me);
		}
		if (part == 1)
			break;
		job_barrier();
		for (unsigned n = 0; n < send_count; n++) {
			const unsigned target = (rank + 1 + n % peers) % ranks, tag = n / peers;
			uint8_t *data = malloc(MOST);

			pattern_fill(data, bytes_of(tag), tag * 16 + rank);
			send_begin(&sends[n], target, rank << 16 | tag, data, bytes_of(tag));
		}
		for (unsigned n = 0; n < send_count / 2; n++)
			origin_poll();
	}
	for (unsigned n = 0; n < MESSAGES * peers; n++) {
		const unsigned from = (rank + 1 + n % peers) % ranks, tag = n / peers;

		while (!receives[n].done || !send_done(&sends[n]))
			poll_both();
		check(receives[n].bytes == bytes_of(tag));
		check(rank_of(receives[n].event.initiator) == from);
		pattern_check(receives[n].data, bytes_of(tag), tag * 16 + from);
		free(receives[n].data);
	}
	job_barrier();
	for (unsigned n = 0; n < send_count; n++)
		free(sends[n].data);
	free(sends);
	send_count = 0;
	free(receives);
	free(pieces);
}

/* MPI_Improbe: a message that was kept is taken by a search, or there is none. */
static void probe_and_take(void)
{
	const unsigned from = (rank + ranks - 1) % ranks;
	uint8_t *data = malloc(EAGER), *got = malloc(EAGER);
	struct receive receive = {.data = got};
	ptl_me_t me = receive_entry(&receive, map[from], BITS(9), 0, NULL, 0, 0);
	struct send one;

	pattern_fill(data, 5000, rank);
	send_count = 1;
	sends = &one;
	send_begin(&one, (rank + 1) % ranks, 9, data, 5000);
	while (!receive.done) {
		receive.event.type = PTL_EVENT_LINK;
		check_ok(PtlMESearch(ni, data_portal, &me, PTL_SEARCH_DELETE, &receive));
		while (!receive.done && receive.event.type == PTL_EVENT_LINK)
			poll_both();
		check(receive.done || receive.event.ni_fail_type == PTL_NI_NO_MATCH);
	}
	check(receive.bytes == 5000);
	pattern_check(got, 5000, from);
	/* it was deleted */
	receive.event.type = PTL_EVENT_LINK;
	receive.done = false;
	check_ok(PtlMESearch(ni, data_portal, &me, PTL_SEARCH_ONLY, &receive));
	while (receive.event.type == PTL_EVENT_LINK)
		poll_both();
	check(receive.event.ni_fail_type == PTL_NI_NO_MATCH && !receive.done);
	while (!send_done(&one))
		poll_both();
	job_barrier();
	send_count = 0;
	free(data);
	free(got);
}

/* All send to rank 0 more than its queue holds, which looks at it only when some were refused. Who
 * has sent all still answers what rank 0 asks, until that has received all. */
static void overrun(void)
{
	struct receive *receives = calloc((size_t)BURST * (ranks - 1), sizeof(*receives));
	uint8_t *data = malloc((size_t)BURST * 16);
	bool refused = false;

	send_count = rank == 0 ? 0 : BURST;
	sends = calloc(BURST, sizeof(*sends));
	for (unsigned n = 0; n < send_count; n++) {
		pattern_fill(data + n * 16, 16, n * 16 + rank);
		send_begin(&sends[n], 0, rank << 16 | n, data + n * 16, 16);
	}
	while (rank == 0 ? pauses == 0 : !refused) {
		if (rank == 0)
			poll_both();
		for (unsigned n = 0; n < send_count; n++)
			refused |= sends[n].refused || resent > 0;
		if (rank != 0)
			origin_poll();
	}
	for (unsigned n = 0; n < BURST * (ranks - 1) && rank == 0; n++) {
		const unsigned from = 1 + n % (ranks - 1), number = n / (ranks - 1);
		struct receive *receive = &receives[n];
		uint8_t got[16];
		ptl_me_t me;

		receive->data = got;
		me = receive_entry(receive, map[from], BITS((uint64_t)from << 16 | number), 0, got,
			sizeof(got), 0);
		receive_post(receive, &me);
		while (!receive->done)
			poll_both();
		check(receive->bytes == sizeof(got));
		pattern_check(got, sizeof(got), number * 16 + from);
	}
	for (unsigned n = 0; n < send_count; n++)
		while (!send_done(&sends[n]))
			poll_both();
	check(rank == 0 ? pauses > 0 : resent > 0);
	while (pausing || (rank != 0 && !all_received))
		poll_both();
	for (unsigned i = 1; i < ranks && rank == 0; i++)
		control_say(i, ALL_RECEIVED);
	for (unsigned i = 0; i < ranks; i++)
		check(!paused[i]);
	job_barrier();
	free(sends);
	free(receives);
	free(data);
	send_count = 0;
}

void client_nemesis(void)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i].bytes = malloc(BLOCK_BYTES);
		check(blocks[i].bytes);
	}
	interface_open();
	portals_open(LIMIT);
	exchange();
	probe_and_take();
	portals_close();
	portals_open(SMALL_QUEUE);
	overrun();
	portals_close();
	check_ok(PtlNIFini(ni));
	check_ok(PtlNIFini(ni));
	PtlFini();
	for (unsigned i = 0; i < BLOCKS; i++)
		free(blocks[i].bytes);
}
