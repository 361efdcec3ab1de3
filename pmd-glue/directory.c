/* SPDX-License-Identifier: BSD-3-Clause */
/* directory.c - see directory.h. */
#include <pmd-glue/directory.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/environment.h>
#include <base/log.h>
#include <base/remedy.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/rendezvous.h>
#include <pmd-glue/kinds.h>

#define NAME_DEFAULT  "default"
#define NAME_LENGTH   32u
#define PID_MAX       0x7fffffffu /* of those that RENDEZVOUS_PID_ANY finds */
#define PIDS_TRIED    4096u
#define PID_WAIT      200u /* ms for a lock that is held */
#define PID_TRY       10u  /* the same when another process id will do */
#define SWEPT_AT_ONCE 4096u
#define LOCK_WAIT     200u  /* ms for a directory that is locked */
#define ENTER_TRIES   1000u /* into a directory that others remove */

static void close_and_forget(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A long path is reached by the directory's descriptor; directory_open() has seen to it that this
 * is possible. So is each path in a program with more rights than its user, who may exchange the
 * directories above. */
struct sockaddr_un directory_address(const struct directory *directory, uint32_t pid)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t room = sizeof(address.sun_path);
	if (environment_is_privileged() ||
		(size_t)snprintf(address.sun_path, room, "%s/%u", directory->path, pid) >= room)
		snprintf(address.sun_path, room, "/proc/self/fd/%d/%u", directory->fd, pid);
	return address;
}

static bool name_is_valid(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789-_.");
	return name[length] == 0 && length <= NAME_LENGTH && name[0] != '.';
}

static bool name_check(const char *name)
{
	if (name_is_valid(name))
		return true;
	log_error("node:%s: this name is invalid: write at most %u letters, digits, '-', '_' and "
		  "'.', the first of which is no '.'",
		name, NAME_LENGTH);
	return false;
}

/* Locks a directory, so that directory_discard(), and programs that remove old files from /tmp,
 * spare it. A process that removes it has it locked for a moment. A file system may know no
 * locks. */
