/* SPDX-License-Identifier: BSD-3-Clause */
/* network.c - see network.h. */
#include "network.h"
#include "scatter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_mbuf.h>

#include <base/random.h>
#include <transport/internal.h>
#include <sim/star.h>

#include "eal.h"

#define QUEUE_FRAMES 1024
#define GATHER_BYTES 64
#define GARBLED_FROM 192        /* of a frame, by a port that mishandles those of two segments */
#define NID_FIRST    0x0a000064 /* 10.0.0.100 */

struct simulated {
	struct sim_clock clock;
	struct star star;
};

/* What a message's header says. */
struct stamp {
	uint32_t from;
	uint32_t life;
	uint64_t sequence;
	uint64_t where; /* in the pattern */
};

struct sent {
	struct message message;
	struct node *node;
	uint32_t life;
	/* the data's own: who still reads it when the message is done is found out */
	uint8_t *memory;
	struct scatter *scatter; /* or here */
};

struct received {
	uint8_t *bytes;
	struct scatter *scatter; /* or there */
	uint64_t length;
	uint64_t where;
	unsigned from;
	uint64_t sequence;
	struct node *node;
};

uint64_t network_random(struct network *network)
{
	return random_next(&network->random);
}

static bool chance(struct network *network, double probability)
{
	return (double)(network_random(network) >> 11) < probability * 9007199254740992.0;
}

/* Memory in pieces for half of the messages, if there shall be any; NULL: this one's is in one. */
static struct scatter *scatter_perhaps(struct network *network, uint64_t length)
{
	if (!network->scattered || network_random(network) % 2 == 0)
		return NULL;
	return scatter_new(network_random(network), length);
}

/* --- the wire */

void *report_memory(void *memory)
{
	assert_non_null(memory);
	return memory;
}

static struct rte_mbuf *frame_copy(struct network *network, const struct rte_mbuf *frame)
{
	return rte_pktmbuf_copy(frame, network->pool, 0, UINT32_MAX);
}

static void frame_bytes(void *frame, uint8_t *bytes)
{
	const struct rte_mbuf *mbuf = frame;
	const void *at = rte_pktmbuf_read(mbuf, 0, mbuf->pkt_len, bytes);

	if (at != bytes)
		memcpy(bytes, at, mbuf->pkt_len);
}

static void frame_free(void *frame)
{
	rte_pktmbuf_free(frame);
}

/* What a test says of the network, which may change at any time. */
static void faults_apply(struct network *network)
{
	const struct faults *faults = &network->faults;
	struct star *star = &network->simulated->star;

	star->settings = (struct star_settings){
		.rate = (uint64_t)(faults->rate * 8e9),
		.delay = faults->delay / 2,
		.queue_bytes = UINT32_MAX,
		.mark_bytes = UINT32_MAX,
		.drop = faults->loss,
		.duplicate = faults->duplicate,
		.reorder = faults->reorder,
		.reorder_delay = faults->reorder_by,
		.corrupt = faults->corrupt,
		/* Only what a checksum covers: nobody would find out about the rest. */
		.corrupt_bytes = network->options.full_checksum
					 ? UINT32_MAX / 8
					 : FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES,
		.fault_until = UINT64_MAX,
	};
	for (unsigned i = 0; i < network->count; i++)
		star->links[i].rate = star->settings.rate;
}

/* Takes over a reference. Frames travel by reference, as in a loop port: whoever writes to a frame
 * that somebody still reads is found out. */
static void frame_launch(
	struct network *network, unsigned from, unsigned to, struct rte_mbuf *frame)
{
	struct star *star = &network->simulated->star;

	network->frames++;
	if (network->nodes[from].cut || network->nodes[to].cut ||
		(network->filter != NULL && !network->filter(network, from, to,
						    rte_pktmbuf_mtod(frame, const uint8_t *)))) {
		network->filtered++;
		rte_pktmbuf_free(frame);
		return;
	}
	faults_apply(network);
	network->simulated->clock.now = network->now;
	star_send(star, star_wrap(star, from, to, frame, rte_pktmbuf_mtod(frame, uint8_t *),
				frame->pkt_len));
}

