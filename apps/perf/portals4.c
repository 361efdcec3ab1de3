/* SPDX-License-Identifier: BSD-3-Clause */
/* portals4.c - a module of postern-perf: messages of Portals 4 (portals4.h). See line.h.
 *
 *     latency, rate, bandwidth, bidirectional
 *                                puts into a matching list, with an event at the target
 *     get-...                    gets from a matching list, until their REPLY
 *     put-latency, put-bandwidth puts into a matching list, until their ACK
 *     fetch-latency              a fetching addition to 8 bytes, until its REPLY
 *     triggered-latency          puts into a non-matching list, counted; the server's answers are
 *                                triggered puts, which were given before
 *     counted-rate               puts into a non-matching list, counted, without events
 *
 * A list that has a shape is a matching one, whatever is measured. Each line has a Portal for its
 * messages, one for credits, and an event queue for both.
 */
#include <stdio.h>
#include <stdlib.h>

#include <portals4.h>

#include "line.h"

#define BITS  7
#define AHEAD 64  /* triggered puts that wait at once */
#define LINES 256 /* on an interface, at most */
#define SPARE 64  /* events beside those of messages */
#define WORD  sizeof(uint64_t)

struct line {
	struct line_request request;
	bool counts; /* a counter takes the place of events, and a non-matching list */
	bool asks;   /* replies are awaited */
	ptl_handle_ni_t interface;
	ptl_handle_eq_t queue;
	ptl_handle_ct_t landed;
	ptl_handle_md_t load;  /* what is put, or added */
	ptl_handle_md_t reply; /* memory for replies, and of puts with an ACK */
	ptl_pt_index_t portal;
	ptl_pt_index_t credit_portal;
	ptl_process_t other;
	ptl_pt_index_t target; /* the other's Portal */
	ptl_pt_index_t credit_target;
	uint64_t random;  /* of shape_target() */
	int credits;      /* of the last look */
	uint64_t arrived; /* messages that were counted */
	uint64_t armed;   /* triggered puts */
	uint64_t addend;
	uint64_t sum; /* the server's is added to */
};

static void need(const struct line *line, int code, const char *function)
{
	if (code != PTL_OK)
		line->request.complain(
			"%s of Portals 4 returns %s.", function, PtlToStr(code, PTL_STR_ERROR));
}

static bool is_fetch(const struct line *line)
{
	return line->request.measure == MEASURE_FETCH_LATENCY;
}

/* What both ends put or get from, and where it lands. */
static ptl_md_t memory_of(struct line *line, uint64_t *word)
{
	return (ptl_md_t){
		.start = is_fetch(line) ? (void *)word : line->request.memory,
		.length = is_fetch(line) ? WORD : line->request.size,
		.options = PTL_MD_EVENT_SEND_DISABLE,
		.eq_handle = PTL_EQ_NONE,
		.ct_handle = PTL_CT_NONE,
	};
}

/* A list without matching takes what comes to it. */
static bool matches(const struct line *line)
{
	return !line->counts || line->request.shape.depth > 0;
}

static int entry_append(
	struct line *line, ptl_pt_index_t portal, ptl_match_bits_t bits, ptl_match_bits_t ignored)
{
	const ptl_md_t memory = memory_of(line, &line->sum);
	const ptl_me_t me = {
		.start = memory.start,
		.length = memory.length,
		.ct_handle = line->counts ? line->landed : PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
			   (line->counts ? PTL_ME_EVENT_CT_COMM : 0) |
			   (line->counts || line->asks ? PTL_ME_EVENT_COMM_DISABLE : 0),
		.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
		.match_bits = bits,
		.ignore_bits = ignored,
	};
	const ptl_le_t le = {
		.start = me.start,
		.length = me.length,
		.ct_handle = me.ct_handle,
		.uid = me.uid,
		.options = me.options,
	};
	ptl_handle_me_t entry;

	if (!matches(line))
		return PtlLEAppend(line->interface, portal, &le, PTL_PRIORITY_LIST, NULL, &entry);
	return PtlMEAppend(line->interface, portal, &me, PTL_PRIORITY_LIST, NULL, &entry);
}

