/* SPDX-License-Identifier: BSD-3-Clause */
/* steps.c - see world.h. */
#include <engine/amo.h>

#include "world.h"

static struct region_description region_make(struct world *world, struct script *script)
{
	static const uint32_t lengths[] = {0, 1, 8, 100, 300, 2000, 4096, 65536};
	uint8_t what = script_byte(script), more = script_byte(script);
	struct region_description region = {
		.length = lengths[what % 8],
		.queue = more & 1 ? 0 : world->queue_handle,
		.threshold = more & 6 ? GATE_THRESHOLD_INFINITE : more >> 3 & 3,
		.max_offset = more & 32 ? 50 : UINT32_MAX,
		.options = what >> 3,
	};

	if (world->buffer_count < BUFFERS)
		world->buffers[world->buffer_count++] = calloc(1, lengths[7]);
	/* The end of a buffer, so that one byte beyond it is seen. */
	region.start =
		(uintptr_t)world->buffers[world->buffer_count - 1] + lengths[7] - region.length;
	return region;
}

void step_attach(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct rig_entry entry = {.portal = what & 1,
		.match = what & 2 ? RIG_ANY : world->fellows[what >> 2 & 1].process,
		.bits = what >> 4 & 3,
		.ignore = what & 64 ? 3 : 0,
		.unlink = what >> 7};
	struct region_description region = region_make(world, script);
	uint64_t handle;

	if (world->entry_count == HANDLES || world->region_count == HANDLES)
		return;
	handle = what & 8 ? rig_entry_front(world->rig, &entry) : rig_entry(world->rig, &entry);
	world->entries[world->entry_count++] = handle;
	world->regions[world->region_count++] =
		rig_attach(world->rig, handle, &region, script_byte(script) & 3);
}

void step_move(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct rig_move move = {.to = world->fellows[what & 1].process,
		.portal = what >> 1 & 1,
		.acknowledge = what & 8};
	uint64_t region;

	if (what & 4)
		move.to = RIG_SELF;
	if (world->region_count == 0)
		return;
	region = world->regions[(what >> 5) % world->region_count];
	if (what & 16)
		rig_get(world->rig, region, &move);
	else
		rig_put(world->rig, region, &move);
}

static struct rig_tier tier_make(const struct world *world, struct script *script)
{
	static const uint32_t lengths[] = {0, 1, 100, MEMORY};
	uint8_t what = script_byte(script), more = script_byte(script);
	struct rig_tier tier = {
		.length = lengths[what & 3],
		.bits = what >> 2 & 3,
		.ignore = what & 16 ? UINT64_MAX : 0,
		.portal = what >> 5 & 1,
		.tier = what >> 6 & 1,
		.uid = what & 128 ? RIG_UID : 0,
		.options = (more & REGION_OPTIONS) ^ (REGION_PUT | REGION_GET | REGION_TRUNCATE),
		.flags = more >> 4 & ATTACHMENT_OPTIONS,
		.min_free = more & 128 ? 10 : 0,
	};

	/* The end of the memory, so that one byte beyond it is seen. */
	tier.start = world->memory + MEMORY - tier.length;
	return tier;
}

/* Makes an atomic of a call: one without an operand. */
static void atomic_choose(const struct world *world, struct script *script, struct rig_rma *call)
{
	uint8_t what = script_byte(script);
	bool fetch = call->message == MESSAGE_LOAD;
	unsigned operation = what % AMO_CSWAP, type = AMO_UINT64;

	if (amo_is_valid(operation, (what >> 4) % AMO_TYPES))
		type = (what >> 4) % AMO_TYPES;
	call->message = fetch ? MESSAGE_FETCH : MESSAGE_ATOMIC;
	call->amo = message_amo(operation, type);
	call->source = world->stores;
	call->source_local = call->local;
}

