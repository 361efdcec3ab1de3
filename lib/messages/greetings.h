/* SPDX-License-Identifier: BSD-3-Clause */
/* greetings.h - the greetings that a front end with peers that come and go has received and not yet
 * answered, and those that it has sent and that are under way. The caller has the front end's lock.
 *
 * G1. At most GREETINGS_MAX greetings wait, and at most ANSWERS_MAX answers are under way. Of both,
 *     a node has at most a quarter of the places that are left, so no host keeps out the greetings
 *     of others, nor do twelve together. A greeting beyond that is dropped. Its sender repeats it.
 * G2. greetings_answer() answers the greetings that wait when it begins. A greeting that comes
 *     meanwhile waits for the next call, so peers that greet without end do not keep the program in
 *     the call.
 * G3. What a greeting costs does not grow with those that are kept: a table counts what each node
 *     has. The nodes' places in the table depend on a random number.
 */
#ifndef MESSAGES_GREETINGS_H
#define MESSAGES_GREETINGS_H

#include <base/list.h>
#include <messages/messages.h>

#define GREETINGS_MAX 4096u
#define ANSWERS_MAX   8192u

/* What a node has of the places. */
struct greeting_node {
	struct link link; /* of its list of nodes */
	uint32_t nid;
	uint32_t waiting, answers;
};

struct greetings {
	struct link *nodes; /* G3: lists of those that have places; NULL: there were none yet */
	uint64_t key;
	struct link waiting, sent;
	uint32_t waiting_count;
	uint32_t answers; /* among those sent */
};

/* A greeting that was received. */
struct kept_greeting {
	struct link link;
	struct greeting_node *node;
	struct process from;
	uint64_t words[3];
};

void greetings_init(struct greetings *greetings);
/* Drops all. */
void greetings_close(struct greetings *greetings);
/* G1. Keeps a greeting that was received. Returns false if it is to be dropped. */
bool greetings_keep(
	struct greetings *greetings, struct process from, const struct greeting *greeting);
/* G2. Calls answer() for each greeting that waits. */
void greetings_answer(struct greetings *greetings,
	void (*answer)(void *owner, const struct kept_greeting *kept), void *owner);
/* Sends a greeting. asks: it is no answer, and its third word is a token that is not 0. Returns
 * false if the space is closed or there is no memory. */
bool greetings_send(struct greetings *greetings, struct messages *messages, struct process to,
	const uint64_t words[3], bool asks);
/* Frees a greeting that was sent and has ended. Returns its token; 0: it was an answer. */
uint64_t greetings_ended(struct greetings *greetings, struct greeting *greeting);

#endif
