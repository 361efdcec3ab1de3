/* SPDX-License-Identifier: BSD-3-Clause */
/* timers.h - what peers' timers find due (timers.c). */
#ifndef TRANSPORT_TIMERS_H
#define TRANSPORT_TIMERS_H

struct transport;

void timers_run(struct transport *transport);

#endif
