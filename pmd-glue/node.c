/* SPDX-License-Identifier: BSD-3-Clause */
/* node.c - a port to the other processes of this machine: for each of them a pair of rings in
 * memory that only the two share.
 *
 * A process is named by its process id, which is unique in the rendezvous (rendezvous.h), and so is
 * its address. A pair is made when the first frame for a process leaves, and ends with either
 * process.
 *
 *   frame to 02:50:PID             pair with PID                    the process PID
 *   ------------------             -------------                    ---------------
 *   unknown? rendezvous_connect()  memory, over a UNIX socket --->  new: rendezvous_turn()
 *   pair_transmit()      ---->     copied into the ring       --->  pair_receive()
 *   asleep? rendezvous_wake()      eventfd                    --->  node_interrupt()
 *
 * A node may lie over another port, its uplink: a kernel interface, whose node id its processes
 * then have. Frames that name a process of the rendezvous go through a pair, all others, also those
 * for processes of this machine that are not in the rendezvous, through the uplink. Such a process
 * has the uplink's address, and is found by the node id and the process id in the transport header.
 *
 * Opened and closed under the front end's lock; owned by one poll core in between.
 *
 * I1. A process that ends takes its pairs along and nothing else: what it had published is received
 *     before the pair goes.
 * I2. A process that does not poll stops a sender for STALL_TIME and no longer: then frames for it
 *     are dropped, until it takes some again.
 * I3. Pairs that carried frames lately (hot) are looked at in each call, of the others (cold) a
 *     part, so that many idle pairs cost little. All pairs are looked at before the owner sleeps.
 * I4. The uplink has half of each burst, so that neither it nor the pairs wait for the other.
 * I5. The frames of pairs need no system call, so each function that makes one says by itself that
 *     it is no cancellation point (cancel.h).
 */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include <base/cancel.h>
#include <base/log.h>
#include <base/pages.h>
#include <base/remedy.h>
#include <base/report.h>
#include <base/settings.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/rendezvous.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pair.h>
#include <pmd-glue/pool.h>

#define MTU_DEFAULT  (32u * 1024 + 256) /* 64 KiB of data fill two frames, headers included */
#define TICK         MILLISECOND        /* between two looks at the rendezvous */
#define REST_TIME    SECOND             /* between two looks at what memory pairs need */
#define BULK_MOST    ((size_t)4 << 20)  /* bytes of pairs that a process sends from (pair.h, P7) */
#define TICK_CALLS   32u                /* calls between two looks at the time */
#define COLD_PART    16u /* of the cold pairs one in so many is looked at in a call */
#define STALL_TIME   (10 * MILLISECOND)
#define SHARES_MOST  16u   /* hot pairs that node_shares_cpu() looks at */
#define NODE_MEMBERS 2048u /* those that have ended included */
#define BUCKETS      256u
#define ABSENCES     64u
#define REFUSED_TIME SECOND
#define LACK_BYTES   512u
#define VLAN_TYPE    0x8100u
#define VLAN_BYTES   4u
/* Beside a process id: */
#define NOBODY  (UINT64_C(1) << 32) /* the frame is for no process that can be reached */
#define OUTWARD (UINT64_C(1) << 33) /* it is the uplink's */

/* An address: the prefix, then the process id. */
static const uint8_t node_prefix[] = {0x02, 'P'};

/* Another process. */
struct node_peer {
	uint32_t pid;
	bool heard;                               /* frames have passed since the last tick */
	uint64_t stalled;                         /* since when it has taken nothing; 0: it has */
	uint64_t dropped;                         /* frames that it did not take (I2) */
	struct rendezvous_connection *connection; /* NULL: the process has ended (I1) */
	struct pair *pair;
	struct node_peer *next; /* in its bucket */
};

/* A process that was not in the rendezvous, so that not every frame for it looks for it. */
struct absence {
	uint32_t pid;
	uint64_t until;
};

