/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adi_ring.c - the abstract device of MPICH 1.0, with a small API of one's own
 * (share/adi/example/D.h): a token goes round a ring of ranks, then neighbours exchange, probe
 * and send synchronously.
 *
 *     cc adi_ring.c $(pkg-config --variable=adidir postern-adi)/device.c
 *         -I$(pkg-config --variable=adidir postern-adi)/example
 *         $(pkg-config --cflags --libs postern-adi) -o adi_ring
 *     postern-run -n 4 ./adi_ring
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "D.h"

#define BYTES 200000

static char sent[BYTES], got[BYTES];

static void expect(int condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "adi_ring: %s\n", what);
	A_ABORT(1);
}

int main(int argc, char **argv)
{
	int rank, size, right, left, token = 0;
	Request out, in;
	Status status;

	A_INIT(&argc, &argv);
	A_mysize(&size);
	A_myrank(&rank);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;

	/* Each rank adds its number. */
	start_receive(&in, left, 1, &token, sizeof(token));
	if (rank > 0)
		finish(&in, &status);
	token += rank;
	start_send(&out, right, 1, MPIR_STANDARD, &token, sizeof(token));
	finish(&out, &status);
	if (rank == 0) {
		finish(&in, &status);
		expect(token == size * (size - 1) / 2, "the token has lost a rank on its way");
	}

	/* A probe tells how long a message is before it is received. */
	memset(sent, rank, sizeof(sent));
	start_send(&out, right, 2, MPIR_SYNCHRONOUS, sent, BYTES - rank % 100);
	A_probe(A_ANY_TAG, A_ANY_SOURCE, 0, &status);
	expect(status.count == BYTES - left % 100, "a probe tells another length");
	start_receive(&in, status.source, status.tag, got, status.count);
	expect(finish(&in, &status) == 0 && got[0] == (char)left, "the message is another one");
	finish(&out, &status);

	if (rank == 0)
		printf("a token has passed %d ranks\n", size);
	A_END();
	return 0;
}
