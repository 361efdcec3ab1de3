/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - see model.h. */
#include <sim/model.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sim/report.h>
#include <sim/silent.h>
#include <sim/workload.h>

#define UNNOTICED      (50 * MILLISECOND) /* after a crash: nobody can know of it yet */
#define CHUNK_TASKS    4096
#define CHUNKS_MAX     65536
#define PAIRS_AT_START 1024
#define NOTHING        4096 /* bytes of memory that is not used */
#define TRUNCATED_BY   100  /* bytes that a posted descriptor is too short by, at most */

uint64_t model_grace(const struct model *model)
{
	return 2 * model->simulation->peer_timeout + SECOND;
}

static struct program *program_of(const struct node *node)
{
	return node->program;
}

static struct node *model_node(const struct model *model, uint32_t number)
{
	return &model->simulation->nodes[number];
}

struct task *model_task(const struct model *model, uint64_t number)
{
	if (number == 0 || number > model->count)
		return NULL;
	return &model->chunks[(number - 1) / CHUNK_TASKS][(number - 1) % CHUNK_TASKS];
}

static struct task *task_new(struct model *model)
{
	uint64_t chunk = model->count / CHUNK_TASKS;
	struct task *task;

	if (!model->chunks[chunk])
		model->chunks[chunk] = report_memory(calloc(CHUNK_TASKS, sizeof(struct task)));
	model->count++;
	task = model_task(model, model->count);
	task->number = model->count;
	return task;
}

void model_init(struct model *model, struct simulation *simulation, uint64_t window_bytes,
	uint64_t source_bytes, bool slabs, bool silent)
{
	*model = (struct model){
		.simulation = simulation,
		.window_bytes = window_bytes,
		.source_bytes = source_bytes,
		.slabs = slabs,
		.pair_mask = PAIRS_AT_START - 1,
	};
	model->chunks = report_memory(calloc(CHUNKS_MAX, sizeof(*model->chunks)));
	model->pair_keys = report_memory(calloc(PAIRS_AT_START, sizeof(uint64_t)));
	model->pair_last = report_memory(calloc(PAIRS_AT_START, sizeof(uint64_t)));
	model->pair_met = report_memory(calloc(PAIRS_AT_START, sizeof(uint64_t)));
	if (silent)
		model->silent = report_memory(calloc(1, SILENT_BYTES));
}

static void program_free(struct node *node)
{
	struct program *program = program_of(node);

	if (!program)
		return;
	for (unsigned i = 0; i < SLABS; i++)
		free(program->slabs[i].memory);
	extent_destroy(program->window_map);
	extent_destroy(program->source_map);
	free(program->window);
	free(program->source);
	free(program);
	node->program = NULL;
}

void model_free(struct model *model)
{
	for (uint32_t i = 0; i < model->simulation->node_count; i++)
		program_free(model_node(model, i));
	for (unsigned i = 0; i < CHUNKS_MAX && model->chunks[i]; i++)
		free(model->chunks[i]);
	free(model->chunks);
	free(model->pair_keys);
	free(model->pair_last);
	free(model->pair_met);
	free(model->silent);
}

/* --- pairs */

static uint64_t pair_find(struct model *model, uint64_t key)
{
	uint64_t at = prng_mix(key) & model->pair_mask;

	while (model->pair_keys[at] != 0 && model->pair_keys[at] != key)
		at = (at + 1) & model->pair_mask;
	if (model->pair_keys[at] == 0) {
		model->pair_keys[at] = key;
		model->pair_count++;
	}
	return at;
}

static void pairs_grow(struct model *model)
{
	uint64_t *keys = model->pair_keys, *last = model->pair_last, *met = model->pair_met;
	uint64_t mask = model->pair_mask, at;

	model->pair_mask = mask * 2 + 1;
	model->pair_keys = report_memory(calloc(model->pair_mask + 1, sizeof(uint64_t)));
	model->pair_last = report_memory(calloc(model->pair_mask + 1, sizeof(uint64_t)));
	model->pair_met = report_memory(calloc(model->pair_mask + 1, sizeof(uint64_t)));
	model->pair_count = 0;
	for (uint64_t i = 0; i <= mask; i++)
		if (keys[i]) {
			at = pair_find(model, keys[i]);
			model->pair_last[at] = last[i];
			model->pair_met[at] = met[i];
		}
	free(keys);
	free(last);
	free(met);
}

