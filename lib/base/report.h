/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - a tree of names and values on its way to a reader: JSON text, or what DPDK's telemetry
 * takes.
 *
 * The function that knows the facts calls report_open(), report_number(), ... in the order in which
 * they are read; the file that knows the form implements struct report_form. Of one thread.
 */
#ifndef BASE_REPORT_H
#define BASE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

struct report;

/* name: of a member of an object; NULL: an item of an array, or the whole. */
struct report_form {
	void (*open)(struct report *report, const char *name, bool array);
	void (*close)(struct report *report);
	void (*number)(struct report *report, const char *name, uint64_t value);
	void (*text)(struct report *report, const char *name, const char *text);
	void (*flag)(struct report *report, const char *name, bool flag);
	/* There is no value. */
	void (*nothing)(struct report *report, const char *name);
};

struct report {
	const struct report_form *form;
};

static inline void report_object(struct report *report, const char *name)
{
	report->form->open(report, name, false);
}

static inline void report_array(struct report *report, const char *name)
{
	report->form->open(report, name, true);
}

static inline void report_close(struct report *report)
{
	report->form->close(report);
}

static inline void report_number(struct report *report, const char *name, uint64_t value)
{
	report->form->number(report, name, value);
}

/* Bytes that are not UTF-8 become question marks: a setting may hold any, and readers of JSON
 * refuse all of it for one. */
void report_text(struct report *report, const char *name, const char *text);

static inline void report_flag(struct report *report, const char *name, bool flag)
{
	report->form->flag(report, name, flag);
}

static inline void report_nothing(struct report *report, const char *name)
{
	report->form->nothing(report, name);
}

/* A number that is there only sometimes. */
static inline void report_number_if(
	struct report *report, const char *name, bool there, uint64_t value)
{
	if (there)
		report_number(report, name, value);
	else
		report_nothing(report, name);
}

/* A text made by a format; at most 127 bytes of it. */
void report_format(struct report *report, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* An Ethernet address. */
void report_address(struct report *report, const char *name, const uint8_t *address);

/* 64 bits that are no quantity (handles, match bits): a text such as "0x2a", since readers of JSON
 * round numbers beyond 2^53. */
void report_bits(struct report *report, const char *name, uint64_t bits);

/* JSON text in a buffer of the caller's. Like snprintf() it counts what finds no room. */
struct report_json {
	struct report report; /* first: what is passed on */
	char *text;
	uint64_t room;   /* bytes at text */
	uint64_t length; /* of the whole text, without its final 0 */
	uint32_t arrays; /* which of the open brackets are arrays', the innermost in bit 0 */
	bool more;       /* something stands before in this object or array */
};

/* text may be NULL when size is 0. */
void report_json_init(struct report_json *json, char *text, uint64_t size);
/* After the last value: ends the text with its 0. Returns its whole length. */
uint64_t report_json_end(struct report_json *json);

#endif
