/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - what the MPI programs of scripts/clients share. A program that finds something wrong
 * says so and ends the job. With the word "quick" it does less; with "blocking" it leaves out
 * collectives that do not block. */
#ifndef CLIENTS_CHECK_H
#define CLIENTS_CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static int rank, ranks;
static int quick, only_blocking;

static inline void expect(int is_so, const char *format, ...)
{
	va_list arguments;

	if (is_so)
		return;
	fprintf(stderr, "rank %d: ", rank);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Bytes that do not repeat. A message is a part of them, which its sender and its number choose. */
#define LARGEST (8u << 20)
#define PLACES  4194301u /* of a message's first byte; a prime */

static unsigned char *pattern;

static inline void pattern_make(void)
{
	unsigned long word = 88172645463325252;

	pattern = malloc(LARGEST + PLACES);
	expect(pattern != NULL, "there is no memory");
	for (size_t at = 0; at < LARGEST + PLACES; at++) {
		word ^= word << 13;
		word ^= word >> 7;
		word ^= word << 17;
		pattern[at] = (unsigned char)word;
	}
}

static inline const unsigned char *message_of(int sender, unsigned number)
{
	return pattern + ((unsigned)sender * 1000003ul + number * 7919ul) % PLACES;
}

static inline void fill(unsigned char *bytes, size_t length, int sender, unsigned number)
{
	memcpy(bytes, message_of(sender, number), length);
}

static inline void check(const unsigned char *bytes, size_t length, int sender, unsigned number)
{
	const unsigned char *right = message_of(sender, number);

	if (memcmp(bytes, right, length) == 0)
		return;
	for (size_t at = 0; at < length; at++)
		expect(bytes[at] == right[at],
			"message %u of rank %d, %zu bytes: byte %zu is wrong", number, sender,
			length, at);
}

static inline void begin(int *count, char ***words)
{
	MPI_Init(count, words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	pattern_make();
	for (int n = 1; n < *count; n++) {
		quick |= strcmp((*words)[n], "quick") == 0;
		only_blocking |= strcmp((*words)[n], "blocking") == 0;
	}
}

static inline void part(const char *name, void (*run)(void))
{
	double from = MPI_Wtime();

	MPI_Barrier(MPI_COMM_WORLD);
	run();
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("    %s: %.1f s\n", name, MPI_Wtime() - from);
	fflush(stdout);
}

static inline int end(void)
{
	free(pattern);
	MPI_Finalize();
	return 0;
}

#endif
