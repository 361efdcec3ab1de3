/* SPDX-License-Identifier: BSD-3-Clause */
/* letters.c - see letters.h. */
#include <sim/letters.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <engine/state.h>
#include <messages/state.h>
#include <p3/interface.h>
#include <sim/granted.h>
#include <sim/model.h>
#include <sim/report.h>
#include <sim/workload.h>
#include <wire/message.h>

#define SPACE        1
#define NUMBER_AT    32 /* match bits: number of the send, sender's rank, tag */
#define RANK_AT      4
#define TAGS         4
#define BITS_TAG     UINT64_C(0xf)
#define BITS_RANK    UINT64_C(0xfffffff0)
#define BITS_NUMBER  UINT64_C(0xffffffff00000000)
#define WORD_AT      32
#define DRAIN        (200 * MICROSECOND) /* between two looks of a rank that has made its steps */
#define SLEEP        (100 * MILLISECOND) /* of rank 0's program, when all was sent or received */
#define CROWD        1750 /* sends that fill a block and all slots of a peer, and not two blocks */
#define CROWD_EAGER  4096
#define LETTERS_ALL  1000000
#define DIVIDED_MOST (UINT64_C(1) << 20)

/* A send or a receive. */
struct letter {
	struct transfer message;
	bool send, synchronous;
	bool arrived; /* a send */
	bool posted;  /* a receive: the poll core has it */
	bool done, cancelled;
	uint32_t number; /* from 1 */
	uint32_t rank;   /* whose it is */
	uint32_t to;     /* of a send */
	uint64_t bits, ignore;
	uint64_t length; /* of the data, or the room */
	uint8_t *data;
	struct letter *partner; /* what the oracle says that it matches */
};

/* What the oracle knows of a rank: letters that wait, in order. */
enum { WAIT_MESSAGES, WAIT_RECEIVES, WAITS };
struct waits {
	struct letter *letters[LETTERS_ALL / 64];
	uint32_t count;
};

struct rank {
	struct messages *messages; /* NULL: it has ended */
	struct node *node;
	uint64_t left;  /* steps */
	uint64_t words; /* that it has told */
	struct waits waits[WAITS];
	struct letter *withdrawn; /* of messages_cancel() that is under way */
	bool withdraws;           /* and the oracle says that it will be taken back */
	struct letter *found;     /* by messages_probe(), says the oracle */
	struct letter ask;        /* its criteria */
	struct letter *last;      /* wildcard receive of the end */
};

struct letters {
	struct simulation *simulation;
	bool asleep;       /* rank 0's program is */
	bool crowded;      /* and there is less memory than rank 1 sends */
	uint64_t wake_at;  /* 0: the rank that sends then still does */
	uint32_t sender;   /* that rank */
	bool again;        /* K7: it is to sleep again */
	uint64_t sleep_at; /* then; 0: it has not received all */
	uint32_t had;      /* K7: headers of rank 1, in its share; 0: it still sends */
	struct prng prng;
	uint64_t interval, size_max;
	uint32_t eager, headers, spare;
	uint64_t memory, block;
	bool divided; /* each rank has memory of its own choice */
	struct process *map;
	struct rank *ranks;
	struct letter **all;
	uint32_t count;
	uint32_t *arrived; /* number of the last message from a rank that another has got */
};

#define FAIL(letters, ...) simulation_fail((letters)->simulation, __VA_ARGS__)

static struct letters *here(void)
{
	return node_current()->simulation->letters;
}

static struct rank *rank_here(void)
{
	return &here()->ranks[node_current()->number];
}

static void letter_wrong(
	struct letters *letters, const struct letter *letter, const char *what, uint64_t value)
{
	FAIL(letters,
		"letters: %s %u of rank %u, bits %#" PRIx64 ", %" PRIu64 " bytes%s: %s (%" PRIu64
		"; the oracle's match is %u)",
		letter->send ? "send" : "receive", letter->number, letter->rank, letter->bits,
		letter->length, letter->synchronous ? ", synchronous" : "", what, value,
		letter->partner ? letter->partner->number : 0);
}

