/* SPDX-License-Identifier: BSD-3-Clause */
/* mx_io.h - what MX programs ask of a board, without an endpoint. */
#ifndef MX_IO_H
#define MX_IO_H

#include <stddef.h>

#include <myriexpress.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int mx_endpt_handle_t; /* names a board */
#define MX__INVALID_HANDLE (-1)

typedef struct {
	uint32_t board_number;
	uint8_t mapper_mac[6]; /* equal on all hosts of a network */
	uint16_t iport;
	uint32_t map_version;
	uint32_t num_hosts;
	uint32_t network_configured;
	uint32_t routes_valid;
	uint32_t level;
	uint32_t flags;
} mx_mapper_state_t;

/* A handle for a board of this host.
 * Returns
 *   MX_BOARD_UNKNOWN  There is no such board.
 *   MX_BAD_INFO_VAL   handle is NULL. */
MX_FUNCTION mx_return_t mx_open_board(int board, mx_endpt_handle_t *handle);

/* The state of the network of a board.
 * Returns
 *   MX_BOARD_UNKNOWN  handle names no board.
 *   MX_BAD_INFO_VAL   state is NULL. */
MX_FUNCTION mx_return_t mx__get_mapper_state(mx_endpt_handle_t handle, mx_mapper_state_t *state);

/* Tells that memory goes away. Nothing of it is kept here, so there is nothing to do; may be
 * called by a replacement of free().
 * Returns 0. */
MX_FUNCTION int mx__regcache_clean(void *address, size_t length);

#ifdef __cplusplus
}
#endif

#endif
