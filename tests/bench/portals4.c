/* SPDX-License-Identifier: BSD-3-Clause */
/* portals4.c - Portals 4 (portals4.h), for scripts/compare to hold against puts of Portals 3.2 on
 * the same node. See rival.h for its use; PTL_IFACE_NAME and PTL_PROGRESS say where and how. The
 * TRANSPORT is a way to move messages:
 *
 *     put        matched, with PUT events at the target
 *     receive    the same, and the receiver appends a use-once entry for each message
 *     logged     into a non-matching list, with PUT events
 *     counted    into a non-matching list, with counters only
 *     triggered  as counted, and the server's answer is a triggered put that was armed before
 *     get        a get, from the call to its REPLY
 *     fetch      a fetching addition to 8 bytes, from the call to its REPLY
 *
 * Half of the time is counted as one way, as rival.h has it, also of gets and fetching additions.
 * Each answer of a latency is checked: it has the number of its message, the sum of the additions
 * before it, or FIXED.
 */
#include <stdlib.h>
#include <string.h>

#include <portals4.h>

#include "../../apps/perf/rival.h"

#define BITS  7
#define AHEAD 64 /* triggered puts that are armed, and use-once entries that are posted */
#define QUEUE 1024
#define FIXED UINT64_C(0x0123456789abcdef)
#define WORD  ((uint32_t)sizeof(uint64_t))

enum answer { ANSWER_NUMBER, ANSWER_SUM, ANSWER_FIXED };

static const struct way {
	const char *name;
	bool matching;
	bool counts; /* the target has a counter instead of events */
	bool once;   /* entries */
	bool asks;   /* a REPLY is awaited, and the server does nothing */
	bool armed;  /* triggered puts answer */
	enum answer answer;
} ways[] = {
	{.name = "put", .matching = true},
	{.name = "receive", .matching = true, .once = true},
	{.name = "logged"},
	{.name = "counted", .counts = true},
	{.name = "triggered", .counts = true, .armed = true, .answer = ANSWER_FIXED},
	{.name = "get", .matching = true, .asks = true, .answer = ANSWER_FIXED},
	{.name = "fetch", .matching = true, .asks = true, .answer = ANSWER_SUM},
};

struct line {
	const struct way *way;
	bool server;
	bool checks; /* the words of answers */
	ptl_handle_ni_t interface;
	ptl_handle_eq_t queue;
	ptl_handle_ct_t landed;
	ptl_handle_md_t load;   /* what is put, or added */
	ptl_handle_md_t answer; /* where a REPLY goes */
	ptl_pt_index_t portal;
	ptl_process_t other;
	uint32_t out, in;
	uint32_t used;    /* use-once entries to be appended again */
	uint64_t sent;    /* messages */
	uint64_t arrived; /* messages */
	uint64_t armed;   /* triggered puts */
	unsigned char *from;
	unsigned char *to;
};

static void need(int code, const char *function)
{
	if (code != PTL_OK)
		rival_complain("%s returns %d.", function, code);
}

static const struct way *way_of(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(name, ways[i].name) == 0)
			return &ways[i];
	rival_complain("TRANSPORT %s is unknown; give put, receive, logged, counted, triggered, "
		       "get or fetch.",
		name);
}

static void entry_append(struct line *line)
{
	const struct way *way = line->way;
	const ptl_me_t me = {
		.start = line->to,
		.length = line->in,
		.ct_handle = way->counts ? line->landed : PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
			   (way->once ? PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE : 0) |
			   (way->counts ? PTL_ME_EVENT_CT_COMM : 0) |
			   (way->counts || way->asks ? PTL_ME_EVENT_COMM_DISABLE : 0),
		.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
		.match_bits = BITS,
	};
	const ptl_le_t le = {
		.start = me.start,
		.length = me.length,
		.ct_handle = me.ct_handle,
		.uid = me.uid,
		.options = me.options,
	};
	ptl_handle_me_t entry;

	if (way->matching)
		need(PtlMEAppend(
			     line->interface, line->portal, &me, PTL_PRIORITY_LIST, NULL, &entry),
			"PtlMEAppend");
	else
		need(PtlLEAppend(
			     line->interface, line->portal, &le, PTL_PRIORITY_LIST, NULL, &entry),
			"PtlLEAppend");
}

static ptl_handle_md_t memory_bind(
	struct line *line, void *start, uint32_t length, ptl_handle_eq_t queue)
{
	const ptl_md_t md = {
		.start = start,
		.length = length,
		.options = PTL_MD_EVENT_SEND_DISABLE,
		.eq_handle = queue,
		.ct_handle = PTL_CT_NONE,
	};
	ptl_handle_md_t handle;

	need(PtlMDBind(line->interface, &md, &handle), "PtlMDBind");
	return handle;
}

static void arm(struct line *line)
{
	for (; line->armed < line->arrived + AHEAD; line->armed++)
		need(PtlTriggeredPut(line->load, 0, line->out, PTL_NO_ACK_REQ, line->other,
			     line->portal, BITS, 0, NULL, 0, line->landed, line->armed + 1),
			"PtlTriggeredPut");
}

static void word_set(unsigned char *at, uint64_t word)
{
	memcpy(at, &word, sizeof(word));
}

static void answer_check(const struct line *line)
{
	const uint64_t words[] = {
		[ANSWER_NUMBER] = line->arrived,
		[ANSWER_SUM] = line->arrived - 1,
		[ANSWER_FIXED] = FIXED,
	};
	uint64_t word;

	memcpy(&word, line->to, sizeof(word));
	if (word != words[line->way->answer])
		rival_complain("message %llu brought %llx instead of %llx.",
			(unsigned long long)line->arrived, (unsigned long long)word,
			(unsigned long long)words[line->way->answer]);
}

