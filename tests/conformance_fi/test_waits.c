/* SPDX-License-Identifier: BSD-3-Clause */
/* test_waits.c - counters, descriptors that become readable (fi_trywait()), and poll sets.
 * Covers: lib/fi/counter.c, lib/fi/wait.c, lib/fi/poll.c. */
#include "fixture.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_eq.h>

#define HANG 60 /* s */

/* An endpoint beside the pair, with counters. It and side 1 know each other. */
static struct fid_cntr *sent, *received;
static struct fid_poll *set;
static struct side third;
static fi_addr_t third_at_1;
static char word[32];

static void counter_open(enum fi_wait_obj wait, struct fid_cntr **counter)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = wait};

	assert_ok(fi_cntr_open(domain, &attr, counter, counter));
}

static void third_open(enum fi_wait_obj wait)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait};
	size_t length = sizeof(third.name);

	pair_open(&(struct wish){0});
	assert_ok(fi_av_open(domain, &av, &third.av, NULL));
	assert_ok(fi_cq_open(domain, &cq, &third.cq, &third));
	counter_open(wait, &sent);
	counter_open(wait, &received);
	assert_ok(fi_endpoint(domain, info, &third.ep, NULL));
	assert_ok(fi_ep_bind(third.ep, &third.av->fid, 0));
	assert_ok(fi_ep_bind(third.ep, &third.cq->fid, FI_TRANSMIT | FI_RECV));
	assert_ok(fi_ep_bind(third.ep, &sent->fid, FI_SEND));
	assert_ok(fi_ep_bind(third.ep, &received->fid, FI_RECV));
	assert_ok(fi_enable(third.ep));
	assert_ok(fi_getname(&third.ep->fid, third.name, &length));
	assert_int_equal(fi_av_insert(third.av, sides[1].name, 1, &third.other, 0, NULL), 1);
	assert_int_equal(fi_av_insert(sides[1].av, third.name, 1, &third_at_1, 0, NULL), 1);
}

static void third_close(void)
{
	assert_int_equal(fi_close(&sent->fid), -FI_EBUSY);
	assert_ok(fi_close(&third.ep->fid));
	assert_ok(fi_close(&third.cq->fid));
	assert_ok(fi_close(&third.av->fid));
	assert_ok(fi_close(&sent->fid));
	assert_ok(fi_close(&received->fid));
	pair_close();
}

static int opened(void **state)
{
	(void)state;
	third_open(FI_WAIT_UNSPEC);
	return 0;
}

static int opened_with_descriptors(void **state)
{
	(void)state;
	third_open(FI_WAIT_FD);
	return 0;
}

static int closed(void **state)
{
	(void)state;
	third_close();
	return 0;
}

/* Side 1 makes progress, and its completions go. */
static void other_drive(void)
{
	struct fi_cq_tagged_entry entry;

	(void)fi_cq_read(sides[1].cq, &entry, 1);
}

static void counter_await(struct fid_cntr *counter, uint64_t value)
{
	const time_t end = time(NULL) + HANG;

	while (fi_cntr_read(counter) != value) {
		other_drive();
		assert_true(time(NULL) < end);
	}
}

/* A receive of the third, and a message of side 1 for it. */
static void message_come(size_t room)
{
	assert_ok(fi_trecv(third.ep, word, room, NULL, FI_ADDR_UNSPEC, 5, 0, NULL));
	assert_ok(fi_tsend(sides[1].ep, "a message", 10, NULL, third_at_1, 5, NULL));
}

/* --- counters */

