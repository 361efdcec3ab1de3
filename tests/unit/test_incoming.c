/* SPDX-License-Identifier: BSD-3-Clause */
/* test_incoming.c - messages that arrive: what a put does, access control, translation, and what is
 * not to be believed.
 *
 * Covers: lib/engine/incoming.c.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/log.h>
#include <base/random.h>

#include "arrivals.h"
#include "shortage.h"

/* --- puts */

static void put__places_data_and_logs_start_and_end(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = attach_any(rig, queue, REGION_PUT);
	struct message_header header = rig_put_header(0);
	struct event start, end;

	header.match_bits = 0x1234;
	header.value = 99;
	header.offset = 7; /* does not count */
	put(&header, 10);
	assert_memory_equal(memory, data, 10);
	assert_int_equal(memory[10], 0);
	start = rig_event(rig, queue, EVENT_PUT_START);
	end = rig_event(rig, queue, EVENT_PUT_END);
	assert_int_equal(start.nid, RIG_PEER.nid);
	assert_int_equal(start.pid, RIG_PEER.pid);
	assert_int_equal(start.uid, RIG_UID);
	assert_int_equal(start.portal, 0);
	assert_int_equal(start.match_bits, 0x1234);
	assert_int_equal(start.requested, 10);
	assert_int_equal(start.moved, 10);
	assert_int_equal(start.offset, 0);
	assert_int_equal(start.value, 99);
	assert_int_equal(start.region, region);
	assert_int_equal(start.link, start.sequence);
	assert_int_equal(end.link, start.sequence);
	assert_int_equal(end.sequence, start.sequence + 1);
	assert_int_equal(end.moved, 10);
	assert_int_equal(end.value, 99);
	assert_int_equal(rig_counter(rig, puts_received), 1);
	assert_int_equal(rig_drops(rig), 0);
}

static void put__of_no_bytes_is_a_put(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description nothing = {.start = 0,
		.length = 0,
		.threshold = 1,
		.max_offset = 0,
		.options = REGION_PUT,
		.queue = queue};
	struct message_header header = rig_put_header(0);

	rig_attach(rig, rig_entry_any(rig, false), &nothing, 0);
	put(&header, 0);
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
}

static void put__that_breaks_off_ends_in_put_fail(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct message_header header = rig_put_header(20);
	struct event event;

	attach_any(rig, queue, REGION_PUT);
	header.handle = 5;
	fake_end(fake_begin(RIG_PEER, &header, 20), TRANSPORT_DEAD);
	event = rig_event(rig, queue, EVENT_PUT_START);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_FAILED).link, event.sequence);
	assert_null(fake_next()); /* nobody acknowledges it */
}

static void put__logs_the_events_that_its_region_wants(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);
	const uint32_t start = EVENT_BIT(EVENT_PUT_START), end = EVENT_BIT(EVENT_PUT_END);
	const uint32_t masks[] = {0, start, end, start | end, EVENTS_ALL & ~(start | end)};

	for (uint32_t i = 0; i < 5; i++) {
		uint64_t queue = rig_queue(rig, 8);
		uint64_t entry, region, sequence = 0;
		struct event event;

		header.portal = i;
		entry = rig_entry(rig, &(struct rig_entry){.portal = i, .match = RIG_ANY});
		region = rig_attach(rig, entry, &RIG_REGION(memory, queue), 0);
		rig_region(rig, region)->log = masks[i];
		put(&header, 10);
		if (masks[i] & start)
			sequence = rig_event(rig, queue, EVENT_PUT_START).sequence;
		if (masks[i] & end) {
			event = rig_event(rig, queue, EVENT_PUT_END);
			assert_int_equal(event.sequence, sequence + 1);
			assert_int_equal(event.link, sequence ? sequence : event.sequence);
		}
		rig_no_event(rig, queue);
	}
	assert_int_equal(rig_counter(rig, puts_received), 5);
}

