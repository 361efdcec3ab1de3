/* SPDX-License-Identifier: BSD-3-Clause */
/* front.c - how often each front end is in use, and what fork() does to it.
 *
 * Several components of one program may each open and close a front end: it closes with the call
 * that answers the first one.
 */
#include <host/front.h>

#include <pthread.h>

#include <base/cancel.h>
#include <base/log.h>
#include <base/remedy.h>
#include <base/settings.h>
#include <host/visitor.h>
#include <job/launchers.h>
#include <pmd-glue/glue.h>

static struct cancel_lock lock = CANCEL_LOCK_INITIAL;
static struct cancel_lock glue_lock = CANCEL_LOCK_INITIAL;
static struct front *fronts; /* that were ever open; the list only grows */
static _Atomic bool forked;

uint64_t library_now(void)
{
	return glue_now(NULL);
}

void library_lock(void)
{
	cancel_lock_take(&lock);
}

void library_unlock(void)
{
	cancel_lock_give(&lock);
}

void library_glue_lock(void)
{
	cancel_lock_take(&glue_lock);
}

void library_glue_unlock(void)
{
	cancel_lock_give(&glue_lock);
}

bool library_is_forked(void)
{
	return atomic_load_explicit(&forked, memory_order_relaxed);
}

/* The child has the parent's memory but none of its threads, and shares the device with it: it
 * keeps its hands off. */
static void library_fork_child(void)
{
	for (struct front *front = fronts; front; front = front->next) {
		if (!atomic_exchange_explicit(&front->open, false, memory_order_relaxed))
			continue;
		atomic_store_explicit(&forked, true, memory_order_relaxed);
		if (front->forked)
			front->forked();
	}
	visitor_self = NULL;
}

static bool library_in_use(void)
{
	bool in_use = false;

	for (const struct front *front = fronts; front; front = front->next)
		in_use |= front->uses != 0;
	return in_use;
}

/* Once per process. */
static enum answer library_start(const struct front *front)
{
	static bool started;

	if (started)
		return ANSWER_OK;
	if (pthread_atfork(NULL, NULL, library_fork_child) != 0) {
		log_error("%s failed because there is no memory for a fork handler: %s",
			front->start, remedy_for_memory());
		return ANSWER_FAILED;
	}
	visitor_start();
	(void)launcher_find(false); /* L3 */
	remedy_files_take();
	started = true;
	return ANSWER_OK;
}

static enum answer library_open(const struct front *front)
{
	if (library_start(front) != ANSWER_OK || settings_load() != 0)
		return ANSWER_FAILED;
	if (setting_items(SETTING_IFACE_NAME) > ENGINES_MAX) {
		log_error("PTL_IFACE_NAME names %u interfaces, but a process can have %u at most; "
			  "name fewer",
			setting_items(SETTING_IFACE_NAME), ENGINES_MAX);
		return ANSWER_FAILED;
	}
	return ANSWER_OK;
}

static void front_remember(struct front *front)
{
	const struct front *known = fronts;

	while (known && known != front)
		known = known->next;
	if (known)
		return;
	front->next = fronts;
	fronts = front;
}

enum answer front_open(struct front *front)
{
	enum answer answer = ANSWER_OK;

	log_clear_error();
	if (library_is_forked()) {
		log_error("%s failed because this process was made by fork() from one that uses "
			  "%s and shares its device; call exec() first",
			front->start, front->name);
		return ANSWER_FAILED;
	}
	library_lock();
	if (!library_in_use())
		answer = library_open(front);
	if (answer == ANSWER_OK) {
		front_remember(front);
		front->uses++;
		atomic_store_explicit(&front->open, true, memory_order_release);
	}
	library_unlock();
	return answer;
}

void front_close(struct front *front)
{
	if (!front_is_open(front))
		return;
	library_lock();
	if (front->uses > 0 && --front->uses == 0) {
		atomic_store_explicit(&front->open, false, memory_order_release);
		interface_close_all(front);
		if (!library_in_use()) {
			library_glue_lock();
			glue_rest();
			library_glue_unlock();
		}
	}
	library_unlock();
}