/* Returns a code of Portals 4. */
static int lists_make(struct line *line)
{
	const struct match_shape *shape = &line->request.shape;
	int code = entry_append(line, line->credit_portal, BITS, 0);

	if (shape->depth == 0 && code == PTL_OK)
		code = entry_append(line, line->portal, BITS, 0);
	for (uint32_t i = 0; i < shape->depth && code == PTL_OK; i++)
		code = entry_append(
			line, line->portal, i, shape_is_wildcard(shape, i) ? SHAPE_IGNORED : 0);
	return code;
}

static int interface_open(struct line *line)
{
	unsigned list = matches(line) ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING;
	int entries = (int)line->request.shape.depth + 2 * LINES;
	const ptl_ni_limits_t limits = {
		.max_entries = entries,
		.max_unexpected_headers = 1,
		.max_mds = 2 * LINES,
		.max_cts = LINES,
		.max_eqs = LINES,
		.max_pt_index = 2 * LINES - 1,
		.max_iovecs = 1,
		.max_list_size = entries,
		.max_triggered_ops = AHEAD * LINES,
		.max_msg_size = PTL_SIZE_MAX,
		.max_atomic_size = WORD,
		.max_fetch_atomic_size = WORD,
		.max_waw_ordered_size = WORD,
		.max_war_ordered_size = WORD,
		.max_volatile_size = WORD,
	};

	return PtlNIInit(line->request.interface, PTL_NI_PHYSICAL | list, PTL_PID_ANY, &limits,
		NULL, &line->interface);
}

/* Returns the name of the function that failed, or NULL. */
static const char *objects_make(struct line *line)
{
	ptl_md_t load = memory_of(line, &line->addend);
	ptl_md_t reply = memory_of(line, &line->sum);

	if (PtlEQAlloc(line->interface, line->request.messages + SPARE, &line->queue) != PTL_OK)
		return "PtlEQAlloc";
	if (PtlCTAlloc(line->interface, &line->landed) != PTL_OK)
		return "PtlCTAlloc";
	if (PtlPTAlloc(line->interface, 0, line->queue, PTL_PT_ANY, &line->portal) != PTL_OK ||
		PtlPTAlloc(line->interface, 0, line->queue, PTL_PT_ANY, &line->credit_portal) !=
			PTL_OK)
		return "PtlPTAlloc";
	if (lists_make(line) != PTL_OK)
		return "PtlMEAppend";
	reply.eq_handle = line->queue;
	if (PtlMDBind(line->interface, &load, &line->load) != PTL_OK ||
		PtlMDBind(line->interface, &reply, &line->reply) != PTL_OK)
		return "PtlMDBind";
	return NULL;
}

/* The objects go with the last line on the interface; until then nothing arrives in this one. */
static void line_close(struct line *line)
{
	PtlPTDisable(line->interface, line->portal);
	PtlPTDisable(line->interface, line->credit_portal);
	PtlNIFini(line->interface);
	PtlFini();
	free(line);
}

static bool objects_open(struct line *line, struct line_address *own, char *why, size_t room)
{
	const char *failed = objects_make(line);
	ptl_process_t id;

	if (!failed && PtlGetPhysId(line->interface, &id) != PTL_OK)
		failed = "PtlGetPhysId";
	if (failed) {
		snprintf(why, room, "%s fails", failed);
		return false;
	}
	*own = (struct line_address){.numbers = {(uint64_t)id.phys.nid << 32 | id.phys.pid},
		.argument = line->credit_portal << 16 | line->portal};
	return true;
}

static struct line *line_open(
	const struct line_request *request, struct line_address *own, char *why, size_t room)
{
	enum measure measure = request->measure;
	struct line *line = calloc(1, sizeof(*line));

	if (!line || PtlInit() != PTL_OK) {
		snprintf(why, room, "it does not start");
		free(line);
		return NULL;
	}
	line->request = *request;
	line->counts = measure == MEASURE_TRIGGERED_LATENCY || measure == MEASURE_COUNTED_RATE;
	line->asks = measure_gets(measure);
	line->addend = 1;
	line->random = (uintptr_t)line | 1;
	if (interface_open(line) != PTL_OK) {
		snprintf(why, room, "interface %u cannot be opened once more", request->interface);
		PtlFini();
		free(line);
		return NULL;
	}
	if (objects_open(line, own, why, room))
		return line;
	line_close(line);
	return NULL;
}

