/* memory.c - memory of segments and of applications.
 *
 * A segment is a memfd, so that another process can map it. Its memory is given back here; its
 * address space stays (threads may still look at it) until the front end unmaps it.
 *
 * I1. A segment of hugepages is made only when there are enough for all of it at that moment, and a
 *     range is written to only after glue_segment_commit(): a page that cannot be had is an error
 *     there, not a SIGBUS later.
 * I2. What lies before an application's memory says how to give it back.
 */
#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_malloc.h>

#include <base/log.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/hugepages.h>

#define BLOCK_MAGIC   UINT64_C(0x706f737465726e21)
#define BLOCK_DPDK    1u
#define BLOCK_MAPPING 2u
#define BLOCK_ALIGN   64u                 /* a cache line */
#define THP_SIZE      (UINT64_C(2) << 20) /* what a transparent hugepage is on the machines we know */
#define NODES_MAX     (8 * sizeof(unsigned long))

struct segment {
	struct segment *next;
	char *base;
	size_t size;
	size_t page;
	int fd;
};

/* What lies before an application's memory. */
struct block {
	uint64_t magic;
	uint64_t kind;
	void *base;
	size_t size;
	uint64_t unused[4];
};
_Static_assert(sizeof(struct block) == BLOCK_ALIGN, "a block's header keeps the alignment");

static struct segment *segments;
static pthread_mutex_t segments_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t round_up(size_t size, size_t to)
{
	return (size + to - 1) / to * to;
}

/* A wish, not an order: memory from another node is slower, none is worse. */
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

static int segment_file(size_t size, unsigned flags)
{
	struct rlimit files;
	int fd;
	/* A file beyond the limit would end the process by a signal. */
	if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != RLIM_INFINITY &&
		files.rlim_cur < size) {
		log_error(
			"no memory can be shared because this process may write files of %llu KiB "
			"only, and %zu KiB are needed: raise the limit by ulimit -f unlimited",
			(unsigned long long)files.rlim_cur / 1024, size / 1024);
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

/* With pages of `page` bytes from a memfd made with flags; false when that cannot be. */
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
	return true;
}

void *glue_segment_create(size_t size, int socket, int *fd)
{
	struct segment *segment = calloc(1, sizeof(*segment));
	if (!segment || size == 0 || size > SIZE_MAX / 2) {
		log_error("cannot map a segment of %zu bytes: %s", size,
			segment ? "no such size" : "out of memory");
		free(segment);
		return NULL;
	}
	if (!(hugepages_usable(size) &&
		    segment_map(segment, size, hugepages_page(), MFD_HUGETLB)) &&
		!segment_map(segment, size, (size_t)sysconf(_SC_PAGESIZE), 0)) {
		log_error("cannot map a segment of %zu MB: %s: %s", size >> 20, strerror(errno),
			errno == EMFILE ? "raise the limit of open files by ulimit -n 64"
					: "make PTL_EVENT_MEMORY smaller");
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

int glue_segment_commit(void *memory, size_t offset, size_t size)
{
	struct segment *segment;
	size_t start, end;
	int result = -1;
	if (size == 0)
		return 0;
	pthread_mutex_lock(&segments_lock);
	for (segment = segments; segment && segment->base != memory; segment = segment->next)
		;
	if (segment && offset < segment->size && size <= segment->size - offset) {
		start = offset / segment->page * segment->page;
		end = round_up(offset + size, segment->page);
		do
			result = fallocate(segment->fd, 0, (off_t)start, (off_t)(end - start));
		while (result != 0 && errno == EINTR);
	}
	pthread_mutex_unlock(&segments_lock);
	return result == 0 ? 0 : -1;
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
	/* Private pages that nobody has written to read as zeros and cost nothing. Who else maps
	 * the file sees holes. */
	(void)fallocate(
		segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)segment->size);
	(void)mmap(segment->base, segment->size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	close(segment->fd);
	free(segment);
}

static void *block_open(struct block *block, uint64_t kind, void *base, size_t size)
{
	*block = (struct block){.magic = BLOCK_MAGIC, .kind = kind, .base = base, .size = size};
	return block + 1;
}

/* Whole pages, on the node, aligned for transparent hugepages when large. The header is the end of
 * the page before. */
static void *memory_map(size_t size, int socket)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t align = size >= THP_SIZE ? THP_SIZE : page;
	size_t length = round_up(size, page) + align + page;
	char *base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *start;
	if (base == MAP_FAILED)
		return NULL;
	start = (char *)round_up((uintptr_t)base + sizeof(struct block), align);
	memory_prefer(base, length, socket);
	if (align == THP_SIZE)
		(void)madvise(base, length, MADV_HUGEPAGE);
	return block_open((struct block *)start - 1, BLOCK_MAPPING, base, length);
}

void *glue_memory_alloc(size_t size, int socket)
{
	if (size > SIZE_MAX / 2)
		return NULL;
	if (glue_hugepages()) {
		struct eal_guard *guard = eal_enter();
		struct block *block =
			rte_zmalloc_socket("postern", size + sizeof(*block), BLOCK_ALIGN, socket);
		eal_leave(guard);
		if (block)
			return block_open(block, BLOCK_DPDK, block, size);
	}
	return memory_map(size ? size : 1, socket);
}

void glue_memory_free(void *memory)
{
	struct block *block;
	if (!memory)
		return;
	block = (struct block *)memory - 1;
	if (block->magic != BLOCK_MAGIC) {
		log_error("memory at %p is not from postern_alloc, or was freed before: it is left "
			  "alone",
			memory);
		return;
	}
	block->magic = 0;
	if (block->kind == BLOCK_DPDK)
		rte_free(block->base);
	else
		munmap(block->base, block->size);
}
