/* SPDX-License-Identifier: BSD-3-Clause */
/* sender.c - fills frames with what waits for a peer, and sends them: new ones, and lost ones
 * again. One poll core.
 *
 * Peers with work take turns, QUANTUM frames each. Within a peer messages start in order; while a
 * long one is being sent, every other frame goes first to messages that wait, so that a short one
 * need not wait for a long one to end. Whatever waits already shares a frame; nothing waits for
 * company.
 *
 * The usual frame, small messages to a peer whose flight has no gap, takes a fast path
 * (sender_fast()): it is tested for at once and written once, from registers, where it is sent
 * from. Any other is filled record by record around a struct frame.
 *
 * I1. A peer in the ready list has work; one with work that is not in it waits for an
 *     acknowledgement, its address or a timer.
 * I2. A frame is written only while nobody else refers to it. A frame to be sent again that
 *     somebody else may still read (the port; a receiver in another thread of this process) is made
 *     again.
 * I3. Frames that keep their buffer (internal.h I2) go only while in_flight < in_flight_max. Of the
 *     last quarter a peer gets no more than its share of all, as if one peer more had frames in
 *     flight: so peers that have more wait until those that have less are served.
 * I4. The last data of a frame may be a tail, which lies in the message's own memory (zcopy.h);
 *     such a frame is not written again but made again.
 * I5. A message whose data are not there when they are to be copied is `missing` from then on: it
 *     is begun, without data, if it has not been, and RECORD_VOID ends it. Nothing is sent in the
 *     place of data.
 */
#include <transport/sender.h>

#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include <transport/ack.h>
#include <transport/address.h>
#include <transport/congestion.h>
#include <transport/flight.h>
#include <transport/zcopy.h>
#include <transport/outbox.h>
#include <transport/outline.h>

#define TURN_FRAMES    64u    /* in a turn, */
#define TURN_FRAMES_LO 8u     /* but at least this many, */
#define TURN_BYTES     262144 /* and not many more bytes: receiving must have its turn */
#define BLOCKED_MAX    16u    /* peers that are tried in a turn when there is no room */
#define RECORDS_MAX    UINT8_MAX
#define PART_MIN       256 /* bytes of data that are worth a record of their own */
/* Data that follows stays aligned as its message's memory is, unless full frames have to be of one
 * length. */
#define PART_ALIGN 64

/* A frame that is being filled. */
struct filling {
	struct transport *transport;
	struct peer *peer;
	uint8_t *at;  /* where the next record goes */
	uint8_t *end; /* of the room for it; `at`: nothing more may follow */
	uint32_t psn;
	uint32_t left; /* records that may follow */
	struct frame *frame;
	struct rte_mbuf *tail; /* the frame's last data, not copied: nothing follows it */
};

/* --- who may send */

/* A message joins those that wait for a window. Returns true if they are now worth a frame,
 * whatever the window of small frames says. */
static bool sender_gather(
	const struct transport *transport, struct peer *peer, const struct message *message)
{
	uint32_t room = transport->bundle - peer->gathered;
	uint64_t bytes = message->memory.length + message->header_length + RECORD_WHOLE_BYTES;

	peer->gathered = (uint16_t)(peer->gathered + RTE_MIN(bytes, room));
	return room != 0 && bytes >= room;
}

/* A frame with so many messages has left. */
static void sender_unstall(struct peer *peer, uint32_t messages)
{
	peer->stalled = false;
	peer->flight->many = messages >= MANY_RECORDS;
	peer->gathered = 0;
}

void transport_send(struct transport *transport, struct process to, struct message *message)
{
	struct peer *peer = transport->peers.last;

	owner_check(&transport->owner);
	if (unlikely(transport->closing))
		peer = NULL;
	else if (!peer || !process_same(peer->process, to))
		peer = peer_get(transport, to, false);
	transport_stir(transport);
	message->framed = 0;
	message->zcopy = NULL;
	message->missing = false;
	message->awaited = false;
	transport->messages++;
	COUNT(transport, messages_sent);
	if (!peer) {
		messages_append(&transport->refused, message);
		return;
	}
	messages_append(&peer->waiting, message);
	peer->queued++;
	/* A peer that waits for its window stays out: an acknowledgement or a timer brings it back,
	 * or what has gathered. */
	if (!peer->stalled || !peer->flight || sender_gather(transport, peer, message))
		sender_ready(transport, peer);
}

