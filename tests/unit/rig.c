/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.c - see rig.h. */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#include <base/handle.h>
#include <base/ring.h>

static const struct segment_limits rig_limits = {
	.entries = 64,
	.regions = 64,
	.queues = 16,
	.portals = RIG_PORTALS,
	.access = RIG_ACCESS,
	.list_length = 64,
	.event_bytes = 1 << 20,
};

/* The last segment: a fuzz target makes thousands a second. */
static void *spare;

static uint64_t rig_now(void *context)
{
	return ((struct rig *)context)->now;
}

static struct segment *rig_segment(const struct segment_limits *limits)
{
	size_t fixed, size = segment_size(limits, &fixed);
	void *memory = spare ? spare : aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	spare = NULL;
	assert_non_null(memory);
	memset(memory, 0, size);
	return segment_init(memory, limits, 100);
}

struct rig *rig_create(struct port *port, const struct transport_options *transport)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct engine_options options = {
		.interface = RIG_INTERFACE,
		.uid = RIG_UID,
		.port = port,
		.transport = *transport,
	};

	assert_non_null(rig);
	rig->now = SECOND;
	rig->clock = (struct clock){.now = rig_now, .context = rig};
	rig->ring = rig->segment = rig_segment(&rig_limits);
	options.segment = rig->segment;
	options.clock = &rig->clock;
	rig->engine = engine_create(&options);
	assert_non_null(rig->engine);
	return rig;
}

struct rig *rig_space(struct rig *rig, uint32_t number, uint32_t portals)
{
	struct segment_limits limits = rig_limits;
	struct space_options options = {.interface = RIG_INTERFACE + number, .uid = RIG_UID};
	struct rig *space = calloc(1, sizeof(*space));

	assert_non_null(space);
	limits.portals = portals;
	limits.further = true;
	*space = (struct rig){
		.segment = rig_segment(&limits),
		.ring = rig->ring,
		.space = (uint8_t)number,
		.engine = rig->engine,
	};
	options.segment = space->segment;
	assert_true(engine_space_open(rig->engine, number, &options));
	return space;
}

void rig_space_free(struct rig *space)
{
	free(segment_memory(space->segment));
	free(space);
}

void rig_destroy(struct rig *rig)
{
	if (rig->engine)
		rig_stop(rig);
	if (spare)
		free(segment_memory(rig->segment));
	else
		spare = segment_memory(rig->segment);
	free(rig);
}

int rig_setup(void **state)
{
	const struct transport_options options = {
		.self = RIG_SELF, .peer_timeout = RIG_PEER_TIMEOUT};
	static struct port unused;

	*state = rig_create(&unused, &options);
	return 0;
}

void rig_stop(struct rig *rig)
{
	engine_destroy(rig->engine);
	rig->engine = NULL;
}

int rig_teardown(void **state)
{
	rig_destroy(*state);
	return 0;
}

void rig_post(struct rig *rig, const struct command *command)
{
	struct command named = *command;

	named.space = rig->space;
	assert_true(ring_put(segment_ring(rig->ring), &named));
}

void rig_pass(struct rig *rig, uint64_t time)
{
	rig->now += time;
	engine_poll(rig->engine);
}

static void rig_do(struct rig *rig, const struct command *command)
{
	rig_post(rig, command);
	engine_poll(rig->engine);
}

/* Sends a command with a reply slot; the answer. */
static enum answer rig_call(struct rig *rig, struct command *command,
	const struct region_description *after, struct region_description *before)
{
	uint32_t slot = segment_take(rig->ring, rig->ring->free_replies);
	struct reply *reply = segment_reply(rig->ring, slot);

	atomic_store(&reply->state, REPLY_PENDING);
	if (after)
		reply->after = *after;
	command->reply = slot;
	rig_do(rig, command);
	assert_int_equal(atomic_load(&reply->state), REPLY_DONE);
	if (before)
		*before = reply->before;
	segment_give(rig->ring, rig->ring->free_replies, slot);
	return reply->answer;
}

