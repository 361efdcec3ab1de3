/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory.c - memory that is not there, or may not be written or read (6, 11): the operation
 * ends with PTL_NI_SEGV at each end that it concerns, and the next one is sound.
 *
 * Covers: lib/base/guard.c, lib/base/map.c, lib/engine/tiers.c, lib/engine/rma.c,
 * lib/transport/assembly.c.
 */
#include "../nap.h"
#include "fixture.h"

#include <sys/mman.h>

#define PAGE     4096
#define THERE    (80 * PAGE) /* bytes that are there, before the hole */
#define HOLE     (80 * PAGE)
#define LATE     (THERE - 40) /* from here on only 40 bytes are there */
#define ANYTHING (PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM)
#define COUNTED  (PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY)

static const ptl_size_t sizes[] = {8, 50, 64, 65, 1000, 1024, 1025, 5000, 200000};
static unsigned char *arena;      /* THERE bytes, then a hole */
static unsigned char *fixed;      /* THERE bytes that may only be read */
static unsigned char *own;        /* THERE bytes */
static unsigned char kept[THERE]; /* what own has at first */

/* Two processes, here and there, which offers all of memory. */
struct scene {
	struct node here, there;
	ptl_handle_md_t all; /* here: all of memory, counted */
	ptl_size_t failed;   /* there */
};

static unsigned char *memory_map(size_t bytes, int protection)
{
	void *memory = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

/* It is not there any more. Its addresses stay taken: another thread could map memory there. */
static void memory_close(unsigned char *memory)
{
	assert_int_equal(mprotect(memory, THERE, PROT_NONE), 0);
}

static void scene_open(struct scene *scene)
{
	arena = memory_map(THERE + HOLE, PROT_READ | PROT_WRITE);
	assert_int_equal(mprotect(arena + THERE, HOLE, PROT_NONE), 0);
	fixed = memory_map(THERE, PROT_READ | PROT_WRITE);
	memory_fill(fixed, THERE);
	assert_int_equal(mprotect(fixed, THERE, PROT_READ), 0);
	own = memory_map(THERE, PROT_READ | PROT_WRITE);
	memory_fill(own, THERE);
	memcpy(kept, own, THERE);
	pair_open(&scene->here, &scene->there, MATCHING);
	entry_make(&scene->there, NULL, PTL_SIZE_MAX, ANYTHING, 5, arena);
	scene->all = md_make(&scene->here, NULL, PTL_SIZE_MAX, COUNTED);
	scene->failed = 0;
}

static void scene_close(struct scene *scene)
{
	expect_none(scene->here.eq);
	expect_none(scene->there.eq);
	pair_close(&scene->here, &scene->there);
	munmap(arena, THERE + HOLE);
	munmap(fixed, THERE);
	munmap(own, THERE);
}

/* The next event says that there was no memory. */
static void expect_segv(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	const ptl_event_t event = expect_event(eq, kind);

	assert_int_equal(event.ni_fail_type, PTL_NI_SEGV);
	assert_int_equal(event.mlength, 0);
}

static void expect_fine(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	assert_int_equal(expect_event(eq, kind).ni_fail_type, PTL_NI_OK);
}

static void put(const struct scene *scene, const void *from, ptl_size_t bytes, const void *to)
{
	assert_ok(PtlPut(scene->all, (uintptr_t)from, bytes, PTL_ACK_REQ, scene->there.id, 0, 5,
		(uintptr_t)to, NULL, 0));
}

static void get(const struct scene *scene, const void *to, ptl_size_t bytes, const void *from)
{
	assert_ok(PtlGet(
		scene->all, (uintptr_t)to, bytes, scene->there.id, 0, 5, (uintptr_t)from, NULL));
}

/* All is as it was: a put and a get of memory that is there. */
static void scene_check(const struct scene *scene)
{
	memset(arena, 0, 3000);
	put(scene, own, 3000, arena);
	expect_fine(scene->there.eq, PTL_EVENT_PUT);
	expect_fine(scene->here.eq, PTL_EVENT_SEND);
	expect_fine(scene->here.eq, PTL_EVENT_ACK);
	assert_memory_equal(arena, own, 3000);
	get(scene, arena + 4000, 3000, own);
	expect_fine(scene->there.eq, PTL_EVENT_GET);
	expect_fine(scene->here.eq, PTL_EVENT_REPLY);
	assert_memory_equal(arena + 4000, own, 3000);
}

static void put_fails(struct scene *scene, ptl_size_t bytes, const void *to)
{
	ptl_ct_event_t before, after;

	assert_ok(PtlCTGet(scene->here.ct, &before));
	put(scene, own, bytes, to);
	expect_segv(scene->there.eq, PTL_EVENT_PUT);
	expect_fine(scene->here.eq, PTL_EVENT_SEND);
	expect_segv(scene->here.eq, PTL_EVENT_ACK);
	assert_ok(PtlCTGet(scene->here.ct, &after));
	assert_int_equal(after.success, before.success + 1);
	assert_int_equal(after.failure, before.failure + 1);
	assert_ok(PtlCTGet(scene->there.ct, &after));
	assert_int_equal(after.failure, ++scene->failed);
}

static void ptl_put__to_memory_that_is_not_there_says_so_at_both_ends(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene);
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		put_fails(&scene, sizes[i], arena + THERE);
		put_fails(&scene, sizes[i], fixed);
		if (sizes[i] > 40)
			put_fails(&scene, sizes[i], arena + LATE);
		put_fails(&scene, sizes[i], NULL);
		put_fails(&scene, sizes[i], (void *)(UINTPTR_MAX - 3));
		put_fails(&scene, sizes[i], (void *)((uintptr_t)1 << 63));
		scene_check(&scene);
	}
	scene_close(&scene);
}