/* May move pair_last and pair_met: to be called before they are looked at. */
static uint64_t pair_of(struct model *model, const struct task *task)
{
	if (model->pair_count * 2 > model->pair_mask)
		pairs_grow(model);
	return pair_find(model, (uint64_t)(task->initiator + 1) << 32 | task->target);
}

/* I2 */
static void pair_started(struct model *model, const struct task *task)
{
	uint64_t at = pair_of(model, task);
	uint64_t *last = &model->pair_last[at];

	if (*last >= task->number)
		simulation_fail(model->simulation,
			"task %" PRIu64
			" of node %u started at node %u after its later task %" PRIu64,
			task->number, task->initiator, task->target, *last);
	*last = task->number;
}

static uint64_t task_lives(const struct task *task)
{
	return (uint64_t)task->initiator_life << 32 | task->target_life;
}

static void pair_meet(struct model *model, const struct task *task)
{
	uint64_t at = pair_of(model, task);

	model->pair_met[at] = task_lives(task);
}

static bool pair_has_met(struct model *model, const struct task *task)
{
	uint64_t at = pair_of(model, task);

	return model->pair_met[at] == task_lives(task);
}

/* --- memory */

static uint64_t pattern_word(const struct task *task, uint64_t word)
{
	return prng_mix(
		task->number * UINT64_C(0x9e3779b97f4a7c15) + word * UINT64_C(0xd1342543de82ef95));
}

static void pattern_write(const struct task *task, uint8_t *bytes, uint64_t length)
{
	uint64_t word;

	for (uint64_t at = 0; at < length; at += 8) {
		word = pattern_word(task, at / 8);
		memcpy(bytes + at, &word, length - at < 8 ? length - at : 8);
	}
}

/* The first byte that differs; length: none. */
static uint64_t pattern_check(const struct task *task, const uint8_t *bytes, uint64_t length)
{
	uint64_t word;

	for (uint64_t at = 0; at < length; at += 8) {
		uint64_t left = length - at < 8 ? length - at : 8;

		word = pattern_word(task, at / 8);
		if (memcmp(bytes + at, &word, left) != 0) {
			for (uint64_t i = 0; i < left; i++)
				if (bytes[at + i] != ((const uint8_t *)&word)[i])
					return at + i;
		}
	}
	return length;
}

/* The first byte that is not `value`; length: none. */
static uint64_t fill_check(const uint8_t *bytes, uint8_t value, uint64_t length)
{
	if (length == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, length - 1) == 0))
		return length;
	for (uint64_t at = 0; at < length; at++)
		if (bytes[at] != value)
			return at;
	return length;
}

static void fill_expect(struct model *model, const struct node *node, const char *what,
	const uint8_t *bytes, uint8_t value, uint64_t length)
{
	uint64_t at = fill_check(bytes, value, length);

	if (at != length)
		simulation_fail(model->simulation,
			"%s of node %u was written to although nobody may: byte %" PRIu64
			" of %" PRIu64,
			what, node->number, at, length);
}

static void poison_expect(struct model *model, const struct node *node, const char *what,
	const uint8_t *bytes, uint64_t length)
{
	fill_expect(model, node, what, bytes, POISON, length);
}

/* Memory that was never taken is still zero, so that it costs none. */
static void peak_raise(
	struct model *model, const struct node *node, uint8_t *bytes, uint64_t *peak, uint64_t end)
{
	if (end <= *peak)
		return;
	fill_expect(model, node, "memory that was never used", bytes + *peak, 0, end - *peak);
	memset(bytes + *peak, POISON, end - *peak);
	*peak = end;
}

/* A range with a guard behind it. */
static uint64_t range_take(struct model *model, struct node *node, bool window, uint64_t length)
{
	struct program *program = program_of(node);
	struct extent_map *map = window ? program->window_map : program->source_map;
	uint8_t *bytes = window ? program->window : program->source;
	uint64_t offset = extent_take(map, length + GUARD);

	if (offset == EXTENT_NONE)
		return EXTENT_NONE;
	peak_raise(model, node, bytes, window ? &program->window_peak : &program->source_peak,
		offset + length + GUARD);
	poison_expect(model, node, window ? "free window memory" : "free source memory",
		bytes + offset, length + GUARD);
	return offset;
}

static void range_give(
	struct model *model, struct node *node, bool window, uint64_t offset, uint64_t length)
{
	struct program *program = program_of(node);
	uint8_t *bytes = (window ? program->window : program->source) + offset;