uint64_t rig_queue(struct rig *rig, uint64_t count)
{
	struct segment *segment = rig->segment;
	uint32_t index = segment_take(segment, segment->free_queues);
	uint64_t handle = handle_make(
		HANDLE_QUEUE, RIG_INTERFACE + rig->space, index, segment_generation(segment));
	uint64_t bytes = queue_bytes(queue_places(segment, count));

	assert_int_not_equal(index, INDEX_NONE);
	assert_true(rig->events_used + bytes <= segment->limits.event_bytes);
	queue_init(segment, handle, count, segment->events + rig->events_used);
	rig->events_used += bytes;
	return handle;
}

static struct command entry_command(
	struct rig *rig, const struct rig_entry *from, enum command_kind kind)
{
	struct segment *segment = rig->segment;
	struct command command = {.kind = (uint8_t)kind, .space = rig->space};
	uint32_t index = segment_take(segment, segment->free_entries);
	struct match_entry *match;
	struct entry *entry;

	assert_int_not_equal(index, INDEX_NONE);
	match = segment_match(segment, index);
	match->bits = from->bits;
	match->ignore = from->ignore;
	match->nid = from->match.nid;
	match->pid = from->match.pid;
	entry = segment_entry(segment, index);
	entry->unlink = from->unlink;
	command.object.index = index;
	command.object.generation = segment_generation(segment);
	command.object.portal = from->portal;
	atomic_store(&entry->gate, gate_make(command.object.generation, 0));
	atomic_fetch_add(&segment_portal(segment, from->portal)->length[0], 1);
	return command;
}

static uint64_t entry_handle(const struct command *command)
{
	return handle_make(HANDLE_ENTRY, RIG_INTERFACE + command->space, command->object.index,
		command->object.generation);
}

static uint64_t rig_entry_at(
	struct rig *rig, const struct rig_entry *entry, enum command_position position)
{
	struct command command = entry_command(rig, entry, COMMAND_ENTRY_ATTACH);

	command.position = (uint8_t)position;
	rig_do(rig, &command);
	return entry_handle(&command);
}

uint64_t rig_entry(struct rig *rig, const struct rig_entry *entry)
{
	return rig_entry_at(rig, entry, POSITION_AFTER);
}

uint64_t rig_entry_front(struct rig *rig, const struct rig_entry *entry)
{
	return rig_entry_at(rig, entry, POSITION_BEFORE);
}

uint64_t rig_entry_any(struct rig *rig, bool unlink)
{
	return rig_entry(
		rig, &(struct rig_entry){.match = RIG_ANY, .ignore = UINT64_MAX, .unlink = unlink});
}

enum answer rig_insert(struct rig *rig, const struct rig_entry *entry, uint64_t current,
	enum command_position position, uint64_t *handle)
{
	struct command command = entry_command(rig, entry, COMMAND_ENTRY_INSERT);

	command.position = (uint8_t)position;
	command.object.other = current;
	*handle = entry_handle(&command);
	return rig_call(rig, &command, NULL, NULL);
}

static struct command region_command(
	struct rig *rig, const struct region_description *from, enum command_kind kind, int flags)
{
	struct segment *segment = rig->segment;
	struct command command = {.kind = (uint8_t)kind, .space = rig->space};
	uint32_t index = segment_take(segment, segment->free_regions);
	struct region *region;

	assert_int_not_equal(index, INDEX_NONE);
	region = segment_region(segment, index);
	region->start = from->start;
	region->length = from->length;
	region->user = from->user;
	region->queue = from->queue;
	region->max_offset = from->max_offset;
	region->options = (uint8_t)from->options;
	region->threshold = from->threshold;
	region->log = EVENTS_ALL;
	region->unlink_op = flags & RIG_UNLINK_OP;
	region->unlink_nofit = flags & RIG_UNLINK_NOFIT;
	command.object.index = index;
	command.object.generation = segment_generation(segment);
	atomic_store(&region->gate, gate_make(command.object.generation, from->threshold));
	return command;
}

