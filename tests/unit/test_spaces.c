/* SPDX-License-Identifier: BSD-3-Clause */
/* test_spaces.c - further interfaces (host/interface.h): two processes on a loop, each with two
 * interfaces of Portals on one engine, one port and one process id. First with a poll thread, then
 * inline.
 *
 * Covers: lib/host/interface.c, lib/engine/space.c.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <postern.h>

#include <engine/queue.h>
#include <host/statistics.h>
#include <p3/interface.h>

#include "../nap.h"

#define PORTAL     3
#define PORTAL_FAR 5 /* beyond the second space's */
#define PUTS       1 /* match bits, in all spaces */
#define GETS       2
#define SMALL      100
#define LARGE      300000 /* many frames */
#define BOTH       3      /* spaces, a bit each */

static const ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
static const struct segment_limits further_limits = {.entries = 16,
	.regions = 8,
	.queues = 2,
	.portals = 4,
	.access = 2,
	.list_length = 64,
	.event_bytes = 1 << 16};

/* One space of one process: what it sends, what it is sent, what it offers and what it fetches. */
struct end {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t source, fetch;
	char sent[LARGE], placed[LARGE], offered[LARGE], fetched[LARGE];
};

static struct end ends[2][2]; /* process, space */
static ptl_process_id_t ids[2];

static void pattern(char *memory, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		memory[i] = (char)(i * 7 + i / 256 + seed * 31 + 1);
}

static ptl_handle_md_t end_bind(const struct end *end, void *memory, size_t length)
{
	ptl_md_t md = {.start = memory,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.eventq = end->eq};
	ptl_handle_md_t handle;

	assert_int_equal(PtlMDBind(end->ni, md, &handle), PTL_OK);
	return handle;
}

