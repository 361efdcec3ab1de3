/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memif.c - tests of pmd-glue/memif.c. A case runs in a process of its own; its peer is this
 * program again, which echoes until it is killed, or told to go by a frame filled with LEAVE.
 */
#include "glue_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_malloc.h>

#include <pmd-glue/kinds.h>

#define LEAVE            255
#define KILLS            10
#define BURST            32
#define STREAM           20000
#define LEAVES           200
#define VISITS           200
#define IMPOSTOR_VISITS  3
#define CYCLES           30
#define WARM             3 /* cycles until all that stays has been made */
#define DESCRIPTORS_SEEN 256
#define MESSAGE          256                /* bytes; those of memif have 128 */
#define NOBODY           65534              /* a user */
#define LOOK             (50 * MICROSECOND) /* between two looks at a link */

static char directory[] = "/tmp/postern-memif-XXXXXX";
static char path[64];

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                    \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* --- the peer --- */

static struct port *process_open(uint32_t mtu)
{
	struct port *port;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(120);
	CHECK(settings_load() == 0);
	CHECK(glue_start() == 0);
	glue_thread_enter();
	port = memif_open(path, mtu);
	CHECK(port != NULL);
	return port;
}

/* The CPU is for the other process, or for other tests. */
static void rest(uint64_t time)
{
	const struct timespec pause = {.tv_nsec = (long)time};

	nanosleep(&pause, NULL);
}

static _Noreturn void echo(uint32_t mtu)
{
	struct port *port = process_open(mtu);
	bool leave = false;

	while (!leave) {
		struct rte_mbuf *frames[BURST];
		uint16_t count = port_receive(port, frames, BURST);
		uint16_t sent = 0;
		port->operations->link(port);
		if (count == 0)
			sched_yield();
		for (uint16_t n = 0; n < count; n++)
			leave |= frame_fill(frames[n]) == LEAVE;
		/* The link may be gone for good. */
		for (uint64_t end = glue_now(NULL) + SECOND; sent < count && glue_now(NULL) < end;)
			sent = (uint16_t)(sent + port_transmit(port, frames + sent,
							 (uint16_t)(count - sent)));
		rte_pktmbuf_free_bulk(frames + sent, (unsigned)(count - sent));
	}
	/* What was sent last must get out before the memory goes. */
	rest(100 * MILLISECOND);
	port_close(port);
	_exit(0);
}

/* A program of its own: EAL may run in this process already. */
static pid_t peer_run(const char *what, uint32_t mtu)
{
	char number[16], name[] = "test_memif", role[16], at[sizeof(path)];
	char *const arguments[] = {name, role, at, number, NULL};
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(number, sizeof(number), "%u", mtu);
		snprintf(role, sizeof(role), "%s", what);
		memcpy(at, path, sizeof(at));
		execv("/proc/self/exe", arguments);
		_exit(2);
	}
	CHECK(child > 0);
	return child;
}

static pid_t peer_start(uint32_t mtu)
{
	return peer_run("echo", mtu);
}

static void peer_kill(pid_t child)
{
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
}

/* --- this end --- */

static void wait_for_link(struct port *port, bool up)
{
	uint64_t end = glue_now(NULL) + PATIENCE;

	while (port->operations->link(port) != up) {
		struct rte_mbuf *frame;
		CHECK(glue_now(NULL) < end);
		if (port_receive(port, &frame, 1) == 1)
			rte_pktmbuf_free(frame);
		rest(LOOK);
	}
}

static struct rte_mbuf *take(struct port *port)
{
	struct rte_mbuf *frame = port_take(port);

	CHECK(frame != NULL);
	return frame;
}

static void put(struct port *port, uint32_t size, uint8_t fill)
{
	struct rte_mbuf *frame = frame_make(port, everybody, size, fill);
	uint64_t end = glue_now(NULL) + PATIENCE;

	while (port_transmit(port, &frame, 1) == 0) {
		CHECK(glue_now(NULL) < end);
		port->operations->link(port);
		sched_yield();
	}
}