static uint64_t region_handle(const struct command *command)
{
	return handle_make(HANDLE_REGION, RIG_INTERFACE + command->space, command->object.index,
		command->object.generation);
}

uint64_t rig_attach(
	struct rig *rig, uint64_t entry, const struct region_description *from, int flags)
{
	struct command command = region_command(rig, from, COMMAND_REGION_ATTACH, flags);
	struct region *region = segment_region(rig->segment, command.object.index);

	region->entry = handle_index(entry);
	region->entry_generation = handle_generation(entry);
	atomic_fetch_or(&rig_entry_object(rig, entry)->gate, GATE_ATTACHED);
	rig_do(rig, &command);
	return region_handle(&command);
}

struct command rig_bind_command(struct rig *rig, const struct region_description *region)
{
	return region_command(rig, region, COMMAND_REGION_BIND, 0);
}

uint64_t rig_bind(struct rig *rig, const struct region_description *region)
{
	struct command command = rig_bind_command(rig, region);

	rig_do(rig, &command);
	return region_handle(&command);
}

struct region *rig_region(const struct rig *rig, uint64_t handle)
{
	return segment_region(rig->segment, handle_index(handle));
}

struct entry *rig_entry_object(const struct rig *rig, uint64_t handle)
{
	return segment_entry(rig->segment, handle_index(handle));
}

uint32_t rig_threshold(const struct rig *rig, uint64_t region)
{
	uint64_t gate = atomic_load(&rig_region(rig, region)->gate);

	assert_true(gate_is(gate, handle_generation(region)));
	return gate_low(gate);
}

static struct command object_command(enum command_kind kind, uint64_t handle)
{
	return (struct command){
		.kind = (uint8_t)kind,
		.object = {.index = handle_index(handle), .generation = handle_generation(handle)},
	};
}

enum answer rig_entry_unlink(struct rig *rig, uint64_t entry)
{
	struct command command = object_command(COMMAND_ENTRY_UNLINK, entry);

	return rig_call(rig, &command, NULL, NULL);
}

enum answer rig_region_unlink(struct rig *rig, uint64_t region)
{
	struct command command = object_command(COMMAND_REGION_UNLINK, region);

	return rig_call(rig, &command, NULL, NULL);
}

enum answer rig_update(struct rig *rig, uint64_t region, const struct region_description *after,
	uint64_t testq, struct region_description *before)
{
	struct command command = object_command(COMMAND_REGION_UPDATE, region);

	command.update = after != NULL;
	command.object.other = testq;
	return rig_call(rig, &command, after, before);
}

enum answer rig_queue_free(struct rig *rig, uint64_t queue)
{
	struct command command = object_command(COMMAND_QUEUE_FREE, queue);
	enum answer answer = rig_call(rig, &command, NULL, NULL);

	if (answer == ANSWER_OK)
		segment_give(rig->segment, rig->segment->free_queues, handle_index(queue));
	return answer;
}

void rig_access(
	struct rig *rig, uint32_t index, struct process process, uint32_t uid, uint32_t portal)
{
	const struct command command = {
		.kind = COMMAND_ACCESS,
		.access = {.index = index,
			.nid = process.nid,
			.pid = process.pid,
			.uid = uid,
			.portal = portal},
	};

	rig_do(rig, &command);
}

struct command rig_move_command(
	uint64_t region, const struct rig_move *move, enum command_kind kind)
{
	return (struct command){
		.kind = (uint8_t)kind,
		.move = {.region = handle_index(region),
			.generation = handle_generation(region),
			.to = move->to,
			.portal = move->portal,
			.cookie = move->cookie,
			.match_bits = move->bits,
			.offset = move->offset,
			.value = move->value},
	};
}

bool rig_put_post(struct rig *rig, uint64_t region, const struct rig_move *move)
{
	struct command command = rig_move_command(region, move, COMMAND_PUT);
	bool taken;

	if (!gate_take(&rig_region(rig, region)->gate, handle_generation(region), &taken))
		return false;
	command.taken = taken;
	command.acknowledge = move->acknowledge;
	rig_post(rig, &command);
	return true;
}

