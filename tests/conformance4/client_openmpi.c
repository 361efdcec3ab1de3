/* SPDX-License-Identifier: BSD-3-Clause */
/* client_openmpi.c - as Open MPI's mtl and osc components for Portals 4: a physical matching
 * interface, portals 12 and 13 for messages, 4 for windows. scripts/clients runs the components
 * themselves.
 *
 * A short message is put and acknowledged. A long one goes to an entry of no bytes unless its
 * receive was posted, and is then got from portal 13. Unexpected short messages fill overflow
 * blocks, which are appended again when they are free.
 */
#include "clients.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_PORTAL 12
#define READ_PORTAL    13
#define WINDOW_PORTAL  4

#define SHORT_MAX   2048
#define BLOCKS      4
#define BLOCK_BYTES 65536
#define MESSAGES    200
#define MOST        70000 /* bytes of a message */
#define ADDITIONS   300

#define PROTOCOL_SHORT ((ptl_match_bits_t)1 << 60)
#define PROTOCOL_LONG  ((ptl_match_bits_t)2 << 60)
#define PROTOCOL       ((ptl_match_bits_t)15 << 60)

enum request_kind { SEND, RECEIVE, PROBE, BLOCK };

/* What an event's user_ptr points to. */
struct request {
	enum request_kind kind;
	bool done, found;
	uint8_t *data;
	size_t bytes;
	ptl_handle_me_t entry;
	/* of a send */
	bool sent, acknowledged, gotten, is_long, unexpected;
	/* of a receive or a probe */
	bool linked;
	ptl_process_t from;
	ptl_match_bits_t bits;
};

static ptl_handle_ni_t ni;
static ptl_handle_eq_t send_eq, receive_eq;
static ptl_handle_md_t md, window_md;
static ptl_handle_ct_t window_ct;
static ptl_handle_me_t long_entry, window_entry;
static ptl_uid_t uid;
static ptl_process_t map[RANKS_MAX];
static struct request blocks[BLOCKS];
static uint64_t long_number; /* the header data of a long message, which its get names */
static struct {
	_Atomic int64_t sum, lock, guarded;
} window;

static ptl_me_t me_of(void *start, ptl_size_t length, unsigned options, ptl_match_bits_t bits,
	ptl_match_bits_t ignored)
{
	return (ptl_me_t){.start = start,
		.length = length,
		.ct_handle = PTL_CT_NONE,
		.uid = uid,
		.options = options,
		.match_id = ANYONE,
		.match_bits = bits,
		.ignore_bits = ignored};
}

static void block_append(struct request *block)
{
	ptl_me_t me = me_of(block->data, BLOCK_BYTES,
		PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_MANAGE_LOCAL |
			PTL_ME_EVENT_COMM_DISABLE | PTL_ME_MAY_ALIGN,
		PROTOCOL_SHORT, ~PROTOCOL);

	me.min_free = SHORT_MAX;
	check_ok(PtlMEAppend(ni, MESSAGE_PORTAL, &me, PTL_OVERFLOW_LIST, block, &block->entry));
}

static void interface_open(void)
{
	const ptl_md_t memory = {.length = PTL_SIZE_MAX, .ct_handle = PTL_CT_NONE};
	ptl_md_t own = memory;
	ptl_ni_limits_t limits;
	ptl_process_t self;
	ptl_pt_index_t index;
	ptl_me_t me;

	check_ok(PtlInit());
	check_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL,
		&limits, &ni));
	check_ok(PtlGetUid(ni, &uid));
	check_ok(PtlGetPhysId(ni, &self));
	check_ok(PtlEQAlloc(ni, 1024, &send_eq));
	check_ok(PtlEQAlloc(ni, 8192, &receive_eq));
	check_ok(PtlPTAlloc(ni, PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_FLOWCTRL,
		receive_eq, MESSAGE_PORTAL, &index));
	check(index == MESSAGE_PORTAL);
	check_ok(PtlPTAlloc(
		ni, PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE, send_eq, READ_PORTAL, &index));
	check(index == READ_PORTAL);
	own.eq_handle = send_eq;
	check_ok(PtlMDBind(ni, &own, &md));
	me = me_of(NULL, 0,
		PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
			PTL_ME_EVENT_UNLINK_DISABLE,
		PROTOCOL_LONG, ~PROTOCOL);
	check_ok(PtlMEAppend(ni, MESSAGE_PORTAL, &me, PTL_OVERFLOW_LIST, NULL, &long_entry));
	for (unsigned i = 0; i < BLOCKS; i++)
		block_append(&blocks[i]);
	job_map(self, map);
}

