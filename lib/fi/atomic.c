/* SPDX-License-Identifier: BSD-3-Clause */
/* atomic.c - atomic operations: calls of the engine, which carries them out at the target. A write
 * is a swap, a read ORs nothing to words; where only reading is allowed, it becomes a read of so
 * few bytes that they are copied at once. */
#include <fi/remote.h>

#include <stdlib.h>
#include <string.h>

#include <engine/amo.h>
#include <wire/message.h>

enum set { SET_BASE, SET_FETCH, SET_COMPARE };

/* What a call asks for. */
struct post {
	enum set set;
	const struct fi_ioc *iov, *compares, *results;
	size_t count, compare_count, result_count;
	fi_addr_t peer;
	uint64_t at, key;
	enum fi_datatype type;
	enum fi_op op;
	void *context;
	uint64_t flags;
	bool quiet; /* fi_inject_atomic() */
	/* found out from the others */
	uint64_t elements, bytes;
};

#define FLAGS (OP_FLAGS | FI_FENCE)

/* --- operations and types */

static const uint8_t types[] = {
	[FI_INT8] = AMO_INT8,
	[FI_UINT8] = AMO_UINT8,
	[FI_INT16] = AMO_INT16,
	[FI_UINT16] = AMO_UINT16,
	[FI_INT32] = AMO_INT32,
	[FI_UINT32] = AMO_UINT32,
	[FI_INT64] = AMO_INT64,
	[FI_UINT64] = AMO_UINT64,
	[FI_FLOAT] = AMO_FLOAT,
	[FI_DOUBLE] = AMO_DOUBLE,
	[FI_FLOAT_COMPLEX] = AMO_FLOAT_COMPLEX,
	[FI_DOUBLE_COMPLEX] = AMO_DOUBLE_COMPLEX,
	[FI_LONG_DOUBLE] = AMO_LONG_DOUBLE,
	[FI_LONG_DOUBLE_COMPLEX] = AMO_LONG_DOUBLE_COMPLEX,
};
#define TYPES (sizeof(types) / sizeof(types[0]))

#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), "numbers are the engine's")
SAME(FI_MIN, AMO_MIN);
SAME(FI_MAX, AMO_MAX);
SAME(FI_SUM, AMO_SUM);
SAME(FI_PROD, AMO_PROD);
SAME(FI_LOR, AMO_LOR);
SAME(FI_LAND, AMO_LAND);
SAME(FI_BOR, AMO_BOR);
SAME(FI_BAND, AMO_BAND);
SAME(FI_LXOR, AMO_LXOR);
SAME(FI_BXOR, AMO_BXOR);
SAME(FI_CSWAP_NE - FI_CSWAP, AMO_CSWAP_NE - AMO_CSWAP);
SAME(FI_CSWAP_LE - FI_CSWAP, AMO_CSWAP_LE - AMO_CSWAP);
SAME(FI_CSWAP_LT - FI_CSWAP, AMO_CSWAP_LT - AMO_CSWAP);
SAME(FI_CSWAP_GE - FI_CSWAP, AMO_CSWAP_GE - AMO_CSWAP);
SAME(FI_CSWAP_GT - FI_CSWAP, AMO_CSWAP_GT - AMO_CSWAP);
SAME(FI_MSWAP - FI_CSWAP, AMO_MSWAP - AMO_CSWAP);

/* Bytes of an element; 0: there is no such type. */
static unsigned type_size(enum fi_datatype type)
{
	return (unsigned)type < TYPES ? amo_size(types[type]) : 0;
}

static bool op_is_of(enum set set, enum fi_op op)
{
	if (set == SET_COMPARE)
		return op >= FI_CSWAP && op <= FI_MSWAP;
	return (unsigned)op <= FI_ATOMIC_WRITE && (op != FI_ATOMIC_READ || set == SET_FETCH);
}

static unsigned amo_of(enum fi_op op)
{
	if (op >= FI_CSWAP)
		return (unsigned)(op - FI_CSWAP) + AMO_CSWAP;
	return op == FI_ATOMIC_WRITE ? AMO_SWAP : op == FI_ATOMIC_READ ? AMO_BOR : (unsigned)op;
}

/* What the target counts a fetch as. */
static enum tally_access access_of(enum fi_op op)
{
	return op == FI_ATOMIC_READ ? TALLY_READS : TALLY_CHANGES;
}

