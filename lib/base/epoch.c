/* SPDX-License-Identifier: BSD-3-Clause */
/* epoch.c - see epoch.h. */
#include <base/epoch.h>

_Atomic uint64_t epoch = 1;
