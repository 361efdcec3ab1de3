/* SPDX-License-Identifier: BSD-3-Clause */
/* mpiimpl.h - what an upper layer of MPICH 1.0's time has, as far as its device sees it: requests
 * whose fields have that layer's names. mpich-1.0.h takes the place of the layer's mpid.h. */
#ifndef MPIIMPL_H
#define MPIIMPL_H

#include "mpich-1.0.h"

enum { MPIR_SEND, MPIR_RECV };

typedef struct {
	int count, source, tag, error;
} MPI_Status;

/* What requests of both kinds begin with. */
#define MPIR_COMMON_FIELDS                                                                         \
	int handle_type;                                                                           \
	int contextid, tag;                                                                        \
	int completer;                                                                             \
	int persistent

typedef struct {
	MPIR_COMMON_FIELDS;
} MPIR_COMMON;

typedef struct {
	MPIR_COMMON_FIELDS;
	int dest, lrank;
	MPID_SHANDLE dev_shandle;
} MPIR_SHANDLE;

typedef struct {
	MPIR_COMMON_FIELDS;
	int source, totallen;
#ifndef A_MPICH_NO_ERRVAL
	int errval;
#endif
	MPID_RHANDLE dev_rhandle;
} MPIR_RHANDLE;

typedef union {
	MPIR_COMMON chandle;
	MPIR_SHANDLE shandle;
	MPIR_RHANDLE rhandle;
} * MPI_Request;

#endif
