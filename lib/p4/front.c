/* SPDX-License-Identifier: BSD-3-Clause */
/* front.c - Portals 4 as a front end: its words, PtlInit and PtlFini, visits by handle. */
#include <p4/interface.h>

#include <base/backoff.h>
#include <host/inspection.h>

static const char *const lists[TIERS] = {"priority", "overflow"};

static enum name_kind kind_of_handle(enum handle_kind kind)
{
	switch (kind) {
	case HANDLE_REGION:
		return NAME_MD;
	case HANDLE_ENTRY:
		return NAME_ENTRY;
	case HANDLE_QUEUE:
		return NAME_QUEUE;
	case HANDLE_COUNTER:
		return NAME_COUNTER;
	default:
		return NAME_NI;
	}
}

/* What programs call an object of the host's; its handle is told of an interface that is no NI. */
static uint64_t handle_told(uint64_t handle)
{
	const enum name_kind kind = kind_of_handle(handle_kind(handle));

	for (uint32_t i = 0; i < NAME_NIS; i++) {
		const struct ni *ni = &nis[i];

		if (atomic_load_explicit(&ni->number, memory_order_acquire) !=
			handle_interface(handle) + 1)
			continue;
		if (kind == NAME_NI)
			return name_make(kind, i);
		return name_of(ni, kind, handle_index(handle), handle_generation(handle));
	}
	return handle;
}

static const struct words words = {
	.entry = "entry",
	.region = "md",
	.queue = "eq",
	.entries = "entries",
	.regions = "memory_descriptors",
	.queues = "event_queues",
	.options = option_words,
	.tiers = lists,
	.name = handle_told,
};

static const struct topic topics[] = {
	TOPICS_OF_ALL,
	{"portals", "pt", "Portals: whether they are enabled, and the lengths of their lists", true,
		tell_tiers},
	{"me", NULL, "entries of both lists", true, tell_entries},
	{"md", NULL, "memory descriptors", true, tell_regions},
	{"eq", NULL, "event queues: their size, and what is in them or was lost", true,
		tell_event_queues},
	{"ct", NULL, "counters: their values, and how many operations wait for them", true,
		tell_event_counters},
	{"triggered", NULL, "operations that wait for a counter: its value, their threshold", true,
		tell_triggers},
	TOPICS_OF_ALL_BEHIND,
};

struct front portals4 = {
	.name = "Portals 4",
	.start = "PtlInit",
	.closed = PTL_NO_INIT,
	.topics = topics,
	.topic_count = sizeof(topics) / sizeof(topics[0]),
	.words = &words,
};

int PtlInit(void)
{
	return front_open(&portals4) == ANSWER_OK ? PTL_OK : PTL_FAIL;
}

void PtlFini(void)
{
	front_close(&portals4);
}

int code_of(enum answer answer)
{
	switch (answer) {
	case ANSWER_OK:
		return PTL_OK;
	case ANSWER_NO_MEMORY:
		return PTL_NO_SPACE;
	case ANSWER_PENDING:
		return PTL_IN_USE;
	case ANSWER_TAKEN:
		return PTL_PID_IN_USE;
	case ANSWER_GONE:
	case ANSWER_CLOSED:
		return PTL_ARG_INVALID;
	default:
		return PTL_FAIL;
	}
}

enum answer call_until(const struct call *call, struct command *command)
{
	enum answer answer;
	unsigned looks = 0;

	while ((answer = visit_call(&call->visit, command, NULL, NULL)) == ANSWER_PENDING)
		backoff(&looks);
	return answer;
}

int call_prepare(uint32_t name, enum name_kind kind)
{
	struct ni *ni = &nis[name_ni(name)];
	const enum handle_kind object = name_handle_kind(kind);
	struct visit visit;
	uint32_t number;
	int code;

	/* Acquire: pairs with the release in ni_publish(). */
	number = atomic_load_explicit(&ni->number, memory_order_acquire);
	if (!name_is_sound(name, kind) || number == 0)
		return front_is_open(&portals4) ? PTL_ARG_INVALID : PTL_NO_INIT;
	code = front_visit_retry(&portals4, &visit,
		handle_make(object, number - 1, name_index(ni, name, kind), 0), object,
		PTL_ARG_INVALID);
	if (code == PTL_OK)
		visit_leave(&visit);
	return code;
}

uint64_t call_object(const struct call *call, uint32_t name, enum name_kind kind)
{
	const struct ni *ni = call->ni;
	const uint32_t number = (uint32_t)(call->visit.interface - interfaces);
	const enum handle_kind object = name_handle_kind(kind);
	_Atomic uint64_t *gate;
	uint32_t index, generation;

	if (name_kind(name) != (uint32_t)kind || &nis[name_ni(name)] != ni)
		return 0;
	index = name_index(ni, name, kind);
	gate = object_gate(call->visit.segment, index, object);
	if (!gate)
		return 0;
	generation = gate_generation(atomic_load_explicit(gate, memory_order_acquire));
	return name_is(ni, name, kind, generation) ? handle_make(object, number, index, generation)
						   : 0;
}
