/* SPDX-License-Identifier: BSD-3-Clause */
/* transport.h - reliable, ordered delivery of messages between processes that never connect.
 *
 * It knows frames, peers and bytes, and nothing of Portals: a message is a short header for the
 * layer above and up to 2^40 bytes of data. One poll core owns a transport and calls every function
 * here; none of it is thread-safe, none blocks, none makes a system call.
 *
 * T1. Messages to one peer start at the peer in the order of transport_send(): message_begin() and
 *     message_whole() upcalls come in that order. So do the ends of messages that are placed in
 *     several parts; those that are here as a whole end before them. Each message is begun and
 *     ended at most once, whatever the network does.
 * T2. Every message that was sent ends in one message_done() upcall: 0 when the peer's transport
 *     has all of it (data placed or discarded, or `missing`), else why not. Its memory is not read
 *     after that, neither here nor by a port.
 * T3. Every message that was begun ends in one message_end() upcall, unless it was whole, or
 *     discarded or taken in message_begin(); memory is not written after that.
 * T4. Nothing read from a frame is believed before it is checked; a bad frame costs a counter.
 * T5. An upcall may call transport_send() and nothing else of this header.
 * T6. transport_send() and transport_push() make none of the upcalls about messages.
 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <base/clock.h>
#include <base/list.h>
#include <base/map.h>
#include <base/port.h>
#include <transport/secret.h>
#include <wire/encapsulation.h>
#include <wire/frame.h>

struct report;

struct transport;
struct transport_counters; /* statistics.h */
struct zcopy;

struct process {
	uint32_t nid;
	uint32_t pid;
};

static inline bool process_same(struct process a, struct process b)
{
	return ((a.nid ^ b.nid) | (a.pid ^ b.pid)) == 0;
}

/* Why a message failed. */
enum transport_fail {
	TRANSPORT_OK,
	TRANSPORT_UNREACHABLE,  /* the address was never learnt */
	TRANSPORT_DEAD,         /* silent for peer_timeout */
	TRANSPORT_RESTARTED,    /* another incarnation, or a BYE */
	TRANSPORT_SHUTDOWN = 5, /* transport_close() */
	/* memory that its data goes to is not there, or of its sender's that it comes from */
	TRANSPORT_FAULT = 6,
	/* unreachable, and for a reason: its last life said BYE, or no process has the name */
	TRANSPORT_ABSENT = 7
};

/* What RECORD_WHOLE without data and RECORD_VOID take more than RECORD_WHOLE without data. */
#define VOID_BYTES 24

/* A message on its way out. The caller fills the first part and keeps the whole alive until
 * message_done(). */
struct message {
	struct map memory;      /* its data, only read; more than VOID_BYTES if they may go */
	uint32_t header_length; /* a multiple of 8 */
	/* the transport's */
	uint32_t number;
	uint32_t first_psn; /* frames that hold it */
	uint32_t last_psn;
	uint64_t framed;     /* bytes of data that have been put into frames */
	struct zcopy *zcopy; /* frames refer to the data */
	/* a part of the memory was not there, and the message has ended at the peer with
	 * TRANSPORT_FAULT; unless the peer had all of it when that part was to be sent again */
	bool missing;
	bool awaited; /* transport_await() has counted it */
	struct message *next;
	/* the caller's again */
	uint8_t header[MESSAGE_HEADER_MAX];
};

/* A message on its way in, as the layer above decided in message_begin(). */
struct inbound {
	/* where the data goes; what is beyond its length is discarded. Length 0: discard all */
	struct map memory;
	void *context; /* for message_end() */
	bool want_end; /* call message_end(); false for a message that was discarded or has ended */
	bool stop;     /* tell the sender not to send what will be discarded anyway */
};

/* How a ping ended: the first outcome that fits. */
enum ping_outcome {
	PING_ANSWERED,
	PING_NO_ANSWER,  /* the process's address is known, and the question went there */
	PING_NO_ADDRESS, /* nobody answers the question where the process is */
	PING_NO_NODE,    /* with udp: neither does the node, or the gateway to it, answer ARP */
	PING_NOT_SENT,   /* the address is known, but the port took no frame */
	PING_BAD_SIZE,   /* larger than a frame of this port, or smaller than a header */
	PING_NO_MEMORY,  /* no room for another peer */
	PING_CLOSED      /* this process's interface goes */
};

/* An echo question (echo.c). Sizes are bytes of a frame after its Ethernet header, as PTL_MTU
 * counts. The caller fills the first part and keeps the whole alive until ping_done(). */
