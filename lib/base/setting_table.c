/* SPDX-License-Identifier: BSD-3-Clause */
/* setting_table.c - the table of settings: a row for each, with its text for the manual. */
#include <base/setting_table.h>

#include <base/clock.h>
#include <base/handle.h>
#include <base/log.h>
#include <base/port.h>

#define X(constant, name, what) name ", "
#define MODULE_NAMES            LOG_MODULES(X) /* "dpdk, port, ", as one text */

#define NID_MAX          (UINT32_MAX - 1) /* the last one means any */
#define CPU_MAX          4095
#define VLAN_MAX         4094
#define PEER_TIMEOUT_MIN (10 * MILLISECOND) /* ten times the least retransmission timeout */
#define PEER_TIMEOUT_MAX (86400 * SECOND)
#define PEERS_MAX        (UINT64_C(1) << 24)
#define EVENT_MEMORY_MIN (64 * KIBIBYTE)
#define EVENT_MEMORY_MAX (1024 * GIBIBYTE)

const struct setting_row setting_table[SETTING_COUNT] = {
	[SETTING_IFACE_NAME] =
		{
			.description = {"PTL_IFACE_NAME", "node",
				"The port of each interface, separated by ';'. node or "
				"node:NAME: the processes of this machine. udp, udp:INTERFACE "
				"or udp:ADDRESS: UDP sockets, which need no privilege. The name"
				" of a kernel interface, such as eth1. A PCI address: a card. "
				"loop:NAME: interfaces of this process. Or any DPDK device "
				"string. If no node can be used, a process without this setting"
				" reaches only itself, after a warning."},
			.trust = TRUST_INTERFACE,
			.type = TYPE_TEXT,
			.list = true,
		},
	[SETTING_NID] =
		{
			.description = {"PTL_NID", "",
				"The node id of each interface, a number or four numbers with "
				"dots, separated by ';'. If it is empty, the device or PTL_IP "
				"supplies it."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_NODE,
			.list = true,
			.min = 0,
			.max = NID_MAX,
			.remedy = "set it to a node id such as 1",
		},
	[SETTING_PROGRESS] =
		{
			.description = {"PTL_PROGRESS", "auto",
				"How messages progress. core: by a thread of the library; "
				"inline: during the program's own Portals calls; both: during "
				"these calls, and by a thread that takes over while the program"
				" makes no calls; auto: both on a node, on UDP sockets, on a "
				"kernel interface and through posternd, unless PTL_POLL or "
				"PTL_POLL_CORE is set, and core otherwise."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_CHOICE,
			.choices = {"auto", "core", "inline", "both"},
			.remedy = "set it to core, inline or both",
		},
	[SETTING_POLL] =
		{
			.description = {"PTL_POLL", "adaptive",
				"How the library's thread waits. busy: it never sleeps; "
				"adaptive: it spins while frames arrive at short intervals, "
				"then sleeps; interrupt: it sleeps as soon as there is nothing "
				"to do, until the device wakes it."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_CHOICE,
			.choices = {"busy", "adaptive", "interrupt"},
			.remedy = "set it to busy, adaptive or interrupt",
		},
	[SETTING_POLL_CORE] =
		{
			.description = {"PTL_POLL_CORE", "",
				"The CPU for the library's thread of each interface, separated "
				"by ';'. If it is empty, the system chooses."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_NUMBER,
			.list = true,
			.min = 0,
			.max = CPU_MAX,
			.remedy = "set it to the number of a CPU such as 1",
		},
	[SETTING_MTU] =
		{
			.description = {"PTL_MTU", "",
				"The largest frame of each interface, in bytes after the "
				"Ethernet header, separated by ';'. If it is empty, the device "
				"supplies it. All processes of a node need the same value."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_NUMBER,
			.list = true,
			.min = PORT_MTU_MIN,
			.max = PORT_MTU_MAX,
			.remedy = "set it to a number of bytes such as 1500",
		},
	[SETTING_ENCAP] =
		{
			.description = {"PTL_ENCAP", "ethernet",
				"The encapsulation of messages: ethernet, or udp for UDP/IPv4, "
				"which routers forward and which needs PTL_IP."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_CHOICE,
			.choices = {"ethernet", "udp"},
			.remedy = "set it to ethernet or udp",
		},
	[SETTING_VLAN] =
		{
			.description = {"PTL_VLAN", "",
				"The VLAN of each interface, separated by ';'. The interface's "
				"frames carry the tag (802.1Q) of this VLAN. If it is empty, "
				"frames have no tag."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_NUMBER,
			.list = true,
			.min = 1,
			.max = VLAN_MAX,
			.remedy = "set it to the number of a VLAN such as 100",
		},
	[SETTING_IP] =
		{
			.description = {"PTL_IP", "",
				"With PTL_ENCAP=udp, the IPv4 address of each interface, which is "
				"its node id, and the length of its subnet's prefix, separated by "
				"';'."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_SUBNET,
			.list = true,
			.remedy = "set it to the interface's own address and prefix such as "
				  "192.168.1.5/24",
		},
	[SETTING_GATEWAY] =
		{
			.description = {"PTL_GATEWAY", "",
				"With PTL_ENCAP=udp, the router to nodes in other subnets, for "
				"each "
				"interface, separated by ';'."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_ADDRESS,
			.list = true,
			.remedy = "set it to the router's address such as 192.168.1.1",
		},
	[SETTING_UDP_PORT] =
		{
			.description = {"PTL_UDP_PORT", "34997",
				"With PTL_ENCAP=udp, the UDP port of all processes; the same on "
				"all "
				"nodes."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_NUMBER,
			.min = 1,
			.max = UINT16_MAX,
			.remedy = "set it to a number such as 34997",
		},
	[SETTING_UDP_PORTS] =
		{
			.description = {"PTL_UDP_PORTS", "20480-21503",
				"With PTL_IFACE_NAME=udp, the range of UDP ports that processes"
				" use; the same on all hosts. Firewalls must let these ports "
				"pass."},
			.trust = TRUST_PORTS,
			.type = TYPE_RANGE,
			.remedy = "set it to a range such as 20480-21503",
		},
	[SETTING_HOSTS] =
		{
			.description = {"PTL_HOSTS", "",
				"With PTL_IFACE_NAME=udp, the file that says which node is at "
				"which IPv6 address, lines such as \"7 fd00::7\"; the same on all "
				"hosts. Messages then travel over IPv6, and hosts that are not in "
				"it are not heard."},
			.trust = TRUST_FILE,
			.type = TYPE_TEXT,
		},
	[SETTING_PEER_TIMEOUT] =
		{
			.description = {"PTL_PEER_TIMEOUT", "10s",
				"How long a peer may be silent before it is considered dead and"
				" operations to it fail. The end of a process is noticed at "
				"once on a node, after a second behind posternd, and after 0.1 "
				"s if the process has just closed its interface."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_DURATION,
			.min = PEER_TIMEOUT_MIN,
			.max = PEER_TIMEOUT_MAX,
			.remedy = "set it to a length of time such as 10s or 500ms",
		},
	[SETTING_PEERS_MAX] =
		{
			.description = {"PTL_PEERS_MAX", "131072",
				"The largest number of peers that one interface keeps state of "
				"at a time."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_NUMBER,
			.min = 1,
			.max = PEERS_MAX,
			.remedy = "set it to a number such as 131072",
		},
	[SETTING_LIST_MAX] =
		{
			.description = {"PTL_LIST_MAX", "1048576",
				"The largest number of entries of one match list."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_NUMBER,
			.min = 1,
			.max = HANDLE_INDEX_MAX,
			.remedy = "set it to a number such as 1048576",
		},
	[SETTING_EVENT_MEMORY] =
		{
			.description = {"PTL_EVENT_MEMORY", "256M",
				"Memory for all event queues of one interface. Only the part "
				"that is used is taken from the system."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_SIZE,
			.min = EVENT_MEMORY_MIN,
			.max = EVENT_MEMORY_MAX,
			.remedy = "set it to a size such as 256M",
		},
	[SETTING_CHECKSUM] =
		{
			.description = {"PTL_CHECKSUM", "auto",
				"The part of a frame that its checksum covers. header: the "
				"headers; full: all of it; auto: full only if the device does "
				"not protect frames itself."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_CHOICE,
			.choices = {"auto", "header", "full"},
			.remedy = "set it to auto, header or full",
		},
	[SETTING_FAULT] =
		{
			.description = {"PTL_FAULT", "",
				"Faults to inject on each interface, separated by ';', such as "
				"drop=0.01,dup=0.001,seed=7."},
			.type = TYPE_TEXT,
			.list = true,
		},
	[SETTING_CAPTURE] =
		{
			.description = {"PTL_CAPTURE", "",
				"The pcapng file for the frames of each interface, separated by"
				" ';'. %p in it is replaced by the process id, %i by the "
				"interface's number. An existing file must belong to this user."},
			.type = TYPE_TEXT,
			.list = true,
		},
	[SETTING_CAPTURE_SNAPLEN] =
		{
			.description = {"PTL_CAPTURE_SNAPLEN", "0",
				"The number of bytes of each frame that a capture keeps; 0 "
				"keeps all."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_NUMBER,
			.min = 0,
			.max = UINT32_MAX,
			.remedy = "set it to a number of bytes such as 128",
		},
	[SETTING_TELEMETRY] =
		{
			.description = {"PTL_TELEMETRY", "on",
				"Whether the process answers dpdk-telemetry.py and postern-top, on "
				"a socket that only its own user can open: on or off."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_CHOICE,
			.choices = {"on", "off"},
			.remedy = "set it to on or off",
		},
	[SETTING_SHARE] =
		{
			.description = {"PTL_SHARE", "",
				"A name by which DPDK's secondary processes, such as "
				"dpdk-dumpcap --file-prefix=NAME, join this process. Needs "
				"hugepages and a hugetlbfs."},
			.type = TYPE_TEXT,
		},
	[SETTING_EAL_ARGS] =
		{
			.description = {"PTL_EAL_ARGS", "",
				"Words to add to the arguments that start DPDK's EAL."},
			.type = TYPE_TEXT,
		},
	[SETTING_DEBUG] =
		{
			.description = {"PTL_DEBUG", "",
				"Modules whose debug messages go to standard error, whatever "
				"PTL_LOG_LEVEL says, separated by ',': " MODULE_NAMES "all."},
			.trust = TRUST_HARMLESS,
			.type = TYPE_MODULES,
			.remedy = "there are " MODULE_NAMES "and all",
		},
	[SETTING_LOG_LEVEL] =
		{
			.description = {"PTL_LOG_LEVEL", "warning",
				"The least important messages that are written to standard "
				"error: error, warning, info or debug. More important ones are "
				"written, too."},
			/* in the order of enum log_level */
			.trust = TRUST_HARMLESS,
			.type = TYPE_CHOICE,
			.choices = {"error", "warning", "info", "debug"},
			.numbered = true,
			.remedy = "set it to error, warning, info or debug",
		},
};