static void end_attach(const struct end *end, uint64_t bits, void *memory, unsigned options)
{
	ptl_md_t md = {.start = memory,
		.length = LARGE,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE,
		.eventq = end->eq};
	ptl_handle_me_t me;

	assert_int_equal(
		PtlMEAttach(end->ni, PORTAL, anyone, bits, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_OK);
	assert_int_equal(PtlMDAttach(me, md, PTL_RETAIN, PTL_RETAIN, NULL), PTL_OK);
}

static void end_make(struct end *end)
{
	assert_int_equal(PtlEQAlloc(end->ni, 64, &end->eq), PTL_OK);
	end_attach(end, PUTS, end->placed, PTL_MD_OP_PUT);
	end_attach(end, GETS, end->offered, PTL_MD_OP_GET);
}

static void further_open(unsigned process)
{
	struct end *end = &ends[process][1];

	assert_int_equal(interface_open_space(&portals, ends[process][0].ni,
				 &(struct space_choice){.number = 1}, &further_limits, &end->ni),
		ANSWER_OK);
	end_make(end);
}

static int setup(void **state)
{
	ptl_ni_limits_t limits = {32, 32, 8, 3, 7};
	int count;

	(void)state;
	setenv("PTL_IFACE_NAME", "loop:s;loop:s", 1);
	setenv("PTL_NID", "1;2", 1);
	setenv("PTL_PEER_TIMEOUT", "100s", 1);
	assert_int_equal(PtlInit(&count), PTL_OK);
	for (unsigned p = 0; p < 2; p++) {
		struct end *first = &ends[p][0];

		assert_int_equal(PtlNIInit(p, 7, &limits, NULL, &first->ni), PTL_OK);
		assert_int_equal(PtlGetId(first->ni, &ids[p]), PTL_OK);
		end_make(first);
		further_open(p);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	PtlFini();
	return 0;
}

static ptl_event_t event_next(const struct end *end)
{
	ptl_event_t event;

	assert_int_equal(PtlEQWait(end->eq, &event), PTL_OK);
	assert_int_equal(handle_interface(event.md_handle), handle_interface(end->ni));
	return event;
}

/* The next event of this kind. */
static ptl_event_t event_expect(const struct end *end, ptl_event_kind_t kind)
{
	ptl_event_t event;

	do
		event = event_next(end);
	while (event.type != kind);
	return event;
}

static void put(ptl_handle_md_t md, unsigned to, ptl_pt_index_t portal)
{
	assert_int_equal(PtlPut(md, PTL_ACK_REQ, ids[to], portal, 0, PUTS, 0, 0), PTL_OK);
}

/* Both processes put to each other and get from each other, in these spaces, all at once. */
static void exchange_begin(unsigned spaces, size_t length)
{
	for (unsigned p = 0; p < 2; p++)
		for (unsigned s = 0; s < 2; s++) {
			struct end *end = &ends[p][s];

			pattern(end->sent, length, p * 2 + s);
			pattern(end->offered, length, 4 + p * 2 + s);
			memset(end->placed, 0, LARGE);
			memset(end->fetched, 0, LARGE);
		}
	for (unsigned p = 0; p < 2; p++)
		for (unsigned s = 0; s < 2; s++) {
			struct end *end = &ends[p][s];

			if (!(spaces & 1u << s))
				continue;
			end->source = end_bind(end, end->sent, length);
			end->fetch = end_bind(end, end->fetched, length);
			put(end->source, !p, PORTAL);
			assert_int_equal(PtlGet(end->fetch, ids[!p], PORTAL, 0, GETS, 0), PTL_OK);
		}
}

/* Everything that an end sees of an exchange, each once, and whom it comes from. */
static void events_check(const struct end *end, unsigned process, size_t length)
{
	static const ptl_event_kind_t kinds[] = {PTL_EVENT_SEND_START, PTL_EVENT_SEND_END,
		PTL_EVENT_ACK, PTL_EVENT_PUT_START, PTL_EVENT_PUT_END, PTL_EVENT_GET_START,
		PTL_EVENT_GET_END, PTL_EVENT_REPLY_START, PTL_EVENT_REPLY_END};
	unsigned seen = 0, all = 0;
	ptl_event_t event;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		event = event_next(end);
		assert_int_equal(seen & 1u << event.type, 0);
		assert_int_equal(event.ni_fail_type, PTL_NI_OK);
		assert_int_equal(event.rlength, length);
		if (event.type == PTL_EVENT_PUT_END || event.type == PTL_EVENT_GET_END) {
			assert_int_equal(event.initiator.nid, ids[!process].nid);
			assert_int_equal(event.initiator.pid, ids[!process].pid);
		}
		seen |= 1u << event.type;
		all |= 1u << kinds[i];
	}
	assert_int_equal(seen, all);
	assert_int_equal(PtlEQGet(end->eq, &event), PTL_EQ_EMPTY);
}

static void memory_check(const char *memory, size_t length, bool moved, unsigned seed)
{
	static char wanted[LARGE];

	memset(wanted, 0, sizeof(wanted));
	if (moved)
		pattern(wanted, length, seed);
	assert_memory_equal(memory, wanted, sizeof(wanted));
}

static void exchange_end(unsigned spaces, size_t length)
{
	for (unsigned p = 0; p < 2; p++)
		for (unsigned s = 0; s < 2; s++)
			if (spaces & 1u << s)
				events_check(&ends[p][s], p, length);
	for (unsigned p = 0; p < 2; p++)
		for (unsigned s = 0; s < 2; s++) {
			struct end *end = &ends[p][s];
			bool moved = spaces & 1u << s;

			memory_check(end->placed, length, moved, (p ^ 1) * 2 + s);
			memory_check(end->fetched, length, moved, 4 + (p ^ 1) * 2 + s);
			if (!moved)
				continue;
			assert_int_equal(PtlMDUnlink(end->source), PTL_OK);
			assert_int_equal(PtlMDUnlink(end->fetch), PTL_OK);
		}
}

/* Once it has ended, all that was sent before has been accepted or dropped: messages from one
 * process to another start in order, whatever space they are of. */
static void exchange(unsigned spaces, size_t length)
{
	exchange_begin(spaces, length);
	exchange_end(spaces, length);
}

static unsigned long drops(const struct end *end)
{
	ptl_sr_value_t value = 0;

	assert_int_equal(PtlNIStatus(end->ni, PTL_SR_DROP_COUNT, &value), PTL_OK);
	return (unsigned long)value;
}

struct wanted {
	const char *name;
	uint64_t value;
};

static void counter_tell(void *context, const char *name, const char *help, uint64_t value)
{
	struct wanted *wanted = context;

	(void)help;
	if (strcmp(name, wanted->name) == 0)
		wanted->value = value;
}

static uint64_t counter(const struct end *end, const char *name)
{
	struct wanted wanted = {name, UINT64_MAX};

	assert_int_equal(interface_stats(&portals, end->ni, counter_tell, &wanted), ANSWER_OK);
	return wanted.value;
}

/* A put that is dropped at the other process. */
static void put_in_vain(unsigned process, unsigned space, ptl_pt_index_t portal)
{
	const struct end *end = &ends[process][space];
	ptl_handle_md_t md = end_bind(end, NULL, 0);

	put(md, !process, portal);
	event_expect(end, PTL_EVENT_SEND_END);
	assert_int_equal(PtlMDUnlink(md), PTL_OK);
}

static void spaces__exchange_at_once_each_in_memory_of_its_own(void **state)
{
	ptl_process_id_t id;

	(void)state;
	for (unsigned p = 0; p < 2; p++) {
		assert_int_equal(PtlGetId(ends[p][1].ni, &id), PTL_OK);
		assert_memory_equal(&id, &ids[p], sizeof(id));
		assert_ptr_equal(interfaces[handle_interface(ends[p][0].ni)].port,
			interfaces[handle_interface(ends[p][1].ni)].port);
	}
	for (unsigned spaces = 1; spaces <= BOTH; spaces++) {
		exchange(spaces, SMALL);
		exchange(spaces, LARGE);
	}
	for (unsigned p = 0; p < 2; p++)
		for (unsigned s = 0; s < 2; s++) {
			assert_int_equal(counter(&ends[p][s], "puts_received"), 4);
			assert_int_equal(counter(&ends[p][s], "gets_received"), 4);
			assert_int_equal(drops(&ends[p][s]), 0);
		}
}

static unsigned entries_attach(const struct end *end)
{
	ptl_handle_me_t me;
	unsigned count = 0;
	int code;

	while ((code = PtlMEAttach(end->ni, 1, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me)) ==
		PTL_OK)
		count++;
	assert_int_equal(code, PTL_NOSPACE);
	return count;
}

static void spaces__have_limits_of_their_own(void **state)
{
	ptl_handle_me_t me;

	(void)state;
	assert_int_equal(entries_attach(&ends[0][1]), 16 - 2);
	assert_int_equal(entries_attach(&ends[0][0]), 32 - 2);
	assert_int_equal(PtlMEAttach(ends[1][0].ni, PORTAL_FAR, anyone, 0, 0, PTL_RETAIN,
				 PTL_INS_AFTER, &me),
		PTL_OK);
	assert_int_equal(PtlMEAttach(ends[1][1].ni, PORTAL_FAR, anyone, 0, 0, PTL_RETAIN,
				 PTL_INS_AFTER, &me),
		PTL_INV_PTINDEX);
	put_in_vain(0, 0, PORTAL_FAR);
	put_in_vain(0, 1, PORTAL_FAR);
	exchange(BOTH, SMALL);
	assert_int_equal(counter(&ends[1][0], "dropped_no_match"), 1);
	assert_int_equal(counter(&ends[1][1], "dropped_no_portal"), 1);
	assert_int_equal(drops(&ends[1][0]), 1);
	assert_int_equal(drops(&ends[1][1]), 1);
}

static void spaces__have_access_control_of_their_own(void **state)
{
	const ptl_process_id_t nobody = {9, 9};

	(void)state;
	assert_int_equal(
		PtlACEntry(ends[1][1].ni, 0, nobody, PTL_UID_ANY, PTL_PT_INDEX_ANY), PTL_OK);
	put_in_vain(0, 1, PORTAL);
	exchange(1, SMALL);
	assert_int_equal(counter(&ends[1][1], "dropped_access_denied"), 1);
	assert_int_equal(drops(&ends[1][1]), 1);
	assert_int_equal(drops(&ends[1][0]), 0);
	assert_int_equal(
		PtlACEntry(ends[1][1].ni, 0, anyone, PTL_UID_ANY, PTL_PT_INDEX_ANY), PTL_OK);
	exchange(BOTH, SMALL);
	assert_int_equal(PtlACEntry(ends[1][1].ni, 3, anyone, PTL_UID_ANY, PTL_PT_INDEX_ANY),
		PTL_AC_INV_INDEX);
}

static void PtlNIFini__of_one_space_lets_the_other_go_on(void **state)
{
	struct end *left = &ends[0][1], *closed = &ends[1][1];
	ptl_handle_ni_t before = closed->ni;
	ptl_handle_md_t fetch;
	ptl_process_id_t id;
	ptl_event_t event;

	(void)state;
	exchange_begin(1, LARGE);
	assert_int_equal(PtlNIFini(closed->ni), PTL_OK);
	assert_int_equal(PtlNIFini(closed->ni), PTL_INV_NI);
	assert_int_equal(PtlGetId(closed->ni, &id), PTL_INV_NI);
	assert_int_equal(PtlEQGet(closed->eq, &event), PTL_INV_EQ);
	put_in_vain(0, 1, PORTAL);
	fetch = end_bind(left, left->fetched, SMALL);
	assert_int_equal(PtlGet(fetch, ids[1], PORTAL, 0, GETS, 0), PTL_OK);
	assert_int_equal(
		event_expect(left, PTL_EVENT_REPLY_FAIL).ni_fail_type, PTL_NI_UNDELIVERABLE);
	assert_int_equal(PtlMDUnlink(fetch), PTL_OK);
	exchange_end(1, LARGE);
	exchange(1, SMALL);
	assert_int_equal(counter(&ends[1][0], "dropped_no_space"), 2);
	assert_int_equal(drops(left), 0);

	further_open(1);
	assert_int_not_equal(closed->ni, before);
	assert_int_equal(PtlGetId(before, &id), PTL_INV_NI);
	exchange(BOTH, LARGE);
	assert_int_equal(counter(&ends[1][0], "dropped_no_space"), 2);
}

static void PtlNIFini__waits_until_what_a_space_has_sent_is_there(void **state)
{
	struct end *from = &ends[0][1];

	(void)state;
	pattern(from->sent, LARGE, 9);
	memset(ends[1][1].placed, 0, LARGE);
	put(end_bind(from, from->sent, LARGE), 1, PORTAL);
	assert_int_equal(PtlNIFini(from->ni), PTL_OK);
	memset(from->sent, 0, LARGE);
	event_expect(&ends[1][1], PTL_EVENT_PUT_END);
	memory_check(ends[1][1].placed, LARGE, true, 9);
	further_open(0);
	exchange(BOTH, SMALL);
}

static void *wait_for_event(void *eq)
{
	ptl_event_t event;

	return (void *)(intptr_t)PtlEQWait(*(ptl_handle_eq_t *)eq, &event);
}

/* Of this interface, while a thread waits for an event of the second space. */
static void close_awaited(ptl_handle_ni_t ni)
{
	struct end *end = &ends[0][1];
	const struct segment *segment = interfaces[handle_interface(end->ni)].segment;
	struct queue *queue = segment_queue(segment, handle_index(end->eq));
	pthread_t thread;
	void *code;

	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, &end->eq), 0);
	while (atomic_load(&queue->waiters) == 0)
		nap();
	assert_int_equal(PtlNIFini(ni), PTL_OK);
	pthread_join(thread, &code);
	assert_int_equal((intptr_t)code, PTL_INV_EQ);
}

