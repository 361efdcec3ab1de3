/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_engine.h - in place of lib/engine/engine.c: an engine that counts its turns and the commands
 * it carries out, and answers those that want an answer. For the tests of what stands between
 * application threads and engines. */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include <stdlib.h>
#include <string.h>

#include <base/futex.h>
#include <base/ring.h>
#include <engine/engine.h>

struct engine {
	struct segment *segment;
	struct ring_reader reader;
	_Atomic uint64_t turns;
	_Atomic uint64_t commands;
	_Atomic uint64_t sum;        /* of their move.value */
	_Atomic uint32_t inside;     /* threads that drive it: never above 1 */
	_Atomic uint32_t intrusions; /* times it was */
	_Atomic bool busy;           /* says that it had work */
	_Atomic int descriptor;      /* of its port to sleep on, + 1 */
	_Atomic bool reluctant;      /* answers only callers that sleep */
	uint64_t unlocked; /* touched without atomics: ThreadSanitizer sees who drives it at once */
};

static void fake_enter(struct engine *engine)
{
	if (atomic_fetch_add(&engine->inside, 1) != 0)
		atomic_fetch_add(&engine->intrusions, 1);
	engine->unlocked++;
}

static void fake_leave(struct engine *engine)
{
	atomic_fetch_sub(&engine->inside, 1);
}

static void fake_answer(struct engine *engine, const struct command *command)
{
	struct reply *reply = segment_reply(engine->segment, command->reply);

	while (atomic_load(&engine->reluctant) && !atomic_load(&reply->sleeping))
		sched_yield();
	reply->before = reply->after;
	reply->answer = command->object.index;
	atomic_store(&reply->state, REPLY_DONE);
	if (atomic_load(&reply->sleeping))
		futex_wake(&reply->state, 1);
}

static void fake_run(struct engine *engine, const struct command *command)
{
	atomic_fetch_add(&engine->commands, 1);
	if (command->kind < COMMAND_ENTRY_INSERT)
		atomic_fetch_add(&engine->sum, command->move.value);
	else
		fake_answer(engine, command);
}

static unsigned fake_drain(struct engine *engine)
{
	struct long_command taken;
	unsigned done = 0;

	while (ring_take(&engine->reader, &taken) != 0) {
		fake_run(engine, &taken.command);
		done++;
	}
	return done;
}

void engine_own(struct engine *engine)
{
	(void)engine;
}

unsigned engine_poll(struct engine *engine)
{
	unsigned done;

	fake_enter(engine);
	atomic_fetch_add(&engine->turns, 1);
	done = fake_drain(engine);
	fake_leave(engine);
	return atomic_load(&engine->busy) ? done + 1 : done;
}

unsigned engine_look(struct engine *engine)
{
	return engine_poll(engine);
}

void engine_push(struct engine *engine)
{
	engine_poll(engine);
}

bool engine_execute(struct engine *engine, const struct command *command)
{
	fake_enter(engine);
	fake_drain(engine);
	fake_run(engine, command);
	fake_leave(engine);
	return true;
}

/* Only while the ring is empty. */
bool engine_put(struct engine *engine, uint32_t space, struct region *region,
	const struct move *move, bool acknowledge)
{
	bool done;

	(void)space;
	(void)region;
	(void)acknowledge;
	fake_enter(engine);
	done = ring_empty(&engine->reader);
	if (done) {
		atomic_fetch_add(&engine->commands, 1);
		atomic_fetch_add(&engine->sum, move->value);
	}
	fake_leave(engine);
	return done;
}

uint64_t engine_deadline(const struct engine *engine)
{
	(void)engine;
	return UINT64_MAX;
}

int engine_interrupt(struct engine *engine, bool on)
{
	return on ? atomic_load(&engine->descriptor) - 1 : -1;
}

uint64_t engine_turn(const struct engine *engine)
{
	return (uint64_t)atomic_load(&engine->turns);
}

bool engine_called(const struct engine *engine)
{
	return !ring_empty(&engine->reader);
}

static struct engine *fake_engine_create(void)
{
	const struct segment_limits limits = {.entries = 4,
		.regions = 4,
		.queues = 2,
		.portals = 2,
		.access = 2,
		.list_length = 4,
		.event_bytes = 4096};
	struct engine *engine = calloc(1, sizeof(*engine));
	size_t fixed, size = (segment_size(&limits, &fixed) + 63) & ~(size_t)63;

	assert_non_null(engine);
	engine->segment = aligned_alloc(CACHE_LINE, size);
	assert_non_null(engine->segment);
	memset(engine->segment, 0, size);
	segment_init(engine->segment, &limits, 1);
	ring_reader_init(&engine->reader, segment_ring(engine->segment));
	return engine;
}

static void fake_engine_destroy(struct engine *engine)
{
	assert_int_equal(atomic_load(&engine->intrusions), 0);
	free(engine->segment);
	free(engine);
}

/* Gives way until a condition holds; the test's own time limit ends a wait that is in vain. */
#define WAIT_FOR(condition)                                                                        \
	do                                                                                         \
		sched_yield();                                                                     \
	while (!(condition))

#endif
