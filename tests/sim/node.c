/* SPDX-License-Identifier: BSD-3-Clause */
/* node.c - see node.h. Implements pmd-glue/glue.h for simulated nodes, and the few calls to libc
 * that would bring chance or the wall clock into a run: the linker wraps them. */
#include <sim/node.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <base/guard.h>
#include <base/settings.h>
#include <engine/engine.h>
#include <engine/statistics.h>
#include <host/statistics.h>
#include <pmd-glue/glue.h>
#include <sim/cluster.h>
#include <sim/letters.h>
#include <sim/refusals.h>
#include <sim/report.h>
#include <sim/workload.h>

#define POOL_CACHE       64
#define POOLS_MAX        64
#define BUFFERS_BYTES    ((size_t)16 << 30) /* of addresses */
#define SECONDS_AT_START 1800000000         /* of the simulated wall clock */
#define GATHER_BYTES     128
#define TURN_LEAST       200    /* ns between two turns, so that time moves */
#define CRASH_SKIP       SECOND /* a crashing node waits for nothing */
#define WRAP_SPAN        64     /* psns before the wrap */

static struct rte_mempool *pools[POOLS_MAX];

/* Where all pools have their buffers. Its pages stay from run to run: the kernel would take longer
 * to clear them than a short run lasts. */
static uint8_t *buffers;
static size_t buffers_used;

/* The node whose library state is in place, and the one before it while a node lingers. */
static struct node *current;
static const struct simulation *running; /* whose time it is */
static uint64_t crash_skip;              /* what a crashing node's clock is ahead by */

/* --- library state */

/* Endpoints of MX have the numbers behind those of the devices. */
static struct interface *place_of(const struct node *node)
{
	return &interfaces[node->simulation->cluster ? CLUSTER_BOARDS + node->slot : 0];
}

static struct interface *further_of(const struct node *node)
{
	return &interfaces[ENGINES_MAX + node->slot];
}

struct node *node_process(const struct node *node, struct node **end)
{
	struct node *nodes = node->simulation->nodes;
	uint32_t count = node->simulation->cluster ? node->settings->endpoints : 1;
	uint32_t first = node->number - node->number % count;
	uint32_t last = first + count;

	*end = &nodes[last < node->simulation->node_count ? last : node->simulation->node_count];
	return &nodes[first];
}

/* Is a node's state in place while another one of its process is entered? */
static bool node_is_beside(const struct node *node, const struct node *entered)
{
	return node == entered || (node->up && !node->closing);
}

static bool interface_in_place(void)
{
	return current != NULL;
}

struct node *node_current(void)
{
	return current;
}

struct node *node_of(const struct engine *engine)
{
	struct node *end;

	for (struct node *node = node_process(current, &end); node < end; node++)
		if (node_is_beside(node, current) && place_of(node)->engine == engine)
			return node;
	return current;
}

void node_enter(struct node *node)
{
	struct node *end;

	if (interface_in_place()) {
		fprintf(stderr, "node %u entered while %u is inside\n", node->number,
			current->number);
		abort();
	}
	current = node;
	for (struct node *one = node_process(node, &end); one < end; one++)
		if (node_is_beside(one, node)) {
			memcpy(place_of(one), &one->interface, sizeof(one->interface));
			memcpy(further_of(one), &one->further, sizeof(one->further));
		}
}

void node_leave(struct node *node)
{
	struct node *end;

	for (struct node *one = node_process(node, &end); one < end; one++)
		if (node_is_beside(one, node)) {
			memcpy(&one->interface, place_of(one), sizeof(one->interface));
			memcpy(&one->further, further_of(one), sizeof(one->further));
			memset(place_of(one), 0, sizeof(one->interface));
			memset(further_of(one), 0, sizeof(one->further));
		}
	/* To the library's visitors the interface is closed: they forget what they know of it. */
	epoch_end();
	current = NULL;
}

/* The lowest that no other one of its process has, as the library chooses. */
static uint32_t slot_choose(const struct node *node)
{
	struct node *end;
	uint32_t taken = 0;

	for (const struct node *one = node_process(node, &end); one < end; one++)
		if (one != node && one->up)
			taken |= UINT32_C(1) << one->slot;
	return (uint32_t)__builtin_ctz(~taken);
}

