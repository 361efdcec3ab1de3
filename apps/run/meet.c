/* SPDX-License-Identifier: BSD-3-Clause */
/* meet.c - see meet.h. */
#include "meet.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <base/hostname.h>
#include <base/pmi.h>

#include "job.h"

#define GUEST_TIME   10000 /* ms for the line of a guest */
#define RETRY_TIME   100   /* ms between attempts to connect */
#define CONNECT_TIME 5000  /* ms for one */
#define ALIVE_START  10    /* s of silence after which a host is asked whether it lives, */
#define ALIVE_STEP   5     /* s between questions, */
#define ALIVE_COUNT  4     /* and how many */
#define PLACE_BYTES  256

struct guest {
	int socket;    /* -1: none */
	uint64_t late; /* ms: when its time is over; 0: it has not been looked at */
	struct pmi_lines lines;
};

static int listener = -1;
static struct guest guests[GUESTS_MAX];

/* --- sockets */

static struct addrinfo *address_find(const char *address, bool passive)
{
	const struct addrinfo wanted = {
		.ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0};
	char host[PLACE_BYTES];
	struct addrinfo *found = NULL;
	char *colon;
	size_t length;

	snprintf(host, sizeof(host), "%s", address);
	colon = strrchr(host, ':');
	if (!colon)
		return NULL;
	*colon = '\0';
	length = strlen(host);
	if (host[0] == '[' && length > 1 && host[length - 1] == ']') { /* IPv6 */
		host[length - 1] = '\0';
		memmove(host, host + 1, length - 1);
	}
	return getaddrinfo(host, colon + 1, &wanted, &found) == 0 ? found : NULL;
}

/* A line leaves at once, and a host that is lost ends the stream. */
static void socket_prepare(int socket)
{
	static const struct {
		int level, option, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, ALIVE_START},
		{IPPROTO_TCP, TCP_KEEPINTVL, ALIVE_STEP},
		{IPPROTO_TCP, TCP_KEEPCNT, ALIVE_COUNT},
	};

	for (unsigned n = 0; n < sizeof(options) / sizeof(options[0]); n++)
		(void)setsockopt(socket, options[n].level, options[n].option, &options[n].value,
			sizeof(options[n].value));
}

/* Does HOST:PORT have this host's own name? */
static bool is_own_name(const char *address)
{
	static const char loopback[] = "localhost";
	const size_t length = strcspn(address, ":");
	char own[PLACE_BYTES] = "";

	(void)gethostname(own, sizeof(own) - 1);
	return hostname_is_same(own, strlen(own), address, length) &&
	       !hostname_is_same(loopback, strlen(loopback), address, length);
}

/* The resolver may give a host's own name an address of the loopback, as Debian's /etc/hosts does
 * (127.0.1.1). Other hosts cannot reach that address, so rank 0 listens at all of its host's. */
static void loopback_leave(struct sockaddr *at)
{
	struct sockaddr_in *v4 = (void *)at;
	struct sockaddr_in6 *v6 = (void *)at;

	if (at->sa_family == AF_INET && ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET)
		v4->sin_addr.s_addr = htonl(INADDR_ANY);
	if (at->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr))
		v6->sin6_addr = in6addr_any;
}

