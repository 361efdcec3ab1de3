/* SPDX-License-Identifier: BSD-3-Clause */
/* test_messages.c - sends and receives by the pages fi_msg(3), fi_tagged(3) and fi_cq(3).
 * Covers: lib/fi/message.c, lib/fi/cq.c, lib/fi/peer.c, lib/fi/pieces.c. */
#include "fixture.h"

#define EAGER 32768
#define LONG  300000

static struct fi_cq_tagged_entry entry;
static struct fi_cq_err_entry error;
static int first, second, third; /* contexts */
static char out[LONG], in[LONG];

static int opened(void **state)
{
	(void)state;
	pair_open(&(struct wish){0});
	return 0;
}

static int opened_selective(void **state)
{
	(void)state;
	pair_open(&(struct wish){.bind = FI_SELECTIVE_COMPLETION});
	return 0;
}

static int opened_source(void **state)
{
	(void)state;
	pair_open(&(struct wish){
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV | FI_AV_USER_ID});
	return 0;
}

static int opened_strangers(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR, .strangers = true});
	return 0;
}

static int opened_small(void **state)
{
	(void)state;
	pair_open(&(struct wish){.threading = FI_THREAD_DOMAIN});
	return 0;
}

static void fill(size_t length, unsigned seed)
{
	bytes_fill(out, length, seed);
	memset(in, 0, sizeof(in));
}

static void tagged_send(const void *data, size_t length, uint64_t tag, void *context)
{
	assert_ok(fi_tsend(sides[0].ep, data, length, NULL, sides[0].other, tag, context));
}

static void tagged_receive(void *data, size_t length, uint64_t tag, uint64_t ignore, void *context)
{
	assert_ok(fi_trecv(sides[1].ep, data, length, NULL, FI_ADDR_UNSPEC, tag, ignore, context));
}

static void entry_is(uint64_t flags, size_t length, uint64_t tag, void *context)
{
	assert_true(entry.flags == flags);
	assert_int_equal(entry.len, length);
	assert_true(entry.tag == tag);
	assert_ptr_equal(entry.op_context, context);
}

/* Posted before, and kept. */
static void tagged_messages_of_all_lengths(void **state)
{
	static const size_t lengths[] = {0, 1, 8, 4096, EAGER, EAGER + 1, LONG};

	(void)state;
	for (unsigned n = 0; n < 2 * 7; n++) {
		const size_t length = lengths[n / 2];

		fill(length, n);
		if (n & 1)
			tagged_receive(in, LONG, n, 0, &second);
		tagged_send(out, length, n, &first);
		if (!(n & 1)) {
			kept_await(&sides[1], n);
			tagged_receive(in, LONG, n, 0, &second);
		}
		completion_take(&sides[1], &entry, NULL);
		entry_is(FI_TAGGED | FI_RECV, length, n, &second);
		completion_take(&sides[0], &entry, NULL);
		entry_is(FI_TAGGED | FI_SEND, 0, 0, &first);
		assert_memory_equal(in, out, length);
	}
}

static void messages_without_tags_are_a_class_of_their_own(void **state)
{
	(void)state;
	fill(16, 1);
	tagged_receive(in, 16, 0, UINT64_MAX, &first);
	assert_ok(fi_send(sides[0].ep, out, 16, NULL, sides[0].other, &second));
	completion_take(&sides[0], &entry, NULL);
	entry_is(FI_MSG | FI_SEND, 0, 0, &second);
	nothing_completes(&sides[1]);
	assert_ok(fi_recv(sides[1].ep, in, 16, NULL, FI_ADDR_UNSPEC, &third));
	completion_take(&sides[1], &entry, NULL);
	entry_is(FI_MSG | FI_RECV, 16, 0, &third);
	assert_memory_equal(in, out, 16);
	tagged_send(out, 3, UINT64_MAX, &first);
	completion_take(&sides[1], &entry, NULL);
	entry_is(FI_TAGGED | FI_RECV, 3, UINT64_MAX, &first);
	completion_take(&sides[0], &entry, NULL);
}

static void a_message_without_a_tag_can_be_described(void **state)
{
	const struct iovec from[2] = {{out, 5}, {out + 100, 6}}, to[2] = {{in, 7}, {in + 100, 50}};
	const struct fi_msg sent = {.msg_iov = from,
		.iov_count = 2,
		.addr = sides[0].other,
		.context = &first,
		.data = 99};
	const struct fi_msg received = {
		.msg_iov = to, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .context = &second};

	(void)state;
	fill(200, 5);
	assert_ok(fi_recvmsg(sides[1].ep, &received, 0));
	assert_ok(fi_sendmsg(sides[0].ep, &sent, FI_REMOTE_CQ_DATA));
	completion_take(&sides[1], &entry, NULL);
	entry_is(FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA, 11, 0, &second);
	assert_int_equal(entry.data, 99);
	assert_memory_equal(in, out, 5);
	assert_memory_equal(in + 5, out + 100, 2);
	assert_memory_equal(in + 100, out + 102, 4);
	completion_take(&sides[0], &entry, NULL);
	entry_is(FI_MSG | FI_SEND, 0, 0, &first);
}