unsigned __real_postern_core_interface_drive(void);
unsigned __wrap_postern_core_interface_drive(void);

/* To the library an interface has gone when another process's of its number has. */
unsigned __wrap_postern_core_interface_drive(void)
{
	unsigned work = 0;
	struct node *end;

	if (!current || !current->simulation->cluster)
		return __real_postern_core_interface_drive();
	for (const struct node *one = node_process(current, &end); one < end; one++)
		if (node_is_beside(one, current))
			work += progress_drive(&place_of(one)->progress);
	return work;
}

/* Is a node's state in place? */
static bool node_shares(const struct node *node)
{
	struct node *end, *first = node_process(current, &end);

	return node >= first && node < end && node_is_beside(node, current);
}

static const struct interface *node_interface(const struct node *node)
{
	return current && node_shares(node) ? place_of(node) : &node->interface;
}

static struct segment *node_segment(const struct node *node)
{
	return node_interface(node)->submission.segment;
}

const struct transport_counters *node_transport_counters(const struct node *node)
{
	return segment_transport(node_segment(node));
}

const struct engine_counters *node_engine_counters(const struct node *node)
{
	return segment_counters(node_segment(node));
}

struct engine *node_engine(const struct node *node)
{
	return node_interface(node)->engine;
}

uint64_t node_drops(const struct node *node)
{
	return interface_drops(node_segment(node));
}

bool node_settled(const struct node *node)
{
	return engine_settled(node_interface(node)->engine);
}

/* The boards of a host have the same endpoint ids. */
static uint32_t cluster_find(const struct simulation *simulation, uint32_t nid, uint32_t pid)
{
	uint64_t number = (uint64_t)(pid - CLUSTER_PID_BASE) * CLUSTER_BOARDS;

	for (uint32_t board = 0; board < CLUSTER_BOARDS; board++, number++)
		if (number < simulation->node_count && simulation->nodes[number].id.nid == nid)
			return (uint32_t)number;
	return UINT32_MAX;
}

uint32_t node_find(void *context, uint32_t nid, uint32_t pid)
{
	const struct simulation *simulation = context;
	uint32_t per_host = simulation->nodes[0].settings->processes_per_host;
	uint32_t first = simulation->nodes[0].id.nid;
	uint64_t number = (uint64_t)(nid - first) * per_host + (pid - NODE_PID_BASE);

	if (simulation->cluster)
		return cluster_find(simulation, nid, pid);
	return nid < first || pid - NODE_PID_BASE >= per_host || number >= simulation->node_count
		       ? UINT32_MAX
		       : (uint32_t)number;
}

/* --- the device */

static struct node *port_node(struct port *port)
{
	return (struct node *)(void *)((char *)port - offsetof(struct node, port));
}

/* Returns false if the application's memory, which a frame refers to, is not there. */
static bool mbuf_read(const struct rte_mbuf *mbuf, uint8_t *bytes)
{
	for (; mbuf; bytes += mbuf->data_len, mbuf = mbuf->next)
		if (!guard_copy(bytes, rte_pktmbuf_mtod(mbuf, const void *), mbuf->data_len))
			return false;
	return true;
}