/* The type that an operation is carried out on. A read is one of whole words. */
static unsigned amo_type_of(enum fi_datatype type, enum fi_op op)
{
	if (op != FI_ATOMIC_READ)
		return types[type];
	switch (type_size(type)) {
	case 1:
		return AMO_UINT8;
	case 2:
		return AMO_UINT16;
	case 4:
		return AMO_UINT32;
	default:
		return AMO_UINT64;
	}
}

/* How many elements of so many bytes together a call may have; 0: there is no such operation. */
static size_t elements_most(size_t bytes, enum set set, enum fi_datatype type, enum fi_op op)
{
	if (type_size(type) == 0 || !op_is_of(set, op) ||
		!amo_is_valid(amo_of(op), amo_type_of(type, op)))
		return 0;
	return set == SET_COMPARE ? 1 : bytes / type_size(type);
}

static int valid(size_t bytes, enum set set, enum fi_datatype type, enum fi_op op, size_t *count)
{
	const size_t most = elements_most(bytes, set, type, op);

	if (most == 0)
		return -FI_EOPNOTSUPP;
	if (count)
		*count = most;
	return 0;
}

static int write_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return valid(endpoint_of(ep)->atomic_max, SET_BASE, type, op, count);
}

static int fetch_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return valid(endpoint_of(ep)->atomic_max, SET_FETCH, type, op, count);
}

static int compare_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return valid(endpoint_of(ep)->atomic_max, SET_COMPARE, type, op, count);
}

/* Bytes that all endpoints of a domain carry. */
static size_t bytes_most(struct domain *domain)
{
	size_t most = AMO_BYTES_MAX;

	domain_enter(domain);
	list_each (const struct endpoint, endpoint, &domain->endpoints, link)
		most = endpoint->atomic_max < most ? endpoint->atomic_max : most;
	domain_leave(domain);
	return most;
}

int atomic_query(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
	struct fi_atomic_attr *attr, uint64_t flags)
{
	const enum set set = flags & FI_FETCH_ATOMIC     ? SET_FETCH
			     : flags & FI_COMPARE_ATOMIC ? SET_COMPARE
							 : SET_BASE;
	int result;

	if (flags & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) != 0)
		return -FI_EBADFLAGS;
	if (flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EINVAL;
	result = valid(bytes_most(object_of(domain, struct domain)), set, type, op, &attr->count);
	if (result == 0)
		attr->size = type_size(type);
	return result;
}

/* --- calls that are made */

/* Elements of all pieces. Returns false if they cannot be. */
static bool elements_count(const struct fi_ioc *iov, size_t count, uint64_t *elements)
{
	*elements = 0;
	if (count == 0 || count > IOV_MAX_PARTS || !iov)
		return false;
	for (size_t i = 0; i < count; i++)
		if (__builtin_add_overflow(*elements, iov[i].count, elements))
			return false;
	return *elements != 0;
}

static bool pieces_are_good(struct post *post)
{
	const bool reads = post->op == FI_ATOMIC_READ;
	uint64_t others;

	if (!elements_count(reads ? post->results : post->iov,
		    reads ? post->result_count : post->count, &post->elements))
		return false;
	if (post->set != SET_BASE && (!elements_count(post->results, post->result_count, &others) ||
					     others != post->elements))
		return false;
	return post->set != SET_COMPARE ||
	       (elements_count(post->compares, post->compare_count, &others) &&
		       others == post->elements);
}

static int post_check(const struct endpoint *endpoint, struct post *post)
{
	const size_t most = elements_most(endpoint->atomic_max, post->set, post->type, post->op);

	if (!endpoint->enabled)
		return -FI_EOPBADSTATE;
	if (most == 0 || !(endpoint->caps & (post->set == SET_BASE ? FI_WRITE : FI_READ)))
		return -FI_EOPNOTSUPP;
	if ((post->flags & ~FLAGS) != 0)
		return -FI_EBADFLAGS;
	if (!pieces_are_good(post))
		return -FI_EINVAL;
	post->bytes = post->elements * type_size(post->type);
	return post->elements > most ? -FI_EMSGSIZE : 0;
}

static void elements_gather(const struct fi_ioc *iov, size_t count, unsigned size, uint8_t *to)
{
	for (size_t i = 0; i < count; i++) {
		if (iov[i].count > 0)
			memcpy(to, iov[i].addr, iov[i].count * size);
		to += iov[i].count * size;
	}
}

