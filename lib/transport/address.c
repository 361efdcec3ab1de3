/* SPDX-License-Identifier: BSD-3-Clause */
/* address.c - where a process lives, and which life of it: asked, and believed only when it
 * answers. Owned by one poll core.
 *
 * A frame that names another life or comes from another address may be forged, or late. It makes
 * the peer be asked, no more: the peer's life goes on until an answer names another. A question has
 * a number that nobody can guess, and goes first to where the peer was, so that nobody else learns
 * that number; when nobody answers there, everybody is asked, and whoever answers is believed.
 *
 * I1. A peer with ADDRESS_KNOWN has an address, an incarnation, and a psn that streams to it begin
 *     with. One whose incarnation is not 0 has an address.
 * I2. A question makes no state where it arrives.
 * I3. With udp a peer's address is the MAC address of the next hop: its own when it is on this
 *     link, else the gateway's.
 * I4. An answer names a life that there was after the question with its number was first asked.
 *     Each time that a peer is asked anew, the number is another. So a life that is over is never
 *     believed in after its successor.
 * I5. A message waits for an answer for the peer timeout. Where it is known that no process has the
 *     name (address_absent()), a life that was known is over, and messages to it have failed when
 *     one question has brought nothing. A process that was never heard of may be about to start:
 *     it has start_timeout, if there is one. A process that has said BYE has as long, on every
 *     port; but while BYE_LIFE is not over, messages that begin fail after BYE_WAIT, in which its
 *     successor may answer. A host's switch (posternd) knows most of the host's processes, not
 *     all, so its word counts only after DENIED_LIFE of silence.
 * I6. A process that a question for another one comes to alone says that the other one is not
 *     there. Against a hint (hints.h) that counts at once: everybody is asked. Otherwise it is a
 *     switch's word (I5).
 */
#include <transport/address.h>

#include <string.h>

#include <rte_mbuf.h>

#include <base/random.h>
#include <transport/neighbour.h>
#include <transport/outbox.h>
#include <transport/ready.h>
#include <transport/recovery.h>
#include <transport/silence.h>

#define ASK_FIRST_WAIT (1 * MILLISECOND)
#define ASK_LAST_WAIT  (500 * MILLISECOND)
/* questions that go only to where the peer was, and with udp do not question the way to the
 * node */
#define ASKS_TRUSTED 3
/* The same where a hint says that the process is. A host that thousands begin to talk to at once
 * loses questions, and all of them asking everybody would be worse. Where the hint is wrong,
 * whoever is there says so (I6). */
#define ASKS_TOLD      8
#define ASKS_CHALLENGE 6 /* questions when nothing waits for the answer */
/* of silence, after which the word of another that the process is not there counts, */
#define DENIED_LIFE SECOND
#define DENIED_WAIT (100 * MILLISECOND) /* and in which the process may still answer */
/* after a BYE: the process is certainly not there, unless it is there again */
#define BYE_LIFE SECOND
#define BYE_WAIT (100 * MILLISECOND)
/* least time from the answer to a challenge to the next one */
#define CHALLENGE_SPACING (1 * MILLISECOND)
/* what an answer counts for: itself, and what it costs to read the question */
#define TELL_BYTES     128
#define HINT_BYTES     128                 /* the same of a question that a frame causes at once */
#define CLAIMS         3                   /* questions for the own process */
#define CLAIM_WAIT     (100 * MILLISECOND) /* after the first; four times as long after the next */
#define DUPLICATE_WAIT (60 * SECOND)       /* until the user is told again */
#define ASK_SPACING                                                                                \
	(4 * MICROSECOND) /* between first questions: the answer may be heard meanwhile */

enum { NUMBER_QUESTION, NUMBER_FIRST }; /* FIRST: in bits above, its generation */

static uint64_t process_number(
	const struct transport *transport, struct process process, uint32_t which, uint64_t kind)
{
	return secret_number(
		&transport->options.secret, (uint64_t)process.nid << 32 | process.pid, which, kind);
}

