/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_provider.c - two endpoints of the libfabric provider on a loop, with messages, remote memory
 * and atomic operations, and peers that lie (liar.h). The program that uses them is as bad: it
 * gives addresses, keys, flags and lengths of any bits, and closes what is in use.
 *
 * The input is a script: its first byte says what endpoints are asked for, and each step is a call,
 * a lie, or time that passes.
 *
 * Whatever comes, it holds that
 *
 * E1. no byte outside a buffer is touched, nor one of an object that was closed (the address
 *     sanitizer watches);
 * E2. each call returns, with a code that is one;
 * E3. an operation ends once at most, does not get more than its buffer has room for, and a read
 *     that ends well has got all of it;
 * E4. all objects close.
 */
#include <fi/state.h>

#include <string.h>

#include "fuzz.h"
#include "liar.h"

#define STEPS_MAX 400
#define ENDS      2
#define POSTED    64
#define MEMORIES  512
#define REGIONS   4
#define ADDRESSES 8
#define OPENS_MAX 6
#define REGION    5000 /* bytes */
#define UNREAD    0xa5 /* nobody writes this anywhere */

/* An operation whose end was not told. */
struct posted {
	struct fi_context context; /* first */
	bool pending, many;
	uint64_t room;
	const uint8_t *memory; /* of a read: UNREAD before it; else NULL */
	uint64_t length;
	unsigned end;
};

struct end {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_cntr *counter;
	void *memories[MEMORIES]; /* they stay as long as it is open */
	unsigned memory_count;
	struct fi_context *claimed;
};

static struct script *script;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fi_info *info;
static struct end ends[ENDS];
static struct posted posted[POSTED];
static struct {
	struct fid_mr *mr;
	uint8_t *memory;
} regions[REGIONS];
static fi_addr_t addresses[ADDRESSES];
static unsigned address_count, opens;

struct fi_provider *fi_prov_ini(void);

/* --- what calls are given */

static uint8_t byte(void)
{
	return script_byte(script);
}

static uint64_t length_choose(void)
{
	static const uint64_t lengths[] = {0, 1, 8, 64, 65, 1000, 4096, 4097, 32768, 32769, 100000};

	return lengths[byte() % (sizeof(lengths) / sizeof(lengths[0]))];
}

static uint8_t *memory_make(struct end *end, uint64_t length)
{
	if (end->memory_count == MEMORIES)
		return NULL;
	return end->memories[end->memory_count++] = calloc(1, length ? length : 1);
}

static fi_addr_t address_choose(void)
{
	const uint8_t what = byte();

	return what < 192   ? addresses[what % ENDS]
	       : what < 240 ? addresses[what % ADDRESSES]
			    : script_instead(script, FI_ADDR_UNSPEC);
}

static uint64_t flags_choose(uint64_t usual)
{
	const uint8_t what = byte();

	return usual | (what & 1 ? FI_COMPLETION : 0) | (what & 2 ? FI_DELIVERY_COMPLETE : 0) |
	       (what & 4 ? FI_REMOTE_CQ_DATA : 0) | (what & 8 ? FI_FENCE : 0) |
	       (what > 250 ? UINT64_C(1) << byte() % 64 : 0);
}

/* NULL: all are pending. */
static struct posted *posted_free(unsigned end, uint64_t room)
{
	for (unsigned i = 0; i < POSTED; i++)
		if (!posted[i].pending) {
			posted[i] = (struct posted){.room = room, .end = end};
			return &posted[i];
		}
	return NULL;
}

/* E2 */
static void code_check(ssize_t code)
{
	fuzz_assert(code <= 0 && code > -FI_ERRNO_MAX);
}

/* What was posted ends, if the post has succeeded. */
static void post_note(struct posted *one, ssize_t code)
{
	code_check(code);
	one->pending = code == 0;
}

static uint64_t key_choose(void)
{
	const uint8_t what = byte();
	struct fid_mr *mr = regions[what % REGIONS].mr;

	return mr && what < 224 ? fi_mr_key(mr) : what;
}

static uint64_t place_choose(void)
{
	const uint8_t what = byte();
	const uint8_t *memory = regions[what % REGIONS].memory;
	const uint64_t at = info->domain_attr->mr_mode == FI_MR_BASIC ? (uintptr_t)memory : 0;

	return script_instead(script, at + what % 8 * 600u);
}

/* --- messages */

