/* SPDX-License-Identifier: BSD-3-Clause */
/* test_rma.c - reads and writes: fi_rma(3). What an initiator may not do ends with an error at it,
 * and changes nothing at the target.
 * Covers: lib/fi/mr.c, lib/fi/rma.c. */
#include "memory.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_eq.h>

#define HANG 60 /* s */

static const size_t sizes[] = {
	1, 2, 8, 63, 64, 65, 256, 1023, 1024, 1025, 4096, 4097, 70000, 1000003};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static int opened_to_wait(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = FI_RMA, .wait = FI_WAIT_FD});
	memory_open();
	region_open(BOTH);
	return 0;
}

static int opened_selective(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = FI_RMA, .bind = FI_SELECTIVE_COMPLETION});
	memory_open();
	region_open(BOTH);
	return 0;
}

/* Calls without flags complete, others if theirs say so. */
static int opened_to_complete(void **state)
{
	(void)state;
	pair_open(&(struct wish){
		.caps = FI_RMA, .bind = FI_SELECTIVE_COMPLETION, .tx_flags = FI_COMPLETION});
	memory_open();
	region_open(BOTH);
	return 0;
}

static int opened_to_inject(void **state)
{
	(void)state;
	pair_open(&(struct wish){.caps = FI_RMA, .tx_flags = FI_INJECT});
	memory_open();
	region_open(BOTH);
	return 0;
}

static int opened_automatic(void **state)
{
	(void)state;
	pair_open(&(struct wish){
		.caps = FI_RMA, .wait = FI_WAIT_UNSPEC, .progress = FI_PROGRESS_AUTO});
	memory_open();
	region_open(BOTH);
	return 0;
}

static void told_take(uint64_t data, size_t length)
{
	struct fi_cq_tagged_entry entry = {0};

	completion_take(&sides[1], &entry, NULL);
	assert_int_equal(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	assert_true(entry.data == data);
	assert_int_equal(entry.len, length);
}

static void message_make(struct fi_msg_rma *message, struct iovec *iov, struct fi_rma_iov *to,
	size_t pieces, size_t length, uint64_t at)
{
	for (size_t i = 0; i < pieces; i++)
		iov[i] = (struct iovec){local + i * (length / pieces),
			i + 1 < pieces ? length / pieces : length - i * (length / pieces)};
	*to = (struct fi_rma_iov){base + at, length, key};
	*message = (struct fi_msg_rma){.msg_iov = iov,
		.iov_count = pieces,
		.addr = sides[0].other,
		.rma_iov = to,
		.rma_iov_count = 1,
		.context = &context};
}

/* --- what works */

static void every_form_of_a_write_writes(void **state)
{
	struct fid_ep *ep = sides[0].ep;
	const fi_addr_t to = sides[0].other;
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];
	uint64_t at = 3;

	(void)state;
	for (unsigned i = 0; i < SIZES; i++) {
		const size_t length = sizes[i];

		assert_ok(fi_write(ep, local, length, NULL, to, base + at, key, &context));
		written_take();
		target_gets(local, at, length);
		at += 5;
		for (size_t pieces = 1; pieces <= 4; pieces++, at += 7) {
			message_make(&message, iov, &there, pieces, length, at);
			assert_ok(fi_writev(ep, iov, NULL, pieces, to, base + at, key, &context));
			written_take();
			target_gets(local, at, length);
			at += 11;
			message_make(&message, iov, &there, pieces, length, at);
			assert_ok(fi_writemsg(ep, &message, FI_COMPLETION));
			written_take();
			target_gets(local, at, length);
		}
		target_is_as_it_should_be();
	}
	assert_ok(fi_write(ep, NULL, 0, NULL, to, base + BYTES, key, &context));
	written_take();
	assert_ok(fi_write(ep, local, BYTES, NULL, to, base, key, &context));
	written_take();
	target_gets(local, 0, BYTES);
	target_is_as_it_should_be();
}

static void every_form_of_a_read_reads(void **state)
{
	struct fid_ep *ep = sides[0].ep;
	const fi_addr_t from = sides[0].other;
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];
	uint8_t *data = malloc(BYTES);

	(void)state;
	assert_non_null(data);
	memcpy(data, local, BYTES);
	target_gets(data, 0, BYTES);
	memcpy(target + EDGE, data, BYTES);
	for (unsigned i = 0; i < SIZES; i++) {
		const size_t length = sizes[i];
		const uint64_t at = 13 * i;

		memset(local, 0, BYTES);
		assert_ok(fi_read(ep, local, length, NULL, from, base + at, key, &context));
		done_take(FI_RMA | FI_READ, &context);
		assert_memory_equal(local, data + at, length);
		assert_int_equal(local[length], 0);
		for (size_t pieces = 1; pieces <= 4; pieces++) {
			message_make(&message, iov, &there, pieces, length, at);
			memset(local, 0, length);
			assert_ok(fi_readv(ep, iov, NULL, pieces, from, base + at, key, &context));
			done_take(FI_RMA | FI_READ, &context);
			assert_memory_equal(local, data + at, length);
			memset(local, 0, length);
			assert_ok(fi_readmsg(ep, &message, FI_COMPLETION));
			done_take(FI_RMA | FI_READ, &context);
			assert_memory_equal(local, data + at, length);
			assert_int_equal(local[length], 0);
		}
	}
	target_is_as_it_should_be();
	free(data);
}