static void tags_match_under_the_mask_in_order(void **state)
{
	(void)state;
	tagged_receive(in, 1, 0x10, 0x0f, &first);
	tagged_receive(in + 1, 1, 0x15, 0, &second);
	tagged_receive(in + 2, 1, 0, UINT64_MAX, &third);
	for (unsigned i = 0; i < 3; i++) {
		tagged_send(&(char){(char)('a' + i)}, 1, i == 2 ? 0x99 : 0x15, &out[i]);
		completion_take(&sides[0], &entry, NULL);
		entry_is(FI_TAGGED | FI_SEND, 0, 0, &out[i]);
	}
	completion_take(&sides[1], &entry, NULL);
	entry_is(FI_TAGGED | FI_RECV, 1, 0x15, &first);
	completion_take(&sides[1], &entry, NULL);
	entry_is(FI_TAGGED | FI_RECV, 1, 0x15, &second);
	completion_take(&sides[1], &entry, NULL);
	entry_is(FI_TAGGED | FI_RECV, 1, 0x99, &third);
	assert_memory_equal(in, "abc", 3);
}

static void pieces_are_one_message(void **state)
{
	struct iovec from[4], to[4];

	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		const size_t length = n == 0 ? 100 : LONG / 4;

		fill(length * 4, n);
		for (unsigned i = 0; i < 4; i++) {
			from[i] = (struct iovec){out + i * length, length};
			to[i] = (struct iovec){in + i * length, length};
		}
		assert_ok(fi_trecvv(sides[1].ep, to, NULL, 4, FI_ADDR_UNSPEC, 1, 0, &second));
		assert_ok(fi_tsendv(sides[0].ep, from, NULL, 4, sides[0].other, 1, &first));
		completion_take(&sides[1], &entry, NULL);
		assert_int_equal(entry.len, length * 4);
		completion_take(&sides[0], &entry, NULL);
		assert_memory_equal(in, out, length * 4);
		memset(in, 0, sizeof(in));
		assert_ok(fi_sendv(sides[0].ep, from, NULL, 3, sides[0].other, &first));
		assert_ok(fi_recvv(sides[1].ep, to, NULL, 3, FI_ADDR_UNSPEC, &second));
		completion_take(&sides[1], &entry, NULL);
		assert_int_equal(entry.len, length * 3);
		completion_take(&sides[0], &entry, NULL);
		assert_memory_equal(in, out, length * 3);
	}
	assert_int_equal(
		fi_tsendv(sides[0].ep, from, NULL, 5, sides[0].other, 1, NULL), -FI_EINVAL);
}

static void data_of_8_bytes_goes_with_a_message(void **state)
{
	const uint64_t data = UINT64_C(0x8877665544332211);

	(void)state;
	for (unsigned n = 0; n < 4; n++) {
		const struct fi_msg_tagged msg = {.msg_iov = &(struct iovec){out, 4},
			.iov_count = 1,
			.addr = sides[0].other,
			.tag = n,
			.data = data + n};

		tagged_receive(in, 4, n, 0, &second);
		if (n == 0)
			assert_ok(fi_tsenddata(
				sides[0].ep, out, 4, NULL, data, sides[0].other, 0, &first));
		else if (n == 1)
			assert_ok(fi_tinjectdata(sides[0].ep, out, 4, data + 1, sides[0].other, 1));
		else
			assert_ok(fi_tsendmsg(sides[0].ep, &msg, n == 2 ? FI_REMOTE_CQ_DATA : 0));
		completion_take(&sides[1], &entry, NULL);
		assert_true(entry.flags == (FI_TAGGED | FI_RECV | (n < 3 ? FI_REMOTE_CQ_DATA : 0)));
		if (n < 3)
			assert_true(entry.data == data + n);
		if (n != 1)
			completion_take(&sides[0], &entry, NULL);
	}
	assert_ok(fi_recv(sides[1].ep, in, 4, NULL, FI_ADDR_UNSPEC, &second));
	assert_ok(fi_senddata(sides[0].ep, out, 4, NULL, 0, sides[0].other, &first));
	completion_take(&sides[1], &entry, NULL);
	assert_true(entry.flags == (FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA));
	assert_int_equal(entry.data, 0);
	assert_ok(fi_recv(sides[1].ep, in, 4, NULL, FI_ADDR_UNSPEC, &second));
	assert_ok(fi_injectdata(sides[0].ep, out, 4, 7, sides[0].other));
	completion_take(&sides[1], &entry, NULL);
	assert_int_equal(entry.data, 7);
}

static void a_receive_that_is_too_short_gets_an_error_and_its_part(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 4; n++) {
		const size_t length = n & 1 ? LONG : 100;

		fill(length, n);
		if (n & 2)
			tagged_receive(in, 60, n, 0, &second);
		assert_ok(
			fi_tsenddata(sides[0].ep, out, length, NULL, 5, sides[0].other, n, &first));
		if (!(n & 2)) {
			kept_await(&sides[1], n);
			tagged_receive(in, 60, n, 0, &second);
		}
		error_take(&sides[1], &error);
		assert_int_equal(error.err, FI_ETRUNC);
		assert_int_equal(error.len, 60);
		assert_int_equal(error.olen, length - 60);
		assert_int_equal(error.tag, n);
		assert_int_equal(error.data, 5);
		assert_true(error.flags == (FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA));
		assert_ptr_equal(error.op_context, &second);
		assert_memory_equal(in, out, 60);
		assert_int_equal(in[60], 0);
		completion_take(&sides[0], &entry, NULL);
	}
}

