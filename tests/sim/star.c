/* SPDX-License-Identifier: BSD-3-Clause */
/* star.c - see star.h. Queues are kept as times: a link that is busy until t and sends r
 * bit/s has (t - now) * r bits waiting, so a frame costs two happenings, not one per hop and
 * turn. */
#include <sim/star.h>

#include <stdlib.h>
#include <string.h>
#include <sim/adversary.h>
#include <wire/frame.h>

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

void star_init(struct star *star, const struct star_settings *settings, uint32_t nodes,
	struct sim_clock *clock, uint64_t seed)
{
	*star = (struct star){
		.settings = *settings,
		.clock = clock,
		.prng = prng_make(seed),
		.nodes = nodes,
	};
	star->links = report_memory(calloc(nodes, sizeof(*star->links)));
	for (uint32_t i = 0; i < nodes; i++)
		star->links[i].rate =
			settings->rate / (prng_chance(&star->prng, settings->slow) ? SLOWER : 1);
}

void star_free(struct star *star)
{
	for (uint32_t i = 0; i < star->nodes; i++)
		free(star->links[i].down.ring);
	adversary_free(star);
	free(star->links);
	star->links = NULL;
}

void star_address(uint32_t node, uint32_t life, uint8_t *address)
{
	address[0] = ADDRESS_FIRST;
	address[1] = (uint8_t)(ADDRESS_SECOND | (life & ADDRESS_LIFE));
	for (unsigned i = 0; i < 4; i++)
		address[2 + i] = (uint8_t)(node >> (24 - 8 * i));
}

static uint32_t star_node(const struct star *star, const uint8_t *address)
{
	uint32_t node = 0;

	for (unsigned i = 0; i < 4; i++)
		node = node << 8 | address[2 + i];
	if (address[0] != ADDRESS_FIRST || (address[1] & ~ADDRESS_LIFE) != ADDRESS_SECOND ||
		node >= star->nodes)
		return NODE_NONE;
	return node;
}

struct parcel *star_wrap(
	struct star *star, uint32_t from, uint32_t to, void *frame, uint8_t *bytes, uint32_t length)
{
	struct parcel *parcel = report_memory(malloc(sizeof(*parcel)));

	*parcel = (struct parcel){
		.holders = 1,
		.from = from,
		.to = to,
		.length = length,
		.frame = frame,
		.bytes = bytes,
	};
	star->in_transit++;
	return parcel;
}

struct parcel *star_parcel(struct star *star, uint32_t from, uint32_t length)
{
	return star_wrap(star, from, STAR_BY_ADDRESS, NULL,
		report_memory(malloc(length + GROWTH_MAX)), length);
}

void star_release(struct star *star, struct parcel *parcel)
{
	star->in_transit--;
	if (--parcel->holders > 0)
		return;
	if (parcel->frame != NULL)
		star->frame_free(parcel->frame);
	else
		free(parcel->bytes);
	free(parcel);
}

static void parcel_flatten(const struct star *star, struct parcel *parcel)
{
	if (parcel->frame == NULL)
		return;
	parcel->bytes = report_memory(malloc(parcel->length + GROWTH_MAX));
	star->frame_copy(parcel->frame, parcel->bytes);
	star->frame_free(parcel->frame);
	parcel->frame = NULL;
}

static struct parcel *parcel_hold(struct star *star, struct parcel *parcel)
{
	star->in_transit++;
	parcel->holders++;
	return parcel;
}

/* The parcel for a holder who is about to change it: I1. */
static struct parcel *parcel_own(struct star *star, struct parcel *parcel)
{
	struct parcel *copy;

	if (parcel->holders == 1) {
		parcel_flatten(star, parcel);
		return parcel;
	}
	copy = star_parcel(star, parcel->from, parcel->length);
	copy->to = parcel->to;
	if (parcel->frame != NULL)
		star->frame_copy(parcel->frame, copy->bytes);
	else
		memcpy(copy->bytes, parcel->bytes, parcel->length);
	star_release(star, parcel);
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
	return (length < STAR_FRAME_MIN ? STAR_FRAME_MIN : length) + STAR_OVERHEAD;
}

static uint64_t wire_time(const struct star_link *link, uint32_t length)
{
	return link->rate == 0 ? 0 : wire_bytes(length) * 8 * SECOND / link->rate;
}

