/* SPDX-License-Identifier: BSD-3-Clause */
/* sockets.c - postern-perf-sockets: TCP, UDP and Unix sockets as fast as they can be, for
 * postern-perf --card and scripts/compare to hold Postern against. See rival.h for its use.
 *
 * Nothing is added to what the kernel does: no header, no matching. TCP sends at once
 * (TCP_NODELAY). The receiver takes with one call as many small messages as are there.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "rival.h"

#define BULK   65536 /* bytes that are received with one call at least, when there are so many */
#define BATCH  64    /* datagrams in one call */
#define WAITED 100   /* ms that a blocking call waits at most */

struct line {
	int socket;
	int flags; /* of each call: MSG_DONTWAIT or none */
	bool datagrams;
	bool hold;   /* MSG_MORE: the kernel may wait for the rest of the window */
	bool gather; /* the program hands over the messages of a window with one call */
	uint32_t out;
	uint32_t in;
	uint32_t held; /* messages gathered */
	char *to_send; /* a window of messages */
	char *received;
	size_t room;      /* bytes there */
	uint64_t arrived; /* bytes; TCP */
	uint32_t
		/* messages that came with `arrived` and have been returned; modulo 2^32 */
		reported;
	struct mmsghdr headers[BATCH];
	struct iovec parts[BATCH];
};

/* The other end has gone? The control connection tells as well, and decides what that means. */
static bool other_gone(void)
{
	return errno == ECONNRESET || errno == ECONNREFUSED || errno == EPIPE;
}

static void all_sent(const struct line *line, size_t bytes, int flags)
{
	size_t sent = 0;

	while (sent < bytes) {
		ssize_t done = send(line->socket, line->to_send + sent, bytes - sent,
			line->flags | flags | MSG_NOSIGNAL);

		if (done >= 0)
			sent += (size_t)done;
		else if (other_gone())
			return;
		else if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
			rival_complain("cannot send: %m.");
	}
}

static void datagrams_sent(struct line *line, uint32_t count)
{
	for (uint32_t sent = 0; sent < count;) {
		uint32_t part = count - sent < BATCH ? count - sent : BATCH;
		int done;

		for (uint32_t i = 0; i < part; i++) {
			line->parts[i] = (struct iovec){line->to_send, line->out};
			line->headers[i].msg_hdr =
				(struct msghdr){.msg_iov = &line->parts[i], .msg_iovlen = 1};
		}
		done = sendmmsg(line->socket, line->headers, part, line->flags);
		if (done > 0)
			sent += (uint32_t)done;
		else if (other_gone())
			return;
		else if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
			rival_complain("cannot send datagrams: %m.");
	}
}

static void line_send(void *self, bool more)
{
	struct line *line = self;

	if (!line->gather) {
		all_sent(line, line->out, line->hold && more ? MSG_MORE : 0);
		return;
	}
	line->held++;
	if (more)
		return;
	if (line->datagrams)
		datagrams_sent(line, line->held);
	else
		all_sent(line, (size_t)line->held * line->out, 0);
	line->held = 0;
}

static bool nothing_there(void)
{
	if (errno != EAGAIN && errno != EINTR && !other_gone())
		rival_complain("cannot receive: %m.");
	return true;
}

static uint32_t datagrams_receive(struct line *line)
{
	int done;

	for (unsigned i = 0; i < BATCH; i++) {
		line->parts[i] = (struct iovec){line->received, line->in};
		line->headers[i].msg_hdr =
			(struct msghdr){.msg_iov = &line->parts[i], .msg_iovlen = 1};
	}
	done = recvmmsg(line->socket, line->headers, BATCH, line->flags | MSG_WAITFORONE, NULL);
	return done <= 0 && nothing_there() ? 0 : (uint32_t)done;
}

static uint32_t line_receive(void *self)
{
	struct line *line = self;
	size_t at =
		line->room == line->in ? line->arrived % line->in : 0; /* large: in their place */
	ssize_t done;
	uint32_t whole;

	if (line->datagrams && line->gather)
		return datagrams_receive(line);
	done = recv(line->socket, line->received + at, line->room - at, line->flags);
	if (done < 0 && nothing_there())
		return 0;
	if (line->datagrams)
		return 1;
	line->arrived += (uint64_t)done;
	whole = (uint32_t)(line->arrived / line->in) - line->reported;
	line->reported += whole;
	return whole;
}

/* --- opening --- */

static void name_of(int socket, struct sockaddr_in *name)
{
	socklen_t length = sizeof(*name);

	if (getsockname(socket, (struct sockaddr *)name, &length) != 0)
		rival_complain("the kernel does not tell a socket's address: %m.");
}

