/* SPDX-License-Identifier: BSD-3-Clause */
/* connected.h - a second socket at the UDP port of a line: it is connected to the peer that is sent
 * most, so that the kernel looks up no route for datagrams to this peer, nor for those from it.
 *
 * I1. Both sockets have the line's address and UDP port. A third one can have them only while the
 *     second is being bound, for some microseconds, and only if it is of the same user.
 * I2. The kernel gives datagrams of the peer to the connected socket, and all others to the line.
 *     Those that came while the peer was chosen lie in either, so both are read as if neither were
 *     connected.
 * I3. Another peer is chosen without a new socket, so that no datagram is lost.
 */
#ifndef PMD_GLUE_CONNECTED_H
#define PMD_GLUE_CONNECTED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <pmd-glue/line.h>

#define CONNECTED_ADDRESS 6u   /* bytes of what stands for a peer (candidate.h) */
#define CONNECTED_LEAD    256u /* messages */

struct connected {
	struct line line; /* no socket: there is none */
	int set;          /* readable if one of both is */
	bool refused;     /* the system does not let there be one */
	uint8_t peer[CONNECTED_ADDRESS];
	/* the peer that was sent so many messages more than all others together, since that was
	 * none */
	uint8_t leader[CONNECTED_ADDRESS];
	unsigned lead;
};

void connected_init(struct connected *connected);
/* Connects to the leader, whose name is given. Does nothing more once the system has refused. */
void connected_move(struct connected *connected, struct line *line, const union udp_name *to,
	socklen_t size, const char *name);
void connected_close(struct connected *connected);

static inline bool connected_exists(const struct connected *connected)
{
	return connected->line.socket >= 0;
}

static inline bool connected_to(const struct connected *connected, const uint8_t *address)
{
	return connected_exists(connected) &&
	       memcmp(connected->peer, address, CONNECTED_ADDRESS) == 0;
}

/* A message goes to a peer. Returns true if it should be the connected one, and is not. */
static inline bool connected_count(struct connected *connected, const uint8_t *address)
{
	if (memcmp(connected->leader, address, CONNECTED_ADDRESS) == 0) {
		if (connected->lead < CONNECTED_LEAD && ++connected->lead < CONNECTED_LEAD)
			return false;
		return !connected->refused && !connected_to(connected, address);
	}
	if (connected->lead > 0)
		connected->lead--;
	else
		memcpy(connected->leader, address, CONNECTED_ADDRESS);
	return false;
}

#endif
