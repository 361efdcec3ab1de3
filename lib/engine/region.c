/* SPDX-License-Identifier: BSD-3-Clause */
/* region.c - memory regions: how they come, what an operation costs them, and how they go.
 *
 * R1. A region is freed only while `pending` is 0, so that no operation ever touches the memory of
 *     a region that is gone.
 * R2. An operation stops being pending before its END, FAIL or ACK event is published: whoever
 *     reads the event may unlink.
 * R3. REGION_LEAVING accepts nothing; it is freed, with its UNLINK event, by the last pending
 *     operation's end.
 * R4. region->accepts is what a request may ask of it: while it lives and its local offset is not
 *     beyond the maximum, what its options say of put and get; else nothing. A function that
 *     changes one of these makes it true again (region_review()). A region that is not used is
 *     never looked at.
 */
#include <engine/logging.h>

#include <base/handle.h>
#include <engine/statistics.h>
#include <engine/tiers.h>

struct region *region_of(struct space *space, uint64_t handle)
{
	if (handle_kind(handle) != HANDLE_REGION || handle_interface(handle) != space->interface)
		return NULL;
	return region_find(space, handle_index(handle), handle_generation(handle));
}

static uint64_t region_handle(struct space *space, const struct region *region)
{
	uint64_t gate = atomic_load_explicit(&region->gate, memory_order_relaxed);

	return handle_make(HANDLE_REGION, space->interface, region_number(space, region),
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

/* Did another process ask for it? */
static bool operation_comes_in(const struct operation *operation)
{
	return operation->kind == OPERATION_RECEIVE || operation->kind == OPERATION_SERVE;
}

void region_begin(struct space *space, struct region *region, struct operation *operation)
{
	struct queue *queue;

	region->pending++;
	operation->space = space;
	operation->region = region;
	operation_aim(operation, region);
	if (operation_comes_in(operation)) {
		queue = operation_queue(operation);
		if (queue)
			queue->incoming++;
	}
}

bool region_take_one(struct region *region, uint64_t gate)
{
	/* The other party is a sending thread that takes an operation; nothing else depends on the
	 * order. */
	do {
		if (gate_low(gate) == GATE_THRESHOLD_INFINITE)
			return true;
		if (gate_low(gate) == 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&region->gate, &gate, gate - 1, memory_order_relaxed, memory_order_relaxed));
	return true;
}

bool region_charge(struct region *region, bool taken, uint64_t moved)
{
	bool was_spent = region_is_spent(region);

	if (taken && region->threshold != GATE_THRESHOLD_INFINITE && region->threshold != 0)
		region->threshold--;
	if (!(region->options & REGION_REMOTE_OFFSET)) {
		region->offset += moved;
		region_review(region);
	}
	return !was_spent && region_is_spent(region);
}

uint64_t region_log(struct space *space, const struct region *region, struct queue *queue,
	enum event_kind kind, const struct account *account)
{
	if (!queue || !event_wanted(region, kind, TRANSPORT_OK))
		return 0;
	return event_log(space, queue, region, kind, TRANSPORT_OK, account, account->link).sequence;
}

uint64_t region_log_apart(struct space *space, const struct region *region,
	const struct account *account, enum event_kind start)
{
	struct queue *queue = region_queue(region);
	struct account copy = *account;
	uint64_t link;

	copy.link = LINK_OWN;
	link = region_log(space, region, queue, start, &copy);
	copy.link = link ? link : LINK_OWN;
	region_log(space, region, queue, start + 1, &copy);
	return link;
}

/* R3: the end of a region that nothing is pending on. R2 again: a program that reads the event may
 * attach another region to the entry. */
static void region_depart(struct space *space, struct region *region, const struct account *account)
{
	struct queue *queue = region_queue(region);
	struct logging logging = {0};

	if (queue && event_wanted(region, EVENT_UNLINK, TRANSPORT_OK)) {
		logging = queue_claim(queue);
		if (logging.slot)
			event_write(&logging, region, EVENT_UNLINK, TRANSPORT_OK, account,
				region->unlink_link ? region->unlink_link : LINK_OWN);
		else
			space_count(space, events_lost);
	}
	region_free(space, region_number(space, region));
	if (logging.slot)
		event_publish(space, queue, &logging, 1);
}

void region_leave(struct space *space, struct region *region, const struct account *account)
{
	region->state = REGION_LEAVING;
	region_review(region);
	region->unlink_link = 0;
	if (region->pending == 0)
		region_depart(space, region, account);
}

void region_settle_spent(
	struct space *space, struct region *region, const struct account *account, bool exhausts)
{
	if (exhausts && region->unlink_op && region->state == REGION_LIVE &&
		region_is_spent(region)) {
		region->state = REGION_LEAVING;
		region_review(region);
		region->unlink_link = account->link == LINK_OWN ? 0 : account->link;
	}
	if (region->state == REGION_LEAVING && region->pending == 0)
		region_depart(space, region, account);
}

void region_end(struct operation *operation, enum event_kind kind, uint32_t why)
{
	struct region *region = operation->region;
	struct space *space = operation->space;
	struct queue *queue = operation_queue(operation);

	if (queue && operation_comes_in(operation) && queue->incoming > 0)
		queue->incoming--;
	region_log_end(space, region, queue, kind, why, &operation->account);
	/* Only a successful operation's end unlinks. */
	region_settle(
		space, region, &operation->account, operation->exhausts && why == TRANSPORT_OK);
}

void region_free(struct space *space, uint32_t index)
{
	struct region *region = segment_region(space->segment, index);
	uint32_t owner = region->entry;

	atomic_store_explicit(&region->gate, 0, memory_order_release);
	region->state = REGION_FREE;
	region->entry = INDEX_NONE;
	segment_give(space->segment, space->segment->free_regions, index);

	if (owner != INDEX_NONE) {
		struct entry *entry = segment_entry(space->segment, owner);

		segment_match(space->segment, owner)->region = INDEX_NONE;
		if (entry->unlink)
			entry_free(space, owner);
		else
			atomic_fetch_and_explicit(
				&entry->gate, ~(uint64_t)GATE_ATTACHED, memory_order_release);
	}
}

/* Fills in those fields of a region that the application leaves to the engine. */
static void region_open(struct space *space, struct region *region)
{
	region->handle = region_handle(space, region);
	region->logs = queue_named(space->segment, region->queue);
	region->offset = 0;
	region->pending = 0;
	region->unlink_link = 0;
	region->state = REGION_LIVE;
	region_review(region);
}

void region_bind(struct space *space, uint32_t index, uint32_t generation)
{
	struct region *region = region_named(space, index, generation);

	if (!region || region->state != REGION_FREE)
		return;
	region->entry = INDEX_NONE;
	region_open(space, region);
	if (space->kind == SPACE_TIERS)
		tiers_bound(space, region);
}

void region_attach(struct space *space, uint32_t index, uint32_t generation)
{
	struct region *region = region_named(space, index, generation);
	struct match_entry *match = NULL;

	if (!region || region->state != REGION_FREE)
		return;
	region_open(space, region);
	/* Another thread may have unlinked the entry since. */
	if (entry_find(space, region->entry, region->entry_generation))
		match = segment_match(space->segment, region->entry);
	if (!match || match->region != INDEX_NONE) {
		space_count(space, commands_stale);
		region->entry = INDEX_NONE;
		region_free(space, index);
		return;
	}
	match->region = index;
}

enum answer region_unlink(struct space *space, uint32_t index, uint32_t generation)
{
	struct region *region = region_find(space, index, generation);

	if (!region)
		return ANSWER_GONE;
	if (region->pending != 0)
		return ANSWER_PENDING;
	region_free(space, index);
	return ANSWER_OK;
}

/* Sends that were taken from the old threshold and still wait in the ring are not charged to the
 * new one. */
static void region_apply(
	struct space *space, struct region *region, const struct region_description *after)
{
	uint64_t gate = atomic_load_explicit(&region->gate, memory_order_relaxed);
	uint32_t waiting = 0;

	region->start = after->start;
	region->length = after->length;
	region->user = after->user;
	region->queue = after->queue;
	region->logs = queue_named(space->segment, region->queue);
	region->max_offset = after->max_offset;
	region->options = after->options & REGION_OPTIONS;
	region_review(region);
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

enum answer region_update(struct space *space, const struct command *command, struct reply *reply)
{
	struct region *region =
		region_find(space, command->object.index, command->object.generation);
	struct queue *queue;

	if (!region || region->state != REGION_LIVE)
		return ANSWER_GONE;
	region_describe(region, &reply->before);
	if (command->object.other) {
		queue = queue_find(space->segment, command->object.other);
		if (!queue)
			return ANSWER_NO_QUEUE;
		if (queue_used(queue) != 0 || queue->incoming != 0)
			return ANSWER_NOT_EMPTY;
	}
	if (command->update)
		region_apply(space, region, &reply->after);
	return ANSWER_OK;
}