static bool troubled(const struct letters *letters, uint32_t one, uint32_t other)
{
	return letters->simulation->nodes[one].troubled ||
	       letters->simulation->nodes[other].troubled;
}

static bool any_troubled(const struct letters *letters)
{
	for (uint32_t i = 0; i < letters->simulation->node_count; i++)
		if (letters->simulation->nodes[i].troubled)
			return true;
	return false;
}

static uint8_t pattern(uint32_t number, uint64_t at)
{
	return (uint8_t)(prng_mix(number * UINT64_C(0x9e3779b97f4a7c15) + at / 8) >> at % 8 * 8);
}

/* --- the oracle */

static bool letters_match(const struct letter *one, const struct letter *other)
{
	return ((one->bits ^ other->bits) & ~(one->ignore | other->ignore)) == 0;
}

static struct letter *wait_find(const struct waits *waits, const struct letter *letter)
{
	for (uint32_t i = 0; i < waits->count; i++)
		if (letters_match(waits->letters[i], letter))
			return waits->letters[i];
	return NULL;
}

/* Returns whether it was there. */
static bool wait_remove(struct waits *waits, const struct letter *letter)
{
	uint32_t i = 0;

	while (i < waits->count && waits->letters[i] != letter)
		i++;
	if (i == waits->count)
		return false;
	waits->count--;
	memmove(&waits->letters[i], &waits->letters[i + 1],
		(waits->count - i) * sizeof(waits->letters[0]));
	return true;
}

/* A message that has arrived, or a receive that was posted. */
static void oracle_add(struct rank *rank, struct letter *letter)
{
	struct waits *own = &rank->waits[letter->send ? WAIT_MESSAGES : WAIT_RECEIVES];
	struct waits *others = &rank->waits[letter->send ? WAIT_RECEIVES : WAIT_MESSAGES];
	struct letter *partner = wait_find(others, letter);

	if (!partner) {
		own->letters[own->count++] = letter;
		return;
	}
	wait_remove(others, partner);
	letter->partner = partner;
	partner->partner = letter;
}

/* K1 */
void letters_arrived(const struct message_header *header)
{
	struct letters *letters = here();
	uint32_t number = (uint32_t)(header->match_bits >> NUMBER_AT);
	uint32_t me = node_current()->number, *last;
	struct letter *letter;

	if (header->space != SPACE || header->portal != PORTAL_MATCH)
		return;
	if (number == 0 || number > letters->count || !letters->all[number - 1]->send) {
		FAIL(letters, "letters: a message that nobody sent, number %u", number);
		return;
	}
	letter = letters->all[number - 1];
	last = &letters->arrived[letter->rank * letters->simulation->node_count + me];
	if (letter->to != me || letter->arrived || header->match_bits != letter->bits ||
		header->requested != letter->length || *last >= number)
		letter_wrong(letters, letter, "arrives twice, late, or elsewhere", *last);
	*last = number;
	letter->arrived = true;
	oracle_add(rank_here(), letter);
}

void letters_posted(const struct space *space, const struct command *command)
{
	struct letter *letter = (struct letter *)(uintptr_t)command->receive.outcome;

	if (space->number != SPACE || command->receive.portal != PORTAL_MATCH)
		return;
	if (letter->posted)
		letter_wrong(here(), letter, "is posted twice", 0);
	letter->posted = true;
	oracle_add(rank_here(), letter);
}

void letters_asked(const struct command *command)
{
	struct rank *rank = rank_here();

	if (command->space != SPACE)
		return;
	if (command->kind == COMMAND_SEARCH)
		rank->found = wait_find(&rank->waits[WAIT_MESSAGES], &rank->ask);
	if (command->kind == COMMAND_RECEIVE_WITHDRAW && rank->withdrawn)
		rank->withdraws = wait_remove(&rank->waits[WAIT_RECEIVES], rank->withdrawn);
}

void letters_answered(const struct command *command, bool done)
{
	const struct rank *rank = rank_here();

	if (command->space == SPACE && command->kind == COMMAND_RECEIVE_WITHDRAW &&
		rank->withdrawn && done != rank->withdraws)
		letter_wrong(here(), rank->withdrawn, "is taken back, or is not", done);
}

