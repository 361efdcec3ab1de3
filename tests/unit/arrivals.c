/* SPDX-License-Identifier: BSD-3-Clause */
/* arrivals.c - see arrivals.h. */
#include "arrivals.h"

#include <string.h>

char memory[64];
const char data[64] = "The quick brown fox jumps over the lazy dog, and then some more.";
bool arrivals_are_whole;

int arrivals_in_pieces(void **state)
{
	(void)state;
	arrivals_are_whole = false;
	fake_set_frame(0);
	return 0;
}

int arrivals_whole(void **state)
{
	(void)state;
	arrivals_are_whole = true;
	fake_set_frame(FAKE_FRAME);
	return 0;
}

int arrivals_setup(void **state)
{
	memset(memory, 0, sizeof(memory));
	return rig_setup(state);
}

uint64_t attach_any(struct rig *rig, uint64_t queue, uint32_t options)
{
	struct region_description region = RIG_REGION(memory, queue);

	region.options = options;
	return rig_attach(rig, rig_entry_any(rig, false), &region, 0);
}

struct fake_arrival *put(struct message_header *header, uint64_t length)
{
	header->requested = length;
	return fake_deliver(RIG_PEER, header, data, length);
}
