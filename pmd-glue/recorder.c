/* SPDX-License-Identifier: BSD-3-Clause */
/* recorder.c - files that captures go to, each written by a thread of its own. See recorder.h.
 *
 * DPDK's librte_pcapng writes for ethernet devices only, by their port number. A loopback has none,
 * so pcapng.c writes the blocks.
 *
 * R1. The recorder's thread alone touches the file once it runs.
 * R2. The blocks of a track are in the order of their times, those of several tracks in no order:
 *     each turn writes what it finds on one ring after the other. reordercap sorts such a file.
 * R3. At any moment the file ends with a whole block, or the recording has ended and it was cut
 *     there: a file cut short by a full disk can be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <base/clock.h>
#include <base/file.h>
#include <base/futex.h>
#include <base/log.h>
#include <base/remedy.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/recorder.h>

#define RING_BYTES     (16u << 20) /* of each track: how far a slow disk may be behind */
#define BUFFER_BYTES   (256u << 10)
#define TURN           MILLISECOND /* between two turns that found nothing */
#define READER_TIMEOUT SECOND      /* once a thread waits and the reader does not read */
#define PIPE_LOOK      20          /* ms between two looks whether somebody waits */
#define PIPE_CHUNK     4096u       /* what a pipe that has room takes without blocking */

struct recorder {
	struct recorder *next;
	char *name;
	int fd;        /* -1: a FIFO that nobody reads yet */
	bool pipe;     /* a reader may be slow, or leave */
	bool seekable; /* can be cut */
	dev_t device;
	ino_t inode;
	struct glue_thread *thread;
	pthread_mutex_t lock;
	pthread_cond_t left;
	struct track *tracks;   /* in the order of their numbers */
	uint32_t numbers;       /* given so far */
	_Atomic uint32_t futex; /* futex word: 1 when the thread is to look at once */
	atomic_bool waited;     /* somebody waits for the thread */
	atomic_bool stop;
	atomic_bool ended; /* by a failure */
	/* The thread's own. */
	uint64_t whole; /* bytes of the file, all in whole blocks */
	size_t filled;
	uint8_t buffer[BUFFER_BYTES];
};

static struct recorder *recorders; /* under the front end's lock */

uint64_t recorder_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static bool recorder_ended(const struct recorder *recorder)
{
	return atomic_load_explicit(&recorder->ended, memory_order_relaxed);
}

/* --- the file --- */

static void recorder_fail(struct recorder *recorder, int error)
{
	const char *remedy = remedy_for_disk(error, "start it again when that is mended");

	if (error == EFBIG)
		remedy = remedy_for(error, remedy);
	else if (error == EPIPE)
		remedy = "its reader has gone";
	log_error("the capture to %s has ended and the program goes on: %s: %s", recorder->name,
		error == ETIMEDOUT ? "its reader does not read" : strerror(error), remedy);
	atomic_store_explicit(&recorder->ended, true, memory_order_relaxed);
}

/* Bytes of the buffer's whole blocks among its first `length`. */
static size_t buffer_whole(const struct recorder *recorder, size_t length)
{
	struct pcapng_block block;
	size_t at = 0;

	while (at + sizeof(block) <= length) {
		memcpy(&block, recorder->buffer + at, sizeof(block));
		if (at + block.bytes > length)
			break;
		at += block.bytes;
	}
	return at;
}

/* The destination takes no bytes. Returns an errno if another thread has waited for this one since
 * `since` (0: none had) for too long, else 0. */
static int recorder_hurry(struct recorder *recorder, uint64_t *since)
{
	if (!atomic_load_explicit(&recorder->waited, memory_order_relaxed))
		return 0;
	if (*since == 0)
		*since = glue_now(NULL);
	return glue_now(NULL) - *since > READER_TIMEOUT ? ETIMEDOUT : 0;
}

/* Waits until a pipe takes bytes; 0 or what is wrong. */
static int pipe_await(struct recorder *recorder, uint64_t *since)
{
	struct pollfd look = {.fd = recorder->fd, .events = POLLOUT};
	int error = 0;

	while (error == 0 && poll(&look, 1, PIPE_LOOK) <= 0)
		error = recorder_hurry(recorder, since);
	return error; /* what poll() calls one, the write will tell */
}

