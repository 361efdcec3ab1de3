/* SPDX-License-Identifier: BSD-3-Clause */
/* test_events.c - events (3.9): which are logged, in which order, and every member of each kind. */
#include "../nap.h"
#include "fixture.h"

#define BITS   0x0123456789abcdefull
#define HEADER 0xfedcba9876543210ull
#define OFFSET 24
#define LENGTH 16

static char from[64];
static char to[64];

/* A put or a get between two descriptors that use every field, and what both sides must be told of
 * it. */
struct operation {
	struct end target;
	struct end source;
	ptl_md_t target_md;
	ptl_md_t source_md;
	ptl_uid_t uid;
};

static struct operation operation_make(void)
{
	struct operation o;

	o.target_md = (ptl_md_t){to, sizeof(to), 5, 33,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, to + 1,
		queue_make(&there, EQ_ROOM)};
	o.target.eq = o.target_md.eventq;
	o.target.me = entry_make(&there, BITS, 0, PTL_RETAIN);
	o.target.md = region_attach(o.target.me, o.target_md, PTL_RETAIN, PTL_RETAIN);
	o.source_md = (ptl_md_t){
		from, LENGTH, 9, 44, PTL_MD_TRUNCATE, from + 1, queue_make(&here, EQ_ROOM)};
	o.source.eq = o.source_md.eventq;
	o.source.md = region_bind(&here, o.source_md);
	assert_ok(PtlGetUid(here.ni, &o.uid));
	return o;
}

static void snapshot_is(const ptl_event_t *event, const ptl_md_t *md, int threshold)
{
	assert_ptr_equal(event->mem_desc.start, md->start);
	assert_int_equal(event->mem_desc.length, md->length);
	assert_int_equal(event->mem_desc.max_offset, md->max_offset);
	assert_int_equal(event->mem_desc.options, md->options);
	assert_ptr_equal(event->mem_desc.user_ptr, md->user_ptr);
	assert_true(event->mem_desc.eventq == md->eventq);
	assert_int_equal(event->mem_desc.threshold, threshold);
}

static void process_is(ptl_process_id_t process, const struct node *node)
{
	assert_int_equal(process.nid, node->id.nid);
	assert_int_equal(process.pid, node->id.pid);
}

static void request_is(const ptl_event_t *event, ptl_handle_md_t md, ptl_size_t offset)
{
	assert_int_equal(event->portal, PORTAL);
	assert_int_equal(event->match_bits, BITS);
	assert_int_equal(event->rlength, LENGTH);
	assert_int_equal(event->mlength, LENGTH);
	assert_int_equal(event->offset, offset);
	assert_true(event->md_handle == md);
	assert_int_equal(event->ni_fail_type, PTL_NI_OK);
}

static void put_events__at_the_target_tell_everything_of_the_request(void **state)
{
	struct operation o = operation_make();

	(void)state;
	assert_ok(PtlPut(o.source.md, PTL_NOACK_REQ, there.id, PORTAL, 0, BITS, OFFSET, HEADER));
	for (int i = 0; i < 2; i++) {
		ptl_event_t event =
			expect_event(o.target.eq, i == 0 ? PTL_EVENT_PUT_START : PTL_EVENT_PUT_END);

		process_is(event.initiator, &here);
		assert_int_equal(event.uid, o.uid);
		assert_int_equal(event.hdr_data, HEADER);
		request_is(&event, o.target.md, OFFSET);
		if (i == 1)
			snapshot_is(&event, &o.target_md, 4);
	}
}

static void get_events__at_the_target_tell_everything_of_the_request(void **state)
{
	struct operation o = operation_make();

	(void)state;
	assert_ok(PtlGet(o.source.md, there.id, PORTAL, 0, BITS, OFFSET));
	for (int i = 0; i < 2; i++) {
		ptl_event_t event =
			expect_event(o.target.eq, i == 0 ? PTL_EVENT_GET_START : PTL_EVENT_GET_END);

		process_is(event.initiator, &here);
		assert_int_equal(event.uid, o.uid);
		request_is(&event, o.target.md, OFFSET);
		if (i == 1)
			snapshot_is(&event, &o.target_md, 4);
	}
}

