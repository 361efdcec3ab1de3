/* SPDX-License-Identifier: BSD-3-Clause */
/* client_gasnet.c - as GASNet's portals4-conduit: a logical matching interface for active messages
 * and a logical non-matching one for puts and gets, in one process.
 *
 * Active messages are packed into blocks on the priority list, which are appended again when they
 * are full. The portal has flow control: a refused message is sent again after a pause, and the
 * portal is enabled from inside the loop that drains its queue.
 */
#include "clients.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define AM_PORTAL  4
#define RMA_PORTAL 5

#define BLOCKS      4
#define BLOCK_BYTES 16384
#define MEDIUM_MAX  2048
#define AM_QUEUE    32 /* events: so few that flow control is at work */
#define AM_ROUNDS   600
#define LONG_ROUNDS 40
#define LONG_BYTES  50000
#define SEGMENT     (1u << 20)
#define RMA_ROUNDS  200
#define RMA_MAX     (SEGMENT / RANKS_MAX)
#define LONG_DATA   ((ptl_match_bits_t)1 << 63) /* else an active message */
#define NBYTES      ((ptl_match_bits_t)0xffffffff)
#define SENDS       64 /* active messages that are not acknowledged yet */

struct block {
	ptl_handle_me_t entry;
	uint8_t bytes[BLOCK_BYTES];
};

struct send {
	bool busy, refused;
	unsigned target;
	ptl_match_bits_t bits;
	size_t bytes;
	uint8_t data[MEDIUM_MAX];
};

static ptl_handle_ni_t am_ni, rma_ni;
static ptl_handle_eq_t am_eq, send_eq, rma_eq;
static ptl_handle_ct_t am_ct;
static ptl_handle_md_t send_md, rma_md;
static ptl_handle_me_t long_entry;
static ptl_handle_le_t rma_entry;
static struct block blocks[BLOCKS];
static struct send sends[SENDS];
static unsigned in_flight, refusals, disablings;
static uint64_t counted; /* PUT events of active messages, which the counter counts as well */
static unsigned expected[RANKS_MAX], received[RANKS_MAX], long_done[RANKS_MAX];
static uint8_t *segment, *landing;

static void block_append(struct block *block)
{
	const ptl_me_t me = {
		.start = block->bytes,
		.length = BLOCK_BYTES,
		.ct_handle = am_ct,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_MANAGE_LOCAL |
			   PTL_ME_MAY_ALIGN | PTL_ME_IS_ACCESSIBLE | PTL_ME_EVENT_LINK_DISABLE,
		.match_id = ANY_RANK,
		.ignore_bits = ~LONG_DATA,
		.min_free = MEDIUM_MAX,
	};

	check_ok(PtlMEAppend(am_ni, AM_PORTAL, &me, PTL_PRIORITY_LIST, block, &block->entry));
}

/* The data of long messages: an entry of all memory, whose address is the offset. */
static void long_append(void)
{
	const ptl_me_t me = {
		.length = PTL_SIZE_MAX,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
		.match_id = ANY_RANK,
		.match_bits = LONG_DATA,
		.ignore_bits = ~LONG_DATA,
	};

	check_ok(PtlMEAppend(am_ni, AM_PORTAL, &me, PTL_PRIORITY_LIST, NULL, &long_entry));
}

static void rma_append(void)
{
	const ptl_le_t le = {
		.length = PTL_SIZE_MAX,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_LE_OP_PUT | PTL_LE_OP_GET | PTL_LE_EVENT_COMM_DISABLE |
			   PTL_LE_EVENT_LINK_DISABLE,
	};

	check_ok(PtlLEAppend(rma_ni, RMA_PORTAL, &le, PTL_PRIORITY_LIST, NULL, &rma_entry));
}

static ptl_handle_md_t md_bind(ptl_handle_ni_t ni, ptl_handle_eq_t eq)
{
	const ptl_md_t md = {.length = PTL_SIZE_MAX,
		.options = PTL_MD_EVENT_SEND_DISABLE,
		.eq_handle = eq,
		.ct_handle = PTL_CT_NONE};
	ptl_handle_md_t handle;

	check_ok(PtlMDBind(ni, &md, &handle));
	return handle;
}

