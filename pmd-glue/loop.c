/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.c - a wire inside this process: ports of one name receive each other's frames, which pass by
 * reference.
 *
 * Each port is owned by one poll core; ports are opened and closed under the front end's lock while
 * others' cores run.
 *
 * I1. Only the owner takes from a port's queue; any owner on the wire may put into it, while the
 *     port is open.
 * I2. An owner sets its flag `sending` before it checks that a port is open, and clears it when it
 *     is done with the queue. A thread that closes a port marks it closed and then waits until no
 *     flag is set. After that no queue gets a frame from the closed port, and the closed port gets
 *     none. Between the two steps lies a barrier on each side; the closing thread makes the heavy
 *     one.
 * I3. A frame in a queue belongs to a pool that is never freed (pool.h), so it may outlive its
 *     sender's port.
 * I4. A receiver that does not poll stops a sender for STALL_TIME at most. After that, frames for
 *     it are dropped.
 *
 *      owner of A                                      owner of B
 *      ----------                                      ----------
 *      transmit: look up the address, open?
 *      queue of B  <--- reference ---  frame
 *                                                      receive: takes it from the queue of B
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <base/barrier.h>
#include <base/clock.h>
#include <base/counter.h>
#include <base/log.h>
#include <base/backoff.h>
#include <base/port.h>
#include <base/remedy.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pool.h>

#define LOOP_PORTS 64u /* in one process, on all wires */
#define LOOP_QUEUE 1024u
#define WIRE_NAME  56u
#define STALL_TIME (10 * MILLISECOND)

/* Addresses are locally administered: 02 'P' 'T' and the number of the port in the process. */
static const uint8_t loop_prefix[] = {0x02, 'P', 'T', 0, 0};

/* Where a frame goes: the slot of a port, or */
enum target { TARGET_NOBODY = LOOP_PORTS, TARGET_ALL, TARGET_UNSOUND };

struct loop {
	struct port port;       /* first: a port is a loop */
	struct rte_ring *queue; /* the slot's */
	uint8_t slot;
	uint32_t wire;
	uint64_t errors;              /* frames that were too long, too short */
	uint64_t no_mbuf;             /* copies of broadcasts that could not be made */
	uint64_t stalled[LOOP_PORTS]; /* since when the port of that slot took nothing from here; 0:
					 it did */
};

/* The part of a port that other threads use. Slots are used again; queues are made once and
 * stay. */
struct slot {
	_Alignas(64) atomic_uint wire; /* its wire + 1; 0: closed */
	/* frames dropped because it was too slow; written by senders */
	atomic_uint_fast64_t missed;
	struct rte_ring *queue;
	_Alignas(64) atomic_bool sending; /* its owner may be putting frames into queues */
};

static struct slot slots[LOOP_PORTS];
static char wires[LOOP_PORTS + 1][WIRE_NAME]; /* names; under the front end's lock */

/* What a thread has done before it gives a queue a frame, the thread that takes it sees. The thread
 * sanitizer does not find that in DPDK's ring, so it is told. */
#ifdef RACES_ARE_ATOMIC
void __tsan_acquire(void *queue);
void __tsan_release(void *queue);
#define queue_given(queue) __tsan_release(queue)
#define queue_taken(queue) __tsan_acquire(queue)
#else
#define queue_given(queue) ((void)(queue))
#define queue_taken(queue) ((void)(queue))
#endif

/* --- sending --- */

static void slot_miss(struct slot *slot, unsigned count)
{
	atomic_fetch_add_explicit(&slot->missed, count, memory_order_relaxed);
}

static bool slot_hears(const struct slot *slot, uint32_t wire)
{
	return atomic_load_explicit(&slot->wire, memory_order_acquire) == wire + 1;
}

static void loop_send_all(struct loop *loop, struct rte_mbuf *frame)
{
	for (unsigned n = 0; n < LOOP_PORTS; n++) {
		struct rte_mbuf *copy;
		if (n == loop->slot || !slot_hears(&slots[n], loop->wire))
			continue;
		copy = rte_pktmbuf_copy(frame, loop->port.pool, 0, UINT32_MAX);
		queue_given(slots[n].queue);
		if (!copy) {
			loop->no_mbuf++;
		} else if (rte_ring_enqueue(slots[n].queue, copy) != 0) {
			slot_miss(&slots[n], 1);
			rte_pktmbuf_free(copy);
		}
	}
	rte_pktmbuf_free(frame);
}

/* Has this receiver taken no frames for so long that frames for it are dropped? */
static bool loop_stalled(struct loop *loop, unsigned to)
{
	uint64_t now = glue_now(NULL);
	if (loop->stalled[to] == 0)
		loop->stalled[to] = now;
	return now >= loop->stalled[to] + STALL_TIME;
}

