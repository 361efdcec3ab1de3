/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_cards.c - a launcher's answer to the question for all cards. The first byte is the size of
 * the job, the rest what the launcher says before it ends.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <job/job.h>

#include "fuzz.h"

#define SIZE_MAX_HERE 64u

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* Whatever the launcher says, a rank has a card or the call says why not. */
static void card_check(struct job *job, uint32_t rank)
{
	struct card card;

	job->why[0] = '\0';
	if (!job_card(job, rank, &card)) {
		fuzz_assert(job->why[0] != '\0' && strlen(job->why) < sizeof(job->why));
		return;
	}
	fuzz_assert(card.process.nid != UINT32_MAX && card.process.pid != UINT32_MAX);
	fuzz_assert(card.network < CARD_NETWORKS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct job job = {.kind = LAUNCHER_PMI, .has_all = true, .cards_asked = UINT16_MAX};
	int ends[2];

	if (size < 2 || size > 16384)
		return 0;
	job.size = 1 + data[0] % SIZE_MAX_HERE;
	fuzz_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	fuzz_assert(send(ends[0], data + 1, size - 1, 0) == (ssize_t)(size - 1));
	fuzz_assert(shutdown(ends[0], SHUT_WR) == 0);
	job.socket = ends[1];
	for (uint32_t rank = 0; rank < job.size; rank++)
		card_check(&job, rank);
	job_close(&job);
	close(ends[0]);
	return 0;
}