struct node {
	struct port port; /* first: a port is a node */
	struct rendezvous *rendezvous;
	struct pair_budget budget;
	struct port *uplink; /* NULL: none */
	int set; /* for sleeping with an uplink: the rendezvous's set and the uplink's descriptor */
	int called; /* the uplink's descriptor in it; -1: none */
	uint32_t
		name_at; /* where in a frame the node id and the process id of its receiver stand */
	unsigned count;
	unsigned hot;    /* peers below it are hot, the others cold (I3) */
	unsigned first;  /* hot peers take turns at being looked at first */
	unsigned cold;   /* the next look at cold peers begins so far behind `hot` */
	unsigned calls;  /* since the last look at the time */
	uint64_t tick;   /* the time of the next look at the rendezvous */
	uint64_t rest;   /* the time of the next pair_rest() */
	uint64_t broken; /* processes that broke the rules of a pair */
	bool all;        /* the next call looks at all pairs (I3) */
	bool woken;      /* with an uplink: the owner has slept, and not received since */
	struct port_counters counters; /* of pairs that have gone */
	struct node_peer *peers[NODE_MEMBERS];
	struct node_peer *buckets[BUCKETS]; /* those that have not ended, by process id */
	struct absence absences[ABSENCES];
};

/* --- peers --- */

static struct node_peer **bucket_of(struct node *node, uint32_t pid)
{
	return &node->buckets[pid % BUCKETS];
}

static struct node_peer *peer_find(struct node *node, uint32_t pid)
{
	struct node_peer *peer = *bucket_of(node, pid);

	while (peer && peer->pid != pid)
		peer = peer->next;
	return peer;
}

static void members_swap(struct node *node, unsigned a, unsigned b)
{
	struct node_peer *kept = node->peers[a];

	node->peers[a] = node->peers[b];
	node->peers[b] = kept;
}

/* This process's end of the memory of a connection. NULL: out of memory. */
static struct pair *node_pair(struct node *node, struct rendezvous_connection *connection)
{
	struct pair *pair = pair_open(connection->memory, connection->end, node->port.pool,
		node->port.frame_size, &node->budget);

	if (pair)
		return pair;
	log_warning("%s: there is no memory for frames of process id %u, which will not arrive: "
		    "%s",
		node->port.name, connection->pid, remedy_for_memory());
	munmap(connection->memory, pair_bytes());
	return NULL;
}

/* Makes a peer of a connection. NULL: there is no memory, and the connection is gone. */
static struct node_peer *peer_add(struct node *node, struct rendezvous_connection *connection)
{
	struct node_peer **bucket = bucket_of(node, connection->pid);
	struct node_peer *peer = node->count < NODE_MEMBERS ? calloc(1, sizeof(*peer)) : NULL;
	struct pair *pair = node_pair(node, connection);

	if (!peer || !pair) {
		if (pair)
			pair_close(pair);
		rendezvous_drop(node->rendezvous, connection);
		free(peer);
		return NULL;
	}
	connection->context = peer;
	peer->pair = pair;
	peer->connection = connection;
	peer->pid = connection->pid;
	peer->heard = true;
	peer->next = *bucket;
	*bucket = peer;
	node->peers[node->count] = peer;
	members_swap(node, node->hot++, node->count++);
	return peer;
}

/* No frame goes to it any more; what it had published is still received (I1). */
static void peer_end(struct node *node, struct node_peer *peer)
{
	struct node_peer **at = bucket_of(node, peer->pid);
	const int cancel = cancel_hold(); /* I5 */

	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	rendezvous_drop(node->rendezvous, peer->connection);
	peer->connection = NULL;
	cancel_release(cancel);
}

static void counters_add(struct port_counters *counters, const struct pair *pair)
{
	struct pair_counters own = pair_count(pair);

	counters->errors += own.errors;
	counters->no_mbuf += own.no_mbuf;
}

/* Forgets the peer of this index. */
static void peer_remove(struct node *node, unsigned at)
{
	struct node_peer *peer = node->peers[at];

	counters_add(&node->counters, peer->pair);
	pair_close(peer->pair);
	free(peer);
	if (at < node->hot) {
		node->peers[at] = node->peers[--node->hot];
		at = node->hot;
	}
	node->peers[at] = node->peers[--node->count];
}

/* --- the rendezvous --- */

/* Both processes have connected to each other, and the other's pair stays. */
static void peer_replace(struct node *node, struct node_peer *peer)
{
	struct pair *pair = node_pair(node, peer->connection);

	if (!pair) {
		peer_end(node, peer);
		return;
	}
	pair_move(peer->pair, pair);
	pair_close(peer->pair);
	peer->pair = pair;
	rendezvous_wake(peer->connection);
}

