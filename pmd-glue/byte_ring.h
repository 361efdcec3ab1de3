/* SPDX-License-Identifier: BSD-3-Clause */
/* byte_ring.h - bytes on their way from one thread to another, in order, through memory of a fixed
 * size.
 *
 * One thread writes, one reads; neither ever waits for the other. Writing takes two steps, so that
 * bytes of frames that the port did not take are never seen:
 *
 *      writer: byte_ring_put() ...  at -.           reader: byte_ring_readable()
 *              byte_ring_publish()      v                   byte_ring_peek() ...
 *      [ .. | read ===== written ~~~~ at .. ]               byte_ring_take()
 *
 * T1. From `read` up to `written` the bytes are the reader's, all others the writer's.
 * T2. Positions count bytes since the ring began and never wrap; a byte lies at its position modulo
 *     the size.
 */
#ifndef PMD_GLUE_BYTE_RING_H
#define PMD_GLUE_BYTE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BYTE_RING_LINE 64 /* a cache line */

struct byte_ring {
	uint8_t *bytes;
	size_t size;                                       /* a power of two */
	_Alignas(BYTE_RING_LINE) _Atomic uint64_t written; /* the writer's line */
	uint64_t at;                                       /* written, but not yet published */
	uint64_t seen;                                     /* `read` as the writer last saw it */
	_Alignas(BYTE_RING_LINE) _Atomic uint64_t read;    /* the reader's line */
};

/* Allocates a ring of size bytes, a power of two. Its pages are taken when they are first used.
 * Returns 0 or -1. */
int byte_ring_open(struct byte_ring *ring, size_t size);
void byte_ring_close(struct byte_ring *ring);

/* The writer. Is there room for so many bytes more? */
bool byte_ring_room(struct byte_ring *ring, size_t length);
/* Puts bytes that there is room for. */
void byte_ring_put(struct byte_ring *ring, const void *bytes, size_t length);
/* Publishes all bytes before the position `at`, which ring->at had after a put. Later bytes are
 * forgotten. */
void byte_ring_publish(struct byte_ring *ring, uint64_t at);

/* The reader. How many bytes are there? */
size_t byte_ring_readable(const struct byte_ring *ring);
/* Copies bytes that are there, from `offset` after the first unread one on. */
void byte_ring_peek(const struct byte_ring *ring, size_t offset, void *to, size_t length);
void byte_ring_take(struct byte_ring *ring, size_t length);

#endif
