/* SPDX-License-Identifier: BSD-3-Clause */
/* client.c - a port of a process through posternd, which has the card. See client.h.
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
 * G4. A child process keeps none of the descriptors (H7 of rendezvous.h).
 */
#include <pmd-glue/client.h>

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
#include <base/log.h>
#include <base/remedy.h>
#include <base/settings.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/rendezvous.h>
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

struct client_port {
	struct port port;         /* first: a port is a client port */
	struct client_port *next; /* of this process's */
	struct rendezvous_connection
		connection; /* for wake-ups; its socket is -1 while posternd is away */
	struct pair *pair;  /* NULL: posternd has not answered */
	void *memory;       /* of the pair that is to be */
	int set;            /* holds the socket */
	int page_file;
	struct sleeper sleeper;
	unsigned calls;    /* since the last look at the time */
	uint64_t tick;     /* the time of the next look at the socket */
	uint64_t rest;     /* and of the next pair_rest() */
	uint64_t deadline; /* for the answer, or to call again */
	uint64_t stalled;  /* since when posternd has taken nothing; 0: it has */
	uint32_t pid;      /* CLIENT_PID_ANY before the first answer */
	uint32_t uid;
	uint32_t pair_frame; /* frame_size of the pair */
	uint16_t vlan;
	bool told;                     /* that a posternd answers otherwise than the last one */
	struct port_counters counters; /* of pairs that have gone */
	struct sockaddr_un address;
};

bool posternd_address(struct sockaddr_un *address, const char *name)
{
	size_t room = sizeof(address->sun_path);

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	return name[0] && name[0] != '.' && !strchr(name, '/') &&
	       (size_t)snprintf(address->sun_path, room, CLIENT_DIRECTORY "/%s/posternd", name) <
		       room;
}

/* --- G4 --- */

static pthread_mutex_t client_ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct client_port *client_ports;
static bool client_ports_handle_fork;

static void client_ports_before_fork(void)
{
	pthread_mutex_lock(&client_ports_lock);
}

static void client_ports_after_fork(void)
{
	pthread_mutex_unlock(&client_ports_lock);
}

static void client_ports_in_child(void)
{
	for (struct client_port *client = client_ports; client; client = client->next) {
		if (client->connection.socket >= 0)
			close(client->connection.socket);
		client->connection.socket = -1;
	}
	client_ports = NULL;
	pthread_mutex_unlock(&client_ports_lock);
}

static bool client_ports_add(struct client_port *client)
{
	bool added;

	pthread_mutex_lock(&client_ports_lock);
	added = client_ports_handle_fork ||
		pthread_atfork(client_ports_before_fork, client_ports_after_fork,
			client_ports_in_child) == 0;
	client_ports_handle_fork = added;
	if (added) {
		client->next = client_ports;
		client_ports = client;
	}
	pthread_mutex_unlock(&client_ports_lock);
	return added;
}

static void client_ports_remove(struct client_port *client)
{
	struct client_port **at = &client_ports;

	pthread_mutex_lock(&client_ports_lock);
	while (*at && *at != client)
		at = &(*at)->next;
	if (*at)
		*at = client->next;
	pthread_mutex_unlock(&client_ports_lock);
}

/* --- coming and going --- */

/* posternd has gone, or is left. What its pair still holds is lost, as on a wire. */
static void client_port_leave(struct client_port *client)
{
	struct pair_counters own;

	if (client->connection.socket >= 0) {
		(void)epoll_ctl(client->set, EPOLL_CTL_DEL, client->connection.socket, NULL);
		close(client->connection.socket);
	}
	client->connection.socket = -1;
	if (client->connection.word)
		munmap((void *)(uintptr_t)client->connection.word, shared_page_bytes());
	client->connection.word = NULL;
	if (client->pair) {
		own = pair_count(client->pair);
		client->counters.errors += own.errors;
		client->counters.no_mbuf += own.no_mbuf;
		pair_close(client->pair);
	} else if (client->memory) {
		munmap(client->memory, pair_bytes());
	}
	client->pair = NULL;
	client->memory = NULL;
	client->deadline = glue_now(NULL) + CALL_TIME;
}

