/* SPDX-License-Identifier: BSD-3-Clause */
/* receiver.c - a frame from the port: checked, given to its peer, delivered in its turn. Owned by
 * one poll core.
 *
 * I1. A frame has no effect before all of its header was found right: layout, checksum and the psns
 *     that a stream may begin with (wire/frame.c), process ids, incarnations, what it acknowledges.
 *     If it then proves itself (frame_proven()), it says that its sender lives, what has arrived
 *     there and, if the frame is new (frame_is_new()), where the sender is, whatever becomes of its
 *     records; and of these none has an effect before all were found right, against the stream and
 *     the messages that they belong to. Else it has no effect but that the peer may be asked.
 * I2. A psn of a stream is delivered at most once. Frames that start messages are delivered in
 *     order; others at once when every message that they have data of has begun. A frame that must
 *     wait is held, as long as frame_may_be_held(); one that cannot be held is dropped, not
 *     acknowledged.
 *     The frame whose turn it is never has to be held: so a peer makes progress however many frames
 *     of others are.
 * I3. A process that is not known makes state only with the first frames of a stream for this very
 *     life of this process, which begins as this process has told it to, and only while peer_get()
 *     has room for it.
 * I4. A reset is sent for a frame that its sender would otherwise repeat in vain; it makes no
 *     state. There are no more resets than answer_spend() allows: for the others, a repetition of
 *     the refused frame is answered.
 */
#include <transport/receiver.h>

#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <transport/ack.h>
#include <transport/acknowledgement.h>
#include <transport/address.h>
#include <transport/assembly.h>
#include <transport/buffer.h>
#include <transport/echo.h>
#include <transport/incoming.h>
#include <transport/zcopy.h>
#include <transport/life.h>
#include <transport/name.h>
#include <transport/neighbour.h>
#include <transport/outbox.h>
#include <transport/ready.h>
#include <transport/recovery.h>
#include <transport/silence.h>

/* what a reset counts for: itself, and what it costs to look at the refused frame */
#define RESET_BYTES    128
#define GROUP_ADDRESS  1 /* in a MAC address's first byte */
#define PREFETCH_AHEAD 3
#define ECHO_MEMORY    (1 * SECOND)
#define STRANGER_WAIT  (60 * SECOND) /* until the user is told of another version again */
static_assert(ECHO_MEMORY <= STREAM_MEMORY, "a stream whose echo is remembered has not expired");

/* A frame that has been checked, and where it comes from. outer.from is NULL when that is this
 * process. */
struct arrival {
	struct frame_view frame;
	struct rte_mbuf *mbuf;
	struct outer outer;
};

/* --- resets */

static __rte_noinline void reset_send(struct transport *transport, const struct arrival *arrival,
	bool older, uint16_t known_stream)
{
	const struct frame_header *frame = arrival->frame.header;
	struct frame reset = {
		.type = FRAME_RESET,
		.flags = older ? FRAME_FIRST : 0,
		.destination_nid = frame->source_nid,
		.destination_pid = frame->source_pid,
		.destination_incarnation = frame->source_incarnation,
		.ack_stream = frame->stream,
		.ack = frame->psn,
		.stream = known_stream,
	};

	if (!arrival->outer.from || !answer_spend(transport, &transport->resets_paid, RESET_BYTES))
		return;
	COUNT(transport, resets_sent);
	outbox_send(transport, &reset, NULL, arrival->outer.from);
}

/* The peer does not know the stream. Messages sent on it have failed, unless the peer says that it
 * took the stream for one older than it knows (FRAME_FIRST) and nothing of it has been
 * acknowledged: then the stream goes on under a newer number. */
static __rte_noinline void reset_receive(
	struct transport *transport, struct peer *peer, const struct frame_header *frame)
{
	if (peer->outgoing == OUTGOING_CLOSED || frame->ack_stream != peer->tx_stream ||
		frame->ack - peer->tx_una >= peer_in_flight(peer)) {
		COUNT(transport, dropped_stale);
		return;
	}
	COUNT(transport, resets_received);
	if (!(frame->flags & FRAME_FIRST) || peer->outgoing != OUTGOING_FIRST) {
		peer_fail_begun(transport, peer, TRANSPORT_RESTARTED);
		/* The peer may have forgotten what it told: it is asked before the next stream. */
		address_lose(transport, peer);
		if (sender_has_work(peer))
			sender_ready(transport, peer);
		return;
	}
	peer->tx_stream = (uint16_t)(frame->stream + 1);
	peer->tx_base = frame->stream;
	peer->tx_marks = 0;
	for (uint32_t psn = peer->tx_una; psn != peer->tx_next; psn++) {
		if (!bitmap_test(peer->flight->lost, psn))
			recovery_lose(peer, psn);
	}
	sender_ready(transport, peer);
}