/* Writes the buffer to the file. A slow disk delays only this thread. */
static void recorder_flush(struct recorder *recorder)
{
	size_t done = 0, length = recorder->filled;
	uint64_t since = 0;
	int error = 0;

	recorder->filled = 0;
	if (recorder->fd < 0 || recorder_ended(recorder))
		return;
	while (done < length && error == 0) {
		size_t part = length - done;
		ssize_t written;

		if (recorder->pipe) {
			error = pipe_await(recorder, &since);
			part = part > PIPE_CHUNK ? PIPE_CHUNK : part;
		}
		written = error ? 0 : write(recorder->fd, recorder->buffer + done, part);
		if (written > 0) {
			done += (size_t)written;
			since = 0;
		} else if (written < 0 && errno == EAGAIN) {
			/* A device may be writable by poll() and refuse bytes all the same. */
			poll(NULL, 0, PIPE_LOOK);
			error = recorder_hurry(recorder, &since);
		} else if (written < 0 && errno != EINTR) {
			error = errno;
		}
	}
	recorder->whole += buffer_whole(recorder, done);
	if (error == 0)
		return;
	recorder_fail(recorder, error);
	if (recorder->seekable && ftruncate(recorder->fd, (off_t)recorder->whole) != 0)
		log_debug(LOG_CAPTURE, "%s cannot be cut: %s", recorder->name,
			strerror(errno)); /* R3: no help */
}

/* Room for so many bytes in the buffer, which holds any block. */
static uint8_t *recorder_room(struct recorder *recorder, size_t bytes)
{
	if (recorder->filled + bytes > BUFFER_BYTES)
		recorder_flush(recorder);
	return recorder->buffer + recorder->filled;
}

/* --- the thread --- */

static void track_announce(struct recorder *recorder, struct track *track)
{
	struct pcapng_interface interface = {.name = track->name,
		.description = track->description,
		.address = track->address,
		.snap = track->snap};

	recorder->filled += pcapng_interface(recorder_room(recorder, PCAPNG_BLOCK_MAX), &interface);
	track->announced = true;
}

static void track_sum_up(struct recorder *recorder, const struct track *track)
{
	struct pcapng_statistics statistics = {
		.interface = track->number,
		.started = track->started,
		.ended = recorder_time(),
		.received = atomic_load_explicit(&track->taken, memory_order_relaxed),
		.dropped = atomic_load_explicit(&track->dropped, memory_order_relaxed),
	};

	recorder->filled +=
		pcapng_statistics(recorder_room(recorder, PCAPNG_BLOCK_MAX), &statistics);
}

/* Writes the blocks that are on a track's ring now; returns how many. */
static unsigned track_write(struct recorder *recorder, struct track *track)
{
	size_t left = byte_ring_readable(&track->ring);
	unsigned written = 0;

	while (left > 0 && !recorder_ended(recorder)) {
		struct pcapng_block block;

		byte_ring_peek(&track->ring, 0, &block, sizeof(block));
		byte_ring_peek(&track->ring, 0, recorder_room(recorder, block.bytes), block.bytes);
		byte_ring_take(&track->ring, block.bytes);
		recorder->filled += block.bytes;
		left -= block.bytes;
		written++;
	}
	return written;
}

static void recorder_dismiss(struct recorder *recorder)
{
	struct track **link = &recorder->tracks;

	while (*link) {
		struct track *track = *link;

		if (!track->leaving) {
			link = &track->next;
			continue;
		}
		*link = track->next;
		track->gone = true;
	}
	pthread_cond_broadcast(&recorder->left);
}

/* A FIFO can be opened for writing only while a process reads it. */
static bool recorder_has_file(struct recorder *recorder)
{
	if (recorder->fd >= 0)
		return true;
	recorder->fd = file_write(recorder->name, O_NONBLOCK, 0, &(const char *){NULL});
	return recorder->fd >= 0;
}

static unsigned recorder_turn(struct recorder *recorder)
{
	unsigned written = 0;

	pthread_mutex_lock(&recorder->lock);
	if (recorder_has_file(recorder)) {
		for (struct track *track = recorder->tracks; track; track = track->next) {
			if (!track->announced)
				track_announce(recorder, track);
			written += track_write(recorder, track);
			if (track->leaving)
				track_sum_up(recorder, track);
		}
		recorder_flush(recorder);
	}
	recorder_dismiss(recorder);
	pthread_mutex_unlock(&recorder->lock);
	return written;
}

