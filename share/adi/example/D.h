/* SPDX-License-Identifier: BSD-3-Clause */
/* D.h - a small API on the abstract device, for adi_ring.c: contiguous data alone, and one
 * communicator. What a larger API adds, it adds to Request; the device does not mind. */
#ifndef D_H
#define D_H

/* All data is contiguous, so the device never asks for pieces. */
#define A_NO_DATA_CALLS
#define A_SET_ERROR(r, code) ((void)((r)->error = (code)))
#include "A.h"

enum { MPIR_SEND, MPIR_RECV };
enum { MPIR_STANDARD, MPIR_READY, MPIR_SYNCHRONOUS };

typedef struct {
	int tag, source, count;
} Status;

typedef struct {
	int handle_type;
	int dest, source; /* ranks */
	int tag, context_id, mode;
	int completed, error;
	A_SHANDLE dev_shandle;
	A_RHANDLE dev_rhandle;
} Request;

#define D_mark_send_completed(r) ((void)((r)->completed = 1))
#define D_mark_recv_completed(r) ((void)((r)->completed = 1))

/* What programs call. */
static inline void start_send(Request *r, int dest, int tag, int mode, void *data, int bytes)
{
	*r = (Request){.handle_type = MPIR_SEND, .dest = dest, .tag = tag, .mode = mode};
	A_alloc_send_handle(r);
	A_set_send_is_nonblocking(r, 1);
	A_set_send_contig_buffer(r, data, bytes);
	A_post_send(r);
}

static inline void start_receive(Request *r, int source, int tag, void *data, int room)
{
	int complete;

	*r = (Request){.handle_type = MPIR_RECV, .source = source, .tag = tag};
	A_alloc_recv_handle(r);
	A_set_recv_is_nonblocking(r, 1);
	A_set_recv_contig_buffer(r, data, room);
	A_post_recv(r, &complete);
}

static inline int finish(Request *r, Status *status)
{
	return r->handle_type == MPIR_SEND ? A_complete_send(r, status)
					   : A_complete_recv(r, status);
}

#endif
