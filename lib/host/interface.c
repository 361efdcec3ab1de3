/* SPDX-License-Identifier: BSD-3-Clause */
/* interface.c - see interface.h. */
#include <host/interface.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <base/extent.h>
#include <base/log.h>
#include <base/backoff.h>
#include <base/port.h>
#include <base/remedy.h>
#include <base/settings.h>
#include <engine/statistics.h>
#include <host/linger.h>
#include <host/outer.h>
#include <host/polling.h>
#include <host/telemetry.h>
#include <host/visitor.h>
#include <host/waiting.h>
#include <pmd-glue/glue.h>
#include <transport/statistics.h>

#define EVENT_ALIGN 4096

struct interface interfaces[HANDLE_INTERFACES];

/* Which interfaces are open and driven inline, a bit each; written under the library's lock. */
static _Atomic uint64_t inlined_interfaces;
static_assert(ENGINES_MAX == 64, "a bit each");
static_assert(INTERFACE_PID_ANY == GLUE_PID_ANY, "passed on to the port");

static const struct clock glue_clock = {.now = glue_now};

/* What no visitor sees any more (V1), so the address space may go as well. The glue's lock is held.
 */
static void segment_close(struct interface *interface)
{
	glue_segment_reset(interface->memory, interface->memory_size);
	munmap(interface->memory, interface->memory_size);
	interface->memory = NULL;
}

/* Memory for a segment of these limits, laid out. The glue's lock is held. */
static struct segment *segment_open(
	struct interface *interface, const struct segment_limits *limits)
{
	size_t fixed;

	interface->memory_size = segment_size(limits, &fixed);
	interface->memory = glue_segment_create(interface->memory_size, interface->socket, NULL);
	if (!interface->memory)
		return NULL;
	if (glue_segment_commit(interface->memory, 0, fixed) != 0) {
		segment_close(interface);
		return NULL;
	}
	return segment_init(interface->memory, limits, interface->generation);
}

/* Memory for an interface's tables and events; NULL: there is none. */
static struct segment *tables_open(struct interface *interface, const struct segment_limits *limits)
{
	struct segment *segment;

	interface->events = extent_create(limits->event_bytes, EVENT_ALIGN);
	if (!interface->events)
		return NULL;
	library_glue_lock();
	segment = segment_open(interface, limits);
	library_glue_unlock();
	if (!segment) {
		extent_destroy(interface->events);
		interface->events = NULL;
	}
	return segment;
}

static void tables_close(struct interface *interface)
{
	library_glue_lock();
	extent_destroy(interface->events);
	interface->events = NULL;
	segment_close(interface);
	library_glue_unlock();
}

static uint64_t random_number(void)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = glue_now(NULL) ^ (uint64_t)getpid() << 32;
	return number;
}

/* A name for this life of the process id: another one than those of earlier lives, in this process
 * and in those before. Lives have no order, so no clock and no time between two starts matters:
 * peers ask which one there is. */
static uint32_t incarnation_choose(struct interface *interface)
{
	uint32_t incarnation = (uint32_t)random_number();

	while (incarnation == 0 || incarnation == interface->incarnation)
		incarnation++;
	interface->incarnation = incarnation;
	return incarnation;
}

/* With faults injected, frames may be corrupted as no device corrupts them. */
static bool checksum_is_full(unsigned number)
{
	if (setting_is(SETTING_CHECKSUM, "auto"))
		return setting_item(SETTING_FAULT, number)[0] != '\0';
	return setting_is(SETTING_CHECKSUM, "full");
}

static struct engine *engine_open(
	struct interface *interface, unsigned number, unsigned device, struct segment *segment)
{
	struct engine_options options = {
		.segment = segment,
		.interface = number,
		.uid = interface->uid,
		.port = interface->port,
		.clock = &glue_clock,
		.transport =
			{
				.self = interface->self,
				.incarnation = incarnation_choose(interface),
				.peer_timeout = setting_number(SETTING_PEER_TIMEOUT),
				.start_timeout = interface->front->start_timeout,
				.peers_max = (uint32_t)setting_number(SETTING_PEERS_MAX),
				.secret = {{random_number(), random_number()}},
				.full_checksum = checksum_is_full(device),
				.wait = polling_drive,
				.seed = random_number(),
				.encapsulation = interface->encapsulation,
			},
	};

