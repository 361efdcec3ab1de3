/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnet_coll.h - blocking collectives of all ranks. gasnet.h includes it.
 */
#ifndef GASNET_POSTERN_COLL_H
#define GASNET_POSTERN_COLL_H

#include "gasnet.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t gasnet_image_t; /* each rank has one image */
typedef struct gasnet_postern_team *gasnet_team_handle_t;
#define GASNET_TEAM_ALL ((gasnet_team_handle_t)0)

/* Means nothing: there are no reductions. */
typedef struct {
	void (*fnptr)(void);
	unsigned int flags;
} gasnet_coll_fn_entry_t;

/* When a collective may read (IN) and write (OUT) a rank's memory. NOSYNC: at any time; MYSYNC:
 * while the rank is in the call; ALLSYNC: while all ranks are in it. Give one IN and one OUT.
 * NOSYNC has the effect of MYSYNC here. */
#define GASNET_COLL_IN_NOSYNC   1
#define GASNET_COLL_IN_MYSYNC   2
#define GASNET_COLL_IN_ALLSYNC  4
#define GASNET_COLL_OUT_NOSYNC  8
#define GASNET_COLL_OUT_MYSYNC  16
#define GASNET_COLL_OUT_ALLSYNC 32
/* Whether all ranks give all addresses, or each its own. Both have the same effect. */
#define GASNET_COLL_SINGLE 64
#define GASNET_COLL_LOCAL  128
/* Means nothing: memory may be anywhere. */
#define GASNET_COLL_DST_IN_SEGMENT 1024
#define GASNET_COLL_SRC_IN_SEGMENT 2048

/* --- Collectives
 * All ranks call them in the same order and with the same nbytes and flags, one thread of each
 * rank. A call returns when this rank's part is complete. team is GASNET_TEAM_ALL. flags has one of
 * GASNET_COLL_IN_NOSYNC, _IN_MYSYNC and _IN_ALLSYNC, one of GASNET_COLL_OUT_NOSYNC, _OUT_MYSYNC and
 * _OUT_ALLSYNC, and GASNET_COLL_SINGLE or _LOCAL. With _IN_ALLSYNC no data moves before all ranks
 * have made the call; with _OUT_ALLSYNC no rank returns before all ranks are done. Memory may be
 * anywhere. */

/* Prepares the collectives of a rank.
 *   images, my_image  NULL and 0: one image for each rank
 *   table, count      a table of functions, which is ignored
 *   flags             0 */
GASNET_FUNCTION void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t my_image,
	gasnet_coll_fn_entry_t table[], size_t count, int flags);

/* Copies the data of one rank to all ranks.
 *   dst          the destination of nbytes, in each rank
 *   root         the rank that has the data
 *   src, nbytes  the data, which may be at dst */
GASNET_FUNCTION void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst,
	gasnet_image_t root, void *src, size_t nbytes, int flags);

/* Copies a part of the data of one rank to each rank.
 *   dst          the destination of nbytes, in each rank
 *   root         the rank that has the data
 *   src, nbytes  the data: nbytes for each rank */
GASNET_FUNCTION void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t root,
	void *src, size_t nbytes, int flags);

/* Copies the data of all ranks to one rank.
 *   root         that rank
 *   dst          the destination at root: nbytes for each rank, in the order of ranks
 *   src, nbytes  the bytes of each rank */
GASNET_FUNCTION void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t root, void *dst,
	void *src, size_t nbytes, int flags);

/* Copies the data of all ranks to all ranks.
 *   dst          the destination: nbytes for each rank, in the order of ranks
 *   src, nbytes  the bytes of each rank */
GASNET_FUNCTION void gasnet_coll_gather_all(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);

/* Copies to each rank a part of the data of each rank.
 *   dst          the destination: nbytes for each rank, in the order of ranks
 *   src, nbytes  the bytes of each rank: nbytes for each rank */
GASNET_FUNCTION void gasnet_coll_exchange(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);

#ifdef __cplusplus
}
#endif

#endif
