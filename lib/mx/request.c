/* SPDX-License-Identifier: BSD-3-Clause */
/* request.c - requests: where they live, sends, receives, cancel, forget. */
#include <mx/state.h>

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include <base/clock.h>
#include <base/pages.h>

#define AGAIN   (10 * MILLISECOND) /* at least, between looks at a deadline that has come */
#define LOOKS   256                /* at them, of a call; the next one goes on */
#define LIFE_AT 12 /* in generations: each life of an endpoint begins with other ones */

struct request *request_slot_make(struct mx_endpoint *endpoint)
{
	struct request *request = request_at(endpoint, endpoint->request_count);
	unsigned batch = 0;

	if (!request) {
		uint64_t count;

		while (batch < REQUEST_BATCHES && endpoint->batches[batch])
			batch++;
		if (batch == REQUEST_BATCHES)
			return NULL;
		count = (UINT64_C(2) << (REQUEST_BATCH_BITS + batch)) - (1u << REQUEST_BATCH_BITS);
		if (endpoint->requests.count < count &&
			!kept_table_grow(&endpoint->requests, (uint32_t)count))
			return NULL;
		endpoint->batches[batch] = pages_map_root(REQUEST_BATCH_BYTES(batch));
		request = request_at(endpoint, endpoint->request_count);
		if (!request)
			return NULL;
	}
	request->handle =
		(uint64_t)atomic_load(&endpoint->generation) << (REQUEST_GENERATION_AT + LIFE_AT) |
		(uint64_t)endpoint->slot << REQUEST_SLOT_AT | kept_take(&endpoint->requests);
	assert(request_index(request) == endpoint->request_count);
	endpoint->request_count++;
	return request;
}

void request_complete(struct request *request, mx_status_code_t code)
{
	struct mx_endpoint *endpoint = request->endpoint;

	request->done = true;
	request->status.code = code;
	if (request->kind == REQUEST_RECEIVE) {
		request->status.match_info = request->transfer.bits;
		request->status.msg_length = length_told(request->transfer.whole);
		request->status.xfer_length = (uint32_t)request->transfer.length;
	}
	endpoint_wake(endpoint);
	if (request->owned)
		return;
	if (request->forgotten) {
		request_give(request);
		return;
	}
	list_append(&endpoint->ended, &request->link);
}

/* X4. Most requests are asked for by their handles and never come here. */
static void ended_enter(struct mx_endpoint *endpoint)
{
	list_each (struct request, request, &endpoint->ended, link) {
		const struct match_key key = {.bits = request->status.match_info};

		link_remove(&request->link);
		kept_add(&endpoint->requests, &endpoint->searched, request_index(request), &key);
		request->searched = true;
	}
}

struct request *request_ended(struct mx_endpoint *endpoint, uint64_t bits, uint64_t mask)
{
	const struct match_entry any = {
		.bits = bits, .ignore = ~mask, .nid = MATCH_ANY, .pid = MATCH_ANY};
	uint32_t index;

	ended_enter(endpoint);
	index = kept_first(&endpoint->requests, &endpoint->searched, &any);
	return index == KEPT_NONE ? NULL : request_at(endpoint, index);
}

void request_time(struct request *request, uint64_t time)
{
	struct mx_endpoint *endpoint = request->endpoint;

	if (timer_set(&request->timer)) {
		wheel_stop(&request->timer);
		endpoint->timed--;
	}
	if (time == 0)
		return;
	request->deadline = library_now() + time;
	wheel_set(endpoint->timers, &request->timer, request->deadline);
	endpoint->timed++;
}

bool request_is_late(const struct request *request, uint64_t now)
{
	return timer_set(&request->timer) && now >= request->deadline;
}

/* X6. The longer its deadline has passed, the longer it can wait. */
static void request_look_again(struct request *request, uint64_t now)
{
	uint64_t pause = (now - request->deadline) / 4;

	pause = pause < AGAIN ? AGAIN : pause > SECOND ? SECOND : pause;
	wheel_set(request->endpoint->timers, &request->timer, now + pause);
	request->endpoint->timed++;
}

/* X6 */
void requests_progress(struct mx_endpoint *endpoint)
{
	struct wheel *timers = endpoint->timers;
	bool resumes = !list_empty(&timers->running);
	unsigned looks = LOOKS;
	const uint64_t now = library_now();
	struct timer *timer;

	if (!resumes && !wheel_is_due(timers, now))
		return;
	if (!resumes)
		wheel_advance(timers, now);
	while (looks-- != 0 && (timer = wheel_take(timers))) {
		struct request *request =
			(struct request *)(void *)((char *)timer - offsetof(struct request, timer));

		endpoint->timed--;
		if (request->done)
			continue;
		if (request->kind == REQUEST_CONNECT)
			connect_end(endpoint, request, MX_STATUS_TIMEOUT);
		else if (messages_abandon(endpoint->messages, &request->transfer))
			request_complete(request, MX_STATUS_TIMEOUT);
		else
			request_look_again(request, now);
	}
}

