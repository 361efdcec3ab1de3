/* SPDX-License-Identifier: BSD-3-Clause */
/* alltoall.c - all processes of a job put blocks to all others, and check every byte.
 *
 *     postern-run -n 64 alltoall [BYTES [ROUNDS [MEGABYTES]]]
 *
 * In each round each process puts one block of BYTES (1024) to each other one, and the round ends
 * for it when its own blocks have left and those of all others have come. Rank 0 then prints what
 * memory all have together without their blocks, and fails if it is more than MEGABYTES (of 2^20
 * bytes).
 *
 * A1. A block of round R goes to place R modulo 2. A process puts its block of round R + 2 only
 *     after it has received the other's of round R + 1, which that one sends after it has checked
 *     what came in round R. So no block is overwritten before it is checked.
 * A2. A page that two processes share counts half for each. Pages of a pair that have memory but
 *     were not touched count as well.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "checks.h"

#define PORTAL        3
#define PORTAL_MEMORY 4
#define BYTES         1024
#define BYTES_MOST    (16u << 20)
#define ROUNDS        4
#define SIZE_MOST     256u

static struct {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t queue;
	ptl_handle_me_t entry; /* of the arrivals */
	unsigned rank, size;
	uint64_t bytes, rounds;
	unsigned char *arrivals; /* two places for each rank (A1) */
	unsigned char *leaving;  /* a block for each rank */
	unsigned sent;           /* in this round */
	unsigned arrived[2];     /* by place */
	uint64_t kilobytes[SIZE_MOST];
} me;

static _Noreturn void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "rank %u: ", me.rank);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static uint64_t seed(uint64_t round, unsigned from, unsigned to)
{
	return (round * SIZE_MOST + from) * SIZE_MOST + to;
}

static unsigned char *block(unsigned char *blocks, unsigned number)
{
	return blocks + number * me.bytes;
}

/* --- messages */

static ptl_handle_me_t place_open(
	unsigned portal, void *start, uint64_t length, ptl_handle_eq_t queue)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t place = {.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		.eventq = queue};
	ptl_handle_me_t entry;

	check(PtlMEAttach(me.ni, portal, anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &entry));
	check(PtlMDAttach(entry, place, PTL_RETAIN, PTL_RETAIN, NULL));
	return entry;
}

static void block_put(
	unsigned to, unsigned portal, void *start, uint64_t length, uint64_t offset, uint64_t data)
{
	ptl_md_t md = {.start = start, .length = length, .threshold = 1, .eventq = me.queue};
	ptl_process_id_t target;
	ptl_handle_md_t descriptor;

	check(postern_job_address(to, &target));
	check(PtlMDBind(me.ni, md, &descriptor));
	check(PtlPut(descriptor, PTL_NOACK_REQ, target, portal, 0, 0, offset, data));
}

static void event_take(void)
{
	ptl_event_t event;

	check(PtlEQWait(me.queue, &event));
	if (event.ni_fail_type != PTL_NI_OK)
		fail("%s: %s", postern_event_name(event.type),
			postern_fail_text(event.ni_fail_type));
	if (event.type == PTL_EVENT_PUT_END) {
		expect_equal(event.mlength, me.bytes);
		me.arrived[event.hdr_data % 2]++;
	} else if (event.type == PTL_EVENT_SEND_END) {
		me.sent++;
		check(PtlMDUnlink(event.md_handle));
	}
}

static void round_go(uint64_t round)
{
	unsigned place = round % 2;

	me.sent = 0;
	for (unsigned n = 1; n < me.size; n++) {
		unsigned to = (me.rank + n) % me.size;

		bytes_fill(block(me.leaving, to), me.bytes, seed(round, me.rank, to));
		block_put(to, PORTAL, block(me.leaving, to), me.bytes,
			(place * me.size + me.rank) * me.bytes, round);
	}
	while (me.sent < me.size - 1 || me.arrived[place] < me.size - 1)
		event_take();
	expect_equal(me.arrived[place], me.size - 1);
	me.arrived[place] = 0;
	for (unsigned from = 0; from < me.size; from++) {
		unsigned char *bytes = block(me.arrivals, place * me.size + from);

		if (from != me.rank)
			bytes_check(bytes, me.bytes, seed(round, from, me.rank), 0);
		memset(bytes, 0, me.bytes);
	}
}

/* --- memory (A2) */

