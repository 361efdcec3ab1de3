/* SPDX-License-Identifier: BSD-3-Clause */
/* rma.c - an endpoint's space for remote memory, and reads and writes (remote.h). A read or a write
 * has one event, when its answer is here: so every completion level is met. */
#include <fi/remote.h>

#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include <base/guard.h>
#include <host/interface.h>
#include <wire/message.h>

#define SPACE    3
#define ENTRIES  (REGIONS_MAX * PORTALS + 1)
#define TOLD_MAX 16384               /* writes with remote data that the program has not heard of */
#define VECTORS  1024                /* operations with several pieces of memory, at a time */
#define AGAIN    (100 * MICROSECOND) /* before what was refused is repeated */

/* --- regions of own memory */

#define ENDS                                                                                       \
	(TIER_BIT(TIER_ACK) | TIER_BIT_FAILED(TIER_ACK) | TIER_BIT(TIER_REPLY) |                   \
		TIER_BIT_FAILED(TIER_REPLY))

/* vector: NULL: all memory. Returns false if there is no region left. */
static bool region_bind(
	struct remote *remote, const struct map_vector *vector, uint32_t log, struct handle *handle)
{
	struct segment *segment = remote->visit.segment;
	struct command command = {.kind = COMMAND_REGION_BIND};
	const uint32_t taken = segment_take(segment, segment->free_regions);
	struct region *region;

	if (taken == INDEX_NONE)
		return false;
	handle->index = segment->limits.attached + taken;
	handle->generation = segment_generation(segment);
	region = segment_region(segment, handle->index);
	region->start = 0;
	region->length = vector ? map_vector_length(vector) : UINT64_MAX;
	region->vector = vector ? vector : MAP_MEMORY;
	region->queue = remote->queue_handles[QUEUE_OWN];
	region->options = REGION_REMOTE_OFFSET | REGION_TRUNCATE;
	region->log = log;
	region->threshold = GATE_THRESHOLD_INFINITE;
	region->entry = INDEX_NONE;
	*segment_attachment(segment, handle->index) = (struct attachment){0};
	command.object.index = handle->index;
	command.object.generation = handle->generation;
	atomic_store_explicit(&region->gate, gate_make(handle->generation, GATE_THRESHOLD_INFINITE),
		memory_order_release);
	submission_post(&remote->visit.interface->submission, &command);
	return true;
}

static void region_release(struct remote *remote, struct handle *handle)
{
	struct command command = {.kind = COMMAND_REGION_RELEASE};

	if (handle->index == 0)
		return;
	command.object.index = handle->index;
	command.object.generation = handle->generation;
	handle->index = 0;
	(void)visit_call(&remote->visit, &command, NULL, NULL);
}

/* --- movements: the space is visited */

static struct movement *movement_make(struct remote *remote)
{
	struct movement *movement = remote->free;

	if (movement) {
		remote->free = movement->next;
		return movement;
	}
	movement = malloc(sizeof(*movement));
	if (!movement)
		return NULL;
	movement->made = remote->made;
	remote->made = movement;
	return movement;
}

/* It has ended, or was not posted. */
static void movement_free(struct remote *remote, struct movement *movement)
{
	region_release(remote, &movement->region);
	link_remove(&movement->link);
	remote->waiting -= movement->waits;
	if (movement->alone) {
		remote->lone--;
		remote->due = 0; /* for what waits behind it */
	}
	remote->endpoint->sending--;
	free(movement->vector);
	free(movement->copy);
	movement->next = remote->free;
	remote->free = movement;
}

/* F1. Takes one, with a place for its completion. */
static struct movement *movement_try(struct remote *remote, bool quiet)
{
	struct endpoint *endpoint = remote->endpoint;
	struct movement *movement;

