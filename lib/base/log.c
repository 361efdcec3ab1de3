/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - see log.h. Any thread; the level is the only thing that threads share.
 *
 * I1. A line goes out in one write() of at most LINE_BYTES, so that lines of several threads and
 *     processes do not mix.
 * I2. What a text quotes (settings, names of devices) may hold anything; a line holds no control
 *     characters.
 * I3. errno is left as it was: callers log in the middle of handling a failure.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include <base/log.h>

#define PREFIX     "postern: "
#define LINE_BYTES 1024

static enum log_level log_level = LOG_LEVEL_WARNING;
static uint32_t log_modules;

/* Text of this thread's last log_error(), without prefix and newline. */
static _Thread_local char log_error_text[LINE_BYTES];

static void text_clean(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = '?';
}

static void text_format(char *text, size_t size, const char *format, va_list arguments)
{
	if (vsnprintf(text, size, format, arguments) < 0)
		snprintf(text, size, "%s", format);
	text_clean(text);
}

static void line_write(const char *text)
{
	char line[LINE_BYTES];
	int length = snprintf(line, sizeof(line), PREFIX "%s", text);
	size_t bytes = (size_t)length < sizeof(line) - 1 ? (size_t)length : sizeof(line) - 2;

	line[bytes++] = '\n';
	/* No cancellation point (cancel.h): callers hold locks. */
	while (syscall(SYS_write, STDERR_FILENO, line, bytes) < 0 && errno == EINTR)
		;
}

bool log_wants(enum log_level level)
{
	return level <= __atomic_load_n(&log_level, __ATOMIC_RELAXED);
}

static void log_write(const char *format, va_list arguments)
{
	char text[LINE_BYTES];
	int saved = errno;

	text_format(text, sizeof(text), format, arguments);
	line_write(text);
	errno = saved;
}

void log_error(const char *format, ...)
{
	va_list arguments;
	char text[LINE_BYTES]; /* apart, so that log_error("%s", log_last_error()) is fine */
	int saved = errno;

	va_start(arguments, format);
	text_format(text, sizeof(text), format, arguments);
	va_end(arguments);
	memcpy(log_error_text, text, sizeof(text));
	line_write(text);
	errno = saved;
}

void log_warning(const char *format, ...)
{
	va_list arguments;

	if (!log_wants(LOG_LEVEL_WARNING))
		return;
	va_start(arguments, format);
	log_write(format, arguments);
	va_end(arguments);
}

void log_info(const char *format, ...)
{
	va_list arguments;

	if (!log_wants(LOG_LEVEL_INFO))
		return;
	va_start(arguments, format);
	log_write(format, arguments);
	va_end(arguments);
}

void log_debug(enum log_module module, const char *format, ...)
{
	va_list arguments;

	if (!log_wants(LOG_LEVEL_DEBUG) &&
		!(__atomic_load_n(&log_modules, __ATOMIC_RELAXED) >> module & 1))
		return;
	va_start(arguments, format);
	log_write(format, arguments);
	va_end(arguments);
}

void log_set_level(enum log_level level)
{
	__atomic_store_n(&log_level, level, __ATOMIC_RELAXED); /* orders nothing */
}

void log_set_modules(uint32_t modules)
{
	__atomic_store_n(&log_modules, modules, __ATOMIC_RELAXED);
}

uint32_t log_module_find(const char *name)
{
	static const char *const names[] = {
#define X(constant, name, what) name,
		LOG_MODULES(X)
#undef X
	};

	if (strcmp(name, "all") == 0)
		return UINT32_MAX;
	for (unsigned i = 0; i < LOG_MODULE_COUNT; i++)
		if (strcmp(name, names[i]) == 0)
			return UINT32_C(1) << i;
	return 0;
}

const char *log_last_error(void)
{
	return log_error_text;
}

void log_clear_error(void)
{
	log_error_text[0] = '\0';
}
