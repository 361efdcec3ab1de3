/* SPDX-License-Identifier: BSD-3-Clause */
/* portals.h - the Portals 3.2 message passing interface.
 *
 * Names, types and prototypes are those of "The Portals 3.2 Message Passing Interface", revision
 * 1.1; section numbers below are that document's. What Postern adds to it is in postern.h.
 *
 * Every function may be called from any thread, is atomic with respect to other threads and to
 * incoming messages, and returns without blocking; only PtlEQWait blocks. A function that fails
 * changes nothing. All but PtlInit return PTL_NOINIT before PtlInit, after PtlFini, and in a child
 * made by fork().
 */
#ifndef PORTALS_H
#define PORTALS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PTL_API __attribute__((visibility("default")))
#else
#define PTL_API
#endif

/* 3.2 Base types */

typedef uint64_t ptl_size_t; /* bytes */

/* 3.2.2 Handles. An integer that names one object of one interface; 0 and PTL_INVALID_HANDLE never
 * name one. A handle whose object has been released stays invalid, also when its table entry is
 * used again. Handles of different kinds differ, and each converts to ptl_handle_any_t unchanged.
 * */
typedef uint64_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_me_t;

#define PTL_EQ_NONE        ((ptl_handle_eq_t)0) /* in ptl_md_t.eventq: log nothing */
#define PTL_MD_NONE        ((ptl_handle_md_t)0) /* on the wire: no acknowledgement wanted */
#define PTL_INVALID_HANDLE (~(ptl_handle_any_t)0)

/* 3.2.3 Indexes */
typedef uint32_t ptl_pt_index_t; /* into the Portal table */
typedef uint32_t ptl_ac_index_t; /* into the access control table */

#define PTL_PT_INDEX_ANY (~(ptl_pt_index_t)0) /* PtlACEntry: every Portal */

/* 3.2.4, 3.2.5 Match bits, interfaces */
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef uint32_t ptl_interface_t; /* 0, 1, ... in the order of PTL_IFACE_NAME */

#define PTL_IFACE_DEFAULT ((ptl_interface_t)0)

/* 3.2.6 Identifiers. A node id is any value but PTL_NID_ANY; a process id is 0 to PTL_PID_MAX. */
typedef uint32_t ptl_nid_t;
typedef uint32_t ptl_pid_t;
typedef uint32_t ptl_uid_t;

#define PTL_NID_ANY (~(ptl_nid_t)0)
#define PTL_PID_ANY (~(ptl_pid_t)0)
#define PTL_UID_ANY (~(ptl_uid_t)0)
#define PTL_PID_MAX ((ptl_pid_t)0x7fffffff)

typedef struct {
	ptl_nid_t nid;
	ptl_pid_t pid;
} ptl_process_id_t;

/* 3.2.7 Status registers */
typedef int ptl_sr_index_t;
typedef int64_t ptl_sr_value_t;

#define PTL_SR_DROP_COUNT ((ptl_sr_index_t)0) /* messages discarded, 4.2 */

/* 3.3 to 3.11 Return codes */
enum {
	PTL_OK = 0,
	PTL_FAIL,         /* initialisation or clean-up failed; standard error says why */
	PTL_NOINIT,       /* the library has not been initialised */
	PTL_NOSPACE,      /* no memory, or an object limit is reached */
	PTL_SEGV,         /* a pointer argument is not a legal address */
	PTL_INIT_DUP,     /* the interface was initialised before; the handle is the existing one */
	PTL_INIT_INV,     /* no such interface */
	PTL_INV_NI,       /* not a valid interface handle */
	PTL_INV_EQ,       /* not a valid event queue handle */
	PTL_INV_MD,       /* not a valid memory descriptor handle, or not one that can send */
	PTL_INV_ME,       /* not a valid match entry handle */
	PTL_INV_HANDLE,   /* not a valid handle of any kind */
	PTL_INV_PROC,     /* not a valid process id */
	PTL_INV_PTINDEX,  /* not a valid Portal table index */
	PTL_INV_SR_INDX,  /* not a valid status register */
	PTL_INV_ASIZE,    /* not a valid access control table size */
	PTL_AC_INV_INDEX, /* not a valid access control table index */
	PTL_PT_INV_INDEX, /* not a valid Portal table index (PtlACEntry) */
	PTL_PT_FULL,      /* no Portal is free */
	PTL_ML_TOOLONG,   /* the match list is as long as it may become */
	PTL_INUSE,        /* the match entry already has a memory descriptor */
	PTL_MD_INUSE,     /* the memory descriptor has operations pending */
	PTL_ILL_MD,       /* not a legal memory descriptor */
	PTL_NOUPDATE,     /* the queue was not empty, the descriptor was not changed */
	PTL_EQ_EMPTY,     /* no event, or another thread waits for it */
	PTL_EQ_DROPPED,   /* success, and at least one event before this one was lost */
	PTL_INV_REG = PTL_INV_SR_INDX
};

