/* SPDX-License-Identifier: BSD-3-Clause */
/* start.c - the ranks of a job find each other: by PMI, whatever the launcher. */
#include "state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <portals4/pmi.h>

#define SHARE_MOST  256u
#define SHARE_LEAST 4u
#define NAME_ROOM   256u
#define TEXT_ROOM   1024u

static char space[NAME_ROOM];

/* --- keys and values */

static bool failed(const char *what)
{
	complain("%s failed, for the reason that a line above gives, so the ranks cannot exchange "
		 "their addresses",
		what);
	return false;
}

static bool tell(const char *key, const char *value)
{
	char name[64];

	snprintf(name, sizeof(name), "gasnet-%s-%u", key, gasnet.rank);
	return (PMI_KVS_Put(space, name, value) == PMI_SUCCESS &&
		       PMI_KVS_Commit(space) == PMI_SUCCESS) ||
	       failed("PMI_KVS_Put");
}

static bool ask(const char *key, uint32_t rank, char value[TEXT_ROOM])
{
	char name[64];

	snprintf(name, sizeof(name), "gasnet-%s-%u", key, rank);
	return PMI_KVS_Get(space, name, value, TEXT_ROOM) == PMI_SUCCESS || failed("PMI_KVS_Get");
}

static bool meet(void)
{
	return PMI_Barrier() == PMI_SUCCESS || failed("PMI_Barrier");
}

/* --- shares (G1) */

/* The share of each peer where so much room is. */
uint64_t share_reckon(uint64_t queue, uint64_t blocks, uint64_t size, uint32_t ranks)
{
	uint64_t peers = ranks > 1 ? ranks - 1 : 1;
	/* A quarter of the blocks may wait to be appended again, and one is nearly full. */
	uint64_t bytes = (blocks - blocks / 4 - 1) * (size - MESSAGE_MAX);
	/* A credit has an event for the request and two for the reply; barriers have some, too. */
	uint64_t kept = blocks + 64;
	uint64_t events = queue > kept ? (queue - kept) / (3 * peers) : 0;
	uint64_t room = bytes / peers / (2 * MESSAGE_MAX);
	uint64_t share = events < room ? events : room;

	return share < SHARE_MOST ? share : SHARE_MOST;
}

/* Makes room for the least share. */
static void room_make(void)
{
	uint64_t queue = gasnet.queue, blocks = gasnet.blocks;

	while (share_reckon(UINT32_MAX, gasnet.blocks, gasnet.block_size, gasnet.size) <
		SHARE_LEAST)
		gasnet.blocks *= 2;
	while (share_reckon(gasnet.queue, gasnet.blocks, gasnet.block_size, gasnet.size) <
		SHARE_LEAST)
		gasnet.queue *= 2;
	if (gasnet.rank == 0 && gasnet.queue != queue)
		complain("GASNET_AM_EVENT_QUEUE_LENGTH is raised from %" PRIu64 " to %" PRIu64
			 ", which %u ranks need",
			queue, gasnet.queue, gasnet.size);
	if (gasnet.rank == 0 && gasnet.blocks != blocks)
		complain("GASNET_AM_NUM_ENTRIES is raised from %" PRIu64 " to %" PRIu64
			 ", which %u ranks need",
			blocks, gasnet.blocks, gasnet.size);
}

/* --- Portals */

static bool interface_open(ptl_process_t *self)
{
	int code = PtlInit();

	if (code == PTL_OK)
		code = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY,
			NULL, NULL, &gasnet.ni);
	if (code == PTL_OK)
		code = PtlGetPhysId(gasnet.ni, self);
	if (code == PTL_OK)
		code = PtlGetUid(gasnet.ni, &gasnet.uid);
	if (code != PTL_OK)
		complain("Portals 4 cannot be opened: %s", PtlToStr(code, PTL_STR_ERROR));
	return code == PTL_OK;
}

static ptl_handle_md_t memory_bind(unsigned options, ptl_handle_eq_t queue)
{
	const ptl_md_t all = {.length = PTL_SIZE_MAX,
		.options = options,
		.eq_handle = queue,
		.ct_handle = PTL_CT_NONE};
	ptl_handle_md_t handle;

	must(PtlMDBind(gasnet.ni, &all, &handle));
	return handle;
}

static void objects_make(void)
{
	must(PtlEQAlloc(gasnet.ni, gasnet.queue, &gasnet.receive));
	must(PtlEQAlloc(gasnet.ni, gasnet.queue + 1024, &gasnet.sent));
	must(PtlEQAlloc(gasnet.ni, gasnet.transfer_most, &gasnet.transfers));
	gasnet.transfer = memory_bind(PTL_MD_EVENT_SEND_DISABLE, gasnet.transfers);
	gasnet.transfer_small =
		memory_bind(PTL_MD_EVENT_SEND_DISABLE | PTL_MD_VOLATILE, gasnet.transfers);
	gasnet.small = memory_bind(PTL_MD_VOLATILE | PTL_MD_EVENT_SUCCESS_DISABLE, gasnet.sent);
	gasnet.counted = memory_bind(0, gasnet.sent);
	gasnet.quiet = memory_bind(PTL_MD_EVENT_SUCCESS_DISABLE, PTL_EQ_NONE);
}

/* --- the ranks */

