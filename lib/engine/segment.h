/* SPDX-License-Identifier: BSD-3-Clause */
/* segment.h - the memory that application threads and the poll core share: one mapping per
 * interface.
 *
 *     attachments, matches
 *     entries, replies   where a waiting call finds the poll core's word
 *     struct segment     offsets, limits, the doorbell, counters
 *     portals, access, queues, counters
 *     free lists         of indices: entries, regions, queues, counters, replies
 *     commands           ring of struct command, application to poll core
 *     regions
 *     events             memory for the events of all queues, allocated by the application side
 *
 * Attachments, entries, replies and regions grow downwards, from the beginning of the next table.
 *
 * I1. Objects name each other by index. Pointers are only what a region says of the program's
 *     memory (struct region: start, vector, logs) and of its queue.
 * I2. Each word has one writer: the application, or the poll core. Those that both write are marked
 *     "shared" and are atomic.
 * I3. An object in a free list belongs to nobody; the application thread that took its index owns
 *     it until the command that brings it to life is in the ring; from then on it is the poll
 *     core's, which alone gives the index back.
 * I4. `gate` of an object holds its generation in the high half, 0 while it is dead. The poll core
 *     clears it when the object dies, before its index is given back; so a handle whose generation
 *     differs is stale for good (gate_is()).
 * I5. The memory is the process's own. Indices and handles that come through calls or commands are
 *     checked against the limits; what lies in the objects is trusted.
 */
#ifndef ENGINE_SEGMENT_H
#define ENGINE_SEGMENT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <base/core.h>
#include <base/freelist.h>
#include <base/ring.h>
#include <engine/answer.h>
#include <engine/counter.h>
#include <engine/tier.h>
#include <match/match.h>
#include <transport/transport.h>

#define CACHE_LINE   64
#define INDEX_NONE   FREELIST_NONE
#define COMMAND_RING 4096 /* lines of waiting commands at most; a power of two */
static_assert((COMMAND_RING & (COMMAND_RING - 1)) == 0, "a power of two");
#define REPLY_SLOTS 256 /* waiting calls at once; further ones wait for a slot */

#define LIMIT_ENTRIES  1048576 /* what an interface may be asked for at most */
#define LIMIT_REGIONS  1048576
#define LIMIT_QUEUES   65536
#define LIMIT_PORTALS  65536
#define LIMIT_ACCESS   65536
#define LIMIT_COUNTERS 65536

struct segment_limits {
	uint32_t entries; /* counts, not largest indices */
	uint32_t regions;
	uint32_t queues;
	uint32_t portals;
	uint32_t access;
	/* SPACE_TIERS: 0 for others */
	uint32_t counters;
	uint32_t unexpected; /* headers of messages that the second tier took */
	uint32_t receives;   /* that are posted at a time (letters.h) */
	/* The first of the regions belong to the entries of the same index, so many; the free
	 * list has those behind them, and counts from there. A region may also have the index of
	 * an entry that is not made. SPACE_TIERS: as many as there are entries; 0 for others. */
	uint32_t attached;
	uint32_t list_length; /* entries in one match list */
	uint64_t event_bytes;
	/* of a space beside an engine's first, whose ring and reply slots serve all: it has
	 * none */
	bool further;
};

/* The gate of a region: generation, and operations that may still begin. shared: a sending thread
 * takes one operation with the same compare-and-swap that checks its handle; the poll core takes
 * one for each operation that comes from outside. region.threshold is the poll core's own count, of
 * operations that have begun: it exceeds the gate's by the sends that still wait in the ring, so
 * the region is used up when region.threshold, not the gate, is 0. */
#define GATE_THRESHOLD_INFINITE 0xffffffffu
/* The gate of an entry, low half: does it have a region? */
#define GATE_ATTACHED 1u

static inline uint64_t gate_make(uint32_t generation, uint32_t low)
{
	return (uint64_t)generation << 32 | low;
}

static inline uint32_t gate_generation(uint64_t gate)
{
	return (uint32_t)(gate >> 32);
}

