/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bad_input.c - arguments that nobody should give: forged and stale handles, handles of other
 * kinds and of another interface, values outside enumerations. Each is answered with the code that
 * the specification has for it, or at least with a code, and afterwards everything works. */
#include "fixture.h"

#define GUESSES 100000

/* Every function that takes a handle, and what it says to one that is not what it wants. */
static int status_of(ptl_handle_any_t handle)
{
	ptl_sr_value_t value;

	return PtlNIStatus(handle, PTL_SR_DROP_COUNT, &value);
}

static int dist_of(ptl_handle_any_t handle)
{
	unsigned long distance;

	return PtlNIDist(handle, here.id, &distance);
}

static int uid_of(ptl_handle_any_t handle)
{
	ptl_uid_t uid;

	return PtlGetUid(handle, &uid);
}

static int id_of(ptl_handle_any_t handle)
{
	ptl_process_id_t id;

	return PtlGetId(handle, &id);
}

static int attach_to(ptl_handle_any_t handle)
{
	ptl_handle_me_t me;

	return PtlMEAttach(handle, PORTAL, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me);
}

static int attach_any_to(ptl_handle_any_t handle)
{
	ptl_pt_index_t portal;
	ptl_handle_me_t me;

	return PtlMEAttachAny(handle, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, &me);
}

static int insert_at(ptl_handle_any_t handle)
{
	ptl_handle_me_t me;

	return PtlMEInsert(handle, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me);
}

static int attach_md_to(ptl_handle_any_t handle)
{
	ptl_handle_md_t md;

	return PtlMDAttach(handle, region(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, PTL_RETAIN, &md);
}

static int bind_to(ptl_handle_any_t handle)
{
	ptl_handle_md_t md;

	return PtlMDBind(handle, region(NULL, 0, 0, PTL_EQ_NONE), &md);
}

static int bind_with_queue(ptl_handle_any_t handle)
{
	ptl_handle_md_t md;

	return PtlMDBind(here.ni, region(NULL, 0, 0, handle), &md);
}

static int update_of(ptl_handle_any_t handle)
{
	ptl_md_t md;

	return PtlMDUpdate(handle, &md, NULL, PTL_EQ_NONE);
}

static int queue_on(ptl_handle_any_t handle)
{
	ptl_handle_eq_t eq;

	return PtlEQAlloc(handle, 1, &eq);
}

static int get_event(ptl_handle_any_t handle)
{
	ptl_event_t event;

	return PtlEQGet(handle, &event);
}

static int wait_event(ptl_handle_any_t handle)
{
	ptl_event_t event;

	return PtlEQWait(handle, &event);
}

static int access_of(ptl_handle_any_t handle)
{
	return PtlACEntry(handle, 1, ANY_PROCESS, PTL_UID_ANY, PORTAL);
}

static int put_from(ptl_handle_any_t handle)
{
	return PtlPut(handle, PTL_NOACK_REQ, here.id, PORTAL, 0, 0, 0, 0);
}

static int get_into(ptl_handle_any_t handle)
{
	return PtlGet(handle, here.id, PORTAL, 0, 0, 0);
}

static int interface_of(ptl_handle_any_t handle)
{
	ptl_handle_ni_t ni;

	return PtlNIHandle(handle, &ni);
}

enum kind { NI, EQ, MD, ME, KINDS };

static const struct call {
	const char *name;
	int (*call)(ptl_handle_any_t handle);
	enum kind kind;
	int refusal;
} calls[] = {
	{"PtlNIFini", PtlNIFini, NI, PTL_INV_NI},
	{"PtlNIStatus", status_of, NI, PTL_INV_NI},
	{"PtlNIDist", dist_of, NI, PTL_INV_NI},
	{"PtlGetUid", uid_of, NI, PTL_INV_NI},
	{"PtlGetId", id_of, NI, PTL_INV_NI},
	{"PtlMEAttach", attach_to, NI, PTL_INV_NI},
	{"PtlMEAttachAny", attach_any_to, NI, PTL_INV_NI},
	{"PtlMDBind", bind_to, NI, PTL_INV_NI},
	{"PtlEQAlloc", queue_on, NI, PTL_INV_NI},
	{"PtlACEntry", access_of, NI, PTL_INV_NI},
	{"PtlMEInsert", insert_at, ME, PTL_INV_ME},
	{"PtlMEUnlink", PtlMEUnlink, ME, PTL_INV_ME},
	{"PtlMDAttach", attach_md_to, ME, PTL_INV_ME},
	{"PtlMDUnlink", PtlMDUnlink, MD, PTL_INV_MD},
	{"PtlMDUpdate", update_of, MD, PTL_INV_MD},
	{"PtlPut", put_from, MD, PTL_INV_MD},
	{"PtlGet", get_into, MD, PTL_INV_MD},
	{"PtlEQFree", PtlEQFree, EQ, PTL_INV_EQ},
	{"PtlEQGet", get_event, EQ, PTL_INV_EQ},
	{"PtlEQWait", wait_event, EQ, PTL_INV_EQ},
	{"PtlMDBind's queue", bind_with_queue, EQ, PTL_INV_EQ},
};

static void all_refuse(ptl_handle_any_t handle, enum kind except)
{
	for (size_t i = 0; i < COUNT(calls); i++)
		if (calls[i].kind != except)
			code_check(calls[i].call(handle), calls[i].refusal, calls[i].name, __FILE__,
				__LINE__);
}

/* One living object of each kind. */
static void objects_make(ptl_handle_any_t handles[KINDS])
{
	handles[NI] = here.ni;
	handles[EQ] = queue_make(&here, 1);
	handles[ME] = entry_make(&here, 0, 0, PTL_RETAIN);
	handles[MD] = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));
}