static void send_events__tell_the_own_process_and_the_request(void **state)
{
	struct operation o = operation_make();

	(void)state;
	assert_ok(PtlPut(o.source.md, PTL_NOACK_REQ, there.id, PORTAL, 0, BITS, OFFSET, HEADER));
	for (int i = 0; i < 2; i++) {
		ptl_event_t event = expect_event(
			o.source.eq, i == 0 ? PTL_EVENT_SEND_START : PTL_EVENT_SEND_END);

		process_is(event.initiator, &here);
		assert_int_equal(event.uid, o.uid);
		request_is(&event, o.source.md, 0);
		snapshot_is(&event, &o.source_md, 8);
	}
}

static void ack_event__tells_the_target_and_what_was_moved_where(void **state)
{
	struct operation o = operation_make();
	ptl_event_t event;

	(void)state;
	assert_ok(PtlPut(o.source.md, PTL_ACK_REQ, there.id, PORTAL, 0, BITS, OFFSET, HEADER));
	expect_pair(o.source.eq, PTL_EVENT_SEND_START);
	event = expect_event(o.source.eq, PTL_EVENT_ACK);
	process_is(event.initiator, &there);
	request_is(&event, o.source.md, OFFSET);
	snapshot_is(&event, &o.source_md, 7);
}

static void reply_events__tell_the_target_and_that_the_data_is_at_the_start(void **state)
{
	struct operation o = operation_make();

	(void)state;
	assert_ok(PtlGet(o.source.md, there.id, PORTAL, 0, BITS, OFFSET));
	for (int i = 0; i < 2; i++) {
		ptl_event_t event = expect_event(
			o.source.eq, i == 0 ? PTL_EVENT_REPLY_START : PTL_EVENT_REPLY_END);

		process_is(event.initiator, &there);
		request_is(&event, o.source.md, 0);
		if (i == 1)
			snapshot_is(&event, &o.source_md, 8);
	}
}

static void match_bits__are_those_of_the_request_also_where_the_entry_ignores_some(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);
	const ptl_match_bits_t bits[] = {0, 1, UINT64_MAX, 1ull << 63, BITS};

	(void)state;
	for (size_t i = 0; i < COUNT(bits); i++) {
		put_acked(source.md, &there, bits[i]);
		assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).match_bits, bits[i]);
		assert_int_equal(expect_pair(source.eq, PTL_EVENT_SEND_START).match_bits, bits[i]);
		assert_int_equal(expect_event(source.eq, PTL_EVENT_ACK).match_bits, bits[i]);
	}
}

static void offset__is_the_local_one_where_the_descriptor_keeps_it(void **state)
{
	struct end target = target_make(&there, to, sizeof(to), PTL_MD_OP_PUT),
		   source = source_make(&here, from, 8);

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_ok(PtlPut(source.md, PTL_ACK_REQ, there.id, PORTAL, 0, 0, 99, 0));
		assert_int_equal(expect_event(target.eq, PTL_EVENT_PUT_START).offset, i * 8);
		assert_int_equal(expect_event(target.eq, PTL_EVENT_PUT_END).offset, i * 8);
		expect_pair(source.eq, PTL_EVENT_SEND_START);
		assert_int_equal(expect_event(source.eq, PTL_EVENT_ACK).offset, 99);
	}
}

