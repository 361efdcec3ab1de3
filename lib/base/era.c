/* SPDX-License-Identifier: BSD-3-Clause */
/* era.c - see era.h. */
#include <base/era.h>

_Atomic uint64_t era = 1;
