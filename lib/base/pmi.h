/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi.h - lines of PMI version 1, in which a process of a job and its launcher speak to each other.
 *
 * A message is a line of words KEY=VALUE with blanks between them, the first of which is cmd=NAME.
 * It passes through a stream socket, whose number the process finds in PMI_FD. Used by both ends;
 * neither trusts the other. One thread at a time.
 */
#ifndef BASE_PMI_H
#define BASE_PMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/core.h>

/* Bytes, the final 0 included: of a line, of a key, of a value, and of a key-value space's name. */
#define PMI_LINE  2048u
#define PMI_KEY   64u
#define PMI_VALUE 1024u
#define PMI_SPACE 256u

/* What was read from a socket. Zero at first. */
struct pmi_lines {
	size_t filled; /* bytes */
	size_t taken;  /* of them: returned by pmi_line() */
	char bytes[PMI_LINE];
};

/* Reads what the socket has; waits for the first byte if the socket blocks. Returns false if the
 * stream has ended or its line is too long: nothing more will be understood. */
bool pmi_read(struct pmi_lines *lines, int socket) CORE_API(pmi_read);

/* Returns the next line, without its end, or NULL if it is not complete yet. The line is valid
 * until the next pmi_read(). */
const char *pmi_line(struct pmi_lines *lines) CORE_API(pmi_line);

/* Copies the value of a key. Returns false if the line does not have the key, or if size, in bytes,
 * is too small for the value. */
bool pmi_word(const char *line, const char *key, char *value, size_t size) CORE_API(pmi_word);

/* The same for a decimal number. Returns false also if the value is no such number. */
bool pmi_number(const char *line, const char *key, uint32_t *number) CORE_API(pmi_number);

/* Writes a line; `format` has its end. Never waits: returns false if the stream has ended, or has
 * no room because the other end does not read. */
bool pmi_write(int socket, const char *format, ...) CORE_API(pmi_write)
	__attribute__((format(printf, 2, 3)));

#endif