static inline uint32_t gate_low(uint64_t gate)
{
	return (uint32_t)gate;
}

/* Does a gate belong to a living object of this generation? */
static inline bool gate_is(uint64_t gate, uint32_t generation)
{
	return generation != 0 && gate_generation(gate) == generation;
}

/* Takes one operation from the threshold in a region's gate, with the same step that sees that the
 * region lives; false: it is dead, or none is left. *taken: the threshold has a bound, so the poll
 * core is to take one from its own count. Relaxed order is enough: the gate publishes no other
 * data; the command ring does. */
static inline bool gate_take(_Atomic uint64_t *gate, uint32_t generation, bool *taken)
{
	uint64_t seen = atomic_load_explicit(gate, memory_order_relaxed);

	do {
		if (gate_generation(seen) != generation || gate_low(seen) == 0)
			return false; /* a dead one's is 0 */
		*taken = gate_low(seen) != GATE_THRESHOLD_INFINITE;
		if (!*taken)
			return true;
	} while (!atomic_compare_exchange_weak_explicit(
		gate, &seen, seen - 1, memory_order_relaxed, memory_order_relaxed));
	return true;
}

enum region_option {
	REGION_PUT = 1, /* accepts puts */
	REGION_GET = 2, /* accepts gets */
	REGION_REMOTE_OFFSET =
		4,           /* the request says where in the region; else after the last one */
	REGION_TRUNCATE = 8, /* a request that is longer than the room is shortened */
	REGION_NO_ACK = 16,  /* puts are not acknowledged */
	REGION_OPTIONS = 31
};

/* A region as a caller describes it, and as events report it. */
struct region_description {
	uint64_t start;      /* an address of the owner's */
	uint64_t length;     /* bytes */
	uint64_t user;       /* never looked at */
	uint64_t queue;      /* handle, 0: log nothing */
	uint32_t threshold;  /* operations, or GATE_THRESHOLD_INFINITE */
	uint32_t max_offset; /* bytes */
	uint32_t options;
	uint32_t reserved;
};
static_assert(sizeof(struct region_description) == 48, "copied as words");

/* leaving: accepts nothing, freed when pending is 0 */
enum region_state { REGION_FREE, REGION_LIVE, REGION_LEAVING };

/* A memory region: an MD. */
struct region {
	/* line 0: what mostly stays from one operation to the next, so that senders who check the
	 * gate find it in their cache */
	_Alignas(CACHE_LINE) _Atomic uint64_t gate; /* shared */
	uint8_t options;                            /* enum region_option */
	/* the poll core's: REGION_PUT, REGION_GET, as long as its gate is not spent; R4 in
	 * region.c */
	uint8_t accepts;
	uint16_t extra; /* the front end's own: options that are none of the engine's */
	/* which of its events are logged: EVENT_BIT() of each kind; by the application */
	uint32_t log;
	/* what events tell of it, as words EVENT_REGION to EVENT_QUEUE, which are copied in
	 * pairs */
	uint64_t handle; /* its own */
	uint64_t start;
	uint64_t length;
	/* filled in by the application, then the poll core's; GATE_THRESHOLD_INFINITE: no bound */
	uint32_t threshold;
	uint32_t max_offset;
	uint64_t user;
	uint64_t queue; /* handle */
	/* line 1: what operations change */
	_Alignas(CACHE_LINE) uint64_t offset; /* locally managed */
	uint32_t pending;                     /* operations begun and not ended */
	uint8_t state;                        /* enum region_state */
	bool unlink_op;                       /* free once inactive after an operation */
	bool unlink_nofit;                    /* free when a matching message does not fit */
	uint32_t entry;                       /* its match entry, INDEX_NONE: free-floating */
	uint32_t entry_generation;            /* of `entry`, for the command that attaches it */
	/* REGION_LEAVING: link of the UNLINK event to come; 0: its own sequence */
	uint64_t unlink_link;
	struct queue *logs; /* what `queue` names, alive or not; NULL: nothing */
	/* its memory's pieces (map.h), of which `start` is an offset; NULL: one piece */
	const struct map_vector *vector;
};
static_assert(sizeof(struct region) == 2 * CACHE_LINE, "region: two lines");

