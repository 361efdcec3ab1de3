/* SPDX-License-Identifier: BSD-3-Clause */
/* test_objects.c - portals (5), event queues (8), counters (9), PtlAbort (4).
 *
 * Covers: lib/p4/portal.c, lib/p4/event.c, lib/p4/counter.c, lib/p4/wait.c.
 */
#include "../nap.h"
#include "fixture.h"

#include <sys/resource.h>

static unsigned char memory[64];

static void portals__are_taken_by_index_or_from_the_lowest(void **state)
{
	struct node node;
	ptl_pt_index_t portal;

	(void)state;
	node_open(&node, 0, MATCHING); /* has 0 */
	assert_ok(PtlPTAlloc(node.ni, 0, PTL_EQ_NONE, 2, &portal));
	assert_int_equal(portal, 2);
	assert_code(PtlPTAlloc(node.ni, 0, PTL_EQ_NONE, 2, &portal), PTL_PT_IN_USE);
	assert_ok(PtlPTAlloc(node.ni, PTL_PT_ALLOC_DISABLED, node.eq, PTL_PT_ANY, &portal));
	assert_int_equal(portal, 1);
	assert_ok(PtlPTAlloc(node.ni, 0, node.eq, PTL_PT_ANY, &portal));
	assert_int_equal(portal, 3);
	assert_ok(PtlPTFree(node.ni, 1));
	assert_code(PtlPTFree(node.ni, 1), PTL_ARG_INVALID);
	assert_ok(PtlPTAlloc(node.ni, 0, node.eq, PTL_PT_ANY, &portal));
	assert_int_equal(portal, 1);
	node_close(&node);
}

static void ptl_pt_alloc__refuses_bad_arguments(void **state)
{
	struct node node, other;
	ptl_pt_index_t portal;

	(void)state;
	node_open(&node, 0, MATCHING);
	node_open(&other, 0, LISTED);
	assert_code(PtlPTAlloc(node.ni, 0x20, node.eq, 1, &portal), PTL_ARG_INVALID);
	assert_code(PtlPTAlloc(node.ni, 0, other.eq, 1, &portal), PTL_ARG_INVALID);
	assert_code(PtlPTAlloc(node.ni, 0, node.ct, 1, &portal), PTL_ARG_INVALID);
	assert_code(PtlPTAlloc(node.ni, 0, node.eq, 64, &portal), PTL_ARG_INVALID);
	assert_code(PtlPTAlloc(node.ni, 0, node.eq, 1, NULL), PTL_ARG_INVALID);
	assert_code(
		PtlPTAlloc(node.ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, 1, &portal), PTL_PT_EQ_NEEDED);
	assert_code(PtlPTEnable(node.ni, 1), PTL_ARG_INVALID);
	assert_code(PtlPTDisable(node.ni, 1), PTL_ARG_INVALID);
	assert_code(PtlPTFree(node.ni, 1), PTL_ARG_INVALID);
	assert_code(PtlPTFree(node.ni, UINT32_MAX), PTL_ARG_INVALID);
	node_close(&node);
	node_close(&other);
}

static void lists__have_a_limit_each(void **state)
{
	ptl_me_t me = {.start = memory,
		.length = 1,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT,
		.match_id = ANYONE};
	ptl_handle_me_t handles[2][3], none;
	struct node node;

	(void)state;
	setenv("PTL_LIM_MAX_LIST_SIZE", "3", 1);
	node_open(&node, 0, MATCHING);
	unsetenv("PTL_LIM_MAX_LIST_SIZE");
	for (int round = 0; round < 2; round++) {
		for (ptl_list_t list = PTL_PRIORITY_LIST; list <= PTL_OVERFLOW_LIST; list++) {
			for (int i = 0; i < 3; i++)
				assert_ok(PtlMEAppend(
					node.ni, 0, &me, list, NULL, &handles[list][i]));
			assert_code(PtlMEAppend(node.ni, 0, &me, list, NULL, &none), PTL_NO_SPACE);
		}
		for (int i = 0; i < 6; i++)
			assert_ok(PtlMEUnlink(handles[i / 3][i % 3]));
	}
	node_close(&node);
}