static void an_inject_gives_its_memory_back_and_does_not_complete(void **state)
{
	struct fid_ep *ep = sides[0].ep;
	const size_t most = info->tx_attr->inject_size;
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];
	uint64_t at = 0;

	(void)state;
	for (unsigned i = 0; i < SIZES && sizes[i] <= most; i++, at += 2 * most) {
		uint8_t *copy = malloc(sizes[i]);

		assert_non_null(copy);
		memcpy(copy, local, sizes[i]);
		assert_ok(fi_inject_write(ep, copy, sizes[i], sides[0].other, base + at, key));
		memset(copy, 0, sizes[i]);
		free(copy);
		target_gets(local, at, sizes[i]);
		/* By a message it completes. */
		message_make(&message, iov, &there, 3, sizes[i], at + most);
		assert_ok(fi_writemsg(ep, &message, FI_INJECT | FI_COMPLETION));
		target_gets(local, at + most, sizes[i]);
		memset(local, 0, sizes[i]);
		written_take();
		memcpy(local, mirror + EDGE + at, sizes[i]);
	}
	nothing_completes(&sides[0]);
	target_is_as_it_should_be();
	assert_int_equal(
		fi_inject_write(ep, local, most + 1, sides[0].other, base, key), -FI_EMSGSIZE);
	assert_int_equal(fi_inject_writedata(ep, local, most + 1, 1, sides[0].other, base, key),
		-FI_EMSGSIZE);
	message_make(&message, iov, &there, 2, most + 1, 0);
	assert_int_equal(fi_writemsg(ep, &message, FI_INJECT), -FI_EMSGSIZE);
}

/* Of an endpoint that says so of all its writes; reads have nothing to give back. */
static void what_an_endpoint_injects_is_given_back(void **state)
{
	struct fid_ep *ep = sides[0].ep;
	const fi_addr_t to = sides[0].other;
	uint8_t kept[5000];
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];

	(void)state;
	memcpy(kept, local, sizeof(kept));
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t at = i * 5000;

		message_make(&message, iov, &there, 3, 4000, at);
		if (i == 0)
			assert_ok(fi_write(ep, local, 4000, NULL, to, base + at, key, &context));
		else if (i == 1)
			assert_ok(fi_writev(ep, iov, NULL, 3, to, base + at, key, &context));
		else
			assert_ok(fi_writedata(
				ep, local, 4000, NULL, 7, to, base + at, key, &context));
		memset(local, 0, 4000);
		written_take();
		target_gets(kept, at, 4000);
		target_is_as_it_should_be();
		memcpy(local, kept, 4000);
	}
	told_take(7, 4000);
	assert_int_equal(fi_write(ep, local, 5000, NULL, to, base, key, NULL), -FI_EMSGSIZE);
	/* By flags of its own a call does without. */
	message_make(&message, iov, &there, 1, 5000, 0);
	assert_ok(fi_writemsg(ep, &message, 0));
	written_take();
	target_gets(local, 0, 5000);
	target_is_as_it_should_be();
	memset(local, 0, 5000);
	assert_ok(fi_read(ep, local, 5000, NULL, to, base, key, &context));
	done_take(FI_RMA | FI_READ, &context);
	assert_memory_equal(local, kept, 5000);
}

static void remote_data_arrives_behind_what_was_written(void **state)
{
	struct fid_ep *ep = sides[0].ep;
	const fi_addr_t to = sides[0].other;
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];

	(void)state;
	for (unsigned i = 0; i < SIZES; i++) {
		const size_t length = sizes[i];

		memset(target + EDGE, 0, length);
		assert_ok(fi_writedata(
			ep, local, length, NULL, UINT64_MAX - i, to, base, key, &context));
		told_take(UINT64_MAX - i, length);
		assert_memory_equal(target + EDGE, local, length);
		written_take();
	}
	memset(target + EDGE, 0, 9);
	assert_ok(fi_inject_writedata(ep, local, 9, 77, to, base, key));
	told_take(77, 9);
	assert_memory_equal(target + EDGE, local, 9);
	message_make(&message, iov, &there, 2, 500, 0);
	message.data = 78;
	assert_ok(fi_writemsg(ep, &message, FI_REMOTE_CQ_DATA | FI_COMPLETION));
	told_take(78, 500);
	written_take();
	assert_ok(fi_writedata(ep, NULL, 0, NULL, 79, to, base, key, &context));
	told_take(79, 0);
	written_take();
	/* Others tell nobody. */
	assert_ok(fi_write(ep, local, 8, NULL, to, base, key, &context));
	written_take();
	assert_ok(fi_read(ep, local, 8, NULL, to, base, key, &context));
	done_take(FI_RMA | FI_READ, &context);
	nothing_completes(&sides[1]);
}

