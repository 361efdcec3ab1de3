/* SPDX-License-Identifier: BSD-3-Clause */
/* interface.c - network interfaces: PtlNIInit, PtlNIFini, and what can be asked of one. */
#include <p4/interface.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/cancel.h>
#include <base/guard.h>
#include <base/log.h>
#include <base/remedy.h>
#include <base/settings.h>
#include <engine/statistics.h>
#include <p4/cards.h>
#include <p4/limit.h>

/* Stands for this process where its own process id would be PTL_PID_ANY. */
#define PID_INSTEAD (UINT32_C(1) << 30)

struct ni nis[NAME_NIS];

static struct cancel_lock nis_lock = CANCEL_LOCK_INITIAL;

/* What an NI has beside the engine's, once nobody looks at it any more. */
static void ni_forget(struct ni *ni)
{
	uint32_t regions = (uint32_t)ni->limits.max_entries + (uint32_t)ni->limits.max_mds;

	for (uint32_t i = 0; ni->backings && i < regions; i++)
		free(ni->backings[i].vector);
	free(ni->backings);
	free(atomic_load_explicit(&ni->ranks, memory_order_relaxed));
	ni->backings = NULL;
	atomic_store_explicit(&ni->ranks, NULL, memory_order_relaxed);
	atomic_store_explicit(&ni->number, 0, memory_order_relaxed);
	ni->uses = 0;
}

/* F3. The NIs of a port whose interface has this handle, 0: none, are open; others are not. */
static void nis_review(unsigned port, uint64_t handle)
{
	for (struct ni *ni = &nis[port * PORT_NIS]; ni < &nis[(port + 1) * PORT_NIS]; ni++)
		if (ni->uses != 0 && ni->port != handle)
			ni_forget(ni);
}

/* Is another NI of this one's port open? */
static bool ni_has_neighbour(const struct ni *ni)
{
	const struct ni *first = &nis[ni_index(ni) / PORT_NIS * PORT_NIS];

	for (const struct ni *other = first; other < first + PORT_NIS; other++)
		if (other != ni && other->uses != 0)
			return true;
	return false;
}

/* The least number of bits that every index below count fits into. */
static uint64_t bits_for(uint32_t count)
{
	uint64_t bits = 0;

	while (bits < 26 && (count - 1) >> bits != 0)
		bits++;
	return bits;
}

/* F2. Lets visitors in. */
static void ni_publish(struct ni *ni, const struct segment_limits *tables)
{
	const uint64_t bits = bits_for(tables->regions) << 8 * NAME_MD |
			      bits_for(tables->entries) << 8 * NAME_ENTRY |
			      bits_for(tables->queues) << 8 * NAME_QUEUE |
			      bits_for(tables->counters) << 8 * NAME_COUNTER;

	atomic_store_explicit(&ni->index_bits, bits, memory_order_relaxed);
	/* Release: pairs with the acquire in call_enter(). */
	atomic_store_explicit(&ni->number, handle_interface(ni->handle) + 1, memory_order_release);
}

/* The process id that is asked for, as the host has it. */
static uint32_t pid_wanted(ptl_pid_t pid)
{
	if (pid != PTL_PID_ANY)
		return pid;
	return getpid() == PTL_PID_ANY ? PID_INSTEAD : INTERFACE_PID_ANY;
}

/* Opens the port's interface unless it is open; *handle: the host's. Both locks are held. */
static int port_open(unsigned port, ptl_pid_t pid, uint64_t *handle)
{
	const struct segment_limits none = {0};
	const struct interface *interface = &interfaces[port];
	enum answer answer = ANSWER_OK;

	if (!interface_is_open(&portals4, port))
		answer = interface_open(&portals4, port, pid_wanted(pid), &none);
	if (answer == ANSWER_OK)
		*handle = atomic_load_explicit(&interface->handle, memory_order_relaxed);
	return answer == ANSWER_GONE ? PTL_FAIL : code_of(answer);
}

/* May the port's NIs be of this process? Returns false if the port has another process id than the
 * caller wants, or an id that programs cannot name. */