static void exchange(struct port *port, uint32_t size, uint8_t fill)
{
	struct rte_mbuf *frame;

	put(port, size, fill);
	frame = take(port);
	CHECK(frame_is(frame, size, fill));
	rte_pktmbuf_free(frame);
}

static void leave_none_out(const struct port *port)
{
	CHECK(rte_mempool_in_use_count(port->pool) == 0);
}

static unsigned entries(const char *name)
{
	unsigned count = 0;
	DIR *all = opendir(name);

	CHECK(all != NULL);
	while (readdir(all))
		count++;
	closedir(all);
	return count;
}

/* --- cases --- */

static void case_sizes(uint32_t mtu)
{
	pid_t peer = peer_start(mtu);
	struct port *port = process_open(mtu);

	CHECK(port->frame_size == (mtu ? mtu + 14 : 33038));
	CHECK(port->receive_frames == (mtu == 1500 ? 1024 : mtu == 0 ? 512 : 256));
	CHECK(port->external);
	wait_for_link(port, true);
	for (uint32_t size = 60; size < port->frame_size; size = size * 3 / 2)
		exchange(port, size, (uint8_t)(size % LEAVE));
	exchange(port, port->frame_size, 77);
	/* Longer than any buffer of the peer's: counted, not sent. */
	if (rte_pktmbuf_data_room_size(port->pool) > RTE_PKTMBUF_HEADROOM + port->frame_size) {
		put(port, port->frame_size + 1, 1);
		CHECK(port_count(port).errors == 1);
	}
	exchange(port, 60, LEAVE);
	CHECK(waitpid(peer, NULL, 0) == peer);
	leave_none_out(port);
	port_close(port);
}

static void case_stream(void)
{
	pid_t peer = peer_start(0);
	struct port *port = process_open(0);
	unsigned sent = 0, received = 0;
	uint64_t end = glue_now(NULL) + PATIENCE;

	wait_for_link(port, true);
	while (received < STREAM) {
		struct rte_mbuf *frames[BURST];
		uint16_t count;
		CHECK(glue_now(NULL) < end);
		while (sent < STREAM && sent - received < port->receive_frames) {
			put(port, 60 + sent % 9000, (uint8_t)(sent % LEAVE));
			sent++;
		}
		count = port_receive(port, frames, BURST);
		for (uint16_t n = 0; n < count; n++, received++)
			CHECK(frame_is(
				frames[n], 60 + received % 9000, (uint8_t)(received % LEAVE)));
		rte_pktmbuf_free_bulk(frames, count);
		if (count == 0)
			sched_yield();
	}
	exchange(port, 60, LEAVE);
	CHECK(waitpid(peer, NULL, 0) == peer);
	leave_none_out(port);
	port_close(port);
}

/* The peer is killed at whatever it does, and another one started. `first`: the survivor listens.
 */
static void case_kills(bool first)
{
	pid_t peer = first ? 0 : peer_start(0);
	struct port *port;
	unsigned descriptors = 0;
	struct stat status;

	if (!first)
		for (uint64_t end = glue_now(NULL) + PATIENCE; stat(path, &status) != 0;)
			CHECK(glue_now(NULL) < end);
	port = process_open(0);
	for (unsigned n = 0; n < KILLS; n++) {
		if (peer == 0)
			peer = peer_start(0);
		wait_for_link(port, true);
		exchange(port, 9000, (uint8_t)n);
		if (n == 1)
			descriptors = entries("/proc/self/fd");
		for (unsigned m = 0; m < n * 50; m++)
			put(port, 5000, 1);
		peer_kill(peer);
		peer = 0;
		wait_for_link(port, false);
		put(port, 60, 1); /* taken, and lost */
		leave_none_out(port);
	}
	peer = peer_start(0);
	wait_for_link(port, true);
	exchange(port, 60, 1);
	CHECK(entries("/proc/self/fd") == descriptors);
	peer_kill(peer);
	port_close(port);
}