/* Most of the message has been placed, frame by frame, when its end finds no place. */
static void messages__may_find_the_hole_late(void **state)
{
	const unsigned char *late;
	struct scene scene;

	(void)state;
	scene_open(&scene);
	late = arena + THERE - 190000;
	put_fails(&scene, 200000, late);
	get(&scene, own, 200000, late);
	expect_segv(scene.there.eq, PTL_EVENT_GET);
	expect_segv(scene.here.eq, PTL_EVENT_REPLY);
	get(&scene, late, 200000, own);
	expect_fine(scene.there.eq, PTL_EVENT_GET);
	expect_segv(scene.here.eq, PTL_EVENT_REPLY);
	scene_check(&scene);
	scene_close(&scene);
}

/* Nothing lies at such an address, and nothing need. */
static void messages__of_no_bytes_need_no_memory(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene);
	put(&scene, NULL, 0, arena + THERE);
	expect_fine(scene.there.eq, PTL_EVENT_PUT);
	expect_fine(scene.here.eq, PTL_EVENT_SEND);
	expect_fine(scene.here.eq, PTL_EVENT_ACK);
	get(&scene, NULL, 0, NULL);
	expect_fine(scene.there.eq, PTL_EVENT_GET);
	expect_fine(scene.here.eq, PTL_EVENT_REPLY);
	scene_close(&scene);
}

static void ptl_get__from_memory_that_is_not_there_says_so_at_both_ends(void **state)
{
	const void *places[] = {NULL, NULL, NULL, (void *)((uintptr_t)1 << 63)};
	struct scene scene;

	(void)state;
	scene_open(&scene);
	places[0] = arena + THERE;
	places[1] = arena + LATE;
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		for (unsigned p = 0; p < COUNT(places); p++) {
			if (places[p] == arena + LATE && sizes[i] <= 40)
				continue;
			get(&scene, own, sizes[i], places[p]);
			expect_segv(scene.there.eq, PTL_EVENT_GET);
			expect_segv(scene.here.eq, PTL_EVENT_REPLY);
			assert_memory_equal(own, kept, THERE);
		}
		get(&scene, arena, sizes[i], fixed);
		expect_fine(scene.there.eq, PTL_EVENT_GET);
		expect_fine(scene.here.eq, PTL_EVENT_REPLY);
		assert_memory_equal(arena, fixed, sizes[i]);
		scene_check(&scene);
	}
	scene_close(&scene);
}

