/* SPDX-License-Identifier: BSD-3-Clause */
/* test_rings.c - rings between ranks of a host, one process for all ranks.
 *
 *     gasnet_rings [SEED]
 *
 * Rank 0 reads, ranks 1 and 2 write: all kinds of messages, at all places of a ring; replies where
 * requests find no room; the event that wakes a reader which has said that it sleeps; and nonsense
 * in every word that the other end reads, after which the others' messages still come.
 *
 * Covers: lib/gasnet/rings.c.
 */
#define RING_BYTES 16384u
#include "../../lib/gasnet/rings.c"

#include <stdarg.h>
#include <stdio.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			_Exit(1);                                                                  \
		}                                                                                  \
	} while (0)
#define RANKS  3u
#define MANY   20000u
#define TRASHY 4000u

struct gasnet gasnet;
static struct rank ranks[RANKS];
static uint8_t segment[8192], *memory;
static unsigned complaints, bells;
static uint64_t chance = 1;
static const gasnet_handlerarg_t nothing[1];
static struct writer ends[RANKS]; /* of ranks 1 and 2, to rank 0 */

/* --- what rings.c needs */

void complain(const char *format, ...)
{
	(void)format;
	complaints++;
}

void fatal(const char *format, ...)
{
	fprintf(stderr, "%s\n", format);
	_Exit(1);
}

void must_be(int code, const char *call)
{
	(void)call;
	CHECK(code == PTL_OK);
}

bool is_neighbour(uint32_t rank)
{
	return rank != gasnet.rank;
}

bool segment_has(uint32_t rank, const void *address, size_t length)
{
	uintptr_t offset = (uintptr_t)address - (uintptr_t)segment;

	CHECK(rank == 0);
	return length <= sizeof(segment) && offset <= sizeof(segment) - length;
}

void *shared_take(struct shared *shared, uintptr_t size)
{
	(void)shared;
	memory = aligned_alloc(CELL, size);
	CHECK(memory);
	memset(memory, 0, size);
	return memory;
}

void *shared_map(const char *kind, const char *name, uintptr_t size)
{
	(void)kind;
	(void)name;
	(void)size;
	return memory;
}

int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
	ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle)
{
	(void)ni_handle, (void)me, (void)ptl_list, (void)user_ptr, (void)me_handle;
	CHECK(pt_index == PORTAL_BARRIER);
	return PTL_OK;
}

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data)
{
	(void)md_handle, (void)local_offset, (void)ack_req, (void)match_bits;
	(void)remote_offset, (void)user_ptr, (void)hdr_data;
	CHECK(length == 0 && target_id.rank == 0 && pt_index == PORTAL_BARRIER);
	bells++;
	return PTL_OK;
}

/* --- helpers */

static unsigned random_below(unsigned below)
{
	chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((chance >> 33) % below);
}

/* Rank 0's memory, and the other ranks' ends of its rings. */
static void begin(void)
{
	gasnet.size = RANKS;
	gasnet.ranks = ranks;
	gasnet.rank = 0;
	free(memory);
	free(writers);
	free(readers);
	reader_count = reader_next = 0;
	reader_of_payload = NULL;
	complaints = bells = 0;
	rings_open();
	CHECK(reader_count == RANKS - 1);
	for (gasnet.rank = 1; gasnet.rank < RANKS; gasnet.rank++) {
		ring_share(0, "");
		ends[gasnet.rank] = writers[0];
	}
	gasnet.rank = 0;
	CHECK(ends[1].ring != ends[2].ring);
}

static bool put_as(unsigned rank, const struct outgoing *out, bool copied)
{
	bool fits;

	writers[0] = ends[rank];
	fits = ring_put(out, copied);
	ends[rank] = writers[0];
	return fits;
}

static void arguments_fill(gasnet_handlerarg_t arguments[ARGUMENTS_MAX], unsigned number)
{
	for (unsigned i = 0; i < ARGUMENTS_MAX; i++)
		arguments[i] = (gasnet_handlerarg_t)(number * 17 + i);
}

static uint8_t byte_of(unsigned number, size_t at)
{
	return (uint8_t)(number * 31 + at * 7);
}

/* The message of that number, whatever it is. */
static bool send_number(unsigned rank, unsigned number)
{
	static const size_t lengths[] = {0, 1, 15, 16, 48, 200, 1999, 2048};
	gasnet_handlerarg_t arguments[ARGUMENTS_MAX];
	uint8_t source[MEDIUM_MAX];
	enum kind kind = (enum kind)(number % 4);
	struct outgoing out = {.kind = kind,
		.request = number % 3 > 0,
		.handler = (uint8_t)number,
		.credits = 1,
		.source = source,
		.length = kind == KIND_SHORT ? 0 : lengths[number / 4 % 8],
		.destination = segment + rank * MEDIUM_MAX,
		.count = number % (ARGUMENTS_MAX + 1),
		.arguments = arguments};

	arguments_fill(arguments, number);
	for (size_t i = 0; i < out.length; i++)
		source[i] = byte_of(number, i);
	if (kind != KIND_LONG)
		return put_as(rank, &out, false);
	out.length *= 2; /* more than a record has room for */
	return put_as(rank, &out, true);
}

