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

/* Where the counters go, one after the other. */
struct stat_reader {
	void (*tell)(void *context, const char *name, const char *help, uint64_t value);
	void *context;
};

static void stats_tell_engine(
	const struct stat_reader *reader, const struct engine_counters *counters)
{
#define X(name, help) reader->tell(reader->context, #name, help, counter_read(&counters->name));
	ENGINE_COUNTERS(X)
	ENGINE_DROPS(X)
#undef X
}

static void stats_tell_transport(
	const struct stat_reader *reader, const struct transport_counters *counters)
{
#define X(name, help) reader->tell(reader->context, #name, help, counter_read(&counters->name));
	TRANSPORT_COUNTERS(X)
#undef X
}

static void stats_tell_port(const struct stat_reader *reader, const struct port_counters *counters)
{
#define X(field, name, help) reader->tell(reader->context, name, help, counters->field);
	PORT_COUNTERS(X)
#undef X
}

static void look_counters(struct interface *interface, void *counters)
{
	interface->port->operations->counters(interface->port, counters);
}

void interface_tell_stats(struct interface *interface,
	void (*tell)(void *context, const char *name, const char *help, uint64_t value),
	void *context)
{
	const struct stat_reader reader = {tell, context};
	const struct segment *segment = interface->submission.segment;
	struct port_counters port = {0};

	interface_look(interface, look_counters, &port);
	stats_tell_engine(&reader, segment_counters(segment));
	stats_tell_transport(&reader, segment_transport(interface->submission.ring));
	stats_tell_port(&reader, &port);
}

enum answer interface_stats(const struct front *front, uint64_t handle,
	void (*tell)(void *context, const char *name, const char *help, uint64_t value),
	void *context)
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
