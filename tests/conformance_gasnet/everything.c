/* SPDX-License-Identifier: BSD-3-Clause */
/* everything.c - the segment is all memory: a stack, a heap, data, and memory that is not there:
 *
 *     postern-run -n 2 everything [unmapped|unmapped-long]
 *
 * With "unmapped" rank 0 puts to an address that rank 1 does not have, which ends the job; with
 * "unmapped-long" it sends a long message there.
 */
#define GASNET_SEGMENT_EVERYTHING
#include "ranks.h"

#include <string.h>
#include <sys/mman.h>

uint8_t *segments[1];
unsigned rank, ranks;

enum { ADDRESSES = 128, LONG };

static uint8_t fixed[4096];
static uint8_t *addresses[3]; /* of the next rank: stack, heap, data */
static volatile unsigned known, longs;

static void take_addresses(gasnet_token_t token, void *bytes, size_t length)
{
	(void)token;
	CHECK(length == sizeof(addresses));
	memcpy(addresses, bytes, length);
	known = 1;
}

static void take_long(gasnet_token_t token, void *bytes, size_t length)
{
	(void)token;
	CHECK(pattern_is(bytes, length, 9));
	longs++;
}

static void use(uint8_t *remote, unsigned to)
{
	static uint8_t bytes[4096], back[4096];

	pattern_fill(bytes, sizeof(bytes), 9);
	gasnet_put(to, remote, bytes, sizeof(bytes));
	gasnet_get(back, to, remote, sizeof(back));
	CHECK(memcmp(bytes, back, sizeof(back)) == 0);
	gasnet_memset(to, remote, 1, sizeof(back));
	CHECK(gasnet_get_val(to, remote + 4095, 1) == 1);
	CHECK(gasnet_AMRequestLong0(to, LONG, bytes, 4096, remote) == GASNET_OK);
}

int main(int argc, char **argv)
{
	gasnet_handlerentry_t table[] = {
		{ADDRESSES, (void (*)())take_addresses}, {LONG, (void (*)())take_long}};
	uint8_t stack[4096], *heap, *own[3];
	gasnet_seginfo_t info;

	CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
	CHECK(gasnet_getMaxLocalSegmentSize() == UINTPTR_MAX);
	CHECK(gasnet_attach(table, 2, 0, 0) == GASNET_OK);
	CHECK(gasnet_getSegmentInfo(&info, 1) == GASNET_OK && !info.addr &&
		info.size == UINTPTR_MAX);
	rank = gasnet_mynode();
	ranks = gasnet_nodes();
	heap = malloc(4096);
	CHECK(heap);
	own[0] = stack;
	own[1] = heap;
	own[2] = fixed;
	CHECK(gasnet_AMRequestMedium0((rank + ranks - 1) % ranks, ADDRESSES, own, sizeof(own)) ==
		GASNET_OK);
	GASNET_BLOCKUNTIL(known);
	barrier_pass();
	if (argc > 1 && rank == 0 && strcmp(argv[1], "unmapped") == 0)
		gasnet_put(1, (void *)(uintptr_t)0x10000, stack, 4096);
	else if (argc > 1 && rank == 0)
		(void)gasnet_AMRequestLong0(1, LONG, stack, 4096, (void *)(uintptr_t)0x10000);
	for (unsigned i = 0; i < 3 && argc == 1; i++)
		use(addresses[i], (rank + 1) % ranks);
	GASNET_BLOCKUNTIL(longs == 3);
	barrier_pass();
	gasnet_exit(0);
}