static void ptl_pt_free__refuses_a_portal_with_entries(void **state)
{
	ptl_handle_me_t me;
	struct node node;

	(void)state;
	node_open(&node, 0, MATCHING);
	me = entry_make(&node, memory, 1, PTL_ME_OP_PUT, 0, NULL);
	assert_code(PtlPTFree(node.ni, 0), PTL_PT_IN_USE);
	assert_ok(PtlMEUnlink(me));
	assert_ok(PtlPTFree(node.ni, 0));
	node_close(&node);
}

static void entries__are_refused_by_the_other_kind_of_list_and_without_a_portal(void **state)
{
	struct node matching, listed;
	ptl_me_t me = {.uid = PTL_UID_ANY, .ct_handle = PTL_CT_NONE, .match_id = ANYONE};
	ptl_le_t le = {.uid = PTL_UID_ANY, .ct_handle = PTL_CT_NONE};
	ptl_handle_me_t handle;

	(void)state;
	node_open(&matching, 0, MATCHING);
	node_open(&listed, 0, LISTED);
	assert_code(PtlLEAppend(matching.ni, 0, &le, 0, NULL, &handle), PTL_ARG_INVALID);
	assert_code(PtlMEAppend(listed.ni, 0, &me, 0, NULL, &handle), PTL_ARG_INVALID);
	assert_code(PtlMEAppend(matching.ni, 1, &me, 0, NULL, &handle), PTL_ARG_INVALID);
	assert_code(PtlMEAppend(matching.ni, 0, &me, 2, NULL, &handle), PTL_ARG_INVALID);
	assert_code(PtlMEAppend(matching.ni, 0, NULL, 0, NULL, &handle), PTL_ARG_INVALID);
	assert_code(PtlMEAppend(matching.ni, 0, &me, 0, NULL, NULL), PTL_ARG_INVALID);
	me.options = 1u << 20;
	assert_code(PtlMEAppend(matching.ni, 0, &me, 0, NULL, &handle), PTL_ARG_INVALID);
	me.options = PTL_ME_ACK_DISABLE;
	assert_ok(PtlMEAppend(matching.ni, 0, &me, 0, NULL, &handle));
	assert_code(PtlLEUnlink(handle), PTL_ARG_INVALID);
	me.ct_handle = listed.ct;
	assert_code(PtlMEAppend(matching.ni, 0, &me, 0, NULL, &handle), PTL_ARG_INVALID);
	le.options = PTL_ME_MANAGE_LOCAL;
	assert_code(PtlLEAppend(listed.ni, 0, &le, 0, NULL, &handle), PTL_ARG_INVALID);
	le.options = PTL_IOVEC;
	le.start = memory;
	le.length = (ptl_size_t)listed.limits.max_iovecs + 1;
	assert_code(PtlLEAppend(listed.ni, 0, &le, 0, NULL, &handle), PTL_ARG_INVALID);
	me.ct_handle = PTL_CT_NONE;
	me.options = PTL_IOVEC;
	me.start = memory;
	me.length = le.length;
	assert_code(PtlMEAppend(matching.ni, 0, &me, 0, NULL, &handle), PTL_ARG_INVALID);
	le = (ptl_le_t){
		.uid = PTL_UID_ANY, .ct_handle = PTL_CT_NONE, .options = PTL_LE_ACK_DISABLE};
	assert_ok(PtlLEAppend(listed.ni, 0, &le, 0, NULL, &handle));
	assert_code(PtlMEUnlink(handle), PTL_ARG_INVALID);
	assert_ok(PtlLEUnlink(handle));
	assert_code(PtlLEUnlink(handle), PTL_ARG_INVALID);
	node_close(&matching);
	node_close(&listed);
}

/* Makes an event: the LINK of an entry. */
static void event_make(const struct node *node, void *user)
{
	ptl_me_t me = {.uid = PTL_UID_ANY, .ct_handle = PTL_CT_NONE, .match_id = ANYONE};
	ptl_handle_me_t handle;

	assert_ok(PtlMEAppend(node->ni, node->portal, &me, PTL_PRIORITY_LIST, user, &handle));
}

