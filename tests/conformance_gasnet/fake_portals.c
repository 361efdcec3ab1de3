/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_portals.c - see fake_portals.h. */
#include "fake_portals.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <portals4/pmi.h>

#define OBJECTS_MAX 64u    /* queues, descriptors; for all ranks */
#define ENTRIES_MAX 4096u  /* of a portal */
#define IDLE_MAX    20000u /* turns of fibers while nothing happens */
#define KEYS_MAX    64u
#define UID         1000u /* of all ranks */
#define TEXT_ROOM   1024u

struct queue {
	unsigned rank;
	ptl_event_t *events;
	size_t room, first, count;
};

struct entry {
	ptl_me_t me;
	void *user_ptr;
	size_t used;   /* of a locally managed one */
	unsigned open; /* messages that have matched and have not arrived */
	bool linked;
};

struct portal {
	struct entry *entries;
	unsigned count;
	ptl_handle_eq_t queue;
};

enum step { STEP_POSTED, STEP_READ, STEP_MATCHED, STEP_ARRIVED };

struct flight {
	enum step step;
	struct seen_put put;
	const ptl_md_t *md;
	void *user_ptr;
	uint8_t *bytes, *place; /* a copy; where it goes */
	unsigned entry;
	struct flight *next;
};

struct fiber {
	unsigned rank, argument;
	void (*run)(unsigned);
	pthread_t thread;
	sem_t turn;
	uint64_t asleep; /* until that step */
	bool ended;
};

static struct fiber fibers[FIBERS_MAX];
static unsigned fiber_count;
static __thread unsigned own_fiber;
static unsigned rank_count;
static enum order order_now;
static uint64_t chance, steps;
static unsigned idle;

static struct queue queues[OBJECTS_MAX];
static unsigned queue_count;
static ptl_md_t descriptors[OBJECTS_MAX];
static unsigned descriptor_count;
static struct portal portals[RANKS_MAX][PORTALS];
static struct flight *flights;
static unsigned flight_count, unlink_count; /* unlink_count: events that were not taken */

void fake_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "gasnet_model: ");
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	_exit(1);
}

unsigned fake_random(unsigned below)
{
	chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((chance >> 33) % below);
}

unsigned fake_rank(void)
{
	return fibers[own_fiber].rank;
}

/* --- events */

static void event_post(ptl_handle_eq_t handle, const ptl_event_t *event)
{
	struct queue *queue;

	if (handle == PTL_EQ_NONE)
		return;
	queue = &queues[handle];
	if (queue->count == queue->room)
		fake_fail("an event of rank %u is lost: its queue has %zu entries", queue->rank,
			queue->room);
	queue->events[(queue->first + queue->count++) % queue->room] = *event;
}

static bool event_take(ptl_handle_eq_t handle, ptl_event_t *event)
{
	struct queue *queue = &queues[handle];

	if (queue->rank != fake_rank())
		fake_fail("rank %u looks at a queue of rank %u", fake_rank(), queue->rank);
	if (queue->count == 0)
		return false;
	*event = queue->events[queue->first];
	queue->first = (queue->first + 1) % queue->room;
	queue->count--;
	unlink_count -= event->type == PTL_EVENT_AUTO_UNLINK;
	oracle_event(queue->rank, event);
	idle = 0;
	return true;
}

static ptl_event_t event_of(const struct flight *flight, ptl_event_kind_t type)
{
	return (ptl_event_t){
		.start = flight->place,
		.user_ptr = flight->user_ptr,
		.hdr_data = flight->put.header,
		.match_bits = flight->put.bits,
		.rlength = flight->put.length,
		.mlength = flight->put.length,
		.remote_offset = flight->put.offset,
		.initiator = {.rank = flight->put.from},
		.pt_index = flight->put.portal,
		.type = type,
	};
}

/* --- messages */

