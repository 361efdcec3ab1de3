/* SPDX-License-Identifier: BSD-3-Clause */
/* connected.c - what a connected UDP socket of the kernel saves of a sendmsg(): the kernel looks up
 * no route. Both ways send in turns, with the options that pmd-glue/line.c sets.
 *
 *     connected OWN PEER    IPv4 addresses; whoever has port 34999 of PEER, or nobody, receives
 *
 * Prints the median and the least time of a call in ns, which include 20 to 40 ns of the clock.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define CALLS 200000
#define PORT  34999
#define BYTES 64

static uint32_t times[2][CALLS];

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void must(int code, const char *what)
{
	if (code >= 0)
		return;
	perror(what);
	exit(EXIT_FAILURE);
}

static struct sockaddr_in name_of(const char *text, uint16_t port)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};

	must(inet_pton(AF_INET, text, &name.sin_addr) - 1, text);
	return name;
}

static int socket_make(const char *own)
{
	struct sockaddr_in name = name_of(own, 0);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1, capable = 2;

	must(fd, "socket");
	must(setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one)), "IP_RECVTOS");
	must(setsockopt(fd, IPPROTO_IP, IP_TOS, &capable, sizeof(capable)), "IP_TOS");
	must(bind(fd, (struct sockaddr *)&name, sizeof(name)), "bind");
	return fd;
}

/* A refusal of an earlier datagram, or a full socket, costs a call, too. */
static uint32_t call_time(int fd, const struct msghdr *message)
{
	uint64_t begun = now();

	(void)sendmsg(fd, message, MSG_DONTWAIT);
	return (uint32_t)(now() - begun);
}

static int compare(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"not connected", "connected"};
	char bytes[BYTES] = {0};
	struct iovec piece = {bytes, sizeof(bytes)};
	struct msghdr messages[2] = {
		{.msg_iov = &piece, .msg_iovlen = 1}, {.msg_iov = &piece, .msg_iovlen = 1}};
	struct sockaddr_in peer;
	int fds[2];

	if (argc != 3) {
		fprintf(stderr, "usage: connected OWN PEER\n");
		return 2;
	}
	peer = name_of(argv[2], PORT);
	messages[0].msg_name = &peer;
	messages[0].msg_namelen = sizeof(peer);
	for (unsigned n = 0; n < 2; n++)
		fds[n] = socket_make(argv[1]);
	must(connect(fds[1], (struct sockaddr *)&peer, sizeof(peer)), "connect");
	for (unsigned i = 0; i < CALLS; i++)
		for (unsigned n = 0; n < 2; n++)
			times[n][i] = call_time(fds[n], &messages[n]);
	for (unsigned n = 0; n < 2; n++) {
		qsort(times[n], CALLS, sizeof(times[n][0]), compare);
		printf("%-14s median %u, least %u\n", names[n], times[n][CALLS / 2], times[n][0]);
	}
	return 0;
}
