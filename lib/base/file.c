/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c - see file.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <base/file.h>

#define LINKS_MOST 40u /* as the kernel has it */

/* A path that is gone component by component. */
struct walk {
	char rest[PATH_MAX]; /* not gone yet */
	char name[NAME_MAX + 1];
	int directory; /* reached so far */
	bool shared;   /* others may write there */
	bool process;  /* it is in /proc, whose links are none of text */
	unsigned links;
	const char *refusal;
};

/* Takes the next component out of the rest. */
static bool walk_next(struct walk *walk)
{
	size_t gap = strspn(walk->rest, "/");
	size_t length = strcspn(walk->rest + gap, "/");
	size_t used = gap + length;

	if (length == 0 || length > NAME_MAX) {
		errno = length == 0 ? ENOENT : ENAMETOOLONG;
		return false;
	}
	memcpy(walk->name, walk->rest + gap, length);
	walk->name[length] = '\0';
	memmove(walk->rest, walk->rest + used, strlen(walk->rest + used) + 1);
	return true;
}

/* Goes to a directory, whose descriptor is the walk's from now on. */
static bool walk_enter(struct walk *walk, int directory)
{
	struct stat status;
	struct statfs system;

	if (directory < 0)
		return false;
	if (walk->directory >= 0)
		close(walk->directory);
	walk->directory = directory;
	if (fstat(directory, &status) != 0 || fstatfs(directory, &system) != 0)
		return false;
	walk->shared = (status.st_mode & (S_ISVTX | S_IWOTH)) != 0;
	walk->process = system.f_type == PROC_SUPER_MAGIC;
	return true;
}

static bool walk_refuse(struct walk *walk, const char *refusal)
{
	walk->refusal = refusal;
	errno = EPERM;
	return false;
}

/* Puts what a link says in its place. */
static bool walk_link(struct walk *walk, const struct stat *status)
{
	char text[PATH_MAX];
	ssize_t length;

	if (walk->shared && status->st_uid != geteuid() && status->st_uid != 0)
		return walk_refuse(walk, "a symbolic link leads there, which is another user's");
	if (++walk->links > LINKS_MOST) {
		errno = ELOOP;
		return false;
	}
	length = readlinkat(walk->directory, walk->name, text, sizeof(text));
	if (length < 0)
		return false;
	if ((size_t)length + strlen(walk->rest) >= sizeof(walk->rest)) {
		errno = ENAMETOOLONG;
		return false;
	}
	memmove(walk->rest + length, walk->rest, strlen(walk->rest) + 1);
	memcpy(walk->rest, text, (size_t)length);
	return walk->rest[0] != '/' ||
	       walk_enter(walk, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Goes on until `name` is the last component, and no link. */
static bool walk_through(struct walk *walk)
{
	struct stat status;

	while (walk_next(walk)) {
		int follow = walk->process ? 0 : O_NOFOLLOW;

		if (follow != 0 &&
			fstatat(walk->directory, walk->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISLNK(status.st_mode)) {
			if (!walk_link(walk, &status))
				return false;
			continue;
		}
		if (walk->rest[0] == '\0')
			return true;
		if (!walk_enter(walk, openat(walk->directory, walk->name,
					      O_PATH | O_DIRECTORY | O_CLOEXEC | follow)))
			return false;
		if (walk->rest[strspn(walk->rest, "/")] == '\0') {
			errno = EISDIR;
			return false;
		}
	}
	return false;
}

/* May the file be written to (I2)? */
static bool walk_allows(struct walk *walk, const struct stat *status)
{
	bool regular = S_ISREG(status->st_mode);

	if (status->st_uid != geteuid() && (regular || status->st_uid != 0))
		return walk_refuse(walk, "it is there and belongs to another user");
	if (walk->shared && regular && status->st_nlink > 1)
		return walk_refuse(walk, "it is there and has another name as well");
	return true;
}

static int walk_open(struct walk *walk, int flags, mode_t mode)
{
	struct stat status;
	int fd;

	if (walk->process)
		return openat(walk->directory, walk->name, flags & ~O_CREAT);
	if (flags & O_CREAT) {
		fd = openat(walk->directory, walk->name, flags | O_EXCL | O_NOFOLLOW, mode);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	flags = (flags & ~O_CREAT) | O_NOFOLLOW;
	if (fstatat(walk->directory, walk->name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		!walk_allows(walk, &status))
		return -1;
	fd = openat(walk->directory, walk->name, flags);
	/* The name may stand for another file by now. */
	if (fd >= 0 && (fstat(fd, &status) != 0 || !walk_allows(walk, &status))) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

int file_write(const char *name, int flags, mode_t mode, const char **reason)
{
	struct walk walk = {.directory = -1};
	int fd = -1, error = ENAMETOOLONG;

	if (strlen(name) < sizeof(walk.rest)) {
		memcpy(walk.rest, name, strlen(name) + 1);
		if (walk_enter(&walk,
			    open(name[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC)) &&
			walk_through(&walk))
			fd = walk_open(&walk, flags | O_WRONLY | O_CLOEXEC, mode);
		error = errno;
	}
	if (walk.directory >= 0)
		close(walk.directory);
	if (fd >= 0)
		return fd;
	*reason = walk.refusal ? walk.refusal : strerror(error);
	errno = error;
	return -1;
}

FILE *file_stream(const char *name, const char **reason)
{
	struct stat status;
	FILE *stream = NULL;
	int fd = file_write(name, O_CREAT | O_NOCTTY, 0666, reason);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && (!S_ISREG(status.st_mode) || ftruncate(fd, 0) == 0))
		stream = fdopen(fd, "w");
	if (!stream) {
		*reason = strerror(errno);
		close(fd);
	}
	return stream;
}
