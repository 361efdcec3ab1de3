/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8.h - which bytes are text. No state; any thread. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdint.h>

/* Bytes of the UTF-8 character that a text of at least one byte begins with, 1 to 4; 0: it begins
 * with none. Looks at no byte behind the first that does not belong to it, so never beyond the
 * text's final 0. */
static inline unsigned utf8_bytes(const char *text)
{
	const uint8_t *at = (const uint8_t *)text;
	unsigned bytes = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	uint8_t least = 0x80, most = 0xbf; /* of the second byte */

	if (bytes == 1)
		return 1;
	if (at[0] < 0xc2 || at[0] > 0xf4)
		return 0;
	if (at[0] == 0xe0)
		least = 0xa0; /* shorter forms exist */
	else if (at[0] == 0xed)
		most = 0x9f; /* halves of UTF-16's pairs */
	else if (at[0] == 0xf0)
		least = 0x90;
	else if (at[0] == 0xf4)
		most = 0x8f; /* the end of Unicode */
	if (at[1] < least || at[1] > most)
		return 0;
	for (unsigned i = 2; i < bytes; i++)
		if (at[i] < 0x80 || at[i] > 0xbf)
			return 0;
	return bytes;
}

#endif
