/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - simulated time, and what is to happen when.
 *
 * I1. Time only moves when the next happening is due; what happens at the same time happens in the
 * order in which it was
 *     planned. So a run depends on nothing but its inputs.
 */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <base/clock.h>

/* Returns the memory, or ends the program if there is none. Defined by each program that links the
 * clock. */
void *report_memory(void *memory);

typedef void happening_call(void *object, uint64_t argument);

struct happening {
	uint64_t when;  /* ns */
	uint64_t order; /* of planning */
	happening_call *call;
	void *object;
	uint64_t argument;
};

struct sim_clock {
	uint64_t now; /* ns */
	uint64_t order;
	struct happening *heap;
	size_t count;
	size_t room;
};

void sim_clock_init(struct sim_clock *clock);
void sim_clock_free(struct sim_clock *clock);
/* Plans a call; a time that has passed means now. */
void sim_clock_at(struct sim_clock *clock, uint64_t when, happening_call *call, void *object,
	uint64_t argument);
/* When the next happening is due; UINT64_MAX: never. */
uint64_t sim_clock_next(const struct sim_clock *clock);
/* Lets the next one happen. Returns false if there is none. May be called from within a
 * happening. */
bool sim_clock_step(struct sim_clock *clock);

#endif
