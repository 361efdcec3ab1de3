/* SPDX-License-Identifier: BSD-3-Clause */
/* test_translation.c - address translation (2.3, 4.2): which entry takes a request, told one
 * promise at a time and then by an oracle: a plain walk of a plain list that predicts every event
 * of a long random run. */
#include "fixture.h"

/* What an entry on PORTAL of `there` with these criteria does with a put from `here`. */
static bool entry_takes(ptl_process_id_t matchid, ptl_match_bits_t bits, ptl_match_bits_t ignore,
	ptl_match_bits_t incoming)
{
	static ptl_handle_eq_t eq;
	static ptl_handle_md_t source;
	static ptl_handle_ni_t life;
	ptl_sr_value_t before = drops(&there);
	ptl_handle_me_t me;
	ptl_event_t event;
	bool taken;

	if (life != there.ni) { /* of an earlier test */
		life = there.ni;
		eq = queue_make(&there, EQ_ROOM);
		source = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));
	}
	assert_ok(PtlMEAttach(
		there.ni, PORTAL, matchid, bits, ignore, PTL_RETAIN, PTL_INS_AFTER, &me));
	region_attach(me, region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
	put_to(source, &there, incoming);
	fence(&here, &there);
	taken = PtlEQGet(eq, &event) == PTL_OK;
	if (taken)
		expect_event(eq, PTL_EVENT_PUT_END);
	assert_int_equal(drops(&there) - before, taken ? 0 : 1);
	assert_ok(PtlMEUnlink(me));
	return taken;
}

static void every_match_bit__must_be_equal(void **state)
{
	const ptl_match_bits_t bits = 0x5a5aa5a50ff00f0full;

	(void)state;
	assert_true(entry_takes(ANY_PROCESS, bits, 0, bits));
	for (unsigned i = 0; i < 64; i++)
		assert_false(entry_takes(ANY_PROCESS, bits, 0, bits ^ 1ull << i));
}

static void ignored_bits__may_differ_and_no_others(void **state)
{
	const ptl_match_bits_t bits = 0x5a5aa5a50ff00f0full;

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		assert_true(entry_takes(ANY_PROCESS, bits, 1ull << i, bits ^ 1ull << i));
		assert_false(entry_takes(ANY_PROCESS, bits, ~(1ull << i), bits ^ 1ull << i));
	}
	assert_true(entry_takes(ANY_PROCESS, bits, EVERY_BIT, ~bits));
	assert_true(entry_takes(ANY_PROCESS, bits | 7, 7, bits));
}

static void process__must_be_that_of_the_entry_unless_that_is_a_wildcard(void **state)
{
	const ptl_nid_t nids[] = {here.id.nid, here.id.nid + 7, PTL_NID_ANY};
	const ptl_pid_t pids[] = {here.id.pid, here.id.pid ^ 2, PTL_PID_ANY};

	(void)state;
	for (unsigned n = 0; n < 3; n++)
		for (unsigned p = 0; p < 3; p++)
			assert_int_equal(entry_takes((ptl_process_id_t){nids[n], pids[p]}, 0, 0, 0),
				n != 1 && p != 1);
}

static void first_entry__that_matches_and_accepts_takes_the_request(void **state)
{
	struct end source = source_make(&here, NULL, 0), ends[3];

	(void)state;
	for (size_t i = 0; i < COUNT(ends); i++)
		ends[i] = target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	put_to(source.md, &there, 0);
	expect_pair(ends[0].eq, PTL_EVENT_PUT_START);
	fence(&here, &there);
	expect_no_event(ends[0].eq);
	expect_no_event(ends[1].eq);
	expect_no_event(ends[2].eq);
}

