/* SPDX-License-Identifier: BSD-3-Clause */
/* pingpong_mx.c - a ping-pong with MX: two processes send a message to and fro, in several sizes,
 * check every byte, and print half of the time of a round trip.
 *
 *     pingpong_mx              waits for the other one
 *     pingpong_mx HOST:BOARD   names the first one, as it says itself
 *     pingpong_mx self         is both, in two threads
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <myriexpress.h>

#define FILTER  0x70696e67
#define WAITS   1 /* endpoint id of the one that waits */
#define PING    UINT64_C(1)
#define PONG    UINT64_C(2)
#define ROUNDS  200
#define TIMEOUT 60000 /* ms */

static const uint32_t sizes[] = {0, 1, 1024, 32768, 32769, 1048576};

/* Errors end the program with a line: the default of MX. What a status says is the program's. */
static void check(const mx_status_t *status, uint32_t result)
{
	if (result == 1 && status->code == MX_STATUS_SUCCESS)
		return;
	fprintf(stderr, "pingpong_mx: %s\n", result ? mx_strstatus(status->code) : "nothing comes");
	exit(1);
}

static mx_status_t await(mx_endpoint_t endpoint, mx_request_t *request)
{
	mx_status_t status;
	uint32_t result;

	mx_wait(endpoint, request, TIMEOUT, &status, &result);
	check(&status, result);
	return status;
}

static void throw(mx_endpoint_t endpoint, mx_endpoint_addr_t peer, unsigned char *ball,
	uint32_t size, unsigned round, uint64_t bits)
{
	mx_segment_t segment = {ball, size};
	mx_request_t request;

	memset(ball, (int)((round * 7 + bits) & 0xff), size);
	mx_isend(endpoint, &segment, 1, peer, bits, NULL, &request);
	await(endpoint, &request);
}

/* Returns the address of the sender. */
static mx_endpoint_addr_t catch (
	mx_endpoint_t endpoint, unsigned char *ball, uint32_t size, unsigned round, uint64_t bits)
{
	mx_segment_t segment = {ball, size};
	mx_request_t request;
	mx_status_t status;

	mx_irecv(endpoint, &segment, 1, bits, MX_MATCH_MASK_NONE, NULL, &request);
	status = await(endpoint, &request);
	for (uint32_t i = 0; i < size; i++)
		if (status.xfer_length != size || ball[i] != ((round * 7 + bits) & 0xff)) {
			fprintf(stderr, "pingpong_mx: byte %u of %u is wrong\n", i, size);
			exit(1);
		}
	return status.source;
}

static unsigned char *ball_make(void)
{
	unsigned char *ball = malloc(sizes[sizeof(sizes) / sizeof(sizes[0]) - 1]);

	if (!ball)
		exit(1);
	return ball;
}

static mx_endpoint_t endpoint_open(uint32_t id)
{
	mx_endpoint_t endpoint;

	mx_open_endpoint(MX_ANY_NIC, id, FILTER, NULL, 0, &endpoint);
	return endpoint;
}

/* Answers whoever has connected: the source of a message can be sent to. */
static void *server_run(void *opened)
{
	mx_endpoint_t endpoint = opened;
	unsigned char *ball = ball_make();

	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++)
		for (unsigned round = 0; round < ROUNDS; round++) {
			mx_endpoint_addr_t peer = catch (endpoint, ball, sizes[n], round, PING);

			throw(endpoint, peer, ball, sizes[n], round, PONG);
		}
	free(ball);
	mx_close_endpoint(endpoint);
	return NULL;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void client_run(const char *name)
{
	mx_endpoint_t endpoint = endpoint_open(MX_ANY_ENDPOINT);
	unsigned char *ball = ball_make();
	mx_endpoint_addr_t peer;
	uint64_t nic_id;

	mx_hostname_to_nic_id((char *)(uintptr_t)name, &nic_id);
	mx_connect(endpoint, nic_id, WAITS, FILTER, TIMEOUT, &peer);
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		double begin = now();

		for (unsigned round = 0; round < ROUNDS; round++) {
			throw(endpoint, peer, ball, sizes[n], round, PING);
			catch (endpoint, ball, sizes[n], round, PONG);
		}
		printf("%8u bytes: %.1f us\n", sizes[n], (now() - begin) / ROUNDS / 2);
	}
	free(ball);
	mx_close_endpoint(endpoint);
}

/* The name of the board under which an endpoint was opened. */
static void name_tell(mx_endpoint_t endpoint, char *name)
{
	mx_endpoint_addr_t self;
	uint64_t nic_id;
	uint32_t id;

	mx_get_endpoint_addr(endpoint, &self);
	mx_decompose_endpoint_addr(self, &nic_id, &id);
	mx_nic_id_to_hostname(nic_id, name);
}

int main(int count, char **words)
{
	char name[MX_MAX_HOSTNAME_LEN];
	mx_endpoint_t endpoint;
	pthread_t thread;

	if (count > 2 || (count == 2 && words[1][0] == '-')) {
		fprintf(stderr, "\"%s\" is no host\nusage: pingpong_mx [HOST | self]\n",
			words[count - 1]);
		return 2;
	}
	mx_init();
	if (count > 1 && strcmp(words[1], "self") != 0) {
		client_run(words[1]);
	} else {
		endpoint = endpoint_open(WAITS);
		name_tell(endpoint, name);
		if (count == 1) {
			printf("waiting; in another terminal: pingpong_mx %s\n", name);
			fflush(stdout);
			server_run(endpoint);
		} else {
			if (pthread_create(&thread, NULL, server_run, endpoint) != 0)
				return 1;
			client_run(name);
			pthread_join(thread, NULL);
		}
	}
	mx_finalize();
	return 0;
}
