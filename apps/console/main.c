/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - postern-console: interfaces to look into, to steer and to send from. See console.h. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmdline.h>

#include "../output.h"
#include "../parse.h"
#include "console.h"
#include "grammar.h"
#include "script.h"
#include "traffic.h"

#define EXIT_COMMAND    1
#define EXIT_USAGE      2
#define NANOSECONDS     1000000000u
#define COMPLAINT_BYTES 1024

static const char help_text[] =
	"Usage: postern-console [OPTION...] [FILE]\n"
	"\n"
	"Opens the interfaces of PTL_IFACE_NAME, shows their state, changes settings, sends and\n"
	"receives messages. Commands come from the terminal, with completion (tab), help (?) and\n"
	"history (arrows), or from FILE or a pipe; the command help lists them.\n"
	"\n"
	"  -p, --pid PID  process id of the interfaces (default: the process id of the system)\n"
	"  -j, --json     show and watch print JSON\n"
	"  -h, --help     this text and the commands\n"
	"  -V, --version  the library's version\n"
	"\n"
	"Exit codes: 0 all went well, 1 a command of a script failed, which ends it, or no "
	"interface\n"
	"can be opened, 2 the options were wrong.\n";

struct console console;

static const char *place_name;
static unsigned place_line;
static volatile sig_atomic_t interrupted;

ptl_handle_ni_t console_interface(void)
{
	return console.interfaces[console.current];
}

void console_place(const char *script, unsigned line)
{
	place_name = script;
	place_line = line;
}

void console_fail(const char *format, ...)
{
	char text[COMPLAINT_BYTES];
	va_list arguments;

	console.failed = true;
	fflush(stdout);
	if (place_name)
		fprintf(stderr, "%s:%u: ", place_name, place_line);
	else if (!console.terminal)
		fputs("postern-console: ", stderr);
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (char *c = text; *c != '\0'; c++)
		if (iscntrl((unsigned char)*c)) /* of a script, and a terminal would obey it */
			*c = '?';
	fprintf(stderr, "%s.\n", text);
}

void console_fail_call(int code, const char *call)
{
	const char *why = postern_last_error();

	if (code == PTL_FAIL && why[0] != '\0')
		console_fail("%s", why);
	else
		console_fail("%s: %s", call, postern_error_text(code));
}

bool console_interrupted(void)
{
	return interrupted;
}

bool console_sleep(uint64_t nanoseconds)
{
	struct timespec time = {
		(time_t)(nanoseconds / NANOSECONDS), (long)(nanoseconds % NANOSECONDS)};
	struct pollfd key = {.fd = STDIN_FILENO, .events = POLLIN};
	char c;

	if (ppoll(&key, console.terminal ? 1 : 0, &time, NULL) > 0)
		return read(STDIN_FILENO, &c, 1) < 0; /* the key is used up */
	return !interrupted;
}

static void on_signal(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* Opens all interfaces. Returns false if there is none. */
static bool interfaces_open(ptl_pid_t pid)
{
	bool any = false;
	int count;

	if (PtlInit(&count) != PTL_OK)
		return false;
	for (unsigned i = 0; i < (unsigned)count && i < INTERFACES_MAX; i++) {
		int code = PtlNIInit((ptl_interface_t)i, pid, NULL, NULL, &console.interfaces[i]);

		console.open[i] = code == PTL_OK;
		if (code == PTL_OK && !any)
			console.current = i;
		if (code != PTL_OK && postern_last_error()[0] == '\0') /* which has been printed */
			console_fail(
				"interface %u cannot be opened: %s", i, postern_error_text(code));
		any |= code == PTL_OK;
		console.count++;
	}
	return any;
}

static void interfaces_close(void)
{
	traffic_end();
	for (unsigned i = 0; i < console.count; i++)
		if (console.open[i])
			PtlNIFini(console.interfaces[i]);
	traffic_join();
	PtlFini();
}

/* The program's exit code. */
static int commands_run(const char *file)
{
	struct cmdline *cmdline = cmdline_new(grammar(), "", -1, -1);
	FILE *script = file ? fopen(file, "re") : stdin;
	bool fine = true;

	if (!cmdline) {
		console_fail("there is no memory for the command line");
		return EXIT_COMMAND;
	}
	if (!script) {
		console_fail("%s cannot be opened: %s; give the path of a file with commands", file,
			strerror(errno));
		cmdline_free(cmdline);
		return EXIT_COMMAND;
	}
	console.terminal = !file && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (console.terminal)
		terminal_run(cmdline);
	else
		fine = script_run(cmdline, script, file ? file : "standard input");
	if (file)
		fclose(script);
	cmdline_free(cmdline);
	return fine ? 0 : EXIT_COMMAND;
}

/* Faults can be changed only in an interface that was made for them. */
static void faults_prepare(void)
{
	setenv("PTL_FAULT", "drop=0", 0);
}

static int usage(const char *format, const char *word)
{
	fputs("postern-console: ", stderr);
	fprintf(stderr, format, word);
	fputs("postern-console --help lists the options.\n", stderr);
	return EXIT_USAGE;
}

static int options_read(int count, char **words, ptl_pid_t *pid)
{
	static const struct option options[] = {
		{"pid", required_argument, NULL, 'p'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	uint64_t number;
	int letter;

	while ((letter = getopt_long(count, words, "p:jhV", options, NULL)) != -1) {
		switch (letter) {
		case 'p':
			if (!parse_number(optarg, PTL_PID_MAX, &number))
				return usage("--pid takes a process id such as 1, not \"%s\".\n",
					optarg);
			*pid = (ptl_pid_t)number;
			break;
		case 'j':
			console.json = true;
			break;
		case 'h':
			printf("%s\nCommands:\n", help_text);
			grammar_help(NULL);
			exit(0);
		case 'V':
			printf("postern-console %s\n", postern_version());
			exit(0);
		default:
			fputs("postern-console --help lists the options.\n", stderr);
			return EXIT_USAGE;
		}
	}
	return count - optind > 1
		       ? usage("only one FILE can be run, and \"%s\" is a second one; leave it "
			       "out.\n",
				 words[optind + 1])
		       : 0;
}

int main(int count, char **words)
{
	struct sigaction action = {.sa_handler = on_signal};
	ptl_pid_t pid = PTL_PID_ANY;
	int code;

	output_watch("postern-console", EXIT_COMMAND);
	grammar_prepare();
	code = options_read(count, words, &pid);
	if (code != 0)
		return code;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	faults_prepare();
	if (!interfaces_open(pid))
		return EXIT_COMMAND;
	code = commands_run(words[optind]);
	interfaces_close();
	return code;
}
