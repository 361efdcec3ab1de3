/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_bc.h - constants of the layer. */
#ifndef MPI_BC_INCLUDE
#define MPI_BC_INCLUDE

#define MPIR_MSG_CANCELLED (-3)

#endif
