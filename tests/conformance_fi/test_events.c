/* SPDX-License-Identifier: BSD-3-Clause */
/* test_events.c - FI_RMA_EVENT: counters of what peers do to a region (fi_mr(3)), and to the
 * regions of an endpoint (fi_endpoint(3)).
 * Covers: lib/fi/mr.c, lib/fi/counter.c. */
#include "fixture.h"

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define HANG  60 /* s */
#define BYTES 200000
#define KEY   UINT64_C(0x55)
#define BOTH  (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Of a region, and of an endpoint: what its counters are to be. */
struct expected {
	uint64_t region_writes, region_reads, writes, reads;
};

static uint64_t target[BYTES / 8], local[BYTES / 8];
static struct fid_mr *region, *uncounted;
static struct fid_cntr *region_writes, *region_reads, *writes, *reads;
static struct fid_ep *ep; /* of the target */
static fi_addr_t there;   /* it, in the vector of side 0 */
static int context;

static struct fid_cntr *counter_open(enum fi_wait_obj wait, void *own)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = wait};
	struct fid_cntr *counter;

	assert_ok(fi_cntr_open(domain, &attr, &counter, own));
	return counter;
}

static uint64_t at_of(const void *memory)
{
	return info->domain_attr->mr_mode == FI_MR_BASIC ? (uintptr_t)memory : 0;
}

/* An endpoint of the target whose counters count what peers do. */
static void target_open(struct fid_ep **opened, fi_addr_t *address, struct fid_cntr *of_writes,
	struct fid_cntr *of_reads)
{
	char name[NAME_BYTES];
	size_t length = sizeof(name);

	assert_ok(fi_endpoint(domain, info, opened, NULL));
	assert_ok(fi_ep_bind(*opened, &sides[1].av->fid, 0));
	assert_ok(fi_ep_bind(*opened, &sides[1].cq->fid, FI_TRANSMIT | FI_RECV));
	if (of_writes)
		assert_ok(fi_ep_bind(*opened, &of_writes->fid, FI_REMOTE_WRITE));
	if (of_reads)
		assert_ok(fi_ep_bind(*opened, &of_reads->fid, FI_REMOTE_READ));
	assert_ok(fi_enable(*opened));
	assert_ok(fi_getname(&(*opened)->fid, name, &length));
	assert_int_equal(fi_av_insert(sides[0].av, name, 1, address, 0, NULL), 1);
}

static void all_open(int mr_mode)
{
	pair_open(&(struct wish){.caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT, .mr_mode = mr_mode});
	region_writes = counter_open(FI_WAIT_UNSPEC, &region_writes);
	region_reads = counter_open(FI_WAIT_UNSPEC, &region_reads);
	writes = counter_open(FI_WAIT_UNSPEC, &writes);
	reads = counter_open(FI_WAIT_UNSPEC, &reads);
	target_open(&ep, &there, writes, reads);
	assert_ok(fi_mr_reg(domain, target, BYTES, BOTH, 0, KEY, FI_RMA_EVENT, &region, NULL));
	assert_ok(fi_mr_bind(region, &region_writes->fid, FI_REMOTE_WRITE));
	assert_ok(fi_mr_bind(region, &region_reads->fid, FI_REMOTE_READ));
	assert_ok(fi_mr_enable(region));
	assert_ok(fi_mr_reg(domain, target, BYTES, BOTH, 0, KEY + 1, 0, &uncounted, NULL));
	memset(target, 0, sizeof(target));
}

static int opened(void **state)
{
	(void)state;
	all_open(0);
	return 0;
}

static int opened_basic(void **state)
{
	(void)state;
	all_open(FI_MR_BASIC);
	return 0;
}

static void mr_close(struct fid_mr **mr)
{
	if (*mr)
		assert_ok(fi_close(&(*mr)->fid));
	*mr = NULL;
}

static int closed(void **state)
{
	struct fid_cntr *counters[] = {region_writes, region_reads, writes, reads};

	(void)state;
	if (ep)
		assert_ok(fi_close(&ep->fid));
	ep = NULL;
	mr_close(&region);
	mr_close(&uncounted);
	for (unsigned i = 0; i < 4; i++)
		assert_ok(fi_close(&counters[i]->fid));
	pair_close();
	return 0;
}

