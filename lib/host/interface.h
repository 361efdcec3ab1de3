/* SPDX-License-Identifier: BSD-3-Clause */
/* interface.h - network interfaces: how one comes to life and ends, who drives it, and what can be
 * asked of it.
 *
 * Life of an interface: EAL, port, segment, engine, then a poll thread takes the engine over (or,
 * inline, its progress lock gets the engine); last the segment is published in interfaces[], which
 * lets visitors in. It ends in the opposite order.
 *
 * A further interface is a space on the engine of one that is open, the first, under its process id
 * and on its port: it has tables, limits and counters of its own, and uses the first one's ring,
 * reply slots and progress lock. Its number is beyond those of PTL_IFACE_NAME. It ends with the
 * first, or before.
 *
 * All interfaces of a process that have a poll thread share one. Those whose PTL_POLL_CORE differs
 * have their own, pinned. With PTL_PROGRESS=both each has a helper (progress.h).
 */
#ifndef HOST_INTERFACE_H
#define HOST_INTERFACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/core.h>
#include <base/handle.h>
#include <engine/engine.h>
#include <engine/segment.h>
#include <host/front.h>
#include <host/submission.h>

struct extent_map;
struct port;

struct interface {
	/* Read by visitors. */
	_Alignas(CACHE_LINE) _Atomic(struct segment *) segment; /* NULL: not open */
	_Atomic uint64_t handle;
	struct submission submission;
	const struct front *front; /* whose it is */
	struct process self;
	uint32_t uid;
	bool inlined;   /* calls drive: PTL_PROGRESS=inline or both */
	int socket;     /* NUMA node of its port */
	uint32_t first; /* number of the interface whose engine it uses, mostly its own */
	/* Of the thread that drives the engine. */
	struct progress progress;
	/* Under the library's lock. */
	struct port *port;
	struct encapsulation_options encapsulation;
	struct engine *engine;
	struct poll_thread *thread; /* polling.c; NULL: calls drive */
	bool helped;                /* by a thread: PTL_PROGRESS=both */
	/* polling.c; where calls drive. NULL: there is none, or another one is first */
	struct interface_helper *helper;
	bool ending;  /* a further one that closes: its space still has operations in flight */
	void *memory; /* of the segment */
	size_t memory_size;
	uint32_t generation;  /* handle.h, I2: where the next life's handles start */
	uint32_t incarnation; /* of the last life */
	/* Under the glue's lock. */
	struct extent_map *events; /* which event memory is taken */
};

/* Those with an engine have the numbers below it. */
#define ENGINES_MAX 64
extern struct interface interfaces[HANDLE_INTERFACES] CORE_API(interfaces);

/* As a process id: the one that the port has named, or else the system's of this process. */
#define INTERFACE_PID_ANY UINT32_MAX

/* Opens an interface that is not open, as process `pid` of its node. Limits without Portals: its
 * engine has no space, and waits for further ones. The library's lock is held,
 * the front end is open, and number is less than setting_items(SETTING_IFACE_NAME). OK; GONE: it
 * cannot be used, or another front end has it; TAKEN; NO_MEMORY. */
enum answer interface_open(const struct front *front, unsigned number, uint32_t pid,
	const struct segment_limits *limits) CORE_API(interface_open);
/* Opens an interface with a process id of its own on the device of number `device` of
 * PTL_IFACE_NAME, under a number beyond those of PTL_IFACE_NAME; its handle: *opened. tries: if the
 * process id is in use, another one will do, and there is no error line. Otherwise as
 * interface_open(); FAILED: there is no number. */
enum answer interface_open_beside(const struct front *front, unsigned device, uint32_t pid,
	bool tries, const struct segment_limits *limits, uint64_t *opened)
	CORE_API(interface_open_beside);
/* Which space a further interface is. */
struct space_choice {
	uint32_t number;              /* 1 to SPACES - 1 */
	bool lives;                   /* messages of strangers bring the interface's incarnation */
	struct space_options options; /* but for segment, interface, uid and life */
};

