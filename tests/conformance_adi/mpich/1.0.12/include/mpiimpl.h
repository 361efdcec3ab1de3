/* SPDX-License-Identifier: BSD-3-Clause */
/* mpiimpl.h - all that the layer sees, in the order of releases 1.0.10 to 1.0.12: the device's
 * header comes last, but its types are wanted earlier, from dm.h. */
#ifndef MPIIMPL_INCLUDE
#define MPIIMPL_INCLUDE

#include "mpi.h"
#include "patchlevel.h"
#include "dmpiatom.h"
#include "mpi_bc.h"
#include "dmpi.h"
#include "mpid.h"

#endif
