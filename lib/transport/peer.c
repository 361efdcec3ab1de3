/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.c - peers: their index, their timer, their end. Owned by one poll core.
 *
 * I5. A cell of the index holds the peer whose hash led to it or to a cell before it without a free
 *     one between: so a search ends at the first free cell. Removal moves later cells back.
 * I6. A peer's timer is always set; what it finds when it runs may be nothing.
 */
#include <transport/peer.h>

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include <base/log.h>
#include <transport/state.h>

#define CELLS_FIRST 256u

/* --- the index */

static uint32_t peer_hash(const struct peer_table *table, struct process process)
{
	uint64_t key = (uint64_t)process.nid << 32 | process.pid;

	key ^= table->seed;
	key *= UINT64_C(0x9e3779b97f4a7c15);
	key ^= key >> 32;
	key *= UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(key >> 32);
}

bool peer_table_init(struct peer_table *table, uint32_t max, uint32_t seed)
{
	table->cells = calloc(CELLS_FIRST, sizeof(table->cells[0]));
	table->last = NULL;
	table->mask = CELLS_FIRST - 1;
	table->count = 0;
	table->max = max;
	table->seed = seed;
	return table->cells != NULL;
}

void peer_table_free(struct peer_table *table)
{
	free(table->cells);
	table->cells = NULL;
}

struct peer *peer_table_search(const struct peer_table *table, struct process process)
{
	uint32_t hash = peer_hash(table, process);
	uint32_t i;

	for (i = hash & table->mask; table->cells[i].peer != NULL; i = (i + 1) & table->mask) {
		struct peer *peer = table->cells[i].peer;

		if (table->cells[i].hash == hash && process_same(peer->process, process))
			return peer;
	}
	return NULL;
}

static void table_insert(struct peer_cell *cells, uint32_t mask, struct peer *peer)
{
	uint32_t i = peer->hash & mask;

	while (cells[i].peer != NULL)
		i = (i + 1) & mask;
	cells[i].peer = peer;
	cells[i].hash = peer->hash;
}

/* Keeps at least half of the cells free. */
static bool table_grow(struct peer_table *table)
{
	uint32_t mask = table->mask * 2 + 1;
	struct peer_cell *cells;
	uint32_t i;

	if (table->count < (table->mask + 1) / 2)
		return true;
	cells = calloc((size_t)mask + 1, sizeof(cells[0]));
	if (cells == NULL)
		return false;
	for (i = 0; i <= table->mask; i++)
		if (table->cells[i].peer != NULL)
			table_insert(cells, mask, table->cells[i].peer);
	free(table->cells);
	table->cells = cells;
	table->mask = mask;
	return true;
}

static void table_remove(struct peer_table *table, const struct peer *peer)
{
	struct peer_cell *cells = table->cells;
	uint32_t mask = table->mask;
	uint32_t hole = peer->hash & mask;
	uint32_t i;

	while (cells[hole].peer != peer)
		hole = (hole + 1) & mask;
	for (i = (hole + 1) & mask; cells[i].peer != NULL; i = (i + 1) & mask) {
		/* It may move to the hole if its own place is not between the hole and it. */
		if (((i - cells[i].hash) & mask) >= ((i - hole) & mask)) {
			cells[hole] = cells[i];
			hole = i;
		}
	}
	cells[hole].peer = NULL;
	table->count--;
	if (table->last == peer)
		table->last = NULL;
}

/* --- life */

static void peer_init(struct transport *transport, struct peer *peer, struct process process)
{
	memset(peer, 0, sizeof(*peer));
	peer->process = process;
	peer->hash = peer_hash(&transport->peers, process);
	peer->ack_list = ACK_NONE;
	peer->tx_stream = transport->stream++;
	peer->credit = CREDIT_INITIAL;
	peer->reorder_factor = 1;
	peer->heard = transport->now;
	peer->sent = transport->now;
	peer->epoch = transport->epoch - 1;
	congestion_reset(peer);
}

struct peer *peer_get(struct transport *transport, struct process process, bool inbound)
{
	struct peer_table *table = &transport->peers;
	struct peer *peer = peer_table_find(table, process);

