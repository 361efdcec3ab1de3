/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_questions.c - telemetry's questions, of a client of the process's own socket. The input's
 * lines are one message each, and an empty line is a new client. Each question is answered by one
 * object of JSON within the promised length, or its client is hung up on; the process goes on.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/report.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/listener.h>

#include "fuzz.h"

#define ANSWER_BYTES 16384
#define NAME_BYTES   64 /* longer names of commands are hung up on */
#define ASKED_BYTES  1023

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char directory[] = "/tmp/postern-fuzz-XXXXXX";

/* Says the parameters in all shapes that a report may have. */
static void echo(const char *command, const char *parameters, struct report *report)
{
	size_t length = strlen(parameters);

	fuzz_assert(strcmp(command, "/postern/echo") == 0);
	report_text(report, "parameters", parameters);
	report_array(report, "texts");
	for (size_t n = 0; n < length; n += 2)
		report_text(report, NULL, parameters + n);
	report_close(report);
	report_array(report, "objects");
	for (size_t n = 0; n < length; n++) {
		report_object(report, NULL);
		report_number(report, "byte", (unsigned char)parameters[n]);
		report_flag(report, "letter", isalpha((unsigned char)parameters[n]) != 0);
		report_nothing(report, "nothing");
		report_close(report);
	}
	report_close(report);
}

static void clean(void)
{
	listener_end();
	unlink(address.sun_path);
	rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_assert(mkdtemp(directory));
	fuzz_assert(listener_add("/postern/echo", "Says its parameters.", echo));
	fuzz_assert(listener_begin(directory));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/dpdk_telemetry.v2", directory);
	return atexit(clean);
}

/* --- JSON */

static const char *blanks_skip(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

static const char *string_check(const char *at)
{
	fuzz_assert(*at == '"');
	for (at++; *at != '"'; at++) {
		fuzz_assert((unsigned char)*at >= ' ');
		if (*at != '\\')
			continue;
		at++;
		fuzz_assert(*at && strchr("\"\\/bfnrtu", *at));
		for (unsigned n = 0; *at == 'u' && n < 4; n++)
			fuzz_assert(isxdigit((unsigned char)at[1 + n]));
	}
	return at + 1;
}

static const char *value_check(const char *at, unsigned depth);

static const char *members_check(const char *at, char end, unsigned depth)
{
	at = blanks_skip(at + 1);
	while (*at != end) {
		if (end == '}') {
			at = blanks_skip(string_check(at));
			fuzz_assert(*at == ':');
			at = blanks_skip(at + 1);
		}
		at = blanks_skip(value_check(at, depth + 1));
		fuzz_assert(*at == ',' || *at == end);
		if (*at == ',') {
			at = blanks_skip(at + 1);
			fuzz_assert(*at != end);
		}
	}
	return at + 1;
}

static const char *value_check(const char *at, unsigned depth)
{
	fuzz_assert(depth < 16);
	if (*at == '{')
		return members_check(at, '}', depth);
	if (*at == '[')
		return members_check(at, ']', depth);
	if (*at == '"')
		return string_check(at);
	if (strncmp(at, "null", 4) == 0)
		return at + 4;
	fuzz_assert(isdigit((unsigned char)*at));
	return at + strspn(at, "0123456789");
}

/* --- clients */

/* Returns false if the client was hung up on. libFuzzer's timer interrupts long runs. */
static bool answer_take(int client)
{
	static char text[ANSWER_BYTES + 1];
	ssize_t length;

	do
		length = recv(client, text, sizeof(text), 0);
	while (length < 0 && errno == EINTR);
	if (length <= 0)
		return false;
	fuzz_assert(length < ANSWER_BYTES);
	text[length] = '\0';
	fuzz_assert(strlen(text) == (size_t)length && text[0] == '{');
	fuzz_assert(*blanks_skip(value_check(text, 0)) == '\0');
	return true;
}

static int client_make(void)
{
	int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	fuzz_assert(client >= 0);
	fuzz_assert(connect(client, (const struct sockaddr *)&address, sizeof(address)) == 0);
	fuzz_assert(answer_take(client)); /* the greeting */
	return client;
}

/* May the client be hung up on for this? */
static bool is_too_long(const uint8_t *question, size_t length)
{
	size_t name = 0;

	while (name < length && question[name] != ',' && question[name] != '\0')
		name++;
	return name >= NAME_BYTES;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int client = client_make();

	while (size > 0) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t length = end ? (size_t)(end - data) : size;
		bool answered = false;

		if (length > 0) {
			fuzz_assert(send(client, data, length, MSG_NOSIGNAL) == (ssize_t)length);
			answered = answer_take(client);
			fuzz_assert(answered ||
				    is_too_long(data, length < ASKED_BYTES ? length : ASKED_BYTES));
		}
		if (!answered) {
			close(client);
			client = client_make();
		}
		size -= end ? length + 1 : length;
		data += end ? length + 1 : length;
	}
	close(client);
	return 0;
}