static unsigned node_by_address(const struct network *network, const uint8_t *address)
{
	unsigned i;

	for (i = 0; i < network->count; i++)
		if (memcmp(network->nodes[i].port.address, address, 6) == 0)
			return i;
	return NETWORK_NODES;
}

static void frame_own(struct network *network, struct rte_mbuf **frame)
{
	struct rte_mbuf *copy;

	if ((*frame)->nb_segs == 1)
		return;
	copy = frame_copy(network, *frame);
	assert_non_null(copy);
	rte_pktmbuf_free(*frame);
	*frame = copy;
}

static uint16_t node_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct node *node = (struct node *)(void *)port;
	struct network *network = node->network;
	uint16_t i;

	if (node->full)
		return 0;
	if (node->accept != 0 && count > node->accept)
		count = (uint16_t)(network_random(network) % (node->accept + 1));
	for (i = 0; i < count; i++) {
		const uint8_t *bytes;
		unsigned to;

		if (node->garbles && frames[i]->nb_segs > 1 && frames[i]->pkt_len > GARBLED_FROM) {
			frame_own(network, &frames[i]);
			memset(rte_pktmbuf_mtod_offset(frames[i], void *, GARBLED_FROM), 0xbb,
				frames[i]->pkt_len - GARBLED_FROM);
		}
		bytes = rte_pktmbuf_mtod(frames[i], const uint8_t *);

		assert_true(frames[i]->pkt_len <= port->frame_size);
		if (bytes[0] & 1) {
			for (to = 0; to < network->count; to++) {
				struct rte_mbuf *copy = frame_copy(network, frames[i]);

				if (copy != NULL)
					frame_launch(network, node->index, to, copy);
			}
			rte_pktmbuf_free(frames[i]);
			continue;
		}
		to = node_by_address(network, bytes);
		if (to == NETWORK_NODES)
			rte_pktmbuf_free(frames[i]);
		else
			frame_launch(network, node->index, to, frames[i]);
	}
	return count;
}

static uint16_t node_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct node *node = (struct node *)(void *)port;
	const struct network *network = node->network;
	uint16_t n = 0;

	port->arrived = node->head != node->tail ? node->arrived[node->head % node->queue_size]
						 : network->now;
	if (node->silent)
		port->arrived = 0;
	while (n < count && node->head != node->tail)
		frames[n++] = node->queue[node->head++ % node->queue_size];
	return n;
}

static bool node_link(struct port *port)
{
	(void)port;
	return true;
}

static void node_port_counters(struct port *port, struct port_counters *counters)
{
	(void)port;
	memset(counters, 0, sizeof(*counters));
}

static void node_close(struct port *port)
{
	(void)port;
}

/* Frames live on when their sender does not: as copies, then. */
static void node_recall(struct port *port)
{
	struct network *network = ((struct node *)(void *)port)->network;
	unsigned i;

	star_flatten(&network->simulated->star);
	for (i = 0; i < network->count; i++) {
		struct node *node = &network->nodes[i];
		uint32_t at;

		for (at = node->head; at != node->tail; at++)
			frame_own(network, &node->queue[at % node->queue_size]);
	}
}

static bool node_absent(struct port *port, uint32_t nid, uint32_t pid)
{
	const struct network *network = ((struct node *)(void *)port)->network;

	for (unsigned i = 0; network->absent && i < network->count; i++)
		if (network->nodes[i].self.nid == nid && network->nodes[i].self.pid == pid)
			return network->absent(network, i);
	return false;
}

static const struct port_operations node_operations = {
	.receive = node_receive,
	.transmit = node_transmit,
	.link = node_link,
	.counters = node_port_counters,
	.absent = node_absent,
	.recall = node_recall,
	.close = node_close,
};

static void node_arrive(struct node *node, struct rte_mbuf *frame)
{
	if (node->dead || node->tail - node->head == node->queue_size) {
		node->dropped_full += !node->dead;
		rte_pktmbuf_free(frame);
		return;
	}
	node->arrived[node->tail % node->queue_size] = node->network->now;
	node->queue[node->tail++ % node->queue_size] = frame;
}