static void absence_note(struct node *node, uint32_t pid, uint64_t time)
{
	node->absences[pid % ABSENCES] = (struct absence){pid, glue_now(NULL) + time};
}

/* A process that has refused a connection, because it has frames of another size, is reached by the
 * uplink. */
static void connection_ended(struct node *node, struct rendezvous_connection *connection)
{
	if (!connection->answered)
		absence_note(node, connection->pid, REFUSED_TIME);
	peer_end(node, connection->context);
}

static void node_turn(struct node *node)
{
	struct rendezvous_connection *connection;
	enum rendezvous_event event;
	const int cancel = cancel_hold(); /* I5 */

	while (rendezvous_turn(node->rendezvous, &connection, &event)) {
		if (event == RENDEZVOUS_CAME)
			(void)peer_add(node, connection);
		else if (event == RENDEZVOUS_REPLACED)
			peer_replace(node, connection->context);
		else if (event == RENDEZVOUS_ENDED)
			connection_ended(node, connection);
	}
	cancel_release(cancel);
}

/* Members that have carried nothing since the last tick become cold. */
static void members_cool(struct node *node)
{
	for (unsigned n = node->hot; n-- > 0;) {
		if (!node->peers[n]->heard)
			members_swap(node, n, --node->hot);
		else
			node->peers[n]->heard = false;
	}
}

/* Pairs give back what memory they do not need. */
static void members_rest(struct node *node, uint64_t now)
{
	node->rest = now + REST_TIME;
	for (unsigned n = 0; n < node->count; n++)
		pair_rest(node->peers[n]->pair);
}

/* Where this thread looks for frames. */
static void members_tell(struct node *node, int cpu)
{
	for (unsigned n = 0; n < node->hot && cpu >= 0; n++)
		pair_set_cpu(node->peers[n]->pair, (unsigned)cpu);
}

static void node_tick(struct node *node)
{
	uint64_t now = glue_now(NULL);

	node->calls = 0;
	members_tell(node, sched_getcpu());
	if (now < node->tick)
		return;
	node->tick = now + TICK;
	members_cool(node);
	if (now >= node->rest)
		members_rest(node, now);
	node_turn(node);
}

/* --- sending --- */

/* The process of this node that a frame names in its transport header; NOBODY: none. */
static uint64_t frame_named(const struct node *node, const struct rte_mbuf *frame)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	uint32_t at = node->name_at, nid, pid;
	rte_be16_t type;

	memcpy(&type, bytes + 2 * sizeof(node->port.address), sizeof(type));
	if (type == RTE_BE16(VLAN_TYPE))
		at += VLAN_BYTES;
	if (frame->data_len < at + sizeof(nid) + sizeof(pid))
		return NOBODY;
	memcpy(&nid, bytes + at, sizeof(nid));
	memcpy(&pid, bytes + at + sizeof(nid), sizeof(pid));
	return rte_le_to_cpu_32(nid) == node->port.nid ? rte_le_to_cpu_32(pid) : NOBODY;
}

/* Whom a frame is for: a process id, or NOBODY, or OUTWARD. */
static uint64_t frame_target(const struct node *node, const struct rte_mbuf *frame)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	rte_be32_t name;
	uint64_t pid;

	if (frame->data_len < FRAME_HEADER)
		return NOBODY;
	if (node->uplink) {
		pid = frame_named(node, frame);
		return pid == NOBODY || pid == node->port.pid ? OUTWARD : pid;
	}
	if (memcmp(bytes, node_prefix, sizeof(node_prefix)) == 0) {
		memcpy(&name, bytes + sizeof(node_prefix), sizeof(name));
		return rte_be_to_cpu_32(name);
	}
	/* A broadcast asks after one process, which it names. */
	return (bytes[0] & 1) != 0 ? frame_named(node, frame) : NOBODY;
}

/* With an uplink: is it known that this process is not in the rendezvous? */
static bool pid_absent(const struct node *node, uint32_t pid)
{
	const struct absence *absence = &node->absences[pid % ABSENCES];

	return node->uplink && absence->pid == pid && glue_now(NULL) < absence->until;
}

