/* SPDX-License-Identifier: BSD-3-Clause */
/* cq.c - completion queues: a ring of lines, each of which begins with the program's format. */
#include <fi/state.h>

#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include <base/futex.h>

#define ROOM_FIRST 64
#define NAP        (100 * MICROSECOND) /* of a thread that waits for several endpoints */
#define LOOK       (250 * MILLISECOND) /* of one that waits for one */

/* --- lines */

/* Makes the ring twice as long. */
static bool cq_grow(struct cq *cq)
{
	uint32_t room = cq->room * 2;
	struct line *lines = malloc(room * sizeof(*lines));

	if (!lines)
		return false;
	for (uint32_t i = cq->head; i != cq->tail; i++)
		lines[i & (room - 1)] = cq->lines[i & (cq->room - 1)];
	free(cq->lines);
	cq->lines = lines;
	cq->room = room;
	return true;
}

bool cq_promise(struct cq *cq)
{
	uint32_t needed = cq->tail - cq->head + cq->promised + 1;

	if (needed > (cq->bound > cq->least ? cq->bound : cq->least) ||
		(needed > cq->room && !cq_grow(cq)))
		return false;
	cq->promised++;
	return true;
}

void cq_rouse(struct cq *cq)
{
	struct binding *binding = list_first(&cq->bindings, struct binding, link);

	atomic_fetch_add_explicit(&cq->changes, 1, memory_order_release);
	if (cq->blocked == 0)
		return;
	futex_wake(&cq->changes, INT32_MAX);
	if (binding)
		cq->domain->sleepers = binding->endpoint->messages;
}

void cq_line(struct cq *cq, const struct line *line)
{
	cq->promised--;
	cq->lines[cq->tail++ & (cq->room - 1)] = *line;
	cq_rouse(cq);
}

void cq_error(struct cq *cq, const struct line *line, const struct failure *failure)
{
	struct line failed = *line;

	failed.failure = malloc(sizeof(*failure));
	if (!failed.failure) {
		WARN(CQ, "there is no memory to tell of an error: %s\n", fi_strerror(failure->err));
		cq_release(cq);
		return;
	}
	*failed.failure = *failure;
	cq_line(cq, &failed);
}

/* --- reads */

static struct line *cq_first(struct cq *cq)
{
	return cq->head == cq->tail ? NULL : &cq->lines[cq->head & (cq->room - 1)];
}

static ssize_t cq_take(struct cq *cq, char *buffer, size_t count, fi_addr_t *sources)
{
	const struct line *line;
	size_t taken = 0;

	while (taken < count && (line = cq_first(cq)) && !line->failure) {
		memcpy(buffer + taken * cq->entry, &line->entry, cq->entry);
		if (sources)
			sources[taken] = line->source;
		cq->head++;
		taken++;
	}
	if (taken > 0)
		return (ssize_t)taken;
	line = cq_first(cq);
	if (!line)
		return -FI_EAGAIN;
	return line->failure ? -FI_EAVAIL : 0;
}

static void cq_drive(struct cq *cq)
{
	list_each (struct binding, binding, &cq->bindings, link)
		endpoint_progress(binding->endpoint);
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *sources)
{
	struct cq *cq = object_of(fid, struct cq);
	ssize_t result;

	domain_enter(cq->domain);
	if (count == 0 || !cq_first(cq)) /* F3 */
		cq_drive(cq);
	result = cq_take(cq, buffer, count, sources);
	domain_leave(cq->domain);
	return result;
}

static ssize_t cq_read(struct fid_cq *fid, void *buffer, size_t count)
{
	return cq_readfrom(fid, buffer, count, NULL);
}

static void failure_tell(struct cq *cq, const struct line *line, struct fi_cq_err_entry *entry)
{
	const struct failure *failure = line->failure;
	void *data = entry->err_data;
	size_t room = entry->err_data_size;

	entry->op_context = line->entry.op_context;
	entry->flags = line->entry.flags;
	entry->len = line->entry.len;
	entry->buf = line->entry.buf;
	entry->data = line->entry.data;
	entry->tag = line->entry.tag;
	entry->olen = failure->olen;
	entry->err = entry->prov_errno = failure->err;
	cq->err_data = failure->address;
	if (room == 0 || cq->domain->fabric->fid.api_version < FI_VERSION(1, 5)) {
		/* Programs of older releases have no second field. */
		entry->err_data = failure->has_address ? &cq->err_data : NULL;
		if (cq->domain->fabric->fid.api_version >= FI_VERSION(1, 5))
			entry->err_data_size = failure->has_address ? sizeof(cq->err_data) : 0;
		return;
	}
	entry->err_data_size = !failure->has_address         ? 0
			       : room < sizeof(cq->err_data) ? room
							     : sizeof(cq->err_data);
	memcpy(data, &cq->err_data, entry->err_data_size);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *entry, uint64_t flags)
{
	struct cq *cq = object_of(fid, struct cq);
	struct line *line;
	ssize_t result = -FI_EAGAIN;

	(void)flags;
	domain_enter(cq->domain);
	line = cq_first(cq);
	if (line && line->failure) {
		failure_tell(cq, line, entry);
		free(line->failure);
		cq->head++;
		result = 1;
	}
	domain_leave(cq->domain);
	return result;
}