/* Kilobytes of pages in memory behind this mapping. */
static uint64_t mapping_kilobytes(uintptr_t start, uintptr_t end)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (end - start) / page, found = 0;
	unsigned char *there = malloc(pages);

	expect(there != NULL && mincore((void *)start, end - start, there) == 0);
	for (size_t n = 0; n < pages; n++)
		found += there[n] & 1;
	free(there);
	return found * page / 1024;
}

static uint64_t pairs_kilobytes(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	uintptr_t start, end;
	uint64_t sum = 0;
	char line[512];

	expect(file != NULL);
	while (fgets(line, sizeof(line), file) != NULL)
		if (strstr(line, "/memfd:postern-pair") != NULL &&
			sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) == 2)
			sum += mapping_kilobytes(start, end);
	fclose(file);
	return sum / 2;
}

/* Of all else. */
static uint64_t own_kilobytes(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	unsigned long kilobytes, sum = 0;
	char line[256];

	expect(file != NULL);
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "Pss_Anon: %lu", &kilobytes) == 1 ||
			sscanf(line, "Pss_File: %lu", &kilobytes) == 1)
			sum += kilobytes;
	fclose(file);
	expect(sum > 0);
	return sum;
}

static unsigned char *blocks_make(uint64_t count)
{
	void *memory = mmap(
		NULL, count * me.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(memory != MAP_FAILED);
	return memory;
}

/* After the last round. What is counted then is the library's. */
static void blocks_end(void)
{
	check(postern_job_barrier());
	check(PtlMEUnlink(me.entry));
	expect(munmap(me.arrivals, 2 * me.size * me.bytes) == 0);
	expect(munmap(me.leaving, me.size * me.bytes) == 0);
}

/* Puts this process's kilobytes to rank 0, which prints the sum. */
static void memory_tell(double seconds, uint64_t megabytes)
{
	uint64_t own = own_kilobytes(), pairs = pairs_kilobytes(), sum = 0;

	me.kilobytes[me.rank] = own + pairs;
	check(postern_job_barrier());
	if (me.rank != 0) {
		me.sent = 0;
		block_put(0, PORTAL_MEMORY, &me.kilobytes[me.rank], sizeof(uint64_t),
			me.rank * sizeof(uint64_t), 0);
		while (me.sent == 0)
			event_take();
	}
	check(postern_job_barrier());
	for (unsigned n = 0; n < me.size; n++)
		sum += me.kilobytes[n];
	if (me.rank != 0)
		return;
	printf("%u processes, all to all, %" PRIu64 " rounds of %" PRIu64
	       " bytes, every byte checked: %.2f s; memory of all %" PRIu64
	       " MB; rank 0 has %" PRIu64 " KB, and %" PRIu64 " KB of pairs\n",
		me.size, me.rounds, me.bytes, seconds, sum / 1024, own, pairs);
	if (megabytes != 0 && sum / 1024 > megabytes)
		fail("%" PRIu64 " MB is more than %" PRIu64, sum / 1024, megabytes);
}

/* --- beginning and end */

static void job_open(void)
{
	int interfaces;

	check(PtlInit(&interfaces));
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &me.ni));
	check(postern_job_join(me.ni, &me.rank, &me.size));
	expect(me.size <= SIZE_MOST);
	me.arrivals = blocks_make(2 * me.size);
	me.leaving = blocks_make(me.size);
	/* of each other process START and END of SEND and PUT, in two rounds */
	check(PtlEQAlloc(me.ni, 8 * me.size + 1, &me.queue));
	me.entry = place_open(PORTAL, me.arrivals, 2 * me.size * me.bytes, me.queue);
	(void)place_open(PORTAL_MEMORY, me.kilobytes, sizeof(me.kilobytes), PTL_EQ_NONE);
	check(postern_job_barrier());
}

static uint64_t number(int count, char **words, int at, uint64_t otherwise)
{
	return count > at ? strtoull(words[at], NULL, 10) : otherwise;
}

int main(int count, char **words)
{
	double seconds;

	me.bytes = number(count, words, 1, BYTES);
	me.rounds = number(count, words, 2, ROUNDS);
	if (count > 4 || me.bytes == 0 || me.bytes > BYTES_MOST)
		fail("usage: alltoall [BYTES [ROUNDS [MEGABYTES]]], up to %u bytes", BYTES_MOST);
	job_open();
	seconds = -now();
	for (uint64_t round = 0; round < me.rounds; round++)
		round_go(round);
	seconds += now();
	blocks_end();
	memory_tell(seconds, number(count, words, 3, 0));
	check(postern_job_leave());
	PtlNIFini(me.ni);
	PtlFini();
	return 0;
}