/* --- the peer's stream */

/* Does the frame begin a stream that is after all that its sender's life has begun? Of one that is
 * not known the last two psns count, of others that of its last stream, too (peer.h I5). peer: NULL
 * if it is not known. */
static bool stream_begins_right(const struct transport *transport, const struct peer *peer,
	const struct frame_header *frame, uint32_t *generation)
{
	if (frame_type(frame) != FRAME_DATA || !(frame->flags & FRAME_FIRST) ||
		!address_generation(transport, peer, frame, generation))
		return false;
	return !peer || peer->incoming == INCOMING_NONE || *generation != peer->generation ||
	       (serial_before_16(peer->rx_stream, frame->stream) &&
		       (uint16_t)(frame->stream - peer->rx_base) < INT16_MAX);
}

/* The frame begins a stream. */
static void stream_take(struct transport *transport, struct peer *peer,
	const struct arrival *arrival, uint32_t generation)
{
	const struct frame_header *frame = arrival->frame.header;

	if (peer->incoming == INCOMING_NONE || peer->generation != generation)
		peer->rx_base = frame->stream;
	peer->generation = generation;
	incoming_close(transport, peer, INCOMING_NONE, TRANSPORT_RESTARTED);
	incoming_open(peer, frame, arrival->outer.marked);
	if (frame->flags & FRAME_ACK_VALID)
		return;
	life_psn(transport, peer, frame->ack);
	if (peer->address_state != ADDRESS_KNOWN)
		address_complete(transport, peer);
}

/* A frame of another stream than the open one begins that stream, if it may. Returns true if it
 * does. */
static __rte_noinline bool stream_begin(
	struct transport *transport, struct peer *peer, struct arrival arrival)
{
	const struct frame_header *frame = arrival.frame.header;
	bool known = peer->incoming != INCOMING_NONE;
	bool later = !known || serial_before_16(peer->rx_stream, frame->stream);
	bool first = frame->flags & FRAME_FIRST;
	uint32_t generation;

	if (stream_begins_right(transport, peer, frame, &generation)) {
		stream_take(transport, peer, &arrival, generation);
		return true;
	}
	if (first && known && !incoming_is_open(peer) &&
		address_generation(transport, peer, frame, &generation))
		COUNT(transport, dropped_again);
	else
		COUNT(transport, dropped_stale);
	if (!first || !later) {
		bool older = known && serial_before_16(frame->stream, peer->rx_stream);

		reset_send(transport, &arrival, older && first, older ? peer->rx_stream : 0);
	}
	return false;
}

static inline bool stream_accept(
	struct transport *transport, struct peer *peer, const struct arrival *arrival)
{
	const struct frame_header *frame = arrival->frame.header;

	if (incoming_is_open(peer) && frame->stream == peer->rx_stream)
		return true;
	return stream_begin(transport, peer, *arrival);
}

/* --- delivery */

static void verdict_count(struct transport *transport, enum assembly_verdict verdict)
{
	if (verdict == ASSEMBLY_NO_MEMORY)
		COUNT(transport, dropped_no_memory);
	else if (verdict == ASSEMBLY_RING)
		COUNT(transport, dropped_ring);
	else
		COUNT(transport, dropped_malformed);
}

static void held_free(struct transport *transport, struct peer *peer, uint32_t psn)
{
	struct reorder *reorder = peer->reorder;

	rte_pktmbuf_free(reorder->held[psn % FRAME_WINDOW]);
	reorder->held[psn % FRAME_WINDOW] = NULL;
	transport->held--;
	if (--reorder->count > 0)
		return;
	peer->reorder = NULL;
	pool_give(&transport->reorder_pool, reorder);
}

/* Delivers a frame that was held until its turn. It was checked, but for what depends on the frames
 * before it. */
static enum assembly_verdict held_deliver(
	struct transport *transport, struct peer *peer, const struct rte_mbuf *mbuf)
{
	const struct encapsulation *encapsulation = &transport->encapsulation;
	uint32_t at = peer->self ? encapsulation->bytes
				 : encapsulation_skip(
					   encapsulation, rte_pktmbuf_mtod(mbuf, const void *));
	enum assembly_verdict verdict;
	struct frame_view frame;

	if (frame_decode_again(rte_pktmbuf_mtod_offset(mbuf, const void *, at), mbuf->data_len - at,
		    &frame) != FRAME_OK)
		return ASSEMBLY_BAD;
	verdict = assembly_check(transport, peer, &frame, true);
	if (verdict == ASSEMBLY_FINE)
		assembly_deliver(transport, peer, &frame);
	return verdict;
}

