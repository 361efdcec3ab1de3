/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi.h - what programs of MPICH 1.0.8 see, as far as its device sees it. */
#ifndef MPI_INCLUDE
#define MPI_INCLUDE

typedef struct {
	int count, MPI_SOURCE, MPI_TAG, error;
} MPI_Status;

typedef union MPIR_HANDLE *MPI_Request;

#endif
