/* json.c - see json.h. */
#include "json.h"

#include <stdio.h>

void json_text(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < ' ')
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}