static void case_third(void)
{
	pid_t peer = peer_start(0);
	struct port *port = process_open(0);
	pid_t other;
	int result;

	wait_for_link(port, true);
	other = peer_run("third", 0);
	CHECK(waitpid(other, &result, 0) == other);
	CHECK(WIFEXITED(result) && WEXITSTATUS(result) == 0);
	exchange(port, 60, 1);
	peer_kill(peer);
	port_close(port);
}

/* It must be turned away. */
static int third(void)
{
	return settings_load() == 0 && glue_start() == 0 && !memif_open(path, 0) &&
			       strstr(log_last_error(), "two processes have this path")
		       ? 0
		       : 1;
}

static void wait_for_both(struct port *one, struct port *two)
{
	uint64_t end = glue_now(NULL) + PATIENCE;
	struct rte_mbuf *frame;
	bool up = false;

	while (!up) {
		up = one->operations->link(one);
		up &= two->operations->link(two);
		CHECK(glue_now(NULL) < end);
		rest(LOOK);
	}
	/* A server has room to send once the client has polled. */
	CHECK(port_receive(one, &frame, 1) == 0);
	CHECK(port_receive(two, &frame, 1) == 0);
}

/* The driver takes two pieces, the second from any memory, and keeps neither (port->gathers). */
static void gather(struct port *from, struct port *to)
{
	static uint8_t memory[3000];
	struct rte_mbuf_ext_shared_info info = {.refcnt = 2}; /* never freed */
	struct rte_mbuf *frame = frame_make(from, everybody, 100, 9);
	struct rte_mbuf *tail = rte_pktmbuf_alloc(from->pool);

	CHECK(from->gathers);
	memset(memory, 9, sizeof(memory));
	rte_pktmbuf_attach_extbuf(tail, memory, RTE_BAD_IOVA, sizeof(memory), &info);
	rte_pktmbuf_append(tail, sizeof(memory));
	CHECK(rte_pktmbuf_chain(frame, tail) == 0);
	CHECK(port_transmit(from, &frame, 1) == 1);
	CHECK(rte_mbuf_ext_refcnt_read(&info) == 1);
	frame = take(to);
	CHECK(frame_is(frame, 100 + sizeof(memory), 9));
	rte_pktmbuf_free(frame);
}

static void case_both_in_one_process(void)
{
	struct port *one = process_open(0);
	struct port *two = memif_open(path, 0);
	struct rte_mbuf *frame;

	CHECK(two != NULL);
	CHECK(one->calls && two->calls); /* a server as well as a client */
	wait_for_both(one, two);
	put(one, 100, 3);
	frame = take(two);
	CHECK(frame_is(frame, 100, 3));
	rte_pktmbuf_free(frame);
	gather(one, two);
	gather(two, one);
	/* The listener goes; what is left takes the other part when opened again. */
	port_close(one);
	one = memif_open(path, 0);
	CHECK(one != NULL);
	wait_for_link(two, false);
	wait_for_both(one, two);
	put(two, 100, 4);
	frame = take(one);
	CHECK(frame_is(frame, 100, 4));
	rte_pktmbuf_free(frame);
	port_close(two);
	port_close(one);
}

/* The first one's size goes for the second, who may not want another one. A killed process's goes
 * for nobody. */
static void case_mtu_of_the_first(void)
{
	pid_t peer = peer_start(1500);
	struct port *port;
	struct stat status;

	for (uint64_t end = glue_now(NULL) + PATIENCE; stat(path, &status) != 0;)
		CHECK(glue_now(NULL) < end);
	port = process_open(0);
	CHECK(port->frame_size == 1514);
	wait_for_link(port, true);
	exchange(port, 1514, 1);
	port_close(port);
	CHECK(memif_open(path, 9000) == NULL);
	CHECK(strstr(log_last_error(), "set PTL_MTU=1500 here"));
	peer_kill(peer);
	port = memif_open(path, 9000);
	CHECK(port != NULL && port->frame_size == 9014);
	port_close(port);
}