/* G3. errno says what is wrong. */
static bool client_port_trusted(const struct client_port *client, int socket)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);
	struct stat status;
	char path[sizeof(client->address.sun_path)];

	snprintf(path, sizeof(path), "%s", client->address.sun_path);
	*strrchr(path, '/') = 0;
	if (stat(path, &status) != 0 ||
		getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		return false;
	errno = EPERM;
	return status.st_uid == peer.uid && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* wait: for a place in posternd's queue, which an attacker may keep full. */
static int client_port_connect(const struct client_port *client, bool wait)
{
	const struct sockaddr *address = (const struct sockaddr *)&client->address;
	const struct timeval most = {.tv_sec = ANSWER_TIME / SECOND};
	int type = SOCK_SEQPACKET | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK);
	int fd = socket(AF_UNIX, type, 0), error;

	if (fd >= 0 && wait)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (fd >= 0 && connect(fd, address, sizeof(client->address)) == 0 &&
		client_port_trusted(client, fd))
		return fd;
	error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return -1;
}

/* The network namespace, if this process has an interface of the port's name there. */
static uint64_t client_port_space(const struct client_port *client)
{
	const char *name = client->port.name;

	if (strncmp(name, "xdp:", strlen("xdp:")) == 0)
		name += strlen("xdp:");
	return kernel_has(name) ? kernel_space() : 0;
}

static bool client_port_hello(struct client_port *client)
{
	struct client_hello hello = {.magic = CLIENT_MAGIC,
		.version = CLIENT_VERSION,
		.pid = client->pid,
		.wish = (uint32_t)getpid(),
		.pair_bytes = pair_bytes(),
		.space = client_port_space(client)};
	int fds[] = {client->page_file, shared_file(pair_bytes(), pair_bytes_touched())};
	bool sent = false;
	int error;

	if (fds[1] >= 0 && fcntl(fds[1], F_ADD_SEALS, SHARED_SEALS) == 0)
		client->memory = shared_map(fds[1], pair_bytes(), PROT_READ | PROT_WRITE);
	if (client->memory)
		sent = parcel_send(
			client->connection.socket, &hello, sizeof(hello), fds, RTE_DIM(fds));
	error = errno;
	if (fds[1] >= 0)
		close(fds[1]);
	errno = error;
	return sent;
}

/* Connects and says HELLO. Returns false if it cannot; then errno says why. */
static bool client_port_call(struct client_port *client, bool wait)
{
	struct epoll_event event = {.events = EPOLLIN};
	int error;

	client->connection = (struct rendezvous_connection){
		.socket = client_port_connect(client, wait), .cheap = client->connection.cheap};
	if (client->connection.socket >= 0 &&
		epoll_ctl(client->set, EPOLL_CTL_ADD, client->connection.socket, &event) == 0 &&
		client_port_hello(client)) {
		client->deadline = glue_now(NULL) + ANSWER_TIME;
		return true;
	}
	error = errno;
	client_port_leave(client);
	errno = error;
	return false;
}

/* --- the answer --- */

static const struct client_answer *answer_of(const struct parcel *parcel)
{
	const struct client_answer *answer =
		(const struct client_answer *)(const void *)parcel->bytes;

	return parcel->length == sizeof(*answer) && answer->magic == CLIENT_MAGIC &&
			       answer->version == CLIENT_VERSION
		       ? answer
		       : NULL;
}

/* Opens the pair. */
static bool client_port_enter(
	struct client_port *client, const struct client_answer *answer, const struct parcel *parcel)
{
	client->connection.word =
		shared_accept(parcel->fds[0], shared_page_bytes(), SHARED_PAGE_SEALS, PROT_READ);
	if (!client->connection.word)
		return false;
	client->connection.answered = true;
	client->pair = pair_open(client->memory, 0, client->port.pool, answer->frame_size, NULL);
	if (!client->pair)
		return false;
	client->memory = NULL;
	client->stalled = 0;
	return true;
}

