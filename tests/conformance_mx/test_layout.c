/* SPDX-License-Identifier: BSD-3-Clause */
/* test_layout.c - compiling layout.h as C is the test. */
#include "layout.h"

int main(void)
{
	return 0;
}
