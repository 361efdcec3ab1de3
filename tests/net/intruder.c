/* SPDX-License-Identifier: BSD-3-Clause */
/* intruder.c - what the user of a program with more rights has it load, if he can: privileged.py
 * looks whether it was. */
#include <unistd.h>

__attribute__((constructor)) static void intrude(void)
{
	static const char text[] = "the intruder runs\n";

	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
}
