/* SPDX-License-Identifier: BSD-3-Clause */
/* interface.h - what the files of the Portals 4 front end share.
 *
 * A port has one engine, and on it a space for each of the four kinds of NI. The host's interface
 * of the port's own number has the engine and no space; each NI is a further interface on it, whose
 * number the host chooses. The first NI of a port opens the port's interface, the last one closes
 * it.
 *
 * F1. Order of locks: nis_lock, then the library's. A visitor takes neither.
 * F2. ni.number is 0 before the interface of that number closes, and is set after it was opened. So
 *     a visitor that finds the same number before and after it has found the interface open visits
 *     the NI that the handle names.
 * F3. The last PtlFini closes the interfaces and leaves the NIs as they are; they are forgotten
 *     when the next NI is opened (nis_review()).
 */
#ifndef P4_INTERFACE_H
#define P4_INTERFACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <portals4.h>

#include <base/map.h>
#include <host/front.h>
#include <host/visitor.h>
#include <p4/handle.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

#define PORTS       2 /* of PTL_IFACE_NAME that Portals 4 uses */
#define PORT_NIS    4
#define SPACE_FIRST 4 /* number of the space of the first kind of NI */

/* In the number of an NI on its port. */
#define NI_MATCHES 1u
#define NI_RANKED  2u

/* The processes of a logical NI. */
struct ranks {
	uint32_t count;
	uint32_t self;
	struct process processes[];
};

/* What belongs to a region and is not the engine's, by the region's index. Written by the
 * thread that takes the index. */
struct backing {
	struct map_vector *vector; /* of PTL_IOVEC, freed when the index is taken again */
};

struct ni {
	/* Read by visitors. */
	_Atomic uint32_t number;       /* of the host's interface + 1; 0: not open */
	_Atomic uint64_t index_bits;   /* a byte for each name_kind */
	_Atomic(struct ranks *) ranks; /* NULL: there is no map */
	struct backing *backings;
	ptl_ni_limits_t limits;
	/* Under nis_lock. */
	uint64_t handle; /* the host's, of its interface */
	uint64_t port;   /* and of its port's */
	unsigned uses;
};
static_assert(NAME_KINDS <= sizeof(uint64_t), "a byte each");

extern struct front portals4; /* front.c */
extern struct ni nis[NAME_NIS];

static inline uint32_t ni_index(const struct ni *ni)
{
	return (uint32_t)(ni - nis);
}

static inline bool ni_matches(const struct ni *ni)
{
	return ni_index(ni) & NI_MATCHES;
}

static inline bool ni_is_ranked(const struct ni *ni)
{
	return ni_index(ni) & NI_RANKED;
}

static inline uint32_t ni_index_bits(const struct ni *ni, enum name_kind kind)
{
	return (uint32_t)(atomic_load_explicit(&ni->index_bits, memory_order_relaxed) >> 8 * kind) &
	       31;
}

/* What a handle names in the table of its kind. */
static inline uint32_t name_index(const struct ni *ni, uint32_t name, enum name_kind kind)
{
	return kind == NAME_NI ? 0 : name & ((UINT32_C(1) << ni_index_bits(ni, kind)) - 1);
}

/* The handle of an object of an NI. */
static inline uint32_t name_of(
	const struct ni *ni, enum name_kind kind, uint32_t index, uint32_t generation)
{
	return name_make(kind, ni_index(ni)) |
	       ((generation << ni_index_bits(ni, kind) | index) & NAME_LOW);
}

/* Is a generation that of a living object, and of this handle? */
static inline bool name_is(
	const struct ni *ni, uint32_t name, enum name_kind kind, uint32_t generation)
{
	uint32_t bits = ni_index_bits(ni, kind);

	return generation != 0 &&
	       (generation << bits & NAME_LOW) >> bits == (name & NAME_LOW) >> bits;
}

/* Is it a handle of this kind? Whether its object lives is another question. */
static inline bool name_is_sound(uint32_t name, enum name_kind kind)
{
	return name_kind(name) == (uint32_t)kind && (kind != NAME_NI || (name & NAME_LOW) == 0);
}

/* A visit to an NI, and to an object of it. */
struct call {
	struct visit visit;
	struct ni *ni;
	uint32_t number; /* of the NI, when the visit began */
	bool ranked;     /* ni_is_ranked() */
};

/* Ends a visit. Returns the code of the call. */
static inline int call_leave(const struct call *call, int code)
{
	visit_leave(&call->visit);
	return code;
}