	if (endpoint->sending == endpoint->tx_size || (!quiet && !cq_promise(endpoint->tx.cq)))
		return NULL;
	movement = movement_make(remote);
	if (!movement) {
		if (!quiet)
			cq_release(endpoint->tx.cq);
		return NULL;
	}
	movement->quiet = quiet;
	movement->region.index = 0;
	movement->vector = NULL;
	movement->copy = NULL;
	movement->given_bytes = 0;
	movement->reads = false;
	movement->waits = movement->refused = movement->alone = false;
	list_append(&remote->moving, &movement->link);
	endpoint->sending++;
	return movement;
}

static void movement_drop(struct remote *remote, struct movement *movement)
{
	if (!movement->quiet)
		cq_release(remote->endpoint->tx.cq);
	movement_free(remote, movement);
}

static void rma_command_post(struct remote *remote, const struct move *move,
	const struct rma_line *line, const uint8_t *given, unsigned given_bytes)
{
	const struct submission *submission = &remote->visit.interface->submission;
	struct long_command command; /* lines are written as far as they are used */

	if (submission_begin(submission, move, line, given))
		return;
	command.command = (struct command){.kind = COMMAND_RMA, .move = *move};
	memcpy(command.further[0], line, sizeof(*line));
	memcpy(command.further[1], given, given_bytes);
	submission_post_lines(
		submission, &command, 2 + (given_bytes + RING_BYTES - 1) / RING_BYTES);
}

static void movement_post(struct remote *remote, const struct movement *movement)
{
	rma_command_post(
		remote, &movement->move, &movement->line, movement->given, movement->given_bytes);
}

/* --- what waits (M5) */

static bool movements_meet(const struct movement *one, const struct movement *other)
{
	return process_same(one->move.to, other->move.to);
}

/* Is there one before it that it must not overtake? */
static __attribute__((noinline)) bool movement_follows(
	const struct remote *remote, const struct movement *movement)
{
	const bool ordered = remote->endpoint->ordered;

	list_each (const struct movement, other, &remote->moving, link) {
		if (other == movement)
			break;
		if (movements_meet(other, movement) &&
			(other->alone ||
				(other->waits && (ordered || other->move.portal == PORTAL_PLAIN))))
			return true;
	}
	return false;
}

static void movement_wait(struct remote *remote, struct movement *movement)
{
	movement->waits = true;
	remote->waiting++;
}

static void movement_begin(struct remote *remote, struct movement *movement)
{
	if ((remote->waiting | remote->lone) != 0 && movement_follows(remote, movement))
		movement_wait(remote, movement);
	else
		movement_post(remote, movement);
}

static void movement_refused(struct remote *remote, struct movement *movement)
{
	movement->refused = true;
	movement_wait(remote, movement);
	remote->due = library_now() + AGAIN;
}

/* The target is to refuse no request because it has refused others (engine/tiers.c, T9). */
static void process_resume(struct remote *remote, const struct movement *movement)
{
	const struct move move = {
		.region = remote->silent.index,
		.generation = remote->silent.generation,
		.to = movement->move.to,
		.cookie = movement->move.cookie,
		.portal = MESSAGE_RESUME,
	};
	const struct rma_line line = {.message = MESSAGE_LOAD, .want = WANT_NOTHING};

	rma_command_post(remote, &move, &line, movement->given, 0);
}

/* Is something under way that was posted behind one that waits, and so will be refused, too, or
 * that nothing may follow? */
static bool process_is_busy(const struct remote *remote, const struct movement *first)
{
	bool behind = false;

	list_each (const struct movement, movement, &remote->moving, link) {
		behind |= movement == first;
		if ((behind || movement->alone) && !movement->waits &&
			movements_meet(movement, first))
			return true;
	}
	return false;
}

/* All that waits for the process of one that waits goes, the first one first. */
static void process_repeat(struct remote *remote, const struct movement *first)
{
	if (first->refused)
		process_resume(remote, first);
	list_each (struct movement, movement, &remote->moving, link) {
		if (!movement->waits || !movements_meet(movement, first))
			continue;
		movement->waits = movement->refused = false;
		remote->waiting--;
		movement_post(remote, movement);
		if (movement->alone)
			break;
	}
}