/* The next frame has been delivered: what was waiting for it follows. */
static __rte_noinline void held_advance(struct transport *transport, struct peer *peer)
{
	while (bitmap_test(peer->received, peer->rx_next)) {
		uint32_t psn = peer->rx_next;
		struct rte_mbuf *held =
			peer->reorder ? peer->reorder->held[psn % FRAME_WINDOW] : NULL;

		if (held) {
			enum assembly_verdict verdict = held_deliver(transport, peer, held);

			held_free(transport, peer, psn);
			if (verdict != ASSEMBLY_FINE) {
				/* The frame is acknowledged already, so the stream has to end. */
				verdict_count(transport, verdict);
				incoming_close(transport, peer, INCOMING_GIVEN_UP, TRANSPORT_DEAD);
				return;
			}
		}
		bitmap_clear(peer->received, psn);
		peer->rx_next++;
	}
	if (!bitmap_any(peer->received))
		incoming_turn(peer, INCOMING_OPEN);
}

/* I2. Of the second half of held_max a peer gets no more than its share of all: as much as if one
 * peer more had frames held, so that there is room for one more. */
static bool frame_may_be_held(const struct transport *transport, const struct peer *peer)
{
	uint64_t shares = pool_taken(&transport->reorder_pool) + 1u;

	return transport->held < transport->held_max / 2 ||
	       (transport->held < transport->held_max &&
		       (!peer->reorder || peer->reorder->count * shares < transport->held_max));
}

static bool frame_hold(
	struct transport *transport, struct peer *peer, const struct arrival *arrival)
{
	uint32_t psn = arrival->frame.header->psn;
	struct rte_mbuf *held = arrival->mbuf;

	if (!frame_may_be_held(transport, peer)) {
		COUNT(transport, dropped_no_memory);
		return false;
	}
	/* A sender in this process, or one that shares memory with it, must get its memory back,
	 * however long the gap lasts. */
	if (held->nb_segs > 1)
		held = zcopy_copy(transport->port->pool, held);
	if (held && !peer->reorder) {
		peer->reorder = pool_take(&transport->reorder_pool);
		if (!peer->reorder) {
			if (held != arrival->mbuf)
				rte_pktmbuf_free(held);
			COUNT(transport, dropped_no_memory);
			return false;
		}
		memset(peer->reorder, 0, sizeof(*peer->reorder));
		/* From now on its silence matters. */
		peer_wake(transport, peer, transport->now + silence_look_inbound(transport));
	}
	if (!held) {
		COUNT(transport, dropped_no_memory);
		return false;
	}
	if (held != arrival->mbuf)
		rte_pktmbuf_free(arrival->mbuf);
	peer->reorder->held[psn % FRAME_WINDOW] = held;
	peer->reorder->count++;
	transport->held++;
	return true;
}

/* Delivers the next frame of the stream. */
static inline void frame_in_order(
	struct transport *transport, struct peer *peer, const struct frame_view *frame)
{
	const struct frame_header *header = frame->header;
	enum assembly_verdict verdict = assembly_check(transport, peer, frame, true);
	enum ack_list list = (header->flags & FRAME_ACK_NOW) ? ACK_SOON : ACK_LATER;
	bool assembling = peer->assemblies != NULL;

	if (unlikely(verdict != ASSEMBLY_FINE)) {
		verdict_count(transport, verdict);
		return;
	}
	assembly_deliver(transport, peer, frame);
	peer->rx_next++;
	if (unlikely(peer->incoming == INCOMING_GAP)) {
		list = ACK_URGENT;
		held_advance(transport, peer);
		if (!incoming_is_open(peer))
			return;
	}
	if (unlikely(peer->assemblies) && !assembling)
		peer_wake(transport, peer, transport->now + silence_look_inbound(transport));
	acknowledgement_owe(transport, peer, header->length, list);
}

/* A frame that came before one that is missing. Returns true if the frame is held. */
static __rte_noinline bool frame_early(
	struct transport *transport, struct peer *peer, struct arrival arrival)
{
	const struct frame_header *frame = arrival.frame.header;
	enum assembly_verdict verdict = assembly_check(transport, peer, &arrival.frame, false);
	bool held = false;

	if (verdict == ASSEMBLY_UNKNOWN) {
		if (!frame_hold(transport, peer, &arrival))
			return false;
		held = true;
	} else if (verdict != ASSEMBLY_FINE) {
		verdict_count(transport, verdict);
		return false;
	}
	COUNT(transport, reordered);
	bitmap_set(peer->received, frame->psn);
	incoming_turn(peer, INCOMING_GAP);
	if (!held)
		assembly_deliver(transport, peer, &arrival.frame);
	acknowledgement_owe(transport, peer, frame->length, ACK_URGENT);
	return held;
}

