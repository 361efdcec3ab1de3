/* ring.h - rings of fixed-size elements in memory that several processes may map: DPDK's ring, placed by hand.
 *
 * Many producers, many consumers, RTS mode on both ends: a thread that is preempted inside an operation never makes
 * another one spin; what it was moving becomes visible when it runs again. The ring holds no pointers.
 *
 * I1. ring_settled(): true when no enqueue was under way at some moment of the call, so that every element whose enqueue
 *     had returned before the call is visible to the consumer.
 */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rte_ring;

/* Bytes that a ring of at least count elements (exactly count are usable)
 * of element_size (a multiple of 4) takes. 0 when the arguments are out of range. */
size_t ring_size(uint32_t count, uint32_t element_size);
/* Makes a ring in ring_size() zeroed bytes at memory, aligned to a cache line. 0 or -1. */
int ring_init(struct rte_ring *ring, uint32_t count);

/* All or nothing for one element. Any thread. */
bool ring_put(struct rte_ring *ring, const void *element, uint32_t element_size);
/* Up to count elements; returns how many. Starts with an acquire load that pairs with the producers' release. */
unsigned ring_take(struct rte_ring *ring, void *elements, uint32_t element_size, unsigned count);
bool ring_empty(const struct rte_ring *ring);
bool ring_settled(const struct rte_ring *ring);
/* How many elements wait, about: others may put and take meanwhile. */
uint32_t ring_count(const struct rte_ring *ring);

#endif
