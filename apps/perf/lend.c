/* SPDX-License-Identifier: BSD-3-Clause */
/* lend.c - see lend.h. */
#include <assert.h>
#include <string.h>

#include <base/port.h>
#include <wire/frame.h>

#include "complain.h"
#include "instrument.h"
#include "lend.h"

#define PROGRESS_TURNS 65536u /* turns between two words on progress */

/* The ends that one thread drives. */
struct runner {
	struct bare *bares[LEND_MAX];
	unsigned count;
	int cpu;
	struct glue_thread *thread;
	bool well;
	void (*progress)(void *context, double part);
	void *context;
};

uint64_t lend_address(ptl_handle_ni_t ni)
{
	uint64_t address = 0;

	memcpy(&address, instrument->port(ni)->address, BARE_ADDRESS);
	return address;
}

unsigned lend_mtu(ptl_handle_ni_t ni)
{
	const struct port *port = instrument->port(ni);

	return port->frame_size - FRAME_ETHERNET_BYTES + port->around;
}

static void runner_run(void *argument)
{
	struct runner *runner = argument;
	unsigned left = runner->count;

	runner->well = true;
	for (unsigned turn = 0; left > 0; turn++) {
		left = 0;
		for (unsigned i = 0; i < runner->count; i++)
			left += bare_turn(runner->bares[i]);
		if (runner->progress && turn % PROGRESS_TURNS == 0)
			runner->progress(runner->context, bare_part(runner->bares[0]));
	}
	for (unsigned i = 0; i < runner->count; i++)
		runner->well = runner->well && runner->bares[i]->state == BARE_DONE;
}

/* The runner that drives what the port's poll thread drove, or a new one. */
static struct runner *runner_of(
	struct runner *runners, unsigned *count, const struct instruments_port *ports, unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (ports[j].thread == ports[i].thread)
			return &runners[0];
	runners[*count] = (struct runner){.cpu = ports[i].cpu};
	return &runners[(*count)++];
}
static_assert(LEND_MAX == 2, "the first end's runner is the only one to share");

static void runners_run(struct runner *runners, unsigned count, bool inlined)
{
	if (inlined) {
		instrument->thread_enter();
		runner_run(&runners[0]);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		runners[i].thread = instrument->thread_start(
			runner_run, &runners[i], runners[i].cpu, "perf-bare");
		if (!runners[i].thread)
			complain("no thread can be started for bare frames; see above.");
	}
	for (unsigned i = 0; i < count; i++)
		instrument->thread_join(runners[i].thread);
}

bool lend_run(struct lend_end *ends, unsigned count, void (*progress)(void *context, double part),
	void *context)
{
	struct instruments_port ports[LEND_MAX];
	struct runner runners[LEND_MAX];
	ptl_handle_ni_t nis[LEND_MAX] = {0};
	unsigned runner_count = 0;
	bool well = true;

	for (unsigned i = 0; i < count; i++)
		nis[i] = ends[i].ni;
	instrument->borrow(nis, count, ports);
	for (unsigned i = 0; i < count; i++) {
		struct runner *runner = runner_of(runners, &runner_count, ports, i);

		ends[i].options.port = ports[i].port;
		ends[i].options.encapsulation = ports[i].encapsulation;
		bare_open(ends[i].bare, &ends[i].options);
		runner->bares[runner->count++] = ends[i].bare;
	}
	runners[0].progress = progress;
	runners[0].context = context;
	runners_run(runners, runner_count, !ports[0].thread);
	for (unsigned i = 0; i < count; i++)
		bare_close(ends[i].bare);
	instrument->give_back(nis, count);
	for (unsigned i = 0; i < runner_count; i++)
		well = well && runners[i].well;
	return well;
}
