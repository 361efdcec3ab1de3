/* SPDX-License-Identifier: BSD-3-Clause */
/* client_tests.c - stand-ins of the programs that come with MX, and of NetPIPE's module for MX. */
#include "clients.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t sizes[] = {0, 1, 4, 31, 128, 129, 1024, 4095, 32768, 32769, 131072, 1048577};

#define LARGEST 1048577

/* --- mx_msg_loop: one endpoint, to its own address, and no mx_connect() */

static void loop_once(mx_endpoint_t endpoint, mx_endpoint_addr_t own, char *from, char *to,
	size_t size, bool expected)
{
	mx_segment_t segment = {from, (uint32_t)size};
	const uint64_t match = 0x1234567887654321;
	mx_request_t send, receive = NULL;
	mx_status_t status;
	uint32_t result = 0;

	pattern_fill(from, size, (uint32_t)size);
	memset(to, 0, size + 1);
	if (expected)
		receive = post_receive(endpoint, to, size, match, MX_MATCH_MASK_NONE, to);
	check_ok(mx_issend(endpoint, &segment, 1, own, match, from, &send));
	if (!expected) {
		check_ok(mx_probe(
			endpoint, MX_INFINITE, match, MX_MATCH_MASK_NONE, &status, &result));
		check(result == 1 && status.msg_length == size && status.match_info == match);
		receive = post_receive(endpoint, to, size, match, MX_MATCH_MASK_NONE, to);
	}
	status = request_wait(endpoint, &receive);
	check(status.context == to && status.msg_length == size && status.xfer_length == size);
	status = request_wait(endpoint, &send);
	check(status.context == from);
	pattern_check(to, size, (uint32_t)size);
	check(to[size] == 0);
}

static void msg_loop(void)
{
	mx_endpoint_t endpoint = endpoint_open(MX_ANY_ENDPOINT, NULL, 0);
	char *from = malloc(LARGEST), *to = malloc(LARGEST + 1);
	mx_endpoint_addr_t own;

	check(from && to);
	check_ok(mx_get_endpoint_addr(endpoint, &own));
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		loop_once(endpoint, own, from, to, sizes[i], true);
		loop_once(endpoint, own, from, to, sizes[i], false);
	}
	free(from);
	free(to);
	check_ok(mx_close_endpoint(endpoint));
}

/* --- mx_pingpong: the receiver learns from the first message whom to connect to, its NIC id as 16
 * and 32 bits */

struct greeting {
	uint16_t high;
	uint16_t id;
	uint32_t low;
	uint32_t rounds;
};

#define ROUNDS 20

static void pingpong_server(void)
{
	mx_endpoint_t endpoint = endpoint_open(SERVER, NULL, 0);
	char *memory = malloc(LARGEST);
	struct greeting greeting;
	mx_endpoint_addr_t peer;
	mx_request_t request;

	check(memory);
	(void)nic_id_own(endpoint);
	request = post_receive(endpoint, &greeting, sizeof(greeting), 0, 0, NULL);
	check(request_wait(endpoint, &request).msg_length == sizeof(greeting));
	peer = peer_connect(endpoint, (uint64_t)greeting.high << 32 | greeting.low, greeting.id);
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		for (uint32_t round = 0; round < greeting.rounds; round++) {
			request = post_receive(
				endpoint, memory, sizes[i], 0x11223344, MX_MATCH_MASK_NONE, NULL);
			check(request_poll(endpoint, &request).xfer_length == sizes[i]);
			pattern_check(memory, sizes[i], round);
			pattern_fill(memory, sizes[i], round + 1000);
			request = post_send(endpoint, peer, memory, sizes[i], 0x11223344, NULL);
			(void)request_poll(endpoint, &request);
		}
	}
	free(memory);
	check_ok(mx_close_endpoint(endpoint));
}

