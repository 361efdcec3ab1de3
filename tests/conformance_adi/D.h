/* SPDX-License-Identifier: BSD-3-Clause */
/* D.h - the tests' own API on the abstract device: Requests with data that is contiguous or
 * strided, which note the calls that are made of them; with A_SHOW_UNEXPECTED a queue, too. */
#ifndef D_H
#define D_H

#include <stdlib.h>
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
	int told; /* by D_put_totallen() */
	char calls[16];
} Request;

static inline void d_note(Request *r, char call)
{
	r->calls[strlen(r->calls) % (sizeof(r->calls) - 1)] = call;
}

/* Copies the next bytes, one by one, and no more than there is room for. */
static inline void d_move(Request *r, char *buffer, int len, int out)
{
	for (int i = 0; i < len && r->position < r->bytes; i++, r->position++) {
		char *at = r->data + r->position / r->piece * r->stride + r->position % r->piece;

		if (out)
			buffer[i] = *at;
		else
			*at = buffer[i];
	}
}

#define D_get_totallen(r, len)            (d_note(r, 'T'), (r)->position = 0, *(len) = (r)->bytes)
#define D_get_into_contig(r, buffer, len) (d_note(r, 'G'), d_move(r, buffer, len, 1))
#define D_put_totallen(r, len)            (d_note(r, 't'), (r)->position = 0, (r)->told = (len))
#define D_put_from_contig(r, buffer, len) (d_note(r, 'p'), d_move(r, buffer, len, 0))
#define D_mark_send_completed(r)          (d_note(r, 'M'), (void)((r)->completed = 1))
#define D_mark_recv_completed(r)          (d_note(r, 'm'), (void)((r)->completed = 1))

#ifdef A_SHOW_UNEXPECTED
#define QUEUE_MAX 64

typedef struct {
	Request *first[QUEUE_MAX];
	int count;
} Queue;

extern Queue d_unexpected; /* of test_adi.c */

static inline void d_enqueue(Queue *q, Request *r)
{
	if (q->count == QUEUE_MAX)
		A_ABORT(4);
	q->first[q->count++] = r;
}

static inline void d_dequeue(Queue *q, const Request *r)
{
	int i = 0;

	while (i < q->count && q->first[i] != r)
		i++;
	if (i == q->count)
		return;
	q->count--;
	memmove(&q->first[i], &q->first[i + 1], (size_t)(q->count - i) * sizeof(q->first[0]));
}

static inline void d_arrived(int from, int tag, int context, Request **rcv, int *is_posted)
{
	Request *r = malloc(sizeof(*r));

	if (!r)
		A_ABORT(4);
	memset(r, 0x5a, sizeof(*r));
	r->handle_type = MPIR_RECV;
	r->source = from;
	r->tag = tag;
	r->context_id = context;
	r->completed = 0;
	A_alloc_recv_handle(r);
	d_enqueue(&d_unexpected, r);
	*rcv = r;
	*is_posted = 0;
}

static inline void d_search(int source, int tag, int context, int *found, int take, Request **rcv)
{
	*found = 0;
	for (int i = 0; i < d_unexpected.count && !*found; i++) {
		Request *r = d_unexpected.first[i];

		if (r->context_id != context || (source != A_ANY_SOURCE && source != r->source) ||
			(tag != A_ANY_TAG && tag != r->tag))
			continue;
		*found = 1;
		*rcv = r;
		if (take)
			d_dequeue(&d_unexpected, r);
	}
}

#define MPIR_enqueue(q, r) d_enqueue(q, r)
#define MPIR_dequeue(q, r) d_dequeue(q, r)
#define MPIR_search_unexpected_queue(source, tag, context, found, remove, rcv)                     \
	d_search(source, tag, context, found, remove, rcv)
#define D_msg_arrived(from, tag, context, rcv, is_posted)                                          \
	d_arrived(from, tag, context, rcv, is_posted)
#define D_free_unexpected(r) (A_free_recv_handle(r), free(r))
#endif

#endif
