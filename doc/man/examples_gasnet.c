/* SPDX-License-Identifier: BSD-3-Clause */
/* examples_gasnet.c - the examples of the pages of GASNet, as examples.c has those of Portals 3.2:
 * run one after the other by each rank of a job. manual.py shows the body of a function on each
 * page that the comment before it names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gasnet.h>

#define SEGMENT ((uintptr_t)1 << 20)

enum { HELLO = 128, HELLO_BACK, WORDS, WORDS_BACK, IMAGE, IMAGE_BACK };

static volatile int answers;
static gasnet_seginfo_t *segments;
static gasnet_node_t next;

/* Example: gasnet_AMReplyShort gasnet_AMGetMsgSource */
static void hello(gasnet_token_t token, gasnet_handlerarg_t number)
{
	gasnet_node_t source;

	gasnet_AMGetMsgSource(token, &source);
	printf("rank %u says %d\n", source, number);
	if (number > 0)
		gasnet_AMReplyShort1(token, HELLO_BACK, number + 1);
	else
		gasnet_AMReplyShort(token, HELLO_BACK, 1, number + 1); /* the same */
}

static void hello_back(gasnet_token_t token, gasnet_handlerarg_t number)
{
	(void)token;
	answers += number == 43;
}

/* Example: gasnet_AMReplyMedium */
static void words(gasnet_token_t token, void *bytes, size_t nbytes)
{
	((char *)bytes)[0] = 'W';
	gasnet_AMReplyMedium0(token, WORDS_BACK, bytes, nbytes);
	/* The same: gasnet_AMReplyMedium(token, WORDS_BACK, bytes, nbytes, 0) */
}

static void words_back(gasnet_token_t token, void *bytes, size_t nbytes)
{
	(void)token;
	answers += nbytes == 6 && strcmp(bytes, "World") == 0;
}

/* Example: gasnet_AMReplyLong */
static void image(gasnet_token_t token, void *bytes, size_t nbytes, gasnet_handlerarg_t offset)
{
	gasnet_node_t source;

	gasnet_AMGetMsgSource(token, &source);
	gasnet_AMReplyLong0(
		token, IMAGE_BACK, bytes, nbytes, (char *)segments[source].addr + offset);
	/* The same: gasnet_AMReplyLong(token, IMAGE_BACK, bytes, nbytes, address, 0) */
}

static void image_back(gasnet_token_t token, void *bytes, size_t nbytes)
{
	(void)token;
	(void)bytes;
	answers += nbytes == 5000;
}

/* Example: gasnet_init gasnet_attach gasnet_mynode gasnet_nodes gasnet_getMaxLocalSegmentSize
 * gasnet_getMaxGlobalSegmentSize gasnet_ErrorName gasnet_ErrorDesc */
static void start(int argc, char **argv)
{
	gasnet_handlerentry_t handlers[] = {
		{HELLO, (void (*)())hello},
		{HELLO_BACK, (void (*)())hello_back},
		{WORDS, (void (*)())words},
		{WORDS_BACK, (void (*)())words_back},
		{IMAGE, (void (*)())image},
		{IMAGE_BACK, (void (*)())image_back},
	};
	int code = gasnet_init(&argc, &argv);

	if (code == GASNET_OK && gasnet_getMaxGlobalSegmentSize() < SEGMENT)
		printf("each rank has %zu bytes, this one %zu\n",
			(size_t)gasnet_getMaxGlobalSegmentSize(),
			(size_t)gasnet_getMaxLocalSegmentSize());
	if (code == GASNET_OK)
		code = gasnet_attach(handlers, sizeof(handlers) / sizeof(handlers[0]), SEGMENT, 0);
	if (code != GASNET_OK) {
		fprintf(stderr, "%s: %s\n", gasnet_ErrorName(code), gasnet_ErrorDesc(code));
		exit(1);
	}
	next = (gasnet_mynode() + 1) % gasnet_nodes();
}

/* Example: gasnet_getSegmentInfo gasnet_getNodeInfo gasnet_getenv gasnet_exit */
static void look_around(void)
{
	gasnet_node_t ranks = gasnet_nodes();
	gasnet_nodeinfo_t *hosts = malloc(ranks * sizeof(*hosts));

	segments = malloc(ranks * sizeof(*segments));
	if (!hosts || !segments || !gasnet_getenv("PATH"))
		gasnet_exit(1); /* ends all ranks */
	gasnet_getSegmentInfo(segments, (int)ranks);
	gasnet_getNodeInfo(hosts, (int)ranks);
	printf("rank %u: machine %u, %zu bytes at %p\n", next, hosts[next].host,
		(size_t)segments[next].size, segments[next].addr);
	free(hosts);
}

