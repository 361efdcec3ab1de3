/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.c - tagged messages of libfabric, for scripts/compare to hold Postern against. See rival.h
 * for its use.
 *
 * The transport is a provider's name: "postern", "tcp;ofi_rxm", "udp;ofi_rxd", "shm". Small
 * messages are injected where the provider can; receives are posted beforehand, all into one
 * buffer, and posted again when they have completed and the answer is sent. As in every libfabric
 * program, the program's own calls make the progress.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "../../apps/perf/rival.h"
#include "../kernel_names.h"

#define VERSION        FI_VERSION(1, 15)
#define NAME_MAX_BYTES 256
#define TAG            7
#define BATCH          32 /* completions read at a time */

struct line {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *addresses;
	struct fid_cq *completions;
	struct fid_ep *endpoint;
	fi_addr_t peer;
	uint32_t out;
	uint32_t in;
	bool inject;
	uint32_t sending; /* sends that have not completed */
	uint32_t depth;   /* how many there may be */
	uint32_t next;    /* send context that is used next; sends complete in order */
	uint32_t arrived; /* messages not yet returned */
	uint32_t taken;   /* receives that have completed and are not yet posted again, */
	void **renewed;   /* by their contexts */
	char *to_send;
	char *received;
	struct fi_context2 *contexts; /* of receives, then of sends */
};

static void need(long code, const char *call)
{
	if (code < 0)
		rival_complain("%s: %s.", call, fi_strerror((int)-code));
}

static void receive_post(struct line *line, void *context)
{
	ssize_t code;

	do
		code = fi_trecv(line->endpoint, line->received, line->in, NULL, FI_ADDR_UNSPEC, TAG,
			0, context);
	while (code == -FI_EAGAIN);
	need(code, "fi_trecv");
}

static void receives_renew(struct line *line)
{
	while (line->taken > 0)
		receive_post(line, line->renewed[--line->taken]);
}

/* Takes what has completed; drives the provider. */
static void progress(struct line *line)
{
	struct fi_cq_tagged_entry entries[BATCH];
	struct fi_cq_err_entry error = {0};
	ssize_t count = fi_cq_read(line->completions, entries, BATCH);

	if (count == -FI_EAGAIN)
		return;
	if (count == -FI_EAVAIL) {
		fi_cq_readerr(line->completions, &error, 0);
		rival_complain("an operation failed: %s.", fi_strerror(error.err));
	}
	need(count, "fi_cq_read");
	for (ssize_t i = 0; i < count; i++) {
		if ((entries[i].flags & FI_RECV) == 0) {
			line->sending--;
			continue;
		}
		line->arrived++;
		line->renewed[line->taken++] = entries[i].op_context;
	}
}

/* As programs do: an answer is sent before the next receive is posted. */
static void line_send(void *self, bool more)
{
	struct line *line = self;
	ssize_t code;

	(void)more;
	for (;;) {
		if (line->inject)
			code = fi_tinject(
				line->endpoint, line->to_send, line->out, line->peer, TAG);
		else if (line->sending < line->depth)
			code = fi_tsend(line->endpoint, line->to_send, line->out, NULL, line->peer,
				TAG, &line->contexts[line->depth + line->next]);
		else
			code = -FI_EAGAIN;
		if (code != -FI_EAGAIN)
			break;
		progress(line);
	}
	need(code, "sending");
	if (!line->inject) {
		line->sending++;
		line->next = (line->next + 1) % line->depth;
	}
	receives_renew(line);
}

static uint32_t line_receive(void *self)
{
	struct line *line = self;
	uint32_t arrived;

	receives_renew(line);
	if (line->arrived == 0)
		progress(line);
	arrived = line->arrived;
	line->arrived = 0;
	return arrived;
}

/* --- opening --- */

/* That of the control connection, which goes the way that is to be measured; any port. */
static struct sockaddr_in *own_address(const struct rival_end *end)
{
	struct sockaddr_in *own = calloc(1, sizeof(*own));
	socklen_t length = sizeof(*own);

	if (own == NULL || getsockname(end->control, (struct sockaddr *)own, &length) != 0)
		rival_complain("this end has no address: %m.");
	own->sin_port = 0;
	return own;
}

