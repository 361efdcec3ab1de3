/* SPDX-License-Identifier: BSD-3-Clause */
/* seat.h - the place that one thread at a time drives an engine from, and the helper, a thread that
 * looks after the engine while nobody sits there.
 *
 * With PTL_PROGRESS=inline the program's own calls drive, and there is no helper. With both they
 * drive as well, and the helper sleeps:
 *
 *     FREE    a thread has just left. The helper is awake, or its timer ends within a millisecond.
 *             If nobody has looked for frames for HELPER_AWAY by then, the helper takes the seat
 *     ARMED   the port wakes the helper for a frame, its timer for what the engine has to do at a
 *             certain time
 *     TAKEN   a thread drives. The port signals nothing
 *     CALLED  taken, and commands were put into the ring since
 *
 * S1. A command that was put into the ring while another thread sat in the seat is carried out by
 *     that thread before it gives the seat up for good, or by the thread that put it there: a
 *     thread can leave only a seat that no other has called since.
 *
 * S2. With a helper no frame, command or timer is left unserved: in each of the four states
 *     somebody is awake, or will be. The thread that arms the seat sits in it, has the port signal,
 *     then takes a turn of the engine, which finds what came before, and then sets the timer.
 *     Whoever takes an armed seat sets the timer before it leaves. The helper sleeps only after it
 *     has armed the seat or has set the timer to at most HELPER_NAP_MAX.
 *
 *     A thread that waits for an event may sleep in the helper's place: the port then wakes this
 *     thread, and the helper's timer ends a millisecond later than what is due.
 *
 * S3. The timer is set to more than HELPER_NAP_MAX only by a thread that sits in the seat and arms
 *     it.
 *
 * S4. One thread at a time sleeps in the helper's place. Another one that takes the armed seat
 *     wakes it, because it may have what the sleeper waits for.
 *
 * S5. A thread in the seat is not ended by pthread_cancel(): a port that leads out of the process
 *     makes system calls, which are cancellation points.
 */
#ifndef HOST_SEAT_H
#define HOST_SEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <base/cancel.h>
#include <base/core.h>
#include <base/clock.h>
#include <base/owner.h>
#include <engine/engine.h>

struct helper;

enum seat_state { SEAT_FREE, SEAT_TAKEN, SEAT_CALLED, SEAT_ARMED };

/* Never freed. */
struct seat {
	_Alignas(CACHE_LINE) _Atomic uint32_t state;
	_Atomic bool slept; /* S4: a thread is in seat_sleep() */
	/* Of the thread in the seat. */
	struct engine *engine; /* NULL: there is none */
	struct helper *helper; /* NULL: there is none */
	bool outward;          /* the engine's port leads out of the process */
	int cancel;            /* S5 */
};

/* The engine of a seat that this thread has taken is this thread's. */
static inline void seat_own(struct seat *seat)
{
	if (seat->outward)
		seat->cancel = cancel_hold();
	if (OWNERS && seat->engine)
		engine_own(seat->engine);
}

/* Takes a seat that is armed. Returns false if it is armed no more. */
bool seat_take_armed(struct seat *seat) CORE_API(seat_take_armed);

/* Returns false if somebody else sits there. */
static inline bool seat_take(struct seat *seat)
{
	uint32_t free = atomic_load_explicit(&seat->state, memory_order_relaxed);

	if (free != SEAT_FREE)
		return free == SEAT_ARMED && seat_take_armed(seat);
	if (!atomic_compare_exchange_strong_explicit(
		    &seat->state, &free, SEAT_TAKEN, memory_order_acquire, memory_order_relaxed))
		return false;
	seat_own(seat);
	return true;
}

/* Gives the seat up; false: somebody has called meanwhile, and the engine must have another turn
 * (S1). */
static inline bool seat_try_leave(struct seat *seat)
{
	const bool outward = seat->outward;
	const int cancel = seat->cancel;
	uint32_t taken = SEAT_TAKEN;

	if (atomic_compare_exchange_strong_explicit(
		    &seat->state, &taken, SEAT_FREE, memory_order_release, memory_order_relaxed)) {
		if (outward)
			cancel_release(cancel);
		return true;
	}
	atomic_exchange_explicit(&seat->state, SEAT_TAKEN, memory_order_acquire);
	return false;
}

/* For the thread in the seat, once it was called: turns until it gives the seat up. */
unsigned seat_turn(struct seat *seat) CORE_API(seat_turn);

/* One turn of the engine, unless somebody else sits there; returns how much was done. */
static inline unsigned seat_drive(struct seat *seat)
{
	unsigned work;

	if (!seat_take(seat))
		return 0;
	work = seat->engine ? engine_look(seat->engine) : 0;
	return seat_try_leave(seat) ? work : work + seat_turn(seat);
}

/* Gives the seat up; first carries out what others were told to leave to this thread (S1). */
static inline void seat_leave(struct seat *seat)
{
	if (!seat_try_leave(seat))
		seat_turn(seat);
}

/* After a command was put into the ring: the thread in the seat carries it out, or this thread
 * does. */
void seat_call(struct seat *seat);

/* The calling thread is about to sleep: the helper takes over at once. Does nothing without a
 * helper or while another thread sits there. Returns how much was done by the turn that this takes
 * (0: the thread may sleep). */
unsigned seat_rest(struct seat *seat);

/* The calling thread sleeps in the helper's place until a frame comes, something is due, another
 * thread drives, or limit ns are over. look(): called once the seat is armed; true: the thread does
 * not sleep. The helper stays until the call returns. */
enum seat_slept {
	SEAT_SLEPT,   /* nothing has come */
	SEAT_WORKED,  /* there was something to do, which is done */
	SEAT_FOUND,   /* look() returned true */
	SEAT_UNSLEPT, /* somebody else drives or sleeps so, or the port cannot signal */
};
enum seat_slept seat_sleep(
	struct seat *seat, bool (*look)(void *context), void *context, uint64_t limit);

/* engine_shares_cpu(); false while another thread sits there. */
bool seat_shares_cpu(struct seat *seat);

/* Gives a seat with an engine a helper; the caller starts its thread. segment: the engine's.
 * external: frames may come at any time. NULL: no memory, or no descriptor. The library's lock is
 * held, as by the callers of all that follows. */
struct helper *helper_create(
	struct seat *seat, struct segment *segment, bool external, const struct clock *clock);
/* The thread's body; argument: the helper. Returns after helper_stop(). */
void helper_run(void *helper);
/* Its seat has no engine any more, or the thread was not started. */
void helper_stop(struct helper *helper);
void helper_destroy(struct helper *helper); /* its thread has ended, or never began */

#endif