/* The data that goes with the call, or where it lies: *at. Returns false without memory. */
static bool source_take(struct movement *movement, const struct post *post, uint64_t *at)
{
	static const uint8_t zeros[AMO_BYTES_MAX];
	const bool inject = post->quiet || post->flags & FI_INJECT;
	const unsigned size = type_size(post->type);
	const unsigned operand = post->set == SET_COMPARE ? size : 0;

	if (post->op == FI_ATOMIC_READ) {
		*at = (uintptr_t)zeros;
		return true;
	}
	*at = (uintptr_t)post->iov[0].addr;
	if (operand != 0)
		elements_gather(post->compares, post->compare_count, size, movement->given);
	if (!inject && post->count == 1 && operand == 0)
		return true;
	if (operand + post->bytes <= COPIED_MAX) {
		elements_gather(post->iov, post->count, size, movement->given + operand);
		movement->given_bytes = operand + (unsigned)post->bytes;
		movement->line.copied = true;
		return true;
	}
	movement->copy = malloc(post->bytes);
	if (!movement->copy)
		return false;
	elements_gather(post->iov, post->count, size, movement->copy);
	*at = (uintptr_t)movement->copy;
	return true;
}

/* Where the old values go. 0 or a negative error. */
static int result_take(struct remote *remote, struct movement *movement, const struct post *post)
{
	struct iovec iov[IOV_MAX_PARTS];

	movement->line.local = (uintptr_t)post->results[0].addr;
	if (post->result_count == 1)
		return 0;
	for (size_t i = 0; i < post->result_count; i++)
		iov[i] = (struct iovec){
			post->results[i].addr, post->results[i].count * type_size(post->type)};
	return movement_scatter(remote, movement, iov, post->result_count);
}

static int atomic_fill(struct remote *remote, struct movement *movement, const void *asked)
{
	const struct post *post = asked;
	const bool fetches = post->set != SET_BASE;
	uint64_t source;

	movement->context = post->context;
	movement->flags = FI_ATOMIC | (post->set == SET_BASE ? FI_WRITE : FI_READ);
	movement->count = post->set == SET_BASE ? COUNT_WRITE : COUNT_READ;
	movement->reads = post->op == FI_ATOMIC_READ;
	movement->move.portal = PORTAL_PLAIN;
	movement->move.match_bits = post->key;
	movement->move.offset = post->at;
	movement->move.value = access_of(post->op);
	movement->line.length = post->bytes;
	movement->line.message = fetches ? MESSAGE_FETCH : MESSAGE_ATOMIC;
	movement->line.amo = message_amo(amo_of(post->op), amo_type_of(post->type, post->op));
	if (!source_take(movement, post, &source))
		return -FI_ENOMEM;
	if (!fetches) {
		movement->line.local = source;
		return 0;
	}
	movement->line.source = remote->region.index;
	movement->line.source_generation = remote->region.generation;
	movement->line.source_local = source;
	return result_take(remote, movement, post);
}

static ssize_t atomic_post(struct fid_ep *fid, struct post *post)
{
	struct endpoint *endpoint = endpoint_of(fid);
	ssize_t result;

	domain_enter(endpoint->domain);
	result = post_check(endpoint, post);
	if (result == 0)
		result = remote_begin(
			endpoint, post->peer, post->flags, post->quiet, atomic_fill, post);
	domain_leave(endpoint->domain);
	return result;
}

/* --- calls */

/* A piece of so many elements. */
#define ONE(buffer, elements)                                                                      \
	&(const struct fi_ioc)                                                                     \
	{                                                                                          \
		(void *)(uintptr_t)(buffer), elements                                              \
	}

static ssize_t atomic_write(struct fid_ep *ep, const void *buffer, size_t count, void *desc,
	fi_addr_t to, uint64_t at, uint64_t key, enum fi_datatype type, enum fi_op op,
	void *context)
{
	(void)desc;
	return atomic_post(ep, &(struct post){.iov = ONE(buffer, count),
				       .count = 1,
				       .peer = to,
				       .at = at,
				       .key = key,
				       .type = type,
				       .op = op,
				       .context = context,
				       .flags = TX_FLAGS(ep)});
}

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
	fi_addr_t to, uint64_t at, uint64_t key, enum fi_datatype type, enum fi_op op,
	void *context)
{
	(void)desc;
	return atomic_post(ep, &(struct post){.iov = iov,
				       .count = count,
				       .peer = to,
				       .at = at,
				       .key = key,
				       .type = type,
				       .op = op,
				       .context = context,
				       .flags = TX_FLAGS(ep)});
}

/* A message has one remote piece, of as many elements as the local ones together. */
static ssize_t atomic_message(
	struct fid_ep *ep, const struct fi_msg_atomic *message, struct post *post)
{
	uint64_t elements;
	bool reads;

