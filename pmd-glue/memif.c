/* SPDX-License-Identifier: BSD-3-Clause */
/* memif.c - two processes joined by shared memory: DPDK's net_memif, with a relay that makes it
 * survive its peer.
 *
 * memif connects two processes over a UNIX socket (the control channel), then frames pass through
 * rings in shared memory. DPDK's driver answers the control channel in its interrupt thread. When
 * the peer dies it unmaps the rings at once, even while a poll core uses them, and it never
 * connects again. So the driver has no access to the peer's socket. This file owns the socket at
 * PATH, and passes every control message on to the driver over a second socket that nobody else can
 * reach:
 *
 *      peer  <--- PATH: outer --->  relay (poll core)  <--- inner --->  driver (interrupt thread)
 *      peer  <------------------------- rings ---------------------->  driver's bursts (poll core)
 *
 * The poll core owns all of a port between open and close, the relay included.
 *
 * I1. While the poll core may be in a burst (PHASE_LIVE), no message is passed to the driver.
 * I2. After the end of a connection the driver is not used until its interrupt thread is known to
 *     have dealt with the end of the inner socket (the fence).
 * I3. PATH.lock decides the roles: the process that locks byte 0 listens at PATH, the one that
 *     locks byte 1 connects. Locks end with their process, so a new process takes the free role,
 *     and the other one keeps its own.
 * I4. A process that opens or closes its end holds byte 2 meanwhile, the door. So no process sees
 *     the other one half open, and of two that close at the same time the second one knows that it
 *     is the last and removes the files.
 * I5. Both ends have frames of the same size, because a frame must fit into one buffer of either:
 *     the first process writes its MTU into the lock file. The second one adopts it, or fails to
 *     open if it wants another.
 * I6. The driver trusts each process that reaches its socket, and reads and writes where its peer
 *     says. So the inner socket is made in a directory of mode 0700, PATH.0 or PATH.1 by place, and
 *     loses its name at once: this process reaches it by a descriptor. At PATH only processes of
 *     the same user and of root are accepted. A directory that a killed process left is removed by
 *     the next process in its place, or by the last to leave.
 * I7. The relay closes an inner socket only after the driver has greeted there: a listening driver
 *     whose greeting fails frees the connection while its interrupt thread still watches it, and
 *     DPDK ends the process.
 * I8. A driver is never unplugged while it can be used again, because DPDK 22.11 loses memory with
 *     each queue, and a descriptor with each listener.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_ethdev.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/settings.h>
#include <pmd-glue/bell.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/ethdev.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pool.h>

/* Beside its copies each frame costs the same, however long it is. 64 KiB of data fill two frames
 * of this size, headers included. */
#define MTU_DEFAULT (32u * 1024 + 256)
/* A ring uses its buffers in turn. Buffers of so many bytes stay in a cache that two cores share.
 * Much smaller rings are slower where cores share no cache: there the receiver fetches data faster
 * once it has left the sender's caches. */
#define RING_BYTES     (17u << 20)
#define RING_LOG2_MOST 10u
#define BUFFER_ALIGN   64u
#define TICK           MILLISECOND       /* between two looks at the control channel */
#define RETRY          (5 * MILLISECOND) /* between two attempts to connect */
#define CLOSE_WAIT     SECOND
#define DOOR_WAIT      5    /* s until a process that holds the door counts as stopped */
#define GREETING_WAIT  1000 /* ms until a listener that sends nothing counts as alive */
#define IDLE_POLLS     32u  /* empty polls between two looks at the time */
/* for the driver to act on a control message, which it does not confirm */
#define DRIVER_WAIT      (100 * MILLISECOND)
#define FENCE_ROUNDS     2u   /* see memif_fence() */
#define MESSAGE_MAX      256u /* a control message has 128 bytes */
#define DESCRIPTORS_MAX  4u   /* passed with one message: memif passes one */
#define MESSAGES_AT_ONCE 16u
#define LISTEN_BACKLOG   4
#define LOCK_BYTES       8    /* of PATH.lock at most: an MTU of each place, I5 */
#define INNER_NAME       "in" /* of the inner socket in its directory */
/* of a name that begins with PATH */
#define NAME_ROOM (sizeof(((struct sockaddr_un *)NULL)->sun_path) + 16)

enum role { ROLE_SERVER, ROLE_CLIENT };

/* Bytes of PATH.lock, I3 and I4. */
enum place { PLACE_SERVER, PLACE_CLIENT, PLACE_DOOR };

