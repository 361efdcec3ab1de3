/* SPDX-License-Identifier: BSD-3-Clause */
/* table.h - what processes_look() found, for people and for programs. */
#ifndef TOP_TABLE_H
#define TOP_TABLE_H

#include "process.h"

/* Prints one line for each interface, the busiest first; lines are cut at `width` columns (0:
 * never). */
void table_print(unsigned width);

/* Prints one line for each pair of a process of this user with another process of its node. */
void table_print_pairs(unsigned width);

/* Prints one line for each counter that operations or threads wait for. */
void table_print_counters(unsigned width);

/* Prints one JSON object in one line, with the nodes or the counters of all interfaces if they are
 * to be shown. */
void table_print_json(enum view view);

#endif