static void flight_read(struct flight *flight)
{
	ptl_event_t event = event_of(flight, PTL_EVENT_SEND);

	flight->bytes = malloc(flight->put.length + 1);
	if (flight->put.length > 0)
		memcpy(flight->bytes, flight->put.source, flight->put.length);
	flight->put.source = flight->bytes;
	if (!(flight->md->options & (PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_SEND_DISABLE)))
		event_post(flight->md->eq_handle, &event);
}

static bool entry_takes(const struct entry *entry, ptl_match_bits_t bits)
{
	return entry->linked && !((entry->me.match_bits ^ bits) & ~entry->me.ignore_bits);
}

static void unlink_look(struct portal *portal, struct entry *entry)
{
	const ptl_event_t event = {.type = PTL_EVENT_AUTO_UNLINK, .user_ptr = entry->user_ptr};

	if (entry->linked || entry->open > 0)
		return;
	event_post(portal->queue, &event);
	unlink_count++;
}

static void flight_match(struct flight *flight)
{
	const struct seen_put *put = &flight->put;
	struct portal *portal = &portals[put->to][put->portal];
	struct entry *entry = portal->entries, *end = entry + portal->count;
	size_t offset = put->offset;

	while (entry < end && !entry_takes(entry, put->bits))
		entry++;
	if (entry == end)
		fake_fail("portal %u of rank %u has no entry for a message of rank %u", put->portal,
			put->to, put->from);
	if (entry->me.options & PTL_ME_MANAGE_LOCAL) {
		offset = entry->used;
		entry->used += put->length;
		entry->linked = entry->me.length - entry->used >= entry->me.min_free;
	}
	if (offset > entry->me.length || put->length > entry->me.length - offset)
		fake_fail(
			"a message of rank %u is longer than rank %u's entry", put->from, put->to);
	flight->entry = (unsigned)(entry - portal->entries);
	entry->open++;
	flight->place = (uint8_t *)entry->me.start + offset;
}

static void flight_arrive(struct flight *flight)
{
	const struct seen_put *put = &flight->put;
	struct portal *portal = &portals[put->to][put->portal];
	struct entry *entry = &portal->entries[flight->entry];
	ptl_event_t event = event_of(flight, PTL_EVENT_PUT);
	ptl_event_t answer = event_of(flight, put->get ? PTL_EVENT_REPLY : PTL_EVENT_ACK);

	if (put->length > 0 && put->get)
		memcpy((void *)(uintptr_t)put->source, flight->place, put->length);
	else if (put->length > 0)
		memcpy(flight->place, flight->bytes, put->length);
	oracle_arrived(put);
	event.user_ptr = entry->user_ptr;
	entry->open--;
	if (!(entry->me.options & PTL_ME_EVENT_COMM_DISABLE))
		event_post(portal->queue, &event);
	if (entry->me.options & PTL_ME_MANAGE_LOCAL)
		unlink_look(portal, entry);
	if (put->acknowledged || put->get)
		event_post(flight->md->eq_handle, &answer);
}

static void flight_step(struct flight **at)
{
	struct flight *flight = *at;

	if (flight->step == STEP_POSTED)
		flight_read(flight);
	else if (flight->step == STEP_READ)
		flight_match(flight);
	else
		flight_arrive(flight);
	if (++flight->step < STEP_ARRIVED)
		return;
	*at = flight->next;
	free(flight->bytes);
	free(flight);
	flight_count--;
}

/* Counts of released credits are in order, as in Portals: one that is not the first of its pair
 * waits. */
static bool held_back(const struct flight *flight)
{
	if (flight->put.portal != 5)
		return false;
	for (const struct flight *other = flights; other != flight; other = other->next)
		if (other->put.portal == 5 && other->put.from == flight->put.from &&
			other->put.to == flight->put.to)
			return true;
	return false;
}