static void a_counter_counts_what_it_is_bound_to(void **state)
{
	static char room[3][8]; /* until the endpoints close: what was sent may come later */

	(void)state;
	assert_int_equal(fi_cntr_read(sent), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_ok(fi_trecv(sides[1].ep, room[i], 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
		assert_ok(fi_tsend(third.ep, "one", 4, NULL, third.other, 1, NULL));
	}
	counter_await(sent, 3);
	assert_ok(fi_tinject(third.ep, "two", 4, third.other, 2));
	counter_await(sent, 4);
	assert_int_equal(fi_cntr_read(received), 0);
	message_come(sizeof(word));
	counter_await(received, 1);
	assert_string_equal(word, "a message");
	assert_int_equal(fi_cntr_read(sent), 4);
	assert_int_equal(fi_cntr_readerr(sent), 0);
	assert_int_equal(fi_cntr_readerr(received), 0);
}

static void errors_are_counted_apart(void **state)
{
	const time_t end = time(NULL) + HANG;

	(void)state;
	message_come(4); /* too little */
	while (fi_cntr_readerr(received) != 1) {
		other_drive();
		assert_true(time(NULL) < end);
	}
	assert_ok(fi_trecv(third.ep, word, 8, NULL, FI_ADDR_UNSPEC, 9, 0, word));
	assert_ok(fi_cancel(&third.ep->fid, word));
	while (fi_cntr_readerr(received) != 2)
		assert_true(time(NULL) < end);
	assert_int_equal(fi_cntr_read(received), 0);
}

static void a_program_sets_and_adds(void **state)
{
	(void)state;
	assert_ok(fi_cntr_set(sent, 7));
	assert_ok(fi_cntr_add(sent, 3));
	assert_int_equal(fi_cntr_read(sent), 10);
	assert_ok(fi_cntr_seterr(sent, 5));
	assert_ok(fi_cntr_adderr(sent, 1));
	assert_int_equal(fi_cntr_readerr(sent), 6);
	message_come(sizeof(word));
	counter_await(received, 1);
	assert_int_equal(fi_cntr_read(sent), 10);
}

static void a_wait_ends_with_the_count_an_error_or_the_time(void **state)
{
	const time_t end = time(NULL) + HANG;
	int result;

	(void)state;
	assert_ok(fi_cntr_wait(received, 0, -1));
	assert_int_equal(fi_cntr_wait(received, 1, 20), -FI_ETIMEDOUT);
	message_come(sizeof(word));
	do {
		other_drive();
		result = fi_cntr_wait(received, 1, 5);
		assert_true(time(NULL) < end);
	} while (result == -FI_ETIMEDOUT);
	assert_ok(result);
	message_come(4);
	do {
		other_drive();
		result = fi_cntr_wait(received, 100, 5);
		assert_true(time(NULL) < end);
	} while (result == -FI_ETIMEDOUT && fi_cntr_readerr(received) == 0);
	assert_int_equal(fi_cntr_readerr(received), 1);
}

struct waiter {
	struct fid_cntr *counter;
	uint64_t threshold;
	int timeout, result;
};

static void *waiter_run(void *argument)
{
	struct waiter *waiter = argument;

	waiter->result = fi_cntr_wait(waiter->counter, waiter->threshold, waiter->timeout);
	return NULL;
}

/* What the program itself changes ends a wait of another thread; an error does, whatever it waits
 * for. */
static void a_change_by_the_program_ends_a_wait(void **state)
{
	const struct timespec nap = {.tv_nsec = 5000000};

	(void)state;
	for (unsigned round = 0; round < 4; round++) {
		const bool fails = round % 2;
		struct waiter waiter = {sent, 5, round < 2 ? -1 : HANG * 1000, 1};
		pthread_t thread;

		assert_ok(fi_cntr_set(sent, 0));
		assert_int_equal(pthread_create(&thread, NULL, waiter_run, &waiter), 0);
		/* Errors of before the wait do not end it. */
		do {
			nanosleep(&nap, NULL);
			assert_ok(!fails       ? fi_cntr_add(sent, 5)
				  : round == 1 ? fi_cntr_adderr(sent, 1)
					       : fi_cntr_seterr(sent, fi_cntr_readerr(sent) + 1));
		} while (pthread_tryjoin_np(thread, NULL) != 0);
		assert_int_equal(waiter.result, fails ? -FI_EAVAIL : 0);
	}
}

static void a_counter_has_no_flags(void **state)
{
	uint64_t flags = 1;

	(void)state;
	assert_ok(fi_control(&sent->fid, FI_GETOPSFLAG, &flags));
	assert_int_equal(flags, 0);
	assert_ok(fi_control(&sent->fid, FI_SETOPSFLAG, &flags));
	flags = FI_COMPLETION;
	assert_int_equal(fi_control(&sent->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
}

static void a_counter_that_nobody_waits_for(void **state)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_SET};
	struct fid_cntr *counter;

	(void)state;
	assert_int_equal(fi_cntr_open(domain, &attr, &counter, NULL), -FI_ENOSYS);
	assert_ok(fi_cntr_open(domain, NULL, &counter, NULL));
	assert_int_equal(fi_cntr_wait(counter, 1, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(third.ep, &counter->fid, FI_SEND), -FI_EOPBADSTATE);
	assert_ok(fi_close(&counter->fid));
}

static void a_counter_is_bound_once_for_each_kind(void **state)
{
	struct fid_cntr *counter;
	struct fid_ep *ep;

	(void)state;
	counter_open(FI_WAIT_NONE, &counter);
	assert_ok(fi_endpoint(domain, info, &ep, NULL));
	assert_int_equal(fi_ep_bind(ep, &counter->fid, 0), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(ep, &counter->fid, FI_MULTI_RECV), -FI_EBADFLAGS);
	assert_ok(fi_ep_bind(ep, &counter->fid, FI_SEND | FI_RECV));
	assert_int_equal(fi_ep_bind(ep, &counter->fid, FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_close(&counter->fid), -FI_EBUSY);
	assert_ok(fi_close(&ep->fid));
	assert_ok(fi_close(&counter->fid));
}

/* --- descriptors */

static bool readable(int descriptor, int milliseconds)
{
	struct pollfd one = {.fd = descriptor, .events = POLLIN};

	return poll(&one, 1, milliseconds) == 1;
}

/* Sleeps at an object's descriptor as fi_poll(3) has it, while side 1 goes on, until look() is
 * true. */
static void descriptor_await(struct fid *fid, bool (*look)(void))
{
	const time_t end = time(NULL) + HANG;
	int descriptor = -1, result;

	assert_ok(fi_control(fid, FI_GETWAIT, &descriptor));
	assert_true(descriptor >= 0);
	while (!look()) {
		result = fi_trywait(fabric, &fid, 1);
		assert_true(result == 0 || result == -FI_EAGAIN);
		other_drive();
		if (result == 0)
			(void)readable(descriptor, 1000);
		assert_true(time(NULL) < end);
	}
}

static bool completed(void)
{
	struct fi_cq_tagged_entry entry;

	return fi_cq_read(third.cq, &entry, 1) == 1;
}

static bool counted(void)
{
	return fi_cntr_read(received) == 1;
}

static void a_queue_has_a_descriptor(void **state)
{
	struct fid *fids[] = {&third.cq->fid};
	const time_t end = time(NULL) + HANG;
	struct timespec nap = {.tv_nsec = 1000000};
	enum fi_wait_obj object;

	(void)state;
	assert_ok(fi_control(&third.cq->fid, FI_GETWAITOBJ, &object));
	assert_int_equal(object, FI_WAIT_FD);
	for (unsigned i = 0; i < 10; i++) {
		message_come(sizeof(word));
		descriptor_await(&third.cq->fid, completed);
	}
	/* What is there is not slept for. */
	message_come(sizeof(word));
	while (fi_trywait(fabric, fids, 1) == 0) {
		other_drive();
		nanosleep(&nap, NULL);
		assert_true(time(NULL) < end);
	}
	assert_true(completed());
}

/* It comes while the thread sleeps at the descriptor. */
static void a_descriptor_is_readable_when_a_message_comes(void **state)
{
	struct fid *fids[] = {&third.cq->fid};
	const time_t end = time(NULL) + HANG;
	int descriptor;

	(void)state;
	assert_ok(fi_control(&third.cq->fid, FI_GETWAIT, &descriptor));
	/* The two have met. */
	message_come(sizeof(word));
	descriptor_await(&third.cq->fid, completed);
	/* What came with the message has gone, and nothing is readable. */
	while (fi_trywait(fabric, fids, 1) != 0 || readable(descriptor, 0)) {
		other_drive();
		assert_true(time(NULL) < end);
	}
	message_come(sizeof(word));
	assert_true(readable(descriptor, HANG * 1000));
	descriptor_await(&third.cq->fid, completed);
}

static void a_counter_has_a_descriptor(void **state)
{
	(void)state;
	message_come(sizeof(word));
	descriptor_await(&received->fid, counted);
}

/* A read of the queue makes the progress, and takes the event. The counter's descriptor is readable
 * nevertheless. */
static void a_counter_is_readable_when_a_queue_was_read(void **state)
{
	struct fid *counter = &received->fid, *queue = &third.cq->fid;
	const time_t end = time(NULL) + HANG;
	int descriptor;

	(void)state;
	assert_ok(fi_control(counter, FI_GETWAIT, &descriptor));
	while (fi_trywait(fabric, &counter, 1) != 0 || readable(descriptor, 0))
		assert_true(time(NULL) < end);
	message_come(sizeof(word));
	while (!completed()) {
		other_drive();
		assert_true(time(NULL) < end);
	}
	while (fi_trywait(fabric, &queue, 1) != 0)
		assert_true(time(NULL) < end);
	assert_true(readable(descriptor, 0));
	assert_int_equal(fi_trywait(fabric, &counter, 1), -FI_EAGAIN);
	assert_true(counted());
}

/* What another thread of the program changes is told as well. */
static void a_counter_that_is_set_is_readable(void **state)
{
	struct fid *fids[] = {&sent->fid, &received->fid};
	int descriptor;

	(void)state;
	assert_ok(fi_control(&sent->fid, FI_GETWAIT, &descriptor));
	(void)fi_cntr_read(sent);
	(void)fi_cntr_readerr(sent);
	assert_ok(fi_trywait(fabric, fids, 1));
	assert_ok(fi_cntr_add(sent, 1));
	assert_true(readable(descriptor, 0));
	assert_int_equal(fi_trywait(fabric, fids, 1), -FI_EAGAIN);
	assert_int_equal(fi_cntr_read(sent), 1);
	assert_ok(fi_trywait(fabric, fids, 1));
	assert_ok(fi_cntr_adderr(sent, 1));
	assert_true(readable(descriptor, 0));
	(void)fi_cntr_read(received);
	(void)fi_cntr_readerr(received);
	assert_int_equal(fi_trywait(fabric, fids, 2), -FI_EAGAIN);
	assert_int_equal(fi_cntr_readerr(sent), 1);
}

static void an_event_queue_has_a_descriptor(void **state)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD, .flags = FI_WRITE};
	struct fi_eq_entry entry = {.data = 3};
	struct fid *fids[1];
	struct fid_eq *eq;
	uint32_t event;
	int descriptor;

	(void)state;
	assert_ok(fi_eq_open(fabric, &attr, &eq, NULL));
	fids[0] = &eq->fid;
	assert_ok(fi_control(&eq->fid, FI_GETWAIT, &descriptor));
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(fi_trywait(fabric, fids, 1));
		assert_false(readable(descriptor, 0));
		assert_int_equal(
			fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
		assert_true(readable(descriptor, 0));
		assert_int_equal(fi_trywait(fabric, fids, 1), -FI_EAGAIN);
		assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	}
	assert_ok(fi_close(&eq->fid));
}

static void an_object_without_a_descriptor_has_none(void **state)
{
	struct fid *fids[] = {&sides[0].cq->fid};
	int descriptor;

	(void)state;
	assert_int_not_equal(fi_control(&sides[0].cq->fid, FI_GETWAIT, &descriptor), 0);
	assert_int_equal(fi_trywait(fabric, fids, 1), -FI_EINVAL);
	assert_ok(fi_trywait(fabric, fids, 0));
}

/* A descriptor may stand in one of the program's own, beside others. */
static void a_descriptor_can_be_watched_by_epoll(void **state)
{
	struct fid *fids[] = {&third.cq->fid, &received->fid};
	struct epoll_event event = {.events = EPOLLIN};
	const time_t end = time(NULL) + HANG;
	int watcher = epoll_create1(EPOLL_CLOEXEC), descriptor;
	bool seen = false;

	(void)state;
	assert_true(watcher >= 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(fi_control(fids[i], FI_GETWAIT, &descriptor));
		event.data.u32 = i;
		assert_ok(epoll_ctl(watcher, EPOLL_CTL_ADD, descriptor, &event));
	}
	for (unsigned i = 0; i < 10; i++) {
		message_come(sizeof(word));
		for (seen = false; !seen; seen = completed()) {
			if (fi_trywait(fabric, fids, 2) == 0)
				assert_true(epoll_wait(watcher, &event, 1, 1000) >= 0);
			other_drive();
			assert_true(time(NULL) < end);
		}
		assert_int_equal(fi_cntr_read(received), i + 1);
		(void)fi_cntr_readerr(received);
	}
	assert_ok(close(watcher));
}

static void only_what_waits_is_tried(void **state)
{
	struct fid *fids[] = {&third.cq->fid, &third.ep->fid};
	const time_t end = time(NULL) + HANG;
	int result;

	(void)state;
	while ((result = fi_trywait(fabric, fids, 2)) == -FI_EAGAIN)
		assert_true(time(NULL) < end);
	assert_int_equal(result, -FI_EINVAL);
}

static void other_wait_objects_are_not_offered(void **state)
{
	const enum fi_wait_obj none[] = {
		FI_WAIT_SET, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD, FI_WAIT_POLLFD};
	const enum fi_wait_obj some[] = {FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD};
	struct fi_wait_attr set_attr = {.wait_obj = FI_WAIT_FD};
	enum fi_wait_obj object;
	struct fid_cntr *counter;
	struct fid_wait *wait;
	struct fid_cq *cq;
	struct fid_eq *eq;

	(void)state;
	assert_int_equal(fi_wait_open(fabric, &set_attr, &wait), -FI_ENOSYS);
	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct fi_cq_attr of_cq = {.wait_obj = none[i]};
		struct fi_eq_attr of_eq = {.wait_obj = none[i]};
		struct fi_cntr_attr of_counter = {.wait_obj = none[i]};

		assert_int_equal(fi_cq_open(domain, &of_cq, &cq, NULL), -FI_ENOSYS);
		assert_int_equal(fi_eq_open(fabric, &of_eq, &eq, NULL), -FI_ENOSYS);
		assert_int_equal(fi_cntr_open(domain, &of_counter, &counter, NULL), -FI_ENOSYS);
	}
	for (unsigned i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		struct fi_cq_attr of_cq = {.wait_obj = some[i]};
		struct fi_eq_attr of_eq = {.wait_obj = some[i]};
		struct fi_cntr_attr of_counter = {.wait_obj = some[i]};

		assert_ok(fi_cq_open(domain, &of_cq, &cq, NULL));
		assert_ok(fi_control(&cq->fid, FI_GETWAITOBJ, &object));
		assert_int_equal(object, some[i]);
		assert_ok(fi_eq_open(fabric, &of_eq, &eq, NULL));
		assert_ok(fi_control(&eq->fid, FI_GETWAITOBJ, &object));
		assert_int_equal(object, some[i]);
		assert_ok(fi_cntr_open(domain, &of_counter, &counter, NULL));
		assert_ok(fi_control(&counter->fid, FI_GETWAITOBJ, &object));
		assert_int_equal(object, some[i]);
		assert_int_equal(fi_control(&counter->fid, FI_ENABLE, NULL), -FI_ENOSYS);
		assert_ok(fi_close(&cq->fid));
		assert_ok(fi_close(&eq->fid));
		assert_ok(fi_close(&counter->fid));
	}
}

/* --- without descriptors */

static rlim_t usual_limit;

static void limit_set(rlim_t limit)
{
	struct rlimit now;

	assert_ok(getrlimit(RLIMIT_NOFILE, &now));
	if (usual_limit == 0)
		usual_limit = now.rlim_cur;
	now.rlim_cur = limit != 0 ? limit : usual_limit;
	assert_ok(setrlimit(RLIMIT_NOFILE, &now));
}

/* No more than so many descriptors can be opened. */
static void descriptors_leave(unsigned count)
{
	int lowest;

	limit_set(0);
	lowest = dup(STDIN_FILENO);
	assert_true(lowest >= 0);
	assert_ok(close(lowest));
	limit_set((rlim_t)lowest + count);
}

static unsigned descriptors_open(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static int cq_try(struct fid **opened)
{
	struct fi_cq_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_cq *cq = NULL;
	int result = fi_cq_open(domain, &attr, &cq, NULL);

	*opened = cq ? &cq->fid : NULL;
	return result;
}

static int counter_try(struct fid **opened)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_cntr *counter = NULL;
	int result = fi_cntr_open(domain, &attr, &counter, NULL);

	*opened = counter ? &counter->fid : NULL;
	return result;
}

static int eq_try(struct fid **opened)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_eq *eq = NULL;
	int result = fi_eq_open(fabric, &attr, &eq, NULL);

	*opened = eq ? &eq->fid : NULL;
	return result;
}

