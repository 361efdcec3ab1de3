/* SPDX-License-Identifier: BSD-3-Clause */
/* latency.c - how long a message of 8 bytes takes from one rank to the other and back, half of it,
 * in us: as osu_latency measures it. */
#include <stdio.h>

#include <mpi.h>

#define BYTES   8
#define WARM_UP 1000
#define TIMES   20000

int main(int count, char **words)
{
	char from[BYTES] = {0}, to[BYTES];
	double begun = 0;
	int rank;

	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int n = 0; n < WARM_UP + TIMES; n++) {
		if (n == WARM_UP) {
			MPI_Barrier(MPI_COMM_WORLD);
			begun = MPI_Wtime();
		}
		if (rank == 0)
			MPI_Send(from, BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(to, BYTES, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(from, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%.3f\n", (MPI_Wtime() - begun) / TIMES / 2 * 1e6);
	MPI_Finalize();
	return 0;
}
