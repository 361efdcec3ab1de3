/* SPDX-License-Identifier: BSD-3-Clause */
/* given.c - given RANK SIZE DIRECTORY: a process of a job whose exchange are files in a directory.
 * It pings its right neighbour, by a question to that one first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <portals.h>
#include <postern.h>

static const char *directory;

static void file_write(unsigned rank, const char *kind, const void *bytes, size_t size)
{
	char path[256], whole[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s-%u.part", directory, kind, rank);
	snprintf(whole, sizeof(whole), "%s/%s-%u", directory, kind, rank);
	file = fopen(path, "w");
	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0 ||
		rename(path, whole) != 0)
		exit(2);
}

/* Waits for it. */
static void file_read(unsigned rank, const char *kind, void *bytes, size_t size)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s-%u", directory, kind, rank);
	while (!(file = fopen(path, "r")))
		usleep(10000);
	if (fread(bytes, 1, size, file) != size)
		exit(2);
	fclose(file);
}

static void check(int code)
{
	if (code != PTL_OK)
		exit(1); /* the library has said why */
}

static uint64_t counter_find(ptl_handle_ni_t ni, const char *name)
{
	struct postern_stat stats[256];
	unsigned count = postern_stats(ni, stats, 256);

	for (unsigned n = 0; n < count; n++)
		if (strcmp(stats[n].name, name) == 0)
			return stats[n].value;
	exit(2);
}

int main(int count, char **words)
{
	unsigned char card[POSTERN_JOB_CARD_BYTES], *cards;
	unsigned rank, size;
	struct postern_ping ping;
	ptl_process_id_t next;
	ptl_handle_ni_t ni;
	int interfaces;

	if (count != 4)
		return 2;
	rank = (unsigned)atoi(words[1]);
	size = (unsigned)atoi(words[2]);
	directory = words[3];
	check(PtlInit(&interfaces));
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
	check(postern_job_card(ni, card));
	file_write(rank, "card", card, sizeof(card));
	cards = calloc(size, sizeof(card));
	for (unsigned n = 0; n < size; n++)
		file_read(n, "card", cards + n * sizeof(card), sizeof(card));
	check(postern_job_given(ni, rank, size, cards));
	free(cards);
	check(postern_job_address((rank + 1) % size, &next));
	check(postern_ping(ni, next, 0, 0, 60 * UINT64_C(1000000000), &ping));
	if (ping.status != POSTERN_PING_ANSWERED || postern_job_barrier() != PTL_FAIL)
		return 3;
	/* A neighbour that had no CPU for a while is asked three times before everybody is. */
	if (counter_find(ni, "asks_broadcast") != 0 &&
		counter_find(ni, "asks_sent") < counter_find(ni, "asks_broadcast") + 3)
		return 4;
	file_write(rank, "done", "", 0);
	for (unsigned n = 0; n < size; n++)
		file_read(n, "done", card, 0);
	check(postern_job_leave());
	PtlFini();
	printf("rank %u of %u has reached the next\n", rank, size);
	return 0;
}