/* Does a posternd that came after another say the same (G1)? */
static bool answer_same(const struct client_port *client, const struct client_answer *answer)
{
	return answer->verdict == CLIENT_WELCOME && answer->nid == client->port.nid &&
	       answer->pid == client->pid && answer->uid == client->uid &&
	       answer->frame_size == client->pair_frame && answer->vlan == client->vlan &&
	       memcmp(answer->address, client->port.address, sizeof(answer->address)) == 0;
}

static void client_port_answered(struct client_port *client, const struct parcel *parcel)
{
	const struct client_answer *answer = answer_of(parcel);

	if (answer && answer_same(client, answer) && client_port_enter(client, answer, parcel)) {
		client->told = false;
		return;
	}
	if (!client->told)
		log_warning("%s: posternd was started again, and refuses this process as %u:%u "
			    "(%s), so its frames do not leave the machine: start posternd as "
			    "before, or start this program again",
			client->port.name, client->port.nid, client->pid,
			!answer                             ? "it speaks otherwise"
			: answer->verdict == CLIENT_PID     ? "its process id is in use"
			: answer->verdict == CLIENT_WELCOME ? "as another one"
							    : "there are too many");
	client->told = true;
	client_port_leave(client);
}

/* What posternd has said. */
static void client_port_hear(struct client_port *client)
{
	struct parcel parcel;
	enum heard heard;
	char byte;
	ssize_t length = 1;

	if (client->pair) {
		for (unsigned n = 0; n < WAKES_AT_ONCE && length > 0; n++)
			length = recv(client->connection.socket, &byte, sizeof(byte), MSG_DONTWAIT);
		if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR))
			client_port_leave(client);
		return;
	}
	heard = parcel_receive(&parcel, client->connection.socket, 1);
	if (heard == HEARD_MESSAGE)
		client_port_answered(client, &parcel);
	else if (heard == HEARD_END || glue_now(NULL) > client->deadline)
		client_port_leave(client);
	parcel_close(&parcel);
}

static void client_port_tick(struct client_port *client)
{
	uint64_t now = glue_now(NULL);

	client->calls = 0;
	if (now < client->tick)
		return;
	client->tick = now + TICK;
	sleeper_tick(&client->sleeper);
	if (client->connection.socket >= 0)
		client_port_hear(client);
	else if (now >= client->deadline)
		(void)client_port_call(client, false);
	if (client->pair && !pair_sound(client->pair)) {
		log_warning("%s: posternd has written invalid data into the memory that it "
			    "shares with this process, which connects again: if this happens "
			    "again, install the same version of both",
			client->port.name);
		client->counters.errors++;
		client_port_leave(client);
	}
	if (client->pair && now >= client->rest) {
		client->rest = now + REST_TIME;
		pair_rest(client->pair);
	}
}

/* --- the port --- */

static uint16_t client_port_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct client_port *client = (struct client_port *)port;

	if (++client->calls >= TICK_CALLS || client->tick == 0)
		client_port_tick(client);
	return client->pair ? pair_receive(client->pair, frames, count) : 0;
}

/* Has posternd been deaf for so long that frames must go? */
static bool client_port_stalled(struct client_port *client)
{
	uint64_t now = glue_now(NULL);

	if (client->stalled == 0)
		client->stalled = now;
	return now >= client->stalled + STALL_TIME;
}

static uint16_t client_port_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct client_port *client = (struct client_port *)port;
	uint16_t put = 0;

	if (client->pair) {
		put = pair_transmit(client->pair, frames, count);
		if (put > 0)
			client->stalled = 0;
		rendezvous_wake(&client->connection);
		if (put == count || (pair_sound(client->pair) && !client_port_stalled(client)))
			return put;
	}
	client->counters.missed += (uint64_t)(count - put);
	rte_pktmbuf_free_bulk(frames + put, (unsigned)(count - put));
	return count;
}

static bool client_port_link(struct port *port)
{
	return ((struct client_port *)port)->pair != NULL;
}

static void client_port_counters(struct port *port, struct port_counters *counters)
{
	struct client_port *client = (struct client_port *)port;
	struct pair_counters own = {0};

	if (client->pair)
		own = pair_count(client->pair);
	*counters = client->counters;
	counters->errors += own.errors;
	counters->no_mbuf += own.no_mbuf;
	counters->buffers = pool_used(port->pool);
}

