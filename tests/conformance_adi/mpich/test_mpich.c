/* SPDX-License-Identifier: BSD-3-Clause */
/* test_mpich.c - an upper layer in the manner of MPICH 1.0.12 or 1.0.8, as small as can be, on the
 * trees beside this file, which have the shapes of those releases' headers. It makes the calls
 * of its device that that layer makes, in that order, with all names of mpich-1.0.h; the traps that
 * lie there are played. It is compiled as that layer is: -std=gnu89, without position independence.
 * A name that is missing is no declaration, and no symbol.
 *
 * Ranks 0 and 1 talk, 2 and 3, and so on; alone and the last of an odd number talk to themselves.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RUSAGE_THREAD */
#endif
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mpiimpl.h"

/* A layer of 1.0.8, which has no field for the error of a receive, and asks for a flag. */
#if PATCHLEVEL == 8
#define ERRVAL(r)       a_error(&(r)->dev_rhandle)
#define POST_FLAG(flag) , (flag)
#else
#define ERRVAL(r) (r)->errval
#define POST_FLAG(flag)
#endif

#define LONG 200000
#define COMM 4 /* context */
#define ANY  (-2)

/* Of the tree. */
const char *MPIR_configured(void);
void MPIR_queues_init(void);

static void *ctx;
static int rank, size, other;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "rank %d of %d, line %d: %s\n", rank, size, __LINE__,      \
				#condition);                                                       \
			MPID_ABORT(ctx, 3);                                                        \
		}                                                                                  \
	} while (0)

/* T4: handles are not zeroed memory. */
static void send_init(MPIR_SHANDLE *s, int dest, int tag, void *data, int bytes, int nonblocking)
{
	memset(s, 0x5a, sizeof(*s));
	s->handle_type = MPIR_SEND;
	s->dest = dest;
	s->lrank = rank;
	s->tag = tag;
	s->contextid = COMM;
	MPID_Clr_completed(no_such_context, (MPI_Request)s);
	MPID_Alloc_send_handle(no_such_context, &s->dev_shandle);
	MPID_Set_send_is_nonblocking(no_such_context, &s->dev_shandle, nonblocking);
	s->dev_shandle.start = data;
	s->dev_shandle.bytes_as_contig = bytes;
}

static void recv_init(MPIR_RHANDLE *r, int source, int tag, void *data, int room)
{
	memset(r, 0x5a, sizeof(*r));
	r->handle_type = MPIR_RECV;
	r->source = source;
	r->tag = tag;
	r->contextid = COMM;
	MPID_Clr_completed(no_such_context, (MPI_Request)r);
	MPID_Alloc_recv_handle(no_such_context, &r->dev_rhandle);
	r->dev_rhandle.start = data;
	r->dev_rhandle.bytes_as_contig = room;
}

/* Send, Rsend: the handle is on the stack, and never freed (T1). */
static void Send(void *data, int bytes, int dest, int tag, int ready)
{
	MPIR_SHANDLE s;

	send_init(&s, dest, tag, data, bytes, 0);
	if (ready)
		MPID_Blocking_send_ready(ctx, &s);
	else
		MPID_Blocking_send(ctx, &s);
}

/* Recv: no Set, no Free. */
static int Recv(void *data, int room, int source, int tag, MPI_Status *status)
{
	MPIR_RHANDLE r;
	int error;

	recv_init(&r, source, tag, data, room);
	error = MPID_Blocking_recv(ctx, &r);
	status->count = r.totallen;
	status->MPI_SOURCE = r.source;
	status->MPI_TAG = r.tag;
	CHECK(error == ERRVAL(&r)); /* T16 */
	return error;
}

enum { STANDARD, READY, SYNCHRONOUS };

static MPI_Request Isend(void *data, int bytes, int dest, int tag, int mode)
{
	MPI_Request q = malloc(sizeof(*q));
	int error;

	send_init(&q->shandle, dest, tag, data, bytes, 1);
	if (mode == SYNCHRONOUS)
		error = MPID_Post_send_sync(ctx, &q->shandle);
	else if (mode == READY)
		error = MPID_Post_send_ready(ctx, &q->shandle);
	else
		error = MPID_Post_send(ctx, &q->shandle);
	CHECK(error == 0);
	return q;
}

