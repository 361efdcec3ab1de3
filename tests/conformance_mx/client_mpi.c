/* SPDX-License-Identifier: BSD-3-Clause */
/* client_mpi.c - stand-ins of bmi_mx, MPICH's nemesis, and Open MPI's mtl and btl. */
#include "clients.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST 300000

static const size_t sizes[] = {0, 1, 100, 1024, 1025, 32768, 32769, LARGEST};

/* --- bmi_mx: a context id of 4 bits at 60 says what a message is; connects are requests that are
 * reaped by test_any, and whose handles go out of scope */

#define BMI_SHIFT 60
#define BMI_MASK  (UINT64_C(0xf) << BMI_SHIFT)
#define BMI(kind) ((uint64_t)(kind) << BMI_SHIFT)

enum { ICON_REQUEST = 1, CONN_REQUEST, ICON_ACK, CONN_ACK, UNEXPECTED, EXPECTED };

struct bmi_peer {
	mx_endpoint_addr_t address;
	uint64_t nic_id;
	uint32_t id, session;
	bool connected;
};

struct bmi_server {
	mx_endpoint_t endpoint;
	struct bmi_peer peer;
	char unexpected[1024];
	uint32_t unexpected_seen;
};

static mx_endpoint_t bmi_open(uint32_t id)
{
	mx_param_t param = {
		.key = MX_PARAM_CONTEXT_ID, .val.context_id = {.bits = 4, .shift = BMI_SHIFT}};
	mx_endpoint_t endpoint = endpoint_open(id, &param, 1);

	check_ok(mx_set_request_timeout(endpoint, NULL, 20000));
	return endpoint;
}

static void bmi_iconnect(mx_endpoint_t endpoint, struct bmi_peer *peer, unsigned kind)
{
	mx_request_t request;

	check_ok(mx_iconnect(endpoint, peer->nic_id, peer->id, FILTER, BMI(kind), peer, &request));
}

static mx_unexp_handler_action_t bmi_handler(
	void *context, mx_endpoint_addr_t source, uint64_t match, uint32_t length, void *data)
{
	struct bmi_server *server = context;
	void *peer = &server;

	check_ok(mx_get_endpoint_addr_context(source, &peer));
	switch (match >> BMI_SHIFT) {
	case CONN_REQUEST:
		/* The text says who it is; the connect back is posted here. */
		check(!peer && data && length <= MX_MAX_HOSTNAME_LEN);
		check(((char *)data)[length - 1] == '\0' && strchr(data, ':'));
		check_ok(mx_decompose_endpoint_addr2(
			source, &server->peer.nic_id, &server->peer.id, &server->peer.session));
		bmi_iconnect(server->endpoint, &server->peer, ICON_ACK);
		return MX_RECV_FINISHED;
	case UNEXPECTED:
		check(peer == &server->peer && data && length <= sizeof(server->unexpected));
		memcpy(server->unexpected, data, length);
		pattern_check(server->unexpected, length, server->unexpected_seen++);
		return MX_RECV_FINISHED;
	default:
		return MX_RECV_CONTINUE;
	}
}

static void bmi_server(void)
{
	struct bmi_server server = {.endpoint = bmi_open(SERVER)};
	char *memory = malloc(LARGEST);
	mx_request_t request;
	mx_status_t status;
	uint32_t result, session;
	uint64_t nic_id;
	uint32_t id;

	check(memory);
	check_ok(mx_register_unexp_handler(server.endpoint, bmi_handler, &server));
	status = any_poll(server.endpoint, BMI(ICON_ACK), BMI_MASK);
	check(status.context == &server.peer);
	server.peer.address = status.source;
	check_ok(mx_decompose_endpoint_addr2(status.source, &nic_id, &id, &session));
	check(nic_id == server.peer.nic_id && id == server.peer.id);
	check(session == server.peer.session);
	check_ok(mx_set_endpoint_addr_context(status.source, &server.peer));
	(void)post_send(server.endpoint, status.source, NULL, 0, BMI(CONN_ACK), NULL);
	(void)any_poll(server.endpoint, BMI(CONN_ACK), BMI_MASK);
	for (uint32_t i = 0; i < COUNT(sizes); i++) {
		request = post_receive(server.endpoint, memory, LARGEST, BMI(EXPECTED) | i,
			MX_MATCH_MASK_NONE, &server);
		status = any_poll(server.endpoint, BMI(EXPECTED), BMI_MASK);
		check(status.context == &server && status.xfer_length == sizes[i]);
		pattern_check(memory, sizes[i], i);
	}
	while (server.unexpected_seen < COUNT(sizes)) {
		check_ok(mx_test_any(server.endpoint, BMI(EXPECTED), BMI_MASK, &status, &result));
		check(result == 0);
	}
	request = post_receive(
		server.endpoint, memory, 1, BMI(EXPECTED) | 0xffff, MX_MATCH_MASK_NONE, NULL);
	check_ok(mx_cancel(server.endpoint, &request, &result));
	check(result == 1 && !request);
	(void)post_send(server.endpoint, server.peer.address, NULL, 0, BMI(CONN_ACK), NULL);
	(void)any_poll(server.endpoint, BMI(CONN_ACK), BMI_MASK);
	free(memory);
	sleep(1); /* a client that goes is told by its messages, not by its end */
	check_ok(mx_disconnect(server.endpoint, server.peer.address));
	check_ok(mx_close_endpoint(server.endpoint));
}

