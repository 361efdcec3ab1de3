/* SPDX-License-Identifier: BSD-3-Clause */
/* operation.c - operations in flight, by name. */
#include <engine/state.h>

bool operation_make(struct engine *engine, uint32_t count)
{
	struct pool *pool = &engine->operations;
	uint32_t index = pool->made;
	bool enough = pool_reserve(pool, count);

	for (; index < pool->made; index++)
		((struct operation *)pool_at(pool, index))->index = index;
	return enough;
}

/* Never 0, which says in a request that its initiator wants no answer. */
uint64_t operation_name(const struct operation *operation)
{
	return (uint64_t)operation->generation << 32 | (operation->index + 1);
}

struct operation *operation_find(struct engine *engine, uint64_t name, enum operation_kind kind)
{
	uint32_t index = (uint32_t)name - 1;
	struct operation *operation;

	if (index >= engine->operations.made)
		return NULL;
	operation = pool_at(&engine->operations, index);
	if (operation->kind != kind || operation->generation != name >> 32)
		return NULL;
	return operation;
}

bool operation_names(const struct engine *engine, const struct space *space)
{
	for (uint32_t i = 0; i < engine->operations.made; i++) {
		const struct operation *operation = pool_at(&engine->operations, i);

		if (operation->kind != OPERATION_FREE && operation->kind != OPERATION_NOTICE &&
			operation->kind != OPERATION_ANSWER && operation->space == space)
			return true;
	}
	return false;
}
