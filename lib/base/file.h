/* SPDX-License-Identifier: BSD-3-Clause */
/* file.h - opens a file that this process writes, in a directory where others may have laid a trap:
 * a symbolic link, another name of a file that the user has elsewhere, a file of their own.
 *
 * I1. In a directory where others may write (its mode has the sticky bit, or lets everybody write)
 *     only symbolic links of this user and of root are followed, also on the way to the file.
 * I2. A file that is there belongs to this user, or is no regular file and belongs to root: a
 *     terminal, /dev/null. Where others may write it has one name.
 * I3. Until that is sure nothing is opened for writing, and nothing is truncated here at all.
 *
 * What /proc/self/fd names is open already, and taken as it is. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdio.h>
#include <sys/types.h>

/* Opens the file for writing, with O_CLOEXEC and these flags of open(); makes it with this mode
 * if they have O_CREAT and it is not there. Returns a descriptor, or -1: then errno says what is
 * wrong, and *reason says it in words, which last until the thread's next call of strerror(). */
int file_write(const char *name, int flags, mode_t mode, const char **reason);
/* The same with O_CREAT and a mode as fopen() has it, as an empty stream; NULL for -1. */
FILE *file_stream(const char *name, const char **reason);

#endif
