/* SPDX-License-Identifier: BSD-3-Clause */
/* Datom.h - the elementary datatypes that both sides share: there are none, because this device
 * moves bytes and all machines of a job are alike. */
#ifndef DATOM_H
#define DATOM_H

#endif