/* A match entry: an ME. What a search looks at is in a table of its own, struct match_entry, of
 * which more then fits into a cache; among it the index of the entry's region, INDEX_NONE while it
 * has none. */
struct entry {
	/* shared: attached is set by the application, cleared by the poll core */
	_Atomic uint64_t gate;
	/* relaxed: others who insert next to it read it, before they know that it lives */
	_Atomic uint32_t portal;
	bool unlink; /* goes when its region goes */
	bool linked; /* in its list */
};
static_assert(sizeof(struct match_entry) == CACHE_LINE, "match entry: one line");
static_assert(sizeof(struct entry) == CACHE_LINE / 4, "the rest of four entries: one line");

/* A Portal: the application counts entries on its lists, so that it can refuse a list that is too
 * long without waiting. */
struct portal {
	/* by tier; the first alone where there are none. shared: application adds before it
	 * attaches, poll core subtracts */
	_Atomic uint32_t length[TIERS];
	/* SPACE_TIERS, enum portal_state. shared: the application makes CLAIMED of FREE, all else
	 * is the poll core's */
	_Atomic uint32_t state;
};

/* claimed: not open yet, no message and no entry comes to it */
enum portal_state { PORTAL_FREE, PORTAL_CLAIMED, PORTAL_ENABLED, PORTAL_DISABLED };

/* SPACE_TIERS: what a region has beside struct region. Filled in by the application like the
 * region; then the poll core's. */
struct attachment {
	_Alignas(CACHE_LINE) uint64_t counter; /* handle, 0: none */
	struct event_counter *counted;         /* what it names, alive or not; the poll core's */
	uint16_t counts;                       /* TIER_BIT() of the kinds of events that count */
	uint8_t flags;                         /* ATTACHMENT_... */
	uint8_t tier;                          /* of an entry, as what follows */
	uint32_t uid;                          /* whose messages it admits; UINT32_MAX: all */
	uint64_t min_free; /* less room behind the local offset unlinks it; 0: never */
	uint32_t headers;  /* that refer to its memory (unexpected.h); the poll core's */
	uint32_t places;   /* kept in the queue for its last events; the poll core's */
	uint32_t most;     /* bytes: longer messages pass it over; 0: none does */
	/* a power of two: each message moves the local offset by a multiple of it, so that only so
	 * many messages have room; 0: by its length */
	uint32_t unit;
	uint64_t base; /* what offsets count from that requests bring */
};
static_assert(sizeof(struct attachment) == CACHE_LINE, "attachment: one line");

/* By how much a message of so many bytes moves a local offset, which has so much room behind it. */
static inline uint64_t offset_step(uint64_t unit, uint64_t length, uint64_t room)
{
	uint64_t step = length;

	if (unit != 0)
		step = ((length > 0 ? length : 1) + unit - 1) & -unit;
	return step < room ? step : room;
}

#define ATTACHMENT_BYTES      1 /* counts bytes */
#define ATTACHMENT_ONCE       2 /* takes one message */
#define ATTACHMENT_NO_HEADERS 4 /* in the second tier: its messages leave no headers */
/* in the first tier: the local offset grows by the length of each header that it takes */
#define ATTACHMENT_GROWS    8
#define ATTACHMENT_UNLINKED 16 /* the poll core's: UNLINK has been logged */
#define ATTACHMENT_HERE     32 /* of a search: for what has arrived (unexpected.h, U5) */
/* `user` is a struct tally (tally.h), which counts what `counts` says instead of a counter */
#define ATTACHMENT_TALLY   64
#define ATTACHMENT_OPTIONS (15 | ATTACHMENT_TALLY)

/* Whom an access control entry admits (access.h), the poll core's: what a message must bring, and
 * ones where that counts. */
