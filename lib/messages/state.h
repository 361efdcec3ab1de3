/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - what the files of lib/messages share; nobody else includes it. */
#ifndef MESSAGES_STATE_H
#define MESSAGES_STATE_H

#include <stddef.h>

#include <engine/command.h>
#include <engine/credit.h>
#include <engine/fetch.h>
#include <engine/tier.h>
#include <host/events.h>
#include <messages/messages.h>

#define ENTRIES        51200 /* and regions without one */
#define RECEIVES_MAX   16384 /* M6 */
#define SENDS_MAX      16384
#define UNANSWERED_MAX 16384 /* M12: under way */
#define LONGER_MAX     40960 /* M6: longer sends that have an entry */
#define SEEN_MAX       8192  /* M6 */
#define PARTS_MAX      8192  /* M6, M11: a space without SEEN has these */
#define PARTS_EACH     4096  /* of a buffer */
#define PART_UNIT      64
#define CHUNK_SLOTS    64
#define CHUNKS_MAX     16 /* of a peer and a size of slots */
#define SLOT_SMALL     256
#define SHARE_ENOUGH   4096                /* M12: the words for credit cost nothing to speak of */
#define BLOCK_BYTES    (UINT64_C(1) << 20) /* at least, */
#define BLOCKS         16                  /* or as much as makes so many */
/* M5. Of a peer at first. Where ranks are so many that all of them together would have more than
 * the other number, they have that together; one each at least. */
#define SHARE_FIRST   64
#define SHARES_FIRST  (UINT32_C(1) << 16)
#define BLOCKS_LINKED 1024 /* at a time, at most */

enum { PORTAL_MATCH, PORTAL_SIDE = FETCH_PORTAL, PORTAL_GREETINGS, PORTAL_SECOND, PORTALS };
#define CLASSES 2
#define VECTORS 1024 /* longer messages of several pieces that move at a time */

/* The message of a value (engine/fetch.h) wants no answer, and is fetched from nowhere. */
#define VALUE_IS_UNANSWERED(value) (((value) & ~VALUE_MARKED) == 0)
/* Match bits on the side Portal, beside a chunk's name: of a fetch that says nothing of a receive
 * (M3). */
#define BITS_EARLY (UINT64_C(1) << 41)
static_assert(MESSAGES_WORD == WORD_BITS, "what a word's kind leaves");

struct chunk;

struct slot {
	union {
		uint8_t kind;
		struct outcome outcome; /* of its ACK */
	};
	bool used, synchronous, acknowledged, kept, fetched;
	uint32_t index;
	uint64_t length;
	struct chunk *chunk;
	struct transfer *message; /* NULL: it is done */
};

struct chunk {
	uint8_t kind;
	uint32_t peer;
	uint32_t name;
	uint32_t room; /* bytes of a slot: SLOT_SMALL at most, or all that is eager */
	struct chunk *next;
	uint64_t free;  /* a bit for each slot */
	uint32_t entry; /* index and generation */
	uint32_t generation;
	struct slot slots[CHUNK_SLOTS];
	char memory[];
};

struct block {
	uint8_t kind;
	uint8_t class;
	struct block *next; /* spare */
};

struct tell {
	uint8_t kind;
	bool busy, again;
	uint32_t peer;
};

struct peer {
	struct dispatch dispatch; /* of letters to it, first: `lost` is of ITEM_DISPATCH */
	uint64_t letters;         /* M12: so many were sent to it */
	uint64_t flying;          /* no ACK is here */
	struct credit credit;     /* M5 */
	uint64_t freed;           /* as the program has heard: credit_refresh() */
	uint64_t asked;           /* M12: for more than this share, last */
	uint64_t told;            /* of credit->taken, that the peer knows of */
	struct chunk *chunks;     /* newest first */
	unsigned chunk_count;
	unsigned chunks_small; /* of them */
	struct link waiting;   /* sends */
	struct link begun;     /* longer sends, in the order of their names */
	struct link link;      /* in messages.blocked */
	bool blocked, failed;
	bool asks;   /* M12: the next message wants an answer */
	bool joined; /* `self` is known */
	bool dismissed;
	bool stranger;       /* it failed because it does not know this process */
	bool closed;         /* it failed because its process has ended, or is not there */
	bool carried;        /* a message to it was begun, or one of it was matched */
	uint32_t self;       /* name of this process at the peer */
	uint32_t uses;       /* of the number */
	uint32_t fetches;    /* by receives, that were not answered */
	uint32_t longer;     /* sends in `begun` */
	uint32_t names;      /* of the last longer send */
	uint32_t vectors;    /* of its messages, which have a region */
	struct link retired; /* in the list of those whose number is free */
	struct tell tell;
	struct tell alive;
};

