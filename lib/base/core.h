/* SPDX-License-Identifier: BSD-3-Clause */
/* core.h - marks what libpostern-core exports to front ends, which may be libraries of their own.
 *
 * The names carry a prefix in the library, because a program that has a function of the same name
 * would be called in its place.
 */
#ifndef BASE_CORE_H
#define BASE_CORE_H

#define CORE_API(name) __asm__("postern_core_" #name) __attribute__((visibility("default")))

#endif
