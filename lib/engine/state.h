/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - what the engine's own files share; nobody else includes it. All of it is the polling
 * thread's. */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include <sys/queue.h>

#include <base/barrier.h>
#include <base/list.h>
#include <base/owner.h>
#include <base/pages.h>
#include <base/pool.h>
#include <base/probe.h>
#include <base/trace.h>
#include <engine/engine.h>
#include <engine/queue.h>
#include <engine/trigger.h>
#include <match/kept.h>
#include <wire/message.h>

#define SENDING_LISTS   64 /* a power of two */
#define OPERATION_CHUNK 64 /* 32 KB: most processes have few at a time */
#define OPERATIONS_MAX  (65536 * OPERATION_CHUNK)
/* of them: beyond that others are served up to their share */
#define OPERATIONS_SHARED (OPERATIONS_MAX / 4 * 3)
#define COPIES_CHUNK      64
#define COPIES_MAX        (1024 * COPIES_CHUNK)
#define COPIES_SHARED     (COPIES_MAX / 4 * 3)
/* in the name of a put that no acknowledgement will name */
#define PUT_TRACED (UINT64_C(1) << 63)
/* How often a waiting get asks within PTL_PEER_TIMEOUT, and the longest time between: a target that
 * has ended may be known soon. */
#define PROBES_PER_LIFE 10
#define PROBE_LATEST    SECOND

enum operation_kind {
	OPERATION_FREE,
	OPERATION_PUT,     /* initiator: from the command until the peer has all of it */
	OPERATION_GET,     /* initiator: from the command until the reply's end */
	OPERATION_RECEIVE, /* target: a put being placed */
	OPERATION_SERVE,   /* target: a get, its reply on its way */
	OPERATION_RMA,     /* initiator: rma.c; from the command until its last event */
	OPERATION_LETTER,  /* initiator: letters.h; from the command until the peer has it */
	OPERATION_NOTICE,  /* target: an acknowledgement or a refusal on its way */
	OPERATION_ANSWER   /* target: an answer on its way whose data it owns */
};

/* The state of an RMA operation (rma.c). */
struct rma_state {
	uint64_t user;
	uint64_t local;  /* offset in the region */
	uint64_t length; /* bytes */
	uint64_t moved;  /* this and the next one are words of its answer */
	uint64_t offset;
	struct region *source; /* the region whose data a request brings; a fetch has two regions */
	uint8_t message;       /* MESSAGE_STORE, MESSAGE_LOAD, MESSAGE_ATOMIC, MESSAGE_FETCH */
	uint8_t want;          /* enum rma_want */
	uint8_t verdict;       /* enum tier_verdict */
	uint8_t tier;
	bool sent;     /* not a load: SEND has been counted */
	bool answered; /* not a load: before it was sent */
	bool told;     /* a store, an atomic: SEND has told that it failed */
	bool refused;  /* a load: it is to be repeated when its request is done with */
};

/*
 * An operation in flight. While it lives its region has it counted in `pending`; its events go to
 * the queue that the region had when it began.
 *
 * A get lives through two things that end in any order: its request (message), and its reply.
 */
struct operation {
	struct message message; /* outgoing, if the kind sends one */
	/* These eight are set at once when it begins. */
	_Alignas(uint64_t) uint8_t kind; /* enum operation_kind */
	bool exhausts;                   /* it made its region inactive */
	/* RECEIVE: the initiator wants to know. PUT: so does this process, and it is in
	 * engine.sending. RMA: an answer is to come */
	bool acknowledge;
	bool acknowledged; /* PUT: the acknowledgement came before the transport was done; see
			    * outgoing.c, O3 */
	bool requested;    /* GET: its message is with the transport */
	bool replying;     /* GET: the reply has begun */
	bool ended;        /* GET: its last event has been logged */
	bool waits;        /* GET: in engine.waiting, or .refused */
	uint32_t index;
	uint32_t generation; /* GET, RMA: of the one that a reply must name */
	struct process peer;
	struct space *space; /* of all but a NOTICE and an ANSWER */
	struct region *region;
	/* A letter of at most 56 bytes has these two in one cache line, and uses none behind it. */
	union {
		struct outcome *receive;   /* RECEIVE without a region: letters.h */
		struct dispatch *dispatch; /* LETTER */
	};
	/* RMA: data of a request that came with its command. LETTER: its data. ANSWER: its own, if
	 * no more */
	uint8_t copied[COPIED_MAX];
	struct rma_state rma; /* RMA */
	uint64_t queue;       /* handle that the region had when it began */
	struct queue *logs;   /* what that names */
	/* what its events have in common; RMA: a load of two-sided messages (rma.c, C7) */
	struct account account;
	uint64_t asked; /* GET: when the request or the last probe was acknowledged, ns */
	uint64_t name;  /* PUT: on the wire, of one that is acknowledged or traced */
	/* SERVE: the initiator's name for it. RECEIVE: to echo. PUT: manipulated length. */
	uint64_t remote;
	uint64_t handle;         /* RECEIVE: the initiator's descriptor, to echo */
	uint64_t request_offset; /* RECEIVE: to echo. PUT: echoed */
	struct link link; /* SERVE, GET, PUT: in engine.serving, .waiting or .refused, .sending */
	STAILQ_ENTRY(operation) next; /* PUT: in engine.begun. NOTICE: in engine.late */
	/* RECEIVE, SERVE, SPACE_TIERS; RMA with WANT_KEPT: its header, or KEPT_NONE */
	uint32_t kept;
};