enum phase {
	PHASE_ALONE, /* no peer */
	PHASE_GREET, /* the control channel is relayed */
	PHASE_LIVE,  /* frames pass */
	PHASE_FENCE, /* the peer has gone; the driver has yet to notice */
};

/* A device of DPDK's, and the inner socket that leads to it. */
struct driver {
	struct driver *next; /* of those that are spare, I8 */
	enum role role;
	uint32_t frame_size;
	bool prepared; /* its queues have been set up */
	bool greeted;  /* of a server: the greeting waits in inner */
	char device[32];
	int directory; /* the beginning of the path that the driver has for its socket */
	int socket;    /* an O_PATH descriptor of the socket, -1: it has kept its name */
	int listener;  /* of a client: the driver connects to it */
	int inner;
	struct sockaddr_un address;
};

struct memif {
	struct ethdev ethdev; /* first: a port is an ethdev is a memif */
	enum role role;
	enum phase phase;
	int lock;
	enum place place; /* held in the lock */
	int listener;     /* at PATH, of a server */
	int outer;
	struct driver *driver;
	bool started;  /* a client's driver connects when it is started */
	bool met;      /* there has been a peer */
	bool warned;   /* of a stranger at the other end */
	uint64_t lost; /* frames sent after it had gone */
	unsigned idle;
	/* an epoll descriptor to sleep on while there is a peer: outer, inner and the bell's */
	int set;
	uint64_t heard; /* the time of the last control message */
	uint64_t next_tick;
	uint64_t next_try;
	unsigned fence_seen;
	struct bell bell;
	atomic_uint fence; /* counted up by the interrupt thread */
	struct sockaddr_un address;
};

/* Under the front end's lock. */
static unsigned driver_count; /* for names of devices */
static struct driver *drivers_spare;

static void close_and_forget(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- the fence --- */

static void fence_pass(void *context)
{
	struct memif *memif = context;
	/* Release: pairs with the acquire in fence_done(), so that all that the interrupt thread
	 * did before is seen. */
	atomic_fetch_add_explicit(&memif->fence, 1, memory_order_release);
}

/* Alarms run in the interrupt thread, as the driver's handlers do. The end of the inner socket was
 * queued for that thread before the alarm was, so it is dealt with before the alarm, or in the same
 * batch of events; a second alarm is behind that batch. */
static void fence_start(struct memif *memif)
{
	memif->fence_seen = 0;
	atomic_store_explicit(&memif->fence, 0, memory_order_relaxed);
	rte_eal_alarm_set(1, fence_pass, memif);
}

static bool fence_done(struct memif *memif)
{
	unsigned passed = atomic_load_explicit(&memif->fence, memory_order_acquire);
	if (passed == memif->fence_seen)
		return false;
	memif->fence_seen = passed;
	if (passed >= FENCE_ROUNDS)
		return true;
	rte_eal_alarm_set(1, fence_pass, memif);
	return false;
}

/* --- the relay --- */

enum relayed { RELAYED_NONE, RELAYED_ONE, RELAYED_END };

/* Takes one control message with its descriptors from one socket and gives it to another (-1: to
 * nobody). */
static enum relayed relay_one(struct memif *memif, int from, int to)
{
	char bytes[MESSAGE_MAX];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int)) +
			   CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec vector = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr message = {.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	enum relayed result = RELAYED_ONE;
	ssize_t length = recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (length < 0)
		return errno == EAGAIN || errno == EINTR ? RELAYED_NONE : RELAYED_END;
	if (length == 0)
		return RELAYED_END;
	memif->heard = glue_now(NULL);
	vector.iov_len = (size_t)length;
	message.msg_flags = 0;
	if (to >= 0 && sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != length)
		result = RELAYED_END;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part;
		part = CMSG_NXTHDR(&message, part)) {
		size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t n = 0; n < count; n++) {
			int fd;
			memcpy(&fd, CMSG_DATA(part) + n * sizeof(int), sizeof(int));
			bell_hear(&memif->bell, bytes, (size_t)length, fd,
				memif->role == ROLE_SERVER);
			close(fd);
		}
	}
	return result;
}

static enum relayed relay(struct memif *memif, int from, int to)
{
	enum relayed result = RELAYED_ONE;
	for (unsigned n = 0; n < MESSAGES_AT_ONCE && result == RELAYED_ONE; n++)
		result = relay_one(memif, from, to);
	return result;
}

