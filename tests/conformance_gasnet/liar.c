/* SPDX-License-Identifier: BSD-3-Clause */
/* liar.c - rank 1 sends rank 0 a message that no library sends, which ends the job:
 *
 *     postern-run -n 2 liar address|arguments|length|memset|done|unknown|reply
 *
 * It puts to rank 0's Portal of messages by the interface of its own library, with the match bits
 * of lib/gasnet/send.c.
 */
#include "ranks.h"

#include <string.h>

#include <portals4.h>

#define MESSAGES    7
#define REQUEST     (UINT64_C(1) << 62)
#define SHORT       0u
#define PACKED      3u
#define HANDLER     128u
#define MEMSET      64u /* handlers of the library */
#define MEMSET_DONE 65u

uint8_t *segments[RANKS_MAX];
unsigned rank, ranks;
static uint8_t victim[64]; /* no part of the segment */

static void come(gasnet_token_t token, void *bytes, size_t length)
{
	(void)token;
	(void)bytes;
	(void)length;
	printf("a handler runs\n");
	fflush(stdout);
}

static uint64_t bits_of(unsigned kind, unsigned count, unsigned handler, size_t length)
{
	return UINT64_C(3) << 62 | (uint64_t)kind << 60 | (uint64_t)count << 55 |
	       (uint64_t)handler << 47 | length;
}

/* A message that begins with an address, or an argument; a reply gives so many credits back. */
static void lie(uint64_t bits, uint64_t address, uint64_t credits)
{
	static uint64_t words[8];
	const ptl_md_t md = {.start = words,
		.length = sizeof(words),
		.options = PTL_MD_EVENT_SUCCESS_DISABLE,
		.eq_handle = PTL_EQ_NONE,
		.ct_handle = PTL_CT_NONE};
	ptl_handle_ni_t ni;
	ptl_handle_md_t memory;

	words[0] = address;
	CHECK(PtlInit() == PTL_OK);
	CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL,
		      NULL, &ni) == PTL_OK);
	CHECK(PtlMDBind(ni, &md, &memory) == PTL_OK);
	CHECK(PtlPut(memory, 0, sizeof(words), PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, MESSAGES,
		      bits, 0, NULL, credits << 32) == PTL_OK);
}

int main(int argc, char **argv)
{
	gasnet_handlerentry_t table[] = {{HANDLER, (void (*)())come}};
	gasnet_seginfo_t info[2];
	uint64_t inside;

	CHECK(argc == 2);
	CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
	CHECK(gasnet_attach(table, 1, GASNET_PAGESIZE, 0) == GASNET_OK);
	CHECK(gasnet_getSegmentInfo(info, 2) == GASNET_OK);
	rank = gasnet_mynode();
	ranks = gasnet_nodes();
	inside = (uintptr_t)info[0].addr;
	if (rank == 1 && strcmp(argv[1], "address") == 0)
		lie(bits_of(PACKED, 0, HANDLER, 8), (uintptr_t)victim, 0);
	else if (rank == 1 && strcmp(argv[1], "arguments") == 0)
		lie(bits_of(PACKED, 17, HANDLER, 0), inside, 0);
	else if (rank == 1 && strcmp(argv[1], "memset") == 0)
		lie(bits_of(SHORT, 6, MEMSET, 0), inside - 1, 0);
	else if (rank == 1 && strcmp(argv[1], "done") == 0)
		lie(bits_of(SHORT, 2, MEMSET_DONE, 0), 0, 0);
	else if (rank == 1 && strcmp(argv[1], "unknown") == 0)
		lie(bits_of(SHORT, 2, MEMSET_DONE, 0), (uintptr_t)victim, 0);
	else if (rank == 1 && strcmp(argv[1], "reply") == 0)
		lie(bits_of(SHORT, 0, HANDLER, 0) & ~REQUEST, 0, 1);
	else if (rank == 1)
		lie(bits_of(PACKED, 0, HANDLER, 57), inside, 0);
	for (;;)
		CHECK(gasnet_AMPoll() == GASNET_OK);
}
