/* SPDX-License-Identifier: BSD-3-Clause */
/* library.h - the libraries whose messages can be measured. */
#ifndef PERF_LIBRARY_H
#define PERF_LIBRARY_H

#include "line.h"

#define LIBRARY_PATH_ROOM 4224 /* PATH_MAX and a name */

/* The numbers travel in control messages. */
enum library {
	LIBRARY_PORTALS3,
	LIBRARY_PORTALS4,
	LIBRARY_MX,
	LIBRARY_FI,
	LIBRARY_GASNET,
	LIBRARY_COUNT
};

const char *library_name(enum library library);
/* For people. */
const char *library_title(enum library library);
bool library_has(enum library library, enum measure measure);
/* Has it match lists, whose depth can be chosen, and measures with several peers and pairs? Where
 * it has none, messages are sent and received, not put. */
static inline bool library_has_lists(enum library library)
{
	return library == LIBRARY_PORTALS3 || library == LIBRARY_PORTALS4;
}
/* All names, for a sentence: "portals3, portals4 or mx". */
void library_names(char *text, size_t room);

/* The path of a file beside this program, where it was built, or in the modules' directory, where
 * it was installed. */
void library_path(char *path, size_t room, const char *file);

/* The module of a library other than Portals 3.2. Returns NULL if it cannot be had; why then has a
 * sentence on it. */
const struct line_module *library_module(enum library library, char *why, size_t room);

#endif