/* Opens a further interface, another space of the engine of an open
 * interface, for the same front end; its handle: *opened. What is sent from it goes to the space of
 * this number at the other end. OK; GONE: the handle is none; FAILED, after an error line: the
 * space is open, or all handles' interfaces are; NO_MEMORY. Takes the library's lock. */
enum answer interface_open_space(const struct front *front, uint64_t handle,
	const struct space_choice *choice, const struct segment_limits *limits, uint64_t *opened)
	CORE_API(interface_open_space);
/* Closes the interface of a handle, and with a first one the further ones. A further one's end
 * waits until what it has sent is done with, at most about PTL_PEER_TIMEOUT, and so do pings from
 * it, for theirs; other interfaces may be opened and closed meanwhile. OK or GONE. */
enum answer interface_close(const struct front *front, uint64_t handle) CORE_API(interface_close);

/* The library's lock is held. */
static inline bool interface_is_open(const struct front *front, unsigned number)
{
	return interfaces[number].front == front &&
	       atomic_load_explicit(&interfaces[number].segment, memory_order_relaxed);
}

/* One turn of every engine of this process that no poll thread drives; returns how much was
 * done. */
unsigned interface_drive(void) CORE_API(interface_drive);

/* For a thread that is about to sleep: from now on helpers drive. Returns how much was done by a
 * last turn; 0: the thread may sleep. */
unsigned interface_rest(void) CORE_API(interface_rest);

/* progress_sleep(), by the lock of the only interface that calls drive; with several of them
 * PROGRESS_UNSLEPT. */
enum progress_slept interface_sleep(bool (*look)(void *context), void *context, uint64_t limit);
/* progress_shares_cpu() of any of them. */
bool interface_shares_cpu(void);

/* Does a helper look after the interface while no call drives it? Of an interface that is open. */
static inline bool interface_is_helped(const struct interface *interface)
{
	return interfaces[interface->first].helped;
}

/* Returns when nobody touches the engine and the port of an open interface: they are the caller's
 * until interface_resume(). A poll thread stands aside with all its interfaces, which may be paused
 * together. The library's lock is held from the first to the last. */
void interface_pause(struct interface *interface);
void interface_resume(struct interface *interface);

/* Calls look(interface, context) while nobody drives the interface's engine: its poll thread
 * stands aside for the moment. The library's lock is held, and the interface is open. */
void interface_look(struct interface *interface,
	void (*look)(struct interface *interface, void *context), void *context);

/* Lets all poll threads wait as PTL_POLL now says. The library's lock is held. */
void interface_change_poll(void);

/* The thread that polls an interface. */
struct poll_info {
	uint64_t cpu;        /* that it is pinned to, UINT64_MAX: none */
	uint64_t busy;       /* ns in turns that found something to do */
	uint64_t elapsed;    /* ns since it was started */
	unsigned interfaces; /* that it polls */
};
/* Returns false if there is none, as with PTL_PROGRESS=inline. The library's lock is held, and the
 * interface is open. */
bool interface_poll(const struct interface *interface, struct poll_info *info);

/* The open interface of a front end's handle, NULL: it is none. The library's lock is held. */
struct interface *interface_of(const struct front *front, uint64_t handle);

/* Memory that lies on the NUMA node of the interface's port, in hugepages when there are any; it
 * outlives the interface. NULL: no memory is left, or the handle is none. Any thread. */
void *interface_alloc(const struct front *front, uint64_t handle, size_t size)
	CORE_API(interface_alloc);
void interface_free(void *memory) CORE_API(interface_free);

/* Lets every thread that waits for events or counts of a front end's interfaces look once more:
 * what it looks at has changed. Takes the library's lock. */
void interface_rouse(const struct front *front) CORE_API(interface_rouse);

/* The same for threads that wait on the interface that the caller visits. */
void interface_rouse_one(struct interface *interface) CORE_API(interface_rouse_one);

/* Closes every interface of a front end. The library's lock is held. */
void interface_close_all(const struct front *front);

#endif
