/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.h - the progress lock, which a thread holds while it drives an engine, and the helper, a
 * thread that drives the engine while the program makes no calls.
 *
 * With PTL_PROGRESS=inline the program's own calls drive, and there is no helper; one thread that
 * waits may still sleep in a helper's place. With both they drive as well, and the helper sleeps.
 * States of the lock:
 *
 *     FREE      a thread has just released it. The helper is awake, or wakes within a millisecond.
 *               If no thread has looked for frames for HELPER_AWAY by then, the helper takes it
 *     ARMED     free; a frame or the helper's timer wakes the helper
 *     TAKEN     a thread holds it and drives. The port does not signal
 *     CALLED    taken, and commands were put into the ring since
 *     LENT      free; a frame or the time wakes a thread of the program that sleeps in the helper's
 *               place. The helper is awake, or wakes within a millisecond
 *     RELIEVED  lent, and the helper may sleep until its timer is set
 *
 * S1. A command that was put into the ring while another thread held the lock is carried out by
 *     that thread before it releases the lock, or by the thread that put it there: a thread can
 *     release the lock only if no other thread has called since.
 *
 * S2. With a helper no frame, command or timer is left unserved: in each of the six states some
 *     thread is awake, or will be woken. A thread that arms or lends the lock holds it, makes the
 *     port signal, and then takes a turn of the engine, which finds what came before.
 *
 * S3. The helper sleeps for at most HELPER_NAP_MAX, but for two cases. If it has armed the lock
 *     itself, it sleeps on the port as well, until something is due. If it has seen a relieved
 *     lock, or made a lent one relieved, it sleeps until its timer is set. A thread that takes an
 *     armed or a relieved lock sets the timer, which ends that sleep. A thread that takes a lent
 *     lock need not: the swap of the state returns which of them it was. A thread that arms the
 *     lock while the helper naps sets the timer to what is due, and adds the port to the
 *     descriptors that end the nap.
 *
 * S4. One thread at a time sleeps in the helper's place. Another thread that takes the lock wakes
 *     it, because the events may be there that the sleeper waits for.
 *
 * S5. A thread that holds the lock is not ended by pthread_cancel(). The C library is told so where
 *     a system call is made. A port that makes some in most turns leaves that to this lock, which
 *     tells it once a turn.
 *
 * S6. A thread that is about to sleep while the helper holds the lock calls the helper and waits a
 *     while for the state to change. Otherwise it would sleep elsewhere, and the next frame would
 *     have to wake the helper first. A helper that has lost its CPU gets it meanwhile. A helper
 *     that was called wakes such a thread when it has released the lock; the thread also looks
 *     again by itself.
 */
#ifndef HOST_PROGRESS_H
#define HOST_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <base/cancel.h>
#include <base/core.h>
#include <base/clock.h>
#include <base/owner.h>
#include <engine/engine.h>

struct helper;

/* From PROGRESS_ARMED on no thread holds the lock, and the port signals. */
enum progress_state {
	PROGRESS_FREE,
	PROGRESS_TAKEN,
	PROGRESS_CALLED,
	PROGRESS_ARMED,
	PROGRESS_LENT,
	PROGRESS_RELIEVED
};

/* Never freed. */
struct progress {
	_Alignas(CACHE_LINE) _Atomic uint32_t state;
	_Atomic bool slept;   /* S4: a thread is in progress_sleep(), */
	_Atomic bool awaited; /* S6: and waits for the helper, */
	_Atomic bool helped;  /* which holds the lock; any answer is safe */
	/* Of the thread that holds the lock. */
	struct engine *engine; /* NULL: there is none */
	struct helper *helper; /* NULL: there is none */
	bool cancels;          /* S5: the engine's port does */
	int cancel;            /* S5 */
};

/* The engine of a lock that this thread has taken is this thread's. */
static inline void progress_own(struct progress *progress)
{
	if (progress->cancels)
		progress->cancel = cancel_hold();
	if (OWNERS && progress->engine)
		engine_own(progress->engine);
}

/* Takes a lock that is armed or lent. Returns false if it is neither any more. */
bool progress_take_armed(struct progress *progress) CORE_API(progress_take_armed);