/* As programs do: an answer is sent before the next receive is posted. */
static void line_send(void *context, bool more)
{
	struct line *line = context;

	(void)more;
	line->sent++;
	if (line->checks && line->way->answer == ANSWER_NUMBER)
		word_set(line->from, line->sent);
	if (line->way->answer == ANSWER_SUM)
		need(PtlFetchAtomic(line->answer, 0, line->load, 0, WORD, line->other, line->portal,
			     BITS, 0, NULL, 0, PTL_SUM, PTL_UINT64_T),
			"PtlFetchAtomic");
	else if (line->way->asks)
		need(PtlGet(line->answer, 0, line->in, line->other, line->portal, BITS, 0, NULL),
			"PtlGet");
	else
		need(PtlPut(line->load, 0, line->out, PTL_NO_ACK_REQ, line->other, line->portal,
			     BITS, 0, NULL, 0),
			"PtlPut");
	for (; line->used > 0; line->used--)
		entry_append(line);
}

static uint32_t counted_receive(struct line *line)
{
	const ptl_size_t test = line->arrived + 1;
	ptl_ct_event_t count;
	unsigned which;
	uint32_t arrived;

	if (PtlCTPoll(&line->landed, &test, 1, 0, &count, &which) != PTL_OK)
		return 0;
	if (count.failure > 0)
		rival_complain("%llu messages failed.", (unsigned long long)count.failure);
	arrived = (uint32_t)(count.success - line->arrived);
	line->arrived = count.success;
	if (!line->server || !line->way->armed)
		return arrived;
	arm(line);
	return 0;
}

static uint32_t logged_receive(struct line *line)
{
	ptl_event_kind_t wanted = line->way->asks ? PTL_EVENT_REPLY : PTL_EVENT_PUT;
	ptl_event_t event;
	uint32_t arrived = 0;
	int code;

	/* A latency's server answers after each one. */
	while (arrived < QUEUE && (code = PtlEQGet(line->queue, &event)) != PTL_EQ_EMPTY) {
		if (code != PTL_OK || event.type != wanted || event.ni_fail_type != PTL_NI_OK ||
			event.mlength != line->in)
			rival_complain("event %d of %llu bytes came, with code %d and failure %d.",
				(int)event.type, (unsigned long long)event.mlength, code,
				(int)event.ni_fail_type);
		arrived++;
		if (line->checks)
			break;
	}
	line->arrived += arrived;
	if (line->way->once)
		line->used += arrived;
	return arrived;
}

static uint32_t line_receive(void *context)
{
	struct line *line = context;
	uint32_t arrived;

	for (; line->used > 0; line->used--)
		entry_append(line);
	arrived = line->way->counts ? counted_receive(line) : logged_receive(line);
	if (line->checks && arrived > 0)
		answer_check(line);
	return arrived;
}

static void interface_open(struct line *line, uint32_t entries)
{
	const struct way *way = line->way;
	unsigned kind = way->matching ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING;

	need(PtlInit(), "PtlInit");
	need(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_PHYSICAL | kind, PTL_PID_ANY, NULL, NULL,
		     &line->interface),
		"PtlNIInit");
	need(PtlEQAlloc(line->interface, QUEUE, &line->queue), "PtlEQAlloc");
	need(PtlCTAlloc(line->interface, &line->landed), "PtlCTAlloc");
	need(PtlPTAlloc(line->interface, 0, line->queue, 0, &line->portal), "PtlPTAlloc");
	for (uint32_t i = 0; i < entries; i++)
		entry_append(line);
	line->load = memory_bind(line, line->from, line->out, PTL_EQ_NONE);
	line->answer = memory_bind(line, line->to, line->in, line->queue);
}

static void *line_open(const struct rival_end *end)
{
	struct line *line = calloc(1, sizeof(*line));
	uint32_t messages = end->request->window * STREAM_WINDOWS;
	ptl_process_t own;

	if (!line)
		rival_complain("there is no memory.");
	line->way = way_of(end->request->transport);
	line->server = end->server;
	line->out = end->out;
	line->in = end->in;
	line->checks = !end->request->stream && line->in >= WORD;
	if (line->way->asks && end->request->stream)
		rival_complain("%s has a latency only.", line->way->name);
	if (line->way->answer == ANSWER_SUM && line->in != WORD)
		rival_complain("fetch adds %u bytes; give SIZE %u.", WORD, WORD);
	if (messages > QUEUE)
		rival_complain("a window of %u is too large; give at most %u.",
			end->request->window, QUEUE / STREAM_WINDOWS);
	line->from = calloc(1, line->out < WORD ? WORD : line->out);
	line->to = calloc(1, line->in < WORD ? WORD : line->in);
	if (!line->from || !line->to)
		rival_complain("there is no memory.");
	if (line->way->answer == ANSWER_SUM)
		word_set(line->from, 1);
	else if (line->way->answer == ANSWER_FIXED)
		word_set(end->server && line->way->asks ? line->to : line->from, FIXED);
	interface_open(line, line->way->once ? messages + 1 : 1);
	need(PtlGetId(line->interface, &own), "PtlGetId");
	rival_swap(end, &own, &line->other, sizeof(own));
	if (line->server && line->way->armed)
		arm(line);
	return line;
}

int main(int argc, char **argv)
{
	static const struct rival portals = {
		.name = "bench-portals4",
		.transports = "TRANSPORT is put, receive, logged, counted, triggered, get or "
			      "fetch; MODE is poll.\n",
		.open = line_open,
		.send = line_send,
		.receive = line_receive,
	};

	return rival_main(argc, argv, &portals);
}
