/* SPDX-License-Identifier: BSD-3-Clause */
/* portals4.h - the Portals 4.3 message passing interface.
 *
 * Names, numbers and layouts are those of Portals 4.3, and the names of 4.0 to 4.2 that programs
 * use. A program includes this header or portals.h, not both.
 *
 * All functions but PtlInit, PtlFini, PtlAbort and PtlHandleIsEqual return PTL_NO_INIT before
 * PtlInit, after PtlFini, and in a child made by fork(). Where a function's codes are listed,
 * PTL_OK and PTL_NO_INIT are left out.
 */
#ifndef PORTALS4_H
#define PORTALS4_H

#ifdef PORTALS_H
#error "a program includes portals4.h or portals.h, not both: they share names"
#endif

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PTL_API __attribute__((visibility("default")))
#else
#define PTL_API
#endif

/* --- Base types */

typedef uint64_t ptl_size_t; /* bytes */
typedef uint32_t ptl_pt_index_t;
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef unsigned int ptl_time_t;      /* milliseconds */
typedef unsigned int ptl_interface_t; /* 0, 1, ... in the order of PTL_IFACE_NAME */
typedef uint32_t ptl_nid_t;
typedef uint32_t ptl_pid_t;
typedef uint32_t ptl_rank_t;
typedef uint32_t ptl_uid_t;

/* A handle is a number that names one object of one interface. Handles of different kinds differ,
 * and each converts to ptl_handle_any_t unchanged. */
typedef uint32_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef ptl_handle_any_t ptl_handle_ct_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_le_t;
typedef ptl_handle_any_t ptl_handle_me_t;

/* A process: its rank on a logical interface, its node and process id on a physical one. */
typedef union {
	ptl_rank_t rank;
	struct {
		ptl_nid_t nid;
		ptl_pid_t pid;
	} phys;
} ptl_process_t;

#define PTL_EQ_NONE        ((ptl_handle_eq_t)0x3fffffff)
#define PTL_CT_NONE        ((ptl_handle_ct_t)0x5fffffff)
#define PTL_INVALID_HANDLE ((ptl_handle_any_t)0xffffffff)

#define PTL_IFACE_DEFAULT ((ptl_interface_t)0xffffffff) /* the first interface */
#define PTL_PID_ANY       ((ptl_pid_t)0xffff)
#define PTL_NID_ANY       ((ptl_nid_t)0xffff)
#define PTL_PID_MAX       1024 /* no limit here: a process id is any number but PTL_PID_ANY */
#define PTL_RANK_ANY      ((ptl_rank_t)0xffffffff)
#define PTL_UID_ANY       ((ptl_uid_t)0xffffffff)
#define PTL_PT_ANY        ((ptl_pt_index_t)0xffffffff)
#define PTL_TIME_FOREVER  ((ptl_time_t)0xffffffff)
#define PTL_SIZE_MAX      ((ptl_size_t)0xffffffffffffffff)

/* A piece of memory, laid out as struct iovec is. */
typedef struct {
	void *iov_base;
	ptl_size_t iov_len;
} ptl_iovec_t;

/* --- Return codes */

enum ptl_retvals {
	PTL_OK = 0,
	PTL_ARG_INVALID = 1,     /* an argument is not valid */
	PTL_CT_NONE_REACHED = 2, /* PtlCTPoll: no counter reached its test in time */
	PTL_EQ_DROPPED = 3,      /* success, and at least one event before this one was lost */
	PTL_EQ_EMPTY = 4,        /* the queue has no event */
	PTL_FAIL = 5,            /* the library cannot be used; standard error says why */
	PTL_IGNORED = 6,         /* PtlSetMap: the interface has a map already */
	PTL_IN_USE = 7,          /* messages are in progress on the object, or refer to it */
	PTL_LIST_TOO_LONG = 8,   /* never returned: a list that is too long is PTL_NO_SPACE */
	PTL_NO_INIT = 9,         /* the library has not been initialised */
	PTL_NO_SPACE = 10,       /* no memory, or a limit of the interface is reached */
	PTL_PID_IN_USE = 11,     /* another process of this node has the process id */
	PTL_PT_FULL = 12,        /* no index of the portal table is free */
	PTL_PT_EQ_NEEDED = 13,   /* flow control needs an event queue */
	PTL_PT_IN_USE = 14,      /* the index is taken, or has entries */
	PTL_ABORTED = 15,        /* PtlAbort ended the wait */
	PTL_STATUS_LAST = 15,
	PTL_INTERRUPTED = 16 /* what the caller waited for is gone */
};

/* --- Network interfaces */

#define PTL_NI_MATCHING          (1u << 0)
#define PTL_NI_NO_MATCHING       (1u << 1)
#define PTL_NI_LOGICAL           (1u << 2)
#define PTL_NI_PHYSICAL          (1u << 3)
#define PTL_NI_INIT_OPTIONS_MASK 0xfu

/* In ptl_ni_limits_t.features. */
#define PTL_TARGET_BIND_INACCESSIBLE (1u << 0) /* entries may span memory that does not exist */
#define PTL_TOTAL_DATA_ORDERING      (1u << 1) /* data is ordered whatever its size */
#define PTL_COHERENT_ATOMICS         (1u << 2) /* atomic with the CPU's own atomics */

