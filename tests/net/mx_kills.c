/* SPDX-License-Identifier: BSD-3-Clause */
/* mx_kills.c - one of several MX processes that send to each other, of which mx_kills.py kills one
 * at any moment. The others keep books: each request must end once, with success if its peer was
 * not killed, and what arrives is whole, in order, and was meant for this life of the process.
 *
 *     mx_kills SELF_ID IGNORED LIFE
 *
 * LIFE is a number that grows from one start of a process to the next. Standard output speaks to
 * the driver, a line at a time; standard input listens to it. First "ready" is said, then "go" is
 * awaited, and then any of
 *
 *     connect NID ID LIFE   to that life of an endpoint, and sends to it from now on: "connected"
 *     nobody NID ID         connects to an endpoint that is not there, which must fail: "nobody"
 *     mortal ID 1|0         this endpoint may die from now on, or may not: "mortal"
 *     mourn ID              sends to it until a send fails, and until all have ended: "mourned"
 *     exchange              waits until EXCHANGED more messages have gone to and come from each
 *                           peer that is connected, and all to earlier lives have ended: "exchanged
 *                           FILES KILOBYTES", what the process has open, and has from malloc()
 *     stop                  no new sends: "stopped" is said when all have ended
 *     quit                  ends
 *
 * K1. The match bits of a message are its sender's life, the receiver's life that the sender has
 *     connected to, and a number, which counts from 0 for each connect.
 * K2. All receives match everything, so messages match them in the order in which they were posted,
 *     and the numbers of a sender come one after the other.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mx_extensions.h>

#include "books.h"
#include "bytes.h"

#define FILTER     7
#define PEERS      4
#define SENDS      12 /* at a time, to each peer */
#define RECEIVES   16
#define LONGEST    200000
#define EAGER      32768
#define EXCHANGED  50
#define TIMEOUT    60000 /* ms; generous, the cores may be busy */
#define NOBODY     2000  /* ms for a connect to nobody */
#define MOMENT     10000 /* us */
#define LIFE_SHIFT 48
#define TO_SHIFT   32

struct message {
	mx_request_t request;
	struct peer *peer;       /* of a send; NULL: it is free */
	uint64_t bits;           /* of a receive that has ended */
	mx_endpoint_addr_t from; /* likewise */
	uint32_t length;         /* likewise */
	mx_status_code_t code;   /* likewise */
	bool done;               /* likewise */
	unsigned char data[LONGEST];
};

struct peer {
	uint32_t id, nid;
	mx_endpoint_addr_t address;
	bool connected, mortal;
	uint32_t life;      /* that was connected to */
	uint32_t sent;      /* number of the next message */
	uint32_t heard;     /* the life that was heard last */
	uint32_t next;      /* number of its next message */
	unsigned under_way; /* sends */
	uint64_t sends_done, receives_done;
	uint64_t sends_wanted, receives_wanted;
};

static mx_endpoint_t endpoint;
static uint64_t nic_prefix; /* of the NIC ids of all nodes */
static uint32_t self, life;
static struct peer peers[PEERS];
static struct message sends[PEERS * SENDS], receives[RECEIVES];
static unsigned oldest; /* receive */
static bool stopping;
static uint64_t draw = 1;

static _Noreturn void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "mx_kills %u, life %u: ", self, life);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

static void ok(mx_return_t code, const char *call)
{
	if (code != MX_SUCCESS)
		fail("%s: %s", call, mx_strerror(code));
}

static uint64_t drawn(uint64_t below)
{
	return (draw = mix(draw, life)) % below;
}

static struct peer *peer_of(uint32_t id)
{
	for (unsigned i = 0; i < PEERS; i++)
		if (peers[i].id == id || peers[i].id == 0) {
			peers[i].id = id;
			return &peers[i];
		}
	fail("there are more than %d peers", PEERS);
}

static void say(const char *word)
{
	printf("%s\n", word);
	fflush(stdout);
}

/* --- messages */

static uint32_t length_draw(void)
{
	static const uint32_t most[] = {1, 64, 5000, EAGER, EAGER + 1, LONGEST};

	return (uint32_t)drawn(most[drawn(sizeof(most) / sizeof(most[0]))] + 1u);
}

static void message_send(struct peer *peer, struct message *message)
{
	mx_segment_t segment = {message->data, length_draw()};

	message->bits =
		(uint64_t)life << LIFE_SHIFT | (uint64_t)peer->life << TO_SHIFT | peer->sent++;
	bytes_fill(message->data, segment.segment_length, message->bits);
	message->peer = peer;
	peer->under_way++;
	ok((drawn(8) == 0 ? mx_issend : mx_isend)(
		   endpoint, &segment, 1, peer->address, message->bits, message, &message->request),
		"mx_isend");
}

