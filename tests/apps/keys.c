/* SPDX-License-Identifier: BSD-3-Clause */
/* keys.c - a job whose ranks put keys by PMI 1, many and long ones, some, and none, and get each
 * other's behind barriers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <portals4/pmi.h>

#define ROUNDS 3
#define LENGTH 500 /* of a value */

static const int counts[ROUNDS] = {60, 1, 0}; /* of each rank's keys in a round */
static char space[256];
static int rank, size;

static void check(int done, const char *what)
{
	if (done)
		return;
	fprintf(stderr, "rank %d: %s\n", rank, what);
	exit(1);
}

static void text_make(int of, int turn, int n, char *key, char *value)
{
	snprintf(key, 64, "key-%d-%d-%d", turn, of, n);
	memset(value, 'a' + (of + turn + n) % 26, LENGTH);
	value[LENGTH] = '\0';
}

static void round_run(int turn)
{
	char key[64], value[LENGTH + 1], got[LENGTH + 1];

	for (int n = 0; n < counts[turn]; n++) {
		text_make(rank, turn, n, key, value);
		check(PMI_KVS_Put(space, key, value) == PMI_SUCCESS, "a put failed");
	}
	check(PMI_KVS_Commit(space) == PMI_SUCCESS, "the commit failed");
	check(PMI_Barrier() == PMI_SUCCESS, "the barrier failed");
	for (int of = 0; of < size; of++)
		for (int n = 0; n < counts[turn]; n++) {
			text_make(of, turn, n, key, value);
			check(PMI_KVS_Get(space, key, got, sizeof(got)) == PMI_SUCCESS,
				"a get failed");
			check(strcmp(value, got) == 0, "a value is another one");
		}
}

int main(void)
{
	int spawned;

	check(PMI_Init(&spawned) == PMI_SUCCESS && PMI_Get_rank(&rank) == PMI_SUCCESS &&
			PMI_Get_size(&size) == PMI_SUCCESS &&
			PMI_KVS_Get_my_name(space, sizeof(space)) == PMI_SUCCESS,
		"the job did not begin");
	for (int turn = 0; turn < ROUNDS; turn++)
		round_run(turn);
	check(PMI_Barrier() == PMI_SUCCESS && PMI_Finalize() == PMI_SUCCESS, "the end failed");
	if (rank == 0)
		printf("%d ranks know all keys\n", size);
	return 0;
}