typedef struct {
	int max_entries;            /* list entries, and match list entries */
	int max_unexpected_headers; /* of the interface */
	int max_mds;
	int max_cts;
	int max_eqs;
	int max_pt_index; /* the highest index */
	int max_iovecs;   /* pieces of one descriptor or entry */
	int max_list_size;
	int max_triggered_ops;
	ptl_size_t max_msg_size;
	ptl_size_t max_atomic_size;
	ptl_size_t max_fetch_atomic_size;
	ptl_size_t max_waw_ordered_size;
	ptl_size_t max_war_ordered_size;
	ptl_size_t max_volatile_size;
	unsigned int features;
} ptl_ni_limits_t;

typedef enum {
	PTL_SR_DROP_COUNT = 0,
	PTL_SR_PERMISSION_VIOLATIONS = 1,
	PTL_SR_OPERATION_VIOLATIONS = 2,
	PTL_SR_LAST = 3
} ptl_sr_index_t;
typedef int ptl_sr_value_t;

/* --- Counters */

typedef enum { PTL_CT_OPERATION = 0, PTL_CT_BYTE = 1 } ptl_ct_type_t;

typedef struct {
	ptl_size_t success;
	ptl_size_t failure;
} ptl_ct_event_t;

/* --- Portal table */

#define PTL_PT_ONLY_USE_ONCE      (1u << 0) /* hint: all entries have PTL_ME_USE_ONCE */
#define PTL_PT_FLOWCTRL           (1u << 1) /* disable the portal rather than lose anything */
#define PTL_PT_ONLY_TRUNCATE      (1u << 2) /* hint: no entry has PTL_ME_NO_TRUNCATE */
#define PTL_PT_MATCH_UNORDERED    (1u << 3) /* a message may go to any entry that matches */
#define PTL_PT_ALLOC_DISABLED     (1u << 4) /* begins disabled */
#define PTL_PT_ALLOC_OPTIONS_MASK 0x1fu

/* --- Memory descriptors */

typedef struct {
	void *start;
	ptl_size_t length; /* bytes; with PTL_IOVEC: pieces */
	unsigned int options;
	ptl_handle_eq_t eq_handle; /* or PTL_EQ_NONE */
	ptl_handle_ct_t ct_handle; /* or PTL_CT_NONE */
} ptl_md_t;

#define PTL_IOVEC                    (1u << 0) /* start: an array of `length` ptl_iovec_t */
#define PTL_MD_EVENT_CT_SEND         (1u << 1)
#define PTL_MD_EVENT_CT_REPLY        (1u << 2)
#define PTL_MD_EVENT_CT_ACK          (1u << 3)
#define PTL_MD_UNORDERED             (1u << 4)
#define PTL_MD_EVENT_SUCCESS_DISABLE (1u << 5)
#define PTL_MD_VOLATILE              (1u << 6) /* the data may change once the call returns */
#define PTL_MD_EVENT_SEND_DISABLE    (1u << 7)
#define PTL_MD_UNRELIABLE            (1u << 8)  /* puts must want no acknowledgement */
#define PTL_MD_EVENT_CT_BYTES        (1u << 14) /* counters count bytes */
#define PTL_MD_OPTIONS_MASK          0x41ffu

/* --- List entries and match list entries */

typedef unsigned char ptl_list_t;
#define PTL_PRIORITY_LIST ((ptl_list_t)0)
#define PTL_OVERFLOW_LIST ((ptl_list_t)1)

typedef unsigned char ptl_search_op_t;
#define PTL_SEARCH_ONLY   ((ptl_search_op_t)0)
#define PTL_SEARCH_DELETE ((ptl_search_op_t)1)

typedef struct {
	void *start;
	ptl_size_t length; /* bytes; with PTL_IOVEC: pieces */
	ptl_handle_ct_t ct_handle;
	ptl_uid_t uid; /* whose messages are permitted, or PTL_UID_ANY */
	unsigned int options;
} ptl_le_t;

#define PTL_LE_OP_PUT                 (1u << 1)
#define PTL_LE_OP_GET                 (1u << 2)
#define PTL_LE_USE_ONCE               (1u << 3)
#define PTL_LE_UNEXPECTED_HDR_DISABLE (1u << 4)
#define PTL_LE_IS_ACCESSIBLE          (1u << 5)
#define PTL_LE_EVENT_LINK_DISABLE     (1u << 6)
#define PTL_LE_EVENT_COMM_DISABLE     (1u << 7)
#define PTL_LE_EVENT_FLOWCTRL_DISABLE (1u << 8)
#define PTL_LE_EVENT_SUCCESS_DISABLE  (1u << 9)
#define PTL_LE_EVENT_OVER_DISABLE     (1u << 10)
#define PTL_LE_EVENT_UNLINK_DISABLE   (1u << 11)
#define PTL_LE_EVENT_CT_COMM          (1u << 12)
#define PTL_LE_EVENT_CT_OVERFLOW      (1u << 13)
#define PTL_LE_EVENT_CT_BYTES         (1u << 14)
#define PTL_LE_APPEND_OPTIONS_MASK    0x7fffu
/* 4.0 to 4.2, outside of the mask: messages to the entry are not acknowledged. */
#define PTL_LE_ACK_DISABLE (1u << 19)

typedef struct {
	void *start;
	ptl_size_t length;
	ptl_handle_ct_t ct_handle;
	ptl_uid_t uid;
	unsigned int options;
	ptl_process_t match_id; /* with wildcards */
	ptl_match_bits_t match_bits;
	ptl_match_bits_t ignore_bits; /* bits that do not count */
	ptl_size_t min_free;          /* with PTL_ME_MANAGE_LOCAL: less room unlinks the entry */
} ptl_me_t;

