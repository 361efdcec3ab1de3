/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.h - what a poll core does with messages and commands: one engine per port.
 *
 * The thread that polls it owns it: in PTL_PROGRESS=core a poll thread, in PTL_PROGRESS=inline
 * the thread that holds its progress lock (host/progress.h).
 *
 * A turn is
 *
 *     frames in -> commands -> process frames (match, place, log) -> frames out
 *               -> timers, acknowledgements
 *
 * E1. Commands that were posted before a frame arrived take effect before the frame is processed:
 *     so a program that attaches a descriptor and then tells a peer of it is never too late.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <base/core.h>
#include <engine/command.h>
#include <engine/segment.h>

struct report;

struct engine;

#define SPACES 8 /* of an engine at most */

struct engine_options {
	struct segment *segment;
	uint32_t interface; /* for handles */
	uint32_t uid;       /* this process's user */
	struct port *port;
	const struct clock *clock;
	struct transport_options transport;
};

/* How the requests of a space find their memory. */
enum space_kind {
	SPACE_LISTS, /* by access control and the match lists of Portals */
	SPACE_TIERS  /* by two tiers of match lists, whose entry decides */
};

/* Options of a further space. The first space is SPACE_LISTS and has none. */
struct space_options {
	enum space_kind kind;
	struct segment *segment; /* of its own, with limits.further */
	uint32_t interface;      /* for handles; another one for each space of an engine */
	uint32_t uid;
	bool ranked; /* SPACE_TIERS: processes have ranks */
	/* SPACE_TIERS: of two-sided messages, which are stores and loads. An answer to a store may
	 * wait as an acknowledgement does, for the end of a turn that is put off to the next call;
	 * so it leaves in the frame of what the program sends. An answer that says nothing is none
	 * that a peer gives, and atomics are refused: no event would tell of either. */
	bool two_sided;
	/* SPACE_TIERS with ranks: how many there may be, and how many headers are kept of each at a
	 * time, at first (unexpected.h, U4); 0: there is no such bound. shares: with one, zeros at
	 * first; the poll core writes how many headers more than those each rank may use, until the
	 * space closes. */
	uint32_t ranks, kept_share;
	_Atomic uint32_t *shares;
	/* two_sided, with shares: the count of what is sent to rank 0 (credit.h). That of each
	 * further rank lies credit_step bytes behind the one before. NULL: nothing is counted,
	 * answers alone tell of shares, and nothing is fetched for messages that are kept. */
	struct credit *credits;
	size_t credit_step;
	/* SPACE_TIERS with ranks, not two_sided: what messages of strangers bring as their cookie;
	 * others are for an earlier life of this process, and it is not there. 0: any. */
	uint32_t life;
};

/* NULL when there is no memory. The engine has one space, number 0, of the options' segment, whose
 * ring takes the commands of all spaces; a segment without Portals is no space. Port, segment and
 * clock stay the caller's. */
struct engine *engine_create(const struct engine_options *options);
/* Ends every operation in flight with a FAIL event (transport_fail SHUTDOWN), then frees the
 * engine. */
void engine_destroy(struct engine *engine);

/* Spaces, for the thread that owns the engine. number: 1 to SPACES - 1, of a space that is not open
 * yet. Returns false when there is no memory. The segment stays the caller's. */
bool engine_space_open(struct engine *engine, uint32_t number, const struct space_options *options);
/* Ends an open space other than 0: it takes no message and no command any more. Returns true when
 * nothing of it is in flight: its segment is not looked at again. Else turns of the engine, and
 * further calls, follow until it does. */
bool engine_space_close(struct engine *engine, uint32_t number);

/* The calling thread owns the engine and its transport from here on, as the thread that has made it
 * does at first. Debug builds assert in every other function that their owner is calling. */
void engine_own(struct engine *engine) CORE_API(engine_own);

/* One turn; returns how much was done (0: nothing). */
unsigned engine_poll(struct engine *engine);
/* The same for a thread that waits for events and drives the engine itself: when a turn has brought
 * some, nothing stands between it and them. The turn's last part, timers and acknowledgements that
 * may wait, is then left to the next call, which begins with it. */
unsigned engine_look(struct engine *engine);
/* After engine_execute(): what it has begun leaves at once, before all else. Frames are taken only
 * if that was not done for a while, or nothing could leave. */
void engine_push(struct engine *engine);
/* Carries out one command at once, after those that were posted before it: for PTL_PROGRESS=inline,
 * by the thread that owns the engine. Returns false if nothing was done, because there is no memory
 * for an operation or a command posted earlier cannot be seen yet; the ring is the place for the
 * command. engine_push() follows. */
bool engine_execute(struct engine *engine, const struct command *command);
/* The same for a put, without a command. region: move->region's, which is below the limit of that
 * space, which is open. Returns false if nothing was done, because commands wait that were posted
 * before, there is no operation left, or the region is dead or inactive. */
bool engine_put(struct engine *engine, uint32_t space, struct region *region,
	const struct move *move, bool acknowledge) CORE_API(engine_put);
/* The same for an RMA operation of a space with tiers; given: what follows its words in a
 * COMMAND_RMA, if it has operands or copied data. Returns false if nothing was done, because
 * commands wait that were posted before, or there is no operation left. */
bool engine_rma(struct engine *engine, uint32_t space, const struct move *move,
	const struct rma_line *line, const void *given) CORE_API(engine_rma);
/* The same for a COMMAND_RECEIVE. Returns false if nothing was done, because commands wait that
 * were posted before. */
bool engine_receive(struct engine *engine, uint32_t space, const struct command *receive)
	CORE_API(engine_receive);
/* The same for a COMMAND_LETTER with these data. Returns false also if there is no operation left.
 */
bool engine_letter(struct engine *engine, uint32_t space, const struct command *letter,
	const void *data) CORE_API(engine_letter);
/* ns until engine_poll() must run again if no frame and no command comes. */
uint64_t engine_deadline(const struct engine *engine);
/* Takes the commands that are there, and then transport_await() of all messages but words of
 * credit: when one of two ends closes, the other one needs none. */
void engine_await(struct engine *engine);
/* Is nothing in flight? An interface about to close polls until then, or for as long as linger.h
 * says. */
bool engine_settled(const struct engine *engine);
/* The port's descriptor to sleep on (port.h); -1: it has none, or off. */
int engine_interrupt(struct engine *engine, bool on);
/* Does a process that frames came from lately need the caller's CPU (port.h)? false: not known. */
bool engine_shares_cpu(struct engine *engine);
/* Commands waiting in the ring? */
bool engine_has_commands(const struct engine *engine);

/* Asks the network whether another process has this one's name; if so, the user is warned. Before
 * it is polled. */
void engine_claim(struct engine *engine);

const struct transport *engine_transport(const struct engine *engine);

/* For looking inside, by the thread that owns the engine. */
/* Carries out every command whose posting had returned, as far as there is memory for operations. A
 * turn follows. */
void engine_catch_up(struct engine *engine);
/* Writes how many commands, as lines of the ring, and operations there are: members of an object
 * that is open. */
void engine_tell_queues(const struct engine *engine, struct report *report);
/* The same of a match list. space is open, portal below its limit. */
void engine_tell_list(
	const struct engine *engine, uint32_t space, uint32_t portal, struct report *report);
/* The same of a Portal. Returns the handle of its queue, 0: none. space is open and has tiers,
 * portal is below its limit. */
uint64_t engine_tell_portal(
	const struct engine *engine, uint32_t space, uint32_t portal, struct report *report);
/* When the last turn began. */
uint64_t engine_turn(const struct engine *engine);

#endif
