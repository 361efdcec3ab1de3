/* SPDX-License-Identifier: BSD-3-Clause */
/* postern.h - what Postern adds to Portals: version, hugepage memory, texts, statistics, settings,
 * inspection, jobs. */
#ifndef POSTERN_H
#define POSTERN_H

#include <stddef.h>
#include <stdint.h>
#include <portals.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version and texts */

/* Version of the header; postern_version() gives the library's. */
#define POSTERN_VERSION_MAJOR 0
#define POSTERN_VERSION_MINOR 1
#define POSTERN_VERSION_PATCH 0

/* The version of the library, such as "0.1.0". Any thread may call this, at any time.
 * Returns the text, never NULL. */
PTL_API const char *postern_version(void);

/* Turns a code into text. The _name functions get a constant's name, such as "PTL_INV_MD"; the
 * _text functions get a sentence that explains the code. Any thread may call these, at any time.
 * Returns the text. It is never NULL, even if no constant has the value. */
PTL_API const char *postern_error_name(int code);
PTL_API const char *postern_error_text(int code);
PTL_API const char *postern_event_name(ptl_event_kind_t kind);
PTL_API const char *postern_fail_text(ptl_ni_fail_t why);

/* The error line that this thread wrote to standard error last: what failed, on what, why, and what
 * to do. PtlInit, PtlNIInit, and the functions below that refer to postern_last_error(), forget an
 * earlier line when they begin. Any thread may call this, at any time.
 * Returns the text, never NULL; "" when there is no line. It is valid until the thread's next
 * call. */
PTL_API const char *postern_last_error(void);

/* Memory */

/* Allocates memory for descriptors: hugepages on the NUMA node of the interface's port if there are
 * any, ordinary pages otherwise.
 *   interface  the interface whose NUMA node is used
 *   size       bytes; 0 counts as 1
 * The memory stays valid after the interface is closed. Any thread may call this.
 * Returns the memory, aligned to 64 bytes and zeroed, or NULL: no memory is left, or interface is
 * not a valid handle. */
PTL_API void *postern_alloc(ptl_handle_ni_t interface, size_t size);
/* Frees memory of postern_alloc(). NULL is ignored; in a child made by fork() the call does
 * nothing. Any thread may call this. */
PTL_API void postern_free(void *memory);

/* Settings and counters */

/* One counter of an interface. name is static: "frames_received", "dropped_no_match", ... */
struct postern_stat {
	const char *name;
	const char *help;
	uint64_t value;
};

/* The counters of an interface.
 *   interface  the interface
 *   stats      out: up to count counters; may be NULL when count is 0
 *   count      the size of stats, in counters
 * Any thread may call this; the interface's poll thread pauses for a moment.
 * Returns the number of counters, which may be more than count, or 0: interface is not a valid
 * handle, or stats is not a legal address. */
PTL_API unsigned postern_stats(
	ptl_handle_ni_t interface, struct postern_stat *stats, unsigned count);

/* One PTL_ setting: its name, default, meaning, and its value in this process now. */
struct postern_setting {
	const char *name;
	const char *fallback;
	const char *help;
	const char *value;
};

/* All settings.
 *   settings  out: up to count settings; may be NULL when count is 0. The texts are valid until the
 *             next PtlInit that opens the library
 *   count     the size of settings, in settings
 * Any thread may call this, at any time.
 * Returns the number of settings, which may be more than count, or 0: settings is not a legal
 * address, or this is a child made by fork(). */
PTL_API unsigned postern_settings(struct postern_setting *settings, unsigned count);

/* Changes a setting of a running process, as if the environment had had that value from the start.
 *   interface  the interface, for a setting that each interface has its own value of
 *   name       PTL_LOG_LEVEL, PTL_POLL (of all interfaces) or PTL_FAULT (only if the interface was
 *              initialised with one, such as drop=0)
 *   value      as in the environment
 * Any thread may call this; poll threads pause for a moment.
 * Returns
 *   PTL_OK      The setting has its new value.
 *   PTL_NOINIT  The library is not initialised.
 *   PTL_INV_NI  interface is not a valid interface handle.
 *   PTL_SEGV    name or value is not a legal address.
 *   PTL_FAIL    The setting does not exist, cannot change while the library is in use, or cannot
 *               have this value. postern_last_error() says which. */
