/* SPDX-License-Identifier: BSD-3-Clause */
/* orders.c - orders LETTERS: a job of Postern and Open MPI in one process, which join (j) and leave
 * (l), and initialise (i) and finalise (f), in this order. Between join and leave it passes a
 * barrier, and between the others a sum. */
#include <stdio.h>
#include <string.h>

#include <mpi.h>

#include <portals.h>
#include <postern.h>

static ptl_handle_ni_t ni;
static unsigned rank, size;
static int joined, begun;

/* Both know the same of this process, and work. */
static int look(void)
{
	int sum = 0, one = 1, number = 0, count = 0;

	if (joined && postern_job_barrier() != PTL_OK)
		return 0;
	if (begun && (MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != 0 ||
			     MPI_Comm_rank(MPI_COMM_WORLD, &number) != 0 ||
			     MPI_Comm_size(MPI_COMM_WORLD, &count) != 0 || sum != count))
		return 0;
	return !(joined && begun) || ((unsigned)number == rank && (unsigned)count == size);
}

static int step(char letter)
{
	int interfaces;

	switch (letter) {
	case 'j':
		joined = PtlInit(&interfaces) == PTL_OK &&
			 PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK &&
			 postern_job_join(ni, &rank, &size) == PTL_OK;
		return joined;
	case 'l':
		joined = 0;
		return postern_job_leave() == PTL_OK;
	case 'i':
		begun = MPI_Init(NULL, NULL) == MPI_SUCCESS;
		return begun;
	case 'f':
		begun = 0;
		return MPI_Finalize() == MPI_SUCCESS;
	default:
		return 0;
	}
}

int main(int count, char **words)
{
	if (count != 2)
		return 2;
	for (const char *letter = words[1]; *letter; letter++)
		if (!step(*letter) || !look()) {
			fprintf(stderr, "%s: %c went wrong\n", words[1], *letter);
			return 1;
		}
	if (rank == 0)
		printf("%s went well on %u ranks\n", words[1], size);
	PtlFini();
	return 0;
}