bool transport_has_share(const struct transport *transport, struct process to, uint64_t most)
{
	const struct peer *peer;

	owner_check(&transport->owner);
	peer = peer_table_find(&transport->peers, to);
	return !peer || peer->queued * (pool_taken(&transport->flight_pool) + UINT64_C(1)) < most;
}

void transport_mark(struct transport *transport, struct process process, bool mark)
{
	struct peer *peer;

	owner_check(&transport->owner);
	peer = peer_table_find(&transport->peers, process);
	if (!peer || peer->marked == mark)
		return;
	peer->marked = mark;
	transport->marks += mark ? 1u : -1u;
}

uint32_t transport_marks(const struct transport *transport)
{
	owner_check(&transport->owner);
	return transport->marks;
}

bool transport_is_marked(const struct transport *transport, struct process process)
{
	const struct peer *peer;

	owner_check(&transport->owner);
	peer = peer_table_find(&transport->peers, process);
	return peer && peer->marked;
}

/* --- filling a frame */

/* What the first record of a message counts for: if its data may go, the frame may have to be made
 * again with one more (outline.h, O2). */
#define START_RECORDS 2u
static inline uint32_t start_records(const struct message *message)
{
	return message->memory.vector ? START_RECORDS : 1;
}

/* The next message of the stream starts at `at`, with so much data. Returns where that goes. Copies
 * `copied` bytes for its header, which has no more. */
static __rte_always_inline uint8_t *start_begin(uint8_t *at, struct message *message,
	uint32_t number, uint32_t psn, uint32_t bytes, uint32_t copied)
{
	const struct record record = {
		.kind = bytes == message->memory.length ? RECORD_WHOLE : RECORD_START,
		.header_length = (uint8_t)message->header_length,
		.data_length = (uint16_t)bytes,
		.message = number,
		.extent = message->memory.length,
	};
	uint8_t *to = record_write(at, &record);

	memcpy(to, message->header, copied);
	record_pad(at, &record); /* over what was copied beyond the header */
	message->number = number;
	message->first_psn = psn;
	message->last_psn = psn;
	return to + message->header_length;
}

/* There is a record of so many bytes more, which counts as so many. */
static inline void fill_advance(struct filling *filling, uint32_t bytes, uint32_t records)
{
	filling->at += bytes;
	filling->frame->records++;
	filling->left -= records;
	if (filling->left < START_RECORDS || filling->tail)
		filling->end = filling->at;
}

/* A record that is its header. */
static void fill_bare(struct filling *filling, const struct record *record)
{
	record_write(filling->at, record);
	fill_advance(filling, RECORD_HEADER_BYTES, 1);
}

static inline uint32_t fill_room(const struct filling *filling)
{
	return (uint32_t)(filling->end - filling->at);
}

/* Makes data the frame's tail, if it may be one. Data that ends a message leaves room for what
 * waits behind it. */
static bool fill_tail(struct filling *filling, struct message *message, uint32_t bytes)
{
	bool ends = message->framed + bytes == message->memory.length;

	if (bytes % RECORD_ALIGN != 0 || (ends && filling->peer->waiting.head) ||
		!filling->transport->port->gathers ||
		(message->memory.vector && (!filling->transport->guards || filling->peer->self)))
		return false;
	filling->tail = zcopy_tail(filling->transport, message, bytes);
	return filling->tail != NULL;
}

/* I5. Returns false if the data are not there; then nothing has been filled in. */
static bool fill_data(struct filling *filling, struct message *message, uint8_t *to, uint32_t bytes)
{
	if (message->missing ||
		((bytes <= filling->transport->copied_max || !fill_tail(filling, message, bytes)) &&
			!message_copy(message, message->framed, to, bytes)))
		return false;
	message->framed += bytes;
	COUNT_ADD(filling->transport, bytes_sent, bytes);
	return true;
}

/* How many of the bytes that are left go into `room` bytes: all, or an aligned part. */
static uint32_t fill_part(const struct filling *filling, uint64_t left, uint32_t room)
{
	uint32_t align = filling->transport->port->joins ? RECORD_ALIGN : PART_ALIGN;

	if (left <= room)
		return (uint32_t)left;
	return room > 2 * align ? room & ~(align - 1) : room;
}

