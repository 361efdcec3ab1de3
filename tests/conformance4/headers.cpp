/* SPDX-License-Identifier: BSD-3-Clause */
/* headers.cpp - portals4.h as a C++ program sees it: it compiles, its layout is C's, and every
 * function is C's. */
#include "layout.h"

#include <type_traits>

#define SAME(function, ...)                                                                        \
	static_assert(std::is_same<decltype(function), __VA_ARGS__>::value, #function)

SAME(PtlInit, int());
SAME(PtlFini, void());
SAME(PtlNIInit, int(ptl_interface_t, unsigned, ptl_pid_t, const ptl_ni_limits_t *,
			ptl_ni_limits_t *, ptl_handle_ni_t *));
SAME(PtlPut, int(ptl_handle_md_t, ptl_size_t, ptl_size_t, ptl_ack_req_t, ptl_process_t,
		     ptl_pt_index_t, ptl_match_bits_t, ptl_size_t, void *, ptl_hdr_data_t));
SAME(PtlEQPoll, int(const ptl_handle_eq_t *, unsigned, ptl_time_t, ptl_event_t *, unsigned *));

int main()
{
	ptl_event_t event = ptl_event_t();

	switch (event.type) {
	case PTL_EVENT_GET:
		return 0;
	case PTL_EVENT_PUT:
	default:
		return 1;
	}
}
