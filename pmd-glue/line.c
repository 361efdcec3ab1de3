/* SPDX-License-Identifier: BSD-3-Clause */
/* line.c - see line.h. */
#include <pmd-glue/line.h>

#include <assert.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/log.h>

#define RECEIVE_BYTES (8 << 20) /* what is asked for; an ordinary user gets net.core.rmem_max */
#define SEND_BYTES    (1 << 20)
#define ECN_CAPABLE   2 /* ECT(0) */

static bool option_set(int socket, int level, int option, int value)
{
	return setsockopt(socket, level, option, &value, sizeof(value)) == 0;
}

static int option_get(int socket, int level, int option, int otherwise)
{
	int value = otherwise;
	socklen_t size = sizeof(value);

	return getsockopt(socket, level, option, &value, &size) == 0 ? value : otherwise;
}

static bool granted(struct line *line, enum line_lack lack, bool yes)
{
	if (!yes)
		line->lacks |= 1u << lack;
	return yes;
}

static bool line_set(struct line *line, enum line_lack lack, int level, int option, int value)
{
	return granted(line, lack, option_set(line->socket, level, option, value));
}

/* The options of a version of IP that have another number in the other one. */
static void options_ip(struct line *line, sa_family_t family)
{
	bool six = family == AF_INET6;
	int level = six ? SOL_IPV6 : SOL_IP;

	line->level = level;
	line->errors = line_set(line, LINE_ERRORS, level, six ? IPV6_RECVERR : IP_RECVERR, 1);
	line->marks = line_set(line, LINE_MARKS, level, six ? IPV6_RECVTCLASS : IP_RECVTOS, 1);
	(void)line_set(line, LINE_ECT, level, six ? IPV6_TCLASS : IP_TOS, ECN_CAPABLE);
	(void)line_set(line, LINE_PATH, level, six ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
		six ? IPV6_PMTUDISC_WANT : IP_PMTUDISC_WANT);
}

/* Calls for no message at all. */
static void calls_try(struct line *line)
{
	struct mmsghdr none = {0};

	(void)granted(line, LINE_SENDMMSG, sendmmsg(line->socket, &none, 0, MSG_DONTWAIT) >= 0);
	(void)granted(
		line, LINE_RECVMMSG, recvmmsg(line->socket, &none, 0, MSG_DONTWAIT, NULL) >= 0);
}

bool line_open(struct line *line, sa_family_t family)
{
	*line = (struct line){
		.socket = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
	if (line->socket < 0)
		return false;
	/* An address of IPv4 must have no second spelling. */
	if (family == AF_INET6 && !option_set(line->socket, SOL_IPV6, IPV6_V6ONLY, 1)) {
		line_close(line);
		return false;
	}
	/* A kernel that does not know the option would send joined datagrams as one long one. */
	line->segments = granted(
		line, LINE_SEGMENT, option_get(line->socket, SOL_UDP, UDP_SEGMENT, -1) >= 0);
	line->joins = line_set(line, LINE_GRO, SOL_UDP, UDP_GRO, 1);
	options_ip(line, family);
	(void)line_set(line, LINE_OVERFLOWS, SOL_SOCKET, SO_RXQ_OVFL, 1);
	(void)line_set(line, LINE_SEND_ROOM, SOL_SOCKET, SO_SNDBUF, SEND_BYTES);
	(void)line_set(line, LINE_RECEIVE_ROOM, SOL_SOCKET, SO_RCVBUF, RECEIVE_BYTES);
	calls_try(line);
	line->room = (uint32_t)option_get(line->socket, SOL_SOCKET, SO_RCVBUF, 0);
	return true;
}

static struct port_lack lack_of(const struct line *line, enum line_lack lack)
{
	static const struct port_lack lacks[2][LINE_LACK_COUNT] = {
#define X(constant, four, six, effect) {four, effect},
		{LINE_LACKS(X)},
#undef X
#define X(constant, four, six, effect) {six, effect},
		{LINE_LACKS(X)},
#undef X
	};

	return lacks[line->level == SOL_IPV6][lack];
}

static void lack_tell(const struct line *line, enum line_lack lack, const char *name)
{
	struct port_lack one = lack_of(line, lack);

	log_info("%s: the system refuses %s: %s", name, one.what, one.effect);
}

void line_lose(struct line *line, enum line_lack lack, const char *name)
{
	if (line_lacks(line, lack))
		return;
	line->lacks |= 1u << lack;
	lack_tell(line, lack, name);
}

void line_tell(const struct line *line, const char *name)
{
	for (unsigned n = 0; n < LINE_LACK_COUNT; n++)
		if (line_lacks(line, n))
			lack_tell(line, n, name);
}

static_assert(LINE_LACK_COUNT <= PORT_LACKS, "a description has room for all");

unsigned line_describe(const struct line *line, struct port_lack *lacks)
{
	unsigned count = 0;

	for (unsigned n = 0; n < LINE_LACK_COUNT; n++)
		if (line_lacks(line, n))
			lacks[count++] = lack_of(line, n);
	return count;
}

bool line_bind(const struct line *line, const union udp_name *name, socklen_t size)
{
	return bind(line->socket, &name->any, size) == 0;
}

bool line_share(const struct line *line, bool yes)
{
	return option_set(line->socket, SOL_SOCKET, SO_REUSEPORT, yes);
}

void line_close(struct line *line)
{
	if (line->socket >= 0)
		close(line->socket);
	line->socket = -1;
}

bool line_hear(const struct line *line, struct line_error *report)
{
	struct iovec piece = {report->quote, sizeof(report->quote)};
	_Alignas(struct cmsghdr) uint8_t
		control[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
	struct msghdr message = {.msg_name = &report->to,
		.msg_namelen = sizeof(report->to),
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t bytes = recvmsg(line->socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT);

	if (bytes < 0)
		return false;
	report->bytes = (uint32_t)bytes;
	report->error = 0;
	for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
		struct sock_extended_err error;

		if (one->cmsg_level != line->level ||
			one->cmsg_type != (line->level == SOL_IPV6 ? IPV6_RECVERR : IP_RECVERR) ||
			one->cmsg_len < CMSG_LEN(sizeof(error)))
			continue;
		memcpy(&error, CMSG_DATA(one), sizeof(error));
		if (error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6)
			report->error = (int)error.ee_errno;
	}
	return true;
}