#define PTL_ME_OP_PUT                 PTL_LE_OP_PUT
#define PTL_ME_OP_GET                 PTL_LE_OP_GET
#define PTL_ME_USE_ONCE               PTL_LE_USE_ONCE
#define PTL_ME_UNEXPECTED_HDR_DISABLE PTL_LE_UNEXPECTED_HDR_DISABLE
#define PTL_ME_IS_ACCESSIBLE          PTL_LE_IS_ACCESSIBLE
#define PTL_ME_EVENT_LINK_DISABLE     PTL_LE_EVENT_LINK_DISABLE
#define PTL_ME_EVENT_COMM_DISABLE     PTL_LE_EVENT_COMM_DISABLE
#define PTL_ME_EVENT_FLOWCTRL_DISABLE PTL_LE_EVENT_FLOWCTRL_DISABLE
#define PTL_ME_EVENT_SUCCESS_DISABLE  PTL_LE_EVENT_SUCCESS_DISABLE
#define PTL_ME_EVENT_OVER_DISABLE     PTL_LE_EVENT_OVER_DISABLE
#define PTL_ME_EVENT_UNLINK_DISABLE   PTL_LE_EVENT_UNLINK_DISABLE
#define PTL_ME_EVENT_CT_COMM          PTL_LE_EVENT_CT_COMM
#define PTL_ME_EVENT_CT_OVERFLOW      PTL_LE_EVENT_CT_OVERFLOW
#define PTL_ME_EVENT_CT_BYTES         PTL_LE_EVENT_CT_BYTES
#define PTL_ME_ACK_DISABLE            PTL_LE_ACK_DISABLE
#define PTL_ME_MANAGE_LOCAL           (1u << 15) /* messages go behind each other */
#define PTL_ME_NO_TRUNCATE            (1u << 16) /* matches only what fits */
#define PTL_ME_MAY_ALIGN              (1u << 17)
#define PTL_ME_LOCAL_INC_UH_RLENGTH   (1u << 18)
#define PTL_ME_APPEND_OPTIONS_MASK    0x7ffffu

/* --- Data movement */

typedef unsigned char ptl_ack_req_t;
#define PTL_NO_ACK_REQ ((ptl_ack_req_t)0)
#define PTL_ACK_REQ    ((ptl_ack_req_t)1) /* an event and a count */
#define PTL_CT_ACK_REQ ((ptl_ack_req_t)2) /* a count */
#define PTL_OC_ACK_REQ ((ptl_ack_req_t)3) /* a count: the message was disposed of */

typedef unsigned char ptl_op_t;
#define PTL_MIN      ((ptl_op_t)0)
#define PTL_MAX      ((ptl_op_t)1)
#define PTL_SUM      ((ptl_op_t)2)
#define PTL_PROD     ((ptl_op_t)3)
#define PTL_LOR      ((ptl_op_t)4)
#define PTL_LAND     ((ptl_op_t)5)
#define PTL_BOR      ((ptl_op_t)6)
#define PTL_BAND     ((ptl_op_t)7)
#define PTL_LXOR     ((ptl_op_t)8)
#define PTL_BXOR     ((ptl_op_t)9)
#define PTL_SWAP     ((ptl_op_t)10)
#define PTL_CSWAP    ((ptl_op_t)11)
#define PTL_CSWAP_NE ((ptl_op_t)12)
#define PTL_CSWAP_LE ((ptl_op_t)13)
#define PTL_CSWAP_LT ((ptl_op_t)14)
#define PTL_CSWAP_GE ((ptl_op_t)15)
#define PTL_CSWAP_GT ((ptl_op_t)16)
#define PTL_MSWAP    ((ptl_op_t)17)
#define PTL_OP_LAST  ((ptl_op_t)18)

typedef unsigned char ptl_datatype_t;
#define PTL_INT8_T              ((ptl_datatype_t)0)
#define PTL_UINT8_T             ((ptl_datatype_t)1)
#define PTL_INT16_T             ((ptl_datatype_t)2)
#define PTL_UINT16_T            ((ptl_datatype_t)3)
#define PTL_INT32_T             ((ptl_datatype_t)4)
#define PTL_UINT32_T            ((ptl_datatype_t)5)
#define PTL_FLOAT               ((ptl_datatype_t)6)
#define PTL_INT64_T             ((ptl_datatype_t)7)
#define PTL_UINT64_T            ((ptl_datatype_t)8)
#define PTL_DOUBLE              ((ptl_datatype_t)9)
#define PTL_FLOAT_COMPLEX       ((ptl_datatype_t)10)
#define PTL_DOUBLE_COMPLEX      ((ptl_datatype_t)11)
#define PTL_LONG_DOUBLE         ((ptl_datatype_t)12)
#define PTL_LONG_DOUBLE_COMPLEX ((ptl_datatype_t)13)
#define PTL_DATATYPE_LAST       ((ptl_datatype_t)14)

/* --- Events */