/* Greater numbers come first. */
static unsigned rank_of_flight(const struct flight *flight, unsigned at)
{
	unsigned mixed = fake_random(1u << 16), late = 1u << 16;
	ptl_pt_index_t portal = flight->put.portal;

	switch (order_now) {
	case ORDER_OLDEST:
		return late - at % late;
	case ORDER_NEWEST:
		return at;
	case ORDER_DATA_FIRST:
		return mixed + (portal == 8 ? late : 0);
	case ORDER_DATA_LAST:
		return mixed + (portal != 8 || flight->step == STEP_POSTED ? late : 0);
	case ORDER_SENDS_LAST:
		return mixed + (flight->step != STEP_POSTED ? late : 0);
	case ORDER_RELEASES_LAST:
		return mixed + (portal != 5 ? late : 0);
	case ORDER_TRANSFERS_LAST:
		return mixed + (portal != 9 ? late : 0);
	default:
		return mixed;
	}
}

static void some_message_steps(void)
{
	struct flight **best = NULL;
	unsigned most = 0, at = 0;

	for (struct flight **one = &flights; *one; one = &(*one)->next, at++) {
		unsigned now = rank_of_flight(*one, at);

		if (held_back(*one) || (best && now < most))
			continue;
		best = one;
		most = now;
	}
	if (best)
		flight_step(best);
}

static void flight_begin(ptl_handle_md_t md, struct seen_put put, void *user_ptr)
{
	struct flight *flight = calloc(1, sizeof(*flight)), **at = &flights;

	put.from = fake_rank();
	oracle_put(&put);
	flight->put = put;
	flight->md = &descriptors[md];
	flight->user_ptr = user_ptr;
	if (put.get || flight->md->options & PTL_MD_VOLATILE) {
		if (!put.get)
			flight_read(flight);
		flight->step = STEP_READ;
	}
	while (*at)
		at = &(*at)->next;
	*at = flight;
	flight_count++;
	idle = 0;
}

bool fake_is_quiet(void)
{
	return flight_count == 0 && unlink_count == 0;
}

/* --- fibers */

/* One fiber has the baton, and alone runs. */
static void baton_await(void)
{
	while (sem_wait(&fibers[own_fiber].turn) != 0)
		;
}

/* To another one. */
static void baton_pass(unsigned to)
{
	sem_post(&fibers[to].turn);
}

/* Any fiber that has not ended, one that is awake if there is one. */
static unsigned fiber_choose(void)
{
	unsigned first = fake_random(fiber_count), any = FIBERS_MAX;

	for (unsigned i = 0; i < fiber_count; i++) {
		unsigned one = (first + i) % fiber_count;

		if (fibers[one].ended)
			continue;
		if (fibers[one].asleep <= steps)
			return one;
		any = one;
	}
	return any;
}

void fake_yield(void)
{
	unsigned next;

	steps++;
	if (flight_count == 0 && ++idle > IDLE_MAX)
		fake_fail("the ranks wait for each other");
	if (fake_random(8) == 0)
		fibers[own_fiber].asleep = steps + fake_random(400);
	next = fiber_choose();
	if (next == own_fiber)
		return;
	baton_pass(next);
	baton_await();
}

void fake_goes_on(void)
{
	idle = 0;
}

/* A call that looks at queues: messages go on, and other fibers may run. */
static void look(bool empty)
{
	if (fake_random(3) > 0)
		some_message_steps();
	if (fake_random(empty ? 2 : 6) == 0)
		fake_yield();
}

static void *fiber_run(void *which)
{
	struct fiber *fiber = which;
	unsigned next;

	own_fiber = (unsigned)(fiber - fibers);
	baton_await();
	fiber->run(fiber->argument);
	fiber->ended = true;
	next = fiber_choose();
	if (next < FIBERS_MAX)
		baton_pass(next);
	return NULL;
}