struct access_entry {
	uint64_t process; /* nid and pid */
	uint64_t process_mask;
	uint64_t target; /* uid and Portal */
	uint64_t target_mask;
};

/* Kinds of events. A FAILED takes the place of the END before it and says why. */
enum event_kind {
	EVENT_GET_START, /* target */
	EVENT_GET_END,
	EVENT_GET_FAILED,
	EVENT_PUT_START,
	EVENT_PUT_END,
	EVENT_PUT_FAILED,
	EVENT_REPLY_START, /* initiator */
	EVENT_REPLY_END,
	EVENT_REPLY_FAILED,
	EVENT_SEND_START,
	EVENT_SEND_END,
	EVENT_SEND_FAILED,
	EVENT_ACK,
	EVENT_UNLINK, /* the region left by itself */
	EVENT_KINDS
};

/* In the masks of a region. */
#define EVENT_BIT(kind) (UINT32_C(1) << (kind))
#define EVENTS_ALL      (EVENT_BIT(EVENT_KINDS) - 1)

/* A reason beside those of enum transport_fail: the target discarded the get. */
#define FAIL_UNDELIVERABLE 4
/* in link, of an event that is not logged yet: its own sequence */
#define LINK_OWN UINT64_MAX

/* The message that an event reports: words EVENT_INITIATOR to EVENT_OFFSET, EVENT_VALUE and
 * EVENT_LINK. */
struct account {
	union {
		struct {
			uint32_t nid; /* initiator */
			uint32_t pid;
		};
		uint64_t initiator;
	};
	union {
		struct {
			uint32_t uid;
			uint32_t portal;
		};
		uint64_t target;
	};
	uint64_t match_bits;
	uint64_t requested; /* bytes */
	uint64_t moved;     /* bytes */
	uint64_t offset;
	uint64_t value; /* header data */
	union {
		uint64_t link;
		uint64_t amo; /* SPACE_TIERS: of atomics, as message_amo() */
	};
};

/* The words of an event. Those that a front end gives away side by side are neighbours, so that it
 * copies pairs of them at once. */
enum {
	EVENT_FIRST, /* what says that the slot may be read, and attributes: below */
	EVENT_SEQUENCE,
	EVENT_INITIATOR, /* nid, pid */
	EVENT_TARGET,    /* uid, portal */
	EVENT_MATCH_BITS,
	EVENT_REQUESTED,
	EVENT_MOVED,
	EVENT_OFFSET,
	/* the region just after the event, as do the words up to EVENT_QUEUE, and the options */
	EVENT_REGION,
	EVENT_START,
	EVENT_LENGTH,
	EVENT_BOUNDS, /* threshold, max_offset */
	EVENT_USER,
	EVENT_QUEUE,
	EVENT_VALUE,
	EVENT_LINK,
	EVENT_WORDS
};
static_assert(offsetof(struct region, queue) - offsetof(struct region, handle) ==
			      (EVENT_QUEUE - EVENT_REGION) * sizeof(uint64_t) &&
		      offsetof(struct region, threshold) - offsetof(struct region, handle) ==
			      (EVENT_BOUNDS - EVENT_REGION) * sizeof(uint64_t) &&
		      offsetof(struct region, handle) % 16 == 0 && EVENT_REGION % 2 == 0,
	"what events tell of a region lies as they have it");

/* The attributes of an event: the low bits of its first word, the region's options the lowest. */
#define EVENT_OPTIONS(first) ((uint32_t)(first)&REGION_OPTIONS)
#define EVENT_AFTER_GAP      (1u << 7) /* events were lost just before this one */
#define EVENT_FAIL_AT        8         /* enum transport_fail, or FAIL_UNDELIVERABLE */
#define EVENT_FAIL(first)    ((uint32_t)(first) >> EVENT_FAIL_AT & 7)
#define EVENT_KIND_AT        11
#define EVENT_KIND(first)    ((uint32_t)(first) >> EVENT_KIND_AT & 15)
#define EVENT_PAIR_AT        15 /* the slot holds two events, a START and its END: queue.h */
#define EVENT_PAIR           (1u << EVENT_PAIR_AT)
#define EVENT_PLACE_AT       16 /* above the attributes: slot_word() */
static_assert(EVENT_KINDS <= 16 && FAIL_UNDELIVERABLE <= 7 && TRANSPORT_SHUTDOWN <= 7 &&
		      REGION_OPTIONS < EVENT_AFTER_GAP,
	"attributes fit");
