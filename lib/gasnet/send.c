/* SPDX-License-Identifier: BSD-3-Clause */
/* send.c - requests and replies leave: shares, slots, the bytes of a message.
 *
 * Match bits, from the top: 1 (a message), 1 request, 2 bits kind, 5 bits number of arguments, 8
 * bits handler, 47 bits length of the payload. Bytes: the arguments; of a medium the payload, at a
 * multiple of 16 from the start; of a packed long 8 bytes of address and the payload. Header data:
 * in the low half a number that both parts of a long have, above it the credits that a reply gives
 * back.
 */
#include "state.h"

#include "wire.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS  512u
#define WAITED ((uintptr_t)1) /* of a SEND event's user_ptr: it is a flag, else a slot */
#define SLEEP  1u             /* ms */
#define LOOKS  64u            /* for a SEND event before sleeping */

struct peer {
	uint64_t used;     /* credits that requests have taken */
	uint64_t returned; /* of these: by replies */
	uint64_t owed;     /* the peer's credits, whose requests had no reply here */
	uint64_t told;     /* of these: the last sum that the peer was told */
};

struct slot {
	uint8_t bytes[MESSAGE_MAX] __attribute__((aligned(PAYLOAD_ALIGN)));
};

LOCK(tell_lock); /* peers' told, and the order of sums */
LOCK(slot_lock); /* idle, idle_count */
static struct peer *peers;
static volatile uint64_t *released; /* by rank: written by its puts (G2) */
static struct slot *slots;
static struct slot *idle[SLOTS];
static unsigned idle_count;
static uint32_t operations; /* numbers of long messages */

void send_open(void)
{
	ptl_me_t shares = {
		.length = gasnet.size * sizeof(*released),
		.ct_handle = PTL_CT_NONE,
		.uid = gasnet.uid,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE,
		.match_id = {.rank = PTL_RANK_ANY},
	};
	ptl_handle_me_t entry;
	ptl_pt_index_t index;

	peers = calloc(gasnet.size, sizeof(*peers));
	released = calloc(gasnet.size, sizeof(*released));
	slots = aligned_alloc(PAYLOAD_ALIGN, SLOTS * sizeof(*slots));
	if (!peers || !released || !slots)
		fatal("there is no memory for %u ranks: start fewer on this host", gasnet.size);
	while (idle_count < SLOTS) {
		idle[idle_count] = &slots[idle_count];
		idle_count++;
	}
	shares.start = (void *)(uintptr_t)released;
	must(PtlPTAlloc(gasnet.ni, 0, PTL_EQ_NONE, PORTAL_SHARES, &index));
	must(PtlMEAppend(gasnet.ni, PORTAL_SHARES, &shares, PTL_PRIORITY_LIST, NULL, &entry));
}

/* --- shares (G1, G2). Sums only grow, so what is read late makes a rank wait and never send. */

static uint64_t sum_read(const volatile uint64_t *sum)
{
	return __atomic_load_n(sum, __ATOMIC_RELAXED);
}

/* Returns the new sum. */
static uint64_t sum_add(uint64_t *sum, uint64_t number)
{
#ifdef GASNET_SEQ
	return *sum += number;
#else
	return __atomic_add_fetch(sum, number, __ATOMIC_ACQ_REL);
#endif
}

