/* SPDX-License-Identifier: BSD-3-Clause */
/* line_rig.h - sockets for tests, of the loopback interface: of IPv4, at the address HERE, and then
 * of IPv6. */
#ifndef TESTS_LINE_RIG_H
#define TESTS_LINE_RIG_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include <pmd-glue/line.h>

static sa_family_t family = AF_INET; /* of all sockets */

static inline socklen_t here(uint16_t udp_port, union udp_name *name)
{
	if (family == AF_INET6) {
		name->ip6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
			.sin6_port = htons(udp_port),
			.sin6_addr = IN6ADDR_LOOPBACK_INIT};
		return sizeof(name->ip6);
	}
	name->ip4 = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(udp_port), .sin_addr.s_addr = htonl(HERE)};
	return sizeof(name->ip4);
}

/* 0: some UDP port. */
static inline bool line_take(const struct line *line, uint16_t udp_port)
{
	union udp_name name;
	socklen_t size = here(udp_port, &name);

	return line_bind(line, &name, size);
}

/* Opens a socket with some UDP port. */
static inline bool line_make(struct line *line)
{
	return line_open(line, family) && line_take(line, 0);
}

/* From now on sockets are of IPv6. Returns false if this host has none, which it says. */
static inline bool family_is_ip6(void)
{
	struct line line;

	family = AF_INET6;
	if (!line_make(&line)) {
		puts("IPv6 is left out: this host has none");
		return false;
	}
	line_close(&line);
	return true;
}

#endif
