/* SPDX-License-Identifier: BSD-3-Clause */
/* leave.h - how the program ends: once, and its interfaces before it, so that peers hear of the end
 * and no socket is left. */
#ifndef PERF_LEAVE_H
#define PERF_LEAVE_H

/* SIGINT, SIGTERM and SIGHUP, unless they are ignored, end the process as if nobody had caught
 * them, but in this way. Further ones wait for that end, which takes two seconds at most. Before
 * any other thread is made. */
void leave_on_signals(void);

/* The calling thread is the one that ends the process, within two seconds; others that ask, or have
 * asked, wait here for that end. */
void leave_begin(void);

/* Ends the process; after leave_begin(). */
_Noreturn void leave(int code);

#endif
