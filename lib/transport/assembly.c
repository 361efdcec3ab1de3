/* SPDX-License-Identifier: BSD-3-Clause */
/* assembly.c - messages that arrive: their starts in order, their data wherever it lies. Owned by
 * one poll core.
 *
 * I1. The peer's assemblies are the messages that have begun, whose data is not all here and is
 *     wanted, and those that wait for them (I4). Data of any other message that has begun is passed
 *     over.
 * I2. Nothing is placed beyond an inbound's memory, nor after its message_end().
 * I3. A frame is delivered as a whole or not at all: assembly_check() says beforehand whether it
 *     can be.
 * I4. Messages in several frames end in the order in which they began. A sender frames the oldest
 *     first, so only a lost frame makes a later one complete before: it waits. Programs rely on
 *     that order: Open MPI's coll/portals4 counts the segments of a broadcast that have come, and
 *     passes on as many of the first ones.
 * I5. A message that begins without data and is void with the next record is all in one frame, and
 *     has no assembly: a frame that is made again may have many (outline.h, O2).
 */
#include <transport/assembly.h>

#include <rte_common.h>

#include <transport/acknowledgement.h>
#include <transport/internal.h>
#include <transport/ready.h>

static struct assembly *assembly_find(const struct peer *peer, uint32_t number)
{
	struct assembly *assembly = peer->assemblies;

	while (assembly && assembly->number != number)
		assembly = assembly->next;
	return assembly;
}

static enum assembly_verdict more_check(
	const struct peer *peer, uint32_t started, const struct record *record)
{
	const struct assembly *assembly = assembly_find(peer, record->message);

	/* One that is under way has begun, however many have begun since. */
	if (!assembly)
		return serial_before(record->message, started) ? ASSEMBLY_FINE : ASSEMBLY_UNKNOWN;
	if (record->extent > assembly->length ||
		record->data_length > assembly->length - record->extent)
		return ASSEMBLY_BAD;
	return ASSEMBLY_FINE;
}

/* I5. Does a message begin with this record, and end with the next one, which is at `at`? */
static bool start_is_void(
	const struct frame_view *frame, uint32_t at, unsigned left, const struct record *record)
{
	struct record next;

	if (record->kind != RECORD_START || record->data_length != 0 || left == 0)
		return false;
	(void)record_read(frame, at, &next);
	return next.kind == RECORD_VOID && next.message == record->message;
}

enum assembly_verdict assembly_check_records(struct transport *transport, const struct peer *peer,
	struct frame_view frame, bool in_order)
{
	const unsigned records = frame.header->records;
	uint32_t started = peer->rx_message;
	unsigned incomplete = 0;
	struct record record;
	uint32_t at = 0;

	for (unsigned i = 0; i < records; i++) {
		enum assembly_verdict verdict;

		at = record_read(&frame, at, &record);
		if (record.kind == RECORD_START || record.kind == RECORD_WHOLE) {
			if (!in_order)
				return ASSEMBLY_UNKNOWN;
			if (record.message != started++)
				return ASSEMBLY_BAD;
			incomplete += record.data_length < record.extent &&
				      !start_is_void(&frame, at, records - i - 1, &record);
		} else if (record.kind == RECORD_MORE || record.kind == RECORD_VOID) {
			verdict = more_check(peer, started, &record);
			if (verdict == ASSEMBLY_UNKNOWN && in_order)
				return ASSEMBLY_BAD;
			if (verdict != ASSEMBLY_FINE)
				return verdict;
		} else if (record.kind == RECORD_RING) {
			return ASSEMBLY_RING;
		}
	}
	if (incomplete == 0)
		return ASSEMBLY_FINE;
	if (peer->assembly_count + incomplete > ASSEMBLIES_MAX)
		return ASSEMBLY_BAD;
	return pool_reserve(&transport->assembly_pool, incomplete) ? ASSEMBLY_FINE
								   : ASSEMBLY_NO_MEMORY;
}

