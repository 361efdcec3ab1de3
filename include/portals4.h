/* SPDX-License-Identifier: BSD-3-Clause */
/* portals4.h - the Portals 4.3 message passing interface.
 *
 * Names, numbers and layouts are those of Portals 4.3, and the names of 4.0 to 4.2 that programs
 * use. A program includes this header or portals.h, not both.
 *
 * Every function may be called from any thread. All but PtlInit, PtlFini, PtlAbort and
 * PtlHandleIsEqual return PTL_NO_INIT before PtlInit, after PtlFini, and in a child made by fork().
 * A function that fails changes nothing. Only PtlEQWait, PtlEQPoll, PtlCTWait, PtlCTPoll,
 * PtlPTDisable, PtlPTEnable, PtlAtomicSync and PtlNIFini may block.
 *
 * Where a function's codes are listed, PTL_OK and PTL_NO_INIT are left out. A "bad" handle is one
 * of another kind, one whose object is gone, PTL_INVALID_HANDLE, or a _NONE constant where an
 * object is needed. NULL for a result that is not optional is PTL_ARG_INVALID.
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

#define PTL_EQ_NONE        ((ptl_handle_eq_t)0x3fffffff)
#define PTL_CT_NONE        ((ptl_handle_ct_t)0x5fffffff)
#define PTL_INVALID_HANDLE ((ptl_handle_any_t)0xffffffff)

#define PTL_IFACE_DEFAULT ((ptl_interface_t)0xffffffff) /* the first interface */
#define PTL_PID_ANY       ((ptl_pid_t)0xffff)
#define PTL_NID_ANY       ((ptl_nid_t)0xffff)
#define PTL_PID_MAX       1024 /* bounds nothing: a process id is any number but PTL_PID_ANY */
#define PTL_RANK_ANY      ((ptl_rank_t)0xffffffff)
#define PTL_UID_ANY       ((ptl_uid_t)0xffffffff)
#define PTL_PT_ANY        ((ptl_pt_index_t)0xffffffff)
#define PTL_TIME_FOREVER  ((ptl_time_t)0xffffffff)
#define PTL_SIZE_MAX      ((ptl_size_t)0xffffffffffffffff)

/* A process: its rank on a logical interface, its node and process id on a physical one. */
typedef union {
	ptl_rank_t rank;
	struct {
		ptl_nid_t nid;
		ptl_pid_t pid;
	} phys;
} ptl_process_t;

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
	PTL_LIST_TOO_LONG = 8,
	PTL_NO_INIT = 9,       /* the library has not been initialised */
	PTL_NO_SPACE = 10,     /* no memory, or a limit of the interface is reached */
	PTL_PID_IN_USE = 11,   /* another process of this node has the process id */
	PTL_PT_FULL = 12,      /* no index of the portal table is free */
	PTL_PT_EQ_NEEDED = 13, /* flow control needs an event queue */
	PTL_PT_IN_USE = 14,    /* the index is taken, or has entries */
	PTL_ABORTED = 15,      /* PtlAbort ended the wait */
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

#define PTL_PT_ONLY_USE_ONCE      (1u << 0) /* a promise about the entries */
#define PTL_PT_FLOWCTRL           (1u << 1) /* disable the portal rather than lose anything */
#define PTL_PT_ONLY_TRUNCATE      (1u << 2) /* a promise about the entries */
#define PTL_PT_MATCH_UNORDERED    (1u << 3) /* any entry that matches may be taken */
#define PTL_PT_ALLOC_DISABLED     (1u << 4) /* begins disabled */
#define PTL_PT_ALLOC_OPTIONS_MASK 0x1fu

/* --- Memory descriptors */

#define PTL_IOVEC                    (1u << 0) /* start: an array of `length` ptl_iovec_t */
#define PTL_MD_EVENT_CT_SEND         (1u << 1)
#define PTL_MD_EVENT_CT_REPLY        (1u << 2)
#define PTL_MD_EVENT_CT_ACK          (1u << 3)
#define PTL_MD_UNORDERED             (1u << 4)
#define PTL_MD_EVENT_SUCCESS_DISABLE (1u << 5)
#define PTL_MD_VOLATILE              (1u << 6) /* the data may change once the call returns */
#define PTL_MD_EVENT_SEND_DISABLE    (1u << 7)
#define PTL_MD_UNRELIABLE            (1u << 8)
#define PTL_MD_EVENT_CT_BYTES        (1u << 14) /* counters count bytes */
#define PTL_MD_OPTIONS_MASK          0x41ffu