static bool file_is(const char *ending)
{
	char name[sizeof(path) + 8];
	struct stat status;

	snprintf(name, sizeof(name), "%s%s", path, ending);
	return lstat(name, &status) == 0;
}

/* Of two processes, each leaves the meeting when both are there; they share the count. */
static void meet(atomic_uint *count)
{
	unsigned full = (atomic_fetch_add(count, 1) | 1) + 1;

	while ((int)(atomic_load(count) - full) < 0)
		sched_yield();
}

static struct port *port_again(void)
{
	struct port *port = memif_open(path, 0);

	CHECK(port != NULL);
	return port;
}

/* Both leave at the same moment: one of them takes the files away. Then one comes while the other
 * one leaves: it finds a place, and its files stay. */
static void leave_together(atomic_uint *count, bool parent)
{
	port_close(process_open(0));
	for (unsigned n = 0; n < LEAVES; n++) {
		struct port *port = port_again();

		meet(count);
		port_close(port);
		meet(count);
		CHECK(!file_is("") && !file_is(".lock"));
		meet(count);
		if (parent)
			port = port_again();
		meet(count);
		if (parent)
			port_close(port);
		else
			port = port_again();
		meet(count);
		CHECK(file_is(".lock"));
		meet(count);
		if (!parent)
			port_close(port);
		meet(count);
	}
}

static void case_leave_together(void)
{
	/* The other process is forked before DPDK is started. */
	atomic_uint *count = mmap(
		NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t other = fork();
	int result;

	CHECK(count != MAP_FAILED && other >= 0);
	leave_together(count, other > 0);
	if (other == 0)
		_exit(0);
	CHECK(waitpid(other, &result, 0) == other);
	CHECK(WIFEXITED(result) && WEXITSTATUS(result) == 0);
}

static int path_listen(int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, type, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	CHECK(listener >= 0);
	CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	CHECK(listen(listener, 1) == 0);
	return listener;
}

/* Who comes while a killed server is dying may still be able to connect to it, but must take its
 * place. */
static void case_dying_server(void)
{
	struct pollfd listener = {.fd = path_listen(SOCK_SEQPACKET), .events = POLLIN};
	pid_t dying = fork();
	struct port *one, *two;

	CHECK(dying >= 0);
	if (dying == 0) {
		CHECK(poll(&listener, 1, -1) == 1);
		_exit(0);
	}
	CHECK(close(listener.fd) == 0);
	one = process_open(0);
	CHECK(waitpid(dying, NULL, 0) == dying);
	two = port_again();
	wait_for_both(one, two);
	port_close(one);
	port_close(two);
}

static void case_foreign_socket(void)
{
	int listener = path_listen(SOCK_STREAM);

	CHECK(settings_load() == 0 && glue_start() == 0);
	CHECK(memif_open(path, 0) == NULL);
	CHECK(strstr(log_last_error(), "choose a path where there is nothing"));
	CHECK(unlink(path) == 0); /* it is still there */
	CHECK(close(listener) == 0);
}

static void case_foreign_file(void)
{
	FILE *file = fopen(path, "w");

	CHECK(file != NULL);
	fclose(file);
	CHECK(settings_load() == 0 && glue_start() == 0);
	CHECK(memif_open(path, 0) == NULL);
	CHECK(strstr(log_last_error(), "choose a path where there is nothing"));
	CHECK(unlink(path) == 0);
}

/* A file of somebody else's with the name of the lock, or a name for it, is not written to and
 * stays. */
static void case_foreign_lock(void)
{
	static const char text[] = "not a memif's";
	char lock[80], other[80], found[sizeof(text)] = "";
	FILE *file;

	snprintf(lock, sizeof(lock), "%s.lock", path);
	snprintf(other, sizeof(other), "%s.other", path);
	file = fopen(other, "w");
	CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
	CHECK(symlink(other, lock) == 0);
	CHECK(settings_load() == 0 && glue_start() == 0);
	CHECK(memif_open(path, 0) == NULL);
	CHECK(strstr(log_last_error(), "choose another path"));
	CHECK(unlink(lock) == 0 && rename(other, lock) == 0);
	CHECK(memif_open(path, 0) == NULL);
	CHECK(strstr(log_last_error(), "choose another path"));
	file = fopen(lock, "r");
	CHECK(file != NULL && fgets(found, sizeof(found), file) != NULL && fclose(file) == 0);
	CHECK(strcmp(found, text) == 0);
	CHECK(unlink(lock) == 0);
}

/* Whose directory may be written to, as /tmp. */
static void case_another_users_lock(void)
{
	struct port *port;
	char lock[80];
	int fd;

	if (geteuid() != 0)
		return;
	snprintf(lock, sizeof(lock), "%s.lock", path);
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && close(fd) == 0 && chmod(directory, 0777) == 0);
	CHECK(settings_load() == 0 && glue_start() == 0 && setuid(NOBODY) == 0);
	CHECK(memif_open(path, 0) == NULL);
	CHECK(strstr(log_last_error(), "another user's"));
	CHECK(access(lock, F_OK) == 0);
	CHECK(unlink(lock) == 0);
	port = memif_open(path, 0);
	CHECK(port != NULL);
	port_close(port);
}

