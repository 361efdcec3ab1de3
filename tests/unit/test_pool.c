/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pool.c - tests of pmd-glue/pool.c.
 *
 * Covers: pmd-glue/pool.c.
 */
#include "glue_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <pmd-glue/pool.h>

static void mempool_take__gives_buffers_that_hold_a_frame_behind_the_headroom(void **state)
{
	static const uint32_t sizes[] = {270, 1514, 9216, 65294};

	(void)state;
	for (unsigned n = 0; n < 4; n++) {
		struct rte_mempool *pool =
			mempool_take("test", sizes[n], 1024, SOCKET_ID_ANY, true);
		struct rte_mbuf *buffer;
		assert_non_null(pool);
		buffer = rte_pktmbuf_alloc(pool);
		assert_non_null(buffer);
		assert_true(rte_pktmbuf_tailroom(buffer) >= sizes[n]);
		memset(rte_pktmbuf_mtod(buffer, void *), 1, sizes[n]);
		rte_pktmbuf_free(buffer);
		mempool_give(pool);
	}
}

static void mempool_take__has_enough_for_the_rings_and_more(void **state)
{
	struct rte_mempool *pool = mempool_take("test", 1514, 2048, SOCKET_ID_ANY, true);

	(void)state;
	assert_true(pool->size >= 2048 + 4096);
	mempool_give(pool);
	pool = mempool_take("test", 65294, 2048, SOCKET_ID_ANY, true);
	assert_true(pool->size >= 2048 + 1024);
	mempool_give(pool);
}

static void mempool_take__takes_over_what_was_given_back_and_fits(void **state)
{
	struct rte_mempool *pool = mempool_take("test", 1514, 1024, SOCKET_ID_ANY, true);
	struct rte_mempool *other = mempool_take("test", 1514, 1024, SOCKET_ID_ANY, true);

	(void)state;
	assert_ptr_not_equal(pool, other);
	mempool_give(pool);
	assert_ptr_equal(mempool_take("test", 1514, 1024, SOCKET_ID_ANY, true), pool);
	mempool_give(pool);
	assert_ptr_not_equal(mempool_take("test", 1515 + 64, 1024, SOCKET_ID_ANY, true), pool);
	mempool_give(other);
}

static void pool_used__counts_the_buffers_that_are_not_free(void **state)
{
	struct rte_mempool *pool = mempool_take("test", 1514, 1024, SOCKET_ID_ANY, true);
	struct rte_mbuf *first = rte_pktmbuf_alloc(pool);
	struct rte_mbuf *second = rte_pktmbuf_alloc(pool);

	(void)state;
	assert_int_equal(pool_used(pool), 2);
	rte_pktmbuf_free(first);
	assert_int_equal(pool_used(pool), 1);
	rte_pktmbuf_free(second);
	assert_int_equal(pool_used(pool), 0);
	mempool_give(pool);
}

/* Bytes of this process that are in memory and in no program's file, to the page:
 * /proc/self/status leaves out what the kernel has not added up yet. This function allocates
 * nothing, because AddressSanitizer keeps freed memory for a while. */
static uint64_t memory_own(void)
{
	static const char *const names[] = {"\nPss_Anon:", "\nPss_Shmem:"};
	static char text[4096];
	int file = open("/proc/self/smaps_rollup", O_RDONLY);
	ssize_t length = read(file, text, sizeof(text) - 1);
	uint64_t all = 0;

	assert_true(length > 0);
	close(file);
	text[length] = '\0';
	for (unsigned n = 0; n < 2; n++) {
		const char *line = strstr(text, names[n]);
		assert_non_null(line);
		all += strtoull(line + strlen(names[n]), NULL, 10) << 10;
	}
	return all;
}

/* Its buffers take 33 MB with a long frame, and its structure 1 MB. 16 KB are
 * written, with AddressSanitizer 32. */
static void mempool_take__costs_no_memory_but_for_the_buffers_that_are_in_use(void **state)
{
	uint64_t before = memory_own();
	struct rte_mempool *pool = mempool_take("test", 33024 + 128, 1024, SOCKET_ID_ANY, true);
	static struct rte_mbuf *buffers[8192];
	unsigned count = 0;

	(void)state;
	/* One at a time, now and then, as a port that does next to nothing. */
	for (unsigned n = 0; n < 8; n++)
		rte_pktmbuf_free(rte_pktmbuf_alloc(pool));
	assert_true(memory_own() - before < UINT64_C(64) << 10);
	/* All the same, a thread that wants all of them has them, and each is sound. */
	while (count < 8192 && (buffers[count] = rte_pktmbuf_alloc(pool))) {
		assert_ptr_equal(buffers[count]->pool, pool);
		assert_int_equal(rte_mbuf_refcnt_read(buffers[count]), 1);
		assert_true(rte_pktmbuf_tailroom(buffers[count]) >= 33024 + 128);
		memset(rte_pktmbuf_mtod(buffers[count], void *), (int)count, 33024);
		count++;
	}
	assert_int_equal(count, pool->size);
	assert_int_equal(pool_used(pool), pool->size);
	rte_pktmbuf_free_bulk(buffers, count);
	assert_int_equal(pool_used(pool), 0);
	mempool_give(pool);
}

#define TAKERS 4
#define ROUNDS 20000