static int port_check(unsigned port, ptl_pid_t pid)
{
	const struct process self = interfaces[port].self;

	if (self.nid == PTL_NID_ANY) {
		log_error("node id %u cannot be used by Portals 4, where it means any node; set "
			  "PTL_NID to another one",
			self.nid);
		return PTL_FAIL;
	}
	return pid == PTL_PID_ANY || pid == self.pid ? PTL_OK : PTL_ARG_INVALID;
}

/* Opens the space of an NI on its port's interface. */
static int ni_open_space(struct ni *ni)
{
	const struct space_choice choice = {
		.number = SPACE_FIRST + ni_index(ni) % PORT_NIS,
		.options = {.kind = SPACE_TIERS, .ranked = ni_is_ranked(ni)},
	};
	struct segment_limits tables;
	enum answer answer;

	library_lock();
	limits_tables(&ni->limits, &tables);
	library_unlock();
	ni->backings = calloc(tables.regions, sizeof(*ni->backings));
	if (!ni->backings) {
		log_error("PtlNIInit failed because there is not enough memory for %u memory "
			  "descriptors and entries: %s",
			tables.regions,
			remedy_for(ENOMEM,
				"ask for smaller limits, or end programs that use much memory"));
		return PTL_NO_SPACE;
	}
	guard_start(); /* again each time: the program may have installed handlers */
	answer = interface_open_space(&portals4, ni->port, &choice, &tables, &ni->handle);
	if (answer == ANSWER_OK) {
		ni->uses = 1;
		ni_publish(ni, &tables);
		return PTL_OK;
	}
	free(ni->backings);
	ni->backings = NULL;
	return code_of(answer);
}

/* nis_lock is held. */
static int ni_open(struct ni *ni, ptl_pid_t pid, const ptl_ni_limits_t *desired)
{
	unsigned port = ni_index(ni) / PORT_NIS;
	int code = PTL_NO_INIT;

	library_lock();
	if (front_is_open(&portals4)) {
		limits_choose(desired, &ni->limits);
		code = port_open(port, pid, &ni->port);
	}
	if (code == PTL_OK)
		limits_fit(
			&ni->limits, interfaces[port].port->frame_size - ENCAPSULATION_BYTES_MAX);
	library_unlock();
	if (code != PTL_OK)
		return code;
	code = port_check(port, pid);
	if (code == PTL_OK)
		code = ni_open_space(ni);
	if (code != PTL_OK && !ni_has_neighbour(ni))
		interface_close(&portals4, ni->port);
	return code;
}

/* The NI of these options, PTL_ARG_INVALID: there is none. */
static int ni_choose(ptl_interface_t iface, unsigned options, struct ni **ni)
{
	unsigned index = iface == PTL_IFACE_DEFAULT ? 0 : iface;
	unsigned ports, matching, logical;

	library_lock();
	ports = setting_items(SETTING_IFACE_NAME);
	library_unlock();
	matching = options & (PTL_NI_MATCHING | PTL_NI_NO_MATCHING);
	logical = options & (PTL_NI_LOGICAL | PTL_NI_PHYSICAL);
	if (index >= ports || (options & ~PTL_NI_INIT_OPTIONS_MASK) != 0 ||
		(matching != PTL_NI_MATCHING && matching != PTL_NI_NO_MATCHING) ||
		(logical != PTL_NI_LOGICAL && logical != PTL_NI_PHYSICAL))
		return PTL_ARG_INVALID;
	if (index >= PORTS) {
		log_error("PtlNIInit: interface %u cannot be used, because Portals 4 uses the "
			  "first %u of PTL_IFACE_NAME; name it earlier",
			index, PORTS);
		return PTL_ARG_INVALID;
	}
	*ni = &nis[index * PORT_NIS + (matching == PTL_NI_MATCHING ? NI_MATCHES : 0) +
		   (logical == PTL_NI_LOGICAL ? NI_RANKED : 0)];
	return PTL_OK;
}