static void start__is_its_own_link_and_end_has_the_same(void **state)
{
	struct operation o = operation_make();
	const ptl_event_kind_t starts[] = {PTL_EVENT_SEND_START, PTL_EVENT_REPLY_START};
	ptl_event_t start, end;

	(void)state;
	assert_ok(PtlPut(o.source.md, PTL_NOACK_REQ, there.id, PORTAL, 0, BITS, 0, 0));
	start = expect_event(o.source.eq, starts[0]);
	end = expect_event(o.source.eq, PTL_EVENT_SEND_END);
	assert_true(start.link == start.sequence);
	assert_true(end.link == start.sequence);
	assert_true(end.sequence != start.sequence);
	start = expect_event(o.target.eq, PTL_EVENT_PUT_START);
	end = expect_event(o.target.eq, PTL_EVENT_PUT_END);
	assert_true(start.link == start.sequence);
	assert_true(end.link == start.sequence);
	assert_ok(PtlGet(o.source.md, there.id, PORTAL, 0, BITS, 0));
	start = expect_event(o.source.eq, starts[1]);
	end = expect_event(o.source.eq, PTL_EVENT_REPLY_END);
	assert_true(start.link == start.sequence);
	assert_true(end.link == start.sequence);
	start = expect_event(o.target.eq, PTL_EVENT_GET_START);
	end = expect_event(o.target.eq, PTL_EVENT_GET_END);
	assert_true(start.link == start.sequence);
	assert_true(end.link == start.sequence);
}

static void link__tells_apart_operations_that_run_at_once(void **state)
{
	enum { PUTS = 8 };
	const size_t length = 1 << 20;
	char *data = calloc(1, length), *place = calloc(1, length);
	struct end target =
		target_make(&there, place, length, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
	struct end source = source_make(&here, data, length);
	ptl_hdr_data_t running[PUTS];
	ptl_seq_t links[PUTS];
	unsigned started = 0, ended = 0;

	(void)state;
	assert_true(data != NULL && place != NULL);
	for (unsigned i = 0; i < PUTS; i++)
		assert_ok(PtlPut(source.md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, i));
	while (ended < PUTS) {
		ptl_event_t event = next_event(target.eq);

		if (event.type == PTL_EVENT_PUT_START) {
			running[started] = event.hdr_data;
			links[started++] = event.link;
			continue;
		}
		ended++;
		for (unsigned i = 0; i < started; i++)
			assert_int_equal(event.link == links[i], event.hdr_data == running[i]);
	}
	for (ended = 0; ended < PUTS;)
		ended += next_event(source.eq).type == PTL_EVENT_SEND_END;
	free(data);
	free(place);
}

static void sequence__is_different_for_each_event_of_a_queue(void **state)
{
	enum { PUTS = 40 };
	ptl_handle_eq_t eq = queue_make(&here, (ptl_size_t)PUTS * 6);
	ptl_seq_t seen[PUTS * 6];
	ptl_handle_md_t md = region_bind(&here, region(NULL, 0, 0, eq));
	size_t count = 0;
	unsigned ended = 0;

	(void)state;
	target_of(&here, region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
	for (int i = 0; i < PUTS; i++)
		put_acked(md, &here, 0);
	while (ended < PUTS * 3) { /* SEND_END, PUT_END, ACK */
		ptl_event_t event = next_event(eq);

		ended += event.type == PTL_EVENT_SEND_END || event.type == PTL_EVENT_PUT_END ||
			 event.type == PTL_EVENT_ACK;
		for (size_t i = 0; i < count; i++)
			assert_true(seen[i] != event.sequence);
		seen[count++] = event.sequence;
	}
	assert_int_equal(count, PUTS * 5);
}

static void sequence__grows_from_event_to_event(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);
	ptl_seq_t last = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		ptl_event_t event;

		put_to(source.md, &there, 0);
		event = expect_event(target.eq, PTL_EVENT_PUT_START);
		assert_true(i == 0 || event.sequence > last);
		last = event.sequence;
		event = expect_event(target.eq, PTL_EVENT_PUT_END);
		assert_true(event.sequence > last);
		last = event.sequence;
	}
}