static void memif_hang_up(struct memif *memif)
{
	close_and_forget(&memif->set);
	close_and_forget(&memif->outer);
	close_and_forget(&memif->driver->inner);
	memif->driver->greeted = false;
	bell_drop(&memif->bell);
	memif->phase = PHASE_FENCE;
	fence_start(memif);
}

static void memif_relay(struct memif *memif)
{
	struct rte_eth_link link = {0};
	if (memif->phase == PHASE_LIVE) {
		/* The only further message of a connected peer is its goodbye, which is passed to
		 * the driver from the fence on. */
		if (relay_one(memif, memif->outer, -1) != RELAYED_NONE ||
			relay(memif, memif->driver->inner, memif->outer) == RELAYED_END)
			memif_hang_up(memif);
		return;
	}
	if (relay(memif, memif->outer, memif->driver->inner) == RELAYED_END ||
		relay(memif, memif->driver->inner, memif->outer) == RELAYED_END) {
		memif_hang_up(memif);
		return;
	}
	if (rte_eth_link_get_nowait(memif->ethdev.id, &link) == 0 &&
		link.link_status == RTE_ETH_LINK_UP) {
		memif->phase = PHASE_LIVE;
		memif->met = true;
		if (!bell_hang(&memif->bell, memif->set) && setting_is(SETTING_POLL, "interrupt"))
			log_warning("%s: the peer cannot wake this process; polling every 500 us "
				    "instead: run both with DPDK on this kernel, or set "
				    "PTL_POLL=adaptive",
				memif->ethdev.port.name);
	}
}

/* --- finding the peer --- */

static int socket_make(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int socket_connect(const struct sockaddr_un *address)
{
	int fd = socket_make();
	if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0) {
		int error = errno;
		close_and_forget(&fd);
		errno = error;
	}
	return fd;
}

static int socket_listen(const struct sockaddr_un *address)
{
	int fd = socket_make();
	if (fd >= 0 && (bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 ||
			       listen(fd, LISTEN_BACKLOG) != 0)) {
		int error = errno;
		close_and_forget(&fd);
		errno = error;
	}
	return fd;
}

/* I6. Closes what leads to a stranger. */
static void outer_check(struct memif *memif)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);
	if (memif->outer < 0)
		return;
	(void)getsockopt(memif->outer, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	if (peer.uid == geteuid() || peer.uid == 0)
		return;
	close_and_forget(&memif->outer);
	if (!memif->warned)
		log_warning("%s: process %d of user %u is refused as the other end, because it "
			    "could crash this process: run both as one user",
			memif->ethdev.port.name, peer.pid, peer.uid);
	memif->warned = true;
}

/* As after a change of user: the new user may not look at descriptors that were opened before. */
static void inner_check(struct memif *memif)
{
	if (memif->driver->inner >= 0 || errno == EAGAIN || memif->warned)
		return;
	log_warning("%s: the own driver cannot be reached: %s: leave /proc mounted, and change the "
		    "user before PtlNIInit",
		memif->ethdev.port.name, strerror(errno));
	memif->warned = true;
}

/* Both ends of the relay are connected. */
static void memif_greet(struct memif *memif)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP};
	memif->phase = PHASE_GREET;
	memif->heard = glue_now(NULL);
	memif->set = epoll_create1(EPOLL_CLOEXEC);
	if (memif->set < 0 ||
		(epoll_ctl(memif->set, EPOLL_CTL_ADD, memif->outer, &event) == 0 &&
			epoll_ctl(memif->set, EPOLL_CTL_ADD, memif->driver->inner, &event) == 0))
		return;
	close_and_forget(&memif->set);
}

