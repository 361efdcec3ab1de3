/* SPDX-License-Identifier: BSD-3-Clause */
/* posting.c - what it costs the abstract device (postern-adi.h) to post a receive whose message is
 * here already, among N unexpected messages that came before it, and among no others: in turns, in
 * a job of one process. PTL_IFACE_NAME=loop:a does.
 *
 *     PTL_IFACE_NAME=loop:a build/tests/bench/bench-posting [N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <postern-adi.h>

#define ROUNDS 11
#define POSTS  2000
#define TAG    0 /* the others' are larger */

static int done_ones;

static void done(void *owner, const struct adi_result *result)
{
	(void)owner;
	(void)result;
	done_ones++;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void send(int tag)
{
	struct adi_operation *operation;
	static char out[8];

	adi_send(&operation, out, 0, 0, tag, 0, 0, out, sizeof(out), 0);
	adi_wait(&operation);
}

/* Receives a message that is here. Returns ns. */
static double receive(int tag)
{
	struct adi_operation *operation;
	static char in[8];
	double start = now();

	adi_receive(&operation, in, 0, tag, 0, in, sizeof(in));
	adi_wait(&operation);
	return now() - start;
}

static int number_compare(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static double median(double *numbers, size_t count)
{
	qsort(numbers, count, sizeof(*numbers), number_compare);
	return numbers[count / 2];
}

/* The median time of a post, ns. */
static double posts_measure(void)
{
	static double times[POSTS];
	struct adi_result found;

	for (int i = 0; i < POSTS; i++) {
		send(TAG);
		while (!adi_probe(0, TAG, 0, 0, &found))
			;
		times[i] = receive(TAG);
	}
	return median(times, POSTS);
}

int main(int argc, char **argv)
{
	int others = argc > 1 ? atoi(argv[1]) : 10000;
	double alone[ROUNDS], among[ROUNDS], ratios[ROUNDS];

	if (others < 1 || others > 1000000) {
		fprintf(stderr, "usage: bench-posting [N], N from 1 to 1000000\n");
		return 2;
	}
	if (adi_start(done) != 0)
		return 1;
	for (int round = 0; round < ROUNDS; round++) {
		alone[round] = posts_measure();
		for (int i = 0; i < others; i++)
			send(TAG + 1 + i);
		among[round] = posts_measure();
		for (int i = 0; i < others; i++)
			(void)receive(TAG + 1 + i);
		ratios[round] = among[round] / alone[round];
	}
	adi_end();
	printf("a post takes %.0f ns alone, %.0f ns among %d unexpected messages: %.2f times "
	       "(medians of %d rounds in turns)\n",
		median(alone, ROUNDS), median(among, ROUNDS), others, median(ratios, ROUNDS),
		ROUNDS);
	return done_ones == 2 * ROUNDS * (2 * POSTS + others) ? 0 : 1;
}