static void handles__of_another_kind_are_refused_by_every_function(void **state)
{
	ptl_handle_any_t handles[KINDS];

	(void)state;
	objects_make(handles);
	for (unsigned kind = 0; kind < KINDS; kind++)
		all_refuse(handles[kind], kind);
	assert_ok(PtlEQFree(handles[EQ])); /* they all still live */
	assert_ok(PtlMEUnlink(handles[ME]));
	assert_ok(PtlMDUnlink(handles[MD]));
	fence(&here, &here);
}

static void handles__that_never_name_anything_are_refused_by_every_function(void **state)
{
	const ptl_handle_any_t handles[] = {
		PTL_INVALID_HANDLE, 1, UINT32_MAX, 1ull << 63, 0xdeadbeefdeadbeefu};

	(void)state;
	for (size_t i = 0; i < COUNT(handles); i++) {
		all_refuse(handles[i], KINDS);
		assert_code(interface_of(handles[i]), PTL_INV_HANDLE);
	}
	for (size_t i = 0; i < COUNT(calls); i++)
		if (calls[i].call != bind_with_queue) /* PTL_EQ_NONE is 0 */
			code_check(calls[i].call(0), calls[i].refusal, calls[i].name, __FILE__,
				__LINE__);
	fence(&here, &here);
}

static void handles__of_objects_that_are_gone_are_refused_by_every_function(void **state)
{
	ptl_handle_any_t old[KINDS], fresh[KINDS];

	(void)state;
	for (int i = 0; i < 20; i++) { /* also when the same slots are in use again */
		objects_make(old);
		assert_ok(PtlEQFree(old[EQ]));
		assert_ok(PtlMEUnlink(old[ME]));
		assert_ok(PtlMDUnlink(old[MD]));
		objects_make(fresh);
		for (unsigned kind = EQ; kind < KINDS; kind++) {
			all_refuse(old[kind], KINDS);
			assert_code(interface_of(old[kind]), PTL_INV_HANDLE);
		}
		assert_ok(PtlEQFree(fresh[EQ]));
		assert_ok(PtlMEUnlink(fresh[ME]));
		assert_ok(PtlMDUnlink(fresh[MD]));
	}
}

static void handles__of_a_closed_interface_are_refused_by_every_function_for_good(void **state)
{
	ptl_handle_any_t handles[KINDS];

	(void)state;
	node_open(&here, 0, NULL);
	objects_make(handles);
	node_close(&here);
	node_open(&here, 0, NULL);
	for (int i = 0; i < 10; i++) {
		ptl_handle_any_t fresh[KINDS];

		objects_make(fresh);
		for (unsigned kind = NI; kind < KINDS; kind++) {
			all_refuse(handles[kind], KINDS);
			assert_code(interface_of(handles[kind]), PTL_INV_HANDLE);
		}
	}
}

static void handles__forged_by_one_bit_are_refused_by_every_function(void **state)
{
	ptl_handle_any_t handles[KINDS];

	(void)state;
	objects_make(handles);
	for (unsigned kind = 0; kind < KINDS; kind++) {
		for (unsigned bit = 0; bit < 64; bit++) {
			all_refuse(handles[kind] ^ 1ull << bit, KINDS);
			assert_code(interface_of(handles[kind] ^ 1ull << bit), PTL_INV_HANDLE);
		}
	}
	fence(&here, &here);
}

static void handles__guessed_are_refused_by_every_function(void **state)
{
	ptl_handle_any_t handles[KINDS];
	uint64_t dice = 88172645463325252u;

	(void)state;
	objects_make(handles);
	for (unsigned i = 0; i < GUESSES; i++) {
		const struct call *call = &calls[i % COUNT(calls)];

		dice ^= dice << 13;
		dice ^= dice >> 7;
		dice ^= dice << 17;
		code_check(call->call(dice), call->refusal, call->name, __FILE__, __LINE__);
		/* Near a real one: right index or right generation, wrong rest. */
		code_check(call->call(handles[call->kind] ^ (dice & UINT32_MAX) ^ dice << 63),
			call->refusal, call->name, __FILE__, __LINE__);
	}
	fence(&here, &here);
}

