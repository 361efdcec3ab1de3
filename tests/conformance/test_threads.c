/* SPDX-License-Identifier: BSD-3-Clause */
/* test_threads.c - many threads at once (2.4): every function is atomic, all threads share all
 * handles; and MPI's race between searching the unexpected queue and posting a receive (5.3). */
#include "../nap.h"
#include "fixture.h"

#define THREADS         8
#define PUTS            (SANITIZED ? 1000u : 5000u)
#define thread_ok(call) thread_expect((call) == PTL_OK)

/* Threads that send, each from its own descriptor */

static ptl_handle_eq_t shared_eq;
static ptl_handle_md_t shared_md;
static ptl_handle_me_t shared_me;
static _Atomic unsigned counter;

static void put_own(unsigned number)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;

	if (!thread_ok(PtlEQAlloc(here.ni, 64, &eq)) ||
		!thread_ok(PtlMDBind(here.ni, region(NULL, 0, 0, eq), &md)))
		return;
	for (unsigned i = 0; i < PUTS; i++) {
		ptl_event_t event;

		if (!thread_ok(PtlPut(md, PTL_NOACK_REQ, there.id, PORTAL, 0, number, 0, i)))
			return;
		if (!thread_next(eq, &event) ||
			!thread_expect(event.type == PTL_EVENT_SEND_START) ||
			!thread_next(eq, &event) ||
			!thread_expect(event.type == PTL_EVENT_SEND_END))
			return;
	}
	thread_ok(PtlMDUnlink(md));
	thread_ok(PtlEQFree(eq));
}