	return engine_create(&options);
}

struct interface *interface_of(const struct front *front, uint64_t handle)
{
	struct interface *interface = &interfaces[handle_interface(handle)];

	if (handle_kind(handle) == HANDLE_INTERFACE &&
		interface_is_open(front, handle_interface(handle)) &&
		atomic_load_explicit(&interface->handle, memory_order_relaxed) == handle)
		return interface;
	return NULL;
}

static void port_close(struct interface *interface)
{
	library_glue_lock();
	interface->port->operations->close(interface->port);
	library_glue_unlock();
	interface->port = NULL;
}

/* On a port that others share this process hears what is for it alone. */
static void interface_select(const struct interface *interface)
{
	struct port *port = interface->port;
	struct port_selection wanted;

	if (!port->operations->select)
		return;
	encapsulation_select(
		&interface->encapsulation, interface->self.nid, interface->self.pid, &wanted);
	port->operations->select(port, &wanted);
}

/* EAL and the port. OK, GONE or TAKEN. */
static enum answer interface_open_port(struct interface *interface, unsigned number)
{
	enum answer answer = ANSWER_GONE;
	uint32_t mtu = (uint32_t)setting_number_item(SETTING_MTU, number, 0);

	library_glue_lock();
	if (glue_start() == 0) {
		telemetry_start(interface->front);
		interface->port = glue_port_open(
			number, setting_item(SETTING_IFACE_NAME, number), mtu, interface->self.pid);
		if (!interface->port && glue_pid_is_taken())
			answer = ANSWER_TAKEN;
	}
	library_glue_unlock();
	if (!interface->port)
		return answer;
	if (outer_choose(number, interface->port, &interface->encapsulation) != 0) {
		port_close(interface);
		return ANSWER_GONE;
	}
	interface->socket = interface->port->socket;
	interface->self.nid = interface->encapsulation.address;
	if (!interface->encapsulation.udp)
		interface->self.nid = (uint32_t)setting_number_item(
			SETTING_NID, number, glue_port_nid(interface->port, number));
	if (interface->port->named)
		interface->self.pid = interface->port->pid;
	else if (interface->self.pid == INTERFACE_PID_ANY)
		interface->self.pid = (uint32_t)getpid();
	if (interface->port->attested)
		interface->uid = interface->port->uid;
	interface_select(interface);
	return ANSWER_OK;
}

/* What lies above the port. 0, or -1 when there is no memory. */
static int interface_open_engine(
	struct interface *interface, unsigned device, const struct segment_limits *limits)
{
	const unsigned number = (unsigned)(interface - interfaces);
	struct segment *segment = tables_open(interface, limits);

	if (!segment)
		return -1;
	interface->submission.segment = interface->submission.ring = segment;
	interface->engine = engine_open(interface, number, device, segment);
	if (!interface->engine)
		goto no_engine;

	if (interface->port->external)
		engine_claim(interface->engine);
	if (polling_begin(interface, device, segment) == 0)
		return 0;
	engine_own(interface->engine);
	engine_destroy(interface->engine);
	interface->engine = NULL;
no_engine:
	tables_close(interface);
	return -1;
}

/* Is the interface no other front end's? Returns false after an error line. */
static bool interface_is_free(const struct front *front, unsigned number)
{
	const struct interface *interface = &interfaces[number];

	if (!atomic_load_explicit(&interface->segment, memory_order_relaxed))
		return true;
	log_error("interface %u cannot be initialised for %s because %s has it; use another "
		  "interface of PTL_IFACE_NAME",
		number, front->name, interface->front->name);
	return false;
}

