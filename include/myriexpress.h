/* SPDX-License-Identifier: BSD-3-Clause */
/* myriexpress.h - the MX message passing interface, version 1.2.
 *
 * Names, numbers and layouts are those of Myrinet Express, so that programs that were written or
 * compiled for it work. mx_extensions.h has more functions.
 *
 * Every function may be called from any thread. A function that returns mx_return_t returns
 * MX_NOT_INITIALIZED before mx_init() and after mx_finalize(), and in a child made by fork().
 * Every code but MX_SUCCESS first goes through the error handler (mx_set_error_handler()), which by
 * default ends the process. A function that fails changes nothing, except that a result named
 * `result` is 0 then.
 *
 * Where a function's codes are listed, MX_SUCCESS, MX_NOT_INITIALIZED and, for a bad endpoint,
 * MX_BAD_ENDPOINT are left out. Functions that block also return MX_BAD_BAD_BAD if the endpoint's
 * unexpected handler calls them. Only arguments that may be NULL, or for which a code is listed,
 * are checked for NULL.
 */
#ifndef MYRIEXPRESS_H
#define MYRIEXPRESS_H

#include <inttypes.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MX_FUNCTION __attribute__((visibility("default")))
#else
#define MX_FUNCTION
#endif

/* --- Constants */

#define MX_API             0x301 /* of these headers: major in the high bits, minor in the low 8 */
#define MX_HAS_ICONNECT_V2 1     /* mx_iconnect() takes match_info */

#define MX_ANY_NIC             0xffffffffU
#define MX_ANY_ENDPOINT        0xffffffffU
#define MX_INFINITE            0 /* as a timeout: for ever */
#define MX_MATCH_MASK_NONE     (~(uint64_t)0)
#define MX_MAX_SEGMENTS        256 /* of one message */
#define MX_SIZEOF_ADDR         16  /* bytes of an mx_endpoint_addr_t */
#define MX_MAX_HOSTNAME_LEN    80  /* bytes of "host:board" and its NUL */
#define MX_MAX_STR_LEN         128 /* bytes of a text of mx_get_info(), with its NUL */
#define MX_CONTEXT_ID_BITS_MAX 16

/* Halves of 64 bits, for printing. */
#define MX_U32(x) ((uint32_t)((uint64_t)(x) >> 32))
#define MX_L32(x) ((uint32_t)((uint64_t)(x)&0xffffffffU))

/* What a function returns. */
enum mx_return_code {
	MX_SUCCESS = 0,
	MX_BAD_BAD_BAD = 1, /* an error that has no code of its own */
	MX_FAILURE = 2,
	MX_ALREADY_INITIALIZED = 3,
	MX_NOT_INITIALIZED = 4,
	MX_NO_DEV = 5,
	MX_NO_DRIVER = 6,
	MX_NO_PERM = 7,
	MX_BOARD_UNKNOWN = 8,
	MX_BAD_ENDPOINT = 9,
	MX_BAD_SEG_LIST = 10,
	MX_BAD_SEG_MEM = 11,
	MX_BAD_SEG_CNT = 12,
	MX_BAD_REQUEST = 13,
	MX_BAD_MATCH_MASK = 14,
	MX_NO_RESOURCES = 15,
	MX_BAD_ADDR_LIST = 16,
	MX_BAD_ADDR_COUNT = 17,
	MX_BAD_ROOT = 18,
	MX_NOT_COMPLETED = 19,
	MX_BUSY = 20,
	MX_BAD_INFO_KEY = 21,
	MX_BAD_INFO_VAL = 22,
	MX_BAD_NIC = 23,
	MX_BAD_PARAM_LIST = 24,
	MX_BAD_PARAM_NAME = 25,
	MX_BAD_PARAM_VAL = 26,
	MX_BAD_HOSTNAME_ARGS = 27,
	MX_HOST_NOT_FOUND = 28,
	MX_REQUEST_PENDING = 29,
	MX_TIMEOUT = 30,
	MX_NO_MATCH = 31,
	MX_BAD_ENDPOINT_ID = 32,
	MX_CONNECTION_FAILED = 33,
	MX_BAD_CONNECTION_KEY = 34,
	MX_BAD_INFO_LENGTH = 35,
	MX_NIC_NOT_FOUND = 36,
	MX_BAD_KERNEL_VERSION = 37,
	MX_BAD_LIB_VERSION = 38,
	MX_NIC_DEAD = 39,
	MX_CANCEL_NOT_SUPPORTED = 40,
	MX_CLOSE_IN_HANDLER = 41,
	MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK = 42,
	MX_NOT_SUPPORTED_WITH_CONTEXT_ID = 43
};
typedef enum mx_return_code mx_return_t;

