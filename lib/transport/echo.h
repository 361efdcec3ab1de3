/* SPDX-License-Identifier: BSD-3-Clause */
/* echo.h - echo questions and their answers (echo.c); transport_ping() is in transport.h. */
#ifndef TRANSPORT_ECHO_H
#define TRANSPORT_ECHO_H

#include <stdint.h>

struct frame_header;
struct peer;
struct transport;

/* A question for this process. from: MAC address, NULL: this process. */
void echo_asked(struct transport *transport, const struct frame_header *frame, const uint8_t *from);
/* An answer from a peer, of whatever life. */
void echo_answered(
	struct transport *transport, const struct peer *peer, const struct frame_header *frame);
/* Sends answers and questions, ends what was not answered in time. While echoes.busy. */
void echo_run(struct transport *transport);
uint64_t echo_deadline(const struct transport *transport);

#endif