/* --- what the library tells */

static void receive_done(struct letters *letters, const struct letter *letter)
{
	const struct transfer *message = &letter->message;
	const struct letter *from = letter->partner;
	uint64_t length;

	if (!from || message->bits != from->bits || message->peer != from->rank) {
		letter_wrong(letters, letter, "gets another message", message->bits >> NUMBER_AT);
		return;
	}
	/* Withdrawn: its sender had given this rank up, and then the rank asked for the data. */
	if (message->result == TRANSFER_FAILED || message->result == TRANSFER_WITHDRAWN) {
		if (!troubled(letters, letter->rank, from->rank))
			letter_wrong(letters, letter, "fails for no reason", from->rank);
		return;
	}
	length = from->length < letter->length ? from->length : letter->length;
	if (message->length != length || message->whole != from->length ||
		(message->result == TRANSFER_CUT) != (from->length > letter->length))
		letter_wrong(letters, letter, "has another length", message->length);
	for (uint64_t i = 0; i < letter->length; i++)
		if (letter->data[i] != (i < length ? pattern(from->number, i) : POISON)) {
			letter_wrong(letters, letter, "has a wrong byte", i);
			return;
		}
}

/* K3 */
static void send_done(struct letters *letters, struct letter *letter)
{
	if (letter->message.result == TRANSFER_FAILED) {
		if (!troubled(letters, letter->rank, letter->to))
			letter_wrong(letters, letter, "fails for no reason", letter->to);
		return;
	}
	if ((letter->synchronous && !letter->partner) ||
		(letter->length > letters->eager && !letter->arrived))
		letter_wrong(letters, letter, "is done too early", letter->arrived);
	if (letter->length > 0)
		memset(letter->data, POISON, letter->length);
}

static void letter_done(void *owner, struct transfer *message)
{
	struct letter *letter = (struct letter *)(void *)message;
	struct letters *letters = owner;

	if (letter->done || letter->cancelled)
		letter_wrong(letters, letter, "is done twice", letter->cancelled);
	letter->done = true;
	simulation_note(letters->simulation, simulation_now(letters->simulation));
	simulation_note(letters->simulation, (uint64_t)letter->number << 8 | message->result);
	if (letters->simulation->tracing)
		printf("%12" PRIu64 " letters: %s %u of rank %u is done, result %u\n",
			simulation_now(letters->simulation), letter->send ? "send" : "receive",
			letter->number, letter->rank, message->result);
	if (letter->send)
		send_done(letters, letter);
	else
		receive_done(letters, letter);
}

static void word_told(void *owner, uint32_t peer, uint64_t word)
{
	struct letters *letters = owner;

	if (word >> WORD_AT != peer || (uint32_t)word >= letters->ranks[peer].words)
		FAIL(letters, "letters: rank %u is said to have told %#" PRIx64, peer, word);
}

static void peer_failed(void *owner, uint32_t peer, const char *why)
{
	struct letters *letters = owner;
	uint32_t me = node_current()->number;

	if (peer == me || !troubled(letters, me, peer))
		FAIL(letters, "letters: rank %u says that rank %u %s", me, peer, why);
}

/* --- what a rank does */

static struct letter *letter_make(struct rank *rank, uint64_t length)
{
	struct letters *letters = here();
	struct letter *letter = report_memory(calloc(1, sizeof(*letter)));

	if (letters->count == LETTERS_ALL)
		report_stop("there are more than %u letters", LETTERS_ALL);
	letters->all[letters->count++] = letter;
	letter->number = letters->count;
	letter->rank = rank->node->number;
	letter->length = length;
	letter->data = report_memory(malloc(length + 1));
	memset(letter->data, POISON, length + 1);
	return letter;
}

static uint64_t length_choose(struct letters *letters)
{
	if (letters->asleep)
		return prng_below(&letters->prng, letters->eager + 1);
	return prng_chance(&letters->prng, 0.05) ? 0
						 : prng_scale(&letters->prng, 1, letters->size_max);
}

