/* SPDX-License-Identifier: BSD-3-Clause */
/* patchlevel.h - which release this tree has the shape of. */
#define PATCHLEVEL 12
