/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h - one engine, on a fake transport or a real one, with what its front end would do, for
 * tests of the engine.
 *
 * Posted commands are carried out by a turn of the engine at once, so that a test reads in order.
 * Functions that end in _post leave the command in the ring.
 */
#ifndef RIG_H
#define RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <engine/engine.h>
#include <engine/queue.h>
#include <engine/state.h>
#include <engine/statistics.h>
#include <wire/message.h>

#define RIG_INTERFACE    5
#define RIG_UID          1000
#define RIG_PORTALS      8
#define RIG_ACCESS       4
#define RIG_UNEXPECTED   6
#define RIG_RANKS        2
#define RIG_RECEIVES     4
#define RIG_PEER_TIMEOUT (10 * SECOND) /* peer_timeout */

#define RIG_SELF ((struct process){.nid = 7, .pid = 70})
#define RIG_PEER ((struct process){.nid = 8, .pid = 80})

struct rig {
	struct segment *segment;
	struct segment *ring; /* the segment whose ring takes the commands */
	uint8_t space;        /* number */
	struct engine *engine;
	struct clock clock;
	uint64_t now;
	uint64_t events_used; /* bytes of event memory given to queues */
};

struct rig *rig_create(struct port *port, const struct transport_options *transport);
void rig_destroy(struct rig *rig);
/* A further space of a rig's engine, with so many Portals, whose interface is RIG_INTERFACE +
 * number; and the end of its memory, after it is closed or the engine has ended. */
struct rig *rig_space(struct rig *rig, uint32_t number, uint32_t portals);
void rig_space_free(struct rig *space);
/* A further space with tiers, number 4 or, with ranks, 6. Its Portals 0 and 1 are open and log to
 * the queue *queue of 16 events, which is made. */
struct rig *rig_tiers(struct rig *rig, bool ranked, uint64_t *queue);
/* The one with ranks, for two-sided messages; share: headers of each rank; and so many more. */
struct rig *rig_letters(
	struct rig *rig, uint32_t share, uint32_t more, struct credit *credits, uint64_t *queue);
/* The same with so many ranks, of which `shares` are the headers. */
struct rig *rig_crowd(struct rig *rig, uint32_t ranks, _Atomic uint32_t *shares, uint32_t share,
	uint32_t more, struct credit *credits, uint64_t *queue);
/* Sends a command with a reply slot; the answer. */
enum answer rig_ask(struct rig *rig, struct command *command);
uint64_t rig_event_counter(struct rig *rig); /* a handle */
struct event_count rig_counted(const struct rig *rig, uint64_t counter);

/* An entry, or a descriptor, of a space with tiers. */
struct rig_tier {
	void *start;
	uint64_t length;
	uint64_t user;
	uint64_t queue; /* of a descriptor */
	uint64_t counter;
	uint64_t bits, ignore, min_free;
	uint32_t options; /* REGION_... */
	uint32_t log;     /* those that are not wanted: TIER_BIT(), TIER_BIT_FAILED() */
	uint32_t uid;     /* 0: all */
	uint16_t counts;
	uint8_t flags; /* ATTACHMENT_... */
	uint8_t tier;
	bool first; /* at the head of its list */
	uint32_t most, unit;
	uint32_t portal;
};
uint64_t rig_append(struct rig *rig, const struct rig_tier *entry);
uint64_t rig_describe(struct rig *rig, const struct rig_tier *descriptor);
/* The next event of such a queue. */
struct rig_tier_event {
	unsigned kind, verdict, tier;
	uint64_t user, start, value, bits, requested, moved, offset;
	uint32_t nid, pid, uid, portal;
};
enum queue_answer rig_take_tier(struct rig *rig, uint64_t queue, struct rig_tier_event *event);
struct rig_tier_event rig_tier_event(struct rig *rig, uint64_t queue, unsigned kind);
struct rig_rma {
	struct process to;
	uint32_t portal, cookie;
	uint64_t bits, offset, value, local, length, user;
	uint8_t message, want;
	const void *copied; /* a store's data that come with its command; NULL: the region's */
	uint16_t amo;
	const uint64_t *operand;       /* of a fetch; NULL: none */
	uint64_t source, source_local; /* of a fetch: the descriptor whose data it brings */
};
/* A search in Portal 0, with the words of struct rig_tier. */
enum answer rig_search(struct rig *rig, const struct rig_tier *search, bool remove);
void rig_begin(struct rig *rig, uint64_t descriptor, const struct rig_rma *call);
/* Keeps a command, a call or a change of a counter, until another counter has come so far. */
void rig_trigger(struct rig *rig, uint64_t counter, uint64_t threshold,
	const struct long_command *command, unsigned lines);