static void put_end__means_that_all_the_data_is_in_place(void **state)
{
	const size_t length = 4 << 20;
	unsigned char *data = malloc(length), *place = malloc(length);
	struct end target, source;

	(void)state;
	assert_true(data != NULL && place != NULL);
	target = target_make(&there, place, length, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
	source = source_make(&here, data, length);
	for (unsigned i = 0; i < 5; i++) {
		pattern_fill(data, length, i);
		put_to(source.md, &there, 0);
		expect_pair(target.eq, PTL_EVENT_PUT_START);
		assert_true(pattern_is(place, length, i));
		memset(place, 0, length);
		expect_pair(source.eq, PTL_EVENT_SEND_START);
		assert_true(bytes_are(place, length, 0)); /* it is not touched again */
	}
	free(data);
	free(place);
}

static void get_end__means_that_the_memory_may_be_freed(void **state)
{
	enum { LENGTH_OF_GET = 300000 };
	unsigned char *place = malloc(LENGTH_OF_GET);
	struct end source = source_make(&here, place, LENGTH_OF_GET);

	(void)state;
	assert_true(place != NULL);
	for (unsigned i = 0; i < 20; i++) {
		unsigned char *data = malloc(LENGTH_OF_GET);
		struct end target = target_make(&there, data, LENGTH_OF_GET, PTL_MD_OP_GET);

		pattern_fill(data, LENGTH_OF_GET, i);
		get_from(source.md, &there, 0);
		expect_pair(target.eq, PTL_EVENT_GET_START);
		memset(data, 0, LENGTH_OF_GET);
		free(data);
		assert_ok(PtlMEUnlink(target.me));
		assert_ok(PtlEQFree(target.eq));
		expect_pair(source.eq, PTL_EVENT_REPLY_START);
		assert_true(pattern_is(place, LENGTH_OF_GET, i));
	}
	free(place);
}

/* A program that has read that an operation ended is not told that it is pending. */
static void end__read_at_the_target_means_that_descriptor_and_entry_can_go_at_once(void **state)
{
	struct end source = source_make(&here, from, 8);

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct end target = target_make(&there, to, 8, PTL_MD_OP_PUT | PTL_MD_OP_GET);

		if (i % 2 == 0) {
			put_to(source.md, &there, 0);
			expect_pair(target.eq, PTL_EVENT_PUT_START);
		} else {
			get_from(source.md, &there, 0);
			expect_pair(target.eq, PTL_EVENT_GET_START);
		}
		if (i % 4 < 2)
			assert_ok(PtlMDUnlink(target.md));
		assert_ok(PtlMEUnlink(target.me));
		assert_ok(PtlEQFree(target.eq));
	}
}

