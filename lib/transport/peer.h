/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h - what a transport remembers of another process, and where it is kept.
 *
 * A peer is made by the first message to it or the first frame from it, and forgotten when it has
 * been idle for PEER_MEMORY. Its memory for frames in flight (struct flight, struct reorder, struct
 * assembly) comes from pools and goes back as soon as it is not needed.
 *
 * I1. A sequence number psn of the own stream is in flight when tx_una <= psn < tx_next (serially);
 *     flight is not NULL exactly when there is one. At most FRAME_WINDOW are.
 * I2. Of the peer's stream all before rx_next have been delivered in order; received has the bits
 *     of those after it that have arrived: delivered already (no mbuf in reorder) or held there.
 * I3. A message is in exactly one of waiting (nothing framed), open (its start is framed), unacked
 *     (all is framed). open and unacked are in the order of their numbers and of their last psn.
 * I4. The sender begins a new stream when it has sent nothing for STREAM_IDLE and no message is
 *     open, the receiver goes on with a stream until it has not heard the peer for STREAM_MEMORY,
 *     and a peer is forgotten only after PEER_MEMORY of silence both ways, unless early.
 *     Only frames that their sender remembers having sent to the peer count as heard: it answers
 *     questions without a trace.
 * I5. No stream begins twice, however late its frames are, and whatever the clocks are. A stream
 *     begins with a psn that this process has told, and psns have generations:
 *     transport->generation counts them, and never goes back. A peer's streams are ordered by the
 *     generation of their psn, then by their number (less than 2^15 of them have one psn). One
 *     begins only if it is after all that the peer's life has begun, and only with a psn of the
 *     last two generations or of that of the last one (address_generation()). A peer is forgotten
 *     only when the psn that its last stream began with is of a generation before the last two;
 *     then a process that is not known must begin with a psn of these. doc/wire.md, section 5, has
 *     the proof. Nothing else depends on times. That psns are told early enough to be of use does:
 *     they are good for PSN_LIFE at least, and asked for again when they may be older (psn_good()).
 * I6. When the table is crowded, strangers' peers are forgotten early, as I5 says, and generations
 *     are short. A peer that may remember a stream to it is forgotten early only if the number of
 *     the next first stream, which counts the time, is another one for as long as it may: so it
 *     does not take new data for data that it has had.
 * I7. No psn is used twice in a stream: after STREAM_PSNS psns the stream is OUTGOING_LAST, and the
 *     next message begins the next one. A stream that its open messages make STREAM_END times as
 *     long ends, and they have failed. The timer sees both (timers.c): it runs within a timeout as
 *     long as frames are in flight, and no link carries the remaining 2^30 psns meanwhile.
 */
#ifndef TRANSPORT_PEER_H
#define TRANSPORT_PEER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <base/list.h>
#include <transport/bitmap.h>
#include <transport/transport.h>
#include <transport/wheel.h>

#define CREDIT_INITIAL 16 /* frames in flight before the peer has said what it can take */

#define STREAM_IDLE    (30 * SECOND)
#define STREAM_MEMORY  (2 * STREAM_IDLE)
#define PEER_MEMORY    (2 * STREAM_MEMORY)
#define PSN_LIFE       (50 * SECOND) /* of the psns that are told at a time, at least (I5) */
#define PSN_FRESH      STREAM_IDLE   /* a psn that was told and not used yet is as good as new */
#define PSN_KNOWN      (3 * STREAM_IDLE) /* so is one that was used, after the last data */
#define PSN_STREAMS    (1u << 14)        /* begin with one psn, at most */
#define PSN_TICK_SHIFT 24                /* ns, of peer->told */
#define STREAM_PSNS    (1u << 30)        /* after these no message begins in a stream (I7), */
#define STREAM_END     3u                /* after so many times as many it ends */
/* These as the transport has them: times divided by options.haste, psns as options say. */
struct spans {
	uint64_t stream_idle, stream_memory, peer_memory, psn_life, psn_fresh, psn_known;
	uint32_t stream_psns;
};

#define STREAM_TICK    (UINT64_C(1) << 22) /* ns in which the number of a first stream grows by 1 */
#define OPEN_MAX       8                   /* messages to one peer that are partly framed */
#define ASSEMBLIES_MAX 16   /* messages from one peer that are partly here; more than OPEN_MAX */
#define SMALL_BYTES    1024 /* transport header included */
#define SMALL_NEAR     3    /* small frames in flight to a peer that is near, and */
#define SMALL_FAR      8    /* to others; see sender_small_open() */
#define SMALL_MANY     1    /* to either while many messages share a frame: */
#define MANY_RECORDS   16   /* so many, of those that had to wait for a window */
/* of messages that wait for this window, or a frame's worth, leave without it */
#define BUNDLE_BYTES 2560
#define NEAR_DELAY   (8 * MICROSECOND) /* least time in the network, there and back */
#define STOPS_MAX    4 /* stops that wait to be sent; more are not sent: that costs bandwidth */