static struct rte_mbuf *frame_make(struct network *network, const void *bytes, uint32_t length)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(network->pool);

	if (frame != NULL)
		memcpy(rte_pktmbuf_append(frame, (uint16_t)length), bytes, length);
	return frame;
}

static void parcel_deliver(void *context, uint32_t to, struct parcel *parcel)
{
	struct network *network = context;
	struct rte_mbuf *frame = parcel->frame;

	network->now = network->simulated->clock.now;
	network->delivered = true;
	if (frame == NULL)
		frame = frame_make(network, parcel->bytes, parcel->length);
	else if (parcel->holders > 1)
		frame = frame_copy(network, frame);
	else
		parcel->frame = parcel->bytes = NULL; /* taken over */
	star_release(&network->simulated->star, parcel);
	if (frame != NULL)
		node_arrive(&network->nodes[to], frame);
}

void network_inject(struct network *network, unsigned to, const void *bytes, uint32_t length)
{
	struct rte_mbuf *frame = frame_make(network, bytes, length);

	assert_non_null(frame);
	node_arrive(&network->nodes[to], frame);
}

void network_inject_pieces(
	struct network *network, unsigned to, const void *bytes, uint32_t length, uint32_t first)
{
	struct rte_mbuf *frame = frame_make(network, bytes, first);
	struct rte_mbuf *rest = frame_make(network, (const char *)bytes + first, length - first);

	assert_true(frame && rest && rte_pktmbuf_chain(frame, rest) == 0);
	node_arrive(&network->nodes[to], frame);
}

/* --- the model */

static void upcall_begin(
	void *context, struct process from, const struct record *record, struct inbound *inbound)
{
	uint64_t length = record->extent;
	struct node *node = context;
	struct received *received;
	struct stamp stamp;
	unsigned f;

	assert_int_equal(record->header_length, sizeof(stamp));
	memcpy(&stamp, record->header, sizeof(stamp));
	f = from.nid - NID_FIRST;
	assert_true(f < node->network->count);
	assert_int_equal(stamp.from, f);
	if (node->next_life[f] != stamp.life) {
		/* No life is ever seen after its successor. */
		assert_true((int32_t)(stamp.life - node->next_life[f]) > 0);
		node->next_life[f] = stamp.life;
		node->next[f] = 0;
		node->end_next[f] = 0;
	}
	/* T1: in order, once; holes only where something failed. */
	if (node->lost_ok)
		assert_true(stamp.sequence >= node->next[f]);
	else
		assert_int_equal(stamp.sequence, node->next[f]);
	node->next[f] = stamp.sequence + 1;
	node->begun++;
	node->done_before = node->done;
	if (node->discard) {
		inbound->stop = node->stop;
		return;
	}
	if (node->limit != 0 && length > node->limit)
		length = node->limit;
	received = calloc(1, sizeof(*received));
	assert_non_null(received);
	received->bytes = malloc(length + 16);
	assert_non_null(received->bytes);
	memset(received->bytes + length, 0xa5, 16);
	received->length = length;
	received->where = stamp.where;
	received->from = f;
	received->sequence = stamp.sequence;
	received->node = node;
	received->scatter = scatter_perhaps(node->network, length);
	inbound->memory = received->scatter != NULL ? map_of_vector(received->scatter->vector)
						    : map_of_piece(received->bytes, length);
	inbound->context = received;
	inbound->want_end = true;
}

static void upcall_end(void *context, void *inbound_context, enum transport_fail why);

static void upcall_whole(void *context, struct process from, const void *header,
	uint32_t header_length, const void *data, uint32_t length)
{
	const struct record record = {
		.header = header, .header_length = (uint8_t)header_length, .extent = length};
	struct inbound inbound = {0};

	upcall_begin(context, from, &record, &inbound);
	map_copy_in(&inbound.memory, 0, data, inbound.memory.length);
	if (inbound.want_end)
		upcall_end(context, inbound.context, TRANSPORT_OK);
}

