/* SPDX-License-Identifier: BSD-3-Clause */
/* crowd.c - many processes on one NIC, which all send to all: clients crowd SIZE ROUNDS. Each has
 * the endpoint id of its number. See clients.h. */
#include "clients.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LONGEST 100000

struct member {
	unsigned number, size, rounds;
	mx_endpoint_t endpoint;
	mx_endpoint_addr_t *peers;
	mx_request_t *sends, *receives;
	char *sent, *got; /* LONGEST bytes for each peer */
};

static uint32_t length_of(unsigned from, unsigned to, unsigned round)
{
	static const uint32_t lengths[] = {0, 1, 100, 4096, 32768, 32769, LONGEST};

	return lengths[(from + 3 * to + 5 * round) % COUNT(lengths)];
}

static uint32_t seed_of(unsigned from, unsigned to, unsigned round)
{
	return from << 20 | to << 10 | round;
}

static uint64_t match_of(unsigned from, unsigned round)
{
	return (uint64_t)round << 32 | from;
}

static void receives_post(struct member *member, unsigned round)
{
	for (unsigned i = 0; i < member->size; i++)
		member->receives[i] = post_receive(member->endpoint, member->got + i * LONGEST,
			LONGEST, match_of(i, round), MX_MATCH_MASK_NONE, NULL);
}

static void round_run(struct member *member, unsigned round)
{
	const unsigned self = member->number;
	bool early = (self + round) % 2 == 0;

	if (early)
		receives_post(member, round);
	for (unsigned n = 0; n < member->size; n++) {
		unsigned i = (self + n) % member->size;
		uint32_t length = length_of(self, i, round);

		pattern_fill(member->sent + i * LONGEST, length, seed_of(self, i, round));
		member->sends[i] = post_send(member->endpoint, member->peers[i],
			member->sent + i * LONGEST, length, match_of(self, round), NULL);
	}
	if (!early)
		receives_post(member, round);
	for (unsigned i = 0; i < member->size; i++) {
		mx_status_t status = request_wait(member->endpoint, &member->receives[i]);

		check(status.xfer_length == length_of(i, self, round));
		check(status.msg_length == status.xfer_length);
		pattern_check(
			member->got + i * LONGEST, status.xfer_length, seed_of(i, self, round));
	}
	for (unsigned i = 0; i < member->size; i++)
		request_wait(member->endpoint, &member->sends[i]);
}

/* done: gets a byte when this one needs the others no more; go: ends when none needs this one. */
static void member_run(struct member *member, int done, int go)
{
	const unsigned size = member->size;
	mx_status_t status;
	uint64_t nic_id;
	uint32_t result;
	char byte = 0;

	member->peers = calloc(size, sizeof(*member->peers));
	member->sends = calloc(size, sizeof(mx_request_t));
	member->receives = calloc(size, sizeof(mx_request_t));
	member->sent = malloc((size_t)size * LONGEST);
	member->got = malloc((size_t)size * LONGEST);
	check(member->peers && member->sends && member->receives && member->sent && member->got);
	check_ok(mx_init());
	member->endpoint = endpoint_open(member->number, NULL, 0);
	nic_id = nic_id_own(member->endpoint);
	for (unsigned i = 0; i < size; i++)
		member->peers[i] = peer_connect(member->endpoint, nic_id, i);
	for (unsigned round = 0; round < member->rounds; round++)
		round_run(member, round);
	/* Nothing came twice, or to another. */
	check_ok(mx_iprobe(member->endpoint, 0, 0, &status, &result));
	check(result == 0);
	check(write(done, &byte, 1) == 1);
	check(read(go, &byte, 1) == 0);
	check_ok(mx_finalize());
}

void crowd_run(unsigned size, unsigned rounds)
{
	int done[2], go[2], status;
	char byte;

	check(pipe(done) == 0 && pipe(go) == 0);
	for (unsigned i = 0; i < size; i++) {
		struct member member = {.number = i, .size = size, .rounds = rounds};
		pid_t child = fork();

		check(child >= 0);
		if (child != 0)
			continue;
		check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		close(go[1]);
		close(done[0]);
		member_run(&member, done[1], go[0]);
		_exit(0);
	}
	close(done[1]);
	for (unsigned i = 0; i < size; i++)
		check(read(done[0], &byte, 1) == 1);
	close(go[1]);
	for (unsigned i = 0; i < size; i++)
		check(wait(&status) > 0 && status == 0);
}
