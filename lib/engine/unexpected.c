/* SPDX-License-Identifier: BSD-3-Clause */
/* unexpected.c - see unexpected.h. */
#include <engine/unexpected.h>

#include <assert.h>
#include <string.h>

#include <engine/credit.h>
#include <engine/rma.h>
#include <engine/fetch.h>
#include <engine/outcome.h>
#include <engine/portal.h>
#include <engine/statistics.h>
#include <engine/tier_entry.h>

enum header_state { HEADER_HERE, HEADER_ARRIVING, HEADER_CLAIMED, HEADER_LENT };

/* The taker of a header: a receive, an entry or a search. Of the latter two here is what events and
 * counters say. */
struct taker {
	struct outcome *receive; /* NULL: the rest is of an entry or a search */
	struct map memory;       /* the receive's */
	uint64_t user;
	struct event_counter *counted; /* alive or not; NULL: none */
	uint64_t counter;              /* its handle */
	uint32_t log;
	uint16_t counts;
	uint8_t flags;
	uint32_t entry; /* INDEX_NONE: a search */
};

struct header {
	struct account account;
	uint64_t start;     /* where its data lies; 0: it is copied */
	uint32_t region;    /* in whose memory, unless it is copied */
	uint8_t state;      /* enum header_state */
	uint8_t kind;       /* enum tier_event, of the message's own event */
	uint8_t verdict;    /* enum tier_verdict */
	bool copied;        /* U6 */
	struct taker taker; /* CLAIMED */
	struct link apart;  /* U7: in its source's list; LENT: in space.lent */
};

/* In a view a message has two places of a table, and the table may have become twice as large. */
static_assert(sizeof(struct kept) + sizeof(struct header) + sizeof(struct event_data) +
			      KEPT_VIEWS * 2 * sizeof(uint32_t) <=
		      KEPT_BYTES,
	"so much is counted for each");

/* U7. A rank whose messages to a Portal are kept without their data. */
struct source {
	struct link apart; /* these, oldest first */
	struct link turn;  /* in the Portal's list, if and only if it is ready */
	uint32_t fetches;  /* under way */
	bool lost;         /* one has failed */
};

#define FETCHES_EACH 64 /* of a source, at a time */

/* U5. Processes that have a message on its way are told apart by so many numbers: the last bits of
 * their ranks, or of their node ids. No ranks of MX are taken for each other. */
#define LATE 1024

/* What a taker asks for. */
struct wish {
	struct taker taker;
	const struct match_entry *ask;
	uint64_t *late; /* LATE bits; NULL: what arrives will do as well */
	uint64_t length;
	uint64_t offset; /* locally managed */
	uint64_t min_free;
	uint64_t unit;   /* of an attachment */
	uint8_t options; /* of a region */
};

void unexpected_place(struct space *space, struct pages_tables *tables)
{
	const struct segment_limits *limits = &space->segment->limits;

	space->kept_lists = pages_table(tables, limits->portals, sizeof(*space->kept_lists));
	space->kept_of = pages_table(tables, space->ranks, sizeof(*space->kept_of));
	space->arriving_of = pages_table(tables, space->ranks, sizeof(*space->arriving_of));
	space->headers = pages_table(tables, limits->unexpected, sizeof(*space->headers));
	space->copies = pages_table(
		tables, space->two_sided ? limits->unexpected : 0, sizeof(*space->copies));
	space->sharers = pages_table(
		tables, space->kept_share != 0 ? space->ranks : 0, sizeof(*space->sharers));
	space->sources = pages_table(
		tables, (size_t)space->ranks * limits->portals, sizeof(*space->sources));
}

bool unexpected_open(struct space *space)
{
	list_init(&space->lent);
	credit_open(space);
	for (uint32_t i = 0; i < space->segment->limits.portals; i++)
		kept_list_init(&space->kept_lists[i]);
	return kept_table_init(
		&space->kept, space->segment->limits.unexpected, space->engine->secret);
}

void unexpected_close(struct space *space)
{
	for (uint32_t i = 0; i < space->segment->limits.portals; i++)
		kept_list_clear(&space->kept_lists[i]);
	kept_table_free(&space->kept);
	credit_close(space);
}