static void message_send(unsigned at)
{
	const uint64_t length = length_choose();
	uint8_t *memory = memory_make(&ends[at], length), what = byte();
	struct posted *one = posted_free(at, UINT64_MAX);
	const struct iovec iov[2] = {
		{memory, length / 2}, {memory + length / 2, length - length / 2}};
	struct fi_msg_tagged message = {.msg_iov = iov,
		.iov_count = 2,
		.addr = address_choose(),
		.tag = what & 3,
		.context = one,
		.data = what};
	struct fi_msg plain = {.msg_iov = iov, .iov_count = 2, .context = one, .data = what};

	if (!memory || !one)
		return;
	plain.addr = message.addr;
	switch (what >> 4 & 7) {
	case 0:
		code_check(fi_inject(ends[at].ep, memory, length, message.addr));
		break;
	case 1:
		code_check(fi_tinject(ends[at].ep, memory, length, message.addr, what & 3));
		break;
	case 2:
		post_note(one, fi_send(ends[at].ep, memory, length, NULL, message.addr, one));
		break;
	case 3:
		post_note(one,
			fi_tsend(ends[at].ep, memory, length, NULL, message.addr, what & 3, one));
		break;
	case 4:
	case 5:
		post_note(one, fi_sendmsg(ends[at].ep, &plain,
				       flags_choose(what & 8 ? FI_INJECT : FI_MATCH_COMPLETE)));
		break;
	default:
		post_note(one, fi_tsendmsg(ends[at].ep, &message,
				       flags_choose(what & 8 ? FI_INJECT : FI_MATCH_COMPLETE)));
	}
}

static void message_receive(unsigned at)
{
	const uint64_t length = length_choose();
	uint8_t *memory = memory_make(&ends[at], length), what = byte();
	struct posted *one = posted_free(at, length);
	const struct iovec iov[2] = {
		{memory, length / 2}, {memory + length / 2, length - length / 2}};
	const struct iovec whole = {memory, length};
	const struct fi_msg_tagged message = {.msg_iov = iov,
		.iov_count = 2,
		.addr = what & 64 ? address_choose() : FI_ADDR_UNSPEC,
		.tag = what & 3,
		.ignore = what >> 2 & 3,
		.context = one};
	const struct fi_msg plain = {.msg_iov = what & 4 ? &whole : iov,
		.iov_count = what & 4 ? 1 : 2,
		.addr = message.addr,
		.context = one};

	if (!memory || !one)
		return;
	if (what & 128) {
		post_note(one, fi_trecvmsg(ends[at].ep, &message, 0));
		return;
	}
	one->many = (what & 8) != 0;
	if (byte() & 1)
		code_check(fi_setopt(&ends[at].ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&(size_t){length_choose()}, sizeof(size_t)));
	post_note(one, fi_recvmsg(ends[at].ep, &plain, one->many ? FI_MULTI_RECV : 0));
}

static void message_search(unsigned at)
{
	const uint64_t length = length_choose();
	const uint64_t flags[] = {FI_PEEK, FI_PEEK | FI_CLAIM, FI_PEEK | FI_DISCARD,
		FI_PEEK | FI_CLAIM | FI_DISCARD, FI_CLAIM, FI_CLAIM, FI_CLAIM | FI_DISCARD,
		FI_DISCARD};
	uint8_t *memory = memory_make(&ends[at], length), what = byte();
	const uint64_t flag = flags[what & 7];
	struct posted *one = posted_free(at, flag & FI_PEEK ? UINT64_MAX : length);
	struct iovec iov = {memory, length};
	struct fi_msg_tagged message = {.msg_iov = &iov,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.tag = what >> 3 & 3,
		.ignore = what >> 5 & 3,
		.context = one};

	if (!memory || !one)
		return;
	/* What was claimed lies in a context that is the program's. */
	if (what & 128 && ends[at].claimed)
		one->context = *ends[at].claimed;
	post_note(one, fi_trecvmsg(ends[at].ep, &message, flag));
	one->room = flag & FI_DISCARD ? UINT64_MAX : one->room;
}

/* --- remote memory */

