/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - memory of segments and of applications.
 *
 * A segment is a memfd, of which a range can be given memory without being touched. Its memory is
 * given back here; its address space stays (threads may still look at it) until the front end
 * unmaps it.
 *
 * I1. A segment of hugepages is made only when there are enough for all of it at that moment, and a
 *     range is written to only after glue_segment_commit(): a page that cannot be had is an error
 *     there, not a SIGBUS later. Only a hugepage and, with vm.overcommit_memory=2, any page can
 *     be refused. Elsewhere committing takes no memory, because most of a table is never used.
 * I2. All that is known of an application's block is in a tree of blocks, never in the block or
 *     before it: the address that the caller gives may belong to nobody, or to other memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_malloc.h>

#include <base/log.h>
#include <base/remedy.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/hugepages.h>

#define BLOCK_ALIGN 64u /* a cache line */
/* size of a transparent hugepage on x86-64 */
#define THP_SIZE  (UINT64_C(2) << 20)
#define NODES_MAX (8 * sizeof(unsigned long))

struct segment {
	struct segment *next;
	char *base;
	size_t size;
	size_t page;
	int fd;
	bool refusable; /* a page may be refused when it is touched, I1 */
};

/* Memory of an application. */
struct block {
	void *memory; /* the application's; what the tree is ordered by */
	void *base;   /* of the mapping; NULL: the memory is DPDK's */
	size_t size;
};

static struct segment *segments;
static pthread_mutex_t segments_lock = PTHREAD_MUTEX_INITIALIZER;
static void *blocks; /* tsearch()'s tree; under the front end's lock */

static size_t round_up(size_t size, size_t to)
{
	return (size + to - 1) / to * to;
}

/* The node is preferred, not required: memory of another node is slower, but better than none. */
static void memory_prefer(void *memory, size_t size, int socket)
{
	unsigned long mask;
	if (socket < 0 || (size_t)socket >= NODES_MAX || numa_available() < 0 ||
		socket > numa_max_node())
		return;
	mask = 1ul << socket;
	if (mbind(memory, size, MPOL_PREFERRED, &mask, NODES_MAX, 0) != 0)
		log_debug(LOG_MEMORY, "memory on node %d cannot be preferred: %s", socket,
			strerror(errno));
}

/* Does the kernel refuse a page beyond a limit of its own (vm.overcommit_memory=2)? */
static bool pages_limited(void)
{
	FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
	int policy = file ? fgetc(file) : EOF;

	if (file)
		fclose(file);
	return policy != '0' && policy != '1';
}

static int segment_file(size_t size, unsigned flags)
{
	struct rlimit files;
	int fd;
	/* A file beyond the process's limit would raise a signal that ends it. */
	if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != RLIM_INFINITY &&
		files.rlim_cur < size) {
		errno = EFBIG;
		return -1;
	}
	fd = memfd_create("postern", MFD_CLOEXEC | flags);
	if (fd >= 0 && ftruncate(fd, (off_t)size) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Makes the mapping of a memfd with these flags, in pages of `page` bytes. Returns false if that is
 * not possible. */
static bool segment_map(struct segment *segment, size_t size, size_t page, unsigned flags)
{
	size = round_up(size, page);
	segment->fd = segment_file(size, flags);
	if (segment->fd < 0)
		return false;
	segment->base = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, segment->fd, 0);
	if (segment->base == MAP_FAILED) {
		close(segment->fd);
		return false;
	}
	segment->size = size;
	segment->page = page;
	segment->refusable = (flags & MFD_HUGETLB) || pages_limited();
	return true;
}