static void recorder_run(void *argument)
{
	struct recorder *recorder = argument;

	recorder->filled = pcapng_section(recorder->buffer, "Postern");
	while (!atomic_load_explicit(&recorder->stop, memory_order_acquire)) {
		atomic_store_explicit(&recorder->futex, 0, memory_order_relaxed);
		if (recorder_turn(recorder) == 0)
			futex_wait(&recorder->futex, 0, TURN);
	}
}

/* --- opening and closing --- */

static int file_complain(const char *name, int error, const char *reason)
{
	const char *remedy = remedy_for_disk(error, "check the path of PTL_CAPTURE");

	if (error == EWOULDBLOCK)
		log_error("cannot capture to %s: another process does: write %%p into the name, "
			  "which stands for the process id",
			name);
	if (error == EWOULDBLOCK)
		return -1;
	if (error == ENOENT || error == ENOTDIR)
		remedy = "create its directory first";
	else if (error == EACCES || error == EPERM || error == EROFS)
		remedy = "choose a place that this user may write to";
	else if (error == EISDIR)
		remedy = "write the name of a file";
	log_error("cannot capture to %s: %s: %s", name, reason, remedy);
	return -1;
}

/* A descriptor of standard output, or -1. Once a capture goes there, the program's own output goes
 * to standard error, because it would damage the capture. The front end's lock is held. */
static int standard_open(void)
{
	static int standard = -1;
	if (standard < 0) {
		standard = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
		if (standard < 0)
			return -1;
		fflush(stdout);
		if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
			close(standard);
			standard = -1;
			return -1;
		}
	}
	return fcntl(standard, F_DUPFD_CLOEXEC, 0);
}

/* Opens the file, locks it against other processes, and empties it. */
static int file_open(struct recorder *recorder)
{
	struct stat status;
	const char *reason = NULL;
	bool standard = strcmp(recorder->name, "-") == 0;

	/* In a set-uid program the caller chooses the environment, and the owner's permissions
	 * apply. */
	if (getuid() != geteuid() || getgid() != getegid())
		return file_complain(recorder->name, EPERM, strerror(EPERM));
	if (standard)
		recorder->fd = standard_open();
	else
		recorder->fd =
			file_write(recorder->name, O_CREAT | O_NONBLOCK | O_NOCTTY, 0600, &reason);
	if (recorder->fd < 0 && (errno != ENXIO || stat(recorder->name, &status) != 0))
		return file_complain(recorder->name, errno, reason ? reason : strerror(errno));
	if (recorder->fd >= 0 && fstat(recorder->fd, &status) != 0)
		return file_complain(recorder->name, errno, strerror(errno));
	recorder->device = status.st_dev;
	recorder->inode = status.st_ino;
	recorder->pipe = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) ||
			 (recorder->fd >= 0 && isatty(recorder->fd));
	if (!S_ISREG(status.st_mode) || standard)
		return 0;
	recorder->seekable = true;
	if (flock(recorder->fd, LOCK_EX | LOCK_NB) != 0)
		return file_complain(recorder->name, errno, strerror(errno));
	return ftruncate(recorder->fd, 0) == 0
		       ? 0
		       : file_complain(recorder->name, errno, strerror(errno));
}

static void recorder_free(struct recorder *recorder)
{
	if (recorder->fd >= 0)
		close(recorder->fd);
	pthread_cond_destroy(&recorder->left);
	pthread_mutex_destroy(&recorder->lock);
	free(recorder->name);
	free(recorder);
}

static struct recorder *recorder_open(const char *name)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));

	if (!recorder || !(recorder->name = strdup(name))) {
		log_error("cannot capture to %s: out of memory: %s", name, remedy_for_memory());
		free(recorder);
		return NULL;
	}
	recorder->fd = -1;
	pthread_mutex_init(&recorder->lock, NULL);
	pthread_cond_init(&recorder->left, NULL);
	if (file_open(recorder) == 0)
		recorder->thread = glue_thread_start(recorder_run, recorder, -1, "postern-capture");
	if (!recorder->thread) {
		recorder_free(recorder);
		return NULL;
	}
	recorder->next = recorders;
	recorders = recorder;
	return recorder;
}

/* The recorder of a file that this process writes already. */
static struct recorder *recorder_find(const char *name)
{
	struct stat status;

