/* SPDX-License-Identifier: BSD-3-Clause */
/* misuse.c - what GASNET_DEBUG finds: test_exit.py says which it shall be. With "right" there is
 * nothing to find, and the program ends with code 0. */
#include <string.h>

#include "ranks.h"

enum { POLLS = 128, REQUESTS, PUTS, WAITS, BARS, SYNCS, HOLDS, REPLIES_HOLDING, IS_RIGHT, ANSWER };

uint8_t *segments[RANKS_MAX];
unsigned rank, ranks;
static gasnet_hsl_t hsl = GASNET_HSL_INITIALIZER;

static void polls(gasnet_token_t token)
{
	(void)token;
	(void)gasnet_AMPoll();
}

static void requests(gasnet_token_t token)
{
	(void)token;
	(void)gasnet_AMRequestShort0(0, ANSWER);
}

static void puts_it(gasnet_token_t token)
{
	(void)token;
	gasnet_put_val(0, segments[0], 1, 8);
}

static void waits(gasnet_token_t token)
{
	unsigned tries = 0;

	(void)token;
	GASNET_BLOCKUNTIL(tries++ > 0);
}

static void bars(gasnet_token_t token)
{
	(void)token;
	gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
}

static void syncs(gasnet_token_t token)
{
	(void)token;
	gasnet_wait_syncnbi_all();
}

static void holds(gasnet_token_t token)
{
	(void)token;
	gasnet_hsl_lock(&hsl);
}

static void replies_holding(gasnet_token_t token)
{
	gasnet_hsl_lock(&hsl);
	(void)gasnet_AMReplyShort0(token, ANSWER);
}

static void is_right(gasnet_token_t token)
{
	gasnet_hsl_lock(&hsl);
	gasnet_hsl_unlock(&hsl);
	CHECK(gasnet_AMReplyShort0(token, ANSWER) == GASNET_OK);
}

static void answer(gasnet_token_t token)
{
	(void)token;
}

/* memset to the other rank is a message, and has a handle. */
static gasnet_handle_t handle_get(void)
{
	gasnet_handle_t handle = gasnet_memset_nb(1 - rank, segments[1 - rank], 0, 8);

	CHECK(handle != GASNET_INVALID_HANDLE);
	return handle;
}

static void handle_twice(void)
{
	gasnet_handle_t handle = handle_get();

	gasnet_wait_syncnb(handle);
	gasnet_wait_syncnb(handle);
}

static void *handle_of_other(void *handle)
{
	gasnet_wait_syncnb(handle);
	return NULL;
}

static void handle_other(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, handle_of_other, handle_get()) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

static void lock_request(void)
{
	gasnet_hsl_lock(&hsl);
	(void)gasnet_AMRequestShort0(0, ANSWER);
}

static void lock_try_put(void)
{
	CHECK(gasnet_hsl_trylock(&hsl) == GASNET_OK);
	gasnet_put_val(0, segments[0], 1, 8);
}

static void unlock(void)
{
	gasnet_hsl_unlock(&hsl);
}

static void all_right(void)
{
	gasnet_handle_t handles[2] = {handle_get(), handle_get()};

	gasnet_hsl_lock(&hsl);
	gasnet_hsl_unlock(&hsl);
	gasnet_wait_syncnb_all(handles, 2);
	handles[0] = handle_get();
	while (gasnet_try_syncnb_some(handles, 2) != GASNET_OK)
		continue;
	gasnet_begin_nbi_accessregion();
	gasnet_memset_nbi(1 - rank, segments[1 - rank], 0, 8);
	gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
	CHECK(gasnet_wait_syncnb_valget(gasnet_get_nb_val(1 - rank, segments[1 - rank], 8)) == 0);
	for (unsigned to = 0; to < ranks; to++)
		CHECK(gasnet_AMRequestShort0(to, IS_RIGHT) == GASNET_OK);
	CHECK(strstr(GASNET_CONFIG_STRING, ",debug,"));
}

static const struct {
	const char *name;
	gasnet_handler_t handler; /* a request to the other rank, or: */
	void (*run)(void);
} ways[] = {
	{"polls", POLLS, NULL},
	{"requests", REQUESTS, NULL},
	{"puts", PUTS, NULL},
	{"waits", WAITS, NULL},
	{"bars", BARS, NULL},
	{"syncs", SYNCS, NULL},
	{"holds", HOLDS, NULL},
	{"replies-holding", REPLIES_HOLDING, NULL},
	{"handle-twice", 0, handle_twice},
	{"handle-other", 0, handle_other},
	{"lock-request", 0, lock_request},
	{"lock-try-put", 0, lock_try_put},
	{"unlock", 0, unlock},
	{"right", 0, all_right},
};

static void attach(void)
{
	gasnet_handlerentry_t table[] = {
		{POLLS, (void (*)())polls},
		{REQUESTS, (void (*)())requests},
		{PUTS, (void (*)())puts_it},
		{WAITS, (void (*)())waits},
		{BARS, (void (*)())bars},
		{SYNCS, (void (*)())syncs},
		{HOLDS, (void (*)())holds},
		{REPLIES_HOLDING, (void (*)())replies_holding},
		{IS_RIGHT, (void (*)())is_right},
		{ANSWER, (void (*)())answer},
	};
	gasnet_seginfo_t info[RANKS_MAX];

	CHECK(gasnet_attach(table, sizeof(table) / sizeof(table[0]), GASNET_PAGESIZE, 0) ==
		GASNET_OK);
	rank = gasnet_mynode();
	ranks = gasnet_nodes();
	CHECK(ranks == 2 && gasnet_getSegmentInfo(info, 2) == GASNET_OK);
	segments[0] = info[0].addr;
	segments[1] = info[1].addr;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2 && gasnet_init(NULL, NULL) == GASNET_OK);
	attach();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(argv[1], ways[i].name) != 0)
			continue;
		if (ways[i].run)
			ways[i].run();
		else if (rank == 0)
			CHECK(gasnet_AMRequestShort0(1, ways[i].handler) == GASNET_OK);
		else /* until that handler runs */
			GASNET_BLOCKUNTIL(false);
	}
	barrier_pass();
	gasnet_exit(0);
}
