/* SPDX-License-Identifier: BSD-3-Clause */
/* mx__fops.h - the functions of mx_io.h, and NULL, under another name. */
#ifndef MX__FOPS_H
#define MX__FOPS_H

#include <stddef.h>

#include <mx_io.h>

#endif
