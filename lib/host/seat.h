/* SPDX-License-Identifier: BSD-3-Clause */
/* seat.h - the place that one thread at a time drives an engine from, and the helper, a thread that
 * looks after the engine while nobody sits there.
 *
 * With PTL_PROGRESS=inline the program's own calls drive, and there is no helper; one thread that
 * waits may still sleep in its place. With both they drive as well, and the helper sleeps:
 *
 *     FREE      a thread has just left. The helper is awake, or wakes within a millisecond. If
 *               nobody has looked for frames for HELPER_AWAY by then, the helper takes the seat
 *     ARMED     the port wakes the helper for a frame, and the time for what the engine has to do
 *     TAKEN     a thread drives. The port signals nothing
 *     CALLED    taken, and commands were put into the ring since
 *     LENT      the port and the time wake a thread of the program that sleeps in the helper's
 *               place. The helper is awake, or wakes within a millisecond
 *     RELIEVED  lent, and the helper may sleep until its timer is set
 *
 * S1. A command that was put into the ring while another thread sat in the seat is carried out by
 *     that thread before it gives the seat up for good, or by the thread that put it there: a
 *     thread can leave only a seat that no other has called since.
 *
 * S2. With a helper no frame, command or timer is left unserved: in each of the six states
 *     somebody is awake, or will be. The thread that arms or lends the seat sits in it, has the
 *     port signal, and then takes a turn of the engine, which finds what came before.
 *
 * S3. The helper sleeps for at most HELPER_NAP_MAX, but for two cases. It has armed the seat
 *     itself: then it sleeps on the port as well, until something is due. Or it has seen a relieved
 *     seat, or made a lent one so. A thread that takes an armed or a relieved seat sets the timer,
 *     which ends that sleep, and one that takes a lent seat need not: the swap of the state tells
 *     which it was. A thread that arms the seat for the helper while that naps sets the timer to
 *     what is due, and adds the port to what the nap waits for.
 *
 * S4. One thread at a time sleeps in the helper's place. Another one that takes the seat wakes it,
 *     because it may have what the sleeper waits for.
 *
 * S5. A thread in the seat is not ended by pthread_cancel(): a port that leads out of the process
 *     makes system calls, which are cancellation points.
 *
 * S6. A thread that is about to sleep and finds the helper in the seat calls it and waits for the
 *     state to change, for a while: else it would sleep elsewhere, and the next frame would have to
 *     wake the helper first. A helper that has lost its CPU gets it meanwhile. One that was called
 *     wakes such a thread when it has left the seat; the thread looks again by itself, too.
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

/* From SEAT_ARMED on nobody sits there, and the port signals. */
enum seat_state { SEAT_FREE, SEAT_TAKEN, SEAT_CALLED, SEAT_ARMED, SEAT_LENT, SEAT_RELIEVED };

/* Never freed. */
struct seat {
	_Alignas(CACHE_LINE) _Atomic uint32_t state;
	_Atomic bool slept;   /* S4: a thread is in seat_sleep(), */
	_Atomic bool awaited; /* S6: and waits for the helper, */
	_Atomic bool helped;  /* which sits in the seat; any answer is safe */
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

/* Takes a seat that is armed or lent. Returns false if it is neither any more. */
bool seat_take_armed(struct seat *seat) CORE_API(seat_take_armed);

/* Takes a seat that is free. Returns false if it is not. */
static inline bool seat_take_free(struct seat *seat)
{
	uint32_t free = SEAT_FREE;

	if (!atomic_compare_exchange_strong_explicit(
		    &seat->state, &free, SEAT_TAKEN, memory_order_acquire, memory_order_relaxed))
		return false;
	seat_own(seat);
	return true;
}

/* Returns false if somebody else sits there. */
static inline bool seat_take(struct seat *seat)
{
	uint32_t state = atomic_load_explicit(&seat->state, memory_order_relaxed);

	if (state == SEAT_FREE)
		return seat_take_free(seat);
	return state >= SEAT_ARMED && seat_take_armed(seat);
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
/* One without a thread, so that a thread of the program can sleep in the place of a helper that
 * there is not. NULL: it cannot. */
struct helper *helper_create_absent(
	struct seat *seat, struct segment *segment, const struct clock *clock);
/* The thread's body; argument: the helper. Returns after helper_stop(). */
void helper_run(void *helper);
/* Its seat has no engine any more, or the thread was not started. */
void helper_stop(struct helper *helper);
void helper_destroy(struct helper *helper); /* its thread has ended, or never began */

#endif
