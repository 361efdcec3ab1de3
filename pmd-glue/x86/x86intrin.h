/* SPDX-License-Identifier: BSD-3-Clause */
/* x86intrin.h - what DPDK's headers need of gcc's header of this name. That one declares the vector
 * instructions of every x86 CPU, and takes five times as long to compile as <rte_mbuf.h> without
 * it: 0.25 s in each source. Without AVX, <rte_memcpy.h> uses SSE4 alone. Instructions without
 * vectors, such as __rdtsc(), are there as well. */
#ifdef __AVX__
#include_next <x86intrin.h>
#else
#include <nmmintrin.h>
#if __has_include(<x86gprintrin.h>)
#include <x86gprintrin.h>
#endif
#endif
