/* SPDX-License-Identifier: BSD-3-Clause */
/* test_guard.c - copies of memory that may not be there, with the program's own handlers before and
 * after. What changes handlers, or dies, is done in child processes. Cmocka installs handlers of
 * its own for each test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/guard.h>
#include <base/random.h>

#include "scatter.h"

#ifdef __x86_64__
#define COPY_SIGNALS 1 /* SIGSEGVs that copy_faults() meets */
#else
#define COPY_SIGNALS 0
#endif
#define PAGES 4 /* of the arena; then comes a page that is not there */

static uint64_t random_state = 1;
static size_t page;
static uint8_t *arena;   /* may be read and written */
static uint8_t *nothing; /* PAGES pages behind it: not there */
static uint8_t *fixed;   /* a page that may be read alone */
static uint8_t *cut;     /* two pages of a file that has one: SIGBUS on the second */

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_next(&random_state) % n);
}

static int setup(void **state)
{
	char name[] = "/tmp/test-guard-XXXXXX";
	int file = mkstemp(name);

	(void)state;
	page = (size_t)sysconf(_SC_PAGESIZE);
	arena = mmap(
		NULL, 2 * PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fixed = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file < 0 || unlink(name) != 0 || ftruncate(file, (off_t)page) != 0)
		return -1;
	cut = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (arena == MAP_FAILED || fixed == MAP_FAILED || cut == MAP_FAILED)
		return -1;
	nothing = arena + PAGES * page;
	if (munmap(nothing, PAGES * page) != 0)
		return -1;
	return 0;
}

/* --- copies --- */

typedef bool (*copy_function)(void *to, const void *from, uint64_t bytes);
static const copy_function copies[] = {guard_copy, guard_copy_by_kernel};
#define COPIES (sizeof(copies) / sizeof(copies[0]))

static void copy__does_as_memmove(void **state)
{
	static uint8_t expected[3 * BUFSIZ], buffer[3 * BUFSIZ];

	(void)state;
	guard_start();
	for (unsigned c = 0; c < COPIES; c++)
		for (unsigned n = 0; n < 4000; n++) {
			uint32_t bytes = n < 1000 ? n % 40 : random_below(2 * BUFSIZ);
			uint32_t from = random_below(BUFSIZ);
			uint32_t to = n % 3 == 0 ? random_below(BUFSIZ) : (from + n % 50) % BUFSIZ;

			for (unsigned i = 0; i < sizeof(buffer); i++)
				buffer[i] = expected[i] = (uint8_t)random_next(&random_state);
			memmove(expected + to, expected + from, bytes);
			assert_true(copies[c](buffer + to, buffer + from, bytes));
			assert_memory_equal(buffer, expected, sizeof(buffer));
		}
}

static void copy__ends_where_memory_ends(void **state)
{
	uint8_t buffer[64];

	(void)state;
	guard_start();
	for (unsigned c = 0; c < COPIES; c++)
		for (unsigned bytes = 1; bytes <= sizeof(buffer); bytes++)
			for (unsigned there = 0; there <= bytes; there++) {
				bool whole = there == bytes;

				assert_int_equal(copies[c](buffer, nothing - there, bytes), whole);
				assert_int_equal(copies[c](nothing - there, buffer, bytes), whole);
			}
}

static void copy__refuses_what_is_not_there(void **state)
{
	const uintptr_t nowhere[] = {8, 4096, (uintptr_t)1 << 47, (uintptr_t)1 << 63,
		UINTPTR_MAX - 7, (uintptr_t)nothing};
	uint8_t buffer[8192] = {0};

	(void)state;
	guard_start();
	for (unsigned c = 0; c < COPIES; c++) {
		for (unsigned n = 0; n < sizeof(nowhere) / sizeof(nowhere[0]); n++)
			for (unsigned bytes = 1; bytes <= sizeof(buffer); bytes = bytes * 2 + 1) {
				assert_false(copies[c](buffer, (void *)nowhere[n], bytes));
				assert_false(copies[c]((void *)nowhere[n], buffer, bytes));
			}
		assert_true(copies[c](buffer, fixed, 8));
		assert_false(copies[c](fixed, buffer, 8));
		assert_true(copies[c](buffer, cut, page));
		assert_false(copies[c](buffer, cut + 1, page));
		assert_false(copies[c](cut + 1, buffer, page));
		assert_true(copies[c](NULL, NULL, 0));
	}
}

