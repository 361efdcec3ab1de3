/* SPDX-License-Identifier: BSD-3-Clause */
/* messages.h - two-sided messages with 64 match bits: send, synchronous send, receive, probe,
 * cancel, wait. A receive has match bits and bits to ignore; the oldest message that matches is its
 * own. It stands on a space with tiers (engine/tiers.h) and knows no ranks, tags or requests: a
 * front end does. One thread at a time calls; callbacks are made inside calls only and make none.
 *
 * Where a message lives
 *
 *     receive posted        a receive of the poll core (engine/letters.h), which puts the data into
 *                           the user's buffer, whatever the length and whatever the program does
 *                           meanwhile; a receive for many messages is an entry of the first tier
 *     none, a letter (M12)  beside its header
 *     none, up to `eager`   a block of the second tier, as long as one has room
 *     none, longer; or no   the second tier's last entry, which has no memory: the header is kept
 *     block has room        here and the data at its sender, until a receive takes the header and
 *                           fetches the data by a get; or, if it was copied there, until a block
 *                           has room again: then the poll core fetches it
 *
 * M1. Posting a receive is one step of the poll core: it takes the oldest kept header that matches,
 *     or is linked. So messages of one sender match in the order in which they were sent.
 * M2. A message of at most `eager` bytes is copied to a slot before it is sent, and if it is not
 *     synchronous it is done then. Slots belong to one peer, and only this peer can read them.
 * M3. A slot, or the buffer of a longer message, is free when the target has said
 *     (ACK) where the message is, and has fetched it if it was not placed as a whole or is
 *     synchronous. A fetch of no bytes tells the sender of a kept synchronous message that it was
 *     received; a fetch that is made only to show its data says that of itself, and frees nothing.
 * M4. A block is used again when every header that refers to it has been taken (TIER_FREE): by then
 *     its messages have been copied, for a receive by the poll core, and else because their events
 *     come before. What the poll core then fetches into it (unexpected.h, U7) is out of its
 *     sender's slot, as if it had come there at first: so a program that makes no more calls stops
 *     nobody as long as there is memory.
 * M5. A sender has at most a share of headers kept at a peer, counting messages whose ACK is not
 *     here yet. The receiver tells how many it has taken after each eighth of the share. What has
 *     no share, no slot or no entry waits at the sender, in order. All shares together fit into the
 *     table of kept headers, so nothing is dropped; the receiver refuses what a peer sends beyond
 *     its share. Both ends begin with the least share. The receiver's poll core makes it larger
 *     when spare headers are left, and half of it is in use or a sender says that it lacks credit
 *     (engine/unexpected.h, U4). The ACK of a message says how large it is: so a program that makes
 *     no calls stops nobody as long as there is memory. What a peer does not use of its share is
 *     taken back when others are short, by the poll cores of both alone (engine/credit.h). So the
 *     poll core counts what a peer has taken, and the program what it sends. Headers, with the
 *     short data that they may have (M12), and blocks together are options.memory: what peers were
 *     granted, and what is kept of them with its data, never take more.
 * M6. A message that was placed, and an ACK, is told by an outcome (engine/outcome.h), all else by
 *     an event. No event is lost: receives linked and fetches are bounded by RECEIVES_MAX and
 *     SENDS_MAX, messages of receives for many (M11) by PARTS_MAX, and the Portal that peers fetch
 *     from refuses rather than fill more than a quarter of the queue. So what others send leaves
 *     room for what this process has begun. Of that quarter, each node and each process has a share
 *     (engine/portal.h, T11). Greetings fill a sixteenth, of which a node has a share (T10). The
 *     poll core repeats a fetch that is refused, whatever the programs do meanwhile. A fetch of a
 *     message that is not there is answered with no bytes, by an entry behind all others, and
 *     disables nothing. A peer has at most as many sends under way as are left for others. The same
 *     holds for longer sends that have begun, kept or not, and for messages of several pieces that
 *     move: further ones wait.
 * M7. done() is called once for each message that was not cancelled, and the message is the
 *     caller's again.
 *
 * Peers are known from the beginning (`peers`), or come and go: a process that has no peer's number
 * yet introduces itself to another one by a greeting, which carries three words of the front end's.
 * With these both tell each other which number (rank) each has at the other. The engine refuses
 * what is not from the process of the rank that it names, so nobody else's message matches.
 *
 * M8. A peer's number is one process's until it was dismissed and then given back, which it is only
 *     when nothing under way, here or from the peer, names it. A process that comes back gets
 *     another number meanwhile, so that nothing of its earlier life is counted, freed or matched in
 *     the later one. What peers are told is the number with a count of its uses, its name: a
 *     message of an earlier use is not one of a later use. The count begins at this process's
 *     incarnation, of which a name has 21 random bits: a message to an earlier life is refused, but
 *     for one chance in two million.
 * M9. What names a peer that failed or was dismissed ends: at once if the peer might never fetch
 *     it, else with its own last event. Where peers come and go, the engine refuses what such a
 *     peer sends from then on: a peer that was only cut off ends its requests by that.
 *
 * M10. A message that was shown (messages_show()) and was not received stands before all that were
 *     not shown: receives and probes look there first. So does a receive that begins while a
 *     message that it matches is being shown: it gets that one, or waits until it is received.
 *
 * M11. A receive for many messages has one buffer, and stays posted until less than `least` bytes
 *     of it are free. part() is called for each message, then done() once. A message's place begins
 *     at a multiple of a unit, 64 bytes or more of a buffer that is longer than 256 KiB: so a
 *     buffer has room for so many messages, and their events for places in the queue (M6).
 *
 * M12. A message of at most COPIED_MAX bytes, whose sender waits for neither a receive nor its
 *     delivery, is sent without an answer while less than a quarter of its sender's share is in
 *     use. It counts as kept until the receiver tells that it has taken it, also if it was placed.
 *     The receiver keeps its data with the header, never in a block. Further messages are
 *     answered, so a program that makes no calls stops nobody: three quarters of a share, of which
 *     the receiver may owe an eighth, still make it larger. So is a message to a peer that has as
 *     many of them under way as are left for others: what a peer says of credit, without taking a
 *     frame, uses up no memory. A refusal is told without being asked for. Such a message has no
 *     slot: it is the poll core's when it was sent (engine/letters.h). A sender that hears of
 *     credit, and has less than SHARE_ENOUGH, lets the next message ask for more, unless it has
 *     asked with that share before: with a larger one the receiver has to tell of credit less
 *     often.
 */
