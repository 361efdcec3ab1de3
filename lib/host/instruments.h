/* SPDX-License-Identifier: BSD-3-Clause */
/* instruments.h - what postern-perf uses of the library beside its public interface: ports for bare
 * frames, poll threads, the clock and traces. The table may change with each release; a front end
 * gives it to callers of its own release only. */
#ifndef HOST_INSTRUMENTS_H
#define HOST_INSTRUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <pmd-glue/glue.h>
#include <wire/encapsulation.h>

#include <base/core.h>

/* A port that is lent: nobody polls it, and its engine stands still. */
struct instruments_port {
	struct port *port;
	const struct encapsulation_options *encapsulation;
	const void *
		/* the poll thread that it was taken from, which may have polled other ports too;
		 * NULL: inline */
		thread;
	int cpu; /* that thread's, or -1 */
};

struct instruments {
	/* The port of an open interface, to be looked at only: address and frame_size do not
	 * change. */
	const struct port *(*port)(uint64_t ni);
	/* Takes the ports of open interfaces away from their engines, once what was sent has been
	 * acknowledged or 200 ms have passed, and gives them back. Meanwhile no interface of the
	 * process may be used. */
	void (*borrow)(const uint64_t *nis, unsigned count, struct instruments_port *ports);
	void (*give_back)(const uint64_t *nis, unsigned count);

	/* glue.h */
	bool (*hugepages)(void);
	uint64_t (*now)(void *context);
	struct glue_thread *(*thread_start)(
		void (*run)(void *), void *argument, int cpu, const char *name);
	void (*thread_join)(struct glue_thread *thread);
	void (*thread_enter)(void);

	/* trace.h */
	int (*trace_start)(uint32_t tracks, uint32_t records);
	void (*trace_stop)(void);
	bool (*trace_write)(FILE *file);
	void (*trace_count)(uint64_t *made, uint64_t *kept);
};

extern const struct instruments host_instruments CORE_API(host_instruments);

#endif
