/* SPDX-License-Identifier: BSD-3-Clause */
/* front.c - Portals 3.2 as a front end: its words, PtlInit and PtlFini. */
#include <p3/interface.h>

#include <base/settings.h>
#include <host/inspection.h>
#include <p3/code.h>

static const struct option_word options[] = {
	{REGION_PUT, "put"},
	{REGION_GET, "get"},
	{REGION_REMOTE_OFFSET, "manage_remote"},
	{REGION_TRUNCATE, "truncate"},
	{REGION_NO_ACK, "ack_disable"},
	{0, NULL},
};

static const struct words words = {
	.entry = "me",
	.region = "md",
	.queue = "eq",
	.entries = "match_entries",
	.regions = "memory_descriptors",
	.queues = "event_queues",
	.options = options,
};

static const struct topic topics[] = {
	{"port", NULL, "the device, its address, link, rings, buffers and counters", false,
		tell_port},
	{"ni", NULL, "the interface: its ids, limits and what of them is in use", false, tell_ni},
	{"poll", NULL, "the thread that polls the port: how busy it is", false, tell_poll},
	{"queues", NULL, "how many commands, operations and frames wait", false, tell_queues},
	{"portals", "pt", "Portals with match entries, and the index of each list", true,
		tell_portals},
	{"me", NULL, "match entries", true, tell_entries},
	{"md", NULL, "memory descriptors", true, tell_regions},
	{"eq", NULL, "event queues: their size, and what is in them or was lost", true,
		tell_event_queues},
	{"ac", NULL, "access control entries", true, tell_access},
	{"peers", NULL, "other processes: address, round trip time, window, losses", true,
		tell_peers},
	{"node", NULL, "processes of this machine: what passes between them and this", true,
		tell_node},
	{"drops", NULL, "what was dropped, by reason", false, tell_drops},
	{"stats", NULL, "all counters", false, tell_stats},
	{"config", NULL, "all settings with their values", false, tell_config},
};

struct front portals = {
	.name = "Portals",
	.start = "PtlInit",
	.closed = PTL_NOINIT,
	.topics = topics,
	.topic_count = sizeof(topics) / sizeof(topics[0]),
	.words = &words,
};

int PtlInit(int *max_interfaces)
{
	enum answer answer;

	if (ADDRESS_IS_BAD(max_interfaces))
		return PTL_SEGV;
	answer = front_open(&portals);
	if (answer == ANSWER_OK)
		*max_interfaces = (int)setting_items(SETTING_IFACE_NAME);
	return code_of(answer, PTL_FAIL);
}

void PtlFini(void)
{
	front_close(&portals);
}