static void pingpong_client(void)
{
	mx_endpoint_t endpoint = endpoint_open(MX_ANY_ENDPOINT, NULL, 0);
	const uint64_t nic_id = nic_id_own(endpoint);
	struct greeting greeting = {
		.high = (uint16_t)(nic_id >> 32), .low = MX_L32(nic_id), .rounds = ROUNDS};
	mx_segment_t segment = {&greeting, sizeof(greeting)};
	char *memory = malloc(LARGEST);
	mx_endpoint_addr_t peer, own;
	mx_request_t request, answer;
	uint64_t same;
	uint32_t id;

	check(memory);
	check_ok(mx_get_endpoint_addr(endpoint, &own));
	check_ok(mx_decompose_endpoint_addr(own, &same, &id));
	greeting.id = (uint16_t)id;
	peer = peer_connect(endpoint, nic_id, SERVER);
	check_ok(mx_issend(endpoint, &segment, 1, peer, 0x55, NULL, &request));
	(void)request_wait(endpoint, &request);
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		for (uint32_t round = 0; round < ROUNDS; round++) {
			pattern_fill(memory, sizes[i], round);
			request = post_send(endpoint, peer, memory, sizes[i], 0x11223344, NULL);
			(void)request_poll(endpoint, &request);
			answer = post_receive(
				endpoint, memory, sizes[i], 0x11223344, MX_MATCH_MASK_NONE, NULL);
			check(request_poll(endpoint, &answer).xfer_length == sizes[i]);
			pattern_check(memory, sizes[i], round + 1000);
		}
	}
	free(memory);
	check_ok(mx_close_endpoint(endpoint));
}

/* --- mx_wait_any_test: a context id of one bit at 41 */

#define CONTEXT  (UINT64_C(1) << 41)
#define MESSAGES 64

static mx_endpoint_t wait_any_open(uint32_t id)
{
	mx_param_t param = {.key = MX_PARAM_CONTEXT_ID, .val.context_id = {.bits = 1, .shift = 41}};

	return endpoint_open(id, &param, 1);
}

static void wait_any_server(void)
{
	mx_endpoint_t endpoint = wait_any_open(SERVER);
	static uint32_t memory[2][MESSAGES];
	mx_status_t status;
	uint32_t result;

	for (uint32_t i = 0; i < MESSAGES; i++)
		for (uint64_t kind = 0; kind < 2; kind++) {
			mx_request_t request =
				post_receive(endpoint, &memory[kind][i], sizeof(memory[kind][i]),
					kind * CONTEXT | i, MX_MATCH_MASK_NONE, &memory[kind][i]);

			(void)request;
		}
	/* Those of the second kind first, in the order in which they end: a synchronous one that
	 * was kept ends when its sender was told. */
	for (uint64_t kind = 2; kind-- > 0;) {
		uint64_t seen = 0;

		for (uint32_t n = 0; n < MESSAGES; n++) {
			uint64_t i;

			check_ok(mx_wait_any(
				endpoint, MX_INFINITE, kind * CONTEXT, CONTEXT, &status, &result));
			check(result == 1 && status.code == MX_STATUS_SUCCESS);
			i = status.match_info - kind * CONTEXT;
			check(i < MESSAGES && (seen >> i & 1) == 0);
			seen |= UINT64_C(1) << i;
			check(status.context == &memory[kind][i]);
			check(memory[kind][i] == kind * 1000 + i);
		}
	}
	result = 99;
	check_ok(mx_wait_any(endpoint, 20, 0, 0, &status, &result));
	check(result == 0);
	check_ok(mx_close_endpoint(endpoint));
}

static void wait_any_client(void)
{
	mx_endpoint_t endpoint = wait_any_open(MX_ANY_ENDPOINT);
	mx_endpoint_addr_t peer = peer_connect(endpoint, nic_id_own(endpoint), SERVER);
	static uint32_t memory[2][MESSAGES];
	mx_status_t status;
	uint32_t result;

	for (uint32_t i = 0; i < MESSAGES; i++)
		for (uint32_t kind = 0; kind < 2; kind++) {
			mx_segment_t segment = {&memory[kind][i], sizeof(memory[kind][i])};
			mx_request_t request;

			memory[kind][i] = kind * 1000 + i;
			check_ok(mx_issend(
				endpoint, &segment, 1, peer, kind * CONTEXT | i, NULL, &request));
		}
	for (uint32_t i = 0; i < 2 * MESSAGES; i++) {
		check_ok(mx_wait_any(endpoint, MX_INFINITE, 0, 0, &status, &result));
		check(result == 1 && status.code == MX_STATUS_SUCCESS);
	}
	check_ok(mx_close_endpoint(endpoint));
}

/* --- mx_stream: a window of messages under way */

#define WINDOW 16
#define STREAM 400

