/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.c - peers and their index. Owned by one poll core.
 *
 * I5. A cell of the index holds the peer whose hash led to it or to a cell before it without a free
 *     one between: so a search ends at the first free cell. Removal moves later cells back.
 */
#include <transport/peer.h>

#include <stdlib.h>
#include <string.h>

#include <base/log.h>
#include <transport/address.h>
#include <transport/congestion.h>
#include <transport/internal.h>

#define CELLS_FIRST 16u
/* How long one of the psns that are told lasts at least when the table is crowded: long enough to
 * be used, too short for the table to fill, since fewer processes are told. */
#define CROWDED_LIFE (20 * MILLISECOND)
#define EXPEND_LOOK  64u /* cells in which one peer to forget early is looked for */

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
	table->hand = 0;
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

	for (uint32_t i = hash & table->mask; table->cells[i].peer; i = (i + 1) & table->mask) {
		struct peer *peer = table->cells[i].peer;

		if (table->cells[i].hash == hash && process_same(peer->process, process))
			return peer;
	}
	return NULL;
}

static void table_insert(struct peer_cell *cells, uint32_t mask, struct peer *peer, uint32_t hash)
{
	uint32_t i = hash & mask;

	while (cells[i].peer)
		i = (i + 1) & mask;
	cells[i].peer = peer;
	cells[i].hash = hash;
}

/* Keeps at least half of the cells free. */
static bool table_grow(struct peer_table *table)
{
	uint32_t mask = table->mask * 2 + 1;
	struct peer_cell *cells;

	if (table->count < (table->mask + 1) / 2)
		return true;
	cells = calloc((size_t)mask + 1, sizeof(cells[0]));
	if (!cells)
		return false;
	for (uint32_t i = 0; i <= table->mask; i++)
		if (table->cells[i].peer)
			table_insert(cells, mask, table->cells[i].peer, table->cells[i].hash);
	free(table->cells);
	table->cells = cells;
	table->mask = mask;
	return true;
}