/* A socket bound to this end's address, with a port of its own, and the other end's name. */
static int socket_bind(const struct rival_end *end, int type, struct sockaddr_in *other)
{
	struct sockaddr_in name;
	int made = socket(AF_INET, type, 0);

	name_of(end->control, &name); /* this end's address is that of the control connection */
	name.sin_port = 0;
	if (made < 0 || bind(made, (struct sockaddr *)&name, sizeof(name)) != 0 ||
		(end->server && type == SOCK_STREAM && listen(made, 1) != 0))
		rival_complain("cannot make a socket: %m.");
	name_of(made, &name);
	rival_swap(end, &name, other, sizeof(name));
	return made;
}

static int socket_open(const struct rival_end *end, int type)
{
	struct sockaddr_in other;
	int made = socket_bind(end, type, &other);
	int on = 1;

	if (type == SOCK_STREAM && end->server) {
		made = accept(made, NULL, NULL);
		if (made < 0)
			rival_complain("cannot accept the other end's connection: %m.");
	} else if (connect(made, (struct sockaddr *)&other, sizeof(other)) != 0) {
		rival_complain("cannot connect to the other end: %m; does a firewall forbid it?");
	}
	if (type == SOCK_STREAM)
		setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return made;
}

/* Between processes of one machine, by a name that the kernel gives. */
static int unix_open(const struct rival_end *end)
{
	struct sockaddr_un own = {.sun_family = AF_UNIX}, other;
	socklen_t length = sizeof(own);
	int made = socket(AF_UNIX, SOCK_STREAM, 0);

	if (made < 0 || bind(made, (struct sockaddr *)&own, sizeof(own.sun_family)) != 0 ||
		(end->server && listen(made, 1) != 0) ||
		getsockname(made, (struct sockaddr *)&own, &length) != 0)
		rival_complain("cannot make a socket: %m.");
	rival_swap(end, &own, &other, sizeof(own));
	if (end->server)
		made = accept(made, NULL, NULL);
	/* All such names are equally long. */
	if (made < 0 || (!end->server && connect(made, (struct sockaddr *)&other, length) != 0))
		rival_complain("cannot connect to the other end: %m.");
	return made;
}

static bool mode_known(const char *mode)
{
	static const char *const modes[] = {"poll", "block", "poll-more", "poll-gather"};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(mode, modes[i]) == 0)
			return true;
	return false;
}

static void *line_open(const struct rival_end *end)
{
	const struct request *request = end->request;
	const struct timeval wait = {.tv_usec = WAITED * 1000};
	struct line *line = calloc(1, sizeof(*line));
	bool block = strstr(request->mode, "block") != NULL;
	bool local = strcmp(request->transport, "unix") == 0;

	if (line == NULL)
		rival_complain("there is no memory; end other programs.");
	line->datagrams = strcmp(request->transport, "udp") == 0;
	if (!line->datagrams && !local && strcmp(request->transport, "tcp") != 0)
		rival_complain("%s is no TRANSPORT: give tcp, udp or unix.", request->transport);
	if (!mode_known(request->mode))
		rival_complain("%s is no MODE: give poll, block, poll-more or poll-gather.",
			request->mode);
	line->hold = strstr(request->mode, "more") != NULL;
	line->gather = strstr(request->mode, "gather") != NULL;
	line->out = end->out;
	line->in = end->in;
	line->room = line->datagrams || line->in >= BULK ? line->in : BULK;
	line->received = calloc(1, line->room);
	line->to_send = calloc(line->gather ? request->window : 1, line->out);
	if (line->received == NULL || line->to_send == NULL)
		rival_complain("there is no memory for messages of %u bytes; give a smaller SIZE.",
			request->size);
	line->flags = block ? 0 : MSG_DONTWAIT;
	line->socket = local ? unix_open(end)
			     : socket_open(end, line->datagrams ? SOCK_DGRAM : SOCK_STREAM);
	setsockopt(line->socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	return line;
}

int main(int argc, char **argv)
{
	static const struct rival sockets = {
		.name = "postern-perf-sockets",
		.transports =
			"TRANSPORT is tcp, udp or unix. MODE says how both ends wait and send:\n"
			"  poll         they repeat calls that do not wait\n"
			"  block        they sleep in the kernel\n"
			"  poll-more    as poll, and stream sends with MSG_MORE\n"
			"  poll-gather  as poll, and stream sends a window with one call\n",
		.open = line_open,
		.send = line_send,
		.receive = line_receive,
	};

	return rival_main(argc, argv, &sockets);
}
