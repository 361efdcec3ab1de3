/* SPDX-License-Identifier: BSD-3-Clause */
/* model.h - what must come out: every put and get of a run, and every event that it may and must
 * cause.
 *
 * The model knows both ends of a task. It gives each its own range of memory at either end, so that
 * every byte has one owner:
 *
 *     before the first event   the source holds the task's pattern, the destination poison
 *     SEND_END, GET_END        the source is poisoned: a node that reads it later sends poison
 *     PUT_END, REPLY_END       the destination holds the pattern; it is checked, and poisoned again
 *     when it is given again   it must still be poison: a late write is found
 *
 * I1. Each task has at most one START, one END or FAIL after it, at each end; at most one ACK,
 * after its send's end.
 * I2. STARTs of one process at another come in the order in which the tasks were issued.
 * I3. FAIL comes only where a party was in trouble (node.h) since the task was issued, and to gets
 * that are discarded. A task to a
 *     process that was restarted may fail for that, how ever late, until one to it has ended well.
 * I4. When all is quiet, each task has ended; a put that was sent and did not start is in the
 * target's drop count, and
 *     nothing else is.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <portals.h>
#include <base/extent.h>
#include <sim/node.h>

#define PORTAL_WINDOW 0 /* one large descriptor, offsets are the initiator's */
#define PORTAL_SLAB   1 /* descriptors in a row, filled one after another */
#define PORTAL_POSTED 2 /* one descriptor for one task */
#define PORTAL_EMPTY  3
#define PORTAL_SILENT 4 /* one descriptor without events, for silent processes to get (silent.h) */
#define PORTALS       5

#define SLABS            3
#define SLAB_MESSAGE_MAX 16384
#define SLAB_BYTES       65536

#define TASK_LIFE_SHIFT  48 /* match bits: life of the target, then the task's number */
#define TASK_NUMBER_MASK ((UINT64_C(1) << TASK_LIFE_SHIFT) - 1)
#define POISON           0xa5
#define GUARD            64 /* bytes of poison kept after each range */
#define RANGE_ALIGN      64
/* bytes that a range takes beside its own, at most */
#define RANGE_MORE (GUARD + RANGE_ALIGN)

enum task_class {
	TASK_WINDOW,
	TASK_SLAB,
	TASK_POSTED,
	TASK_UNMATCHED, /* nothing there */
	TASK_NO_PORTAL, /* index beyond the table */
	TASK_NO_COOKIE
};

enum task_seen {
	SEEN_START = 1, /* at the initiator: SEND_START, REPLY_START */
	SEEN_END = 2,
	SEEN_FAIL = 4,
	SEEN_ACK = 8,
	SEEN_UNLINK = 16,
	TARGET_START = 32,
	TARGET_END = 64,
	TARGET_FAIL = 128,
	TARGET_UNLINK = 256
};

struct task {
	uint64_t number; /* from 1, in the order of issue */
	bool get;
	bool acknowledged; /* PTL_ACK_REQ */
	uint8_t class;
	uint16_t seen;
	uint32_t initiator;
	uint32_t target;
	uint32_t initiator_life;
	uint32_t target_life;
	uint64_t length;
	uint64_t expected;      /* bytes that are moved */
	uint64_t near;          /* offset of its range in the initiator's memory */
	uint64_t far;           /* and in the target's; EXTENT_NONE: none of its own */
	ptl_handle_md_t md;     /* the initiator's */
	ptl_handle_md_t far_md; /* TASK_POSTED */
	ptl_seq_t near_link;
	ptl_seq_t far_link;
	uint64_t issued;
	uint64_t ended;   /* at the initiator */
	uint64_t arrived; /* at the target */
	bool finished;    /* the initiator's descriptor is gone */
};

struct slab {
	ptl_handle_md_t md; /* 0: none */
	uint8_t *memory;
	uint64_t offset;
	uint64_t order; /* of attaching */
};

/* What a node's program has. */
struct program {
	uint64_t window_bytes;
	uint64_t source_bytes;
	uint8_t *window;
	uint8_t *source;
	struct extent_map *window_map;
	struct extent_map *source_map;
	uint64_t window_peak; /* bytes used at some time */
	uint64_t source_peak;
	ptl_handle_md_t window_md;
	struct slab slabs[SLABS];
	uint64_t slab_order;
	uint32_t outstanding; /* own tasks that have not finished */
	uint64_t last_end;    /* when a task of its own ended last, ns */
	uint64_t issued;      /* tasks, of the workload */
};

struct model {
	struct simulation *simulation;
	uint64_t window_bytes; /* of each node, */
	uint64_t source_bytes;
	bool one_target; /* or only of node 0, which sends nothing */
	bool slabs;
	uint8_t *silent; /* the memory of PORTAL_SILENT; NULL: there are no silent processes */
	struct task **chunks;
	uint64_t count;      /* tasks issued */
	uint64_t unfinished; /* whose initiator lives and waits */
	uint64_t failed;     /* FAIL events */
	/* ns, the longest from a crash until a task failed that was under way then, or was issued
	 * before anybody can have known, between nodes that had met */
	uint64_t noticed;
	uint64_t dropped; /* puts that did not start, without trouble */
	uint64_t bytes;   /* that arrived whole */
	/* last started task of each pair of nodes: open addressing, key initiator + 1 << 32 |
	 * target */
	uint64_t *pair_keys;
	uint64_t *pair_last;
	uint64_t *pair_met; /* lives of initiator and target of which a task has ended well */
	uint64_t pair_mask;
	uint64_t pair_count;
	void (*finished)(struct task *task, struct node *initiator); /* upcall to the workload */
};

void model_init(struct model *model, struct simulation *simulation, uint64_t window_bytes,
	uint64_t source_bytes, bool slabs, bool silent);
void model_free(struct model *model);
struct task *model_task(const struct model *model, uint64_t number); /* NULL: there is none */

/* A node begins a life, being entered, or has ended one. */
void model_begin(struct model *model, struct node *node);
void model_end(struct model *model, struct node *node);

/* After trouble, so long may pass until everybody knows of it. */
uint64_t model_grace(const struct model *model);
/* A node's trouble was over at `ended`, two graces ago. Acknowledgements that it or its partners
 * owed in the first of these may have failed: they wait behind messages that were under way during
 * the trouble, and fail with them. */
void model_trouble_over(struct model *model, const struct node *node, uint64_t ended);

/* Issues a put or get now. Returns NULL if there is no room for it, at either end. The initiator is
 * not entered. */
struct task *model_issue(struct model *model, struct node *initiator, struct node *target,
	enum task_class class, bool get, bool acknowledge, uint64_t length);
/* A node, which is entered, has read an event. */
void model_event(struct model *model, struct node *node, const ptl_event_t *event);
/* All is quiet: nothing may be missing. */
void model_finish(struct model *model);

#endif