static MPI_Request Irecv(void *data, int room, int source, int tag)
{
	MPI_Request q = malloc(sizeof(*q));
	int complete = 0;

	recv_init(&q->rhandle, source, tag, data, room);
	MPID_Set_recv_is_nonblocking(ctx, &q->rhandle.dev_rhandle, 1);
	if (MPID_Post_recv(ctx, &q->rhandle POST_FLAG(&complete)))
		CHECK(0);
	return q;
}

/* Request_free: also under way (T3). */
static void Request_free(MPI_Request q)
{
	if (q->chandle.handle_type == MPIR_SEND)
		MPID_Free_send_handle(ctx, &q->shandle.dev_shandle);
	else
		MPID_Free_recv_handle(ctx, &q->rhandle.dev_rhandle);
	memset(q, 0x77, sizeof(*q));
	free(q);
}

static int Complete(MPI_Request q)
{
	if (q->chandle.handle_type == MPIR_SEND)
		return MPID_Complete_send(ctx, &q->shandle);
	return MPID_Test_request(ctx, q) ? ERRVAL(&q->rhandle)
					 : MPID_Complete_recv(ctx, &q->rhandle);
}

static int Wait(MPI_Request q)
{
	int error = Complete(q);

	CHECK(MPID_Test_request(ctx, q));
	Request_free(q);
	return error;
}

/* Complete is not called when Test_request says true (T7). */
static int Test(MPI_Request q)
{
	MPID_Check_device(ctx, MPID_NOTBLOCKING);
	if (MPID_Test_request(ctx, q))
		return 1;
	return q->chandle.handle_type == MPIR_SEND ? MPID_Test_send(ctx, &q->shandle)
						   : MPID_Test_recv(ctx, &q->rhandle);
}

static void fill(char *data, int bytes, int seed)
{
	int i;

	for (i = 0; i < bytes; i++)
		data[i] = (char)(seed + i * 7 + (i >> 8));
}

static int is_filled(const char *data, int bytes, int seed)
{
	int i;

	for (i = 0; i < bytes; i++)
		if (data[i] != (char)(seed + i * 7 + (i >> 8)))
			return 0;
	return 1;
}

/* T1: nothing is lost by calls without Free: then each thousand of them would leave 32 KB at least.
 * Memory that the library makes once, when this rank or another one has had no CPU for a while, is
 * not lost. */
static void unfreed(void)
{
	char byte = 1, got;
	MPI_Status status;
	size_t used = 0, least = (size_t)-1;
	int i;

	for (i = 1; i <= 5000; i++) {
		MPIR_SHANDLE never;

		send_init(&never, other, 1, &byte, 1, 0);
		Send(&byte, 1, other, 1, 0);
		CHECK(Recv(&got, 1, other, 1, &status) == 0 && got == byte);
		if (i % 1000 == 0) {
			size_t now = mallinfo2().uordblks, more = now > used ? now - used : 0;

			if (i > 1000 && more < least)
				least = more;
			used = now;
		}
	}
	CHECK(least <= 4096);
}

/* T2: Bsend. The handle is copied between Alloc and Post, and both are freed. */
static void buffered(void)
{
	char data[100], packed[100], got[100];
	MPI_Request user = malloc(sizeof(*user)), internal = malloc(sizeof(*internal));
	MPI_Status status;

	fill(data, sizeof(data), 5);
	send_init(&user->shandle, other, 2, data, sizeof(data), 1);
	memcpy(internal, user, sizeof(*user));
	memcpy(packed, data, sizeof(data));
	internal->shandle.dev_shandle.start = packed;
	CHECK(MPID_Post_send(ctx, &internal->shandle) == 0);
	MPID_Set_completed(ctx, user);
	CHECK(Wait(user) == 0);
	memset(data, 0, sizeof(data));
	CHECK(Recv(got, sizeof(got), other, 2, &status) == 0 && is_filled(got, sizeof(got), 5));
	while (!Test(internal))
		;
	Request_free(internal);
}