bool rig_put(struct rig *rig, uint64_t region, const struct rig_move *move)
{
	bool posted = rig_put_post(rig, region, move);

	engine_poll(rig->engine);
	return posted;
}

bool rig_get(struct rig *rig, uint64_t region, const struct rig_move *move)
{
	const struct command command = rig_move_command(region, move, COMMAND_GET);
	uint64_t gate = atomic_load(&rig_region(rig, region)->gate);

	if (!gate_is(gate, handle_generation(region)) || gate_low(gate) == 0)
		return false;
	rig_do(rig, &command);
	return true;
}

static void slot_read(const struct event_slot *slot, uint32_t attributes, uint32_t second, void *to)
{
	uint64_t words[EVENT_WORDS];

	/* As PtlEQGet does. */
	for (unsigned i = EVENT_INITIATOR; i < EVENT_WORDS; i += 2) {
		event_pair pair = event_pair_read(slot, i);

		memcpy(&words[i], &pair, sizeof(pair));
	}
	words[EVENT_SEQUENCE] =
		atomic_load_explicit(&slot->words[EVENT_SEQUENCE], memory_order_relaxed);
	*(struct event *)to = (struct event){
		.kind = (uint16_t)(EVENT_KIND(attributes) + second),
		.fail = (uint16_t)EVENT_FAIL(attributes),
		.nid = (uint32_t)words[EVENT_INITIATOR],
		.pid = (uint32_t)(words[EVENT_INITIATOR] >> 32),
		.uid = (uint32_t)words[EVENT_TARGET],
		.portal = (uint32_t)(words[EVENT_TARGET] >> 32),
		.match_bits = words[EVENT_MATCH_BITS],
		.requested = words[EVENT_REQUESTED],
		.moved = words[EVENT_MOVED],
		.offset = words[EVENT_OFFSET],
		.value = words[EVENT_VALUE],
		.link = words[EVENT_LINK],
		.sequence = words[EVENT_SEQUENCE] + second,
		.region = words[EVENT_REGION],
		.start = words[EVENT_START],
		.length = words[EVENT_LENGTH],
		.user = words[EVENT_USER],
		.queue = words[EVENT_QUEUE],
		.threshold = (uint32_t)words[EVENT_BOUNDS],
		.max_offset = (uint32_t)(words[EVENT_BOUNDS] >> 32),
		.options = EVENT_OPTIONS(attributes),
	};
}

enum queue_answer rig_take(struct segment *segment, uint64_t queue, struct event *event)
{
	const struct queue_view view =
		queue_view(segment, segment_queue(segment, handle_index(queue)), queue);

	/* Such are the queues of spaces with tiers. */
	return segment->limits.attached ? queue_take_oldest(&view, slot_read, event)
					: queue_take(&view, slot_read, event);
}

struct event rig_event(struct rig *rig, uint64_t queue, unsigned kind)
{
	struct event event;

	assert_int_equal(rig_take(rig->segment, queue, &event), QUEUE_EVENT);
	assert_int_equal(event.kind, kind);
	return event;
}

struct operation *rig_operations_use(struct rig *rig, enum operation_kind kind)
{
	const struct pool *pool = &rig->engine->operations;
	struct operation *operation = NULL;

	while (pool->left != 0 || pool->made % OPERATION_CHUNK != 0)
		operation = operation_take(rig->engine, kind);
	return operation;
}

void rig_no_event(struct rig *rig, uint64_t queue)
{
	struct event event;

	assert_int_equal(rig_take(rig->segment, queue, &event), QUEUE_EMPTY);
}

unsigned long rig_drops(const struct rig *rig)
{
	unsigned long sum = 0;

#define X(name, help) sum += rig_counter(rig, name);
	ENGINE_DROPS(X)
#undef X
	return sum;
}