/* The state of a peer's life and address.
 *
 *     UNKNOWN -- answer, or first frame of a stream --> KNOWN
 *     KNOWN ---- messages to the peer fail -----------> LAPSED
 *     LAPSED --- answer, or frame that proves itself -> KNOWN
 *     UNKNOWN -- BYE ---------------------------------> ENDED
 *     LAPSED --- BYE ---------------------------------> ENDED
 *     LAPSED --- answer of another life --------------> UNKNOWN, and KNOWN by the same answer
 *     ENDED ---- answer ------------------------------> UNKNOWN, and KNOWN by the same answer
 *     KNOWN ---- its refusal of a stream -------------> UNKNOWN
 *
 * The messages to a KNOWN peer fail before it is ENDED, or UNKNOWN because another life answers. */
enum address_state { ADDRESS_UNKNOWN, ADDRESS_KNOWN, ADDRESS_LAPSED, ADDRESS_ENDED };

/* The stream to a peer. FIRST: nothing of it has been acknowledged yet.
 *
 *     CLOSED -- first frame ---------------------> FIRST
 *     FIRST --- acknowledgement -----------------> OPEN
 *     OPEN ---- nothing is in flight, and the
 *               peer tells another psn, or is to
 *               be asked for one ----------------> CLOSED
 *     OPEN ---- first frame after STREAM_IDLE ---> FIRST, of the next stream
 *     FIRST --- messages that have begun fail ---> CLOSED
 *     OPEN ---- messages that have begun fail ---> CLOSED
 *     OPEN ---- STREAM_PSNS are used ------------> LAST: no message begins in it
 *     LAST ---- no message is open, and nothing
 *               is in flight, or messages that
 *               have begun fail -----------------> CLOSED
 */
enum outgoing_state { OUTGOING_CLOSED, OUTGOING_FIRST, OUTGOING_OPEN, OUTGOING_LAST };

/* The stream from a peer. GAP: `received` has bits, because a frame is missing before them.
 * GIVEN_UP: only the first frames of a later stream are accepted. NONE: this life of the peer has
 * begun no stream.
 *
 *     NONE ------- first frame ----------------> OPEN
 *     OPEN ------- frame beyond the next ------> GAP
 *     GAP -------- missing frames -------------> OPEN
 *     OPEN, GAP -- silence, the life's end, or
 *                  frame that was held and is
 *                  wrong ----------------------> GIVEN_UP
 *     any -------- a later stream, another
 *                  life -----------------------> NONE
 */
enum incoming_state { INCOMING_NONE, INCOMING_OPEN, INCOMING_GAP, INCOMING_GIVEN_UP };

enum ack_list { ACK_URGENT, ACK_SOON, ACK_LATER, ACK_LISTS, ACK_NONE = ACK_LISTS };

struct messages {
	struct message *head;
	struct message *tail;
};

/* A frame of the own stream until it is acknowledged: its mbuf, or where the flight's `outlined`
 * says so its outline; and when it was last sent. */
struct slot {
	union {
		struct rte_mbuf *frame;
		struct outline *outline;
	};
	uint64_t sent;
};

/* The frames in flight to one peer. The bitmaps are rings (bitmap.h). */
struct flight {
	uint64_t sacked[BITMAP_WORDS];
	uint64_t lost[BITMAP_WORDS]; /* and not sent again yet */
	uint64_t resent[BITMAP_WORDS];
	uint64_t outlined[BITMAP_WORDS];
	uint32_t small_count; /* frames of less than SMALL_BYTES, not acknowledged in any way */
	uint32_t sacked_count;
	uint32_t lost_count;
	uint32_t rack_psn;     /* of the delivered frame that was sent last, */
	uint32_t highest;      /* the highest delivered psn + 1 */
	uint64_t rack_sent;    /* when, 0: none yet */
	uint64_t rack_rtt;     /* and how long it took to be acknowledged */
	uint64_t reorder_due;  /* when frames now thought reordered must be thought lost; 0: none */
	uint64_t timeout_from; /* what the retransmission timeout counts from */
	bool excused;          /* a timeout has been put off because this core was late */
	/* a timeout has given up frames, and nothing has shown yet that it was wrong */
	bool expired;
	/* false: nothing is sacked, lost, resent or outlined, and frames are in flight in the order
	 * in which they were sent */
	bool disturbed;
	bool probed; /* a tail loss probe is out */
	/* frames of it that the peer's host refused, and since when; void once the peer is heard */
	uint8_t refusals;
	uint64_t refused_from;
	/* the last frame that had to wait for a window took MANY_RECORDS messages or more */
	bool many;
	struct slot slots[FRAME_WINDOW];
};

