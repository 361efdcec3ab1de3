/* SPDX-License-Identifier: BSD-3-Clause */
/* fi.c - a module of postern-perf: tagged messages of libfabric (fi_tagged(3)), and operations on
 * remote memory (fi_rma(3), fi_atomic(3)), by the provider of Postern, which libfabric loads as it
 * does for every program. See line.h.
 *
 *     latency, rate, bandwidth   fi_tinject() to receives that are posted, or fi_tsend() where a
 *                                message is longer than what can be injected
 *     get-..., put-...           fi_read(), fi_write(), until they complete
 *     fetch-latency              fi_fetch_atomic(), a sum of 8 bytes
 *
 * F1. An end posts a receive for each message that may be on its way, all into one memory, and
 *     posts it again when the message has been answered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "line.h"

#define VERSION  FI_VERSION(1, 17)
#define PROVIDER "postern"
#define TAG      7
#define KEY      9  /* of the memory that both ends offer */
#define BATCH    64 /* completions that are read at a time */

struct line {
	struct line_request request;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *addresses;
	struct fid_cq *completions;
	struct fid_ep *endpoint;
	struct fid_mr *region;
	fi_addr_t other;
	uint64_t word, addend; /* of a sum: its target, and the number that is added */
	uint64_t awaited;      /* completions with this flag are counted */
	uint32_t taken;        /* receives that have completed and are not posted again */
	uint32_t arrived;      /* messages and operations that receive() has not returned */
	bool failed;
};

static bool is_fetch(const struct line *line)
{
	return line->request.measure == MEASURE_FETCH_LATENCY;
}

static void need(const struct line *line, ssize_t code, const char *function)
{
	if (code < 0)
		line->request.complain(
			"%s of libfabric fails: %s.", function, fi_strerror((int)-code));
}

/* --- completions */

static void failure_take(struct line *line)
{
	struct fi_cq_err_entry error = {0};

	need(line, fi_cq_readerr(line->completions, &error, 0), "fi_cq_readerr");
	line->failed = true;
}

/* Takes completions; the call drives the provider. */
static void completions_take(struct line *line)
{
	struct fi_cq_msg_entry entries[BATCH];
	ssize_t count = fi_cq_read(line->completions, entries, BATCH);

	if (count == -FI_EAGAIN)
		return;
	if (count == -FI_EAVAIL) {
		failure_take(line);
		return;
	}
	need(line, count, "fi_cq_read");
	for (ssize_t i = 0; i < count; i++)
		if (entries[i].flags & line->awaited)
			line->arrived++;
}

/* F1 */
static void receives_renew(struct line *line)
{
	for (; line->taken > 0; line->taken--)
		need(line,
			fi_trecv(line->endpoint, line->request.memory, line->request.size, NULL,
				FI_ADDR_UNSPEC, TAG, 0, NULL),
			"fi_trecv");
}

static int line_receive(struct line *line)
{
	int arrived;

	receives_renew(line);
	if (line->arrived == 0)
		completions_take(line);
	arrived = (int)line->arrived;
	if (line->awaited == FI_RECV)
		line->taken += line->arrived;
	line->arrived = 0;
	return line->failed ? -1 : arrived;
}

/* --- sends */

static ssize_t message_send(struct line *line, uint64_t size)
{
	if (size <= line->info->tx_attr->inject_size)
		return fi_tinject(line->endpoint, line->request.memory, size, line->other, TAG);
	return fi_tsend(line->endpoint, line->request.memory, size, NULL, line->other, TAG, NULL);
}

static ssize_t operation_post(struct line *line, uint64_t size)
{
	void *memory = line->request.memory;

	if (is_fetch(line))
		return fi_fetch_atomic(line->endpoint, &line->addend, 1, NULL, memory, NULL,
			line->other, 0, KEY, FI_UINT64, FI_SUM, NULL);
	if (measure_is_acknowledged(line->request.measure))
		return fi_write(line->endpoint, memory, size, NULL, line->other, 0, KEY, NULL);
	return fi_read(line->endpoint, memory, size, NULL, line->other, 0, KEY, NULL);
}

static void post(struct line *line, ssize_t (*begin)(struct line *, uint64_t), uint64_t size)
{
	ssize_t code;

	while ((code = begin(line, size)) == -FI_EAGAIN && !line->failed)
		completions_take(line);
	if (!line->failed)
		need(line, code, "a message or an operation");
}

static void line_send(struct line *line)
{
	post(line, measure_gets(line->request.measure) ? operation_post : message_send,
		line->request.size);
}

static void line_credit(struct line *line)
{
	post(line, message_send, 0);
}

/* --- a line's life */

static void object_close(struct fid *object)
{
	if (object)
		fi_close(object);
}

static void line_close(struct line *line)
{
	object_close(line->endpoint ? &line->endpoint->fid : NULL);
	object_close(line->region ? &line->region->fid : NULL);
	object_close(line->completions ? &line->completions->fid : NULL);
	object_close(line->addresses ? &line->addresses->fid : NULL);
	object_close(line->domain ? &line->domain->fid : NULL);
	object_close(line->fabric ? &line->fabric->fid : NULL);
	fi_freeinfo(line->info);
	free(line);
}