/* --- messages */

static void send_event(struct request *send, const ptl_event_t *event)
{
	check(event->ni_fail_type == PTL_NI_OK);
	if (event->type == PTL_EVENT_SEND) {
		check(!send->sent);
		send->sent = true;
	} else if (event->type == PTL_EVENT_ACK) {
		check(!send->acknowledged);
		send->acknowledged = true;
		send->unexpected = event->ptl_list == PTL_OVERFLOW_LIST;
		check(send->unexpected && send->is_long ? event->mlength == 0
							: event->mlength == send->bytes);
		if (send->is_long && !send->unexpected)
			check_ok(PtlMEUnlink(send->entry));
	} else {
		check(event->type == PTL_EVENT_GET && !send->gotten && send->is_long);
		check(event->mlength == send->bytes);
		send->gotten = true;
	}
	send->done = send->sent && send->acknowledged &&
		     (!send->is_long || !send->unexpected || send->gotten);
}

static void receive_event(struct request *receive, const ptl_event_t *event)
{
	check(event->ni_fail_type == PTL_NI_OK);
	receive->linked = true;
	if (event->type == PTL_EVENT_LINK)
		return;
	if (event->type == PTL_EVENT_REPLY) {
		check(event->mlength == receive->bytes);
		receive->done = true;
		return;
	}
	receive->bytes = event->rlength;
	receive->from = event->initiator;
	receive->bits = event->match_bits;
	if (event->type == PTL_EVENT_PUT) {
		check(event->mlength == event->rlength && event->start == receive->data);
		receive->done = true;
		return;
	}
	check(event->type == PTL_EVENT_PUT_OVERFLOW);
	if ((event->match_bits & PROTOCOL) == PROTOCOL_LONG) {
		check(event->mlength == 0);
		check_ok(PtlGet(md, (ptl_size_t)(uintptr_t)receive->data, event->rlength,
			event->initiator, READ_PORTAL, event->hdr_data, 0, receive));
		return;
	}
	check(event->mlength == event->rlength);
	memcpy(receive->data, event->start, event->mlength);
	receive->done = true;
}

static void progress(void)
{
	const ptl_handle_eq_t queues[] = {send_eq, receive_eq};
	ptl_event_t event;

	for (unsigned i = 0; i < COUNT(queues);) {
		int code = PtlEQGet(queues[i], &event);
		struct request *request = event.user_ptr;

		if (code == PTL_EQ_EMPTY) {
			i++;
			continue;
		}
		check_ok(code);
		if (request->kind == SEND) {
			send_event(request, &event);
		} else if (request->kind == RECEIVE) {
			receive_event(request, &event);
		} else if (request->kind == PROBE) {
			check(event.type == PTL_EVENT_SEARCH && !request->done);
			request->done = true;
			request->found = event.ni_fail_type == PTL_NI_OK;
			request->bytes = event.rlength;
			request->from = event.initiator;
			request->bits = event.match_bits;
		} else if (event.type == PTL_EVENT_AUTO_FREE) {
			block_append(request);
		} else {
			check(event.type == PTL_EVENT_AUTO_UNLINK);
		}
	}
	sched_yield();
}

static void send_begin(struct request *send, unsigned target, uint64_t tag)
{
	uint64_t number = 0;

	send->kind = SEND;
	send->is_long = send->bytes > SHORT_MAX;
	if (send->is_long) {
		ptl_me_t me = me_of(send->data, send->bytes,
			PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
				PTL_ME_EVENT_UNLINK_DISABLE,
			number = ++long_number, 0);

		me.match_id = map[target];
		check_ok(PtlMEAppend(ni, READ_PORTAL, &me, PTL_PRIORITY_LIST, send, &send->entry));
	}
	check_ok(PtlPut(md, (ptl_size_t)(uintptr_t)send->data, send->bytes, PTL_ACK_REQ,
		map[target], MESSAGE_PORTAL,
		(send->is_long ? PROTOCOL_LONG : PROTOCOL_SHORT) | (uint64_t)rank << 24 | tag, 0,
		send, number));
}

