/* SPDX-License-Identifier: BSD-3-Clause */
/* inspection.c - what an interface tells of itself. See inspection.h.
 *
 * Any thread, with the library's lock.
 *
 * I1. Functions look_...() read the poll core's own data while it stands aside. They tell
 *     LOOK_ITEMS objects each time, or copy PAGE_ITEMS at most, so that a turn is late by some
 *     microseconds, however much data there is.
 * I2. Which indices are in use is found out before, by the gates, without disturbing anybody. An
 *     object may have gone when it is looked at, or be in the making: then it is left out. Fields
 *     that its maker fills in are read only if the poll core knows it, or, for queues, if the gate
 *     says so: then nobody writes to them while the poll core stands aside.
 * I3. Calls that make objects may return before the poll core knows of these. It is told first, so
 *     a list has every object that was made before.
 */
#include <host/inspection.h>

#include <string.h>

#include <rte_mbuf.h>

#include <base/log.h>
#include <base/settings.h>
#include <engine/statistics.h>
#include <host/interface.h>
#include <host/page.h>
#include <host/statistics.h>
#include <pmd-glue/glue.h>

#define NODE_PROCESSES 4096 /* of a node that are told */

static void tell_ipv4(struct report *report, const char *name, uint32_t address)
{
	report_format(report, name, "%u.%u.%u.%u", address >> 24, address >> 16 & 255,
		address >> 8 & 255, address & 255);
}

/* --- port --- */

static void tell_encapsulation(const struct encapsulation_options *options, struct report *report)
{
	report_object(report, "encapsulation");
	report_text(report, "kind", options->udp ? "udp" : "ethernet");
	if (options->vlan != 0)
		report_number(report, "vlan", options->vlan);
	if (options->udp) {
		report_number(
			report, "port", options->port != 0 ? options->port : ENCAPSULATION_PORT);
		tell_ipv4(report, "address", options->address);
		report_number(report, "prefix", options->prefix);
		if (options->gateway != 0)
			tell_ipv4(report, "gateway", options->gateway);
	}
	report_close(report);
}

static void tell_lacks(const struct port_description *description, struct report *report)
{
	report_array(report, "refused");
	for (unsigned n = 0; n < description->lack_count; n++) {
		report_object(report, NULL);
		report_text(report, "what", description->lacks[n].what);
		report_text(report, "effect", description->lacks[n].effect);
		report_close(report);
	}
	report_close(report);
}

static void look_port(struct interface *interface, void *context)
{
	struct report *report = context;
	struct port *port = interface->port;
	struct port_description description = {0};
	struct port_counters counters = {0};

	port->operations->counters(port, &counters);
	if (port->operations->describe)
		port->operations->describe(port, &description);
	report_text(report, "name", port->name);
	report_text(report, "driver", description.driver);
	report_text(report, "device", description.device);
	report_address(report, "mac", port->address);
	report_flag(report, "link", port->operations->link(port));
	report_number(report, "mtu", port->frame_size - FRAME_ETHERNET_BYTES + port->around);
	tell_encapsulation(&interface->encapsulation, report);
	report_number_if(report, "numa_node", port->socket >= 0, (uint64_t)port->socket);
	report_flag(report, "external", port->external);
	report_flag(report, "checksum_offload", port->checksum_offload);
	report_flag(report, "faults", description.faults);
	tell_lacks(&description, report);
	report_number(report, "receive_ring", port->receive_frames);
	report_number(report, "transmit_ring", description.transmit_frames);
	report_number(report, "pool_buffers", port->pool->size);
	report_number(report, "pool_in_use", counters.buffers);
	report_number(report, "pool_buffer_bytes", rte_pktmbuf_data_room_size(port->pool));
	report_number(report, "missed", counters.missed);
	report_number(report, "errors", counters.errors);
	report_number(report, "no_mbuf", counters.no_mbuf);
}

void tell_port(struct interface *interface, struct page page, struct report *report)
{
	(void)page;
	interface_look(interface, look_port, report);
}

/* --- the interface, its thread and its queues --- */

static void look_life(struct interface *interface, void *context)
{
	transport_tell_life(engine_transport(interface->engine), context);
}

static void look_queues(struct interface *interface, void *context)
{
	engine_tell_queues(interface->engine, context);
	transport_tell_queues(engine_transport(interface->engine), context);
}

