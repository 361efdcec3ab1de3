/* SPDX-License-Identifier: BSD-3-Clause */
/* disposal.h - closes what other users have sent, in threads of its own.
 *
 * Whoever closes a descriptor last, or a socket with unread messages that bring descriptors, waits
 * as long as their sender likes: a TCP socket lingers (SO_LINGER), a file of FUSE is flushed by its
 * sender's program, a long file has much memory to free. So does whoever reads such a message
 * without taking the descriptors. At most WORKERS_MAX threads wait; further descriptors then stay
 * open until one of the threads is free.
 */
#ifndef PMD_GLUE_DISPOSAL_H
#define PMD_GLUE_DISPOSAL_H

#include <stdbool.h>

/* Closes descriptors, now or later. */
void disposal_close(const int *fds, unsigned count);
/* Do so many wait to be closed that no more should be let in? */
bool disposal_is_full(void);

#endif
