/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - poll threads, and EAL's idea of a thread.
 *
 * A thread that EAL does not know has no mempool cache, and each buffer then costs it ten times as
 * much. EAL knows POOL_THREADS of our threads at a time (pool.h, I2), the one that started EAL
 * among them.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_lcore.h>

#include <base/log.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/pool.h>
#include <pmd-glue/share.h>

#define THREAD_NAME_MAX 16

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
static atomic_uint registered; /* threads that EAL knows through thread_register() */

/* With PTL_SHARE no thread may register: EAL would then refuse secondary processes. Instead EAL is
 * started with more threads of its own than it needs. They sleep for ever, and our threads use
 * their numbers. */
static atomic_bool lent[SHARE_LCORES];
static _Thread_local unsigned borrowed; /* 0: nothing, which is EAL's own */

static bool thread_borrow(void)
{
	for (unsigned id = 1; id < SHARE_LCORES; id++) {
		/* Acquire: pairs with the release in thread_leave(), so that the last thread of
		 * that number has finished with its caches. */
		if (atomic_exchange_explicit(&lent[id], true, memory_order_acquire))
			continue;
		RTE_PER_LCORE(_lcore_id) = borrowed = id;
		return true;
	}
	return false;
}

static bool thread_register(void)
{
	if (atomic_fetch_add_explicit(&registered, 1, memory_order_relaxed) < POOL_THREADS - 1 &&
		rte_thread_register() == 0)
		return true;
	atomic_fetch_sub_explicit(&registered, 1, memory_order_relaxed);
	return false;
}

static void thread_leave(void *unused)
{
	(void)unused;
	if (eal_started())
		pool_empty_caches(rte_lcore_id());
	if (borrowed != 0) {
		RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
		atomic_store_explicit(&lent[borrowed], false, memory_order_release);
		borrowed = 0;
	} else {
		if (eal_started())
			rte_thread_unregister();
		atomic_fetch_sub_explicit(&registered, 1, memory_order_relaxed);
	}
}

static void thread_leave_prepare(void)
{
	leave_usable = pthread_key_create(&leave_key, thread_leave) == 0;
}

void glue_thread_enter(void)
{
	static const char mark;
	if (entered || !eal_started())
		return;
	entered = true;
	if (rte_lcore_id() != LCORE_ID_ANY)
		return;
	pthread_once(&leave_once, thread_leave_prepare);
	if (!leave_usable)
		return;
	/* One thread too many has no cache: it is slower, not wrong. */
	if (share_active() ? !thread_borrow() : !thread_register())
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
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	pthread_attr_t attributes;
	sigset_t all, before;
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
		sigfillset(&all);
		/* A fault with its signal blocked would end the program without a call of its
		 * handler, and of guard.h's. */
		for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
			sigdelset(&all, faults[i]);
		pthread_sigmask(SIG_SETMASK, &all, &before);
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
	int error;
	if (!thread) {
		log_error("cannot start the thread %s: out of memory: free some", name);
		return NULL;
	}
	thread->run = run;
	thread->argument = argument;
	strncpy(thread->name, name, sizeof(thread->name) - 1);
	error = thread_create(thread, cpu);
	if (error == 0)
		return thread;
	if (error == EINVAL && cpu >= 0)
		log_error("cannot run the thread %s on CPU %d: set PTL_POLL_CORE to a CPU that "
			  "this process may use",
			name, cpu);
	else
		log_error("cannot start the thread %s: %s", name, strerror(error));
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
