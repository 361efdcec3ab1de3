/* region.c - memory regions: how they come, what an operation costs them, and how they go.
 *
 * R1. A region is freed only while `pending` is 0, so that no operation ever touches the memory of
 *     a region that is gone.
 * R2. An operation stops being pending before its END, FAIL or ACK event is published: whoever
 *     reads the event may unlink.
 * R3. REGION_LEAVING accepts nothing; it is freed, with its UNLINK event, by the last pending
 *     operation's end.
 */
#include <engine/state.h>

#include <portals.h>

#include <base/handle.h>

static_assert(REGION_PUT == PTL_MD_OP_PUT && REGION_GET == PTL_MD_OP_GET &&
		      REGION_TRUNCATE == PTL_MD_TRUNCATE &&
		      REGION_REMOTE_OFFSET == PTL_MD_MANAGE_REMOTE &&
		      REGION_NO_ACK == PTL_MD_ACK_DISABLE,
	"options are the caller's");
static_assert((int)EVENT_UNLINK == (int)PTL_EVENT_UNLINK &&
		      (int)EVENT_SEND_FAIL == (int)PTL_EVENT_SEND_FAIL,
	"event kinds are the caller's");

struct region *region_find(struct engine *engine, uint32_t index, uint32_t generation)
{
	struct region *region;

	if (index >= engine->segment->limits.regions)
		return NULL;
	region = segment_region(engine->segment, index);
	if (!gate_is(atomic_load_explicit(&region->gate, memory_order_relaxed), generation) ||
		region->state == REGION_FREE)
		return NULL;
	return region;
}

struct region *region_of(struct engine *engine, uint64_t handle)
{
	if (handle_kind(handle) != HANDLE_REGION || handle_interface(handle) != engine->interface)
		return NULL;
	return region_find(engine, handle_index(handle), handle_generation(handle));
}

static uint32_t region_index(struct engine *engine, const struct region *region)
{
	return (uint32_t)(region - segment_region(engine->segment, 0));
}

static uint64_t region_handle(struct engine *engine, const struct region *region)
{
	uint64_t gate = atomic_load_explicit(&region->gate, memory_order_relaxed);

	return handle_make(HANDLE_REGION, engine->interface, region_index(engine, region),
		gate_generation(gate));
}

static void region_describe(const struct region *region, struct region_description *description)
{
	description->start = region->start;
	description->length = region->length;
	description->user = region->user;
	description->queue = region->queue;
	description->threshold = region->threshold;
	description->max_offset = region->max_offset;
	description->options = region->options;
	description->reserved = 0;
}

static bool region_is_spent(const struct region *region)
{
	return region->threshold == 0 ||
	       (!(region->options & REGION_REMOTE_OFFSET) && region->offset > region->max_offset);
}

bool region_take(struct region *region)
{
	uint64_t gate = atomic_load_explicit(&region->gate, memory_order_relaxed);

	/* The other party is a sending thread that takes an operation; nothing else depends on the
	 * order. */
	do {
		if (gate_low(gate) == 0)
			return false;
		if (gate_low(gate) == GATE_THRESHOLD_INFINITE)
			return true;
	} while (!atomic_compare_exchange_weak_explicit(
		&region->gate, &gate, gate - 1, memory_order_relaxed, memory_order_relaxed));
	return true;
}

bool region_spend(struct region *region, bool taken, uint64_t moved)
{
	bool was_spent = region_is_spent(region);

	if (taken && region->threshold != GATE_THRESHOLD_INFINITE && region->threshold != 0)
		region->threshold--;
	if (!(region->options & REGION_REMOTE_OFFSET))
		region->offset += moved;
	return !was_spent && region_is_spent(region);
}

void region_begin(struct engine *engine, struct region *region, struct operation *operation)
{
	struct queue *queue;

	region->pending++;
	operation->region = region_index(engine, region);
	operation->region_handle = region_handle(engine, region);
	operation->queue = region->queue;
	if (operation->kind == OPERATION_RECEIVE || operation->kind == OPERATION_SERVE) {
		queue = queue_find(engine->segment, engine->interface, operation->queue);
		if (queue)
			queue->incoming++;
	}
}

/* Writes into an event what it says of its region. */
static void event_describe(struct engine *engine, const struct region *region, struct event *event)
{
	event->region = region_handle(engine, region);
	event->start = region->start;
	event->length = region->length;
	event->user = region->user;
	event->queue = region->queue;
	/* Not the gate's: events tell of operations in the order in which they began, and sends
	 * that wait in the ring have not. */
	event->threshold = region->threshold;
	event->max_offset = region->max_offset;
	event->options = (uint8_t)region->options;
}

static uint64_t event_log(struct engine *engine, uint64_t handle, struct event *event, bool *lost)
{
	struct queue *queue =
		handle ? queue_find(engine->segment, engine->interface, handle) : NULL;
	bool logged;

	if (lost)
		*lost = true;
	if (!queue)
		return 0;
	logged = queue_log(engine->segment, queue, event);
	if (logged) {
		engine_count(engine, events_logged);
		engine_touch(engine, queue);
	} else {
		engine_count(engine, events_lost);
	}
	if (lost)
		*lost = !logged;
	return event->sequence;
}

uint64_t region_log(struct engine *engine, struct region *region, uint64_t handle,
	struct event *event, bool *lost)
{
	event_describe(engine, region, event);
	return event_log(engine, handle, event, lost);
}

/* R3: the end of a region that nothing is pending on. R2 again: whoever reads the event may attach
 * another region to the entry. */
