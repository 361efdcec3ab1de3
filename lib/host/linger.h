/* SPDX-License-Identifier: BSD-3-Clause */
/* linger.h - how long an end waits for peers to have what was sent.
 *
 * Until everything is acknowledged, or for PTL_PEER_TIMEOUT since the last new acknowledgement, or
 * for a second if no target has ever answered: a process that was never there need not come. A peer
 * that goes on sending makes work for ever, so only messages count that were sent before the end
 * began. SIGTERM and SIGINT end the wait, unless they are ignored, and have their usual effect
 * when the end is over.
 */
#ifndef HOST_LINGER_H
#define HOST_LINGER_H

#include <stdbool.h>

#include <base/core.h>
#include <engine/engine.h>

/* From the first to the last, which pair, a signal is noted instead. Any thread. */
void linger_begin(void) CORE_API(linger_begin);
bool linger_is_stopped(void) CORE_API(linger_is_stopped);
void linger_end(void) CORE_API(linger_end);

/* Waits for what an engine, which is the caller's, has sent, and warns of what is given up as lost.
 * others(): a turn for the rest of the process. Between linger_begin() and linger_end(). */
void linger_settle(struct engine *engine, unsigned number, unsigned (*others)(void));

#endif