static struct node_peer *peer_meet(struct node *node, uint32_t pid)
{
	const int cancel = cancel_hold(); /* I5 */
	struct rendezvous_connection *connection = rendezvous_connect(node->rendezvous, pid);
	struct node_peer *peer = connection ? peer_add(node, connection) : NULL;

	cancel_release(cancel);
	if (!connection)
		absence_note(node, pid, TICK);
	return peer;
}

static struct node_peer *peer_for(struct node *node, uint32_t pid)
{
	struct node_peer *peer = peer_find(node, pid);

	if (peer)
		return peer;
	if (pid == node->port.pid || pid_absent(node, pid))
		return NULL;
	return peer_meet(node, pid);
}

/* Has this process been deaf for so long that its frames must go? */
static bool peer_stalled(struct node_peer *peer)
{
	uint64_t now = glue_now(NULL);

	if (peer->stalled == 0)
		peer->stalled = now;
	return now >= peer->stalled + STALL_TIME;
}

/* A run of frames to one process here; returns how many are gone. */
static unsigned peer_send(
	struct node *node, struct node_peer *peer, struct rte_mbuf **frames, unsigned count)
{
	unsigned put = pair_transmit(peer->pair, frames, (uint16_t)count);

	peer->heard = true;
	if (put > 0)
		peer->stalled = 0;
	rendezvous_wake(peer->connection);
	if (put == count || !peer_stalled(peer))
		return put;
	node->counters.missed += count - put;
	peer->dropped += count - put;
	rte_pktmbuf_free_bulk(frames + put, count - put);
	return count;
}

/* A run of frames for one target; returns how many are gone. */
static unsigned node_send_run(
	struct node *node, uint64_t target, struct rte_mbuf **frames, unsigned count)
{
	struct node_peer *peer = target < NOBODY ? peer_for(node, (uint32_t)target) : NULL;

	if (peer)
		return peer_send(node, peer, frames, count);
	if (node->uplink && target != NOBODY)
		return port_transmit(node->uplink, frames, (uint16_t)count);
	rte_pktmbuf_free_bulk(frames, count);
	return count;
}

static uint16_t node_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct node *node = (struct node *)port;
	uint64_t next = count > 0 ? frame_target(node, frames[0]) : NOBODY;
	unsigned done = 0;

	while (done < count) {
		uint64_t target = next;
		unsigned run = 0, gone;

		do
			run++;
		while (done + run < count &&
			(next = frame_target(node, frames[done + run])) == target);
		gone = node_send_run(node, target, frames + done, run);
		done += gone;
		if (gone < run)
			break;
	}
	return (uint16_t)done;
}

/* --- receiving --- */

/* A peer that has sent nothing more has ended, or broken the rules. */
static __rte_noinline void peer_leave(struct node *node, unsigned at)
{
	struct node_peer *peer = node->peers[at];

	if (peer->connection) {
		if (node->broken++ == 0)
			log_warning("%s: process id %u of uid %u has written invalid data into the "
				    "memory that it shares with this process, and is cut off: "
				    "restart it",
				node->port.name, peer->pid, (unsigned)peer->connection->uid);
		node->counters.errors++;
		peer_end(node, peer);
	}
	peer_remove(node, at);
}

/* Takes what a peer has sent. *stays: it is still there. */
static inline unsigned peer_receive(
	struct node *node, unsigned at, struct rte_mbuf **frames, unsigned room, bool *stays)
{
	struct node_peer *peer = node->peers[at];
	unsigned taken = pair_receive(peer->pair, frames, (uint16_t)room);

	*stays = true;
	if (taken > 0) {
		peer->heard = true;
	} else if (unlikely(!pair_sound(peer->pair) ||
			    (!peer->connection && !pair_waits(peer->pair)))) { /* I1 */
		peer_leave(node, at);
		*stays = false;
	}
	return taken;
}

/* The hot peers, each in its turn the first one. */
static uint16_t node_receive_hot(struct node *node, struct rte_mbuf **frames, uint16_t count)
{
	unsigned done = 0;
	bool stays;

	for (unsigned n = node->hot; n-- > 0 && done < count;)
		done += peer_receive(node, n, frames + done, count - done, &stays);
	if (node->hot > 1 && done > 0)
		members_swap(node, node->first++ % node->hot, node->hot - 1);
	return (uint16_t)done;
}

