/* SPDX-License-Identifier: BSD-3-Clause */
/* telemetry.c - answers to dpdk-telemetry.py: a report in the values that DPDK's telemetry has.
 * Where EAL does not run, listener.c answers.
 *
 * DPDK calls in a thread of its own for each client, so several answers may be under way. DPDK's
 * values have no objects in arrays, no flags and no null: an array of objects becomes an object
 * with numbered members, a flag is 0 or 1, and null values are left out. Members beyond its limit
 * of 256 are left out, and texts are cut at 127 bytes. DPDK escapes other characters than ASCII in
 * ways that are not JSON, so they become question marks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include <rte_telemetry.h>

#include <base/log.h>
#include <base/report.h>
#include <base/utf8.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/listener.h>
#include <pmd-glue/telemetry.h>

#define LEVELS 8 /* levels of objects in objects; no report has more */

enum level_kind {
	LEVEL_OBJECT,
	LEVEL_ARRAY /* its kind is not known yet */,
	LEVEL_NUMBERS,
	LEVEL_TEXTS,
	LEVEL_OBJECTS
};

/* An object or array that is open. */
struct level {
	struct rte_tel_data *data;
	enum level_kind kind;
	unsigned items;
	char name[RTE_TEL_MAX_STRING_LEN]; /* in the one around it */
};

struct answer {
	struct report report; /* first: what is passed on */
	struct rte_tel_data *whole;
	struct level levels[LEVELS];
	unsigned depth; /* that are open */
	unsigned
		/* open objects without room or memory: their members are left out */
		skipped;
};

static glue_tell answer_tell;

/* The name of the next value at this level. */
static const char *level_name(struct level *level, const char *name, char *number, size_t size)
{
	if (level->kind != LEVEL_OBJECTS)
		return name;
	snprintf(number, size, "%u", level->items++);
	return number;
}

/* The first item of an array decides the kind of all. */
static void level_settle(struct level *level, enum level_kind kind)
{
	if (level->kind != LEVEL_ARRAY)
		return;
	level->kind = kind;
	if (kind == LEVEL_OBJECTS)
		rte_tel_data_start_dict(level->data);
	else
		rte_tel_data_start_array(
			level->data, kind == LEVEL_NUMBERS ? RTE_TEL_U64_VAL : RTE_TEL_STRING_VAL);
}

static void answer_open(struct report *report, const char *name, bool array)
{
	struct answer *answer = (struct answer *)report;
	struct level *level = &answer->levels[answer->depth];
	char number[16];
	if (answer->skipped > 0 || answer->depth == LEVELS) {
		answer->skipped++;
		return;
	}
	*level = (struct level){.kind = array ? LEVEL_ARRAY : LEVEL_OBJECT};
	if (answer->depth > 0) {
		level_settle(level - 1, LEVEL_OBJECTS);
		snprintf(level->name, sizeof(level->name), "%s",
			level_name(level - 1, name, number, sizeof(number)));
	}
	level->data = answer->depth == 0 ? answer->whole : rte_tel_data_alloc();
	if (!level->data) {
		answer->skipped++;
		return;
	}
	if (!array)
		rte_tel_data_start_dict(level->data);
	answer->depth++;
}

static void answer_close(struct report *report)
{
	struct answer *answer = (struct answer *)report;
	struct level *level;
	if (answer->skipped > 0) {
		answer->skipped--;
		return;
	}
	level = &answer->levels[--answer->depth];
	level_settle(level, LEVEL_TEXTS); /* an empty one */
	if (answer->depth > 0 &&
		rte_tel_data_add_dict_container(level[-1].data, level->name, level->data, 0) != 0)
		rte_tel_data_free(level->data);
}

/* The object or array that the next value goes to; NULL: it is left out. */
static struct level *answer_level(struct report *report, enum level_kind kind)
{
	struct answer *answer = (struct answer *)report;
	struct level *level = &answer->levels[answer->depth - 1];
	if (answer->skipped > 0)
		return NULL;
	level_settle(level, kind);
	return level;
}

static void answer_number(struct report *report, const char *name, uint64_t value)
{
	struct level *level = answer_level(report, LEVEL_NUMBERS);
	if (level && level->kind == LEVEL_OBJECT)
		rte_tel_data_add_dict_u64(level->data, name, value);
	else if (level && level->kind == LEVEL_NUMBERS)
		rte_tel_data_add_array_u64(level->data, value);
}

void telemetry_plain(const char *text, char *plain, size_t size)
{
	size_t length = 0;
	while (*text != '\0' && length + 1 < size) {
		unsigned bytes = utf8_bytes(text);
		plain[length++] = bytes == 1 ? *text : '?';
		text += bytes > 0 ? bytes : 1;
	}
	plain[length] = '\0';
}

static void answer_text(struct report *report, const char *name, const char *text)
{
	struct level *level = answer_level(report, LEVEL_TEXTS);
	char plain[RTE_TEL_MAX_STRING_LEN];
	telemetry_plain(text, plain, sizeof(plain));
	if (level && level->kind == LEVEL_OBJECT)
		rte_tel_data_add_dict_string(level->data, name, plain);
	else if (level && level->kind == LEVEL_TEXTS)
		rte_tel_data_add_array_string(level->data, plain);
}

void telemetry_flag(struct report *report, const char *name, bool flag)
{
	report_number(report, name, flag);
}

void telemetry_nothing(struct report *report, const char *name)
{
	(void)report;
	(void)name;
}

static const struct report_form answer_form = {
	.open = answer_open,
	.close = answer_close,
	.number = answer_number,
	.text = answer_text,
	.flag = telemetry_flag,
	.nothing = telemetry_nothing,
};

static int telemetry_ask(const char *command, const char *parameters, struct rte_tel_data *whole)
{
	struct answer answer = {.report = {&answer_form}, .whole = whole};
	report_object(&answer.report, NULL);
	answer_tell(command, parameters ? parameters : "", &answer.report);
	report_close(&answer.report);
	return 0;
}

bool glue_telemetry_add(const char *command, const char *help, glue_tell tell)
{
	int error;
	answer_tell = tell;
	error = rte_telemetry_register_cmd(command, telemetry_ask, help);
	if (error == 0 && !listener_add(command, help, tell))
		error = -ENOSPC;
	if (error != 0)
		log_info("dpdk-telemetry.py cannot ask for %s: %s", command, strerror(-error));
	return error == 0;
}