static uint64_t bytes_hash(const uint8_t *bytes, uint32_t left)
{
	uint64_t hash = left, word;

	for (; left >= 8; left -= 8, bytes += 8) {
		memcpy(&word, bytes, 8);
		hash = prng_rotate(hash ^ word, 29) * UINT64_C(0x9e3779b97f4a7c15);
	}
	word = 0;
	memcpy(&word, bytes, left);
	return prng_rotate(hash ^ word, 29) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Is a frame as it was? Of one that cannot be read it is not known. */
static bool frame_is_same(const struct sent_frame *frame)
{
	static uint8_t bytes[UINT16_MAX];

	return frame->mbuf->pkt_len > sizeof(bytes) || !mbuf_read(frame->mbuf, bytes) ||
	       bytes_hash(bytes, frame->mbuf->pkt_len) == frame->hash;
}

/* Lets go of what has been sent. All of it has stayed as it was while the device held it: what lies
 * in the transport's memory, and what lies in the application's. */
static void device_reap(struct node *node, uint64_t until)
{
	while (node->sent_head != node->sent_tail) {
		struct sent_frame *frame =
			&node->sent[node->sent_head % node->settings->transmit_ring];

		if (frame->departs > until)
			return;
		if (!node->writes && frame->sent && !frame_is_same(frame))
			simulation_fail(node->simulation,
				"node %u wrote to a frame while its device held it", node->number);
		rte_pktmbuf_free(frame->mbuf);
		node->sent_head++;
	}
}

static void device_trace(const struct node *node, const struct parcel *parcel)
{
	const uint8_t *bytes = parcel->bytes;

	printf("%12" PRIu64 " frame %u -> %02x%02x%02x%02x%02x%02x %u bytes",
		simulation_now(node->simulation), node->number, bytes[0], bytes[1], bytes[2],
		bytes[3], bytes[4], bytes[5], parcel->length);
	report_frame(bytes, parcel->length);
}

/* A frame that cannot be read is lost. */
static void device_send(struct node *node, struct rte_mbuf *mbuf)
{
	struct simulation *simulation = node->simulation;
	struct sent_frame *frame = &node->sent[node->sent_tail++ % node->settings->transmit_ring];
	struct parcel *parcel;

	*frame = (struct sent_frame){.mbuf = mbuf, .departs = simulation_now(simulation)};
	if (mbuf->pkt_len > node->port.frame_size || mbuf->pkt_len < 14) {
		simulation_fail(simulation, "node %u sent a frame of %u bytes", node->number,
			mbuf->pkt_len);
		return;
	}
	if (node->silent)
		return;
	parcel = star_parcel(&simulation->network, node->number, mbuf->pkt_len);
	if (!mbuf_read(mbuf, parcel->bytes)) {
		star_release(&simulation->network, parcel);
		return;
	}
	frame->sent = true;
	frame->hash = bytes_hash(parcel->bytes, mbuf->pkt_len);
	simulation_note(simulation, simulation_now(simulation));
	simulation_note(simulation, frame->hash);
	if (simulation->tracing)
		device_trace(node, parcel);
	refusals_see(node, parcel);
	frame->departs = star_send(&simulation->network, parcel);
}

static uint16_t device_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct node *node = port_node(port);
	uint16_t sent = 0;

	device_reap(node, simulation_now(node->simulation));
	while (sent < count && node->sent_tail - node->sent_head < node->settings->transmit_ring)
		device_send(node, frames[sent++]);
	return sent;
}

static struct rte_mbuf *parcel_unpack(struct node *node, const struct parcel *parcel)
{
	struct rte_mbuf *mbuf;

	if (parcel->length > node->port.frame_size) {
		node->port_counters.errors++;
		return NULL;
	}
	mbuf = rte_pktmbuf_alloc(node->port.pool);
	if (!mbuf) {
		node->port_counters.no_mbuf++;
		return NULL;
	}
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)parcel->length), parcel->bytes, parcel->length);
	return mbuf;
}

static uint16_t device_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct node *node = port_node(port);
	uint16_t got = 0;

	device_reap(node, simulation_now(node->simulation));
	port->arrived = 0;
	while (got < count && node->received_head != node->received_tail) {
		const struct arrival *arrival =
			&node->received[node->received_head++ % node->settings->receive_ring];

		if (got == 0)
			port->arrived = arrival->when;
		frames[got] = parcel_unpack(node, arrival->parcel);
		star_release(&node->simulation->network, arrival->parcel);
		if (frames[got])
			got++;
	}
	return got;
}

static bool device_link(struct port *port)
{
	(void)port;
	return true;
}

static void device_counters(struct port *port, struct port_counters *counters)
{
	*counters = port_node(port)->port_counters;
}

static void device_recall(struct port *port)
{
	device_reap(port_node(port), UINT64_MAX);
}

static void device_close(struct port *port)
{
	struct node *node = port_node(port);

	device_reap(node, UINT64_MAX);
	while (node->received_head != node->received_tail)
		star_release(&node->simulation->network,
			node->received[node->received_head++ % node->settings->receive_ring]
				.parcel);
}

static const struct port_operations device_operations = {
	.receive = device_receive,
	.transmit = device_transmit,
	.link = device_link,
	.counters = device_counters,
	.recall = device_recall,
	.close = device_close,
};