static void entry__without_a_descriptor_is_passed_over(void **state)
{
	struct end source = source_make(&here, NULL, 0), target;

	(void)state;
	entry_make(&there, 0, EVERY_BIT, PTL_RETAIN);
	target = target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	entry_make(&there, 0, EVERY_BIT, PTL_RETAIN);
	put_to(source.md, &there, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
}

static void entry__whose_descriptor_rejects_is_passed_over_for_each_reason(void **state)
{
	static char data[64], place[64];
	struct end source = source_make(&here, data, 8), eaten = source_make(&here, data, 1),
		   target;
	ptl_md_t inactive = region(place, 64, PTL_MD_OP_PUT, PTL_EQ_NONE);
	ptl_md_t beyond = inactive, disabled = inactive, narrow = inactive;

	(void)state;
	beyond.max_offset = 0;
	target = target_of(&there, beyond, PTL_RETAIN, PTL_RETAIN);
	put_to(eaten.md, &there, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	inactive.threshold = 0;
	target_of(&there, inactive, PTL_RETAIN, PTL_RETAIN);
	disabled.options = PTL_MD_OP_GET;
	target_of(&there, disabled, PTL_RETAIN, PTL_RETAIN);
	narrow.length = 7;
	target_of(&there, narrow, PTL_RETAIN, PTL_RETAIN);
	target = target_make(&there, place, 8, PTL_MD_OP_PUT);
	put_to(source.md, &there, 0);
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).mlength, 8);
	assert_int_equal(drops(&there), 0);
}

static void end_of_the_list__discards_the_request_and_counts_it(void **state)
{
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	for (int i = 0; i < 40; i++)
		entry_make(&there, (ptl_match_bits_t)i, 0, PTL_RETAIN);
	for (ptl_match_bits_t bits = 0; bits < 50; bits++)
		put_to(source.md, &there, bits);
	fence(&here, &there);
	assert_int_equal(drops(&there), 50);
}

static void lists__of_different_portals_have_nothing_to_do_with_each_other(void **state)
{
	struct end source = source_make(&here, NULL, 0);
	ptl_handle_eq_t eq = queue_make(&there, EQ_ROOM);
	ptl_handle_md_t mds[5];

	(void)state;
	for (ptl_pt_index_t portal = 0; portal < COUNT(mds); portal++) {
		ptl_handle_me_t me;

		assert_ok(PtlMEAttach(there.ni, portal, ANY_PROCESS, 0, EVERY_BIT, PTL_RETAIN,
			PTL_INS_AFTER, &me));
		mds[portal] = region_attach(
			me, region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
	}
	for (ptl_pt_index_t portal = COUNT(mds); portal-- > 0;) {
		ptl_event_t event;

		assert_ok(PtlPut(source.md, PTL_NOACK_REQ, there.id, portal, 0, 0, 0, 0));
		event = expect_pair(eq, PTL_EVENT_PUT_START);
		assert_int_equal(event.portal, portal);
		assert_true(event.md_handle == mds[portal]);
	}
}

static void lists__of_different_interfaces_have_nothing_to_do_with_each_other(void **state)
{
	struct end at_here = target_make(&here, NULL, 0, PTL_MD_OP_PUT);
	struct end at_there = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);

	(void)state;
	put_to(source.md, &there, 0);
	expect_pair(at_there.eq, PTL_EVENT_PUT_START);
	put_to(source.md, &here, 0);
	expect_pair(at_here.eq, PTL_EVENT_PUT_START);
	expect_no_event(at_there.eq);
}

static void exact_entry__deep_in_a_long_list_is_found_and_one_before_it_wins(void **state)
{
	enum { ENTRIES = 1000 };
	struct end source = source_make(&here, NULL, 0);
	ptl_handle_eq_t eq = queue_make(&there, EQ_ROOM);
	ptl_md_t md = region(NULL, 0, PTL_MD_OP_PUT, eq);
	static ptl_handle_md_t mds[ENTRIES];
	ptl_handle_md_t wild;

	(void)state;
	for (size_t i = 0; i < ENTRIES; i++)
		mds[i] = region_attach(
			entry_make(&there, i, 0, PTL_RETAIN), md, PTL_RETAIN, PTL_RETAIN);
	wild = region_attach(
		entry_make(&there, 0, EVERY_BIT, PTL_RETAIN), md, PTL_RETAIN, PTL_RETAIN);
	region_attach(entry_make(&there, ENTRIES + 1, 0, PTL_RETAIN), md, PTL_RETAIN, PTL_RETAIN);
	for (size_t i = 0; i < ENTRIES; i += 37) {
		put_to(source.md, &there, i);
		assert_true(expect_pair(eq, PTL_EVENT_PUT_START).md_handle == mds[i]);
	}
	put_to(source.md, &there, ENTRIES + 1); /* exact, but behind the wildcard */
	assert_true(expect_pair(eq, PTL_EVENT_PUT_START).md_handle == wild);
}

