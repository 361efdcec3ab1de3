/* SPDX-License-Identifier: BSD-3-Clause */
/* test_interface.c - portals.h says what the specification says: every name, type, member,
 * prototype and constant (sections 3.2 to 3.10). Most of it is checked by the compiler; what runs
 * is that no two codes are the same. */
#include "fixture.h"

#define IS(type, expression) _Generic((expression), type : 1, default : 0)
#define TYPE_IS(type, is)    static_assert(IS(is, (type)0), #type " is " #is)
/* The address keeps qualifiers and stops promotions. */
#define MEMBER_IS(structure, member, is)                                                           \
	static_assert(IS(is *, &((structure *)0)->member), #structure "." #member " is " #is)
#define FOLLOWS(structure, first, second)                                                          \
	static_assert(offsetof(structure, first) < offsetof(structure, second),                    \
		#second " follows " #first)
#define FUNCTION(name, result, ...)                                                                \
	static_assert(IS(result(*)(__VA_ARGS__), &name), #name " has the specification's "         \
							       "prototype")

#define static_assert _Static_assert

/* 3.2: base types */
TYPE_IS(ptl_size_t, uint64_t);
TYPE_IS(ptl_match_bits_t, uint64_t);
TYPE_IS(ptl_hdr_data_t, uint64_t);
TYPE_IS(ptl_handle_ni_t, ptl_handle_any_t);
TYPE_IS(ptl_handle_eq_t, ptl_handle_any_t);
TYPE_IS(ptl_handle_md_t, ptl_handle_any_t);
TYPE_IS(ptl_handle_me_t, ptl_handle_any_t);
static_assert((ptl_sr_value_t)-1 < 0, "status register values are signed");
static_assert(sizeof(ptl_sr_value_t) >= 4, "status register values have 32 bits or more");
static_assert((ptl_pt_index_t)0.5 == 0, "Portal indexes are integers");
static_assert((ptl_ac_index_t)0.5 == 0, "access control indexes are integers");
static_assert((ptl_interface_t)0.5 == 0, "interfaces are integers");
static_assert((ptl_nid_t)0.5 == 0, "node ids are integers");
static_assert((ptl_pid_t)0.5 == 0, "process ids are integers");
static_assert((ptl_uid_t)0.5 == 0, "user ids are integers");
static_assert((ptl_sr_index_t)0.5 == 0, "status register indexes are integers");
static_assert((ptl_seq_t)0.5 == 0, "event sequence numbers are integers");

/* 3.4 to 3.8: structures */
MEMBER_IS(ptl_process_id_t, nid, ptl_nid_t);
MEMBER_IS(ptl_process_id_t, pid, ptl_pid_t);
FOLLOWS(ptl_process_id_t, nid, pid);

MEMBER_IS(ptl_ni_limits_t, max_match_entries, int);
MEMBER_IS(ptl_ni_limits_t, max_mem_descriptors, int);
MEMBER_IS(ptl_ni_limits_t, max_event_queues, int);
MEMBER_IS(ptl_ni_limits_t, max_atable_index, ptl_ac_index_t);
MEMBER_IS(ptl_ni_limits_t, max_ptable_index, ptl_pt_index_t);
FOLLOWS(ptl_ni_limits_t, max_match_entries, max_mem_descriptors);
FOLLOWS(ptl_ni_limits_t, max_mem_descriptors, max_event_queues);
FOLLOWS(ptl_ni_limits_t, max_event_queues, max_atable_index);
FOLLOWS(ptl_ni_limits_t, max_atable_index, max_ptable_index);

MEMBER_IS(ptl_md_t, start, void *);
MEMBER_IS(ptl_md_t, length, ptl_size_t);
MEMBER_IS(ptl_md_t, threshold, int);
MEMBER_IS(ptl_md_t, max_offset, unsigned int);
MEMBER_IS(ptl_md_t, options, unsigned int);
MEMBER_IS(ptl_md_t, user_ptr, void *);
MEMBER_IS(ptl_md_t, eventq, ptl_handle_eq_t);
FOLLOWS(ptl_md_t, start, length);
FOLLOWS(ptl_md_t, length, threshold);
FOLLOWS(ptl_md_t, threshold, max_offset);
FOLLOWS(ptl_md_t, max_offset, options);
FOLLOWS(ptl_md_t, options, user_ptr);
FOLLOWS(ptl_md_t, user_ptr, eventq);

MEMBER_IS(ptl_event_t, type, ptl_event_kind_t);
MEMBER_IS(ptl_event_t, initiator, ptl_process_id_t);
MEMBER_IS(ptl_event_t, uid, ptl_uid_t);
MEMBER_IS(ptl_event_t, portal, ptl_pt_index_t);
MEMBER_IS(ptl_event_t, match_bits, ptl_match_bits_t);
MEMBER_IS(ptl_event_t, rlength, ptl_size_t);
MEMBER_IS(ptl_event_t, mlength, ptl_size_t);
MEMBER_IS(ptl_event_t, offset, ptl_size_t);
MEMBER_IS(ptl_event_t, md_handle, ptl_handle_md_t);
MEMBER_IS(ptl_event_t, mem_desc, ptl_md_t);
MEMBER_IS(ptl_event_t, hdr_data, ptl_hdr_data_t);
MEMBER_IS(ptl_event_t, link, ptl_seq_t);
MEMBER_IS(ptl_event_t, ni_fail_type, ptl_ni_fail_t);
MEMBER_IS(ptl_event_t, sequence, volatile ptl_seq_t);
FOLLOWS(ptl_event_t, type, initiator);
FOLLOWS(ptl_event_t, initiator, uid);
FOLLOWS(ptl_event_t, uid, portal);
FOLLOWS(ptl_event_t, portal, match_bits);
FOLLOWS(ptl_event_t, match_bits, rlength);
FOLLOWS(ptl_event_t, rlength, mlength);
FOLLOWS(ptl_event_t, mlength, offset);
FOLLOWS(ptl_event_t, offset, md_handle);
FOLLOWS(ptl_event_t, md_handle, mem_desc);
FOLLOWS(ptl_event_t, mem_desc, hdr_data);
FOLLOWS(ptl_event_t, hdr_data, link);
FOLLOWS(ptl_event_t, link, ni_fail_type);
FOLLOWS(ptl_event_t, ni_fail_type, sequence);

/* 3.3 to 3.10: functions */
FUNCTION(PtlInit, int, int *);
FUNCTION(PtlFini, void, void);
FUNCTION(PtlNIInit, int, ptl_interface_t, ptl_pid_t, ptl_ni_limits_t *, ptl_ni_limits_t *,
	ptl_handle_ni_t *);
FUNCTION(PtlNIFini, int, ptl_handle_ni_t);
FUNCTION(PtlNIStatus, int, ptl_handle_ni_t, ptl_sr_index_t, ptl_sr_value_t *);
FUNCTION(PtlNIDist, int, ptl_handle_ni_t, ptl_process_id_t, unsigned long *);
FUNCTION(PtlNIHandle, int, ptl_handle_any_t, ptl_handle_ni_t *);
FUNCTION(PtlGetUid, int, ptl_handle_ni_t, ptl_uid_t *);
FUNCTION(PtlGetId, int, ptl_handle_ni_t, ptl_process_id_t *);
FUNCTION(PtlMEAttach, int, ptl_handle_ni_t, ptl_pt_index_t, ptl_process_id_t, ptl_match_bits_t,
	ptl_match_bits_t, ptl_unlink_t, ptl_ins_pos_t, ptl_handle_me_t *);
FUNCTION(PtlMEAttachAny, int, ptl_handle_ni_t, ptl_pt_index_t *, ptl_process_id_t, ptl_match_bits_t,
	ptl_match_bits_t, ptl_unlink_t, ptl_handle_me_t *);
FUNCTION(PtlMEInsert, int, ptl_handle_me_t, ptl_process_id_t, ptl_match_bits_t, ptl_match_bits_t,
	ptl_unlink_t, ptl_ins_pos_t, ptl_handle_me_t *);
FUNCTION(PtlMEUnlink, int, ptl_handle_me_t);
FUNCTION(
	PtlMDAttach, int, ptl_handle_me_t, ptl_md_t, ptl_unlink_t, ptl_unlink_t, ptl_handle_md_t *);
FUNCTION(PtlMDBind, int, ptl_handle_ni_t, ptl_md_t, ptl_handle_md_t *);
FUNCTION(PtlMDUnlink, int, ptl_handle_md_t);
FUNCTION(PtlMDUpdate, int, ptl_handle_md_t, ptl_md_t *, ptl_md_t *, ptl_handle_eq_t);
FUNCTION(PtlEQAlloc, int, ptl_handle_ni_t, ptl_size_t, ptl_handle_eq_t *);
FUNCTION(PtlEQFree, int, ptl_handle_eq_t);
FUNCTION(PtlEQGet, int, ptl_handle_eq_t, ptl_event_t *);
FUNCTION(PtlEQWait, int, ptl_handle_eq_t, ptl_event_t *);
FUNCTION(PtlACEntry, int, ptl_handle_ni_t, ptl_ac_index_t, ptl_process_id_t, ptl_uid_t,
	ptl_pt_index_t);
FUNCTION(PtlPut, int, ptl_handle_md_t, ptl_ack_req_t, ptl_process_id_t, ptl_pt_index_t,
	ptl_ac_index_t, ptl_match_bits_t, ptl_size_t, ptl_hdr_data_t);
FUNCTION(PtlGet, int, ptl_handle_md_t, ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t,
	ptl_match_bits_t, ptl_size_t);

/* Constants */
static_assert(PTL_OK == 0, "success is 0");
static_assert(PTL_NI_OK == 0, "no failure is 0");
static_assert(PTL_INV_REG == PTL_INV_SR_INDX, "two names for one code");
static_assert(PTL_RETAIN != PTL_UNLINK, "unlink differs from retain");
static_assert(PTL_INS_BEFORE != PTL_INS_AFTER, "before differs from after");
static_assert(PTL_ACK_REQ != PTL_NOACK_REQ, "a request differs from none");
static_assert(PTL_MD_THRESH_INF < 0, "no number of operations is taken for infinity");
static_assert(PTL_EQ_NONE != PTL_INVALID_HANDLE, "no queue is no mistake");

static void return_codes__are_all_different(void **state)
{
	const int codes[] = {PTL_OK, PTL_FAIL, PTL_NOINIT, PTL_NOSPACE, PTL_SEGV, PTL_INIT_DUP,
		PTL_INIT_INV, PTL_INV_NI, PTL_INV_EQ, PTL_INV_MD, PTL_INV_ME, PTL_INV_HANDLE,
		PTL_INV_PROC, PTL_INV_PTINDEX, PTL_INV_SR_INDX, PTL_INV_ASIZE, PTL_AC_INV_INDEX,
		PTL_PT_INV_INDEX, PTL_PT_FULL, PTL_ML_TOOLONG, PTL_INUSE, PTL_MD_INUSE, PTL_ILL_MD,
		PTL_NOUPDATE, PTL_EQ_EMPTY, PTL_EQ_DROPPED};

	(void)state;
	for (size_t i = 0; i < COUNT(codes); i++)
		for (size_t j = i + 1; j < COUNT(codes); j++)
			assert_int_not_equal(codes[i], codes[j]);
}

static void event_kinds__are_fourteen_and_all_different(void **state)
{
	const ptl_event_kind_t kinds[] = {PTL_EVENT_GET_START, PTL_EVENT_GET_END,
		PTL_EVENT_GET_FAIL, PTL_EVENT_PUT_START, PTL_EVENT_PUT_END, PTL_EVENT_PUT_FAIL,
		PTL_EVENT_REPLY_START, PTL_EVENT_REPLY_END, PTL_EVENT_REPLY_FAIL,
		PTL_EVENT_SEND_START, PTL_EVENT_SEND_END, PTL_EVENT_SEND_FAIL, PTL_EVENT_ACK,
		PTL_EVENT_UNLINK};

	(void)state;
	assert_int_equal(COUNT(kinds), 14);
	for (size_t i = 0; i < COUNT(kinds); i++)
		for (size_t j = i + 1; j < COUNT(kinds); j++)
			assert_int_not_equal(kinds[i], kinds[j]);
}

static void options__are_one_bit_each_and_can_be_ored(void **state)
{
	const unsigned options[] = {PTL_MD_OP_PUT, PTL_MD_OP_GET, PTL_MD_MANAGE_REMOTE,
		PTL_MD_TRUNCATE, PTL_MD_ACK_DISABLE};
	unsigned seen = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(options); i++) {
		assert_int_equal(__builtin_popcount(options[i]), 1);
		assert_int_equal(seen & options[i], 0);
		seen |= options[i];
	}
}

static void handles__convert_to_a_handle_of_any_kind_without_loss(void **state)
{
	const ptl_handle_ni_t ni = 0xfedcba9876543210u;
	const ptl_handle_any_t any = ni;

	(void)state;
	assert_true((ptl_handle_ni_t)any == ni);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(return_codes__are_all_different),
		cmocka_unit_test(event_kinds__are_fourteen_and_all_different),
		cmocka_unit_test(options__are_one_bit_each_and_can_be_ored),
		cmocka_unit_test(handles__convert_to_a_handle_of_any_kind_without_loss),
	};

	return cmocka_run_group_tests_name("interface", tests, NULL, NULL);
}
