/* SPDX-License-Identifier: BSD-3-Clause */
/* network.c - see network.h. Queues are kept as times: a link that is busy until t and sends r
 * bit/s has (t - now) * r bits waiting, so a frame costs two happenings, not one per hop and
 * turn. */
#include <sim/network.h>

#include <stdlib.h>
#include <string.h>
#include <wire/frame.h>
#include <sim/report.h>

#define ADDRESS_FIRST  0x02 /* locally administered */
#define ADDRESS_SECOND 0x50
#define ADDRESS_LIFE   15 /* bits of the second byte */
#define SLOWER         10
#define NODE_NONE      UINT32_MAX
#define ETHERTYPE_IPV4 0x0800
#define ECN_BITS       3
#define FLIPS_MAX      3  /* bits flipped in a corrupted frame: CRC32C finds every such change */
#define GROWTH_MAX     40 /* bytes added to a corrupted frame; each parcel has room for them */
#define ARRIVALS_FIRST 16u

void network_init(struct network *network, const struct network_settings *settings, uint32_t nodes,
	struct sim_clock *clock, uint64_t seed)
{
	*network = (struct network){
		.settings = *settings,
		.clock = clock,
		.prng = prng_make(seed),
		.nodes = nodes,
	};
	network->links = report_memory(calloc(nodes, sizeof(*network->links)));
	for (uint32_t i = 0; i < nodes; i++)
		network->links[i].rate =
			settings->rate / (prng_chance(&network->prng, settings->slow) ? SLOWER : 1);
}

void network_free(struct network *network)
{
	for (uint32_t i = 0; i < network->nodes; i++)
		free(network->links[i].down.ring);
	free(network->links);
	network->links = NULL;
}

void network_address(uint32_t node, uint32_t life, uint8_t *address)
{
	address[0] = ADDRESS_FIRST;
	address[1] = (uint8_t)(ADDRESS_SECOND | (life & ADDRESS_LIFE));
	for (unsigned i = 0; i < 4; i++)
		address[2 + i] = (uint8_t)(node >> (24 - 8 * i));
}

static uint32_t network_node(const struct network *network, const uint8_t *address)
{
	uint32_t node = 0;

	for (unsigned i = 0; i < 4; i++)
		node = node << 8 | address[2 + i];
	if (address[0] != ADDRESS_FIRST || (address[1] & ~ADDRESS_LIFE) != ADDRESS_SECOND ||
		node >= network->nodes)
		return NODE_NONE;
	return node;
}

struct parcel *network_parcel(struct network *network, uint32_t from, uint32_t length)
{
	struct parcel *parcel = report_memory(malloc(sizeof(*parcel) + length + GROWTH_MAX));

	parcel->holders = 1;
	parcel->from = from;
	parcel->length = length;
	network->in_transit++;
	return parcel;
}

void network_release(struct network *network, struct parcel *parcel)
{
	network->in_transit--;
	if (--parcel->holders == 0)
		free(parcel);
}

static struct parcel *parcel_hold(struct network *network, struct parcel *parcel)
{
	network->in_transit++;
	parcel->holders++;
	return parcel;
}

/* The parcel for a holder who is about to change it: I1. */
static struct parcel *parcel_own(struct network *network, struct parcel *parcel)
{
	struct parcel *copy;

	if (parcel->holders == 1)
		return parcel;
	copy = network_parcel(network, parcel->from, parcel->length);
	memcpy(copy->bytes, parcel->bytes, parcel->length);
	network_release(network, parcel);
	return copy;
}

static void arrivals_put(struct arrivals *arrivals, uint64_t when, struct parcel *parcel)
{
	uint32_t room = arrivals->room ? 2 * arrivals->room : ARRIVALS_FIRST;

	if (arrivals->tail - arrivals->head == arrivals->room) {
		struct arrival *ring = report_memory(malloc(room * sizeof(*ring)));

		for (uint32_t i = arrivals->head; i != arrivals->tail; i++)
			ring[i & (room - 1)] = arrivals->ring[i & (arrivals->room - 1)];
		free(arrivals->ring);
		arrivals->ring = ring;
		arrivals->room = room;
	}
	arrivals->ring[arrivals->tail++ & (arrivals->room - 1)] = (struct arrival){when, parcel};
}

