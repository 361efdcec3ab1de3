/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A.h - the types and macros of the abstract device, for the API. The API's D.h includes it before
 * it defines Request, in which dev_shandle is an A_SHANDLE and dev_rhandle an A_RHANDLE. device.c
 * is compiled once, with D.h; the program is linked with libpostern-adi.
 *
 * An API whose Request has other names defines, before it includes this file, some of
 *
 *     A_SEND_REQUEST, A_RECV_REQUEST     types; usually Request
 *     A_FIELD_...(r), A_SET_...(r, v)    below
 *     A_ANY_SOURCE, A_ANY_TAG            wildcards
 *     A_NO_DATA_CALLS                    there are no D_get_... and D_put_...: every Request has a
 *                                        contiguous buffer
 *     A_SHOW_UNEXPECTED                  for device.c: the API's queue of unexpected messages shows
 *                                        those that are here, which the device needs for nothing;
 *                                        there are D_msg_arrived, D_free_unexpected and
 *                                        MPIR_search_unexpected_queue
 *
 * A Request without a contiguous buffer is sent from a copy, which D_get_totallen() and
 * D_get_into_contig() make; it is received into one as long as the message, which D_put_totallen()
 * and D_put_from_contig() empty. What to do with a message that is too long is the API's to say.
 *
 * A receive writes the message's source and tag over those of its Request, wildcards among them: an
 * API that uses a Request again sets both anew.
 */
#ifndef A_H
#define A_H

#include "Datom.h"
#include <postern-adi.h>

/* The device's part of a Request. `operation` is NULL before the post and after the end, so until
 * then a Request may be copied, and need not be freed. */
typedef struct {
	int is_non_blocking;
	void *start;
	int bytes_as_contig; /* -1: there is no contiguous buffer */
	struct adi_operation *operation;
	int delivered; /* bytes, of a receive that is complete */
	int error;
} A_SHANDLE, A_RHANDLE;

#ifndef A_SEND_REQUEST
#define A_SEND_REQUEST Request
#endif
#ifndef A_RECV_REQUEST
#define A_RECV_REQUEST Request
#endif
#ifndef A_ANY_SOURCE
#define A_ANY_SOURCE ADI_ANY_SOURCE
#endif
#ifndef A_ANY_TAG
#define A_ANY_TAG ADI_ANY_TAG
#endif
#define A_TAG_CANCELLED (-3) /* of a receive that was taken back */
#ifndef A_FIELD_CONTEXT
#define A_FIELD_CONTEXT(r) ((r)->context_id)
#endif
#ifndef A_FIELD_SYNCHRONOUS
#define A_FIELD_SYNCHRONOUS(r) ((r)->mode == MPIR_SYNCHRONOUS)
#endif
/* The sender's rank as receivers name it. */
#ifndef A_FIELD_PRESENTED
#define A_FIELD_PRESENTED(r) adi_rank()
#endif
#ifndef A_IS_COMPLETE
#define A_IS_COMPLETE(r) ((r)->completed)
#endif
/* What the device tells of a receive beside source and tag, if the API has fields for it. */
#ifndef A_SET_TOTALLEN
#define A_SET_TOTALLEN(r, bytes) ((void)0)
#endif
#ifndef A_SET_ERROR
#define A_SET_ERROR(r, error) ((void)0)
#endif

#ifdef __cplusplus
extern "C" {
#endif
/* device.c. r: a Request. */
int a_init(int *argc, char ***argv);
void a_handle_alloc(A_SHANDLE *handle);
void a_handle_free(A_SHANDLE *handle);
void a_handle_set(A_SHANDLE *handle, void *buffer, int bytes);
int a_post_send(void *r, int synchronous);
int a_complete_send(void *r);
int a_test_send(void *r);
int a_post_recv(void *r, int *complete); /* complete: NULL, or for whether it is */
int a_complete_recv(void *r);
int a_test_recv(void *r);
int a_execute(void *receive, void *send, int synchronous);
int a_cancel(void *r);
int a_error(const A_RHANDLE *handle);
int a_probe(
	int tag, int source, int context, int blocking, int *to_source, int *to_tag, int *count);
#ifdef __cplusplus
}
#endif