static void bmi_connect(mx_endpoint_t endpoint, struct bmi_peer *peer)
{
	mx_status_t status;
	uint32_t result;
	char name[MX_MAX_HOSTNAME_LEN];
	mx_segment_t segment = {name, 0};
	mx_request_t request;

	/* The server may not be open yet: then it is refused, and bmi tries again. */
	do {
		bmi_iconnect(endpoint, peer, ICON_REQUEST);
		check_ok(mx_wait_any(
			endpoint, MX_INFINITE, BMI(ICON_REQUEST), BMI_MASK, &status, &result));
		check(result == 1 && status.context == peer);
		check(status.code == MX_STATUS_SUCCESS || status.code == MX_STATUS_ENDPOINT_CLOSED);
	} while (status.code != MX_STATUS_SUCCESS);
	peer->address = status.source;
	check_ok(mx_set_endpoint_addr_context(peer->address, peer));
	check_ok(mx_nic_id_to_hostname(peer->nic_id, name));
	segment.segment_length = (uint32_t)strlen(name) + 1;
	check_ok(mx_isend(endpoint, &segment, 1, peer->address, BMI(CONN_REQUEST), NULL, &request));
	(void)any_poll(endpoint, BMI(CONN_REQUEST), BMI_MASK);
}

static void bmi_await(mx_endpoint_t endpoint)
{
	mx_request_t request = post_receive(endpoint, NULL, 0, BMI(CONN_ACK), BMI_MASK, NULL);

	check(request && any_poll(endpoint, BMI(CONN_ACK), BMI_MASK).msg_length == 0);
}

static void bmi_client(void)
{
	mx_endpoint_t endpoint = bmi_open(MX_ANY_ENDPOINT);
	struct bmi_peer peer = {.nic_id = nic_id_own(endpoint), .id = SERVER};
	char *memory = malloc(LARGEST);
	void *context = NULL;

	check(memory);
	bmi_connect(endpoint, &peer);
	bmi_await(endpoint);
	check_ok(mx_get_endpoint_addr_context(peer.address, &context));
	check(context == &peer);
	for (uint32_t i = 0; i < COUNT(sizes); i++) {
		pattern_fill(memory, sizes[i], i);
		(void)post_send(endpoint, peer.address, memory, sizes[i], BMI(EXPECTED) | i, NULL);
		(void)any_poll(endpoint, BMI(EXPECTED), BMI_MASK);
	}
	for (uint32_t i = 0; i < COUNT(sizes); i++) {
		const size_t size = sizes[i] < 1024 ? sizes[i] : 1024;

		pattern_fill(memory, size, i);
		(void)post_send(endpoint, peer.address, memory, size, BMI(UNEXPECTED), NULL);
		(void)any_poll(endpoint, BMI(UNEXPECTED), BMI_MASK);
	}
	bmi_await(endpoint);
	free(memory);
	check_ok(mx_close_endpoint(endpoint));
}

/* --- MPICH's nemesis: a context id of one bit at 63, a handler that posts a receive of exactly the
 * message's length with bits that all peers share */

#define NEM_BIT      (UINT64_C(1) << 63)
#define NEM_MESSAGES 50

struct nem {
	mx_endpoint_t endpoint;
	char *memory[NEM_MESSAGES];
	uint32_t posted;
};

static size_t nem_size(uint32_t message)
{
	return message * message * 17 % 60000 + 1;
}

