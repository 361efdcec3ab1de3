/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_engine.h - in place of lib/engine/engine.c: an engine that counts its turns and the commands
 * it carries out, and answers those that want an answer. For the tests of what stands between
 * application threads and engines. */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include <base/futex.h>
#include <base/ring.h>
#include <engine/engine.h>

#include "../nap.h"

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
	_Atomic uint64_t turned;     /* when the last turn was, ns */
	_Atomic uint64_t due;        /* when it must have a turn, ns; 0: never */
	_Atomic bool armed;          /* the port is to signal */
	_Atomic uint64_t frames;     /* that have come, */
	_Atomic uint64_t served;     /* and been found */
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
		nap();
	reply->before = reply->after;
	reply->answer = command->object.index;
	atomic_store(&reply->state, REPLY_DONE);
	if (atomic_load(&reply->sleeping))
		futex_wake(&reply->state, 1);
}

static void fake_run(struct engine *engine, const struct command *command)
{
	/* The sum first: a test that has waited for the count looks at it. */
	if (command->kind < COMMAND_ENTRY_INSERT)
		atomic_fetch_add(&engine->sum, command->move.value);
	atomic_fetch_add(&engine->commands, 1);
	if (command->kind >= COMMAND_ENTRY_INSERT)
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

static uint64_t fake_now(void *context)
{
	struct timespec now;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* A frame comes to the port, which signals if it is to. */
static inline void fake_frame(struct engine *engine)
{
	atomic_fetch_add(&engine->frames, 1);
	if (atomic_load(&engine->armed))
		eventfd_write(atomic_load(&engine->descriptor) - 1, 1);
}

static unsigned fake_receive(struct engine *engine)
{
	uint64_t came = atomic_load(&engine->frames), served = atomic_load(&engine->served);

	atomic_store(&engine->served, came);
	return (unsigned)(came - served);
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
	atomic_store(&engine->turned, fake_now(NULL));
	if (atomic_load(&engine->due) != 0 && fake_now(NULL) >= atomic_load(&engine->due))
		atomic_store(&engine->due, 0);
	done = fake_drain(engine) + fake_receive(engine);
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

/* This and the next one: only while the ring is empty. */
bool engine_rma(struct engine *engine, uint32_t space, const struct move *move,
	const struct rma_line *line, const void *given)
{
	const struct command command = {.kind = COMMAND_RMA, .move = *move};
	bool done;

	(void)space;
	(void)line;
	(void)given;
	fake_enter(engine);
	done = ring_empty(&engine->reader);
	if (done)
		fake_run(engine, &command);
	fake_leave(engine);
	return done;
}

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
		atomic_fetch_add(&engine->sum, move->value);
		atomic_fetch_add(&engine->commands, 1);
	}
	fake_leave(engine);
	return done;
}

uint64_t engine_deadline(const struct engine *engine)
{
	uint64_t due = atomic_load(&engine->due), now = fake_now(NULL);

	if (due == 0)
		return UINT64_MAX;
	return due > now ? due - now : 0;
}

int engine_interrupt(struct engine *engine, bool on)
{
	int descriptor = atomic_load(&engine->descriptor) - 1;
	eventfd_t rung;

	atomic_store(&engine->armed, on);
	if (!on && descriptor >= 0)
		eventfd_read(descriptor, &rung);
	return on ? descriptor : -1;
}

bool engine_shares_cpu(struct engine *engine)
{
	(void)engine;
	return false;
}

uint64_t engine_turn(const struct engine *engine)
{
	return atomic_load(&engine->turned);
}

bool engine_has_commands(const struct engine *engine)
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
	void *memory;

	assert_non_null(engine);
	memory = aligned_alloc(CACHE_LINE, size);
	assert_non_null(memory);
	memset(memory, 0, size);
	engine->segment = segment_init(memory, &limits, 1);
	ring_reader_init(&engine->reader, segment_ring(engine->segment));
	return engine;
}

static void fake_engine_destroy(struct engine *engine)
{
	assert_int_equal(atomic_load(&engine->intrusions), 0);
	free(segment_memory(engine->segment));
	free(engine);
}

/* A moment between two looks. */
static inline void fake_moment(unsigned look)
{
	if (look % 64 == 63)
		nap();
}

/* Looks until a condition holds; the test's own time limit ends a wait that is in vain. */
#define WAIT_FOR(condition)                                                                        \
	for (unsigned look_ = 0; !(condition); look_++)                                            \
	fake_moment(look_)

#endif