static void ptl_get__into_memory_that_is_not_there_says_so_in_reply(void **state)
{
	const void *places[2];
	struct scene scene;

	(void)state;
	scene_open(&scene);
	places[0] = arena + LATE;
	places[1] = fixed;
	for (unsigned i = 0; i < COUNT(sizes); i++)
		for (unsigned p = 0; p < COUNT(places); p++) {
			if (places[p] == arena + LATE && sizes[i] <= 40)
				continue;
			get(&scene, places[p], sizes[i], own);
			expect_fine(scene.there.eq, PTL_EVENT_GET);
			expect_segv(scene.here.eq, PTL_EVENT_REPLY);
			scene_check(&scene);
		}
	scene_close(&scene);
}

static void ptl_put__from_memory_that_is_not_there_says_so_in_send(void **state)
{
	ptl_ct_event_t count;
	struct scene scene;
	ptl_handle_md_t quiet;

	(void)state;
	scene_open(&scene);
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		put(&scene, arena + THERE, sizes[i], own);
		expect_segv(scene.here.eq, PTL_EVENT_SEND);
		assert_ok(PtlCTGet(scene.here.ct, &count));
		assert_int_equal(count.failure, 2 * (i + 1)); /* SEND and ACK */
		scene_check(&scene);
	}
	quiet = md_make(&scene.here, arena + THERE - 10, 20, PTL_MD_EVENT_SEND_DISABLE);
	assert_ok(PtlPut(quiet, 0, 20, PTL_ACK_REQ, scene.there.id, 0, 5, (uintptr_t)own, NULL, 0));
	expect_segv(scene.here.eq, PTL_EVENT_ACK);
	assert_ok(PtlPut(
		quiet, 0, 20, PTL_NO_ACK_REQ, scene.there.id, 0, 5, (uintptr_t)own, NULL, 0));
	expect_segv(scene.here.eq, PTL_EVENT_SEND);
	quiet = md_make(&scene.here, arena + THERE - 10, 20, PTL_MD_VOLATILE);
	assert_ok(PtlPut(quiet, 0, 20, PTL_ACK_REQ, scene.there.id, 0, 5, (uintptr_t)own, NULL, 0));
	expect_segv(scene.here.eq, PTL_EVENT_SEND);
	scene_check(&scene);
	scene_close(&scene);
}

static void atomics__on_memory_that_is_not_there_say_so_at_both_ends(void **state)
{
	const void *places[2];
	const uint64_t operand = 1;
	struct scene scene;

	(void)state;
	scene_open(&scene);
	places[0] = arena + THERE;
	places[1] = fixed;
	for (unsigned p = 0; p < COUNT(places); p++) {
		const uintptr_t at = (uintptr_t)places[p], from = (uintptr_t)own;

		for (ptl_size_t bytes = 8; bytes <= 1024; bytes *= 4) {
			assert_ok(PtlAtomic(scene.all, from, bytes, PTL_ACK_REQ, scene.there.id, 0,
				5, at, NULL, 0, PTL_SUM, PTL_UINT64_T));
			expect_segv(scene.there.eq, PTL_EVENT_ATOMIC);
			expect_fine(scene.here.eq, PTL_EVENT_SEND);
			expect_segv(scene.here.eq, PTL_EVENT_ACK);
			assert_ok(PtlFetchAtomic(scene.all, from, scene.all, from, bytes,
				scene.there.id, 0, 5, at, NULL, 0, PTL_SUM, PTL_UINT64_T));
			expect_segv(scene.there.eq, PTL_EVENT_FETCH_ATOMIC);
			expect_fine(scene.here.eq, PTL_EVENT_SEND);
			expect_segv(scene.here.eq, PTL_EVENT_REPLY);
		}
		assert_ok(PtlSwap(scene.all, from, scene.all, from, 8, scene.there.id, 0, 5, at,
			NULL, 0, &operand, PTL_CSWAP, PTL_UINT64_T));
		expect_segv(scene.there.eq, PTL_EVENT_FETCH_ATOMIC);
		expect_fine(scene.here.eq, PTL_EVENT_SEND);
		expect_segv(scene.here.eq, PTL_EVENT_REPLY);
		scene_check(&scene);
	}
	scene_close(&scene);
}