static mx_unexp_handler_action_t nem_handler(
	void *context, mx_endpoint_addr_t source, uint64_t match, uint32_t length, void *data)
{
	struct nem *nem = context;

	(void)source;
	(void)data;
	if (!(match & NEM_BIT))
		return MX_RECV_CONTINUE;
	check(nem->posted < NEM_MESSAGES && length == nem_size(nem->posted));
	nem->memory[nem->posted] = malloc(length);
	check(nem->memory[nem->posted]);
	(void)post_receive(nem->endpoint, nem->memory[nem->posted], length, NEM_BIT,
		MX_MATCH_MASK_NONE, nem->memory[nem->posted]);
	nem->posted++;
	return MX_RECV_CONTINUE;
}

static mx_endpoint_t nem_open(uint32_t id)
{
	mx_param_t param = {.key = MX_PARAM_CONTEXT_ID, .val.context_id = {.bits = 1, .shift = 63}};
	mx_endpoint_t endpoint = endpoint_open(id, &param, 1);
	uint32_t eager = 0;

	check_ok(mx_get_info(endpoint, MX_COPY_SEND_MAX, NULL, 0, &eager, sizeof(eager)));
	check(eager == 32768);
	return endpoint;
}

static void nem_cancel(mx_endpoint_t endpoint)
{
	uint32_t result = 99;
	char never;
	mx_request_t request = post_receive(endpoint, &never, 1, 0x600d, MX_MATCH_MASK_NONE, NULL);

	check_ok(mx_cancel(endpoint, &request, &result));
	check(result == 1 && !request);
}

static void nem_server(void)
{
	struct nem nem = {.endpoint = nem_open(SERVER)};
	char direct[64];
	uint32_t result = 0;
	mx_status_t status;
	mx_request_t request;

	check_ok(mx_register_unexp_handler(nem.endpoint, nem_handler, &nem));
	for (uint32_t message = 0; message < NEM_MESSAGES; message++) {
		/* Both kinds in turn, as its progress does. */
		result = 0;
		while (result == 0) {
			check_ok(mx_disable_progression(nem.endpoint));
			check_ok(mx_reenable_progression(nem.endpoint));
			check_ok(mx_test_any(nem.endpoint, 0, NEM_BIT, &status, &result));
			check(result == 0);
			check_ok(mx_test_any(nem.endpoint, NEM_BIT, NEM_BIT, &status, &result));
		}
		check(status.code == MX_STATUS_SUCCESS && status.context == nem.memory[message]);
		check(status.xfer_length == nem_size(message));
		check(status.msg_length == nem_size(message));
		pattern_check(status.context, status.xfer_length, message);
		free(status.context);
		nem_cancel(nem.endpoint);
	}
	/* MPI_Probe, then a receive of just this length. */
	result = 0;
	while (result == 0)
		check_ok(mx_iprobe(nem.endpoint, 7, MX_MATCH_MASK_NONE, &status, &result));
	check(status.msg_length == sizeof(direct) && status.xfer_length == sizeof(direct));
	request =
		post_receive(nem.endpoint, direct, status.msg_length, 7, MX_MATCH_MASK_NONE, NULL);
	(void)request_wait(nem.endpoint, &request);
	pattern_check(direct, sizeof(direct), 7);
	check_ok(mx_close_endpoint(nem.endpoint));
}

static void nem_client(void)
{
	mx_endpoint_t endpoint = nem_open(MX_ANY_ENDPOINT);
	mx_endpoint_addr_t peer = peer_connect(endpoint, nic_id_own(endpoint), SERVER);
	char *memory = malloc(60001), direct[64];
	mx_segment_t segment = {direct, sizeof(direct)};
	mx_request_t request;
	uint32_t result = 99;

	check(memory);
	for (uint32_t message = 0; message < NEM_MESSAGES; message++) {
		pattern_fill(memory, nem_size(message), message);
		request = post_send(endpoint, peer, memory, nem_size(message), NEM_BIT, NULL);
		(void)request_poll(endpoint, &request);
	}
	pattern_fill(direct, sizeof(direct), 7);
	check_ok(mx_issend(endpoint, &segment, 1, peer, 7, NULL, &request));
	check(mx_cancel(endpoint, &request, &result) != MX_SUCCESS && result == 0 && request);
	(void)request_wait(endpoint, &request);
	free(memory);
	check_ok(mx_close_endpoint(endpoint));
}

/* --- Open MPI's mtl: tag, source and context in the bits; all progress is ipeek and test */

#define MTL(context, source, tag)                                                                  \
	((uint64_t)(context) << 48 | (uint64_t)(source) << 32 | (uint32_t)(tag))
#define MTL_ANY_SOURCE UINT64_C(0xffff0000ffffffff)

