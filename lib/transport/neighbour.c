/* SPDX-License-Identifier: BSD-3-Clause */
/* neighbour.c - see neighbour.h. */
#include <transport/neighbour.h>

#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include <transport/outbox.h>
#include <wire/arp.h>

#define SETS   256 /* a power of two */
#define WAYS   4
#define MEMORY (60 * SECOND) /* how long an address that was learnt is good */
/* how old it is asked for again when something contradicts it */
#define VERIFY_AGE       (1 * SECOND)
#define ASK_FIRST_WAIT   (1 * MILLISECOND)
#define ASK_LAST_DOUBLES 10 /* so a question a second at last */
/* After a pause of more than the longest wait questions begin anew. */
#define ASK_PAUSE (ASK_FIRST_WAIT << ASK_LAST_DOUBLES)

struct neighbour {
	uint32_t address; /* IPv4; 0: nobody */
	uint8_t hardware[FRAME_ADDRESS_BYTES];
	bool known;
	uint8_t asks;          /* without an answer */
	uint64_t used;         /* last question or answer */
	uint64_t learnt;       /* when known */
	uint64_t ask_due;      /* the next question not before */
	struct process wanted; /* who the last question was for */
};

struct neighbours {
	struct neighbour sets[SETS][WAYS];
};

struct neighbours *neighbours_create(void)
{
	return calloc(1, sizeof(struct neighbours));
}

void neighbours_free(struct neighbours *neighbours)
{
	free(neighbours);
}

static struct neighbour *neighbour_set(struct transport *transport, uint32_t address)
{
	return transport->neighbours->sets[(address * 0x9e3779b1u) >> 24 & (SETS - 1)];
}

static struct neighbour *neighbour_lookup(struct transport *transport, uint32_t address)
{
	struct neighbour *set = neighbour_set(transport, address);

	for (unsigned i = 0; i < WAYS; i++)
		if (set[i].address == address)
			return &set[i];
	return NULL;
}

static struct neighbour *neighbour_make(struct transport *transport, uint32_t address)
{
	struct neighbour *set = neighbour_set(transport, address);
	struct neighbour *oldest = set;

	for (unsigned i = 1; i < WAYS && oldest->address != 0; i++)
		if (set[i].address == 0 || set[i].used < oldest->used)
			oldest = &set[i];
	memset(oldest, 0, sizeof(*oldest));
	oldest->address = address;
	return oldest;
}

const uint8_t *neighbour_find(struct transport *transport, uint32_t address)
{
	const struct neighbour *neighbour;

	/* Another process of this node, behind the same port. */
	if (address == transport->encapsulation.options.address)
		return transport->port->address;
	neighbour = neighbour_lookup(transport, address);
	if (!neighbour || !neighbour->known || transport->now - neighbour->learnt > MEMORY)
		return NULL;
	return neighbour->hardware;
}

/* --- messages */

static void arp_send(struct transport *transport, struct arp *arp, const uint8_t *to)
{
	const struct encapsulation *encapsulation = &transport->encapsulation;
	struct rte_mbuf *mbuf = outbox_begin(transport, NULL);
	uint32_t at;

	if (!mbuf)
		return;
	memcpy(arp->sender, transport->port->address, FRAME_ADDRESS_BYTES);
	at = encapsulation_link(encapsulation, rte_pktmbuf_mtod(mbuf, void *), to, ARP_ETHERTYPE);
	arp_write(rte_pktmbuf_mtod_offset(mbuf, void *, at), arp);
	outbox_put_bytes(transport, mbuf, at + ARP_FRAME);
}