/* 3.4 Network interfaces */
typedef struct {
	int max_match_entries;
	int max_mem_descriptors;
	int max_event_queues;
	ptl_ac_index_t max_atable_index; /* largest valid index */
	ptl_pt_index_t max_ptable_index; /* largest valid index */
} ptl_ni_limits_t;

/* 3.7 Match lists */
typedef enum { PTL_RETAIN, PTL_UNLINK } ptl_unlink_t;
typedef enum { PTL_INS_BEFORE, PTL_INS_AFTER } ptl_ins_pos_t;

/* 3.8 Memory descriptors */
typedef struct {
	void *start;       /* any value when length is 0 */
	ptl_size_t length; /* bytes */
	int threshold;     /* operations left, or PTL_MD_THRESH_INF */
	/* bytes; once a locally managed offset exceeds it, the descriptor is inactive */
	unsigned int max_offset;
	unsigned int options;   /* PTL_MD_..., or'ed */
	void *user_ptr;         /* returned in events, never looked at */
	ptl_handle_eq_t eventq; /* where operations are logged, or PTL_EQ_NONE */
} ptl_md_t;

#define PTL_MD_THRESH_INF (-1)

/* Options of a descriptor that is attached to a match entry; a descriptor that is bound for PtlPut
 * and PtlGet needs none. A request that a descriptor rejects goes on to the next match entry of the
 * list.
 *   PTL_MD_OP_PUT         The descriptor accepts puts.
 *   PTL_MD_OP_GET         The descriptor accepts gets.
 *   PTL_MD_MANAGE_REMOTE  Data goes to, or comes from, the offset that the request names. Without
 *                         this option the descriptor has an offset of its own, which starts at 0
 *                         and grows by the length of each operation.
 *   PTL_MD_TRUNCATE       A request that is longer than the space after its offset is shortened to
 *                         fit. Without this option the descriptor rejects the request.
 *   PTL_MD_ACK_DISABLE    No acknowledgement is sent for puts, even if the initiator asks for one.
 */
#define PTL_MD_OP_PUT        (1u << 0)
#define PTL_MD_OP_GET        (1u << 1)
#define PTL_MD_MANAGE_REMOTE (1u << 2)
#define PTL_MD_TRUNCATE      (1u << 3)
#define PTL_MD_ACK_DISABLE   (1u << 4)

/* 3.9 Events */
typedef enum {
	PTL_EVENT_GET_START,
	PTL_EVENT_GET_END,
	PTL_EVENT_GET_FAIL,
	PTL_EVENT_PUT_START,
	PTL_EVENT_PUT_END,
	PTL_EVENT_PUT_FAIL,
	PTL_EVENT_REPLY_START,
	PTL_EVENT_REPLY_END,
	PTL_EVENT_REPLY_FAIL,
	PTL_EVENT_SEND_START,
	PTL_EVENT_SEND_END,
	PTL_EVENT_SEND_FAIL,
	PTL_EVENT_ACK,
	PTL_EVENT_UNLINK
} ptl_event_kind_t;

typedef uint64_t ptl_seq_t;

