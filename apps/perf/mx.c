/* SPDX-License-Identifier: BSD-3-Clause */
/* mx.c - a module of postern-perf: messages of MX (myriexpress.h). See line.h.
 *
 *     latency, rate, bandwidth   sends to receives that are posted
 *     unexpected-rate            the server posts the receives of a window when it is here: X3
 *     overlap-send               a message, and its answer of no bytes; the send has to end, too
 *     overlap-receive            the answer to a message of no bytes, and a word that it has begun
 *     any-latency                mx_test_any(), among requests of another match value that are done
 *     kept-latency               mx_irecv() of a message that is here, and its test, among others
 *
 * X1. The client connects. The server answers to where the first message came from.
 * X2. What is searched for comes from the client's own endpoint. Messages that are kept beside it
 *     come from endpoints that only send, because a peer may have KEPT_EACH of them kept.
 * X3. The last message of a window has bits of its own. The server probes for it, so one probe says
 *     that the window is kept. Then it posts a receive for each message, and tests all of them: a
 *     message takes the calls that it takes in `rate`, where its receive is posted before.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <mx_extensions.h>

#include "line.h"

#define FILTER     0x70657266
#define TIMEOUT    10000 /* ms */
#define BITS       UINT64_C(1)
#define BITS_OTHER UINT64_C(2) /* of requests that are done beside the one that is looked for; */
#define BITS_LAST  UINT64_C(4) /* of a window: X3 */
#define BITS_KEPT  (UINT64_C(1) << 32) /* of messages that are kept, each with its number */
#define KEPT_EACH  240
#define SENDERS    32 /* endpoints of a process */

struct line {
	struct line_request request;
	bool client;
	bool posts; /* receives, before messages come */
	bool failed;
	mx_endpoint_t endpoint;
	mx_endpoint_addr_t own, other;
	mx_request_t connect;
	uint32_t places;        /* of receives, and of sends */
	mx_request_t *receives; /* in the order in which they were posted */
	uint32_t next;          /* receive that has its message first */
	uint32_t taken;         /* receives that are done and not yet posted again */
	mx_request_t *sends;    /* NULL: that place has none */
	uint64_t sent;
	uint32_t answers; /* to sends that have not ended */
	uint32_t done;    /* requests of BITS_OTHER that are done, or messages that are kept */
	mx_endpoint_t senders[SENDERS];
	uint32_t sender_count;
};

static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned lines; /* that are open */

static void need(const struct line *line, mx_return_t code, const char *function)
{
	if (code != MX_SUCCESS)
		line->request.complain("%s of MX fails: %s.", function, mx_strerror(code));
}

static mx_return_t library_enter(void)
{
	mx_return_t code = MX_SUCCESS;

	pthread_mutex_lock(&lines_lock);
	if (lines == 0) {
		mx_set_error_handler(MX_ERRORS_RETURN);
		code = mx_init();
	}
	lines += code == MX_SUCCESS;
	pthread_mutex_unlock(&lines_lock);
	return code;
}

static void library_leave(void)
{
	pthread_mutex_lock(&lines_lock);
	if (--lines == 0)
		mx_finalize();
	pthread_mutex_unlock(&lines_lock);
}

/* --- receives */

static mx_request_t receive_post(struct line *line, uint64_t bits)
{
	mx_segment_t segment = {line->request.memory, (uint32_t)line->request.size};
	mx_request_t request;

	need(line, mx_irecv(line->endpoint, &segment, 1, bits, MX_MATCH_MASK_NONE, NULL, &request),
		"mx_irecv");
	return request;
}

static void receives_renew(struct line *line)
{
	for (; line->taken > 0; line->taken--)
		line->receives[(line->next + line->places - line->taken) % line->places] =
			receive_post(line, BITS);
}

static void status_note(struct line *line, const mx_status_t *status)
{
	line->failed = line->failed || status->code != MX_STATUS_SUCCESS;
	if (!line->client)
		line->other = status->source; /* X1 */
}

/* Takes a request that has ended. */
static bool request_ends(struct line *line, mx_request_t *request, uint32_t timeout)
{
	mx_status_t status;
	uint32_t result;

	need(line,
		timeout == 0 ? mx_test(line->endpoint, request, &status, &result)
			     : mx_wait(line->endpoint, request, timeout, &status, &result),
		"mx_test");
	if (!result)
		return false;
	status_note(line, &status);
	return true;
}

static int posted_receive(struct line *line, int most)
{
	int arrived = 0;

	receives_renew(line);
	while (arrived < most && request_ends(line, &line->receives[line->next], 0)) {
		line->next = (line->next + 1) % line->places;
		line->taken++;
		arrived++;
	}
	return arrived;
}