/* Where this rank is, and what it has. */
static bool self_tell(ptl_process_t self)
{
	char value[TEXT_ROOM], host[NAME_ROOM] = "";

	(void)gethostname(host, sizeof(host) - 1);
	host[strcspn(host, " \t\r\n")] = '\0';
	snprintf(value, sizeof(value), "%u:%u:%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%s",
		self.phys.nid, self.phys.pid, segment_memory(), gasnet.segment_most,
		share_reckon(gasnet.queue, gasnet.blocks, gasnet.block_size, gasnet.size), host);
	return tell("at", value);
}

struct others {
	ptl_process_t *map;
	uint64_t *memory, *most;
	char (*hosts)[NAME_ROOM];
};

static bool other_learn(struct others *others, uint32_t rank)
{
	char value[TEXT_ROOM];
	ptl_process_t *at = &others->map[rank];
	uint64_t share;
	int length = 0;

	if (!ask("at", rank, value))
		return false;
	if (sscanf(value, "%u:%u:%" SCNu64 ":%" SCNu64 ":%" SCNu64 ":%n", &at->phys.nid,
		    &at->phys.pid, &others->memory[rank], &others->most[rank], &share,
		    &length) != 5 ||
		length == 0 || strlen(value + length) >= NAME_ROOM || share < SHARE_LEAST) {
		complain("rank %u published \"%.200s\", which is invalid: use the same "
			 "release of Postern in all ranks",
			rank, value);
		return false;
	}
	strcpy(others->hosts[rank], value + length);
	if (share < gasnet.share)
		gasnet.share = (uint32_t)share;
	/* Hosts are numbered by the first rank on each. */
	gasnet.ranks[rank].host = rank;
	for (uint32_t i = 0; i < rank && gasnet.ranks[rank].host == rank; i++)
		if (strcmp(others->hosts[i], others->hosts[rank]) == 0)
			gasnet.ranks[rank].host = gasnet.ranks[i].host;
	return true;
}

/* Numbers hosts without gaps. */
static void hosts_number(void)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < gasnet.size; i++)
		gasnet.ranks[i].host = gasnet.ranks[i].host == i
					       ? next++
					       : gasnet.ranks[gasnet.ranks[i].host].host;
}

static bool others_learn(void)
{
	struct others others = {
		.map = calloc(gasnet.size, sizeof(*others.map)),
		.memory = calloc(gasnet.size, sizeof(*others.memory)),
		.most = calloc(gasnet.size, sizeof(*others.most)),
		.hosts = calloc(gasnet.size, sizeof(*others.hosts)),
	};
	bool learned = others.map && others.memory && others.most && others.hosts;

	if (!learned)
		complain("there is no memory for %u ranks: start fewer on this host", gasnet.size);
	gasnet.share = SHARE_MOST;
	for (uint32_t i = 0; i < gasnet.size && learned; i++)
		learned = other_learn(&others, i);
	if (learned) {
		hosts_number();
		segment_limits(others.memory, others.most);
		must(PtlSetMap(gasnet.ni, gasnet.size, others.map));
	}
	free(others.map);
	free(others.memory);
	free(others.most);
	free(others.hosts);
	return learned;
}

static bool job_join(void)
{
	int spawned, rank, size;

	if (PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_rank(&rank) != PMI_SUCCESS ||
		PMI_Get_size(&size) != PMI_SUCCESS ||
		PMI_KVS_Get_my_name(space, sizeof(space)) != PMI_SUCCESS)
		return failed("PMI_Init");
	gasnet.rank = (uint32_t)rank;
	gasnet.size = (uint32_t)size;
	gasnet.ranks = calloc(gasnet.size, sizeof(*gasnet.ranks));
	return gasnet.ranks || failed("calloc");
}

bool start_join(void)
{
	ptl_process_t self;

	if (!job_join())
		return false;
	environment_read();
	room_make();
	if (!interface_open(&self))
		return false;
	objects_make();
	/* A job of one asks nobody, but for its own line. */
	if (!self_tell(self) || !meet() || !others_learn())
		return false;
	exit_open();
	/* Messages to a process that has no map are dropped, so all wait for all maps. */
	return meet();
}

bool start_exchange(const char *configuration)
{
	char value[TEXT_ROOM], kind[16], segment[SHARED_NAME], rings[SHARED_NAME];
	struct rank *own = &gasnet.ranks[gasnet.rank];

	shared_name(&segment_shared, segment);
	shared_name(&rings_shared, rings);
	snprintf(value, sizeof(value), "%" PRIxPTR ":%" PRIxPTR ":%s:%s:%s",
		(uintptr_t)own->address, own->size, configuration, segment, rings);
	if (!tell("segment", value) || !meet())
		return false;
	for (uint32_t i = 0; i < gasnet.size; i++) {
		uintptr_t address;

		if (!ask("segment", i, value))
			return false;
		if (sscanf(value, "%" SCNxPTR ":%" SCNxPTR ":%15[^:]:%63[^:]:%63s", &address,
			    &gasnet.ranks[i].size, kind, segment, rings) != 5 ||
			strcmp(kind, configuration) != 0)
			fatal("this rank was compiled with the segment %s, but rank %u published "
			      "\"%.100s\": compile all ranks in the same way",
				configuration, i, value);
		gasnet.ranks[i].address = (void *)address;
		segment_share(i, segment);
		ring_share(i, rings);
	}
	return true;
}
