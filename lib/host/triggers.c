/* SPDX-License-Identifier: BSD-3-Clause */
/* triggers.c - what an interface tells of its counters, and of the commands that wait for them. See
 * inspection.h, and I1 to I3 in inspection.c.
 *
 * A page of commands begins at a place among those of all counters, in the order of the counters'
 * indices. The first of each counter is the next one to be due; the others are in no order.
 */
#include <string.h>

#include <engine/amo.h>
#include <engine/command.h>
#include <engine/trigger.h>
#include <host/interface.h>
#include <host/page.h>
#include <wire/message.h>

/* --- counters --- */

static void tell_counter(struct interface *interface, uint32_t index, struct report *report)
{
	const struct event_counter *counter = segment_counter(interface->submission.segment, index);
	const struct event_count count = event_counter_now(counter);
	const struct trigger_list *list = counter->triggers;
	const uint32_t triggers = list ? list->count : 0;
	const uint32_t sleepers = atomic_load_explicit(&counter->sleepers, memory_order_relaxed);
	/* the least that is slept for; UINT64_MAX: woken just now */
	const uint64_t test = atomic_load_explicit(&counter->wake_at, memory_order_relaxed);

	report_bits(report, "handle",
		handle_name(interface, atomic_load_explicit(&counter->gate, memory_order_relaxed)));
	report_number(report, "index", index);
	report_number(report, "success", count.success);
	report_number(report, "failure", count.failure);
	report_number(report, "triggered", triggers);
	report_number_if(
		report, "threshold", triggers > 0, triggers > 0 ? list->heap[0].threshold : 0);
	report_number(report, "sleepers", sleepers);
	report_number_if(report, "test", sleepers > 0 && test != UINT64_MAX, test);
}

static const struct object_kind counter_kind = {
	HANDLE_COUNTER, NULL, counters_in_use, NULL, tell_counter};

void tell_event_counters(struct interface *interface, struct page page, struct report *report)
{
	objects_tell(interface, page, &counter_kind, interface->submission.segment->limits.counters,
		report);
}

/* --- commands that wait --- */

struct trigger_copy {
	uint64_t counter; /* handle */
	struct event_count count;
	uint64_t threshold;
	uint64_t number;
	struct command command;
	struct rma_line rma; /* of a COMMAND_RMA */
};

struct trigger_look {
	struct selection counters;
	uint32_t skip; /* so many are before the page */
	uint32_t most;
	bool more; /* there is no room for the next one */
	uint32_t count;
	struct trigger_copy items[PAGE_ITEMS];
};

static void trigger_copy(const struct event_counter *counter, uint64_t handle, uint32_t place,
	struct trigger_copy *copy)
{
	const struct trigger_due *due = &counter->triggers->heap[place];
	const struct long_command *command = &due->trigger->command;

	*copy = (struct trigger_copy){
		.counter = handle,
		.count = event_counter_now(counter),
		.threshold = due->threshold,
		.number = due->number,
		.command = command->command,
	};
	if (command->command.kind == COMMAND_RMA)
		memcpy(&copy->rma, command->further[0], sizeof(copy->rma));
}

static void counter_look_triggers(
	const struct event_counter *counter, uint64_t handle, struct trigger_look *look)
{
	uint32_t count = counter->triggers ? counter->triggers->count : 0;
	uint32_t place = look->skip < count ? look->skip : count;

	look->skip -= place;
	for (; place < count && look->count < look->most; place++)
		trigger_copy(counter, handle, place, &look->items[look->count++]);
	look->more = place < count;
}

static void look_triggers(struct interface *interface, void *context)
{
	struct trigger_look *look = context;

	engine_catch_up(interface->engine);
	for (uint32_t i = 0; i < look->counters.count && !look->more; i++) {
		const struct event_counter *counter =
			segment_counter(interface->submission.segment, look->counters.indices[i]);
		uint64_t handle = atomic_load_explicit(&counter->gate, memory_order_acquire);

		if (handle != 0)
			counter_look_triggers(counter, handle_name(interface, handle), look);
	}
}

static const char *command_name(const struct trigger_copy *copy)
{
	static const char *const calls[] = {
		[MESSAGE_STORE] = "put",
		[MESSAGE_LOAD] = "get",
		[MESSAGE_ATOMIC] = "atomic",
		[MESSAGE_FETCH] = "fetch_atomic",
	};

	if (copy->command.kind == COMMAND_RMA)
		return copy->rma.message == MESSAGE_FETCH && (copy->rma.amo & 0xff) >= AMO_SWAP
			       ? "swap"
			       : calls[copy->rma.message];
	switch (copy->command.kind) {
	case COMMAND_ASK:
		return "me_append";
	case COMMAND_WITHDRAW:
		return "me_unlink";
	default:
		return copy->command.kind == COMMAND_COUNTER_SET ? "ct_set" : "ct_inc";
	}
}

static void tell_call(const struct trigger_copy *copy, struct report *report)
{
	const struct move *move = &copy->command.move;

	report_number(report, "nid", move->to.nid);
	report_number(report, "pid", move->to.pid);
	report_number(report, "portal", move->portal);
	report_bits(report, "match_bits", move->match_bits);
	report_number(report, "bytes", copy->rma.length);
}

static void tell_change(
	struct interface *interface, const struct command *command, struct report *report)
{
	report_bits(report, "target",
		object_handle(interface, HANDLE_COUNTER, command->count.index,
			gate_make(command->count.generation, 0)));
	report_number(report, "by_success", command->count.by.success);
	report_number(report, "by_failure", command->count.by.failure);
}

static void tell_trigger(
	struct interface *interface, const struct trigger_copy *copy, struct report *report)
{
	report_object(report, NULL);
	report_bits(report, "counter", copy->counter);
	report_number(report, "success", copy->count.success);
	report_number(report, "failure", copy->count.failure);
	report_number(report, "threshold", copy->threshold);
	report_number(report, "number", copy->number);
	report_text(report, "operation", command_name(copy));
	if (copy->command.kind == COMMAND_RMA)
		tell_call(copy, report);
	else if (copy->command.kind == COMMAND_WITHDRAW)
		report_bits(report, "target",
			object_handle(interface, HANDLE_ENTRY, copy->command.object.index,
				gate_make(copy->command.object.generation, 0)));
	else if (copy->command.kind != COMMAND_ASK)
		tell_change(interface, &copy->command, report);
	report_close(report);
}

void tell_triggers(struct interface *interface, struct page page, struct report *report)
{
	struct segment *segment = interface->submission.segment;
	struct trigger_look look = {.skip = page.first, .most = page_count(page)};

	do {
		const struct page counters = {.first = look.counters.next};

		select_page(
			&look.counters, segment, counters, segment->limits.counters, &counter_kind);
		interface_look(interface, look_triggers, &look);
	} while (!look.more && look.counters.next != UINT32_MAX);
	list_open(report, atomic_load_explicit(&segment->triggered, memory_order_relaxed), page);
	for (uint32_t i = 0; i < look.count; i++)
		tell_trigger(interface, &look.items[i], report);
	list_close(report, look.more ? page.first + look.count : UINT32_MAX);
}
