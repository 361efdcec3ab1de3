/* SPDX-License-Identifier: BSD-3-Clause */
/* liar.h - processes that lie to the endpoints of one program. Each interface's peers are real, and
 * what they say reaches the engine through here: most of it as it is, some of it changed, some not
 * at all, and some that nobody said. The linker puts this file between transport and engine, and
 * in the place of time and chance (-Wl,--wrap).
 *
 * L1. A forged message comes when messages may come: in transport_process().
 * L2. A header that was changed is coded anew, and what cannot be coded is not sent.
 */
#ifndef FUZZ_LIAR_H
#define FUZZ_LIAR_H

#include "script.h"

/* Time and chance begin anew; nobody lies yet. The script is read when a lie is due, too. */
void liar_begin(struct script *script);
/* Time passes, ns. */
void liar_wait(uint64_t time);
/* The message after some of those that come is changed, or lost. */
void liar_lie(void);
/* A message is forged that one of the interfaces that are open receives next. */
void liar_forge(void);

#endif