/* X4. It is forgotten: at once if it has ended. */
void request_forget(struct request *request)
{
	if (request->done)
		request_give(request);
	else
		request->forgotten = true;
}

/* Why it has not got all. */
static mx_status_code_t request_failure(
	const struct mx_endpoint *endpoint, const struct request *request)
{
	const mx_status_code_t code = endpoint->sessions[request->transfer.peer].code;

	if (request->transfer.result == TRANSFER_CUT)
		return MX_STATUS_TRUNCATED;
	if (request->transfer.result == TRANSFER_WITHDRAWN)
		return MX_STATUS_BAD_RDMAWIN;
	if (request_is_late(request, library_now()))
		return MX_STATUS_TIMEOUT;
	return code == MX_STATUS_SUCCESS ? MX_STATUS_ENDPOINT_UNREACHABLE : code;
}

void request_done(void *owner, struct transfer *message)
{
	struct mx_endpoint *endpoint = owner;
	struct request *request = (struct request *)(void *)message;

	if (request->kind == REQUEST_RECEIVE)
		request->status.source = endpoint->sessions[message->peer].address;
	request_complete(request, message->result == TRANSFER_DONE
					  ? MX_STATUS_SUCCESS
					  : request_failure(endpoint, request));
}

void requests_close(struct mx_endpoint *endpoint)
{
	for (uint32_t i = 0; i < endpoint->request_count; i++)
		free(request_at(endpoint, i)->vector);
	for (unsigned i = 0; i < REQUEST_BATCHES; i++) {
		pages_unmap_root(endpoint->batches[i], REQUEST_BATCH_BYTES(i));
		endpoint->batches[i] = NULL;
	}
	endpoint->request_count = 0;
	endpoint->free = NULL;
	kept_list_clear(&endpoint->searched);
	kept_table_free(&endpoint->requests);
}

/* --- memory */

/* What a call's segments are. */
struct memory {
	void *buffer; /* of one piece */
	uint64_t length;
	struct map_vector *vector; /* NULL: one piece, or nothing */
};

static mx_return_t memory_read_all(
	const mx_segment_t *segments, uint32_t count, struct memory *memory)
{
	uint32_t pieces = 0;

	*memory = (struct memory){0};
	if (count > MX_MAX_SEGMENTS)
		return MX_BAD_SEG_CNT;
	if (!segments && count != 0)
		return MX_BAD_SEG_LIST;
	for (uint32_t i = 0; i < count; i++) {
		if (segments[i].segment_length == 0)
			continue;
		if (!segments[i].segment_ptr)
			return MX_BAD_SEG_MEM;
		if (pieces++ == 0)
			memory->buffer = segments[i].segment_ptr;
		memory->length += segments[i].segment_length;
	}
	if (memory->length > UINT32_MAX)
		return MX_BAD_SEG_MEM;
	if (pieces < 2)
		return MX_SUCCESS;
	memory->vector = malloc(map_vector_size(pieces));
	if (!memory->vector)
		return MX_NO_RESOURCES;
	memory->vector->count = 0;
	for (uint32_t i = 0; i < count; i++)
		map_vector_add(memory->vector, segments[i].segment_ptr, segments[i].segment_length);
	return MX_SUCCESS;
}

static inline mx_return_t memory_read(
	const mx_segment_t *segments, uint32_t count, struct memory *memory)
{
	if (count != 1 || !segments || segments->segment_length == 0 || !segments->segment_ptr)
		return memory_read_all(segments, count, memory);
	memory->buffer = segments->segment_ptr;
	memory->length = segments->segment_length;
	memory->vector = NULL;
	return MX_SUCCESS;
}

static const char *memory_text(mx_return_t code)
{
	switch (code) {
	case MX_BAD_SEG_CNT:
		return "there are more than MX_MAX_SEGMENTS segments; pack some of them";
	case MX_BAD_SEG_LIST:
		return "the list of segments is NULL and its count is not 0; give the list";
	case MX_BAD_SEG_MEM:
		return "a segment that has bytes is at NULL, or all have 2^32 bytes or more";
	default:
		return "there is not enough memory; end other programs";
	}
}

/* A request with its memory; NULL: *code. */
static inline struct request *request_make(struct mx_endpoint *endpoint, enum request_kind kind,
	const mx_segment_t *segments, uint32_t count, uint64_t match_info, void *context,
	struct memory *memory, mx_return_t *code)
{
	struct request *request;

	*code = memory_read(segments, count, memory);
	if (*code != MX_SUCCESS)
		return NULL;
	request = request_take(endpoint, kind, match_info, context);
	if (!request) {
		free(memory->vector);
		*code = MX_NO_RESOURCES;
		return NULL;
	}
	request->vector = memory->vector;
	return request;
}

