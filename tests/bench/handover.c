/* SPDX-License-Identifier: BSD-3-Clause */
/* handover.c - what it takes to hand a cache line from one CPU to another: what figures of two
 * processes of a machine depend on more than on anything else.
 *
 *     bench-handover CPU CPU
 *
 * Two threads on these CPUs write a word in turns, in rounds. Prints the nanoseconds that one
 * hand-over takes in the fastest of them, because other programs disturb the rest.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_pause.h>

#define ROUNDS 40u
#define TURNS  250u /* of each thread, in a round: a short one is disturbed by nothing */

static _Alignas(128) _Atomic uint32_t word;

static void stay_on(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(strtoul(cpu, NULL, 10), &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0) {
		perror(cpu);
		exit(1);
	}
}

/* Waits for the other's count, and makes it the next one. */
static void turn(uint32_t count)
{
	while (atomic_load_explicit(&word, memory_order_acquire) != count)
		rte_pause();
	atomic_store_explicit(&word, count + 1, memory_order_release);
}

static void *answer(void *cpu)
{
	stay_on(cpu);
	for (uint32_t n = 0; n < ROUNDS * TURNS; n++)
		turn(2 * n + 1);
	return NULL;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
	double least = 1e9;
	pthread_t other;

	if (argc != 3) {
		fprintf(stderr, "usage: bench-handover CPU CPU\n");
		return 2;
	}
	stay_on(argv[1]);
	if (pthread_create(&other, NULL, answer, argv[2]) != 0)
		return 1;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		double start = now(), took;

		for (uint32_t n = round * TURNS; n < (round + 1) * TURNS; n++)
			turn(2 * n);
		took = (now() - start) / (2 * TURNS);
		if (took < least)
			least = took;
	}
	pthread_join(other, NULL);
	printf("%.0f\n", least);
	return 0;
}