/* No process is accepted before the driver has greeted (I7). */
static void memif_meet_client(struct memif *memif)
{
	struct driver *driver = memif->driver;
	struct pollfd greeting = {.events = POLLIN};
	if (driver->inner < 0)
		driver->inner = socket_connect(&driver->address);
	inner_check(memif);
	greeting.fd = driver->inner;
	driver->greeted = driver->greeted || poll(&greeting, 1, 0) == 1;
	if (!driver->greeted)
		return;
	memif->outer = accept4(memif->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	outer_check(memif);
	if (memif->outer >= 0)
		memif_greet(memif);
}

static void memif_stop_driver(struct memif *memif)
{
	if (memif->started && memif->role == ROLE_CLIENT) {
		rte_eth_dev_stop(memif->ethdev.id);
		memif->started = false;
	}
}

static void memif_meet_server(struct memif *memif)
{
	memif->outer = socket_connect(&memif->address);
	outer_check(memif);
	if (memif->outer < 0)
		return;
	memif_stop_driver(memif);
	/* In this call the driver connects, to a socket that is listening already. */
	if (rte_eth_dev_start(memif->ethdev.id) == 0) {
		memif->started = true;
		memif->driver->inner =
			accept4(memif->driver->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	}
	inner_check(memif);
	if (memif->driver->inner < 0)
		memif_hang_up(memif);
	else
		memif_greet(memif);
}

static void memif_tick(struct memif *memif)
{
	uint64_t now = glue_now(NULL);
	if (now < memif->next_tick)
		return;
	memif->next_tick = now + TICK;
	switch (memif->phase) {
	case PHASE_ALONE:
		if (memif->role == ROLE_SERVER) {
			memif_meet_client(memif);
		} else if (now >= memif->next_try) {
			memif->next_try = now + RETRY;
			memif_meet_server(memif);
		}
		break;
	case PHASE_GREET:
	case PHASE_LIVE:
		memif_relay(memif);
		break;
	case PHASE_FENCE:
		if (fence_done(memif)) {
			memif_stop_driver(memif);
			memif->phase = PHASE_ALONE;
		}
		break;
	}
}

/* --- the port --- */

static uint16_t memif_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct memif *memif = (struct memif *)port;
	uint16_t received = 0;
	if (memif->phase == PHASE_LIVE)
		received = rte_eth_rx_burst(memif->ethdev.id, 0, frames, count);
	/* Until a peer is there the poll core sleeps between its looks, and each look may advance
	 * the connection. */
	if (received == 0 && (memif->phase != PHASE_LIVE || ++memif->idle % IDLE_POLLS == 0))
		memif_tick(memif);
	return received;
}

/* Until the first peer comes, frames stay with the sender, so that an early sender does not wait
 * for a retransmission. After a peer has gone frames are lost, as on a wire that was cut: a sender
 * that kept them would send the next peer frames that were meant for this one. */
static uint16_t memif_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct memif *memif = (struct memif *)port;
	if (memif->phase == PHASE_LIVE)
		return ethdev_transmit(port, frames, count);
	if (!memif->met)
		return 0;
	rte_pktmbuf_free_bulk(frames, count);
	memif->lost += count;
	return count;
}

static bool memif_link(struct port *port)
{
	struct memif *memif = (struct memif *)port;
	memif_tick(memif);
	return memif->phase == PHASE_LIVE;
}

/* The descriptor to sleep on. A client without a server looks for it once a second, when the poll
 * core wakes. */
static int memif_watch(const struct memif *memif)
{
	switch (memif->phase) {
	case PHASE_ALONE:
		if (memif->role == ROLE_CLIENT)
			return memif->driver->listener; /* where no signal comes */
		return memif->driver->greeted ? memif->listener : -1;
	case PHASE_GREET:
		return glue_now(NULL) - memif->heard < DRIVER_WAIT ? -1 : memif->set;
	default:
		return -1;
	}
}

/* A signal announces a frame, or the beginning or end of a connection. */
static int memif_interrupt(struct port *port, bool on)
{
	struct memif *memif = (struct memif *)port;
	if (!on) {
		memif->idle = IDLE_POLLS - 1;
		memif->next_tick = 0;
	}
	if (memif->phase == PHASE_LIVE)
		return bell_arm(&memif->bell, on);
	return on ? memif_watch(memif) : -1;
}

/* The driver's counters are in memory of the connection, so without one there are none. */
static void memif_counters(struct port *port, struct port_counters *counters)
{
	struct memif *memif = (struct memif *)port;
	*counters = (struct port_counters){.errors = memif->ethdev.oversized + memif->lost,
		.no_mbuf = memif->ethdev.no_mbuf,
		.buffers = pool_used(port->pool)};
}

static enum place place_other(const struct memif *memif)
{
	return memif->place == PLACE_SERVER ? PLACE_CLIENT : PLACE_SERVER;
}

static bool place_take(const struct memif *memif, enum place place)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = place, .l_len = 1};
	return fcntl(memif->lock, F_OFD_SETLK, &lock) == 0;
}

/* Takes the door as soon as it is free. Returns false if that takes too long because its holder is
 * stopped. */