static void upcall_end(void *context, void *inbound_context, enum transport_fail why)
{
	struct node *node = context;
	struct received *received = inbound_context;
	unsigned i;

	assert_ptr_equal(received->node, node);
	if (received->scatter != NULL) {
		scatter_read(received->scatter, received->bytes);
		scatter_free(received->scatter);
	}
	for (i = 0; i < 16; i++)
		assert_int_equal(received->bytes[received->length + i], 0xa5);
	if (why == TRANSPORT_OK) {
		assert_memory_equal(received->bytes, node->network->pattern + received->where,
			received->length);
		node->bytes += received->length;
		node->ended++;
	} else {
		node->ended_badly++;
	}
	received->node = NULL;
	free(received->bytes);
	free(received);
}

/* Messages in several frames end in order; one of which little is wanted ends at once. */
static void upcall_end_ordered(void *context, void *inbound_context, enum transport_fail why)
{
	struct node *node = context;
	const struct received *received = inbound_context;
	uint64_t *next = &node->end_next[received->from];

	if (why == TRANSPORT_OK && node->limit == 0) {
		assert_true(received->sequence >= *next);
		*next = received->sequence + 1;
	}
	upcall_end(context, inbound_context, why);
}

static void upcall_done(void *context, struct message *message, enum transport_fail why)
{
	struct sent *sent = (struct sent *)(void *)message;
	struct node *node = context;

	assert_ptr_equal(sent->node, node);
	sent->node = NULL;
	if (why == TRANSPORT_OK)
		node->done++;
	else
		node->failed[why]++;
	node->missing += message->missing;
	if (sent->memory != NULL)
		memset(sent->memory, 0xee, sent->message.memory.length);
	if (sent->scatter != NULL) {
		scatter_write(sent->scatter, sent->memory);
		scatter_free(sent->scatter);
	}
	free(sent->memory);
	free(sent);
}

static void upcall_ping(void *context, struct ping *ping)
{
	struct node *node = context;

	assert_in_range(ping->outcome, PING_ANSWERED, PING_CLOSED);
	node->pings_ended++;
}

static void upcall_name(void *context, struct name_query *query)
{
	struct node *node = context;

	assert_in_range(query->outcome, NAME_FOUND, NAME_CLOSED);
	node->names_ended++;
}

static void upcall_duplicate(void *context, const uint8_t *address)
{
	struct node *node = context;

	memcpy(node->duplicate, address, sizeof(node->duplicate));
	node->duplicates++;
}

static void upcall_stranger(void *context, struct process process, unsigned version)
{
	struct node *node = context;

	node->stranger = process;
	node->stranger_version = version;
	node->strangers++;
}

void network_ping(struct network *network, unsigned from, unsigned to, struct ping *ping)
{
	struct node *node = &network->nodes[from];

	ping->to = network->nodes[to].self;
	if (ping->timeout == 0)
		ping->timeout = SECOND;
	ping->outcome = (enum ping_outcome) - 1;
	transport_ping(node->transport, ping);
}

/* Sends data that is in place: those of the pattern at an offset. */
static void sent_post(
	struct network *network, unsigned from, unsigned to, struct sent *sent, uint64_t where)
{
	struct node *node = &network->nodes[from];
	const struct stamp stamp = {
		.from = from,
		.life = node->incarnation,
		.sequence = node->sent[to]++,
		.where = where,
	};

	sent->node = node;
	sent->message.header_length = sizeof(stamp);
	/* Bytes behind a header, perhaps of the last message, do not count. */
	memset(sent->message.header, 0xa5, sizeof(sent->message.header));
	memcpy(sent->message.header, &stamp, sizeof(stamp));
	transport_send(node->transport, network->nodes[to].self, &sent->message);
}

void network_send_from(
	struct network *network, unsigned from, unsigned to, uint8_t *memory, uint64_t length)
{
	uint64_t where = network_random(network) % (NETWORK_PATTERN - length + 1);
	struct sent *sent = calloc(1, sizeof(*sent));

	assert_non_null(sent);
	memcpy(memory, network->pattern + where, length);
	sent->message.memory =
		(struct map){.start = (uintptr_t)memory, .vector = MAP_MEMORY, .length = length};
	sent_post(network, from, to, sent, where);
}