/* What becomes of the message that is shown (shown.c). */
enum { SHOW_NOTHING, SHOW_ASKED, SHOW_FETCHED, SHOW_READY, SHOW_SHOWN };

/* What a probe has found. */
struct probe {
	uint8_t kind;
	bool found;
	struct message_found what;
};

/* One of a receive's many messages, while its data is fetched. */
struct part {
	struct transfer transfer; /* first */
	struct transfer *receive;
	struct link link;
};

/* What an event says. */
struct message_event {
	uint8_t kind, tier, verdict;
	uint32_t peer;
	struct process from; /* without a rank */
	uint64_t user, start, value, bits, requested, moved, offset;
};

struct messages {
	struct messages_options options;
	uint64_t handle;    /* of the interface */
	struct visit visit; /* that is going on, or was the last */
	uint32_t number;    /* of that + 1 */
	/* when it was found open; EPOCH_NEVER: it was not, or each visit must look */
	uint64_t epoch;
	struct queue_view queue; /* for all events */
	uint64_t queue_handle;
	uint32_t region; /* all memory, to send from and fetch into */
	uint32_t generation;
	uint64_t share; /* M5: the least */
	uint32_t posted;
	uint32_t flying;
	bool waits_post;        /* a receive's command may wait in the ring */
	uint64_t arrived;       /* messages, when messages_progress() looked last */
	uint64_t told_of;       /* of them, whose events were here, or that receives have taken; not
			  those that messages_dismiss() has removed */
	uint64_t letters_below; /* M12: messages of so many bytes and more want an answer */
	uint64_t letters;       /* so many were sent, */
	_Atomic uint64_t letters_ended; /* and so many have ended */
	uint64_t pending;               /* slots in use, and longer sends that have begun or wait */
	uint32_t longer, vectors;       /* of all peers */
	bool disabled;                  /* the side Portal */
	bool waits;                     /* perhaps: something that waits_resume() goes on with */
	struct link waiting[CLASSES];   /* receives that are not linked, in order */
	uint32_t parts;                 /* that receives for many, which are linked, may get */
	struct link fetched;            /* parts whose data is on its way */
	struct link leaving;            /* receives for many that were cancelled and are linked */
	struct link unbound;            /* receives whose fetch waits for a region, or a name */
	struct link blocked;            /* peers with sends that wait */
	/* shown.c */
	struct link unexpected; /* all */
	struct link seen;       /* oldest first */
	struct link parked;     /* receives that match the one that is on its way */
	struct unexpected *showing;
	uint8_t show;
	bool unseen;         /* there were headers when they were looked for last */
	uint64_t searched;   /* messages, then */
	uint64_t seen_bytes; /* of all */
	uint32_t seen_count;
	struct block *spare;
	struct block *blocks; /* all */
	char *memory;         /* theirs */
	uint32_t blocks_made, blocks_max;
	uint32_t linked[CLASSES]; /* blocks */
	uint8_t told;             /* ITEM_TOLD */
	uint8_t greeted;          /* ITEM_GREETED */
	/* by peer: of headers, here, beyond the least; the poll core writes them (M5) */
	_Atomic uint32_t *shares;
	struct process *map;   /* of peers that come, then their names; the poll core reads both */
	uint32_t known;        /* of them */
	struct link retired;   /* peers whose numbers are free, for the longest time first */
	uint64_t reviewed;     /* when peers were asked for a sign of life last, ns */
	struct tell user_word; /* words of the user's */
	struct peer peers[];
};

/* M8. The first use of each number: another one than in earlier lives of the process id. */
static inline uint32_t messages_life(const struct messages *messages)
{
	return interfaces[handle_interface(messages->options.interface)].incarnation;
}

static inline struct process process_of_peer(const struct messages *messages, uint32_t peer)
{
	return messages->options.peers ? messages->options.peers[peer] : messages->map[peer];
}

/* Bytes of a message whose data may be kept here: a letter's is, whatever its sender's `eager`. */
static inline uint64_t kept_most(const struct messages *messages)
{
	return messages->options.eager < COPIED_MAX ? COPIED_MAX : messages->options.eager;
}

/* Where messages of a class are matched. */
static inline unsigned class_portal(unsigned class)
{
	return class == 0 ? PORTAL_MATCH : PORTAL_SECOND;
}

static inline uint64_t item_name(const void *item)
{
	return (uintptr_t)item;
}

/* An entry of a Portal, as its user says it. */
struct entry_wish {
	unsigned portal, tier;
	bool first;
	uint64_t bits, ignore;
	uint32_t peer; /* UINT32_MAX: any */
	void *start;
	const struct map_vector *vector;
	uint64_t length;
	uint64_t min_free;
	uint32_t most, unit;
	uint8_t options, flags;
	uint32_t log;
	const void *item;
};