struct long_command rig_rma_command(uint64_t descriptor, const struct rig_rma *call);
/* For cmocka_unit_test_setup_teardown(): *state is the struct rig. */
int rig_setup(void **state);
int rig_teardown(void **state);
/* What an event says. */
struct event {
	uint16_t kind; /* enum event_kind, or the failures below */
	uint16_t fail; /* enum transport_fail, or FAIL_UNDELIVERABLE */
	uint32_t nid;  /* initiator */
	uint32_t pid;
	uint32_t uid;
	uint32_t portal;
	/* of the region just after the event, as is what follows from `region` on */
	uint32_t options;
	uint64_t match_bits;
	uint64_t requested;
	uint64_t moved;
	uint64_t offset;
	uint64_t value;
	uint64_t link;
	uint64_t sequence;
	uint64_t region; /* handle */
	uint64_t start;
	uint64_t length;
	uint64_t user;
	uint64_t queue;
	uint32_t threshold;
	uint32_t max_offset;
};
static_assert(sizeof(struct event) == 128, "no padding: events are compared as bytes");

/* A queue's next event, as PtlEQGet takes it; any thread. */
enum queue_answer rig_take(struct segment *segment, uint64_t queue, struct event *event);
/* The engine ends; the segment stays readable until the teardown. */
void rig_stop(struct rig *rig);

/* Handles. */
uint64_t rig_queue(struct rig *rig, uint64_t count);
struct rig_entry {
	uint32_t portal;
	struct process match; /* UINT32_MAX: any */
	uint64_t bits, ignore;
	bool unlink;
};
#define RIG_ANY ((struct process){.nid = UINT32_MAX, .pid = UINT32_MAX})
uint64_t rig_entry(struct rig *rig, const struct rig_entry *entry); /* at the tail */
uint64_t rig_entry_front(struct rig *rig, const struct rig_entry *entry);
enum answer rig_insert(struct rig *rig, const struct rig_entry *entry, uint64_t current,
	enum command_position position, uint64_t *handle);
/* An entry of Portal 0 for everything, to be unlinked with its region or not. */
uint64_t rig_entry_any(struct rig *rig, bool unlink);

enum { RIG_UNLINK_OP = 1, RIG_UNLINK_NOFIT = 2 };
uint64_t rig_attach(
	struct rig *rig, uint64_t entry, const struct region_description *region, int flags);
uint64_t rig_bind(struct rig *rig, const struct region_description *region);
struct command rig_bind_command(struct rig *rig, const struct region_description *region);
struct region *rig_region(const struct rig *rig, uint64_t handle); /* the object, alive or not */
struct entry *rig_entry_object(const struct rig *rig, uint64_t handle);
uint32_t rig_threshold(const struct rig *rig, uint64_t region); /* as the gate says */

/* Answered commands: the answer. */
enum answer rig_entry_unlink(struct rig *rig, uint64_t entry);
enum answer rig_region_unlink(struct rig *rig, uint64_t region);
enum answer rig_update(struct rig *rig, uint64_t region, const struct region_description *after,
	uint64_t testq, struct region_description *before);
enum answer rig_queue_free(struct rig *rig, uint64_t queue);
void rig_access(
	struct rig *rig, uint32_t index, struct process process, uint32_t uid, uint32_t portal);

struct rig_move {
	struct process to;
	uint32_t portal, cookie;
	uint64_t bits, offset, value;
	bool acknowledge;
};
/* kind: COMMAND_PUT or COMMAND_GET. */
struct command rig_move_command(
	uint64_t region, const struct rig_move *move, enum command_kind kind);
/* PtlPut and PtlGet: false if the region is dead or inactive. */
bool rig_put(struct rig *rig, uint64_t region, const struct rig_move *move);
bool rig_put_post(struct rig *rig, uint64_t region, const struct rig_move *move);
bool rig_get(struct rig *rig, uint64_t region, const struct rig_move *move);

/* A turn of the engine after time has passed. */
void rig_pass(struct rig *rig, uint64_t time);
void rig_post(struct rig *rig, const struct command *command);

/* Takes the next event and checks its kind; rig_no_event() that there is none. */
struct event rig_event(struct rig *rig, uint64_t queue, unsigned kind);
void rig_no_event(struct rig *rig, uint64_t queue);
/* Takes all operations for which there is memory, until more is allocated. Returns the last one. */
struct operation *rig_operations_use(struct rig *rig, enum operation_kind kind);

#define rig_counter(rig, name)                                                                     \
	((unsigned long)counter_read(&segment_counters((rig)->segment)->name))
unsigned long rig_drops(const struct rig *rig); /* the drop count */

/* Headers of messages from RIG_PEER. */
struct message_header rig_put_header(uint64_t length);
struct message_header rig_get_header(uint64_t length);

#define RIG_REGION(memory, queue_)                                                                 \
	((struct region_description){.start = (uintptr_t)(memory),                                 \
		.length = sizeof(memory),                                                          \
		.threshold = GATE_THRESHOLD_INFINITE,                                              \
		.max_offset = UINT32_MAX,                                                          \
		.options = REGION_PUT | REGION_GET,                                                \
		.queue = (queue_)})

#endif