#ifndef MESSAGES_MESSAGES_H
#define MESSAGES_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include <base/list.h>
#include <base/map.h>
#include <engine/command.h>
#include <host/front.h>
#include <host/waiting.h>
#include <transport/transport.h>

enum transfer_result {
	TRANSFER_DONE,
	TRANSFER_CUT, /* a receive: the message was longer than the room, and its rest is lost */
	/* a receive: its sender has no such message any more, or never had; one for many messages:
	 * it was cancelled */
	TRANSFER_WITHDRAWN,
	TRANSFER_FAILED /* the peer is gone; failed() has been called */
};

/* What an object of this library is, for the events that name it. */
enum messages_kind {
	ITEM_SEND,    /* struct transfer, longer than a slot */
	ITEM_RECEIVE, /* struct transfer */
	ITEM_SLOT,
	ITEM_CHUNK,
	ITEM_BLOCK,
	ITEM_TELL, /* a word to a peer */
	ITEM_TOLD, /* the entry for words from peers */
	ITEM_GREETING,
	ITEM_GREETED,    /* the entry for greetings */
	ITEM_UNEXPECTED, /* struct unexpected */
	ITEM_TAKEN,      /* struct unexpected, of messages_take() */
	ITEM_MANY,       /* struct transfer, a receive for many messages */
	ITEM_PART,       /* struct part, one of them */
	ITEM_DISPATCH,   /* struct peer: letters to it */
	ITEM_PROBE
};

/* A message that is sent or received, in the caller's memory. */
struct transfer {
	union {
		uint8_t kind; /* enum messages_kind; as what follows, the library's */
		struct outcome outcome;
	};
	bool synchronous;
	bool late;   /* a short send: it is done when it was delivered */
	bool marked; /* `data` means something */
	bool posted; /* it is with the poll core; a longer send: it has begun */
	uint8_t class;
	bool acknowledged, kept, fetched;
	bool seen;       /* a receive: its message was shown before it asked for it */
	uint8_t result;  /* enum transfer_result */
	uint32_t peer;   /* to; from, when it is done; of a receive before: wanted, or PEER_ANY */
	uint64_t bits;   /* of a receive that is done: the sender's */
	uint64_t ignore; /* of a receive */
	void *buffer;
	uint64_t length; /* of the buffer; of a receive that is done: what was delivered */
	uint64_t whole;  /* of a receive that is done: length of the message */
	uint64_t value;  /* what the sender says of it */
	uint64_t data;   /* the sender's front end's, beside the bits */
	uint64_t due;    /* when a fetch is tried again, ns */
	uint32_t entry;  /* index and generation of its entry */
	uint32_t generation;
	uint32_t region; /* of a vector; 0: none */
	uint32_t region_generation;
	/* the pieces of the memory, and `buffer` is not used; NULL: one piece */
	const struct map_vector *vector;
	struct many *many; /* a receive for many messages; else NULL */
	struct link link;  /* of those that wait; of longer sends to a peer that have begun */
};

