/* SPDX-License-Identifier: BSD-3-Clause */
/* service.c - a thread that answers for endpoints whose program makes no calls.
 *
 * A greeting is answered by a thread that is inside a call on the endpoint (session.c). A program
 * that sleeps or computes makes none, and one that waits for one of its own endpoints makes none on
 * the others; so this thread looks now and then. It takes no endpoint that a call has, drives no
 * interface and runs no unexpected handler.
 */
#include <mx/state.h>

#include <signal.h>

#include <base/clock.h>
#include <base/futex.h>
#include <base/guard.h>
#include <base/log.h>

#define PAUSE (50 * MILLISECOND)
#define SOON  (2 * MILLISECOND) /* while a connect of this process is pending */

/* Written under the lock of opening and closing, but for the atomics. */
static struct {
	pthread_t thread;
	bool runs;
	unsigned endpoints;
	_Atomic bool stop;
	_Atomic uint32_t calls; /* futex word */
} service;

static void *service_run(void *argument)
{
	(void)pthread_setname_np(pthread_self(), "postern-mx");
	while (!atomic_load(&service.stop)) {
		uint32_t calls = atomic_load(&service.calls);
		bool connecting = false;

		for (unsigned slot = 1; endpoint_at(slot); slot++)
			connecting |= endpoint_serve(endpoint_at(slot));
		futex_wait(&service.calls, calls, connecting ? SOON : PAUSE);
	}
	return argument;
}

void service_call(void)
{
	atomic_fetch_add(&service.calls, 1);
	futex_wake(&service.calls, 1);
}

void service_begin(void)
{
	sigset_t before;

	if (service.endpoints++ != 0)
		return;
	atomic_store(&service.stop, false);
	/* Signals are for the program's threads. */
	guard_block_signals(&before);
	service.runs = pthread_create(&service.thread, NULL, service_run, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!service.runs)
		log_error("requests to connect are answered only during calls, because no "
			  "thread can be started: raise the limit of threads (ulimit -u)");
}

void service_end(void)
{
	if (--service.endpoints != 0 || !service.runs)
		return;
	atomic_store(&service.stop, true);
	service_call();
	pthread_join(service.thread, NULL);
	service.runs = false;
}

void service_forget(void)
{
	service.runs = false;
	service.endpoints = 0;
}
