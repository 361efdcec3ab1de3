/* SPDX-License-Identifier: BSD-3-Clause */
/* ends_adi.c - ends_adi kill: a job of the abstract device whose rank 1 is killed while all others
 * are in A_END. ends_adi late: its rank 1 comes there two seconds after them. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "D.h"

int main(int count, char **words)
{
	int rank;

	A_INIT(&count, &words);
	A_myrank(&rank);
	if (rank == 1 && strcmp(words[1], "kill") == 0) {
		usleep(300000);
		raise(SIGKILL);
	}
	if (rank == 1)
		sleep(2);
	A_END();
	return 0;
}
