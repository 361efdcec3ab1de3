/* SPDX-License-Identifier: BSD-3-Clause */
/* blocks.c - memory for the data of messages that no receive has asked for: entries of equal size,
 * which take messages one after the other. */
#include <messages/state.h>

#include <stdlib.h>

#include <base/pages.h>

uint64_t memory_left(const struct messages_options *options, uint64_t headers)
{
	const uint64_t used = headers * KEPT_BYTES;

	return used < options->memory ? options->memory - used : 0;
}

static size_t blocks_bytes(const struct messages *messages)
{
	return messages->blocks_max * messages->options.block;
}

bool blocks_open(struct messages *messages)
{
	struct messages_options *options = &messages->options;
	const uint64_t bytes = memory_left(options, (uint64_t)options->headers + options->spare);

	if (options->block == 0) {
		options->block = bytes / BLOCKS > BLOCK_BYTES ? bytes / BLOCKS : BLOCK_BYTES;
		if (options->block > bytes && bytes >= options->eager)
			options->block = bytes;
	}
	messages->blocks_max = (uint32_t)(bytes / options->block);
	messages->blocks = calloc(messages->blocks_max, sizeof(*messages->blocks));
	messages->memory = pages_map(blocks_bytes(messages));
	return (messages->blocks && messages->memory) || messages->blocks_max == 0;
}

void blocks_close(struct messages *messages)
{
	free(messages->blocks);
	pages_unmap(messages->memory, blocks_bytes(messages));
}

/* A block comes before those that are partly full. */
static void block_link(struct messages *messages, struct block *block)
{
	const struct entry_wish wish = {
		.portal = class_portal(block->class),
		.tier = 1,
		.first = true,
		.ignore = UINT64_MAX,
		.peer = UINT32_MAX,
		.start = messages->memory +
			 (size_t)(block - messages->blocks) * messages->options.block,
		.length = messages->options.block,
		.min_free = messages->options.eager,
		.most = messages->options.eager,
		.options = REGION_PUT,
		.log = TIER_BIT(TIER_UNLINK) | TIER_BIT(TIER_FREE),
		.item = block,
	};
	uint32_t index, generation;

	if (entry_append(messages, &wish, &index, &generation)) {
		messages->linked[block->class]++;
		return;
	}
	block->next = messages->spare;
	messages->spare = block;
}

void blocks_renew(struct messages *messages)
{
	const uint32_t *linked = messages->linked;

	while (linked[0] + linked[1] < BLOCKS_LINKED) {
		struct block *block = messages->spare;
		uint32_t before = linked[0] + linked[1];

		if (block) {
			messages->spare = block->next;
		} else {
			if (messages->blocks_made == messages->blocks_max)
				return;
			block = &messages->blocks[messages->blocks_made++];
			block->kind = ITEM_BLOCK;
		}
		block->class = messages->options.classes > 1 && linked[1] < linked[0];
		block_link(messages, block);
		if (linked[0] + linked[1] == before)
			return;
	}
}

void block_heard(struct messages *messages, struct block *block, const struct message_event *event)
{
	if (event->kind == TIER_UNLINK) {
		messages->linked[block->class]--;
	} else {
		block->next = messages->spare;
		messages->spare = block;
	}
	blocks_renew(messages);
}
