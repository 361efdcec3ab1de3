/* SPDX-License-Identifier: BSD-3-Clause */
/* transport.c - a transport's beginning and end, and its turn. Owned by one poll core.
 *
 * A turn: transport_receive() takes frames, transport_process() reads them. transport_transmit()
 * first gives the port what is ready to be sent; what somebody waits for is then on its way. Only
 * then it runs timers, fills frames with what these brought, and sends acknowledgements that found
 * no frame to ride on. transport_push() is its first half alone.
 */
#include <transport/transport.h>

#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include <base/pages.h>
#include <base/random.h>
#include <transport/ack.h>
#include <transport/acknowledgement.h>
#include <transport/echo.h>
#include <transport/incoming.h>
#include <transport/zcopy.h>
#include <transport/life.h>
#include <transport/name.h>
#include <transport/neighbour.h>
#include <transport/outbox.h>
#include <transport/outline.h>
#include <transport/receiver.h>
#include <transport/sender.h>
#include <transport/timers.h>

#define PEERS_CHUNK      4
#define FLIGHTS_CHUNK    16
#define REORDERS_CHUNK   16
#define ASSEMBLIES_CHUNK 64
#define OUTLINES_CHUNK   64
#define BURST_BYTES      (128u * 1024) /* of a burst that the cache holds */
#define BURST_LEAST      8u
/* who sent within one or two counts as an active sender */
#define EPOCH (1 * MILLISECOND)
/* between looks whether a port has let go of a frame */
#define RELEASE_LOOK (20 * MICROSECOND)
/* the part of the time for which a port has taken nothing that passes before it is tried again */
#define RETRY_SHARE 8
#define BYE_TRIES   16 /* for a port that does not take what it is given */

/* --- beginning */

/* Parts of the pool: what the port's rings and threads' caches may hold is not counted. */
static void limits_set(struct transport *transport)
{
	uint32_t size = transport->port->pool->size - transport->port->aside;
	uint32_t rings = 2u * transport->port->receive_frames;
	uint32_t spare = size > rings + size / 4 ? size - rings : RTE_MAX(size / 4, 8u);

	transport->in_flight_max = spare / 2;
	transport->in_flight_shared = transport->in_flight_max / 4 * 3;
	transport->held_max = spare / 4;
	transport->credit_total = RTE_MAX(transport->port->receive_frames / 4u * 3u, 1u);
	transport->credit = (uint16_t)RTE_MIN(transport->credit_total, CREDIT_MAX);
	transport->capacity = RTE_MIN(transport->port->frame_size - transport->encapsulation.bytes,
				      (uint32_t)PORT_MTU_MAX) &
			      ~(uint32_t)(RECORD_ALIGN - 1);
	transport->copied_max = transport->capacity;
	if (transport->port->gathers)
		transport->copied_max = RTE_MAX(transport->port->gather_bytes, 1u) - 1;
	transport->bundle =
		RTE_MIN(transport->capacity - FRAME_HEADER_BYTES, (uint32_t)BUNDLE_BYTES);
	transport->turn_frames = sender_turn_frames(transport->capacity, transport->port->joins);
	transport->burst_limit = BURST_FRAMES;
}

static void pools_init(struct transport *transport)
{
	pool_init(&transport->peer_pool, sizeof(struct peer), PEERS_CHUNK, UINT32_MAX);
	pool_init(&transport->flight_pool, sizeof(struct flight), FLIGHTS_CHUNK, UINT32_MAX);
	pool_init(&transport->outline_pool, sizeof(struct outline), OUTLINES_CHUNK, UINT32_MAX);
	pool_init(&transport->reorder_pool, sizeof(struct reorder), REORDERS_CHUNK,
		transport->held_max);
	pool_init(&transport->assembly_pool, sizeof(struct assembly), ASSEMBLIES_CHUNK, UINT32_MAX);
	zcopy_init(transport);
}

static bool neighbours_make(struct transport *transport)
{
	if (!transport->encapsulation.options.udp)
		return true;
	transport->neighbours = neighbours_create();
	return transport->neighbours != NULL;
}

static bool self_make(struct transport *transport)
{
	transport->self = peer_get(transport, transport->options.self, false);
	if (!transport->self)
		return false;
	transport->self->self = true;
	address_turn(transport->self, ADDRESS_KNOWN);
	transport->self->incarnation = transport->options.incarnation;
	transport->self->credit = CREDIT_MAX;
	return true;
}