/* Start: T5, T6, and a Request that is used again. */
static void persistent(void)
{
	MPIR_SHANDLE s;
	MPIR_RHANDLE r;
	char out[10], in[10];
	int i;

	send_init(&s, -1, 3, NULL, 0, 1);
	recv_init(&r, -1, 3, NULL, 0);
	CHECK(MPID_Post_send(ctx, &s) == 0 && MPID_Test_request(ctx, (MPI_Request)&s));
	CHECK(MPID_Post_recv(ctx, &r) == 0 && MPID_Test_request(ctx, (MPI_Request)&r));
	CHECK(r.totallen == 0 && MPID_Complete_send(ctx, &s) == 0);
	CHECK(MPID_Complete_recv(ctx, &r) == 0 && MPID_Test_recv(ctx, &r));
	send_init(&s, other, 3, out, sizeof(out), 1);
	recv_init(&r, ANY, -1, in, sizeof(in));
	MPID_Set_recv_is_nonblocking(ctx, &r.dev_rhandle, 1);
	for (i = 0; i < 20; i++) {
		fill(out, sizeof(out), i);
		CHECK(MPID_Post_recv(ctx, &r) == 0);
		if (i % 2)
			MPID_Post_send_sync(ctx, &s);
		else
			MPID_Post_send(ctx, &s);
		CHECK(Complete((MPI_Request)&s) == 0 && Complete((MPI_Request)&r) == 0);
		CHECK(r.source == other && r.tag == 3 && is_filled(in, sizeof(in), i));
		r.source = ANY;
		r.tag = -1;
		MPID_Clr_completed(ctx, (MPI_Request)&s);
		MPID_Reuse_send_handle(ctx, &s.dev_shandle);
		MPID_Clr_completed(ctx, (MPI_Request)&r);
		MPID_Reuse_recv_handle(ctx, &r.dev_rhandle);
	}
}

/* T9: while one waits for A, an earlier send of one's own and B's rendezvous go on. The odd one
 * sends what the even one waits for only after it has got all else. */
static void served(void)
{
	static char out[3][LONG], in[3][LONG];
	MPI_Request s[3];
	MPI_Status status;
	char byte = 0;
	int i;

	if (other == rank)
		return;
	for (i = 0; i < 3; i++) {
		fill(out[i], LONG, i);
		if (rank < other)
			s[i] = Isend(out[i], i == 2 ? 10 : LONG, other, 10 + i,
				i ? SYNCHRONOUS : STANDARD);
	}
	if (rank > other) {
		usleep(20000); /* all are unexpected */
		for (i = 2; i >= 0; i--) {
			CHECK(Recv(in[i], LONG, other, 10 + i, &status) == 0);
			CHECK(status.count == (i == 2 ? 10 : LONG) &&
				is_filled(in[i], status.count, i));
		}
		Send(&byte, 1, other, 20, 0);
		return;
	}
	CHECK(Recv(&byte, 1, other, 20, &status) == 0);
	for (i = 0; i < 3; i++)
		CHECK(Wait(s[i]) == 0);
}