/* However few there are: the call fails and leaves nothing, until there are enough. */
static void an_object_needs_its_descriptors(void **state)
{
	int (*const tries[])(struct fid **) = {cq_try, counter_try, eq_try};

	(void)state;
	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		const unsigned before = descriptors_open();
		struct fid *opened = NULL;
		unsigned left = 0;
		int result;

		do {
			descriptors_leave(left);
			result = tries[i](&opened);
			limit_set(0);
			assert_true(result == 0 || (result == -FI_ENOMEM && !opened));
			assert_true(left != 0 || result != 0);
			assert_true(result == 0 || descriptors_open() == before);
		} while (result != 0 && left++ < 1000);
		assert_ok(result);
		assert_ok(fi_close(opened));
		assert_int_equal(descriptors_open(), before);
	}
}

/* An endpoint that could not be enabled can be later. */
static void an_endpoint_needs_its_descriptors(void **state)
{
	const time_t end = time(NULL) + HANG;
	char name[NAME_BYTES], text[4] = "";
	size_t length = sizeof(name);
	struct fid_ep *ep;
	unsigned left = 0;
	fi_addr_t to;
	int result;

	(void)state;
	assert_ok(fi_endpoint(domain, info, &ep, NULL));
	assert_ok(fi_ep_bind(ep, &third.av->fid, 0));
	assert_ok(fi_ep_bind(ep, &third.cq->fid, FI_TRANSMIT | FI_RECV));
	assert_ok(fi_ep_bind(ep, &received->fid, FI_RECV));
	do {
		descriptors_leave(left);
		result = fi_enable(ep);
		limit_set(0);
		assert_true(left != 0 || result != 0);
		if (result != 0)
			assert_int_equal(fi_getname(&ep->fid, name, &length), -FI_EOPBADSTATE);
	} while (result != 0 && left++ < 1000);
	assert_ok(result);
	assert_ok(fi_getname(&ep->fid, name, &length));
	assert_int_equal(fi_av_insert(sides[1].av, name, 1, &to, 0, NULL), 1);
	assert_ok(fi_trecv(ep, text, 4, NULL, FI_ADDR_UNSPEC, 5, 0, NULL));
	assert_ok(fi_tsend(sides[1].ep, "one", 4, NULL, to, 5, NULL));
	descriptor_await(&third.cq->fid, completed);
	assert_string_equal(text, "one");
	while (!counted())
		assert_true(time(NULL) < end);
	assert_ok(fi_close(&ep->fid));
}