/* How a request has ended. */
enum mx_status_code {
	MX_STATUS_SUCCESS = 0,
	MX_STATUS_PENDING = 1,  /* never of a request that has ended */
	MX_STATUS_BUFFERED = 2, /* never of a request that has ended */
	MX_STATUS_REJECTED = 3, /* the peer's filter differs */
	MX_STATUS_TIMEOUT = 4,  /* the request's own time is over */
	MX_STATUS_TRUNCATED = 5,
	MX_STATUS_CANCELLED = 6,
	MX_STATUS_ENDPOINT_UNKNOWN = 7,     /* nobody has that NIC id */
	MX_STATUS_ENDPOINT_CLOSED = 8,      /* the peer has closed its endpoint, or is not there */
	MX_STATUS_ENDPOINT_UNREACHABLE = 9, /* the peer is silent, dead, or disconnected */
	MX_STATUS_BAD_SESSION = 10,         /* the address is of an earlier endpoint */
	MX_STATUS_BAD_KEY = 11,             /* of a connect: the filter differs */
	MX_STATUS_BAD_ENDPOINT = 12,        /* the peer cannot have that endpoint id */
	MX_STATUS_BAD_RDMAWIN = 13,         /* the sender has forgotten its long message */
	MX_STATUS_ABORTED = 14,             /* the peer has given the transfer up */
	MX_STATUS_EVENTQ_FULL = 15,         /* never given to programs */
	MX_STATUS_NO_RESOURCES = 16
};
typedef enum mx_status_code mx_status_code_t;

/* Keys of mx_get_info(). in: in_val; out: out_val. */
enum mx_get_info_key {
	MX_NIC_COUNT = 1,            /* out: uint32_t, boards of this host */
	MX_NIC_IDS = 2,              /* out: uint64_t for each board, then 0 */
	MX_MAX_NATIVE_ENDPOINTS = 3, /* out: uint32_t, endpoints of a process */
	MX_NATIVE_REQUESTS = 4,      /* out: uint32_t, 0xffffffff: no limit */
	MX_COUNTERS_COUNT = 5,       /* in: board. out: uint32_t */
	MX_COUNTERS_LABELS = 6,      /* in: board. out: MX_MAX_STR_LEN bytes each */
	MX_COUNTERS_VALUES = 7,      /* in: board. out: uint32_t each, in the labels' order */
	MX_PRODUCT_CODE = 8,         /* in: board. out: text */
	MX_PART_NUMBER = 9,          /* in: board. out: text */
	MX_SERIAL_NUMBER = 10,       /* in: board. out: uint32_t if it has 4 bytes, else text */
	MX_PORT_COUNT = 11,          /* in: board. out: uint32_t */
	MX_PIO_SEND_MAX = 12,        /* out: uint32_t, bytes that leave in one piece */
	MX_COPY_SEND_MAX = 13,       /* out: uint32_t, most bytes sent before a receive */
	MX_NUMA_NODE = 14,           /* in: board. out: uint32_t, 0xffffffff: unknown */
	MX_NET_TYPE = 15,            /* out: uint32_t, enum mx_net_type */
	MX_LINE_SPEED = 16           /* in: board. out: uint32_t, mx_line_speed_t */
};
typedef enum mx_get_info_key mx_get_info_key_t;
#define MX_HAS_NET_TYPE 1

typedef enum {
	MX_SPEED_2G = 0,
	MX_SPEED_10G = 1,
	MX_SPEED_OPEN_MX = 2 /* another speed */
} mx_line_speed_t;

enum mx_net_type { MX_NET_MYRI = 0, MX_NET_ETHER = 1 };

/* --- Types */

typedef struct mx_endpoint *mx_endpoint_t; /* never NULL while it is open */
typedef union mx_request *mx_request_t;    /* never NULL while it is pending or to be tested */

/* A peer, as one endpoint of this process knows it. Copied by value. */
typedef struct {
	uint64_t stuff[2];
} mx_endpoint_addr_t;

