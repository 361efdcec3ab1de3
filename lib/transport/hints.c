/* SPDX-License-Identifier: BSD-3-Clause */
/* hints.c - see hints.h. */
#include <transport/hints.h>

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct hint {
	struct process process; /* first: hint_compare() */
	uint8_t address[FRAME_ADDRESS_BYTES];
};

static int hint_compare(const void *left, const void *right)
{
	const struct process *a = left, *b = right;

	if (a->nid != b->nid)
		return a->nid < b->nid ? -1 : 1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

static struct hint *hint_find(const struct hints *hints, struct process process)
{
	struct hint *const *found = tfind(&process, &hints->tree, hint_compare);

	return found ? *found : NULL;
}

void hints_put(struct hints *hints, struct process process, const uint8_t *address)
{
	struct hint *hint = hint_find(hints, process);

	if (!hint) {
		hint = malloc(sizeof(*hint));
		if (!hint)
			return;
		hint->process = process;
		if (!tsearch(hint, &hints->tree, hint_compare)) {
			free(hint);
			return;
		}
	}
	memcpy(hint->address, address, sizeof(hint->address));
}

const uint8_t *hints_find(const struct hints *hints, struct process process)
{
	const struct hint *hint = hint_find(hints, process);

	return hint ? hint->address : NULL;
}

void hints_free(struct hints *hints)
{
	tdestroy(hints->tree, free);
	hints->tree = NULL;
}
