/* SPDX-License-Identifier: BSD-3-Clause */
/* effort.c - see effort.h. */
#include "effort.h"

#include <base/clock.h>

#define WARM_UP_PART  10 /* a tenth of the measure goes before it and is not counted */
#define WARM_UP_LEAST 2  /* messages or windows */
#define LOOKS         1000
#define NS            1000000000.0
#define SETTLED       (150 * MILLISECOND) /* more than LEARN_TIME of pmd-glue/clock.c */

/* Waits until the clock is the TSC: at first it is the kernel's, and a look at that costs more. */
static void clock_settle(void)
{
	static bool settled;
	uint64_t start = clock_look();

	while (!settled && clock_look() - start < SETTLED)
		;
	settled = true;
}

uint64_t clock_cost(void)
{
	uint64_t least = UINT64_MAX;
	uint64_t sum = 0;

	clock_settle();
	/* Blocks, so that a cost below the clock's grain is seen too; the least, so that no
	 * interrupt is. */
	for (unsigned block = 0; block < LOOKS / 10; block++) {
		uint64_t start = clock_look();
		uint64_t end = start;

		for (unsigned i = 0; i < LOOKS; i++)
			end = clock_look();
		sum = end - start;
		if (sum < least)
			least = sum;
	}
	return (least + LOOKS / 2) / LOOKS;
}

struct course course_begin(const struct effort *effort, uint32_t window, bool warm_up)
{
	uint64_t steps = (effort->iterations + window - 1) / window;
	struct course course = {
		.start = clock_look(), .length = effort->seconds * NS, .steps = steps};

	if (!warm_up)
		return course;
	if (effort->warm_up >= 0) {
		course.length = effort->warm_up * NS;
		course.steps = 0;
		return course;
	}
	course.length /= WARM_UP_PART;
	if (steps > 0)
		course.steps =
			steps / WARM_UP_PART > WARM_UP_LEAST ? steps / WARM_UP_PART : WARM_UP_LEAST;
	return course;
}