static void sends_post(void)
{
	for (unsigned i = 0; i < PEERS; i++) {
		struct message *message = sends + i * SENDS;
		struct peer *peer = &peers[i];

		for (; peer->connected && !stopping && message < sends + (i + 1) * SENDS; message++)
			if (!message->peer)
				message_send(peer, message);
	}
}

static void receive_post(struct message *message)
{
	mx_segment_t segment = {message->data, LONGEST};

	message->done = false;
	ok(mx_irecv(endpoint, &segment, 1, 0, 0, message, &message->request), "mx_irecv");
}

static void send_ended(struct message *message, const mx_status_t *status)
{
	struct peer *peer = message->peer;

	message->peer = NULL;
	peer->under_way--;
	peer->sends_done++;
	if (status->code == MX_STATUS_SUCCESS)
		return;
	if (!peer->mortal)
		fail("a send to %u, which lives, ends with: %s", peer->id,
			mx_strstatus(status->code));
	/* One to an earlier life says nothing of this one. */
	if ((uint16_t)(message->bits >> TO_SHIFT) == peer->life)
		peer->connected = false;
}

/* K2. */
static void receive_check(struct message *message)
{
	uint32_t from = (uint32_t)(message->bits >> LIFE_SHIFT), number = (uint32_t)message->bits;
	uint32_t to = message->bits >> TO_SHIFT & UINT16_MAX, id;
	struct peer *peer;
	uint64_t nic;

	ok(mx_decompose_endpoint_addr(message->from, &nic, &id), "mx_decompose_endpoint_addr");
	peer = peer_of(id);
	if (to != life)
		fail("a message of %u is for life %u", id, to);
	if (from < peer->heard)
		fail("life %u of %u speaks after life %u", from, id, peer->heard);
	if (from > peer->heard) {
		peer->heard = from;
		peer->next = 0;
	}
	if (number != peer->next++)
		fail("message %u of %u came, %u was expected", number, id, peer->next - 1);
	if (message->code == MX_STATUS_SUCCESS)
		bytes_check(message->data, message->length, message->bits, 0);
	else if (!peer->mortal)
		fail("a receive from %u, which lives, ends with: %s", id,
			mx_strstatus(message->code));
	peer->receives_done++;
}

static void receive_ended(struct message *message, const mx_status_t *status)
{
	message->done = true;
	message->bits = status->match_info;
	message->from = status->source;
	message->length = status->xfer_length;
	message->code = status->code;
	for (; receives[oldest].done; oldest = (oldest + 1) % RECEIVES) {
		receive_check(&receives[oldest]);
		receive_post(&receives[oldest]);
	}
}

/* Takes what has ended; waits for a moment if there is nothing. */
static void requests_take(void)
{
	mx_status_t status;
	uint32_t result;

	sends_post();
	ok(mx_wait_any(endpoint, 1, 0, 0, &status, &result), "mx_wait_any");
	while (result != 0) {
		struct message *message = status.context;

		if (message >= receives && message < receives + RECEIVES)
			receive_ended(message, &status);
		else
			send_ended(message, &status);
		ok(mx_test_any(endpoint, 0, 0, &status, &result), "mx_test_any");
	}
}

/* --- what the driver says */

static void connect_to(uint32_t nid, uint32_t id, uint32_t its_life)
{
	struct peer *peer = peer_of(id);
	void *context = NULL;
	mx_return_t code;

	/* Sends of before hold their places until they end. */
	do
		code = mx_connect(endpoint, nic_prefix | nid, id, FILTER, TIMEOUT, &peer->address);
	while (code == MX_CONNECTION_FAILED);
	ok(code, "mx_connect");
	ok(mx_get_endpoint_addr_context(peer->address, &context), "mx_get_endpoint_addr_context");
	if (context != (peer->nid ? peer : NULL))
		fail("the context of %u is %p", id, context);
	ok(mx_set_endpoint_addr_context(peer->address, peer), "mx_set_endpoint_addr_context");
	peer->nid = nid;
	peer->life = its_life;
	peer->sent = 0;
	peer->connected = true;
	say("connected");
}