void network_send(struct network *network, unsigned from, unsigned to, uint64_t length)
{
	uint64_t where = network_random(network) % (NETWORK_PATTERN - length + 1);
	struct sent *sent = calloc(1, sizeof(*sent));

	assert_non_null(sent);
	sent->memory = malloc(length + 1);
	assert_non_null(sent->memory);
	memcpy(sent->memory, network->pattern + where, length);
	sent->message.memory = map_of_piece(sent->memory, length);
	sent->scatter = scatter_perhaps(network, length);
	if (sent->scatter != NULL) {
		scatter_write(sent->scatter, sent->memory);
		memset(sent->memory, 0xee, length);
		sent->message.memory = map_of_vector(sent->scatter->vector);
	}
	sent_post(network, from, to, sent, where);
}

void ethernet_write(uint8_t *bytes, const uint8_t *to, const uint8_t *from)
{
	memmove(bytes + FRAME_ADDRESS_BYTES, from, FRAME_ADDRESS_BYTES);
	memcpy(bytes, to, FRAME_ADDRESS_BYTES);
	bytes[12] = FRAME_ETHERTYPE >> 8;
	bytes[13] = FRAME_ETHERTYPE & 255;
}

/* --- life */

static uint64_t network_clock(void *context)
{
	struct network *network = context;

	if (network->faults.behind == 0)
		return network->now;
	return network->now - network_random(network) % network->faults.behind;
}

void node_start(struct network *network, unsigned index, uint32_t incarnation)
{
	struct node *node = &network->nodes[index];
	struct transport_upcalls upcalls = {.message_whole = upcall_whole,
		.message_begin = upcall_begin,
		.message_end = upcall_end_ordered,
		.message_done = upcall_done,
		.ping_done = upcall_ping,
		.name_done = upcall_name,
		.duplicate = upcall_duplicate,
		.stranger = upcall_stranger,
		.context = node};
	struct transport_options options = network->options;

	options.self = node->self;
	options.encapsulation.address = node->self.nid;
	options.incarnation = incarnation;
	options.seed = network_random(network);
	node->incarnation = incarnation;
	node->dead = false;
	memset(node->sent, 0, sizeof(node->sent));
	memset(node->next, 0, sizeof(node->next));
	memset(node->end_next, 0, sizeof(node->end_next));
	node->transport =
		transport_create(&options, &node->port, &network->clock, &upcalls, &node->counters);
	assert_non_null(node->transport);
}

bool network_is_udp(void)
{
	return getenv("TEST_ENCAP") != NULL && strcmp(getenv("TEST_ENCAP"), "udp") == 0;
}

/* The same tests run over every encapsulation. */
static void encapsulation_choose(struct encapsulation_options *options)
{
	const char *vlan = getenv("TEST_VLAN");

	options->udp = network_is_udp();
	options->vlan = vlan != NULL ? (uint16_t)atoi(vlan) : 0;
	options->prefix = 24;
}

/* And they run with frames in one piece and in two. */
static void gather_choose(struct port *port)
{
	port->gathers = getenv("TEST_GATHER") != NULL;
	port->guards = true;
	port->gather_bytes = GATHER_BYTES;
}

/* The last network's, for the next one: to make and to clear it takes longer than most tests. */
static struct rte_mempool *spare;

static struct rte_mempool *pool_of(unsigned mbufs, uint32_t frame_size)
{
	static unsigned pools;
	struct rte_mempool *pool = spare;
	char name[32];

	spare = NULL;
	if (pool && pool->size == mbufs &&
		rte_pktmbuf_data_room_size(pool) == RTE_PKTMBUF_HEADROOM + frame_size)
		return pool;
	rte_mempool_free(pool);
	snprintf(name, sizeof(name), "network%u", pools++);
	return eal_pool(name, mbufs, frame_size);
}

struct network *network_create(unsigned nodes, uint64_t seed, uint32_t frame_size, unsigned mbufs)
{
	struct network *network = calloc(1, sizeof(*network));
	unsigned i;

