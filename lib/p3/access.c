/* SPDX-License-Identifier: BSD-3-Clause */
/* access.c - PtlACEntry. */
#include <p3/interface.h>

int PtlACEntry(ptl_handle_ni_t interface, ptl_ac_index_t index, ptl_process_id_t matchid,
	ptl_uid_t uid, ptl_pt_index_t portal)
{
	struct visit visit;
	int code = visit_enter(&visit, interface, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (index >= visit.segment->limits.access) {
		code = PTL_AC_INV_INDEX;
	} else if (!process_is_pattern(matchid)) {
		code = PTL_INV_PROC;
	} else if (portal >= visit.segment->limits.portals && portal != PTL_PT_INDEX_ANY) {
		code = PTL_PT_INV_INDEX;
	} else {
		struct command command = {
			.kind = COMMAND_ACCESS,
			.access = {.index = index,
				.nid = matchid.nid,
				.pid = matchid.pid,
				.uid = uid,
				.portal = portal},
		};

		submission_post(&visit.interface->submission, &command);
	}
	visit_leave(&visit);
	return code;
}
