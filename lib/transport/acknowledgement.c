/* acknowledgement.c - telling peers what has arrived, and reading what they tell. Owned by one poll
 * core.
 *
 * Every frame to a peer acknowledges. One is sent for that alone when nothing else goes to the peer
 * in time: at once (with the turn) after something out of order or ACK_EVERY frames, after
 * ACK_SOON_DELAY when the peer has nothing more to send, after ACK_LATER_DELAY otherwise.
 *
 * I1. A peer that is owed an acknowledgement is in the list of its ack_list; each list is in the
 *     order of ack_due, because its delay is constant.
 * I2. What was acknowledged selectively is never taken back: the frame's mbuf is dropped at once.
 */
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include <transport/state.h>

#define RTT_SANE    (1u << 31)        /* ns; a round trip beyond it is a wrapped difference */
#define ANSWER_SANE (5 * MILLISECOND) /* as the first timeout */

static const uint64_t ack_delays[ACK_LISTS] = {0, ACK_SOON_DELAY, ACK_LATER_DELAY};

/* --- own acknowledgements */

void acknowledgement_owe(struct transport *transport, struct peer *peer, enum ack_list list)
{
	if (++peer->ack_owed >= ACK_EVERY)
		list = ACK_URGENT;
	if (peer->ack_list <= list)
		return;
	if (peer->ack_list != ACK_NONE)
		link_remove(&peer->ack_link);
	else
		transport->acks_owed++;
	peer->ack_list = (uint8_t)list;
	peer->ack_due = transport->now + ack_delays[list];
	list_append(&transport->acks[list], &peer->ack_link);
}

void acknowledgement_forget(struct transport *transport, struct peer *peer)
{
	peer->ack_owed = 0;
	if (peer->ack_list == ACK_NONE)
		return;
	transport->acks_owed--;
	link_remove(&peer->ack_link);
	peer->ack_list = ACK_NONE;
}

bool acknowledgement_needs_bitmap(const struct peer *peer)
{
	return (peer->flags & RX_OPEN) && bitmap_any(peer->received);
}

void acknowledgement_write(
	struct transport *transport, struct peer *peer, struct frame *frame, bool bitmap)
{
	if (!(peer->flags & RX_OPEN))
		return;
	frame->flags |= FRAME_ACK_VALID;
	frame->ack = peer->rx_next;
	frame->ack_stream = peer->rx_stream;
	frame->echo = peer->echo;
	frame->delay = (uint32_t)transport->now - peer->echo_at;
	frame->credit = transport->credit;
	if (peer->flags & RX_MARKED) {
		frame->flags |= FRAME_CE;
		peer->flags &= (uint16_t)~RX_MARKED;
	}
	if (bitmap) {
		frame->flags |= FRAME_SACK;
		bitmap_turn(peer->received, peer->rx_next + 1, frame->sack);
	}
	if (bitmap || !bitmap_any(peer->received))
		acknowledgement_forget(transport, peer);
}

/* False: not possible now. */
static bool acknowledgement_send(struct transport *transport, struct peer *peer)
{
	struct frame frame = {.type = FRAME_ACK};
	struct rte_mbuf *mbuf;

	if (!outbox_room(transport, peer, 1))
		return false;
	mbuf = outbox_alloc(transport);
	if (mbuf == NULL)
		return false;
	sender_address(transport, peer, &frame);
	acknowledgement_write(transport, peer, &frame, acknowledgement_needs_bitmap(peer));
	frame.length = (uint16_t)frame_header_bytes(frame.flags);
	frame_encode(&frame, outbox_header(mbuf));
	outbox_put(transport, mbuf, &frame, (peer->flags & PEER_SELF) ? NULL : peer->address);
	peer->sent = transport->now;
	COUNT(transport, acks_sent);
	return true;
}

void acknowledgement_run(struct transport *transport)
{
	unsigned i;

	for (i = 0; i < ACK_LISTS && transport->acks_owed != 0; i++) {
		struct link *list = &transport->acks[i];

		while (!list_empty(list)) {
			struct peer *peer = link_entry(list->next, struct peer, ack_link);

			if (peer->ack_due > transport->now)
				break;
			if (!(peer->flags & RX_OPEN) || !(peer->flags & PEER_KNOWN)) {
				acknowledgement_forget(transport, peer);
				continue;
			}
			if (!acknowledgement_send(transport, peer)) {
				transport->blocked = true;
				return;
			}
		}
	}
}

uint64_t acknowledgement_deadline(const struct transport *transport)
{
	uint64_t due = UINT64_MAX;
	unsigned i;

	for (i = 0; i < ACK_LISTS; i++) {
		const struct link *list = &transport->acks[i];

		if (!list_empty(list))
			due = RTE_MIN(due, link_entry(list->next, struct peer, ack_link)->ack_due);
	}
	return due;
}

/* --- the peer's acknowledgements */