static void table_remove(struct peer_table *table, const struct peer *peer)
{
	struct peer_cell *cells = table->cells;
	uint32_t mask = table->mask;
	uint32_t hole = peer_hash(table, peer->process) & mask;

	while (cells[hole].peer != peer)
		hole = (hole + 1) & mask;
	for (uint32_t i = (hole + 1) & mask; cells[i].peer; i = (i + 1) & mask) {
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

/* --- peers that are forgotten early */

bool peer_idle(const struct peer *peer)
{
	return !peer->flight && peer->queued == 0 && !peer->assemblies && !peer->reorder &&
	       peer->stop_count == 0 && peer->ack_list == ACK_NONE && !peer->asking &&
	       !peer->self && !link_listed(&peer->ready_link);
}

void generation_turn(struct transport *transport, uint64_t life)
{
	if (transport->now - transport->generation_at < life)
		return;
	transport->generation++;
	transport->generation_at = transport->now;
}

bool peer_outlived(const struct transport *transport, const struct peer *peer)
{
	return (int32_t)(transport->generation - peer->generation) >= 2;
}

/* The number before that of the first stream to a peer that is made now. It counts the time, so
 * that a process that is forgotten and met again is sent a stream of another number (I6). */
static uint16_t stream_before(const struct transport *transport)
{
	return (uint16_t)(transport->stream + transport->now / STREAM_TICK);
}

/* Could a process that is forgotten now be sent a stream of the number of the last one while it
 * remembers that one? */
static bool stream_may_return(const struct transport *transport, const struct peer *peer)
{
	uint16_t ahead = (uint16_t)(peer->tx_stream - stream_before(transport) - 1);

	return peer->data_sent != 0 && ahead <= transport->spans.psn_known / STREAM_TICK;
}

static bool peer_expendable(const struct transport *transport, const struct peer *peer)
{
	return !peer->wanted && peer_outlived(transport, peer) && peer_idle(peer) &&
	       !stream_may_return(transport, peer);
}

/* Was it sent data of late? Then it is likely to be a client that goes on. */
static bool peer_answered(const struct transport *transport, const struct peer *peer)
{
	return peer->data_sent != 0 &&
	       transport->now - peer->data_sent <= transport->spans.stream_memory;
}

/* Is `peer` to be forgotten rather than `other`? */
static bool peer_expend_before(
	const struct transport *transport, const struct peer *peer, const struct peer *other)
{
	bool answered = peer_answered(transport, peer);

	if (answered != peer_answered(transport, other))
		return !answered;
	return peer->heard < other->heard;
}

/* The peer to forget: of the next cells the first that began no more than one message and was sent
 * no data, else one that was sent none, else any; of these the one that has been silent for
 * longest. NULL: none may be forgotten. */
static struct peer *peer_expend(struct transport *transport)
{
	struct peer_table *table = &transport->peers;
	struct peer *best = NULL;

	for (unsigned i = 0; i < EXPEND_LOOK; i++) {
		struct peer *peer = table->cells[table->hand++ & table->mask].peer;

		if (!peer || !peer_expendable(transport, peer))
			continue;
		if (peer->rx_message <= 1 && !peer_answered(transport, peer))
			return peer;
		if (!best || peer_expend_before(transport, peer, best))
			best = peer;
	}
	return best;
}

/* Is there room for a peer that a frame makes? Makes some. */
static bool stranger_room(struct transport *transport)
{
	struct peer_table *table = &transport->peers;
	uint32_t max = table->max - table->max / 4;
	struct peer *peer;

	if (table->count >= max / 2)
		generation_turn(transport, CROWDED_LIFE);
	if (table->count < max)
		return true;
	peer = peer_expend(transport);
	if (!peer)
		return false;
	peer_forget(transport, peer);
	return true;
}

/* --- life */

static void peer_init(struct transport *transport, struct peer *peer, struct process process)
{
	memset(peer, 0, sizeof(*peer));
	peer->process = process;
	peer->ack_list = ACK_NONE;
	peer->generation = transport->generation - 2; /* it has begun no stream */
	peer->tx_stream = stream_before(transport);
	peer->tx_base = peer->tx_stream;
	peer->credit = CREDIT_INITIAL;
	peer->heard = transport->now;
	peer->sent = transport->now;
	peer->epoch = transport->epoch - 1;
	congestion_reset(peer);
}

struct peer *peer_get(struct transport *transport, struct process process, bool inbound)
{
	struct peer_table *table = &transport->peers;
	struct peer *peer = peer_table_find(table, process);

	if (peer) {
		table->last = peer;
		return peer;
	}
	if ((inbound ? !stranger_room(transport) : table->count >= table->max) ||
		!table_grow(table))
		return NULL;
	peer = pool_take(&transport->peer_pool);
	if (!peer)
		return NULL;
	peer_init(transport, peer, process);
	peer->wanted = !inbound;
	address_look_up(transport, peer);
	table_insert(table->cells, table->mask, peer, peer_hash(table, process));
	table->count++;
	peer_wake(transport, peer, transport->now + transport->spans.peer_memory);
	COUNT(transport, peers_made);
	log_debug(LOG_TRANSPORT, "%s: met %u:%u, who %s", transport->port->name, process.nid,
		process.pid, inbound ? "sent a frame" : "is sent a message");
	return peer;
}

void peer_forget(struct transport *transport, struct peer *peer)
{
	wheel_stop(&peer->timer);
	table_remove(&transport->peers, peer);
	transport->marks -= peer->marked;
	pool_give(&transport->peer_pool, peer);
	COUNT(transport, peers_forgotten);
}

void peer_wake(struct transport *transport, struct peer *peer, uint64_t at)
{
	if (!timer_set(&peer->timer) || wheel_tick(at) < peer->timer.tick)
		wheel_set(&transport->wheel, &peer->timer, at);
}