struct message_header rig_put_header(uint64_t length)
{
	return (struct message_header){.kind = MESSAGE_PUT, .uid = RIG_UID, .requested = length};
}

struct message_header rig_get_header(uint64_t length)
{
	return (struct message_header){.kind = MESSAGE_GET,
		.uid = RIG_UID,
		.requested = length,
		.handle = 1,
		.operation = 1};
}

/* --- spaces with tiers */

static _Atomic uint32_t rig_shares[RIG_RANKS];

/* A space of a rig's engine; options: what is not filled in; unexpected: headers. */
static struct rig *space_make(
	struct rig *rig, struct space_options options, uint32_t unexpected, uint64_t *queue)
{
	struct segment_limits limits = rig_limits;
	struct rig *space = calloc(1, sizeof(*space));
	size_t fixed, size;
	void *memory;

	assert_non_null(space);
	limits.further = true;
	limits.attached = limits.entries;
	limits.regions += limits.entries;
	limits.counters = 8;
	limits.unexpected = unexpected;
	limits.receives = options.ranked ? RIG_RECEIVES : 0;
	size = (segment_size(&limits, &fixed) + 4095) & ~(size_t)4095;
	*space = (struct rig){
		.ring = rig->ring,
		.space = options.ranked ? 6 : 4,
		.engine = rig->engine,
	};
	memory = aligned_alloc(4096, size);
	assert_non_null(memory);
	memset(memory, 0, size);
	space->segment = segment_init(memory, &limits, 200);
	options.kind = SPACE_TIERS;
	options.segment = space->segment;
	options.interface = RIG_INTERFACE + 1;
	options.uid = RIG_UID;
	for (uint32_t i = 0; i < options.ranks; i++)
		options.shares[i] = 0;
	assert_true(engine_space_open(rig->engine, space->space, &options));
	*queue = rig_queue(space, 16);
	for (uint32_t i = 0; i < 2; i++) {
		struct command open = {.kind = COMMAND_PORTAL_OPEN};

		open.object.index = i;
		open.object.other = *queue;
		atomic_store(&segment_portal(space->segment, i)->state, PORTAL_CLAIMED);
		assert_int_equal(rig_ask(space, &open), ANSWER_OK);
	}
	return space;
}

struct rig *rig_tiers(struct rig *rig, bool ranked, uint64_t *queue)
{
	const struct space_options options = {.ranked = ranked,
		.ranks = ranked ? RIG_RANKS : 0,
		.shares = rig_shares,
		.kept_share = ranked ? RIG_UNEXPECTED : 0};

	return space_make(rig, options, RIG_UNEXPECTED, queue);
}

struct rig *rig_letters(
	struct rig *rig, uint32_t share, uint32_t more, struct credit *credits, uint64_t *queue)
{
	return rig_crowd(rig, RIG_RANKS, rig_shares, share, more, credits, queue);
}

struct rig *rig_crowd(struct rig *rig, uint32_t ranks, _Atomic uint32_t *shares, uint32_t share,
	uint32_t more, struct credit *credits, uint64_t *queue)
{
	const struct space_options options = {.ranked = true,
		.ranks = ranks,
		.shares = shares,
		.kept_share = share,
		.two_sided = true,
		.credits = credits,
		.credit_step = sizeof(*credits)};

	return space_make(rig, options, ranks * share + more, queue);
}

enum answer rig_ask(struct rig *rig, struct command *command)
{
	return rig_call(rig, command, NULL, NULL);
}

uint64_t rig_event_counter(struct rig *rig)
{
	struct segment *segment = rig->segment;
	uint32_t index = segment_take(segment, segment->free_counters);
	uint64_t handle =
		handle_make(HANDLE_COUNTER, RIG_INTERFACE + 1, index, segment_generation(segment));

	event_counter_init(segment_counter(segment, index), handle);
	return handle;
}

struct event_count rig_counted(const struct rig *rig, uint64_t counter)
{
	struct event_count count;

	assert_true(event_counter_read(
		segment_counter(rig->segment, handle_index(counter)), counter, &count));
	return count;
}

