/* SPDX-License-Identifier: BSD-3-Clause */
/* test_objects.c - fabrics, domains, queues and endpoints: how they open, bind and close, and that
 * every operation is there.
 * Covers: lib/fi/cq.c, lib/fi/endpoint.c, lib/fi/fabric.c, lib/fi/none.c. */
#include "fixture.h"

#include "../signal_mask.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_trigger.h>

static int opened(void **state)
{
	(void)state;
	pair_open(&(struct wish){0});
	return 0;
}

/* --- completion queues */

/* Hints are taken, and need not be followed. */
static void a_queue_takes_hints(void **state)
{
	struct fi_cq_attr attr = {.size = 5000,
		.flags = FI_AFFINITY,
		.signaling_vector = 1,
		.wait_obj = FI_WAIT_UNSPEC,
		.wait_cond = FI_CQ_COND_THRESHOLD};
	struct fi_eq_attr eq_attr = {.size = 100, .flags = FI_AFFINITY | FI_WRITE};
	const size_t threshold = 3;
	struct fi_cq_entry entry;
	struct fid_cq *cq;
	struct fid_eq *eq;

	(void)state;
	assert_ok(fi_cq_open(domain, &attr, &cq, NULL));
	assert_int_not_equal(attr.format, FI_CQ_FORMAT_UNSPEC);
	assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
	assert_int_equal(fi_cq_sread(cq, &entry, 1, &threshold, 10), -FI_EAGAIN);
	assert_ok(fi_close(&cq->fid));
	attr.format = (enum fi_cq_format)(FI_CQ_FORMAT_TAGGED + 1);
	assert_int_equal(fi_cq_open(domain, &attr, &cq, NULL), -FI_EINVAL);
	assert_int_equal(fi_cq_open(domain, NULL, &cq, NULL), -FI_EINVAL);
	attr = (struct fi_cq_attr){.size = (size_t)INT32_MAX + 1};
	assert_int_equal(fi_cq_open(domain, &attr, &cq, NULL), -FI_EINVAL);
	assert_ok(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	assert_ok(fi_close(&eq->fid));
}

/* So many, or as many as the endpoint may have under way. */
static void a_queue_has_as_many_places_as_it_was_asked_for(void **state)
{
	const struct fi_msg_tagged search = {.addr = FI_ADDR_UNSPEC};
	struct fi_cq_attr attr = {.size = 200};
	struct fi_info *small = fi_dupinfo(info);
	struct fi_cq_err_entry error = {0};
	struct fid_cq *cq;

	(void)state;
	small->tx_attr->size = small->rx_attr->size = 64;
	assert_ok(fi_cq_open(domain, &attr, &cq, NULL));
	for (unsigned i = 0; i < 2; i++) {
		unsigned count = 0;
		struct fid_ep *ep;

		assert_ok(fi_endpoint(domain, small, &ep, NULL));
		assert_ok(fi_ep_bind(ep, &sides[0].av->fid, 0));
		assert_ok(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
		assert_ok(fi_enable(ep));
		while (fi_trecvmsg(ep, &search, FI_PEEK) == 0)
			count++;
		assert_int_equal(count, 200);
		while (count-- > 0)
			assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
		assert_ok(fi_close(&ep->fid));
		small->tx_attr->size = 100;
	}
	fi_freeinfo(small);
	assert_ok(fi_close(&cq->fid));
}

/* It is not waited for without a way to wait. */
static void a_queue_that_nobody_waits_for(void **state)
{
	struct fi_cq_tagged_entry entry;

	(void)state;
	assert_int_equal(fi_cq_sread(sides[0].cq, &entry, 1, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_cq_sreadfrom(sides[0].cq, &entry, 1, NULL, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_cq_signal(sides[0].cq), -FI_EINVAL);
}

/* What has completed is there when its endpoint has gone; what has not does not come. */
static void completions_outlive_their_endpoint(void **state)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_cq_tagged_entry entry = {0};
	struct fid_cq *cq;
	struct fid_ep *ep;
	char in[8];

	(void)state;
	assert_ok(fi_cq_open(domain, &cq_attr, &cq, NULL));
	assert_ok(fi_endpoint(domain, info, &ep, NULL));
	assert_ok(fi_ep_bind(ep, &sides[0].av->fid, 0));
	assert_ok(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	assert_ok(fi_enable(ep));
	assert_ok(fi_trecv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, in));
	assert_ok(fi_tsend(ep, "one", 4, NULL, sides[0].other, 1, &entry));
	assert_ok(fi_close(&ep->fid));
	kept_await(&sides[1], 1);
	assert_int_equal(fi_cq_read(cq, &entry, 1), 1);
	assert_ptr_equal(entry.op_context, &entry);
	assert_int_equal(entry.flags, FI_TAGGED | FI_SEND);
	assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
	assert_int_equal(fi_cq_readerr(cq, &(struct fi_cq_err_entry){0}, 0), -FI_EAGAIN);
	assert_ok(fi_close(&cq->fid));
}

/* --- event queues */

static void an_event_queue_keeps_what_is_written(void **state)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_eq_entry entry = {.data = 7};
	struct fi_eq_err_entry error;
	struct fid_eq *eq;
	char text[8];
	uint32_t event;

	(void)state;
	assert_ok(fi_eq_open(fabric, &attr, &eq, NULL));
	assert_int_equal(fi_eq_readerr(eq, &error, 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_eq_write(eq, FI_SHUTDOWN, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_eq_read(eq, &event, &entry, 4, 0), -FI_ETOOSMALL);
	memset(&entry, 0, sizeof(entry));
	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), 1000, 0), sizeof(entry));
	assert_int_equal(event, FI_NOTIFY);
	assert_int_equal(entry.data, 7);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(event, FI_SHUTDOWN);
	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), 10, 0), -FI_EAGAIN);
	assert_string_equal(
		fi_eq_strerror(eq, FI_EINVAL, NULL, text, sizeof(text)), fi_strerror(FI_EINVAL));
	assert_int_equal(text[7], '\0');
	/* It closes with an event that nobody reads. */
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	assert_ok(fi_close(&eq->fid));
	attr.wait_obj = FI_WAIT_NONE;
	assert_ok(fi_eq_open(fabric, &attr, &eq, NULL));
	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -FI_EINVAL);
	assert_ok(fi_close(&eq->fid));
	attr.wait_obj = FI_WAIT_SET;
	assert_int_equal(fi_eq_open(fabric, &attr, &eq, NULL), -FI_ENOSYS);
}