/* Lets visitors in. */
static void interface_publish(struct interface *interface)
{
	struct segment *segment = interface->submission.segment;

	atomic_store_explicit(&interface->handle,
		handle_make(HANDLE_INTERFACE, (uint32_t)(interface - interfaces), 0,
			segment_generation(segment)),
		memory_order_relaxed);
	/* Release: pairs with the acquire of visitors. */
	atomic_store_explicit(&interface->segment, segment, memory_order_release);
}

/* Opens an interface that is not open, on the device of this number of PTL_IFACE_NAME and with its
 * settings. */
static enum answer interface_open_on(const struct front *front, unsigned number, unsigned device,
	uint32_t pid, const struct segment_limits *limits)
{
	struct interface *interface = &interfaces[number];
	enum answer answer;

	interface->front = front;
	interface->first = number;
	interface->submission.space = 0;
	interface->self.pid = pid;
	interface->uid = geteuid();
	if (!polling_cpu_usable(device))
		return ANSWER_GONE;
	answer = interface_open_port(interface, device);
	if (answer != ANSWER_OK)
		return answer;
	if (interface_open_engine(interface, device, limits) != 0) {
		if (log_last_error()[0] == '\0') /* no function below has said more */
			log_error("interface %u cannot be initialised because there is not enough "
				  "memory for its tables: %s",
				number,
				remedy_for(ENOMEM, "ask for smaller limits, or end programs that "
						   "use much memory"));
		port_close(interface);
		return ANSWER_NO_MEMORY;
	}
	log_debug(LOG_INTERFACE, "interface %u is %u:%u on %s", number, interface->self.nid,
		interface->self.pid, interface->port->name);
	interface_publish(interface);
	if (interface->inlined)
		atomic_fetch_or_explicit(
			&inlined_interfaces, UINT64_C(1) << number, memory_order_release);
	return ANSWER_OK;
}

enum answer interface_open(const struct front *front, unsigned number, uint32_t pid,
	const struct segment_limits *limits)
{
	return interface_is_free(front, number)
		       ? interface_open_on(front, number, number, pid, limits)
		       : ANSWER_GONE;
}

/* Is this number an interface's, open or on its way out? */
static bool interface_is_taken(const struct interface *interface)
{
	return interface->ending || atomic_load_explicit(&interface->segment, memory_order_relaxed);
}

/* The same of one on the engine of that first one. */
static bool interface_shares(const struct interface *interface, uint32_t first)
{
	return interface_is_taken(interface) && interface->first == first;
}

static void pid_try(bool tries)
{
	library_glue_lock();
	glue_pid_try(tries);
	library_glue_unlock();
}

enum answer interface_open_beside(const struct front *front, unsigned device, uint32_t pid,
	bool tries, const struct segment_limits *limits, uint64_t *opened)
{
	unsigned number = setting_items(SETTING_IFACE_NAME);
	enum answer answer;

	while (number < ENGINES_MAX && interface_is_taken(&interfaces[number]))
		number++;
	if (number == ENGINES_MAX) {
		log_error("device %u cannot be opened once more, because this process has %u "
			  "interfaces already: close one",
			device, ENGINES_MAX);
		return ANSWER_FAILED;
	}
	pid_try(tries);
	answer = interface_open_on(front, number, device, pid, limits);
	pid_try(false);
	if (answer == ANSWER_OK)
		*opened = atomic_load_explicit(&interfaces[number].handle, memory_order_relaxed);
	return answer;
}

/* A number for a further interface. NULL after an error line: the space is open, or there is no
 * number. */
static struct interface *interface_find_free(uint32_t first, uint32_t space)
{
	struct interface *found = NULL;

	for (uint32_t i = HANDLE_INTERFACES; i-- > 0;) {
		struct interface *interface = &interfaces[i];

		if (interface_shares(interface, first) && interface->submission.space == space) {
			log_error("space %u of interface %u is open already: close it first, or "
				  "use another one",
				space, first);
			return NULL;
		}
		if (i >= ENGINES_MAX && !interface_is_taken(interface))
			found = interface;
	}
	if (!found)
		log_error("space %u of interface %u cannot be opened, because there are %u "
			  "further spaces already: close one",
			space, first, HANDLE_INTERFACES - ENGINES_MAX);
	return found;
}

