/* SPDX-License-Identifier: BSD-3-Clause */
/* table.h - JSON as text for people: an object as lines of names and values, a list as a table. */
#ifndef CONSOLE_TABLE_H
#define CONSOLE_TABLE_H

#include <jansson.h>

/* An object; members of members are told as "outer.inner". */
void table_object(const json_t *object);
/* The same with what has changed per second since `before`, seconds ago; before may be NULL. */
void table_rates(const json_t *object, const json_t *before, double seconds);
/* A list of objects: a line each, or, when that is wider than the terminal, a few. */
void table_list(const json_t *items);

/* The value at a path such as "limits.portals"; NULL when there is none. */
const json_t *table_value(const json_t *object, const char *path);

#endif
