/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - what a process is at, told to the driver that has waited for it too long: it sends
 * SIGUSR1. Poll threads stand aside for the answer, so one that hangs is told by there being none.
 */
#ifndef NET_STATE_H
#define NET_STATE_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <portals.h>
#include <postern.h>

static void state_tell(ptl_handle_ni_t interface)
{
	static const char *const topics[] = {"port", "poll", "queues", "eq", "peers", "drops"};
	char json[2048];

	for (unsigned i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
		if (postern_inspect(interface, topics[i], 0, 0, json, sizeof(json)) >= 0)
			fprintf(stderr, "%s %s\n", topics[i], json);
}

/* Frame buffers of the interface's port that are in use. */
static inline uint64_t buffers_used(ptl_handle_ni_t interface)
{
	struct postern_stat stats[256];
	unsigned count = postern_stats(interface, stats, 256);

	for (unsigned i = 0; i < count && i < 256; i++)
		if (strcmp(stats[i].name, "port_buffers") == 0)
			return stats[i].value;
	return UINT64_MAX; /* there is no such counter */
}

static sigset_t state_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	return signals;
}

/* argument: the interface's handle. */
static void *state_watch(void *argument)
{
	const ptl_handle_ni_t *interface = argument;
	const sigset_t signals = state_signals();
	int number;

	while (sigwait(&signals, &number) == 0)
		state_tell(*interface);
	return NULL;
}

/* Before any other thread begins: none but the one that answers may take the signal. */
static inline void state_block(void)
{
	const sigset_t signals = state_signals();

	pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

/* The interface is there, and its handle stays what it is. Returns false if there is no thread to
 * answer. */
static inline bool state_open(ptl_handle_ni_t *interface)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, state_watch, interface) == 0 &&
	       pthread_detach(thread) == 0;
}

#endif