/* --- ranks */

static struct source *source_of(const struct space *space, uint32_t portal, uint32_t rank)
{
	return &space->sources[(size_t)rank * space->segment->limits.portals + portal];
}

/* May a message of it be fetched? */
static bool source_is_ready(const struct space *space, const struct source *source, uint32_t rank)
{
	return source->apart.next && !list_empty(&source->apart) && !source->lost &&
	       source->fetches < FETCHES_EACH && rank_is_known(space, rank);
}

/* What makes it ready has changed. It comes behind others that are. */
static void source_settle(const struct space *space, uint32_t portal, uint32_t rank)
{
	struct source *source = source_of(space, portal, rank);
	const bool ready = source_is_ready(space, source, rank);

	if (ready && !link_listed(&source->turn))
		list_append(&space->portals[portal].turns, &source->turn);
	else if (!ready && link_listed(&source->turn))
		link_remove(&source->turn);
}

/* U4. */
static bool rank_has_room(const struct space *space, uint32_t rank)
{
	return space->kept_share == 0 ||
	       (rank < space->ranks && space->kept_of[rank] < share_now(space, rank));
}

void sources_reset(struct space *space, uint32_t rank)
{
	for (uint32_t i = 0; i < space->segment->limits.portals; i++)
		source_of(space, i, rank)->lost = false;
}

/* --- messages */

static bool table_has_room(const struct space *space, struct process process)
{
	return kept_has_room(&space->kept) && rank_has_room(space, process.nid);
}

bool header_has_room(struct space *space, struct process process)
{
	if (table_has_room(space, process))
		return true;
	unexpected_return(space);
	return table_has_room(space, process);
}

/* A message gets a header, and comes into its list when its state is known. */
static struct header *header_make(struct space *space, const struct account *account)
{
	uint32_t i;

	unexpected_return(space);
	i = kept_take(&space->kept);
	if (space->kept_share != 0)
		share_keep(space, account->nid);
	kept_add(&space->kept, &space->kept_lists[account->portal], i,
		&(struct match_key){account->match_bits, account->nid, account->pid});
	space->headers[i].account = *account;
	space->headers[i].apart.next = NULL;
	return &space->headers[i];
}

uint32_t header_keep(struct space *space, struct region *region, enum tier_event kind,
	enum tier_verdict verdict, const struct account *account, uint64_t start, bool arriving)
{
	struct header *header = header_make(space, account);

	header->start = start;
	header->region = region_number(space, region);
	header->state = arriving ? HEADER_ARRIVING : HEADER_HERE;
	header->kind = (uint8_t)kind;
	header->verdict = (uint8_t)verdict;
	header->copied = false;
	attachment_of(space, region)->headers++;
	if (space->credits && !arriving && account->moved < account->requested &&
		value_is_copy(account->value)) {
		struct source *source = source_of(space, account->portal, account->nid);

		if (!source->apart.next)
			list_init(&source->apart);
		list_append(&source->apart, &header->apart);
		source_settle(space, account->portal, account->nid);
	}
	return (uint32_t)(header - space->headers);
}

void unexpected_copy(struct space *space, struct account *account, const void *data)
{
	struct header *header;

	account->moved = account->requested;
	header = header_make(space, account);
	header->start = 0;
	header->state = HEADER_HERE;
	header->kind = TIER_PUT;
	header->verdict = TIER_OK;
	header->copied = true;
	memcpy(space->copies[header - space->headers].data, data, account->requested);
}

/* A header that is in no list goes, and perhaps the entry whose memory it referred to. */
static void header_free(struct space *space, uint32_t i)
{
	struct header *header = &space->headers[i];
	struct region *region;

	if (link_listed(&header->apart)) {
		link_remove(&header->apart);
		source_settle(space, header->account.portal, header->account.nid);
	}
	if (space->kept_share != 0)
		space->kept_of[header->account.nid]--;
	kept_give(&space->kept, i);
	if (header->copied)
		return;
	region = segment_region(space->segment, header->region);
	attachment_of(space, region)->headers--;
	entry_settle(space, region);
}

/* --- takers */