#define EVENT_FOLLOWS(operation)                                                                   \
	static_assert(EVENT_##operation##_END == EVENT_##operation##_START + 1 &&                  \
			      EVENT_##operation##_FAILED == EVENT_##operation##_END + 1,           \
		"END follows START, and FAILED follows END")
EVENT_FOLLOWS(GET);
EVENT_FOLLOWS(PUT);
EVENT_FOLLOWS(REPLY);
EVENT_FOLLOWS(SEND);
#undef EVENT_FOLLOWS

/* Readers may race with the writer, and throw away what they read. */
struct event_slot {
	_Alignas(CACHE_LINE) _Atomic uint64_t words[EVENT_WORDS];
};
static_assert(sizeof(struct event_slot) == 2 * CACHE_LINE, "event slot: two lines");
#define EVENTS_MAX (UINT32_C(1) << 30) /* of one queue */

/* The first word, without attributes, of a position's event: never 0, so that it differs from fresh
 * memory. Positions come again after 2^47 events. */
static inline uint64_t slot_word(uint64_t position)
{
	return (position << 1 | 1) << EVENT_PLACE_AT;
}

enum { WATCH_NONE, WATCH_RAISED, WATCH_LOWERING, WATCH_ARMED };

/* What became of a message, in memory of the program's: outcome.h. */
struct outcome {
	uint8_t kind; /* the program's */
	uint8_t verdict;
	uint8_t tier;  /* that has taken it; of a receive 1: the message had been kept */
	uint32_t peer; /* rank */
	uint32_t slot; /* of a receive that is posted (letters.h); the poll core's */
	uint32_t told; /* so many have been told with it */
	uint64_t bits, value, requested, moved, offset;
	struct outcome *next;
};

/* Messages to a peer that nobody answers, in memory of the program's: letters.h. */
struct dispatch {
	struct outcome lost;    /* told once: one was not delivered */
	_Atomic bool told;      /* `lost` is in the list; its reader clears this */
	_Atomic uint64_t ended; /* so many have been delivered, or will not be; the poll core's */
	_Atomic uint64_t *all;  /* the same of all peers of the program */
};

/* What a program has in use of a rank's headers, and a rank of the program's: credit.h. In the
 * program's memory. */
struct credit {
	_Atomic uint64_t sent;  /* the program's: messages to the rank, ever */
	_Atomic uint64_t freed; /* of them, those that count no more */
	_Atomic uint32_t share; /* at the rank: so many may count at a time */
	_Atomic uint32_t quiet; /* of it, for messages that want no answer */
	/* the poll core's: how many were answered as placed, and told as taken; the share that the
	 * rank wants this program to have, 0: any */
	uint64_t placed, credited, wanted;
	uint32_t takes; /* the poll core's: so often has the rank asked for some of the share */
	/* the program's: its name at the rank, which its messages bring as their cookie, or
	 * RANK_NONE; the poll core fetches by it what it has memory for (unexpected.h, U7) */
	_Atomic uint32_t self;
	_Atomic uint64_t taken; /* the program's: messages of the rank's, ever; as it tells */
};

/* An event queue. Positions count events stored, through all lives of the queue; an event's slot is
 * its position modulo their number, but the END of a pair is in the slot of its START. tail -
 * position of the next event to take never exceeds count. */