/* All peers that have sent in this epoch or the last share the credit. */
static void sender_count(struct transport *transport, struct peer *peer)
{
	if (peer->epoch == transport->epoch)
		return;
	peer->epoch = transport->epoch;
	transport->senders++;
	if (transport->senders > transport->senders_before)
		transport->credit = (uint16_t)RTE_MAX(
			RTE_MIN(transport->credit_total / transport->senders, CREDIT_MAX), 1u);
}

/* A frame that has been received before, or that lies beyond the window. */
static __rte_noinline void frame_stray(struct transport *transport, struct peer *peer,
	const struct frame_header *frame, uint32_t ahead)
{
	uint32_t generation;

	if (stream_begins_right(transport, peer, frame, &generation)) {
		/* Another stream happens to have the same number. The next copy begins it. */
		incoming_close(transport, peer, INCOMING_GIVEN_UP, TRANSPORT_RESTARTED);
		COUNT(transport, dropped_stale);
		return;
	}
	if (ahead < FRAME_WINDOW || serial_before(frame->psn, peer->rx_next))
		COUNT(transport, dropped_duplicate);
	else
		COUNT(transport, dropped_window);
	acknowledgement_owe(transport, peer, frame->length, ACK_URGENT);
}

/* Returns true if the frame is held. */
static inline bool data_receive(
	struct transport *transport, struct peer *peer, const struct arrival *arrival)
{
	const struct frame_header *frame = arrival->frame.header;
	uint32_t ahead;

	if (!stream_accept(transport, peer, arrival))
		return false;
	sender_count(transport, peer);
	ahead = frame->psn - peer->rx_next;
	if (ahead == 0) {
		frame_in_order(transport, peer, &arrival->frame);
		return false;
	}
	if (ahead < FRAME_WINDOW && !bitmap_test(peer->received, frame->psn))
		return frame_early(transport, peer, *arrival);
	frame_stray(transport, peer, frame, ahead);
	return false;
}

/* --- checks */

/* The peer's clock as of its newest frame. After a long silence order means nothing. */
static inline void echo_note(
	struct transport *transport, struct peer *peer, const struct frame_header *frame)
{
	if (serial_before(frame->timestamp, peer->echo) && peer->incoming != INCOMING_NONE &&
		transport->now - peer->heard < ECHO_MEMORY)
		return;
	peer->echo = frame->timestamp;
	peer->echo_at = (uint32_t)transport->arrival;
}

/* A frame of another version of the wire, or of a type that this one does not have. Where the
 * processes stand in the header has been the same in all versions. */
static void version_note(struct transport *transport, const struct frame_header *frame)
{
	struct process from = {frame->source_nid, frame->source_pid};
	struct process to = {frame->destination_nid, frame->destination_pid};
	unsigned version = frame->version_type >> 4;

	COUNT(transport, dropped_version);
	if (version == FRAME_VERSION || !process_same(to, transport->options.self) ||
		transport->now < transport->stranger_due)
		return;
	transport->stranger_due = transport->now + STRANGER_WAIT;
	transport->upcalls.stranger(transport->upcalls.context, from, version);
}

/* bytes: the transport header of a frame that is dropped. */
static __rte_noinline void status_count(
	struct transport *transport, enum frame_status status, const void *bytes)
{
	switch (status) {
	case FRAME_BAD_SHORT:
		COUNT(transport, dropped_short);
		break;
	case FRAME_BAD_VERSION:
		version_note(transport, bytes);
		break;
	case FRAME_BAD_SEALED:
		COUNT(transport, dropped_sealed);
		break;
	case FRAME_BAD_CHECKSUM:
		COUNT(transport, dropped_checksum);
		break;
	default:
		COUNT(transport, dropped_malformed);
		break;
	}
}

static bool process_possible(struct process process)
{
	return process.nid != UINT32_MAX && process.pid != UINT32_MAX;
}

/* A frame in the own name comes from the network. If it does not come from this very life, somebody
 * else has the name; he is answered when he asks whether there is such a one. */
static __rte_noinline void namesake_note(
	struct transport *transport, const struct arrival *arrival, bool mine)
{
	const struct frame_header *frame = arrival->frame.header;
	struct process to = {frame->destination_nid, frame->destination_pid};

	if (!mine || frame->source_incarnation == transport->options.incarnation)
		return;
	address_duplicate(transport, arrival->outer.from);
	if (frame_type(frame) == FRAME_ASK && process_same(to, transport->options.self))
		address_asked(transport, frame, arrival->outer.from);
}

/* Is it from a process that may be, to this one? A question to another process is none of this
 * process's business. */