/* Short data of a kept message, and then of its event with TIER_DATA (unexpected.h, U6): the
 * engine's again when the program has set `read`. */
struct event_data {
	_Alignas(uint64_t) uint8_t data[COPIED_MAX];
	_Atomic bool read;
};

/* A rank, as those see it that share the headers with it: credit.h, C3. */
struct sharer {
	struct link silent;  /* if it has more than the least share, and was not asked for any */
	struct link wanting; /* if it waits for more */
	struct link owing;   /* if words to it are owed: C5 */
	uint32_t owes;       /* a bit for each kind of them */
	uint32_t takes;      /* so often was it asked */
	uint32_t asked;      /* how large its share is to become; 0: it was not asked */
	uint64_t told;       /* by the poll core, last: of its messages, those that were taken */
};

/* A space: tables, lists and limits of its own. What is sent from one goes to the space of its
 * number at the other end. */
#define DENIED_MOST 32u

/* Places in a queue that others have: portal.h, T10 and T11. */
#define PLACES_SHARES 512
struct places {
	uint64_t round;             /* how many rounds have begun */
	uint64_t until;             /* position in the queue: when it was read, one begins */
	uint32_t given, before;     /* places, in this round, and in the one before */
	uint16_t of[PLACES_SHARES]; /* in this round, by node and kind, or process */
};

struct space {
	struct engine *engine;
	struct segment *segment;
	uint8_t number;     /* in messages and commands */
	uint32_t interface; /* in handles; no two spaces of an engine have the same */
	uint32_t uid;
	enum space_kind kind;
	bool closing; /* it has no number any more, and is to go with its last operation */

	struct pages_tables tables; /* all that are the poll core's alone, but the kept messages */
	struct match_table entries;
	struct match_list *lists; /* one per Portal; SPACE_TIERS: one for each of its tiers */
	uint32_t list_count;
	/* one per Portal: the user has been told that it drops requests */
	bool *unmatched;
	bool absent; /* and that it drops those to Portals that it does not have, */
	/* and those of these processes, which another user has (space_deny()) */
	struct process denied[DENIED_MOST];
	uint32_t denied_count;

	/* SPACE_TIERS */
	struct tier_portal *portals;
	struct places *strangers, *peers;
	struct kept_table kept;
	struct kept_list *kept_lists; /* one per Portal */
	struct header *headers;       /* unexpected.c, by kept message */
	struct event_data *copies;    /* U6: by kept message */
	struct link lent;             /* U6: headers, in the order of their events */
	uint32_t kept_share;          /* U4: of each rank at first; 0: there is none */
	uint32_t ranks;               /* of which messages may be kept, then */
	uint32_t *kept_of;            /* messages, by rank, then */
	_Atomic uint32_t *share_of;   /* by rank, then: share_now() less kept_share */
	struct sharer *sharers;       /* by rank, then */
	struct link silent, wanting;  /* of them; silent longest first */
	struct link owing;            /* of them */
	uint32_t heard;               /* the last of them that was */
	uint32_t grown;               /* ranks with more than kept_share */
	struct credit *credits;       /* of rank 0; NULL: the front end counts none (engine.h) */
	size_t credit_step;           /* bytes to the next rank's */
	struct source *sources;       /* U7: by rank and Portal */
	uint32_t spare;               /* headers that are in no share */
	uint32_t *arriving_of;        /* messages under way, by rank, then */
	bool ranked;                  /* processes have ranks, which are indices in the map */
	bool two_sided;               /* of two-sided messages (engine.h) */
	struct posted *posted;        /* letters.c: receives by their slots, */
	uint32_t posted_free;         /* of which this is free, MATCH_NONE: none, */
	uint32_t posted_made;         /* and so many were ever used */
	const struct process *map;    /* the front end's; NULL: it is not set */
	uint32_t map_count;
	const uint32_t *names; /* of the processes of the map; NULL: a cookie is a rank */
	uint32_t life;         /* engine.h; 0: strangers' cookies mean nothing */
};