static void put__that_breaks_off_logs_its_end_if_failures_are_wanted(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(20);
	uint64_t queue = rig_queue(rig, 8);
	struct region *region = rig_region(rig, attach_any(rig, queue, REGION_PUT));

	region->log = EVENT_BIT(EVENT_PUT_FAILED);
	fake_end(fake_begin(RIG_PEER, &header, 20), TRANSPORT_DEAD);
	rig_event(rig, queue, EVENT_PUT_FAILED);
	fake_end(fake_begin(RIG_PEER, &header, 20), TRANSPORT_OK);
	rig_no_event(rig, queue);
}

static void puts__start_in_order_and_end_in_any(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct message_header header = rig_put_header(10);
	struct fake_arrival *first, *second;

	attach_any(rig, queue, REGION_PUT);
	header.value = 1;
	first = fake_begin(RIG_PEER, &header, 10);
	header.value = 2;
	second = fake_begin(RIG_PEER, &header, 10);
	fake_place(second, 0, data, 10);
	fake_end(second, TRANSPORT_OK);
	fake_place(first, 0, data, 10);
	fake_end(first, TRANSPORT_OK);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_START).value, 1);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_START).value, 2);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_END).value, 2);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_END).value, 1);
	assert_memory_equal(memory, data, 10);
	assert_memory_equal(memory + 10, data, 10);
}

/* --- access control, translation */

static void put__to_a_portal_that_does_not_exist_is_dropped(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);
	struct fake_arrival *arrival;

	header.portal = RIG_PORTALS;
	arrival = put(&header, 4);
	assert_false(arrival->inbound.want_end);
	assert_int_equal(arrival->inbound.memory.length, 0);
	assert_true(arrival->inbound.stop);
	header.portal = UINT32_MAX;
	put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_no_portal), 2);
	assert_int_equal(rig_drops(rig), 2);
}

static void put__with_a_bad_cookie_is_dropped(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);

	attach_any(rig, 0, REGION_PUT);
	header.cookie = RIG_ACCESS;
	put(&header, 4);
	header.cookie = UINT32_MAX;
	put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_bad_cookie), 2);
	assert_int_equal(memory[0], 0);
}

static void access_entry_0__admits_the_same_user_and_no_other_entry_admits_anybody(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);

	attach_any(rig, 0, REGION_PUT);
	put(&header, 4);
	assert_int_equal(rig_drops(rig), 0);
	header.uid = RIG_UID + 1;
	put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_access_denied), 1);
	header.uid = RIG_UID;
	for (header.cookie = 1; header.cookie < RIG_ACCESS; header.cookie++)
		put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_access_denied), RIG_ACCESS);
}

static void access_entry__admits_what_it_names_and_wildcards(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);
	const struct {
		struct process process;
		uint32_t uid, portal;
		bool admits;
	} cases[] = {
		{RIG_PEER, RIG_UID, 0, true},
		{{UINT32_MAX, 80}, RIG_UID, 0, true},
		{{8, UINT32_MAX}, RIG_UID, 0, true},
		{{8, 80}, UINT32_MAX, 0, true},
		{{8, 80}, RIG_UID, UINT32_MAX, true},
		{{9, 80}, RIG_UID, 0, false},
		{{8, 81}, RIG_UID, 0, false},
		{{8, 80}, RIG_UID + 1, 0, false},
		{{8, 80}, RIG_UID, 1, false},
	};

	attach_any(rig, 0, REGION_PUT);
	header.cookie = 2;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned long before = rig_drops(rig);

		rig_access(rig, 2, cases[i].process, cases[i].uid, cases[i].portal);
		put(&header, 0);
		assert_int_equal(rig_drops(rig) - before, !cases[i].admits);
	}
}

static void access_command__survives_an_index_out_of_limits(void **state)
{
	struct rig *rig = *state;

	rig_access(rig, RIG_ACCESS, RIG_ANY, UINT32_MAX, UINT32_MAX);
	rig_access(rig, UINT32_MAX, RIG_ANY, UINT32_MAX, UINT32_MAX);
	assert_int_equal(rig_counter(rig, commands), 2);
}