void fake_begin(unsigned ranks, enum order order, uint64_t seed)
{
	rank_count = ranks;
	order_now = order;
	chance = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

void fake_fiber(unsigned rank, void (*run)(unsigned), unsigned argument)
{
	struct fiber *fiber = &fibers[fiber_count++];

	*fiber = (struct fiber){.rank = rank, .argument = argument, .run = run};
	sem_init(&fiber->turn, 0, 0);
}

void fake_run(void)
{
	for (unsigned i = 0; i < fiber_count; i++)
		if (pthread_create(&fibers[i].thread, NULL, fiber_run, &fibers[i]) != 0)
			fake_fail("a thread cannot be made");
	baton_pass(0);
	for (unsigned i = 0; i < fiber_count; i++)
		(void)pthread_join(fibers[i].thread, NULL);
}

/* --- pthread_cond_timedwait() of a library whose threads are fibers */

FAKE_API int fake_timedwait(
	pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);

int fake_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
	(void)condition;
	(void)until;
	pthread_mutex_unlock(mutex);
	fake_yield();
	pthread_mutex_lock(mutex);
	return 0;
}

/* --- Portals */

int PtlInit(void)
{
	return PTL_OK;
}

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
	const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle)
{
	(void)iface, (void)options, (void)pid, (void)desired, (void)actual;
	*ni_handle = fake_rank();
	return PTL_OK;
}

int PtlNIFini(ptl_handle_ni_t ni_handle)
{
	(void)ni_handle;
	return PTL_OK;
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id)
{
	*id = (ptl_process_t){.phys = {.nid = 1, .pid = ni_handle}};
	return PTL_OK;
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid)
{
	(void)ni_handle;
	*uid = UID;
	return PTL_OK;
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping)
{
	(void)ni_handle, (void)map_size, (void)mapping;
	return PTL_OK;
}

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle)
{
	(void)ni_handle;
	descriptors[descriptor_count] = *md;
	*md_handle = descriptor_count++;
	return PTL_OK;
}

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle)
{
	queues[queue_count] = (struct queue){
		.rank = ni_handle, .events = calloc(count, sizeof(ptl_event_t)), .room = count};
	*eq_handle = queue_count++;
	return PTL_OK;
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	look(queues[eq_handle].count == 0);
	return event_take(eq_handle, event) ? PTL_OK : PTL_EQ_EMPTY;
}

int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
	ptl_event_t *event, unsigned int *which)
{
	(void)timeout;
	look(true);
	for (*which = 0; *which < size; ++*which)
		if (event_take(eq_handles[*which], event))
			return PTL_OK;
	return PTL_EQ_EMPTY;
}

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
	ptl_pt_index_t pt_index_req, ptl_pt_index_t *pt_index)
{
	(void)options;
	portals[ni_handle][pt_index_req] = (struct portal){
		.entries = calloc(ENTRIES_MAX, sizeof(struct entry)), .queue = eq_handle};
	*pt_index = pt_index_req;
	return PTL_OK;
}

int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
	ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle)
{
	struct portal *portal = &portals[ni_handle][pt_index];

	(void)ptl_list;
	if (portal->count == ENTRIES_MAX)
		fake_fail("the fake has room for %u entries", ENTRIES_MAX);
	if (me->uid != UID)
		fake_fail("rank %u appends an entry that is not for its user alone", ni_handle);
	for (unsigned i = 0; me->options & PTL_ME_MANAGE_LOCAL && i < portal->count; i++)
		if (portal->entries[i].me.start == me->start &&
			(portal->entries[i].linked || portal->entries[i].open > 0))
			fake_fail("rank %u appends a block that is in use", ni_handle);
	/* Nobody reads a block that Portals may write again. */
	if (me->options & PTL_ME_MANAGE_LOCAL)
		memset(me->start, 0xdd, me->length);
	portal->entries[portal->count++] =
		(struct entry){.me = *me, .user_ptr = user_ptr, .linked = true};
	*me_handle = 0;
	return PTL_OK;
}

