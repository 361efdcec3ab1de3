/* SPDX-License-Identifier: BSD-3-Clause */
/* client_openshmem.c - as Sandia OpenSHMEM: a logical non-matching interface, entries for data and
 * heap, operations that only counters report, and targets that never call but read their memory.
 */
#include "clients.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define DATA_PORTAL 8
#define HEAP_PORTAL 9

#define HEAP_BYTES (1u << 20)
#define PART       (HEAP_BYTES / RANKS_MAX) /* of the heap that one peer writes */
#define ROUNDS     300
#define DRAWS      500

/* In each process at the same place, as a symmetric variable. */
static struct {
	_Atomic uint64_t flags[RANKS_MAX];
	_Atomic uint64_t ticket, lock, masked, guarded;
	double sum;
} data;

static uint8_t *heap;
static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq; /* failures alone */
static ptl_handle_ct_t target_ct, put_ct, get_ct;
static ptl_handle_le_t data_entry, heap_entry;
static ptl_handle_md_t put_md, volatile_md, get_md;
static ptl_ni_limits_t limits;
static ptl_size_t put_count, get_count; /* that the counters must reach */

static ptl_handle_le_t entry_append(ptl_pt_index_t portal, void *start, ptl_size_t length)
{
	const ptl_le_t le = {
		.start = start,
		.length = length,
		.ct_handle = target_ct,
		.uid = PTL_UID_ANY,
		.options = PTL_LE_OP_PUT | PTL_LE_OP_GET | PTL_LE_EVENT_LINK_DISABLE |
			   PTL_LE_EVENT_SUCCESS_DISABLE | PTL_LE_EVENT_CT_COMM,
	};
	ptl_handle_le_t handle;

	check_ok(PtlLEAppend(ni, portal, &le, PTL_PRIORITY_LIST, NULL, &handle));
	return handle;
}

static ptl_handle_md_t md_bind(unsigned options, ptl_handle_ct_t ct)
{
	const ptl_md_t md = {.length = PTL_SIZE_MAX,
		.options = options | PTL_MD_EVENT_SUCCESS_DISABLE,
		.eq_handle = eq,
		.ct_handle = ct};
	ptl_handle_md_t handle;

	check_ok(PtlMDBind(ni, &md, &handle));
	return handle;
}

/* Every limit that is wanted is the largest number of its type. */
static void interface_open(void)
{
	const ptl_ni_limits_t wanted = {
		.max_entries = INT_MAX,
		.max_unexpected_headers = INT_MAX,
		.max_mds = INT_MAX,
		.max_eqs = INT_MAX,
		.max_cts = INT_MAX,
		.max_pt_index = INT_MAX,
		.max_iovecs = INT_MAX,
		.max_list_size = INT_MAX,
		.max_triggered_ops = INT_MAX,
		.max_msg_size = LONG_MAX,
		.max_atomic_size = LONG_MAX,
		.max_fetch_atomic_size = LONG_MAX,
		.max_waw_ordered_size = LONG_MAX,
		.max_war_ordered_size = LONG_MAX,
		.max_volatile_size = LONG_MAX,
		.features = PTL_TOTAL_DATA_ORDERING,
	};
	ptl_process_t self, map[RANKS_MAX];
	ptl_pt_index_t index;

	check_ok(PtlInit());
	check_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY,
		&wanted, &limits, &ni));
	check(limits.max_pt_index >= HEAP_PORTAL && limits.max_volatile_size >= 32);
	check(limits.max_waw_ordered_size >= sizeof(long double) &&
		limits.max_war_ordered_size >= sizeof(long double));
	check(limits.max_atomic_size >= sizeof(long double) * 2 &&
		limits.max_fetch_atomic_size >= sizeof(uint64_t));
	check_ok(PtlGetPhysId(ni, &self));
	job_map(self, map);
	check_ok(PtlSetMap(ni, ranks, map));
	check_ok(PtlEQAlloc(ni, 64, &eq));
	check_ok(PtlPTAlloc(ni, 0, eq, DATA_PORTAL, &index));
	check(index == DATA_PORTAL);
	check_ok(PtlPTAlloc(ni, 0, eq, HEAP_PORTAL, &index));
	check(index == HEAP_PORTAL);
	check_ok(PtlCTAlloc(ni, &target_ct));
	check_ok(PtlCTAlloc(ni, &put_ct));
	check_ok(PtlCTAlloc(ni, &get_ct));
	data_entry = entry_append(DATA_PORTAL, &data, sizeof(data));
	heap_entry = entry_append(HEAP_PORTAL, heap, HEAP_BYTES);
	put_md = md_bind(PTL_MD_EVENT_CT_ACK, put_ct);
	volatile_md = md_bind(PTL_MD_EVENT_CT_ACK | PTL_MD_VOLATILE, put_ct);
	get_md = md_bind(PTL_MD_EVENT_CT_REPLY, get_ct);
	job_barrier();
}

