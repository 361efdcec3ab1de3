/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - see place.h. */
#include <pmd-glue/place.h>

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

/* A long path is reached by the directory's descriptor; place_open() has seen to it that this is
 * possible. So is each path in a program with more rights than its user, who may exchange the
 * directories above. */
struct sockaddr_un place_address(const struct place *place, uint32_t pid)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t room = sizeof(address.sun_path);
	if (environment_is_privileged() ||
		(size_t)snprintf(address.sun_path, room, "%s/%u", place->path, pid) >= room)
		snprintf(address.sun_path, room, "/proc/self/fd/%d/%u", place->directory, pid);
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

/* Locks a directory, so that place_discard(), and programs that remove old files from /tmp, spare
 * it. A process that removes it has it locked for a moment. A file system may know no locks. */
static void directory_keep(int directory)
{
	const struct timespec pause = {.tv_nsec = MILLISECOND};
	for (unsigned n = 0; n < LOCK_WAIT; n++) {
		if (flock(directory, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return;
		nanosleep(&pause, NULL);
	}
}

/* Is it still the one of that name? */
static bool directory_is_there(int upper, const char *name, int directory)
{
	struct stat named, status;
	return fstatat(upper, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(directory, &status) == 0 && named.st_ino == status.st_ino &&
	       named.st_dev == status.st_dev;
}

/* May only this user enter it? Returns false after an error line. */
static bool level_fine(const struct place *place, const struct stat *status)
{
	if (!S_ISDIR(status->st_mode) || status->st_uid != place->uid) {
		place->tell("node: %s is %s user %u: remove it, or set XDG_RUNTIME_DIR to a "
			    "directory of your own",
			place->path,
			S_ISDIR(status->st_mode) ? "a directory of" : "no directory, and is of",
			status->st_uid);
		return false;
	}
	if ((status->st_mode & (S_IRWXG | S_IRWXO)) != 0) {
		place->tell("node: %s can be entered by other users: close it by chmod 700 %s",
			place->path, place->path);
		return false;
	}
	return true;
}

/* A directory in the upper one, which is made if need be. -1 after an error line, or with *again:
 * it was removed meanwhile. */
static int level_open(const struct place *place, int upper, const char *name, bool *again)
{
	struct stat status;
	int directory;
	*again = false;
	if (mkdirat(upper, name, S_IRWXU) != 0 && errno != EEXIST) {
		place->tell("node: %s cannot be made: %s: make room, or set XDG_RUNTIME_DIR to a "
			    "directory of your own",
			place->path, strerror(errno));
		return -1;
	}
	if (fstatat(upper, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!level_fine(place, &status))
			return -1;
		directory = openat(upper, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (directory >= 0)
			directory_keep(directory);
		if (directory >= 0 && directory_is_there(upper, name, directory))
			return directory;
		close_and_forget(&directory);
	}
	*again = true;
	return -1;
}

/* Goes a level down, to a directory that only this user may enter. path: of the upper level, and
 * then of this one. Returns false after an error line. */
static bool level_enter(struct place *place, const char *name)
{
	size_t length = strlen(place->path);
	int upper = place->directory;
	bool again = true;
	if ((size_t)snprintf(place->path + length, sizeof(place->path) - length, "/%s", name) >=
		sizeof(place->path) - length) {
		place->tell("node: the path %s is too long: set XDG_RUNTIME_DIR to a shorter one",
			place->path);
		return false;
	}
	place->directory = -1;
	for (unsigned n = 0; n < ENTER_TRIES && place->directory < 0 && again; n++)
		place->directory = level_open(place, upper, name, &again);
	if (place->directory < 0 && again)
		place->tell("node: %s cannot be opened: %s", place->path, strerror(errno));
	close(upper);
	return place->directory >= 0;
}

/* Opens the directory that all rendezvous of this user lie below, and gives the name of that
 * level. */
static bool base_enter(struct place *place, char *name, size_t size)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	const uid_t owner = environment_is_privileged() ? getuid() : place->uid;
	struct stat status;
	snprintf(name, size, "postern");
	if (environment_runtime(place->path, sizeof(place->path))) {
		place->directory = open(place->path, flags);
		if (place->directory >= 0 && fstat(place->directory, &status) == 0 &&
			status.st_uid == owner) {
			/* Of a set-uid program, beside the user's. */
			if (owner != place->uid)
				snprintf(name, size, "postern-%u", place->uid);
			return true;
		}
		close_and_forget(&place->directory);
	}
	place->displaced = place->path[0] != '\0';
	snprintf(name, size, "postern-%u", place->uid);
	snprintf(place->path, sizeof(place->path), "/tmp");
	place->directory = open("/tmp", flags);
	if (place->directory < 0)
		place->tell(
			"node: /tmp cannot be opened: %s: set XDG_RUNTIME_DIR to a directory of "
			"your own",
			strerror(errno));
	return place->directory >= 0;
}

/* Processes of the user that have the right setting are in another directory. */
static void displaced_warn(const struct place *place)
{
	static bool warned;
	char given[sizeof(place->path)];

	if (!place->displaced || warned)
		return;
	warned = true;
	(void)environment_runtime(given, sizeof(given));
	log_warning(
		"XDG_RUNTIME_DIR=%.200s is no directory of user %u, so this process meets others "
		"in %.200s: set it as the other processes have it, or unset it for all",
		given, place->uid, place->path);
}

/* Enters the directory of all rendezvous of this user. */
static bool rendezvous_enter(struct place *place, place_tell *tell)
{
	char base[sizeof("postern-4294967295")];

	*place = (struct place){.directory = -1, .lock = -1, .uid = geteuid(), .tell = tell};
	return base_enter(place, base, sizeof(base)) && level_enter(place, base);
}

static bool directory_open(struct place *place, const char *name, place_tell *tell)
{
	if (!name || !name[0])
		name = NAME_DEFAULT;
	if (!rendezvous_enter(place, tell) || !name_check(name) || !level_enter(place, name))
		return false;
	if ((environment_is_privileged() ||
		    strlen(place->path) + sizeof("/4294967295") >
			    sizeof(((struct sockaddr_un *)NULL)->sun_path)) &&
		faccessat(AT_FDCWD, "/proc/self/fd", X_OK, AT_EACCESS) != 0) {
		place->tell(
			"node: %s is too long for the path of a socket: set XDG_RUNTIME_DIR to a "
			"shorter one, or mount /proc",
			place->path);
		return false;
	}
	place->lock = openat(place->directory, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		S_IRUSR | S_IWUSR);
	if (place->lock < 0)
		place->tell("node: %s/lock cannot be opened: %s: remove it, or make room for it",
			place->path, strerror(errno));
	return place->lock >= 0;
}

bool place_open(struct place *place, const char *name, place_tell *tell)
{
	if (!directory_open(place, name, tell))
		return false;
	displaced_warn(place);
	return true;
}

/* H1. type: F_WRLCK takes the lock unless another process has it; F_UNLCK gives it back. */
static bool pid_lock(const struct place *place, uint32_t pid, short type)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)pid, .l_len = 1};

	return fcntl(place->lock, F_OFD_SETLK, &lock) == 0;
}

