/* SPDX-License-Identifier: BSD-3-Clause */
/* D.h - the tests' own API on the abstract device: Requests with data that is contiguous or
 * strided, which note the calls that are made of them. */
#ifndef D_H
#define D_H

#include <string.h>

#include "A.h"

enum { MPIR_SEND, MPIR_RECV };
enum { MPIR_STANDARD, MPIR_READY, MPIR_SYNCHRONOUS };

typedef struct {
	int tag, source, count;
} Status;

typedef struct {
	int handle_type;
	int dest, source, tag, context_id;
	int completed;
	int mode;
	A_SHANDLE dev_shandle;
	A_RHANDLE dev_rhandle;
	/* the data: pieces of `piece` bytes, of which each begins `stride` after the last */
	char *data;
	int bytes, piece, stride, position;
	char calls[16];
} Request;

static inline void d_note(Request *r, char call)
{
	r->calls[strlen(r->calls) % (sizeof(r->calls) - 1)] = call;
}

/* Copies the next bytes, one by one. */
static inline void d_move(Request *r, char *buffer, int len, int out)
{
	for (int i = 0; i < len; i++, r->position++) {
		char *at = r->data + r->position / r->piece * r->stride + r->position % r->piece;

		if (out)
			buffer[i] = *at;
		else
			*at = buffer[i];
	}
}

#define D_get_totallen(r, len)            (d_note(r, 'T'), (r)->position = 0, *(len) = (r)->bytes)
#define D_get_into_contig(r, buffer, len) (d_note(r, 'G'), d_move(r, buffer, len, 1))
#define D_put_totallen(r, len)            (d_note(r, 't'), (r)->position = 0, (void)(len))
#define D_put_from_contig(r, buffer, len) (d_note(r, 'p'), d_move(r, buffer, len, 0))
#define D_mark_send_completed(r)          (d_note(r, 'M'), (void)((r)->completed = 1))
#define D_mark_recv_completed(r)          (d_note(r, 'm'), (void)((r)->completed = 1))

#endif