/* A message in the caller's memory begins. The other members are set when their
 * values are known. */
static inline void transfer_begin(struct transfer *message, enum messages_kind kind, uint8_t class,
	uint32_t peer, uint64_t bits)
{
	message->kind = (uint8_t)kind;
	message->synchronous = message->late = message->marked = message->posted = false;
	message->class = class;
	message->acknowledged = message->kept = message->fetched = message->seen = false;
	message->peer = peer;
	message->bits = bits;
	message->region = 0;
	message->many = NULL;
	message->link.next = NULL;
}

/* A receive that is not posted waits no more. One that began after the space had closed is in no
 * list. */
static inline void receive_unlist(struct transfer *receive)
{
	if (link_listed(&receive->link))
		link_remove(&receive->link);
}

/* messages.c */
/* messages_visit() where the last visit says nothing of this one. */
bool messages_visit_first(struct messages *messages);
/* Begins a visit, which visit_leave() ends. Returns false if the space is closed. Mostly the last
 * visit was this thread's, and in this epoch (visitor.h, V4). */
static inline bool messages_visit(struct messages *messages)
{
	struct visitor *self = visitor_self;

	if (!self || self != messages->visit.visitor)
		return messages_visit_first(messages);
	/* If it is not cheap, the epoch sends each visit to messages_visit_first(). */
	visitor_enter_cheap(self, messages->number);
	return __builtin_expect(epoch_now() == messages->epoch, 1) ||
	       messages_visit_first(messages);
}

/* Returns false without an index. */
bool entry_append(struct messages *messages, const struct entry_wish *wish, uint32_t *index,
	uint32_t *generation);
/* Returns false if the entry has been used, or is in use. */
bool entry_withdraw(struct messages *messages, uint32_t index, uint32_t generation);
/* Begins a store or a load. */
void move_post(struct messages *messages, const struct move *move, const struct rma_line *line);
/* The same to a peer; what is not said of it and of the region is filled in. */
void rma_command_post(
	struct messages *messages, struct move *move, const struct rma_line *line, uint32_t peer);
/* The same from or into a message's memory. */
void message_rma(struct messages *messages, const struct transfer *message, struct move *move,
	struct rma_line *line);
/* Makes a region of a longer message's pieces, if it has several. Returns false if the message has
 * to wait for one. */
bool vector_bind(struct messages *messages, struct transfer *message);
void vector_unbind(struct messages *messages, struct transfer *message);
static inline void vector_release(struct messages *messages, struct transfer *message)
{
	if (message->region != 0)
		vector_unbind(messages, message);
}

void peer_lose(struct messages *messages, uint32_t peer, enum tier_verdict verdict);
void messages_finish(
	struct messages *messages, struct transfer *message, enum transfer_result result);
void credit_count(struct messages *messages, uint32_t peer);
/* M5. Is a peer to be told now how many of its messages have been taken? */
bool credit_is_due(const struct messages *messages, const struct peer *peer);
void credit_post(struct messages *messages, struct peer *peer);
/* All events that are here. Returns how many there were. */
unsigned events_read(struct messages *messages);
/* The same, and what they make possible. */
unsigned events_run(struct messages *messages);

/* blocks.c */
/* What so many headers leave of the memory. */
uint64_t memory_left(const struct messages_options *options, uint64_t headers);
/* What headers leave is for blocks. Returns false without memory. */
bool blocks_open(struct messages *messages);
void blocks_close(struct messages *messages);
/* All blocks are linked as long as there is memory: the poll core keeps messages in them however
 * long the program makes no call, so its senders go on. Memory of a block is used as it fills. */
void blocks_renew(struct messages *messages);
/* An event of a block's entry. */
void block_heard(struct messages *messages, struct block *block, const struct message_event *event);

/* peers.c */
/* The peers, as the poll core is to know them; names: theirs follow. */
bool map_tell(struct messages *messages, const struct process *map, uint32_t count, bool names);
/* From now on the engine refuses what the peer sends, and the refusals tell the peer that it was
 * given up. Returns false without memory. */
bool peer_shut_out(struct messages *messages, uint32_t peer);
/* The number is for a new peer, or for none yet. */
void peer_reset(struct messages *messages, uint32_t index, uint32_t uses);

/* outbound.c */
void sends_resume(struct messages *messages);
/* M9. */
void sends_abandon(struct messages *messages, struct peer *peer);
/* M9. Gives back the slots of peers that failed, as far as nothing refers to them. */
void chunks_retire(struct messages *messages);
/* Is nothing under way that was sent to a peer which failed? */
bool sends_ended(const struct peer *peer);
/* M5. A peer was heard of, which may have freed some of its share. While one is to ask, no message
 * finds credit that may go unanswered. */
