/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.h - what a space with tiers (engine/tiers.h) must do with what comes, on plain lists that
 * are walked: the model that the engine is compared with.
 *
 * It is given each message, end of a message and command in the order in which the engine gets
 * them (tier_watch.c), and says what the engine must answer, which events its queues must have, and
 * how its counters must stand.
 *
 * P1. Nothing of it is taken from the engine: neither indices of kept messages nor places in lists.
 *     An entry is named by the index that the program gave it.
 */
#ifndef SIM_PLAIN_H
#define SIM_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <engine/command.h>
#include <engine/segment.h>
#include <wire/message.h>

#define PLAIN_ENTRIES    48
#define PLAIN_PORTALS    4
#define PLAIN_QUEUES     3
#define PLAIN_COUNTERS   6
#define PLAIN_UNEXPECTED 12
#define PLAIN_EVENTS     1024 /* places of a queue at most */

/* The words of an event. */
struct plain_event {
	uint8_t kind; /* enum tier_event */
	uint8_t tier;
	uint8_t verdict; /* enum tier_verdict */
	uint16_t amo;    /* of an atomic: message_amo() */
	uint64_t start;
	uint64_t user;
	uint64_t value;
	uint64_t initiator;
	uint64_t target;
	uint64_t match_bits;
	uint64_t requested;
	uint64_t moved;
	uint64_t offset;
};

struct plain_queue {
	uint64_t handle;
	uint64_t count;  /* as asked for */
	uint64_t places; /* that it has */
	uint64_t head;
	uint64_t tail;
	bool gap; /* the oldest were overwritten */
	struct plain_event events[PLAIN_EVENTS];
};

/* What an entry or a search asks for and wants. */
struct plain_wish {
	struct match_entry ask;
	uint64_t start;
	uint64_t length;
	uint64_t user;
	uint64_t counter; /* handle */
	uint64_t min_free;
	uint32_t log;
	uint16_t counts;
	uint8_t flags;
	uint8_t options;
	uint32_t uid;
};

struct plain_entry {
	struct plain_wish wish;
	uint32_t generation; /* of its handle; 0: stale */
	uint32_t portal;
	uint8_t tier;
	bool used; /* it exists */
	bool linked;
	bool leaving;
	bool unlinked;
	uint64_t offset;
	uint32_t pending;
	uint32_t headers;
	uint32_t places;
};

/* A message in progress, or one that is kept. */
struct plain_message {
	struct plain_event event; /* what its own event says */
	struct plain_entry *entry;
	bool used;
	bool arriving; /* it has not ended */
	bool kept;     /* it has a header */
	bool claimed;
	struct plain_wish taker;
	struct plain_entry *claimer; /* NULL: a search */
	uint64_t order;              /* of arrival */
	const void *name;            /* the engine's operation */
};

struct plain_portal {
	enum portal_state state;
	bool controlled;
	bool owes;
	struct plain_queue *queue;
	struct plain_entry *lists[TIERS][PLAIN_ENTRIES];
	uint32_t lengths[TIERS];
};

/* A command that waits for a counter, or is ready to run. */
struct plain_trigger {
	uint64_t name;      /* of the command */
	uint64_t threshold; /* of a counter's sum */
};

#define PLAIN_TRIGGERS 512
struct plain_counter {
	uint64_t handle; /* 0: none */
	struct event_count count;
	struct plain_trigger waiting[PLAIN_TRIGGERS]; /* in the order in which they were given */
	uint32_t waits;
};

#define PLAIN_MESSAGES 1024
struct plain {
	uint32_t list_max;
	bool ranked;
	const struct process *map;
	uint32_t map_count;
	struct plain_portal portals[PLAIN_PORTALS];
	struct plain_entry entries[PLAIN_ENTRIES];
	struct plain_queue queues[PLAIN_QUEUES];
	struct plain_counter counters[PLAIN_COUNTERS];
	struct plain_message messages[PLAIN_MESSAGES];
	uint64_t arrivals;
	uint64_t ready[PLAIN_TRIGGERS * PLAIN_COUNTERS]; /* commands, a ring */
	uint64_t ready_head;
	uint64_t ready_tail;
	/* May these bytes be written, or read? */
	bool (*there)(const void *context, uint64_t start, uint64_t length, bool write);
	const void *context;
	/* as the engine counts */
	uint64_t no_portal, bad_cookie, disabled, no_match, permission, operation, no_header;
};

/* What becomes of a request. */
struct plain_decision {
	enum tier_verdict verdict;
	uint8_t tier;
	bool silent; /* a store's initiator is told nothing */
	bool fault;  /* it was accepted, and its memory is not there */
	uint64_t moved;
	uint64_t offset; /* in the entry */
	uint64_t start;  /* address of the first byte */
	uint64_t user;   /* of the entry */
};

/* Does a message bring data? Does it want some? */
bool plain_brings(uint8_t kind);
bool plain_fetches(uint8_t kind);

/* A request has come; here: bytes of data that came with it, of one that brings some; of an
 * atomic's data without its operand, and so is the header's length. If it is accepted and does not
 * end at once, *message is it. */
struct plain_decision plain_request(struct plain *plain, struct process from,
	const struct message_header *header, uint64_t here, struct plain_message **message);
/* It has ended. */
void plain_ended(struct plain *plain, struct plain_message *message, enum tier_verdict verdict);
struct plain_message *plain_message(struct plain *plain, const void *name);

void plain_append(struct plain *plain, uint32_t index, uint32_t generation, uint32_t portal,
	unsigned tier, const struct plain_wish *wish);
enum answer plain_withdraw(struct plain *plain, uint32_t index, uint32_t generation);
void plain_search(struct plain *plain, uint32_t portal, const struct plain_wish *wish, bool remove);
enum answer plain_portal(
	struct plain *plain, const struct command *command, struct plain_queue *queue);
enum answer plain_counter(struct plain *plain, const struct command *command);
void plain_cancel(struct plain *plain, const struct command *command);
/* A command that waits for a counter. Returns false if the counter is stale. */
bool plain_trigger(struct plain *plain, uint32_t counter, uint32_t generation, uint64_t threshold,
	uint64_t name);
/* The name of the command that must be run next; 0: none. */
uint64_t plain_ready(struct plain *plain);

/* Counts an event of an initiator. */
void plain_count(struct plain *plain, uint64_t counter, enum tier_verdict verdict, uint64_t by);
void plain_log(struct plain *plain, struct plain_queue *queue, const struct plain_event *event);
/* Takes the oldest event; NULL: there is none. *gap: events before it were lost. */
const struct plain_event *plain_take(struct plain_queue *queue, bool *gap);

#endif