/* --- turns */

static void node_turn(void *object, uint64_t argument);

static void node_plan_at(struct node *node, uint64_t when)
{
	if (when < node->busy_until)
		when = node->busy_until;
	if (when < node->stalled_until)
		when = node->stalled_until;
	if (!node->up || node->closing || when >= node->turn_at)
		return;
	node->turn_at = when;
	sim_clock_at(&node->simulation->clock, when, node_turn, node, when);
}

/* Calls drive the engine too, so events may be there that no turn has read. */
static bool node_has_events(const struct node *node)
{
	if (node->simulation->cluster)
		return false;
	return counter_read(&segment_counters(node_segment(node))->events_logged) !=
	       node->events_seen;
}

/* Deadlines that have passed without work being done wait a moment, so that time moves. */
void node_plan(struct node *node)
{
	uint64_t deadline;

	if (!node->up || node->closing)
		return;
	deadline = engine_deadline(node_interface(node)->engine);
	if (node->received_head != node->received_tail || node_has_events(node))
		deadline = 0;
	if (deadline == UINT64_MAX)
		return;
	if (deadline < TURN_LEAST)
		deadline = TURN_LEAST;
	node_plan_at(node, simulation_now(node->simulation) + deadline);
}

static void node_turn(void *object, uint64_t argument)
{
	struct node *node = object;
	struct simulation *simulation = node->simulation;
	uint64_t now = simulation_now(simulation);
	unsigned work;

	/* A turn that was planned anew since, or of a life that is over. */
	if (!node->up || node->closing || argument != node->turn_at)
		return;
	node->turn_at = UINT64_MAX;
	if (now < node->stalled_until) {
		node_plan_at(node, node->stalled_until);
		return;
	}
	node_enter(node);
	work = engine_poll(place_of(node)->engine);
	node->busy_until = now + node->settings->turn + work * node->settings->turn_frame;
	if (simulation->letters)
		letters_progress(node);
	if (node_has_events(node))
		workload_events(node);
	node_leave(node);
	if (work)
		node_plan_at(node, node->busy_until);
	else
		node_plan(node);
}

void node_deliver(struct node *node, struct parcel *parcel)
{
	if (!node->up ||
		node->received_tail - node->received_head >= node->settings->receive_ring) {
		if (node->up)
			node->port_counters.missed++;
		else
			refusals_answer(node, parcel);
		star_release(&node->simulation->network, parcel);
		return;
	}
	node->received[node->received_tail++ % node->settings->receive_ring] =
		(struct arrival){simulation_now(node->simulation), parcel};
	node_plan_at(node, simulation_now(node->simulation));
}

void node_stall(struct node *node, uint64_t until)
{
	struct node *end;

	for (struct node *one = node_process(node, &end); one < end; one++)
		if (one->stalled_until < until)
			one->stalled_until = until;
}

/* --- life */

void node_init(struct node *node, struct simulation *simulation,
	const struct node_settings *settings, uint32_t number)
{
	running = simulation;
	*node = (struct node){
		.simulation = simulation,
		.settings = settings,
		.number = number,
		.turn_at = UINT64_MAX,
		.entropy = prng_mix(simulation->seed ^ prng_mix(number)),
		.id = {.nid = settings->udp ? NODE_IPV4_BASE + number
					    : number / settings->processes_per_host + 1,
			.pid = NODE_PID_BASE + number % settings->processes_per_host},
	};
	if (simulation->cluster) {
		node->id.pid = CLUSTER_PID_BASE + number / CLUSTER_BOARDS;
		if (!settings->udp)
			node->id.nid = number / CLUSTER_BOARDS / settings->processes_per_host *
					       CLUSTER_BOARDS +
				       number % CLUSTER_BOARDS + 1;
	}
	node->received = report_memory(calloc(settings->receive_ring, sizeof(*node->received)));
	node->sent = report_memory(calloc(settings->transmit_ring, sizeof(*node->sent)));
	if (settings->addressed)
		node->refused =
			report_memory(calloc(simulation->node_count, sizeof(*node->refused)));
}

void node_free(struct node *node)
{
	if (node->interface.memory)
		munmap(node->interface.memory, node->interface.memory_size);
	if (node->further.memory)
		munmap(node->further.memory, node->further.memory_size);
	free(node->received);
	free(node->sent);
	free(node->refused);
}

