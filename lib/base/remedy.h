/* SPDX-License-Identifier: BSD-3-Clause */
/* remedy.h - what to do about a call that the kernel has refused, as its error says. */
#ifndef BASE_REMEDY_H
#define BASE_REMEDY_H

#include <base/core.h>

/* Returns what the user can do, for the end of an error line: advice on a limit of this process or
 * on a forbidden system call, or `otherwise` if neither is the cause. error: errno after the call.
 * Valid until this thread's next call. */
const char *remedy_for(int error, const char *otherwise) CORE_API(remedy_for);
/* The same for a full file system, or the quota of one, after a call that makes or writes a file.
 * Other calls use these errors for other limits. */
const char *remedy_for_disk(int error, const char *otherwise);
/* The same after an allocation has failed. */
const char *remedy_for_memory(void) CORE_API(remedy_for_memory);
/* This process may have all descriptors from now on that its hard limit allows: one of a job has a
 * descriptor for each peer. Programs that use select() need not fear: they get the lowest numbers
 * as before. */
void remedy_files_take(void);

#endif
