/* SPDX-License-Identifier: BSD-3-Clause */
/* transfer.c - puts, gets, values and memset, and what they are waited for by.
 *
 * An operation belongs to a group, which counts its open puts and gets: a handle is a group of one,
 * an access region is a group, and a thread's implicit operations outside of regions are one that
 * is never handed out. Each operation has one event, an ACK or a REPLY, whose user_ptr is the group
 * with a tag.
 *
 * T1. The operations in progress are fewer than the queue has entries, so no event is lost: who
 *     begins one more takes events first.
 * T2. A group is freed by its thread, after its last event.
 * T3. Memory of a neighbour that this process has mapped (P1) is written and read in the call, as
 *     its own memory is. Others see what was written when the call returns, also if they read
 *     it so. Some of these calls poll: a program may wait for a change in such a loop while others
 *     wait for its messages.
 */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#define GROUPS      256u /* allocated at once */
#define BOUNCE_MAX  32768u
#define VALUE_MAX   sizeof(gasnet_register_value_t)
#define TAG_GET     ((uintptr_t)1) /* of user_ptr: a get */
#define TAG_BOUNCE  ((uintptr_t)2) /* a bounce buffer, whose put it is */
#define TAGS        (TAG_GET | TAG_BOUNCE)
#define MEMSET      64u /* handlers of the library */
#define MEMSET_DONE 65u
#define FILLS       256u /* memsets at other ranks in progress, at most */
#define POLL_TURNS  64u  /* copies */

enum { PUTS, GETS, DIRECTIONS };

struct gasnet_postern_handle {
	unsigned open[DIRECTIONS];     /* changed by any thread that takes events */
	gasnet_register_value_t value; /* of gasnet_get_nb_val() */
	struct gasnet_postern_handle *next;
	const void *owner; /* of a handle: its thread's `implicit`; NULL: it is no handle */
};

/* A copy of what a put sends, because its source may change. */
struct bounce {
	group *group;
	uint8_t bytes[];
};

/* A memset at another rank, whose reply says its index. */
struct fill {
	group *group; /* NULL: the place is free */
	uint32_t rank;
};

LOCK(fill_lock); /* fills */
static struct fill fills[FILLS];
static PER_THREAD group implicit;
static PER_THREAD group *region; /* that is being recorded, or NULL */
static PER_THREAD group *free_groups;
static unsigned in_progress;

/* --- counts */

static void count_add(unsigned *count, unsigned number)
{
#ifdef GASNET_SEQ
	*count += number;
#else
	__atomic_add_fetch(count, number, __ATOMIC_ACQ_REL);
#endif
}

static unsigned count_read(const unsigned *count)
{
	return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}

static bool is_over(const group *one)
{
	return count_read(&one->open[PUTS]) == 0 && count_read(&one->open[GETS]) == 0;
}

/* --- groups */

group *group_take(void)
{
	group *one = free_groups;

	if (!one) {
		one = calloc(GROUPS, sizeof(*one));
		if (!one)
			fatal("there is no memory for a handle: have fewer operations pending");
		for (unsigned i = 0; i + 1 < GROUPS; i++)
			one[i].next = &one[i + 1];
	}
	free_groups = one->next;
	return one;
}

static void group_give(group *one)
{
	one->owner = NULL;
	one->next = free_groups;
	free_groups = one;
}

group *group_now(void)
{
	return region ? region : &implicit;
}

gasnet_handle_t group_handle(group *one)
{
	one->owner = &implicit;
	if (!is_over(one))
		return one;
	group_give(one);
	return GASNET_INVALID_HANDLE;
}

static void handle_look(const group *one)
{
	call_look("a synchronisation of handles");
	if (gasnet.debug && one->owner != &implicit)
		fatal("a handle is synchronised %s: each handle is synchronised once, by the "
		      "thread "
		      "that got it",
			one->owner ? "by another thread" : "again");
}

/* --- events */

