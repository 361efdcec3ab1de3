/* SPDX-License-Identifier: BSD-3-Clause */
/* chains.c - see chains.h. */
#include <match/chains.h>

#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 128 /* a power of two */

bool chains_open(
	struct chains *chains, const struct mask *mask, const uint64_t secret[2], size_t link)
{
	uint32_t *heads = chains->heads;

	if (!heads)
		heads = malloc(BUCKETS_MIN * sizeof(*heads));
	if (!heads)
		return false;
	memset(heads, 0xff, BUCKETS_MIN * sizeof(*heads)); /* MATCH_NONE */
	*chains = (struct chains){
		.mask = *mask,
		.secret = {secret[0], secret[1]},
		.link = link,
		.buckets = BUCKETS_MIN,
		.wide = BUCKETS_MIN - 1,
		.narrow = BUCKETS_MIN - 1,
		.room = chains->heads ? chains->room : BUCKETS_MIN,
		.heads = heads,
	};
	return true;
}

void chains_close(struct chains *chains)
{
	free(chains->heads);
}

void chains_grow(struct chains *chains, struct chained chained)
{
	uint32_t added = chains->buckets;
	uint32_t i, next, *divided;

	if (added == chains->room) {
		uint32_t *heads = realloc(chains->heads, (size_t)added * 2 * sizeof(*heads));

		if (!heads)
			return;
		chains->heads = heads;
		chains->room = added * 2;
	}
	if (added > chains->wide) {
		chains->narrow = chains->wide;
		chains->wide = 2 * chains->wide + 1;
	}
	chains->buckets++;
	chains->heads[added] = MATCH_NONE;
	divided = &chains->heads[added & chains->narrow];
	i = *divided;
	*divided = MATCH_NONE;
	for (; i != MATCH_NONE; i = next) {
		next = *chain_link(chains, chained, i);
		chain_push(chains, chained, i);
	}
}

uint32_t chains_find_behind(const struct chains *chains, struct chained chained, uint32_t i,
	uint64_t bits, uint64_t process)
{
	do
		i = *chain_link(chains, chained, i);
	while (i != MATCH_NONE && !chains_ask(chains, chained, i, bits, process));
	return i;
}
