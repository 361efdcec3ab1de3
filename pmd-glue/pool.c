/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.c - the buffers of ports. See pool.h. Called under the front end's lock, but for
 * pool_empty_caches(). */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include <base/log.h>
#include <base/remedy.h>
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
#define POOL_SMALL   8u                    /* buffers that a hugepage is not worth */
#define HUGEPAGE     (UINT64_C(2) << 20)
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

/* --- pools that grow with use (I3) --- */

/* Such a pool lies in memory of the process's own, and EAL need not run: DPDK's structure is filled
 * in here, and these are its operations. This is what it has beside that structure. */
struct growing {
	pthread_mutex_t lock; /* guards what follows; caches see to it that it is rarely taken */
	char *memory;         /* of all buffers */
	unsigned made;        /* those that have been made; the others follow them in memory */
	unsigned count;       /* of those that are free, the last one freed at the end */
	unsigned gives;       /* so far, up to POOL_CACHE: then threads have caches (I3) */
	void *free[];
};

static int operations = -1; /* their number in DPDK's table; -1: it has no room for them */

/* DPDK calls this for a pool that it makes itself, which none of these is. */
static int growing_alloc(struct rte_mempool *pool)
{
	(void)pool;
	return -ENOTSUP;
}

/* Makes `wanted` more buffers, or as many as the pool's size allows. Under the lock. */
static void growing_grow(struct rte_mempool *pool, struct growing *growing, unsigned wanted)
{
	size_t each = (size_t)pool->header_size + pool->elt_size + pool->trailer_size;
	unsigned end = growing->made + RTE_MIN(wanted, pool->size - growing->made);
	for (; growing->made < end; growing->made++) {
		void *buffer = growing->memory + growing->made * each + pool->header_size;
		/* DPDK finds it right in front of the buffer. */
		struct rte_mempool_objhdr *header = (struct rte_mempool_objhdr *)buffer - 1;
		header->mp = pool;
		header->iova = (rte_iova_t)(uintptr_t)buffer;
		rte_pktmbuf_init(pool, NULL, buffer, 0);
		growing->free[growing->count++] = buffer;
	}
}

/* The calling thread has a cache from now on, if it is to have one (I2). DPDK fills a cache with
 * POOL_CACHE buffers at the first need of one. */
static void cache_make(struct rte_mempool *pool)
{
	unsigned lcore = rte_lcore_id();
	struct rte_mempool_cache *cache = rte_mempool_default_cache(pool, lcore);
	/* Of the threads with numbers of EAL's there are some only if EAL runs. */
	if (!cache || (lcore < POOL_LCORES && !(eal_started() && rte_lcore_is_enabled(lcore))))
		return;
	cache->size = POOL_CACHE;
	cache->flushthresh = POOL_CACHE * 3 / 2;
}

/* DPDK looks at a cache again after growing_take(), and not after this: so it is made here. */
static int growing_give(struct rte_mempool *pool, void *const *buffers, unsigned count)
{
	struct growing *growing = pool->pool_config;
	bool busy;
	pthread_mutex_lock(&growing->lock);
	assert(growing->count + count <= growing->made);
	memcpy(growing->free + growing->count, buffers, count * sizeof(*buffers));
	growing->count += count;
	busy = growing->gives == POOL_CACHE;
	growing->gives += !busy;
	pthread_mutex_unlock(&growing->lock);
	if (busy)
		cache_make(pool);
	return 0;
}

static int growing_take(struct rte_mempool *pool, void **buffers, unsigned count)
{
	struct growing *growing = pool->pool_config;
	bool found;
	pthread_mutex_lock(&growing->lock);
	if (growing->count < count)
		growing_grow(pool, growing, count - growing->count);
	found = growing->count >= count;
	if (found) {
		growing->count -= count;
		memcpy(buffers, growing->free + growing->count, count * sizeof(*buffers));
	}
	pthread_mutex_unlock(&growing->lock);
	return found ? 0 : -ENOBUFS;
}

static unsigned growing_count(const struct rte_mempool *pool)
{
	struct growing *growing = pool->pool_config;
	unsigned count;
	pthread_mutex_lock(&growing->lock);
	count = growing->count + pool->size - growing->made;
	pthread_mutex_unlock(&growing->lock);
	return count;
}

void pool_prepare(void)
{
	static const struct rte_mempool_ops growing_operations = {
		.name = "postern",
		.alloc = growing_alloc,
		.enqueue = growing_give,
		.dequeue = growing_take,
		.get_count = growing_count,
	};
	if (operations < 0)
		operations = rte_mempool_register_ops(&growing_operations);
}

static void *memory_map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

/* Memory for buffers: hugepages, but for the first few buffers. A port that does next to nothing
 * takes no hugepage, and no other port loses by them: the last one freed is used first. */
static char *buffers_map(size_t bytes, size_t each)
{
	char *memory = memory_map(bytes + HUGEPAGE);
	char *huge = (char *)RTE_ALIGN_CEIL((uintptr_t)memory + POOL_SMALL * each, HUGEPAGE);
	if (!memory)
		return NULL;
	(void)madvise(huge, (size_t)(memory + bytes + HUGEPAGE - huge), MADV_HUGEPAGE);
	return huge - POOL_SMALL * each;
}

