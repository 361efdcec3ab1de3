/* SPDX-License-Identifier: BSD-3-Clause */
/* test_threads.c - FI_THREAD_SAFE: threads that post, read, wait, register, open and close at once.
 * Each operation ends once, and with what it was to bring. FI_THREAD_DOMAIN: threads with a domain
 * each.
 * Covers: lib/fi/counter.c, lib/fi/cq.c, lib/fi/endpoint.c, lib/fi/fabric.c, lib/fi/mr.c,
 * lib/fi/rma.c, lib/fi/wait.c. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../nap.h"

#define HANG   60 /* s */
#define ROUNDS 300
#define WORDS  1024
#define KEY    UINT64_C(7)
#define BOTH   (FI_REMOTE_READ | FI_REMOTE_WRITE)

static uint64_t target[WORDS];
static struct fid_mr *region;
static _Atomic unsigned posted, ended;

/* What a thread's own operation waits for. */
struct wait {
	_Atomic unsigned ends;
};

/* Whatever has completed is told to whom it belongs. Returns false if there was nothing. */
static bool queue_read(struct fid_cq *cq, int timeout)
{
	struct fi_cq_tagged_entry entry;
	ssize_t got =
		timeout < 0 ? fi_cq_read(cq, &entry, 1) : fi_cq_sread(cq, &entry, 1, NULL, timeout);

	if (got == -FI_EAGAIN)
		return false;
	assert_int_equal(got, 1);
	atomic_fetch_add(&((struct wait *)entry.op_context)->ends, 1);
	atomic_fetch_add(&ended, 1);
	return true;
}

static void wait_end(struct wait *wait, struct fid_cq *cq, unsigned ends)
{
	const time_t end = time(NULL) + HANG;

	while (atomic_load(&wait->ends) < ends) {
		(void)queue_read(cq, -1);
		assert_true(time(NULL) < end);
	}
	assert_int_equal(atomic_load(&wait->ends), ends);
}

static void post_again(
	ssize_t (*post)(unsigned round, void *context), unsigned round, void *context)
{
	const time_t end = time(NULL) + HANG;
	ssize_t result;

	while ((result = post(round, context)) == -FI_EAGAIN)
		assert_true(time(NULL) < end);
	assert_ok(result);
	atomic_fetch_add(&posted, 1);
}

/* --- what the threads do */

static ssize_t sum_post(unsigned round, void *context)
{
	static const uint64_t one = 1;

	(void)round;
	return fi_atomic(
		sides[0].ep, &one, 1, NULL, sides[0].other, 0, KEY, FI_UINT64, FI_SUM, context);
}

static void *adds(void *unused)
{
	struct wait wait = {0};

	(void)unused;
	for (unsigned i = 0; i < ROUNDS; i++) {
		post_again(sum_post, i, &wait);
		if (i % 8 == 7)
			wait_end(&wait, sides[0].cq, i + 1);
	}
	wait_end(&wait, sides[0].cq, ROUNDS);
	return NULL;
}

/* A thread has words 8 to 15, or 16 to 23. */
static ssize_t words_move(unsigned which, unsigned round, uint64_t *memory, void *context)
{
	const uint64_t at = 64 * (1 + which);

	return round % 2
		       ? fi_read(sides[0].ep, memory, 64, NULL, sides[0].other, at, KEY, context)
		       : fi_write(sides[0].ep, memory, 64, NULL, sides[0].other, at, KEY, context);
}

static void *moves(void *argument)
{
	const unsigned which = *(const unsigned *)argument;
	const time_t end = time(NULL) + HANG;
	struct wait wait = {0};
	uint64_t memory[8];

	for (unsigned i = 0; i < ROUNDS; i++) {
		for (unsigned n = 0; n < 8; n++)
			memory[n] = i % 2 ? 0 : i * 1000 + n + which;
		while (words_move(which, i, memory, &wait) == -FI_EAGAIN)
			assert_true(time(NULL) < end);
		atomic_fetch_add(&posted, 1);
		wait_end(&wait, sides[0].cq, i + 1);
		for (unsigned n = 0; n < 8; n++)
			assert_int_equal(memory[n], (i - i % 2) * 1000 + n + which);
	}
	return NULL;
}

