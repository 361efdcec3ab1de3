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
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/log.h>

#define PREFIX     "postern: "
#define LINE_BYTES 1024

static enum log_level log_level = LOG_LEVEL_WARNING;

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
	while (write(STDERR_FILENO, line, bytes) < 0 && errno == EINTR)
		;
}

static void log_write(enum log_level level, const char *format, va_list arguments)
{
	char text[LINE_BYTES];
	int saved = errno;

	if (level > __atomic_load_n(&log_level, __ATOMIC_RELAXED))
		return;
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

	va_start(arguments, format);
	log_write(LOG_LEVEL_WARNING, format, arguments);
	va_end(arguments);
}

void log_info(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_write(LOG_LEVEL_INFO, format, arguments);
	va_end(arguments);
}

void log_debug(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_write(LOG_LEVEL_DEBUG, format, arguments);
	va_end(arguments);
}

void log_set_level(enum log_level level)
{
	__atomic_store_n(&log_level, level, __ATOMIC_RELAXED); /* orders nothing */
}

const char *log_last_error(void)
{
	return log_error_text;
}

void log_clear_error(void)
{
	log_error_text[0] = '\0';
}
