/* SPDX-License-Identifier: BSD-3-Clause */
/* immintrin.h - x86intrin.h, by the name that DPDK's <rte_vect.h> uses with clang. */
#ifdef __AVX__
#include_next <immintrin.h>
#else
#include <x86intrin.h>
#endif