static uint64_t question_number(const struct transport *transport, const struct peer *peer)
{
	return process_number(transport, peer->process, peer->question, NUMBER_QUESTION);
}

uint32_t address_first_of(const struct transport *transport, struct process process,
	uint32_t incarnation, uint32_t generation)
{
	const uint64_t *key = transport->options.secret.key;

	if ((key[0] | key[1]) == 0)
		return transport->options.first_psn + generation;
	return (uint32_t)process_number(
		transport, process, incarnation, NUMBER_FIRST | (uint64_t)generation << 1);
}

bool address_generation(const struct transport *transport, const struct peer *peer,
	const struct frame_header *frame, uint32_t *generation)
{
	const struct process from = {frame->source_nid, frame->source_pid};
	const uint32_t newest = transport->generation;
	const bool known = peer && peer->incoming != INCOMING_NONE;
	const uint32_t others[] = {newest, newest - 1, known ? peer->generation : newest};

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		*generation = others[i];
		if (frame->first ==
			address_first_of(transport, from, frame->source_incarnation, others[i]))
			return !peer || (int32_t)(others[i] - peer->generation) >= 0;
	}
	return false;
}

/* --- asking */

static void question_send(struct transport *transport, const struct peer *peer, const uint8_t *to)
{
	uint64_t number = question_number(transport, peer);
	struct frame frame = {
		.type = FRAME_ASK,
		.destination_nid = peer->process.nid,
		.destination_pid = peer->process.pid,
		.psn = (uint32_t)number,
		.ack = (uint32_t)(number >> 32),
	};

	if (peer->outgoing == OUTGOING_FIRST) {
		frame.flags = FRAME_FIRST;
		frame.first = peer->first;
	}
	outbox_send(transport, &frame, NULL, to);
	COUNT(transport, asks_sent);
	if (to == broadcast)
		COUNT(transport, asks_broadcast);
}

/* A process that is not known is asked first where a frame, or a hint, said that it is:
 * peer->address is a hint then, and zeros without one. */
static bool address_hinted(const struct peer *peer)
{
	static const uint8_t none[FRAME_ADDRESS_BYTES];

	return peer->incarnation == 0 && memcmp(peer->address, none, sizeof(none)) != 0;
}

/* How many questions go to peer->address before everybody is asked. What a frame said has no more
 * than a known address has: anybody can send a frame. */
static unsigned questions_trusted(const struct transport *transport, const struct peer *peer)
{
	const uint8_t *said;

	if (peer->address_state == ADDRESS_KNOWN)
		return ASKS_TRUSTED;
	if (!address_hinted(peer))
		return 1;
	said = hints_find(&transport->hints, peer->process);
	return said && memcmp(said, peer->address, FRAME_ADDRESS_BYTES) == 0 ? ASKS_TOLD
									     : ASKS_TRUSTED;
}

/* Where the next question goes: on Ethernet to the known address or to the hint, then to everybody.
 * What is known of a life that is over gets one try. With udp the node is known, and asked by the
 * hint, or as soon as there is a way to it. NULL: there is none yet. */
static const uint8_t *question_way(struct transport *transport, const struct peer *peer)
{
	uint32_t hop = encapsulation_hop(&transport->encapsulation, peer->process.nid);
	bool hinted = address_hinted(peer);
	unsigned tries = questions_trusted(transport, peer);
	const uint8_t *to;

	if (!transport->neighbours)
		return (peer->incarnation != 0 || hinted) && peer->asks <= tries ? peer->address
										 : broadcast;
	to = neighbour_find(transport, hop);
	if (!to && hinted && peer->asks <= tries)
		return peer->address;
	/* A node that does not answer, or not any more: the way to it may have changed. */
	if (!to || peer->asks > ASKS_TRUSTED)
		neighbour_ask(transport, hop, peer->process);
	return !to && peer->address_state == ADDRESS_KNOWN ? peer->address : to;
}

