/* SPDX-License-Identifier: BSD-3-Clause */
/* line.h - a UDP socket of the kernel, and what the kernel can do for it: options that it does not
 * know, or that a container's seccomp profile refuses, are done without. */
#ifndef PMD_GLUE_LINE_H
#define PMD_GLUE_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include <pmd-glue/nodes.h>

#define LINE_QUOTE 64u /* bytes of a datagram that came back: a transport header */

struct line {
	int socket;
	int level;     /* of options of its version of IP */
	bool segments; /* several datagrams are sent as one message: UDP_SEGMENT */
	bool joins;    /* and received as one: UDP_GRO */
	bool news;     /* datagrams that did not arrive are reported: IP_RECVERR, IPV6_RECVERR */
	bool marks;    /* marks of congestion are reported: IP_RECVTOS, IPV6_RECVTCLASS */
	uint32_t room; /* bytes of the kernel's memory for what has not been received */
};

/* A socket of AF_INET, or of AF_INET6, which hears nothing of IPv4. Returns false with errno. */
bool line_open(struct line *line, sa_family_t family);
/* Gives it an address and a UDP port of its own. Returns false with errno: EADDRINUSE if another
 * socket has it. */
bool line_bind(const struct line *line, const union udp_name *name, socklen_t size);
void line_close(struct line *line);

/* A datagram of this socket's that did not arrive. */
struct line_news {
	int error;         /* ECONNREFUSED: nobody has the port that it was for */
	union udp_name to; /* where it was sent */
	uint32_t bytes;    /* of the datagram that came back */
	uint8_t quote[LINE_QUOTE];
};
/* Takes the next one. While there are some, the socket counts as readable, and calls fail. Returns
 * false if there is none. */
bool line_hear(const struct line *line, struct line_news *news);

#endif