/* --- what others may do --- */

/* Is the descriptor a listening socket? */
static bool is_listener(int fd, struct sockaddr_un *address, socklen_t *length)
{
	int listens = 0;
	socklen_t size = sizeof(listens);

	*length = sizeof(*address);
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
	       getsockname(fd, (struct sockaddr *)address, length) == 0 &&
	       address->sun_family == AF_UNIX;
}

/* Nobody can be reached there, or, at PATH, the connection ends without a word. */
static void knock(const struct sockaddr_un *address, socklen_t length)
{
	struct pollfd end = {.fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), .events = POLLIN};
	char bytes[MESSAGE];

	CHECK(end.fd >= 0);
	if (connect(end.fd, (const struct sockaddr *)address, length) == 0) {
		CHECK(strcmp(address->sun_path, path) == 0);
		CHECK(poll(&end, 1, (int)(PATIENCE / MILLISECOND)) == 1);
		CHECK(recv(end.fd, bytes, sizeof(bytes), 0) <= 0);
	}
	CHECK(close(end.fd) == 0);
}

/* Knocks at every listening socket of this process, as another user where that can be: but for
 * PATH, this user is a stranger too. */
static _Noreturn void stranger(bool at_path)
{
	bool other = geteuid() == 0;
	unsigned count = 0;

	CHECK(!other || (setgid(NOBODY) == 0 && setuid(NOBODY) == 0));
	for (int fd = 0; fd < DESCRIPTORS_SEEN; fd++) {
		struct sockaddr_un address = {0};
		socklen_t length;
		if (!is_listener(fd, &address, &length))
			continue;
		count++;
		if (strcmp(address.sun_path, path) != 0 || (at_path && other))
			knock(&address, length);
	}
	CHECK(count >= 2);
	_exit(0);
}

static void meet_stranger(struct port *port, bool at_path)
{
	pid_t child = fork();
	int result;

	CHECK(child >= 0);
	if (child == 0)
		stranger(at_path);
	while (waitpid(child, &result, WNOHANG) == 0) {
		CHECK(!port->operations->link(port));
		rest(LOOK);
	}
	CHECK(WIFEXITED(result) && WEXITSTATUS(result) == 0);
}

/* Though all files and directories may be written to by everybody. */
static void case_strangers(void)
{
	struct port *one, *two;

	umask(0);
	CHECK(chmod(directory, 0777) == 0);
	CHECK(setenv("PTL_TELEMETRY", "off", 1) == 0); /* whose socket others may know */
	one = process_open(0);
	meet_stranger(one, true);
	two = port_again();
	meet_stranger(one, false);
	wait_for_both(one, two);
	port_close(one);
	port_close(two);
}

