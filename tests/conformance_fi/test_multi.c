/* SPDX-License-Identifier: BSD-3-Clause */
/* test_multi.c - buffers for many messages (FI_MULTI_RECV) by the pages fi_msg(3), fi_cq(3) and
 * fi_endpoint(3).
 * Covers: lib/fi/message.c, lib/fi/endpoint.c, lib/fi/cq.c, lib/messages/many.c. */
#include "fixture.h"

#define EAGER  32768
#define LONG   300000
#define BUFFER (1 << 20)

static struct fi_cq_tagged_entry entry;
static struct fi_cq_err_entry error;
static int first, second, third; /* contexts */
static char out[LONG];
static char room[8][BUFFER];

#define CAPS (FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE)

static int opened(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = CAPS});
	return 0;
}

static int opened_selective(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = CAPS, .bind = FI_SELECTIVE_COMPLETION});
	return 0;
}

static int opened_small(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = CAPS, .tx_size = 8, .rx_size = 8});
	return 0;
}

static int opened_by_flag(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = CAPS, .rx_flags = FI_MULTI_RECV});
	return 0;
}

static ssize_t post_from(fi_addr_t from, void *buffer, size_t length, void *context)
{
	const struct fi_msg msg = {.msg_iov = &(struct iovec){buffer, length},
		.iov_count = 1,
		.addr = from,
		.context = context};

	return fi_recvmsg(sides[1].ep, &msg, FI_MULTI_RECV);
}

static void post(void *buffer, size_t length, void *context)
{
	assert_ok(post_from(FI_ADDR_UNSPEC, buffer, length, context));
}