static void handles__of_the_other_interface_name_its_objects_and_no_others(void **state)
{
	struct end at_there = target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	struct end at_here = target_make(&here, NULL, 0, PTL_MD_OP_PUT);
	ptl_handle_me_t me;
	ptl_handle_ni_t ni;

	(void)state;
	assert_true(at_there.me != at_here.me && at_there.md != at_here.md &&
		    at_there.eq != at_here.eq);
	assert_ok(PtlMEInsert(at_there.me, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	assert_ok(PtlNIHandle(me, &ni));
	assert_true(ni == there.ni);
	assert_ok(PtlMEUnlink(at_there.me));
	assert_code(PtlMEUnlink(at_there.me), PTL_INV_ME);
	assert_ok(PtlMEUnlink(at_here.me));
}

static void values__outside_enumerations_are_answered_and_do_no_harm(void **state)
{
	const int odd[] = {2, 77, -1, INT32_MAX, INT32_MIN};
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	target_make(&here, NULL, 0, PTL_MD_OP_PUT);
	for (size_t i = 0; i < COUNT(odd); i++) {
		ptl_handle_me_t me = entry_make(&here, 1, 0, PTL_RETAIN), other;
		ptl_handle_md_t md;

		PtlMEAttach(here.ni, PORTAL, ANY_PROCESS, 1, 0, (ptl_unlink_t)odd[i],
			(ptl_ins_pos_t)odd[i], &other);
		PtlMEInsert(
			me, ANY_PROCESS, 1, 0, (ptl_unlink_t)odd[i], (ptl_ins_pos_t)odd[i], &other);
		PtlMDAttach(me, region(NULL, 0, 0, PTL_EQ_NONE), (ptl_unlink_t)odd[i],
			(ptl_unlink_t)odd[i], &md);
		PtlPut(source.md, (ptl_ack_req_t)odd[i], here.id, PORTAL, 0, 0, 0, 0);
	}
	fence(&here, &here);
}

static void places__for_results_that_are_no_addresses_are_answered_and_do_no_harm(void **state)
{
	void *const odd[] = {NULL, WILD};
	struct end target = target_make(&here, NULL, 0, PTL_MD_OP_PUT);
	ptl_handle_me_t me;
	ptl_pt_index_t portal;

	(void)state;
	for (size_t i = 0; i < COUNT(odd); i++) {
		ptl_handle_me_t fresh = entry_make(&here, 0, 0, PTL_RETAIN);

		PtlMEAttach(here.ni, PORTAL, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, odd[i]);
		PtlMEAttachAny(here.ni, odd[i], ANY_PROCESS, 0, 0, PTL_RETAIN, &me);
		PtlMEAttachAny(here.ni, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, odd[i]);
		PtlMEInsert(target.me, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, odd[i]);
		PtlMDAttach(fresh, region(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, PTL_RETAIN, odd[i]);
	}
	fence(&here, &here);
}

static void refused_call__writes_no_result(void **state)
{
	ptl_handle_any_t handle = 0x1234567812345678u;
	ptl_process_id_t id = {5, 6};
	unsigned long distance = 7;
	ptl_pt_index_t portal = 8;
	ptl_sr_value_t value = 9;
	ptl_uid_t uid = 10;

	(void)state;
	PtlMEAttach(0, PORTAL, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &handle);
	PtlMEAttachAny(here.ni, &portal, BAD_PROCESS, 0, 0, PTL_RETAIN, &handle);
	PtlMEInsert(0, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &handle);
	PtlMDAttach(0, region(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, PTL_RETAIN, &handle);
	PtlMDBind(here.ni, region(NULL, 1, 0, PTL_EQ_NONE), &handle);
	PtlEQAlloc(here.ni, UINT64_MAX, &handle);
	PtlNIHandle(0, &handle);
	PtlNIStatus(here.ni, -1, &value);
	PtlNIDist(here.ni, ANY_PROCESS, &distance);
	PtlGetId(0, &id);
	PtlGetUid(0, &uid);
	assert_int_equal(handle, 0x1234567812345678u);
	assert_int_equal(id.nid, 5);
	assert_int_equal(id.pid, 6);
	assert_int_equal(distance, 7);
	assert_int_equal(portal, 8);
	assert_int_equal(value, 9);
	assert_int_equal(uid, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_HERE(handles__of_another_kind_are_refused_by_every_function),
		TEST_HERE(handles__that_never_name_anything_are_refused_by_every_function),
		TEST_HERE(handles__of_objects_that_are_gone_are_refused_by_every_function),
		TEST_BARE(handles__of_a_closed_interface_are_refused_by_every_function_for_good),
		TEST_HERE(handles__forged_by_one_bit_are_refused_by_every_function),
		TEST_HERE(handles__guessed_are_refused_by_every_function),
		TEST_BOTH(handles__of_the_other_interface_name_its_objects_and_no_others),
		TEST_HERE(values__outside_enumerations_are_answered_and_do_no_harm),
		TEST_HERE(places__for_results_that_are_no_addresses_are_answered_and_do_no_harm),
		TEST_HERE(refused_call__writes_no_result),
	};

	return cmocka_run_group_tests_name("bad_input", tests, group_open, group_close);
}
