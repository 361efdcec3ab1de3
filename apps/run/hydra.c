/* SPDX-License-Identifier: BSD-3-Clause */
/* hydra.c - see hydra.h.
 *
 * H1. Hydra starts a program of its own on each host by ssh, and waits for it for ever, also if ssh
 *     has failed. So this process looks at Hydra's children: an ssh that has ended with the exit
 *     code of its own failures ends the job.
 * H2. Hydra does not notice that a rank fails before it has joined: the others would wait for it.
 *     So each rank is the child of a shell, which reports a failure on standard error. Hydra sends
 *     this to its own standard error, which this process passes on; the report ends the job.
 */
#include "hydra.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/remedy.h>

#include "label.h"

#define HYDRA         "mpiexec.hydra"
#define LOOK          200 /* ms between looks at ssh */
#define SSH_FAILED    255 /* its exit code */
#define OWN_WORDS     11  /* of Hydra's, before the program's, and the end of the list */
#define HOST_LENGTH   255
#define LINE_LENGTH   511u /* of standard error, in which a report may be */
#define REPORT_LENGTH 255u /* at most: a host's name has 64 bytes */

/* H2: what runs a rank, and how its report is read. exec: the shell has commands of its own, which
 * may have the name of the program, such as echo. The shell's name is that of this process, so a
 * report of another job ends nothing: a rank may print a log, or run postern-run itself. */
static char guard[] = "(exec \"$@\") || { code=$?; echo \"$0: rank $PMI_RANK on $(uname -n) ended "
		      "with exit code $code; the job is ended\" >&2; exit $code; }";
static char guard_name[32];
#define REPORT_PARTS ": rank %*u on %*s ended with exit code %d; the job is ended%n"

static struct {
	int from; /* Hydra's standard error */
	size_t filled;
	char line[LINE_LENGTH + 1]; /* its end: a report may follow anything */
	int code;                   /* of the first report; 0: there was none */
} errors;

static _Noreturn void hydra_become(const struct job_options *options, char *hosts, int count,
	const sigset_t *mask, pid_t parent, int error)
{
	char number[16];
	char **words = calloc((size_t)count + OWN_WORDS, sizeof(*words));
	unsigned n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	sigprocmask(SIG_SETMASK, mask, NULL);
	dup2(error, STDERR_FILENO);
	if (!words) {
		job_tell("out of memory: %s", remedy_for_memory());
		_exit(EXIT_FAILURE);
	}
	snprintf(number, sizeof(number), "%u", options->size);
	words[n++] = strdup(HYDRA);
	words[n++] = strdup("-hosts");
	words[n++] = hosts;
	words[n++] = strdup("-n");
	words[n++] = number;
	if (options->label)
		words[n++] = strdup("-l");
	words[n++] = strdup("sh");
	words[n++] = strdup("-c");
	words[n++] = guard;
	words[n++] = guard_name;
	memcpy(words + n, options->words, (size_t)count * sizeof(*words));
	execvp(HYDRA, words);
	job_tell("%s cannot be started: %s: install Debian's package mpich, or leave --hosts out",
		HYDRA, strerror(errno));
	_exit(errno == ENOENT ? EXIT_MISSING : EXIT_REFUSED);
}

/* Is this child of Hydra an ssh that has failed? */
static bool ssh_failed(int child)
{
	char path[64], name[32], state;
	int status;
	FILE *stream;
	bool failed;

	snprintf(path, sizeof(path), "/proc/%d/stat", child);
	stream = fopen(path, "re");
	if (!stream)
		return false;
	/* Of its 52 fields the 2nd, the 3rd and the last. */
	failed = fscanf(stream,
			 "%*d (%31[^)]) %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			 "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			 "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
			 name, &state, &status) == 3 &&
		 strcmp(name, "ssh") == 0 && state == 'Z' && WIFEXITED(status) &&
		 WEXITSTATUS(status) == SSH_FAILED;
	fclose(stream);
	return failed;
}

/* Calls look for each child of Hydra, until one is true. Returns whether one was. */
static bool any_child(pid_t hydra, bool (*look)(int child))
{
	char path[64];
	bool found = false;
	FILE *children;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)hydra, (int)hydra);
	children = fopen(path, "re");
	while (children && !found && fscanf(children, "%d", &child) == 1)
		found = look(child);
	if (children)
		fclose(children);
	return found;
}

/* An ssh that waits for its host would outlive Hydra for minutes. */
static bool end(int child)
{
	kill(child, SIGTERM);
	return false;
}

