/* SPDX-License-Identifier: BSD-3-Clause */
/* test_candidate.c - tests of pmd-glue/candidate.h: the UDP ports of a process, and the addresses
 * that stand for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pmd-glue/candidate.h>

static const struct candidate_range usual = {20480, 1024};

/* These are in doc/wire.md: another implementation has to come to the same ports. */
static void candidate_index__is_as_in_the_document(void **state)
{
	static const struct {
		uint32_t pid;
		uint16_t ports[CANDIDATES];
	} known[] = {
		{0, {21384, 20921, 20507, 21474, 20588, 20815, 20658, 21270}},
		{1, {20731, 21454, 20885, 21259, 21016, 21048, 21205, 21010}},
		{1234, {21158, 20940, 20562, 20874, 20707, 20620, 21135, 21152}},
		{UINT32_MAX, {20524, 20877, 21235, 21321, 20954, 21040, 20797, 20622}},
	};

	(void)state;
	for (unsigned n = 0; n < sizeof(known) / sizeof(known[0]); n++)
		for (uint32_t k = 0; k < CANDIDATES; k++)
			assert_int_equal(usual.first + candidate_index(usual, known[n].pid, k),
				known[n].ports[k]);
}

static void candidate_index__lies_in_the_range(void **state)
{
	static const uint16_t counts[] = {16, 17, 1000, 1024, CANDIDATE_RANGES};

	(void)state;
	for (unsigned n = 0; n < sizeof(counts) / sizeof(counts[0]); n++)
		for (uint32_t pid = 0; pid < 5000; pid++)
			for (uint32_t k = 0; k < CANDIDATES; k++) {
				struct candidate_range range = {1, counts[n]};
				uint32_t index = candidate_index(range, pid * 858993u, k);
				assert_true(index < counts[n]);
				assert_true(candidate_fits(range, pid * 858993u, index));
			}
}

/* Each port is as usual as the others, among first candidates and among all. */
static void candidate_index__spreads(void **state)
{
	unsigned all[1024] = {0}, first[1024] = {0};

	(void)state;
	for (uint32_t pid = 0; pid < 102400; pid++) {
		first[candidate_index(usual, pid, 0)]++;
		for (uint32_t k = 0; k < CANDIDATES; k++)
			all[candidate_index(usual, pid, k)]++;
	}
	for (unsigned n = 0; n < 1024; n++) {
		assert_in_range(first[n], 50, 150);
		assert_in_range(all[n], 650, 950);
	}
}

static void candidate_fits__refuses_most_ports(void **state)
{
	unsigned fit = 0;

	(void)state;
	for (uint32_t index = 0; index < usual.count; index++)
		fit += candidate_fits(usual, 4711, index);
	assert_in_range(fit, 1, CANDIDATES);
}

/* 300 processes of one address, which take what is free in turn; of 90,000, one finds nothing. */
static void candidate_index__suffices_for_300_processes(void **state)
{
	unsigned without = 0;

	(void)state;
	for (uint32_t draw = 0; draw < 300; draw++) {
		bool taken[1024] = {false};

		for (uint32_t pid = 1000 + 977 * draw; pid < 1300 + 977 * draw; pid++) {
			uint32_t k = 0;
			while (k < CANDIDATES && taken[candidate_index(usual, pid, k)])
				k++;
			if (k < CANDIDATES)
				taken[candidate_index(usual, pid, k)] = true;
			else
				without++;
		}
	}
	assert_in_range(without, 0, 1);
}

static void candidate_write__is_undone_by_reading(void **state)
{
	static const uint32_t nodes[] = {1, 0x7f000001, 0x0a4d000b, 0xfffffffe};
	uint8_t address[6];

	(void)state;
	for (unsigned n = 0; n < sizeof(nodes) / sizeof(nodes[0]); n++)
		for (uint32_t index = 0; index < CANDIDATE_RANGES; index++) {
			candidate_write(address, nodes[n], index);
			assert_int_equal(candidate_node(address), nodes[n]);
			assert_int_equal(candidate_read(address), index);
			assert_int_equal(address[0] & 3, 2); /* local, and no group's */
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(candidate_index__is_as_in_the_document),
		cmocka_unit_test(candidate_index__lies_in_the_range),
		cmocka_unit_test(candidate_index__spreads),
		cmocka_unit_test(candidate_index__suffices_for_300_processes),
		cmocka_unit_test(candidate_fits__refuses_most_ports),
		cmocka_unit_test(candidate_write__is_undone_by_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
