/* SPDX-License-Identifier: BSD-3-Clause */
/* board.h - how a board of MX is called: by its NIC id, and by its host's name. */
#ifndef MX_BOARD_H
#define MX_BOARD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/environment.h>

/* A NIC id is the node id with these 16 bits above it: it has 48 bits, as mx_pingpong wants, and is
 * never 0. */
#define NIC_ID_HIGH UINT64_C(0x0250)

static inline uint64_t nic_id_of(uint32_t nid)
{
	return NIC_ID_HIGH << 32 | nid;
}

/* Returns false if no NIC has that id. */
static inline bool nic_id_nid(uint64_t nic_id, uint32_t *nid)
{
	*nid = (uint32_t)nic_id;
	return nic_id >> 32 == NIC_ID_HIGH;
}

/* This host's name, by PTL_MX_HOSTNAME or by the system, as much as there is room for. Returns its
 * length. */
static inline size_t hostname_own(char *host, size_t size)
{
	const char *wanted = environment_text("PTL_MX_HOSTNAME");

	if (wanted && *wanted)
		(void)snprintf(host, size, "%s", wanted);
	else if (gethostname(host, size) != 0)
		(void)snprintf(host, size, "localhost");
	host[size - 1] = '\0';
	return strlen(host);
}

#endif
