/* SPDX-License-Identifier: BSD-3-Clause */
/* test_backoff.c - tests lib/base/backoff.c: how a thread waits between two looks. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include <base/backoff.h>

static long naps(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

static void backoff__naps_before_each_further_run_of_looks(void **state)
{
	unsigned looks = 0;
	long before = naps();

	(void)state;
	for (unsigned i = 0; i < 3 * BACKOFF_LOOKS; i++)
		backoff(&looks);
	assert_int_equal(looks, 3 * BACKOFF_LOOKS);
	assert_true(naps() - before >= 3);
}

static void *look_cancelled(void *seen)
{
	unsigned looks = 0;

	pthread_cancel(pthread_self());
	for (unsigned i = 0; i < 2 * BACKOFF_LOOKS; i++)
		backoff(&looks);
	*(unsigned *)seen = looks;
	return NULL;
}

static void backoff__is_no_cancellation_point(void **state)
{
	unsigned seen = 0;
	pthread_t thread;
	void *end;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, look_cancelled, &seen), 0);
	assert_int_equal(pthread_join(thread, &end), 0);
	assert_null(end);
	assert_int_equal(seen, 2 * BACKOFF_LOOKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(backoff__naps_before_each_further_run_of_looks),
		cmocka_unit_test(backoff__is_no_cancellation_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