void transfer_take(const ptl_event_t *event)
{
	uintptr_t tagged = (uintptr_t)event->user_ptr;
	void *object = (void *)(tagged & ~TAGS);
	group *one = tagged & TAG_BOUNCE ? ((struct bounce *)object)->group : object;

	if (event->ni_fail_type != PTL_NI_OK) {
		exit_await();
		fatal("a %s, %zu bytes into the segment of another rank, failed: %s",
			tagged & TAG_GET ? "get" : "put", (size_t)event->remote_offset,
			PtlToStr(event->ni_fail_type, PTL_STR_FAIL_TYPE));
	}
	if (tagged & TAG_BOUNCE)
		free(object);
	count_add(&in_progress, -1u);
	count_add(&one->open[tagged & TAG_GET ? GETS : PUTS], -1u);
}

/* Takes what events there are, or what a group waits for: a look at an empty queue is a turn of
 * Portals. Returns whether there was any. */
static bool transfer_poll(const group *one)
{
	ptl_event_t event;
	bool any = false;
	int code;

	while (count_read(&in_progress) > 0 && !(any && one && is_over(one))) {
		code = PtlEQGet(gasnet.transfers, &event);
		if (code == PTL_EQ_EMPTY)
			break;
		must_be(code, "PtlEQGet(transfers)");
		transfer_take(&event);
		any = true;
	}
	return any;
}

/* One turn of a wait for a group, or, with NULL, for an event of any. */
static void transfer_wait(const group *one, unsigned *tries)
{
	if (transfer_poll(one))
		*tries = 0;
	else
		wait_turn(tries);
}

/* For a call that waits for nothing: others may wait for this rank's handlers. */
static void poll_now_and_then(void)
{
	static PER_THREAD unsigned turns;

	if (++turns % POLL_TURNS == 0)
		(void)receive_poll();
}

static void memory_open(enum portal portal, void *start, size_t size, unsigned options)
{
	const ptl_me_t me = {
		.start = start,
		.length = size,
		.ct_handle = PTL_CT_NONE,
		.uid = gasnet.uid,
		.options = options | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE,
		.match_id = {.rank = PTL_RANK_ANY},
	};
	ptl_handle_me_t entry;
	ptl_pt_index_t index;

	must(PtlPTAlloc(gasnet.ni, 0, PTL_EQ_NONE, portal, &index));
	if (size > 0)
		must(PtlMEAppend(gasnet.ni, portal, &me, PTL_PRIORITY_LIST, NULL, &entry));
}

void transfer_open(void)
{
	const struct rank *own = &gasnet.ranks[gasnet.rank];

	memory_open(PORTAL_TRANSFERS, own->address, own->size, PTL_ME_OP_PUT | PTL_ME_OP_GET);
	memory_open(PORTAL_ANYWHERE, NULL, PTL_SIZE_MAX, PTL_ME_OP_GET);
}

/* --- beginning */

/* T1. */
static void operation_begin(group *one, int direction)
{
	unsigned tries = 0;

	exit_look();
	poll_now_and_then();
	while (count_read(&in_progress) + GASNETI_MAX_THREADS >= gasnet.transfer_most)
		transfer_wait(NULL, &tries);
	count_add(&in_progress, 1);
	count_add(&one->open[direction], 1);
}

static ptl_size_t offset_of(uint32_t rank, const void *address)
{
	return (ptl_size_t)((uintptr_t)address - (uintptr_t)gasnet.ranks[rank].address);
}

/* memory: what `from` is read by. */
static void put_begin(group *one, ptl_handle_md_t memory, uintptr_t user, uint32_t rank, void *to,
	const void *from, size_t length)
{
	operation_begin(one, PUTS);
	must(PtlPut(memory, (ptl_size_t)(uintptr_t)from, length, PTL_ACK_REQ,
		(ptl_process_t){.rank = rank}, PORTAL_TRANSFERS, 0, offset_of(rank, to),
		(void *)user, 0));
}

static void get_begin(
	group *one, enum portal portal, void *to, uint32_t rank, ptl_size_t offset, size_t length)
{
	operation_begin(one, GETS);
	must(PtlGet(gasnet.transfer, (ptl_size_t)(uintptr_t)to, length,
		(ptl_process_t){.rank = rank}, portal, 0, offset,
		(void *)((uintptr_t)one | TAG_GET)));
}

static void remote_check(const char *what, uint32_t rank, const void *remote, size_t length)
{
	if (gasnet.stage != STAGE_ATTACHED || rank >= gasnet.size)
		fatal("%s to rank %u: %s", what, rank,
			gasnet.stage != STAGE_ATTACHED ? "call gasnet_attach first"
						       : "there is none");
	segment_check(what, rank, remote, length);
	call_look(what);
}

