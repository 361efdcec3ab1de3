/* SPDX-License-Identifier: BSD-3-Clause */
/* bare.h - frames bounced over a port with nothing of Postern above it: the best that the same port
 * can do on the same cores.
 *
 * Two ends, the client's and the server's, play what the measure of the same name plays with
 * messages. A message is as many frames as it needs, of the largest size that both ports carry;
 * the receiver copies the payload once to its destination, as any stack must, and the sender does
 * not touch it. At most a window of frames is on its way; the receiver credits each half of
 * it.
 *
 * A bare frame, behind Ethernet and the interface's VLAN tag; numbers in the order of the host:
 *
 *      0          1          2                     4
 *     +----------+----------+---------------------+
 *     |   kind   |  measure |       session       |   0
 *     +----------+----------+---------------------+
 *     |                 sequence                  |   4   of the frame; CREDIT: the next expected
 *     +-------------------------------------------+
 *     |                  number                   |   8   of the message; CREDIT: frames that
 *     |                                           |       arrived; HELLO, WELCOME: window, frames
 *     +-------------------------------------------+
 *     |                  index                    |  12   of the frame in the message;
 *     |                                           |       HELLO, WELCOME: payload of a frame, bytes
 *     +-------------------------------------------+
 *     |  payload; HELLO: size of messages, 8 bytes ...
 *
 * B1. Whatever arrives, nothing is written outside the landing memory, and an end that hears
 *     nothing for TIMEOUT gives up. Frames may get lost: lost frames are not counted, and
 *     do not stop a measure.
 * B2. One thread drives an end.
 */
#ifndef PERF_BARE_H
#define PERF_BARE_H

#include <wire/encapsulation.h>

#include "effort.h"
#include "result.h"

#define BARE_ADDRESS 6
#define BARE_BURST   32u

struct port;
struct rte_mbuf;

enum bare_state { BARE_MEET, BARE_WARM, BARE_RUN, BARE_END, BARE_DONE, BARE_LOST };

struct bare {
	struct port *port;
	struct encapsulation link;
	uint8_t to[BARE_ADDRESS];
	uint8_t *memory;
	uint64_t memory_size;
	bool client;
	uint16_t session;
	enum measure measure;
	struct effort effort;
	uint64_t size;

	enum bare_state state;
	uint64_t quiet;   /* since when nothing has come, ns; 0: something just did */
	uint64_t said;    /* when this end last spoke because nothing came */
	unsigned idle;    /* turns without a frame */
	unsigned owed;    /* control frames to send, a bit each */
	uint32_t payload; /* of a full frame, bytes */
	uint32_t window;  /* frames */

	/* sending */
	uint64_t out_size; /* of a message */
	uint32_t out_frames;
	bool streams;     /* sends messages as the window allows; otherwise when one has come */
	uint32_t due;     /* frames of single messages yet to be sent */
	uint32_t sent;    /* frames: the next sequence */
	uint32_t passed;  /* frames before it have arrived or are lost */
	uint32_t index;   /* of the next frame in its message */
	uint32_t number;  /* of the message */
	uint64_t arrived; /* frames that the peer says it has */
	struct rte_mbuf *pending[BARE_BURST]; /* written, but not taken by the port */
	unsigned pending_at;
	unsigned pending_count;

	/* receiving */
	uint64_t in_size; /* of a message */
	uint32_t in_frames;
	uint32_t expected; /* sequence */
	uint64_t received; /* frames */
	uint64_t credited; /* of these */

	/* the client's measure */
	uint32_t messages; /* of a window */
	struct course course;
	uint64_t cost;  /* of a look at the clock */
	uint64_t start; /* of the message on its way */
	uint64_t base;  /* frames that had arrived when the course began */
	struct result result;
	struct histogram times;
};

/* What an end is made of. A server learns `to`, measure, size and window from its client. */
struct bare_options {
	struct port *port;
	const struct encapsulation_options *encapsulation;
	uint64_t to;  /* the peer's MAC address, as lend_address() gives it */
	void *memory; /* where payloads go */
	uint64_t memory_size;
	bool client;
	uint16_t session;
	enum measure measure;
	uint64_t size;   /* of messages, at most memory_size */
	uint32_t window; /* messages */
	struct effort effort;
};

void bare_open(struct bare *bare, const struct bare_options *options);

/* Takes one turn. Returns false when this end is DONE or LOST. */
bool bare_turn(struct bare *bare);
/* The part of the client's measure that is done, 0 to 1. */
double bare_part(const struct bare *bare);
/* Gives back what it holds. */
void bare_close(struct bare *bare);

#endif
