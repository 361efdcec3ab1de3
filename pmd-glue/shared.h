/* SPDX-License-Identifier: BSD-3-Clause */
/* shared.h - memory that two processes share, and the messages by which they hand it over: what a
 * rendezvous (rendezvous.h) and posternd (client.h) have in common. No state; the caller owns all.
 *
 * S1. Memory has no name: it is a sealed memfd, which goes over a UNIX socket and ends with its
 *     processes. Nobody can truncate it under a reader.
 * S2. A page is one process's. The process alone can write to it; others map it to read the word
 *     that says whether the process sleeps.
 * S3. Descriptors that come with a message are closed unless the message is as expected.
 * S4. A sleeper changes its word and then looks at its memory; a sender publishes and then looks at
 *     the word. One of the two must see the other, so each makes a fence between. While no bit of
 *     WORD_BITS is set, senders leave that to the sleeper: it sets the bits, and has the kernel
 *     make a fence on all CPUs (membarrier) before it looks. In a virtual machine that costs more
 *     than the sleep. So WORD_FENCED stays set, and senders make their fences, until the process
 *     has been awake for two ticks; sleeps until then need no membarrier.
 */
#ifndef PMD_GLUE_SHARED_H
#define PMD_GLUE_SHARED_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARED_SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SHARED_PAGE_SEALS  (SHARED_SEALS | F_SEAL_FUTURE_WRITE)
#define PARCEL_BYTES       64u
#define PARCEL_DESCRIPTORS 2u

size_t shared_page_bytes(void);
/* A file of bytes, the first of which have memory. -1: errno says why. */
int shared_file(size_t bytes, size_t touched);
void *shared_map(int fd, size_t bytes, int protection);
/* Maps another process's file if it has that size and these seals (S1); NULL if not. */
void *shared_accept(int fd, size_t bytes, int seals, int protection);
/* Makes this process's page (S2) and its file. NULL after an error line. */
_Atomic uint32_t *shared_page_make(int *file);

/* Of a word, whose other bits differ from change to change. */
#define WORD_ASLEEP 1u
#define WORD_FENCED 2u /* the sender makes a fence, and looks again */
#define WORD_BITS   (WORD_ASLEEP | WORD_FENCED)

struct sleeper {
	_Atomic uint32_t *word; /* in this process's page */
	unsigned ticks;         /* while awake, since the last sleep */
};

/* S4. Returns false if the kernel cannot make the fence; then the process is awake. */
bool sleeper_sleep(struct sleeper *sleeper, bool asleep);
/* About once a millisecond. */
void sleeper_tick(struct sleeper *sleeper);

/* What came with one message. */
struct parcel {
	_Alignas(8) uint8_t bytes[PARCEL_BYTES];
	size_t length;
	unsigned count;
	bool starved; /* this process had no room for a descriptor that came */
	int fds[PARCEL_DESCRIPTORS];
};

enum heard { HEARD_NOTHING, HEARD_MESSAGE, HEARD_END };

bool parcel_send(int socket, const void *bytes, size_t length, const int *fds, unsigned count);
/* One message. One that was cut, or has another number of descriptors, has the length 0. */
enum heard parcel_receive(struct parcel *parcel, int socket, unsigned descriptors);
/* The same of a sender who is not trusted: no descriptor of his is closed (disposal.h). Those that
 * have no place here stay in the socket with their message. HEARD_END: there may be some, too. */
enum heard parcel_take(struct parcel *parcel, int socket, unsigned descriptors);
/* Takes one byte of a message that should bring no descriptors; HEARD_END also if it does. */
enum heard byte_take(int socket);
/* Takes messages off a socket to which no more can come, up to the first that brings descriptors.
 * Returns true if none is left, so that closing the socket closes nothing else. */
bool messages_drop(int socket);
void parcel_close(struct parcel *parcel);

#endif