typedef unsigned char ptl_event_kind_t;
#define PTL_EVENT_GET                   ((ptl_event_kind_t)0) /* target */
#define PTL_EVENT_GET_OVERFLOW          ((ptl_event_kind_t)1)
#define PTL_EVENT_PUT                   ((ptl_event_kind_t)2)
#define PTL_EVENT_PUT_OVERFLOW          ((ptl_event_kind_t)3)
#define PTL_EVENT_ATOMIC                ((ptl_event_kind_t)4)
#define PTL_EVENT_ATOMIC_OVERFLOW       ((ptl_event_kind_t)5)
#define PTL_EVENT_FETCH_ATOMIC          ((ptl_event_kind_t)6)
#define PTL_EVENT_FETCH_ATOMIC_OVERFLOW ((ptl_event_kind_t)7)
#define PTL_EVENT_REPLY                 ((ptl_event_kind_t)8) /* initiator */
#define PTL_EVENT_SEND                  ((ptl_event_kind_t)9)
#define PTL_EVENT_ACK                   ((ptl_event_kind_t)10)
#define PTL_EVENT_PT_DISABLED           ((ptl_event_kind_t)11) /* target */
#define PTL_EVENT_LINK                  ((ptl_event_kind_t)12)
#define PTL_EVENT_AUTO_UNLINK           ((ptl_event_kind_t)13)
#define PTL_EVENT_AUTO_FREE             ((ptl_event_kind_t)14)
#define PTL_EVENT_SEARCH                ((ptl_event_kind_t)15)

typedef unsigned char ptl_ni_fail_t;
#define PTL_NI_OK ((ptl_ni_fail_t)0)
/* the process does not exist, or has ended. The end of a process is noticed at once on a node,
 * after a second behind posternd, after 0.1 s if it closed its interface less than a second ago,
 * and otherwise after PTL_PEER_TIMEOUT. */
#define PTL_NI_UNDELIVERABLE  ((ptl_ni_fail_t)1)
#define PTL_NI_DROPPED        ((ptl_ni_fail_t)2) /* no portal, or no entry, takes the message */
#define PTL_NI_PT_DISABLED    ((ptl_ni_fail_t)3)
#define PTL_NI_PERM_VIOLATION ((ptl_ni_fail_t)4) /* the entry is not for this user */
#define PTL_NI_OP_VIOLATION   ((ptl_ni_fail_t)5) /* the entry is not for this operation */
#define PTL_NI_NO_MATCH       ((ptl_ni_fail_t)6) /* a search found nothing */
#define PTL_NI_SEGV           ((ptl_ni_fail_t)7) /* the memory does not exist */

typedef struct {
	void *start;    /* target: where the data lies */
	void *user_ptr; /* the entry's, or the call's */
	ptl_hdr_data_t hdr_data;
	ptl_match_bits_t match_bits;
	ptl_size_t rlength;       /* bytes asked for */
	ptl_size_t mlength;       /* bytes moved */
	ptl_size_t remote_offset; /* the request's; ACK, REPLY: the one that was used */
	ptl_process_t initiator;
	ptl_uid_t uid; /* the initiator's */
	ptl_pt_index_t pt_index;
	ptl_event_kind_t type;
	ptl_list_t ptl_list; /* that matched */
	ptl_ni_fail_t ni_fail_type;
	ptl_op_t atomic_operation;
	ptl_datatype_t atomic_type;
} ptl_event_t;

/* --- Functions. A comment's number is the section of the reference, "Portals 4". */

/* What all functions have in common: any thread may call any function; a signal handler may call
 * none. Only PtlFini, PtlNIFini, PtlPTFree, PtlPTDisable, PtlPTEnable, PtlCTWait, PtlCTPoll,
 * PtlEQWait, PtlEQPoll and PtlAtomicSync may block. A function that fails changes nothing.
 * PTL_NO_INIT is checked first, then the handle, then the other arguments. A handle is bad if it is
 * of another kind, if its object has been released, if it is PTL_INVALID_HANDLE, or if it is a
 * _NONE constant where an object is needed. */

/* Initialisation and end */

/* 4. Opens the library: reads the PTL_ settings. It may be called any number of times, from any
 * thread; the calls are counted, so that several components of a program can each call PtlInit and
 * PtlFini. After the last PtlFini the library may be opened again.
 * Returns
 *   PTL_FAIL  A setting is wrong, or this process is a child made by fork(). Standard error says
 *             which. */
PTL_API int PtlInit(void);

/* 4. Undoes one PtlInit. The call that undoes the last PtlInit closes all interfaces, as PtlNIFini
 * does, and the library; further calls do nothing. May take as long as PtlNIFini. */
PTL_API void PtlFini(void);

/* 4. Makes every thread that waits in PtlEQWait, PtlEQPoll, PtlCTWait or PtlCTPoll return
 * PTL_ABORTED, and also threads that begin to wait before all of these have returned. Afterwards
 * threads may wait again. If no thread waits, nothing happens. */
PTL_API void PtlAbort(void);

/* Network interfaces */

/* 4. Opens a network interface, or counts one more use of an interface that is open. A process has
 * up to four on each port: matching or not, logical or physical. They have the same node and
 * process id; each has its own tables and limits. A message goes to the target's interface of the
 * same kind.
 *   iface      0 or 1, in the order of PTL_IFACE_NAME; PTL_IFACE_DEFAULT is 0
 *   options    PTL_NI_MATCHING or PTL_NI_NO_MATCHING, or'ed with PTL_NI_LOGICAL or PTL_NI_PHYSICAL
 *   pid        wanted process id; PTL_PID_ANY: that of the port's other interfaces, or one that the
 *              library chooses. Ignored if the interface is open
 *   desired    wanted limits; NULL: those of the PTL_LIM_ settings, or the defaults. Each is
 *              changed to the nearest possible value. Ignored if the interface is open
 *   actual     out, may be NULL: the limits of the interface
 *   ni_handle  out: the interface; the same number in each process
 * Returns
 *   PTL_ARG_INVALID  The port does not exist, options does not have exactly one of each pair, pid
 *                    differs from that of the port's other interfaces, or ni_handle is NULL.
 *   PTL_PID_IN_USE   Another process of this node has the process id.
 *   PTL_NO_SPACE     There is not enough memory.
 *   PTL_FAIL         The port cannot be used. Standard error says why. */