/* Returns false if *sum is no longer `from`, which is set to what it is. */
static bool sum_change(uint64_t *sum, uint64_t *from, uint64_t to)
{
#ifdef GASNET_SEQ
	(void)from;
	*sum = to;
	return true;
#else
	return __atomic_compare_exchange_n(sum, from, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

static bool share_fits(uint32_t rank, unsigned credits)
{
	struct peer *peer = &peers[rank];
	uint64_t used = sum_read(&peer->used);

	do {
		uint64_t back =
			sum_read(&peer->returned) + sum_read(&released[rank]) + ring_released(rank);

		/* If others took credits since, and gave them back, this wraps, and is tried
		 * again. */
		if (used + credits - back > gasnet.share)
			return false;
	} while (!sum_change(&peer->used, &used, used + credits));
	return true;
}

static void share_take(uint32_t rank, unsigned credits)
{
	unsigned tries = 0;

	while (!share_fits(rank, credits))
		wait_turn(&tries);
}

void share_return(uint32_t rank, unsigned credits)
{
	struct peer *peer = &peers[rank];

	/* It gives back what a request took before. */
	if (sum_add(&peer->returned, credits) > sum_read(&peer->used))
		nonsense(rank);
}

/* Whether a sum is by half a share more than the peer knows. Another thread may have told it a
 * later one. */
static bool worth_telling(const struct peer *peer, uint64_t sum)
{
	return (int64_t)(sum - sum_read(&peer->told)) >= (int64_t)(gasnet.share / 2);
}

static void sum_tell(struct peer *peer, uint32_t rank)
{
	uint64_t sum;

	lock(tell_lock);
	sum = sum_read(&peer->owed);
	if (worth_telling(peer, sum)) {
		__atomic_store_n(&peer->told, sum, __ATOMIC_RELAXED);
		must(PtlPut(gasnet.small, (ptl_size_t)(uintptr_t)&sum, sizeof(sum), PTL_NO_ACK_REQ,
			(ptl_process_t){.rank = rank}, PORTAL_SHARES, 0,
			gasnet.rank * sizeof(*released), NULL, 0));
	}
	unlock(tell_lock);
}

void share_release(uint32_t rank, unsigned credits)
{
	struct peer *peer = &peers[rank];

	if (worth_telling(peer, sum_add(&peer->owed, credits)))
		sum_tell(peer, rank);
}

/* --- SEND events and slots */

static void slot_give(struct slot *slot)
{
	lock(slot_lock);
	idle[idle_count++] = slot;
	unlock(slot_lock);
}

void sent_take(const ptl_event_t *event)
{
	uintptr_t which = (uintptr_t)event->user_ptr;

	if (event->ni_fail_type != PTL_NI_OK) {
		exit_await();
		fatal("a message to another rank failed: %s",
			PtlToStr(event->ni_fail_type, PTL_STR_FAIL_TYPE));
	}
	if (event->type != PTL_EVENT_SEND || which == 0)
		return;
	if (which & WAITED)
		__atomic_store_n((int *)(which & ~WAITED), 1, __ATOMIC_RELEASE);
	else
		slot_give((struct slot *)which);
}

bool sent_collect(void)
{
	ptl_event_t event;
	bool any = false;
	int code;

	while ((code = PtlEQGet(gasnet.sent, &event)) == PTL_OK) {
		sent_take(&event);
		any = true;
	}
	if (code != PTL_EQ_EMPTY)
		must_be(code, "PtlEQGet(sent)");
	return any;
}

/* G6. Waits for a SEND event, of a reply too. */
static void sent_wait(unsigned *tries)
{
	ptl_event_t event;
	unsigned which;

	exit_look();
	if (sent_collect()) {
		*tries = 0;
		return;
	}
	if (++*tries < LOOKS)
		return;
	if (PtlEQPoll(&gasnet.sent, 1, SLEEP, &event, &which) == PTL_OK)
		sent_take(&event);
}

static struct slot *slot_take(void)
{
	unsigned tries = 0;

	for (;;) {
		struct slot *slot = NULL;
		bool low;

		lock(slot_lock);
		if (idle_count > 0)
			slot = idle[--idle_count];
		low = idle_count < SLOTS / 2;
		unlock(slot_lock);
		if (low)
			(void)sent_collect();
		if (slot)
			return slot;
		sent_wait(&tries);
	}
}

/* --- messages */

static ptl_process_t target_of(const struct outgoing *out)
{
	return (ptl_process_t){.rank = out->to};
}

static ptl_match_bits_t bits_of(const struct outgoing *out)
{
	return wire_bits(out->request, out->kind, out->count, out->handler,
		out->kind == KIND_MEDIUM || out->kind == KIND_LONG_PACKED ? out->length : 0);
}

/* Puts the bytes of a message, and sends them. `room` is its size. */
static void message_put(const struct outgoing *out, size_t size, uint32_t number)
{
	uint8_t small[SMALL_MAX];
	struct slot *slot = size > sizeof(small) ? slot_take() : NULL;
	uint8_t *bytes = slot ? slot->bytes : small;
	uint64_t address = (uintptr_t)out->destination;
	size_t head = wire_head(out->kind, out->count);

	memcpy(bytes, out->arguments, out->count * sizeof(*out->arguments));
	if (out->kind == KIND_LONG_PACKED)
		memcpy(bytes + head - sizeof(address), &address, sizeof(address));
	if (out->kind == KIND_MEDIUM || out->kind == KIND_LONG_PACKED) {
		if (out->length > 0)
			memcpy(bytes + head, out->source, out->length);
	}
	must(PtlPut(slot ? gasnet.counted : gasnet.small, (ptl_size_t)(uintptr_t)bytes, size,
		PTL_NO_ACK_REQ, target_of(out), PORTAL_MESSAGES, bits_of(out), 0, slot,
		(ptl_hdr_data_t)out->credits << 32 | number));
}

static size_t size_of(const struct outgoing *out)
{
	bool payload = out->kind == KIND_MEDIUM || out->kind == KIND_LONG_PACKED;

	return wire_padded(wire_head(out->kind, out->count) + (payload ? out->length : 0));
}

/* A long in two messages. Returns when the source may be changed, unless it is async. */
static void long_put(const struct outgoing *out)
{
	uint32_t number = __atomic_add_fetch(&operations, 1, __ATOMIC_RELAXED);
	uintptr_t start = (uintptr_t)gasnet.ranks[out->to].address;
	int done = 0;
	unsigned tries = 0;

	must(PtlPut(gasnet.counted, (ptl_size_t)(uintptr_t)out->source, out->length, PTL_NO_ACK_REQ,
		target_of(out), PORTAL_DATA, 0, (uintptr_t)out->destination - start,
		out->async ? NULL : (void *)((uintptr_t)&done | WAITED), number));
	message_put(out, size_of(out), number);
	while (!out->async && !__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		if (out->request) {
			(void)sent_collect();
			if (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
				wait_turn(&tries);
		} else {
			sent_wait(&tries);
		}
	}
}

/* R3. A request waits for room in a ring, as it does for its share; a reply does not. */
static bool ring_leave(const struct outgoing *out)
{
	void *there = out->kind >= KIND_LONG ? near(out->to, out->destination) : NULL;
	unsigned tries = 0;

	if (!ring_is_open(out->to) || (out->kind == KIND_LONG && !there))
		return false;
	if (there && out->length > 0)
		memmove(there, out->source, out->length);
	while (!ring_put(out, there)) {
		if (!out->request || !ring_is_open(out->to))
			return false;
		wait_turn(&tries);
	}
	return true;
}

static void message_leave(const struct outgoing *out)
{
	if (ring_leave(out))
		return;
	if (out->kind == KIND_LONG)
		long_put(out);
	else
		message_put(out, size_of(out), 0);
}

/* To the rank itself: the handler runs in the call, on a copy of a medium's payload. */
static void message_loop(const struct outgoing *out)
{
	struct message message;

	message.from = gasnet.rank;
	message.kind = (uint8_t)(out->kind == KIND_LONG_PACKED ? KIND_LONG : out->kind);
	message.handler = out->handler;
	message.count = (uint8_t)out->count;
	message.request = out->request;
	message.ring = false;
	message.credits = 0;
	message.length = out->length;
	message.payload = out->kind == KIND_MEDIUM ? message.bytes : out->destination;
	memcpy(message.arguments, out->arguments, out->count * sizeof(*out->arguments));
	if (out->length > 0)
		memmove(message.payload, out->source, out->length);
	message_handle(&message);
}

/* Completes what the callers have set. Returns GASNET_OK or GASNET_ERR_BAD_ARG. */
static int prepare(struct outgoing *out, int kind)
{
	size_t arguments = out->count * sizeof(*out->arguments);

	if (out->count > ARGUMENTS_MAX || kind < 0 || kind > 3)
		return GASNET_ERR_BAD_ARG;
	out->kind = kind > (int)KIND_LONG ? KIND_LONG : (enum kind)kind;
	out->async = kind > (int)KIND_LONG;
	if (out->length > (out->kind == KIND_LONG ? LONG_MAX : MEDIUM_MAX))
		return GASNET_ERR_BAD_ARG;
	if (out->kind == KIND_LONG) {
		segment_check("a long message", out->to, out->destination, out->length);
		if (arguments + sizeof(uint64_t) + out->length <= MESSAGE_MAX)
			out->kind = KIND_LONG_PACKED;
	}
	return GASNET_OK;
}

int gasnet_postern_request(gasnet_node_t dest, int kind, gasnet_handler_t handler,
	const void *source, size_t nbytes, void *dest_addr, unsigned count,
	const gasnet_handlerarg_t *arguments)
{
	struct outgoing out = {.to = dest,
		.request = true,
		.handler = handler,
		.source = source,
		.length = nbytes,
		.destination = dest_addr,
		.count = count,
		.arguments = arguments};

	if (gasnet.stage != STAGE_ATTACHED)
		return GASNET_ERR_NOT_INIT;
	if (dest >= gasnet.size || prepare(&out, kind) != GASNET_OK)
		return GASNET_ERR_BAD_ARG;
	call_look("gasnet_AMRequest");
	exit_look();
	if (dest == gasnet.rank) {
		message_loop(&out);
		return GASNET_OK;
	}
	share_take(dest, wire_credits(out.kind));
	message_leave(&out);
	return GASNET_OK;
}

int gasnet_postern_reply(gasnet_token_t token, int kind, gasnet_handler_t handler,
	const void *source, size_t nbytes, void *dest_addr, unsigned count,
	const gasnet_handlerarg_t *arguments)
{
	struct token *from = token;
	struct outgoing out = {.request = false,
		.handler = handler,
		.source = source,
		.length = nbytes,
		.destination = dest_addr,
		.count = count,
		.arguments = arguments};

	if (gasnet.stage != STAGE_ATTACHED)
		return GASNET_ERR_NOT_INIT;
	if (!from || !from->request || from->replied)
		return GASNET_ERR_BAD_ARG;
	out.to = from->from;
	out.credits = from->credits;
	if (prepare(&out, kind) != GASNET_OK)
		return GASNET_ERR_BAD_ARG;
	if (gasnet.debug)
		call_refuse("gasnet_AMReply", true);
	from->replied = true;
	if (out.to == gasnet.rank)
		message_loop(&out);
	else
		message_leave(&out);
	return GASNET_OK;
}

/* --- with the number of arguments as an argument */

#define LISTED(call)                                                                               \
	do {                                                                                       \
		gasnet_handlerarg_t list[ARGUMENTS_MAX] = {0};                                     \
		va_list rest;                                                                      \
		if (numargs < 0 || numargs > (int)ARGUMENTS_MAX)                                   \
			return GASNET_ERR_BAD_ARG;                                                 \
		va_start(rest, numargs);                                                           \
		for (int i = 0; i < numargs; i++)                                                  \
			list[i] = va_arg(rest, gasnet_handlerarg_t);                               \
		va_end(rest);                                                                      \
		return call;                                                                       \
	} while (0)

int gasnet_AMRequestShort(gasnet_node_t dest, gasnet_handler_t handler, int numargs, ...)
{
	LISTED(gasnet_postern_request(dest, 0, handler, NULL, 0, NULL, (unsigned)numargs, list));
}

int gasnet_AMRequestMedium(
	gasnet_node_t dest, gasnet_handler_t handler, void *source, size_t nbytes, int numargs, ...)
{
	LISTED(gasnet_postern_request(
		dest, 1, handler, source, nbytes, NULL, (unsigned)numargs, list));
}

int gasnet_AMRequestLong(gasnet_node_t dest, gasnet_handler_t handler, void *source, size_t nbytes,
	void *dest_addr, int numargs, ...)
{
	LISTED(gasnet_postern_request(
		dest, 2, handler, source, nbytes, dest_addr, (unsigned)numargs, list));
}

int gasnet_AMRequestLongAsync(gasnet_node_t dest, gasnet_handler_t handler, void *source,
	size_t nbytes, void *dest_addr, int numargs, ...)
{
	LISTED(gasnet_postern_request(
		dest, 3, handler, source, nbytes, dest_addr, (unsigned)numargs, list));
}

int gasnet_AMReplyShort(gasnet_token_t token, gasnet_handler_t handler, int numargs, ...)
{
	LISTED(gasnet_postern_reply(token, 0, handler, NULL, 0, NULL, (unsigned)numargs, list));
}

int gasnet_AMReplyMedium(gasnet_token_t token, gasnet_handler_t handler, void *source,
	size_t nbytes, int numargs, ...)
{
	LISTED(gasnet_postern_reply(
		token, 1, handler, source, nbytes, NULL, (unsigned)numargs, list));
}

int gasnet_AMReplyLong(gasnet_token_t token, gasnet_handler_t handler, void *source, size_t nbytes,
	void *dest_addr, int numargs, ...)
{
	LISTED(gasnet_postern_reply(
		token, 2, handler, source, nbytes, dest_addr, (unsigned)numargs, list));
}

size_t gasnet_AMMaxArgs(void)
{
	return ARGUMENTS_MAX;
}

size_t gasnet_AMMaxMedium(void)
{
	return MEDIUM_MAX;
}

size_t gasnet_AMMaxLongRequest(void)
{
	return LONG_MAX;
}

size_t gasnet_AMMaxLongReply(void)
{
	return LONG_MAX;
}