/* Returns the context of what has ended. */
static void *peek_poll(mx_endpoint_t endpoint, mx_status_t *status)
{
	mx_request_t request = NULL;
	uint32_t result = 0;

	while (result == 0)
		check_ok(mx_ipeek(endpoint, &request, &result));
	check_ok(mx_test(endpoint, &request, status, &result));
	check(result == 1);
	return status->context;
}

static void mtl_server(void)
{
	mx_endpoint_t endpoint = endpoint_open(SERVER, NULL, 0);
	char *memory = malloc(LARGEST), small[10];
	uint32_t result = 0;
	mx_status_t status;

	check(memory);
	for (uint32_t i = 0; i < COUNT(sizes); i++) {
		(void)post_receive(
			endpoint, memory, LARGEST, MTL(1, 0, i), MTL_ANY_SOURCE, &memory[i]);
		check(peek_poll(endpoint, &status) == &memory[i]);
		check(status.code == MX_STATUS_SUCCESS && status.xfer_length == sizes[i]);
		check(status.match_info == MTL(1, 9, i));
		pattern_check(memory, sizes[i], i);
	}
	while (result == 0)
		check_ok(mx_iprobe(endpoint, MTL(1, 9, 77), MX_MATCH_MASK_NONE, &status, &result));
	check(status.msg_length == 100);
	(void)post_receive(
		endpoint, small, sizeof(small), MTL(1, 9, 77), MX_MATCH_MASK_NONE, small);
	check(peek_poll(endpoint, &status) == small);
	check(status.code == MX_STATUS_TRUNCATED && status.msg_length == 100);
	check(status.xfer_length == sizeof(small));
	pattern_check(small, sizeof(small), 77);
	check(mx__regcache_clean(memory, LARGEST) == 0);
	free(memory);
	check_ok(mx_close_endpoint(endpoint));
}

static void mtl_client(void)
{
	mx_endpoint_t endpoint = endpoint_open(MX_ANY_ENDPOINT, NULL, 0);
	mx_endpoint_addr_t peer = peer_connect(endpoint, nic_id_own(endpoint), SERVER);
	char *memory = malloc(LARGEST);
	mx_segment_t segment = {memory, 100};
	mx_request_t request;
	mx_status_t status;

	check(memory);
	for (uint32_t i = 0; i < COUNT(sizes); i++) {
		pattern_fill(memory, sizes[i], i);
		(void)post_send(endpoint, peer, memory, sizes[i], MTL(1, 9, i), &memory[i]);
		check(peek_poll(endpoint, &status) == &memory[i]);
		check(status.code == MX_STATUS_SUCCESS);
	}
	pattern_fill(memory, 100, 77);
	check_ok(mx_issend(endpoint, &segment, 1, peer, MTL(1, 9, 77), memory, &request));
	check(peek_poll(endpoint, &status) == memory && status.code == MX_STATUS_SUCCESS);
	free(memory);
	check_ok(mx_close_endpoint(endpoint));
}

/* --- Open MPI's btl: ibuffered right after isend; a put is a receive that is forgotten at once */

#define BTL_TAG 0x42
#define BTL_PUT UINT64_C(0x4000000000000001)

static uint32_t btl_seen;

static mx_unexp_handler_action_t btl_handler(
	void *context, mx_endpoint_addr_t source, uint64_t match, uint32_t length, void *data)
{
	(void)context;
	(void)source;
	if (match != BTL_TAG)
		return MX_RECV_CONTINUE;
	/* The btl reads it unchecked. */
	check(data && length <= 1024);
	pattern_check(data, length, btl_seen++);
	return MX_RECV_FINISHED;
}

/* What it asks its endpoint; all but the line's speed for people who look for faults. */
static void btl_ask(mx_endpoint_t endpoint, uint32_t board)
{
	char text[MX_MAX_STR_LEN], labels[512][MX_MAX_STR_LEN];
	uint32_t number = 99, values[512];

	check_ok(mx_get_info(
		endpoint, MX_LINE_SPEED, &board, sizeof(board), &number, sizeof(number)));
	check(number == MX_SPEED_2G || number == MX_SPEED_10G);
	check_ok(mx_get_info(endpoint, MX_PIO_SEND_MAX, NULL, 0, &number, sizeof(number)));
	check(number > 0);
	check_ok(mx_get_info(endpoint, MX_COPY_SEND_MAX, NULL, 0, &number, sizeof(number)));
	check(number == 32768);
	check_ok(mx_get_info(
		endpoint, MX_PRODUCT_CODE, &board, sizeof(board), text, MX_MAX_STR_LEN));
	check_ok(mx_get_info(
		endpoint, MX_COUNTERS_COUNT, &board, sizeof(board), &number, sizeof(number)));
	check(number > 0 && number <= COUNT(values));
	check_ok(mx_get_info(endpoint, MX_COUNTERS_LABELS, &board, sizeof(board), labels,
		number * MX_MAX_STR_LEN));
	check_ok(mx_get_info(endpoint, MX_COUNTERS_VALUES, &board, sizeof(board), values,
		number * (uint32_t)sizeof(values[0])));
}