/* --- event queues that are waited for */

static void *event_write(void *argument)
{
	const struct timespec nap = {.tv_nsec = 20000000};
	struct fi_eq_entry entry = {.data = 7};

	nanosleep(&nap, NULL);
	return fi_eq_write(argument, FI_NOTIFY, &entry, sizeof(entry), 0) == sizeof(entry)
		       ? argument
		       : NULL;
}

static void a_thread_waits_for_an_event(void **state)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE};
	struct fi_eq_entry entry = {0};
	struct fid_eq *eq;
	pthread_t thread;
	uint32_t event;
	void *written;

	(void)state;
	assert_ok(fi_eq_open(fabric, &attr, &eq, NULL));
	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), 20, 0), -FI_EAGAIN);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&thread, NULL, event_write, eq), 0);
		assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry),
					 i == 0 ? -1 : HANG * 1000, 0),
			sizeof(entry));
		assert_int_equal(event, FI_NOTIFY);
		assert_int_equal(entry.data, 7);
		assert_int_equal(pthread_join(thread, &written), 0);
		assert_ptr_equal(written, eq);
	}
	assert_ok(fi_close(&eq->fid));
	attr.wait_obj = FI_WAIT_NONE;
	assert_ok(fi_eq_open(fabric, &attr, &eq, NULL));
	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -FI_EINVAL);
	assert_ok(fi_close(&eq->fid));
}

