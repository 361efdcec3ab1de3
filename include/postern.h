/* SPDX-License-Identifier: BSD-3-Clause */
/* postern.h - what Postern adds to Portals: version, hugepage memory, texts, statistics, settings,
 * a look inside, jobs. */
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

/* The words for a return code, an event kind, and a failure type: "PTL_INV_MD", ... or a sentence.
 * Any thread may call these, at any time.
 * Returns the text, never NULL, also for values that do not exist. */
PTL_API const char *postern_error_name(int code);
PTL_API const char *postern_error_text(int code);
PTL_API const char *postern_event_name(ptl_event_kind_t kind);
PTL_API const char *postern_fail_text(ptl_ni_fail_t why);

/* The sentence that the last failing initialisation in this thread wrote to standard error: what
 * failed, on what, why, and what to do. Any thread may call this, at any time.
 * Returns the text, never NULL; "" when nothing failed. */
PTL_API const char *postern_last_error(void);

/* Memory */

/* Memory for descriptors that is quick to move: hugepages on the NUMA node of the interface's port
 * when there are any, ordinary pages otherwise.
 *   interface  the interface on whose node the memory is to lie
 *   size       bytes; 0 counts as 1
 * The memory outlives the interface. Any thread may call this.
 * Returns the memory, aligned to 64 bytes and zeroed, or NULL: no memory is left, or interface is
 * not a valid handle. */
PTL_API void *postern_alloc(ptl_handle_ni_t interface, size_t size);
/* Gives memory of postern_alloc() back. NULL is ignored; in a child made by fork() the call does
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
 *   count      room in stats, counters
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
 *   count     room in settings, settings
 * Any thread may call this, at any time.
 * Returns the number of settings, which may be more than count, or 0: settings is not a legal
 * address, or this is a child made by fork(). */
PTL_API unsigned postern_settings(struct postern_setting *settings, unsigned count);

/* Changes a setting of a running process, as if the environment had had that value from the start.
 *   interface  the interface whose setting is meant, where each has its own
 *   name       PTL_LOG_LEVEL, PTL_POLL (of all interfaces) or PTL_FAULT (only if the interface was
 *              initialised with one, such as drop=0)
 *   value      as the environment would have it
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

/* Takes the next event of the first of some event queues that has one, and waits if none has. With
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
 * for a moment while there is none. Once the queue is freed or its interface shut down the
 * descriptor stays readable, and PtlEQGet returns PTL_INV_EQ. The descriptor belongs to the caller,
 * who closes it, and neither reads nor writes it; each call makes another one. Any thread may call
 * this.
 * Returns the descriptor, or a code with a minus before it:
 *   -PTL_NOINIT   The library is not initialised.
 *   -PTL_INV_EQ   queue is not a valid event queue handle.
 *   -PTL_NOSPACE  The process may open no more descriptors.
 *   -PTL_FAIL     With PTL_PROGRESS=inline there is no descriptor, because events come only while
 *                 the program calls Portals: call postern_eq_poll() with a timeout in the loop.
 *                 postern_last_error() says so. */
PTL_API int postern_eq_fd(ptl_handle_eq_t queue);

/* Captures */

/* Captures the frames that an interface receives and sends, as they are on the wire, into a pcapng
 * file, as PTL_CAPTURE does from the start. A file that cannot be written to any more, such as one
 * on a full disk, ends the capture with a line on standard error, and nothing else.
 *   interface  the interface
 *   file       name of the file; %p in it is the process id, %i the interface's number; "-" is
 *              standard output, and what the program writes there goes to standard error from then
 *              on. The file is emptied; interfaces of one process may share one,
 *              in which reordercap sorts their frames by time
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
/* Ends the capture of an interface, and returns when the file is written. PtlNIFini does so, too.
 *   interface  the interface
 * Any thread may call this.
 * Returns
 *   PTL_OK      The interface is not captured, or no longer.
 *   PTL_NOINIT  The library is not initialised.
 *   PTL_INV_NI  interface is not a valid interface handle. */
PTL_API int postern_capture_stop(ptl_handle_ni_t interface);

/* Inspection */

/* A part of an interface that can be inspected: "port", "ni", "peers", ... name and help are
 * static. paged: the topic is a list, of which postern_inspect() gives a part at a time. */
struct postern_topic {
	const char *name;
	const char *help;
	int paged;
};

/* All topics.
 *   topics  out: up to count topics; may be NULL when count is 0
 *   count   room in topics, topics
 * Any thread may call this, at any time.
 * Returns the number of topics, which may be more than count, or 0: topics is not a legal
 * address. */
PTL_API unsigned postern_topics(struct postern_topic *topics, unsigned count);

