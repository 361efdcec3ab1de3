/* SPDX-License-Identifier: BSD-3-Clause */
/* segments.c - the memory that a long message, a put or a get may name.
 *
 * P1. Ranks of a host map each other's segments, so that puts and gets are copies. Memory that is
 *     shared is a file without a name in any file system (memfd), which neighbours open by this
 *     process's number and descriptor in /proc: the kernel refuses other users. Its text there has
 *     a number drawn by chance, so that no other file is taken for it, also where numbers of
 *     processes mean others. Its size is sealed, so that no access to it fails for its size. A
 *     segment that cannot be shared is reached by messages.
 * P2. With vm.overcommit_memory=2 private memory is counted when it is mapped, but a page of a file
 *     when it is first written: if there is none, the writer gets SIGBUS. So all pages of shared
 *     memory are allocated when it is made, and memory without them is private. Otherwise pages
 *     are allocated when they are written, as most programs do not use all of a large segment.
 */
#include "state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVERYTHING 2
#define GROUP_ROOM 4096u
#define NONE       "-" /* the name of memory that is not shared */

struct shared segment_shared = {.kind = "gasnet", .file = -1};

/* --- the greatest segment */

/* The path of this process's control group; "": it is not known. begin: what is before it in a line
 * of /proc/self/cgroup. */
static void group_path(const char *begin, char path[GROUP_ROOM])
{
	const size_t length = strlen(begin);
	FILE *stream = fopen("/proc/self/cgroup", "re");
	char line[GROUP_ROOM];

	path[0] = '\0';
	while (stream && fgets(line, sizeof(line), stream)) {
		const char *at = strchr(line, ':');

		if (at && strncmp(at, begin, length) == 0)
			strcpy(path, at + length);
	}
	path[strcspn(path, "\n")] = '\0';
	if (stream)
		fclose(stream);
}

/* The least limit of the control group and of all above it. In a container the path is often that
 * of another name space, and the container's own limit is at the root. */
static uint64_t group_limit(const char *begin, const char *root, const char *name)
{
	char path[GROUP_ROOM], file[GROUP_ROOM + 128], *last;
	uint64_t limit, least = UINT64_MAX;

	group_path(begin, path);
	do {
		FILE *stream;

		snprintf(file, sizeof(file), "%s%s/%s", root, path, name);
		stream = fopen(file, "re");
		if (stream && fscanf(stream, "%" SCNu64, &limit) == 1 && limit < least)
			least = limit;
		if (stream)
			fclose(stream);
		last = strrchr(path, '/');
		if (last)
			*last = '\0';
	} while (last);
	return least;
}

