/* SPDX-License-Identifier: BSD-3-Clause */
/* setting_table.h - what settings.c knows of each setting. Only it and setting_table.c include
 * this. */
#ifndef BASE_SETTING_TABLE_H
#define BASE_SETTING_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/environment.h>
#include <base/settings.h>

#define CHOICES_MAX 4

#define KIBIBYTE (UINT64_C(1) << 10)
#define MEBIBYTE (UINT64_C(1) << 20)
#define GIBIBYTE (UINT64_C(1) << 30)

enum setting_type {
	TYPE_TEXT,
	TYPE_CHOICE,
	TYPE_NUMBER,
	TYPE_SIZE,
	TYPE_DURATION,
	TYPE_NODE,    /* a number, or an address */
	TYPE_ADDRESS, /* IPv4, four numbers with dots */
	TYPE_SUBNET,  /* the same with the length of a prefix */
	TYPE_RANGE,   /* UDP ports, "FIRST-LAST" */
	TYPE_MODULES  /* of log.h, with commas between them */
};

struct setting_row {
	struct setting_description description;
	enum trust trust;
	enum setting_type type;
	bool list;
	uint64_t min; /* of numbers, sizes and durations */
	uint64_t max; /* 0: any */
	const char *choices[CHOICES_MAX + 1];
	bool numbered;      /* a choice may be named by its number, from 0 */
	const char *remedy; /* "set it to ..." */
};

extern const struct setting_row setting_table[SETTING_COUNT];

#endif
