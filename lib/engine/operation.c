/* SPDX-License-Identifier: BSD-3-Clause */
/* operation.c - the pool of operations in flight: private memory that grows by chunks and is never
 * given back before the end. */
#include <engine/state.h>

#include <stdlib.h>
#include <string.h>

bool operation_grow(struct engine *engine)
{
	struct operation *chunk;

	if (engine->chunk_count == OPERATION_CHUNKS)
		return false;
	if (!engine->chunks) {
		engine->chunks = calloc(OPERATION_CHUNKS, sizeof(*engine->chunks));
		if (!engine->chunks)
			return false;
	}
	chunk = calloc(OPERATION_CHUNK, sizeof(*chunk));
	if (!chunk)
		return false;
	for (uint32_t i = OPERATION_CHUNK; i-- > 0;) {
		chunk[i].index = engine->chunk_count * OPERATION_CHUNK + i;
		chunk[i].next = engine->free_operations;
		engine->free_operations = &chunk[i];
	}
	engine->chunks[engine->chunk_count++] = chunk;
	engine->free_count += OPERATION_CHUNK;
	return true;
}

uint64_t operation_name(const struct operation *operation)
{
	return (uint64_t)operation->generation << 32 | operation->index;
}

struct operation *operation_find(struct engine *engine, uint64_t name, enum operation_kind kind)
{
	uint32_t index = (uint32_t)name;
	struct operation *operation;

	if (index / OPERATION_CHUNK >= engine->chunk_count)
		return NULL;
	operation = &engine->chunks[index / OPERATION_CHUNK][index % OPERATION_CHUNK];
	if (operation->kind != kind || operation->generation != name >> 32)
		return NULL;
	return operation;
}

bool operation_names(const struct engine *engine, const struct space *space)
{
	for (uint32_t i = 0; i < engine->chunk_count * OPERATION_CHUNK; i++) {
		const struct operation *operation =
			&engine->chunks[i / OPERATION_CHUNK][i % OPERATION_CHUNK];

		if (operation->kind != OPERATION_FREE && operation->kind != OPERATION_NOTICE &&
			operation->space == space)
			return true;
	}
	return false;
}

void operation_pool_free(struct engine *engine)
{
	for (uint32_t i = 0; i < engine->chunk_count; i++)
		free(engine->chunks[i]);
	free(engine->chunks);
}
