/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.c - peers and their index. Owned by one poll core.
 *
 * I5. A cell of the index holds the peer whose hash led to it or to a cell before it without a free
 *     one between: so a search ends at the first free cell. Removal moves later cells back.
 */
#include <transport/peer.h>

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include <base/log.h>
#include <transport/congestion.h>
#include <transport/internal.h>

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

void peer_forget(struct transport *transport, struct peer *peer)
{
	wheel_stop(&transport->wheel, &peer->timer);
	table_remove(&transport->peers, peer);
	pool_give(&transport->peer_pool, peer);
	COUNT(transport, peers_forgotten);
}

void peer_wake(struct transport *transport, struct peer *peer, uint64_t at)
{
	if (!timer_set(&peer->timer) || wheel_tick(at) < peer->timer.tick)
		wheel_set(&transport->wheel, &peer->timer, at);
}