static void directory_lock(int fd)
{
	const struct timespec pause = {.tv_nsec = MILLISECOND};
	for (unsigned n = 0; n < LOCK_WAIT; n++) {
		if (flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return;
		nanosleep(&pause, NULL);
	}
}

/* Is it still the one of that name? */
static bool directory_is_there(int upper, const char *name, int fd)
{
	struct stat named, status;
	return fstatat(upper, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &status) == 0 &&
	       named.st_ino == status.st_ino && named.st_dev == status.st_dev;
}

/* May only this user enter it? Returns false after an error line. */
static bool level_fine(const struct directory *directory, const struct stat *status)
{
	if (!S_ISDIR(status->st_mode) || status->st_uid != directory->uid) {
		directory->tell("node: %s is %s user %u: remove it, or set XDG_RUNTIME_DIR to a "
				"directory of your own",
			directory->path,
			S_ISDIR(status->st_mode) ? "a directory of" : "no directory, and is of",
			status->st_uid);
		return false;
	}
	if ((status->st_mode & (S_IRWXG | S_IRWXO)) != 0) {
		directory->tell("node: %s can be entered by other users: close it by chmod 700 %s",
			directory->path, directory->path);
		return false;
	}
	return true;
}

/* A directory in the upper one, which is made if need be. -1 after an error line, or with *again:
 * it was removed meanwhile. */
static int level_open(const struct directory *directory, int upper, const char *name, bool *again)
{
	struct stat status;
	int fd;
	*again = false;
	if (mkdirat(upper, name, S_IRWXU) != 0 && errno != EEXIST) {
		directory->tell("node: %s cannot be made: %s: %s", directory->path, strerror(errno),
			remedy_for_disk(errno, "set XDG_RUNTIME_DIR to a directory of your own"));
		return -1;
	}
	if (fstatat(upper, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!level_fine(directory, &status))
			return -1;
		fd = openat(upper, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* The name may be another directory's by now: the upper one may belong to the user
		 * of a set-uid program. */
		if (fd >= 0 && (fstat(fd, &status) != 0 || !level_fine(directory, &status))) {
			close(fd);
			return -1;
		}
		if (fd < 0 && errno == EACCES) {
			directory->tell("node: %s is closed to its own user: chmod 700 %s, and set "
					"a umask that leaves the user's own rights, such as 077",
				directory->path, directory->path);
			return -1;
		}
		if (fd >= 0)
			directory_lock(fd);
		if (fd >= 0 && directory_is_there(upper, name, fd))
			return fd;
		close_and_forget(&fd);
	}
	*again = true;
	return -1;
}

/* Goes a level down, to a directory that only this user may enter. path: of the upper level, and
 * then of this one. Returns false after an error line. */
static bool level_enter(struct directory *directory, const char *name)
{
	size_t length = strlen(directory->path);
	int upper = directory->fd;
	bool again = true;
	if ((size_t)snprintf(directory->path + length, sizeof(directory->path) - length, "/%s",
		    name) >= sizeof(directory->path) - length) {
		directory->tell(
			"node: the path %s is too long: set XDG_RUNTIME_DIR to a shorter one",
			directory->path);
		return false;
	}
	directory->fd = -1;
	for (unsigned n = 0; n < ENTER_TRIES && directory->fd < 0 && again; n++)
		directory->fd = level_open(directory, upper, name, &again);
	if (directory->fd < 0 && again)
		directory->tell("node: %s cannot be opened: %s", directory->path, strerror(errno));
	close(upper);
	return directory->fd >= 0;
}

/* The number of this user outside the user namespace, where another user may have `uid`. */
static unsigned long uid_outside(uid_t uid)
{
	unsigned long first, outside, count, found = uid;
	FILE *map = fopen("/proc/self/uid_map", "re");
	while (map && fscanf(map, "%lu %lu %lu", &first, &outside, &count) == 3)
		if (uid >= first && uid - first < count)
			found = outside + (uid - first);
	if (map)
		fclose(map);
	return found;
}

/* In a directory of all users. A user of a namespace, such as unshare -Ur makes, spares the name of
 * the user that has this number outside. */
static void base_name(uid_t uid, char *name, size_t size)
{
	unsigned long outside = uid_outside(uid);
	if (outside == uid)
		snprintf(name, size, "postern-%u", uid);
	else
		snprintf(name, size, "postern-%u-%lu", uid, outside);
}

/* Launchers copy XDG_RUNTIME_DIR to hosts where the user is not logged in. The directory of logins
 * is missing there, so no process of the user has it. */
static bool login_is_missing(const struct directory *directory)
{
	char path[sizeof("/run/user/4294967295")];

	snprintf(path, sizeof(path), "/run/user/%u", directory->uid);
	return strcmp(directory->path, path) == 0 && access(path, F_OK) != 0 && errno == ENOENT;
}

/* Opens the directory that all rendezvous of this user lie below, and gives the name of that
 * level. */
static bool base_enter(struct directory *directory, char *name, size_t size)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	const uid_t owner = environment_is_privileged() ? getuid() : directory->uid;
	struct stat status;
	snprintf(name, size, "postern");
	if (environment_runtime(directory->path, sizeof(directory->path))) {
		directory->fd = open(directory->path, flags);
		if (directory->fd >= 0 && fstat(directory->fd, &status) == 0 &&
			status.st_uid == owner) {
			/* Of a set-uid program, beside the user's. */
			if (owner != directory->uid)
				snprintf(name, size, "postern-%u", directory->uid);
			return true;
		}
		if (directory->fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
			directory->tell("node: %s cannot be opened: %s: %s", directory->path,
				strerror(errno), remedy_for(errno, remedy_for_memory()));
			return false;
		}
		close_and_forget(&directory->fd);
	}
	directory->displaced = directory->path[0] != '\0' && !login_is_missing(directory);
	base_name(directory->uid, name, size);
	snprintf(directory->path, sizeof(directory->path), "/tmp");
	directory->fd = open("/tmp", flags);
	if (directory->fd < 0)
		directory->tell(
			"node: /tmp cannot be opened: %s: set XDG_RUNTIME_DIR to a directory of "
			"your own",
			strerror(errno));
	return directory->fd >= 0;
}

/* Processes of the user that have the right setting are in another directory. */
static void displaced_warn(const struct directory *directory)
{
	static bool warned;
	char given[sizeof(directory->path)];

	if (!directory->displaced || warned)
		return;
	warned = true;
	(void)environment_runtime(given, sizeof(given));
	log_warning("XDG_RUNTIME_DIR=%.200s is not a directory of user %u, so this "
		    "process uses %.200s: set XDG_RUNTIME_DIR to the same directory in "
		    "all processes, or unset it in all",
		given, directory->uid, directory->path);
}

/* Enters the directory of all rendezvous of this user. */
static bool rendezvous_enter(struct directory *directory, directory_tell *tell)
{
	char base[sizeof("postern-4294967295-4294967295")];

	*directory = (struct directory){.fd = -1, .lock = -1, .uid = geteuid(), .tell = tell};
	return base_enter(directory, base, sizeof(base)) && level_enter(directory, base);
}

static bool directory_enter(struct directory *directory, const char *name, directory_tell *tell)
{
	if (!name || !name[0])
		name = NAME_DEFAULT;
	if (!rendezvous_enter(directory, tell) || !name_check(name) ||
		!level_enter(directory, name))
		return false;
	if ((environment_is_privileged() ||
		    strlen(directory->path) + sizeof("/4294967295") >
			    sizeof(((struct sockaddr_un *)NULL)->sun_path)) &&
		faccessat(AT_FDCWD, "/proc/self/fd", X_OK, AT_EACCESS) != 0) {
		directory->tell(
			"node: %s is too long for the path of a socket: set XDG_RUNTIME_DIR to a "
			"shorter one, or mount /proc",
			directory->path);
		return false;
	}
	directory->lock = openat(directory->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		S_IRUSR | S_IWUSR);
	/* Whatever the umask. */
	if (directory->lock >= 0)
		(void)fchmod(directory->lock, S_IRUSR | S_IWUSR);
	else
		directory->tell("node: %s/lock cannot be opened: %s: %s", directory->path,
			strerror(errno), remedy_for_disk(errno, "remove it"));
	return directory->lock >= 0;
}

bool directory_open(struct directory *directory, const char *name, directory_tell *tell)
{
	if (!directory_enter(directory, name, tell))
		return false;
	displaced_warn(directory);
	return true;
}

/* H1. type: F_WRLCK takes the lock unless another process has it; F_UNLCK gives it back. */
static bool pid_lock(const struct directory *directory, uint32_t pid, short type)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)pid, .l_len = 1};

	return fcntl(directory->lock, F_OFD_SETLK, &lock) == 0;
}