PTL_API int postern_set(ptl_handle_ni_t interface, const char *name, const char *value);

/* Waiting for events */

/* How many queues postern_eq_poll() waits for at once. */
#define POSTERN_EQ_POLL_MAX 64

/* Takes the next event of the first of several event queues that has one; if none has, waits. With
 * count 1 it is PtlEQWait with a timeout.
 *   queues   handles of event queues, all of one interface; the same may appear twice
 *   count    number of handles in queues, 1 to POSTERN_EQ_POLL_MAX
 *   timeout  ns to wait at most; 0: the call only looks; UINT64_MAX: no limit
 *   event    out: the event, as PtlEQWait gives it
 *   which    out: index in queues of the queue that the event is from; may be NULL
 * Other threads may wait for the same queues; each event goes to one thread. As with PtlEQWait,
 * PtlEQGet finds a queue empty while another thread waits for it. With PTL_PROGRESS=inline the call
 * sends and receives meanwhile. Any thread may call this, several at once.
 * Returns
 *   PTL_OK          The event has been taken.
 *   PTL_EQ_DROPPED  The event has been taken; events of this queue before it were lost, because the
 *                   queue was full.
 *   PTL_EQ_EMPTY    The timeout has passed and no queue has an event.
 *   PTL_NOINIT      The library is not initialised.
 *   PTL_INV_EQ      count is not allowed, a handle is not a valid event queue handle of the first
 *                   one's interface, or a queue was freed or the interface shut down during the
 *                   wait.
 *   PTL_SEGV        queues, event or which is not a legal address. */
PTL_API int postern_eq_poll(const ptl_handle_eq_t *queues, unsigned count, uint64_t timeout,
	ptl_event_t *event, unsigned *which);

/* Makes a file descriptor for poll(), select() or epoll that is readable while an event queue has
 * events, so that an event loop can wait for messages together with sockets and timers.
 *   queue  the event queue
 * When the descriptor is readable, call PtlEQGet, or postern_eq_poll() with timeout 0, until there
 * is no more event: the call that finds the queue empty makes the descriptor unreadable. A loop
 * that does so may also use EPOLLET. If another thread takes events, the descriptor may be readable
 * for a moment while the queue is empty. When the queue is freed or its interface is shut down, the
 * descriptor stays readable, and PtlEQGet returns PTL_INV_EQ. Each call makes another descriptor.
 * The caller closes it, and must not read or write it. Any thread may call this.
 * Returns the descriptor, or a code with a minus before it:
 *   -PTL_NOINIT   The library is not initialised.
 *   -PTL_INV_EQ   queue is not a valid event queue handle.
 *   -PTL_NOSPACE  The process has reached its limit of open descriptors.
 *   -PTL_FAIL     With PTL_PROGRESS=inline there is no descriptor, because events come only while
 *                 the program calls Portals: call postern_eq_poll() with a timeout in the loop.
 *                 postern_last_error() says so. */
PTL_API int postern_eq_fd(ptl_handle_eq_t queue);

/* Captures */

/* Begins to write the frames that an interface receives and sends into a pcapng file, as
 * PTL_CAPTURE does from the start. If the file can no longer be written, for example because the
 * disk is full, only the capture ends, with a line on standard error.
 *   interface  the interface
 *   file       name of the file; %p in it is the process id, %i the interface's number; "-" is
 *              standard output, and output of the program goes to standard error from then on. An
 *              existing file is emptied; it must belong to this user. Interfaces of one process may
 *              share a file; reordercap sorts its frames by time
 *   snaplen    bytes of each frame that are kept, 0 for all
 * Any thread may call this; the interface's poll thread pauses for a moment.
 * Returns
 *   PTL_OK      The capture has begun.
 *   PTL_NOINIT  The library is not initialised.
 *   PTL_INV_NI  interface is not a valid interface handle.
 *   PTL_SEGV    file is not a legal address.
 *   PTL_FAIL    The file cannot be opened, or the interface is being captured already.
 *               postern_last_error() says which. */
