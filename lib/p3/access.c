/* SPDX-License-Identifier: BSD-3-Clause */
/* access.c - PtlACEntry. */
#include <p3/interface.h>

int PtlACEntry(ptl_handle_ni_t interface, ptl_ac_index_t index, ptl_process_id_t matchid,
	ptl_uid_t uid, ptl_pt_index_t portal)
{
	struct command command = {
		.kind = COMMAND_ACCESS,
		.access = {.index = index,
			.nid = matchid.nid,
			.pid = matchid.pid,
			.uid = uid,
			.portal = portal},
	};
	struct visit visit;
	int code = visit_enter(&visit, interface, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (index >= visit.segment->limits.access)
		return visit_end(&visit, PTL_AC_INV_INDEX);
	if (!process_is_pattern(matchid))
		return visit_end(&visit, PTL_INV_PROC);
	if (portal >= visit.segment->limits.portals && portal != PTL_PT_INDEX_ANY)
		return visit_end(&visit, PTL_PT_INV_INDEX);
	submission_post(&visit.interface->submission, &command);
	return visit_end(&visit, PTL_OK);
}
