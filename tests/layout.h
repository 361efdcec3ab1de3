/* SPDX-License-Identifier: BSD-3-Clause */
/* layout.h - how the layout of a public header is checked, when a C or a C++ program compiles. */
#ifndef TESTS_LAYOUT_H
#define TESTS_LAYOUT_H

#include <assert.h>
#include <stddef.h>

#define SIZE(type, bytes)          static_assert(sizeof(type) == (bytes), #type)
#define PLACE(type, field, offset) static_assert(offsetof(type, field) == (offset), #type)
#define NUMBER(name, value)        static_assert((name) == (value), #name)

#endif