typedef void *mx_segment_ptr_t;
typedef struct {
	mx_segment_ptr_t segment_ptr;
	uint32_t segment_length; /* bytes */
} mx_segment_t;

/* text: one line about the error, without the name of the code. The function of MX that failed
 * returns what the handler returns. */
typedef mx_return_t (*mx_error_handler_t)(char *text, mx_return_t code);

enum mx_param_key {
	MX_PARAM_ERROR_HANDLER = 0,   /* val.error_handler, of this endpoint */
	MX_PARAM_UNEXP_QUEUE_MAX = 1, /* val.unexp_queue_max: bytes of unexpected messages */
	MX_PARAM_CONTEXT_ID = 2       /* val.context_id */
};
typedef enum mx_param_key mx_param_key_t;

typedef struct {
	mx_param_key_t key;
	union {
		mx_error_handler_t error_handler;
		uint32_t unexp_queue_max;
		/* `bits` bits of match values, from bit `shift` on, are a context: each context
		 * has queues of its own */
		struct {
			uint8_t bits;
			uint8_t shift;
		} context_id;
	} val;
} mx_param_t;

typedef struct mx_status {
	mx_status_code_t code;
	mx_endpoint_addr_t source; /* a receive's sender; otherwise the peer */
	uint64_t match_info;       /* a receive: as sent; otherwise as given to the call */
	uint32_t msg_length;       /* bytes, as sent */
	uint32_t xfer_length;      /* bytes that were delivered */
	void *context;             /* as given to the call; NULL for a probe */
} mx_status_t;

/* --- Library */

/* Starts the library. Programs call it by the macro mx_init(), before all functions but
 * mx_set_error_handler(), mx_strerror() and mx_strstatus().
 *   api  MX_API of the headers that the program was compiled with
 * Returns
 *   MX_ALREADY_INITIALIZED  It was called before; nothing changes.
 *   MX_BAD_LIB_VERSION      api is of another major version.
 *   MX_BAD_BAD_BAD          A setting in the environment is wrong, or this process was made by
 *                           fork(); a line on stderr says which. */
MX_FUNCTION mx_return_t mx__init_api(int api);
#define mx_init() mx__init_api(MX_API)

/* Closes all endpoints and the library. Afterwards mx_init() may be called again.
 * Returns
 *   MX_CLOSE_IN_HANDLER  An unexpected handler made the call; nothing is closed. */
MX_FUNCTION mx_return_t mx_finalize(void);

/* Gets the meaning of a code.
 * Returns a text, also for a code that does not exist. The text is static. */
MX_FUNCTION const char *mx_strerror(mx_return_t code);
MX_FUNCTION const char *mx_strstatus(mx_status_code_t code);

/* MX_ERRORS_ARE_FATAL prints a line on stderr and ends the process with status 255, and is the
 * default unless the environment has MX_ERRORS_ARE_FATAL=0; MX_ERRORS_RETURN does nothing. */
MX_FUNCTION extern const mx_error_handler_t MX_ERRORS_ARE_FATAL;
MX_FUNCTION extern const mx_error_handler_t MX_ERRORS_RETURN;

/* Sets the handler for errors that belong to no endpoint, or to one without its own handler. NULL
 * is MX_ERRORS_RETURN if the variable MX_ERRORS_ARE_FATAL is 0, and MX_ERRORS_ARE_FATAL otherwise.
 * Returns the previous handler. */
MX_FUNCTION mx_error_handler_t mx_set_error_handler(mx_error_handler_t handler);

/* Gets a piece of information on the library or a board (enum mx_get_info_key).
 *   endpoint  the endpoint whose board is meant if in_val is NULL; may be NULL
 *   in_val    the number of a board (uint32_t), if the key needs one; in_len bytes
 *   out_val   out, out_len bytes
 * Returns
 *   MX_BAD_INFO_KEY     The key does not exist.
 *   MX_BAD_INFO_VAL     out_val is NULL.
 *   MX_BAD_INFO_LENGTH  out_len is too small, or in_len is not the size of a board's number.
 *   MX_BOARD_UNKNOWN    There is no such board, or in_val and endpoint are both NULL.
 *   MX_NO_DRIVER        The board cannot be used; a line on stderr says why.
 *   MX_NO_RESOURCES     There is not enough memory for the board. */
