/* SPDX-License-Identifier: BSD-3-Clause */
/* messages_gasnet.c - GASNet between two ranks in this process, by Portals and not by shared
 * memory, for scripts/instructions to count its instructions.
 *
 *     messages_gasnet gasnet N        N short active messages, each the answer to the one before,
 *                                     and for each a poll that finds nothing
 *     messages_gasnet gasnetreply N   the same, half of them replies of handlers
 *     messages_gasnet gasnetwindow N  N such messages one way, 64 between two polls
 *     messages_gasnet gasnetlook N    N polls that find nothing
 *     messages_gasnet gasnetput N     N blocking puts of 8 bytes
 *
 * The ranks have a copy of the library each, two modules beside the program. All in one thread once
 * they have met (PTL_PROGRESS=inline), over a loop. Time goes a fixed step with every look at the
 * clock, as in puts.c.
 */
#include "ranks_gasnet.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <portals4/pmi.h>

#define CLOCK_STEP 50
#define RANKS      2
#define WINDOW     64
#define KEYS_MAX   8
#define TEXT_ROOM  1024

uint64_t __wrap_glue_now(void *context);

uint64_t __wrap_glue_now(void *context)
{
	static uint64_t time = 1000000000;

	(void)context;
	return __atomic_add_fetch(&time, CLOCK_STEP, __ATOMIC_RELAXED);
}

static _Noreturn void fail(const char *why)
{
	fprintf(stderr, "messages_gasnet: %s\n", why);
	exit(EXIT_FAILURE);
}

/* --- the job */

static __thread int own_rank;
static pthread_barrier_t meeting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char key[TEXT_ROOM], value[TEXT_ROOM];
} keys[KEYS_MAX];
static unsigned key_count;

int bench_ni_init(ptl_interface_t interface, unsigned options, ptl_pid_t pid,
	const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *handle)
{
	(void)interface;
	return PtlNIInit((ptl_interface_t)own_rank, options, pid, desired, actual, handle);
}

int PMI_Init(int *spawned)
{
	*spawned = 0;
	return PMI_SUCCESS;
}

int PMI_Finalize(void)
{
	return PMI_SUCCESS;
}

int PMI_Abort(int exit_code, const char text[])
{
	(void)text;
	exit(exit_code);
}

int PMI_Get_rank(int *rank)
{
	*rank = own_rank;
	return PMI_SUCCESS;
}

int PMI_Get_size(int *size)
{
	*size = RANKS;
	return PMI_SUCCESS;
}

int PMI_KVS_Get_my_name(char name[], int length)
{
	return snprintf(name, (size_t)length, "job") > 0 ? PMI_SUCCESS : PMI_FAIL;
}

int PMI_KVS_Put(const char name[], const char key[], const char value[])
{
	(void)name;
	pthread_mutex_lock(&lock);
	if (key_count == KEYS_MAX)
		fail("there are too many keys");
	snprintf(keys[key_count].key, TEXT_ROOM, "%s", key);
	snprintf(keys[key_count].value, TEXT_ROOM, "%s", value);
	key_count++;
	pthread_mutex_unlock(&lock);
	return PMI_SUCCESS;
}

int PMI_KVS_Commit(const char name[])
{
	(void)name;
	return PMI_SUCCESS;
}

int PMI_KVS_Get(const char name[], const char key[], char value[], int length)
{
	(void)name;
	for (unsigned i = 0; i < key_count; i++)
		if (strcmp(keys[i].key, key) == 0)
			return snprintf(value, (size_t)length, "%s", keys[i].value) > 0
				       ? PMI_SUCCESS
				       : PMI_FAIL;
	return PMI_FAIL;
}

int PMI_Barrier(void)
{
	pthread_barrier_wait(&meeting);
	return PMI_SUCCESS;
}

static const struct bench_rank *ranks[RANKS];

static const struct bench_rank *rank_load(int rank)
{
	char path[PATH_MAX] = "";
	const struct bench_rank *loaded;
	void *module;
	char *slash;

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		fail("it does not find itself");
	slash = strrchr(path, '/');
	snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "libbench-gasnet-%d.so",
		rank);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	loaded = module ? dlsym(module, BENCH_RANK) : NULL;
	if (!loaded)
		fail(dlerror());
	return loaded;
}

static void *rank_attach(void *argument)
{
	own_rank = (int)(intptr_t)argument;
	ranks[own_rank]->attach();
	return NULL;
}

static void ranks_attach(void)
{
	pthread_t threads[RANKS];

	pthread_barrier_init(&meeting, NULL, RANKS);
	for (int i = 0; i < RANKS; i++)
		ranks[i] = rank_load(i);
	for (int i = 0; i < RANKS; i++)
		if (pthread_create(&threads[i], NULL, rank_attach, (void *)(intptr_t)i) != 0)
			fail("there is no thread");
	for (int i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
}

/* --- messages */

static void message_await(const struct bench_rank *rank, unsigned long wanted)
{
	while (rank->came() < wanted)
		rank->poll();
}

/* A rank that waits has looked in vain before a message comes. */
static void messages_answered(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		ranks[1 - i % 2]->poll();
		ranks[i % 2]->request(0);
		message_await(ranks[1 - i % 2], i / 2 + 1);
	}
}

static void messages_replied(unsigned long count)
{
	for (unsigned long i = 0; i < count / 2; i++) {
		ranks[1]->poll();
		ranks[0]->request(1);
		ranks[0]->poll();
		message_await(ranks[1], i + 1);
		message_await(ranks[0], i + 1);
	}
}

static void messages_windows(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		ranks[0]->request(0);
		if (i % WINDOW == WINDOW - 1)
			message_await(ranks[1], i + 1);
	}
}

static void looks(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		ranks[0]->poll();
}

static void puts_acknowledged(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		ranks[0]->put();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(unsigned long count);
	} ways[] = {{"gasnet", messages_answered}, {"gasnetreply", messages_replied},
		{"gasnetwindow", messages_windows}, {"gasnetlook", looks},
		{"gasnetput", puts_acknowledged}};
	const unsigned way_count = sizeof(ways) / sizeof(ways[0]);
	unsigned way = 0;

	while (argc == 3 && way < way_count && strcmp(argv[1], ways[way].name) != 0)
		way++;
	if (argc != 3 || way == way_count) {
		fprintf(stderr, "Usage: messages_gasnet "
				"gasnet|gasnetreply|gasnetwindow|gasnetlook|gasnetput N\n");
		return 2;
	}
	setenv("PTL_IFACE_NAME", "loop:gasnet;loop:gasnet", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	setenv("GASNET_SUPERNODE_MAXSIZE", "1", 1);
	setenv("GASNET_MAX_SEGSIZE", "1M", 1);
	ranks_attach();
	ways[way].run(strtoul(argv[2], NULL, 10));
	_Exit(EXIT_SUCCESS);
}