static void fill_stops(struct filling *filling)
{
	struct peer *peer = filling->peer;

	while (peer->stop_count > 0 && fill_room(filling) >= RECORD_HEADER_BYTES) {
		struct record record = {
			.kind = RECORD_STOP,
			.message = peer->stops[--peer->stop_count],
			.extent = peer->stop_stream,
		};

		fill_bare(filling, &record);
	}
}

/* May a message that does not fit into the room start there all the same? What fits into a frame of
 * its own is not torn. */
static bool fill_torn(const struct filling *filling, const struct message *message, uint32_t room)
{
	uint64_t alone = FRAME_HEADER_BYTES + FRAME_SACK_BYTES + RECORD_WHOLE_BYTES +
			 message->header_length + message->memory.length;

	if (filling->peer->open_count == OPEN_MAX)
		return false;
	return filling->frame->records == 0 ||
	       (room >= PART_MIN && alone > filling->transport->capacity);
}

/* The message that waits first: starts it, if it is worth it in this frame. */
static bool fill_start(struct filling *filling)
{
	struct peer *peer = filling->peer;
	struct message *message = peer->waiting.head;
	uint32_t room = fill_room(filling);
	bool whole = message->memory.length + message->header_length + RECORD_WHOLE_BYTES <= room;
	uint8_t kind = whole ? RECORD_WHOLE : RECORD_START;
	uint32_t overhead = record_header_bytes(kind) + message->header_length;
	uint32_t bytes;
	uint8_t *to;

	if (room < overhead)
		return false;
	room -= overhead;
	if (!whole && !fill_torn(filling, message, room))
		return false;
	messages_take(&peer->waiting);
	bytes = fill_part(filling, message->memory.length, room);
	to = start_begin(filling->at, message, peer->tx_message, filling->psn, bytes,
		message->header_length);
	if (!fill_data(filling, message, to, bytes)) {
		/* There is room: the data that were to be here pad the longer header. */
		kind = RECORD_START;
		bytes = 0;
		start_begin(filling->at, message, peer->tx_message, filling->psn, bytes,
			message->header_length);
	}
	peer->tx_message++;
	fill_advance(
		filling, record_bytes(kind, message->header_length, bytes), start_records(message));
	filling->frame->flags |= FRAME_START;
	if (message->framed < message->memory.length) {
		messages_append(&peer->open, message);
		peer->open_count++;
	} else {
		messages_append(&peer->unacked, message);
	}
	return true;
}

static void fill_starts(struct filling *filling)
{
	const struct peer *peer = filling->peer;

	if (peer->outgoing == OUTGOING_LAST)
		return;
	while (peer->waiting.head && fill_start(filling))
		;
}

/* More of a message's data; bytes: at least 1. Returns false if it is not there. */
static bool fill_part_more(struct filling *filling, struct message *message, uint32_t bytes)
{
	const struct record record = {
		.kind = RECORD_MORE,
		.data_length = (uint16_t)bytes,
		.message = message->number,
		.extent = message->framed,
	};
	uint8_t *to = record_write(filling->at, &record);

	record_pad(filling->at, &record);
	if (!fill_data(filling, message, to, bytes))
		return false;
	fill_advance(filling, record_bytes(RECORD_MORE, 0, bytes), 1);
	return true;
}

/* More of the messages that have begun, the oldest first. */
static void fill_more(struct filling *filling)
{
	struct peer *peer = filling->peer;

	while (peer->open.head && fill_room(filling) > RECORD_HEADER_BYTES) {
		struct message *message = peer->open.head;
		uint64_t left = message->memory.length - message->framed;
		uint32_t room = fill_room(filling) - RECORD_HEADER_BYTES;
		const struct record end = {.kind = RECORD_VOID, .message = message->number};

		if (left > room && room < PART_MIN && filling->frame->records > 0)
			return;
		if (!fill_part_more(filling, message, fill_part(filling, left, room)))
			fill_bare(filling, &end);
		message->last_psn = filling->psn;
		if (message->framed < message->memory.length && !message->missing)
			continue;
		messages_take(&peer->open);
		peer->open_count--;
		messages_append(&peer->unacked, message);
	}
}