/* An event of a taker's, counted and logged as far as it wants that. tier: which has the data. */
static void taker_tell(struct space *space, const struct taker *taker, enum tier_event kind,
	enum tier_verdict verdict, uint64_t start, unsigned tier, const struct account *account)
{
	const struct tier_portal *portal = &space->portals[account->portal];
	const struct tier_event_head event = {
		.kind = kind,
		.verdict = verdict,
		.tier = (uint8_t)tier,
		.user = taker->user,
		.start = start,
	};

	if (taker->counts & TIER_BIT(kind))
		counter_count(space->engine, counter_alive(taker->counted, taker->counter), verdict,
			taker->flags & ATTACHMENT_BYTES ? account->moved : 1);
	if (taker->log & (verdict == TIER_OK ? TIER_BIT(kind) : TIER_BIT_FAILED(kind)))
		tier_log(space, queue_alive(portal->logs, portal->queue), &event, account);
}

/* U6. Its taker is told of a header with its data, if it wants to know. Returns false if not. */
static bool copy_lend(struct space *space, uint32_t i, const struct taker *taker)
{
	struct header *header = &space->headers[i];
	struct event_data *copy = &space->copies[i];

	if (!(taker->log & TIER_BIT(TIER_PUT_KEPT)))
		return false;
	atomic_store_explicit(&copy->read, false, memory_order_relaxed);
	header->state = HEADER_LENT;
	list_append(&space->lent, &header->apart);
	taker_tell(space, taker, TIER_PUT_KEPT, TIER_OK, (uintptr_t)copy->data, TIER_DATA,
		&header->account);
	return true;
}

void unexpected_return(struct space *space)
{
	list_each (struct header, header, &space->lent, apart) {
		const uint32_t i = (uint32_t)(header - space->headers);

		if (!atomic_load_explicit(&space->copies[i].read, memory_order_acquire))
			return;
		header_free(space, i);
	}
}

/* U8. A receive gets a message that has ended, with its data if they are here. */
static enum tier_verdict receive_fill(
	const struct space *space, uint32_t i, struct outcome *outcome, const struct map *memory)
{
	const struct header *header = &space->headers[i];
	const struct account *account = &header->account;
	const uint64_t length = account->moved < memory->length ? account->moved : memory->length;
	const void *data =
		header->copied ? space->copies[i].data : (const void *)(uintptr_t)header->start;

	outcome->peer = account->nid;
	outcome->bits = account->match_bits;
	outcome->value = account->value;
	outcome->requested = account->requested;
	outcome->offset = account->offset;
	outcome->moved = account->moved;
	outcome->tier = 1;
	if (header->verdict != TIER_OK)
		return header->verdict;
	return map_copy_in(memory, 0, data, length) ? TIER_OK : TIER_FAULT;
}

static void receive_tell(
	struct space *space, uint32_t i, struct outcome *outcome, const struct map *memory)
{
	const uint32_t portal = space->headers[i].account.portal;
	const enum tier_verdict verdict = receive_fill(space, i, outcome, memory);

	header_free(space, i);
	outcome_end(space, portal, outcome, verdict);
}

/* U2. Its taker gets a header whose message has ended. */
static void header_tell(struct space *space, uint32_t i, const struct taker *taker)
{
	const struct header *header = &space->headers[i];

	if (taker->receive) {
		receive_tell(space, i, taker->receive, &taker->memory);
		return;
	}
	if (taker->entry == INDEX_NONE && taker->log == 0)
		space_count(space, unexpected_removed);
	if (header->copied && copy_lend(space, i, taker))
		return;
	if (!header->copied)
		taker_tell(space, taker, header->kind + 1, header->verdict, header->start, 1,
			&header->account);
	header_free(space, i);
}

void unexpected_ended(struct space *space, uint32_t i, enum tier_verdict verdict)
{
	struct header *header;
	struct taker taker;
	struct region *region;

	if (i == KEPT_NONE)
		return;
	header = &space->headers[i];
	header->verdict = (uint8_t)verdict;
	if (verdict == TIER_FAULT)
		header->account.moved = 0;
	if (header->state == HEADER_ARRIVING) {
		header->state = HEADER_HERE;
		return;
	}
	taker = header->taker;
	header->taker.receive = NULL; /* its memory may be another receive's: unexpected_pass() */
	header_tell(space, i, &taker);
	if (taker.entry == INDEX_NONE)
		return;
	region = segment_region(space->segment, taker.entry);
	region->pending--;
	entry_settle(space, region);
}