static void number_check(const struct message *message, unsigned number)
{
	gasnet_handlerarg_t arguments[ARGUMENTS_MAX];
	const uint8_t *bytes = message->payload;

	arguments_fill(arguments, number);
	CHECK(message->ring && message->request == (number % 3 > 0));
	CHECK(message->handler == (uint8_t)number && message->count == number % 17);
	CHECK(memcmp(message->arguments, arguments, message->count * 4) == 0);
	CHECK(message->credits == (message->request && number % 4 == KIND_LONG ? 2 : 1));
	if (number % 4 == KIND_SHORT)
		return;
	CHECK(message->kind == (number % 4 == KIND_MEDIUM ? KIND_MEDIUM : KIND_LONG));
	CHECK(number % 4 != KIND_MEDIUM || (uintptr_t)bytes % PAYLOAD_ALIGN == 0);
	CHECK(number % 4 == KIND_MEDIUM || bytes == segment + message->from * MEDIUM_MAX);
	if (number % 4 == KIND_LONG)
		return;
	for (size_t i = 0; i < message->length; i++)
		CHECK(bytes[i] == byte_of(number, i));
}

static struct message message; /* of all readers */

/* Takes a message, if there is one. */
static bool take(void)
{
	bool taken = rings_ready() && rings_take(&message);

	rings_done();
	return taken;
}

/* --- tests */

/* Every message comes once, in its ring's order, and both writers find room. */
static void all_come(void)
{
	unsigned sent[RANKS] = {0}, taken[RANKS] = {0}, refusals = 0;

	begin();
	while (taken[1] + taken[2] < MANY) {
		unsigned rank = 1 + random_below(2);

		if (random_below(2) && sent[rank] < MANY / 2) {
			/* A long that is packed goes to one place, where one is at a time. */
			bool waits = sent[rank] % 4 == KIND_LONG_PACKED && taken[rank] < sent[rank];

			if (!waits && send_number(rank, sent[rank]))
				sent[rank]++;
			else
				refusals++;
		} else if (rings_ready() && rings_take(&message)) {
			number_check(&message, taken[message.from]++);
			rings_done();
		}
	}
	CHECK(!rings_ready() && refusals > 0 && complaints == 0 && bells == 0);
	CHECK(ends[1].at > 8 * RING_BYTES);
}

static bool put_short(unsigned rank, bool request)
{
	const struct outgoing out = {
		.kind = KIND_SHORT, .request = request, .handler = 200, .arguments = nothing};

	return put_as(rank, &out, false);
}

static void replies_have_room(void)
{
	unsigned requests = 0, replies = 0, count = 0;

	begin();
	while (put_short(1, true))
		requests++;
	while (put_short(1, false))
		replies++;
	CHECK(requests == (RING_BYTES - REPLIES) / CELL - 1 && replies == REPLIES / CELL);
	CHECK(put_short(2, true));
	while (take())
		count++;
	CHECK(count == requests + replies + 1);
	CHECK(put_short(1, true) && take());
}

/* Nothing is written over a payload that a handler reads. */
static void payloads_stay(void)
{
	const unsigned number = 4 * 6 + KIND_MEDIUM;

	begin();
	CHECK(send_number(1, number));
	while (put_short(1, false))
		continue;
	CHECK(rings_take(&message));
	while (put_short(1, false))
		continue;
	number_check(&message, number);
	rings_done();
	CHECK(take() && put_short(1, false));
}

static void credits_come_back(void)
{
	begin();
	ring_release(2, 1);
	ring_release(2, 2);
	writers[0] = ends[2];
	CHECK(ring_released(0) == 3);
	writers[0] = ends[1];
	CHECK(ring_released(0) == 0);
}

static void sleepers_wake(void)
{
	begin();
	rings_sleep(true);
	CHECK(!rings_ready());
	CHECK(put_short(1, true) && bells == 1 && rings_ready());
	CHECK(put_short(2, true) && bells == 1);
	rings_sleep(true);
	rings_sleep(false);
	CHECK(put_short(2, true) && bells == 1);
}

/* Rank 1's ring is closed, with one line, and rank 2's goes on. */
static void closed_check(void)
{
	while (take())
		CHECK(message.from != 0);
	CHECK(complaints == 1 && readers[0].closed);
	CHECK(put_short(1, true) && put_short(2, true));
	CHECK(take() && message.from == 2 && !take() && complaints == 1);
	/* The writer hears of it when it looks for room. */
	for (unsigned i = 0; i < RING_BYTES / CELL && put_short(1, true); i++)
		continue;
	writers[0] = ends[1];
	CHECK(!ring_is_open(0) && complaints == 2);
}