static bool link_is_cut(const struct star *star, uint32_t node)
{
	return star->links[node].cut_until > star->clock->now;
}

static void parcel_arrive(void *object, uint64_t node);

/* I3 */
static void arrival_plan(struct star *star, uint32_t node)
{
	const struct arrivals *down = &star->links[node].down;

	if (down->head != down->tail)
		sim_clock_at(star->clock, down->ring[down->head & (down->room - 1)].when,
			parcel_arrive, star, node);
}

static void parcel_arrive(void *object, uint64_t node)
{
	struct star *star = object;
	struct star_link *link = &star->links[node];
	struct parcel *parcel = arrivals_take(&link->down);

	arrival_plan(star, (uint32_t)node);
	if (link_is_cut(star, (uint32_t)node)) {
		star->counters.cut_dropped++;
		star_release(star, parcel);
		return;
	}
	if (link->down_bytes == 0)
		link->down_first = star->clock->now - wire_time(link, parcel->length);
	link->down_last = star->clock->now;
	link->down_bytes += wire_bytes(parcel->length);
	star->deliver(star->context, (uint32_t)node, parcel);
}

/* Sets "congestion experienced" in an IPv4 header that allows it, and mends its checksum. Returns
 * the marked parcel. */
static struct parcel *parcel_mark(struct star *star, struct parcel *parcel)
{
	uint8_t *bytes = parcel->bytes + FRAME_ETHERNET_BYTES;
	uint32_t sum;

	if (parcel->length < FRAME_ETHERNET_BYTES + 20 ||
		parcel->bytes[12] != ETHERTYPE_IPV4 >> 8 || parcel->bytes[13] != 0 ||
		(bytes[1] & ECN_BITS) == 0 || (bytes[1] & ECN_BITS) == ECN_BITS)
		return parcel;
	parcel = parcel_own(star, parcel);
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
	star->counters.marked++;
	return parcel;
}

/* Into the queue towards a node. */
static void switch_forward(struct star *star, struct parcel *parcel, uint32_t to)
{
	struct star_link *link = &star->links[to];
	uint64_t now = star->clock->now;
	uint64_t busy = link->down_free > now ? link->down_free - now : 0;
	uint64_t queued = busy * (link->rate / 1000000) / 8000; /* bytes */

	if (queued + parcel->length > star->settings.queue_bytes) {
		star->counters.queue_dropped++;
		star_release(star, parcel);
		return;
	}
	if (queued > star->queue_peak)
		star->queue_peak = (uint32_t)queued;
	if (queued > star->settings.mark_bytes)
		parcel = parcel_mark(star, parcel);
	link->down_free = now + busy + wire_time(link, parcel->length);
	arrivals_put(&link->down, link->down_free + star->settings.delay, parcel);
	if (link->down.tail - link->down.head == 1)
		arrival_plan(star, to);
}