static void stream_server(void)
{
	mx_endpoint_t endpoint = endpoint_open(SERVER, NULL, 0);
	static char memory[WINDOW][40000];
	mx_request_t requests[WINDOW];
	mx_endpoint_addr_t peer;

	for (uint32_t i = 0; i < STREAM + WINDOW; i++) {
		char *place = memory[i % WINDOW];

		if (i >= WINDOW) {
			const uint32_t done = i - WINDOW;
			mx_status_t status = request_wait(endpoint, &requests[done % WINDOW]);

			check(status.msg_length == done * 97 % 40000);
			pattern_check(place, status.xfer_length, done);
		}
		if (i < STREAM)
			requests[i % WINDOW] = post_receive(
				endpoint, place, sizeof(memory[0]), 0x77, MX_MATCH_MASK_NONE, NULL);
	}
	peer = peer_connect(endpoint, nic_id_own(endpoint), CLIENT);
	requests[0] = post_send(endpoint, peer, memory, 1, 0x78, NULL);
	(void)request_wait(endpoint, &requests[0]);
	check_ok(mx_close_endpoint(endpoint));
}

static void stream_client(void)
{
	mx_endpoint_t endpoint = endpoint_open(CLIENT, NULL, 0);
	mx_endpoint_addr_t peer = peer_connect(endpoint, nic_id_own(endpoint), SERVER);
	static char memory[WINDOW][40000];
	mx_request_t requests[WINDOW];

	for (uint32_t i = 0; i < STREAM + WINDOW; i++) {
		if (i >= WINDOW)
			(void)request_poll(endpoint, &requests[i % WINDOW]);
		if (i >= STREAM)
			continue;
		pattern_fill(memory[i % WINDOW], i * 97 % 40000, i);
		requests[i % WINDOW] =
			post_send(endpoint, peer, memory[i % WINDOW], i * 97 % 40000, 0x77, NULL);
	}
	requests[0] = post_receive(endpoint, memory, 1, 0x78, MX_MATCH_MASK_NONE, NULL);
	(void)request_wait(endpoint, &requests[0]);
	check_ok(mx_close_endpoint(endpoint));
}

/* --- mx_wakeup_test: two threads each in six blocking calls, of a peer that is stopped */

enum blocked { WAIT_SEND, WAIT_RECEIVE, WAIT_CONNECT, IN_PROBE, IN_PEEK, IN_CONNECT, BLOCKED };

static struct sleeper {
	enum blocked kind;
	mx_endpoint_t endpoint;
	uint64_t nic_id;
	mx_request_t request;
	pthread_t thread;
} sleepers[2 * BLOCKED];

static void *sleeper_run(void *argument)
{
	struct sleeper *sleeper = argument;
	mx_endpoint_addr_t peer;
	mx_request_t request;
	uint32_t result = 99;
	mx_status_t status;
	mx_return_t code;

	switch (sleeper->kind) {
	case IN_PROBE:
		check_ok(mx_probe(sleeper->endpoint, MX_INFINITE, 0x99, MX_MATCH_MASK_NONE, &status,
			&result));
		check(result == 0);
		break;
	case IN_PEEK:
		check_ok(mx_peek(sleeper->endpoint, MX_INFINITE, &request, &result));
		check(result == 0);
		break;
	case IN_CONNECT:
		code = mx_connect(
			sleeper->endpoint, sleeper->nic_id, SERVER, FILTER, MX_INFINITE, &peer);
		check(code == MX_TIMEOUT || code == MX_SUCCESS);
		break;
	default:
		check_ok(mx_wait(
			sleeper->endpoint, &sleeper->request, MX_INFINITE, &status, &result));
		check(result == 0 && sleeper->request);
	}
	return NULL;
}

static void sleeper_post(struct sleeper *sleeper, mx_endpoint_addr_t peer)
{
	static char memory[100];
	mx_segment_t segment = {memory, sizeof(memory)};

	if (sleeper->kind == WAIT_SEND)
		check_ok(mx_issend(
			sleeper->endpoint, &segment, 1, peer, 0x88, NULL, &sleeper->request));
	else if (sleeper->kind == WAIT_RECEIVE)
		sleeper->request = post_receive(
			sleeper->endpoint, memory, sizeof(memory), 0x88, MX_MATCH_MASK_NONE, NULL);
	else if (sleeper->kind == WAIT_CONNECT)
		check_ok(mx_iconnect(sleeper->endpoint, sleeper->nic_id, SERVER, FILTER, 0, NULL,
			&sleeper->request));
}

static bool sleeper_joins(const struct sleeper *sleeper)
{
	struct timespec end;

	check(clock_gettime(CLOCK_REALTIME, &end) == 0);
	end.tv_sec += 2;
	return pthread_timedjoin_np(sleeper->thread, NULL, &end) == 0;
}

