/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - what a transport is made of, and what its rooms offer each other. Owned by one poll
 * core.
 *
 * The way of a frame in: transport.c takes it from the port, receiver.c checks it and finds the
 * peer, acknowledgement.c ends the messages that it acknowledges, assembly.c places its data; the
 * rest of an acknowledgement is mostly read once what the data was answered with has left. The way
 * out: transport_send() queues, sender.c fills frames, outbox.c gives them to the port. recovery.c
 * finds what was lost, congestion.c how much may be in flight, address.c where a peer is.
 *
 * I1. now is read when frames are taken, and once more when there is something to give. It never
 * goes back, whatever thread reads it.
 * I2. in_flight is the number of mbufs (a frame of two pieces has two) in slots of flights, held
 * that of those in reorder; both are bounded so that some of the pool is always left for receiving
 * and for acknowledgements. A frame in flight keeps its mbuf only while its peer acknowledges: it
 * has an outline (outline.h) instead while nothing of the stream was acknowledged yet, and once it
 * was in flight when a retransmission timeout expired, or had to be made again. So peers that are
 * silent hold no mbufs, however many they are: the first timeout takes them away. The exception is
 * an outline that found no memory.
 * I3. Before quiet_until, a turn that takes no frame has nothing to do: nothing is ready, noted,
 * owed by then, waiting in a queue of this transport, and no timer is due. A poll core finds it so
 * most of the time, by one comparison. transport_transmit() alone says so; whatever makes work for
 * a turn from outside of it (frames, transport_send() and its like) sets it to 0.
 */
#ifndef TRANSPORT_STATE_H
#define TRANSPORT_STATE_H

#include <base/probe.h>
#include <transport/buffer.h>
#include <transport/lease.h>
#include <transport/neighbour.h>
#include <transport/outline.h>
#include <transport/peer.h>
#include <transport/pool.h>
#include <transport/transport.h>

#define BURST_FRAMES  64u
#define BURST_BYTES   (128u * 1024) /* of a burst that the cache holds */
#define BURST_LEAST   8u
#define OUTBOX_FRAMES 64
#define LOOP_FRAMES   512 /* frames from this process to itself */

#define ACK_SOON_DELAY  (4 * MICROSECOND)  /* the peer has nothing more to send */
#define ACK_LATER_DELAY (25 * MICROSECOND) /* it has */
#define ACK_EVERY       8                  /* frames */
/* what a frame of less than SMALL_BYTES counts of them */
#define ACK_SMALL 3
static_assert(SMALL_NEAR * ACK_SMALL >= ACK_EVERY && SMALL_FAR >= SMALL_NEAR,
	"a window of small frames is acknowledged without a delay");

/* beyond two round trips of silence; less than any timeout */
#define PROBE_MARGIN (2 * ACK_LATER_DELAY)

#define CREDIT_INITIAL 16 /* frames in flight before the peer has said what it can take */
#define CREDIT_MAX     ((uint32_t)FRAME_WINDOW)
/* who sent within one or two counts as an active sender */
#define EPOCH              (1 * MILLISECOND)
#define REORDER_FACTOR_MAX 16 /* quarters of the least round trip that a frame may be late */
/* between polls: a core so late kept frames waiting */
#define GAP_LEAST (20 * MICROSECOND)
/* between looks whether a port has let go of a frame */
#define LENT_LOOK (20 * MICROSECOND)
/* until a port that took nothing is tried again, at first */
#define RETRY_DELAY (2 * MICROSECOND)
#define RETRY_SHARE 8  /* later: this part of the time for which it has taken nothing */
#define PONGS_MAX   16 /* echo answers in a turn */
/* acknowledgements put off, of different peers mostly */
#define NOTES_MAX 16

/* Answers to strangers. */
#define ANSWER_NS_PER_BYTE 8 /* as much as a link of 1 Gbit/s carries */
#define ANSWER_BURST       (2 * MILLISECOND)

/* An echo question that is to be answered. */
struct pong {
	struct frame frame;
	uint64_t arrival;
	bool looped; /* from this process */
	uint8_t to[FRAME_ADDRESS_BYTES];
};

/* What a frame acknowledged, until it is read. */
struct note {
	struct peer *peer;
	const uint64_t *sack; /* NULL: none */
	uint32_t ack;
	uint32_t echo;
	uint32_t delay;
	uint16_t stream;
	uint16_t credit;
	uint8_t marks;
};

