/* SPDX-License-Identifier: BSD-3-Clause */
/* lifeline.c - see lifeline.h. */
#include <job/lifeline.h>

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/clock.h>

#define PROBES_MOST 4

union place {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* --- addresses */

/* L1. How good an address is; 0: others may not reach it. With UDP node ids are IPv4 addresses. */
static unsigned address_worth(
	const struct sockaddr *address, const struct card *card, bool on_interface)
{
	if (address->sa_family == AF_INET) {
		uint32_t host =
			ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);

		if (card->network == CARD_UDP)
			return host == card->process.nid ? 4 : 0;
		return on_interface ? 3 : 0;
	}
	if (address->sa_family == AF_INET6) {
		const struct in6_addr *host =
			&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

		if (IN6_IS_ADDR_LINKLOCAL(host))
			return on_interface ? 1 : 0;
		return on_interface || (card->network == CARD_UDP6 && !IN6_IS_ADDR_LOOPBACK(host))
			       ? 2
			       : 0;
	}
	return 0;
}

/* The best address, and the interface that link-local ones are on. False: there is none. */
static bool address_choose(const struct card *card, union place *place, unsigned *scope)
{
	struct ifaddrs *all;
	unsigned best = 0;

	if (getifaddrs(&all) != 0)
		return false;
	*scope = card_interface(all, card);
	for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
		unsigned worth =
			one->ifa_addr
				? address_worth(one->ifa_addr, card,
					  *scope != 0 && if_nametoindex(one->ifa_name) == *scope)
				: 0;

		if (worth > best) {
			best = worth;
			memcpy(place, one->ifa_addr,
				one->ifa_addr->sa_family == AF_INET ? sizeof(place->v4)
								    : sizeof(place->v6));
		}
	}
	freeifaddrs(all);
	return best != 0;
}

static socklen_t place_size(const union place *place)
{
	return place->any.sa_family == AF_INET ? sizeof(place->v4) : sizeof(place->v6);
}

/* In a card IPv4 addresses are mapped into IPv6. */
static void place_write(const union place *place, struct card_lifeline *line)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	line->port =
		ntohs(place->any.sa_family == AF_INET ? place->v4.sin_port : place->v6.sin6_port);
	if (place->any.sa_family == AF_INET6) {
		memcpy(line->address, &place->v6.sin6_addr, sizeof(line->address));
		return;
	}
	memcpy(line->address, mapped, sizeof(mapped));
	memcpy(line->address + sizeof(mapped), &place->v4.sin_addr, sizeof(place->v4.sin_addr));
}

static void place_read(union place *place, const struct lifeline *line)
{
	struct in6_addr address;

	memcpy(&address, line->to.address, sizeof(address));
	*place = (union place){0};
	if (IN6_IS_ADDR_V4MAPPED(&address)) {
		place->v4.sin_family = AF_INET;
		place->v4.sin_port = htons(line->to.port);
		memcpy(&place->v4.sin_addr, line->to.address + 12, sizeof(place->v4.sin_addr));
		return;
	}
	place->v6.sin6_family = AF_INET6;
	place->v6.sin6_port = htons(line->to.port);
	place->v6.sin6_addr = address;
	place->v6.sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&address) ? line->scope : 0;
}

/* --- sockets */

static void socket_drop(int *number)
{
	if (*number != 0)
		close(*number - 1);
	*number = 0;
}

/* The first probe is after a second without any answer. */
static void socket_ask(int socket, uint64_t peer_timeout)
{
	int seconds = peer_timeout < 2 * SECOND ? 1 : (int)(peer_timeout / SECOND) - 1;
	int between = seconds < PROBES_MOST ? 1 : seconds / PROBES_MOST;
	int on = peer_timeout != 0, first = 1, count = seconds / between;

	(void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &first, sizeof(first));
	(void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof(between));
	(void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* L3: the neighbour's connection waits in the queue. */
void lifeline_listen(struct lifeline *line, struct card *self)
{
	union place place = {0};
	socklen_t size;
	int listener;

	if (line->listener != 0 || !address_choose(self, &place, &line->scope))
		return;
	size = place_size(&place);
	listener = socket(place.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0)
		return;
	line->listener = listener + 1;
	if (bind(listener, &place.any, size) == 0 && listen(listener, 1) == 0 &&
		getsockname(listener, &place.any, &size) == 0)
		place_write(&place, &self->lifeline);
	else
		socket_drop(&line->listener);
}

static void lifeline_connect(struct lifeline *line)
{
	union place place;

	socket_drop(&line->socket);
	place_read(&place, line);
	line->socket =
		1 + socket(place.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (line->socket == 0)
		return;
	socket_ask(line->socket - 1, line->asks);
	if (connect(line->socket - 1, &place.any, place_size(&place)) != 0 && errno != EINPROGRESS)
		socket_drop(&line->socket);
}

void lifeline_begin(struct lifeline *line, const struct card *self, const struct card *other)
{
	union place place;

	if (other->lifeline.port == 0)
		return;
	line->to = other->lifeline;
	if (line->scope == 0)
		(void)address_choose(self, &place, &line->scope);
	lifeline_connect(line);
}

/* The error that the socket is in; 0: it is connected, or about to be; EPIPE: the other has closed
 * it. */
static int socket_error(int socket, bool *up)
{
	struct pollfd look = {.fd = socket, .events = POLLIN | POLLOUT};
	socklen_t size = sizeof(int);
	int error = 0;

	(void)poll(&look, 1, 0);
	*up = (look.revents & (POLLOUT | POLLIN | POLLHUP | POLLERR)) == POLLOUT;
	if (look.revents == 0 || *up)
		return 0;
	(void)getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
	return error != 0 ? error : EPIPE;
}

enum lifeline_state lifeline_look(struct lifeline *line)
{
	bool up = false, was_up = line->state != LIFELINE_NONE;
	int error = ECONNREFUSED;

	if (line->to.port == 0)
		return LIFELINE_NONE;
	if (line->socket != 0)
		error = socket_error(line->socket - 1, &up);
	if (up)
		line->state = LIFELINE_UP;
	if (error == 0)
		return line->state;
	/* It was up between two looks. */
	if (error == ECONNRESET || error == EPIPE)
		was_up = true;
	line->state = !was_up                                            ? LIFELINE_NONE
		      : line->state == LIFELINE_UP && error == ETIMEDOUT ? LIFELINE_SILENT
									 : LIFELINE_DOWN;
	if (was_up)
		lifeline_connect(line);
	else
		socket_drop(&line->socket);
	return line->state;
}

void lifeline_ask(struct lifeline *line, uint64_t peer_timeout)
{
	line->asks = peer_timeout;
	if (line->socket != 0)
		socket_ask(line->socket - 1, peer_timeout);
}

void lifeline_end(struct lifeline *line)
{
	socket_drop(&line->listener);
	socket_drop(&line->socket);
	*line = (struct lifeline){0};
}