static bool pid_take_any(struct place *place)
{
	for (uint32_t n = 0; n < PIDS_TRIED; n++) {
		place->pid = ((uint32_t)getpid() + n) & PID_MAX;
		if (pid_lock(place, place->pid, F_WRLCK))
			return true;
	}
	log_error("node: no process id is free in %s: %s: choose one by hand", place->path,
		strerror(errno));
	return false;
}

/* Another process that sweeps holds a lock for a moment, as does a process that is being killed. */
static bool pid_take(struct place *place, uint32_t pid)
{
	const struct timespec pause = {.tv_nsec = MILLISECOND};
	const unsigned wait = kinds_pid_is_tried() ? PID_TRY : PID_WAIT;
	int error = 0;
	place->pid = pid;
	for (unsigned n = 0; n < wait; n++) {
		if (pid_lock(place, pid, F_WRLCK))
			return true;
		error = errno;
		if (error != EAGAIN && error != EACCES)
			break;
		nanosleep(&pause, NULL);
	}
	if (error == EAGAIN || error == EACCES) {
		kinds_pid_taken();
		if (!kinds_pid_is_tried())
			log_error("node: process id %u is in use in %s: choose another, or "
				  "let the library choose one",
				pid, place->path);
		return false;
	}
	log_error("node: %s/lock cannot be locked: %s: use a file system with locks", place->path,
		strerror(error));
	return false;
}