struct echoes {
	bool busy; /* there is something in what follows */
	unsigned pong_count;
	TAILQ_HEAD(, ping) pings; /* own questions */
	uint32_t number;          /* of the last one */
	uint64_t answers_paid;    /* until when the answers given have used up their share */
	struct pong pongs[PONGS_MAX];
};

struct transport {
	uint64_t now;
	uint64_t now_received; /* when frames were taken, */
	uint64_t polled;       /* and when before that */
	uint64_t arrival;      /* since when the frames of this burst may have waited here */
	uint64_t quiet_until;  /* I3; 0: not known */
	struct port *port;
	const struct clock *clock;
	struct transport_counters *counters;
	struct transport_upcalls upcalls;
	struct transport_options options;
	struct encapsulation encapsulation;
	struct neighbours *neighbours; /* NULL without udp */
	struct peer_table peers;
	struct pool peer_pool;
	struct pool flight_pool;
	struct pool outline_pool;
	struct pool reorder_pool;
	struct pool assembly_pool;
	struct pool lease_pool;
	struct lending lending;
	struct lease *lent; /* of messages that are done, but for others' references */
	struct peer *self;
	uint64_t random;
	uint64_t ask_next;   /* when the next first question may go */
	uint64_t tells_paid; /* until when the answers to questions have used up their share */
	uint32_t questions;  /* begun */
	uint32_t capacity;   /* bytes of transport header and records in a frame */
	/* bytes of data that are copied into a frame, whatever the port can gather */
	uint32_t copied_max;
	unsigned turn_frames; /* to send in a turn, at most */
	uint32_t bundle;      /* bytes of messages that leave without a window for small frames */
	uint16_t stream;      /* of the last new peer */
	uint16_t credit;      /* told to peers */
	uint32_t credit_total;

	uint32_t in_flight;
	uint32_t in_flight_max;
	uint32_t in_flight_shared; /* of it: beyond that a peer gets no more than its share */
	uint32_t held;
	uint32_t held_max;
	uint64_t messages; /* not done yet */
	bool plain;        /* raw Ethernet without a tag, and no checksum of all bytes */
	bool closing;
	bool blocked; /* the last turn could not send all it wanted for lack of room */

	/* who has sent lately */
	uint64_t epoch_end;
	uint32_t epoch;
	uint32_t senders;
	uint32_t senders_before;

	struct link ready; /* peers with something to send and leave to send it */
	uint32_t ready_count;
	struct link acks[ACK_LISTS];
	uint32_t acks_owed; /* peers in them */
	uint32_t note_count;
	uint64_t ack_next; /* with acks_owed: no acknowledgement is due before */
	struct note notes[NOTES_MAX];
	struct messages refused; /* messages that could not even be queued */

	struct rte_mbuf *burst[BURST_FRAMES];
	unsigned burst_count;
	unsigned burst_limit;
	unsigned burst_looped; /* the first ones come from this process */
	struct rte_mbuf *outbox[OUTBOX_FRAMES];
	unsigned outbox_count;
	struct rte_mbuf *loop[LOOP_FRAMES];
	uint32_t loop_head;
	uint32_t loop_tail;
	unsigned sent; /* frames in this turn */

	struct echoes echoes;
	/* the time of the port's first refusal since it took the last frame */
	uint64_t full_since;
	uint64_t full_sent;     /* frames sent until then */
	unsigned claims_left;   /* questions for the own process to send */
	uint64_t duplicate_due; /* the user is not told of another duplicate before */

	struct wheel wheel;
};