/* Example: gasnet_AMRequestShort gasnet_AMRequestMedium gasnet_AMRequestLong
 * gasnet_AMRequestLongAsync GASNET_BLOCKUNTIL gasnet_AMPoll gasnet_set_waitmode
 * gasnet_AMMaxMedium gasnet_AMMaxArgs gasnet_AMMaxLongRequest gasnet_AMMaxLongReply */
static void talk(void)
{
	static char picture[5000];
	char *place = segments[next].addr, text[] = "world";

	if (gasnet_AMMaxMedium() < sizeof(text) || gasnet_AMMaxArgs() < 1 ||
		gasnet_AMMaxLongRequest() < sizeof(picture) ||
		gasnet_AMMaxLongReply() < sizeof(picture))
		gasnet_exit(1);
	gasnet_set_waitmode(GASNET_WAIT_BLOCK); /* a rank that waits leaves its CPU to others */
	gasnet_AMRequestShort1(next, HELLO, 42);
	gasnet_AMRequestShort(next, HELLO, 1, 42); /* the same */
	gasnet_AMRequestMedium0(next, WORDS, text, sizeof(text));
	gasnet_AMRequestMedium(next, WORDS, text, sizeof(text), 0);
	gasnet_AMRequestLong1(next, IMAGE, picture, sizeof(picture), place, 16384);
	gasnet_AMRequestLong(next, IMAGE, picture, sizeof(picture), place, 1, 16384);
	gasnet_AMRequestLongAsync1(next, IMAGE, picture, sizeof(picture), place, 16384);
	gasnet_AMRequestLongAsync(next, IMAGE, picture, sizeof(picture), place, 1, 16384);
	gasnet_AMPoll();                 /* runs the handlers of messages that have arrived */
	GASNET_BLOCKUNTIL(answers == 8); /* each reply's handler increments answers */
}

/* Example: gasnet_put gasnet_get gasnet_put_bulk gasnet_get_bulk gasnet_memset gasnet_put_val
 * gasnet_get_val */
static void transfer(void)
{
	double numbers[4] = {1, 2, 3, 4}, back[4];
	char *place = segments[next].addr;

	gasnet_put(next, place, numbers, sizeof(numbers));
	gasnet_get(back, next, place, sizeof(back));
	gasnet_put_bulk(next, place + 1, numbers, sizeof(numbers)); /* the same */
	gasnet_get_bulk(back, next, place + 1, sizeof(back));
	gasnet_memset(next, place + 64, 0, 4096);
	gasnet_put_val(next, place + 64, 0x1234, 2);
	if (gasnet_get_val(next, place + 64, 8) != 0x1234 || back[3] != 4)
		gasnet_exit(1);
}

/* Example: gasnet_put_nb gasnet_get_nb gasnet_put_nb_bulk gasnet_get_nb_bulk gasnet_memset_nb
 * gasnet_put_nb_val gasnet_get_nb_val gasnet_wait_syncnb gasnet_try_syncnb gasnet_wait_syncnb_all
 * gasnet_try_syncnb_all gasnet_wait_syncnb_some gasnet_try_syncnb_some gasnet_wait_syncnb_valget */
static void overlap(void)
{
	static char out[4][4096], in[4096];
	char *place = segments[next].addr;
	gasnet_handle_t some[4], last;
	gasnet_valget_handle_t value;

	some[0] = gasnet_put_nb(next, place, out[0], sizeof(out[0]));
	memset(out[0], 1, sizeof(out[0])); /* its source may be changed */
	some[1] = gasnet_put_nb_bulk(next, place + 4096, out[1], sizeof(out[1]));
	some[2] = gasnet_memset_nb(next, place + 8192, 7, 4096);
	some[3] = gasnet_put_nb_val(next, place + 12288, 5, 8);
	if (gasnet_try_syncnb_some(some, 4) != GASNET_OK) /* at least one is done */
		gasnet_wait_syncnb_some(some, 4);
	if (gasnet_try_syncnb_all(some, 4) != GASNET_OK) /* all are */
		gasnet_wait_syncnb_all(some, 4);
	value = gasnet_get_nb_val(next, place + 12288, 8);
	last = gasnet_get_nb(in, next, place + 8192, sizeof(in));
	while (gasnet_try_syncnb(last) != GASNET_OK)
		; /* compute */
	last = gasnet_get_nb_bulk(in, next, place + 8192, sizeof(in));
	gasnet_wait_syncnb(last);
	if (gasnet_wait_syncnb_valget(value) != 5 || in[4095] != 7)
		gasnet_exit(1);
}

