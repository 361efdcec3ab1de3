/* SPDX-License-Identifier: BSD-3-Clause */
/* keys.c - see keys.h. */
#include "../nap.h"
#include "keys.h"

#include <string.h>
#include <unistd.h>

#include <base/settings.h>
#include <host/address.h>
#include <host/events.h>
#include <host/inspection.h>

#define EVENTS  16
#define TIMEOUT SECOND /* for a put that nobody acknowledges */

static const struct option_word options[] = {{REGION_PUT, "put"}, {REGION_GET, "get"}, {0, NULL}};
static const struct words words = {
	.entry = "key",
	.region = "value",
	.queue = "queue",
	.entries = "keys",
	.regions = "values",
	.queues = "queues",
	.options = options,
};
static const struct topic topics[] = {
	{"port", NULL, "the device", false, tell_port},
	{"keys", NULL, "keys and their values", true, tell_entries},
};
static struct front keys = {
	.name = "Keys",
	.start = "keys_init",
	.closed = KEYS_CLOSED,
	.topics = topics,
	.topic_count = sizeof(topics) / sizeof(topics[0]),
	.words = &words,
};

static uint64_t queues[HANDLE_INTERFACES]; /* of each endpoint */

static int code_of(enum answer answer)
{
	switch (answer) {
	case ANSWER_OK:
		return KEYS_OK;
	case ANSWER_GONE:
		return KEYS_INVALID;
	case ANSWER_NO_MEMORY:
		return KEYS_FULL;
	default:
		return KEYS_FAILED;
	}
}

int keys_init(void)
{
	return code_of(front_open(&keys));
}

void keys_fini(void)
{
	front_close(&keys);
}

static int endpoint_visit(struct visit *visit, uint64_t endpoint)
{
	return front_visit(&keys, visit, endpoint, HANDLE_INTERFACE, KEYS_INVALID);
}

int keys_open(unsigned interface, uint32_t pid, uint64_t *endpoint)
{
	const struct segment_limits limits = {.entries = 64,
		.regions = 64,
		.queues = 1,
		.portals = 1,
		.access = 1,
		.list_length = 64,
		.event_bytes = 1 << 16};
	struct visit visit;
	int code = KEYS_INVALID;

	if (!front_is_open(&keys))
		return KEYS_CLOSED;
	library_lock();
	if (interface < setting_items(SETTING_IFACE_NAME) && !interface_is_open(&keys, interface))
		code = code_of(interface_open(&keys, interface, pid, &limits));
	library_unlock();
	if (code != KEYS_OK)
		return code;
	*endpoint = atomic_load(&interfaces[interface].handle);
	code = endpoint_visit(&visit, *endpoint);
	if (code != KEYS_OK)
		return code;
	code = code_of(events_make(&visit, EVENTS, &queues[interface]));
	visit_leave(&visit);
	return code;
}

int keys_close(uint64_t endpoint)
{
	return front_is_open(&keys) ? code_of(interface_close(&keys, endpoint)) : KEYS_CLOSED;
}

int keys_self(uint64_t endpoint, struct process *self)
{
	struct visit visit;
	int code = endpoint_visit(&visit, endpoint);

	if (code != KEYS_OK)
		return code;
	*self = visit.interface->self;
	visit_leave(&visit);
	return KEYS_OK;
}

/* Fills in a region of the visited endpoint that logs these events; `object` names it. */
static struct region *region_make(const struct visit *visit, const void *memory, size_t length,
	uint32_t log, struct command *object)
{
	struct segment *segment = visit->segment;
	uint32_t index = segment_take(segment, segment->free_regions);
	struct region *region;

	if (index == INDEX_NONE)
		return NULL;
	region = segment_region(segment, index);
	region->start = (uintptr_t)memory;
	region->length = length;
	region->user = 0;
	region->queue = log == 0 ? 0 : queues[visit->interface - interfaces];
	region->max_offset = UINT32_MAX;
	region->options = REGION_PUT | REGION_GET | REGION_REMOTE_OFFSET | REGION_TRUNCATE;
	region->log = log;
	region->entry = INDEX_NONE;
	region->unlink_op = false;
	region->unlink_nofit = false;
	region->threshold = GATE_THRESHOLD_INFINITE;
	object->object.index = index;
	object->object.generation = segment_generation(segment);
	atomic_store_explicit(&region->gate,
		gate_make(object->object.generation, GATE_THRESHOLD_INFINITE),
		memory_order_release);
	return region;
}

/* Makes the entry of a key, which has a region; `object` names it. */
static void entry_make(
	const struct visit *visit, uint64_t key, uint32_t index, struct command *object)
{
	struct match_entry *match = segment_match(visit->segment, index);
	struct entry *entry = segment_entry(visit->segment, index);

	match->bits = key;
	match->ignore = 0;
	match->nid = match->pid = UINT32_MAX;
	entry->unlink = true;
	object->object.index = index;
	object->object.generation = segment_generation(visit->segment);
	atomic_store_explicit(&entry->portal, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->gate, gate_make(object->object.generation, GATE_ATTACHED),
		memory_order_release);
}

