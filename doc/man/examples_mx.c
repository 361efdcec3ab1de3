/* SPDX-License-Identifier: BSD-3-Clause */
/* examples_mx.c - the examples of the pages of MX, as examples.c has those of Portals 3.2: run one
 * after the other by a process with itself. manual.py shows the body of a function on each page
 * that the comment before it names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <mx_extensions.h>
#include <mx_io.h>

#define FILTER 0x4d58
#define ID     3

/* Example: mx_init mx__init_api mx_set_error_handler mx_strerror mx_open_endpoint mx_get_info */
static mx_endpoint_t open_endpoint(void)
{
	mx_endpoint_t endpoint;
	mx_return_t code;
	uint32_t boards;

	mx_set_error_handler(MX_ERRORS_RETURN); /* without it, an error ends the process */
	code = mx_init();                       /* the macro for mx__init_api(MX_API) */
	if (code == MX_SUCCESS)
		code = mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &boards, sizeof(boards));
	if (code == MX_SUCCESS)
		code = mx_open_endpoint(MX_ANY_NIC, ID, FILTER, NULL, 0, &endpoint);
	if (code != MX_SUCCESS) {
		fprintf(stderr, "MX cannot be used: %s\n", mx_strerror(code));
		exit(1);
	}
	printf("%u boards\n", boards);
	mx_set_error_handler(MX_ERRORS_ARE_FATAL);
	return endpoint;
}

/* Example: mx_get_endpoint_addr mx_decompose_endpoint_addr mx_decompose_endpoint_addr2
 * mx_nic_id_to_hostname mx_nic_id_to_board_number mx_board_number_to_nic_id */
static void who_am_i(mx_endpoint_t endpoint)
{
	mx_endpoint_addr_t self;
	char name[MX_MAX_HOSTNAME_LEN];
	uint32_t id, session, board;
	uint64_t nic_id;

	mx_get_endpoint_addr(endpoint, &self);
	mx_decompose_endpoint_addr(self, &nic_id, &id); /* leaves out the session */
	mx_decompose_endpoint_addr2(self, &nic_id, &id, &session);
	mx_nic_id_to_hostname(nic_id, name);
	mx_nic_id_to_board_number(nic_id, &board);
	mx_board_number_to_nic_id(board, &nic_id);
	printf("endpoint %u of %s, NIC %012" PRIx64 ", board %u\n", id, name, nic_id, board);
}

/* Example: mx_hostname_to_nic_id mx_connect mx_set_endpoint_addr_context
 * mx_get_endpoint_addr_context */
static mx_endpoint_addr_t connect_to(mx_endpoint_t endpoint, char *host, void *peer)
{
	mx_endpoint_addr_t address;
	uint64_t nic_id;
	void *kept;

	mx_hostname_to_nic_id(host, &nic_id); /* "host:board" */
	mx_connect(endpoint, nic_id, ID, FILTER, 10000, &address);
	mx_set_endpoint_addr_context(address, peer);
	mx_get_endpoint_addr_context(address, &kept); /* also of the source of each message */
	if (kept != peer)
		exit(1);
	return address;
}

/* Example: mx_isend mx_issend mx_irecv mx_test mx_wait mx_context mx_ibuffered mx_buffered
 * mx_strstatus */
static void send_and_receive(mx_endpoint_t endpoint, mx_endpoint_addr_t peer)
{
	char out[2][6] = {"first", "other"}, in[2][6];
	mx_segment_t from[2] = {{out[0], 6}, {out[1], 6}}, to[2] = {{in[0], 6}, {in[1], 6}};
	mx_request_t sent[2], received[2];
	mx_status_t status;
	uint32_t done;
	void *context;

	for (int n = 0; n < 2; n++) /* any message whose upper 32 bits are 0x11 */
		mx_irecv(endpoint, &to[n], 1, UINT64_C(0x11) << 32, UINT64_C(0xffffffff) << 32,
			in[n], &received[n]);
	mx_isend(endpoint, &from[0], 1, peer, UINT64_C(0x11) << 32 | 1, NULL, &sent[0]);
	mx_issend(endpoint, &from[1], 1, peer, UINT64_C(0x11) << 32 | 2, NULL, &sent[1]);
	mx_ibuffered(endpoint, &sent[0], &done);       /* may out[0] be changed? */
	mx_buffered(endpoint, &sent[0], 10000, &done); /* the same, and waits for up to 10 s */
	mx_context(&received[0], &context);            /* it is in[0] */
	do
		mx_test(endpoint, &received[0], &status, &done);
	while (!done);
	mx_wait(endpoint, &received[1], MX_INFINITE, &status, &done);
	printf("%s: %u bytes, %s\n", mx_strstatus(status.code), status.xfer_length, in[1]);
	for (int n = 0; n < 2; n++)
		mx_wait(endpoint, &sent[n], MX_INFINITE, &status, &done);
	if (context != in[0] || status.code != MX_STATUS_SUCCESS)
		exit(1);
}

