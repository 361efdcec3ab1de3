/* SPDX-License-Identifier: BSD-3-Clause */
/* mpiimpl.h - all that the layer sees, in the order of releases 1.0.8 and 1.0.9. */
#ifndef MPIIMPL_INCLUDE
#define MPIIMPL_INCLUDE

#include "mpi.h"
#include "patchlevel.h"
#include "dmpiatom.h"
#include "mpi_bc.h"
#include "mpir.h"
#include "mpid_bind.h"

#endif