static int key_offer(const struct visit *visit, uint64_t key, void *memory, size_t length)
{
	struct segment *segment = visit->segment;
	struct command entry = {.kind = COMMAND_ENTRY_ATTACH, .position = POSITION_AFTER};
	struct command region = {.kind = COMMAND_REGION_ATTACH};
	uint32_t index = segment_take(segment, segment->free_entries);
	struct region *value;

	if (index == INDEX_NONE)
		return KEYS_FULL;
	value = region_make(visit, memory, length, 0, &region);
	if (!value) {
		segment_give(segment, segment->free_entries, index);
		return KEYS_FULL;
	}
	atomic_fetch_add(&segment_portal(segment, 0)->length[0], 1);
	entry_make(visit, key, index, &entry);
	value->entry = index;
	value->entry_generation = entry.object.generation;
	submission_post(&visit->interface->submission, &entry);
	submission_post(&visit->interface->submission, &region);
	return KEYS_OK;
}

int keys_offer(uint64_t endpoint, uint64_t key, void *memory, size_t length)
{
	struct visit visit;
	int code = endpoint_visit(&visit, endpoint);

	if (code != KEYS_OK)
		return code;
	code = address_range_is_bad((uintptr_t)memory, length)
		       ? KEYS_INVALID
		       : key_offer(&visit, key, memory, length);
	visit_leave(&visit);
	return code;
}

struct key_outcome {
	struct queue_view queue;
	uint32_t end; /* the kind that is waited for, or the one after it: it failed */
	uint32_t kind;
	uint32_t fail;
	uint64_t moved;
};

static void outcome_copy(
	const struct event_slot *slot, uint32_t attributes, uint32_t second, void *to)
{
	struct key_outcome *outcome = to;

	outcome->kind = EVENT_KIND(attributes) + second;
	outcome->fail = EVENT_FAIL(attributes);
	outcome->moved = atomic_load_explicit(&slot->words[EVENT_MOVED], memory_order_relaxed);
}

static bool outcome_look(void *context)
{
	struct key_outcome *outcome = context;
	enum queue_answer answer;

	do
		answer = queue_take(&outcome->queue, outcome_copy, outcome);
	while (answer == QUEUE_EVENT && outcome->kind != outcome->end &&
		outcome->kind != outcome->end + 1);
	return answer != QUEUE_EMPTY;
}

/* Carries out a put or a get of the visited endpoint, and waits for the event that says how it
 * ended. An acknowledgement names its put by the event that says that the put has begun. */
static int move_run(const struct visit *visit, struct command *move, const void *data,
	size_t length, enum event_kind end, uint64_t *moved)
{
	uint64_t handle = queues[visit->interface - interfaces];
	struct queue *queue = segment_queue(visit->segment, handle_index(handle));
	struct key_outcome outcome = {
		.queue = queue_view(visit->segment, queue, handle), .end = end};
	uint32_t log = EVENT_BIT(end) | EVENT_BIT(end == EVENT_ACK ? EVENT_SEND_START : end + 1);
	struct command bind = {.kind = COMMAND_REGION_BIND};
	struct command unlink = {.kind = COMMAND_REGION_UNLINK};
	enum waiting_answer answer;

	if (!region_make(visit, data, length, log, &bind))
		return KEYS_FULL;
	move->move.region = unlink.object.index = bind.object.index;
	move->move.generation = unlink.object.generation = bind.object.generation;
	submission_post(&visit->interface->submission, &bind);
	submission_post(&visit->interface->submission, move);
	answer = events_await(visit, &outcome.queue, 1, outcome_look, &outcome, TIMEOUT);
	while (visit_call(visit, &unlink, NULL, NULL) == ANSWER_PENDING)
		nap();
	*moved = outcome.moved;
	if (answer == WAITING_CLOSED)
		return KEYS_INVALID;
	return answer == WAITING_FOUND && outcome.fail == 0 ? KEYS_OK : KEYS_UNKNOWN;
}

int keys_put(
	uint64_t endpoint, struct process target, uint64_t key, const void *data, size_t length)
{
	struct command move = {.kind = COMMAND_PUT,
		.acknowledge = true,
		.move = {.to = target, .match_bits = key}};
	struct visit visit;
	uint64_t moved;
	int code = endpoint_visit(&visit, endpoint);

	if (code != KEYS_OK)
		return code;
	code = move_run(&visit, &move, data, length, EVENT_ACK, &moved);
	visit_leave(&visit);
	return code;
}

int keys_get(uint64_t endpoint, struct process target, uint64_t key, void *data, size_t *length)
{
	struct command move = {.kind = COMMAND_GET, .move = {.to = target, .match_bits = key}};
	struct visit visit;
	uint64_t moved;
	int code = endpoint_visit(&visit, endpoint);

	if (code != KEYS_OK)
		return code;
	code = move_run(&visit, &move, data, *length, EVENT_REPLY_END, &moved);
	*length = moved;
	visit_leave(&visit);
	return code;
}

int keys_look(uint64_t endpoint, const char *topic, char *text, size_t size)
{
	size_t length;

	return code_of(
		inspection_write(&keys, endpoint, topic, (struct page){0, 0}, text, size, &length));
}
