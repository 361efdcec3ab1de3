/* SPDX-License-Identifier: BSD-3-Clause */
/* refusals.c - see refusals.h. */
#include <sim/refusals.h>

#include <string.h>

#include <wire/frame.h>

#define QUOTE_AT  FRAME_ETHERNET_BYTES
#define LENGTH    (FRAME_ETHERNET_BYTES + PORT_REFUSAL_BYTES)
#define SOURCE_AT STAR_ADDRESS_BYTES
#define TYPE_AT   (2 * STAR_ADDRESS_BYTES)
#define BETRAYED  2 /* frames in a row */

/* sent: the start of a frame, which the host of its receiver refuses. */
static struct parcel *refusal_make(struct star *star, uint32_t from, const uint8_t *sent)
{
	struct parcel *parcel = star_parcel(star, from, LENGTH);

	memcpy(parcel->bytes, sent + SOURCE_AT, STAR_ADDRESS_BYTES);
	memcpy(parcel->bytes + SOURCE_AT, sent, STAR_ADDRESS_BYTES);
	parcel->bytes[TYPE_AT] = (uint8_t)(PORT_REFUSED >> 8);
	parcel->bytes[TYPE_AT + 1] = (uint8_t)PORT_REFUSED;
	memcpy(parcel->bytes + QUOTE_AT, sent + QUOTE_AT, PORT_REFUSAL_BYTES);
	return parcel;
}

/* Is it a frame for one node alone that is no refusal itself? */
static bool refusable(const struct parcel *parcel)
{
	const uint8_t *bytes = parcel->bytes;

	return parcel->frame == NULL && parcel->length >= LENGTH && (bytes[0] & 1) == 0 &&
	       (bytes[TYPE_AT] << 8 | bytes[TYPE_AT + 1]) != PORT_REFUSED;
}

/* Does the host refuse one more? */
static bool bucket_takes(struct refused *bucket, uint64_t now)
{
	uint64_t more = (now - bucket->since) / SECOND;

	if (bucket->count == 0)
		bucket->since = now;
	else if (more > 0) {
		bucket->count -= (uint32_t)RTE_MIN(more, bucket->count);
		bucket->since += more * SECOND;
	}
	if (bucket->count == REFUSALS_BURST)
		return false;
	bucket->count++;
	return true;
}

void refusals_answer(struct node *node, const struct parcel *parcel)
{
	struct simulation *simulation = node->simulation;

	if (!node->settings->addressed || !refusable(parcel) ||
		parcel->from >= simulation->node_count ||
		!bucket_takes(&node->refused[parcel->from], simulation_now(simulation)))
		return;
	star_send(&simulation->network,
		refusal_make(&simulation->network, node->number, parcel->bytes));
}

/* sent: the start of a frame that is said to be refused. It comes by way of node `by`. */
static void refusal_forge(struct simulation *simulation, uint32_t by, const uint8_t *sent)
{
	struct star *star = &simulation->network;

	star->counters.forged++;
	star_pass(star, refusal_make(star, by, sent), simulation_now(simulation));
}

void refusals_see(struct node *node, const struct parcel *parcel)
{
	if (node->betrayed == 0 || !refusable(parcel))
		return;
	node->betrayed--;
	refusal_forge(node->simulation, node->number, parcel->bytes);
}

static void quote_invent(
	struct prng *prng, const struct node *victim, const struct node *other, uint8_t *bytes)
{
	struct frame_header header;
	uint8_t *at = (uint8_t *)&header;

	for (size_t n = 0; n < sizeof(header); n++)
		at[n] = (uint8_t)prng_below(prng, 256);
	header.version_type =
		FRAME_VERSION << 4 | (prng_chance(prng, 0.5) ? FRAME_DATA : FRAME_ASK);
	header.source_nid = victim->id.nid;
	header.source_pid = victim->id.pid;
	header.destination_nid = other->id.nid;
	header.destination_pid = other->id.pid;
	memcpy(bytes, &header, RTE_MIN(sizeof(header), (size_t)PORT_REFUSAL_BYTES));
}

static void forge(void *object, uint64_t interval)
{
	struct simulation *simulation = object;
	struct prng *prng = &simulation->network.prng;
	struct node *victim = &simulation->nodes[prng_below(prng, simulation->node_count)];
	struct node *other = &simulation->nodes[prng_below(prng, simulation->node_count)];
	uint8_t sent[LENGTH] = {0};

	if (simulation->over || simulation_failed(simulation))
		return;
	memcpy(sent, other->port.address, STAR_ADDRESS_BYTES);
	memcpy(sent + SOURCE_AT, victim->port.address, STAR_ADDRESS_BYTES);
	quote_invent(prng, victim, other, sent + QUOTE_AT);
	refusal_forge(simulation, other->number, sent);
	if (prng_chance(prng, 0.5))
		victim->betrayed = BETRAYED;
	sim_clock_at(&simulation->clock, simulation_now(simulation) + interval, forge, simulation,
		interval);
}

void refusals_forge(struct simulation *simulation, uint64_t rate)
{
	sim_clock_at(
		&simulation->clock, simulation_now(simulation), forge, simulation, SECOND / rate);
}