static void words_of_nonsense(void)
{
	static const uint8_t bytes[MEDIUM_MAX];
	const uint64_t outside = (uintptr_t)segment + sizeof(segment) - 15;
	const struct {
		uint64_t word, address;
		bool copied;
	} words[] = {
		{SKIP, 0, false}, /* at the start */
		{2, 0, false},    /* no message */
		{wire_bits(true, KIND_SHORT, ARGUMENTS_MAX + 1, 128, 0), 0, false},
		{wire_bits(true, KIND_SHORT, 31, 128, 0), 0, false},
		{wire_bits(true, KIND_SHORT, 0, 128, 1), 0, false},
		{wire_bits(true, KIND_SHORT, 0, 128, 0), 0, true},
		{wire_bits(true, KIND_MEDIUM, 0, 128, MEDIUM_MAX + 1), 0, false},
		{wire_bits(true, KIND_MEDIUM, 0, 128, 16), 0, true},
		{wire_bits(true, KIND_MEDIUM, 0, 128, WIRE_LENGTH), 0, false},
		{wire_bits(true, KIND_LONG, 0, 128, 16), (uintptr_t)segment, false},
		{wire_bits(true, KIND_LONG, 0, 128, 16), outside, true},
		{wire_bits(true, KIND_LONG, 0, 128, WIRE_LENGTH), (uintptr_t)segment, true},
		{wire_bits(true, KIND_LONG_PACKED, 0, 128, 16), outside, false},
		{wire_bits(true, KIND_LONG_PACKED, 0, 128, 16), 8, false},
		{UINT64_MAX, 0, true},
	};
	const struct outgoing out = {
		.kind = KIND_MEDIUM, .source = bytes, .length = MEDIUM_MAX, .arguments = nothing};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct record *record;

		begin();
		record = (struct record *)(void *)ends[1].ring->cells;
		CHECK(put_as(1, &out, false));
		record->copied = words[i].copied;
		memcpy(record->bytes, &words[i].address, sizeof(words[i].address));
		record->word = words[i].word;
		closed_check();
	}
}

/* A record that would go beyond the ring's end. */
static void beyond_the_end(void)
{
	begin();
	for (unsigned i = 0; i < RING_BYTES / CELL - 1; i++)
		CHECK(put_short(1, true) && take());
	CHECK(put_short(1, true));
	*word_at(ends[1].ring, readers[0].at) = wire_bits(true, KIND_MEDIUM, 0, 128, CELL);
	closed_check();
}

static void positions_of_nonsense(void)
{
	for (unsigned way = 0; way < 4; way++) {
		unsigned i = 0;

		begin();
		while (put_short(1, false))
			i++;
		while (i-- > 1)
			CHECK(take());
		while (put_short(1, false)) /* to look at the position once more */
			continue;
		ends[1].ring->taken += way == 0   ? UINT64_C(1) << 40
				       : way == 1 ? 1
				       : way == 2 ? UINT64_MAX / CELL * CELL
						  : RING_BYTES;
		CHECK(!put_short(1, false) && complaints == 1);
		writers[0] = ends[1];
		CHECK(!ring_is_open(0));
		writers[0] = ends[2];
		CHECK(ring_is_open(0) && put_short(2, true));
	}
}

/* Trash of all kinds anywhere in rank 1's ring. */
static void trash(void)
{
	for (unsigned i = 0; i < TRASHY; i++) {
		unsigned messages = random_below(40), count = 1 + random_below(30);
		uint8_t *bytes;

		begin();
		bytes = (uint8_t *)ends[1].ring;
		for (unsigned k = 0; k < messages; k++)
			(void)send_number(1, random_below(1000));
		while (count-- > 0)
			bytes[random_below(i % 2 ? 512 : sizeof(struct ring))] =
				(uint8_t)(random_below(2) ? random_below(256)
							  : 1u << random_below(8));
		for (unsigned k = 0; k < 1000 && take(); k++)
			CHECK(message.from == 1 && message.count <= ARGUMENTS_MAX);
		(void)send_number(1, i);
		CHECK(put_short(2, true));
		for (unsigned k = 0; k < 1000 && take() && message.from != 2; k++)
			continue;
		CHECK(message.from == 2 && complaints <= 2);
	}
}

int main(int argc, char **argv)
{
	chance = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	all_come();
	replies_have_room();
	payloads_stay();
	credits_come_back();
	sleepers_wake();
	words_of_nonsense();
	beyond_the_end();
	positions_of_nonsense();
	trash();
	return 0;
}