/* As another user, listens at PATH and greets: whoever comes must leave without a word, also those
 * that come to be served. */
static _Noreturn void impostor(int ready)
{
	int listener;

	umask(0);
	CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	listener = path_listen(SOCK_SEQPACKET);
	CHECK(write(ready, "", 1) == 1);
	for (unsigned n = 0; n < IMPOSTOR_VISITS; n++) {
		int visitor = accept(listener, NULL, NULL);
		char bytes[MESSAGE] = {2}; /* HELLO */
		CHECK(visitor >= 0);
		(void)send(visitor, bytes, MESSAGE / 2, MSG_NOSIGNAL);
		CHECK(recv(visitor, bytes, sizeof(bytes), 0) <= 0);
		CHECK(close(visitor) == 0);
	}
	_exit(0);
}

static void case_impostor(void)
{
	int ready[2], result;
	char byte;
	pid_t child;
	struct port *port;

	if (geteuid() != 0)
		return;
	CHECK(chmod(directory, 0777) == 0 && pipe(ready) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		impostor(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 1);
	port = process_open(0);
	while (waitpid(child, &result, WNOHANG) == 0) {
		CHECK(!port->operations->link(port));
		rest(LOOK);
	}
	CHECK(WIFEXITED(result) && WEXITSTATUS(result) == 0);
	CHECK(unlink(path) == 0);
	port_close(port);
}

/* What a process left that was killed before its socket had lost its name goes; a directory that is
 * not a memif's stays. */
static void case_left_directory(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char left[sizeof(path) + 8], own[sizeof(left) + 8];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct port *port;

	snprintf(left, sizeof(left), "%s.0", path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/in", left);
	CHECK(mkdir(left, 0700) == 0);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	port_close(process_open(0));
	CHECK(!file_is(".0"));
	snprintf(left, sizeof(left), "%s.1", path);
	snprintf(own, sizeof(own), "%s/mine", left);
	CHECK(mkdir(left, 0700) == 0 && mkdir(own, 0700) == 0);
	port = port_again();
	CHECK(memif_open(path, 0) == NULL);
	CHECK(strstr(log_last_error(), "choose another path, or remove it"));
	port_close(port);
	CHECK(rmdir(own) == 0 && rmdir(left) == 0);
}

/* A client's driver is of one size: those of others make room for it, or DPDK would have no more
 * ports. */
static void case_many_sizes(void)
{
	port_close(process_open(0));
	for (uint32_t mtu = 1500; mtu < 1500 + 2 * RTE_MAX_ETHPORTS; mtu++) {
		struct port *one = memif_open(path, mtu), *two = memif_open(path, mtu);
		CHECK(one != NULL && two != NULL);
		port_close(one);
		port_close(two);
	}
}

/* Somebody comes and is gone before the driver has noticed, again and again. */
static void case_visits(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct port *port = process_open(0);
	pid_t peer;

	memcpy(address.sun_path, path, sizeof(path));
	for (unsigned n = 0; n < VISITS; n++) {
		uint64_t end = glue_now(NULL) + PATIENCE;
		int visitor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		CHECK(visitor >= 0);
		while (connect(visitor, (struct sockaddr *)&address, sizeof(address)) != 0) {
			CHECK(errno == EAGAIN && glue_now(NULL) < end);
			CHECK(!port->operations->link(port));
		}
		CHECK(close(visitor) == 0);
		CHECK(!port->operations->link(port));
	}
	peer = peer_start(0);
	wait_for_link(port, true);
	exchange(port, 9000, 7);
	peer_kill(peer);
	port_close(port);
}

struct held {
	unsigned descriptors, threads, pieces;
};

static struct held process_holds(void)
{
	struct rte_malloc_socket_stats heap = {0};

	CHECK(rte_malloc_get_socket_stats(0, &heap) == 0);
	return (struct held){.descriptors = entries("/proc/self/fd"),
		.threads = entries("/proc/self/task"),
		.pieces = heap.alloc_count};
}

/* Who opens and closes both ends again and again holds no more in the end than after the first
 * times. */
static void case_cycles(void)
{
	struct held before = {0}, after;

	port_close(process_open(0));
	for (unsigned n = 0; n < CYCLES; n++) {
		struct port *one = port_again(), *two = port_again();
		wait_for_both(one, two);
		put(one, 100, 3);
		rte_pktmbuf_free(take(two));
		port_close(one);
		port_close(two);
		if (n == WARM)
			before = process_holds();
	}
	after = process_holds();
	CHECK(after.descriptors == before.descriptors);
	CHECK(after.threads == before.threads);
	CHECK(after.pieces == before.pieces);
}

/* Holds the lock's door, and stops. */
static pid_t door_hold(void)
{
	char name[sizeof(path) + 8];
	struct flock door = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2, .l_len = 1};
	pid_t child = fork();
	int fd, result;

	CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(name, sizeof(name), "%s.lock", path);
		fd = open(name, O_RDWR | O_CLOEXEC);
		CHECK(fd >= 0 && fcntl(fd, F_OFD_SETLKW, &door) == 0);
		raise(SIGSTOP);
		_exit(0);
	}
	CHECK(waitpid(child, &result, WUNTRACED) == child && WIFSTOPPED(result));
	return child;
}

