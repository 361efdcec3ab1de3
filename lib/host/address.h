/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - telling addresses that are certainly bad, so that a mistake of the caller's is an
 * error code and not a crash. Any thread. */
#ifndef HOST_ADDRESS_H
#define HOST_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/core.h>

/* Is p certainly no address of size writable bytes? NULL, the first page, the kernel's half,
 * misaligned, or not mapped. */
bool address_is_bad(const void *p, size_t size, size_t alignment) CORE_API(address_is_bad);
/* The bytes that this thread found mapped last: results mostly go to the same place. */
struct address_range {
	uint64_t from, bytes;
};
extern _Thread_local struct address_range address_good CORE_API(address_good)
	__attribute__((tls_model("initial-exec")));

static inline bool address_is_good(const void *p, size_t size, size_t alignment)
{
	uint64_t after = (uintptr_t)p - address_good.from;

	return ((uintptr_t)p & (alignment - 1)) == 0 && after < address_good.bytes &&
	       size <= address_good.bytes - after;
}

#define ADDRESS_IS_GOOD(p) address_is_good(p, sizeof(*(p)), _Alignof(__typeof__(*(p))))
#define ADDRESS_IS_BAD(p)                                                                          \
	(!ADDRESS_IS_GOOD(p) && address_is_bad(p, sizeof(*(p)), _Alignof(__typeof__(*(p)))))
/* Is the memory of a descriptor certainly bad? */
bool address_range_is_bad(uint64_t start, uint64_t length) CORE_API(address_range_is_bad);

#endif