static void portals_open(struct node *node)
{
	ptl_ni_limits_t limits = node->settings->limits;
	int code = PtlNIInit(PTL_IFACE_DEFAULT, node->id.pid, &limits, NULL, &node->ni);

	if (code == PTL_OK)
		code = PtlEQAlloc(node->ni, node->settings->queue_events, &node->eq);
	if (code != PTL_OK)
		report_stop("node %u cannot be opened: code %d", node->number, code);
}

void node_open(struct node *node)
{
	node->silent = false;
	node->life++;
	/* A new process knows nothing of the one before it. */
	node->interface.incarnation = 0;
	node->interface.generation = 0;
	node->events_seen = 0;
	if (node->simulation->cluster)
		node->slot = slot_choose(node);
	node_enter(node);
	if (node->simulation->cluster) {
		cluster_begin(node);
		node->up = true;
	} else {
		portals_open(node);
		node->up = true;
		workload_begin(node);
	}
	node_leave(node);
	node_plan(node);
}

/* Others run while the node's last frames leave; see backoff() below. */
static void node_end(struct node *node)
{
	node_enter(node);
	report_count(node);
	node->simulation->lingering = true;
	node->closing = true;
	node->turn_at = UINT64_MAX;
	if (node->simulation->cluster)
		cluster_end(node);
	else
		PtlNIFini(node->ni);
	node->simulation->lingering = false;
	node->closing = false;
	node->up = false;
	node_leave(node);
	crash_skip = 0;
}

void node_close(struct node *node)
{
	node_end(node);
}

void node_crash(struct node *node)
{
	node->silent = true;
	node_end(node);
}

/* --- the process around the nodes */

void node_system_start(void)
{
	static char program[] = "postern-sim", huge[] = "--no-huge", config[] = "--no-shconf",
		    pci[] = "--no-pci", telemetry[] = "--no-telemetry", memory[] = "-m",
		    megabytes[] = "256", cores[] = "-l", core[] = "0",
		    level[] = "--log-level=*:error", memory_mode[] = "--iova-mode=va";
	static char *arguments[] = {program, huge, config, pci, telemetry, memory, megabytes, cores,
		core, level, memory_mode, NULL};

	if (rte_eal_init((int)(sizeof(arguments) / sizeof(arguments[0])) - 1, arguments) < 0)
		report_stop("DPDK's EAL does not start");
}

void node_library_open(uint64_t timeout, bool full_checksum, uint64_t event_memory, bool mx)
{
	char text[32];
	int interfaces_max;

	setenv("PTL_PROGRESS", "inline", 1);
	setenv("PTL_CHECKSUM", full_checksum ? "full" : "header", 1);
	snprintf(text, sizeof(text), "%" PRIu64 "ns", timeout);
	setenv("PTL_PEER_TIMEOUT", text, 1);
	snprintf(text, sizeof(text), "%" PRIu64, event_memory);
	setenv("PTL_EVENT_MEMORY", text, 1);
	if (mx)
		setenv("PTL_IFACE_NAME", "sim0;sim1", 1);
	if (mx ? !cluster_library_open() : PtlInit(&interfaces_max) != PTL_OK)
		report_stop("the library does not start");
}

/* Every frame is back where it came from. */
static void pool_check(struct simulation *simulation, uint32_t number)
{
	unsigned missing = rte_mempool_in_use_count(pools[number]);

	if (missing)
		simulation_fail(simulation, "%u frames have leaked from pool %u", missing, number);
}

void node_library_close(struct simulation *simulation, const struct node_settings *settings)
{
	if (simulation->cluster)
		cluster_library_close();
	else
		PtlFini();
	running = NULL;
	for (uint32_t i = 0; i < settings->pools && i < simulation->node_count; i++) {
		if (pools[i])
			pool_check(simulation, i);
		rte_mempool_free(pools[i]);
		pools[i] = NULL;
	}
	buffers_used = 0;
}