	if (!message)
		return -FI_EINVAL;
	reads = message->op == FI_ATOMIC_READ;
	post->iov = message->msg_iov;
	post->count = message->iov_count;
	post->peer = message->addr;
	post->type = message->datatype;
	post->op = message->op;
	post->context = message->context;
	if (message->rma_iov_count != 1 || !message->rma_iov ||
		!elements_count(reads ? post->results : post->iov,
			reads ? post->result_count : post->count, &elements) ||
		elements != message->rma_iov->count)
		return -FI_EINVAL;
	post->at = message->rma_iov->addr;
	post->key = message->rma_iov->key;
	return atomic_post(ep, post);
}

static ssize_t atomic_writemsg(
	struct fid_ep *ep, const struct fi_msg_atomic *message, uint64_t flags)
{
	return atomic_message(ep, message, &(struct post){.flags = flags});
}

static ssize_t atomic_inject(struct fid_ep *ep, const void *buffer, size_t count, fi_addr_t to,
	uint64_t at, uint64_t key, enum fi_datatype type, enum fi_op op)
{
	return atomic_post(ep, &(struct post){.iov = ONE(buffer, count),
				       .count = 1,
				       .peer = to,
				       .at = at,
				       .key = key,
				       .type = type,
				       .op = op,
				       .quiet = true});
}

static ssize_t atomic_fetchv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
	struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t to, uint64_t at,
	uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	(void)desc;
	(void)result_desc;
	return atomic_post(ep, &(struct post){.set = SET_FETCH,
				       .iov = iov,
				       .count = count,
				       .results = results,
				       .result_count = result_count,
				       .peer = to,
				       .at = at,
				       .key = key,
				       .type = type,
				       .op = op,
				       .context = context,
				       .flags = TX_FLAGS(ep)});
}

static ssize_t atomic_fetch(struct fid_ep *ep, const void *buffer, size_t count, void *desc,
	void *result, void *result_desc, fi_addr_t to, uint64_t at, uint64_t key,
	enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_ioc into = {result, count};

	(void)desc;
	(void)result_desc;
	return atomic_fetchv(
		ep, ONE(buffer, count), NULL, 1, &into, NULL, 1, to, at, key, type, op, context);
}

static ssize_t atomic_fetchmsg(struct fid_ep *ep, const struct fi_msg_atomic *message,
	struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
{
	(void)result_desc;
	return atomic_message(ep, message,
		&(struct post){.set = SET_FETCH,
			.results = results,
			.result_count = result_count,
			.flags = flags});
}

static ssize_t atomic_comparev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
	size_t count, const struct fi_ioc *compares, void **compare_desc, size_t compare_count,
	struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t to, uint64_t at,
	uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	return atomic_post(ep, &(struct post){.set = SET_COMPARE,
				       .iov = iov,
				       .count = count,
				       .compares = compares,
				       .compare_count = compare_count,
				       .results = results,
				       .result_count = result_count,
				       .peer = to,
				       .at = at,
				       .key = key,
				       .type = type,
				       .op = op,
				       .context = context,
				       .flags = TX_FLAGS(ep)});
}

static ssize_t atomic_compare(struct fid_ep *ep, const void *buffer, size_t count, void *desc,
	const void *compare, void *compare_desc, void *result, void *result_desc, fi_addr_t to,
	uint64_t at, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_ioc into = {result, count};

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	return atomic_comparev(ep, ONE(buffer, count), NULL, 1, ONE(compare, count), NULL, 1, &into,
		NULL, 1, to, at, key, type, op, context);
}

static ssize_t atomic_comparemsg(struct fid_ep *ep, const struct fi_msg_atomic *message,
	const struct fi_ioc *compares, void **compare_desc, size_t compare_count,
	struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
{
	(void)compare_desc;
	(void)result_desc;
	return atomic_message(ep, message,
		&(struct post){.set = SET_COMPARE,
			.compares = compares,
			.compare_count = compare_count,
			.results = results,
			.result_count = result_count,
			.flags = flags});
}

struct fi_ops_atomic atomic_ops = {
	.size = sizeof(atomic_ops),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_fetch,
	.readwritev = atomic_fetchv,
	.readwritemsg = atomic_fetchmsg,
	.compwrite = atomic_compare,
	.compwritev = atomic_comparev,
	.compwritemsg = atomic_comparemsg,
	.writevalid = write_valid,
	.readwritevalid = fetch_valid,
	.compwritevalid = compare_valid,
};
