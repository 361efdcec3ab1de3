/* SPDX-License-Identifier: BSD-3-Clause */
/* test_many.c - receives whose buffer takes many messages.
 * Covers: lib/messages/many.c. */
#include "message_rig.h"

enum { PARTS = 4000, ROOM = 8 * EAGER, MANY_LEAST = 100 };
static uint64_t part_lengths[PARTS];
static bool part_here[PARTS];
static unsigned parts_here, parts_cut;

static bool memory_ends; /* there is none for what fetches a part */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return memory_ends && size == sizeof(struct part) ? NULL : __real_malloc(size);
}

/* A buffer, and where the last message that was placed in it ends. */
struct shared {
	struct letter letter; /* first */
	struct many many;
	char memory[ROOM];
	uint32_t parts;
};

static void part_fill(char *data, uint64_t length, unsigned n)
{
	fill(data, length, n * 13 + 5);
}

static void parts_take(struct transfer *many, const struct transfer *message)
{
	struct shared *shared = (struct shared *)(void *)many;
	const uint64_t n = message->data;
	static char wanted[EAGER * 3];

	assert_true(n < PARTS);
	assert_false(part_here[n]);
	assert_int_equal(shared->letter.done, 0);
	part_here[n] = true;
	parts_here++;
	shared->parts++;
	assert_true(shared->parts <= shared->many.most);
	assert_int_equal(message->whole, part_lengths[n]);
	assert_true((char *)message->buffer >= shared->memory);
	assert_true((char *)message->buffer + message->length <= shared->memory + ROOM);
	assert_int_equal(((char *)message->buffer - shared->memory) % 64, 0);
	assert_int_equal(message->result == TRANSFER_CUT, message->length < message->whole);
	parts_cut += message->result == TRANSFER_CUT;
	part_fill(wanted, part_lengths[n], (unsigned)n);
	assert_memory_equal(message->buffer, wanted, message->length);
	memset(message->buffer, 0xee, message->length); /* nobody else's */
}

static void shared_post(struct shared *shared)
{
	const struct receive_wish wish = {.class = 1,
		.peer = PEER_ANY,
		.bits = 7,
		.buffer = shared->memory,
		.room = ROOM,
		.many = &shared->many};

	shared->parts = 0;
	messages_many(&shared->many, ROOM, MANY_LEAST);
	receive_as(&shared->letter, 1, &wish);
}

/* All messages come once, as they were sent, whatever is kept, cut or cancelled. */
static void random_messages_share_buffers(void **state)
{
	enum { BUFFERS = 5 };
	static struct shared buffers[BUFFERS];
	static struct letter out[PARTS];
	static char *data[PARTS];
	unsigned cancelled = 0, used_up = 0;
	uint64_t random = 77;

	(void)state;
	for (unsigned i = 0; i < BUFFERS; i++)
		buffers[i].letter.done = 1;
	part_taken = parts_take;
	parts_here = parts_cut = 0;
	for (unsigned n = 0; n < PARTS; n++) {
		const uint64_t dice = random_next(&random);
		struct shared *shared = &buffers[dice % BUFFERS];

		part_lengths[n] = dice >> 8 & 1 ? (dice >> 16) % 50 : (dice >> 16) % (EAGER * 3);
		part_here[n] = false;
		data[n] = malloc(part_lengths[n] + 1);
		assert_non_null(data[n]);
		part_fill(data[n], part_lengths[n], n);
		send_as(&out[n], 0, 1,
			&(struct send_wish){.class = 1,
				.bits = 7,
				.buffer = data[n],
				.length = part_lengths[n],
				.data = n,
				.marked = true,
				.synchronous = dice >> 9 & 1});
		if (dice >> 10 & 1)
			messages_progress(ends[0]);
		if (dice >> 11 & 1)
			messages_progress(ends[1]);
		if (shared->letter.done == 1)
			shared_post(shared);
		else if ((dice >> 12 & 15) == 0)
			assert_false(messages_cancel(ends[1], &shared->letter.message));
		for (unsigned i = 0; i < BUFFERS; i++)
			if (buffers[i].letter.done == 1 && buffers[i].parts != UINT32_MAX) {
				cancelled += buffers[i].letter.message.result == TRANSFER_WITHDRAWN;
				used_up += buffers[i].letter.message.result == TRANSFER_DONE;
				buffers[i].parts = UINT32_MAX;
			}
	}
	for (uint64_t start = library_now(); parts_here < PARTS;) {
		for (unsigned i = 0; i < BUFFERS; i++)
			if (buffers[i].letter.done == 1) {
				used_up += buffers[i].parts != UINT32_MAX &&
					   buffers[i].letter.message.result == TRANSFER_DONE;
				shared_post(&buffers[i]);
			}
		if (messages_progress(ends[0]) + messages_progress(ends[1]) == 0)
			nap();
		assert_true(library_now() - start < SECONDS);
	}
	for (unsigned n = 0; n < PARTS; n++)
		letter_settle(&out[n]);
	for (unsigned i = 0; i < BUFFERS; i++) {
		if (buffers[i].letter.done == 0)
			assert_false(messages_cancel(ends[1], &buffers[i].letter.message));
		letter_settle(&buffers[i].letter);
	}
	assert_int_equal(ends[1]->parts, 0);
	assert_int_equal(ends[1]->posted, 0);
	assert_true(cancelled > 0);
	assert_true(used_up > 100);
	assert_true(parts_cut > 0);
	for (unsigned n = 0; n < PARTS; n++)
		free(data[n]);
}

