/* SPDX-License-Identifier: BSD-3-Clause */
/* mx_extensions.h - functions of MX in addition to those of myriexpress.h. Its introduction applies
 * to them, too. */
#ifndef MX_EXTENSIONS_H
#define MX_EXTENSIONS_H

#include <myriexpress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The unexpected handler's result for a message. */
enum mx_unexp_handler_action {
	MX_RECV_CONTINUE = 0, /* receives are searched again, then it is kept */
	MX_RECV_FINISHED = 1  /* it is gone, as if it had been received */
};
typedef enum mx_unexp_handler_action mx_unexp_handler_action_t;

/* The unexpected handler. It is called once for each message that matches no receive, in a thread
 * that is inside a function of MX on the endpoint. It gets the messages of each sender in the order
 * in which they were sent. It may post, cancel and forget requests, and disconnect; it must not
 * block. A receive that it posts takes this message or an older one, never a later one.
 *   context            as registered
 *   source             the sender
 *   length             bytes
 *   data_if_available  all bytes of the message, valid during the call; NULL: the data is still at
 *                      the sender, which happens only for messages of more than 1,024 bytes */
typedef mx_unexp_handler_action_t (*mx_unexp_handler_t)(void *context, mx_endpoint_addr_t source,
	uint64_t match_value, uint32_t length, void *data_if_available);

typedef void (*mx_matching_callback_t)(void *context, uint64_t match_value, int length);

/* Registers the endpoint's handler; NULL: none. */
MX_FUNCTION mx_return_t mx_register_unexp_handler(
	mx_endpoint_t endpoint, mx_unexp_handler_t handler, void *context);

/* An older function, which is not supported.
 * Returns
 *   MX_FAILURE  Always. */
MX_FUNCTION mx_return_t mx_register_unexp_callback(
	mx_endpoint_t endpoint, mx_matching_callback_t callback, void *context);

/* Calls the endpoint's unexpected handler for messages that wait for it. */
MX_FUNCTION mx_return_t mx_progress(mx_endpoint_t endpoint);

/* As mx_connect(), but does not block. The status has the peer's address as its source, and one of
 * SUCCESS, BAD_KEY, ENDPOINT_CLOSED, BAD_ENDPOINT, ENDPOINT_UNREACHABLE, TIMEOUT as its code.
 *   match_info  for mx_test_any()
 *   request     out, may be NULL
 * Returns
 *   MX_NIC_NOT_FOUND  nic_id is not a possible NIC id.
 *   MX_NO_RESOURCES   There is not enough memory. */
MX_FUNCTION mx_return_t mx_iconnect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t endpoint_id,
	uint32_t filter, uint64_t match_info, void *context, mx_request_t *request);

/* Disconnects from a peer. Pending requests with this peer end with MX_STATUS_ENDPOINT_UNREACHABLE.
 * Unexpected messages of the peer and its address context are discarded. Later messages of the peer
 * are refused until either side connects again. */
MX_FUNCTION mx_return_t mx_disconnect(mx_endpoint_t endpoint, mx_endpoint_addr_t addr);

/* Releases a request: it continues, but its completion is not reported.
 * Returns
 *   MX_BAD_REQUEST  *request is not a request of this endpoint. */
MX_FUNCTION mx_return_t mx_forget(mx_endpoint_t endpoint, mx_request_t *request);

/* Sets a timeout. After it, sends, connects and matched receives end with MX_STATUS_TIMEOUT.
 *   request       the request; NULL: all requests of the endpoint that are posted later
 *   milliseconds  MX_INFINITE: never
 * Returns
 *   MX_BAD_REQUEST  request is not a request of this endpoint. */
MX_FUNCTION mx_return_t mx_set_request_timeout(
	mx_endpoint_t endpoint, mx_request_t request, uint32_t milliseconds);

/* One-sided transfers, which are not supported.
 * Returns
 *   MX_FAILURE  Always. */
MX_FUNCTION mx_return_t mx_iput(mx_endpoint_t endpoint, void *local, uint32_t length,
	mx_endpoint_addr_t destination, uint64_t remote, void *context, mx_request_t *request);
MX_FUNCTION mx_return_t mx_iget(mx_endpoint_t endpoint, void *local, uint32_t length,
	mx_endpoint_addr_t destination, uint64_t remote, void *context, mx_request_t *request);

#ifdef __cplusplus
}
#endif

#endif