/* Takes a lock that is free. Returns false if it is not. */
static inline bool progress_take_free(struct progress *progress)
{
	uint32_t free = PROGRESS_FREE;

	if (!atomic_compare_exchange_strong_explicit(&progress->state, &free, PROGRESS_TAKEN,
		    memory_order_acquire, memory_order_relaxed))
		return false;
	progress_own(progress);
	return true;
}

/* Returns false if another thread holds the lock. */
static inline bool progress_take(struct progress *progress)
{
	uint32_t state = atomic_load_explicit(&progress->state, memory_order_relaxed);

	if (state == PROGRESS_FREE)
		return progress_take_free(progress);
	return state >= PROGRESS_ARMED && progress_take_armed(progress);
}

/* Releases the lock. Returns false if a thread has called meanwhile: then the engine needs another
 * turn (S1). */
static inline bool progress_try_leave(struct progress *progress)
{
	const bool cancels = progress->cancels;
	const int cancel = progress->cancel;
	uint32_t taken = PROGRESS_TAKEN;

	if (atomic_compare_exchange_strong_explicit(&progress->state, &taken, PROGRESS_FREE,
		    memory_order_release, memory_order_relaxed)) {
		if (cancels)
			cancel_release(cancel);
		return true;
	}
	atomic_exchange_explicit(&progress->state, PROGRESS_TAKEN, memory_order_acquire);
	return false;
}

/* For the holder of the lock, once it was called: drives until it has released the lock. */
unsigned progress_turn(struct progress *progress) CORE_API(progress_turn);

/* One turn of the engine, unless another thread holds the lock. Returns how much was done. */
static inline unsigned progress_drive(struct progress *progress)
{
	unsigned work;

	if (!progress_take(progress))
		return 0;
	work = progress->engine ? engine_look(progress->engine) : 0;
	return progress_try_leave(progress) ? work : work + progress_turn(progress);
}

/* Releases the lock; first carries out what others were told to leave to this thread (S1). */
static inline void progress_leave(struct progress *progress)
{
	if (!progress_try_leave(progress))
		progress_turn(progress);
}

/* After a command was put into the ring: the holder of the lock carries it out, or this thread
 * does. */
void progress_command(struct progress *progress);

/* The calling thread is about to sleep: the helper takes over at once. Does nothing without a
 * helper or while another thread holds the lock. Returns how much was done by the turn that this
 * takes (0: the thread may sleep). */
unsigned progress_rest(struct progress *progress);

/* The calling thread sleeps in the helper's place until a frame comes, something is due, another
 * thread drives, or limit ns are over. look(): called once the lock is lent; true: the thread does
 * not sleep. The helper stays until the call returns. */
enum progress_slept {
	PROGRESS_SLEPT,   /* nothing has come */
	PROGRESS_WORKED,  /* there was something to do, which is done */
	PROGRESS_FOUND,   /* look() returned true */
	PROGRESS_UNSLEPT, /* another thread drives or sleeps so, or the port cannot signal */
};
enum progress_slept progress_sleep(
	struct progress *progress, bool (*look)(void *context), void *context, uint64_t limit);

/* engine_shares_cpu(); false while another thread holds the lock. */
bool progress_shares_cpu(struct progress *progress);

/* Gives a lock with an engine a helper; the caller starts its thread. segment: the engine's.
 * external: frames may come at any time. NULL: no memory, or no descriptor. The library's lock is
 * held, as by the callers of all that follows. */
struct helper *helper_create(struct progress *progress, struct segment *segment, bool external,
	const struct clock *clock);
/* One without a thread, so that a thread of the program can sleep in the place of a helper that
 * there is not. NULL: it cannot. */
struct helper *helper_create_absent(
	struct progress *progress, struct segment *segment, const struct clock *clock);
/* The thread's body; argument: the helper. Returns after helper_stop(). */
void helper_run(void *helper);
/* Its lock has no engine any more, or the thread was not started. */
void helper_stop(struct helper *helper);
void helper_destroy(struct helper *helper); /* its thread has ended, or never began */

#endif