static struct parcel *arrivals_take(struct arrivals *arrivals)
{
	return arrivals->ring[arrivals->head++ & (arrivals->room - 1)].parcel;
}

static uint64_t wire_bytes(uint32_t length)
{
	return (length < NETWORK_FRAME_MIN ? NETWORK_FRAME_MIN : length) + NETWORK_OVERHEAD;
}

static uint64_t wire_time(const struct link *link, uint32_t length)
{
	return wire_bytes(length) * 8 * SECOND / link->rate;
}

static bool link_is_cut(const struct network *network, uint32_t node)
{
	return network->links[node].cut_until > network->clock->now;
}

static void parcel_arrive(void *object, uint64_t node);

/* I3 */
static void arrival_plan(struct network *network, uint32_t node)
{
	const struct arrivals *down = &network->links[node].down;

	if (down->head != down->tail)
		sim_clock_at(network->clock, down->ring[down->head & (down->room - 1)].when,
			parcel_arrive, network, node);
}

static void parcel_arrive(void *object, uint64_t node)
{
	struct network *network = object;
	struct link *link = &network->links[node];
	struct parcel *parcel = arrivals_take(&link->down);

	arrival_plan(network, (uint32_t)node);
	if (link_is_cut(network, (uint32_t)node)) {
		network->counters.cut_dropped++;
		network_release(network, parcel);
		return;
	}
	if (link->down_bytes == 0)
		link->down_first = network->clock->now - wire_time(link, parcel->length);
	link->down_last = network->clock->now;
	link->down_bytes += wire_bytes(parcel->length);
	network->deliver(network->context, (uint32_t)node, parcel);
}

/* Sets "congestion experienced" in an IPv4 header that allows it, and mends its checksum. Returns
 * the marked parcel. */
static struct parcel *parcel_mark(struct network *network, struct parcel *parcel)
{
	uint8_t *bytes = parcel->bytes + FRAME_ETHERNET_BYTES;
	uint32_t sum;