static bool pid_take_any(struct directory *directory)
{
	for (uint32_t n = 0; n < PIDS_TRIED; n++) {
		directory->pid = ((uint32_t)getpid() + n) & PID_MAX;
		if (pid_lock(directory, directory->pid, F_WRLCK))
			return true;
	}
	log_error("node: no process id is free in %s: %s: give PtlNIInit a process id",
		directory->path, strerror(errno));
	return false;
}

/* Another process that sweeps holds a lock for a moment, as does a process that is being killed. */
static bool pid_take(struct directory *directory, uint32_t pid)
{
	const struct timespec pause = {.tv_nsec = MILLISECOND};
	const unsigned wait = kinds_pid_is_tried() ? PID_TRY : PID_WAIT;
	int error = 0;
	directory->pid = pid;
	for (unsigned n = 0; n < wait; n++) {
		if (pid_lock(directory, pid, F_WRLCK))
			return true;
		error = errno;
		if (error != EAGAIN && error != EACCES)
			break;
		nanosleep(&pause, NULL);
	}
	if (error == EAGAIN || error == EACCES) {
		kinds_pid_taken();
		if (!kinds_pid_is_tried())
			log_error("node: process id %u is in use in %s: end the process that has "
				  "it, choose another id, or let the library choose one",
				pid, directory->path);
		return false;
	}
	log_error("node: %s/lock cannot be locked: %s: use a file system with locks",
		directory->path, strerror(error));
	return false;
}