static void send_make(struct rank *rank)
{
	struct letters *letters = here();
	struct letter *letter = letter_make(rank, length_choose(letters));

	letter->send = true;
	letter->synchronous = !letters->asleep && prng_chance(&letters->prng, 0.25);
	if (!letters->asleep)
		letter->to = (uint32_t)prng_below(&letters->prng, letters->simulation->node_count);
	letter->bits = (uint64_t)letter->number << NUMBER_AT | letter->rank << RANK_AT |
		       prng_below(&letters->prng, TAGS);
	for (uint64_t i = 0; i < letter->length; i++)
		letter->data[i] = pattern(letter->number, i);
	messages_send(rank->messages, &letter->message, letter->to,
		&(const struct send_wish){.bits = letter->bits,
			.buffer = letter->data,
			.length = letter->length,
			.synchronous = letter->synchronous});
}

static void criteria_choose(struct letters *letters, struct letter *letter)
{
	uint64_t from = prng_below(&letters->prng, letters->simulation->node_count);

	letter->ignore = BITS_NUMBER;
	if (prng_chance(&letters->prng, 0.4))
		letter->ignore |= BITS_RANK;
	if (prng_chance(&letters->prng, 0.4))
		letter->ignore |= BITS_TAG;
	letter->bits = (from << RANK_AT | prng_below(&letters->prng, TAGS)) & ~letter->ignore;
}

static void receive_post(struct rank *rank, struct letter *letter)
{
	const struct receive_wish wish = {.peer = PEER_ANY,
		.bits = letter->bits,
		.ignore = letter->ignore,
		.buffer = letter->data,
		.room = letter->length};

	messages_receive_wish(rank->messages, &letter->message, &wish);
}

static void receive_make(struct rank *rank)
{
	struct letters *letters = here();
	struct letter *letter = letter_make(rank,
		prng_chance(&letters->prng, 0.7) ? letters->size_max : length_choose(letters));

	criteria_choose(letters, letter);
	receive_post(rank, letter);
}

static void receive_cancel(struct rank *rank, struct letter *letter)
{
	struct letters *letters = here();

	rank->withdrawn = letter;
	letter->cancelled = messages_cancel(rank->messages, &letter->message);
	rank->withdrawn = NULL;
	if (letter->cancelled && letter->partner)
		letter_wrong(letters, letter, "is cancelled after its match", 0);
	for (uint64_t i = 0; letter->cancelled && i < letter->length; i++)
		if (letter->data[i] != POISON)
			letter_wrong(letters, letter, "is cancelled, and has a byte", i);
}

/* Any of the rank's own letters that is under way. */
static void cancel(struct rank *rank)
{
	struct letters *letters = here();

	for (unsigned tries = 0; tries < 20 && letters->count > 0; tries++) {
		struct letter *letter = letters->all[prng_below(&letters->prng, letters->count)];

		if (letter->rank != rank->node->number || letter->done || letter->cancelled)
			continue;
		receive_cancel(rank, letter);
		if (letter->cancelled && letter->send)
			letter_wrong(letters, letter, "is cancelled, although it is a send", 0);
		return;
	}
}

static void probe(struct rank *rank)
{
	struct letters *letters = here();
	struct message_found found;
	bool here_now;

	rank->found = NULL;
	criteria_choose(letters, &rank->ask);
	here_now = messages_probe(rank->messages, rank->ask.bits, rank->ask.ignore, &found);
	if (here_now != (rank->found != NULL) ||
		(here_now && (found.bits != rank->found->bits || found.peer != rank->found->rank ||
				     found.length != rank->found->length)))
		FAIL(letters,
			"letters: rank %u probes for %#" PRIx64 " and finds message %" PRIu64
			", but %u is due",
			rank->node->number, rank->ask.bits, here_now ? found.bits >> NUMBER_AT : 0,
			rank->found ? rank->found->number : 0);
}

static void word_tell(struct rank *rank)
{
	struct letters *letters = here();

	messages_tell(rank->messages,
		(uint32_t)prng_below(&letters->prng, letters->simulation->node_count),
		(uint64_t)rank->node->number << WORD_AT | rank->words++);
}