	assert_non_null(network);
	eal_start();
	network->random = seed;
	network->now = network_random(network) % (20 * SECOND);
	network->clock = (struct clock){network_clock, network};
	network->faults.delay = 5 * MICROSECOND;
	network->count = nodes;
	network->pool = pool_of(mbufs, frame_size);
	assert_non_null(network->pool);
	network->pattern = malloc(NETWORK_PATTERN);
	assert_non_null(network->pattern);
	for (i = 0; i < NETWORK_PATTERN; i += 8) {
		uint64_t word = network_random(network);

		memcpy(network->pattern + i, &word, 8);
	}
	network->simulated = calloc(1, sizeof(*network->simulated));
	assert_non_null(network->simulated);
	sim_clock_init(&network->simulated->clock);
	star_init(&network->simulated->star, &(struct star_settings){0}, nodes,
		&network->simulated->clock, seed);
	network->simulated->star.deliver = parcel_deliver;
	network->simulated->star.frame_copy = frame_bytes;
	network->simulated->star.frame_free = frame_free;
	network->simulated->star.context = network;
	network->options.peer_timeout = 10 * SECOND;
	network->options.peers_max = 1024;
	network->options.first_psn = 0;
	network->options.full_checksum = !getenv("TEST_CHECKSUM");
	encapsulation_choose(&network->options.encapsulation);
	for (i = 0; i < nodes; i++) {
		struct node *node = &network->nodes[i];

		node->network = network;
		node->index = i;
		node->self = (struct process){NID_FIRST + i, 7};
		node->port.operations = &node_operations;
		node->port.pool = network->pool;
		node->port.frame_size = frame_size;
		gather_choose(&node->port);
		node->port.receive_frames = QUEUE_FRAMES;
		node->port.address[0] = 2;
		node->port.address[5] = (uint8_t)i;
		node->queue_size = QUEUE_FRAMES;
		node->queue = calloc(node->queue_size, sizeof(node->queue[0]));
		assert_non_null(node->queue);
		node->arrived = calloc(node->queue_size, sizeof(node->arrived[0]));
		assert_non_null(node->arrived);
	}
	return network;
}

static void node_drain(struct node *node)
{
	while (node->head != node->tail)
		rte_pktmbuf_free(node->queue[node->head++ % node->queue_size]);
}

void node_kill(struct network *network, unsigned index)
{
	struct node *node = &network->nodes[index];

	/* Its farewell is lost: nobody hears of its end. */
	node->cut = true;
	node->dead = true;
	transport_close(node->transport);
	node->transport = NULL;
	node->cut = false;
	node_drain(node);
}

uint64_t network_seed(void)
{
	const char *text = getenv("TEST_SEED");

	return text != NULL ? strtoull(text, NULL, 0) : 1;
}

struct network *network_standard(unsigned nodes, uint64_t seed)
{
	struct network *network = network_create(nodes, seed, NETWORK_FRAME, NETWORK_MBUFS);

	printf("seed %llu\n", (unsigned long long)seed);
	return network;
}

struct network *network_guarded(void)
{
	struct network *network = network_standard(3, network_seed());

	network->options.secret =
		(struct secret){{network_random(network), network_random(network)}};
	node_start(network, 0, NETWORK_LIFE);
	node_start(network, 1, NETWORK_LIFE);
	return network;
}

struct network *network_acquainted(void)
{
	struct network *network = network_guarded();

	network_send(network, 0, 1, 8);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	return network;
}

void network_start(struct network *network)
{
	unsigned i;

	for (i = 0; i < network->count; i++)
		node_start(network, i, 1);
}

void network_destroy(struct network *network)
{
	unsigned i;

	for (i = 0; i < network->count; i++)
		if (network->nodes[i].transport != NULL)
			node_kill(network, i);
	while (sim_clock_step(&network->simulated->clock))
		;
	for (i = 0; i < network->count; i++)
		node_drain(&network->nodes[i]);
	assert_int_equal(rte_mempool_avail_count(network->pool), network->pool->size);
	for (i = 0; i < network->count; i++) {
		free(network->nodes[i].queue);
		free(network->nodes[i].arrived);
	}
	rte_mempool_free(spare);
	spare = network->pool;
	free(network->pattern);
	star_free(&network->simulated->star);
	sim_clock_free(&network->simulated->clock);
	free(network->simulated);
	free(network);
}