PTL_API int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
	const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle);

/* 4. Ends one use of an interface. The end of its last use closes it and releases all its objects.
 * Calls that wait for its events and counters return PTL_INTERRUPTED. Before that it waits until
 * all messages that were sent are acknowledged, or their targets have closed. It gives up when
 * nothing has been acknowledged for PTL_PEER_TIMEOUT (one second if the target has never answered):
 * then a warning says how many messages may not have arrived. While the port's last interface
 * closes, SIGTERM and SIGINT, unless they are ignored, end the wait and then take effect; other
 * threads that open or close an interface wait meanwhile.
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad. */
PTL_API int PtlNIFini(ptl_handle_ni_t ni_handle);

/* 4. Reads a status register of an interface.
 *   status_register  PTL_SR_DROP_COUNT: messages that found no portal, a disabled portal, no entry
 *                    or no free unexpected header, or whose sender is not the process of its rank
 *                    in this map; PTL_SR_PERMISSION_VIOLATIONS: messages to an entry for another
 *                    user; PTL_SR_OPERATION_VIOLATIONS: messages to an entry for other operations
 *   status           out
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad, the register does not exist, or status is NULL. */
PTL_API int PtlNIStatus(
	ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status);

/* 4. Gets the interface that an object belongs to; for an interface, that interface.
 *   handle     of any kind
 *   ni_handle  out
 * Returns
 *   PTL_ARG_INVALID  handle is bad, or ni_handle is NULL. */
PTL_API int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);

/* 4. Sets the map of a logical interface: the process of each rank. All processes set the same map.
 * It cannot change until the interface is closed.
 *   map_size  number of ranks
 *   mapping   node and process id of each rank; this process is one of them. Copied
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad or of a physical interface, map_size is 0, mapping is NULL,
 *                    or this process is not in it.
 *   PTL_IGNORED      The interface has a map, which stays as it is.
 *   PTL_NO_SPACE     There is not enough memory. */
PTL_API int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping);

/* 4. Reads the map of a logical interface.
 *   map_size         size of mapping, in ranks; may be 0
 *   mapping          out: the first of them; may be NULL if map_size is 0
 *   actual_map_size  out, may be NULL: number of ranks in the map
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad or of a physical interface, or mapping is NULL.
 *   PTL_NO_SPACE     The interface has no map. */
PTL_API int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping,
	ptl_size_t *actual_map_size);

/* The portal table */

/* 5. Allocates a portal: an index of the portal table.
 *   options       PTL_PT_..., or'ed
 *   eq_handle     the queue for events of its entries; PTL_EQ_NONE: no events
 *   pt_index_req  wanted index, 0 to max_pt_index; PTL_PT_ANY: the lowest free one
 *   pt_index      out
 * Returns
 *   PTL_ARG_INVALID   ni_handle is bad, options does not exist, pt_index_req is larger than
 *                     max_pt_index, eq_handle is bad or of another interface, or pt_index is NULL.
 *   PTL_PT_IN_USE     The wanted index is taken.
 *   PTL_PT_FULL       No index is free.
 *   PTL_PT_EQ_NEEDED  options has PTL_PT_FLOWCTRL, and eq_handle is PTL_EQ_NONE. */
PTL_API int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
	ptl_pt_index_t pt_index_req, ptl_pt_index_t *pt_index);

/* 5. Frees a portal. Headers on its unexpected list are dropped without an event. The call waits
 * until all messages that the portal has accepted are complete.
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad, or pt_index is not allocated.
 *   PTL_PT_IN_USE    The portal has entries; nothing was changed. */
PTL_API int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* 5. Disables a portal: it refuses messages from now on. The call returns when all messages that
 * were accepted before are complete and their events logged.
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad, or pt_index is not allocated. */
PTL_API int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* 5. Enables a portal again, also after the library has disabled it.
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad, or pt_index is not allocated. */
PTL_API int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* Identification */

/* 4. Gets the effective user id of this process, which its messages carry.
 *   uid  out
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad, or uid is NULL. */
PTL_API int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);

/* 4. Gets the id by which others on this interface name this process.
 *   id  out: node and process id on a physical interface; on a logical one the rank, or
 *       PTL_RANK_ANY before PtlSetMap
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad, or id is NULL. */
PTL_API int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id);

/* 4. Gets the node and process id of this process, on any interface.
 *   id  out
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad, or id is NULL. */
PTL_API int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id);

/* Memory descriptors */

/* 11. Makes a memory descriptor: memory that messages are sent from and that replies are written
 * to. With PTL_IOVEC its pieces are copied.
 *   md         the descriptor's fields; the memory need not exist yet
 *   md_handle  out
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad, options of md do not exist, its queue or counter is bad or
 *                    of another interface, it has more than max_iovecs pieces, or a pointer is
 *                    NULL.
 *   PTL_NO_SPACE     The interface has max_mds descriptors, or there is not enough memory. */
PTL_API int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle);

/* 11. Releases a memory descriptor. The handle is invalid at once; operations in progress complete,
 * and their events are logged.
 * Returns
 *   PTL_ARG_INVALID  md_handle is bad. */
PTL_API int PtlMDRelease(ptl_handle_md_t md_handle);

/* List entries and match list entries */