/* T3. */
static void near_begin(uint32_t rank)
{
	exit_look();
	if (rank != gasnet.rank)
		poll_now_and_then();
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
}

static void near_written(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void near_read(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

void put_add(group *one, uint32_t rank, void *to, const void *from, size_t length)
{
	void *here;

	remote_check("a put", rank, to, length);
	here = near(rank, to);
	if (length == 0)
		return;
	if (!here) {
		put_begin(one, gasnet.transfer, (uintptr_t)one, rank, to, from, length);
		return;
	}
	near_begin(rank);
	memmove(here, from, length);
	near_written();
}

void get_add(group *one, void *to, uint32_t rank, const void *from, size_t length)
{
	const void *here;

	remote_check("a get", rank, from, length);
	here = near(rank, from);
	if (length == 0)
		return;
	if (!here) {
		get_begin(one, PORTAL_TRANSFERS, to, rank, offset_of(rank, from), length);
		return;
	}
	near_begin(rank);
	memmove(to, here, length);
	near_read();
}

void get_anywhere(group *one, void *to, uint32_t rank, const void *from, size_t length)
{
	if (length > 0)
		get_begin(one, PORTAL_ANYWHERE, to, rank, (ptl_size_t)(uintptr_t)from, length);
}

static void group_await(const group *one)
{
	unsigned tries = 0;

	while (!is_over(one))
		transfer_wait(one, &tries);
}

/* The source may change after the return. */
static void put_copy_add(group *one, uint32_t rank, void *to, const void *from, size_t length)
{
	struct bounce *bounce;

	remote_check("a put", rank, to, length);
	if (length == 0 || near(rank, to)) {
		put_add(one, rank, to, from, length);
	} else if (length <= SMALL_MAX) {
		put_begin(one, gasnet.transfer_small, (uintptr_t)one, rank, to, from, length);
	} else if (length > BOUNCE_MAX) {
		group direct = {{0}, 0, NULL, NULL};

		put_add(&direct, rank, to, from, length);
		group_await(&direct);
	} else {
		bounce = malloc(sizeof(*bounce) + length);
		if (!bounce)
			fatal("there is no memory for a copy of %zu bytes: use gasnet_put_bulk",
				length);
		bounce->group = one;
		memcpy(bounce->bytes, from, length);
		put_begin(one, gasnet.transfer, (uintptr_t)bounce | TAG_BOUNCE, rank, to,
			bounce->bytes, length);
	}
}

/* --- memset: an active message of the library */

/* Returns a place's index; FILLS: none is free. */
static unsigned fill_take(group *one, uint32_t rank)
{
	static unsigned next;
	unsigned tried = 0, index;

	lock(fill_lock);
	while (tried < FILLS && fills[next % FILLS].group) {
		tried++;
		next++;
	}
	index = tried < FILLS ? next++ % FILLS : FILLS;
	if (index < FILLS)
		fills[index] = (struct fill){one, rank};
	unlock(fill_lock);
	return index;
}

/* Returns the group of a memset that a rank has done; NULL: there is none at this rank. */
static group *fill_end(uint32_t index, uint32_t rank)
{
	group *one = NULL;

	lock(fill_lock);
	if (index < FILLS && fills[index].rank == rank) {
		one = fills[index].group;
		fills[index].group = NULL;
	}
	unlock(fill_lock);
	return one;
}

static void memset_do(gasnet_token_t token, gasnet_handlerarg_t address_high,
	gasnet_handlerarg_t address_low, gasnet_handlerarg_t value, gasnet_handlerarg_t length_high,
	gasnet_handlerarg_t length_low, gasnet_handlerarg_t index)
{
	void *start = (void *)(uintptr_t)joined(address_high, address_low);
	const size_t length = joined(length_high, length_low);
	gasnet_node_t from;

	(void)gasnet_AMGetMsgSource(token, &from);
	if (!segment_has(gasnet.rank, start, length))
		nonsense(from);
	memset(start, value, length);
	(void)gasnet_AMReplyShort1(token, MEMSET_DONE, index);
}

static void memset_done(gasnet_token_t token, gasnet_handlerarg_t index)
{
	gasnet_node_t from;
	group *one;

	(void)gasnet_AMGetMsgSource(token, &from);
	one = fill_end((uint32_t)index, from);
	if (!one)
		nonsense(from);
	count_add(&one->open[PUTS], -1u);
}

void (*transfer_handler(unsigned index))(void)
{
	if (index == MEMSET)
		return (void (*)(void))memset_do;
	return index == MEMSET_DONE ? (void (*)(void))memset_done : NULL;
}

static void memset_add(group *one, uint32_t rank, void *to, int value, size_t length)
{
	unsigned tries = 0, index;
	void *here;

	remote_check("a memset", rank, to, length);
	here = near(rank, to);
	if (length == 0)
		return;
	if (here) {
		near_begin(rank);
		memset(here, value, length);
		near_written();
		return;
	}
	while ((index = fill_take(one, rank)) == FILLS)
		wait_turn(&tries);
	count_add(&one->open[PUTS], 1);
	(void)gasnet_AMRequestShort6(rank, MEMSET, HALVES((uintptr_t)to), value, HALVES(length),
		(gasnet_handlerarg_t)index);
}

/* --- the interface: blocking */

void gasnet_put(gasnet_node_t node, void *dest, void *src, size_t nbytes)
{
	group one = {{0}, 0, NULL, NULL};

	put_add(&one, node, dest, src, nbytes);
	group_await(&one);
}

void gasnet_get(void *dest, gasnet_node_t node, void *src, size_t nbytes)
{
	group one = {{0}, 0, NULL, NULL};

	get_add(&one, dest, node, src, nbytes);
	group_await(&one);
}

void gasnet_memset(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
	group one = {{0}, 0, NULL, NULL};

	memset_add(&one, node, dest, val, nbytes);
	group_await(&one);
}

/* --- explicit */

gasnet_handle_t gasnet_put_nb(gasnet_node_t node, void *dest, void *src, size_t nbytes)
{
	group *one = group_take();

	put_copy_add(one, node, dest, src, nbytes);
	return group_handle(one);
}

gasnet_handle_t gasnet_put_nb_bulk(gasnet_node_t node, void *dest, void *src, size_t nbytes)
{
	group *one = group_take();

	put_add(one, node, dest, src, nbytes);
	return group_handle(one);
}

gasnet_handle_t gasnet_get_nb(void *dest, gasnet_node_t node, void *src, size_t nbytes)
{
	group *one = group_take();

	get_add(one, dest, node, src, nbytes);
	return group_handle(one);
}

gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
	group *one = group_take();

	memset_add(one, node, dest, val, nbytes);
	return group_handle(one);
}

/* --- implicit */

void gasnet_put_nbi(gasnet_node_t node, void *dest, void *src, size_t nbytes)
{
	put_copy_add(group_now(), node, dest, src, nbytes);
}

void gasnet_put_nbi_bulk(gasnet_node_t node, void *dest, void *src, size_t nbytes)
{
	put_add(group_now(), node, dest, src, nbytes);
}

void gasnet_get_nbi(void *dest, gasnet_node_t node, void *src, size_t nbytes)
{
	get_add(group_now(), dest, node, src, nbytes);
}

void gasnet_memset_nbi(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
	memset_add(group_now(), node, dest, val, nbytes);
}

void gasnet_begin_nbi_accessregion(void)
{
	if (region)
		fatal("gasnet_begin_nbi_accessregion: an access region is open: call "
		      "gasnet_end_nbi_accessregion first");
	region = group_take();
}

gasnet_handle_t gasnet_end_nbi_accessregion(void)
{
	group *one = region;

	if (!one)
		fatal("gasnet_end_nbi_accessregion: no access region is open: call "
		      "gasnet_begin_nbi_accessregion first");
	region = NULL;
	return group_handle(one);
}

/* --- values: the low bytes of a register, which come first on this machine */

static void value_check(size_t nbytes)
{
	if (nbytes < 1 || nbytes > VALUE_MAX)
		fatal("a value cannot have %zu bytes: give 1 to %zu", nbytes, VALUE_MAX);
}

void gasnet_put_val(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes)
{
	value_check(nbytes);
	gasnet_put(node, dest, &value, nbytes);
}

gasnet_handle_t gasnet_put_nb_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes)
{
	value_check(nbytes);
	return gasnet_put_nb(node, dest, &value, nbytes);
}