/* As many writes as no queue of the target has room for: each is told of once. */
static void no_remote_data_is_lost_when_nobody_reads(void **state)
{
	enum { COUNT = 24000 };
	const time_t end = time(NULL) + HANG;
	static uint8_t told[COUNT];
	unsigned posted = 0, heard = 0, refused = 0;
	struct fi_cq_tagged_entry entries[64];

	(void)state;
	memset(told, 0, sizeof(told));
	while (heard < COUNT) {
		ssize_t taken = -FI_EAGAIN;

		/* Until nothing goes any more; then a little at a time. */
		if (posted < COUNT && refused < (heard == 0 ? 1000 : 4)) {
			ssize_t result = fi_inject_writedata(
				sides[0].ep, local, 8, posted, sides[0].other, base, key);

			assert_true(result == 0 || result == -FI_EAGAIN);
			posted += result == 0;
			refused = result == 0 ? 0 : refused + 1;
			continue;
		}
		(void)fi_cq_read(sides[0].cq, NULL, 0);
		taken = fi_cq_read(sides[1].cq, entries, 64);
		assert_true(taken > 0 || taken == -FI_EAGAIN);
		for (ssize_t i = 0; i < taken; i++, heard++) {
			assert_true(entries[i].data < COUNT);
			assert_int_equal(told[entries[i].data]++, 0);
		}
		refused = 0;
		assert_true(time(NULL) < end);
	}
	nothing_completes(&sides[1]);
}

/* A target that makes calls, and does not read its queue, keeps what that has places for, and what
 * is kept for one that makes no calls. */
static void remote_data_waits_for_a_reader(void **state)
{
	enum { UNREAD = 17408 + 16384, COUNT = UNREAD + 10000, WINDOW = 512, IDLE = 20000 };
	const time_t end = time(NULL) + HANG;
	unsigned posted = 0, ended = 0, read = 0, idle = 0;
	struct fi_cq_tagged_entry entries[64];
	ssize_t taken;

	(void)state;
	while (read < COUNT) {
		if (posted < COUNT && posted - ended < WINDOW &&
			fi_writedata(sides[0].ep, local, 8, NULL, posted, sides[0].other, base, key,
				&context) == 0)
			posted++;
		taken = fi_cq_read(sides[0].cq, entries, 64);
		assert_true(taken >= 0 || taken == -FI_EAGAIN);
		ended += taken > 0 ? (unsigned)taken : 0;
		idle = taken > 0 ? 0 : idle + 1;
		assert_true(ended <= read + UNREAD);
		/* Until nothing goes any more. */
		taken = fi_cq_read(sides[1].cq, entries, read > 0 || idle > IDLE ? 64 : 0);
		assert_true(taken >= 0 || taken == -FI_EAGAIN);
		read += taken > 0 ? (unsigned)taken : 0;
		assert_true(time(NULL) < end);
	}
	while (ended < COUNT) {
		completion_take(&sides[0], NULL, NULL);
		ended++;
	}
	nothing_completes(&sides[1]);
}

static void every_completion_level_completes(void **state)
{
	const uint64_t levels[] = {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE};
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		message_make(&message, iov, &there, 1, 100, i * 100);
		assert_ok(fi_writemsg(sides[0].ep, &message, FI_COMPLETION | levels[i]));
		written_take();
		target_gets(local, i * 100, 100);
		target_is_as_it_should_be(); /* all are the strongest */
		assert_ok(fi_readmsg(sides[0].ep, &message, FI_COMPLETION | levels[i]));
		done_take(FI_RMA | FI_READ, &context);
	}
	/* More follows, or not. */
	assert_ok(fi_writemsg(sides[0].ep, &message, FI_MORE));
	written_take();
	assert_ok(fi_readmsg(sides[0].ep, &message, FI_MORE));
	done_take(FI_RMA | FI_READ, &context);
	assert_int_equal(fi_writemsg(sides[0].ep, &message, FI_TRIGGER), -FI_EBADFLAGS);
	assert_int_equal(fi_readmsg(sides[0].ep, &message, FI_TRIGGER), -FI_EBADFLAGS);
	assert_int_equal(fi_writemsg(sides[0].ep, &message, FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	assert_int_equal(fi_readmsg(sides[0].ep, &message, FI_INJECT), -FI_EBADFLAGS);
	assert_int_equal(fi_readmsg(sides[0].ep, &message, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
}

static void what_nobody_asks_for_does_not_complete(void **state)
{
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];

	(void)state;
	message_make(&message, iov, &there, 1, 100, 0);
	assert_ok(fi_writemsg(sides[0].ep, &message, 0));
	nothing_completes(&sides[0]);
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, sides[0].other, base, key, NULL));
	assert_ok(fi_read(sides[0].ep, local, 8, NULL, sides[0].other, base, key, NULL));
	assert_ok(fi_writemsg(sides[0].ep, &message, FI_COMPLETION));
	written_take();
	nothing_completes(&sides[0]);
	/* An error always does. */
	there.key = key + 1;
	assert_ok(fi_writemsg(sides[0].ep, &message, 0));
	failed_take(FI_EKEYREJECTED, FI_RMA | FI_WRITE, &context);
}

