/* SPDX-License-Identifier: BSD-3-Clause */
/* connected.c - see connected.h. */
#include <pmd-glue/connected.h>

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void connected_init(struct connected *connected)
{
	*connected = (struct connected){.line.socket = -1, .set = -1};
}

void connected_close(struct connected *connected)
{
	if (connected->set >= 0)
		close(connected->set);
	connected->set = -1;
	line_close(&connected->line);
}

/* A socket at the UDP port of another one. */
static bool second_bind(const struct line *line, struct line *second)
{
	union udp_name own;
	socklen_t size = sizeof(own);
	bool bound = getsockname(line->socket, &own.any, &size) == 0 && line_share(line, true) &&
		     line_share(second, true) && line_bind(second, &own, size);

	/* I1. */
	return line_share(line, false) && line_share(second, false) && bound;
}

static bool set_make(struct connected *connected, const struct line *line)
{
	struct epoll_event event = {.events = EPOLLIN};

	connected->set = epoll_create1(EPOLL_CLOEXEC);
	return connected->set >= 0 &&
	       epoll_ctl(connected->set, EPOLL_CTL_ADD, line->socket, &event) == 0 &&
	       epoll_ctl(connected->set, EPOLL_CTL_ADD, connected->line.socket, &event) == 0;
}

static bool connected_open(struct connected *connected, const struct line *line, sa_family_t family)
{
	return line_open(&connected->line, family) && second_bind(line, &connected->line) &&
	       set_make(connected, line);
}

void connected_move(struct connected *connected, struct line *line, const union udp_name *to,
	socklen_t size, const char *name)
{
	int error;

	connected->lead = 0;
	if ((connected_exists(connected) || connected_open(connected, line, to->any.sa_family)) &&
		connect(connected->line.socket, &to->any, size) == 0) {
		memcpy(connected->peer, connected->leader, CONNECTED_ADDRESS);
		return;
	}
	error = errno;
	connected_close(connected);
	if (error == ENETUNREACH || error == EHOSTUNREACH || error == EAGAIN)
		return; /* the way may come back */
	connected->refused = true;
	line_lose(line, LINE_CONNECT, name);
}