/* Memory for a further interface, and its space. 0, or -1: there is no memory. */
static int space_open(struct interface *interface, const struct space_choice *choice,
	const struct segment_limits *limits)
{
	struct space_options options = choice->options;
	struct segment_limits own = *limits;
	bool opened;

	options.interface = (uint32_t)(interface - interfaces);
	options.uid = interface->uid;
	options.life = choice->lives ? interfaces[interface->first].incarnation : 0;
	own.further = true;
	options.segment = tables_open(interface, &own);
	if (!options.segment)
		return -1;
	interface->submission.segment = options.segment;
	interface_pause(interface);
	opened = engine_space_open(interface->engine, interface->submission.space, &options);
	interface_resume(interface);
	if (opened)
		return 0;
	log_error("there is not enough memory for the tables of interface %u: %s",
		(unsigned)(interface - interfaces),
		remedy_for(ENOMEM, "ask for smaller limits, or end programs that use much memory"));
	tables_close(interface);
	return -1;
}

/* What a further interface has from the first one. */
static void interface_share(struct interface *interface, const struct interface *first)
{
	interface->front = first->front;
	interface->self = first->self;
	interface->uid = first->uid;
	interface->inlined = first->inlined;
	interface->socket = first->socket;
	interface->first = first->first;
	interface->port = first->port;
	interface->encapsulation = first->encapsulation;
	interface->engine = first->engine;
	interface->thread = first->thread;
	interface->submission.ring = first->submission.ring;
	interface->submission.progress = first->submission.progress;
}

/* The library's lock is held. */
static enum answer interface_open_further(const struct interface *first,
	const struct space_choice *choice, const struct segment_limits *limits, uint64_t *opened)
{
	struct interface *interface = interface_find_free(first->first, choice->number);

	if (!interface)
		return ANSWER_FAILED;
	interface_share(interface, first);
	interface->submission.space = (uint8_t)choice->number;
	if (space_open(interface, choice, limits) != 0)
		return ANSWER_NO_MEMORY;
	log_debug(LOG_INTERFACE, "interface %u is space %u of interface %u",
		(unsigned)(interface - interfaces), choice->number, first->first);
	interface_publish(interface);
	*opened = atomic_load_explicit(&interface->handle, memory_order_relaxed);
	return ANSWER_OK;
}

enum answer interface_open_space(const struct front *front, uint64_t handle,
	const struct space_choice *choice, const struct segment_limits *limits, uint64_t *opened)
{
	const struct interface *first;
	enum answer answer = ANSWER_GONE;

	assert(choice->number > 0 && choice->number < SPACES);
	library_lock();
	first = interface_of(front, handle);
	if (first)
		answer = interface_open_further(first, choice, limits, opened);
	library_unlock();
	return answer;
}

/* Wakes all threads that wait for events or counts. */
static void sleepers_rouse(struct segment *segment)
{
	for (uint32_t i = 0; i < segment->limits.queues; i++) {
		struct queue *queue = segment_queue(segment, i);

		if (atomic_load_explicit(&queue->sleepers, memory_order_relaxed) != 0)
			queue_wake(queue, INT_MAX);
	}
	for (uint32_t i = 0; i < segment->limits.counters; i++) {
		struct event_counter *counter = segment_counter(segment, i);

		if (atomic_load_explicit(&counter->sleepers, memory_order_relaxed) != 0)
			event_counter_wake(counter);
	}
}

void interface_rouse_one(struct interface *interface)
{
	/* Pairs with the barrier of a thread between raising `sleepers` and its last look. */
	atomic_thread_fence(memory_order_seq_cst);
	sleepers_rouse(interface->submission.segment);
	if (interface->submission.progress)
		polling_disturb(interface->submission.progress);
}

void interface_rouse(const struct front *front)
{
	library_lock();
	for (unsigned i = 0; i < HANDLE_INTERFACES; i++)
		if (interface_is_open(front, i))
			interface_rouse_one(&interfaces[i]);
	library_unlock();
}

