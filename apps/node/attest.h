/* SPDX-License-Identifier: BSD-3-Clause */
/* attest.h - looks whether a frame of a process claims to be from nobody else. */
#ifndef APPS_NODE_ATTEST_H
#define APPS_NODE_ATTEST_H

#include <pmd-glue/switch.h>

/* Nobody may change the frame meanwhile. */
enum switch_verdict attest(
	const uint8_t *frame, uint32_t length, const struct switch_identity *who);

#endif
