/* SPDX-License-Identifier: BSD-3-Clause */
/* attest.h - what posternd must know of frames: whether one claims to be from nobody but the
 * process that sent it, and the answer for a process that is not here. */
#ifndef APPS_NODE_ATTEST_H
#define APPS_NODE_ATTEST_H

#include <pmd-glue/switch.h>

/* Nobody may change the frame meanwhile. Notes the life of the process. */
enum switch_verdict attest(const uint8_t *frame, uint32_t length, struct switch_identity *who);

/* Writes the answer to a frame of data for a life that has ended, or to the question for a process
 * that is not here (life 0: of which no life is known): FRAME_BYE in its name. 0: the frame is
 * another one. */
uint32_t farewell(const uint8_t *frame, uint32_t length, const struct switch_identity *ended,
	uint8_t *answer);

#endif
