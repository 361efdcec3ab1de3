/* SPDX-License-Identifier: BSD-3-Clause */
/* test_layout.c - portals4.h as a C program sees it; compiling is the test. Options and events can
 * be in switches and initialisers. */
#include "layout.h"

static const ptl_event_kind_t first = PTL_EVENT_GET;

int main(void)
{
	switch (first) {
	case PTL_EVENT_GET:
		return 0;
	case PTL_EVENT_PUT:
	default:
		return 1;
	}
}