static struct spans spans_of(const struct transport_options *options)
{
	uint32_t haste = RTE_MAX(options->haste, 1u);

	return (struct spans){.stream_idle = STREAM_IDLE / haste,
		.stream_memory = STREAM_MEMORY / haste,
		.peer_memory = PEER_MEMORY / haste,
		.psn_life = PSN_LIFE / haste,
		.psn_fresh = PSN_FRESH / haste,
		.psn_known = PSN_KNOWN / haste,
		.stream_psns = options->stream_psns ? options->stream_psns : STREAM_PSNS};
}

struct transport *transport_create(const struct transport_options *options, struct port *port,
	const struct clock *clock, const struct transport_upcalls *upcalls,
	struct transport_counters *counters)
{
	struct transport *transport = pages_map_root(sizeof(*transport));

	if (!transport)
		return NULL;
	owner_take(&transport->owner);
	transport->options = *options;
	transport->spans = spans_of(options);
	transport->port = port;
	transport->clock = clock;
	transport->upcalls = *upcalls;
	transport->counters = counters;
	transport->now = clock_now(clock);
	transport->now_received = transport->now;
	transport->generation_at = transport->now;
	transport->full_sent = UINT64_MAX;
	transport->random = options->seed;
	transport->stream = (uint16_t)(random_next(&transport->random) >> 32);
	transport->epoch_end = transport->now + EPOCH;
	list_init(&transport->ready);
	for (unsigned i = 0; i < ACK_LISTS; i++)
		list_init(&transport->acks[i]);
	list_init(&transport->echoes.pings);
	list_init(&transport->names.queries);
	wheel_init(&transport->wheel, transport->now);
	encapsulation_init(&transport->encapsulation, &options->encapsulation, port->address,
		port->checksum_offload);
	transport->plain =
		encapsulation_plain(&transport->encapsulation) && !options->full_checksum;
	transport->guards = port->guards && !options->full_checksum &&
			    (!options->encapsulation.udp || port->checksum_offload);
	limits_set(transport);
	pools_init(transport);
	if (peer_table_init(&transport->peers, RTE_MAX(options->peers_max, 2u),
		    (uint32_t)random_next(&transport->random)) &&
		neighbours_make(transport) && self_make(transport))
		return transport;
	neighbours_free(transport->neighbours);
	peer_table_free(&transport->peers);
	pool_free(&transport->peer_pool);
	pages_unmap_root(transport, sizeof(*transport));
	return NULL;
}

void transport_own(struct transport *transport)
{
	owner_take(&transport->owner);
}

/* --- the turn */

/* I1. A thread on another CPU may have read a clock that is a hair ahead of this one's: then the
 * time stands still. */
static inline void time_read(struct transport *transport)
{
	uint64_t now = clock_now(transport->clock);

	if (now > transport->now)
		transport->now = now;
}

static void epoch_turn(struct transport *transport)
{
	bool adjoining = transport->now - transport->epoch_end < EPOCH;
	uint32_t sharing;

	transport->senders_before = adjoining ? transport->senders : 0;
	transport->senders = 0;
	transport->epoch++;
	transport->epoch_end = transport->now + EPOCH;
	sharing = RTE_MAX(transport->senders_before, 1u);
	transport->credit =
		(uint16_t)RTE_MAX(RTE_MIN(transport->credit_total / sharing, CREDIT_MAX), 1u);
}

/* Frames may have waited in the port since the last poll. If that is long ago, this core was away
 * (it had other frames to process, it slept, it had no CPU): that is time in the host, not in the
 * network, and must not be taken for congestion. */
static uint64_t arrival_estimate(const struct transport *transport)
{
	uint64_t arrived = transport->port->arrived;

	if (arrived != 0)
		return RTE_MIN(arrived, transport->now);
	if (transport->now - transport->polled < GAP_LEAST)
		return transport->now;
	return transport->polled;
}

/* Frames from this process to itself: half of the burst at most, so that the port has its turn. */
static unsigned looped_receive(struct transport *transport)
{
	unsigned count = 0;

	while (count < transport->burst_limit / 2 && transport->loop_head != transport->loop_tail)
		transport->burst[count++] = transport->loop[transport->loop_head++ % LOOP_FRAMES];
	return count;
}