static void many_threads__put_at_once_and_what_each_puts_arrives_in_its_order(void **state)
{
	ptl_md_t md =
		region(NULL, 0, PTL_MD_OP_PUT, queue_make(&there, (ptl_size_t)PUTS * THREADS * 2));
	unsigned next[THREADS] = {0};

	(void)state;
	target_of(&there, md, PTL_RETAIN, PTL_RETAIN);
	threads_run(THREADS, put_own);
	for (unsigned ended = 0; ended < PUTS * THREADS;) {
		ptl_event_t event = next_event(md.eventq);

		if (event.type == PTL_EVENT_PUT_START)
			assert_int_equal(event.hdr_data, next[event.match_bits]++);
		else
			ended++;
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(next[i], PUTS);
	assert_int_equal(drops(&there), 0);
}

#define SHARED_PUTS 1000

static void put_shared(unsigned number)
{
	int code;

	(void)number;
	do {
		code = PtlPut(shared_md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0);
		if (code == PTL_OK)
			atomic_fetch_add(&counter, 1);
	} while (code == PTL_OK);
	thread_expect(code == PTL_INV_MD);
}

static void threshold__of_one_descriptor_is_spent_exactly_once_by_many_threads(void **state)
{
	ptl_md_t from = limited(region(NULL, 0, 0, PTL_EQ_NONE), SHARED_PUTS);
	ptl_md_t to =
		region(NULL, 0, PTL_MD_OP_PUT, queue_make(&there, (ptl_size_t)SHARED_PUTS * 2));

	(void)state;
	target_of(&there, to, PTL_RETAIN, PTL_RETAIN);
	shared_md = region_bind(&here, from);
	atomic_store(&counter, 0);
	threads_run(THREADS, put_shared);
	assert_int_equal(atomic_load(&counter), SHARED_PUTS);
	for (unsigned ended = 0; ended < SHARED_PUTS;)
		ended += next_event(to.eventq).type == PTL_EVENT_PUT_END;
	fence(&here, &there);
	expect_no_event(to.eventq);
}

static unsigned char large[1 << 16];

static void get_own(unsigned number)
{
	static unsigned char places[THREADS][sizeof(large)];
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;

	if (!thread_ok(PtlEQAlloc(here.ni, 64, &eq)) ||
		!thread_ok(PtlMDBind(here.ni, region(places[number], sizeof(large), 0, eq), &md)))
		return;
	for (unsigned i = 0; i < 50; i++) {
		ptl_event_t event;

		memset(places[number], 0, sizeof(large));
		if (!thread_ok(PtlGet(md, there.id, PORTAL, 0, 0, 0)) || !thread_next(eq, &event) ||
			!thread_expect(event.type == PTL_EVENT_REPLY_START) ||
			!thread_next(eq, &event) ||
			!thread_expect(event.type == PTL_EVENT_REPLY_END) ||
			!thread_expect(memcmp(places[number], large, sizeof(large)) == 0))
			return;
	}
	thread_ok(PtlMDUnlink(md));
}

static void many_threads__get_at_once_and_each_gets_every_byte(void **state)
{
	(void)state;
	pattern_fill(large, sizeof(large), 11);
	target_of(&there,
		region(large, sizeof(large), PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
		PTL_RETAIN, PTL_RETAIN);
	threads_run(THREADS, get_own);
}

/* Threads that make and unmake */

static void make_and_unmake(unsigned number)
{
	for (unsigned i = 0; i < 300; i++) {
		const struct node *node = i % 2 == 0 ? &here : &there;
		ptl_handle_eq_t eq;
		ptl_handle_me_t me, next;
		ptl_handle_md_t md, bound;
		ptl_handle_ni_t ni;
		ptl_md_t now;

		if (!thread_ok(PtlEQAlloc(node->ni, 1 + i % 100, &eq)) ||
			!thread_ok(PtlMEAttach(node->ni, PORTAL, ANY_PROCESS, number, 0, PTL_RETAIN,
				i % 3 == 0 ? PTL_INS_BEFORE : PTL_INS_AFTER, &me)) ||
			!thread_ok(PtlMEInsert(
				me, ANY_PROCESS, number, 0, PTL_UNLINK, PTL_INS_AFTER, &next)) ||
			!thread_ok(PtlMDAttach(next, region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN,
				PTL_RETAIN, &md)) ||
			!thread_ok(PtlMDBind(node->ni, region(NULL, 0, 0, eq), &bound)) ||
			!thread_ok(PtlACEntry(node->ni, 1, ANY_PROCESS, number, PORTAL)))
			return;
		thread_expect(PtlNIHandle(md, &ni) == PTL_OK && ni == node->ni);
		thread_expect(
			PtlMDUpdate(md, &now, NULL, PTL_EQ_NONE) == PTL_OK && now.eventq == eq);
		thread_ok(PtlMDUnlink(bound));
		thread_expect(PtlMDUnlink(bound) == PTL_INV_MD);
		thread_ok(PtlMDUnlink(md));
		thread_expect(PtlMEUnlink(next) == PTL_INV_ME);
		thread_ok(PtlMEUnlink(me));
		thread_ok(PtlEQFree(eq));
	}
}

static void many_threads__make_and_unmake_objects_without_meeting_those_of_others(void **state)
{
	(void)state;
	threads_run(THREADS, make_and_unmake);
	fence(&here, &there);
}

static void unlink_shared(unsigned number)
{
	int codes[3];

	(void)number;
	codes[0] = PtlMDUnlink(shared_md);
	codes[1] = PtlMEUnlink(shared_me);
	codes[2] = PtlEQFree(shared_eq);
	thread_expect(codes[0] == PTL_OK || codes[0] == PTL_INV_MD);
	thread_expect(codes[1] == PTL_OK || codes[1] == PTL_INV_ME);
	thread_expect(codes[2] == PTL_OK || codes[2] == PTL_INV_EQ);
	for (size_t i = 0; i < 3; i++)
		if (codes[i] == PTL_OK)
			atomic_fetch_add(&counter, i == 0 ? 1 : i == 1 ? 100 : 10000);
}

static void object__unlinked_by_many_threads_is_unlinked_by_one_of_them(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		shared_eq = queue_make(&here, 4);
		shared_me = entry_make(&here, 0, 0, PTL_RETAIN);
		shared_md = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));
		atomic_store(&counter, 0);
		threads_run(THREADS, unlink_shared);
		assert_int_equal(atomic_load(&counter), 10101);
	}
}

static void attach_shared(unsigned number)
{
	ptl_handle_md_t md;
	int code = PtlMDAttach(
		shared_me, region(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, PTL_RETAIN, &md);

	(void)number;
	thread_expect(code == PTL_OK || code == PTL_INUSE);
	if (code == PTL_OK)
		atomic_fetch_add(&counter, 1);
}

static void entry__to_which_many_threads_attach_gets_one_descriptor(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		shared_me = entry_make(&here, 0, 0, PTL_RETAIN);
		atomic_store(&counter, 0);
		threads_run(THREADS, attach_shared);
		assert_int_equal(atomic_load(&counter), 1);
		assert_ok(PtlMEUnlink(shared_me));
	}
}