static void waiting_resume(struct remote *remote)
{
	uint64_t now;

	if (remote->waiting == 0)
		return;
	now = library_now();
	if (now < remote->due)
		return;
	remote->due = now + AGAIN;
	list_each (struct movement, movement, &remote->moving, link)
		if (movement->waits &&
			!(remote->endpoint->ordered && process_is_busy(remote, movement)))
			process_repeat(remote, movement);
}

int movement_scatter(
	struct remote *remote, struct movement *movement, const struct iovec *iov, size_t count)
{
	movement->vector = pieces_copy(iov, count);
	if (!movement->vector)
		return -FI_ENOMEM;
	if (!region_bind(remote, movement->vector, ENDS, &movement->region))
		return -FI_EAGAIN;
	movement->move.region = movement->region.index;
	movement->move.generation = movement->region.generation;
	movement->line.local = 0;
	return 0;
}

static void movement_init(const struct remote *remote, struct movement *movement,
	const struct address *to, uint64_t flags)
{
	const struct binding *binding = &remote->endpoint->tx;

	movement->completes = !movement->quiet && (!binding->selective || flags & FI_COMPLETION);
	movement->move = (struct move){
		.region = remote->region.index,
		.generation = remote->region.generation,
		.to = {.nid = to->nid, .pid = to->pid},
		.cookie = to->life, /* M2 */
	};
	movement->line = (struct rma_line){.user = (uintptr_t)movement, .want = WANT_EVENT};
}

ssize_t remote_begin(struct endpoint *endpoint, fi_addr_t peer, uint64_t flags, bool quiet,
	int (*fill)(struct remote *remote, struct movement *movement, const void *asked),
	const void *asked)
{
	struct remote *remote = endpoint->remote;
	const struct av_entry *to = av_at(endpoint->av, peer);
	struct movement *movement;
	int result;

	if (!to)
		return -FI_EINVAL;
	if (flags & FI_FENCE && !endpoint_is_clear(endpoint, peer))
		return -FI_EAGAIN;
	movement = movement_try(remote, quiet);
	if (!movement) { /* a program that tries again and again makes progress so */
		endpoint_progress(endpoint);
		movement = movement_try(remote, quiet);
	}
	if (!movement)
		return -FI_EAGAIN;
	movement_init(remote, movement, &to->address, flags);
	peer_tell(endpoint, peer, &to->address);
	if (!remote_enter(remote)) {
		movement_drop(remote, movement);
		return -FI_EOPBADSTATE;
	}
	result = fill(remote, movement, asked);
	if (result == 0) {
		movement->alone = endpoint->ordered &&
				  (movement->reads || movement->move.portal == PORTAL_TELLS);
		remote->lone += movement->alone;
		movement_begin(remote, movement);
	} else {
		movement_drop(remote, movement);
	}
	visit_leave(&remote->visit);
	return result;
}

/* --- ends */

static int failure_of(const struct movement *movement, enum tier_verdict verdict)
{
	if (verdict == TIER_OPERATION && movement->move.portal == PORTAL_TELLS)
		verdict = TIER_DROPPED; /* M3: by the last entry */
	switch (verdict) {
	case TIER_UNDELIVERABLE:
	case TIER_CLOSED:
		return FI_EHOSTUNREACH;
	case TIER_DROPPED: /* M1 */
		return FI_EKEYREJECTED;
	case TIER_PERMISSION:
		return FI_EPERM;
	case TIER_OPERATION:
		return FI_EACCES;
	case TIER_FAULT:
		return FI_EFAULT;
	default:
		return FI_EIO;
	}
}

/* err: 0: it has ended well. */
static void movement_tell(struct remote *remote, const struct movement *movement, int err)
{
	struct cq *cq = remote->endpoint->tx.cq;

	if (movement->quiet) {
		if (err != 0)
			WARN(EP_DATA,
				"a write or an atomic operation of fi_inject has failed: %s\n",
				fi_strerror(err));
		return;
	}
	*cq_place(cq) =
		(struct line){.entry = {.op_context = movement->context, .flags = movement->flags},
			.source = FI_ADDR_NOTAVAIL};
	if (err != 0)
		cq_error(cq, &(const struct failure){.err = err});
	else
		cq_end(cq, movement->completes);
}

