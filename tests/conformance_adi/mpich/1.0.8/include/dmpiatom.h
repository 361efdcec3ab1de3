/* SPDX-License-Identifier: BSD-3-Clause */
/* dmpiatom.h - the layer's types that both halves know. Whoever includes it has mpi.h. */
#ifndef DMPIATOM_INCLUDE
#define DMPIATOM_INCLUDE

typedef unsigned long MPIR_CONTEXT;
enum { MPIR_SEND, MPIR_RECV };
/* This needs what mpi.h says. */
typedef MPI_Request MPIR_QUEUED;

#endif