static void *event_await(void *queue)
{
	struct fi_eq_entry entry;
	uint32_t event;

	(void)fi_eq_sread(queue, &event, &entry, sizeof(entry), -1, 0);
	return NULL;
}

/* It leaves the queue to others. */
static void a_thread_that_waits_for_events_can_be_cancelled(void **state)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	pthread_t thread;
	uint32_t event;
	void *end;

	(void)state;
	assert_ok(fi_eq_open(fabric, &attr, &eq, NULL));
	assert_ok(pthread_create(&thread, NULL, event_await, eq));
	assert_ok(pthread_cancel(thread));
	assert_ok(pthread_join(thread, &end));
	assert_true(end == PTHREAD_CANCELED);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	assert_ok(fi_close(&eq->fid));
}

/* --- order of opening and closing */

static void what_is_in_use_does_not_close(void **state)
{
	(void)state;
	assert_int_equal(fi_close(&fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&sides[0].cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&sides[0].av->fid), -FI_EBUSY);
}

/* One of each kind alone. */
static void each_object_keeps_its_domain(void **state)
{
	struct fid_domain *own;
	struct fid *object;

	(void)state;
	assert_ok(fi_domain(fabric, info, &own, NULL));
	for (unsigned kind = 0; kind < 6; kind++) {
		if (kind == 0)
			assert_ok(fi_av_open(own, &(struct fi_av_attr){.type = FI_AV_MAP},
				(struct fid_av **)&object, NULL));
		else if (kind == 1)
			assert_ok(fi_cq_open(
				own, &(struct fi_cq_attr){0}, (struct fid_cq **)&object, NULL));
		else if (kind == 2)
			assert_ok(fi_cntr_open(own, NULL, (struct fid_cntr **)&object, NULL));
		else if (kind == 3)
			assert_ok(fi_poll_open(own, NULL, (struct fid_poll **)&object));
		else if (kind == 4)
			assert_ok(fi_endpoint(own, info, (struct fid_ep **)&object, NULL));
		else
			assert_ok(fi_mr_reg(own, &own, sizeof(own), FI_SEND, 0, 1, 0,
				(struct fid_mr **)&object, NULL));
		assert_int_equal(fi_close(&own->fid), -FI_EBUSY);
		assert_ok(fi_close(object));
	}
	assert_ok(fi_close(&own->fid));
}

/* Of the kind of which there are fewest. */
static void a_domain_has_as_many_endpoints_as_it_says(void **state)
{
	struct side more[64];
	size_t count, last = 2;
	char word[4] = "";
	fi_addr_t to;

	(void)state;
	pair_open(&(struct wish){.caps = FI_RMA | FI_MSG});
	count = info->domain_attr->ep_cnt;
	assert_in_range(count, 3, 64);
	while (last < count)
		side_open(&more[last++], &(struct wish){0});
	assert_int_equal(fi_av_insert(more[--last].av, sides[0].name, 1, &to, 0, NULL), 1);
	assert_ok(fi_recv(sides[0].ep, word, 4, NULL, FI_ADDR_UNSPEC, word));
	assert_ok(fi_inject(more[last].ep, "abc", 4, to));
	while (fi_cq_read(sides[0].cq, &(struct fi_cq_tagged_entry){0}, 1) != 1)
		(void)fi_cq_read(more[last].cq, NULL, 0);
	assert_string_equal(word, "abc");
	for (; last >= 2; last--)
		side_close(&more[last]);
	pair_close();
}

