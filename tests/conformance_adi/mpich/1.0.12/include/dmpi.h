/* SPDX-License-Identifier: BSD-3-Clause */
/* dmpi.h - requests, of which a part is the device's. */
#ifndef DMPI_INCLUDE
#define DMPI_INCLUDE

#include "dm.h"

/* What requests of both kinds begin with. */
#define MPIR_COMMON_FIELDS                                                                         \
	int handle_type;                                                                           \
	MPIR_CONTEXT contextid;                                                                    \
	int tag;                                                                                   \
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
	int errval;
	MPID_RHANDLE dev_rhandle;
} MPIR_RHANDLE;

union MPIR_HANDLE {
	MPIR_COMMON chandle;
	MPIR_SHANDLE shandle;
	MPIR_RHANDLE rhandle;
};

/* A list that threads share. */
typedef struct {
	int length;
	MPID_THREAD_DS_LOCK_DECLARE
} MPIR_QUEUE;

extern MPIR_QUEUE MPIR_posted_recvs;

#endif
