/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - one-sentence messages to standard error. Never on the data path.
 *
 * Level from PTL_LOG_LEVEL: error, warning (default), info, debug. PTL_DEBUG shows the debug
 * messages of some modules, whatever the level. A line is "postern: ...\n", written by one write().
 * log_error() also keeps its text for this thread, for log_last_error().
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include <base/core.h>

/* What PTL_DEBUG may name: X(constant, name, what its messages are about). */
#define LOG_MODULES(X)                                                                             \
	X(LOG_DPDK, "dpdk", "how DPDK is started, and all that it says")                           \
	X(LOG_PORT, "port", "devices and their buffers")                                           \
	X(LOG_INTERFACE, "interface", "interfaces that open and close, and their threads")         \
	X(LOG_TRANSPORT, "transport", "peers that come, go, die or restart")                       \
	X(LOG_MEMORY, "memory", "memory that is not where it should be")                           \
	X(LOG_CAPTURE, "capture", "files of captured frames")

enum log_module {
#define X(constant, name, what) constant,
	LOG_MODULES(X)
#undef X
		LOG_MODULE_COUNT
};

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* What failed, on what, why, and what to do, in one sentence without a full stop's newline. Any
 * thread. */
void log_error(const char *format, ...) CORE_API(log_error) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) CORE_API(log_warning)
	__attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(enum log_module module, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void log_set_level(enum log_level level);
/* Would a message of this level be written? For messages that are written once. */
bool log_wants(enum log_level level);
/* The modules whose debug messages are shown at any level, a bit each. */
void log_set_modules(uint32_t modules);
/* The bit of a module by its name, all for "all"; 0: there is none of that name. */
uint32_t log_module_find(const char *name);
const char *log_last_error(void) CORE_API(log_last_error);
void log_clear_error(void) CORE_API(log_clear_error);

#endif
