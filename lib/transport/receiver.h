/* SPDX-License-Identifier: BSD-3-Clause */
/* receiver.h - frames from the port: checked, and given to their peers (receiver.c). */
#ifndef TRANSPORT_RECEIVER_H
#define TRANSPORT_RECEIVER_H

struct transport;

/* Reads the frames of the burst, and frees them. */
void receiver_burst(struct transport *transport);

#endif
