/* SPDX-License-Identifier: BSD-3-Clause */
/* shared.c - see shared.h. */
#include <pmd-glue/shared.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include <linux/membarrier.h>

#include <base/log.h>
#include <base/remedy.h>

#define FALLOCATE_TRIES 100u

/* --- memory --- */

size_t shared_page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int shared_file(size_t bytes, size_t touched)
{
	struct rlimit files;
	int fd, error = 0;
	/* A file beyond the limit would end the process by a signal. */
	if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < bytes) {
		errno = EFBIG;
		return -1;
	}
	fd = memfd_create("postern-pair", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)bytes) != 0)
		error = errno;
	for (unsigned n = 0; error == 0 && touched > 0 && n < FALLOCATE_TRIES; n++) {
		if (fallocate(fd, 0, 0, (off_t)touched) == 0)
			break;
		error = errno == EINTR && n + 1 < FALLOCATE_TRIES ? 0 : errno;
	}
	if (error == 0)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

void *shared_map(int fd, size_t bytes, int protection)
{
	void *memory = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

/* The file system's type excludes hugepages, which may be missing when they are touched. */
void *shared_accept(int fd, size_t bytes, int seals, int protection)
{
	struct statfs system;
	struct stat status;
	int sealed = fcntl(fd, F_GET_SEALS);
	if (sealed < 0 || (sealed & seals) != seals || fstat(fd, &status) != 0 ||
		status.st_size != (off_t)bytes || fstatfs(fd, &system) != 0 ||
		system.f_type != TMPFS_MAGIC)
		return NULL;
	return shared_map(fd, bytes, protection);
}

_Atomic uint32_t *shared_page_make(int *file)
{
	size_t bytes = shared_page_bytes();
	void *page = NULL;
	*file = shared_file(bytes, bytes);
	if (*file >= 0)
		page = shared_map(*file, bytes, PROT_READ | PROT_WRITE);
	if (page && fcntl(*file, F_ADD_SEALS, SHARED_PAGE_SEALS) == 0)
		return page;
	log_error("node: no memory can be shared with other processes: %s: %s", strerror(errno),
		remedy_for(errno, "use Linux 5.1 or newer, or end programs that use much memory"));
	if (page)
		munmap(page, bytes);
	return NULL;
}

/* Seq_cst: a sleeper looks at its memory after this (S4). */
static void word_set(_Atomic uint32_t *word, uint32_t bits)
{
	uint32_t now = atomic_load_explicit(word, memory_order_relaxed);

	atomic_store_explicit(word, ((now | WORD_BITS) + 1) | bits, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
}

bool sleeper_sleep(struct sleeper *sleeper, bool asleep)
{
	uint32_t now = atomic_load_explicit(sleeper->word, memory_order_relaxed);

	if (((now & WORD_ASLEEP) != 0) == asleep)
		return true;
	sleeper->ticks = 0;
	word_set(sleeper->word, asleep ? WORD_BITS : WORD_FENCED);
	if ((now & WORD_FENCED) != 0 ||
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0)
		return true;
	word_set(sleeper->word, 0);
	return false;
}

/* The first tick comes at once, the second a tick later. */
void sleeper_tick(struct sleeper *sleeper)
{
	uint32_t now = atomic_load_explicit(sleeper->word, memory_order_relaxed);

	if ((now & WORD_BITS) == WORD_FENCED && ++sleeper->ticks >= 2)
		word_set(sleeper->word, 0);
}

/* --- messages --- */

bool parcel_send(int socket, const void *bytes, size_t length, const int *fds, unsigned count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(PARCEL_DESCRIPTORS * sizeof(int))];
	} control = {0};
	struct iovec vector = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
	struct cmsghdr *part;
	if (count > 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(part), fds, count * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length;
}

void parcel_close(struct parcel *parcel)
{
	while (parcel->count > 0)
		close(parcel->fds[--parcel->count]);
}

/* Takes what the kernel has put into this process's table, whatever the number. */
static void parcel_unpack(struct parcel *parcel, struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
		part = CMSG_NXTHDR(message, part)) {
		size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t n = 0; n < count; n++) {
			int fd;
			memcpy(&fd, CMSG_DATA(part) + n * sizeof(fd), sizeof(fd));
			if (parcel->count < PARCEL_DESCRIPTORS)
				parcel->fds[parcel->count++] = fd;
			else
				close(fd);
		}
	}
}

/* Returns what a call of recvmsg() means. */
static enum heard heard_of(ssize_t length)
{
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return HEARD_NOTHING;
	return length <= 0 ? HEARD_END : HEARD_MESSAGE;
}

/* whole: all descriptors of the message are in the parcel. An empty message may bring some. */
static enum heard parcel_read(
	struct parcel *parcel, int socket, unsigned descriptors, int how, bool *whole)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(PARCEL_DESCRIPTORS * sizeof(int))];
	} control;
	struct iovec vector = {.iov_base = parcel->bytes, .iov_len = sizeof(parcel->bytes)};
	struct msghdr message = {.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t length;

	*parcel = (struct parcel){.length = 0};
	length = recvmsg(socket, &message, how | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (length < 0)
		return heard_of(length);
	parcel_unpack(parcel, &message);
	*whole = (message.msg_flags & MSG_CTRUNC) == 0;
	parcel->starved = !*whole && parcel->count < descriptors;
	if (*whole && (message.msg_flags & MSG_TRUNC) == 0 && parcel->count == descriptors)
		parcel->length = (size_t)length;
	return heard_of(length);
}

enum heard parcel_receive(struct parcel *parcel, int socket, unsigned descriptors)
{
	bool whole;
	enum heard heard = parcel_read(parcel, socket, descriptors, 0, &whole);

	if (heard == HEARD_END)
		parcel_close(parcel);
	return heard;
}

enum heard parcel_take(struct parcel *parcel, int socket, unsigned descriptors)
{
	bool whole;
	enum heard heard = parcel_read(parcel, socket, descriptors, MSG_PEEK, &whole);

	/* The parcel has its descriptors, so none is closed with the message. */
	if (heard == HEARD_MESSAGE && whole)
		(void)recv(socket, NULL, 0, MSG_DONTWAIT);
	return heard;
}

enum heard byte_take(int socket)
{
	char byte;
	struct iovec vector = {.iov_base = &byte, .iov_len = sizeof(byte)};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
	ssize_t length = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);

	if ((message.msg_flags & MSG_CTRUNC) != 0)
		return HEARD_END;
	return length > 0 ? heard_of(recv(socket, &byte, sizeof(byte), MSG_DONTWAIT))
			  : heard_of(length);
}

/* A message comes with its sender's credentials, so that an empty one is no end. */
bool messages_drop(int socket)
{
	const int yes = 1;

	if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0)
		return false;
	for (;;) {
		union {
			struct cmsghdr align;
			char bytes[CMSG_SPACE(sizeof(struct ucred))];
		} control;
		struct msghdr message = {
			.msg_control = &control, .msg_controllen = sizeof(control)};

		if (recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) < 0 ||
			(message.msg_flags & MSG_CTRUNC) != 0)
			return false;
		if (message.msg_controllen == 0)
			return true;
		(void)recv(socket, NULL, 0, MSG_DONTWAIT);
	}
}
