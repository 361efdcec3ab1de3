/* SPDX-License-Identifier: BSD-3-Clause */
/* bell.c - see bell.h. Owned by the poll core that owns the memif. */
#include <pmd-glue/bell.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <linux/membarrier.h>

/* Messages of the memif protocol, version 2. All numbers are in the host's byte order.
 *
 *      ADD_REGION   type 16 | index 16 | size 64
 *      ADD_RING     type 16 | flags 16 | index 16 | region 16 | offset 32 | ...
 *      ring         cookie 32 | flags 16 | ...
 */
#define TYPE_ADD_REGION 4
#define TYPE_ADD_RING   5
#define REGION_INDEX_AT 2
#define REGION_SIZE_AT  4
#define REGION_BYTES    12
#define RING_FLAGS_AT   2
#define RING_INDEX_AT   4
#define RING_REGION_AT  6
#define RING_OFFSET_AT  8
#define RING_BYTES      12
#define RING_TO_SERVER  1 /* of the message's flags */
#define COOKIE          UINT32_C(0x3e31f20)
#define FLAGS_AT        4
#define FLAGS_END       6
#define FLAG_POLLS      1 /* of the ring's flags: the receiver polls */

static bool registered;

void bell_register(void)
{
	registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void bell_init(struct bell *bell)
{
	*bell = (struct bell){.region = -1, .event = -1, .set = -1};
}

static void close_and_forget(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void keep(int *kept, int fd)
{
	close_and_forget(kept);
	*kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static uint16_t read16(const uint8_t *at)
{
	uint16_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

void bell_hear(struct bell *bell, const void *message, size_t length, int fd, bool to_server)
{
	const uint8_t *bytes = message;
	if (fd < 0 || length < REGION_BYTES)
		return;
	if (read16(bytes) == TYPE_ADD_REGION && read16(bytes + REGION_INDEX_AT) == 0) {
		memcpy(&bell->region_size, bytes + REGION_SIZE_AT, sizeof(bell->region_size));
		keep(&bell->region, fd);
	} else if (read16(bytes) == TYPE_ADD_RING && length >= RING_BYTES &&
		   read16(bytes + RING_INDEX_AT) == 0 && read16(bytes + RING_REGION_AT) == 0 &&
		   ((read16(bytes + RING_FLAGS_AT) & RING_TO_SERVER) != 0) == to_server) {
		memcpy(&bell->offset, bytes + RING_OFFSET_AT, sizeof(bell->offset));
		keep(&bell->event, fd);
	}
}

/* Maps the ring's flags. A hostile peer can shrink the memory; DPDK's driver has the same
 * weakness. */
static bool bell_map(struct bell *bell)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t start = bell->offset / page * page;
	uint32_t cookie;
	struct stat status;
	uint8_t *ring;
	if (fstat(bell->region, &status) != 0 || bell->region_size > (uint64_t)status.st_size ||
		bell->offset % 64 != 0 || bell->offset + (uint64_t)FLAGS_END > bell->region_size)
		return false;
	bell->page =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, bell->region, (off_t)start);
	if (bell->page == MAP_FAILED) {
		bell->page = NULL;
		return false;
	}
	ring = (uint8_t *)bell->page + (bell->offset - start);
	memcpy(&cookie, ring, sizeof(cookie));
	bell->flags = (volatile uint16_t *)(void *)(ring + FLAGS_AT);
	return cookie == COOKIE;
}

bool bell_hang(struct bell *bell, int set)
{
	struct epoll_event event = {.events = EPOLLIN};
	if (registered && bell->region >= 0 && bell->event >= 0 && bell_map(bell) &&
		epoll_ctl(set, EPOLL_CTL_ADD, bell->event, &event) == 0) {
		bell->set = set;
		return true;
	}
	bell_drop(bell);
	return false;
}

/* Reads the eventfd, so that it is no longer readable. The peer shares the descriptor and can make
 * its reads block, so this read asks not to wait. A descriptor without such reads, as an eventfd of
 * an old kernel, is read only if it is readable. */
static void bell_hush(const struct bell *bell)
{
	eventfd_t rung;
	const struct iovec to = {.iov_base = &rung, .iov_len = sizeof(rung)};
	struct pollfd called = {.fd = bell->event, .events = POLLIN};
	if (preadv2(bell->event, &to, 1, -1, RWF_NOWAIT) < 0 && errno == EOPNOTSUPP &&
		poll(&called, 1, 0) == 1)
		(void)eventfd_read(bell->event, &rung);
}

int bell_arm(struct bell *bell, bool on)
{
	if (bell->set < 0)
		return -1;
	if (on) {
		*bell->flags &= (uint16_t)~FLAG_POLLS;
		/* B1 */
		if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0)
			return bell->set;
	}
	*bell->flags |= FLAG_POLLS;
	/* While frames are found by polling, a signal of the past must not wake the receiver
	 * again. */
	bell_hush(bell);
	return -1;
}

void bell_drop(struct bell *bell)
{
	if (bell->page)
		munmap(bell->page, (size_t)sysconf(_SC_PAGESIZE));
	close_and_forget(&bell->region);
	close_and_forget(&bell->event);
	bell_init(bell);
}
