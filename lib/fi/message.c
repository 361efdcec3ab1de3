/* SPDX-License-Identifier: BSD-3-Clause */
/* message.c - sends and receives, tagged and not: the two classes of lib/messages. */
#include <fi/remote.h>

#include <stdlib.h>

enum { CLASS_TAGGED, CLASS_PLAIN };

/* What a call asks for. */
struct post {
	uint8_t class;
	uint64_t tag, ignore;
	const struct iovec *iov;
	size_t count;
	fi_addr_t peer; /* to, or from */
	void *context;
	uint64_t data, flags;
	bool quiet; /* fi_inject() */
};

#define RECEIVE_FLAGS (FI_COMPLETION | FI_MORE | LEVELS)
#define SEARCH_FLAGS  (FI_PEEK | FI_CLAIM | FI_DISCARD)

/* --- operations */

static uint64_t class_flag(uint8_t class)
{
	return class == CLASS_TAGGED ? FI_TAGGED : FI_MSG;
}

/* One more that is free, if there is memory. */
static void operation_make(struct endpoint *endpoint)
{
	struct operation *operation = malloc(sizeof(*operation));

	if (!operation)
		return;
	*operation = (struct operation){
		.endpoint = endpoint, .made = endpoint->made, .next = endpoint->free};
	endpoint->made = endpoint->free = operation;
}

/* F1. Takes one that is free, with a place for its completion. way: FI_SEND or FI_RECV. It calls
 * nothing, and so saves no registers. */
static inline __attribute__((always_inline)) struct operation *operation_try(
	struct endpoint *endpoint, const struct post *post, uint64_t way)
{
	const bool sends = way == FI_SEND;
	const struct binding *binding = sends ? &endpoint->tx : &endpoint->rx;
	uint32_t *under_way = sends ? &endpoint->sending : &endpoint->receiving;
	struct operation *operation = endpoint->free;

	if (!operation || *under_way == (sends ? endpoint->tx_size : endpoint->rx_size))
		return NULL;
	if (!post->quiet) {
		if (!cq_has_room(binding->cq))
			return NULL;
		binding->cq->promised++;
	}
	endpoint->free = operation->next;
	operation->context = post->context;
	operation->flags = class_flag(post->class) | way;
	operation->completes = !post->quiet && (!binding->selective || post->flags & FI_COMPLETION);
	operation->quiet = post->quiet;
	operation->from = PEER_ANY;
	list_append(&endpoint->pending, &operation->link);
	++*under_way;
	return operation;
}

/* Makes what was lacking. A program that tries again and again makes progress so. */
static __attribute__((noinline)) struct operation *operation_begin_late(
	struct endpoint *endpoint, const struct post *post, uint64_t way)
{
	struct cq *cq = way == FI_SEND ? endpoint->tx.cq : endpoint->rx.cq;
	struct operation *operation = NULL;

	for (unsigned tries = 0; !operation && tries < 2; tries++) {
		if (tries > 0)
			endpoint_progress(endpoint);
		if (!endpoint->free)
			operation_make(endpoint);
		if (!post->quiet && cq_promise(cq))
			cq_release(cq); /* there is room now */
		operation = operation_try(endpoint, post, way);
	}
	return operation;
}

static inline __attribute__((always_inline)) struct operation *operation_begin(
	struct endpoint *endpoint, const struct post *post, uint64_t way)
{
	struct operation *operation = operation_try(endpoint, post, way);

	return operation ? operation : operation_begin_late(endpoint, post, way);
}

static bool operation_sends(const struct operation *operation)
{
	return (operation->flags & FI_SEND) != 0;
}

static struct cq *operation_cq(const struct operation *operation)
{
	const struct endpoint *endpoint = operation->endpoint;

	return operation_sends(operation) ? endpoint->tx.cq : endpoint->rx.cq;
}

static struct counter *operation_counter(const struct operation *operation)
{
	return operation->endpoint->counts[operation_sends(operation) ? COUNT_SEND : COUNT_RECV]
		.counter;
}

/* It has ended, and its completion, if there is one, was written. */
static inline __attribute__((always_inline)) void operation_leave(
	struct operation *operation, bool sends)
{
	struct endpoint *endpoint = operation->endpoint;