static void wakeup_server(void)
{
	mx_endpoint_t endpoint = endpoint_open(SERVER, NULL, 0);
	char last = 0;
	mx_request_t request = post_receive(endpoint, &last, 1, 1, MX_MATCH_MASK_NONE, NULL);

	(void)request_wait(endpoint, &request);
	check(last == 'x');
	check_ok(mx_close_endpoint(endpoint));
}

static void wakeup_client(void)
{
	mx_endpoint_t endpoint = endpoint_open(MX_ANY_ENDPOINT, NULL, 0);
	const uint64_t nic_id = nic_id_own(endpoint);
	mx_endpoint_addr_t peer = peer_connect(endpoint, nic_id, SERVER);
	mx_request_t request;
	char last = 'x';

	check(kill(peer_process, SIGSTOP) == 0);
	for (unsigned i = 0; i < COUNT(sleepers); i++) {
		sleepers[i] = (struct sleeper){.kind = (enum blocked)(i % BLOCKED),
			.endpoint = endpoint,
			.nic_id = nic_id};
		sleeper_post(&sleepers[i], peer);
		check(pthread_create(&sleepers[i].thread, NULL, sleeper_run, &sleepers[i]) == 0);
	}
	sleep(1);
	check_ok(mx_wakeup(endpoint));
	for (unsigned i = 0; i < COUNT(sleepers); i++)
		while (!sleeper_joins(&sleepers[i])) /* it was kept from its CPU, and slept after */
			check_ok(mx_wakeup(endpoint));
	check(kill(peer_process, SIGCONT) == 0);
	request = post_send(endpoint, peer, &last, 1, 1, NULL);
	(void)request_wait(endpoint, &request);
	check_ok(mx_close_endpoint(endpoint));
}

/* --- NPmx: sizes around each power of two; Sync is a send without a receive at the other end */

#define NP_LARGEST 262147

static void np_sync(mx_endpoint_t endpoint, mx_endpoint_addr_t peer)
{
	char out[] = "SyncMe", in[sizeof(out)] = "";
	mx_request_t send = post_send(endpoint, peer, out, sizeof(out), 0x6e70, NULL), receive;

	(void)request_poll(endpoint, &send);
	receive = post_receive(endpoint, in, sizeof(in), 0x6e70, MX_MATCH_MASK_NONE, NULL);
	(void)request_poll(endpoint, &receive);
	check(memcmp(in, out, sizeof(out)) == 0);
}

static void np_run(mx_endpoint_t endpoint, mx_endpoint_addr_t peer, bool first)
{
	char *memory = malloc(NP_LARGEST);
	mx_request_t request;

	check(memory);
	for (size_t base = 4; base <= NP_LARGEST - 3; base *= 4) {
		for (size_t size = base - 3; size <= base + 3; size += 3) {
			np_sync(endpoint, peer);
			/* The receive is posted ahead, while the other one may be sending. */
			if (!first) {
				request = post_receive(
					endpoint, memory, size, 0x11, MX_MATCH_MASK_NONE, NULL);
				(void)request_wait(endpoint, &request);
				pattern_check(memory, size, (uint32_t)size);
				continue;
			}
			pattern_fill(memory, size, (uint32_t)size);
			request = post_send(endpoint, peer, memory, size, 0x11, NULL);
			(void)request_wait(endpoint, &request);
		}
	}
	free(memory);
}

static void np_server(void)
{
	mx_endpoint_t endpoint = endpoint_open(SERVER, NULL, 0);
	mx_endpoint_addr_t peer = peer_connect(endpoint, nic_id_own(endpoint), CLIENT);

	np_run(endpoint, peer, true);
	np_sync(endpoint, peer);
	check_ok(mx_close_endpoint(endpoint));
}

static void np_client(void)
{
	mx_endpoint_t endpoint = endpoint_open(CLIENT, NULL, 0);
	mx_endpoint_addr_t peer = peer_connect(endpoint, nic_id_own(endpoint), SERVER);

	np_run(endpoint, peer, false);
	np_sync(endpoint, peer);
	check_ok(mx_close_endpoint(endpoint));
}

const struct client test_clients[] = {
	{"msg_loop", msg_loop, NULL, false},
	{"pingpong", pingpong_server, pingpong_client, false},
	{"wait_any", wait_any_server, wait_any_client, false},
	{"stream", stream_server, stream_client, false},
	{"wakeup", wakeup_server, wakeup_client, true},
	{"npmx", np_server, np_client, false},
	{NULL, NULL, NULL, false},
};