static void socket_remove(const struct directory *directory, uint32_t pid)
{
	char name[sizeof("4294967295")];
	snprintf(name, sizeof(name), "%u", pid);
	unlinkat(directory->fd, name, 0);
}

static DIR *sockets_list(const struct directory *directory)
{
	int copy = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
	if (!list)
		close_and_forget(&copy);
	return list;
}

/* The next name in a list that is another process's. */
static bool sockets_next(const struct directory *directory, DIR *list, uint32_t *pid)
{
	struct dirent *entry;
	while ((entry = readdir(list))) {
		char *end;
		unsigned long number = strtoul(entry->d_name, &end, 10);
		*pid = (uint32_t)number;
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && *end == 0 &&
			number < RENDEZVOUS_PID_ANY && number != directory->pid)
			return true;
	}
	return false;
}

/* Removes the sockets of other processes that have died. */
static void directory_sweep(const struct directory *directory)
{
	DIR *list = sockets_list(directory);
	uint32_t pid;
	for (unsigned n = 0; list && n < SWEPT_AT_ONCE && sockets_next(directory, list, &pid);
		n++) {
		if (!pid_lock(directory, pid, F_WRLCK))
			continue;
		socket_remove(directory, pid);
		pid_lock(directory, pid, F_UNLCK);
	}
	if (list)
		closedir(list);
}

