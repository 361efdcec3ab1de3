/* SPDX-License-Identifier: BSD-3-Clause */
/* headers.cpp - portals.h and postern.h as a C++ program sees them: they compile, and every
 * function is C's. */
#include <portals.h>
#include <postern.h>
#include <type_traits>

#define SAME(function, ...)                                                                        \
	static_assert(std::is_same<decltype(function), __VA_ARGS__>::value, #function)

SAME(PtlInit, int(int *));
SAME(PtlFini, void());
SAME(PtlNIInit,
	int(ptl_interface_t, ptl_pid_t, ptl_ni_limits_t *, ptl_ni_limits_t *, ptl_handle_ni_t *));
SAME(PtlMDAttach, int(ptl_handle_me_t, ptl_md_t, ptl_unlink_t, ptl_unlink_t, ptl_handle_md_t *));
SAME(PtlEQWait, int(ptl_handle_eq_t, ptl_event_t *));
SAME(PtlPut, int(ptl_handle_md_t, ptl_ack_req_t, ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t,
		     ptl_match_bits_t, ptl_size_t, ptl_hdr_data_t));

int main()
{
	const ptl_handle_md_t none = PTL_MD_NONE;
	const ptl_handle_any_t any = none;
	const unsigned options = PTL_MD_OP_PUT | PTL_MD_OP_GET;
	ptl_event_t event = ptl_event_t();

	event.type = PTL_EVENT_ACK;
	return any == PTL_EQ_NONE && options == 3 && event.sequence == 0 ? 0 : 1;
}
