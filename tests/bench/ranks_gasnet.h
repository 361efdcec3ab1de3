/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks_gasnet.h - what messages_gasnet.c has of a rank, and a rank of it. */
#ifndef BENCH_RANKS_GASNET_H
#define BENCH_RANKS_GASNET_H

#include <portals4.h>

#define BENCH_API __attribute__((visibility("default")))

/* A rank's, of which the program loads two copies. */
struct bench_rank {
	void (*attach)(void);
	void (*request)(int asks); /* a short message; asks: its handler replies */
	void (*poll)(void);
	void (*put)(void);           /* 8 bytes, until they are acknowledged */
	unsigned long (*came)(void); /* messages */
};
#define BENCH_RANK "bench_rank"

/* The program's: what PtlNIInit() is to the calling thread's rank. */
BENCH_API int bench_ni_init(ptl_interface_t interface, unsigned options, ptl_pid_t pid,
	const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *handle);

#endif
