/* SPDX-License-Identifier: BSD-3-Clause */
/* share.c - PTL_SHARE: letting DPDK's secondary processes, such as dpdk-dumpcap, into this one.
 *
 * A secondary process maps the primary's memory at the same addresses, by the names of its files.
 * So that memory must be hugepages in a hugetlbfs: neither ordinary pages, which EAL makes without
 * a file, nor hugepages without a name, which Postern otherwise prefers, can be mapped from
 * outside.
 *
 * I1. EAL leaves the files when a process ends. The next process with the prefix uses them again.
 *     At an orderly end they are removed here.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <rte_errno.h>
#include <rte_pdump.h>

#include <base/log.h>
#include <base/settings.h>
#include <pmd-glue/driver.h>
#include <pmd-glue/hugepages.h>
#include <pmd-glue/share.h>

#define NAME_MAX_BYTES 32u
#define MEMORY_LEAST   (UINT64_C(64) << 20)

/* A program with DPDK's archives has it. For others the library is loaded only here: it brings a
 * dozen others along, such as libpcap, and a third of the time in which a process starts. */
extern int rte_pdump_init(void) __attribute__((weak));

static char left_directory[SHARE_PATH_MAX]; /* what is to be removed: files there that begin so */
static char left_prefix[NAME_MAX_BYTES + sizeof("map_")];
static pid_t left_process;

bool share_wanted(void)
{
	return setting_text(SETTING_SHARE)[0] != '\0';
}

static bool name_usable(const char *name)
{
	size_t length = strlen(name);

	for (size_t n = 0; n < length; n++)
		if (!isalnum((unsigned char)name[n]) && !strchr("-_.", name[n]))
			return false;
	return length <= NAME_MAX_BYTES && name[0] != '.';
}

/* Can so many bytes be allocated there now? They are allocated to find out. */
static bool directory_usable(const char *directory)
{
	char name[SHARE_PATH_MAX + 32];
	struct statfs status;
	bool usable;
	int fd;

	if (statfs(directory, &status) != 0 || (size_t)status.f_bsize != hugepages_page())
		return false;
	snprintf(name, sizeof(name), "%s/postern-try-%ld", directory, (long)getpid());
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	unlink(name);
	usable = fallocate(fd, 0, 0, (off_t)MEMORY_LEAST) == 0;
	close(fd);
	return usable;
}

/* Finds a hugetlbfs of the default page size with enough memory. *mounted: there is one that this
 * user may write to. */
static bool directory_find(char *directory, size_t size, bool *mounted)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount;
	bool found = false;

	*mounted = false;
	while (mounts && !found && (mount = getmntent(mounts))) {
		if (strcmp(mount->mnt_type, "hugetlbfs") != 0 || strlen(mount->mnt_dir) >= size ||
			access(mount->mnt_dir, R_OK | W_OK | X_OK) != 0)
			continue;
		*mounted = true;
		found = directory_usable(mount->mnt_dir);
		if (found)
			snprintf(directory, size, "%s", mount->mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
	return found;
}

int share_check(char *directory, size_t size)
{
	const char *name = setting_text(SETTING_SHARE);
	bool mounted;

	if (!name_usable(name)) {
		log_error("PTL_SHARE=%s is invalid: use at most %u letters, digits, dots, hyphens "
			  "and "
			  "underscores",
			name, NAME_MAX_BYTES);
		return -1;
	}
	if (directory_find(directory, size, &mounted))
		return 0;
	if (mounted)
		log_error("PTL_SHARE=%s needs %u MB of hugepages, which DPDK's secondary processes "
			  "can map, unlike ordinary memory: sysctl vm.nr_hugepages=512",
			name, (unsigned)(MEMORY_LEAST >> 20));
	else
		log_error("PTL_SHARE=%s needs a hugetlbfs that this user may write to: mkdir -p "
			  "/dev/hugepages && mount -t hugetlbfs none /dev/hugepages",
			name);
	return -1;
}

static void share_end(void)
{
	DIR *files = left_process == getpid() ? opendir(left_directory) : NULL;
	struct dirent *file;

	while (files && (file = readdir(files)))
		if (strncmp(file->d_name, left_prefix, strlen(left_prefix)) == 0)
			unlinkat(dirfd(files), file->d_name, 0);
	if (files)
		closedir(files);
}

int share_begin(const char *directory)
{
	const char *name = setting_text(SETTING_SHARE);
	int (*init)(void) = rte_pdump_init;

	snprintf(left_directory, sizeof(left_directory), "%s", directory);
	snprintf(left_prefix, sizeof(left_prefix), "%smap_", name);
	left_process = getpid();
	if (atexit(share_end) != 0)
		log_debug(LOG_DPDK, "no handler for the end: %smap_* will stay in %s", name,
			directory);
	if (!init && !(init = library_function("PTL_SHARE", "pdump", "rte_pdump_init")))
		return -1;
	if (init() != 0) {
		log_error("PTL_SHARE=%s: DPDK cannot answer dpdk-dumpcap: %s: unset PTL_SHARE",
			name, rte_strerror(rte_errno));
		return -1;
	}
	log_info("dpdk-dumpcap --file-prefix=%s captures from this process", name);
	return 0;
}
