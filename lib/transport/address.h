/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - where a process lives, and which life of it (address.c). */
#ifndef TRANSPORT_ADDRESS_H
#define TRANSPORT_ADDRESS_H

#include <transport/internal.h>

/* Answers to strangers. */
#define ANSWER_NS_PER_BYTE 8 /* as much as a link of 1 Gbit/s carries */
#define ANSWER_BURST       (2 * MILLISECOND)

/* May an answer of so many bytes go? *paid: until when those before have used up their share, which
 * fills with time. */
static inline bool answer_spend(const struct transport *transport, uint64_t *paid, uint32_t bytes)
{
	uint64_t from = RTE_MAX(*paid, transport->now);

	if (from - transport->now > ANSWER_BURST)
		return false;
	*paid = from + (uint64_t)bytes * ANSWER_NS_PER_BYTE;
	return true;
}

/* A frame came in the own name from another life, or another MAC address claims the own IPv4
 * address. */
void address_duplicate(struct transport *transport, const uint8_t *from);

/* The psn that this life of the process is told to begin its streams to this one with, in a
 * generation of such psns (peer.h I5). */
uint32_t address_first_of(const struct transport *transport, struct process process,
	uint32_t incarnation, uint32_t generation);
/* Of which generation is the psn that the frame says its sender's stream begins with? peer: the
 * life that sent it, NULL: it has begun no stream. Returns false if a stream that begins with it is
 * not taken: no psn of the last two or of the peer's last stream, or one before it (peer.h I5). */
bool address_generation(const struct transport *transport, const struct peer *peer,
	const struct frame_header *frame, uint32_t *generation);
/* The same in the present generation. */
static inline uint32_t address_first(
	const struct transport *transport, struct process process, uint32_t incarnation)
{
	return address_first_of(transport, process, incarnation, transport->generation);
}
/* A peer is new: takes the hint that there is for it. */
void address_look_up(const struct transport *transport, struct peer *peer);
/* Nothing goes to the peer any more before it has answered. */
void address_lose(struct transport *transport, struct peer *peer);
/* A message, or a ping, waits for the peer's address. */
void address_ask(struct transport *transport, struct peer *peer);
/* A stream to the peer begins: an answer to what it was asked before does not speak of that. */
void address_ask_anew(struct transport *transport, struct peer *peer);
/* A frame says that the peer's life or address is another, or nothing is heard of it any more: it
 * is asked. from: where the frame came from; NULL: there is none. */
void address_challenge(struct transport *transport, struct peer *peer, const uint8_t *from);
/* A challenged peer that has not answered is still silent: one more question, to everybody.
 * Thousands of silent peers must not fill the network with questions. */
void address_challenge_still(struct transport *transport, struct peer *peer);
uint64_t address_due(const struct peer *peer);
/* Is it known that no process has the peer's name now? */
bool address_absent(const struct transport *transport, const struct peer *peer);
/* Why messages fail that waited for an answer in vain. */
enum transport_fail address_failure(const struct transport *transport, const struct peer *peer);
/* A question is due. Returns false if the peer is to count as unreachable. */
bool address_run(struct transport *transport, struct peer *peer);
/* A question for this process. */
void address_asked(
	struct transport *transport, const struct frame_header *frame, const uint8_t *from);
/* A question for another process, which came to this one alone. */
void address_asked_for_another(
	struct transport *transport, const struct frame_header *frame, const uint8_t *from);
/* Does the frame bear the number of the question that the peer is asked? */
bool address_asks(const struct transport *transport, const struct peer *peer,
	const struct frame_header *frame);
/* Somebody who knows the question's number says that no process has the peer's name. */
void address_denied(struct transport *transport, struct peer *peer);
/* Is FRAME_TELL from a peer the answer to its question? Then it is not asked any more. */
bool address_answered(
	struct transport *transport, struct peer *peer, const struct frame_header *frame);
/* A frame that proves itself came from there. */
void address_learn(struct transport *transport, struct peer *peer, const uint8_t *from);
/* The peer has told the psn that streams to it begin with. */
void address_psn(const struct transport *transport, struct peer *peer, uint32_t first);
/* All that messages to the peer's life need is known. */
void address_complete(struct transport *transport, struct peer *peer);
/* The way to a process that was asked for leads over this MAC address. */
void address_hop(struct transport *transport, struct process process, const uint8_t *hop);

#endif
