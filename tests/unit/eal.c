/* SPDX-License-Identifier: BSD-3-Clause */
/* eal.c - see eal.h. */
#include "eal.h"

#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>

void eal_start(void)
{
	static const char *const arguments[] = {"test", "--no-huge", "--no-shconf", "-m", "256",
		"--no-pci", "--no-telemetry", "-l", "0", "--log-level=error"};
	enum { COUNT = sizeof(arguments) / sizeof(arguments[0]) };
	static char copies[COUNT][32];
	static char *argv[COUNT + 1];
	static int started;
	int i;

	if (started)
		return;
	for (i = 0; i < COUNT; i++) {
		snprintf(copies[i], sizeof(copies[i]), "%s", arguments[i]);
		argv[i] = copies[i];
	}
	if (rte_eal_init(COUNT, argv) < 0) {
		fprintf(stderr, "EAL did not start\n");
		exit(1);
	}
	started = 1;
}

struct rte_mempool *eal_pool(const char *name, unsigned count, uint32_t frame_size)
{
	return rte_pktmbuf_pool_create(
		name, count, 0, 0, (uint16_t)(RTE_PKTMBUF_HEADROOM + frame_size), -1);
}
