/* SPDX-License-Identifier: BSD-3-Clause */
/* number.c - see number.h. */
#include <base/number.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool number_read(const char **text, const char *ends, uint32_t *number)
{
	char *end;
	unsigned long value;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	value = strtoul(*text, &end, 10);
	if (errno != 0 || value > UINT32_MAX || !strchr(ends, *end))
		return false;
	*number = (uint32_t)value;
	*text = end;
	return true;
}
