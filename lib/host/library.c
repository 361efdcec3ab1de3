/* SPDX-License-Identifier: BSD-3-Clause */
/* library.c - PtlInit, PtlFini, and what fork() does to them.
 *
 * Several components of one program may each call PtlInit and PtlFini: the library closes with the
 * PtlFini that answers the first PtlInit.
 */
#include <host/library.h>

#include <pthread.h>

#include <base/log.h>
#include <base/settings.h>
#include <host/interface.h>

_Atomic int library_state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t glue_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned uses; /* PtlInit calls that no PtlFini has answered */

void library_lock(void)
{
	pthread_mutex_lock(&lock);
}

void library_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void library_glue_lock(void)
{
	pthread_mutex_lock(&glue_lock);
}

void library_glue_unlock(void)
{
	pthread_mutex_unlock(&glue_lock);
}

/* The child has the parent's memory but none of its threads, and shares the device with it: it
 * keeps its hands off. */
static void library_fork_child(void)
{
	if (library_is_open())
		atomic_store_explicit(&library_state, LIBRARY_FORKED, memory_order_relaxed);
	era_end();
}

/* Once per process. */
static int library_start(void)
{
	static bool started;

	if (started)
		return 0;
	if (pthread_atfork(NULL, NULL, library_fork_child) != 0) {
		log_error("PtlInit failed because there is no memory for a fork handler; free some "
			  "memory and try again");
		return -1;
	}
	visitor_start();
	started = true;
	return 0;
}

static int library_open(void)
{
	if (library_start() != 0 || settings_load() != 0)
		return PTL_FAIL;
	if (setting_items(SETTING_IFACE_NAME) > HANDLE_INTERFACES) {
		log_error("PTL_IFACE_NAME names %u interfaces, but a process can have %u at most; "
			  "name fewer",
			setting_items(SETTING_IFACE_NAME), HANDLE_INTERFACES);
		return PTL_FAIL;
	}
	return PTL_OK;
}

int PtlInit(int *max_interfaces)
{
	int code = PTL_OK;

	if (ADDRESS_IS_BAD(max_interfaces))
		return PTL_SEGV;
	log_clear_error();
	if (library_is_forked()) {
		log_error(
			"PtlInit failed because this process was made by fork() from one that uses "
			"Portals and shares its device; call exec() first");
		return PTL_FAIL;
	}
	library_lock();
	if (uses == 0)
		code = library_open();
	if (code == PTL_OK) {
		uses++;
		*max_interfaces = (int)setting_items(SETTING_IFACE_NAME);
		atomic_store_explicit(&library_state, LIBRARY_OPEN, memory_order_release);
	}
	library_unlock();
	return code;
}

void PtlFini(void)
{
	if (!library_is_open())
		return;
	library_lock();
	if (uses > 0 && --uses == 0) {
		atomic_store_explicit(&library_state, LIBRARY_CLOSED, memory_order_release);
		interface_close_all();
	}
	library_unlock();
}