/* moved: bytes, as the target says. One that keeps to the rules moves all or none. */
static void movement_done(
	struct remote *remote, struct movement *movement, enum tier_verdict verdict, uint64_t moved)
{
	const bool whole = verdict == TIER_OK && moved == movement->line.length;

	if (verdict == TIER_REFUSED) { /* M3, M5 */
		movement_refused(remote, movement);
		return;
	}
	if (movement->reads && (verdict == TIER_OPERATION || verdict == TIER_FAULT)) {
		/* An atomic read has asked for more than it needs. */
		movement->reads = false;
		movement->line.message = MESSAGE_LOAD;
		movement_post(remote, movement);
		return;
	}
	movement_tell(remote, movement, whole ? 0 : failure_of(movement, verdict));
	counter_ended(remote->endpoint->counts[movement->count].counter, !whole);
	movement_free(remote, movement);
}

/* --- events */

/* What an event says. */
struct remote_event {
	uint8_t kind, verdict;
	struct process from;
	uint64_t user, value, moved;
};

static void remote_event_copy(
	const struct event_slot *slot, uint32_t attributes, uint32_t second, void *to)
{
	struct remote_event *event = to;
	uint64_t word;

	(void)attributes;
	(void)second;
#define WORD(name) atomic_load_explicit(&slot->words[name], memory_order_relaxed)
	word = WORD(EVENT_REGION);
	event->kind = TIER_FIELD(word, TIER_KIND_AT);
	event->verdict = TIER_FIELD(word, TIER_VERDICT_AT);
	word = WORD(EVENT_INITIATOR);
	event->from = (struct process){.nid = (uint32_t)word, .pid = (uint32_t)(word >> 32)};
	event->user = WORD(EVENT_USER);
	event->value = WORD(EVENT_VALUE);
	event->moved = WORD(EVENT_MOVED);
#undef WORD
}

static bool remote_event_take(struct remote *remote, unsigned queue, struct remote_event *event)
{
	enum queue_answer answer =
		queue_take_oldest(&remote->queues[queue], remote_event_copy, event);

	return answer == QUEUE_EVENT || answer == QUEUE_EVENT_AFTER_GAP;
}

static void own_run(struct remote *remote)
{
	struct remote_event event;

	while (remote_event_take(remote, QUEUE_OWN, &event))
		movement_done(remote, (struct movement *)(uintptr_t)event.user,
			(enum tier_verdict)event.verdict, event.moved);
}

/* A peer has written, with data for the program. */
static void write_tell(struct remote *remote, const struct remote_event *event)
{
	struct cq *cq = remote->endpoint->rx.cq;

	*cq_place(cq) =
		(struct line){.entry = {.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
				      .len = event->moved,
				      .data = event->value},
			.source = FI_ADDR_NOTAVAIL};
	cq_tell(cq);
}

static void portal_enable(struct remote *remote)
{
	struct command command = {.kind = COMMAND_PORTAL_ENABLE};

	command.object.index = PORTAL_TELLS;
	(void)visit_call(&remote->visit, &command, NULL, NULL);
	remote->disabled = false;
}

/* M3. What has no place in the completion queue stays where it is. */
static void told_run(struct remote *remote)
{
	struct cq *cq = remote->endpoint->rx.cq;
	struct remote_event event;

	while (queue_has_events(&remote->queues[QUEUE_TOLD])) {
		if (cq && !cq_stretch(cq))
			return;
		if (!remote_event_take(remote, QUEUE_TOLD, &event)) {
			if (cq)
				cq_release(cq);
			break;
		}
		if (cq && event.kind == TIER_PUT && event.verdict == TIER_OK)
			write_tell(remote, &event);
		else if (cq)
			cq_release(cq);
		remote->disabled |= event.kind == TIER_DISABLED;
	}
	if (remote->disabled)
		portal_enable(remote);
}

