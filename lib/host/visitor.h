/* SPDX-License-Identifier: BSD-3-Clause */
/* visitor.h - how a call visits an interface.
 *
 * A call runs in the caller's thread. It visits its interface (visit_enter, visit_leave), checks
 * its arguments against the segment, takes what it needs from the free lists, and posts a command;
 * or reads an event queue.
 *
 * V1. A thread says in its own struct visitor which interface it is inside of, before it looks
 *     whether the interface is open. A thread that closes an interface first says that it is closed
 *     and then waits until no visitor is inside. Between the two halves lies a barrier on each
 *     side; the closer's is the heavy one (base/barrier.h), so that a visit costs two plain stores.
 *     What a visit sees of the segment therefore stays until the visit ends.
 *
 * V2. A visitor never takes the library's lock (front.h): the thread that closes an interface may
 *     hold it while it waits for visitors.
 *
 * V3. A front end's calls are not for signal handlers: a visit inside a visit to another interface
 *     would hide the outer one.
 *
 * V4. What a visit finds out about an open interface is as good in a later one of the same epoch
 *     (base/epoch.h). A closer says first that the interface is closed, then ends the epoch, both
 *     before it waits for visitors; a visitor keeps the epoch that it has read before it found the
 *     interface open, and compares it when it is inside again. So a reader of events mostly knows
 *     its queue already, and that no barrier is needed and no trace wanted; whether the queue still
 *     lives says the queue (engine/queue.h, Q3).
 */
#ifndef HOST_VISITOR_H
#define HOST_VISITOR_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/core.h>
#include <base/barrier.h>
#include <base/epoch.h>
#include <base/handle.h>
#include <engine/queue.h>
#include <host/front.h>
#include <host/interface.h>

/* V4. A queue that a thread takes events from. */
struct reader {
	_Alignas(CACHE_LINE) struct queue_view view;
	/* when it was found open; EPOCH_NEVER: it was not, or readers must look each time */
	uint64_t epoch;
	uint32_t number; /* of its interface + 1 */
	bool drives;     /* this is inline */
};
static_assert(sizeof(struct reader) == CACHE_LINE, "reader: one line");

#define READERS 4 /* a power of two */

/* Which interface a thread is inside of. One per thread, never freed, given to another thread when
 * its own ends. */
struct visitor {
	_Alignas(CACHE_LINE) _Atomic uint32_t inside; /* number of the interface + 1, 0: none */
	bool entered; /* has a mempool cache, for PTL_PROGRESS=inline */
	_Atomic bool taken;
	uint64_t events; /* where the page begins that an event was written to */
	/* the last place for an event there, counted from `events` by their alignment */
	uint64_t events_last;
	struct visitor *next;
	/* of the queues that the thread read last, by visitor_reader() */
	struct reader readers[READERS];
};

/* Where a visitor keeps what it knows of a queue: by the high bits of a product in which interface
 * and index count. */
static inline struct reader *visitor_reader(struct visitor *visitor, uint64_t queue)
{
	uint32_t offset =
		(uint32_t)queue * 0x9e3779b9u >> 24 & (READERS - 1) * sizeof(struct reader);

	return (struct reader *)(void *)((char *)visitor->readers + offset);
}

extern _Thread_local struct visitor *visitor_self CORE_API(visitor_self)
	__attribute__((tls_model("initial-exec")));

/* Returns when no thread that saw the interface open is inside it. */
void visitor_await(uint32_t number);
void visitor_start(void); /* once per process */

struct visit {
	struct visitor *visitor;
	struct interface *interface;
	struct segment *segment;
	uint32_t index; /* of the object that the handle names */
	uint32_t generation;
	_Atomic uint64_t *gate; /* of that object */
};

/* V1. */
static inline void visitor_enter(struct visitor *visitor, uint32_t number)
{
	atomic_store_explicit(&visitor->inside, number, memory_order_relaxed);
	barrier_light();
}

