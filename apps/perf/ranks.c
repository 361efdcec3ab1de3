/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.c - see ranks.h. */
#include "complain.h"
#include "ranks.h"
#include "stream.h"

static const struct line_module *module; /* of the job; NULL: there is none */

int ranks_join(enum library library, uint64_t largest)
{
	const struct line_module *found;
	char why[WHY_ROOM];
	int rank = -1;

	found = library_module(library, why, sizeof(why));
	if (found)
		rank = found->join(largest, why, sizeof(why));
	if (rank < 0)
		complain("%s cannot be measured: %s.", library_title(library), why);
	module = found;
	return rank;
}

bool ranks_joined(void)
{
	return module;
}

void ranks_tell(ptl_process_id_t own)
{
	(void)module->hand_over((uint64_t)own.nid << 32 | own.pid);
}

ptl_process_id_t ranks_hear(void)
{
	uint64_t number = module->hand_over(0);

	return (ptl_process_id_t){.nid = (ptl_nid_t)(number >> 32), .pid = (ptl_pid_t)number};
}

void ranks_part(void)
{
	if (module)
		module->part();
}