static void open_shared(unsigned number)
{
	ptl_ni_limits_t limits;
	ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
	int code = PtlNIInit(0, PTL_PID_ANY, NULL, &limits, &ni);

	(void)number;
	thread_expect(code == PTL_OK || code == PTL_INIT_DUP);
	if (code == PTL_OK) {
		here.ni = ni;
		here.limits = limits;
		here.open = true;
		atomic_fetch_add(&counter, 1);
	}
}

static void ptl_ni_init__by_many_threads_opens_the_interface_once(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		atomic_store(&counter, 0);
		memset(&here, 0, sizeof(here));
		threads_run(THREADS, open_shared);
		assert_int_equal(atomic_load(&counter), 1);
		assert_ok(PtlGetId(here.ni, &here.id));
		fence(&here, &here);
		node_close(&here);
	}
}

/* Threads that read one queue */

#define SHARED_EVENTS (SANITIZED ? 4000u : 20000u)

static _Atomic unsigned char seen[SHARED_EVENTS + 1][2];
static _Atomic bool stop_reading;

static void read_shared(unsigned number)
{
	if (number == 0) {
		ptl_handle_md_t md;

		thread_ok(PtlMDBind(here.ni, region(NULL, 0, 0, PTL_EQ_NONE), &md));
		for (unsigned i = 0; i < SHARED_EVENTS; i++)
			thread_ok(PtlPut(md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, i));
		while (atomic_load(&counter) < SHARED_EVENTS * 2)
			nap();
		/* Readers may be waiting: one message wakes two of them at most. */
		atomic_store(&stop_reading, true);
		for (unsigned i = 0; i < THREADS; i++)
			thread_ok(PtlPut(
				md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, SHARED_EVENTS));
		return;
	}
	while (!atomic_load(&stop_reading)) {
		ptl_event_t event;
		int code = number % 2 == 0 ? PtlEQGet(shared_eq, &event)
					   : PtlEQWait(shared_eq, &event);

		if (code == PTL_EQ_EMPTY && number % 2 == 0) {
			nap();
			continue;
		}
		if (!thread_expect(code == PTL_OK) || event.hdr_data >= SHARED_EVENTS)
			continue;
		if (thread_expect(
			    event.type == PTL_EVENT_PUT_START || event.type == PTL_EVENT_PUT_END))
			thread_expect(
				atomic_fetch_add(
					&seen[event.hdr_data][event.type == PTL_EVENT_PUT_END],
					1) == 0);
		atomic_fetch_add(&counter, 1);
	}
}

static void events__of_one_queue_are_each_read_by_exactly_one_of_many_threads(void **state)
{
	(void)state;
	shared_eq = queue_make(&there, (ptl_size_t)SHARED_EVENTS * 2 + THREADS * 2);
	target_of(&there, region(NULL, 0, PTL_MD_OP_PUT, shared_eq), PTL_RETAIN, PTL_RETAIN);
	atomic_store(&counter, 0);
	atomic_store(&stop_reading, false);
	memset((void *)seen, 0, sizeof(seen));
	threads_run(6, read_shared);
	assert_int_equal(atomic_load(&counter), SHARED_EVENTS * 2);
}

/* Lists that change under fire */

static _Atomic unsigned delivered;
static _Atomic bool stop_changing;

static void fire_or_change(unsigned number)
{
	if (number < 3) {
		ptl_handle_md_t md;

		thread_ok(PtlMDBind(here.ni, region(NULL, 0, 0, PTL_EQ_NONE), &md));
		for (unsigned i = 0; i < PUTS; i++)
			thread_ok(PtlPut(md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0));
		atomic_fetch_add(&counter, 1);
		return;
	}
	while (atomic_load(&counter) < 3 || !atomic_load(&stop_changing)) {
		ptl_handle_me_t me;
		ptl_handle_md_t md;
		ptl_event_t event;
		int code;

		if (!thread_ok(PtlMEAttach(
			    there.ni, PORTAL, ANY_PROCESS, 0, 0, PTL_UNLINK, PTL_INS_AFTER, &me)) ||
			!thread_ok(PtlMDAttach(me, region(NULL, 0, PTL_MD_OP_PUT, shared_eq),
				PTL_RETAIN, PTL_RETAIN, &md)))
			return;
		if (atomic_load(&counter) == 3)
			atomic_store(&stop_changing, true);
		while ((code = PtlMDUnlink(md)) == PTL_MD_INUSE)
			nap();
		if (!thread_expect(code == PTL_OK))
			return;
		while ((code = PtlEQGet(shared_eq, &event)) == PTL_OK)
			if (event.type == PTL_EVENT_PUT_START)
				atomic_fetch_add(&delivered, 1);
		thread_expect(code == PTL_EQ_EMPTY);
	}
}

