/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.c - the buffers of ports. See pool.h. Called under the front end's lock, but for
 * pool_empty_caches(). */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <base/log.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/hugepages.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pool.h>

#define POOLS_MAX    256
#define POOL_SPARE   4096u /* beyond the rings: what the transport keeps for retransmission */
#define POOL_LEAST   1024u /* of those, when frames are so large that POOL_BYTES limits them */
#define POOL_BYTES   (UINT64_C(64) << 20)  /* a pool has no more bytes than this, if it can */
#define POOL_RESERVE (UINT64_C(128) << 20) /* hugepages, for what DPDK has beside buffers */
#define POOL_STEP    32u                   /* buffers that are made at a time, when none is free */
/* a buffer's cost beside its room */
#define POOL_BESIDES (sizeof(struct rte_mbuf) + 2 * RTE_CACHE_LINE_SIZE)

static struct {
	struct rte_mempool *pool;
	uint32_t room;
	bool copied;
	bool taken;
} pools[POOLS_MAX];
static atomic_uint pool_count; /* those below it have pools; written under the lock */

/* Under the lock. */
static unsigned pools_made(void)
{
	return atomic_load_explicit(&pool_count, memory_order_relaxed);
}

static uint32_t pool_room(uint32_t frame_size)
{
	return RTE_ALIGN_CEIL(RTE_PKTMBUF_HEADROOM + frame_size, (uint32_t)RTE_CACHE_LINE_SIZE);
}

static uint32_t pool_buffers(uint32_t frame_size, uint32_t descriptors)
{
	uint64_t affordable = POOL_BYTES / (pool_room(frame_size) + POOL_BESIDES);
	uint32_t spare = POOL_SPARE;
	if (descriptors + spare > affordable)
		spare = affordable > descriptors + POOL_LEAST ? (uint32_t)affordable - descriptors
							      : POOL_LEAST;
	return descriptors + spare + POOL_ASIDE;
}

size_t pool_bytes(uint32_t frame_size, uint32_t descriptors)
{
	return (size_t)pool_buffers(frame_size, descriptors) *
	       (pool_room(frame_size) + POOL_BESIDES);
}

/* --- pools that grow with use (I3), as DPDK's operations of a mempool --- */

/* The memory of a pool whose buffers have not all been made; the free ones are kept by DPDK's own
 * operations. */
struct growing {
	pthread_mutex_t lock; /* who makes buffers holds it */
	char *memory;         /* of all buffers */
	rte_iova_t iova;
	rte_mempool_populate_obj_cb_t *add; /* DPDK's own part in making one */
	void *add_context;
	atomic_uint made; /* those that have been made; the others follow them in memory */
};

static const struct rte_mempool_ops *keeping; /* DPDK's own operations */

