/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.h - remote memory: what mr.c, rma.c and atomic.c share, and what the rest of the provider
 * calls.
 *
 * An endpoint with FI_RMA or FI_ATOMIC has a space of its own beside that of messages. Its Portals
 * have an entry for each region of the domain that peers may read or write, which matches the
 * region's key.
 *
 * M1. A request that no region of its key holds as a whole finds no entry: its initiator hears so,
 *     and nothing is moved.
 * M2. Requests bring the incarnation that the address has. Another life of the process refuses
 *     them, so no greeting is needed before (F5).
 * M3. Writes with remote data go to a Portal of their own, whose entries tell of each. It is
 *     disabled when the program has not heard of too many: then it refuses, and the initiator
 *     repeats. No event is lost, and no other request waits. What no region takes meets a last
 *     entry there, which allows nothing: else it would disable the Portal.
 * M4. What peers do to a region is counted by the poll core, in the region's registration with the
 *     space, and comes into counters with the next call that makes progress: so no access waits for
 *     the program, and none is lost.
 * M5. What a target refuses, because it lacks memory or by M3, is repeated. A target that lacks
 *     memory refuses all that follows from the same process (engine/tiers.c, T9), and here what is
 *     posted later waits behind it: so requests to a process are carried out in the order of their
 *     posts. An endpoint that promises orders lets nothing follow a write with remote data or an
 *     atomic read before that has ended, as these may be repeated for other reasons.
 */
#ifndef FI_REMOTE_H
#define FI_REMOTE_H

#include <engine/amo.h>
#include <engine/command.h>
#include <engine/tally.h>
#include <host/events.h>

#include <fi/state.h>

enum { PORTAL_PLAIN, PORTAL_TELLS, PORTALS };
enum { QUEUE_OWN, QUEUE_TOLD, QUEUES };

/* A registered region. */
struct mr {
	struct fid_mr fid;
	struct domain *domain;
	struct link link;          /* of the domain's with the same hash */
	struct link registrations; /* in spaces of endpoints */
	uint64_t start, length, access;
	struct map_vector *vector;      /* NULL: one piece */
	struct counter *reads, *writes; /* of peers, in any endpoint with FI_RMA_EVENT; or NULL */
};

struct handle {
	uint32_t index, generation;
};

/* A region that an endpoint's space has. */
struct registration {
	struct tally tally; /* first; of an endpoint with FI_RMA_EVENT */
	uint64_t successes[TALLY_ACCESSES], failures[TALLY_ACCESSES]; /* that counters have */
	struct link of_mr, of_remote;
	struct mr *mr;
	struct remote *remote;
	struct handle entries[PORTALS];
	unsigned count;
};

/* A read, a write or an atomic operation under way. */
struct movement {
	struct link link;
	struct move move;
	struct rma_line line;
	uint8_t given[COPIED_MAX]; /* data that goes with the call */
	unsigned given_bytes;
	void *context;
	uint64_t flags; /* of its completion */
	uint8_t count;  /* COUNT_... */
	bool completes, quiet;
	bool reads; /* an atomic read, which has not become a load */
	bool waits; /* M5: it is not under way; and was refused */
	bool refused;
	bool alone;                /* M5: what follows it waits for its end */
	struct handle region;      /* of several pieces; index 0: none */
	struct map_vector *vector; /* the same */
	void *copy;
	struct movement *next; /* free */
	struct movement *made; /* of all, the one before */
};

struct remote {
	struct endpoint *endpoint;
	uint64_t handle; /* of the space's interface */
	struct visit visit;
	uint64_t queue_handles[QUEUES];
	struct queue_view queues[QUEUES];
	struct handle region; /* all memory */
	struct handle silent; /* the same, without events */
	bool disabled;        /* M3 */
	struct link registrations;
	struct link moving;     /* in the order of their posts */
	uint32_t waiting, lone; /* M5: of them */
	uint64_t due;           /* when those that wait are looked at again */
	struct movement *free, *made;
};

/* Its space is visited until visit_leave(). Returns false if the front end is closed. */
static inline bool remote_enter(struct remote *remote)
{
	return front_visit(&fi_front, &remote->visit, remote->handle, HANDLE_INTERFACE, -1) == 0;
}

/* --- mr.c */

extern struct fi_ops_mr mr_ops;
void regions_init(struct domain *domain);
/* FI_MAP_RAW_MR, FI_UNMAP_KEY. */
int regions_control(struct fid *fid, int command, void *argument);
/* A space gets the regions of the domain, or loses them. */
bool regions_register(struct remote *remote);
void regions_deregister(struct remote *remote);
/* M4. */
void tallies_run(struct remote *remote);

/* --- rma.c */

extern struct fi_ops_rma rma_ops;
/* F1. Begins an operation: fill() says the rest, while the space is visited, and returns 0 or a
 * negative error. The domain's lock is held. */
ssize_t remote_begin(struct endpoint *endpoint, fi_addr_t peer, uint64_t flags, bool quiet,
	int (*fill)(struct remote *remote, struct movement *movement, const void *asked),
	const void *asked);
/* Its local memory has several pieces. 0 or a negative error. */
int movement_scatter(
	struct remote *remote, struct movement *movement, const struct iovec *iov, size_t count);
enum answer remote_open(struct endpoint *endpoint);
void remote_close(struct endpoint *endpoint);
void remote_progress(struct remote *remote);
/* Is there something for remote_progress()? Without the lock, too. */
bool remote_has_events(const struct remote *remote);
/* Is remote_progress() to be called soon, whatever happens? */
bool remote_is_late(const struct remote *remote);
/* How many operations have not ended. */
uint64_t remote_pending(const struct remote *remote);
/* Is one to this process under way? */
bool remote_owes(const struct remote *remote, struct process to);
/* Is an operation with this context under way? */
bool remote_knows(const struct remote *remote, const void *context);
/* As messages_watch() and messages_lower(), of one of its queues. */
int remote_watch(struct remote *remote, unsigned queue);
void remote_lower(struct remote *remote);

/* --- atomic.c */

extern struct fi_ops_atomic atomic_ops;
int atomic_query(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
	struct fi_atomic_attr *attr, uint64_t flags);

#endif