	poison_expect(model, node,
		window ? "the guard of a window range" : "the guard of a source range",
		bytes + length, GUARD);
	memset(bytes, POISON, length);
	extent_give(window ? program->window_map : program->source_map, offset, length + GUARD);
}

/* --- lives */

static uint64_t life_bits(const struct node *node)
{
	return (uint64_t)node->life << TASK_LIFE_SHIFT;
}

static const ptl_process_id_t anybody = {.nid = PTL_NID_ANY, .pid = PTL_PID_ANY};

static void must(struct model *model, const struct node *node, const char *what, int code)
{
	if (code != PTL_OK)
		simulation_fail(
			model->simulation, "%s of node %u returned %d", what, node->number, code);
}

static ptl_handle_md_t descriptor_attach(struct model *model, struct node *node,
	ptl_pt_index_t portal, ptl_match_bits_t bits, ptl_match_bits_t ignore, const ptl_md_t *md,
	ptl_unlink_t unlink)
{
	ptl_handle_me_t entry;
	ptl_handle_md_t handle = 0;

	must(model, node, "PtlMEAttach",
		PtlMEAttach(
			node->ni, portal, anybody, bits, ignore, unlink, PTL_INS_AFTER, &entry));
	must(model, node, "PtlMDAttach", PtlMDAttach(entry, *md, unlink, PTL_RETAIN, &handle));
	return handle;
}

static void slab_attach(struct model *model, struct node *node, struct slab *slab)
{
	ptl_md_t md = {
		.start = slab->memory,
		.length = SLAB_BYTES,
		.threshold = PTL_MD_THRESH_INF,
		.max_offset = SLAB_BYTES - SLAB_MESSAGE_MAX,
		.options = PTL_MD_OP_PUT,
		.user_ptr = slab,
		.eventq = node->eq,
	};

	slab->offset = 0;
	slab->order = program_of(node)->slab_order++;
	slab->md = descriptor_attach(
		model, node, PORTAL_SLAB, life_bits(node), TASK_NUMBER_MASK, &md, PTL_UNLINK);
}

static struct program *program_make(struct model *model, const struct node *node)
{
	struct program *program = report_memory(calloc(1, sizeof(*program)));

	program->window_bytes = model->one_target && node->number ? NOTHING : model->window_bytes;
	program->source_bytes = model->one_target && !node->number ? NOTHING : model->source_bytes;
	program->window = report_memory(calloc(1, program->window_bytes));
	program->source = report_memory(calloc(1, program->source_bytes));
	for (unsigned i = 0; i < SLABS && model->slabs; i++) {
		program->slabs[i].memory = report_memory(malloc(SLAB_BYTES));
		memset(program->slabs[i].memory, POISON, SLAB_BYTES);
	}
	return program;
}

void model_begin(struct model *model, struct node *node)
{
	struct program *program = program_of(node);
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		.eventq = node->eq,
	};

	if (!program)
		node->program = program = program_make(model, node);
	program->window_map = report_memory(extent_create(program->window_bytes, RANGE_ALIGN));
	program->source_map = report_memory(extent_create(program->source_bytes, RANGE_ALIGN));
	md.start = program->window;
	md.length = program->window_bytes;
	program->window_md = descriptor_attach(
		model, node, PORTAL_WINDOW, life_bits(node), TASK_NUMBER_MASK, &md, PTL_RETAIN);
	for (unsigned i = 0; i < SLABS && model->slabs; i++)
		slab_attach(model, node, &program->slabs[i]);
	md = (ptl_md_t){
		.start = model->silent,
		.length = SILENT_BYTES,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
	};
	if (model->silent)
		descriptor_attach(model, node, PORTAL_SILENT, 0, 0, &md, PTL_RETAIN);
}

/* --- issue */

static bool node_in_trouble(const struct model *model, const struct node *node, uint64_t since)
{
	return node->troubled && (node->trouble_ended == UINT64_MAX ||
					 node->trouble_ended + model_grace(model) >= since);
}

static bool task_may_fail(const struct model *model, const struct task *task)
{
	return node_in_trouble(model, model_node(model, task->initiator), task->issued) ||
	       node_in_trouble(model, model_node(model, task->target), task->issued);
}

static bool task_is_dropped(const struct task *task)
{
	return task->class >= TASK_UNMATCHED;
}

static ptl_match_bits_t task_bits(const struct task *task)
{
	return (uint64_t)task->target_life << TASK_LIFE_SHIFT | task->number;
}