static void tell_limits(
	const struct words *words, const struct segment_limits *limits, struct report *report)
{
	report_object(report, "limits");
	report_number(report, words->entries, limits->entries);
	report_number(report, words->regions, limits->regions - limits->attached);
	report_number(report, words->queues, limits->queues);
	if (limits->counters != 0)
		report_number(report, "event_counters", limits->counters);
	report_number(report, "portals", limits->portals);
	report_number(report, "access_entries", limits->access);
	report_number(report, "list_entries", limits->list_length);
	report_number(report, "event_bytes", limits->event_bytes);
	report_close(report);
}

static void tell_in_use(
	const struct words *words, const struct segment *segment, struct report *report)
{
	report_object(report, "in_use");
	report_number(report, words->entries, entries_in_use(segment));
	report_number(report, words->regions, regions_in_use(segment));
	report_number(report, words->queues, queues_in_use(segment));
	if (segment->limits.counters != 0)
		report_number(report, "event_counters", counters_in_use(segment));
	report_number(report, "portals", portals_in_use(segment));
	if (segment->limits.counters != 0)
		report_number(report, "triggered_operations",
			atomic_load_explicit(&segment->triggered, memory_order_relaxed));
	report_close(report);
}

static const char *progress_name(const struct interface *interface)
{
	if (!interface->inlined)
		return "core";
	return interface_is_helped(interface) ? "both" : "inline";
}

void tell_ni(struct interface *interface, struct page page, struct report *report)
{
	const struct segment *segment = interface->submission.segment;

	(void)page;
	report_number(report, "interface", interface_number(interface));
	report_text(report, "name", interface->port->name);
	report_bits(report, "handle",
		handle_name(
			interface, atomic_load_explicit(&interface->handle, memory_order_relaxed)));
	report_number(report, "nid", interface->self.nid);
	report_number(report, "pid", interface->self.pid);
	report_number(report, "uid", interface->uid);
	report_text(report, "progress", progress_name(interface));
	interface_look(interface, look_life, report);
	report_number(report, "drops", interface_drops(segment));
	tell_limits(interface->front->words, &segment->limits, report);
	tell_in_use(interface->front->words, segment, report);
}

void tell_queues(struct interface *interface, struct page page, struct report *report)
{
	const struct segment *segment = interface->submission.ring;

	(void)page;
	report_number(report, "commands_max", COMMAND_RING);
	report_number(report, "calls_waiting",
		objects_in_use(segment, segment->free_replies, REPLY_SLOTS));
	report_number(report, "calls_waiting_max", REPLY_SLOTS);
	interface_look(interface, look_queues, report);
}

void tell_poll(struct interface *interface, struct page page, struct report *report)
{
	const struct engine_counters *counters = segment_counters(interface->submission.ring);
	struct poll_info info;

	(void)page;
	report_text(report, "progress", progress_name(interface));
	report_number(report, "turns",
		counter_read(&counters->polls_busy) + counter_read(&counters->polls_idle));
	report_number(report, "turns_idle", counter_read(&counters->polls_idle));
	report_number(report, "sleeps", counter_read(&counters->sleeps));
	if (!interface_poll(interface, &info))
		return;
	report_text(report, "mode", setting_text(SETTING_POLL));
	report_number_if(report, "cpu", info.cpu != UINT64_MAX, info.cpu);
	report_number(report, "interfaces", info.interfaces);
	report_number(report, "busy_ns", info.busy);
	report_number(report, "elapsed_ns", info.elapsed);
	report_number(report, "busy_percent",
		info.elapsed == 0 ? 0 : info.busy / (info.elapsed / 100 + 1));
}

/* --- peers --- */

struct peers_look {
	uint32_t next; /* in the table */
	uint32_t left; /* of the page */
	struct report *report;
};

static void look_peer_count(struct interface *interface, void *context)
{
	*(uint32_t *)context = transport_peer_count(engine_transport(interface->engine));
}

static void look_peers(struct interface *interface, void *context)
{
	struct peers_look *look = context;

	look->left -= transport_tell_peers(engine_transport(interface->engine), &look->next,
		look->left < LOOK_ITEMS ? look->left : LOOK_ITEMS, look->report);
}

void tell_peers(struct interface *interface, struct page page, struct report *report)
{
	struct peers_look look = {page.first, page_count(page), report};
	uint32_t total;

	interface_look(interface, look_peer_count, &total);
	list_open(report, total, page);
	while (look.next != UINT32_MAX && look.left != 0)
		interface_look(interface, look_peers, &look);
	list_close(report, look.next);
}

/* --- the node --- */

struct processes_look {
	const struct glue_process *processes;
	uint32_t next, end; /* of the page */
	struct report *report;
};

static void look_node(struct interface *interface, void *context)
{
	glue_node_tell(interface->port, context);
}

