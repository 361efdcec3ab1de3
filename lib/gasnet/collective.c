/* SPDX-License-Identifier: BSD-3-Clause */
/* collective.c - blocking collectives: ranks offer memory to others, who get what they need of it.
 *
 * C1. An offer is an active message with an address. Who has got the bytes says so, and a rank
 *     leaves a collective, or goes on to its next step, when all its offers are taken. All ranks
 *     make the same steps in the same order, so a rank has one offer of another at most, even of a
 *     rank that is a step ahead.
 * C2. A rank offers its memory and writes into its memory only while it is in the call: that is
 *     what the flags NOSYNC and MYSYNC ask for.
 */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#define OFFER 66u /* handlers of the library */
#define TAKEN 67u

struct offer {
	uint8_t *address;
	int ready;
};

static struct offer *offers; /* by rank */
static unsigned taken;       /* of this rank's offers */
static bool several;         /* ranks have several images */

/* --- offers */

static void offer_come(
	gasnet_token_t token, gasnet_handlerarg_t address_high, gasnet_handlerarg_t address_low)
{
	struct offer *offer;
	gasnet_node_t from;

	(void)gasnet_AMGetMsgSource(token, &from);
	offer = &offers[from];
	offer->address = (uint8_t *)(uintptr_t)joined(address_high, address_low);
	__atomic_store_n(&offer->ready, 1, __ATOMIC_RELEASE);
}

static void offer_taken(gasnet_token_t token)
{
	(void)token;
	__atomic_add_fetch(&taken, 1, __ATOMIC_RELEASE);
}

void (*collective_handler(unsigned index))(void)
{
	if (index == OFFER)
		return (void (*)(void))offer_come;
	return index == TAKEN ? (void (*)(void))offer_taken : NULL;
}

static void offer(uint32_t to, const void *address)
{
	(void)gasnet_AMRequestShort2(to, OFFER, HALVES((uintptr_t)address));
}

static void taken_await(unsigned count)
{
	unsigned tries = 0;

	while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < count)
		wait_turn(&tries);
	__atomic_sub_fetch(&taken, count, __ATOMIC_RELAXED);
}

/* Begins to get bytes of what a rank offers. */
static void pull(group *one, uint32_t from, size_t offset, void *to, size_t length)
{
	unsigned tries = 0;

	while (!__atomic_load_n(&offers[from].ready, __ATOMIC_ACQUIRE))
		wait_turn(&tries);
	__atomic_store_n(&offers[from].ready, 0, __ATOMIC_RELAXED);
	get_anywhere(one, to, from, offers[from].address + offset, length);
}

static void pull_now(uint32_t from, size_t offset, void *to, size_t length)
{
	group *one = group_take();

	pull(one, from, offset, to, length);
	gasnet_wait_syncnb(group_handle(one));
	(void)gasnet_AMRequestShort0(from, TAKEN);
}

static void copy(uint8_t *to, const uint8_t *from, size_t length)
{
	if (length > 0)
		memmove(to, from, length);
}

/* A part of a vector, which may be NULL if its parts are empty. */
static uint8_t *part(void *vector, uint32_t which, size_t length)
{
	return length > 0 ? (uint8_t *)vector + which * length : NULL;
}

/* --- steps */

/* Down a binary tree. */
static void broadcast(void *to, uint32_t root, void *from, size_t length)
{
	uint64_t size = gasnet.size, place = (gasnet.rank + size - root) % size;
	unsigned children = 0;

	if (place == 0)
		copy(to, from, length);
	else
		pull_now((uint32_t)(((place - 1) / 2 + root) % size), 0, to, length);
	for (uint64_t child = 2 * place + 1; child <= 2 * place + 2 && child < size; child++) {
		offer((uint32_t)((child + root) % size), to);
		children++;
	}
	taken_await(children);
}