	link_remove(&operation->link);
	if (sends)
		endpoint->sending--;
	else
		endpoint->receiving--;
	endpoint->directed -= operation->from != PEER_ANY;
	if (operation->many) {
		cq_release_many(endpoint->rx.cq, operation->places, operation->parts);
		free(operation->many);
		operation->many = NULL;
	}
	if (operation->vector) {
		free(operation->vector);
		operation->vector = NULL;
	}
	if (operation->copy) {
		free(operation->copy);
		operation->copy = NULL;
	}
	operation->next = endpoint->free;
	endpoint->free = operation;
}

static void operation_free(struct operation *operation)
{
	operation_leave(operation, operation_sends(operation));
}

/* An operation that was not posted goes. */
static void operation_drop(struct operation *operation)
{
	if (!operation->quiet)
		cq_release(operation_cq(operation));
	operation_free(operation);
}

/* Its line stands in the queue's place, unless it is quiet. */
static void operation_fail(struct operation *operation, const struct failure *failure)
{
	if (operation->quiet)
		WARN(EP_DATA, "a message of fi_inject() may not have arrived: %s\n",
			fi_strerror(failure->err));
	else
		cq_error(operation_cq(operation), failure);
	counter_ended(operation_counter(operation), true);
	operation_free(operation);
}

/* sends: as operation_sends() says, known here without a test. */
static inline __attribute__((always_inline)) void operation_complete(
	struct operation *operation, bool sends)
{
	const struct endpoint *endpoint = operation->endpoint;

	if (!sends || !operation->quiet)
		cq_end(sends ? endpoint->tx.cq : endpoint->rx.cq, operation->completes);
	counter_ended(endpoint->counts[sends ? COUNT_SEND : COUNT_RECV].counter, false);
	operation_leave(operation, sends);
}

/* The line of one that is not quiet, in its queue's place. */
static struct line *operation_line(const struct operation *operation)
{
	struct line *line = cq_place(operation_cq(operation));

	*line = (struct line){
		.entry = {.op_context = operation->context, .flags = operation->flags},
		.source = FI_ADDR_NOTAVAIL};
	return line;
}

bool messages_owe(const struct endpoint *endpoint, struct process to)
{
	list_each (const struct operation, operation, &endpoint->pending, link) {
		if (operation_sends(operation) &&
			process_same(endpoint->peers[operation->transfer.peer].process, to))
			return true;
	}
	return false;
}

void operations_mark(struct endpoint *endpoint)
{
	for (uint32_t i = 0; i < endpoint->peer_count; i++)
		endpoint->peers[i].named = false;
	list_each (const struct operation, operation, &endpoint->pending, link) {
		uint32_t peer =
			operation_sends(operation) ? operation->transfer.peer : operation->from;

		if (peer < endpoint->peer_count)
			endpoint->peers[peer].named = true;
	}
}

void operations_close(struct endpoint *endpoint)
{
	struct operation *operation;

	list_each (struct operation, pending, &endpoint->pending, link)
		operation_drop(pending);
	while ((operation = endpoint->made)) {
		endpoint->made = operation->made;
		free(operation);
	}
	endpoint->free = NULL;
}

/* --- ends */

static int failure_of(const struct endpoint *endpoint, uint32_t peer)
{
	return peer < endpoint->peer_count && endpoint->peers[peer].err != 0
		       ? endpoint->peers[peer].err
		       : FI_EIO;
}

static __attribute__((noinline)) void send_done(
	struct operation *operation, const struct transfer *transfer)
{
	const struct failure failure = {.err = failure_of(operation->endpoint, transfer->peer)};

	if (!operation->quiet)
		(void)operation_line(operation);
	if (transfer->result == TRANSFER_FAILED)
		operation_fail(operation, &failure);
	else
		operation_complete(operation, true);
}

/* What is known of a message, and of its sender. Returns false if the sender is to be known, and is
 * not. */