/* --- waits */

struct sleep {
	struct cq *cq;
	uint32_t changes;
};

static bool sleep_look(void *context)
{
	const struct sleep *sleep = context;

	return atomic_load_explicit(&sleep->cq->changes, memory_order_acquire) != sleep->changes;
}

/* Sleeps, without the domain's lock, until something may have come, or for so many ns. An endpoint
 * that closes waits until nobody sleeps at it. */
static void cq_sleep(struct cq *cq, uint64_t left)
{
	struct sleep sleep = {cq, atomic_load_explicit(&cq->changes, memory_order_relaxed)};
	struct binding *binding = list_first(&cq->bindings, struct binding, link);
	struct endpoint *only = binding && binding->link.next == &cq->bindings &&
						binding->endpoint->messages &&
						!binding->endpoint->closing
					? binding->endpoint
					: NULL;

	cq->blocked++;
	if (only) {
		bool soon = only->asking != 0 || messages_is_late(only->messages);
		uint64_t most = soon ? MILLISECOND : LOOK;

		only->sleepers++;
		domain_leave(cq->domain);
		messages_await(only->messages, sleep_look, &sleep, left < most ? left : most);
		domain_enter(cq->domain);
		only->sleepers--;
	} else {
		domain_leave(cq->domain);
		futex_wait(&cq->changes, sleep.changes,
			list_empty(&cq->bindings) || left < NAP ? left : NAP);
		domain_enter(cq->domain);
	}
	cq->blocked--;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *sources,
	const void *condition, int timeout)
{
	struct cq *cq = object_of(fid, struct cq);
	const uint64_t start = library_now();
	const uint64_t time = timeout < 0 ? UINT64_MAX : (uint64_t)timeout * MILLISECOND;
	uint32_t signals;
	ssize_t result;

	(void)condition; /* an entry is condition enough */
	if (!cq->blocking)
		return -FI_EINVAL;
	domain_enter(cq->domain);
	signals = cq->signals;
	for (;;) {
		uint64_t passed;

		if (!cq_first(cq))
			cq_drive(cq);
		result = cq_take(cq, buffer, count, sources);
		passed = library_now() - start;
		if (result != -FI_EAGAIN || passed >= time || cq->signals != signals)
			break;
		cq_sleep(cq, time - passed);
	}
	domain_leave(cq->domain);
	return result;
}

static ssize_t cq_sread(
	struct fid_cq *fid, void *buffer, size_t count, const void *condition, int timeout)
{
	return cq_sreadfrom(fid, buffer, count, NULL, condition, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct cq *cq = object_of(fid, struct cq);

	if (!cq->blocking)
		return -FI_EINVAL;
	domain_enter(cq->domain);
	cq->signals++;
	cq_rouse(cq);
	domain_leave(cq->domain);
	return 0;
}

static const char *cq_strerror(
	struct fid_cq *fid, int number, const void *data, char *buffer, size_t length)
{
	(void)fid;
	(void)data;
	return error_text(number, buffer, length);
}

/* --- opening and closing */

static int cq_close(struct fid *fid)
{
	struct cq *cq = object_of(fid, struct cq);
	struct line *line;

	if (cq->uses != 0)
		return -FI_EBUSY;
	while ((line = cq_first(cq))) {
		free(line->failure);
		cq->head++;
	}
	domain_enter(cq->domain);
	cq->domain->uses--;
	domain_leave(cq->domain);
	free(cq->lines);
	free(cq);
	return 0;
}

static struct fi_ops cq_fid_ops = FID_OPS(cq_close, none_bind, none_control);
static struct fi_ops_cq cq_ops = {
	.size = sizeof(cq_ops),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_UNSPEC:
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	}
	return 0;
}

int cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **opened, void *context)
{
	struct domain *domain = object_of(fid, struct domain);
	struct cq *cq;

	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
		return -FI_ENOSYS;
	if (entry_size(attr->format) == 0 || attr->size > INT32_MAX)
		return -FI_EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq || !(cq->lines = malloc(ROOM_FIRST * sizeof(*cq->lines)))) {
		free(cq);
		return -FI_ENOMEM;
	}
	if (attr->format == FI_CQ_FORMAT_UNSPEC)
		attr->format = FI_CQ_FORMAT_CONTEXT;
	cq->fid.fid = (struct fid){FI_CLASS_CQ, context, &cq_fid_ops};
	cq->fid.ops = &cq_ops;
	cq->domain = domain;
	cq->entry = entry_size(attr->format);
	cq->blocking = attr->wait_obj == FI_WAIT_UNSPEC;
	cq->room = ROOM_FIRST;
	cq->least = attr->size > ROOM_FIRST ? (uint32_t)attr->size : ROOM_FIRST;
	list_init(&cq->bindings);
	domain_enter(domain);
	domain->uses++;
	domain_leave(domain);
	*opened = &cq->fid;
	return 0;
}