	for (struct recorder *recorder = recorders; recorder; recorder = recorder->next) {
		if (strcmp(recorder->name, name) == 0)
			return recorder;
		if (stat(name, &status) == 0 && status.st_dev == recorder->device &&
			status.st_ino == recorder->inode)
			return recorder;
	}
	return NULL;
}

bool recorder_failed(const char *name)
{
	const struct recorder *recorder = recorder_find(name);

	return recorder && recorder_ended(recorder);
}

static void recorder_ring(struct recorder *recorder)
{
	atomic_store_explicit(&recorder->futex, 1, memory_order_release);
	futex_wake(&recorder->futex, 1);
}

static void recorder_close(struct recorder *recorder)
{
	struct recorder **link = &recorders;

	while (*link != recorder)
		link = &(*link)->next;
	*link = recorder->next;
	atomic_store_explicit(&recorder->stop, true, memory_order_release);
	recorder_ring(recorder);
	glue_thread_join(recorder->thread);
	recorder_free(recorder);
}

/* For all but the recorder's thread, which holds the lock while it writes: to a pipe it then does
 * so for READER_TIMEOUT at most. */
static void recorder_lock(struct recorder *recorder)
{
	atomic_store_explicit(&recorder->waited, true, memory_order_relaxed);
	pthread_mutex_lock(&recorder->lock);
}

static void recorder_unlock(struct recorder *recorder)
{
	pthread_mutex_unlock(&recorder->lock);
	atomic_store_explicit(&recorder->waited, false, memory_order_relaxed);
}

static void track_join(struct track *track, struct recorder *recorder)
{
	struct track **link = &recorder->tracks;

	recorder_lock(recorder);
	track->recorder = recorder;
	track->number = recorder->numbers++;
	while (*link)
		link = &(*link)->next;
	*link = track;
	recorder_unlock(recorder);
}

struct track *track_open(const char *file, const struct pcapng_interface *interface)
{
	struct track *track = aligned_alloc(BYTE_RING_LINE, sizeof(*track));
	struct recorder *recorder = recorder_find(file);

	if (!track) {
		log_error("cannot capture to %s: out of memory: %s", file, remedy_for_memory());
		return NULL;
	}
	*track = (struct track){.snap = interface->snap, .started = recorder_time()};
	snprintf(track->name, sizeof(track->name), "%s", interface->name);
	snprintf(track->description, sizeof(track->description), "%s", interface->description);
	memcpy(track->address, interface->address, sizeof(track->address));
	if (byte_ring_open(&track->ring, RING_BYTES) != 0)
		log_error("cannot capture to %s: there is no memory for %u bytes of frames: %s",
			file, RING_BYTES, remedy_for_memory());
	else if (!recorder)
		recorder = recorder_open(file);
	if (!track->ring.bytes || !recorder) {
		byte_ring_close(&track->ring);
		free(track);
		return NULL;
	}
	track_join(track, recorder);
	return track;
}

bool track_ended(const struct track *track)
{
	return recorder_ended(track->recorder);
}

const char *track_file(const struct track *track)
{
	return track->recorder->name;
}

static void track_report(const struct track *track)
{
	uint64_t taken = atomic_load_explicit(&track->taken, memory_order_relaxed);
	uint64_t dropped = atomic_load_explicit(&track->dropped, memory_order_relaxed);

	if (track->recorder->fd < 0)
		log_warning("%s: no program has read the capture from %s", track->name,
			track_file(track));
	else if (dropped > 0)
		log_warning("%s: %llu of %llu frames are missing in %s, which is too slow: write "
			    "to a faster disk, or keep less of each frame by PTL_CAPTURE_SNAPLEN",
			track->name, (unsigned long long)dropped, (unsigned long long)taken,
			track_file(track));
	else
		log_info("%s: %llu frames are in %s", track->name, (unsigned long long)taken,
			track_file(track));
}

void track_finish(struct track *track)
{
	struct recorder *recorder = track->recorder;
	bool last;

	recorder_lock(recorder);
	track->leaving = true;
	recorder_ring(recorder);
	while (!track->gone)
		pthread_cond_wait(&recorder->left, &recorder->lock);
	last = !recorder->tracks;
	recorder_unlock(recorder);
	if (!recorder_ended(recorder))
		track_report(track);
	if (last)
		recorder_close(recorder);
	byte_ring_close(&track->ring);
	free(track);
}