static uint32_t word_at(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/* Of the process that a question is about; NODE_NONE: it is not a question. */
static uint32_t switch_asked(const struct star *star, const struct parcel *parcel)
{
	const uint8_t *header = parcel->bytes + FRAME_ETHERNET_BYTES;

	if (!star->settings.directed ||
		parcel->length < FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES ||
		(header[0] & 15) != FRAME_ASK)
		return NODE_NONE;
	return star->find(star->context,
		word_at(header + offsetof(struct frame_header, destination_nid)),
		word_at(header + offsetof(struct frame_header, destination_pid)));
}

static void switch_flood(struct star *star, struct parcel *parcel)
{
	for (uint32_t i = 0; i < star->nodes; i++)
		if (i != parcel->from)
			switch_forward(star, parcel_hold(star, parcel), i);
	star_release(star, parcel);
}

static void switch_arrive(void *object, uint64_t argument)
{
	struct star *star = object;
	struct parcel *parcel = (struct parcel *)(uintptr_t)argument;
	uint32_t to = parcel->to;

	if (link_is_cut(star, parcel->from)) {
		star->counters.cut_dropped++;
		star_release(star, parcel);
		return;
	}
	if (to == STAR_BY_ADDRESS)
		to = star_node(star, parcel->bytes);
	if (parcel->to == STAR_BY_ADDRESS && (parcel->bytes[0] & 1) != 0) {
		to = switch_asked(star, parcel);
		if (to == NODE_NONE) {
			switch_flood(star, parcel);
			return;
		}
	}
	if (to == NODE_NONE) {
		star->counters.unknown_dropped++;
		star_release(star, parcel);
		return;
	}
	switch_forward(star, parcel, to);
}

/* Losses come alone, or in bursts. */
static bool link_loses(struct star *star, struct star_link *link)
{
	const struct star_settings *settings = &star->settings;
	uint64_t now = star->clock->now;

	if (prng_chance(&star->prng, settings->burst))
		link->burst_until = now + prng_below(&star->prng, settings->burst_time + 1);
	if (link->burst_until > now) {
		star->counters.burst_dropped++;
		return true;
	}
	if (prng_chance(&star->prng, settings->drop)) {
		star->counters.dropped++;
		return true;
	}
	return false;
}

/* Flips bits, cuts the end off, or adds to it. Returns the corrupted parcel. */
static struct parcel *parcel_corrupt(struct star *star, struct parcel *parcel)
{
	uint32_t covered = star->settings.corrupt_bytes;
	uint64_t kind = prng_below(&star->prng, 8);

	parcel = parcel_own(star, parcel);
	star->counters.corrupted++;
	if (covered > 0) {
		uint64_t bit = prng_below(
			&star->prng, 8 * (covered < parcel->length ? covered : parcel->length));

		parcel->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	} else if (kind == 0) {
		parcel->length = (uint32_t)prng_between(&star->prng, 1, parcel->length);
	} else if (kind == 1) {
		uint32_t more = (uint32_t)prng_between(&star->prng, 1, GROWTH_MAX);

		memset(parcel->bytes + parcel->length, (int)prng_below(&star->prng, 256), more);
		parcel->length += more;
	} else {
		for (uint64_t flips = prng_between(&star->prng, 1, FLIPS_MAX); flips > 0; flips--) {
			uint64_t bit = prng_below(&star->prng, (uint64_t)parcel->length * 8);

			parcel->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
	return parcel;
}

/* Parcels on their way stand in the clock while they go up, and beside the links down. */
void star_flatten(struct star *star)
{
	for (size_t n = 0; n < star->clock->count; n++)
		if (star->clock->heap[n].call == switch_arrive)
			parcel_flatten(
				star, (struct parcel *)(uintptr_t)star->clock->heap[n].argument);
	for (uint32_t node = 0; node < star->nodes; node++) {
		const struct arrivals *down = &star->links[node].down;

		for (uint32_t i = down->head; i != down->tail; i++)
			parcel_flatten(star, down->ring[i & (down->room - 1)].parcel);
	}
}

void star_pass(struct star *star, struct parcel *parcel, uint64_t when)
{
	sim_clock_at(star->clock, when, switch_arrive, star, (uintptr_t)parcel);
}

static void link_carry(struct star *star, struct parcel *parcel, uint64_t when)
{
	const struct star_settings *settings = &star->settings;

	if (prng_chance(&star->prng, settings->reorder)) {
		when += prng_below(&star->prng, settings->reorder_delay + 1);
		star->counters.reordered++;
	}
	if (prng_chance(&star->prng, settings->corrupt))
		parcel = parcel_corrupt(star, parcel);
	star_pass(star, parcel, when);
}

uint64_t star_send(struct star *star, struct parcel *parcel)
{
	const struct star_settings *settings = &star->settings;
	struct star_link *link = &star->links[parcel->from];
	uint64_t now = star->clock->now;
	uint64_t departure =
		(link->up_free > now ? link->up_free : now) + wire_time(link, parcel->length);
	uint64_t when = departure + settings->delay;

	link->up_free = departure;
	star->counters.frames++;
	star->counters.bytes += parcel->length;
	if (settings->repeat > 0 && now < settings->fault_until &&
		adversary_sees(star, parcel, when))
		return departure;
	if (now >= settings->fault_until) {
		star_pass(star, parcel, when);
	} else if (link_loses(star, link)) {
		star_release(star, parcel);
	} else {
		if (prng_chance(&star->prng, settings->duplicate)) {
			star->counters.duplicated++;
			link_carry(star, parcel_hold(star, parcel),
				prng_chance(&star->prng, settings->late)
					? when + prng_below(&star->prng, settings->late_time)
					: when);
		}
		link_carry(star, parcel, when);
	}
	return departure;
}

void star_cut(struct star *star, uint32_t node, uint64_t until)
{
	if (star->links[node].cut_until < until)
		star->links[node].cut_until = until;
}