static void posted_attach(struct model *model, struct node *target, struct task *task)
{
	bool cut = task->length > TRUNCATED_BY && prng_chance(&model->simulation->prng, 0.3);
	ptl_md_t md = {
		.start = program_of(target)->window + task->far,
		.length = task->length,
		.threshold = 1,
		.options = (task->get ? PTL_MD_OP_GET : PTL_MD_OP_PUT) | PTL_MD_TRUNCATE,
		.eventq = target->eq,
	};

	if (cut)
		md.length -= prng_between(&model->simulation->prng, 1, TRUNCATED_BY);
	task->expected = md.length;
	node_enter(target);
	task->far_md = descriptor_attach(
		model, target, PORTAL_POSTED, task_bits(task), 0, &md, PTL_UNLINK);
	node_leave(target);
	node_plan(target);
}

static ptl_pt_index_t task_portal(const struct task *task)
{
	static const ptl_pt_index_t portals[] = {
		PORTAL_WINDOW, PORTAL_SLAB, PORTAL_POSTED, PORTAL_EMPTY, PORTALS, PORTAL_WINDOW};

	return portals[task->class];
}

static void task_send(struct model *model, struct node *node, struct task *task)
{
	const struct node *target = model_node(model, task->target);
	ptl_md_t md = {
		.start = program_of(node)->source + task->near,
		.length = task->length,
		.threshold = task->acknowledged ? 2 : 1,
		.eventq = node->eq,
		.user_ptr = task,
	};
	ptl_ac_index_t cookie = task->class == TASK_NO_COOKIE ? 1000 : 0;
	ptl_size_t offset = task->class == TASK_WINDOW ? task->far : 0;
	int code;

	node_enter(node);
	must(model, node, "PtlMDBind", PtlMDBind(node->ni, md, &task->md));
	if (task->get)
		code = PtlGet(
			task->md, target->id, task_portal(task), cookie, task_bits(task), offset);
	else
		code = PtlPut(task->md, task->acknowledged ? PTL_ACK_REQ : PTL_NOACK_REQ,
			target->id, task_portal(task), cookie, task_bits(task), offset,
			~task->number);
	must(model, node, task->get ? "PtlGet" : "PtlPut", code);
	node_leave(node);
	node_plan(node);
}

/* Takes ranges at both ends. Returns false if either has no room. */
static bool task_place(
	struct model *model, struct task *task, struct node *initiator, struct node *target)
{
	task->near = range_take(model, initiator, false, task->length);
	if (task->near == EXTENT_NONE)
		return false;
	task->far = EXTENT_NONE;
	if (task->class != TASK_WINDOW && task->class != TASK_POSTED)
		return true;
	task->far = range_take(model, target, true, task->length);
	if (task->far != EXTENT_NONE)
		return true;
	range_give(model, initiator, false, task->near, task->length);
	return false;
}

struct task *model_issue(struct model *model, struct node *initiator, struct node *target,
	enum task_class class, bool get, bool acknowledge, uint64_t length)
{
	struct task plan = {
		.class = target->up && !target->closing ? (uint8_t) class : TASK_UNMATCHED,
		.get = get,
		.acknowledged = acknowledge && !get,
		.initiator = initiator->number,
		.target = target->number,
		.initiator_life = initiator->life,
		.target_life = target->life,
		.length = length,
		.expected = length,
		.issued = simulation_now(model->simulation),
	};
	struct task *task;

	if (!task_place(model, &plan, initiator, target))
		return NULL;
	task = task_new(model);
	plan.number = task->number;
	*task = plan;
	model->unfinished++;
	program_of(initiator)->outstanding++;
	if (task->class == TASK_POSTED)
		posted_attach(model, target, task);
	if (!get)
		pattern_write(task, program_of(initiator)->source + task->near, length);
	else if (task->far != EXTENT_NONE)
		pattern_write(task, program_of(target)->window + task->far, task->expected);
	task_send(model, initiator, task);
	return task;
}

/* --- events */

static void event_fail(struct model *model, const struct node *node, const ptl_event_t *event,
	const struct task *task, const char *what)
{
	simulation_fail(model->simulation,
		"node %u, event %d of task %" PRIu64 " (%s of %" PRIu64
		" bytes from node %u to node %u, seen %#x): %s",
		node->number, (int)event->type, task->number, task->get ? "get" : "put",
		task->length, task->initiator, task->target, task->seen, what);
}

#define EXPECT(condition, what)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			event_fail(model, node, event, task, what);                                \
			return;                                                                    \
		}                                                                                  \
	} while (0)