static struct fi_info *hints_make(const struct line_request *request)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_TAGGED;
	if (measure_gets(request->measure))
		hints->caps |= FI_RMA | FI_ATOMIC;
	hints->mode = ~UINT64_C(0);
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->tx_attr->size = hints->rx_attr->size = request->messages + 1;
	hints->fabric_attr->prov_name = strdup(PROVIDER);
	return hints;
}

/* Takes the offer for the interface: each item of PTL_IFACE_NAME has one, in their order. */
static int offer_take(struct line *line)
{
	struct fi_info *hints = hints_make(&line->request);
	struct fi_info *offers = NULL, *offer;
	int code = -FI_ENOMEM;

	if (hints)
		code = fi_getinfo(VERSION, NULL, NULL, 0, hints, &offers);
	fi_freeinfo(hints);
	if (code != 0)
		return code;
	offer = offers;
	for (unsigned i = 0; offer && i < line->request.interface; i++)
		offer = offer->next;
	line->info = offer ? fi_dupinfo(offer) : NULL;
	fi_freeinfo(offers);
	return line->info ? 0 : -FI_ENODATA;
}

/* The memory that the other end reads, writes or adds to. */
static int region_open(struct line *line)
{
	void *memory = is_fetch(line) ? &line->word : line->request.memory;
	size_t size =
		is_fetch(line) || line->request.size == 0 ? sizeof(line->word) : line->request.size;

	return fi_mr_reg(line->domain, memory, size, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
		&line->region, NULL);
}

/* Returns the function that fails, or NULL. */
static const char *objects_open(struct line *line, int *code)
{
	struct fi_av_attr addresses = {.type = FI_AV_TABLE, .count = 1};
	struct fi_cq_attr completions = {.format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_NONE,
		.size = 2 * ((size_t)line->request.messages + 1)};

	if ((*code = fi_fabric(line->info->fabric_attr, &line->fabric, NULL)) != 0)
		return "fi_fabric";
	if ((*code = fi_domain(line->fabric, line->info, &line->domain, NULL)) != 0)
		return "fi_domain";
	if ((*code = fi_av_open(line->domain, &addresses, &line->addresses, NULL)) != 0)
		return "fi_av_open";
	if ((*code = fi_cq_open(line->domain, &completions, &line->completions, NULL)) != 0)
		return "fi_cq_open";
	if ((*code = fi_endpoint(line->domain, line->info, &line->endpoint, NULL)) != 0)
		return "fi_endpoint";
	if ((*code = fi_ep_bind(line->endpoint, &line->addresses->fid, 0)) != 0 ||
		(*code = fi_ep_bind(
			 line->endpoint, &line->completions->fid, FI_TRANSMIT | FI_RECV)) != 0)
		return "fi_ep_bind";
	if ((*code = fi_enable(line->endpoint)) != 0)
		return "fi_enable";
	if (measure_gets(line->request.measure) && (*code = region_open(line)) != 0)
		return "fi_mr_reg";
	return NULL;
}

static bool line_make(struct line *line, struct line_address *own, char *why, size_t room)
{
	size_t length = sizeof(own->numbers);
	const char *failed;
	int code = offer_take(line);

	if (code != 0) {
		snprintf(why, room,
			"libfabric does not find the provider " PROVIDER " (%s); postern-info says "
			"why",
			fi_strerror(-code));
		return false;
	}
	failed = objects_open(line, &code);
	if (!failed && (code = fi_getname(&line->endpoint->fid, own->numbers, &length)) != 0)
		failed = "fi_getname";
	if (failed)
		snprintf(why, room, "%s fails on interface %u: %s", failed, line->request.interface,
			fi_strerror(-code));
	return !failed;
}

static struct line *line_open(
	const struct line_request *request, struct line_address *own, char *why, size_t room)
{
	struct line *line = calloc(1, sizeof(*line));

	if (!line) {
		snprintf(why, room, "there is no memory");
		return NULL;
	}
	line->request = *request;
	line->addend = 1;
	line->awaited = !measure_gets(request->measure)             ? FI_RECV
			: measure_is_acknowledged(request->measure) ? FI_WRITE
								    : FI_READ;
	/* So that libfabric does not open what other providers need. */
	setenv("FI_PROVIDER", PROVIDER, 0);
	if (!line_make(line, own, why, room)) {
		line_close(line);
		return NULL;
	}
	line->taken = request->messages + 1;
	receives_renew(line);
	return line;
}

static bool line_meet(struct line *line, const struct line_address *other)
{
	if (fi_av_insert(line->addresses, other->numbers, 1, &line->other, 0, NULL) != 1)
		line->request.complain("fi_av_insert of libfabric refuses the other end's address; "
				       "FI_LOG_LEVEL=warn says why.");
	return true;
}

extern const struct line_module perf_line __attribute__((visibility("default")));

const struct line_module perf_line = {
	.release = PERF_RELEASE,
	.open = line_open,
	.meet = line_meet,
	.send = line_send,
	.credit = line_credit,
	.receive = line_receive,
	.close = line_close,
};