/* from: a rank, or ANYBODY. A receive that may become a get is linked before the call returns. */
#define ANYBODY RANKS_MAX
static void receive_begin(struct request *receive, unsigned from, uint64_t tag, size_t room)
{
	const bool any = from == ANYBODY;
	ptl_me_t me = me_of(receive->data, room,
		PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE |
			(room <= SHORT_MAX ? PTL_ME_EVENT_LINK_DISABLE : 0),
		(any ? 0 : (uint64_t)from << 24) | tag,
		PROTOCOL | (any ? (ptl_match_bits_t)0xff << 24 : 0));

	receive->kind = RECEIVE;
	if (!any)
		me.match_id = map[from];
	check_ok(PtlMEAppend(ni, MESSAGE_PORTAL, &me, PTL_PRIORITY_LIST, receive, &receive->entry));
	while (room > SHORT_MAX && !receive->linked)
		progress();
}

static void probe(struct request *probe, unsigned from, uint64_t tag)
{
	ptl_me_t me = me_of(
		NULL, 0, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, (uint64_t)from << 24 | tag, PROTOCOL);

	*probe = (struct request){.kind = PROBE};
	me.match_id = map[from];
	check_ok(PtlMESearch(ni, MESSAGE_PORTAL, &me, PTL_SEARCH_ONLY, probe));
	while (!probe->done)
		progress();
}

static size_t bytes_of(unsigned tag)
{
	return tag % 4 == 3 ? SHORT_MAX + tag * 331u % (MOST - SHORT_MAX) : tag * 97u % SHORT_MAX;
}

/* Half of the receives are posted first, some for anybody; the others find what has come. */
static void messages(void)
{
	const unsigned target = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	struct request *requests = calloc(2 * MESSAGES, sizeof(*requests));
	struct request *receives = requests + MESSAGES, found;

	check(requests);
	for (unsigned n = 0; n < MESSAGES; n++) {
		requests[n].data = malloc(MOST);
		requests[n].bytes = bytes_of(n);
		receives[n].data = malloc(MOST);
		check(requests[n].data && receives[n].data);
		pattern_fill(requests[n].data, bytes_of(n), n * 16 + rank);
		if (n % 2 == 0)
			receive_begin(&receives[n], n % 3 == 0 ? ANYBODY : from, n, MOST);
	}
	job_barrier();
	for (unsigned n = 0; n < MESSAGES; n++)
		send_begin(&requests[n], target, n);
	do
		probe(&found, from, MESSAGES - 1);
	while (!found.found);
	check(found.bytes == bytes_of(MESSAGES - 1) && found.from.phys.pid == map[from].phys.pid);
	for (unsigned n = MESSAGES - 1; n < MESSAGES; n -= 2)
		receive_begin(&receives[n], from, n, MOST);
	for (unsigned n = 0; n < MESSAGES; n++) {
		while (!requests[n].done || !receives[n].done)
			progress();
		check(receives[n].bytes == bytes_of(n));
		pattern_check(receives[n].data, bytes_of(n), n * 16 + from);
		check(requests[n].unexpected == (n % 2 != 0));
	}
	probe(&found, from, MESSAGES - 1);
	check(!found.found);
	/* a receive that nothing has come for is cancelled */
	receives[0].linked = false;
	receive_begin(&receives[0], from, MESSAGES, MOST);
	check_ok(PtlMEUnlink(receives[0].entry));
	job_barrier();
	for (unsigned n = 0; n < MESSAGES; n++) {
		free(requests[n].data);
		free(receives[n].data);
	}
	free(requests);
}

/* --- windows */

static ptl_size_t at(const void *variable)
{
	return (ptl_size_t)((uintptr_t)variable - (uintptr_t)&window);
}

static ptl_size_t operations; /* that the counter must reach */

static void operations_wait(void)
{
	ptl_ct_event_t event;

	check_ok(PtlCTWait(window_ct, operations, &event));
	check(event.success == operations && event.failure == 0);
}