static bool line_fill(struct endpoint *endpoint, struct line *line, uint32_t peer, uint64_t tag,
	bool marked, uint64_t data)
{
	uint32_t index;

	if (line->entry.flags & FI_TAGGED)
		line->entry.tag = tag;
	if (marked) {
		line->entry.flags |= FI_REMOTE_CQ_DATA;
		line->entry.data = data;
	}
	if (!(endpoint->caps & FI_SOURCE))
		return true;
	index = peer_index(endpoint, peer);
	if (index == AV_NONE)
		return !(endpoint->caps & FI_SOURCE_ERR);
	line->source = endpoint->av->entries[index].user;
	return true;
}

/* What is said of a message that was received. Returns false if that is an error. */
static bool receive_tell(
	struct endpoint *endpoint, const struct transfer *transfer, struct line *line)
{
	const bool known = line_fill(
		endpoint, line, transfer->peer, transfer->bits, transfer->marked, transfer->data);

	line->entry.len = transfer->length;
	return known && transfer->result == TRANSFER_DONE;
}

/* Which error. */
static struct failure receive_failure(
	const struct endpoint *endpoint, const struct transfer *transfer)
{
	struct failure failure = {0};

	if (transfer->result == TRANSFER_FAILED) {
		failure.err = failure_of(endpoint, transfer->peer);
	} else if (transfer->result == TRANSFER_WITHDRAWN) {
		failure.err = FI_EIO;
	} else if (transfer->result == TRANSFER_CUT) {
		failure.err = FI_ETRUNC;
		failure.olen = transfer->whole - transfer->length;
	} else {
		failure.err = FI_EADDRNOTAVAIL;
		failure.has_address = true;
		failure.address = peer_address(endpoint, transfer->peer);
	}
	return failure;
}

/* Inline, message_done() would save more registers. */
static __attribute__((noinline)) void receive_fail(
	struct operation *operation, const struct transfer *transfer)
{
	const struct failure failure = receive_failure(operation->endpoint, transfer);

	operation_fail(operation, &failure);
}

static void receive_done(struct operation *operation, const struct transfer *transfer)
{
	struct endpoint *endpoint = operation->endpoint;
	struct line *line = operation_line(operation);

	line->entry.buf = operation->buffer;
	if (receive_tell(endpoint, transfer, line))
		operation_complete(operation, false);
	else
		receive_fail(operation, transfer);
}

/* FI_MULTI_RECV: one of the messages. */
void message_part(void *owner, struct transfer *many, const struct transfer *message)
{
	struct operation *operation = (struct operation *)(void *)many;
	struct cq *cq = operation_cq(operation);
	struct line *line = operation_line(operation);
	const bool received = receive_tell(owner, message, line);
	struct failure failure;

	line->entry.buf = message->buffer;
	operation->parts -= !received || operation->completes;
	if (!received) {
		failure = receive_failure(owner, message);
		cq_error(cq, &failure);
	} else if (operation->completes) {
		cq_tell(cq);
	}
	counter_ended(operation_counter(operation), !received);
}

/* The same: the program has its buffer again. */
static __attribute__((noinline)) void many_done(
	struct operation *operation, const struct transfer *transfer)
{
	const struct endpoint *endpoint = operation->endpoint;
	struct cq *cq = operation_cq(operation);
	struct failure failure = {.err = FI_ECANCELED};

	*cq_place(cq) = (struct line){.entry = {.op_context = operation->context,
					      .flags = FI_MULTI_RECV,
					      .buf = operation->buffer},
		.source = FI_ADDR_NOTAVAIL};
	if (operation->from != PEER_ANY && endpoint->peers[operation->from].err != 0)
		failure.err = endpoint->peers[operation->from].err;
	if (transfer->result == TRANSFER_WITHDRAWN) {
		operation_fail(operation, &failure);
		return;
	}
	cq_tell(cq);
	operation_free(operation);
}

void message_done(void *owner, struct transfer *transfer)
{
	struct operation *operation = (struct operation *)(void *)transfer;

	(void)owner;
	if (operation_sends(operation))
		send_done(operation, transfer);
	else if (operation->many)
		many_done(operation, transfer);
	else
		receive_done(operation, transfer);
}

static void receive_end(struct operation *operation, int err)
{
	(void)operation_line(operation);
	operation_fail(operation, &(const struct failure){.err = err});
}

