/* SPDX-License-Identifier: BSD-3-Clause */
/* show.h - what the console shows of an interface: topics of postern_inspect(), and its own
 * traffic. */
#ifndef CONSOLE_SHOW_H
#define CONSOLE_SHOW_H

#include <jansson.h>

#define SHOW_TRAFFIC "traffic"

/* A topic as it is now: an object, for a list {"items": [...]}. The caller gives it back by
 * json_decref(). NULL after a complaint. */
json_t *show_look(const char *topic);

void show(const char *topic);
/* Shows a topic every so often, with rates, until a key is pressed or, unless count is 0, so many
 * times. */
void show_watch(const char *topic, uint64_t interval, uint64_t count);
/* Compares a number, TOPIC.NAME such as stats.frames_received, with another one; complains unless
 * it is so. */
void show_check(const char *path, const char *relation, const char *number);

#endif
