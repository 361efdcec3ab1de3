/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - poll threads, and DPDK's idea of a thread.
 *
 * A thread without a number of DPDK's has no mempool cache, and each buffer then costs it ten times
 * as much. POOL_THREADS of our threads have one at a time (pool.h, I2).
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_lcore.h>

#include <base/guard.h>
#include <base/log.h>
#include <base/remedy.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/pool.h>

#define THREAD_NAME_MAX 16
#define REMEDY_MAX      256

struct glue_thread {
	pthread_t thread;
	void (*run)(void *);
	void *argument;
	char name[THREAD_NAME_MAX];
};

static pthread_key_t leave_key; /* its destructor gives back what glue_thread_enter() took */
static pthread_once_t leave_once = PTHREAD_ONCE_INIT;
static bool leave_usable;
static _Thread_local bool entered;

/* They have numbers of their own, not EAL's: EAL need not run, and if it does, it lets secondary
 * processes in only while no thread has registered with it. */
static atomic_bool in_use[POOL_THREADS];
static _Thread_local unsigned used_number; /* which one */

/* Threads of a program that has started EAL itself may have numbers that are so high. */
static bool lcore_is_free(unsigned lcore)
{
	return !eal_started() || rte_eal_lcore_role(lcore) == ROLE_OFF;
}

static bool thread_number_take(void)
{
	for (unsigned n = 0; n < POOL_THREADS; n++) {
		/* Acquire: pairs with the release in thread_leave(), so that the last thread of
		 * that number has finished with its caches. */
		if (!lcore_is_free(POOL_LCORES + n) ||
			atomic_exchange_explicit(&in_use[n], true, memory_order_acquire))
			continue;
		used_number = n;
		RTE_PER_LCORE(_lcore_id) = POOL_LCORES + n;
		return true;
	}
	return false;
}

static void thread_leave(void *unused)
{
	(void)unused;
	if (glue_started())
		pool_empty_caches(rte_lcore_id());
	RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
	atomic_store_explicit(&in_use[used_number], false, memory_order_release);
}

static void thread_leave_prepare(void)
{
	leave_usable = pthread_key_create(&leave_key, thread_leave) == 0;
}

void glue_thread_enter(void)
{
	static const char mark;
	if (entered || !glue_started())
		return;
	entered = true;
	if (rte_lcore_id() != LCORE_ID_ANY)
		return;
	pthread_once(&leave_once, thread_leave_prepare);
	if (!leave_usable)
		return;
	/* One thread too many has no cache: it is slower, not wrong. */
	if (!thread_number_take())
		return;
	pthread_setspecific(leave_key, &mark);
}

static void *thread_main(void *context)
{
	struct glue_thread *thread = context;
	pthread_setname_np(pthread_self(), thread->name);
	glue_thread_enter();
	thread->run(thread->argument);
	return NULL;
}

static int thread_create(struct glue_thread *thread, int cpu)
{
	pthread_attr_t attributes;
	sigset_t before;
	int error = pthread_attr_init(&attributes);
	if (error != 0)
		return error;
	if (cpu >= 0) {
		cpu_set_t set;
		CPU_ZERO(&set);
		if (cpu >= CPU_SETSIZE)
			error = EINVAL;
		else
			CPU_SET((size_t)cpu, &set);
		if (error == 0)
			error = pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	}
	if (error == 0) {
		guard_block_signals(&before);
		error = pthread_create(&thread->thread, &attributes, thread_main, thread);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attributes);
	return error;
}

/* Pinning is tried, because only the kernel knows the limits of the container. */
bool glue_cpu_usable(int cpu)
{
	cpu_set_t before, set;
	bool usable = false;
	int example = 0;
	CPU_ZERO(&before);
	if (sched_getaffinity(0, sizeof(before), &before) != 0)
		return true; /* more CPUs than a set holds: the thread's start will report it */
	if (cpu < CPU_SETSIZE) {
		CPU_ZERO(&set);
		CPU_SET((size_t)cpu, &set);
		usable = sched_setaffinity(0, sizeof(set), &set) == 0;
		sched_setaffinity(0, sizeof(before), &before);
	}
	if (usable)
		return true;
	while (example < CPU_SETSIZE - 1 && !CPU_ISSET((size_t)example, &before))
		example++;
	log_error("PTL_POLL_CORE=%d: there is no such CPU here, or this process may not use it: "
		  "set it to one that \"taskset -cp $$\" lists, such as %d",
		cpu, example);
	return false;
}

struct glue_thread *glue_thread_start(
	void (*run)(void *), void *argument, int cpu, const char *name)
{
	struct glue_thread *thread = calloc(1, sizeof(*thread));
	char remedy[REMEDY_MAX];
	int error;
	if (!thread) {
		log_error(
			"cannot start the thread %s: out of memory: %s", name, remedy_for_memory());
		return NULL;
	}
	thread->run = run;
	thread->argument = argument;
	strncpy(thread->name, name, sizeof(thread->name) - 1);
	error = thread_create(thread, cpu);
	if (error == 0)
		return thread;
	eal_thread_remedy(remedy, sizeof(remedy));
	if (error == EINVAL && cpu >= 0)
		log_error("cannot run the thread %s on CPU %d: set PTL_POLL_CORE to a CPU that "
			  "this process may use",
			name, cpu);
	else
		log_error("cannot start the thread %s: %s: %s", name, strerror(error), remedy);
	free(thread);
	return NULL;
}

void glue_thread_join(struct glue_thread *thread)
{
	if (!thread)
		return;
	pthread_join(thread->thread, NULL);
	free(thread);
}