/* Fills in a region and what is attached to it. */
static void tier_fill(struct rig *rig, uint32_t index, const struct rig_tier *tier)
{
	struct attachment *attachment = segment_attachment(rig->segment, index);
	struct region *region = segment_region(rig->segment, index);

	region->start = (uintptr_t)tier->start;
	region->length = tier->length;
	region->user = tier->user;
	region->queue = tier->queue;
	region->options = (uint8_t)tier->options;
	region->log = ~tier->log;
	region->threshold = GATE_THRESHOLD_INFINITE;
	region->entry = INDEX_NONE;
	attachment->counter = tier->counter;
	attachment->counts = tier->counts;
	attachment->flags = tier->flags;
	attachment->tier = tier->tier;
	attachment->uid = tier->uid == 0 ? UINT32_MAX : tier->uid;
	attachment->min_free = tier->min_free;
}

uint64_t rig_append(struct rig *rig, const struct rig_tier *tier)
{
	struct segment *segment = rig->segment;
	uint32_t index = segment_take(segment, segment->free_entries);
	struct match_entry *match = segment_match(segment, index);
	struct command append = {.kind = COMMAND_APPEND};

	match->bits = tier->bits;
	match->ignore = tier->ignore;
	match->nid = match->pid = UINT32_MAX;
	tier_fill(rig, index, tier);
	append.object.index = index;
	append.object.generation = segment_generation(segment);
	append.object.portal = tier->portal;
	append.object.other = tier->first;
	segment_attachment(segment, index)->most = tier->most;
	segment_attachment(segment, index)->unit = tier->unit;
	atomic_store(&segment_entry(segment, index)->gate, gate_make(append.object.generation, 0));
	atomic_fetch_add(&segment_portal(segment, tier->portal)->length[tier->tier], 1);
	rig_do(rig, &append);
	return handle_make(HANDLE_ENTRY, RIG_INTERFACE + 1, index, append.object.generation);
}

uint64_t rig_describe(struct rig *rig, const struct rig_tier *tier)
{
	struct segment *segment = rig->segment;
	uint32_t index = segment->limits.attached + segment_take(segment, segment->free_regions);
	struct command bind = {.kind = COMMAND_REGION_BIND};

	tier_fill(rig, index, tier);
	bind.object.index = index;
	bind.object.generation = segment_generation(segment);
	atomic_store(&segment_region(segment, index)->gate,
		gate_make(bind.object.generation, GATE_THRESHOLD_INFINITE));
	rig_do(rig, &bind);
	return handle_make(HANDLE_REGION, RIG_INTERFACE + 1, index, bind.object.generation);
}

static void tier_event_copy(
	const struct event_slot *slot, uint32_t attributes, uint32_t second, void *to)
{
	struct rig_tier_event *event = to;
	uint64_t words[EVENT_WORDS];

	(void)attributes;
	assert_int_equal(second, 0);
	for (unsigned i = 0; i < EVENT_WORDS; i++)
		words[i] = atomic_load(&slot->words[i]);
	*event = (struct rig_tier_event){
		.kind = TIER_FIELD(words[EVENT_REGION], TIER_KIND_AT),
		.verdict = TIER_FIELD(words[EVENT_REGION], TIER_VERDICT_AT),
		.tier = TIER_FIELD(words[EVENT_REGION], TIER_LIST_AT),
		.user = words[EVENT_USER],
		.start = words[EVENT_START],
		.value = words[EVENT_VALUE],
		.bits = words[EVENT_MATCH_BITS],
		.requested = words[EVENT_REQUESTED],
		.moved = words[EVENT_MOVED],
		.offset = words[EVENT_OFFSET],
		.nid = (uint32_t)words[EVENT_INITIATOR],
		.pid = (uint32_t)(words[EVENT_INITIATOR] >> 32),
		.uid = (uint32_t)words[EVENT_TARGET],
		.portal = (uint32_t)(words[EVENT_TARGET] >> 32),
	};
}