/* Fills in what DPDK reads of a pool. */
static void growing_describe(struct rte_mempool *pool, struct growing *growing, const char *name,
	const struct rte_mempool_objsz *each, uint32_t buffers, int socket)
{
	snprintf(pool->name, sizeof(pool->name), "%s", name);
	pool->pool_config = growing;
	pool->flags = RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	pool->socket_id = socket;
	pool->size = pool->populated_size = buffers;
	pool->cache_size = POOL_CACHE;
	pool->elt_size = each->elt_size;
	pool->header_size = each->header_size;
	pool->trailer_size = each->trailer_size;
	pool->private_data_size = sizeof(struct rte_pktmbuf_pool_private);
	pool->ops_index = operations;
	pool->local_cache = (void *)((char *)pool + RTE_MEMPOOL_HEADER_SIZE(pool, 0));
	STAILQ_INIT(&pool->elt_list);
	STAILQ_INIT(&pool->mem_list);
}

/* NULL: there is no memory for it. What there is of one is kept for ever (I1). */
static struct rte_mempool *growing_create(
	const char *name, uint32_t buffers, uint32_t room, int socket)
{
	struct rte_pktmbuf_pool_private layout = {.mbuf_data_room_size = (uint16_t)room};
	struct rte_mempool_objsz each;
	struct rte_mempool *pool;
	struct growing *growing;
	size_t bytes = rte_mempool_calc_obj_size(
		(uint32_t)sizeof(struct rte_mbuf) + room, RTE_MEMPOOL_F_NO_IOVA_CONTIG, &each);
	const size_t head = RTE_MEMPOOL_HEADER_SIZE(pool, POOL_CACHE) +
			    RTE_ALIGN_CEIL(sizeof(layout), (size_t)RTE_CACHE_LINE_SIZE);
	char *memory = buffers_map(buffers * bytes, bytes);
	pool = memory_map(head + sizeof(*growing) + buffers * sizeof(growing->free[0]));
	if (!pool || !memory) {
		rte_errno = ENOMEM;
		return NULL;
	}
	growing = (struct growing *)(void *)((char *)pool + head);
	growing->memory = memory;
	pthread_mutex_init(&growing->lock, NULL);
	growing_describe(pool, growing, name, &each, buffers, socket);
	rte_pktmbuf_pool_init(pool, &layout);
	return pool;
}

/* DPDK records no I/O address of a buffer that may cross pages. Where devices are given virtual
 * addresses, its virtual address is it, whatever pages it lies on. */
static void eal_buffer_init(struct rte_mempool *pool, void *unused, void *buffer, unsigned number)
{
	if (pool->flags & RTE_MEMPOOL_F_NO_IOVA_CONTIG)
		((struct rte_mempool_objhdr *)buffer - 1)->iova = (rte_iova_t)(uintptr_t)buffer;
	rte_pktmbuf_init(pool, unused, buffer, number);
}

/* In EAL's memory. */
static struct rte_mempool *eal_pool_create(
	const char *name, uint32_t buffers, uint32_t room, int socket)
{
	struct eal_guard *guard = eal_enter();
	struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = (uint16_t)room};
	/* Where devices are given virtual addresses, buffers may cross pages and lie one behind the
	 * other: af_xdp's driver expects that of a pool, and loses the frames of buffers that lie
	 * behind as many bytes as they would take then. */
	unsigned flags = rte_eal_iova_mode() == RTE_IOVA_VA ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
	struct rte_mempool *pool =
		rte_mempool_create_empty(name, buffers, (unsigned)sizeof(struct rte_mbuf) + room,
			POOL_CACHE, sizeof(private), socket, flags);

	if (pool) {
		rte_pktmbuf_pool_init(pool, &private);
		if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL) != 0 ||
			rte_mempool_populate_default(pool) < 0) {
			rte_mempool_free(pool);
			pool = NULL;
		}
	}
	if (pool)
		(void)rte_mempool_obj_iter(pool, eal_buffer_init, NULL);
	eal_leave(guard);
	return pool;
}

/* Is a pool of so many bytes to lie in EAL's memory? Hugepages are best, as long as enough of them
 * remain for DPDK itself. */
static bool pool_is_eals(size_t bytes, bool copied)
{
	return !copied || operations < 0 ||
	       (glue_hugepages() && hugepages_usable(bytes + POOL_RESERVE));
}

static struct rte_mempool *pool_make(
	const char *port, uint32_t frame_size, uint32_t descriptors, int socket, bool copied)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t room = RTE_MIN(pool_room(frame_size), (uint32_t)UINT16_MAX);
	uint32_t buffers = pool_buffers(frame_size, descriptors);
	struct rte_mempool *pool = NULL;
	snprintf(name, sizeof(name), "postern-%u", pools_made());
	if (pool_is_eals(pool_bytes(frame_size, descriptors), copied))
		pool = eal_need() == 0 ? eal_pool_create(name, buffers, room, socket) : NULL;
	if (!pool && copied && operations >= 0)
		pool = growing_create(name, buffers, room, socket);
	if (!pool)
		log_error("%s: cannot have %u buffers of %u bytes, %zu MB in all (%s): %s", port,
			buffers, room, pool_bytes(frame_size, descriptors) >> 20,
			rte_strerror(rte_errno),
			remedy_for(rte_errno,
				glue_hugepages() ? "reserve more hugepages, or none"
				: eal_started()
					? "give DPDK more memory by PTL_EAL_ARGS='-m 1024'"
					: "lower PTL_MTU, or end programs that use much memory"));
	return pool;
}

struct rte_mempool *mempool_take(
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

void mempool_give(struct rte_mempool *pool)
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
