/* SPDX-License-Identifier: BSD-3-Clause */
/* gate.c - a port of a process through posternd, which has the card. See gate.h.
 *
 * Opened and closed under the front end's lock; owned by one poll core in between.
 *
 * G1. When posternd has gone, frames are dropped and counted, and the process calls again every
 *     CALL_TIME with the same process id, until a posternd answers as the last one did. So nothing
 *     is lost that the transport does not send again.
 * G2. posternd is believed what it says of this process (node id, process id, user, address) and
 *     nothing else: its pair is as hostile as any (P1 of pair.h).
 * G3. Only a posternd of the user who owns the directory is called, and only where no other user
 *     can write.
 * G4. A child process keeps none of the descriptors (H7 of hall.h).
 */
#include <pmd-glue/gate.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/membarrier.h>

#include <rte_mbuf.h>

#include <base/clock.h>
#include <base/lack.h>
#include <base/log.h>
#include <base/settings.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/hall.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pair.h>
#include <pmd-glue/pool.h>

#define TICK          MILLISECOND /* between two looks at the socket */
#define TICK_CALLS    32u         /* calls between two looks at the time */
#define REST_TIME     SECOND      /* between two looks at what memory the pair needs */
#define CALL_TIME     (5 * MILLISECOND)
#define ANSWER_TIME   (5 * SECOND)
#define STALL_TIME    (10 * MILLISECOND)
#define WAKES_AT_ONCE 64u

struct gate {
	struct port port;      /* first: a port is a gate */
	struct gate *next;     /* of this process's */
	struct hall_link link; /* for wake-ups; its socket is -1 while posternd is away */
	struct pair *pair;     /* NULL: posternd has not answered */
	void *memory;          /* of the pair that is to be */
	int set;               /* holds the socket */
	int page_file;
	_Atomic uint32_t *word; /* in this process's page */
	unsigned calls;         /* since the last look at the time */
	uint64_t tick;          /* the time of the next look at the socket */
	uint64_t rest;          /* and of the next pair_rest() */
	uint64_t deadline;      /* for the answer, or to call again */
	uint64_t stalled;       /* since when posternd has taken nothing; 0: it has */
	uint32_t pid;           /* GATE_PID_ANY before the first answer */
	uint32_t uid;
	uint32_t pair_frame; /* frame_size of the pair */
	uint16_t vlan;
	bool told;                     /* that a posternd answers otherwise than the last one */
	struct port_counters counters; /* of pairs that have gone */
	struct sockaddr_un address;
};

bool gate_address(struct sockaddr_un *address, const char *name)
{
	size_t room = sizeof(address->sun_path);

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	return name[0] && name[0] != '.' && !strchr(name, '/') &&
	       (size_t)snprintf(address->sun_path, room, GATE_DIRECTORY "/%s/posternd", name) <
		       room;
}

/* --- G4 --- */

static pthread_mutex_t gates_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gate *gates;
static bool gates_handle_fork;

static void gates_before_fork(void)
{
	pthread_mutex_lock(&gates_lock);
}

static void gates_after_fork(void)
{
	pthread_mutex_unlock(&gates_lock);
}

static void gates_in_child(void)
{
	for (struct gate *gate = gates; gate; gate = gate->next) {
		if (gate->link.socket >= 0)
			close(gate->link.socket);
		gate->link.socket = -1;
	}
	gates = NULL;
	pthread_mutex_unlock(&gates_lock);
}

static bool gates_add(struct gate *gate)
{
	bool added;

	pthread_mutex_lock(&gates_lock);
	added = gates_handle_fork ||
		pthread_atfork(gates_before_fork, gates_after_fork, gates_in_child) == 0;
	gates_handle_fork = added;
	if (added) {
		gate->next = gates;
		gates = gate;
	}
	pthread_mutex_unlock(&gates_lock);
	return added;
}

static void gates_remove(struct gate *gate)
{
	struct gate **at = &gates;

	pthread_mutex_lock(&gates_lock);
	while (*at && *at != gate)
		at = &(*at)->next;
	if (*at)
		*at = gate->next;
	pthread_mutex_unlock(&gates_lock);
}

/* --- coming and going --- */