static void put__meets_an_entry_that_comes_and_goes_either_wholly_or_not_at_all(void **state)
{
	ptl_event_t event;

	(void)state;
	shared_eq = queue_make(&there, (ptl_size_t)PUTS * 3 * 2);
	atomic_store(&counter, 0);
	atomic_store(&delivered, 0);
	atomic_store(&stop_changing, false);
	threads_run(5, fire_or_change);
	fence(&here, &there);
	while (PtlEQGet(shared_eq, &event) == PTL_OK)
		if (event.type == PTL_EVENT_PUT_START)
			atomic_fetch_add(&delivered, 1);
	assert_int_equal(drops(&there) + atomic_load(&delivered), PUTS * 3);
}

/* MPI's race. Thread 0 receives as MPI does; the others send messages tagged with their number,
 * each carrying its place in the order in the header data and in the memory. */

#define SENDERS  3
#define MESSAGES (SANITIZED ? 800u : 4000u)
#define AHEAD    16 /* messages that a sender has under way at most */

struct unexpected {
	ptl_seq_t link;
	ptl_match_bits_t tag;
	ptl_size_t offset;
	bool ended;
	bool taken;
};

static struct unexpected unexpected[SENDERS * MESSAGES];
static unsigned unexpected_count, expected_count;
static uint64_t unexpected_memory[SENDERS * MESSAGES];
static ptl_handle_eq_t unexpected_eq, posted_eq;
static ptl_handle_me_t boundary;

static void mpi_send(unsigned tag)
{
	static uint64_t values[SENDERS + 1][AHEAD];
	ptl_handle_md_t mds[AHEAD];
	bool busy[AHEAD] = {false};
	ptl_handle_eq_t eq;

	if (!thread_ok(PtlEQAlloc(there.ni, AHEAD * 2, &eq)))
		return;
	for (unsigned slot = 0; slot < AHEAD; slot++)
		thread_ok(PtlMDBind(
			there.ni, region(&values[tag][slot], sizeof(uint64_t), 0, eq), &mds[slot]));
	for (unsigned i = 0; i < MESSAGES; i++) {
		unsigned slot = i % AHEAD;

		while (busy[slot]) {
			ptl_event_t event;

			if (!thread_next(eq, &event))
				return;
			for (unsigned s = 0; s < AHEAD && event.type == PTL_EVENT_SEND_END; s++)
				busy[s] = busy[s] && event.md_handle != mds[s];
		}
		values[tag][slot] = i;
		busy[slot] = true;
		if (!thread_ok(PtlPut(mds[slot], PTL_NOACK_REQ, here.id, PORTAL, 0, tag, 0, i)))
			return;
	}
}

/* Takes one event from the unexpected queue. Returns false if the queue is empty. */
static bool unexpected_poll(void)
{
	ptl_event_t event;
	int code = PtlEQGet(unexpected_eq, &event);

	if (code == PTL_EQ_EMPTY)
		return false;
	thread_ok(code);
	if (event.type == PTL_EVENT_PUT_START) {
		unexpected[unexpected_count++] = (struct unexpected){
			event.link, event.match_bits, event.offset, false, false};
		return true;
	}
	thread_expect(event.type == PTL_EVENT_PUT_END);
	for (unsigned i = unexpected_count; i-- > 0;) {
		if (unexpected[i].link == event.link) {
			unexpected[i].ended = true;
			return true;
		}
	}
	return thread_check(false, "an end follows a start", __FILE__, __LINE__);
}

/* The first unexpected message with this tag that was not taken yet, once it is all there. */
static bool unexpected_take(unsigned tag, uint64_t *value)
{
	static unsigned first; /* all before were taken */

	while (first < unexpected_count && unexpected[first].taken)
		first++;
	for (unsigned i = first; i < unexpected_count; i++) {
		if (unexpected[i].taken || unexpected[i].tag != tag)
			continue;
		while (!unexpected[i].ended)
			if (!unexpected_poll())
				nap();
		unexpected[i].taken = true;
		*value = unexpected_memory[unexpected[i].offset / sizeof(uint64_t)];
		return true;
	}
	return false;
}

