/* SPDX-License-Identifier: BSD-3-Clause */
/* space.c - see space.h. */
#include "space.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
	char *key;
	char *value;
};

static void *pairs;
static size_t pairs_count;
static size_t bytes; /* of keys and values */
static char *text;
static size_t text_length;

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

	if (pair && (pair->key = strdup(key)) && tsearch(pair, &pairs, pair_compare)) {
		pairs_count++;
		bytes += strlen(key);
		return pair;
	}
	if (pair)
		free(pair->key);
	free(pair);
	return NULL;
}

bool space_put(const char *key, const char *value)
{
	struct pair *pair = pair_find(key);
	char *copy = bytes + strlen(key) + strlen(value) <= SPACE_BYTES ? strdup(value) : NULL;

	if (copy && !pair)
		pair = pair_add(key);
	if (!copy || !pair) {
		free(copy);
		return false;
	}
	bytes += strlen(value);
	bytes -= pair->value ? strlen(pair->value) : 0;
	free(pair->value);
	pair->value = copy;
	return true;
}

const char *space_get(const char *key)
{
	const struct pair *pair = pair_find(key);

	return pair ? pair->value : NULL;
}

/* --- all at once */

static void pair_write(const void *node, VISIT visit, void *stream)
{
	const struct pair *pair = *(struct pair *const *)node;

	if (visit == postorder || visit == leaf)
		fprintf(stream, "cmd=pair key=%s value=%s\n", pair->key, pair->value);
}

const char *space_text(size_t *length)
{
	FILE *stream = text ? NULL : open_memstream(&text, &text_length);

	if (stream) {
		fprintf(stream, "cmd=all rc=0 count=%zu\n", pairs_count);
		twalk_r(pairs, pair_write, stream);
		if (fclose(stream) != 0)
			space_forget_text();
	}
	*length = text ? text_length : 0;
	return text;
}

void space_forget_text(void)
{
	free(text);
	text = NULL;
}