/* Both interfaces are one process's, and each has a map: the second one may be told that it has. */
static void interfaces_open(void)
{
	ptl_process_t self, map[RANKS_MAX], id;
	ptl_pt_index_t index;
	int code;

	check_ok(PtlInit());
	check_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY,
		NULL, NULL, &rma_ni));
	check_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL,
		NULL, &am_ni));
	check(rma_ni != am_ni);
	check_ok(PtlGetPhysId(rma_ni, &self));
	job_map(self, map);
	check_ok(PtlSetMap(rma_ni, ranks, map));
	code = PtlSetMap(am_ni, ranks, map);
	check(code == PTL_OK || code == PTL_IGNORED);
	check_ok(PtlGetId(am_ni, &id));
	check(id.rank == rank);

	check_ok(PtlEQAlloc(rma_ni, 8192, &rma_eq));
	check_ok(PtlPTAlloc(rma_ni, 0, rma_eq, RMA_PORTAL, &index));
	check(index == RMA_PORTAL);
	check_ok(PtlEQAlloc(am_ni, AM_QUEUE, &am_eq));
	check_ok(PtlEQAlloc(am_ni, 8192, &send_eq));
	check_ok(PtlCTAlloc(am_ni, &am_ct));
	check_ok(PtlPTAlloc(am_ni, PTL_PT_FLOWCTRL, am_eq, AM_PORTAL, &index));
	check(index == AM_PORTAL);
	rma_md = md_bind(rma_ni, rma_eq);
	send_md = md_bind(am_ni, send_eq);
	rma_append();
	long_append();
	for (unsigned i = 0; i < BLOCKS; i++)
		block_append(&blocks[i]);
	job_barrier();
}

static void send_put(struct send *send)
{
	send->busy = true;
	send->refused = false;
	check_ok(PtlPut(send_md, (ptl_size_t)(uintptr_t)send->data, send->bytes, PTL_ACK_REQ,
		(ptl_process_t){.rank = send->target}, AM_PORTAL, send->bits, 0, send, rank));
}

/* An acknowledgement of an active message, or of a long one's data. */
static void sent(const ptl_event_t *event)
{
	struct send *send = event->user_ptr;

	check(event->type == PTL_EVENT_ACK);
	if (event->ni_fail_type == PTL_NI_PT_DISABLED) {
		refusals++;
		send->refused = true;
		return;
	}
	check(event->ni_fail_type == PTL_NI_OK && event->mlength == send->bytes);
	send->busy = false;
	in_flight--;
}

/* Where a long message of a rank lands. Each has a place of its own, because the next one may be
 * here before this one's event was looked at. */
static uint8_t *long_place(uint8_t *first, unsigned from, unsigned number)
{
	return first + ((size_t)from * LONG_ROUNDS + number) * LONG_BYTES;
}

static void handle_message(const ptl_event_t *event)
{
	unsigned from = (unsigned)event->hdr_data;
	unsigned number;

	check(event->initiator.rank == from && from < ranks);
	if (event->match_bits & LONG_DATA) {
		check(event->mlength == LONG_BYTES);
		check((uint8_t *)event->start == long_place(landing, from, long_done[from]));
		pattern_check(event->start, LONG_BYTES, (uint32_t)(event->match_bits & NBYTES));
		long_done[from]++;
		return;
	}
	counted++;
	memcpy(&number, event->start, sizeof(number));
	check(event->mlength == (event->match_bits & NBYTES) && number == expected[from]);
	pattern_check((uint8_t *)event->start + sizeof(number), event->mlength - sizeof(number),
		number * 16 + from);
	/* A message that was refused comes again, behind those that were sent meanwhile: so a rank
	 * has one on its way to each peer. */
	expected[from]++;
	received[from]++;
}

