/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - see table.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>

#include "console.h"
#include "table.h"

#define NAME_MAX_BYTES  128
#define TEXT_MAX        256
#define WIDTH_ELSEWHERE 160 /* columns where there is no terminal */
#define COLUMNS_MAX     64

/* A value as text; a list is told with commas. */
static const char *value_text(const json_t *value, char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	if (json_is_string(value))
		snprintf(text, size, "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(text, size, "%.*f", json_real_value(value) < 100 ? 2 : 0,
			json_real_value(value));
	else if (json_is_boolean(value))
		snprintf(text, size, "%s", json_is_true(value) ? "yes" : "no");
	else if (!json_is_array(value))
		snprintf(text, size, "-");
	for (size_t i = 0; i < json_array_size(value) && length < size; i++) {
		char item[TEXT_MAX];

		length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? "," : "",
			value_text(json_array_get(value, i), item, sizeof(item)));
	}
	return text;
}

const json_t *table_value(const json_t *object, const char *path)
{
	char name[NAME_MAX_BYTES];

	while (object) {
		size_t length = strcspn(path, ".");

		snprintf(name, sizeof(name), "%.*s", (int)length, path);
		object = json_object_get(object, name);
		if (path[length] == '\0')
			break;
		path += length + 1;
	}
	return object;
}

/* --- an object --- */

static void object_tell(const json_t *all, const json_t *part, const char *prefix,
	const json_t *before, double seconds);

static void member_tell(const char *path, const json_t *value, const json_t *before, double seconds)
{
	const json_t *earlier = table_value(before, path);
	char text[TEXT_MAX];

	printf("  %-34s %20s", path, value_text(value, text, sizeof(text)));
	if (json_is_integer(value) && json_is_integer(earlier) && seconds > 0 &&
		json_integer_value(value) != json_integer_value(earlier))
		printf(" %18.0f/s",
			(double)(json_integer_value(value) - json_integer_value(earlier)) /
				seconds);
	printf("\n");
}

static void object_tell(const json_t *all, const json_t *part, const char *prefix,
	const json_t *before, double seconds)
{
	char path[NAME_MAX_BYTES];
	const char *name;
	json_t *value;

	/* jansson's iteration does not change the object, but has no const */
	json_object_foreach((json_t *)(uintptr_t)part, name, value)
	{
		snprintf(path, sizeof(path), "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", name);
		if (json_is_object(value))
			object_tell(all, value, path, before, seconds);
		else
			member_tell(path, value, before, seconds);
	}
}

void table_rates(const json_t *object, const json_t *before, double seconds)
{
	object_tell(object, object, "", before, seconds);
}

void table_object(const json_t *object)
{
	table_rates(object, NULL, 0);
}

/* --- a list --- */

static unsigned screen_width(void)
{
	struct winsize size;

	if (console.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return WIDTH_ELSEWHERE;
}

/* The columns of the first item, and how wide they must be; returns their sum. */
static unsigned widths_find(const json_t *items, unsigned *widths)
{
	unsigned sum = 0;
	size_t row;
	json_t *item;

	memset(widths, 0, COLUMNS_MAX * sizeof(*widths));
	json_array_foreach((json_t *)(uintptr_t)items, row, item)
	{
		unsigned column = 0;
		const char *name;
		json_t *value;

		json_object_foreach(item, name, value)
		{
			char text[TEXT_MAX];
			unsigned width = (unsigned)strlen(value_text(value, text, sizeof(text)));

			if (column == COLUMNS_MAX)
				break;
			if (width < strlen(name))
				width = (unsigned)strlen(name);
			if (widths[column] < width)
				widths[column] = width;
			column++;
		}
	}
	for (unsigned column = 0; column < COLUMNS_MAX && widths[column] > 0; column++)
		sum += widths[column] + 2;
	return sum;
}

static void row_tell(json_t *item, const unsigned *widths, bool names)
{
	unsigned column = 0;
	const char *name;
	json_t *value;

	json_object_foreach(item, name, value)
	{
		char text[TEXT_MAX];

		if (column == COLUMNS_MAX)
			break;
		printf("  %*s",
			(int)(json_is_string(value) ? -(int)widths[column] : (int)widths[column]),
			names ? name : value_text(value, text, sizeof(text)));
		column++;
	}
	printf("\n");
}

/* name=value, as many in a line as fit. */
static void block_tell(json_t *item, unsigned width)
{
	unsigned at = 0;
	const char *name;
	json_t *value;

	json_object_foreach(item, name, value)
	{
		char text[TEXT_MAX];
		unsigned length = (unsigned)(strlen(name) + 3 +
					     strlen(value_text(value, text, sizeof(text))));

		if (at > 0 && at + length > width) {
			printf("\n  ");
			at = 0;
		}
		printf("  %s=%s", name, text);
		at += length;
	}
	printf("\n");
}

void table_list(const json_t *items)
{
	unsigned widths[COLUMNS_MAX], screen = screen_width();
	bool wide = widths_find(items, widths) > screen;
	size_t row;
	json_t *item;

	if (json_array_size(items) == 0)
		printf("  none\n");
	json_array_foreach((json_t *)(uintptr_t)items, row, item)
	{
		if (row == 0 && !wide)
			row_tell(item, widths, true);
		if (wide)
			block_tell(item, screen > 4 ? screen - 4 : 1);
		else
			row_tell(item, widths, false);
	}
}
