/* SPDX-License-Identifier: BSD-3-Clause */
/* leave.c - see leave.h. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <portals.h>

#include "complain.h"
#include "leave.h"

/* seconds for last messages and for interfaces to close: a complaining thread may hold a lock that
 * closing needs, and the reader of a pipe may not read */
#define TIMEOUT 2

static atomic_flag leaving = ATOMIC_FLAG_INIT;
static volatile sig_atomic_t exit_code;
static int killer; /* the signal that ends the process; 0: none */
static sigset_t signals;

static void give_up(int signal)
{
	(void)signal;
	_exit(exit_code);
}

void leave_begin(void)
{
	while (atomic_flag_test_and_set(&leaving))
		pause();
	exit_code = EXIT_RUN; /* until leave() knows better */
	signal(SIGALRM, give_up);
	alarm(TIMEOUT);
}

void leave(int code)
{
	exit_code = code;
	PtlFini();
	exit(code);
}

/* The last of what exit() calls, because it was the first to be registered: DPDK has removed its
 * sockets. */
static void die_of_signal(void)
{
	if (killer == 0)
		return;
	fflush(stdout);
	for (int other = 1; other < NSIG; other++)
		if (other != killer && sigismember(&signals, other) == 1)
			signal(other, SIG_IGN); /* takes back one that waits */
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	raise(killer);
}

/* Further signals wait until the end, which TIMEOUT bounds: timeout(1) sends two, and the second
 * must not leave half behind. */
static void *wait_for_signal(void *unused)
{
	int signal_number = 0;

	(void)unused;
	sigwait(&signals, &signal_number);
	leave_begin();
	killer = signal_number;
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr); /* the progress line */
	leave(128 + killer);
}

void leave_on_signals(void)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action;
	pthread_t thread;

	sigemptyset(&signals);
	for (unsigned i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		if (sigaction(caught[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&signals, caught[i]);
	atexit(die_of_signal);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (pthread_create(&thread, NULL, wait_for_signal, NULL) != 0)
		complain("no thread can be started; end other programs, or raise the limits "
			 "(ulimit -u, ulimit -v).");
	pthread_detach(thread);
}