/* 6, 7. Appends an entry to a list of a portal of a non-matching interface. An entry for the
 * priority list first takes the unexpected headers of the portal: all of them, or with
 * PTL_LE_USE_ONCE only the first, after which the entry is unlinked.
 *   pt_index   of the portal
 *   le         the entry's fields; the memory need not exist yet
 *   ptl_list   PTL_PRIORITY_LIST or PTL_OVERFLOW_LIST
 *   user_ptr   returned in events of the entry
 *   le_handle  out
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad or of a matching interface, pt_index is not allocated, the
 *                    list does not exist, options of le do not exist, its counter is bad or of
 *                    another interface, it has more than max_iovecs pieces, or a pointer is NULL.
 *   PTL_NO_SPACE     The interface has max_entries entries, the list has max_list_size, or there is
 *                    not enough memory. */
PTL_API int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
	ptl_list_t ptl_list, void *user_ptr, ptl_handle_le_t *le_handle);

/* 6. Unlinks an entry. No event is logged.
 * Returns
 *   PTL_ARG_INVALID  le_handle is bad or of a matching interface, or the library has unlinked the
 *                    entry.
 *   PTL_IN_USE       A message for the entry is in progress, or unexpected headers refer to its
 *                    memory; nothing was changed. */
PTL_API int PtlLEUnlink(ptl_handle_le_t le_handle);

/* 7. Searches the unexpected list of a portal as PtlLEAppend does, but appends no entry. Events and
 * the counter of le report the headers that were found; the counter is up to date when the call
 * returns.
 *   ptl_search_op  PTL_SEARCH_ONLY: headers stay; PTL_SEARCH_DELETE: headers that were found are
 *                  removed
 *   the others as in PtlLEAppend
 * Returns
 *   PTL_ARG_INVALID  As PtlLEAppend, or ptl_search_op does not exist.
 *   PTL_NO_SPACE     There is not enough memory. */
PTL_API int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
	ptl_search_op_t ptl_search_op, void *user_ptr);

/* 6, 7. PtlLEAppend on a matching interface: the entry, and headers for it, are chosen by match_id
 * and match_bits of me.
 *   the arguments as in PtlLEAppend
 * Returns
 *   PTL_ARG_INVALID  As PtlLEAppend, but ni_handle is of a non-matching interface.
 *   PTL_NO_SPACE     As PtlLEAppend. */
PTL_API int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
	ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle);

/* 6. PtlLEUnlink of an entry of a matching interface.
 * Returns
 *   PTL_ARG_INVALID  me_handle is bad or of a non-matching interface, or the library has unlinked
 *                    the entry.
 *   PTL_IN_USE       As PtlLEUnlink. */
PTL_API int PtlMEUnlink(ptl_handle_me_t me_handle);

/* 7. PtlLESearch on a matching interface.
 *   the arguments as in PtlLESearch
 * Returns
 *   PTL_ARG_INVALID  As PtlMEAppend, or ptl_search_op does not exist.
 *   PTL_NO_SPACE     There is not enough memory. */
PTL_API int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
	ptl_search_op_t ptl_search_op, void *user_ptr);

/* Counters */

/* 9. Makes a counter. Both its numbers are 0.
 *   ct_handle  out
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad, or ct_handle is NULL.
 *   PTL_NO_SPACE     The interface has max_cts counters. */
PTL_API int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle);

/* 9. Frees a counter. Operations that wait for it are dropped. Threads that wait for it return
 * PTL_INTERRUPTED. Descriptors and entries that refer to it stop counting.
 * Returns
 *   PTL_ARG_INVALID  ct_handle is bad. */
PTL_API int PtlCTFree(ptl_handle_ct_t ct_handle);

/* 10. Drops the operations that wait for a counter: none of them runs after the return.
 * Returns
 *   PTL_ARG_INVALID  ct_handle is bad. */
PTL_API int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle);

/* 9. Reads a counter, without waiting. If the counter changes during the call, one number may be
 * the old one and the other one the new one.
 *   event  out
 * Returns
 *   PTL_ARG_INVALID  ct_handle is bad, or event is NULL. */
PTL_API int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event);

/* 9. Waits until the success number of a counter is at least test, or its failure number is not 0.
 *   test   the success number to wait for
 *   event  out: both numbers of the counter
 * Returns
 *   PTL_ARG_INVALID  ct_handle is bad, or event is NULL.
 *   PTL_ABORTED      PtlAbort was called.
 *   PTL_INTERRUPTED  The counter was freed, or its interface closed, during the wait. */
PTL_API int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event);

/* 9. Waits as PtlCTWait does for any of several counters of one interface. Repeated calls look at
 * the counters in turn.
 *   ct_handles  the counters
 *   tests       for each counter, the number of successes to wait for
 *   size        number of counters, 1 or more
 *   timeout     ms; 0: the call does not wait; PTL_TIME_FOREVER: no limit
 *   event       out: the counter that reached its test
 *   which       out: its index in ct_handles
 * Returns
 *   PTL_ARG_INVALID      size is 0, a handle is bad, the handles are of several interfaces, or a
 *                        pointer is NULL.
 *   PTL_CT_NONE_REACHED  No counter reached its test in time.
 *   PTL_ABORTED          PtlAbort was called.
 *   PTL_INTERRUPTED      A counter was freed, or the interface closed, during the wait. */
PTL_API int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
	ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which);

/* 9. Sets both numbers of a counter. The new numbers are visible when the call returns.
 * Returns
 *   PTL_ARG_INVALID  ct_handle is bad. */
PTL_API int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct);