static void a_call_s_flags_stand_for_the_endpoint_s(void **state)
{
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];

	(void)state;
	message_make(&message, iov, &there, 1, 100, 0);
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, sides[0].other, base, key, &context));
	written_take();
	assert_ok(fi_read(sides[0].ep, local, 8, NULL, sides[0].other, base, key, &context));
	done_take(FI_RMA | FI_READ, &context);
	assert_ok(fi_writemsg(sides[0].ep, &message, 0));
	assert_ok(fi_readmsg(sides[0].ep, &message, 0));
	nothing_completes(&sides[0]);
	assert_ok(fi_readmsg(sides[0].ep, &message, FI_COMPLETION));
	done_take(FI_RMA | FI_READ, &context);
	/* Remote data is for the target, whose own operations need not complete. */
	assert_ok(fi_inject_writedata(sides[0].ep, local, 8, 5, sides[0].other, base, key));
	told_take(5, 8);
	nothing_completes(&sides[0]);
}

/* FI_PROGRESS_AUTO: what has no completion needs no call of the initiator's either. */
static void a_target_s_program_makes_no_calls(void **state)
{
	const time_t end = time(NULL) + HANG;
	struct fi_cq_tagged_entry entry;
	volatile uint8_t *last = target + EDGE + 3999;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		if (i == 0)
			assert_ok(fi_write(sides[0].ep, local, BYTES, NULL, sides[0].other, base,
				key, &context));
		else if (i == 1)
			assert_ok(fi_read(sides[0].ep, local, BYTES, NULL, sides[0].other, base,
				key, &context));
		else
			assert_ok(fi_writedata(sides[0].ep, local, 100, NULL, 9, sides[0].other,
				base, key, &context));
		assert_int_equal(fi_cq_sread(sides[0].cq, &entry, 1, NULL, HANG * 1000), 1);
		assert_ptr_equal(entry.op_context, &context);
	}
	assert_int_equal(fi_cq_sread(sides[1].cq, &entry, 1, NULL, HANG * 1000), 1);
	assert_int_equal(entry.data, 9);
	target_gets(local, 0, BYTES);
	target_is_as_it_should_be();
	local[3999] = (uint8_t) ~*last;
	assert_ok(fi_inject_write(sides[0].ep, local, 4000, sides[0].other, base, key));
	while (*last != local[3999])
		assert_true(time(NULL) < end);
}

static void an_endpoint_reaches_itself(void **state)
{
	(void)state;
	assert_ok(fi_write(sides[0].ep, local, 5000, NULL, sides[0].self, base, key, &context));
	written_take();
	target_gets(local, 0, 5000);
	target_is_as_it_should_be();
	memset(local, 0, 5000);
	assert_ok(fi_read(sides[0].ep, local, 5000, NULL, sides[0].self, base, key, &context));
	done_take(FI_RMA | FI_READ, &context);
	assert_memory_equal(local, mirror + EDGE, 5000);
}

static void many_are_under_way_at_once(void **state)
{
	const time_t end = time(NULL) + HANG;
	struct fi_cq_tagged_entry entries[16];
	unsigned posted = 0, done = 0;

	(void)state;
	while (done < 20000) {
		ssize_t taken;

		if (posted < 20000) {
			const uint64_t at = posted * 100;
			ssize_t result = posted % 3 == 0
						 ? fi_read(sides[0].ep, local + at, 100, NULL,
							   sides[0].other, base + at, key, NULL)
						 : fi_write(sides[0].ep, local + at, 100, NULL,
							   sides[0].other, base + at, key, NULL);

			if (result == 0 && posted % 3 != 0)
				target_gets(local + at, at, 100);
			assert_true(result == 0 || result == -FI_EAGAIN);
			posted += result == 0;
			if (result == 0)
				continue;
		}
		taken = fi_cq_read(sides[0].cq, entries, 16);
		assert_true(taken > 0 || taken == -FI_EAGAIN);
		done += taken > 0 ? (unsigned)taken : 0;
		(void)fi_cq_read(sides[1].cq, NULL, 0);
		assert_true(time(NULL) < end);
	}
	target_is_as_it_should_be();
}

/* A fenced call, until it is taken: then all that was before has ended, and is in the queue. */
static void fenced(ssize_t (*call)(void), unsigned before)
{
	const time_t end = time(NULL) + HANG;
	struct fi_cq_tagged_entry entries[4];
	ssize_t result;

	while ((result = call()) == -FI_EAGAIN) {
		(void)fi_cq_read(sides[1].cq, NULL, 0);
		assert_true(time(NULL) < end);
	}
	assert_ok(result);
	for (unsigned i = 0; i < before; i++)
		assert_int_equal(fi_cq_read(sides[0].cq, &entries[i], 1), 1);
}