static struct fi_info *provider_find(const struct rival_end *end)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *found = NULL;
	int code;

	if (hints == NULL)
		rival_complain("there is no memory.");
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(end->request->transport);
	if (strchr(end->request->transport, ';')) { /* one of sockets */
		hints->addr_format = FI_SOCKADDR_IN;
		hints->src_addr = own_address(end);
		hints->src_addrlen = sizeof(struct sockaddr_in);
	}
	code = fi_getinfo(VERSION, NULL, NULL, 0, hints, &found);
	if (code != 0)
		rival_complain("libfabric has no provider %s here: %s.", end->request->transport,
			fi_strerror(-code));
	return found;
}

static void endpoint_open(struct line *line, struct fi_info *info)
{
	struct fi_av_attr addresses = {.type = FI_AV_TABLE};
	struct fi_cq_attr completions = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE, .size = 4 * line->depth};

	need(fi_fabric(info->fabric_attr, &line->fabric, NULL), "fi_fabric");
	need(fi_domain(line->fabric, info, &line->domain, NULL), "fi_domain");
	need(fi_av_open(line->domain, &addresses, &line->addresses, NULL), "fi_av_open");
	need(fi_cq_open(line->domain, &completions, &line->completions, NULL), "fi_cq_open");
	need(fi_endpoint(line->domain, info, &line->endpoint, NULL), "fi_endpoint");
	need(fi_ep_bind(line->endpoint, &line->addresses->fid, 0), "fi_ep_bind");
	need(fi_ep_bind(line->endpoint, &line->completions->fid, FI_TRANSMIT | FI_RECV),
		"fi_ep_bind");
	need(fi_enable(line->endpoint), "fi_enable");
}

static void peer_meet(struct line *line, const struct rival_end *end)
{
	char mine[NAME_MAX_BYTES] = {0};
	char theirs[NAME_MAX_BYTES];
	size_t length = sizeof(mine);

	need(fi_getname(&line->endpoint->fid, mine, &length), "fi_getname");
	rival_swap(end, mine, theirs, sizeof(mine));
	if (fi_av_insert(line->addresses, theirs, 1, &line->peer, 0, NULL) != 1)
		rival_complain("the other end's address is not accepted.");
}

static void *line_open(const struct rival_end *end)
{
	struct line *line = calloc(1, sizeof(*line));
	struct fi_info *info = provider_find(end);
	char ready = 0;

	if (line == NULL)
		rival_complain("there is no memory.");
	line->out = end->out;
	line->in = end->in;
	line->depth = end->request->window * STREAM_WINDOWS + 1;
	if (line->depth > info->rx_attr->size)
		line->depth = (uint32_t)info->rx_attr->size;
	if (line->depth > info->tx_attr->size)
		line->depth = (uint32_t)info->tx_attr->size;
	line->inject = line->out <= info->tx_attr->inject_size;
	line->to_send = calloc(1, line->out);
	line->received = calloc(1, line->in);
	line->contexts = calloc(2 * (size_t)line->depth, sizeof(*line->contexts));
	line->renewed = calloc(line->depth, sizeof(*line->renewed));
	if (line->to_send == NULL || line->received == NULL || line->contexts == NULL ||
		line->renewed == NULL)
		rival_complain("there is no memory for messages of %u bytes.", end->request->size);
	endpoint_open(line, info);
	fi_freeinfo(info);
	for (uint32_t i = 0; i < line->depth; i++)
		receive_post(line, &line->contexts[i]);
	peer_meet(line, end);
	rival_swap(end, &ready, &ready, sizeof(ready)); /* both know each other */
	return line;
}

/* Shared memory that libfabric has made would outlive the process. */
static void line_close(void *context)
{
	struct line *line = context;

	fi_close(&line->endpoint->fid);
	fi_close(&line->completions->fid);
	fi_close(&line->addresses->fid);
	fi_close(&line->domain->fid);
	fi_close(&line->fabric->fid);
}

int main(int argc, char **argv)
{
	static const struct rival fabric = {
		.name = "bench-fabric",
		.transports =
			"TRANSPORT is a provider of libfabric, such as \"tcp;ofi_rxm\"; MODE is "
			"poll.\n",
		.open = line_open,
		.send = line_send,
		.receive = line_receive,
		.close = line_close,
	};

	return rival_main(argc, argv, &fabric);
}