static bool door_open(const struct memif *memif)
{
	const struct timespec pause = {.tv_nsec = MILLISECOND};
	uint64_t patience = glue_now(NULL) + DOOR_WAIT * SECOND;
	while (!place_take(memif, PLACE_DOOR)) {
		if (errno != EAGAIN || glue_now(NULL) >= patience)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Does another process hold it? */
static bool place_taken(const struct memif *memif, enum place place)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = place, .l_len = 1};
	return fcntl(memif->lock, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static void door_close(const struct memif *memif)
{
	struct flock lock = {
		.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = PLACE_DOOR, .l_len = 1};
	fcntl(memif->lock, F_OFD_SETLK, &lock);
}

static void lock_name(const struct memif *memif, char *name, size_t size)
{
	snprintf(name, size, "%s.lock", memif->address.sun_path);
}

/* Finds out whether a process listens at PATH. The socket of a process that is being killed still
 * accepts connections for a moment and then ends them; a living server greets. */
enum listener { LISTENER_NONE, LISTENER_MEMIF, LISTENER_STRANGE };

static enum listener memif_listener(const struct memif *memif)
{
	uint64_t patience = glue_now(NULL) + GREETING_WAIT * MILLISECOND;
	bool greeted = false;
	while (!greeted && glue_now(NULL) < patience) {
		struct pollfd end = {.events = POLLIN};
		char byte;
		end.fd = socket_connect(&memif->address);
		if (end.fd < 0 && errno == EPROTOTYPE)
			return LISTENER_STRANGE;
		if (end.fd < 0 && errno != EAGAIN)
			return LISTENER_NONE;
		if (end.fd < 0)
			break; /* its queue is full */
		greeted = poll(&end, 1, GREETING_WAIT) == 1 &&
			  recv(end.fd, &byte, sizeof(byte), MSG_DONTWAIT) > 0;
		close(end.fd);
	}
	return LISTENER_MEMIF;
}

static void inner_name(const struct memif *memif, enum place place, char *name, size_t size)
{
	snprintf(name, size, "%s.%u", memif->address.sun_path, place);
}

/* Removes the directory of the inner socket, which an earlier process in this role left if it was
 * killed. */
static void inner_remove(const struct memif *memif, enum place place)
{
	char name[NAME_ROOM];
	struct stat status;
	int directory;
	inner_name(memif, place, name, sizeof(name));
	directory = open(name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return;
	if (fstatat(directory, INNER_NAME, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISSOCK(status.st_mode))
		unlinkat(directory, INNER_NAME, 0);
	close(directory);
	rmdir(name);
}

/* I7 */
static void driver_free(struct driver *driver)
{
	ethdev_unplug(driver->device);
	close_and_forget(&driver->directory);
	close_and_forget(&driver->socket);
	close_and_forget(&driver->listener);
	if (driver->greeted)
		close(driver->inner);
	free(driver);
}

/* The last process removes the files, also those of a killed server. A process that has opened the
 * lock file meanwhile sees that it has lost its name. */
static void memif_unlock(struct memif *memif)
{
	char name[NAME_ROOM];
	struct stat status;
	bool alone;
	if (memif->lock < 0)
		return;
	lock_name(memif, name, sizeof(name));
	/* A process that was stopped in the door leaves later, and removes the rest. */
	alone = door_open(memif) && place_take(memif, place_other(memif));
	if (memif->listener >= 0 ||
		(alone && lstat(memif->address.sun_path, &status) == 0 &&
			S_ISSOCK(status.st_mode) && memif_listener(memif) == LISTENER_NONE))
		unlink(memif->address.sun_path);
	close_and_forget(&memif->listener);
	if (alone) {
		inner_remove(memif, PLACE_SERVER);
		inner_remove(memif, PLACE_CLIENT);
		unlink(name);
	}
	close_and_forget(&memif->lock);
}

/* Keeps the driver for the next port, unless its socket has a name: then it is unplugged. */
static void memif_give_driver(struct memif *memif)
{
	struct driver *driver = memif->driver;
	if (!driver)
		return;
	rte_eth_dev_stop(memif->ethdev.id);
	if (memif->ethdev.port.pool)
		pool_give(memif->ethdev.port.pool);
	if (driver->socket >= 0) {
		driver->next = drivers_spare;
		drivers_spare = driver;
		return;
	}
	driver_free(driver);
	inner_remove(memif, memif->place);
}

static void memif_free(struct memif *memif)
{
	uint64_t patience = glue_now(NULL) + CLOSE_WAIT;
	const struct timespec pause = {.tv_nsec = 50000};
	if (memif->phase == PHASE_GREET || memif->phase == PHASE_LIVE)
		memif_hang_up(memif);
	while (memif->phase == PHASE_FENCE && !fence_done(memif) && glue_now(NULL) < patience)
		nanosleep(&pause, NULL);
	rte_eal_alarm_cancel(fence_pass, memif);
	memif_give_driver(memif);
	memif_unlock(memif);
	free(memif);
}

static void memif_close(struct port *port)
{
	memif_free((struct memif *)port);
}

static const struct port_operations memif_operations = {
	.receive = memif_receive,
	.transmit = memif_transmit,
	.link = memif_link,
	.counters = memif_counters,
	.interrupt = memif_interrupt,
	.describe = ethdev_describe,
	.close = memif_close,
};

/* --- opening --- */

static int memif_complain(const struct memif *memif, int error)
{
	char lock[NAME_ROOM];
	const char *remedy = "check the path";
	struct stat status;
	lock_name(memif, lock, sizeof(lock));
	if (error == EAGAIN)
		remedy = "a process that opens or closes a memif there has been stopped: continue "
			 "or end it";
	else if (error == ENOENT || error == ENOTDIR)
		remedy = "create the directory first";
	else if (error == EACCES && lstat(lock, &status) == 0)
		remedy = "it is another user's: choose another path, or run both processes as one "
			 "user";
	else if (error == EACCES || error == EPERM || error == EROFS)
		remedy = "choose a directory that this user may write to, such as /tmp or "
			 "$XDG_RUNTIME_DIR";
	else if (error == EEXIST)
		remedy = "choose a path where there is nothing, or a memif's socket";
	log_error("%s: cannot use %s: %s: %s", memif->ethdev.port.name, memif->address.sun_path,
		strerror(error), remedy);
	return -1;
}

/* The file at PATH.lock is not Postern's: it is neither written to nor removed. */
static int lock_complain(struct memif *memif, const char *name)
{
	log_error("%s: %s is no memif's lock: choose another path, or remove it",
		memif->ethdev.port.name, name);
	close_and_forget(&memif->lock);
	return -1;
}

/* Opens PATH.lock, and with it the door, and takes a place. */
static int memif_take_role(struct memif *memif)
{
	char name[NAME_ROOM];
	struct stat there, here;
	lock_name(memif, name, sizeof(name));
	for (;;) {
		memif->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (memif->lock < 0)
			return errno == ELOOP ? lock_complain(memif, name)
					      : memif_complain(memif, errno);
		if (!door_open(memif))
			return memif_complain(memif, errno);
		/* Is it still the file of that name? */
		if (fstat(memif->lock, &here) == 0 && lstat(name, &there) == 0 &&
			here.st_ino == there.st_ino && here.st_dev == there.st_dev)
			break;
		close_and_forget(&memif->lock);
	}
	if (!S_ISREG(here.st_mode) || here.st_size > LOCK_BYTES)
		return lock_complain(memif, name);
	memif->place = place_take(memif, PLACE_SERVER) ? PLACE_SERVER : PLACE_CLIENT;
	memif->role = memif->place == PLACE_SERVER ? ROLE_SERVER : ROLE_CLIENT;
	if (memif->place == PLACE_SERVER || place_take(memif, PLACE_CLIENT))
		return 0;
	log_error("%s: two processes have this path already, which is all that a memif joins: "
		  "choose another path",
		memif->ethdev.port.name);
	close_and_forget(&memif->lock);
	return -1;
}

/* A server's socket. A socket that a killed process left is removed. A listener without a lock is
 * the server. */
static int memif_listen(struct memif *memif)
{
	struct stat status;
	if (lstat(memif->address.sun_path, &status) == 0) {
		enum listener listener = LISTENER_STRANGE;
		if (S_ISSOCK(status.st_mode))
			listener = memif_listener(memif);
		if (listener == LISTENER_STRANGE)
			return memif_complain(memif, EEXIST);
		if (listener == LISTENER_MEMIF) {
			memif->role = ROLE_CLIENT;
			return 0;
		}
		if (unlink(memif->address.sun_path) != 0 && errno != ENOENT)
			return memif_complain(memif, errno);
	}
	memif->listener = socket_listen(&memif->address);
	return memif->listener >= 0 ? 0 : memif_complain(memif, errno);
}

/* The MTU of the other end; 0 if there is none, or it wrote none. */
static uint32_t memif_mtu_there(const struct memif *memif)
{
	enum place other = place_other(memif);
	uint32_t mtu;
	if (!place_taken(memif, other) ||
		pread(memif->lock, &mtu, sizeof(mtu), (off_t)(other * sizeof(mtu))) !=
			sizeof(mtu) ||
		mtu < PORT_MTU_MIN || mtu > PORT_MTU_MAX)
		return 0;
	return mtu;
}

/* I5. *mtu: 0 for no wish; what it is to be. */
static int memif_agree(struct memif *memif, uint32_t *mtu)
{
	uint32_t there = memif_mtu_there(memif);
	if (*mtu == 0)
		*mtu = there != 0 ? there : MTU_DEFAULT;
	if (there != 0 && there != *mtu) {
		log_error("%s: the process at the other end has an MTU of %u: set PTL_MTU=%u here, "
			  "or nothing",
			memif->ethdev.port.name, there, there);
		return -1;
	}
	if (pwrite(memif->lock, mtu, sizeof(*mtu), (off_t)(memif->place * sizeof(*mtu))) !=
		sizeof(*mtu))
		return memif_complain(memif, errno);
	return 0;
}

static int memif_enter(struct memif *memif, uint32_t *mtu)
{
	if (memif_take_role(memif) != 0 || memif_agree(memif, mtu) != 0 ||
		(memif->role == ROLE_SERVER && memif_listen(memif) != 0))
		return -1;
	door_close(memif);
	return 0;
}

/* A buffer holds any frame: frames that need two are mangled by this driver. */
static uint32_t memif_buffer(uint32_t frame_size)
{
	return RTE_ALIGN_CEIL(frame_size, BUFFER_ALIGN);
}

/* Of the frames that a ring holds, each way. The client's number holds for both ends. */
static unsigned memif_ring_log2(uint32_t frame_size)
{
	unsigned log2 = RING_LOG2_MOST;
	while (memif_buffer(frame_size) << log2 > RING_BYTES)
		log2--;
	return log2;
}

/* Makes a directory that only this user can look into (I6), and opens it. */
static int inner_enter(struct memif *memif, struct driver *driver, char *name, size_t size)
{
	struct stat status;
	inner_remove(memif, memif->place);
	inner_name(memif, memif->place, name, size);
	if (mkdir(name, 0700) == 0)
		driver->directory = open(name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (driver->directory >= 0 && fstat(driver->directory, &status) == 0 &&
		status.st_uid == geteuid() && (status.st_mode & 077) == 0)
		return 0;
	log_error(
		"%s: cannot make %s for this process alone: %s: choose another path, or remove it",
		memif->ethdev.port.name, name, strerror(driver->directory < 0 ? errno : EACCES));
	return -1;
}

/* Removes the names of the inner socket. A client's driver connects, as it was told, to an entry of
 * the directory that goes: so the descriptor of that directory becomes one of /proc/self/fd. */
static int inner_hide(struct memif *memif, struct driver *driver)
{
	int descriptors = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int result = dup3(descriptors, driver->directory, O_CLOEXEC);
	close_and_forget(&descriptors);
	if (result < 0 || driver->socket < 0)
		return memif_complain(memif, errno);
	inner_remove(memif, memif->place);
	snprintf(driver->address.sun_path, sizeof(driver->address.sun_path), "/proc/self/fd/%d",
		driver->socket);
	return 0;
}

static void inner_open(struct driver *driver)
{
	driver->socket = openat(driver->directory, INNER_NAME, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static int driver_plug(struct memif *memif, struct driver *driver, const char *socket)
{
	char arguments[256], why[256];
	uint8_t mac[6];
	if (getrandom(mac, sizeof(mac), 0) != sizeof(mac))
		return memif_complain(memif, errno);
	mac[0] = (uint8_t)((mac[0] & 0xfc) | 2); /* locally administered, of one station */
	snprintf(driver->device, sizeof(driver->device), "net_memif_postern%u", driver_count++);
	snprintf(arguments, sizeof(arguments),
		"%s,role=%s,bsize=%u,rsize=%u,socket=%s,socket-abstract=no,mac=%02x:%02x:%02x:%"
		"02x:%02x:%02x",
		driver->device, driver->role == ROLE_SERVER ? "server" : "client",
		memif_buffer(driver->frame_size), memif_ring_log2(driver->frame_size), socket,
		mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	if (ethdev_plug(arguments) == 0)
		return 0;
	log_error("%s: DPDK cannot make a memif (%s): install DPDK's net_memif driver (Debian: "
		  "librte-net-memif23)",
		memif->ethdev.port.name, eal_reason(why, sizeof(why)));
	return -1;
}

/* Plugs a device in. Its socket has a name, in a directory for this process alone, until it can be
 * reached by a descriptor; Without /proc the name stays. */
static int driver_make(struct memif *memif, struct driver *driver)
{
	char directory[NAME_ROOM], at[32], known[64];
	char *name = driver->address.sun_path;
	bool hidden;
	if (inner_enter(memif, driver, directory, sizeof(directory)) != 0)
		return -1;
	snprintf(at, sizeof(at), "/proc/self/fd/%d", driver->directory);
	hidden = access(at, W_OK) == 0;
	driver->address.sun_family = AF_UNIX;
	snprintf(name, sizeof(driver->address.sun_path), "%.104s/" INNER_NAME,
		hidden ? at : directory);
	if (driver->role == ROLE_CLIENT) {
		driver->listener = socket_listen(&driver->address);
		if (driver->listener < 0)
			return memif_complain(memif, errno);
		if (hidden) {
			inner_open(driver);
			snprintf(known, sizeof(known), "%s/%d", at, driver->socket);
			name = known;
		}
	}
	if (driver_plug(memif, driver, name) != 0)
		return -1;
	if (driver->role == ROLE_SERVER && hidden)
		inner_open(driver);
	return hidden ? inner_hide(memif, driver) : 0;
}

/* A spare driver that suits this role and size, or NULL. Clients' spare drivers of other sizes are
 * unplugged. */
static struct driver *driver_take(enum role role, uint32_t frame_size)
{
	struct driver **at = &drivers_spare, *driver;
	while ((driver = *at)) {
		if (driver->role != role) {
			at = &driver->next;
			continue;
		}
		*at = driver->next;
		if (role == ROLE_SERVER || driver->frame_size == frame_size)
			return driver;
		driver_free(driver);
	}
	return NULL;
}

static int memif_find_driver(struct memif *memif, uint32_t frame_size)
{
	struct driver *driver;
	memif->driver = driver_take(memif->role, frame_size);
	if (memif->driver)
		return 0;
	driver = calloc(1, sizeof(*driver));
	if (!driver)
		return memif_complain(memif, ENOMEM);
	driver->role = memif->role;
	driver->frame_size = frame_size;
	driver->directory = driver->socket = driver->listener = driver->inner = -1;
	if (driver_make(memif, driver) == 0) {
		memif->driver = driver;
		return 0;
	}
	driver_free(driver);
	inner_remove(memif, memif->place);
	return -1;
}

static int memif_prepare(struct memif *memif, uint32_t mtu)
{
	uint32_t frame_size;
	struct ethdev_options options = {
		.name = memif->ethdev.port.name,
		.external = true,
	};
	if (memif_enter(memif, &mtu) != 0)
		return -1;
	frame_size = mtu + FRAME_HEADER;
	options.frame_size = frame_size;
	options.descriptors = (uint16_t)(1u << memif_ring_log2(frame_size));
	if (memif_find_driver(memif, frame_size) != 0)
		return -1;
	options.again = memif->driver->prepared;
	if (ethdev_prepare(&memif->ethdev, memif->driver->device, &options) != 0)
		return -1;
	memif->driver->prepared = true;
	memif->ethdev.port.operations = &memif_operations;
	/* A server's driver waits for its relay; a client's is started when there is a server to
	 * connect to. */
	if (memif->role == ROLE_SERVER && ethdev_start(&memif->ethdev) != 0)
		return -1;
	memif->ethdev.port.calls = true; /* by its bell, not by the driver */
	return 0;
}

struct port *memif_open(const char *path, uint32_t mtu)
{
	struct memif *memif;
	if (kinds_frame_size("memif", mtu) == 0)
		return NULL;
	if (!path[0] || strlen(path) + sizeof(".lock") > sizeof(memif->address.sun_path)) {
		log_error("memif:%s: the path is %s: write memif:PATH with at most %zu letters",
			path, path[0] ? "too long" : "missing",
			sizeof(memif->address.sun_path) - sizeof(".lock"));
		return NULL;
	}
	memif = calloc(1, sizeof(*memif));
	if (!memif) {
		log_error("memif:%s: out of memory", path);
		return NULL;
	}
	bell_init(&memif->bell);
	bell_register();
	memif->lock = memif->listener = memif->outer = memif->set = -1;
	memif->ethdev.id = RTE_MAX_ETHPORTS;
	memif->address.sun_family = AF_UNIX;
	memcpy(memif->address.sun_path, path, strlen(path) + 1);
	snprintf(memif->ethdev.port.name, sizeof(memif->ethdev.port.name), "memif:%.50s", path);
	if (memif_prepare(memif, mtu) == 0)
		return &memif->ethdev.port;
	memif_free(memif);
	return NULL;
}
