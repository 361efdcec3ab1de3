/* SPDX-License-Identifier: BSD-3-Clause */
/* limit.c - see limit.h. */
#include <p4/limit.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include <base/environment.h>
#include <base/log.h>
#include <base/settings.h>
#include <engine/amo.h>
#include <engine/command.h>
#include <engine/single_frame.h>

#define ENTRIES_MAX  262144
#define INDEX_MAX    4095
#define SIZE_LEAST   8             /* bytes, by the specification */
#define WAW_LEAST    64            /* likewise */
#define SINGLE_MAX   AMO_BYTES_MAX /* what must fit into one frame */
#define VOLATILE_MAX COPIED_MAX
#define FEATURES     (PTL_COHERENT_ATOMICS | PTL_TARGET_BIND_INACCESSIBLE)

/* A limit that is a number: where it is, its environment variable, and its values. */
static const struct limit {
	const char *variable;
	size_t offset;
	bool wide; /* ptl_size_t, else int */
	uint64_t least, usual, most;
} limits_known[] = {
#define LIMIT(field, name, wide, least, usual, most)                                               \
	{                                                                                          \
		"PTL_LIM_" name, offsetof(ptl_ni_limits_t, field), wide, least, usual, most        \
	}
	LIMIT(max_entries, "MAX_ENTRIES", false, 1, 65536, ENTRIES_MAX),
	LIMIT(max_unexpected_headers, "MAX_UNEXPECTED_HEADERS", false, 1, 65536, ENTRIES_MAX),
	LIMIT(max_mds, "MAX_MDS", false, 1, 4096, 65536),
	LIMIT(max_cts, "MAX_CTS", false, 1, 4096, LIMIT_COUNTERS),
	LIMIT(max_eqs, "MAX_EQS", false, 1, 4096, 65535),
	LIMIT(max_pt_index, "MAX_PT_INDEX", false, 0, 63, INDEX_MAX),
	LIMIT(max_iovecs, "MAX_IOVECS", false, 1, 4096, 65536),
	LIMIT(max_list_size, "MAX_LIST_SIZE", false, 1, 65536, ENTRIES_MAX),
	LIMIT(max_triggered_ops, "MAX_TRIGGERED_OPS", false, 1, 4096, 65536),
	LIMIT(max_msg_size, "MAX_MSG_SIZE", true, 1, MESSAGE_LENGTH_MAX, MESSAGE_LENGTH_MAX),
	LIMIT(max_atomic_size, "MAX_ATOMIC_SIZE", true, SIZE_LEAST, SINGLE_MAX, SINGLE_MAX),
	LIMIT(max_fetch_atomic_size, "MAX_FETCH_ATOMIC_SIZE", true, SIZE_LEAST, SINGLE_MAX,
		SINGLE_MAX),
	LIMIT(max_waw_ordered_size, "MAX_WAW_ORDERED_SIZE", true, WAW_LEAST, SINGLE_MAX,
		SINGLE_MAX),
	LIMIT(max_war_ordered_size, "MAX_WAR_ORDERED_SIZE", true, SIZE_LEAST, SINGLE_MAX,
		SINGLE_MAX),
	LIMIT(max_volatile_size, "MAX_VOLATILE_SIZE", true, SIZE_LEAST, VOLATILE_MAX, VOLATILE_MAX),
#undef LIMIT
};
#define LIMITS (sizeof(limits_known) / sizeof(limits_known[0]))

/* A negative int is what programs get that ask for LONG_MAX: as much as there is. */
static uint64_t limit_read(const struct limit *limit, const ptl_ni_limits_t *from)
{
	const char *field = (const char *)from + limit->offset;
	int number;

	if (limit->wide)
		return *(const ptl_size_t *)(const void *)field;
	number = *(const int *)(const void *)field;
	return number < 0 ? limit->most : (uint64_t)number;
}

static void limit_write(const struct limit *limit, ptl_ni_limits_t *to, uint64_t value)
{
	char *field = (char *)to + limit->offset;

	if (limit->wide)
		*(ptl_size_t *)(void *)field = value;
	else
		*(int *)(void *)field = (int)value;
}

static uint64_t limit_clamp(const struct limit *limit, uint64_t value)
{
	if (value < limit->least)
		return limit->least;
	return value > limit->most ? limit->most : value;
}

/* What the environment, or else the library, has for a limit that nobody asks for. */
static uint64_t limit_usual(const struct limit *limit)
{
	const char *text = environment_text(limit->variable);
	char *end;
	unsigned long long value;

	if (!text || text[0] == '\0')
		return limit->usual;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end == '\0' && errno == 0 && text[0] != '-')
		return limit_clamp(limit, value);
	log_error("%s is \"%s\", which is not a number; set it to a number such as %llu",
		limit->variable, text, (unsigned long long)limit->usual);
	return limit->usual;
}

void limits_choose(const ptl_ni_limits_t *desired, ptl_ni_limits_t *limits)
{
	*limits = (ptl_ni_limits_t){.features = desired ? desired->features & FEATURES : 0};
	for (size_t i = 0; i < LIMITS; i++) {
		const struct limit *limit = &limits_known[i];

		const uint64_t value = desired ? limit_read(limit, desired) : 0;

		/* Programs of Portals 4.0 leave 0 in the fields that they do not know. */
		limit_write(limit, limits, value ? limit_clamp(limit, value) : limit_usual(limit));
	}
}

void limits_fit(ptl_ni_limits_t *limits, uint32_t frame_bytes)
{
	const ptl_size_t most = single_frame_bytes(frame_bytes);
	ptl_size_t *const limited[] = {&limits->max_atomic_size, &limits->max_fetch_atomic_size,
		&limits->max_waw_ordered_size, &limits->max_war_ordered_size};

	for (size_t i = 0; i < sizeof(limited) / sizeof(limited[0]); i++)
		if (*limited[i] > most)
			*limited[i] = most;
}

void limits_tables(const ptl_ni_limits_t *limits, struct segment_limits *tables)
{
	*tables = (struct segment_limits){
		.entries = (uint32_t)limits->max_entries,
		.regions = (uint32_t)limits->max_entries + (uint32_t)limits->max_mds,
		.attached = (uint32_t)limits->max_entries,
		.queues = (uint32_t)limits->max_eqs,
		.counters = (uint32_t)limits->max_cts,
		.unexpected = (uint32_t)limits->max_unexpected_headers,
		.portals = (uint32_t)limits->max_pt_index + 1,
		.access = 1,
		.list_length = (uint32_t)limits->max_list_size,
		.event_bytes = setting_number(SETTING_EVENT_MEMORY),
	};
}
