/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier.c - see barrier.h. */
#include <base/barrier.h>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool barrier_cheap;

static const struct timespec forbidden = {.tv_nsec = 1000000};

void barrier_start(void)
{
	barrier_cheap =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void barrier_heavy(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	/* A program may have forbidden the call since: then the stores of other CPUs get time to be
	 * done. */
	if (barrier_cheap && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
		syscall(SYS_nanosleep, &forbidden, NULL);
}
