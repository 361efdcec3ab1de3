/* SPDX-License-Identifier: BSD-3-Clause */
/* statistics.c - see statistics.h. */
#include <host/statistics.h>

#include <base/port.h>
#include <engine/statistics.h>
#include <host/front.h>
#include <transport/statistics.h>

uint64_t interface_drops(const struct segment *segment)
{
	const struct engine_counters *counters = segment_counters(segment);
	/* 4.2 counts what is for a process that is not here, too; the transport sees to that. */
	uint64_t drops = counter_read(&segment_transport(segment)->dropped_no_process);

#define X(name, help) drops += counter_read(&counters->name);
	ENGINE_DROPS(X)
#undef X
	return drops;
}

static void look_counters(struct interface *interface, void *counters)
{
	interface->port->operations->counters(interface->port, counters);
}

void interface_tell_stats(struct interface *interface, stat_tell *tell, void *context)
{
	const struct engine_counters *engine = segment_counters(interface->submission.segment);
	const struct transport_counters *transport = segment_transport(interface->submission.ring);
	struct port_counters port = {0};

	interface_look(interface, look_counters, &port);
#define X(name, help) tell(context, #name, help, counter_read(&engine->name));
	ENGINE_COUNTERS(X)
	ENGINE_DROPS(X)
#undef X
#define X(name, help) tell(context, #name, help, counter_read(&transport->name));
	TRANSPORT_COUNTERS(X)
#undef X
#define X(field, name, help) tell(context, name, help, port.field);
	PORT_COUNTERS(X)
#undef X
}

enum answer interface_stats(
	const struct front *front, uint64_t handle, stat_tell *tell, void *context)
{
	struct interface *interface;

	/* The lock keeps the interface open, as a visit would, while the port's owner is asked to
	 * stand aside. */
	library_lock();
	interface = interface_of(front, handle);
	if (interface)
		interface_tell_stats(interface, tell, context);
	library_unlock();
	return interface ? ANSWER_OK : ANSWER_GONE;
}