static void fill(struct filling *filling)
{
	const struct peer *peer = filling->peer;

	if (peer->stop_count != 0)
		fill_stops(filling);
	if (peer->open.head && filling->psn % 2 != 0) {
		fill_more(filling);
		fill_starts(filling);
		return;
	}
	fill_starts(filling);
	if (peer->open.head)
		fill_more(filling);
}

/* --- sending */

/* The frame consists of two pieces. */
static void sender_join(struct transport *transport, struct rte_mbuf *head, struct filling *filling)
{
	struct frame *frame = filling->frame;

	zcopy_join(head, filling->tail);
	/* as the head has: for the slot and for the outbox */
	rte_mbuf_refcnt_update(filling->tail, 1);
	frame->tail = rte_pktmbuf_mtod(filling->tail, const uint8_t *);
	frame->tail_length = filling->tail->data_len;
	COUNT(transport, frames_gathered);
}

static inline void sender_sent(struct transport *transport, struct peer *peer)
{
	peer->sent = transport->now;
	peer->data_sent = transport->now;
	congestion_sent(transport, peer);
}

/* Gives a frame of the stream to the outbox, and one reference of its own with it. */
static void sender_put(
	struct transport *transport, struct peer *peer, struct rte_mbuf *mbuf, struct frame *frame)
{
	frame->stream = peer->tx_stream;
	if (peer->outgoing == OUTGOING_FIRST) {
		frame->flags |= FRAME_FIRST;
		frame->first = peer->first;
		if (!(frame->flags & FRAME_ACK_VALID)) {
			frame->ack = address_first(transport, peer->process, peer->incarnation);
			frame->ack_stream = (uint16_t)transport->generation;
		}
	}
	sender_address(transport, peer, frame);
	frame_encode(frame, outbox_header(mbuf));
	outbox_put(transport, mbuf, frame, peer->self ? NULL : peer->address);
	sender_sent(transport, peer);
}

static void stream_begin(struct transport *transport, struct peer *peer)
{
	peer->tx_stream++;
	if (peer->self)
		address_psn(transport, peer,
			address_first(transport, peer->process, peer->incarnation));
	peer->tx_una = peer->first;
	peer->tx_next = peer->tx_una;
	peer->tx_message = 0;
	peer->tx_marks = 0;
	address_ask_anew(transport, peer);
	outgoing_turn(peer, OUTGOING_FIRST);
	peer->backoff = 0;
	/* The measures of a path long unused may be out of date. */
	if (transport->now - peer->data_sent >= transport->spans.stream_idle)
		congestion_reset(peer);
}

/* Does the next frame begin a stream? A message ends in the stream that it began in, however long
 * the process was stopped meanwhile: its first psn is a number of that stream. */
static inline bool stream_over(const struct transport *transport, const struct peer *peer)
{
	return peer->outgoing == OUTGOING_CLOSED ||
	       (!peer->open.head &&
		       transport->now - peer->data_sent >= transport->spans.stream_idle);
}

/* The stream has used its psns (peer.h I7). Returns true if the next frame must wait until all that
 * was sent on it is acknowledged. */
static bool stream_last(struct peer *peer)
{
	if (peer->outgoing != OUTGOING_LAST || peer->open.head)
		return false;
	if (peer->flight)
		return true;
	outgoing_turn(peer, OUTGOING_CLOSED);
	return false;
}

/* Does the peer take a stream that begins with the psn that it told, as far as this process knows?
 * Its own clock and its own frames say so, nothing that others could repeat. */
static bool psn_good(const struct transport *transport, const struct peer *peer)
{
	uint64_t now = transport->now;
	uint16_t age = (uint16_t)((now >> PSN_TICK_SHIFT) - peer->told);

	if ((uint16_t)(peer->tx_stream - peer->tx_base) >= PSN_STREAMS)
		return false;
	if (peer->taken)
		return now - peer->data_sent <= transport->spans.psn_known;
	/* A timer that is so late, because the process was stopped, has not seen that it is stale,
	 * and the age may have wrapped. */
	return !peer->stale && age <= transport->spans.psn_fresh >> PSN_TICK_SHIFT &&
	       now <= (peer->timer.tick << WHEEL_TICK_SHIFT) + transport->spans.psn_fresh;
}

