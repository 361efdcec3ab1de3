/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.h - every PTL_ environment variable, in one table that also prints the help.
 *
 * Read once, by settings_load() when the library is opened. Values that do not parse and names
 * that do not exist are complaints of one sentence; the former fail the load. Settings of
 * interfaces are lists separated by ';': the n-th item is the n-th interface's, the last one serves
 * those that follow.
 */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/core.h>

enum setting {
	/* text list: the port of each interface; "" is the private loopback */
	SETTING_IFACE_NAME,
	/* node list: node id, a number or dotted; "" takes it from the device */
	SETTING_NID,
	SETTING_PROGRESS, /* auto | core | inline | both */
	/* busy | adaptive | interrupt: when does the poll core give its CPU away? */
	SETTING_POLL,
	/* number list: CPU to pin the poll core to; "" leaves it to the scheduler */
	SETTING_POLL_CORE,
	/* number list: bytes after the Ethernet header; "" takes what the device has */
	SETTING_MTU,
	SETTING_ENCAP, /* ethernet | udp */
	SETTING_VLAN,  /* number list: 802.1Q id of each interface; "" is no tag */
	/* subnet list: own IPv4 address and the length of its prefix, "10.0.0.5/24" */
	SETTING_IP,
	/* address list: the router for nodes beyond that prefix; "" is none */
	SETTING_GATEWAY,
	SETTING_UDP_PORT,        /* number: UDP port of all processes */
	SETTING_UDP_PORTS,       /* range: UDP ports of processes on UDP sockets, "20480-21503" */
	SETTING_HOSTS,           /* text: file of nodes and their IPv6 addresses; "" is none */
	SETTING_PEER_TIMEOUT,    /* duration: silence after which a peer is dead, "10s" */
	SETTING_PEERS_MAX,       /* number: peers per interface */
	SETTING_LIST_MAX,        /* number: entries in one match list */
	SETTING_EVENT_MEMORY,    /* size: memory for all event queues of an interface, "256M" */
	SETTING_CHECKSUM,        /* auto | header | full */
	SETTING_FAULT,           /* text list: faults to inject, "drop=0.01,dup=0.001,..." */
	SETTING_CAPTURE,         /* text list: file that frames are captured to; "" is none */
	SETTING_CAPTURE_SNAPLEN, /* number: bytes of each frame that a capture keeps; 0 is all */
	SETTING_TELEMETRY,       /* on | off: answer dpdk-telemetry.py and postern-top */
	/* text: DPDK's name for this process, by which secondary processes join it; "" is none */
	SETTING_SHARE,
	SETTING_EAL_ARGS,  /* text: added to the arguments of rte_eal_init */
	SETTING_DEBUG,     /* modules: whose debug messages are shown */
	SETTING_LOG_LEVEL, /* error | warning | info | debug */
	SETTING_COUNT
};

struct setting_description {
	const char *name;     /* "PTL_NID" */
	const char *fallback; /* as a user would write it */
	const char *help;     /* one sentence */
};

/* The setting of that name, SETTING_COUNT: there is none. */
enum setting setting_find(const char *name);
const struct setting_description *setting_describe(enum setting setting) CORE_API(setting_describe);

/* Reads the environment. Returns 0, or -1 after an error line that says what is wrong with which
 * variable and what it may be. Warns of unknown PTL_ names. Calling it again reads again. Not
 * thread-safe: the caller holds the library's lock. */
int settings_load(void);

/* Gives a setting, of a list its item n, another value until the next load; what it has been stays
 * readable for threads that have its text. 0, or -1 after an error line, and nothing has changed.
 * Not thread-safe, as settings_load(). */
int setting_change(enum setting setting, unsigned n, const char *text) CORE_API(setting_change);
/* The same for the whole value. A program that has this module beside the library's gives it the
 * values of that one. */
int setting_replace(enum setting setting, const char *text);

/* The value as text, as set or by default; item n of a list (interface n). Never NULL. Valid until
 * the next load. */
const char *setting_text(enum setting setting) CORE_API(setting_text);
const char *setting_item(enum setting setting, unsigned n);
unsigned setting_items(enum setting setting)
	CORE_API(setting_items); /* number of items, at least 1 */

/* Parsed values. Numbers accept decimal and 0x; sizes K, M, G; durations ns, us, ms, s (the result
 * is in ns). An address is its four bytes as a number.
 * settings_load() has checked them, so these cannot fail; a number list's empty item gives
 * fallback. */
uint64_t setting_number(enum setting setting) CORE_API(setting_number);
uint64_t setting_number_item(enum setting setting, unsigned n, uint64_t fallback);
/* An address and the length of its prefix; false when the item is empty. */
bool setting_subnet_item(enum setting setting, unsigned n, uint32_t *address, uint8_t *prefix);
/* The first and the last UDP port of a range. */
void setting_range(enum setting setting, uint16_t *first, uint16_t *last) CORE_API(setting_range);
/* Are the node ids of interface n, and of those that it meets, IPv4 addresses? */
bool setting_nodes_are_addresses(unsigned n) CORE_API(setting_nodes_are_addresses);
bool setting_is(enum setting setting, const char *choice);
/* Does the environment, or a later change, give it a value? */
bool setting_is_given(enum setting setting) CORE_API(setting_is_given);
/* Copies item n of its value in the environment now, or else of its fallback, unchecked and without
 * a word: for a caller that looks before settings_load(). Returns false if there are fewer items,
 * or if size, in bytes, is too small. */
bool setting_environment(enum setting setting, unsigned n, char *item, size_t size)
	CORE_API(setting_environment);

#endif