/* Example: mx_iprobe mx_probe mx_ipeek mx_peek mx_test_any mx_wait_any mx_forget */
static void take_what_comes(mx_endpoint_t endpoint, mx_endpoint_addr_t peer)
{
	uint64_t number = 42, got = 0;
	mx_segment_t from = {&number, sizeof(number)}, to = {&got, sizeof(got)};
	mx_request_t request, ended;
	mx_status_t status;
	uint32_t found;

	mx_isend(endpoint, &from, 1, peer, 7, NULL, &request);
	mx_forget(endpoint, &request); /* nobody will ask for it */
	mx_iprobe(endpoint, 7, MX_MATCH_MASK_NONE, &status, &found);
	if (!found)
		mx_probe(endpoint, 10000, 7, MX_MATCH_MASK_NONE, &status, &found);
	printf("a message of %u bytes waits\n", status.msg_length);
	mx_irecv(endpoint, &to, 1, 7, MX_MATCH_MASK_NONE, NULL, &request);
	mx_ipeek(endpoint, &ended, &found);
	if (!found)
		mx_peek(endpoint, 10000, &ended, &found); /* ended == request */
	mx_test_any(endpoint, 7, MX_MATCH_MASK_NONE, &status, &found);
	if (!found)
		mx_wait_any(endpoint, 10000, 7, MX_MATCH_MASK_NONE, &status, &found);
	if (!found || got != 42)
		exit(1);
}

/* Example: mx_iconnect mx_set_request_timeout mx_cancel mx_disconnect */
static void connect_without_blocking(mx_endpoint_t endpoint, uint64_t nic_id)
{
	mx_request_t request;
	mx_status_t status;
	uint32_t result;

	mx_set_request_timeout(endpoint, NULL, 20000); /* ms, for all that are posted later */
	mx_iconnect(endpoint, nic_id, ID, FILTER, 99, NULL, &request);
	mx_wait(endpoint, &request, MX_INFINITE, &status, &result);
	if (status.code != MX_STATUS_SUCCESS)
		exit(1);
	mx_irecv(endpoint, NULL, 0, 100, MX_MATCH_MASK_NONE, NULL, &request);
	mx_cancel(endpoint, &request, &result); /* result 1: nothing has matched it */
	mx_disconnect(endpoint, status.source);
}

static mx_unexp_handler_action_t count_message(
	void *context, mx_endpoint_addr_t source, uint64_t match_value, uint32_t length, void *data)
{
	(void)source;
	(void)match_value;
	(void)length;
	(void)data;
	++*(unsigned *)context;
	return MX_RECV_FINISHED;
}

/* Example: mx_register_unexp_handler mx_progress mx_disable_progression mx_reenable_progression */
static void handle_messages(mx_endpoint_t endpoint, mx_endpoint_addr_t peer)
{
	unsigned count = 0;

	mx_register_unexp_handler(endpoint, count_message, &count);
	mx_isend(endpoint, NULL, 0, peer, 5, NULL, NULL);
	while (count == 0)
		mx_progress(endpoint);
	mx_disable_progression(endpoint); /* from here on no thread is in count_message() */
	count = 0;
	mx_reenable_progression(endpoint);
	mx_register_unexp_handler(endpoint, NULL, NULL);
}

/* Example: mx_open_board mx__get_mapper_state mx__regcache_clean */
static void look_at_the_network(void *memory, size_t length)
{
	mx_endpt_handle_t board;
	mx_mapper_state_t state;

	mx_open_board(0, &board);
	mx__get_mapper_state(board, &state);
	printf("network %02x:%02x:%02x\n", state.mapper_mac[3], state.mapper_mac[4],
		state.mapper_mac[5]);
	mx__regcache_clean(memory, length); /* nothing here; programs of Myrinet call it */
}

/* Example: mx_iput mx_iget mx_register_unexp_callback */
static void not_supported(mx_endpoint_t endpoint, mx_endpoint_addr_t peer)
{
	char byte = 0;
	mx_request_t request;

	mx_set_error_handler(MX_ERRORS_RETURN);
	if (mx_iput(endpoint, &byte, 1, peer, 0, NULL, &request) != MX_FAILURE ||
		mx_iget(endpoint, &byte, 1, peer, 0, NULL, &request) != MX_FAILURE ||
		mx_register_unexp_callback(endpoint, NULL, NULL) != MX_FAILURE)
		exit(1);
	mx_set_error_handler(MX_ERRORS_ARE_FATAL);
}

/* Example: mx_wakeup mx_close_endpoint mx_finalize */
static void close_endpoint(mx_endpoint_t endpoint)
{
	mx_wakeup(endpoint); /* threads that are blocked on it return */
	mx_close_endpoint(endpoint);
	mx_finalize();
}

int main(void)
{
	mx_endpoint_t endpoint = open_endpoint();
	mx_endpoint_addr_t peer;
	char name[MX_MAX_HOSTNAME_LEN];
	uint64_t nic_id;

	who_am_i(endpoint);
	mx_board_number_to_nic_id(0, &nic_id);
	mx_nic_id_to_hostname(nic_id, name);
	peer = connect_to(endpoint, name, name);
	send_and_receive(endpoint, peer);
	take_what_comes(endpoint, peer);
	handle_messages(endpoint, peer);
	look_at_the_network(name, sizeof(name));
	not_supported(endpoint, peer);
	connect_without_blocking(endpoint, nic_id);
	close_endpoint(endpoint);
	return 0;
}