static uint8_t *buffers_take(size_t bytes)
{
	uint8_t *taken;

	if (!buffers) {
		void *map = mmap(NULL, BUFFERS_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (map == MAP_FAILED)
			return NULL;
		buffers = map;
	}
	if (bytes > BUFFERS_BYTES - buffers_used)
		return NULL;
	taken = buffers + buffers_used;
	buffers_used += bytes;
	return taken;
}

static bool pool_populate(struct rte_mempool *pool)
{
	size_t bytes = RTE_ALIGN_CEIL(
		(size_t)pool->size * (pool->header_size + pool->elt_size + pool->trailer_size),
		(size_t)RTE_CACHE_LINE_SIZE);
	uint8_t *taken = buffers_take(bytes);

	return taken && rte_mempool_populate_iova(pool, (char *)taken, (uintptr_t)taken, bytes,
				NULL, NULL) == (int)pool->size;
}

static struct rte_mempool *pool_create(const char *name, uint32_t frames, uint32_t room)
{
	struct rte_pktmbuf_pool_private layout = {.mbuf_data_room_size = (uint16_t)room};
	struct rte_mempool *pool =
		rte_mempool_create_empty(name, frames, (unsigned)sizeof(struct rte_mbuf) + room,
			POOL_CACHE, sizeof(layout), 0, RTE_MEMPOOL_F_NO_IOVA_CONTIG);

	if (!pool)
		return NULL;
	rte_pktmbuf_pool_init(pool, &layout);
	if (!pool_populate(pool)) {
		rte_mempool_free(pool);
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

static struct rte_mempool *pool_of(const struct node *node)
{
	uint32_t number = node->number % node->settings->pools;
	uint32_t room = RTE_PKTMBUF_HEADROOM + node->simulation->network.settings.frame_size;
	char name[32];

	if (!pools[number]) {
		snprintf(name, sizeof(name), "sim%u", number);
		pools[number] = pool_create(name, node->settings->pool_frames, room);
	}
	if (!pools[number])
		report_stop("there is no memory for %u frames", node->settings->pool_frames);
	return pools[number];
}

/* --- pmd-glue/glue.h for nodes */

int glue_start(void)
{
	return 0;
}

void glue_rest(void)
{
}

bool glue_hugepages(void)
{
	return false;
}

bool glue_cpu_usable(int cpu)
{
	(void)cpu;
	return true;
}

struct port *glue_port_open(unsigned interface, const char *name, uint32_t mtu, uint32_t pid)
{
	(void)pid;
	struct node *node = current;

	(void)interface;
	(void)name;
	(void)mtu;
	node->port = (struct port){
		.operations = &device_operations,
		.pool = pool_of(node),
		.frame_size = node->simulation->network.settings.frame_size,
		.receive_frames = node->settings->receive_ring,
		.gathers = node->settings->gathers,
		.guards = true,
		.gather_bytes = GATHER_BYTES,
		.external = true,
		.addressed = node->settings->addressed,
		.socket = -1,
	};
	star_address(node->number, node->settings->moves ? node->life : 0, node->port.address);
	snprintf(node->port.name, sizeof(node->port.name), "sim:%u", node->number);
	return &node->port;
}

bool glue_pid_is_taken(void)
{
	return false;
}

void glue_pid_try(bool tries)
{
	(void)tries;
}

uint32_t glue_port_nid(const struct port *port, unsigned interface)
{
	(void)port;
	(void)interface;
	return current->id.nid;
}

void *glue_segment_create(size_t size, int socket, int *fd)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)socket;
	if (fd)
		*fd = -1;
	return memory == MAP_FAILED ? NULL : memory;
}

int glue_segment_commit(void *segment, size_t offset, size_t size)
{
	(void)segment;
	(void)offset;
	(void)size;
	return 0;
}

void glue_segment_warm(void *segment, size_t offset, size_t size)
{
	(void)segment;
	(void)offset;
	(void)size;
}

void glue_segment_reset(void *segment, size_t size)
{
	madvise(segment, size, MADV_DONTNEED);
}

void *glue_memory_alloc(size_t size, int socket)
{
	(void)socket;
	return aligned_alloc(64, (size + 63) & ~(size_t)63);
}

void glue_memory_free(void *memory)
{
	free(memory);
}

uint64_t glue_now(void *context)
{
	(void)context;
	return running ? simulation_now(running) + crash_skip : 0;
}

struct glue_thread *glue_thread_start(
	void (*run)(void *), void *argument, int cpu, const char *name)
{
	(void)run;
	(void)argument;
	(void)cpu;
	(void)name;
	return NULL;
}

void glue_thread_join(struct glue_thread *thread)
{
	(void)thread;
}

void glue_thread_enter(void)
{
}

/* The simulated network is no node of a machine. */
void glue_node_tell(struct port *port, struct report *report)
{
	(void)port;
	(void)report;
}

unsigned glue_node_present(struct port *port, struct glue_process *processes, unsigned count)
{
	(void)port;
	(void)processes;
	(void)count;
	return 0;
}

void glue_node_tell_pair(struct port *port, uint32_t pid, struct report *report)
{
	(void)port;
	(void)pid;
	(void)report;
}

unsigned glue_devices(struct glue_device *devices, unsigned count)
{
	(void)devices;
	(void)count;
	return 0;
}

/* --- libc, as the linker lets the library see it (-Wl,--wrap) */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);
void __wrap_postern_core_backoff(unsigned *looks);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
ssize_t __real_getrandom(void *buffer, size_t size, unsigned flags);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	uint64_t now;

	if (!current)
		return __real_clock_gettime(clock, time);
	now = glue_now(NULL);
	time->tv_sec = (time_t)(SECONDS_AT_START + now / SECOND);
	time->tv_nsec = (long)(now % SECOND);
	return 0;
}