static void socket_remove(const struct place *place, uint32_t pid)
{
	char name[sizeof("4294967295")];
	snprintf(name, sizeof(name), "%u", pid);
	unlinkat(place->directory, name, 0);
}

static DIR *sockets_list(const struct place *place)
{
	int copy = openat(place->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
	if (!directory)
		close_and_forget(&copy);
	return directory;
}

/* The next name in a list that is another process's. */
static bool sockets_next(const struct place *place, DIR *directory, uint32_t *pid)
{
	struct dirent *entry;
	while ((entry = readdir(directory))) {
		char *end;
		unsigned long number = strtoul(entry->d_name, &end, 10);
		*pid = (uint32_t)number;
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && *end == 0 &&
			number < RENDEZVOUS_PID_ANY && number != place->pid)
			return true;
	}
	return false;
}

/* Removes the sockets of other processes that have died. */
static void place_sweep(const struct place *place)
{
	DIR *directory = sockets_list(place);
	uint32_t pid;
	for (unsigned n = 0; directory && n < SWEPT_AT_ONCE && sockets_next(place, directory, &pid);
		n++) {
		if (!pid_lock(place, pid, F_WRLCK))
			continue;
		socket_remove(place, pid);
		pid_lock(place, pid, F_UNLCK);
	}
	if (directory)
		closedir(directory);
}