/* Sends a run of frames to one port. Returns how many were sent or dropped. */
static unsigned loop_send_run(
	struct loop *loop, unsigned to, struct rte_mbuf **frames, unsigned count)
{
	unsigned put;
	if (to == loop->slot || to == TARGET_NOBODY || !slot_hears(&slots[to], loop->wire)) {
		rte_pktmbuf_free_bulk(frames, count);
		return count;
	}
	queue_given(slots[to].queue);
	/* A single frame has a case of its own, for which the compiler shortens the ring's code. */
	if (count == 1)
		put = rte_ring_enqueue(slots[to].queue, frames[0]) == 0;
	else
		put = rte_ring_enqueue_burst(slots[to].queue, (void **)frames, count, NULL);
	if (put > 0)
		loop->stalled[to] = 0;
	if (put == count || !loop_stalled(loop, to))
		return put;
	slot_miss(&slots[to], count - put);
	rte_pktmbuf_free_bulk(frames + put, count - put);
	return count;
}

static unsigned frame_target(const struct loop *loop, const struct rte_mbuf *frame)
{
	const uint8_t *address = rte_pktmbuf_mtod(frame, const uint8_t *);
	if (frame->data_len < FRAME_HEADER || frame->pkt_len > loop->port.frame_size)
		return TARGET_UNSOUND;
	if (memcmp(address, loop_prefix, sizeof(loop_prefix)) == 0 && address[5] < LOOP_PORTS)
		return address[5];
	return (address[0] & 1) != 0 ? TARGET_ALL : TARGET_NOBODY;
}

/* A frame that goes to no single port. */
static void loop_send_odd(struct loop *loop, unsigned to, struct rte_mbuf *frame)
{
	if (to == TARGET_ALL) {
		loop_send_all(loop, frame);
		return;
	}
	loop->errors++;
	rte_pktmbuf_free(frame);
}

static uint16_t loop_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct loop *loop = (struct loop *)port;
	unsigned done = 0;
	atomic_store_explicit(&slots[loop->slot].sending, true, memory_order_relaxed);
	barrier_light(); /* I2 */
	while (done < count) {
		unsigned to = frame_target(loop, frames[done]), run = 1, gone;
		if (to > TARGET_NOBODY) {
			loop_send_odd(loop, to, frames[done++]);
			continue;
		}
		while (done + run < count && frame_target(loop, frames[done + run]) == to)
			run++;
		gone = loop_send_run(loop, to, frames + done, run);
		done += gone;
		if (gone < run)
			break;
	}
	/* Release: the frames are in the queue before the flag is cleared. Pairs with
	 * slot_close(). */
	atomic_store_explicit(&slots[loop->slot].sending, false, memory_order_release);
	return (uint16_t)done;
}

/* --- receiving --- */

static uint16_t loop_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct rte_ring *queue = ((const struct loop *)port)->queue;
	if (rte_ring_empty(queue))
		return 0;
	count = (uint16_t)rte_ring_sc_dequeue_burst(queue, (void **)frames, count, NULL);
	queue_taken(queue);
	return count;
}

static bool loop_link(struct port *port)
{
	(void)port;
	return true;
}

static void loop_counters(struct port *port, struct port_counters *counters)
{
	const struct loop *loop = (const struct loop *)port;
	counters->missed = atomic_load_explicit(&slots[loop->slot].missed, memory_order_relaxed);
	counters->errors = loop->errors;
	counters->no_mbuf = loop->no_mbuf;
	counters->buffers = pool_used(port->pool);
}

/* --- opening and closing --- */

static void slot_drain(struct slot *slot)
{
	struct rte_mbuf *frames[32];
	unsigned count;
	while ((count = rte_ring_dequeue_burst(slot->queue, (void **)frames, 32, NULL)) > 0) {
		queue_taken(slot->queue);
		rte_pktmbuf_free_bulk(frames, count);
	}
}

static void slot_close(struct slot *slot)
{
	atomic_store_explicit(&slot->wire, 0, memory_order_relaxed);
	barrier_heavy(); /* I2 */
	/* Acquire: pairs with the release in loop_transmit(). */
	for (unsigned n = 0, looks = 0; n < LOOP_PORTS; n++)
		while (atomic_load_explicit(&slots[n].sending, memory_order_acquire))
			backoff(&looks);
	slot_drain(slot);
}

static void loop_close(struct port *port)
{
	struct loop *loop = (struct loop *)port;
	slot_close(&slots[loop->slot]);
	mempool_give(port->pool);
	free(loop);
}