/* Frames that came early and must wait for their turn. */
struct reorder {
	struct rte_mbuf *held[FRAME_WINDOW];
	unsigned count;
};

/* A message that has begun and is not all here. */
struct assembly {
	struct assembly *next;
	struct map memory; /* of the bytes to place, no more than length */
	void *context;
	uint64_t length; /* as announced */
	uint64_t placed;
	uint32_t number;
	bool want_end;
	bool stop;
	bool over;               /* nothing more is placed: it waits for older ones to end, */
	enum transport_fail why; /* as this says */
};

struct peer {
	/* line 0: a frame arrives */
	struct process process;
	uint32_t incarnation; /* 0: not known */
	enum address_state address_state : 2;
	enum outgoing_state outgoing : 2;
	enum incoming_state incoming : 2;
	bool self : 1;    /* this process */
	bool asking : 1;  /* it is asked for its address, or to confirm it (a challenge) */
	bool stalled : 1; /* there is work, but no window or credit */
	bool slow_start : 1;
	uint16_t rx_stream;
	uint32_t rx_next;
	uint32_t rx_message; /* number of the next message to start */
	uint32_t echo;       /* its newest timestamp */
	uint32_t echo_at;    /* own clock when that arrived */
	uint64_t heard;      /* last frame of a stream, acknowledgement of one (I4), or BYE */
	struct assembly *assemblies;
	struct reorder *reorder;
	uint16_t ack_owed; /* frames since the last acknowledgement, small ones ACK_SMALL times */
	uint8_t ack_list;
	uint8_t assembly_count;
	uint32_t epoch; /* when it last counted as an active sender */

	/* line 1: an acknowledgement is owed */
	uint64_t received[BITMAP_WORDS];
	struct link ack_link;
	uint64_t ack_due;
	uint8_t address[FRAME_ADDRESS_BYTES];
	uint8_t open_count;
	uint8_t stop_count;

	/* line 2: sending */
	uint32_t tx_una;
	uint32_t tx_next;
	uint32_t tx_message; /* number of the next message to start */
	uint16_t tx_stream;
	uint16_t credit; /* frames that the peer lets be in flight */
	struct flight *flight;
	struct messages waiting;
	struct messages open;
	uint32_t window; /* congestion window in frames, 16.16 */
	uint32_t growth; /* frames delivered since it last grew */

	/* line 3: acknowledgements arrive */
	struct messages unacked;
	struct link ready_link;
	uint32_t rtt;       /* smoothed, with the time in hosts, ns; 0: none */
	uint32_t variance;  /* of it */
	uint32_t delay_min; /* least time in the network in the present and the last period */
	uint32_t delay_min_next;
	uint64_t progress; /* last acknowledgement of something new, or begin of the flight or of
			      asking */
	uint64_t sent;     /* last frame to it */

	/* line 4: timers */
	struct timer timer;
	uint64_t data_sent;     /* last sequenced one */
	uint64_t pace_due;      /* the window is below one frame: when the next may go */
	uint64_t cut_at;        /* when the window was last cut */
	uint8_t backoff;        /* retransmission timeouts in a row */
	uint8_t reorder_factor; /* 0: the network has reordered no frames to it */
	uint8_t tx_marks;       /* ECN marks on frames of this process, as it last told, and */
	uint8_t rx_marks;       /* on frames from it since its stream began, modulo 256 */
	uint32_t retransmits;
	uint32_t generation; /* I5: of the psn that its last stream began with */
	/* bytes of messages that came since it is stalled, up to transport->bundle */
	uint16_t gathered;
	uint16_t rx_base; /* number of the first stream from it that began with that psn */

	/* line 5: seldom */
	uint64_t ask_due;
	uint64_t delay_period;  /* when the present period of delay_min ends */
	uint32_t delay;         /* smoothed time in the network */
	uint32_t window_before; /* the last timeout or loss */
	uint32_t queued;        /* messages not acknowledged */
	uint32_t stops[STOPS_MAX];
	uint16_t stop_stream;
	uint8_t asks;      /* questions in a row */
	bool wanted : 1;   /* this process was the first to send */
	bool taken : 1;    /* a stream that began with `first` was acknowledged */
	bool stale : 1;    /* `first` was not, and was told more than PSN_FRESH ago */
	bool denied : 1;   /* the question was answered: no process has this name */
	bool marked : 1;   /* the engine's: transport_mark() */
	uint32_t measured; /* own clock when its path was measured last */
	uint32_t first;    /* psn that own streams begin with, as it told */
	uint16_t told;     /* when, in units of 2^PSN_TICK_SHIFT ns */
	uint16_t tx_base;  /* number of the stream before the first one that begins with it */
	uint32_t question; /* of those that it was asked, the last one's place */
};
static_assert(sizeof(struct peer) <= 384, "100,000 idle peers fit in 50 MB with their index");
static_assert(offsetof(struct peer, received) == 64, "line 1");
static_assert(offsetof(struct peer, tx_una) == 128, "line 2");
static_assert(offsetof(struct peer, unacked) == 192, "line 3");
static_assert(offsetof(struct peer, timer) == 256, "line 4");