/* The next frame begins a stream with a psn that may be too old: the peer is asked first. Returns
 * false if there is no need. */
static bool psn_asked(struct transport *transport, struct peer *peer)
{
	if (peer->flight || !stream_over(transport, peer) || peer->self ||
		psn_good(transport, peer))
		return false;
	if (peer->outgoing != OUTGOING_CLOSED)
		outgoing_turn(peer, OUTGOING_CLOSED);
	peer->taken = false;
	address_lose(transport, peer);
	address_ask(transport, peer);
	return true;
}

static bool flight_begin(struct transport *transport, struct peer *peer)
{
	struct flight *flight = pool_take(&transport->flight_pool);

	if (!flight)
		return false;
	memset(flight, 0, offsetof(struct flight, slots));
	if (stream_over(transport, peer))
		stream_begin(transport, peer);
	flight->highest = peer->tx_una;
	flight->timeout_from = transport->now;
	peer->progress = transport->now;
	peer->flight = flight;
	return true;
}

/* Is a round trip in the network known to be short? */
static inline bool peer_is_near(const struct peer *peer)
{
	return peer->delay_period != 0 && peer->delay_min < NEAR_DELAY;
}

/* Small frames have a window of their own: a program that sends messages faster than the peer
 * acknowledges them would fill the peer's ring with frames that cost both ends more than the
 * messages in them. Messages held back by this window share the frame that leaves when it opens, a
 * round trip later at most, or earlier when so much has gathered that the frame is worth it, so
 * that there is one on its way while the peer is busy with another. Where the network makes a round
 * trip no longer than some frames take in two hosts, the window is small; else it is as large as
 * that of a new stream. While many share a frame, it is there for the first message alone. */
static inline bool sender_small_open(const struct transport *transport, const struct peer *peer)
{
	const struct message *next = peer->waiting.head;
	const struct flight *flight = peer->flight;

	return !flight || flight->small_count < (flight->many ? SMALL_MANY : SMALL_NEAR) ||
	       (!flight->many && flight->small_count < SMALL_FAR && !peer_is_near(peer)) ||
	       peer->gathered == transport->bundle || peer->open.head ||
	       (next && next->memory.length >= SMALL_BYTES);
}

/* May another new frame go? */
static inline bool sender_open(const struct transport *transport, const struct peer *peer)
{
	return peer_in_flight(peer) != FRAME_WINDOW && congestion_open(transport, peer) &&
	       sender_small_open(transport, peer);
}

/* A buffer for a new frame, referred to by its slot and by the outbox, and the peer's flight. NULL:
 * there is none. */
static __rte_always_inline struct rte_mbuf *frame_begin(
	struct transport *transport, struct peer *peer)
{
	struct rte_mbuf *mbuf = outbox_alloc(transport, 2);

	if (!mbuf || peer->flight || flight_begin(transport, peer))
		return mbuf;
	rte_mbuf_refcnt_set(mbuf, 1);
	buffer_drop(mbuf);
	return NULL;
}

/* The frame has its slot. */
static inline void slot_take(struct transport *transport, struct flight *flight,
	struct rte_mbuf *mbuf, uint32_t psn, uint32_t length)
{
	struct slot *slot = &flight->slots[psn % FRAME_WINDOW];

	slot->frame = mbuf;
	slot->sent = transport->now;
	transport->in_flight++;
	flight->small_count += length < SMALL_BYTES;
}

/* Fills a frame, which may have records up to `at` already, all of whole messages, and sends it.
 * left: records that may follow; begins: it is the first of the flight. */
static __rte_noinline enum step sender_fill(struct transport *transport, struct peer *peer,
	struct rte_mbuf *mbuf, uint8_t *at, unsigned records, uint32_t left, bool begins)
{
	uint8_t *header = outbox_header(mbuf);
	struct frame frame;
	struct filling filling = {
		.transport = transport,
		.peer = peer,
		.at = at,
		.end = left < START_RECORDS ? at : header + transport->capacity,
		.psn = peer->tx_next++,
		.left = left,
		.frame = &frame,
	};
	bool more;