/* Each alignment of what is read, each length, and pages that are gone on either side. */
static void copy_streamed__does_as_memcpy_and_ends_where_memory_ends(void **state)
{
	static _Alignas(64) uint8_t buffer[512], expected[512];

	(void)state;
	guard_start();
	for (unsigned i = 0; i < page; i++)
		arena[i] = (uint8_t)random_next(&random_state);
	for (unsigned from = 0; from < 64; from++)
		for (unsigned bytes = 0; bytes <= 256; bytes++) {
			uint32_t to = 16 * random_below(8);

			memset(buffer, 0xee, sizeof(buffer));
			memset(expected, 0xee, sizeof(expected));
			memcpy(expected + to, arena + from, bytes);
			assert_true(guard_copy_streamed(buffer + to, arena + from, bytes));
			assert_memory_equal(buffer, expected, sizeof(buffer));
		}
	for (unsigned there = 0; there < 256; there++)
		for (unsigned bytes = there + 1; bytes < 300; bytes++) {
			assert_false(guard_copy_streamed(buffer, nothing - there, bytes));
			if (there % 16 == 0)
				assert_false(guard_copy_streamed(nothing - there, buffer, bytes));
		}
	for (unsigned there = 1; there < 256; there++) {
		assert_true(guard_copy_streamed(buffer, nothing - there, there));
		assert_memory_equal(buffer, nothing - there, there);
	}
	assert_false(guard_copy_streamed(buffer, cut + page - 100, 200));
	assert_false(guard_copy_streamed(cut + page - 128, buffer, 200));
	assert_false(guard_copy_streamed(fixed, buffer, 64));
}

/* After a fault in the middle the next copies are sound: the direction flag, among others. */
static void copy__from_the_end_may_fault(void **state)
{
	char text[100], moved[100];

	(void)state;
	guard_start();
	assert_false(guard_copy(nothing - 40, nothing - 48, 64));
	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (char)i;
	memcpy(moved, text, sizeof(text));
	assert_memory_equal(moved, text, sizeof(text));
	assert_true(guard_copy(text + 30, text, 50));
	assert_memory_equal(text + 30, moved, 50);
}

static void map__is_copied_piece_by_piece(void **state)
{
	struct map_vector *vector = malloc(map_vector_size(3));
	uint8_t data[48], back[48];
	struct map map;

	(void)state;
	guard_start();
	assert_non_null(vector);
	vector->count = 0;
	map_vector_add(vector, arena, 16);
	map_vector_add(vector, arena + 100, 16);
	map_vector_add(vector, nothing - 8, 16);
	map = map_of_vector(vector);
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	assert_true(map_copy_in(&map, 0, data, 40));
	assert_memory_equal(arena + 100, data + 16, 16);
	assert_true(map_copy_out(&map, 3, back, 37));
	assert_memory_equal(back, data + 3, 37);
	assert_false(map_copy_in(&map, 8, data, 33));
	assert_false(map_copy_out(&map, 0, back, 41));
	assert_true(guard_probe(&map, 0, 40, true));
	assert_false(guard_probe(&map, 0, 41, false));
	assert_true(map_copy_in(&map, 0, NULL, 0));
	free(vector);
}

/* Start and offset of a region of all memory make an address. */
static void map__may_be_all_memory(void **state)
{
	const struct map map = {.vector = MAP_MEMORY, .length = UINT64_MAX};
	uint64_t word = 7;

	(void)state;
	guard_start();
	assert_true(map_copy_in(&map, (uintptr_t)arena, &word, sizeof(word)));
	assert_memory_equal(arena, &word, sizeof(word));
	assert_false(map_copy_in(&map, (uintptr_t)nothing, &word, sizeof(word)));
	assert_false(map_copy_in(&map, 0, &word, sizeof(word)));
	assert_false(map_copy_out(&map, UINT64_MAX - 8, &word, 8));
}