/* The rest of a message need not be sent. */
static void stop_queue(struct transport *transport, struct peer *peer, uint32_t number)
{
	if (peer->stop_count != 0 && peer->stop_stream != peer->rx_stream)
		peer->stop_count = 0;
	if (peer->stop_count == STOPS_MAX)
		return;
	peer->stop_stream = peer->rx_stream;
	peer->stops[peer->stop_count++] = number;
	sender_ready(transport, peer);
}

static void inbound_end(
	struct transport *transport, bool want_end, void *context, enum transport_fail why)
{
	if (want_end)
		transport->upcalls.message_end(transport->upcalls.context, context, why);
}

/* Returns false if the memory is not there. */
static inline bool place_data(const struct peer *peer, const struct map *memory, uint64_t offset,
	const void *data, uint64_t bytes)
{
	bool placed = map_copy_in(memory, offset, data, bytes);

	PROBE(place, peer->process.nid, peer->process.pid, map_place(memory, offset), bytes);
	return placed;
}

/* Places the first data of a message. Returns true when that is all that is wanted, or can be
 * placed. */
static bool start_place(struct transport *transport, struct peer *peer, const struct record *record,
	const struct inbound *inbound)
{
	uint64_t limit = RTE_MIN(inbound->memory.length, record->extent);
	uint64_t place = RTE_MIN(limit, record->data_length);
	struct assembly *assembly;

	if (!place_data(peer, &inbound->memory, 0, record->data, place)) {
		inbound_end(transport, inbound->want_end, inbound->context, TRANSPORT_FAULT);
		return true;
	}
	if (place == limit) {
		inbound_end(transport, inbound->want_end, inbound->context, TRANSPORT_OK);
		return true;
	}
	assembly = pool_take(&transport->assembly_pool);
	assembly->next = peer->assemblies;
	assembly->memory = inbound->memory;
	assembly->context = inbound->context;
	assembly->length = record->extent;
	assembly->memory.length = limit;
	assembly->placed = place;
	assembly->number = record->message;
	assembly->over = false;
	assembly->want_end = inbound->want_end;
	assembly->stop = inbound->stop;
	peer->assemblies = assembly;
	peer->assembly_count++;
	return false;
}

static inline void whole_deliver(
	struct transport *transport, struct peer *peer, const struct record *record)
{
	peer->rx_message++;
	COUNT(transport, messages_received);
	COUNT_ADD(transport, bytes_received, record->data_length);
	transport->upcalls.message_whole(transport->upcalls.context, peer->process, record->header,
		record->header_length, record->data, record->data_length);
}

static void start_deliver(
	struct transport *transport, struct peer *peer, const struct record *record)
{
	struct inbound inbound = {0};

	peer->rx_message++;
	COUNT(transport, messages_received);
	COUNT_ADD(transport, bytes_received, record->data_length);
	transport->upcalls.message_begin(
		transport->upcalls.context, peer->process, record, &inbound);
	if (start_place(transport, peer, record, &inbound) && inbound.stop)
		stop_queue(transport, peer, record->message);
}

/* I5 */
static void void_start_deliver(
	struct transport *transport, struct peer *peer, const struct record *record)
{
	struct inbound inbound = {0};

	peer->rx_message++;
	COUNT(transport, messages_received);
	transport->upcalls.message_begin(
		transport->upcalls.context, peer->process, record, &inbound);
	/* If none of its data is wanted, none is missing. */
	inbound_end(transport, inbound.want_end, inbound.context,
		inbound.memory.length == 0 ? TRANSPORT_OK : TRANSPORT_FAULT);
}

static void assembly_remove(
	struct transport *transport, struct peer *peer, struct assembly *assembly)
{
	struct assembly **link = &peer->assemblies;

	while (*link != assembly)
		link = &(*link)->next;
	*link = assembly->next;
	peer->assembly_count--;
	pool_give(&transport->assembly_pool, assembly);
}

