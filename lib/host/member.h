/* SPDX-License-Identifier: BSD-3-Clause */
/* member.h - an interface as a member of a job: its card, and what others' cards say. Any thread.
 */
#ifndef HOST_MEMBER_H
#define HOST_MEMBER_H

#include <host/visitor.h>
#include <job/card.h>

/* A number of this machine, until it starts again, and of a node on it. */
uint32_t member_locality(const char *node) CORE_API(member_locality);
/* The card of a front end's interface. False: the handle is none. */
bool member_card(const struct front *front, uint64_t interface, struct card *card)
	CORE_API(member_card);
/* What a card says of where its process is. Nothing if the interface is not open any more. */
void member_knows(const struct front *front, uint64_t interface, const struct card *card)
	CORE_API(member_knows);
/* Does a process answer an echo question within so many ns? True as well if the interface is not
 * open any more. */
bool member_answers(const struct front *front, uint64_t interface, struct process process,
	uint64_t timeout) CORE_API(member_answers);
/* The same of one that may answer in its own calls only: true also if it is silent, unless the port
 * knows that the process is not there. */
bool member_lives(const struct front *front, uint64_t interface, struct process process,
	uint64_t timeout) CORE_API(member_lives);

#endif