	if (peer != NULL) {
		table->last = peer;
		return peer;
	}
	if (table->count >= (inbound ? table->max - table->max / 4 : table->max) ||
		!table_grow(table))
		return NULL;
	peer = pool_take(&transport->peer_pool);
	if (peer == NULL)
		return NULL;
	peer_init(transport, peer, process);
	table_insert(table->cells, table->mask, peer);
	table->count++;
	peer_wake(transport, peer, transport->now + PEER_MEMORY);
	COUNT(transport, peers_made);
	log_debug(LOG_TRANSPORT, "%s: met %u:%u, who %s", transport->port->name, process.nid,
		process.pid, inbound ? "sent a frame" : "is sent a message");
	return peer;
}

static bool peer_idle(const struct peer *peer)
{
	return peer->flight == NULL && peer->queued == 0 && peer->assemblies == NULL &&
	       peer->reorder == NULL && peer->stop_count == 0 && peer->ack_list == ACK_NONE &&
	       !(peer->flags & (PEER_ASKING | PEER_SELF)) && !link_listed(&peer->ready_link);
}

static void peer_forget(struct transport *transport, struct peer *peer)
{
	wheel_stop(&transport->wheel, &peer->timer);
	table_remove(&transport->peers, peer);
	pool_give(&transport->peer_pool, peer);
	COUNT(transport, peers_forgotten);
}

/* --- timer */

void peer_wake(struct transport *transport, struct peer *peer, uint64_t at)
{
	if (!timer_set(&peer->timer) || wheel_tick(at) < peer->timer.tick)
		wheel_set(&transport->wheel, &peer->timer, at);
}

/* When its silence makes a message that it has begun a failure. */
static uint64_t inbound_due(const struct transport *transport, const struct peer *peer)
{
	if (peer->assemblies == NULL && peer->reorder == NULL)
		return UINT64_MAX;
	return peer->heard + transport->options.peer_timeout;
}

/* When a window below one frame lets the next one go. */
static uint64_t pace_due(const struct peer *peer)
{
	if (link_listed(&peer->ready_link) || !(peer->flags & PEER_KNOWN) ||
		!sender_has_work(peer) || peer_pipe(peer) != 0)
		return UINT64_MAX;
	return peer->pace_due;
}

static uint64_t forget_due(const struct transport *transport, const struct peer *peer)
{
	uint64_t due = RTE_MAX(peer->heard, peer->sent) + PEER_MEMORY;

	return due > transport->now ? due : transport->now + PEER_MEMORY;
}

void peer_run(struct transport *transport, struct peer *peer)
{
	uint64_t due;

	if (peer->flags & PEER_ASKING)
		address_run(transport, peer);
	recovery_run(transport, peer);
	if (transport->now >= inbound_due(transport, peer)) {
		COUNT(transport, peers_dead);
		log_debug(LOG_TRANSPORT, "%s: %u:%u has been silent for too long",
			transport->port->name, peer->process.nid, peer->process.pid);
		receiver_close(transport, peer, RX_CLOSED, TRANSPORT_DEAD);
	}
	if (transport->now >= pace_due(peer))
		sender_ready(transport, peer);
	if (peer_idle(peer) && transport->now - RTE_MAX(peer->heard, peer->sent) >= PEER_MEMORY) {
		peer_forget(transport, peer);
		return;
	}
	due = RTE_MIN(address_due(peer), recovery_due(peer));
	due = RTE_MIN(due, inbound_due(transport, peer));
	due = RTE_MIN(due, pace_due(peer));
	due = RTE_MIN(due, forget_due(transport, peer));
	peer_wake(transport, peer, due);
}

/* --- end */

static void messages_fail(
	struct transport *transport, struct message *message, enum transport_fail why)
{
	while (message != NULL) {
		struct message *next = message->next;

		message_done(transport, message, why);
		message = next;
	}
}

/* Drops what is in flight. */
static void flight_drop(struct transport *transport, struct peer *peer)
{
	uint32_t psn;

	peer->flags &= (uint16_t) ~(TX_OPEN | TX_FIRST | TX_PROBED | TX_STALLED);
	peer->gathered = 0;
	if (peer->flight == NULL)
		return;
	for (psn = peer->tx_una; psn != peer->tx_next; psn++) {
		if (bitmap_test(peer->flight->sacked, psn))
			continue;
		lease_doubt(transport, peer, psn);
		flight_forget(transport, peer, psn);
	}
	peer->tx_una = peer->tx_next;
	peer->backoff = 0;
	peer->refused = false;
	flight_end(transport, peer);
}