static mx_endpoint_t btl_open(uint32_t id)
{
	uint32_t count = 0, board = 99;
	uint64_t nic_ids[8];
	mx_mapper_state_t mapper;
	mx_endpt_handle_t handle;
	mx_endpoint_t endpoint;

	check_ok(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &count, sizeof(count)));
	check(count >= 1 && count < COUNT(nic_ids));
	check_ok(mx_get_info(
		NULL, MX_NIC_IDS, NULL, 0, nic_ids, (count + 1) * (uint32_t)sizeof(nic_ids[0])));
	check_ok(mx_nic_id_to_board_number(nic_ids[0], &board));
	check_ok(mx_open_board((int)board, &handle));
	check_ok(mx__get_mapper_state(handle, &mapper));
	check_ok(mx_open_endpoint(board, id, FILTER, NULL, 0, &endpoint));
	btl_ask(endpoint, board);
	return endpoint;
}

static void btl_server(void)
{
	mx_endpoint_t endpoint = btl_open(SERVER);
	char *target = calloc(1, LARGEST);
	uint32_t result = 0;
	mx_request_t request;
	mx_endpoint_addr_t peer;

	check(target);
	request = post_receive(endpoint, target, LARGEST, BTL_PUT, MX_MATCH_MASK_NONE, NULL);
	check_ok(mx_forget(endpoint, &request));
	check(!request);
	check_ok(mx_register_unexp_handler(endpoint, btl_handler, NULL));
	while (btl_seen < 1000) {
		check_ok(mx_ipeek(endpoint, &request, &result));
		check(result == 0);
	}
	/* The last message came behind the put, so its data is here or follows. */
	peer = peer_connect(endpoint, nic_id_own(endpoint), CLIENT);
	request = post_send(endpoint, peer, NULL, 0, 1, NULL);
	(void)request_poll(endpoint, &request);
	request = post_receive(endpoint, NULL, 0, 2, MX_MATCH_MASK_NONE, NULL);
	(void)request_poll(endpoint, &request);
	pattern_check(target, LARGEST, 5);
	check_ok(mx_ipeek(endpoint, &request, &result));
	check(result == 0);
	free(target);
	check_ok(mx_close_endpoint(endpoint));
}

static void btl_client(void)
{
	mx_endpoint_t endpoint = btl_open(CLIENT);
	mx_endpoint_addr_t peer = peer_connect(endpoint, nic_id_own(endpoint), SERVER);
	char *memory = malloc(LARGEST), small[1024];
	uint32_t buffered;
	mx_request_t request, put;

	check(memory);
	pattern_fill(memory, LARGEST, 5);
	put = post_send(endpoint, peer, memory, LARGEST, BTL_PUT, NULL);
	for (uint32_t i = 0; i < 1000; i++) {
		pattern_fill(small, i % 1025, i);
		request = post_send(endpoint, peer, small, i % 1025, BTL_TAG, NULL);
		check_ok(mx_ibuffered(endpoint, &request, &buffered));
		/* The memory may be changed, and nobody asks again; or it waits for credit. */
		if (buffered != 0)
			check_ok(mx_forget(endpoint, &request));
		else
			(void)request_wait(endpoint, &request);
	}
	/* A long send ends when the receiver has got it. */
	(void)request_wait(endpoint, &put);
	request = post_receive(endpoint, NULL, 0, 1, MX_MATCH_MASK_NONE, NULL);
	(void)request_wait(endpoint, &request);
	request = post_send(endpoint, peer, NULL, 0, 2, NULL);
	(void)request_wait(endpoint, &request);
	free(memory);
	check_ok(mx_close_endpoint(endpoint));
}

const struct client mpi_clients[] = {
	{"bmi_mx", bmi_server, bmi_client, false},
	{"mpich", nem_server, nem_client, false},
	{"mtl", mtl_server, mtl_client, false},
	{"btl", btl_server, btl_client, false},
	{NULL, NULL, NULL, false},
};