/* The operations of side 0 have all ended, and so have those of the target. */
static void counted(const struct expected *expected)
{
	assert_int_equal(fi_cntr_read(region_writes), expected->region_writes);
	assert_int_equal(fi_cntr_read(region_reads), expected->region_reads);
	assert_int_equal(fi_cntr_read(writes), expected->writes);
	assert_int_equal(fi_cntr_read(reads), expected->reads);
	assert_int_equal(fi_cntr_readerr(region_writes), 0);
	assert_int_equal(fi_cntr_readerr(region_reads), 0);
	assert_int_equal(fi_cntr_readerr(writes), 0);
	assert_int_equal(fi_cntr_readerr(reads), 0);
}

/* A write without a completion has come when a later read, or the counter, says so. */
static void count_await(struct fid_cntr *counter, uint64_t value)
{
	const time_t end = time(NULL) + HANG;

	while (fi_cntr_read(counter) < value) {
		(void)fi_cq_read(sides[0].cq, NULL, 0);
		assert_true(time(NULL) < end);
	}
	assert_int_equal(fi_cntr_read(counter), value);
}

/* --- what is counted */

static void every_form_of_a_write_counts(void **state)
{
	const size_t sizes[] = {1, 8, 64, 65, 4096, BYTES};
	const uint64_t at = at_of(target), key = fi_mr_key(region);
	struct expected expected = {0};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct iovec iov[2] = {
			{local, sizes[i] / 2}, {local, sizes[i] - sizes[i] / 2}};
		const struct fi_rma_iov to = {at, sizes[i], key};
		const struct fi_msg_rma message = {.msg_iov = iov,
			.iov_count = 2,
			.addr = there,
			.rma_iov = &to,
			.rma_iov_count = 1,
			.context = &context};

		assert_ok(fi_write(sides[0].ep, local, sizes[i], NULL, there, at, key, &context));
		done_take(FI_RMA | FI_WRITE, &context);
		assert_ok(fi_writev(sides[0].ep, iov, NULL, 2, there, at, key, &context));
		done_take(FI_RMA | FI_WRITE, &context);
		assert_ok(fi_writemsg(sides[0].ep, &message, 0));
		done_take(FI_RMA | FI_WRITE, &context);
		assert_ok(fi_writedata(
			sides[0].ep, local, sizes[i], NULL, i, there, at, key, &context));
		done_take(FI_RMA | FI_WRITE, &context);
		completion_take(&sides[1], NULL, NULL);
		expected.writes = expected.region_writes += 4;
		counted(&expected);
		if (sizes[i] > 4096)
			continue;
		assert_ok(fi_inject_write(sides[0].ep, local, sizes[i], there, at, key));
		assert_ok(fi_inject_writedata(sides[0].ep, local, sizes[i], i, there, at, key));
		completion_take(&sides[1], NULL, NULL);
		expected.writes = expected.region_writes += 2;
		count_await(writes, expected.writes);
		counted(&expected);
	}
}

static void every_form_of_a_read_counts(void **state)
{
	const size_t sizes[] = {1, 8, 1024, 1025, BYTES};
	const uint64_t at = at_of(target), key = fi_mr_key(region);
	struct expected expected = {0};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct iovec iov = {local, sizes[i]};
		const struct fi_rma_iov from = {at, sizes[i], key};
		const struct fi_msg_rma message = {.msg_iov = &iov,
			.iov_count = 1,
			.addr = there,
			.rma_iov = &from,
			.rma_iov_count = 1,
			.context = &context};

		assert_ok(fi_read(sides[0].ep, local, sizes[i], NULL, there, at, key, &context));
		done_take(FI_RMA | FI_READ, &context);
		assert_ok(fi_readv(sides[0].ep, &iov, NULL, 1, there, at, key, &context));
		done_take(FI_RMA | FI_READ, &context);
		assert_ok(fi_readmsg(sides[0].ep, &message, 0));
		done_take(FI_RMA | FI_READ, &context);
		expected.region_reads += 3;
		/* A long read has ended here before its target knows. */
		count_await(region_reads, expected.region_reads);
		count_await(reads, expected.region_reads);
		expected.reads = expected.region_reads;
		counted(&expected);
	}
}