/* Reads for others, and is woken for nothing. */
static _Atomic bool stops;

static void *waits(void *unused)
{
	(void)unused;
	while (!atomic_load(&stops))
		(void)queue_read(sides[0].cq, 5);
	return NULL;
}

static void *signals(void *unused)
{
	(void)unused;
	while (!atomic_load(&stops)) {
		assert_ok(fi_cq_signal(sides[0].cq));
		(void)fi_cq_read(sides[1].cq, NULL, 0);
	}
	return NULL;
}

static void *registers(void *unused)
{
	static uint64_t memory[64];

	(void)unused;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct wait wait = {0};
		uint64_t value = i + 1;
		struct fid_mr *mr;

		assert_ok(fi_mr_reg(domain, &memory[i % 64], 8, BOTH, 0, 100 + i, 0, &mr, NULL));
		assert_ok(
			fi_write(sides[1].ep, &value, 8, NULL, sides[1].other, 0, 100 + i, &wait));
		atomic_fetch_add(&posted, 1);
		wait_end(&wait, sides[1].cq, 1);
		assert_ok(fi_close(&mr->fid));
		assert_int_equal(memory[i % 64], value);
	}
	return NULL;
}

static void *opens(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < ROUNDS / 20; i++) {
		struct wait wait = {0};
		struct side third = {0};
		fi_addr_t to;

		side_open(&third, &(struct wish){.wait = FI_WAIT_UNSPEC});
		assert_int_equal(fi_av_insert(third.av, sides[1].name, 1, &to, 0, NULL), 1);
		for (unsigned n = 1; n <= 10; n++) {
			assert_ok(fi_write(third.ep, &wait, 8, NULL, to, 8000, KEY, &wait));
			atomic_fetch_add(&posted, 1);
			wait_end(&wait, third.cq, n);
		}
		side_close(&third);
	}
	return NULL;
}

static void *asks(void *unused)
{
	struct fi_info *hints = hints_make(&(struct wish){.caps = FI_RMA});

	(void)unused;
	for (unsigned i = 0; i < ROUNDS / 20; i++) {
		struct fi_info *offer = offer_of(hints);
		struct fid_fabric *own;
		struct fid_domain *other;
		struct fid_mr *mr;

		assert_non_null(offer);
		assert_non_null(offer->domain_attr->domain);
		assert_ok(fi_fabric(offer->fabric_attr, &own, NULL));
		assert_ok(fi_domain(own, offer, &other, NULL));
		assert_ok(fi_mr_reg(other, target, 8, BOTH, 0, KEY, 0, &mr, NULL));
		assert_ok(fi_close(&mr->fid));
		assert_ok(fi_close(&other->fid));
		assert_ok(fi_close(&own->fid));
		fi_freeinfo(offer);
	}
	fi_freeinfo(hints);
	return NULL;
}

/* --- tables of operations */

static void *opens_alone(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < 5000; i++) {
		struct fid_ep *ep;

		assert_ok(fi_endpoint(domain, info, &ep, NULL));
		assert_ok(fi_close(&ep->fid));
	}
	atomic_store(&stops, true);
	return NULL;
}

static void *closes_counter(void *counter)
{
	assert_ok(fi_close(counter));
	return NULL;
}

/* A thread closes the last object of a domain, and another one the domain, as soon as it can. */
static void a_domain_can_be_closed_before_the_last_call_on_it_returns(void **state)
{
	struct fi_info *hints = hints_make(&(struct wish){0});
	struct fi_info *offer = offer_of(hints);
	struct fid_fabric *own;

	(void)state;
	assert_non_null(offer);
	assert_ok(fi_fabric(offer->fabric_attr, &own, NULL));
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct fid_domain *other;
		struct fid_cntr *counter;
		pthread_t thread;
		int result;

		assert_ok(fi_domain(own, offer, &other, NULL));
		assert_ok(fi_cntr_open(other, NULL, &counter, NULL));
		assert_ok(pthread_create(&thread, NULL, closes_counter, counter));
		while ((result = fi_close(&other->fid)) != 0)
			assert_int_equal(result, -FI_EBUSY);
		assert_ok(pthread_join(thread, NULL));
	}
	assert_ok(fi_close(&own->fid));
	fi_freeinfo(offer);
	fi_freeinfo(hints);
}