static void probe__looks_at_each_page(void **state)
{
	const struct map all = {.vector = MAP_MEMORY, .length = UINT64_MAX};

	(void)state;
	guard_start();
	arena[page] = 99;
	assert_true(guard_probe(&all, (uintptr_t)arena, PAGES * page, true));
	assert_int_equal(arena[page], 99);
	assert_false(guard_probe(&all, (uintptr_t)arena, PAGES * page + 1, false));
	assert_false(guard_probe(&all, (uintptr_t)arena + 17, PAGES * page, true));
	assert_true(guard_probe(&all, (uintptr_t)fixed, page, false));
	assert_false(guard_probe(&all, (uintptr_t)fixed, 1, true));
	assert_false(guard_probe(&all, (uintptr_t)cut, page + 1, true));
	assert_true(guard_probe(&all, 0, 0, true));
}

static void load__and_exchange_take_words_of_each_size(void **state)
{
	(void)state;
	guard_start();
	for (unsigned size = 1; size <= 8; size *= 2) {
		const uint64_t mask = UINT64_MAX >> (64 - 8 * size);
		const uint64_t first = UINT64_C(0x8182838485868788), next = ~first;
		uint64_t memory[2] = {first, first}, word, was = next & mask;
		bool stored = true;

		assert_true(guard_load(memory, size, &word));
		assert_int_equal(word, first & mask);
		assert_true(guard_exchange(memory, size, &was, next, &stored));
		assert_false(stored);
		assert_int_equal(was, first & mask);
		assert_int_equal(memory[0], first);
		assert_true(guard_exchange(memory, size, &was, next, &stored));
		assert_true(stored);
		assert_int_equal(memory[0], (first & ~mask) | (next & mask));
		assert_int_equal(memory[1], first);
	}
}

#ifdef __x86_64__
static void load__and_exchange_refuse_what_is_not_there(void **state)
{
	uint64_t word, was = 0;
	bool stored;

	(void)state;
	guard_start();
	for (unsigned size = 1; size <= 8; size *= 2) {
		assert_false(guard_load(nothing, size, &word));
		assert_false(guard_exchange(nothing, size, &was, 1, &stored));
		assert_true(guard_load(fixed, size, &word));
		assert_false(guard_exchange(fixed, size, &was, 1, &stored));
		assert_false(guard_load(cut + page, size, &word));
		assert_false(guard_exchange(cut + page, size, &was, 1, &stored));
		assert_true(guard_exchange(nothing - size, size, &was, 0, &stored));
	}
}
#endif

static void *copy_badly(void *argument)
{
	uint8_t buffer[100];

	for (unsigned i = 0; i < 2000; i++)
		if (guard_copy(buffer, nothing - i % 50, 60) ||
			!guard_copy(buffer, nothing - 60, 60))
			return argument;
	return NULL;
}

static void copy__may_fault_in_many_threads(void **state)
{
	pthread_t threads[4];
	void *wrong;

	(void)state;
	guard_start();
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, copy_badly, arena), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

/* --- the program's own handlers, in children --- */

#define DONE 42 /* a child's exit code */

/* The wait status of a child that has run this. */
static int child_status(void (*run)(void))
{
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		/* What it says of its death is no news. */
		close(STDERR_FILENO);
		run();
		_exit(DONE);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void child_check(void (*run)(void))
{
	int status = child_status(run);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), DONE);
}

static void require(bool held)
{
	if (!held)
		_exit(1);
}

static bool copy_faults(void)
{
	uint8_t buffer[8];

	return !guard_copy(buffer, nothing, sizeof(buffer)) &&
	       guard_copy(buffer, arena, sizeof(buffer)) &&
	       !guard_copy(buffer, cut + page, sizeof(buffer));
}

/* Faults by an instruction that is none of a copy's. */
static void fault(void)
{
	*(volatile uint8_t *)nothing = 1;
}

static sigjmp_buf escape;
static volatile sig_atomic_t first_calls, second_calls;
static struct sigaction second_before; /* what the second handler found */

static void first(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	require(info->si_addr == nothing);
	first_calls++;
	siglongjmp(escape, 1);
}

static void first_plain(int signal)
{
	require(signal == SIGSEGV);
	first_calls++;
	siglongjmp(escape, 1);
}

