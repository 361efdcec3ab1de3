/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * postern-adi.h - the device of MPICH's abstract device interface (ADI), as far as it needs no
 * Request: ranks, sends, receives, the job. Programs do not include it: share/adi/A.h and
 * device.c do, which are compiled with an API's D.h.
 *
 * One thread at a time calls. Every error that the interface has no code for is one line on
 * standard error and then adi_abort(): a peer that has gone, an argument out of range, no memory.
 */
#ifndef POSTERN_ADI_H
#define POSTERN_ADI_H

#ifdef __cplusplus
extern "C" {
#endif

#define ADI_ANY_SOURCE (-2)
#define ADI_ANY_TAG    (-1)
#define ADI_TAG_MAX    1073741823
#define ADI_TRUNCATED  14 /* of a receive: the message was longer than the room */
#define ADI_NAME_ROOM  256

/* A send or a receive that is under way. It ends when the done() of adi_start() is called with its
 * owner, and is gone then. */
struct adi_operation;

/* What became of a receive, or is found by a probe, or is shown. */
struct adi_result {
	int source; /* as the sender presents itself */
	int tag;
	int context;
	int bytes;  /* delivered; of a probe or shown: the whole message's */
	int error;  /* 0, ADI_TRUNCATED */
	void *data; /* of a receive without a buffer: the message, during done() */
};

/* Joins the job; a process calls it once. done(owner, result) is called inside later calls, once
 * for each operation whose owner is not NULL. Blocks until all processes of the job have called
 * this.
 * Returns 0, or -1 after an error line. */
int adi_start(void (*done)(void *owner, const struct adi_result *result));
/* Called before adi_start(). arrived() is called once for each message that has arrived and that no
 * receive matches, and taken() when a receive gets such a message; both are called inside later
 * calls. At most 8192 messages are shown at a time. */
void adi_show(void (*arrived)(const struct adi_result *message),
	void (*taken)(const struct adi_result *message));
/* Ends: waits until all processes of the job have called this. Messages that no peer has received
 * by then are lost without an error line. Without adi_start() it does nothing. */
void adi_end(void);
/* Ends all processes of the job with this exit code. Only the low byte is used; if that is 0 and
 * code is not, it becomes 1. */
void adi_abort(int code) __attribute__((noreturn));

int adi_rank(void); /* of this process, from 0 */
int adi_size(void); /* processes in the job */

/* Begins a send to a rank of the world. presented: the sender's rank as the receiver names it.
 * buffer: must stay as it is until the operation is done; owned: it is malloc()ed, and freed then.
 * *operation is NULL when the send is done at once. */
void adi_send(struct adi_operation **operation, void *owner, int to, int presented, int tag,
	int context, int synchronous, void *buffer, int bytes, int owned);
/* Begins a receive. source: ADI_ANY_SOURCE, or any number below 0: any rank; tag: ADI_ANY_TAG, or
 * any number below 0: any tag. room: bytes of the buffer; below 0: there is no buffer, and a
 * message of any length is passed to done() as data. */
void adi_receive(struct adi_operation **operation, void *owner, int source, int tag, int context,
	void *buffer, int room);
/* Returns when done() has made *operation NULL. */
void adi_wait(struct adi_operation *const *operation);
/* The operation continues, but done() is not called for it. */
void adi_detach(struct adi_operation *operation);
/* Cancels a receive. Returns 1 if it is cancelled: done() is not called for it. Returns 0 if it has
 * matched a message: it continues. */
int adi_cancel(struct adi_operation *operation);
/* Looks for a message that a receive with the same arguments would get. blocking, not 0: waits for
 * it. Returns 1 after *result has been written, or 0: there is no message. */
int adi_probe(int source, int tag, int context, int blocking, struct adi_result *result);
/* Makes progress. blocking, not 0: returns only after something has happened. */
void adi_check(int blocking);

double adi_time(void);               /* seconds */
double adi_tick(void);               /* resolution of it */
void adi_name(char *name, int room); /* of this host, cut to room bytes; at most ADI_NAME_ROOM */
/* One line about the device, of less than 128 bytes. */
void adi_version(char *text);
/* An error line about this process, and adi_abort(1). */
void adi_fail(const char *why) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#endif
