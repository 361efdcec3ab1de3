/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_receive.c - the whole receive path with its state: frames into a transport and an engine, as
 * a network full of liars might send them.
 *
 * The input is a script of steps (world.h). A step makes a frame of two other processes that
 * are modelled just so far that frames are right by default, and wrong where the script says so; or
 * hands in raw bytes; or lets the application attach, put, get, update, unlink and ping; or lets
 * time pass. Checksums are always right, but for raw frames. In some scripts the engine has a space
 * with tiers as well, whose application appends, searches, withdraws, stores, loads, makes atomics,
 * triggers and disables, and whose messages the others send and answer, asked or not.
 *
 * Whatever comes, it holds that
 *
 * F1. no byte outside a region is touched (the address sanitizer watches);
 * F2. every frame that the transport sends is one that it would accept;
 * F3. every operation that started ends in one END or FAIL, at the latest when the engine is
 * destroyed;
 * F4. every mbuf is back in its pool then, and no region is pending;
 * F5. an echo is never longer than its question, and every question of our own ends;
 * F6. in the space with tiers, each store and atomic has one SEND, each load one REPLY, each fetch
 * both, and a triggered one has at most one of each.
 */
#include <rte_eal.h>

#include <base/report.h>

#include "world.h"

#define POOL_FRAMES 1023
#define STEPS_MAX   256

static void space_begin(struct world *world, bool ranked)
{
	struct command map = {.kind = COMMAND_MAP};
	struct rig_tier descriptor = {.length = MEMORY, .options = REGION_REMOTE_OFFSET};

	world->space = rig_tiers(world->rig, ranked, &world->tier_queue);
	world->memory = calloc(1, MEMORY);
	fuzz_assert(world->memory);
	for (unsigned i = 0; i < FELLOWS; i++)
		world->map[i] = world->fellows[i].process;
	world->map[FELLOWS] = RIG_SELF;
	map.object.index = FELLOWS + 1;
	map.object.other = (uintptr_t)world->map;
	rig_ask(world->space, &map);
	world->sent = rig_event_counter(world->space);
	world->replied = rig_event_counter(world->space);
	descriptor.start = world->memory;
	descriptor.queue = world->tier_queue;
	descriptor.counter = world->sent;
	descriptor.counts = TIER_BIT(TIER_SEND);
	world->stores = rig_describe(world->space, &descriptor);
	descriptor.counter = world->replied;
	descriptor.counts = TIER_BIT(TIER_REPLY);
	world->loads = rig_describe(world->space, &descriptor);
}

/* After the engine: its memory is still there. */
static void space_end(struct world *world)
{
	const uint64_t counters[] = {world->sent, world->replied};
	struct segment *segment = world->space->segment;

	world_tier_events_drain(world);
	/* F6 */
	for (unsigned i = 0; i < 2; i++) {
		struct event_count count = rig_counted(world->space, counters[i]);

		fuzz_assert(count.success + count.failure >= world->begun[i]);
		fuzz_assert(count.success + count.failure <= world->begun[i] + world->triggered[i]);
	}
	for (uint32_t i = 0; i < segment->limits.regions; i++)
		fuzz_assert(segment_region(segment, i)->pending == 0);
	rig_space_free(world->space);
	free(world->memory);
}

static void world_begin(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct transport_options options = {
		.self = RIG_SELF,
		.incarnation = OWN_LIFE,
		.peer_timeout = RIG_PEER_TIMEOUT,
		.peers_max = 8,
		.first_psn = what & 1 ? UINT32_MAX - 3 : 0,
		.full_checksum = what & 2,
		.seed = 1,
		.encapsulation = {.udp = what & 4,
			.vlan = what & 8 ? 7 : 0,
			.prefix = 24,
			.address = what & 4 ? RIG_SELF.nid : 0,
			.gateway = (what & 20) == 20 ? 9 : 0},
	};

	memset(world, 0, sizeof(*world));
	world->port = (struct port){
		.operations = &world_operations,
		.pool = pool,
		.frame_size = FRAME_SIZE,
		.receive_frames = 64,
		.external = true,
		.socket = -1,
		.name = "world",
	};
	memcpy(world->port.address, own_address, sizeof(own_address));
	for (unsigned i = 0; i < FELLOWS; i++) {
		const uint8_t address[FRAME_ADDRESS_BYTES] = {2, 0, 0, 0, 1, (uint8_t)i};
		struct encapsulation_options theirs = options.encapsulation;

		world->fellows[i].process = (struct process){.nid = 8 + i, .pid = 80};
		world->fellows[i].life = 5;
		theirs.address = 8 + i;
		encapsulation_init(&world->fellows[i].encapsulation, &theirs, address, false);
		world->fellows[i].first = options.first_psn;
		fellow_begin(&world->fellows[i]);
	}
	world->rig = rig_create(&world->port, &options);
	world->queue_handle = rig_queue(world->rig, 2048);
	if (what & 64)
		space_begin(world, what & 32);
}