/* A taker takes a header out of its list. */
static void header_take(struct space *space, uint32_t i, const struct taker *taker)
{
	struct header *header = &space->headers[i];

	kept_remove(&space->kept, &space->kept_lists[header->account.portal], i);
	if (header->state == HEADER_HERE) {
		header_tell(space, i, taker);
		return;
	}
	header->state = HEADER_CLAIMED;
	header->taker = *taker;
	if (taker->receive)
		taker->receive->slot = space->segment->limits.receives + i;
	if (taker->entry != INDEX_NONE)
		segment_region(space->segment, taker->entry)->pending++;
}

/* Would a message have been taken, as far as its length goes? */
static bool wish_fits(const struct wish *wish, const struct account *account)
{
	uint64_t offset = wish->options & REGION_REMOTE_OFFSET ? account->offset : wish->offset;

	return wish->options & REGION_TRUNCATE ||
	       (offset <= wish->length && account->requested <= wish->length - offset);
}

/* A taker has got a header of so many bytes. Returns true if it takes no more. */
static bool wish_grow(struct wish *wish, uint64_t requested)
{
	uint64_t left;

	if (wish->taker.flags & ATTACHMENT_ONCE)
		return true;
	if (!(wish->taker.flags & ATTACHMENT_GROWS) || wish->options & REGION_REMOTE_OFFSET)
		return false;
	left = wish->offset < wish->length ? wish->length - wish->offset : 0;
	wish->offset += offset_step(wish->unit, requested < left ? requested : left, left);
	return wish->length - wish->offset < wish->min_free;
}

/* U5 */
static bool wish_passes_over(const struct wish *wish, const struct header *header)
{
	const uint32_t process = header->account.nid % LATE;
	uint64_t *late = &wish->late[process / 64];
	const uint64_t bit = UINT64_C(1) << process % 64;

	if (header->state == HEADER_ARRIVING)
		*late |= bit;
	return *late & bit;
}

/* WISH_LATE: nothing, but something is on its way. */
enum wish_answer { WISH_NOTHING, WISH_LATE, WISH_FOUND, WISH_USED_UP };

/* The headers that are wished for, in their order: each is taken, or told of by a SEARCH event. */
static enum wish_answer wish_run(
	struct space *space, uint32_t portal, struct wish *wish, bool remove)
{
	struct kept_list *list = &space->kept_lists[portal];
	enum wish_answer answer = WISH_NOTHING;
	uint32_t i = kept_first(&space->kept, list, wish->ask);

	while (i != KEPT_NONE) {
		const struct header *header = &space->headers[i];
		uint64_t requested = header->account.requested;
		uint32_t current = i;

		if (wish->late && wish_passes_over(wish, header)) {
			if (answer == WISH_NOTHING)
				answer = WISH_LATE;
			i = kept_next(&space->kept, list, wish->ask, i);
			continue;
		}
		/* The next is found before the current one goes; a taker of one needs no next. */
		i = wish->taker.flags & ATTACHMENT_ONCE && wish_fits(wish, &header->account)
			    ? KEPT_NONE
			    : kept_next(&space->kept, list, wish->ask, i);
		if (!wish_fits(wish, &header->account))
			continue;
		answer = WISH_FOUND;
		if (remove)
			header_take(space, current, &wish->taker);
		else
			taker_tell(space, &wish->taker, TIER_SEARCH, TIER_OK, header->start, 1,
				&header->account);
		if (wish_grow(wish, requested))
			return WISH_USED_UP;
	}
	return answer;
}

