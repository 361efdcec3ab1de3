/* test_mailbox.c - frames from several threads to one; built for a race detector as well. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pmd-glue/mailbox.h>

#define PRODUCERS 3
#define EACH      20000 /* frames of a producer */
#define BURST     7

/* A mailbox never looks into what it carries. */
struct parcel {
	unsigned producer;
	unsigned number;
};

static struct mailbox *mailbox_new(void)
{
	struct mailbox *mailbox = aligned_alloc(MAILBOX_LINE, sizeof(*mailbox));

	assert_non_null(mailbox);
	memset(mailbox, 0, sizeof(*mailbox));
	return mailbox;
}

static struct rte_mbuf *frame(uintptr_t number)
{
	return (struct rte_mbuf *)(number * 8);
}

static void mailbox_put__takes_what_there_is_room_for(void **state)
{
	static struct rte_mbuf *frames[MAILBOX_FRAMES + 10], *taken[MAILBOX_FRAMES];
	struct mailbox *mailbox = mailbox_new();

	(void)state;
	for (unsigned i = 0; i < MAILBOX_FRAMES + 10; i++)
		frames[i] = frame(i + 1);
	/* Several times round, from every kind of place. */
	for (unsigned round = 0; round < 5; round++) {
		assert_int_equal(mailbox_put(mailbox, frames, 300), 300);
		assert_int_equal(mailbox_put(mailbox, frames + 300, MAILBOX_FRAMES - 290),
			MAILBOX_FRAMES - 300);
		assert_int_equal(mailbox_put(mailbox, frames, 1), 0);
		assert_int_equal(mailbox_take(mailbox, taken, 5), 5);
		assert_int_equal(mailbox_put(mailbox, frames + MAILBOX_FRAMES, 10), 5);
		assert_int_equal(mailbox_take(mailbox, taken + 5, MAILBOX_FRAMES - 5),
			MAILBOX_FRAMES - 5);
		assert_memory_equal(taken, frames, sizeof(taken));
		assert_int_equal(mailbox_take(mailbox, taken, MAILBOX_FRAMES), 5);
		assert_memory_equal(taken, frames + MAILBOX_FRAMES, 5 * sizeof(taken[0]));
		assert_int_equal(mailbox_take(mailbox, taken, 1), 0);
	}
	free(mailbox);
}

/* As a producer that is preempted leaves it: a place is claimed, and hides what comes after it. */
static void mailbox_take__waits_for_a_place_that_was_claimed(void **state)
{
	struct mailbox *mailbox = mailbox_new();
	struct rte_mbuf *taken[2], *second = frame(2);
	uint64_t place = atomic_fetch_add(&mailbox->tail, 1);

	(void)state;
	assert_int_equal(mailbox_put(mailbox, &second, 1), 1);
	assert_int_equal(mailbox_take(mailbox, taken, 2), 0);
	atomic_store(&mailbox->slots[place], frame(1));
	assert_int_equal(mailbox_take(mailbox, taken, 2), 2);
	assert_ptr_equal(taken[0], frame(1));
	assert_ptr_equal(taken[1], second);
	free(mailbox);
}

/* A producer that was preempted holds a position that head has passed long ago. */
static void mailbox_fit__is_nothing_beyond_a_full_box_and_all_before_it(void **state)
{
	(void)state;
	assert_int_equal(mailbox_fit(5, 5, 3), 3);
	assert_int_equal(mailbox_fit(MAILBOX_FRAMES, 1, 3), 1);
	assert_int_equal(mailbox_fit(MAILBOX_FRAMES, 0, 3), 0);
	assert_int_equal(mailbox_fit(MAILBOX_FRAMES + 1, 0, 3), 0);
	assert_int_equal(mailbox_fit(5, 5000, 3), 3);
}

struct producer {
	struct mailbox *mailbox;
	struct parcel *parcels;
	unsigned number;
};

static void *produce(void *argument)
{
	struct producer *producer = argument;
	unsigned next = 0;

	while (next < EACH) {
		struct rte_mbuf *burst[BURST];
		unsigned count = 0, put;

		for (; count < BURST && next + count < EACH; count++) {
			struct parcel *parcel = &producer->parcels[next + count];

			*parcel = (struct parcel){producer->number, next + count};
			burst[count] = (struct rte_mbuf *)parcel;
		}
		put = mailbox_put(producer->mailbox, burst, count);
		next += put;
		if (put == 0)
			sched_yield();
	}
	return NULL;
}

static void mailbox__carries_each_frame_once_and_in_its_producers_order(void **state)
{
	struct mailbox *mailbox = mailbox_new();
	struct producer producers[PRODUCERS];
	pthread_t threads[PRODUCERS];
	unsigned next[PRODUCERS] = {0}, left = PRODUCERS * EACH;

	(void)state;
	for (unsigned i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){mailbox, calloc(EACH, sizeof(struct parcel)), i};
		assert_non_null(producers[i].parcels);
		assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
	}
	while (left > 0) {
		struct rte_mbuf *taken[BURST];
		unsigned count = mailbox_take(mailbox, taken, BURST);

		for (unsigned i = 0; i < count; i++) {
			const struct parcel *parcel = (const struct parcel *)taken[i];

			assert_int_equal(parcel->number, next[parcel->producer]++);
		}
		left -= count;
		if (count == 0)
			sched_yield();
	}
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(threads[i], NULL);
		free(producers[i].parcels);
	}
	free(mailbox);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mailbox_put__takes_what_there_is_room_for),
		cmocka_unit_test(mailbox_take__waits_for_a_place_that_was_claimed),
		cmocka_unit_test(mailbox_fit__is_nothing_beyond_a_full_box_and_all_before_it),
		cmocka_unit_test(mailbox__carries_each_frame_once_and_in_its_producers_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