void gasnet_put_nbi_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes)
{
	value_check(nbytes);
	gasnet_put_nbi(node, dest, &value, nbytes);
}

gasnet_register_value_t gasnet_get_val(gasnet_node_t node, void *src, size_t nbytes)
{
	gasnet_register_value_t value = 0;

	value_check(nbytes);
	gasnet_get(&value, node, src, nbytes);
	return value;
}

gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void *src, size_t nbytes)
{
	group *one = group_take();

	value_check(nbytes);
	one->value = 0;
	one->owner = &implicit;
	get_add(one, &one->value, node, src, nbytes);
	return (gasnet_valget_handle_t)one;
}

gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle)
{
	group *one = (group *)handle;
	gasnet_register_value_t value;

	handle_look(one);
	group_await(one);
	value = one->value;
	group_give(one);
	return value;
}

/* --- synchronisation */

static void poll_all(void)
{
	(void)receive_poll();
	(void)transfer_poll(NULL);
}

/* Whether all handles are over, or, with some, one of those that were valid. Those that are over
 * become invalid. */
static bool handles_end(gasnet_handle_t *handles, size_t count, bool some)
{
	size_t open = 0, ended = 0;

	for (size_t i = 0; i < count; i++) {
		if (handles[i] == GASNET_INVALID_HANDLE)
			continue;
		handle_look(handles[i]);
		if (!is_over(handles[i])) {
			open++;
			continue;
		}
		group_give(handles[i]);
		handles[i] = GASNET_INVALID_HANDLE;
		ended++;
	}
	return open == 0 || (some && ended > 0);
}