static inline void credit_refresh(struct peer *peer)
{
	peer->freed = peer->asks ? atomic_load_explicit(&peer->credit.sent, memory_order_relaxed) -
					   UINT32_MAX
				 : atomic_load_explicit(&peer->credit.freed, memory_order_relaxed);
}
/* M12. A message that needed no answer was not delivered. */
void dispatch_lost(struct messages *messages, struct peer *peer);
/* How many messages that need no answer are under way. */
uint64_t letters_under_way(const struct messages *messages);
bool send_abandon(struct messages *messages, struct transfer *message);
void slot_acknowledged(struct messages *messages, struct slot *slot);
void send_acknowledged(struct messages *messages, struct transfer *message);
void chunk_fetched(
	struct messages *messages, struct chunk *chunk, const struct message_event *event);
void send_fetched(
	struct messages *messages, struct transfer *message, const struct message_event *event);

/* shown.c */
/* A receive begins, behind those that are parked. */
void shown_begin(struct messages *messages, struct transfer *receive);
/* Returns true if a receive has got a message, or waits for one that is on its way. */
bool shown_meet(struct messages *messages, struct transfer *receive);
void parked_resume(struct messages *messages);
void shown_heard(
	struct messages *messages, struct transfer *message, const struct message_event *event);
void shown_done(struct messages *messages, struct transfer *message);
/* The same of a message that was taken. */
void taken_heard(
	struct messages *messages, struct transfer *message, const struct message_event *event);
void taken_done(struct messages *messages, struct transfer *message);
/* A receive is given up. Returns true if its message had been kept, and is on its way here: it is
 * discarded when it has come. */
bool taken_pass(struct messages *messages, struct transfer *receive);
/* Nobody gets its data. Returns false if its sender waits to hear that: then a fetch of nothing
 * tells it, and shown_done() or taken_done() follows. */
bool unexpected_ends(struct messages *messages, struct unexpected *unexpected);
struct unexpected *shown_find(const struct messages *messages, uint32_t peer, uint64_t bits,
	uint64_t ignore, bool claimed);
/* Those that were shown have as much memory as they may have. */
bool shown_is_full(const struct messages *messages);
void shown_dismiss(struct messages *messages, uint32_t peer);
void shown_close(struct messages *messages);
/* Searches what is kept, during a visit. flags: ATTACHMENT_ONCE: for the oldest that matches, else
 * for all; ATTACHMENT_HERE: that is here. log: events that name the item. As COMMAND_SEARCH is
 * answered. */
enum answer kept_search(struct messages *messages, const void *item,
	const struct receive_wish *wish, uint8_t flags, uint32_t log, bool remove);

/* Does no message that was, or is to be, shown name the peer? */
bool shown_ended(const struct messages *messages, uint32_t peer);

/* many.c */
bool many_post(struct messages *messages, struct transfer *receive);
void many_heard(
	struct messages *messages, struct transfer *receive, const struct message_event *event);
void part_done(struct messages *messages, struct transfer *part);
void many_cancel(struct messages *messages, struct transfer *receive);
/* Those that were cancelled end, when all of their events have been handled. */
void many_leave(struct messages *messages);
/* Does none that was cancelled wait for messages of the peer? */
bool many_ended(const struct messages *messages, uint32_t peer);
void many_close(struct messages *messages);

/* inbound.c */
/* What an event says of a message that has come for a receive. */
void receive_told(
	struct messages *messages, struct transfer *message, const struct message_event *event);
/* The same of receives that fetch, or are to. */
bool receives_ended(const struct messages *messages, uint32_t peer);
void receive_start(struct messages *messages, struct transfer *message);
/* The sender of a message hears that nobody needs its data: a fetch of nothing, whose end is
 * nobody's. */
void fetch_nothing(struct messages *messages, const struct transfer *message);
/* Fetches so many bytes of what a message's sender has. */
void fetch_post(struct messages *messages, struct transfer *message, uint64_t length);
void receives_resume(struct messages *messages);
void fetches_resume(struct messages *messages);
void receive_placed(struct messages *messages, struct transfer *message);
void receive_kept(
	struct messages *messages, struct transfer *message, const struct message_event *event);
/* A receive gets a message that was shown or taken, as if the poll core had given it. */
void receive_unexpected(struct messages *messages, struct transfer *message,
	const struct unexpected *unexpected, enum tier_verdict verdict);
void receive_fetched(
	struct messages *messages, struct transfer *message, const struct message_event *event);

#endif
