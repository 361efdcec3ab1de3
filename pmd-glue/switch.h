/* SPDX-License-Identifier: BSD-3-Clause */
/* switch.h - what posternd does: it forwards frames between a port and the processes of a machine,
 * each of which has a pair (pair.h) with it. See client.h for how a process comes in.
 *
 * One thread calls all functions but switch_look() and switch_stop().
 *
 * W1. What a process sends is copied before anything of it is looked at. Only a frame that names
 *     this node, the process's id and its user leaves; each other one is dropped and counted. A
 *     process id is one process's, for as long as it is connected.
 * W2. No process waits for another: a full pair loses frames, as a full switch does. Frames of
 *     other users find it full when a quarter of its slots or of its bulk is taken, and those of
 *     the port when three quarters are, so they crowd nobody out. A user of whose frames more than
 *     32 in 1 ms were dropped (W1) or found others' pairs full rests for 1 ms: nothing is taken
 *     from his processes. If he does so again within 16 ms after a rest, the next one is twice as
 *     long, up to 64 ms. So who is attacked has the CPU for other things. Nobody rests for what a
 *     stranger can make him send: a wrong name, or as many frames to a process that does not take
 *     them as it has sent itself.
 * W3. Users take turns at sending, 32 frames each, and so do the processes of a user. While the
 *     port takes nothing, up to 64 frames of a user are held for it, and only he waits. A user has
 *     at most 256 processes, and at most 16 connections that have said nothing, for 1 s each. Idle
 *     processes cost the others nothing (C2 of clients.h).
 * W4. Nothing of the state is needed after a restart: processes call again (G1 of client.h).
 * W5. A frame for a process that is not here leaves by the port, also when it names this node:
 *     another process may have a socket of its own there.
 * W6. A process that ends without a word is answered for: a peer that still sends to its life is
 *     told that the life is over, once the process has been away for 100 ms, in which it might have
 *     called again. The switch remembers four of those lives for each process id modulo 256. In the
 *     same way it answers questions for process ids of this node that nobody here has, but not
 *     before return_time, in which those may call again whom an earlier switch served. That is a
 *     hint: the process may have a socket of its own, and answer, too (W5).
 */
#ifndef PMD_GLUE_SWITCH_H
#define PMD_GLUE_SWITCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <pmd-glue/client.h>

/* Why a frame of a process is dropped: X(constant, name). */
#define SWITCH_DROPS(X)                                                                            \
	X(SWITCH_FOREIGN, "not_postern")   /* another protocol or VLAN */                          \
	X(SWITCH_MALFORMED, "malformed")   /* its header or its records are wrong */               \
	X(SWITCH_ADDRESS, "other_address") /* it claims another MAC address, */                    \
	X(SWITCH_NID, "other_nid")         /* node id, */                                          \
	X(SWITCH_PID, "other_pid")         /* process id, */                                       \
	X(SWITCH_UID, "other_uid")         /* or user, */                                          \
	X(SWITCH_NAME, "other_name")       /* or gives another name for its host */

enum switch_verdict {
	SWITCH_FINE,
#define X(constant, name) constant,
	SWITCH_DROPS(X)
#undef X
		SWITCH_VERDICTS
};

#define FAREWELL_BYTES 96u

struct port;

/* Who a process is. */
struct switch_identity {
	uint32_t nid;
	uint32_t pid;
	uint32_t uid;
	uint8_t address[6];
	uint16_t vlan;
	uint32_t life; /* as its frames say; 0: it has sent none */
};

struct switch_options {
	struct port *port; /* the switch closes it */
	const char *name;  /* of the port, as users write it */
	uint32_t nid;
	uint16_t vlan;
	uint32_t at; /* where a frame without a tag names its receiver: node id, process id */
	uint16_t ethertype;
	mode_t mode;          /* of the socket */
	gid_t group;          /* its group; (gid_t)-1: as it is */
	unsigned user_most;   /* processes of a user, up to CLIENTS_OF_USER; 0: as many */
	uint64_t return_time; /* ns; W6 */
	/* Looks at a frame of a process, which nobody else can change, and learns its life. */
	enum switch_verdict (*attest)(
		const uint8_t *frame, uint32_t length, struct switch_identity *who);
	/* Writes an answer of up to FAREWELL_BYTES to a frame for a process that is not here (W6),
	 * and returns its bytes; 0: there is none. */
	uint32_t (*farewell)(const uint8_t *frame, uint32_t length,
		const struct switch_identity *ended, uint8_t *answer);
};

struct switch_state;

/* NULL after an error line; then the port stays the caller's. */
struct switch_state *switch_open(const struct switch_options *options);
/* Forwards until switch_stop(), and may be called again; sleeps while there is nothing to do. */
void switch_run(struct switch_state *state);
/* Any thread, and signal handlers. */
void switch_stop(struct switch_state *state);
void switch_close(struct switch_state *state);

/* What the switch has done, and for whom. */
struct switch_count {
	uint64_t from_port, to_port; /* frames */
	uint64_t between;            /* frames from a process to a process */
	uint64_t unknown;            /* frames of the port for no process here */
	uint64_t full;               /* frames that a process did not take */
	uint64_t lost;               /* frames that the port did not take */
	uint64_t rested;             /* rests of users (W2) */
	uint64_t farewells;          /* answers for processes that are not here */
	uint64_t dropped[SWITCH_VERDICTS];
	uint64_t refused[CLIENT_VERDICTS];
	uint64_t broken; /* processes that broke the rules of their pairs */
	unsigned users, processes;
};
struct switch_process {
	uint32_t pid;
	uint32_t uid;
	pid_t process;           /* the system's number */
	uint64_t sent, received; /* frames */
	uint64_t dropped, full;  /* frames: of it, and for it */
};
/* Any thread. Writes up to `room` processes from number `first` on, in no order; returns how many,
 * or -1 if the switch has not answered within a second. */
int switch_look(struct switch_state *state, struct switch_count *count,
	struct switch_process *processes, unsigned first, unsigned room);

#endif