static void PtlNIFini__ends_the_waits_in_the_space_alone(void **state)
{
	(void)state;
	close_awaited(ends[0][1].ni);
	exchange(1, SMALL);
}

static void PtlNIFini__of_the_first_space_closes_the_others(void **state)
{
	ptl_process_id_t id;

	(void)state;
	exchange(BOTH, LARGE);
	close_awaited(ends[0][0].ni);
	for (unsigned s = 0; s < 2; s++)
		assert_int_equal(PtlGetId(ends[0][s].ni, &id), PTL_INV_NI);
	assert_int_equal(PtlGetId(ends[1][1].ni, &id), PTL_OK);
	/* And a later life has them again. */
	assert_int_equal(PtlNIInit(0, 7, NULL, NULL, &ends[0][0].ni), PTL_OK);
	end_make(&ends[0][0]);
	further_open(0);
	exchange(BOTH, SMALL);
}

static void *close_slowly(void *ni)
{
	assert_int_equal(PtlNIFini(*(ptl_handle_ni_t *)ni), PTL_OK);
	return NULL;
}

static void PtlNIFini__of_a_space_holds_up_no_other_interface(void **state)
{
	const ptl_process_id_t silent = {9, 9};
	struct end *end = &ends[0][1];
	ptl_handle_md_t md = end_bind(end, end->sent, SMALL);
	uint32_t number = handle_interface(end->ni);
	ptl_handle_ni_t other;
	pthread_t thread;

	(void)state;
	assert_int_equal(PtlPut(md, PTL_NOACK_REQ, silent, PORTAL, 0, PUTS, 0, 0), PTL_OK);
	assert_int_equal(pthread_create(&thread, NULL, close_slowly, &end->ni), 0);
	while (atomic_load(&interfaces[number].segment))
		nap();
	assert_int_equal(PtlNIFini(ends[1][1].ni), PTL_OK);
	further_open(1);
	exchange(1, SMALL);
	library_lock();
	assert_true(interfaces[number].ending); /* for PTL_PEER_TIMEOUT, if nobody helps */
	library_unlock();
	assert_int_equal(interface_open_space(&portals, ends[0][0].ni,
				 &(struct space_choice){.number = 2}, &further_limits, &other),
		ANSWER_OK);
	assert_int_not_equal(handle_interface(other), number);
	assert_int_equal(PtlNIFini(ends[0][0].ni), PTL_OK);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(interfaces[number].ending);
	assert_int_equal(PtlNIInit(0, 7, NULL, NULL, &ends[0][0].ni), PTL_OK);
	end_make(&ends[0][0]);
	further_open(0);
	exchange(BOTH, SMALL);
}