static bool processes_fine(struct transport *transport, const struct arrival *arrival)
{
	const struct frame_header *frame = arrival->frame.header;
	struct process from = {frame->source_nid, frame->source_pid};
	struct process to = {frame->destination_nid, frame->destination_pid};
	bool mine = process_same(from, transport->options.self);

	/* An answer to a group address would go to many. */
	if (!process_possible(from) || frame->source_incarnation == 0 ||
		(arrival->outer.from && (arrival->outer.from[0] & GROUP_ADDRESS))) {
		COUNT(transport, dropped_malformed);
		return false;
	}
	if (mine != (!arrival->outer.from)) {
		namesake_note(transport, arrival, mine);
		COUNT(transport, dropped_foreign);
		return false;
	}
	if (arrival->outer.source != 0 && arrival->outer.source != from.nid) {
		COUNT(transport, dropped_spoofed);
		return false;
	}
	if (frame_type(frame) == FRAME_ASK || frame_type(frame) == FRAME_PING ||
		frame_type(frame) == FRAME_FIND || process_same(to, transport->options.self))
		return true;
	COUNT(transport, dropped_no_process);
	return false;
}

/* A peer for a frame, made if the frame may make one. NULL: the frame is dropped. */
static struct peer *peer_for(struct transport *transport, const struct arrival *arrival)
{
	const struct frame_header *frame = arrival->frame.header;
	struct process from = {frame->source_nid, frame->source_pid};
	struct peer *peer = peer_table_find(&transport->peers, from);
	uint32_t generation;

	if (peer) {
		transport->peers.last = peer;
		return peer;
	}
	if (frame_type(frame) != FRAME_DATA) {
		COUNT(transport, dropped_stale);
		return NULL;
	}
	if (!(frame->flags & FRAME_FIRST)) {
		COUNT(transport, dropped_stale);
		reset_send(transport, arrival, false, 0);
		return NULL;
	}
	if (!stream_begins_right(transport, NULL, frame, &generation)) {
		COUNT(transport, dropped_stale);
		return NULL;
	}
	peer = peer_get(transport, from, true);
	if (!peer)
		COUNT(transport, dropped_no_memory);
	return peer;
}

/* Another life than the known one, or one that has ended, is a question's business. */
static __rte_noinline bool life_other(
	struct transport *transport, struct peer *peer, const struct arrival *arrival)
{
	const struct frame_header *frame = arrival->frame.header;
	uint32_t generation;

	if (peer->incarnation == 0 && stream_begins_right(transport, peer, frame, &generation)) {
		peer->incarnation = frame->source_incarnation;
		return true;
	}
	COUNT(transport, dropped_stale);
	address_challenge(transport, peer, arrival->outer.from);
	return false;
}

/* Is it from the known life of the peer? */
static inline bool life_fine(
	struct transport *transport, struct peer *peer, const struct arrival *arrival)
{
	if (arrival->frame.header->source_incarnation == peer->incarnation &&
		peer->address_state != ADDRESS_ENDED)
		return true;
	return life_other(transport, peer, arrival);
}

/* Does the frame name what only the peer, or somebody who reads its traffic, can know: a psn near
 * the next one of its stream, a psn in flight to it, or the first psn of its streams? */
static inline bool frame_proven(const struct transport *transport, const struct peer *peer,
	const struct frame_header *frame, enum acknowledged acknowledged)
{
	uint32_t generation;

	if (acknowledged == ACKNOWLEDGED_SENT || peer->self)
		return true;
	if (frame_type(frame) != FRAME_DATA && frame_type(frame) != FRAME_BYE)
		return false;
	return (peer->incoming != INCOMING_NONE && frame->stream == peer->rx_stream &&
		       frame->psn - peer->rx_next + FRAME_WINDOW <= 2 * FRAME_WINDOW) ||
	       stream_begins_right(transport, peer, frame, &generation);
}

/* The network is congested on the way from this peer, which it is told with every
 * acknowledgement: as a count, so that one that is lost takes nothing with it. */
static void mark_note(struct transport *transport, struct peer *peer)
{
	COUNT(transport, marks_received);
	peer->rx_marks++;
}

/* Does it come from elsewhere than the peer is? Beyond a router all frames come from there. */
static bool address_other(
	const struct transport *transport, const struct peer *peer, const uint8_t *from)
{
	return from && memcmp(peer->address, from, FRAME_ADDRESS_BYTES) != 0 &&
	       encapsulation_on_link(&transport->encapsulation, peer->process.nid);
}

/* A stream that has been silent for so long is no longer known to its sender. Here it is known to
 * be over. */
static __rte_noinline void stream_expire(struct transport *transport, struct peer *peer)
{
	if (incoming_is_open(peer))
		incoming_close(transport, peer, INCOMING_GIVEN_UP, TRANSPORT_DEAD);
}

