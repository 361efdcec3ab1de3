/* SPDX-License-Identifier: BSD-3-Clause */
/* pieces.c - transfers of many pieces, chosen at random, against byte after byte. */
#include "ranks.h"

#include <string.h>

#include <gasnet_vis.h>

#define AREA   ((size_t)65536)
#define BYTES  4096 /* of a transfer at most */
#define PIECES 4200
#define LEVELS 4
#define ROUNDS 600

enum how { BLOCKING, EXPLICIT, IMPLICIT, HOWS };

static uint8_t local[AREA], local_model[AREA], remote_model[AREA], back[AREA];
static uint8_t *to[BYTES], *from[BYTES]; /* each byte that goes */
static unsigned state;

static unsigned chance(unsigned below)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % below;
}

/* The bytes of a side, in order. */
struct side {
	uint8_t *base, **bytes;
	size_t count;
};

static void bytes_add(struct side *side, uint8_t *address, size_t length)
{
	for (size_t i = 0; i < length; i++)
		side->bytes[side->count++] = address + i;
}

static void handle_wait(enum how how, gasnet_handle_t handle)
{
	if (how == EXPLICIT)
		gasnet_wait_syncnb(handle);
	else if (how == IMPLICIT)
		gasnet_wait_syncnbi_all();
}

/* --- lists of ranges */

static size_t ranges_cut(struct side *side, gasnet_memvec_t *ranges, size_t total)
{
	uint8_t *at = side->base;
	size_t count = 0;

	while (side->count < total) {
		size_t length = chance(chance(3) ? 12 : 300);

		if (length > total - side->count)
			length = total - side->count;
		at += chance(7) * (length > 0);
		ranges[count++] = (gasnet_memvec_t){at, length};
		bytes_add(side, at, length);
		at += length;
		CHECK(at <= side->base + AREA && count < PIECES);
	}
	return count;
}

static void ranges_go(
	bool put, enum how how, unsigned rank_to, struct side *target, struct side *source)
{
	static gasnet_memvec_t out[PIECES], in[PIECES];
	size_t total = 1 + chance(BYTES), ins = ranges_cut(target, in, total),
	       outs = ranges_cut(source, out, total);
	gasnet_handle_t handle = GASNET_INVALID_HANDLE;

	if (put && how == BLOCKING)
		gasnet_putv_bulk(rank_to, ins, in, outs, out);
	else if (put && how == EXPLICIT)
		handle = gasnet_putv_nb_bulk(rank_to, ins, in, outs, out);
	else if (put)
		gasnet_putv_nbi_bulk(rank_to, ins, in, outs, out);
	else if (how == BLOCKING)
		gasnet_getv_bulk(ins, in, rank_to, outs, out);
	else if (how == EXPLICIT)
		handle = gasnet_getv_nb_bulk(ins, in, rank_to, outs, out);
	else
		gasnet_getv_nbi_bulk(ins, in, rank_to, outs, out);
	handle_wait(how, handle);
}

/* --- lists of addresses */

static void addresses_cut(struct side *side, void **addresses, size_t count, size_t length)
{
	uint8_t *at = side->base;

	for (size_t i = 0; i < count; i++) {
		at += chance(5);
		addresses[i] = at;
		bytes_add(side, at, length);
		at += length;
	}
}

static void addresses_go(
	bool put, enum how how, unsigned rank_to, struct side *target, struct side *source)
{
	static void *out[PIECES], *in[PIECES];
	static const size_t lengths[] = {1, 2, 3, 4, 6, 8, 12, 24};
	size_t total = 24 * (1 + chance(40)), length = lengths[chance(8)],
	       other = lengths[chance(8)], ins = total / length, outs = total / other;
	gasnet_handle_t handle = GASNET_INVALID_HANDLE;

	addresses_cut(target, in, ins, length);
	addresses_cut(source, out, outs, other);
	if (put && how == BLOCKING)
		gasnet_puti_bulk(rank_to, ins, in, length, outs, out, other);
	else if (put && how == EXPLICIT)
		handle = gasnet_puti_nb_bulk(rank_to, ins, in, length, outs, out, other);
	else if (put)
		gasnet_puti_nbi_bulk(rank_to, ins, in, length, outs, out, other);
	else if (how == BLOCKING)
		gasnet_geti_bulk(ins, in, length, rank_to, outs, out, other);
	else if (how == EXPLICIT)
		handle = gasnet_geti_nb_bulk(ins, in, length, rank_to, outs, out, other);
	else
		gasnet_geti_nbi_bulk(ins, in, length, rank_to, outs, out, other);
	handle_wait(how, handle);
}