struct ping {
	struct process to;
	uint32_t size; /* transport_ping_least() to transport_ping_most() */
	/* wanted of the answer; less than the least: that; more than size: size */
	uint32_t answer;
	uint64_t timeout; /* ns */
	/* Result. The rest of it means something with PING_ANSWERED. */
	enum ping_outcome outcome;
	bool absent; /* not answered, and the port knows that no process has the name */
	uint8_t address[FRAME_ADDRESS_BYTES]; /* MAC, where the question went to */
	uint32_t incarnation;                 /* the life that answered */
	uint32_t answered;                    /* size of the answer */
	uint32_t capacity;                    /* size of the largest frame of the process */
	uint64_t round_trip; /* ns from giving the question to the port to seeing the answer */
	uint64_t residence;  /* of it: the question was with its target */
	uint64_t network;    /* of it: neither that, nor waiting in this host to be seen */
	/* false: a host was away, so residence is the most that it may have been, network the
	 * least */
	bool exact;
	/* the transport's */
	uint32_t number;
	uint64_t begun; /* 0: not yet, as is the next */
	uint64_t sent;
	struct link link;
};

enum name_outcome {
	NAME_FOUND,
	NAME_UNKNOWN,   /* nobody has answered */
	NAME_AMBIGUOUS, /* two nodes have the name */
	NAME_CLOSED     /* transport_find_abandon() */
};

/* A question for the node that has a name, or for the name of a node. */
struct name_query {
	struct frame_name wanted; /* the name; no host: that of node `nid` is wanted */
	uint32_t nid;             /* also the result, with NAME_FOUND and NAME_AMBIGUOUS */
	uint32_t pid, pids;       /* process ids that are asked: the first, and how many; not 0 */
	uint64_t timeout;         /* ns */
	uint32_t reply;           /* the caller's */
	/* Result. The rest of it means something with NAME_FOUND. */
	enum name_outcome outcome;
	uint32_t other; /* with NAME_AMBIGUOUS: the other node that has it */
	struct frame_name name;
	/* the transport's */
	bool found, ambiguous;
	uint32_t asked;
	uint64_t number;
	uint64_t begun; /* 0: not yet */
	uint64_t next;  /* question */
	uint64_t ends;
	struct link link;
};

struct transport_upcalls {
	/* The next message of this peer starts, and all its data is here: it ends with the upcall,
	 * whatever becomes of it. */
	void (*message_whole)(void *context, struct process from, const void *header,
		uint32_t header_length, const void *data, uint32_t length);
	/* The next message of this peer starts, and data of it is still to come. record: its
	 * header, its length (extent), and the first of its data; fills inbound (zeroed before).
	 * An engine that wants no more than that data may place it at once. Else the transport
	 * places it after the upcall, and the rest as it comes; a message that wants no data ends
	 * at once. */
	void (*message_begin)(void *context, struct process from, const struct record *record,
		struct inbound *inbound);
	/* All data of the message is in place (0), or no more will come (why). context:
	 * inbound's. */
	void (*message_end)(void *context, void *inbound_context, enum transport_fail why);
	/* T2 */
	void (*message_done)(void *context, struct message *message, enum transport_fail why);
	/* A ping has ended. */
	void (*ping_done)(void *context, struct ping *ping);
	/* A transport_find() has ended. */
	void (*name_done)(void *context, struct name_query *query);
	/* Another process has this one's nid and pid, or another host its IPv4 address, and this
	 * MAC address. Told seldom. */
	void (*duplicate)(void *context, const uint8_t *address);
	/* A process speaks another version of the wire to this one. Told seldom. */
	void (*stranger)(void *context, struct process process, unsigned version);
	void *context;
};

struct transport_options {
	struct process self;
	/* not 0; another one than that of the last life of this process id */
	uint32_t incarnation;
	uint64_t peer_timeout; /* ns */
	/* for which messages wait for a process that was never heard of and is not there (port.h,
	 * absent): it may be about to start; 0: peer_timeout */
	uint64_t start_timeout;
	/* What the times for which streams and peers are remembered (peer.h) are divided by, in
	 * simulations; 0 is 1. All peers must have the same, and peer_timeout be divided, too. */
	uint32_t haste;
	uint32_t stream_psns; /* in simulations, instead of STREAM_PSNS (peer.h); 0: no other */
	uint32_t peers_max;
	/* Nobody else knows it. All zero, in tests: peers are told to begin their streams with
	 * first_psn. */
	struct secret secret;
	uint32_t first_psn;
	bool full_checksum; /* every byte is covered */
	/* gives others a turn while transport_close() waits for frames, returns how much was done;
	 * may be NULL */
	unsigned (*wait)(void);
	uint64_t seed;                              /* of what is random: jitter, stream numbers */
	struct encapsulation_options encapsulation; /* zero: raw Ethernet */
};

/* NULL when there is no memory. counters may lie in memory that others read (relaxed). The port
 * stays the caller's. */
struct transport *transport_create(const struct transport_options *options, struct port *port,
	const struct clock *clock, const struct transport_upcalls *upcalls,
	struct transport_counters *counters);
