/* pool.h - the buffers of ports.
 *
 * I1. A pool is never freed: frames of a closed port may still lie in another port's queue or in a
 * device. It is parked, and the next port of its kind takes it over.
 */
#ifndef PMD_GLUE_POOL_H
#define PMD_GLUE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rte_mempool;

/* A pool whose buffers hold frame_size bytes behind the headroom, enough for rings of `descriptors`
 * frames and what the transport keeps. `copied`: the device copies frames, so that the buffers may
 * lie in any memory. NULL after an error line. */
struct rte_mempool *pool_take(
	const char *port, uint32_t frame_size, uint32_t descriptors, int socket, bool copied);
void pool_give(struct rte_mempool *pool);
/* How many buffers are not free; exact while nobody takes or gives one. */
uint64_t pool_used(const struct rte_mempool *pool);

/* Bytes that such a pool takes: without hugepages EAL is started with room for those that it holds
 * itself. */
size_t pool_bytes(uint32_t frame_size, uint32_t descriptors);

#endif