static unsigned burst_begin(struct transport *transport, unsigned count, unsigned looped)
{
	transport_stir(transport);
	transport->burst_looped = looped;
	transport->burst_count = count;
	transport->arrival = arrival_estimate(transport);
	COUNT_ADD(transport, frames_received, count);
	return count;
}

/* Takes frames when something else may be due as well. */
static __rte_noinline unsigned burst_receive(struct transport *transport)
{
	unsigned count, looped = 0;

	if (transport->now >= transport->epoch_end)
		epoch_turn(transport);
	/* Frames of the last burst that were not processed come first. */
	if (transport->burst_count > 0)
		return transport->burst_count;
	if (transport->loop_head != transport->loop_tail)
		looped = looped_receive(transport);
	count = looped + port_receive(transport->port, transport->burst + looped,
				 (uint16_t)(transport->burst_limit - looped));
	return count == 0 ? 0 : burst_begin(transport, count, looped);
}

unsigned transport_receive(struct transport *transport)
{
	unsigned count;

	owner_check(&transport->owner);
	if (transport->pending_ack_count != 0)
		acknowledgement_settle(transport);
	transport->polled = transport->now_received;
	time_read(transport);
	transport->now_received = transport->now;
	if (transport->now >= transport->quiet_until)
		return burst_receive(transport);
	count = port_receive(transport->port, transport->burst, (uint16_t)transport->burst_limit);
	return count == 0 ? 0 : burst_begin(transport, count, 0);
}

/* Frames that are large come in short bursts: what the port has just copied is then still in the
 * cache when it is copied to its place. */
static void burst_adapt(struct transport *transport)
{
	unsigned count = transport->burst_count;
	uint32_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += transport->burst[i]->pkt_len;
	if (bytes > BURST_BYTES)
		transport->burst_limit = RTE_MAX(transport->burst_limit / 2, BURST_LEAST);
	else if (bytes < BURST_BYTES / 4 || count < transport->burst_limit)
		transport->burst_limit = RTE_MIN(transport->burst_limit * 2, BURST_FRAMES);
}

void transport_process(struct transport *transport)
{
	owner_check(&transport->owner);
	if (transport->burst_count >= BURST_LEAST || transport->burst_limit < BURST_FRAMES)
		burst_adapt(transport);
	receiver_burst(transport);
	transport->burst_count = 0;
}

static void refused_end(struct transport *transport, enum transport_fail why)
{
	while (transport->refused.head)
		message_done(transport, messages_take(&transport->refused), why);
}

/* Is there something that could leave at once? */
static bool transport_ready(const struct transport *transport)
{
	return (transport->ready_count | transport->outbox_count) != 0;
}

/* Is there something to fail, to answer, to let go of, to acknowledge, or a timer due? */
static bool transport_is_due(const struct transport *transport)
{
	return ((uintptr_t)transport->refused.head | (uintptr_t)transport->zcopies_ended |
		       transport->echoes.busy | transport->ready_count) != 0 ||
	       acknowledgement_is_due(transport) || wheel_is_due(&transport->wheel, transport->now);
}

static void transport_flush(struct transport *transport)
{
	/* When the port took nothing in this turn already, it is not asked again. */
	if (!transport->blocked || transport->sent > 0 || transport->outbox_count < OUTBOX_FRAMES)
		outbox_flush(transport);
}

/* Sends what is ready; returns how many more frames may go in this turn. Echo answers tell how long
 * they were here, so they go first. */
static unsigned transport_give(struct transport *transport)
{
	unsigned left;

	time_read(transport);
	if (transport->echoes.busy)
		echo_run(transport);
	left = sender_run(transport, transport->turn_frames);
	transport_flush(transport);
	return left;
}

bool transport_push(struct transport *transport)
{
	owner_check(&transport->owner);
	transport->sent = 0;
	transport->blocked = false;
	if (!transport_ready(transport)) {
		time_read(transport);
		return !transport->refused.head;
	}
	transport_give(transport);
	return transport->sent != 0;
}