unsigned fake_entries(unsigned rank, ptl_pt_index_t portal)
{
	unsigned linked = 0;

	for (unsigned i = 0; i < portals[rank][portal].count; i++)
		linked += portals[rank][portal].entries[i].linked;
	return linked;
}

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data)
{
	flight_begin(md_handle,
		(struct seen_put){.to = target_id.rank,
			.portal = pt_index,
			.bits = match_bits,
			.header = hdr_data,
			.source = (const void *)(uintptr_t)local_offset,
			.length = length,
			.offset = remote_offset,
			.acknowledged = ack_req == PTL_ACK_REQ},
		user_ptr);
	return PTL_OK;
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr)
{
	flight_begin(md_handle,
		(struct seen_put){.to = target_id.rank,
			.portal = pt_index,
			.bits = match_bits,
			.source = (const void *)(uintptr_t)local_offset,
			.length = length,
			.offset = remote_offset,
			.get = true},
		user_ptr);
	return PTL_OK;
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype)
{
	(void)md_handle, (void)local_offset, (void)length, (void)ack_req, (void)target_id;
	(void)pt_index, (void)match_bits, (void)remote_offset, (void)user_ptr, (void)hdr_data;
	(void)operation, (void)datatype;
	return PTL_OK;
}

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	(void)md_handle, (void)local_offset, (void)length, (void)ack_req, (void)target_id;
	(void)pt_index, (void)match_bits, (void)remote_offset, (void)user_ptr, (void)hdr_data;
	(void)trig_ct_handle, (void)threshold;
	return PTL_OK;
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	(void)operation, (void)datatype;
	return PtlTriggeredPut(md_handle, local_offset, length, ack_req, target_id, pt_index,
		match_bits, remote_offset, user_ptr, hdr_data, trig_ct_handle, threshold);
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	(void)ct_handle, (void)increment, (void)trig_ct_handle, (void)threshold;
	return PTL_OK;
}

int PtlAtomicSync(void)
{
	return PTL_OK;
}

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle)
{
	*ct_handle = ni_handle;
	return PTL_OK;
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment)
{
	(void)ct_handle, (void)increment;
	return PTL_OK;
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event)
{
	(void)ct_handle;
	*event = (ptl_ct_event_t){0};
	return PTL_OK;
}

int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
	ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which)
{
	(void)ct_handles, (void)tests, (void)size, (void)timeout, (void)event, (void)which;
	return PTL_CT_NONE_REACHED;
}

const char *PtlToStr(int rc, ptl_str_type_t type)
{
	(void)rc, (void)type;
	return "a code";
}

/* --- PMI */

static char keys[KEYS_MAX][64], values[KEYS_MAX][TEXT_ROOM];
static unsigned key_count;
static unsigned barrier_count; /* calls of all ranks */

int PMI_Init(int *spawned)
{
	*spawned = 0;
	return PMI_SUCCESS;
}

int PMI_Finalize(void)
{
	return PMI_SUCCESS;
}

int PMI_Abort(int exit_code, const char text[])
{
	(void)text;
	fake_fail("PMI_Abort(%d)", exit_code);
}

int PMI_Get_rank(int *rank)
{
	*rank = (int)fake_rank();
	return PMI_SUCCESS;
}

int PMI_Get_size(int *size)
{
	*size = (int)rank_count;
	return PMI_SUCCESS;
}

int PMI_KVS_Get_my_name(char name[], int length)
{
	snprintf(name, (size_t)length, "model");
	return PMI_SUCCESS;
}

int PMI_KVS_Put(const char name[], const char key[], const char value[])
{
	(void)name;
	if (key_count == KEYS_MAX)
		return PMI_FAIL;
	snprintf(keys[key_count], sizeof(keys[0]), "%s", key);
	snprintf(values[key_count++], TEXT_ROOM, "%s", value);
	return PMI_SUCCESS;
}

int PMI_KVS_Commit(const char name[])
{
	(void)name;
	return PMI_SUCCESS;
}

int PMI_KVS_Get(const char name[], const char key[], char value[], int length)
{
	(void)name;
	for (unsigned i = 0; i < key_count; i++)
		if (strcmp(keys[i], key) == 0)
			return snprintf(value, (size_t)length, "%s", values[i]) > 0 ? PMI_SUCCESS
										    : PMI_FAIL;
	return PMI_FAIL;
}

int PMI_Barrier(void)
{
	unsigned wanted = (barrier_count++ / rank_count + 1) * rank_count;

	while (barrier_count < wanted)
		fake_yield();
	return PMI_SUCCESS;
}
