/* SPDX-License-Identifier: BSD-3-Clause */
/* switch_rig.h - posternd's switch in a thread, over a loop instead of a card, and frames of its
 * processes: this one, as root and as another user. */
#ifndef TESTS_SWITCH_RIG_H
#define TESTS_SWITCH_RIG_H

#include "glue_fixture.h"

#include <pmd-glue/switch.h>
#include <wire/frame.h>

#include "apps/node/attest.h"

#define NID     7u
#define FAR_NID 8u
#define NOBODY  65534u
#define ROOM    8u

/* What a frame claims. */
struct claim {
	uint32_t nid, pid, uid;
	uint32_t to_nid, to_pid;
	uint32_t life, to_life;
	uint8_t kind;       /* of the message */
	uint8_t address;    /* added to its last byte */
	uint16_t ethertype; /* 0: Postern's */
	bool damaged;
};

extern char card_name[32];          /* of the "card" */
extern struct port *far;            /* the other end of the wire */
extern bool card_deaf;              /* the "card" takes nothing, */
extern unsigned card_room;          /* but so many of the first frames that are more, */
extern unsigned card_took[2];       /* of processes with even and odd ids, */
extern _Atomic unsigned card_turns; /* for so many turns */
extern unsigned user_most;          /* options of the next switch */
extern uint64_t return_time;
extern struct switch_state *the_switch;
extern _Atomic pid_t rig_thread; /* the switch's, for the system */
extern enum switch_verdict (*attest_by)(
	const uint8_t *frame, uint32_t length, struct switch_identity *who);

int rig_start(void **state);
int rig_finish(void **state);
/* After each case. What a test has left that failed: the next ones find nothing of it but its
 * clients. */
int rig_clean(void **state);
void need_root(void);
/* A switch, which goes on at once, or with rig_go_on(). */
void rig_begin(void);
void rig_begin_stopped(void);
void rig_go_on(void);
void rig_pause(void);
void rig_end(void);
struct switch_count rig_look(void);
/* The switch looks for what comes once a millisecond. */
void rig_look_until(bool (*enough)(const struct switch_count *count));
/* The port of a process: of this user, or of another. */
struct port *open_as(uint32_t pid);
struct port *open_user(uint32_t pid, uid_t uid);
struct rte_mbuf *claim_make(struct port *port, const struct claim *claim, uint8_t fill);
struct claim honest(const struct port *port, uint32_t to_nid, uint32_t to_pid);
void send_to(struct port *port, uint32_t nid, uint32_t pid, uint8_t fill);
/* Sends as many to process 1, which takes none. A process drops what the switch does not take in
 * time. */
void flood(struct port *port, unsigned count);
/* Does a frame carry this? */
bool frame_carries(const struct rte_mbuf *frame, uint8_t fill);
void expect(struct port *port, uint8_t fill);

#endif