static void send_end__means_that_the_descriptor_can_go_at_once(void **state)
{
	(void)state;
	target_make(&there, to, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
	for (int i = 0; i < 300; i++) {
		struct end source = source_make(&here, from, 8);

		put_to(source.md, &there, 0);
		expect_pair(source.eq, PTL_EVENT_SEND_START);
		assert_ok(PtlMDUnlink(source.md));
		assert_ok(PtlEQFree(source.eq));
	}
}

static void ack__means_that_the_descriptor_can_go_at_once(void **state)
{
	(void)state;
	target_make(&there, to, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
	for (int i = 0; i < 300; i++) {
		struct end source = source_make(&here, from, 8);

		put_acked(source.md, &there, 0);
		expect_pair(source.eq, PTL_EVENT_SEND_START);
		expect_event(source.eq, PTL_EVENT_ACK);
		assert_ok(PtlMDUnlink(source.md));
		assert_ok(PtlEQFree(source.eq));
	}
}

static void reply_end__means_that_the_descriptor_can_go_at_once(void **state)
{
	(void)state;
	target_make(&there, to, 8, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
	for (int i = 0; i < 300; i++) {
		struct end source = source_make(&here, from, 8);

		get_from(source.md, &there, 0);
		expect_pair(source.eq, PTL_EVENT_REPLY_START);
		assert_ok(PtlMDUnlink(source.md));
		assert_ok(PtlEQFree(source.eq));
	}
}

static void ack__whose_descriptor_is_gone_is_dropped_and_counted(void **state)
{
	enum { PUTS = 200 };
	unsigned acks = 0;

	(void)state;
	target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	for (int i = 0; i < PUTS;
		i++) { /* the ack is logged before the descriptor goes, or dropped after */
		struct end source = source_make(&here, NULL, 0);
		ptl_event_t event;

		put_acked(source.md, &there, 0);
		expect_pair(source.eq, PTL_EVENT_SEND_START);
		assert_ok(PtlMDUnlink(source.md));
		if (PtlEQGet(source.eq, &event) == PTL_OK) {
			assert_int_equal(event.type, PTL_EVENT_ACK);
			acks++;
		}
		assert_ok(PtlEQFree(source.eq));
	}
	fence(&here, &there);
	assert_int_equal(drops(&here) + acks, PUTS);
	assert_int_equal(drops(&there), 0);
}

static void ack__for_a_handle_used_again_is_not_taken_for_the_new_object(void **state)
{
	enum { PUTS = 200 };
	ptl_handle_eq_t eq = queue_make(&here, (ptl_size_t)PUTS * 3);
	ptl_handle_md_t old[PUTS];

	(void)state;
	target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	for (int i = 0; i < PUTS; i++) {
		old[i] = region_bind(&here, region(NULL, 0, 0, eq));
		put_acked(old[i], &there, 0);
		while (PtlMDUnlink(old[i]) == PTL_MD_INUSE)
			nap();
	}
	fence(&here, &there);
	for (int i = 0; i < PUTS * 3; i++) {
		ptl_event_t event;
		bool known = false;

		if (PtlEQGet(eq, &event) != PTL_OK)
			break;
		for (int j = 0; j < PUTS && !known; j++)
			known = event.md_handle == old[j];
		assert_true(known);
		assert_ptr_equal(event.mem_desc.start, NULL);
	}
}

static void both_ends__may_log_to_one_queue(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_handle_md_t source = region_bind(&here, region(NULL, 0, 0, eq));
	struct end target =
		target_of(&here, region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
	unsigned seen = 0;

	(void)state;
	put_acked(source, &here, 0);
	for (int i = 0; i < 5; i++) {
		ptl_event_t event = next_event(eq);
		bool at_target =
			event.type == PTL_EVENT_PUT_START || event.type == PTL_EVENT_PUT_END;

		assert_true(event.md_handle == (at_target ? target.md : source));
		seen |= 1u << event.type;
	}
	assert_int_equal(seen, 1u << PTL_EVENT_SEND_START | 1u << PTL_EVENT_SEND_END |
				       1u << PTL_EVENT_ACK | 1u << PTL_EVENT_PUT_START |
				       1u << PTL_EVENT_PUT_END);
	expect_no_event(eq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(put_events__at_the_target_tell_everything_of_the_request),
		TEST_BOTH(get_events__at_the_target_tell_everything_of_the_request),
		TEST_BOTH(send_events__tell_the_own_process_and_the_request),
		TEST_BOTH(ack_event__tells_the_target_and_what_was_moved_where),
		TEST_BOTH(reply_events__tell_the_target_and_that_the_data_is_at_the_start),
		TEST_BOTH(match_bits__are_those_of_the_request_also_where_the_entry_ignores_some),
		TEST_BOTH(offset__is_the_local_one_where_the_descriptor_keeps_it),
		TEST_BOTH(start__is_its_own_link_and_end_has_the_same),
		TEST_BOTH(link__tells_apart_operations_that_run_at_once),
		TEST_BOTH(sequence__is_different_for_each_event_of_a_queue),
		TEST_BOTH(sequence__grows_from_event_to_event),
		TEST_BOTH(put_end__means_that_all_the_data_is_in_place),
		TEST_BOTH(get_end__means_that_the_memory_may_be_freed),
		TEST_BOTH(end__read_at_the_target_means_that_descriptor_and_entry_can_go_at_once),
		TEST_BOTH(send_end__means_that_the_descriptor_can_go_at_once),
		TEST_BOTH(ack__means_that_the_descriptor_can_go_at_once),
		TEST_BOTH(reply_end__means_that_the_descriptor_can_go_at_once),
		TEST_BOTH(ack__whose_descriptor_is_gone_is_dropped_and_counted),
		TEST_BOTH(ack__for_a_handle_used_again_is_not_taken_for_the_new_object),
		TEST_BOTH(both_ends__may_log_to_one_queue),
	};

	return cmocka_run_group_tests_name("events", tests, group_open, group_close);
}
