/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_pmi.c - PMI's wire: what comes through a process's or a launcher's socket, a few bytes at a
 * time. The first byte says how many, the rest is the stream.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/pmi.h>

#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static bool has_blank(const char *text)
{
	return strpbrk(text, " \t\r\n") != NULL;
}

/* A value is one word of its line, as a whole, and ends within the room that there is. */
static void word_check(const char *line, const char *key, size_t room)
{
	char *value = malloc(room), wanted[PMI_LINE + PMI_KEY];
	uint32_t number;

	if (pmi_word(line, key, value, room)) {
		fuzz_assert(memchr(value, '\0', room) != NULL && !has_blank(value));
		fuzz_assert(snprintf(wanted, sizeof(wanted), "%s=%s", key, value) <
			    (int)sizeof(wanted));
		fuzz_assert(strstr(line, wanted) != NULL);
		if (pmi_number(line, key, &number))
			fuzz_assert(strspn(value, "0123456789") == strlen(value) &&
				    strtoull(value, NULL, 10) == number);
		else
			fuzz_assert(strspn(value, "0123456789") != strlen(value) ||
				    strlen(value) == 0 || strlen(value) > 10 ||
				    strtoull(value, NULL, 10) > UINT32_MAX);
	} else if (room >= PMI_LINE) {
		fuzz_assert(!pmi_number(line, key, &number));
	}
	free(value);
}

static void line_check(const char *line)
{
	static const char *const keys[] = {"cmd", "key", "value", "rc", "size"};
	static const size_t rooms[] = {1, 4, PMI_KEY, PMI_LINE};

	fuzz_assert(strlen(line) < PMI_LINE);
	for (unsigned k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		for (unsigned r = 0; r < sizeof(rooms) / sizeof(rooms[0]); r++)
			word_check(line, keys[k], rooms[r]);
}

/* Every line is the next one of the stream. Returns the bytes of those that are complete. */
static size_t lines_check(struct pmi_lines *lines, const uint8_t *stream, size_t taken, size_t sent)
{
	const char *line;

	while ((line = pmi_line(lines))) {
		const uint8_t *end = memchr(stream + taken, '\n', sent - taken);

		fuzz_assert(end != NULL);
		fuzz_assert(memcmp(line, stream + taken, (size_t)(end - stream) - taken) == 0);
		line_check(line);
		taken = (size_t)(end - stream) + 1;
	}
	return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pmi_lines *lines;
	size_t step, sent = 0, taken = 0;
	int ends[2];

	if (size < 2 || size > 16384)
		return 0;
	step = 1 + 16 * (size_t)data[0];
	data++;
	size--;
	lines = calloc(1, sizeof(*lines));
	fuzz_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
	while (sent < size) {
		size_t length = step < size - sent ? step : size - sent;

		fuzz_assert(send(ends[0], data + sent, length, 0) == (ssize_t)length);
		sent += length;
		/* Only a line that is too long ends a stream before its end. */
		while (pmi_read(lines, ends[1]) && taken < sent) {
			size_t before = taken;

			taken = lines_check(lines, data, taken, sent);
			if (taken == before)
				break;
		}
		if (lines->filled - lines->taken == PMI_LINE)
			break;
	}
	close(ends[0]);
	close(ends[1]);
	free(lines);
	return 0;
}