static void rank_act(struct rank *rank)
{
	double choice = prng_fraction(&here()->prng);

	if ((choice -= 0.42) < 0)
		send_make(rank);
	else if ((choice -= 0.4) < 0)
		receive_make(rank);
	else if ((choice -= 0.06) < 0)
		cancel(rank);
	else if ((choice -= 0.08) < 0)
		probe(rank);
	else
		word_tell(rank);
}

/* The steps are over: a receive at a time takes what is left. */
static void rank_drain(struct rank *rank)
{
	const struct letter *last = rank->last;

	/* A rank that was in trouble may never send what it has promised. */
	if (last && !last->done &&
		!(last->partner && troubled(here(), last->rank, last->partner->rank)))
		return;
	rank->last = letter_make(rank, here()->size_max);
	rank->last->ignore = UINT64_MAX;
	receive_post(rank, rank->last);
}

static void letters_plan(struct letters *letters, struct rank *rank);

/* Rank 0's program receives what its block has, and sleeps again. */
static void block_empty(struct rank *rank)
{
	struct letters *letters = here();

	letters->crowded = false;
	letters->wake_at = simulation_now(letters->simulation) + SLEEP;
	/* The first call hears that the block is full. */
	do {
		struct letter *letter = letter_make(rank, CROWD_EAGER);

		letter->ignore = UINT64_MAX;
		receive_post(rank, letter);
	} while (rank->messages->linked[0] == 0 && rank->waits[WAIT_MESSAGES].count > 0);
}

/* Headers of a rank at rank 0. */
static uint32_t share_at_first(const struct letters *letters, uint32_t rank)
{
	const struct rank *first = &letters->ranks[0];

	return rank < letters->simulation->node_count
		       ? share_now(node_engine(first->node)->spaces[SPACE], rank)
		       : 0;
}

/* K5. Rank 0's program wakes, unless its peer still sends or its sleep goes on. */
static void wake(struct letters *letters)
{
	const uint64_t now = simulation_now(letters->simulation);

	if (letters->ranks[letters->sender].left != 0)
		return;
	if (letters->wake_at == 0)
		letters->wake_at = now + SLEEP;
	if (now < letters->wake_at)
		return;
	if (letters->crowded) {
		block_empty(letters->ranks);
		return;
	}
	letters->asleep = false;
	for (uint32_t i = 0; i < letters->count; i++)
		if (letters->all[i]->send && !letters->all[i]->done)
			letter_wrong(
				letters, letters->all[i], "waits for a program that sleeps", 0);
	if (share_at_first(letters, 2) < letters->had / 2)
		FAIL(letters, "letters: rank 2 has %u headers at rank 0, of %u of silent rank 1",
			share_at_first(letters, 2), letters->had);
}

/* K7. Rank 0's program sleeps again when it has received all, and rank 2 sends. */
static void sleep_again(struct letters *letters)
{
	const struct rank *rank = &letters->ranks[0];
	const uint64_t now = simulation_now(letters->simulation);

	if (!letters->again || rank->waits[WAIT_MESSAGES].count > 0)
		return;
	if (letters->sleep_at == 0)
		letters->sleep_at = now + SLEEP;
	if (now < letters->sleep_at)
		return;
	letters->again = false;
	letters->had = share_at_first(letters, 1);
	letters->sender = 2;
	letters->ranks[2].left = letters->had / 2;
	letters->wake_at = 0;
	letters->asleep = true;
}

/* K6. */
static void memory_check(const struct letters *letters, const struct rank *rank)
{
	const struct messages *messages = rank->messages;
	const struct space *space = node_engine(rank->node)->spaces[SPACE];

	if (messages && granted_bytes(messages, space) > granted_most(messages))
		FAIL(letters,
			"letters: rank %u has granted and keeps %" PRIu64 " bytes; %" PRIu64
			" are allowed",
			rank->node->number, granted_bytes(messages, space), granted_most(messages));
}