void messages_end_from(struct endpoint *endpoint, uint32_t peer)
{
	list_each (struct operation, operation, &endpoint->pending, link)
		if (operation->from == peer &&
			messages_cancel(endpoint->messages, &operation->transfer))
			receive_end(operation, failure_of(endpoint, peer));
}

ssize_t message_cancel(fid_t fid, void *context)
{
	struct endpoint *endpoint = endpoint_of(fid);
	struct operation *found = NULL;
	bool known;

	domain_enter(endpoint->domain);
	list_each (struct operation, operation, &endpoint->pending, link)
		if (context && operation->context == context && (!found || operation_sends(found)))
			found = operation;
	if (found && messages_cancel(endpoint->messages, &found->transfer))
		receive_end(found, FI_ECANCELED);
	/* A read and a write go on. */
	known = found || (context && endpoint->remote && remote_knows(endpoint->remote, context));
	domain_leave(endpoint->domain);
	return known ? 0 : -FI_ENOENT;
}

/* --- memory */

/* What a call's pieces are. vector: of several; the operation's. */
struct memory {
	void *buffer;
	uint64_t length;
	struct map_vector *vector;
};

static __attribute__((noinline)) ssize_t memory_read_all(
	const struct post *post, struct memory *memory)
{
	int result;

	*memory = (struct memory){0};
	result = pieces_measure(post->iov, post->count, &memory->length);
	if (result != 0)
		return result;
	if (post->count > 0)
		memory->buffer = post->iov[0].iov_base;
	if (post->count > 1 && !(memory->vector = pieces_copy(post->iov, post->count)))
		return -FI_ENOMEM;
	return 0;
}

static inline ssize_t memory_read(const struct post *post, struct memory *memory)
{
	if (post->count != 1 || !post->iov || post->iov->iov_len > MESSAGE_MAX) {
		struct memory all; /* so that *memory may be in registers */
		const ssize_t result = memory_read_all(post, &all);

		*memory = all;
		return result;
	}
	*memory = (struct memory){.buffer = post->iov->iov_base, .length = post->iov->iov_len};
	return 0;
}

/* --- sends */

/* The program may use its memory again, and the send waits: it gets a copy. */
static ssize_t send_copy(
	struct operation *operation, const struct post *post, const struct memory *memory)
{
	struct endpoint *endpoint = operation->endpoint;

	operation->copy = malloc(memory->length + 1);
	if (!operation->copy) {
		if (!messages_abandon(endpoint->messages, &operation->transfer))
			return 0; /* it is with the poll core, which has a copy */
		operation_drop(operation);
		return -FI_ENOMEM;
	}
	pieces_gather(post->iov, post->count, operation->copy);
	(void)messages_move(&operation->transfer, operation->copy);
	return 0;
}

/* The message is gone, and nothing refers to it: its end is told at once. */
static void injected_tell(struct endpoint *endpoint, const struct post *post)
{
	struct cq *cq = endpoint->tx.cq;

	if (!post->quiet) {
		*cq_place(cq) = (struct line){.entry = {.op_context = post->context,
						      .flags = class_flag(post->class) | FI_SEND},
			.source = FI_ADDR_NOTAVAIL};
		cq_end(cq, !endpoint->tx.selective || post->flags & FI_COMPLETION);
	}
	counter_ended(endpoint->counts[COUNT_SEND].counter, false);
}

/* Most messages leave at once, and need no operation. Returns false for others. */
static bool send_inject(struct endpoint *endpoint, const struct post *post, uint32_t peer,
	const struct send_wish *wish)
{
	if (!post->quiet && !cq_promise(endpoint->tx.cq))
		return false;
	if (messages_inject(endpoint->messages, peer, wish)) {
		injected_tell(endpoint, post);
		return true;
	}
	if (!post->quiet)
		cq_release(endpoint->tx.cq);
	return false;
}