/* A part of the cold peers, or all. A look at one that has sent nothing writes nothing. */
static uint16_t node_receive_cold(
	struct node *node, struct rte_mbuf **frames, uint16_t count, uint16_t done)
{
	unsigned left = node->count - node->hot;

	if (!node->all)
		left = (left + COLD_PART - 1) / COLD_PART;
	for (; left > 0 && done < count; left--) {
		unsigned at, taken;
		bool stays;

		if (node->hot + node->cold >= node->count)
			node->cold = 0;
		at = node->hot + node->cold;
		if (node->peers[at]->connection && !pair_waits(node->peers[at]->pair)) {
			node->cold++;
			continue;
		}
		taken = peer_receive(node, at, frames + done, (unsigned)count - done, &stays);
		done = (uint16_t)(done + taken);
		if (taken > 0)
			members_swap(node, at, node->hot++);
		else if (stays)
			node->cold++;
	}
	return done;
}

/* The next call does, and sees to newcomers. */
static void node_look_at_all(struct node *node)
{
	node->tick = 0;
	node->all = true;
}

static __rte_noinline uint16_t node_receive_all(
	struct node *node, struct rte_mbuf **frames, uint16_t count)
{
	uint16_t done;

	if (++node->calls >= TICK_CALLS || node->all)
		node_tick(node);
	done = node_receive_hot(node, frames, count);
	if (node->hot < node->count && done < count)
		done = node_receive_cold(node, frames, count, done);
	node->all = false;
	return done;
}

/* What has come through pairs. Of the two processes of many a job each has one peer. */
static inline uint16_t node_receive_pairs(
	struct node *node, struct rte_mbuf **frames, uint16_t count)
{
	bool stays;

	if (unlikely(node->count != 1 || node->hot != 1 || node->all ||
		     node->calls + 1 >= TICK_CALLS))
		return node_receive_all(node, frames, count);
	node->calls++;
	return (uint16_t)peer_receive(node, 0, frames, count, &stays);
}

static uint16_t node_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	return node_receive_pairs((struct node *)port, frames, count);
}

/* The owner has slept. If frames of the uplink explain why it sleeps no more, it need not ask what
 * the rendezvous's set has: that stays readable, and ends the next sleep at once. */
static void node_woken(struct node *node, bool explained)
{
	node->woken = false;
	if (explained)
		node->tick = glue_now(NULL) + TICK;
	else
		node_look_at_all(node);
}

/* The same with an uplink (I4). Frames of pairs have met no wire: where an uplink's device makes
 * checksums, they have none. */
static uint16_t node_receive_both(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct node *node = (struct node *)port;
	uint16_t first = port_receive(node->uplink, frames, (uint16_t)((count + 1) / 2));
	uint16_t done;

	if (node->woken)
		node_woken(node, first > 0);
	done = (uint16_t)(first +
			  node_receive_pairs(node, frames + first, (uint16_t)(count - first)));
	port->arrived = first > 0 ? node->uplink->arrived : 0;
	if (port->checksum_offload)
		for (uint16_t n = first; n < done; n++)
			frames[n]->ol_flags |=
				RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	return done;
}

/* The rendezvous's set is readable when somebody wakes this process, comes or ends. */
static int node_interrupt(struct port *port, bool on)
{
	struct node *node = (struct node *)port;

	node_look_at_all(node);
	return rendezvous_sleep(node->rendezvous, on) && on ? rendezvous_set(node->rendezvous) : -1;
}

/* The uplink's descriptor may be another one each time. */
static bool node_watch(struct node *node, int called)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (called == node->called)
		return called >= 0;
	if (node->called >= 0)
		(void)epoll_ctl(node->set, EPOLL_CTL_DEL, node->called, NULL);
	node->called = -1;
	if (called >= 0 && epoll_ctl(node->set, EPOLL_CTL_ADD, called, &event) == 0)
		node->called = called;
	return node->called >= 0;
}