void remote_progress(struct remote *remote)
{
	if (!remote_enter(remote))
		return;
	own_run(remote);
	tallies_run(remote);
	told_run(remote);
	waiting_resume(remote);
	visit_leave(&remote->visit);
}

bool remote_has_events(const struct remote *remote)
{
	return queue_has_events(&remote->queues[QUEUE_OWN]) ||
	       queue_has_events(&remote->queues[QUEUE_TOLD]);
}

bool remote_is_late(const struct remote *remote)
{
	return remote->waiting != 0;
}

uint64_t remote_pending(const struct remote *remote)
{
	uint64_t pending = 0;

	list_each (const struct movement, movement, &remote->moving, link)
		pending++;
	return pending;
}

bool remote_owes(const struct remote *remote, struct process to)
{
	list_each (const struct movement, movement, &remote->moving, link)
		if (process_same(movement->move.to, to))
			return true;
	return false;
}

bool remote_knows(const struct remote *remote, const void *context)
{
	list_each (const struct movement, movement, &remote->moving, link)
		if (movement->context == context)
			return true;
	return false;
}

int remote_watch(struct remote *remote, unsigned queue)
{
	const uint64_t handle = remote->queue_handles[queue];
	struct visit visit;
	int descriptor;

	if (front_visit(&fi_front, &visit, handle, HANDLE_QUEUE, -1) != 0)
		return -1;
	descriptor = events_watch(&visit, handle);
	visit_leave(&visit);
	return descriptor;
}

void remote_lower(struct remote *remote)
{
	if (!remote_enter(remote))
		return;
	for (unsigned i = 0; i < QUEUES; i++)
		if (queue_is_raised(remote->queues[i].queue))
			queue_lower(&remote->queues[i], remote->visit.segment);
	visit_leave(&remote->visit);
}

/* --- reads and writes */

/* What a call asks for. */
struct post {
	bool reads;
	const struct iovec *iov;
	size_t count;
	fi_addr_t peer;
	uint64_t at, key;
	void *context;
	uint64_t data, flags;
	bool quiet;      /* fi_inject_write() */
	uint64_t length; /* of all pieces */
};

#define READ_FLAGS  ((OP_FLAGS & ~FI_INJECT) | FI_FENCE)
#define WRITE_FLAGS (OP_FLAGS | FI_REMOTE_CQ_DATA | FI_FENCE)

static int post_check(const struct endpoint *endpoint, struct post *post)
{
	const bool inject = post->quiet || post->flags & FI_INJECT;
	int result;

	if (!endpoint->enabled)
		return -FI_EOPBADSTATE;
	if (!(endpoint->caps & (post->reads ? FI_READ : FI_WRITE)))
		return -FI_EOPNOTSUPP;
	if ((post->flags & ~(post->reads ? READ_FLAGS : WRITE_FLAGS)) != 0)
		return -FI_EBADFLAGS;
	result = pieces_measure(post->iov, post->count, &post->length);
	return result == 0 && inject && post->length > INJECT_MAX ? -FI_EMSGSIZE : result;
}

/* Where the data comes from, or goes to. 0 or a negative error. */
static int movement_memory(
	struct remote *remote, struct movement *movement, const struct post *post)
{
	const bool inject = post->quiet || post->flags & FI_INJECT;
	const uint64_t length = post->length;

	movement->line.local = post->count > 0 ? (uintptr_t)post->iov[0].iov_base : 0;
	if (!inject && post->count < 2)
		return 0;
	if (inject && length <= COPIED_MAX) {
		pieces_gather(post->iov, post->count, movement->given);
		movement->given_bytes = (unsigned)length;
		movement->line.copied = true;
		return 0;
	}
	if (!post->reads && length <= INJECT_MAX) {
		movement->copy = malloc(length + 1);
		if (!movement->copy)
			return -FI_ENOMEM;
		pieces_gather(post->iov, post->count, movement->copy);
		movement->line.local = (uintptr_t)movement->copy;
		return 0;
	}
	return movement_scatter(remote, movement, post->iov, post->count);
}

