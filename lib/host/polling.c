/* SPDX-License-Identifier: BSD-3-Clause */
/* polling.c - see polling.h. */
#include <host/polling.h>

#include <sched.h>
#include <stdlib.h>

#include <base/list.h>
#include <base/log.h>
#include <base/backoff.h>
#include <base/port.h>
#include <base/settings.h>
#include <host/poller.h>
#include <pmd-glue/glue.h>

#define CPU_ANY UINT64_MAX

/* A poll thread and what it is for. */
struct poll_thread {
	struct link link;
	uint64_t cpu; /* or CPU_ANY */
	uint64_t started;
	struct poller *poller;
	struct glue_thread *thread;
};

/* An interface's helper (progress.h) and its thread; NULL: it is absent. */
struct interface_helper {
	struct helper *helper;
	struct glue_thread *thread;
};

/* Under the library's lock. */
static struct link poll_threads = LIST_INITIAL(poll_threads);

static const struct clock glue_clock = {.now = glue_now};

unsigned polling_drive(void)
{
	list_each (struct poll_thread, thread, &poll_threads, link)
		poller_wake(thread->poller);
	return interface_drive();
}

static uint64_t poll_cpu(unsigned number)
{
	return setting_number_item(SETTING_POLL_CORE, number, CPU_ANY);
}

static struct poll_thread *poll_thread_find(uint64_t cpu)
{
	list_each (struct poll_thread, thread, &poll_threads, link)
		if (thread->cpu == cpu)
			return thread;
	return NULL;
}

static enum poller_mode poll_mode(void)
{
	if (setting_is(SETTING_POLL, "interrupt"))
		return POLLER_INTERRUPT;
	return setting_is(SETTING_POLL, "adaptive") ? POLLER_ADAPTIVE : POLLER_BUSY;
}

bool polling_cpu_usable(unsigned number)
{
	uint64_t cpu = poll_cpu(number);

	return cpu == CPU_ANY || setting_is(SETTING_PROGRESS, "inline") ||
	       glue_cpu_usable((int)cpu);
}

/* A launcher that binds ranks to cores gives each one CPU, where a poll thread is in the way. */
static void one_cpu_warn(void)
{
	cpu_set_t set;

	if (poll_mode() != POLLER_INTERRUPT && sched_getaffinity(0, sizeof(set), &set) == 0 &&
		CPU_COUNT(&set) == 1)
		log_warning(
			"this process may use only one CPU, which its polling thread and its "
			"other threads share: give it two CPUs (mpirun: --map-by slot:pe=2), or "
			"set PTL_PROGRESS=both");
}

/* A thread with this first engine; NULL: the system has none, or no memory. */
static struct poll_thread *poll_thread_start(
	uint64_t cpu, struct engine *engine, struct segment *segment, bool external)
{
	struct poll_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->cpu = cpu;
	thread->started = glue_now(NULL);
	if (cpu == CPU_ANY && list_empty(&poll_threads))
		one_cpu_warn();
	thread->poller = poller_create(poll_mode(), &glue_clock);
	if (thread->poller) {
		poller_add(thread->poller, engine, segment, external);
		thread->thread = glue_thread_start(
			poller_run, thread->poller, cpu == CPU_ANY ? -1 : (int)cpu, "postern");
	}
	if (!thread->thread) {
		poller_destroy(thread->poller);
		free(thread);
		return NULL;
	}
	if (cpu == CPU_ANY)
		log_debug(LOG_INTERFACE, "a thread polls on whatever CPU the system gives it");
	else
		log_debug(LOG_INTERFACE, "a thread polls on CPU %u", (unsigned)cpu);
	poller_resume(thread->poller);
	list_append(&poll_threads, &thread->link);
	return thread;
}

/* Hands the engine to a poll thread. 0 or -1. */
static int interface_attend(struct interface *interface, unsigned number, struct segment *segment)
{
	uint64_t cpu = poll_cpu(number);
	/* With several poll threads, another one's frames may come at any time. */
	bool external = interface->port->external || setting_items(SETTING_POLL_CORE) > 1;

	interface->thread = poll_thread_find(cpu);
	if (interface->thread) {
		poller_pause(interface->thread->poller);
		poller_add(interface->thread->poller, interface->engine, segment, external);
		poller_resume(interface->thread->poller);
	} else {
		interface->thread = poll_thread_start(cpu, interface->engine, segment, external);
	}
	return interface->thread ? 0 : -1;
}

/* Do the program's calls drive the engine? Without PTL_PROGRESS the port decides, unless the user
 * has said how a poll thread is to be. */
static bool progress_is_inlined(const struct port *port)
{
	if (!setting_is(SETTING_PROGRESS, "auto"))
		return !setting_is(SETTING_PROGRESS, "core");
	return port->helped && !setting_is_given(SETTING_POLL) &&
	       !setting_is_given(SETTING_POLL_CORE);
}