static int node_interrupt_both(struct port *port, bool on)
{
	struct node *node = (struct node *)port;
	bool asleep = rendezvous_sleep(node->rendezvous, on) && on;
	int called = node->uplink->operations->interrupt
			     ? node->uplink->operations->interrupt(node->uplink, on)
			     : -1;

	node->woken = !on;
	if (on)
		node_look_at_all(node);
	return asleep && node_watch(node, called) ? node->set : -1;
}

/* One is enough. Of a peer behind the uplink nothing is known. */
static bool node_shares_cpu(struct port *port)
{
	struct node *node = (struct node *)port;
	unsigned hot = node->hot < SHARES_MOST ? node->hot : SHARES_MOST;
	int cpu = sched_getcpu();

	for (unsigned n = 0; n < hot && cpu >= 0; n++)
		if (pair_is_on(node->peers[n]->pair, (unsigned)cpu))
			return true;
	return false;
}

/* Of a node without an uplink: others are out of reach. The rendezvous does not know the processes
 * that an uplink leads to. */
static bool node_absent(struct port *port, uint32_t nid, uint32_t pid)
{
	const struct node *node = (const struct node *)port;
	const int cancel = cancel_hold(); /* I5 */
	bool absent = nid != port->nid || rendezvous_lacks(node->rendezvous, pid);

	cancel_release(cancel);
	return absent;
}

/* --- the port --- */

static bool node_link(struct port *port)
{
	(void)port;
	return true;
}

static void node_counters(struct port *port, struct port_counters *counters)
{
	struct node *node = (struct node *)port;

	*counters = node->counters;
	for (unsigned n = 0; n < node->count; n++)
		counters_add(counters, node->peers[n]->pair);
	counters->buffers = pool_used(port->pool);
}

static void node_counters_both(struct port *port, struct port_counters *counters)
{
	struct node *node = (struct node *)port;
	struct port_counters outer = {0};

	node_counters(port, counters);
	node->uplink->operations->counters(node->uplink, &outer);
	counters->missed += outer.missed;
	counters->errors += outer.errors;
	counters->no_mbuf += outer.no_mbuf;
	counters->buffers = outer.buffers; /* there is one pool for both */
}

static bool node_link_both(struct port *port)
{
	struct node *node = (struct node *)port;

	return node->uplink->operations->link(node->uplink);
}

static void node_select(struct port *port, const struct port_selection *wanted)
{
	struct node *node = (struct node *)port;

	node->name_at = wanted->at;
	if (node->uplink && node->uplink->operations->select)
		node->uplink->operations->select(node->uplink, wanted);
}

static void node_describe(struct port *port, struct port_description *description)
{
	(void)port;
	snprintf(description->driver, sizeof(description->driver), "node");
	description->transmit_frames = PAIR_SLOTS;
}

static void node_describe_both(struct port *port, struct port_description *description)
{
	struct node *node = (struct node *)port;

	if (node->uplink->operations->describe)
		node->uplink->operations->describe(node->uplink, description);
}

static void node_recall(struct port *port)
{
	struct node *node = (struct node *)port;

	if (node->uplink->operations->recall)
		node->uplink->operations->recall(node->uplink);
}

static void node_close(struct port *port)
{
	struct node *node = (struct node *)port;

	while (node->count > 0) {
		if (node->peers[node->count - 1]->connection)
			peer_end(node, node->peers[node->count - 1]);
		peer_remove(node, node->count - 1);
	}
	rendezvous_close(node->rendezvous);
	if (node->uplink)
		node->uplink->operations->close(node->uplink);
	else
		mempool_give(port->pool);
	if (node->set >= 0)
		close(node->set);
	pages_unmap_root(node, sizeof(*node));
}

static const struct port_operations node_operations = {
	.receive = node_receive,
	.transmit = node_transmit,
	.link = node_link,
	.counters = node_counters,
	.select = node_select,
	.describe = node_describe,
	.interrupt = node_interrupt,
	.shares_cpu = node_shares_cpu,
	.absent = node_absent,
	.close = node_close,
};

static const struct port_operations both_operations = {
	.receive = node_receive_both,
	.transmit = node_transmit,
	.link = node_link_both,
	.counters = node_counters_both,
	.select = node_select,
	.describe = node_describe_both,
	.interrupt = node_interrupt_both,
	.shares_cpu = node_shares_cpu,
	.recall = node_recall,
	.close = node_close,
};