/* 9. Adds to one of the numbers of a counter. The new number is visible when the call returns.
 *   increment  the numbers to add; one of the two must be 0
 * Returns
 *   PTL_ARG_INVALID  ct_handle is bad, or neither number of increment is 0. */
PTL_API int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment);

/* Data movement. A call returns when the operation has started; events and counters report its
 * progress. Operations from one interface to another are matched there in the order of the calls.
 * */

/* 11. Writes memory of a descriptor to a process.
 *   local_offset   in the descriptor's memory, bytes
 *   length         bytes
 *   ack_req        PTL_NO_ACK_REQ; PTL_ACK_REQ: an ACK event and a count; PTL_CT_ACK_REQ: a count;
 *                  PTL_OC_ACK_REQ: a count of 1, even if the counter counts bytes
 *   target_id      one process, no wildcards; on a logical interface its rank
 *   pt_index       at the target
 *   match_bits     for the target's entries
 *   remote_offset  in the memory of the target's entry, bytes; ignored if the entry has
 *                  PTL_ME_MANAGE_LOCAL
 *   user_ptr       returned in events of this call
 *   hdr_data       for the target's event
 * Returns
 *   PTL_ARG_INVALID  md_handle is bad, the range is not within the descriptor, length is larger
 *                    than max_msg_size (or max_volatile_size, if the descriptor has
 *                    PTL_MD_VOLATILE), ack_req does not exist, needs an event queue or counter that
 *                    the descriptor lacks, or is not PTL_NO_ACK_REQ although the descriptor has
 *                    PTL_MD_UNRELIABLE, or target_id is a wildcard or not in the map. */
PTL_API int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data);

/* 11. Reads memory of a process into a descriptor's memory.
 *   the arguments as in PtlPut
 * Returns
 *   PTL_ARG_INVALID  As PtlPut. */
PTL_API int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr);

/* 12. Applies an operation to memory of a process and memory of a descriptor, element by element.
 * The result of "target operation source" replaces the element of the target.
 *   operation  PTL_MIN to PTL_BXOR
 *   datatype   of an element; the operation must be defined for it
 *   the others as in PtlPut
 * Returns
 *   PTL_ARG_INVALID  As PtlPut, or length is larger than max_atomic_size, operation is not one of
 *                    PTL_MIN to PTL_BXOR, or it is not defined for datatype. */
PTL_API int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype);

/* 12. As PtlAtomic, and writes the old value of the target to a descriptor's memory.
 *   get_md_handle, local_get_offset  where the old value goes
 *   put_md_handle, local_put_offset  where the source is
 *   the others as in PtlAtomic
 * Returns
 *   PTL_ARG_INVALID  As PtlAtomic: each of the two descriptors is checked in this way, but the
 *                    limit of length is max_fetch_atomic_size. Or the two are of different
 *                    interfaces. */
PTL_API int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
	ptl_datatype_t datatype);

/* 12. Swaps memory of a descriptor with memory of a process, also on a condition or in part.
 *   operand    one element, read during the call: the value that the target is compared with, or
 *              for PTL_MSWAP the bits to swap. Ignored for PTL_SWAP
 *   operation  PTL_SWAP to PTL_MSWAP; all but PTL_SWAP move one element
 *   the others as in PtlFetchAtomic
 * Returns
 *   PTL_ARG_INVALID  As PtlFetchAtomic, or operand is NULL and needed, or length is larger than one
 *                    element where only one moves. */
PTL_API int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
	ptl_op_t operation, ptl_datatype_t datatype);

/* 12. Waits until the results of atomic operations on this process's memory are visible to it. */
PTL_API int PtlAtomicSync(void);

/* Triggered operations. A triggered operation begins when the sum of the counter's two numbers,
 * success and failure, is at least threshold; it begins at once if this sum is large enough
 * already. It begins even if the program makes no further call. If one change of a counter starts
 * several operations, they begin in the order of their calls. Data is read when the operation
 * begins; the operand of a swap is read during the call. */

/* 10. Calls PtlPut, PtlGet, PtlAtomic, PtlFetchAtomic or PtlSwap when a counter reaches a
 * threshold.
 *   trig_ct_handle  the counter that triggers the operation
 *   threshold       the operation begins when success plus failure of that counter is at least this
 *   the others as in the plain functions
 * Returns
 *   PTL_ARG_INVALID  As the plain function, or trig_ct_handle is bad or of another interface.
 *   PTL_NO_SPACE     The interface has max_triggered_ops pending triggered operations. */
PTL_API int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_API int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_handle_ct_t trig_ct_handle,
	ptl_size_t threshold);
PTL_API int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset,
	ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_API int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
	ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_API int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
	ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
	ptl_size_t threshold);

/* 10. Calls PtlCTInc or PtlCTSet when a counter reaches a threshold.
 *   ct_handle  the counter that changes; it may be trig_ct_handle
 *   the others as in PtlCTInc and PtlTriggeredPut
 * Returns
 *   PTL_ARG_INVALID  ct_handle or trig_ct_handle is bad, they are of two interfaces, or neither
 *                    number of increment is 0.
 *   PTL_NO_SPACE     The interface has max_triggered_ops pending triggered operations. */
PTL_API int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_API int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);