PTL_API int postern_capture_start(ptl_handle_ni_t interface, const char *file, unsigned snaplen);
/* Ends the capture of an interface, and returns when the file is complete. PtlNIFini also does
 * this.
 *   interface  the interface
 * Any thread may call this.
 * Returns
 *   PTL_OK      No capture of the interface is running any more.
 *   PTL_NOINIT  The library is not initialised.
 *   PTL_INV_NI  interface is not a valid interface handle. */
PTL_API int postern_capture_stop(ptl_handle_ni_t interface);

/* Inspection */

/* A part of an interface that can be inspected: "port", "ni", "peers", ... The texts are static.
 * paged: the topic is a list, and postern_inspect() returns a part of it at a time. */
struct postern_topic {
	const char *name;
	const char *help;
	int paged;
};

/* All topics.
 *   topics  out: up to count topics; may be NULL when count is 0
 *   count   the size of topics, in topics
 * Any thread may call this, at any time.
 * Returns the number of topics, which may be more than count, or 0: topics is not a legal
 * address. */
PTL_API unsigned postern_topics(struct postern_topic *topics, unsigned count);

/* The state of an interface as text: one JSON object without line breaks.
 *   interface  the interface
 *   topic      one of postern_topics()
 *   first      for lists: the item where the page begins: 0, or "next" of the page before;
 *              otherwise ignored
 *   count      for lists: the most items that the page may have, 0 for as many as fit. A page may
 *              have fewer items, even none, although more follow: then its "next" is not null
 *   json       out: the text with its final 0, truncated to size bytes; may be NULL when size is 0
 *   size       the size of json, bytes
 * A list is {"total": N, "first": F, "next": F2 or null, "items": [...]}. Its items are in the
 * order of the interface's tables. An item that is made or released between two pages may be
 * missing or appear twice. Any thread may call this; the interface's poll thread pauses for a
 * moment, which does not grow with the number of objects.
 * Returns, like snprintf(), the length of the whole text without its final 0, even if json was too
 * small: then call again with more memory. A failure is a return code with a minus before it:
 *   -PTL_NOINIT  The library is not initialised.
 *   -PTL_INV_NI  interface is not a valid interface handle.
 *   -PTL_SEGV    topic or json is not a legal address.
 *   -PTL_FAIL    The topic does not exist. postern_last_error() lists those that do. */
PTL_API int postern_inspect(ptl_handle_ni_t interface, const char *topic, unsigned first,
	unsigned count, char *json, size_t size);

/* Echo */

/* The result of a ping. */
enum postern_ping_status {
	POSTERN_PING_ANSWERED,
	/* the question was sent to the target's address, and no answer came */
	POSTERN_PING_NO_ANSWER,
	POSTERN_PING_NO_ADDRESS, /* no answer to the question for the target's address */
	/* the same with PTL_ENCAP=udp, and the target's node, or the gateway, did not answer ARP */
	POSTERN_PING_NO_NODE,
	/* the address is known, but the port accepted no frame: perhaps the link is down */
	POSTERN_PING_NOT_SENT,
	/* the interface cannot send a frame of this size; see least and mtu */
	POSTERN_PING_BAD_SIZE
};

/* The result of postern_ping(). Sizes are bytes of a frame after its Ethernet header, as PTL_MTU
 * counts them; times are nanoseconds. */
struct postern_ping {
	int status;     /* enum postern_ping_status */
	uint32_t least; /* the smallest question that this interface can send; always valid */
	uint32_t mtu;   /* the largest; always valid */
	/* ANSWERED, NO_ANSWER: MAC address that the question went to, the target's or a
	 * gateway's */
	uint8_t address[6];
	/* The rest is valid with POSTERN_PING_ANSWERED. */
	/* 1: residence and network are exact: both polling threads polled so often that a frame
	 * waited for less than 20 us. Network includes this wait, and a wait behind other frames
	 * that came at the same time. 0: a polling thread slept or was busy, so it is unknown how
	 * long a frame waited: residence is an upper bound, and the exact network time is between
	 * network and round_trip */
	uint16_t exact;
	uint32_t answer_size; /* if less than requested: the target's frames are smaller */
	uint32_t target_mtu;  /* size of the largest frame that the target itself can send */
	/* another number means that the process was restarted */
	uint32_t incarnation;
	/* from handing the question to the port until the port delivered the answer */
	uint64_t round_trip;
	/* part of round_trip: from the target's receipt of the question until its answer */
	uint64_t residence;
	/* the rest of round_trip, less the time for which the answer waited to be received here */
	uint64_t network;
};

