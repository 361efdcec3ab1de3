/* SPDX-License-Identifier: BSD-3-Clause */
/* traffic.h - generators of traffic, and sinks for it; each with a thread of its own.
 *
 *     ping    asks a process for echoes, which its poll core answers
 *     flood   small puts, many at a time
 *     stream  large puts
 *     sink    takes puts and answers gets of flood, stream and others
 */
#ifndef CONSOLE_TRAFFIC_H
#define CONSOLE_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <portals.h>

#define TRAFFIC_KINDS  "ping#flood#stream" /* those that have a target, as a token of the grammar */
#define TRAFFIC_PORTAL 40                  /* of sinks; match bits are not looked at */

/* Starts a generator on the current interface. words: "size 64 window 16 ...". Prints its
 * number. */
void traffic_start(const char *kind, const char *target, char *words);
void traffic_start_sink(char *words);
/* Ends one, by its number, or all ("all"), and tells what came of it. */
void traffic_stop(const char *which);
/* Waits until those that have an end have come to it; at most so many nanoseconds, unless that is
 * 0. */
void traffic_wait(const char *which, uint64_t timeout);
/* {"items": [...]} of all that run or have ended and not been told of. */
json_t *traffic_look(void);
/* Before the interfaces close: ends all generators silently, except those that wait for
 * messages which do not arrive. */
void traffic_end(void);
/* After the interfaces have been closed, which ended those as well. */
void traffic_join(void);

#endif