/* Returns false if no message of these bits is here. */
static bool own_probe(struct line *line, uint64_t bits)
{
	mx_status_t status;
	uint32_t result;

	need(line, mx_iprobe(line->endpoint, bits, MX_MATCH_MASK_NONE, &status, &result),
		"mx_iprobe");
	return result;
}

/* X3 */
static int unexpected_receive(struct line *line)
{
	const uint32_t window = line->request.window;

	if (!own_probe(line, BITS_LAST))
		return 0;
	for (uint32_t i = 0; i < window; i++)
		line->receives[i] = receive_post(line, i + 1 < window ? BITS : BITS_LAST);
	for (uint32_t i = 0; i < window; i++)
		if (!request_ends(line, &line->receives[i], TIMEOUT))
			line->request.complain(
				"a receive of MX has not ended for %d seconds.", TIMEOUT / 1000);
	return (int)window;
}

/* --- sends */

/* X3. Of the next message. */
static uint64_t message_bits(const struct line *line)
{
	const bool last = line->client && line->request.measure == MEASURE_UNEXPECTED_RATE &&
			  (line->sent + 1) % line->request.window == 0;

	return last ? BITS_LAST : BITS;
}

/* The place's last send has ended, because its answer or its credit is here. */
static void send_message(struct line *line, uint64_t size)
{
	const uint64_t bits = message_bits(line);
	mx_request_t *place = &line->sends[line->sent++ % line->places];
	mx_segment_t segment = {line->request.memory, (uint32_t)size};

	if (*place && !request_ends(line, place, TIMEOUT))
		line->request.complain(
			"a send of MX has not ended for %d seconds.", TIMEOUT / 1000);
	need(line, mx_isend(line->endpoint, &segment, 1, line->other, bits, NULL, place),
		"mx_isend");
}

static void line_send(struct line *line)
{
	enum measure measure = line->request.measure;

	if (measure == MEASURE_OVERLAP_RECEIVE && !line->client)
		send_message(line, 0);
	if (measure_is_overlap(measure) && line->client != (measure == MEASURE_OVERLAP_SEND))
		send_message(line, 0);
	else
		send_message(line, line->request.size);
}

static void line_credit(struct line *line)
{
	send_message(line, 0);
}

/* Counts a message whose answer is here when the send has ended, too. */
static int ended(struct line *line, int arrived)
{
	mx_request_t *last = &line->sends[(line->sent - 1) % line->places];

	line->answers += (uint32_t)arrived;
	if (line->answers == 0 || (*last && !request_ends(line, last, 0)))
		return 0;
	line->answers--;
	return 1;
}

static int line_receive(struct line *line)
{
	enum measure measure = line->request.measure;
	int most = measure_is_single(measure) ? 1 : (int)line->request.messages;
	int arrived = line->posts ? posted_receive(line, most) : unexpected_receive(line);

	if (measure == MEASURE_OVERLAP_SEND && line->client && line->sent > 0)
		arrived = ended(line, arrived);
	return line->failed ? -1 : arrived;
}

/* --- searches */

/* A message to the own endpoint. */
static void own_send(struct line *line, uint64_t bits, mx_request_t *request)
{
	mx_segment_t segment = {line->request.memory, (uint32_t)line->request.size};

	need(line, mx_isend(line->endpoint, &segment, 1, line->own, bits, NULL, request),
		"mx_isend");
}

/* Nobody asks for the receive: only the send is a request that is done. */
static void own_pass(struct line *line, uint64_t bits)
{
	mx_request_t receive = receive_post(line, bits), send;
	uint32_t result = 0;

	need(line, mx_forget(line->endpoint, &receive), "mx_forget");
	own_send(line, bits, &send);
	while (!result)
		need(line, mx_ibuffered(line->endpoint, &send, &result), "mx_ibuffered");
}

static mx_endpoint_addr_t sender_open(struct line *line, mx_endpoint_t *sender)
{
	mx_request_t connect;
	mx_status_t status;
	uint32_t result = 0, id;
	uint64_t nic;

	if (line->sender_count == SENDERS ||
		mx_open_endpoint(line->request.interface, MX_ANY_ENDPOINT, FILTER, NULL, 0,
			sender) != MX_SUCCESS)
		line->request.complain(
			"%u messages cannot be kept: each sender has %u at most, and "
			"a process has 32 endpoints; give a smaller --depth.",
			line->request.shape.depth, KEPT_EACH);
	line->sender_count++;
	mx_decompose_endpoint_addr(line->own, &nic, &id);
	need(line, mx_iconnect(*sender, nic, id, FILTER, 0, NULL, &connect), "mx_iconnect");
	while (!result) {
		need(line, mx_test(*sender, &connect, &status, &result), "mx_test");
		need(line, mx_progress(line->endpoint), "mx_progress");
	}
	if (status.code != MX_STATUS_SUCCESS)
		line->request.complain("a connect of MX fails: %s.", mx_strstatus(status.code));
	return status.source;
}