/* --- looking inside --- */

/* The node inside faults and captures; NULL: the port is none. */
static struct node *node_of(struct port *port)
{
	port = fault_inside(port);
	return port->operations->describe == node_describe ||
			       port->operations->describe == node_describe_both
		       ? (struct node *)port
		       : NULL;
}

void glue_node_tell(struct port *port, struct report *report)
{
	static const char *const reasons[] = {
#define X(constant, name) name,
		RENDEZVOUS_REFUSALS(X)
#undef X
	};
	struct node *node = node_of(port);
	uint64_t memory = 0; /* shared, that all pairs have used */

	if (!node) {
		report_nothing(report, "directory");
		return;
	}
	for (unsigned n = 0; n < node->count; n++)
		memory += pair_count(node->peers[n]->pair).memory;
	report_text(report, "directory", rendezvous_path(node->rendezvous));
	report_number(report, "pairs", node->count);
	report_number(report, "memory", memory);
	report_object(report, "refused");
	for (unsigned n = 0; n < REFUSALS; n++)
		report_number(report, reasons[n], rendezvous_refused(node->rendezvous)[n]);
	report_number(report, "broke_rules", node->broken);
	report_close(report);
}

unsigned glue_node_present(struct port *port, struct glue_process *processes, unsigned count)
{
	struct node *node = node_of(port);

	return node ? rendezvous_present(node->rendezvous, processes, count) : 0;
}

void glue_node_tell_pair(struct port *port, uint32_t pid, struct report *report)
{
	struct node *node = node_of(port);
	struct node_peer *peer = node ? peer_find(node, pid) : NULL;
	struct pair_counters counters;
	bool hot = false; /* it is looked at in every turn */
	int cpu;

	report_flag(report, "pair", peer);
	if (!peer)
		return;
	for (unsigned n = 0; n < node->hot && !hot; n++)
		hot = node->peers[n] == peer;
	/* the system's number; 0: it is of another container */
	report_number(report, "process", (uint32_t)peer->connection->process);
	report_flag(report, "hot", hot);
	cpu = pair_cpu(peer->pair); /* where it looked for frames last */
	if (cpu >= 0)
		report_number(report, "cpu", (uint64_t)cpu);
	counters = pair_count(peer->pair);
	report_number(report, "frames_sent", counters.sent);
	report_number(report, "frames_received", counters.received);
	report_number(report, "bytes_sent", counters.bytes_sent);
	report_number(report, "bytes_received", counters.bytes_received);
	report_number(report, "bytes_streamed", counters.bytes_streamed);
	report_number(report, "full", counters.full);
	report_number(report, "dropped", peer->dropped);
	report_number(report, "wakes_sent", peer->connection->wakes_sent);
	report_number(report, "wakes_received", peer->connection->wakes_received);
	report_number(report, "memory", counters.memory);
}

/* --- opening --- */

/* A number of this machine's own, the same for all its processes: the node id where none is set.
 * Returns false with errno if descriptors or memory are short: with another number this process
 * would reach none of the others. */