static uint64_t least_of(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

uint64_t segment_memory(void)
{
	const uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	return least_of(all,
		least_of(group_limit("::", "/sys/fs/cgroup", "memory.max"),
			group_limit(":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes")));
}

/* 0.85 of the host's memory, divided by its ranks, unless GASNET_MAX_SEGSIZE says what each has. */
static uintptr_t limit_of(uint64_t memory, uint64_t most, uint32_t neighbours)
{
	uint64_t limit = most > 0 ? most : memory / 100 * 85 / neighbours;

	if (gasnet.segment_kind == EVERYTHING)
		return UINTPTR_MAX;
	return (uintptr_t)(limit / GASNET_PAGESIZE * GASNET_PAGESIZE);
}

void segment_limits(uint64_t memory[], uint64_t most[])
{
	gasnet.limit_least = UINTPTR_MAX;
	for (uint32_t i = 0; i < gasnet.size; i++) {
		uint32_t neighbours = 0;

		for (uint32_t k = 0; k < gasnet.size; k++)
			neighbours += gasnet.ranks[k].host == gasnet.ranks[i].host;
		gasnet.ranks[i].limit = limit_of(memory[i], most[i], neighbours);
		if (gasnet.ranks[i].limit < gasnet.limit_least)
			gasnet.limit_least = gasnet.ranks[i].limit;
	}
}

bool is_neighbour(uint32_t rank)
{
	return rank != gasnet.rank && gasnet.ranks[rank].host == gasnet.ranks[gasnet.rank].host;
}

/* --- shared memory */

static bool can_share(uintptr_t size)
{
	struct rlimit files;

	/* A file beyond this limit is a signal. */
	if (!gasnet.shares || getrlimit(RLIMIT_FSIZE, &files) != 0 || size > files.rlim_cur)
		return false;
	for (uint32_t i = 0; i < gasnet.size; i++)
		if (is_neighbour(i))
			return true;
	return false;
}

/* P2. */
static bool pages_are_counted(void)
{
	FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
	bool counted = file && fgetc(file) == '2';

	if (file)
		fclose(file);
	return counted;
}

static void *private_take(uintptr_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
}

/* P2. The private mapping shows whether there is so much: fallocate() finds the end of memory only
 * when it has taken all. */
static bool file_reserve(int file, uintptr_t size)
{
	void *memory;

	if (!pages_are_counted())
		return true;
	memory = private_take(size);
	if (memory == MAP_FAILED)
		return false;
	munmap(memory, size);
	return fallocate(file, 0, 0, (off_t)size) == 0;
}

/* The text of a shared file; in /proc there is a prefix. */
static void file_text(char text[SHARED_NAME], const char *prefix, const char *kind, uint64_t number)
{
	snprintf(text, SHARED_NAME, "%s%s-%016" PRIx64, prefix, kind, number);
}

void *shared_take(struct shared *shared, uintptr_t size)
{
	char text[SHARED_NAME];
	void *memory = MAP_FAILED;

	if (!can_share(size) ||
		getrandom(&shared->chance, sizeof(shared->chance), 0) != sizeof(shared->chance))
		return MAP_FAILED;
	file_text(text, "", shared->kind, shared->chance);
	shared->file = memfd_create(text, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (shared->file < 0)
		return MAP_FAILED;
	if (fchmod(shared->file, S_IRUSR | S_IWUSR) == 0 &&
		ftruncate(shared->file, (off_t)size) == 0 && file_reserve(shared->file, size) &&
		fcntl(shared->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			shared->file, 0);
	if (memory == MAP_FAILED) {
		close(shared->file);
		shared->file = -1;
	}
	return memory;
}

void shared_name(const struct shared *shared, char name[SHARED_NAME])
{
	snprintf(name, SHARED_NAME, NONE);
	if (shared->file >= 0)
		snprintf(name, SHARED_NAME, "%d.%d.%016" PRIx64, (int)getpid(), shared->file,
			shared->chance);
}

/* Whether a descriptor in /proc is that of the file with this number in its text. */
static bool is_shared(const char *path, const char *kind, uint64_t number)
{
	char text[SHARED_NAME] = "", wanted[SHARED_NAME];

	file_text(wanted, "/memfd:", kind, number);
	return readlink(path, text, sizeof(text) - 1) > 0 &&
	       strncmp(text, wanted, strlen(wanted)) == 0;
}

/* A descriptor of a neighbour's file, or -1. Another file is not even opened. */
static int shared_open(const char *kind, const char *name, uintptr_t size)
{
	char path[SHARED_NAME];
	struct stat status;
	int process, descriptor, file;
	uint64_t number;

	if (sscanf(name, "%d.%d.%" SCNx64, &process, &descriptor, &number) != 3)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", process, descriptor);
	if (!is_shared(path, kind, number))
		return -1;
	file = open(path, O_RDWR | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (file < 0 || (is_shared(path, kind, number) && fstat(file, &status) == 0 &&
				(uintptr_t)status.st_size == size))
		return file;
	close(file);
	return -1;
}

void *shared_map(const char *kind, const char *name, uintptr_t size)
{
	int file = gasnet.shares ? shared_open(kind, name, size) : -1;
	void *memory;

	if (file < 0)
		return MAP_FAILED;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
	close(file);
	/* A core has the own memory only. */
	if (memory != MAP_FAILED)
		(void)madvise(memory, size, MADV_DONTDUMP);
	return memory;
}

/* --- segments */

/* Takes memory of that size, or less where the system refuses it. */
static void memory_take(struct rank *segment, uintptr_t size)
{
	void *memory = MAP_FAILED;

	while (size > 0) {
		memory = shared_take(&segment_shared, size);
		if (memory == MAP_FAILED)
			memory = private_take(size);
		if (memory != MAP_FAILED)
			break;
		size = size / 2 / GASNET_PAGESIZE * GASNET_PAGESIZE;
	}
	segment->address = size > 0 ? memory : NULL;
	segment->size = size;
}

/* The call may be made again. */
static void memory_give(struct rank *segment)
{
	munmap(segment->address, segment->size);
	if (segment_shared.file >= 0)
		close(segment_shared.file);
	segment_shared.file = -1;
}

bool segment_make(uintptr_t size, uintptr_t heap_distance)
{
	struct rank *segment = &gasnet.ranks[gasnet.rank];
	uintptr_t heap = (uintptr_t)sbrk(0);

	if (gasnet.segment_kind == EVERYTHING) {
		segment->size = UINTPTR_MAX;
		return true;
	}
	memory_take(segment, size);
	if (segment->size < size)
		complain(
			"the segment has %zu bytes instead of %zu, because the system has no more: "
			"ask for less, or raise the limits of memory",
			(size_t)segment->size, (size_t)size);
	if (segment->size > 0 && (uintptr_t)segment->address > heap &&
		(uintptr_t)segment->address - heap < heap_distance) {
		complain("the segment cannot be %zu bytes behind the heap: give gasnet_attach a "
			 "smaller minheapoffset",
			(size_t)heap_distance);
		memory_give(segment);
		return false;
	}
	return true;
}

void segment_share(uint32_t rank, const char *name)
{
	struct rank *segment = &gasnet.ranks[rank];
	void *memory = is_neighbour(rank) ? shared_map(segment_shared.kind, name, segment->size)
					  : MAP_FAILED;

	if (memory != MAP_FAILED)
		segment->shared = memory;
}

void *near(uint32_t rank, const void *address)
{
	const struct rank *segment = &gasnet.ranks[rank];

	if (rank == gasnet.rank)
		return (void *)(uintptr_t)address;
	return segment->shared
		       ? segment->shared + ((uintptr_t)address - (uintptr_t)segment->address)
		       : NULL;
}

bool segment_has(uint32_t rank, const void *address, size_t length)
{
	const struct rank *segment = &gasnet.ranks[rank];
	uintptr_t offset = (uintptr_t)address - (uintptr_t)segment->address;

	return length <= segment->size && offset <= segment->size - length;
}

void segment_check(const char *what, uint32_t rank, const void *address, size_t length)
{
	const struct rank *segment = &gasnet.ranks[rank];

	if (!segment_has(rank, address, length))
		fatal("%s of %zu bytes at %p of rank %u, whose segment has %zu bytes at %p", what,
			length, address, rank, (size_t)segment->size, segment->address);
}
