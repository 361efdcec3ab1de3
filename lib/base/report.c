/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - what all forms of a report share, and JSON. See report.h. */
#include <base/report.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/utf8.h>

#define TEXT_BYTES 128

static bool is_utf8(const char *text)
{
	unsigned bytes = 1;

	for (; *text != '\0' && bytes != 0; text += bytes)
		bytes = utf8_bytes(text);
	return bytes != 0;
}

void report_text(struct report *report, const char *name, const char *text)
{
	char *clean;
	unsigned bytes;

	if (is_utf8(text)) {
		report->form->text(report, name, text);
		return;
	}
	clean = strdup(text);
	for (char *at = clean; at && *at != '\0'; at += bytes) {
		bytes = utf8_bytes(at);
		if (bytes == 0) {
			*at = '?';
			bytes = 1;
		}
	}
	report->form->text(report, name, clean ? clean : "?");
	free(clean);
}

void report_format(struct report *report, const char *name, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	report_text(report, name, text);
}

void report_address(struct report *report, const char *name, const uint8_t *address)
{
	report_format(report, name, "%02x:%02x:%02x:%02x:%02x:%02x", address[0], address[1],
		address[2], address[3], address[4], address[5]);
}

void report_bits(struct report *report, const char *name, uint64_t bits)
{
	report_format(report, name, "0x%" PRIx64, bits);
}

static void json_put(struct report_json *json, const char *bytes, uint64_t count)
{
	/* The last byte of the room is for the final 0. */
	if (json->length + 1 < json->room) {
		uint64_t room = json->room - 1 - json->length;

		memcpy(json->text + json->length, bytes, count < room ? count : room);
	}
	json->length += count;
}

static void json_word(struct report_json *json, const char *word)
{
	json_put(json, word, strlen(word));
}

static void json_quote(struct report_json *json, const char *text)
{
	char escape[8];
	uint64_t plain;

	json_word(json, "\"");
	for (; *text != '\0'; text += plain) {
		for (plain = 0; (unsigned char)text[plain] >= ' ' && text[plain] != '"' &&
				text[plain] != '\\';)
			plain++;
		json_put(json, text, plain);
		if (text[plain] == '\0')
			break;
		snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)(unsigned char)text[plain]);
		json_word(json, escape);
		plain++;
	}
	json_word(json, "\"");
}

/* What stands before a value. */
static struct report_json *json_begin(struct report *report, const char *name)
{
	struct report_json *json = (struct report_json *)report;

	if (json->more)
		json_word(json, ", ");
	json->more = true;
	if (name) {
		json_quote(json, name);
		json_word(json, ": ");
	}
	return json;
}

static void json_open(struct report *report, const char *name, bool array)
{
	struct report_json *json = json_begin(report, name);

	json->arrays = json->arrays << 1 | array;
	json_word(json, array ? "[" : "{");
	json->more = false;
}

static void json_close(struct report *report)
{
	struct report_json *json = (struct report_json *)report;

	json_word(json, json->arrays & 1 ? "]" : "}");
	json->arrays >>= 1;
	json->more = true;
}

static void json_number(struct report *report, const char *name, uint64_t value)
{
	struct report_json *json = json_begin(report, name);
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	json_word(json, digits);
}

static void json_text(struct report *report, const char *name, const char *text)
{
	json_quote(json_begin(report, name), text);
}

static void json_flag(struct report *report, const char *name, bool flag)
{
	json_word(json_begin(report, name), flag ? "true" : "false");
}

static void json_nothing(struct report *report, const char *name)
{
	json_word(json_begin(report, name), "null");
}

static const struct report_form json_form = {
	.open = json_open,
	.close = json_close,
	.number = json_number,
	.text = json_text,
	.flag = json_flag,
	.nothing = json_nothing,
};

void report_json_init(struct report_json *json, char *text, uint64_t size)
{
	*json = (struct report_json){.report = {&json_form}, .text = text, .room = size};
}

uint64_t report_json_end(struct report_json *json)
{
	if (json->room > 0)
		json->text[json->length < json->room ? json->length : json->room - 1] = '\0';
	return json->length;
}