/* What a receive for many messages has beside (M11), in the caller's memory; messages_many() fills
 * it in. */
struct many {
	uint32_t most; /* part() is called so often at most */
	/* the library's */
	uint64_t least;
	uint32_t fetching; /* parts whose data is on its way */
	uint64_t unit;
	uint64_t used; /* by messages that had been kept */
	bool ended;    /* no further message has room */
	bool cancelled, withdrawn;
	struct transfer *receive;
	struct link leaving; /* of those that were cancelled */
};

/* A message that no receive has asked for. The library's; its first `moved` bytes are `data`. */
struct unexpected {
	struct transfer transfer; /* first. peer, bits and whole say whose it is and how long */
	struct link all;
	uint64_t least;           /* bytes that are to be here, if it has no more */
	uint64_t moved;           /* all of them, or none */
	uint64_t room;            /* for data */
	bool dismissed;           /* its peer was */
	bool claimed;             /* messages_claim() */
	bool whole;               /* taken: its event is here */
	bool unwanted;            /* taken: messages_discard() */
	bool passed;              /* taken from a receive that was given up, and is still posted */
	struct transfer *receive; /* taken: by messages_receive_taken(); NULL: none yet */
	char data[];
};

/* What a probe finds. */
struct message_found {
	uint32_t peer;
	uint64_t bits;
	uint64_t length;
	uint64_t data; /* as in struct transfer */
	bool marked;
};

/* What messages_send() is told of a message. */
struct send_wish {
	uint8_t class; /* 0 or 1: below options.classes */
	uint64_t bits;
	const void *buffer;
	uint64_t length;
	const struct map_vector *vector; /* instead of buffer and length; NULL: none */
	uint64_t data;                   /* reaches the receiver beside the bits, if `marked` */
	bool marked;
	bool synchronous;
	bool late; /* done when it was delivered, also if it is copied */
};

/* What a receive or a probe asks for. */
struct receive_wish {
	uint8_t class;
	uint32_t peer; /* PEER_ANY: from any */
	uint64_t bits, ignore;
	/* of a receive */
	void *buffer;
	uint64_t room;
	const struct map_vector *vector; /* instead of buffer and room; NULL: none */
	struct many *many;               /* the buffer is for many messages; NULL: for one */
};

/* What a process says to another one whose peer it is not yet. */
struct greeting {
	uint8_t kind; /* enum messages_kind */
	struct process to;
	uint64_t words[3];
};

enum greeting_result {
	GREETING_TAKEN,
	GREETING_REFUSED, /* the process has no place for it, or is not ready yet */
	GREETING_DENIED,  /* the process is another user's */
	GREETING_CLOSED,  /* it is known that the process is not there */
	GREETING_LOST     /* it does not answer */
};

struct messages;

struct messages_options {
	const struct front *front;
	uint64_t interface; /* handle of one that is open and without such a space */
	uint8_t space;      /* number of the space to open */
	/* Messages of 2 classes have match bits of their own: a receive gets those of its class
	 * alone. 0 and 1: there is one class. What is shown or claimed is of class 0. */
	uint8_t classes;
	/* stays as it is until messages_close(); NULL: peers come, at most `count` */
	const struct process *peers;
	uint32_t count;
	uint32_t self;  /* index of this process among them */
	bool late;      /* a message that is copied is done when it was delivered */
	uint32_t eager; /* bytes of a message that is copied, 1 to MESSAGES_EAGER_MAX */
	/* Bytes for all that is kept, which are used as messages come: blocks have what the headers
	 * leave. The least shares are there also if they need more. What was shown is not kept any
	 * more, and has at most as much as blocks have. */
	uint64_t memory;
	uint64_t block; /* of each block, `eager` at least; 0: as usual */
	/* of kept messages, KEPT_BYTES each: so many in equal shares of peers, and so many more for
	 * shares that are used up (M5). Both ends of a peer have the same least share. */
	uint32_t headers, spare;
	void *owner;
	void (*done)(void *owner, struct transfer *message);
	/* One of the messages of a receive for many: a receive that is done, with the place of the
	 * data as its buffer. NULL: there are no such receives. */
	void (*part)(void *owner, struct transfer *many, const struct transfer *message);
	void (*told)(void *owner, uint32_t peer, uint64_t word); /* NULL: words mean nothing */
	/* A peer is gone, or does not do as it should: nothing more will come from it. */
	void (*failed)(void *owner, uint32_t peer, const char *why);
	/* With peers that come. A greeting is here, and is dropped if false is returned; a greeting
	 * has been taken, or not. */
	bool (*greeted)(void *owner, struct process from, const struct greeting *greeting);
	void (*answered)(void *owner, struct greeting *greeting, enum greeting_result result);
};