static void queues__give_events_in_order_and_then_none(void **state)
{
	struct node node;
	ptl_event_t event;
	unsigned which;

	(void)state;
	node_open(&node, 0, MATCHING);
	assert_code(PtlEQGet(node.eq, &event), PTL_EQ_EMPTY);
	assert_code(PtlEQPoll(&node.eq, 1, 0, &event, &which), PTL_EQ_EMPTY);
	assert_code(PtlEQPoll(&node.eq, 1, 1, &event, &which), PTL_EQ_EMPTY);
	event_make(&node, memory + 1);
	event_make(&node, memory + 2);
	assert_ok(PtlEQWait(node.eq, &event));
	assert_true(event.user_ptr == memory + 1);
	assert_int_equal(event.type, PTL_EVENT_LINK);
	assert_int_equal(event.pt_index, 0);
	assert_true(expect_event(node.eq, PTL_EVENT_LINK).user_ptr == memory + 2);
	assert_code(PtlEQGet(node.eq, &event), PTL_EQ_EMPTY);
	assert_code(PtlEQGet(node.eq, NULL), PTL_ARG_INVALID);
	assert_code(PtlEQWait(node.eq, NULL), PTL_ARG_INVALID);
	assert_code(PtlEQAlloc(node.ni, 1, NULL), PTL_ARG_INVALID);
	assert_ok(PtlEQFree(node.eq));
	assert_code(PtlEQGet(node.eq, &event), PTL_ARG_INVALID);
	assert_code(PtlEQFree(node.eq), PTL_ARG_INVALID);
	node_close(&node);
}

static void ptl_eq_poll__looks_at_the_queues_in_turn(void **state)
{
	ptl_handle_eq_t eqs[200];
	ptl_pt_index_t portals[2];
	ptl_event_t event;
	struct node node, other;
	unsigned which;

	(void)state;
	node_open(&node, 0, MATCHING);
	for (unsigned i = 0; i < COUNT(eqs); i++)
		assert_ok(PtlEQAlloc(node.ni, 8, &eqs[i]));
	assert_ok(PtlPTAlloc(node.ni, 0, eqs[3], PTL_PT_ANY, &portals[0]));
	assert_ok(PtlPTAlloc(node.ni, 0, eqs[199], PTL_PT_ANY, &portals[1]));
	for (unsigned i = 0; i < 4; i++) {
		node.portal = portals[i % 2];
		event_make(&node, NULL);
	}
	assert_ok(PtlCTInc(node.ct, (ptl_ct_event_t){1, 0})); /* behind all of them */
	for (unsigned i = 0; i < 4; i++) {
		assert_ok(PtlEQPoll(eqs, COUNT(eqs), PTL_TIME_FOREVER, &event, &which));
		assert_int_equal(which, i % 2 ? 199 : 3);
	}
	assert_code(PtlEQPoll(eqs, COUNT(eqs), 2, &event, &which), PTL_EQ_EMPTY);
	assert_code(PtlEQPoll(eqs, 0, 0, &event, &which), PTL_ARG_INVALID);
	assert_code(PtlEQPoll(NULL, 1, 0, &event, &which), PTL_ARG_INVALID);
	assert_code(PtlEQPoll(eqs, 1, 0, &event, NULL), PTL_ARG_INVALID);
	assert_ok(PtlEQFree(eqs[7]));
	assert_code(PtlEQPoll(eqs, 9, 0, &event, &which), PTL_ARG_INVALID);
	node_open(&other, 0, LISTED);
	eqs[1] = other.eq;
	assert_code(PtlEQPoll(eqs, 2, 0, &event, &which), PTL_ARG_INVALID); /* of two interfaces */
	eqs[1] = PTL_EQ_NONE;
	assert_code(PtlEQPoll(eqs, 2, 0, &event, &which), PTL_ARG_INVALID);
	node_close(&other);
	node_close(&node);
}

