/* SPDX-License-Identifier: BSD-3-Clause */
/* fixture.h - two endpoints of one process, as Debian's libfabric gives them: it loads the provider
 * that was built, from FI_PROVIDER_PATH. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define NAME_BYTES 32

struct side {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	char name[NAME_BYTES];
	fi_addr_t self, other; /* in its vector */
};

/* What a test wants; zero: what is usual. */
struct wish {
	uint64_t caps, mode, tx_flags, rx_flags, bind;
	enum fi_cq_format format;
	enum fi_wait_obj wait;
	enum fi_threading threading;
	enum fi_progress progress;
	uint64_t orders; /* beside FI_ORDER_SAS */
	size_t tx_size, rx_size;
	int mr_mode;
	bool strangers; /* nobody is in the other's vector */
};

extern struct fid_fabric *fabric;
extern struct fid_domain *domain;
extern struct fi_info *info; /* of the domain */
extern struct side sides[2];

/* What fi_getinfo() says of these hints, of this provider alone; NULL: -FI_ENODATA. */
struct fi_info *offer_of(const struct fi_info *hints);
struct fi_info *hints_make(const struct wish *wish);
void pair_open(const struct wish *wish);
void pair_close(void);
int pair_closed(void **state); /* the same, as a teardown */
void bytes_fill(char *to, size_t length, unsigned seed);
/* Sets info. */
void info_load(const struct wish *wish);
/* The only side of a process, which has loaded info. */
void single_open(struct side *side);
void single_close(struct side *side);
void side_open(struct side *side, const struct wish *wish);
void side_close(struct side *side);
/* fork(), of a child that ends with this process, also if this one crashes. */
pid_t peer_fork(void);
/* The next completion of a side, while both make progress. */
void completion_take(struct side *side, struct fi_cq_tagged_entry *entry, fi_addr_t *source);
/* The next one, which is an error. */
void error_take(struct side *side, struct fi_cq_err_entry *entry);
/* The next one of side 0 is of this operation. */
void done_take(uint64_t flags, const void *context);
void failed_take(int err, uint64_t flags, const void *context);
/* Nothing has completed, and nothing does for a while. */
void nothing_completes(struct side *side);
/* A message with this tag is kept at a side. */
void kept_await(struct side *side, uint64_t tag);

#define assert_ok(call) assert_int_equal(call, 0)

#endif