/* Takes as many as it can have, a few at a time, and gives them back in turn. */
static void *take_and_give(void *context)
{
	struct rte_mempool *pool = context;
	static _Thread_local struct rte_mbuf *buffers[512];
	unsigned count = 0;

	glue_thread_enter();
	for (unsigned round = 0; round < ROUNDS; round++) {
		if (count + 16 <= 512 && rte_pktmbuf_alloc_bulk(pool, buffers + count, 16) == 0)
			count += 16;
		else
			while (count > 0)
				rte_pktmbuf_free(buffers[--count]);
	}
	rte_pktmbuf_free_bulk(buffers, count);
	return NULL;
}

static void mempool_take__gives_each_buffer_to_one_thread_while_several_make_them(void **state)
{
	struct rte_mempool *pool = mempool_take("test", 512, 256, SOCKET_ID_ANY, true);
	static struct rte_mbuf *buffers[8192];
	pthread_t threads[TAKERS];
	unsigned count = 0;

	(void)state;
	for (unsigned n = 0; n < TAKERS; n++)
		assert_int_equal(pthread_create(&threads[n], NULL, take_and_give, pool), 0);
	for (unsigned n = 0; n < TAKERS; n++)
		pthread_join(threads[n], NULL);
	assert_int_equal(pool_used(pool), 0);
	while (count < 8192 && (buffers[count] = rte_pktmbuf_alloc(pool)))
		count++;
	assert_int_equal(count, pool->size);
	for (unsigned n = 0; n < count; n++)
		assert_int_equal(rte_mbuf_refcnt_read(buffers[n]), 1);
	rte_pktmbuf_free_bulk(buffers, count);
	mempool_give(pool);
}

struct turn {
	struct rte_mempool *pool;
	pthread_barrier_t taken, over;
};

#define THREADS (2 * POOL_THREADS)
#define KEPT    700u

/* Has many buffers, gives them back, and sits there. */
static void *take_and_sit(void *context)
{
	struct turn *turn = context;
	struct rte_mbuf *buffers[KEPT];
	unsigned count = 0;

	glue_thread_enter();
	while (count < KEPT && (buffers[count] = rte_pktmbuf_alloc(turn->pool)))
		count++;
	rte_pktmbuf_free_bulk(buffers, count);
	while (count > 0 && (buffers[0] = rte_pktmbuf_alloc(turn->pool))) {
		rte_pktmbuf_free(buffers[0]);
		count--;
	}
	pthread_barrier_wait(&turn->taken);
	pthread_barrier_wait(&turn->over);
	return NULL;
}

static unsigned pool_drain(struct rte_mempool *pool)
{
	static struct rte_mbuf *buffers[16384];
	unsigned count = 0, all;

	while (count < 16384 && (buffers[count] = rte_pktmbuf_alloc(pool)))
		count++;
	all = count;
	while (count > 0)
		rte_pktmbuf_free(buffers[--count]);
	return all;
}

static void mempool_take__has_enough_whatever_idle_threads_keep(void **state)
{
	struct turn turn = {.pool = mempool_take("test", 33024, 1024, SOCKET_ID_ANY, true)};
	pthread_t threads[THREADS];
	unsigned cached = 0;

	(void)state;
	pthread_barrier_init(&turn.taken, NULL, 2);
	pthread_barrier_init(&turn.over, NULL, THREADS + 1);
	for (unsigned n = 0; n < THREADS; n++) {
		assert_int_equal(pthread_create(&threads[n], NULL, take_and_sit, &turn), 0);
		pthread_barrier_wait(&turn.taken);
	}
	for (unsigned n = 0; n < RTE_MAX_LCORE; n++)
		cached += turn.pool->local_cache[n].flushthresh;
	assert_in_range(cached, 1, POOL_ASIDE);
	assert_true(pool_drain(turn.pool) >= turn.pool->size - POOL_ASIDE);
	pthread_barrier_wait(&turn.over);
	for (unsigned n = 0; n < THREADS; n++)
		pthread_join(threads[n], NULL);
	/* Those that have ended have left nothing behind. */
	assert_int_equal(pool_drain(turn.pool), turn.pool->size);
	pthread_barrier_destroy(&turn.taken);
	pthread_barrier_destroy(&turn.over);
	mempool_give(turn.pool);
}

static void mempool_take__says_what_to_do_without_memory(void **state)
{
	struct rte_mempool *pools[64];
	unsigned count = 0;

	(void)state;
	/* EAL's own memory has an end. */
	while (count < 64 &&
		(pools[count] = mempool_take("test", 65294, 2048, SOCKET_ID_ANY, false)))
		count++;
	assert_true(count < 64);
	assert_non_null(strstr(log_last_error(), "test: cannot have"));
	while (count > 0)
		mempool_give(pools[--count]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mempool_take__gives_buffers_that_hold_a_frame_behind_the_headroom),
		cmocka_unit_test(mempool_take__has_enough_for_the_rings_and_more),
		cmocka_unit_test(mempool_take__takes_over_what_was_given_back_and_fits),
		cmocka_unit_test(pool_used__counts_the_buffers_that_are_not_free),
		cmocka_unit_test(mempool_take__costs_no_memory_but_for_the_buffers_that_are_in_use),
		cmocka_unit_test(
			mempool_take__gives_each_buffer_to_one_thread_while_several_make_them),
		cmocka_unit_test(mempool_take__has_enough_whatever_idle_threads_keep),
		cmocka_unit_test(mempool_take__says_what_to_do_without_memory),
	};

	return cmocka_run_group_tests(tests, fixture_start, NULL);
}
