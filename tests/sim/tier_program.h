/* SPDX-License-Identifier: BSD-3-Clause */
/* tier_program.h - what the parts of tiers.h share: calls, which both ends see, and the program of
 * a node's life with its plain lists.
 *
 *     tiers.c          lives with their memory and queues, and the end
 *     tier_program.c   what a program does at random, and what it reads
 *     tier_watch.c     stands between the engine's parts, and asks the plain lists
 *     tier_flight.c    messages in progress, and the memory that they change
 *     tier_memory.c    memory that comes and goes
 */
#ifndef SIM_TIER_PROGRAM_H
#define SIM_TIER_PROGRAM_H

#include <engine/amo.h>
#include <engine/rma.h>
#include <host/submission.h>
#include <sim/plain.h>
#include <sim/tier_memory.h>
#include <sim/tiers.h>

#define SPACE     5
#define INTERFACE 1 /* in handles */
#define REGIONS   128
#define FLIGHTS   512
#define TASKS_MAX 1000000

/* The region that a call gets its data from, or puts what it gets into. */
struct rma_end {
	uint32_t region, generation;
	uint32_t log;
	uint64_t counter;
	uint16_t counts;
	uint8_t flags;
	bool all; /* it is all of memory: offsets in it are addresses */
	struct plain_queue *queue;
};

struct rma_task {
	uint64_t number;
	uint32_t initiator, initiator_life;
	uint32_t target, target_life;
	bool known;      /* its initiator knew that life when it began: task_knows() */
	uint8_t message; /* MESSAGE_STORE, MESSAGE_LOAD, MESSAGE_ATOMIC, MESSAGE_FETCH */
	uint16_t amo;    /* of the last two */
	uint8_t operand[AMO_SIZE_MAX];
	uint8_t want;
	uint64_t length;
	uint64_t bytes; /* of source memory: */
	uint64_t near;  /* where what is got comes to, or else where the data are */
	uint64_t data;  /* where the data of a fetch are */
	uint64_t issued;
	uint64_t begun;  /* order; 0: not yet */
	uint64_t moment; /* of memory, when it began */
	bool copied;     /* its data came with the command */
	bool absent;     /* its data were not there: it does not leave */
	bool fault;      /* it failed for its target's memory, or void, and its target knows */
	struct rma_end end;
	struct rma_end source; /* of a fetch's data; perhaps the same */
	bool triggered;
	bool delivered;
	uint32_t life; /* of its target that got it */
	bool tainted;  /* a load whose memory others wrote to */
	struct plain_decision decision;
	uint8_t *expected; /* of a load or a fetch */
	bool sent, answered, told;
	bool silent;   /* its target does not answer */
	bool over;     /* it has had its last event */
	bool released; /* its regions were */
	bool given;    /* and its memory was given back */
};

/* A message in progress at a target. */
struct flight {
	const void *name;
	struct rma_task *task;
	uint64_t start, moved;
	uint64_t moment; /* of memory, when it began */
	bool store;
	bool tainted;
};

struct tier_program {
	struct tiers *tiers;
	struct node *node;
	uint32_t life;
	struct segment *segment;
	struct submission submission;
	struct plain plain;
	struct tier_memory arena, source;
	uint8_t *shadow;                  /* of the arena: what messages have brought */
	uint64_t entry_at[PLAIN_ENTRIES]; /* where an entry's memory is */
	uint64_t entry_bytes[PLAIN_ENTRIES];
	bool entry_taken[PLAIN_ENTRIES];
	uint32_t generations[PLAIN_ENTRIES];
	struct plain_wish wishes[PLAIN_ENTRIES];
	uint8_t entry_tiers[PLAIN_ENTRIES];
	struct rma_task *regions[REGIONS];
	struct flight flights[FLIGHTS];
	uint32_t changes;              /* triggered ones of counters */
	uint32_t triggered;            /* commands that wait */
	uint8_t before[AMO_BYTES_MAX]; /* what an atomic that is carried out just now found */
};

