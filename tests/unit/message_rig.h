/* SPDX-License-Identifier: BSD-3-Clause */
/* message_rig.h - two ends of one process send and receive, over loopbacks, for tests of
 * lib/messages. TEST_PROGRESS, TEST_FAULT: other ways to make progress, and losses.
 *
 * CASE() opens both ends before a case and closes them afterwards. A case of CASE_OPEN() opens them
 * itself.
 */
#ifndef MESSAGE_RIG_H
#define MESSAGE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <base/clock.h>
#include <base/random.h>
#include <engine/amo.h>
#include <engine/state.h>
#include <messages/state.h>
#include <wire/message.h>

#include "../nap.h"

#define EAGER   1024
#define LONG    100000
#define SECONDS (20 * SECOND)

#define CASE(name)      cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CASE_OPEN(name) cmocka_unit_test_teardown(name, teardown)

/* A message and what became of it. */
struct letter {
	struct transfer message;
	unsigned done;
};

extern struct messages *ends[2];
extern struct process ids[2];
extern uint64_t words_told[2];
extern bool hostile;   /* end 1: end 0 may report its failure */
extern uint32_t spare; /* headers of ends that are opened */
extern uint64_t block; /* bytes of each of their blocks; 0: as usual */
/* A message is done; NULL: nobody wants to know. */
extern void (*letter_ended)(struct letter *letter);
/* A message has been placed in the buffer of a receive for many. */
extern void (*part_taken)(struct transfer *many, const struct transfer *message);

/* --- both ends */

void ends_open(uint64_t memory, uint32_t headers);
/* strangers: peers come and go, and these two know each other. */
void ends_open_as(bool strangers, uint64_t memory, uint32_t headers, uint32_t eager);
int setup(void **state);
/* Also behind a test that has failed, or has closed both itself. */
int teardown(void **state);
void word_told(void *owner, uint32_t peer, uint64_t word);
/* Enters the segment of an end, until visit_leave() of its visit. */
void end_visit(unsigned end);
/* An end refuses fetches, or serves them again. */
void fetches_let(unsigned end, bool served);

/* --- messages */

void post_send(struct letter *letter, unsigned from, uint64_t bits, const void *data,
	uint64_t length, bool synchronous);
void post_receive(struct letter *letter, unsigned at, uint64_t bits, uint64_t ignore, void *data,
	uint64_t room);
/* Sends from an end to either. */
void send_as(struct letter *letter, unsigned from, uint32_t to, const struct send_wish *wish);
void receive_as(struct letter *letter, unsigned at, const struct receive_wish *wish);
/* Of end 1. */
bool probe_from(uint32_t peer, uint64_t bits, struct message_found *found);
struct unexpected *take_from(uint32_t peer, uint64_t bits, struct message_found *found);
/* End 1 stores to the side Portal of end 0, or loads from it, what it likes. */
void forge(struct move move, struct rma_line line);
/* Data of a message. */
void fill(char *data, uint64_t length, unsigned seed);
/* Messages of each kind of length arrive: before and after their receive, synchronous and not. */
void lengths_arrive(void);

/* --- credit */

/* Of what was sent to a peer, what it has kept, or not answered. */
static inline uint64_t peer_kept(const struct peer *peer)
{
	return peer->credit.sent - peer->credit.placed;
}
/* As if the peer had told that it has taken all. */
static inline void peer_credit(struct peer *peer)
{
	peer->credit.credited = peer_kept(peer);
	peer->credit.freed = peer->freed = peer->credit.sent;
}

/* --- what a case waits for */

/* Both ends work until look() is true of `context`. */
void settle(bool (*look)(void *context), void *context);
void letter_settle(struct letter *letter);
bool letter_look(void *context);
/* Of an end. */
bool nothing_flies(void *context);
bool nothing_pends(void *context);
bool nothing_is_shown(void *context);
bool message_shown(void *context);
extern struct unexpected *shown; /* by message_shown(), or NULL */

#endif