static void address_question(struct transport *transport, struct peer *peer)
{
	uint64_t wait = ASK_LAST_WAIT;
	const uint8_t *to;

	if (peer->asks < 9)
		wait = ASK_FIRST_WAIT << peer->asks;
	/* Many processes that start at once must not go on asking at once. */
	wait += random_next(&transport->random) % (wait / 4);
	if (peer->asks < UINT8_MAX)
		peer->asks++;
	peer->ask_due = transport->now + wait;
	to = question_way(transport, peer);
	/* A host refuses few frames a second, and its refusal counts only if it is of this address.
	 */
	if (to == broadcast && transport->port->addressed && peer->flight)
		question_send(transport, peer, peer->address);
	if (to)
		question_send(transport, peer, to);
}

static void question_begin(struct transport *transport, struct peer *peer)
{
	peer->asking = true;
	peer->asks = 0;
	peer->denied = false;
	peer->question = ++transport->questions;
	if (peer->address_state != ADDRESS_KNOWN)
		peer->progress = transport->now;
}

/* A challenge may be out already, and messages wait for its answer from now on. They have
 * the whole peer timeout. */
void address_lose(struct transport *transport, struct peer *peer)
{
	address_turn(peer, ADDRESS_UNKNOWN);
	peer->progress = transport->now;
}

void address_ask(struct transport *transport, struct peer *peer)
{
	if (peer->asking)
		return;
	question_begin(transport, peer);
	if (transport->now < transport->ask_next) {
		peer->ask_due = transport->ask_next;
		transport->ask_next += ASK_SPACING;
	} else {
		transport->ask_next = transport->now + ASK_SPACING;
		address_question(transport, peer);
	}
	peer_wake(transport, peer, peer->ask_due);
}

void address_ask_anew(struct transport *transport, struct peer *peer)
{
	if (peer->asking && !peer->self)
		question_begin(transport, peer);
}

/* A process whose life is not known yet has been heard from: it is there now, and need not be
 * looked for everywhere. */
static void address_hint(struct transport *transport, struct peer *peer, const uint8_t *from)
{
	/* The answer to the first question may be on its way. */
	if (!peer->asking || peer->asks == 1 || !from)
		return;
	if (peer->asks == 0) {
		peer->asks = 1;
		peer->ask_due = transport->now + ASK_FIRST_WAIT;
	} else if (!answer_spend(transport, &transport->hints_paid, HINT_BYTES)) {
		return; /* the next repetition asks */
	}
	memcpy(peer->address, from, FRAME_ADDRESS_BYTES);
	question_send(transport, peer, from);
}

void address_look_up(const struct transport *transport, struct peer *peer)
{
	const uint8_t *said = hints_find(&transport->hints, peer->process);

	if (said)
		memcpy(peer->address, said, FRAME_ADDRESS_BYTES);
}

/* With udp only hosts on this link are reached by the address of their port (I3). */
void transport_hint(struct transport *transport, struct process process, const uint8_t *address)
{
	struct peer *peer = peer_table_find(&transport->peers, process);

	owner_check(&transport->owner);
	if (process_same(process, transport->options.self) ||
		(transport->neighbours &&
			!encapsulation_on_link(&transport->encapsulation, process.nid)))
		return;
	hints_put(&transport->hints, process, address);
	if (peer && peer->incarnation == 0 && !address_hinted(peer))
		address_look_up(transport, peer);
}

void address_challenge(struct transport *transport, struct peer *peer, const uint8_t *from)
{
	if (peer->self)
		return;
	if (peer->incarnation == 0) {
		address_hint(transport, peer, from);
		return;
	}
	if (!peer->asking) {
		COUNT(transport, challenges_sent);
		question_begin(transport, peer);
		if (transport->now >= peer->ask_due)
			address_question(transport, peer);
	} else if (peer->asks > ASKS_TRUSTED) {
		/* The peer may be there again. */
		peer->ask_due = RTE_MIN(peer->ask_due, transport->now + CHALLENGE_SPACING);
	}
	peer_wake(transport, peer, peer->ask_due);
}

void address_challenge_still(struct transport *transport, struct peer *peer)
{
	if (peer->self || peer->asking)
		return;
	question_begin(transport, peer);
	peer->asks = ASKS_CHALLENGE - 1;
	address_question(transport, peer);
	peer_wake(transport, peer, peer->ask_due);
}