/* Why a FAIL event happened; PTL_NI_OK in every other event. postern_fail_text() has the words. */
typedef enum {
	PTL_NI_OK = 0,
	/* No process with that id answered within PTL_PEER_TIMEOUT. Three cases take less time:
	 * between processes of one machine (a node) the failure is reported at once; through
	 * posternd, after a second; and if the process closed its interface less than a second
	 * ago, and no other process has its id, after 0.1 s. */
	PTL_NI_UNREACHABLE,
	/* The process sent nothing for PTL_PEER_TIMEOUT, or, if it ran on the same node, it ended
	 * at least 0.1 s ago. */
	PTL_NI_PEER_DEAD,
	/* The process ended while the message was in flight. A new process may have its id now. */
	PTL_NI_PEER_RESTARTED,
	PTL_NI_UNDELIVERABLE, /* a get that the target discarded */
	PTL_NI_SHUTDOWN       /* this process shut the interface down */
} ptl_ni_fail_t;

typedef struct {
	ptl_event_kind_t type;
	ptl_process_id_t initiator;
	ptl_uid_t uid;
	ptl_pt_index_t portal;
	ptl_match_bits_t match_bits;
	ptl_size_t rlength; /* bytes asked for */
	ptl_size_t mlength; /* bytes moved */
	ptl_size_t offset;  /* where in the descriptor's memory, bytes */
	ptl_handle_md_t md_handle;
	ptl_md_t mem_desc; /* the descriptor just after the event */
	ptl_hdr_data_t hdr_data;
	/* in START, END, FAIL and UNLINK: the sequence of the START event */
	ptl_seq_t link;
	ptl_ni_fail_t ni_fail_type;
	volatile ptl_seq_t sequence; /* unique within a queue */
} ptl_event_t;

/* 3.11 Data movement */
typedef enum { PTL_ACK_REQ, PTL_NOACK_REQ } ptl_ack_req_t;

/* What all functions have in common: any thread may call any function of Portals; a signal handler
 * may call none. A function returns PTL_OK for success. It checks for PTL_NOINIT first, then checks
 * the handle, then the other arguments. It returns PTL_SEGV for NULL, and for any address that is
 * certainly not in the caller's memory. */

/* 3.3 Initialisation and clean-up */

/* 3.3 Opens the library: reads the PTL_ settings. It may be called any number of times, from any
 * thread; the calls are counted, so that several components of a program can each call PtlInit and
 * PtlFini.
 *   max_interfaces  out: the number of interfaces; they are numbered 0 to *max_interfaces - 1
 * Returns
 *   PTL_FAIL  A setting is wrong, or this process is a child made by fork(). Standard error and
 *             postern_last_error() say which.
 *   PTL_SEGV  max_interfaces is not a legal address. */
PTL_API int PtlInit(int *max_interfaces);

/* 3.3 Undoes one PtlInit. The call that undoes the last PtlInit shuts every interface down, as
 * PtlNIFini does, and closes the library; further calls do nothing. Afterwards PtlInit may open the
 * library again. */
PTL_API void PtlFini(void);

/* 3.4 Network interfaces */

/* 3.4 Initialises an interface: opens its device and allocates its tables.
 *   interface  0, 1, ... in the order of PTL_IFACE_NAME; PTL_IFACE_DEFAULT is 0
 *   pid        wanted process id, 0 to PTL_PID_MAX; PTL_PID_ANY: the library chooses one
 *   desired    wanted limits; NULL: the defaults. Counts below 1 become 1. The most that an
 *              interface can have is 1,048,576 match entries and memory descriptors each, and
 *              65,536 event queues, Portals and access control entries each; larger values become
 *              these
 *   actual     out, may be NULL: the limits of the interface
 *   handle     out: the interface
 * Returns
 *   PTL_INIT_DUP  The interface is open already. handle and actual are written; pid and desired are
 *                 ignored.
 *   PTL_INIT_INV  The interface does not exist, its device cannot be used, or another process has
 *                 the process id. Standard error and postern_last_error() say why.
 *   PTL_INV_PROC  pid is neither a process id nor PTL_PID_ANY.
 *   PTL_NOSPACE   There is not enough memory.
 *   PTL_SEGV      handle, desired or actual is not a legal address. */