/* From none nothing is sent; into none the operation is carried out all the same. */
static void fetches__name_the_memory_of_the_initiator_that_is_not_there(void **state)
{
	uint64_t word = 7;
	struct scene scene;

	(void)state;
	scene_open(&scene);
	assert_ok(PtlFetchAtomic(scene.all, (uintptr_t)own, scene.all, (uintptr_t)arena + THERE, 8,
		scene.there.id, 0, 5, (uintptr_t)&word, NULL, 0, PTL_SUM, PTL_UINT64_T));
	expect_segv(scene.here.eq, PTL_EVENT_SEND);
	expect_segv(scene.here.eq, PTL_EVENT_REPLY);
	assert_int_equal(word, 7);
	memset(own, 0, 8);
	own[0] = 3;
	assert_ok(PtlFetchAtomic(scene.all, (uintptr_t)arena + THERE, scene.all, (uintptr_t)own, 8,
		scene.there.id, 0, 5, (uintptr_t)&word, NULL, 0, PTL_SUM, PTL_UINT64_T));
	expect_fine(scene.there.eq, PTL_EVENT_FETCH_ATOMIC);
	expect_fine(scene.here.eq, PTL_EVENT_SEND);
	expect_segv(scene.here.eq, PTL_EVENT_REPLY);
	assert_int_equal(word, 10);
	scene_check(&scene);
	scene_close(&scene);
}

/* Memory is looked at when the message comes, and when a triggered operation runs. */
static void memory__may_go_before_the_message_comes(void **state)
{
	const ptl_ct_event_t one = {.success = 1};
	unsigned char *target, *from;
	ptl_handle_ct_t trigger;
	ptl_handle_md_t md;
	struct scene scene;

	(void)state;
	scene_open(&scene);
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		target = memory_map(THERE, PROT_READ | PROT_WRITE);
		from = memory_map(THERE, PROT_READ | PROT_WRITE);
		entry_make(&scene.there, target, THERE,
			ANYTHING | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, 6, NULL);
		md = md_make(&scene.here, from, THERE, 0);
		assert_ok(PtlCTAlloc(scene.here.ni, &trigger));
		assert_ok(PtlTriggeredPut(md, 0, sizes[i], PTL_ACK_REQ, scene.there.id, 0, 5,
			(uintptr_t)own, NULL, 0, trigger, 1));
		memory_close(target);
		memory_close(from);
		assert_ok(PtlPut(scene.all, (uintptr_t)own, sizes[i], PTL_ACK_REQ, scene.there.id,
			0, 6, 0, NULL, 0));
		expect_segv(scene.there.eq, PTL_EVENT_PUT);
		expect_fine(scene.here.eq, PTL_EVENT_SEND);
		expect_segv(scene.here.eq, PTL_EVENT_ACK);
		assert_ok(PtlCTInc(trigger, one));
		expect_segv(scene.here.eq, PTL_EVENT_SEND);
		assert_ok(PtlCTFree(trigger));
		assert_ok(PtlMDRelease(md));
		munmap(target, THERE);
		munmap(from, THERE);
	}
	scene_check(&scene);
	scene_close(&scene);
}

/* Memory that another thread takes away and gives back until it is told to stop. */
struct flicker {
	unsigned char *memory;
	atomic_bool stop;
	pthread_t thread;
};