static int process_compare(const void *left, const void *right)
{
	const struct glue_process *a = left, *b = right;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* H1. Has certainly no other process this process id? */
static bool pid_is_free(const struct place *place, uint32_t pid)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)pid, .l_len = 1};

	return fcntl(place->lock, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

bool place_lacks(const struct place *place, uint32_t pid)
{
	return pid != place->pid && pid_is_free(place, pid);
}

/* Is this process id taken by another process? *uid: by whose. */
static bool pid_taken(const struct place *place, uint32_t pid, uid_t *uid)
{
	char name[sizeof("4294967295")];
	struct stat status;
	snprintf(name, sizeof(name), "%u", pid);
	if (pid_is_free(place, pid) ||
		fstatat(place->directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	*uid = status.st_uid;
	return true;
}

unsigned place_present(const struct place *place, struct glue_process *processes, unsigned count)
{
	DIR *directory = sockets_list(place);
	struct glue_process process;
	unsigned found = 0;
	while (directory && sockets_next(place, directory, &process.pid)) {
		if (!pid_taken(place, process.pid, &process.uid))
			continue;
		if (found < count)
			processes[found] = process;
		found++;
	}
	if (directory)
		closedir(directory);
	if (count > 0)
		qsort(processes, found < count ? found : count, sizeof(*processes),
			process_compare);
	return found;
}

bool place_take(struct place *place, uint32_t pid)
{
	if (pid == RENDEZVOUS_PID_ANY ? !pid_take_any(place) : !pid_take(place, pid))
		return false;
	socket_remove(place, place->pid);
	place_sweep(place);
	return true;
}

void place_leave(const struct place *place)
{
	socket_remove(place, place->pid);
}

void place_close(struct place *place)
{
	close_and_forget(&place->lock);
	close_and_forget(&place->directory);
}

/* Each process in the directory has locked it. The lock is tried without waiting, so of two that
 * leave at once both may find the other there; then the directory stays. */
void place_discard(struct place *place)
{
	int upper;
	if (place->lock < 0 || flock(place->directory, LOCK_EX | LOCK_NB) != 0)
		return;
	place->pid = RENDEZVOUS_PID_ANY;
	place_sweep(place);
	unlinkat(place->directory, "lock", 0);
	upper = openat(place->directory, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (upper >= 0)
		unlinkat(upper, strrchr(place->path, '/') + 1, AT_REMOVEDIR);
	close_and_forget(&upper);
}

static void survey_sockets(const struct place *place, struct place_survey *survey)
{
	DIR *directory = sockets_list(place);
	unsigned files = 0, known;
	uint32_t pid;
	uid_t uid;
	while (directory && sockets_next(place, directory, &pid)) {
		if (pid_taken(place, pid, &uid))
			survey->living++;
		else
			survey->dead++;
	}
	if (!directory)
		return;
	for (rewinddir(directory); readdir(directory);)
		files++;
	known = survey->living + survey->dead + 3; /* the lock, and two names of directories */
	survey->strange = files > known ? files - known : 0;
	closedir(directory);
}

/* Is nobody in this other node? Each process there has locked the directory. */
static bool node_is_idle(int base, const char *name, const struct stat *own)
{
	int directory = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	bool idle = directory >= 0 && fstat(directory, &status) == 0 &&
		    status.st_ino != own->st_ino && flock(directory, LOCK_EX | LOCK_NB) == 0;
	close_and_forget(&directory);
	return idle;
}

static void survey_nodes(const struct place *place, struct place_survey *survey)
{
	int base = openat(place->directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = base >= 0 ? fdopendir(base) : NULL;
	FILE *names = NULL;
	struct dirent *entry;
	struct stat own;
	size_t size;
	if (!directory || fstat(place->directory, &own) != 0) {
		close_and_forget(&base);
		return;
	}
	while ((entry = readdir(directory))) {
		if (!name_is_valid(entry->d_name) || !node_is_idle(base, entry->d_name, &own))
			continue;
		survey->idle++;
		if (!names)
			names = open_memstream(&survey->idle_names, &size);
		if (names)
			fprintf(names, "%s\n", entry->d_name);
	}
	if (names)
		fclose(names);
	closedir(directory);
}

bool place_survey(const char *name, struct place_survey *survey, place_tell *tell)
{
	struct place place;
	bool opened = directory_open(&place, name, tell);
	*survey = (struct place_survey){.uid = place.uid, .displaced = place.displaced};
	place.pid = RENDEZVOUS_PID_ANY;
	memcpy(survey->path, place.path, sizeof(survey->path));
	if (opened) {
		survey_sockets(&place, survey);
		survey_nodes(&place, survey);
	}
	place_close(&place);
	return opened;
}

void place_remove(const char *name)
{
	struct place place;

	if (place_open(&place, name, log_info))
		place_discard(&place);
	place_close(&place);
}

void place_remove_numbered(const char *begin)
{
	const size_t length = strlen(begin);
	struct dirent *entry;
	struct place rendezvous;
	DIR *directory = NULL;

	if (rendezvous_enter(&rendezvous, log_info))
		directory = fdopendir(fcntl(rendezvous.directory, F_DUPFD_CLOEXEC, 0));
	while (directory && (entry = readdir(directory))) {
		const char *number = entry->d_name + length;

		if (strncmp(entry->d_name, begin, length) == 0 && *number != '\0' &&
			number[strspn(number, "0123456789")] == '\0')
			place_remove(entry->d_name);
	}
	if (directory)
		closedir(directory);
	place_close(&rendezvous);
}