static void region_depart(struct engine *engine, struct region *region, struct event *event)
{
	uint64_t queue = region->queue;

	event->kind = EVENT_UNLINK;
	event->fail = TRANSPORT_OK;
	event->link = region->unlink_link ? region->unlink_link : LINK_OWN;
	event_describe(engine, region, event);
	region_free(engine, region_index(engine, region));
	event_log(engine, queue, event, NULL);
}

void region_leave(struct engine *engine, struct region *region, struct event *event)
{
	region->state = REGION_LEAVING;
	region->unlink_link = 0;
	if (region->pending == 0)
		region_depart(engine, region, event);
}

void region_settle(struct engine *engine, struct region *region, struct operation *operation)
{
	if (operation->exhausts && region->unlink_op && region->state == REGION_LIVE &&
		region_is_spent(region)) {
		region->state = REGION_LEAVING;
		region->unlink_link = operation->event.link == LINK_OWN ? 0 : operation->event.link;
	}
	if (region->state == REGION_LEAVING && region->pending == 0)
		region_depart(engine, region, &operation->event);
}

void region_end(
	struct engine *engine, struct operation *operation, enum event_kind kind, uint32_t why)
{
	struct region *region = segment_region(engine->segment, operation->region);
	struct queue *queue;

	if (operation->kind == OPERATION_RECEIVE || operation->kind == OPERATION_SERVE) {
		queue = queue_find(engine->segment, engine->interface, operation->queue);
		if (queue && queue->incoming > 0)
			queue->incoming--;
	}
	region->pending--; /* R2 */
	operation->event.kind = (uint8_t)kind;
	operation->event.fail = (uint8_t)why;
	region_log(engine, region, operation->queue, &operation->event, NULL);

	if (why != TRANSPORT_OK)
		operation->exhausts = false; /* only a successful operation's end unlinks */
	region_settle(engine, region, operation);
}

void region_free(struct engine *engine, uint32_t index)
{
	struct region *region = segment_region(engine->segment, index);
	uint32_t owner = region->entry;

	atomic_store_explicit(&region->gate, 0, memory_order_release);
	region->state = REGION_FREE;
	region->entry = INDEX_NONE;
	segment_give(engine->segment, engine->segment->free_regions, index);

	if (owner != INDEX_NONE) {
		struct entry *entry = segment_entry(engine->segment, owner);

		entry->region = INDEX_NONE;
		if (entry->unlink)
			entry_free(engine, owner);
		else
			atomic_fetch_and_explicit(
				&entry->gate, ~(uint64_t)GATE_ATTACHED, memory_order_release);
	}
}

/* What the application leaves open when it fills a region in. */
static void region_open(struct region *region)
{
	region->offset = 0;
	region->pending = 0;
	region->unlink_link = 0;
	region->state = REGION_LIVE;
}

void region_bind(struct engine *engine, uint32_t index, uint32_t generation)
{
	struct region *region;

	if (index >= engine->segment->limits.regions)
		return;
	region = segment_region(engine->segment, index);
	if (!gate_is(atomic_load_explicit(&region->gate, memory_order_relaxed), generation) ||
		region->state != REGION_FREE)
		return;
	region->entry = INDEX_NONE;
	region_open(region);
}

void region_attach(struct engine *engine, uint32_t index, uint32_t generation)
{
	struct segment *segment = engine->segment;
	struct region *region;
	struct entry *entry;

	if (index >= segment->limits.regions)
		return;
	region = segment_region(segment, index);
	if (!gate_is(atomic_load_explicit(&region->gate, memory_order_relaxed), generation) ||
		region->state != REGION_FREE)
		return;
	region_open(region);
	/* Another thread may have unlinked the entry since. */
	entry = region->entry < segment->limits.entries
			? entry_find(engine, region->entry, region->entry_generation)
			: NULL;
	if (!entry || entry->region != INDEX_NONE) {
		engine_count(engine, commands_stale);
		region->entry = INDEX_NONE;
		region_free(engine, index);
		return;
	}
	entry->region = index;
}

int region_unlink(struct engine *engine, uint32_t index, uint32_t generation)
{
	struct region *region = region_find(engine, index, generation);

	if (!region)
		return PTL_INV_MD;
	if (region->pending != 0)
		return PTL_MD_INUSE;
	region_free(engine, index);
	return PTL_OK;
}

/* Sends that were taken from the old threshold and still wait in the ring are not charged to the
 * new one. */
static void region_apply(struct region *region, const struct region_description *after)
{
	uint64_t gate = atomic_load_explicit(&region->gate, memory_order_relaxed);
	uint32_t waiting = 0;

	region->start = after->start;
	region->length = after->length;
	region->user = after->user;
	region->queue = after->queue;
	region->max_offset = after->max_offset;
	region->options = after->options & REGION_OPTIONS;
	while (!atomic_compare_exchange_weak_explicit(&region->gate, &gate,
		gate_make(gate_generation(gate), after->threshold), memory_order_release,
		memory_order_relaxed))
		;
	if (region->threshold != GATE_THRESHOLD_INFINITE)
		waiting = region->threshold - gate_low(gate);
	region->threshold = after->threshold;
	if (after->threshold != GATE_THRESHOLD_INFINITE)
		region->threshold += waiting;
}

int region_update(struct engine *engine, const struct command *command, struct reply *reply)
{
	struct region *region =
		region_find(engine, command->object.index, command->object.generation);
	struct queue *queue;

	if (!region || region->state != REGION_LIVE)
		return PTL_INV_MD;
	region_describe(region, &reply->before);
	if (command->object.other) {
		queue = queue_find(engine->segment, engine->interface, command->object.other);
		if (!queue)
			return PTL_INV_EQ;
		if (!queue_is_empty(queue) || queue->incoming != 0)
			return PTL_NOUPDATE;
	}
	if (command->update)
		region_apply(region, &reply->after);
	return PTL_OK;
}