/* posternd has gone, or is left. What its pair still holds is lost, as on a wire. */
static void gate_leave(struct gate *gate)
{
	struct pair_counters own;

	if (gate->link.socket >= 0) {
		(void)epoll_ctl(gate->set, EPOLL_CTL_DEL, gate->link.socket, NULL);
		close(gate->link.socket);
	}
	gate->link.socket = -1;
	if (gate->link.asleep)
		munmap((void *)(uintptr_t)gate->link.asleep, shared_page_bytes());
	gate->link.asleep = NULL;
	if (gate->pair) {
		own = pair_count(gate->pair);
		gate->counters.errors += own.errors;
		gate->counters.no_mbuf += own.no_mbuf;
		pair_close(gate->pair);
	} else if (gate->memory) {
		munmap(gate->memory, pair_bytes());
	}
	gate->pair = NULL;
	gate->memory = NULL;
	gate->deadline = glue_now(NULL) + CALL_TIME;
}

/* G3. errno says what is wrong. */
static bool gate_trusted(const struct gate *gate, int socket)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);
	struct stat status;
	char path[sizeof(gate->address.sun_path)];

	snprintf(path, sizeof(path), "%s", gate->address.sun_path);
	*strrchr(path, '/') = 0;
	if (stat(path, &status) != 0 ||
		getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		return false;
	errno = EPERM;
	return status.st_uid == peer.uid && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* wait: for a place in posternd's queue, which an attacker may keep full. */
static int gate_connect(const struct gate *gate, bool wait)
{
	const struct sockaddr *address = (const struct sockaddr *)&gate->address;
	const struct timeval most = {.tv_sec = ANSWER_TIME / SECOND};
	int type = SOCK_SEQPACKET | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK);
	int fd = socket(AF_UNIX, type, 0), error;

	if (fd >= 0 && wait)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (fd >= 0 && connect(fd, address, sizeof(gate->address)) == 0 && gate_trusted(gate, fd))
		return fd;
	error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return -1;
}

/* The network namespace, if this process has an interface of the port's name there. */
static uint64_t gate_space(const struct gate *gate)
{
	const char *name = gate->port.name;

	if (strncmp(name, "xdp:", strlen("xdp:")) == 0)
		name += strlen("xdp:");
	return kernel_has(name) ? kernel_space() : 0;
}

static bool gate_hello(struct gate *gate)
{
	struct gate_hello hello = {.magic = GATE_MAGIC,
		.version = GATE_VERSION,
		.pid = gate->pid,
		.wish = (uint32_t)getpid(),
		.pair_bytes = pair_bytes(),
		.space = gate_space(gate)};
	int fds[] = {gate->page_file, shared_file(pair_bytes(), pair_bytes_touched())};
	bool sent = false;
	int error;

	if (fds[1] >= 0 && fcntl(fds[1], F_ADD_SEALS, SHARED_SEALS) == 0)
		gate->memory = shared_map(fds[1], pair_bytes(), PROT_READ | PROT_WRITE);
	if (gate->memory)
		sent = parcel_send(gate->link.socket, &hello, sizeof(hello), fds, RTE_DIM(fds));
	error = errno;
	if (fds[1] >= 0)
		close(fds[1]);
	errno = error;
	return sent;
}

/* Connects and says HELLO. Returns false if it cannot; then errno says why. */
static bool gate_call(struct gate *gate, bool wait)
{
	struct epoll_event event = {.events = EPOLLIN};
	int error;

	gate->link =
		(struct hall_link){.socket = gate_connect(gate, wait), .cheap = gate->link.cheap};
	if (gate->link.socket >= 0 &&
		epoll_ctl(gate->set, EPOLL_CTL_ADD, gate->link.socket, &event) == 0 &&
		gate_hello(gate)) {
		gate->deadline = glue_now(NULL) + ANSWER_TIME;
		return true;
	}
	error = errno;
	gate_leave(gate);
	errno = error;
	return false;
}

/* --- the answer --- */

static const struct gate_answer *answer_of(const struct parcel *parcel)
{
	const struct gate_answer *answer = (const struct gate_answer *)(const void *)parcel->bytes;

	return parcel->length == sizeof(*answer) && answer->magic == GATE_MAGIC &&
			       answer->version == GATE_VERSION
		       ? answer
		       : NULL;
}

/* Opens the pair. */
static bool gate_enter(
	struct gate *gate, const struct gate_answer *answer, const struct parcel *parcel)
{
	gate->link.asleep =
		shared_accept(parcel->fds[0], shared_page_bytes(), SHARED_PAGE_SEALS, PROT_READ);
	if (!gate->link.asleep)
		return false;
	gate->link.answered = true;
	gate->pair = pair_open(gate->memory, 0, gate->port.pool, answer->frame_size, NULL);
	gate->memory = NULL;
	gate->stalled = 0;
	return gate->pair != NULL;
}

