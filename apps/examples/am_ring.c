/* SPDX-License-Identifier: BSD-3-Clause */
/* am_ring.c - GASNet: a token goes round a ring of ranks by active messages, and each rank adds
 * its number to a sum that goes with it.
 *
 *     cc am_ring.c -o am_ring $(pkg-config --cflags --libs gasnet-postern-seq)
 *     postern-run -n 4 am_ring [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>

#include <gasnet.h>

enum { TOKEN = 128, ANSWER };

static int round_now, sum, answers; /* changed by handlers, which run in the program's own calls */

/* A handler computes, and may reply; it sends nothing else. */
static void token_handler(
	gasnet_token_t token, gasnet_handlerarg_t round, gasnet_handlerarg_t so_far)
{
	round_now = (int)round;
	sum = (int)so_far;
	gasnet_AMReplyShort1(token, ANSWER, round);
}

static void answer_handler(gasnet_token_t token, gasnet_handlerarg_t round)
{
	gasnet_node_t from;

	(void)round;
	if (gasnet_AMGetMsgSource(token, &from) == GASNET_OK &&
		from == (gasnet_mynode() + 1) % gasnet_nodes())
		answers++;
}

static void check(int code, const char *call)
{
	if (code == GASNET_OK)
		return;
	fprintf(stderr, "%s: %s\n", call, gasnet_ErrorDesc(code));
	gasnet_exit(1);
}

static void pass_on(int round, int so_far)
{
	check(gasnet_AMRequestShort2((gasnet_mynode() + 1) % gasnet_nodes(), TOKEN, round, so_far),
		"gasnet_AMRequestShort2");
}

int main(int argc, char **argv)
{
	gasnet_handlerentry_t handlers[] = {
		{TOKEN, (void (*)())token_handler}, {ANSWER, (void (*)())answer_handler}};
	int rounds, rank, expected;

	check(gasnet_init(&argc, &argv), "gasnet_init");
	check(gasnet_attach(handlers, 2, 0, 0), "gasnet_attach");
	rounds = argc > 1 ? atoi(argv[1]) : 1000;
	if (rounds < 1) {
		fprintf(stderr, "\"%s\" is no number of rounds\nusage: am_ring [ROUNDS]\n",
			argv[1]);
		gasnet_exit(2);
	}
	rank = (int)gasnet_mynode();
	expected = rounds * (int)(gasnet_nodes() * (gasnet_nodes() - 1) / 2);
	for (int round = 1; round <= rounds; round++) {
		if (rank == 0)
			pass_on(round, sum);
		GASNET_BLOCKUNTIL(round_now == round);
		if (rank != 0)
			pass_on(round, sum + rank);
	}
	GASNET_BLOCKUNTIL(answers == rounds);
	check(gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier");
	if (rank == 0)
		printf("the token has passed %u ranks %d times: %d, %s\n", gasnet_nodes(), rounds,
			sum, sum == expected ? "as expected" : "which is wrong");
	gasnet_exit(rank == 0 && sum != expected);
}
