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
#include <engine/counter.h>
#include <transport/transport.h>

enum command_kind {
	COMMAND_PUT = 1,      /* posted; see `taken` */
	COMMAND_GET,          /* posted */
	COMMAND_ENTRY_ATTACH, /* posted; to portal, at `position` */
	/* posted; region is filled in, names its entry and the entry's generation; the entry's gate
	 * says attached */
	COMMAND_REGION_ATTACH,
	COMMAND_REGION_BIND, /* posted; region, and attachment if it has one, is filled in */
	COMMAND_ACCESS,      /* posted */
	/* SPACE_TIERS. posted; two lines: struct rma_line is the second, and says whether there
	 * are more */
	COMMAND_RMA,
	/* posted; entry, region and attachment of this index are filled in; to portal. other: 1: to
	 * the head of its list */
	COMMAND_APPEND,
	/* These three to a space of two-sided messages (letters.h, unexpected.h). */
	COMMAND_RECEIVE, /* posted */
	COMMAND_LETTER,  /* posted; its data follow from the second line on */
	COMMAND_JOINED,  /* posted; the credit of the rank `index` has the name that it gave */
	/* posted; 2 to 4 lines: a COMMAND_RMA, COUNTER_SET, COUNTER_ADD, WITHDRAW or ASK of
	 * `lines` lines begins at the second one, and is carried out when the sum of the counter of
	 * this index and generation has reached `other`. One that has an answer gives none */
	COMMAND_TRIGGER,
	/* in a TRIGGER alone; two lines: struct ask_line is the second. A COMMAND_APPEND whose
	 * words are found out when it is carried out */
	COMMAND_ASK,
	COMMAND_HINT, /* posted; the transport's hint where a process is */
	/* posted, once the segment is closed: a thread that waits for an echo, or for the name of a
	 * host, waits no longer */
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
	/* answered: OK, GONE; PENDING: nothing was found that is here, but something is on its way.
	 * Three lines: struct search_lines; in object.portal */
	COMMAND_SEARCH,
	/* answered: the entry is unlinked. OK, GONE; PENDING: it is in use, and stays, or
	 * (other: 1) takes no more messages and is GONE after those that it has */
	COMMAND_WITHDRAW,
	/* answered: the receive whose outcome is at the address `other` has left, or its load that
	 * was refused has. OK; GONE: it has a message, and no such load */
	COMMAND_RECEIVE_WITHDRAW,
	/* answered: the receive with this outcome, of which rank and bits are written, gives up a
	 * message that is on its way here: the event _KEPT of that will name the item at the
	 * address `start`. OK; GONE: it has none, or all of it is here */
	COMMAND_RECEIVE_PASS,
	/* answered: no operation begins at the region any more, and it is freed with the last one.
	 * OK, GONE */
	COMMAND_REGION_RELEASE,
	/* answered: OK. The Portal is claimed; other: its queue, or 0; position: POSITION_DISABLED:
	 * it begins so, POSITION_STRANGERS: every process may send to it, and none by its
	 * rank, POSITION_SHARES: processes have shares of its part (portal.h, T11); update: it
	 * refuses messages rather than lose one, or an event; most: the Portal's part of the queue,
	 * in events; 0: all of it */
	COMMAND_PORTAL_OPEN,
	COMMAND_PORTAL_CLOSE,  /* answered: OK, GONE, NOT_EMPTY, PENDING */
	COMMAND_PORTAL_ENABLE, /* answered: OK, GONE */
	/* answered: OK, GONE; PENDING: it is disabled, but messages to it have not ended */
	COMMAND_PORTAL_DISABLE,
	COMMAND_COUNTER_SET,    /* answered: OK, GONE */
	COMMAND_COUNTER_ADD,    /* answered: OK, GONE */
	COMMAND_COUNTER_CANCEL, /* answered: OK, GONE: nothing that waited for it will run */
	COMMAND_COUNTER_FREE,   /* answered: OK, GONE; then the index is the sender's */
	/* answered: OK. Processes by their rank, at the address `other`, as many as `index`; they
	 * stay as long as the space does. portal: if not 0, as many names of 32 bits follow them:
	 * messages of a rank are its process's only if their cookie is its name, whose low
	 * NAME_RANK_BITS are the rank */
	COMMAND_MAP,
	/* answered, in a space with shares (kept_share): OK; PENDING: a message of the rank `index`
	 * is under way or kept */
	COMMAND_RANK_ENDED,
	/* answered, after its timeout at the latest: OK, with reply.ping; NO_MEMORY, CLOSED */
	COMMAND_PING,
	/* answered: OK. This process answers for its host's name, a struct frame_name at the
	 * address `other` */
	COMMAND_HOST_NAME,
	/* answered, after its timeout at the latest: OK, with the result of the struct name_query
	 * at the address `other`; CLOSED */
	COMMAND_HOST_FIND
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

/* The words of an RMA operation beside struct move. In that, the region has the data of a store and
 * gets the data of a load, the cookie is the own rank, and the value is the header data. */
struct rma_line {
	uint64_t local;  /* offset in the region */
	uint64_t length; /* bytes */
	uint64_t user;   /* returned in events */
	/* of a fetch: the data of its request is here; its answer goes to the region of struct
	 * move */
	uint64_t source_local;
	uint32_t source;
	uint32_t source_generation;
	uint16_t amo;    /* of an atomic or a fetch: message_amo() */
	uint8_t message; /* MESSAGE_STORE, MESSAGE_LOAD, MESSAGE_ATOMIC, MESSAGE_FETCH */
	uint8_t want;    /* enum rma_want, of a store or an atomic */
	/* data of at most COPIED_MAX bytes follow from the third line on, behind the operand if
	 * there is one, and the caller may change the region's memory */
	uint8_t copied;
};
static_assert(sizeof(struct rma_line) <= RING_BYTES, "one line");

/* Of COMMAND_PORTAL_OPEN. */
enum { POSITION_DISABLED = 1, POSITION_STRANGERS, POSITION_SHARES };
/* Of COMMAND_RECEIVE. */
enum { RECEIVE_PIECE, RECEIVE_VECTOR };
/* In a message to a space with ranks: the sender has none. */
#define RANK_NONE UINT32_MAX
/* Of a name: COMMAND_MAP. */
#define NAME_RANK_BITS 11
#define NAME_RANK_MASK ((UINT32_C(1) << NAME_RANK_BITS) - 1)

#define COPIED_MAX 64 /* bytes of data and operand */
static_assert(COPIED_MAX <= (RING_LINES - 2) * RING_BYTES, "the lines behind it");

/* What a search is told, on its further lines. The names are those of entries, regions and
 * attachments. */
struct search_lines {
	uint64_t bits;
	uint64_t ignore;
	uint32_t nid;
	uint32_t pid;
	uint64_t user;
	uint64_t counter;
	uint64_t length;
	uint64_t min_free;
	uint32_t log;
	uint16_t counts;
	uint8_t flags;
	uint8_t options;
	uint8_t remove; /* what is found is taken */
};
static_assert(sizeof(struct search_lines) <= 2 * RING_BYTES, "two lines");

struct command;
/* Of COMMAND_ASK. */
struct ask_line {
	/* Its sender's function, which the poll core calls: it fills in the command, the entry, the
	 * region and the attachment. Returns false if nothing is to be appended. */
	bool (*ask)(const struct ask_line *line, struct command *append);
	uint64_t words[RING_BYTES / 8 - 1]; /* the function's */
};
static_assert(sizeof(struct ask_line) <= RING_BYTES, "one line");

/* Lines of a COMMAND_LETTER with so many bytes of data. */
static inline unsigned letter_lines(uint32_t length)
{
	return 1 + (length + RING_BYTES - 1) / RING_BYTES;
}

/* Lines of an answered command. */
static inline unsigned command_lines(uint8_t kind)
{
	return kind == COMMAND_SEARCH ? 3 : 1;
}

/* Which answer a store's initiator wants. */
enum rma_want {
	WANT_NOTHING,
	WANT_EVENT, /* and a count */
	WANT_COUNT,
	WANT_END,     /* a count of messages, whatever the counter counts */
	WANT_OUTCOME, /* `user` is a struct outcome (outcome.h), which is told instead */
	WANT_KEPT     /* of a load of the poll core's own (unexpected.h, U7): nothing tells of it */
};

struct command {
	uint8_t kind;
	union {
		uint8_t position; /* ENTRY_ATTACH, ENTRY_INSERT, RECEIVE */
		/* PUT: one operation was taken from the gate's threshold; false when that is
		 * infinite */
		uint8_t taken;
	};
	union {
		uint8_t acknowledge; /* PUT */
		uint8_t update;      /* REGION_UPDATE: reply.after is to be applied */
		uint8_t lines;       /* TRIGGER: of the command that it keeps */
	};
	uint8_t space; /* number; of the objects that the command names */
	union {
		uint32_t reply;  /* slot, for answered commands */
		uint32_t length; /* LETTER: bytes of its data, COPIED_MAX at most */
	};
	union {
		struct move move; /* PUT, GET */
		struct {
			uint32_t index; /* the entry, region or queue itself */
			uint32_t generation;
			uint32_t portal; /* ENTRY_ATTACH */
			uint32_t most;   /* PORTAL_OPEN */
			/* ENTRY_INSERT: handle of the current entry. REGION_UPDATE: handle of the
			 * test queue, 0: none */
			uint64_t other;
		} object;
		struct {
			uint64_t bits, ignore;
			uint64_t start; /* an address; RECEIVE_VECTOR: of a struct map_vector */
			uint64_t length;
			uint64_t outcome; /* address of a struct outcome */
			uint32_t peer;    /* rank, or UINT32_MAX: any */
			uint32_t portal;
		} receive;
		struct {
			uint64_t dispatch; /* address of a struct dispatch */
			struct process to;
			uint32_t portal;
			uint32_t cookie;
			uint64_t match_bits;
			uint64_t value;
			uint64_t offset;
		} letter;
		struct {
			uint32_t index;
			uint32_t generation;
			struct event_count by; /* or to */
		} count;
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
			uint8_t address[FRAME_ADDRESS_BYTES]; /* MAC */
		} hint;
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