/* --- starting, ending, information */
#define A_INIT(argc, argv)         a_init((argc), (char ***)(void *)(argv))
#define A_END()                    adi_end()
#define A_ABORT(code)              adi_abort(code)
#define A_mysize(size)             (*(size) = adi_size())
#define A_myrank(rank)             (*(rank) = adi_rank())
#define A_NODE_NAME(name, room)    adi_name((name), (room))
#define A_machine_name(name, room) adi_name((name), (room))
#define A_MAX_MACHINE_NAME_LEN     ADI_NAME_ROOM
#define A_WTIME()                  adi_time()
#define A_WTICK()                  adi_tick()
#define A_tag_range(high)          (*(high) = ADI_TAG_MAX)
#define A_check_device(blocking)   adi_check(blocking)
#define A_PACKET_SIZE              4096

/* --- what the device asks for: a contiguous buffer for each Request */
#define A_PACK_IN_ADVANCE
#define A_RETURN_PACKED

/* --- sending */
#define A_alloc_send_handle(r)                a_handle_alloc(&(r)->dev_shandle)
#define A_set_send_is_nonblocking(r, flag)    ((void)((r)->dev_shandle.is_non_blocking = (flag)))
#define A_set_send_contig_buffer(r, buf, len) a_handle_set(&(r)->dev_shandle, (buf), (len))
#define A_post_send(r)                        a_post_send((r), A_FIELD_SYNCHRONOUS(r))
#define A_complete_send(r, status)            a_complete_send(r)
#define A_test_send(r)                        a_test_send(r)
#define A_free_send_handle(r)                 a_handle_free(&(r)->dev_shandle)

/* --- receiving */
#define A_alloc_recv_handle(r)                a_handle_alloc(&(r)->dev_rhandle)
#define A_set_recv_is_nonblocking(r, flag)    ((void)((r)->dev_rhandle.is_non_blocking = (flag)))
#define A_set_recv_contig_buffer(r, buf, len) a_handle_set(&(r)->dev_rhandle, (buf), (len))
#define A_post_recv(r, is_complete)           a_post_recv((r), (is_complete))
#define A_complete_recv(r, status)                                                                 \
	(a_complete_recv(r), (status)->tag = (r)->tag, (status)->source = (r)->source,             \
		(status)->count = (r)->dev_rhandle.delivered, a_error(&(r)->dev_rhandle))
#define A_test_recv(r)        a_test_recv(r)
#define A_free_recv_handle(r) a_handle_free(&(r)->dev_rhandle)
#define A_execute_send_recv(rcv, snd, status)                                                      \
	(a_execute((rcv), (snd), A_FIELD_SYNCHRONOUS(snd)), A_complete_recv(rcv, status))
#define A_free_handle(h) a_handle_free(&(h))
#define A_iprobe(tag_, source_, context, found, status)                                            \
	(*(found) = a_probe((tag_), (source_), (context), 0, &(status)->source, &(status)->tag,    \
		 &(status)->count))
#define A_probe(tag_, source_, context, status)                                                    \
	((void)a_probe((tag_), (source_), (context), 1, &(status)->source, &(status)->tag,         \
		&(status)->count))
#define A_cancel(r) a_cancel(r)

/* --- the other spellings */
#define A_alloc_send(r)                      A_alloc_send_handle(r)
#define A_alloc_recv(r)                      A_alloc_recv_handle(r)
#define A_alloc_rcv_handle(r)                A_alloc_recv_handle(r)
#define A_set_rcv_is_nonblocking(r, flag)    A_set_recv_is_nonblocking(r, flag)
#define A_set_rcv_contig_buffer(r, buf, len) A_set_recv_contig_buffer(r, buf, len)
#define A_post_rcv(r, is_complete)           A_post_recv(r, is_complete)
#define A_complete_rcv(r, status)            A_complete_recv(r, status)
#define A_free_rcv_handle(r)                 A_free_recv_handle(r)
#define A_execute_send_rcv(rcv, snd, status) A_execute_send_recv(rcv, snd, status)

#endif
