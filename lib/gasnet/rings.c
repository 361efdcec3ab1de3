/* SPDX-License-Identifier: BSD-3-Clause */
/* rings.c - messages between ranks of a host, in memory that they share.
 *
 * The memory of a rank (P1) has a ring for each neighbour, which that one writes and this rank
 * reads, and a word that says that this rank sleeps.
 *
 * R1. A message's record begins at a multiple of CELL, and is contiguous. Its first word is written
 *     last, after the first word of the next record has been cleared: so a reader looks at nothing
 *     but the word where it expects the next record.
 * R2. What a neighbour writes is not trusted: it is read once and checked, and both ends keep their
 *     positions for themselves. A ring with nonsense is closed by the end that finds it, after a
 *     line on standard error. A reader tells the writer so, whose messages then go by Portals.
 * R3. A ring is a faster way for a message, and not a place that G1 counts on. A request, which has
 *     its share already, waits for room in the ring as it waits for its share (G6). It leaves some
 *     room for replies, and a reply that finds none goes by Portals.
 * R4. Before a rank sleeps it says so, and looks at its rings once more. A writer that has written
 *     looks whether the reader sleeps, and wakes it by an event: so one of the two sees the other.
 */
#include "state.h"

#include "wire.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CELL 64u
#ifndef RING_BYTES
#define RING_BYTES 65536u
#endif
#define REPLIES (RING_BYTES / 4) /* room that requests leave */
#define SKIP    UINT64_C(1)      /* a first word: the record is at the ring's start */
#define BELL    UINT64_C(0x10000)
#define CLOSED  UINT64_MAX /* bytes that were taken: the reader takes nothing more */

struct record {
	uint64_t word; /* match bits, as in a message: see send.c */
	uint8_t credits;
	uint8_t copied; /* a long's data are in place */
	uint8_t bytes[] __attribute__((aligned(PAYLOAD_ALIGN)));
};

struct ring {
	uint64_t taken __attribute__((aligned(CELL))); /* bytes; the reader's, as is */
	uint64_t released;                             /* the sum of credits */
	uint8_t cells[RING_BYTES] __attribute__((aligned(CELL)));
};

struct memory {
	uint32_t asleep; /* the reader's; a writer that has woken it clears it */
	struct ring rings[];
};

struct writer {
	lock_type lock;
	struct memory *memory; /* of the reader; NULL: messages go by Portals */
	struct ring *ring;
	uint64_t at;    /* bytes that were written */
	uint64_t taken; /* of these the reader had taken, at the last look */
	bool closed;
};

struct reader {
	struct ring *ring;
	uint64_t at;
	uint32_t rank;
	bool closed;
};

struct shared rings_shared = {.kind = "gasnet.rings", .file = -1};
static struct writer *writers; /* by rank */
static struct memory *own;
static struct reader *readers, *reader_of_payload;
static unsigned reader_count, reader_next;

/* --- the memory */

/* Which of that rank's rings belongs to this other one; `other` may be the number of ranks. */
static unsigned ring_index(uint32_t rank, uint32_t other)
{
	unsigned index = 0;

	for (uint32_t i = 0; i < other; i++)
		index += i != rank && gasnet.ranks[i].host == gasnet.ranks[rank].host;
	return index;
}

