/* SPDX-License-Identifier: BSD-3-Clause */
/* node.h - one complete stack: front end, engine and transport over a simulated device.
 *
 * A node is a process with PTL_PROGRESS=inline whose library state (struct interface number 0,
 * and ENGINES_MAX if it has a further space) is laid aside while others run. It takes a turn when a
 * frame has arrived, when its own deadline has come, and when its program has called it.
 *
 * I1. Portals calls of a node are made between node_enter() and node_leave().
 * I2. A node is busy for the time that a turn takes; frames that come meanwhile wait in its receive
 * ring, and are missed
 *     when that is full.
 * I3. A device holds a frame until it has sent it; the sender may not write to it meanwhile. The
 * node checks that.
 * I4. An endpoint of MX is a node. Those of one process are in place together, and each call drives
 * all of them.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <portals.h>
#include <host/visitor.h>
#include <base/port.h>
#include <sim/simulation.h>

#define NODE_IPV4_BASE   0x0a000001
#define NODE_IPV4_PREFIX 8
#define NODE_PID_BASE    100

#define CLUSTER_BOARDS 2

struct node_settings {
	uint32_t processes_per_host; /* that share a node id */
	uint32_t endpoints;          /* of a process of MX; its neighbours in number */
	uint16_t receive_ring;       /* frames */
	uint16_t transmit_ring;
	uint32_t pool_frames; /* of the mempool; nodes share one when there are many */
	uint32_t pools;
	uint32_t queue_events; /* of its event queue */
	uint64_t turn;         /* ns that a turn takes, */
	uint64_t turn_frame;   /* and for each frame and command in it */
	uint64_t
		/* ns that it has its CPU for, on average, before it waits for it; 0: always */
		slice_run;
	uint64_t slice_wait;
	bool gathers;
	bool udp; /* PTL_ENCAP=udp; one process per host then */
	uint16_t vlan;
	bool moves;     /* each life has another address */
	bool wrap;      /* sequence numbers start near their wrap */
	bool addressed; /* hosts refuse frames for nodes that are not there (refusals.h) */
	ptl_ni_limits_t limits;
};

struct sent_frame {
	struct rte_mbuf *mbuf;
	uint64_t departs;
	uint64_t hash;
	bool sent;
};

/* Of one sender by a host. */
struct refused {
	uint32_t count;
	uint64_t since;
};

struct engine;

struct node {
	struct simulation *simulation;
	const struct node_settings *settings;
	uint32_t number;
	uint32_t slot; /* of the interfaces of its process, while it is up */
	bool up;
	bool closing;  /* PtlNIFini drives it: it takes no turns */
	uint32_t life; /* counts from 1 */
	ptl_process_id_t id;
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	struct interface interface; /* while another node's is in place */
	struct interface further;   /* the same */

	struct port port;
	struct port_counters port_counters;
	struct arrival *received; /* ring: frames that the stack has not taken */
	uint32_t received_head;
	uint32_t received_tail;
	struct sent_frame *sent; /* ring: frames that the device still holds */
	uint32_t sent_head;
	uint32_t sent_tail;
	bool silent;             /* it has crashed: nothing leaves it */
	struct refused *refused; /* by its host, for each node */
	uint32_t betrayed;       /* so many of its next frames are said to be refused */

	uint64_t turn_at; /* when the next turn is planned, UINT64_MAX: never */
	uint64_t busy_until;
	uint64_t stalled_until;
	bool writes;          /* its program writes to memory that it sends from */
	uint64_t events_seen; /* of the engine's count of logged events */
	uint64_t entropy;     /* what getrandom() gives it */

	bool troubled;              /* it was ever closed, crashed, or cut off for long */
	uint64_t trouble_ended;     /* ns; UINT64_MAX: it lasts */
	uint64_t crashed;           /* ns, when it crashed last; 0: never */
	void *program;              /* the workload's */
	struct tier_program *tiers; /* tiers.c; NULL: none */
};

/* EAL, mempools; once per process. */
void node_system_start(void);
/* Per run, before the first and after the last node. timeout: PTL_PEER_TIMEOUT, ns. */
/* mx: the nodes are endpoints of MX. */
void node_library_open(uint64_t timeout, bool full_checksum, uint64_t event_memory, bool mx);
void node_library_close(struct simulation *simulation, const struct node_settings *settings);

void node_init(struct node *node, struct simulation *simulation,
	const struct node_settings *settings, uint32_t number);
void node_free(struct node *node);

/* Begins a new life. */
void node_open(struct node *node);
/* Ends it: with PtlNIFini, or as by SIGKILL, without another frame. */
void node_close(struct node *node);
void node_crash(struct node *node);
/* It, and whatever else its process has, takes no turn until then. */
void node_stall(struct node *node, uint64_t until);

/* The node that is entered, and that of its process whose engine it is. */
struct node *node_current(void);
struct node *node_of(const struct engine *engine);
/* The nodes of its process: from the first one to before *end. */
struct node *node_process(const struct node *node, struct node **end);
void node_enter(struct node *node);
void node_leave(struct node *node);

/* Its program has made calls: plans the turn that they need. */
void node_plan(struct node *node);

/* A parcel for it, whose hold it takes over. */
void node_deliver(struct node *node, struct parcel *parcel);

struct segment;
const struct transport_counters *node_transport_counters(const struct node *node);
const struct engine_counters *node_engine_counters(const struct node *node);
struct engine *node_engine(const struct node *node);
uint64_t node_drops(const struct node *node);
bool node_settled(const struct node *node);

uint32_t node_find(void *context, uint32_t nid, uint32_t pid); /* context: the simulation */

#endif
