/* SPDX-License-Identifier: BSD-3-Clause */
/* idle.c - a process that asks another one for an echo, and does nothing from then on. What it
 * shares with that one stays until standard input ends.
 *
 *     bench-idle NID PID
 */
#include <stdio.h>
#include <stdlib.h>

#include <portals.h>
#include <postern.h>

#define TIMEOUT 30000000000u /* ns */

static void need(int result, const char *call)
{
	if (result == PTL_OK)
		return;
	fprintf(stderr, "bench-idle: %s ends with %d\n", call, result);
	exit(1);
}

int main(int count, char **words)
{
	struct postern_ping ping;
	ptl_process_id_t target;
	ptl_handle_ni_t ni;
	int interfaces;

	if (count != 3) {
		fputs("usage: bench-idle NID PID\n", stderr);
		return 2;
	}
	target.nid = (ptl_nid_t)strtoul(words[1], NULL, 10);
	target.pid = (ptl_pid_t)strtoul(words[2], NULL, 10);
	need(PtlInit(&interfaces), "PtlInit");
	need(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	need(postern_ping(ni, target, 0, 0, TIMEOUT, &ping), "postern_ping");
	if (ping.status != POSTERN_PING_ANSWERED) {
		fprintf(stderr, "bench-idle: process %u:%u does not answer\n", target.nid,
			target.pid);
		return 1;
	}
	puts("Idle");
	fflush(stdout);
	while (getchar() != EOF)
		;
	PtlNIFini(ni);
	PtlFini();
	return 0;
}
