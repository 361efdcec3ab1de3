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

/* Writes members of an object that is open. The library's lock is held, and the interface is open.
 */
typedef void topic_tell(struct interface *interface, struct page page, struct report *report);

struct topic {
	const char *name;
	const char *alias; /* NULL: none */
	const char *help;
	bool paged;
	topic_tell *tell;
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
/* Of front ends on lib/messages. */
extern const struct words message_words CORE_API(message_words);

/* NULL: the front end has none of that name. */
const struct topic *inspection_topic(const struct front *front, const char *name);

/* Writes what there is to tell of a topic and the interface of a handle as JSON, cut off when there
 * is no room; *length: of the whole, without its final 0. OK; GONE: the handle is none; FAILED,
 * after an error line: there is no such topic. Any thread. */
enum answer inspection_write(const struct front *front, uint64_t handle, const char *name,
	struct page page, char *text, size_t size, size_t *length) CORE_API(inspection_write);

/* For topics. Of any interface: */
topic_tell tell_port CORE_API(tell_port);
topic_tell tell_ni CORE_API(tell_ni);
topic_tell tell_poll CORE_API(tell_poll);
topic_tell tell_queues CORE_API(tell_queues);
topic_tell tell_peers CORE_API(tell_peers); /* paged */
topic_tell tell_node CORE_API(tell_node);   /* paged */
topic_tell tell_drops CORE_API(tell_drops);
topic_tell tell_stats CORE_API(tell_stats);
topic_tell tell_config CORE_API(tell_config);
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
topic_tell tell_portals CORE_API(tell_portals);
topic_tell tell_entries CORE_API(tell_entries);
topic_tell tell_regions CORE_API(tell_regions);
topic_tell tell_event_queues CORE_API(tell_event_queues);
topic_tell tell_access CORE_API(tell_access);
/* Of a space with tiers: */
topic_tell tell_tiers CORE_API(tell_tiers);
topic_tell tell_event_counters CORE_API(tell_event_counters);
topic_tell tell_triggers CORE_API(tell_triggers);

#endif
