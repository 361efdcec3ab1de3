/* SPDX-License-Identifier: BSD-3-Clause */
/* disposal.c - see disposal.h. */
#include <pmd-glue/disposal.h>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <base/guard.h>

#define WORKERS_MAX 32u
#define FULL        64u
/* Room for FULL, and for what processes and half-open connections (clients.h) still have when
 * nobody else is let in. */
#define WAITING_MAX 4096u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int waiting[WAITING_MAX];
static unsigned count;         /* of those that wait */
static unsigned workers, idle; /* threads; of them: that have nothing to do */

static void *work(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		int fd;

		while (count == 0) {
			idle++;
			pthread_cond_wait(&more, &lock);
			idle--;
		}
		fd = waiting[--count];
		pthread_mutex_unlock(&lock);
		close(fd);
		pthread_mutex_lock(&lock);
	}
	return unused;
}

/* Another thread, unless there is one for each that waits. The lock is held. */
static void worker_make(void)
{
	sigset_t before;
	pthread_t thread;

	if (idle >= count || workers == WORKERS_MAX)
		return;
	guard_block_signals(&before);
	if (pthread_create(&thread, NULL, work, NULL) == 0) {
		workers++;
		pthread_setname_np(thread, "postern-close");
		pthread_detach(thread);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void disposal_close(const int *fds, unsigned n)
{
	pthread_mutex_lock(&lock);
	for (; n > 0; n--, fds++) {
		if (count == WAITING_MAX)
			continue; /* it stays open */
		waiting[count++] = *fds;
		worker_make();
		pthread_cond_signal(&more);
	}
	pthread_mutex_unlock(&lock);
}

bool disposal_is_full(void)
{
	bool full;

	pthread_mutex_lock(&lock);
	full = count >= FULL;
	pthread_mutex_unlock(&lock);
	return full;
}