struct tiers {
	struct simulation *simulation;
	struct prng prng;
	uint64_t steps, interval, size_max;
	uint64_t *left;
	bool ranked;
	struct process *map;
	struct tier_program **programs;
	struct rma_task **tasks;
	uint64_t count;
	uint64_t begun;
	uint64_t moment;  /* of memory */
	uint64_t *last;   /* begun, of the last call from a node's life that another got */
	uint64_t *met;    /* lives of which a call has ended well, */
	uint64_t *met_at; /* and when the last one did */
};

#define FAIL(program, ...) simulation_fail((program)->tiers->simulation, __VA_ARGS__)

/* --- tier_flight.c */

/* Ends the simulation with what is wrong with a call. */
void task_wrong(const struct tier_program *program, const struct rma_task *task, const char *what,
	uint64_t value);
/* The element of a table for each sender and receiver. */
uint64_t *task_pair(const struct tiers *tiers, uint64_t *pairs, const struct rma_task *task);
/* The lives of both, as one number. */
uint64_t task_lives(const struct rma_task *task);
/* Does the initiator know the target's life, so that a call which begins now reaches that one or
 * none? A call to it has ended well, and no party was in trouble since: a peer that does not answer
 * is given up, and a message to it goes to the life that answers next. */
bool task_knows(const struct tiers *tiers, const struct rma_task *task);
/* Was a party in trouble (J2)? */
bool task_may_fail(const struct tiers *tiers, const struct rma_task *task);
/* Bytes of an operand, which come before an atomic's data. */
uint64_t task_operand(const struct rma_task *task);
/* A call's bytes, but an operand. */
void pattern_write(const struct rma_task *task, uint8_t *bytes, uint64_t length);
/* What a message has left in memory: */
enum store_left {
	LEFT_ALL,  /* its bytes */
	LEFT_SOME, /* of its bytes some, in their places */
	LEFT_ANY   /* others were written there meanwhile */
};
/* A message to this memory is over. */
void store_look(struct tier_program *program, const struct rma_task *task, uint64_t start,
	uint64_t moved, enum store_left left);
/* Was memory of an initiator missing since a call began, that its data are in, or that an answer
 * goes to? Of a life that is over it is not known. */
bool task_missed(const struct tiers *tiers, const struct rma_task *task, enum memory_access access);
/* Others in progress that share memory with a message no longer know what they move. Returns true
 * if there are such. */
bool flights_taint(struct tier_program *program, uint64_t start, uint64_t moved, bool store);
/* Are bytes of this memory being stored? Some of them may be there. */
bool flights_store(const struct tier_program *program, uint64_t start, uint64_t bytes);
/* The message that the engine calls by this name, or NULL. */
struct flight *flight_find(struct tier_program *program, const void *name);
/* Keeps what a load finds now. Returns true if a message in progress may change it meanwhile. */
bool load_expect(struct tier_program *program, struct rma_task *task);
/* An atomic that was accepted, before and after it is carried out. */
void atomic_expect(struct tier_program *program, struct rma_task *task);
void atomic_look(struct tier_program *program, struct rma_task *task);
/* A message has begun to move. */
void flight_begin(
	struct tier_program *program, const void *name, struct rma_task *task, bool store);

/* --- tier_program.c */

/* Submits a command and waits for its answer. */
enum answer program_ask(struct tier_program *program, struct command *command);
/* Does one thing at random. */
void program_act(struct tier_program *program);
/* Reads up to limit events of a queue, each as it must be. */
void program_events_read(struct tier_program *program, unsigned number, uint64_t limit);
/* Compares all counters. */
void program_counters_look(struct tier_program *program);
/* Disables or enables one. */
void program_portal_change(struct tier_program *program, uint32_t index);
/* Gives back regions and memory of calls that have ended. */
void program_calls_reap(struct tier_program *program);

#endif
