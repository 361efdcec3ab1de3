/* SPDX-License-Identifier: BSD-3-Clause */
/* mx_io.h - functions of MX on boards, for which no endpoint is needed. */
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

/* Gets a handle for a board of this host.
 * Returns
 *   MX_BOARD_UNKNOWN  There is no such board.
 *   MX_BAD_INFO_VAL   handle is NULL. */
MX_FUNCTION mx_return_t mx_open_board(int board, mx_endpt_handle_t *handle);

/* Gets the state of a board's network.
 * Returns
 *   MX_BOARD_UNKNOWN  handle is not that of a board.
 *   MX_BAD_INFO_VAL   state is NULL. */
MX_FUNCTION mx_return_t mx__get_mapper_state(mx_endpt_handle_t handle, mx_mapper_state_t *state);

/* Reports that memory is about to be freed. Postern caches nothing of it, so this does nothing. A
 * replacement of free() may call it.
 * Returns 0. */
MX_FUNCTION int mx__regcache_clean(void *address, size_t length);

#ifdef __cplusplus
}
#endif

#endif
