/* SPDX-License-Identifier: BSD-3-Clause */
/* portals3.c - Portals 3.2 (portals.h), in the same loop as portals4.c and mx.c, which
 * scripts/compare holds against it. See rival.h for its use; PTL_IFACE_NAME and PTL_PROGRESS say
 * where and how. The TRANSPORT is a way to receive puts:
 *
 *     put      an entry that stays
 *     receive  for each message an entry and a descriptor that go with it
 *
 * Each message of a latency is checked: it has its number.
 */
#include <stdlib.h>
#include <string.h>

#include <portals.h>

#include "../../apps/perf/rival.h"

#define BITS  7
#define QUEUE 4096 /* two events and an unlink of each message on its way */

struct line {
	bool once; /* entries */
	bool checks;
	ptl_handle_ni_t interface;
	ptl_handle_eq_t queue;
	ptl_handle_md_t load;
	ptl_process_id_t other;
	uint32_t out, in;
	uint32_t used; /* entries to be attached again */
	uint64_t sent;
	uint64_t arrived;
	unsigned char *from;
	unsigned char *to;
};

static void need(int code, const char *function)
{
	if (code != PTL_OK)
		rival_complain("%s returns %d.", function, code);
}

static void entry_attach(struct line *line)
{
	const ptl_process_id_t anyone = {.nid = PTL_NID_ANY, .pid = PTL_PID_ANY};
	ptl_unlink_t unlink = line->once ? PTL_UNLINK : PTL_RETAIN;
	const ptl_md_t memory = {
		.start = line->to,
		.length = line->in,
		.threshold = line->once ? 1 : PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_ACK_DISABLE,
		.eventq = line->queue,
	};
	ptl_handle_me_t entry;

	need(PtlMEAttach(line->interface, 0, anyone, BITS, 0, unlink, PTL_INS_AFTER, &entry),
		"PtlMEAttach");
	need(PtlMDAttach(entry, memory, unlink, PTL_RETAIN, NULL), "PtlMDAttach");
}

static void entries_renew(struct line *line)
{
	for (; line->used > 0; line->used--)
		entry_attach(line);
}

/* As programs do: an answer is sent before the next entry is attached. */
static void line_send(void *context, bool more)
{
	struct line *line = context;

	(void)more;
	line->sent++;
	if (line->checks)
		memcpy(line->from, &line->sent, sizeof(line->sent));
	need(PtlPut(line->load, PTL_NOACK_REQ, line->other, 0, 0, BITS, 0, 0), "PtlPut");
	entries_renew(line);
}

static void number_check(const struct line *line)
{
	uint64_t number;

	memcpy(&number, line->to, sizeof(number));
	if (number != line->arrived)
		rival_complain("message %llu has the number %llu.",
			(unsigned long long)line->arrived, (unsigned long long)number);
}

static uint32_t line_receive(void *context)
{
	struct line *line = context;
	uint32_t arrived = 0;
	ptl_event_t event;
	int code;

	entries_renew(line);
	while ((!line->checks || arrived == 0) &&
		(code = PtlEQGet(line->queue, &event)) != PTL_EQ_EMPTY) {
		if (code != PTL_OK || event.ni_fail_type != PTL_NI_OK)
			rival_complain("event %d came with code %d and failure %d.",
				(int)event.type, code, (int)event.ni_fail_type);
		if (event.type != PTL_EVENT_PUT_END)
			continue;
		if (event.mlength != line->in)
			rival_complain(
				"a message of %llu bytes came.", (unsigned long long)event.mlength);
		arrived++;
	}
	line->arrived += arrived;
	if (line->once)
		line->used += arrived;
	if (line->checks && arrived > 0)
		number_check(line);
	return arrived;
}

static void *line_open(const struct rival_end *end)
{
	struct line *line = calloc(1, sizeof(*line));
	uint32_t entries = end->request->window * STREAM_WINDOWS + 1;
	ptl_md_t load = {.threshold = PTL_MD_THRESH_INF, .eventq = PTL_EQ_NONE};
	ptl_process_id_t own;
	int interfaces;

	if (!line)
		rival_complain("there is no memory.");
	line->once = strcmp(end->request->transport, "receive") == 0;
	if (!line->once && strcmp(end->request->transport, "put") != 0)
		rival_complain(
			"TRANSPORT %s is unknown; give put or receive.", end->request->transport);
	if (entries * 3 > QUEUE)
		rival_complain("a window of %u is too large.", end->request->window);
	line->out = end->out;
	line->in = end->in;
	line->checks = !end->request->stream && line->in >= sizeof(uint64_t);
	line->from = calloc(1, line->out);
	line->to = calloc(1, line->in);
	if (!line->from || !line->to)
		rival_complain("there is no memory.");
	need(PtlInit(&interfaces), "PtlInit");
	need(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &line->interface), "PtlNIInit");
	need(PtlEQAlloc(line->interface, QUEUE, &line->queue), "PtlEQAlloc");
	load.start = line->from;
	load.length = line->out;
	need(PtlMDBind(line->interface, load, &line->load), "PtlMDBind");
	line->used = line->once ? entries : 1;
	entries_renew(line);
	need(PtlGetId(line->interface, &own), "PtlGetId");
	rival_swap(end, &own, &line->other, sizeof(own));
	return line;
}

int main(int argc, char **argv)
{
	static const struct rival portals = {
		.name = "bench-portals3",
		.transports = "TRANSPORT is put or receive; MODE is poll.\n",
		.open = line_open,
		.send = line_send,
		.receive = line_receive,
	};

	return rival_main(argc, argv, &portals);
}
