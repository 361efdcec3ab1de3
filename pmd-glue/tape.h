/* SPDX-License-Identifier: BSD-3-Clause */
/* tape.h - bytes on their way from one thread to another, in order, through memory of a fixed size.
 *
 * One thread writes, one reads; neither ever waits for the other. Writing takes two steps, so that
 * bytes of frames that the port did not take are never seen:
 *
 *      writer: tape_put() ...  at ------.           reader: tape_readable()
 *              tape_publish()           v                   tape_peek() ...
 *      [ ...... | read ======== written ~~~~ at ... ]       tape_take()
 *
 * T1. From `read` up to `written` the bytes are the reader's, all others the writer's.
 * T2. Positions count bytes since the tape began and never wrap; a byte lies at its position modulo
 *     the size.
 */
#ifndef PMD_GLUE_TAPE_H
#define PMD_GLUE_TAPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAPE_LINE 64 /* a cache line */

struct tape {
	uint8_t *bytes;
	size_t size;                                  /* a power of two */
	_Alignas(TAPE_LINE) _Atomic uint64_t written; /* the writer's line */
	uint64_t at;                                  /* written, but not yet published */
	uint64_t seen;                                /* `read` as the writer last saw it */
	_Alignas(TAPE_LINE) _Atomic uint64_t read;    /* the reader's line */
};

/* Allocates a tape of size bytes, a power of two. Its pages are taken when they are first used.
 * Returns 0 or -1. */
int tape_open(struct tape *tape, size_t size);
void tape_close(struct tape *tape);

/* The writer. Is there room for so many bytes more? */
bool tape_room(struct tape *tape, size_t length);
/* Puts bytes that there is room for. */
void tape_put(struct tape *tape, const void *bytes, size_t length);
/* Publishes all bytes before the position `at`, which tape->at had after a put. Later bytes are
 * forgotten. */
void tape_publish(struct tape *tape, uint64_t at);

/* The reader. How many bytes are there? */
size_t tape_readable(const struct tape *tape);
/* Copies bytes that are there, from `offset` after the first unread one on. */
void tape_peek(const struct tape *tape, size_t offset, void *to, size_t length);
void tape_take(struct tape *tape, size_t length);

#endif
