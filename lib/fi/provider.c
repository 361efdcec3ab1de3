/* SPDX-License-Identifier: BSD-3-Clause */
/* provider.c - the entry point that libfabric looks for. Until fi_fabric() nothing is opened, and
 * nothing is said. */
#include <fi/state.h>

#include <host/inspection.h>

static const struct topic topics[] = {
	TOPICS_OF_ALL,
	TOPICS_OF_ALL_BEHIND,
};

struct front fi_front = {
	.name = "libfabric",
	.start = "fi_fabric",
	.closed = -FI_EOPBADSTATE,
	.topics = topics,
	.topic_count = sizeof(topics) / sizeof(topics[0]),
	.words = &message_words,
	.forked = domains_forget,
};

static void provider_cleanup(void)
{
}

struct fi_provider fi_postern = {
	.name = "postern",
	.version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = info_get,
	.fabric = fabric_open,
	.cleanup = provider_cleanup,
};

#define PEERS_USUAL 511
#define PEERS_MOST  2047

uint32_t peers_wanted(void)
{
	int wanted;

	if (fi_param_get_int(&fi_postern, "peers", &wanted) != 0)
		return PEERS_USUAL;
	if (wanted >= 1 && wanted <= PEERS_MOST)
		return (uint32_t)wanted;
	WARN(CORE, "FI_POSTERN_PEERS is %d: give a number from 1 to %d; using %d\n", wanted,
		PEERS_MOST, PEERS_USUAL);
	return PEERS_USUAL;
}

struct fi_provider *fi_prov_ini(void) __attribute__((visibility("default")));

/* A provider that names an older interface than the program asks for is passed over. */
struct fi_provider *fi_prov_ini(void)
{
	fi_postern.fi_version = fi_version();
	(void)fi_param_define(&fi_postern, "peers", FI_PARAM_INT,
		"How many processes an endpoint talks to, itself included, at most %d (default: "
		"%d). A message that comes before its receive needs room, of which each has a "
		"share.",
		PEERS_MOST, PEERS_USUAL);
	return &fi_postern;
}
