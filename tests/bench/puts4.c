/* SPDX-License-Identifier: BSD-3-Clause */
/* puts4.c - 8-byte puts and gets of Portals 4 between two interfaces of this process, for
 * scripts/instructions to count their instructions.
 *
 *     puts4 p4put N    N puts back and forth, each the answer to the one before
 *     puts4 p4get N    N gets
 *     puts4 p4ack N    N puts that are acknowledged
 *     puts4 p4count N  windows of 64 puts one way into a non-matching list, counted
 *
 * An entry that stays takes them. A put that is not counted logs one event, PUT or ACK, and a get
 * one, REPLY. All in one thread (PTL_PROGRESS=inline), over a loop. Time goes a fixed step with
 * every look at the clock, as in puts.c.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <portals4.h>

#define CLOCK_STEP 50
#define BYTES      8
#define PORTAL     0
#define WINDOW     64

static struct side {
	ptl_handle_eq_t queue;
	ptl_handle_ct_t counter;
	ptl_handle_md_t load;
	ptl_process_t id;
	char out[BYTES], in[BYTES];
} sides[2];

uint64_t __wrap_glue_now(void *context);

uint64_t __wrap_glue_now(void *context)
{
	static uint64_t time = 1000000000;

	(void)context;
	return time += CLOCK_STEP;
}

static void need(int code, const char *function)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "puts4: %s returns %d\n", function, code);
	exit(EXIT_FAILURE);
}

enum way { PUTS, GETS, ACKS, COUNTS };

static void entry_append(
	const struct side *side, ptl_handle_ni_t interface, ptl_pt_index_t portal, enum way way)
{
	const ptl_me_t me = {.start = (void *)(uintptr_t)side->in,
		.length = BYTES,
		.ct_handle = way == COUNTS ? side->counter : PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
			   (way == PUTS ? 0 : PTL_ME_EVENT_COMM_DISABLE) |
			   (way == COUNTS ? PTL_ME_EVENT_CT_COMM : 0),
		.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
		.match_bits = 1};
	const ptl_le_t le = {.start = me.start,
		.length = me.length,
		.ct_handle = me.ct_handle,
		.uid = me.uid,
		.options = me.options};
	ptl_handle_me_t entry;

	if (way == COUNTS)
		need(PtlLEAppend(interface, portal, &le, PTL_PRIORITY_LIST, NULL, &entry),
			"PtlLEAppend");
	else
		need(PtlMEAppend(interface, portal, &me, PTL_PRIORITY_LIST, NULL, &entry),
			"PtlMEAppend");
}

static void side_open(unsigned number, enum way way)
{
	struct side *side = &sides[number];
	ptl_md_t md = {.start = side->out,
		.length = BYTES,
		.options = PTL_MD_EVENT_SEND_DISABLE,
		.ct_handle = PTL_CT_NONE};
	ptl_handle_ni_t interface;
	ptl_pt_index_t portal;

	need(PtlNIInit(number,
		     PTL_NI_PHYSICAL | (way == COUNTS ? PTL_NI_NO_MATCHING : PTL_NI_MATCHING),
		     number + 1, NULL, NULL, &interface),
		"PtlNIInit");
	need(PtlEQAlloc(interface, 64, &side->queue), "PtlEQAlloc");
	need(PtlCTAlloc(interface, &side->counter), "PtlCTAlloc");
	need(PtlPTAlloc(interface, 0, side->queue, PORTAL, &portal), "PtlPTAlloc");
	entry_append(side, interface, portal, way);
	md.eq_handle = way == COUNTS ? PTL_EQ_NONE : side->queue;
	need(PtlMDBind(interface, &md, &side->load), "PtlMDBind");
	need(PtlGetPhysId(interface, &side->id), "PtlGetPhysId");
}

/* Waits for an event of 8 bytes. */
static void event_await(const struct side *side, ptl_event_kind_t kind)
{
	ptl_event_t event;
	int code;

	while ((code = PtlEQGet(side->queue, &event)) == PTL_EQ_EMPTY)
		;
	need(code, "PtlEQGet");
	if (event.type == kind && event.ni_fail_type == PTL_NI_OK && event.mlength == BYTES)
		return;
	fprintf(stderr, "puts4: event %d of %llu bytes came\n", (int)event.type,
		(unsigned long long)event.mlength);
	exit(EXIT_FAILURE);
}

/* Puts back and forth, each the answer to the one before. */
static void puts_answered(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		const struct side *from = &sides[i % 2], *to = &sides[1 - i % 2];

		need(PtlPut(from->load, 0, BYTES, PTL_NO_ACK_REQ, to->id, PORTAL, 1, 0, NULL, 0),
			"PtlPut");
		event_await(to, PTL_EVENT_PUT);
	}
}

static void gets(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		need(PtlGet(sides[0].load, 0, BYTES, sides[1].id, PORTAL, 1, 0, NULL), "PtlGet");
		event_await(&sides[0], PTL_EVENT_REPLY);
	}
}

/* Puts so many to the other side, and waits until they have been counted. */
static void counted_put(unsigned from, unsigned count)
{
	static ptl_size_t tests[2];
	const struct side *target = &sides[1 - from];
	ptl_ct_event_t event;
	unsigned which;

	for (unsigned i = 0; i < count; i++)
		need(PtlPut(sides[from].load, 0, BYTES, PTL_NO_ACK_REQ, target->id, PORTAL, 1, 0,
			     NULL, 0),
			"PtlPut");
	tests[from] += count;
	while (PtlCTPoll(&target->counter, &tests[from], 1, 0, &event, &which) != PTL_OK)
		;
}

static void puts_acknowledged(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		need(PtlPut(sides[0].load, 0, BYTES, PTL_ACK_REQ, sides[1].id, PORTAL, 1, 0, NULL,
			     0),
			"PtlPut");
		event_await(&sides[0], PTL_EVENT_ACK);
	}
}

static void puts_counted(unsigned long count)
{
	counted_put(1, 1); /* they get to know each other */
	for (unsigned long i = 0; i < count; i += WINDOW)
		counted_put(0, WINDOW);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(unsigned long count);
	} ways[] = {{"p4put", puts_answered}, {"p4get", gets}, {"p4ack", puts_acknowledged},
		{"p4count", puts_counted}};
	unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned way = 0;

	while (argc == 3 && way <= COUNTS && strcmp(argv[1], ways[way].name) != 0)
		way++;
	if (argc != 3 || way > COUNTS) {
		fprintf(stderr, "Usage: puts4 p4put|p4get|p4ack|p4count N\n");
		return 2;
	}
	setenv("PTL_IFACE_NAME", "loop:puts4;loop:puts4", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	need(PtlInit(), "PtlInit");
	side_open(0, (enum way)way);
	side_open(1, (enum way)way);
	ways[way].run(count);
	PtlFini();
	return 0;
}