static ssize_t send_operate(struct endpoint *endpoint, const struct post *post, uint32_t peer,
	const struct send_wish *wish, const struct memory *memory)
{
	const bool inject = post->quiet || post->flags & FI_INJECT;
	struct operation *operation = inject && memory->length > INJECT_MAX
					      ? NULL
					      : operation_begin(endpoint, post, FI_SEND);

	if (!operation) {
		free(memory->vector);
		return inject && memory->length > INJECT_MAX ? -FI_EMSGSIZE : -FI_EAGAIN;
	}
	operation->vector = memory->vector;
	messages_send(endpoint->messages, &operation->transfer, peer, wish);
	return inject && link_listed(&operation->link) ? send_copy(operation, post, memory) : 0;
}

static ssize_t send_locked(struct endpoint *endpoint, const struct post *post)
{
	struct memory memory;
	struct send_wish wish;
	uint32_t peer;
	ssize_t result;

	if (!endpoint->enabled)
		return -FI_EOPBADSTATE;
	if (!endpoint->tx.cq)
		return -FI_ENOCQ;
	if ((post->flags & ~(OP_FLAGS | FI_REMOTE_CQ_DATA | FI_FENCE)) != 0)
		return -FI_EBADFLAGS;
	if (post->flags & FI_FENCE && !endpoint_is_clear(endpoint, post->peer))
		return -FI_EAGAIN;
	result = peer_of(endpoint, post->peer, true, &peer);
	if (result == 0)
		result = memory_read(post, &memory);
	if (result != 0)
		return result;
	wish = (struct send_wish){.class = post->class,
		.bits = post->tag,
		.buffer = memory.buffer,
		.length = memory.length,
		.vector = memory.vector,
		.data = post->data,
		.marked = (post->flags & FI_REMOTE_CQ_DATA) != 0,
		.synchronous = (post->flags & FI_MATCH_COMPLETE) != 0,
		.late = (post->flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)) != 0};
	if (!memory.vector && send_inject(endpoint, post, peer, &wish))
		return 0;
	return send_operate(endpoint, post, peer, &wish, &memory);
}

static ssize_t send_post(struct fid_ep *fid, const struct post *post)
{
	struct endpoint *endpoint = endpoint_of(fid);
	ssize_t result;

	domain_enter(endpoint->domain);
	result = send_locked(endpoint, post);
	domain_leave(endpoint->domain);
	return result;
}

/* --- receives */

/* The message of a search is told; its data stays where it is. */
static void search_tell(struct endpoint *endpoint, const struct post *post,
	const struct message_found *found, int err)
{
	struct cq *cq = endpoint->rx.cq;
	struct line *line = cq_place(cq);
	struct failure failure = {.err = err};

	*line = (struct line){.entry = {.op_context = post->context,
				      .flags = FI_RECV | class_flag(post->class),
				      .len = found->length},
		.source = FI_ADDR_NOTAVAIL};
	if (err == 0 &&
		!line_fill(endpoint, line, found->peer, found->bits, found->marked, found->data)) {
		failure.err = FI_EADDRNOTAVAIL;
		failure.has_address = true;
		failure.address = peer_address(endpoint, found->peer);
	}
	if (failure.err != 0)
		cq_error(cq, &failure);
	else
		cq_tell(cq);
}

/* What the context of a message that was claimed has beside it: a context that says nothing of one
 * does not have this by chance. */
static void *claim_mark(const struct endpoint *endpoint, const struct fi_context *context,
	const struct unexpected *taken)
{
	return (void *)((uintptr_t)taken ^ (uintptr_t)context ^ (uintptr_t)endpoint ^
			(uintptr_t)endpoint->self.life << 32);
}

static void claim_keep(
	const struct endpoint *endpoint, struct fi_context *context, struct unexpected *taken)
{
	context->internal[0] = taken;
	context->internal[1] = claim_mark(endpoint, context, taken);
}

static bool search(struct endpoint *endpoint, const struct post *post,
	const struct receive_wish *wish, struct message_found *found)
{
	struct unexpected *taken;

	if (!(post->flags & (FI_CLAIM | FI_DISCARD)))
		return messages_probe_wish(endpoint->messages, wish, found);
	taken = messages_take(endpoint->messages, wish, found);
	if (taken && post->flags & FI_DISCARD)
		messages_discard(endpoint->messages, taken);
	else if (taken)
		claim_keep(endpoint, post->context, taken);
	return taken != NULL;
}