static ssize_t fenced_write(void)
{
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];

	message_make(&message, iov, &there, 1, 8, 0);
	return fi_writemsg(sides[0].ep, &message, FI_FENCE | FI_COMPLETION);
}

static ssize_t fenced_read(void)
{
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];

	message_make(&message, iov, &there, 1, 8, 0);
	return fi_readmsg(sides[0].ep, &message, FI_FENCE | FI_COMPLETION);
}

static ssize_t fenced_send(void)
{
	static char word[] = "fenced";
	const struct iovec iov = {word, sizeof(word)};
	const struct fi_msg message = {
		.msg_iov = &iov, .iov_count = 1, .addr = sides[0].other, .context = &context};

	return fi_sendmsg(sides[0].ep, &message, FI_FENCE | FI_COMPLETION);
}

static void a_fence_waits_for_what_was_before(void **state)
{
	static char room[2][100000];
	struct fid_ep *ep = sides[0].ep;
	const fi_addr_t to = sides[0].other;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_ok(
			fi_recv(sides[1].ep, room[i], sizeof(room[i]), NULL, FI_ADDR_UNSPEC, room));
	assert_ok(fi_read(ep, local, BYTES, NULL, to, base, key, NULL));
	assert_ok(fi_write(ep, local, 100000, NULL, to, base, key, NULL));
	fenced(fenced_write, 2);
	written_take();
	assert_ok(fi_write(ep, local, BYTES, NULL, to, base, key, NULL));
	fenced(fenced_read, 1);
	done_take(FI_RMA | FI_READ, &context);
	assert_ok(fi_send(ep, local, 100000, NULL, to, NULL));
	fenced(fenced_write, 1);
	written_take();
	assert_ok(fi_write(ep, local, BYTES, NULL, to, base, key, NULL));
	fenced(fenced_send, 1);
	done_take(FI_MSG | FI_SEND, &context);
	for (unsigned i = 0; i < 2; i++)
		completion_take(&sides[1], NULL, NULL);
	assert_memory_equal(room[0], local, 100000);
	assert_string_equal(room[1], "fenced");
	/* And for what has no completion. */
	for (uint8_t i = 0; i < 100; i++)
		assert_ok(fi_inject_write(ep, &i, 1, to, base, key));
	memset(local, 0, 8);
	fenced(fenced_read, 0);
	done_take(FI_RMA | FI_READ, &context);
	assert_int_equal(local[0], 99);
}

/* --- what an enemy tries */

static void a_wrong_key_opens_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 64; i++)
		both_fail(base, 8, key ^ UINT64_C(1) << i, FI_EKEYREJECTED);
	both_fail(base, 100000, key + 1, FI_EKEYREJECTED);
	nothing_completes(&sides[1]);
}

static void nothing_beyond_a_region_is_touched(void **state)
{
	(void)state;
	both_fail(base + BYTES, 1, key, FI_EKEYREJECTED);
	both_fail(base + BYTES - 7, 8, key, FI_EKEYREJECTED);
	both_fail(base + 1, BYTES, key, FI_EKEYREJECTED);
	both_fail(base - 1, 8, key, FI_EKEYREJECTED);
	both_fail(base - 8, 16, key, FI_EKEYREJECTED);
	both_fail(base - EDGE, EDGE, key, FI_EKEYREJECTED);
	both_fail(base + UINT64_MAX - 3, 8, key, FI_EKEYREJECTED);
	both_fail(base + (UINT64_C(1) << 63), 8, key, FI_EKEYREJECTED);
	if (base != 0)
		both_fail(0, 8, key, FI_EKEYREJECTED);
	nothing_completes(&sides[1]);
}

static void a_region_gives_no_more_than_it_says(void **state)
{
	(void)state;
	assert_ok(fi_close(&region->fid));
	region_open(FI_REMOTE_READ);
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, sides[0].other, base, key, &context));
	failed_take(FI_EACCES, FI_RMA | FI_WRITE, &context);
	assert_ok(
		fi_writedata(sides[0].ep, local, 8, NULL, 1, sides[0].other, base, key, &context));
	failed_take(FI_EKEYREJECTED, FI_RMA | FI_WRITE, &context);
	assert_ok(fi_read(sides[0].ep, local, 8, NULL, sides[0].other, base, key, &context));
	done_take(FI_RMA | FI_READ, &context);
	target_is_as_it_should_be();
	assert_ok(fi_close(&region->fid));
	region_open(FI_REMOTE_WRITE);
	assert_ok(fi_read(sides[0].ep, local, 8, NULL, sides[0].other, base, key, &context));
	failed_take(FI_EACCES, FI_RMA | FI_READ, &context);
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, sides[0].other, base, key, &context));
	written_take();
	target_gets(local, 0, 8);
	target_is_as_it_should_be();
	assert_ok(fi_close(&region->fid));
	region_open(FI_SEND | FI_RECV | FI_READ | FI_WRITE);
	both_fail(base, 8, key, FI_EKEYREJECTED);
	nothing_completes(&sides[1]);
}

