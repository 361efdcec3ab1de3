/* SPDX-License-Identifier: BSD-3-Clause */
/* message_rig.c - see message_rig.h. */
#include "message_rig.h"

#include <host/inspection.h>

static const struct words words = {.entry = "entry",
	.region = "region",
	.queue = "queue",
	.entries = "entries",
	.regions = "regions",
	.queues = "queues",
	.options = &(const struct option_word){0, NULL}};
static const struct topic topics[] = {{"port", NULL, "the device", false, tell_port}};
static struct front front = {.name = "Messages",
	.start = "front_open",
	.closed = -2,
	.topics = topics,
	.topic_count = 1,
	.words = &words};

struct messages *ends[2];
struct process ids[2];
uint64_t words_told[2];
bool hostile;
uint32_t spare;
uint64_t block;
void (*letter_ended)(struct letter *letter);
void (*part_taken)(struct transfer *many, const struct transfer *message);
struct unexpected *shown;

static void letter_done(void *owner, struct transfer *message)
{
	(void)owner;
	((struct letter *)(void *)message)->done++;
	if (letter_ended)
		letter_ended((struct letter *)(void *)message);
}

static void part_came(void *owner, struct transfer *many, const struct transfer *message)
{
	(void)owner;
	part_taken(many, message);
}

void word_told(void *owner, uint32_t peer, uint64_t word)
{
	(void)owner;
	words_told[peer] = word;
}

static void peer_failed(void *owner, uint32_t peer, const char *why)
{
	(void)owner;
	if (!hostile || peer != 1)
		fail_msg("peer %u %s", peer, why);
}

void ends_open_as(bool strangers, uint64_t memory, uint32_t headers, uint32_t eager)
{
	const char *progress = getenv("TEST_PROGRESS");
	const char *fault = getenv("TEST_FAULT");
	const struct segment_limits none = {0};

	setenv("PTL_IFACE_NAME", "loop:m;loop:m", 1);
	setenv("PTL_PROGRESS", progress ? progress : "inline", 1);
	if (fault)
		setenv("PTL_FAULT", fault, 1);
	else
		unsetenv("PTL_FAULT");
	assert_int_equal(front_open(&front), ANSWER_OK);
	for (unsigned i = 0; i < 2; i++) {
		library_lock();
		assert_int_equal(interface_open(&front, i, 10 + i, &none), ANSWER_OK);
		library_unlock();
		ids[i] = interfaces[i].self;
	}
	for (unsigned i = 0; i < 2; i++) {
		const struct messages_options options = {
			.front = &front,
			.interface = atomic_load(&interfaces[i].handle),
			.space = 1,
			.classes = 2,
			.peers = strangers ? NULL : ids,
			.count = 2,
			.self = i,
			.eager = eager,
			.memory = memory + (uint64_t)(headers + spare) * KEPT_BYTES,
			.block = block,
			.headers = headers,
			.spare = spare,
			.done = letter_done,
			.part = part_came,
			.told = word_told,
			.failed = peer_failed,
		};

		assert_int_equal(messages_open(&options, &ends[i]), ANSWER_OK);
	}
	for (unsigned i = 0; strangers && i < 2; i++)
		for (uint32_t peer = 0; peer < 2; peer++) {
			uint32_t rank;

			assert_true(messages_admit(ends[i], ids[peer], &rank));
			assert_int_equal(rank, peer);
		}
	for (unsigned i = 0; strangers && i < 2; i++)
		messages_join(ends[i], 1 - i, messages_name(ends[1 - i], i));
	/* A visit that does not end would hold up a thread that closes the interface. */
	assert_int_equal(visitor_self->inside, 0);
}

void ends_open(uint64_t memory, uint32_t headers)
{
	ends_open_as(false, memory, headers, EAGER);
}

int setup(void **state)
{
	(void)state;
	ends_open(4 << 20, 1 << 16);
	return 0;
}

int teardown(void **state)
{
	(void)state;
	if (!ends[0])
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		messages_close(ends[i]);
		ends[i] = NULL;
	}
	front_close(&front);
	return 0;
}

bool letter_look(void *context)
{
	return ((const struct letter *)context)->done != 0;
}

bool nothing_flies(void *context)
{
	const struct messages *end = context;

	return messages_flying(end) == 0;
}

bool nothing_pends(void *context)
{
	return messages_pending(context) == 0;
}

bool nothing_is_shown(void *context)
{
	const struct messages *end = context;

	return list_empty(&end->unexpected);
}

void settle(bool (*look)(void *context), void *context)
{
	uint64_t start = library_now();

	while (!look(context)) {
		if (messages_progress(ends[0]) + messages_progress(ends[1]) == 0)
			nap();
		assert_true(library_now() - start < SECONDS);
	}
}

