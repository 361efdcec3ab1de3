/* SPDX-License-Identifier: BSD-3-Clause */
/* messages_fi.c - 8-byte tagged messages between two endpoints of libfabric in this process, for
 * scripts/instructions to count their instructions: injected, to receives that are posted.
 *
 *     messages_fi fi N        back and forth, each the answer to the one before; a receive is
 *                             posted again when its message has been answered
 *     messages_fi fiwindow N  WINDOW receives are posted, as many messages injected, then read
 *
 * The provider is part of the program, so that each instruction has its source file; libfabric
 * itself has no part in these calls, which are inline functions of its headers. All in one thread
 * (PTL_PROGRESS=inline), over a loop. Time goes a fixed step with every look at the clock, as in
 * puts.c.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

#define CLOCK_STEP 50
#define BYTES      8
#define WINDOW     64
#define TAG        7
#define NAME_BYTES 64

static struct side {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t other;
	char name[NAME_BYTES];
	char out[BYTES], in[BYTES];
} sides[2];

uint64_t __wrap_glue_now(void *context);
struct fi_provider *fi_prov_ini(void);

uint64_t __wrap_glue_now(void *context)
{
	static uint64_t time = 1000000000;

	(void)context;
	return time += CLOCK_STEP;
}

static void need(ssize_t code, const char *function)
{
	if (code >= 0)
		return;
	fprintf(stderr, "messages_fi: %s: %s\n", function, fi_strerror((int)-code));
	exit(EXIT_FAILURE);
}

static struct fi_info *offer_take(const struct fi_provider *provider)
{
	struct fi_info *hints = fi_allocinfo(), *offer = NULL;

	if (!hints)
		exit(EXIT_FAILURE);
	hints->caps = FI_TAGGED;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	need(provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &offer), "fi_getinfo");
	fi_freeinfo(hints);
	return offer;
}

static void side_open(struct side *side, struct fid_domain *domain, struct fi_info *offer)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG};
	size_t length = sizeof(side->name);

	need(fi_av_open(domain, &av, &side->av, NULL), "fi_av_open");
	need(fi_cq_open(domain, &cq, &side->cq, NULL), "fi_cq_open");
	need(fi_endpoint(domain, offer, &side->ep, NULL), "fi_endpoint");
	need(fi_ep_bind(side->ep, &side->av->fid, 0), "fi_ep_bind");
	need(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	need(fi_enable(side->ep), "fi_enable");
	need(fi_getname(&side->ep->fid, side->name, &length), "fi_getname");
}

static void sides_open(void)
{
	struct fi_provider *provider = fi_prov_ini();
	struct fi_info *offer = offer_take(provider);
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	need(provider->fabric(offer->fabric_attr, &fabric, NULL), "fi_fabric");
	need(fi_domain(fabric, offer, &domain, NULL), "fi_domain");
	side_open(&sides[0], domain, offer);
	side_open(&sides[1], domain, offer);
	for (unsigned n = 0; n < 2; n++)
		if (fi_av_insert(sides[n].av, sides[1 - n].name, 1, &sides[n].other, 0, NULL) != 1)
			need(-FI_EINVAL, "fi_av_insert");
}

static void post(struct side *side)
{
	need(fi_trecv(side->ep, side->in, BYTES, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL), "fi_trecv");
}

static void inject(struct side *side)
{
	need(fi_tinject(side->ep, side->out, BYTES, side->other, TAG), "fi_tinject");
}

/* Waits for messages. The other end is driven, too, where it has more to send than the way takes,
 * or where the two get to know each other. */
static void await(struct side *side, struct side *other, unsigned count)
{
	struct fi_cq_msg_entry entries[WINDOW];

	while (count > 0) {
		ssize_t came = fi_cq_read(side->cq, entries, count);

		if (came > 0)
			count -= (unsigned)came;
		else if (came != -FI_EAGAIN)
			need(came, "fi_cq_read");
		else if (other)
			(void)fi_cq_read(other->cq, NULL, 0);
	}
}

static void meet(void)
{
	for (unsigned n = 0; n < 2; n++) {
		post(&sides[1 - n]);
		inject(&sides[n]);
		await(&sides[1 - n], &sides[n], 1);
	}
}

static void answered(unsigned long count)
{
	post(&sides[1]);
	for (unsigned long i = 0; i < count; i++) {
		struct side *from = &sides[i % 2], *to = &sides[1 - i % 2];

		inject(from);
		post(from);
		await(to, NULL, 1);
	}
}

static void windows(unsigned long count)
{
	for (unsigned long i = 0; i < count; i += WINDOW) {
		for (unsigned n = 0; n < WINDOW; n++)
			post(&sides[1]);
		for (unsigned n = 0; n < WINDOW; n++)
			inject(&sides[0]);
		await(&sides[1], &sides[0], WINDOW);
	}
}

int main(int argc, char **argv)
{
	unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (argc != 3 || (strcmp(argv[1], "fi") != 0 && strcmp(argv[1], "fiwindow") != 0)) {
		fprintf(stderr, "Usage: messages_fi fi|fiwindow N\n");
		return 2;
	}
	setenv("PTL_IFACE_NAME", "loop:fi", 0);
	setenv("PTL_PROGRESS", "inline", 1);
	sides_open();
	meet();
	if (strcmp(argv[1], "fi") == 0)
		answered(count);
	else
		windows(count);
	_Exit(EXIT_SUCCESS);
}
