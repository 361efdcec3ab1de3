/* SPDX-License-Identifier: BSD-3-Clause */
/* lack.h - what to do about a call that the kernel has refused, as its error says. */
#ifndef BASE_LACK_H
#define BASE_LACK_H

#include <base/core.h>

/* error: errno after the call. Returns the cure, for the end of an error line: that of a limit of
 * this process or of a forbidden call, and `otherwise` if neither is the cause. Valid until this
 * thread's next call. */
const char *lack_cure(int error, const char *otherwise) CORE_API(lack_cure);
/* The same for memory that cannot be had. */
const char *lack_memory(void) CORE_API(lack_memory);

#endif