/* While others are opened, the operations of an endpoint are all there. */
static void an_endpoint_can_be_used_while_others_open(void **state)
{
	pthread_t thread;

	(void)state;
	pair_open(&(struct wish){0});
	assert_ok(pthread_create(&thread, NULL, opens_alone, NULL));
	while (!atomic_load(&stops)) {
		char name[NAME_BYTES];
		size_t length = sizeof(name);

		assert_int_equal(fi_cancel(&sides[0].ep->fid, name), -FI_ENOENT);
		assert_ok(fi_getname(&sides[0].ep->fid, name, &length));
	}
	assert_ok(pthread_join(thread, NULL));
	atomic_store(&stops, false);
	pair_close();
}

static struct fid_ep *enabled;
static _Atomic pid_t enabling[2]; /* threads that are about to enable an endpoint */
static _Atomic unsigned inside;   /* and those of them that were in the middle of it */
static _Thread_local bool enables_now;

/* The library's, too, as the program exports it. The first thread that enables an endpoint stays
 * here until the other one has come as far, or waits. */
__attribute__((visibility("default"))) ssize_t getrandom(void *to, size_t length, unsigned flags)
{
	const unsigned other = atomic_load(&enabling[0]) == gettid();

	if (enables_now && atomic_fetch_add(&inside, 1) == 0)
		while (atomic_load(&inside) < 2 && !thread_sleeps(atomic_load(&enabling[other])))
			nap();
	enables_now = false;
	return syscall(SYS_getrandom, to, length, flags);
}

static void *enables(void *argument)
{
	_Atomic pid_t *own = argument;

	enables_now = true;
	atomic_store(own, gettid());
	if (fi_enable(enabled) != 0)
		return NULL;
	enables_now = false;
	return own;
}

/* The later one finds it enabled. */
static void an_endpoint_is_enabled_once_by_two_threads(void **state)
{
	(void)state;
	pair_open(&(struct wish){0});
	for (unsigned i = 0; i < ROUNDS / 10; i++) {
		pthread_t threads[2];

		atomic_store(&inside, 0);
		atomic_store(&enabling[0], 0);
		atomic_store(&enabling[1], 0);
		assert_ok(fi_endpoint(domain, info, &enabled, NULL));
		assert_ok(fi_ep_bind(enabled, &sides[0].av->fid, 0));
		assert_ok(fi_ep_bind(enabled, &sides[0].cq->fid, FI_TRANSMIT | FI_RECV));
		for (unsigned n = 0; n < 2; n++)
			assert_ok(pthread_create(&threads[n], NULL, enables, &enabling[n]));
		for (unsigned n = 0; n < 2; n++) {
			void *own;

			assert_ok(pthread_join(threads[n], &own));
			assert_ptr_equal(own, &enabling[n]);
		}
		assert_int_equal(atomic_load(&inside), 1);
		assert_ok(fi_close(&enabled->fid));
	}
	pair_close();
}

/* --- threads that a child made by fork() has not */