/* A process that is stopped while it comes or goes holds up nobody for ever, and what is there
 * stays. */
static void case_stopped_in_the_door(void)
{
	struct port *port = process_open(0);
	pid_t stopped = door_hold();

	CHECK(memif_open(path, 0) == NULL);
	CHECK(strstr(log_last_error(), "stopped"));
	port_close(port);
	peer_kill(stopped);
	port_close(port_again());
}

/* Runs a case in a process of its own; afterwards nothing may be left of the path. */
static void run_apart(void (*run)(void), void (*run_mtu)(uint32_t), uint32_t mtu)
{
	char lock[80];
	struct stat status;
	int result;
	pid_t child = fork();

	if (child == 0) {
		if (run)
			run();
		else
			run_mtu(mtu);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &result, 0), child);
	assert_true(WIFEXITED(result));
	assert_int_equal(WEXITSTATUS(result), 0);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	assert_int_not_equal(lstat(path, &status), 0);
	assert_int_not_equal(lstat(lock, &status), 0);
}

static void memif_transmit__carries_frames_of_all_sizes(void **state)
{
	(void)state;
	run_apart(NULL, case_sizes, 0);
	run_apart(NULL, case_sizes, 1500);
	run_apart(NULL, case_sizes, 65280);
}

static void memif_transmit__carries_a_stream_in_order(void **state)
{
	(void)state;
	run_apart(case_stream, NULL, 0);
}

static void case_kills_of_the_client(void)
{
	case_kills(true);
}

static void case_kills_of_the_server(void)
{
	case_kills(false);
}

static void memif_link__comes_back_when_a_killed_client_is_started_again(void **state)
{
	(void)state;
	run_apart(case_kills_of_the_client, NULL, 0);
}

static void memif_link__comes_back_when_a_killed_server_is_started_again(void **state)
{
	(void)state;
	run_apart(case_kills_of_the_server, NULL, 0);
}

static void memif_open__turns_a_third_process_away(void **state)
{
	(void)state;
	run_apart(case_third, NULL, 0);
}

static void memif_open__may_be_both_ends_in_one_process(void **state)
{
	(void)state;
	run_apart(case_both_in_one_process, NULL, 0);
}

static void memif_open__takes_the_mtu_of_who_is_there(void **state)
{
	(void)state;
	run_apart(case_mtu_of_the_first, NULL, 0);
}

static void memif_close__leaves_nothing_when_both_close_at_once(void **state)
{
	(void)state;
	run_apart(case_leave_together, NULL, 0);
}