bool meet_listen(const char *address)
{
	struct addrinfo *found = address_find(address, true);
	int reuse = 1;

	for (unsigned n = 0; n < GUESTS_MAX; n++)
		guests[n].socket = -1;
	if (!found) {
		job_tell("--meet takes HOST:PORT, and \"%s\" names no host that is known", address);
		return false;
	}
	if (is_own_name(address))
		loopback_leave(found->ai_addr);
	listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	(void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
	if (listener < 0 || bind(listener, found->ai_addr, found->ai_addrlen) != 0 ||
		listen(listener, SOMAXCONN) != 0) {
		job_tell("rank 0 cannot listen at %s: %s: start rank 0 on that host, and choose a "
			 "port that nobody has",
			address, strerror(errno));
		freeaddrinfo(found);
		return false;
	}
	freeaddrinfo(found);
	return true;
}

/* --- rank 0's end */

static void guest_refuse(struct guest *guest, const char *why)
{
	(void)pmi_write(guest->socket, "cmd=refused msg=%s\n", why);
	close(guest->socket);
	guest->socket = -1;
}

static void guest_hear(struct guest *guest, const char *line,
	const char *(*take)(unsigned rank, unsigned size, int socket))
{
	char command[PMI_KEY];
	int socket = guest->socket;
	uint32_t rank, size;
	const char *why;

	if (!pmi_word(line, "cmd", command, sizeof(command)) || strcmp(command, "meet") != 0 ||
		!pmi_number(line, "rank", &rank) || !pmi_number(line, "size", &size)) {
		guest_refuse(guest, "this_is_postern-run_--meet");
		return;
	}
	guest->socket = -1;
	why = take(rank, size, socket);
	if (!why)
		return;
	guest->socket = socket;
	guest_refuse(guest, why);
}

static void guest_turn(
	struct guest *guest, const char *(*take)(unsigned rank, unsigned size, int socket))
{
	const char *line;

	if (!pmi_read(&guest->lines, guest->socket)) {
		close(guest->socket);
		guest->socket = -1;
		return;
	}
	line = pmi_line(&guest->lines);
	if (line)
		guest_hear(guest, line, take);
}

/* M1. The slot for a guest: a free one, or that of the one that has said nothing for longest. */
static struct guest *guest_place(void)
{
	struct guest *oldest = &guests[0];

	for (unsigned n = 0; n < GUESTS_MAX; n++) {
		if (guests[n].socket < 0)
			return &guests[n];
		if (guests[n].late < oldest->late)
			oldest = &guests[n];
	}
	close(oldest->socket);
	return oldest;
}

static void guest_accept(uint64_t now)
{
	int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct guest *guest;

	if (socket < 0)
		return;
	socket_prepare(socket);
	guest = guest_place();
	*guest = (struct guest){.socket = socket, .late = now + GUEST_TIME};
}

unsigned meet_polled(struct pollfd *polled)
{
	polled[0] = (struct pollfd){.fd = listener, .events = POLLIN};
	if (listener < 0)
		return 1;
	for (unsigned n = 0; n < GUESTS_MAX; n++)
		polled[1 + n] = (struct pollfd){.fd = guests[n].socket, .events = POLLIN};
	return 1 + GUESTS_MAX;
}

void meet_turn(const struct pollfd *polled, uint64_t now,
	const char *(*take)(unsigned rank, unsigned size, int socket))
{
	if (listener < 0)
		return;
	for (unsigned n = 0; n < GUESTS_MAX; n++) {
		if (guests[n].socket < 0)
			continue;
		if (polled[1 + n].revents != 0)
			guest_turn(&guests[n], take);
		else if (now >= guests[n].late)
			guest_refuse(&guests[n], "too_late");
	}
	if (polled[0].revents != 0)
		guest_accept(now);
}

void meet_close(void)
{
	if (listener < 0)
		return;
	for (unsigned n = 0; n < GUESTS_MAX; n++)
		if (guests[n].socket >= 0)
			guest_refuse(&guests[n], "the_job_has_all_its_ranks_or_ends");
	close(listener);
	listener = -1;
}

/* --- the others' end */

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* Returns true once the socket has something to do; false at `end`. */
static bool socket_await(int socket, short events, uint64_t end)
{
	for (;;) {
		struct pollfd polled = {.fd = socket, .events = events};
		const uint64_t time = now();

		if (time >= end)
			return false;
		if (poll(&polled, 1, (int)(end - time)) > 0)
			return true;
	}
}

/* A connection to one address, until `end`. Returns 0, or an error number. */
static int address_connect(int socket, const struct addrinfo *to, uint64_t end)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (connect(socket, to->ai_addr, to->ai_addrlen) == 0)
		return 0;
	if (errno != EINPROGRESS && errno != EINTR)
		return errno;
	if (!socket_await(socket, POLLOUT, end))
		return ETIMEDOUT;
	return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/* Each address has CONNECT_TIME: one that drops everything leaves time for the next. *why: why
 * there is no connection. The socket does not block. */
static int connect_once(const char *address, uint64_t end, const char **why)
{
	struct addrinfo *found = address_find(address, false);
	int one = -1;

	*why = "that host is not known here";
	for (const struct addrinfo *at = found; at && one < 0; at = at->ai_next) {
		const uint64_t soon = now() + CONNECT_TIME;
		int error;

		one = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		error = one < 0 ? errno : address_connect(one, at, soon < end ? soon : end);
		if (error == 0)
			break;
		*why = strerror(error);
		if (one >= 0)
			close(one);
		one = -1;
	}
	if (found)
		freeaddrinfo(found);
	return one;
}

/* The answer is read byte by byte, because the bytes behind it are the program's. Returns false if
 * the stream ends before the line does, or at `end`. */
static bool line_read(int socket, char line[PMI_LINE], uint64_t end)
{
	for (size_t length = 0; length < PMI_LINE - 1;) {
		ssize_t count = recv(socket, line + length, 1, 0);

		if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		if (count < 0 && !socket_await(socket, POLLIN, end))
			return false;
		if (count < 0)
			continue;
		if (line[length] == '\n') {
			line[length] = '\0';
			return true;
		}
		length++;
	}
	return false;
}

enum said { SAID_NOTHING, SAID_MET, SAID_NO };

/* Says who this is. SAID_NOTHING: rank 0 has hung up, as it does on whoever is pushed out by others
 * that connect (M1). SAID_NO: after a line. */
static enum said rank_say(
	int socket, const char *address, unsigned rank, unsigned size, uint64_t end)
{
	char line[PMI_LINE], command[PMI_KEY] = "", why[PMI_VALUE] = "nothing";

	if (!pmi_write(socket, "cmd=meet rank=%u size=%u\n", rank, size) ||
		!line_read(socket, line, end))
		return SAID_NOTHING;
	(void)pmi_word(line, "cmd", command, sizeof(command));
	if (strcmp(command, "met") == 0)
		return SAID_MET;
	(void)pmi_word(line, "msg", why, sizeof(why));
	job_tell("rank %u is not taken by rank 0 at %s, which says: %s", rank, address, why);
	return SAID_NO;
}

int meet_connect(const char *address, unsigned rank, unsigned size)
{
	const struct timespec nap = {.tv_nsec = RETRY_TIME * 1000000};
	const uint64_t end = now() + MEET_TIME;
	const char *why = "";

	do {
		int one = connect_once(address, end, &why);
		enum said said = SAID_NOTHING;

		if (one >= 0) {
			socket_prepare(one);
			said = rank_say(one, address, rank, size, end);
			why = "it gives no answer";
		}
		if (said == SAID_MET && fcntl(one, F_SETFL, 0) == 0)
			return one;
		if (one >= 0)
			close(one);
		if (said == SAID_NO)
			return -1;
		nanosleep(&nap, NULL);
	} while (now() < end);
	job_tell("rank %u has not reached rank 0 at %s within %u s: %s: start postern-run "
		 "--meet %s --rank 0 on that host, whose name or address all ranks know",
		rank, address, MEET_TIME / 1000, why, address);
	return -1;
}