static void walk__takes_the_first_entry_that_matches_and_accepts(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 16);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);
	uint64_t expected;

	/* Passed over, one after the other. */
	rig_attach(
		rig, rig_entry(rig, &(struct rig_entry){.match = RIG_ANY, .bits = 6}), &region, 0);
	rig_attach(
		rig, rig_entry(rig, &(struct rig_entry){.match = {9, 80}, .bits = 5}), &region, 0);
	rig_attach(
		rig, rig_entry(rig, &(struct rig_entry){.match = {8, 81}, .bits = 5}), &region, 0);
	rig_entry_any(rig, false); /* no region */
	region.options = REGION_GET;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	region.options = REGION_PUT;
	region.threshold = 0;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	region.threshold = GATE_THRESHOLD_INFINITE;
	region.length = 3;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	region.length = 4;
	expected = rig_attach(rig,
		rig_entry(rig,
			&(struct rig_entry){
				.match = {8, UINT32_MAX}, .bits = 0xf5, .ignore = 0xf0}),
		&region, 0);
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);

	header.match_bits = 5;
	put(&header, 4);
	assert_int_equal(rig_event(rig, queue, EVENT_PUT_START).region, expected);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_no_event(rig, queue);
}

static void walk__of_another_portal_finds_nothing(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(0);

	attach_any(rig, 0, REGION_PUT);
	header.portal = 1;
	put(&header, 4);
	assert_int_equal(rig_counter(rig, dropped_no_match), 1);
}

/* --- want of memory */

static void requests__for_which_there_is_no_memory_are_dropped_and_change_nothing(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0), get = rig_get_header(2);
	uint64_t handle;

	region.threshold = 1;
	region.length = 3;
	handle = rig_attach(rig, rig_entry_any(rig, false), &region, RIG_UNLINK_NOFIT);
	rig_operations_use(rig, OPERATION_RECEIVE);
	memory_is_short = true;
	header.requested = 2;
	fake_begin(RIG_PEER, &header, 2);
	header.requested = 4;
	fake_begin(RIG_PEER, &header, 4);      /* nor does one that is too long unlink */
	fake_deliver(RIG_PEER, &get, NULL, 0); /* cannot be refused either */
	assert_int_equal(rig_counter(rig, dropped_no_memory_operation), 4);
	rig_no_event(rig, queue);
	assert_int_equal(rig_threshold(rig, handle), 1);
	memory_is_short = !arrivals_are_whole;
	put(&header, 2);
	memory_is_short = false;
	put(&header, 2);
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
	rig_no_event(rig, queue);
	assert_int_equal(rig_counter(rig, dropped_no_memory_operation), arrivals_are_whole ? 4 : 5);
}

/* The greedy peer's requests would use up the last quarter of the operations; another peer's are
 * served. */
static void requests__of_a_peer_that_has_its_share_leave_operations_to_others(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 16);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header get = rig_get_header(4), put_header = rig_put_header(0);
	const struct process greedy = RIG_PEER, other = {RIG_PEER.nid + 1, RIG_PEER.pid};
	uint32_t made;

	region.options |= REGION_GET;
	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	fake_share_spent(greedy);
	get.portal = 0;
	fake_deliver(greedy, &get, NULL, 0); /* there are operations for all */
	assert_int_equal(fake_next()->header.kind, MESSAGE_REPLY);
	made = rig->engine->operations.made;
	rig->engine->operations.made = OPERATIONS_MAX; /* as if all others were in use */
	fake_deliver(greedy, &get, NULL, 0);
	get.match_bits = 99;
	get.portal = 1;
	fake_deliver(greedy, &get, NULL, 0); /* nor is one refused that nothing matches */
	put_header.handle = 0xabcdef;
	fake_deliver(greedy, &put_header, data, 4);
	assert_null(fake_next());
	assert_int_equal(rig_counter(rig, puts_received), 0);
	get = rig_get_header(4);
	get.portal = 0;
	fake_deliver(other, &get, NULL, 0);
	assert_int_equal(fake_next()->header.kind, MESSAGE_REPLY);
	assert_int_equal(rig_counter(rig, gets_received), 2);
	assert_int_equal(rig_counter(rig, dropped_no_memory_operation), 5);
	rig->engine->operations.made = made;
}