/* Does it speak of the present stream, and of nothing that is long known? */
static bool acknowledgement_applies(const struct peer *peer, const struct frame *frame)
{
	return (frame->flags & FRAME_ACK_VALID) && (peer->flags & TX_OPEN) &&
	       frame->ack_stream == peer->tx_stream && !serial_before(frame->ack, peer->tx_una);
}

bool acknowledgement_valid(const struct peer *peer, const struct frame *frame)
{
	uint32_t beyond;

	if (!acknowledgement_applies(peer, frame))
		return true;
	if (frame->ack - peer->tx_una > peer_in_flight(peer))
		return false;
	if (!(frame->flags & FRAME_SACK))
		return true;
	beyond = peer->tx_next - frame->ack;
	return !bitmap_beyond(frame->sack, beyond == 0 ? 0 : beyond - 1);
}

void flight_end(struct transport *transport, struct peer *peer)
{
	pool_give(&transport->flight_pool, peer->flight);
	peer->flight = NULL;
	peer->flags &= (uint16_t)~TX_PROBED;
}

/* A frame that a timeout gave up has arrived without having been sent again: the timeout was wrong, and the others that it gave
 * up are most likely on their way too. If one is not, it will be missed anew. */
static void timeout_undo(struct peer *peer)
{
	struct flight *flight = peer->flight;

	flight->expired = false;
	memset(flight->lost, 0, sizeof(flight->lost));
	flight->lost_count = 0;
	congestion_undo(peer);
}

/* What the peer heard last was sent before this frame was sent again: the first one has arrived after all. */
static void spurious_note(struct transport *transport, struct peer *peer)
{
	COUNT(transport, spurious);
	congestion_undo(peer);
	if (peer->flight->expired) {
		timeout_undo(peer);
		return;
	}
	peer->flags |= TX_REORDER;
	if (peer->reorder_factor < REORDER_FACTOR_MAX)
		peer->reorder_factor++;
}

/* Was the frame sent after every one that was delivered before? */
static void rack_note(
	const struct transport *transport, struct flight *flight, uint32_t psn, uint64_t sent)
{
	if (sent < flight->rack_sent ||
		(sent == flight->rack_sent && serial_before(psn, flight->rack_psn)))
		return;
	flight->rack_sent = sent;
	flight->rack_psn = psn;
	flight->rack_rtt = transport->now - sent;
}

/* A frame in flight has arrived. */
static void slot_deliver(
	struct transport *transport, struct peer *peer, uint32_t psn, uint32_t echo)
{
	struct flight *flight = peer->flight;
	struct slot *slot = &flight->slots[psn % FRAME_WINDOW];
	bool resent = bitmap_test(flight->resent, psn);

	if (bitmap_test(flight->lost, psn)) {
		bitmap_clear(flight->lost, psn);
		flight->lost_count--;
		if (flight->expired && !resent)
			timeout_undo(peer);
	}
	if (resent && serial_before(echo, (uint32_t)slot->sent)) {
		spurious_note(transport, peer);
	} else {
		if (resent)
			flight->expired = false;
		rack_note(transport, flight, psn, slot->sent);
	}
	if (serial_before(psn + 1, flight->highest) && !resent)
		peer->flags |= TX_REORDER;
	if (serial_before(flight->highest, psn + 1))
		flight->highest = psn + 1;
	bitmap_clear(flight->resent, psn);
	transport->in_flight -= slot->frame->nb_segs;
	rte_pktmbuf_free(slot->frame);
	slot->frame = NULL;
}

/* Everything before ack has arrived. Returns how many frames are new. */
static unsigned cumulative_read(
	struct transport *transport, struct peer *peer, const struct frame *frame)
{
	unsigned delivered = 0;

	for (; peer->tx_una != frame->ack; peer->tx_una++) {
		if (bitmap_test(peer->flight->sacked, peer->tx_una)) {
			bitmap_clear(peer->flight->sacked, peer->tx_una);
			peer->flight->sacked_count--;
			continue;
		}
		slot_deliver(transport, peer, peer->tx_una, frame->echo);
		delivered++;
	}
	return delivered;
}

static unsigned selective_read(
	struct transport *transport, struct peer *peer, const struct frame *frame)
{
	struct flight *flight = peer->flight;
	uint64_t line[BITMAP_WORDS];
	unsigned delivered = 0;
	unsigned i;

	for (i = 0; i < BITMAP_WORDS; i++)
		line[i] = frame->sack[i];
	while ((i = bitmap_lowest(line)) != FRAME_WINDOW) {
		uint32_t psn = frame->ack + 1 + i;

		bitmap_clear(line, i);
		if (bitmap_test(flight->sacked, psn))
			continue;
		slot_deliver(transport, peer, psn, frame->echo);
		bitmap_set(flight->sacked, psn);
		flight->sacked_count++;
		delivered++;
	}
	return delivered;
}