static void least_set(size_t least)
{
	assert_ok(fi_setopt(
		&sides[1].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
}

/* Sends, and its completion has been read. */
static void give(const void *data, size_t length)
{
	assert_ok(fi_send(sides[0].ep, data, length, NULL, sides[0].other, &first));
	completion_take(&sides[0], &entry, NULL);
	assert_ptr_equal(entry.op_context, &first);
}

/* A message that nobody has asked for yet is kept at side 1. */
static void give_to_keep(const void *data, size_t length)
{
	const struct fi_msg msg = {.msg_iov = &(struct iovec){(void *)(uintptr_t)data, length},
		.iov_count = 1,
		.addr = sides[0].other,
		.context = &first};

	if (length <= EAGER) {
		assert_ok(fi_sendmsg(sides[0].ep, &msg, FI_DELIVERY_COMPLETE));
		completion_take(&sides[0], &entry, NULL);
	} else {
		assert_ok(fi_send(sides[0].ep, data, length, NULL, sides[0].other, &first));
		nothing_completes(&sides[0]);
	}
}

/* The next completion is of a message of so many bytes. Returns its place. */
static char *taken(size_t length, void *context)
{
	completion_take(&sides[1], &entry, NULL);
	assert_true(entry.flags == (FI_RECV | FI_MSG));
	assert_int_equal(entry.len, length);
	assert_ptr_equal(entry.op_context, context);
	return entry.buf;
}

static void released(void *context)
{
	completion_take(&sides[1], &entry, NULL);
	assert_true(entry.flags == FI_MULTI_RECV);
	assert_ptr_equal(entry.op_context, context);
}

static void cancelled(void *context)
{
	error_take(&sides[1], &error);
	assert_int_equal(error.err, FI_ECANCELED);
	assert_true(error.flags == FI_MULTI_RECV);
	assert_ptr_equal(error.op_context, context);
}

static const size_t lengths[] = {0, 1, 8, 64, 65, 4096, EAGER, EAGER + 1, LONG, 3};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* Posted before, and kept. */
static void messages_of_all_lengths_share_a_buffer(void **state)
{
	static char was[LENGTHS][LONG];

	(void)state;
	for (unsigned round = 0; round < 4; round++) {
		char *end = room[round];

		if (round & 1)
			post(room[round], BUFFER, &second);
		for (unsigned n = 0; n < LENGTHS; n++) {
			bytes_fill(out, lengths[n], n + round);
			memcpy(was[n], out, lengths[n]);
			if (round & 1)
				give(was[n], lengths[n]);
			else
				give_to_keep(was[n], lengths[n]);
		}
		if (!(round & 1))
			post(room[round], BUFFER, &second);
		for (unsigned n = 0, found = 0; n < LENGTHS; n++) {
			char *place;
			unsigned which = 0;

			/* A longer message that was kept comes after shorter ones. */
			completion_take(&sides[1], &entry, NULL);
			place = entry.buf;
			while (lengths[which] != entry.len || found >> which & 1)
				which++;
			found |= 1u << which;
			assert_true(entry.flags == (FI_RECV | FI_MSG));
			assert_ptr_equal(entry.op_context, &second);
			assert_true(place >= room[round]);
			assert_true(place + entry.len <= room[round] + BUFFER);
			assert_memory_equal(place, was[which], entry.len);
			if (round & 1) {
				assert_true(place >= end);
				end = place + entry.len;
			}
		}
		for (unsigned n = 0; n < 2 && !(round & 1); n++)
			completion_take(&sides[0], &entry, NULL); /* of the longer ones */
		nothing_completes(&sides[1]);
		assert_ok(fi_cancel(&sides[1].ep->fid, &second));
		cancelled(&second);
	}
}

static void a_buffer_is_released_when_less_than_the_minimum_is_free(void **state)
{
	(void)state;
	least_set(1024);
	post(room[0], 4096, &second);
	post(room[1], 4096, &third);
	for (unsigned i = 0; i < 7; i++) {
		bytes_fill(out, 512, i);
		give(out, 512);
		assert_ptr_equal(taken(512, &second), room[0] + i * 512);
		assert_memory_equal(room[0] + i * 512, out, 512);
		if (i < 6)
			nothing_completes(&sides[1]);
	}
	released(&second);
	give(out, 512);
	assert_ptr_equal(taken(512, &third), room[1]);
	/* A change of the option is for later buffers. */
	least_set(4096);
	give(out, 64);
	assert_ptr_equal(taken(64, &third), room[1] + 512);
	nothing_completes(&sides[1]);
	post(room[0], 4096, &second);
	give(out, 4000 - 576);
	assert_ptr_equal(taken(4000 - 576, &third), room[1] + 576);
	released(&third);
	give(out, 1);
	assert_ptr_equal(taken(1, &second), room[0]);
	released(&second);
}

/* The same of messages that were kept. */
static void what_was_kept_uses_a_buffer_up(void **state)
{
	(void)state;
	least_set(1024);
	for (unsigned i = 0; i < 8; i++) {
		bytes_fill(out, 512, i);
		give_to_keep(out, 512);
	}
	post(room[0], 4096, &second);
	for (unsigned i = 0; i < 7; i++) {
		char *place = taken(512, &second);

		bytes_fill(out, 512, i);
		assert_ptr_equal(place, room[0] + i * 512);
		assert_memory_equal(place, out, 512);
	}
	released(&second);
	nothing_completes(&sides[1]);
	assert_ok(fi_recv(sides[1].ep, room[1], 4096, NULL, FI_ADDR_UNSPEC, &third));
	assert_ptr_equal(taken(512, &third), room[1]);
}

static void a_message_that_is_too_long_for_the_rest_is_cut(void **state)
{
	(void)state;
	for (unsigned kept = 0; kept < 2; kept++)
		for (unsigned long_one = 0; long_one < 2; long_one++) {
			const size_t length = long_one ? LONG : 5000;

			memset(room[0], 0, 8192);
			bytes_fill(out, length, kept);
			if (kept && long_one) /* it is kept without its data */
				assert_ok(fi_send(
					sides[0].ep, out, length, NULL, sides[0].other, &first));
			else if (kept)
				give_to_keep(out, length);
			if (kept)
				nothing_completes(&sides[0]);
			post(room[0], 4096, &second);
			if (!kept)
				give(out, length);
			error_take(&sides[1], &error);
			assert_int_equal(error.err, FI_ETRUNC);
			assert_true(error.flags == (FI_RECV | FI_MSG));
			assert_int_equal(error.len, 4096);
			assert_int_equal(error.olen, length - 4096);
			assert_ptr_equal(error.buf, room[0]);
			assert_ptr_equal(error.op_context, &second);
			assert_memory_equal(room[0], out, 4096);
			assert_int_equal(room[0][4096], 0);
			released(&second);
			if (kept && long_one)
				completion_take(&sides[0], &entry, NULL);
		}
}

/* Only some of the buffers are with the poll core at a time. */
static void buffers_are_used_in_order_and_can_be_cancelled(void **state)
{
	(void)state;
	assert_int_equal(fi_cancel(&sides[1].ep->fid, room[0]), -FI_ENOENT);
	for (unsigned i = 0; i < 8; i++)
		post(room[i], BUFFER, room[i]);
	assert_ok(fi_recv(sides[1].ep, &third, sizeof(third), NULL, FI_ADDR_UNSPEC, &third));
	give("one", 4);
	assert_ptr_equal(taken(4, room[0]), room[0]);
	for (unsigned i = 0; i < 8; i += 7) {
		assert_ok(fi_cancel(&sides[1].ep->fid, room[i]));
		cancelled(room[i]);
		assert_int_equal(fi_cancel(&sides[1].ep->fid, room[i]), -FI_ENOENT);
	}
	give("two", 4);
	assert_ptr_equal(taken(4, room[1]), room[1]);
	for (unsigned i = 1; i < 7; i++) {
		assert_ok(fi_cancel(&sides[1].ep->fid, room[i]));
		cancelled(room[i]);
	}
	give("tre", 4);
	assert_ptr_equal(taken(4, &third), &third);
	nothing_completes(&sides[1]);
}

/* Each takes its place in a buffer, and its completion one in the queue. */
static void messages_without_data_do_not_overrun_anything(void **state)
{
	enum { COUNT = 3 * 4096 + 100, AT_ONCE = 9000 };
	unsigned sent = 0, got = 0, sides_read = 0, returned = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		post(room[i], 4096 * 64, room[i]);
	/* Nobody reads the receiver's queue. */
	for (; sent < AT_ONCE; sent++) {
		ssize_t result;

		do {
			result = fi_inject(sides[0].ep, NULL, 0, sides[0].other);
			(void)fi_cq_read(sides[1].cq, NULL, 0);
			(void)fi_cq_read(sides[0].cq, NULL, 0);
		} while (result == -FI_EAGAIN);
		assert_ok(result);
	}
	while (got < COUNT) {
		if (sent < COUNT && fi_inject(sides[0].ep, NULL, 0, sides[0].other) == 0)
			sent++;
		if (sides_read++ % 64 == 0)
			(void)fi_cq_read(sides[0].cq, NULL, 0);
		completion_take(&sides[1], &entry, NULL);
		if (entry.flags == FI_MULTI_RECV) {
			assert_ptr_equal(entry.op_context, room[returned]);
			returned++;
		} else {
			assert_int_equal(entry.len, 0);
			assert_ptr_equal(entry.op_context, room[returned]);
			got++;
		}
	}
	assert_int_equal(returned, 3);
}

static void a_queue_has_places_for_all_that_may_come(void **state)
{
	unsigned posted = 0;

	(void)state;
	while (post_from(FI_ADDR_UNSPEC, room[0], BUFFER, room[0]) == 0)
		posted++;
	/* A buffer is for 4,096 messages at most, a queue for 2^20 completions. */
	assert_true(posted >= 200);
	assert_int_equal(post_from(FI_ADDR_UNSPEC, room[0], BUFFER, room[0]), -FI_EAGAIN);
	/* Others have their places. */
	assert_ok(fi_trecv(sides[1].ep, &third, sizeof(third), NULL, FI_ADDR_UNSPEC, 1, 0, &third));
	for (; posted > 0; posted--) {
		assert_ok(fi_cancel(&sides[1].ep->fid, room[0]));
		cancelled(room[0]);
	}
	post(room[0], BUFFER, room[0]);
}

static void a_release_is_told_without_being_asked_for(void **state)
{
	const struct fi_msg msg = {.msg_iov = &(struct iovec){room[0], 256},
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.context = &second};

	(void)state;
	post(room[1], 128, &third);
	assert_ok(fi_inject(sides[0].ep, "abc", 4, sides[0].other));
	assert_ok(fi_inject(sides[0].ep, "abc", 4, sides[0].other));
	released(&third);
	assert_string_equal(room[1] + 64, "abc");
	assert_ok(fi_recvmsg(sides[1].ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
	assert_ok(fi_inject(sides[0].ep, "def", 4, sides[0].other));
	assert_string_equal(taken(4, &second), "def");
}

static void each_message_is_counted(void **state)
{
	struct fid_cntr *counter;
	struct fid_ep *ep;
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_NONE};
	char name[NAME_BYTES];
	size_t length = sizeof(name);
	fi_addr_t to;

	(void)state;
	assert_ok(fi_cntr_open(domain, &attr, &counter, NULL));
	assert_ok(fi_endpoint(domain, info, &ep, NULL));
	assert_ok(fi_ep_bind(ep, &sides[1].av->fid, 0));
	assert_ok(fi_ep_bind(ep, &sides[1].cq->fid, FI_TRANSMIT | FI_RECV));
	assert_ok(fi_ep_bind(ep, &counter->fid, FI_RECV));
	assert_ok(fi_enable(ep));
	assert_ok(fi_getname(&ep->fid, name, &length));
	assert_int_equal(fi_av_insert(sides[0].av, name, 1, &to, 0, NULL), 1);
	assert_ok(fi_recvmsg(ep,
		&(struct fi_msg){.msg_iov = &(struct iovec){room[0], 192},
			.iov_count = 1,
			.addr = FI_ADDR_UNSPEC,
			.context = &second},
		FI_MULTI_RECV));
	for (unsigned i = 0; i < 3; i++) {
		assert_ok(fi_inject(sides[0].ep, &i, sizeof(i), to));
		taken(sizeof(i), &second);
		assert_int_equal(fi_cntr_read(counter), i + 1);
	}
	released(&second);
	assert_int_equal(fi_cntr_read(counter), 3);
	assert_int_equal(fi_cntr_readerr(counter), 0);
	assert_ok(fi_close(&ep->fid));
	assert_ok(fi_close(&counter->fid));
}

static void a_message_has_its_source_and_its_data(void **state)
{
	fi_addr_t source = FI_ADDR_NOTAVAIL;

	(void)state;
	/* From itself alone: the other's message finds the second buffer. */
	assert_ok(post_from(sides[1].self, room[0], BUFFER, &second));
	assert_ok(post_from(sides[1].other, room[1], BUFFER, &third));
	assert_ok(fi_injectdata(sides[0].ep, "abc", 4, 77, sides[0].other));
	completion_take(&sides[1], &entry, &source);
	assert_true(entry.flags == (FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA));
	assert_int_equal(entry.data, 77);
	assert_int_equal(source, sides[1].other);
	assert_ptr_equal(entry.op_context, &third);
	assert_ok(fi_injectdata(sides[1].ep, "abc", 4, 78, sides[1].self));
	completion_take(&sides[1], &entry, &source);
	assert_int_equal(entry.data, 78);
	assert_int_equal(source, sides[1].self);
	assert_ptr_equal(entry.op_context, &second);
}

/* Those behind go to the program's next buffer, also while the last one's data is fetched. */
static void an_endpoint_closes_with_messages_in_its_buffer(void **state)
{
	(void)state;
	post(room[0], BUFFER, &second);
	give("abc", 4);
	(void)fi_cq_read(sides[1].cq, NULL, 0);
	assert_ok(fi_send(sides[0].ep, out, LONG, NULL, sides[0].other, &first));
	for (unsigned i = 0; i < 8; i++)
		post(room[1], BUFFER, &third);
}

static void the_minimum_is_an_option(void **state)
{
	size_t least = 0, length = sizeof(least);
	struct fid *fid = &sides[1].ep->fid;

	(void)state;
	assert_ok(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &length));
	assert_int_equal(least, 64);
	assert_int_equal(length, sizeof(least));
	least_set(12345);
	assert_ok(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &length));
	assert_int_equal(least, 12345);
	length = 4;
	assert_int_equal(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &length),
		-FI_ETOOSMALL);
	assert_int_equal(
		fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, 4), -FI_EINVAL);
	assert_int_equal(
		fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN, &least, 8), -FI_ENOPROTOOPT);
	length = sizeof(least);
	assert_int_equal(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN, &least, &length),
		-FI_ENOPROTOOPT);
}

