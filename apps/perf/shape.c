/* SPDX-License-Identifier: BSD-3-Clause */
/* shape.c - see shape.h. */
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "shape.h"

static bool entry_make(struct shape *shape, struct endpoint *endpoint, ptl_process_id_t peer,
	const struct landing *landing, uint32_t i)
{
	const ptl_md_t descriptor = {
		.start = landing->memory,
		.length = landing->size,
		.threshold = PTL_MD_THRESH_INF,
		.options = (shape->gets ? PTL_MD_OP_GET : PTL_MD_OP_PUT) | PTL_MD_MANAGE_REMOTE |
			   PTL_MD_ACK_DISABLE,
		.eventq = shape->gets ? PTL_EQ_NONE : endpoint->eq,
	};

	if (PtlMEAttach(endpoint->ni, PORTAL_SHAPE, peer, i,
		    shape_is_wildcard(&shape->match, i) ? SHAPE_IGNORED : 0, PTL_RETAIN,
		    PTL_INS_AFTER, &shape->entries[i]) != PTL_OK)
		return false;
	shape->count++;
	return PtlMDAttach(shape->entries[i], descriptor, PTL_RETAIN, PTL_RETAIN, NULL) == PTL_OK;
}

bool shape_make(struct shape *shape, struct endpoint *endpoint, ptl_process_id_t peer,
	const struct landing *landing, const struct match_shape *match, bool gets)
{
	bool same = shape->match.depth == match->depth && shape->gets == gets &&
		    shape_wildcards(&shape->match) == shape_wildcards(match);

	shape->match.position = match->position;
	if (same)
		return true;
	shape_free(shape);
	shape->match = *match;
	shape->gets = gets;
	if (match->depth == 0)
		return true;
	shape->entries = malloc(match->depth * sizeof(shape->entries[0]));
	for (uint32_t i = 0; i < match->depth; i++)
		if (!shape->entries || !entry_make(shape, endpoint, peer, landing, i)) {
			shape_free(shape);
			return false;
		}
	return true;
}

void shape_free(struct shape *shape)
{
	while (shape->count > 0)
		descriptor_entry_close(shape->entries[--shape->count]);
	free(shape->entries);
	memset(shape, 0, sizeof(*shape));
}