static void connect_to_nobody(uint32_t nid, uint32_t id)
{
	mx_endpoint_addr_t address;
	mx_return_t code = mx_connect(endpoint, nic_prefix | nid, id, FILTER, NOBODY, &address);

	if (code != MX_CONNECTION_FAILED && code != MX_TIMEOUT)
		fail("mx_connect to nobody: %s", mx_strerror(code));
	say("nobody");
}

/* That takes seconds, in which the messages to others need not use all of the CPUs. */
static void mourn(struct peer *peer)
{
	while (peer->connected || peer->under_way != 0) {
		requests_take();
		usleep(MOMENT);
	}
	say("mourned");
}

/* Has every send to an earlier life of its peer ended? */
static bool past_is_over(void)
{
	for (unsigned i = 0; i < PEERS * SENDS; i++) {
		const struct peer *peer = sends[i].peer;

		if (peer && (sends[i].bits >> TO_SHIFT & UINT16_MAX) != peer->life)
			return false;
	}
	return true;
}

static bool exchanged(void)
{
	for (unsigned i = 0; i < PEERS; i++)
		if (peers[i].connected &&
			(peers[i].sends_done < peers[i].sends_wanted ||
				peers[i].receives_done < peers[i].receives_wanted))
			return false;
	return past_is_over();
}

static void mortal(struct peer *peer, bool may_die)
{
	peer->mortal = may_die;
	say("mortal");
}

static void exchange(void)
{
	for (unsigned i = 0; i < PEERS; i++) {
		peers[i].sends_wanted = peers[i].sends_done + EXCHANGED;
		peers[i].receives_wanted = peers[i].receives_done + EXCHANGED;
	}
	while (!exchanged())
		requests_take();
	printf("exchanged %u %zu\n", files_open(), heap_kilobytes());
	fflush(stdout);
}

static void stop(void)
{
	stopping = true;
	for (unsigned i = 0; i < PEERS; i++)
		while (peers[i].under_way != 0)
			requests_take();
	say("stopped");
}

static void quit(void)
{
	for (unsigned i = 0; i < RECEIVES; i++) {
		uint32_t result = 0;

		if (!receives[i].done)
			ok(mx_cancel(endpoint, &receives[i].request, &result), "mx_cancel");
	}
	ok(mx_close_endpoint(endpoint), "mx_close_endpoint");
	ok(mx_finalize(), "mx_finalize");
	exit(0);
}

static void obey(char *line)
{
	uint32_t first = 0, second = 0, third = 0;
	char word[16] = "";

	if (sscanf(line, "%15s %u %u %u", word, &first, &second, &third) < 1)
		fail("the driver says nothing");
	if (strcmp(word, "connect") == 0)
		connect_to(first, second, third);
	else if (strcmp(word, "nobody") == 0)
		connect_to_nobody(first, second);
	else if (strcmp(word, "mortal") == 0)
		mortal(peer_of(first), second != 0);
	else if (strcmp(word, "mourn") == 0)
		mourn(peer_of(first));
	else if (strcmp(word, "exchange") == 0)
		exchange();
	else if (strcmp(word, "stop") == 0)
		stop();
	else if (strcmp(word, "quit") == 0)
		quit();
	else
		fail("the driver says \"%s\"", line);
}

/* Standard input is read byte by byte, so that poll() knows what is left. */
static void listen(void)
{
	static char line[128];
	static size_t length;
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	while (poll(&input, 1, 0) > 0) {
		if (length == sizeof(line) - 1 || read(STDIN_FILENO, line + length, 1) != 1)
			exit(1);
		if (line[length++] != '\n')
			continue;
		line[length - 1] = '\0';
		length = 0;
		obey(line);
		return;
	}
}

int main(int argc, char **argv)
{
	char go[8];

	if (argc != 4)
		return 2;
	self = (uint32_t)strtoul(argv[1], NULL, 10);
	life = (uint32_t)strtoul(argv[3], NULL, 10);
	draw = life;
	mx_set_error_handler(MX_ERRORS_RETURN);
	ok(mx_init(), "mx_init");
	ok(mx_board_number_to_nic_id(0, &nic_prefix), "mx_board_number_to_nic_id");
	nic_prefix &= ~(uint64_t)UINT32_MAX;
	ok(mx_open_endpoint(0, self, FILTER, NULL, 0, &endpoint), "mx_open_endpoint");
	for (unsigned i = 0; i < RECEIVES; i++)
		receive_post(&receives[i]);
	say("ready");
	if (read(STDIN_FILENO, go, 3) != 3)
		return 1;
	for (;;) {
		requests_take();
		listen();
	}
}
