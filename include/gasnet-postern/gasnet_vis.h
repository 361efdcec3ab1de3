/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnet_vis.h - puts and gets of many pieces of memory: by lists of ranges, by lists of addresses,
 * by strides. gasnet.h includes it.
 */
#ifndef GASNET_POSTERN_VIS_H
#define GASNET_POSTERN_VIS_H

#include "gasnet.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
	void *addr;
	size_t len;
} gasnet_memvec_t;

/* --- Transfers of pieces
 * The remote pieces are in the segment of one rank, which may be this one. The pieces that are
 * written must not overlap. Bytes are copied in the order of the pieces. Source and destination may
 * have pieces of different sizes, but must have the same number of bytes in all. A function with nb
 * in its name returns a handle. A function with nbi in its name begins an implicit operation of the
 * thread. The other functions return when the transfer is complete. The program may change the
 * lists and strides after the call. It may change the source of a put once the put is
 * synchronised. */

/* Puts ranges of memory into ranges of the segment of a rank.
 *   dstcount, dstlist  the remote ranges
 *   srccount, srclist  the local ranges, with the same number of bytes */
GASNET_FUNCTION void gasnet_putv_bulk(gasnet_node_t node, size_t dstcount,
	gasnet_memvec_t const dstlist[], size_t srccount, gasnet_memvec_t const srclist[]);
GASNET_FUNCTION gasnet_handle_t gasnet_putv_nb_bulk(gasnet_node_t node, size_t dstcount,
	gasnet_memvec_t const dstlist[], size_t srccount, gasnet_memvec_t const srclist[]);
GASNET_FUNCTION void gasnet_putv_nbi_bulk(gasnet_node_t node, size_t dstcount,
	gasnet_memvec_t const dstlist[], size_t srccount, gasnet_memvec_t const srclist[]);

/* Gets ranges of the segment of a rank into ranges of memory.
 *   dstcount, dstlist  the local ranges
 *   srccount, srclist  the remote ranges, with the same number of bytes */
GASNET_FUNCTION void gasnet_getv_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
	gasnet_node_t node, size_t srccount, gasnet_memvec_t const srclist[]);
GASNET_FUNCTION gasnet_handle_t gasnet_getv_nb_bulk(size_t dstcount,
	gasnet_memvec_t const dstlist[], gasnet_node_t node, size_t srccount,
	gasnet_memvec_t const srclist[]);
GASNET_FUNCTION void gasnet_getv_nbi_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
	gasnet_node_t node, size_t srccount, gasnet_memvec_t const srclist[]);

/* Puts pieces of memory to addresses in the segment of a rank. All pieces of the source have one
 * length, and so have all pieces of the destination.
 *   dstcount, dstlist, dstlen  the remote addresses, and the length of each piece
 *   srccount, srclist, srclen  the local addresses, and the length of each piece */
GASNET_FUNCTION void gasnet_puti_bulk(gasnet_node_t node, size_t dstcount, void *const dstlist[],
	size_t dstlen, size_t srccount, void *const srclist[], size_t srclen);
GASNET_FUNCTION gasnet_handle_t gasnet_puti_nb_bulk(gasnet_node_t node, size_t dstcount,
	void *const dstlist[], size_t dstlen, size_t srccount, void *const srclist[],
	size_t srclen);
GASNET_FUNCTION void gasnet_puti_nbi_bulk(gasnet_node_t node, size_t dstcount,
	void *const dstlist[], size_t dstlen, size_t srccount, void *const srclist[],
	size_t srclen);

/* Gets pieces from addresses in the segment of a rank. All pieces of the source have one length,
 * and so have all pieces of the destination.
 *   dstcount, dstlist, dstlen  the local addresses, and the length of each piece
 *   srccount, srclist, srclen  the remote addresses, and the length of each piece */
GASNET_FUNCTION void gasnet_geti_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
	gasnet_node_t node, size_t srccount, void *const srclist[], size_t srclen);
GASNET_FUNCTION gasnet_handle_t gasnet_geti_nb_bulk(size_t dstcount, void *const dstlist[],
	size_t dstlen, gasnet_node_t node, size_t srccount, void *const srclist[], size_t srclen);
GASNET_FUNCTION void gasnet_geti_nbi_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
	gasnet_node_t node, size_t srccount, void *const srclist[], size_t srclen);

/* Puts a part of an array, of any number of dimensions, into an array in the segment of a rank.
 *   dstaddr, dststrides    the first remote byte, and for each level the distance between its
 *                          pieces, in bytes
 *   srcaddr, srcstrides    the same for the local array
 *   count, stridelevels    a piece of level 0 is count[0] contiguous bytes. A piece of level
 *                          n, up to stridelevels, is count[n] pieces of level n - 1, which begin
 *                          strides[n - 1] bytes apart */
GASNET_FUNCTION void gasnet_puts_bulk(gasnet_node_t node, void *dstaddr, const size_t dststrides[],
	void *srcaddr, const size_t srcstrides[], const size_t count[], size_t stridelevels);
GASNET_FUNCTION gasnet_handle_t gasnet_puts_nb_bulk(gasnet_node_t node, void *dstaddr,
	const size_t dststrides[], void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels);
GASNET_FUNCTION void gasnet_puts_nbi_bulk(gasnet_node_t node, void *dstaddr,
	const size_t dststrides[], void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels);

/* Gets a part of an array, of any number of dimensions, from an array in the segment of a rank.
 *   dstaddr, dststrides    the first local byte, and for each level the distance between its
 *                          pieces, in bytes
 *   srcaddr, srcstrides    the same for the remote array
 *   count, stridelevels    a piece of level 0 is count[0] contiguous bytes. A piece of level
 *                          n, up to stridelevels, is count[n] pieces of level n - 1, which begin
 *                          strides[n - 1] bytes apart */
GASNET_FUNCTION void gasnet_gets_bulk(void *dstaddr, const size_t dststrides[], gasnet_node_t node,
	void *srcaddr, const size_t srcstrides[], const size_t count[], size_t stridelevels);
GASNET_FUNCTION gasnet_handle_t gasnet_gets_nb_bulk(void *dstaddr, const size_t dststrides[],
	gasnet_node_t node, void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels);
GASNET_FUNCTION void gasnet_gets_nbi_bulk(void *dstaddr, const size_t dststrides[],
	gasnet_node_t node, void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels);

#ifdef __cplusplus
}
#endif

#endif
