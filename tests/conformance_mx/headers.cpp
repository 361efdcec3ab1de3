/* SPDX-License-Identifier: BSD-3-Clause */
/* headers.cpp - the headers of MX as a C++ program sees them: they compile, their layout is C's, and
 * every function is C's, with these arguments. */
#include "layout.h"

#include <type_traits>

#define SAME(function, ...)                                                                        \
	static_assert(std::is_same<decltype(function), __VA_ARGS__>::value, #function)

typedef mx_return_t post_t(mx_endpoint_t, mx_segment_t *, uint32_t, mx_endpoint_addr_t, uint64_t,
	void *, mx_request_t *);
typedef mx_return_t one_sided_t(mx_endpoint_t, void *, uint32_t, mx_endpoint_addr_t, uint64_t,
	void *, mx_request_t *);
typedef mx_return_t ask_t(mx_endpoint_t, mx_request_t *, uint32_t *);
typedef mx_return_t on_endpoint_t(mx_endpoint_t);

SAME(mx__init_api, mx_return_t(int));
SAME(mx_finalize, mx_return_t());
SAME(mx_strerror, const char *(mx_return_t));
SAME(mx_strstatus, const char *(mx_status_code_t));
SAME(MX_ERRORS_ARE_FATAL, const mx_error_handler_t);
SAME(MX_ERRORS_RETURN, const mx_error_handler_t);
SAME(mx_set_error_handler, mx_error_handler_t(mx_error_handler_t));
SAME(mx_get_info,
	mx_return_t(mx_endpoint_t, mx_get_info_key_t, void *, uint32_t, void *, uint32_t));
SAME(mx_open_endpoint,
	mx_return_t(uint32_t, uint32_t, uint32_t, mx_param_t *, uint32_t, mx_endpoint_t *));
SAME(mx_close_endpoint, on_endpoint_t);
SAME(mx_wakeup, on_endpoint_t);
SAME(mx_disable_progression, on_endpoint_t);
SAME(mx_reenable_progression, on_endpoint_t);
SAME(mx_hostname_to_nic_id, mx_return_t(char *, uint64_t *));
SAME(mx_nic_id_to_hostname, mx_return_t(uint64_t, char *));
SAME(mx_board_number_to_nic_id, mx_return_t(uint32_t, uint64_t *));
SAME(mx_nic_id_to_board_number, mx_return_t(uint64_t, uint32_t *));
SAME(mx_get_endpoint_addr, mx_return_t(mx_endpoint_t, mx_endpoint_addr_t *));
SAME(mx_decompose_endpoint_addr, mx_return_t(mx_endpoint_addr_t, uint64_t *, uint32_t *));
SAME(mx_decompose_endpoint_addr2,
	mx_return_t(mx_endpoint_addr_t, uint64_t *, uint32_t *, uint32_t *));
SAME(mx_set_endpoint_addr_context, mx_return_t(mx_endpoint_addr_t, void *));
SAME(mx_get_endpoint_addr_context, mx_return_t(mx_endpoint_addr_t, void **));
SAME(mx_connect, mx_return_t(mx_endpoint_t, uint64_t, uint32_t, uint32_t, uint32_t,
			 mx_endpoint_addr_t *));
SAME(mx_isend, post_t);
SAME(mx_issend, post_t);
SAME(mx_irecv, mx_return_t(mx_endpoint_t, mx_segment_t *, uint32_t, uint64_t, uint64_t, void *,
		       mx_request_t *));
SAME(mx_cancel, ask_t);
SAME(mx_ibuffered, ask_t);
SAME(mx_buffered, mx_return_t(mx_endpoint_t, mx_request_t *, uint32_t, uint32_t *));
SAME(mx_context, mx_return_t(mx_request_t *, void **));
SAME(mx_test, mx_return_t(mx_endpoint_t, mx_request_t *, mx_status_t *, uint32_t *));
SAME(mx_wait, mx_return_t(mx_endpoint_t, mx_request_t *, uint32_t, mx_status_t *, uint32_t *));
SAME(mx_test_any, mx_return_t(mx_endpoint_t, uint64_t, uint64_t, mx_status_t *, uint32_t *));
SAME(mx_wait_any,
	mx_return_t(mx_endpoint_t, uint32_t, uint64_t, uint64_t, mx_status_t *, uint32_t *));
SAME(mx_ipeek, ask_t);
SAME(mx_peek, mx_return_t(mx_endpoint_t, uint32_t, mx_request_t *, uint32_t *));
SAME(mx_iprobe, mx_return_t(mx_endpoint_t, uint64_t, uint64_t, mx_status_t *, uint32_t *));
SAME(mx_probe,
	mx_return_t(mx_endpoint_t, uint32_t, uint64_t, uint64_t, mx_status_t *, uint32_t *));
static_assert(std::is_same<mx_unexp_handler_t,
		      mx_unexp_handler_action_t (*)(
			      void *, mx_endpoint_addr_t, uint64_t, uint32_t, void *)>::value,
	"mx_unexp_handler_t");
SAME(mx_register_unexp_handler, mx_return_t(mx_endpoint_t, mx_unexp_handler_t, void *));
SAME(mx_register_unexp_callback, mx_return_t(mx_endpoint_t, mx_matching_callback_t, void *));
SAME(mx_progress, on_endpoint_t);
SAME(mx_iconnect, mx_return_t(mx_endpoint_t, uint64_t, uint32_t, uint32_t, uint64_t, void *,
			  mx_request_t *));
SAME(mx_disconnect, mx_return_t(mx_endpoint_t, mx_endpoint_addr_t));
SAME(mx_forget, mx_return_t(mx_endpoint_t, mx_request_t *));
SAME(mx_set_request_timeout, mx_return_t(mx_endpoint_t, mx_request_t, uint32_t));
SAME(mx_iput, one_sided_t);
SAME(mx_iget, one_sided_t);
SAME(mx_open_board, mx_return_t(int, mx_endpt_handle_t *));
SAME(mx__get_mapper_state, mx_return_t(mx_endpt_handle_t, mx_mapper_state_t *));
SAME(mx__regcache_clean, int(void *, size_t));

int main()
{
	return MX_SUCCESS;
}
