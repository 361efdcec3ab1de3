/* SPDX-License-Identifier: BSD-3-Clause */
/* limit.h - the limits of an NI: what was wished for, made possible. */
#ifndef P4_LIMIT_H
#define P4_LIMIT_H

#include <portals4.h>

#include <engine/segment.h>

/* desired may be NULL. The library's lock is held. */
void limits_choose(const ptl_ni_limits_t *desired, ptl_ni_limits_t *limits);
/* Lowers the limits of messages that need a frame of their own to those of frames of so many bytes,
 * counted from the transport's header on. */
void limits_fit(ptl_ni_limits_t *limits, uint32_t frame_bytes);
/* What tables such limits need. The library's lock is held. */
void limits_tables(const ptl_ni_limits_t *limits, struct segment_limits *tables);

#endif