/* Example: gasnet_put_nbi gasnet_put_nbi_bulk gasnet_get_nbi gasnet_get_nbi_bulk gasnet_memset_nbi
 * gasnet_put_nbi_val gasnet_wait_syncnbi_puts gasnet_wait_syncnbi_gets gasnet_wait_syncnbi_all
 * gasnet_try_syncnbi_puts gasnet_try_syncnbi_gets gasnet_try_syncnbi_all
 * gasnet_begin_nbi_accessregion gasnet_end_nbi_accessregion */
static void many(void)
{
	static char out[4096], in[2][64];
	char *place = segments[next].addr;
	gasnet_handle_t region;

	for (size_t i = 0; i < sizeof(out); i += 64)
		gasnet_put_nbi_bulk(next, place + i, out + i, 64);
	gasnet_put_nbi(next, place + 4096, out, 64);
	gasnet_put_nbi_val(next, place + 8192, 9, 1);
	gasnet_memset_nbi(next, place + 12288, 7, 64);
	if (gasnet_try_syncnbi_puts() != GASNET_OK)
		gasnet_wait_syncnbi_puts(); /* all of them */
	gasnet_begin_nbi_accessregion();
	gasnet_get_nbi(in[0], next, place + 8192, 1);
	gasnet_get_nbi_bulk(in[1], next, place + 12288, 64);
	region = gasnet_end_nbi_accessregion();
	gasnet_wait_syncnb(region); /* these two alone */
	gasnet_get_nbi(in[1], next, place + 12288, 64);
	if (gasnet_try_syncnbi_gets() != GASNET_OK)
		gasnet_wait_syncnbi_gets();
	if (gasnet_try_syncnbi_all() != GASNET_OK)
		gasnet_wait_syncnbi_all();
	if (in[0][0] != 9 || in[1][63] != 7)
		gasnet_exit(1);
}

/* Example: gasnet_putv_bulk gasnet_putv_nb_bulk gasnet_putv_nbi_bulk gasnet_getv_bulk
 * gasnet_getv_nb_bulk gasnet_getv_nbi_bulk */
static void ranges(void)
{
	static char bytes[64], got[48];
	char *place = segments[next].addr;
	gasnet_memvec_t here[] = {{bytes, 16}, {bytes + 32, 32}}, there[] = {{place, 48}};
	gasnet_memvec_t back[] = {{got, 40}, {got + 40, 8}};

	bytes[63] = 5;
	gasnet_putv_bulk(next, 1, there, 2, here);
	gasnet_wait_syncnb(gasnet_putv_nb_bulk(next, 1, there, 2, here));
	gasnet_putv_nbi_bulk(next, 1, there, 2, here);
	gasnet_wait_syncnbi_puts();
	gasnet_getv_bulk(2, back, next, 1, there);
	gasnet_wait_syncnb(gasnet_getv_nb_bulk(2, back, next, 1, there));
	gasnet_getv_nbi_bulk(2, back, next, 1, there);
	gasnet_wait_syncnbi_gets();
	if (got[47] != 5)
		gasnet_exit(1);
}

/* Example: gasnet_puti_bulk gasnet_puti_nb_bulk gasnet_puti_nbi_bulk gasnet_geti_bulk
 * gasnet_geti_nb_bulk gasnet_geti_nbi_bulk */
static void elements(void)
{
	static double numbers[4] = {1, 2, 3, 4}, got[2];
	double *place = segments[next].addr;
	void *here[] = {&numbers[1], &numbers[3]}, *there[] = {&place[30], &place[10]};
	void *back[] = {got};

	gasnet_puti_bulk(next, 2, there, sizeof(double), 2, here, sizeof(double));
	gasnet_wait_syncnb(
		gasnet_puti_nb_bulk(next, 2, there, sizeof(double), 2, here, sizeof(double)));
	gasnet_puti_nbi_bulk(next, 2, there, sizeof(double), 2, here, sizeof(double));
	gasnet_wait_syncnbi_puts();
	gasnet_geti_bulk(1, back, sizeof(got), next, 2, there, sizeof(double));
	gasnet_wait_syncnb(
		gasnet_geti_nb_bulk(1, back, sizeof(got), next, 2, there, sizeof(double)));
	gasnet_geti_nbi_bulk(1, back, sizeof(got), next, 2, there, sizeof(double));
	gasnet_wait_syncnbi_gets();
	if (got[0] != 2 || got[1] != 4)
		gasnet_exit(1);
}