/* Fetches change a region and read it; an endpoint counts them as reads. */
static void atomics_count_by_what_they_do(void **state)
{
	const uint64_t at = at_of(target), key = fi_mr_key(region);
	struct expected expected = {0};
	struct fid_ep *from = sides[0].ep;
	uint64_t one = 1, zero = 0, old;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		assert_ok(fi_atomic(
			from, &one, 1, NULL, there, at, key, FI_UINT64, FI_SUM, &context));
		done_take(FI_ATOMIC | FI_WRITE, &context);
		expected.writes++;
		expected.region_writes++;
		counted(&expected);
		assert_ok(fi_atomic(
			from, &one, 1, NULL, there, at, key, FI_UINT64, FI_ATOMIC_WRITE, &context));
		done_take(FI_ATOMIC | FI_WRITE, &context);
		expected.writes++;
		expected.region_writes++;
		counted(&expected);
		assert_ok(fi_inject_atomic(from, &one, 1, there, at, key, FI_UINT64, FI_SUM));
		count_await(writes, ++expected.writes);
		expected.region_writes++;
		counted(&expected);
		assert_ok(fi_fetch_atomic(from, &one, 1, NULL, &old, NULL, there, at, key,
			FI_UINT64, FI_SUM, &context));
		done_take(FI_ATOMIC | FI_READ, &context);
		expected.reads++;
		expected.region_reads++;
		expected.region_writes++;
		counted(&expected);
		assert_ok(fi_fetch_atomic(from, &one, 1, NULL, &old, NULL, there, at, key,
			FI_UINT64, FI_ATOMIC_WRITE, &context));
		done_take(FI_ATOMIC | FI_READ, &context);
		expected.reads++;
		expected.region_reads++;
		expected.region_writes++;
		counted(&expected);
		assert_ok(fi_compare_atomic(from, &one, 1, NULL, &zero, NULL, &old, NULL, there, at,
			key, FI_UINT64, FI_CSWAP, &context));
		done_take(FI_ATOMIC | FI_READ, &context);
		expected.reads++;
		expected.region_reads++;
		expected.region_writes++;
		counted(&expected);
		assert_ok(fi_fetch_atomic(from, NULL, 1, NULL, &old, NULL, there, at, key,
			FI_UINT64, FI_ATOMIC_READ, &context));
		done_take(FI_ATOMIC | FI_READ, &context);
		expected.reads++;
		expected.region_reads++;
		counted(&expected);
	}
}

/* A read of a region that only admits reads, or whose memory cannot be written, is no error. */
static void an_atomic_read_counts_once(void **state)
{
	void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fid_mr *mr[2];
	uint64_t old;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_ok(fi_mr_reg(domain, memory, 4096, FI_REMOTE_READ, 0, 1, 0, &mr[0], NULL));
	assert_ok(fi_mr_reg(domain, memory, 4096, BOTH, 0, 2, 0, &mr[1], NULL));
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(fi_mr_bind(mr[i], &region_reads->fid, FI_REMOTE_READ));
		assert_ok(fi_mr_bind(mr[i], &region_writes->fid, FI_REMOTE_WRITE));
		assert_ok(fi_fetch_atomic(sides[0].ep, NULL, 1, NULL, &old, NULL, there,
			at_of(memory), fi_mr_key(mr[i]), FI_UINT64, FI_ATOMIC_READ, &context));
		done_take(FI_ATOMIC | FI_READ, &context);
		counted(&(struct expected){.region_reads = i + 1, .reads = i + 1});
	}
	mr_close(&mr[0]);
	mr_close(&mr[1]);
	assert_int_equal(munmap(memory, 4096), 0);
}