/* All puts have been disposed of at their targets. */
static void quiet(void)
{
	ptl_ct_event_t event;

	check_ok(PtlCTWait(put_ct, put_count, &event));
	check(event.success == put_count && event.failure == 0);
}

/* All gets and fetches have their data. */
static void get_wait(void)
{
	ptl_ct_event_t event;

	check_ok(PtlCTWait(get_ct, get_count, &event));
	check(event.success == get_count && event.failure == 0);
}

static ptl_process_t pe(unsigned number)
{
	return (ptl_process_t){.rank = number};
}

/* The source of a small put is free when the call returns. */
static void put_small(
	ptl_pt_index_t portal, ptl_size_t offset, const void *from, size_t bytes, unsigned target)
{
	check(bytes <= limits.max_volatile_size);
	check_ok(PtlPut(volatile_md, (ptl_size_t)(uintptr_t)from, bytes, PTL_CT_ACK_REQ, pe(target),
		portal, 0, offset, NULL, 0));
	put_count++;
}

/* Puts of all sizes, then a flag: a target that sees the flag after a quiet sees the data. */
static void puts_and_flags(void)
{
	const unsigned target = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	uint8_t *source = malloc(PART), *back = malloc(PART);
	uint64_t flag; /* of which the put has its own copy */

	for (unsigned n = 1; n <= ROUNDS; n++) {
		const ptl_size_t place = (ptl_size_t)rank * PART;
		size_t bytes = (size_t)n * 1009 % PART;

		pattern_fill(source, bytes, n + rank);
		check_ok(PtlPut(put_md, (ptl_size_t)(uintptr_t)source, bytes,
			n % 2 ? PTL_CT_ACK_REQ : PTL_OC_ACK_REQ, pe(target), HEAP_PORTAL, 0, place,
			NULL, 0));
		put_count++;
		quiet();
		flag = n;
		put_small(DATA_PORTAL,
			(ptl_size_t)((uintptr_t)&data.flags[rank] - (uintptr_t)&data), &flag,
			sizeof(flag), target);
		memset(&flag, 0xee, sizeof(flag));
		while (atomic_load_explicit(&data.flags[from], memory_order_acquire) < n)
			sched_yield();
		check(atomic_load(&data.flags[from]) == n);
		pattern_check(heap + (size_t)from * PART, bytes, n + from);
		check_ok(PtlGet(get_md, (ptl_size_t)(uintptr_t)back, bytes, pe(target), HEAP_PORTAL,
			0, place, NULL));
		get_count++;
		get_wait();
		pattern_check(back, bytes, n + rank);
		quiet();
		job_barrier();
	}
	free(source);
	free(back);
}

static ptl_size_t place_of(const void *variable)
{
	return (ptl_size_t)((uintptr_t)variable - (uintptr_t)&data);
}

static uint64_t swap(
	const void *variable, uint64_t value, const uint64_t *operand, ptl_op_t operation)
{
	uint64_t old = 0xdead;

	check_ok(PtlSwap(get_md, (ptl_size_t)(uintptr_t)&old, volatile_md,
		(ptl_size_t)(uintptr_t)&value, sizeof(value), pe(0), DATA_PORTAL, 0,
		place_of(variable), NULL, 0, operand, operation, PTL_UINT64_T));
	get_count++;
	get_wait();
	return old;
}