static void memory_move(unsigned at)
{
	const uint64_t length = length_choose();
	uint8_t *memory = memory_make(&ends[at], length), what = byte();
	struct posted *one = posted_free(at, UINT64_MAX);
	const struct iovec iov[2] = {
		{memory, length / 2}, {memory + length / 2, length - length / 2}};
	const fi_addr_t to = address_choose();
	const uint64_t place = place_choose(), whole = script_instead(script, length);
	const struct fi_rma_iov remote = {place, whole, key_choose()};
	const struct fi_msg_rma message = {.msg_iov = iov,
		.iov_count = what & 8 ? 2 : 1 + (what >> 3) % 6,
		.addr = to,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = one,
		.data = what};
	struct fid_ep *ep = ends[at].ep;

	if (!memory || !one || message.iov_count > 2)
		return;
	switch (what % 8) {
	case 0:
		code_check(fi_inject_write(ep, memory, length, to, remote.addr, remote.key));
		break;
	case 1:
		code_check(
			fi_inject_writedata(ep, memory, length, what, to, remote.addr, remote.key));
		break;
	case 2:
		post_note(one, fi_writedata(ep, memory, length, NULL, what, to, remote.addr,
				       remote.key, one));
		break;
	case 3:
		post_note(one, fi_writemsg(ep, &message, flags_choose(what & 64 ? FI_INJECT : 0)));
		break;
	case 4:
		post_note(
			one, fi_write(ep, memory, length, NULL, to, remote.addr, remote.key, one));
		break;
	default:
		memset(memory, UNREAD, length);
		one->memory = memory;
		one->length = message.iov_count == 2 || what % 8 > 5 ? length : length / 2;
		post_note(one, what % 8 == 5 ? fi_readmsg(ep, &message, flags_choose(0))
					     : fi_read(ep, memory, length, NULL, to, remote.addr,
						       remote.key, one));
	}
}

static void memory_change(unsigned at)
{
	uint8_t *memory = memory_make(&ends[at], 6144), what = byte();
	struct posted *one = posted_free(at, UINT64_MAX);
	const enum fi_datatype type = (enum fi_datatype)script_instead(script, what % 14);
	const enum fi_op op = (enum fi_op)script_instead(script, what % 20);
	const size_t count = script_instead(script, byte() % 16);
	const fi_addr_t to = address_choose();
	const uint64_t place = place_choose(), key = key_choose();
	const struct fi_ioc source[2] = {{memory, count / 2}, {memory + 1024, count - count / 2}};
	const struct fi_ioc compares = {memory + 2048, count};
	struct fi_ioc results[2] = {{memory + 3072, count - count / 2}, {memory + 5120, count / 2}};
	const struct fi_rma_ioc remote = {place, count, key};
	const struct fi_msg_atomic message = {.msg_iov = source,
		.iov_count = 2,
		.addr = to,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.datatype = type,
		.op = op,
		.context = one};
	struct fid_ep *ep = ends[at].ep;

	if (!memory || !one)
		return;
	switch (what >> 5) {
	case 0:
		code_check(fi_inject_atomic(ep, memory, count, to, place, key, type, op));
		break;
	case 1:
		post_note(one, fi_atomic(ep, memory, count, NULL, to, place, key, type, op, one));
		break;
	case 2:
		post_note(one, fi_atomicmsg(ep, &message, flags_choose(0)));
		break;
	case 3:
		post_note(one, fi_fetch_atomic(ep, memory, count, NULL, memory + 3072, NULL, to,
				       place, key, type, op, one));
		break;
	case 4:
		post_note(one, fi_fetch_atomicmsg(ep, &message, results, NULL, 2, flags_choose(0)));
		break;
	case 5:
		post_note(one, fi_compare_atomic(ep, memory, count, NULL, memory + 2048, NULL,
				       memory + 3072, NULL, to, place, key, type, op, one));
		break;
	default:
		post_note(one, fi_compare_atomicmsg(ep, &message, &compares, NULL, 1, results, NULL,
				       2, flags_choose(0)));
	}
}

static void region_close(unsigned at)
{
	if (!regions[at].mr)
		return;
	fuzz_assert(fi_close(&regions[at].mr->fid) == 0);
	regions[at].mr = NULL;
	free(regions[at].memory); /* E1 */
	regions[at].memory = NULL;
}

