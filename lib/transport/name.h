/* SPDX-License-Identifier: BSD-3-Clause */
/* name.h - questions for names of hosts and their answers (name.c); transport_find() is in
 * transport.h. */
#ifndef TRANSPORT_NAME_H
#define TRANSPORT_NAME_H

#include <stdint.h>

struct frame_view;
struct transport;

/* FRAME_FIND from this MAC address. NULL: this process. */
void name_asked(struct transport *transport, const struct frame_view *frame, const uint8_t *from);
/* FRAME_FOUND for this life of this process. */
void name_told(struct transport *transport, const struct frame_view *frame);
/* Sends questions, ends those whose time is over. A part of echo_run(). */
void names_run(struct transport *transport);
uint64_t names_deadline(const struct transport *transport);

#endif
