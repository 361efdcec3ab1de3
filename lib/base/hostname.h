/* SPDX-License-Identifier: BSD-3-Clause */
/* hostname.h - names of hosts: when two of them are one host's. */
#ifndef BASE_HOSTNAME_H
#define BASE_HOSTNAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Is it an IPv4 address? Then its dots are no domain's. */
static inline bool hostname_is_address(const char *host, size_t length)
{
	return length > 0 && strspn(host, "0123456789.") >= length;
}

/* Are they one host's? Case does not count, nor does a domain that one of them leaves out. The
 * names need not end in a NUL if something else than a digit or a dot follows. */
static inline bool hostname_is_same(const char *a, size_t a_length, const char *b, size_t b_length)
{
	const char *a_dot = memchr(a, '.', a_length), *b_dot = memchr(b, '.', b_length);

	if (!a_dot != !b_dot && !hostname_is_address(a, a_length) &&
		!hostname_is_address(b, b_length)) {
		a_length = a_dot ? (size_t)(a_dot - a) : a_length;
		b_length = b_dot ? (size_t)(b_dot - b) : b_length;
	}
	return a_length == b_length && a_length > 0 && strncasecmp(a, b, a_length) == 0;
}

#endif
