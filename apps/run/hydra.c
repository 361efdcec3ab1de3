/* SPDX-License-Identifier: BSD-3-Clause */
/* hydra.c - see hydra.h.
 *
 * Hydra starts a program of its own on each host by ssh, and waits for it for ever, also if ssh has
 * failed. So this process looks at Hydra's children: an ssh that has ended with the exit code of
 * its own failures ends the job.
 */
#include "hydra.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/remedy.h>

#define HYDRA       "mpiexec.hydra"
#define LOOK        200000000 /* ns between looks at ssh */
#define SSH_FAILED  255       /* its exit code */
#define OWN_WORDS   7         /* of Hydra's, before the program's, and the end of the list */
#define HOST_LENGTH 255

static _Noreturn void hydra_become(const struct job_options *options, char *hosts, int count,
	const sigset_t *mask, pid_t parent)
{
	char number[16];
	char **words = calloc((size_t)count + OWN_WORDS, sizeof(*words));
	unsigned n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	sigprocmask(SIG_SETMASK, mask, NULL);
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

/* Passes signals on, but for a terminal's, which Hydra gets as well. Hydra ends with 0 after
 * SIGTERM, so the exit code is that of the last signal. */
static int hydra_watch(pid_t hydra, const char *hosts, const sigset_t *signals)
{
	const struct timespec pause = {.tv_nsec = LOOK};
	int status, ended_by = 0;
	siginfo_t info;

	while (waitpid(hydra, &status, WNOHANG) == 0) {
		const int number = sigtimedwait(signals, &info, &pause);

		if (number > 0 && number != SIGCHLD) {
			ended_by = number;
			if (info.si_code != SI_KERNEL)
				kill(hydra, number);
		}
		if (number > 0 || !any_child(hydra, ssh_failed))
			continue;
		any_child(hydra, end);
		kill(hydra, SIGKILL);
		waitpid(hydra, &status, 0);
		failure_tell(hosts);
		return EXIT_FAILURE;
	}
	return ended_by != 0 ? 128 + ended_by : exit_code(status);
}

/* The end of Hydra, and what ends this process; a signal that it was started to ignore stays
 * ignored. */
static sigset_t signals_watched(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
	struct sigaction action;
	sigset_t signals;

	sigemptyset(&signals);
	signal(SIGCHLD, SIG_DFL);
	for (unsigned n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
		if (sigaction(numbers[n], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&signals, numbers[n]);
	return signals;
}

int hydra_run(const struct job_options *options, char *hosts, int count)
{
	const pid_t self = getpid();
	const sigset_t signals = signals_watched();
	sigset_t mask;
	pid_t hydra;

	sigprocmask(SIG_BLOCK, &signals, &mask);
	hydra = fork();
	if (hydra == 0)
		hydra_become(options, hosts, count, &mask, self);
	if (hydra < 0) {
		job_tell("%s cannot be started: %s: end some processes", HYDRA, strerror(errno));
		return EXIT_REFUSED;
	}
	return hydra_watch(hydra, hosts, &signals);
}