struct engine {
	struct segment *segment; /* with the ring of all spaces, and what is counted for all */
	struct ring_reader commands;
	uint32_t interface;
	struct port *port;
	const struct clock *clock;
	struct transport *transport;
	struct process self;

	/* by number; NULL: there is none */
	struct space *spaces[SPACES]; /* that take messages and commands */
	struct space *opened[SPACES]; /* the same, and those that are closing */

	struct pool operations; /* by index */
	/* tiers.c, T9: so many, and requests are looked at closely; 0 while processes are held */
	uint32_t operations_shared;
	struct pool copies;       /* of AMO_BYTES_MAX, for answers of more than COPIED_MAX bytes */
	struct triggers triggers; /* triggered.h */
	struct link serving;      /* replies on their way */
	struct link waiting;      /* gets whose request has arrived, the longest silent one first */
	struct link refused;      /* loads that are to be repeated (rma.c, C7), in this order */
	uint64_t repeated;        /* when some were, ns */
	uint32_t owing;           /* ranks of all spaces, to which words are owed: credit.h, C5 */
	uint32_t awaits;          /* these, and operations in the two lists */
	uint64_t probe_interval;  /* ns */
	uint64_t push_look;       /* ns between looks for frames while the program only sends */
	struct link sending[SENDING_LISTS]; /* puts that want an ACK, by their link */
	STAILQ_HEAD(, operation) begun; /* puts whose SEND_START is to be logged, in their order */
	STAILQ_HEAD(, operation) late;  /* answers that leave when the turn ends, with `owes` */

	uint64_t secret[2]; /* of what peers must not foresee */
	struct ping *pings; /* one per reply slot; NULL: none was ever wanted */
	bool udp;           /* PTL_ENCAP */

	uint64_t traced; /* puts that were named for the trace alone */
	/* 0: no queue has events for sleepers; else the first that has (queue_mark()) */
	uint32_t touched;
	struct event_counter *changed; /* counters that have changed, for sleepers; NULL: none */
	bool logged; /* events were logged or counted since the last turn was counted */
	bool owes;   /* the last part of the last turn was put off */
	struct owner owner;
};

/* The space of a number, NULL: there is none. */
static inline struct space *space_find(const struct engine *engine, uint32_t number)
{
	return number < SPACES ? engine->spaces[number] : NULL;
}

/* space.c */
/* Frees all spaces, when nothing is in flight. */
void spaces_free(struct engine *engine);
/* operation.c */
bool operation_make(struct engine *engine, uint32_t count);
/* Are there as many, or memory for more? */
static inline bool operation_reserve(struct engine *engine, uint32_t count)
{
	return engine->operations.left >= count || operation_make(engine, count);
}

/* May another process make this one begin an operation? Of the last quarter it gets no more than
 * its share, so that the gets of one peer leave room for others. */
static inline bool operation_granted(const struct engine *engine, struct process to)
{
	return pool_taken(&engine->operations) < OPERATIONS_SHARED ||
	       transport_has_share(engine->transport, to, OPERATIONS_MAX);
}

/* One that operation_reserve() has found. */
static inline struct operation *operation_begin(struct engine *engine, enum operation_kind kind)
{
	struct operation *operation = pool_take_reserved(&engine->operations);

	if (kind == OPERATION_GET || kind == OPERATION_RMA)
		operation->generation++;
	operation->kind = (uint8_t)kind;
	operation->exhausts = false;
	operation->acknowledge = false;
	operation->acknowledged = false;
	operation->requested = false;
	operation->replying = false;
	operation->ended = false;
	operation->waits = false;
	return operation;
}

/* NULL: no memory. */
static inline struct operation *operation_take(struct engine *engine, enum operation_kind kind)
{
	return operation_reserve(engine, 1) ? operation_begin(engine, kind) : NULL;
}

static inline void operation_free(struct engine *engine, struct operation *operation)
{
	operation->kind = OPERATION_FREE;
	pool_give(&engine->operations, operation);
}

