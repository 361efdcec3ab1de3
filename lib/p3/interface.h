/* SPDX-License-Identifier: BSD-3-Clause */
/* interface.h - what the files of the Portals 3.2 front end share. */
#ifndef P3_INTERFACE_H
#define P3_INTERFACE_H

#include <portals.h>
#include <host/interface.h>

/* A process id that names one process; and one that may have wildcards. */
static inline bool process_is_valid(ptl_process_id_t id)
{
	return id.nid != PTL_NID_ANY && id.pid <= PTL_PID_MAX;
}

static inline bool process_is_pattern(ptl_process_id_t id)
{
	return id.pid <= PTL_PID_MAX || id.pid == PTL_PID_ANY;
}

/* region.c: between what callers and what the engine call a descriptor. */
void region_to_md(const struct region_description *description, ptl_md_t *md);

#endif