static void a_region_without_a_counter_stands_beside_one_with(void **state)
{
	const uint64_t at = at_of(target);

	(void)state;
	for (unsigned i = 1; i <= 20; i++) {
		assert_ok(fi_write(
			sides[0].ep, local, 8, NULL, there, at, fi_mr_key(uncounted), &context));
		done_take(FI_RMA | FI_WRITE, &context);
		assert_ok(fi_read(
			sides[0].ep, local, 8, NULL, there, at, fi_mr_key(uncounted), &context));
		done_take(FI_RMA | FI_READ, &context);
		counted(&(struct expected){
			.region_writes = i - 1, .writes = 2 * i - 1, .reads = i});
		assert_ok(fi_write(
			sides[0].ep, local, 8, NULL, there, at, fi_mr_key(region), &context));
		done_take(FI_RMA | FI_WRITE, &context);
		counted(&(struct expected){.region_writes = i, .writes = 2 * i, .reads = i});
	}
	/* An endpoint without counters: its regions have theirs. */
	assert_ok(fi_write(
		sides[0].ep, local, 8, NULL, sides[0].other, at, fi_mr_key(region), &context));
	done_take(FI_RMA | FI_WRITE, &context);
	counted(&(struct expected){.region_writes = 21, .writes = 40, .reads = 20});
}

static void an_access_counts_once_in_a_counter(void **state)
{
	struct fid_cntr *all = counter_open(FI_WAIT_NONE, NULL);
	struct fid_ep *one;
	struct fid_mr *mr;
	fi_addr_t to;
	uint64_t old, more = 1;

	(void)state;
	target_open(&one, &to, all, all);
	assert_ok(fi_mr_reg(domain, target, 8, BOTH, 0, 9, 0, &mr, NULL));
	assert_ok(fi_mr_bind(mr, &all->fid, BOTH));
	assert_ok(
		fi_write(sides[0].ep, local, 8, NULL, to, at_of(target), fi_mr_key(mr), &context));
	done_take(FI_RMA | FI_WRITE, &context);
	assert_int_equal(fi_cntr_read(all), 1);
	assert_ok(fi_fetch_atomic(sides[0].ep, &more, 1, NULL, &old, NULL, to, at_of(target),
		fi_mr_key(mr), FI_UINT64, FI_SUM, &context));
	done_take(FI_ATOMIC | FI_READ, &context);
	assert_int_equal(fi_cntr_read(all), 2);
	assert_ok(fi_close(&one->fid));
	mr_close(&mr);
	assert_ok(fi_close(&all->fid));
}

/* The target's program makes no call meanwhile. */
static void no_access_waits_for_the_target_s_program(void **state)
{
	enum { COUNT = 40000 };
	const uint64_t at = at_of(target), key = fi_mr_key(region);
	const time_t end = time(NULL) + HANG;

	(void)state;
	for (unsigned i = 0; i < COUNT;) {
		ssize_t result = fi_inject_write(sides[0].ep, local, 8, there, at, key);

		if (result == 0)
			i++;
		else
			assert_int_equal(result, -FI_EAGAIN);
		assert_true(time(NULL) < end);
	}
	count_await(region_writes, COUNT);
	counted(&(struct expected){.region_writes = COUNT, .writes = COUNT});
}

/* --- errors */

static void what_is_refused_counts_nothing(void **state)
{
	const uint64_t at = at_of(target), key = fi_mr_key(region);
	struct fid_mr *mr;

	(void)state;
	assert_ok(fi_mr_reg(domain, target, 8, FI_REMOTE_READ, 0, 3, 0, &mr, NULL));
	assert_ok(fi_mr_bind(mr, &region_writes->fid, FI_REMOTE_WRITE));
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, there, at, fi_mr_key(mr), &context));
	failed_take(FI_EACCES, FI_RMA | FI_WRITE, &context);
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, there, at + BYTES, key, &context));
	failed_take(FI_EKEYREJECTED, FI_RMA | FI_WRITE, &context);
	assert_ok(fi_read(sides[0].ep, local, 8, NULL, there, at + BYTES - 7, key, &context));
	failed_take(FI_EKEYREJECTED, FI_RMA | FI_READ, &context);
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, there, at, key ^ 1024, &context));
	failed_take(FI_EKEYREJECTED, FI_RMA | FI_WRITE, &context);
	counted(&(struct expected){0});
	mr_close(&mr);
}

