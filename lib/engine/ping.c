/* SPDX-License-Identifier: BSD-3-Clause */
/* ping.c - echo questions and questions for names of hosts for application threads, and the warning
 * that another process has this one's name, or speaks another version of the wire.
 *
 * A thread waits at its reply slot until the transport says how its question ended, which it does
 * after the question's timeout at the latest. Each slot has one struct ping, so there is no other
 * bound on how many wait. A struct name_query lies in the memory of the thread that waits.
 */
#include <engine/state.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <base/log.h>

static enum answer ping_answer(enum ping_outcome outcome)
{
	if (outcome == PING_CLOSED)
		return ANSWER_CLOSED;
	return outcome == PING_NO_MEMORY ? ANSWER_NO_MEMORY : ANSWER_OK;
}

void ping_done(void *context, struct ping *ping)
{
	struct engine *engine = context;
	uint32_t slot = (uint32_t)(ping - engine->pings);
	struct ping_report *report = &segment_reply(engine->segment, slot)->ping;

	*report = (struct ping_report){
		.outcome = ping->outcome,
		.absent = ping->absent,
		.least = transport_ping_least(engine->transport),
		.most = transport_ping_most(engine->transport),
	};
	if (ping->outcome == PING_ANSWERED || ping->outcome == PING_NO_ANSWER)
		memcpy(report->address, ping->address, sizeof(report->address));
	if (ping->outcome == PING_ANSWERED) {
		report->incarnation = ping->incarnation;
		report->answered = ping->answered;
		report->capacity = ping->capacity;
		report->round_trip = ping->round_trip;
		report->residence = ping->residence;
		report->network = ping->network;
		report->exact = ping->exact;
	}
	engine_answer(engine, slot, ping_answer(ping->outcome));
}

void ping_begin(struct engine *engine, const struct command *command)
{
	struct ping *ping;

	/* The interface goes: whoever was in the ring before it said so is ended by
	 * COMMAND_PING_ABANDON. */
	if (atomic_load_explicit(&engine->segment->closed, memory_order_relaxed)) {
		engine_answer(engine, command->reply, ANSWER_CLOSED);
		return;
	}
	if (!engine->pings)
		engine->pings = calloc(REPLY_SLOTS, sizeof(*engine->pings));
	if (!engine->pings) {
		engine_answer(engine, command->reply, ANSWER_NO_MEMORY);
		return;
	}
	ping = &engine->pings[command->reply];
	*ping = (struct ping){
		.to = {.nid = command->ping.nid, .pid = command->ping.pid},
		.size = command->ping.size,
		.answer = command->ping.answer,
		.timeout = command->ping.timeout,
	};
	if (ping->size == 0)
		ping->size = transport_ping_least(engine->transport);
	transport_ping(engine->transport, ping);
}

void name_done(void *context, struct name_query *query)
{
	engine_answer(
		context, query->reply, query->outcome == NAME_CLOSED ? ANSWER_CLOSED : ANSWER_OK);
}

void name_command(struct engine *engine, const struct command *command)
{
	struct name_query *query = (struct name_query *)(uintptr_t)command->object.other;

	if (command->kind == COMMAND_HOST_NAME) {
		transport_name(engine->transport,
			(const struct frame_name *)(uintptr_t)command->object.other);
		engine_answer(engine, command->reply, ANSWER_OK);
	} else if (atomic_load_explicit(&engine->segment->closed, memory_order_relaxed)) {
		engine_answer(engine, command->reply, ANSWER_CLOSED); /* as in ping_begin() */
	} else {
		query->reply = command->reply;
		transport_find(engine->transport, query);
	}
}

void ping_duplicate(void *context, const uint8_t *address)
{
	const struct engine *engine = context;

	/* There the address is the host's own, and its node id cannot be chosen. */
	if (engine->port->addressed) {
		log_warning("interface %" PRIu32 ": another process of this host, maybe another "
			    "user's, is process %" PRIu32 " of node %" PRIu32
			    " as well; messages to either may go to the other, so give one of "
			    "them another process id",
			engine->interface, engine->self.pid, engine->self.nid);
		return;
	}
	log_warning(
		"interface %" PRIu32 ": another process is process %" PRIu32 " of node %" PRIu32
		" as well, at MAC address %02x:%02x:%02x:%02x:%02x:%02x; messages to either may "
		"go to the other, so give one of them another PTL_NID%s",
		engine->interface, engine->self.pid, engine->self.nid, address[0], address[1],
		address[2], address[3], address[4], address[5],
		engine->udp ? " by another PTL_IP" : " or process id");
}

void ping_stranger(void *context, struct process process, unsigned version)
{
	const struct engine *engine = context;

	log_warning("interface %" PRIu32 ": %" PRIu32 ":%" PRIu32
		    " has version %u of the wire protocol, and this process %u: install "
		    "the same release of Postern on both",
		engine->interface, process.nid, process.pid, version, FRAME_VERSION);
}
