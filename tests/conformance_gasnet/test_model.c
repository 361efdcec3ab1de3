/* SPDX-License-Identifier: BSD-3-Clause */
/* test_model.c - ranks of GASNet in one process, on a Portals whose orders are chosen, and an
 * oracle that counts every credit that a message takes.
 *
 *     gasnet_model MODULE THREADS [FIRST [COUNT]]     seeds FIRST to FIRST + COUNT - 1
 *
 * MODULE is a library with model_rank.c, of which each rank loads a copy of its own. The oracle
 * sees what the library gives to Portals and takes from it, and is told of each handler's end. It
 * knows the rules of lib/gasnet/state.h and nothing of the code:
 *
 *   G1  unreleased credits at a rank are no more than the share
 *   G2  a reply gives back what its request took; the sum that a rank is told is what was handled
 *       without a reply, up to less than half a share
 *   G3  no queue overflows, no portal lacks an entry, nothing is acknowledged or comes twice
 *   G4  credits are released after the handler
 *   G6  the ranks do not wait for each other
 *   T1  operations in progress fit their queue
 *
 * model_rank.c looks at the bytes (G5) and at handlers in handlers. With some seeds the ranks share
 * memory, and all requests go by rings (R3), which the oracle does not see: then it counts what the
 * ranks say, and G1 holds for that, too.
 *
 * Covers: lib/gasnet/receive.c, lib/gasnet/rings.c, lib/gasnet/send.c, lib/gasnet/start.c,
 * lib/gasnet/transfer.c.
 */
#include "model.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRANSFERS_LEAST 1024u
#define MESSAGE_SEEDS   (4u * ORDERS) /* then so many with rings, and so on */
#define PARTS_MAX       4096u

enum { PORTAL_SHARES = 5, PORTAL_MESSAGES = 7, PORTAL_DATA = 8, PORTAL_TRANSFERS = 9 };

/* Requests of one rank to another one. */
struct pair {
	uint64_t sent;     /* credits that requests took */
	uint64_t answered; /* of these: that replies gave back, when they left */
	uint64_t returned; /* of these: when they were taken */
	uint64_t told;     /* the sum in the requester's memory */
	uint64_t telling;  /* the sum in the last message about it */
	uint64_t replied;  /* credits of requests whose handlers ended with a reply */
	uint64_t owed;     /* and without one */
};

/* A long reply of which one part has been taken. */
struct part {
	unsigned rank, from;
	uint32_t number;
	uint64_t credits;
	bool open;
};

static unsigned rank_count, fiber_count, over_count;
static bool rings; /* the ranks share memory */
static uint64_t share, transfers[RANKS_MAX];
static struct pair pairs[RANKS_MAX][RANKS_MAX]; /* by requester and target */
static struct part parts[PARTS_MAX];

/* --- what the share is: the plan's rule in the test's words */

struct sizes {
	uint64_t queue, blocks, size;
};

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t by_events(struct sizes sizes)
{
	uint64_t kept = sizes.blocks + 64; /* unlinked blocks, and barriers */

	return sizes.queue < kept ? 0 : (sizes.queue - kept) / 3 / (rank_count - 1);
}

static uint64_t by_bytes(struct sizes sizes)
{
	uint64_t usable = sizes.blocks - sizes.blocks / 4 - 1;

	return usable * (sizes.size - 2112) / (rank_count - 1) / 2 / 2112;
}

static uint64_t share_of(struct sizes sizes)
{
	while (by_bytes(sizes) < 4)
		sizes.blocks *= 2;
	while (by_events(sizes) < 4)
		sizes.queue *= 2;
	return least_of(256, least_of(by_events(sizes), by_bytes(sizes)));
}

/* --- the oracle */

static bool is_request(ptl_match_bits_t bits)
{
	return bits >> 62 & 1;
}

static unsigned credits_of(ptl_match_bits_t bits)
{
	return (bits >> 60 & 3) == 2 ? 2 : 1;
}

static void request_seen(const struct seen_put *put)
{
	struct pair *pair = &pairs[put->from][put->to];

	pair->sent += credits_of(put->bits);
	if (pair->sent - pair->returned - pair->told > share)
		fake_fail("rank %u has %zu credits at rank %u, of a share of %zu", put->from,
			(size_t)(pair->sent - pair->returned - pair->told), put->to, (size_t)share);
}