/* Does a posternd that came after another say the same (G1)? */
static bool answer_same(const struct gate *gate, const struct gate_answer *answer)
{
	return answer->verdict == GATE_WELCOME && answer->nid == gate->port.nid &&
	       answer->pid == gate->pid && answer->uid == gate->uid &&
	       answer->frame_size == gate->pair_frame && answer->vlan == gate->vlan &&
	       memcmp(answer->address, gate->port.address, sizeof(answer->address)) == 0;
}

static void gate_answered(struct gate *gate, const struct parcel *parcel)
{
	const struct gate_answer *answer = answer_of(parcel);

	if (answer && answer_same(gate, answer) && gate_enter(gate, answer, parcel)) {
		gate->told = false;
		return;
	}
	if (!gate->told)
		log_warning("%s: posternd was started again and does not let this process in as "
			    "%u:%u (%s), so nothing leaves the machine: start it as before, or "
			    "start this program again",
			gate->port.name, gate->port.nid, gate->pid,
			!answer                           ? "it speaks otherwise"
			: answer->verdict == GATE_PID     ? "its process id is in use"
			: answer->verdict == GATE_WELCOME ? "as another one"
							  : "there are too many");
	gate->told = true;
	gate_leave(gate);
}

/* What posternd has said. */
static void gate_hear(struct gate *gate)
{
	struct parcel parcel;
	enum heard heard;
	char byte;
	ssize_t length = 1;

	if (gate->pair) {
		for (unsigned n = 0; n < WAKES_AT_ONCE && length > 0; n++)
			length = recv(gate->link.socket, &byte, sizeof(byte), MSG_DONTWAIT);
		if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR))
			gate_leave(gate);
		return;
	}
	heard = parcel_receive(&parcel, gate->link.socket, 1);
	if (heard == HEARD_MESSAGE)
		gate_answered(gate, &parcel);
	else if (heard == HEARD_END || glue_now(NULL) > gate->deadline)
		gate_leave(gate);
	parcel_close(&parcel);
}

static void gate_tick(struct gate *gate)
{
	uint64_t now = glue_now(NULL);

	gate->calls = 0;
	if (now < gate->tick)
		return;
	gate->tick = now + TICK;
	if (gate->link.socket >= 0)
		gate_hear(gate);
	else if (now >= gate->deadline)
		(void)gate_call(gate, false);
	if (gate->pair && !pair_sound(gate->pair)) {
		log_warning("%s: posternd has broken the rules of the memory that it shares with "
			    "this process, which calls it anew",
			gate->port.name);
		gate->counters.errors++;
		gate_leave(gate);
	}
	if (gate->pair && now >= gate->rest) {
		gate->rest = now + REST_TIME;
		pair_rest(gate->pair);
	}
}

/* --- the port --- */

static uint16_t gate_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct gate *gate = (struct gate *)port;

	if (++gate->calls >= TICK_CALLS || gate->tick == 0)
		gate_tick(gate);
	return gate->pair ? pair_receive(gate->pair, frames, count) : 0;
}

/* Has posternd been deaf for so long that frames must go? */
static bool gate_stalled(struct gate *gate)
{
	uint64_t now = glue_now(NULL);

	if (gate->stalled == 0)
		gate->stalled = now;
	return now >= gate->stalled + STALL_TIME;
}

static uint16_t gate_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct gate *gate = (struct gate *)port;
	uint16_t put = 0;

	if (gate->pair) {
		put = pair_transmit(gate->pair, frames, count);
		if (put > 0)
			gate->stalled = 0;
		hall_wake(&gate->link);
		if (put == count || (pair_sound(gate->pair) && !gate_stalled(gate)))
			return put;
	}
	gate->counters.missed += (uint64_t)(count - put);
	rte_pktmbuf_free_bulk(frames + put, (unsigned)(count - put));
	return count;
}

static bool gate_link(struct port *port)
{
	return ((struct gate *)port)->pair != NULL;
}

static void gate_counters(struct port *port, struct port_counters *counters)
{
	struct gate *gate = (struct gate *)port;
	struct pair_counters own = {0};

	if (gate->pair)
		own = pair_count(gate->pair);
	*counters = gate->counters;
	counters->errors += own.errors;
	counters->no_mbuf += own.no_mbuf;
	counters->buffers = pool_used(port->pool);
}

