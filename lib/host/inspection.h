/* SPDX-License-Identifier: BSD-3-Clause */
/* inspection.h - the topics that can be looked at in an interface, as a front end's table lists
 * them and telemetry offers them. */
#ifndef HOST_INSPECTION_H
#define HOST_INSPECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/core.h>
#include <base/report.h>
#include <host/front.h>

struct interface;

/* Of a list: where a page begins, and how many items it may have. */
struct page {
	uint32_t first;
	uint32_t count;
};

struct topic {
	const char *name;
	const char *alias; /* NULL: none */
	const char *help;
	bool paged;
	/* Writes members of an object that is open. The library's lock is held, and the interface
	 * is open. */
	void (*tell)(struct interface *interface, struct page page, struct report *report);
};

/* An option of regions, as a front end names it. */
struct option_word {
	uint32_t option; /* REGION_... */
	const char *name;
};

/* What a front end calls the engine's objects. */
struct words {
	const char *entry; /* a handle of one */
	const char *region;
	const char *queue;
	const char *entries; /* how many */
	const char *regions;
	const char *queues;
	const struct option_word *options; /* up to one without a name */
	/* The lists of a Portal of a space with tiers; NULL: Portals have one, without a name. */
	const char *const *tiers;
	/* The number by which programs know what the host's handle names; NULL: the handle. */
	uint64_t (*name)(uint64_t handle);
};

extern const struct option_word option_words[] CORE_API(option_words); /* of both Portals */

/* NULL: the front end has none of that name. */
const struct topic *inspection_topic(const struct front *front, const char *name);

/* Writes what there is to tell of a topic and the interface of a handle as JSON, cut off when there
 * is no room; *length: of the whole, without its final 0. OK; GONE: the handle is none; FAILED,
 * after an error line: there is no such topic. Any thread. */
enum answer inspection_write(const struct front *front, uint64_t handle, const char *name,
	struct page page, char *text, size_t size, size_t *length) CORE_API(inspection_write);

/* For topics. Of any interface: */
void tell_port(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_port);
void tell_ni(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_ni);
void tell_poll(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_poll);
void tell_queues(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_queues);
void tell_peers(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_peers); /* paged */
void tell_node(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_node); /* paged */
void tell_drops(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_drops);
void tell_stats(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_stats);
void tell_config(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_config);
/* clang-format off */
/* In a front end's table, the topics of any interface: before and behind its own. */
#define TOPICS_OF_ALL                                                                              \
	{"port", NULL, "the device, its address, link, rings, buffers and counters", false,        \
		tell_port},                                                                        \
	{"ni", NULL, "the interface: its ids, limits and what of them is in use", false,           \
		tell_ni},                                                                          \
	{"poll", NULL, "the thread that polls the port: how busy it is", false, tell_poll},        \
	{"queues", NULL, "how many commands, operations and frames wait", false, tell_queues}
#define TOPICS_OF_ALL_BEHIND                                                                       \
	{"peers", NULL, "other processes: address, round trip time, window, losses", true,         \
		tell_peers},                                                                       \
	{"node", NULL, "processes of this machine: what passes between them and this", true,       \
		tell_node},                                                                        \
	{"drops", NULL, "what was dropped, by reason", false, tell_drops},                         \
	{"stats", NULL, "all counters", false, tell_stats},                                        \
	{"config", NULL, "all settings with their values", false, tell_config}
/* clang-format on */
/* Of the engine's objects, in the front end's words; paged: */
void tell_portals(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_portals);
void tell_entries(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_entries);
void tell_regions(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_regions);
void tell_event_queues(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_event_queues);
/* Of a space with tiers: */
void tell_tiers(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_tiers);
void tell_event_counters(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_event_counters);
void tell_triggers(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_triggers);
void tell_access(struct interface *interface, struct page page, struct report *report)
	CORE_API(tell_access);

#endif