#define SLOTS_ALIGN CACHE_LINE
struct queue {
	/* line 0: what stays from one event to the next (all but the sleepers' words are set by the
	 * application before the handle exists), so that neither side takes it from the other's
	 * cache */
	/* the queue's handle, whose upper half is its generation */
	_Alignas(CACHE_LINE) _Atomic uint64_t gate;
	uint64_t count; /* capacity as asked for */
	/* offset in the segment of its event_slots, a multiple of SLOTS_ALIGN, and log2 of how
	 * many: one word, so that a reader whose queue is freed meanwhile does not mix those of two
	 * queues */
	_Atomic uint64_t slots;
	/* threads that are about to sleep or asleep on `futex`, and the descriptor while it is
	 * WATCH_ARMED */
	_Atomic uint32_t sleepers;
	_Atomic uint32_t futex; /* futex word; 1 is added before sleepers are woken */
	_Atomic uint32_t watch; /* state of its descriptor: host/waiting.h */
	_Atomic int32_t event;  /* that descriptor, an eventfd, + 1; 0: there is none */
	uint64_t refuse_at;     /* overwrites: so many events, and Portals refuse requests */
	bool overwrites;        /* a new event takes the oldest one's place: queue.h, Q5 */
	/* line 1: readers */
	/* shared by readers: twice the position of the next event to take; when that is the END of
	 * a pair, twice its START's, and 1 */
	_Alignas(CACHE_LINE) _Atomic uint64_t head;
	_Atomic(struct outcome *) outcomes; /* newest first: outcome.h */
	_Atomic uint32_t told;              /* outcomes, ever; the poll core's */
	_Atomic uint32_t taken;             /* of them; their reader's */
	/* threads that wait for events, or are at its descriptor: its memory stays */
	_Atomic uint32_t waiters;
	/* line 2: poll core */
	_Alignas(CACHE_LINE) uint64_t tail; /* position of the next event */
	/* where the tail may be at most: `count` behind the head that the poll core saw last, which
	 * it looks at when the queue seems to be full */
	uint64_t full_at;
	uint64_t sequence; /* of the next event, lost ones included; starts at 1 */
	uint64_t memory;   /* where its slots are, in bytes from here */
	uint64_t mask;     /* number of slots - 1, in bytes */
	uint32_t gap;      /* EVENT_AFTER_GAP, or 0 */
	/* incoming operations begun that will log their end here; of a queue that overwrites:
	 * events that a place is kept for */
	uint32_t incoming;
	uint64_t lost; /* events, in this life */
	/* 0: it has no events for sleepers; else it is in the list of those that have, and this
	 * is 1 more than the next one's mark, or 1: there is none. Stays through all lives, as
	 * the list that it is in does */
	uint32_t touched;
	uint32_t controlled; /* Portals that refuse rather than overwrite, and are enabled */
};
static_assert(sizeof(struct queue) == 3 * CACHE_LINE, "queue: three lines");

/* Where a waiting call finds its answer. */
enum { REPLY_PENDING, REPLY_DONE };
/* The result of a ping, as in struct ping. Sizes are bytes of a frame after its Ethernet header. */
struct ping_report {
	uint32_t outcome; /* enum ping_outcome */
	uint32_t incarnation;
	uint32_t answered;
	uint32_t capacity;
	uint32_t least; /* what a question may have here */
	uint32_t most;
	uint8_t address[6]; /* MAC */
	bool absent;
	bool exact;
	uint64_t round_trip; /* ns, as are the others */
	uint64_t residence;
	uint64_t network;
};

struct reply {
	_Alignas(CACHE_LINE) _Atomic uint32_t state; /* futex word */
	_Atomic uint32_t sleeping;
	uint32_t answer; /* enum answer */
	uint32_t reserved;
	union {
		struct {
			struct region_description before; /* region update: what it was */
			struct region_description after;  /* what it shall be */
		};
		struct ping_report ping;
	};
};

/* The poll thread's doorbell: it sets sleeping, looks once more at the ring, and sleeps on an
 * eventfd of this process together with descriptors of ports. */
