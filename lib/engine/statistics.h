/* SPDX-License-Identifier: BSD-3-Clause */
/* statistics.h - what an engine counts. Few files include it, so
 * that a new counter makes few of them compile again. */
#ifndef ENGINE_STATISTICS_H
#define ENGINE_STATISTICS_H

#include <stddef.h>
#include <stdint.h>
#include <engine/segment.h>

/* Reasons of the engine's own to drop a message: X(name, help). Their sum is the drop count of
 * 4.2. */
#define ENGINE_DROPS(X)                                                                            \
	X(dropped_no_space, "messages for a space that does not exist")                            \
	X(dropped_no_portal, "messages for a Portal index that does not exist")                    \
	X(dropped_bad_cookie, "messages whose cookie is no access control entry")                  \
	X(dropped_access_denied, "messages that access control did not admit")                     \
	X(dropped_no_match, "messages that no match entry's descriptor accepted")                  \
	X(dropped_bad_message, "messages whose header is not well-formed")                         \
	X(dropped_two_sided, "two-sided messages of kinds 14 to 17, which no space takes")         \
	X(dropped_late_ack, "acknowledgements whose descriptor or queue is gone")                  \
	X(dropped_late_reply, "replies whose descriptor is gone")                                  \
	X(dropped_disabled, "messages for a Portal that is disabled")                              \
	X(dropped_no_header, "messages to the second tier for which no header was left, or none "  \
			     "of the sender's share")                                              \
	X(dropped_permission, "messages to an entry that is for another user")                     \
	X(dropped_operation, "messages to an entry that is for other operations")                  \
	X(dropped_no_memory_operation,                                                             \
		"messages for which no operation could be had, or whose sender has its share")

#define ENGINE_COUNTERS(X)                                                                         \
	X(puts_received, "puts accepted")                                                          \
	X(gets_received, "gets accepted")                                                          \
	X(acks_delivered, "Portals acknowledgements logged")                                       \
	X(replies_received, "replies accepted")                                                    \
	X(greetings_dropped, "greetings of processes whose node has its share of those that wait") \
	X(refusals_late, "refusals of gets that had ended, or never were")                         \
	X(commands, "commands taken from the ring")                                                \
	X(triggers_lost, "commands to wait for a counter for which there was no memory")           \
	X(commands_stale, "commands whose object another thread had unlinked")                     \
	X(events_logged, "events written to queues")                                               \
	X(events_lost, "events lost because a queue was full")                                     \
	X(polls_busy, "turns of the poll loop that found something to do")                         \
	X(polls_idle, "turns that found nothing to do")                                            \
	X(sleeps, "times the poll core slept")

struct engine_counters {
#define X(name, help) uint64_t name;
	ENGINE_DROPS(X)
	ENGINE_COUNTERS(X)
#undef X
};

/* The poll core writes them, and others read. They lie behind a segment's first part. */
static inline struct engine_counters *segment_counters(const struct segment *segment)
{
	return segment_at(segment, sizeof(*segment));
}

/* Those of its transport, whose names transport/statistics.h has. */
struct transport_counters *segment_transport(const struct segment *segment)
	CORE_API(segment_transport);

#endif
