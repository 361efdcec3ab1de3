/* SPDX-License-Identifier: BSD-3-Clause */
/* member.h - an interface as a member of a job: its card, and what others' cards say. Any thread.
 */
#ifndef HOST_MEMBER_H
#define HOST_MEMBER_H

#include <host/visitor.h>
#include <job/job.h>

/* What processes on a network have alike if they reach each other (struct card); node: its name. 0
 * on Ethernet, where that is not known. */
uint32_t member_locality(enum card_network network, const char *node) CORE_API(member_locality);
/* The card of a front end's interface. False: the handle is none. */
bool member_card(const struct front *front, uint64_t interface, struct card *card)
	CORE_API(member_card);
/* What a card says of where its process is. Nothing if the interface is not open any more. */
void member_knows(const struct front *front, uint64_t interface, const struct card *card)
	CORE_API(member_knows);
/* Sets what a front end sets of a watch (job/job.h). A rank counts as alive if it answers an echo
 * question, or if the interface is not open any more. Where this process answers in its own calls
 * only, so may the others: there a silent rank is alive, too, unless the port knows that it is not
 * there. */
void member_watch(const struct front *front, uint64_t interface, struct watch *watch)
	CORE_API(member_watch);

#endif
