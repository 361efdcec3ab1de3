/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bell.c - tests of pmd-glue/bell.c: a ring in a piece of memory, as a peer would describe
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/membarrier.h>

#include <pmd-glue/bell.h>

#define REGION 4096u
#define RING   128u /* its offset */
#define POLLS  1    /* flag */
#define LIMIT  10   /* s, until a test that hangs is ended */

struct rung {
	struct bell bell;
	int event; /* the peer's end of it */
	int set;
	uint8_t *memory;
};

static uint16_t flags(const struct rung *rung)
{
	uint16_t value;

	memcpy(&value, rung->memory + RING + 4, sizeof(value));
	return value;
}

static int setup(void **state)
{
	static struct rung rung;
	const uint32_t cookie = 0x3e31f20;
	struct {
		uint16_t type, index;
		uint64_t size;
	} __attribute__((packed)) region = {.type = 4, .size = REGION};
	struct {
		uint16_t type, flags, index, region;
		uint32_t offset;
	} __attribute__((packed)) ring = {.type = 5, .offset = RING};
	int memory = memfd_create("ring", 0);

	alarm(LIMIT);
	rung.event = eventfd(0, 0);
	assert_int_equal(ftruncate(memory, REGION), 0);
	rung.set = epoll_create1(0);
	assert_true(rung.set >= 0);
	rung.memory = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	assert_ptr_not_equal(rung.memory, MAP_FAILED);
	memcpy(rung.memory + RING, &cookie, sizeof(cookie));
	bell_register();
	bell_init(&rung.bell);
	bell_hear(&rung.bell, &region, sizeof(region), memory, false);
	bell_hear(&rung.bell, &ring, sizeof(ring), rung.event, false);
	close(memory);
	*state = &rung;
	return 0;
}

static int teardown(void **state)
{
	struct rung *rung = *state;

	bell_drop(&rung->bell);
	munmap(rung->memory, REGION);
	close(rung->event);
	close(rung->set);
	alarm(0);
	return 0;
}

/* Every kernel that Postern runs on has membarrier(), but it may be forbidden. */
static void hang(struct rung *rung)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0)
		skip();
	assert_true(bell_hang(&rung->bell, rung->set));
}

static void bell_arm__asks_for_calls_until_it_polls_again(void **state)
{
	struct rung *rung = *state;
	struct pollfd called;

	hang(rung);
	called = (struct pollfd){.fd = bell_arm(&rung->bell, true), .events = POLLIN};
	assert_true(called.fd >= 0);
	assert_int_equal(flags(rung) & POLLS, 0);
	assert_int_equal(poll(&called, 1, 0), 0);
	assert_int_equal(eventfd_write(rung->event, 1), 0);
	assert_int_equal(poll(&called, 1, 0), 1);
	assert_int_equal(bell_arm(&rung->bell, false), -1);
	assert_int_equal(flags(rung) & POLLS, POLLS);
	assert_int_equal(poll(&called, 1, 0), 0);
}

/* The peer's descriptor is one whose reads wait: no poll core may be held up by that. */
static void bell_arm__does_not_wait_where_nothing_rang(void **state)
{
	struct rung *rung = *state;

	hang(rung);
	assert_true(bell_arm(&rung->bell, true) >= 0);
	assert_int_equal(bell_arm(&rung->bell, false), -1);
}

/* Nor when the peer's descriptor is something that cannot be read without waiting. */
static void bell_arm__does_not_wait_for_what_is_no_eventfd(void **state)
{
	struct rung *rung = *state;
	int other = inotify_init();

	assert_true(other >= 0);
	assert_true(dup2(other, rung->bell.event) >= 0);
	close(other);
	hang(rung);
	assert_true(bell_arm(&rung->bell, true) >= 0);
	assert_int_equal(bell_arm(&rung->bell, false), -1);
}

static void bell_hang__refuses_a_ring_outside_its_memory(void **state)
{
	struct rung *rung = *state;

	rung->bell.offset = REGION - 64 + 63;
	assert_false(bell_hang(&rung->bell, rung->set));
}

static void bell_hang__refuses_a_ring_that_its_memory_cuts_off(void **state)
{
	struct rung *rung = *state;

	/* The peer says that its memory ends before the ring's flags, though the file goes on. */
	rung->bell.region_size = RING + 4;
	assert_false(bell_hang(&rung->bell, rung->set));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			bell_arm__asks_for_calls_until_it_polls_again, setup, teardown),
		cmocka_unit_test_setup_teardown(
			bell_arm__does_not_wait_where_nothing_rang, setup, teardown),
		cmocka_unit_test_setup_teardown(
			bell_arm__does_not_wait_for_what_is_no_eventfd, setup, teardown),
		cmocka_unit_test_setup_teardown(
			bell_hang__refuses_a_ring_outside_its_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(
			bell_hang__refuses_a_ring_that_its_memory_cuts_off, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