static void gate_describe(struct port *port, struct port_description *description)
{
	(void)port;
	snprintf(description->driver, sizeof(description->driver), "posternd");
	description->transmit_frames = PAIR_SLOTS;
}

/* While posternd is away, somebody must call it. */
static int gate_interrupt(struct port *port, bool on)
{
	struct gate *gate = (struct gate *)port;

	gate->tick = 0;
	return shared_sleep(gate->word, on) && on && gate->pair ? gate->set : -1;
}

static void gate_free(struct gate *gate)
{
	gate_leave(gate);
	gates_remove(gate);
	if (gate->set >= 0)
		close(gate->set);
	if (gate->word)
		munmap((void *)(uintptr_t)gate->word, shared_page_bytes());
	if (gate->page_file >= 0)
		close(gate->page_file);
	if (gate->port.pool)
		mempool_give(gate->port.pool);
	free(gate);
}

static void gate_close(struct port *port)
{
	gate_free((struct gate *)port);
}

static const struct port_operations gate_operations = {
	.receive = gate_receive,
	.transmit = gate_transmit,
	.link = gate_link,
	.counters = gate_counters,
	.describe = gate_describe,
	.interrupt = gate_interrupt,
	.close = gate_close,
};

/* --- opening --- */

/* Waits for the first answer. Returns false after an error line. */
static bool answer_wait(struct gate *gate, struct parcel *parcel)
{
	struct pollfd one = {.fd = gate->link.socket, .events = POLLIN};

	*parcel = (struct parcel){.length = 0};
	if (poll(&one, 1, (int)(ANSWER_TIME / MILLISECOND)) == 1 &&
		parcel_receive(parcel, gate->link.socket, 1) == HEARD_MESSAGE)
		return true;
	log_error("%s: posternd does not answer: systemctl status 'postern-node@*' says whether it "
		  "is well; start it again",
		gate->port.name);
	return false;
}

static void refusal_tell(const struct gate *gate, const struct gate_answer *answer)
{
	const char *name = gate->port.name;

	if (answer && answer->verdict == GATE_PID) {
		kinds_pid_taken();
		if (kinds_pid_is_tried())
			return;
	}
	if (!answer || answer->verdict == GATE_VERSIONS)
		log_error("%s: posternd is of another version of Postern: install one version of "
			  "both",
			name);
	else if (answer->verdict == GATE_SPACE)
		log_info(
			"%s: posternd has the interface of that name in another network namespace, "
			"so this process opens its own",
			name);
	else if (answer->verdict == GATE_PID)
		log_error("%s: process id %u is in use at posternd: choose another, or PTL_PID_ANY",
			name, gate->pid);
	else if (answer->verdict == GATE_SHARE || answer->verdict == GATE_FULL)
		log_error("%s: posternd has as many processes as it takes%s: end some", name,
			answer->verdict == GATE_SHARE ? " of one user" : "");
	else
		log_error("%s: posternd refuses this process (%u): look into its log, "
			  "journalctl -u 'postern-node@*'",
			name, answer->verdict);
}

/* Do the settings say what posternd does? Returns false after an error line. */
static bool answer_fits(
	const struct gate *gate, unsigned interface, const struct gate_answer *answer)
{
	const char *name = gate->port.name;
	uint64_t nid = setting_number_item(SETTING_NID, interface, answer->nid);
	uint64_t vlan = setting_number_item(SETTING_VLAN, interface, 0);

	if (nid != answer->nid)
		log_error("%s: PTL_NID is %llu, but posternd has node id %u: leave PTL_NID out, or "
			  "start posternd with it",
			name, (unsigned long long)nid, answer->nid);
	else if (vlan != answer->vlan)
		log_error("%s: PTL_VLAN is %llu, but posternd has VLAN %u (0: none): give both the "
			  "same",
			name, (unsigned long long)vlan, answer->vlan);
	else if (answer->frame_size < FRAME_MIN || answer->frame_size > FRAME_MAX)
		log_error("%s: posternd has frames of %u bytes, which cannot be", name,
			answer->frame_size);
	else
		return true;
	return false;
}