/* 10. Calls PtlMEAppend when a counter reaches a threshold: an extension of the Sandia
 * implementation. The library reads me, and the pieces that it refers to, and writes me_handle only
 * at that time, so they must stay valid until then. If me is not valid at that time, or a limit of
 * the interface is reached, nothing is appended, me_handle becomes PTL_INVALID_HANDLE, and a
 * warning says why.
 *   me         as in PtlMEAppend
 *   me_handle  out, written when the entry is appended, before messages can match the entry
 *   the others as in PtlMEAppend and PtlTriggeredPut
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad or of an interface without matching, pt_index is larger than
 *                    max_pt_index, ptl_list does not exist, me or me_handle is NULL, or
 *                    trig_ct_handle is bad or of another interface.
 *   PTL_NO_SPACE     The interface has max_triggered_ops pending triggered operations. */
PTL_API int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_me_t *me,
	ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);

/* 10. Calls PtlMEUnlink when a counter reaches a threshold: an extension of the Sandia
 * implementation. If the entry is in use at that time, or has been unlinked, nothing happens.
 *   the arguments as in PtlMEUnlink and PtlTriggeredPut
 * Returns
 *   PTL_ARG_INVALID  me_handle or trig_ct_handle is bad, they are of two interfaces, or me_handle
 *                    is of a non-matching interface.
 *   PTL_NO_SPACE     The interface has max_triggered_ops pending triggered operations. */
PTL_API int PtlTriggeredMEUnlink(
	ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);

/* Event queues */

/* 8. Allocates an event queue.
 *   count      the number of events that the queue must have room for, 0 counts as 1; when the
 *              queue is full, a new event overwrites the oldest
 *   eq_handle  out
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad, or eq_handle is NULL.
 *   PTL_NO_SPACE     The interface has max_eqs queues already, or PTL_EVENT_MEMORY is used up. */
PTL_API int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle);

/* 8. Frees an event queue. Calls that wait for its events return PTL_INTERRUPTED. Descriptors and
 * portals that still refer to the queue log no more events.
 * Returns
 *   PTL_ARG_INVALID  eq_handle is bad. */
PTL_API int PtlEQFree(ptl_handle_eq_t eq_handle);

/* 8. Takes the next event out of a queue, without waiting.
 *   event  out; written only when an event was taken
 * Returns
 *   PTL_ARG_INVALID  eq_handle is bad, or event is NULL.
 *   PTL_EQ_EMPTY     The queue has no event.
 *   PTL_EQ_DROPPED   An event was taken, and at least one event right before it was lost. */
PTL_API int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);

/* 8. Waits until a queue has an event, and takes it out. Each event ends the wait of one thread.
 *   event  out
 * Returns
 *   PTL_ARG_INVALID  eq_handle is bad, or event is NULL.
 *   PTL_EQ_DROPPED   An event was taken, and at least one event right before it was lost.
 *   PTL_ABORTED      PtlAbort was called.
 *   PTL_INTERRUPTED  The queue was freed, or its interface closed, during the wait. */
PTL_API int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);

/* 8. Takes the next event out of any of several queues of one interface. Repeated calls look at the
 * queues in turn.
 *   eq_handles  the queues
 *   size        number of queues, 1 or more
 *   timeout     ms; 0: the call does not wait; PTL_TIME_FOREVER: no limit
 *   event       out
 *   which       out: the index of the event's queue in eq_handles
 * Returns
 *   PTL_ARG_INVALID  size is 0, a handle is bad, the handles are of several interfaces, or a
 *                    pointer is NULL.
 *   PTL_EQ_EMPTY     No event came in time.
 *   PTL_EQ_DROPPED   An event was taken, and at least one event right before it was lost.
 *   PTL_ABORTED      PtlAbort was called.
 *   PTL_INTERRUPTED  A queue was freed, or the interface closed, during the wait. */
PTL_API int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
	ptl_event_t *event, unsigned int *which);

/* Bundles and handles */

/* 4. Begins a bundle: operations from now on may be held back until the matching PtlEndBundle.
 * Bundles nest.
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad. */
PTL_API int PtlStartBundle(ptl_handle_ni_t ni_handle);

/* 4. Ends the bundle that the last PtlStartBundle began.
 * Returns
 *   PTL_ARG_INVALID  ni_handle is bad. */
PTL_API int PtlEndBundle(ptl_handle_ni_t ni_handle);

/* 4. Compares two handles. It may be called before PtlInit, with any numbers.
 * Returns
 *   not 0  They name the same object.
 *   0      They name different objects. */
PTL_API int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2);

/* Names, for messages and logs. They are extensions, with the names that they have in Atos's
 * implementations of Portals 4. Neither needs PtlInit. */

typedef enum ptl_str_type {
	PTL_STR_ERROR,    /* a return code */
	PTL_STR_EVENT,    /* the type of an event */
	PTL_STR_FAIL_TYPE /* the ni_fail_type of an event */
} ptl_str_type_t;

#define PTL_EV_STR_SIZE 256 /* bytes that PtlEvToStr() writes at most */

/* Gives the name of a number, such as "PTL_EQ_EMPTY".
 *   rc    a return code, the type of an event, or its ni_fail_type
 *   type  which of these rc is
 * Returns the name, or "Unknown". The text is static. */
PTL_API const char *PtlToStr(int rc, ptl_str_type_t type);

/* Writes an event as one line of text: the names of its type and failure, and the fields
 * that its type fills.
 *   ni_options  the interface's options; PTL_NI_PHYSICAL: the initiator is a node and process id,
 *               else a rank
 *   event       an event that one of the PtlEQ functions has given
 *   msg         out: PTL_EV_STR_SIZE bytes
 * Returns the number of characters written, without the terminating null character; 0 if event or
 * msg is NULL. */
PTL_API int PtlEvToStr(unsigned int ni_options, const ptl_event_t *event, char *msg);

#ifdef __cplusplus
}
#endif

#endif