/* The living operation that a wire name means, NULL if there is none of that kind. */
struct operation *operation_find(struct engine *engine, uint64_t name, enum operation_kind kind);
uint64_t operation_name(const struct operation *operation);
/* The one that has a message, as the transport knows it. */
static inline struct operation *operation_of(const struct message *message)
{
	return (struct operation *)(void *)((char *)(uintptr_t)message -
					    offsetof(struct operation, message));
}

/* A record of the put or get to which its initiator gave this name (message_header.operation). */
static inline void engine_trace(const struct engine *engine, enum trace_point point,
	struct process initiator, uint64_t name, const struct account *account)
{
	if (!trace_wanted())
		return;
	/* Sequences are a queue's own; the match bits tell queues apart, mostly. */
	name ^= account->match_bits << 24;
	trace(point, engine->interface, trace_message(initiator.nid, initiator.pid, name),
		account->moved);
}
/* Does an operation name this space? */
bool operation_names(const struct engine *engine, const struct space *space);

/* region.c */
/* So many bytes of a region's memory from an offset on. */
static inline struct map region_map(const struct region *region, uint64_t offset, uint64_t length)
{
	return (struct map){
		.start = region->start + offset, .vector = region->vector, .length = length};
}

/* NULL: stale. A region that is REGION_FREE is about to come. */
static inline struct region *region_named(
	const struct space *space, uint32_t index, uint32_t generation)
{
	struct region *region;

	if (index >= space->segment->limits.regions)
		return NULL;
	region = segment_region(space->segment, index);
	return gate_is(atomic_load_explicit(&region->gate, memory_order_relaxed), generation)
		       ? region
		       : NULL;
}

/* NULL: stale, or not here yet. */
static inline struct region *region_find(
	const struct space *space, uint32_t index, uint32_t generation)
{
	struct region *region = region_named(space, index, generation);

	return region && region->state != REGION_FREE ? region : NULL;
}

struct region *region_of(struct space *space, uint64_t handle);
/* region_take() where there is a bound; gate: what it was. */
bool region_take_one(struct region *region, uint64_t gate);
/* Takes one operation from the gate, as a sending thread does when it posts; false: none is
 * left. */
static inline bool region_take(struct region *region)
{
	uint64_t gate = atomic_load_explicit(&region->gate, memory_order_relaxed);

	return gate_low(gate) == GATE_THRESHOLD_INFINITE || region_take_one(region, gate);
}

/* Has the local offset gone further than it may? */
static inline bool region_is_full(const struct region *region)
{
	return !(region->options & REGION_REMOTE_OFFSET) && region->offset > region->max_offset;
}

static inline bool region_is_spent(const struct region *region)
{
	return region->threshold == 0 || region_is_full(region);
}

/* R4, after a change of what it follows from. */
static inline void region_review(struct region *region)
{
	bool accepts = region->state == REGION_LIVE && !region_is_full(region);

	region->accepts = accepts ? region->options & (REGION_PUT | REGION_GET) : 0;
}

/* region_spend() where there is something to count. */
bool region_charge(struct region *region, bool taken, uint64_t moved);

/* An operation has begun: counts it, if it was taken from the gate, and grows the local offset by
 * moved bytes. Returns true when that made the region inactive. */
static inline bool region_spend(struct region *region, bool taken, uint64_t moved)
{
	if (region->threshold == GATE_THRESHOLD_INFINITE &&
		(moved == 0 || region->options & REGION_REMOTE_OFFSET))
		return false;
	return region_charge(region, taken, moved);
}

/* The queue that events of a region go to now; NULL: there is none, or no longer. */
static inline struct queue *region_queue(const struct region *region)
{
	return queue_alive(region->logs, region->queue);
}

/* The queue that events of an operation go to. */
static inline struct queue *operation_queue(const struct operation *operation)
{
	return queue_alive(operation->logs, operation->queue);
}

/* Events of an operation go to its region's queue from now on. */
static inline void operation_aim(struct operation *operation, const struct region *region)
{
	operation->queue = region->queue;
	operation->logs = region->logs;
}

void region_begin(struct space *space, struct region *region, struct operation *operation);
/* The operation is over: it is no longer pending, then its event is logged, then perhaps the region
 * goes. */
void region_end(struct operation *operation, enum event_kind kind, uint32_t why);
/* After an operation's last event, whose account UNLINK shares: a region that it made inactive
 * (exhausts) leaves, if that is its wish. */
void region_settle_spent(
	struct space *space, struct region *region, const struct account *account, bool exhausts);