static bool machine_number(uint32_t *machine)
{
	static const char *const names[] = {"/etc/machine-id", "/proc/sys/kernel/random/boot_id"};
	unsigned number = 0;

	for (unsigned n = 0; n < RTE_DIM(names) && number == 0; n++) {
		FILE *file = fopen(names[n], "re");

		if (!file && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
			return false;
		if (file && fscanf(file, "%8x", &number) != 1)
			number = 0;
		if (file)
			fclose(file);
	}
	*machine = number != 0 && number != UINT32_MAX ? number : (uint32_t)gethostid() | 1;
	return true;
}

static bool node_number(struct rendezvous_options *options, unsigned interface)
{
	uint32_t machine;

	if (machine_number(&machine)) {
		options->nid = (uint32_t)setting_number_item(SETTING_NID, interface, machine);
		return true;
	}
	(options->tell ? options->tell : log_error)(
		"node: the number of this machine cannot be read: %s: %s", strerror(errno),
		remedy_for(errno, remedy_for_memory()));
	return false;
}

/* Meets the other processes. options: name, tell, pid and nid are given. */
static bool node_meet(struct node *node, struct rendezvous_options *options)
{
	struct port *port = &node->port;

	options->frame_size = port->frame_size;
	options->pair_bytes = pair_bytes();
	options->touched = pair_bytes_touched();
	node->rendezvous = rendezvous_open(options);
	if (!node->rendezvous)
		return false;
	port->nid = options->nid;
	port->pid = rendezvous_pid(node->rendezvous);
	port->named = true;
	port->external = true;
	port->gathers = true;
	port->guards = true;
	port->parts = true;
	port->gather_bytes = GATHER_BYTES;
	return true;
}

static bool node_start(struct node *node, struct rendezvous_options *options)
{
	struct port *port = &node->port;
	rte_be32_t address;

	if (!node_meet(node, options))
		return false;
	address = rte_cpu_to_be_32(port->pid);
	memcpy(port->address, node_prefix, sizeof(node_prefix));
	memcpy(port->address + sizeof(node_prefix), &address, sizeof(address));
	port->pool = mempool_take(port->name, port->frame_size, PAIR_SLOTS, SOCKET_ID_ANY, true);
	return port->pool != NULL;
}

static char lack[LACK_BYTES];

static void lack_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void lack_tell(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(lack, sizeof(lack), format, arguments);
	va_end(arguments);
}

const char *node_lack(void)
{
	return lack;
}

static struct node *node_make(const struct port_operations *operations)
{
	struct node *node = pages_map_root(sizeof(*node));

	lack[0] = '\0';
	if (!node) {
		log_error("node: out of memory: %s", remedy_for_memory());
		return NULL;
	}
	node->budget.most = BULK_MOST;
	node->port.operations = operations;
	node->set = node->called = -1;
	return node;
}

struct port *node_open(
	const char *name, uint32_t mtu, unsigned interface, uint32_t pid, bool optional)
{
	struct rendezvous_options options = {
		.name = name, .pid = pid, .tell = optional ? lack_tell : NULL};
	struct node *node;
	uint32_t frame_size = kinds_frame_size("node", mtu != 0 ? mtu : MTU_DEFAULT);

	if (frame_size == 0)
		return NULL;
	if (setting_is(SETTING_ENCAP, "udp")) {
		log_error("PTL_ENCAP=udp is not for processes of one machine: unset it, or set "
			  "PTL_IFACE_NAME to a network interface");
		return NULL;
	}
	node = node_make(&node_operations);
	if (!node)
		return NULL;
	node->port.frame_size = frame_size;
	node->port.receive_frames = PAIR_SLOTS;
	node->port.calls = true;
	node->port.helped = true;
	node->port.lone = true;
	node->port.aside = POOL_ASIDE;
	node->port.socket = -1;
	snprintf(node->port.name, sizeof(node->port.name), name[0] ? "node:%s" : "node", name);
	if (node_number(&options, interface) && node_start(node, &options))
		return &node->port;
	if (node->rendezvous)
		rendezvous_close(node->rendezvous);
	pages_unmap_root(node, sizeof(*node));
	return NULL;
}

struct port *node_open_over(struct port *uplink, const char *name, uint32_t nid, uint32_t pid)
{
	struct rendezvous_options options = {
		.name = name, .nid = nid, .pid = pid, .tell = lack_tell, .passing = true};
	struct node *node = node_make(&both_operations);

	if (!node)
		return NULL;
	node->port = *uplink;
	node->port.operations = &both_operations;
	node->uplink = uplink;
	node->set = epoll_create1(EPOLL_CLOEXEC);
	if (node->set < 0)
		log_error("%s: epoll_create1 fails: %s: %s", uplink->name, strerror(errno),
			remedy_for(errno, remedy_for_memory()));
	if (node->set >= 0 && node_meet(node, &options)) {
		struct epoll_event event = {.events = EPOLLIN};

		if (epoll_ctl(node->set, EPOLL_CTL_ADD, rendezvous_set(node->rendezvous), &event) ==
			0)
			return &node->port;
		rendezvous_close(node->rendezvous);
		log_error("%s: epoll_ctl fails, so new processes would go unnoticed: %s: %s",
			uplink->name, strerror(errno), remedy_for(errno, remedy_for_memory()));
	}
	if (node->set >= 0)
		close(node->set);
	pages_unmap_root(node, sizeof(*node));
	return NULL;
}
