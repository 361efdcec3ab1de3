/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.c - PtlAbort, and who it lets go.
 *
 * `waits` counts the threads that are inside a wait; its highest bit says that PtlAbort was called
 * while there was one. The last thread that leaves clears it with the same step.
 */
#include <p4/interface.h>

#define ABORTED (UINT32_C(1) << 31)

static _Atomic uint32_t waits;

void wait_enter(void)
{
	atomic_fetch_add_explicit(&waits, 1, memory_order_relaxed);
}

void wait_leave(void)
{
	uint32_t seen = atomic_load_explicit(&waits, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(&waits, &seen,
		(seen & ~ABORTED) == 1 ? 0 : seen - 1, memory_order_relaxed, memory_order_relaxed))
		;
}

bool wait_aborted(void)
{
	return atomic_load_explicit(&waits, memory_order_relaxed) & ABORTED;
}

void PtlAbort(void)
{
	uint32_t seen = atomic_load_explicit(&waits, memory_order_relaxed);

	do {
		if ((seen & ~ABORTED) == 0)
			return;
	} while (!atomic_compare_exchange_weak_explicit(
		&waits, &seen, seen | ABORTED, memory_order_seq_cst, memory_order_relaxed));
	if (front_is_open(&portals4))
		interface_rouse(&portals4);
}
