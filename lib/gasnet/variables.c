/* SPDX-License-Identifier: BSD-3-Clause */
/* variables.c - GASNet's variables. In a program with more rights than its user all of them count
 * as not set (secure_getenv). */
#include "state.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define DEFAULT_BLOCK   (UINT64_C(1) << 20)
#define DEFAULT_BLOCKS  16u
#define DEFAULT_QUEUE   8192u
#define BLOCK_LEAST     (4u * MESSAGE_MAX)
#define BLOCK_MOST      (UINT64_C(1) << 30)
#define BLOCKS_LEAST    4u
#define BLOCKS_MOST     4096u
#define QUEUE_LEAST     128u
#define TRANSFERS_LEAST 1024u
#define QUEUE_MOST      (UINT64_C(1) << 24)
#define EXIT_WAIT_MOST  60.0 /* s; GASNET_EXITTIMEOUT says another */
#define EXIT_WAIT_LEAST 2.0
#define EXIT_WAIT_RANK  0.05

/* A client's own default of GASNET_MAX_SEGSIZE. */
extern uint64_t gasnet_max_segsize __attribute__((weak, visibility("default")));
uint64_t gasnet_max_segsize;

char *gasnet_getenv(const char *name)
{
	return name ? secure_getenv(name) : NULL;
}

/* Whether it is set, and not to a no. */
static bool is_set(const char *name)
{
	const char *text = gasnet_getenv(name);

	return text && *text && !strchr("0nN", *text);
}

static void tell(const char *name, const char *value, bool given)
{
	if (gasnet.rank == 0 && is_set("GASNET_VERBOSEENV"))
		fprintf(stderr, "ENV parameter: %s = %s%s\n", name, value,
			given ? "" : "   (default)");
}

uint64_t environment_number(const char *name, uint64_t fallback, bool size)
{
	const char *text = gasnet_getenv(name);
	uint64_t number = fallback;
	unsigned shift = 0;
	char *end, value[32];

	if (text && *text) {
		errno = 0;
		number = strtoull(text, &end, 0);
		if (size && isalpha((unsigned char)*end)) {
			const char *units = "KMGT", *unit = strchr(units, toupper(*end));

			shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
			end += unit != NULL;
			end += shift > 0 && (*end == 'B' || *end == 'b');
		}
		if (end == text || *end || strchr(text, '-') || errno == ERANGE ||
			number > UINT64_MAX >> shift) {
			complain("%s=%s is no number: set it to one such as %s", name, text,
				size ? "64M" : "8192");
			number = fallback;
			shift = 0;
		}
		number <<= shift;
	}
	snprintf(value, sizeof(value), "%llu", (unsigned long long)number);
	tell(name, value, text && *text);
	return number;
}

static uint64_t bounded(
	const char *name, uint64_t fallback, bool size, uint64_t least, uint64_t most)
{
	uint64_t number = environment_number(name, fallback, size);

	if (number >= least && number <= most)
		return number;
	number = number < least ? least : most;
	complain("%s is taken as %llu, the %s that is allowed", name, (unsigned long long)number,
		number == least ? "least" : "most");
	return number;
}

static double seconds(const char *name, double fallback)
{
	const char *text = gasnet_getenv(name);
	double number = fallback;
	char *end, value[32];

	if (text && *text) {
		number = strtod(text, &end);
		if (end == text || *end || !(number >= 0 && number < 1e6)) {
			complain("%s=%s is no number of seconds: set it to one such as 2.5", name,
				text);
			number = fallback;
		}
	}
	snprintf(value, sizeof(value), "%g", number);
	tell(name, value, text && *text);
	return number;
}

static bool yes(const char *name)
{
	const char *text = gasnet_getenv(name);
	bool set = is_set(name);

	tell(name, set ? "YES" : "NO", text && *text);
	return set;
}

bool environment_lists(const char *name, const char *signal)
{
	const char *at = gasnet_getenv(name);

	while (at && *at) {
		size_t length = strcspn(at, ", "), prefix = strncmp(at, "SIG", 3) == 0 ? 3 : 0;

		if ((length == 1 && *at == '*') ||
			(length == prefix + strlen(signal) &&
				strncmp(at + prefix, signal, length - prefix) == 0))
			return true;
		at += length;
		at += strspn(at, ", ");
	}
	return false;
}

void freeze(void)
{
	complain("process %d waits for a debugger, or SIGCONT", (int)getpid());
	(void)raise(SIGSTOP);
}

/* What other libraries of GASNet may have been compiled with. */
static void missing_tell(void)
{
	static const char *const missing[] = {"GASNET_TRACE", "GASNET_STATS", "GASNET_MALLOC_"};

	for (char **variable = environ; variable && *variable; variable++)
		for (unsigned i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
			if (strncmp(*variable, missing[i], strlen(missing[i])) == 0)
				complain("%.*s has no effect: this library has no traces, "
					 "statistics or checks of memory",
					(int)strcspn(*variable, "="), *variable);
}

void environment_read(void)
{
	double most, wait;

	gasnet.block_size =
		bounded("GASNET_AM_BUFFER_SIZE", DEFAULT_BLOCK, true, BLOCK_LEAST, BLOCK_MOST);
	gasnet.blocks =
		bounded("GASNET_AM_NUM_ENTRIES", DEFAULT_BLOCKS, false, BLOCKS_LEAST, BLOCKS_MOST);
	gasnet.queue = bounded(
		"GASNET_AM_EVENT_QUEUE_LENGTH", DEFAULT_QUEUE, false, QUEUE_LEAST, QUEUE_MOST);
	gasnet.transfer_most = bounded("GASNET_EXTENDED_EVENT_QUEUE_LENGTH", DEFAULT_QUEUE, false,
		TRANSFERS_LEAST, QUEUE_MOST);
	gasnet.segment_most = environment_number("GASNET_MAX_SEGSIZE", gasnet_max_segsize, true);
	most = seconds("GASNET_EXITTIMEOUT_MAX", EXIT_WAIT_MOST);
	wait = seconds("GASNET_EXITTIMEOUT_MIN", EXIT_WAIT_LEAST) +
	       seconds("GASNET_EXITTIMEOUT_FACTOR", EXIT_WAIT_RANK) * gasnet.size;
	gasnet.exit_wait = seconds("GASNET_EXITTIMEOUT", wait < most ? wait : most);
	gasnet.syncs = yes("GASNET_FS_SYNC");
	gasnet.traces = yes("GASNET_BACKTRACE");
	gasnet.freezes = yes("GASNET_FREEZE_ON_ERROR");
	if (gasnet.rank == 0 && !getauxval(AT_SECURE))
		missing_tell();
	if (yes("GASNET_FREEZE"))
		freeze();
}