/* The initiator needs its descriptor no more. */
static void task_finish(struct model *model, struct node *node, struct task *task)
{
	must(model, node, "PtlMDUnlink after the last event", PtlMDUnlink(task->md));
	if (!task->get)
		range_give(model, node, false, task->near, task->length);
	task->finished = true;
	model->unfinished--;
	program_of(node)->outstanding--;
	program_of(node)->last_end = simulation_now(model->simulation);
	if (model->finished)
		model->finished(task, node);
}

/* A put has ended at the initiator when nothing more can come: a failed or discarded one is never
 * acknowledged. */
static void put_look(struct model *model, struct node *node, struct task *task)
{
	const struct node *target = model_node(model, task->target);
	bool waits = task->acknowledged && (task->seen & SEEN_END) && !(task->seen & SEEN_ACK) &&
		     !task_is_dropped(task) && target->up && target->life == task->target_life;

	if ((task->seen & (SEEN_END | SEEN_FAIL)) && !waits)
		task_finish(model, node, task);
}

static void crash_noticed(struct model *model, const struct task *task)
{
	const struct node *target = model_node(model, task->target);
	uint64_t late = simulation_now(model->simulation) - target->crashed;

	if (!target->up && target->crashed != 0 && task->issued < target->crashed + UNNOTICED &&
		pair_has_met(model, task) && late > model->noticed)
		model->noticed = late;
}

static void event_failed(
	struct model *model, struct node *node, const ptl_event_t *event, struct task *task)
{
	model->failed++;
	if (task->get && event->type == PTL_EVENT_REPLY_FAIL &&
		event->ni_fail_type == PTL_NI_UNDELIVERABLE && task_is_dropped(task))
		return;
	if (event->ni_fail_type == PTL_NI_PEER_RESTARTED &&
		task_lives(task) != (UINT64_C(1) << 32 | 1) && !pair_has_met(model, task))
		return;
	if (event->type == PTL_EVENT_SEND_FAIL)
		crash_noticed(model, task);
	EXPECT(task_may_fail(model, task), "failed without a reason");
	EXPECT(event->ni_fail_type != PTL_NI_OK, "failed with PTL_NI_OK");
}

/* Both ends of a task's START event. */
static void event_started(struct model *model, struct node *node, const ptl_event_t *event,
	struct task *task, uint16_t start, ptl_seq_t *link)
{
	EXPECT(!(task->seen & start), "started twice");
	EXPECT(event->link == event->sequence, "a START's link is not its sequence");
	EXPECT(event->ni_fail_type == PTL_NI_OK, "a START with a failure");
	task->seen |= start;
	*link = event->link;
}

static void event_ended(struct model *model, struct node *node, const ptl_event_t *event,
	struct task *task, uint16_t start, ptl_seq_t link)
{
	uint16_t over = start == SEEN_START ? SEEN_END | SEEN_FAIL : TARGET_END | TARGET_FAIL;
	bool failed = event->type == PTL_EVENT_PUT_FAIL || event->type == PTL_EVENT_GET_FAIL ||
		      event->type == PTL_EVENT_SEND_FAIL || event->type == PTL_EVENT_REPLY_FAIL;

	EXPECT(!(task->seen & over), "ended twice");
	EXPECT(task->seen & start || (failed && task->get && start == SEEN_START),
		"ended without a START");
	EXPECT(event->link == link || !(task->seen & start), "linked to another START");
	if (failed)
		event_failed(model, node, event, task);
	else
		EXPECT(event->ni_fail_type == PTL_NI_OK, "an END with a failure");
	if (!failed && start == SEEN_START)
		pair_meet(model, task);
	task->seen |= failed ? over & (SEEN_FAIL | TARGET_FAIL) : over & (SEEN_END | TARGET_END);
	*(start == SEEN_START ? &task->ended : &task->arrived) = simulation_now(model->simulation);
}

static void payload_expect(struct model *model, const ptl_event_t *event, const struct task *task,
	const uint8_t *bytes)
{
	uint64_t wrong = pattern_check(task, bytes, event->mlength);

	if (wrong != event->mlength)
		simulation_fail(model->simulation,
			"task %" PRIu64 ", a %s of %" PRIu64
			" bytes from node %u to node %u, arrived with a wrong byte at %" PRIu64
			" (%#x)",
			task->number, task->get ? "get" : "put", task->length, task->initiator,
			task->target, wrong, bytes[wrong]);
	model->bytes += event->mlength;
}

