/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory.c - memory of the glue.
 *
 * Covers: pmd-glue/memory.c.
 */
#include "glue_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEGABYTE ((size_t)1 << 20)

static void glue_segment_create__gives_zeroed_memory_that_can_be_mapped_again(void **state)
{
	int fd = -1;
	unsigned char *segment = glue_segment_create(MEGABYTE, 0, &fd);
	unsigned char *again;

	(void)state;
	assert_non_null(segment);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(glue_segment_commit(segment, 0, MEGABYTE), 0);
	for (size_t n = 0; n < MEGABYTE; n += 511)
		assert_int_equal(segment[n], 0);
	again = mmap(NULL, MEGABYTE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(again, MAP_FAILED);
	segment[4711] = 1;
	assert_int_equal(again[4711], 1);
	again[4712] = 2;
	assert_int_equal(segment[4712], 2);
	munmap(again, MEGABYTE);
	close(fd);
	glue_segment_reset(segment, MEGABYTE);
}

static void glue_segment_create__may_be_larger_than_the_machines_memory(void **state)
{
	size_t size = (size_t)1 << 42;
	unsigned char *segment = glue_segment_create(size, -1, NULL);

	(void)state;
	assert_non_null(segment);
	assert_int_equal(glue_segment_commit(segment, size - 4096, 4096), 0);
	segment[size - 1] = 1;
	glue_segment_reset(segment, size);
}

static void glue_segment_create__refuses_sizes_that_cannot_be(void **state)
{
	(void)state;
	assert_null(glue_segment_create(0, -1, NULL));
	log_clear_error();
	assert_null(glue_segment_create(SIZE_MAX, -1, NULL));
	assert_true(log_last_error()[0] != 0);
}

static void glue_segment_commit__refuses_what_is_outside(void **state)
{
	char *segment = glue_segment_create(MEGABYTE, -1, NULL);

	(void)state;
	assert_int_equal(glue_segment_commit(segment, 1, 1), 0);
	assert_int_equal(glue_segment_commit(segment, 0, 0), 0);
	assert_int_equal(glue_segment_commit(segment, 64 * MEGABYTE, 1), -1);
	assert_int_equal(glue_segment_commit(segment, 0, 64 * MEGABYTE), -1);
	assert_int_equal(glue_segment_commit(segment, 1, SIZE_MAX), -1);
	assert_int_equal(glue_segment_commit(segment + 4096, 0, 1), -1);
	glue_segment_reset(segment, MEGABYTE);
}

static const char *policy; /* vm.overcommit_memory; NULL: it cannot be read */

FILE *__wrap_fopen64(const char *name, const char *mode);
FILE *__real_fopen64(const char *name, const char *mode);

FILE *__wrap_fopen64(const char *name, const char *mode)
{
	if (strcmp(name, "/proc/sys/vm/overcommit_memory") != 0)
		return __real_fopen64(name, mode);
	return policy ? fmemopen((void *)(uintptr_t)policy, strlen(policy), "r") : NULL;
}

/* Bytes that a segment takes when half of it is committed. */
static size_t taken(const char *under)
{
	struct stat status;
	char *segment;
	int fd;

	policy = under;
	segment = glue_segment_create(2 * MEGABYTE, -1, &fd);
	assert_non_null(segment);
	assert_int_equal(glue_segment_commit(segment, 0, MEGABYTE), 0);
	assert_int_equal(fstat(fd, &status), 0);
	close(fd);
	glue_segment_reset(segment, 2 * MEGABYTE);
	return (size_t)status.st_blocks * 512;
}

static void glue_segment_commit__takes_memory_where_it_could_be_refused_later(void **state)
{
	(void)state;
	assert_int_equal(taken("0\n"), 0);
	assert_int_equal(taken("1\n"), 0);
	assert_int_equal(taken("2\n"), MEGABYTE);
	assert_int_equal(taken(NULL), MEGABYTE);
}

static void glue_segment_reset__leaves_zeros_and_gives_the_memory_back(void **state)
{
	int fd;
	unsigned char *segment = glue_segment_create(MEGABYTE, -1, &fd);
	unsigned char byte = 1;

	(void)state;
	assert_int_equal(glue_segment_commit(segment, 0, MEGABYTE), 0);
	memset(segment, 7, MEGABYTE);
	glue_segment_reset(segment, MEGABYTE);
	for (size_t n = 0; n < MEGABYTE; n += 511)
		assert_int_equal(segment[n], 0);
	assert_int_equal(pread(fd, &byte, 1, 12345), 1);
	assert_int_equal(byte, 0);
	close(fd);
	/* A segment that is no more cannot be committed, and resetting it again does nothing. */
	assert_int_equal(glue_segment_commit(segment, 0, 1), -1);
	glue_segment_reset(segment, MEGABYTE);
}

static void glue_memory_alloc__gives_aligned_memory_of_any_size(void **state)
{
	static const size_t sizes[] = {0, 1, 63, 64, 4095, 4096, 4097, 100000, 2 * MEGABYTE,
		5 * MEGABYTE + 3, 64 * MEGABYTE};
	char *memory[sizeof(sizes) / sizeof(sizes[0])];

	(void)state;
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		memory[n] = glue_memory_alloc(sizes[n], n % 2 ? 0 : -1);
		assert_non_null(memory[n]);
		assert_int_equal((uintptr_t)memory[n] % 64, 0);
		memset(memory[n], (int)n, sizes[n]);
	}
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		for (size_t at = 0; at < sizes[n]; at += 1021)
			assert_int_equal(memory[n][at], n);
		glue_memory_free(memory[n]);
	}
}

