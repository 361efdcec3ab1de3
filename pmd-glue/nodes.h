/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes.h - which node is at which address, for ports on UDP sockets (udp.c).
 *
 * With IPv4 a node id is the address. An IPv6 address does not fit into one, so the file PTL_HOSTS
 * says which node is where; all hosts have the same:
 *
 *     # node  address
 *     1       fd00::1
 *     2       fd00::2
 *
 * I1. A node has one address, and an address has one node. A file that says otherwise, or that has
 *     a wrong line, is refused as a whole.
 * I2. An address means the same host on all hosts and has one spelling in 16 bytes: none of a link
 *     alone, of a group, or of IPv4.
 */
#ifndef PMD_GLUE_NODES_H
#define PMD_GLUE_NODES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* The address and the UDP port of a socket. */
union udp_name {
	struct sockaddr any;
	struct sockaddr_in ip4;
	struct sockaddr_in6 ip6;
};

struct node_address {
	uint32_t node;
	struct in6_addr address;
};

struct nodes {
	sa_family_t family; /* AF_INET: a node id is the address, and the rest is not used */
	uint32_t count;
	struct node_address *by_node;    /* sorted */
	struct node_address *by_address; /* the same ones */
};

/* Is there a file? */
bool nodes_are_listed(void);
/* Reads the file, for AF_INET6. Returns false, with nothing to free, after an error line. */
bool nodes_load(struct nodes *nodes);
void nodes_free(struct nodes *nodes);

/* Why an address can be no node's (I2), to follow the address in a sentence; NULL: it can. */
const char *nodes_address_fault(const struct in6_addr *address);
/* The name of a node's socket; returns its size, 0: nobody knows where the node is. */
socklen_t nodes_name(
	const struct nodes *nodes, uint32_t node, uint16_t udp_port, union udp_name *name);
/* Which node has this address? Returns false if none has it. */
bool nodes_find(const struct nodes *nodes, const union udp_name *name, uint32_t *node);

static inline uint16_t udp_name_port(const union udp_name *name)
{
	return ntohs(name->any.sa_family == AF_INET6 ? name->ip6.sin6_port : name->ip4.sin_port);
}

/* Its address as text, in `text`, which has INET6_ADDRSTRLEN bytes or more. */
const char *udp_name_text(const union udp_name *name, char *text, socklen_t size);

#endif