static void near_event(
	struct model *model, struct node *node, const ptl_event_t *event, struct task *task)
{
	const struct node *target = model_node(model, task->target);

	/* A node that waited no longer for a dead target's acknowledgement may still find it in the
	 * queue. */
	if (task->finished && event->type == PTL_EVENT_ACK &&
		(target->life != task->target_life || !target->up))
		return;
	EXPECT(!task->finished, "an event after the last");
	EXPECT(event->md_handle == task->md, "of another descriptor");
	EXPECT(event->match_bits == task_bits(task) && event->portal == task_portal(task),
		"with another portal or other match bits");
	switch (event->type) {
	case PTL_EVENT_SEND_START:
		EXPECT(!task->get, "a get does not send");
		event_started(model, node, event, task, SEEN_START, &task->near_link);
		return;
	case PTL_EVENT_SEND_END:
	case PTL_EVENT_SEND_FAIL:
		EXPECT(!task->get, "a get does not send");
		EXPECT(event->mlength == task->length && event->rlength == task->length,
			"another length");
		event_ended(model, node, event, task, SEEN_START, task->near_link);
		put_look(model, node, task);
		return;
	case PTL_EVENT_ACK:
		EXPECT(task->acknowledged && !task_is_dropped(task), "acknowledged for no reason");
		EXPECT(!(task->seen & SEEN_ACK), "acknowledged twice");
		EXPECT(task->seen & (SEEN_END | SEEN_FAIL), "acknowledged before the send's end");
		EXPECT(event->mlength == task->expected && event->rlength == task->length,
			"acknowledged with another length");
		EXPECT(event->link == task->near_link, "linked to another START");
		task->seen |= SEEN_ACK;
		put_look(model, node, task);
		return;
	case PTL_EVENT_REPLY_START:
		EXPECT(task->get && !task_is_dropped(task), "a reply to nothing");
		EXPECT(event->mlength == task->expected && event->offset == 0,
			"another length or offset");
		event_started(model, node, event, task, SEEN_START, &task->near_link);
		return;
	case PTL_EVENT_REPLY_END:
	case PTL_EVENT_REPLY_FAIL:
		EXPECT(task->get, "a reply to a put");
		event_ended(model, node, event, task, SEEN_START, task->near_link);
		EXPECT(event->type == PTL_EVENT_REPLY_FAIL || event->mlength == task->expected,
			"another manipulated length");
		if (event->type == PTL_EVENT_REPLY_END)
			payload_expect(model, event, task, program_of(node)->source + task->near);
		range_give(model, node, false, task->near, task->length);
		task_finish(model, node, task);
		return;
	default:
		EXPECT(false, "of a kind that the initiator never sees");
	}
}

/* The first that is active takes it. */
static struct slab *slab_next(struct program *program)
{
	struct slab *first = NULL;

	for (unsigned i = 0; i < SLABS; i++) {
		struct slab *slab = &program->slabs[i];

		if (slab->md && slab->offset <= SLAB_BYTES - SLAB_MESSAGE_MAX &&
			(!first || slab->order < first->order))
			first = slab;
	}
	return first;
}

static void slab_start(
	struct model *model, struct node *node, const ptl_event_t *event, struct task *task)
{
	struct slab *slab = slab_next(program_of(node));

	EXPECT(slab && slab->md == event->md_handle, "not in the first active descriptor");
	EXPECT(event->offset == slab->offset, "not where the one before it ended");
	task->far_md = slab->md;
	slab->offset += event->mlength;
}

static uint8_t *task_memory(
	const struct node *node, const struct task *task, const ptl_event_t *event)
{
	struct program *program = program_of(node);

	if (task->class != TASK_SLAB)
		return program->window + task->far;
	for (unsigned i = 0; i < SLABS; i++)
		if (program->slabs[i].md == event->md_handle)
			return program->slabs[i].memory + event->offset;
	return NULL;
}

static void far_start(
	struct model *model, struct node *node, const ptl_event_t *event, struct task *task)
{
	const struct program *program = program_of(node);

	EXPECT(!task_is_dropped(task), "should have been discarded");
	event_started(model, node, event, task, TARGET_START, &task->far_link);
	pair_started(model, task);
	EXPECT(event->rlength == task->length, "another requested length");
	EXPECT(event->mlength == task->expected, "another manipulated length");
	EXPECT(task->get || event->hdr_data == ~task->number, "other header data");
	if (task->class == TASK_SLAB) {
		slab_start(model, node, event, task);
	} else if (task->class == TASK_WINDOW) {
		EXPECT(event->offset == task->far && event->md_handle == program->window_md,
			"at another place");
	} else {
		EXPECT(event->offset == 0 && event->md_handle == task->far_md, "at another place");
	}
}