bool unexpected_take(struct space *space, struct region *region, uint32_t portal)
{
	const struct attachment *attachment = attachment_of(space, region);
	struct wish wish;
	bool used_up;

	if (space->kept_lists[portal].length == 0)
		return false;
	wish = (struct wish){
		.taker =
			{
				.user = region->user,
				.counted = attachment->counted,
				.counter = attachment->counter,
				.log = region->log,
				.counts = attachment->counts,
				.flags = attachment->flags,
				.entry = region_number(space, region),
			},
		.ask = segment_match(space->segment, region_number(space, region)),
		.length = region->length,
		.min_free = attachment->min_free,
		.unit = attachment->unit,
		.options = region->options,
	};
	used_up = wish_run(space, portal, &wish, true) == WISH_USED_UP;
	region->offset = wish.offset;
	return used_up;
}

bool unexpected_give(struct space *space, const struct command *receive)
{
	const struct match_entry ask = {
		.bits = receive->receive.bits,
		.ignore = receive->receive.ignore,
		.nid = receive->receive.peer,
		.pid = MATCH_ANY,
	};
	const uint32_t i =
		kept_first(&space->kept, &space->kept_lists[receive->receive.portal], &ask);
	const struct map_vector *vector = receive_vector(receive);
	const struct taker taker = {
		.receive = (struct outcome *)(uintptr_t)receive->receive.outcome,
		.memory = {.start = vector ? 0 : receive->receive.start,
			.vector = vector,
			.length = receive->receive.length},
		.entry = INDEX_NONE,
	};

	if (i == KEPT_NONE)
		return false;
	header_take(space, i, &taker);
	return true;
}

enum answer unexpected_pass(struct space *space, const struct command *command)
{
	const struct segment_limits *limits = &space->segment->limits;
	struct outcome *outcome = (struct outcome *)(uintptr_t)command->receive.outcome;
	const uint32_t i = outcome->slot - limits->receives;
	struct header *header = &space->headers[i];

	if (outcome->slot < limits->receives || i >= limits->unexpected ||
		header->state != HEADER_CLAIMED || header->taker.receive != outcome)
		return ANSWER_GONE;
	outcome->peer = header->account.nid;
	outcome->bits = header->account.match_bits;
	header->taker = (struct taker){.user = command->receive.start,
		.log = TIER_BIT(TIER_PUT_KEPT) | TIER_BIT_FAILED(TIER_PUT_KEPT),
		.entry = INDEX_NONE};
	return ANSWER_OK;
}

enum answer unexpected_search(struct space *space, const struct long_command *command)
{
	uint32_t portal = command->command.object.portal;
	const struct account account = {.portal = portal};
	struct search_lines lines;
	uint64_t late[LATE / 64] = {0};
	enum wish_answer answer;
	struct match_entry ask;
	struct wish wish;
	bool found;

	memcpy(&lines, command->further, sizeof(lines));
	if (portal >= space->segment->limits.portals)
		return ANSWER_GONE;
	ask = (struct match_entry){
		.bits = lines.bits, .ignore = lines.ignore, .nid = lines.nid, .pid = lines.pid};
	wish = (struct wish){
		.taker =
			{
				.user = lines.user,
				.counted = counter_named(space->segment, lines.counter),
				.counter = lines.counter,
				.log = lines.log,
				.counts = lines.counts,
				.flags = lines.flags,
				.entry = INDEX_NONE,
			},
		.ask = &ask,
		.late = lines.flags & ATTACHMENT_HERE ? late : NULL,
		.length = lines.length,
		.min_free = lines.min_free,
		.options = lines.options,
	};
	answer = wish_run(space, portal, &wish, lines.remove);
	found = answer >= WISH_FOUND;
	trace(TRACE_SEARCH, space->engine->interface, 0, found);
	/* A search for one fails when there is none; a search for all ends so always. */
	if (lines.counts & TIER_BIT(TIER_SEARCH) && (!found || !(lines.flags & ATTACHMENT_ONCE)))
		counter_count(space->engine, counter_alive(wish.taker.counted, wish.taker.counter),
			TIER_NO_MATCH, 0);
	if (!found) {
		wish.taker.counts = 0;
		taker_tell(space, &wish.taker, TIER_SEARCH, TIER_NO_MATCH, 0, 1, &account);
	}
	return answer == WISH_LATE ? ANSWER_PENDING : ANSWER_OK;
}

/* --- data at its sender: U7 */

