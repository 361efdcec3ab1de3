/* SPDX-License-Identifier: BSD-3-Clause */
/* port.c - finds the kind of port from an interface's name. Called under the front end's lock. */
#include <string.h>

#include <rte_mempool.h>

#include <base/log.h>
#include <base/settings.h>
#include <pmd-glue/capture.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/kinds.h>

#define NID_WILDCARD UINT32_MAX

static bool pid_is_taken, pid_is_tried;

void kinds_pid_taken(void)
{
	pid_is_taken = true;
}

bool glue_pid_is_taken(void)
{
	return pid_is_taken;
}

void glue_pid_try(bool tries)
{
	pid_is_tried = tries;
}

bool kinds_pid_is_tried(void)
{
	return pid_is_tried;
}

/* The text after a prefix, or NULL if the name does not begin with it. */
static const char *name_after(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);
	return strncmp(name, prefix, length) == 0 ? name + length : NULL;
}

uint32_t kinds_frame_size(const char *name, uint32_t mtu)
{
	if (mtu == 0)
		return FRAME_DEFAULT;
	if (mtu > FRAME_MAX - FRAME_HEADER || mtu + FRAME_HEADER < FRAME_MIN) {
		log_error("%s: frames of %u bytes are impossible: set PTL_MTU to a number from %u "
			  "to %u",
			name, mtu, FRAME_MIN - FRAME_HEADER, FRAME_MAX - FRAME_HEADER);
		return 0;
	}
	return mtu + FRAME_HEADER;
}

/* Without PTL_IFACE_NAME a process meets the others of its machine, where that is possible. */
static struct port *port_open_usual(unsigned interface, uint32_t mtu, uint32_t pid)
{
	struct port *port;

	if (setting_is(SETTING_ENCAP, "udp")) {
		log_warning("PTL_ENCAP=udp without PTL_IFACE_NAME: this process reaches itself "
			    "only; set PTL_IFACE_NAME to a network interface, or unset PTL_ENCAP");
		return loop_open(NULL, mtu);
	}
	port = node_open("", mtu, interface, pid, true);
	if (port || node_lack()[0] == '\0')
		return port;
	log_warning("no node can be used, so this process reaches itself only: %s", node_lack());
	return loop_open(NULL, mtu);
}

/* A card or a kernel interface that is this process's own; *found: the name is one's. */
static struct port *card_open(const char *name, uint32_t mtu, uint16_t vlan, bool *found)
{
	const char *rest;

	*found = true;
	if ((rest = name_after(name, "xdp:")))
		return eal_need() == 0 ? xdp_open(rest, mtu) : NULL;
	if (eal_is_pci(name))
		return eal_need() == 0 ? device_open_pci(name, mtu, vlan) : NULL;
	if (kernel_has(name))
		return packet_open(name, mtu);
	if (strncmp(name, "net_", 4) == 0 || strncmp(name, "eth_", 4) == 0 || strchr(name, ','))
		return eal_need() == 0 ? device_open_string(name, mtu, vlan) : NULL;
	*found = false;
	return NULL;
}

static struct port *card_missing(const char *name)
{
	log_error("PTL_IFACE_NAME: there is no interface %s here: ip link lists the kernel's, "
		  "postern-info all that can be used",
		name);
	return NULL;
}

static struct port *port_open(unsigned interface, const char *name, uint32_t mtu, uint32_t pid)
{
	uint16_t vlan = (uint16_t)setting_number_item(SETTING_VLAN, interface, 0);
	struct port *port;
	const char *rest;
	bool absent, found;

	if (!name[0])
		return loop_open(NULL, mtu);
	if ((rest = name_after(name, "loop:")))
		return loop_open(rest, mtu);
	if (strcmp(name, "node") == 0)
		return setting_is_given(SETTING_IFACE_NAME)
			       ? node_open("", mtu, interface, pid, false)
			       : port_open_usual(interface, mtu, pid);
	if ((rest = name_after(name, "node:")))
		return node_open(rest, mtu, interface, pid, false);
	if ((rest = name_after(name, "memif:"))) {
		log_error("PTL_IFACE_NAME=%s: processes of one machine meet on a node: write node, "
			  "or node:NAME; for the memif of another program write DPDK's device "
			  "string, such as net_memif0,role=client,socket=%s",
			name, rest[0] ? rest : "/run/x");
		return NULL;
	}
	if (strcmp(name, "udp") == 0 || name_after(name, "udp:"))
		return uplink_open_udp(name[3] == ':' ? name + 4 : "", mtu, interface, pid);
	port = uplink_open_client(name, mtu, interface, pid, &absent);
	if (port || !absent)
		return port;
	if (kernel_has(name))
		return uplink_open(name, mtu, interface, pid);
	port = card_open(name, mtu, vlan, &found);
	return found ? port : card_missing(name);
}

/* The user wants a polling thread that sleeps until this device signals. */
static void port_check_calls(const struct port *port)
{
	if (port->calls || !port->external || !setting_is(SETTING_POLL, "interrupt") ||
		!setting_is(SETTING_PROGRESS, "core"))
		return;
	log_warning(
		"%s: with PTL_POLL=interrupt this device is looked at twice a millisecond, because "
		"it has no receive interrupt: set PTL_POLL=adaptive, or use another device",
		port->name);
}

/* What lies around any port. */
static struct port *port_wrap(struct port *port, unsigned interface)
{
	const char *faults = setting_item(SETTING_FAULT, interface);

	if (capture_begin(port, interface) != 0) {
		port->operations->close(port);
		return NULL;
	}
	log_debug(LOG_PORT,
		"%s: frames of %u bytes, %u buffers, address "
		"%02x:%02x:%02x:%02x:%02x:%02x",
		port->name, port->frame_size, port->pool->size, port->address[0], port->address[1],
		port->address[2], port->address[3], port->address[4], port->address[5]);
	return faults[0] ? fault_open(port, interface, faults) : port;
}

struct port *glue_port_open(unsigned interface, const char *name, uint32_t mtu, uint32_t pid)
{
	char primary[KERNEL_NAME_ROOM];
	struct port *port;

	pid_is_taken = false;
	if (glue_start() != 0)
		return NULL;
	name = kernel_primary(name, primary, sizeof(primary));
	port = port_open(interface, name, mtu, pid);
	if (!port)
		return NULL;
	port_check_calls(port);
	return port_wrap(port, interface);
}

struct port *glue_card_open(const char *name, uint32_t mtu)
{
	uint16_t vlan = (uint16_t)setting_number_item(SETTING_VLAN, 0, 0);
	char primary[KERNEL_NAME_ROOM];
	struct port *port;
	bool found;

	if (glue_start() != 0)
		return NULL;
	name = kernel_primary(name, primary, sizeof(primary));
	port = card_open(name, mtu, vlan, &found);
	if (!found)
		port = card_missing(name);
	return port ? port_wrap(port, 0) : NULL;
}

uint32_t glue_port_nid(const struct port *port, unsigned interface)
{
	static const uint8_t none[6];
	const uint8_t *address = port->address;
	uint32_t nid;
	if (port->named)
		return port->nid;
	/* Rings have no address, which would make each of them node 0. */
	if (!port->external || memcmp(address, none, sizeof(none)) == 0)
		return interface + 1;
	nid = (uint32_t)address[2] << 24 | (uint32_t)address[3] << 16 | (uint32_t)address[4] << 8 |
	      address[5];
	return nid == NID_WILDCARD ? NID_WILDCARD - 1 : nid;
}
