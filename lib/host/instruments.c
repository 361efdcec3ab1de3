/* SPDX-License-Identifier: BSD-3-Clause */
/* instruments.c - see instruments.h. */

#include <base/backoff.h>
#include <base/settings.h>
#include <base/trace.h>
#include <engine/engine.h>
#include <host/instruments.h>
#include <host/interface.h>

#define LINGER   (200 * MILLISECOND) /* at most, for what is on its way */
#define CPU_NONE UINT64_MAX

static struct interface *lender(uint64_t ni)
{
	return &interfaces[handle_interface(ni)];
}

static const struct port *port_of(uint64_t ni)
{
	const struct port *port;

	library_lock();
	port = lender(ni)->port;
	library_unlock();
	return port;
}

/* Until what was sent has been acknowledged, and what came has been too. The engines are this
 * thread's. */
static void settle(const uint64_t *nis, unsigned count)
{
	uint64_t start = glue_now(NULL);
	unsigned looks = 0;
	bool settled;

	do {
		unsigned work = 0;

		settled = true;
		for (unsigned i = 0; i < count; i++) {
			struct engine *engine = lender(nis[i])->engine;

			work += engine_poll(engine);
			settled = settled && engine_settled(engine);
		}
		if (work == 0)
			backoff(&looks);
	} while (!settled && glue_now(NULL) - start < LINGER);
}

/* The library stays locked until the ports are back: nothing opens or closes meanwhile. */
static void borrow(const uint64_t *nis, unsigned count, struct instruments_port *ports)
{
	library_lock();
	for (unsigned i = 0; i < count; i++)
		interface_pause(lender(nis[i]));
	settle(nis, count);
	for (unsigned i = 0; i < count; i++) {
		struct interface *interface = lender(nis[i]);
		uint64_t cpu =
			setting_number_item(SETTING_POLL_CORE, handle_interface(nis[i]), CPU_NONE);

		ports[i] = (struct instruments_port){
			.port = interface->port,
			.encapsulation = &interface->encapsulation,
			.thread = interface->inlined ? NULL : interface->thread,
			.cpu = cpu == CPU_NONE ? -1 : (int)cpu,
		};
	}
}

static void give_back(const uint64_t *nis, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		interface_resume(lender(nis[i]));
	library_unlock();
}

const struct instruments host_instruments = {
	.port = port_of,
	.borrow = borrow,
	.give_back = give_back,
	.hugepages = glue_hugepages,
	.now = glue_now,
	.thread_start = glue_thread_start,
	.thread_join = glue_thread_join,
	.thread_enter = glue_thread_enter,
	.trace_start = trace_start,
	.trace_stop = trace_stop,
	.trace_write = trace_write,
	.trace_count = trace_count,
};