/* FI_PEEK */
static ssize_t receive_peek(
	struct endpoint *endpoint, const struct post *post, const struct receive_wish *wish)
{
	struct message_found found = {0};
	bool is;

	if (!cq_promise(endpoint->rx.cq))
		return -FI_EAGAIN;
	is = search(endpoint, post, wish, &found);
	if (!is) {
		peers_progress(endpoint); /* a sender may wait to be known */
		is = search(endpoint, post, wish, &found);
	}
	search_tell(endpoint, post, &found, is ? 0 : FI_ENOMSG);
	return 0;
}

/* FI_CLAIM with FI_DISCARD. */
static ssize_t claimed_discard(
	struct endpoint *endpoint, const struct post *post, struct unexpected *taken)
{
	const struct transfer *message = &taken->transfer;
	const struct message_found found = {
		message->peer, message->bits, message->whole, message->data, message->marked};

	if (!cq_promise(endpoint->rx.cq))
		return -FI_EAGAIN;
	messages_discard(endpoint->messages, taken);
	search_tell(endpoint, post, &found, 0);
	return 0;
}

/* A receive of the message that was claimed, or of one that comes. */
static inline __attribute__((always_inline)) ssize_t receive_begin(struct endpoint *endpoint,
	const struct post *post, struct receive_wish *wish, struct unexpected *taken)
{
	struct operation *operation;
	struct memory memory;
	ssize_t result = memory_read(post, &memory);

	if (result != 0)
		return result;
	operation = operation_begin(endpoint, post, FI_RECV);
	if (!operation) {
		free(memory.vector);
		return -FI_EAGAIN;
	}
	operation->buffer = memory.buffer;
	operation->vector = memory.vector;
	operation->from = wish->peer;
	endpoint->directed += wish->peer != PEER_ANY;
	if (taken) {
		messages_receive_taken(endpoint->messages, &operation->transfer, taken,
			memory.buffer, memory.length, memory.vector);
		return 0;
	}
	wish->buffer = memory.buffer;
	wish->room = memory.length;
	wish->vector = memory.vector;
	messages_receive_wish(endpoint->messages, &operation->transfer, wish);
	return 0;
}

/* FI_MULTI_RECV */
static ssize_t receive_many(
	struct endpoint *endpoint, const struct post *post, struct receive_wish *wish)
{
	struct operation *operation;

	if (post->count != 1 || !post->iov)
		return -FI_EINVAL;
	if (post->iov->iov_len > MESSAGE_MAX)
		return -FI_EMSGSIZE;
	wish->buffer = post->iov->iov_base;
	wish->room = post->iov->iov_len;
	wish->many = malloc(sizeof(*wish->many));
	if (!wish->many)
		return -FI_ENOMEM;
	messages_many(wish->many, wish->room, endpoint->least);
	operation = operation_begin(endpoint, post, FI_RECV);
	if (!operation || !cq_promise_many(endpoint->rx.cq, wish->many->most)) {
		if (operation)
			operation_drop(operation);
		free(wish->many);
		return -FI_EAGAIN;
	}
	operation->many = wish->many;
	operation->places = operation->parts = wish->many->most;
	operation->buffer = wish->buffer;
	operation->from = wish->peer;
	endpoint->directed += wish->peer != PEER_ANY;
	messages_receive_wish(endpoint->messages, &operation->transfer, wish);
	return 0;
}

static ssize_t receive_claimed(
	struct endpoint *endpoint, const struct post *post, struct receive_wish *wish)
{
	struct fi_context *context = post->context;
	struct unexpected *taken = context->internal[0];
	ssize_t result;

	if (!taken || context->internal[1] != claim_mark(endpoint, context, taken))
		return -FI_EINVAL;
	wish->peer = PEER_ANY;
	result = post->flags & FI_DISCARD ? claimed_discard(endpoint, post, taken)
					  : receive_begin(endpoint, post, wish, taken);
	if (result == 0)
		context->internal[0] = NULL;
	return result;
}