static int rma_fill(struct remote *remote, struct movement *movement, const void *asked)
{
	const struct post *post = asked;
	const bool tells = (post->flags & FI_REMOTE_CQ_DATA) != 0;

	movement->context = post->context;
	movement->flags = FI_RMA | (post->reads ? FI_READ : FI_WRITE);
	movement->count = post->reads ? COUNT_READ : COUNT_WRITE;
	movement->move.portal = tells ? PORTAL_TELLS : PORTAL_PLAIN;
	movement->move.match_bits = post->key;
	movement->move.offset = post->at;
	movement->move.value = tells ? post->data : 0;
	movement->line.length = post->length;
	movement->line.message = post->reads ? MESSAGE_LOAD : MESSAGE_STORE;
	return movement_memory(remote, movement, post);
}

static ssize_t rma_post(struct fid_ep *fid, struct post *post)
{
	struct endpoint *endpoint = endpoint_of(fid);
	ssize_t result;

	domain_enter(endpoint->domain);
	result = post_check(endpoint, post);
	if (result == 0)
		result = remote_begin(
			endpoint, post->peer, post->flags, post->quiet, rma_fill, post);
	domain_leave(endpoint->domain);
	return result;
}

/* --- calls */

static ssize_t rma_read(struct fid_ep *ep, void *buffer, size_t length, void *desc, fi_addr_t from,
	uint64_t at, uint64_t key, void *context)
{
	(void)desc;
	return rma_post(ep, &(struct post){.reads = true,
				    ONE_PIECE(buffer, length),
				    .peer = from,
				    .at = at,
				    .key = key,
				    .context = context,
				    .flags = TX_FLAGS(ep) & READ_FLAGS});
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t from, uint64_t at, uint64_t key, void *context)
{
	(void)desc;
	return rma_post(ep, &(struct post){.reads = true,
				    .iov = iov,
				    .count = count,
				    .peer = from,
				    .at = at,
				    .key = key,
				    .context = context,
				    .flags = TX_FLAGS(ep) & READ_FLAGS});
}

/* A message has one remote piece, as long as the local ones together. */
static ssize_t rma_msg(
	struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags, bool reads)
{
	uint64_t length = 0;

	if (!message || message->rma_iov_count != 1 || !message->rma_iov ||
		message->iov_count > IOV_MAX_PARTS)
		return -FI_EINVAL;
	for (size_t i = 0; i < message->iov_count && message->msg_iov; i++)
		length += message->msg_iov[i].iov_len;
	if (length != message->rma_iov->len)
		return -FI_EINVAL;
	return rma_post(ep, &(struct post){.reads = reads,
				    .iov = message->msg_iov,
				    .count = message->iov_count,
				    .peer = message->addr,
				    .at = message->rma_iov->addr,
				    .key = message->rma_iov->key,
				    .context = message->context,
				    .data = message->data,
				    .flags = flags});
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags)
{
	return rma_msg(ep, message, flags, true);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	fi_addr_t to, uint64_t at, uint64_t key, void *context)
{
	(void)desc;
	return rma_post(ep, &(struct post){ONE_PIECE(buffer, length), .peer = to, .at = at,
				    .key = key, .context = context, .flags = TX_FLAGS(ep)});
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t to, uint64_t at, uint64_t key, void *context)
{
	(void)desc;
	return rma_post(ep, &(struct post){.iov = iov,
				    .count = count,
				    .peer = to,
				    .at = at,
				    .key = key,
				    .context = context,
				    .flags = TX_FLAGS(ep)});
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags)
{
	return rma_msg(ep, message, flags, false);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buffer, size_t length, fi_addr_t to,
	uint64_t at, uint64_t key)
{
	return rma_post(ep, &(struct post){ONE_PIECE(buffer, length), .peer = to, .at = at,
				    .key = key, .quiet = true});
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buffer, size_t length, void *desc,
	uint64_t data, fi_addr_t to, uint64_t at, uint64_t key, void *context)
{
	(void)desc;
	return rma_post(ep, &(struct post){ONE_PIECE(buffer, length), .peer = to, .at = at,
				    .key = key, .context = context, .data = data,
				    .flags = TX_FLAGS(ep) | FI_REMOTE_CQ_DATA});
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buffer, size_t length, uint64_t data,
	fi_addr_t to, uint64_t at, uint64_t key)
{
	return rma_post(
		ep, &(struct post){ONE_PIECE(buffer, length), .peer = to, .at = at, .key = key,
			    .data = data, .flags = FI_REMOTE_CQ_DATA, .quiet = true});
}

