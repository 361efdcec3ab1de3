/* SPDX-License-Identifier: BSD-3-Clause */
/* directory.h - the directory of a rendezvous: where the processes of one user find each other's
 * sockets, and how each has a process id that no other one has. H1 of rendezvous.h. Called under
 * the front end's lock, but for directory_address() and directory_lacks(). */
#ifndef PMD_GLUE_DIRECTORY_H
#define PMD_GLUE_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

/* log_error(), or a function that keeps the line for later. */
typedef void directory_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct glue_process;

struct directory {
	directory_tell *tell; /* why the directory cannot be had */
	int fd;
	int lock;
	uint32_t pid;
	uid_t uid;
	bool displaced; /* XDG_RUNTIME_DIR is set, but is no directory of this user */
	char path[PATH_MAX];
};

/* Enters the directory of that name ("" or NULL: "default"), which it makes if need be. directory:
 * to be closed in any case. Returns false after a line through tell(). */
bool directory_open(struct directory *directory, const char *name, directory_tell *tell);
/* Takes a process id, or any (RENDEZVOUS_PID_ANY); then removes the sockets that dead processes
 * left. Returns false after an error line. */
bool directory_take(struct directory *directory, uint32_t pid);
/* Of a process's socket. */
struct sockaddr_un directory_address(const struct directory *directory, uint32_t pid);
/* rendezvous_present() of rendezvous.h; what has died and left its socket is no process. */
unsigned directory_present(
	const struct directory *directory, struct glue_process *processes, unsigned count);
/* Has certainly no process this process id now? The owner of the rendezvous asks. */
bool directory_lacks(const struct directory *directory, uint32_t pid);
/* Removes this process's socket. */
void directory_leave(const struct directory *directory);
/* Removes the directory, unless another process is in it; to be closed next. */
void directory_discard(struct directory *directory);
/* Gives the process id back, and closes all descriptors. */
void directory_close(struct directory *directory);

/* Removes the directory of that name, unless a process is in it. */
void directory_remove(const char *name);
/* The same for all whose names are `begin` and a number. */
void directory_remove_numbered(const char *begin);

/* What lies in a directory, and beside it. */
struct directory_survey {
	char path[PATH_MAX];
	uid_t uid;        /* whose it is */
	bool displaced;   /* XDG_RUNTIME_DIR is set, but is no directory of this user */
	unsigned living;  /* processes */
	unsigned dead;    /* sockets of processes that have died */
	unsigned strange; /* files that are not Postern's */
	unsigned idle;    /* other nodes that nobody is in */
	char *idle_names; /* of them, with blanks between; NULL: none, or out of memory */
};
/* Looks, and makes the directory if need be; removes nothing. The caller frees idle_names. Returns
 * false after a line through tell(). */
bool directory_survey(const char *name, struct directory_survey *survey, directory_tell *tell);

#endif