/* Counters may be read by others meanwhile; no order is promised among them. */
static inline void count_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}
#define COUNT(transport, name)                                                                     \
	do {                                                                                       \
		count_add(&(transport)->counters->name, 1);                                        \
		PROBE_COUNTER(                                                                     \
			#name, (transport)->options.self.nid, (transport)->options.self.pid);      \
	} while (0)
#define COUNT_ADD(transport, name, n) count_add(&(transport)->counters->name, (n))

/* There is work for the next turn. */
static inline void transport_stir(struct transport *transport)
{
	transport->quiet_until = 0;
}

static inline uint64_t random_next(struct transport *transport)
{
	uint64_t x = transport->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	transport->random = x;
	return x;
}

/* May an answer of so many bytes go? *paid: until when those before have used up their share, which
 * fills with time. */
static inline bool answer_spend(const struct transport *transport, uint64_t *paid, uint32_t bytes)
{
	uint64_t from = RTE_MAX(*paid, transport->now);

	if (from - transport->now > ANSWER_BURST)
		return false;
	*paid = from + (uint64_t)bytes * ANSWER_NS_PER_BYTE;
	return true;
}

/* T2, also when frames may still refer to the message's memory. */
static inline void message_done(
	struct transport *transport, struct message *message, enum transport_fail why)
{
	if (message->lease != NULL) {
		lease_done(transport, message, why);
		return;
	}
	transport->messages--;
	transport->upcalls.message_done(transport->upcalls.context, message, why);
}

/* --- outbox.c: frames on their way to the port */

/* A frame's mbuf with room for everything, its transport header aligned to a cache line. NULL: none
 * left. */
static inline struct rte_mbuf *outbox_alloc(struct transport *transport, uint16_t references)
{
	return buffer_take(transport->port->pool,
		RTE_PKTMBUF_HEADROOM - transport->encapsulation.bytes, references);
}
static inline uint8_t *outbox_header(const struct rte_mbuf *mbuf)
{
	return (uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM;
}
bool outbox_make_room(struct transport *transport, const struct peer *peer, unsigned count);
/* Room for count more frames to this peer? Tries to make some. */
static inline bool outbox_room(struct transport *transport, const struct peer *peer, unsigned count)
{
	if (peer != NULL && (peer->flags & PEER_SELF) != 0
			? LOOP_FRAMES - (transport->loop_tail - transport->loop_head) >= count
			: OUTBOX_FRAMES - transport->outbox_count >= count)
		return true;
	return outbox_make_room(transport, peer, count);
}
/* Takes over one reference of a frame whose transport header and records are written, and writes
 * what stands before them. There is room. to: MAC address; NULL: it goes to this process. */
void outbox_put(struct transport *transport, struct rte_mbuf *mbuf, const struct frame *frame,
	const uint8_t *to);
/* The same for a frame all of whose bytes are written. */
static inline void outbox_put_bytes(
	struct transport *transport, struct rte_mbuf *mbuf, uint32_t length)
{
	mbuf->data_len = (uint16_t)length;
	mbuf->pkt_len = length;
	transport->outbox[transport->outbox_count++] = mbuf;
}
/* The port took only so many of them. */
void outbox_keep(struct transport *transport, unsigned taken);
static inline void outbox_flush(struct transport *transport)
{
	unsigned count = transport->outbox_count;
	unsigned taken;

	if (count == 0)
		return;
	taken = port_transmit(transport->port, transport->outbox, (uint16_t)count);
	transport->sent += taken;
	COUNT_ADD(transport, frames_sent, taken);
	if (taken == count)
		transport->outbox_count = 0;
	else
		outbox_keep(transport, taken);
}

/* --- sender.c */

static inline void sender_ready(struct transport *transport, struct peer *peer)
{
	if (link_listed(&peer->ready_link))
		return;
	list_append(&transport->ready, &peer->ready_link);
	transport->ready_count++;
}
static inline void sender_unready(struct transport *transport, struct peer *peer)
{
	if (!link_listed(&peer->ready_link))
		return;
	link_remove(&peer->ready_link);
	transport->ready_count--;
}
static inline bool sender_has_work(const struct peer *peer)
{
	return ((uintptr_t)peer->waiting.head | (uintptr_t)peer->open.head | peer->stop_count) !=
		       0 ||
	       (peer->flight != NULL && peer->flight->lost_count != 0);
}
enum step {
	STEP_SENT,
	STEP_LAST,    /* sent, and nothing is left */
	STEP_NOTHING, /* there is nothing to send, or no address */
	STEP_STALLED, /* no window or credit */
	STEP_BLOCKED  /* no room in the port, no buffer */
};
#define QUANTUM 8 /* frames of one peer in a row */

/* Sends what waits for a peer, if it makes one usual frame. STEP_NOTHING: it does not. */
enum step sender_straight(struct transport *transport, struct peer *peer);
/* Peers have their turns; the first one's is as long as `quantum` says. */
unsigned sender_turns(struct transport *transport, unsigned budget, unsigned quantum);
/* Sends up to budget frames of peers that are ready; returns what is left of it. */
static inline unsigned sender_run(struct transport *transport, unsigned budget)
{
	struct peer *peer = link_entry(transport->ready.next, struct peer, ready_link);
	unsigned quantum = QUANTUM;
	enum step step;

	if (transport->ready_count == 0 || budget == 0)
		return budget;
	step = sender_straight(transport, peer);
	if (step <= STEP_LAST)
		budget--;
	if (step == STEP_LAST)
		sender_unready(transport, peer);
	else if (step == STEP_SENT)
		quantum--;
	return transport->ready_count == 0 ? budget : sender_turns(transport, budget, quantum);
}
/* How many frames of this capacity make a turn. */
unsigned sender_turn_frames(uint32_t capacity);
/* Who to, who from, and when. */
static inline void sender_names(
	const struct transport *transport, const struct peer *peer, struct frame *frame)
{
	frame->destination_nid = peer->process.nid;
	frame->destination_pid = peer->process.pid;
	frame->source_nid = transport->options.self.nid;
	frame->source_pid = transport->options.self.pid;
	frame->source_incarnation = transport->options.incarnation;
	frame->destination_incarnation = peer->incarnation;
	frame->timestamp = (uint32_t)transport->now;
}
/* What every frame to a peer has. */
static inline void sender_address(
	const struct transport *transport, const struct peer *peer, struct frame *frame)
{
	sender_names(transport, peer, frame);
	if (transport->options.full_checksum)
		frame->flags |= FRAME_FULL_SUM;
}
/* A frame in flight gives up its buffer: an outline is kept of it. False: no memory, it keeps its
 * buffer. */
bool flight_outline(struct transport *transport, struct peer *peer, uint32_t psn);
/* Sends the frame in a slot again; false when that was not possible now. */
bool sender_resend(struct transport *transport, struct peer *peer, uint32_t psn);
/* A stop of one of the own messages arrived. */
void sender_stopped(struct transport *transport, struct peer *peer, uint32_t number);

/* --- receiver.c */

/* Reads the frames of the burst, and frees them. */
void receiver_burst(struct transport *transport);
/* Ends what has begun and forgets what was held; the stream counts as `state` (0, or RX_CLOSED)
 * from now on. */
void receiver_close(
	struct transport *transport, struct peer *peer, uint16_t state, enum transport_fail why);

/* --- assembly.c */

enum assembly_verdict { ASSEMBLY_FINE, ASSEMBLY_UNKNOWN, ASSEMBLY_BAD, ASSEMBLY_NO_MEMORY };
/* May this frame be delivered? UNKNOWN: it has data of messages that have not started. in_order:
 * nothing is missing before it. */
enum assembly_verdict assembly_check(struct transport *transport, const struct peer *peer,
	const struct frame *frame, bool in_order);
/* Delivers records that were found fine: a frame's, */
void assembly_deliver(struct transport *transport, struct peer *peer, const struct frame *frame);
/* or those of a frame that is whole. */
void assembly_deliver_whole(
	struct transport *transport, struct peer *peer, const uint8_t *records, unsigned count);
void assembly_end_all(struct transport *transport, struct peer *peer, enum transport_fail why);

/* --- acknowledgement.c */

/* Until when an acknowledgement may wait. */
static inline uint64_t acknowledgement_delay(enum ack_list list)
{
	return list == ACK_URGENT ? 0 : list == ACK_SOON ? ACK_SOON_DELAY : ACK_LATER_DELAY;
}
/* A sequenced frame of so many bytes arrived. */
static inline void acknowledgement_owe(
	struct transport *transport, struct peer *peer, uint32_t length, enum ack_list list)
{
	peer->ack_owed = (uint16_t)(peer->ack_owed + (length < SMALL_BYTES ? ACK_SMALL : 1));
	if (peer->ack_owed >= ACK_EVERY)
		list = ACK_URGENT;
	if (peer->ack_list <= list)
		return;
	if (peer->ack_list != ACK_NONE)
		link_remove(&peer->ack_link);
	else
		transport->acks_owed++;
	peer->ack_list = (uint8_t)list;
	peer->ack_due = transport->now + acknowledgement_delay(list);
	if (transport->acks_owed == 1 || peer->ack_due < transport->ack_next)
		transport->ack_next = peer->ack_due;
	list_append(&transport->acks[list], &peer->ack_link);
}
static inline void acknowledgement_forget(struct transport *transport, struct peer *peer)
{
	peer->ack_owed = 0;
	if (peer->ack_list == ACK_NONE)
		return;
	transport->acks_owed--;
	link_remove(&peer->ack_link);
	peer->ack_list = ACK_NONE;
}
/* The fields that acknowledge what came in order. The peer's stream is open. */
static inline void acknowledgement_fields(
	const struct transport *transport, const struct peer *peer, struct frame *frame)
{
	frame->flags |= FRAME_ACK_VALID;
	frame->ack = peer->rx_next;
	frame->ack_stream = peer->rx_stream;
	frame->echo = peer->echo;
	frame->delay = (uint32_t)transport->now - peer->echo_at;
	frame->credit = transport->credit;
	frame->marks = peer->rx_marks;
}
/* Fills in what acknowledges the peer's frames. SACK only if the frame has room for it. */
void acknowledgement_write(
	struct transport *transport, struct peer *peer, struct frame *frame, bool bitmap);
/* Is a bitmap needed to say what has arrived? */
static inline bool acknowledgement_needs_bitmap(const struct peer *peer)
{
	return (peer->flags & (RX_OPEN | RX_GAP)) == (RX_OPEN | RX_GAP);
}
/* Sends those that are due. */
void acknowledgement_run(struct transport *transport);
/* May there be one? */
static inline bool acknowledgement_is_due(const struct transport *transport)
{
	return transport->acks_owed != 0 && transport->ack_next <= transport->now;
}
uint64_t acknowledgement_deadline(const struct transport *transport);
/* What a frame acknowledges. Changes nothing. */
enum acknowledged {
	/* nothing, or nothing of what is under way: what it says of it is passed over */
	ACKNOWLEDGED_NOTHING,
	ACKNOWLEDGED_SENT,
	ACKNOWLEDGED_UNSENT /* what was never sent: the whole frame is invalid */
};
enum acknowledged acknowledgement_check(const struct peer *peer, const struct frame *frame);
/* Reads what a frame acknowledges, which is ACKNOWLEDGED_SENT, or notes it for
 * acknowledgement_settle(). */
void acknowledgement_take(
	struct transport *transport, struct peer *peer, const struct frame *frame);
void acknowledgement_note_odd(struct transport *transport, struct note *note, bool data);
/* Does an acknowledgement speak of the present stream, and of nothing that was never sent or is
 * long known? */
static inline bool acknowledgement_applies(const struct peer *peer, uint16_t stream, uint32_t ack)
{
	return (peer->flags & TX_OPEN) && stream == peer->tx_stream &&
	       ack - peer->tx_una <= peer_in_flight(peer);
}
/* Where the next one is noted, */
static inline struct note *acknowledgement_room(struct transport *transport)
{
	return &transport->notes[transport->note_count];
}
/* The messages whose last frame the newest note acknowledges end. */
void acknowledgement_end(struct transport *transport);
/* and has been: it applies. What opens a window, tells of gaps, or is not the first of this peer is
 * more than a note. data: the frame has data, which is delivered next. */
static inline void acknowledgement_note(struct transport *transport, struct note *note, bool data)
{
	const struct peer *peer = note->peer;

	if (peer->flight == NULL || note->sack != NULL || sender_has_work(peer) ||
		(transport->note_count > 0 && note[-1].peer == peer) ||
		transport->note_count == NOTES_MAX - 1) {
		acknowledgement_note_odd(transport, note, data);
		return;
	}
	transport->note_count++;
	if (data && peer->unacked.head != NULL &&
		serial_before(peer->unacked.head->last_psn, note->ack))
		acknowledgement_end(transport);
}
/* Reads what was put off. */
void acknowledgement_settle(struct transport *transport);
void acknowledgement_told(
	struct transport *transport, struct peer *peer, const struct frame *frame);
/* Takes the messages whose last frame is acknowledged off the peer, and tells. */
void acknowledgement_complete(struct transport *transport, struct peer *peer);
/* A frame in flight has arrived, or is given up: lets go of its buffer or outline. */
void flight_forget(struct transport *transport, struct peer *peer, uint32_t psn);
/* Gives a peer's flight back: no frame is in flight any more. */
void flight_end(struct transport *transport, struct peer *peer);

/* --- recovery.c */

/* A frame that is not thought lost yet is. */
void recovery_lose(struct peer *peer, uint32_t psn);
/* Something was delivered: is something sent before it lost? */
void recovery_detect(struct transport *transport, struct peer *peer);
/* When the peer's flight must be looked at. */
uint64_t recovery_due(const struct peer *peer);
/* Something is in flight from now on. A timer that runs so soon sees to it anyway. */
static inline void recovery_watch(struct transport *transport, struct peer *peer)
{
	if (!timer_set(&peer->timer) ||
		peer->timer.tick > wheel_tick(transport->now + PROBE_MARGIN))
		peer_wake(transport, peer, recovery_due(peer));
}
void recovery_run(struct transport *transport, struct peer *peer);
uint64_t recovery_timeout(const struct peer *peer);

/* --- congestion.c */

#define WINDOW_ONE      65536u             /* of a window: a frame */
#define TARGET_DELAY    (50 * MICROSECOND) /* beyond the least delay */
#define MEASURE_SPACING (10 * MICROSECOND) /* less than the least delay of most networks */

void congestion_reset(struct peer *peer);
/* A measure of the path: all the time to the acknowledgement, and that in the network. exact: no
 * host was away meanwhile; else it may have been more. */
void congestion_rtt(
	struct transport *transport, struct peer *peer, uint32_t rtt, uint32_t delay, bool exact);
/* Is another measure worth its while? */
static inline bool congestion_measures(const struct transport *transport, const struct peer *peer)
{
	return peer->rtt == 0 || (uint32_t)transport->now - peer->measured >= MEASURE_SPACING;
}
/* Does it change the window that frames without a mark were delivered? A window that is not used
 * says nothing about the path; and mostly the delay is fine by far. */
static inline bool congestion_matters(const struct peer *peer, unsigned frames, uint32_t delay)
{
	return delay > peer->delay_min + TARGET_DELAY ||
	       peer_pipe(peer) + frames >= peer->window / WINDOW_ONE / 2;
}
/* frames were delivered; delay: of the newest, 0 if not known; marked: the network says that it is
 * congested. */
void congestion_delivered(struct transport *transport, struct peer *peer, unsigned frames,
	uint32_t delay, bool marked);
/* So many frames were found lost at once. */
void congestion_lost(struct transport *transport, struct peer *peer, uint32_t frames);
void congestion_timeout(struct transport *transport, struct peer *peer);
/* The last loss or timeout was none. */
void congestion_undo(struct peer *peer);
/* May another frame go? */
static inline bool congestion_open(const struct transport *transport, const struct peer *peer)
{
	uint32_t pipe = peer_pipe(peer);

	if (pipe == 0)
		return peer->window >= WINDOW_ONE || transport->now >= peer->pace_due;
	return pipe < peer->window / WINDOW_ONE && pipe < peer->credit;
}
/* A frame went. */
static inline void congestion_sent(const struct transport *transport, struct peer *peer)
{
	if (peer->window < WINDOW_ONE)
		peer->pace_due = transport->now + (uint64_t)peer->rtt * WINDOW_ONE / peer->window;
}

/* --- echo.c */

void echo_init(struct transport *transport);
/* A question for this process. from: MAC address, NULL: this process. */
void echo_asked(struct transport *transport, const struct frame *frame, const uint8_t *from);
/* An answer from a peer, of whatever life. */
void echo_answered(struct transport *transport, const struct peer *peer, const struct frame *frame);
/* Sends answers and questions, ends what was not answered in time. While echoes.busy. */
void echo_run(struct transport *transport);
uint64_t echo_deadline(const struct transport *transport);

/* --- address.c */

/* A frame came in the own name from another life, or another MAC address claims the own IPv4
 * address. */
void address_duplicate(struct transport *transport, const uint8_t *from);

/* The psn that this life of the process is told to begin its streams to this one with. */
uint32_t address_first(
	const struct transport *transport, struct process process, uint32_t incarnation);
/* A message, or a ping, waits for the peer's address. */
void address_ask(struct transport *transport, struct peer *peer);
/* A frame says that the peer's life or address is another, or nothing is heard of it any more: it
 * is asked. from: where the frame came from; NULL: there is none. */
void address_doubt(struct transport *transport, struct peer *peer, const uint8_t *from);
/* A peer that was doubted and has not answered is still silent: one more question, to everybody.
 * Thousands of silent peers must not fill the network with questions. */
void address_doubt_still(struct transport *transport, struct peer *peer);
uint64_t address_due(const struct peer *peer);
void address_run(struct transport *transport, struct peer *peer);
/* A question for this process. */
void address_asked(struct transport *transport, const struct frame *frame, const uint8_t *from);
/* FRAME_TELL from a peer. */
void address_told(struct transport *transport, struct peer *peer, const struct frame *frame,
	const uint8_t *from);
/* A frame that proves itself came from there. */
void address_learn(struct transport *transport, struct peer *peer, const uint8_t *from);
/* What messages to the peer's life need is known: the psn that streams begin with is the last of
 * it. */
void address_complete(struct transport *transport, struct peer *peer, uint32_t first);
/* The way to a process that was asked for leads over this MAC address. */
void address_hop(struct transport *transport, struct process process, const uint8_t *hop);
/* A frame without records to a process that may be no peer; lost when there is no room. */
void address_send(struct transport *transport, struct frame *frame, const uint8_t *to);

#endif