/* A put whose acknowledgement could not be sent would be accepted in silence. */
static void put__that_wants_an_acknowledgement_is_accepted_only_if_it_can_be_sent(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct region_description region = RIG_REGION(memory, queue);
	struct message_header header = rig_put_header(0);
	struct operation *kept;

	rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	assert_true(operation_reserve(rig->engine, 1));
	kept = rig_operations_use(rig, OPERATION_RECEIVE);
	header.handle = 0xabcdef;
	memory_is_short = true;
	put(&header, 4);
	rig_no_event(rig, queue);
	assert_null(fake_next());
	assert_int_equal(rig_counter(rig, dropped_no_memory_operation), 1);
	operation_free(rig->engine, kept);
	put(&header, 4); /* one operation is enough */
	memory_is_short = false;
	rig_event(rig, queue, EVENT_PUT_START);
	rig_event(rig, queue, EVENT_PUT_END);
	fake_finish(fake_next(), TRANSPORT_OK);
	assert_int_equal(rig_counter(rig, dropped_no_memory_operation), 1);
}

/* What `body` writes to standard error. */
static const char *lines_of(void (*body)(struct rig *rig), struct rig *rig)
{
	static char text[16384];
	char name[] = "/tmp/test_incoming-XXXXXX";
	int file = mkstemp(name), standard_error = dup(STDERR_FILENO);
	ssize_t length;

	assert_true(file >= 0 && standard_error >= 0);
	unlink(name);
	dup2(file, STDERR_FILENO);
	body(rig);
	dup2(standard_error, STDERR_FILENO);
	close(standard_error);
	length = pread(file, text, sizeof(text) - 1, 0);
	close(file);
	assert_true(length >= 0);
	text[length] = '\0';
	return text;
}

static void puts_nobody_wants(struct rig *rig)
{
	struct message_header header = rig_put_header(0);

	(void)rig;
	for (unsigned i = 0; i < 6; i++) {
		header.portal = i % 2;
		header.match_bits = 0xabc0 + i;
		put(&header, 10);
	}
}

static unsigned lines_with(const char *text, const char *part)
{
	unsigned count = 0;

	for (; (text = strstr(text, part)); text++)
		count++;
	return count;
}

static void put__that_nothing_matches_is_told_once_for_each_portal_to_who_wants_to_know(
	void **state)
{
	struct rig *rig = *state;
	const char *lines;

	assert_string_equal(lines_of(puts_nobody_wants, rig), "");
	log_set_level(LOG_LEVEL_INFO);
	lines = lines_of(puts_nobody_wants, rig);
	assert_int_equal(lines_with(lines, "a put of 10 bytes from 8:80 to Portal 0 with match "
					   "bits 0xabc0 was dropped"),
		1);
	assert_int_equal(lines_with(lines, "Portal 1 with match bits 0xabc1 was dropped"), 1);
	assert_int_equal(lines_with(lines, "dropped_no_match)\n"), 2); /* whole lines */
	assert_int_equal(lines_with(lines, "\n"), 2);
	assert_string_equal(lines_of(puts_nobody_wants, rig), "");
	log_set_level(LOG_LEVEL_WARNING);
	assert_int_equal(rig_counter(rig, dropped_no_match), 18);
}

static void puts_to_no_portal(struct rig *rig)
{
	struct message_header header = rig_put_header(0);

	(void)rig;
	for (unsigned i = 0; i < 3; i++) {
		header.portal = RIG_PORTALS + i;
		put(&header, 10);
	}
}

static void put__to_a_portal_that_there_is_not_is_told_once_to_who_wants_to_know(void **state)
{
	struct rig *rig = *state;
	char wanted[200];
	const char *lines;

	assert_string_equal(lines_of(puts_to_no_portal, rig), "");
	log_set_level(LOG_LEVEL_INFO);
	lines = lines_of(puts_to_no_portal, rig);
	snprintf(wanted, sizeof(wanted),
		"a put of 10 bytes from 8:80 to Portal %u was dropped, because this interface has "
		"only Portals 0 to %u;",
		RIG_PORTALS, RIG_PORTALS - 1);
	assert_int_equal(lines_with(lines, wanted), 1);
	assert_int_equal(lines_with(lines, "dropped_no_portal)\n"), 1);
	assert_int_equal(lines_with(lines, "\n"), 1);
	assert_string_equal(lines_of(puts_to_no_portal, rig), "");
	log_set_level(LOG_LEVEL_WARNING);
	assert_int_equal(rig_counter(rig, dropped_no_portal), 9);
}