/* Is there another of this name? */
static void claim_send(struct transport *transport, struct peer *self)
{
	struct frame frame = {
		.type = FRAME_ASK,
		.destination_nid = self->process.nid,
		.destination_pid = self->process.pid,
	};

	if (transport->neighbours) {
		neighbour_probe(transport);
	} else {
		outbox_send(transport, &frame, NULL, broadcast);
		COUNT(transport, asks_sent);
	}
	self->ask_due = transport->now + (CLAIM_WAIT << 2 * (CLAIMS - transport->claims_left));
	if (--transport->claims_left == 0)
		self->asking = false;
}

void transport_claim(struct transport *transport)
{
	struct peer *self = transport->self;

	owner_check(&transport->owner);
	transport_stir(transport);
	transport->claims_left = CLAIMS;
	self->asking = true;
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
	return peer->asking ? peer->ask_due : UINT64_MAX;
}

/* Does something wait for the answer? */
static bool address_wanted(const struct transport *transport, const struct peer *peer)
{
	return peer->address_state != ADDRESS_KNOWN &&
	       (peer->queued != 0 || !list_empty(&transport->echoes.pings));
}

bool address_absent(const struct transport *transport, const struct peer *peer)
{
	return !peer->self && port_absent(transport->port, peer->process.nid, peer->process.pid);
}

enum transport_fail address_failure(const struct transport *transport, const struct peer *peer)
{
	return peer->address_state == ADDRESS_ENDED || peer->denied ||
			       address_absent(transport, peer)
		       ? TRANSPORT_ABSENT
		       : TRANSPORT_UNREACHABLE;
}

/* Did the messages that wait begin soon after a BYE? Those that waited before it are for the life
 * that answers first. */
static bool bye_is_fresh(const struct peer *peer)
{
	return peer->address_state == ADDRESS_ENDED && peer->progress - peer->heard < BYE_LIFE;
}

/* I5. Until when messages wait for an answer. */
static uint64_t answer_end(const struct transport *transport, const struct peer *peer)
{
	const uint64_t end = silence_end(transport, peer->progress);
	const uint64_t start = transport->options.start_timeout;
	const uint64_t soon = start != 0 ? RTE_MIN(end, peer->progress + start) : end;
	const bool known = peer->incarnation != 0;

	if (peer->denied)
		return transport->now;
	if (peer->asks != 0 && (known || start != 0) && address_absent(transport, peer))
		return known ? transport->now : soon;
	if (bye_is_fresh(peer))
		return peer->progress + BYE_WAIT;
	return peer->address_state == ADDRESS_ENDED ? soon : end;
}

bool address_run(struct transport *transport, struct peer *peer)
{
	if (transport->now < peer->ask_due)
		return true;
	if (peer->self) {
		claim_send(transport, peer);
		return true;
	}
	if (address_wanted(transport, peer) ? transport->now < answer_end(transport, peer)
					    : peer->asks < ASKS_CHALLENGE) {
		address_question(transport, peer);
		return true;
	}
	peer->asking = false;
	return !address_wanted(transport, peer);
}

/* --- answering, and answers */

void address_asked(
	struct transport *transport, const struct frame_header *frame, const uint8_t *from)
{
	struct process asker = {frame->source_nid, frame->source_pid};
	const struct peer *peer = peer_table_find(&transport->peers, asker);
	uint32_t generation;
	struct frame answer = {
		.type = FRAME_TELL,
		.destination_nid = frame->source_nid,
		.destination_pid = frame->source_pid,
		.destination_incarnation = frame->source_incarnation,
		.psn = frame->psn,
		.ack = frame->ack,
		.echo = frame->timestamp,
	};

	if (peer && peer->incarnation != frame->source_incarnation)
		peer = NULL;
	generation_turn(transport, transport->spans.psn_life);
	if (!(frame->flags & FRAME_FIRST) ||
		!address_generation(transport, peer, frame, &generation))
		generation = transport->generation;
	answer.stream = (uint16_t)generation;
	answer.first = address_first_of(transport, asker, frame->source_incarnation, generation);
	COUNT(transport, asks_received);
	if (answer_spend(transport, &transport->tells_paid, TELL_BYTES))
		outbox_send(transport, &answer, NULL, from);
	else
		COUNT(transport, dropped_ask);
}

