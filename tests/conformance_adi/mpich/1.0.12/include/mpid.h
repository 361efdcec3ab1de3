/* SPDX-License-Identifier: BSD-3-Clause */
/* mpid.h - the place of a device's header, over which the recipe of doc/adi.md copies
 * mpich-1.0.h. */
#include "mpich-1.0.h"