static void puts_of_other_users(struct rig *rig)
{
	struct message_header header = rig_put_header(0);

	(void)rig;
	for (unsigned i = 0; i < 3 * (DENIED_MOST + 1); i++) {
		const struct process from = {.nid = 8, .pid = 80 + i / 3};

		header.uid = RIG_UID + 1;
		header.requested = 10;
		fake_deliver(from, &header, data, 10);
	}
}

static void put__of_a_user_who_is_not_admitted_is_told_once_for_each_process(void **state)
{
	struct rig *rig = *state;
	char wanted[256];
	const char *lines;

	assert_string_equal(lines_of(puts_of_other_users, rig), "");
	log_set_level(LOG_LEVEL_INFO);
	lines = lines_of(puts_of_other_users, rig);
	snprintf(wanted, sizeof(wanted),
		"a message from 8:81 of user %u to Portal 0 was dropped, because the entry of "
		"access control that it names does not admit it; let this program admit that user, "
		"or all users (this program is user %u's;",
		RIG_UID + 1, RIG_UID);
	assert_int_equal(lines_with(lines, wanted), 1);
	assert_int_equal(lines_with(lines, "dropped_access_denied)\n"), DENIED_MOST);
	assert_int_equal(lines_with(lines, "\n"), DENIED_MOST);
	assert_string_equal(lines_of(puts_of_other_users, rig), "");
	log_set_level(LOG_LEVEL_WARNING);
	assert_int_equal(rig_counter(rig, dropped_access_denied), 9 * (DENIED_MOST + 1));
}

/* --- hostile headers */

static void message__that_is_not_well_formed_is_counted_and_nothing_else(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(4);
	uint8_t bytes[MESSAGE_HEADER_MAX] = {0};
	unsigned long count = 0;

	attach_any(rig, 0, REGION_PUT | REGION_GET);
	header.offset = 1;
	assert_int_equal(message_encode(&header, bytes), MESSAGE_HEADER_BYTES);
	for (uint32_t length = 0; length <= MESSAGE_HEADER_MAX; length += 8) {
		/* What is cut off after a zero word could have been shorter; after another one it
		 * is another header. */
		if (length == MESSAGE_HEADER_BYTES || length == MESSAGE_HEADER_LEAST)
			continue;
		assert_false(fake_begin_bytes(RIG_PEER, bytes, length, 4)->inbound.want_end);
		assert_int_equal(rig_counter(rig, dropped_bad_message), ++count);
	}
	for (unsigned kind = 0; kind < 256; kind++) {
		bytes[0] = (uint8_t)kind;
		if (kind >= MESSAGE_PUT && kind <= MESSAGE_PROBE)
			continue;
		assert_false(fake_begin_bytes(RIG_PEER, bytes, MESSAGE_HEADER_BYTES, 4)
				     ->inbound.want_end);
		assert_int_equal(rig_counter(rig, dropped_bad_message), ++count);
	}
	assert_null(fake_next());
}

static void message__whose_data_is_not_as_long_as_it_says_is_dropped(void **state)
{
	struct rig *rig = *state;
	struct message_header header = rig_put_header(4);
	unsigned long count = 0;
	struct fake_arrival *arrival;

	attach_any(rig, 0, REGION_PUT | REGION_GET);
	header.kind = MESSAGE_REPLY;
	header.value = 3;
	arrival = fake_begin(RIG_PEER, &header, 4);
	assert_true(arrival->inbound.stop);
	assert_false(arrival->inbound.want_end);
	assert_int_equal(rig_counter(rig, dropped_bad_message), ++count);
	for (unsigned i = 0; i < 4; i++) {
		const enum message_kind kinds[] = {
			MESSAGE_GET, MESSAGE_ACK, MESSAGE_REFUSE, MESSAGE_PROBE};

		header.kind = (uint8_t)kinds[i];
		fake_begin(RIG_PEER, &header, 1);
		assert_int_equal(rig_counter(rig, dropped_bad_message), ++count);
	}
	assert_null(fake_next());
}

