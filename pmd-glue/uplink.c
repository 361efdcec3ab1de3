/* SPDX-License-Identifier: BSD-3-Clause */
/* uplink.c - the port of a process on a network that others of this machine share: for frames that
 * leave the machine posternd (client.c) or a socket of its own (packet.c, udp.c), and the node
 * (node.c) of those processes that have the same network and the same user. Called under the front
 * end's lock.
 *
 * The node's directory is named after all that two processes must have in common to hear each other
 * on the interface: its name and network namespace, their node id, VLAN and UDP ports. Without the
 * directory the process has the socket alone, through which it hears the others as well; if the
 * process id is in use there, it has nothing.
 */
#include <ctype.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <unistd.h>

#include <base/log.h>
#include <base/settings.h>
#include <pmd-glue/client.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/kinds.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)
/* Process ids that a process which may have any tries, and how far they lie apart: further than the
 * system's own numbers of the processes of a host. */
#define PID_TRIES 16u
#define PID_STEP  (UINT32_C(1) << 23)

static uint64_t hash_add(uint64_t hash, uint64_t number)
{
	for (unsigned n = 0; n < sizeof(number); n++, number >>= 8)
		hash = (hash ^ (number & 0xff)) * HASH_PRIME;
	return hash;
}

/* The node id that this process will have there (lib/host/interface.c). */
static uint32_t uplink_nid(const struct port *port, unsigned number)
{
	uint32_t address = 0;
	uint8_t prefix;

	if (setting_is(SETTING_ENCAP, "udp"))
		return setting_subnet_item(SETTING_IP, number, &address, &prefix) ? address : 0;
	return (uint32_t)setting_number_item(SETTING_NID, number, glue_port_nid(port, number));
}

/* A name of a directory for an interface, which may have any name. */
static void place_name(char *name, size_t size, const char *interface, uint64_t hash)
{
	snprintf(name, size, "%.15s-%016" PRIx64, interface, hash);
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '-')
			*name = '_';
}

/* The node over an uplink, which is closed with it. Without a directory, the uplink alone.
 * NULL after an error line. */
static struct port *uplink_join(struct port *uplink, const char *name, uint32_t pid, uint64_t hash,
	uint32_t nid, unsigned number)
{
	char place[IF_NAMESIZE + sizeof("-0123456789abcdef")];
	struct port *port;

	hash = hash_add(hash, nid);
	hash = hash_add(hash, setting_number_item(SETTING_VLAN, number, 0));
	hash = hash_add(hash,
		setting_is(SETTING_ENCAP, "udp") ? setting_number(SETTING_UDP_PORT) | 1 << 16 : 0);
	place_name(place, sizeof(place), name, hash);
	port = node_open_over(uplink, place, nid, pid);
	if (port)
		return port;
	if (node_lack()[0] == '\0') {
		uplink->operations->close(uplink);
		return NULL;
	}
	log_info("%s: frames between processes of this machine go by the interface: %s", name,
		node_lack());
	return uplink;
}

struct port *uplink_open_client(
	const char *name, uint32_t mtu, unsigned number, uint32_t pid, bool *absent)
{
	struct port *client = client_port_open(name, mtu, number, pid, absent);

	return client ? uplink_join(client, name, client->pid, hash_add(HASH_START, 0), client->nid,
				number)
		      : NULL;
}

struct port *uplink_open(const char *interface, uint32_t mtu, unsigned number, uint32_t pid)
{
	struct port *socket = packet_open(interface, mtu);
	uint64_t hash = HASH_START;

	if (!socket)
		return NULL;
	hash = hash_add(hash, kernel_space());
	return uplink_join(socket, interface, pid, hash, uplink_nid(socket, number), number);
}

/* The port of a process id, and its node. NULL after an error line, or, if the process id is in use
 * and only tried, without one. */
static struct port *udp_join(
	const char *name, uint32_t mtu, unsigned number, uint32_t pid, bool first_only)
{
	struct port *socket = udp_open(name, mtu, number, pid, first_only);
	uint64_t hash = HASH_START;
	uint16_t first, last;

	if (!socket)
		return NULL;
	setting_range(SETTING_UDP_PORTS, &first, &last);
	hash = hash_add(hash, kernel_space());
	hash = hash_add(hash, (uint32_t)first << 16 | last);
	hash = hash_add(hash, !setting_nodes_are_addresses(number)); /* IPv6 */
	return uplink_join(socket, "udp", pid, hash, socket->nid, number);
}

struct port *uplink_open_udp(const char *name, uint32_t mtu, unsigned number, uint32_t pid)
{
	struct port *port = NULL;
	bool tried = kinds_pid_is_tried();

	if (pid != GLUE_PID_ANY)
		return udp_join(name, mtu, number, pid, false);
	pid = (uint32_t)getpid();
	glue_pid_try(true);
	for (unsigned n = 0; n < PID_TRIES && !port && (n == 0 || glue_pid_is_taken()); n++)
		port = udp_join(name, mtu, number, pid + n * PID_STEP, true);
	glue_pid_try(tried);
	return port || !glue_pid_is_taken() ? port : udp_join(name, mtu, number, pid, false);
}
