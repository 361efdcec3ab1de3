/* SPDX-License-Identifier: BSD-3-Clause */
/* test_entry.c - how match entries come into their list and leave it.
 *
 * Covers: lib/engine/entry.c.
 */
#include <stdlib.h>

#include <base/handle.h>

#include "fake_transport.h"
#include "rig.h"

static char memory[8];

static uint32_t portal_length(const struct rig *rig, uint32_t portal)
{
	return atomic_load(&segment_portal(rig->segment, portal)->length[0]);
}

/* The list of Portal 0 is these entries, in this order. */
static void check_order(const struct rig *rig, unsigned count, const uint64_t *handles)
{
	uint32_t at = rig->engine->spaces[0]->lists[0].head;

	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(at, handle_index(handles[i]));
		at = segment_match(rig->segment, at)->next;
	}
	assert_int_equal(at, MATCH_NONE);
}

static void entry_attach__puts_entries_at_head_and_tail(void **state)
{
	struct rig *rig = *state;
	const struct rig_entry any = {.match = RIG_ANY};
	uint64_t b = rig_entry(rig, &any), c = rig_entry(rig, &any), a = rig_entry_front(rig, &any);

	check_order(rig, 3, (uint64_t[]){a, b, c});
	assert_int_equal(segment_match(rig->segment, handle_index(a))->region, INDEX_NONE);
}

static void entry_insert__puts_entries_before_and_after_another(void **state)
{
	struct rig *rig = *state;
	const struct rig_entry any = {.match = RIG_ANY};
	uint64_t b = rig_entry(rig, &any), a, c, d;

	assert_int_equal(rig_insert(rig, &any, b, POSITION_BEFORE, &a), ANSWER_OK);
	assert_int_equal(rig_insert(rig, &any, b, POSITION_AFTER, &d), ANSWER_OK);
	assert_int_equal(rig_insert(rig, &any, b, POSITION_AFTER, &c), ANSWER_OK);
	check_order(rig, 4, (uint64_t[]){a, b, c, d});
}

static void entry_insert__beside_what_is_no_living_entry_of_that_portal_is_refused(void **state)
{
	struct rig *rig = *state;
	const struct rig_entry any = {.match = RIG_ANY},
			       elsewhere = {.match = RIG_ANY, .portal = 1};
	uint64_t entry = rig_entry(rig, &any), gone = rig_entry(rig, &any), handle;
	uint32_t index = handle_index(entry), generation = handle_generation(entry);

	assert_int_equal(rig_entry_unlink(rig, gone), ANSWER_OK);
	assert_int_equal(rig_insert(rig, &any, gone, POSITION_AFTER, &handle), ANSWER_GONE);
	assert_int_equal(rig_insert(rig, &elsewhere, entry, POSITION_AFTER, &handle), ANSWER_GONE);
	assert_int_equal(rig_insert(rig, &any, 0, POSITION_AFTER, &handle), ANSWER_GONE);
	assert_int_equal(
		rig_insert(rig, &any, handle_make(HANDLE_REGION, RIG_INTERFACE, index, generation),
			POSITION_AFTER, &handle),
		ANSWER_GONE);
	assert_int_equal(rig_insert(rig, &any,
				 handle_make(HANDLE_ENTRY, RIG_INTERFACE + 1, index, generation),
				 POSITION_AFTER, &handle),
		ANSWER_GONE);
	assert_int_equal(
		rig_insert(rig, &any,
			handle_make(HANDLE_ENTRY, RIG_INTERFACE, HANDLE_INDEX_MAX, generation),
			POSITION_AFTER, &handle),
		ANSWER_GONE);
	check_order(rig, 1, &entry);
}

static void entry_attach__survives_indices_out_of_limits_and_an_entry_twice(void **state)
{
	struct rig *rig = *state;
	uint64_t entry = rig_entry_any(rig, false);
	struct command command = {.kind = COMMAND_ENTRY_ATTACH};

	command.object.index = handle_index(entry);
	rig_post(rig, &command);
	command.object.index = UINT32_MAX;
	rig_post(rig, &command);
	command.object.index = 1;
	command.object.portal = RIG_PORTALS;
	rig_post(rig, &command);
	engine_poll(rig->engine);
	check_order(rig, 1, &entry);
}

static void entry_unlink__frees_its_place_and_makes_the_handle_stale(void **state)
{
	struct rig *rig = *state;
	uint64_t entry = rig_entry_any(rig, false);

	assert_int_equal(portal_length(rig, 0), 1);
	assert_int_equal(rig_entry_unlink(rig, entry), ANSWER_OK);
	assert_int_equal(portal_length(rig, 0), 0);
	assert_int_equal(rig_entry_unlink(rig, entry), ANSWER_GONE);
	check_order(rig, 0, NULL);
	/* As many as there are may come again. */
	for (uint32_t i = 0; i < rig->segment->limits.entries; i++)
		rig_entry_any(rig, false);
	assert_int_equal(segment_take(rig->segment, rig->segment->free_entries), INDEX_NONE);
}

static void entry_unlink__takes_its_region_along(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4);

	for (int unlink = 0; unlink < 2; unlink++) {
		uint64_t entry = rig_entry_any(rig, unlink);
		uint64_t region = rig_attach(rig, entry, &RIG_REGION(memory, queue), RIG_UNLINK_OP);

		assert_int_equal(rig_entry_unlink(rig, entry), ANSWER_OK);
		assert_int_equal(rig_region_unlink(rig, region), ANSWER_GONE);
		assert_int_equal(portal_length(rig, 0), 0);
	}
	rig_no_event(rig, queue);
}

static void entry_unlink__is_refused_while_its_region_has_an_operation_pending(void **state)
{
	struct rig *rig = *state;
	uint64_t entry = rig_entry_any(rig, true);
	uint64_t region = rig_attach(rig, entry, &RIG_REGION(memory, 0), 0);
	struct rig_move move = {.to = RIG_PEER};

	assert_true(rig_put(rig, region, &move));
	assert_int_equal(rig_entry_unlink(rig, entry), ANSWER_PENDING);
	assert_non_null(
		entry_find(rig->engine->spaces[0], handle_index(entry), handle_generation(entry)));
	fake_finish(fake_next(), TRANSPORT_OK);
	assert_int_equal(rig_entry_unlink(rig, entry), ANSWER_OK);
}

static void entry_unlink__of_what_never_was_is_refused(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_entry_unlink(rig, handle_make(HANDLE_ENTRY, RIG_INTERFACE, 3, 12345)),
		ANSWER_GONE);
	assert_int_equal(
		rig_entry_unlink(rig, handle_make(HANDLE_ENTRY, RIG_INTERFACE, 3, 0)), ANSWER_GONE);
	assert_int_equal(rig_entry_unlink(rig,
				 handle_make(HANDLE_ENTRY, RIG_INTERFACE, HANDLE_INDEX_MAX, 1)),
		ANSWER_GONE);
}

#define test(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(entry_attach__puts_entries_at_head_and_tail),
		test(entry_insert__puts_entries_before_and_after_another),
		test(entry_insert__beside_what_is_no_living_entry_of_that_portal_is_refused),
		test(entry_attach__survives_indices_out_of_limits_and_an_entry_twice),
		test(entry_unlink__frees_its_place_and_makes_the_handle_stale),
		test(entry_unlink__takes_its_region_along),
		test(entry_unlink__is_refused_while_its_region_has_an_operation_pending),
		test(entry_unlink__of_what_never_was_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