/* Has the peer everything from psn `from` to psn `to`? */
static bool psns_arrived(const struct peer *peer, uint32_t from, uint32_t to)
{
	if (serial_before(from, peer->tx_una))
		from = peer->tx_una;
	for (; !serial_before(to, from); from++)
		if (!bitmap_test(peer->flight->sacked, from))
			return false;
	return true;
}

static void message_complete(
	struct transport *transport, struct peer *peer, struct message *message)
{
	peer->queued--;
	lease_done(transport, message, TRANSPORT_OK);
}

/* Messages beyond a gap, all of whose frames have arrived. What the peer sends in answer to such a message must not
 * overtake this word of it; so it is not enough to wait until the gap is closed. */
static void complete_beyond(struct transport *transport, struct peer *peer)
{
	struct messages all = peer->unacked;
	struct message *message = all.head;

	/* Upcalls may queue messages, but not into unacked. */
	peer->unacked.head = NULL;
	while (message != NULL) {
		struct message *next = message->next;

		if (serial_before(message->last_psn, peer->flight->highest) &&
			psns_arrived(peer, message->first_psn, message->last_psn))
			message_complete(transport, peer, message);
		else
			messages_append(&peer->unacked, message);
		message = next;
	}
}

void acknowledgement_complete(struct transport *transport, struct peer *peer)
{
	while (peer->unacked.head != NULL &&
		serial_before(peer->unacked.head->last_psn, peer->tx_una))
		message_complete(transport, peer, messages_take(&peer->unacked));
	if (peer->unacked.head != NULL && peer->flight != NULL && peer->flight->sacked_count > 0)
		complete_beyond(transport, peer);
}

/* The round trip of the peer's newest timestamp, with all the time that it spent in hosts: what a timeout must allow for.
 * 0 if it cannot be told. */
static uint32_t acknowledgement_rtt(const struct transport *transport, const struct frame *frame)
{
	uint32_t rtt = (uint32_t)transport->now - frame->echo;

	return rtt >= RTT_SANE ? 0 : RTE_MAX(rtt, 1u);
}

/* The time that it spent in the network, at least 1: what says how full it is. The time that the hosts say is theirs may be
 * more than there was, because they do not know exactly when a frame came. */
static uint32_t acknowledgement_delay(
	const struct transport *transport, const struct frame *frame, uint32_t rtt)
{
	uint64_t hosts = frame->delay + (transport->now - transport->arrival);

	return hosts < rtt ? rtt - (uint32_t)hosts : 1;
}

/* The answer to a question is the first measure of the path, and the best: nothing of this process is on it yet. One that took
 * long tells of a link or a process that was coming to life meanwhile: taken for the path's, that time would make the first
 * loss cost many such times. */
void acknowledgement_told(struct transport *transport, struct peer *peer, const struct frame *frame)
{
	uint32_t rtt = acknowledgement_rtt(transport, frame);

	if (peer->rtt == 0 && rtt != 0 && rtt <= ANSWER_SANE)
		congestion_rtt(transport, peer, rtt, acknowledgement_delay(transport, frame, rtt));
}

static void acknowledgement_progress(struct transport *transport, struct peer *peer,
	const struct frame *frame, unsigned delivered)
{
	uint32_t rtt = acknowledgement_rtt(transport, frame);
	uint32_t delay = 0;

	peer->progress = transport->now;
	peer->backoff = 0;
	peer->flags &= (uint16_t) ~(TX_FIRST | TX_PROBED);
	peer->flight->timeout_from = transport->now;
	peer->flight->excused = false;
	if (transport->lending.peer == peer)
		lease_prove(transport, peer);
	if (rtt != 0) {
		delay = acknowledgement_delay(transport, frame, rtt);
		congestion_rtt(transport, peer, rtt, delay);
	}
	congestion_delivered(transport, peer, delivered, delay, frame->flags & FRAME_CE);
}

void acknowledgement_read(struct transport *transport, struct peer *peer, const struct frame *frame)
{
	unsigned delivered = 0;

	if (!acknowledgement_applies(peer, frame))
		return;
	peer->credit = (uint16_t)RTE_MAX(RTE_MIN(frame->credit, CREDIT_MAX), 1u);
	if (peer->flight != NULL) {
		delivered = cumulative_read(transport, peer, frame);
		if (frame->flags & FRAME_SACK)
			delivered += selective_read(transport, peer, frame);
	}
	if (delivered > 0) {
		acknowledgement_progress(transport, peer, frame, delivered);
		if (peer->flight->rack_sent != 0 && peer->tx_una != peer->tx_next)
			recovery_detect(transport, peer);
		if (peer->tx_una == peer->tx_next)
			flight_end(transport, peer);
	}
	if (sender_has_work(peer))
		sender_ready(transport, peer);
	if (delivered > 0)
		acknowledgement_complete(transport, peer);
}
