/* SPDX-License-Identifier: BSD-3-Clause */
/* onesided.c - one-sided communication of an MPI job: put, get, accumulate, fetch and add, compare
 * and swap, under locks and fences. Every value is checked. With the word "noswap" it leaves out
 * compare and swap. */
#include "check.h"

#define WORDS 4096

static long *memory;
static MPI_Win window;

static void open_window(void)
{
	MPI_Win_allocate(WORDS * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL,
		MPI_COMM_WORLD, &memory, &window);
	memset(memory, 0, WORDS * sizeof(long));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void close_window(void)
{
	MPI_Win_free(&window);
}

/* Each rank writes a part of every other one's memory and reads it back. */
static void puts_and_gets(void)
{
	const int part_words = WORDS / ranks;
	long *values = calloc((size_t)part_words, sizeof(long));
	long *back = calloc((size_t)part_words, sizeof(long));

	open_window();
	for (int round = 0; round < (quick ? 3 : 30); round++) {
		for (int to = 0; to < ranks; to++) {
			for (int n = 0; n < part_words; n++)
				values[n] = rank * 1000000L + to * 10000L + n + round;
			MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window);
			MPI_Put(values, part_words, MPI_LONG, to, (MPI_Aint)rank * part_words,
				part_words, MPI_LONG, window);
			MPI_Win_flush(to, window);
			MPI_Get(back, part_words, MPI_LONG, to, (MPI_Aint)rank * part_words,
				part_words, MPI_LONG, window);
			MPI_Win_unlock(to, window);
			for (int n = 0; n < part_words; n++)
				expect(back[n] == values[n], "word %d at rank %d, round %d", n, to,
					round);
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	close_window();
	free(values);
	free(back);
}

/* All ranks add to the same words of rank 0. */
static void additions(void)
{
	const int rounds = quick ? 100 : 1000;
	long one[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	open_window();
	for (int round = 0; round < rounds; round++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		MPI_Accumulate(one, 8, MPI_LONG, 0, 0, 8, MPI_LONG, MPI_SUM, window);
		MPI_Win_unlock(0, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		for (int n = 0; n < 8; n++)
			expect(memory[n] == one[n] * rounds * ranks, "sum %d is %ld, not %ld", n,
				memory[n], one[n] * rounds * ranks);
		MPI_Win_unlock(0, window);
	}
	close_window();
}

/* Other operations and types, of more than one atomic operation can carry. */
static void operations(void)
{
	enum { DOUBLES = WORDS / 2, INTS = WORDS };
	const int rounds = quick ? 3 : 30;
	double *sums = calloc(DOUBLES, sizeof(*sums));
	int *most = calloc(INTS, sizeof(*most));
	const double *summed;
	const int *found;

	open_window();
	summed = (const double *)memory;
	found = (const int *)(memory + DOUBLES);
	for (int round = 0; round < rounds; round++) {
		for (int n = 0; n < DOUBLES; n++)
			sums[n] = n + rank;
		for (int n = 0; n < INTS; n++)
			most[n] = n * 10 + rank + round;
		MPI_Win_lock(MPI_LOCK_SHARED, ranks - 1, 0, window);
		MPI_Accumulate(sums, DOUBLES, MPI_DOUBLE, ranks - 1, 0, DOUBLES, MPI_DOUBLE,
			MPI_SUM, window);
		MPI_Accumulate(
			most, INTS, MPI_INT, ranks - 1, DOUBLES, INTS, MPI_INT, MPI_MAX, window);
		MPI_Win_unlock(ranks - 1, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == ranks - 1) {
		MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
		for (int n = 0; n < DOUBLES; n++)
			expect(summed[n] == (double)rounds * (ranks * n + ranks * (ranks - 1) / 2),
				"the sum %d is %g", n, summed[n]);
		for (int n = 0; n < INTS; n++)
			expect(found[n] == n * 10 + ranks - 1 + rounds - 1, "the maximum %d is %d",
				n, found[n]);
		MPI_Win_unlock(rank, window);
	}
	close_window();
	free(sums);
	free(most);
}

/* Numbers are drawn from a counter: each is drawn once. */
static void tickets(void)
{
	const int draws = quick ? 100 : 1000;
	char *drawn = calloc((size_t)draws * (size_t)ranks, 1);
	long one = 1, number;

	open_window();
	for (int n = 0; n < draws; n++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		MPI_Fetch_and_op(&one, &number, MPI_LONG, 0, 0, MPI_SUM, window);
		MPI_Win_unlock(0, window);
		expect(number >= 0 && number < (long)draws * ranks, "the number %ld was drawn",
			number);
		drawn[number]++;
	}
	MPI_Allreduce(MPI_IN_PLACE, drawn, draws * ranks, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
	for (int n = 0; n < draws * ranks; n++)
		expect(drawn[n] == 1, "the number %d was drawn %d times", n, drawn[n]);
	close_window();
	free(drawn);
}

/* A lock of compare-and-swap guards a word that is read, then written. */
static void swaps(void)
{
	const int rounds = quick ? 20 : 200;
	long free_word = 0, mine = rank + 1, old, value;

	open_window();
	for (int round = 0; round < rounds; round++) {
		MPI_Win_lock_all(0, window);
		do {
			MPI_Compare_and_swap(&mine, &free_word, &old, MPI_LONG, 0, 0, window);
			MPI_Win_flush(0, window);
		} while (old != 0);
		MPI_Get(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
		MPI_Win_flush(0, window);
		value++;
		MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
		MPI_Win_flush(0, window);
		MPI_Compare_and_swap(&free_word, &mine, &old, MPI_LONG, 0, 0, window);
		MPI_Win_flush(0, window);
		expect(old == mine, "the lock of rank %d was %ld's", rank, old - 1);
		MPI_Win_unlock_all(window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Get(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
	MPI_Win_unlock(0, window);
	expect(value == (long)rounds * ranks, "the guarded word is %ld", value);
	MPI_Barrier(MPI_COMM_WORLD);
	close_window();
}

int main(int count, char **words)
{
	begin(&count, &words);
	part("puts and gets", puts_and_gets);
	part("additions", additions);
	part("other operations", operations);
	part("tickets", tickets);
	if (count < 2 || strcmp(words[count - 1], "noswap") != 0)
		part("a lock of swaps", swaps);
	return end();
}
