/* SPDX-License-Identifier: BSD-3-Clause */
/* table.h - results as tables, in the way of the OSU benchmarks: a line for each size, comments
 * with #. */
#ifndef PERF_TABLE_H
#define PERF_TABLE_H

#include "machine.h"
#include "result.h"

/* Which columns there are. */
struct columns {
	bool bare;
	bool shape; /* of the match list */
	bool pairs;
	bool runs; /* the lowest and the highest of several */
	bool peers;
};

void table_machine(const struct machine *machine, ptl_process_id_t self, ptl_process_id_t peer);
/* A new table: of a trial's measure, under its faults. */
void table_begin(const struct columns *columns, const struct trial *trial);
/* bare: NULL without. */
void table_row(
	const struct columns *columns, const struct result *result, const struct result *bare);

#endif