static void messages__of_random_content_never_reach_beyond_a_region(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 64);
	uint64_t seed = 1;
	struct event event;
	struct region_description region = RIG_REGION(memory, queue);

	region.start += 16;
	region.length = 32;
	for (unsigned i = 0; i < 8; i++) {
		region.options = i * 4 | REGION_PUT | REGION_GET;
		rig_attach(rig, rig_entry_any(rig, false), &region, 0);
	}
	for (unsigned round = 0; round < 1500; round++) {
		struct message_header header = {0};
		uint64_t *fields = (uint64_t *)(void *)&header;
		uint64_t length;

		for (unsigned i = 0; i < sizeof(header) / 8; i++) {
			uint64_t random = random_next(&seed);

			fields[i] = random >> (random >> 58);
		}
		header.kind = (uint8_t)(MESSAGE_PUT + round % 6);
		if (round % 8 != 0) {
			header.uid = RIG_UID;
			header.portal = 0;
			header.cookie = 0;
		}
		length = header.kind == MESSAGE_PUT     ? (header.requested %= 70)
			 : header.kind == MESSAGE_REPLY ? (header.value %= 70)
							: 0;
		fake_deliver(RIG_PEER, &header, data, length > 64 ? 64 : length);
		while (rig_take(rig->segment, queue, &event) != QUEUE_EMPTY)
			;
		for (unsigned i = 0; i < 16; i++)
			assert_true(memory[i] == 0 && memory[48 + i] == 0);
	}
}

/* --- one way and the other */

#define TRACE_PUTS 400
#define TRACES     40

/* What came of a trace: the same whichever way its puts came. */
struct trace_outcome {
	uint8_t memory[6][32];
	struct event events[6 * TRACE_PUTS];
	unsigned count;
	unsigned long drops, received, acknowledged;
};

static uint64_t trace_state;

static uint32_t trace_random(uint32_t below)
{
	return (uint32_t)(random_next(&trace_state) % below);
}

static uint32_t trace_id(uint32_t value)
{
	return trace_random(2) == 0 ? UINT32_MAX : value;
}

/* An entry of Portal 0 or 1 with a region; some accept nothing, some go when they are used up or
 * too small. */
static void trace_attach(struct rig *rig, uint64_t queue, uint8_t *to)
{
	static const uint32_t thresholds[] = {0, 1, 3, GATE_THRESHOLD_INFINITE};
	const struct rig_entry entry = {.portal = trace_random(2),
		.match = {trace_id(8), trace_id(80)},
		.bits = trace_random(3),
		.ignore = trace_random(2) != 0 ? UINT64_MAX : 0,
		.unlink = true};
	const struct region_description region = {.start = (uintptr_t)to,
		.length = trace_random(33),
		.threshold = thresholds[trace_random(4)],
		.max_offset = trace_random(40),
		.options = trace_random(REGION_OPTIONS + 1),
		.queue = trace_random(4) != 0 ? queue : 0};
	uint64_t handle = rig_entry(rig, &entry);

	if (trace_random(8) != 0)
		rig_attach(rig, handle, &region, (int)trace_random(4));
}

static void trace_put(void)
{
	struct message_header header = rig_put_header(0);
	uint32_t length = trace_random(4) == 0 ? trace_random(33) : 8 + trace_random(9);
	struct process from = trace_random(8) == 0 ? (struct process){9, 80} : RIG_PEER;

	header.portal = trace_random(20) == 0 ? RIG_PORTALS : trace_random(2);
	header.cookie = trace_random(20) == 0 ? trace_random(RIG_ACCESS + 1) : 0;
	header.uid = trace_random(20) == 0 ? RIG_UID + 1 : RIG_UID;
	header.match_bits = trace_random(3);
	header.value = trace_random(2) * 77;
	header.offset = trace_random(3) == 0 ? trace_random(40) : 0;
	header.handle = trace_random(3) == 0 ? 5 : 0;
	header.operation = header.handle != 0 ? 6 : 0;
	header.requested = length;
	fake_deliver(from, &header, data, length);
}