static bool mpi_receive(unsigned tag, uint64_t *value)
{
	ptl_md_t md = region(value, sizeof(*value), PTL_MD_OP_PUT, posted_eq);
	ptl_handle_me_t me;
	ptl_handle_md_t handle;
	ptl_event_t event;
	int code;

	if (unexpected_take(tag, value))
		return true;
	md.threshold = 0;
	if (!thread_ok(
		    PtlMEInsert(boundary, ANY_PROCESS, tag, 0, PTL_UNLINK, PTL_INS_BEFORE, &me)) ||
		!thread_ok(PtlMDAttach(me, md, PTL_UNLINK, PTL_RETAIN, &handle)))
		return false;
	md.threshold = 1;
	do {
		while (unexpected_poll())
			;
		if (unexpected_take(tag, value))
			return thread_ok(PtlMEUnlink(me));
		code = PtlMDUpdate(handle, NULL, &md, unexpected_eq);
	} while (code == PTL_NOUPDATE);
	if (!thread_ok(code))
		return false;
	expected_count++;
	return thread_next(posted_eq, &event) && thread_expect(event.type == PTL_EVENT_PUT_START) &&
	       thread_next(posted_eq, &event) && thread_expect(event.type == PTL_EVENT_PUT_END) &&
	       thread_next(posted_eq, &event) && thread_expect(event.type == PTL_EVENT_UNLINK);
}

static void mpi(unsigned number)
{
	unsigned received[SENDERS + 1] = {0}, tag = 1;
	uint64_t value;

	if (number != 0) {
		mpi_send(number);
		return;
	}
	for (unsigned i = 0; i < SENDERS * MESSAGES; i++) {
		tag = (tag * 7 + i) % SENDERS + 1; /* any of those that still send */
		while (received[tag] == MESSAGES)
			tag = tag % SENDERS + 1;
		value = UINT64_MAX;
		if (!mpi_receive(tag, &value) || !thread_expect(value == received[tag]))
			return;
		received[tag]++;
	}
}

static void ptl_md_update__lets_mpi_post_a_receive_without_losing_or_reordering_a_message(
	void **state)
{
	ptl_handle_me_t me;

	(void)state;
	unexpected_eq = queue_make(&here, (ptl_size_t)SENDERS * MESSAGES * 2);
	posted_eq = queue_make(&here, EQ_ROOM);
	boundary =
		entry_make(&here, 0, EVERY_BIT, PTL_RETAIN); /* has no descriptor: takes nothing */
	me = entry_make(&here, 0, EVERY_BIT, PTL_RETAIN);
	region_attach(me,
		region(unexpected_memory, sizeof(unexpected_memory), PTL_MD_OP_PUT, unexpected_eq),
		PTL_RETAIN, PTL_RETAIN);
	unexpected_count = expected_count = 0;
	threads_run(SENDERS + 1, mpi);
	assert_int_equal(unexpected_count + expected_count, SENDERS * MESSAGES);
	assert_int_equal(drops(&here), 0);
	expect_no_event(unexpected_eq);
	expect_no_event(posted_eq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(many_threads__put_at_once_and_what_each_puts_arrives_in_its_order),
		TEST_BOTH(threshold__of_one_descriptor_is_spent_exactly_once_by_many_threads),
		TEST_BOTH(many_threads__get_at_once_and_each_gets_every_byte),
		TEST_BOTH(many_threads__make_and_unmake_objects_without_meeting_those_of_others),
		TEST_BOTH(object__unlinked_by_many_threads_is_unlinked_by_one_of_them),
		TEST_BOTH(entry__to_which_many_threads_attach_gets_one_descriptor),
		TEST_BARE(ptl_ni_init__by_many_threads_opens_the_interface_once),
		TEST_BOTH(events__of_one_queue_are_each_read_by_exactly_one_of_many_threads),
		TEST_BOTH(put__meets_an_entry_that_comes_and_goes_either_wholly_or_not_at_all),
		TEST_BOTH(
			ptl_md_update__lets_mpi_post_a_receive_without_losing_or_reordering_a_message),
	};

	return cmocka_run_group_tests_name("threads", tests, group_open, group_close);
}
