/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pages.c - large tables, of which only the used pages cost anything.
 *
 * Covers: lib/base/pages.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <base/pages.h>

#define BYTES ((size_t)8 << 20)

/* The line VmFlags of the mapping that holds an address, of /proc/self/smaps. */
static void flags_read(const void *address, char *flags, size_t size)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	uintptr_t first, end;
	bool here = false;
	char line[512];

	assert_non_null(file);
	flags[0] = '\0';
	while (flags[0] == '\0' && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
			here = (uintptr_t)address >= first && (uintptr_t)address < end;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			snprintf(flags, size, "%s", line + 8);
	}
	fclose(file);
}

static void pages__are_zero_and_of_the_usual_size(void **state)
{
	char *pages = pages_map(BYTES);
	char flags[512];

	(void)state;
	assert_non_null(pages);
	assert_int_equal(pages[0] | pages[BYTES - 1], 0);
	/* The kernel takes no hugepage for them, if it has some. */
	flags_read(pages, flags, sizeof(flags));
	if (access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0)
		assert_non_null(strstr(flags, " nh"));
	pages_unmap(pages, BYTES);
}

static void pages__that_cannot_be_had_are_null(void **state)
{
	(void)state;
	assert_null(pages_map(0));
	assert_null(pages_map(SIZE_MAX / 2));
	pages_unmap(NULL, BYTES);
	assert_null(pages_map_root(SIZE_MAX / 2));
	pages_unmap_root(NULL, BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages__are_zero_and_of_the_usual_size),
		cmocka_unit_test(pages__that_cannot_be_had_are_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