/* frame: bytes of data that come with a put's beginning. */
static void trace_run(uint64_t seed, uint64_t frame, struct trace_outcome *outcome)
{
	struct rig *rig;
	void *state;
	uint64_t queue;

	assert_int_equal(rig_setup(&state), 0);
	rig = state;
	memset(outcome, 0, sizeof(*outcome));
	trace_state = seed;
	queue = rig_queue(rig, 4096);
	fake_set_frame(frame);
	for (unsigned n = 0; n < TRACE_PUTS; n++) {
		if (n % 10 == 0)
			trace_attach(rig, queue, outcome->memory[trace_random(6)]);
		trace_put();
	}
	while (rig_take(rig->segment, queue, &outcome->events[outcome->count]) == QUEUE_EVENT) {
		/* Memory that differs from run to run. */
		outcome->events[outcome->count++].start = 0;
		assert_true(outcome->count < sizeof(outcome->events) / sizeof(outcome->events[0]));
	}
	memset(&outcome->events[outcome->count], 0, sizeof(outcome->events[0]));
	outcome->drops = rig_drops(rig);
	outcome->received = rig_counter(rig, puts_received);
	while (fake_next())
		outcome->acknowledged++;
	fake_set_frame(FAKE_FRAME);
	assert_int_equal(rig_teardown(&state), 0);
}

static void puts__come_to_the_same_as_a_whole_and_in_pieces(void **state)
{
	static struct trace_outcome whole, pieces;
	unsigned long received = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= TRACES; seed++) {
		trace_run(seed, FAKE_FRAME, &whole);
		trace_run(seed, seed % 12, &pieces);
		assert_int_equal(whole.count, pieces.count);
		for (unsigned i = 0; i < whole.count; i++)
			assert_memory_equal(
				&whole.events[i], &pieces.events[i], sizeof(whole.events[i]));
		assert_memory_equal(whole.memory, pieces.memory, sizeof(whole.memory));
		assert_int_equal(whole.drops, pieces.drops);
		assert_int_equal(whole.received, pieces.received);
		assert_int_equal(whole.acknowledged, pieces.acknowledged);
		received += whole.received;
	}
	assert_true(received > TRACES * TRACE_PUTS / 8);
}

#define test(name) cmocka_unit_test_setup_teardown(name, arrivals_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(put__places_data_and_logs_start_and_end),
		test(put__of_no_bytes_is_a_put),
		test(put__that_breaks_off_ends_in_put_fail),
		test(put__logs_the_events_that_its_region_wants),
		test(put__that_breaks_off_logs_its_end_if_failures_are_wanted),
		test(puts__start_in_order_and_end_in_any),
		test(put__to_a_portal_that_does_not_exist_is_dropped),
		test(put__with_a_bad_cookie_is_dropped),
		test(access_entry_0__admits_the_same_user_and_no_other_entry_admits_anybody),
		test(access_entry__admits_what_it_names_and_wildcards),
		test(access_command__survives_an_index_out_of_limits),
		test(walk__takes_the_first_entry_that_matches_and_accepts),
		test(walk__of_another_portal_finds_nothing),
		test(requests__for_which_there_is_no_memory_are_dropped_and_change_nothing),
		test(requests__of_a_peer_that_has_its_share_leave_operations_to_others),
		test(put__to_a_portal_that_there_is_not_is_told_once_to_who_wants_to_know),
		test(put__of_a_user_who_is_not_admitted_is_told_once_for_each_process),
		test(put__that_nothing_matches_is_told_once_for_each_portal_to_who_wants_to_know),
		test(put__that_wants_an_acknowledgement_is_accepted_only_if_it_can_be_sent),
		test(message__that_is_not_well_formed_is_counted_and_nothing_else),
		test(message__whose_data_is_not_as_long_as_it_says_is_dropped),
		test(messages__of_random_content_never_reach_beyond_a_region),
		/* changes the frame */
		cmocka_unit_test(puts__come_to_the_same_as_a_whole_and_in_pieces),
	};

	return cmocka_run_group_tests(tests, arrivals_in_pieces, NULL) +
	       cmocka_run_group_tests(tests, arrivals_whole, NULL);
}