/* Its endpoints are not affected. */
static void a_closed_region_is_closed(void **state)
{
	const uint64_t before = key;

	(void)state;
	assert_ok(fi_close(&region->fid));
	region = NULL;
	both_fail(base, 8, key, FI_EKEYREJECTED);
	both_fail(base, 100000, key, FI_EKEYREJECTED);
	assert_ok(fi_mr_reg(domain, target + EDGE, BYTES, BOTH, 0, KEY + 1, 0, &region, NULL));
	key = fi_mr_key(region);
	both_fail(base, 8, before, FI_EKEYREJECTED);
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, sides[0].other, base, key, &context));
	written_take();
	target_gets(local, 0, 8);
	target_is_as_it_should_be();
}

/* Its process lives, and has the id that the address has. */
static void an_earlier_life_is_nobody(void **state)
{
	char name[NAME_BYTES];
	fi_addr_t earlier;

	(void)state;
	memcpy(name, sides[1].name, sizeof(name));
	name[16]++;
	assert_int_equal(fi_av_insert(sides[0].av, name, 1, &earlier, 0, NULL), 1);
	assert_ok(fi_write(sides[0].ep, local, 8, NULL, earlier, base, key, &context));
	failed_take(FI_EHOSTUNREACH, FI_RMA | FI_WRITE, &context);
	assert_ok(fi_read(sides[0].ep, local, 100000, NULL, earlier, base, key, &context));
	failed_take(FI_EHOSTUNREACH, FI_RMA | FI_READ, &context);
	target_is_as_it_should_be();
}

static void memory_that_has_gone_harms_nobody(void **state)
{
	uint8_t *gone = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fid_mr *mr;
	uint64_t at;

	(void)state;
	assert_ptr_not_equal(gone, MAP_FAILED);
	assert_ok(fi_mr_reg(domain, gone, BYTES, BOTH, 0, 99, 0, &mr, NULL));
	at = base == 0 ? 0 : (uintptr_t)gone;
	for (unsigned i = 0; i < SIZES; i++) {
		assert_ok(fi_write(sides[0].ep, local, sizes[i], NULL, sides[0].other, at,
			fi_mr_key(mr), &context));
		failed_take(FI_EFAULT, FI_RMA | FI_WRITE, &context);
		assert_ok(fi_read(sides[0].ep, local, sizes[i], NULL, sides[0].other, at,
			fi_mr_key(mr), &context));
		failed_take(FI_EFAULT, FI_RMA | FI_READ, &context);
		/* And own memory that is none. */
		assert_ok(fi_write(
			sides[0].ep, gone, sizes[i], NULL, sides[0].other, base, key, &context));
		failed_take(FI_EFAULT, FI_RMA | FI_WRITE, &context);
	}
	/* It comes. */
	assert_ok(mprotect(gone, BYTES, PROT_READ | PROT_WRITE));
	assert_ok(fi_mr_refresh(mr, NULL, 0, 0));
	assert_ok(fi_mr_refresh(mr, &(struct iovec){gone, 4096}, 1, 0));
	assert_ok(fi_mr_enable(mr));
	assert_ok(fi_write(
		sides[0].ep, local, 5000, NULL, sides[0].other, at, fi_mr_key(mr), &context));
	written_take();
	assert_memory_equal(gone, local, 5000);
	assert_ok(fi_close(&mr->fid));
	assert_ok(munmap(gone, BYTES));
}

static void a_bad_call_is_refused_at_once(void **state)
{
	struct fid_ep *ep = sides[0].ep;
	struct fi_msg_rma message;
	struct fi_rma_iov there;
	struct iovec iov[4];

	(void)state;
	assert_int_equal(fi_write(ep, local, 8, NULL, 12345, base, key, NULL), -FI_EINVAL);
	assert_int_equal(fi_read(ep, local, 8, NULL, FI_ADDR_UNSPEC, base, key, NULL), -FI_EINVAL);
	assert_int_equal(
		fi_write(ep, local, (UINT64_C(1) << 40) + 1, NULL, sides[0].other, base, key, NULL),
		-FI_EMSGSIZE);
	message_make(&message, iov, &there, 2, 100, 0);
	there.len = 99;
	assert_int_equal(fi_writemsg(ep, &message, 0), -FI_EINVAL);
	there.len = 100;
	message.rma_iov_count = 2;
	assert_int_equal(fi_writemsg(ep, &message, 0), -FI_EINVAL);
	message.rma_iov_count = 1;
	message.iov_count = SIZE_MAX;
	assert_int_equal(fi_writemsg(ep, &message, 0), -FI_EINVAL);
	assert_int_equal(fi_readmsg(ep, &message, 0), -FI_EINVAL);
	assert_int_equal(fi_writemsg(ep, NULL, 0), -FI_EINVAL);
	for (unsigned i = 40; i < 64; i++) {
		const size_t length = ((size_t)1 << i) + 1;

		assert_int_equal(fi_read(ep, local, length, NULL, sides[0].other, base, key, NULL),
			-FI_EMSGSIZE);
		assert_int_equal(fi_inject_write(ep, local, length, sides[0].other, base, key),
			-FI_EMSGSIZE);
		iov[0].iov_len = length;
		iov[1].iov_len = SIZE_MAX;
		assert_int_equal(
			fi_writev(ep, iov, NULL, 2, sides[0].other, base, key, NULL), -FI_EMSGSIZE);
	}
	assert_int_equal(fi_writev(ep, iov, NULL, 5, sides[0].other, base, key, NULL), -FI_EINVAL);
	assert_int_equal(fi_cancel(&ep->fid, &context), -FI_ENOENT);
	nothing_completes(&sides[0]);
}