/* An access that the region admits, and that fails, is an error at its target, too. */
static void an_access_that_fails_counts_as_an_error(void **state)
{
	void *gone = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t one = 1;
	struct fid_mr *mr;

	(void)state;
	assert_ptr_not_equal(gone, MAP_FAILED);
	assert_ok(fi_mr_reg(domain, gone, BYTES, BOTH, 0, 3, 0, &mr, NULL));
	assert_ok(fi_mr_bind(mr, &region_writes->fid, FI_REMOTE_WRITE));
	assert_ok(fi_mr_bind(mr, &region_reads->fid, FI_REMOTE_READ));
	assert_ok(
		fi_write(sides[0].ep, local, 8, NULL, there, at_of(gone), fi_mr_key(mr), &context));
	failed_take(FI_EFAULT, FI_RMA | FI_WRITE, &context);
	assert_ok(fi_atomic(sides[0].ep, &one, 1, NULL, there, at_of(gone), fi_mr_key(mr),
		FI_UINT64, FI_SUM, &context));
	failed_take(FI_EFAULT, FI_ATOMIC | FI_WRITE, &context);
	assert_ok(fi_read(
		sides[0].ep, local, BYTES, NULL, there, at_of(gone), fi_mr_key(mr), &context));
	failed_take(FI_EFAULT, FI_RMA | FI_READ, &context);
	assert_int_equal(fi_cntr_readerr(region_writes), 2);
	assert_int_equal(fi_cntr_readerr(writes), 2);
	assert_int_equal(fi_cntr_readerr(region_reads), 1);
	assert_int_equal(fi_cntr_readerr(reads), 1);
	assert_int_equal(fi_cntr_wait(region_reads, 1, 10), -FI_ETIMEDOUT);
	assert_int_equal(fi_cntr_read(region_writes), 0);
	assert_int_equal(fi_cntr_read(reads), 0);
	mr_close(&mr);
	assert_int_equal(munmap(gone, BYTES), 0);
}