static void scatter(void *to, uint32_t root, void *from, size_t length)
{
	if (gasnet.rank != root) {
		pull_now(root, gasnet.rank * length, to, length);
		return;
	}
	for (uint32_t i = 0; i < gasnet.size; i++)
		if (i != root)
			offer(i, from);
	copy(to, part(from, root, length), length);
	taken_await(gasnet.size - 1);
}

/* Gets a part of what each other rank offers, beginning with the next one. */
static void pull_all(void *to, size_t offset, size_t length)
{
	group *one = group_take();

	for (uint32_t i = 1; i < gasnet.size; i++) {
		uint32_t from = (gasnet.rank + i) % gasnet.size;

		pull(one, from, offset, part(to, from, length), length);
	}
	gasnet_wait_syncnb(group_handle(one));
	for (uint32_t i = 1; i < gasnet.size; i++)
		(void)gasnet_AMRequestShort0((gasnet.rank + i) % gasnet.size, TAKEN);
}

static void gather(uint32_t root, void *to, void *from, size_t length)
{
	if (gasnet.rank != root) {
		offer(root, from);
		taken_await(1);
		return;
	}
	copy(part(to, root, length), from, length);
	pull_all(to, 0, length);
}

static void exchange(void *to, void *from, size_t length)
{
	for (uint32_t i = 1; i < gasnet.size; i++)
		offer((gasnet.rank + i) % gasnet.size, from);
	copy(part(to, gasnet.rank, length), part(from, gasnet.rank, length), length);
	pull_all(to, gasnet.rank * length, length);
	taken_await(gasnet.size - 1);
}

static void meet(void)
{
	gather(0, NULL, NULL, 0);
	broadcast(NULL, 0, NULL, 0);
}

/* --- the interface */

void collective_open(void)
{
	offers = calloc(gasnet.size, sizeof(*offers));
	if (!offers)
		fatal("there is no memory for %u ranks: start fewer on this host", gasnet.size);
}

void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t my_image,
	gasnet_coll_fn_entry_t table[], size_t count, int flags)
{
	(void)my_image;
	(void)table;
	(void)count;
	(void)flags;
	for (uint32_t i = 0; images && i < gasnet.size; i++)
		several |= images[i] != 1;
}

static void begin(const char *what, gasnet_team_handle_t team, uint32_t root, int flags)
{
	if (gasnet.stage != STAGE_ATTACHED)
		fatal("%s: the segment is not attached: call gasnet_attach first", what);
	if (team != GASNET_TEAM_ALL || several)
		fatal("%s: another team or several images are not supported: use "
		      "GASNET_TEAM_ALL, with one image for each rank",
			what);
	if (root >= gasnet.size)
		fatal("%s: rank %u does not exist: give a rank of the job", what, root);
	if (flags & GASNET_COLL_IN_ALLSYNC)
		meet();
}

static void end(int flags)
{
	if (flags & GASNET_COLL_OUT_ALLSYNC)
		meet();
}

void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t root, void *src,
	size_t nbytes, int flags)
{
	begin("gasnet_coll_broadcast", team, root, flags);
	broadcast(dst, root, src, nbytes);
	end(flags);
}

void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t root, void *src,
	size_t nbytes, int flags)
{
	begin("gasnet_coll_scatter", team, root, flags);
	scatter(dst, root, src, nbytes);
	end(flags);
}

void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t root, void *dst, void *src,
	size_t nbytes, int flags)
{
	begin("gasnet_coll_gather", team, root, flags);
	gather(root, dst, src, nbytes);
	end(flags);
}

void gasnet_coll_gather_all(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
	begin("gasnet_coll_gather_all", team, 0, flags);
	gather(0, dst, src, nbytes);
	broadcast(dst, 0, dst, nbytes * gasnet.size);
	end(flags);
}

void gasnet_coll_exchange(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
	begin("gasnet_coll_exchange", team, 0, flags);
	exchange(dst, src, nbytes);
	end(flags);
}