/* --- strides */

static void strided_cut(
	struct side *side, uint8_t *at, const size_t *strides, const size_t *count, size_t level)
{
	if (level == 0) {
		bytes_add(side, at, count[0]);
		return;
	}
	for (size_t i = 0; i < count[level]; i++)
		strided_cut(side, at + i * strides[level - 1], strides, count, level - 1);
}

/* Distances at which pieces do not overlap; often they touch. */
static void strides_choose(size_t *strides, const size_t *count, size_t levels)
{
	size_t extent = count[0];

	for (size_t i = 0; i < levels; i++) {
		strides[i] = extent + (chance(2) ? chance(9) : 0);
		extent = strides[i] * count[i + 1];
	}
}

static void size_swap(size_t *a, size_t *b)
{
	size_t kept = *a;

	*a = *b;
	*b = kept;
}

static void strided_go(
	bool put, enum how how, unsigned rank_to, struct side *target, struct side *source)
{
	size_t in[LEVELS], out[LEVELS], count[LEVELS + 1], levels = chance(LEVELS);
	gasnet_handle_t handle = GASNET_INVALID_HANDLE;
	void *into = target->base, *from_here = source->base;

	count[0] = chance(30);
	for (size_t i = 0; i < levels; i++)
		count[i + 1] = chance(10) ? 1 + chance(4) : 0;
	strides_choose(in, count, levels);
	strides_choose(out, count, levels);
	if (levels > 1 && chance(3) == 0) { /* rows and columns may be told in any order */
		size_swap(&in[0], &in[levels - 1]);
		size_swap(&out[0], &out[levels - 1]);
		size_swap(&count[1], &count[levels]);
	}
	strided_cut(target, target->base, in, count, levels);
	strided_cut(source, source->base, out, count, levels);
	if (put && how == BLOCKING)
		gasnet_puts_bulk(rank_to, into, in, from_here, out, count, levels);
	else if (put && how == EXPLICIT)
		handle = gasnet_puts_nb_bulk(rank_to, into, in, from_here, out, count, levels);
	else if (put)
		gasnet_puts_nbi_bulk(rank_to, into, in, from_here, out, count, levels);
	else if (how == BLOCKING)
		gasnet_gets_bulk(into, in, rank_to, from_here, out, count, levels);
	else if (how == EXPLICIT)
		handle = gasnet_gets_nb_bulk(into, in, rank_to, from_here, out, count, levels);
	else
		gasnet_gets_nbi_bulk(into, in, rank_to, from_here, out, count, levels);
	handle_wait(how, handle);
}

static void one_round(unsigned rank_to, unsigned number)
{
	static void (*const kinds[])(bool, enum how, unsigned, struct side *, struct side *) = {
		ranges_go, addresses_go, strided_go};
	uint8_t *remote = segments[rank_to];
	bool put = number % 2, region = number % 7 == 0;
	struct side target = {put ? remote : local, to, 0},
		    source = {put ? local : remote, from, 0};
	uint8_t *models[] = {local_model, remote_model};

	if (region)
		gasnet_begin_nbi_accessregion();
	kinds[number % 3](
		put, region ? EXPLICIT : (enum how)chance(HOWS), rank_to, &target, &source);
	if (region)
		gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
	CHECK(target.count == source.count);
	for (size_t i = 0; i < target.count; i++)
		models[put][to[i] - target.base] = models[!put][from[i] - source.base];
	gasnet_get(back, rank_to, remote, AREA);
	CHECK(memcmp(back, remote_model, AREA) == 0);
	CHECK(memcmp(local, local_model, AREA) == 0);
}

/* Each rank has a part of the next one's segment. */
void pieces_run(void)
{
	unsigned rank_to = (rank + 1) % ranks;

	state = rank;
	pattern_fill(local, AREA, rank);
	memcpy(local_model, local, AREA);
	gasnet_put(rank_to, segments[rank_to], remote_model, AREA);
	for (unsigned i = 0; i < ROUNDS; i++)
		one_round(rank_to, i);
	barrier_pass();
}