static void far_end(
	struct model *model, struct node *node, const ptl_event_t *event, struct task *task)
{
	uint8_t *bytes = task_memory(node, task, event);

	event_ended(model, node, event, task, TARGET_START, task->far_link);
	EXPECT(bytes != NULL, "in a descriptor that is gone");
	if (event->type == PTL_EVENT_PUT_END) {
		EXPECT(event->mlength == task->expected, "another manipulated length");
		payload_expect(model, event, task, bytes);
	}
	if (task->class == TASK_SLAB)
		memset(bytes, POISON, task->expected);
	else
		range_give(model, node, true, task->far, task->length);
}

static void far_unlink(
	struct model *model, struct node *node, const ptl_event_t *event, struct task *task)
{
	struct program *program = program_of(node);

	EXPECT(task->seen & (TARGET_END | TARGET_FAIL), "unlinked before its end");
	if (task->class == TASK_POSTED) {
		EXPECT(!(task->seen & TARGET_UNLINK), "unlinked twice");
		EXPECT(event->link == task->far_link, "linked to another START");
		task->seen |= TARGET_UNLINK;
		return;
	}
	EXPECT(task->class == TASK_SLAB, "a descriptor that stays");
	for (unsigned i = 0; i < SLABS; i++) {
		struct slab *slab = &program->slabs[i];

		if (slab->md != event->md_handle)
			continue;
		EXPECT(slab->offset > SLAB_BYTES - SLAB_MESSAGE_MAX, "unlinked while active");
		poison_expect(
			model, node, "a descriptor filled in order", slab->memory, SLAB_BYTES);
		slab_attach(model, node, slab);
		return;
	}
	EXPECT(false, "unlinked a descriptor that is gone");
}

static void far_event(
	struct model *model, struct node *node, const ptl_event_t *event, struct task *task)
{
	const struct node *initiator = model_node(model, task->initiator);

	EXPECT(task->target_life == node->life, "meant for an earlier life of the target");
	EXPECT(event->initiator.nid == initiator->id.nid &&
			event->initiator.pid == initiator->id.pid,
		"from another process");
	switch (event->type) {
	case PTL_EVENT_PUT_START:
	case PTL_EVENT_GET_START:
		EXPECT((event->type == PTL_EVENT_GET_START) == task->get, "of the other kind");
		far_start(model, node, event, task);
		return;
	case PTL_EVENT_PUT_END:
	case PTL_EVENT_PUT_FAIL:
	case PTL_EVENT_GET_END:
	case PTL_EVENT_GET_FAIL:
		far_end(model, node, event, task);
		return;
	case PTL_EVENT_UNLINK:
		far_unlink(model, node, event, task);
		return;
	default:
		EXPECT(false, "of a kind that the target never sees");
	}
}

static bool event_is_near(const ptl_event_t *event)
{
	return event->type == PTL_EVENT_SEND_START || event->type == PTL_EVENT_SEND_END ||
	       event->type == PTL_EVENT_SEND_FAIL || event->type == PTL_EVENT_ACK ||
	       event->type == PTL_EVENT_REPLY_START || event->type == PTL_EVENT_REPLY_END ||
	       event->type == PTL_EVENT_REPLY_FAIL;
}

void model_event(struct model *model, struct node *node, const ptl_event_t *event)
{
	struct task *task = model_task(model, event->match_bits & TASK_NUMBER_MASK);
	bool near = event_is_near(event);

	if (!task || (near ? task->initiator : task->target) != node->number) {
		simulation_fail(model->simulation,
			"node %u read an event of kind %d with match bits %#" PRIx64
			" that no task explains",
			node->number, (int)event->type, event->match_bits);
		return;
	}
	if (near)
		near_event(model, node, event, task);
	else
		far_event(model, node, event, task);
}

/* --- the end of a life */

/* An acknowledgement that a node owed will not come, unless it has come already. */
static void acknowledgement_give_up(struct model *model, struct task *task)
{
	struct node *node = model_node(model, task->initiator);

	node_enter(node);
	workload_events(node);
	task->acknowledged = false;
	if (!task->finished)
		put_look(model, node, task);
	node_leave(node);
}

