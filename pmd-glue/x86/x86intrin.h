/* SPDX-License-Identifier: BSD-3-Clause */
/* x86intrin.h - what DPDK's headers need of gcc's header of this name. That one declares the vector
 * instructions of every x86 CPU, and takes five times as long to compile as <rte_mbuf.h> without
 * it: 0.25 s in each source. Without AVX, <rte_memcpy.h> uses SSE4 alone. */
#ifdef __AVX__
#include_next <x86intrin.h>
#else
#include <nmmintrin.h>
#endif