#define MESSAGES_EAGER_MAX 65536
#define MESSAGES_MEMORY    (UINT64_C(128) << 20) /* usually; it is used as messages come */
#define MESSAGES_WORD      56                    /* bits of a word that can be told */
#define PEER_ANY           UINT32_MAX

/* Says how many headers: a least share of each peer, and half of what these leave of memory. */
void messages_divide(struct messages_options *options);
/* OK, NO_MEMORY, FAILED. Peers may send when messages_open() has returned at both ends. */
enum answer messages_open(const struct messages_options *options, struct messages **opened);
/* Forgets what is under way; the space closes. */
void messages_close(struct messages *messages);

void messages_send(struct messages *messages, struct transfer *message, uint32_t peer,
	const struct send_wish *wish);
/* Sends a short message that can leave at once and wants no answer: it is done, and done() is not
 * called. Returns false for any other, and for one that has to wait: messages_send() sends it. */
bool messages_inject(struct messages *messages, uint32_t peer, const struct send_wish *wish);
/* Of a send that waits, and will be copied when it begins, the memory is elsewhere from now on.
 * Returns false if it does not wait. */
bool messages_move(struct transfer *message, const void *buffer);
/* Of a receive for many messages that is to be posted: the length of its buffer, and how many bytes
 * are free in it at least while it is posted, or 1. */
void messages_many(struct many *many, uint64_t room, uint64_t least);
/* If a message that it matches is here as a whole, done() is called before this returns. A vector
 * stays as it is until the receive is done. A receive for many messages: not for front ends that
 * call messages_show() or messages_claim(). */
void messages_receive_wish(
	struct messages *messages, struct transfer *message, const struct receive_wish *wish);
/* Takes a receive back that has matched nothing. Returns false if it has, and done() will be
 * called; so always for a receive for many messages. */
bool messages_cancel(struct messages *messages, struct transfer *message);
/* Gives up a send that waits for credit or for the receiver, or a receive whose data its sender has
 * not begun to send, or whose message is on its way to a block: done() is not called, and the
 * sender hears of it as if there had been no room. Returns false if it ends by itself, soon or when
 * the peer is found silent, or is a receive that has matched nothing, or a message of a peer that
 * has not joined. */
bool messages_abandon(struct messages *messages, struct transfer *message);
/* Is there a kept message that such a receive would get? */
bool messages_probe(
	struct messages *messages, uint64_t bits, uint64_t ignore, struct message_found *found);
bool messages_probe_wish(
	struct messages *messages, const struct receive_wish *wish, struct message_found *found);
/* Takes the kept message that such a receive would get: no other receive gets it from then on.
 * messages_receive_taken() or messages_discard() is to follow; messages_close() frees it, too.
 * NULL: there is none, or no memory. Not for front ends that call messages_show() or
 * messages_claim(). */
struct unexpected *messages_take(
	struct messages *messages, const struct receive_wish *wish, struct message_found *found);
/* Receives a message that was taken; it is not the caller's any more. */
void messages_receive_taken(struct messages *messages, struct transfer *message,
	struct unexpected *taken, void *buffer, uint64_t room, const struct map_vector *vector);
/* Receives it as if there were no room for it. */
void messages_discard(struct messages *messages, struct unexpected *taken);
/* The same for one of several that look for messages at a time. A message that it finds counts as
 * claimed from then on, and is found only if `again`; receives and probes do not care. shows: a
 * message may be taken as if it had been shown, without which it cannot be claimed. */
bool messages_claim(struct messages *messages, uint64_t bits, uint64_t ignore, bool again,
	bool shows, struct message_found *found);