/* Local memory needs no region; a program that has one may say so. */
static void a_descriptor_of_own_memory_may_be_given(void **state)
{
	struct iovec iov[2] = {{local, 100}, {local + 5000, 200}};
	void *desc[2] = {fi_mr_desc(region), NULL};
	struct fid_mr *own;

	(void)state;
	assert_ok(fi_mr_reg(domain, local, BYTES, FI_READ | FI_WRITE, 0, 77, 0, &own, NULL));
	desc[1] = fi_mr_desc(own);
	assert_ok(fi_writev(sides[0].ep, iov, desc, 2, sides[0].other, base, key, &context));
	written_take();
	target_gets(local, 0, 100);
	target_gets(local + 5000, 100, 200);
	target_is_as_it_should_be();
	assert_ok(fi_write(
		sides[0].ep, local, 50, fi_mr_desc(own), sides[0].other, base, key, &context));
	written_take();
	assert_ok(fi_close(&own->fid));
}

/* Nothing is moved, inside a region or at its end; beyond it is none. */
static void nothing_can_be_moved(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t at = base + (i == 0 ? 0 : BYTES);

		assert_ok(fi_write(sides[0].ep, NULL, 0, NULL, sides[0].other, at, key, &context));
		written_take();
		assert_ok(fi_read(sides[0].ep, NULL, 0, NULL, sides[0].other, at, key, &context));
		done_take(FI_RMA | FI_READ, &context);
		assert_ok(fi_inject_write(sides[0].ep, NULL, 0, sides[0].other, at, key));
		assert_ok(fi_writedata(
			sides[0].ep, NULL, 0, NULL, 9 + i, sides[0].other, at, key, &context));
		written_take();
		told_take(9 + i, 0);
	}
	assert_ok(fi_write(
		sides[0].ep, NULL, 0, NULL, sides[0].other, base + BYTES + 1, key, &context));
	failed_take(FI_EKEYREJECTED, FI_RMA | FI_WRITE, &context);
	target_is_as_it_should_be();
}

/* --- capabilities */

static void an_endpoint_does_what_it_was_opened_for(void **state)
{
	struct fi_info *hints = hints_make(&(struct wish){.caps = FI_RMA | FI_WRITE});
	struct fi_info *less = offer_of(hints);
	struct fid_ep *ep;

	(void)state;
	fi_freeinfo(hints);
	assert_non_null(less);
	assert_int_equal(less->caps & (FI_READ | FI_WRITE | BOTH | FI_MSG | FI_SEND), FI_WRITE);
	assert_int_equal(less->tx_attr->rma_iov_limit, 1);
	assert_ok(fi_endpoint(domain, less, &ep, NULL));
	assert_int_equal(fi_write(ep, local, 8, NULL, 0, 0, KEY, NULL), -FI_EOPBADSTATE);
	assert_ok(fi_ep_bind(ep, &sides[0].av->fid, 0));
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_ok(fi_ep_bind(ep, &sides[0].cq->fid, FI_TRANSMIT));
	assert_ok(fi_enable(ep));
	assert_int_equal(
		fi_read(ep, local, 8, NULL, sides[0].other, base, key, NULL), -FI_EOPNOTSUPP);
	assert_ok(fi_write(ep, local, 8, NULL, sides[0].other, base, key, &context));
	written_take();
	assert_ok(fi_close(&ep->fid));
	fi_freeinfo(less);
}

/* --- counters and waits */

static struct fid_cntr *counter_open(enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = wait};
	struct fid_cntr *counter;

	assert_ok(fi_cntr_open(domain, &attr, &counter, NULL));
	return counter;
}