/* What most receives are not. */
static __attribute__((noinline)) ssize_t receive_special(
	struct endpoint *endpoint, const struct post *post, struct receive_wish *wish)
{
	if (post->flags & FI_PEEK)
		return receive_peek(endpoint, post, wish);
	if (post->flags & FI_CLAIM)
		return receive_claimed(endpoint, post, wish);
	return receive_many(endpoint, post, wish);
}

static ssize_t receive_locked(struct endpoint *endpoint, const struct post *post)
{
	const uint64_t flags =
		RECEIVE_FLAGS |
		(post->class == CLASS_TAGGED ? SEARCH_FLAGS : endpoint->caps & FI_MULTI_RECV);
	struct receive_wish wish = {
		.class = post->class, .peer = PEER_ANY, .bits = post->tag, .ignore = post->ignore};
	const bool special = (post->flags & (SEARCH_FLAGS | FI_MULTI_RECV)) != 0;
	int result;

	if (!endpoint->enabled)
		return -FI_EOPBADSTATE;
	if (!endpoint->rx.cq)
		return -FI_ENOCQ;
	if ((post->flags & ~flags) != 0)
		return -FI_EBADFLAGS;
	if (special && ((post->flags & FI_CLAIM && !post->context) ||
			       (post->flags & FI_DISCARD && !(post->flags & (FI_PEEK | FI_CLAIM)))))
		return -FI_EINVAL;
	if (endpoint->caps & FI_DIRECTED_RECV && post->peer != FI_ADDR_UNSPEC) {
		result = peer_from(endpoint, post->peer, !(post->flags & SEARCH_FLAGS), &wish);
		if (result != 0)
			return result;
	}
	return special ? receive_special(endpoint, post, &wish)
		       : receive_begin(endpoint, post, &wish, NULL);
}

static ssize_t receive_post(struct fid_ep *fid, const struct post *post)
{
	struct endpoint *endpoint = endpoint_of(fid);
	ssize_t result;

	domain_enter(endpoint->domain);
	result = receive_locked(endpoint, post);
	domain_leave(endpoint->domain);
	return result;
}

/* --- calls */

static ssize_t tagged_recv(struct fid_ep *ep, void *buffer, size_t length, void *desc,
	fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	(void)desc;
	return receive_post(ep, &(struct post){ONE_PIECE(buffer, length), .peer = from, .tag = tag,
					.ignore = ignore, .context = context,
					.flags = RX_FLAGS(ep) & ~FI_MULTI_RECV});
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	(void)desc;
	return receive_post(ep, &(struct post){.iov = iov,
					.count = count,
					.peer = from,
					.tag = tag,
					.ignore = ignore,
					.context = context,
					.flags = RX_FLAGS(ep) & ~FI_MULTI_RECV});
}

static ssize_t tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	if (!msg)
		return -FI_EINVAL;
	return receive_post(ep, &(struct post){.iov = msg->msg_iov,
					.count = msg->iov_count,
					.peer = msg->addr,
					.tag = msg->tag,
					.ignore = msg->ignore,
					.context = msg->context,
					.flags = flags});
}

static ssize_t tagged_send(struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	fi_addr_t to, uint64_t tag, void *context)
{
	(void)desc;
	return send_post(ep, &(struct post){ONE_PIECE(buffer, length), .peer = to, .tag = tag,
				     .context = context, .flags = TX_FLAGS(ep)});
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t to, uint64_t tag, void *context)
{
	(void)desc;
	return send_post(ep, &(struct post){.iov = iov,
				     .count = count,
				     .peer = to,
				     .tag = tag,
				     .context = context,
				     .flags = TX_FLAGS(ep)});
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	if (!msg)
		return -FI_EINVAL;
	return send_post(ep, &(struct post){.iov = msg->msg_iov,
				     .count = msg->iov_count,
				     .peer = msg->addr,
				     .tag = msg->tag,
				     .context = msg->context,
				     .data = msg->data,
				     .flags = flags});
}

static ssize_t tagged_inject(
	struct fid_ep *ep, const void *buffer, size_t length, fi_addr_t to, uint64_t tag)
{
	return send_post(ep,
		&(struct post){ONE_PIECE(buffer, length), .peer = to, .tag = tag, .quiet = true});
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	uint64_t data, fi_addr_t to, uint64_t tag, void *context)
{
	(void)desc;
	return send_post(ep, &(struct post){ONE_PIECE(buffer, length), .peer = to, .tag = tag,
				     .context = context, .data = data,
				     .flags = TX_FLAGS(ep) | FI_REMOTE_CQ_DATA});
}