static int growing_alloc(struct rte_mempool *pool)
{
	/* Not malloc()'s: only EAL's memory points to it, which leak checkers do not read. */
	struct growing *growing = mmap(
		NULL, sizeof(*growing), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (growing == MAP_FAILED)
		return -ENOMEM;
	pthread_mutex_init(&growing->lock, NULL);
	pool->pool_config = growing;
	return keeping->alloc(pool);
}

static void growing_free(struct rte_mempool *pool)
{
	keeping->free(pool);
	munmap(pool->pool_config, sizeof(struct growing));
}

/* Only notes the memory: pages become the process's when they are first touched. */
static int growing_populate(struct rte_mempool *pool, unsigned count, void *memory, rte_iova_t iova,
	size_t size, rte_mempool_populate_obj_cb_t *add, void *add_context)
{
	struct growing *growing = pool->pool_config;
	(void)size;
	growing->memory = memory;
	growing->iova = iova;
	growing->add = add;
	growing->add_context = add_context;
	return (int)count;
}

static void growing_make(struct rte_mempool *pool, void *context, void *buffer, rte_iova_t iova)
{
	struct growing *growing = context;
	growing->add(pool, growing->add_context, buffer, iova);
	rte_pktmbuf_init(pool, NULL, buffer, 0);
}

/* Makes `wanted` more buffers, or as many as the pool's size allows. Called under its lock. */
static void growing_grow(struct rte_mempool *pool, struct growing *growing, unsigned wanted)
{
	size_t each = (size_t)pool->header_size + pool->elt_size + pool->trailer_size;
	unsigned made = atomic_load_explicit(&growing->made, memory_order_relaxed);
	unsigned count = RTE_MIN(wanted, pool->size - made);
	rte_mempool_op_populate_helper(pool, 0, count, growing->memory + made * each,
		growing->iova + made * each, count * each, growing_make, growing);
	atomic_store_explicit(&growing->made, made + count, memory_order_relaxed);
}

static int growing_give(struct rte_mempool *pool, void *const *buffers, unsigned count)
{
	return keeping->enqueue(pool, buffers, count);
}

static int growing_take(struct rte_mempool *pool, void **buffers, unsigned count)
{
	struct growing *growing = pool->pool_config;
	int result = keeping->dequeue(pool, buffers, count);
	if (result == 0 || atomic_load_explicit(&growing->made, memory_order_relaxed) == pool->size)
		return result;
	pthread_mutex_lock(&growing->lock);
	/* Others may take what is made here. */
	while ((result = keeping->dequeue(pool, buffers, count)) != 0 &&
		atomic_load_explicit(&growing->made, memory_order_relaxed) < pool->size)
		growing_grow(pool, growing, RTE_MAX(count, POOL_STEP));
	pthread_mutex_unlock(&growing->lock);
	return result;
}

static unsigned growing_count(const struct rte_mempool *pool)
{
	const struct growing *growing = pool->pool_config;
	return keeping->get_count(pool) + pool->size -
	       atomic_load_explicit(&growing->made, memory_order_relaxed);
}

/* The name of the operations; DPDK's own, with which all buffers are made at once, where its table
 * is full. */
static const char *growing_operations(void)
{
	static const struct rte_mempool_ops operations = {
		.name = "postern",
		.alloc = growing_alloc,
		.free = growing_free,
		.enqueue = growing_give,
		.dequeue = growing_take,
		.get_count = growing_count,
		.populate = growing_populate,
	};
	static bool tried, registered;
	for (unsigned n = 0; !keeping && n < rte_mempool_ops_table.num_ops; n++)
		if (strcmp(rte_mempool_ops_table.ops[n].name, RTE_MBUF_DEFAULT_MEMPOOL_OPS) == 0)
			keeping = &rte_mempool_ops_table.ops[n];
	if (keeping && !tried) {
		registered = rte_mempool_register_ops(&operations) >= 0;
		tried = true;
	}
	return registered ? operations.name : RTE_MBUF_DEFAULT_MEMPOOL_OPS;
}

static void pool_unmap(struct rte_mempool_memhdr *chunk, void *size)
{
	munmap(chunk->addr, (size_t)(uintptr_t)size);
}

/* Gives a pool its buffers in ordinary pages of the process's own. EAL's memory has a fixed size
 * from its start; this has not. */
static int pool_populate(struct rte_mempool *pool)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t least = 0, align = 0;
	ssize_t size = rte_mempool_op_calc_mem_size_default(pool, pool->size, 0, &least, &align);
	void *memory;
	if (size <= 0)
		return -1;
	size = (ssize_t)RTE_ALIGN_CEIL((size_t)size, page);
	memory = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -1;
	(void)madvise(memory, (size_t)size, MADV_HUGEPAGE);
	if (rte_mempool_populate_iova(pool, memory, (rte_iova_t)(uintptr_t)memory, (size_t)size,
		    pool_unmap, (void *)(uintptr_t)size) == (int)pool->size)
		return 0;
	return -1;
}