static void step_call(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script), where = script_byte(script);
	bool load = what & 4, atomic = what & 128;
	struct rig_rma call = {
		.to = what & 2 ? RIG_SELF : world->fellows[what & 1].process,
		.portal = where & 1,
		.cookie = FELLOWS,
		.bits = where >> 1 & 3,
		.offset = where >> 3,
		.local = where & 63,
		.length = (uint64_t)where * 3 / 2,
		.message = load ? MESSAGE_LOAD : MESSAGE_STORE,
		.want = what >> 3 & 3,
	};
	uint64_t descriptor = load ? world->loads : world->stores;
	struct long_command command;

	if (atomic)
		atomic_choose(world, script, &call);
	command = rig_rma_command(descriptor, &call);

	if (what & 32) {
		world->triggered[load]++;
		world->triggered[0] += load && atomic;
		rig_trigger(world->space, what & 64 ? world->sent : world->replied, world->begun[0],
			&command, 2);
	} else {
		world->begun[load]++;
		world->begun[0] += load && atomic;
		rig_begin(world->space, descriptor, &call);
	}
}

void step_tiers(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct command command = {.kind = COMMAND_WITHDRAW};
	struct rig_tier tier;
	uint64_t entry;

	switch (what & 7) {
	case 0:
	case 1:
		tier = tier_make(world, script);
		entry = 0;
		if (world->appended_count == HANDLES)
			return;
		entry = rig_append(world->space, &tier);
		world->appended[world->appended_count++] = entry;
		return;
	case 2:
		tier = tier_make(world, script);
		rig_search(world->space, &tier, what & 8);
		return;
	case 3:
		if (world->appended_count == 0)
			return;
		entry = world->appended[(what >> 3) % world->appended_count];
		command.object.index = handle_index(entry);
		command.object.generation = handle_generation(entry);
		break;
	case 4:
		command.kind = what & 16 ? COMMAND_PORTAL_ENABLE : COMMAND_PORTAL_DISABLE;
		command.object.index = what >> 3 & 1;
		break;
	case 5:
		command.kind = COMMAND_COUNTER_CANCEL;
		command.count.index = handle_index(world->replied);
		command.count.generation = handle_generation(world->replied);
		if (what & 8)
			return; /* later */
		break;
	default:
		step_call(world, script);
		return;
	}
	rig_ask(world->space, &command);
}

void step_ping(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct process to = what & 2 ? RIG_SELF : world->fellows[what & 1].process;
	struct command command = {
		.kind = COMMAND_PING,
		.ping = {.nid = to.nid,
			.pid = to.pid,
			.size = script_word(script) % (FRAME_SIZE + 64),
			.answer = script_word(script),
			.timeout = UINT64_C(1) << (what >> 2)},
	};
	struct reply *reply;

	if (world->ping_count == PINGS)
		return;
	command.reply = segment_take(world->rig->segment, world->rig->segment->free_replies);
	fuzz_assert(command.reply != INDEX_NONE);
	world->pings[world->ping_count++] = command.reply;
	reply = segment_reply(world->rig->segment, command.reply);
	atomic_store(&reply->state, REPLY_PENDING);
	rig_post(world->rig, &command);
	world_turn(world);
}

void step_unlink(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct region_description region;

	if (world->region_count == 0)
		return;
	switch (what % 3) {
	case 0:
		rig_region_unlink(world->rig, world->regions[(what >> 2) % world->region_count]);
		break;
	case 1:
		rig_entry_unlink(world->rig, world->entries[(what >> 2) % world->entry_count]);
		break;
	default:
		region = region_make(world, script);
		rig_update(world->rig, world->regions[(what >> 2) % world->region_count], &region,
			what & 128 ? world->queue_handle : 0, NULL);
		break;
	}
}

void step_time(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	uint64_t deadline = engine_deadline(world->rig->engine);

	if (what < 128)
		world->rig->now += UINT64_C(1) << (what % 36);
	else if (deadline != UINT64_MAX)
		world->rig->now += deadline; /* exactly when a timer is due */
	world_turn(world);
}