struct fi_ops_rma rma_ops = {
	.size = sizeof(rma_ops),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};

/* --- opening and closing */

static bool portal_make(struct remote *remote, unsigned index)
{
	struct portal *portal = segment_portal(remote->visit.segment, index);
	struct command command = {.kind = COMMAND_PORTAL_OPEN,
		.update = index == PORTAL_TELLS, /* M3 */
		.position = POSITION_STRANGERS};

	atomic_store_explicit(&portal->state, PORTAL_CLAIMED, memory_order_relaxed);
	command.object.index = index;
	command.object.other = remote->queue_handles[QUEUE_TOLD];
	return visit_call(&remote->visit, &command, NULL, NULL) == ANSWER_OK;
}

static bool queue_make(struct remote *remote, unsigned queue, uint64_t count)
{
	uint64_t *handle = &remote->queue_handles[queue];

	if (events_make(&remote->visit, count, handle) != ANSWER_OK)
		return false;
	remote->queues[queue] = queue_view(remote->visit.segment,
		segment_queue(remote->visit.segment, handle_index(*handle)), *handle);
	return true;
}

/* The space is visited. */
static bool space_furnish(struct remote *remote)
{
	return queue_make(remote, QUEUE_OWN, remote->endpoint->tx_size) &&
	       queue_make(remote, QUEUE_TOLD, TOLD_MAX) &&
	       region_bind(remote, NULL, ENDS, &remote->region) &&
	       region_bind(remote, NULL, 0, &remote->silent) && portal_make(remote, PORTAL_PLAIN) &&
	       portal_make(remote, PORTAL_TELLS) && regions_register(remote);
}

enum answer remote_open(struct endpoint *endpoint)
{
	const struct space_choice choice = {
		.number = SPACE, .lives = true, .options = {.kind = SPACE_TIERS, .ranked = true}};
	const struct segment_limits limits = {
		.entries = ENTRIES,
		.attached = ENTRIES,
		.regions = ENTRIES + 2 + VECTORS,
		.queues = QUEUES,
		.counters = 1,
		.unexpected = 1,
		.portals = PORTALS,
		.access = 1,
		.list_length = REGIONS_MAX,
		.event_bytes = 4 * (SIZE_LIMIT + TOLD_MAX) * sizeof(struct event_slot),
	};
	struct remote *remote = calloc(1, sizeof(*remote));
	enum answer answer;
	bool furnished;

	if (!remote)
		return ANSWER_NO_MEMORY;
	remote->endpoint = endpoint;
	list_init(&remote->registrations);
	list_init(&remote->moving);
	endpoint->remote = remote;
	guard_start();
	answer = interface_open_space(
		&fi_front, endpoint->interface, &choice, &limits, &remote->handle);
	if (answer != ANSWER_OK)
		return answer;
	if (!remote_enter(remote))
		return ANSWER_FAILED;
	furnished = space_furnish(remote);
	visit_leave(&remote->visit);
	return furnished ? ANSWER_OK : ANSWER_NO_MEMORY;
}

/* The interface has closed, or was never opened. */
void remote_close(struct endpoint *endpoint)
{
	struct remote *remote = endpoint->remote;
	struct movement *movement;

	if (!remote)
		return;
	regions_deregister(remote);
	list_each (struct movement, pending, &remote->moving, link) {
		pending->region.index = 0;
		movement_drop(remote, pending);
	}
	while ((movement = remote->made)) {
		remote->made = movement->made;
		free(movement);
	}
	free(remote);
	endpoint->remote = NULL;
}
