/* SPDX-License-Identifier: BSD-3-Clause */
/* parse.c - see parse.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define SECOND   1e9
#define TIME_MAX (86400 * SECOND)
#define RATE_MAX 1e15

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

struct unit {
	const char *name;
	double size;
};

/* A number, perhaps with a fraction, and one of the units, of which there are `count`. */
static bool parse_quantity(
	const char *text, const struct unit *units, unsigned count, double max, double *value)
{
	char *end;
	double number = strtod(text, &end);

	if (!isdigit((unsigned char)*text) || !isfinite(number))
		return false;
	for (unsigned i = 0; i < count; i++)
		if (strcmp(end, units[i].name) == 0 && number * units[i].size <= max) {
			*value = number * units[i].size;
			return true;
		}
	return false;
}

bool parse_time(const char *text, uint64_t *value)
{
	static const struct unit units[] = {
		{"", SECOND}, {"s", SECOND}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	double time;

	if (!parse_quantity(text, units, sizeof(units) / sizeof(units[0]), TIME_MAX, &time))
		return false;
	*value = (uint64_t)time;
	return true;
}

bool parse_rate(const char *text, uint64_t *value)
{
	static const struct unit units[] = {
		{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
	double rate;

	if (!parse_quantity(text, units, sizeof(units) / sizeof(units[0]), RATE_MAX, &rate) ||
		rate < 1)
		return false;
	*value = (uint64_t)rate;
	return true;
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

/* Over UDP sockets and PTL_ENCAP=udp a node id is an IPv4 address; PTL_HOSTS gives others. */
static bool nodes_are_addresses(void)
{
	const char *encapsulation = parse_setting("PTL_ENCAP");
	const char *interface = parse_setting("PTL_IFACE_NAME");

	return (encapsulation && strncmp(encapsulation, "udp", 3) == 0) ||
	       (interface && strncmp(interface, "udp", 3) == 0 && !parse_setting("PTL_HOSTS"));
}

struct process_text process_text(ptl_process_id_t id)
{
	struct process_text process;

	if (nodes_are_addresses())
		snprintf(process.text, sizeof(process.text), "%u.%u.%u.%u:%u", id.nid >> 24,
			id.nid >> 16 & 255, id.nid >> 8 & 255, id.nid & 255, id.pid);
	else
		snprintf(process.text, sizeof(process.text), "%u:%u", id.nid, id.pid);
	return process;
}

const char *parse_setting(const char *name)
{
	const char *value = getenv(name);

	while (value && isspace((unsigned char)*value))
		value++;
	return value && *value != '\0' ? value : NULL;
}
