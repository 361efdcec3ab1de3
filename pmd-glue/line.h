/* SPDX-License-Identifier: BSD-3-Clause */
/* line.h - a UDP socket of the kernel, and what the kernel can do for it: options and calls that it
 * does not know, or that a container's seccomp profile refuses, are done without, and told. */
#ifndef PMD_GLUE_LINE_H
#define PMD_GLUE_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/port.h>
#include <pmd-glue/nodes.h>

#define LINE_QUOTE 64u /* bytes of a datagram that came back: a transport header */

/* What a system may refuse: X(constant, name over IPv4, name over IPv6, effect). DPDK's telemetry
 * takes 127 bytes of an effect. */
#define LINE_LACKS(X)                                                                              \
	X(LINE_SEGMENT, "UDP_SEGMENT", "UDP_SEGMENT",                                              \
		"each frame is sent by itself, and large messages have a quarter to a half of "    \
		"the bandwidth")                                                                   \
	X(LINE_GRO, "UDP_GRO", "UDP_GRO",                                                          \
		"each frame is received by itself, and large messages have a half to three "       \
		"quarters of the bandwidth")                                                       \
	X(LINE_ERRORS, "IP_RECVERR", "IPV6_RECVERR",                                               \
		"a process that was killed is missed only after PTL_PEER_TIMEOUT, and "            \
		"postern-ping cannot tell that it has gone")                                       \
	X(LINE_MARKS, "IP_RECVTOS", "IPV6_RECVTCLASS",                                             \
		"marks of congestion are not seen, so a full network drops frames first")          \
	X(LINE_ECT, "IP_TOS", "IPV6_TCLASS",                                                       \
		"routers drop frames instead of marking them when they are congested")             \
	X(LINE_PATH, "IP_MTU_DISCOVER", "IPV6_MTU_DISCOVER",                                       \
		"the system's default decides whether long frames are sent in fragments")          \
	X(LINE_OVERFLOWS, "SO_RXQ_OVFL", "SO_RXQ_OVFL",                                            \
		"port_missed does not count the frames that find the socket full")                 \
	X(LINE_RECEIVE_ROOM, "SO_RCVBUF", "SO_RCVBUF",                                             \
		"the socket holds what net.core.rmem_default says, which many senders fill at "    \
		"once")                                                                            \
	X(LINE_SEND_ROOM, "SO_SNDBUF", "SO_SNDBUF",                                                \
		"the socket takes what net.core.wmem_default says, so senders wait earlier")       \
	X(LINE_SENDMMSG, "sendmmsg", "sendmmsg",                                                   \
		"each message is sent by a system call of its own")                                \
	X(LINE_RECVMMSG, "recvmmsg", "recvmmsg",                                                   \
		"each message is received by a system call of its own")                            \
	X(LINE_CONNECT, "connect", "connect",                                                      \
		"the kernel looks for a route for each message, which is a tenth of a send")

enum line_lack {
#define X(constant, four, six, effect) constant,
	LINE_LACKS(X)
#undef X
		LINE_LACK_COUNT
};

struct line {
	int socket;
	int level;      /* of options of its version of IP */
	bool segments;  /* several datagrams are sent as one message: UDP_SEGMENT */
	bool joins;     /* and received as one: UDP_GRO */
	bool errors;    /* datagrams that did not arrive are reported: IP_RECVERR, IPV6_RECVERR */
	bool marks;     /* marks of congestion are reported: IP_RECVTOS, IPV6_RECVTCLASS */
	uint32_t room;  /* bytes of the kernel's memory for what has not been received */
	uint32_t lacks; /* a bit for each enum line_lack */
};

/* A socket of AF_INET, or of AF_INET6, which hears nothing of IPv4. Returns false with errno. */
bool line_open(struct line *line, sa_family_t family);
/* Gives it an address and a UDP port of its own. Returns false with errno: EADDRINUSE if another
 * socket has it. */
bool line_bind(const struct line *line, const union udp_name *name, socklen_t size);
/* May other sockets of this user, which say so as well, have the same address and UDP port? Returns
 * false with errno. */
bool line_share(const struct line *line, bool yes);
void line_close(struct line *line);

static inline bool line_lacks(const struct line *line, enum line_lack lack)
{
	return (line->lacks >> lack & 1) != 0;
}
/* The system has turned out to refuse this. Tells the user, once; name: the port's. */
void line_lose(struct line *line, enum line_lack lack, const char *name);
/* Tells the user what the system refused when the socket was made. */
void line_tell(const struct line *line, const char *name);
/* Writes what the system refuses; returns how many, at most PORT_LACKS. */
unsigned line_describe(const struct line *line, struct port_lack *lacks);

/* A datagram of this socket's that did not arrive. */
struct line_error {
	int error;         /* ECONNREFUSED: nobody has the port that it was for */
	union udp_name to; /* where it was sent */
	uint32_t bytes;    /* of the datagram that came back */
	uint8_t quote[LINE_QUOTE];
};
/* Takes the next one. While there are some, the socket counts as readable, and calls fail. Returns
 * false if there is none. */
bool line_hear(const struct line *line, struct line_error *report);

#endif