enum queue_answer rig_take_tier(struct rig *rig, uint64_t queue, struct rig_tier_event *event)
{
	struct queue *object = segment_queue(rig->segment, handle_index(queue));
	const struct queue_view view = queue_view(rig->segment, object, queue);

	return queue_take_oldest(&view, tier_event_copy, event);
}

struct rig_tier_event rig_tier_event(struct rig *rig, uint64_t queue, unsigned kind)
{
	struct rig_tier_event event;

	assert_int_equal(rig_take_tier(rig, queue, &event), QUEUE_EVENT);
	assert_int_equal(event.kind, kind);
	return event;
}

enum answer rig_search(struct rig *rig, const struct rig_tier *search, bool remove)
{
	struct long_command command = {.command = {.kind = COMMAND_SEARCH, .space = rig->space}};
	uint32_t slot = segment_take(rig->ring, rig->ring->free_replies);
	struct reply *reply = segment_reply(rig->ring, slot);
	const struct search_lines lines = {
		.bits = search->bits,
		.ignore = search->ignore,
		.nid = UINT32_MAX,
		.pid = UINT32_MAX,
		.user = search->user,
		.counter = search->counter,
		.length = search->length,
		.min_free = search->min_free,
		.log = ~search->log,
		.counts = search->counts,
		.flags = search->flags,
		.options = (uint8_t)search->options,
		.remove = remove,
	};

	atomic_store(&reply->state, REPLY_PENDING);
	command.command.reply = slot;
	memcpy(command.further, &lines, sizeof(lines));
	assert_true(
		ring_put_lines(segment_ring(rig->ring), &command, command_lines(COMMAND_SEARCH)));
	engine_poll(rig->engine);
	assert_int_equal(atomic_load(&reply->state), REPLY_DONE);
	segment_give(rig->ring, rig->ring->free_replies, slot);
	return reply->answer;
}

struct long_command rig_rma_command(uint64_t descriptor, const struct rig_rma *call)
{
	struct long_command command = {.command = {.kind = COMMAND_RMA}};
	const struct rma_line line = {
		.local = call->local,
		.length = call->length,
		.user = call->user,
		.message = call->message,
		.want = call->want,
		.copied = call->copied != NULL,
		.amo = call->amo,
		.source = handle_index(call->source),
		.source_generation = handle_generation(call->source),
		.source_local = call->source_local,
	};

	command.command.move = (struct move){
		.region = handle_index(descriptor),
		.generation = handle_generation(descriptor),
		.to = call->to,
		.portal = call->portal,
		.cookie = call->cookie,
		.match_bits = call->bits,
		.offset = call->offset,
		.value = call->value,
	};
	memcpy(command.further[0], &line, sizeof(line));
	if (call->copied)
		memcpy(command.further[1], call->copied, call->length);
	if (call->operand)
		memcpy(command.further[1], call->operand, sizeof(*call->operand));
	return command;
}

void rig_begin(struct rig *rig, uint64_t descriptor, const struct rig_rma *call)
{
	struct long_command command = rig_rma_command(descriptor, call);

	command.command.space = rig->space;
	assert_true(ring_put_lines(
		segment_ring(rig->ring), &command, call->copied || call->operand ? RING_LINES : 2));
	engine_poll(rig->engine);
}

void rig_trigger(struct rig *rig, uint64_t counter, uint64_t threshold,
	const struct long_command *command, unsigned lines)
{
	struct long_command trigger = {.command = {.kind = COMMAND_TRIGGER, .space = rig->space}};

	trigger.command.object.index = handle_index(counter);
	trigger.command.object.generation = handle_generation(counter);
	trigger.command.object.other = threshold;
	trigger.command.lines = (uint8_t)lines;
	memcpy(trigger.further, command, lines * RING_BYTES);
	atomic_fetch_add(&rig->segment->triggered, 1);
	assert_true(ring_put_lines(segment_ring(rig->ring), &trigger, 1 + lines));
	engine_poll(rig->engine);
}
