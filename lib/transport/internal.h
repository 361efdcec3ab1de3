/* SPDX-License-Identifier: BSD-3-Clause */
/* internal.h - what a transport is made of. Owned by one poll core.
 *
 * The way of a frame in: transport.c takes it from the port, receiver.c checks it and finds the
 * peer, acknowledgement.c ends the messages that it acknowledges, assembly.c places its data; the
 * rest of an acknowledgement is mostly read once what the data was answered with has left. The way
 * out: transport_send() queues, sender.c fills frames, outbox.c gives them to the port. recovery.c
 * finds what was lost, congestion.c how much may be in flight, address.c where a peer is.
 *
 * Calls go down this list only, and a source includes the headers of what it calls:
 *
 *     transport                    the turn
 *     receiver  timers             what a frame or a timer begins
 *     life  incoming  assembly     a peer's life, the stream from it, its messages
 *     acknowledgement  recovery    what peers acknowledge; what was lost
 *     sender  echo                 frames with messages; echo questions and answers
 *     ack  address  flight         what is owed; where a peer is; what is in flight to it
 *     neighbour  zcopy  outline    hosts; frames without a copy; frames without bytes
 *     outbox  peer  congestion     frames to the port; peers; windows
 *     ready  buffer  pool  wheel   what all of them use
 *
 * I1. now is read when frames are taken, and once more when there is something to give. It never
 *     goes back, whatever thread reads it.
 * I2. in_flight is the number of mbufs (a frame of two pieces has two) in slots of flights, held
 *     that of those in reorder; both are bounded so that some of the pool is always left for
 *     receiving and for acknowledgements. A frame in flight keeps its mbuf only while its peer
 *     acknowledges: it has an outline (outline.h) instead while nothing of the stream was
 *     acknowledged yet, and once it was in flight when a retransmission timeout expired, or had to
 *     be made again. So peers that are silent hold no mbufs, however many they are: the first
 *     timeout takes them away. The exception is an outline that found no memory.
 * I3. Before quiet_until, a turn that takes no frame has nothing to do: nothing is ready, pending,
 *     owed by then, waiting in a queue of this transport, and no timer is due. A poll core finds it
 *     so most of the time, by one comparison, which saves 2.2 to 6.4 % of the instructions of a
 *     put. transport_transmit() alone says so; whatever makes work for a turn from outside of it
 *     (frames, transport_send() and its like) sets it to 0.
 */
#ifndef TRANSPORT_INTERNAL_H
#define TRANSPORT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <base/counter.h>
#include <base/list.h>
#include <base/owner.h>
#include <base/pool.h>
#include <base/port.h>
#include <base/probe.h>
#include <transport/hints.h>
#include <transport/peer.h>
#include <transport/statistics.h>
#include <transport/transport.h>
#include <transport/wheel.h>
#include <wire/encapsulation.h>
#include <wire/frame.h>

struct zcopy;
struct neighbours;

#define BURST_FRAMES     64u
#define OUTBOX_FRAMES    64
#define LOOP_FRAMES      512 /* frames from this process to itself */
#define PONGS_MAX        16  /* echo answers in a turn */
#define PENDING_ACKS_MAX 16  /* acknowledgements put off, of different peers mostly */

#define CREDIT_MAX ((uint32_t)FRAME_WINDOW)
/* between polls: a core so late kept frames waiting */
#define GAP_LEAST (20 * MICROSECOND)
/* until a port that took nothing is tried again, at first */
#define RETRY_DELAY (2 * MICROSECOND)

/* An echo question that is to be answered. */
struct pong {
	struct frame frame;
	uint64_t arrival;
	bool looped; /* from this process */
	uint8_t to[FRAME_ADDRESS_BYTES];
};

/* A frame's acknowledgement, until it is read. */
struct pending_ack {
	struct peer *peer;
	const uint8_t *sack; /* the frame's bitmap: read at once; NULL: it has none */
	uint32_t ack;
	uint32_t echo;
	uint32_t delay;
	uint16_t credit;
	uint8_t marks;
};

struct echoes {
	bool busy; /* there is something in what follows, or a question for a name */
	unsigned pong_count;
	struct link pings;     /* own questions */
	uint32_t number;       /* of the last one */
	uint64_t answers_paid; /* until when the answers given have used up their share */
};

struct names {
	struct frame_name own;
	struct link queries; /* own questions */
	uint64_t number;     /* of questions */
	uint64_t paid;       /* until when the answers given have used up their share */
};