static void loop_describe(struct port *port, struct port_description *description)
{
	(void)port;
	snprintf(description->driver, sizeof(description->driver), "loop");
}

static const struct port_operations loop_operations = {
	.receive = loop_receive,
	.transmit = loop_transmit,
	.link = loop_link,
	.counters = loop_counters,
	.describe = loop_describe,
	.close = loop_close,
};

static int slot_prepare(unsigned n)
{
	struct rte_ring *queue;
	if (slots[n].queue)
		return 0;
	/* The ring has a slot more than it holds. */
	queue = aligned_alloc(RTE_CACHE_LINE_SIZE, (size_t)rte_ring_get_memsize(2 * LOOP_QUEUE));
	if (!queue)
		return -1;
	(void)rte_ring_init(queue, "postern-loop", LOOP_QUEUE,
		RING_F_MP_RTS_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	slots[n].queue = queue;
	return 0;
}

static unsigned slot_find(void)
{
	unsigned n = 0;
	while (n < LOOP_PORTS && atomic_load_explicit(&slots[n].wire, memory_order_relaxed) != 0)
		n++;
	return n;
}

/* The number of a wire by its name; wires are remembered while a port is on them. */
static uint32_t wire_find(const char *name, unsigned slot)
{
	uint32_t unused = LOOP_PORTS + 1 + slot; /* private: no other port has this number */
	if (!name)
		return unused;
	for (unsigned n = 0; n < LOOP_PORTS; n++) {
		uint32_t wire = atomic_load_explicit(&slots[n].wire, memory_order_relaxed);
		if (wire != 0 && wire <= LOOP_PORTS && strcmp(wires[wire - 1], name) == 0)
			return wire - 1;
	}
	for (uint32_t wire = 0; wire < LOOP_PORTS; wire++) {
		bool taken = false;
		for (unsigned n = 0; n < LOOP_PORTS; n++)
			taken |= atomic_load_explicit(&slots[n].wire, memory_order_relaxed) ==
				 wire + 1;
		if (!taken) {
			snprintf(wires[wire], WIRE_NAME, "%s", name);
			return wire;
		}
	}
	return unused;
}

struct port *loop_open(const char *wire, uint32_t mtu)
{
	struct loop *loop;
	unsigned slot = slot_find();
	char name[sizeof(loop->port.name)];
	uint32_t frame_size = kinds_frame_size("the loopback", mtu);
	snprintf(name, sizeof(name), wire ? "loop:%s" : "the loopback", wire);
	if (frame_size == 0)
		return NULL;
	if (wire && wire[0] == '\0') {
		log_error("loop: the name is missing: write loop:NAME, or nothing for an interface "
			  "that "
			  "reaches itself only");
		return NULL;
	}
	if (wire && strlen(wire) >= WIRE_NAME) {
		log_error("loop:%s: the name is too long: use at most %u letters", wire,
			WIRE_NAME - 1);
		return NULL;
	}
	if (slot == LOOP_PORTS) {
		log_error(
			"%s: this process has %u loop ports already, which is the limit: close one",
			name, LOOP_PORTS);
		return NULL;
	}
	loop = calloc(1, sizeof(*loop));
	if (!loop || slot_prepare(slot) != 0) {
		log_error("%s: out of memory: %s", name, remedy_for_memory());
		free(loop);
		return NULL;
	}
	loop->port.operations = &loop_operations;
	loop->port.frame_size = frame_size;
	loop->port.receive_frames = LOOP_QUEUE;
	loop->port.lone = true;
	loop->port.alone = !wire;
	loop->port.aside = POOL_ASIDE;
	loop->port.socket = -1;
	loop->port.gathers = true;
	loop->port.gather_bytes = GATHER_BYTES;
	memcpy(loop->port.address, loop_prefix, sizeof(loop_prefix));
	loop->port.address[5] = (uint8_t)slot;
	memcpy(loop->port.name, name, sizeof(name));
	loop->slot = (uint8_t)slot;
	loop->queue = slots[slot].queue;
	loop->wire = wire_find(wire, slot);
	loop->port.pool = mempool_take(name, frame_size, LOOP_QUEUE, SOCKET_ID_ANY, true);
	if (!loop->port.pool) {
		free(loop);
		return NULL;
	}
	atomic_store_explicit(&slots[slot].missed, 0, memory_order_relaxed);
	/* Release: the queue is there before the port is seen. Pairs with slot_hears(). */
	atomic_store_explicit(&slots[slot].wire, loop->wire + 1, memory_order_release);
	return &loop->port;
}