/* The oracle. All descriptors log to one queue, requests are sent one at a time, so the events of
 * each are known beforehand, in order. */

#define SLOTS  150 /* entries at most */
#define ROOM   64  /* bytes behind each */
#define ROUNDS (SANITIZED ? 3000 : 20000)

struct model_entry {
	bool used, attached, unlink, unlink_op, unlink_nofit;
	ptl_process_id_t matchid;
	ptl_match_bits_t bits, ignore;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	ptl_md_t desc;
	ptl_size_t offset;
	unsigned char place[ROOM];
};

struct expected {
	ptl_event_kind_t type;
	ptl_handle_md_t md;
	ptl_size_t mlength, offset;
};

static struct model_entry slots[SLOTS];
static unsigned list[SLOTS], list_length;
static struct expected expected[SLOTS + 4];
static unsigned expected_count;
static ptl_handle_eq_t model_eq;
static uint64_t dice;

static unsigned roll(unsigned sides)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (unsigned)(dice >> 33) % sides;
}

static ptl_match_bits_t roll_bits(void)
{
	return roll(6) | (roll(3) == 0 ? 1ull << 63 : 0) | (roll(4) == 0 ? 1ull << 40 : 0);
}

static ptl_match_bits_t roll_ignore(void)
{
	static const ptl_match_bits_t masks[] = {
		0, 0, 0, 1, 3, 7, 1ull << 63, 1ull << 40, EVERY_BIT, 0xff00ff00ff00ff00u};

	return masks[roll(COUNT(masks))];
}

static ptl_process_id_t roll_process(void)
{
	const ptl_process_id_t processes[] = {ANY_PROCESS, here.id, there.id,
		{here.id.nid, PTL_PID_ANY}, {there.id.nid, PTL_PID_ANY}, {PTL_NID_ANY, here.id.pid},
		{here.id.nid, here.id.pid ^ 1}};

	return processes[roll(COUNT(processes))];
}

static void list_remove(unsigned at)
{
	list_length--;
	memmove(&list[at], &list[at + 1], (list_length - at) * sizeof(list[0]));
}

static void model_detach(unsigned at)
{
	struct model_entry *entry = &slots[list[at]];

	entry->attached = false;
	if (entry->unlink) {
		entry->used = false;
		list_remove(at);
	}
}

static void expect(ptl_event_kind_t type, const struct model_entry *entry, ptl_size_t mlength,
	ptl_size_t offset)
{
	expected[expected_count++] = (struct expected){type, entry->md, mlength, offset};
}

static bool model_inactive(const struct model_entry *entry)
{
	return entry->desc.threshold == 0 || ((entry->desc.options & PTL_MD_MANAGE_REMOTE) == 0 &&
						     entry->offset > entry->desc.max_offset);
}