/* Asks a process for an echo. The target's poll core answers, whatever its application does; with
 * PTL_PROGRESS=inline it answers when the application next calls Portals. Question and answer are
 * one frame each and are never retransmitted, so either may be lost.
 *   interface    the interface that asks
 *   target       the process to ask, which may be this one
 *   size         bytes of the question's frame after its Ethernet header; 0: the smallest
 *   answer_size  bytes wanted of the answer's frame; 0: the smallest. The answer is never larger
 *                than the question
 *   timeout      ns to wait at most, finding the target's address included
 *   ping         out: the result, if PTL_OK is returned
 * The call blocks. Any thread may call this, several at once.
 * Returns
 *   PTL_OK        ping->status has the result, also if the question could not be sent.
 *   PTL_NOINIT    The library is not initialised.
 *   PTL_INV_NI    interface is not a valid interface handle, or the interface was shut down during
 *                 the wait.
 *   PTL_INV_PROC  target is not a valid process id, or has a wildcard.
 *   PTL_SEGV      ping is not a legal address.
 *   PTL_NOSPACE   The interface has PTL_PEERS_MAX peers, or there is no memory. */
PTL_API int postern_ping(ptl_handle_ni_t interface, ptl_process_id_t target, uint32_t size,
	uint32_t answer_size, uint64_t timeout, struct postern_ping *ping);

/* Jobs */

/* Joins the job of this process: the processes that a launcher has started together. The launcher
 * offers version 1 of PMI by PMI_FD, as postern-run, mpiexec.hydra and srun --mpi=pmi2 do, or PMIx,
 * as Open MPI's mpirun and srun --mpi=pmix do. Each process has a rank, 0 to size - 1. Every
 * process calls this function once; it returns when all have called it, so match entries that a
 * process attached before the call are in place when any call returns. A process without a
 * launcher, or with PTL_JOB=alone in its environment, is a job of one. If a launcher has started
 * several processes and cannot be used, the call fails, so that no process runs alone by mistake.
 * The environment is read when the process first initialises an interface.
 *   interface  the interface by which the others reach this process
 *   rank       out: the rank of this process
 *   size       out: the number of processes in the job
 * The call blocks. With PTL_PROGRESS=inline it sends and receives meanwhile. Any thread may call
 * this.
 * Returns
 *   PTL_OK       The process has joined its job.
 *   PTL_NOINIT   The library is not initialised.
 *   PTL_INV_NI   interface is not a valid interface handle.
 *   PTL_SEGV     rank or size is not a legal address.
 *   PTL_NOSPACE  There is no memory.
 *   PTL_FAIL     The process has joined or left a job already; the interface reaches no other
 *                process, or not the process with the next rank; or the launcher cannot be used,
 *                has ended, or has sent invalid data. postern_last_error() gives the reason and the
 *                setting to change. */
PTL_API int postern_job_join(ptl_handle_ni_t interface, unsigned *rank, unsigned *size);

/* Gets the address of a process of the job. The first call for a rank asks the launcher, which
 * may take a moment.
 *   rank     the rank of the process, which may be this one
 *   address  out: its process id, as PtlPut and PtlGet take it
 * Any thread may call this; the functions for jobs wait for each other.
 * Returns
 *   PTL_OK        The address is known.
 *   PTL_NOINIT    The library is not initialised.
 *   PTL_INV_PROC  rank is not less than the size of the job.
 *   PTL_SEGV      address is not a legal address.
 *   PTL_FAIL      The process is in no job, or the launcher has ended. postern_last_error() says
 *                 which. */
