/* SPDX-License-Identifier: BSD-3-Clause */
/* checks.h - what exchange and kills check alike: calls, values, bytes (bytes.h). */
#ifndef NET_CHECKS_H
#define NET_CHECKS_H

#include <inttypes.h>
#include <stdint.h>

#include <portals.h>
#include <postern.h>

#include "bytes.h"

#define check(call) check_code((call), #call, __LINE__)
#define expect(holds)                                                                              \
	do {                                                                                       \
		if (!(holds))                                                                      \
			fail("line %d: %s does not hold", __LINE__, #holds);                       \
	} while (0)
#define expect_equal(left, right) equal_check((left), (right), #left, #right, __LINE__)

static inline void check_code(int code, const char *call, int line)
{
	if (code != PTL_OK)
		fail("line %d: %s gives %s", line, call, postern_error_name(code));
}

static inline void equal_check(
	uint64_t left, uint64_t right, const char *left_text, const char *right_text, int line)
{
	if (left != right)
		fail("line %d: %s is %" PRIu64 ", but %s is %" PRIu64, line, left_text, left,
			right_text, right);
}

/* Data of one process can be told from data of another. */
static inline uint32_t seed_of(ptl_process_id_t process)
{
	return process.nid + (process.pid << 16);
}

#endif
