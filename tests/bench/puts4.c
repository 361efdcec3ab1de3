/* SPDX-License-Identifier: BSD-3-Clause */
/* puts4.c - 8-byte puts and gets of Portals 4 between two interfaces of this process, for
 * scripts/instructions to count their instructions.
 *
 *     puts4 p4put N    N puts back and forth, each the answer to the one before
 *     puts4 p4get N    N gets
 *
 * An entry that stays matches them. A put logs one event, PUT, and a get one, REPLY. All in one
 * thread (PTL_PROGRESS=inline), over a loop. Time goes a fixed step with every look at the clock,
 * as in puts.c.
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

static struct side {
	ptl_handle_eq_t queue;
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

static void side_open(unsigned number, bool gets)
{
	struct side *side = &sides[number];
	ptl_md_t md = {.start = side->out,
		.length = BYTES,
		.options = PTL_MD_EVENT_SEND_DISABLE,
		.ct_handle = PTL_CT_NONE};
	const ptl_me_t me = {.start = side->in,
		.length = BYTES,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
			   (gets ? PTL_ME_EVENT_COMM_DISABLE : 0),
		.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
		.match_bits = 1};
	ptl_handle_ni_t interface;
	ptl_handle_me_t entry;
	ptl_pt_index_t portal;

	need(PtlNIInit(
		     number, PTL_NI_PHYSICAL | PTL_NI_MATCHING, number + 1, NULL, NULL, &interface),
		"PtlNIInit");
	need(PtlEQAlloc(interface, 64, &side->queue), "PtlEQAlloc");
	need(PtlPTAlloc(interface, 0, side->queue, PORTAL, &portal), "PtlPTAlloc");
	need(PtlMEAppend(interface, portal, &me, PTL_PRIORITY_LIST, NULL, &entry), "PtlMEAppend");
	md.eq_handle = side->queue;
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

int main(int argc, char **argv)
{
	unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	bool gets_wanted = argc == 3 && strcmp(argv[1], "p4get") == 0;

	if (argc != 3) {
		fprintf(stderr, "Usage: puts4 p4put|p4get N\n");
		return 2;
	}
	setenv("PTL_IFACE_NAME", "loop:puts4;loop:puts4", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	need(PtlInit(), "PtlInit");
	side_open(0, gets_wanted);
	side_open(1, gets_wanted);
	if (gets_wanted)
		gets(count);
	else
		puts_answered(count);
	PtlFini();
	return 0;
}