typedef struct {
	void *start;
	ptl_size_t length; /* bytes; with PTL_IOVEC: pieces */
	unsigned int options;
	ptl_handle_eq_t eq_handle; /* or PTL_EQ_NONE */
	ptl_handle_ct_t ct_handle; /* or PTL_CT_NONE */
} ptl_md_t;

/* --- List entries and match list entries */

typedef unsigned char ptl_list_t;
#define PTL_PRIORITY_LIST ((ptl_list_t)0)
#define PTL_OVERFLOW_LIST ((ptl_list_t)1)

typedef unsigned char ptl_search_op_t;
#define PTL_SEARCH_ONLY   ((ptl_search_op_t)0)
#define PTL_SEARCH_DELETE ((ptl_search_op_t)1)

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

typedef struct {
	void *start;
	ptl_size_t length; /* bytes; with PTL_IOVEC: pieces */
	ptl_handle_ct_t ct_handle;
	ptl_uid_t uid; /* whose messages are permitted, or PTL_UID_ANY */
	unsigned int options;
} ptl_le_t;

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
#define PTL_NI_OK             ((ptl_ni_fail_t)0)
#define PTL_NI_UNDELIVERABLE  ((ptl_ni_fail_t)1) /* the process is not there, or no longer */
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

/* --- Functions */

/* Opens the library. Calls count: it closes with the PtlFini that answers the first one. FAIL. */
PTL_API int PtlInit(void);
/* Ends one PtlInit. The last one closes all interfaces. */
PTL_API void PtlFini(void);
/* Makes every thread that waits in PtlEQWait, PtlEQPoll, PtlCTWait or PtlCTPoll return
 * PTL_ABORTED, and those that begin to wait before the last of them has left. */
PTL_API void PtlAbort(void);

/* Opens a network interface of the kind that options say, one of each pair, or counts one more use
 * of it. desired: NULL, or limits that are wished for; actual: NULL, or where those that hold go.
 * ARG_INVALID, PID_IN_USE, NO_SPACE, FAIL. */
PTL_API int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
	const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle);
/* Ends one use of an interface; the last one closes it. ARG_INVALID. */
PTL_API int PtlNIFini(ptl_handle_ni_t ni_handle);
/* Reads a status register. ARG_INVALID. */
PTL_API int PtlNIStatus(
	ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status);
/* The interface of an object's handle, of any kind. ARG_INVALID. */
PTL_API int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);
/* Says which process has which rank on a logical interface; mapping is copied. ARG_INVALID: also
 * when the caller is not in it; NO_SPACE, IGNORED. */
PTL_API int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping);
/* Copies the first map_size elements of the map. *actual_map_size: how many it has. ARG_INVALID;
 * NO_SPACE: there is no map. */
PTL_API int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping,
	ptl_size_t *actual_map_size);

/* Takes an index of the portal table, or any with PTL_PT_ANY: the lowest that is free. eq_handle:
 * where events of its entries go, or PTL_EQ_NONE. ARG_INVALID, PT_IN_USE, PT_FULL, PT_EQ_NEEDED. */
PTL_API int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
	ptl_pt_index_t pt_index_req, ptl_pt_index_t *pt_index);
/* Gives an index back. ARG_INVALID; PT_IN_USE: it has entries. */
PTL_API int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);
/* Refuses messages to a portal from now on. Returns when those that were accepted have ended.
 * ARG_INVALID. */
PTL_API int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);
/* Accepts messages again. ARG_INVALID. */
PTL_API int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* The user of this process. ARG_INVALID. */
PTL_API int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);
/* This process: node and process id on a physical interface; on a logical one its rank, or
 * PTL_RANK_ANY before PtlSetMap. ARG_INVALID. */
PTL_API int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id);
/* This process's node and process id, on any interface. ARG_INVALID. */
PTL_API int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id);

/* Makes a memory descriptor, from which messages are sent and which replies are written to.
 * ARG_INVALID, NO_SPACE. */
