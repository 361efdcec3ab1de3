/* SPDX-License-Identifier: BSD-3-Clause */
/* remedy.c - see remedy.h. */
#include <base/remedy.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>

static const char *files_cure(void)
{
	static _Thread_local char text[160];
	struct rlimit limit = {0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	snprintf(text, sizeof(text),
		"this process may have %llu files open: raise the hard limit of open files, as "
		"root "
		"by ulimit -n %llu",
		(unsigned long long)limit.rlim_cur,
		(unsigned long long)(limit.rlim_cur < 1024 ? 1024 : 4 * limit.rlim_cur));
	return text;
}

/* Names the lower one of the limits of memory. */
static const char *space_cure(const char *otherwise)
{
	static _Thread_local char text[160];
	struct rlimit space = {RLIM_INFINITY, 0}, data = {RLIM_INFINITY, 0};
	bool lower;

	(void)getrlimit(RLIMIT_AS, &space);
	(void)getrlimit(RLIMIT_DATA, &data);
	lower = data.rlim_cur < space.rlim_cur;
	if (!lower && space.rlim_cur == RLIM_INFINITY)
		return otherwise;
	snprintf(text, sizeof(text),
		"this process may have %llu MB of %s: raise the limit by ulimit -%c unlimited",
		(unsigned long long)(lower ? data.rlim_cur : space.rlim_cur) >> 20,
		lower ? "data" : "address space", lower ? 'd' : 'v');
	return text;
}

static const char *size_cure(const char *otherwise)
{
	static _Thread_local char text[160];
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return otherwise;
	snprintf(text, sizeof(text),
		"this process may write files of %llu KiB only: raise the limit by ulimit -f "
		"unlimited",
		(unsigned long long)limit.rlim_cur >> 10);
	return text;
}

const char *remedy_for(int error, const char *otherwise)
{
	switch (error) {
	case EMFILE:
		return files_cure();
	case ENOMEM:
		return space_cure(otherwise);
	case EFBIG:
		return size_cure(otherwise);
	case EPERM:
	case ENOSYS:
		return "the kernel, or a seccomp filter such as a container's, forbids this system "
		       "call: allow memfd_create, eventfd2, timerfd_create, epoll_create1 and "
		       "madvise";
	default:
		return otherwise;
	}
}

const char *remedy_for_disk(int error, const char *otherwise)
{
	return error == ENOSPC || error == EDQUOT ? "remove files from that file system"
						  : otherwise;
}

const char *remedy_for_memory(void)
{
	return remedy_for(ENOMEM,
		"end programs that use much memory, or raise the memory limit of this container");
}

void remedy_files_take(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= files.rlim_max)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}
