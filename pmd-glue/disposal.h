/* SPDX-License-Identifier: BSD-3-Clause */
/* disposal.h - closes what other users have sent, in threads of its own.
 *
 * Closing a descriptor takes as long as its sender likes: a TCP socket lingers (SO_LINGER), a file
 * of FUSE is flushed by its sender's program, a long file has much memory to free. So does closing
 * a socket with unread messages that bring such descriptors, and reading one without taking them.
 *
 * D1. One thread at a time closes what is a user's, whoever else has threads. Of OWNERS_MAX users
 *     each has an account of his own; users who come later share one.
 * D2. A socket whose unread messages bring no descriptors waits for nobody's: one thread never
 *     closes anything else. So each socket that stays open for long has cost its user a descriptor
 *     under way, of which the kernel gives him RLIMIT_NOFILE.
 * D3. Of a user who has DISPOSAL_SHARE descriptors to be closed no message should be read
 *     (disposal_is_full()), so no more of his come in. Memory counts a 32nd of that: a job of 256
 *     processes that ends does not keep the user's next one out.
 */
#ifndef PMD_GLUE_DISPOSAL_H
#define PMD_GLUE_DISPOSAL_H

#include <stdbool.h>
#include <sys/types.h>

#define DISPOSAL_SHARE 16u

/* Closes descriptors that a user has sent, now or later. */
void disposal_close(uid_t uid, const int *fds, unsigned count);
/* Closes this process's own socket, whose other end a user has, and by which no more can come. */
void disposal_hang_up(uid_t uid, int socket);
/* Does a user have his share of descriptors to be closed (D3)? */
bool disposal_is_full(uid_t uid);
/* Do so many sockets wait to be looked at (D2) that none should be accepted? Not for long. */
bool disposal_lags(void);

#endif
