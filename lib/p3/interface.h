/* SPDX-License-Identifier: BSD-3-Clause */
/* interface.h - what the files of the Portals 3.2 front end share. */
#ifndef P3_INTERFACE_H
#define P3_INTERFACE_H

#include <portals.h>
#include <host/address.h>
#include <host/front.h>
#include <host/visitor.h>

extern struct front portals; /* front.c */

/* host/visitor.h, with Portals' handles and codes: PTL_OK, PTL_NOINIT or `invalid`. */
static inline int visit_enter(
	struct visit *visit, uint64_t handle, enum handle_kind kind, int invalid)
{
	static_assert(PTL_OK == 0, "as front_visit() says");
	return front_visit(&portals, visit, handle, kind, invalid);
}

/* Ends a visit. Returns the code of the call. */
static inline int visit_end(const struct visit *visit, int code)
{
	visit_leave(visit);
	return code;
}

/* A process id that names one process; and one that may have wildcards. */
static inline bool process_is_valid(ptl_process_id_t id)
{
	return id.nid != PTL_NID_ANY && id.pid <= PTL_PID_MAX;
}

static inline bool process_is_pattern(ptl_process_id_t id)
{
	return id.pid <= PTL_PID_MAX || id.pid == PTL_PID_ANY;
}

/* entry.c: unlinks the object that a handle of this kind names. */
int object_unlink(uint64_t handle, enum handle_kind kind, enum command_kind unlink, int invalid);

/* region.c: between what callers and what the engine call a descriptor. */
void region_to_md(const struct region_description *description, ptl_md_t *md);

#endif
