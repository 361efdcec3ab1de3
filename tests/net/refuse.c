/* SPDX-License-Identifier: BSD-3-Clause */
/* refuse.c - runs a program from which the kernel refuses what it is told here, as the profile of a
 * container or an older kernel does.
 *
 *      refuse ERROR NAME[,NAME...] PROGRAM ARGUMENTS
 *
 * ERROR is the error's number. NAME is sendmmsg, recvmmsg, connect, or an option of sockets:
 * segment, gro, errors, tos, path, overflows, reuse, buffers (which then have the kernel's default
 * size). */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOW_HALF(number)                                                                           \
	((unsigned)(offsetof(struct seccomp_data, args) + (number) * sizeof(uint64_t)))
#define RULES 128u

static const struct {
	const char *name;
	unsigned call;
	unsigned level, option; /* of sockets; 0: any */
} refusals[] = {
	{"sendmmsg", SYS_sendmmsg, 0, 0},
	{"recvmmsg", SYS_recvmmsg, 0, 0},
	{"connect", SYS_connect, 0, 0},
	{"segment", SYS_getsockopt, SOL_UDP, UDP_SEGMENT},
	{"segment", SYS_setsockopt, SOL_UDP, UDP_SEGMENT},
	{"gro", SYS_setsockopt, SOL_UDP, UDP_GRO},
	{"errors", SYS_setsockopt, SOL_IP, IP_RECVERR},
	{"tos", SYS_setsockopt, SOL_IP, IP_RECVTOS},
	{"tos", SYS_setsockopt, SOL_IP, IP_TOS},
	{"path", SYS_setsockopt, SOL_IP, IP_MTU_DISCOVER},
	{"overflows", SYS_setsockopt, SOL_SOCKET, SO_RXQ_OVFL},
	{"reuse", SYS_setsockopt, SOL_SOCKET, SO_REUSEPORT},
	{"buffers", SYS_setsockopt, SOL_SOCKET, SO_RCVBUF},
	{"buffers", SYS_setsockopt, SOL_SOCKET, SO_SNDBUF},
};

static struct sock_filter rules[RULES];
static unsigned short count;

static void rule(unsigned short code, unsigned char otherwise, uint32_t value)
{
	rules[count++] = (struct sock_filter){code, 0, otherwise, value};
}

static void refuse(unsigned n, uint32_t error)
{
	unsigned char rest = refusals[n].option != 0 ? 5 : 1;

	rule(BPF_LD | BPF_W | BPF_ABS, 0, offsetof(struct seccomp_data, nr));
	rule(BPF_JMP | BPF_JEQ | BPF_K, rest, refusals[n].call);
	if (refusals[n].option != 0) {
		rule(BPF_LD | BPF_W | BPF_ABS, 0, LOW_HALF(1));
		rule(BPF_JMP | BPF_JEQ | BPF_K, 3, refusals[n].level);
		rule(BPF_LD | BPF_W | BPF_ABS, 0, LOW_HALF(2));
		rule(BPF_JMP | BPF_JEQ | BPF_K, 1, refusals[n].option);
	}
	rule(BPF_RET | BPF_K, 0, SECCOMP_RET_ERRNO | error);
}

int main(int argc, char **argv)
{
	struct sock_fprog program = {.filter = rules};
	unsigned known = 0;

	if (argc < 4) {
		fprintf(stderr, "usage: refuse ERROR NAME[,NAME...] PROGRAM ARGUMENTS\n");
		return 2;
	}
	for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ","))
		for (unsigned n = 0; n < sizeof(refusals) / sizeof(refusals[0]); n++)
			if (strcmp(refusals[n].name, name) == 0) {
				refuse(n, (uint32_t)strtoul(argv[1], NULL, 10));
				known++;
			}
	rule(BPF_RET | BPF_K, 0, SECCOMP_RET_ALLOW);
	program.len = count;
	if (known == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		fprintf(stderr, "refuse: %s\n", strerror(errno));
		return 1;
	}
	execvp(argv[3], argv + 3);
	fprintf(stderr, "refuse: %s: %s\n", argv[3], strerror(errno));
	return 1;
}