MX_FUNCTION mx_return_t mx_get_info(mx_endpoint_t endpoint, mx_get_info_key_t key, void *in_val,
	uint32_t in_len, void *out_val, uint32_t out_len);

/* --- Endpoints */

/* Opens an endpoint.
 *   board_number   a board of this host, from 0; MX_ANY_NIC: any board with a free endpoint
 *   endpoint_id    below 1,024; MX_ANY_ENDPOINT: the lowest free one
 *   filter         peers that connect must give the same number
 *   params         an array of params_count parameters; may be NULL if params_count is 0
 *   endpoint       out
 * Returns
 *   MX_BOARD_UNKNOWN   There is no such board.
 *   MX_BAD_ENDPOINT    endpoint_id is too large, or endpoint is NULL.
 *   MX_BUSY            An endpoint with this id is open on the board, in this process or another.
 *   MX_BAD_PARAM_LIST  params is NULL, and params_count is not 0.
 *   MX_BAD_PARAM_NAME  The key of a parameter is unknown.
 *   MX_BAD_PARAM_VAL   context_id has more than MX_CONTEXT_ID_BITS_MAX bits, or ends beyond bit 63.
 *   MX_NO_RESOURCES    There is not enough memory, or the process has 32 endpoints.
 *   MX_NO_DRIVER       The board cannot be used; a line on stderr says why. */
MX_FUNCTION mx_return_t mx_open_endpoint(uint32_t board_number, uint32_t endpoint_id,
	uint32_t filter, mx_param_t *params, uint32_t params_count, mx_endpoint_t *endpoint);

/* Closes an endpoint. Pending requests end without a completion. Threads that are blocked on it
 * return as after mx_wakeup(). Sends that are complete for the program are still delivered: the
 * call waits until peers have acknowledged them. It gives up when no peer has acknowledged any for
 * PTL_PEER_TIMEOUT, and warns of messages that may not have arrived. SIGTERM and SIGINT, unless
 * they are ignored, end the wait and then take effect. Afterwards the id can be opened again.
 * Returns
 *   MX_CLOSE_IN_HANDLER  The endpoint's unexpected handler made the call. */
MX_FUNCTION mx_return_t mx_close_endpoint(mx_endpoint_t endpoint);

/* Wakes every thread that is blocked on the endpoint. Its call returns with result 0; mx_connect()
 * returns MX_TIMEOUT. Requests stay pending. */
MX_FUNCTION mx_return_t mx_wakeup(mx_endpoint_t endpoint);

/* Disable and enable the unexpected handler of the endpoint: between the first call and the second
 * it runs in no thread. The first call waits until a handler that runs in another thread has
 * returned. Transfers continue. A second call of the same function does nothing. */
MX_FUNCTION mx_return_t mx_disable_progression(mx_endpoint_t endpoint);
MX_FUNCTION mx_return_t mx_reenable_progression(mx_endpoint_t endpoint);

/* --- Names and addresses */

/* Gets the NIC id of "host:board", or of board 0 of "host". The call may ask the system's resolver,
 * or the network of each board for at most a second.
 * Returns
 *   MX_BAD_HOSTNAME_ARGS  An argument is NULL.
 *   MX_HOST_NOT_FOUND     No host has that name. */
MX_FUNCTION mx_return_t mx_hostname_to_nic_id(char *hostname, uint64_t *nic_id);

/* Gets the name of a NIC, such as "alpha:0", in the form that mx_hostname_to_nic_id() accepts.
 *   hostname  out, MX_MAX_HOSTNAME_LEN bytes
 * Returns
 *   MX_BAD_HOSTNAME_ARGS  hostname is NULL.
 *   MX_HOST_NOT_FOUND     No source of names, such as PTL_MX_HOSTS, knows that NIC. */
MX_FUNCTION mx_return_t mx_nic_id_to_hostname(uint64_t nic_id, char *hostname);

/* Convert between a board of this host and its NIC id.
 * Returns
 *   MX_BOARD_UNKNOWN  This host has no such board.
 *   MX_BAD_INFO_VAL   The address for the result is NULL.
 *   MX_NO_DRIVER      The board cannot be used; a line on stderr says why.
 *   MX_NO_RESOURCES   There is not enough memory for the board. */
