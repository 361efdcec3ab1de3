/* SPDX-License-Identifier: BSD-3-Clause */
/* tracing.h - records of the messages of spaces with tiers (base/trace.h), made around the
 * transport's upcalls.
 *
 * An engine that is made while a trace runs has its upcalls pass through here; others pay nothing.
 * A request that wants an answer has a name, its operation's, and a record at each step of its way
 * there and back. One that wants none has no name, and is recorded where it arrives, and where the
 * transport is done with it.
 */
#ifndef ENGINE_TRACING_H
#define ENGINE_TRACING_H

#include <transport/transport.h>

/* Puts records around the upcalls of an engine. */
void tracing_wrap(struct transport_upcalls *upcalls);

#endif