static int process_compare(const void *left, const void *right)
{
	const struct glue_process *a = left, *b = right;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* H1. Has certainly no other process this process id? */
static bool pid_is_free(const struct directory *directory, uint32_t pid)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)pid, .l_len = 1};

	return fcntl(directory->lock, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

bool directory_lacks(const struct directory *directory, uint32_t pid)
{
	return pid != directory->pid && pid_is_free(directory, pid);
}

/* Is this process id taken by another process? *uid: by whose. */
static bool pid_taken(const struct directory *directory, uint32_t pid, uid_t *uid)
{
	char name[sizeof("4294967295")];
	struct stat status;
	snprintf(name, sizeof(name), "%u", pid);
	if (pid_is_free(directory, pid) ||
		fstatat(directory->fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	*uid = status.st_uid;
	return true;
}

unsigned directory_present(
	const struct directory *directory, struct glue_process *processes, unsigned count)
{
	DIR *list = sockets_list(directory);
	struct glue_process process;
	unsigned found = 0;
	while (list && sockets_next(directory, list, &process.pid)) {
		if (!pid_taken(directory, process.pid, &process.uid))
			continue;
		if (found < count)
			processes[found] = process;
		found++;
	}
	if (list)
		closedir(list);
	if (count > 0)
		qsort(processes, found < count ? found : count, sizeof(*processes),
			process_compare);
	return found;
}

bool directory_take(struct directory *directory, uint32_t pid)
{
	if (pid == RENDEZVOUS_PID_ANY ? !pid_take_any(directory) : !pid_take(directory, pid))
		return false;
	socket_remove(directory, directory->pid);
	directory_sweep(directory);
	return true;
}

void directory_leave(const struct directory *directory)
{
	socket_remove(directory, directory->pid);
}

void directory_close(struct directory *directory)
{
	close_and_forget(&directory->lock);
	close_and_forget(&directory->fd);
}

/* Each process in the directory has locked it. The lock is tried without waiting, so of two that
 * leave at once both may find the other there; then the directory stays. */
void directory_discard(struct directory *directory)
{
	int upper;
	if (directory->lock < 0 || flock(directory->fd, LOCK_EX | LOCK_NB) != 0)
		return;
	directory->pid = RENDEZVOUS_PID_ANY;
	directory_sweep(directory);
	unlinkat(directory->fd, "lock", 0);
	upper = openat(directory->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (upper >= 0)
		unlinkat(upper, strrchr(directory->path, '/') + 1, AT_REMOVEDIR);
	close_and_forget(&upper);
}

static void survey_sockets(const struct directory *directory, struct directory_survey *survey)
{
	DIR *list = sockets_list(directory);
	unsigned files = 0, known;
	uint32_t pid;
	uid_t uid;
	while (list && sockets_next(directory, list, &pid)) {
		if (pid_taken(directory, pid, &uid))
			survey->living++;
		else
			survey->dead++;
	}
	if (!list)
		return;
	for (rewinddir(list); readdir(list);)
		files++;
	known = survey->living + survey->dead + 3; /* the lock, and two names of directories */
	survey->strange = files > known ? files - known : 0;
	closedir(list);
}

/* Is nobody in this other node? Each process there has locked the directory. */
static bool node_is_idle(int base, const char *name, const struct stat *own)
{
	int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	bool idle = fd >= 0 && fstat(fd, &status) == 0 && status.st_ino != own->st_ino &&
		    flock(fd, LOCK_EX | LOCK_NB) == 0;
	close_and_forget(&fd);
	return idle;
}

static void survey_nodes(const struct directory *directory, struct directory_survey *survey)
{
	int base = openat(directory->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = base >= 0 ? fdopendir(base) : NULL;
	FILE *names = NULL;
	struct dirent *entry;
	struct stat own;
	size_t size;
	if (!list || fstat(directory->fd, &own) != 0) {
		close_and_forget(&base);
		return;
	}
	while ((entry = readdir(list))) {
		if (!name_is_valid(entry->d_name) || !node_is_idle(base, entry->d_name, &own))
			continue;
		survey->idle++;
		if (!names)
			names = open_memstream(&survey->idle_names, &size);
		if (names)
			fprintf(names, "%s%s", survey->idle == 1 ? "" : " ", entry->d_name);
	}
	if (names)
		fclose(names);
	closedir(list);
}

bool directory_survey(const char *name, struct directory_survey *survey, directory_tell *tell)
{
	struct directory directory;
	bool opened = directory_enter(&directory, name, tell);
	*survey = (struct directory_survey){.uid = directory.uid, .displaced = directory.displaced};
	directory.pid = RENDEZVOUS_PID_ANY;
	memcpy(survey->path, directory.path, sizeof(survey->path));
	if (opened) {
		survey_sockets(&directory, survey);
		survey_nodes(&directory, survey);
	}
	directory_close(&directory);
	return opened;
}

void directory_remove(const char *name)
{
	struct directory directory;

	if (directory_open(&directory, name, log_info))
		directory_discard(&directory);
	directory_close(&directory);
}

void directory_remove_numbered(const char *begin)
{
	const size_t length = strlen(begin);
	struct dirent *entry;
	struct directory rendezvous;
	DIR *list = NULL;

	if (rendezvous_enter(&rendezvous, log_info))
		list = fdopendir(fcntl(rendezvous.fd, F_DUPFD_CLOEXEC, 0));
	while (list && (entry = readdir(list))) {
		const char *number = entry->d_name + length;

		if (strncmp(entry->d_name, begin, length) == 0 && *number != '\0' &&
			number[strspn(number, "0123456789")] == '\0')
			directory_remove(entry->d_name);
	}
	if (list)
		closedir(list);
	directory_close(&rendezvous);
}
