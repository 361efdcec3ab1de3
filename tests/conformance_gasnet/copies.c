/* SPDX-License-Identifier: BSD-3-Clause */
/* copies.c - segments that ranks of a host share: which segments are shared, who else can open
 * them, puts and gets with a target that makes no calls, and their order, as that of messages. */
#include "ranks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT   "/memfd:gasnet-"
#define NOBODY 65534
#define ROUNDS 500u
#define GO_ON  (HANDLER_COPIES + 1) /* the handler of a reply */

static volatile unsigned replies, arrived;
static bool no_pages;

static bool refused(const char *way)
{
	const char *wanted = gasnet_getenv("RANKS_REFUSE");

	return wanted && strcmp(wanted, way) == 0;
}

static void limit(const char *way, unsigned resource, rlim_t most)
{
	struct rlimit now;

	if (!refused(way))
		return;
	CHECK(getrlimit(resource, &now) == 0);
	now.rlim_cur = most > 0 ? most : now.rlim_max;
	CHECK(setrlimit(resource, &now) == 0);
}

/* The library calls this one. */
__attribute__((visibility("default"))) int fallocate(int file, int mode, off_t offset, off_t length)
{
	if (!no_pages)
		return (int)syscall(SYS_fallocate, file, mode, offset, length);
	errno = ENOSPC;
	return -1;
}

void copies_refuse(void)
{
	no_pages = refused("pages");
	limit("size", RLIMIT_FSIZE, SEGMENT / 2);
	limit("descriptors", RLIMIT_NOFILE, 1);
}

void copies_allow(void)
{
	no_pages = false;
	limit("size", RLIMIT_FSIZE, 0);
	limit("descriptors", RLIMIT_NOFILE, 0);
}

/* --- which segments are shared */

static unsigned mapped(void)
{
	char line[1024];
	unsigned count = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, TEXT) != NULL;
	fclose(maps);
	return count;
}

/* The descriptor of the own segment, or -1. */
static int segment_file(void)
{
	char text[256];
	DIR *files = opendir("/proc/self/fd");
	int file = -1;

	CHECK(files);
	for (const struct dirent *entry; (entry = readdir(files));) {
		ssize_t length = readlinkat(dirfd(files), entry->d_name, text, sizeof(text));

		if (length > (ssize_t)strlen(TEXT) && memcmp(text, TEXT, strlen(TEXT)) == 0)
			file = (int)strtol(entry->d_name, NULL, 10);
	}
	closedir(files);
	return file;
}

/* Another user opens the file, if this process can become one. */
static void other_opens(const char *path)
{
	if (setgid(NOBODY) == 0 && setuid(NOBODY) == 0)
		_exit(open(path, O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 1);
	_exit(0);
}

static void file_is_safe(int file)
{
	struct stat status;
	char path[64];
	int ended;
	pid_t child;

	CHECK(fstat(file, &status) == 0 && (status.st_mode & 0777) == 0600);
	CHECK(!gasnet_getenv("RANKS_RESERVED") || (size_t)status.st_blocks * 512 >= SEGMENT);
	CHECK(ftruncate(file, 0) != 0 && errno == EPERM);
	CHECK(ftruncate(file, 2 * SEGMENT) != 0 && errno == EPERM);
	if (geteuid() != 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), file);
	child = fork();
	if (child == 0)
		other_opens(path);
	CHECK(child > 0 && waitpid(child, &ended, 0) == child);
	CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
}

/* RANKS_SHARED says how many segments a rank has mapped, its own among them. */
void copies_shared(void)
{
	const char *wanted = gasnet_getenv("RANKS_SHARED");

	CHECK(wanted && mapped() == (unsigned)strtoul(wanted, NULL, 10));
	CHECK((segment_file() >= 0) == (mapped() > 0));
	if (mapped() > 0)
		file_is_safe(segment_file());
	for (unsigned to = 0; to < ranks; to++) {
		gasnet_memset(to, segments[to] + rank * 8, (int)rank + 1, 8);
		CHECK(gasnet_get_val(to, segments[to] + rank * 8, 1) == rank + 1);
		gasnet_put_val(to, segments[to] + rank * 8, to, 8);
	}
	barrier_pass();
	for (unsigned from = 0; from < ranks; from++)
		CHECK(((volatile uint64_t *)segments[rank])[from] == rank);
}

/* --- the target makes no calls: with PTL_PROGRESS=inline, messages would wait for ever */

static void word_await(const volatile uint64_t *word, uint64_t value)
{
	while (*word != value)
		continue;
}