/* Says which host is not known, or else that one of all cannot be reached; ssh has said why. */
static void failure_tell(const char *hosts)
{
	bool told = false;

	for (const char *host = hosts; *host != '\0'; host += *host == ',') {
		const size_t length = strcspn(host, ",");
		struct addrinfo *found = NULL;
		char name[HOST_LENGTH + 1];
		int code;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(host, ",:"), host);
		code = getaddrinfo(name, NULL, NULL, &found);
		if (code == 0)
			freeaddrinfo(found);
		else
			job_tell("host \"%s\" of --hosts cannot be found: %s: correct its name, or "
				 "give its address",
				name, gai_strerror(code));
		told |= code != 0;
		host += length;
	}
	if (!told)
		job_tell("ssh, which starts the processes on %s, has failed, and says why above: "
			 "see that \"ssh HOST true\" works for each host without a password",
			hosts);
}

static int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* H2. The end of a line of standard error. */
static void line_end(void)
{
	const char *report;
	int code, end = 0;

	errors.line[errors.filled] = '\0';
	errors.filled = 0;
	report = strstr(errors.line, guard_name);
	if (report && errors.code == 0 &&
		sscanf(report + strlen(guard_name), REPORT_PARTS, &code, &end) == 1 && end > 0)
		errors.code = code;
}

static void line_add(char byte)
{
	if (errors.filled == LINE_LENGTH) {
		errors.filled = REPORT_LENGTH;
		memmove(errors.line, errors.line + LINE_LENGTH - REPORT_LENGTH, REPORT_LENGTH);
	}
	errors.line[errors.filled++] = byte != '\0' ? byte : ' ';
}

/* Passes on some of what Hydra has written. Returns false if there was nothing. */
static bool errors_turn(void)
{
	char bytes[LABEL_LINE];
	const ssize_t count = read(errors.from, bytes, sizeof(bytes));

	if (count <= 0)
		return false;
	(void)label_pass(STDERR_FILENO, bytes, (size_t)count);
	for (ssize_t n = 0; n < count; n++)
		if (bytes[n] == '\n')
			line_end();
		else
			line_add(bytes[n]);
	return true;
}

/* Hydra has ended. */
static void errors_end(void)
{
	while (errors_turn())
		;
}

/* Passes signals on, but for a terminal's, which Hydra gets as well. Returns the last one; 0: there
 * was none. */
static int signals_turn(pid_t hydra, int signals)
{
	struct signalfd_siginfo info;
	int last = 0;

	while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		last = (int)info.ssi_signo;
		if (info.ssi_code != SI_KERNEL)
			kill(hydra, last);
	}
	return last;
}

/* Hydra ends with 0 after SIGTERM, so the exit code is that of the last signal, or of the rank that
 * has failed. */
static int hydra_watch(pid_t hydra, const char *hosts, int signals)
{
	struct pollfd polled[] = {
		{.fd = signals, .events = POLLIN}, {.fd = errors.from, .events = POLLIN}};
	int status, ended_by = 0;
	bool failed = false;
	time_t looked = 0;

	while (waitpid(hydra, &status, WNOHANG) == 0) {
		const bool is_idle = poll(polled, 2, LOOK) == 0;
		const int number = signals_turn(hydra, signals);

		ended_by = number != 0 ? number : ended_by;
		(void)errors_turn();
		if (polled[1].revents & POLLHUP)
			polled[1].fd = -1;
		if (errors.code != 0 && ended_by == 0 && !failed) {
			failed = true;
			kill(hydra, SIGTERM);
		}
		if (!is_idle && time(NULL) == looked)
			continue;
		looked = time(NULL);
		if (!any_child(hydra, ssh_failed))
			continue;
		any_child(hydra, end);
		kill(hydra, SIGKILL);
		waitpid(hydra, &status, 0);
		errors_end();
		failure_tell(hosts);
		return EXIT_FAILURE;
	}
	errors_end();
	if (ended_by != 0)
		return 128 + ended_by;
	return errors.code != 0 ? errors.code : exit_code(status);
}

int hydra_run(const struct job_options *options, char *hosts, int count)
{
	const pid_t self = getpid();
	int error[2], signals;
	pid_t hydra = -1;
	sigset_t mask;

	snprintf(guard_name, sizeof(guard_name), "postern-run[%d]", (int)self);
	signals = job_signals_open(&mask);
	if (signals >= 0 && pipe2(error, O_CLOEXEC) == 0)
		hydra = fork();
	if (hydra == 0)
		hydra_become(options, hosts, count, &mask, self, error[1]);
	if (hydra < 0) {
		job_tell("%s cannot be started: %s: end some processes", HYDRA, strerror(errno));
		return EXIT_REFUSED;
	}
	close(error[1]);
	errors.from = error[0];
	fcntl(errors.from, F_SETFL, O_NONBLOCK);
	return hydra_watch(hydra, hosts, signals);
}
