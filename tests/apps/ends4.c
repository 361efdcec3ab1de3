/* SPDX-License-Identifier: BSD-3-Clause */
/* ends4.c - ends4 kill: a job of Portals 4 with libportals_runtime whose rank 1 is killed while all
 * others are at a barrier. ends4 late: its rank 1 comes there two seconds after them. ends4 ask: it
 * comes there when it has sent to rank 0, which makes no call meanwhile but that of the barrier. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <portals4.h>
#include <portals4/pmi.h>

/* The ranks' addresses, by PMI. */
static int map_set(ptl_handle_ni_t ni, int rank, int size)
{
	char space[256], key[64], value[64];
	ptl_process_t self, map[64];

	if (PtlGetPhysId(ni, &self) != PTL_OK ||
		PMI_KVS_Get_my_name(space, sizeof(space)) != PMI_SUCCESS)
		return 0;
	snprintf(key, sizeof(key), "rank-%d", rank);
	snprintf(value, sizeof(value), "%u:%u", self.phys.nid, self.phys.pid);
	if (PMI_KVS_Put(space, key, value) != PMI_SUCCESS || PMI_Barrier() != PMI_SUCCESS)
		return 0;
	for (int of = 0; of < size; of++) {
		snprintf(key, sizeof(key), "rank-%d", of);
		if (PMI_KVS_Get(space, key, value, sizeof(value)) != PMI_SUCCESS ||
			sscanf(value, "%u:%u", &map[of].phys.nid, &map[of].phys.pid) != 2)
			return 0;
	}
	return PtlSetMap(ni, (ptl_size_t)size, map) == PTL_OK;
}

/* Its acknowledgement needs the target's engine, and no entry there. */
static int rank_ask(ptl_handle_ni_t ni)
{
	ptl_process_t target = {.rank = 0};
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_event_t event;
	ptl_md_t memory = {.length = 0};

	if (PtlEQAlloc(ni, 8, &eq) != PTL_OK)
		return 0;
	memory.eq_handle = eq;
	memory.ct_handle = PTL_CT_NONE;
	if (PtlMDBind(ni, &memory, &md) != PTL_OK ||
		PtlPut(md, 0, 0, PTL_ACK_REQ, target, 0, 0, 0, NULL, 0) != PTL_OK)
		return 0;
	do
		if (PtlEQWait(eq, &event) != PTL_OK)
			return 0;
	while (event.type != PTL_EVENT_ACK);
	return event.ni_fail_type != PTL_NI_UNDELIVERABLE;
}

int main(int count, char **words)
{
	ptl_handle_ni_t ni;
	int spawned, rank, size;

	if (count != 2 || PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_rank(&rank) != PMI_SUCCESS ||
		PMI_Get_size(&size) != PMI_SUCCESS || size > 64 || PtlInit() != PTL_OK ||
		PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL,
			NULL, &ni) != PTL_OK ||
		!map_set(ni, rank, size)) {
		fprintf(stderr, "usage: ends4 kill|late|ask, in a job\n");
		return 2;
	}
	if (rank == 1 && strcmp(words[1], "kill") == 0) {
		usleep(300000);
		raise(SIGKILL);
	}
	if (rank == 1 && strcmp(words[1], "late") == 0)
		sleep(2);
	if (rank == 1 && strcmp(words[1], "ask") == 0) {
		usleep(300000);
		if (!rank_ask(ni))
			return 3;
	}
	if (PMI_Barrier() != PMI_SUCCESS)
		return 4;
	PtlNIFini(ni);
	PtlFini();
	return PMI_Finalize() == PMI_SUCCESS ? 0 : 5;
}