struct doorbell {
	_Alignas(CACHE_LINE) _Atomic uint32_t sleeping;
	_Atomic int32_t event;   /* that eventfd + 1 */
	_Atomic uint32_t cpu;    /* where the thread was last seen idle, + 1; 0: there is none */
	_Atomic uint32_t ringer; /* where the thread was that woke it, + 1 */
};

struct segment {
	uint64_t size; /* bytes of the mapping */
	uint64_t lead; /* of them before the segment */
	/* Offsets from the segment on, modulo 2^64: a part of the mapping lies before it. Of a ring
	 * and of free lists, */
	uint64_t commands, free_entries, free_regions, free_queues, free_counters, free_replies;
	/* and of the first object of each table */
	uint64_t replies, portals, access, regions, matches, entries, queues, attachments,
		counters_at, events;
	struct segment_limits limits;
	_Atomic uint32_t generation; /* shared: of the object made last (handle.h, I2) */
	/* SPACE_TIERS. shared: commands that wait for counters; the application adds before it
	 * posts one, the poll core subtracts */
	_Atomic uint32_t triggered;
	_Atomic uint32_t closed; /* the interface is going: waiters leave */
	struct doorbell doorbell;
	/* the counters follow: statistics.h */
};

/* Bytes of the mapping for these limits; the part before `events` is what must be committed at
 * once: *fixed. */
size_t segment_size(const struct segment_limits *limits, size_t *fixed);
/* Lays out a zeroed mapping, in which the segment lies somewhere. generation: where this life's
 * handles start. */
struct segment *segment_init(
	void *memory, const struct segment_limits *limits, uint32_t generation);

/* The mapping. */
static inline void *segment_memory(const struct segment *segment)
{
	return (char *)(uintptr_t)segment - segment->lead;
}

static inline void *segment_at(const struct segment *segment, uint64_t offset)
{
	return (char *)(uintptr_t)segment + (int64_t)offset;
}

static inline struct ring *segment_ring(const struct segment *segment)
{
	return segment_at(segment, segment->commands);
}

/* The object of an index that has been checked. */
static inline struct region *segment_region(const struct segment *segment, uint32_t index)
{
	return (struct region *)segment_at(segment, segment->regions) - index;
}

static inline struct match_entry *segment_match(const struct segment *segment, uint32_t index)
{
	return (struct match_entry *)segment_at(segment, segment->matches) + index;
}

static inline struct entry *segment_entry(const struct segment *segment, uint32_t index)
{
	return (struct entry *)segment_at(segment, segment->entries) - index;
}

static inline struct queue *segment_queue(const struct segment *segment, uint32_t index)
{
	return (struct queue *)segment_at(segment, segment->queues) + index;
}

static inline struct portal *segment_portal(const struct segment *segment, uint32_t index)
{
	return (struct portal *)segment_at(segment, segment->portals) + index;
}

static inline struct access_entry *segment_access(const struct segment *segment, uint32_t index)
{
	return (struct access_entry *)segment_at(segment, segment->access) + index;
}

static inline struct attachment *segment_attachment(const struct segment *segment, uint32_t index)
{
	return (struct attachment *)segment_at(segment, segment->attachments) - index;
}

static inline struct event_counter *segment_counter(const struct segment *segment, uint32_t index)
{
	return (struct event_counter *)segment_at(segment, segment->counters_at) + index;
}

static inline struct reply *segment_reply(const struct segment *segment, uint32_t index)
{
	return (struct reply *)segment_at(segment, segment->replies) - index;
}

/* An index from a free list, INDEX_NONE when it is empty; and back. Any thread. */
uint32_t segment_take(const struct segment *segment, uint64_t free_list) CORE_API(segment_take);
void segment_give(const struct segment *segment, uint64_t free_list, uint32_t index)
	CORE_API(segment_give);
/* A generation for a new object, never 0. Any thread. */
static inline uint32_t segment_generation(struct segment *segment)
{
	uint32_t generation;

	do
		generation =
			atomic_fetch_add_explicit(&segment->generation, 1, memory_order_relaxed) +
			1;
	while (generation == 0);
	return generation;
}

#endif