/* The state of an interface as text: one JSON object without line breaks.
 *   interface  the interface
 *   topic      one of postern_topics()
 *   first      for lists: where the page begins, 0 or what the page before calls "next"; otherwise
 *              ignored
 *   count      for lists: items in the page at most, 0 for as many as a page may have; a page may
 *              have fewer, also none, though more follow: the page's "next" says so
 *   json       out: the text with its final 0, cut off when there is no room; may be NULL when size
 *              is 0
 *   size       room in json, bytes
 * A list is {"total": N, "first": F, "next": F2 or null, "items": [...]}. Its items come in the
 * order of the interface's tables. Those that come or go between two pages may be missing or come
 * twice. Any thread may call this; the interface's poll thread pauses for a moment, which does not
 * grow with the number of objects.
 * Returns, as snprintf(), the length of the whole text without its final 0, however little of it
 * found room, so that a caller can ask again with more. A failure is a return code with a minus
 * before it:
 *   -PTL_NOINIT  The library is not initialised.
 *   -PTL_INV_NI  interface is not a valid interface handle.
 *   -PTL_SEGV    topic or json is not a legal address.
 *   -PTL_FAIL    The topic does not exist. postern_last_error() lists those that do. */
PTL_API int postern_inspect(ptl_handle_ni_t interface, const char *topic, unsigned first,
	unsigned count, char *json, size_t size);

/* Echo */

/* How a ping ended. */
enum postern_ping_status {
	POSTERN_PING_ANSWERED,
	/* the target's address is known, the question went there, and no answer came */
	POSTERN_PING_NO_ANSWER,
	POSTERN_PING_NO_ADDRESS, /* nobody answered the question where the target is */
	/* with PTL_ENCAP=udp: neither did the target's node, or the gateway, answer ARP */
	POSTERN_PING_NO_NODE,
	/* the address is known, but the port took no frame: perhaps the link is down */
	POSTERN_PING_NOT_SENT,
	/* no frame of this interface has the size that was wanted; see least and mtu */
	POSTERN_PING_BAD_SIZE
};

/* The result of postern_ping(). Sizes are bytes of a frame after its Ethernet header, as PTL_MTU
 * counts them; times are nanoseconds. */
struct postern_ping {
	int status; /* enum postern_ping_status */
	/* size of the smallest and of the largest question that this interface can send; these
	 * two */
	uint32_t least;
	uint32_t mtu; /* always mean something */
	/* ANSWERED, NO_ANSWER: MAC address that the question went to, the target's or a
	 * gateway's */
	uint8_t address[6];
	/* The rest means something with POSTERN_PING_ANSWERED. */
	/* 1: residence and network are what they were; each poll core looked so often that a frame
	 * waited there for less than 20 us, which count as network, as does waiting behind other
	 * frames that came at once. 0: one slept, or was busy with other things, and cannot say how
	 * long a frame waited: residence is the most that it may have been, network the least, and
	 * the most of that is round_trip */
	uint16_t exact;
	uint32_t answer_size; /* less than was wanted: the target's own frames are smaller */
	uint32_t target_mtu;  /* size of the largest frame that the target itself can send */
	/* names the target's life: another number is another start of the process */
	uint32_t incarnation;
	uint64_t round_trip; /* from giving the question to this port to seeing the answer there */
	/* of it: the target had the question, until it gave the answer to its port */
	uint64_t residence;
	/* of it: neither that nor the time for which the answer may have waited here to be seen */
	uint64_t network;
};

/* Asks a process for an echo. Its poll core answers, whatever its application does; with
 * PTL_PROGRESS=inline, as soon as the application calls Portals. Question and answer are one frame
 * each, which may be lost: nothing is sent again.
 *   interface    the interface that asks
 *   target       the process to ask, which may be this one
 *   size         bytes of the question's frame after its Ethernet header; 0: the smallest
 *   answer_size  bytes wanted of the answer; 0: the smallest; more than the question: as large as
 *                the question
 *   timeout      ns to wait at most, finding the target's address included
 *   ping         out: what was learnt, if PTL_OK is returned
 * The call blocks. Any thread may call this, several at once.
 * Returns
 *   PTL_OK        The question was asked, or could not be sent; ping->status says what came of it.
 *   PTL_NOINIT    The library is not initialised.
 *   PTL_INV_NI    interface is not a valid interface handle, or the interface was shut down during
 *                 the wait.
 *   PTL_INV_PROC  target is not a valid process id, or has a wildcard.
 *   PTL_SEGV      ping is not a legal address.
 *   PTL_NOSPACE   The interface has PTL_PEERS_MAX peers. */
PTL_API int postern_ping(ptl_handle_ni_t interface, ptl_process_id_t target, uint32_t size,
	uint32_t answer_size, uint64_t timeout, struct postern_ping *ping);

/* Jobs */

