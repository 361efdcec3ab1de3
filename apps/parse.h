/* SPDX-License-Identifier: BSD-3-Clause */
/* parse.h - what the programs share of reading numbers, sizes, times and process ids. Each takes
 * all of a text, and answers false, leaving *value alone, when that is something else or too
 * large. */
#ifndef APPS_PARSE_H
#define APPS_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include <portals.h>

/* Decimal digits up to max: no sign, no blank. */
bool parse_number(const char *text, uint64_t max, uint64_t *value);
/* A number, perhaps with K, M, G or T: 1024, its square, ... */
bool parse_size(const char *text, uint64_t max, uint64_t *value);
/* Seconds, or a number with ns, us, ms or s; in nanoseconds, at most a day. */
bool parse_time(const char *text, uint64_t *value);
/* Bits a second: a number, perhaps with k, M, G or T: 1000, its square, ..., as rates of networks
 * are written. Not 0. */
bool parse_rate(const char *text, uint64_t *value);
/* "NID:PID", the node id a number or four with dots. */
bool parse_process(const char *text, ptl_process_id_t *value);

/* A process as parse_process() takes it; its node is four numbers with dots where node ids are
 * addresses. */
struct process_text {
	char text[32];
};
struct process_text process_text(ptl_process_id_t id);

/* The value of a setting in the environment, from its first character that is no blank; NULL: it is
 * not set, or blank, which is the same. */
const char *parse_setting(const char *name);

/* The same from the front of a text, which is moved on: readers of lists call these. */
bool parse_digits(const char **text, uint64_t max, uint64_t *value);
bool parse_sized(const char **text, uint64_t max, uint64_t *value);

#endif
