/* SPDX-License-Identifier: BSD-3-Clause */
/* fixture.c - see fixture.h. */
#include "fixture.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "../kernel_names.h"
#include "../nap.h"

#define HANG_SECONDS 60
#define LOOKS        1000 /* before a reader naps */

struct fid_fabric *fabric;
struct fid_domain *domain;
struct fi_info *info;
struct side sides[2];

struct fi_info *offer_of(const struct fi_info *hints)
{
	struct fi_info *offered = NULL;
	int result = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &offered);

	if (result == -FI_ENODATA)
		return NULL;
	assert_ok(result);
	assert_string_equal(offered->fabric_attr->prov_name, "postern");
	return offered;
}

struct fi_info *hints_make(const struct wish *wish)
{
	struct fi_info *hints = fi_allocinfo();

	assert_non_null(hints);
	hints->caps = wish->caps;
	hints->mode = wish->mode;
	hints->tx_attr->op_flags = wish->tx_flags;
	hints->rx_attr->op_flags = wish->rx_flags;
	hints->tx_attr->msg_order = wish->orders;
	hints->tx_attr->size = wish->tx_size;
	hints->rx_attr->size = wish->rx_size;
	hints->domain_attr->threading = wish->threading;
	hints->domain_attr->control_progress = wish->progress;
	hints->domain_attr->data_progress = wish->progress;
	hints->domain_attr->mr_mode = wish->mr_mode;
	hints->fabric_attr->prov_name = strdup("postern");
	return hints;
}

void side_open(struct side *side, const struct wish *wish)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = wish->format ? wish->format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = wish->wait};
	size_t length = sizeof(side->name);

	assert_ok(fi_av_open(domain, &av, &side->av, NULL));
	assert_ok(fi_cq_open(domain, &cq, &side->cq, NULL));
	assert_ok(fi_endpoint(domain, info, &side->ep, NULL));
	assert_ok(fi_ep_bind(side->ep, &side->av->fid, 0));
	assert_ok(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV | wish->bind));
	assert_ok(fi_enable(side->ep));
	assert_ok(fi_getname(&side->ep->fid, side->name, &length));
	assert_int_equal(length, sizeof(side->name));
}

void side_close(struct side *side)
{
	assert_ok(fi_close(&side->ep->fid));
	assert_ok(fi_close(&side->cq->fid));
	assert_ok(fi_close(&side->av->fid));
}

void info_load(const struct wish *wish)
{
	struct fi_info *hints = hints_make(wish);

	info = offer_of(hints);
	fi_freeinfo(hints);
	assert_non_null(info);
}

static void domain_make(void)
{
	assert_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
	assert_ok(fi_domain(fabric, info, &domain, NULL));
}

static void domain_end(void)
{
	assert_ok(fi_close(&domain->fid));
	assert_ok(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

void single_open(struct side *side)
{
	domain_make();
	side_open(side, &(struct wish){0});
}

void single_close(struct side *side)
{
	side_close(side);
	domain_end();
}

void pair_open(const struct wish *wish)
{
	info_load(wish);
	domain_make();
	for (unsigned i = 0; i < 2; i++)
		side_open(&sides[i], wish);
	for (unsigned i = 0; i < 2 && !wish->strangers; i++) {
		assert_int_equal(
			fi_av_insert(sides[i].av, sides[1 - i].name, 1, &sides[i].other, 0, NULL),
			1);
		assert_int_equal(
			fi_av_insert(sides[i].av, sides[i].name, 1, &sides[i].self, 0, NULL), 1);
	}
}

void pair_close(void)
{
	for (unsigned i = 0; i < 2; i++)
		side_close(&sides[i]);
	domain_end();
}

int pair_closed(void **state)
{
	(void)state;
	pair_close();
	return 0;
}

pid_t peer_fork(void)
{
	const pid_t self = getpid(), child = fork();

	if (child == 0) {
		assert_int_equal(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
		if (getppid() != self)
			_exit(1);
	}
	return child;
}

void bytes_fill(char *to, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		to[i] = (char)(seed + i * 7 + (i >> 8));
}

/* Of whichever format. A reader that waits for long, as for the end of a dead peer, naps. */
static ssize_t both_read(struct side *side, void *entry, fi_addr_t *source)
{
	const time_t end = time(NULL) + HANG_SECONDS;
	unsigned looks = 0;
	ssize_t result;

	do {
		if (++looks > LOOKS)
			nap();
		for (unsigned i = 0; i < 2; i++)
			if (&sides[i] != side && sides[i].cq)
				(void)fi_cq_read(sides[i].cq, NULL, 0);
		result = fi_cq_readfrom(side->cq, entry, 1, source);
	} while (result == -FI_EAGAIN && time(NULL) < end);
	return result;
}

void completion_take(struct side *side, struct fi_cq_tagged_entry *entry, fi_addr_t *source)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_tagged_entry unused;
	fi_addr_t from;
	ssize_t result = both_read(side, entry ? entry : &unused, source ? source : &from);

	if (result == -FI_EAVAIL) {
		assert_int_equal(fi_cq_readerr(side->cq, &error, 0), 1);
		fail_msg("an error instead of a completion: %s", fi_strerror(error.err));
	}
	assert_int_equal(result, 1);
}

void error_take(struct side *side, struct fi_cq_err_entry *entry)
{
	struct fi_cq_tagged_entry unused;

	assert_int_equal(both_read(side, &unused, NULL), -FI_EAVAIL);
	memset(entry, 0, sizeof(*entry));
	assert_int_equal(fi_cq_readerr(side->cq, entry, 0), 1);
}

void done_take(uint64_t flags, const void *context)
{
	struct fi_cq_tagged_entry entry = {0};

	completion_take(&sides[0], &entry, NULL);
	assert_int_equal(entry.flags, flags);
	assert_ptr_equal(entry.op_context, context);
}

void failed_take(int err, uint64_t flags, const void *context)
{
	struct fi_cq_err_entry error;

	error_take(&sides[0], &error);
	assert_int_equal(error.err, err);
	assert_int_equal(error.flags, flags);
	assert_ptr_equal(error.op_context, context);
}

void nothing_completes(struct side *side)
{
	struct fi_cq_tagged_entry entry;

	for (unsigned i = 0; i < 200; i++)
		for (unsigned n = 0; n < 2; n++)
			if (&sides[n] == side)
				assert_int_equal(fi_cq_read(side->cq, &entry, 1), -FI_EAGAIN);
			else
				(void)fi_cq_read(sides[n].cq, NULL, 0);
}

void kept_await(struct side *side, uint64_t tag)
{
	const struct fi_msg_tagged msg = {.tag = tag, .addr = FI_ADDR_UNSPEC, .context = side};
	const time_t end = time(NULL) + HANG_SECONDS;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;

	for (;;) {
		assert_ok(fi_trecvmsg(side->ep, &msg, FI_PEEK | FI_COMPLETION));
		if (both_read(side, &entry, NULL) == 1)
			break;
		memset(&error, 0, sizeof(error));
		assert_int_equal(fi_cq_readerr(side->cq, &error, 0), 1);
		assert_int_equal(error.err, FI_ENOMSG);
		assert_true(time(NULL) < end);
	}
	assert_ptr_equal(entry.op_context, side);
}