	memset(&frame, 0, offsetof(struct frame, tail)); /* all that is looked at of such a frame */
	frame.type = FRAME_DATA;
	frame.flags = records != 0 ? FRAME_START : 0;
	frame.records = (uint8_t)records;
	acknowledgement_write(transport, peer, &frame, acknowledgement_needs_bitmap(peer));
	fill(&filling);
	frame.psn = filling.psn;
	frame.length = (uint16_t)(filling.at - header);
	slot_take(transport, peer->flight, mbuf, frame.psn, frame.length);
	if (filling.tail) {
		sender_join(transport, mbuf, &filling);
		transport->in_flight++;
	}
	more = sender_has_work(peer);
	if (!more || !sender_open(transport, peer))
		frame.flags |= FRAME_ACK_NOW;
	sender_put(transport, peer, mbuf, &frame);
	if (peer->outgoing == OUTGOING_FIRST)
		flight_outline(transport, peer, frame.psn);
	if (begins)
		flight_watch(transport, peer);
	return more ? STEP_SENT : STEP_LAST;
}

static enum step sender_new(struct transport *transport, struct peer *peer)
{
	bool begins = !peer->flight;
	uint8_t flags = acknowledgement_needs_bitmap(peer) ? FRAME_SACK : 0;
	struct rte_mbuf *mbuf;

	if (!outbox_room(transport, peer, 1 + OUTBOX_SPARE))
		return STEP_BLOCKED;
	mbuf = frame_begin(transport, peer);
	if (!mbuf)
		return STEP_BLOCKED;
	return sender_fill(transport, peer, mbuf, outbox_header(mbuf) + frame_header_bytes(flags),
		0, RECORDS_MAX, begins);
}

/* --- the fast path: what waits for a peer is small, and fits into one frame, of which nothing
 * is special. Such a frame is what sender_new() would make of it, made in one go; but each message
 * counts as START_RECORDS, whatever memory it has. Whatever turns out not to fit is left to
 * sender_fill(), which goes on with the frame. It saves 11.5 % of the instructions of a put back
 * and forth, 6 % in a window (doc/notebook.md). */

/* May the next frame take the fast path? */
static __rte_always_inline bool fast_may(const struct transport *transport, const struct peer *peer)
{
	const struct flight *flight = peer->flight;

	if (peer->address_state != ADDRESS_KNOWN || peer->outgoing != OUTGOING_OPEN ||
		peer->incoming != INCOMING_OPEN || !transport->plain ||
		(flight ? flight->disturbed : stream_over(transport, peer)))
		return false;
	return peer->waiting.head && ((uintptr_t)peer->open.head | peer->stop_count) == 0 &&
	       sender_open(transport, peer) && transport->in_flight < transport->in_flight_shared &&
	       outbox_fits(transport, peer, 1 + OUTBOX_SPARE);
}

/* Starts messages that wait, as long as all of their data fits in and the frame has records for
 * them. They are in order, so the peer's list is cut in two. Returns where the next record would
 * go. */
static __rte_always_inline uint8_t *fast_fill(
	struct transport *transport, struct peer *peer, uint8_t *at, const uint8_t *end)
{
	struct message *first = peer->waiting.head, *last = NULL, *message = first;
	const uint8_t *data_end = end - RECORD_WHOLE_BYTES - MESSAGE_HEADER_MAX;
	uint32_t number = peer->tx_message, number_end = number + RECORDS_MAX / START_RECORDS;
	uint32_t copied_max = transport->copied_max;
	uint32_t psn = peer->tx_next;
	uint64_t data = 0;

	do {
		uint64_t bytes = message->memory.length;
		uint8_t *to;

		if (bytes > copied_max || number == number_end || at + bytes > data_end)
			break;
		to = start_begin(at, message, number, psn, (uint32_t)bytes, MESSAGE_HEADER_MAX);
		if (unlikely(!message_copy(message, 0, to, (uint32_t)bytes)))
			break;
		number++;
		message->framed = bytes;
		at += record_bytes(RECORD_WHOLE, message->header_length, (uint32_t)bytes);
		data += bytes;
		last = message;
		message = message->next;
	} while (message);
	if (!last)
		return at;
	COUNT_ADD(transport, bytes_sent, data);
	peer->tx_message = number;
	peer->waiting.head = message;
	last->next = NULL;
	if (!peer->unacked.head)
		peer->unacked.head = first;
	else
		peer->unacked.tail->next = first;
	peer->unacked.tail = last;
	return at;
}

