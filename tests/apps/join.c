/* SPDX-License-Identifier: BSD-3-Clause */
/* join.c - join HOST:PORT SIZE, as rank 0's program of postern-run --meet HOST:PORT: all ranks of
 * the job, one thread each. They join with the library's own code, without an interface, and each
 * wants the cards of all. It prints how long that took.
 *
 * join: one rank, which any launcher has started. */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <job/job.h>

#define STACK 262144u /* bytes */

static struct addrinfo *place;
static uint32_t size;

static _Noreturn void fail(uint32_t rank, const char *why)
{
	fprintf(stderr, "join: rank %u: %s\n", rank, why);
	_exit(1);
}

static void place_find(char *text)
{
	char *port = strrchr(text, ':');

	if (!port)
		fail(0, "no place");
	*port = '\0';
	if (getaddrinfo(text, port + 1, &(struct addrinfo){.ai_socktype = SOCK_STREAM}, &place) !=
		0)
		fail(0, "no place");
}

/* As postern-run --meet does for its program. */
static int launcher_connect(uint32_t rank)
{
	struct pmi_lines lines = {0};
	const char *line;
	int end;

	if (rank == 0)
		return atoi(getenv("PMI_FD"));
	end = socket(place->ai_family, SOCK_STREAM, 0);
	if (end < 0 || connect(end, place->ai_addr, place->ai_addrlen) != 0 ||
		!pmi_write(end, "cmd=meet rank=%u size=%u\n", rank, size))
		fail(rank, strerror(errno));
	while (!(line = pmi_line(&lines)))
		if (!pmi_read(&lines, end))
			fail(rank, "the launcher has closed");
	if (strcmp(line, "cmd=met") != 0)
		fail(rank, line);
	return end;
}

static struct card card_of(uint32_t rank)
{
	return (struct card){
		.process = {.nid = 7, .pid = 1000 + rank},
		.network = CARD_ETHERNET,
		.address = {2, 0, 0, 0, (uint8_t)(rank >> 8), (uint8_t)rank},
	};
}

static void rank_meet(struct job *job)
{
	struct card own = card_of(job->rank);

	if (!job_meet(job, &own))
		fail(job->rank, job->why);
}

static void rank_read(struct job *job)
{
	struct card own, card;

	for (uint32_t rank = 0; rank < job->size; rank++) {
		own = card_of(rank);
		if (!job_card(job, rank, &card))
			fail(job->rank, job->why);
		if (card.process.pid != own.process.pid ||
			memcmp(card.address, own.address, sizeof(own.address)) != 0)
			fail(job->rank, "the card of another rank");
	}
}

static void rank_leave(struct job *job)
{
	if (!job_barrier(job) || !job_leave(job))
		fail(job->rank, job->why);
}

static void *rank_run(void *argument)
{
	struct job job = {.rank = (uint32_t)(uintptr_t)argument, .size = size};

	job.kind = LAUNCHER_PMI;
	job.socket = launcher_connect(job.rank);
	rank_meet(&job);
	rank_read(&job);
	rank_leave(&job);
	return NULL;
}

static double seconds_since(const struct timespec *begin)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	return (double)(end.tv_sec - begin->tv_sec) + (double)(end.tv_nsec - begin->tv_nsec) / 1e9;
}

/* The last rank to begin waits for nobody. */
static int rank_alone(void)
{
	struct job job = {0};
	struct timespec begin;
	double found, met;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!job_find(&job, false))
		fail(job.rank, job.why);
	found = seconds_since(&begin);
	rank_meet(&job);
	met = seconds_since(&begin);
	rank_read(&job);
	printf("rank %u of %u: has its launcher after %.1f ms, has met all after %.1f, has all "
	       "cards after %.1f\n",
		job.rank, job.size, 1e3 * found, 1e3 * met, 1e3 * seconds_since(&begin));
	rank_leave(&job);
	return 0;
}

static void files_raise(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int main(int count, char **words)
{
	struct timespec begin;
	pthread_attr_t attributes;
	pthread_t *threads;

	if (count == 1)
		return rank_alone();
	if (count != 3)
		fail(0, "join [HOST:PORT SIZE]");
	place_find(words[1]);
	size = (uint32_t)atoi(words[2]);
	threads = calloc(size, sizeof(*threads));
	files_raise();
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint32_t rank = 0; rank < size; rank++)
		if (pthread_create(
			    &threads[rank], &attributes, rank_run, (void *)(uintptr_t)rank) != 0)
			fail(rank, "no thread");
	for (uint32_t rank = 0; rank < size; rank++)
		pthread_join(threads[rank], NULL);
	printf("%u ranks have all cards after %.2f s\n", size, seconds_since(&begin));
	freeaddrinfo(place);
	free(threads);
	return 0;
}