/* Joins the job of this process: those processes that a launcher has started together. Launchers
 * are those that speak version 1 of PMI by PMI_FD, such as postern-run, mpiexec.hydra and srun
 * --mpi=pmi2, and those of PMIx, such as Open MPI's mpirun and srun --mpi=pmix. Each process has a
 * rank, 0 to size - 1. All call this function once; it returns when all have done so, so that what
 * a process attached before is attached when another one returns. A process that no launcher
 * started is a job of one, and so is one with PTL_JOB=alone in its environment. A launcher that has
 * started several processes and cannot be used is an error, so that no process is alone unnoticed.
 * The environment counts as it was when the process first initialised an interface.
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
 *   PTL_FAIL     The process has joined or left already, the interface reaches no other process,
 *                or not the process with the next rank, the launcher cannot be used or has ended,
 *                or what it says makes no sense. postern_last_error() says which, and which setting
 *                to change. */
PTL_API int postern_job_join(ptl_handle_ni_t interface, unsigned *rank, unsigned *size);

/* The address of a process of the job. The launcher is asked for it once, which may take a moment.
 *   rank     the rank of the process, which may be this one
 *   address  out: its process id, as PtlPut and PtlGet take it
 * Any thread may call this; it waits for another one that is in a call of this section.
 * Returns
 *   PTL_OK        The address is known.
 *   PTL_NOINIT    The library is not initialised.
 *   PTL_INV_PROC  rank is not less than the size of the job.
 *   PTL_SEGV      address is not a legal address.
 *   PTL_FAIL      The process is in no job, or the launcher has ended. postern_last_error() says
 *                 which. */
PTL_API int postern_job_address(unsigned rank, ptl_process_id_t *address);

/* Waits until all processes of the job have called this. It passes through the launcher and says
 * nothing of messages: those that were put before may still be under way.
 * A rank that has ended or left the job never comes: then the call fails, or ends the job as
 * postern_job_abort() does, when that rank has not answered for PTL_PEER_TIMEOUT. With
 * PTL_PROGRESS=inline only the launcher can notice it. So ranks leave before they close the
 * interface that they joined by.
 * The call blocks. With PTL_PROGRESS=inline it sends and receives meanwhile. Any thread may call
 * this, one at a time.
 * Returns
 *   PTL_OK      All processes of the job have called this.
 *   PTL_NOINIT  The library is not initialised.
 *   PTL_FAIL    The process is in no job, a rank has ended or left, or the launcher has ended.
 *               postern_last_error() says which. */
PTL_API int postern_job_barrier(void);

/* Leaves the job. A process that has joined calls this before it ends: to the launcher, a process
 * that ends without it has failed, and all others are ended. A program that uses Open MPI as well
 * calls MPI_Init before this. Any thread may call this.
 * Returns
 *   PTL_OK      The process has left its job.
 *   PTL_NOINIT  The library is not initialised.
 *   PTL_FAIL    The process is in no job, or the launcher has ended; the process has left its job
 *               nevertheless. postern_last_error() says which. */
PTL_API int postern_job_leave(void);

#define POSTERN_JOB_CARD_BYTES 40

/* For a program that has an exchange of its own, such as MPI's or a store of values, and no
 * launcher that postern_job_join() knows: what the other processes must know of this one. The
 * program brings the cards of all to all, and calls postern_job_given().
 *   interface  the interface by which the others reach this process
 *   card       out: POSTERN_JOB_CARD_BYTES bytes; their meaning is Postern's
 * Any thread may call this.
 * Returns
 *   PTL_OK      The card is written.
 *   PTL_NOINIT  The library is not initialised.
 *   PTL_INV_NI  interface is not a valid interface handle.
 *   PTL_SEGV    card is not a legal address. */
PTL_API int postern_job_card(ptl_handle_ni_t interface, void *card);

/* Joins a job by the cards of all its processes, in the place of postern_job_join(). It waits for
 * nobody. postern_job_address() then works as in other jobs, postern_job_barrier() does not: the
 * program has its own. postern_job_abort() ends this process alone.
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
 *   PTL_FAIL      The process has joined or left already, a card is none, the one of this rank is
 *                 another process's, or a process is on a network that this one does not reach.
 *                 postern_last_error() says which, and which setting to change. */
PTL_API int postern_job_given(
	ptl_handle_ni_t interface, unsigned rank, unsigned size, const void *cards);

/* Ends all processes of the job, whatever they do. In no job, it ends this process.
 *   code  the exit code of this process, and of the job where the launcher passes it on, as
 *         postern-run, mpiexec.hydra and mpirun do; its last byte counts, and one of 0 becomes 1 if
 *         code is not 0
 * Any thread may call this, also while another one is in a call of this section. The call does not
 * return. */
PTL_API void postern_job_abort(int code);

#ifdef __cplusplus
}
#endif

#endif
