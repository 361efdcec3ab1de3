/* SPDX-License-Identifier: BSD-3-Clause */
/* stranger.h - what becomes of a thread that calls a function of an object that another thread
 * owns. */
#ifndef STRANGER_H
#define STRANGER_H

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child process another thread takes the object, then this one calls. Returns true if an
 * assertion has ended the child. */
#define stranger_aborts(take, object, call)                                                        \
	({                                                                                         \
		pid_t child_ = fork();                                                             \
                                                                                                   \
		if (child_ == 0) {                                                                 \
			stranger_begin((take), (object));                                          \
			(void)(call);                                                              \
			_exit(0);                                                                  \
		}                                                                                  \
		stranger_end(child_);                                                              \
	})

static void stranger_begin(void *(*take)(void *), void *object)
{
	const struct rlimit none = {0, 0};
	pthread_t thread;

	setrlimit(RLIMIT_CORE, &none);
	signal(SIGABRT, SIG_DFL);
	close(STDERR_FILENO); /* the assertion is expected */
	if (pthread_create(&thread, NULL, take, object) != 0 || pthread_join(thread, NULL) != 0)
		_exit(1);
}

static bool stranger_end(pid_t child)
{
	int status;

	return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT;
}

#endif