static void client_port_describe(struct port *port, struct port_description *description)
{
	(void)port;
	snprintf(description->driver, sizeof(description->driver), "posternd");
	description->transmit_frames = PAIR_SLOTS;
}

/* While posternd is away, somebody must call it. */
static int client_port_interrupt(struct port *port, bool on)
{
	struct client_port *client = (struct client_port *)port;

	client->tick = 0;
	return sleeper_sleep(&client->sleeper, on) && on && client->pair ? client->set : -1;
}

static void client_port_free(struct client_port *client)
{
	client_port_leave(client);
	client_ports_remove(client);
	if (client->set >= 0)
		close(client->set);
	if (client->sleeper.word)
		munmap((void *)(uintptr_t)client->sleeper.word, shared_page_bytes());
	if (client->page_file >= 0)
		close(client->page_file);
	if (client->port.pool)
		mempool_give(client->port.pool);
	free(client);
}

static void client_port_close(struct port *port)
{
	client_port_free((struct client_port *)port);
}

static const struct port_operations client_port_operations = {
	.receive = client_port_receive,
	.transmit = client_port_transmit,
	.link = client_port_link,
	.counters = client_port_counters,
	.describe = client_port_describe,
	.interrupt = client_port_interrupt,
	.close = client_port_close,
};

/* --- opening --- */

/* Waits for the first answer. Returns false after an error line. */
static bool answer_wait(struct client_port *client, struct parcel *parcel)
{
	struct pollfd one = {.fd = client->connection.socket, .events = POLLIN};

	*parcel = (struct parcel){.length = 0};
	if (poll(&one, 1, (int)(ANSWER_TIME / MILLISECOND)) == 1 &&
		parcel_receive(parcel, client->connection.socket, 1) == HEARD_MESSAGE)
		return true;
	log_error("%s: posternd does not answer: systemctl status 'postern-node@*' says whether it "
		  "is well; start it again",
		client->port.name);
	return false;
}

static void refusal_tell(const struct client_port *client, const struct client_answer *answer)
{
	const char *name = client->port.name;

	if (answer && answer->verdict == CLIENT_PID) {
		kinds_pid_taken();
		if (kinds_pid_is_tried())
			return;
	}
	if (!answer || answer->verdict == CLIENT_VERSIONS)
		log_error("%s: posternd has another version of Postern than this program: install "
			  "the same version of both",
			name);
	else if (answer->verdict == CLIENT_SPACE)
		log_info(
			"%s: posternd has the interface of that name in another network namespace, "
			"so this process opens its own",
			name);
	else if (answer->verdict == CLIENT_PID)
		log_error("%s: process id %u is in use at posternd: end the process that has it, "
			  "choose another id, or let the library choose one",
			name, client->pid);
	else if (answer->verdict == CLIENT_SHARE || answer->verdict == CLIENT_FULL)
		log_error("%s: posternd has reached its limit of processes%s: end some", name,
			answer->verdict == CLIENT_SHARE ? " of one user" : "");
	else
		log_error("%s: posternd refuses this process (%u): look into its log, "
			  "journalctl -u 'postern-node@*'",
			name, answer->verdict);
}

/* Do the settings say what posternd does? Returns false after an error line. */
static bool answer_fits(
	const struct client_port *client, unsigned interface, const struct client_answer *answer)
{
	const char *name = client->port.name;
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
		log_error("%s: posternd has frames of %u bytes, which is impossible: install "
			  "the same version of posternd and of this program",
			name, answer->frame_size);
	else
		return true;
	return false;
}

/* Becomes what the answer says. Returns false after an error line, or with *absent. */
static bool client_port_start(
	struct client_port *client, uint32_t mtu, unsigned interface, bool *absent)
{
	struct port *port = &client->port;
	const struct client_answer *answer;
	struct parcel parcel;
	bool entered = false;

