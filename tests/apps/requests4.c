/* SPDX-License-Identifier: BSD-3-Clause */
/* requests4.c - a process of Portals 4 that asks its other port for one thing of each kind, for a
 * capture: what test_capture.py knows to be on the wire. Each is over before the next one begins.
 */
#include <stdio.h>
#include <stdlib.h>

#include <portals4.h>

#define PORTAL 4
#define LONG   30000 /* more than a frame */

static unsigned char target[2 * LONG], source[LONG], answer[LONG];
static ptl_handle_ni_t here, there;
static ptl_handle_md_t out, in;
static ptl_handle_eq_t queue;
static ptl_process_t to;

#define CHECK(call) check((call), #call)
static void check(int code, const char *call)
{
	if (code != PTL_OK) {
		fprintf(stderr, "%s returned %d\n", call, code);
		exit(1);
	}
}

/* Waits for the last event of a request. */
static void await(ptl_event_kind_t kind, ptl_ni_fail_t fail)
{
	ptl_event_t event;

	do
		CHECK(PtlEQWait(queue, &event));
	while (event.type == PTL_EVENT_SEND);
	if (event.type != kind || event.ni_fail_type != fail) {
		fprintf(stderr, "event %d with %d instead of %d with %d\n", event.type,
			event.ni_fail_type, kind, fail);
		exit(1);
	}
}

static ptl_handle_md_t bind(void *start, ptl_size_t length)
{
	const ptl_md_t memory = {
		.start = start, .length = length, .eq_handle = queue, .ct_handle = PTL_CT_NONE};
	ptl_handle_md_t md;

	CHECK(PtlMDBind(here, &memory, &md));
	return md;
}

static void ports_open(void)
{
	const unsigned options = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
	const ptl_me_t entry = {
		.start = target,
		.length = sizeof(target),
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET,
		.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
		.ignore_bits = ~(ptl_match_bits_t)0,
	};
	ptl_pt_index_t portal;
	ptl_handle_me_t me;

	CHECK(PtlInit());
	CHECK(PtlNIInit(0, options, PTL_PID_ANY, NULL, NULL, &here));
	CHECK(PtlNIInit(1, options, PTL_PID_ANY, NULL, NULL, &there));
	CHECK(PtlGetPhysId(there, &to));
	CHECK(PtlEQAlloc(here, 64, &queue));
	CHECK(PtlPTAlloc(there, 0, PTL_EQ_NONE, PORTAL, &portal));
	CHECK(PtlMEAppend(there, PORTAL, &entry, PTL_PRIORITY_LIST, NULL, &me));
	out = bind(source, sizeof(source));
	in = bind(answer, sizeof(answer));
}

int main(void)
{
	static const double operand = 1;

	ports_open();
	CHECK(PtlPut(out, 0, 40, PTL_ACK_REQ, to, PORTAL, 0x51, 16, NULL, 0xabc));
	await(PTL_EVENT_ACK, PTL_NI_OK);
	CHECK(PtlPut(out, 0, LONG, PTL_ACK_REQ, to, PORTAL, 0x52, 0, NULL, 0));
	await(PTL_EVENT_ACK, PTL_NI_OK);
	CHECK(PtlPut(out, 0, 8, PTL_ACK_REQ, to, PORTAL + 1, 0x53, 0, NULL, 0)); /* none is there */
	await(PTL_EVENT_ACK, PTL_NI_DROPPED);
	CHECK(PtlGet(in, 0, LONG, to, PORTAL, 0x54, 24, NULL));
	await(PTL_EVENT_REPLY, PTL_NI_OK);
	CHECK(PtlAtomic(
		out, 0, 24, PTL_ACK_REQ, to, PORTAL, 0x55, 32, NULL, 7, PTL_SUM, PTL_UINT64_T));
	await(PTL_EVENT_ACK, PTL_NI_OK);
	CHECK(PtlFetchAtomic(
		in, 0, out, 0, 12, to, PORTAL, 0x56, 8, NULL, 8, PTL_MAX, PTL_INT32_T));
	await(PTL_EVENT_REPLY, PTL_NI_OK);
	CHECK(PtlSwap(
		in, 0, out, 0, 8, to, PORTAL, 0x57, 8, NULL, 9, &operand, PTL_CSWAP, PTL_DOUBLE));
	await(PTL_EVENT_REPLY, PTL_NI_OK);
	CHECK(PtlNIFini(here));
	CHECK(PtlNIFini(there));
	PtlFini();
	return 0;
}