static void glue_memory_alloc__refuses_sizes_that_cannot_be(void **state)
{
	(void)state;
	assert_null(glue_memory_alloc(SIZE_MAX, -1));
	assert_null(glue_memory_alloc((size_t)1 << 60, -1));
}

static void glue_memory_alloc__takes_a_node_that_does_not_exist_for_no_wish(void **state)
{
	void *memory = glue_memory_alloc(100, 1000);

	(void)state;
	assert_non_null(memory);
	glue_memory_free(memory);
}

static void glue_memory_free__leaves_alone_what_is_not_its_own(void **state)
{
	_Alignas(64) char foreign[256] = {0};

	(void)state;
	glue_memory_free(NULL);
	log_clear_error();
	glue_memory_free(foreign + 64);
	assert_non_null(strstr(log_last_error(), "postern_alloc"));
}

static void glue_memory_free__leaves_alone_what_was_freed_before(void **state)
{
	static const size_t sizes[] = {100, 5 << 20};

	(void)state;
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		void *memory = glue_memory_alloc(sizes[n], -1);

		assert_non_null(memory);
		glue_memory_free(memory);
		log_clear_error();
		glue_memory_free(memory);
		assert_non_null(strstr(log_last_error(), "was freed before"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glue_segment_create__gives_zeroed_memory_that_can_be_mapped_again),
		cmocka_unit_test(glue_segment_create__may_be_larger_than_the_machines_memory),
		cmocka_unit_test(glue_segment_create__refuses_sizes_that_cannot_be),
		cmocka_unit_test(glue_segment_commit__refuses_what_is_outside),
		cmocka_unit_test(glue_segment_commit__takes_memory_where_it_could_be_refused_later),
		cmocka_unit_test(glue_segment_reset__leaves_zeros_and_gives_the_memory_back),
		cmocka_unit_test(glue_memory_alloc__gives_aligned_memory_of_any_size),
		cmocka_unit_test(glue_memory_alloc__refuses_sizes_that_cannot_be),
		cmocka_unit_test(glue_memory_alloc__takes_a_node_that_does_not_exist_for_no_wish),
		cmocka_unit_test(glue_memory_free__leaves_alone_what_is_not_its_own),
		cmocka_unit_test(glue_memory_free__leaves_alone_what_was_freed_before),
	};

	return cmocka_run_group_tests(tests, fixture_start, NULL);
}