static void *flicker_run(void *argument)
{
	struct flicker *flicker = argument;

	while (!atomic_load(&flicker->stop)) {
		mprotect(flicker->memory, PAGE, PROT_NONE);
		nap();
		mprotect(flicker->memory, PAGE, PROT_READ | PROT_WRITE);
		nap();
	}
	return NULL;
}

static void flicker_begin(struct flicker *flicker, unsigned char *memory)
{
	flicker->memory = memory;
	atomic_init(&flicker->stop, false);
	assert_int_equal(pthread_create(&flicker->thread, NULL, flicker_run, flicker), 0);
}

static void flicker_end(struct flicker *flicker)
{
	atomic_store(&flicker->stop, true);
	assert_int_equal(pthread_join(flicker->thread, NULL), 0);
}

/* Both ends say the same, and what they say is true. */
static void memory__may_go_while_an_atomic_is_carried_out(void **state)
{
	enum { TIMES = 1000, WORDS = 128 };
	uint64_t sources[WORDS], words[WORDS];
	struct flicker flicker;
	struct scene scene;
	unsigned fine = 0;

	(void)state;
	scene_open(&scene);
	for (unsigned i = 0; i < WORDS; i++)
		sources[i] = 1;
	flicker_begin(&flicker, arena);
	for (unsigned i = 0; i < TIMES; i++) {
		ptl_event_t there, here;

		assert_ok(PtlFetchAtomic(scene.all, (uintptr_t)own, scene.all, (uintptr_t)sources,
			sizeof(sources), scene.there.id, 0, 5, (uintptr_t)arena, NULL, 0, PTL_SUM,
			PTL_UINT64_T));
		there = expect_event(scene.there.eq, PTL_EVENT_FETCH_ATOMIC);
		expect_fine(scene.here.eq, PTL_EVENT_SEND);
		here = expect_event(scene.here.eq, PTL_EVENT_REPLY);
		assert_int_equal(here.ni_fail_type, there.ni_fail_type);
		assert_int_equal(here.mlength, there.mlength);
		assert_int_equal(
			here.mlength, here.ni_fail_type == PTL_NI_OK ? sizeof(sources) : 0);
		fine += here.ni_fail_type == PTL_NI_OK;
	}
	flicker_end(&flicker);
	memcpy(words, arena, sizeof(words));
	for (unsigned i = 0; i < WORDS; i++)
		assert_in_range(words[i], fine, TIMES);
	scene_check(&scene);
	scene_close(&scene);
}

#define GOES_TIMES 15 /* messages of each size, while memory comes and goes */

/* Their last page comes and goes. */
static const ptl_size_t long_sizes[] = {1025, 5000, 30000, 200000};

/* What the target has seen of the last put: its event, if there is one. */
static bool put_seen(const struct scene *scene, ptl_hdr_data_t number, ptl_event_t *event)
{
	while (PtlEQGet(scene->there.eq, event) == PTL_OK) {
		assert_int_equal(event->type, PTL_EVENT_PUT);
		if (event->hdr_data == number)
			return true;
	}
	return false;
}

/* The target's event, if it has begun the message, is the initiator's; but the target may have had
 * all before the last frame was to be sent again. */
