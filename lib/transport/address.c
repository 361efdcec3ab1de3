/* address.c - where a process lives: asked by broadcast, or with udp of its node; told by every valid
 * frame. Owned by one poll core.
 *
 * I1. A peer with PEER_KNOWN has an address and an incarnation, and no question out; but for this process itself.
 * I2. A question makes no state where it arrives; but who waits for the asker's own address has found it.
 * I3. With udp a peer's address is the MAC address of the next hop: its own when it is on this link, else the gateway's.
 */
#include <string.h>

#include <rte_mbuf.h>

#include <transport/state.h>

#define ASK_FIRST_WAIT (1 * MILLISECOND)
#define ASK_LAST_WAIT  (500 * MILLISECOND)
#define ASKS_TRUSTED   3 /* unanswered questions that cast no doubt on the way to the node */
#define CLAIMS         3 /* questions for the own process */
#define CLAIM_WAIT     (100 * MILLISECOND) /* after the first; four times as long after the next */
#define DUPLICATE_WAIT (60 * SECOND)       /* until the user is told again */
#define ASK_SPACING                                                                                \
	(4 * MICROSECOND) /* between first questions: the answer may be heard meanwhile */

static const uint8_t broadcast[FRAME_ADDRESS_BYTES] = {255, 255, 255, 255, 255, 255};

void address_send(struct transport *transport, struct frame *frame, const uint8_t *to)
{
	struct rte_mbuf *mbuf;

	if (!outbox_room(transport, NULL, 1))
		return;
	mbuf = outbox_alloc(transport, 1);
	if (mbuf == NULL)
		return;
	frame->length = FRAME_HEADER_BYTES;
	frame->source_nid = transport->options.self.nid;
	frame->source_pid = transport->options.self.pid;
	frame->source_incarnation = transport->options.incarnation;
	frame->timestamp = (uint32_t)transport->now;
	frame_encode(frame, outbox_header(mbuf));
	outbox_put(transport, mbuf, frame, to);
}

/* Everybody is asked on Ethernet. With udp the node is known, and asked as soon as there is a way to it. */
static void question_send(struct transport *transport, const struct peer *peer, struct frame *frame)
{
	uint32_t hop = encapsulation_hop(&transport->encapsulation, peer->process.nid);
	const uint8_t *to = broadcast;

	if (transport->neighbours != NULL) {
		to = neighbour_find(transport, hop);
		/* A node that does not answer, or not any more: the way to it may have changed. */
		if (to == NULL || (peer->flags & PEER_KNOWN) || peer->asks > ASKS_TRUSTED)
			neighbour_ask(transport, hop, peer->process);
		if (to == NULL)
			return;
	}
	address_send(transport, frame, to);
	COUNT(transport, asks_sent);
}

static void address_question(struct transport *transport, struct peer *peer)
{
	struct frame frame = {
		.type = FRAME_ASK,
		.destination_nid = peer->process.nid,
		.destination_pid = peer->process.pid,
	};
	uint64_t wait = ASK_LAST_WAIT;

	if (peer->asks < 9)
		wait = ASK_FIRST_WAIT << peer->asks;
	/* Many processes that start at once must not go on asking at once. */
	wait += random_next(transport) % (wait / 4);
	if (peer->asks < UINT8_MAX)
		peer->asks++;
	peer->ask_due = transport->now + wait;
	question_send(transport, peer, &frame);
}

void address_ask(struct transport *transport, struct peer *peer)
{
	if (peer->flags & PEER_ASKING)
		return;
	peer->flags |= PEER_ASKING;
	peer->asks = 0;
	peer->progress = transport->now;
	if (transport->now < transport->ask_next) {
		peer->ask_due = transport->ask_next;
		transport->ask_next += ASK_SPACING;
	} else {
		transport->ask_next = transport->now + ASK_SPACING;
		address_question(transport, peer);
	}
	peer_wake(transport, peer, peer->ask_due);
}

/* Is there another of this name? I1 does not hold for the own process: it is known and asked for. */
static void claim_send(struct transport *transport, struct peer *self)
{
	struct frame frame = {
		.type = FRAME_ASK,
		.destination_nid = self->process.nid,
		.destination_pid = self->process.pid,
	};

	if (transport->neighbours != NULL) {
		neighbour_probe(transport);
	} else {
		address_send(transport, &frame, broadcast);
		COUNT(transport, asks_sent);
	}
	self->ask_due = transport->now + (CLAIM_WAIT << 2 * (CLAIMS - transport->claims_left));
	if (--transport->claims_left == 0)
		self->flags &= (uint16_t)~PEER_ASKING;
}

void transport_claim(struct transport *transport)
{
	struct peer *self = transport->self;

	transport_stir(transport);
	transport->claims_left = CLAIMS;
	self->flags |= PEER_ASKING;
	self->ask_due = transport->now;
	peer_wake(transport, self, self->ask_due);
}

void address_duplicate(struct transport *transport, const uint8_t *from)
{
	COUNT(transport, duplicates_seen);
	if (transport->now < transport->duplicate_due)
		return;
	transport->duplicate_due = transport->now + DUPLICATE_WAIT;
	transport->upcalls.duplicate(transport->upcalls.context, from);
}

uint64_t address_due(const struct peer *peer)
{
	return (peer->flags & PEER_ASKING) ? peer->ask_due : UINT64_MAX;
}

void address_run(struct transport *transport, struct peer *peer)
{
	if (transport->now < peer->ask_due)
		return;
	if (peer->flags & PEER_SELF) {
		claim_send(transport, peer);
		return;
	}
	if (!(peer->flags & PEER_ASKING)) {
		address_question(transport, peer);
		return;
	}
	if (transport->now - peer->progress < transport->options.peer_timeout) {
		address_question(transport, peer);
		return;
	}
	peer->flags &= (uint16_t)~PEER_ASKING;
	peer_fail(transport, peer, TRANSPORT_UNREACHABLE);
}

void address_asked(struct transport *transport, const struct frame *frame, const uint8_t *from)
{
	struct frame answer = {
		.type = FRAME_TELL,
		.destination_nid = frame->source_nid,
		.destination_pid = frame->source_pid,
		.destination_incarnation = frame->source_incarnation,
		.echo = frame->timestamp,
	};

	COUNT(transport, asks_received);
	address_send(transport, &answer, from);
}

void address_learn(struct transport *transport, struct peer *peer, const uint8_t *from)
{
	/* The router that it came by may not be the one to answer by. */
	if (!encapsulation_on_link(&transport->encapsulation, peer->process.nid))
		from = neighbour_confirm(transport, transport->options.encapsulation.gateway, from,
			peer->process);
	memcpy(peer->address, from, FRAME_ADDRESS_BYTES);
	if (peer->flags & PEER_KNOWN)
		return;
	peer->flags |= PEER_KNOWN;
	peer->flags &= (uint16_t)~PEER_ASKING;
	peer->asks = 0;
	if (sender_has_work(peer))
		sender_ready(transport, peer);
}

void address_hop(struct transport *transport, struct process process, const uint8_t *hop)
{
	struct peer *peer = peer_table_find(&transport->peers, process);

	if (peer == NULL)
		return;
	if (peer->flags & PEER_KNOWN)
		memcpy(peer->address, hop, FRAME_ADDRESS_BYTES);
	else if (peer->flags & PEER_ASKING)
		address_question(transport, peer);
}
