/* SPDX-License-Identifier: BSD-3-Clause */
/* table.h - what processes_look() found, for people and for programs. */
#ifndef TOP_TABLE_H
#define TOP_TABLE_H

#include "process.h"

/* Of the terminal; 0: without bound. */
struct room {
	unsigned width;  /* columns: lines are cut there */
	unsigned height; /* lines, also for the headings: the last one counts the rows left out */
};

/* Prints one line for each port of a process, the busiest first. */
void table_print(struct room room);

/* Prints one line for each pair of a process of this user with another process of its node. */
void table_print_pairs(struct room room);

/* Prints one line for each counter that operations or threads wait for. */
void table_print_counters(struct room room);

/* Prints one JSON object in one line, with the nodes or the counters of all interfaces if they are
 * to be shown. */
void table_print_json(enum view view);

#endif