static void errors_stand_in_their_order(void **state)
{
	struct fi_cq_tagged_entry entries[4];

	(void)state;
	assert_ok(fi_control(
		&sides[0].ep->fid, FI_SETOPSFLAG, &(uint64_t){FI_TRANSMIT | FI_DELIVERY_COMPLETE}));
	for (unsigned i = 0; i < 5; i++) {
		tagged_receive(in + i, i == 2 ? 0 : 1, i, 0, &in[i]);
		tagged_send(out, 1, i, &out[i]);
		completion_take(&sides[0], &entry, NULL);
	}
	assert_int_equal(fi_cq_read(sides[1].cq, entries, 0), 0);
	assert_int_equal(fi_cq_read(sides[1].cq, entries, 4), 2);
	assert_ptr_equal(entries[1].op_context, &in[1]);
	assert_int_equal(fi_cq_read(sides[1].cq, entries, 4), -FI_EAVAIL);
	assert_int_equal(fi_cq_read(sides[1].cq, entries, 4), -FI_EAVAIL);
	memset(&error, 0, sizeof(error));
	assert_int_equal(fi_cq_readerr(sides[1].cq, &error, 0), 1);
	assert_ptr_equal(error.op_context, &in[2]);
	assert_string_equal(fi_cq_strerror(sides[1].cq, error.prov_errno, NULL, NULL, 0),
		fi_strerror(FI_ETRUNC));
	assert_int_equal(fi_cq_readerr(sides[1].cq, &error, 0), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(sides[1].cq, entries, 4), 2);
	assert_ptr_equal(entries[0].op_context, &in[3]);
}

static void inject_takes_the_data_at_once(void **state)
{
	char word[8] = "before";

	(void)state;
	assert_ok(fi_tinject(sides[0].ep, word, sizeof(word), sides[0].other, 1));
	assert_ok(fi_inject(sides[0].ep, word, sizeof(word), sides[0].other));
	assert_ok(fi_tsendmsg(sides[0].ep,
		&(struct fi_msg_tagged){.msg_iov = &(struct iovec){word, sizeof(word)},
			.iov_count = 1,
			.addr = sides[0].other,
			.tag = 2,
			.context = &first},
		FI_INJECT));
	strcpy(word, "after");
	tagged_receive(in, 8, 1, 0, &first);
	tagged_receive(in + 8, 8, 2, 0, &first);
	assert_ok(fi_recv(sides[1].ep, in + 16, 8, NULL, FI_ADDR_UNSPEC, &first));
	for (unsigned i = 0; i < 3; i++)
		completion_take(&sides[1], &entry, NULL);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(in + 8 * i, "before");
	completion_take(&sides[0], &entry, NULL); /* of FI_INJECT, which is no fi_inject() */
	assert_ptr_equal(entry.op_context, &first);
	nothing_completes(&sides[0]);
	assert_int_equal(fi_tinject(sides[0].ep, out, 4097, sides[0].other, 1), -FI_EMSGSIZE);
}

/* A sender that only injects, to one that reads late. */
static void inject_again_and_again(void **state)
{
	enum { COUNT = 20000 };
	unsigned sent = 0, got = 0, refused = 0;

	(void)state;
	while (sent < COUNT) {
		ssize_t result = fi_tinject(sides[0].ep, &sent, sizeof(sent), sides[0].other, 1);

		assert_true(result == 0 || result == -FI_EAGAIN);
		sent += result == 0;
		if (result == 0 || ++refused % 100 != 0)
			continue;
		for (unsigned i = 0; i < 500 && got < sent; i++, got++) {
			unsigned number;

			tagged_receive(&number, sizeof(number), 1, 0, &second);
			completion_take(&sides[1], &entry, NULL);
			assert_int_equal(number, got);
		}
	}
	for (; got < COUNT; got++) {
		unsigned number;

		tagged_receive(&number, sizeof(number), 1, 0, &second);
		completion_take(&sides[1], &entry, NULL);
		assert_int_equal(number, got);
	}
	assert_true(refused > 0);
}

static void selective_completions_are_asked_for(void **state)
{
	struct fi_msg_tagged msg = {.msg_iov = &(struct iovec){out, 1},
		.iov_count = 1,
		.addr = sides[0].other,
		.context = &first};

	(void)state;
	for (unsigned n = 0; n < 4; n++) {
		const struct fi_msg_tagged receive = {.msg_iov = &(struct iovec){in, 1},
			.iov_count = 1,
			.addr = FI_ADDR_UNSPEC,
			.tag = n,
			.context = &second};

		msg.tag = n;
		in[0] = 0;
		out[0] = (char)(n + 1);
		assert_ok(fi_trecvmsg(sides[1].ep, &receive, n & 1 ? FI_COMPLETION : 0));
		assert_ok(fi_tsendmsg(sides[0].ep, &msg, n & 2 ? FI_COMPLETION : 0));
		if (n & 1)
			completion_take(&sides[1], &entry, NULL);
		if (n & 2)
			completion_take(&sides[0], &entry, NULL);
		while (in[0] == 0)
			nothing_completes(&sides[1]);
		nothing_completes(&sides[1]);
		nothing_completes(&sides[0]);
	}
	/* Errors always. */
	tagged_receive(in, 0, 9, 0, &third);
	tagged_send(out, 1, 9, &first);
	error_take(&sides[1], &error);
	assert_int_equal(error.err, FI_ETRUNC);
	assert_ptr_equal(error.op_context, &third);
	nothing_completes(&sides[0]);
	/* The endpoint's own flags. */
	assert_ok(fi_control(
		&sides[0].ep->fid, FI_SETOPSFLAG, &(uint64_t){FI_TRANSMIT | FI_COMPLETION}));
	tagged_send(out, 1, 9, &first);
	completion_take(&sides[0], &entry, NULL);
}

