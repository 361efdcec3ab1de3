/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h - the simulated network: a star of links around one switch.
 *
 *     node --- link up: rate, delay, faults ---> switch: a queue per node, marks, tail drop
 *          --- link down: rate, delay ---> node
 *
 * I1. A frame is copied into a parcel when it leaves a node and out of it when it arrives. All who
 * are sent the same frame share
 *     its parcel; whatever changes a frame on its way changes a copy, unless nobody else holds the
 *     parcel.
 * I2. Between two nodes frames keep their order unless a fault reorders them.
 * I3. The clock knows of each link down only the first frame that will arrive: a broadcast to
 * thousands is one parcel and an
 *     entry of 16 bytes for each of them.
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sim/clock.h>
#include <sim/prng.h>

#define NETWORK_ADDRESS_BYTES 6
#define NETWORK_OVERHEAD      24 /* bytes on the wire beside a frame: preamble, FCS, gap */
#define NETWORK_FRAME_MIN     60

/* All probabilities are per frame. */
struct network_settings {
	uint64_t rate;        /* bit/s of each link */
	uint64_t delay;       /* ns along each link */
	uint32_t queue_bytes; /* of the switch, per node; more is dropped */
	uint32_t mark_bytes;  /* IPv4 frames that meet a longer queue are marked */
	uint32_t frame_size;  /* bytes from the Ethernet header on */
	double drop;
	double burst; /* that a burst of losses begins with it */
	uint64_t
		/* ns that it lasts at most; by time, so that retransmissions outlive it */
		burst_time;
	double duplicate;
	double late;            /* of duplicates: to come much later */
	uint64_t late_time;     /* ns, at most */
	double slow;            /* of nodes: to have a link of a tenth of the rate */
	double reorder;         /* to be late by up to reorder_delay */
	uint64_t reorder_delay; /* ns */
	double corrupt;
	bool directed; /* the switch knows who is asked for, and spares the others the question */
	uint64_t fault_until; /* ns: after that nothing is lost by chance */
};

struct parcel {
	uint32_t holders;
	uint32_t from;
	uint32_t length;
	uint8_t bytes[];
};

struct arrival {
	uint64_t when; /* ns */
	struct parcel *parcel;
};

/* First in, first out. */
struct arrivals {
	struct arrival *ring;
	uint32_t head;
	uint32_t tail;
	uint32_t room; /* a power of two */
};

struct link {
	uint64_t rate;    /* bit/s */
	uint64_t up_free; /* when it has sent all that it was given */
	uint64_t down_free;
	struct arrivals down;
	uint64_t cut_until;
	uint64_t burst_until;
	/* What the scenario measures. */
	uint64_t down_first; /* when the first frame arrived */
	uint64_t down_last;
	uint64_t down_bytes; /* on the wire, overhead included */
};

#define NETWORK_COUNTERS(X)                                                                        \
	X(frames)                                                                                  \
	X(bytes)                                                                                   \
	X(dropped)                                                                                 \
	X(burst_dropped)                                                                           \
	X(cut_dropped)                                                                             \
	X(queue_dropped)                                                                           \
	X(unknown_dropped)                                                                         \
	X(duplicated)                                                                              \
	X(reordered)                                                                               \
	X(corrupted)                                                                               \
	X(marked)

struct network_counters {
#define X(name) uint64_t name;
	NETWORK_COUNTERS(X)
#undef X
};

struct network {
	struct network_settings settings;
	struct network_counters counters;
	struct sim_clock *clock;
	struct prng prng;
	uint32_t nodes;
	struct link *links;
	uint64_t in_transit; /* frames, each as often as it is on its way */
	uint32_t queue_peak; /* bytes, the longest queue seen */
	uint32_t (*find)(
		void *context, uint32_t nid, uint32_t pid); /* node of a process, for `directed` */
	void (*deliver)(void *context, uint32_t node,
		struct parcel *parcel); /* takes its hold on the parcel over */
	void *context;
};

void network_init(struct network *network, const struct network_settings *settings, uint32_t nodes,
	struct sim_clock *clock, uint64_t seed);
void network_free(struct network *network);
/* life: the device may be another one in each life of the node. */
void network_address(uint32_t node, uint32_t life, uint8_t *address);
/* A parcel for a frame of this length, held once; its bytes are the caller's to fill. */
struct parcel *network_parcel(struct network *network, uint32_t from, uint32_t length);
/* Gives up a hold; the last one frees the parcel. */
void network_release(struct network *network, struct parcel *parcel);
/* Sends a parcel, whose hold it takes over; returns when the node's device has sent it (ns). */
uint64_t network_send(struct network *network, struct parcel *parcel);
/* Nothing passes to or from the node until then. */
void network_cut(struct network *network, uint32_t node, uint64_t until);

#endif
