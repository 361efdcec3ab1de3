/* SPDX-License-Identifier: BSD-3-Clause */
/* line.c - see line.h. */
#include <pmd-glue/line.h>

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

bool line_open(struct line *line)
{
	*line = (struct line){
		.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
	if (line->socket < 0)
		return false;
	/* A kernel that does not know the option would send joined datagrams as one long one. */
	line->segments = option_get(line->socket, SOL_UDP, UDP_SEGMENT, -1) >= 0;
	line->joins = option_set(line->socket, SOL_UDP, UDP_GRO, 1);
	line->news = option_set(line->socket, SOL_IP, IP_RECVERR, 1);
	line->marks = option_set(line->socket, SOL_IP, IP_RECVTOS, 1);
	(void)option_set(line->socket, SOL_IP, IP_TOS, ECN_CAPABLE);
	(void)option_set(line->socket, SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_WANT);
	(void)option_set(line->socket, SOL_SOCKET, SO_RXQ_OVFL, 1);
	(void)option_set(line->socket, SOL_SOCKET, SO_SNDBUF, SEND_BYTES);
	(void)option_set(line->socket, SOL_SOCKET, SO_RCVBUF, RECEIVE_BYTES);
	line->room = (uint32_t)option_get(line->socket, SOL_SOCKET, SO_RCVBUF, 0);
	return true;
}

bool line_bind(const struct line *line, uint32_t address, uint16_t udp_port)
{
	const struct sockaddr_in name = {.sin_family = AF_INET,
		.sin_port = htons(udp_port),
		.sin_addr.s_addr = htonl(address)};

	return bind(line->socket, (const struct sockaddr *)&name, sizeof(name)) == 0;
}

void line_close(struct line *line)
{
	if (line->socket >= 0)
		close(line->socket);
	line->socket = -1;
}

bool line_hear(const struct line *line, struct line_news *news)
{
	struct iovec piece = {news->quote, sizeof(news->quote)};
	_Alignas(struct cmsghdr) uint8_t
		control[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
	struct msghdr message = {.msg_name = &news->to,
		.msg_namelen = sizeof(news->to),
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t bytes = recvmsg(line->socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT);

	if (bytes < 0)
		return false;
	news->bytes = (uint32_t)bytes;
	news->error = 0;
	for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
		struct sock_extended_err error;

		if (one->cmsg_level != SOL_IP || one->cmsg_type != IP_RECVERR ||
			one->cmsg_len < CMSG_LEN(sizeof(error)))
			continue;
		memcpy(&error, CMSG_DATA(one), sizeof(error));
		if (error.ee_origin == SO_EE_ORIGIN_ICMP)
			news->error = (int)error.ee_errno;
	}
	return true;
}