static void request_hand_over(struct request *request, mx_request_t *handle)
{
	if (handle)
		*handle = request_handle(request);
	else
		request_forget(request);
}

/* --- sends */

static inline mx_return_t request_send(struct mx_endpoint *endpoint, const mx_segment_t *segments,
	uint32_t count, mx_endpoint_addr_t destination, uint64_t match_info, void *context,
	mx_request_t *handle, bool synchronous, const char *name)
{
	struct request *request;
	struct send_wish wish;
	struct memory memory;
	mx_return_t code;
	uint32_t session;

	if (!endpoint_enter(endpoint, name, &code))
		return code;
	request = request_make(
		endpoint, REQUEST_SEND, segments, count, match_info, context, &memory, &code);
	if (!request)
		return endpoint_fail(endpoint, code, name, memory_text(code));
	session = session_to(endpoint, destination);
	wish = (struct send_wish){.bits = match_info,
		.buffer = memory.buffer,
		.length = memory.length,
		.vector = memory.vector,
		.synchronous = synchronous};
	request->status.source = destination;
	request->status.msg_length = request->status.xfer_length = (uint32_t)memory.length;
	if (session == SESSION_NONE)
		request_complete(request, MX_STATUS_BAD_SESSION);
	else if (messages_inject(endpoint->messages, session, &wish))
		request_complete(request, MX_STATUS_SUCCESS);
	else
		messages_send(endpoint->messages, &request->transfer, session, &wish);
	if (!request->done)
		request_limit(request, endpoint->request_timeout);
	request_hand_over(request, handle);
	if (endpoint->unexpected)
		endpoint_progress(endpoint);
	return endpoint_leave(endpoint);
}

mx_return_t mx_isend(mx_endpoint_t endpoint, mx_segment_t *segments_list, uint32_t segments_count,
	mx_endpoint_addr_t destination, uint64_t match_info, void *context, mx_request_t *request)
{
	return request_send(endpoint, segments_list, segments_count, destination, match_info,
		context, request, false, "mx_isend");
}

mx_return_t mx_issend(mx_endpoint_t endpoint, mx_segment_t *segments_list, uint32_t segments_count,
	mx_endpoint_addr_t destination, uint64_t match_info, void *context, mx_request_t *request)
{
	return request_send(endpoint, segments_list, segments_count, destination, match_info,
		context, request, true, "mx_issend");
}

/* --- receives */

mx_return_t mx_irecv(mx_endpoint_t endpoint, mx_segment_t *segments_list, uint32_t segments_count,
	uint64_t match_info, uint64_t match_mask, void *context, mx_request_t *request)
{
	static const char name[] = "mx_irecv";
	struct receive_wish wish;
	struct request *receive;
	struct memory memory;
	uint64_t context_mask;
	mx_return_t code;

	if (!endpoint_enter(endpoint, name, &code))
		return code;
	if ((match_info & ~match_mask) != 0)
		return endpoint_fail(endpoint, MX_BAD_MATCH_MASK, name,
			"match_info has a bit that match_mask has not; clear it");
	context_mask = ((UINT64_C(1) << endpoint->context_bits) - 1) << endpoint->context_shift;
	if (endpoint->context_bits != 0 && (match_mask & context_mask) != context_mask)
		return endpoint_fail(endpoint, MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK, name,
			"match_mask leaves out a bit of the context id; set all of them");
	receive = request_make(endpoint, REQUEST_RECEIVE, segments_list, segments_count, match_info,
		context, &memory, &code);
	if (!receive)
		return endpoint_fail(endpoint, code, name, memory_text(code));
	receive->status.source = (mx_endpoint_addr_t){{0}}; /* nobody's, if its time is over */
	request_hand_over(receive, request);
	request_limit(receive, endpoint->request_timeout);
	wish = (struct receive_wish){.peer = PEER_ANY,
		.bits = match_info,
		.ignore = ~match_mask,
		.buffer = memory.buffer,
		.room = memory.length,
		.vector = memory.vector};
	messages_receive_wish(endpoint->messages, &receive->transfer, &wish);
	if (endpoint->unexpected)
		endpoint_progress(endpoint);
	return endpoint_leave(endpoint);
}

const char no_request[] = "this is no request of the endpoint that is pending";

