/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - see job.h.
 *
 * J1. A rank that fails ends the job: an exit code other than 0, a signal, an end without having
 *     left the job, or a barrier that a rank that has ended or left will not reach. The first
 *     failure gives the job's exit code.
 * J2. Ranks die with this process, whatever ends it (PR_SET_PDEATHSIG). Processes that they have
 *     left behind become this one's children (PR_SET_CHILD_SUBREAPER), and a job that fails ends
 *     them, too.
 * J3. Ranks stay in the process group of this process, so that a terminal's keys reach them: a
 *     signal that the terminal sent is not passed on.
 * J4. With --meet (meet.h) one rank is this process's child. That of rank 0 is the launcher: the
 *     other ranks are distant, and the end of a distant rank's socket is its end. That of another
 *     rank has the same socket as its program, which alone reads from it: it tells rank 0 how its
 *     program has failed, and ends it when rank 0 closes the socket, which ends the job here.
 * J5. A rank may ask for all keys and values at once (space.h): a word of the answer to cmd=init
 *     says so. The answer goes as far as the rank reads it; until it has all, nothing else that the
 *     rank says is heard, so that what it is owed is one place in one text.
 */
#include "job.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/pmi.h>
#include <base/remedy.h>

#include "label.h"
#include "meet.h"
#include "space.h"

#define GRACE       2000 /* ms from SIGTERM to SIGKILL */
#define KILL_AGAIN  50   /* ms */
#define MEET_LOOK   500  /* ms between looks whether ranks have come */
#define STREAMS     2u   /* standard output and error */
#define FILES_START 16u  /* open while the first rank starts */
#define LINE_ROOM   4096u

struct rank {
	pid_t process; /* 0: it has ended, or is distant */
	bool distant;  /* on another host (J4); has ended: false */
	int socket;    /* -1: closed */
	bool joined;   /* it has begun PMI and not finished it */
	bool left;     /* it has finished it */
	bool waits;    /* at the barrier */
	struct pmi_lines lines;
	const char *owed; /* J5: what it has not read yet, */
	size_t owed_length;
	struct label labels[STREAMS];
};

static struct rank ranks[RANKS_MAX];
static unsigned size;       /* of the job */
static unsigned alive;      /* ranks */
static unsigned distant;    /* of them */
static unsigned absent;     /* of them: they have not come yet */
static uint64_t meet_at;    /* ms: until when they may come */
static int server = -1;     /* of a rank that is not 0: to rank 0's postern-run (J4) */
static bool labelled;       /* output */
static bool ending;         /* the job has failed, or was told to end */
static int exit_code;       /* of the job */
static uint64_t kill_at;    /* ms; while the job ends: time of the next SIGKILL */
static sigset_t mask;       /* of signals, as this process found it */
static struct rlimit files; /* open at a time, as this process found it */

void job_tell(const char *format, ...)
{
	char text[LINE_ROOM];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (char *at = text; *at; at++)
		if (iscntrl((unsigned char)*at)) /* of a rank's line: a terminal would obey it */
			*at = '?';
	fprintf(stderr, "postern-run: %s\n", text);
}

/* --- the end */

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* To ranks, and to what ranks have left behind (J2). */
static void children_signal(int number)
{
	char path[64];
	FILE *children;
	int child;

	for (unsigned n = 0; n < size; n++)
		if (ranks[n].process > 0)
			kill(ranks[n].process, number);
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	children = fopen(path, "re");
	while (children && alive == 0 && fscanf(children, "%d", &child) == 1)
		kill(child, number);
	if (children)
		fclose(children);
}

static void socket_close(struct rank *rank)
{
	close(rank->socket);
	rank->socket = -1;
	rank->owed_length = 0;
}

/* J4. Ends what is on other hosts. */
static void distant_end(void)
{
	meet_close();
	if (server >= 0)
		close(server);
	server = -1;
	for (unsigned n = 0; n < size; n++) {
		if (!ranks[n].distant)
			continue;
		if (ranks[n].socket >= 0)
			socket_close(&ranks[n]);
		ranks[n].distant = false;
	}
	alive -= distant;
	distant = 0;
}

/* The first reason counts. number: the signal that ranks get; 0: they have it already. */
static void job_end(int code, int number)
{
	if (ending)
		return;
	ending = true;
	exit_code = code;
	kill_at = now() + GRACE;
	if (server >= 0)
		(void)pmi_write(server, "cmd=abort exitcode=%d\n", code);
	distant_end();
	if (number != 0)
		children_signal(number);
}