enum step sender_fast(struct transport *transport, struct peer *peer)
{
	struct frame frame = {.type = FRAME_DATA, .flags = FRAME_START | FRAME_ACK_NOW};
	bool begins = !peer->flight;
	uint32_t message = peer->tx_message, messages;
	struct rte_mbuf *mbuf;
	uint8_t *header, *at;

	if (!fast_may(transport, peer))
		return STEP_NOTHING;
	mbuf = frame_begin(transport, peer);
	if (!mbuf)
		return STEP_BLOCKED;
	header = outbox_header(mbuf);
	at = fast_fill(transport, peer, header + FRAME_HEADER_BYTES, header + transport->capacity);
	messages = peer->tx_message - message;
	if (peer->stalled)
		sender_unstall(peer, messages);
	if (unlikely(peer->waiting.head != NULL))
		return sender_fill(transport, peer, mbuf, at, messages,
			RECORDS_MAX - START_RECORDS * messages, begins);
	frame.psn = peer->tx_next++;
	frame.stream = peer->tx_stream;
	frame.length = (uint16_t)(at - header);
	frame.records = (uint8_t)messages;
	acknowledgement_fields(transport, peer, &frame);
	acknowledgement_forget(transport, peer);
	sender_names(transport, peer, &frame);
	frame_encode_header(&frame, header);
	if (likely(!peer->self)) {
		encapsulation_write_plain(
			&transport->encapsulation, header - FRAME_ETHERNET_BYTES, peer->address);
		outbox_put_bytes(transport, mbuf, FRAME_ETHERNET_BYTES + frame.length);
	} else {
		outbox_loop(transport, mbuf, FRAME_ETHERNET_BYTES + frame.length);
	}
	slot_take(transport, peer->flight, mbuf, frame.psn, frame.length);
	sender_sent(transport, peer);
	if (begins)
		flight_watch(transport, peer);
	return STEP_LAST;
}

/* --- turns, and frames sent again */

/* Does only its slot refer to a frame that has its buffer? */
static bool slot_alone(const struct slot *slot)
{
	/* Acquire: pairs with the release in the last other holder's free: its reads are over. */
	return slot->frame->nb_segs == 1 &&
	       __atomic_load_n(&slot->frame->refcnt, __ATOMIC_ACQUIRE) == 1;
}

/* The frame of a slot in an mbuf that nobody else reads, with a reference for the outbox, and what
 * stays of its header. NULL: no memory. */
static struct rte_mbuf *frame_again(
	struct transport *transport, struct peer *peer, uint32_t psn, struct frame *frame)
{
	struct flight *flight = peer->flight;
	struct slot *slot = &flight->slots[psn % FRAME_WINDOW];
	struct rte_mbuf *mbuf;

	if (!bitmap_test(flight->outlined, psn) && slot_alone(slot)) {
		rte_mbuf_refcnt_update(slot->frame, 1);
		frame_recall(outbox_header(slot->frame), frame);
		return slot->frame;
	}
	if (!flight_outline(transport, peer, psn))
		return NULL;
	mbuf = outbox_alloc(transport, 1);
	if (mbuf)
		outline_write(slot->outline, peer, frame, outbox_header(mbuf));
	frame->psn = psn;
	return mbuf;
}

bool sender_resend(struct transport *transport, struct peer *peer, uint32_t psn)
{
	struct flight *flight = peer->flight;
	struct rte_mbuf *mbuf;
	struct frame frame;

	if (!outbox_room(transport, peer, 1 + OUTBOX_SPARE))
		return false;
	mbuf = frame_again(transport, peer, psn, &frame);
	if (!mbuf)
		return false;
	/* The bitmap's place stays as it is: behind it lie the records. */
	frame.flags &= FRAME_START | FRAME_SACK;
	frame.flags |= FRAME_ACK_NOW;
	acknowledgement_write(transport, peer, &frame, frame.flags & FRAME_SACK);
	flight->slots[psn % FRAME_WINDOW].sent = transport->now;
	bitmap_set(flight->resent, psn);
	if (bitmap_test(flight->lost, psn)) {
		bitmap_clear(flight->lost, psn);
		flight->lost_count--;
	}
	sender_put(transport, peer, mbuf, &frame);
	PROBE(retransmit, peer->process.nid, peer->process.pid, psn, peer->retransmits);
	peer->retransmits++;
	COUNT(transport, retransmits);
	return true;
}

