/* SPDX-License-Identifier: BSD-3-Clause */
/* pieces.c - puts and gets of many pieces: lists of ranges, lists of addresses, strides. All pieces
 * of an operation belong to one group.
 */
#include "state.h"

#define LEVELS_MAX 32u

enum way { PUT, GET };

/* --- lists */

/* Of ranges, or of addresses of pieces that have one length. */
struct list {
	const gasnet_memvec_t *ranges; /* or NULL */
	void *const *addresses;
	size_t length, count;
	size_t at, used; /* the piece that comes next, and how much of it has gone */
};

static size_t piece_length(const struct list *list, size_t which)
{
	return list->ranges ? list->ranges[which].len : list->length;
}

static size_t list_size(const struct list *list)
{
	size_t size = 0;

	if (!list->ranges)
		return list->count * list->length;
	for (size_t i = 0; i < list->count; i++)
		size += list->ranges[i].len;
	return size;
}

/* How many bytes stand together where the list is: 0 at its end. */
static size_t list_room(struct list *list)
{
	while (list->at < list->count && list->used == piece_length(list, list->at)) {
		list->at++;
		list->used = 0;
	}
	return list->at < list->count ? piece_length(list, list->at) - list->used : 0;
}

static uint8_t *list_take(struct list *list, size_t length)
{
	uint8_t *address = list->ranges ? list->ranges[list->at].addr : list->addresses[list->at];

	address += list->used;
	list->used += length;
	return address;
}

static void add(group *one, enum way way, uint32_t rank, uint8_t *to, uint8_t *from, size_t length)
{
	if (way == PUT)
		put_add(one, rank, to, from, length);
	else
		get_add(one, to, rank, from, length);
}

static group *lists_add(group *one, enum way way, uint32_t rank, struct list to, struct list from)
{
	size_t room;

	if (list_size(&to) != list_size(&from))
		fatal("a %s of pieces has %zu bytes at its source and %zu at its destination: give "
		      "both the same number",
			way == PUT ? "put" : "get", list_size(&from), list_size(&to));
	while ((room = list_room(&to)) > 0) {
		size_t rest = list_room(&from);

		room = rest < room ? rest : room;
		add(one, way, rank, list_take(&to, room), list_take(&from, room), room);
	}
	return one;
}

/* --- strides */

struct strided {
	uint8_t *to, *from;
	size_t to_strides[LEVELS_MAX], from_strides[LEVELS_MAX];
	size_t run; /* bytes that stand together */
	size_t counts[LEVELS_MAX];
	size_t levels;
};

/* Returns false if there is nothing to do. */
static bool strided_read(struct strided *array, const size_t *to_strides,
	const size_t *from_strides, const size_t *count, size_t levels)
{
	array->run = count[0];
	array->levels = 0;
	for (size_t i = 0; i < levels; i++) {
		if (count[i + 1] == 0)
			return false;
		if (count[i + 1] == 1)
			continue;
		/* Pieces that touch each other on both sides are a longer run. */
		if (to_strides[i] == array->run && from_strides[i] == array->run) {
			array->run *= count[i + 1];
			continue;
		}
		if (array->levels == LEVELS_MAX)
			fatal("a strided transfer has more than %u levels: split it", LEVELS_MAX);
		array->to_strides[array->levels] = to_strides[i];
		array->from_strides[array->levels] = from_strides[i];
		array->counts[array->levels++] = count[i + 1];
	}
	return array->run > 0;
}

/* Goes on to the next run; returns false after the last one. */
static bool strided_next(struct strided *array, size_t done[LEVELS_MAX])
{
	for (size_t i = 0; i < array->levels; i++) {
		array->to += array->to_strides[i];
		array->from += array->from_strides[i];
		if (++done[i] < array->counts[i])
			return true;
		array->to -= array->to_strides[i] * done[i];
		array->from -= array->from_strides[i] * done[i];
		done[i] = 0;
	}
	return false;
}

static group *strided_add(group *one, enum way way, uint32_t rank, void *to,
	const size_t *to_strides, void *from, const size_t *from_strides, const size_t *count,
	size_t levels)
{
	struct strided array = {.to = to, .from = from};
	size_t done[LEVELS_MAX] = {0};

	if (!strided_read(&array, to_strides, from_strides, count, levels))
		return one;
	do
		add(one, way, rank, array.to, array.from, array.run);
	while (strided_next(&array, done));
	return one;
}

/* --- the interface */

#define LIST_V(side) ((struct list){.ranges = side##list, .count = side##count})
#define LIST_I(side)                                                                               \
	((struct list){.addresses = side##list, .length = side##len, .count = side##count})

/* name: without _bulk; parameters; call: adds the pieces to `one` */
#define THREE(name, parameters, call)                                                              \
	gasnet_handle_t name##_nb_bulk parameters                                                  \
	{                                                                                          \
		group *one = group_take();                                                         \
		return group_handle(call);                                                         \
	}                                                                                          \
	void name##_nbi_bulk parameters                                                            \
	{                                                                                          \
		group *one = group_now();                                                          \
		(void)call;                                                                        \
	}                                                                                          \
	void name##_bulk parameters                                                                \
	{                                                                                          \
		group *one = group_take();                                                         \
		gasnet_wait_syncnb(group_handle(call));                                            \
	}

THREE(gasnet_putv,
	(gasnet_node_t node, size_t dstcount, gasnet_memvec_t const dstlist[], size_t srccount,
		gasnet_memvec_t const srclist[]),
	lists_add(one, PUT, node, LIST_V(dst), LIST_V(src)))

THREE(gasnet_getv,
	(size_t dstcount, gasnet_memvec_t const dstlist[], gasnet_node_t node, size_t srccount,
		gasnet_memvec_t const srclist[]),
	lists_add(one, GET, node, LIST_V(dst), LIST_V(src)))

THREE(gasnet_puti,
	(gasnet_node_t node, size_t dstcount, void *const dstlist[], size_t dstlen, size_t srccount,
		void *const srclist[], size_t srclen),
	lists_add(one, PUT, node, LIST_I(dst), LIST_I(src)))

THREE(gasnet_geti,
	(size_t dstcount, void *const dstlist[], size_t dstlen, gasnet_node_t node, size_t srccount,
		void *const srclist[], size_t srclen),
	lists_add(one, GET, node, LIST_I(dst), LIST_I(src)))

THREE(gasnet_puts,
	(gasnet_node_t node, void *dstaddr, const size_t dststrides[], void *srcaddr,
		const size_t srcstrides[], const size_t count[], size_t stridelevels),
	strided_add(one, PUT, node, dstaddr, dststrides, srcaddr, srcstrides, count, stridelevels))

THREE(gasnet_gets,
	(void *dstaddr, const size_t dststrides[], gasnet_node_t node, void *srcaddr,
		const size_t srcstrides[], const size_t count[], size_t stridelevels),
	strided_add(one, GET, node, dstaddr, dststrides, srcaddr, srcstrides, count, stridelevels))
