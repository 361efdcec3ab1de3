/* SPDX-License-Identifier: BSD-3-Clause */
/* cycles.c - opens two interfaces, sends a message between them and closes them, again and again.
 * In the end the process may hold no more than after the first times.
 *
 *     PTL_IFACE_NAME="ONE;OTHER" cycles COUNT
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <portals.h>
#include <postern.h>

#include "checks.h"

#define PORTAL 4
#define PID    5
#define WARM   8 /* cycles until memory that stays has been touched */
#ifdef __SANITIZE_ADDRESS__
#define SLACK (1 << 20) /* KiB: the sanitizer holds back what was freed; it finds leaks itself */
#else
/* KiB: allocators keep a little now and then; 33 KiB a cycle are more after 100 */
#define SLACK 3072
#endif

struct held {
	unsigned descriptors, threads;
	uint64_t kilobytes; /* of memory that has been touched */
};

static _Noreturn void fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	exit(1);
}

static unsigned entries(const char *name)
{
	unsigned count = 0;
	DIR *all = opendir(name);

	expect(all != NULL);
	while (readdir(all))
		count++;
	closedir(all);
	return count;
}

static struct held process_holds(void)
{
	struct held held = {
		.descriptors = entries("/proc/self/fd"), .threads = entries("/proc/self/task")};
	uint64_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	expect(file != NULL && fscanf(file, "%*u %" SCNu64, &pages) == 1);
	fclose(file);
	held.kilobytes = pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	return held;
}

static void await(ptl_handle_eq_t queue, ptl_event_kind_t kind)
{
	ptl_event_t event;

	do {
		check(PtlEQWait(queue, &event));
		expect_equal(event.ni_fail_type, PTL_NI_OK);
	} while (event.type != kind);
}

static void cycle(void)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_ni_t interfaces[2];
	ptl_handle_eq_t queues[2];
	ptl_handle_me_t entry;
	ptl_handle_md_t descriptor;
	ptl_process_id_t target;
	char bytes[2][64] = {"from one", ""};
	ptl_md_t memory = {.length = sizeof(bytes[0]),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT};

	for (unsigned n = 0; n < 2; n++) {
		check(PtlNIInit((ptl_interface_t)n, PID + n, NULL, NULL, &interfaces[n]));
		check(PtlEQAlloc(interfaces[n], 8, &queues[n]));
	}
	check(PtlGetId(interfaces[1], &target));
	memory.start = bytes[1];
	memory.eventq = queues[1];
	check(PtlMEAttach(interfaces[1], PORTAL, anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &entry));
	check(PtlMDAttach(entry, memory, PTL_RETAIN, PTL_RETAIN, NULL));
	memory.start = bytes[0];
	memory.eventq = queues[0];
	check(PtlMDBind(interfaces[0], memory, &descriptor));
	check(PtlPut(descriptor, PTL_ACK_REQ, target, PORTAL, 0, 0, 0, 0));
	await(queues[1], PTL_EVENT_PUT_END);
	await(queues[0], PTL_EVENT_ACK);
	expect(memcmp(bytes[0], bytes[1], sizeof(bytes[0])) == 0);
	for (unsigned n = 0; n < 2; n++)
		check(PtlNIFini(interfaces[n]));
}

int main(int count, char **words)
{
	unsigned cycles = count == 2 ? (unsigned)strtoul(words[1], NULL, 10) : 0;
	struct held first = {0}, last;
	int interfaces;

	if (cycles <= WARM)
		fail("usage: cycles COUNT, of more than %d", WARM);
	check(PtlInit(&interfaces));
	for (unsigned n = 1; n <= cycles; n++) {
		cycle();
		if (n == WARM)
			first = process_holds();
	}
	last = process_holds();
	PtlFini();
	printf("after %d cycles %u descriptors, %u threads, %" PRIu64
	       " KiB; after %u cycles %u, %u, %" PRIu64 "\n",
		WARM, first.descriptors, first.threads, first.kilobytes, cycles, last.descriptors,
		last.threads, last.kilobytes);
	expect_equal(last.descriptors, first.descriptors);
	expect_equal(last.threads, first.threads);
	expect(last.kilobytes <= first.kilobytes + SLACK);
	return 0;
}