MX_FUNCTION mx_return_t mx_board_number_to_nic_id(uint32_t board_number, uint64_t *nic_id);
MX_FUNCTION mx_return_t mx_nic_id_to_board_number(uint64_t nic_id, uint32_t *board_number);

/* Gets the endpoint's own address. An endpoint can send messages to this address, too. */
MX_FUNCTION mx_return_t mx_get_endpoint_addr(mx_endpoint_t endpoint, mx_endpoint_addr_t *addr);

/* Gets the NIC id and endpoint id of an address, and zeros for an invalid address. The second
 * function also returns the session, a number that changes each time the peer opens its endpoint.
 * Results may be NULL. */
MX_FUNCTION mx_return_t mx_decompose_endpoint_addr(
	mx_endpoint_addr_t addr, uint64_t *nic_id, uint32_t *endpoint_id);
MX_FUNCTION mx_return_t mx_decompose_endpoint_addr2(
	mx_endpoint_addr_t addr, uint64_t *nic_id, uint32_t *endpoint_id, uint32_t *session_id);

/* Set and return a pointer that the program keeps for a peer. All addresses of that peer at one
 * endpoint have the same pointer, also after the peer's restart, until mx_disconnect(). An invalid
 * address has none. get: *context is NULL if none was set. */
MX_FUNCTION mx_return_t mx_set_endpoint_addr_context(mx_endpoint_addr_t addr, void *context);
MX_FUNCTION mx_return_t mx_get_endpoint_addr_context(mx_endpoint_addr_t addr, void **context);

/* Connects to a peer, and blocks until the peer's address is known.
 *   filter   the peer's
 *   timeout  milliseconds; MX_INFINITE: for a minute. A peer that is considered dead ends it
 *            earlier
 *   addr     out
 * The peer answers within about 50 ms even if its program makes no calls; with PTL_PROGRESS=inline
 * it answers only during calls.
 * Returns
 *   MX_NIC_NOT_FOUND       nic_id is not a possible NIC id.
 *   MX_BAD_ENDPOINT_ID     endpoint_id is not a possible endpoint id of the peer.
 *   MX_CONNECTION_FAILED   The peer is on this host and has no such endpoint open, or it has
 *                          reported that it closed the endpoint, or the endpoint belongs to another
 *                          user.
 *   MX_BAD_CONNECTION_KEY  The peer's filter differs.
 *   MX_TIMEOUT             No answer came in time, or mx_wakeup() was called.
 *   MX_NO_RESOURCES        There is not enough memory. */
MX_FUNCTION mx_return_t mx_connect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t endpoint_id,
	uint32_t filter, uint32_t timeout, mx_endpoint_addr_t *addr);

/* --- Messages
 *
 * segments_list, segments_count: pieces of memory, in their order; the list is read during the call
 * only. Pieces without bytes are ignored. A request is released once: by the function that returns
 * its status, by mx_cancel() with result 1, or by mx_forget(); then *request is NULL. If request is
 * NULL, the effect is that of mx_forget() at once.
 *
 * MX_BAD_SEG_LIST  segments_list is NULL, and segments_count is not 0.
 * MX_BAD_SEG_CNT   segments_count is beyond MX_MAX_SEGMENTS.
 * MX_BAD_SEG_MEM   The pieces have 2^32 bytes or more in all, or a piece with bytes is at NULL.
 * MX_NO_RESOURCES  There is not enough memory.
 */

/* Sends a message. The request completes when the memory may be changed: at once for
 * MX_COPY_SEND_MAX bytes or fewer, otherwise when the receiver has the data.
 *   destination  an address that belongs to this endpoint
 *   match_info   the bits by which receives match the message
 *   context      returned in the status
 *   request      out, may be NULL
 * Returns
 *   the codes above */
MX_FUNCTION mx_return_t mx_isend(mx_endpoint_t endpoint, mx_segment_t *segments_list,
	uint32_t segments_count, mx_endpoint_addr_t destination, uint64_t match_info, void *context,
	mx_request_t *request);

/* The same, but the request completes when a receive of the peer has matched the message, or the
 * peer's unexpected handler has consumed it. */
MX_FUNCTION mx_return_t mx_issend(mx_endpoint_t endpoint, mx_segment_t *segments_list,
	uint32_t segments_count, mx_endpoint_addr_t destination, uint64_t match_info, void *context,
	mx_request_t *request);