/* The rest of a turn: what need not leave at once. */
static void transport_end(struct transport *transport, unsigned left)
{
	time_read(transport);
	refused_end(transport, TRANSPORT_UNREACHABLE);
	if (transport->zcopies_ended)
		zcopy_run(transport);
	timers_run(transport);
	if (transport->echoes.busy)
		echo_run(transport);
	if (transport->ready_count != 0)
		sender_run(transport, left);
	acknowledgement_run(transport);
	transport_flush(transport);
}

/* The time until which turns have nothing to do unless something comes. */
static uint64_t quiet_end(const struct transport *transport)
{
	uint64_t end = RTE_MIN(transport->epoch_end, wheel_next(&transport->wheel));

	if ((transport->outbox_count | transport->burst_count |
		    (transport->loop_head - transport->loop_tail)) != 0 ||
		transport_is_due(transport))
		return 0;
	return transport->acks_owed != 0 ? RTE_MIN(end, transport->ack_next) : end;
}

static __rte_noinline unsigned transmit_what_is_due(struct transport *transport)
{
	unsigned left = transport->turn_frames;

	transport->sent = 0;
	transport->blocked = false;
	if (transport_ready(transport))
		left = transport_give(transport);
	if (transport->pending_ack_count != 0)
		acknowledgement_settle(transport);
	if (transport_is_due(transport))
		transport_end(transport, left);
	transport->quiet_until = quiet_end(transport);
	return transport->sent;
}

unsigned transport_transmit(struct transport *transport)
{
	owner_check(&transport->owner);
	if (transport->now < transport->quiet_until)
		return 0;
	return transmit_what_is_due(transport);
}

bool transport_urgent(const struct transport *transport)
{
	owner_check(&transport->owner);
	return ((uintptr_t)transport->refused.head | transport->echoes.busy |
		       transport->ready_count | transport->outbox_count) != 0 ||
	       !list_empty(&transport->acks[ACK_URGENT]);
}

uint64_t transport_looked(const struct transport *transport)
{
	owner_check(&transport->owner);
	return transport->now_received;
}

uint64_t transport_unlooked(const struct transport *transport)
{
	owner_check(&transport->owner);
	return transport->now - transport->now_received;
}

/* The longer a port has taken nothing, the longer it is left alone: it may be one end of a line
 * whose other end never comes. */
static uint64_t retry_delay(const struct transport *transport)
{
	uint64_t full = transport->now - transport->full_since;

	return transport->outbox_count == 0 ? RETRY_DELAY
					    : RTE_MAX(RETRY_DELAY, full / RETRY_SHARE);
}

static uint64_t transport_due(const struct transport *transport)
{
	uint64_t due = RTE_MIN(acknowledgement_deadline(transport), echo_deadline(transport));

	due = RTE_MIN(due, names_deadline(transport));
	if (transport->burst_count > 0 || transport->loop_head != transport->loop_tail ||
		transport->refused.head || transport->pending_ack_count > 0)
		return 0;
	if (transport->zcopies_ended)
		due = RTE_MIN(due, transport->now + RELEASE_LOOK);
	if (transport->outbox_count > 0 || !list_empty(&transport->ready))
		due = transport->blocked ? RTE_MIN(due, transport->now + retry_delay(transport))
					 : 0;
	if (transport->blocked)
		due = RTE_MAX(due, transport->now + retry_delay(transport));
	return due;
}

uint64_t transport_deadline(const struct transport *transport)
{
	uint64_t now = clock_now(transport->clock);
	uint64_t wheel = wheel_deadline(&transport->wheel, now);
	uint64_t due = transport_due(transport);

	owner_check(&transport->owner);
	if (due != UINT64_MAX)
		due = due > now ? due - now : 0;
	return RTE_MIN(due, wheel);
}

bool transport_settled(const struct transport *transport)
{
	owner_check(&transport->owner);
	for (unsigned i = 0; i < ACK_LISTS; i++)
		if (!list_empty(&transport->acks[i]))
			return false;
	return transport->messages == 0 && pool_taken(&transport->flight_pool) == 0 &&
	       transport->outbox_count == 0 && transport->burst_count == 0 &&
	       transport->pending_ack_count == 0 && transport->loop_head == transport->loop_tail;
}

/* --- end */

static void messages_await(struct transport *transport, const struct messages *messages,
	bool (*counts)(const struct message *message))
{
	for (struct message *message = messages->head; message; message = message->next) {
		message->awaited = counts(message);
		transport->awaited += message->awaited;
	}
}

