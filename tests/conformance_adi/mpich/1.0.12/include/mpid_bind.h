/* SPDX-License-Identifier: BSD-3-Clause */
/* mpid_bind.h - a device's bindings: this one has none. */
