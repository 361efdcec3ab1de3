/* SPDX-License-Identifier: BSD-3-Clause */
/* statistics.h - what an engine counts. Few files include it, so
 * that a new counter makes few of them compile again. */
#ifndef ENGINE_STATISTICS_H
#define ENGINE_STATISTICS_H

#include <stdint.h>
#include <engine/segment.h>

/* Reasons of the engine's own to drop a message: X(name, help). Their sum is the drop count of
 * 4.2. */
#define ENGINE_DROPS(X)                                                                            \
	X(dropped_no_space, "messages for an interface of the process that does not exist")        \
	X(dropped_no_portal, "messages for a Portal index that does not exist")                    \
	X(dropped_bad_cookie, "messages whose cookie names no access control entry")               \
	X(dropped_access_denied, "messages that access control refused")                           \
	X(dropped_no_match, "messages that no match entry's descriptor accepted")                  \
	X(dropped_bad_message, "messages whose header is not well-formed")                         \
	X(dropped_late_ack, "acknowledgements whose descriptor or queue was released")             \
	X(dropped_late_reply, "replies whose descriptor was released")                             \
	X(dropped_disabled, "messages for a Portal that is disabled")                              \
	X(dropped_no_header, "unexpected messages without a free header, or without one in the "   \
			     "sender's share")                                                     \
	X(dropped_permission, "messages to an entry of another user")                              \
	X(dropped_operation, "messages to an entry that does not permit the operation")            \
	X(dropped_share, "connection requests, fetches and words of credit beyond their "          \
			 "sender's share of the event queue")                                      \
	X(dropped_no_memory_operation,                                                             \
		"messages without a free operation, or without one in the sender's share")

#define ENGINE_COUNTERS(X)                                                                         \
	X(puts_received, "puts accepted")                                                          \
	X(gets_received, "gets accepted")                                                          \
	X(unexpected_removed, "unexpected messages that a search removed without an event")        \
	X(acks_delivered, "Portals acknowledgements logged as events")                             \
	X(replies_received, "replies accepted")                                                    \
	X(greetings_dropped, "connection requests beyond the share of the sender's node")          \
	X(refusals_late, "refusals of gets that had ended or did not exist")                       \
	X(commands, "commands taken from the ring")                                                \
	X(triggers_lost, "triggered operations that were dropped for lack of memory")              \
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