PTL_API int PtlNIInit(ptl_interface_t interface, ptl_pid_t pid, ptl_ni_limits_t *desired,
	ptl_ni_limits_t *actual, ptl_handle_ni_t *handle);

/* 3.4 Shuts an interface down and releases all its objects. Threads that wait in PtlEQWait return
 * PTL_INV_EQ. The call waits until each message that was sent is acknowledged, or its target has
 * closed. The wait ends early when nothing has been acknowledged for PTL_PEER_TIMEOUT (one second
 * if the target has never answered). A warning then says how many messages may not have arrived.
 * Operations in flight end without an event, and the library no longer accesses their memory.
 * SIGTERM and SIGINT, unless they are ignored, end the wait and then take effect. While one thread
 * waits in this call, other threads that open or close an interface wait, too.
 * Returns
 *   PTL_INV_NI  interface is not a valid interface handle. */
PTL_API int PtlNIFini(ptl_handle_ni_t interface);

/* 3.4 Reads a status register.
 *   status_register  PTL_SR_DROP_COUNT: messages that were discarded since the interface was
 *                    initialised
 *   status           out
 * Returns
 *   PTL_INV_NI       interface is not a valid interface handle.
 *   PTL_INV_SR_INDX  status_register does not exist.
 *   PTL_SEGV         status is not a legal address. */
PTL_API int PtlNIStatus(
	ptl_handle_ni_t interface, ptl_sr_index_t status_register, ptl_sr_value_t *status);

/* 3.4 Gets the distance of a process. It never changes, and is comparable only with other
 * distances on this interface.
 *   process   one process, no wildcards
 *   distance  out: 0: this process; 1: another process of this node; 2: a process elsewhere
 * Returns
 *   PTL_INV_NI    interface is not a valid interface handle.
 *   PTL_INV_PROC  process is not a valid process id, or has a wildcard.
 *   PTL_SEGV      distance is not a legal address. */
PTL_API int PtlNIDist(ptl_handle_ni_t interface, ptl_process_id_t process, unsigned long *distance);

/* 3.4 Gets the interface that an object belongs to; for an interface, that interface.
 *   handle     of any kind
 *   interface  out
 * Returns
 *   PTL_INV_HANDLE  handle is not a valid handle of any kind.
 *   PTL_SEGV        interface is not a legal address. */
PTL_API int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *interface);

/* 3.5 Gets the effective user id of this process, which its messages carry.
 *   uid  out
 * Returns
 *   PTL_INV_NI  ni_handle is not a valid interface handle.
 *   PTL_SEGV    uid is not a legal address. */
PTL_API int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);

/* 3.6 Gets the id of this process on an interface. It may be different on another interface.
 *   id  out
 * Returns
 *   PTL_INV_NI  ni_handle is not a valid interface handle.
 *   PTL_SEGV    id is not a legal address. */
PTL_API int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_id_t *id);

/* 3.7 Match lists */

/* 3.7 Makes a match entry without a memory descriptor, and puts it at an end of a Portal's match
 * list.
 *   index        of the Portal, 0 to max_ptable_index
 *   matchid      the initiators that match; nid and pid may each be a wildcard
 *   match_bits   that a request must carry
 *   ignorebits   1 for each bit that is not compared
 *   unlink       PTL_UNLINK: the entry is unlinked when its memory descriptor is; any other value:
 *                it stays
 *   position     PTL_INS_BEFORE: before the head; any other value: after the tail
 *   handle       out: the entry
 * Returns
 *   PTL_INV_NI       interface is not a valid interface handle.
 *   PTL_INV_PTINDEX  index is larger than max_ptable_index.
 *   PTL_INV_PROC     matchid is not a valid process id.
 *   PTL_NOSPACE      The interface already has max_match_entries match entries.
 *   PTL_ML_TOOLONG   The list already has PTL_LIST_MAX entries.
 *   PTL_SEGV         handle is not a legal address. */