/* --- poll sets */

static void a_bad_call_of_a_set_is_refused(void **state)
{
	struct fi_poll_attr attr = {.flags = 1};
	struct fid_domain *elsewhere;
	struct fid_cntr *foreign;
	void *contexts[2];

	(void)state;
	assert_int_equal(fi_poll_open(domain, &attr, &set), -FI_EINVAL);
	assert_ok(fi_poll_open(domain, NULL, &set));
	assert_int_equal(fi_poll(set, contexts, 2), 0);
	assert_int_equal(fi_poll_add(set, &sent->fid, 1), -FI_EINVAL);
	assert_ok(fi_poll_add(set, &sent->fid, 0));
	assert_int_equal(fi_poll_add(set, &sent->fid, 0), -FI_EALREADY);
	assert_int_equal(fi_poll_del(set, &sent->fid, 1), -FI_EINVAL);
	assert_ok(fi_domain(fabric, info, &elsewhere, NULL));
	assert_ok(fi_cntr_open(elsewhere, NULL, &foreign, NULL));
	assert_int_equal(fi_poll_add(set, &foreign->fid, 0), -FI_EDOMAIN);
	assert_ok(fi_close(&foreign->fid));
	assert_ok(fi_close(&elsewhere->fid));
	assert_int_equal(fi_close(&domain->fid), -FI_EBUSY);
	assert_ok(fi_poll_del(set, &sent->fid, 0));
	assert_ok(fi_close(&set->fid));
}