static void letters_step(void *object, uint64_t life)
{
	struct rank *rank = object;
	struct node *node = rank->node;
	struct letters *letters = node->simulation->letters;

	if (!node->up || node->closing || node->life != life ||
		simulation_failed(letters->simulation) ||
		(letters->simulation->over && letters_quiet(letters)))
		return;
	node_enter(node);
	if (letters->asleep && rank == letters->ranks) {
		wake(letters);
	} else if (letters->asleep && rank == &letters->ranks[letters->sender] && rank->left > 0) {
		rank->left--;
		send_make(rank);
	} else if (letters->asleep || (letters->again && rank->left > 0)) {
		/* It waits. */
	} else if (rank->left > 0) {
		rank->left--;
		for (uint64_t i = prng_between(&letters->prng, 1, 4); i > 0; i--)
			rank_act(rank);
	} else {
		rank_drain(rank);
	}
	letters_progress(node);
	memory_check(letters, rank);
	if (rank == letters->ranks)
		sleep_again(letters);
	/* Its calls were turns of the engine. */
	workload_events(node);
	node_leave(node);
	node_plan(node);
	letters_plan(letters, rank);
}

static void letters_plan(struct letters *letters, struct rank *rank)
{
	uint64_t delay = rank->left > 0 ? prng_below(&letters->prng, 2 * letters->interval) : DRAIN;

	sim_clock_at(&letters->simulation->clock, simulation_now(letters->simulation) + delay,
		letters_step, rank, rank->node->life);
}

void letters_progress(struct node *node)
{
	const struct letters *letters = node->simulation->letters;
	const struct rank *rank = &letters->ranks[node->number];

	if (letters->asleep && rank == letters->ranks)
		return;
	while (rank->messages && messages_progress(rank->messages) != 0)
		;
}

/* --- lives */

struct letters *letters_create(
	struct simulation *simulation, uint64_t steps, uint64_t interval, uint64_t size_max)
{
	uint64_t nodes = simulation->node_count;
	struct letters *letters;
	struct prng *prng;

	if (steps == 0)
		return NULL;
	letters = report_memory(calloc(1, sizeof(*letters)));
	*letters = (struct letters){
		.simulation = simulation,
		.prng = prng_make(prng_mix(~simulation->seed)),
		.interval = interval,
		.size_max = size_max,
		.map = report_memory(calloc(nodes, sizeof(struct process))),
		.ranks = report_memory(calloc(nodes, sizeof(struct rank))),
		.all = report_memory(calloc(LETTERS_ALL, sizeof(struct letter *))),
		.arrived = report_memory(calloc(nodes * nodes, sizeof(uint32_t))),
	};
	prng = &letters->prng;
	letters->eager = (uint32_t)prng_scale(prng, 1, 4096);
	letters->headers = (uint32_t)(nodes * prng_scale(prng, 1, 64));
	letters->block = prng_scale(prng, 1, 64) * letters->eager;
	letters->memory = prng_chance(prng, 0.2) ? 0 : prng_scale(prng, 1, 16) * letters->block;
	letters->spare = prng_chance(prng, 0.5) ? (uint32_t)prng_scale(prng, 1, 512) : 0;
	letters->divided = prng_chance(prng, 0.3);
	for (uint64_t i = 0; i < nodes; i++)
		letters->ranks[i].left = steps;
	return letters;
}

void letters_sleep(struct letters *letters)
{
	letters->asleep = true;
	letters->sender = 1;
	letters->divided = false;
	letters->block = 0;
	letters->headers = letters->spare = 64 * letters->simulation->node_count;
	letters->memory = (uint64_t)letters->headers * letters->eager;
	letters->crowded = prng_chance(&letters->prng, 0.5);
	if (letters->crowded) {
		letters->eager = CROWD_EAGER;
		letters->headers = letters->spare = 4 * CROWD;
		letters->memory = BLOCK_BYTES;
	}
	for (uint32_t i = 0; i < letters->simulation->node_count; i++)
		letters->ranks[i].left = i != 1 ? 0 : letters->crowded ? CROWD : letters->spare / 2;
	letters->again = !letters->crowded && letters->simulation->node_count > 2;
	if (letters->again)
		letters->ranks[2].left = 1; /* there will be more */
}