static void interface_open_space__refuses_what_is_open_and_what_is_not(void **state)
{
	ptl_handle_ni_t ni = ends[0][0].ni, other;

	(void)state;
	assert_int_equal(interface_open_space(&portals, ni, &(struct space_choice){.number = 1},
				 &further_limits, &other),
		ANSWER_FAILED);
	assert_non_null(strstr(postern_last_error(), "space 1"));
	assert_int_equal(interface_open_space(&portals, ends[0][0].eq,
				 &(struct space_choice){.number = 2}, &further_limits, &other),
		ANSWER_GONE);
	/* The handle of a further one does as well as the first's. */
	assert_int_equal(
		interface_open_space(&portals, ends[0][1].ni,
			&(struct space_choice){.number = SPACES - 1}, &further_limits, &other),
		ANSWER_OK);
	exchange(BOTH, SMALL);
	assert_int_equal(PtlNIFini(other), PTL_OK);
	exchange(BOTH, SMALL);
}

static void postern_inspect__tells_of_each_space(void **state)
{
	static const char *const topics[] = {"ni", "queues", "poll", "port", "me", "md", "eq"};
	char text[8192];

	(void)state;
	for (unsigned i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
		for (unsigned s = 0; s < 2; s++)
			assert_true(postern_inspect(ends[0][s].ni, topics[i], 0, 0, text,
					    sizeof(text)) > 0);
	assert_true(postern_inspect(ends[0][1].ni, "ni", 0, 0, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "\"portals\": 4"));
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(spaces__exchange_at_once_each_in_memory_of_its_own),
		test(spaces__have_limits_of_their_own),
		test(spaces__have_access_control_of_their_own),
		test(PtlNIFini__of_one_space_lets_the_other_go_on),
		test(PtlNIFini__waits_until_what_a_space_has_sent_is_there),
		test(PtlNIFini__ends_the_waits_in_the_space_alone),
		test(PtlNIFini__of_the_first_space_closes_the_others),
		test(PtlNIFini__of_a_space_holds_up_no_other_interface),
		test(interface_open_space__refuses_what_is_open_and_what_is_not),
		test(postern_inspect__tells_of_each_space),
	};
	int failed;

	setenv("PTL_PROGRESS", "core", 1);
	failed = cmocka_run_group_tests_name("with a poll thread", tests, NULL, NULL);
	setenv("PTL_PROGRESS", "inline", 1);
	return failed + cmocka_run_group_tests_name("inline", tests, NULL, NULL);
}