/* The lost frame with the lowest number goes first: others may wait for it. */
static enum step sender_repeat(struct transport *transport, struct peer *peer)
{
	uint64_t line[BITMAP_WORDS];

	if (!congestion_open(transport, peer))
		return STEP_STALLED;
	bitmap_turn(peer->flight->lost, peer->tx_una, line);
	if (!sender_resend(transport, peer, peer->tx_una + bitmap_lowest(line)))
		return STEP_BLOCKED;
	if (peer->backoff > 0)
		COUNT(transport, retransmits_timeout);
	else
		COUNT(transport, retransmits_rack);
	return STEP_SENT;
}

/* I3. The frames of a stream of which nothing was acknowledged keep no buffer. */
static bool sender_may_keep(const struct transport *transport, const struct peer *peer)
{
	uint64_t shares = pool_taken(&transport->flight_pool) + 1u;

	if (transport->in_flight < transport->in_flight_shared || peer->outgoing < OUTGOING_OPEN)
		return true;
	return transport->in_flight < transport->in_flight_max &&
	       peer_in_flight(peer) * shares < transport->in_flight_max;
}

static enum step sender_step(struct transport *transport, struct peer *peer)
{
	enum step step = sender_fast(transport, peer);

	if (step != STEP_NOTHING)
		return step;
	if (peer->flight && peer->flight->lost_count != 0)
		return sender_repeat(transport, peer);
	if (!sender_has_work(peer) || stream_last(peer) || psn_asked(transport, peer))
		return STEP_NOTHING;
	if (!sender_open(transport, peer))
		return STEP_STALLED;
	if (!sender_may_keep(transport, peer))
		return STEP_BLOCKED;
	return sender_new(transport, peer);
}

/* There is work, but no window. */
static void sender_stall(struct transport *transport, struct peer *peer)
{
	if (!peer->stalled)
		COUNT(transport, credit_stalls);
	peer->stalled = true;
	if (peer_pipe(peer) == 0)
		peer_wake(transport, peer, peer->pace_due);
}

/* The peer's turn: takes up to `quantum` frames from *budget. */
static enum step sender_serve(
	struct transport *transport, struct peer *peer, unsigned *budget, unsigned quantum)
{
	unsigned least = *budget > quantum ? *budget - quantum : 0;
	uint32_t message = peer->tx_message;
	enum step step;

	if (peer->address_state != ADDRESS_KNOWN) {
		if (sender_has_work(peer))
			address_ask(transport, peer);
		return STEP_NOTHING;
	}
	do {
		step = sender_step(transport, peer);
		if (step <= STEP_LAST) {
			if (peer->stalled)
				sender_unstall(peer, peer->tx_message - message);
			--*budget;
		}
	} while (step == STEP_SENT && *budget > least);
	if (step == STEP_STALLED)
		sender_stall(transport, peer);
	return step;
}

unsigned sender_turn_frames(uint32_t capacity, uint16_t joins)
{
	unsigned frames = TURN_BYTES / capacity;

	frames = RTE_MAX(RTE_MIN(frames, TURN_FRAMES), TURN_FRAMES_LO);
	return joins > 1 && frames > joins ? frames - frames % joins : frames;
}

unsigned sender_turns(struct transport *transport, unsigned budget, unsigned quantum)
{
	unsigned tries = RTE_MIN(transport->ready_count, BLOCKED_MAX);

	while (budget > 0 && tries > 0 && transport->ready_count != 0) {
		struct peer *peer = link_entry(transport->ready.next, struct peer, ready_link);
		enum step step = sender_serve(transport, peer, &budget, quantum);

		quantum = QUANTUM;
		sender_unready(transport, peer);
		if (step == STEP_SENT || step == STEP_BLOCKED)
			sender_ready(transport, peer);
		if (step == STEP_BLOCKED) {
			transport->blocked = true;
			tries--;
		}
	}
	return budget;
}