/* An entry with memory; NULL: there is none. */
static struct region *memory_find(struct space *space, uint32_t portal)
{
	const struct match_key any = {0};
	struct match_list *list = portal_list(space, portal, 1);
	uint32_t i = match_first(&space->entries, list, &any);

	while (i != MATCH_NONE && segment_attachment(space->segment, i)->most == 0)
		i = match_next(&space->entries, list, i, &any);
	return i == MATCH_NONE ? NULL : segment_region(space->segment, i);
}

/* A message gets its place, and its data come. */
static void header_fetch(struct space *space, struct header *header, struct region *region)
{
	const uint32_t rank = header->account.nid;
	struct region *before = segment_region(space->segment, header->region);
	struct attachment *attachment = attachment_of(space, region);
	const struct placement placement = {
		.offset = region->offset, .length = header->account.requested};
	const struct fetch fetch = {
		.from = space->map[rank],
		.region = region,
		.local = placement.offset,
		.length = placement.length,
		.value = header->account.value,
		.cookie = self_at(space, rank),
		.rank = rank,
		.kept = (uint32_t)(header - space->headers),
	};

	attachment_of(space, before)->headers--;
	entry_settle(space, before);
	attachment->headers++;
	header->region = region_number(space, region);
	header->start = region->start + placement.offset;
	header->state = HEADER_ARRIVING;
	tiers_arriving(space, rank, 1);
	region->pending++;
	space->portals[header->account.portal].pending++;
	source_of(space, header->account.portal, rank)->fetches++;
	entry_use(space, region, attachment, &placement);
	rma_fetch(space, &fetch);
}

void unexpected_fetch(struct space *space, uint32_t portal)
{
	struct link *turns = &space->portals[portal].turns;
	struct region *region;

	while (!list_empty(turns) && (region = memory_find(space, portal)) &&
		operation_reserve(space->engine, 1)) {
		struct source *source = list_first(turns, struct source, turn);
		struct header *header = list_first(&source->apart, struct header, apart);
		const uint32_t rank = header->account.nid;

		link_remove(&source->turn);
		if (source_is_ready(space, source, rank)) {
			link_remove(&header->apart);
			/* One that does not fit is longer than any that is copied here. */
			if (header->account.requested <= attachment_of(space, region)->most &&
				header->account.requested <= region->length - region->offset)
				header_fetch(space, header, region);
		}
		source_settle(space, portal, rank);
	}
}

void unexpected_joined(struct space *space, uint32_t rank)
{
	/* Mostly nothing was kept of it yet: then the tables of its sources stay untouched. */
	if (rank >= space->ranks || (space->kept_share != 0 && space->kept_of[rank] == 0))
		return;
	for (uint32_t i = 0; i < space->segment->limits.portals; i++) {
		source_settle(space, i, rank);
		unexpected_fetch(space, i);
	}
}

bool unexpected_waits(const struct operation *operation)
{
	return operation->space->headers[operation->kept].state == HEADER_ARRIVING;
}

void unexpected_fetched(struct operation *operation)
{
	const struct rma_state *rma = &operation->rma;
	struct space *space = operation->space;
	struct header *header = &space->headers[operation->kept];
	const uint32_t portal = header->account.portal, rank = header->account.nid;
	struct source *source = source_of(space, portal, rank);
	struct region *region = operation->region;

	if (rma->verdict == TIER_OK && rma->moved == header->account.requested)
		header->account.moved = header->account.requested;
	tiers_arriving(space, rank, -1);
	region->pending--;
	space->portals[portal].pending--;
	source->fetches--;
	source->lost |= rma->verdict != TIER_OK && rma->verdict != TIER_REFUSED;
	unexpected_ended(space, operation->kept, TIER_OK);
	entry_settle(space, region);
	portal_settle(space, portal);
	source_settle(space, portal, rank);
	unexpected_fetch(space, portal);
}

void unexpected_forget(struct space *space, uint32_t portal)
{
	struct kept_list *list = &space->kept_lists[portal];

	while (list->length > 0) {
		uint32_t i = list->head;

		if (!space->headers[i].copied)
			segment_region(space->segment, space->headers[i].region)->log = 0;
		kept_remove(&space->kept, list, i);
		header_free(space, i);
	}
}
