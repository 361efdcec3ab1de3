/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpich-1.0.h - the names by which the upper layer of MPICH 1.0.8 to 1.0.12 calls its device, on
 * A.h. It takes the place of that tree's mpid.h, and doc/adi.md says what of its dm.h and
 * mpid_bind.h. Contexts are never evaluated. device.c is compiled with -DA_MPICH, which makes it
 * include the tree's mpiimpl.h; with -DA_MPICH_NO_ERRVAL, too, if that tree's MPIR_RHANDLE has no
 * field errval.
 */
#ifndef MPICH_1_0_H
#define MPICH_1_0_H

#define A_SEND_REQUEST           MPIR_SHANDLE
#define A_RECV_REQUEST           MPIR_RHANDLE
#define A_NO_DATA_CALLS          1
#define A_FIELD_CONTEXT(r)       ((r)->contextid)
#define A_FIELD_SYNCHRONOUS(r)   0 /* the layer has a call of its own */
#define A_FIELD_PRESENTED(r)     ((r)->lrank)
#define A_IS_COMPLETE(r)         ((r)->completer == 0)
#define A_SET_TOTALLEN(r, bytes) ((void)((r)->totallen = (bytes)))
#ifndef A_MPICH_NO_ERRVAL
#define A_SET_ERROR(r, error) ((void)((r)->errval = (error)))
#endif
#define D_mark_send_completed(r) ((void)((r)->completer = 0))
#define D_mark_recv_completed(r) ((void)((r)->completer = 0))

#define D_msg_arrived(from, tag, context, r, is_posted)                                            \
	DMPI_msg_arrived((from), (tag), (context), (r), (is_posted))
#define D_free_unexpected(r) DMPI_free_unexpected(r)

#include "A.h"

/* Up to 1.0.8 the layer asks of a receive that it posts whether that is complete. */
#define a_with_flag(r, flag, ...) (r), (flag)

typedef A_SHANDLE MPID_SHANDLE;
typedef A_RHANDLE MPID_RHANDLE;
enum { MPID_NOTBLOCKING, MPID_BLOCKING };

/* 1.0.8 and 1.0.9 have files that include this one first, and expect these behind it. */
#include "mpi.h"
#include "dmpiatom.h"
#include "mpi_bc.h"

#define MPID_TAG_UB ADI_TAG_MAX
#define MPID_PACK_IN_ADVANCE
#define MPID_RETURN_PACKED
#define MPID_Ctx(request) ((void *)0)

#define MPID_INIT(argc, argv)           (a_init((argc), (argv)), (void *)0)
#define MPID_END(ctx)                   adi_end()
#define MPID_ABORT(ctx, code)           adi_abort(code)
#define MPID_Mysize(ctx, size)          (*(size) = adi_size())
#define MPID_Myrank(ctx, rank)          (*(rank) = adi_rank())
#define MPID_NODE_NAME(ctx, name, room) adi_name((name), (room))
#define MPID_WTIME(ctx)                 adi_time()
#define MPID_WTICK(ctx)                 adi_tick()
#define MPID_Version_name(ctx, text)    adi_version(text)
#define MPID_SetPktSize(bytes)          ((void)(bytes))

#define MPID_Alloc_send_handle(ctx, handle)             a_handle_alloc(handle)
#define MPID_Alloc_recv_handle(ctx, handle)             a_handle_alloc(handle)
#define MPID_Free_send_handle(ctx, handle)              a_handle_free(handle)
#define MPID_Free_recv_handle(ctx, handle)              a_handle_free(handle)
#define MPID_Reuse_send_handle(ctx, handle)             a_handle_free(handle)
#define MPID_Reuse_recv_handle(ctx, handle)             a_handle_free(handle)
#define MPID_Set_send_is_nonblocking(ctx, handle, flag) ((void)((handle)->is_non_blocking = (flag)))
#define MPID_Set_recv_is_nonblocking(ctx, handle, flag) ((void)((handle)->is_non_blocking = (flag)))
#define MPID_Clr_completed(ctx, request)                ((void)((request)->chandle.completer = 1))
#define MPID_Set_completed(ctx, request)                ((void)((request)->chandle.completer = 0))

#define MPID_Post_send(ctx, r)           a_post_send((r), 0)
#define MPID_Post_send_ready(ctx, r)     a_post_send((r), 0)
#define MPID_Post_send_sync(ctx, r)      a_post_send((r), 1)
#define MPID_Blocking_send(ctx, r)       ((void)(a_post_send((r), 0), a_complete_send(r)))
#define MPID_Blocking_send_ready(ctx, r) MPID_Blocking_send(ctx, r)
#define MPID_Complete_send(ctx, r)       a_complete_send(r)
#define MPID_Post_recv(ctx, ...)         a_post_recv(a_with_flag(__VA_ARGS__, (int *)0, 0))
#define MPID_Blocking_recv(ctx, r)       (a_post_recv((r), NULL), a_complete_recv(r))
#define MPID_Complete_recv(ctx, r)       a_complete_recv(r)
#define MPID_Test_send(ctx, r)           a_test_send(r)
#define MPID_Test_recv(ctx, r)           a_test_recv(r)
#define MPID_Test_request(ctx, request)  ((request)->chandle.completer == 0)
#define MPID_Check_device(ctx, blocking) adi_check(blocking)
#define MPID_Iprobe(ctx, tag_, source_, context, found, status)                                    \
	(*(found) = a_probe((tag_), (source_), (context), 0, &(status)->MPI_SOURCE,                \
		 &(status)->MPI_TAG, &(status)->count))
#define MPID_Probe(ctx, tag_, source_, context, status)                                            \
	((void)a_probe((tag_), (source_), (context), 1, &(status)->MPI_SOURCE, &(status)->MPI_TAG, \
		&(status)->count))
#define MPID_CANCEL(ctx, r)            ((void)a_cancel(r))
#define MPID_Comm_init(ctx, old, made) 0
#define MPID_Comm_free(ctx, comm)      0

#define MPID_THREAD_LOCK(ctx, comm)
#define MPID_THREAD_UNLOCK(ctx, comm)
#define MPID_THREAD_LOCK_INIT(ctx, comm)
#define MPID_THREAD_LOCK_FINISH(ctx, comm)
#define MPID_THREAD_DS_LOCK_DECLARE
#define MPID_THREAD_DS_LOCK_INIT(object)
#define MPID_THREAD_DS_LOCK(object)
#define MPID_THREAD_DS_UNLOCK(object)

#endif