/* Fetching additions, swaps on a condition and under a mask, all on rank 0. */
static void atomics(void)
{
	const uint64_t unlocked = 0, mine = rank + 1, mask = (uint64_t)0xf << rank * 4 % 64;
	uint64_t last = 0;

	for (unsigned n = 0; n < DRAWS; n++) {
		uint64_t one = 1, ticket = 0xdead;

		check_ok(PtlFetchAtomic(get_md, (ptl_size_t)(uintptr_t)&ticket, volatile_md,
			(ptl_size_t)(uintptr_t)&one, sizeof(one), pe(0), DATA_PORTAL, 0,
			place_of(&data.ticket), NULL, 0, PTL_SUM, PTL_UINT64_T));
		get_count++;
		get_wait();
		check((n == 0 || ticket > last) && ticket < (uint64_t)DRAWS * ranks);
		last = ticket;
	}
	for (unsigned n = 0; n < ROUNDS / 10; n++) {
		uint64_t value;

		while (swap(&data.lock, mine, &unlocked, PTL_CSWAP) != 0)
			sched_yield();
		check_ok(PtlGet(get_md, (ptl_size_t)(uintptr_t)&value, sizeof(value), pe(0),
			DATA_PORTAL, 0, place_of(&data.guarded), NULL));
		get_count++;
		get_wait();
		value++;
		put_small(DATA_PORTAL, place_of(&data.guarded), &value, sizeof(value), 0);
		quiet();
		check(swap(&data.lock, 0, &mine, PTL_CSWAP) == mine);
	}
	swap(&data.masked, ~(uint64_t)0, &mask, PTL_MSWAP);
	for (unsigned n = 0; n < ROUNDS; n++) {
		double half = 0.5;

		check_ok(PtlAtomic(volatile_md, (ptl_size_t)(uintptr_t)&half, sizeof(half),
			PTL_OC_ACK_REQ, pe(0), DATA_PORTAL, 0, place_of(&data.sum), NULL, 0,
			PTL_SUM, PTL_DOUBLE));
		put_count++;
	}
	quiet();
	job_barrier();
	if (rank != 0)
		return;
	PtlAtomicSync();
	check(atomic_load(&data.ticket) == (uint64_t)DRAWS * ranks);
	check(atomic_load(&data.guarded) == (uint64_t)(ROUNDS / 10) * ranks);
	check(data.sum == 0.5 * ROUNDS * ranks);
	for (unsigned n = 0; n < 16; n++)
		check((atomic_load(&data.masked) >> n * 4 & 0xf) == (n < ranks ? 0xf : 0));
}

/* A put to no portal ends in a failure, which the counter counts and ends the wait. If an event was
 * asked for, it is the only one of all. */
static void failure(void)
{
	static const ptl_ack_req_t asked[] = {PTL_CT_ACK_REQ, PTL_ACK_REQ};
	const uint64_t value = 0;
	ptl_ct_event_t count;
	ptl_event_t event;

	job_barrier();
	for (ptl_size_t n = 0; n < COUNT(asked); n++) {
		check_ok(PtlPut(volatile_md, (ptl_size_t)(uintptr_t)&value, sizeof(value), asked[n],
			pe((rank + 1) % ranks), HEAP_PORTAL + 1, 0, 0, NULL, 0));
		do
			check_ok(PtlCTWait(put_ct, put_count + n + 1, &count));
		while (count.failure < n + 1);
		check(count.success == put_count && count.failure == n + 1);
	}
	check_ok(PtlEQWait(eq, &event));
	check(event.type == PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_DROPPED);
	check(PtlEQGet(eq, &event) == PTL_EQ_EMPTY);
	job_barrier();
}

void client_openshmem(void)
{
	heap = calloc(1, HEAP_BYTES);
	check(heap);
	interface_open();
	puts_and_flags();
	atomics();
	failure();
	check_ok(PtlMDRelease(put_md));
	check_ok(PtlMDRelease(volatile_md));
	check_ok(PtlMDRelease(get_md));
	entry_unlink(PtlLEUnlink, data_entry);
	entry_unlink(PtlLEUnlink, heap_entry);
	check_ok(PtlCTFree(target_ct));
	check_ok(PtlCTFree(put_ct));
	check_ok(PtlCTFree(get_ct));
	check_ok(PtlPTFree(ni, DATA_PORTAL));
	check_ok(PtlPTFree(ni, HEAP_PORTAL));
	check_ok(PtlEQFree(eq));
	check_ok(PtlNIFini(ni));
	PtlFini();
	free(heap);
}