static void counters__are_set_and_raised_before_the_call_returns(void **state)
{
	struct node node;
	ptl_ct_event_t count;

	(void)state;
	node_open(&node, 0, MATCHING);
	assert_ok(PtlCTGet(node.ct, &count));
	assert_int_equal(count.success | count.failure, 0);
	assert_ok(PtlCTInc(node.ct, (ptl_ct_event_t){3, 0}));
	assert_ok(PtlCTInc(node.ct, (ptl_ct_event_t){0, 2}));
	assert_code(PtlCTInc(node.ct, (ptl_ct_event_t){1, 1}), PTL_ARG_INVALID);
	assert_ok(PtlCTGet(node.ct, &count));
	assert_int_equal(count.success, 3);
	assert_int_equal(count.failure, 2);
	assert_ok(PtlCTSet(node.ct, (ptl_ct_event_t){UINT64_MAX, 0}));
	assert_ok(PtlCTInc(node.ct, (ptl_ct_event_t){2, 0}));
	assert_ok(PtlCTGet(node.ct, &count));
	assert_int_equal(count.success, 1);
	assert_code(PtlCTGet(node.ct, NULL), PTL_ARG_INVALID);
	assert_code(PtlCTGet(node.eq, &count), PTL_ARG_INVALID);
	assert_code(PtlCTAlloc(node.ni, NULL), PTL_ARG_INVALID);
	assert_ok(PtlCTFree(node.ct));
	assert_code(PtlCTFree(node.ct), PTL_ARG_INVALID);
	assert_code(PtlCTSet(node.ct, count), PTL_ARG_INVALID);
	node_close(&node);
}

static void ptl_ct_wait__ends_with_the_test_or_a_failure(void **state)
{
	struct node node;
	ptl_ct_event_t count;

	(void)state;
	node_open(&node, 0, MATCHING);
	assert_ok(PtlCTWait(node.ct, 0, &count));
	assert_ok(PtlCTSet(node.ct, (ptl_ct_event_t){5, 0}));
	assert_ok(PtlCTWait(node.ct, 5, &count));
	assert_int_equal(count.success, 5);
	assert_ok(PtlCTSet(node.ct, (ptl_ct_event_t){1, 1}));
	assert_ok(PtlCTWait(node.ct, 10, &count)); /* not their sum */
	assert_int_equal(count.failure, 1);
	assert_code(PtlCTWait(node.ct, 0, NULL), PTL_ARG_INVALID);
	node_close(&node);
}

static void ptl_ct_poll__looks_at_the_counters_in_turn(void **state)
{
	const ptl_size_t tests[] = {1, 1, 1};
	ptl_handle_ct_t cts[3];
	ptl_ct_event_t count;
	struct node node, other;
	unsigned which;

	(void)state;
	node_open(&node, 0, MATCHING);
	for (unsigned i = 0; i < 3; i++)
		assert_ok(PtlCTAlloc(node.ni, &cts[i]));
	assert_code(PtlCTPoll(cts, tests, 3, 1, &count, &which), PTL_CT_NONE_REACHED);
	assert_ok(PtlCTInc(cts[0], (ptl_ct_event_t){1, 0}));
	assert_ok(PtlCTInc(cts[2], (ptl_ct_event_t){0, 1}));
	for (unsigned i = 0; i < 4; i++) {
		assert_ok(PtlCTPoll(cts, tests, 3, 0, &count, &which));
		assert_int_equal(which, i % 2 ? 2 : 0);
	}
	assert_code(PtlCTPoll(cts, tests, 0, 0, &count, &which), PTL_ARG_INVALID);
	assert_code(PtlCTPoll(cts, NULL, 3, 0, &count, &which), PTL_ARG_INVALID);
	cts[1] = node.eq;
	assert_code(PtlCTPoll(cts, tests, 3, 0, &count, &which), PTL_ARG_INVALID);
	node_open(&other, 0, LISTED);
	cts[1] = other.ct; /* of another interface */
	assert_code(PtlCTPoll(cts, tests, 3, 0, &count, &which), PTL_ARG_INVALID);
	cts[1] = PTL_CT_NONE;
	assert_code(PtlCTPoll(cts, tests, 3, 0, &count, &which), PTL_ARG_INVALID);
	node_close(&other);
	node_close(&node);
}