static void memory__may_go_while_a_put_from_it_is_under_way(void **state)
{
	ptl_hdr_data_t number = 1;
	struct flicker flicker;
	struct scene scene;
	ptl_event_t there;

	(void)state;
	scene_open(&scene);
	flicker_begin(&flicker, own + THERE - PAGE);
	for (unsigned i = 0; i < COUNT(long_sizes) * GOES_TIMES; i++, number++) {
		const ptl_size_t bytes = long_sizes[i % COUNT(long_sizes)];
		ptl_event_t send;

		memset(arena, 0, bytes);
		assert_ok(PtlPut(scene.all, (uintptr_t)own + THERE - bytes, bytes, PTL_ACK_REQ,
			scene.there.id, 0, 5, (uintptr_t)arena, NULL, number));
		send = expect_event(scene.here.eq, PTL_EVENT_SEND);
		if (send.ni_fail_type == PTL_NI_OK) {
			expect_fine(scene.here.eq, PTL_EVENT_ACK);
			assert_true(put_seen(&scene, number, &there));
			assert_int_equal(there.ni_fail_type, PTL_NI_OK);
			assert_memory_equal(arena, kept + THERE - bytes, bytes);
		} else {
			assert_int_equal(send.ni_fail_type, PTL_NI_SEGV);
			if (!put_seen(&scene, number, &there))
				continue;
			if (there.ni_fail_type == PTL_NI_OK)
				assert_memory_equal(arena, kept + THERE - bytes, bytes);
			else
				assert_int_equal(there.ni_fail_type, PTL_NI_SEGV);
		}
	}
	flicker_end(&flicker);
	put(&scene, own, 8, arena);
	expect_fine(scene.here.eq, PTL_EVENT_SEND);
	expect_fine(scene.here.eq, PTL_EVENT_ACK);
	assert_true(put_seen(&scene, 0, &there));
	scene_check(&scene);
	scene_close(&scene);
}

/* Both ends say the same; but the initiator may have had all before its last frame was to be sent
 * again. */
static void memory__may_go_while_a_get_from_it_is_under_way(void **state)
{
	struct flicker flicker;
	struct scene scene;

	(void)state;
	scene_open(&scene);
	flicker_begin(&flicker, own + THERE - PAGE);
	for (unsigned i = 0; i < COUNT(long_sizes) * GOES_TIMES; i++) {
		const ptl_size_t bytes = long_sizes[i % COUNT(long_sizes)];
		ptl_event_t there, here;

		memset(arena, 0, bytes);
		get(&scene, arena, bytes, own + THERE - bytes);
		here = expect_event(scene.here.eq, PTL_EVENT_REPLY);
		there = expect_event(scene.there.eq, PTL_EVENT_GET);
		if (here.ni_fail_type == PTL_NI_OK)
			assert_memory_equal(arena, kept + THERE - bytes, bytes);
		else
			assert_int_equal(here.ni_fail_type, PTL_NI_SEGV);
		if (there.ni_fail_type == PTL_NI_OK)
			assert_int_equal(here.ni_fail_type, PTL_NI_OK);
		else
			assert_int_equal(there.ni_fail_type, PTL_NI_SEGV);
	}
	flicker_end(&flicker);
	scene_check(&scene);
	scene_close(&scene);
}

static void pieces__may_not_all_be_there(void **state)
{
	ptl_iovec_t pieces[3];
	ptl_handle_md_t md;
	struct scene scene;

	(void)state;
	scene_open(&scene);
	pieces[0] = (ptl_iovec_t){arena, 1000};
	pieces[1] = (ptl_iovec_t){arena + LATE, 100};
	pieces[2] = (ptl_iovec_t){arena + 5000, 70000};
	entry_make(&scene.there, pieces, COUNT(pieces), ANYTHING | PTL_IOVEC, 7, NULL);
	assert_ok(PtlPut(
		scene.all, (uintptr_t)own, 1040, PTL_ACK_REQ, scene.there.id, 0, 7, 0, NULL, 0));
	expect_fine(scene.there.eq, PTL_EVENT_PUT);
	expect_fine(scene.here.eq, PTL_EVENT_SEND);
	expect_fine(scene.here.eq, PTL_EVENT_ACK);
	for (ptl_size_t bytes = 1041; bytes < 71000; bytes += 20000) {
		assert_ok(PtlPut(scene.all, (uintptr_t)own, bytes, PTL_ACK_REQ, scene.there.id, 0,
			7, 0, NULL, 0));
		expect_segv(scene.there.eq, PTL_EVENT_PUT);
		expect_fine(scene.here.eq, PTL_EVENT_SEND);
		expect_segv(scene.here.eq, PTL_EVENT_ACK);
		assert_ok(PtlGet(scene.all, (uintptr_t)own, bytes, scene.there.id, 0, 7, 0, NULL));
		expect_segv(scene.there.eq, PTL_EVENT_GET);
		expect_segv(scene.here.eq, PTL_EVENT_REPLY);
	}
	md = md_make(&scene.here, pieces, COUNT(pieces), PTL_IOVEC);
	assert_ok(PtlPut(md, 990, 60, PTL_ACK_REQ, scene.there.id, 0, 5, (uintptr_t)own, NULL, 0));
	expect_segv(scene.here.eq, PTL_EVENT_SEND);
	assert_ok(PtlGet(md, 990, 60, scene.there.id, 0, 5, (uintptr_t)own, NULL));
	expect_fine(scene.there.eq, PTL_EVENT_GET);
	expect_segv(scene.here.eq, PTL_EVENT_REPLY);
	scene_check(&scene);
	scene_close(&scene);
}