static void a_bad_bind_is_refused(void **state)
{
	struct fi_info *less = fi_dupinfo(info);
	struct fid_domain *elsewhere;
	struct fid_cntr *foreign;
	struct fid_ep *plain;

	(void)state;
	assert_int_equal(fi_mr_bind(uncounted, &writes->fid, 0), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(uncounted, &writes->fid, FI_SEND), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(region, &writes->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	assert_int_equal(fi_mr_bind(region, &writes->fid, BOTH), -FI_EINVAL);
	assert_int_equal(fi_mr_bind(region, &sides[1].cq->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
	assert_ok(fi_mr_bind(region, &ep->fid, 0));
	assert_int_equal(fi_mr_bind(region, &ep->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS);
	assert_ok(fi_domain(fabric, info, &elsewhere, NULL));
	assert_ok(fi_endpoint(elsewhere, info, &plain, NULL));
	assert_int_equal(fi_mr_bind(region, &plain->fid, 0), -FI_EDOMAIN);
	assert_int_equal(fi_ep_bind(plain, &sides[1].cq->fid, FI_RECV), -FI_EDOMAIN);
	assert_ok(fi_close(&plain->fid));
	assert_ok(fi_cntr_open(elsewhere, NULL, &foreign, NULL));
	assert_int_equal(fi_mr_bind(uncounted, &foreign->fid, FI_REMOTE_WRITE), -FI_EDOMAIN);
	assert_ok(fi_close(&foreign->fid));
	assert_ok(fi_close(&elsewhere->fid));
	less->caps &= ~FI_RMA_EVENT;
	assert_ok(fi_endpoint(domain, less, &plain, NULL));
	assert_int_equal(fi_ep_bind(plain, &writes->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(plain, &reads->fid, FI_REMOTE_READ), -FI_EBADFLAGS);
	assert_ok(fi_close(&plain->fid));
	fi_freeinfo(less);
}

/* The counter's descriptor watches each endpoint. */
static void a_bind_without_descriptors_can_be_repeated(void **state)
{
	struct fid_cntr *counter = counter_open(FI_WAIT_FD, NULL);
	struct rlimit usual, none;
	unsigned left = 0;
	int result, lowest;

	(void)state;
	assert_ok(getrlimit(RLIMIT_NOFILE, &usual));
	none = usual;
	do {
		lowest = dup(STDIN_FILENO);
		assert_ok(close(lowest));
		none.rlim_cur = (rlim_t)lowest + left;
		assert_ok(setrlimit(RLIMIT_NOFILE, &none));
		result = fi_mr_bind(uncounted, &counter->fid, FI_REMOTE_WRITE);
		assert_ok(setrlimit(RLIMIT_NOFILE, &usual));
		assert_true(result == 0 || result == -FI_ENOMEM);
		assert_true(left != 0 || result != 0);
	} while (result != 0 && left++ < 1000);
	assert_ok(result);
	assert_ok(fi_write(
		sides[0].ep, local, 8, NULL, there, at_of(target), fi_mr_key(uncounted), &context));
	done_take(FI_RMA | FI_WRITE, &context);
	assert_int_equal(fi_cntr_read(counter), 1);
	mr_close(&uncounted);
	assert_ok(fi_close(&counter->fid));
}

/* --- waits */

struct waiter {
	struct fid_cntr *counter;
	uint64_t threshold;
	int result;
};

static void *waiter_run(void *argument)
{
	struct waiter *waiter = argument;

	waiter->result = fi_cntr_wait(waiter->counter, waiter->threshold, HANG * 1000);
	return NULL;
}

static void a_thread_that_waits_is_woken(void **state)
{
	struct fid_cntr *counters[] = {region_writes, writes};
	const uint64_t at = at_of(target), key = fi_mr_key(region);

	(void)state;
	for (unsigned i = 1; i <= 20; i++) {
		struct waiter waiter = {counters[i % 2], i, -1};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, waiter_run, &waiter), 0);
		usleep(i * 200);
		assert_ok(fi_write(sides[0].ep, local, 8, NULL, there, at, key, &context));
		done_take(FI_RMA | FI_WRITE, &context);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_ok(waiter.result);
	}
}

static void a_descriptor_becomes_readable(void **state)
{
	struct fid_cntr *counter = counter_open(FI_WAIT_FD, NULL);
	struct fid *fids[1] = {&counter->fid};
	const time_t end = time(NULL) + HANG;
	struct pollfd watched = {.events = POLLIN};
	struct fid_mr *mr;

	(void)state;
	assert_ok(fi_mr_reg(domain, target, 8, BOTH, 0, 3, FI_RMA_EVENT, &mr, NULL));
	assert_ok(fi_mr_bind(mr, &counter->fid, FI_REMOTE_WRITE));
	assert_ok(fi_control(&counter->fid, FI_GETWAIT, &watched.fd));
	for (unsigned i = 1; i <= 20; i++) {
		assert_ok(fi_trywait(fabric, fids, 1));
		assert_ok(fi_write(sides[0].ep, local, 8, NULL, there, at_of(target), fi_mr_key(mr),
			&context));
		if (i % 2)
			done_take(FI_RMA | FI_WRITE, &context);
		while (fi_trywait(fabric, fids, 1) == 0) {
			assert_int_equal(poll(&watched, 1, HANG * 1000), 1);
			assert_true(time(NULL) < end);
		}
		assert_int_equal(fi_cntr_read(counter), i);
		if (i % 2 == 0)
			done_take(FI_RMA | FI_WRITE, &context);
	}
	mr_close(&mr);
	assert_ok(fi_close(&counter->fid));
}

static void a_poll_set_tells_of_it(void **state)
{
	struct fid_poll *set;
	void *found[4];

	(void)state;
	assert_ok(fi_poll_open(domain, NULL, &set));
	assert_ok(fi_poll_add(set, &region_writes->fid, 0));
	assert_ok(fi_poll_add(set, &region_reads->fid, 0));
	assert_int_equal(fi_poll(set, found, 4), 0);
	assert_ok(fi_write(
		sides[0].ep, local, 8, NULL, there, at_of(target), fi_mr_key(region), &context));
	done_take(FI_RMA | FI_WRITE, &context);
	assert_int_equal(fi_poll(set, found, 4), 1);
	assert_ptr_equal(found[0], &region_writes);
	assert_int_equal(fi_poll(set, found, 4), 0);
	/* A counter that the program sets has counted all writes that came before. */
	assert_ok(fi_write(
		sides[0].ep, local, 8, NULL, there, at_of(target), fi_mr_key(region), &context));
	done_take(FI_RMA | FI_WRITE, &context);
	assert_int_equal(fi_cntr_read(region_writes), 2);
	assert_ok(fi_cntr_set(region_writes, 0));
	assert_int_equal(fi_poll(set, found, 4), 0);
	assert_ok(fi_poll_del(set, &region_writes->fid, 0));
	assert_ok(fi_poll_del(set, &region_reads->fid, 0));
	assert_ok(fi_close(&set->fid));
}

/* --- orders of opening and closing */

static void what_has_come_is_counted_though_its_region_closes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_ok(fi_write(sides[0].ep, local, 8, NULL, there, at_of(target),
			fi_mr_key(region), &context));
		done_take(FI_RMA | FI_WRITE, &context);
	}
	assert_int_equal(fi_close(&region_writes->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&region_reads->fid), -FI_EBUSY);
	mr_close(&region);
	counted(&(struct expected){.region_writes = 3, .writes = 3});
}

static void what_has_come_is_counted_though_its_endpoint_closes(void **state)
{
	(void)state;
	assert_ok(fi_write(
		sides[0].ep, local, 8, NULL, there, at_of(target), fi_mr_key(region), &context));
	done_take(FI_RMA | FI_WRITE, &context);
	assert_int_equal(fi_close(&writes->fid), -FI_EBUSY);
	assert_ok(fi_close(&ep->fid));
	ep = NULL;
	counted(&(struct expected){.region_writes = 1, .writes = 1});
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, sides[0].other, at_of(target),
		fi_mr_key(region), &context));
	done_take(FI_RMA | FI_WRITE, &context);
	counted(&(struct expected){.region_writes = 2, .writes = 1});
}