PTL_API int PtlMEAttach(ptl_handle_ni_t interface, ptl_pt_index_t index, ptl_process_id_t matchid,
	ptl_match_bits_t match_bits, ptl_match_bits_t ignorebits, ptl_unlink_t unlink,
	ptl_ins_pos_t position, ptl_handle_me_t *handle);

/* 3.7 PtlMEAttach to a Portal whose match list is empty.
 *   index  out: that Portal
 *   the others as in PtlMEAttach
 * Returns
 *   PTL_INV_NI    interface is not a valid interface handle.
 *   PTL_INV_PROC  matchid is not a valid process id.
 *   PTL_NOSPACE   The interface already has max_match_entries match entries.
 *   PTL_PT_FULL   No Portal has an empty match list.
 *   PTL_SEGV      index or handle is not a legal address. */
PTL_API int PtlMEAttachAny(ptl_handle_ni_t interface, ptl_pt_index_t *index,
	ptl_process_id_t matchid, ptl_match_bits_t match_bits, ptl_match_bits_t ignorebits,
	ptl_unlink_t unlink, ptl_handle_me_t *handle);

/* 3.7 Makes a match entry, and puts it into a list right before or after an existing one.
 *   current   the existing entry
 *   position  PTL_INS_BEFORE: before current; any other value: after it
 *   the others as in PtlMEAttach
 * Returns
 *   PTL_INV_ME      current is not a valid match entry handle.
 *   PTL_INV_PROC    matchid is not a valid process id.
 *   PTL_NOSPACE     The interface already has max_match_entries match entries.
 *   PTL_ML_TOOLONG  The list already has PTL_LIST_MAX entries.
 *   PTL_SEGV        handle is not a legal address. */
PTL_API int PtlMEInsert(ptl_handle_me_t current, ptl_process_id_t matchid,
	ptl_match_bits_t match_bits, ptl_match_bits_t ignorebits, ptl_unlink_t unlink,
	ptl_ins_pos_t position, ptl_handle_me_t *handle);

/* 3.7 Takes a match entry out of its list and releases it and its memory descriptor. No event is
 * logged.
 * Returns
 *   PTL_INV_ME    entry is not a valid match entry handle.
 *   PTL_MD_INUSE  The memory descriptor of the entry has operations pending; nothing was changed.
 */
PTL_API int PtlMEUnlink(ptl_handle_me_t entry);

/* 3.8 Memory descriptors. Each function copies the ptl_md_t that it gets. A function returns
 * PTL_ILL_MD in four cases. The memory cannot be the caller's: it is in the first page, wraps round
 * the end of the address space, or is not mapped. The memory is longer than 2^40 bytes. The
 * threshold is below 0 and is not PTL_MD_THRESH_INF. An option does not exist. */

/* 3.8 Gives a match entry its memory descriptor.
 *   match         the entry
 *   mem_desc      the descriptor's fields
 *   unlink_op     PTL_UNLINK: it is unlinked after the operation that makes it inactive; any other
 *                 value: it stays
 *   unlink_nofit  PTL_UNLINK: it is unlinked when a matching request does not fit; any other value:
 *                 it stays
 *   handle        out, may be NULL: the descriptor
 * Returns
 *   PTL_INV_ME   match is not a valid match entry handle.
 *   PTL_INUSE    The match entry has a memory descriptor.
 *   PTL_ILL_MD   mem_desc is not a legal memory descriptor, or its event queue is not a valid one
 *                of this interface.
 *   PTL_NOSPACE  The interface has max_mem_descriptors memory descriptors.
 *   PTL_SEGV     handle is not a legal address. */
PTL_API int PtlMDAttach(ptl_handle_me_t match, ptl_md_t mem_desc, ptl_unlink_t unlink_op,
	ptl_unlink_t unlink_nofit, ptl_handle_md_t *handle);

