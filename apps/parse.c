/* parse.c - see parse.h. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define SECOND   1e9
#define TIME_MAX (86400 * SECOND)

/* By hand, because strtoull() takes signs, blanks and octal numbers. */
bool parse_digits(const char **text, uint64_t max, uint64_t *value)
{
	const char *at = *text;
	uint64_t number = 0;

	for (; isdigit((unsigned char)*at); at++)
		if (__builtin_mul_overflow(number, UINT64_C(10), &number) ||
			__builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
			return false;
	if (at == *text || number > max)
		return false;
	*text = at;
	*value = number;
	return true;
}

bool parse_sized(const char **text, uint64_t max, uint64_t *value)
{
	static const char letters[] = "KMGT";
	const char *at = *text, *letter;
	unsigned shift = 0;
	uint64_t number;

	if (!parse_digits(&at, max, &number))
		return false;
	letter = *at != '\0' ? strchr(letters, toupper((unsigned char)*at)) : NULL;
	if (letter) {
		shift = 10 * (unsigned)(letter - letters + 1);
		at++;
	}
	if (number > max >> shift)
		return false;
	*text = at;
	*value = number << shift;
	return true;
}

bool parse_number(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t number;

	if (!parse_digits(&text, max, &number) || *text != '\0')
		return false;
	*value = number;
	return true;
}

bool parse_size(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t number;

	if (!parse_sized(&text, max, &number) || *text != '\0')
		return false;
	*value = number;
	return true;
}

bool parse_time(const char *text, uint64_t *value)
{
	static const struct {
		const char *name;
		double length;
	} units[] = {{"", SECOND}, {"s", SECOND}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	char *end;
	double number = strtod(text, &end);

	if (!isdigit((unsigned char)*text) || !isfinite(number))
		return false;
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].name) == 0 && number * units[i].length <= TIME_MAX) {
			*value = (uint64_t)(number * units[i].length);
			return true;
		}
	return false;
}

/* A number, or four with dots between them. */
static bool nid_digits(const char **text, uint64_t *nid)
{
	uint64_t byte;

	if (!parse_digits(text, PTL_NID_ANY - 1, nid))
		return false;
	if (**text != '.')
		return true;
	if (*nid > UINT8_MAX)
		return false;
	for (unsigned i = 1; i < 4; i++) {
		if (*(*text)++ != '.' || !parse_digits(text, UINT8_MAX, &byte))
			return false;
		*nid = *nid << 8 | byte;
	}
	return *nid < PTL_NID_ANY;
}

bool parse_process(const char *text, ptl_process_id_t *value)
{
	uint64_t nid, pid;

	if (!nid_digits(&text, &nid) || *text++ != ':' || !parse_digits(&text, PTL_PID_MAX, &pid) ||
		*text != '\0')
		return false;
	*value = (ptl_process_id_t){(ptl_nid_t)nid, (ptl_pid_t)pid};
	return true;
}