void letters_free(struct letters *letters)
{
	if (!letters)
		return;
	for (uint32_t i = 0; i < letters->simulation->node_count; i++)
		if (letters->ranks[i].messages)
			messages_close(letters->ranks[i].messages);
	for (uint32_t i = 0; i < letters->count; i++) {
		free(letters->all[i]->data);
		free(letters->all[i]);
	}
	free(letters->map);
	free(letters->ranks);
	free(letters->all);
	free(letters->arrived);
	free(letters);
}

void letters_begin(struct letters *letters, struct node *node)
{
	struct rank *rank = &letters->ranks[node->number];
	struct messages_options options = {
		.front = &portals,
		.interface = atomic_load(&interfaces[0].handle),
		.space = SPACE,
		.peers = letters->map,
		.count = letters->simulation->node_count,
		.self = node->number,
		.eager = letters->eager,
		.memory = letters->memory +
			  (uint64_t)(letters->headers + letters->spare) * KEPT_BYTES,
		.block = letters->block,
		.headers = letters->headers,
		.spare = letters->spare,
		.owner = letters,
		.done = letter_done,
		.told = word_told,
		.failed = peer_failed,
	};

	rank->node = node;
	if (node->life > 1)
		return;
	letters->map[node->number] = (struct process){.nid = node->id.nid, .pid = node->id.pid};
	if (letters->divided) {
		options.memory = prng_scale(&letters->prng, 1, DIVIDED_MOST);
		messages_divide(&options);
	}
	if (messages_open(&options, &rank->messages) != ANSWER_OK)
		report_stop("node %u: no memory for messages", node->number);
	letters_plan(letters, rank);
}

void letters_end(struct letters *letters, struct node *node)
{
	struct rank *rank = &letters->ranks[node->number];

	if (rank->messages)
		messages_close(rank->messages);
	rank->messages = NULL;
	rank->left = 0;
}

/* --- the end */

bool letters_done(const struct letters *letters)
{
	for (uint32_t i = 0; letters && i < letters->simulation->node_count; i++)
		if (letters->ranks[i].left != 0)
			return false;
	return true;
}

/* K4. What is missing of a letter; NULL: nothing. */
static const char *letter_missing(const struct letters *letters, const struct letter *letter)
{
	const struct letter *partner = letter->partner;

	if (letter->send && troubled(letters, letter->rank, letter->to))
		return NULL;
	if (letter->send)
		return !letter->arrived ? "never arrived"
		       : !partner       ? "was never received"
		       : !letter->done  ? "was never done"
					: NULL;
	return partner && !letter->done && !troubled(letters, letter->rank, partner->rank)
		       ? "never got its message"
		       : NULL;
}

bool letters_quiet(const struct letters *letters)
{
	for (uint32_t i = 0; letters && i < letters->count; i++)
		if (letter_missing(letters, letters->all[i]))
			return false;
	for (uint32_t i = 0;
		letters && !any_troubled(letters) && i < letters->simulation->node_count; i++)
		if (messages_pending(letters->ranks[i].messages) != 0)
			return false;
	return true;
}

void letters_finish(struct letters *letters)
{
	for (uint32_t i = 0; letters && i < letters->count; i++) {
		struct letter *letter = letters->all[i];
		struct rank *rank = &letters->ranks[letter->rank];
		const char *missing = letter_missing(letters, letter);

		if (missing)
			letter_wrong(letters, letter, missing, 0);
		if (letter->send || letter->partner || letter->cancelled || !rank->messages ||
			simulation_failed(letters->simulation))
			continue;
		node_enter(rank->node);
		receive_cancel(rank, letter);
		node_leave(rank->node);
		if (!letter->cancelled)
			letter_wrong(letters, letter, "has no match, and cannot be cancelled", 0);
	}
	if (letters && !letters_quiet(letters))
		FAIL(letters, "letters: a rank has messages that are under way for ever");
}

uint64_t letters_count(const struct letters *letters)
{
	return letters ? letters->count : 0;
}