static void a_buffer_is_one_piece_without_a_tag(void **state)
{
	const struct iovec pieces[2] = {{room[0], 64}, {room[1], 64}};
	const struct fi_msg msg = {.msg_iov = pieces, .iov_count = 2, .addr = FI_ADDR_UNSPEC};
	const struct fi_msg_tagged tagged = {
		.msg_iov = pieces, .iov_count = 1, .addr = FI_ADDR_UNSPEC};

	(void)state;
	assert_int_equal(fi_recvmsg(sides[1].ep, &msg, FI_MULTI_RECV), -FI_EINVAL);
	assert_int_equal(fi_trecvmsg(sides[1].ep, &tagged, FI_MULTI_RECV), -FI_EBADFLAGS);
}

/* Receives without flags of their own; a tagged one is for one message. */
/* Completions of searches, until the queue has no place. */
static unsigned places(void)
{
	const struct fi_msg_tagged search = {.addr = FI_ADDR_UNSPEC};
	unsigned count = 0;

	while (fi_trecvmsg(sides[1].ep, &search, FI_PEEK) == 0)
		count++;
	for (unsigned i = 0; i < count; i++)
		error_take(&sides[1], &error);
	return count;
}

static void a_queue_has_the_places_of_a_buffer_only_while_it_is_posted(void **state)
{
	const unsigned before = places();

	(void)state;
	post(room[0], BUFFER, &second);
	assert_ok(fi_cancel(&sides[1].ep->fid, &second));
	cancelled(&second);
	assert_int_equal(places(), before);
	/* An error that nobody reads goes with its queue. */
	assert_ok(fi_trecvmsg(
		sides[1].ep, &(const struct fi_msg_tagged){.addr = FI_ADDR_UNSPEC}, FI_PEEK));
}

