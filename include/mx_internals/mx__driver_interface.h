/* SPDX-License-Identifier: BSD-3-Clause */
/* mx__driver_interface.h - the functions of mx_io.h, and NULL, under another name. */
#ifndef MX__DRIVER_INTERFACE_H
#define MX__DRIVER_INTERFACE_H

#include <stddef.h>

#include <mx_io.h>

#endif