/* Threads that wait for events look once more and find the interface closed; those that wait for an
 * echo are told so. */
static void interface_wake(struct interface *interface)
{
	struct command abandon = {.kind = COMMAND_PING_ABANDON};
	struct segment *segment = interface->submission.segment;

	atomic_store_explicit(&segment->closed, 1, memory_order_seq_cst);
	/* Pairs with the fence of a reader between raising `sleepers` and looking at `closed`. */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < segment->limits.queues; i++)
		queue_raise_for_good(segment_queue(segment, i));
	sleepers_rouse(segment);
	if (interface->submission.space == 0)
		submission_post(&interface->submission, &abandon);
	else if (interface->submission.progress)
		polling_disturb(interface->submission.progress);
}

/* Which way messages went. The engine is gone, and its counters are still there. */
static void traffic_report(const struct interface *interface)
{
	const struct transport_counters *counters =
		segment_transport(interface->submission.segment);

	log_info("interface %u, %u:%u on %s: %" PRIu64 " peers, %" PRIu64 " messages sent (%" PRIu64
		 " bytes), %" PRIu64 " received (%" PRIu64 " bytes), %" PRIu64 " retransmissions",
		interface->first, interface->self.nid, interface->self.pid, interface->port->name,
		counters->peers_made, counters->messages_sent, counters->bytes_sent,
		counters->messages_received, counters->bytes_received, counters->retransmits);
}

/* The rest of an interface whose engine is the caller's: what was sent is awaited (linger.h). */
static void engine_end(struct interface *interface)
{
	bool settled;

	if (!interface->inlined)
		glue_thread_enter();
	engine_await(interface->engine);
	settled = engine_settled(interface->engine);
	if (!settled) {
		linger_begin();
		linger_settle(interface->engine, (unsigned)(interface - interfaces), polling_drive);
	}
	engine_destroy(interface->engine);
	interface->engine = NULL;
	traffic_report(interface);
	port_close(interface);
	if (!settled)
		linger_end();
}

/* No visitor comes any more, and those that are inside leave: visitor_await(). */
static void interface_leave(unsigned number)
{
	struct interface *interface = &interfaces[number];

	log_debug(LOG_INTERFACE, "interface %u closes", number);
	if (number < ENGINES_MAX)
		atomic_fetch_and_explicit(
			&inlined_interfaces, ~(UINT64_C(1) << number), memory_order_relaxed);
	atomic_store_explicit(&interface->segment, NULL, memory_order_seq_cst);
	epoch_end(); /* V4 */
	interface_wake(interface);
}

/* Its engine does not look at its memory any more. */
static void interface_free_tables(struct interface *interface)
{
	struct segment *segment = interface->submission.segment;

	for (uint32_t i = 0; i < segment->limits.queues; i++)
		queue_unwatch(segment_queue(segment, i));
	interface->generation = atomic_load_explicit(&segment->generation, memory_order_relaxed);
	tables_close(interface);
	interface->ending = false;
}

/* Is a further interface, whose handle this was, still on its way out? The first one's end may have
 * taken it along. */
static bool interface_is_ending(const struct interface *interface, uint64_t handle)
{
	return interface->ending &&
	       atomic_load_explicit(&interface->handle, memory_order_relaxed) == handle;
}

static bool space_close(struct interface *interface)
{
	bool closed;

	interface_pause(interface);
	closed = engine_space_close(interface->engine, interface->submission.space);
	interface_resume(interface);
	return closed;
}

/* Ends a further interface, once nothing of its space is in flight. The lock is free while it
 * waits. */
static void interface_end_further(struct interface *interface)
{
	uint64_t handle = atomic_load_explicit(&interface->handle, memory_order_relaxed);
	uint32_t number = (uint32_t)(interface - interfaces);
	unsigned looks = 0;

	interface_leave(number);
	interface->ending = true;
	library_unlock();
	visitor_await(number);
	library_lock();
	while (interface_is_ending(interface, handle) && !space_close(interface)) {
		unsigned work = polling_drive();

		library_unlock();
		if (work == 0)
			backoff(&looks);
		library_lock();
	}
	if (interface_is_ending(interface, handle))
		interface_free_tables(interface);
}