/* Registrations are told of with FI_REG_MR alone. */
static void a_domain_is_bound_to_an_event_queue(void **state)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fi_eq_entry entry;
	struct fid_domain *own;
	struct fid_mr *mr;
	struct fid_eq *eq;
	uint32_t event;

	(void)state;
	assert_ok(fi_eq_open(fabric, &attr, &eq, NULL));
	assert_ok(fi_domain(fabric, info, &own, NULL));
	assert_int_equal(fi_domain_bind(own, &sides[0].cq->fid, 0), -FI_EINVAL);
	assert_ok(fi_domain_bind(own, &eq->fid, 0));
	assert_ok(fi_mr_reg(own, &entry, 8, FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	assert_ok(fi_close(&mr->fid));
	assert_ok(fi_domain_bind(own, &eq->fid, FI_REG_MR));
	assert_int_equal(fi_domain_bind(own, &eq->fid, FI_REG_MR), -FI_EINVAL);
	assert_ok(fi_mr_reg(own, &entry, 8, FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_ok(fi_close(&mr->fid));
	assert_ok(fi_close(&own->fid));
	assert_ok(fi_close(&eq->fid));
}

/* And no other. */
static void a_domain_has_the_name_of_a_device(void **state)
{
	struct fi_info *other = fi_dupinfo(info);
	struct fid_domain *own;

	(void)state;
	assert_non_null(other);
	other->domain_attr->name[0]++;
	assert_int_equal(fi_domain(fabric, other, &own, NULL), -FI_EINVAL);
	assert_int_equal(fi_domain(fabric, NULL, &own, NULL), -FI_EINVAL);
	other->domain_attr->name[0]--;
	assert_ok(fi_domain(fabric, other, &own, NULL));
	assert_ok(fi_close(&own->fid));
	fi_freeinfo(other);
}

static void an_endpoint_is_bound_before_it_is_enabled(void **state)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT};
	struct fi_av_attr av_attr = {.type = FI_AV_MAP};
	struct fi_eq_attr eq_attr = {0};
	char name[NAME_BYTES], again[NAME_BYTES], short_name[4];
	size_t length = sizeof(name);
	struct fid_cq *tx, *rx;
	struct fid_av *av;
	struct fid_eq *eq;
	struct fid_ep *ep;

	(void)state;
	assert_ok(fi_cq_open(domain, &cq_attr, &tx, NULL));
	assert_ok(fi_cq_open(domain, &cq_attr, &rx, NULL));
	assert_ok(fi_av_open(domain, &av_attr, &av, NULL));
	assert_ok(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	assert_int_equal(fi_endpoint(domain, NULL, &ep, NULL), -FI_EINVAL);
	assert_ok(fi_endpoint(domain, info, &ep, NULL));
	assert_int_equal(fi_ep_bind(ep, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_getname(&ep->fid, name, &length), -FI_EOPBADSTATE);
	assert_int_equal(fi_tsend(ep, NULL, 0, NULL, 0, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_trecv(ep, NULL, 0, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(ep), -FI_ENOAV);
	assert_ok(fi_ep_bind(ep, &av->fid, 0));
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), -FI_EINVAL);
	assert_ok(fi_ep_bind(ep, &eq->fid, 0));
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(ep, &tx->fid, 0), -FI_EBADFLAGS);
	assert_ok(fi_ep_bind(ep, &tx->fid, FI_TRANSMIT));
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(ep, &rx->fid, FI_TRANSMIT), -FI_EINVAL);
	assert_ok(fi_ep_bind(ep, &rx->fid, FI_RECV));
	assert_ok(fi_enable(ep));
	assert_ok(fi_getname(&ep->fid, name, &length));
	assert_ok(fi_enable(ep));
	assert_ok(fi_getname(&ep->fid, again, &length));
	assert_memory_equal(again, name, NAME_BYTES);
	assert_int_equal(fi_ep_bind(ep, &rx->fid, FI_RECV), -FI_EOPBADSTATE);
	length = sizeof(short_name);
	assert_int_equal(fi_getname(&ep->fid, short_name, &length), -FI_ETOOSMALL);
	assert_int_equal(length, NAME_BYTES);
	length = 0; /* how long is one? */
	assert_int_equal(fi_getname(&ep->fid, NULL, &length), -FI_ETOOSMALL);
	assert_int_equal(length, NAME_BYTES);
	assert_int_equal(fi_close(&eq->fid), -FI_EBUSY);
	assert_ok(fi_close(&ep->fid));
	assert_ok(fi_close(&tx->fid));
	assert_ok(fi_close(&rx->fid));
	assert_ok(fi_close(&av->fid));
	assert_ok(fi_close(&eq->fid));
}

static void flags_of_an_endpoint_can_be_read_and_set(void **state)
{
	uint64_t flags = FI_TRANSMIT;

	(void)state;
	assert_ok(fi_control(&sides[0].ep->fid, FI_GETOPSFLAG, &flags));
	assert_int_equal(flags, 0);
	flags = FI_TRANSMIT | FI_COMPLETION | FI_DELIVERY_COMPLETE;
	assert_ok(fi_control(&sides[0].ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT;
	assert_ok(fi_control(&sides[0].ep->fid, FI_GETOPSFLAG, &flags));
	assert_true(flags == (FI_COMPLETION | FI_DELIVERY_COMPLETE));
	flags = FI_RECV;
	assert_ok(fi_control(&sides[0].ep->fid, FI_GETOPSFLAG, &flags));
	assert_int_equal(flags, 0);
	flags = FI_RECV | FI_INJECT;
	assert_int_equal(fi_control(&sides[0].ep->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
	flags = FI_TRANSMIT | FI_RECV;
	assert_int_equal(fi_control(&sides[0].ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
}

static void every_format_is_a_prefix(void **state)
{
	static const struct {
		enum fi_cq_format format;
		size_t size;
	} formats[] = {{FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry)},
		{FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry)},
		{FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry)},
		{FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry)}};
	char buffer[2 * sizeof(struct fi_cq_tagged_entry)];

	for (unsigned n = 0; n < 4; n++) {
		struct fi_cq_tagged_entry entry = {0};
		unsigned left = 2;
		char word;

		pair_open(&(struct wish){.format = formats[n].format});
		for (unsigned i = 0; i < 2; i++) {
			assert_ok(fi_trecv(
				sides[1].ep, &word, 1, NULL, FI_ADDR_UNSPEC, 5, 0, &sides[i]));
			assert_ok(fi_tsend(sides[0].ep, "x", 1, NULL, sides[0].other, 5, state));
		}
		memset(buffer, 0x5a, sizeof(buffer));
		while (left > 0) {
			ssize_t got;

			(void)fi_cq_read(sides[0].cq, NULL, 0);
			got = fi_cq_read(sides[1].cq, buffer + (2 - left) * formats[n].size, left);
			if (got > 0)
				left -= (unsigned)got;
			else
				assert_int_equal(got, -FI_EAGAIN);
		}
		for (unsigned i = 0; i < 2; i++) {
			memcpy(&entry, buffer + i * formats[n].size, formats[n].size);
			assert_ptr_equal(entry.op_context, &sides[i]);
			if (n > 0)
				assert_int_equal(entry.len, 1);
			if (n == 3)
				assert_int_equal(entry.tag, 5);
		}
		for (size_t i = 2 * formats[n].size; i < sizeof(buffer); i++)
			assert_int_equal(buffer[i], 0x5a);
		pair_close();
	}
}

/* --- waits and threads */

static void *send_later(void *unused)
{
	(void)unused;
	usleep(20000);
	while (fi_tsend(sides[0].ep, "late", 5, NULL, sides[0].other, 1, sides) != 0)
		;
	return NULL;
}

static void *signal_later(void *unused)
{
	(void)unused;
	usleep(20000);
	assert_ok(fi_cq_signal(sides[1].cq));
	return NULL;
}

static void a_read_waits(void)
{
	struct fi_cq_tagged_entry entry;
	struct timespec before, after;

	(void)clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(fi_cq_sread(sides[1].cq, &entry, 1, NULL, 20), -FI_EAGAIN);
	(void)clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >
		    19000000);
}

/* The side's queue alone is read: whoever waits makes progress for its endpoint. */
static void a_read_can_wait(void **state)
{
	struct fi_cq_tagged_entry entry;
	pthread_t thread;
	char word[8];
	ssize_t got;

	(void)state;
	pair_open(&(struct wish){.wait = FI_WAIT_UNSPEC, .progress = FI_PROGRESS_AUTO});
	assert_int_equal(fi_cq_sread(sides[1].cq, &entry, 1, NULL, 0), -FI_EAGAIN);
	a_read_waits();
	for (unsigned i = 0; i < 20; i++) {
		assert_ok(fi_trecv(sides[1].ep, word, 8, NULL, FI_ADDR_UNSPEC, 1, 0, word));
		assert_ok(pthread_create(&thread, NULL, send_later, NULL));
		while ((got = fi_cq_sread(sides[1].cq, &entry, 1, NULL, -1)) == -FI_EAGAIN)
			;
		assert_int_equal(got, 1);
		assert_ptr_equal(entry.op_context, word);
		pthread_join(thread, NULL);
		while ((got = fi_cq_sread(sides[0].cq, &entry, 1, NULL, -1)) == -FI_EAGAIN)
			;
		assert_int_equal(got, 1);
	}
	assert_ok(pthread_create(&thread, NULL, signal_later, NULL));
	assert_int_equal(fi_cq_sread(sides[1].cq, &entry, 1, NULL, -1), -FI_EAGAIN);
	pthread_join(thread, NULL);
	/* A signal that comes before the wait ends it, and it alone. */
	assert_ok(fi_cq_signal(sides[1].cq));
	assert_int_equal(fi_cq_sread(sides[1].cq, &entry, 1, NULL, -1), -FI_EAGAIN);
	a_read_waits();
	pair_close();
	pair_open(&(struct wish){.wait = FI_WAIT_NONE});
	assert_int_equal(fi_cq_sread(sides[1].cq, &entry, 1, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_cq_signal(sides[1].cq), -FI_EINVAL);
	pair_close();
}

/* FI_PROGRESS_AUTO: the target makes no call. */
static void a_peer_that_makes_no_calls_is_sent_to(void **state)
{
	struct fi_cq_tagged_entry entry;
	ssize_t got;

	(void)state;
	pair_open(&(struct wish){.progress = FI_PROGRESS_AUTO, .wait = FI_WAIT_UNSPEC});
	assert_ok(fi_tsendmsg(sides[0].ep,
		&(struct fi_msg_tagged){.msg_iov = &(struct iovec){(void *)(uintptr_t) "x", 1},
			.iov_count = 1,
			.addr = sides[0].other,
			.context = &entry},
		FI_DELIVERY_COMPLETE));
	while ((got = fi_cq_sread(sides[0].cq, &entry, 1, NULL, -1)) == -FI_EAGAIN)
		;
	assert_int_equal(got, 1);
	pair_close();
}

static void no_thread_takes_a_signal(void **state)
{
	(void)state;
	pair_open(&(struct wish){.progress = FI_PROGRESS_AUTO});
	assert_true(threads_leave_signals() >= 2);
	pair_close();
}

/* A message of fi_inject() to a peer that does not know the sender yet leaves before the endpoint
 * closes. */
static void what_was_injected_arrives_though_the_endpoint_closes(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct side other;
	char word[8] = "";
	fi_addr_t peer;
	ssize_t got;

	(void)state;
	pair_open(&(struct wish){.progress = FI_PROGRESS_AUTO, .wait = FI_WAIT_UNSPEC});
	side_open(&other, &(struct wish){0});
	assert_int_equal(fi_av_insert(other.av, sides[0].name, 1, &peer, 0, NULL), 1);
	assert_ok(fi_trecv(sides[0].ep, word, 8, NULL, FI_ADDR_UNSPEC, 1, 0, word));
	assert_ok(fi_tinject(other.ep, "goodbye", 8, peer, 1));
	side_close(&other);
	while ((got = fi_cq_sread(sides[0].cq, &entry, 1, NULL, -1)) == -FI_EAGAIN)
		;
	assert_int_equal(got, 1);
	assert_string_equal(word, "goodbye");
	pair_close();
}

#define THREADS  4
#define MESSAGES 300

/* A thread takes completions of other ones, too, and may end before its own last message comes. */
static uint64_t got[THREADS];

static void *exchange(void *argument)
{
	uint64_t tag = (uintptr_t)argument;
	struct fi_cq_tagged_entry entry;

	for (unsigned i = 0; i < MESSAGES; i++) {
		while (fi_trecv(sides[1].ep, &got[tag], sizeof(got[tag]), NULL, FI_ADDR_UNSPEC, tag,
			       0, argument) == -FI_EAGAIN)
			;
		while (fi_tinject(sides[0].ep, &tag, sizeof(tag), sides[0].other, tag) ==
			-FI_EAGAIN)
			;
		while (fi_cq_read(sides[1].cq, &entry, 1) != 1)
			(void)fi_cq_read(sides[0].cq, NULL, 0);
	}
	return NULL;
}

static void threads_share_endpoints_and_queues(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_ok(pthread_create(&threads[i], NULL, exchange, (void *)i));
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(got[i], i);
}

/* --- fork */

static void a_child_may_exec_or_end(void **state)
{
	char word[8] = "";
	struct fi_cq_tagged_entry entry;
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		(void)fi_cq_read(sides[0].cq, &entry, 1);
		(void)fi_close(&sides[0].ep->fid);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(system("true"), 0);
	assert_ok(fi_trecv(sides[1].ep, word, 8, NULL, FI_ADDR_UNSPEC, 1, 0, word));
	assert_ok(fi_tinject(sides[0].ep, "parent", 7, sides[0].other, 1));
	completion_take(&sides[1], &entry, NULL);
	assert_string_equal(word, "parent");
}

/* --- what a program must not do */

enum kind { FABRIC, DOMAIN, EVENTS, VECTOR, QUEUE, COUNTER, SET, ENDPOINT, REGION, CLASSES };

/* An object of each class. */
static void each_open(struct fid *each[CLASSES])
{
	struct fid_eq *eq;
	struct fid_cntr *counter;
	struct fid_poll *set;
	struct fid_ep *ep;
	struct fid_mr *mr;

	assert_ok(fi_eq_open(fabric, &(struct fi_eq_attr){0}, &eq, NULL));
	assert_ok(fi_cntr_open(domain, NULL, &counter, NULL));
	assert_ok(fi_poll_open(domain, NULL, &set));
	assert_ok(fi_endpoint(domain, info, &ep, NULL));
	assert_ok(fi_mr_reg(domain, &each, 8, FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	each[FABRIC] = &fabric->fid;
	each[DOMAIN] = &domain->fid;
	each[EVENTS] = &eq->fid;
	each[VECTOR] = &sides[0].av->fid;
	each[QUEUE] = &sides[0].cq->fid;
	each[COUNTER] = &counter->fid;
	each[SET] = &set->fid;
	each[ENDPOINT] = &ep->fid;
	each[REGION] = &mr->fid;
}

static void no_object_is_taken_for_another(void **state)
{
	struct fid *each[CLASSES];

	(void)state;
	each_open(each);
	for (enum kind kind = FABRIC; kind < CLASSES; kind++) {
		struct fid *other = each[kind];

		if (kind != EVENTS) {
			assert_int_equal(fi_domain_bind(domain, other, 0), -FI_EINVAL);
			assert_int_equal(fi_av_bind(sides[0].av, other, 0), -FI_EINVAL);
		}
		if (kind != EVENTS && kind != VECTOR && kind != QUEUE && kind != COUNTER)
			assert_int_equal(
				fi_ep_bind((struct fid_ep *)each[ENDPOINT], other, 0), -FI_EINVAL);
		if (kind != COUNTER && kind != ENDPOINT)
			assert_int_equal(
				fi_mr_bind((struct fid_mr *)each[REGION], other, FI_REMOTE_WRITE),
				-FI_ENOSYS);
		if (kind != QUEUE && kind != COUNTER)
			assert_int_equal(
				fi_poll_add((struct fid_poll *)each[SET], other, 0), -FI_EINVAL);
		if (kind != QUEUE && kind != COUNTER && kind != EVENTS)
			assert_int_equal(fi_trywait(fabric, &other, 1), -FI_EINVAL);
		assert_int_equal(fi_control(other, 12345, NULL), -FI_ENOSYS);
	}
	for (enum kind kind = REGION; kind >= EVENTS; kind--)
		if (kind != VECTOR && kind != QUEUE)
			assert_ok(fi_close(each[kind]));
}

/* Nothing is that long. */
static void lengths_that_cannot_be_are_refused(void **state)
{
	const size_t most = info->ep_attr->max_msg_size;
	struct fi_info *more = fi_dupinfo(info);
	struct fi_eq_attr attr = {0};
	struct fid_eq *eq;
	struct fid_ep *ep;
	char in[8];

	(void)state;
	assert_ok(fi_eq_open(fabric, &attr, &eq, NULL));
	for (size_t length = most + 1; length > most; length *= 2) {
		const struct iovec iov[2] = {{in, length}, {in, SIZE_MAX - length}};

		assert_int_equal(
			fi_send(sides[0].ep, in, length, NULL, sides[0].other, NULL), -FI_EMSGSIZE);
		assert_int_equal(fi_tsend(sides[0].ep, in, length, NULL, sides[0].other, 1, NULL),
			-FI_EMSGSIZE);
		assert_int_equal(
			fi_sendv(sides[0].ep, iov, NULL, 2, sides[0].other, NULL), -FI_EMSGSIZE);
		assert_int_equal(fi_inject(sides[0].ep, in, length, sides[0].other), -FI_EMSGSIZE);
		assert_int_equal(
			fi_recv(sides[0].ep, in, length, NULL, FI_ADDR_UNSPEC, NULL), -FI_EMSGSIZE);
		assert_int_equal(fi_trecvv(sides[0].ep, iov, NULL, 2, FI_ADDR_UNSPEC, 1, 0, NULL),
			-FI_EMSGSIZE);
		assert_int_equal(fi_eq_write(eq, 1, in, length, 0), -FI_EINVAL);
		more->tx_attr->size = length;
		assert_int_equal(fi_endpoint(domain, more, &ep, NULL), -FI_EINVAL);
		more->tx_attr->size = 0;
		more->rx_attr->size = length;
		assert_int_equal(fi_endpoint(domain, more, &ep, NULL), -FI_EINVAL);
	}
	assert_int_equal(fi_sendv(sides[0].ep, NULL, NULL, 2, sides[0].other, NULL), -FI_EINVAL);
	assert_int_equal(
		fi_sendv(sides[0].ep, &(struct iovec){in, 1}, NULL, SIZE_MAX, sides[0].other, NULL),
		-FI_EINVAL);
	assert_int_equal(
		fi_trecvv(sides[0].ep, NULL, NULL, 1, FI_ADDR_UNSPEC, 1, 0, NULL), -FI_EINVAL);
	for (unsigned i = 0; i < 2; i++)
		nothing_completes(&sides[i]);
	assert_ok(fi_close(&eq->fid));
	fi_freeinfo(more);
}

/* --- what is not supported says so */

#define NOT_SUPPORTED(call) assert_int_equal((int)(call), -FI_ENOSYS)

static void all_words_of(const void *ops, size_t size)
{
	const char *bytes = ops;
	size_t length;

	memcpy(&length, bytes, sizeof(length));
	assert_int_equal(length, size);
	for (size_t at = sizeof(length); at < size; at += sizeof(void *)) {
		void *pointer;

		memcpy(&pointer, bytes + at, sizeof(pointer));
		assert_non_null(pointer);
	}
}

#define ALL_WORDS(ops) all_words_of(ops, sizeof(*(ops)))

static void no_operation_is_missing(void **state)
{
	struct fid_ep *ep = sides[0].ep;
	struct fi_eq_attr attr = {0};
	struct fi_deferred_work work = {.op_type = FI_OP_SEND};
	struct fid_eq *eq;
	void *ops;

	(void)state;
	assert_ok(fi_eq_open(fabric, &attr, &eq, NULL));
	ALL_WORDS(fabric->ops);
	ALL_WORDS(domain->ops);
	ALL_WORDS(domain->mr);
	ALL_WORDS(ep->ops);
	ALL_WORDS(ep->cm);
	ALL_WORDS(ep->msg);
	ALL_WORDS(ep->rma);
	ALL_WORDS(ep->tagged);
	ALL_WORDS(ep->atomic);
	ALL_WORDS(ep->collective);
	ALL_WORDS(sides[0].cq->ops);
	ALL_WORDS(sides[0].av->ops);
	ALL_WORDS(eq->ops);
	assert_ok(fi_close(&eq->fid));
	NOT_SUPPORTED(fi_open_ops(&domain->fid, "more", 0, &ops, NULL));
	NOT_SUPPORTED(fi_set_ops(&domain->fid, "more", 0, NULL, NULL));
	NOT_SUPPORTED(fi_control(&domain->fid, FI_QUEUE_WORK, &work));
	NOT_SUPPORTED(fi_control(&domain->fid, FI_CANCEL_WORK, &work));
	NOT_SUPPORTED(fi_control(&domain->fid, FI_FLUSH_WORK, NULL));
	NOT_SUPPORTED(fi_domain2(fabric, info, NULL, FI_SEND, NULL));
	NOT_SUPPORTED(fi_control(&sides[0].cq->fid, FI_FLUSH_WORK, NULL));
	NOT_SUPPORTED(ep->ops->tx_size_left(ep));
	NOT_SUPPORTED(ep->ops->rx_size_left(ep));
	NOT_SUPPORTED(fi_barrier(ep, 0, NULL));
	NOT_SUPPORTED(fi_wait_open(fabric, NULL, NULL));
	NOT_SUPPORTED(fi_passive_ep(fabric, info, NULL, NULL));
	NOT_SUPPORTED(fi_scalable_ep(domain, info, NULL, NULL));
	NOT_SUPPORTED(fi_stx_context(domain, NULL, NULL, NULL));
	NOT_SUPPORTED(fi_srx_context(domain, NULL, NULL, NULL));
	NOT_SUPPORTED(fi_connect(ep, NULL, NULL, 0));
	NOT_SUPPORTED(fi_listen((struct fid_pep *)ep));
	NOT_SUPPORTED(fi_av_insertsvc(sides[0].av, "x", "y", NULL, 0, NULL));
	NOT_SUPPORTED(fi_av_insertsym(sides[0].av, "x", 1, "y", 1, NULL, 0, NULL));
}

/* An endpoint without tagged messages. */
static void a_kind_that_was_not_asked_for_is_not_there(void **state)
{
	uint64_t flags = FI_RECV | FI_MULTI_RECV;

	(void)state;
	pair_open(&(struct wish){.caps = FI_MSG});
	NOT_SUPPORTED(fi_tsend(sides[0].ep, NULL, 0, NULL, 0, 0, NULL));
	NOT_SUPPORTED(fi_trecv(sides[0].ep, NULL, 0, NULL, 0, 0, 0, NULL));
	pair_close();
	pair_open(&(struct wish){.caps = FI_TAGGED});
	NOT_SUPPORTED(fi_read(sides[0].ep, NULL, 0, NULL, 0, 0, 0, NULL));
	NOT_SUPPORTED(fi_write(sides[0].ep, NULL, 0, NULL, 0, 0, 0, NULL));
	NOT_SUPPORTED(fi_inject_write(sides[0].ep, NULL, 0, 0, 0, 0));
	NOT_SUPPORTED(fi_atomic(sides[0].ep, NULL, 0, NULL, 0, 0, 0, FI_INT8, FI_SUM, NULL));
	NOT_SUPPORTED(fi_send(sides[0].ep, NULL, 0, NULL, 0, NULL));
	NOT_SUPPORTED(fi_recv(sides[0].ep, NULL, 0, NULL, 0, NULL));
	assert_int_equal(fi_control(&sides[0].ep->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
	pair_close();
}

/* With the sources of what completes. */
static void a_read_that_waits_tells_sources(void **state)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t source = FI_ADDR_NOTAVAIL;
	char in[4];

	(void)state;
	pair_open(&(struct wish){.caps = FI_TAGGED | FI_SOURCE, .wait = FI_WAIT_UNSPEC});
	assert_ok(fi_trecv(sides[1].ep, in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	assert_ok(fi_tinject(sides[1].ep, "abc", 4, sides[1].self, 1));
	assert_int_equal(fi_cq_sreadfrom(sides[1].cq, &entry, 1, &source, NULL, 60000), 1);
	assert_int_equal(source, sides[1].self);
	assert_string_equal(in, "abc");
	pair_close();
}

static struct fid_ep *alias_open(struct fid_ep *ep, uint64_t flags)
{
	struct fid_ep *alias = NULL;

	assert_ok(fi_ep_alias(ep, &alias, flags));
	assert_ptr_not_equal(alias, ep);
	return alias;
}

/* Without flags of its own nothing completes. */
static void an_alias_has_flags_of_its_own(void **state)
{
	struct fid_ep *sends, *receives, *second;
	uint64_t flags = FI_TRANSMIT;
	char in[2][4] = {"", ""};
	int context;

	(void)state;
	pair_open(&(struct wish){.bind = FI_SELECTIVE_COMPLETION});
	sends = alias_open(sides[0].ep, FI_TRANSMIT | FI_COMPLETION);
	receives = alias_open(sides[1].ep, FI_RECV | FI_COMPLETION);
	assert_ok(fi_trecv(receives, in[0], 4, NULL, FI_ADDR_UNSPEC, 1, 0, &context));
	assert_ok(fi_trecv(sides[1].ep, in[1], 4, NULL, FI_ADDR_UNSPEC, 2, 0, NULL));
	assert_ok(fi_tsend(sides[0].ep, "one", 4, NULL, sides[0].other, 2, NULL));
	assert_ok(fi_tsend(sends, "two", 4, NULL, sides[0].other, 1, &context));
	done_take(FI_TAGGED | FI_SEND, &context);
	completion_take(&sides[1], NULL, NULL);
	assert_string_equal(in[0], "two");
	assert_string_equal(in[1], "one");
	nothing_completes(&sides[0]);
	nothing_completes(&sides[1]);

	assert_ok(fi_control(&sends->fid, FI_GETOPSFLAG, &flags));
	assert_true(flags == FI_COMPLETION);
	flags = FI_TRANSMIT;
	assert_ok(fi_control(&sides[0].ep->fid, FI_GETOPSFLAG, &flags));
	assert_true(flags == 0);
	second = alias_open(sends, FI_RECV); /* its other flags are those of the first one */
	flags = FI_TRANSMIT;
	assert_ok(fi_control(&second->fid, FI_GETOPSFLAG, &flags));
	assert_true(flags == FI_COMPLETION);
	assert_ok(fi_control(&second->fid, FI_SETOPSFLAG, &(uint64_t){FI_TRANSMIT | FI_INJECT}));
	flags = FI_TRANSMIT;
	assert_ok(fi_control(&sends->fid, FI_GETOPSFLAG, &flags));
	assert_true(flags == FI_COMPLETION);

	assert_int_equal(fi_close(&sides[0].ep->fid), -FI_EBUSY);
	assert_ok(fi_close(&sends->fid));
	assert_int_equal(fi_close(&sides[0].ep->fid), -FI_EBUSY);
	assert_ok(fi_tsend(second, "abc", 4, NULL, sides[0].self, 1, NULL));
	assert_ok(fi_close(&second->fid));
	assert_ok(fi_close(&receives->fid));
	assert_int_equal(fi_ep_alias(sides[0].ep, &sends, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_alias(sides[0].ep, &sends, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_ep_alias(sides[0].ep, &sends, FI_RECV | FI_INJECT), -FI_EINVAL);
	pair_close();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened, pair_closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_queue_takes_hints),
		TEST(a_queue_has_as_many_places_as_it_was_asked_for),
		TEST(a_queue_that_nobody_waits_for),
		TEST(completions_outlive_their_endpoint),
		TEST(an_event_queue_keeps_what_is_written),
		TEST(what_is_in_use_does_not_close),
		TEST(each_object_keeps_its_domain),
		cmocka_unit_test(a_domain_has_as_many_endpoints_as_it_says),
		TEST(a_domain_is_bound_to_an_event_queue),
		TEST(a_domain_has_the_name_of_a_device),
		TEST(an_endpoint_is_bound_before_it_is_enabled),
		TEST(flags_of_an_endpoint_can_be_read_and_set),
		cmocka_unit_test(a_read_that_waits_tells_sources),
		cmocka_unit_test(an_alias_has_flags_of_its_own),
		cmocka_unit_test(every_format_is_a_prefix),
		cmocka_unit_test(a_read_can_wait),
		TEST(a_thread_that_waits_for_events_can_be_cancelled),
		cmocka_unit_test(a_peer_that_makes_no_calls_is_sent_to),
		cmocka_unit_test(no_thread_takes_a_signal),
		cmocka_unit_test(what_was_injected_arrives_though_the_endpoint_closes),
		TEST(threads_share_endpoints_and_queues),
		TEST(a_child_may_exec_or_end),
		TEST(no_object_is_taken_for_another),
		TEST(lengths_that_cannot_be_are_refused),
		TEST(no_operation_is_missing),
		cmocka_unit_test(a_kind_that_was_not_asked_for_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