static void look_processes(struct interface *interface, void *context)
{
	struct processes_look *look = context;

	for (uint32_t n = 0; n < LOOK_ITEMS && look->next < look->end; n++) {
		const struct glue_process *process = &look->processes[look->next++];

		report_object(look->report, NULL);
		report_number(look->report, "pid", process->pid);
		report_number(look->report, "uid", process->uid);
		glue_node_tell_pair(interface->port, process->pid, look->report);
		report_close(look->report);
	}
}

void tell_node(struct interface *interface, struct page page, struct report *report)
{
	static struct glue_process present[NODE_PROCESSES]; /* of whoever has the library's lock */
	uint32_t total = glue_node_present(interface->port, present, NODE_PROCESSES);
	uint32_t known = total < NODE_PROCESSES ? total : NODE_PROCESSES;
	struct processes_look look = {present, page.first, known, report};

	if (page.first < known && known - page.first > page_count(page))
		look.end = page.first + page_count(page);
	report_number(report, "nid", interface->self.nid);
	report_number(report, "pid", interface->self.pid);
	report_number(report, "uid", interface->uid);
	interface_look(interface, look_node, report);
	list_open(report, total, page);
	while (look.next < look.end)
		interface_look(interface, look_processes, &look);
	list_close(report, look.end < known ? look.end : UINT32_MAX);
}

/* --- counters and settings --- */

static void tell_stat(void *context, const char *name, const char *help, uint64_t value)
{
	(void)help;
	report_number(context, name, value);
}

void tell_stats(struct interface *interface, struct page page, struct report *report)
{
	(void)page;
	interface_tell_stats(interface, tell_stat, report);
}

struct drops {
	struct report *report;
	uint64_t total;
};

static void tell_drop(void *context, const char *name, const char *help, uint64_t value)
{
	static const char prefix[] = "dropped_";
	struct drops *drops = context;

	(void)help;
	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return;
	report_number(drops->report, name + strlen(prefix), value);
	drops->total += value;
}

void tell_drops(struct interface *interface, struct page page, struct report *report)
{
	struct drops drops = {.report = report};

	(void)page;
	interface_tell_stats(interface, tell_drop, &drops);
	report_number(report, "total", drops.total);
}

void tell_config(struct interface *interface, struct page page, struct report *report)
{
	(void)interface;
	(void)page;
	for (unsigned i = 0; i < SETTING_COUNT; i++)
		report_text(report, setting_describe((enum setting)i)->name,
			setting_text((enum setting)i));
}

/* --- topics --- */

const struct option_word option_words[] = {
	{REGION_PUT, "put"},
	{REGION_GET, "get"},
	{REGION_REMOTE_OFFSET, "manage_remote"},
	{REGION_TRUNCATE, "truncate"},
	{REGION_NO_ACK, "ack_disable"},
	{0, NULL},
};

static const struct option_word message_option_words[] = {
	{REGION_PUT, "put"}, {REGION_GET, "get"}, {REGION_TRUNCATE, "truncate"}, {0, NULL}};
const struct words message_words = {
	.entry = "receive",
	.region = "memory",
	.queue = "queue",
	.entries = "receives",
	.regions = "memory_regions",
	.queues = "queues",
	.options = message_option_words,
};

const struct topic *inspection_topic(const struct front *front, const char *name)
{
	for (unsigned i = 0; i < front->topic_count; i++) {
		const struct topic *topic = &front->topics[i];

		if (strcmp(topic->name, name) == 0 ||
			(topic->alias && strcmp(topic->alias, name) == 0))
			return topic;
	}
	return NULL;
}

static void topics_complain(const struct front *front, const char *name)
{
	char names[256];
	int length = 0;

	for (unsigned i = 0; i < front->topic_count; i++)
		length += snprintf(names + length, sizeof(names) - (size_t)length, "%s%s",
			i == 0 ? "" : ", ", front->topics[i].name);
	log_error("\"%s\" is not a topic of an interface: ask for one of %s", name, names);
}

enum answer inspection_write(const struct front *front, uint64_t handle, const char *name,
	struct page page, char *text, size_t size, size_t *length)
{
	const struct topic *topic;
	struct interface *interface;
	struct report_json json;

	log_clear_error();
	topic = inspection_topic(front, name);
	if (!topic) {
		topics_complain(front, name);
		return ANSWER_FAILED;
	}
	report_json_init(&json, text, size);
	library_lock();
	interface = interface_of(front, handle);
	if (interface) {
		report_object(&json.report, NULL);
		topic->tell(interface, page, &json.report);
		report_close(&json.report);
		*length = report_json_end(&json);
	}
	library_unlock();
	return interface ? ANSWER_OK : ANSWER_GONE;
}