/* Becomes what the answer says. Returns false after an error line, or with *absent. */
static bool gate_start(struct gate *gate, uint32_t mtu, unsigned interface, bool *absent)
{
	struct port *port = &gate->port;
	const struct gate_answer *answer;
	struct parcel parcel;
	bool entered = false;

	if (!answer_wait(gate, &parcel))
		return false;
	answer = answer_of(&parcel);
	if (!answer || answer->verdict != GATE_WELCOME) {
		*absent = answer && answer->verdict == GATE_SPACE;
		refusal_tell(gate, answer);
	} else if (answer_fits(gate, interface, answer)) {
		port->nid = answer->nid;
		port->pid = gate->pid = answer->pid;
		port->uid = gate->uid = answer->uid;
		gate->vlan = answer->vlan;
		gate->pair_frame = port->frame_size = answer->frame_size;
		if (mtu != 0)
			port->frame_size = kinds_frame_size(
				port->name, RTE_MIN(mtu, answer->frame_size - FRAME_HEADER));
		memcpy(port->address, answer->address, sizeof(port->address));
		if (port->frame_size != 0)
			port->pool = mempool_take(
				port->name, gate->pair_frame, PAIR_SLOTS, SOCKET_ID_ANY, true);
		entered = port->pool && gate_enter(gate, answer, &parcel);
		if (port->pool && !entered)
			log_error("%s: there is no memory for frames of posternd: free some",
				port->name);
	}
	parcel_close(&parcel);
	return entered;
}

static struct gate *gate_make(const char *name, uint32_t pid)
{
	struct gate *gate = calloc(1, sizeof(*gate));

	if (!gate)
		return NULL;
	gate->port.operations = &gate_operations;
	gate->port.external = true;
	gate->port.calls = true;
	gate->port.helped = true;
	gate->port.aside = POOL_ASIDE;
	gate->port.socket = -1;
	gate->port.gathers = true;
	gate->port.guards = true;
	gate->port.parts = true;
	gate->port.gather_bytes = GATHER_BYTES;
	gate->port.receive_frames = PAIR_SLOTS;
	gate->port.named = true;
	gate->port.attested = true;
	snprintf(gate->port.name, sizeof(gate->port.name), "%s", name);
	gate->pid = pid;
	gate->page_file = gate->link.socket = -1;
	gate->link.cheap =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
	gate->set = epoll_create1(EPOLL_CLOEXEC);
	if (gate->set >= 0 && gates_add(gate))
		return gate;
	if (gate->set >= 0)
		close(gate->set);
	free(gate);
	return NULL;
}

/* Why posternd cannot be reached, though it may be there. Returns false if it is not there. */
static bool call_tell(const struct gate *gate, int error)
{
	const char *name = gate->port.name;

	if (error == ENOENT || error == ECONNREFUSED || error == ENOTDIR)
		return false;
	if (error == EACCES)
		log_error("%s: posternd does not admit this user: ask its administrator to put you "
			  "into the group of %s",
			name, gate->address.sun_path);
	else if (error == EPERM)
		log_error("%s: %s is not called, because users other than its owner can write "
			  "there: chmod go-w its directory",
			name, gate->address.sun_path);
	else if (error == EAGAIN)
		log_error("%s: posternd is stopped, or too many processes call it: start this "
			  "program again, and see /posternd/counters for who is refused",
			name);
	else
		log_error("%s: posternd cannot be called: %s: %s", name, strerror(error),
			lack_cure(error,
				"free some memory, or raise the limit of file sizes (ulimit -f)"));
	return true;
}

struct port *gate_open(
	const char *name, uint32_t mtu, unsigned interface, uint32_t pid, bool *absent)
{
	struct sockaddr_un address;
	struct gate *gate;

	*absent = !gate_address(&address, name) || access(address.sun_path, F_OK) != 0;
	if (*absent)
		return NULL;
	if (setting_is(SETTING_ENCAP, "udp")) {
		log_error("%s: PTL_ENCAP=udp does not go through posternd: unset it, or end "
			  "posternd and run as root",
			name);
		return NULL;
	}
	gate = gate_make(name, pid);
	if (!gate) {
		log_error("%s: out of memory, or of descriptors", name);
		return NULL;
	}
	gate->address = address;
	gate->word = shared_page_make(&gate->page_file);
	if (gate->word) {
		if (!gate_call(gate, true))
			*absent = !call_tell(gate, errno);
		else if (gate_start(gate, mtu, interface, absent))
			return &gate->port;
	}
	gate_free(gate);
	return NULL;
}