/* X2. The messages of one sender; the last of them is here. */
static void kept_fill(struct line *line)
{
	mx_endpoint_t *sender = &line->senders[line->sender_count];
	mx_endpoint_addr_t to = sender_open(line, sender);
	mx_segment_t segment = {line->request.memory, (uint32_t)line->request.size};

	for (unsigned i = 0; i < KEPT_EACH && line->done < line->request.shape.depth; i++)
		need(line, mx_isend(*sender, &segment, 1, to, BITS_KEPT | line->done++, NULL, NULL),
			"mx_isend");
	while (!own_probe(line, BITS_KEPT | (line->done - 1)))
		need(line, mx_progress(*sender), "mx_progress");
}

static void line_stage(struct line *line)
{
	bool any = line->request.measure == MEASURE_ANY_LATENCY;

	while (line->done < line->request.shape.depth) {
		if (any) {
			own_pass(line, BITS_OTHER);
			line->done++;
		} else {
			kept_fill(line);
		}
	}
	if (any) {
		own_pass(line, BITS);
		return;
	}
	own_send(line, BITS, NULL);
	while (!own_probe(line, BITS))
		;
}

static void line_find(struct line *line)
{
	mx_request_t request;
	mx_status_t status;
	uint32_t result;

	if (line->request.measure == MEASURE_KEPT_LATENCY) {
		request = receive_post(line, BITS);
		while (!request_ends(line, &request, 0))
			;
		return;
	}
	need(line, mx_test_any(line->endpoint, BITS, MX_MATCH_MASK_NONE, &status, &result),
		"mx_test_any");
	if (!result)
		line->request.complain("mx_test_any finds no request that is done.");
}

/* --- a line's life */

static void line_free(struct line *line)
{
	if (!line)
		return;
	free(line->receives);
	free(line->sends);
	free(line);
}

static void line_close(struct line *line)
{
	for (uint32_t i = 0; i < line->sender_count; i++)
		mx_close_endpoint(line->senders[i]);
	mx_close_endpoint(line->endpoint);
	library_leave();
	line_free(line);
}

static bool line_prepare(struct line *line, const struct line_request *request)
{
	enum measure measure = request->measure;

	line->request = *request;
	line->client = !request->server;
	line->posts =
		!measure_is_search(measure) && (line->client || measure != MEASURE_UNEXPECTED_RATE);
	line->places = request->messages + 1;
	line->taken = line->places;
	line->receives = calloc(line->places, sizeof(mx_request_t));
	line->sends = calloc(line->places, sizeof(mx_request_t));
	return line->receives && line->sends;
}

static struct line *line_open(
	const struct line_request *request, struct line_address *own, char *why, size_t room)
{
	struct line *line = calloc(1, sizeof(*line));
	mx_return_t code = MX_NO_RESOURCES;
	uint32_t id;

	if (line && line_prepare(line, request))
		code = library_enter();
	if (code == MX_SUCCESS) {
		code = mx_open_endpoint(
			request->interface, MX_ANY_ENDPOINT, FILTER, NULL, 0, &line->endpoint);
		if (code != MX_SUCCESS)
			library_leave();
	}
	if (code != MX_SUCCESS) {
		snprintf(why, room, "an endpoint cannot be opened on interface %u: %s",
			request->interface, mx_strerror(code));
		line_free(line);
		return NULL;
	}
	mx_get_endpoint_addr(line->endpoint, &line->own);
	mx_decompose_endpoint_addr(line->own, &own->numbers[0], &id);
	own->argument = id;
	if (line->posts)
		receives_renew(line);
	return line;
}

/* X1 */
static bool line_meet(struct line *line, const struct line_address *other)
{
	mx_status_t status;
	uint32_t result;

	if (!line->client)
		return true;
	if (!line->connect)
		need(line,
			mx_iconnect(line->endpoint, other->numbers[0], other->argument, FILTER, 0,
				NULL, &line->connect),
			"mx_iconnect");
	need(line, mx_test(line->endpoint, &line->connect, &status, &result), "mx_test");
	if (!result)
		return false;
	line->other = status.source;
	line->failed = status.code != MX_STATUS_SUCCESS;
	return true;
}

extern const struct line_module perf_line __attribute__((visibility("default")));

const struct line_module perf_line = {
	.release = PERF_RELEASE,
	.open = line_open,
	.meet = line_meet,
	.send = line_send,
	.credit = line_credit,
	.receive = line_receive,
	.stage = line_stage,
	.find = line_find,
	.close = line_close,
};
