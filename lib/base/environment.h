/* SPDX-License-Identifier: BSD-3-Clause */
/* environment.h - what the environment may say to a program that has more rights than its user:
 * setuid, setgid, or with capabilities of its file.
 *
 * Such a program's environment is its user's. A variable must not let the user do with the
 * program's rights what he cannot do with his own. So nothing else in the library calls getenv():
 * each variable is a row of a table, of setting_table.c or of environment.c, and each row has a
 * trust.
 */
#ifndef BASE_ENVIRONMENT_H
#define BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <base/core.h>

/* How a variable is taken in a program with more rights than its user. A row that says nothing is
 * refused. */
enum trust {
	/* refused, if it is set to anything */
	TRUST_NONE,
	/* taken */
	TRUST_HARMLESS,
	/* taken if each item is node, udp, one of these with a name, or an interface of the kernel
	 */
	TRUST_INTERFACE,
	/* taken if no port is below 1024 */
	TRUST_PORTS,
	/* taken; environment_open() opens the file, and no other function */
	TRUST_FILE,
	/* taken if it is the number of a socket of another process of the user */
	TRUST_SOCKET
};

/* Has the program more rights than its user? */
bool environment_is_privileged(void);

/* What is wrong with an item of a value, to follow the name and the value, with the remedy; NULL:
 * nothing, or the program has the rights of its user only. */
const char *environment_fault(enum trust trust, const char *item);

/* The value of a variable that is a front end's own, of the table in environment.c; NULL if it is
 * not set, or refused, then after an error line. */
const char *environment_text(const char *name) CORE_API(environment_text);

/* Is it a front end's own variable, or another implementation's? */
bool environment_is_foreign(const char *name, size_t length);

/* Opens the regular file that a variable names, to read. A FIFO could block the program, and all
 * processes and interfaces read the same file. In a program with more rights than its user: with
 * the rights of the real user, and only a file that belongs to the real user or to root and that
 * others cannot write to. NULL: *reason says why, until the thread's next call of strerror(). */
FILE *environment_open(const char *path, const char **reason) CORE_API(environment_open);

/* The directory for what runs: XDG_RUNTIME_DIR, or in a program with more rights than its user,
 * /run/user/UID if that belongs to the real user. Returns false if there is none that can be used;
 * path then has what the variable says, and is empty if it says nothing or is not believed. size:
 * 1 at least. */
bool environment_runtime(char *path, size_t size);

#endif