/* Several interfaces of a process send frames to each other that no port announces. */
static bool frames_are_external(const struct interface *interface)
{
	return interface->port->external || setting_items(SETTING_IFACE_NAME) > 1 ||
	       interface - interfaces >= (ptrdiff_t)setting_items(SETTING_IFACE_NAME);
}

/* Takes the progress lock, however long another thread holds it. */
static void progress_await(struct progress *progress)
{
	unsigned looks = 0;

	while (!progress_take(progress))
		backoff(&looks);
}

void polling_disturb(struct progress *progress)
{
	progress_await(progress);
	progress_leave(progress);
}

/* The progress lock gets an engine, or NULL, and its helper, or NULL. cancels: of its port. */
static void progress_give(
	struct progress *progress, struct engine *engine, struct helper *helper, bool cancels)
{
	/* A thread that still believes the last life open may hold it. */
	progress_await(progress);
	if (progress->cancels)
		cancel_release(progress->cancel);
	progress->engine = engine;
	progress->helper = helper;
	progress->cancels = engine && cancels;
	if (progress->cancels)
		progress->cancel = cancel_hold();
	progress_leave(progress);
}

/* Calls drive the engine, and a helper may look after it. 0, or -1: there is no helper to be had.
 */
static int interface_attach(struct interface *interface, unsigned number, struct segment *segment)
{
	struct interface_helper *own = calloc(1, sizeof(*own));
	uint64_t cpu = poll_cpu(number);

	interface->submission.progress = &interface->progress;
	interface->helper = NULL;
	interface->helped = false;
	if (setting_is(SETTING_PROGRESS, "inline")) {
		if (own)
			own->helper =
				helper_create_absent(&interface->progress, segment, &glue_clock);
		interface->helper = own;
		progress_give(&interface->progress, interface->engine, own ? own->helper : NULL,
			interface->port->cancels);
		return 0;
	}
	if (own)
		own->helper = helper_create(
			&interface->progress, segment, frames_are_external(interface), &glue_clock);
	if (!own || !own->helper) {
		free(own);
		return -1;
	}
	progress_give(
		&interface->progress, interface->engine, own->helper, interface->port->cancels);
	own->thread = glue_thread_start(
		helper_run, own->helper, cpu == CPU_ANY ? -1 : (int)cpu, "postern-helper");
	if (own->thread) {
		interface->helper = own;
		interface->helped = true;
		return 0;
	}
	progress_give(&interface->progress, NULL, NULL, false);
	helper_destroy(own->helper);
	free(own);
	return -1;
}

/* The progress lock loses its engine, and its helper ends. */
static void interface_detach(struct interface *interface)
{
	struct interface_helper *own = interface->helper;

	progress_give(&interface->progress, NULL, NULL, false);
	if (!own)
		return;
	interface->helper = NULL;
	if (interface->helped) {
		helper_stop(own->helper);
		glue_thread_join(own->thread);
	}
	interface->helped = false;
	helper_destroy(own->helper);
	free(own);
}

int polling_begin(struct interface *interface, unsigned device, struct segment *segment)
{
	interface->inlined = progress_is_inlined(interface->port);
	interface->submission.progress = NULL;
	return interface->inlined ? interface_attach(interface, device, segment)
				  : interface_attend(interface, device, segment);
}

void polling_end(struct interface *interface)
{
	struct poll_thread *thread = interface->thread;

	if (!thread) {
		interface_detach(interface);
		engine_own(interface->engine);
		return;
	}
	interface->thread = NULL;
	poller_pause(thread->poller);
	poller_remove(thread->poller, interface->engine);
	if (poller_count(thread->poller) > 0) {
		poller_resume(thread->poller);
		return;
	}
	poller_stop(thread->poller);
	glue_thread_join(thread->thread);
	link_remove(&thread->link);
	poller_destroy(thread->poller);
	free(thread);
}

void interface_change_poll(void)
{
	list_each (struct poll_thread, thread, &poll_threads, link) {
		poller_pause(thread->poller);
		poller_set_mode(thread->poller, poll_mode());
		poller_resume(thread->poller);
	}
}

void interface_pause(struct interface *interface)
{
	if (interface->thread)
		poller_pause(interface->thread->poller);
	else
		progress_await(interface->submission.progress);
}

void interface_resume(struct interface *interface)
{
	if (interface->thread)
		poller_resume(interface->thread->poller);
	else
		progress_leave(interface->submission.progress);
}

void interface_look(struct interface *interface,
	void (*look)(struct interface *interface, void *context), void *context)
{
	interface_pause(interface);
	look(interface, context);
	interface_resume(interface);
}

bool interface_poll(const struct interface *interface, struct poll_info *info)
{
	const struct poll_thread *thread = interface->thread;

	if (!thread)
		return false;
	*info = (struct poll_info){
		.cpu = thread->cpu,
		.busy = poller_busy(thread->poller),
		.elapsed = glue_now(NULL) - thread->started,
		.interfaces = poller_count(thread->poller),
	};
	return true;
}