static void second(int signal, siginfo_t *info, void *context)
{
	second_calls++;
	second_before.sa_sigaction(signal, info, context);
}

static void first_install(void)
{
	const struct sigaction action = {.sa_sigaction = first, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &action, NULL);
}

static void second_install(void)
{
	const struct sigaction action = {.sa_sigaction = second, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &action, &second_before);
}

static bool fault_is_caught(void)
{
	if (sigsetjmp(escape, 1) != 0)
		return true;
	fault();
	return false;
}

static void earlier_handler(void)
{
	first_install();
	guard_start();
	require(copy_faults());
	require(first_calls == 0);
	for (int i = 1; i < 4; i++) {
		require(fault_is_caught());
		require(first_calls == i);
		require(copy_faults());
	}
}

static void earlier_plain_handler(void)
{
	const struct sigaction action = {.sa_handler = first_plain};

	sigaction(SIGSEGV, &action, NULL);
	guard_start();
	require(copy_faults() && fault_is_caught() && first_calls == 1 && copy_faults());
}

/* It passes on what is not its own, as such handlers do. */
static void later_handler(void)
{
	first_install();
	guard_start();
	second_install();
	require(copy_faults());
	require(second_calls == COPY_SIGNALS);
	require(fault_is_caught());
	require(first_calls == 1 && second_calls == 1 + COPY_SIGNALS);
}

/* The guard above the second, the second above the guard: no circle. */
static void handler_between(void)
{
	first_install();
	guard_start();
	second_install();
	guard_start();
	require(copy_faults());
	require(second_calls == 0);
	for (int i = 1; i < 4; i++) {
		require(fault_is_caught());
		require(first_calls == i && second_calls == i);
	}
	guard_start();
	require(copy_faults() && second_calls == 3);
}

/* It passes nothing on; whoever asks again is above it. */
static void later_handler_that_keeps_all(void)
{
	guard_start();
	for (int i = 1; i < 40; i++) {
		first_install();
		guard_start();
		require(copy_faults());
		require(fault_is_caught());
		require(first_calls == i);
	}
}

static void no_handler(void)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};

	sigaction(SIGSEGV, &standard, NULL);
	guard_start();
	require(copy_faults());
	fault();
}

static void signal_that_was_sent(void)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};

	sigaction(SIGSEGV, &standard, NULL);
	guard_start();
	raise(SIGSEGV);
}

static void signal_that_is_ignored(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGSEGV, &ignore, NULL);
	guard_start();
	raise(SIGSEGV);
	require(copy_faults());
}

static void guard__leaves_other_faults_to_an_earlier_handler(void **state)
{
	(void)state;
	child_check(earlier_handler);
	child_check(earlier_plain_handler);
}

static void guard__lives_below_and_above_a_later_handler(void **state)
{
	(void)state;
	child_check(later_handler);
	child_check(handler_between);
	child_check(later_handler_that_keeps_all);
}

static void guard__leaves_other_faults_to_the_default_action(void **state)
{
	int status;

	(void)state;
	status = child_status(no_handler);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	status = child_status(signal_that_was_sent);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	child_check(signal_that_is_ignored);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copy__does_as_memmove),
		cmocka_unit_test(copy__ends_where_memory_ends),
		cmocka_unit_test(copy__refuses_what_is_not_there),
		cmocka_unit_test(copy_streamed__does_as_memcpy_and_ends_where_memory_ends),
		cmocka_unit_test(copy__from_the_end_may_fault),
		cmocka_unit_test(map__is_copied_piece_by_piece),
		cmocka_unit_test(map__may_be_all_memory),
		cmocka_unit_test(probe__looks_at_each_page),
		cmocka_unit_test(load__and_exchange_take_words_of_each_size),
#ifdef __x86_64__
		cmocka_unit_test(load__and_exchange_refuse_what_is_not_there),
#endif
		cmocka_unit_test(copy__may_fault_in_many_threads),
		cmocka_unit_test(guard__leaves_other_faults_to_an_earlier_handler),
		cmocka_unit_test(guard__lives_below_and_above_a_later_handler),
		cmocka_unit_test(guard__leaves_other_faults_to_the_default_action),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