void *glue_segment_create(size_t size, int socket, int *fd)
{
	struct segment *segment = calloc(1, sizeof(*segment));
	if (!segment || size == 0 || size > SIZE_MAX / 2) {
		log_error("cannot map a segment of %zu bytes: %s", size,
			segment ? "ask for smaller limits" : remedy_for_memory());
		free(segment);
		return NULL;
	}
	if (!(hugepages_usable(size) &&
		    segment_map(segment, size, hugepages_page(), MFD_HUGETLB)) &&
		!segment_map(segment, size, (size_t)sysconf(_SC_PAGESIZE), 0)) {
		log_error("cannot map a segment of %zu MB: %s: %s", size >> 20, strerror(errno),
			remedy_for(errno, "make PTL_EVENT_MEMORY smaller"));
		free(segment);
		return NULL;
	}
	memory_prefer(segment->base, segment->size, socket);
	if (fd)
		*fd = fcntl(segment->fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_lock(&segments_lock);
	segment->next = segments;
	segments = segment;
	pthread_mutex_unlock(&segments_lock);
	return segment->base;
}

static int range_allocate(const struct segment *segment, size_t offset, size_t size)
{
	size_t start = offset / segment->page * segment->page;
	size_t end = round_up(offset + size, segment->page);
	int result;
	do
		result = fallocate(segment->fd, 0, (off_t)start, (off_t)(end - start));
	while (result != 0 && errno == EINTR);
	return result;
}

int glue_segment_commit(void *memory, size_t offset, size_t size)
{
	struct segment *segment;
	int result = -1;
	if (size == 0)
		return 0;
	pthread_mutex_lock(&segments_lock);
	for (segment = segments; segment && segment->base != memory; segment = segment->next)
		;
	if (segment && offset < segment->size && size <= segment->size - offset)
		result = segment->refusable ? range_allocate(segment, offset, size) : 0;
	pthread_mutex_unlock(&segments_lock);
	return result;
}

void glue_segment_warm(void *memory, size_t offset, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), start = offset / page * page;

	(void)madvise(
		(char *)memory + start, round_up(offset + size, page) - start, MADV_POPULATE_WRITE);
}

void glue_segment_reset(void *memory, size_t size)
{
	struct segment **link, *segment;
	(void)size;
	pthread_mutex_lock(&segments_lock);
	for (link = &segments; *link && (*link)->base != memory; link = &(*link)->next)
		;
	segment = *link;
	if (segment)
		*link = segment->next;
	pthread_mutex_unlock(&segments_lock);
	if (!segment)
		return;
	/* Private pages that were never written read as zeros and take no memory. Other processes
	 * that map the file see holes. */
	(void)fallocate(
		segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)segment->size);
	(void)mmap(segment->base, segment->size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	close(segment->fd);
	free(segment);
}

static int block_compare(const void *left, const void *right)
{
	uintptr_t a = (uintptr_t)((const struct block *)left)->memory;
	uintptr_t b = (uintptr_t)((const struct block *)right)->memory;
	return (a > b) - (a < b);
}

/* Whole pages, on the node, aligned for transparent hugepages when large. */
static bool memory_map(struct block *block, size_t size, int socket)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t align = size >= THP_SIZE ? THP_SIZE : page;
	size_t length = round_up(size, page) + align - page;
	char *base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return false;
	memory_prefer(base, length, socket);
	if (align == THP_SIZE)
		(void)madvise(base, length, MADV_HUGEPAGE);
	*block = (struct block){(void *)round_up((uintptr_t)base, align), base, length};
	return true;
}

static void block_close(struct block *block)
{
	if (block->base)
		munmap(block->base, block->size);
	else
		rte_free(block->memory);
	free(block);
}

void *glue_memory_alloc(size_t size, int socket)
{
	struct block *block = size > SIZE_MAX / 2 ? NULL : calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	if (size == 0)
		size = 1;
	if (glue_hugepages()) {
		struct eal_guard *guard = eal_enter();
		block->memory = rte_zmalloc_socket("postern", size, BLOCK_ALIGN, socket);
		eal_leave(guard);
	}
	if (!block->memory && !memory_map(block, size, socket)) {
		free(block);
		return NULL;
	}
	if (tsearch(block, &blocks, block_compare))
		return block->memory;
	block_close(block);
	return NULL;
}

void glue_memory_free(void *memory)
{
	struct block wanted = {.memory = memory}, *block;
	struct block **found = tfind(&wanted, &blocks, block_compare);
	if (!memory)
		return;
	if (!found) {
		log_error(
			"memory at %p is not from postern_alloc, or was freed before, and is left "
			"alone: free each block once",
			memory);
		return;
	}
	block = *found;
	tdelete(block, &blocks, block_compare);
	block_close(block);
}