static inline void region_settle(
	struct space *space, struct region *region, const struct account *account, bool exhausts)
{
	if (__builtin_expect(exhausts || region->state == REGION_LEAVING, 0))
		region_settle_spent(space, region, account, exhausts);
}

/* Logs an event of an operation, with the region's state. Returns its sequence, 0 without a queue
 * (NULL). logging.h has the same in parts. */
uint64_t region_log(struct space *space, const struct region *region, struct queue *queue,
	enum event_kind kind, const struct account *account);
/* Unlinks it, with an UNLINK event, as soon as nothing is pending. account: what the message that
 * caused it says. */
void region_leave(struct space *space, struct region *region, const struct account *account);
/* Frees a region and, if so made, its entry. */
void region_free(struct space *space, uint32_t index);
void region_attach(struct space *space, uint32_t index, uint32_t generation);
void region_bind(struct space *space, uint32_t index, uint32_t generation);
enum answer region_unlink(struct space *space, uint32_t index, uint32_t generation);
enum answer region_update(struct space *space, const struct command *command, struct reply *reply);

/* entry.c */
struct entry *entry_find(struct space *space, uint32_t index, uint32_t generation);
void entry_attach(struct space *space, const struct command *command);
enum answer entry_insert(struct space *space, const struct command *command);
enum answer entry_unlink(struct space *space, uint32_t index, uint32_t generation);
void entry_free(struct space *space, uint32_t index);

/* incoming.c: transport upcalls */
void incoming_whole(void *context, struct process from, const void *header, uint32_t header_length,
	const void *data, uint32_t length);
void incoming_begin(
	void *context, struct process from, const struct record *record, struct inbound *inbound);
void incoming_end(void *context, void *operation, enum transport_fail why);

/* Sends the short answer to a message: an acknowledgement of a put, for which there is an
 * operation; a refusal of a get, which is repeated if there is none: the initiator asks after the
 * get. */
void notice_send(struct engine *engine, struct process to, const struct message_header *header);
/* The same at the end of the turn, or with what is sent before. */
void notice_send_late(
	struct engine *engine, struct process to, const struct message_header *header);
/* The notices that are late. */
void notices_send(struct engine *engine);

/* Is there memory for a copy that answers a request, beside an operation? A fetch and a load need
 * one (T6, T7) if they ask for COPIED_MAX + 1 to AMO_BYTES_MAX bytes. */
bool answer_granted(struct engine *engine, struct process to, const struct message_header *request);
/* An answer of so many bytes, no more than were granted. The caller writes them where
 * message.memory starts, and sends the message. */
struct operation *answer_begin(struct engine *engine, struct process to, uint64_t bytes);
void answer_end(struct engine *engine, struct operation *answer);

/* Logs a Portals acknowledgement. */
void incoming_acknowledged(
	struct space *space, struct process from, const struct message_header *header);

/* outgoing.c */
/* Keeps an acknowledgement for a put that the transport is not done with; false: there is none. */
bool outgoing_keep(struct engine *engine, struct process from, const struct message_header *ack);
/* There is memory for an operation; the region lives. taken: the put was taken from the threshold
 * in its gate. */
void outgoing_put(struct space *space, struct region *region, const struct move *move, bool taken,
	bool acknowledge);
/* Logs SEND_START of the puts that have begun (O4). */
void outgoing_announce(struct engine *engine);
static inline void engine_announce(struct engine *engine)
{
	if (!STAILQ_EMPTY(&engine->begun))
		outgoing_announce(engine);
}
void outgoing_get(struct space *space, struct region *region, const struct move *move);
/* Inline, so that the header is never in memory. */
static inline void outgoing_send(
	struct engine *engine, struct operation *operation, const struct message_header *header)
{
	struct message *message = &operation->message;

	message->header_length = message_encode(header, message->header);
	transport_send(engine->transport, operation->peer, message);
}
/* A transport upcall. */
void outgoing_done(void *context, struct message *message, enum transport_fail why);
/* A get whose reply will not come: its REPLY_END says why. */
void outgoing_fail(struct engine *engine, struct operation *operation, uint32_t why);
/* A get that waits no longer: it has an answer, or is asked after. */
void outgoing_heard(struct operation *operation);
/* A get whose last event has been logged: freed once its request is also done with. */
void outgoing_finish(struct engine *engine, struct operation *operation);
/* Asks after the targets of gets that have waited long, repeats loads that were refused, and sends
 * words that are owed (credit.h, C5). */