	if (!answer_wait(client, &parcel))
		return false;
	answer = answer_of(&parcel);
	if (!answer || answer->verdict != CLIENT_WELCOME) {
		*absent = answer && answer->verdict == CLIENT_SPACE;
		refusal_tell(client, answer);
	} else if (answer_fits(client, interface, answer)) {
		port->nid = answer->nid;
		port->pid = client->pid = answer->pid;
		port->uid = client->uid = answer->uid;
		client->vlan = answer->vlan;
		client->pair_frame = port->frame_size = answer->frame_size;
		if (mtu != 0)
			port->frame_size = kinds_frame_size(
				port->name, RTE_MIN(mtu, answer->frame_size - FRAME_HEADER));
		memcpy(port->address, answer->address, sizeof(port->address));
		if (port->frame_size != 0)
			port->pool = mempool_take(
				port->name, client->pair_frame, PAIR_SLOTS, SOCKET_ID_ANY, true);
		entered = port->pool && client_port_enter(client, answer, &parcel);
		if (port->pool && !entered)
			log_error("%s: there is no memory for frames of posternd: %s", port->name,
				remedy_for_memory());
	}
	parcel_close(&parcel);
	return entered;
}

static struct client_port *client_port_make(const char *name, uint32_t pid)
{
	struct client_port *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->port.operations = &client_port_operations;
	client->port.external = true;
	client->port.cancels = true;
	client->port.calls = true;
	client->port.helped = true;
	client->port.aside = POOL_ASIDE;
	client->port.socket = -1;
	client->port.gathers = true;
	client->port.guards = true;
	client->port.parts = true;
	client->port.gather_bytes = GATHER_BYTES;
	client->port.receive_frames = PAIR_SLOTS;
	client->port.named = true;
	client->port.attested = true;
	snprintf(client->port.name, sizeof(client->port.name), "%s", name);
	client->pid = pid;
	client->page_file = client->connection.socket = -1;
	client->connection.cheap =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
	client->set = epoll_create1(EPOLL_CLOEXEC);
	if (client->set >= 0 && client_ports_add(client))
		return client;
	if (client->set >= 0)
		close(client->set);
	free(client);
	return NULL;
}

/* Why posternd cannot be reached, though it may be there. Returns false if it is not there. */
static bool call_tell(const struct client_port *client, int error)
{
	const char *name = client->port.name;

	if (error == ENOENT || error == ECONNREFUSED || error == ENOTDIR)
		return false;
	if (error == EACCES)
		log_error("%s: posternd does not admit this user: ask its administrator to put you "
			  "into the group of %s",
			name, client->address.sun_path);
	else if (error == EPERM)
		log_error("%s: %s is not used, because users other than its owner can write there: "
			  "chmod go-w its directory",
			name, client->address.sun_path);
	else if (error == EAGAIN)
		log_error("%s: posternd is stopped, or too many processes connect to it: start "
			  "this program again; /posternd/counters shows which users are refused",
			name);
	else
		log_error("%s: the connection to posternd failed: %s: %s", name, strerror(error),
			remedy_for(error, "end programs that use much memory"));
	return true;
}

struct port *client_port_open(
	const char *name, uint32_t mtu, unsigned interface, uint32_t pid, bool *absent)
{
	struct sockaddr_un address;
	struct client_port *client;

	*absent = !posternd_address(&address, name) || access(address.sun_path, F_OK) != 0;
	if (*absent)
		return NULL;
	if (setting_is(SETTING_ENCAP, "udp")) {
		log_error("%s: PTL_ENCAP=udp does not go through posternd: unset it, or end "
			  "posternd and run as root",
			name);
		return NULL;
	}
	client = client_port_make(name, pid);
	if (!client) {
		log_error("%s: out of memory, or of descriptors: raise the limit of open files by "
			  "ulimit -n, or %s",
			name, remedy_for_memory());
		return NULL;
	}
	client->address = address;
	client->sleeper.word = shared_page_make(&client->page_file);
	if (client->sleeper.word) {
		if (!client_port_call(client, true))
			*absent = !call_tell(client, errno);
		else if (client_port_start(client, mtu, interface, absent))
			return &client->port;
	}
	client_port_free(client);
	return NULL;
}