/* The handle of a port's interface; 0: it is not open. */
static uint64_t port_handle(unsigned port)
{
	uint64_t handle = 0;

	library_lock();
	if (interface_is_open(&portals4, port))
		handle = atomic_load_explicit(&interfaces[port].handle, memory_order_relaxed);
	library_unlock();
	return handle;
}

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
	const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle)
{
	struct ni *ni;
	int code;

	if (!front_is_open(&portals4))
		return PTL_NO_INIT;
	if (!ni_handle)
		return PTL_ARG_INVALID;
	code = ni_choose(iface, options, &ni);
	if (code != PTL_OK)
		return code;
	cancel_lock_take(&nis_lock);
	nis_review(ni_index(ni) / PORT_NIS, port_handle(ni_index(ni) / PORT_NIS));
	if (ni->uses == 0)
		code = ni_open(ni, pid, desired);
	else
		ni->uses++;
	if (code == PTL_OK) {
		if (actual)
			*actual = ni->limits;
		*ni_handle = name_make(NAME_NI, ni_index(ni));
		if (ni_index(ni) < PORT_NIS)
			card_show(ni->port);
	}
	cancel_lock_give(&nis_lock);
	return code;
}

/* nis_lock is held, and the NI has its last use. */
static void ni_close(struct ni *ni)
{
	uint64_t handle = ni_has_neighbour(ni) ? ni->handle : ni->port;

	atomic_store_explicit(&ni->number, 0, memory_order_relaxed); /* F2 */
	interface_close(&portals4, handle);
	ni_forget(ni);
}

int PtlNIFini(ptl_handle_ni_t ni_handle)
{
	struct call call;
	int code;

	if (!front_is_open(&portals4))
		return PTL_NO_INIT;
	cancel_lock_take(&nis_lock);
	code = call_enter(&call, ni_handle, NAME_NI);
	if (code == PTL_OK) {
		visit_leave(&call.visit);
		if (call.ni->uses > 1)
			call.ni->uses--;
		else
			ni_close(call.ni);
	}
	cancel_lock_give(&nis_lock);
	return code;
}

/* What a status register of the visited NI says. */
static uint64_t status_count(const struct call *call, ptl_sr_index_t status_register)
{
	const struct engine_counters *counters = segment_counters(call->visit.segment);

	switch (status_register) {
	case PTL_SR_PERMISSION_VIOLATIONS:
		return counter_read(&counters->dropped_permission);
	case PTL_SR_OPERATION_VIOLATIONS:
		return counter_read(&counters->dropped_operation);
	default:
		return counter_read(&counters->dropped_no_portal) +
		       counter_read(&counters->dropped_bad_cookie) +
		       counter_read(&counters->dropped_disabled) +
		       counter_read(&counters->dropped_no_header) +
		       counter_read(&counters->dropped_no_match);
	}
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status)
{
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	if (!status || (unsigned)status_register >= PTL_SR_LAST)
		return call_leave(&call, PTL_ARG_INVALID);
	/* Inline, a program that watches the register drives what it waits for. */
	if (call.visit.interface->inlined)
		interface_drive();
	*status = (ptl_sr_value_t)status_count(&call, status_register);
	return call_leave(&call, PTL_OK);
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle)
{
	uint32_t kind = name_kind(handle);
	struct call call;
	int code;

	if (!front_is_open(&portals4))
		return PTL_NO_INIT;
	if (kind < NAME_NI || kind >= NAME_KINDS || !ni_handle)
		return PTL_ARG_INVALID;
	code = call_enter(&call, handle, (enum name_kind)kind);
	if (code != PTL_OK)
		return code;
	*ni_handle = name_make(NAME_NI, ni_index(call.ni));
	return call_leave(&call, PTL_OK);
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid)
{
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	if (!uid)
		return call_leave(&call, PTL_ARG_INVALID);
	*uid = call.visit.interface->uid;
	return call_leave(&call, PTL_OK);
}

static ptl_process_t process_physical(const struct call *call)
{
	const struct process self = call->visit.interface->self;

	return (ptl_process_t){.phys = {.nid = self.nid, .pid = self.pid}};
}

/* As the NI names this process. A rank's other half is 0. */
static ptl_process_t process_own(const struct call *call)
{
	const struct ranks *ranks = atomic_load_explicit(&call->ni->ranks, memory_order_acquire);
	ptl_process_t id = {.phys = {0, 0}};

	if (!ni_is_ranked(call->ni))
		return process_physical(call);
	id.rank = ranks ? ranks->self : PTL_RANK_ANY;
	return id;
}

