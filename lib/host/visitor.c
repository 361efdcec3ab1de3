/* SPDX-License-Identifier: BSD-3-Clause */
/* visitor.c - which threads are inside which interface; see V1 in visitor.h.
 *
 * The list of visitors only grows. A thread that ends leaves its record to the next thread that
 * comes.
 */
#include <host/visitor.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <base/barrier.h>
#include <pmd-glue/glue.h>

#define AWAIT_SLEEP 20000 /* ns between looks at a visitor that does not leave */

_Thread_local struct visitor *visitor_self;

static _Atomic(struct visitor *) visitors;
static pthread_key_t thread_end;
static bool thread_end_known;

static void visitor_forget(struct visitor *visitor)
{
	for (unsigned i = 0; i < READERS; i++)
		visitor->readers[i].epoch = EPOCH_NEVER;
}

static void visitor_end(void *argument)
{
	struct visitor *visitor = argument;

	visitor_self = NULL;
	visitor->entered = false;
	epoch_end(); /* V4: for the record's next thread */
	atomic_store_explicit(&visitor->taken, false, memory_order_release);
}

void visitor_start(void)
{
	/* Without the key, records of threads that ended are not used again: a little memory. */
	thread_end_known = pthread_key_create(&thread_end, visitor_end) == 0;
	barrier_start();
}

static struct visitor *visitor_reuse(void)
{
	struct visitor *visitor;
	bool taken;

	for (visitor = atomic_load(&visitors); visitor; visitor = visitor->next) {
		taken = false;
		if (atomic_compare_exchange_strong(&visitor->taken, &taken, true))
			return visitor;
	}
	return NULL;
}

/* This thread's; NULL: no memory. */
static struct visitor *visitor_make(void)
{
	struct visitor *visitor = visitor_reuse();

	if (!visitor) {
		visitor = aligned_alloc(CACHE_LINE, sizeof(*visitor));
		if (!visitor)
			return NULL;
		*visitor = (struct visitor){.taken = true, .next = atomic_load(&visitors)};
		visitor_forget(visitor);
		while (!atomic_compare_exchange_weak(&visitors, &visitor->next, visitor))
			;
	}
	if (thread_end_known)
		pthread_setspecific(thread_end, visitor);
	visitor_self = visitor;
	return visitor;
}

/* A thread visits an interface for the first time that it may have to drive. */
static void visitor_drives(struct visitor *visitor)
{
	visitor->entered = true;
	glue_thread_enter();
}

/* 0: front_visit_begin() may succeed now; else front->closed or `invalid`. */
static int visit_prepare(
	const struct front *front, uint64_t handle, enum handle_kind kind, int invalid)
{
	uint32_t number = handle_interface(handle);
	struct interface *interface = &interfaces[number];
	struct segment *segment;
	bool possible;

	if (!front_is_open(front))
		return front->closed;
	/* Most calls with a bad handle end here, before this thread costs any memory. */
	if (handle_kind(handle) != (uint32_t)kind ||
		!atomic_load_explicit(&interface->segment, memory_order_relaxed) ||
		(!visitor_self && !visitor_make()))
		return invalid;
	visitor_enter(visitor_self, number + 1);
	segment = atomic_load_explicit(&interface->segment, memory_order_acquire);
	possible = segment && interface->front == front &&
		   (kind == HANDLE_INTERFACE || handle_gate(segment, handle, kind));
	if (possible && interface->inlined && !visitor_self->entered)
		visitor_drives(visitor_self);
	visitor_leave(visitor_self);
	return possible ? 0 : invalid;
}

int front_visit_retry(const struct front *front, struct visit *visit, uint64_t handle,
	enum handle_kind kind, int invalid)
{
	int code;

	do
		code = visit_prepare(front, handle, kind, invalid);
	while (code == 0 && !front_visit_begin(front, visit, handle, kind));
	return code;
}

bool handle_lives(const struct visit *visit, uint64_t handle, enum handle_kind kind)
{
	return handle_kind(handle) == (uint32_t)kind &&
	       &interfaces[handle_interface(handle)] == visit->interface &&
	       gate_open(handle_gate(visit->segment, handle, kind), handle);
}

bool front_handle_lives(const struct front *front, uint64_t handle, enum handle_kind kind)
{
	struct visit visit;

	if (front_visit(front, &visit, handle, kind, -1) != 0)
		return false;
	visit_leave(&visit);
	return true;
}

void visitor_await(uint32_t number)
{
	const struct timespec moment = {.tv_nsec = AWAIT_SLEEP};

	/* V1: what every thread stored before is seen below; what it loads from now on is new. */
	barrier_heavy();
	for (struct visitor *visitor = atomic_load(&visitors); visitor; visitor = visitor->next)
		while (atomic_load_explicit(&visitor->inside, memory_order_acquire) == number + 1)
			nanosleep(&moment, NULL);
}

enum answer visit_call(const struct visit *visit, struct command *command,
	const struct region_description *after, struct region_description *before)
{
	enum answer answer = submission_call(&visit->interface->submission, command, after, before);

	if (answer != ANSWER_OK && visit->interface->inlined)
		interface_drive();
	return answer;
}

enum answer visit_command(
	const struct visit *visit, enum command_kind kind, uint32_t index, uint32_t generation)
{
	struct command command = {
		.kind = (uint8_t)kind, .object = {.index = index, .generation = generation}};

	return visit_call(visit, &command, NULL, NULL);
}