static void counters_count_reads_and_writes(void **state)
{
	struct fid_cntr *reads = counter_open(FI_WAIT_UNSPEC), *writes = counter_open(FI_WAIT_FD);
	const time_t end = time(NULL) + HANG;
	struct fid_ep *ep;

	(void)state;
	assert_ok(fi_endpoint(domain, info, &ep, NULL));
	assert_ok(fi_ep_bind(ep, &sides[0].av->fid, 0));
	assert_ok(
		fi_ep_bind(ep, &sides[0].cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
	assert_ok(fi_ep_bind(ep, &reads->fid, FI_READ));
	assert_ok(fi_ep_bind(ep, &writes->fid, FI_WRITE));
	assert_ok(fi_enable(ep));
	for (unsigned i = 0; i < 100; i++) {
		assert_ok(fi_write(ep, local, 8, NULL, sides[0].other, base, key, NULL));
		assert_ok(fi_inject_write(ep, local, 8, sides[0].other, base, key));
		assert_ok(fi_read(ep, local, 8, NULL, sides[0].other, base, key, NULL));
	}
	assert_ok(fi_cntr_wait(writes, 200, HANG * 1000));
	assert_ok(fi_cntr_wait(reads, 100, HANG * 1000));
	assert_ok(fi_inject_write(ep, local, 8, sides[0].other, base, key + 1));
	while (fi_cntr_readerr(writes) != 1)
		assert_true(time(NULL) < end);
	assert_int_equal(fi_cntr_read(writes), 200);
	assert_int_equal(fi_cntr_read(reads), 100);
	assert_int_equal(fi_cntr_readerr(reads), 0);
	nothing_completes(&sides[0]);
	assert_ok(fi_close(&ep->fid));
	assert_ok(fi_close(&reads->fid));
	assert_ok(fi_close(&writes->fid));
}

/* Sleeps at a queue's descriptor until something is there. */
static void descriptor_await(struct side *side)
{
	struct fid *fids[1] = {&side->cq->fid};
	const time_t end = time(NULL) + HANG;
	struct pollfd watched = {.events = POLLIN};

	assert_ok(fi_control(&side->cq->fid, FI_GETWAIT, &watched.fd));
	while (fi_trywait(fabric, fids, 1) == 0) {
		assert_int_equal(poll(&watched, 1, HANG * 1000), 1);
		assert_true(time(NULL) < end);
	}
}

static void who_sleeps_is_woken(void **state)
{
	struct fi_cq_tagged_entry entry;

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		assert_ok(
			fi_read(sides[0].ep, local, 8, NULL, sides[0].other, base, key, &context));
		descriptor_await(&sides[0]);
		done_take(FI_RMA | FI_READ, &context);
		assert_ok(fi_writedata(
			sides[0].ep, local, 8, NULL, i, sides[0].other, base, key, &context));
		descriptor_await(&sides[1]);
		told_take(i, 8);
		descriptor_await(&sides[0]);
		written_take();
		assert_ok(fi_write(
			sides[0].ep, local, 100000, NULL, sides[0].other, base, key, &context));
		assert_int_equal(fi_cq_sread(sides[0].cq, &entry, 1, NULL, HANG * 1000), 1);
		assert_ok(fi_inject_writedata(sides[0].ep, local, 8, i, sides[0].other, base, key));
		assert_int_equal(fi_cq_sread(sides[1].cq, &entry, 1, NULL, HANG * 1000), 1);
		assert_int_equal(entry.data, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_form_of_a_write_writes),
		TEST_BASIC(every_form_of_a_write_writes),
		TEST(every_form_of_a_read_reads),
		TEST_BASIC(every_form_of_a_read_reads),
		TEST(an_inject_gives_its_memory_back_and_does_not_complete),
		cmocka_unit_test_setup_teardown(
			what_an_endpoint_injects_is_given_back, opened_to_inject, closed),
		cmocka_unit_test_setup_teardown(
			a_call_s_flags_stand_for_the_endpoint_s, opened_to_complete, closed),
		cmocka_unit_test_setup_teardown(
			a_target_s_program_makes_no_calls, opened_automatic, closed),
		TEST(remote_data_arrives_behind_what_was_written),
		TEST(no_remote_data_is_lost_when_nobody_reads),
		TEST(remote_data_waits_for_a_reader),
		TEST(every_completion_level_completes),
		cmocka_unit_test_setup_teardown(
			what_nobody_asks_for_does_not_complete, opened_selective, closed),
		TEST(an_endpoint_reaches_itself),
		TEST(many_are_under_way_at_once),
		TEST(a_fence_waits_for_what_was_before),
		TEST(a_wrong_key_opens_nothing),
		TEST_BASIC(a_wrong_key_opens_nothing),
		TEST(nothing_beyond_a_region_is_touched),
		TEST_BASIC(nothing_beyond_a_region_is_touched),
		TEST(a_region_gives_no_more_than_it_says),
		TEST_BASIC(a_region_gives_no_more_than_it_says),
		TEST(a_closed_region_is_closed),
		TEST_BASIC(a_closed_region_is_closed),
		TEST(an_earlier_life_is_nobody),
		TEST(memory_that_has_gone_harms_nobody),
		TEST_BASIC(memory_that_has_gone_harms_nobody),
		TEST(a_bad_call_is_refused_at_once),
		TEST(a_descriptor_of_own_memory_may_be_given),
		TEST_BASIC(a_descriptor_of_own_memory_may_be_given),
		TEST(nothing_can_be_moved),
		TEST_BASIC(nothing_can_be_moved),
		TEST(an_endpoint_does_what_it_was_opened_for),
		TEST(counters_count_reads_and_writes),
		cmocka_unit_test_setup_teardown(who_sleeps_is_woken, opened_to_wait, closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