/* F2. Does a handle name a living object of the NI that is visited? */
static inline bool call_confirm(struct call *call, uint32_t name, enum name_kind kind)
{
	uint64_t gate;

	if (atomic_load_explicit(&call->ni->number, memory_order_relaxed) != call->number)
		return false;
	if (kind == NAME_NI)
		return true;
	/* Acquire: pairs with the release of the thread that made the object. */
	gate = atomic_load_explicit(call->visit.gate, memory_order_acquire);
	call->visit.generation = gate_generation(gate);
	return name_is(call->ni, name, kind, call->visit.generation);
}

/* After a visit that could not begin: prepares the thread, so that the next one can (PTL_OK), or
 * says why there is none. */
int call_prepare(uint32_t name, enum name_kind kind);

/* A visit to what a handle of this kind may name; false: there is none, call_prepare() may help.
 * Inline, because each call makes it with a kind that is known. Nothing gets a pointer to *call,
 * which may stay in registers. */
static ALWAYS_INLINE bool call_begins(struct call *call, uint32_t name, enum name_kind kind)
{
	call->ni = &nis[name_ni(name)];
	call->ranked = name_ni(name) & NI_RANKED;
	/* Acquire: pairs with the release in ni_publish(). */
	call->number = atomic_load_explicit(&call->ni->number, memory_order_acquire);
	return name_is_sound(name, kind) && call->number != 0 &&
	       front_visit_object(&portals4, &call->visit, call->number - 1,
		       name_index(call->ni, name, kind), name_handle_kind(kind));
}

/* Visits what a handle of this kind names. PTL_OK, PTL_NO_INIT or PTL_ARG_INVALID: then there is no
 * visit. */
static ALWAYS_INLINE int call_enter(struct call *call, uint32_t name, enum name_kind kind)
{
	while (__builtin_expect(!call_begins(call, name, kind), 0)) {
		int code = call_prepare(name, kind);

		if (code != PTL_OK)
			return code;
	}
	if (call_confirm(call, name, kind))
		return PTL_OK;
	return call_leave(call, PTL_ARG_INVALID);
}

/* The host's handle of an object of the NI that is visited; 0: the handle is bad. */
uint64_t call_object(const struct call *call, uint32_t name, enum name_kind kind);

/* What a result of the engine means. */
int code_of(enum answer answer);

/* Carries out a command to the object that is visited, as often as it is answered PENDING. */
enum answer call_until(const struct call *call, struct command *command);

/* --- commands that may wait for a counter (trigger.c) */

/* The counter that a command waits for, and the sum that it must reach. */
struct due {
	ptl_handle_ct_t counter;
	ptl_size_t threshold;
};
/* Keeps a command of so many lines of the NI that is visited. OK, ARG_INVALID: the counter is bad,
 * NO_SPACE: too many wait already. */
int call_keep(const struct call *call, const struct long_command *command, unsigned lines,
	const struct due *due);

/* --- waits (wait.c) */

/* A wait for queues or counters of one NI, and its result. */
struct wait {
	const uint32_t *names; /* handles */
	const ptl_size_t *tests;
	unsigned count;
	enum name_kind kind; /* NAME_QUEUE; NAME_COUNTER, which have tests */
	void *event;         /* gets the event, or the counts */
	unsigned *which;     /* gets the index of its queue or counter in names */
	/* Takes what is waited for from the living object at an index of names, whose handle this
	 * is at the host. Returns the code of the call, or `nothing`. */
	int (*take)(const struct wait *wait, unsigned index, uint64_t handle);
	int nothing; /* the code of a wait that times out */
	/* wait_run()'s. */
	struct call call;
	unsigned first; /* index that is looked at first */
	unsigned found;
	uint32_t aborts; /* when the wait began */
	int code;
};
/* Waits for so many ns, UINT64_MAX: for ever; looks at the objects in turn. Returns the code of the
 * call. */
int wait_run(struct wait *wait, uint64_t timeout);

#define TIMEOUT_OF(ms) ((ms) == PTL_TIME_FOREVER ? UINT64_MAX : (uint64_t)(ms)*UINT64_C(1000000))

/* --- memory (memory.c) */

/* Where an MD's or an entry's memory is, as the caller says it. */
struct extent {
	uint64_t start;
	uint64_t length;
	struct map_vector *vector;
};
/* With PTL_IOVEC the pieces are copied. OK, ARG_INVALID, NO_SPACE. */
int extent_make(
	const struct ni *ni, void *start, ptl_size_t length, bool pieces, struct extent *extent);
/* A region, whose index is the caller's, gets its memory. */
void extent_place(const struct call *call, uint32_t index, const struct extent *extent);

#endif