static void child_closes(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		alarm(HANG);
		_exit(fi_close(&sides[0].ep->fid) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *sleeps(void *unused)
{
	(void)unused;
	while (!atomic_load(&stops))
		(void)queue_read(sides[0].cq, 1000);
	return NULL;
}

static void *looks(void *unused)
{
	(void)unused;
	while (!atomic_load(&stops))
		(void)queue_read(sides[0].cq, -1);
	return NULL;
}

/* At a fork() one sleeps, or has the domain's lock. */
static void a_child_closes_what_other_threads_use(void **state)
{
	void *(*const uses[])(void *) = {sleeps, looks};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const struct timespec moment = {.tv_nsec = 10000000};
		pthread_t thread;

		pair_open(&(struct wish){.wait = FI_WAIT_UNSPEC});
		assert_ok(pthread_create(&thread, NULL, uses[i], NULL));
		for (unsigned n = 0; n < 10; n++) {
			nanosleep(&moment, NULL);
			child_closes();
		}
		atomic_store(&stops, true);
		assert_ok(fi_cq_signal(sides[0].cq));
		assert_ok(pthread_join(thread, NULL));
		atomic_store(&stops, false);
		pair_close();
	}
}

/* --- threads that wait on an object that another thread closes */

struct waiter {
	struct fid *fid;
	_Atomic pid_t thread;
};

static void *awaits(void *argument)
{
	struct waiter *waiter = argument;
	struct fi_cq_tagged_entry entry;
	struct fi_eq_entry about;
	uint32_t event;

	atomic_store(&waiter->thread, gettid());
	switch (waiter->fid->fclass) {
	case FI_CLASS_CQ:
		(void)fi_cq_sread((struct fid_cq *)waiter->fid, &entry, 1, NULL, -1);
		break;
	case FI_CLASS_CNTR:
		assert_ok(fi_cntr_wait((struct fid_cntr *)waiter->fid, 1, -1));
		break;
	default:
		assert_int_equal(fi_eq_sread((struct fid_eq *)waiter->fid, &event, &about,
					 sizeof(about), -1, 0),
			sizeof(about));
	}
	return NULL;
}

/* Nobody else has a lock that it may sleep for. */
static void waiter_await(const struct waiter *waiter)
{
	while (atomic_load(&waiter->thread) == 0 || !thread_sleeps(atomic_load(&waiter->thread)))
		nap();
}

static void waiter_wake(struct fid *fid)
{
	const struct fi_eq_entry about = {0};

	switch (fid->fclass) {
	case FI_CLASS_CQ:
		assert_ok(fi_cq_signal((struct fid_cq *)fid));
		break;
	case FI_CLASS_CNTR:
		assert_ok(fi_cntr_add((struct fid_cntr *)fid, 1));
		break;
	default:
		assert_int_equal(fi_eq_write((struct fid_eq *)fid, 1, &about, sizeof(about), 0),
			sizeof(about));
	}
}

static void child_closes_object(struct fid *fid)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		alarm(HANG);
		_exit(fi_close(fid) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* In a child made by fork() nobody waits. */
static void what_a_thread_waits_for_does_not_close(void **state)
{
	struct fi_cq_attr cq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cntr_attr cntr_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_eq *eq;

	(void)state;
	pair_open(&(struct wish){0});
	assert_ok(fi_cq_open(domain, &cq_attr, &cq, NULL));
	assert_ok(fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
	assert_ok(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	for (unsigned i = 0; i < 3; i++) {
		struct waiter waiter = {.fid = i == 0 ? &cq->fid : i == 1 ? &cntr->fid : &eq->fid};
		pthread_t thread;

		assert_ok(pthread_create(&thread, NULL, awaits, &waiter));
		waiter_await(&waiter);
		assert_int_equal(fi_close(waiter.fid), -FI_EBUSY);
		child_closes_object(waiter.fid);
		waiter_wake(waiter.fid);
		assert_ok(pthread_join(thread, NULL));
		assert_ok(fi_close(waiter.fid));
	}
	pair_close();
}

/* One more endpoint beside side 1's, with a counter of its receives, or with a queue. */
static struct fid_ep *beside_open(struct fid *queue)
{
	const bool counts = queue->fclass == FI_CLASS_CNTR;
	struct fid_ep *ep;

	assert_ok(fi_endpoint(domain, info, &ep, NULL));
	assert_ok(fi_ep_bind(ep, &sides[1].av->fid, 0));
	assert_ok(fi_ep_bind(ep, counts ? &sides[1].cq->fid : queue, FI_TRANSMIT | FI_RECV));
	if (counts)
		assert_ok(fi_ep_bind(ep, queue, FI_RECV));
	assert_ok(fi_enable(ep));
	return ep;
}

/* A thread waits for a queue or a counter of some endpoints, which are closed meanwhile: it waits
 * on. */
static void endpoints_close_behind(struct fid *queue, unsigned count)
{
	struct waiter waiter = {.fid = queue};
	struct fid_ep *eps[2];
	pthread_t thread;

	for (unsigned i = 0; i < count; i++)
		eps[i] = beside_open(queue);
	assert_ok(pthread_create(&thread, NULL, awaits, &waiter));
	waiter_await(&waiter);
	for (unsigned i = 0; i < count; i++) {
		assert_ok(fi_close(&eps[i]->fid));
		assert_int_equal(fi_close(queue), -FI_EBUSY);
		assert_int_equal(pthread_tryjoin_np(thread, NULL), EBUSY);
	}
	waiter_await(&waiter);
	waiter_wake(queue);
	assert_ok(pthread_join(thread, NULL));
	assert_ok(fi_close(queue));
}

static void endpoints_close_while_a_thread_waits_for_them(void **state)
{
	struct fi_cq_attr cq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cntr_attr cntr_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_cntr *cntr;
	struct fid_cq *cq;

	(void)state;
	pair_open(&(struct wish){0});
	for (unsigned count = 1; count <= 2; count++) {
		assert_ok(fi_cq_open(domain, &cq_attr, &cq, NULL));
		endpoints_close_behind(&cq->fid, count);
		assert_ok(fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
		endpoints_close_behind(&cntr->fid, count);
	}
	pair_close();
}

/* Only the thread drives the endpoint. */
static void a_thread_hears_of_an_endpoint_that_comes_while_it_waits(void **state)
{
	struct fi_cq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct waiter waiter = {0};
	char name[NAME_BYTES], in[2];
	size_t length = sizeof(name);
	const time_t end = time(NULL) + HANG;
	struct fid_ep *later;
	pthread_t thread;
	fi_addr_t to;

	(void)state;
	pair_open(&(struct wish){0});
	assert_ok(fi_cq_open(domain, &attr, (struct fid_cq **)&waiter.fid, NULL));
	assert_ok(pthread_create(&thread, NULL, awaits, &waiter));
	waiter_await(&waiter);
	later = beside_open(waiter.fid);
	assert_ok(fi_getname(&later->fid, name, &length));
	assert_int_equal(fi_av_insert(sides[0].av, name, 1, &to, 0, NULL), 1);
	assert_ok(fi_trecv(later, in, 2, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	assert_ok(fi_tinject(sides[0].ep, "x", 2, to, 1));
	while (pthread_tryjoin_np(thread, NULL) != 0) {
		(void)fi_cq_read(sides[0].cq, NULL, 0);
		assert_true(time(NULL) < end);
	}
	assert_string_equal(in, "x");
	assert_ok(fi_close(&later->fid));
	assert_ok(fi_close(waiter.fid));
	pair_close();
}

/* --- FI_THREAD_DOMAIN */

#define OWNERS 4

/* Of a thread, which alone calls for it. */
struct owner {
	struct fid_domain *domain;
	struct side side;
	unsigned number;
};

static struct owner owners[OWNERS];
static pthread_barrier_t together;

static void owner_open(struct owner *owner)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
	struct side *side = &owner->side;
	size_t length = sizeof(side->name);

	assert_ok(fi_domain(fabric, info, &owner->domain, NULL));
	assert_ok(fi_av_open(owner->domain, &av, &side->av, NULL));
	assert_ok(fi_cq_open(owner->domain, &cq, &side->cq, NULL));
	assert_ok(fi_endpoint(owner->domain, info, &side->ep, NULL));
	assert_ok(fi_ep_bind(side->ep, &side->av->fid, 0));
	assert_ok(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
	assert_ok(fi_enable(side->ep));
	assert_ok(fi_getname(&side->ep->fid, side->name, &length));
}

/* Sends to the next one, and receives from the one before. */
static void *owner_run(void *argument)
{
	struct owner *owner = argument;
	struct side *side = &owner->side;
	const char *next = owners[(owner->number + 1) % OWNERS].side.name;
	const time_t end = time(NULL) + HANG;

	owner_open(owner);
	pthread_barrier_wait(&together);
	assert_int_equal(fi_av_insert(side->av, next, 1, &side->other, 0, NULL), 1);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct fi_cq_tagged_entry entry;
		uint64_t got[2] = {0, 0}, given[2] = {i, owner->number};
		unsigned done = 0;

		assert_ok(fi_trecv(side->ep, got, sizeof(got), NULL, FI_ADDR_UNSPEC, i, 0, got));
		assert_ok(fi_tsend(side->ep, given, sizeof(given), NULL, side->other, i, given));
		while (done < 2) {
			ssize_t result = fi_cq_read(side->cq, &entry, 1);

			assert_true(result == 1 || result == -FI_EAGAIN);
			assert_true(time(NULL) < end);
			done += result == 1;
		}
		assert_int_equal(got[0], i);
		assert_int_equal(got[1], (owner->number + OWNERS - 1) % OWNERS);
	}
	pthread_barrier_wait(&together);
	side_close(side);
	assert_ok(fi_close(&owner->domain->fid));
	return NULL;
}

/* No domain is locked, unless a thread of the provider calls for it, too. */
static void threads_have_domains_of_their_own(void **state)
{
	pthread_t threads[OWNERS];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		pair_open(&(struct wish){.threading = FI_THREAD_DOMAIN,
			.progress = i == 0 ? FI_PROGRESS_MANUAL : FI_PROGRESS_AUTO});
		assert_int_equal(info->domain_attr->threading, FI_THREAD_DOMAIN);
		assert_ok(pthread_barrier_init(&together, NULL, OWNERS));
		for (unsigned n = 0; n < OWNERS; n++) {
			owners[n] = (struct owner){.number = n};
			assert_ok(pthread_create(&threads[n], NULL, owner_run, &owners[n]));
		}
		for (unsigned n = 0; n < OWNERS; n++)
			assert_ok(pthread_join(threads[n], NULL));
		pthread_barrier_destroy(&together);
		pair_close();
	}
}

/* --- all at once */

static void each_operation_ends_once(void **state)
{
	static const unsigned which[2] = {0, 1};
	void *(*const works[])(void *) = {adds, moves, moves, registers, opens, asks};
	pthread_t threads[6], beside[2];

	(void)state;
	pair_open(&(struct wish){.caps = FI_RMA | FI_ATOMIC | FI_MSG, .wait = FI_WAIT_UNSPEC});
	assert_ok(fi_mr_reg(domain, target, sizeof(target), BOTH, 0, KEY, 0, &region, NULL));
	assert_ok(pthread_create(&beside[0], NULL, waits, NULL));
	assert_ok(pthread_create(&beside[1], NULL, signals, NULL));
	for (unsigned i = 0; i < 6; i++)
		assert_ok(pthread_create(
			&threads[i], NULL, works[i], (void *)(uintptr_t)&which[i == 2]));
	for (unsigned i = 0; i < 6; i++)
		assert_ok(pthread_join(threads[i], NULL));
	atomic_store(&stops, true);
	for (unsigned i = 0; i < 2; i++)
		assert_ok(pthread_join(beside[i], NULL));
	assert_int_equal(target[0], ROUNDS);
	assert_int_equal(atomic_load(&ended), atomic_load(&posted));
	nothing_completes(&sides[0]);
	nothing_completes(&sides[1]);
	assert_ok(fi_close(&region->fid));
	pair_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_domain_can_be_closed_before_the_last_call_on_it_returns),
		cmocka_unit_test(an_endpoint_can_be_used_while_others_open),
		cmocka_unit_test(an_endpoint_is_enabled_once_by_two_threads),
		cmocka_unit_test(a_child_closes_what_other_threads_use),
		cmocka_unit_test(what_a_thread_waits_for_does_not_close),
		cmocka_unit_test(a_thread_hears_of_an_endpoint_that_comes_while_it_waits),
		cmocka_unit_test(endpoints_close_while_a_thread_waits_for_them),
		cmocka_unit_test(threads_have_domains_of_their_own),
		cmocka_unit_test(each_operation_ends_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