/* The same where barrier_cheap is true: then the barrier is none for the CPU. */
static inline void visitor_enter_cheap(struct visitor *visitor, uint32_t number)
{
	atomic_store_explicit(&visitor->inside, number, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void visitor_leave(struct visitor *visitor)
{
	/* Release: pairs with the acquire in visitor_await(). */
	atomic_store_explicit(&visitor->inside, 0, memory_order_release);
}

static inline void visit_leave(const struct visit *visit)
{
	visitor_leave(visit->visitor);
}

/* The gate of an object; NULL when its index is beyond the table. */
static inline _Atomic uint64_t *object_gate(
	struct segment *segment, uint32_t index, enum handle_kind kind)
{
	switch (kind) {
	case HANDLE_REGION:
		return index < segment->limits.regions ? &segment_region(segment, index)->gate
						       : NULL;
	case HANDLE_QUEUE:
		return index < segment->limits.queues ? &segment_queue(segment, index)->gate : NULL;
	case HANDLE_ENTRY:
		return index < segment->limits.entries ? &segment_entry(segment, index)->gate
						       : NULL;
	case HANDLE_COUNTER:
		return index < segment->limits.counters ? &segment_counter(segment, index)->gate
							: NULL;
	case HANDLE_INTERFACE:
		break;
	}
	return NULL;
}

static inline _Atomic uint64_t *handle_gate(
	struct segment *segment, uint64_t handle, enum handle_kind kind)
{
	return object_gate(segment, handle_index(handle), kind);
}

static inline bool gate_open(const _Atomic uint64_t *gate, uint64_t handle)
{
	/* Acquire: pairs with the release of the thread that made the object, so that it is seen
	 * whole. */
	return gate &&
	       gate_is(atomic_load_explicit(gate, memory_order_acquire), handle_generation(handle));
}

/* The region that is visited. */
static inline struct region *visit_region(const struct visit *visit)
{
	return (struct region *)(uintptr_t)visit->gate;
}

/* What a visit to an object says of itself follows from where it is and the thread (self). segment:
 * NULL, the interface is not open; gate: NULL, the index is beyond the table, or the object is the
 * interface. The generation is the caller's to fill in. */
static inline void visit_describe(struct visit *visit, struct visitor *self, uint32_t interface,
	uint32_t index, enum handle_kind kind)
{
	visit->visitor = self;
	visit->interface = &interfaces[interface];
	/* Acquire: pairs with the release when the interface was opened. */
	visit->segment = atomic_load_explicit(&visit->interface->segment, memory_order_acquire);
	visit->index = index;
	visit->gate = visit->segment ? object_gate(visit->segment, index, kind) : NULL;
}

/* V1. Visits an interface of a front end, for an object of it, and calls nothing: false, and there
 * is no visit, when the front end or the interface is not open, the interface is another front
 * end's, the index is beyond the table, or the thread has yet to be prepared. */
static inline bool front_visit_object(const struct front *front, struct visit *visit,
	uint32_t interface, uint32_t index, enum handle_kind kind)
{
	struct visitor *self = visitor_self;

	/* A front end that is not open has no interface that is, and a child made by fork() no
	 * visitor. */
	if (!self)
		return false;
	visitor_enter(self, interface + 1);
	visit_describe(visit, self, interface, index, kind);
	if (visit->segment && visit->interface->front == front &&
		(visit->gate || kind == HANDLE_INTERFACE) &&
		(visit->visitor->entered || !visit->interface->inlined))
		return true;
	visit_leave(visit);
	return false;
}

/* The same for what a handle names, which must be of this kind. */
static inline bool front_visit_begin(
	const struct front *front, struct visit *visit, uint64_t handle, enum handle_kind kind)
{
	if (handle_kind(handle) != (uint32_t)kind)
		return false;
	visit->generation = handle_generation(handle);
	return front_visit_object(
		front, visit, handle_interface(handle), handle_index(handle), kind);
}

/* After a front_visit_begin() that has failed: prepares the thread and begins the visit. Returns 0;
 * else front->closed or `invalid`. */
int front_visit_retry(const struct front *front, struct visit *visit, uint64_t handle,
	enum handle_kind kind, int invalid) CORE_API(front_visit_retry);

/* Visits the interface of a handle that must be of this kind and name a living object. Returns 0;
 * else front->closed or `invalid`, and there is no visit. Inline, because each call makes it with a
 * kind that is known. */
static inline int front_visit(const struct front *front, struct visit *visit, uint64_t handle,
	enum handle_kind kind, int invalid)
{
	bool lives;

	if (!front_visit_begin(front, visit, handle, kind)) {
		int code = front_visit_retry(front, visit, handle, kind, invalid);

		if (code != 0)
			return code;
	}
	lives = kind == HANDLE_INTERFACE ? handle == atomic_load_explicit(&visit->interface->handle,
							     memory_order_relaxed)
					 : gate_open(visit->gate, handle);
	if (lives)
		return 0;
	visit_leave(visit);
	return invalid;
}

/* Is this the handle of a living object of the interface that is being visited? */
bool handle_lives(const struct visit *visit, uint64_t handle, enum handle_kind kind)
	CORE_API(handle_lives);
/* Of any open interface of a front end? For telling a handle of another interface from one that is
 * stale. */
bool front_handle_lives(const struct front *front, uint64_t handle, enum handle_kind kind)
	CORE_API(front_handle_lives);

/* Sends a command that has an answer, for a visitor. A refusal may be one that the caller tries
 * again until it is none: inline, time then goes on for all engines. */
enum answer visit_call(const struct visit *visit, struct command *command,
	const struct region_description *after, struct region_description *before)
	CORE_API(visit_call);
/* The same for a command that says nothing else than which object it is for. */
enum answer visit_command(const struct visit *visit, enum command_kind kind, uint32_t index,
	uint32_t generation) CORE_API(visit_command);

#endif
