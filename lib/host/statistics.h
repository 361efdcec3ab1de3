/* SPDX-License-Identifier: BSD-3-Clause */
/* statistics.h - the counters of an interface: those of its engine, its transport and its port. */
#ifndef HOST_STATISTICS_H
#define HOST_STATISTICS_H

#include <host/interface.h>

/* Messages that were dropped, for whatever reason. */
uint64_t interface_drops(const struct segment *segment) CORE_API(interface_drops);
/* Gets a counter. */
typedef void stat_tell(void *context, const char *name, const char *help, uint64_t value);
/* Gives every counter of an open interface to tell(). The library's lock is held. */
void interface_tell_stats(struct interface *interface, stat_tell *tell, void *context);
/* The same for the interface of a handle; OK or GONE. */
enum answer interface_stats(const struct front *front, uint64_t handle, stat_tell *tell,
	void *context) CORE_API(interface_stats);

#endif