static ssize_t tagged_injectdata(struct fid_ep *ep, const void *buffer, size_t length,
	uint64_t data, fi_addr_t to, uint64_t tag)
{
	return send_post(ep, &(struct post){ONE_PIECE(buffer, length), .peer = to, .tag = tag,
				     .data = data, .flags = FI_REMOTE_CQ_DATA, .quiet = true});
}

struct fi_ops_tagged tagged_ops = {
	.size = sizeof(tagged_ops),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};

static ssize_t plain_recv(
	struct fid_ep *ep, void *buffer, size_t length, void *desc, fi_addr_t from, void *context)
{
	(void)desc;
	return receive_post(ep, &(struct post){.class = CLASS_PLAIN,
					ONE_PIECE(buffer, length),
					.peer = from,
					.context = context,
					.flags = RX_FLAGS(ep)});
}

static ssize_t plain_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t from, void *context)
{
	(void)desc;
	return receive_post(ep, &(struct post){.class = CLASS_PLAIN,
					.iov = iov,
					.count = count,
					.peer = from,
					.context = context,
					.flags = RX_FLAGS(ep)});
}

static ssize_t plain_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	if (!msg)
		return -FI_EINVAL;
	return receive_post(ep, &(struct post){.class = CLASS_PLAIN,
					.iov = msg->msg_iov,
					.count = msg->iov_count,
					.peer = msg->addr,
					.context = msg->context,
					.flags = flags});
}

static ssize_t plain_send(struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	fi_addr_t to, void *context)
{
	(void)desc;
	return send_post(ep, &(struct post){.class = CLASS_PLAIN,
				     ONE_PIECE(buffer, length),
				     .peer = to,
				     .context = context,
				     .flags = TX_FLAGS(ep)});
}

static ssize_t plain_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t to, void *context)
{
	(void)desc;
	return send_post(ep, &(struct post){.class = CLASS_PLAIN,
				     .iov = iov,
				     .count = count,
				     .peer = to,
				     .context = context,
				     .flags = TX_FLAGS(ep)});
}

static ssize_t plain_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	if (!msg)
		return -FI_EINVAL;
	return send_post(ep, &(struct post){.class = CLASS_PLAIN,
				     .iov = msg->msg_iov,
				     .count = msg->iov_count,
				     .peer = msg->addr,
				     .context = msg->context,
				     .data = msg->data,
				     .flags = flags});
}

static ssize_t plain_inject(struct fid_ep *ep, const void *buffer, size_t length, fi_addr_t to)
{
	return send_post(ep, &(struct post){.class = CLASS_PLAIN,
				     ONE_PIECE(buffer, length),
				     .peer = to,
				     .quiet = true});
}

static ssize_t plain_senddata(struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	uint64_t data, fi_addr_t to, void *context)
{
	(void)desc;
	return send_post(ep, &(struct post){.class = CLASS_PLAIN,
				     ONE_PIECE(buffer, length),
				     .peer = to,
				     .context = context,
				     .data = data,
				     .flags = TX_FLAGS(ep) | FI_REMOTE_CQ_DATA});
}

static ssize_t plain_injectdata(
	struct fid_ep *ep, const void *buffer, size_t length, uint64_t data, fi_addr_t to)
{
	return send_post(ep, &(struct post){.class = CLASS_PLAIN,
				     ONE_PIECE(buffer, length),
				     .peer = to,
				     .data = data,
				     .flags = FI_REMOTE_CQ_DATA,
				     .quiet = true});
}

struct fi_ops_msg message_ops = {
	.size = sizeof(message_ops),
	.recv = plain_recv,
	.recvv = plain_recvv,
	.recvmsg = plain_recvmsg,
	.send = plain_send,
	.sendv = plain_sendv,
	.sendmsg = plain_sendmsg,
	.inject = plain_inject,
	.senddata = plain_senddata,
	.injectdata = plain_injectdata,
};
