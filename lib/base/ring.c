/* ring.c - see ring.h. Any thread calls any of this; the ring is its own protection.
 *
 * DPDK's RTS mode publishes through one word per end, the tail {count, position}. Its release:
 *
 * T0. The compare-and-exchange on an end's tail in rte_ring, with release, after the elements were
 *     copied. Every later one on the same word continues its release sequence.
 *
 * I2. No head is ever more than the capacity ahead of its own tail, so a limit of the capacity on
 *     that distance never makes a thread wait for another. The limit that rte_ring_init() sets, an
 *     eighth, would.
 */
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include <base/ring.h>

/* One slot stays free to tell a full ring from an empty one; the next power of two must be one that
 * rte_ring takes. */
#define RING_COUNT_MAX (RTE_RING_SZ_MASK / 2)

size_t ring_size(uint32_t count, uint32_t element_size)
{
	if (count == 0 || count > RING_COUNT_MAX || element_size == 0 || element_size % 4 != 0)
		return 0;

	ssize_t size = rte_ring_get_memsize_elem(element_size, rte_align32pow2(count + 1));

	return size < 0 ? 0 : (size_t)size;
}

int ring_init(struct rte_ring *ring, uint32_t count)
{
	if (count == 0 || count > RING_COUNT_MAX)
		return -1;
	if (rte_ring_init(ring, "postern", count,
		    RING_F_MP_RTS_ENQ | RING_F_MC_RTS_DEQ | RING_F_EXACT_SZ) != 0)
		return -1;
	rte_ring_set_prod_htd_max(ring, ring->capacity); /* I2 */
	rte_ring_set_cons_htd_max(ring, ring->capacity);
	return 0;
}

/* The whole word that T0 writes: DPDK itself loads only its half with the position, which neither
 * C11 nor a race detector takes for a partner of T0. */
static union __rte_ring_rts_poscnt tail_acquire(const struct rte_ring_rts_headtail *end)
{
	union __rte_ring_rts_poscnt tail;

	tail.raw = __atomic_load_n(&end->tail.raw, __ATOMIC_ACQUIRE);
	return tail;
}

bool ring_put(struct rte_ring *ring, const void *element, uint32_t element_size)
{
	/* Pairs with T0 of the consumers: the slot that is written next has been read. */
	(void)tail_acquire(&ring->rts_cons);
	return rte_ring_mp_rts_enqueue_bulk_elem(ring, element, element_size, 1, NULL) == 1;
}

unsigned ring_take(struct rte_ring *ring, void *elements, uint32_t element_size, unsigned count)
{
	/* Pairs with T0 of the producers. An empty ring, which a poll core finds most of the time,
	 * costs two loads. */
	uint32_t published = tail_acquire(&ring->rts_prod).val.pos;

	if (published == tail_acquire(&ring->rts_cons).val.pos)
		return 0;

	unsigned taken =
		rte_ring_mc_rts_dequeue_burst_elem(ring, elements, element_size, count, NULL);

	/* Pairs with T0 of the producers once more: among several consumers, what was taken may be
	 * younger than the first load, and what its producer wrote elsewhere before must be seen as
	 * well. */
	(void)tail_acquire(&ring->rts_prod);
	return taken;
}

bool ring_empty(const struct rte_ring *ring)
{
	/* The consumers' tail first: it never passes the producers', so equal means empty at the
	 * second load. */
	uint32_t consumed = tail_acquire(&ring->rts_cons).val.pos;

	return tail_acquire(&ring->rts_prod).val.pos == consumed;
}

bool ring_settled(const struct rte_ring *ring)
{
	/* The tail first. It never passes the head, and the head only grows: a head that still
	 * equals the tail of before was equal to it at the moment of the first load. */
	uint64_t tail = tail_acquire(&ring->rts_prod).raw;

	return __atomic_load_n(&ring->rts_prod.head.raw, __ATOMIC_ACQUIRE) == tail;
}

uint32_t ring_count(const struct rte_ring *ring)
{
	/* The consumers' tail first: it never passes the producers'. */
	uint32_t consumed = tail_acquire(&ring->rts_cons).val.pos;

	return tail_acquire(&ring->rts_prod).val.pos - consumed;
}