void outgoing_probe(struct engine *engine);
/* ns until outgoing_probe() has something to do; UINT64_MAX: nothing waits. */
uint64_t outgoing_deadline(const struct engine *engine);
/* Appends an operation to engine.waiting, if its request has arrived and its answer has not, or to
 * engine.refused. */
void operation_wait(struct operation *operation, struct link *list);
/* Ends what waits for replies that will not come. */
void outgoing_abandon(struct engine *engine);

/* ping.c */
void ping_begin(struct engine *engine, const struct command *command);
/* COMMAND_HOST_NAME, COMMAND_HOST_FIND. */
void name_command(struct engine *engine, const struct command *command);
void name_done(void *context, struct name_query *query);
/* Transport upcalls. */
void ping_done(void *context, struct ping *ping);
void ping_duplicate(void *context, const uint8_t *address);
void ping_stranger(void *context, struct process process, unsigned version);

/* engine.c */
/* Answers the call that waits at a reply slot. */
void engine_answer(struct engine *engine, uint32_t slot, enum answer answer);
/* The name of a queue in the list of those that have events for sleepers; never 0. */
#define MARK_SPACE_AT 24
static_assert(LIMIT_QUEUES < 1 << MARK_SPACE_AT, "indices fit");
static inline uint32_t queue_mark(const struct space *space, uint32_t index)
{
	return (uint32_t)space->number << MARK_SPACE_AT | (index + 1);
}

static inline struct queue *queue_marked(const struct engine *engine, uint32_t mark)
{
	return segment_queue(engine->opened[mark >> MARK_SPACE_AT]->segment,
		(mark & ((1 << MARK_SPACE_AT) - 1)) - 1);
}

/* A queue has been written: there are events, and its sleepers are woken at the end of the turn.
 * Where the kernel does the light side's part of a barrier, sleepers are seen at once, and mostly
 * there are none; else there is one fence for all queues, in engine_ring(). */
static inline void engine_touch(struct space *space, struct queue *queue)
{
	struct engine *engine = space->engine;

	engine->logged = true;
	if (barrier_cheap) {
		barrier_light();
		if (atomic_load_explicit(&queue->sleepers, memory_order_relaxed) == 0)
			return;
	}
	if (queue->touched != 0)
		return;
	queue->touched = engine->touched + 1;
	engine->touched = queue_mark(
		space, handle_index(atomic_load_explicit(&queue->gate, memory_order_relaxed)));
}

/* The same for a counter that has changed. */
static inline void engine_touch_counter(struct engine *engine, struct event_counter *counter)
{
	engine->logged = true;
	if (barrier_cheap) {
		barrier_light();
		if (!event_counter_wakes(counter))
			return;
	}
	if (counter->touched)
		return;
	counter->touched = engine->changed ? engine->changed : counter; /* the last names itself */
	engine->changed = counter;
}

/* The object that a handle of a counter names, whether it lives or not; NULL: 0, or there is
 * none. */
static inline struct event_counter *counter_named(const struct segment *segment, uint64_t handle)
{
	uint32_t index = handle_index(handle);

	return handle != 0 && index < segment->limits.counters ? segment_counter(segment, index)
							       : NULL;
}

/* Wakes the sleepers of all queues in the list. The barrier pairs with that of a reader between
 * raising `sleepers` and looking once more at its queue: one of the two sees the other. */
void sleepers_wake(struct engine *engine);

/* Wakes those that sleep for events of this turn. */
static inline void engine_ring(struct engine *engine)
{
	engine->logged = false;
	if (engine->touched != 0 || engine->changed)
		sleepers_wake(engine);
}

/* Where the space is known, its own count. A file that counts includes engine/statistics.h. */
#define engine_count(engine, counter)                                                              \
	do {                                                                                       \
		counter_add(&segment_counters((engine)->segment)->counter, 1);                     \
		PROBE_COUNTER(#counter, (engine)->self.nid, (engine)->self.pid);                   \
	} while (0)
/* A request was dropped because its user is not admitted; the line says by what, and in which
 * counter. At level info, once for each process; later ones of many are only counted. */
void space_deny(struct space *space, struct process from, const struct message_header *header,
	const char *by, const char *counter);
#define space_count(space, counter)                                                                \
	do {                                                                                       \
		counter_add(&segment_counters((space)->segment)->counter, 1);                      \
		PROBE_COUNTER(#counter, (space)->engine->self.nid, (space)->engine->self.pid);     \
	} while (0)

#endif