static void an_endpoint_s_receives_may_all_be_for_many(void **state)
{
	(void)state;
	assert_ok(fi_recv(sides[1].ep, room[0], BUFFER, NULL, FI_ADDR_UNSPEC, &second));
	give("abc", 4);
	give("def", 4);
	assert_string_equal(taken(4, &second), "abc");
	assert_string_equal(taken(4, &second), "def");
	assert_ok(fi_trecv(sides[1].ep, room[1], 4, NULL, FI_ADDR_UNSPEC, 5, 0, &third));
	assert_ok(fi_tinject(sides[0].ep, "ghi", 4, sides[0].other, 5));
	completion_take(&sides[1], &entry, NULL);
	assert_true(entry.flags == (FI_RECV | FI_TAGGED));
	assert_ptr_equal(entry.op_context, &third);
}

#define TEST(name, opens) cmocka_unit_test_setup_teardown(name, opens, pair_closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(messages_of_all_lengths_share_a_buffer, opened),
		TEST(a_buffer_is_released_when_less_than_the_minimum_is_free, opened),
		TEST(what_was_kept_uses_a_buffer_up, opened),
		TEST(a_message_that_is_too_long_for_the_rest_is_cut, opened),
		TEST(buffers_are_used_in_order_and_can_be_cancelled, opened),
		TEST(messages_without_data_do_not_overrun_anything, opened),
		TEST(a_queue_has_places_for_all_that_may_come, opened),
		TEST(a_queue_has_the_places_of_a_buffer_only_while_it_is_posted, opened_small),
		TEST(a_release_is_told_without_being_asked_for, opened_selective),
		TEST(each_message_is_counted, opened),
		TEST(a_message_has_its_source_and_its_data, opened),
		TEST(an_endpoint_closes_with_messages_in_its_buffer, opened),
		TEST(the_minimum_is_an_option, opened),
		TEST(a_buffer_is_one_piece_without_a_tag, opened),
		TEST(an_endpoint_s_receives_may_all_be_for_many, opened_by_flag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