/* The library draws incarnations, secrets and seeds from here. */
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
	uint64_t word;

	if (!current)
		return __real_getrandom(buffer, size, flags);
	for (size_t done = 0; done < size; done += sizeof(word)) {
		word = current->entropy = prng_mix(current->entropy);
		memcpy((char *)buffer + done, &word,
			size - done < sizeof(word) ? size - done : sizeof(word));
	}
	return (ssize_t)size;
}

struct engine *__real_engine_create(const struct engine_options *options);
struct engine *__wrap_engine_create(const struct engine_options *options);

/* What PTL_ENCAP and PTL_VLAN would say, without an environment for each node. */
struct engine *__wrap_engine_create(const struct engine_options *options)
{
	struct engine_options mine = *options;

	mine.transport.encapsulation = (struct encapsulation_options){
		.udp = current->settings->udp,
		.vlan = current->settings->vlan,
		.prefix = NODE_IPV4_PREFIX,
		.address = current->settings->udp ? current->id.nid : 0,
	};
	/* The setting has a minimum, and says how long programs are patient: it stays. */
	mine.transport.haste = current->simulation->haste;
	mine.transport.stream_psns = current->simulation->stream_psns;
	mine.transport.peer_timeout = current->simulation->peer_timeout;
	if (current->settings->wrap) {
		current->entropy = prng_mix(current->entropy);
		mine.transport.secret = (struct secret){0};
		mine.transport.first_psn = (uint32_t)(0 - current->entropy % WRAP_SPAN);
	}
	return __real_engine_create(&mine);
}

void __wrap_service_begin(void);
void __wrap_service_end(void);

/* A thread of MX that answers connects in real time: here calls answer them. */
void __wrap_service_begin(void)
{
}

void __wrap_service_end(void)
{
}

/* A node that lingers in PtlNIFini gives its CPU away: the others run until its own deadline, or a
 * frame for it. */
void __wrap_postern_core_backoff(unsigned *looks)
{
	struct node *node = current;
	struct simulation *simulation;
	uint64_t deadline;

	(void)looks;
	if (!node)
		return;
	simulation = node->simulation;
	/* To the library it is open only while no other one closes. */
	if (simulation->cluster)
		(void)progress_drive(&place_of(node)->progress);
	if (node->silent || simulation_failed(simulation)) {
		crash_skip += CRASH_SKIP;
		return;
	}
	deadline = engine_deadline(place_of(node)->engine);
	deadline = deadline > SECOND ? SECOND : deadline < TURN_LEAST ? TURN_LEAST : deadline;
	deadline += simulation_now(simulation);
	node_leave(node);
	while (node->received_head == node->received_tail &&
		sim_clock_next(&simulation->clock) <= deadline && simulation_step(simulation))
		;
	if (node->received_head == node->received_tail && simulation->clock.now < deadline)
		simulation->clock.now = deadline;
	node_enter(node);
}