void neighbour_ask(struct transport *transport, uint32_t address, struct process wanted)
{
	struct neighbour *neighbour = neighbour_lookup(transport, address);
	struct arp question = {.sender_address = transport->encapsulation.options.address,
		.target_address = address};

	if (address == 0 || address == transport->encapsulation.options.address)
		return;
	if (!neighbour)
		neighbour = neighbour_make(transport, address);
	if (transport->now - neighbour->used > ASK_PAUSE)
		neighbour->asks = 0;
	neighbour->wanted = wanted;
	neighbour->used = transport->now;
	if (transport->now < neighbour->ask_due)
		return;
	neighbour->ask_due = transport->now + (ASK_FIRST_WAIT << neighbour->asks);
	if (neighbour->asks < ASK_LAST_DOUBLES)
		neighbour->asks++;
	COUNT(transport, arps_sent);
	arp_send(transport, &question, broadcast);
}

/* A probe names no sender, so that nobody learns from it what may be wrong. */
void neighbour_probe(struct transport *transport)
{
	struct arp probe = {.target_address = transport->encapsulation.options.address};

	COUNT(transport, arps_sent);
	arp_send(transport, &probe, broadcast);
}

const uint8_t *neighbour_confirm(
	struct transport *transport, uint32_t address, const uint8_t *from, struct process process)
{
	const uint8_t *hardware = neighbour_find(transport, address);
	const struct neighbour *neighbour;

	if (!hardware) {
		neighbour_ask(transport, address, process);
		return from;
	}
	if (memcmp(hardware, from, FRAME_ADDRESS_BYTES) == 0)
		return hardware;
	neighbour = neighbour_lookup(transport, address);
	if (neighbour && transport->now - neighbour->learnt >= VERIFY_AGE)
		neighbour_ask(transport, address, process);
	return hardware;
}

static void arp_answer(struct transport *transport, const struct arp *question)
{
	struct arp answer = {.answer = true,
		.sender_address = transport->encapsulation.options.address,
		.target_address = question->sender_address};

	memcpy(answer.target, question->sender, FRAME_ADDRESS_BYTES);
	COUNT(transport, arps_answered);
	arp_send(transport, &answer, question->sender);
}

static enum neighbour_result neighbour_learn(struct transport *transport,
	struct neighbour *neighbour, const uint8_t *hardware, struct neighbour_told *told)
{
	bool asked = neighbour->asks > 0;

	memcpy(neighbour->hardware, hardware, FRAME_ADDRESS_BYTES);
	neighbour->known = true;
	neighbour->asks = 0;
	neighbour->used = transport->now;
	neighbour->learnt = transport->now;
	told->wanted = neighbour->wanted;
	memcpy(told->hardware, hardware, FRAME_ADDRESS_BYTES);
	return asked ? NEIGHBOUR_FOUND : NEIGHBOUR_NOTHING;
}

/* I2: which messages may teach. An answer does when a question is out; a question or an
 * announcement (which asks for the sender's own address) comes from one who is about to talk, or
 * has moved. */
enum neighbour_result neighbour_receive(struct transport *transport, const void *bytes,
	const struct outer *outer, struct neighbour_told *told)
{
	uint32_t own = transport->encapsulation.options.address;
	enum neighbour_result result = NEIGHBOUR_NOTHING;
	struct neighbour *neighbour;
	struct arp arp;

	if (!arp_read((const uint8_t *)bytes + outer->at, outer->length, outer->from, &arp)) {
		COUNT(transport, dropped_arp);
		return NEIGHBOUR_NOTHING;
	}
	if (arp.sender_address == own) {
		COUNT(transport, dropped_arp);
		memcpy(told->hardware, arp.sender, FRAME_ADDRESS_BYTES);
		return memcmp(arp.sender, transport->port->address, FRAME_ADDRESS_BYTES) == 0
			       ? NEIGHBOUR_NOTHING
			       : NEIGHBOUR_DUPLICATE;
	}
	COUNT(transport, arps_received);
	neighbour =
		arp.sender_address == 0 ? NULL : neighbour_lookup(transport, arp.sender_address);
	if (neighbour && (!arp.answer || neighbour->asks > 0))
		result = neighbour_learn(transport, neighbour, arp.sender, told);
	else if (arp.answer)
		COUNT(transport, dropped_arp);
	if (!arp.answer && arp.target_address == own)
		arp_answer(transport, &arp);
	return result;
}