mx_return_t mx_cancel(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result)
{
	static const char name[] = "mx_cancel";
	struct request *cancelled;
	struct held held;
	mx_return_t code;

	*result = 0;
	if (!endpoint_enter(endpoint, name, &code))
		return code;
	cancelled = request_of(endpoint, request);
	if (!cancelled)
		return endpoint_fail(endpoint, MX_BAD_REQUEST, name, no_request);
	if (cancelled->kind == REQUEST_SEND)
		return endpoint_fail(endpoint, MX_CANCEL_NOT_SUPPORTED, name,
			"a send cannot be cancelled; wait for it");
	held = request_hold(cancelled);
	endpoint_progress(endpoint);
	if (held_is_gone(&held))
		return endpoint_fail(endpoint, MX_BAD_REQUEST, name, no_request);
	if (cancelled->done) {
		*result = 0;
	} else if (cancelled->kind == REQUEST_CONNECT) {
		link_remove(&cancelled->link);
		*result = 1;
	} else {
		*result = messages_cancel(endpoint->messages, &cancelled->transfer);
	}
	if (*result) {
		request_give(cancelled);
		*request = NULL;
	}
	return endpoint_leave(endpoint);
}

mx_return_t mx_forget(mx_endpoint_t endpoint, mx_request_t *request)
{
	struct request *forgotten;
	mx_return_t code;

	if (!endpoint_enter(endpoint, "mx_forget", &code))
		return code;
	forgotten = request_of(endpoint, request);
	if (!forgotten)
		return endpoint_fail(endpoint, MX_BAD_REQUEST, "mx_forget", no_request);
	request_forget(forgotten);
	*request = NULL;
	return endpoint_leave(endpoint);
}

mx_return_t mx_set_request_timeout(
	mx_endpoint_t endpoint, mx_request_t request, uint32_t milliseconds)
{
	const uint64_t time = milliseconds == MX_INFINITE ? 0 : milliseconds * MILLISECOND;
	struct request *timed;
	mx_return_t code;

	if (!endpoint_enter(endpoint, "mx_set_request_timeout", &code))
		return code;
	timed = request ? request_of(endpoint, &request) : NULL;
	if (request && !timed)
		return endpoint_fail(
			endpoint, MX_BAD_REQUEST, "mx_set_request_timeout", no_request);
	if (!request)
		endpoint->request_timeout = time;
	else if (!timed->done)
		request_limit(timed, time);
	return endpoint_leave(endpoint);
}

/* A synchronous send of few bytes has been copied to a slot when it has left the waiting line. */
static bool buffered_look(void *context)
{
	const struct held *held = context;
	const struct request *request = held->request;

	return held_is_gone(held) || request->done ||
	       (request->transfer.length <= COPY_SEND_MAX && !link_listed(&request->transfer.link));
}

static mx_return_t send_buffered(struct mx_endpoint *endpoint, mx_request_t *request, bool blocks,
	uint32_t timeout, uint32_t *result, const char *name)
{
	const struct request *send;
	struct held held;
	mx_return_t code;

	*result = 0;
	if (!(blocks ? endpoint_enter_blocking : endpoint_enter)(endpoint, name, &code))
		return code;
	send = request_of(endpoint, request);
	if (!send || send->kind != REQUEST_SEND)
		return endpoint_fail(endpoint, MX_BAD_REQUEST, name, no_request);
	held = request_hold(send);
	if (blocks) {
		*result = endpoint_block(endpoint, buffered_look, &held, timeout, 0);
	} else {
		endpoint_progress(endpoint);
		*result = buffered_look(&held);
	}
	return endpoint_leave(endpoint);
}

mx_return_t mx_ibuffered(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result)
{
	return send_buffered(endpoint, request, false, 0, result, "mx_ibuffered");
}

mx_return_t mx_buffered(
	mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout, uint32_t *result)
{
	return send_buffered(endpoint, request, true, timeout, result, "mx_buffered");
}

mx_return_t mx_context(mx_request_t *request, void **context)
{
	const struct mx_endpoint *endpoint =
		request ? endpoint_at((uint8_t)((uintptr_t)*request >> REQUEST_SLOT_AT)) : NULL;
	const struct request *found = endpoint ? request_of(endpoint, request) : NULL;

	if (!found)
		return error_raise(NULL, MX_BAD_REQUEST, "mx_context", "%s", no_request);
	*context = found->status.context;
	return MX_SUCCESS;
}

static const char no_remote[] = "memory of peers cannot be read or written; send a message";

mx_return_t mx_iput(mx_endpoint_t endpoint, void *local, uint32_t length,
	mx_endpoint_addr_t destination, uint64_t remote, void *context, mx_request_t *request)
{
	(void)local;
	(void)length;
	(void)destination;
	(void)remote;
	(void)context;
	(void)request;
	return endpoint_refuse(endpoint, "mx_iput", no_remote);
}

mx_return_t mx_iget(mx_endpoint_t endpoint, void *local, uint32_t length,
	mx_endpoint_addr_t destination, uint64_t remote, void *context, mx_request_t *request)
{
	(void)local;
	(void)length;
	(void)destination;
	(void)remote;
	(void)context;
	(void)request;
	return endpoint_refuse(endpoint, "mx_iget", no_remote);
}
