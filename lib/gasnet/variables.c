/* SPDX-License-Identifier: BSD-3-Clause */
/* variables.c - GASNet's variables. In a program with more rights than its user all of them count
 * as not set (secure_getenv). */
#include "state.h"

#include <ctype.h>
#include <errno.h>
#include <execinfo.h>
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
#define FRAMES          64 /* of a backtrace */

/* A client's own default of GASNET_MAX_SEGSIZE. */
extern uint64_t gasnet_max_segsize __attribute__((weak, visibility("default")));
uint64_t gasnet_max_segsize;

char *gasnet_getenv(const char *name)
{
	return name ? secure_getenv(name) : NULL;
}

static bool verbose; /* GASNET_VERBOSEENV */

static void tell(const char *name, const char *value, bool given)
{
	if (gasnet.rank == 0 && verbose)
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

static bool is_one_of(const char *text, const char *const words[])
{
	while (*words && strcasecmp(text, *words) != 0)
		words++;
	return *words != NULL;
}

static bool yes(const char *name)
{
	static const char *const noes[] = {"0", "n", "no", "f", "false", "off", NULL};
	static const char *const yesses[] = {"1", "y", "yes", "t", "true", "on", NULL};
	const char *text = gasnet_getenv(name);
	bool given = text && *text, set = given && is_one_of(text, yesses);

	if (given && !set && !is_one_of(text, noes))
		complain("%s=%s is neither yes nor no: set it to one of them", name, text);
	tell(name, set ? "YES" : "NO", given);
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

/* A list of ranks, such as 0,2-5, or "*". */
static bool lists_rank(const char *name)
{
	const char *text = gasnet_getenv(name), *at = text;
	bool listed = !text || !*text || strcmp(text, "*") == 0;

	tell(name, listed ? "*" : text, text && *text);
	while (!listed && *at) {
		unsigned long first, last;
		char *end;

		first = last = strtoul(at, &end, 10);
		if (end != at && *end == '-' && isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if (!isdigit((unsigned char)*at) || (*end && *end != ',')) {
			complain("%s=%s is no list of ranks: set it to one such as 0,2-5", name,
				text);
			return true;
		}
		listed = gasnet.rank >= first && gasnet.rank <= last;
		at = *end ? end + 1 : end;
	}
	return listed;
}

/* The number of a signal that a variable names; 0: none. Faults, which would come again at once,
 * and what the library or the system needs cannot be named. */
static int signal_named(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"HUP", SIGHUP}, {"INT", SIGINT}, {"TERM", SIGTERM}, {"USR1", SIGUSR1},
		{"USR2", SIGUSR2}, {"URG", SIGURG}, {"WINCH", SIGWINCH}, {"IO", SIGIO},
		{"PROF", SIGPROF}, {"VTALRM", SIGVTALRM}};
	const char *text = gasnet_getenv(name);
	bool given = text && *text;
	int number = 0;

	for (size_t i = 0; given && i < sizeof(signals) / sizeof(signals[0]); i++)
		if (strcasecmp(text + (strncasecmp(text, "SIG", 3) == 0 ? 3 : 0),
			    signals[i].name) == 0)
			number = signals[i].number;
	if (given && number == 0)
		complain("%s=%s is no signal that can be used: set it to one such as SIGUSR1", name,
			text);
	tell(name, number ? text : "none", given);
	return number;
}

static void signal_set(int number, void (*function)(int))
{
	struct sigaction action = {.sa_handler = function, .sa_flags = SA_RESTART};

	if (number == 0)
		return;
	sigemptyset(&action.sa_mask);
	(void)sigaction(number, &action, NULL);
}

/* --- stopping and backtraces. Signals' handlers call these too, so they take no lock. */

static char freeze_text[96], backtrace_text[96];

static void write_out(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* nobody reads it */
}

void freeze(void)
{
	write_out(freeze_text);
	(void)raise(SIGSTOP);
}

void backtrace_write(void)
{
	void *frames[FRAMES];

	backtrace_symbols_fd(frames, backtrace(frames, FRAMES), STDERR_FILENO);
}

static void freeze_asked(int number)
{
	int kept = errno;

	(void)number;
	freeze();
	errno = kept;
}

static void backtrace_asked(int number)
{
	int kept = errno;

	(void)number;
	write_out(backtrace_text);
	backtrace_write();
	errno = kept;
}

static void debugging_read(void)
{
	void *frame;
	bool here = lists_rank("GASNET_BACKTRACE_NODES");
	int freezing, tracing;

	snprintf(freeze_text, sizeof(freeze_text),
		"gasnet: rank %u: process %d waits for a debugger, or SIGCONT\n", gasnet.rank,
		(int)getpid());
	snprintf(backtrace_text, sizeof(backtrace_text), "gasnet: rank %u: process %d is here:\n",
		gasnet.rank, (int)getpid());
	gasnet.traces = yes("GASNET_BACKTRACE") && here;
	gasnet.freezes = yes("GASNET_FREEZE_ON_ERROR");
	freezing = signal_named("GASNET_FREEZE_SIGNAL");
	tracing = signal_named("GASNET_BACKTRACE_SIGNAL");
	signal_set(freezing, freeze_asked);
	if (here && tracing) {
		(void)backtrace(&frame, 1); /* loads what a signal's handler may not */
		signal_set(tracing, backtrace_asked);
	} else if (tracing) {
		signal_set(tracing, SIG_IGN);
	}
}

/* --- variables without effect */

/* Whether a list of words has this one, in any case. */
static bool list_has(const char *list, const char *word)
{
	while (*list) {
		size_t length = strcspn(list, ", ");

		if (length == strlen(word) && strncasecmp(list, word, length) == 0)
			return true;
		list += length;
		list += strspn(list, ", ");
	}
	return false;
}

/* Of those that GASNet has. */
static void missing_tell(void)
{
	static const struct {
		const char *prefix;
		const char *well; /* a value that says what is so anyway, or NULL */
		const char *why;
	} missing[] = {
		{"GASNET_TRACE", NULL,
			"this library has no traces, statistics or checks of memory"},
		{"GASNET_STATS", NULL,
			"this library has no traces, statistics or checks of memory"},
		{"GASNET_MALLOC_", NULL,
			"this library has no traces, statistics or checks of memory"},
		{"GASNET_BACKTRACE_TYPE=", "EXECINFO", "backtraces are those of EXECINFO"},
		{"GASNET_BARRIER=", "DISSEM", "there is one barrier, a dissemination"},
		{"GASNET_MAX_THREADS=", NULL, "any number of threads may call the library"},
		{"GASNET_TMPDIR=", NULL, "this library makes no temporary files"},
	};

	for (char **variable = environ; variable && *variable; variable++)
		for (unsigned i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
			size_t length = strlen(missing[i].prefix);

			if (strncmp(*variable, missing[i].prefix, length) == 0 &&
				!(missing[i].well && list_has(*variable + length, missing[i].well)))
				complain("%.*s has no effect: %s", (int)strcspn(*variable, "="),
					*variable, missing[i].why);
		}
}

void environment_read(void)
{
	double most, wait;

	verbose = yes("GASNET_VERBOSEENV");
	gasnet.block_size =
		bounded("GASNET_AM_BUFFER_SIZE", DEFAULT_BLOCK, true, BLOCK_LEAST, BLOCK_MOST);
	gasnet.blocks =
		bounded("GASNET_AM_NUM_ENTRIES", DEFAULT_BLOCKS, false, BLOCKS_LEAST, BLOCKS_MOST);
	gasnet.queue = bounded(
		"GASNET_AM_EVENT_QUEUE_LENGTH", DEFAULT_QUEUE, false, QUEUE_LEAST, QUEUE_MOST);
	gasnet.transfer_most = bounded("GASNET_EXTENDED_EVENT_QUEUE_LENGTH", DEFAULT_QUEUE, false,
		TRANSFERS_LEAST, QUEUE_MOST);
	gasnet.segment_most = environment_number("GASNET_MAX_SEGSIZE", gasnet_max_segsize, true);
	gasnet.shares = environment_number("GASNET_SUPERNODE_MAXSIZE", 0, false) != 1;
	most = seconds("GASNET_EXITTIMEOUT_MAX", EXIT_WAIT_MOST);
	wait = seconds("GASNET_EXITTIMEOUT_MIN", EXIT_WAIT_LEAST) +
	       seconds("GASNET_EXITTIMEOUT_FACTOR", EXIT_WAIT_RANK) * gasnet.size;
	gasnet.exit_wait = seconds("GASNET_EXITTIMEOUT", wait < most ? wait : most);
	gasnet.syncs = yes("GASNET_FS_SYNC");
	debugging_read();
	if (gasnet.rank == 0 && !getauxval(AT_SECURE))
		missing_tell();
	if (yes("GASNET_FREEZE"))
		freeze();
}
