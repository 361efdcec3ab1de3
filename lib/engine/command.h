/* SPDX-License-Identifier: BSD-3-Clause */
/* command.h - what an application thread tells the poll core: with the ring's own words, one to
 * four cache lines. The ring says how many lines an element has; how many a command needs is the
 * kind's. All kinds below have one.
 *
 * Posted commands (put, get, attach, bind, access) have no answer: what they need was checked by
 * the sender against the segment; should another thread have unlinked the object since, they fall
 * away and are counted. Commands with a reply slot are answered (answer.h).
 */
#ifndef ENGINE_COMMAND_H
#define ENGINE_COMMAND_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <base/ring.h>
#include <transport/transport.h>

enum command_kind {
	COMMAND_PUT = 1,      /* posted; see `taken` */
	COMMAND_GET,          /* posted */
	COMMAND_ENTRY_ATTACH, /* posted; to portal, at `position` */
	/* posted; region is filled in, names its entry and the entry's generation; the entry's gate
	 * says attached */
	COMMAND_REGION_ATTACH,
	COMMAND_REGION_BIND, /* posted; region is filled in */
	COMMAND_ACCESS,      /* posted */
	/* posted, once the segment is closed: who waits for an echo waits no longer */
	COMMAND_PING_ABANDON,
	/* answered: OK, GONE: the current entry is, and the sender keeps the new one */
	COMMAND_ENTRY_INSERT,
	COMMAND_ENTRY_UNLINK,  /* answered: OK, GONE, PENDING */
	COMMAND_REGION_UNLINK, /* answered: OK, GONE, PENDING */
	/* answered: OK, GONE, NO_QUEUE, NOT_EMPTY; reply.before, reply.after */
	COMMAND_REGION_UPDATE,
	/* answered: OK, GONE; then the memory of the events is the sender's again and so
	 * is the index, which it gives back to the free list after the memory */
	COMMAND_QUEUE_FREE,
	/* answered, after its timeout at the latest: OK, with reply.ping; NO_MEMORY, CLOSED */
	COMMAND_PING
};

enum command_position { POSITION_BEFORE, POSITION_AFTER };

/* What a put and a get are told. */
struct move {
	uint32_t region;
	uint32_t generation;
	struct process to;
	uint32_t portal;
	uint32_t cookie;
	uint64_t match_bits;
	uint64_t offset;
	uint64_t value; /* PUT */
};

struct command {
	uint8_t kind;
	union {
		uint8_t position; /* ENTRY_ATTACH, ENTRY_INSERT */
		/* PUT: one operation was taken from the gate's threshold; false when that is
		 * infinite */
		uint8_t taken;
	};
	union {
		uint8_t acknowledge; /* PUT */
		uint8_t update;      /* REGION_UPDATE: reply.after is to be applied */
	};
	uint8_t space;  /* number; of the objects that the command names */
	uint32_t reply; /* slot, for answered commands */
	union {
		struct move move; /* PUT, GET */
		struct {
			uint32_t index; /* the entry, region or queue itself */
			uint32_t generation;
			uint32_t portal; /* ENTRY_ATTACH */
			uint32_t reserved;
			/* ENTRY_INSERT: handle of the current entry. REGION_UPDATE: handle of the
			 * test queue, 0: none */
			uint64_t other;
		} object;
		struct {
			uint32_t index;
			uint32_t nid;
			uint32_t pid;
			uint32_t uid;
			uint32_t portal;
		} access;
		struct {
			uint32_t nid;
			uint32_t pid;
			uint32_t size;    /* of the question, 0: the least */
			uint32_t answer;  /* wanted of the answer */
			uint64_t timeout; /* ns */
		} ping;
	};
};
static_assert(sizeof(struct command) == RING_BYTES, "a line of the ring");

/* A command of a kind that needs more than one line. */
struct long_command {
	struct command command; /* the first line */
	uint64_t further[RING_LINES - 1][RING_BYTES / 8];
};
static_assert(sizeof(struct long_command) == RING_LINES * RING_BYTES, "an element of the ring");

#endif