void copies_silent(void)
{
	volatile uint64_t *words = (volatile uint64_t *)segments[rank];
	uint64_t seen[2] = {0, 0};
	uint8_t *there = segments[1];

	if (rank == 1) {
		words[1] = 5;
		__atomic_thread_fence(__ATOMIC_RELEASE);
		words[0] = 1;
		word_await(&words[2], 0x0202020202020202);
	} else if (rank == 0) {
		while (gasnet_get_val(1, there, 8) != 1)
			continue;
		gasnet_get(seen, 1, there, sizeof(seen));
		CHECK(seen[1] == 5);
		gasnet_put(1, there + 24, seen, sizeof(seen));
		gasnet_wait_syncnb(gasnet_get_nb(seen, 1, there + 32, 8));
		CHECK(seen[0] == 5);
		gasnet_memset(1, there + 16, 2, 8);
	}
	barrier_pass();
}

/* --- order */

static void take_go_on(gasnet_token_t token)
{
	(void)token;
	replies++;
}

/* A put before a request is in the memory when its handler runs. */
static void take_number(gasnet_token_t token, gasnet_handlerarg_t number)
{
	gasnet_node_t from;

	CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
	CHECK(((volatile uint64_t *)segments[rank])[from] == (uint64_t)number);
	arrived++;
	CHECK(gasnet_AMReplyShort0(token, GO_ON) == GASNET_OK);
}

int copies_table(gasnet_handlerentry_t *table)
{
	table[0] = (gasnet_handlerentry_t){HANDLER_COPIES, (void (*)())take_number};
	table[1] = (gasnet_handlerentry_t){GO_ON, (void (*)())take_go_on};
	return 2;
}

/* Two ranks put into words of their own and then get the other's word: one of the two sees the
 * other's put, because a put that has returned is in the memory. */
static void both_look(void)
{
	const unsigned other = 1 - rank, at = ranks - 1;
	uint8_t *own_words = segments[at] + SEGMENT / 2 + rank * ROUNDS * 8;
	uint8_t *other_words = segments[at] + SEGMENT / 2 + other * ROUNDS * 8;
	static uint64_t seen[ROUNDS], others[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++) {
		gasnet_put_val(at, own_words + i * 8, 1, 8);
		seen[i] = gasnet_get_val(at, other_words + i * 8, 8);
		while (gasnet_get_val(at, other_words + i * 8, 8) == 0)
			continue;
	}
	gasnet_put(other, segments[other], seen, sizeof(seen));
	barrier_pass();
	gasnet_get(others, rank, segments[rank], sizeof(others));
	for (unsigned i = 0; i < ROUNDS; i++)
		CHECK(seen[i] || others[i]);
}

/* A rank that sleeps at once whenever it waits. */
void copies_sleep(void)
{
	CHECK(gasnet_set_waitmode(GASNET_WAIT_BLOCK) == GASNET_OK);
	copies_order();
}

void copies_order(void)
{
	const unsigned right = (rank + 1) % ranks;

	for (unsigned i = 1; i <= ROUNDS; i++) {
		gasnet_put_val(right, segments[right] + rank * 8, i, 8);
		CHECK(gasnet_AMRequestShort1(right, HANDLER_COPIES, (int)i) == GASNET_OK);
		GASNET_BLOCKUNTIL(replies == i);
	}
	GASNET_BLOCKUNTIL(arrived == ROUNDS);
	barrier_pass();
	if (rank < 2)
		both_look();
	else
		barrier_pass();
	barrier_pass();
}

/* A rank that waits by gets handles the request that the other one waits for. */
void copies_spin(void)
{
	uint8_t *word = segments[1];

	if (rank == 0) {
		while (gasnet_get_val(1, word, 8) != 1)
			continue;
	} else if (rank == 1) {
		CHECK(gasnet_AMRequestShort1(0, HANDLER_COPIES, 0) == GASNET_OK);
		GASNET_BLOCKUNTIL(replies == 1);
		gasnet_put_val(1, word, 1, 8);
	}
	barrier_pass();
}

/* Until the job ends. */
void copies_wait(void)
{
	barrier_pass();
	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (uint64_t i = 0;; i++)
		gasnet_put_val((rank + 1) % ranks, segments[(rank + 1) % ranks], i, 8);
}

/* The same with messages. */
void copies_send(void)
{
	barrier_pass();
	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (;;)
		CHECK(gasnet_AMRequestShort1((rank + 1) % ranks, HANDLER_COPIES, 0) == GASNET_OK);
}