static void memif_open__takes_the_place_of_a_dying_server(void **state)
{
	(void)state;
	run_apart(case_dying_server, NULL, 0);
}

static void memif_open__leaves_a_socket_alone_that_is_no_memif(void **state)
{
	(void)state;
	run_apart(case_foreign_socket, NULL, 0);
}

static void memif_open__leaves_a_file_alone_that_is_no_socket(void **state)
{
	char lock[80];

	(void)state;
	run_apart(case_foreign_file, NULL, 0);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	assert_int_not_equal(access(lock, F_OK), 0);
}

static void memif_open__leaves_a_file_alone_that_is_no_lock(void **state)
{
	(void)state;
	run_apart(case_foreign_lock, NULL, 0);
}

static void memif_open__tells_of_another_user(void **state)
{
	(void)state;
	run_apart(case_another_users_lock, NULL, 0);
}

static void memif_open__lets_no_stranger_near_the_driver(void **state)
{
	(void)state;
	run_apart(case_strangers, NULL, 0);
}

static void memif_link__does_not_trust_another_users_server(void **state)
{
	(void)state;
	run_apart(case_impostor, NULL, 0);
}

static void memif_open__removes_what_a_killed_process_left(void **state)
{
	(void)state;
	run_apart(case_left_directory, NULL, 0);
}

static void memif_open__may_have_any_number_of_sizes(void **state)
{
	(void)state;
	run_apart(case_many_sizes, NULL, 0);
}

static void memif_link__survives_visitors_who_leave_at_once(void **state)
{
	(void)state;
	run_apart(case_visits, NULL, 0);
}

static void memif_close__keeps_nothing_that_is_not_used_again(void **state)
{
	(void)state;
	run_apart(case_cycles, NULL, 0);
}

static void memif_open__does_not_wait_for_who_is_stopped_in_the_door(void **state)
{
	(void)state;
	run_apart(case_stopped_in_the_door, NULL, 0);
}

static int memif_setup(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/wire", directory);
	return 0;
}

static int memif_teardown(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memif_transmit__carries_frames_of_all_sizes),
		cmocka_unit_test(memif_transmit__carries_a_stream_in_order),
		cmocka_unit_test(memif_link__comes_back_when_a_killed_client_is_started_again),
		cmocka_unit_test(memif_link__comes_back_when_a_killed_server_is_started_again),
		cmocka_unit_test(memif_open__turns_a_third_process_away),
		cmocka_unit_test(memif_open__may_be_both_ends_in_one_process),
		cmocka_unit_test(memif_open__takes_the_mtu_of_who_is_there),
		cmocka_unit_test(memif_close__leaves_nothing_when_both_close_at_once),
		cmocka_unit_test(memif_open__takes_the_place_of_a_dying_server),
		cmocka_unit_test(memif_open__leaves_a_socket_alone_that_is_no_memif),
		cmocka_unit_test(memif_open__leaves_a_file_alone_that_is_no_socket),
		cmocka_unit_test(memif_open__leaves_a_file_alone_that_is_no_lock),
		cmocka_unit_test(memif_open__tells_of_another_user),
		cmocka_unit_test(memif_open__lets_no_stranger_near_the_driver),
		cmocka_unit_test(memif_link__does_not_trust_another_users_server),
		cmocka_unit_test(memif_open__removes_what_a_killed_process_left),
		cmocka_unit_test(memif_open__may_have_any_number_of_sizes),
		cmocka_unit_test(memif_link__survives_visitors_who_leave_at_once),
		cmocka_unit_test(memif_close__keeps_nothing_that_is_not_used_again),
		cmocka_unit_test(memif_open__does_not_wait_for_who_is_stopped_in_the_door),
	};

	if (count == 4) {
		snprintf(path, sizeof(path), "%s", arguments[2]);
		if (strcmp(arguments[1], "third") == 0)
			return third();
		echo((uint32_t)atoi(arguments[3]));
	}
	return cmocka_run_group_tests(tests, memif_setup, memif_teardown);
}
