/* SPDX-License-Identifier: BSD-3-Clause */
/* client_state.h - what a client is made of: client.c meets servers and waits for events,
 * measures.c measures.
 *
 * K1. Every wait looks at every event through client_event(), which alone handles ticks, failures
 *     and control messages. So a wait ends with what it waits for, or with the program.
 * K2. A measure starts when all its servers are READY, and the next one after they have STOPPED,
 *     when nothing of the last is on its way.
 * K3. The session with server i has the number session + i, and all that comes from it says so.
 * K4. While a line takes the messages, events of the control session are looked at once in
 *     CONTROL_LOOKS looks at the line, after a rest, and in the waits outside the measure. A look
 *     that has found messages counts as several, because it takes as long as several in vain.
 */
#ifndef PERF_CLIENT_STATE_H
#define PERF_CLIENT_STATE_H

#include "bare.h"
#include "client.h"
#include "shape.h"
#include "stream.h"

struct peer {
	struct stream stream;
	struct landing landing;
	struct server *server;
	enum control_kind heard; /* its last answer */
	bool met;                /* it has answered */
	unsigned hellos;         /* said and not yet acknowledged */
	struct control refusal;
	uint64_t address;         /* of its port */
	struct line_address line; /* of its end of a line */
};

struct client {
	struct endpoint *endpoint;
	const struct options *options;
	uint16_t session;
	unsigned count; /* peers that were met */
	unsigned used;  /* of these, in this measure */
	struct peer peers[PEERS_MAX];
	struct shape shape; /* of the match list for the first peer's messages */

	struct trial trial;
	struct effort effort;
	uint32_t window;
	uint64_t arrived;  /* messages that have landed, or replies */
	uint64_t credited; /* windows, of all peers */
	uint64_t cost;     /* of a look at the clock, ns */
	unsigned ticks;
	unsigned looks; /* at the line, since one at events */
	void (*progress)(void *context, double part);
	void *context;
	double part; /* done of this measure */
	struct histogram times;
	struct histogram others; /* of an overlap: messages alone */
	struct bare bare;
};

/* Waits for one event and takes note of it. */
void client_event(struct client *client);
/* Inside a measure: the same, or a look at the line that takes the messages (K4). */
void client_turn(struct client *client);

/* Messages on their way at a time. */
uint32_t client_window(const struct client *client, const struct trial *trial);

/* Measures what the peers are prepared for. */
void measure_run(struct client *client, struct result *result);

#endif
