/* SPDX-License-Identifier: BSD-3-Clause */
/* dmpiatom.h - the layer's types that both halves know. */
#ifndef DMPIATOM_INCLUDE
#define DMPIATOM_INCLUDE

#include "mpi.h"

typedef unsigned long MPIR_CONTEXT;
enum { MPIR_SEND, MPIR_RECV };

#endif