static void world_end(struct world *world)
{
	const unsigned *events = world->events;
	struct segment *segment = world->rig->segment;
	struct report_json json;
	uint32_t cursor = 0;

	engine_settled(world->rig->engine);
	report_json_init(&json, NULL, 0);
	transport_tell_peers(engine_transport(world->rig->engine), &cursor, 4, &json.report);
	rig_stop(world->rig);
	world_events_drain(world);
	/* F3. A get that fails has no start. */
	fuzz_assert(events[EVENT_PUT_START] == events[EVENT_PUT_END] + events[EVENT_PUT_FAILED]);
	fuzz_assert(events[EVENT_GET_START] == events[EVENT_GET_END] + events[EVENT_GET_FAILED]);
	fuzz_assert(events[EVENT_SEND_START] == events[EVENT_SEND_END] + events[EVENT_SEND_FAILED]);
	fuzz_assert(
		events[EVENT_REPLY_START] <= events[EVENT_REPLY_END] + events[EVENT_REPLY_FAILED]);
	fuzz_assert(events[EVENT_REPLY_END] <= events[EVENT_REPLY_START]);
	/* F5 */
	for (unsigned i = 0; i < world->ping_count; i++)
		fuzz_assert(
			atomic_load(&segment_reply(segment, world->pings[i])->state) == REPLY_DONE);
	/* F4 */
	for (unsigned i = 0; i < world->queued; i++)
		rte_pktmbuf_free(world->queue[i]);
	fuzz_assert(rte_mempool_avail_count(pool) == POOL_FRAMES);
	for (uint32_t i = 0; i < segment->limits.regions; i++)
		fuzz_assert(segment_region(segment, i)->pending == 0);
	if (world->space)
		space_end(world);
	rig_destroy(world->rig);
	for (unsigned i = 0; i < world->buffer_count; i++)
		free(world->buffers[i]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char words[][16] = {"fuzz", "--no-huge", "--no-shconf", "-m", "64", "--no-pci",
		"--no-telemetry", "-l", "0", "--log-level=1"};
	char *arguments[sizeof(words) / sizeof(words[0]) + 1] = {0};

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		arguments[i] = words[i];
	fuzz_assert(rte_eal_init((int)(sizeof(words) / sizeof(words[0])), arguments) >= 0);
	pool = rte_pktmbuf_pool_create(
		"fuzz", POOL_FRAMES, 0, 0, RTE_PKTMBUF_HEADROOM + FRAME_SIZE, SOCKET_ID_ANY);
	fuzz_assert(pool);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;
	struct script script = {data, data + size};

	if (size == 0 || size > 8192)
		return 0;
	world_begin(&world, &script);
	for (unsigned step = 0; step < STEPS_MAX && script.at < script.end; step++) {
		uint8_t what = script_byte(&script);

		switch (what % 16) {
		case 0:
			step_raw(&world, &script);
			break;
		case 1:
			step_echo(&world, &script);
			break;
		case 2:
			step_fellow(&world, &script);
			break;
		case 3:
		case 4:
			if (world.space && what & 32)
				step_tiers(&world, &script);
			else
				step_attach(&world, &script);
			break;
		case 5:
		case 6:
			step_move(&world, &script);
			break;
		case 7:
			if (world.space && what & 32)
				step_tiers(&world, &script);
			else
				step_unlink(&world, &script);
			break;
		case 8:
			step_time(&world, &script);
			break;
		case 9:
			if (what & 32)
				step_ping(&world, &script);
			else
				world.accept = script_byte(&script);
			break;
		case 14:
			step_network(&world, &script);
			break;
		case 15:
			step_arp(&world, &script);
			break;
		default:
			step_frame(&world, &script);
			break;
		}
		if (what & 16)
			world_turn(&world);
	}
	world_end(&world);
	return 0;
}
