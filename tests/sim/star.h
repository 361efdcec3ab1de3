/* SPDX-License-Identifier: BSD-3-Clause */
/* star.h - the simulated network of the simulator and of unit tests: a star of links around one
 * switch.
 *
 *     node --- link up: rate, delay, faults ---> switch: a queue per node, marks, tail drop
 *          --- link down: rate, delay ---> node
 *
 * I1. All receivers of a frame share its parcel; whatever changes a frame on its way changes a
 *     copy, unless nobody else holds the parcel. A parcel has bytes of its own, or refers to a
 *     frame of its sender's, which must not change until the parcel is gone or star_flatten()
 *     copies it.
 * I2. Between two nodes frames keep their order unless a fault reorders them.
 * I3. The clock knows of each link down only the first frame that will arrive: a broadcast to
 *     thousands is one parcel and an entry of 16 bytes for each of them.
 */
#ifndef SIM_STAR_H
#define SIM_STAR_H

#include <stdbool.h>
#include <stdint.h>
#include <sim/clock.h>
#include <sim/prng.h>

#define STAR_ADDRESS_BYTES 6
#define STAR_OVERHEAD      24 /* bytes on the wire beside a frame: preamble, FCS, gap */
#define STAR_FRAME_MIN     60

/* All probabilities are per frame. */
struct star_settings {
	uint64_t rate;        /* bit/s of each link; 0: infinite */
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
	double repeat;          /* that the adversary repeats an earlier one with it, */
	double withhold;        /* or holds it back, */
	uint64_t repeat_time;   /* ns, for so long at most */
	uint32_t corrupt_bytes; /* one bit of the first ones changes, nothing else; 0: anything */
	bool directed; /* the switch knows who is asked for, and spares the others the question */
	uint64_t fault_until; /* ns: after that nothing is lost by chance */
};

#define STAR_BY_ADDRESS UINT32_MAX

struct parcel {
	uint32_t holders;
	uint32_t from;
	uint32_t to; /* or STAR_BY_ADDRESS: the bytes say it */
	uint32_t length;
	void *frame;    /* the sender's; NULL: the bytes are the parcel's own */
	uint8_t *bytes; /* of a sender's frame: at least the outer headers */
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

struct star_link {
	uint64_t rate;    /* bit/s; 0: infinite */
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

#define STAR_COUNTERS(X)                                                                           \
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
	X(marked)                                                                                  \
	X(forged)                                                                                  \
	X(repeated)                                                                                \
	X(withheld)

struct star_counters {
#define X(name) uint64_t name;
	STAR_COUNTERS(X)
#undef X
};

struct star {
	struct star_settings settings;
	struct star_counters counters;
	struct sim_clock *clock;
	struct prng prng;
	uint32_t nodes;
	struct star_link *links;
	struct archive *archive; /* the adversary's; NULL: none yet */
	uint64_t in_transit;     /* frames, each as often as it is on its way */
	uint32_t queue_peak;     /* bytes, the longest queue seen */
	uint32_t (*find)(
		void *context, uint32_t nid, uint32_t pid); /* node of a process, for `directed` */
	void (*deliver)(void *context, uint32_t node,
		struct parcel *parcel); /* takes its hold on the parcel over */
	/* Of parcels that refer to frames. */
	void (*frame_copy)(void *frame, uint8_t *bytes);
	void (*frame_free)(void *frame);
	void *context;
};

void star_init(struct star *star, const struct star_settings *settings, uint32_t nodes,
	struct sim_clock *clock, uint64_t seed);
void star_free(struct star *star);
/* life: the device may be another one in each life of the node. */
void star_address(uint32_t node, uint32_t life, uint8_t *address);
/* A parcel for a frame of this length, held once; its bytes are the caller's to fill. */
struct parcel *star_parcel(struct star *star, uint32_t from, uint32_t length);
/* A parcel that refers to a frame, which it takes over; `bytes`: where the frame begins. */
struct parcel *star_wrap(struct star *star, uint32_t from, uint32_t to, void *frame, uint8_t *bytes,
	uint32_t length);
/* All parcels on their way get bytes of their own. */
void star_flatten(struct star *star);
/* Gives up a hold; the last one frees the parcel. */
void star_release(struct star *star, struct parcel *parcel);
/* Lets a parcel, whose hold it takes over, come to the switch at `when`. */
void star_pass(struct star *star, struct parcel *parcel, uint64_t when);
/* Sends a parcel, whose hold it takes over; returns when the node's device has sent it (ns). */
uint64_t star_send(struct star *star, struct parcel *parcel);
/* Nothing passes to or from the node until then. */
void star_cut(struct star *star, uint32_t node, uint64_t until);

#endif