/* No more contexts are written than there is room for. */
static void a_set_tells_as_many_as_are_asked_for(void **state)
{
	const time_t end = time(NULL) + HANG;
	void *contexts[3] = {NULL, &word, &word};

	(void)state;
	assert_ok(fi_poll_open(domain, NULL, &set));
	assert_ok(fi_poll_add(set, &received->fid, 0));
	assert_ok(fi_poll_add(set, &third.cq->fid, 0));
	message_come(sizeof(word));
	for (int count = 0; count == 0; other_drive()) {
		count = fi_poll(set, contexts, 1);
		assert_true(count == 0 || count == 1);
		assert_true(time(NULL) < end);
	}
	assert_ptr_equal(contexts[0], &received);
	assert_ptr_equal(contexts[1], &word);
	assert_int_equal(fi_poll(set, contexts, 3), 1);
	assert_ptr_equal(contexts[0], &third);
	assert_ok(fi_poll_del(set, &received->fid, 0));
	assert_ok(fi_poll_del(set, &third.cq->fid, 0));
	assert_ok(fi_close(&set->fid));
}

static void a_set_tells_which_has_events(void **state)
{
	const time_t end = time(NULL) + HANG;
	struct fi_poll_attr attr = {0};
	void *contexts[4];
	bool cq_told = false, counter_told = false;

	(void)state;
	assert_ok(fi_poll_open(domain, &attr, &set));
	assert_ok(fi_poll_add(set, &third.cq->fid, 0));
	assert_ok(fi_poll_add(set, &received->fid, 0));
	assert_ok(fi_poll_add(set, &sent->fid, 0));
	assert_int_equal(fi_poll_add(set, &third.ep->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll(set, contexts, 4), 0);
	message_come(sizeof(word));
	while (!cq_told || !counter_told) {
		int count = fi_poll(set, contexts, 4);

		assert_true(count >= 0 && count <= 3);
		for (int i = 0; i < count; i++) {
			cq_told |= contexts[i] == &third;
			counter_told |= contexts[i] == &received;
			assert_ptr_not_equal(contexts[i], &sent);
		}
		other_drive();
		assert_true(time(NULL) < end);
	}
	/* A queue is told as long as it is not empty, a counter once. */
	assert_int_equal(fi_poll(set, contexts, 4), 1);
	assert_ptr_equal(contexts[0], &third);
	assert_true(completed());
	assert_int_equal(fi_poll(set, contexts, 4), 0);
	assert_int_equal(fi_close(&set->fid), -FI_EBUSY);
	assert_ok(fi_poll_del(set, &third.cq->fid, 0));
	assert_int_equal(fi_poll_del(set, &third.cq->fid, 0), -FI_EINVAL);
	assert_ok(fi_poll_del(set, &received->fid, 0));
	assert_ok(fi_poll_del(set, &sent->fid, 0));
	assert_int_equal(fi_poll(set, contexts, 4), 0);
	assert_ok(fi_close(&set->fid));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened, closed)
#define TEST_DESCRIPTORS(name)                                                                     \
	cmocka_unit_test_setup_teardown(name, opened_with_descriptors, closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_counter_counts_what_it_is_bound_to),
		TEST(errors_are_counted_apart),
		TEST(a_program_sets_and_adds),
		TEST(a_wait_ends_with_the_count_an_error_or_the_time),
		TEST(a_change_by_the_program_ends_a_wait),
		TEST(a_counter_has_no_flags),
		TEST(a_counter_that_nobody_waits_for),
		TEST(a_counter_is_bound_once_for_each_kind),
		TEST_DESCRIPTORS(a_queue_has_a_descriptor),
		TEST_DESCRIPTORS(a_descriptor_is_readable_when_a_message_comes),
		TEST_DESCRIPTORS(a_counter_has_a_descriptor),
		TEST_DESCRIPTORS(a_counter_is_readable_when_a_queue_was_read),
		TEST_DESCRIPTORS(a_counter_that_is_set_is_readable),
		TEST(an_event_queue_has_a_descriptor),
		TEST(an_object_without_a_descriptor_has_none),
		TEST_DESCRIPTORS(a_descriptor_can_be_watched_by_epoll),
		TEST_DESCRIPTORS(only_what_waits_is_tried),
		TEST(other_wait_objects_are_not_offered),
		TEST(an_object_needs_its_descriptors),
		TEST_DESCRIPTORS(an_endpoint_needs_its_descriptors),
		TEST(a_thread_waits_for_an_event),
		TEST(a_bad_call_of_a_set_is_refused),
		TEST(a_set_tells_as_many_as_are_asked_for),
		TEST(a_set_tells_which_has_events),
	};

	/* Whoever inspects a process opens a descriptor in it, and some tests count those. */
	setenv("PTL_TELEMETRY", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