/* --- time */

static uint64_t nodes_turn(struct network *network)
{
	uint64_t wait = UINT64_MAX;
	unsigned i;

	for (i = 0; i < network->count; i++) {
		struct node *node = &network->nodes[i];
		uint64_t deadline;

		if (node->transport == NULL) {
			node_drain(node);
			continue;
		}
		if (network->faults.stall != 0 && chance(network, 0.0005))
			node->stalled_until =
				network->now + network_random(network) % network->faults.stall;
		if (network->now < node->stalled_until) {
			if (node->stalled_until - network->now < wait)
				wait = node->stalled_until - network->now;
			continue;
		}
		transport_receive(node->transport);
		transport_process(node->transport);
		transport_transmit(node->transport);
		deadline = transport_deadline(node->transport);
		if (node->head != node->tail)
			deadline = 0;
		if (deadline < wait)
			wait = deadline;
	}
	return wait;
}

/* A turn takes some time, so that nothing happens infinitely often at once. */
#define TURN_TIME 200

static void step_until(struct network *network, uint64_t end)
{
	uint64_t wait = nodes_turn(network);
	uint64_t next = wait == UINT64_MAX ? end : network->now + wait;
	struct sim_clock *clock = &network->simulated->clock;
	uint64_t least;

	if (next < network->now + TURN_TIME)
		next = network->now + TURN_TIME;
	if (next > end)
		next = end;
	least = RTE_MIN(network->now + TURN_TIME, next);
	network->delivered = false;
	while (!network->delivered && sim_clock_next(clock) <= next)
		sim_clock_step(clock);
	if (network->delivered)
		next = RTE_MAX(clock->now, least);
	while (sim_clock_next(clock) <= next)
		sim_clock_step(clock);
	network->now = next;
}

void network_step(struct network *network)
{
	step_until(network, network->now + SECOND);
}

const struct peer *network_peer(const struct network *network, unsigned from, unsigned to)
{
	static const struct peer nobody;
	const struct peer *peer =
		peer_table_search(&network->nodes[from].transport->peers, network->nodes[to].self);

	return peer ? peer : &nobody;
}

bool network_settled(const struct network *network)
{
	unsigned i;

	for (i = 0; i < network->count; i++) {
		const struct node *node = &network->nodes[i];

		if (node->transport != NULL &&
			(!transport_settled(node->transport) || node->head != node->tail))
			return false;
	}
	return network->simulated->star.in_transit == 0;
}

bool network_run(struct network *network, uint64_t ns)
{
	uint64_t end = network->now + ns;

	while (network->now < end) {
		step_until(network, end);
		if (network_settled(network))
			return true;
	}
	return false;
}

void network_pass(struct network *network, uint64_t ns)
{
	uint64_t end = network->now + ns;

	while (network->now < end)
		step_until(network, end);
}

void network_check(const struct network *network)
{
	uint64_t sent = 0;
	uint64_t done = 0;
	uint64_t begun = 0;
	uint64_t ended = 0;
	unsigned i;
	unsigned j;

	for (i = 0; i < network->count; i++) {
		for (j = 0; j < network->count; j++)
			sent += network->nodes[i].sent[j];
		done += network->nodes[i].done;
		begun += network->nodes[i].begun;
		ended += network->nodes[i].ended;
	}
	assert_int_equal(done, sent);
	assert_int_equal(begun, sent);
	assert_int_equal(ended, sent);
}

#define LIKELY 20 /* times on average: without any, the fault does not work */

static void fault_check(const struct network *network, double probability, uint64_t times)
{
	if (probability * (double)network->frames > LIKELY)
		assert_int_not_equal(times, 0);
}

void network_check_faults(const struct network *network)
{
	const struct star_counters *counters = &network->simulated->star.counters;

	fault_check(network, network->faults.loss, counters->dropped);
	fault_check(network, network->faults.duplicate, counters->duplicated);
	fault_check(network, network->faults.reorder, counters->reordered);
	fault_check(network, network->faults.corrupt, counters->corrupted);
}
