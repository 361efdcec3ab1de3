/* lend.c - see lend.h. */
#include <assert.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include <base/settings.h>
#include <engine/engine.h>
#include <p3/interface.h>
#include <p3/library.h>
#include <wire/frame.h>

#include "complain.h"
#include "lend.h"

#define LINGER         (200 * MILLISECOND) /* at most, for what is on its way */
#define CPU_NONE       UINT64_MAX
#define PROGRESS_TURNS 65536u /* turns between two words on progress */

/* The ends that one thread drives. */
struct runner {
	struct bare *bares[LEND_MAX];
	unsigned count;
	uint64_t cpu;
	struct glue_thread *thread;
	bool well;
	void (*progress)(void *context, double part);
	void *context;
};

static struct interface *lender(ptl_handle_ni_t ni)
{
	return &interfaces[handle_interface(ni)];
}

uint64_t lend_address(ptl_handle_ni_t ni)
{
	uint64_t address = 0;

	library_lock();
	memcpy(&address, lender(ni)->port->address, BARE_ADDRESS);
	library_unlock();
	return address;
}

unsigned lend_mtu(ptl_handle_ni_t ni)
{
	unsigned mtu;

	library_lock();
	mtu = lender(ni)->port->frame_size - FRAME_ETHERNET_BYTES;
	library_unlock();
	return mtu;
}

/* Until what was sent has been acknowledged, and what came has been too. The engines are this thread's. */
static void settle(const struct lend_end *ends, unsigned count)
{
	uint64_t start = clock_look();
	bool settled;

	do {
		unsigned work = 0;

		settled = true;
		for (unsigned i = 0; i < count; i++) {
			struct engine *engine = lender(ends[i].ni)->engine;

			work += engine_poll(engine);
			settled = settled && engine_settled(engine);
		}
		if (work == 0)
			sched_yield();
	} while (!settled && clock_look() - start < LINGER);
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
		if (runner->progress != NULL && turn % PROGRESS_TURNS == 0)
			runner->progress(runner->context, bare_part(runner->bares[0]));
	}
	for (unsigned i = 0; i < runner->count; i++)
		runner->well = runner->well && runner->bares[i]->state == BARE_DONE;
}

/* The runner that drives what the engine's thread drove, or a new one. */
static struct runner *runner_of(
	struct runner *runners, unsigned *count, const struct lend_end *ends, unsigned i)
{
	const struct interface *interface = lender(ends[i].ni);

	for (unsigned j = 0; j < i; j++)
		if (lender(ends[j].ni)->thread == interface->thread)
			return &runners[0];
	runners[*count] = (struct runner){.cpu = setting_number_item(SETTING_POLL_CORE,
						  handle_interface(ends[i].ni), CPU_NONE)};
	return &runners[(*count)++];
}
static_assert(LEND_MAX == 2, "the first end's runner is the only one to share");

static void runners_run(struct runner *runners, unsigned count, bool inlined)
{
	if (inlined) {
		glue_thread_enter();
		runner_run(&runners[0]);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		runners[i].thread = glue_thread_start(runner_run, &runners[i],
			runners[i].cpu == CPU_NONE ? -1 : (int)runners[i].cpu, "perf-bare");
		if (runners[i].thread == NULL)
			complain("no thread can be started for bare frames; see above.");
	}
	for (unsigned i = 0; i < count; i++)
		glue_thread_join(runners[i].thread);
}

bool lend_run(struct lend_end *ends, unsigned count, void (*progress)(void *context, double part),
	void *context)
{
	struct runner runners[LEND_MAX];
	unsigned runner_count = 0;
	bool well = true;

	library_lock();
	for (unsigned i = 0; i < count; i++)
		interface_pause(lender(ends[i].ni));
	settle(ends, count);
	for (unsigned i = 0; i < count; i++) {
		struct interface *interface = lender(ends[i].ni);
		struct runner *runner = runner_of(runners, &runner_count, ends, i);

		ends[i].options.port = interface->port;
		ends[i].options.encapsulation = &interface->encapsulation;
		bare_open(ends[i].bare, &ends[i].options);
		runner->bares[runner->count++] = ends[i].bare;
	}
	runners[0].progress = progress;
	runners[0].context = context;
	runners_run(runners, runner_count, lender(ends[0].ni)->inlined);
	for (unsigned i = 0; i < count; i++)
		bare_close(ends[i].bare);
	for (unsigned i = 0; i < count; i++)
		interface_resume(lender(ends[i].ni));
	library_unlock();
	for (unsigned i = 0; i < runner_count; i++)
		well = well && runners[i].well;
	return well;
}