/* A counter is bound before, or after, the endpoints that count in it come. */
static void an_endpoint_that_comes_later_counts_in_regions(void **state)
{
	struct fid_cntr *late = counter_open(FI_WAIT_UNSPEC, NULL);
	struct fid_ep *more[2];
	fi_addr_t to[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		target_open(&more[i], &to[i], NULL, i == 0 ? late : NULL);
	assert_ok(fi_mr_bind(uncounted, &late->fid, FI_REMOTE_WRITE));
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(fi_write(sides[0].ep, local, 8, NULL, to[i], at_of(target),
			fi_mr_key(region), &context));
		done_take(FI_RMA | FI_WRITE, &context);
		assert_ok(fi_write(sides[0].ep, local, 8, NULL, to[i], at_of(target),
			fi_mr_key(uncounted), &context));
		done_take(FI_RMA | FI_WRITE, &context);
	}
	assert_ok(fi_cntr_wait(late, 2, HANG * 1000));
	counted(&(struct expected){.region_writes = 2});
	assert_ok(fi_close(&more[0]->fid));
	assert_ok(fi_write(
		sides[0].ep, local, 8, NULL, to[1], at_of(target), fi_mr_key(uncounted), &context));
	done_take(FI_RMA | FI_WRITE, &context);
	assert_ok(fi_cntr_wait(late, 3, HANG * 1000));
	assert_ok(fi_close(&more[1]->fid));
	mr_close(&uncounted);
	assert_ok(fi_close(&late->fid));
}

/* Nothing else drives the endpoint. */
static void a_region_s_counter_drives_an_endpoint_that_comes_later(void **state)
{
	struct fid_cq *const usual = sides[1].cq;
	struct fi_cq_attr attr = {0};
	struct fid_ep *later;
	struct fid_cq *cq;
	fi_addr_t to;

	(void)state;
	assert_ok(fi_cq_open(domain, &attr, &cq, NULL));
	sides[1].cq = cq;
	target_open(&later, &to, NULL, NULL);
	sides[1].cq = usual;
	assert_ok(fi_write(
		sides[0].ep, local, 8, NULL, to, at_of(target), fi_mr_key(region), &context));
	done_take(FI_RMA | FI_WRITE, &context);
	counted(&(struct expected){.region_writes = 1});
	assert_ok(fi_close(&later->fid));
	assert_ok(fi_close(&cq->fid));
}