/* Does a frame that proves itself bring what has not arrived before? */
static bool frame_is_new(const struct transport *transport, const struct peer *peer,
	const struct frame_header *frame)
{
	uint32_t generation;

	if ((frame->flags & FRAME_ACK_VALID) && frame->ack_stream == peer->tx_stream &&
		frame->ack - peer->tx_una - 1 < peer_in_flight(peer))
		return true;
	if (frame_type(frame) != FRAME_DATA)
		return false;
	if (incoming_is_open(peer) && frame->stream == peer->rx_stream)
		return frame->psn - peer->rx_next < FRAME_WINDOW &&
		       !bitmap_test(peer->received, frame->psn);
	return stream_begins_right(transport, peer, frame, &generation);
}

/* A frame that proves itself may come from elsewhere than where the peer was known to be. Whoever
 * repeats frames must not move the peer, so one that is not new only causes a challenge. */
static __rte_noinline void address_follow(
	struct transport *transport, struct peer *peer, const struct arrival *arrival)
{
	const uint8_t *from = arrival->outer.from;

	if (address_other(transport, peer, from) &&
		!frame_is_new(transport, peer, arrival->frame.header))
		address_challenge(transport, peer, from);
	else
		address_learn(transport, peer, from);
}

/* A frame of the peer's stream, or an acknowledgement of the own one, that proves itself: the peer
 * lives, and is where it came from. */
static inline void proof_note(
	struct transport *transport, struct peer *peer, const struct arrival *arrival, bool near)
{
	if (unlikely(peer->address_state == ADDRESS_LAPSED))
		address_complete(transport, peer);
	if (unlikely(!near))
		address_follow(transport, peer, arrival);
	echo_note(transport, peer, arrival->frame.header);
	peer->heard = transport->now;
	if (unlikely(arrival->outer.marked))
		mark_note(transport, peer);
}

static __rte_noinline void bye_receive(struct transport *transport, struct peer *peer, bool proven)
{
	if (proven)
		peer_ended(transport, peer);
	else
		COUNT(transport, dropped_stale);
}

/* A frame from a peer's present life to this one. near: it says nothing new of where the peer is.
 * Returns true if it is held. */
static inline bool peer_receive(
	struct transport *transport, struct peer *peer, const struct arrival *arrival, bool near)
{
	const struct frame_header *frame = arrival->frame.header;
	enum acknowledged acknowledged = ACKNOWLEDGED_NOTHING;
	enum frame_type type = frame_type(frame);
	bool proven;

	if (type <= FRAME_ACK || type == FRAME_BYE)
		acknowledged = acknowledgement_check(peer, frame);
	if (unlikely(acknowledged == ACKNOWLEDGED_UNSENT)) {
		COUNT(transport, dropped_bad_ack);
		return false;
	}
	proven = frame_proven(transport, peer, frame, acknowledged);
	if (unlikely(transport->now - peer->heard > transport->spans.stream_memory))
		stream_expire(transport, peer);
	if (unlikely(!proven) && address_other(transport, peer, arrival->outer.from))
		address_challenge(transport, peer, arrival->outer.from);
	if (type <= FRAME_ACK) {
		if (proven)
			proof_note(transport, peer, arrival, near);
		if (acknowledged == ACKNOWLEDGED_SENT)
			acknowledgement_take(transport, peer, frame);
		if (type == FRAME_DATA)
			return data_receive(transport, peer, arrival);
		COUNT(transport, acks_received);
	} else if (type == FRAME_RESET) {
		reset_receive(transport, peer, frame);
	} else if (type == FRAME_BYE) {
		bye_receive(transport, peer, proven);
	}
	return false;
}

/* Did the frame come to this port's address only? */
static bool came_alone(const struct transport *transport, const struct arrival *arrival)
{
	return arrival->outer.from && memcmp(rte_pktmbuf_mtod(arrival->mbuf, const void *),
					      transport->port->address, FRAME_ADDRESS_BYTES) == 0;
}

/* A question to everybody, or an echo question. Whichever process it is for, an asker at another
 * address or in another life than is known here is asked in turn. It never makes a peer. */
static __rte_noinline void question_receive(
	struct transport *transport, const struct arrival *arrival)
{
	const struct frame_header *frame = arrival->frame.header;
	struct process from = {frame->source_nid, frame->source_pid};
	struct process to = {frame->destination_nid, frame->destination_pid};
	struct peer *peer = peer_table_find(&transport->peers, from);

	if (peer && life_fine(transport, peer, arrival) &&
		address_other(transport, peer, arrival->outer.from))
		address_challenge(transport, peer, arrival->outer.from);
	if (!process_same(to, transport->options.self)) {
		COUNT(transport, dropped_foreign);
		/* posternd lets nobody speak for another one. */
		if (frame_type(frame) == FRAME_ASK && came_alone(transport, arrival) &&
			!transport->port->attested)
			address_asked_for_another(transport, frame, arrival->outer.from);
	} else if (frame_type(frame) == FRAME_ASK) {
		address_asked(transport, frame, arrival->outer.from);
	} else {
		echo_asked(transport, frame, arrival->outer.from);
	}
}

