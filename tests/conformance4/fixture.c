/* SPDX-License-Identifier: BSD-3-Clause */
/* fixture.c - see fixture.h. */
#include "fixture.h"

#define TIMEOUT 60000 /* ms */

void code_check(int got, int want, const char *call, const char *file, int line)
{
	if (got == want)
		return;
	print_error("%s returned %d, not %d\n", call, got, want);
	_fail(file, line);
}

int group_open(void **state)
{
	(void)state;
	setenv("PTL_IFACE_NAME", "loop:a;loop:a", 0);
	setenv("PTL_NID", "1;2", 0);
	return PtlInit() == PTL_OK ? 0 : -1;
}

int group_close(void **state)
{
	(void)state;
	PtlFini();
	return 0;
}

void node_open(struct node *node, ptl_interface_t iface, unsigned options)
{
	node->logical = options & PTL_NI_LOGICAL;
	assert_ok(PtlNIInit(iface, options, PTL_PID_ANY, NULL, &node->limits, &node->ni));
	assert_ok(PtlGetPhysId(node->ni, &node->id));
	assert_ok(PtlEQAlloc(node->ni, 64, &node->eq));
	assert_ok(PtlCTAlloc(node->ni, &node->ct));
	assert_ok(PtlPTAlloc(node->ni, 0, node->eq, PTL_PT_ANY, &node->portal));
	assert_int_equal(node->portal, 0);
}

void node_close(struct node *node)
{
	assert_ok(PtlNIFini(node->ni));
}

void pair_open(struct node *here, struct node *there, unsigned options)
{
	ptl_process_t map[2];

	node_open(here, 0, options);
	node_open(there, 1, options);
	if (!(options & PTL_NI_LOGICAL))
		return;
	map[0] = here->id;
	map[1] = there->id;
	assert_ok(PtlSetMap(here->ni, 2, map));
	assert_ok(PtlSetMap(there->ni, 2, map));
	here->id.rank = 0;
	there->id.rank = 1;
}

void pair_close(struct node *here, struct node *there)
{
	node_close(here);
	node_close(there);
}

void memory_fill(unsigned char *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		memory[i] = (unsigned char)((uint32_t)i * 2654435761u >> 13 | 1);
}

ptl_handle_md_t md_make(const struct node *node, void *start, ptl_size_t length, unsigned options)
{
	const ptl_md_t md = {.start = start,
		.length = length,
		.options = options,
		.eq_handle = node->eq,
		.ct_handle = node->ct};
	ptl_handle_md_t handle;

	assert_ok(PtlMDBind(node->ni, &md, &handle));
	return handle;
}

ptl_handle_me_t entry_make(const struct node *node, void *start, ptl_size_t length,
	unsigned options, ptl_match_bits_t bits, void *user)
{
	ptl_me_t me = {.start = start,
		.length = length,
		.ct_handle = node->ct,
		.uid = PTL_UID_ANY,
		.options = options,
		.match_bits = bits};
	ptl_handle_me_t handle;

	if (node->logical)
		me.match_id.rank = PTL_RANK_ANY;
	else
		me.match_id = ANYONE;
	assert_ok(PtlMEAppend(node->ni, node->portal, &me, PTL_PRIORITY_LIST, user, &handle));
	if (!(options & PTL_ME_EVENT_LINK_DISABLE))
		assert_true(expect_event(node->eq, PTL_EVENT_LINK).user_ptr == user);
	return handle;
}

ptl_event_t event_expect(ptl_handle_eq_t eq, ptl_event_kind_t kind, const char *file, int line)
{
	ptl_event_t event;
	unsigned which;

	code_check(PtlEQPoll(&eq, 1, TIMEOUT, &event, &which), PTL_OK, "PtlEQPoll", file, line);
	if (event.type != kind) {
		print_error("event %d, not %d\n", event.type, kind);
		_fail(file, line);
	}
	return event;
}

void none_expect(ptl_handle_eq_t eq, const char *file, int line)
{
	ptl_event_t event;

	code_check(PtlEQGet(eq, &event), PTL_EQ_EMPTY, "PtlEQGet", file, line);
}

void expect_count(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure)
{
	ptl_ct_event_t event;
	ptl_size_t test = success;
	unsigned which;

	if (failure == 0) {
		assert_ok(PtlCTPoll(&ct, &test, 1, TIMEOUT, &event, &which));
	} else {
		do
			assert_ok(PtlCTGet(ct, &event));
		while (event.failure < failure);
		assert_ok(PtlCTGet(ct, &event)); /* the halves are read one after the other */
	}
	assert_int_equal(event.success, success);
	assert_int_equal(event.failure, failure);
}