static void region_change(void)
{
	const uint8_t what = byte();
	const unsigned at = what % REGIONS;
	const uint64_t access =
		(what & 16 ? FI_REMOTE_READ : 0) | (what & 32 ? FI_REMOTE_WRITE : 0);
	struct iovec iov[2];
	struct fi_mr_attr attr = {.mr_iov = iov,
		.iov_count = what & 64 ? 2 : 1,
		.access = access,
		.requested_key = what};

	region_close(at);
	if (what & 8)
		return;
	regions[at].memory = calloc(1, REGION);
	iov[0] = (struct iovec){regions[at].memory, what & 64 ? 1001 : REGION};
	iov[1] = (struct iovec){regions[at].memory + 1001, REGION - 1001};
	if (fi_mr_regattr(domain, &attr, 0, &regions[at].mr) != 0) {
		free(regions[at].memory);
		regions[at].memory = NULL;
		regions[at].mr = NULL;
		return;
	}
	if (what & 128)
		fuzz_assert(fi_mr_bind(regions[at].mr, &ends[what & 1].counter->fid,
				    FI_REMOTE_READ | FI_REMOTE_WRITE) == 0);
}

/* --- ends */

/* E3. A line without a context tells of a peer's write. */
static void end_check(
	unsigned at, const void *context, uint64_t flags, uint64_t length, bool failed)
{
	struct posted *one = (struct posted *)(uintptr_t)context;

	if (!one) {
		fuzz_assert(!failed && flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
		return;
	}
	fuzz_assert(one >= posted && one < posted + POSTED && one->pending);
	fuzz_assert(failed || length <= one->room);
	fuzz_assert(failed || !one->memory || !memchr(one->memory, UNREAD, one->length));
	if (!failed && one->context.internal[0])
		ends[at].claimed = &one->context;
	if (!one->many || flags & FI_MULTI_RECV)
		one->pending = false;
}

static void queue_read(unsigned at)
{
	struct fi_cq_tagged_entry entries[4];
	struct fi_cq_err_entry error = {0};
	fi_addr_t sources[4];
	const uint8_t what = byte();
	ssize_t count =
		what & 128 ? fi_cq_sreadfrom(ends[at].cq, entries, 1 + what % 4, sources, NULL, 1)
			   : fi_cq_readfrom(ends[at].cq, entries, what % 5, sources);

	fuzz_assert(count <= 4);
	for (ssize_t i = 0; i < count; i++)
		end_check(at, entries[i].op_context, entries[i].flags, entries[i].len, false);
	if (count != -FI_EAVAIL)
		return;
	fuzz_assert(fi_cq_readerr(ends[at].cq, &error, 0) == 1);
	fuzz_assert(error.err > 0 && error.err < FI_ERRNO_MAX);
	end_check(at, error.op_context, error.flags, error.len, true);
}

static void posted_cancel(unsigned at)
{
	struct posted *one = &posted[byte() % POSTED];

	code_check(fi_cancel(&ends[at].ep->fid, one));
}

/* An address with other bits, or one that goes. */
static void address_change(unsigned at)
{
	const uint8_t what = byte();
	struct address address;
	size_t length = sizeof(address);
	fi_addr_t index;

	if (what & 128) {
		code_check(fi_av_remove(av, &addresses[what % ADDRESSES], 1, 0));
		return;
	}
	fuzz_assert(fi_getname(&ends[at].ep->fid, &address, &length) == 0);
	((uint8_t *)&address)[what % sizeof(address)] ^= byte();
	fuzz_assert(fi_av_insert(av, &address, 1, &index, 0, NULL) <= 1);
	addresses[ENDS + address_count++ % (ADDRESSES - ENDS)] = index;
}

static void counter_call(unsigned at)
{
	const uint8_t what = byte();

	switch (what % 4) {
	case 0:
		(void)fi_cntr_read(ends[at].counter);
		break;
	case 1:
		code_check(fi_cntr_wait(ends[at].counter, what, 1));
		break;
	case 2:
		code_check(fi_cntr_set(ends[at].counter, what));
		break;
	default:
		(void)fi_cntr_readerr(ends[at].counter);
	}
}

/* --- lives */

static void end_open(unsigned at)
{
	struct end *end = &ends[at];
	struct address address;
	size_t length = sizeof(address);

	opens++;
	fuzz_assert(fi_endpoint(domain, info, &end->ep, NULL) == 0);
	fuzz_assert(fi_ep_bind(end->ep, &av->fid, 0) == 0);
	fuzz_assert(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
	fuzz_assert(fi_ep_bind(end->ep, &end->counter->fid,
			    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
				    FI_REMOTE_WRITE) == 0);
	fuzz_assert(fi_enable(end->ep) == 0);
	fuzz_assert(fi_getname(&end->ep->fid, &address, &length) == 0);
	fuzz_assert(fi_av_insert(av, &address, 1, &addresses[at], 0, NULL) == 1);
}

/* E1, E4. What was posted has no end. */
static void end_close(unsigned at)
{
	struct end *end = &ends[at];

	fuzz_assert(fi_close(&end->ep->fid) == 0);
	while (end->memory_count > 0)
		free(end->memories[--end->memory_count]);
	end->claimed = NULL;
	for (unsigned i = 0; i < POSTED; i++)
		if (posted[i].end == at)
			posted[i].memory = NULL;
}

static void both_work(void)
{
	for (unsigned i = 0; i < 8; i++)
		(void)fi_cq_read(ends[i % ENDS].cq, NULL, 0);
}

static void step(void)
{
	const uint8_t what = byte();
	const unsigned at = what >> 7;

	switch (what % 16) {
	case 0:
	case 1:
		message_send(at);
		break;
	case 2:
		message_receive(at);
		break;
	case 3:
		message_search(at);
		break;
	case 4:
	case 5:
		memory_move(at);
		break;
	case 6:
		memory_change(at);
		break;
	case 7:
		region_change();
		break;
	case 8:
	case 9:
		queue_read(at);
		break;
	case 10:
		what & 64 ? posted_cancel(at) : counter_call(at);
		break;
	case 11:
		address_change(at);
		break;
	case 12:
		liar_lie();
		break;
	case 13:
		liar_forge();
		break;
	case 14:
		liar_wait(UINT64_C(1) << byte() % 36);
		break;
	default:
		if (what & 64 || opens >= OPENS_MAX)
			break;
		end_close(at);
		end_open(at);
	}
	if (what & 16)
		both_work();
}

/* --- all */

static void all_open(void)
{
	const uint8_t what = byte();
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr of_av = {.type = FI_AV_TABLE};

	hints->caps = CAPS & ~(what & 1 ? 0 : FI_SOURCE_ERR);
	hints->domain_attr->mr_mode = what & 2 ? FI_MR_BASIC : 0;
	hints->tx_attr->msg_order = what & 4 ? ORDERS : 0;
	fuzz_assert(info_get(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) == 0);
	fi_freeinfo(hints);
	fuzz_assert(fi_domain(fabric, info, &domain, NULL) == 0);
	fuzz_assert(fi_av_open(domain, &of_av, &av, NULL) == 0);
	for (unsigned i = 0; i < ENDS; i++) {
		struct fi_cq_attr of_cq = {
			.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
		struct fi_cntr_attr of_counter = {.wait_obj = FI_WAIT_UNSPEC};

		fuzz_assert(fi_cq_open(domain, &of_cq, &ends[i].cq, NULL) == 0);
		fuzz_assert(fi_cntr_open(domain, &of_counter, &ends[i].counter, NULL) == 0);
	}
	for (unsigned i = 0; i < ENDS; i++)
		end_open(i);
}

static void all_close(void)
{
	for (unsigned i = 0; i < ENDS; i++)
		end_close(i);
	for (unsigned i = 0; i < REGIONS; i++)
		region_close(i);
	for (unsigned i = 0; i < ENDS; i++) {
		fuzz_assert(fi_close(&ends[i].cq->fid) == 0);
		fuzz_assert(fi_close(&ends[i].counter->fid) == 0);
	}
	fuzz_assert(fi_close(&av->fid) == 0);
	fuzz_assert(fi_close(&domain->fid) == 0);
	fi_freeinfo(info);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct fi_provider *provider = fi_prov_ini();
	struct fi_info *offered;

	(void)argc;
	(void)argv;
	setenv("PTL_IFACE_NAME", "loop:fuzz", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	setenv("PTL_TELEMETRY", "off", 1);
	setenv("PTL_PEER_TIMEOUT", "1s", 1);
	setenv("FI_POSTERN_PEERS", "5", 1);
	fuzz_assert(info_get(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &offered) == 0);
	fuzz_assert(provider->fabric(offered->fabric_attr, &fabric, NULL) == 0);
	fi_freeinfo(offered);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script input = {data, data + size};

	if (size == 0 || size > 8192)
		return 0;
	script = &input;
	liar_begin(script);
	memset(posted, 0, sizeof(posted));
	memset(addresses, 0, sizeof(addresses));
	address_count = opens = 0;
	all_open();
	for (unsigned i = 0; i < STEPS_MAX && input.at < input.end; i++)
		step();
	both_work();
	all_close();
	return 0;
}