static void messages__that_nothing_expected_fail_in_their_overflow_event(void **state)
{
	struct scene scene;
	ptl_handle_me_t handle;
	ptl_event_t event;
	ptl_me_t me = {.start = NULL,
		.length = PTL_SIZE_MAX,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.match_bits = 8,
		.match_id = ANYONE,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE};

	(void)state;
	scene_open(&scene);
	assert_ok(PtlMEAppend(scene.there.ni, 0, &me, PTL_OVERFLOW_LIST, NULL, &handle));
	me.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		assert_ok(PtlPut(scene.all, (uintptr_t)own, sizes[i], PTL_ACK_REQ, scene.there.id,
			0, 8, (uintptr_t)arena + THERE, NULL, 0));
		expect_fine(scene.here.eq, PTL_EVENT_SEND);
		event = expect_event(scene.here.eq, PTL_EVENT_ACK);
		assert_int_equal(event.ni_fail_type, PTL_NI_SEGV);
		assert_int_equal(event.ptl_list, PTL_OVERFLOW_LIST);
		assert_ok(PtlMEAppend(scene.there.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
		expect_segv(scene.there.eq, PTL_EVENT_PUT_OVERFLOW);
	}
	scene_check(&scene);
	scene_close(&scene);
}

static void ptl_ni_init__has_the_feature_of_memory_that_is_not_there(void **state)
{
	ptl_ni_limits_t desired = {.max_mds = 1, .features = PTL_TARGET_BIND_INACCESSIBLE}, actual;
	ptl_handle_ni_t ni;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, &desired, &actual, &ni));
	assert_int_equal(actual.features, PTL_TARGET_BIND_INACCESSIBLE);
	assert_ok(PtlNIFini(ni));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptl_put__to_memory_that_is_not_there_says_so_at_both_ends),
		cmocka_unit_test(messages__may_find_the_hole_late),
		cmocka_unit_test(messages__of_no_bytes_need_no_memory),
		cmocka_unit_test(ptl_get__from_memory_that_is_not_there_says_so_at_both_ends),
		cmocka_unit_test(ptl_get__into_memory_that_is_not_there_says_so_in_reply),
		cmocka_unit_test(ptl_put__from_memory_that_is_not_there_says_so_in_send),
		cmocka_unit_test(atomics__on_memory_that_is_not_there_say_so_at_both_ends),
		cmocka_unit_test(fetches__name_the_memory_of_the_initiator_that_is_not_there),
		cmocka_unit_test(memory__may_go_before_the_message_comes),
		cmocka_unit_test(memory__may_go_while_an_atomic_is_carried_out),
		cmocka_unit_test(memory__may_go_while_a_put_from_it_is_under_way),
		cmocka_unit_test(memory__may_go_while_a_get_from_it_is_under_way),
		cmocka_unit_test(pieces__may_not_all_be_there),
		cmocka_unit_test(messages__that_nothing_expected_fail_in_their_overflow_event),
		cmocka_unit_test(ptl_ni_init__has_the_feature_of_memory_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, group_open, group_close);
}
