/* log.h - one-sentence messages to standard error. Never on the data path.
 *
 * Level from PTL_LOG_LEVEL: error, warning (default), info, debug. A line is "postern: ...\n", written by one write().
 * log_error() also keeps its text for this thread, for postern_last_error().
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* What failed, on what, why, and what to do, in one sentence without a full stop's newline. Any thread. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

void log_set_level(enum log_level level);
const char *log_last_error(void);
void log_clear_error(void);

#endif