static void job_fail(unsigned rank, int code, const char *what)
{
	if (!ending)
		job_tell("rank %u %s%s", rank, what, alive > 0 ? "; the others are ended" : "");
	job_end(code, SIGTERM);
}

static bool rank_lives(const struct rank *rank)
{
	return rank->process > 0 || rank->distant;
}

/* J1. Does a rank wait for one that will not come? */
static void barrier_check(void)
{
	unsigned waiting = 0;

	while (waiting < size && !ranks[waiting].waits)
		waiting++;
	for (unsigned n = 0; n < size && waiting < size && !ending; n++) {
		if (rank_lives(&ranks[n]) && !ranks[n].left)
			continue;
		job_tell("rank %u waits for rank %u, which has %s; the job is ended", waiting, n,
			rank_lives(&ranks[n]) ? "left the job" : "ended");
		job_end(EXIT_FAILURE, SIGTERM);
	}
}

static void rank_end(unsigned n, int status)
{
	char what[96];

	ranks[n].process = 0;
	alive--;
	if (WIFSIGNALED(status)) {
		snprintf(what, sizeof(what), "was ended by signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
		job_fail(n, 128 + WTERMSIG(status), what);
	} else if (WEXITSTATUS(status) != 0) {
		snprintf(what, sizeof(what), "ended with exit code %d", WEXITSTATUS(status));
		job_fail(n, WEXITSTATUS(status), what);
	} else if (ranks[n].joined) {
		job_fail(n, EXIT_FAILURE, "ended without postern_job_leave()");
	}
	barrier_check();
}

/* Returns false if there are no children any more. */
static bool children_reap(void)
{
	pid_t process;
	int status;

	while ((process = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned n = 0; n < size; n++)
			if (ranks[n].process == process)
				rank_end(n, status);
	return process == 0;
}

/* --- what ranks ask */

static void barrier_enter(unsigned rank)
{
	unsigned waiting = 0;

	ranks[rank].waits = true;
	for (unsigned n = 0; n < size; n++)
		waiting += ranks[n].waits;
	if (waiting < size) {
		barrier_check();
		return;
	}
	/* A rank that waits is owed nothing. */
	space_forget_text();
	for (unsigned n = 0; n < size; n++) {
		ranks[n].waits = false;
		(void)pmi_write(ranks[n].socket, "cmd=barrier_out\n");
	}
}

static bool put(unsigned rank, const char *line)
{
	char key[PMI_KEY], value[PMI_VALUE];

	if (!pmi_word(line, "key", key, sizeof(key)) ||
		!pmi_word(line, "value", value, sizeof(value)))
		return false;
	if (!space_put(key, value))
		return pmi_write(ranks[rank].socket, "cmd=put_result rc=-1 msg=no_memory\n");
	return pmi_write(ranks[rank].socket, "cmd=put_result rc=0 msg=success\n");
}

static bool get(unsigned rank, const char *line)
{
	char key[PMI_KEY];
	const char *value;

	if (!pmi_word(line, "key", key, sizeof(key)))
		return false;
	value = space_get(key);
	if (!value)
		return pmi_write(
			ranks[rank].socket, "cmd=get_result rc=-1 msg=key_%s_not_found\n", key);
	return pmi_write(ranks[rank].socket, "cmd=get_result rc=0 msg=success value=%s\n", value);
}

/* J5. Sends what the socket takes. Returns false if the rank does not read any more. */
static bool owed_send(struct rank *rank)
{
	while (rank->owed_length > 0) {
		ssize_t sent = send(
			rank->socket, rank->owed, rank->owed_length, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
		rank->owed += sent;
		rank->owed_length -= (size_t)sent;
	}
	return true;
}

static bool get_all(struct rank *rank)
{
	if (rank->waits)
		return false;
	rank->owed = space_text(&rank->owed_length);
	if (!rank->owed)
		return pmi_write(rank->socket, "cmd=all rc=-1 msg=no_memory\n");
	return owed_send(rank);
}

static bool aborted(unsigned rank, const char *line)
{
	char what[64];
	uint32_t code;

	if (!pmi_number(line, "exitcode", &code) || code > UINT8_MAX)
		code = EXIT_FAILURE;
	snprintf(what, sizeof(what), "has ended the job with exit code %u", code);
	job_fail(rank, (int)code, what);
	return true;
}

/* Answers a question. Returns false if it is none, or if the rank does not read the answer. */
static bool answer(unsigned n, const char *line)
{
	struct rank *rank = &ranks[n];
	char command[PMI_KEY];

	if (!pmi_word(line, "cmd", command, sizeof(command)))
		return false;
	if (strcmp(command, "put") == 0)
		return put(n, line);
	if (strcmp(command, "get") == 0)
		return get(n, line);
	if (strcmp(command, "get_all") == 0)
		return get_all(rank);
	if (strcmp(command, "abort") == 0)
		return aborted(n, line);
	if (strcmp(command, "barrier_in") == 0) {
		barrier_enter(n);
		return true;
	}
	if (strcmp(command, "init") == 0) {
		rank->joined = true;
		rank->left = false;
		return pmi_write(rank->socket, "cmd=response_to_init pmi_version=1 "
					       "pmi_subversion=1 rc=0 get_all=1\n");
	}
	if (strcmp(command, "finalize") == 0) {
		rank->joined = false;
		rank->left = true;
		barrier_check();
		return pmi_write(rank->socket, "cmd=finalize_ack\n");
	}
	if (strcmp(command, "get_maxes") == 0)
		return pmi_write(rank->socket,
			"cmd=maxes kvsname_max=%u keylen_max=%u vallen_max=%u\n", PMI_SPACE,
			PMI_KEY, PMI_VALUE);
	if (strcmp(command, "get_my_kvsname") == 0)
		return pmi_write(rank->socket, "cmd=my_kvsname kvsname=job\n");
	if (strcmp(command, "get_universe_size") == 0)
		return pmi_write(rank->socket, "cmd=universe_size size=%u\n", size);
	if (strcmp(command, "get_appnum") == 0)
		return pmi_write(rank->socket, "cmd=appnum appnum=0\n");
	return false;
}

/* J4. */
static void distant_gone(unsigned n)
{
	ranks[n].distant = false;
	alive--;
	distant--;
	if (ranks[n].joined)
		job_fail(n, EXIT_FAILURE, "ended without postern_job_leave(), or its host is lost");
	barrier_check();
}

/* J4. Why a guest is no rank of this job; NULL: it is one. */
static const char *guest_take(unsigned n, unsigned its_size, int socket)
{
	if (its_size != size)
		return "the_size_is_not_that_of_rank_0";
	if (n >= size)
		return "the_rank_is_not_less_than_the_size";
	if (!ranks[n].distant || ranks[n].socket >= 0)
		return "the_rank_is_taken";
	if (!pmi_write(socket, "cmd=met\n"))
		return "it_does_not_read";
	ranks[n].socket = socket;
	if (--absent == 0)
		meet_close();
	return NULL;
}

/* The end of a local rank's socket says nothing: the rank may have closed it, or is about to end.
 */
static void socket_turn(unsigned n)
{
	struct rank *rank = &ranks[n];
	const char *line;
	char what[128];

	if (!(rank->owed_length > 0 ? owed_send(rank) : pmi_read(&rank->lines, rank->socket))) {
		socket_close(rank);
		if (rank->distant)
			distant_gone(n);
		return;
	}
	while (rank->socket >= 0 && rank->owed_length == 0 && (line = pmi_line(&rank->lines))) {
		if (answer(n, line))
			continue;
		snprintf(what, sizeof(what), "asked by PMI \"%.80s\", which has no answer here",
			line);
		job_fail(n, EXIT_FAILURE, what);
		socket_close(rank);
	}
}

/* --- the start */

/* The part of rank_start() that runs in the child. */
struct child {
	int socket;
	int failed; /* where it says why the program was not started */
	int outputs[STREAMS];
};

static void number_set(const char *name, unsigned number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	setenv(name, text, 1);
}

static _Noreturn void child_run(
	const struct job_options *options, unsigned rank, const struct child *child, pid_t parent)
{
	ssize_t told;
	int nothing;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	(void)setrlimit(RLIMIT_NOFILE, &files);
	fcntl(child->socket, F_SETFD, 0);
	number_set("PMI_FD", (unsigned)child->socket);
	number_set("PMI_RANK", rank);
	number_set("PMI_SIZE", options->size);
	for (unsigned n = 0; n < STREAMS && options->label; n++)
		dup2(child->outputs[n], STDOUT_FILENO + (int)n);
	nothing = rank > 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	if (nothing >= 0)
		dup2(nothing, STDIN_FILENO);
	execvp(options->words[0], options->words);
	told = write(child->failed, &errno, sizeof(errno));
	_exit(told > 0 ? EXIT_REFUSED : EXIT_MISSING);
}

/* Makes this process's ends and the child's. Returns false after a failure, with errno. */
static bool child_make(unsigned n, struct child *child)
{
	struct rank *rank = &ranks[n];
	int ends[2];

	if (server >= 0) {
		child->socket = fcntl(server, F_DUPFD_CLOEXEC, 0);
		if (child->socket < 0)
			return false;
	} else {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
			return false;
		rank->socket = ends[0];
		child->socket = ends[1];
	}
	for (unsigned stream = 0; stream < STREAMS && labelled; stream++) {
		if (pipe2(ends, O_CLOEXEC) != 0)
			return false;
		rank->labels[stream].from = ends[0];
		rank->labels[stream].to = STDOUT_FILENO + (int)stream;
		rank->labels[stream].rank = n;
		child->outputs[stream] = ends[1];
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
	}
	return true;
}

/* Returns 0, or why the program was not started. */
static int rank_start(const struct job_options *options, unsigned n)
{
	struct child child = {-1, -1, {-1, -1}};
	pid_t parent = getpid();
	int failed[2], reason = 0;

	if (!child_make(n, &child) || pipe2(failed, O_CLOEXEC) != 0)
		return errno;
	child.failed = failed[1];
	ranks[n].process = fork();
	if (ranks[n].process == 0)
		child_run(options, n, &child, parent);
	reason = ranks[n].process < 0 ? errno : 0;
	close(failed[1]);
	close(child.socket);
	for (unsigned stream = 0; stream < STREAMS && labelled; stream++)
		close(child.outputs[stream]);
	/* The pipe closes when the program starts. */
	if (reason == 0 && read(failed[0], &reason, sizeof(reason)) != (ssize_t)sizeof(reason))
		reason = 0;
	close(failed[0]);
	if (ranks[n].process > 0)
		alive++;
	else
		ranks[n].process = 0;
	return reason;
}

/* This process has up to three descriptors for each rank; a rank gets the limit that was found. */
static void files_raise(void)
{
	(void)getrlimit(RLIMIT_NOFILE, &files);
	remedy_files_take();
}

/* J4. May this process have a socket for each distant rank? Returns false after a line. */
static bool files_suffice(void)
{
	int lowest = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	struct rlimit all;

	if (lowest >= 0)
		close(lowest);
	if (lowest >= 0 && getrlimit(RLIMIT_NOFILE, &all) == 0 &&
		(rlim_t)lowest + distant + FILES_START <= all.rlim_cur)
		return true;
	job_tell("there are not enough files for the sockets of %u ranks: %s", distant,
		remedy_for(EMFILE, ""));
	return false;
}

/* J4. Returns false after a line. */
static bool ranks_meet(const struct job_options *options)
{
	if (options->rank > 0) {
		server = meet_connect(options->meet, options->rank, options->size);
		return server >= 0;
	}
	if (!meet_listen(options->meet))
		return false;
	meet_at = now() + MEET_TIME;
	for (unsigned n = 1; n < options->size; n++)
		ranks[n].distant = true;
	alive = distant = absent = options->size - 1;
	if (absent == 0)
		meet_close();
	return files_suffice();
}

static const char *start_remedy(int reason)
{
	switch (reason) {
	case EAGAIN:
		return "end some processes, or raise the limit of processes (ulimit -u)";
	case ENOENT:
		return "check its path, and that of its interpreter";
	case EACCES:
		return "give the path of a program, not of a directory, and make it executable by "
		       "chmod +x";
	default:
		return remedy_for(reason, "start it without postern-run to see more");
	}
}

static void ranks_start(const struct job_options *options)
{
	size = options->size;
	labelled = options->label;
	for (unsigned n = 0; n < size; n++) {
		ranks[n].socket = -1;
		for (unsigned stream = 0; stream < STREAMS; stream++)
			ranks[n].labels[stream].from = -1;
	}
	for (unsigned n = options->meet ? options->rank : 0;
		n < (options->meet ? options->rank + 1 : size); n++) {
		int reason = rank_start(options, n);

		if (reason == 0)
			continue;
		job_tell("rank %u: %s cannot be started: %s: %s", n, options->words[0],
			strerror(reason), start_remedy(reason));
		job_end(reason == ENOENT ? EXIT_MISSING : EXIT_REFUSED, SIGTERM);
		return;
	}
}

/* --- the turn */

/* A descriptor for the signals that end the job or report the end of a child. A signal that this
 * process was started to ignore stays ignored. */
static int signals_open(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
	struct sigaction action;
	sigset_t wanted, blocked;

	sigemptyset(&wanted);
	signal(SIGCHLD, SIG_DFL);
	for (unsigned n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
		if (sigaction(numbers[n], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&wanted, numbers[n]);
	blocked = wanted;
	sigaddset(&blocked, SIGPIPE);
	sigprocmask(SIG_BLOCK, &blocked, &mask);
	return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A second signal waits no longer. */
static void signals_turn(int signals)
{
	struct signalfd_siginfo info;

	while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (ending)
			kill_at = 0;
		job_end(128 + (int)info.ssi_signo,
			info.ssi_code == SI_KERNEL ? 0 : (int)info.ssi_signo);
	}
}

/* J4. Looks after ranks that have not come. */
static void absent_turn(const struct pollfd *polled)
{
	meet_turn(polled, now(), guest_take);
	if (absent == 0 || now() < meet_at)
		return;
	for (unsigned n = 0; n < size && !ending; n++)
		if (ranks[n].distant && ranks[n].socket < 0)
			job_fail(n, EXIT_FAILURE, "has not come within 60 s");
}

/* J4. */
static void server_turn(void)
{
	job_tell("rank 0 has ended the job, or its host is lost");
	close(server);
	server = -1;
	job_end(EXIT_FAILURE, SIGTERM);
}

/* How long poll() may wait, in ms; -1: for ever. */
static int turn_wait(void)
{
	uint64_t time = now();

	if (ending)
		return kill_at > time ? (int)(kill_at - time) : 0;
	return absent > 0 ? MEET_LOOK : -1;
}

/* Waits for something to do, and does what ranks ask and say. */
static void job_turn(int signals)
{
	static struct pollfd polled[2 + GUESTS_MAX + 1 + RANKS_MAX * (1 + STREAMS)];
	unsigned count = 0, first;

	polled[count++] = (struct pollfd){.fd = signals, .events = POLLIN};
	polled[count++] = (struct pollfd){.fd = server, .events = POLLRDHUP};
	count += meet_polled(polled + count);
	first = count;
	for (unsigned n = 0; n < size; n++) {
		polled[count++] = (struct pollfd){.fd = ranks[n].socket,
			.events = ranks[n].owed_length > 0 ? POLLOUT : POLLIN};
		for (unsigned stream = 0; stream < STREAMS && labelled; stream++)
			polled[count++] = (struct pollfd){
				.fd = ranks[n].labels[stream].from, .events = POLLIN};
	}
	if (poll(polled, count, turn_wait()) < 0)
		return;
	if (polled[1].revents != 0 && server >= 0)
		server_turn();
	absent_turn(polled + 2);
	count = first;
	for (unsigned n = 0; n < size; n++) {
		if (polled[count++].revents != 0 && ranks[n].socket >= 0)
			socket_turn(n);
		for (unsigned stream = 0; stream < STREAMS && labelled; stream++)
			if (polled[count++].revents != 0)
				(void)label_turn(&ranks[n].labels[stream]);
	}
	if (polled[0].revents != 0)
		signals_turn(signals);
}

/* While the job ends: kills ranks that have not ended in time, and processes that ranks left. */
static void job_kill(void)
{
	if (alive > 0 && now() < kill_at)
		return;
	children_signal(SIGKILL);
	kill_at = now() + KILL_AGAIN;
}

/* Passes on the rest of what ranks have written. A job whose lines are lost has failed. */
static void labels_end(void)
{
	int error;

	for (unsigned n = 0; n < size; n++)
		for (unsigned stream = 0; stream < STREAMS; stream++)
			label_end(&ranks[n].labels[stream]);
	error = label_error();
	if (error != 0 && exit_code == 0)
		exit_code = EXIT_FAILURE;
	if (error != 0 && error != EPIPE) /* its reader wants no more */
		job_tell("output of ranks cannot be written: %s; send it elsewhere",
			strerror(error));
}

int job_run(const struct job_options *options)
{
	int signals;

	files_raise();
	/* Signals still end this process while it waits for rank 0. */
	if (options->meet && !ranks_meet(options))
		return EXIT_FAILURE;
	signals = signals_open();
	if (signals < 0) {
		job_tell("signals cannot be received: %s: close some files", strerror(errno));
		return EXIT_FAILURE;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	ranks_start(options);
	while ((children_reap() || distant > 0) && (alive > 0 || ending)) {
		if (ending)
			job_kill();
		job_turn(signals);
	}
	labels_end();
	/* What this rank's program has left behind may hold the socket open. */
	if (server >= 0)
		(void)shutdown(server, SHUT_RDWR);
	return exit_code;
}