/* The four calls that wait. */
enum way { EQ_WAIT, CT_WAIT, EQ_POLL, CT_POLL, WAYS };

/* A thread that waits. */
struct waiter {
	pthread_t thread;
	struct node *node;
	enum way way;
	_Atomic bool inside;
	int code;
	ptl_event_t event;
};

static int waiter_wait(struct waiter *waiter)
{
	const struct node *node = waiter->node;
	const ptl_size_t test = 1;
	ptl_ct_event_t count;
	unsigned which;

	switch (waiter->way) {
	case EQ_WAIT:
		return PtlEQWait(node->eq, &waiter->event);
	case CT_WAIT:
		return PtlCTWait(node->ct, 1, &count);
	case EQ_POLL:
		return PtlEQPoll(&node->eq, 1, PTL_TIME_FOREVER, &waiter->event, &which);
	default:
		return PtlCTPoll(&node->ct, &test, 1, PTL_TIME_FOREVER, &count, &which);
	}
}

static void *waiter_run(void *argument)
{
	struct waiter *waiter = argument;

	atomic_store(&waiter->inside, true);
	waiter->code = waiter_wait(waiter);
	return NULL;
}

static void waiter_start(struct waiter *waiter, struct node *node, enum way way)
{
	*waiter = (struct waiter){.node = node, .way = way};
	assert_int_equal(pthread_create(&waiter->thread, NULL, waiter_run, waiter), 0);
	while (!atomic_load(&waiter->inside))
		nap();
	usleep(20000); /* mostly asleep by then; if not, the promise holds as well */
}

static int waiter_join(struct waiter *waiter)
{
	pthread_join(waiter->thread, NULL);
	return waiter->code;
}

static void waits__end_when_it_comes(void **state)
{
	struct waiter waiter;
	struct node node;

	(void)state;
	node_open(&node, 0, MATCHING);
	for (enum way way = 0; way < WAYS; way++) {
		assert_ok(PtlCTSet(node.ct, (ptl_ct_event_t){0, 0}));
		waiter_start(&waiter, &node, way);
		if (way == CT_WAIT || way == CT_POLL)
			assert_ok(PtlCTInc(node.ct, (ptl_ct_event_t){1, 0}));
		else
			event_make(&node, NULL);
		assert_int_equal(waiter_join(&waiter), PTL_OK);
	}
	node_close(&node);
}

static void events__wake_one_thread_each(void **state)
{
	enum { THREADS = 4 };
	struct waiter waiters[THREADS];
	unsigned char *const first = memory;
	unsigned seen = 0;
	struct node node;

	(void)state;
	node_open(&node, 0, MATCHING);
	for (unsigned i = 0; i < THREADS; i++)
		waiter_start(&waiters[i], &node, i % 2 ? EQ_POLL : EQ_WAIT);
	for (unsigned i = 0; i < THREADS; i++)
		event_make(&node, first + i);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(waiter_join(&waiters[i]), PTL_OK);
		seen |= 1u << ((unsigned char *)waiters[i].event.user_ptr - first);
	}
	assert_int_equal(seen, (1u << THREADS) - 1);
	expect_none(node.eq);
	node_close(&node);
}