/* Ends every message with TRANSPORT_SHUTDOWN, says BYE to peers, frees everything. */
void transport_close(struct transport *transport);

/* The calling thread owns the transport from here on, as the thread that has made it does at first.
 * Debug builds assert in every other function that the owner is calling. */
void transport_own(struct transport *transport);

/* Queues a message to a process (wildcards are the caller's mistake). It cannot fail at once: what
 * goes wrong is told by message_done(), later (T6). */
void transport_send(struct transport *transport, struct process to, struct message *message);
/* Does this process have less than its share of `most` messages queued to it? The share is what
 * each would get if one peer more than now had frames in flight. */
bool transport_has_share(const struct transport *transport, struct process to, uint64_t most);

/* Marks a process that frames have come from, or takes the mark away. A mark is lost with what is
 * known of the process, when that is idle. */
void transport_mark(struct transport *transport, struct process process, bool mark);
bool transport_is_marked(const struct transport *transport, struct process process);
/* How many processes are marked? */
uint32_t transport_marks(const struct transport *transport);

/* Where the process is said to be. A hint: it is asked there first. */
void transport_hint(struct transport *transport, struct process process, const uint8_t *address);

/* Asks a process for an echo. It ends in ping_done(), perhaps from within this call. */
void transport_ping(struct transport *transport, struct ping *ping);
/* Ends all pings with PING_CLOSED. */
void transport_ping_abandon(struct transport *transport);
/* From now on this process answers for its host's name. No host: for none. */
void transport_name(struct transport *transport, const struct frame_name *name);
/* Asks the network; ends in name_done(), which may come at once. The query is the transport's until
 * then. */
void transport_find(struct transport *transport, struct name_query *query);
/* Ends all with NAME_CLOSED. */
void transport_find_abandon(struct transport *transport);
/* The least and largest size of a ping, bytes. */
uint32_t transport_ping_least(const struct transport *transport);
uint32_t transport_ping_most(const struct transport *transport);

/* From the next turn on: asks the network some times whether another process has this one's nid and
 * pid. */
void transport_claim(struct transport *transport);

/* One turn, in two halves so that the caller can drain its commands in between: a frame that has
 * been received is not processed before the commands that were posted before it arrived. */
/* takes the time and a burst; returns frames taken */
unsigned transport_receive(struct transport *transport);
void transport_process(struct transport *transport); /* processes that burst */
/* data, timers, acknowledgements; frames sent */
unsigned transport_transmit(struct transport *transport);

/* For a caller who does not wait for the rest of a turn. Takes the time and sends what is ready,
 * nothing else. Returns false if nothing of it has left, but a turn may help. A message that waits
 * for a window needs frames from its peer, and is not ready. */
bool transport_push(struct transport *transport);
/* Has transport_transmit() something to send that must leave in this turn? Timers and
 * acknowledgements that may wait do not count. */
bool transport_urgent(const struct transport *transport);

/* When transport_receive() was called last, and how long that was before the time that was taken
 * last, ns. */
uint64_t transport_looked(const struct transport *transport);
uint64_t transport_unlooked(const struct transport *transport);

/* ns until a timer must run (0: now; UINT64_MAX: never), for a poll core that wants to sleep. */
uint64_t transport_deadline(const struct transport *transport);

/* Is nothing in flight or owed: no unacknowledged frame, no acknowledgement to send? */
bool transport_settled(const struct transport *transport);

/* For a caller that is about to close: which of the messages sent until now, for which counts()
 * returns true, have not ended. What is sent later, to peers that go on sending, does not count. */
struct transport_awaited {
	uint64_t left;
	uint64_t lost;     /* have ended since, because their peer was unreachable or dead */
	uint64_t progress; /* when a peer that some are for last acknowledged something new */
	bool known;        /* has such a peer ever answered? */
};
/* Once. */
void transport_await(struct transport *transport, bool (*counts)(const struct message *message));
bool transport_awaits(const struct transport *transport);
/* Looks at each peer. */
void transport_awaited(const struct transport *transport, struct transport_awaited *awaited);

/* For looking inside. These functions write members of a JSON object that is open. */
/* Incarnation, checksum and number of peers. */
void transport_tell_life(const struct transport *transport, struct report *report);
/* Numbers of messages, peers and frames in work. */
void transport_tell_queues(const struct transport *transport, struct report *report);
uint32_t transport_peer_count(const struct transport *transport);
/* Writes up to count peers as items, from position *cursor (0: the first) of the table on, looks at
 * a bounded part of it, and moves *cursor, to UINT32_MAX at the end. Returns how many it wrote. */
unsigned transport_tell_peers(
	const struct transport *transport, uint32_t *cursor, unsigned count, struct report *report);

#endif