void model_trouble_over(struct model *model, const struct node *node, uint64_t ended)
{
	for (uint64_t i = 1; i <= model->count; i++) {
		struct task *task = model_task(model, i);

		if (task->finished || !(task->seen & SEEN_END) ||
			task->issued > ended + model_grace(model) ||
			(task->initiator != node->number && task->target != node->number))
			continue;
		acknowledgement_give_up(model, task);
	}
}

static void program_clean(struct model *model, struct node *node)
{
	struct program *program = program_of(node);

	memset(program->window, POISON, program->window_peak);
	memset(program->source, POISON, program->source_peak);
	for (unsigned i = 0; i < SLABS && model->slabs; i++)
		memset(program->slabs[i].memory, POISON, SLAB_BYTES);
	extent_destroy(program->window_map);
	extent_destroy(program->source_map);
	program->window_map = program->source_map = NULL;
	program->outstanding = 0;
}

/* The knowledge of its tasks is lost with it. */
void model_end(struct model *model, struct node *node)
{
	for (uint64_t i = 1; i <= model->count; i++) {
		struct task *task = model_task(model, i);

		if (task->finished)
			continue;
		if (task->initiator == node->number) {
			task->finished = true;
			model->unfinished--;
		} else if (task->target == node->number && (task->seen & SEEN_END)) {
			acknowledgement_give_up(model, task);
		}
	}
	program_clean(model, node);
}

/* --- the end */

static void task_fail(struct model *model, const struct task *task, const char *what)
{
	simulation_fail(model->simulation,
		"task %" PRIu64 ", a %s of %" PRIu64
		" bytes from node %u to node %u, %s (seen %#x, class %u)",
		task->number, task->get ? "get" : "put", task->length, task->initiator,
		task->target, what, task->seen, task->class);
}

static void task_expect_whole(struct model *model, struct task *task, uint64_t *missing)
{
	const struct node *initiator = model_node(model, task->initiator);
	const struct node *target = model_node(model, task->target);
	bool near_lives = initiator->up && task->initiator_life == initiator->life;
	bool far_lives = target->up && task->target_life == target->life;
	bool started = task->seen & TARGET_START;

	if (near_lives && !(task->seen & (SEEN_END | SEEN_FAIL)))
		task_fail(model, task, "never ended at its initiator");
	if (far_lives && started && !(task->seen & (TARGET_END | TARGET_FAIL)))
		task_fail(model, task, "never ended at its target");
	if (task_may_fail(model, task) ||
		(task->seen & (SEEN_FAIL | TARGET_FAIL) && !task_is_dropped(task)))
		return;
	if (!started && !task_is_dropped(task) && task->class != TASK_SLAB)
		task_fail(model, task, "never started at its target");
	if (started && task->acknowledged && !(task->seen & SEEN_ACK))
		simulation_fail(model->simulation,
			"task %" PRIu64 " was never acknowledged (seen %#x)", task->number,
			task->seen);
	if (task->class == TASK_POSTED && !(task->seen & TARGET_UNLINK))
		simulation_fail(model->simulation,
			"task %" PRIu64 ": its descriptor was never unlinked", task->number);
	if (!started)
		missing[task->target]++;
}

static bool model_had_trouble(const struct model *model)
{
	for (uint32_t i = 0; i < model->simulation->node_count; i++)
		if (model_node(model, i)->troubled)
			return true;
	return false;
}

static void node_expect_quiet(struct model *model, struct node *node, uint64_t missing)
{
	const struct program *program = program_of(node);

	if (!node->up)
		return;
	/* A frame whose address was corrupted may reach another process than it is for. */
	missing += node_transport_counters(node)->dropped_no_process;
	if (!model_had_trouble(model) && node_drops(node) != missing)
		simulation_fail(model->simulation,
			"node %u counts %" PRIu64 " drops, but %" PRIu64 " are due", node->number,
			node_drops(node), missing);
	if (!model_had_trouble(model))
		poison_expect(model, node, "window memory", program->window, program->window_peak);
	if (!node_settled(node))
		simulation_fail(model->simulation, "node %u does not settle", node->number);
}

void model_finish(struct model *model)
{
	uint32_t nodes = model->simulation->node_count;
	uint64_t *missing = report_memory(calloc(nodes, sizeof(*missing)));

	for (uint64_t i = 1; i <= model->count; i++)
		task_expect_whole(model, model_task(model, i), missing);
	for (uint32_t i = 0; i < nodes; i++) {
		model->dropped += missing[i];
		node_expect_quiet(model, model_node(model, i), missing[i]);
	}
	free(missing);
}