/* The walk. Returns the entry that takes the request, or NULL; fills `expected`. */
static struct model_entry *model_request(const struct node *from, bool put, ptl_match_bits_t bits,
	ptl_size_t rlength, ptl_size_t request_offset)
{
	expected_count = 0;
	for (unsigned at = 0; at < list_length;) {
		struct model_entry *entry = &slots[list[at]];
		bool remote = (entry->desc.options & PTL_MD_MANAGE_REMOTE) != 0;
		ptl_size_t offset = remote ? request_offset : entry->offset;
		ptl_size_t room = offset < entry->desc.length ? entry->desc.length - offset : 0;
		ptl_size_t mlength = rlength < room ? rlength : room;

		if (((bits ^ entry->bits) & ~entry->ignore) != 0 ||
			(entry->matchid.nid != PTL_NID_ANY && entry->matchid.nid != from->id.nid) ||
			(entry->matchid.pid != PTL_PID_ANY && entry->matchid.pid != from->id.pid) ||
			!entry->attached || model_inactive(entry) ||
			(entry->desc.options & (put ? PTL_MD_OP_PUT : PTL_MD_OP_GET)) == 0) {
			at++;
			continue;
		}
		if (rlength > room && (entry->desc.options & PTL_MD_TRUNCATE) == 0) {
			unsigned length = list_length;

			if (entry->unlink_nofit) {
				expect(PTL_EVENT_UNLINK, entry, 0, 0);
				model_detach(at);
			}
			at += length == list_length;
			continue;
		}
		expect(put ? PTL_EVENT_PUT_START : PTL_EVENT_GET_START, entry, mlength, offset);
		expect(put ? PTL_EVENT_PUT_END : PTL_EVENT_GET_END, entry, mlength, offset);
		if (entry->desc.threshold > 0)
			entry->desc.threshold--;
		if (!remote)
			entry->offset += mlength;
		if (model_inactive(entry) && entry->unlink_op) {
			expect(PTL_EVENT_UNLINK, entry, 0, 0);
			model_detach(at);
		}
		return entry;
	}
	return NULL;
}

static void model_attach_md(struct model_entry *entry)
{
	static const unsigned maxima[] = {NO_LIMIT, NO_LIMIT, 0, 8, 40};
	unsigned options = roll(8) == 0 ? 0 : PTL_MD_OP_PUT;

	options |= roll(2) == 0 ? PTL_MD_OP_GET : 0;
	options |= roll(3) == 0 ? PTL_MD_MANAGE_REMOTE : 0;
	options |= roll(4) == 0 ? PTL_MD_TRUNCATE : 0;
	entry->desc = region(entry->place, roll(ROOM + 1), options, model_eq);
	entry->desc.threshold = roll(3) == 0 ? PTL_MD_THRESH_INF : (int)roll(4);
	entry->desc.max_offset = maxima[roll(COUNT(maxima))];
	entry->offset = 0;
	entry->unlink_op = roll(2) == 0;
	entry->unlink_nofit = roll(4) == 0;
	entry->attached = true;
	entry->md =
		region_attach(entry->me, entry->desc, entry->unlink_op ? PTL_UNLINK : PTL_RETAIN,
			entry->unlink_nofit ? PTL_UNLINK : PTL_RETAIN);
}

static void model_add(void)
{
	unsigned slot = 0, at, place = roll(4);
	struct model_entry *entry;
	ptl_ins_pos_t position = place % 2 == 0 ? PTL_INS_BEFORE : PTL_INS_AFTER;

	while (slot < SLOTS && slots[slot].used)
		slot++;
	if (slot == SLOTS)
		return;
	entry = &slots[slot];
	entry->used = true;
	entry->attached = false;
	entry->unlink = roll(2) == 0;
	entry->matchid = roll_process();
	entry->bits = roll_bits();
	entry->ignore = roll_ignore();
	if (place < 2 || list_length == 0) {
		assert_ok(PtlMEAttach(there.ni, PORTAL, entry->matchid, entry->bits, entry->ignore,
			entry->unlink ? PTL_UNLINK : PTL_RETAIN, position, &entry->me));
		at = position == PTL_INS_BEFORE ? 0 : list_length;
	} else {
		at = roll(list_length);
		assert_ok(
			PtlMEInsert(slots[list[at]].me, entry->matchid, entry->bits, entry->ignore,
				entry->unlink ? PTL_UNLINK : PTL_RETAIN, position, &entry->me));
		at += position == PTL_INS_AFTER;
	}
	memmove(&list[at + 1], &list[at], (list_length - at) * sizeof(list[0]));
	list[at] = slot;
	list_length++;
	if (roll(8) != 0)
		model_attach_md(entry);
}

static void model_change(void)
{
	unsigned at = list_length > 0 ? roll(list_length) : 0;
	struct model_entry *entry = &slots[list[at]];

	if (list_length < 20 || roll(2) == 0) {
		model_add();
	} else if (!entry->attached) {
		model_attach_md(entry);
	} else if (roll(3) == 0) {
		assert_ok(PtlMEUnlink(entry->me));
		entry->used = false;
		list_remove(at);
	} else if (roll(2) == 0) {
		assert_ok(PtlMDUnlink(entry->md));
		model_detach(at);
	} else {
		entry->desc.threshold = (int)roll(3);
		assert_ok(PtlMDUpdate(entry->md, NULL, &entry->desc, PTL_EQ_NONE));
	}
}