static uint32_t messages_count(const struct message *message)
{
	uint32_t count = 0;

	for (; message != NULL; message = message->next)
		count++;
	return count;
}

void peer_fail_begun(struct transport *transport, struct peer *peer, enum transport_fail why)
{
	struct message *unacked = peer->unacked.head;
	struct message *open = peer->open.head;

	flight_drop(transport, peer);
	peer->unacked.head = NULL;
	peer->open.head = NULL;
	peer->open_count = 0;
	peer->queued -= messages_count(unacked) + messages_count(open);
	messages_fail(transport, unacked, why);
	messages_fail(transport, open, why);
}

/* In the order of their numbers. Most come in that order already. */
static void messages_insert(struct messages *messages, struct message *message)
{
	struct message *before = messages->head;

	if (before == NULL || serial_before(messages->tail->number, message->number)) {
		messages_append(messages, message);
		return;
	}
	if (serial_before(message->number, before->number)) {
		message->next = before;
		messages->head = message;
		return;
	}
	while (serial_before(before->next->number, message->number))
		before = before->next;
	message->next = before->next;
	before->next = message;
}

/* Moves what lies wholly in flight from one of the peer's lists to `retracted`. */
static void messages_retract(
	const struct peer *peer, struct messages *messages, struct messages *retracted)
{
	struct message *message = messages->head;

	messages->head = NULL;
	while (message != NULL) {
		struct message *next = message->next;

		if (serial_before(message->first_psn, peer->tx_una)) {
			messages_append(messages, message);
		} else {
			message->framed = 0;
			messages_insert(retracted, message);
		}
		message = next;
	}
}

void peer_retract(struct transport *transport, struct peer *peer)
{
	struct messages retracted = {0};

	messages_retract(peer, &peer->unacked, &retracted);
	messages_retract(peer, &peer->open, &retracted);
	if (retracted.head != NULL) {
		retracted.tail->next = peer->waiting.head;
		if (peer->waiting.head == NULL)
			peer->waiting.tail = retracted.tail;
		peer->waiting.head = retracted.head;
	}
	peer->flags &= (uint16_t)~PEER_KNOWN;
	peer_fail_begun(transport, peer, TRANSPORT_RESTARTED);
}

void peer_fail(struct transport *transport, struct peer *peer, enum transport_fail why)
{
	struct message *waiting = peer->waiting.head;

	/* What an upcall sends meanwhile is a new try, which begins with asking. */
	peer->waiting.head = NULL;
	peer->queued -= messages_count(waiting);
	peer->stop_count = 0;
	if (!(peer->flags & PEER_SELF))
		peer->flags &= (uint16_t) ~(PEER_KNOWN | PEER_ASKING);
	sender_unready(transport, peer);
	peer_fail_begun(transport, peer, why);
	messages_fail(transport, waiting, why);
}

/* The life that was known is over. What waits while no life is known waits for whichever answers
 * first, and stays. */
static void peer_over(struct transport *transport, struct peer *peer)
{
	acknowledgement_forget(transport, peer);
	if (peer->flags & PEER_KNOWN)
		peer_fail(transport, peer, TRANSPORT_RESTARTED);
	receiver_close(transport, peer, 0, TRANSPORT_RESTARTED);
}

void peer_restarted(struct transport *transport, struct peer *peer, uint32_t incarnation)
{
	COUNT(transport, peers_restarted);
	log_debug(LOG_TRANSPORT, "%s: %u:%u has restarted as %u, was %u", transport->port->name,
		peer->process.nid, peer->process.pid, incarnation, peer->incarnation);
	peer->incarnation = incarnation;
	peer->told = false;
	peer->flags &= (uint16_t) ~(PEER_ENDED | RX_ECHO);
	peer->rtt = 0;
	peer->delay_period = 0;
	peer->credit = CREDIT_INITIAL;
	congestion_reset(peer);
	peer_over(transport, peer);
}

void peer_ended(struct transport *transport, struct peer *peer)
{
	log_debug(LOG_TRANSPORT, "%s: %u:%u has ended", transport->port->name, peer->process.nid,
		peer->process.pid);
	peer->flags |= PEER_ENDED;
	/* What it answered before is over, too. */
	peer->question = ++transport->questions;
	peer_over(transport, peer);
}
