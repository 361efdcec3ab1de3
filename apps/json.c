/* SPDX-License-Identifier: BSD-3-Clause */
/* json.c - see json.h. */
#include "json.h"

#include <stdio.h>

#include <base/utf8.h>

void json_text(const char *text)
{
	unsigned bytes;

	putchar('"');
	for (; *text != '\0'; text += bytes > 0 ? bytes : 1) {
		unsigned char c = (unsigned char)*text;

		bytes = utf8_bytes(text);
		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < ' ')
			printf("\\u%04x", c);
		else if (bytes == 0)
			putchar('?');
		else
			fwrite(text, 1, bytes, stdout);
	}
	putchar('"');
}