static size_t memory_size(void)
{
	size_t size =
		sizeof(struct memory) + ring_index(gasnet.rank, gasnet.size) * sizeof(struct ring);

	return (size + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
}

static void bell_open(void)
{
	const ptl_me_t me = {
		.ct_handle = PTL_CT_NONE,
		.uid = gasnet.uid,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
		.match_id = {.rank = PTL_RANK_ANY},
		.match_bits = BELL,
	};
	ptl_handle_me_t entry;

	must(PtlMEAppend(gasnet.ni, PORTAL_BARRIER, &me, PTL_PRIORITY_LIST, NULL, &entry));
}

void rings_open(void)
{
	void *memory = shared_take(&rings_shared, memory_size());

	writers = calloc(gasnet.size, sizeof(*writers));
	readers = calloc(gasnet.size, sizeof(*readers));
	if (!writers || !readers)
		fatal("there is no memory for %u ranks: start fewer on this host", gasnet.size);
	for (uint32_t i = 0; i < gasnet.size; i++)
		lock_make(writers[i].lock);
	if (memory == MAP_FAILED)
		return;
	own = memory;
	bell_open();
	for (uint32_t i = 0; i < gasnet.size; i++) {
		if (!is_neighbour(i))
			continue;
		readers[reader_count] =
			(struct reader){.ring = &own->rings[reader_count], .rank = i};
		reader_count++;
	}
}

void ring_share(uint32_t rank, const char *name)
{
	struct writer *writer = &writers[rank];
	void *memory = is_neighbour(rank) ? shared_map(rings_shared.kind, name, memory_size())
					  : MAP_FAILED;

	if (memory == MAP_FAILED)
		return;
	writer->memory = memory;
	writer->ring = &writer->memory->rings[ring_index(rank, gasnet.rank)];
}

/* --- writing */

bool ring_is_open(uint32_t rank)
{
	const struct writer *writer = &writers[rank];

	return writer->ring && !__atomic_load_n(&writer->closed, __ATOMIC_RELAXED);
}

uint64_t ring_released(uint32_t rank)
{
	const struct ring *ring = writers[rank].ring;

	return ring ? __atomic_load_n(&ring->released, __ATOMIC_RELAXED) : 0;
}

static uint64_t *word_at(struct ring *ring, uint64_t at)
{
	return (uint64_t *)(void *)&ring->cells[at % RING_BYTES];
}

static size_t record_size(enum kind kind, unsigned count, size_t payload)
{
	size_t size = sizeof(struct record) + payload +
		      wire_head(kind == KIND_LONG ? KIND_LONG_PACKED : kind, count);

	return (size + CELL - 1) / CELL * CELL;
}

/* Whether the ring has that much room, and the next record's first word. */
static bool has_room(struct writer *writer, size_t size)
{
	uint64_t most = RING_BYTES - CELL - size, taken;

	if (writer->at - writer->taken <= most)
		return true;
	taken = __atomic_load_n(&writer->ring->taken, __ATOMIC_ACQUIRE);
	if (taken % CELL != 0 || writer->at - taken > writer->at - writer->taken) {
		complain("rank %u %s the memory that it shares with this rank: messages to it go "
			 "through Portals from now on, which is slower",
			(unsigned)(writer - writers),
			taken == CLOSED ? "takes no more messages from" : "has damaged");
		__atomic_store_n(&writer->closed, true, __ATOMIC_RELAXED);
		return false;
	}
	writer->taken = taken;
	return writer->at - taken <= most;
}

static void record_fill(struct record *record, const struct outgoing *out, bool copied)
{
	enum kind kind = out->kind == KIND_LONG ? KIND_LONG_PACKED : out->kind;
	size_t head = wire_head(kind, out->count);
	uint64_t address = (uintptr_t)out->destination;

	record->credits = out->credits;
	record->copied = copied;
	memcpy(record->bytes, out->arguments, out->count * sizeof(*out->arguments));
	if (kind == KIND_LONG_PACKED)
		memcpy(record->bytes + head - sizeof(address), &address, sizeof(address));
	if (out->length > 0 && !copied)
		memcpy(record->bytes + head, out->source, out->length);
}

/* R4. */
static void reader_wake(const struct writer *writer)
{
	uint32_t *asleep = &writer->memory->asleep;

	if (!__atomic_load_n(asleep, __ATOMIC_SEQ_CST) ||
		!__atomic_exchange_n(asleep, 0, __ATOMIC_SEQ_CST))
		return;
	must(PtlPut(gasnet.small, 0, 0, PTL_NO_ACK_REQ,
		(ptl_process_t){.rank = (uint32_t)(writer - writers)}, PORTAL_BARRIER, BELL, 0,
		NULL, 0));
}

/* Returns false if there is no room. */
static bool record_put(struct writer *writer, const struct outgoing *out, bool copied)
{
	struct ring *ring = writer->ring;
	size_t size = record_size(out->kind, out->count, copied ? 0 : out->length);
	size_t left = RING_BYTES - writer->at % RING_BYTES;
	size_t skipped = size > left ? left : 0;
	uint64_t *first = word_at(ring, writer->at), *word = word_at(ring, writer->at + skipped);
	uint64_t bits = wire_bits(out->request, out->kind, out->count, out->handler, out->length);

	if (!has_room(writer, skipped + size + (out->request ? REPLIES : 0)))
		return false;
	writer->at += skipped + size;
	record_fill((struct record *)(void *)word, out, copied);
	__atomic_store_n(word_at(ring, writer->at), 0, __ATOMIC_RELAXED);
	if (skipped > 0)
		__atomic_store_n(word, bits, __ATOMIC_RELEASE);
	/* With the order that R4 needs. */
	(void)__atomic_exchange_n(first, skipped > 0 ? SKIP : bits, __ATOMIC_SEQ_CST);
	return true;
}

bool ring_put(const struct outgoing *out, bool copied)
{
	struct writer *writer = &writers[out->to];
	bool fits;

	lock(writer->lock);
	fits = record_put(writer, out, copied);
	unlock(writer->lock);
	if (fits)
		reader_wake(writer);
	return fits;
}

/* --- reading. Positions change under the poll lock, and are looked at without it. */

static uint64_t word_now(const struct reader *reader)
{
	uint64_t at = __atomic_load_n(&reader->at, __ATOMIC_RELAXED);

	return __atomic_load_n(word_at(reader->ring, at), __ATOMIC_ACQUIRE);
}

static bool is_ready(const struct reader *reader)
{
	return !__atomic_load_n(&reader->closed, __ATOMIC_RELAXED) && word_now(reader) != 0;
}

bool rings_ready(void)
{
	for (unsigned i = 0; i < reader_count; i++)
		if (is_ready(&readers[i]))
			return true;
	return false;
}

static void reader_tell(struct reader *reader)
{
	__atomic_store_n(&reader->ring->taken, reader->at, __ATOMIC_RELEASE);
}

/* A long's data; returns false for nonsense. */
static bool data_take(struct message *message, const uint8_t *data, bool copied)
{
	uint64_t address;

	memcpy(&address, data - sizeof(address), sizeof(address));
	message->payload = (void *)(uintptr_t)address;
	message->kind = KIND_LONG;
	if (!segment_has(gasnet.rank, message->payload, message->length))
		return false;
	if (!copied && message->length > 0)
		memcpy(message->payload, data, message->length);
	return true;
}

/* R2. Returns the size of a record, which has `room` bytes at most, or 0: it is nonsense. */
static size_t record_read(
	struct record *record, uint64_t word, size_t room, struct message *message)
{
	bool copied = record->copied;
	size_t most = copied ? LONG_MAX : MEDIUM_MAX, size;
	enum kind kind;
	uint8_t *payload;

	wire_read(word, message);
	kind = (enum kind)message->kind;
	if (kind == KIND_LONG_PACKED)
		most = MESSAGE_MAX;
	else if (kind == KIND_SHORT)
		most = 0;
	if (!(word & WIRE_MESSAGE) || message->count > ARGUMENTS_MAX || message->length > most ||
		(kind == KIND_LONG ? !copied : copied && kind != KIND_LONG_PACKED))
		return 0;
	size = record_size(kind, message->count, copied ? 0 : message->length);
	if (size > room)
		return 0;
	message->credits = message->request ? (uint8_t)wire_credits(kind) : record->credits;
	memcpy(message->arguments, record->bytes, message->count * sizeof(*message->arguments));
	payload = record->bytes +
		  wire_head(kind == KIND_LONG ? KIND_LONG_PACKED : kind, message->count);
	message->payload = payload;
	if (kind >= KIND_LONG && !data_take(message, payload, copied))
		return 0;
#ifndef GASNET_SEQ
	if (kind == KIND_MEDIUM) { /* G5 */
		memcpy(message->bytes, payload, message->length);
		message->payload = message->bytes;
	}
#endif
	return size;
}

static void reader_go(struct reader *reader, size_t bytes)
{
	__atomic_store_n(&reader->at, reader->at + bytes, __ATOMIC_RELAXED);
}

/* A message of a ring that is ready; returns false if there is only nonsense. */
static bool reader_take(struct reader *reader, struct message *message)
{
	uint64_t word = word_now(reader);
	size_t at = reader->at % RING_BYTES, size = 0;

	if (word == SKIP && at > 0) {
		reader_go(reader, RING_BYTES - at);
		word = word_now(reader);
		at = 0;
	}
	message->from = reader->rank;
	message->ring = true;
	size = record_read(
		(struct record *)(void *)&reader->ring->cells[at], word, RING_BYTES - at, message);
	if (size == 0) {
		complain(
			"rank %u has damaged the memory that it shares with this rank, which takes "
			"no more messages from there: look for writes outside of arrays in rank %u",
			reader->rank, reader->rank);
		__atomic_store_n(&reader->closed, true, __ATOMIC_RELAXED);
		__atomic_store_n(&reader->ring->taken, CLOSED, __ATOMIC_RELEASE);
		return false;
	}
	reader_go(reader, size);
	return true;
}

/* Neighbours take turns, so that one whose ring is never empty holds up no other one. */
bool rings_take(struct message *message)
{
	for (unsigned i = 0; i < reader_count; i++) {
		struct reader *reader = &readers[reader_next];

		reader_next = (reader_next + 1) % reader_count;
		if (is_ready(reader) && reader_take(reader, message)) {
#ifdef GASNET_SEQ
			reader_of_payload = reader;
#else
			reader_tell(reader);
#endif
			return true;
		}
	}
	return false;
}

void rings_done(void)
{
	if (reader_of_payload)
		reader_tell(reader_of_payload);
	reader_of_payload = NULL;
}

void ring_release(uint32_t rank, unsigned credits)
{
	uint64_t *released = &own->rings[ring_index(gasnet.rank, rank)].released;

#ifdef GASNET_SEQ
	__atomic_store_n(released, *released + credits, __ATOMIC_RELAXED);
#else
	(void)__atomic_add_fetch(released, credits, __ATOMIC_RELAXED);
#endif
}

void rings_sleep(bool asleep)
{
	if (own)
		__atomic_store_n(&own->asleep, asleep, __ATOMIC_SEQ_CST);
}