static ptl_match_bits_t bits_next(struct line *line)
{
	const struct match_shape *shape = &line->request.shape;

	return shape->depth > 0 ? shape_target(shape, &line->random) : BITS;
}

static void answers_arm(struct line *line)
{
	for (; line->armed < line->arrived + AHEAD; line->armed++)
		need(line,
			PtlTriggeredPut(line->load, 0, line->request.size, PTL_NO_ACK_REQ,
				line->other, line->target, bits_next(line), 0, NULL, 0,
				line->landed, line->armed + 1),
			"PtlTriggeredPut");
}

static bool answers_itself(const struct line *line)
{
	return line->request.server && line->request.measure == MEASURE_TRIGGERED_LATENCY;
}

static bool line_meet(struct line *line, const struct line_address *other)
{
	line->other.phys.nid = (ptl_nid_t)(other->numbers[0] >> 32);
	line->other.phys.pid = (ptl_pid_t)other->numbers[0];
	line->target = other->argument & UINT16_MAX;
	line->credit_target = other->argument >> 16;
	if (answers_itself(line))
		answers_arm(line);
	return true;
}

static void line_send(struct line *line)
{
	if (is_fetch(line))
		need(line,
			PtlFetchAtomic(line->reply, 0, line->load, 0, WORD, line->other,
				line->target, bits_next(line), 0, NULL, 0, PTL_SUM, PTL_UINT64_T),
			"PtlFetchAtomic");
	else if (measure_is_acknowledged(line->request.measure))
		need(line,
			PtlPut(line->reply, 0, line->request.size, PTL_ACK_REQ, line->other,
				line->target, bits_next(line), 0, NULL, 0),
			"PtlPut");
	else if (line->asks)
		need(line,
			PtlGet(line->reply, 0, line->request.size, line->other, line->target,
				bits_next(line), 0, NULL),
			"PtlGet");
	else
		need(line,
			PtlPut(line->load, 0, line->request.size, PTL_NO_ACK_REQ, line->other,
				line->target, bits_next(line), 0, NULL, 0),
			"PtlPut");
}

static void line_credit(struct line *line)
{
	need(line,
		PtlPut(line->load, 0, 0, PTL_NO_ACK_REQ, line->other, line->credit_target, BITS, 0,
			NULL, 0),
		"PtlPut");
}

static int counted_receive(struct line *line)
{
	const ptl_size_t test = line->arrived + 1;
	ptl_ct_event_t count;
	unsigned which;
	int arrived;

	if (PtlCTPoll(&line->landed, &test, 1, 0, &count, &which) != PTL_OK)
		return 0;
	if (count.failure > 0)
		return -1;
	arrived = (int)(count.success - line->arrived);
	line->arrived = count.success;
	if (!answers_itself(line))
		return arrived;
	answers_arm(line);
	return 0;
}

static int logged_receive(struct line *line)
{
	ptl_event_kind_t wanted = measure_is_acknowledged(line->request.measure) ? PTL_EVENT_ACK
				  : line->asks                                   ? PTL_EVENT_REPLY
										 : PTL_EVENT_PUT;
	int most = measure_is_latency(line->request.measure) ? 1 : (int)line->request.messages;
	ptl_event_t event;
	int arrived = 0;

	line->credits = 0;
	while (arrived < most) {
		int code = PtlEQGet(line->queue, &event);

		if (code == PTL_EQ_EMPTY)
			break;
		need(line, code, "PtlEQGet");
		if (event.ni_fail_type != PTL_NI_OK)
			return -1;
		if (event.type != wanted)
			continue;
		arrived++;
		line->credits += event.pt_index == line->credit_portal;
	}
	return arrived;
}

static int line_credits(struct line *line)
{
	return line->credits;
}

static int line_receive(struct line *line)
{
	return line->counts ? counted_receive(line) : logged_receive(line);
}

extern const struct line_module perf_line __attribute__((visibility("default")));

const struct line_module perf_line = {
	.release = PERF_RELEASE,
	.open = line_open,
	.meet = line_meet,
	.send = line_send,
	.credit = line_credit,
	.receive = line_receive,
	.credits = line_credits,
	.close = line_close,
};