/* How often this thread has given the processor away by itself. */
static long given(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static int test_30(MPI_Request r)
{
	return Test(r);
}

static int probe_32(MPI_Request r)
{
	MPI_Status status;
	int found;

	(void)r;
	MPID_Iprobe(ctx, 32, other, COMM, &found, &status);
	return found;
}

/* What a thread loses to others while it waits is no giving away, so it may take many looks. */
static void look_until_given(int (*look)(MPI_Request r), MPI_Request r)
{
	const long before = given();
	int i;

	for (i = 0; i < 1000000 && given() <= before + 100; i++)
		CHECK(!look(r));
	CHECK(given() > before + 100);
}

/* T15: loops of tests that find nothing give the processor away. */
static void given_away(void)
{
	char byte, out = 7;
	MPI_Request r = Irecv(&byte, 1, other, 30);
	MPI_Status status;

	look_until_given(test_30, r);
	look_until_given(probe_32, r);
	/* All have looked. */
	Send(&out, 1, other, 31, 0);
	CHECK(Recv(&byte, 1, other, 31, &status) == 0);
	Send(&out, 1, other, 30, 0);
	CHECK(Wait(r) == 0 && byte == 7);
}

/* T13, T16: a truncated message; T10: no bytes from nowhere. */
static void truncated(void)
{
	static char out[LONG], in[LONG];
	int lengths[2] = {50, LONG}, i;
	MPI_Status status;

	for (i = 0; i < 2; i++) {
		MPI_Request s;

		fill(out, LONG, i);
		s = Isend(out, lengths[i], other, 40, STANDARD);
		CHECK(Recv(in, 20, other, 40, &status) == ADI_TRUNCATED);
		CHECK(status.count == 20 && is_filled(in, 20, i));
		CHECK(Wait(s) == 0);
		s = Isend(NULL, 0, other, 41, STANDARD);
		CHECK(Recv(NULL, 0, other, 41, &status) == 0 && status.count == 0);
		CHECK(Wait(s) == 0);
	}
}

/* Waitany: rounds of Test_request, Complete_... and Check_device. */
static void any(void)
{
	MPI_Request q[8];
	char out[4], in[4];
	int i, left = 8;

	for (i = 0; i < 4; i++)
		q[i] = Irecv(&in[i], 1, other, 50 + i);
	for (i = 3; i >= 0; i--) {
		out[i] = (char)i;
		q[4 + i] = Isend(&out[i], 1, other, 50 + i, i % 3);
	}
	while (left > 0) {
		for (i = 0; i < 8; i++)
			if (q[i] && MPID_Test_request(ctx, q[i])) {
				CHECK(Wait(q[i]) == 0);
				q[i] = NULL;
				left--;
			}
		MPID_Check_device(ctx, MPID_NOTBLOCKING);
	}
	for (i = 0; i < 4; i++)
		CHECK(in[i] == i);
}

static void probes(void)
{
	char out[5] = "four", in[5];
	MPI_Request q = Irecv(in, 5, other, 60);
	MPI_Status status;
	int found = 1;

	MPID_Iprobe(ctx, 62, other, COMM, &found, &status);
	CHECK(!found);
	MPID_CANCEL(ctx, &q->chandle); /* and the layer raises an error of its own */
	CHECK(MPID_Test_request(ctx, q) && q->rhandle.tag == -3);
	Request_free(q);
	Send(out, 5, other, 61, 0);
	MPID_Probe(ctx, 61, ANY, COMM, &status);
	CHECK(status.count == 5 && status.MPI_SOURCE == other && status.MPI_TAG == 61);
	CHECK(Recv(in, 5, status.MPI_SOURCE, status.MPI_TAG, &status) == 0 && strcmp(in, out) == 0);
}

/* Where macros break that are no expressions, and none that need a context. */
static void names(void)
{
	char name[256], version[128];
	MPID_THREAD_DS_LOCK_DECLARE
	double then = MPID_WTIME(ctx);

	MPID_THREAD_LOCK_INIT(ctx, comm);
	MPID_THREAD_DS_LOCK_INIT(object);
	MPID_THREAD_LOCK(ctx, comm);
	MPID_THREAD_DS_LOCK(object);
	MPID_THREAD_DS_UNLOCK(object);
	MPID_THREAD_UNLOCK(ctx, comm);
	MPID_THREAD_LOCK_FINISH(ctx, comm);
	MPID_NODE_NAME(ctx, name, 256);
	MPID_Version_name(ctx, version);
	MPID_SetPktSize(1000);
	CHECK(strlen(name) > 0 && strlen(version) > 0 && MPID_WTICK(ctx) > 0);
	CHECK(MPID_WTIME(ctx) >= then && MPID_TAG_UB >= 32767 && MPID_Ctx(no_such_request) == NULL);
	CHECK(MPID_Comm_init(ctx, no_such_comm, no_such_comm) == 0);
	CHECK(MPID_Comm_free(ctx, no_such_comm) == 0);
	if (rank < 0)
		MPID_ABORT(ctx, 1);
	else
		CHECK(MPID_BLOCKING == 1);
}

#ifndef MPID_PACK_IN_ADVANCE
#error "the device wants packed data"
#endif
#ifndef MPID_RETURN_PACKED
#error "and gives packed data"
#endif

int main(int argc, char **argv)
{
	ctx = MPID_INIT(&argc, &argv);
	MPIR_queues_init();
	CHECK(*MPIR_configured() == '\0');
	MPID_Mysize(ctx, &size);
	MPID_Myrank(ctx, &rank);
	other = rank % 2 ? rank - 1 : rank + 1 < size ? rank + 1 : rank;
	names();
	unfreed();
	buffered();
	persistent();
	served();
	truncated();
	any();
	probes();
	given_away();
	MPID_END(ctx);
	return 0;
}