PTL_API int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle);
/* Gives a descriptor back. Operations that are in progress end as always. ARG_INVALID. */
PTL_API int PtlMDRelease(ptl_handle_md_t md_handle);

/* Appends an entry to a list of a portal of a non-matching interface. user_ptr: returned in its
 * events. ARG_INVALID, NO_SPACE, LIST_TOO_LONG. */
PTL_API int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
	ptl_list_t ptl_list, void *user_ptr, ptl_handle_le_t *le_handle);
/* Takes an entry out of its list. ARG_INVALID: also when it has left by itself; IN_USE: messages
 * are in progress, or unexpected headers refer to its memory. */
PTL_API int PtlLEUnlink(ptl_handle_le_t le_handle);
/* Searches the unexpected list of a portal as an append would. ARG_INVALID. */
PTL_API int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
	ptl_search_op_t ptl_search_op, void *user_ptr);
/* The same three on a matching interface. */
PTL_API int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
	ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle);
PTL_API int PtlMEUnlink(ptl_handle_me_t me_handle);
PTL_API int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
	ptl_search_op_t ptl_search_op, void *user_ptr);

/* Makes a counter, which is 0. ARG_INVALID, NO_SPACE. */
PTL_API int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle);
/* Frees a counter, and drops what waits for it to trigger. ARG_INVALID. */
PTL_API int PtlCTFree(ptl_handle_ct_t ct_handle);
/* Drops the operations that wait for a counter to trigger. ARG_INVALID. */
PTL_API int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle);
/* Reads a counter. ARG_INVALID. */
PTL_API int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event);
/* Waits until a counter has so many successes, or a failure. ARG_INVALID, ABORTED, INTERRUPTED. */
PTL_API int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event);
/* Waits for any of several counters of one interface. *which: index of the one that reached its
 * test. ARG_INVALID, CT_NONE_REACHED, ABORTED, INTERRUPTED. */
PTL_API int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
	ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which);
/* Gives a counter these values. ARG_INVALID. */
PTL_API int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct);
/* Adds to one half of a counter; the other half of the increment is 0. ARG_INVALID. */
PTL_API int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment);

/* Writes length bytes of a descriptor to the process target_id. ARG_INVALID. */
PTL_API int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data);
/* Reads length bytes into a descriptor. ARG_INVALID. */
PTL_API int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr);
/* Combines the data of a descriptor with the target's, element by element; operation: PTL_MIN to
 * PTL_BXOR. ARG_INVALID. */
PTL_API int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype);
/* The same, and what the target held before is written to another descriptor. ARG_INVALID. */
PTL_API int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
	ptl_datatype_t datatype);
/* Swaps, also on a condition: PTL_SWAP to PTL_MSWAP. operand: one element, read at the call.
 * ARG_INVALID. */
PTL_API int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
	ptl_op_t operation, ptl_datatype_t datatype);
/* Returns when this process may touch memory that atomic operations have changed. */
PTL_API int PtlAtomicSync(void);

/* The same operations, begun when successes and failures of trig_ct_handle have come to
 * threshold. ARG_INVALID, NO_SPACE. */
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
PTL_API int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_API int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);

/* Makes an event queue of at least count events. ARG_INVALID, NO_SPACE. */
PTL_API int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle);
/* Frees a queue; threads that wait for its events return PTL_INTERRUPTED. ARG_INVALID. */
PTL_API int PtlEQFree(ptl_handle_eq_t eq_handle);
/* Takes the next event of a queue. ARG_INVALID, EQ_EMPTY, EQ_DROPPED. */
PTL_API int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);
/* Waits for an event. ARG_INVALID, EQ_DROPPED, ABORTED, INTERRUPTED. */
PTL_API int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);
/* Waits for an event of any of several queues of one interface. *which: index of the queue that it
 * came from. ARG_INVALID, EQ_EMPTY, EQ_DROPPED, ABORTED, INTERRUPTED. */
PTL_API int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
	ptl_event_t *event, unsigned int *which);

/* Operations between these two may be held back until the second. ARG_INVALID. */
PTL_API int PtlStartBundle(ptl_handle_ni_t ni_handle);
PTL_API int PtlEndBundle(ptl_handle_ni_t ni_handle);

/* Not 0: both handles name the same object. */
PTL_API int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2);

#ifdef __cplusplus
}
#endif

#endif
