/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h - a few transports on the simulator's network (tests/sim/star.h) in one thread, under a
 * clock that only moves when nothing else can.
 *
 * Every node sends messages whose header says who sent it, its place in the order, and where its
 * data lies in one pattern that all share; so a receiver can check every byte and the order without
 * being told.
 */
#ifndef TESTS_UNIT_NETWORK_H
#define TESTS_UNIT_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <base/port.h>
#include <transport/statistics.h>
#include <transport/transport.h>

#define NETWORK_NODES   64
#define NETWORK_PATTERN (4u << 20)
/* Of a standard network. */
#define NETWORK_FRAME 1514 /* bytes */
#define NETWORK_MBUFS 20000

struct faults {
	double loss;
	double duplicate;
	double reorder; /* delayed by up to reorder_by */
	double corrupt;
	uint64_t delay;      /* ns */
	uint64_t reorder_by; /* ns */
	double rate;         /* bytes per ns of each link; 0: infinite */
	uint64_t stall;      /* ns that a node stalls now and then; 0: never */
	/* ns that a reading of the clock may be behind one before: another CPU's */
	uint64_t behind;
};

struct node {
	struct port port;
	struct network *network;
	struct transport *transport;
	struct transport_counters counters;
	struct process self;
	uint32_t incarnation;
	unsigned index;
	struct rte_mbuf **queue; /* frames that arrived: a ring of queue_size */
	uint64_t *arrived;       /* and when */
	uint32_t queue_size;
	uint32_t head;
	uint32_t tail;
	uint64_t stalled_until;
	bool silent;     /* the port does not say since when a frame has waited */
	unsigned accept; /* frames the port takes at once; 0: any number */
	bool full;       /* the port takes none */
	bool garbles;    /* sends what is behind the first segment of a frame wrong */
	bool dead;
	bool cut;

	/* the model */
	uint64_t sent[NETWORK_NODES];      /* messages to each node in this life */
	uint64_t next[NETWORK_NODES];      /* expected from each node's present life */
	uint32_t next_life[NETWORK_NODES]; /* that life */
	uint64_t end_next[NETWORK_NODES];  /* no message in several frames before it will end */
	uint64_t lost_ok;                  /* order may have holes: something failed */
	uint64_t done;
	uint64_t done_before; /* of these: before the last message began here */
	uint64_t missing;     /* messages whose memory had gone */
	uint64_t failed[8];
	uint64_t begun;
	uint64_t ended;
	uint64_t ended_badly;
	uint64_t bytes;
	uint64_t dropped_full;
	unsigned pings_ended;
	unsigned names_ended;    /* questions for names */
	unsigned duplicates;     /* times the user would have been told */
	uint8_t duplicate[6];    /* the address of the last */
	unsigned strangers;      /* times that he would have been told of another version, */
	struct process stranger; /* of this process last, */
	unsigned stranger_version;
	uint64_t limit; /* bytes that it takes of a message; 0: all */
	bool discard;   /* takes no data */
	bool stop;      /* and says so */
};

struct network {
	uint64_t now;
	uint64_t random;
	struct clock clock;
	struct faults faults;
	struct node nodes[NETWORK_NODES];
	unsigned count;
	struct simulated *simulated; /* the wire */
	bool delivered;              /* a frame, since the clock moved */
	uint8_t *pattern;
	struct rte_mempool *pool;
	/* the memory of half of all messages, at either end, is in random pieces */
	bool scattered;
	struct transport_options options;
	uint64_t frames;
	/* sees every frame when it is sent, and returns false if the frame is lost */
	bool (*filter)(struct network *network, unsigned from, unsigned to, const uint8_t *bytes);
	uint64_t filtered;
	/* What ports say of a node's process; NULL: they know nothing. */
	bool (*absent)(const struct network *network, unsigned index);
};

struct network *network_create(unsigned nodes, uint64_t seed, uint32_t frame_size, unsigned mbufs);
/* The usual one, which says what its seed is, and the seed that TEST_SEED sets, or the first. */
struct network *network_standard(unsigned nodes, uint64_t seed);
/* The usual one of three nodes, whose numbers nobody can guess. Nodes 0 and 1 have begun, in
 * NETWORK_LIFE. */
#define NETWORK_LIFE 5
struct network *network_guarded(void);
/* The same, and these two know each other. */
struct network *network_acquainted(void);
/* Do frames travel in UDP? Then questions do not go to all. */
bool network_is_udp(void);
uint64_t network_seed(void);
void network_destroy(struct network *network); /* checks that no mbuf is lost */
uint64_t network_random(struct network *network);
/* An Ethernet header without a tag. */
void ethernet_write(uint8_t *bytes, const uint8_t *to, const uint8_t *from);
/* Every node begins its first life. */
void network_start(struct network *network);
void node_start(struct network *network, unsigned index, uint32_t incarnation);
/* As if killed: no farewell. Its frames in the network live on. */
void node_kill(struct network *network, unsigned index);
void network_send(struct network *network, unsigned from, unsigned to, uint64_t length);
/* The same from memory that may go before the message has ended; it is filled. */
void network_send_from(
	struct network *network, unsigned from, unsigned to, uint8_t *memory, uint64_t length);
/* Asks for an echo; the ping stays the caller's. A timeout of 0 is a second. */
void network_ping(struct network *network, unsigned from, unsigned to, struct ping *ping);
/* One turn of every node, then the clock moves on to what comes next. */
void network_step(struct network *network);
/* Runs until all is settled or the simulated time is over. Returns true if all is settled. */
bool network_run(struct network *network, uint64_t ns);
/* For ns, whatever happens. */
void network_pass(struct network *network, uint64_t ns);
bool network_settled(const struct network *network);
/* What a node remembers of another one; all is 0 if it remembers nothing. */
const struct peer *network_peer(const struct network *network, unsigned from, unsigned to);
/* Checks that all that was sent arrived, and nothing twice. */
void network_check(const struct network *network);
/* Checks that there was each fault that was to be likely. */
void network_check_faults(const struct network *network);
/* Puts bytes into a node's queue as if they had come from the wire. */
void network_inject(struct network *network, unsigned to, const void *bytes, uint32_t length);
/* The same in two pieces, the first of which has so many bytes. */
void network_inject_pieces(
	struct network *network, unsigned to, const void *bytes, uint32_t length, uint32_t first);

#endif