static int id_get(ptl_handle_ni_t ni_handle, ptl_process_t (*id_of)(const struct call *call),
	ptl_process_t *id)
{
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	if (!id)
		return call_leave(&call, PTL_ARG_INVALID);
	*id = id_of(&call);
	return call_leave(&call, PTL_OK);
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id)
{
	return id_get(ni_handle, process_own, id);
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id)
{
	return id_get(ni_handle, process_physical, id);
}

/* A copy of a map in which this process is. */
static int ranks_make(
	const struct call *call, ptl_size_t size, const ptl_process_t *mapping, struct ranks **made)
{
	const struct process self = call->visit.interface->self;
	struct ranks *ranks;

	if (size >= PTL_RANK_ANY)
		return PTL_NO_SPACE;
	ranks = malloc(sizeof(*ranks) + size * sizeof(ranks->processes[0]));
	if (!ranks)
		return PTL_NO_SPACE;
	ranks->count = (uint32_t)size;
	ranks->self = PTL_RANK_ANY;
	for (uint32_t i = 0; i < ranks->count; i++) {
		ranks->processes[i] =
			(struct process){.nid = mapping[i].phys.nid, .pid = mapping[i].phys.pid};
		if (ranks->self == PTL_RANK_ANY && process_same(ranks->processes[i], self))
			ranks->self = i;
	}
	if (ranks->self != PTL_RANK_ANY) {
		*made = ranks;
		return PTL_OK;
	}
	free(ranks);
	return PTL_ARG_INVALID;
}

/* The visited NI gets its map, unless it has one. */
static int ranks_set(const struct call *call, struct ranks *ranks)
{
	struct command command = {.kind = COMMAND_MAP};
	struct ranks *none = NULL;

	if (!atomic_compare_exchange_strong_explicit(
		    &call->ni->ranks, &none, ranks, memory_order_release, memory_order_relaxed)) {
		free(ranks);
		return PTL_IGNORED;
	}
	command.object.index = ranks->count;
	command.object.other = (uintptr_t)ranks->processes;
	return code_of(visit_call(&call->visit, &command, NULL, NULL));
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping)
{
	struct ranks *ranks;
	struct call call;
	uint64_t port;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	if (!ni_is_ranked(call.ni) || map_size == 0 || !mapping)
		code = PTL_ARG_INVALID;
	else
		code = ranks_make(&call, map_size, mapping, &ranks);
	if (code == PTL_OK)
		code = ranks_set(&call, ranks);
	port = ni_index(call.ni) < PORT_NIS ? call.ni->port : 0;
	visit_leave(&call.visit);
	if (code == PTL_OK && port != 0)
		cards_take(port, map_size);
	return code;
}

static void ranks_copy(const struct ranks *ranks, ptl_size_t size, ptl_process_t *mapping)
{
	for (uint32_t i = 0; i < ranks->count && i < size; i++)
		mapping[i] = (ptl_process_t){
			.phys = {.nid = ranks->processes[i].nid, .pid = ranks->processes[i].pid}};
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping,
	ptl_size_t *actual_map_size)
{
	const struct ranks *ranks;
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	ranks = atomic_load_explicit(&call.ni->ranks, memory_order_acquire);
	if (!ni_is_ranked(call.ni) || (!mapping && map_size != 0))
		return call_leave(&call, PTL_ARG_INVALID);
	if (!ranks)
		return call_leave(&call, PTL_NO_SPACE);
	ranks_copy(ranks, map_size, mapping);
	if (actual_map_size)
		*actual_map_size = ranks->count;
	return call_leave(&call, PTL_OK);
}

/* Nothing is held back, so there is nothing to do. */
static int bundle_check(ptl_handle_ni_t ni_handle)
{
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	return code == PTL_OK ? call_leave(&call, code) : code;
}

int PtlStartBundle(ptl_handle_ni_t ni_handle)
{
	return bundle_check(ni_handle);
}

int PtlEndBundle(ptl_handle_ni_t ni_handle)
{
	return bundle_check(ni_handle);
}

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2)
{
	return handle1 == handle2;
}