/* Ends an interface that has an engine, and with it those on that engine, which ends what they have
 * in flight. */
static void interface_end_first(struct interface *interface)
{
	uint32_t first = interface->first, ended[HANDLE_INTERFACES], count = 0;

	for (uint32_t i = 0; i < HANDLE_INTERFACES; i++)
		if (interface_shares(&interfaces[i], first))
			ended[count++] = i;
	for (uint32_t i = 0; i < count; i++)
		interface_leave(ended[i]);
	for (uint32_t i = 0; i < count; i++)
		visitor_await(ended[i]);
	polling_end(interface);
	engine_end(interface);
	for (uint32_t i = 0; i < count; i++)
		interface_free_tables(&interfaces[ended[i]]);
}

/* The library's lock is held, and the interface is open. For a further one the lock may be free
 * meanwhile. */
static void interface_end(unsigned number)
{
	struct interface *interface = &interfaces[number];

	if (interface->submission.space != 0)
		interface_end_further(interface);
	else
		interface_end_first(interface);
}

/* The further ones, whose numbers are the highest, end with the first ones. */
void interface_close_all(const struct front *front)
{
	for (unsigned i = 0; i < HANDLE_INTERFACES; i++)
		if (interface_is_open(front, i))
			interface_end(i);
}

enum answer interface_close(const struct front *front, uint64_t handle)
{
	const struct interface *interface;

	library_lock();
	interface = interface_of(front, handle);
	if (interface)
		interface_end(handle_interface(handle));
	library_unlock();
	return interface ? ANSWER_OK : ANSWER_GONE;
}

unsigned interface_drive(void)
{
	/* Acquire: pairs with the release when the interface was opened. */
	uint64_t left = atomic_load_explicit(&inlined_interfaces, memory_order_acquire);
	unsigned work = 0;

	/* Progress locks are never freed; that of a closed interface has no engine. */
	for (; left != 0; left &= left - 1) {
		struct progress *progress = &interfaces[__builtin_ctzll(left)].progress;

		__asm__("" : "+r"(progress)); /* or its address is computed again for each member */
		work += progress_drive(progress);
	}
	return work;
}

unsigned interface_rest(void)
{
	uint64_t left = atomic_load_explicit(&inlined_interfaces, memory_order_acquire);
	unsigned work = 0;

	for (; left != 0; left &= left - 1)
		work += progress_rest(&interfaces[__builtin_ctzll(left)].progress);
	return work;
}

enum progress_slept interface_sleep(bool (*look)(void *context), void *context, uint64_t limit)
{
	uint64_t all = atomic_load_explicit(&inlined_interfaces, memory_order_acquire);

	if (all == 0 || (all & (all - 1)) != 0)
		return PROGRESS_UNSLEPT;
	return progress_sleep(&interfaces[__builtin_ctzll(all)].progress, look, context, limit);
}

bool interface_shares_cpu(void)
{
	uint64_t left = atomic_load_explicit(&inlined_interfaces, memory_order_acquire);

	for (; left != 0; left &= left - 1)
		if (progress_shares_cpu(&interfaces[__builtin_ctzll(left)].progress))
			return true;
	return false;
}

void *interface_alloc(const struct front *front, uint64_t handle, size_t size)
{
	struct visit visit;
	void *memory;
	int socket;

	if (front_visit(front, &visit, handle, HANDLE_INTERFACE, -1) != 0)
		return NULL;
	socket = visit.interface->socket;
	visit_leave(&visit);
	library_glue_lock();
	memory = glue_memory_alloc(size == 0 ? 1 : size, socket);
	library_glue_unlock();
	return memory;
}

void interface_free(void *memory)
{
	/* A forked child shares the allocator's books with its parent, to whom the memory
	 * belongs. */
	if (!memory || library_is_forked())
		return;
	library_glue_lock();
	glue_memory_free(memory);
	library_glue_unlock();
}
