/* SPDX-License-Identifier: BSD-3-Clause */
/* clients.c - runs a stand-in: clients NAME processes|threads; or clients crowd SIZE ROUNDS. See
 * clients.h. */
#include "clients.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

pid_t peer_process;

#define TIMEOUT 60 /* seconds in which a peer opens */

_Noreturn void check_fail(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	_exit(1);
}

void check_code(mx_return_t code, const char *call, const char *file, int line)
{
	if (code == MX_SUCCESS)
		return;
	fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, mx_strerror(code));
	_exit(1);
}

static uint8_t pattern_byte(size_t at, uint32_t seed)
{
	return (uint8_t)((at * 2654435761u + seed * 40503u) >> 11);
}

void pattern_fill(void *memory, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)memory)[i] = pattern_byte(i, seed);
}

void pattern_check(const void *memory, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		check(((const uint8_t *)memory)[i] == pattern_byte(i, seed));
}

mx_endpoint_t endpoint_open(uint32_t id, mx_param_t *params, uint32_t count)
{
	mx_endpoint_t endpoint = NULL;

	check_ok(mx_open_endpoint(MX_ANY_NIC, id, FILTER, params, count, &endpoint));
	check(endpoint);
	return endpoint;
}

uint64_t nic_id_own(mx_endpoint_t endpoint)
{
	char name[MX_MAX_HOSTNAME_LEN];
	mx_endpoint_addr_t own;
	uint64_t nic_id, found;
	uint32_t id, board;

	check_ok(mx_get_endpoint_addr(endpoint, &own));
	check_ok(mx_decompose_endpoint_addr(own, &nic_id, &id));
	check_ok(mx_nic_id_to_board_number(nic_id, &board));
	check_ok(mx_nic_id_to_hostname(nic_id, name));
	check_ok(mx_hostname_to_nic_id(name, &found));
	check(found == nic_id && nic_id >> 48 == 0);
	return nic_id;
}

mx_endpoint_addr_t peer_connect(mx_endpoint_t endpoint, uint64_t nic_id, uint32_t id)
{
	const struct timespec nap = {.tv_nsec = 10000000};
	const time_t end = time(NULL) + TIMEOUT;
	mx_endpoint_addr_t peer;
	mx_return_t code;

	while ((code = mx_connect(endpoint, nic_id, id, FILTER, 1000, &peer)) != MX_SUCCESS) {
		check(code == MX_CONNECTION_FAILED || code == MX_TIMEOUT);
		check(time(NULL) < end);
		nanosleep(&nap, NULL);
	}
	return peer;
}

mx_request_t post_send(mx_endpoint_t endpoint, mx_endpoint_addr_t peer, void *memory, size_t bytes,
	uint64_t match, void *context)
{
	mx_segment_t segment = {memory, (uint32_t)bytes};
	mx_request_t request = NULL;

	check_ok(mx_isend(endpoint, &segment, 1, peer, match, context, &request));
	check(request);
	return request;
}

mx_request_t post_receive(mx_endpoint_t endpoint, void *memory, size_t bytes, uint64_t match,
	uint64_t mask, void *context)
{
	mx_segment_t segment = {memory, (uint32_t)bytes};
	mx_request_t request = NULL;

	check_ok(mx_irecv(endpoint, &segment, 1, match, mask, context, &request));
	check(request);
	return request;
}

mx_status_t request_wait(mx_endpoint_t endpoint, mx_request_t *request)
{
	mx_status_t status;
	uint32_t result = 0;

	check_ok(mx_wait(endpoint, request, MX_INFINITE, &status, &result));
	check(result != 0 && status.code == MX_STATUS_SUCCESS && !*request);
	return status;
}

mx_status_t request_poll(mx_endpoint_t endpoint, mx_request_t *request)
{
	mx_status_t status;
	uint32_t result = 0;

	while (result == 0)
		check_ok(mx_test(endpoint, request, &status, &result));
	check(status.code == MX_STATUS_SUCCESS && !*request);
	return status;
}

mx_status_t any_poll(mx_endpoint_t endpoint, uint64_t match, uint64_t mask)
{
	mx_status_t status;
	uint32_t result = 0;

	while (result == 0)
		check_ok(mx_test_any(endpoint, match, mask, &status, &result));
	check(status.code == MX_STATUS_SUCCESS && (status.match_info & mask) == match);
	return status;
}

static void *role_thread(void *role)
{
	void (**run)(void) = role;

	(*run)();
	return NULL;
}

static void run_threads(const struct client *client)
{
	void (*role)(void) = client->client;
	pthread_t thread;

	check_ok(mx_init());
	if (client->client)
		check(pthread_create(&thread, NULL, role_thread, &role) == 0);
	client->server();
	if (client->client)
		check(pthread_join(thread, NULL) == 0);
	check_ok(mx_finalize());
}

static void run_processes(const struct client *client)
{
	pid_t child = client->client ? fork() : 0;
	int status;

	check(child >= 0);
	if (client->client && child == 0)
		check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	peer_process = child;
	check_ok(mx_init());
	(child == 0 ? client->server : client->client)();
	check_ok(mx_finalize());
	if (child == 0)
		return;
	check(waitpid(child, &status, 0) == child && status == 0);
}

static const struct client *client_find(const struct client *clients, const char *name)
{
	while (clients->name && strcmp(clients->name, name) != 0)
		clients++;
	return clients->name ? clients : NULL;
}

int main(int count, char **words)
{
	const struct client *client = NULL;

	mx_set_error_handler(MX_ERRORS_RETURN);
	if (count == 4 && strcmp(words[1], "crowd") == 0) {
		crowd_run((unsigned)strtoul(words[2], NULL, 10),
			(unsigned)strtoul(words[3], NULL, 10));
		return 0;
	}
	if (count == 3)
		client = client_find(test_clients, words[1]);
	if (count == 3 && !client)
		client = client_find(mpi_clients, words[1]);
	if (!client) {
		fprintf(stderr,
			"usage: clients NAME processes|threads, or clients crowd SIZE ROUNDS\n");
		return 2;
	}
	if (strcmp(words[2], "threads") != 0)
		run_processes(client);
	else if (!client->processes_alone)
		run_threads(client);
	return 0;
}