void transport_await(struct transport *transport, bool (*counts)(const struct message *message))
{
	const struct peer_table *table = &transport->peers;

	owner_check(&transport->owner);
	for (uint32_t i = 0; i <= table->mask; i++) {
		const struct peer *peer = table->cells[i].peer;

		if (!peer)
			continue;
		messages_await(transport, &peer->waiting, counts);
		messages_await(transport, &peer->open, counts);
		messages_await(transport, &peer->unacked, counts);
	}
	messages_await(transport, &transport->refused, counts);
}

bool transport_awaits(const struct transport *transport)
{
	owner_check(&transport->owner);
	return transport->awaited != 0;
}

static bool one_is_awaited(const struct messages *messages)
{
	const struct message *message = messages->head;

	while (message && !message->awaited)
		message = message->next;
	return message != NULL;
}

static bool peer_is_awaited(const struct peer *peer)
{
	return one_is_awaited(&peer->unacked) || one_is_awaited(&peer->open) ||
	       one_is_awaited(&peer->waiting);
}

void transport_awaited(const struct transport *transport, struct transport_awaited *awaited)
{
	const struct peer_table *table = &transport->peers;

	owner_check(&transport->owner);
	*awaited = (struct transport_awaited){.left = transport->awaited, .lost = transport->lost};
	for (uint32_t i = 0; i <= table->mask; i++) {
		const struct peer *peer = table->cells[i].peer;

		if (!peer || !peer_is_awaited(peer))
			continue;
		awaited->progress = RTE_MAX(awaited->progress, peer->progress);
		awaited->known |= peer->incarnation != 0;
	}
}

static void bye_send(struct transport *transport, const struct peer *peer)
{
	struct frame bye = {.type = FRAME_BYE, .stream = peer->tx_stream, .psn = peer->tx_next};

	if ((peer->address_state != ADDRESS_KNOWN && !incoming_is_open(peer)) || peer->self)
		return;
	for (unsigned i = 0; i < BYE_TRIES && !outbox_room(transport, peer, 1); i++)
		outbox_flush(transport);
	sender_address(transport, peer, &bye);
	if (incoming_is_open(peer))
		acknowledgement_fields(transport, peer, &bye);
	outbox_send(transport, &bye, NULL, peer->address);
}

/* No upcall adds a peer any more: closing sends everything to refused. */
static void peers_end(struct transport *transport)
{
	struct peer_table *table = &transport->peers;

	for (uint32_t i = 0; i <= table->mask; i++) {
		struct peer *peer = table->cells[i].peer;

		if (!peer)
			continue;
		bye_send(transport, peer);
		incoming_close(transport, peer, INCOMING_NONE, TRANSPORT_SHUTDOWN);
		peer_fail(transport, peer, TRANSPORT_SHUTDOWN);
	}
	refused_end(transport, TRANSPORT_SHUTDOWN);
}

static void frames_free(struct transport *transport)
{
	for (unsigned i = 0; i < BYE_TRIES && transport->outbox_count > 0; i++)
		outbox_flush(transport);
	for (unsigned i = 0; i < transport->outbox_count; i++)
		rte_pktmbuf_free(transport->outbox[i]);
	for (unsigned i = 0; i < transport->burst_count; i++)
		rte_pktmbuf_free(transport->burst[i]);
	while (transport->loop_head != transport->loop_tail)
		rte_pktmbuf_free(transport->loop[transport->loop_head++ % LOOP_FRAMES]);
}

void transport_close(struct transport *transport)
{
	owner_check(&transport->owner);
	transport->closing = true;
	acknowledgement_settle(transport);
	time_read(transport);
	transport_ping_abandon(transport);
	transport_find_abandon(transport);
	peers_end(transport);
	frames_free(transport);
	zcopy_await(transport);
	neighbours_free(transport->neighbours);
	hints_free(&transport->hints);
	peer_table_free(&transport->peers);
	pool_free(&transport->peer_pool);
	pool_free(&transport->flight_pool);
	pool_free(&transport->outline_pool);
	pool_free(&transport->reorder_pool);
	pool_free(&transport->assembly_pool);
	pages_unmap_root(transport, sizeof(*transport));
}
