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

/* A byte at a place of a message that names its sender and itself. */
static inline unsigned char byte_of(size_t at, int sender, unsigned message)
{
	return (unsigned char)(at * 31 + (at >> 8) * 7 + (unsigned)sender * 101 + message * 13);
}

static inline void fill(unsigned char *bytes, size_t length, int sender, unsigned message)
{
	for (size_t at = 0; at < length; at++)
		bytes[at] = byte_of(at, sender, message);
}

static inline void check(const unsigned char *bytes, size_t length, int sender, unsigned message)
{
	for (size_t at = 0; at < length; at++)
		if (bytes[at] != byte_of(at, sender, message))
			expect(0, "message %u of rank %d, %zu bytes: byte %zu is wrong", message,
				sender, length, at);
}

static inline void begin(int *count, char ***words)
{
	MPI_Init(count, words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
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
	MPI_Finalize();
	return 0;
}

#endif
