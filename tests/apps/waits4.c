/* SPDX-License-Identifier: BSD-3-Clause */
/* waits4.c - a process of Portals 4 that hangs as a collective does: two operations wait for a
 * counter that stays below their thresholds, and the program for another one. What
 * test_telemetry.py knows. Ends by a signal.
 */
#include <stdio.h>
#include <stdlib.h>

#include <portals4.h>

#define CHECK(call) check((call), #call)
static void check(int code, const char *call)
{
	if (code != PTL_OK) {
		fprintf(stderr, "%s returned %d\n", call, code);
		exit(1);
	}
}

int main(void)
{
	static char data[8];
	const ptl_md_t memory = {.start = data,
		.length = sizeof(data),
		.eq_handle = PTL_EQ_NONE,
		.ct_handle = PTL_CT_NONE};
	const ptl_process_t target = {.phys = {7, 8}};
	ptl_handle_ct_t arrived, done;
	ptl_ct_event_t event;
	ptl_handle_ni_t ni;
	ptl_handle_md_t md;

	CHECK(PtlInit());
	CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL,
		NULL, &ni));
	CHECK(PtlCTAlloc(ni, &arrived));
	CHECK(PtlCTAlloc(ni, &done));
	CHECK(PtlMDBind(ni, &memory, &md));
	CHECK(PtlTriggeredCTInc(done, (ptl_ct_event_t){.success = 1}, arrived, 9));
	CHECK(PtlTriggeredPut(
		md, 0, sizeof(data), PTL_NO_ACK_REQ, target, 4, 0x2a, 0, NULL, 0, arrived, 6));
	CHECK(PtlCTInc(arrived, (ptl_ct_event_t){.success = 5}));
	printf("Waiting: 0x%x, 0x%x\n", arrived, done);
	fflush(stdout);
	CHECK(PtlCTWait(done, 3, &event));
	return 0;
}