/* Example: gasnet_puts_bulk gasnet_puts_nb_bulk gasnet_puts_nbi_bulk gasnet_gets_bulk
 * gasnet_gets_nb_bulk gasnet_gets_nbi_bulk */
static void columns(void)
{
	static double matrix[8][8], column[8];
	double *place = segments[next].addr;
	size_t row[] = {sizeof(matrix[0])}, packed[] = {sizeof(double)};
	size_t count[] = {sizeof(double), 8}; /* 8 bytes, 8 times */

	matrix[7][2] = 3; /* column 2 goes into column 0 of a matrix there */
	gasnet_puts_bulk(next, place, row, &matrix[0][2], row, count, 1);
	gasnet_wait_syncnb(gasnet_puts_nb_bulk(next, place, row, &matrix[0][2], row, count, 1));
	gasnet_puts_nbi_bulk(next, place, row, &matrix[0][2], row, count, 1);
	gasnet_wait_syncnbi_puts();
	gasnet_gets_bulk(column, packed, next, place, row, count, 1);
	gasnet_wait_syncnb(gasnet_gets_nb_bulk(column, packed, next, place, row, count, 1));
	gasnet_gets_nbi_bulk(column, packed, next, place, row, count, 1);
	gasnet_wait_syncnbi_gets();
	if (column[7] != 3)
		gasnet_exit(1);
}

/* Example: gasnet_coll_init gasnet_coll_broadcast gasnet_coll_scatter gasnet_coll_gather
 * gasnet_coll_gather_all gasnet_coll_exchange */
static void share(void)
{
	const int flags = GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL;
	gasnet_node_t ranks = gasnet_nodes(), *all = calloc(ranks, sizeof(*all)),
		      *more = calloc(ranks, sizeof(*more)), self = gasnet_mynode(), one = self;

	gasnet_coll_init(NULL, 0, NULL, 0, 0);
	gasnet_coll_gather(GASNET_TEAM_ALL, 0, all, &self, sizeof(self), flags);
	gasnet_coll_scatter(GASNET_TEAM_ALL, &one, 0, all, sizeof(one), flags);
	if (one != self) /* it has come back */
		gasnet_exit(1);
	gasnet_coll_gather_all(GASNET_TEAM_ALL, all, &self, sizeof(self), flags);
	gasnet_coll_exchange(GASNET_TEAM_ALL, more, all, sizeof(*all), flags);
	if (more[ranks - 1] != self) /* what the last rank had for this one */
		gasnet_exit(1);
	gasnet_coll_broadcast(GASNET_TEAM_ALL, &one, ranks - 1, &self, sizeof(self), flags);
	if (one != ranks - 1)
		gasnet_exit(1);
	free(all);
	free(more);
}

/* Example: gasnet_hsl_init gasnet_hsl_destroy gasnet_hsl_lock gasnet_hsl_trylock gasnet_hsl_unlock
 * gasnet_hold_interrupts gasnet_resume_interrupts GASNET_GET_THREADINFO GASNET_POST_THREADINFO
 * GASNET_BEGIN_FUNCTION */
static void lock(void)
{
	GASNET_BEGIN_FUNCTION(); /* or GASNET_POST_THREADINFO(GASNET_GET_THREADINFO()) */
	static gasnet_hsl_t mine = GASNET_HSL_INITIALIZER;
	gasnet_hsl_t made;

	gasnet_hsl_init(&made); /* at run time; mine is initialised statically */
	gasnet_hsl_lock(&mine);
	if (gasnet_hsl_trylock(&made) == GASNET_OK)
		gasnet_hsl_unlock(&made);
	gasnet_hsl_unlock(&mine);
	gasnet_hsl_destroy(&made);
	gasnet_hold_interrupts(); /* from here on no handler interrupts this thread */
	gasnet_resume_interrupts();
}

/* Example: gasnet_barrier_notify gasnet_barrier_wait gasnet_barrier_try gasnet_barrier
 * gasnet_barrier_result */
static void meet(void)
{
	int name, code;

	gasnet_barrier_notify(7, 0);
	do /* compute */
		code = gasnet_barrier_try(7, 0);
	while (code == GASNET_ERR_NOT_READY);
	if (code != GASNET_OK || gasnet_barrier_result(&name) != 0 || name != 7)
		gasnet_exit(1);
	gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
	gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
	gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS); /* both at once */
}

int main(int argc, char **argv)
{
	start(argc, argv);
	look_around();
	talk();
	transfer();
	meet();
	overlap();
	meet();
	many();
	meet();
	ranges();
	elements();
	columns();
	share();
	lock();
	meet();
	gasnet_exit(0);
}
