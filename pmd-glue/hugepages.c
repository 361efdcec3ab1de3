/* SPDX-License-Identifier: BSD-3-Clause */
/* hugepages.c - asks the kernel how many hugepages there are. Changes nothing. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pmd-glue/hugepages.h>

/* The number behind a label of /proc/meminfo. */
static uint64_t meminfo_read(const char *label)
{
	char line[128];
	uint64_t value = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		char name[64];
		uint64_t number;
		if (sscanf(line, "%63[^:]: %" SCNu64, name, &number) == 2 &&
			__builtin_strcmp(name, label) == 0)
			value = number;
	}
	fclose(file);
	return value;
}

size_t hugepages_page(void)
{
	return (size_t)meminfo_read("Hugepagesize") << 10;
}

uint64_t hugepages_free(void)
{
	uint64_t free_pages = meminfo_read("HugePages_Free");
	uint64_t promised = meminfo_read("HugePages_Rsvd");
	return free_pages <= promised ? 0 : (free_pages - promised) * hugepages_page();
}

unsigned hugepages_wanted(void)
{
	uint64_t page = hugepages_page() ? hugepages_page() : UINT64_C(2) << 20;
	uint64_t used = meminfo_read("HugePages_Total") - hugepages_free() / page;
	return (unsigned)(used + (HUGEPAGES_ADVISED + page - 1) / page);
}

bool hugepages_usable(uint64_t bytes)
{
	size_t page = hugepages_page();
	bool usable;
	int fd;
	if (page == 0 || hugepages_free() == 0 || hugepages_free() < bytes)
		return false;
	fd = memfd_create("postern-try", MFD_CLOEXEC | MFD_HUGETLB);
	if (fd < 0)
		return false;
	usable = fallocate(fd, 0, 0, (off_t)page) == 0;
	close(fd);
	return usable;
}