/* What comes before a buffer is posted is kept with its header, or fetched. */
static void random_messages_share_buffers_without_blocks(void **state)
{
	ends_open(0, 1 << 16);
	random_messages_share_buffers(state);
	assert_int_equal(ends[1]->blocks_made, 0);
	teardown(state);
}

static bool two_are_here(void *context)
{
	(void)context;
	return parts_here == 2;
}

/* Its sender is not lost, and other messages are as they were sent. */
static void a_message_that_no_memory_is_there_to_fetch_is_cut(void **state)
{
	enum { COUNT = 3 };
	static const uint64_t lengths[COUNT] = {COPIED_MAX, COPIED_MAX + 1, EAGER};
	static struct shared shared;
	static struct letter out[COUNT];
	static char data[COUNT][EAGER];

	ends_open(0, 1 << 16);
	part_taken = parts_take;
	parts_here = parts_cut = 0;
	for (unsigned n = 0; n < COUNT; n++) {
		part_lengths[n] = lengths[n];
		part_here[n] = false;
		part_fill(data[n], lengths[n], n);
	}
	for (unsigned n = 0; n < COUNT; n++) {
		send_as(&out[n], 0, 1,
			&(struct send_wish){.class = 1,
				.bits = 7,
				.buffer = data[n],
				.length = lengths[n],
				.data = n,
				.marked = true,
				.synchronous = n != 0});
		settle(nothing_flies, ends[0]);
		if (n != 1)
			continue;
		memory_ends = true;
		shared_post(&shared);
		settle(two_are_here, NULL);
		memory_ends = false;
	}
	for (unsigned n = 0; n < COUNT; n++)
		letter_settle(&out[n]);
	settle(nothing_pends, ends[0]);
	assert_int_equal(parts_here, COUNT);
	assert_int_equal(parts_cut, 1);
	teardown(state);
}

/* M11. */
static void a_buffer_stays_posted_until_no_byte_of_it_is_free(void **state)
{
	enum { BYTES = PART_UNIT + 1 }; /* the second message begins at the last byte */
	static struct shared shared;
	const struct receive_wish wish = {.class = 1,
		.peer = PEER_ANY,
		.bits = 7,
		.buffer = shared.memory,
		.room = BYTES,
		.many = &shared.many};
	struct letter out;
	char byte;

	(void)state;
	part_taken = parts_take;
	parts_here = 0;
	messages_many(&shared.many, BYTES, 0);
	receive_as(&shared.letter, 1, &wish);
	for (unsigned n = 0; n < 2; n++) {
		part_lengths[n] = 1;
		part_here[n] = false;
		part_fill(&byte, 1, n);
		send_as(&out, 0, 1,
			&(struct send_wish){.class = 1,
				.bits = 7,
				.buffer = &byte,
				.length = 1,
				.data = n,
				.marked = true});
	}
	letter_settle(&shared.letter);
	assert_int_equal(parts_here, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(random_messages_share_buffers),
		CASE(a_buffer_stays_posted_until_no_byte_of_it_is_free),
		CASE_OPEN(random_messages_share_buffers_without_blocks),
		CASE_OPEN(a_message_that_no_memory_is_there_to_fetch_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