/* The oldest kept message that was not shown yet, with its data if it has at most `least` bytes,
 * and with that of a longer one if it is here. NULL: there is none, or it is not here yet, or those
 * that were shown have as much memory as blocks may have. messages_shown() is to follow. */
struct unexpected *messages_show(struct messages *messages, uint64_t least);
/* It was shown: it is received and goes, or it is kept (M10). */
void messages_shown(struct messages *messages, bool received);

/* A word to a peer's told(), of MESSAGES_WORD bits. */
void messages_tell(struct messages *messages, uint32_t peer, uint64_t word);

/* Gives a process a number that was never used, else the one that was given back first. Returns
 * false if there is no number, or no memory. */
bool messages_admit(struct messages *messages, struct process process, uint32_t *peer);
/* What a peer is to know its number by (M8). It names this use of the number alone. */
uint32_t messages_name(const struct messages *messages, uint32_t peer);
/* The number that a name is of, which may be in another use by now, or in none. */
static inline uint32_t messages_named(uint32_t name)
{
	return name & NAME_RANK_MASK;
}

/* Dismisses a peer, and gives its number back. Returns false if something that names it is still
 * under way (M8). */
bool messages_retire(struct messages *messages, uint32_t peer);
/* A peer's name for this process: from now on the peer can be sent to. */
void messages_join(struct messages *messages, uint32_t peer, uint32_t self);
/* M9. Nothing more comes from the peer, and what it has sent and nobody has received is dropped. */
void messages_dismiss(struct messages *messages, uint32_t peer);
/* Sends a greeting, which is the library's until answered(). Returns false if the space is
 * closed. */
bool messages_greet(struct messages *messages, struct greeting *greeting);
/* Of a peer that failed: is its process there, but knows this one not, or no longer? */
bool messages_is_stranger(const struct messages *messages, uint32_t peer);
/* Has its process ended, or was it asked for and not there? Else it is silent. */
bool messages_is_closed(const struct messages *messages, uint32_t peer);
/* Asks a peer that may be gone for a sign of life: failed() is called if there is none. */
void messages_ask(struct messages *messages, uint32_t peer);
/* Where peers come: asks each peer that messages_is_owed(), at most twice a second. A peer that has
 * kept a message, and is gone, says nothing of its own. Reads the clock if a message pends, or
 * always. Returns true if it was time to ask. */
bool messages_review(struct messages *messages, bool always);

/* For front ends with threads. They call all other functions under a lock of theirs, and this one
 * without it: it sleeps until there is work for messages_progress(), look(context) returns true,
 * somebody calls messages_rouse(), or the time, ns, is over. */
/* beside: queues of other spaces of the engine, so many, at which it sleeps as well; look() looks
 * at them, and they stay. */
void messages_await(struct messages *messages, const struct queue_view *beside, unsigned count,
	bool (*look)(void *context), void *context, uint64_t timeout);
void messages_rouse(struct messages *messages);
/* A descriptor, which the caller closes: readable while there are events, and until
 * messages_lower() finds none. -1: there is none to be had. */
int messages_watch(struct messages *messages);
void messages_lower(struct messages *messages);

/* Does what there is to do. Returns how much that was: events, and whether messages have arrived
 * since the last call, kept or not. */
unsigned messages_progress(struct messages *messages);
/* The same until look(context) returns true, for at most timeout ns; look NULL: until there was
 * something to do. Returns false on timeout. */
bool messages_wait(
	struct messages *messages, bool (*look)(void *context), void *context, uint64_t timeout);
/* Handles the events that are here. Drives no interface, so any thread may call it. */
void messages_hear(struct messages *messages);
/* Are there events for messages_progress()? Without the lock, too. */
bool messages_has_events(const struct messages *messages);
/* Does messages_progress() have to be called soon, whatever happens? A fetch waits for a region. */
bool messages_is_late(const struct messages *messages);
/* How many messages a peer has not acknowledged, or not fetched, yet. The end of one that needed no
 * answer (M12) is seen by a look: it wakes no thread. */
uint64_t messages_pending(const struct messages *messages);
/* Has a peer messages that it has not acknowledged, or may fetch? */
bool messages_is_owed(const struct messages *messages, uint32_t peer);
/* Was there a message to a peer or from it, in this use of its number? */
bool messages_has_carried(struct messages *messages, uint32_t peer);
/* Of them, how many have not been acknowledged. */
uint64_t messages_flying(const struct messages *messages);

#endif