	if (parcel->length < FRAME_ETHERNET_BYTES + 20 ||
		parcel->bytes[12] != ETHERTYPE_IPV4 >> 8 || parcel->bytes[13] != 0 ||
		(bytes[1] & ECN_BITS) == 0 || (bytes[1] & ECN_BITS) == ECN_BITS)
		return parcel;
	parcel = parcel_own(network, parcel);
	bytes = parcel->bytes + FRAME_ETHERNET_BYTES;
	/* RFC 1624: the new sum is ~(~old + ~old word + new word). */
	sum = (uint16_t) ~(bytes[10] << 8 | bytes[11]);
	sum += (uint16_t) ~(bytes[0] << 8 | bytes[1]);
	bytes[1] |= ECN_BITS;
	sum += (uint32_t)(bytes[0] << 8 | bytes[1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	bytes[10] = (uint8_t)(~sum >> 8);
	bytes[11] = (uint8_t)~sum;
	network->counters.marked++;
	return parcel;
}

/* Into the queue towards a node. */
static void switch_forward(struct network *network, struct parcel *parcel, uint32_t to)
{
	struct link *link = &network->links[to];
	uint64_t now = network->clock->now;
	uint64_t busy = link->down_free > now ? link->down_free - now : 0;
	uint64_t queued = busy * (link->rate / 1000000) / 8000; /* bytes */

	if (queued + parcel->length > network->settings.queue_bytes) {
		network->counters.queue_dropped++;
		network_release(network, parcel);
		return;
	}
	if (queued > network->queue_peak)
		network->queue_peak = (uint32_t)queued;
	if (queued > network->settings.mark_bytes)
		parcel = parcel_mark(network, parcel);
	link->down_free = now + busy + wire_time(link, parcel->length);
	arrivals_put(&link->down, link->down_free + network->settings.delay, parcel);
	if (link->down.tail - link->down.head == 1)
		arrival_plan(network, to);
}

static uint32_t word_at(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/* Of the process that a question is about; NODE_NONE: it is not a question. */
static uint32_t switch_asked(const struct network *network, const struct parcel *parcel)
{
	const uint8_t *header = parcel->bytes + FRAME_ETHERNET_BYTES;

	if (!network->settings.directed ||
		parcel->length < FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES ||
		(header[0] & 15) != FRAME_ASK)
		return NODE_NONE;
	return network->find(network->context,
		word_at(header + offsetof(struct frame_header, destination_nid)),
		word_at(header + offsetof(struct frame_header, destination_pid)));
}

static void switch_flood(struct network *network, struct parcel *parcel)
{
	for (uint32_t i = 0; i < network->nodes; i++)
		if (i != parcel->from)
			switch_forward(network, parcel_hold(network, parcel), i);
	network_release(network, parcel);
}

static void switch_arrive(void *object, uint64_t argument)
{
	struct network *network = object;
	struct parcel *parcel = (struct parcel *)(uintptr_t)argument;
	uint32_t to = network_node(network, parcel->bytes);

	if (link_is_cut(network, parcel->from)) {
		network->counters.cut_dropped++;
		network_release(network, parcel);
		return;
	}
	if (parcel->bytes[0] & 1) {
		to = switch_asked(network, parcel);
		if (to == NODE_NONE) {
			switch_flood(network, parcel);
			return;
		}
	}
	if (to == NODE_NONE) {
		network->counters.unknown_dropped++;
		network_release(network, parcel);
		return;
	}
	switch_forward(network, parcel, to);
}

/* Losses come alone, or in bursts. */
static bool link_loses(struct network *network, struct link *link)
{
	const struct network_settings *settings = &network->settings;
	uint64_t now = network->clock->now;

	if (prng_chance(&network->prng, settings->burst))
		link->burst_until = now + prng_below(&network->prng, settings->burst_time + 1);
	if (link->burst_until > now) {
		network->counters.burst_dropped++;
		return true;
	}
	if (prng_chance(&network->prng, settings->drop)) {
		network->counters.dropped++;
		return true;
	}
	return false;
}

/* Flips bits, cuts the end off, or adds to it. Returns the corrupted parcel. */
static struct parcel *parcel_corrupt(struct network *network, struct parcel *parcel)
{
	uint64_t kind = prng_below(&network->prng, 8);

	parcel = parcel_own(network, parcel);
	network->counters.corrupted++;
	if (kind == 0) {
		parcel->length = (uint32_t)prng_between(&network->prng, 1, parcel->length);
	} else if (kind == 1) {
		uint32_t more = (uint32_t)prng_between(&network->prng, 1, GROWTH_MAX);

		memset(parcel->bytes + parcel->length, (int)prng_below(&network->prng, 256), more);
		parcel->length += more;
	} else {
		for (uint64_t flips = prng_between(&network->prng, 1, FLIPS_MAX); flips > 0;
			flips--) {
			uint64_t bit = prng_below(&network->prng, (uint64_t)parcel->length * 8);

			parcel->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
	return parcel;
}

static void link_carry(struct network *network, struct parcel *parcel, uint64_t when)
{
	const struct network_settings *settings = &network->settings;

	if (prng_chance(&network->prng, settings->reorder)) {
		when += prng_below(&network->prng, settings->reorder_delay + 1);
		network->counters.reordered++;
	}
	if (prng_chance(&network->prng, settings->corrupt))
		parcel = parcel_corrupt(network, parcel);
	sim_clock_at(network->clock, when, switch_arrive, network, (uintptr_t)parcel);
}

uint64_t network_send(struct network *network, struct parcel *parcel)
{
	const struct network_settings *settings = &network->settings;
	struct link *link = &network->links[parcel->from];
	uint64_t now = network->clock->now;
	uint64_t departure =
		(link->up_free > now ? link->up_free : now) + wire_time(link, parcel->length);
	uint64_t when = departure + settings->delay;

	link->up_free = departure;
	network->counters.frames++;
	network->counters.bytes += parcel->length;
	if (now >= settings->fault_until) {
		sim_clock_at(network->clock, when, switch_arrive, network, (uintptr_t)parcel);
	} else if (link_loses(network, link)) {
		network_release(network, parcel);
	} else {
		if (prng_chance(&network->prng, settings->duplicate)) {
			network->counters.duplicated++;
			link_carry(network, parcel_hold(network, parcel),
				prng_chance(&network->prng, settings->late)
					? when + prng_below(&network->prng, settings->late_time)
					: when);
		}
		link_carry(network, parcel, when);
	}
	return departure;
}

void network_cut(struct network *network, uint32_t node, uint64_t until)
{
	if (network->links[node].cut_until < until)
		network->links[node].cut_until = until;
}