struct transport {
	uint64_t now;
	uint64_t now_received; /* when frames were taken, */
	uint64_t polled;       /* and when before that */
	/* silence.h: when this core was last found to have been away, and when before that */
	uint64_t returned, returned_before;
	uint64_t arrival;     /* since when the frames of this burst may have waited here */
	uint64_t quiet_until; /* I3; 0: not known */
	struct port *port;
	const struct clock *clock;
	struct transport_counters *counters;
	struct transport_upcalls upcalls;
	struct transport_options options;
	struct spans spans;
	struct encapsulation encapsulation;
	struct neighbours *neighbours; /* NULL without udp */
	struct peer_table peers;
	struct hints hints;
	struct pool peer_pool;
	struct pool flight_pool;
	struct pool outline_pool;
	struct pool reorder_pool;
	struct pool assembly_pool;
	struct pool zcopy_pool;
	struct zcopy *zcopies_ended; /* of messages that are done, but for others' references */
	struct peer *self;
	uint64_t random;
	uint64_t ask_next; /* when the next first question may go */
	/* until when these have used up their share (address.h): answers to questions, resets, and
	 * questions that frames of processes of no known life have caused */
	uint64_t tells_paid, resets_paid, hints_paid;
	uint32_t questions;  /* begun */
	uint32_t marks;      /* peers that are marked */
	uint32_t generation; /* of the psns that streams to this process begin with (peer.h I5) */
	uint64_t generation_at; /* when it began */
	uint32_t capacity;      /* bytes of transport header and records in a frame */
	/* bytes of data that are copied into a frame, whatever the port can gather */
	uint32_t copied_max;
	unsigned turn_frames; /* to send in a turn, at most */
	uint32_t bundle;      /* bytes of messages that leave without a window for small frames */
	uint16_t stream;      /* what numbers of streams are counted from */
	uint16_t credit;      /* told to peers */
	uint32_t credit_total;

	uint32_t in_flight;
	uint32_t in_flight_max;
	uint32_t in_flight_shared; /* of it: beyond that a peer gets no more than its share */
	uint32_t held;
	uint32_t held_max;
	uint64_t messages; /* not done yet */
	uint64_t awaited;  /* of these: transport_await() */
	uint64_t lost;     /* were awaited */
	bool plain;        /* raw Ethernet without a tag, and no checksum of all bytes */
	bool guards;       /* so does the port (port.h), and no checksum here reads data */
	bool closing;
	bool blocked; /* the last turn could not send all it wanted for lack of room */

	/* peers that have sent lately */
	uint64_t epoch_end;
	uint32_t epoch;
	uint32_t senders;
	uint32_t senders_before;

	struct link ready; /* peers with something to send and leave to send it */
	uint32_t ready_count;
	struct link acks[ACK_LISTS];
	uint32_t acks_owed; /* peers in them */
	uint32_t pending_ack_count;
	uint64_t ack_next;       /* with acks_owed: no acknowledgement is due before */
	struct messages refused; /* messages that could not even be queued */

	unsigned burst_count;
	unsigned burst_limit;
	unsigned burst_looped; /* the first ones come from this process */
	unsigned outbox_count;
	uint32_t loop_head;
	uint32_t loop_tail;
	unsigned sent; /* frames in this turn */

	struct echoes echoes;
	struct names names;
	/* the time of the port's first refusal since it took the last frame */
	uint64_t full_since;
	uint64_t full_sent;     /* frames sent until then */
	unsigned claims_left;   /* questions for the own process to send */
	uint64_t duplicate_due; /* the user is not told of another duplicate before, */
	uint64_t stranger_due;  /* nor of another version of the wire */
	bool alone_told;        /* that the port leads to nobody else */

	struct owner owner;
	struct wheel wheel;
	/* what an idle transport does not touch: the rest is one page */
	struct pending_ack pending_acks[PENDING_ACKS_MAX];
	struct pong pongs[PONGS_MAX];
	struct rte_mbuf *burst[BURST_FRAMES];
	struct rte_mbuf *outbox[OUTBOX_FRAMES];
	struct rte_mbuf *loop[LOOP_FRAMES];
};

#define COUNT(transport, name)                                                                     \
	do {                                                                                       \
		counter_add(&(transport)->counters->name, 1);                                      \
		PROBE_COUNTER(                                                                     \
			#name, (transport)->options.self.nid, (transport)->options.self.pid);      \
	} while (0)
#define COUNT_ADD(transport, name, n) counter_add(&(transport)->counters->name, (n))

/* There is work for the next turn. */
static inline void transport_stir(struct transport *transport)
{
	transport->quiet_until = 0;
}

#endif
