/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - the part of the abstract device that touches Requests: compiled once, with the API's
 * D.h; all else is libpostern-adi. See A.h.
 *
 * A Request is written inside A_ calls only. What is known of an operation is in place before the
 * Request is marked complete, so an API that sees the mark needs no further call.
 */
#ifdef A_MPICH
#include "mpiimpl.h"
#else
#include "D.h"
#endif

#include <stdlib.h>

/* The other side's part of a Request. */
static void done(void *owner, const struct adi_result *result)
{
	A_RECV_REQUEST *r = owner;

	if (((A_SEND_REQUEST *)owner)->handle_type == MPIR_SEND) {
		D_mark_send_completed((A_SEND_REQUEST *)owner);
		return;
	}
	r->source = result->source;
	r->tag = result->tag;
	r->dev_rhandle.delivered = result->bytes;
	r->dev_rhandle.error = result->error;
	A_SET_TOTALLEN(r, result->bytes);
	A_SET_ERROR(r, result->error);
#ifndef A_NO_DATA_CALLS
	if (result->data) {
		D_put_totallen(r, result->bytes);
		if (result->bytes > 0)
			D_put_from_contig(r, result->data, result->bytes);
	}
#endif
	D_mark_recv_completed(r);
}

#ifdef A_SHOW_UNEXPECTED
/* The API's queue shows a message until a receive gets it. The API has no queue of receives. */
static void arrived(const struct adi_result *message)
{
	A_RECV_REQUEST *r;
	int is_posted;

	D_msg_arrived(message->source, message->tag, message->context, &r, &is_posted);
	if (is_posted)
		adi_fail("the API has a queue of posted receives, which it may not have");
	r->dev_rhandle.bytes_as_contig = message->bytes;
	A_SET_TOTALLEN(r, message->bytes);
}

static void taken(const struct adi_result *message)
{
	A_RECV_REQUEST *r;
	int found;

	MPIR_search_unexpected_queue(
		message->source, message->tag, message->context, &found, 1, &r);
	if (found)
		D_free_unexpected(r);
}
#endif

int a_init(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
#ifdef A_SHOW_UNEXPECTED
	adi_show(arrived, taken);
#endif
	if (adi_start(done) != 0)
		adi_abort(1);
	return 0;
}

void a_handle_alloc(A_SHANDLE *handle)
{
	handle->is_non_blocking = 0;
	handle->start = NULL;
	handle->bytes_as_contig = -1;
	handle->operation = NULL;
	handle->delivered = 0;
	handle->error = 0;
}

void a_handle_free(A_SHANDLE *handle)
{
	if (handle->operation)
		adi_detach(handle->operation);
	handle->operation = NULL;
}

void a_handle_set(A_SHANDLE *handle, void *buffer, int bytes)
{
	handle->start = buffer;
	handle->bytes_as_contig = bytes;
}

int a_error(const A_RHANDLE *handle)
{
	return handle->error;
}

#ifndef A_NO_DATA_CALLS
static void *copy_make(int bytes)
{
	void *copy = malloc(bytes > 0 ? (size_t)bytes : 1);

	if (!copy)
		adi_fail("there is no memory for a message without a contiguous buffer");
	return copy;
}
#endif

int a_post_send(void *request, int synchronous)
{
	A_SEND_REQUEST *r = request;
	A_SHANDLE *handle = &r->dev_shandle;
	void *data = handle->start;
	int bytes = handle->bytes_as_contig, copied = bytes < 0;

	handle->operation = NULL;
	if (r->dest < 0) { /* no process */
		D_mark_send_completed(r);
		return 0;
	}
	if (copied) {
#ifndef A_NO_DATA_CALLS
		D_get_totallen(r, &bytes);
		data = copy_make(bytes);
		if (bytes > 0)
			D_get_into_contig(r, data, bytes);
#else
		bytes = copied = 0;
#endif
	}
	adi_send(&handle->operation, r, r->dest, A_FIELD_PRESENTED(r), r->tag, A_FIELD_CONTEXT(r),
		synchronous, data, bytes, copied);
	if (!handle->is_non_blocking)
		adi_wait(&handle->operation);
	return 0;
}

int a_complete_send(void *request)
{
	A_SEND_REQUEST *r = request;

	if (!A_IS_COMPLETE(r))
		adi_wait(&r->dev_shandle.operation);
	return 0;
}

int a_test_send(void *request)
{
	A_SEND_REQUEST *r = request;

	if (!A_IS_COMPLETE(r))
		adi_check(0);
	return !!A_IS_COMPLETE(r);
}

int a_post_recv(void *request, int *complete)
{
	A_RECV_REQUEST *r = request;
	A_RHANDLE *handle = &r->dev_rhandle;
	int room = handle->bytes_as_contig;
	void *buffer = handle->start;
	int source = r->source == A_ANY_SOURCE ? -1 : r->source;
	int tag = r->tag == A_ANY_TAG ? -1 : r->tag;

	handle->operation = NULL;
	handle->delivered = 0;
	handle->error = 0;
	if (r->source < 0 && r->source != A_ANY_SOURCE) { /* no process */
		A_SET_TOTALLEN(r, 0);
		A_SET_ERROR(r, 0);
		D_mark_recv_completed(r);
		if (complete)
			*complete = 1;
		return 0;
	}
#ifdef A_NO_DATA_CALLS
	if (room < 0)
		room = 0;
#endif
	adi_receive(&handle->operation, r, source, tag, A_FIELD_CONTEXT(r), buffer, room);
	if (!handle->is_non_blocking)
		adi_wait(&handle->operation);
	if (complete)
		*complete = !!A_IS_COMPLETE(r);
	return handle->error;
}

int a_complete_recv(void *request)
{
	A_RECV_REQUEST *r = request;

	if (!A_IS_COMPLETE(r))
		adi_wait(&r->dev_rhandle.operation);
	return r->dev_rhandle.error;
}

int a_test_recv(void *request)
{
	A_RECV_REQUEST *r = request;

	if (!A_IS_COMPLETE(r))
		adi_check(0);
	return !!A_IS_COMPLETE(r);
}

int a_execute(void *receive, void *send, int synchronous)
{
	A_RECV_REQUEST *r = receive;
	A_SEND_REQUEST *s = send;

	/* Two processes that exchange messages wait for each other only when both have sent. */
	r->dev_rhandle.is_non_blocking = 1;
	s->dev_shandle.is_non_blocking = 1;
	a_post_recv(r, NULL);
	a_post_send(s, synchronous);
	a_complete_send(s);
	return a_complete_recv(r);
}

int a_cancel(void *request)
{
	A_RECV_REQUEST *r = request;

	if (((A_SEND_REQUEST *)request)->handle_type == MPIR_SEND || A_IS_COMPLETE(r) ||
		!r->dev_rhandle.operation || !adi_cancel(r->dev_rhandle.operation))
		return 0;
	r->dev_rhandle.delivered = 0;
	r->tag = A_TAG_CANCELLED;
	A_SET_TOTALLEN(r, 0);
	D_mark_recv_completed(r);
	return 1;
}

int a_probe(int tag, int source, int context, int blocking, int *to_source, int *to_tag, int *count)
{
	struct adi_result result;

	if (source < 0 && source != A_ANY_SOURCE) {
		*to_source = source;
		*to_tag = A_ANY_TAG;
		*count = 0;
		return 1;
	}
	if (!adi_probe(source == A_ANY_SOURCE ? -1 : source, tag == A_ANY_TAG ? -1 : tag, context,
		    blocking, &result))
		return 0;
	*to_source = result.source;
	*to_tag = result.tag;
	*count = result.bytes;
	return 1;
}
