/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - the Postern processes of this user, found by their telemetry sockets, and what their
 * interfaces have counted.
 */
#ifndef TOP_PROCESS_H
#define TOP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counter.h"
#include "node.h"

#define INTERFACES_MAX 64
#define TEXT_BYTES     64

/* Counters that grow; rates are made of their differences. */
struct counts {
	uint64_t frames_in, frames_out;
	uint64_t messages_in, messages_out;
	uint64_t bytes_in, bytes_out;
	uint64_t retransmits;
	uint64_t drops;
	uint64_t busy, elapsed; /* ns, of the poll thread */
	uint64_t at;            /* ns, when they were read */
};

struct interface {
	uint64_t number;
	uint64_t nid;
	uint64_t pid; /* Portals' process id */
	uint64_t peers;
	char device[TEXT_BYTES];
	bool inlined; /* no poll thread */
	struct counts now;
	struct counts before;
	struct node node;         /* of the last look that asked for it */
	struct counters counters; /* the same */
	bool seen;                /* at the last look */
	bool rated;               /* at the one before, too */
};

struct process;

/* What is shown. */
enum view { VIEW_INTERFACES, VIEW_NODES, VIEW_COUNTERS };

/* Looks for processes that came, asks all for their counts, and for their nodes or counters if
 * those are to be shown, forgets those that went. */
void processes_look(enum view view);

/* Returns true if another user's directory is where this user's processes would answer. DPDK names
 * it /tmp/dpdk for all users without XDG_RUNTIME_DIR. */
bool processes_hidden(void);

/* The first, and the one after; NULL at the end. */
struct process *process_first(void);
struct process *process_next(const struct process *process);
uint64_t process_id(const struct process *process); /* the system's */
/* By which dpdk-telemetry.py finds it: -i, and -f with the prefix, which is copied to the buffer
 * and returned. */
unsigned process_instance(const struct process *process);
const char *process_prefix(const struct process *process, char *buffer, size_t size);
const char *process_program(const struct process *process);
unsigned process_interfaces(const struct process *process);
const struct interface *process_interface(const struct process *process, unsigned i);

/* The growth from `before` to `now`, per second; 0 until there are two counts. */
double rate_of(const struct interface *interface, uint64_t before, uint64_t now);
/* The part of the time since the last look for which the poll thread had work, 0 to 1; -1:
 * unknown. */
double busy_of(const struct interface *interface);

#endif