static void a_receive_that_is_cancelled_has_one_completion(void **state)
{
	(void)state;
	tagged_receive(in, 8, 1, 0, &first);
	tagged_receive(in, 8, 2, 0, &second);
	assert_ok(fi_cancel(&sides[1].ep->fid, &first));
	error_take(&sides[1], &error);
	assert_int_equal(error.err, FI_ECANCELED);
	assert_ptr_equal(error.op_context, &first);
	assert_true(error.flags & FI_RECV);
	assert_int_equal(fi_cancel(&sides[1].ep->fid, &first), -FI_ENOENT);
	assert_int_equal(fi_cancel(&sides[1].ep->fid, NULL), -FI_ENOENT);
	tagged_send("other", 6, 2, NULL);
	completion_take(&sides[1], &entry, NULL);
	assert_ptr_equal(entry.op_context, &second);
	assert_int_equal(fi_cancel(&sides[1].ep->fid, &second), -FI_ENOENT);
	nothing_completes(&sides[1]);
}

static struct fi_msg_tagged search_of(uint64_t tag, void *context)
{
	return (struct fi_msg_tagged){.addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};
}

static void a_peek_tells_of_a_message_and_leaves_it(void **state)
{
	struct fi_msg_tagged msg = search_of(1, &first);

	(void)state;
	assert_ok(fi_trecvmsg(sides[1].ep, &msg, FI_PEEK));
	error_take(&sides[1], &error);
	assert_int_equal(error.err, FI_ENOMSG);
	assert_ptr_equal(error.op_context, &first);
	for (unsigned n = 0; n < 2; n++) {
		const size_t length = n == 0 ? 20 : LONG;

		fill(length, n);
		assert_ok(fi_tsenddata(
			sides[0].ep, out, length, NULL, 3, sides[0].other, 1, &second));
		kept_await(&sides[1], 1);
		for (unsigned i = 0; i < 2; i++) {
			assert_ok(fi_trecvmsg(sides[1].ep, &msg, FI_PEEK));
			completion_take(&sides[1], &entry, NULL);
			entry_is(FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA, length, 1, &first);
			assert_int_equal(entry.data, 3);
			assert_null(entry.buf);
		}
		tagged_receive(in, LONG, 1, 0, &third);
		completion_take(&sides[1], &entry, NULL);
		assert_memory_equal(in, out, length);
		completion_take(&sides[0], &entry, NULL);
	}
	assert_ok(fi_trecvmsg(sides[1].ep, &msg, FI_PEEK));
	error_take(&sides[1], &error);
	assert_int_equal(error.err, FI_ENOMSG);
}

static void a_message_that_is_claimed_is_the_claimer_s(void **state)
{
	struct fi_context context, other;
	struct fi_msg_tagged search = search_of(1, &context);
	struct fi_msg_tagged claim = search_of(0, &context);

	(void)state;
	claim.msg_iov = &(struct iovec){in, LONG};
	claim.iov_count = 1;
	for (unsigned n = 0; n < 4; n++) {
		const size_t length = n & 1 ? LONG : 20;

		fill(length, n);
		tagged_send(out, length, 1, &first);
		kept_await(&sides[1], 1);
		assert_ok(fi_trecvmsg(sides[1].ep, &search, FI_PEEK | FI_CLAIM));
		completion_take(&sides[1], &entry, NULL);
		entry_is(FI_TAGGED | FI_RECV, length, 1, &context);
		tagged_receive(in, LONG, 1, 0, &third);
		nothing_completes(&sides[1]);
		assert_ok(fi_trecvmsg(sides[1].ep, &claim, FI_CLAIM | (n & 2 ? FI_DISCARD : 0)));
		completion_take(&sides[1], &entry, NULL);
		entry_is(FI_TAGGED | FI_RECV, length, 1, &context);
		if (n & 2)
			assert_int_equal(in[length - 1], 0);
		else
			assert_memory_equal(in, out, length);
		completion_take(&sides[0], &entry, NULL);
		assert_int_equal(fi_trecvmsg(sides[1].ep, &claim, FI_CLAIM), -FI_EINVAL);
		memset(&context, 'x', sizeof(context)); /* it is no search's */
		assert_int_equal(fi_trecvmsg(sides[1].ep, &claim, FI_CLAIM), -FI_EINVAL);
		assert_ok(fi_cancel(&sides[1].ep->fid, &third));
		error_take(&sides[1], &error);
		assert_int_equal(error.err, FI_ECANCELED);
	}
	/* One that nobody asks for goes with the endpoint. */
	tagged_send(out, 20, 1, &first);
	kept_await(&sides[1], 1);
	assert_ok(fi_trecvmsg(sides[1].ep, &search, FI_PEEK | FI_CLAIM));
	completion_take(&sides[1], &entry, NULL);
	/* Nor is it claimed by a copy of the context, or at another endpoint. */
	other = context;
	claim.context = &other;
	assert_int_equal(fi_trecvmsg(sides[1].ep, &claim, FI_CLAIM), -FI_EINVAL);
	claim.context = &context;
	assert_int_equal(fi_trecvmsg(sides[0].ep, &claim, FI_CLAIM), -FI_EINVAL);
}