PTL_API int postern_job_address(unsigned rank, ptl_process_id_t *address);

/* Waits until all processes of the job have called this. The barrier goes through the launcher and
 * does not wait for messages: messages that were put before it may still be in flight. If a rank
 * has ended or left the job, the call fails, or it ends the job as postern_job_abort() does, when
 * that rank has not answered for PTL_PEER_TIMEOUT. With PTL_PROGRESS=inline a rank that does not
 * answer may still be computing, so the job ends only if the node, or the kernel of the rank's host
 * by a closed TCP connection, reports the end of the rank. A rank must leave the job before it
 * closes the interface that it joined by. The call blocks. With PTL_PROGRESS=inline it sends and
 * receives meanwhile. Any thread may call this, one at a time.
 * Returns
 *   PTL_OK      All processes of the job have called this.
 *   PTL_NOINIT  The library is not initialised.
 *   PTL_FAIL    The process is in no job, or in one of postern_job_given(), a rank has ended or
 *               left, or the launcher has ended. postern_last_error() says which. */
PTL_API int postern_job_barrier(void);

/* Leaves the job. A process that has joined calls this before it ends. Otherwise the launcher
 * assumes that it has failed, and ends all others. A program that uses Open MPI as well calls
 * MPI_Init before this. Any thread may call this.
 * Returns
 *   PTL_OK      The process has left its job.
 *   PTL_NOINIT  The library is not initialised.
 *   PTL_FAIL    The process is in no job, or the launcher has ended; the process has left its job
 *               nevertheless. postern_last_error() says which. */
PTL_API int postern_job_leave(void);

#define POSTERN_JOB_CARD_BYTES 40

/* Gets the card of this process: the data by which other processes reach it. It is for a program
 * that can exchange data by other means, such as MPI or a key-value store, and has no launcher that
 * postern_job_join() knows. The program distributes the cards of all processes to all processes,
 * and then calls postern_job_given().
 *   interface  the interface by which the others reach this process
 *   card       out: POSTERN_JOB_CARD_BYTES bytes, without a meaning to the program
 * Any thread may call this.
 * Returns
 *   PTL_OK      The card is written.
 *   PTL_NOINIT  The library is not initialised.
 *   PTL_INV_NI  interface is not a valid interface handle.
 *   PTL_SEGV    card is not a legal address. */
PTL_API int postern_job_card(ptl_handle_ni_t interface, void *card);

/* Joins a job by the cards of all its processes, instead of postern_job_join(). It does not wait
 * for other processes. postern_job_address() then works as in other jobs. postern_job_barrier()
 * fails, because the program has a barrier of its own. postern_job_abort() ends only this process.
 *   interface  that of postern_job_card()
 *   rank       of this process, less than size
 *   size       the number of processes in the job
 *   cards      their cards, one after the other, by rank
 * Any thread may call this.
 * Returns
 *   PTL_OK        The process has joined its job.
 *   PTL_NOINIT    The library is not initialised.
 *   PTL_INV_NI    interface is not a valid interface handle.
 *   PTL_INV_PROC  size is 0 or too large, or rank is not less than it.
 *   PTL_SEGV      cards is not a legal address.
 *   PTL_NOSPACE   There is no memory.
 *   PTL_FAIL      The process has joined or left already, a card is invalid, the card of this rank
 *                 is that of another process, or a process is on a network that this one does not
 *                 reach. postern_last_error() says which, and which setting to change. */
PTL_API int postern_job_given(
	ptl_handle_ni_t interface, unsigned rank, unsigned size, const void *cards);

/* Ends all processes of the job, whatever they are doing. Without a job, it ends this process.
 *   code  the exit code of this process, and of the job if the launcher passes it on, as
 *         postern-run, mpiexec.hydra and mpirun do. Only the low byte is used; if that is 0 and
 *         code is not, it becomes 1
 * Any thread may call this, also while another thread is in a function for jobs. The call does not
 * return. */
PTL_API void postern_job_abort(int code);

#ifdef __cplusplus
}
#endif

#endif
