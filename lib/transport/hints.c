/* SPDX-License-Identifier: BSD-3-Clause */
/* hints.c - see hints.h. Slots are searched from where the process's hash leads to; at least a
 * quarter of them are free. */
#include <transport/hints.h>

#include <stdlib.h>
#include <string.h>

#include <transport/peer.h>

#define SLOTS_FIRST 64u

static uint32_t hints_hash(struct process process)
{
	uint64_t key = (uint64_t)process.nid << 32 | process.pid;

	key *= UINT64_C(0x9e3779b97f4a7c15);
	key ^= key >> 32;
	key *= UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(key >> 32);
}

/* The process's slot, or the free one where it would be. */
static struct hint *hint_slot(const struct hints *hints, struct process process)
{
	uint32_t i = hints_hash(process) & hints->mask;

	while (hints->slots[i].taken && !process_same(hints->slots[i].process, process))
		i = (i + 1) & hints->mask;
	return &hints->slots[i];
}

static bool hints_grow(struct hints *hints)
{
	struct hints larger = {.mask = hints->slots ? hints->mask * 2 + 1 : SLOTS_FIRST - 1};

	if (hints->slots && hints->count < (hints->mask + 1) / 4 * 3)
		return true;
	larger.slots = calloc((size_t)larger.mask + 1, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (uint32_t i = 0; hints->slots && i <= hints->mask; i++)
		if (hints->slots[i].taken)
			*hint_slot(&larger, hints->slots[i].process) = hints->slots[i];
	larger.count = hints->count;
	free(hints->slots);
	*hints = larger;
	return true;
}

void hints_put(struct hints *hints, struct process process, const uint8_t *address)
{
	struct hint *slot;

	if (!hints_grow(hints))
		return;
	slot = hint_slot(hints, process);
	hints->count += !slot->taken;
	slot->process = process;
	slot->taken = true;
	memcpy(slot->address, address, sizeof(slot->address));
}

const uint8_t *hints_find(const struct hints *hints, struct process process)
{
	const struct hint *slot = hints->slots ? hint_slot(hints, process) : NULL;

	return slot && slot->taken ? slot->address : NULL;
}

void hints_free(struct hints *hints)
{
	free(hints->slots);
	*hints = (struct hints){0};
}