static int handles_try(gasnet_handle_t *handles, size_t count, bool some)
{
	exit_look();
	if (handles_end(handles, count, some)) {
		poll_now_and_then();
		return GASNET_OK;
	}
	poll_all();
	return handles_end(handles, count, some) ? GASNET_OK : GASNET_ERR_NOT_READY;
}

int gasnet_try_syncnb_all(gasnet_handle_t *handles, size_t count)
{
	return handles_try(handles, count, false);
}

int gasnet_try_syncnb_some(gasnet_handle_t *handles, size_t count)
{
	return handles_try(handles, count, true);
}

void gasnet_wait_syncnb_all(gasnet_handle_t *handles, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		gasnet_wait_syncnb(handles[i]);
		handles[i] = GASNET_INVALID_HANDLE;
	}
}

void gasnet_wait_syncnb_some(gasnet_handle_t *handles, size_t count)
{
	unsigned tries = 0;

	while (!handles_end(handles, count, true))
		transfer_wait(NULL, &tries);
}

void gasnet_wait_syncnb(gasnet_handle_t handle)
{
	if (handle == GASNET_INVALID_HANDLE)
		return;
	handle_look(handle);
	group_await(handle);
	group_give(handle);
}

int gasnet_try_syncnb(gasnet_handle_t handle)
{
	return gasnet_try_syncnb_all(&handle, 1);
}

static bool implicit_open(bool puts, bool gets)
{
	return (puts && count_read(&implicit.open[PUTS]) > 0) ||
	       (gets && count_read(&implicit.open[GETS]) > 0);
}

static int implicit_try(bool puts, bool gets)
{
	call_look("a synchronisation of implicit operations");
	exit_look();
	if (!implicit_open(puts, gets)) {
		poll_now_and_then();
		return GASNET_OK;
	}
	poll_all();
	return implicit_open(puts, gets) ? GASNET_ERR_NOT_READY : GASNET_OK;
}

static void implicit_await(bool puts, bool gets)
{
	unsigned tries = 0;

	if (implicit_try(puts, gets) == GASNET_OK)
		return;
	while (implicit_open(puts, gets))
		transfer_wait(&implicit, &tries);
}

int gasnet_try_syncnbi_puts(void)
{
	return implicit_try(true, false);
}

int gasnet_try_syncnbi_gets(void)
{
	return implicit_try(false, true);
}

int gasnet_try_syncnbi_all(void)
{
	return implicit_try(true, true);
}

void gasnet_wait_syncnbi_puts(void)
{
	implicit_await(true, false);
}

void gasnet_wait_syncnbi_gets(void)
{
	implicit_await(false, true);
}

void gasnet_wait_syncnbi_all(void)
{
	implicit_await(true, true);
}
