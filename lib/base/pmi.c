/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi.c - see pmi.h. */
#include <base/pmi.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <base/number.h>

#define BLANKS " \t\r"

bool pmi_read(struct pmi_lines *lines, int socket)
{
	ssize_t count;

	memmove(lines->bytes, lines->bytes + lines->taken, lines->filled - lines->taken);
	lines->filled -= lines->taken;
	lines->taken = 0;
	if (lines->filled == sizeof(lines->bytes))
		return false;
	count = recv(socket, lines->bytes + lines->filled, sizeof(lines->bytes) - lines->filled, 0);
	if (count < 0)
		return errno == EINTR || errno == EAGAIN;
	lines->filled += (size_t)count;
	return count > 0;
}

const char *pmi_line(struct pmi_lines *lines)
{
	char *line = lines->bytes + lines->taken;
	char *end = memchr(line, '\n', lines->filled - lines->taken);

	if (!end)
		return NULL;
	*end = '\0';
	lines->taken += (size_t)(end - line) + 1;
	return line;
}

bool pmi_word(const char *line, const char *key, char *value, size_t size)
{
	size_t length = strlen(key);

	for (;;) {
		size_t word;

		line += strspn(line, BLANKS);
		word = strcspn(line, BLANKS);
		if (word == 0)
			return false;
		if (word > length && strncmp(line, key, length) == 0 && line[length] == '=') {
			word -= length + 1;
			if (word >= size)
				return false;
			memcpy(value, line + length + 1, word);
			value[word] = '\0';
			return true;
		}
		line += word;
	}
}

bool pmi_number(const char *line, const char *key, uint32_t *number)
{
	char digits[sizeof("4294967295")];
	const char *text = digits;

	return pmi_word(line, key, digits, sizeof(digits)) && number_read(&text, "", number);
}

bool pmi_write(int socket, const char *format, ...)
{
	char line[PMI_LINE];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= sizeof(line))
		return false;
	return send(socket, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) == length;
}