static void received_drain(void)
{
	ptl_event_t event;
	int code;

	while ((code = PtlEQGet(am_eq, &event)) != PTL_EQ_EMPTY) {
		check(code == PTL_OK); /* nothing is lost with flow control */
		if (event.type == PTL_EVENT_PUT) {
			handle_message(&event);
		} else if (event.type == PTL_EVENT_AUTO_UNLINK) {
			block_append(event.user_ptr);
		} else {
			check(event.type == PTL_EVENT_PT_DISABLED);
			disablings++;
			check_ok(PtlPTEnable(am_ni, AM_PORTAL));
		}
	}
}

static void sends_drain(void)
{
	ptl_event_t event;

	while (PtlEQGet(send_eq, &event) == PTL_OK)
		sent(&event);
	for (unsigned i = 0; i < SENDS; i++)
		if (sends[i].busy && sends[i].refused)
			send_put(&sends[i]);
}

static void poll_both(void)
{
	sends_drain();
	received_drain();
}

/* An idle slot for a message to the target, to which nothing is on its way. */
static struct send *send_idle(unsigned target)
{
	while (sends[target].busy) {
		poll_both();
		sched_yield();
	}
	return &sends[target];
}

/* Short and medium messages from all to all, which look into their queues seldom. */
static void active_messages(void)
{
	for (unsigned n = 0; n < AM_ROUNDS; n++) {
		for (unsigned step = 0; step < ranks; step++) {
			unsigned target = (rank + step) % ranks;
			struct send *send = send_idle(target);

			send->target = target;
			send->bytes = sizeof(n) + n * 37 % (MEDIUM_MAX - sizeof(n) - 8);
			send->bits = send->bytes;
			memcpy(send->data, &n, sizeof(n));
			pattern_fill(
				send->data + sizeof(n), send->bytes - sizeof(n), n * 16 + rank);
			in_flight++;
			send_put(send);
		}
	}
	for (unsigned from = 0; from < ranks; from++)
		while (received[from] < AM_ROUNDS || in_flight > 0) {
			poll_both();
			sched_yield();
		}
}

/* A burst that nobody looks at until it has been refused: what was refused is sent again. */
static void overrun(void)
{
	ptl_ct_event_t count;

	job_barrier();
	for (unsigned n = 0; n < SENDS && rank != 0; n++) {
		struct send *send = &sends[n];

		send->target = 0;
		send->bytes = sizeof(n);
		send->bits = LONG_DATA >> 1 | send->bytes;
		in_flight++;
		send_put(send);
	}
	while (in_flight > 0 && refusals == 0 && rank != 0) {
		ptl_event_t event;

		if (PtlEQGet(send_eq, &event) == PTL_OK)
			sent(&event);
	}
	check(rank == 0 || refusals > 0);
	job_barrier();
	if (rank == 0) {
		unsigned came = 0;

		while (came < SENDS * (ranks - 1)) {
			ptl_event_t event;
			int code = PtlEQGet(am_eq, &event);

			if (code == PTL_EQ_EMPTY) {
				sched_yield();
				continue;
			}
			check(code == PTL_OK);
			if (event.type == PTL_EVENT_PUT) {
				check(event.match_bits & LONG_DATA >> 1);
				came++;
				counted++;
			} else if (event.type == PTL_EVENT_AUTO_UNLINK) {
				block_append(event.user_ptr);
			} else {
				check(event.type == PTL_EVENT_PT_DISABLED);
				disablings++;
				check_ok(PtlPTEnable(am_ni, AM_PORTAL));
			}
		}
		check(disablings > 0);
	}
	while (in_flight > 0) {
		sends_drain();
		sched_yield();
	}
	job_barrier();
	check_ok(PtlCTGet(am_ct, &count));
	check(count.success == counted && count.failure == 0);
}