static void a_counter_may_go_before_the_endpoints(void **state)
{
	struct fid_ep *later;
	struct fid_mr *mr, *other;
	fi_addr_t to;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct fid_cntr *counter = counter_open(i == 1 ? FI_WAIT_FD : FI_WAIT_NONE, NULL);

		assert_ok(fi_mr_reg(domain, target, 8, BOTH, 0, 3, 0, &mr, NULL));
		assert_ok(fi_mr_bind(mr, &counter->fid, BOTH));
		assert_ok(fi_mr_reg(domain, target, 8, BOTH, 0, 4, 0, &other, NULL));
		assert_ok(fi_mr_bind(other, &counter->fid, BOTH));
		assert_ok(fi_write(sides[0].ep, local, 8, NULL, there, at_of(target), fi_mr_key(mr),
			&context));
		done_take(FI_RMA | FI_WRITE, &context);
		assert_int_equal(fi_cntr_read(counter), 1);
		mr_close(&mr);
		mr_close(&other);
		assert_ok(fi_close(&counter->fid));
	}
	target_open(&later, &to, NULL, NULL);
	assert_ok(fi_close(&later->fid));
	assert_ok(fi_write(
		sides[0].ep, local, 8, NULL, there, at_of(target), fi_mr_key(region), &context));
	done_take(FI_RMA | FI_WRITE, &context);
	counted(&(struct expected){.region_writes = 1, .writes = 4});
}

/* --- fi_getinfo() */

static bool is_offered(uint64_t caps, int mr_mode)
{
	struct fi_info *hints = hints_make(&(struct wish){.caps = caps, .mr_mode = mr_mode});
	struct fi_info *offered = offer_of(hints);
	bool given = offered != NULL;

	if (offered && caps & FI_RMA_EVENT) {
		assert_true(offered->caps & FI_RMA_EVENT);
		assert_true(offered->rx_attr->caps & FI_RMA_EVENT);
	} else if (offered) {
		assert_false(offered->caps & FI_RMA_EVENT);
	}
	fi_freeinfo(hints);
	fi_freeinfo(offered);
	return given;
}

static void it_is_offered_with_what_it_is_of(void **state)
{
	const int modes[] = {0, FI_MR_BASIC, FI_MR_RMA_EVENT,
		FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY};

	(void)state;
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_true(is_offered(FI_RMA | FI_RMA_EVENT, modes[i]));
		assert_true(is_offered(FI_ATOMIC | FI_RMA_EVENT, modes[i]));
		assert_true(is_offered(FI_RMA | FI_REMOTE_WRITE | FI_RMA_EVENT, modes[i]));
		assert_true(is_offered(FI_MSG | FI_RMA | FI_REMOTE_READ | FI_RMA_EVENT, modes[i]));
		assert_true(is_offered(FI_RMA, modes[i]));
		assert_false(is_offered(FI_RMA | FI_WRITE | FI_RMA_EVENT, modes[i]));
		assert_false(is_offered(FI_MSG | FI_RMA_EVENT, modes[i]));
	}
}

#define TEST(name)       cmocka_unit_test_setup_teardown(name, opened, closed)
#define TEST_BASIC(name) cmocka_unit_test_setup_teardown(name, opened_basic, closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_form_of_a_write_counts),
		TEST_BASIC(every_form_of_a_write_counts),
		TEST(every_form_of_a_read_counts),
		TEST_BASIC(every_form_of_a_read_counts),
		TEST(atomics_count_by_what_they_do),
		TEST_BASIC(atomics_count_by_what_they_do),
		TEST(an_atomic_read_counts_once),
		TEST(a_region_without_a_counter_stands_beside_one_with),
		TEST_BASIC(a_region_without_a_counter_stands_beside_one_with),
		TEST(an_access_counts_once_in_a_counter),
		TEST(no_access_waits_for_the_target_s_program),
		TEST(what_is_refused_counts_nothing),
		TEST_BASIC(what_is_refused_counts_nothing),
		TEST(an_access_that_fails_counts_as_an_error),
		TEST(a_bad_bind_is_refused),
		TEST(a_bind_without_descriptors_can_be_repeated),
		TEST(a_thread_that_waits_is_woken),
		TEST(a_descriptor_becomes_readable),
		TEST(a_poll_set_tells_of_it),
		TEST(what_has_come_is_counted_though_its_region_closes),
		TEST(what_has_come_is_counted_though_its_endpoint_closes),
		TEST(an_endpoint_that_comes_later_counts_in_regions),
		TEST(a_region_s_counter_drives_an_endpoint_that_comes_later),
		TEST(a_counter_may_go_before_the_endpoints),
		cmocka_unit_test(it_is_offered_with_what_it_is_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