/* The index of peers: open addressing, linear probing, at most half full. */
struct peer_cell {
	struct peer *peer; /* NULL: free */
	uint32_t hash;
};

struct peer_table {
	struct peer_cell *cells;
	/* whom peer_table_find() finds at once: saves 0.9 to 1.6 % of a put. NULL: none */
	struct peer *last;
	uint32_t mask;
	uint32_t count;
	uint32_t max;
	uint32_t seed;
	uint32_t hand; /* the cell where a peer to forget early is looked for next */
};

bool peer_table_init(struct peer_table *table, uint32_t max, uint32_t seed);
void peer_table_free(struct peer_table *table);
struct peer *peer_table_search(const struct peer_table *table, struct process process);

static inline struct peer *peer_table_find(const struct peer_table *table, struct process process)
{
	struct peer *last = table->last;

	if (last && process_same(last->process, process))
		return last;
	return peer_table_search(table, process);
}

/* The peer of a process, made if need be; NULL when there is no room. inbound: made by a frame,
 * which leaves the last quarter of the room to those whom this process wants to reach, and may make
 * another stranger's peer be forgotten (I6). */
struct peer *peer_get(struct transport *transport, struct process process, bool inbound);

/* Sees to it that the peer's timer runs (timers.c) at `at`, or before. */
void peer_wake(struct transport *transport, struct peer *peer, uint64_t at);
/* Is nothing of it under way? */
bool peer_idle(const struct peer *peer);
/* The psns that are told are others from now on, if the last ones have been told for `life`. */
void generation_turn(struct transport *transport, uint64_t life);
/* Are the psns that its streams began with of no use to others any more? Else it must not be
 * forgotten (I5). */
bool peer_outlived(const struct transport *transport, const struct peer *peer);
/* Forgets such a peer. */
void peer_forget(struct transport *transport, struct peer *peer);

static inline void messages_append(struct messages *messages, struct message *message)
{
	message->next = NULL;
	if (!messages->head)
		messages->head = message;
	else
		messages->tail->next = message;
	messages->tail = message;
}

/* Copies data of a message. Returns false if they are not there: the message is to be voided. */
static inline __attribute__((always_inline)) bool message_copy(
	struct message *message, uint64_t offset, void *to, uint32_t bytes)
{
	if (__builtin_expect(map_copy_out(&message->memory, offset, to, bytes), 1))
		return true;
	message->missing = true;
	return false;
}

static inline struct message *messages_take(struct messages *messages)
{
	struct message *message = messages->head;

	messages->head = message->next;
	return message;
}

/* The transitions of the three machines, each along an arrow that is drawn above. */
static inline void address_turn(struct peer *peer, enum address_state to)
{
	assert(to == ADDRESS_UNKNOWN ||
		(to == ADDRESS_LAPSED ? peer->address_state == ADDRESS_KNOWN
				      : peer->address_state == ADDRESS_UNKNOWN ||
						peer->address_state == ADDRESS_LAPSED));
	peer->address_state = to;
}

static inline void outgoing_turn(struct peer *peer, enum outgoing_state to)
{
	assert(to == OUTGOING_LAST
			? peer->outgoing == OUTGOING_OPEN
			: to == OUTGOING_CLOSED ||
				  (to == OUTGOING_OPEN) == (peer->outgoing == OUTGOING_FIRST));
	peer->outgoing = to;
}

static inline void incoming_turn(struct peer *peer, enum incoming_state to)
{
	assert(to == INCOMING_NONE ||
		(to == INCOMING_OPEN
				? peer->incoming == INCOMING_NONE || peer->incoming == INCOMING_GAP
				: peer->incoming == INCOMING_OPEN ||
					  peer->incoming == INCOMING_GAP));
	peer->incoming = to;
}

static inline bool incoming_is_open(const struct peer *peer)
{
	return peer->incoming == INCOMING_OPEN || peer->incoming == INCOMING_GAP;
}

static inline uint32_t peer_in_flight(const struct peer *peer)
{
	return peer->tx_next - peer->tx_una;
}

/* Frames that may be in the network now. */
static inline uint32_t peer_pipe(const struct peer *peer)
{
	if (!peer->flight)
		return 0;
	return peer_in_flight(peer) - peer->flight->sacked_count - peer->flight->lost_count;
}

#endif
