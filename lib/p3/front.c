/* SPDX-License-Identifier: BSD-3-Clause */
/* front.c - Portals 3.2 as a front end: its words, PtlInit and PtlFini. */
#include <p3/interface.h>

#include <base/settings.h>
#include <host/inspection.h>
#include <p3/code.h>

static const struct words words = {
	.entry = "me",
	.region = "md",
	.queue = "eq",
	.entries = "match_entries",
	.regions = "memory_descriptors",
	.queues = "event_queues",
	.options = option_words,
};

static const struct topic topics[] = {
	TOPICS_OF_ALL,
	{"portals", "pt", "Portals with match entries, and the index of each list", true,
		tell_portals},
	{"me", NULL, "match entries", true, tell_entries},
	{"md", NULL, "memory descriptors", true, tell_regions},
	{"eq", NULL, "event queues: their size, and what is in them or was lost", true,
		tell_event_queues},
	{"ac", NULL, "access control entries", true, tell_access},
	TOPICS_OF_ALL_BEHIND,
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