/* The host of a peer, or another process there, has answered a question for it: there is no such
 * process. Nobody else knows the question's number, whichever life the answer names. */
static void denial_receive(struct transport *transport, struct peer *peer)
{
	COUNT(transport, denials_received);
	address_denied(transport, peer);
}

/* Is the frame from the peer of the last frame, to this process, between their present lives, and
 * from the address where the peer is known to be? Most frames are, and need no other check of their
 * sender. */
static inline bool arrival_expected(
	const struct transport *transport, const struct peer *peer, const struct arrival *arrival)
{
	const struct frame_header *frame = arrival->frame.header;
	const struct outer *outer = &arrival->outer;
	uint64_t lives = (uint64_t)transport->options.incarnation << 32 | peer->incarnation;

	if (word_read(frame, offsetof(struct frame_header, source_nid)) !=
			word_read(&peer->process, 0) ||
		word_read(frame, offsetof(struct frame_header, destination_nid)) !=
			word_read(&transport->options.self, 0) ||
		word_read(frame, offsetof(struct frame_header, source_incarnation)) != lives ||
		frame_type(frame) > FRAME_ACK)
		return false;
	if (!outer->from)
		return peer->self && peer->address_state != ADDRESS_ENDED;
	return !peer->self && peer->address_state != ADDRESS_ENDED &&
	       memcmp(peer->address, outer->from, FRAME_ADDRESS_BYTES) == 0 &&
	       (outer->source == 0 || (outer->source == peer->process.nid &&
					      encapsulation_on_link(&transport->encapsulation,
						      peer->process.nid)));
}

/* Checks the sender of any other frame. Returns the peer whose present life has sent it; NULL: the
 * frame has been processed or dropped. */
static __rte_noinline struct peer *arrival_admit(
	struct transport *transport, struct arrival arrival)
{
	const struct frame_header *frame = arrival.frame.header;
	struct peer *peer;

	if (!processes_fine(transport, &arrival))
		return NULL;
	if (frame_type(frame) == FRAME_ASK || frame_type(frame) == FRAME_PING) {
		question_receive(transport, &arrival);
		return NULL;
	}
	if (frame_type(frame) == FRAME_FIND) {
		name_asked(transport, &arrival.frame, arrival.outer.from);
		return NULL;
	}
	if (frame->destination_incarnation != transport->options.incarnation) {
		COUNT(transport, dropped_stale);
		if (frame_type(frame) == FRAME_DATA)
			reset_send(transport, &arrival, false, 0);
		return NULL;
	}
	if (frame_type(frame) == FRAME_FOUND) {
		name_told(transport, &arrival.frame);
		return NULL;
	}
	peer = peer_for(transport, &arrival);
	if (!peer)
		return NULL;
	/* Earlier acknowledgements may be of a life, or a stream, that is over. */
	if (frame->source_incarnation != peer->incarnation || frame_type(frame) > FRAME_ACK)
		acknowledgement_settle(transport);
	if (frame_type(frame) == FRAME_TELL) {
		life_told(transport, peer, frame, arrival.outer.from);
		return NULL;
	}
	if (frame_type(frame) == FRAME_BYE && address_asks(transport, peer, frame)) {
		denial_receive(transport, peer);
		return NULL;
	}
	if (frame_type(frame) == FRAME_PONG)
		echo_answered(transport, peer, frame);
	return life_fine(transport, peer, &arrival) ? peer : NULL;
}

/* Returns true if the frame is held. */
static inline bool arrival_process(struct transport *transport, const struct arrival *arrival)
{
	struct peer *peer = transport->peers.last;
	bool near = peer && arrival_expected(transport, peer, arrival);

	if (unlikely(!near)) {
		peer = arrival_admit(transport, *arrival);
		if (!peer)
			return false;
		near = !arrival->outer.from;
	}
	return peer_receive(transport, peer, arrival, near);
}

/* --- arrival */

/* Replaces a chain by one segment with the same bytes. Returns NULL if there is no room. */
static struct rte_mbuf *mbuf_joined(struct transport *transport, struct rte_mbuf *chain)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(transport->port->pool);
	uint32_t length = chain->pkt_len;

	if (mbuf && length <= rte_pktmbuf_tailroom(mbuf)) {
		uint8_t *to = rte_pktmbuf_mtod(mbuf, uint8_t *);
		const void *bytes = rte_pktmbuf_read(chain, 0, length, to);

		if (bytes && bytes != to)
			memcpy(to, bytes, length);
		mbuf->data_len = (uint16_t)length;
		mbuf->pkt_len = length;
	} else {
		rte_pktmbuf_free(mbuf);
		mbuf = NULL;
		COUNT(transport, dropped_no_memory);
	}
	rte_pktmbuf_free(chain);
	return mbuf;
}

