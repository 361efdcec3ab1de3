/* SPDX-License-Identifier: BSD-3-Clause */
/* records.h - results for programs: one JSON object, or CSV. */
#ifndef PERF_RECORDS_H
#define PERF_RECORDS_H

#include "machine.h"
#include "result.h"

void json_machine(const struct machine *machine, ptl_process_id_t self, ptl_process_id_t peer);
/* first: of all; bare: NULL without. */
void json_result(const struct result *result, const struct result *bare, bool first);

void csv_machine(const struct machine *machine, ptl_process_id_t self, ptl_process_id_t peer);
void csv_result(const struct result *result, const struct result *bare);

#endif
