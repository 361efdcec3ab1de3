/* SPDX-License-Identifier: BSD-3-Clause */
/* values.c - see values.h. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "../parse.h"
#include "complain.h"
#include "values.h"

uint64_t value_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	uint64_t number = 0;

	if (!parse_number(text, max, &number) || number < min)
		complain_usage("--%s takes a number from %" PRIu64 " to %" PRIu64 ", not \"%s\".",
			option, min, max, text);
	return number;
}

double value_seconds(const char *option, const char *text)
{
	uint64_t time = 0;

	if (!parse_time(text, &time) || time == 0)
		complain_usage(
			"--%s takes seconds above 0 such as 0.5 or 10, not \"%s\".", option, text);
	return (double)time / (double)SECOND;
}

/* A number with K, M or G, or the word. */
static bool item_parse(
	const char **text, uint64_t max, const char *word, uint64_t word_value, uint64_t *item)
{
	if (!word || strncmp(*text, word, strlen(word)) != 0)
		return parse_sized(text, max, item);
	*text += strlen(word);
	*item = word_value;
	return true;
}

static void numbers_add(struct numbers *numbers, const char *option, uint64_t number)
{
	if (numbers->count == LIST_MAX)
		complain_usage("--%s takes at most %u items.", option, LIST_MAX);
	numbers->items[numbers->count++] = number;
}

/* Every power of two from first to last, and both ends. */
static void numbers_add_range(
	struct numbers *numbers, const char *option, uint64_t first, uint64_t last)
{
	uint64_t number = first;

	while (number < last) {
		numbers_add(numbers, option, number);
		number = number == 0 ? 1 : (UINT64_C(1) << (63 - __builtin_clzll(number))) << 1;
	}
	numbers_add(numbers, option, last);
}

/* 4294967296 as "4G". */
static const char *size_text(uint64_t size, char *text, size_t room)
{
	static const char letters[] = " KMG";
	unsigned unit = 0;

	while (size >= 1024 && size % 1024 == 0 && unit < 3) {
		size /= 1024;
		unit++;
	}
	snprintf(text, room, "%" PRIu64 "%.*s", size, unit > 0, &letters[unit]);
	return text;
}

void values_list(struct numbers *numbers, const char *option, const char *text, uint64_t min,
	uint64_t max, const char *word, uint64_t word_value)
{
	const char *rest = text;
	char least[32];
	char most[32];

	numbers->count = 0;
	for (;;) {
		uint64_t first;
		uint64_t last;

		if (!item_parse(&rest, max, word, word_value, &first) || first < min)
			break;
		last = first;
		if (strncmp(rest, "..", 2) == 0) {
			rest += 2;
			if (!item_parse(&rest, max, NULL, 0, &last) || last < first)
				break;
		}
		numbers_add_range(numbers, option, first, last);
		if (*rest == '\0')
			return;
		if (*rest++ != ',')
			break;
	}
	complain_usage("--%s takes %s from %s to %s such as 8,64K or 1..4K%s%s, not \"%s\".",
		option, strcmp(option, "sizes") == 0 ? "sizes" : "numbers",
		size_text(min, least, sizeof(least)), size_text(max, most, sizeof(most)),
		word ? ", or " : "", word ? word : "", text);
}

void values_positions(struct numbers *numbers, const char *option, const char *text)
{
	const char *rest = text;

	numbers->count = 0;
	for (;;) {
		size_t length = strcspn(rest, ",");
		unsigned i = 0;

		while (i < POSITION_COUNT && (strncmp(rest, position_name(i), length) != 0 ||
						     strlen(position_name(i)) != length))
			i++;
		if (i == POSITION_COUNT)
			complain_usage("--%s takes first, middle, last and random, with commas "
				       "between them, not \"%s\".",
				option, text);
		numbers_add(numbers, option, i);
		if (rest[length] == '\0')
			return;
		rest += length + 1;
	}
}

unsigned values_faults(char **faults, unsigned max, const char *option, char *text)
{
	unsigned count = 0;

	for (char *item = text; item; count++) {
		char *end = strchr(item, ';');

		if (count == max)
			complain_usage("--%s takes at most %u items.", option, max);
		if (end)
			*end++ = '\0';
		faults[count] = item;
		item = end;
	}
	return count;
}

unsigned values_cores(unsigned *cores, unsigned max, const char *option, const char *text)
{
	const char *rest = text;
	unsigned count = 0;
	cpu_set_t usable;

	sched_getaffinity(0, sizeof(usable), &usable);
	for (;;) {
		uint64_t core;

		if (count == max || !parse_digits(&rest, CPU_SETSIZE - 1, &core))
			break;
		if (!CPU_ISSET((unsigned)core, &usable))
			complain_usage(
				"--%s names CPU %" PRIu64
				", which this process may not use; taskset -p $$ shows those "
				"that it may.",
				option, core);
		cores[count++] = (unsigned)core;
		if (*rest == '\0')
			return count;
		if (*rest++ != ',')
			break;
	}
	complain_usage("--%s takes numbers of CPUs such as 0,1, not \"%s\".", option, text);
}

enum library value_library(const char *option, const char *text)
{
	char names[128];

	for (unsigned i = 0; i < LIBRARY_COUNT; i++)
		if (strcmp(text, library_name(i)) == 0)
			return (enum library)i;
	library_names(names, sizeof(names));
	complain_usage("--%s takes %s, not \"%s\".", option, names, text);
}

ptl_process_id_t value_process(const char *option, const char *text)
{
	ptl_process_id_t process = {0};

	if (!parse_process(text, &process))
		complain_usage("--%s takes a node id and a process id such as 1:1 or 10.0.0.1:1, "
			       "not \"%s\".",
			option, text);
	return process;
}