/* The data goes to its address, and is announced by its own event. */
static void long_messages(void)
{
	const unsigned target = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	uint8_t *data = malloc(LONG_BYTES), *lands;
	ptl_process_t where = {
		.phys = {(ptl_nid_t)((uintptr_t)landing >> 32), (ptl_pid_t)(uintptr_t)landing}};
	ptl_process_t all[RANKS_MAX];

	job_map(where, all); /* an address has two halves as well */
	lands = (uint8_t *)((uintptr_t)all[target].phys.nid << 32 | all[target].phys.pid);
	for (unsigned n = 0; n < LONG_ROUNDS; n++) {
		struct send *send = send_idle(target);

		pattern_fill(data, LONG_BYTES, n * 7 + rank);
		send->busy = true;
		send->bytes = LONG_BYTES;
		in_flight++;
		do {
			send->refused = false;
			check_ok(PtlPut(send_md, (ptl_size_t)(uintptr_t)data, LONG_BYTES,
				PTL_ACK_REQ, (ptl_process_t){.rank = target}, AM_PORTAL,
				LONG_DATA | (n * 7 + rank),
				(ptl_size_t)(uintptr_t)long_place(lands, rank, n), send, rank));
			while (send->busy && !send->refused) {
				ptl_event_t event;

				if (PtlEQGet(send_eq, &event) == PTL_OK)
					sent(&event);
				received_drain();
				sched_yield();
			}
		} while (send->refused);
	}
	while (long_done[from] < LONG_ROUNDS) {
		received_drain();
		sched_yield();
	}
	job_barrier();
	free(data);
}

/* Puts and gets between addresses of all memory; each ends in one event. */
static void puts_and_gets(void)
{
	const ptl_process_t target = {.rank = (rank + 1) % ranks};
	uint8_t *data = malloc(RMA_MAX), *back = malloc(RMA_MAX);
	ptl_process_t where = {
		.phys = {(ptl_nid_t)((uintptr_t)segment >> 32), (ptl_pid_t)(uintptr_t)segment}};
	ptl_process_t all[RANKS_MAX];
	ptl_event_t event;
	ptl_size_t there;

	job_map(where, all);
	there = ((ptl_size_t)all[target.rank].phys.nid << 32 | all[target.rank].phys.pid) +
		(ptl_size_t)rank * RMA_MAX;
	for (unsigned n = 0; n < RMA_ROUNDS; n++) {
		size_t bytes = (size_t)n * 977 % RMA_MAX;

		pattern_fill(data, bytes, n + rank);
		check_ok(PtlPut(rma_md, (ptl_size_t)(uintptr_t)data, bytes, PTL_ACK_REQ, target,
			RMA_PORTAL, 0, there, data, 0));
		check_ok(PtlEQWait(rma_eq, &event));
		check(event.type == PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_OK);
		check(event.user_ptr == data && event.mlength == bytes);
		check_ok(PtlGet(rma_md, (ptl_size_t)(uintptr_t)back, bytes, target, RMA_PORTAL, 0,
			there, back));
		check_ok(PtlEQWait(rma_eq, &event));
		check(event.type == PTL_EVENT_REPLY && event.ni_fail_type == PTL_NI_OK);
		check(event.user_ptr == back && event.mlength == bytes);
		pattern_check(back, bytes, n + rank);
	}
	check(PtlEQGet(rma_eq, &event) == PTL_EQ_EMPTY); /* the target's side logs nothing */
	job_barrier();
	free(data);
	free(back);
}

void client_gasnet(void)
{
	segment = calloc(1, SEGMENT);
	landing = calloc((size_t)RANKS_MAX * LONG_ROUNDS, LONG_BYTES);
	check(segment && landing);
	interfaces_open();
	active_messages();
	overrun();
	long_messages();
	puts_and_gets();
	entry_unlink(PtlMEUnlink, long_entry);
	entry_unlink(PtlLEUnlink, rma_entry);
	check_ok(PtlMDRelease(rma_md));
	check_ok(PtlMDRelease(send_md));
	check_ok(PtlNIFini(am_ni));
	check_ok(PtlNIFini(rma_ni));
	PtlFini();
	free(segment);
	free(landing);
}