static int64_t compare_and_swap(_Atomic int64_t *variable, int64_t compare, int64_t value)
{
	int64_t old = -1;

	check_ok(PtlSwap(window_md, (ptl_size_t)(uintptr_t)&old, window_md,
		(ptl_size_t)(uintptr_t)&value, sizeof(value), map[0], WINDOW_PORTAL, 1,
		at(variable), NULL, 0, &compare, PTL_CSWAP, PTL_INT64_T));
	operations++;
	operations_wait();
	return old;
}

/* Rank 0's window: the target logs the entry's link, though it logs no success. */
static void window_open(void)
{
	const ptl_md_t memory = {.length = PTL_SIZE_MAX,
		.options =
			PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK,
		.eq_handle = send_eq};
	ptl_md_t own = memory;
	ptl_pt_index_t index;
	ptl_event_t event;
	ptl_me_t me = me_of(&window, sizeof(window),
		PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_NO_TRUNCATE | PTL_ME_EVENT_SUCCESS_DISABLE,
		1, 0);

	check_ok(PtlCTAlloc(ni, &window_ct));
	own.ct_handle = window_ct;
	check_ok(PtlMDBind(ni, &own, &window_md));
	check_ok(PtlPTAlloc(ni, 0, send_eq, WINDOW_PORTAL, &index));
	check(index == WINDOW_PORTAL);
	check_ok(PtlMEAppend(ni, WINDOW_PORTAL, &me, PTL_PRIORITY_LIST, &window, &window_entry));
	check_ok(PtlEQWait(send_eq, &event));
	check(event.type == PTL_EVENT_LINK && event.user_ptr == &window);
	job_barrier();
}

static void windows(void)
{
	ptl_event_t event;

	window_open();
	for (unsigned n = 0; n < ADDITIONS; n++) {
		int64_t one = 1, value = 0;

		check_ok(PtlAtomic(window_md, (ptl_size_t)(uintptr_t)&one, sizeof(one), PTL_ACK_REQ,
			map[0], WINDOW_PORTAL, 1, at(&window.sum), NULL, 0, PTL_SUM, PTL_INT64_T));
		operations++;
		operations_wait();
		if (n % 10 != 0)
			continue;
		while (compare_and_swap(&window.lock, 0, rank + 1) != 0)
			sched_yield();
		check_ok(PtlGet(window_md, (ptl_size_t)(uintptr_t)&value, sizeof(value), map[0],
			WINDOW_PORTAL, 1, at(&window.guarded), NULL));
		operations++;
		operations_wait();
		value++;
		check_ok(PtlPut(window_md, (ptl_size_t)(uintptr_t)&value, sizeof(value),
			PTL_ACK_REQ, map[0], WINDOW_PORTAL, 1, at(&window.guarded), NULL, 0));
		operations++;
		operations_wait();
		check(compare_and_swap(&window.lock, rank + 1, 0) == rank + 1);
	}
	job_barrier();
	check(PtlEQGet(send_eq, &event) == PTL_EQ_EMPTY);
	if (rank == 0) {
		PtlAtomicSync();
		check(atomic_load(&window.sum) == (int64_t)ADDITIONS * ranks);
		check(atomic_load(&window.guarded) == (int64_t)(ADDITIONS / 10) * ranks);
	}
	entry_unlink(PtlMEUnlink, window_entry);
	check_ok(PtlMDRelease(window_md));
	check_ok(PtlCTFree(window_ct));
	check_ok(PtlPTFree(ni, WINDOW_PORTAL));
}

void client_openmpi(void)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i] = (struct request){.kind = BLOCK, .data = malloc(BLOCK_BYTES)};
		check(blocks[i].data);
	}
	interface_open();
	messages();
	windows();
	for (unsigned i = 0; i < BLOCKS; i++)
		entry_unlink(PtlMEUnlink, blocks[i].entry);
	entry_unlink(PtlMEUnlink, long_entry);
	check_ok(PtlMDRelease(md));
	check_ok(PtlPTFree(ni, MESSAGE_PORTAL));
	check_ok(PtlPTFree(ni, READ_PORTAL));
	check_ok(PtlEQFree(send_eq));
	check_ok(PtlEQFree(receive_eq));
	check_ok(PtlNIFini(ni));
	PtlFini();
	for (unsigned i = 0; i < BLOCKS; i++)
		free(blocks[i].data);
}