static void sum_seen(const struct seen_put *put)
{
	struct pair *pair = &pairs[put->to][put->from];
	uint64_t sum;

	memcpy(&sum, put->source, sizeof(sum));
	if (put->length != sizeof(sum) || put->offset != put->from * sizeof(sum))
		fake_fail("rank %u tells rank %u a sum in the wrong place", put->from, put->to);
	if (sum < pair->telling || sum > pair->owed)
		fake_fail("rank %u tells rank %u a sum of %zu after %zu, and has handled %zu "
			  "without a reply",
			put->from, put->to, (size_t)sum, (size_t)pair->telling, (size_t)pair->owed);
	pair->telling = sum;
}

void oracle_put(const struct seen_put *put)
{
	if (put->portal == PORTAL_TRANSFERS) {
		if (++transfers[put->from] >= TRANSFERS_LEAST)
			fake_fail("rank %u has too many puts and gets in progress", put->from);
		return;
	}
	if (put->acknowledged)
		fake_fail("rank %u has a message acknowledged", put->from);
	if (rings && (put->portal == PORTAL_SHARES ||
			     (put->portal == PORTAL_MESSAGES && is_request(put->bits))))
		fake_fail("a request of rank %u, or its credits, go by Portals", put->from);
	if (rings)
		return;
	if (put->portal == PORTAL_SHARES)
		sum_seen(put);
	else if (put->portal == PORTAL_MESSAGES && is_request(put->bits))
		request_seen(put);
	else if (put->portal == PORTAL_MESSAGES)
		pairs[put->to][put->from].answered += put->header >> 32;
}

void oracle_arrived(const struct seen_put *put)
{
	if (put->portal == PORTAL_SHARES)
		memcpy(&pairs[put->to][put->from].told, put->source, sizeof(uint64_t));
}

/* The second part gives the credits back. */
static void part_taken(unsigned rank, unsigned from, uint32_t number, uint64_t credits)
{
	struct part *unused = NULL;

	for (struct part *part = parts; part < parts + PARTS_MAX; part++) {
		if (!part->open) {
			unused = part;
		} else if (part->rank == rank && part->from == from && part->number == number) {
			pairs[rank][from].returned += part->credits + credits;
			part->open = false;
			return;
		}
	}
	if (!unused)
		fake_fail("there are more than %u halves of long messages", PARTS_MAX);
	*unused = (struct part){rank, from, number, credits, true};
}

void oracle_event(unsigned rank, const ptl_event_t *event)
{
	unsigned from = event->initiator.rank;
	bool in_parts = (event->match_bits >> 60 & 3) == 2;

	if (event->pt_index == PORTAL_TRANSFERS && event->type != PTL_EVENT_SEND)
		transfers[rank]--;
	if (event->type != PTL_EVENT_PUT || rings)
		return;
	if (event->pt_index == PORTAL_DATA)
		part_taken(rank, from, (uint32_t)event->hdr_data, 0);
	else if (event->pt_index == PORTAL_MESSAGES && in_parts)
		part_taken(rank, from, (uint32_t)event->hdr_data,
			is_request(event->match_bits) ? 0 : event->hdr_data >> 32);
	else if (event->pt_index == PORTAL_MESSAGES && !is_request(event->match_bits))
		pairs[rank][from].returned += event->hdr_data >> 32;
}

void model_sent(unsigned to, unsigned credits)
{
	struct pair *pair = &pairs[fake_rank()][to];

	fake_goes_on();
	if (!rings)
		return;
	pair->sent += credits;
	if (pair->sent - pair->returned - pair->owed > share)
		fake_fail("rank %u has %zu credits at rank %u, of a share of %zu", fake_rank(),
			(size_t)(pair->sent - pair->returned - pair->owed), to, (size_t)share);
}

void model_answered(unsigned from, unsigned credits)
{
	fake_goes_on();
	if (rings)
		pairs[fake_rank()][from].returned += credits;
}

void model_handled(unsigned from, unsigned credits, bool replied)
{
	struct pair *pair = &pairs[from][fake_rank()];

	fake_goes_on();
	if (replied)
		pair->replied += credits;
	else
		pair->owed += credits;
}

bool model_is_over(bool own)
{
	over_count += own;
	return over_count == fiber_count && fake_is_quiet();
}

static void pair_check(unsigned from, unsigned to)
{
	const struct pair *pair = &pairs[from][to];

	if (pair->sent != pair->replied + pair->owed)
		fake_fail("of %zu credits of rank %u at rank %u %zu were handled",
			(size_t)pair->sent, from, to, (size_t)(pair->replied + pair->owed));
	if (rings)
		return;
	if (pair->answered != pair->replied)
		fake_fail("replies of rank %u gave %zu credits back to rank %u instead of %zu", to,
			(size_t)pair->answered, from, (size_t)pair->replied);
	if (pair->owed - pair->told >= share / 2)
		fake_fail("rank %u told rank %u of %zu credits, of %zu", to, from,
			(size_t)pair->told, (size_t)pair->owed);
}