/* 3.8 Makes a memory descriptor that belongs to no match entry: for PtlPut and PtlGet.
 *   mem_desc  the descriptor's fields
 *   handle    out: the descriptor
 * Returns
 *   PTL_INV_NI   interface is not a valid interface handle.
 *   PTL_ILL_MD   mem_desc is not a legal memory descriptor, or its event queue belongs to another
 *                interface.
 *   PTL_INV_EQ   The event queue of mem_desc does not exist.
 *   PTL_NOSPACE  The interface has max_mem_descriptors memory descriptors.
 *   PTL_SEGV     handle is not a legal address. */
PTL_API int PtlMDBind(ptl_handle_ni_t interface, ptl_md_t mem_desc, ptl_handle_md_t *handle);

/* 3.8 Releases a memory descriptor. If its match entry was made with PTL_UNLINK, the match entry is
 * unlinked as well. The library no longer accesses the memory. No event is logged.
 * Returns
 *   PTL_INV_MD    mem_desc is not a valid memory descriptor handle.
 *   PTL_MD_INUSE  The memory descriptor has operations pending; nothing was changed.
 */
PTL_API int PtlMDUnlink(ptl_handle_md_t mem_desc);

/* 3.8 Reads a memory descriptor, and changes it if a queue is empty. No message arrives between
 * the check of the queue and the change. A queue is empty if it has no event, and if no incoming
 * operation is in progress that will log an event to it.
 *   old_md  out, may be NULL: the descriptor before the call; also written with PTL_NOUPDATE
 *   new_md  the new descriptor; NULL changes nothing
 *   testq   the queue that must be empty; PTL_EQ_NONE: no condition. It may be another queue than
 *           the descriptor's
 * Returns
 *   PTL_NOUPDATE  testq was not empty; the memory descriptor was not changed.
 *   PTL_INV_MD    mem_desc is not a valid memory descriptor handle.
 *   PTL_ILL_MD    new_md is not a legal memory descriptor, or its event queue is not a valid one of
 *                 this interface.
 *   PTL_INV_EQ    testq is not a valid event queue handle.
 *   PTL_SEGV      old_md or new_md is not a legal address. */
PTL_API int PtlMDUpdate(
	ptl_handle_md_t mem_desc, ptl_md_t *old_md, ptl_md_t *new_md, ptl_handle_eq_t testq);

/* 3.9 Event queues */

/* 3.9 Makes an event queue.
 *   count   the number of events that the queue holds; further events are lost
 *   handle  out: the queue
 * Returns
 *   PTL_INV_NI   interface is not a valid interface handle.
 *   PTL_NOSPACE  The interface has max_event_queues event queues, or PTL_EVENT_MEMORY is used up.
 *   PTL_SEGV     handle is not a legal address. */
PTL_API int PtlEQAlloc(ptl_handle_ni_t interface, ptl_size_t count, ptl_handle_eq_t *handle);

/* 3.9 Releases an event queue. Threads that wait on it return PTL_INV_EQ; no events are logged for
 * descriptors that still refer to it.
 * Returns
 *   PTL_INV_EQ  eventq is not a valid event queue handle. */
PTL_API int PtlEQFree(ptl_handle_eq_t eventq);

/* 3.9 Takes the next event out of a queue, without waiting.
 *   event  out; written only when an event was taken
 * Returns
 *   PTL_EQ_DROPPED  An event was taken, and at least one event right before it was lost.
 *   PTL_EQ_EMPTY    The queue has no event, or another thread waits for the event in PtlEQWait.
 *   PTL_INV_EQ      eventq is not a valid event queue handle.
 *   PTL_SEGV        event is not a legal address. */
PTL_API int PtlEQGet(ptl_handle_eq_t eventq, ptl_event_t *event);

/* 3.9 Waits until a queue has an event, and takes it out. Each event ends the wait of one thread.
 *   event  out
 * Returns
 *   PTL_EQ_DROPPED  An event was taken, and at least one event right before it was lost.
 *   PTL_INV_EQ      eventq is not a valid event queue handle, or the queue was freed, or its
 *                   interface shut down, during the wait.
 *   PTL_SEGV        event is not a legal address. */
