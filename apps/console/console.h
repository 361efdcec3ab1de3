/* SPDX-License-Identifier: BSD-3-Clause */
/* console.h - what the parts of postern-console share: the interfaces that it holds, and how a
 * command fails.
 *
 * Commands run in the main thread, one at a time; generators of traffic (traffic.h) have threads of
 * their own.
 */
#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

#include <stdbool.h>

#include <portals.h>
#include <postern.h>

#define INTERFACES_MAX 64

struct console {
	ptl_handle_ni_t interfaces[INTERFACES_MAX];
	bool open[INTERFACES_MAX];
	unsigned count;   /* of PTL_IFACE_NAME */
	unsigned current; /* the interface that commands are about */
	bool terminal;    /* somebody types, and reads */
	bool json;        /* show and watch print JSON */
	bool failed;      /* the last command */
	bool quit;
};

extern struct console console;

/* The current interface. */
ptl_handle_ni_t console_interface(void);

/* Tells why a command failed, in a sentence on standard error, behind where its line stands in a
 * script. */
void console_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a call of the library: its own sentence when it has one. */
void console_fail_call(int code, const char *call);
/* Where the lines that follow stand: the name of a script, or NULL for a terminal, and the number
 * of its line. */
void console_place(const char *script, unsigned line);

/* Sleeps for so many nanoseconds. Returns false if the user pressed a key meanwhile, or interrupted
 * the program. */
bool console_sleep(uint64_t nanoseconds);
/* Returns true if the user has interrupted the program. */
bool console_interrupted(void);

#endif