/* What rte_pktmbuf_pool_create() does, in memory of ours. */
static struct rte_mempool *pool_create_apart(
	const char *name, uint32_t buffers, uint32_t room, int socket)
{
	struct rte_pktmbuf_pool_private layout = {.mbuf_data_room_size = (uint16_t)room};
	struct rte_mempool *pool =
		rte_mempool_create_empty(name, buffers, (unsigned)sizeof(struct rte_mbuf) + room,
			POOL_CACHE, sizeof(layout), socket, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (!pool)
		return NULL;
	if (rte_mempool_set_ops_byname(pool, growing_operations(), NULL) == 0) {
		rte_pktmbuf_pool_init(pool, &layout);
		if (pool_populate(pool) == 0) {
			/* The buffers that have been made. */
			rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
			return pool;
		}
	}
	rte_mempool_free(pool);
	rte_errno = ENOMEM;
	return NULL;
}

static struct rte_mempool *pool_make(
	const char *port, uint32_t frame_size, uint32_t descriptors, int socket, bool copied)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t room = RTE_MIN(pool_room(frame_size), (uint32_t)UINT16_MAX);
	uint32_t buffers = pool_buffers(frame_size, descriptors);
	struct eal_guard *guard = eal_enter();
	struct rte_mempool *pool = NULL;
	snprintf(name, sizeof(name), "postern-%u", pools_made());
	/* Hugepages are best, as long as enough of them remain for DPDK itself. */
	if (!copied ||
		(rte_eal_has_hugepages() &&
			hugepages_usable(pool_bytes(frame_size, descriptors) + POOL_RESERVE)))
		pool = rte_pktmbuf_pool_create(
			name, buffers, POOL_CACHE, 0, (uint16_t)room, socket);
	if (!pool && copied)
		pool = pool_create_apart(name, buffers, room, socket);
	eal_leave(guard);
	if (!pool)
		log_error("%s: cannot have %u buffers of %u bytes, %zu MB in all (%s): %s", port,
			buffers, room, pool_bytes(frame_size, descriptors) >> 20,
			rte_strerror(rte_errno),
			glue_hugepages() ? "reserve more hugepages, or none"
					 : "give DPDK more memory by PTL_EAL_ARGS='-m 1024'");
	return pool;
}

struct rte_mempool *pool_take(
	const char *port, uint32_t frame_size, uint32_t descriptors, int socket, bool copied)
{
	uint32_t room = pool_room(frame_size);
	uint32_t buffers = pool_buffers(frame_size, descriptors);
	struct rte_mempool *pool;
	unsigned made = pools_made();
	for (unsigned n = 0; n < made; n++) {
		if (pools[n].taken || pools[n].room != room || pools[n].pool->size != buffers ||
			pools[n].copied != copied || pools[n].pool->socket_id != socket)
			continue;
		pools[n].taken = true;
		return pools[n].pool;
	}
	if (made == POOLS_MAX) {
		log_error("%s: this process has had %u kinds of ports, which is the limit: start "
			  "it again",
			port, POOLS_MAX);
		return NULL;
	}
	pool = pool_make(port, frame_size, descriptors, socket, copied);
	if (!pool)
		return NULL;
	pools[made].pool = pool;
	pools[made].room = room;
	pools[made].copied = copied;
	pools[made].taken = true;
	/* Release: pairs with the acquire in pool_empty_caches(). */
	atomic_store_explicit(&pool_count, made + 1, memory_order_release);
	return pool;
}

void pool_give(struct rte_mempool *pool)
{
	for (unsigned n = 0; n < pools_made(); n++)
		if (pools[n].pool == pool)
			pools[n].taken = false;
}

void pool_empty_caches(unsigned lcore)
{
	unsigned made = atomic_load_explicit(&pool_count, memory_order_acquire);
	for (unsigned n = 0; n < made; n++)
		rte_mempool_cache_flush(
			rte_mempool_default_cache(pools[n].pool, lcore), pools[n].pool);
}

uint64_t pool_used(const struct rte_mempool *pool)
{
	return rte_mempool_in_use_count(pool);
}