static void a_message_that_is_discarded_is_gone(void **state)
{
	struct fi_context context;
	struct fi_msg_tagged search = search_of(1, &context);

	(void)state;
	assert_ok(fi_trecvmsg(sides[1].ep, &search, FI_PEEK | FI_DISCARD));
	error_take(&sides[1], &error);
	assert_int_equal(error.err, FI_ENOMSG);
	tagged_send(out, LONG, 1, &first);
	kept_await(&sides[1], 1);
	assert_ok(fi_trecvmsg(sides[1].ep, &search, FI_PEEK | FI_DISCARD));
	completion_take(&sides[1], &entry, NULL);
	assert_int_equal(entry.len, LONG);
	completion_take(&sides[0], &entry, NULL);
	assert_ok(fi_trecvmsg(sides[1].ep, &search, FI_PEEK));
	error_take(&sides[1], &error);
	assert_int_equal(error.err, FI_ENOMSG);
	assert_int_equal(fi_trecvmsg(sides[1].ep, &search, FI_DISCARD), -FI_EINVAL);
}

static void flags_that_are_none_are_refused(void **state)
{
	const struct fi_msg_tagged tagged = {.addr = sides[0].other};
	const struct fi_msg msg = {.addr = sides[0].other};

	(void)state;
	assert_int_equal(fi_tsendmsg(sides[0].ep, &tagged, FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	assert_int_equal(fi_tsendmsg(sides[0].ep, &tagged, FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_tsendmsg(sides[0].ep, &tagged, FI_TRIGGER), -FI_EBADFLAGS);
	assert_int_equal(fi_sendmsg(sides[0].ep, &msg, FI_TRIGGER), -FI_EBADFLAGS);
	assert_int_equal(fi_sendmsg(sides[0].ep, &msg, FI_MULTICAST), -FI_EBADFLAGS);
	assert_int_equal(fi_sendmsg(sides[0].ep, &msg, FI_VARIABLE_MSG), -FI_EBADFLAGS);
	assert_int_equal(fi_recvmsg(sides[0].ep, &msg, FI_TRIGGER), -FI_EBADFLAGS);
	assert_int_equal(fi_trecvmsg(sides[0].ep, &tagged, FI_MULTI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_recvmsg(sides[0].ep, &msg, FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_trecvmsg(sides[0].ep, &tagged, FI_PEEK | FI_CLAIM), -FI_EINVAL);
	assert_int_equal(fi_tsendmsg(sides[0].ep, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_trecvmsg(sides[0].ep, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_sendmsg(sides[0].ep, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_recvmsg(sides[0].ep, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_tsend(sides[0].ep, NULL, 0, NULL, 77, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_tsend(sides[0].ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 0, NULL), -FI_EINVAL);
}

/* A read of no completions makes progress and takes none; others have what the flags say. */
static void a_completion_says_what_has_completed(void **state)
{
	fi_addr_t source = 0;

	(void)state;
	assert_ok(fi_recv(sides[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, &second));
	assert_ok(fi_senddata(sides[0].ep, out, 5, NULL, 77, sides[0].other, &first));
	completion_take(&sides[0], &entry, &source);
	assert_ptr_equal(entry.op_context, &first);
	assert_int_equal(entry.flags, FI_MSG | FI_SEND);
	assert_true(source == FI_ADDR_NOTAVAIL);
	source = 0;
	completion_take(&sides[1], &entry, &source);
	assert_ptr_equal(entry.op_context, &second);
	assert_int_equal(entry.flags, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
	assert_int_equal(entry.len, 5);
	assert_int_equal(entry.data, 77);
	assert_true(source == sides[1].other);

	assert_ok(fi_tsend(sides[0].ep, out, 3, NULL, sides[0].other, 9, &first));
	kept_await(&sides[1], 9);
	assert_ok(fi_trecv(sides[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 9, 0, &second));
	completion_take(&sides[1], &entry, NULL);
	assert_int_equal(entry.flags, FI_TAGGED | FI_RECV);
	assert_int_equal(entry.len, 3);
	assert_int_equal(entry.tag, 9);
	for (unsigned i = 0; i < 3; i++)
		assert_true(fi_cq_read(sides[0].cq, NULL, 0) <= 0);
	assert_int_equal(fi_cq_readerr(sides[0].cq, &(struct fi_cq_err_entry){0}, 0), -FI_EAGAIN);
	completion_take(&sides[0], &entry, NULL);
	assert_int_equal(entry.flags, FI_TAGGED | FI_SEND);
	nothing_completes(&sides[0]);
	nothing_completes(&sides[1]);
}

/* It is posted when all before it to the same process have completed. */
static void a_fenced_send_waits_for_what_was_before(void **state)
{
	enum { COUNT = 5 };
	struct fi_msg_tagged msg = {.msg_iov = &(struct iovec){out, 8},
		.iov_count = 1,
		.addr = sides[0].other,
		.tag = 1,
		.context = &first};
	unsigned before = 0;
	ssize_t result;

	(void)state;
	for (unsigned i = 0; i < COUNT; i++)
		assert_ok(fi_tsendmsg(sides[0].ep, &msg, FI_MATCH_COMPLETE));
	msg.tag = 2;
	msg.context = &second;
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(fi_tsendmsg(sides[0].ep, &msg, FI_FENCE), -FI_EAGAIN);
		(void)fi_cq_read(sides[1].cq, NULL, 0);
	}
	for (unsigned i = 0; i < COUNT; i++)
		assert_ok(fi_trecv(sides[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	while ((result = fi_tsendmsg(sides[0].ep, &msg, FI_FENCE)) == -FI_EAGAIN)
		(void)fi_cq_read(sides[1].cq, NULL, 0);
	assert_ok(result);
	while (fi_cq_read(sides[0].cq, &entry, 1) == 1 && entry.op_context == &first)
		before++;
	assert_int_equal(before, COUNT);
	if (entry.op_context != &second)
		completion_take(&sides[0], &entry, NULL);
	assert_ptr_equal(entry.op_context, &second);
	for (unsigned i = 0; i < COUNT; i++)
		completion_take(&sides[1], &entry, NULL);
}

/* Its level holds for what was posted before, too, whatever level that was posted with. */
static void a_fence_has_its_level_for_all_before(void **state)
{
	enum { COUNT = 20 };
	struct fi_msg_tagged msg = {.msg_iov = &(struct iovec){out, EAGER / 2},
		.iov_count = 1,
		.addr = sides[0].other,
		.context = &first};
	unsigned completed = 0;
	ssize_t result;

	(void)state;
	fill(EAGER, 3);
	for (unsigned i = 0; i < COUNT; i++) {
		msg.tag = i;
		assert_ok(fi_tsendmsg(sides[0].ep, &msg, FI_INJECT_COMPLETE));
	}
	msg.tag = COUNT;
	msg.context = &second;
	while ((result = fi_tsendmsg(sides[0].ep, &msg, FI_FENCE | FI_DELIVERY_COMPLETE)) ==
		-FI_EAGAIN)
		(void)fi_cq_read(sides[1].cq, NULL, 0);
	assert_ok(result);
	do {
		completion_take(&sides[0], &entry, NULL);
		completed++;
	} while (entry.op_context != &second);
	assert_int_equal(completed, COUNT + 1);
	/* All are at the target: a look finds each without a wait. */
	for (unsigned i = 0; i <= COUNT; i++) {
		const struct fi_msg_tagged peek = {
			.tag = i, .addr = FI_ADDR_UNSPEC, .context = &third};

		assert_ok(fi_trecvmsg(sides[1].ep, &peek, FI_PEEK));
		while ((result = fi_cq_read(sides[1].cq, &entry, 1)) == -FI_EAGAIN)
			;
		assert_int_equal(result, 1); /* not an error: there is no such message */
		assert_int_equal(entry.len, EAGER / 2);
	}
}

/* Delivered is kept; matched is received. */
static void a_send_completes_when_its_level_says(void **state)
{
	struct fi_msg_tagged msg = {.msg_iov = &(struct iovec){out, 8},
		.iov_count = 1,
		.addr = sides[0].other,
		.context = &first};

	(void)state;
	assert_ok(fi_tsendmsg(sides[0].ep, &msg, FI_INJECT_COMPLETE));
	completion_take(&sides[0], &entry, NULL);
	assert_ok(fi_tsendmsg(sides[0].ep, &msg, FI_TRANSMIT_COMPLETE));
	completion_take(&sides[0], &entry, NULL);
	assert_ok(fi_tsendmsg(sides[0].ep, &msg, FI_DELIVERY_COMPLETE));
	completion_take(&sides[0], &entry, NULL);
	assert_ok(fi_tsendmsg(sides[0].ep, &msg, FI_MATCH_COMPLETE));
	nothing_completes(&sides[0]);
	for (unsigned i = 0; i < 4; i++) {
		nothing_completes(&sides[0]);
		tagged_receive(in, 8, 0, 0, &second);
		completion_take(&sides[1], &entry, NULL);
	}
	completion_take(&sides[0], &entry, NULL);
	assert_ptr_equal(entry.op_context, &first);
}

static void a_queue_of_sends_has_an_end(void **state)
{
	unsigned posted = 0;

	(void)state;
	/* Each waits for its receive. */
	while (fi_tsendmsg(sides[0].ep,
		       &(struct fi_msg_tagged){.msg_iov = &(struct iovec){out, 8},
			       .iov_count = 1,
			       .addr = sides[0].other,
			       .tag = posted},
		       FI_MATCH_COMPLETE) == 0)
		posted++;
	assert_int_equal(posted, info->tx_attr->size);
	for (unsigned i = 0; i < posted; i++) {
		tagged_receive(in, 8, i, 0, &second);
		completion_take(&sides[1], &entry, NULL);
	}
	for (unsigned i = 0; i < posted; i++)
		completion_take(&sides[0], &entry, NULL);
	tagged_send(out, 8, 0, &first);
	completion_take(&sides[0], &entry, NULL);
}

/* A send or a receive to itself, in turn. */
static ssize_t post_one(unsigned number)
{
	return number % 2 == 0 ? fi_trecv(sides[0].ep, in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &second)
			       : fi_tsend(sides[0].ep, out, 1, NULL, sides[0].self, 1, &first);
}

static void completions_that_nobody_reads_refuse_further_ones(void **state)
{
	const size_t most = info->tx_attr->size + info->rx_attr->size;
	unsigned posted = 0;

	(void)state;
	/* Also refused are sends while too many are under way. */
	while (posted < most) {
		ssize_t result = post_one(posted);

		assert_true(result == 0 || result == -FI_EAGAIN);
		posted += result == 0;
	}
	assert_int_equal(post_one(0), -FI_EAGAIN);
	assert_int_equal(post_one(1), -FI_EAGAIN);
	for (unsigned i = 0; i < posted; i++)
		completion_take(&sides[0], &entry, NULL);
	nothing_completes(&sides[0]);
	assert_ok(fi_tsend(sides[0].ep, out, 1, NULL, sides[0].self, 1, &first));
	completion_take(&sides[0], &entry, NULL);
}

static void an_endpoint_sends_to_itself(void **state)
{
	(void)state;
	fill(LONG, 5);
	assert_ok(fi_trecv(sides[0].ep, in, LONG, NULL, FI_ADDR_UNSPEC, 4, 0, &second));
	assert_ok(fi_tsend(sides[0].ep, out, LONG, NULL, sides[0].self, 4, &first));
	for (unsigned i = 0; i < 2; i++)
		completion_take(&sides[0], &entry, NULL);
	assert_memory_equal(in, out, LONG);
}

static void a_source_is_told_and_asked_for(void **state)
{
	fi_addr_t source;

	(void)state;
	assert_ok(fi_trecv(sides[1].ep, in, 1, NULL, sides[1].self, 0, UINT64_MAX, &first));
	assert_ok(fi_recv(sides[1].ep, in + 1, 1, NULL, sides[1].self, &second));
	tagged_send("x", 1, 6, NULL);
	assert_ok(fi_send(sides[0].ep, "x", 1, NULL, sides[0].other, NULL));
	for (unsigned i = 0; i < 2; i++)
		completion_take(&sides[0], &entry, NULL);
	nothing_completes(&sides[1]);
	assert_ok(fi_trecv(sides[1].ep, in + 2, 1, NULL, sides[1].other, 6, 0, &third));
	completion_take(&sides[1], &entry, &source);
	assert_ptr_equal(entry.op_context, &third);
	assert_int_equal(source, sides[1].other);
	assert_ok(fi_recv(sides[1].ep, in + 3, 1, NULL, FI_ADDR_UNSPEC, &third));
	completion_take(&sides[1], &entry, &source);
	assert_ptr_equal(entry.op_context, &third);
	assert_int_equal(source, sides[1].other);
	assert_ok(fi_tsend(sides[1].ep, "y", 1, NULL, sides[1].self, 1, NULL));
	assert_ok(fi_send(sides[1].ep, "z", 1, NULL, sides[1].self, NULL));
	for (unsigned i = 0; i < 4; i++) {
		completion_take(&sides[1], &entry, &source);
		assert_int_equal(source, entry.flags & FI_RECV ? sides[1].self : FI_ADDR_NOTAVAIL);
	}
	assert_memory_equal(in, "yzxx", 4);
	/* A search from one peer alone. */
	tagged_send("x", 1, 7, NULL);
	kept_await(&sides[1], 7);
	for (unsigned i = 0; i < 2; i++) {
		struct fi_msg_tagged msg = search_of(7, &first);

		msg.addr = i == 0 ? sides[1].self : sides[1].other;
		assert_ok(fi_trecvmsg(sides[1].ep, &msg, FI_PEEK));
		if (i == 0)
			error_take(&sides[1], &error);
		else
			completion_take(&sides[1], &entry, &source);
	}
	assert_int_equal(source, sides[1].other);
}

static void a_user_s_identifier_is_told_as_source(void **state)
{
	fi_addr_t id = 0x1234567890, source;

	(void)state;
	assert_ok(fi_av_remove(sides[1].av, &sides[1].other, 1, 0));
	assert_int_equal(fi_av_insert(sides[1].av, sides[0].name, 1, &id, FI_AV_USER_ID, NULL), 1);
	assert_int_equal(id, sides[1].other);
	tagged_receive(in, 1, 6, 0, &third);
	tagged_send("x", 1, 6, NULL);
	completion_take(&sides[1], &entry, &source);
	assert_true(source == 0x1234567890);
	assert_ok(fi_trecv(sides[1].ep, in, 1, NULL, id, 6, 0, &third));
	tagged_send("x", 1, 6, NULL);
	completion_take(&sides[1], &entry, &source);
}

static void a_receive_is_cancelled_before_a_send_of_its_context(void **state)
{
	(void)state;
	tagged_send(out, LONG, 7, &first);
	assert_ok(fi_trecv(sides[0].ep, in, 1, NULL, FI_ADDR_UNSPEC, 8, 0, &first));
	assert_ok(fi_cancel(&sides[0].ep->fid, &first));
	failed_take(FI_ECANCELED, FI_TAGGED | FI_RECV, &first);
	tagged_receive(in, LONG, 7, 0, &second);
	completion_take(&sides[1], &entry, NULL);
	entry_is(FI_TAGGED | FI_RECV, LONG, 7, &second);
	done_take(FI_TAGGED | FI_SEND, &first);
}

static void an_earlier_life_of_an_endpoint_is_not_there(void **state)
{
	char earlier[NAME_BYTES];
	fi_addr_t to;

	(void)state;
	memcpy(earlier, sides[1].name, sizeof(earlier));
	earlier[16]++;
	assert_int_equal(fi_av_insert(sides[0].av, earlier, 1, &to, 0, NULL), 1);
	assert_ok(fi_tsend(sides[0].ep, "x", 1, NULL, to, 1, &first));
	failed_take(FI_EHOSTUNREACH, FI_TAGGED | FI_SEND, &first);
}

static void a_stranger_s_address_is_told_and_can_be_inserted(void **state)
{
	fi_addr_t index, source;
	char address[NAME_BYTES] = "";

	(void)state;
	assert_int_equal(fi_av_insert(sides[0].av, sides[1].name, 1, &sides[0].other, 0, NULL), 1);
	for (unsigned i = 0; i < 3; i++) {
		const size_t room = i == 1 ? 5 : sizeof(address);

		tagged_receive(in, 4, 6, 0, &third);
		tagged_send("abc", 4, 6, &first);
		completion_take(&sides[0], &entry, NULL);
		while (fi_cq_readfrom(sides[1].cq, &entry, 1, &source) != -FI_EAVAIL)
			(void)fi_cq_read(sides[0].cq, NULL, 0);
		memset(&error, 0, sizeof(error));
		if (i > 0) {
			error.err_data = address;
			error.err_data_size = room;
		}
		assert_int_equal(fi_cq_readerr(sides[1].cq, &error, 0), 1);
		assert_int_equal(error.err, FI_EADDRNOTAVAIL);
		assert_ptr_equal(error.op_context, &third);
		assert_int_equal(error.len, 4);
		assert_int_equal(error.err_data_size, room);
		assert_memory_equal(error.err_data, sides[0].name, room);
		assert_true(i != 1 || address[room] == 0);
		assert_string_equal(in, "abc");
	}
	assert_int_equal(fi_av_insert(sides[1].av, address, 1, &index, 0, NULL), 1);
	tagged_receive(in, 4, 6, 0, &third);
	tagged_send("abc", 4, 6, &first);
	completion_take(&sides[1], &entry, &source);
	assert_int_equal(source, index);
	assert_ok(fi_tsend(sides[1].ep, "back", 5, NULL, index, 1, NULL));
	assert_ok(fi_trecv(sides[0].ep, in, 5, NULL, FI_ADDR_UNSPEC, 1, 0, &first));
	completion_take(&sides[0], &entry, &source);
	if (entry.flags & FI_SEND)
		completion_take(&sides[0], &entry, &source);
	assert_int_equal(source, sides[0].other);
	assert_string_equal(in, "back");
}

static void many_messages_of_both_directions(void **state)
{
	enum { COUNT = 3000 };
	static uint32_t numbers[2][COUNT], got[2][COUNT];
	unsigned done[2] = {0, 0};

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++)
		for (unsigned n = 0; n < 2; n++) {
			numbers[n][i] = i;
			assert_ok(fi_trecv(sides[n].ep, &got[n][i], 4, NULL, FI_ADDR_UNSPEC, 1, 0,
				&got[n][i]));
		}
	for (uint32_t i = 0; i < COUNT; i++)
		for (unsigned n = 0; n < 2; n++)
			while (fi_tsend(sides[n].ep, &numbers[n][i], 4, NULL, sides[n].other, 1,
				       &numbers[n][i]) == -FI_EAGAIN)
				;
	while (done[0] < 2 * COUNT || done[1] < 2 * COUNT)
		for (unsigned n = 0; n < 2; n++)
			if (done[n] < 2 * COUNT) {
				completion_take(&sides[n], &entry, NULL);
				done[n]++;
			}
	for (unsigned n = 0; n < 2; n++)
		assert_memory_equal(got[n], numbers[n], sizeof(numbers[n]));
}

#define TEST(name, opens) cmocka_unit_test_setup_teardown(name, opens, pair_closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tagged_messages_of_all_lengths, opened),
		TEST(messages_without_tags_are_a_class_of_their_own, opened),
		TEST(a_message_without_a_tag_can_be_described, opened),
		TEST(tags_match_under_the_mask_in_order, opened),
		TEST(pieces_are_one_message, opened),
		TEST(data_of_8_bytes_goes_with_a_message, opened),
		TEST(a_receive_that_is_too_short_gets_an_error_and_its_part, opened),
		TEST(errors_stand_in_their_order, opened),
		TEST(inject_takes_the_data_at_once, opened),
		TEST(inject_again_and_again, opened_small),
		TEST(selective_completions_are_asked_for, opened_selective),
		TEST(a_receive_that_is_cancelled_has_one_completion, opened),
		TEST(a_peek_tells_of_a_message_and_leaves_it, opened),
		TEST(a_message_that_is_claimed_is_the_claimer_s, opened),
		TEST(a_message_that_is_discarded_is_gone, opened),
		TEST(flags_that_are_none_are_refused, opened),
		TEST(a_completion_says_what_has_completed, opened),
		TEST(a_fenced_send_waits_for_what_was_before, opened),
		TEST(a_fence_has_its_level_for_all_before, opened),
		TEST(a_send_completes_when_its_level_says, opened),
		TEST(a_queue_of_sends_has_an_end, opened),
		TEST(completions_that_nobody_reads_refuse_further_ones, opened),
		TEST(an_endpoint_sends_to_itself, opened),
		TEST(a_source_is_told_and_asked_for, opened_source),
		TEST(a_user_s_identifier_is_told_as_source, opened_source),
		TEST(a_receive_is_cancelled_before_a_send_of_its_context, opened),
		TEST(an_earlier_life_of_an_endpoint_is_not_there, opened),
		TEST(a_stranger_s_address_is_told_and_can_be_inserted, opened_strangers),
		TEST(many_messages_of_both_directions, opened_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