void address_asked_for_another(
	struct transport *transport, const struct frame_header *frame, const uint8_t *from)
{
	struct rte_mbuf *mbuf;
	struct frame answer = {
		.type = FRAME_BYE,
		.length = FRAME_HEADER_BYTES,
		.destination_nid = frame->source_nid,
		.destination_pid = frame->source_pid,
		.destination_incarnation = frame->source_incarnation,
		.psn = frame->psn,
		.ack = frame->ack,
	};

	if (!answer_spend(transport, &transport->tells_paid, TELL_BYTES))
		return;
	mbuf = outbox_begin(transport, NULL);
	if (!mbuf)
		return;
	sender_sign(transport, &answer);
	answer.source_nid = frame->destination_nid;
	answer.source_pid = frame->destination_pid;
	answer.source_incarnation = frame->source_incarnation;
	frame_encode(&answer, outbox_header(mbuf));
	outbox_put(transport, mbuf, &answer, from);
	COUNT(transport, denials_sent);
}

bool address_asks(const struct transport *transport, const struct peer *peer,
	const struct frame_header *frame)
{
	uint64_t number = (uint64_t)frame->ack << 32 | frame->psn;

	return peer->asking && !peer->self && number == question_number(transport, peer);
}

void address_denied(struct transport *transport, struct peer *peer)
{
	const uint64_t silence = transport->now - peer->progress;
	const uint64_t start = transport->options.start_timeout;

	if (questions_trusted(transport, peer) == ASKS_TOLD) {
		memset(peer->address, 0, FRAME_ADDRESS_BYTES);
		peer->ask_due = transport->now;
		peer_wake(transport, peer, peer->ask_due);
		return;
	}
	if (silence < DENIED_LIFE)
		return;
	if (peer->flight) {
		recovery_refused(transport, peer);
	} else if (peer->incarnation != 0 || (start != 0 && silence >= start)) {
		peer->denied = true;
		peer->ask_due = RTE_MIN(peer->ask_due, transport->now + DENIED_WAIT);
		peer_wake(transport, peer, peer->ask_due);
	}
}

bool address_answered(
	struct transport *transport, struct peer *peer, const struct frame_header *frame)
{
	if (!address_asks(transport, peer, frame))
		return false;
	peer->asking = false;
	peer->ask_due = transport->now;
	if (peer->address_state == ADDRESS_KNOWN)
		peer->ask_due += CHALLENGE_SPACING;
	return true;
}

void address_learn(struct transport *transport, struct peer *peer, const uint8_t *from)
{
	/* The router that it came by may not be the one to answer by. */
	if (!encapsulation_on_link(&transport->encapsulation, peer->process.nid))
		from = neighbour_confirm(
			transport, transport->options.encapsulation.gateway, from, peer->process);
	memcpy(peer->address, from, FRAME_ADDRESS_BYTES);
}

void address_psn(const struct transport *transport, struct peer *peer, uint32_t first)
{
	peer->told = (uint16_t)(transport->now >> PSN_TICK_SHIFT);
	peer->stale = false;
	if (peer->first == first)
		return;
	peer->first = first;
	peer->taken = false;
	peer->tx_base = peer->tx_stream;
}

void address_complete(struct transport *transport, struct peer *peer)
{
	address_turn(peer, ADDRESS_KNOWN);
	peer->asking = false;
	if (sender_has_work(peer))
		sender_ready(transport, peer);
}

void address_hop(struct transport *transport, struct process process, const uint8_t *hop)
{
	struct peer *peer = peer_table_find(&transport->peers, process);

	if (!peer)
		return;
	if (peer->address_state == ADDRESS_KNOWN)
		memcpy(peer->address, hop, FRAME_ADDRESS_BYTES);
	else if (peer->asking)
		address_question(transport, peer);
}
