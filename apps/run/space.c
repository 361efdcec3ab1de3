/* SPDX-License-Identifier: BSD-3-Clause */
/* space.c - see space.h. */
#include "space.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What malloc() takes for a pair besides the characters of its key and value, at most: 32 bytes for
 * the node of the tree, 48 for the pair, 32 for the value. */
#define PAIR_BYTES 112u

struct pair {
	const char *key; /* behind the structure */
	char *value;
};

static void *pairs;
static size_t pairs_count;
static size_t bytes; /* that the pairs take */
static char *text;
static size_t text_length;

static int pair_compare(const void *one, const void *other)
{
	return strcmp(((const struct pair *)one)->key, ((const struct pair *)other)->key);
}

static struct pair *pair_find(const char *key)
{
	const struct pair wanted = {.key = key};
	struct pair **found = tfind(&wanted, &pairs, pair_compare);

	return found ? *found : NULL;
}

static struct pair *pair_add(const char *key)
{
	size_t length = strlen(key);
	struct pair *pair = malloc(sizeof(*pair) + length + 1);

	if (!pair)
		return NULL;
	*pair = (struct pair){.key = memcpy(pair + 1, key, length + 1)};
	if (!tsearch(pair, &pairs, pair_compare)) {
		free(pair);
		return NULL;
	}
	pairs_count++;
	bytes += length + PAIR_BYTES;
	return pair;
}

bool space_put(const char *key, const char *value)
{
	struct pair *pair = pair_find(key);
	size_t more = strlen(value) + (pair ? 0 : strlen(key) + PAIR_BYTES);
	char *copy = bytes + more <= SPACE_BYTES ? strdup(value) : NULL;

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