static void end_check(uint64_t blocks)
{
	for (unsigned from = 0; from < rank_count; from++) {
		if (fake_entries(from, PORTAL_MESSAGES) != blocks)
			fake_fail("%u of %zu blocks of rank %u take messages at the end",
				fake_entries(from, PORTAL_MESSAGES), (size_t)blocks, from);
		for (unsigned to = 0; to < rank_count; to++)
			if (from != to)
				pair_check(from, to);
	}
}

/* --- ranks */

/* Each call gives a copy with data of its own. */
static model_rank_run *module_load(const char *path)
{
	static char bytes[1 << 16];
	char name[64];
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("rank", MFD_CLOEXEC);
	model_rank_run *run;
	ssize_t got = 0;
	void *module;

	while (from >= 0 && to >= 0 && (got = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)got) != got)
			fake_fail("there is no memory for a copy of %s", path);
	if (from < 0 || to < 0 || got < 0)
		fake_fail("%s cannot be read", path);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", to);
	module = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		fake_fail("%s", dlerror());
	run = (model_rank_run *)dlsym(module, "model_rank");
	if (!run)
		fake_fail("%s", dlerror());
	close(from); /* the other one is the copy's name, and stays */
	return run;
}

static void number_set(const char *name, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%zu", (size_t)number);
	setenv(name, text, 1);
}

static void seed_run(const char *path, unsigned threads, uint64_t seed)
{
	/* Queues are the bound of the second and third, blocks that of the others. */
	static const struct sizes some[] = {
		{128, 4, 8448}, {128, 32, 16384}, {256, 64, 16384}, {2048, 8, 32768}};
	struct sizes sizes = some[seed / ORDERS % 4];

	rank_count = 2 + (unsigned)(seed / 5 % 4);
	fiber_count = rank_count * threads;
	fake_begin(rank_count, (enum order)(seed % ORDERS), seed);
	share = share_of(sizes);
	number_set("GASNET_AM_EVENT_QUEUE_LENGTH", sizes.queue);
	number_set("GASNET_AM_NUM_ENTRIES", sizes.blocks);
	number_set("GASNET_AM_BUFFER_SIZE", sizes.size);
	number_set("GASNET_EXTENDED_EVENT_QUEUE_LENGTH", TRANSFERS_LEAST);
	number_set("GASNET_MAX_SEGSIZE", UINT64_C(1) << 30);
	rings = (seed - 1) / MESSAGE_SEEDS % 2 == 1;
	number_set("GASNET_SUPERNODE_MAXSIZE", rings ? 2 : 1);
	for (unsigned rank = 0; rank < rank_count; rank++) {
		model_rank_run *run = module_load(path);

		for (unsigned thread = 0; thread < threads; thread++)
			fake_fiber(rank, run, thread);
	}
	fake_run();
	while (by_bytes(sizes) < 4)
		sizes.blocks *= 2;
	end_check(sizes.blocks);
	_exit(0); /* an ordinary end would call gasnet_exit() in each copy */
}

/* Each seed has a process of its own. */
static bool seed_passes(const char *path, unsigned threads, uint64_t seed)
{
	int status = 1;
	pid_t child = fork();

	if (child == 0)
		seed_run(path, threads, seed);
	if (child < 0 || waitpid(child, &status, 0) != child)
		fake_fail("a process cannot be made");
	if (status != 0)
		fprintf(stderr, "failed: seed %zu; again: gasnet_model %s %u %zu 1\n", (size_t)seed,
			path, threads, (size_t)seed);
	return status == 0;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	uint64_t count = argc > 4 ? strtoull(argv[4], NULL, 10) : MESSAGE_SEEDS * 3 / 2;
	unsigned failures = 0;

	if (argc < 3 || argc > 5) {
		fprintf(stderr, "usage: gasnet_model MODULE THREADS [FIRST [COUNT]]\n");
		return 2;
	}
	printf("seeds %zu to %zu\n", (size_t)first, (size_t)(first + count - 1));
	fflush(stdout);
	for (uint64_t seed = first; seed < first + count; seed++)
		failures += !seed_passes(argv[1], (unsigned)atoi(argv[2]), seed);
	return failures > 0;
}