void letter_settle(struct letter *letter)
{
	settle(letter_look, letter);
	assert_int_equal(letter->done, 1);
}

void fetches_let(unsigned end, bool served)
{
	struct command command = {.kind = served ? COMMAND_PORTAL_ENABLE : COMMAND_PORTAL_DISABLE};

	command.object.index = PORTAL_SIDE;
	end_visit(end);
	assert_int_equal(visit_call(&ends[end]->visit, &command, NULL, NULL), ANSWER_OK);
	visit_leave(&ends[end]->visit);
}

void post_send(struct letter *letter, unsigned from, uint64_t bits, const void *data,
	uint64_t length, bool synchronous)
{
	letter->done = 0;
	messages_send(ends[from], &letter->message, 1 - from,
		&(const struct send_wish){.bits = bits,
			.buffer = data,
			.length = length,
			.synchronous = synchronous});
}

void post_receive(struct letter *letter, unsigned at, uint64_t bits, uint64_t ignore, void *data,
	uint64_t room)
{
	const struct receive_wish wish = {
		.peer = PEER_ANY, .bits = bits, .ignore = ignore, .buffer = data, .room = room};

	letter->done = 0;
	messages_receive_wish(ends[at], &letter->message, &wish);
}

void send_as(struct letter *letter, unsigned from, uint32_t to, const struct send_wish *wish)
{
	letter->done = 0;
	messages_send(ends[from], &letter->message, to, wish);
}

void receive_as(struct letter *letter, unsigned at, const struct receive_wish *wish)
{
	letter->done = 0;
	messages_receive_wish(ends[at], &letter->message, wish);
}

bool probe_from(uint32_t peer, uint64_t bits, struct message_found *found)
{
	return messages_probe_wish(
		ends[1], &(struct receive_wish){.peer = peer, .bits = bits}, found);
}

struct unexpected *take_from(uint32_t peer, uint64_t bits, struct message_found *found)
{
	return messages_take(ends[1], &(struct receive_wish){.peer = peer, .bits = bits}, found);
}

void fill(char *data, uint64_t length, unsigned seed)
{
	for (uint64_t i = 0; i < length; i++)
		data[i] = (char)(seed + i * 7 + (i >> 8));
}

/* M5, M12. All that counts in a share has been taken, and each of it once. */
static void credit_is_even(void)
{
	for (unsigned end = 0; end < 2; end++)
		assert_int_equal(peer_kept(&ends[end]->peers[1 - end]),
			ends[1 - end]->peers[end].credit.taken);
}

void lengths_arrive(void)
{
	static const uint64_t lengths[] = {0, 1, EAGER, EAGER + 1, LONG};
	static char sent[LONG], got[LONG];
	struct letter out, in;

	for (unsigned n = 0; n < 5 * 8; n++) {
		uint64_t length = lengths[n / 8];
		bool posted = n & 1, synchronous = n & 2;
		unsigned to = n >> 2 & 1;

		fill(sent, length, n);
		memset(got, 0, sizeof(got));
		if (posted)
			post_receive(&in, to, n, 0, got, sizeof(got));
		post_send(&out, 1 - to, n, sent, length, synchronous);
		if (!posted) {
			settle(nothing_flies, ends[1 - to]);
			assert_int_equal(out.done, length <= EAGER && !synchronous);
			post_receive(&in, to, n, 0, got, sizeof(got));
		}
		letter_settle(&in);
		letter_settle(&out);
		settle(nothing_pends, ends[1 - to]);
		assert_int_equal(in.message.result, TRANSFER_DONE);
		assert_int_equal(in.message.length, length);
		assert_int_equal(in.message.whole, length);
		assert_int_equal(in.message.peer, 1 - to);
		assert_int_equal(in.message.bits, n);
		assert_memory_equal(got, sent, length);
		credit_is_even();
	}
}

void end_visit(unsigned end)
{
	assert_int_equal(
		front_visit(&front, &ends[end]->visit, ends[end]->handle, HANDLE_INTERFACE, -1), 0);
}

bool message_shown(void *context)
{
	shown = messages_show(context, EAGER);
	return shown != NULL;
}

static bool probe_found(void *context)
{
	return ((const struct probe *)context)->found;
}

void forge(struct move move, const struct rma_line line)
{
	struct probe probe = {.kind = ITEM_PROBE};
	struct rma_line named = line;

	named.user = item_name(&probe);
	end_visit(1);
	rma_command_post(ends[1], &move, &named, 0);
	visit_leave(&ends[1]->visit);
	settle(probe_found, &probe);
}