/* Where somebody else drives, a thread that waits sleeps until it is woken. */
/* A thread spins before it sleeps, and on a busy machine a whole wait may pass with that. */
static void waits__are_asleep_while_nothing_comes(void **state)
{
	enum { TRIES = 20, WAKES_MOST = 50 };
	const char *progress = getenv("PTL_PROGRESS");
	struct rusage before, after;
	ptl_ct_event_t count;
	ptl_size_t test = 1;
	ptl_event_t event;
	struct node node;
	unsigned which, tries = 0;

	(void)state;
	if (progress && strcmp(progress, "inline") == 0)
		skip();
	node_open(&node, 0, MATCHING);
	assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
	do {
		assert_code(PtlEQPoll(&node.eq, 1, 100, &event, &which), PTL_EQ_EMPTY);
		assert_code(
			PtlCTPoll(&node.ct, &test, 1, 100, &count, &which), PTL_CT_NONE_REACHED);
		assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
	} while (after.ru_nvcsw == before.ru_nvcsw && ++tries < TRIES);
	assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 1, WAKES_MOST);
	node_close(&node);
}

static void waits__are_interrupted_by_the_end_of_what_they_wait_for(void **state)
{
	struct waiter waiter;
	struct node node;

	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		node_open(&node, 0, MATCHING);
		waiter_start(&waiter, &node, way);
		if (way == CT_WAIT || way == CT_POLL)
			assert_ok(PtlCTFree(node.ct));
		else
			assert_ok(PtlEQFree(node.eq));
		assert_int_equal(waiter_join(&waiter), PTL_INTERRUPTED);
		node_close(&node);
		node_open(&node, 0, MATCHING);
		waiter_start(&waiter, &node, way);
		node_close(&node);
		assert_int_equal(waiter_join(&waiter), PTL_INTERRUPTED);
	}
}

static void ptl_abort__lets_those_go_who_wait_and_then_waits_work_again(void **state)
{
	struct waiter waiters[WAYS];
	struct node node;

	(void)state;
	PtlAbort(); /* nobody waits */
	node_open(&node, 0, MATCHING);
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 4; i++)
			waiter_start(&waiters[i], &node, (enum way)i);
		PtlAbort();
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(waiter_join(&waiters[i]), PTL_ABORTED);
		event_make(&node, NULL);
		expect_event(node.eq, PTL_EVENT_LINK);
	}
	node_close(&node);
}

/* What it waits for is there each time. */
static void *waiter_never_idle(void *context)
{
	const struct node *node = context;
	ptl_ct_event_t count;
	int code;

	while ((code = PtlCTWait(node->ct, 0, &count)) == PTL_OK)
		;
	return (void *)(intptr_t)code;
}

static void ptl_abort__reaches_who_never_sleeps(void **state)
{
	struct node node;
	pthread_t thread;
	void *code;

	(void)state;
	node_open(&node, 0, MATCHING);
	assert_int_equal(pthread_create(&thread, NULL, waiter_never_idle, &node), 0);
	while (pthread_tryjoin_np(thread, &code) != 0)
		PtlAbort();
	assert_int_equal((intptr_t)code, PTL_ABORTED);
	node_close(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(portals__are_taken_by_index_or_from_the_lowest),
		cmocka_unit_test(ptl_pt_alloc__refuses_bad_arguments),
		cmocka_unit_test(lists__have_a_limit_each),
		cmocka_unit_test(ptl_pt_free__refuses_a_portal_with_entries),
		cmocka_unit_test(
			entries__are_refused_by_the_other_kind_of_list_and_without_a_portal),
		cmocka_unit_test(queues__give_events_in_order_and_then_none),
		cmocka_unit_test(ptl_eq_poll__looks_at_the_queues_in_turn),
		cmocka_unit_test(counters__are_set_and_raised_before_the_call_returns),
		cmocka_unit_test(ptl_ct_wait__ends_with_the_test_or_a_failure),
		cmocka_unit_test(ptl_ct_poll__looks_at_the_counters_in_turn),
		cmocka_unit_test(waits__end_when_it_comes),
		cmocka_unit_test(events__wake_one_thread_each),
		cmocka_unit_test(waits__are_asleep_while_nothing_comes),
		cmocka_unit_test(waits__are_interrupted_by_the_end_of_what_they_wait_for),
		cmocka_unit_test(ptl_abort__lets_those_go_who_wait_and_then_waits_work_again),
		cmocka_unit_test(ptl_abort__reaches_who_never_sleeps),
	};

	return cmocka_run_group_tests(tests, group_open, group_close);
}