PTL_API int PtlEQWait(ptl_handle_eq_t eventq, ptl_event_t *event);

/* 3.10 The access control table */

/* 3.10 Sets an entry of the access control table: the processes and users that may use a Portal
 * with this cookie. Applies to all requests that arrive from now on.
 *   index    of the entry, 0 to max_atable_index: the cookie
 *   matchid  the admitted initiators; nid and pid may each be a wildcard
 *   uid      the admitted user, or PTL_UID_ANY
 *   portal   the Portal that they may use, 0 to max_ptable_index, or PTL_PT_INDEX_ANY
 * Returns
 *   PTL_INV_NI        interface is not a valid interface handle.
 *   PTL_AC_INV_INDEX  index is larger than max_atable_index.
 *   PTL_INV_PROC      matchid is not a valid process id.
 *   PTL_PT_INV_INDEX  portal is neither PTL_PT_INDEX_ANY nor a Portal of the interface. */
PTL_API int PtlACEntry(ptl_handle_ni_t interface, ptl_ac_index_t index, ptl_process_id_t matchid,
	ptl_uid_t uid, ptl_pt_index_t portal);

/* 3.11 Data movement. The call returns when the operation has started; events report its progress.
 * Operations from one process to another start there in the order of the calls. */

/* 3.11 Sends a descriptor's memory to another process, or to this one.
 *   mem_desc    the memory to send: all of it, whatever the options and the offset
 *   ack_req     PTL_ACK_REQ: the target acknowledges, if mem_desc has an event queue; any other
 *               value: it does not
 *   target      one process, no wildcards
 *   portal      at the target
 *   cookie      at the target: the access control entry to be admitted by
 *   match_bits  for the target's match entries
 *   offset      in the target's memory, bytes; used only if the target's descriptor has
 *               PTL_MD_MANAGE_REMOTE
 *   hdr_data    for the target's events
 * This process gets the events SEND_START, then SEND_END or SEND_FAIL, then perhaps ACK. The first
 * two together lower the threshold by one, and so does ACK. SEND_END comes before the events of an
 * answer to the put. If no match entry and descriptor of the target accepts the put, the target
 * drops it, and no event reports that: SEND_END means that the target's interface has received the
 * put, ACK that a descriptor has accepted it. So attach match entries before you give your address
 * to others, ask for acknowledgements of the first messages, and put again if no ACK comes. The
 * target counts dropped messages (PTL_SR_DROP_COUNT). With PTL_LOG_LEVEL=info it reports the first
 * drop of each Portal, and the first put or get to a Portal that does not exist.
 * Returns
 *   PTL_INV_MD    mem_desc is not a valid memory descriptor handle, or its threshold is 0.
 *   PTL_INV_PROC  target is not a valid process id, or has a wildcard. */
PTL_API int PtlPut(ptl_handle_md_t mem_desc, ptl_ack_req_t ack_req, ptl_process_id_t target,
	ptl_pt_index_t portal, ptl_ac_index_t cookie, ptl_match_bits_t match_bits,
	ptl_size_t offset, ptl_hdr_data_t hdr_data);

/* 3.11 Fetches memory of another process, or of this one, into a descriptor's memory: as much as
 * that holds.
 *   mem_desc  the descriptor whose memory gets the data
 *   the others as in PtlPut
 * This process gets the event REPLY_START, then REPLY_END or REPLY_FAIL. The reply lowers the
 * threshold by one.
 * Returns
 *   PTL_INV_MD    mem_desc is not a valid memory descriptor handle, or its threshold is 0.
 *   PTL_INV_PROC  target is not a valid process id, or has a wildcard. */
PTL_API int PtlGet(ptl_handle_md_t mem_desc, ptl_process_id_t target, ptl_pt_index_t portal,
	ptl_ac_index_t cookie, ptl_match_bits_t match_bits, ptl_size_t offset);

#ifdef __cplusplus
}
#endif

#endif
