/* values.c - see values.h. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "values.h"

#define SECONDS_MAX 86400.0

/* Digits up to max; moves *text behind them. strtoull() alone takes signs, blanks and overflows. */
static bool digits_parse(const char **text, uint64_t max, uint64_t *number)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	value = strtoull(*text, &end, 10);
	if (errno != 0 || value > max)
		return false;
	*text = end;
	*number = value;
	return true;
}

uint64_t value_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	const char *rest = text;
	uint64_t number = 0;

	if (!digits_parse(&rest, max, &number) || *rest != '\0' || number < min)
		complain_usage("--%s takes a number from %" PRIu64 " to %" PRIu64 ", not \"%s\".",
			option, min, max, text);
	return number;
}

double value_seconds(const char *option, const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end != '\0' || !isfinite(seconds) || seconds <= 0 ||
		seconds > SECONDS_MAX)
		complain_usage(
			"--%s takes seconds above 0 such as 0.5 or 10, not \"%s\".", option, text);
	return seconds;
}

/* A number with K, M or G, or the word. */
static bool item_parse(
	const char **text, uint64_t max, const char *word, uint64_t word_value, uint64_t *item)
{
	static const struct {
		char letter;
		unsigned shift;
	} units[] = {{'K', 10}, {'k', 10}, {'M', 20}, {'m', 20}, {'G', 30}, {'g', 30}};

	if (word != NULL && strncmp(*text, word, strlen(word)) == 0) {
		*text += strlen(word);
		*item = word_value;
		return true;
	}
	if (!digits_parse(text, max, item))
		return false;
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (**text == units[i].letter) {
			if (*item > max >> units[i].shift)
				return false;
			*item <<= units[i].shift;
			(*text)++;
			break;
		}
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
		word != NULL ? ", or " : "", word != NULL ? word : "", text);
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

	for (char *item = text; item != NULL; count++) {
		char *end = strchr(item, ';');

		if (count == max)
			complain_usage("--%s takes at most %u items.", option, max);
		if (end != NULL)
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

		if (count == max || !digits_parse(&rest, CPU_SETSIZE - 1, &core))
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

/* A number, or four with dots between them. */
static bool nid_parse(const char **text, uint64_t *nid)
{
	uint64_t byte;

	if (!digits_parse(text, PTL_NID_ANY - 1, nid))
		return false;
	if (**text != '.')
		return true;
	for (unsigned i = 1; i < 4; i++) {
		if (*nid >> (8 * i) != 0 || *(*text)++ != '.' ||
			!digits_parse(text, UINT8_MAX, &byte))
			return false;
		*nid = *nid << 8 | byte;
	}
	return *nid < PTL_NID_ANY;
}

ptl_process_id_t value_process(const char *option, const char *text)
{
	const char *rest = text;
	uint64_t nid = 0;
	uint64_t pid = 0;

	if (!nid_parse(&rest, &nid) || *rest++ != ':' || !digits_parse(&rest, PTL_PID_MAX, &pid) ||
		*rest != '\0')
		complain_usage("--%s takes a node id and a process id such as 1:1 or 10.0.0.1:1, "
			       "not \"%s\".",
			option, text);
	return (ptl_process_id_t){(ptl_nid_t)nid, (ptl_pid_t)pid};
}
