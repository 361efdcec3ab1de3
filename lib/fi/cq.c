/* SPDX-License-Identifier: BSD-3-Clause */
/* cq.c - completion queues: a ring of lines, each of which begins with the program's format. */
#include <fi/state.h>

#include <stdlib.h>
#include <string.h>

#include <base/clock.h>

#define ROOM_FIRST 64
#define ROOM_MOST  (UINT32_C(1) << 20)

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

static bool cq_reserve(struct cq *cq, uint32_t count, uint32_t most)
{
	uint32_t needed = cq->tail - cq->head + cq->promised + count;

	if (needed > most)
		return false;
	while (needed > cq->room)
		if (!cq_grow(cq))
			return false;
	cq->promised += count;
	return true;
}

bool cq_promise_late(struct cq *cq)
{
	return cq_reserve(cq, 1, cq_most(cq));
}

/* What was promised may have the queue for itself. */
bool cq_stretch(struct cq *cq)
{
	return cq->tail - cq->head < cq_most(cq) && cq_reserve(cq, 1, ROOM_MOST);
}

bool cq_promise_many(struct cq *cq, uint32_t count)
{
	if (!cq_reserve(cq, count, ROOM_MOST))
		return false;
	cq->bound += count;
	return true;
}

void cq_release_many(struct cq *cq, uint32_t count, uint32_t left)
{
	cq->promised -= left;
	cq->bound -= count;
}

void cq_error(struct cq *cq, const struct failure *failure)
{
	struct line *line = cq_place(cq);

	line->failure = malloc(sizeof(*failure));
	if (!line->failure) {
		WARN(CQ, "there is no memory to tell of an error: %s\n", fi_strerror(failure->err));
		cq_release(cq);
		return;
	}
	*line->failure = *failure;
	cq_tell(cq);
}

/* --- reads */

static struct line *cq_first(struct cq *cq)
{
	return cq_is_empty(cq) ? NULL : &cq->lines[cq->head & (cq->room - 1)];
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

static ssize_t cq_readfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *sources)
{
	struct cq *cq = object_of(fid, struct cq);
	ssize_t result;

	domain_enter(cq->notice.domain);
	if (count == 0 || !cq_first(cq)) /* F3 */
		notice_drive(&cq->notice);
	result = cq_take(cq, buffer, count, sources);
	domain_leave(cq->notice.domain);
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
	if (room == 0 || cq->notice.domain->fabric->fid.api_version < FI_VERSION(1, 5)) {
		/* Programs of older releases have no second field. */
		entry->err_data = failure->has_address ? &cq->err_data : NULL;
		if (cq->notice.domain->fabric->fid.api_version >= FI_VERSION(1, 5))
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
	domain_enter(cq->notice.domain);
	line = cq_first(cq);
	if (line && line->failure) {
		failure_tell(cq, line, entry);
		free(line->failure);
		cq->head++;
		result = 1;
	}
	domain_leave(cq->notice.domain);
	return result;
}

/* --- waits */

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *sources,
	const void *condition, int timeout)
{
	struct cq *cq = object_of(fid, struct cq);
	const uint64_t start = library_now();
	const uint64_t time = timeout < 0 ? UINT64_MAX : (uint64_t)timeout * MILLISECOND;
	uint32_t signals;
	ssize_t result;

	(void)condition; /* an entry is condition enough */
	if (cq->notice.object == FI_WAIT_NONE)
		return -FI_EINVAL;
	domain_enter(cq->notice.domain);
	/* A signal without a wait ends the next one: its thread may have been about to wait. */
	signals = cq->answered;
	for (;;) {
		uint64_t passed;

		if (!cq_first(cq))
			notice_drive(&cq->notice);
		result = cq_take(cq, buffer, count, sources);
		passed = library_now() - start;
		if (result != -FI_EAGAIN || passed >= time || cq->signals != signals)
			break;
		notice_sleep(&cq->notice, time - passed);
	}
	if (result == -FI_EAGAIN)
		cq->answered = cq->signals;
	domain_leave(cq->notice.domain);
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

	if (cq->notice.object == FI_WAIT_NONE)
		return -FI_EINVAL;
	domain_enter(cq->notice.domain);
	cq->signals++;
	notice_rouse(&cq->notice);
	domain_leave(cq->notice.domain);
	return 0;
}

int cq_arm(struct cq *cq)
{
	int result = -FI_EAGAIN;

	if (cq->notice.object != FI_WAIT_FD)
		return -FI_EINVAL;
	domain_enter(cq->notice.domain);
	if (cq_is_empty(cq))
		notice_drive(&cq->notice);
	if (cq_is_empty(cq))
		result = notice_arm(&cq->notice);
	domain_leave(cq->notice.domain);
	return result;
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
	struct domain *domain = cq->notice.domain;
	struct line *line;
	bool busy;

	domain_enter(domain);
	busy = cq->uses != 0 || notice_is_awaited(&cq->notice);
	if (!busy)
		domain->uses--;
	domain_leave(domain);
	if (busy)
		return -FI_EBUSY;
	while ((line = cq_first(cq))) {
		free(line->failure);
		cq->head++;
	}
	notice_close(&cq->notice);
	free(cq->lines);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *argument)
{
	return notice_control(&object_of(fid, struct cq)->notice, command, argument);
}

static struct fi_ops cq_fid_ops = FID_OPS(cq_close, none_bind, cq_control);
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

	if (!attr)
		return -FI_EINVAL;
	if (!wait_is_offered(attr->wait_obj))
		return -FI_ENOSYS;
	if (entry_size(attr->format) == 0 || attr->size > INT32_MAX)
		return -FI_EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq || !(cq->lines = malloc(ROOM_FIRST * sizeof(*cq->lines))) ||
		!notice_open(&cq->notice, domain, attr->wait_obj)) {
		if (cq)
			free(cq->lines);
		free(cq);
		return -FI_ENOMEM;
	}
	if (attr->format == FI_CQ_FORMAT_UNSPEC)
		attr->format = FI_CQ_FORMAT_CONTEXT;
	cq->fid.fid = (struct fid){FI_CLASS_CQ, context, &cq_fid_ops};
	cq->fid.ops = &cq_ops;
	cq->entry = entry_size(attr->format);
	cq->room = ROOM_FIRST;
	cq->least = attr->size > ROOM_FIRST ? (uint32_t)attr->size : ROOM_FIRST;
	domain_enter(domain);
	domain->uses++;
	domain_leave(domain);
	*opened = &cq->fid;
	return 0;
}
