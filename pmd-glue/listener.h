/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h - answers dpdk-telemetry.py in a process in which EAL does not run, as EAL would: at
 * the same place, in the same words. */
#ifndef PMD_GLUE_LISTENER_H
#define PMD_GLUE_LISTENER_H

#include <stdbool.h>

#include <pmd-glue/glue.h>

#define LISTENER_COMMANDS 64u /* that can be asked for, beside the usual ones */

/* From now on this is answered. Returns false if there is no room for it. help: less than 64
 * bytes. */
bool listener_add(const char *command, const char *help, glue_tell tell);
/* Makes a socket in this directory and a thread that answers there. Returns false if it cannot
 * be. */
bool listener_begin(const char *directory);
/* May DPDK look for a free name in this directory, which it does by connecting to each socket in
 * turn? It would wait without end for a process that is stopped. Returns false after a line in the
 * log. */
bool listener_all_accept(const char *directory);
/* The socket goes at once; an answer that is under way need not have ended. */
void listener_end(void);

#endif
