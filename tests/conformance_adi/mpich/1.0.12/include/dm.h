/* SPDX-License-Identifier: BSD-3-Clause */
/* dm.h - a device's types, which the layer wants from here. */
#include "mpid.h"
