/* SPDX-License-Identifier: BSD-3-Clause */
/* line.h - a UDP socket of the kernel, and what the kernel can do for it: options that it does not
 * know, or that a container's seccomp profile refuses, are done without. */
#ifndef PMD_GLUE_LINE_H
#define PMD_GLUE_LINE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define LINE_QUOTE 64u /* bytes of a datagram that came back: a transport header */

struct line {
	int socket;
	bool segments; /* several datagrams are sent as one message: UDP_SEGMENT */
	bool joins;    /* and received as one: UDP_GRO */
	bool news;     /* datagrams that did not arrive are reported: IP_RECVERR */
	bool marks;    /* marks of congestion are reported: IP_RECVTOS */
	uint32_t room; /* bytes of the kernel's memory for what has not been received */
};

/* A socket on this address and a port of the kernel's choice yet to come; false with errno. */
bool line_open(struct line *line);
/* Gives it an address and a UDP port of its own. Returns false with errno: EADDRINUSE if another
 * socket has it. */
bool line_bind(const struct line *line, uint32_t address, uint16_t udp_port);
void line_close(struct line *line);

/* A datagram of this socket's that did not arrive. */
struct line_news {
	int error;             /* ECONNREFUSED: nobody has the port that it was for */
	struct sockaddr_in to; /* where it was sent */
	uint32_t bytes;        /* of the datagram that came back */
	uint8_t quote[LINE_QUOTE];
};
/* Takes the next one. While there are some, the socket counts as readable, and calls fail. Returns
 * false if there is none. */
bool line_hear(const struct line *line, struct line_news *news);

#endif
