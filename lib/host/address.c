/* SPDX-License-Identifier: BSD-3-Clause */
/* address.c - telling addresses that are certainly bad, so that a mistake of the caller's is an
 * error code and not a crash. */
#include <host/address.h>

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_PAGE 4096u
/* Where the part of the address space ends that programs can have. */
#if defined(__x86_64__)
#define ADDRESS_END (UINT64_C(1) << 47)
#else
#define ADDRESS_END (UINT64_C(1) << 52)
#endif
#define LENGTH_MAX (UINT64_C(1) << 40) /* bytes of a descriptor, as of a message */

static uint64_t page_size(void)
{
	static _Atomic uint64_t known;
	uint64_t size = atomic_load_explicit(&known, memory_order_relaxed);

	if (size == 0) {
		size = (uint64_t)sysconf(_SC_PAGESIZE);
		atomic_store_explicit(&known, size, memory_order_relaxed);
	}
	return size;
}

/* Is every page of the range mapped? MS_ASYNC does nothing else but find that out; msync() itself
 * would be a cancellation point (cancel.h). */
static bool range_is_mapped(uint64_t start, uint64_t length)
{
	uint64_t page = page_size();
	uint64_t first = start & ~(page - 1);
	int saved = errno;
	bool mapped;

	mapped =
		syscall(SYS_msync, first, start + length - first, MS_ASYNC) == 0 || errno != ENOMEM;
	errno = saved;
	return mapped;
}

static bool range_is_possible(uint64_t start, uint64_t length)
{
	return start >= FIRST_PAGE && start < ADDRESS_END && length <= ADDRESS_END - start;
}

_Thread_local struct address_range address_good;

bool address_is_bad(const void *p, size_t size, size_t alignment)
{
	uint64_t start = (uintptr_t)p;
	uint64_t page, end;

	if (!range_is_possible(start, size) || (start & (alignment - 1)) != 0)
		return true;
	if (address_is_good(p, size, alignment))
		return false;
	if (!range_is_mapped(start, size))
		return true;
	page = page_size();
	end = start + size;
	address_good.from = start & ~(page - 1);
	address_good.bytes = ((end + page - 1) & ~(page - 1)) - address_good.from;
	return false;
}

bool address_range_is_bad(uint64_t start, uint64_t length)
{
	if (length == 0)
		return false;
	return length > LENGTH_MAX || !range_is_possible(start, length) ||
	       !range_is_mapped(start, length);
}
