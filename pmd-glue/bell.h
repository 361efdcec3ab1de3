/* SPDX-License-Identifier: BSD-3-Clause */
/* bell.h - how a memif wakes a receiver that sleeps.
 *
 * Each ring of a memif has an eventfd, which the sender writes to unless the receiver has said, by
 * a flag in the ring, that it polls. DPDK's driver always sets the flag and gives nobody access to
 * ring and eventfd. But the descriptors of the eventfd and of the ring's memory pass through the
 * relay (memif.c), which keeps copies. From then on the receiver owns that one flag.
 *
 * B1. The sender puts a frame into the ring and then looks at the flag; the receiver clears the
 *     flag and then looks at the ring. The driver has no fence in between, so the receiver has the
 *     kernel make one on all CPUs (membarrier, for which both processes must have registered).
 *     Without membarrier it may miss a wake-up and must not sleep long.
 * B2. Nothing in a message of the peer is believed: the ring must lie in the memory that came with
 *     it.
 */
#ifndef PMD_GLUE_BELL_H
#define PMD_GLUE_BELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bell {
	int region; /* descriptor of the memory, -1: not known yet */
	int event;  /* the receive ring's, -1: not known yet */
	int set;    /* the epoll descriptor that event is in, -1: in none */
	uint64_t region_size;
	uint32_t offset; /* of the ring in it */
	void *page;      /* of the ring's flags, mapped; NULL: not yet */
	volatile uint16_t *flags;
};

/* Once: this process may be a sender. */
void bell_register(void);
void bell_init(struct bell *bell);
/* A control message on its way, and the descriptor that came with it (-1: none). to_server: the
 * direction of the ring that this process receives from. */
void bell_hear(struct bell *bell, const void *message, size_t length, int fd, bool to_server);
/* The connection is up. set: an epoll descriptor of the caller's, which also watches for the end of
 * the connection. Returns false if there is no bell. */
bool bell_hang(struct bell *bell, int set);
/* on: asks to be woken, and returns the descriptor to sleep on, -1 if there is none. Not on: the
 * receiver polls again. */
int bell_arm(struct bell *bell, bool on);
/* The connection is over. */
void bell_drop(struct bell *bell);

#endif
