/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.c - one of a job's processes, each of which sends a message to each, by libfabric.
 * With FABRIC=write in the environment it writes into the memory of each instead.
 * fabric.py is the exchange of their addresses, and counts who asks everybody.
 *
 *     fabric COUNT [BALLAST]
 *
 * BALLAST: so many addresses more are in the vector, of processes that are nowhere. It says "name"
 * and its address in hexadecimal digits; hears COUNT addresses, a line each; says "sent" when all
 * its sends and receives have completed, and goes on until it hears another line; says "memory" and
 * how many kilobytes the vector took, and ends.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "../kernel_names.h"
#include "books.h"

#define NAME_BYTES 32
#define PID_AT     12 /* of an address: the process id */
#define COUNT_MOST 64
#define KEY        7

static struct {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr; /* NULL: none */
} me;

static void need(int code, const char *call)
{
	if (code == 0)
		return;
	fprintf(stderr, "fabric: %s: %s\n", call, fi_strerror(-code));
	exit(1);
}

static bool writes(void)
{
	const char *how = getenv("FABRIC");

	return how && strcmp(how, "write") == 0;
}

static void endpoint_open(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};

	hints->caps = writes() ? FI_RMA : FI_TAGGED;
	hints->fabric_attr->prov_name = strdup("postern");
	need(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	need(fi_fabric(info->fabric_attr, &me.fabric, NULL), "fi_fabric");
	need(fi_domain(me.fabric, info, &me.domain, NULL), "fi_domain");
	need(fi_av_open(me.domain, &av, &me.av, NULL), "fi_av_open");
	need(fi_cq_open(me.domain, &cq, &me.cq, NULL), "fi_cq_open");
	need(fi_endpoint(me.domain, info, &me.ep, NULL), "fi_endpoint");
	need(fi_ep_bind(me.ep, &me.av->fid, 0), "fi_ep_bind");
	need(fi_ep_bind(me.ep, &me.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	need(fi_enable(me.ep), "fi_enable");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void name_tell(const unsigned char name[NAME_BYTES])
{
	printf("name ");
	for (unsigned i = 0; i < NAME_BYTES; i++)
		printf("%02x", name[i]);
	puts("");
	fflush(stdout);
}

static fi_addr_t name_insert(const unsigned char name[NAME_BYTES])
{
	fi_addr_t index;

	if (fi_av_insert(me.av, name, 1, &index, 0, NULL) != 1)
		need(-FI_EHOSTUNREACH, "fi_av_insert");
	return index;
}

static fi_addr_t name_hear(void)
{
	char line[2 * NAME_BYTES + 2];
	unsigned char name[NAME_BYTES];
	unsigned byte;

	if (!fgets(line, sizeof(line), stdin))
		exit(1); /* the driver has gone */
	for (unsigned i = 0; i < NAME_BYTES; i++) {
		if (sscanf(line + 2 * (size_t)i, "%2x", &byte) != 1)
			exit(2);
		name[i] = (unsigned char)byte;
	}
	return name_insert(name);
}

/* Processes that are nowhere: the own address with other process ids. */
static void ballast_insert(const unsigned char name[NAME_BYTES], unsigned count)
{
	unsigned char other[NAME_BYTES];

	memcpy(other, name, sizeof(other));
	for (unsigned i = 0; i < count; i++) {
		other[PID_AT] = (unsigned char)i;
		other[PID_AT + 1] = (unsigned char)(i >> 8);
		other[PID_AT + 2] = (unsigned char)(i >> 16);
		other[PID_AT + 3] = 1;
		(void)name_insert(other);
	}
}

static unsigned completions_read(void)
{
	struct fi_cq_tagged_entry entries[8];
	ssize_t count = fi_cq_read(me.cq, entries, 8);

	if (count == -FI_EAGAIN)
		return 0;
	if (count < 0)
		need((int)count, "fi_cq_read");
	return (unsigned)count;
}

static void all_to_all(const fi_addr_t *others, unsigned count)
{
	static char sent[COUNT_MOST], received[COUNT_MOST];
	static struct fi_context contexts[2 * COUNT_MOST];
	unsigned ended = 0;

	for (unsigned i = 0; i < count; i++) {
		ssize_t code;

		need((int)fi_trecv(me.ep, &received[i], 1, NULL, others[i], 1, 0, &contexts[i]),
			"fi_trecv");
		while ((code = fi_tsend(me.ep, &sent[i], 1, NULL, others[i], 1,
				&contexts[count + i])) == -FI_EAGAIN)
			ended += completions_read();
		need((int)code, "fi_tsend");
	}
	while (ended < 2 * count)
		ended += completions_read();
}

static void memory_offer(void)
{
	static char memory[COUNT_MOST];

	if (writes())
		need(fi_mr_reg(me.domain, memory, sizeof(memory), FI_REMOTE_WRITE, 0, KEY, 0,
			     &me.mr, NULL),
			"fi_mr_reg");
}

static void write_to_all(const fi_addr_t *others, unsigned count)
{
	static char written[COUNT_MOST];
	static struct fi_context contexts[COUNT_MOST];
	unsigned ended = 0;

	for (unsigned i = 0; i < count; i++) {
		ssize_t code;

		while ((code = fi_write(me.ep, &written[i], 1, NULL, others[i], 0, KEY,
				&contexts[i])) == -FI_EAGAIN)
			ended += completions_read();
		need((int)code, "fi_write");
	}
	while (ended < count)
		ended += completions_read();
}

/* Makes progress for the others until the driver has said something. */
static void serve(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	while (poll(&in, 1, 1) == 0)
		(void)completions_read();
}

int main(int count, char **words)
{
	fi_addr_t others[COUNT_MOST];
	unsigned char name[NAME_BYTES];
	unsigned total;
	size_t length = sizeof(name), before, after;

	if (count < 2 || (total = (unsigned)atoi(words[1])) < 1 || total > COUNT_MOST)
		return 2;
	setvbuf(stdin, NULL, _IONBF, 0); /* a line in stdio's buffer would not wake poll() */
	endpoint_open();
	memory_offer();
	need(fi_getname(&me.ep->fid, name, &length), "fi_getname");
	before = heap_kilobytes();
	ballast_insert(name, count > 2 ? (unsigned)atoi(words[2]) : 0);
	after = heap_kilobytes(); /* nobody has heard of this process yet */
	name_tell(name);
	for (unsigned i = 0; i < total; i++)
		others[i] = name_hear();
	if (writes())
		write_to_all(others, total);
	else
		all_to_all(others, total);
	puts("sent");
	fflush(stdout);
	serve();
	need(fi_close(&me.ep->fid), "fi_close");
	if (me.mr)
		need(fi_close(&me.mr->fid), "fi_close");
	need(fi_close(&me.cq->fid), "fi_close");
	need(fi_close(&me.av->fid), "fi_close");
	need(fi_close(&me.domain->fid), "fi_close");
	need(fi_close(&me.fabric->fid), "fi_close");
	printf("memory %zu\n", after - before);
	return 0;
}