/* Receives the oldest unexpected message whose match_info & match_mask equals match_info. If there
 * is none, the request waits for such a message; receives that began earlier come first. If the
 * message is longer than the memory, the rest is dropped and the status is MX_STATUS_TRUNCATED.
 * Returns
 *   MX_BAD_MATCH_MASK                    match_info has a bit that is not in match_mask.
 *   MX_BAD_MATCHING_FOR_CONTEXT_ID_MASK  match_mask does not have all bits of the context id.
 *   the codes above */
MX_FUNCTION mx_return_t mx_irecv(mx_endpoint_t endpoint, mx_segment_t *segments_list,
	uint32_t segments_count, uint64_t match_info, uint64_t match_mask, void *context,
	mx_request_t *request);

/* Cancels a receive or a connect.
 *   result  out. 1: it is cancelled: it has matched nothing and never will. 0: it is too late to
 *           cancel it
 * Returns
 *   MX_BAD_REQUEST           *request is not a request of this endpoint.
 *   MX_CANCEL_NOT_SUPPORTED  The request is a send. */
MX_FUNCTION mx_return_t mx_cancel(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result);

/* Checks whether the memory of a send may be changed.
 *   result  out. 1: yes
 * Returns
 *   MX_BAD_REQUEST  *request is not a send of this endpoint. */
MX_FUNCTION mx_return_t mx_ibuffered(
	mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result);

/* The same, but blocks until the memory may be changed, for at most timeout milliseconds. */
MX_FUNCTION mx_return_t mx_buffered(
	mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout, uint32_t *result);

/* Gets the context that a request was posted with.
 * Returns
 *   MX_BAD_REQUEST  *request is not a request. */
MX_FUNCTION mx_return_t mx_context(mx_request_t *request, void **context);

/* --- Completion
 *
 * timeout is in milliseconds; MX_INFINITE means no limit. A blocking function returns MX_SUCCESS
 * with result 0 if the timeout has passed, or if mx_wakeup() is called.
 *
 * MX_BAD_REQUEST     *request is not a request of this endpoint.
 * MX_BAD_MATCH_MASK  match_info has a bit that is not in match_mask.
 */

/* Checks whether a request is complete.
 *   status  out, if the request is complete; may be NULL
 *   result  out: 1 if the request is complete, and has been released; otherwise 0 */
MX_FUNCTION mx_return_t mx_test(
	mx_endpoint_t endpoint, mx_request_t *request, mx_status_t *status, uint32_t *result);
/* The same, but blocks until the request is complete. */
MX_FUNCTION mx_return_t mx_wait(mx_endpoint_t endpoint, mx_request_t *request, uint32_t timeout,
	mx_status_t *status, uint32_t *result);

/* Gets the status of the request that completed first among those whose match_info & match_mask
 * equals match_info, and releases it. */
MX_FUNCTION mx_return_t mx_test_any(mx_endpoint_t endpoint, uint64_t match_info,
	uint64_t match_mask, mx_status_t *status, uint32_t *result);
/* The same, but blocks until there is such a request. */
MX_FUNCTION mx_return_t mx_wait_any(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info,
	uint64_t match_mask, mx_status_t *status, uint32_t *result);

/* Gets the request that completed first. It is not released: mx_test() does that.
 *   request  out, if there is one
 *   result   out: 1 if there is such a request, otherwise 0 */
MX_FUNCTION mx_return_t mx_ipeek(mx_endpoint_t endpoint, mx_request_t *request, uint32_t *result);
/* The same, but blocks until a request is complete. */
MX_FUNCTION mx_return_t mx_peek(
	mx_endpoint_t endpoint, uint32_t timeout, mx_request_t *request, uint32_t *result);

/* Gets the oldest unexpected message that mx_irecv() with the same arguments would take.
 *   status  out, if there is one
 *   result  out. 1: there is one */
MX_FUNCTION mx_return_t mx_iprobe(mx_endpoint_t endpoint, uint64_t match_info, uint64_t match_mask,
	mx_status_t *status, uint32_t *result);
/* The same, but blocks until there is such a message. */
MX_FUNCTION mx_return_t mx_probe(mx_endpoint_t endpoint, uint32_t timeout, uint64_t match_info,
	uint64_t match_mask, mx_status_t *status, uint32_t *result);

#ifdef __cplusplus
}
#endif

#endif
