/* SPDX-License-Identifier: BSD-3-Clause */
/* world.h - what a script of fuzz_receive.c acts in: a port whose network is the script's, two
 * other processes, and an application on an engine. A step reads the bytes that it needs from the
 * script, and does one thing.
 *
 *     world.c      the port, and what may leave through it (F2, F3, F5)
 *     fellows.c    steps of the network: what the other processes send, right or wrong
 *     steps.c      steps of the application, and of time
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include <string.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <base/handle.h>
#include <wire/arp.h>
#include <wire/encapsulation.h>
#include <wire/frame.h>

#include "../unit/rig.h"
#include "fuzz.h"
#include "script.h"

#define FRAME_SIZE  1024
#define QUEUED_MAX  64
#define FELLOWS     2
#define KEPT_FRAMES 8
#define BUFFERS     16
#define HANDLES     24
#define OWN_LIFE    1000
#define PINGS       16
#define MEMORY      512 /* bytes of the space with tiers */

/* Another process, as far as it must be known to make frames of it. */
struct fellow {
	struct process process;
	struct encapsulation encapsulation;
	uint32_t life;
	uint16_t stream;
	uint32_t psn; /* of its next frame */
	uint32_t first;
	uint32_t message; /* number of its next message */
	uint64_t length;  /* data bytes of its latest message */
	/* what it has seen of us */
	uint16_t own_stream;
	uint32_t own_next;          /* after the last frame of that stream */
	uint64_t operation, handle; /* of our last get */
	uint64_t put_operation, put_handle;
	uint64_t store, load; /* names of our last calls */
	uint32_t question;    /* of our last ping */
	uint32_t asked[2];    /* the number of our last question */
	bool owes;            /* an answer to it */
	bool mute;            /* but gives none */
};

struct world {
	struct rig *rig;
	struct port port;
	struct fellow fellows[FELLOWS];
	struct rte_mbuf *queue[QUEUED_MAX]; /* frames to receive */
	unsigned queued;
	uint8_t accept; /* frames that the port takes before it is full for once; 0: no bound */
	uint8_t kept[KEPT_FRAMES][FRAME_SIZE];
	uint32_t kept_length[KEPT_FRAMES];
	unsigned kept_count;
	void *buffers[BUFFERS];
	unsigned buffer_count;
	uint64_t entries[HANDLES], regions[HANDLES];
	unsigned entry_count, region_count;
	uint64_t queue_handle;
	unsigned events[EVENT_KINDS];
	uint32_t pings[PINGS]; /* reply slots */
	unsigned ping_count;
	/* the space with tiers */
	struct rig *space; /* NULL: there is none */
	uint64_t tier_queue;
	uint64_t stores, loads; /* descriptors */
	uint64_t sent, replied; /* their counters */
	uint64_t begun[2];      /* stores, loads */
	uint64_t triggered[2];  /* that may begin */
	uint64_t appended[HANDLES];
	unsigned appended_count;
	uint8_t *memory;
	struct process map[FELLOWS + 1];
};

extern const uint8_t own_address[FRAME_ADDRESS_BYTES];
extern const struct port_operations world_operations;
extern struct rte_mempool *pool;

/* --- world.c */

/* Takes the events of the space with tiers, and checks their fields. */
void world_tier_events_drain(struct world *world);
/* Counts the events of Portals 3. */
void world_events_drain(struct world *world);
/* Turns of the engine, after each of which fellows answer its questions. */
void world_turn(struct world *world);

/* --- fellows.c */

/* Bytes as they are. */
void step_raw(struct world *world, struct script *script);
/* An ARP message, as a fellow's by default. */
void step_arp(struct world *world, struct script *script);
/* One of the frames that were sent here comes back, perhaps changed in one byte. */
void step_echo(struct world *world, struct script *script);
/* Two of the frames that wait change places, or one of them is repeated, or lost. */
void step_network(struct world *world, struct script *script);
/* A frame of a fellow, right but for what the script says. */
void step_frame(struct world *world, struct script *script);
/* A fellow begins a life. */
void fellow_begin(struct fellow *fellow);
/* A fellow begins a new stream, or a new life, or answers no more, or again; or the network begins
 * to mark its frames, or ceases to. */
void step_fellow(struct world *world, struct script *script);

/* --- steps.c */

void step_attach(struct world *world, struct script *script);
void step_move(struct world *world, struct script *script);
/* The application of the space with tiers. */
void step_tiers(struct world *world, struct script *script);
/* Nobody waits for the answer until the end. */
void step_ping(struct world *world, struct script *script);
void step_unlink(struct world *world, struct script *script);
void step_time(struct world *world, struct script *script);

#endif
