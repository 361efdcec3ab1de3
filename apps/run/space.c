/* SPDX-License-Identifier: BSD-3-Clause */
/* space.c - see space.h. */
#include "space.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct pair {
	char *key;
	char *value;
};

static void *pairs;

static int pair_compare(const void *one, const void *other)
{
	return strcmp(((const struct pair *)one)->key, ((const struct pair *)other)->key);
}

static struct pair *pair_find(const char *key)
{
	struct pair wanted = {.key = strdup(key)};
	struct pair **found = wanted.key ? tfind(&wanted, &pairs, pair_compare) : NULL;

	free(wanted.key);
	return found ? *found : NULL;
}

static struct pair *pair_add(const char *key)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	if (pair && (pair->key = strdup(key)) && tsearch(pair, &pairs, pair_compare))
		return pair;
	if (pair)
		free(pair->key);
	free(pair);
	return NULL;
}

bool space_put(const char *key, const char *value)
{
	struct pair *pair = pair_find(key);
	char *copy = strdup(value);

	if (copy && !pair)
		pair = pair_add(key);
	if (!copy || !pair) {
		free(copy);
		return false;
	}
	free(pair->value);
	pair->value = copy;
	return true;
}

const char *space_get(const char *key)
{
	const struct pair *pair = pair_find(key);

	return pair ? pair->value : NULL;
}
