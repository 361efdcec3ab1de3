/* SPDX-License-Identifier: BSD-3-Clause */
/* interface.c - network interfaces: PtlNIInit, PtlNIFini, and what can be asked of one. */
#include <p3/interface.h>

#include <unistd.h>

#include <base/log.h>
#include <base/settings.h>
#include <host/statistics.h>
#include <p3/code.h>

#define DEFAULT_ENTRIES 32768
#define DEFAULT_REGIONS 32768
#define DEFAULT_QUEUES  1024
#define DEFAULT_PORTALS 64
#define DEFAULT_ACCESS  64

static uint32_t limit_clamp(int64_t wanted, uint32_t most)
{
	if (wanted < 1)
		return 1;
	return wanted > most ? most : (uint32_t)wanted;
}

static void limits_choose(const ptl_ni_limits_t *desired, struct segment_limits *limits)
{
	*limits = (struct segment_limits){
		.entries = DEFAULT_ENTRIES,
		.regions = DEFAULT_REGIONS,
		.queues = DEFAULT_QUEUES,
		.portals = DEFAULT_PORTALS,
		.access = DEFAULT_ACCESS,
		.list_length = (uint32_t)setting_number(SETTING_LIST_MAX),
		.event_bytes = setting_number(SETTING_EVENT_MEMORY),
	};
	if (!desired)
		return;
	limits->entries = limit_clamp(desired->max_match_entries, LIMIT_ENTRIES);
	limits->regions = limit_clamp(desired->max_mem_descriptors, LIMIT_REGIONS);
	limits->queues = limit_clamp(desired->max_event_queues, LIMIT_QUEUES);
	limits->access = limit_clamp((int64_t)desired->max_atable_index + 1, LIMIT_ACCESS);
	limits->portals = limit_clamp((int64_t)desired->max_ptable_index + 1, LIMIT_PORTALS);
}

static void limits_tell(const struct segment *segment, ptl_ni_limits_t *actual)
{
	const struct segment_limits *limits = &segment->limits;

	*actual = (ptl_ni_limits_t){
		.max_match_entries = (int)limits->entries,
		.max_mem_descriptors = (int)limits->regions,
		.max_event_queues = (int)limits->queues,
		.max_atable_index = limits->access - 1,
		.max_ptable_index = limits->portals - 1,
	};
}

static int interface_make(ptl_interface_t number, ptl_pid_t pid, const ptl_ni_limits_t *desired)
{
	struct segment_limits limits;

	if (pid != PTL_PID_ANY && pid > PTL_PID_MAX)
		return PTL_INV_PROC;
	limits_choose(desired, &limits);
	return code_of(interface_open(&portals, number, pid, &limits), PTL_INIT_INV);
}

int PtlNIInit(ptl_interface_t number, ptl_pid_t pid, ptl_ni_limits_t *desired,
	ptl_ni_limits_t *actual, ptl_handle_ni_t *handle)
{
	int code = PTL_INIT_DUP;

	if (!front_is_open(&portals))
		return PTL_NOINIT;
	if (ADDRESS_IS_BAD(handle) || (desired && ADDRESS_IS_BAD(desired)) ||
		(actual && ADDRESS_IS_BAD(actual)))
		return PTL_SEGV;
	log_clear_error();
	library_lock();
	if (!front_is_open(&portals)) {
		code = PTL_NOINIT;
	} else if (number >= setting_items(SETTING_IFACE_NAME)) {
		code = PTL_INIT_INV;
	} else {
		if (!interface_is_open(&portals, number))
			code = interface_make(number, pid, desired);
		if (code == PTL_OK || code == PTL_INIT_DUP) {
			const struct interface *interface = &interfaces[number];

			if (actual)
				limits_tell(interface->submission.segment, actual);
			*handle = atomic_load_explicit(&interface->handle, memory_order_relaxed);
		}
	}
	library_unlock();
	return code;
}

int PtlNIFini(ptl_handle_ni_t handle)
{
	if (!front_is_open(&portals))
		return PTL_NOINIT;
	return code_of(interface_close(&portals, handle), PTL_INV_NI);
}

int PtlNIStatus(ptl_handle_ni_t handle, ptl_sr_index_t status_register, ptl_sr_value_t *status)
{
	struct visit visit;
	int code = visit_enter(&visit, handle, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (status_register != PTL_SR_DROP_COUNT)
		return visit_end(&visit, PTL_INV_SR_INDX);
	if (ADDRESS_IS_BAD(status))
		return visit_end(&visit, PTL_SEGV);
	/* Inline, a program that watches the register drives what it waits for. */
	if (visit.interface->inlined)
		interface_drive();
	*status = (ptl_sr_value_t)interface_drops(visit.segment);
	return visit_end(&visit, PTL_OK);
}

int PtlNIDist(ptl_handle_ni_t handle, ptl_process_id_t process, unsigned long *distance)
{
	struct visit visit;
	int code = visit_enter(&visit, handle, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (!process_is_valid(process))
		return visit_end(&visit, PTL_INV_PROC);
	if (ADDRESS_IS_BAD(distance))
		return visit_end(&visit, PTL_SEGV);
	if (process.nid != visit.interface->self.nid)
		*distance = 2;
	else
		*distance = process.pid != visit.interface->self.pid;
	return visit_end(&visit, PTL_OK);
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *interface)
{
	struct visit visit;
	uint32_t kind = handle_kind(handle);
	int code;

	if (!front_is_open(&portals))
		return PTL_NOINIT;
	if (kind < HANDLE_INTERFACE || kind > HANDLE_ENTRY)
		return PTL_INV_HANDLE;
	code = visit_enter(&visit, handle, (enum handle_kind)kind, PTL_INV_HANDLE);
	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(interface))
		return visit_end(&visit, PTL_SEGV);
	*interface = atomic_load_explicit(&visit.interface->handle, memory_order_relaxed);
	return visit_end(&visit, PTL_OK);
}

int PtlGetUid(ptl_handle_ni_t handle, ptl_uid_t *uid)
{
	struct visit visit;
	int code = visit_enter(&visit, handle, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(uid))
		return visit_end(&visit, PTL_SEGV);
	*uid = visit.interface->uid;
	return visit_end(&visit, PTL_OK);
}

int PtlGetId(ptl_handle_ni_t handle, ptl_process_id_t *id)
{
	struct visit visit;
	int code = visit_enter(&visit, handle, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(id))
		return visit_end(&visit, PTL_SEGV);
	*id = (ptl_process_id_t){
		.nid = visit.interface->self.nid, .pid = visit.interface->self.pid};
	return visit_end(&visit, PTL_OK);
}