static __rte_noinline void outer_bad(struct transport *transport, enum encapsulation_status status)
{
	switch (status) {
	case ENCAPSULATION_BAD_IPV4:
		COUNT(transport, dropped_ipv4);
		break;
	case ENCAPSULATION_FRAGMENT:
		COUNT(transport, dropped_fragment);
		break;
	case ENCAPSULATION_BAD_UDP:
		COUNT(transport, dropped_udp);
		break;
	default:
		COUNT(transport, dropped_foreign);
		break;
	}
}

/* The outer header of a frame that never left this process. */
static inline void outer_looped(
	const struct transport *transport, const struct rte_mbuf *mbuf, struct outer *outer)
{
	outer->at = transport->encapsulation.bytes;
	outer->length = mbuf->data_len - outer->at;
	outer->source = 0;
	outer->from = NULL;
	outer->marked = false;
}

static void arp_receive(struct transport *transport, const void *bytes, const struct outer *outer)
{
	struct neighbour_told told;
	enum neighbour_result result = neighbour_receive(transport, bytes, outer, &told);

	if (result == NEIGHBOUR_FOUND)
		address_hop(transport, told.wanted, told.hardware);
	else if (result == NEIGHBOUR_DUPLICATE)
		address_duplicate(transport, told.hardware);
}

/* Finds the transport header. Returns false if the frame has none, or none for this process. */
static inline bool outer_find(
	struct transport *transport, const struct rte_mbuf *mbuf, bool looped, struct outer *outer)
{
	const void *bytes = rte_pktmbuf_mtod(mbuf, const void *);
	enum encapsulation_status status;

	if (looped) {
		outer_looped(transport, mbuf, outer);
		return true;
	}
	status = encapsulation_read(
		&transport->encapsulation, bytes, mbuf->data_len, mbuf->ol_flags, outer);
	if (likely(status == ENCAPSULATION_FINE))
		return true;
	if (status == ENCAPSULATION_ARP)
		arp_receive(transport, bytes, outer);
	else if (status == ENCAPSULATION_REFUSED)
		recovery_refusal(transport, bytes, outer);
	else
		outer_bad(transport, status);
	return false;
}

/* A frame whose two pieces are its sender's is read where it lies, unless checksums have to be made
 * of it. */
static bool frame_readable(const struct transport *transport, const struct rte_mbuf *mbuf)
{
	return (transport->port->parts || zcopy_made(mbuf)) &&
	       !transport->encapsulation.options.udp;
}

static inline enum frame_status arrival_decode(struct arrival *arrival)
{
	const struct rte_mbuf *mbuf = arrival->mbuf;
	const void *bytes = rte_pktmbuf_mtod_offset(mbuf, const void *, arrival->outer.at);

	if (likely(mbuf->nb_segs == 1))
		return frame_decode(bytes, arrival->outer.length, &arrival->frame);
	return frame_decode_split(bytes, arrival->outer.length,
		rte_pktmbuf_mtod(mbuf->next, const void *), mbuf->next->data_len, &arrival->frame);
}

static inline void receiver_frame(struct transport *transport, struct rte_mbuf *mbuf, bool looped)
{
	struct arrival arrival;
	enum frame_status status;

	if (unlikely(mbuf->nb_segs > 1) && !frame_readable(transport, mbuf)) {
		mbuf = mbuf_joined(transport, mbuf);
		if (!mbuf)
			return;
	}
	arrival.mbuf = mbuf;
	if (likely(outer_find(transport, mbuf, looped, &arrival.outer))) {
		status = arrival_decode(&arrival);
		if (unlikely(status != FRAME_OK))
			status_count(transport, status,
				rte_pktmbuf_mtod_offset(mbuf, const void *, arrival.outer.at));
		else if (arrival_process(transport, &arrival))
			return; /* held */
	}
	buffer_drop(mbuf);
}

void receiver_burst(struct transport *transport)
{
	struct rte_mbuf **burst = transport->burst;
	unsigned count = transport->burst_count;

	for (unsigned i = 1; i < PREFETCH_AHEAD && i < count; i++)
		rte_prefetch0(rte_pktmbuf_mtod(burst[i], const void *));
	for (unsigned i = 0; i < count; i++) {
		if (i + PREFETCH_AHEAD < count)
			rte_prefetch0(rte_pktmbuf_mtod(burst[i + PREFETCH_AHEAD], const void *));
		receiver_frame(transport, burst[i], i < transport->burst_looped);
	}
}
