/* SPDX-License-Identifier: BSD-3-Clause */
/* space.c - spaces: how they are opened, and how they go.
 *
 * X1. A space that closes takes no message and no command any more, but what has begun ends as
 *     always: it is freed, and its segment is its owner's again, when no operation names it.
 */
#include <engine/state.h>

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include <base/log.h>
#include <engine/access.h>
#include <engine/letters.h>
#include <engine/triggered.h>
#include <engine/unexpected.h>

/* Entry 0 admits every process of the same user; the others nobody. */
static void access_init(const struct space *space)
{
	const struct process any = {.nid = UINT32_MAX, .pid = UINT32_MAX};

	access_admit(segment_access(space->segment, 0), any, space->uid, UINT32_MAX);
	for (uint32_t i = 1; i < space->segment->limits.access; i++)
		access_admit_nobody(segment_access(space->segment, i));
}

void space_deny(struct space *space, struct process from, const struct message_header *header,
	const char *by, const char *counter)
{
	if (!log_wants(LOG_LEVEL_INFO))
		return;
	for (uint32_t i = 0; i < space->denied_count; i++)
		if (process_same(space->denied[i], from))
			return;
	if (space->denied_count == DENIED_MOST)
		return;
	space->denied[space->denied_count++] = from;
	log_info("interface %" PRIu32 ": a message from %" PRIu32 ":%" PRIu32 " of user %" PRIu32
		 " to Portal %" PRIu32 " was dropped, because %s does not admit it; %s (this "
		 "program is user %" PRIu32 "'s; further drops of that process are only counted, "
		 "in %s)",
		space->interface, from.nid, from.pid, header->uid, header->portal, by,
		space->two_sided ? "run both programs as one user, as two-sided messages want it"
				 : "let this program admit that user, or all users",
		space->uid, counter);
}

/* Pages of them that are not used take no memory, so the small ones, which all spaces use, are
 * neighbours: here, and first in unexpected_place(). */
static void tables_place(struct space *space)
{
	const uint32_t portals = space->segment->limits.portals;

	space->lists = pages_table(&space->tables, space->list_count, sizeof(*space->lists));
	space->unmatched = pages_table(&space->tables, portals, sizeof(*space->unmatched));
	space->portals = pages_table(&space->tables, portals, sizeof(*space->portals));
	if (space->kind == SPACE_TIERS) {
		unexpected_place(space, &space->tables);
		letters_place(space, &space->tables);
		space->strangers = pages_table(&space->tables, 1, sizeof(*space->strangers));
		space->peers = pages_table(&space->tables, 1, sizeof(*space->peers));
	}
}

static bool lists_create(struct space *space)
{
	const struct segment *segment = space->segment;

	space->entries = (struct match_table){
		.base = segment_match(segment, 0),
		.count = segment->limits.entries + segment->limits.receives,
	};
	space->list_count = segment->limits.portals * (space->kind == SPACE_TIERS ? TIERS : 1);
	tables_place(space);
	space->tables.memory = pages_map_root(space->tables.bytes);
	if (!space->tables.memory)
		return false;
	space->tables.bytes = 0;
	tables_place(space);
	for (uint32_t i = 0; i < space->list_count; i++)
		match_list_init(&space->lists[i]);
	return space->kind != SPACE_TIERS || unexpected_open(space);
}

static void space_free(struct space *space)
{
	if (space->tables.memory) {
		for (uint32_t i = 0; i < space->list_count; i++)
			match_list_clear(&space->lists[i]);
		if (space->kind == SPACE_TIERS)
			unexpected_close(space);
	}
	pages_unmap_root(space->tables.memory, space->tables.bytes);
	free(space);
}

bool engine_space_open(struct engine *engine, uint32_t number, const struct space_options *options)
{
	struct space *space = calloc(1, sizeof(*space));

	owner_check(&engine->owner);
	assert(number < SPACES && !engine->opened[number]);
	if (!space)
		return false;
	space->engine = engine;
	space->segment = options->segment;
	space->number = (uint8_t)number;
	space->interface = options->interface;
	space->uid = options->uid;
	space->kind = options->kind;
	space->ranked = options->ranked;
	space->two_sided = options->two_sided;
	space->ranks = options->ranks;
	space->kept_share = options->kept_share;
	space->share_of = options->shares;
	space->credits = options->credits;
	space->credit_step = options->credit_step;
	space->life = options->life;
	if (!lists_create(space)) {
		space_free(space);
		return false;
	}
	access_init(space);
	engine->spaces[number] = engine->opened[number] = space;
	return true;
}

/* Ends the gets that wait for a reply, which a closing space no longer takes. */
static void gets_abandon(struct engine *engine, const struct space *space)
{
	list_each (struct operation, operation, &engine->waiting, link)
		if (operation->space == space)
			outgoing_fail(engine, operation, TRANSPORT_SHUTDOWN);
	list_each (struct operation, operation, &engine->refused, link)
		if (operation->space == space)
			outgoing_fail(engine, operation, TRANSPORT_SHUTDOWN);
}

bool engine_space_close(struct engine *engine, uint32_t number)
{
	struct space *space = engine->opened[number];

	owner_check(&engine->owner);
	engine_catch_up(engine);
	engine->spaces[number] = NULL;
	space->closing = true;
	space->credits = NULL;
	triggered_close(space);
	gets_abandon(engine, space);
	engine_ring(engine); /* the list of queues with events names the space */
	if (operation_names(engine, space))
		return false;
	engine->opened[number] = NULL;
	space_free(space);
	return true;
}

void spaces_free(struct engine *engine)
{
	for (unsigned i = 0; i < SPACES; i++)
		if (engine->opened[i])
			space_free(engine->opened[i]);
}