static void model_check(bool put, const struct model_entry *taker, unsigned seed)
{
	for (unsigned i = 0; i < expected_count; i++) {
		ptl_event_t event = expect_event(model_eq, expected[i].type);

		assert_true(event.md_handle == expected[i].md);
		if (event.type == PTL_EVENT_UNLINK)
			continue;
		assert_int_equal(event.mlength, expected[i].mlength);
		if (expected[i].mlength == 0)
			continue;
		assert_int_equal(event.offset, expected[i].offset);
		if (put && event.type == PTL_EVENT_PUT_END)
			assert_true(pattern_is(taker->place + event.offset, event.mlength, seed));
	}
}

static void translation__does_what_a_plain_walk_of_the_list_does(void **state)
{
	static const size_t sizes[] = {0, 1, 4, 8, 16, 40};
	static unsigned char data[ROOM], place[ROOM];
	struct node *const nodes[] = {&here, &there};
	ptl_handle_md_t puts[2][COUNT(sizes)], gets[2][COUNT(sizes)];
	ptl_sr_value_t discarded = 0;

	(void)state;
	memset(slots, 0, sizeof(slots));
	list_length = 0;
	dice = 0x9e3779b97f4a7c15u;
	model_eq = queue_make(&there, 1024);
	for (size_t n = 0; n < 2; n++) {
		for (size_t i = 0; i < COUNT(sizes); i++) {
			puts[n][i] = region_bind(nodes[n], region(data, sizes[i], 0, PTL_EQ_NONE));
			gets[n][i] = region_bind(nodes[n], region(place, sizes[i], 0, PTL_EQ_NONE));
		}
	}
	for (int round = 0; round < ROUNDS; round++) {
		unsigned n = roll(4) == 0, i = roll(COUNT(sizes)), seed = (unsigned)round;
		ptl_match_bits_t bits = roll_bits();
		ptl_size_t offset = sizes[i] == 0 ? 0 : roll(ROOM + 8);
		bool put = roll(4) != 0;
		struct model_entry *taker;

		while (roll(2) == 0)
			model_change();
		taker = model_request(nodes[n], put, bits, sizes[i], offset);
		if (put) {
			pattern_fill(data, sizes[i], seed);
			assert_ok(PtlPut(
				puts[n][i], PTL_NOACK_REQ, there.id, PORTAL, 0, bits, offset, 0));
		} else {
			assert_ok(PtlGet(gets[n][i], there.id, PORTAL, 0, bits, offset));
		}
		if (taker == NULL) {
			discarded++;
			fence(nodes[n], &there);
		}
		model_check(put, taker, seed);
		expect_no_event(model_eq);
	}
	assert_int_equal(drops(&there), discarded);
	assert_true(discarded > 10 && discarded < ROUNDS * 9 / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(every_match_bit__must_be_equal),
		TEST_BOTH(ignored_bits__may_differ_and_no_others),
		TEST_BOTH(process__must_be_that_of_the_entry_unless_that_is_a_wildcard),
		TEST_BOTH(first_entry__that_matches_and_accepts_takes_the_request),
		TEST_BOTH(entry__without_a_descriptor_is_passed_over),
		TEST_BOTH(entry__whose_descriptor_rejects_is_passed_over_for_each_reason),
		TEST_BOTH(end_of_the_list__discards_the_request_and_counts_it),
		TEST_BOTH(lists__of_different_portals_have_nothing_to_do_with_each_other),
		TEST_BOTH(lists__of_different_interfaces_have_nothing_to_do_with_each_other),
		TEST_BOTH(exact_entry__deep_in_a_long_list_is_found_and_one_before_it_wins),
		TEST_BOTH(translation__does_what_a_plain_walk_of_the_list_does),
	};

	return cmocka_run_group_tests_name("translation", tests, group_open, group_close);
}