static void assembly_end(struct transport *transport, struct peer *peer, struct assembly *assembly,
	enum transport_fail why)
{
	bool want_end = assembly->want_end;
	void *context = assembly->context;

	assembly_remove(transport, peer, assembly);
	inbound_end(transport, want_end, context, why);
}

/* The message that began first. */
static struct assembly *assembly_oldest(const struct peer *peer)
{
	struct assembly *assembly = peer->assemblies;

	while (assembly && assembly->next)
		assembly = assembly->next;
	return assembly;
}

/* No more of a message is placed: all that is wanted is there, or cannot be placed. I4. */
static void assembly_complete(struct transport *transport, struct peer *peer,
	struct assembly *assembly, enum transport_fail why)
{
	if (assembly->stop && assembly->placed < assembly->length)
		stop_queue(transport, peer, assembly->number);
	assembly->memory.length = 0;
	assembly->over = true;
	assembly->why = why;
	while ((assembly = assembly_oldest(peer)) && assembly->over)
		assembly_end(transport, peer, assembly, assembly->why);
}

static void more_deliver(
	struct transport *transport, struct peer *peer, const struct record *record)
{
	struct assembly *assembly = assembly_find(peer, record->message);
	uint64_t place;

	COUNT_ADD(transport, bytes_received, record->data_length);
	/* extent + data_length <= length was checked, but a record before this one in its frame may
	 * have begun the message. */
	if (!assembly || record->extent >= assembly->memory.length)
		return;
	place = RTE_MIN(assembly->memory.length - record->extent, record->data_length);
	if (!place_data(peer, &assembly->memory, record->extent, record->data, place)) {
		assembly_complete(transport, peer, assembly, TRANSPORT_FAULT);
		return;
	}
	/* A peer that lies may send the same bytes twice: it then ends its own message early. */
	assembly->placed += RTE_MIN(place, assembly->memory.length - assembly->placed);
	if (assembly->placed == assembly->memory.length)
		assembly_complete(transport, peer, assembly, TRANSPORT_OK);
}

/* The sender could not read the rest of a message. */
static void void_deliver(
	struct transport *transport, struct peer *peer, const struct record *record)
{
	struct assembly *assembly = assembly_find(peer, record->message);

	if (!assembly || assembly->over)
		return;
	assembly->stop = false;
	assembly_complete(transport, peer, assembly, TRANSPORT_FAULT);
}

void assembly_deliver_whole(
	struct transport *transport, struct peer *peer, const uint8_t *records, unsigned count)
{
	struct record record;

	for (; count > 0; count--) {
		records += record_look(records, &record);
		whole_deliver(transport, peer, &record);
	}
}

void assembly_deliver_records(
	struct transport *transport, struct peer *peer, struct frame_view frame)
{
	const unsigned records = frame.header->records;
	struct record record;
	uint32_t at = 0;

	for (unsigned i = 0; i < records; i++) {
		at = record_read(&frame, at, &record);
		if (start_is_void(&frame, at, records - i - 1, &record)) {
			void_start_deliver(transport, peer, &record);
			at += RECORD_HEADER_BYTES;
			i++;
			continue;
		}
		switch (record.kind) {
		case RECORD_WHOLE:
			whole_deliver(transport, peer, &record);
			break;
		case RECORD_START:
			start_deliver(transport, peer, &record);
			break;
		case RECORD_MORE:
			more_deliver(transport, peer, &record);
			break;
		case RECORD_VOID:
			void_deliver(transport, peer, &record);
			break;
		default:
			if (peer->outgoing != OUTGOING_CLOSED && record.extent == peer->tx_stream)
				acknowledgement_stopped(transport, peer, record.message);
			break;
		}
	}
}

void assembly_end_all(struct transport *transport, struct peer *peer, enum transport_fail why)
{
	struct assembly *assembly;

	while ((assembly = assembly_oldest(peer)))
		assembly_end(transport, peer, assembly, assembly->over ? assembly->why : why);
}
